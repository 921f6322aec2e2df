"""The parts of the data source of Spark that need no Spark: options, partitions, batches, files, offsets of streams."""

import json
import os
import random
import shutil
from pathlib import Path
from typing import ClassVar

import fsspec
import pyarrow
import pytest
import reference
from fsspec.implementations.memory import MemoryFileSystem
from support import PAYLOAD

import cordwood
from cordwood._spark import following, reading, writing
from cordwood._spark.options import Options, dialect_of, options_of

RECORDS = [PAYLOAD[at : at + random.Random(at).choice([0, 9, 300, 5_000, 70_000])] for at in range(400)]
KIB = 1 << 10


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.log"
    path.write_bytes(reference.encode(RECORDS))
    return path


def rows_of(options, columns=None):
    """All rows of a job, each a dictionary, and how many partitions it has."""
    schema = reading.schema_of(options)
    if columns:
        schema = pyarrow.schema(columns)
    partitions = reading.planned(options)
    tables = [list(reading.batches(splits, schema, options)) for splits in partitions]
    assert all(batch.schema.equals(schema) for table in tables for batch in table)
    return [row for table in tables for batch in table for row in batch.to_pylist()], len(partitions)


def options(*paths, **given):
    return options_of({"paths": '["' + '","'.join(map(str, paths)) + '"]', **given})


# Options ---------------------------------------------------------------------------------------


def test_options_are_passed_as_text_and_have_the_same_defaults_as_in_the_library():
    assert options("/a.log") == Options(("/a.log",), "records", None, "raise", 128 << 20, {})
    text = {"on_corruption": "skip", "partition_len": "40000", "dialect": "rocksdb", "log_number": "7"}
    assert options("/a.log", **text) == Options(
        ("/a.log",), on_corruption="skip", partition_len=40_000, log={"dialect": "rocksdb", "log_number": 7}
    )


def test_a_single_path_or_file_url_is_accepted():
    assert options_of({"path": "file:///directory/a.log"}).paths == ("/directory/a.log",)
    assert options_of({"path": "file:/directory/a.log"}).paths == ("/directory/a.log",)
    assert options_of({"path": "s3://directory/a.log"}).paths == ("s3://directory/a.log",)


def test_relative_paths_are_resolved_on_the_driver(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["logs", "logs/**/*.log", "./a.log", "logs/"]
    assert options(*names).paths == tuple(str(tmp_path / name) for name in ("logs", "logs/**/*.log", "a.log", "logs"))
    assert options_of({"path": "file:logs"}).paths == (str(tmp_path / "logs"),)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.log").write_bytes(reference.encode(RECORDS[:9]))
    given = options("logs")
    partitions = reading.planned(given)
    # A worker has a directory of its own.
    monkeypatch.chdir("/")
    tables = [list(reading.batches(splits, reading.RECORDS, given)) for splits in partitions]
    assert [row["record"] for table in tables for batch in table for row in batch.to_pylist()] == RECORDS[:9]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"oncorruption": "skip"}, "no option 'oncorruption': the options are 'table', 'decode', 'on_corruption'"),
        ({"on_corruption": "Skip"}, "on_corruption"),
        ({"on_corruption": "stop"}, "on_corruption must be one of 'raise', 'skip', 'salvage'"),
        ({"table": "damage"}, "table is 'damage': it must be one of 'records', 'skipped'"),
        ({"decode": "avro"}, "decode is 'avro'"),
        ({"partition_len": "1 GiB"}, "partition_len is '1 GiB'"),
        ({"partition_len": "100"}, "partition_len is '100': it must be at least 32768"),
        ({"dialect": "level"}, "dialect"),
        ({"log_number": "x"}, "log_number is 'x'"),
        ({"table": "skipped", "on_corruption": "skip"}, "about whole logs"),
        ({"table": "skipped", "decode": "json"}, "about whole logs"),
    ],
)
def test_error_names_the_invalid_option(given, message):
    with pytest.raises(ValueError, match=message):
        options("a.log", **given)


def test_catalog_table_error_suggests_a_temporary_view():
    """Spark passes the owner of a table that it makes, and nothing for one that it reads."""
    for given in ({"owner": "me", "path": "/logs"}, {}):
        with pytest.raises(ValueError, match=r"CREATE TEMPORARY VIEW name USING cordwood OPTIONS \(path"):
            options_of(given)


def test_a_stream_rejects_options_that_only_jobs_support():
    for given in ({"on_corruption": "salvage"}, {"table": "skipped"}, {"decode": "json"}):
        with pytest.raises(ValueError, match=r"stream|on_corruption must be"):
            options_of({"path": "logs", **given}, is_stream=True)


