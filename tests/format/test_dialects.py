"""Logs of RocksDB, W&B, SwanLab and Pebble: written by them and read by cordwood, and the other way round."""

import contextlib
import io
import itertools
import os
import random
import re
import shutil
import struct
import time
import zlib
from pathlib import Path

import pytest
from compat_logs import SWANLAB, lengths
from real_engines import offline_run, scan_wandb, the_log_of
from real_files import VECTORS, corpus, vectors
from rocksdict import Options, Rdict
from support import PAYLOAD
from swanlab.sdk.internal.core_python.store import DataStoreReader, DataStoreWriter
from wandb.sdk.internal.datastore import DataStore
from write_batch import PUT, parse_write_batch, write_batch

import cordwood

# Lengths around those at which a record is split, and one of many blocks.
LENGTHS = [*range(30), *range(1_000, 70_000, 9_000), 200_000, *range(32_720, 32_770), *range(50)]
RECORDS = [PAYLOAD[index : index + length] for index, length in enumerate(LENGTHS)]


def key_of(index):
    return b"key-%06d" % index


# RocksDB ---------------------------------------------------------------------------------------


def options_of_rocksdb(**options):
    made = Options(raw_mode=True)
    made.create_if_missing(True)
    made.set_write_buffer_size(64 << 20)
    for name, value in options.items():
        getattr(made, f"set_{name}")(value)
    return made


def put_all(database, values):
    for index, value in enumerate(values):
        database.put(key_of(index), value)
    database.flush_wal(True)


def puts_in(records):
    """The keys and values of RocksDB's batches, each with one put."""
    batches = [parse_write_batch(record) for record in records]
    assert all(len(operations) == 1 and operations[0][0] == PUT for _, operations in batches)
    return [operations[0][1:] for _, operations in batches]


def expected_puts(values):
    return [(key_of(index), value) for index, value in enumerate(values)]


def test_a_plain_rocksdb_log_is_read_as_leveldb(tmp_path):
    database = Rdict(str(tmp_path / "db"), options_of_rocksdb())
    put_all(database, RECORDS)
    log = shutil.copy(the_log_of(tmp_path / "db"), tmp_path)
    database.close()
    with cordwood.open(log) as reader:
        # Without recycling and compression, it has the bytes that LevelDB writes.
        assert reader.dialect == "leveldb"
        assert puts_in(reader) == expected_puts(RECORDS)
        assert (reader.skipped, reader.outcome.kind) == ((), "clean")


def test_a_recycled_rocksdb_log_ends_before_its_old_tail(tmp_path):
    """The file once contained a longer log, whose remains are reported separately and are not damage."""
    database = Rdict(str(tmp_path / "db"), options_of_rocksdb(recycle_log_file_num=2))
    for _ in range(4):
        put_all(database, RECORDS)
        database.flush()
    values = RECORDS[:60]
    put_all(database, values)
    log = the_log_of(tmp_path / "db")
    copy = shutil.copy(log, tmp_path)
    database.close()
    with cordwood.open(copy) as reader:
        assert puts_in(reader) == expected_puts(values)
        assert (reader.dialect, reader.log_number) == ("recyclable", int(log.stem))
        [*_, stale] = reader.skipped
        assert (stale.reason, stale.severity, stale.end_offset) == ("stale", "info", Path(copy).stat().st_size)
        assert reader.outcome.kind == "clean"
    # Under another name, the first fragment's number identifies the log.
    renamed = shutil.copy(copy, tmp_path / "renamed")
    assert puts_in(cordwood.open(renamed)) == expected_puts(values)
    # With the older log's number, no fragment of this one is accepted.
    older = int(log.stem) - 1
    with cordwood.open(renamed, dialect="rocksdb", log_number=older, on_corruption="skip") as reader:
        assert not any(record in map(bytes, reader) for record in RECORDS[:1] if record)


def test_decompresses_a_rocksdb_log(tmp_path):
    directory = tmp_path / "db"
    Rdict(str(directory), options_of_rocksdb()).close()
    # rocksdict has no setter for this option, but its options file has a line for it.
    for path in directory.glob("OPTIONS-*"):
        path.write_text(re.sub("wal_compression=.*", "wal_compression=kZSTD", path.read_text()))
    database = Rdict(str(directory), *Options.load_latest(str(directory)))
    for index, value in enumerate(RECORDS):
        database[key_of(index)] = value + bytes(1000)
    database.flush_wal(True)
    log = shutil.copy(the_log_of(directory), tmp_path)
    database.close()
    with cordwood.open(log) as reader:
        found = puts_in(reader)
        assert (reader.dialect, reader.compression, reader.outcome.kind) == ("rocksdb", "zstd", "clean")
        assert [region.reason for region in reader.skipped] == ["metadata"]
        # The record that says how all others are compressed is read again first.
        reader.seek(0)
        assert puts_in(reader) == found
        assert {region.reason for region in reader.skipped} == {"metadata"}
    assert found == [(key, value + bytes(1000)) for key, value in expected_puts(RECORDS)]


