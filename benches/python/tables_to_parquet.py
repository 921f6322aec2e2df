"""Converting logs to one Parquet file, compared with writing that Parquet file from ready columns.

    python benches/python/tables_to_parquet.py [--files N] [--each N] [--rounds N] [PAYLOAD ...]

The payloads are entity, json and wandb-history, whose values have another order in each step, as those of wandb 0.29;
in wandb-history-ordered they have the same order, as those of wandb 0.17. The figures are wall-clock and CPU seconds,
in a separate process that has loaded pyarrow: the fastest of the rounds. The two take turns, and the converted file is
checked first.
"""

from __future__ import annotations

import argparse
import contextlib
import json
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

START = datetime(2020, 1, 1, tzinfo=UTC)


def entity(chance: random.Random, number: int) -> tuple[bytes, int]:
    count = chance.randrange(1 << 40)
    values: dict[str, Any] = {
        "title": f"Document number {number}",
        "count": count,
        "price": chance.random() if number % 3 else number,
        "done": number % 2 == 0,
        "created": START + timedelta(microseconds=chance.randrange(10**14)),
        "address": {"city": chance.choice(["Bern", "Biel", "Basel"]), "zip": chance.randrange(10_000)},
        "tags": [chance.choice(["red", "green", "blue"]) for _ in range(chance.randrange(1, 4))],
        "spot": entities.Place((chance.random() * 90, chance.random() * 90)),
        "note": None if number % 3 == 0 else f"note {chance.randrange(10**6)}",
    }
    return entities.entity([("Task", f"id{number:08}")], values), count


def line(chance: random.Random, number: int) -> tuple[bytes, int]:
    count = chance.randrange(1 << 40)
    values = {
        "time": (START + timedelta(milliseconds=number)).isoformat(),
        "level": chance.choice(["debug", "info", "warning"]),
        "path": f"/orders/{number}",
        "count": count,
        "seconds": chance.random(),
        "ok": number % 50 > 0,
        "user": {"id": chance.randrange(10**6), "name": chance.choice(["ann", "bob", "cy"])},
        "tags": [chance.choice(["red", "green", "blue"]) for _ in range(chance.randrange(3))],
    }
    return json.dumps(values).encode(), count


def step(chance: random.Random, number: int, *, is_shuffled: bool = True) -> tuple[bytes, int]:
    count = chance.randrange(1 << 40)
    values = {
        "_step": number,
        "_runtime": number * 0.25 + chance.random(),
        "_timestamp": 1.7e9 + number * 0.25,
        "loss": chance.random(),
        "accuracy": chance.random(),
        "count": count,
        "epoch": number // 1000,
        "lr": 0.001,
    }
    names = list(values)
    if is_shuffled:
        chance.shuffle(names)
    items = b"".join(
        entities.field(1, entities.field(2, name.encode()) + entities.field(16, json.dumps(values[name]).encode()))
        for name in names
    )
    return entities.field(2, items), count


def ordered_step(chance: random.Random, number: int) -> tuple[bytes, int]:
    return step(chance, number, is_shuffled=False)


PAYLOADS = {"entity": entity, "json": line, "wandb-history": step, "wandb-history-ordered": ordered_step}


def make(directory: Path, payload: str, files: int, each: int) -> int:
    """Writes the logs, and returns the sum of a column."""
    chance = random.Random(5)
    is_run = payload.startswith("wandb")
    dialect = "wandb" if is_run else "leveldb"
    counts = 0
    for file in range(files):
        name = f"run-{file:03}.wandb" if is_run else f"output-{file:03}"
        with cordwood.open(directory / name, "x", dialect=dialect) as writer:
            for number in range(file * each, (file + 1) * each):
                record, count = PAYLOADS[payload](chance, number)
                counts += count
                writer.append(record)
    return counts


def taken(work: Callable[[], object]) -> tuple[float, float]:
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cpu


def measure(directory: Path, payload: str, options: argparse.Namespace) -> None:
    (directory / "logs").mkdir()
    counts = make(directory / "logs", payload, options.files, options.each)
    arguments = [
        "convert",
        "--as",
        payload.removesuffix("-ordered"),
        "--overwrite",
        str(directory / "logs"),
        str(directory / "t.parquet"),
    ]

    def convert() -> None:
        with contextlib.redirect_stderr(Path(os.devnull).open("w")):
            assert main_of_cli(arguments) == 0

    convert()
    table = pq.read_table(directory / "t.parquet").combine_chunks()
    assert table.num_rows == options.files * options.each
    assert sum(table["count"].to_pylist()) == counts
    rounds = [
        (taken(convert), taken(lambda: pq.write_table(table, directory / "ready.parquet")))
        for _ in range(options.rounds)
    ]
    for what, at in (("clock", 0), ("processor", 1)):
        converted, written = (min(times[at] for times in side) for side in zip(*rounds, strict=True))
        print(f"{payload:21} {what:10} {converted:6.2f} s, ready {written:6.2f} s: {converted / written:5.2f} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("payloads", metavar="PAYLOAD", nargs="*", default=PAYLOADS)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--each", type=int, default=100_000, help="records in a file")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for payload in options.payloads:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # noqa: S108
            measure(Path(name), payload, options)


if __name__ == "__main__":
    main()
