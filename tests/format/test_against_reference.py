"""The package against `reference.py`, which does the same in plain Python."""

import io
from bisect import bisect_left
from itertools import pairwise

import pytest
import reference
from hypothesis import example, given
from hypothesis import strategies as st
from random_logs import files, files_with_ranges, options, record_lists
from reference import BLOCK_LEN, FIRST, HEADER_LEN, MIDDLE
from support import (
    PAYLOAD,
    OnlyRead,
    end_of,
    merged,
    plain_end,
    plain_record,
    plain_skipped,
    read_events,
    start_of,
    step_on,
    written,
)

import cordwood

# A repr is made only on failure, and then every byte of the file matters.
pytestmark = [pytest.mark.filterwarnings("ignore:Generating overly large repr"), pytest.mark.usefixtures("no_log")]


# Writing ---------------------------------------------------------------------------------------


class LastWrite:
    """A sink that keeps only the last write."""

    def write(self, data):
        self.data = bytes(data)


def filler_len(offset, distance):
    """The length of a record at `offset` that ends `distance` bytes before a block's end; None if `offset` does."""
    left = BLOCK_LEN - offset % BLOCK_LEN
    if left % BLOCK_LEN == distance:
        return None
    if left < HEADER_LEN:
        return BLOCK_LEN - HEADER_LEN - distance
    if left >= HEADER_LEN + distance:
        return left - HEADER_LEN - distance
    return left - HEADER_LEN + BLOCK_LEN - HEADER_LEN - distance


@pytest.mark.parametrize("distance", range(41))
def test_records_of_every_length_near_a_block_end_match_the_reference(distance):
    sink = LastWrite()
    with cordwood.Writer(sink) as writer:
        for length in range(33_001):
            filler = filler_len(writer.tell(), distance)
            if filler is not None:
                writer.append(PAYLOAD[:filler])
            offset = writer.tell()
            assert (offset + distance) % BLOCK_LEN == 0
            record = PAYLOAD[length : 2 * length]
            writer.append(record)
            writer.flush()
            expected = reference.encode([record], offset)
            assert sink.data.endswith(expected), length
            assert writer.tell() == offset + len(expected), length


def expected_events(file, **options):
    *events, end = reference.events(file, **options)
    return events, end


# Reading ---------------------------------------------------------------------------------------


@given(record_lists)
def test_writes_the_same_bytes_as_the_reference(records):
    assert written(records) == reference.encode(records)


@given(record_lists)
def test_the_writer_returns_the_offset_of_each_record(records):
    with cordwood.Writer(io.BytesIO()) as writer:
        offsets = [writer.append(record) for record in records]
        assert offsets == reference.record_offsets(records)
        assert writer.tell() == len(reference.encode(records))


@given(record_lists)
def test_reads_logs_written_by_the_reference_implementation(records):
    with cordwood.open(reference.encode(records)) as reader:
        found = list(reader.records())
        assert [record.data for record in found] == records
        assert [record.offset for record in found] == reference.record_offsets(records)
        assert reader.skipped == ()


@given(record_lists)
def test_the_reference_reads_records_written_by_the_library(records):
    events, end = expected_events(written(records))
    assert [event.data for event in events] == records
    assert end.kind == "clean"


@pytest.mark.cell("one-file", "whole range")
@given(files_with_ranges(), options, st.sampled_from(["skip", "stop"]))
def test_the_records_and_regions_of_a_damaged_file_match_the_reference(file_with_range, options, policy):
    file, file_range = file_with_range
    options |= file_range
    expected, end = expected_events(file, stop=policy == "stop", **options)
    with cordwood.open(file, dialect="leveldb", on_corruption=policy, **options) as reader:
        assert read_events(reader) == merged(expected)
        assert plain_end(reader) == end
        assert reader.tell() == end.offset


def is_reported(event):
    return isinstance(event, reference.Record) or event.reason in reference.CORRUPTION


def plain_error(error):
    """The region that an exception reports; checks that the exception has the right type."""
    assert error.path is None
    is_too_large = error.reason == "record_too_large"
    assert type(error) is (cordwood.RecordTooLargeError if is_too_large else cordwood.CorruptionError)
    return reference.Skipped(error.offset, error.offset + error.length, str(error.reason))


def as_event(item):
    return plain_error(item) if isinstance(item, Exception) else plain_record(item)


@given(files_with_ranges(), options)
def test_raises_an_error_for_each_damaged_region_found_by_the_reference(file_with_range, options):
    file, file_range = file_with_range
    options |= file_range
    expected, end = expected_events(file, **options)
    with cordwood.open(file, dialect="leveldb", **options) as reader:
        found = [as_event(item) for item in step_on(reader.records())]
        assert found == [event for event in expected if is_reported(event)]
        assert plain_end(reader) == end
        # Raised errors are also listed.
        skipped = [event for event in expected if isinstance(event, reference.Skipped)]
        assert merged(plain_skipped(reader)) == merged(skipped)


