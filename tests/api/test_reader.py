"""`Reader` and the values that it returns."""

import io
import logging

import pytest
import reference
from reference import BLOCK_LEN, FIRST, FULL, HEADER_LEN, LAST, MIDDLE, fragment
from support import PAYLOAD

import cordwood

RECORDS = [b"one", PAYLOAD[:70_000], b"", b"x", b"two"]
FILE = reference.encode(RECORDS)
OFFSETS = reference.record_offsets(RECORDS)
SHORT = reference.encode([b"one", b"two"])


def wrong(part):
    """The same fragment with an invalid checksum."""
    return bytes([part[0] ^ 1]) + part[1:]


# Iteration -------------------------------------------------------------------------------------


def test_an_exhausted_reader_returns_no_more_records():
    with cordwood.open(FILE) as reader:
        assert list(reader) == RECORDS
        assert list(reader) == []
        assert next(reader, None) is None


def test_records_yields_offsets_along_with_the_data():
    with cordwood.open(FILE) as reader:
        records = list(reader.records())
    assert [record.data for record in records] == RECORDS
    assert [record.offset for record in records] == OFFSETS
    assert records[0].end_offset == 10
    assert records[-1].end_offset == len(FILE)


def test_reads_records_with_lengths_near_multiples_of_2_kib():
    lengths = [piece * 2048 + more for piece in range(20) for more in (-1, 0, 1) if piece * 2048 + more >= 0]
    records = [PAYLOAD[length : 2 * length] for length in lengths]
    assert list(cordwood.open(reference.encode(records))) == records


def test_all_read_methods_share_one_position():
    with cordwood.open(FILE) as reader:
        records, batches = reader.records(), reader.record_batches(target_len=0)
        assert next(reader) == RECORDS[0]
        assert next(records).data == RECORDS[1]
        assert list(next(batches)) == [RECORDS[2]]
        assert next(reader.records()).data == RECORDS[3]
        assert next(reader) == RECORDS[4]
        assert [*reader, *records, *batches] == []


@pytest.mark.parametrize(
    "before",
    [
        fragment(FULL, bytes(BLOCK_LEN - HEADER_LEN)),
        fragment(FULL, bytes(BLOCK_LEN - HEADER_LEN - 3)) + b"xyz",
        fragment(FULL, b"one").ljust(BLOCK_LEN, b"\0"),
    ],
    ids=["a full block", "a trailer that is not zero", "zeros"],
)
def test_returns_the_batch_before_the_damage_and_then_raises(before):
    with cordwood.open(before + wrong(fragment(FULL, b"two"))) as reader:
        batches = reader.record_batches()
        assert len(next(batches)) == 1
        with pytest.raises(cordwood.CorruptionError):
            next(batches)
        assert list(batches) == []


# Position --------------------------------------------------------------------------------------


def test_tell_returns_the_end_of_the_last_record_read():
    with cordwood.open(FILE) as reader:
        assert reader.tell() == 0
        for record in reader.records():
            assert reader.tell() == record.end_offset
        assert reader.tell() == len(FILE)


def test_after_an_error_tell_returns_the_end_of_the_damage():
    file = wrong(SHORT).ljust(BLOCK_LEN, b"x") + SHORT
    with cordwood.open(file) as reader:
        with pytest.raises(cordwood.CorruptionError):
            next(reader)
        assert reader.tell() == BLOCK_LEN


@pytest.mark.parametrize("index", range(len(RECORDS)))
def test_a_second_reader_can_pick_up_where_the_first_left_off(index):
    with cordwood.open(FILE) as reader:
        for _ in range(index):
            next(reader)
        position = reader.tell()
    with cordwood.open(FILE) as reader:
        reader.seek(position)
        assert reader.tell() == position
        assert list(reader) == RECORDS[index:]
        assert reader.skipped == ()
    with cordwood.open(FILE, start=position) as reader:
        assert list(reader) == RECORDS[index:]