@pytest.mark.parametrize("kind", ["plain", "recyclable", "zstd"])
def test_rocksdb_opens_a_log_written_by_cordwood(tmp_path, kind):
    directory = tmp_path / "db"
    Rdict(str(directory), options_of_rocksdb()).close()
    log = the_log_of(directory)
    options = {
        "plain": {"dialect": "leveldb"},
        "recyclable": {"dialect": "rocksdb", "log_number": int(log.stem)},
        "zstd": {"dialect": "rocksdb", "compression": "zstd"},
    }[kind]
    with cordwood.open(log, "w", **options) as writer:
        for index, value in enumerate(RECORDS):
            writer.append(write_batch(index + 1, [(PUT, key_of(index), value)]))
    database = Rdict(str(directory), options_of_rocksdb())
    found = [database.get(key_of(index)) for index in range(len(RECORDS))]
    count = len(list(database.keys()))
    database.close()
    assert found == RECORDS
    assert count == len(RECORDS)


def test_a_rocksdb_manifest_is_read_as_leveldb(tmp_path):
    Rdict(str(tmp_path / "db"), options_of_rocksdb()).close()
    [manifest] = (tmp_path / "db").glob("MANIFEST-*")
    with cordwood.open(manifest) as reader:
        assert len(list(reader)) > 1
        assert (reader.dialect, reader.skipped) == ("leveldb", ())


# W&B -------------------------------------------------------------------------------------------


def test_reads_a_file_written_by_wandb(tmp_path):
    path = tmp_path / "run.wandb"
    store = DataStore()
    store.open_for_write(str(path))
    for record in RECORDS:
        store._write_data(record)  # noqa: SLF001 - `write` takes only protobufs
    store.close()
    with cordwood.open(path) as reader:
        assert reader.dialect == "wandb"
        assert list(reader) == RECORDS
        assert [region.reason for region in reader.skipped] == ["file_header"]
        assert reader.outcome.kind == "clean"
    # Byte for byte, from a path and from an object.
    for sink in [tmp_path / "copy.wandb", io.BytesIO()]:
        with cordwood.open(sink, "x", dialect="wandb") as writer:
            writer.extend(RECORDS)
        written = sink.getvalue() if isinstance(sink, io.BytesIO) else sink.read_bytes()
        assert written == path.read_bytes()
    assert scan_wandb(tmp_path / "copy.wandb") == RECORDS


def test_appending_continues_a_run_file_that_wandb_would_truncate(tmp_path):
    path = tmp_path / "run.wandb"
    with cordwood.open(path, "x", dialect="wandb") as writer:
        writer.append(b"one")
    path.write_bytes(path.read_bytes() + b"torn")
    for records in [[b"two"], [b"three", PAYLOAD[:100_000]]]:
        with cordwood.open(path, "a", dialect="wandb", on_torn_tail="truncate") as writer:
            writer.extend(records)
    assert scan_wandb(path) == [b"one", b"two", b"three", PAYLOAD[:100_000]]


RUN = """
import wandb
run = wandb.init(project="test", settings=wandb.Settings(console="off"))
for step in range(20):
    run.log({"loss": 1 / (step + 1)})
run.finish()
"""


def test_reads_an_offline_wandb_run(tmp_path):
    path = offline_run(tmp_path, RUN)
    with cordwood.open(path) as reader:
        records = list(reader)
        assert (reader.dialect, reader.outcome.kind) == ("wandb", "clean")
    assert records == scan_wandb(path)
    assert len(records) > 20


# SwanLab ---------------------------------------------------------------------------------------


SWANLAB_LENGTHS = {"mixed": [len(record) for record in RECORDS]} | lengths(SWANLAB)


