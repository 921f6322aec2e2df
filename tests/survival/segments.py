"""Kills the writer of a segmented log over and over, and checks the directory that it leaves: `python segments.py
DIRECTORY COUNT SEED [packed]`.

Eight threads append numbered records to segments of 4 KiB, while a ninth rotates and prunes. As in `kills.py`, they
count in shared memory how many of their appends have returned, and the parent kills the process at a random moment.
Then each segment must end where the next starts, and only the last may be torn; from the first segment that is left on,
the records of each thread must be there, each once, in their order and up to the last that was promised. The first
segment must start at or before the offset up to which the child has pruned.
"""

from __future__ import annotations

import functools
import json
import random
import signal
import struct
import sys
import threading
import zlib
from pathlib import Path

import cordwood

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
import judge  # one of the helpers
from judge import WrongRecordsError
from kills import APPENDS_MAX, GENERATIONS, Shared, run_child

THREADS = 8
SEGMENT_LEN = 4096
PRUNED = THREADS
"""The place in the shared memory, after those of the threads, for the offset up to which the child may prune."""


@functools.lru_cache(10_000)
def record(thread: int, number: int) -> bytes:
    """A record that contains its number and whose every byte is known. Some are longer than a segment."""
    rng = random.Random(f"{thread} {number}")
    # A write of several pieces, which a kill can interrupt.
    length = (
        600_000
        if number % 97 == 5
        else rng.choice([*[rng.randrange(100)] * 12, *[rng.randrange(1_500)] * 4, rng.randrange(20_000)])
    )
    body = rng.randbytes(length) if number % 3 else bytes(length)
    return struct.pack("<BII", thread, number, zlib.crc32(body)) + body


class Plan:
    """The common settings of all children of one log."""

    def __init__(self, rng: random.Random, *, is_packed: bool) -> None:
        self.dialect = "packed" if is_packed else "leveldb"
        self.options = rng.choice(
            [{}, {}, {"flush": "close"}, {"flush": "close", "sync_interval": 0.002}, {"sync": "append"}]
        )
        self.is_buffered = self.options.get("flush") == "close"

    def __str__(self) -> str:
        return f"{self.dialect}, {self.options}"


def write(path: Path, plan: Plan, seed: float, shared: Shared, *, is_new: bool) -> None:
    """The child: appends, rotates and prunes until it is killed."""
    options = plan.options | ({"dialect": plan.dialect} if is_new else {})
    writer = cordwood.open(path, "a", segment_len=SEGMENT_LEN, on_torn_tail="truncate", **options)
    threads = [
        threading.Thread(target=append, args=(writer, thread, plan, seed, shared)) for thread in range(1, THREADS)
    ]
    for thread in [*threads, threading.Thread(target=prune, args=(writer, seed, shared))]:
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
        count = rng.randrange(1, 40) if way < 0.2 else 1
        records = [record(thread, number + index) for index in range(count)]
        shared.attempts(thread, number + count)
        if count > 1:
            writer.extend(records)
        else:
            writer.append(records[0], sync=way > 0.97)
        number += count
        if plan.is_buffered and way > 0.9:
            (writer.flush if way > 0.93 else writer.sync)()
        if not plan.is_buffered or way > 0.9:
            shared.promised(thread, number)


def prune(writer: cordwood.Writer, seed: float, shared: Shared) -> None:
    """Rotates and prunes, and keeps some segments."""
    rng = random.Random(f"{seed} pruned")
    while True:
        if rng.random() < 0.5:
            writer.rotate()
        if (before := writer.tell() - rng.randrange(10, 60) * SEGMENT_LEN) > shared.promised(PRUNED):
            shared.promised(PRUNED, before)
            writer.prune_before(before)


def check(path: Path, plan: Plan, shared: Shared, firsts: list[int]) -> tuple[list[int], bool]:
    """Checks the directory: the number after the last record of each thread, and whether bytes follow the last record.

    `firsts`: the numbers with which the records of each thread start that are not known to be there from earlier.
    """
    segments = sorted(path.glob("*.log"))
    bases = [int(segment.stem) for segment in segments]
    if bases and bases[0] > max(shared.promised(PRUNED), 0):
        raise WrongRecordsError(f"the first segment is {bases[0]}, but pruned was only up to {shared.promised(PRUNED)}")
    numbers: list[int | None] = [None] * THREADS
    is_torn = False
    for index, (segment, base) in enumerate(zip(segments, bases, strict=True)):
        data = segment.read_bytes()
        records = judge.records_in(data, plan.dialect, skips=False)
        end = records[-1].end_offset if records else 0
        is_torn = len(data) > end and not (plan.dialect == "packed" and len(data) == 17)
        if index + 1 < len(segments) and (is_torn or base + len(data) != bases[index + 1]):
            raise WrongRecordsError(
                f"segment {base} of {len(data)} bytes ends at {end}; the next is {bases[index + 1]}"
            )
        for found in records:
            thread, number = struct.unpack_from("<BI", found.data)
            expected = numbers[thread]
            if found.data != record(thread, number) or (expected is not None and number != expected):
                raise WrongRecordsError(f"at {base + found.offset} is not record {expected} of thread {thread}")
            numbers[thread] = number + 1
    for thread, number in enumerate(numbers):
        promised, attempts = shared.promised(thread), shared.attempts(thread)
        if number is None:
            # All of them may have been pruned. If nothing has been, they must be there.
            if promised > firsts[thread] and (not bases or bases[0] == 0):
                raise WrongRecordsError(f"no record of thread {thread} is there, and {promised} are promised")
            numbers[thread] = attempts
        elif not promised <= number <= attempts:
            raise WrongRecordsError(
                f"of thread {thread}, {promised} records are promised, {attempts} were started, and {number} are there"
            )
    return [number or 0 for number in numbers], is_torn


def main(directory: Path, count: int, seed: str, *, is_packed: bool) -> None:
    """Goes through logs of several generations each, and prints the results. A log that fails is left in place."""
    rng = random.Random(seed)
    shared = Shared()
    kills = torn = kept = pruned = 0
    problems: dict[str, str] = {}
    while kills < count:
        path, plan = directory / f"segments-{kills}", Plan(rng, is_packed=is_packed)
        numbers = [0] * THREADS
        shared.promised(PRUNED, 0)
        try:
            for _ in range(GENERATIONS):
                kills += 1
                run_child(path, plan, numbers, rng, shared, write=write)
                numbers, is_torn = check(path, plan, shared, numbers)
                torn += is_torn
            pruned += shared.promised(PRUNED) > 0
            for file in path.iterdir():
                file.unlink()
            path.rmdir()
        except WrongRecordsError as problem:
            problems.setdefault(str(plan), f"{path.name}: {problem}")
        kept += sum(numbers)
    result = {"count": kills, "torn": torn, "pruned": pruned, "records": kept, "problems": problems}
    print(json.dumps(result))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], is_packed="packed" in sys.argv[4:])