def test_seeking_resets_the_skipped_regions_and_the_outcome():
    file = wrong(SHORT).ljust(BLOCK_LEN, b"x") + SHORT
    with cordwood.open(file, on_corruption="skip") as reader:
        list(reader)
        assert len(reader.skipped) == 1
        assert reader.outcome.kind == "clean"
        reader.seek(BLOCK_LEN)
        assert (reader.skipped, reader.outcome.kind, reader.outcome.offset) == ((), "unfinished", BLOCK_LEN)
        assert list(reader) == [b"one", b"two"]
        assert reader.skipped == ()


@pytest.mark.parametrize("ends_with", ["nothing more", "damage"])
def test_seeking_discards_data_read_ahead_after_the_last_batch(ends_with):
    file = SHORT if ends_with == "nothing more" else SHORT + fragment(80, b"")
    with cordwood.open(file) as reader:
        assert list(next(reader.record_batches())) == [b"one", b"two"]
        reader.seek(10)
        assert next(reader) == b"two"
        reader.seek(0)
        assert list(next(reader.record_batches())) == [b"one", b"two"]


def test_a_reader_can_seek_to_an_offset_before_the_one_it_started_at():
    with cordwood.open(FILE, start=OFFSETS[2]) as reader:
        assert next(reader) == RECORDS[2]
        reader.seek(0)
        assert list(reader) == RECORDS


def test_seeking_into_the_middle_of_a_record_reports_damage():
    with cordwood.open(FILE, on_corruption="skip") as reader:
        reader.seek(BLOCK_LEN)
        assert list(reader) == RECORDS[2:]
        assert [region.reason for region in reader.skipped] == ["missing_start"]


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(next, id="next"),
        pytest.param(lambda reader: next(reader.record_batches()), id="record_batches"),
    ],
)
def test_damage_at_a_seek_target_hints_that_the_offset_may_be_wrong(step, tmp_path):
    path = tmp_path / "example.log"
    path.write_bytes(FILE)
    text = "if no record starts at this offset, this is not damage"
    with cordwood.open(path) as reader:
        reader.seek(BLOCK_LEN)
        with pytest.raises(cordwood.CorruptionError, match=text) as caught:
            step(reader)
        assert (caught.value.offset, caught.value.reason, caught.value.path) == (BLOCK_LEN, "missing_start", str(path))
        assert str(path) in str(caught.value)
    # Damage after that is damage.
    damaged = bytearray(FILE)
    damaged[17] ^= 1
    with cordwood.open(bytes(damaged)) as reader:
        reader.seek(0)
        assert next(reader) == RECORDS[0]
        with pytest.raises(cordwood.CorruptionError) as caught:
            list(reader)
        assert text not in str(caught.value)


def test_reader_picks_up_records_added_later(tmp_path):
    path = tmp_path / "example.log"
    path.write_bytes(FILE[:50_000])
    with cordwood.open(path) as reader, path.open("ab") as file:
        assert list(reader) == RECORDS[:1]
        assert (reader.outcome.kind, reader.outcome.offset, reader.tell()) == ("torn_tail", 10, 10)
        file.write(FILE[50_000:])
        file.flush()
        reader.seek(reader.tell())
        assert list(reader) == RECORDS[1:]
        assert (reader.outcome.kind, reader.skipped) == ("clean", ())


# Ranges ----------------------------------------------------------------------------------------


def test_a_range_contains_the_records_that_start_in_the_range():
    for first in range(len(RECORDS)):
        for last in range(first, len(RECORDS)):
            for start in {max(0, OFFSETS[first] - 1), OFFSETS[first]} - {0 if first else -1}:
                with cordwood.open(FILE, start=start, end=OFFSETS[last] + 1) as reader:
                    assert list(reader) == RECORDS[first : last + 1]
                    assert reader.skipped == ()


def test_range_excludes_a_record_that_starts_at_its_end():
    with cordwood.open(FILE, end=OFFSETS[2]) as reader:
        assert list(reader) == RECORDS[:2]
        assert (reader.outcome.kind, reader.outcome.offset) == ("clean", OFFSETS[2])


