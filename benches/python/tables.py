"""Tables: CSV and NDJSON compared with Parquet, rows of `wandb.history`, and JSON to Arrow compared with polars.

    python benches/python/tables.py [--old PYTHON] [--least SECONDS] [--rounds N] [PART ...]

The parts are json, entity, wandb-history, write-batch, steps, arrow and old; `old` needs `--old`: the interpreter of an
environment with an older cordwood, for the history of a run to Parquet. A log grows until Parquet takes `--least`
seconds (default: 2). A figure is the user time of a process minus that of the same process with a log of one record:
the fastest of the rounds, in which the contenders take turns. The results of each are checked first.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars
import pyarrow
import pyarrow.parquet as pq
from tables_to_parquet import entities, entity, line, step

import cordwood
from cordwood.payload import wandb

COMMAND = "import sys; from cordwood.cli import main; sys.exit(main())"
HISTORY = "import sys; from cordwood.payload import wandb; print(sum(1 for _ in wandb.history(sys.argv[1])))"
# The other threads of pyarrow would only wait.
ARROW = (
    "import sys, pyarrow, cordwood; pyarrow.set_cpu_count(1); "
    "print(pyarrow.table(cordwood.scan(sys.argv[1], decode='json')).num_rows)"
)
POLARS = "import sys, polars; print(polars.read_ndjson(sys.argv[1] + '.ndjson', infer_schema_length=None).height)"

VALUES_OF_A_STEP = 40


def batch(chance: random.Random, number: int) -> tuple[bytes, int]:
    """A write batch of one put. The count is its sequence number."""
    key, value = b"user:%010d" % chance.randrange(10**10), b"%d, %r" % (number, chance.random())
    parts = (bytes([len(part)]) + part for part in (key, value))
    return struct.pack("<QIB", number, 1, 1) + b"".join(parts), number


def long_step(chance: random.Random, number: int) -> tuple[bytes, int]:
    """A step of a history with 40 values."""
    values = {"_step": number, "_runtime": number * 0.25, "_timestamp": 1.7e9 + number * 0.25}
    values |= {f"train/metric_{at}": chance.random() for at in range(VALUES_OF_A_STEP - len(values))}
    items = (
        entities.field(1, entities.field(2, name.encode()) + entities.field(16, json.dumps(value).encode()))
        for name, value in values.items()
    )
    return entities.field(2, b"".join(items)), number


def padded(values: dict[str, object], length: int) -> bytes:
    """A line of JSON of this length: a text is filled up."""
    return json.dumps(values | {"message": "request handled " * 20}).encode()[: length - 2] + b'"}'


def flat_line(chance: random.Random, number: int) -> tuple[bytes, int]:
    values: dict[str, object] = {
        "time": 1.7e9 + number / 8,
        "level": chance.choice(["debug", "info", "warning"]),
        "count": chance.randrange(1 << 40),
        "seconds": chance.random(),
        "ok": number % 50 > 0,
    }
    return padded(values, 164), int(str(values["count"]))


def nested_line(chance: random.Random, number: int) -> tuple[bytes, int]:
    values: dict[str, object] = {
        "time": 1.7e9 + number / 8,
        "count": chance.randrange(1 << 40),
        "user": {"id": chance.randrange(10**6), "name": chance.choice(["ann", "bob", "cy"])},
        "tags": [chance.choice(["red", "green", "blue"]) for _ in range(chance.randrange(1, 4))],
        "at": {"x": chance.random(), "y": chance.random()},
    }
    return padded(values, 211), int(str(values["count"]))


Made = Callable[[random.Random, int], tuple[bytes, int]]

CONVERTED: dict[str, tuple[Made, str, str]] = {
    "json": (line, "leveldb", "count"),
    "entity": (entity, "leveldb", "count"),
    "wandb-history": (step, "wandb", "count"),
    "write-batch": (batch, "leveldb", "sequence"),
}
"""The generator of each payload, the dialect, and the column of the counts."""


class Log:
    """A log that can grow, and beside it, one of one record and the same lines as a text file."""

    def __init__(self, directory: Path, made: Made, dialect: str = "leveldb", *, is_text: bool = False) -> None:
        self.path, self.first = directory / "log", directory / "one"
        self.counts: list[int] = []
        self._made, self._dialect, self._is_text = made, dialect, is_text
        self._chance = random.Random(5)
        directory.mkdir()
        self._add(self.first, 1)
        self.counts.clear()

    def grow(self, count: int) -> None:
        """Appends records to the log."""
        self._add(self.path, count)

    def _add(self, path: Path, count: int) -> None:
        start = len(self.counts)
        made = [self._made(self._chance, number) for number in range(start, start + count)]
        self.counts += [number for _, number in made]
        with cordwood.open(path, "a", dialect=self._dialect) as writer:
            writer.extend([record for record, _ in made])
        if self._is_text:
            with Path(f"{path}.ndjson").open("ab") as text:
                text.writelines(record + b"\n" for record, _ in made)


def user_seconds(command: list[str], **variables: str) -> float:
    """The user time of a process that must succeed."""
    process = subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr
    says = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, says.decode()
    return usage.ru_utime


def fastest(contenders: dict[str, Callable[[Path], float]], log: Log, rounds: int) -> dict[str, float]:
    """The user time of each contender, without that of an empty start."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            times[name].append((run(log.path), run(log.first)))
    return {name: min(full for full, _ in pairs) - min(empty for _, empty in pairs) for name, pairs in times.items()}


