"""The package against `reference.py`, which does the same in plain Python."""

import io
import logging
import random
from bisect import bisect_left
from itertools import pairwise

import pytest
import reference
from hypothesis import example, given
from hypothesis import strategies as st
from reference import BLOCK_LEN, FIRST, FULL, HEADER_LEN, LAST, MIDDLE
from support import (
    PAYLOAD,
    OnlyRead,
    begin_of,
    end_of,
    merged,
    plain_end,
    plain_record,
    plain_skipped,
    read_events,
    step_on,
    written,
)

import cordwood

# Only a failure makes a repr, and of a file that fails every byte matters.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@pytest.fixture(autouse=True)
def no_log(monkeypatch):
    """Thousands of damaged files, and pytest would keep what is logged of each."""
    monkeypatch.setattr(logging.getLogger("cordwood"), "disabled", True)


# Writing ---------------------------------------------------------------------------------------


class LastWrite:
    """A sink that keeps what it was given last."""

    def write(self, data):
        self.data = data


def filler_len(offset, distance):
    """The length of a record that ends `distance` bytes before a block's end; None if `offset` is there already."""
    left = BLOCK_LEN - offset % BLOCK_LEN
    if left % BLOCK_LEN == distance:
        return None
    if left < HEADER_LEN:
        return BLOCK_LEN - HEADER_LEN - distance
    if left >= HEADER_LEN + distance:
        return left - HEADER_LEN - distance
    return left - HEADER_LEN + BLOCK_LEN - HEADER_LEN - distance


@pytest.mark.parametrize("distance", range(41))
def test_records_of_each_length_at_each_distance_from_the_end_of_a_block(distance):
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


# Logs, good and bad ----------------------------------------------------------------------------

record_lens = st.one_of(
    st.integers(0, 40),
    st.integers(0, 3_000),
    st.integers(BLOCK_LEN - 60, BLOCK_LEN + 20),
    st.integers(0, 3 * BLOCK_LEN),
)


@st.composite
def plain_records(draw):
    length = draw(record_lens)
    begin = draw(st.integers(0, 1000))
    return PAYLOAD[begin : begin + length]


# Payloads that look like something else: zeros, and logs inside of logs.
records = st.one_of(
    plain_records(),
    plain_records(),
    st.builds(bytes, st.integers(0, 200)),
    st.builds(reference.encode, st.lists(plain_records(), max_size=3)),
)


@st.composite
def many_short_records(draw):
    """The usual log: hundreds of records in a block."""
    length_max = draw(st.integers(0, 300))
    begins = random.Random(draw(st.integers(0, 1000)))
    return [
        PAYLOAD[begin : begin + begin % (length_max + 1)]
        for begin in (begins.randrange(10_000) for _ in range(draw(st.integers(0, 600))))
    ]


record_lists = st.one_of(st.lists(records, max_size=8), many_short_records())


@st.composite
def fragment_soups(draw):
    """Fragments of any kind in any order, with valid and invalid checksums, and what may be between them."""
    file = bytearray()
    kinds = st.one_of(st.sampled_from([FULL, FIRST, MIDDLE, LAST]), st.integers(0, 255))
    for _ in range(draw(st.integers(0, 20))):
        left = BLOCK_LEN - len(file) % BLOCK_LEN
        what = draw(st.sampled_from(["short"] * 3 + ["fill"] * 2 + ["run", "block end", "zeros", "bytes"]))
        if what in ("short", "fill") and left >= HEADER_LEN:
            length = draw(st.integers(0, 20)) if what == "short" else left - HEADER_LEN - draw(st.integers(0, 20))
            length = max(0, min(length, left - HEADER_LEN))
            part = bytearray(reference.fragment(draw(kinds), PAYLOAD[len(file) : len(file) + length]))
            if draw(st.integers(0, 9)) == 0:
                part[draw(st.integers(0, 3))] ^= 1
            file += part
        elif what == "run":
            file += b"".join(reference.fragment(FULL, b"run"[: index % 4]) for index in range(draw(st.integers(1, 40))))
        elif what == "zeros":
            file += bytes(draw(st.sampled_from([1, 6, 7, 100, left])))
        elif what == "bytes":
            file += draw(st.binary(max_size=20))
        else:
            file += bytes([draw(st.sampled_from([0, 0, 0, 1]))]) * (left if left < 20 else 0)
    return bytes(file)


