"""Durable appends, reading and opening from Python: cordwood beside two logs of the standard library, in turns.

`make bench-durable` runs it. `docs/guides/which-log.md` has the figures.
"""

import json
import os
import random
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import cordwood

ROUNDS = 15
RECORD_LEN = 100
READ_COUNT = 200_000


class Append(Protocol):
    """Appends records to a log that threads share; with `sync`, returns once they are on the disk."""

    def __call__(self, records: list[str], *, sync: bool) -> None:  # noqa: D102
        ...


@contextmanager
def cordwood_log(directory: Path) -> Iterator[Append]:
    """The log that is compared with the others."""
    with cordwood.open(directory / "log", "a") as log:

        def append(records: list[str], *, sync: bool) -> None:
            if len(records) == 1:
                log.append(records[0].encode(), sync=sync)
                return
            log.extend([record.encode() for record in records])
            if sync:
                log.sync()

        yield append


@contextmanager
def json_lines(directory: Path) -> Iterator[Append]:
    """A line of JSON for each record, in one write, and `fdatasync`. An incomplete last line spoils the next one."""
    lock = threading.Lock()
    with lines_in(directory).open("ab", buffering=0) as file:

        def append(records: list[str], *, sync: bool) -> None:
            lines = "".join(json.dumps({"record": record}) + "\n" for record in records)
            with lock:
                file.write(lines.encode())
                if sync:
                    os.fdatasync(file.fileno())

        yield append


@contextmanager
def sqlite(directory: Path) -> Iterator[Append]:
    """A table with a row for each record, in WAL mode; with `synchronous=FULL`, each commit is synced."""
    lock = threading.Lock()
    database = sqlite3.connect(directory / "log.sqlite", isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, record TEXT)")

    def append(records: list[str], *, sync: bool) -> None:
        with lock:
            database.execute(f"PRAGMA synchronous={'FULL' if sync else 'OFF'}")
            database.execute("BEGIN")
            database.executemany("INSERT INTO log (record) VALUES (?)", [(record,) for record in records])
            database.execute("COMMIT")

    with closing(database):
        yield append


def read_log(directory: Path) -> int:
    """Reads all records, and returns their number."""
    with cordwood.open(directory / "log") as reader:
        return sum(1 for _ in reader)


def read_lines(directory: Path) -> int:
    """Reads all lines."""
    with lines_in(directory).open("rb") as file:
        return sum("record" in json.loads(line) for line in file)


def read_rows(directory: Path) -> int:
    """Reads all rows."""
    with closing(sqlite3.connect(directory / "log.sqlite")) as database:
        return sum(1 for _ in database.execute("SELECT record FROM log ORDER BY id"))


def lines_in(directory: Path) -> Path:
    """The file of `json_lines`."""
    return directory / "log.jsonl"


class Contender(NamedTuple):
    """A log, and the function that reads it."""

    opened: Callable[[Path], AbstractContextManager[Append]]
    read: Callable[[Path], int]


CONTENDERS = {
    "cordwood": Contender(cordwood_log, read_log),
    "JSON lines": Contender(json_lines, read_lines),
    "sqlite3": Contender(sqlite, read_rows),
}


class Scenario(NamedTuple):
    """The appends that are timed."""

    title: str
    threads: int
    calls: int
    batch_len: int = 1
    sync: bool = True


SCENARIOS = [
    Scenario("durable, 1 thread", threads=1, calls=20),
    Scenario("durable, 8 threads", threads=8, calls=10),
    Scenario("durable, batches of 100", threads=1, calls=10, batch_len=100),
    Scenario("not synced, 1 thread", threads=1, calls=2000, sync=False),
]


def time_of(append: Append, scenario: Scenario) -> float:
    """Microseconds a record, from the first append to the last."""
    records = ["x" * RECORD_LEN] * scenario.batch_len
    start = threading.Barrier(scenario.threads + 1)

    def append_all() -> None:
        start.wait()
        for _ in range(scenario.calls):
            append(records, sync=scenario.sync)

    workers = [threading.Thread(target=append_all) for _ in range(scenario.threads)]
    for worker in workers:
        worker.start()
    started = time.perf_counter()
    start.wait()
    for worker in workers:
        worker.join()
    return (time.perf_counter() - started) * 1e6 / (scenario.threads * scenario.calls * scenario.batch_len)


def print_row(title: str, time_in_turn: Callable[[str], float]) -> None:
    """Prints the time of each contender, median of the rounds, and in brackets its ratio to cordwood."""
    times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for number in range(ROUNDS):
        for name in random.Random(number).sample(list(CONTENDERS), len(CONTENDERS)):
            times[name].append(time_in_turn(name))
    cells = []
    for own_times in times.values():
        ratio = statistics.median(own / first for own, first in zip(own_times, times["cordwood"], strict=True))
        cells.append(f"{statistics.median(own_times):,.1f} ({ratio:.2f})")
    print(f"| {title} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Prints a table: for each scenario, microseconds a record, and in brackets the ratio to cordwood."""
    print(f"load average: {os.getloadavg()[0]:.1f}\n")
    print(f"| records of {RECORD_LEN} B | {' | '.join(CONTENDERS)} |")
    print("|---|" + "--:|" * len(CONTENDERS))
    for scenario in SCENARIOS:
        with ExitStack() as stack:
            logs = {}
            for name, contender in CONTENDERS.items():
                directory = stack.enter_context(tempfile.TemporaryDirectory())
                logs[name] = stack.enter_context(contender.opened(Path(directory)))
            print_row(scenario.title, lambda name: time_of(logs[name], scenario))  # noqa: B023 -- called at once
    with ExitStack() as stack:
        directories = {name: Path(stack.enter_context(tempfile.TemporaryDirectory())) for name in CONTENDERS}
        record = "x" * RECORD_LEN
        for name, contender in CONTENDERS.items():
            with contender.opened(directories[name]) as append:
                append([record] * READ_COUNT, sync=True)

        def time_to_read(name: str) -> float:
            started = time.perf_counter()
            count = CONTENDERS[name].read(directories[name])
            return (time.perf_counter() - started) * 1e6 / count

        def time_to_open(name: str) -> float:
            started = time.perf_counter()
            with CONTENDERS[name].opened(directories[name]) as append:
                append([record], sync=False)
                return (time.perf_counter() - started) * 1e6

        print_row(f"read, {READ_COUNT:,} records", time_to_read)
        print_row(f"opened and one record appended, after {READ_COUNT:,}", time_to_open)


if __name__ == "__main__":
    main()