@pytest.mark.parametrize("file_range", [(0, 0), (5, 5), (20, 10), (len(FILE), None)])
def test_an_empty_range_has_no_records_and_no_damage(file_range):
    start, end = file_range
    with cordwood.open(FILE, start=start, end=end) as reader:
        assert list(reader) == []
        assert reader.skipped == ()
        assert reader.outcome.kind == "clean"


# Skipped regions -------------------------------------------------------------------------------

LATER = fragment(FULL, b"later")


def in_next_block(file):
    """`file`, garbage up to the end of its block, and a valid record."""
    return file.ljust(BLOCK_LEN, b"x") + LATER


@pytest.mark.parametrize(
    ("file", "options", "regions"),
    [
        (in_next_block(wrong(fragment(FULL, b"abc"))), {}, [(0, BLOCK_LEN, "checksum_mismatch")]),
        (in_next_block(b"1234\xff\xff\x01"), {}, [(0, BLOCK_LEN, "bad_length")]),
        (b"1234\xff\xff\x01", {"dialect": "leveldb"}, [(0, 7, "bad_length")]),
        # A flipped bit in the last length: the checksum matches the bytes that are there, few or many.
        (fragment(FULL, b"")[:4] + b"\x00\x40\x01", {}, [(0, 7, "bad_length")]),
        (fragment(FULL, b"abc")[:4] + b"\x03\x40\x01abc", {}, [(0, 10, "bad_length")]),
        (fragment(FULL, PAYLOAD[:9_000])[:4] + b"\x28\x63\x01" + PAYLOAD[:9_000], {}, [(0, 9007, "bad_length")]),
        (fragment(80, b"abc") + LATER, {}, [(0, 10, "unknown_kind")]),
        (fragment(MIDDLE, b"abc") + LATER, {}, [(0, 10, "missing_start")]),
        (fragment(LAST, b"abc") + LATER, {}, [(0, 10, "missing_start")]),
        (fragment(FIRST, b"abc") + LATER, {}, [(0, 10, "missing_end")]),
        (fragment(FIRST, b"") + LATER, {}, [(0, 7, "empty_first")]),
        (
            fragment(FIRST, b"abc") + fragment(6, b"de") + LATER,
            {},
            [(0, 10, "interrupted_record"), (10, 19, "unknown_kind")],
        ),
        (in_next_block(bytes(7)), {}, [(0, BLOCK_LEN, "zero_header")]),
        (bytes(BLOCK_LEN) + LATER, {}, [(0, BLOCK_LEN, "zero_fill")]),
        (fragment(FULL, b"abcdef") + LATER, {"record_len_max": 5}, [(0, 13, "record_too_large")]),
        (
            fragment(FIRST, b"abcdef") + fragment(LAST, b"ghi") + LATER,
            {"record_len_max": 5},
            [(0, 13, "record_too_large"), (13, 23, "too_large_rest")],
        ),
        (LATER[:5], {}, [(0, 5, "torn_tail")]),
        (LATER[:9], {}, [(0, 9, "torn_tail")]),
        (fragment(FIRST, b"abc"), {}, [(0, 10, "torn_tail")]),
        # Too few zeros for a header: padding, or the rest of a torn write.
        (fragment(FULL, b"later") + bytes(6), {}, [(12, 18, "zero_fill")]),
        (fragment(FIRST, b"abc") + bytes(6), {}, [(0, 16, "torn_tail")]),
    ],
)
def test_a_reader_lists_skipped_regions_with_their_reasons(file, options, regions):
    with cordwood.open(file, on_corruption="skip", **options) as reader:
        assert list(reader) == ([b"later"] if LATER in file else [])
        assert [(region.offset, region.end_offset, region.reason) for region in reader.skipped] == regions


