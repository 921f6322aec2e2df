"""Logs in pipelines of Apache Beam: `make test-engines`. `tests/api/test_claims.py` tests all that needs no Beam."""

import bz2
import gzip
import hashlib
import io
import logging
import lzma
import os
import signal
import subprocess
import sys
import threading
import traceback
import zlib
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from log_changes import ERRORS, OLD, Changes, name_of, table
from log_changes import write as write_log
from shortened_ranges import DIALECTS, Splitting, merged, random_log, seeded

pytest.importorskip("apache_beam", reason="make test-engines installs it")

import apache_beam as beam
import pyarrow as pa
from apache_beam.io import iobase, source_test_utils
from apache_beam.io.fileio import MatchFiles
from apache_beam.io.filesystem import CompressionTypes, FileMetadata, FileSystem
from apache_beam.io.range_trackers import OffsetRangeTracker
from apache_beam.io.restriction_trackers import OffsetRange
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import fn_runner
from apache_beam.runners.sdf_utils import RestrictionTrackerView, ThreadsafeRestrictionTracker
from apache_beam.testing import test_stream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.environments import EmbeddedPythonGrpcEnvironment
from apache_beam.transforms.window import FixedWindows, TimestampedValue

import cordwood
from cordwood import BLOCK_LEN
from cordwood._claims import ClaimedRange
from cordwood.beam import (
    ReadAllFromLog,
    ReadFromLog,
    WriteToLog,
    _arrow,
    _Decode,
    _Detect,
    _list,
    _Log,
    _Match,
    _Read,
    _Sink,
)

pytestmark = pytest.mark.filterwarnings("default")  # Beam's own.

logging.getLogger("cordwood").disabled = True


def number_of(record):
    """A number that depends on all bytes of a record, the sum of which does not depend on their order."""
    return int.from_bytes(hashlib.sha256(record).digest()[:6], "big")


def write(path, records, **options):
    with cordwood.open(path, "w", **options) as writer:
        writer.extend(records)
    return str(path)


