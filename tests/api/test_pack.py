"""`pack`: a strict copy of closed logs to packed logs, and back, beside the pure-Python references."""

import io

import packed_reference
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from real_files import ALL
from reference import BLOCK_LEN
from support import PAYLOAD, OnlyRead, written

import cordwood

COMPRESSIONS = [None, "zstd"]
lengths = st.one_of(st.integers(0, 40), st.integers(0, 5_000), st.sampled_from([BLOCK_LEN, 70_000]))
records = st.lists(st.tuples(st.integers(0, 1_000), lengths), max_size=60).map(
    lambda places: [PAYLOAD[start : start + length] for start, length in places]
)


@settings(max_examples=100)
@given(records, st.sampled_from(COMPRESSIONS))
def test_unpacking_a_packed_log_restores_the_original(tmp_path_factory, records, compression):
    directory = tmp_path_factory.mktemp("pack")
    file = reference.encode(records)
    report = cordwood.pack(file, directory / "packed", compression=compression)
    assert (report.record_count, report.file_len, report.path) == (len(records), len(file), None)
    packed = (directory / "packed").read_bytes()
    assert [record.data for record in packed_reference.read(packed)] == records
    # The mark, and a header for each block.
    assert len(packed) <= len(file) + 17 + 7 * (len(file) // BLOCK_LEN + 1)
    cordwood.pack(directory / "packed", directory / "again", dialect="leveldb")
    assert (directory / "again").read_bytes() == file


# The vectors and the files of the corpus that are not packed, and why.
NUMBERED, COMPRESSED, METADATA = "with a log number", "with compression", "with metadata"
OLD, ZEROS = "of version [01]", "zeros"
REFUSED = {
    "leveldb/preallocated/000003.log": ZEROS,
    "leveldb/preallocated/MANIFEST-000002": ZEROS,
    "pebble/recyclable-trailer/000002.log": NUMBERED,
    "pebble/walsync/000007.log": NUMBERED,
    "rocksdb/compressed/000008.log": COMPRESSED,
    "rocksdb/late-timestamps-compressed/000004.log": COMPRESSED,
    "rocksdb/late-timestamps-plain/000004.log": METADATA,
    "rocksdb/late-timestamps-recycled-compressed/000014.log": COMPRESSED,
    "rocksdb/late-timestamps-recycled/000014.log": NUMBERED,
    "rocksdb/recycled-last-block/000012.log": NUMBERED,
    "rocksdb/recycled-stale-tail/000010.log": NUMBERED,
    "rocksdb/recycled/000014.log": NUMBERED,
    "swanlab/releases/run-0.6.4.swanlab": OLD,
    "swanlab/releases/run-0.7.10.swanlab": OLD,
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("path", ALL)
def test_packing_and_unpacking_a_real_log_restores_the_original_file(path, compression, tmp_path):
    refused = REFUSED.get("/".join(path.parts[-3:]))
    if refused:
        with pytest.raises(cordwood.CordwoodError, match=refused):
            cordwood.pack(path, tmp_path / "packed", compression=compression)
        assert list(tmp_path.iterdir()) == []
        return
    with cordwood.open(path) as reader:
        records, dialect = list(reader), reader.dialect
        skipped = {region.reason for region in reader.skipped}
    cordwood.pack(path, tmp_path / "packed", compression=compression)
    packed = (tmp_path / "packed").read_bytes()
    assert [record.data for record in packed_reference.read(packed)] == records
    cordwood.pack(tmp_path / "packed", tmp_path / "again", dialect=dialect)
    again = (tmp_path / "again").read_bytes()
    with cordwood.open(again) as reader:
        assert (list(reader), reader.dialect) == (records, dialect)
    assert (again == path.read_bytes()) == (skipped <= {"file_header"})


def test_pack_handles_records_that_compress_to_less_than_a_byte(tmp_path):
    """Each needs a byte of its container for its offset, and pyarrow reads the frames that are lengthened for that."""
    records = [b'{"step": %d, "loss": 0.25}' % step for step in range(5000)]
    cordwood.pack(reference.encode(records), tmp_path / "packed")
    packed = (tmp_path / "packed").read_bytes()
    assert len(packed) < 1.1 * len(records)
    assert [record.data for record in packed_reference.read(packed)] == records


def refused(source, tmp_path, kind, **options):
    with pytest.raises(kind) as caught:
        cordwood.pack(source, tmp_path / "packed", **options)
    assert list(tmp_path.iterdir()) == []
    return caught.value


@pytest.mark.parametrize(
    ("file", "place"),
    [
        (b"\0" + written([b"one"])[1:], (0, 10, "checksum_mismatch")),
        (written([b"one", b"two"])[:-1], (10, 9, "torn_tail")),
        (written([b"one"]) + bytes(90), (10, 90, "zero_fill")),
        (written([b"one"]) + bytes(2 * BLOCK_LEN - 10), (10, 2 * BLOCK_LEN - 10, "zero_fill")),
        (written([b"one"]) + bytes(BLOCK_LEN - 10) + written([b"two"]), (10, BLOCK_LEN - 10, "zero_fill")),
        (bytes(BLOCK_LEN), (0, BLOCK_LEN, "zero_fill")),
    ],
)
def test_pack_rejects_regions_that_may_have_been_records(file, place, tmp_path):
    for source in file, io.BytesIO(file), OnlyRead(file, 1000):
        error = refused(source, tmp_path, cordwood.CorruptionError)
        assert (error.offset, error.length, error.reason, error.hint) == (*place, "salvage")


def test_pack_drops_padding(tmp_path):
    file = written([b"one"])
    report = cordwood.pack(file.ljust(BLOCK_LEN, b"\0"), tmp_path / "a", dialect="leveldb")
    assert (tmp_path / "a").read_bytes() == file
    assert report.outcome.zeros_offset == 10


def test_pack_rejects_logs_that_unpack_could_not_restore(tmp_path):
    sink = io.BytesIO()
    with cordwood.open(sink, "w", dialect="pebble", log_number=6) as writer:
        writer.append(b"one")
    error = refused(sink.getvalue(), tmp_path, cordwood.DialectError)
    assert (error.format, error.offset, error.hint) == ("pebble", 0, None)
    # RocksDB's record with the lengths of timestamps.
    metadata = bytes.fromhex("3a99a16e06000a010000000800")
    error = refused(written([b"one"]) + metadata, tmp_path, cordwood.DialectError)
    assert (error.format, error.offset) == ("leveldb", 10)


def test_invalid_options_are_rejected(tmp_path):
    file = written([b"one"])
    for dialect in ("rocksdb", "pebble", "recyclable", "wandb_old"):
        assert "pack writes packed, leveldb" in str(refused(file, tmp_path, ValueError, dialect=dialect))
    for dialect in ("gzip", "", "auto"):
        refused(file, tmp_path, ValueError, dialect=dialect)
    for dialect in (None, 7):
        refused(file, tmp_path, TypeError, dialect=dialect)
    refused(file, tmp_path, ValueError, compression="gzip")
    refused(file, tmp_path, TypeError, compression=...)
    assert refused(file, tmp_path, ValueError, dialect="wandb", compression="zstd").hint == "omit_compression"
    error = refused(file, tmp_path, cordwood.RecordTooLargeError, record_len_max=2)
    assert (error.offset, error.hint) == (0, "raise_record_len_max")
    cordwood.pack(file, tmp_path / "a", dialect="wandb", compression=None)
    cordwood.pack(tmp_path / "a", tmp_path / "b", dialect=cordwood.detect(file).dialect, record_len_max=3)
    assert (tmp_path / "b").read_bytes() == file
    for compression in COMPRESSIONS:
        cordwood.pack(file, tmp_path / f"{compression}", compression=compression)
        assert cordwood.detect(tmp_path / f"{compression}") == ("packed", None, compression)
    cordwood.pack(file, tmp_path / "default")
    assert cordwood.detect(tmp_path / "default").compression == "zstd"


def test_pack_and_unpack_never_overwrite_a_file(tmp_path):
    source, other = tmp_path / "a.log", tmp_path / "other"
    source.write_bytes(written([b"one"]))
    other.write_bytes(b"precious")
    for destination in (source, other):
        with pytest.raises(FileExistsError) as caught:
            cordwood.pack(source, destination)
        assert caught.value.filename == str(destination)
    assert (source.read_bytes(), other.read_bytes()) == (written([b"one"]), b"precious")
    with pytest.raises(FileNotFoundError):
        cordwood.pack(source, tmp_path / "missing" / "packed")
    with pytest.raises(ValueError, match="URL"):
        cordwood.pack(source, "s3://bucket/packed")
    with pytest.raises(TypeError, match="destination"):
        cordwood.pack(source, io.BytesIO())


def test_pack_reports_progress_and_propagates_callback_exceptions(tmp_path):
    file = written([PAYLOAD] * 40)
    lens = []
    report = cordwood.pack(file, tmp_path / "packed", progress=lens.append)
    assert sum(lens) == report.file_len == len(file)

    def fail(_):
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        cordwood.pack(file, tmp_path / "other", progress=fail)
    assert [path.name for path in tmp_path.iterdir()] == ["packed"]


def test_reads_packed_logs_of_highly_compressible_records_by_default():
    record = bytes(1 << 20)
    with cordwood.open(file := io.BytesIO(), "w", dialect="packed", compression="zstd") as writer:
        for _ in range(260):
            writer.append(record)
    assert cordwood.verify(file.getvalue()).record_count == 260