@st.composite
def damaged_logs(draw):
    """A good log, and then one to four bad things happen to it."""
    file = bytearray(reference.encode(draw(record_lists)))
    for _ in range(draw(st.integers(1, 4))):
        if file:
            draw(st.sampled_from(DAMAGES))(draw, file)
    return bytes(file)


def some_header(draw, file):
    """The offset of a fragment's header, if there still is one."""
    items = list(reference.fragments(bytes(file), verify_checksums=False))
    return min(draw(st.sampled_from(items)).begin if items else 0, max(0, len(file) - HEADER_LEN))


def flip_a_bit(draw, file):
    file[draw(st.integers(0, len(file) - 1))] ^= 1 << draw(st.integers(0, 7))


def flip_a_bit_of_a_header(draw, file):
    at = some_header(draw, file) + draw(st.integers(0, HEADER_LEN - 1))
    if at < len(file):
        file[at] ^= 1 << draw(st.integers(0, 7))


def cut(draw, file):
    del file[draw(st.integers(0, len(file) - 1)) :]


def cut_in_a_header(draw, file):
    del file[some_header(draw, file) + draw(st.integers(0, HEADER_LEN + 3)) :]


def zero_a_stretch(draw, file):
    begin = draw(st.integers(0, len(file) - 1))
    end = min(len(file), begin + draw(st.sampled_from([1, 7, 100, BLOCK_LEN])))
    file[begin:end] = bytes(end - begin)


def zero_the_rest_of_a_block(draw, file):
    begin = some_header(draw, file)
    end = min(len(file), begin + BLOCK_LEN - begin % BLOCK_LEN)
    file[begin:end] = bytes(end - begin)


def overwrite(draw, file):
    begin = draw(st.integers(0, len(file) - 1))
    new = draw(st.binary(min_size=1, max_size=50))[: len(file) - begin]
    file[begin : begin + len(new)] = new


def change_a_length(draw, file):
    begin = some_header(draw, file)
    file[begin + 4 : begin + 6] = draw(st.integers(0, 0xFFFF)).to_bytes(2, "little")


def let_the_last_length_pass_the_end(draw, file):
    """As a flipped bit does: it looks like a torn tail, but is none."""
    items = list(reference.fragments(bytes(file), verify_checksums=False))
    if items and items[-1].end == len(file) >= items[-1].begin + HEADER_LEN:
        high_byte = items[-1].begin + 5
        file[high_byte] = min(0x7F, file[high_byte] + draw(st.integers(1, 0x7F)))


def change_a_kind(draw, file):
    file[min(len(file) - 1, some_header(draw, file) + 6)] = draw(st.integers(0, 255))


def put_another_fragment_there(draw, file):
    begin = some_header(draw, file)
    length = int.from_bytes(file[begin + 4 : begin + 6], "little")
    payload = bytes(file[begin + HEADER_LEN : begin + HEADER_LEN + length])
    part = reference.fragment(draw(st.integers(0, 255)), payload)[: len(file) - begin]
    file[begin : begin + len(part)] = part


def fill_a_trailer(draw, file):
    for end in range(BLOCK_LEN, len(file) + 1, BLOCK_LEN):
        if draw(st.booleans()):
            file[end - draw(st.integers(1, 6)) : end] = b"trailer"[: draw(st.integers(1, 6))]


def swap_blocks(draw, file):
    blocks = [file[at : at + BLOCK_LEN] for at in range(0, len(file), BLOCK_LEN)]
    file[:] = b"".join(draw(st.permutations(blocks)))


