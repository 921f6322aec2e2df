"""Times reading in a pipeline of Apache Beam, beside Beam's own TFRecord: `make bench-pipelines`.

The time is that of the processor, for each record, above that of the same pipeline for a file of one record: the
median of five rounds, in which the contenders take turns.
"""

import logging
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apache_beam as beam
from apache_beam.io import ReadFromTFRecord
from apache_beam.io.tfrecordio import _TFRecordUtil

import cordwood
from cordwood.beam import ReadFromLog

COUNT = 300_000
LEN_MAX = 234
ROUNDS = 5


class Consume(beam.DoFn):
    """Takes each element, and returns none."""

    def process(self, _element: object) -> None:
        """Makes no element of it."""


def seconds(read):
    """The processor's time for a pipeline."""
    start = time.process_time()
    with beam.Pipeline() as pipeline:
        _ = pipeline | read | beam.ParDo(Consume())
    return time.process_time() - start


def write(directory: Path, records: list[bytes]) -> dict[str, Callable[[], beam.PTransform]]:
    """Writes a file of each kind. Returns the transforms that read it."""
    log, tfrecord = directory / f"{len(records)}.log", directory / f"{len(records)}.tfrecord"
    with cordwood.open(log, "w") as writer:
        writer.extend(records)
    with tfrecord.open("wb") as file:
        for record in records:
            _TFRecordUtil.write_record(file, record)
    return {
        "ReadFromTFRecord": lambda: ReadFromTFRecord(str(tfrecord)),
        "ReadFromLog": lambda: ReadFromLog(str(log)),
        "ReadFromLog(as_batches=True)": lambda: ReadFromLog(str(log), as_batches=True),
    }


def main(count: int, directory: Path) -> None:
    """Prints the figures."""
    rng = random.Random(1)
    records = [rng.randbytes(rng.randrange(LEN_MAX + 1)) for _ in range(count)]
    many, one = write(directory, records), write(directory, records[:1])
    times = {name: [] for name in many}
    for _ in range(ROUNDS):
        for name, read in many.items():
            times[name].append(seconds(read()) - seconds(one[name]()))
    medians = {name: statistics.median(own) / count for name, own in times.items()}
    for name, median in medians.items():
        print(f"{name:30} {median * 1e6:5.2f} us a record {median / medians['ReadFromTFRecord']:6.3f}")


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as directory:
        main(int(sys.argv[1]) if sys.argv[1:] else COUNT, Path(directory))