def random_records(count, length_max=80_000):
    rng = seeded("records", count)
    return [rng.randbytes(rng.randrange(rng.choice([1, 100, 3_000, length_max]))) for _ in range(count)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Logs of each kind."""
    directory = tmp_path_factory.mktemp("logs")
    write(directory / "whole.log", random_records(400))
    data = bytearray((directory / "whole.log").read_bytes())
    rng = seeded("damage")
    for _ in range(30):
        data[rng.randrange(len(data))] ^= 4
    (directory / "damaged.log").write_bytes(data)
    for number in range(30):
        write(directory / f"small-{number}.log", random_records(5, 300))
    for dialect in ("wandb", "swanlab", "packed"):
        write(directory / f"{dialect}.other", random_records(100), dialect=dialect)
    write(directory / "000012.log", random_records(100), dialect="rocksdb", log_number=12)
    path = write(directory / "zeros.log", [bytes(1_000)] * 1_000)
    (directory / "zeros.log.gz").write_bytes(gzip.compress(Path(path).read_bytes()))
    return directory


def summary_of(paths, on_corruption):
    """The number of records, the sum of their numbers and the skipped bytes, read by one reader after the other."""
    count = total = skipped_len = 0
    for path in paths:
        with cordwood.open(path, on_corruption=on_corruption) as reader:
            numbers = [number_of(record) for record in reader]
        count += len(numbers)
        total += sum(numbers)
        skipped_len += reader.skipped_len
    return count, total, skipped_len


def found_logs(path, detect=_Detect(CompressionTypes.AUTO, None)):  # noqa: B008
    """What a pipeline finds before it reads."""
    return [log for file in _Match().process(path) for log in detect.process(file)]


def counters_of(result):
    counters = result.metrics().query()["counters"]
    return {item.key.metric.name: item.committed for item in counters if item.key.metric.namespace == "cordwood"}


@pytest.mark.cell("one-file packed numbered", "beam")
@pytest.mark.parametrize("bundle_len", [32 << 10, 1 << 20, 64 << 20])
@pytest.mark.parametrize(
    ("pattern", "on_corruption"),
    [
        ("whole.log", "raise"),
        ("damaged.log", "skip"),
        ("damaged.log", "salvage"),
        ("small-*.log", "raise"),
        ("*.other", "raise"),
        ("0000*.log", "raise"),
    ],
)
def test_a_pipeline_reads_the_same_records_as_individual_readers(directory, pattern, on_corruption, bundle_len):
    count, total, skipped_len = summary_of(sorted(directory.glob(pattern)), on_corruption)
    pipeline = beam.Pipeline()
    outputs = pipeline | ReadFromLog(
        str(directory / pattern), on_corruption=on_corruption, with_damage=True, desired_bundle_size=bundle_len
    )
    numbers = outputs.records | beam.Map(number_of)
    assert_that(numbers | beam.combiners.Count.Globally(), equal_to([count]), label="count")
    assert_that(numbers | beam.CombineGlobally(sum), equal_to([total]), label="sum")
    lens = outputs.damage | beam.Map(lambda found: found[1].length)
    assert_that(lens | "total" >> beam.CombineGlobally(sum), equal_to([skipped_len]), label="skipped")
    result = pipeline.run()
    result.wait_until_finish()
    counters = counters_of(result)
    assert counters["records"] == count > 0
    assert counters["skipped_bytes"] == skipped_len


def elements_of(transform, tmp_path, *, of=None):
    """The elements that a pipeline makes, through a file."""
    with beam.Pipeline() as pipeline:
        elements = (pipeline | beam.Create(of) | transform) if of else (pipeline | transform)
        _ = elements | beam.Map(repr) | beam.io.WriteToText(str(tmp_path / "elements"), num_shards=1)
    (path,) = tmp_path.glob("elements*")
    return [eval(line) for line in path.read_text().splitlines()]  # noqa: S307 - written here


def test_beam_elements_can_be_records_or_lists_and_can_include_paths(tmp_path):
    path = write(tmp_path / "a.log", [b"one", b"two"])
    results = {}
    for with_filename in (False, True):
        for as_batches in (False, True):
            (directory := tmp_path / f"{with_filename}{as_batches}").mkdir()
            read = ReadFromLog(path, with_filename=with_filename, as_batches=as_batches)
            results[with_filename, as_batches] = elements_of(read, directory)
    assert results == {
        (False, False): [b"one", b"two"],
        (False, True): [[b"one", b"two"]],
        (True, False): [(path, b"one"), (path, b"two")],
        (True, True): [(path, [b"one", b"two"])],
    }


def test_a_pipeline_can_return_arrow_batches(directory, tmp_path):
    path = str(directory / "whole.log")
    read = ReadFromLog(path, as_batches="arrow", desired_bundle_size=1 << 20)
    rows = [row for rows in elements_of(read | beam.Map(pa.RecordBatch.to_pylist), tmp_path) for row in rows]
    assert sorted(row["offset"] for row in rows) == sorted(
        row["offset"] for row in pa.table(cordwood.scan(path)).to_pylist()
    )
    assert sorted(row["record"] for row in rows) == sorted(cordwood.open(path))


JSON = [b'{"loss": %d, "at": {"x": 2}}' % number for number in range(5_000)]


def test_decoded_beam_rows_match_a_scan(tmp_path):
    path = write(tmp_path / "a.log", [*JSON, b"not JSON"])
    schema = pa.schema([("loss", pa.float64())])
    options = {"decode": "json", "schema": schema, "on_corruption": "skip"}
    pipeline = beam.Pipeline()
    rows = pipeline | ReadFromLog(path, desired_bundle_size=1, **options) | beam.FlatMap(pa.RecordBatch.to_pylist)
    assert_that(rows, equal_to(pa.table(cordwood.scan(path, **options)).to_pylist()))
    result = pipeline.run()
    result.wait_until_finish()
    assert counters_of(result)["left_out"] == 1


def test_reading_independent_records_in_ranges_returns_the_same_rows_as_a_scan(tmp_path):
    path = write(tmp_path / "a.log", [*JSON, b"not JSON"])
    with (tmp_path / "a.log").open("r+b") as file:
        file.seek(2 * BLOCK_LEN + 20_000)
        file.write(b"XXX")
    table = {"schema": pa.schema([("loss", pa.int64())]), "on_corruption": "salvage"}
    transform = ReadAllFromLog(decode="json", desired_bundle_size=2 * BLOCK_LEN + 1, **table)
    (log,) = found_logs(path, transform._detect)  # noqa: SLF001
    read = transform._read  # noqa: SLF001
    restrictions = list(read.split(log, read.initial_restriction(log)))
    assert len(restrictions) == -(-log.file_len // (2 * BLOCK_LEN)) > 2
    rows, regions = [], []
    for restriction in restrictions:
        tracker = read.create_tracker(restriction)
        for element in read.process(log, tracker):
            if isinstance(element, beam.pvalue.TaggedOutput):
                regions.append(element.value[1])
            else:
                rows += element.to_pylist()
        tracker.check_done()
    scan = cordwood.scan(path, decode="json", **table)
    assert rows == pa.table(scan).to_pylist()
    assert merged(regions) == merged(scan.skipped[0]) != []


def test_a_log_whose_rows_depend_on_earlier_records_is_read_as_a_whole(tmp_path):
    """The tables that a database has after all edits in its MANIFEST."""
    path = str(Path(__file__).parents[1] / "vectors/leveldb/plyvel/MANIFEST-000002")
    with beam.Pipeline() as pipeline:
        read = ReadFromLog(path, decode="live-files", desired_bundle_size=1)
        rows = pipeline | read | beam.FlatMap(pa.RecordBatch.to_pylist)
        assert_that(rows, equal_to(pa.table(cordwood.scan(path, decode="live-files")).to_pylist()))


@pytest.mark.parametrize("fault", ["JSON", "mismatch"])
def test_error_for_an_undecodable_record_includes_the_file_name(fault, tmp_path):
    path = write(tmp_path / "a.log", [b"not JSON"])
    if fault == "mismatch":
        with (tmp_path / "a.log").open("r+b") as file:
            file.write(b"X")
    with pytest.raises(Exception, match=fault) as caught, beam.Pipeline() as pipeline:
        _ = pipeline | ReadFromLog(path, decode="json", schema=pa.schema([("loss", pa.float64())]))
    assert path in "".join(traceback.format_exception(caught.value))


def test_column_options_are_checked_at_construction():
    with pytest.raises(ValueError, match="the columns of 'json' depend on the records: pass schema"):
        ReadAllFromLog(decode="json")
    with pytest.raises(ValueError, match="pass decode, too"):
        ReadAllFromLog(columns=["loss"])
    with pytest.raises(ValueError, match="there is no column 'loss'"):
        ReadAllFromLog(decode="write-batch", schema=pa.schema([("loss", pa.float64())]))


def test_a_file_whose_name_looks_like_a_pattern_is_read(tmp_path):
    """Beam's own `ReadAllFiles` matches the path of each file that it has found a second time, and loses it."""
    path = write(tmp_path / "a[1].log", [b"one"])
    assert elements_of(ReadFromLog(path), tmp_path) == [b"one"]
    (by_pattern := tmp_path / "pattern").mkdir()
    assert elements_of(ReadFromLog(str(tmp_path / "a*.log")), by_pattern) == [b"one"]
    (by_metadata := tmp_path / "metadata").mkdir()
    assert elements_of(MatchFiles(str(tmp_path / "a*.log")) | ReadAllFromLog(), by_metadata) == [b"one"]


def test_a_relative_pattern_matches_files_in_the_current_directory(tmp_path, monkeypatch):
    write(tmp_path / "a.log", [b"one"])
    monkeypatch.chdir(tmp_path)
    assert elements_of(ReadFromLog("*.log"), tmp_path) == [b"one"]


@pytest.mark.parametrize("name", ["000012.log", "zeros.log.gz"])
def test_an_unsplittable_log_has_exactly_one_restriction(directory, name):
    path = str(directory / name)
    (log,) = found_logs(path)
    read = _Read(_list, bundle_len=1, bundle_len_min=0, with_filename=False, on_corruption="raise")
    (restriction,) = read.split(log, read.initial_restriction(log))
    assert read.restriction_size(log, restriction) == Path(path).stat().st_size
    tracker = read.create_tracker(restriction)
    records = []
    for batch in read.process(log, tracker):
        records += batch
        assert tracker.try_split(0) is None
    tracker.check_done()
    with cordwood.open(path.removesuffix(".gz")) as reader:
        assert records == list(reader)


def test_an_empty_file_has_no_records(tmp_path):
    (tmp_path / "empty.log").write_bytes(b"")
    write(tmp_path / "one.log", [b"one"])
    assert elements_of(ReadFromLog(str(tmp_path / "*.log")), tmp_path) == [b"one"]


def test_a_missing_file_raises_an_error_at_construction_or_at_run_time(tmp_path):
    for pattern in ("missing.log", "missing-*.log"):
        with pytest.raises(FileNotFoundError, match="missing"):
            ReadFromLog(str(tmp_path / pattern))
    # Beam raises it as it is, or as a RuntimeError with its text.
    with pytest.raises(Exception, match=r"FileNotFoundError.*missing\.log"), beam.Pipeline() as pipeline:
        _ = pipeline | ReadFromLog(str(tmp_path / "missing.log"), validate=False)
    with pytest.raises(Exception, match="IsADirectoryError"), beam.Pipeline() as pipeline:
        _ = pipeline | ReadFromLog(str(tmp_path))


def test_pipeline_errors_include_the_file_and_step_names(tmp_path):
    (tmp_path / "a.txt").write_text("not a log\n")
    with pytest.raises(cordwood.DialectError, match=r"a\.txt: not a log, but text \[while.*Detect"):
        elements_of(ReadFromLog(str(tmp_path / "a.txt")), tmp_path)


def test_damage_fails_the_pipeline_and_the_error_names_the_file(directory):
    path = str(directory / "damaged.log")
    with pytest.raises(cordwood.CorruptionError, match=r"damaged\.log: ") as caught, beam.Pipeline() as pipeline:
        _ = pipeline | ReadFromLog(path)
    assert caught.value.path == path


@pytest.mark.parametrize(
    "reading",
    [partial(_Read, _list), partial(_Decode, {"decode": "raw", "columns": None, "schema": None})],
    ids=["records", "decoded"],
)
def test_a_warning_about_damage_includes_the_file_name(reading, directory, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(logging.getLogger("cordwood"), "disabled", False)
    data = (directory / "damaged.log").read_bytes()
    for name, content in ("a.log", data), ("a.log.gz", gzip.compress(data)):
        path = tmp_path / name
        path.write_bytes(content)
        (log,) = found_logs(str(path))
        read = reading(bundle_len=1 << 26, bundle_len_min=0, with_filename=False, on_corruption="skip")
        assert list(read.process(log, read.create_tracker(read.initial_restriction(log))))
        assert caplog.messages
        assert all(message.startswith(f"{path}: skipped ") for message in caplog.messages)
        caplog.clear()


@pytest.mark.cell("segmented", "beam")
@pytest.mark.parametrize("pattern", ["log", "log/", "log/*.log", "log/*000.log", "**", "*/*"])
def test_a_segmented_log_is_rejected(pattern, tmp_path):
    """Its files, read as logs of their own, would not show that one is missing."""
    records = [b"one" * 20, b"two" * 20, b"three" * 20]
    with cordwood.open(tmp_path / "log", "a", segment_len=100) as writer:
        writer.extend(records)
    path, text = f"{tmp_path}/{pattern}", "a segmented log is read only from a local directory: .* name its files"
    with pytest.raises(OSError, match=text):
        ReadFromLog(path)
    with pytest.raises((OSError, RuntimeError), match=text), beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([path]) | ReadAllFromLog()
    if "*" in pattern:
        with pytest.raises((OSError, RuntimeError), match=text), beam.Pipeline() as pipeline:
            _ = pipeline | MatchFiles(path) | ReadAllFromLog()
    names = sorted(str(path) for path in (tmp_path / "log").glob("*.log"))
    assert len(names) == 3
    with beam.Pipeline() as pipeline:
        assert_that(pipeline | beam.Create(names) | ReadAllFromLog(), equal_to(records))


def test_the_option_to_stop_at_damage_is_rejected():
    with pytest.raises(ValueError, match="on_corruption must be 'raise', 'skip' or 'salvage', not 'stop'"):
        ReadAllFromLog(on_corruption="stop")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dialect": "bogus"}, "dialect.*bogus"),
        ({"compression_type": "bogus"}, "compression_type must be .*'gzip'.*, not 'bogus'"),
        ({"desired_bundle_size": 0}, "desired_bundle_size must be at least 1, not 0"),
        ({"min_bundle_size": -1}, "min_bundle_size must be at least 0, not -1"),
    ],
)
def test_an_invalid_read_option_is_rejected_at_construction(given, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        ReadAllFromLog(**given)
    with pytest.raises(ValueError, match=message):
        ReadFromLog(str(tmp_path / "*.log"), validate=False, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dialect": "bogus"}, "dialect.*bogus"),
        ({"dialect": "leveldb", "compression": "zstd"}, "compress"),
        ({"num_shards": -1}, "num_shards must be at least 0, not -1"),
        ({"triggering_frequency": 0}, "triggering_frequency must be more than 0, not 0"),
    ],
)
def test_an_invalid_write_option_is_rejected_at_construction(given, message, tmp_path):
    with pytest.raises((ValueError, cordwood.DialectError), match=message):
        WriteToLog(str(tmp_path / "a"), **given)