SEVERITIES = {
    **dict.fromkeys(reference.CORRUPTION, "corruption"),
    **dict.fromkeys(["too_large_rest", "zero_fill", "nonzero_trailer", "empty_first", "not_read"], "info"),
    # Only in dialects other than LevelDB's, which the reference does not know.
    **dict.fromkeys(["bad_file_header", "bad_metadata", "lost_write"], "corruption"),
    **dict.fromkeys(["unsupported_compression", "bad_compression", "bad_container"], "corruption"),
    **dict.fromkeys(["file_header", "unknown_version", "metadata", "ignored_kind", "end_trailer", "stale"], "info"),
    "torn_tail": "torn_tail",
}


def test_the_enums_list_every_reason_and_severity():
    assert {str(reason) for reason in cordwood.types.Reason} == set(SEVERITIES)
    assert {str(severity) for severity in cordwood.types.Severity} == set(SEVERITIES.values())


def test_the_severity_of_a_region_depends_on_its_reason():
    file = fragment(FIRST, b"") + fragment(FIRST, b"abc") + fragment(LAST, b"def") + fragment(80, b"")
    file += fragment(MIDDLE, b"") + fragment(FULL, PAYLOAD[: BLOCK_LEN - len(file) - 7 - 7 - 3]) + b"xyz"
    file += bytes(BLOCK_LEN) + LATER[:9]
    with cordwood.open(file, on_corruption="skip", record_len_max=2) as reader:
        list(reader)
        assert {region.reason: region.severity for region in reader.skipped}.items() <= SEVERITIES.items()
        assert len(reader.skipped) >= 7
        assert all(type(region.severity) is cordwood.types.Severity for region in reader.skipped)


@pytest.mark.parametrize("opened", [cordwood.open, lambda path: cordwood.follow(path, timeout=0)])
def test_breaking_out_of_a_loop_does_not_close_the_reader(opened, tmp_path):
    path = tmp_path / "some.log"
    path.write_bytes(FILE)

    def delegated(log):
        yield from log

    with opened(path) as log:
        first = delegated(log)
        assert next(first) == RECORDS[0]
        first.close()
        assert not log.closed
        for record in log:
            assert record == RECORDS[1]
            break
        iterator = iter(log)
        assert iter(iterator) is iterator is not iter(log)
        assert not hasattr(iterator, "close")
        assert next(log) == RECORDS[2]
        assert list(iterator) == RECORDS[3:]
        assert (list(log), list(iterator)) == ([], [])
    with pytest.raises(ValueError, match="is closed"):
        iter(log)


def test_a_torn_tail_does_not_raise_an_error():
    with cordwood.open(SHORT[:-1]) as reader:
        assert list(reader) == [b"one"]
        assert (reader.outcome.kind, reader.outcome.offset) == ("torn_tail", 10)
        assert [(region.offset, region.end_offset, region.reason) for region in reader.skipped] == [
            (10, 19, "torn_tail")
        ]


@pytest.mark.parametrize("source", [bytes, io.BytesIO], ids=["of a known length", "of unknown length"])
def test_the_stop_policy_treats_damage_as_the_end_of_the_log(source):
    file = SHORT + wrong(LATER).ljust(BLOCK_LEN - len(SHORT), b"x") + LATER
    with cordwood.open(source(file), on_corruption="stop") as reader:
        assert list(reader) == [b"one", b"two"]
        assert (reader.outcome.kind, reader.outcome.offset) == ("stopped", 20)
        regions = [(region.offset, region.end_offset, region.reason) for region in reader.skipped]
    assert regions[0] == (20, BLOCK_LEN, "checksum_mismatch")
    if source is bytes:
        assert regions[1:] == [(BLOCK_LEN, len(file), "not_read")]


def test_returns_damaged_data_when_checksum_verification_is_off():
    file = bytearray(SHORT)
    file[9] ^= 1
    assert list(cordwood.open(file, verify_checksums=False)) == [b"ond", b"two"]


def test_skipped_damage_is_logged(caplog, tmp_path):
    path = tmp_path / "example.log"
    path.write_bytes(fragment(80, b"abc") + SHORT + bytes(BLOCK_LEN - 30) + LATER[:-1])
    with caplog.at_level(logging.DEBUG), cordwood.open(path, on_corruption="skip") as reader:
        list(reader)
    # Neither the zeros nor the torn tail are damage.
    [entry] = caplog.records
    assert (entry.name, entry.levelno) == ("cordwood", logging.WARNING)
    for part in [str(path), "unknown fragment type 80", "10 bytes at offset 0"]:
        assert part in entry.getMessage()


