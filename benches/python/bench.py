"""Reading and writing from Python, beside what forty lines of Python do.

    python benches/python/bench.py [--json FILE]

The contenders of a size take turns in one process, so that what else the machine does falls on all alike; each answer
is checked before it is timed. The figure is nanoseconds a record, the median of the rounds, with the spread of the
middle half.
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from crc32c import crc32c

import cordwood

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LENS = [16, 100, 1024, 10_240]
TOTAL = 32 << 20
ROUNDS = 7
BLOCK_LEN = 32_768
HEADER = struct.Struct("<IHB")


def mask(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def plain_read(path: Path) -> Iterator[bytes]:
    """What one writes by hand: checks every checksum, knows FULL to LAST, stops at damage."""
    with path.open("rb") as file:
        parts = []
        while block := file.read(BLOCK_LEN):
            at = 0
            while at + 7 <= len(block):
                stored, length, kind = HEADER.unpack_from(block, at)
                end = at + 7 + length
                if mask(crc32c(block[at + 6 : end])) != stored:
                    raise ValueError(f"checksum mismatch at {at}")
                data = block[at + 7 : end]
                at = end
                if kind == 1:
                    yield data
                else:
                    parts.append(data)
                    if kind == 4:
                        yield b"".join(parts)
                        parts.clear()


def plain_write(path: Path, records: list[bytes]) -> None:
    """What one writes by hand."""
    with path.open("wb") as file:
        offset = 0
        for record in records:
            taken = 0
            while True:
                left = BLOCK_LEN - offset
                if left < 7:
                    file.write(bytes(left))
                    offset, left = 0, BLOCK_LEN
                data = record[taken : taken + left - 7]
                is_first = taken == 0
                taken += len(data)
                is_last = taken == len(record)
                kind = (1 if is_last else 2) if is_first else (4 if is_last else 3)
                file.write(HEADER.pack(mask(crc32c(data, crc32c(bytes([kind])))), len(data), kind))
                file.write(data)
                offset = (offset + 7 + len(data)) % BLOCK_LEN
                if is_last:
                    break


def write_append(path: Path, records: list[bytes]) -> None:
    with cordwood.open(path, "w") as writer:
        append = writer.append
        for record in records:
            append(record)


def write_extend(path: Path, records: list[bytes]) -> None:
    with cordwood.open(path, "w") as writer:
        writer.extend(records)


def drain(records: Iterator[object]) -> None:
    for _ in records:
        pass


def measure(length: int, folder: Path) -> dict[str, list[float]]:
    """Nanoseconds a record of each contender, a list of rounds."""
    count = TOTAL // (length + 7)
    records = [index.to_bytes(8, "little") * (length // 8) + bytes(length % 8) for index in range(count)]
    ours, theirs = folder / "ours.log", folder / "theirs.log"
    write_extend(ours, records)
    plain_write(theirs, records)
    assert ours.read_bytes() == theirs.read_bytes()
    assert list(cordwood.open(ours)) == records == list(plain_read(ours))
    assert [record for batch in cordwood.open(ours).batches() for record in batch] == records

    contenders: dict[str, Callable[[], None]] = {
        "a list that is there already": lambda: drain(iter(records)),
        "read: for record in reader": lambda: drain(cordwood.open(ours)),
        "read: deque(reader, 0)": lambda: deque(cordwood.open(ours), maxlen=0).clear(),
        "read: batches()": lambda: drain(cordwood.open(ours).batches()),
        "read: records()": lambda: drain(cordwood.open(ours).records()),
        "read: plain Python and crc32c": lambda: drain(plain_read(ours)),
        "write: append": lambda: write_append(ours, records),
        "write: extend": lambda: write_extend(ours, records),
        "write: plain Python and crc32c": lambda: plain_write(theirs, records),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, run in contenders.items():
            begin = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - begin) / count * 1e9)
    return times


def main() -> None:
    """Measures, prints a table for each length, and writes the figures to the file that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for length in LENS:
            figures[length] = {}
            print(f"\nrecords of {length} bytes: ns a record, middle half, times as fast as plain Python")
            times = measure(length, Path(folder))
            for name, rounds in times.items():
                low, median, high = statistics.quantiles(rounds, n=4)
                verb = name.split(":")[0]
                plain = times.get(f"{verb}: plain Python and crc32c")
                ratio = f"{statistics.median(plain) / median:5.1f}" if plain else ""
                print(f"  {name:32}{median:10.1f}   {low:8.1f} - {high:8.1f}   {ratio}")
                figures[length][name] = {"median": median, "low": low, "high": high}
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
