"""Kills a writing process over and over, and checks the file that it leaves: `python kills.py DIRECTORY COUNT SEED
[packed]`.

A program of its own, since it forks: each child appends numbered records and counts, in shared memory that survives a
kill, how many of its appends have returned. The parent kills it at a random moment (SIGKILL). Then every promised
record must be there, in order and only once, with no other record, and the next child must be able to continue. With
`packed`, all logs are packed, and most of their records are appended many at a time.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import random
import signal
import struct
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import cordwood

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
import judge  # one of the helpers
from judge import WrongRecordsError

if TYPE_CHECKING:
    from collections.abc import Callable

GENERATIONS = 6
"""Children per file, one after another."""
THREADS = 3
APPENDS_MAX = 600
"""After this many appends a child waits to be killed, so that some kills meet an idle log."""
HANG = 120
"""Seconds after which a child is considered hung."""


@functools.lru_cache(2_000)
def record(thread: int, number: int) -> bytes:
    """A record that contains its number and whose every byte is known. With one thread, some are empty."""
    rng = random.Random(f"{thread} {number}")
    if thread == 0 and number % 50 == 7:
        return b""
    if number % 40 == 5:
        # Long enough for a kill to interrupt the write in the middle, and quick to create.
        body = bytes([number % 251]) * 700_000
    else:
        length = rng.choice([*[rng.randrange(200)] * 12, *[rng.randrange(3_000)] * 7, rng.randrange(100_000)])
        body = rng.randbytes(length) if number % 3 else bytes(length)
        if number % 9 == 4:  # A run of zeros within other bytes, as in a database page.
            body += bytes(1_200) + body[:50]
    return struct.pack("<BII", thread, number, zlib.crc32(body)) + body


class Plan:
    """The common settings of all children of one file."""

    def __init__(self, rng: random.Random, *, is_packed: bool) -> None:
        self.dialect = "packed" if is_packed else rng.choice(["leveldb", "leveldb", "leveldb", "wandb"])
        self.compression = rng.choice([None, "zstd"]) if is_packed else None
        self.extends = 0.7 if is_packed else 0.15
        self.threads = rng.choice([1, 1, THREADS])
        self.on_torn_tail = rng.choice(["truncate"] * 4 + ["pad"]) if self.dialect != "wandb" else "truncate"
        # Half of them use the default options.
        self.options = rng.choice(
            [
                *[{}] * 6,
                {"flush": "append"},
                {"flush": "close"},
                {"flush": "close", "sync": "append"},
                {"flush": "close", "sync_interval": 0.01},
                {"flush": "close", "sync_interval": 0.002},
            ]
        )
        if is_packed:
            self.options = self.options | {"flush": rng.choice(["close", "close", "append"])}
        self.is_buffered = self.options.get("flush") == "close"

    def __str__(self) -> str:
        return f"{self.dialect}, {self.compression}, {self.threads} threads, {self.on_torn_tail}, {self.options}"


class Shared:
    """Numbers for each thread that outlive its process. Each is written in one store, so never only half."""

    def __init__(self) -> None:
        self.numbers = memoryview(mmap.mmap(-1, 4096)).cast("Q")

    def start(self, numbers: list[int]) -> None:
        """Sets both to these numbers: there is no further promise or attempt yet."""
        for thread, number in enumerate(numbers):
            self.promised(thread, number)
            self.attempts(thread, number)

    def promised(self, thread: int, number: int | None = None) -> int:
        """All records before this one must be there."""
        if number is not None:
            self.numbers[2 * thread] = number
        return self.numbers[2 * thread]

    def attempts(self, thread: int, number: int | None = None) -> int:
        """This record and those after it must not be there."""
        if number is not None:
            self.numbers[2 * thread + 1] = number
        return self.numbers[2 * thread + 1]


def write(path: Path, plan: Plan, seed: float, shared: Shared, *, is_new: bool) -> None:
    """The child: appends records until it is killed. The dialect is named if it cannot yet be detected."""
    options = plan.options | ({"dialect": plan.dialect, "compression": plan.compression} if is_new else {})
    writer = cordwood.open(path, "a", on_torn_tail=plan.on_torn_tail, **options)
    threads = [
        threading.Thread(target=append, args=(writer, thread, plan, seed, shared)) for thread in range(1, plan.threads)
    ]
    for thread in threads:
        thread.start()
    append(writer, 0, plan, seed, shared)
    signal.pause()


def append(writer: cordwood.Writer, thread: int, plan: Plan, seed: float, shared: Shared) -> None:
    """Appends records. Once an append returns, its record is promised; with `flush="close"`, once flushed or synced."""
    rng = random.Random(f"{seed} {thread}")
    number = shared.promised(thread)
    end = number + APPENDS_MAX
    while number < end:
        way = rng.random()
        extends = way < plan.extends
        count = rng.randrange(1, 20) if extends else 1
        records = [record(thread, number + index) for index in range(count)]
        shared.attempts(thread, number + count)
        if extends:
            writer.extend(records)
        else:
            writer.append(records[0], sync=way > 0.98)
        number += count
        if not plan.is_buffered or plan.options.get("sync") == "append" or (count == 1 and way > 0.98):
            shared.promised(thread, number)
        elif way > 0.85:
            (writer.flush if way > 0.9 else writer.sync)()
            shared.promised(thread, number)


def run_child(
    path: Path, plan: object, numbers: list[int], rng: random.Random, shared: Shared, *, write: Callable[..., None]
) -> None:
    """Starts a child, which calls `write`, and kills it at a random moment after a random number of records."""
    shared.start(numbers)
    seed, delay = rng.random(), rng.choice([0, rng.uniform(0, 0.002)])
    target = numbers[0] + int(min(rng.expovariate(1 / 60), APPENDS_MAX))
    child = os.fork()
    if child == 0:
        try:
            write(path, plan, seed, shared, is_new=not any(numbers))
        except BaseException as error:  # noqa: BLE001 - the parent says it
            print(f"{plan}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201
        finally:
            os._exit(1)
    deadline = time.monotonic() + HANG
    while shared.attempts(0) < target:
        if time.monotonic() > deadline:
            raise WrongRecordsError("the child hangs")
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            raise WrongRecordsError(f"the child ended by itself, status {os.waitstatus_to_exitcode(status)}")
        time.sleep(0)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        raise WrongRecordsError("the child ended by itself")


def check(path: Path, plan: Plan, shared: Shared) -> tuple[list[int], bool]:
    """Checks the file: how many records of each thread it contains, and whether bytes follow the last."""
    data = path.read_bytes() if path.exists() else b""
    records = judge.records_in(data, plan.dialect, skips=plan.on_torn_tail == "pad")
    counts = [0] * THREADS
    for found in records:
        thread = found.data[0] if found.data else 0
        if found.data != record(thread, counts[thread]):
            raise WrongRecordsError(f"at {found.offset} is not record {counts[thread]} of thread {thread}")
        counts[thread] += 1
    for thread, count in enumerate(counts):
        if not shared.promised(thread) <= count <= shared.attempts(thread):
            raise WrongRecordsError(
                f"of thread {thread}, {shared.promised(thread)} records are promised, {shared.attempts(thread)} were "
                f"started, and {count} are there"
            )
    end = records[-1].end_offset if records else len(judge.file_header(data, plan.dialect))
    return counts, len(data) > end


def main(directory: Path, count: int, seed: str, *, is_packed: bool) -> None:
    """Goes through files of several generations each, and prints the results. A file that fails is left in place."""
    rng = random.Random(seed)
    shared = Shared()
    kills = torn = kept = 0
    problems: dict[str, str] = {}
    while kills < count:
        path, plan = directory / f"kills-{kills}.log", Plan(rng, is_packed=is_packed)
        numbers = [0] * THREADS
        try:
            for _ in range(GENERATIONS):
                kills += 1
                run_child(path, plan, numbers, rng, shared, write=write)
                numbers, is_torn = check(path, plan, shared)
                torn += is_torn
            path.unlink(missing_ok=True)
        except WrongRecordsError as problem:
            problems.setdefault(str(plan), f"{path.name}: {problem}")
        kept += sum(numbers)
    print(json.dumps({"count": kills, "torn": torn, "records": kept, "problems": problems}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], is_packed="packed" in sys.argv[4:])
