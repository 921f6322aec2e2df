"""Segmented logs against `reference.py`, which reads them in plain Python."""

import tempfile
from pathlib import Path

import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from random_logs import files, record_lists
from support import merged, plain_end, plain_record, read_events, start_of

import cordwood

pytestmark = pytest.mark.usefixtures("no_log")


def directory_of(segments, parent):
    """A directory with these files, by the log offset at which each starts."""
    directory = Path(parent, "orders")
    directory.mkdir()
    for offset, data in segments.items():
        (directory / f"{offset:020}.log").write_bytes(data)
    return directory


@st.composite
def healthy(draw):
    """The files of a log that was rotated a few times, and maybe pruned."""
    segments, offset = {}, draw(st.integers(0, 100_000))
    for records in draw(st.lists(record_lists.filter(any), min_size=1, max_size=4)):
        segments[offset] = reference.encode(records)
        offset += len(segments[offset])
    return segments


@st.composite
def broken(draw):
    """Any files, each of which may be shorter or longer than the name of the next one says."""
    segments, offset = {}, draw(st.integers(0, 100_000))
    for data in draw(st.lists(files, min_size=1, max_size=4)):
        segments[offset] = data
        wrong_by = draw(st.sampled_from([0, 0, 1, -1, 7, 40_000, -40_000]))
        offset = max(offset + 1, offset + len(data) + wrong_by)
    return segments


def expected(segments, **how):
    *events, end = reference.events_of_segments(segments, **how)
    return merged(sorted(events, key=lambda event: (start_of(event), isinstance(event, reference.Skipped)))), end


@settings(max_examples=40)
@given(healthy())
def test_reads_all_segments_in_order(segments):
    with tempfile.TemporaryDirectory() as parent:
        directory = directory_of(segments, parent)
        events, end = expected(segments)
        with cordwood.open(directory, dialect="leveldb") as reader:
            assert read_events(reader) == events
            assert plain_end(reader) == end
            assert reader.ok


@pytest.mark.cell("segmented", "whole")
@pytest.mark.parametrize("policy", ["skip", "salvage"])
@settings(max_examples=40)
@given(broken())
def test_a_break_between_two_segments_is_reported_as_one_region(policy, segments):
    with tempfile.TemporaryDirectory() as parent:
        directory = directory_of(segments, parent)
        events, end = expected(segments, salvage=policy == "salvage")
        unmarked = [
            reference.Record(event.offset, event.end_offset, event.data)
            if isinstance(event, reference.Record)
            else event
            for event in events
        ]
        with cordwood.open(directory, dialect="leveldb", on_corruption=policy) as reader:
            assert read_events(reader) == unmarked
            assert plain_end(reader) == end


@pytest.mark.cell("segmented", "range threads batches")
@settings(max_examples=40)
@given(broken(), st.data())
def test_reader_opened_at_a_record_offset_returns_all_later_data(segments, data):
    with tempfile.TemporaryDirectory() as parent:
        directory = directory_of(segments, parent)
        records = [event for event in expected(segments)[0] if isinstance(event, reference.Record)]
        for _ in range(3 if records else 0):
            index = data.draw(st.integers(0, len(records) - 1))
            start = records[index].offset
            with cordwood.open(directory, dialect="leveldb", on_corruption="skip", start=start) as reader:
                assert [plain_record(record) for record in reader.records()] == records[index:]
                reader.seek(start)
                batches = list(reader.record_batches(threads=2))
                assert [record for batch in batches for record in batch] == [record.data for record in records[index:]]