@pytest.mark.parametrize("path", [Path("a.log"), ["a.log"], b"a.log", None])
def test_a_non_text_path_is_rejected_at_construction(path):
    with_suffix = partial(WriteToLog, "a")
    for name, made in (
        ("file_pattern", ReadFromLog),
        ("file_path_prefix", WriteToLog),
        ("file_name_suffix", with_suffix),
    ):
        with pytest.raises(TypeError, match=f"{name} must be a str, not {type(path).__name__}"):
            made(path)


COMPRESSED = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".deflate": zlib.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("suffix", COMPRESSED)
@pytest.mark.parametrize("decode", [None, "raw"])
def test_a_truncated_compressed_file_raises_an_error(suffix, decode, tmp_path):
    records = random_records(50, 30_000)
    log = Path(write(tmp_path / "plain", records)).read_bytes()
    half = len(log) // 2
    # Of two parts, as `cat` joins them.
    parts = [COMPRESSED[suffix](part) for part in (log[:half], log[half:])]
    path = tmp_path / f"a.log{suffix}"
    path.write_bytes(b"".join(parts) if suffix != ".deflate" else COMPRESSED[suffix](log))
    options = {"decode": decode, "on_corruption": "skip"}
    with beam.Pipeline() as pipeline:
        counted = pipeline | ReadFromLog(str(path), **options) | beam.Map(lambda found: len(found) if decode else 1)
        assert_that(counted | beam.CombineGlobally(sum), equal_to([len(records)]))
    whole = path.read_bytes()
    for cut in (1, 9, len(parts[1]) // 2):
        path.write_bytes(whole[:-cut])
        with (
            pytest.raises(Exception, match=rf"a\.log{suffix}: the compressed file ends early"),
            beam.Pipeline() as again,
        ):
            _ = again | ReadFromLog(str(path), **options)


def test_file_formats_are_detected_on_many_workers(tmp_path):
    """A bundle of the step that detects has one file, after a reshuffle."""
    for number in range(20):
        write(tmp_path / f"{number}.log", [b"%d" % number])
    pipeline = beam.Pipeline()
    _ = pipeline | ReadFromLog(str(tmp_path / "*.log"))
    labels = []

    class Visitor(beam.pipeline.PipelineVisitor):
        def visit_transform(self, node):
            labels.append(node.full_label)

    pipeline.visit(Visitor())
    steps = [label.split("/")[2] for label in labels if label.count("/") >= 2]
    order = list(dict.fromkeys(step for step in steps if step in ("Match", "Reshuffle", "Detect", "Read")))
    assert order == ["Match", "Reshuffle", "Detect", "Read"]
    [match] = [_Match().process(str(tmp_path / "*.log"))]
    assert all(isinstance(file, FileMetadata) for file in match)


def test_batches_of_an_unknown_kind_are_rejected():
    with pytest.raises(ValueError, match="as_batches must be True, False or 'arrow', not 'Arrow'"):
        ReadAllFromLog(as_batches="Arrow")


def test_the_log_number_is_read_from_the_file_name(tmp_path):
    """All of the file is left over from another log."""
    path = write(tmp_path / "old", random_records(5, 10), dialect="rocksdb", log_number=7)
    (tmp_path / "000012.log").write_bytes((tmp_path / "old").read_bytes())
    write(tmp_path / "000013.log", [b"one"], dialect="rocksdb", log_number=13)
    assert path
    assert list(cordwood.open(tmp_path / "000012.log")) == []
    assert elements_of(ReadFromLog(str(tmp_path / "*.log")), tmp_path) == [b"one"]


# Writing -----------------------------------------------------------------------------------------------------------


def records_in(directory):
    """The records of all files in a directory, sorted."""
    return sorted(record for path in directory.iterdir() for record in cordwood.open(path))


@pytest.mark.parametrize(
    "options",
    [{}, {"dialect": "packed", "compression": "zstd"}, {"dialect": "wandb"}],
    ids=["leveldb", "packed", "wandb"],
)
def test_each_shard_is_written_as_a_log(options, tmp_path):
    records = random_records(300, 1_000)
    with beam.Pipeline() as pipeline:
        paths = pipeline | beam.Create(records) | WriteToLog(f"{tmp_path}/out/a", ".log", num_shards=3, **options)
        assert_that(paths, equal_to([f"{tmp_path}/out/a-0000{number}-of-00003.log" for number in range(3)]))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"a-0000{number}-of-00003.log" for number in range(3)
    ]
    assert records_in(tmp_path / "out") == sorted(records)
    assert {cordwood.open(path).dialect for path in (tmp_path / "out").iterdir()} == {options.get("dialect", "leveldb")}


