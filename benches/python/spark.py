"""Logs as rows of Spark: `spark.read.format("cordwood")`, compared with `binaryFiles` and a reader in plain Python.

    .venv/spark/bin/python benches/python/spark.py [--files N] [--each N] [--rounds N]

`make test-engines` makes that environment. Both make the rows `(path, record)`, and Spark counts them and sums the
lengths of the records; each log is one task. The figures are wall-clock seconds of jobs in one session: the two take
turns, after one round that is not counted, and the answers are checked. About 0.4 s of each job are Spark's own, so
with few records the ratio says more about Spark than about the readers.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import cordwood

sys.path.insert(0, str(Path(__file__).parent))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--each", type=int, default=800_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.addPyFile(str(Path(__file__).parent / "plain.py"))
    with tempfile.TemporaryDirectory() as directory:
        expected = written(Path(directory), options.files, options.each)
        contenders = {
            "cordwood": lambda: ours(spark, directory),
            "binaryFiles and plain Python": lambda: plain(spark, directory),
        }
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(options.rounds + 1):
            for name, frame_of in contenders.items():
                start = time.perf_counter()
                answer = tuple(
                    frame_of().selectExpr("count(*)", "sum(length(record))", "sum(length(path)) > 0").first()
                )
                seconds[name].append(time.perf_counter() - start)
                assert answer == (*expected, True), (name, answer, expected)
    medians = {name: statistics.median(rounds[1:]) for name, rounds in seconds.items()}
    for name, rounds in seconds.items():
        print(f"{name}: median {medians[name]:.2f} s of {', '.join(f'{round_:.2f}' for round_ in rounds[1:])}")
    print(f"ratio: {medians['binaryFiles and plain Python'] / medians['cordwood']:.1f}")
    spark.stop()


def written(directory: Path, files: int, each: int) -> tuple[int, int]:
    """Writes the logs, and returns how many records and bytes of records they have."""
    chance = random.Random(1)
    data = chance.randbytes(1 << 20)
    total_len = 0
    for number in range(files):
        with cordwood.open(directory / f"{number}.log", "w", flush="close") as writer:
            for _ in range(each):
                record = data[(at := chance.randrange(1 << 19)) : at + chance.randrange(234)]
                total_len += len(record)
                writer.append(record)
    return files * each, total_len


def ours(spark: SparkSession, directory: str) -> Any:
    logs = spark.read.format("cordwood").schema("path STRING, record BINARY").option("partition_len", 64 << 20)
    return logs.load(directory)


def plain(spark: SparkSession, directory: str) -> Any:
    def rows(file: tuple[str, bytes]) -> Iterator[tuple[str, bytes]]:
        from plain import records

        path, data = file
        return ((path, record) for record in records(io.BytesIO(data)))

    files = spark.sparkContext.binaryFiles(directory, 4).flatMap(rows)
    return spark.createDataFrame(files, "path STRING, record BINARY")


if __name__ == "__main__":
    main()