def test_a_stream_accepts_and_checks_its_own_options():
    given = {"path": "/logs", "maxfilespertrigger": "500", "failondataloss": "false"}
    found = options_of(given, is_stream=True)
    assert (found.max_files, found.fails_on_data_loss) == (500, False)
    found = options_of({"path": "/logs"}, is_stream=True)
    assert (found.max_files, found.fails_on_data_loss) == (None, True)
    for name, value in (("maxfilespertrigger", "0"), ("maxfilespertrigger", "all"), ("failondataloss", "no")):
        with pytest.raises(ValueError, match=f"{name} is '{value}'"):
            options_of({"path": "/logs", name: value}, is_stream=True)


def test_a_job_without_a_path_is_rejected():
    with pytest.raises(ValueError, match="need the path"):
        options_of({})


def test_a_job_rejects_dialects_that_do_not_support_appending():
    assert dialect_of({"path": "logs", "checkpointlocation": "x"}) == "leveldb"
    assert dialect_of({"dialect": "packed"}) == "packed"
    with pytest.raises(ValueError, match="dialect is 'pebble': it must be one of 'leveldb', 'packed'"):
        dialect_of({"dialect": "pebble"})


# Reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("partition_len", [32 * KIB, 256 * KIB, 64 << 20])
def test_partitions_contain_the_same_rows_regardless_of_length(path, partition_len):
    rows, count = rows_of(options(path, partition_len=str(partition_len)))
    offsets = reference.record_offsets(RECORDS)
    assert [(row["path"], row["offset"], row["record"]) for row in rows] == [
        (str(path), offset, record) for offset, record in zip(offsets, RECORDS, strict=True)
    ]
    assert count == -(-path.stat().st_size // (partition_len))


def test_many_small_files_share_a_partition(tmp_path):
    for number in range(300):
        (tmp_path / f"{number:03}.log").write_bytes(reference.encode([b"%d" % number]))
    rows, count = rows_of(options(tmp_path))
    assert [row["record"] for row in rows] == [b"%d" % number for number in range(300)]
    assert count == 1


def test_selected_columns_have_the_requested_types(path):
    columns = {"length": pyarrow.int32(), "salvaged": pyarrow.bool_(), "end_offset": pyarrow.int64()}
    rows, _ = rows_of(options(path), columns)
    assert [row["length"] for row in rows] == [len(record) for record in RECORDS]
    assert list(rows[0]) == list(columns)


def test_records_are_not_read_if_the_record_column_is_not_selected(path, monkeypatch):
    asked = []
    scan = reading.scan
    monkeypatch.setattr(reading, "scan", lambda *args, **given: asked.append(given["columns"]) or scan(*args, **given))
    rows_of(options(path), {"offset": pyarrow.int64()})
    assert asked == [["offset"]]


def test_a_value_out_of_range_for_its_column_raises_an_error(path):
    with pytest.raises(pyarrow.ArrowInvalid, match="70000"):
        rows_of(options(path), {"length": pyarrow.int16()})


def test_an_unknown_column_is_rejected():
    with pytest.raises(ValueError, match="no column 'value', only 'path', 'offset', 'record', 'end_offset'"):
        reading.check_columns(["offset", "value"], options("a.log"))
    with pytest.raises(ValueError, match="no column 'record', only 'path'"):
        reading.check_columns(["record"], options("a.log", table="skipped"))


def damaged(path):
    """Flips a bit in every fifth block."""
    data = bytearray(path.read_bytes())
    for at in range(40_000, len(data), 5 * reference.BLOCK_LEN):
        data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.cell("one-file", "spark")
@pytest.mark.parametrize("partition_len", [32 * KIB, 256 * KIB, 64 << 20])
@pytest.mark.parametrize("policy", ["skip", "salvage"])
def test_partitions_skip_the_same_damage_as_a_reader(path, partition_len, policy):
    damaged(path)
    rows, _ = rows_of(options(path, partition_len=str(partition_len), on_corruption=policy))
    with cordwood.open(path, on_corruption=policy) as reader:
        assert [row["record"] for row in rows] == list(reader)
        assert 0 < len(rows) < len(RECORDS)


@pytest.mark.parametrize("partition_len", [32 * KIB, 256 * KIB, 64 << 20])
def test_skipped_regions_table_matches_a_report(path, partition_len):
    damaged(path)
    rows, _ = rows_of(options(path, partition_len=str(partition_len), table="skipped"))
    report = cordwood.verify(path)
    by_reason = {}
    for row in rows:
        assert row["path"] == str(path)
        by_reason[row["reason"]] = by_reason.get(row["reason"], 0) + row["end_offset"] - row["offset"]
    assert by_reason == {reason.value: length for reason, length in report.len_by_reason.items()}
    assert len(rows) >= len(report.skipped) > 5
    assert {row["severity"] for row in rows} == {region.severity.value for region in report.skipped}


def test_damage_raises_an_error_by_default(path):
    damaged(path)
    with pytest.raises(OSError, match=r"some\.log.*offset"):
        rows_of(options(path))


def test_fails_if_more_regions_are_skipped_than_a_report_can_list(path, monkeypatch):
    damaged(path)
    monkeypatch.setattr(reading, "_SKIPPED_MAX", len(cordwood.verify(path).skipped))
    with pytest.raises(ValueError, match="lower partition_len"):
        rows_of(options(path, table="skipped"))


def test_a_numbered_log_is_read_as_a_single_partition(tmp_path):
    path = tmp_path / "000007.log"
    with cordwood.open(path, "w", dialect="rocksdb", log_number=7) as writer:
        writer.extend(RECORDS)
    rows, count = rows_of(options(path, partition_len="32768"))
    assert ([row["record"] for row in rows], count) == (RECORDS, 1)


@pytest.mark.parametrize("name", ["log", "log/*.log", "**/*.log"])
def test_a_segmented_log_is_read_as_one_table(name, tmp_path):
    with cordwood.open(tmp_path / "log", "a", segment_len=300_000) as writer:
        writer.extend(RECORDS)
    rows, _ = rows_of(options(tmp_path / name, partition_len="65536"))
    assert [row["record"] for row in rows] == RECORDS
    assert {row["path"] for row in rows} == {str(tmp_path / "log")}


def test_reading_an_empty_list_of_partitions_returns_no_rows():
    assert list(reading.batches([], reading.RECORDS, options("a.log"))) == []


class Locked(MemoryFileSystem):
    """A store in memory that needs a key."""

    protocol = "locked"
    store: ClassVar = {}

    def __init__(self, *args, key=None, **options):
        if key != "right":
            raise PermissionError("the key is wrong")
        super().__init__(*args, **options)

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("locked://", "memory://"))


