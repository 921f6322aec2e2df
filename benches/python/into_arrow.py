"""Reading records into Arrow, compared with the floor: the same records as record batches that are not read.

    python benches/python/into_arrow.py [--len BYTES] [--mib MEBIBYTES] [--rounds N]

The contenders take turns in one process, and the results of each are checked before it is timed. A figure is
nanoseconds per record, the median of the rounds; a ratio compares two turns of the same round. A contender that keeps
all records needs new memory for them, and so does its floor.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars
import pyarrow

import cordwood


def released(path: Path) -> int:
    return sum(len(batch.data) for batch in cordwood.open(path).record_batches())


def kept(path: Path) -> int:
    batches = list(cordwood.open(path).record_batches())
    return sum(len(batch.data) for batch in batches)


def stream(path: Path) -> int:
    batches = pyarrow.RecordBatchReader.from_stream(cordwood.scan(path))
    return sum(batch["record"].buffers()[2].size for batch in batches)


def table(path: Path) -> int:
    column = pyarrow.table(cordwood.scan(path))["record"]
    return sum(chunk.buffers()[2].size for chunk in column.chunks)


def frame(path: Path) -> int:
    return int(polars.DataFrame(cordwood.scan(path))["record"].bin.size().sum())


def query(path: Path) -> int:
    scan = cordwood.scan(path)
    return int(duckdb.from_arrow(scan).aggregate("sum(octet_length(record))").fetchall()[0][0])


def without_records(path: Path) -> int:
    batches = pyarrow.RecordBatchReader.from_stream(cordwood.scan(path, columns=["length"]))
    return sum(sum(batch["length"].to_numpy().tolist()) for batch in batches)


def objects(path: Path) -> int:
    return sum(map(len, list(cordwood.open(path))))


CONTENDERS: dict[str, tuple[Callable[[Path], int], Callable[[Path], int]]] = {
    "record batches, released (floor)": (released, released),
    "record batches, kept (floor)": (kept, kept),
    "pyarrow, batch by batch": (stream, released),
    "pyarrow.table": (table, kept),
    "polars.DataFrame": (frame, kept),
    "DuckDB, a sum": (query, released),
    "list(reader)": (objects, kept),
}
"""Each contender with its floor."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--len", type=int, default=100, help="bytes of a record")
    parser.add_argument("--mib", type=int, default=64, help="mebibytes of records")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    count = (arguments.mib << 20) // arguments.len
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as directory:  # noqa: S108
        path = Path(directory) / "arrow.log"
        data = random.Random(5).randbytes(1 << 20)
        with cordwood.open(path, "w") as writer:
            writer.extend(data[at : at + arguments.len] for at in (i * 61 % 900_000 for i in range(count)))
        for name, (run, _) in CONTENDERS.items():
            assert run(path) == count * arguments.len, name
        assert without_records(path) == count * arguments.len
        functions = {run for pair in CONTENDERS.values() for run in pair}
        times: dict[Callable[[Path], int], list[float]] = {run: [] for run in functions}
        for _ in range(arguments.rounds):
            for run, taken in times.items():
                start = time.perf_counter_ns()
                run(path)
                taken.append((time.perf_counter_ns() - start) / count)
        print(f"{count:,} records of {arguments.len} bytes, ns a record, beside the floor")
        for name, (run, floor) in CONTENDERS.items():
            ratio = statistics.median(a / b for a, b in zip(times[run], times[floor], strict=True))
            print(f"{name:34} {statistics.median(times[run]):7.1f} {min(times[run]):7.1f} {ratio:6.2f}")


if __name__ == "__main__":
    main()