def test_an_empty_collection_is_written_as_an_empty_log(tmp_path):
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([]) | WriteToLog(str(tmp_path / "a"), ".log")
    assert [path.name for path in tmp_path.iterdir()] == ["a-00000-of-00001.log"]
    assert records_in(tmp_path) == []


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("record_count", [0, 1, 2, 3])
@pytest.mark.parametrize("options", [{"num_shards": 3}, {"num_shards": 3, "shard_name_template": "-SSS"}])
def test_old_logs_of_any_length_are_replaced_even_if_new_logs_are_empty(options, record_count, length, tmp_path):
    """To Beam, a local file with the length and the final name of a new log is that log, which it then deletes."""
    names = [("a-%03d.log" if len(options) > 1 else "a-%05d-of-00003.log") % number for number in range(3)]
    for name in names:
        write(tmp_path / name, [b"y" * length])
    records = [b"%d" % number for number in range(record_count)]
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(records, reshuffle=False) | WriteToLog(str(tmp_path / "a"), ".log", **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert records_in(tmp_path) == records


@pytest.mark.parametrize("template", [None, "", "-SS"])
@pytest.mark.parametrize("num_shards", [0, 1])
@pytest.mark.parametrize("records", [[], [b"x"]])
def test_a_single_new_log_replaces_an_old_one_of_the_same_length(records, num_shards, template, tmp_path):
    """An empty log of W&B is as long as LevelDB's log with an empty record."""
    name = {None: "a-00000-of-00001", "": "a", "-SS": "a-00"}[template]
    write(tmp_path / f"{name}.log", [b"y"] if records else [b""], dialect="wandb" if records else "leveldb")
    to = WriteToLog(str(tmp_path / "a"), ".log", num_shards, template, dialect="wandb")
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(records) | to
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.log"]
    assert records_in(tmp_path) == records


def test_only_logs_with_the_same_number_of_shards_are_removed(tmp_path):
    others = ["a-00000-of-00001.log", "a-00000-of-00002.log", "a-00003-of-00004.log", "ab-00000-of-00003.log"]
    for name in [*others, "a-old-of-00003.log"]:
        write(tmp_path / name, [b"y"])
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([b"x"]) | WriteToLog(str(tmp_path / "a"), ".log", num_shards=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*others, *(f"a-0000{number}-of-00003.log" for number in range(3))]
    )
    assert records_in(tmp_path) == [b"x", *[b"y"] * 4]


