"""Durable appends from Python: cordwood beside two logs of the standard library, in turns.

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
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import cordwood

ROUNDS = 15
RECORD_LEN = 100


class Append(Protocol):
    """Appends records to a log that threads share; with `sync`, returns once they are on the disk."""

    def __call__(self, records: list[str], *, sync: bool) -> None:  # noqa: D102
        ...


@contextmanager
def cordwood_log(folder: Path) -> Iterator[Append]:
    """The log that is compared with the others."""
    with cordwood.open(folder / "log", "w") as log:

        def append(records: list[str], *, sync: bool) -> None:
            if len(records) == 1:
                log.append(records[0].encode(), sync=sync)
                return
            log.extend([record.encode() for record in records])
            if sync:
                log.sync()

        yield append


@contextmanager
def json_lines(folder: Path) -> Iterator[Append]:
    """A line of JSON for each record, in one write, and `fdatasync`. An incomplete last line spoils the next one."""
    lock = threading.Lock()
    with (folder / "log.jsonl").open("ab", buffering=0) as file:

        def append(records: list[str], *, sync: bool) -> None:
            lines = "".join(json.dumps({"record": record}) + "\n" for record in records)
            with lock:
                file.write(lines.encode())
                if sync:
                    os.fdatasync(file.fileno())

        yield append


@contextmanager
def sqlite(folder: Path) -> Iterator[Append]:
    """A table with a row for each record, in WAL mode; with `synchronous=FULL`, each commit is synced."""
    lock = threading.Lock()
    database = sqlite3.connect(folder / "log.sqlite", isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, record TEXT)")

    def append(records: list[str], *, sync: bool) -> None:
        with lock:
            database.execute(f"PRAGMA synchronous={'FULL' if sync else 'OFF'}")
            database.execute("BEGIN")
            database.executemany("INSERT INTO log (record) VALUES (?)", [(record,) for record in records])
            database.execute("COMMIT")

    with closing(database):
        yield append


CONTENDERS = {"cordwood": cordwood_log, "JSON lines": json_lines, "sqlite3": sqlite}


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
    begun = time.perf_counter()
    start.wait()
    for worker in workers:
        worker.join()
    return (time.perf_counter() - begun) * 1e6 / (scenario.threads * scenario.calls * scenario.batch_len)


def main() -> None:
    """Prints a table: for each scenario, microseconds a record, and in brackets the ratio to cordwood."""
    print(f"load average: {os.getloadavg()[0]:.1f}\n")
    print(f"| records of {RECORD_LEN} B | {' | '.join(CONTENDERS)} |")
    print("|---|" + "--:|" * len(CONTENDERS))
    for scenario in SCENARIOS:
        times: dict[str, list[float]] = {name: [] for name in CONTENDERS}
        with ExitStack() as stack:
            logs = {}
            for name, opened in CONTENDERS.items():
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                logs[name] = stack.enter_context(opened(Path(folder)))
            for number in range(ROUNDS):
                for name in random.Random(number).sample(list(logs), len(logs)):
                    times[name].append(time_of(logs[name], scenario))
        cells = []
        for own_times in times.values():
            ratio = statistics.median(own / first for own, first in zip(own_times, times["cordwood"], strict=True))
            cells.append(f"{statistics.median(own_times):,.1f} ({ratio:.2f})")
        print(f"| {scenario.title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
