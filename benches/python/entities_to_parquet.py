"""Converting a Firestore export to one Parquet file, compared with writing that Parquet file from ready columns.

    python benches/python/entities_to_parquet.py [--files N] [--each N] [--rounds N]

The figures are wall-clock and CPU seconds, in a separate process that has loaded pyarrow: the fastest of the rounds.
The two take turns, and the converted file is checked first.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import cordwood
from cordwood.cli import main as main_of_cli

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/helpers"))
import entities

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)


def values_of(chance: random.Random, number: int) -> dict[str, Any]:
    return {
        "title": f"Document number {number}",
        "count": chance.randrange(1 << 40),
        "price": chance.random() if number % 3 else number,
        "done": number % 2 == 0,
        "created": BEGIN + timedelta(microseconds=chance.randrange(10**14)),
        "address": {"city": chance.choice(["Bern", "Biel", "Basel"]), "zip": chance.randrange(10_000)},
        "tags": [chance.choice(["red", "green", "blue"]) for _ in range(chance.randrange(1, 4))],
        "spot": entities.Place((chance.random() * 90, chance.random() * 90)),
        "note": None if number % 3 == 0 else f"note {chance.randrange(10**6)}",
    }


def make(folder: Path, files: int, each: int) -> tuple[int, int]:
    """Writes the export, and returns the sums of two of its columns."""
    chance = random.Random(5)
    counts = zips = 0
    for file in range(files):
        with cordwood.open(folder / f"output-{file:03}", "x") as writer:
            for number in range(file * each, (file + 1) * each):
                values = values_of(chance, number)
                counts += values["count"]
                zips += values["address"]["zip"]
                writer.append(entities.entity([("Task", f"id{number:08}")], values))
    return counts, zips


def taken(work: Callable[[], object]) -> tuple[float, float]:
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--each", type=int, default=5_000, help="entities in a file")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # noqa: S108
        folder = Path(name)
        (folder / "export").mkdir()
        counts, zips = make(folder / "export", options.files, options.each)
        arguments = ["convert", "--as", "entity", "--overwrite", str(folder / "export"), str(folder / "t.parquet")]

        def convert() -> None:
            with contextlib.redirect_stderr(Path(os.devnull).open("w")):
                assert main_of_cli(arguments) == 0

        convert()
        table = pq.read_table(folder / "t.parquet").combine_chunks()
        assert table.num_rows == options.files * options.each
        assert sum(table["count"].to_pylist()) == counts
        assert sum(row["zip"] for row in table["address"].to_pylist()) == zips
        rounds = [
            (taken(convert), taken(lambda: pq.write_table(table, folder / "ready.parquet")))
            for _ in range(options.rounds)
        ]
        for what, at in (("clock", 0), ("processor", 1)):
            converted, written = (min(times[at] for times in side) for side in zip(*rounds, strict=True))
            print(f"{what:10} {converted:6.2f} s, ready columns {written:6.2f} s: {converted / written:5.2f} times")


if __name__ == "__main__":
    main()