def test_storage_options_are_passed_to_the_driver_and_the_workers(path, monkeypatch):
    fsspec.register_implementation("locked", Locked, clobber=True)
    monkeypatch.setitem(fsspec.config.conf, "locked", {"other": 1})
    fsspec.filesystem("locked", key="right").pipe_file("/logs/a.log", path.read_bytes())
    given = {"partition_len": "65536", "storage_options": '{"key": "right"}'}
    rows, count = rows_of(options("locked://logs/", **given))
    assert ([row["record"] for row in rows], count > 1) == (RECORDS, True)
    for table in ({"table": "skipped"}, {"decode": "raw"}):
        assert len(rows_of(options("locked://logs/a.log", **given, **table))[0]) == (0 if "table" in table else 400)
    # Not in a later job of the same worker.
    assert fsspec.config.conf["locked"] == {"other": 1}
    with pytest.raises(OSError, match="Permission denied"):
        rows_of(options("locked://logs/a.log"))


@pytest.mark.parametrize("text", ["key=right", '["right"]', "1"])
def test_storage_options_must_be_given_as_a_json_object(text):
    with pytest.raises(ValueError, match="storage_options is"):
        options("s3://logs", storage_options=text)


# Decoding --------------------------------------------------------------------------------------


def test_every_json_partition_contains_the_columns_of_all_logs(tmp_path):
    lines = [b'{"n": %d, "text": "x%d", "in": {"deep": [%d.5]}}' % (n, n, n) for n in range(3_000)]
    for number in range(2):
        with cordwood.open(tmp_path / f"{number}.log", "w") as writer:
            writer.extend([*lines[number::2], *([b'{"late": true}'] if number else [])])
    given = options(tmp_path, decode="json", partition_len="32768")
    schema = reading.schema_of(given)
    rows, count = rows_of(given)
    assert count > 4
    assert schema.names == ["__file__", "n", "text", "in", "late"]
    assert sorted(row["n"] for row in rows if not row["late"]) == list(range(3_000))
    assert [row["__file__"] for row in rows if row["late"]] == [str(tmp_path / "1.log")] or rows
    assert next(row for row in rows if row["n"] == 7)["in"] == {"deep": [7.5]}


def test_a_schema_selects_the_json_columns(tmp_path):
    with cordwood.open(tmp_path / "a.log", "w") as writer:
        writer.extend([b'{"n": 1, "text": "one"}', b'{"n": 2}'])
    given = options(tmp_path / "a.log", decode="json")
    rows, _ = rows_of(given, {"text": pyarrow.string(), "none": pyarrow.int64()})
    assert rows == [{"text": "one", "none": None}, {"text": None, "none": None}]