def repeat_a_block(draw, file):
    begin = draw(st.integers(0, (len(file) - 1) // BLOCK_LEN)) * BLOCK_LEN
    file[begin:begin] = file[begin : begin + BLOCK_LEN]


def lose_a_block(draw, file):
    begin = draw(st.integers(0, (len(file) - 1) // BLOCK_LEN)) * BLOCK_LEN
    del file[begin : begin + BLOCK_LEN]


def add_garbage(draw, file):
    file += draw(st.binary(min_size=1, max_size=100))


def add_zeros(draw, file):
    file += bytes(draw(st.sampled_from([1, 6, 7, 8, 1000, BLOCK_LEN, 2 * BLOCK_LEN])))


def add_records(draw, file):
    file += reference.encode(draw(record_lists), len(file))


def add_records_off_the_grid(draw, file):
    file += reference.encode(draw(record_lists))


DAMAGES = [
    flip_a_bit,
    flip_a_bit_of_a_header,
    cut,
    cut_in_a_header,
    zero_a_stretch,
    zero_the_rest_of_a_block,
    overwrite,
    change_a_length,
    let_the_last_length_pass_the_end,
    change_a_kind,
    put_another_fragment_there,
    fill_a_trailer,
    swap_blocks,
    repeat_a_block,
    lose_a_block,
    add_garbage,
    add_zeros,
    add_records,
    add_records_off_the_grid,
]

files = st.one_of(
    damaged_logs(),
    damaged_logs(),
    fragment_soups(),
    st.binary(max_size=200),
    st.builds(reference.encode, record_lists),
)
options = st.fixed_dictionaries(
    {},
    optional={
        "verify_checksums": st.booleans(),
        "record_len_max": st.one_of(st.integers(0, 50), st.integers(0, 3 * BLOCK_LEN)),
    },
)


@st.composite
def files_with_ranges(draw):
    """A file and a range of it, cut anywhere, or near an event's edge, or at a block's."""
    file = draw(files)
    edges = [begin_of(event) for event in reference.events(file) if not isinstance(event, reference.End)]
    edges += range(0, len(file) + 1, BLOCK_LEN)
    near_edges = st.builds(lambda edge, off: max(0, edge + off), st.sampled_from(edges), st.integers(-8, 8))
    offsets = st.one_of(st.integers(0, len(file) + 10), near_edges)
    return file, draw(st.fixed_dictionaries({}, optional={"start": offsets, "end": offsets}))


def expected_events(file, **options):
    *events, end = reference.events(file, **options)
    return events, end


# Reading ---------------------------------------------------------------------------------------


@given(record_lists)
def test_what_is_written_is_what_the_reference_writes(records):
    assert written(records) == reference.encode(records)


@given(record_lists)
def test_the_writer_tells_the_offset_of_each_record(records):
    with cordwood.Writer(io.BytesIO()) as writer:
        offsets = [writer.append(record) for record in records]
        assert offsets == reference.record_offsets(records)
        assert writer.tell() == len(reference.encode(records))


@given(record_lists)
def test_what_the_reference_writes_is_read(records):
    with cordwood.open(reference.encode(records)) as reader:
        found = list(reader.records())
        assert [record.data for record in found] == records
        assert [record.offset for record in found] == reference.record_offsets(records)
        assert reader.skipped == ()


@given(record_lists)
def test_the_reference_reads_what_is_written(records):
    events, end = expected_events(written(records))
    assert [event.data for event in events] == records
    assert end.kind == "clean"


@given(files_with_ranges(), options, st.sampled_from(["skip", "stop"]))
def test_events_of_damaged_files(file_with_range, options, policy):
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
    """The region that an exception is about, and that the exception is the right one for it."""
    assert error.path is None
    is_too_large = error.reason == "record_too_large"
    assert type(error) is (cordwood.RecordTooLargeError if is_too_large else cordwood.CorruptionError)
    return reference.Skipped(error.offset, error.offset + error.length, str(error.reason))


def as_event(item):
    return plain_error(item) if isinstance(item, Exception) else plain_record(item)


@given(files_with_ranges(), options)
def test_raised_damage_is_the_damage_that_the_reference_finds(file_with_range, options):
    file, file_range = file_with_range
    options |= file_range
    expected, end = expected_events(file, **options)
    with cordwood.open(file, dialect="leveldb", **options) as reader:
        found = [as_event(item) for item in step_on(reader.records())]
        assert found == [event for event in expected if is_reported(event)]
        assert plain_end(reader) == end
        # What was raised is listed too.
        skipped = [event for event in expected if isinstance(event, reference.Skipped)]
        assert merged(plain_skipped(reader)) == merged(skipped)


@given(files, options, st.integers(0, 100_000))
def test_batches_hold_the_same_records_between_the_same_damage(file, options, len_max):
    expected, _ = expected_events(file, **options)
    found = []
    with cordwood.open(file, dialect="leveldb", **options) as reader:
        for item in step_on(reader.batches(len_max=len_max)):
            found += item if isinstance(item, list) else [plain_error(item)]
    assert found == [getattr(event, "data", event) for event in expected if is_reported(event)]


@given(files, options, st.integers(0, 100_000), st.integers(1, 4))
def test_packs_hold_the_same_records_between_the_same_damage(file, options, len_max, threads):
    expected, end = expected_events(file, **options)
    found, offsets = [], []
    with cordwood.open(file, dialect="leveldb", **options) as reader:
        for item in step_on(reader.record_batches(target_len=len_max, threads=threads)):
            if isinstance(item, cordwood.RecordBatch):
                assert len(item.offsets) == len(item) + 1 == len(item.record_offsets) + 1
                assert item.offsets[0] == 0
                assert item.offsets[-1] == len(item.data)
                assert item.offsets[-2] < max(len_max, 1)
                found += [bytes(item.data[begin:end]) for begin, end in pairwise(item.offsets)]
                offsets += item.record_offsets.tolist()
                assert item.end_offset <= reader.tell()
            else:
                found.append(plain_error(item))
        assert plain_end(reader) == end
        skipped = [event for event in expected if isinstance(event, reference.Skipped)]
        assert merged(plain_skipped(reader)) == merged(skipped)
    assert found == [getattr(event, "data", event) for event in expected if is_reported(event)]
    assert offsets == [event.offset for event in expected if isinstance(event, reference.Record)]


@given(files, st.one_of(st.integers(0, 50), st.integers(0, 100_000)))
def test_batches_are_no_longer_than_asked_for(file, len_max):
    with cordwood.open(file, dialect="leveldb", on_corruption="skip") as reader:
        for batch in reader.batches(len_max=len_max):
            assert len(batch) == 1 or (batch and sum(map(len, batch)) <= len_max)


@given(files, options, st.integers(50, 70_000), st.sampled_from(["skip", "stop"]))
def test_short_reads_change_nothing(file, options, len_max, policy):
    expected, end = expected_events(file, stop=policy == "stop", **options)
    # The length of the file is known only when it has been read.
    expected = [event for event in expected if getattr(event, "reason", None) != "not_read"]
    with cordwood.open(OnlyRead(file, len_max), dialect="leveldb", on_corruption=policy, **options) as reader:
        assert read_events(reader) == merged(expected)
        assert plain_end(reader) == end


@given(files)
def test_checksums_of_a_mismatch_are_those_of_the_file(file):
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
def test_no_byte_is_unaccounted_for(file, options, policy):
    with cordwood.open(file, dialect="leveldb", on_corruption=policy, **options) as reader:
        found = [plain_record(item) for item in step_on(reader.records()) if isinstance(item, cordwood.Record)]
        events = sorted([*found, *plain_skipped(reader)], key=begin_of)
    spans = [(0, 0), *((begin_of(event), end_of(event)) for event in events), (len(file), len(file))]
    assert all(begin < end for begin, end in spans[1:-1])
    items = reference.fragments(file, verify_checksums=options.get("verify_checksums", True))
    parts = [item for item in items if isinstance(item, reference.Fragment)]
    unfinished = {part.end for part in parts if part.kind in (FIRST, MIDDLE)}
    for (_, begin), (end, _) in pairwise(spans):
        # What lies between two spans is a trailer: zeros, unless it belongs to a record that continues after it.
        assert begin <= end
        assert begin in unfinished or not any(file[begin:end])
        assert end - begin < HEADER_LEN
        assert begin == end or end % BLOCK_LEN == 0 or end == len(file)
        assert begin // BLOCK_LEN == max(begin, end - 1) // BLOCK_LEN
        assert begin == end or begin % BLOCK_LEN > BLOCK_LEN - HEADER_LEN
    begins = [part.begin for part in parts]
    for record in found:
        own = parts[bisect_left(begins, record.offset) : bisect_left(begins, record.end_offset)]
        assert len(record.data) == sum(len(part.payload) for part in own)


@given(files, options, st.data())
def test_adjacent_ranges_give_the_whole(file, options, data):
    cuts = data.draw(st.lists(st.integers(1, len(file) + 2), max_size=5))
    edges = [0, *sorted(cuts), None]
    parts = []
    for start, end in pairwise(edges):
        with cordwood.open(file, dialect="leveldb", on_corruption="skip", start=start, end=end, **options) as reader:
            parts += read_events(reader)
    with cordwood.open(file, dialect="leveldb", on_corruption="skip", **options) as reader:
        assert merged(parts) == read_events(reader)


@given(files, st.integers(0, 20))
def test_reading_goes_on_at_a_record_as_if_it_had_never_stopped(file, index):
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
def test_each_prefix_of_a_log_gives_its_whole_records_and_no_error(length):
    records = [PAYLOAD[:1000], b"", PAYLOAD[:40_000], PAYLOAD[:24_000], b"x"]
    file = reference.encode(records)[:length]
    expected, end = expected_events(file)
    with cordwood.open(file, dialect="leveldb") as reader:
        assert [plain_record(record) for record in reader.records()] == [
            event for event in expected if isinstance(event, reference.Record)
        ]
        assert plain_end(reader) == end