def test_a_retry_after_the_renames_keeps_all_records(tmp_path, monkeypatch):
    """Beam makes other empty logs for the retry. They must not replace a log that has its final name."""
    sync_directory = cordwood.beam.sync_directory
    synced = []

    def fails_once(path):
        synced.append(path)
        if len(synced) == 1:
            raise OSError
        sync_directory(path)

    monkeypatch.setattr(cordwood.beam, "sync_directory", fails_once)
    # The temporary names: of the log with the record, of the empty logs, and of those for the retry, which sort first.
    monkeypatch.setattr(iobase, "uuid", SimpleNamespace(uuid4=iter("56734").__next__))
    # The runner that tries a bundle again.
    with beam.Pipeline("BundleBasedDirectRunner") as pipeline:
        _ = pipeline | beam.Create([b"x"]) | WriteToLog(str(tmp_path / "a"), ".log", num_shards=3)
    assert len(synced) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a-0000{number}-of-00003.log" for number in range(3)]
    assert records_in(tmp_path) == [b"x"]


def test_error_for_a_text_record_includes_the_step_name(tmp_path):
    message = "must be bytes-like, not str.*while running 'WriteToLog"
    with pytest.raises(Exception, match=message), beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(["one"]) | WriteToLog(str(tmp_path / "a"))
    assert not list(tmp_path.glob("a*"))


@pytest.mark.parametrize(
    ("option", "text"),
    [("file_path_prefix", "a[1]"), ("file_name_suffix", "*.log"), ("shard_name_template", "-SS?")],
)
def test_a_name_that_beam_would_interpret_as_a_pattern_is_rejected(tmp_path, option, text):
    """Beam would remove all files that match."""
    options = {"file_path_prefix": str(tmp_path / "a"), option: text}
    with pytest.raises(ValueError, match=f"{option} has a character of a pattern"):
        WriteToLog(**options)


def test_a_retried_bundle_does_not_duplicate_records(tmp_path, monkeypatch):
    records = random_records(100, 1_000)
    write_record = _Sink.write_record
    written = []

    def fails_once(self, handle, value):
        write_record(self, handle, value)
        written.append(value)
        if len(written) == 50:
            raise OSError

    monkeypatch.setattr(_Sink, "write_record", fails_once)
    # The runner that tries a bundle again.
    with beam.Pipeline("BundleBasedDirectRunner") as pipeline:
        _ = pipeline | beam.Create(records) | WriteToLog(str(tmp_path / "a"), ".log")
    assert len(written) > 100
    assert records_in(tmp_path) == sorted(records)


KILLED = """
import os, signal, sys, threading
from cordwood.beam import _Sink
sink = _Sink(sys.argv[1], {}, file_name_suffix=".log")
kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "write":
    writer = sink.open_writer(sys.argv[3], "killed")
    for number in range(100_000):
        writer.write(b"%d" % number)
    writer.temp_handle[1].flush()
    kill()
rename = os.rename
# Beam renames files in several threads.
first = threading.Lock()
def rename_then_kill(*paths):
    first.acquire()
    rename(*paths)
    kill()
os.rename = rename_then_kill
list(sink.finalize_write(sys.argv[3], sys.argv[4:], sys.argv[4:]))
"""


def test_a_killed_worker_leaves_no_duplicate_or_partial_logs(tmp_path):
    """While it writes a bundle, and after it has renamed the first file. What Beam does then is done by hand."""
    prefix = str(tmp_path / "a")

    def killed(*args):
        ended = subprocess.run([sys.executable, "-c", KILLED, prefix, *args], check=False)
        assert ended.returncode == -signal.SIGKILL

    sink = _Sink(prefix, {}, file_name_suffix=".log")
    temporary = sink.initialize_write()
    killed("write", temporary)
    assert [path.stat().st_size > 100_000 for path in Path(temporary).iterdir()] == [True]
    results = []
    for shard in (range(100), range(100, 250)):
        writer = sink.open_writer(temporary, f"{shard}")
        for number in shard:
            writer.write(b"%d" % number)
        results.append(writer.close())
    killed("finalize", temporary, *results)
    assert len(list(tmp_path.glob("a-*"))) == 1
    list(sink.finalize_write(temporary, results, results))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-00000-of-00002.log", "a-00001-of-00002.log"]
    assert records_in(tmp_path) == sorted(b"%d" % number for number in range(250))


def test_a_log_is_synced_before_its_rename_is_synced(tmp_path, monkeypatch):
    calls = []
    rename, sync_directory = os.rename, cordwood.beam.sync_directory

    class NotedWriter:
        def __init__(self, file, mode, **options):
            self._writer = cordwood.Writer(file, mode, **options)

        def __getattr__(self, name):
            return getattr(self._writer, name)

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            assert self._writer.durable_offset == self._writer.tell() > 0
            calls.append("sync")
            self._writer.close()

    def noted_rename(*paths):
        calls.append("rename")
        rename(*paths)

    def noted_sync_directory(path):
        calls.append(str(Path(path).parent))
        sync_directory(path)

    monkeypatch.setattr(cordwood.beam, "Writer", NotedWriter)
    monkeypatch.setattr(os, "rename", noted_rename)
    monkeypatch.setattr(cordwood.beam, "sync_directory", noted_sync_directory)
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([b"one"]) | WriteToLog(f"{tmp_path}/new/directory/a", num_shards=1)
    assert calls == [f"{tmp_path}/new", str(tmp_path), "sync", "rename", f"{tmp_path}/new/directory"]


# Another file system ------------------------------------------------------------------------------------------------


