"""What a hostile file or argument cannot do: fill memory, flood the logger, start any number of threads."""

import logging

import pytest
import reference
from reference import MIDDLE, fragment

import cordwood

COUNT = 200_000
EMPTY = reference.encode([b""] * COUNT)


@pytest.mark.parametrize("step", ["batches", "packs"])
def test_batches_and_packs_of_empty_records_are_bounded(step):
    lens = [len(batch) for batch in getattr(cordwood.Reader(EMPTY), step)(len_max=262_144)]
    assert max(lens) == 65_536
    assert sum(lens) == COUNT


def test_packs_of_threads_are_bounded(tmp_path):
    path = tmp_path / "empty.log"
    path.write_bytes(EMPTY)
    with cordwood.Reader(path) as reader:
        lens = [len(pack) for pack in reader.packs(len_max=262_144, threads=2)]
    assert max(lens) <= 65_536
    assert sum(lens) == COUNT


def test_a_pack_of_short_records_holds_len_max_bytes():
    # The bound on the number does not make packs of the usual records smaller.
    records = [b"0123456789abcdef"] * 300_000
    packs = list(cordwood.Reader(reference.encode(records)).packs())
    assert [len(pack.data) for pack in packs] == [4 << 20, 300_000 * 16 - (4 << 20)]


@pytest.mark.parametrize("threads", [0, 257, 1 << 16, 1 << 40, 1 << 60, (1 << 64) - 1])
def test_threads_are_1_to_256(threads):
    reader = cordwood.Reader(EMPTY)
    for call in (
        lambda: reader.packs(threads=threads),
        lambda: cordwood.verify(EMPTY, threads=threads),
        lambda: cordwood.stat(EMPTY, threads=threads),
    ):
        with pytest.raises(ValueError, match="threads must be from 1 to 256"):
            call()


@pytest.mark.parametrize("threads", [1, 2, 255, 256])
def test_so_many_threads_read_the_same(threads):
    assert cordwood.verify(EMPTY, threads=threads).record_count == COUNT
    assert sum(len(pack) for pack in cordwood.Reader(EMPTY).packs(threads=threads)) == COUNT


# The logger ------------------------------------------------------------------------------------


def messages(caplog):
    return [record.getMessage() for record in caplog.records]


# Each is a region of its own, and in one block.
MIDDLES = fragment(MIDDLE, b"") * 3000


def test_the_logger_is_told_of_ten_regions_and_a_sum(caplog):
    caplog.set_level(logging.WARNING, logger="cordwood")
    with cordwood.Reader(MIDDLES, on_corruption="skip") as reader:
        assert list(reader) == []
        told = messages(caplog)
        assert len(told) == 11
        assert told[10] == "log: skipped 2990 more regions, 20930 bytes"
        # Once.
        assert list(reader) == []
        assert len(messages(caplog)) == 11
    assert len(messages(caplog)) == 11


@pytest.mark.parametrize("leave", [cordwood.Reader.close, lambda reader: reader.seek(0)])
def test_the_sum_comes_when_the_reading_is_over(caplog, leave):
    caplog.set_level(logging.WARNING, logger="cordwood")
    log = MIDDLES[: 7 * 20] + reference.encode([b"one"]) + MIDDLES
    reader = cordwood.Reader(log, on_corruption="skip")
    assert next(reader) == b"one"
    assert len(messages(caplog)) == 10
    leave(reader)
    assert messages(caplog)[10:] == ["log: skipped 10 more regions, 70 bytes"]


def test_ten_regions_need_no_sum(caplog):
    caplog.set_level(logging.WARNING, logger="cordwood")
    with cordwood.Reader(MIDDLES[: 7 * 10], on_corruption="skip") as reader:
        assert list(reader) == []
    assert len(messages(caplog)) == 10


def test_a_follower_tells_as_much(caplog, tmp_path):
    caplog.set_level(logging.WARNING, logger="cordwood")
    path = tmp_path / "followed.log"
    path.write_bytes(MIDDLES[: 7 * 100] + reference.encode([b"one"]))
    with cordwood.follow(path, timeout=0, on_corruption="skip") as follower:
        assert list(follower) == [b"one"]
        assert len(messages(caplog)) == 10
    assert messages(caplog)[10:] == [f"{path}: skipped 90 more regions, 630 bytes"]