def test_write_batch_columns_have_spark_types(tmp_path):
    plyvel = pytest.importorskip("plyvel")
    with plyvel.DB(str(tmp_path / "db"), create_if_missing=True) as database:
        for number in range(100):
            database.put(b"key %d" % number, b"value")
        shutil.copytree(tmp_path / "db", tmp_path / "copy")
    given = options(tmp_path / "copy" / "*.log", decode="write-batch")
    schema = reading.schema_of(given)
    assert not any(pyarrow.types.is_uint64(data_type) for data_type in schema.types)
    rows, _ = rows_of(given)
    assert [row["key"] for row in rows] == [b"key %d" % number for number in range(100)]


def test_logs_with_dependent_records_are_not_split(tmp_path):
    with cordwood.open(tmp_path / "run-1.wandb", "w", dialect="wandb") as writer:
        writer.extend([b""] * 10_000)
    assert len(reading.planned(options(tmp_path, partition_len="32768"))) == 3
    assert len(reading.planned(options(tmp_path, partition_len="32768", decode="wandb-history"))) == 1


def test_a_table_lists_the_records_that_are_not_json(tmp_path):
    lines = [b'{"n": %d}' % number if number % 7 else b"{%d" % number for number in range(3_000)]
    paths = [tmp_path / f"{number}.log" for number in range(2)]
    for path in paths:
        path.write_bytes(reference.encode(lines))
    given = options(tmp_path, decode="json", table="left_out", partition_len="32768")
    rows, count = rows_of(given)
    assert count > 1
    offsets = [offset for offset, line in zip(reference.record_offsets(lines), lines, strict=True) if line[:2] != b'{"']
    assert [(row["path"], row["offset"]) for row in rows] == [(str(path), at) for path in paths for at in offsets]
    assert all("JSON" in row["error"] for row in rows)
    kept, _ = rows_of(options(tmp_path, decode="json", on_corruption="skip"))
    assert len(kept) + len(rows) == 2 * len(lines)


def test_the_table_of_omitted_records_requires_decoding():
    with pytest.raises(ValueError, match="left_out"):
        options("a.log", table="left_out")


def test_fails_if_more_records_are_omitted_than_a_scan_can_list(tmp_path):
    (tmp_path / "a.log").write_bytes(reference.encode([b"no json"] * 1_000))
    with pytest.raises(ValueError, match="lower partition_len"):
        rows_of(options(tmp_path, decode="json", table="left_out"))


# Writing ---------------------------------------------------------------------------------------


def batches_of(*records):
    for record in records:
        yield pyarrow.record_batch({"record": pyarrow.array([record], pyarrow.binary())})


def job(directory, name="one"):
    return writing.job_of((str(directory),), name, "leveldb")


def records_in(directory):
    return sorted(record for split in cordwood.plan_splits(directory, 1 << 30) for record in cordwood.open(split))


def hidden(directory):
    return [path.name for path in directory.parent.iterdir() if path.name.startswith(".")]


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "table"


def test_records_are_not_visible_until_the_job_commits(directory):
    first = job(directory)
    parts = [first.write(0, 10, batches_of(b"one", b"two")), first.write(1, 11, batches_of(b"three"))]
    assert parts == [("00000-10.log", 2), ("00001-11.log", 1)]
    assert not directory.exists()
    first.commit(parts)
    assert records_in(directory) == [b"one", b"three", b"two"]
    assert hidden(directory) == []


def test_a_second_job_appends_its_records(directory):
    for name in ("one", "two"):
        job(directory, name).commit([job(directory, name).write(0, 0, batches_of(name.encode()))])
    assert records_in(directory) == [b"one", b"two"]


def test_overwriting_a_linked_target_preserves_the_link(directory, tmp_path):
    directory.symlink_to(tmp_path / "disk" / "table")
    (tmp_path / "disk").mkdir()
    for name, is_overwritten, expected in [("one", False, 1), ("two", False, 2), ("three", True, 1)]:
        job(directory, name).commit(
            [job(directory, name).write(0, 0, batches_of(b"a record"))], overwrite=is_overwritten
        )
        assert records_in(directory) == [b"a record"] * expected
    assert directory.is_symlink()
    assert hidden(directory) == []
    assert hidden(tmp_path / "disk" / "table") == []


def test_attempts_discarded_by_spark_leave_no_records(directory):
    first = job(directory)
    lost = first.write(0, 1, batches_of(b"one"))
    kept = first.write(0, 2, batches_of(b"one"))
    first.commit([kept])
    assert lost != kept
    assert records_in(directory) == [b"one"]
    assert hidden(directory) == []


def test_a_late_attempt_does_not_add_records_to_a_committed_job(directory):
    def slow():
        yield from batches_of(b"late")
        first.commit([kept])

    first = job(directory)
    kept = first.write(0, 1, batches_of(b"one"))
    first.write(0, 2, slow())
    assert records_in(directory) == [b"one"]