@pytest.mark.parametrize("name", SWANLAB_LENGTHS)
def test_reads_a_file_written_by_swanlab(name, tmp_path):
    records = [bytes([index % 256]) * length for index, length in enumerate(SWANLAB_LENGTHS[name])]
    path = tmp_path / "run.swanlab"
    store = DataStoreWriter()
    store.open(path)
    for record in records:
        store.write(record)
    store.close()
    with cordwood.open(path) as reader:
        assert reader.dialect == "swanlab"
        assert list(reader) == records
    with cordwood.open(tmp_path / "copy", "x", dialect="swanlab") as writer:
        writer.extend(records)
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()
    if not re.fullmatch("left_[1-6]_at_end", name):  # In those, SwanLab's reader takes the missing trailer for damage.
        store = DataStoreReader()
        store.open(tmp_path / "copy")
        assert list(iter(store.scan, None)) == records
        store.close()


OLD_SWANLAB = {0: "run-0.6.4.swanlab", 1: "run-0.7.10.swanlab"}


def swanlab_run(version):
    """A run of SwanLab whose file header states this version."""
    if version in OLD_SWANLAB:
        return (VECTORS / "swanlab/releases" / OLD_SWANLAB[version]).read_bytes()
    run = (VECTORS / "swanlab/run/run.swanlab").read_bytes()
    return run[:6] + bytes([version]) + run[7:]


@pytest.mark.parametrize("version", [0, 1, 2, 3, 200])
def test_salvaging_and_appending_preserve_the_swanlab_version(version, tmp_path):
    path, copy = tmp_path / "run.swanlab", tmp_path / "copy.swanlab"
    path.write_bytes(swanlab_run(version))
    records = list(cordwood.open(path))
    for named in (None, "swanlab"):
        report = cordwood.verify(path, dialect=named)
        assert (report.ok, report.record_count) == (True, len(records))
        header = report.skipped[0]
        assert (header.reason, header.version) == (
            ("file_header", None) if version <= 2 else ("unknown_version", version)
        )
        copy.unlink(missing_ok=True)
        cordwood.salvage(path, copy, dialect=named)
        assert copy.read_bytes() == path.read_bytes()
    with cordwood.open(path, "a", on_torn_tail="truncate") as writer:
        writer.append(records[0])
    assert path.read_bytes()[:7] == copy.read_bytes()[:7]
    assert list(cordwood.open(path)) == [*records, records[0]]


@pytest.mark.parametrize(("version", "stated"), [(0, 2), (0, 64), (1, 3), (1, 129), (2, 0), (2, 1)])
def test_a_wrong_swanlab_version_is_detected_from_the_first_record(version, stated, tmp_path):
    right = swanlab_run(version)
    damaged, copy = tmp_path / "damaged.swanlab", tmp_path / "copy.swanlab"
    damaged.write_bytes(right[:6] + bytes([stated]) + right[7:])
    for source in (damaged, damaged.read_bytes(), io.BytesIO(damaged.read_bytes())):
        report = cordwood.verify(source)
        assert [region.reason for region in report.skipped] == ["bad_file_header"]
    cordwood.salvage(damaged, copy)
    assert copy.read_bytes() == right


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_follower_reads_a_live_run_written_by_each_swanlab_version(version, tmp_path):
    path, run = tmp_path / "run.swanlab", swanlab_run(version)
    records = list(cordwood.open(run))
    path.write_bytes(b"")
    with cordwood.follow(path) as follower, path.open("ab", buffering=0) as file:
        found = []
        for start, end in itertools.pairwise([0, 3, 6, 7, 12, 14, 60, 20_000, len(run)]):
            file.write(run[start:end])
            for _ in range(2):
                while (record := follower.poll()) is not None:
                    found.append(record.data)
            # Until more bytes follow, a version of 0 may be a byte that is not written yet.
            assert follower.tell() == (0 if end < 7 or (version == 0 and end == 7) else 7) or found
        assert found == records
        assert follower.ok


# Pebble ----------------------------------------------------------------------------------------


def test_pebble_logs_written_by_cordwood_have_an_end_trailer(tmp_path):
    own = {"dialect": "pebble", "log_number": 7}
    for sink in [tmp_path / "000007.log", io.BytesIO()]:
        with cordwood.open(sink, "x", **own) as writer:
            writer.extend(RECORDS)
        source = sink.getvalue() if isinstance(sink, io.BytesIO) else sink
        with cordwood.open(source) as reader:
            assert list(reader) == RECORDS
            # Without its trailer, such a log cannot be distinguished from one of RocksDB.
            assert (reader.dialect, reader.log_number) == ("recyclable", 7)
            assert [(region.reason, region.length) for region in reader.skipped] == [("end_trailer", 11)]
            assert reader.outcome.kind == "clean"
    before = (tmp_path / "000007.log").read_bytes()
    for named in (own, {"dialect": "pebble"}, {"dialect": "recyclable"}, {}):
        with pytest.raises(cordwood.DialectError, match=r"never appended to.*\n*create a new log"):
            cordwood.open(tmp_path / "000007.log", "a", **named)
    with pytest.raises(cordwood.DialectError, match="never appended to"):
        cordwood.open(tmp_path / "new.log", "a", **own)
    assert not (tmp_path / "new.log").exists()
    assert (tmp_path / "000007.log").read_bytes() == before


