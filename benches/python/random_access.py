"""The time of one record by its number, and of many at once: `cordwood.index` beside bagz, which verifies no checksum.

It needs the package bagz besides cordwood: `pip install bagz`. Each answer is compared with the records before it is
timed. The contenders take turns, and the median of the rounds is printed.

    python benches/python/random_access.py [COUNT [ROUNDS]]
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import bagz

import cordwood

LENGTH = 100
ALONE = 20_000
AT_ONCE = 100_000


def bagz_of(path: Path, records: list[bytes]) -> bagz.Reader:
    with bagz.Writer(path, bagz.Writer.Options(compression=bagz.CompressionNone())) as writer:
        for record in records:
            writer.write(record)
    return bagz.Reader(path, bagz.Reader.Options(compression=bagz.CompressionNone()))


def index_of(path: Path, records: list[bytes], **options: str) -> cordwood.RecordIndex:
    with cordwood.open(path, "w", **options) as writer:
        writer.extend(records)
    return cordwood.index(path)


def alone(source: bagz.Reader | cordwood.RecordIndex, places: list[int]) -> list[bytes]:
    return [source[place] for place in places]


def at_once(source: bagz.Reader | cordwood.RecordIndex, places: list[int]) -> list[bytes]:
    return list(source.read_indices(places)) if isinstance(source, bagz.Reader) else source.read(places)


def main(count: int = 1_000_000, rounds: int = 7) -> None:
    """Prints the microseconds of a record: on the clock, and of all processors."""
    numbers = random.Random(1)
    records = [b"%08d" % number + numbers.randbytes(LENGTH - 8) for number in range(count)]
    with tempfile.TemporaryDirectory() as directory:
        contenders = {
            "bagz": bagz_of(Path(directory, "a.bagz"), records),
            "cordwood": index_of(Path(directory, "a.log"), records),
            "cordwood, packed": index_of(Path(directory, "b.log"), records, dialect="packed"),
        }
        ways: dict[str, tuple[Callable[..., list[bytes]], list[int]]] = {
            "[i]": (alone, numbers.choices(range(count), k=ALONE)),
            "read, random": (at_once, numbers.choices(range(count), k=AT_ONCE)),
            "read, adjacent": (at_once, list(range(count // 3, count // 3 + AT_ONCE))),
        }
        print(f"{count:,} records of {LENGTH} bytes, {rounds} rounds: microseconds a record, on the clock / of the CPU")
        for name, (way, places) in ways.items():
            times: dict[str, list[tuple[float, float]]] = {contender: [] for contender in contenders}
            expected = [records[place] for place in places]
            for source in contenders.values():
                assert way(source, places) == expected
            for _ in range(rounds):
                for contender, source in contenders.items():
                    started = perf_counter(), process_time()
                    way(source, places)
                    times[contender].append((perf_counter() - started[0], process_time() - started[1]))
            for contender, found in times.items():
                clock, cpu = (statistics.median(part) / len(places) * 1e6 for part in zip(*found, strict=True))
                print(f"{name:16} {contender:18} {clock:8.2f} {cpu:8.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