class InMemory(FileSystem):
    """A file system in memory, which notes how its files are read."""

    files: ClassVar[dict] = {}
    calls: ClassVar[list] = []

    @classmethod
    def scheme(cls):
        return "memory"

    def join(self, basepath, *paths):
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path):
        return path.rsplit("/", 1)

    def mkdirs(self, path):
        pass

    def has_dirs(self):
        return False

    def _list(self, dir_or_prefix):
        return [self.metadata(path) for path in self.files if path.startswith(dir_or_prefix)]

    def open(self, path, mime_type=None, compression_type=None):
        self.calls.append("open")
        return NotedFile(self.files[path])

    def create(self, path, mime_type=None, compression_type=None):
        return NewFile(self.files, path)

    def copy(self, source_file_names, destination_file_names):
        raise NotImplementedError

    def rename(self, source_file_names, destination_file_names):
        for old, new in zip(source_file_names, destination_file_names, strict=True):
            self.files[new] = self.files.pop(old)

    def exists(self, path):
        return path in self.files

    def size(self, path):
        return len(self.files[path])

    def last_updated(self, path):
        raise NotImplementedError

    def metadata(self, path):
        return FileMetadata(path, len(self.files[path]))

    def delete(self, paths):
        for path in paths:
            self.files.pop(path, None)


class NotedFile(io.BytesIO):
    def read(self, size=-1):
        InMemory.calls.append(size)
        return super().read(size)


class NewFile(io.BytesIO):
    def __init__(self, files, path):
        super().__init__()
        self._files, self._path = files, path

    def fileno(self):
        raise io.UnsupportedOperation

    def close(self):
        if not self.closed:
            self._files[self._path] = self.getvalue()
        super().close()


@pytest.fixture
def in_memory():
    InMemory.files.clear()
    InMemory.calls.clear()
    return InMemory


@pytest.mark.cell("remote", "beam")
def test_logs_can_be_written_and_read_on_every_beam_file_system(in_memory):
    records = random_records(100, 3_000)
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create(records) | WriteToLog("memory://bucket/a", ".log", num_shards=2)
    assert sorted(in_memory.files) == [f"memory://bucket/a-0000{number}-of-00002.log" for number in range(2)]
    with beam.Pipeline() as pipeline:
        assert_that(pipeline | ReadFromLog("memory://bucket/*.log"), equal_to(records))


def test_no_temporary_logs_are_left_on_a_file_system_without_directories(in_memory):
    with beam.Pipeline() as pipeline:
        _ = pipeline | beam.Create([b"x"]) | WriteToLog("memory://bucket/a", ".log", num_shards=3)
    assert sorted(in_memory.files) == [f"memory://bucket/a-0000{number}-of-00003.log" for number in range(3)]


