"""RocksDB's own records in logs whose dialect was detected: they may come anywhere, and are no damage."""

import copy
import itertools
import json
import pickle
import random
from pathlib import Path

import pytest
import reference
from containers import RefusedError
from hypothesis import example, given
from hypothesis import strategies as st
from random_logs import files
from real_files import LATE_TIMESTAMPS
from suite import fragment
from support import merged, plain_end, plain_skipped

import cordwood
from cordwood.types import DetectedDialect

BLOCK_LEN = cordwood.BLOCK_LEN

RECORD = bytes.fromhex("dd5fb37a030001666f6f")
# Column family 1 has timestamps of 8 bytes.
SIZES = bytes.fromhex("3a99a16e06000a010000000800")
LOG = RECORD + SIZES + RECORD


def numbered(kind, data, log_number=7):
    return fragment(kind, data, {"log_number": log_number})


def padded(log, length):
    """The log in a whole number of blocks: `length` more bytes of records."""
    return log + RECORD * (length // len(RECORD))


UNKNOWN_CODEC = bytes.fromhex("2cf661ad010040f9")


@given(files, st.sampled_from(["skip", "stop", "salvage"]))
@example(UNKNOWN_CODEC, "skip")
def test_a_detected_log_has_the_same_records_as_the_reference(file, policy):
    expected, end, refused_at = [], None, None
    try:
        *expected, end = reference.events(
            file, stop=policy == "stop", salvage=policy == "salvage", dialect=reference.DETECTED
        )
    except RefusedError as error:
        refused_at = error.offset
    with cordwood.open(file, dialect=DetectedDialect("leveldb"), on_corruption=policy) as reader:
        if refused_at is not None:
            with pytest.raises(cordwood.DialectError) as caught:
                list(reader.records())
            assert caught.value.offset == refused_at
            return
        records = [(record.offset, record.end_offset, record.data, record.salvaged) for record in reader.records()]
        regions = merged(plain_skipped(reader))
        assert plain_end(reader) == end
    assert records == [
        (event.offset, event.end_offset, event.data, event.salvaged)
        for event in expected
        if isinstance(event, reference.Record)
    ]
    assert regions == merged([event for event in expected if isinstance(event, reference.Skipped)])


@given(files)
@example(UNKNOWN_CODEC)
def test_detecting_the_format_loses_no_records_that_a_strict_reader_returns(file):
    for policy in ("skip", "salvage"):
        with cordwood.open(file, dialect="leveldb", on_corruption=policy) as reader:
            strict = {(record.offset, record.data) for record in reader.records()}
        found = set()
        with cordwood.open(file, dialect=DetectedDialect("leveldb"), on_corruption=policy) as reader:
            try:
                found.update((record.offset, record.data) for record in reader.records())
            except cordwood.DialectError as error:
                # A container with an unknown codec, which a strict reader skips: rule K9 in packed.md.
                strict = {record for record in strict if record[0] < error.offset}
        assert strict <= found


@pytest.mark.parametrize("path", LATE_TIMESTAMPS)
def test_rocksdb_logs_can_be_read_and_followed(path, no_log):
    for open_log in (cordwood.open, lambda path: cordwood.follow(path, timeout=0)):
        with open_log(path) as reader:
            assert len(list(reader)) == 43
            assert [region.type_byte for region in reader.skipped if region.reason == "metadata"][-1] in (10, 11)
            assert reader.ok
    report = cordwood.verify(path)
    assert report.ok
    assert report.len_by_reason["metadata"] in (13, 17, 24, 28)


@pytest.mark.parametrize("path", LATE_TIMESTAMPS)
def test_salvaging_copies_rocksdb_logs_unchanged(path, tmp_path):
    new = tmp_path / path.name
    report = cordwood.salvage(path, new)
    assert report.not_kept == ()
    content = path.read_bytes()
    # Without the rest of an older log in the file.
    rest = report.skipped[-1].offset if report.skipped[-1].reason != "metadata" else len(content)
    assert new.read_bytes() == content[:rest]


def copies(value):
    return [value, copy.deepcopy(value), *(pickle.loads(pickle.dumps(value, version)) for version in range(2, 6))]  # noqa: S301


def test_detected_and_explicit_dialects_give_the_same_records(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(LOG)
    with cordwood.Reader(path) as reader:
        list(reader)
        dialects = [reader.dialect]
    dialects += [value.dialect for value in copies(cordwood.detect(path))]
    dialects += [value.dialect for value in copies(cordwood.verify(path))]
    dialects += [value.dialect for value in copies(cordwood.stat(path))]
    with cordwood.follow(path, timeout=0) as follower:
        list(follower)
        dialects.append(follower.dialect)
    with cordwood.open(path, "a") as writer:
        dialects.append(writer.dialect)
    for dialect in dialects:
        assert dialect == "leveldb"
        assert json.dumps(dialect) == '"leveldb"'
        assert list(cordwood.open(path, dialect=dialect)) == [b"foo"] * 2
        assert cordwood.verify(path, dialect=dialect).ok
        assert cordwood.stat(path, dialect=dialect).damaged_len == 0
        assert [one.kind for one in cordwood.fragments(path, dialect=dialect)][1] == "timestamp_sizes"
        with cordwood.follow(path, timeout=0, dialect=dialect) as follower:
            assert list(follower) == [b"foo"] * 2
    for split in copies(cordwood.plan_splits([path], BLOCK_LEN)[0]):
        assert list(cordwood.open(split)) == [b"foo"] * 2


def test_reading_with_an_explicit_dialect_reports_metadata_as_unknown(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(LOG)
    for options in ({"dialect": "leveldb"}, {"dialect": str(cordwood.detect(path).dialect)}):
        with cordwood.open(path, on_corruption="skip", **options) as reader:
            assert list(reader) == [b"foo"] * 2
            assert [region.reason for region in reader.skipped] == ["unknown_kind"]
    recycled = numbered(5, b"foo") + numbered(11, b"\1\0\0\0\x08\0")
    assert cordwood.verify(recycled).ok
    assert "unknown_kind" in cordwood.verify(recycled, dialect="recyclable").len_by_reason


@pytest.mark.parametrize("place", [0, 1, 40, 90])
def test_splits_and_batches_accept_a_metadata_record_in_any_block(place, tmp_path, no_log):
    # Several MiB, so that threads share it.
    blocks = [padded(b"", BLOCK_LEN - 20).ljust(BLOCK_LEN, b"\0")] * 160
    late = padded(RECORD + SIZES + RECORD, BLOCK_LEN - 50).ljust(BLOCK_LEN, b"\0")
    file = b"".join([*blocks[:place], late, *blocks[place:]])
    path = tmp_path / "a.log"
    path.write_bytes(file)
    one = cordwood.verify(path)
    assert one.ok
    assert one.len_by_reason["metadata"] == len(SIZES)
    assert cordwood.verify(path, threads=2) == one
    assert cordwood.stat(path, threads=2) == cordwood.stat(path)
    with cordwood.open(path) as reader:
        assert sum(len(batch) for batch in reader.record_batches(threads=2)) == one.record_count
    found = 0
    for split in cordwood.plan_splits([path], 16 * BLOCK_LEN):
        with cordwood.open(split) as reader:
            found += sum(1 for _ in reader)
            assert reader.ok
    assert found == one.record_count


def test_a_range_that_starts_later_is_read_in_the_detected_format():
    file = padded(b"", BLOCK_LEN).ljust(BLOCK_LEN, b"\0") + LOG
    with cordwood.open(file, start=BLOCK_LEN) as reader:
        assert list(reader) == [b"foo"] * 2
        assert [region.reason for region in reader.skipped] == ["metadata"]
    with cordwood.open(file) as reader:
        reader.seek(BLOCK_LEN)
        assert list(reader) == [b"foo"] * 2


def test_a_follower_waits_for_the_rest_of_a_late_metadata_record(tmp_path, no_log):
    path = tmp_path / "a.log"
    path.write_bytes(RECORD)
    with cordwood.follow(path, timeout=0) as follower:
        assert follower.poll().data == b"foo"
        for end in range(1, len(SIZES)):
            path.write_bytes(RECORD + SIZES[:end])
            assert follower.poll() is None
        path.write_bytes(LOG)
        assert follower.poll().data == b"foo"
        assert [region.reason for region in follower.skipped] == ["metadata"]


def of_recycled_log():
    """40 records after the timestamps of 5 column families, as RocksDB writes them to a recycled log."""
    sizes = b"".join(family.to_bytes(4, "little") + b"\x08\0" for family in range(1, 6))
    records = [b"record %02d, and its value" % index for index in range(40)]
    return records, numbered(11, sizes) + b"".join(numbered(5, record) for record in records)


def of_plain_log():
    sizes = b"".join(family.to_bytes(4, "little") + b"\x08\0" for family in range(1, 6))
    records = [b"record %02d, and its value" % index for index in range(40)]
    return records, fragment(10, sizes, {}) + b"".join(fragment(1, record, {}) for record in records)


@pytest.mark.parametrize("make", [of_recycled_log, of_plain_log])
def test_a_flipped_bit_in_the_first_fragments_loses_one_record(make):
    records, log = make()
    for bit in range(480):
        flipped = bytearray(log)
        flipped[bit // 8] ^= 1 << bit % 8
        with cordwood.open(bytes(flipped), on_corruption="salvage") as reader:
            assert len(set(records) - set(reader)) <= 1, bit
            assert sum(region.severity == cordwood.types.Severity.CORRUPTION for region in reader.skipped) == 1, bit


def test_a_flipped_bit_in_a_log_with_timestamps_loses_at_most_one_record():
    sizes = b"\1\0\0\0\x08\0"
    records = [b"record %02d, and its value" % index for index in range(40)]
    log = b"".join(numbered(11, sizes) + numbered(5, record) for record in records)
    for bit in range(480):
        flipped = bytearray(log)
        flipped[bit // 8] ^= 1 << bit % 8
        with cordwood.open(bytes(flipped), on_corruption="salvage") as reader:
            assert len(set(records) - set(reader)) <= 1, bit


@pytest.mark.parametrize("log_number", [None, 7])
def test_swapping_blocks_does_not_turn_compressed_data_into_a_record(log_number, tmp_path):
    path = tmp_path / "a.log"
    rng = random.Random(36)
    records = [rng.randbytes(700) for _ in range(300)]
    options = {"dialect": "rocksdb", "compression": "zstd", "log_number": log_number}
    with cordwood.open(path, "w", **options) as writer:
        writer.extend(records)
    file = path.read_bytes()
    blocks = [file[start : start + BLOCK_LEN] for start in range(0, len(file), BLOCK_LEN)]
    assert len(blocks) == 7
    for one, other in itertools.combinations(range(6), 2):
        order = [*blocks]
        order[one], order[other] = order[other], order[one]
        swapped = b"".join(order)
        for source in (swapped, Path(tmp_path / "b.log")):
            if source is not swapped:
                source.write_bytes(swapped)
            for policy, named in itertools.product(("skip", "salvage"), (None, "rocksdb")):
                with cordwood.open(source, on_corruption=policy, dialect=named) as reader:
                    assert (reader.dialect, reader.compression) == ("rocksdb", "zstd")
                    found = list(reader)
            assert len(found) > 100
            assert set(found) <= set(records)


def test_compressed_frames_that_were_written_as_records_are_returned():
    frame = bytes.fromhex("28b52ffd2003190000666f6f")
    log = reference.encode([frame] * 9_000)
    assert len(log) > 3 * BLOCK_LEN
    assert cordwood.detect(log).dialect == "leveldb"
    assert set(cordwood.open(log)) == {frame}


# Appending -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["refuse", "truncate", "pad"])
def test_appending_preserves_a_late_metadata_record_at_the_end(policy, tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(RECORD + SIZES)
    with cordwood.open(path, "a", on_torn_tail=policy) as writer:
        writer.append(b"foo")
        assert writer.discarded_tail is None
    assert path.read_bytes() == LOG


@pytest.mark.parametrize("length", range(1, len(SIZES)))
def test_appending_truncates_a_torn_metadata_record_after_other_records(length, tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(RECORD + SIZES[:length])
    with pytest.raises(cordwood.TornTailError):
        cordwood.open(path, "a")
    with cordwood.open(path, "a", on_torn_tail="truncate") as writer:
        writer.append(b"foo")
    assert path.read_bytes() == RECORD * 2


@pytest.mark.parametrize("whole", [SIZES, RECORD], ids=["a record of RocksDB's own", "a record"])
def test_append_rejects_crash_damage_before_a_whole_record(whole, tmp_path):
    path = tmp_path / "a.log"
    # A sector of the file that was not written.
    damaged = bytearray(RECORD + fragment(1, b"x" * 2000, {}))
    damaged[512:1024] = bytes(512)
    path.write_bytes(damaged)
    with cordwood.open(path, "a", on_torn_tail="truncate") as writer:
        assert writer.discarded_tail.offset == len(RECORD)
    for file in (bytes(damaged) + whole, damaged.ljust(BLOCK_LEN, b"\0") + whole):
        path.write_bytes(file)
        with pytest.raises(cordwood.CorruptionError):
            cordwood.open(path, "a", on_torn_tail="truncate")
        assert path.read_bytes() == file


# The report of salvage -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "payload", "not_kept"),
    [
        (10, b"\1\0\0\0\x08\0", ("timestamp_sizes",)),
        (130, bytes(range(24)), ("predecessor",)),
        (9, b"\7\0\0\0", ("bad_metadata",)),
        (1, b"a record", ()),
    ],
)
def test_salvaging_reports_which_engine_record_was_lost(kind, payload, not_kept, tmp_path):
    metadata = fragment(kind, payload, {})
    log = RECORD + metadata + RECORD
    start = len(RECORD)
    for bit in range(8 * len(metadata)):
        flipped = bytearray(log)
        flipped[start + bit // 8] ^= 1 << bit % 8
        new = tmp_path / f"{bit}.log"
        report = cordwood.salvage(bytes(flipped), new)
        assert report.not_kept == not_kept, bit
        assert list(cordwood.open(new)) == [b"foo"] * 2


def test_salvaging_keeps_late_metadata_records_in_order(tmp_path):
    predecessor = fragment(130, bytes(range(24)), {})
    # The damage is in the block before.
    damaged = bytearray(padded(b"", BLOCK_LEN - 20).ljust(BLOCK_LEN, b"\0"))
    damaged[9] ^= 1
    report = cordwood.salvage(bytes(damaged) + SIZES + RECORD + predecessor, tmp_path / "new.log")
    assert report.not_kept == ()
    kinds = [fragment.kind for fragment in cordwood.fragments(tmp_path / "new.log") if fragment.type_byte]
    assert kinds[-3:] == ["timestamp_sizes", "full", "predecessor"]


def test_salvaging_reports_the_late_metadata_records_that_it_dropped(tmp_path):
    damaged = bytearray(LOG)
    damaged[9] ^= 1
    report = cordwood.salvage(bytes(damaged), tmp_path / "new.log")
    assert (report.record_count, report.salvaged_count, report.not_kept) == (1, 1, ("timestamp_sizes",))
    assert (tmp_path / "new.log").read_bytes() == RECORD


# A MANIFEST ------------------------------------------------------------------------------------

NUMBERS = {"the log number": b"\2\3", "the next file number": b"\3\4", "the last sequence number": b"\4\0"}
COMPARATOR = b"\1\1c"


@pytest.mark.parametrize("lost", NUMBERS)
def test_salvage_reports_losing_an_edit_that_the_database_needs(lost, tmp_path):
    edits = [COMPARATOR, *NUMBERS.values(), NUMBERS[lost]]
    log = bytearray(reference.encode(edits))
    place = [*NUMBERS].index(lost) + 1
    starts = reference.record_offsets(edits)
    # One of the two that state the number, then both.
    log[starts[place] + 8] ^= 4
    assert cordwood.salvage(bytes(log), tmp_path / "one").not_kept == ()
    log[starts[4] + 8] ^= 4
    assert cordwood.salvage(bytes(log), tmp_path / "both").not_kept == ("version_edit",)


def test_a_manifest_without_records_is_recognized_by_its_name(tmp_path):
    log = bytearray(reference.encode([COMPARATOR + b"".join(NUMBERS.values())]))
    log[9] ^= 1
    for name, not_kept in (("MANIFEST-000001", ("version_edit",)), ("other", ())):
        (tmp_path / name).write_bytes(log)
        assert cordwood.salvage(tmp_path / name, tmp_path / f"new-{name}").not_kept == not_kept


def test_a_damaged_log_with_another_name_is_not_mistaken_for_a_manifest(tmp_path):
    for index, record in enumerate(
        (b"", b"text", COMPARATOR + b"\0", bytes(12), b"\x01\x00\x00\x00\x00\x00\x00\x00\x00")
    ):
        log = bytearray(reference.encode([record] * 3))
        log[0] ^= 1
        assert cordwood.salvage(bytes(log), tmp_path / str(index)).not_kept == ()