def test_a_failed_attempt_leaves_no_files(directory):
    def failing():
        yield from batches_of(b"one")
        raise RuntimeError("no more")

    first = job(directory)
    with pytest.raises(RuntimeError, match="no more"):
        first.write(0, 1, failing())
    assert [path.name for path in Path(directory.parent).rglob("*.log")] == []
    with pytest.raises(ValueError, match="index 0 of the column is null"):
        first.write(0, 1, batches_of(None))


def test_an_aborted_job_leaves_no_files(directory):
    first = job(directory)
    first.write(0, 1, batches_of(b"one"))
    first.abort()
    assert list(directory.parent.iterdir()) == []
    first.abort()


def test_a_job_without_records_adds_no_logs(directory):
    first = job(directory)
    first.commit([first.write(0, 1, batches_of())])
    assert list(directory.iterdir()) == []
    assert hidden(directory) == []


def test_committing_a_job_again_has_no_effect(directory):
    """As when a query of a stream ends between the commit and the note of Spark that it happened."""
    for records in ([b"one", b"two"], [b"one"]):
        repeated = job(directory, "query-000000001")
        repeated.commit([repeated.write(0, 1, batches_of(*records))])
    assert records_in(directory) == [b"one", b"two"]
    assert hidden(directory) == []


def test_repeating_an_interrupted_commit_completes_it(directory, monkeypatch):
    def interrupted(source, target):
        if target.endswith("00001.log"):
            raise OSError("interrupted")
        rename(source, target)

    first, rename = job(directory), writing.os.rename
    parts = [first.write(number, number, batches_of(b"%d" % number)) for number in range(3)]
    with monkeypatch.context() as patch:
        patch.setattr(writing.os, "rename", interrupted)
        with pytest.raises(OSError, match="interrupted"):
            first.commit(parts)
    assert not directory.exists()
    again = [first.write(number, number + 10, batches_of(b"%d" % number)) for number in range(3)]
    first.commit(again)
    assert records_in(directory) == [b"0", b"1", b"2"]
    assert hidden(directory) == []


def test_a_commit_with_a_missing_log_fails_without_adding_records(directory):
    first = job(directory)
    part = first.write(0, 1, batches_of(b"one"))
    with pytest.raises(FileNotFoundError):
        first.commit([part, writing.Part("00001-2.log", 1)])
    assert not directory.exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_commit_syncs_its_directories(directory, monkeypatch, overwrite):
    first, synced = job(directory), []
    part = first.write(0, 1, batches_of(b"one"))
    # A directory keeps its identity when it is renamed.
    monkeypatch.setattr(writing, "sync_names", lambda path: synced.append(Path(path).stat().st_ino))
    first.commit([part], overwrite=overwrite)
    assert {path.stat().st_ino for path in (directory / "part-one", directory, directory.parent)} <= set(synced)


def test_overwriting_replaces_the_logs_of_earlier_jobs(directory):
    for name in ("one", "two", "three"):
        one = job(directory, name)
        one.commit([one.write(0, 0, batches_of(name.encode()))], overwrite=name == "three")
    assert records_in(directory) == [b"three"]
    assert hidden(directory) == []


def test_refuses_to_overwrite_a_directory_containing_other_files(directory):
    directory.mkdir()
    (directory / "mine.log").write_bytes(b"")
    with pytest.raises(FileExistsError, match=r"contains mine\.log"):
        job(directory).check_replaceable()
    with pytest.raises(FileExistsError, match=r"contains mine\.log"):
        job(directory).commit([], overwrite=True)
    assert (directory / "mine.log").exists()


@pytest.mark.parametrize("name", ["part-00000.parquet", "part-two/mine.txt"])
def test_refuses_to_overwrite_other_files_whose_names_resemble_those_of_logs(directory, name):
    """The files of Spark's own formats are named `part-...`, too."""
    (directory / name).parent.mkdir(parents=True)
    (directory / name).write_bytes(b"mine")
    with pytest.raises(FileExistsError, match="contains part-"):
        job(directory).commit([], overwrite=True)
    assert (directory / name).read_bytes() == b"mine"


def test_old_logs_are_restored_if_the_new_logs_cannot_be_moved(directory, monkeypatch):
    def refused(source, target):
        if source.endswith(".new"):
            raise OSError("refused")
        rename(source, target)

    first, second, rename = job(directory), job(directory, "two"), writing.os.rename
    first.commit([first.write(0, 0, batches_of(b"old"))])
    part = second.write(0, 0, batches_of(b"new"))
    monkeypatch.setattr(writing.os, "rename", refused)
    with pytest.raises(OSError, match="refused"):
        second.commit([part], overwrite=True)
    second.abort()
    assert records_in(directory) == [b"old"]
    assert hidden(directory) == []