def test_a_range_read_needs_at_most_two_extra_blocks(in_memory):
    log = random_records(2_000, 3_000)
    with cordwood.Writer(file := io.BytesIO()) as writer:
        writer.extend(log)
    in_memory.files["memory://bucket/a"] = file.getvalue()
    with beam.Pipeline() as pipeline:
        read = ReadFromLog("memory://bucket/a", desired_bundle_size=8 * BLOCK_LEN)
        assert_that(pipeline | read | beam.combiners.Count.Globally(), equal_to([len(log)]))
    range_count = -(-len(file.getvalue()) // (8 * BLOCK_LEN))
    assert range_count > 5
    # The first is for the dialect, and the second of each range compares the start.
    assert in_memory.calls.count("open") == 1 + 2 * range_count
    assert sum(size for size in in_memory.calls if size != "open") < len(file.getvalue()) + 4 * range_count * BLOCK_LEN


def test_log_numbers_are_read_from_file_names_on_any_file_system(in_memory):
    with cordwood.Writer(file := io.BytesIO(), dialect="rocksdb", log_number=7) as writer:
        writer.append(b"left over from another log")
    in_memory.files["memory://bucket/000012.log"] = file.getvalue()
    in_memory.files["memory://bucket/000007.log"] = file.getvalue()
    with beam.Pipeline() as pipeline:
        assert_that(pipeline | ReadFromLog("memory://bucket/*.log") | beam.Map(len), equal_to([26]))


def test_an_error_includes_the_file_name_on_any_file_system(in_memory):
    with cordwood.Writer(file := io.BytesIO()) as writer:
        writer.append(b"one")
    in_memory.files["memory://bucket/a"] = file.getvalue()[:-1] + b"X"
    with pytest.raises(cordwood.CorruptionError, match="memory://bucket/a: "), beam.Pipeline() as pipeline:
        _ = pipeline | ReadFromLog("memory://bucket/a")


# Splits while a range is read -------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_corruption", ["skip", "salvage"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_beam_range_tracker_can_be_split_at_any_time(dialect, on_corruption, tmp_path):
    """As `test_claims.py` does, with the whole `process` and Beam's own trackers."""
    split_count = 0
    for seed in range(20):
        rng = seeded("beam", dialect, on_corruption, seed)
        data = random_log(rng, dialect)
        path = tmp_path / "a.log"
        path.write_bytes(data)
        with cordwood.open(path, dialect=dialect, on_corruption=on_corruption) as reader:
            expected = list(reader)
        log = _Log(str(path), len(data), CompressionTypes.UNCOMPRESSED, cordwood.LogFormat(dialect), BLOCK_LEN)
        of_batch = rng.choice([_list, _arrow])
        read = _Read(of_batch, bundle_len=1, bundle_len_min=0, with_filename=False, on_corruption=on_corruption)
        restrictions = list(read.split(log, read.initial_restriction(log)))
        assert len(restrictions) == -(-len(data) // BLOCK_LEN)
        if rng.random() < 0.5:
            restrictions = [read.initial_restriction(log)]
        parts, regions = [], []
        while restrictions:
            restriction = restrictions.pop()
            tracker = ThreadsafeRestrictionTracker(read.create_tracker(restriction))
            splitting = View(rng, tracker)
            records = []
            for element in read.process(log, splitting):
                if isinstance(element, beam.pvalue.TaggedOutput):
                    regions.append(element.value[1])
                else:
                    records += element if of_batch == _list else element["record"].to_pylist()
            tracker.check_done()
            parts.append((restriction.start, records))
            split_count += len(splitting.rests)
            restrictions += splitting.rests
        assert [record for _, records in sorted(parts) for record in records] == expected
        assert merged(regions) == merged(reader.skipped)
    assert split_count > 50


class View(Splitting):
    """A tracker of Beam's, as `process` sees it."""

    def __init__(self, rng, tracker):
        super().__init__(rng, Halves(tracker), [])
        self.current_restriction = RestrictionTrackerView(tracker).current_restriction


class Halves:
    """Returns only the second half of a split."""

    def __init__(self, tracker):
        self._tracker = tracker
        self.try_claim = RestrictionTrackerView(tracker).try_claim

    def try_split(self, fraction):
        halves = self._tracker.try_split(fraction)
        return halves and halves[1]


@pytest.mark.parametrize("on_corruption", ["skip", "salvage"])
def test_a_runner_splits_ranges_while_they_are_being_read(on_corruption, tmp_path, monkeypatch):
    """Through the runner's own `split_manager`, in the environment in which Beam tests it."""
    rng = seeded("runner", on_corruption)
    path = write(tmp_path / "a.log", random_records(300, 40_000))
    data = bytearray(Path(path).read_bytes())
    for _ in range(10):
        data[rng.randrange(len(data))] ^= 4
    Path(path).write_bytes(data)
    count, total, skipped_len = summary_of([path], on_corruption)
    reached, released = threading.Event(), threading.Event()
    results = []

    class Waiting(ClaimedRange):
        """Waits after some batches until the runner has split the range."""

        def batches(self, try_claim):
            last = rng.randrange(20)
            for number, batch in enumerate(super().batches(try_claim, target_len=1)):
                yield batch
                if number == last:
                    reached.set()
                    released.wait()
            reached.set()
            released.wait()

    def split(element_count):
        reached.clear()
        released.clear()
        if element_count:
            yield
            assert reached.wait(120)
            for _ in range(rng.randrange(1, 3)):
                results.append((yield rng.choice([0.0, 0.1, 0.5, 0.8])))  # noqa: PERF401 - it yields
        released.set()

    monkeypatch.setattr(cordwood.beam, "ClaimedRange", Waiting)
    environment = EmbeddedPythonGrpcEnvironment.default()
    with fn_runner.split_manager("ReadFromLog/ReadAllFromLog/Read/ParDo(_Read)", split):
        pipeline = beam.Pipeline(runner=fn_runner.FnApiRunner(default_environment=environment))
        outputs = pipeline | ReadFromLog(path, on_corruption=on_corruption, with_damage=True)
        numbers = outputs.records | beam.Map(number_of)
        assert_that(numbers | beam.combiners.Count.Globally(), equal_to([count]), label="count")
        assert_that(numbers | beam.CombineGlobally(sum), equal_to([total]), label="sum")
        lens = outputs.damage | beam.Map(lambda found: found[1].length)
        assert_that(lens | "total" >> beam.CombineGlobally(sum), equal_to([skipped_len]), label="skipped")
        pipeline.run().wait_until_finish()
    assert count > 20
    assert skipped_len > 0
    assert sum(bool(result and result.residual_roots) for result in results) >= 3


# Beam's oracle of sources --------------------------------------------------------------------------------------------


class BlockSource(iobase.BoundedSource):
    """The loop of `ReadFromLog` as a source, which Beam has tests for."""

    def __init__(self, data, **options):
        self._data = data
        self._options = options

    @contextmanager
    def open_range(self, start, end):
        with cordwood.Reader(self._data, start=start, end=end, **self._options) as reader:
            yield reader

    def estimate_size(self):
        return len(self._data)

    def get_range_tracker(self, start_position, stop_position):
        stop = -(-len(self._data) // BLOCK_LEN) if stop_position is None else stop_position
        return OffsetRangeTracker(start_position or 0, stop)

    def split(self, desired_bundle_size, start_position=None, stop_position=None):
        whole = self.get_range_tracker(start_position, stop_position)
        for part in OffsetRange(whole.start_position(), whole.stop_position()).split(
            max(desired_bundle_size // BLOCK_LEN, 1)
        ):
            yield iobase.SourceBundle(part.size(), self, part.start, part.stop)

    def read(self, tracker):
        claimed = ClaimedRange(self.open_range, tracker.start_position(), tracker.stop_position())
        for batch, count in claimed.batches(tracker.try_claim, target_len=1):
            yield from batch[:count]


@pytest.mark.parametrize("on_corruption", ["skip", "salvage"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_reader_passes_the_beam_source_checks(dialect, on_corruption):
    tried_count = 0
    for seed in range(15):
        data = random_log(seeded("oracle", dialect, on_corruption, seed), dialect)
        source = BlockSource(data, dialect=dialect, on_corruption=on_corruption)
        if not 2 <= len(list(source.read(source.get_range_tracker(None, None)))) <= 100:
            continue  # The oracle wants two records at least, and starts another reading after each.
        tried_count += 1
        whole = (source, None, None)
        for bundle_len in (BLOCK_LEN, 3 * BLOCK_LEN, 64 << 20):
            bundles = [
                (bundle.source, bundle.start_position, bundle.stop_position) for bundle in source.split(bundle_len)
            ]
            source_test_utils.assert_sources_equal_reference_source(whole, bundles)
        source_test_utils.assert_reentrant_reads_succeed(whole)
        for fraction in (0.1, 0.5, 0.9):
            source_test_utils.assert_split_at_fraction_behavior(
                source, 0, fraction, source_test_utils.ExpectedSplitOutcome.MUST_BE_CONSISTENT_IF_SUCCEEDS
            )
    assert tried_count > 2


@pytest.mark.parametrize("damaged", [False, True])
def test_reader_passes_the_beam_split_check_at_every_fraction(damaged):
    with cordwood.Writer(file := io.BytesIO()) as writer:
        writer.extend([bytes([number]) * 12_000 for number in range(12)])
    data = bytearray(file.getvalue())
    if damaged:
        data[2 * BLOCK_LEN + 20_000] ^= 1
    source_test_utils.assert_split_at_fraction_exhaustive(BlockSource(bytes(data), on_corruption="skip"))


def written_stream(to, windows=60, steps=((1, [(2, b"one"), (2, b"two")]), (100, [(101, b"three")]))):
    """Writes records with their times, as a stream does: of the first two minutes, unless named.

    Each step is the watermark, and what comes after it.
    """
    stream = test_stream.TestStream().advance_watermark_to(0)
    for at, records in steps:
        stream = stream.advance_watermark_to(at).add_elements([TimestampedValue(record, of) for of, record in records])
    with beam.Pipeline(options=PipelineOptions(["--streaming"])) as pipeline:
        records = pipeline | stream.advance_watermark_to_infinity()
        if windows:
            records |= beam.WindowInto(FixedWindows(windows))
        _ = records | to


def records_by_name(directory):
    return {path.name: sorted(cordwood.open(path)) for path in directory.iterdir()}


BY_WINDOW = {
    "some-[0.0, 60.0)-00000-of-00001.log": [b"one", b"two"],
    "some-[60.0, 120.0)-00000-of-00001.log": [b"three"],
}


@pytest.mark.parametrize("template", [None, "-SSSSS-of-NNNNN"])
def test_each_window_of_a_stream_gets_a_unique_name(template, tmp_path):
    written_stream(WriteToLog(str(tmp_path / "some"), ".log", shard_name_template=template))
    assert records_by_name(tmp_path) == BY_WINDOW


@pytest.mark.parametrize("is_in_order", [True, False])
def test_the_records_of_three_windows_can_arrive_in_any_order(is_in_order, tmp_path):
    times = [5, 30, 65, 90, 125, 150]
    # Until the watermark has passed the first window, records of the others may come before its own.
    marks = [at - 1 for at in times] if is_in_order else range(1, 7)
    order = times if is_in_order else times[::-1]
    steps = [(mark, [(at, b"%d" % at)]) for mark, at in zip(marks, order, strict=True)]
    written_stream(WriteToLog(str(tmp_path / "some"), ".log", num_shards=1), steps=steps)
    assert records_by_name(tmp_path) == {
        "some-[0.0, 60.0)-00000-of-00001.log": [b"30", b"5"],
        "some-[60.0, 120.0)-00000-of-00001.log": [b"65", b"90"],
        "some-[120.0, 180.0)-00000-of-00001.log": [b"125", b"150"],
    }


def test_each_window_is_written_as_one_log_per_shard(tmp_path):
    written_stream(WriteToLog(str(tmp_path / "some"), ".log", num_shards=2, shard_name_template="_W_S_N"))
    logs = records_by_name(tmp_path)
    assert sorted(logs) == [
        f"some_{window}_{shard}_2.log" for window in ("[0.0, 60.0)", "[60.0, 120.0)") for shard in (0, 1)
    ]
    assert sorted(record for records in logs.values() for record in records) == [b"one", b"three", b"two"]


def test_a_stream_in_the_global_window_is_written_in_windows_of_the_given_length(tmp_path):
    written_stream(WriteToLog(str(tmp_path / "some"), ".log", triggering_frequency=60), windows=None)
    assert records_by_name(tmp_path) == BY_WINDOW


def test_a_stream_removes_only_logs_of_the_same_window(tmp_path):
    others = [f"some{middle}.log" for middle in ("-00000-of-00001", "-[0.0, 60.0)-00001-of-00002", "-[0.0, 6.0)-0")]
    for name in others:
        write(tmp_path / name, [b"old"])
    write(tmp_path / next(iter(BY_WINDOW)), [b"old"])
    written_stream(WriteToLog(str(tmp_path / "some"), ".log"))
    assert records_by_name(tmp_path) == BY_WINDOW | {name: [b"old"] for name in others}


@pytest.mark.parametrize("num_shards", [0, 3])
def test_a_new_log_of_a_window_replaces_an_old_one_of_the_same_length(num_shards, tmp_path):
    names = [f"some-[0.0, 60.0)-0000{number}-of-0000{num_shards or 1}.log" for number in range(num_shards or 1)]
    for name in names:
        write(tmp_path / name, [b"y"])
    written_stream(WriteToLog(str(tmp_path / "some"), ".log", num_shards), steps=[(1, [(2, b"x")])])
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert records_in(tmp_path) == [b"x"]


@pytest.mark.parametrize("template", ["", "-SS", "-V-SS"])
def test_a_template_that_gives_two_windows_the_same_name_is_rejected(template, tmp_path):
    """`V` names the seconds in which a window starts and ends, which two short ones share."""
    with pytest.raises(ValueError, match="shard_name_template of a stream needs a W, for the window: "):
        written_stream(WriteToLog(str(tmp_path / "some"), ".log", shard_name_template=template))
    assert not list(tmp_path.iterdir())


def test_the_windows_of_a_bounded_collection_share_their_logs(tmp_path):
    with beam.Pipeline() as pipeline:
        records = pipeline | beam.Create([(b"one", 1), (b"two", 100)]) | beam.MapTuple(TimestampedValue)
        _ = records | beam.WindowInto(FixedWindows(60)) | WriteToLog(str(tmp_path / "some"), ".log", num_shards=1)
    assert records_by_name(tmp_path) == {"some-00000-of-00001.log": [b"one", b"two"]}


@pytest.mark.cell("one-file", "beam")
@pytest.mark.parametrize(("change", "cell"), [(*param.values[::2],) for param in table(is_beam=True)])
def test_detects_a_log_that_changes_between_listing_and_reading(change, cell, tmp_path):
    path = tmp_path / "logs" / "a.log"
    path.parent.mkdir()
    write_log(path, OLD)
    [log] = found_logs(str(path))
    changed, now = getattr(Changes(), name_of(change))(path)
    reader = _Read(_list, bundle_len=1, bundle_len_min=0, with_filename=False, on_corruption="raise")

    def read():
        found = []
        for restriction in reader.split(log._replace(path=str(changed)), reader.initial_restriction(log)):
            tracker = RestrictionTrackerView(ThreadsafeRestrictionTracker(reader.create_tracker(restriction)))
            for batch in reader.process(log._replace(path=str(changed)), tracker):
                found += batch
        return found

    if cell in ERRORS:
        with pytest.raises(cordwood.LogChangedError if cell == "changed" else Exception) as raised:
            read()
        assert cell == "changed" or "No such file" in str(raised.value)
    else:
        found = read()
        # The block in which the log ended may have got more records since.
        assert len(found) >= len(OLD)
        assert found == now[: len(found)]