def converting(payload: str, form: str, python: str = sys.executable) -> Callable[[Path], float]:
    def run(log: Path) -> float:
        table = log.with_suffix(f".{form}")
        return user_seconds([python, "-c", COMMAND, "convert", "--as", payload, "--overwrite", str(log), str(table)])

    return run


def grown(log: Log, run: Callable[[Path], float], least: float, count: int) -> None:
    """Lets a log grow until it takes so long."""
    log.grow(count)
    while (seconds := run(log.path) - run(log.first)) < least:
        log.grow(int(len(log.counts) * min(9.0, 1.2 * least / max(seconds, 0.05) - 1)) + 1)


def numbers_in(table: Path, column: str) -> list[int]:
    """The integers of a column of a table."""
    if table.suffix == ".parquet":
        return pq.read_table(table, columns=[column])[column].to_pylist()
    with table.open(encoding="utf-8", newline="") as text:
        rows = csv.DictReader(text) if table.suffix == ".csv" else map(json.loads, text)
        return [int(row[column]) for row in rows]


def measure_forms(directory: Path, payload: str, options: argparse.Namespace) -> None:
    made, dialect, column = CONVERTED[payload]
    log = Log(directory / payload, made, dialect)
    forms = {form: converting(payload, form) for form in ("parquet", "csv", "ndjson")}
    log.grow(3_000)
    for form, run in forms.items():
        run(log.path)
        assert numbers_in(log.path.with_suffix(f".{form}"), column) == log.counts, form
    grown(log, forms["parquet"], options.least, 100_000)
    times = fastest(forms, log, options.rounds)
    for form in ("csv", "ndjson"):
        show(f"{payload} to {form}", (form, "parquet"), times, len(log.counts), 1.3)


def measure_steps(directory: Path, options: argparse.Namespace) -> None:
    log = Log(directory / "steps", long_step, "wandb")
    log.grow(1_000)
    rows = list(wandb.history(log.path))
    assert [row["_step"] for row in rows] == log.counts
    assert all(len(row) == VALUES_OF_A_STEP for row in rows)
    log.grow(39_000)

    def run(path: Path) -> float:
        return user_seconds([sys.executable, "-c", HISTORY, str(path)])

    seconds = fastest({"history": run}, log, options.rounds)["history"]
    each = seconds / len(log.counts) * 1e6
    print(f"{'wandb.history':24} {each:8.2f} us a step of {VALUES_OF_A_STEP} values; goal: at most 20", flush=True)


def measure_arrow(directory: Path, options: argparse.Namespace) -> None:
    for name, made, goal in (("flat", flat_line, 1.0), ("nested", nested_line, 0.5)):
        log = Log(directory / name, made, is_text=True)
        log.grow(3_000)
        table = pyarrow.table(cordwood.scan(log.path, decode="json"))
        assert table["count"].to_pylist() == log.counts
        assert table.to_pylist() == polars.read_ndjson(f"{log.path}.ndjson", infer_schema_length=None).to_dicts()
        contenders: dict[str, Callable[[Path], float]] = {
            "cordwood": lambda path: user_seconds([sys.executable, "-c", ARROW, str(path)]),
            "polars": lambda path: user_seconds([sys.executable, "-c", POLARS, str(path)], POLARS_MAX_THREADS="1"),
        }
        log.grow(497_000)
        times = fastest(contenders, log, options.rounds)
        show(f"{name} json to arrow", ("cordwood", "polars"), times, len(log.counts), goal)


def measure_old(directory: Path, options: argparse.Namespace) -> None:
    log = Log(directory / "old", step, "wandb")
    runs = {"new": converting("wandb-history", "parquet"), "old": converting("wandb-history", "parquet", options.old)}
    log.grow(3_000)
    tables = []
    for run in runs.values():
        run(log.path)
        tables.append(pq.read_table(log.path.with_suffix(".parquet")))
    assert tables[0].equals(tables[1])
    grown(log, runs["new"], options.least, 100_000)
    times = fastest(runs, log, options.rounds)
    show("wandb-history to parquet", ("new", "old"), times, len(log.counts), 0.75)


def show(name: str, sides: tuple[str, str], times: dict[str, float], count: int, goal: float) -> None:
    one, other = (times[side] for side in sides)
    print(
        f"{name:24} {one:6.2f} s, {sides[1]:8} {other:6.2f} s: {one / other:5.2f} times; goal: at most {goal}; "
        f"{one / count * 1e9:,.0f} ns a record",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", metavar="PART", nargs="*", default=[*CONVERTED, "steps", "arrow", "old"])
    parser.add_argument("--old", metavar="PYTHON", help="an interpreter with an older cordwood")
    parser.add_argument("--least", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # noqa: S108
        for part in options.parts:
            if part in CONVERTED:
                measure_forms(Path(name), part, options)
            elif part == "steps":
                measure_steps(Path(name), options)
            elif part == "arrow":
                measure_arrow(Path(name), options)
            elif options.old:
                measure_old(Path(name), options)


if __name__ == "__main__":
    main()