@pytest.mark.cell("one-file", "threads batches")
@given(files, options, st.integers(0, 100_000), st.integers(1, 4))
def test_record_batches_match_the_reference(file, options, len_max, threads):
    expected, end = expected_events(file, **options)
    found, offsets = [], []
    with cordwood.open(file, dialect="leveldb", **options) as reader:
        for item in step_on(reader.record_batches(target_len=len_max, threads=threads)):
            if isinstance(item, cordwood.RecordBatch):
                assert len(item.offsets) == len(item) + 1 == len(item.record_offsets) + 1
                assert item.offsets[0] == 0
                assert item.offsets[-1] == len(item.data)
                assert item.offsets[-2] < max(len_max, 1)
                found += [bytes(item.data[start:end]) for start, end in pairwise(item.offsets)]
                offsets += item.record_offsets.tolist()
                assert item.end_offset <= reader.tell()
            else:
                found.append(plain_error(item))
        assert plain_end(reader) == end
        skipped = [event for event in expected if isinstance(event, reference.Skipped)]
        assert merged(plain_skipped(reader)) == merged(skipped)
    assert found == [getattr(event, "data", event) for event in expected if is_reported(event)]
    assert offsets == [event.offset for event in expected if isinstance(event, reference.Record)]


@given(files, options, st.integers(50, 70_000), st.sampled_from(["skip", "stop"]))
def test_short_reads_return_the_same_records_and_regions(file, options, len_max, policy):
    expected, end = expected_events(file, stop=policy == "stop", **options)
    # The length of the file is known only after it has been read.
    expected = [event for event in expected if getattr(event, "reason", None) != "not_read"]
    with cordwood.open(OnlyRead(file, len_max), dialect="leveldb", on_corruption=policy, **options) as reader:
        assert read_events(reader) == merged(expected)
        assert plain_end(reader) == end


@given(files)
def test_a_checksum_mismatch_reports_the_stored_checksum(file):
    with cordwood.open(file, dialect="leveldb") as reader:
        for error in step_on(reader):
            if isinstance(error, bytes):
                continue
            if error.reason != "checksum_mismatch":
                assert getattr(error, "stored_crc", None) is None
                assert getattr(error, "computed_crc", None) is None
                continue
            stored, length, _ = reference.HEADER.unpack_from(file, error.offset)
            assert error.stored_crc == reference.unmask(stored)
            assert error.computed_crc == reference.crc32c(file[error.offset + 6 : error.offset + HEADER_LEN + length])
        mismatches = [region for region in reader.skipped if region.reason == "checksum_mismatch"]
        for region in mismatches:
            assert region.stored_crc == reference.unmask(reference.HEADER.unpack_from(file, region.offset)[0])


# Promises that need no reference ---------------------------------------------------------------


@given(files, options, st.sampled_from(["raise", "skip", "stop"]))
def test_every_byte_belongs_to_a_record_a_region_or_the_format(file, options, policy):
    with cordwood.open(file, dialect="leveldb", on_corruption=policy, **options) as reader:
        found = [plain_record(item) for item in step_on(reader.records()) if isinstance(item, cordwood.Record)]
        events = sorted([*found, *plain_skipped(reader)], key=start_of)
    spans = [(0, 0), *((start_of(event), end_of(event)) for event in events), (len(file), len(file))]
    assert all(start < end for start, end in spans[1:-1])
    items = reference.fragments(file, verify_checksums=options.get("verify_checksums", True))
    parts = [item for item in items if isinstance(item, reference.Fragment)]
    unfinished = {part.end for part in parts if part.kind in (FIRST, MIDDLE)}
    for (_, start), (end, _) in pairwise(spans):
        # Between two spans there is only a trailer: zeros, unless it is part of a record that continues after it.
        assert start <= end
        assert start in unfinished or not any(file[start:end])
        assert end - start < HEADER_LEN
        assert start == end or end % BLOCK_LEN == 0 or end == len(file)
        assert start // BLOCK_LEN == max(start, end - 1) // BLOCK_LEN
        assert start == end or start % BLOCK_LEN > BLOCK_LEN - HEADER_LEN
    starts = [part.start for part in parts]
    for record in found:
        own = parts[bisect_left(starts, record.offset) : bisect_left(starts, record.end_offset)]
        assert len(record.data) == sum(len(part.payload) for part in own)


@given(files, options, st.data())
def test_adjacent_ranges_add_up_to_the_whole_log(file, options, data):
    cuts = data.draw(st.lists(st.integers(0, len(file)), max_size=5))
    edges = [0, *sorted(cuts), None]
    parts = []
    for start, end in pairwise(edges):
        with cordwood.open(file, dialect="leveldb", on_corruption="skip", start=start, end=end, **options) as reader:
            parts += read_events(reader)
    with cordwood.open(file, dialect="leveldb", on_corruption="skip", **options) as reader:
        assert merged(parts) == read_events(reader)


@given(files, st.integers(0, 20))
def test_reading_can_resume_at_any_record(file, index):
    with cordwood.open(file, dialect="leveldb", on_corruption="skip") as reader:
        whole = list(reader.records())
    if index < len(whole):
        with cordwood.open(file, dialect="leveldb", on_corruption="skip") as reader:
            reader.seek(whole[index].offset)
            assert list(reader.records()) == whole[index:]
            reader.seek(whole[index].end_offset)
            assert list(reader.records()) == whole[index + 1 :]


@example(BLOCK_LEN)
@given(st.integers(1, 2 * BLOCK_LEN))
def test_any_prefix_of_a_log_yields_its_complete_records(length):
    records = [PAYLOAD[:1000], b"", PAYLOAD[:40_000], PAYLOAD[:24_000], b"x"]
    file = reference.encode(records)[:length]
    expected, end = expected_events(file)
    with cordwood.open(file, dialect="leveldb") as reader:
        assert [plain_record(record) for record in reader.records()] == [
            event for event in expected if isinstance(event, reference.Record)
        ]
        assert plain_end(reader) == end