def test_target_cannot_be_a_file_or_a_segmented_log(tmp_path):
    (tmp_path / "a.log").write_bytes(reference.encode([b"one"]))
    with pytest.raises(ValueError, match="is not a directory"):
        job(tmp_path / "a.log")
    with cordwood.open(tmp_path / "log", "a", segment_len=100_000) as writer:
        writer.append(b"one")
    with pytest.raises(ValueError, match="is a segmented log"):
        job(tmp_path / "log")


def test_target_must_be_a_single_local_directory():
    for paths in (("s3://bucket/logs",), ("a", "b")):
        with pytest.raises(ValueError, match="written to one directory"):
            writing.job_of(paths, "one", "leveldb")


def test_options_added_by_spark_are_ignored():
    own = {"path": "out", "checkpointlocation": "checkpoint", "queryname": "copy"}
    assert dialect_of({**own, "dialect": "packed"}) == "packed"


# Streams ---------------------------------------------------------------------------------------


def stream_of(directory, **given):
    return options_of({"path": str(directory), **given}, is_stream=True)


def read_batch(given, start, left=None):
    """The records of the next batch, and the offsets after it."""
    end = following.ends_of(given, start, left)
    partitions = following.planned_between(given, start, end)
    found = [
        row["record"]
        for splits in partitions
        for batch in reading.batches(splits, reading.RECORDS, given)
        for row in batch.to_pylist()
    ]
    return found, end


def offsets(positions):
    return {path: cordwood.Position(text).offset for path, text in positions.items()}


@pytest.mark.cell("one-file packed numbered", "spark")
@pytest.mark.parametrize("options", [{}, {"dialect": "packed"}, {"dialect": "rocksdb", "log_number": 7}])
def test_a_log_that_grows_byte_by_byte_is_read_exactly_once(tmp_path, options):
    whole, path = tmp_path / "whole", tmp_path / "logs" / "000007.log"
    path.parent.mkdir()
    with cordwood.open(whole, "w", **options) as writer:
        writer.extend(RECORDS[:60])
    data, step = whole.read_bytes(), random.Random(1)
    given = stream_of(path.parent, partition_len="65536")
    found, start, at = [], {}, 0
    while at < len(data):
        at += step.choice([1, 7, 1_000, 30_000, 100_000])
        path.write_bytes(data[:at])
        records, start = read_batch(given, start)
        found += records
    assert found == RECORDS[:60]


@pytest.mark.parametrize("given", [{"dialect": "auto"}, {"log_number": "7"}, {"dialect": "rocksdb", "log_number": "7"}])
def test_a_numbered_log_is_not_split_in_a_stream(tmp_path, given):
    path = tmp_path / "000007.log"
    with cordwood.open(path, "w", dialect="rocksdb", log_number=7) as writer:
        writer.extend(RECORDS[:60])
    options, end = stream_of(tmp_path, partition_len="32768", **given), {str(path): f"1:{path.stat().st_size}::"}
    [[split]] = following.planned_between(options, {}, end)
    assert (split.start, split.end, split.log_number) == (0, path.stat().st_size, 7)
    records, end = read_batch(options, {})
    assert (records, offsets(end)) == (RECORDS[:60], {str(path): path.stat().st_size})


def test_a_follower_waits_for_the_rest_of_a_torn_record(tmp_path):
    path, data = tmp_path / "a.log", reference.encode([b"one", b"two"])
    path.write_bytes(data[:-1])
    given = stream_of(tmp_path)
    records, start = read_batch(given, {})
    assert (records, offsets(start)) == ([b"one"], {str(path): 10})
    assert read_batch(given, start) == ([], start)
    path.write_bytes(data)
    records, start = read_batch(given, start)
    assert (records, offsets(start)) == ([b"two"], {str(path): 20})


def test_new_logs_are_read_from_the_start_and_other_files_are_ignored(tmp_path):
    given, start = stream_of(tmp_path), {}
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "notes.txt").write_bytes(b"no log\n" * 10_000)
    for number in range(5):
        (tmp_path / f"{number}.log").write_bytes(reference.encode([b"%d" % number]))
        records, start = read_batch(given, start)
        assert records == [b"%d" % number]
    assert sorted(start) == [str(tmp_path / f"{number}.log") for number in range(5)]


@pytest.mark.parametrize("start", [b"PK\3\4", b"no log\n"])
def test_streaming_a_named_file_that_is_not_a_log_raises_an_error(tmp_path, start):
    (tmp_path / "file").write_bytes(start + b"no log\n" * 10_000)
    with pytest.raises(cordwood.CordwoodError, match=r"(?i)not a log|checksum|damage|length"):
        read_batch(stream_of(tmp_path / "file"), {})


def test_damage_at_the_end_of_a_log_raises_an_error(tmp_path):
    data = bytearray(reference.encode([b"one", PAYLOAD[:20_000]]))
    data[12_000] ^= 1
    (tmp_path / "a.log").write_bytes(data)
    with pytest.raises(cordwood.CorruptionError):
        read_batch(stream_of(tmp_path), {})