# Which one it is -------------------------------------------------------------------------------

# The dialect and log number of each, and how many records it contains.
FILES = [
    (*vectors("appengine/export/output-0"), "leveldb", None, 60),
    (*vectors("leveldb/preallocated/000003.log"), "leveldb", None, 5),
    (*vectors("pebble/recyclable-trailer/000002.log"), "pebble", 2, 51),
    (*vectors("pebble/walsync/000007.log"), "pebble", 7, 51),
    (*vectors("rocksdb/plain/000004.log"), "leveldb", None, 16),
    (*vectors("rocksdb/recycled/000014.log"), "recyclable", 14, 14),
    (*vectors("swanlab/releases/run-0.6.4.swanlab"), "swanlab", None, 8),
    (*vectors("swanlab/releases/run-0.7.10.swanlab"), "swanlab", None, 8),
    (*vectors("swanlab/run/run.swanlab"), "swanlab", None, 4),
    (*vectors("wandb/run/run-1.wandb"), "wandb", None, 16),
    (*corpus("firestore/daily-cat/output-0"), "leveldb", None, 11),
    (*corpus("leveldb/preallocated/000003.log"), "leveldb", None, 5),
    (*corpus("pebble/recyclable-trailer/000002.log"), "pebble", 2, 50),
    (*corpus("pebble/walsync/000007.log"), "pebble", 7, 30),
    (*corpus("rocksdb/plain/000010.log"), "leveldb", None, 300),
    (*corpus("rocksdb/recycled-stale-tail/000010.log"), "recyclable", 10, 300),
    (*corpus("wandb/offline-run/run-g9dvvkua.wandb"), "wandb", None, 10),
]


@pytest.mark.parametrize(
    ("path", "dialect", "number", "count"),
    [pytest.param(*file.values, *rest, id=file.id, marks=file.marks) for file, *rest in FILES],
)
def test_the_formats_of_engine_files_are_detected(path, dialect, number, count):
    found = cordwood.detect(path)
    assert found == (dialect, number, None)
    with cordwood.open(path) as reader:
        records = list(reader)
        assert (len(records), reader.outcome.kind) == (count, "clean")
        assert (reader.dialect, reader.log_number, reader.compression) == found
    file = (path).read_bytes()
    for source in [file, io.BytesIO(file)]:
        assert list(cordwood.open(source)) == records
        assert [record for pack in cordwood.open(source).record_batches(threads=3) for record in pack] == (
            [] if isinstance(source, io.BytesIO) else records
        )
    assert cordwood.verify(file, threads=3) == cordwood.verify(file)
    # From the first 64 bytes, the right dialect is detected, or none.
    head = cordwood.detect(file[:64])
    assert head is None or head == found or (head.dialect, found.dialect) == ("recyclable", "pebble")


FOREIGN = {
    "gzip": b"\x1f\x8b\x08" + bytes(20),
    "zstd": b"\x28\xb5\x2f\xfd" + bytes(20),
    "SQLite": b"SQLite format 3\0" + bytes(84),
}