def test_damage_that_raises_an_error_is_not_logged(caplog):
    with cordwood.open(fragment(80, b"abc")) as reader, pytest.raises(cordwood.CorruptionError):
        next(reader)
    assert caplog.records == []


# Closing ---------------------------------------------------------------------------------------


def test_exiting_a_with_block_closes_the_reader(tmp_path):
    path = tmp_path / "example.log"
    path.write_bytes(FILE)
    with cordwood.open(path) as reader:
        assert not reader.closed
    assert reader.closed
    reader.close()
    assert reader.path == str(path)


def test_an_exception_in_a_with_block_closes_the_reader_and_propagates():
    with pytest.raises(KeyError), cordwood.open(FILE) as reader:
        raise KeyError
    assert reader.closed


def test_closing_a_reader_leaves_its_file_object_open(tmp_path):
    source = io.BytesIO(FILE)
    cordwood.open(source).close()
    assert not source.closed


# Values ----------------------------------------------------------------------------------------


def values():
    with cordwood.open(fragment(80, b"abc") + SHORT, on_corruption="skip") as reader:
        return next(reader.records()), (list(reader), reader.skipped[0])[1], reader.outcome


def test_the_repr_shows_the_type_and_its_fields():
    record, region, end = values()
    assert repr(record) == "Record(offset=10, end_offset=20, data=b'one')"
    assert repr(region) == "SkippedRegion(offset=0, end_offset=10, reason='unknown_kind', type_byte=80)"
    assert repr(end) == "Outcome(kind='clean', offset=30)"
    assert (
        str(region)
        == "10 bytes at offset 0: unknown fragment type 80, with a valid checksum: a newer engine may have written it"
    )


def test_the_repr_of_a_reader_contains_its_path(tmp_path):
    assert "Reader" in repr(cordwood.open(b""))
    path = tmp_path / "example.log"
    path.touch()
    assert str(path) in repr(cordwood.open(path))


def test_values_with_equal_fields_compare_and_hash_equal():
    for one, other in zip(values(), values(), strict=True):
        assert one is not other
        assert one == other
        assert hash(one) == hash(other)
        assert len({one, other}) == 1


def test_records_with_different_offsets_or_data_are_not_equal():
    with cordwood.open(SHORT) as reader:
        one, two = reader.records()
    assert one != two
    # The same bytes at another offset are a different record.
    with cordwood.open(reference.encode([b"two", b"two"])) as reader:
        assert len({two, *reader.records()}) == 2
    for value in values():
        assert value != repr(value)
        assert value != 0
        assert value is not None


def test_values_are_immutable():
    for value in values():
        for name in type(value).__match_args__:
            with pytest.raises(AttributeError):
                setattr(value, name, 0)


def test_length_of_a_skipped_region():
    _, region, _ = values()
    assert region.length == 10


def test_attributes_with_fixed_choices_are_enum_members():
    _, region, end = values()
    assert region.reason is cordwood.types.Reason.UNKNOWN_KIND
    assert region.severity is cordwood.types.Severity.CORRUPTION
    assert end.kind is cordwood.types.OutcomeKind.CLEAN
    assert (region.stored_crc, region.computed_crc) == (None, None)


def test_records_regions_and_outcomes_support_positional_patterns_in_match():
    seen = []
    for value in values():
        match value:
            case cordwood.Record(offset, end_offset, data):
                seen.append((offset, end_offset, data))
            case cordwood.SkippedRegion(offset, end_offset, cordwood.types.Reason.UNKNOWN_KIND):
                seen.append((offset, end_offset))
            case cordwood.types.Outcome(cordwood.types.OutcomeKind.CLEAN, offset=at):
                seen.append(at)
    assert seen == [(10, 20, b"one"), (0, 10), 30]