def test_a_truncated_or_replaced_log_raises_an_error(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(reference.encode([b"one", b"two"]))
    given = stream_of(tmp_path)
    _, start = read_batch(given, {})
    path.write_bytes(reference.encode([b"one"]))
    with pytest.raises(cordwood.LogTruncatedError):
        read_batch(given, start)


def test_a_stream_remembers_the_offset_of_a_removed_log(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(reference.encode([b"one"]))
    (tmp_path / "b.log").write_bytes(reference.encode([b"two"]))
    given = stream_of(tmp_path)
    _, start = read_batch(given, {})
    path.unlink()
    assert read_batch(given, start) == ([], start)


@pytest.mark.cell("segmented", "spark")
def test_a_stream_follows_a_segmented_log_across_segments(tmp_path):
    given, start, found = stream_of(tmp_path / "log"), {}, []
    with cordwood.open(tmp_path / "log", "a", segment_len=100_000) as writer:
        for at in range(0, 100, 10):
            writer.extend(RECORDS[at : at + 10])
            if at == 50:
                writer.prune_before(offsets(start)[str(tmp_path / "log")])
            records, start = read_batch(given, start)
            found += records
    assert found == RECORDS[:100]


def test_damage_ends_a_stream_unless_it_is_skipped(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(reference.encode(RECORDS[:50]))
    damaged(path)
    with pytest.raises(cordwood.CorruptionError):
        read_batch(stream_of(tmp_path), {})
    given = stream_of(tmp_path, on_corruption="skip", partition_len="65536")
    records, start = read_batch(given, {})
    assert records == list(cordwood.open(path, on_corruption="skip"))
    assert read_batch(given, start)[0] == []


def test_streams_cannot_follow_a_url():
    with pytest.raises(ValueError, match="is a URL"):
        following.ends_of(stream_of("memory://logs/a.log"), {})


def test_different_spellings_of_a_path_refer_to_the_same_log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    Path("logs/a.log").write_bytes(reference.encode([b"one", b"two"]))
    found, start = read_batch(stream_of(tmp_path / "logs"), {})
    assert found == [b"one", b"two"]
    assert read_batch(stream_of("logs"), start)[0] == []


def test_replacing_a_log_with_a_longer_log_raises_an_error(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(reference.encode([b"old"] * 10))
    given = stream_of(tmp_path)
    _, start = read_batch(given, {})
    path.unlink()
    path.write_bytes(reference.encode([b"new"] * 30))
    with pytest.raises(cordwood.CordwoodError):
        read_batch(given, start)


@pytest.mark.cell("segmented", "spark")
def test_a_stream_delivers_records_written_after_a_truncated_torn_record(tmp_path):
    directory, records = tmp_path / "log", [b"%03d" % number * 300 for number in range(100)]
    directory.mkdir()
    first = reference.encode([b"a" * 100])
    (directory / f"{0:020}.log").write_bytes(first)
    newest = directory / f"{len(first):020}.log"
    whole = reference.encode([b"whole"])
    newest.write_bytes((whole + reference.encode([b"b" * 100_000], len(whole)))[:20_000])
    given = stream_of(directory, on_corruption="skip")
    found, start = read_batch(given, {})
    assert found == [b"a" * 100, b"whole"]
    newest.write_bytes(whole + reference.encode(records, len(whole)))
    assert read_batch(given, start)[0] == records


# Batches of a few logs -------------------------------------------------------------------------


def make_logs(directory, count):
    directory.mkdir(exist_ok=True)
    for number in range(count):
        (directory / f"{number:05}.log").write_bytes(reference.encode([b"%d" % number]))


def test_a_batch_limits_the_number_of_logs_without_skipping_any_log(tmp_path):
    make_logs(tmp_path / "logs", 23)
    given, start, found, count = stream_of(tmp_path / "logs", maxfilespertrigger="5"), {}, [], 0
    while True:
        records, end = read_batch(given, start)
        if end == start:
            break
        assert len(records) <= 5
        found, start, count = found + records, end, count + 1
    assert (sorted(found, key=int), count) == ([b"%d" % number for number in range(23)], 5)


def test_a_limited_batch_reads_the_longest_waiting_logs_first(tmp_path):
    make_logs(tmp_path, 3)
    for number, time in ((0, 300), (1, 100), (2, 200)):
        os.utime(tmp_path / f"{number:05}.log", (time, time))
    given, start, found = stream_of(tmp_path, maxfilespertrigger="1"), {}, []
    for _ in range(3):
        records, start = read_batch(given, start)
        found += records
    assert found == [b"1", b"2", b"0"]


def test_logs_without_new_records_do_not_count_toward_the_batch_limit(tmp_path):
    make_logs(tmp_path, 10)
    given = stream_of(tmp_path, maxfilespertrigger="3")
    _, start = read_batch(stream_of(tmp_path), {})
    late = tmp_path / "late.log"
    late.write_bytes(reference.encode([b"late"]))
    os.utime(late, (2**33, 2**33))
    assert read_batch(given, start)[0] == [b"late"]


@pytest.mark.parametrize("limit", [{}, {"maxfilespertrigger": "4"}])
def test_available_now_trigger_delivers_all_records_and_ends_the_query(tmp_path, limit):
    """Also if each log grows forever, and new logs come."""
    make_logs(tmp_path / "logs", 10)
    given, start, found = stream_of(tmp_path / "logs", **limit), {}, []
    left = following.paths_of_logs(given)
    for batch in range(100):
        records, end = read_batch(given, start, left)
        if end == start:
            break
        found, start = found + records, end
        for path in list((tmp_path / "logs").iterdir()):
            with cordwood.open(path, "a") as writer:
                writer.append(b"more")
        (tmp_path / "logs" / f"new {batch}.log").write_bytes(reference.encode([b"new"]))
    assert sorted((record for record in found if record != b"more"), key=int) == [
        b"%d" % number for number in range(10)
    ]


def test_the_offset_of_a_removed_log_is_dropped_after_two_batches(tmp_path):
    make_logs(tmp_path, 3)
    given = stream_of(tmp_path)
    _, start = read_batch(given, {})
    gone = tmp_path / "00001.log"
    gone.unlink()
    # A batch without a record is none.
    assert read_batch(given, start) == ([], start)
    lens = []
    for number in range(2):
        (tmp_path / f"new {number}.log").write_bytes(reference.encode([b"new"]))
        records, start = read_batch(given, start)
        assert records == [b"new"]
        lens.append(len(start))
    assert (lens, str(gone) in start) == ([4, 4], False)


def test_a_log_that_reappears_within_two_batches_is_read_from_its_previous_offset(tmp_path):
    make_logs(tmp_path, 2)
    given = stream_of(tmp_path)
    _, start = read_batch(given, {})
    path = tmp_path / "00001.log"
    data = path.read_bytes()
    path.unlink()
    (tmp_path / "new.log").write_bytes(reference.encode([b"new"]))
    records, start = read_batch(given, start)
    assert records == [b"new"]
    path.write_bytes(data)
    assert read_batch(given, start)[0] == []
    path.write_bytes(data + reference.encode([b"more"], len(data)))
    records, start = read_batch(given, start)
    assert records == [b"more"]
    assert all(cordwood.Position(text) for text in start.values())
    # Another log of that name is none that comes back.
    path.unlink()
    (tmp_path / "newer.log").write_bytes(reference.encode([b"newer"]))
    _, start = read_batch(given, start)
    path.write_bytes(reference.encode([b"other"] * 30))
    with pytest.raises(cordwood.LogChangedError):
        read_batch(given, start)


def test_stream_offsets_remain_short_as_logs_are_added_and_removed(tmp_path):
    given, start = stream_of(tmp_path), {}
    for number in range(30):
        path = tmp_path / f"{number}.log"
        path.write_bytes(reference.encode([b"%d" % number] * 1_000))
        records, start = read_batch(given, start)
        assert len(records) == 1_000
        assert len(start) <= 3
        assert all(len(json.dumps({name: text})) <= 200 + len(name) for name, text in start.items())
        path.unlink()


def test_a_replaced_log_is_read_from_the_start_if_data_loss_is_allowed(tmp_path):
    path, given = tmp_path / "a.log", stream_of(tmp_path, failondataloss="false")
    path.write_bytes(reference.encode([b"old"] * 10))
    _, start = read_batch(given, {})
    path.unlink()
    path.write_bytes(reference.encode([b"new"] * 30))
    found = []
    for _ in range(2):
        records, start = read_batch(given, start)
        found += records
    assert found == [b"new"] * 30
    path.write_bytes(reference.encode([b"newest"]))
    found = []
    for _ in range(2):
        records, start = read_batch(given, start)
        found += records
    assert found == [b"newest"]

    given = stream_of(tmp_path / "log", failondataloss="false")
    with cordwood.open(tmp_path / "log", "a", segment_len=100_000) as writer:
        writer.extend(RECORDS[:10])
        _, start = read_batch(given, {})
        for at in range(10, 60, 10):
            writer.extend(RECORDS[at : at + 10])
        first_offset = writer.prune_before(writer.tell())
    with pytest.raises(cordwood.LogTruncatedError):
        read_batch(stream_of(tmp_path / "log"), start)
    found = []
    for _ in range(2):
        records, start = read_batch(given, start)
        found += records
    assert 0 < len(found) < 50
    assert found == list(cordwood.open(tmp_path / "log", start=first_offset))