DESCRIPTIONS = {
    "gzip": "a file compressed with gzip: decompress it first, with `gunzip`",
    "zstd": "a file compressed with zstd: decompress it first, with `unzstd`",
    "SQLite": "a SQLite database, which `sqlite3` reads",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_the_error_names_the_format_of_a_file_that_is_not_a_log(tmp_path, name):
    path = tmp_path / "file"
    path.write_bytes(FOREIGN[name])
    for use in [cordwood.detect, cordwood.verify, cordwood.stat, lambda path: list(cordwood.open(path))]:
        with pytest.raises(
            cordwood.DialectError, match=re.escape(f"{path}: not a log, but {DESCRIPTIONS[name]}\nto")
        ) as caught:
            use(path)
        assert (caught.value.format, caught.value.path, caught.value.offset) == (name, str(path), 0)
    # A named dialect is not questioned.
    assert list(cordwood.open(path, dialect="leveldb", on_corruption="skip")) == []


def test_a_bytes_argument_is_treated_as_content_rather_than_as_a_path():
    with pytest.raises(cordwood.DialectError, match="bytes are the content of a log, not its path") as caught:
        list(cordwood.open(b"name.log"))
    assert (caught.value.format, caught.value.path) == ("text", None)


FILE_COUNT = 2_000


def first_header_may_be_torn(file):
    """Whether the file ends within the fragment of its first header, whose type is 0 or one that a dialect writes."""
    length, kind = struct.unpack_from("<HB", file, 4)
    header_len = 11 if 5 <= kind <= 8 else 19 if 9 <= kind <= 12 else 7
    return kind in {*range(13), 130, 131} and len(file) < header_len + length


def test_operating_system_files_are_not_detected_as_logs():
    """None of 2,000 is reported as "ok", except where the first header may be that of a torn record."""
    paths = [
        Path(directory, name)
        for top in ("/usr/lib", "/usr/share")
        for directory, _, files in os.walk(top)
        for name in sorted(files)
    ]
    # In an order that does not depend on the directories and is the same each time.
    random.Random(14).shuffle(paths)
    count, ok = 0, []
    for path in paths:
        if count == FILE_COUNT:
            break
        if path.is_symlink() or not path.is_file() or not os.access(path, os.R_OK):
            continue
        file = path.read_bytes()
        if len(file) < 7 or not file.strip(b"\0"):
            continue
        count += 1
        start = time.process_time()
        with contextlib.suppress(cordwood.DialectError):
            if cordwood.verify(path).ok:
                ok.append(path)
        # Not a measurement: it catches hangs, and time that grows faster than the file's length.
        assert time.process_time() - start < 1 + len(file) / 50e6, path
    # If there are fewer files, all must have been read; on a machine without any, the test has no meaning.
    assert count == FILE_COUNT or (count > 0 and len(paths) >= count)
    assert [path for path in ok if not first_header_may_be_torn(path.read_bytes())] == []


@pytest.mark.parametrize("file", [b"", b"x", bytes(100), b"\xdd\x5f\xb3\x7a\x03\x00\x01fo"])
def test_a_file_is_read_as_leveldb_if_its_dialect_cannot_be_detected(file):
    assert cordwood.detect(file) is None
    assert cordwood.open(file).dialect == "leveldb"


@pytest.mark.parametrize("dialect", ["leveldb", "wandb", "wandb_old", "swanlab"])
def test_every_dialect_supports_ranges_and_threads(tmp_path, dialect):
    path = tmp_path / "log"
    with cordwood.open(path, "x", dialect=dialect) as writer:
        writer.extend(RECORDS)
    with cordwood.open(path, dialect=dialect) as reader:
        whole = list(reader.records())
    for options in [{"dialect": dialect}, {}] if dialect != "wandb_old" else [{"dialect": dialect}]:
        assert [record.data for record in cordwood.open(path, **options).records()] == RECORDS
        for middle in [7, 8, 32_768, 32_775, 100_000, whole[40].offset]:
            halves = [{"end": middle}, {"start": middle}]
            found = [record for half in halves for record in cordwood.open(path, **half, **options).records()]
            assert found == whole
        assert [
            record for pack in cordwood.open(path, **options).record_batches(threads=2) for record in pack
        ] == RECORDS
        assert cordwood.verify(path, threads=3, **options) == cordwood.verify(path, **options)


def test_salvaging_preserves_the_dialect(tmp_path):
    file = bytearray(b":W&B\xe1\xbe\x00")
    for data in [b"one", b"two", b"three"]:
        file += struct.pack("<IHB", zlib.crc32(b"\x01" + data), len(data), 1) + data
    file[20] ^= 1
    report = cordwood.salvage(bytes(file), tmp_path / "clean.wandb")
    assert report.skipped[-1].bit_flip.offset == 20
    assert scan_wandb(tmp_path / "clean.wandb") == [b"one", b"three"]


def test_a_follower_reads_a_live_wandb_run(tmp_path):
    path = tmp_path / "run.wandb"
    with cordwood.open(path, "x", dialect="wandb") as writer:
        writer.append(b"one")
        writer.flush()
        follower = cordwood.follow(path, timeout=0)
        assert list(follower) == [b"one"]
        writer.append(PAYLOAD[:50_000])
        writer.flush()
        assert list(follower) == [PAYLOAD[:50_000]]
