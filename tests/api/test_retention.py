"""`open(directory, "a", segment_len=..., retention_bytes=..., retention_time=...)`: which segments a switch removes."""

import os
import time

import pytest

import cordwood

NUMBERS = [b"%03d" % number for number in range(100)]
"""Ten of them, with their headers, fill a segment of 100 bytes."""


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "orders"


def opened(directory, **options):
    return cordwood.open(directory, "a", **{"segment_len": 100} | options)


def starts(directory):
    return sorted(int(path.stem) for path in directory.glob("*.log"))


def set_ages(directory, ages):
    """Sets when segments were last changed: so many seconds ago, or, if negative, in the future."""
    now = time.time()
    for start, age in ages.items():
        os.utime(directory / f"{start:020}.log", (now - age, now - age))


def test_starting_a_segment_removes_the_oldest_segments_to_enforce_retention_bytes(directory):
    with opened(directory, retention_bytes=150) as writer:
        writer.extend(NUMBERS[:35])
        assert starts(directory) == [100, 200, 300]
        assert writer.first_offset == 100
        assert writer.rotate() == 350
        assert starts(directory) == [200, 300, 350]
        writer.extend(NUMBERS[35:45])
        assert writer.rotate() == 450
        assert starts(directory) == [300, 350, 450]
    assert list(cordwood.open(directory)) == NUMBERS[30:45]


def test_starting_a_segment_removes_expired_segments(directory):
    with opened(directory, retention_time=3600) as writer:
        writer.extend(NUMBERS[:35])
        set_ages(directory, {0: 7200, 100: 7200, 200: 60, 300: 7200})
        assert starts(directory) == [0, 100, 200, 300]
        writer.rotate()
        assert starts(directory) == [200, 300, 350]


def test_starting_a_segment_also_removes_segments_from_earlier_processes(directory):
    with opened(directory) as writer:
        writer.extend(NUMBERS[:35])
    set_ages(directory, dict.fromkeys((0, 100, 200, 300), 7200))
    with opened(directory, retention_time=3600) as writer:
        assert starts(directory) == [0, 100, 200, 300]
        writer.rotate()
        assert starts(directory) == [350]


def test_setting_the_clock_back_does_not_remove_segments(directory):
    """The first segment was written before that: by the new time, it is of the future."""
    with opened(directory, retention_time=3600) as writer:
        writer.extend(NUMBERS[:35])
        set_ages(directory, {0: -7200, 100: 7200, 200: 7200})
        writer.rotate()
        assert starts(directory) == [0, 100, 200, 300, 350]


def test_a_segment_is_removed_once_it_exceeds_either_limit(directory):
    with opened(directory, retention_bytes=1000, retention_time=3600) as writer:
        writer.extend(NUMBERS[:35])
        set_ages(directory, {0: 7200})
        writer.rotate()
        assert starts(directory) == [100, 200, 300, 350]
    with opened(directory, retention_bytes=0, retention_time=3600) as writer:
        writer.append(NUMBERS[35])
        writer.rotate()
        assert starts(directory) == [360]


def test_a_follower_overtaken_by_retention_reports_the_first_available_offset(directory):
    with opened(directory, retention_bytes=0) as writer, cordwood.follow(directory, timeout=0) as follower:
        writer.extend(NUMBERS[:5])
        assert list(follower) == NUMBERS[:5]
        position = follower.position()
        writer.extend(NUMBERS[5:35])
        assert starts(directory) == [300]
        # On systems that let a file be removed while it is read, the follower still has all of it.
        assert [next(follower) for _ in range(5)] == NUMBERS[5:10]
        with pytest.raises(cordwood.LogTruncatedError) as raised:
            list(follower)
        assert raised.value.first_offset == 300
    for start in (position, position.offset):
        with pytest.raises(cordwood.LogTruncatedError) as raised:
            list(cordwood.follow(directory, start=start, timeout=0))
        assert raised.value.first_offset == 300
    with cordwood.follow(directory, start=300, timeout=0) as follower:
        assert list(follower) == NUMBERS[30:35]


KINDS = {
    "one-file": ({"segment_len": None}, "pass segment_len"),
    "segmented": ({}, None),
    "packed": ({"dialect": "packed"}, None),
    "numbered": ({"dialect": "rocksdb", "log_number": 7}, "never appended to|not written in segments"),
    "compressed": ({"dialect": "rocksdb", "compression": "zstd"}, "never appended to|not written in segments"),
    "remote": ({}, "URLs can only be read"),
}


@pytest.mark.cell("*", "retention")
@pytest.mark.parametrize("kind", KINDS)
def test_retention_requires_a_segmented_log(directory, kind):
    options, refused = KINDS[kind]
    sink = "memory://orders" if kind == "remote" else directory
    if refused:
        with pytest.raises((ValueError, cordwood.DialectError), match=refused):
            opened(sink, retention_bytes=150, **options)
        assert not directory.exists()
        return
    with opened(sink, retention_bytes=150, **options) as writer:
        for record in NUMBERS:
            writer.append(record)
        assert writer.tell() - 350 <= writer.first_offset <= writer.tell() - 150
    kept = list(cordwood.open(directory))
    assert 0 < len(kept) < len(NUMBERS)
    assert kept == NUMBERS[-len(kept) :]


def test_invalid_option_values_are_rejected_before_a_file_is_created(directory):
    for options in ({"retention_bytes": 1}, {"retention_time": 1}):
        with pytest.raises(ValueError, match="for a segmented log: pass segment_len"):
            cordwood.open(directory, "a", **options)
        with pytest.raises(TypeError, match="is an option for writing"):
            cordwood.open(directory, **options)
    with pytest.raises(OverflowError):
        opened(directory, retention_bytes=-1)
    for time_ in (-1, float("nan")):
        with pytest.raises(ValueError, match="retention_time must be a number of seconds"):
            opened(directory, retention_time=time_)
    assert not directory.exists()
