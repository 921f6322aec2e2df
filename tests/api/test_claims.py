"""Ranges of a log that are cut off while they are read: the loop in the splittable DoFn of `cordwood.beam`.

Nothing here needs Beam. The tests in `tests/pipelines` do the same with Beam's own trackers and in pipelines.
"""

import io
from contextlib import contextmanager

import pytest
from shortened_ranges import DIALECTS, Splitting, Tracker, merged, random_log, seeded

import cordwood
from cordwood import BLOCK_LEN
from cordwood._claims import WHOLE_LEN, ClaimedRange


def opens(data, **options):
    @contextmanager
    def open_range(start, end):
        with cordwood.Reader(data, start=start, end=end, **options) as reader:
            yield reader

    return open_range


def read_in_parts(rng, ranges, open_range):
    """Reads the ranges, and all that is cut off them meanwhile. Returns records, regions, and the number of cuts."""
    records, regions, cut_count = [], [], 0
    while ranges:
        first, end = ranges.pop()
        tracker = Tracker(first, end)
        splitting = Splitting(rng, tracker, [])
        claimed = ClaimedRange(open_range, first, end)
        for batch, count in claimed.batches(splitting.try_claim, target_len=rng.choice([1, 50_000, 1 << 18])):
            assert count > 0
            records += zip(batch.record_offsets[:count].tolist(), batch[:count], strict=True)
        tracker.check_done()
        found = claimed.findings(tracker.stop)
        assert found.skipped_len == sum(region.length for region in found.skipped)
        regions += found.skipped
        ranges += splitting.rests
        cut_count += len(splitting.rests)
    return sorted(records, key=lambda record: record[0]), merged(regions), cut_count


@pytest.mark.cell("one-file packed", "beam")
@pytest.mark.parametrize("on_corruption", ["skip", "salvage"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_splitting_at_any_time_neither_loses_nor_repeats_a_record(dialect, on_corruption, no_log):
    cut_count = damaged_count = 0
    for seed in range(100):
        rng = seeded(dialect, on_corruption, seed)
        data = random_log(rng, dialect)
        options = {"dialect": dialect, "on_corruption": on_corruption}
        with cordwood.Reader(data, **options) as reader:
            expected = [(record.offset, record.data) for record in reader.records()]
        block_count = -(-len(data) // BLOCK_LEN)
        step = rng.choice([1, 3, block_count])
        ranges = [(first, min(first + step, block_count)) for first in range(0, block_count, step)]
        records, regions, count = read_in_parts(rng, ranges, opens(data, **options))
        assert records == expected
        assert regions == merged(reader.skipped)
        cut_count += count
        damaged_count += not reader.ok
    assert cut_count > 500
    assert damaged_count > 50


def log_damaged_in_blocks(*blocks):
    """A log of seven blocks, each with many records; the first one that starts in each of these blocks is damaged."""
    with cordwood.open(file := io.BytesIO(), "w") as writer:
        offsets = [writer.append(bytes(1_000)) for _ in range(200)]
    data = bytearray(file.getvalue())
    for block in blocks:
        data[min(offset for offset in offsets if offset >= block * BLOCK_LEN)] ^= 1
    return bytes(data)


def test_reading_can_resume_after_a_checkpoint(no_log):
    data = log_damaged_in_blocks(2)
    first, firsts, records = 0, [], []
    while first < 7:
        firsts.append(first)
        tracker = Tracker(first, 7)
        claimed = ClaimedRange(opens(data, on_corruption="salvage"), first, 7)
        for batch, count in claimed.batches(tracker.try_claim, target_len=1):
            records += batch[:count]
            # All blocks that have not been claimed are left to the next reader.
            tracker.try_split(0)
        tracker.check_done()
        first = tracker.stop
    with cordwood.Reader(data, on_corruption="salvage") as reader:
        assert records == list(reader)
    assert firsts == [*range(7)]


@pytest.mark.cell("numbered", "beam")
@pytest.mark.parametrize("dialect", ["rocksdb", "pebble", "recyclable"])
def test_an_unsplittable_log_is_read_as_a_single_claim(dialect):
    data = random_log(seeded(dialect), dialect, log_number=7)
    tracker = Tracker(0, 1)
    claimed = ClaimedRange(opens(data, dialect=dialect, log_number=7, on_corruption="skip"), 0, 1, WHOLE_LEN)
    records = []
    for batch, count in claimed.batches(tracker.try_claim):
        records += batch[:count]
        assert tracker.try_split(0) is None
    tracker.check_done()
    with cordwood.Reader(data, dialect=dialect, log_number=7, on_corruption="skip") as reader:
        assert records == list(reader)
    assert claimed.findings(1).skipped == reader.skipped


@pytest.mark.parametrize(
    ("stop", "damaged_blocks", "read_ranges"),
    [(7, [0, 4], [(0, 7)]), (5, [0, 4], [(0, 7)]), (4, [0], [(0, 7), (0, 4)])],
    ids=["not cut", "cut after the damage", "cut before damage"],
)
def test_a_range_is_read_again_if_it_is_split_before_a_damaged_block(stop, damaged_blocks, read_ranges, no_log):
    open_range = opens(log_damaged_in_blocks(0, 4), on_corruption="salvage")
    ranges = []

    def noted(start, end):
        ranges.append((start // BLOCK_LEN, end // BLOCK_LEN))
        return open_range(start, end)

    claimed = ClaimedRange(noted, 0, 7)
    for _ in claimed.batches(Tracker(0, stop).try_claim):
        pass
    assert [region.offset // BLOCK_LEN for region in claimed.findings(stop).skipped] == damaged_blocks
    assert ranges == read_ranges


def test_a_range_without_records_is_claimed_as_a_whole():
    with cordwood.open(file := io.BytesIO(), "w") as writer:
        writer.append(bytes(5 * BLOCK_LEN))
    tracker = Tracker(2, 4)
    claimed = ClaimedRange(opens(file.getvalue()), 2, 4)
    assert list(claimed.batches(tracker.try_claim)) == []
    tracker.check_done()
    assert claimed.findings(4).skipped == ()
