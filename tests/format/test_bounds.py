"""Limits for a hostile file or argument, which cannot fill memory, flood the log, start any number of threads."""

import itertools
import logging
import subprocess
import sys

import pytest
import reference
from reference import BLOCK_LEN, MIDDLE, fragment

import cordwood

COUNT = 200_000
EMPTY = reference.encode([b""] * COUNT)


def test_a_batch_contains_at_most_65536_empty_records():
    lens = [len(batch) for batch in cordwood.Reader(EMPTY).record_batches(target_len=262_144)]
    assert max(lens) == 65_536
    assert sum(lens) == COUNT


def test_a_batch_filled_by_threads_contains_at_most_65536_empty_records(tmp_path):
    path = tmp_path / "empty.log"
    path.write_bytes(EMPTY)
    with cordwood.Reader(path) as reader:
        lens = [len(pack) for pack in reader.record_batches(target_len=262_144, threads=2)]
    assert max(lens) <= 65_536
    assert sum(lens) == COUNT


def test_a_batch_of_short_records_is_filled_to_the_target_length():
    # The bound on the number of records does not make packs of ordinary records smaller.
    records = [b"0123456789abcdef"] * 300_000
    packs = list(cordwood.Reader(reference.encode(records)).record_batches(target_len=1 << 20))
    assert [len(pack.data) for pack in packs] == [1 << 20] * 4 + [300_000 * 16 - (4 << 20)]


@pytest.mark.parametrize("threads", [0, 257, 1 << 16, 1 << 40, 1 << 60, (1 << 63) - 1])
def test_thread_count_must_be_between_1_and_256(threads):
    reader = cordwood.Reader(EMPTY)
    for call in (
        lambda: reader.record_batches(threads=threads),
        lambda: cordwood.verify(EMPTY, threads=threads),
        lambda: cordwood.stat(EMPTY, threads=threads),
    ):
        with pytest.raises(ValueError, match="threads must be from 1 to 256"):
            call()


@pytest.mark.parametrize("threads", [1, 2, 255, 256])
def test_the_returned_records_do_not_depend_on_the_thread_count(threads):
    assert cordwood.verify(EMPTY, threads=threads).record_count == COUNT
    assert sum(len(pack) for pack in cordwood.Reader(EMPTY).record_batches(threads=threads)) == COUNT


# The logger ------------------------------------------------------------------------------------


def messages(caplog):
    return [record.getMessage() for record in caplog.records]


# Each is a region of its own; all are in one block.
MIDDLES = fragment(MIDDLE, b"") * 3000


def test_the_first_ten_regions_and_a_summary_are_logged(caplog):
    caplog.set_level(logging.WARNING, logger="cordwood")
    with cordwood.Reader(MIDDLES, on_corruption="skip") as reader:
        assert list(reader) == []
        told = messages(caplog)
        assert len(told) == 11
        assert told[10] == "log: skipped 2990 more regions, 20930 bytes"
        # Reading to the end a second time logs no more.
        assert list(reader) == []
        assert len(messages(caplog)) == 11
    assert len(messages(caplog)) == 11


@pytest.mark.parametrize("leave", [cordwood.Reader.close, lambda reader: reader.seek(0)])
def test_the_summary_is_logged_when_reading_ends(caplog, leave):
    caplog.set_level(logging.WARNING, logger="cordwood")
    log = MIDDLES[: 7 * 20] + reference.encode([b"one"]) + MIDDLES
    reader = cordwood.Reader(log, on_corruption="skip")
    assert next(reader) == b"one"
    assert len(messages(caplog)) == 10
    leave(reader)
    assert messages(caplog)[10:] == ["log: skipped 10 more regions, 70 bytes"]


def test_no_summary_is_logged_for_exactly_ten_regions(caplog):
    caplog.set_level(logging.WARNING, logger="cordwood")
    with cordwood.Reader(MIDDLES[: 7 * 10], on_corruption="skip") as reader:
        assert list(reader) == []
    assert len(messages(caplog)) == 10


def test_a_follower_logs_ten_regions_and_a_summary(caplog, tmp_path):
    caplog.set_level(logging.WARNING, logger="cordwood")
    path = tmp_path / "followed.log"
    path.write_bytes(MIDDLES[: 7 * 100] + reference.encode([b"one"]))
    with cordwood.follow(path, timeout=0, on_corruption="skip") as follower:
        assert list(follower) == [b"one"]
        assert len(messages(caplog)) == 10
    assert messages(caplog)[10:] == [f"{path}: skipped 90 more regions, 630 bytes"]


# Compressed logs --------------------------------------------------------------------------------

MIB = 1 << 20


def bomb(length):
    """A zstd frame that states this many bytes, in blocks that repeat one byte."""
    run = 128 << 10
    blocks = [(1 << 1 | run << 3).to_bytes(3, "little") + b"x"] * (length // run)
    blocks[-1] = (1 | 1 << 1 | run << 3).to_bytes(3, "little") + b"x"
    return b"\x28\xb5\x2f\xfd\xe0" + length.to_bytes(8, "little") + b"".join(blocks)


SET_ZSTD = fragment(9, (7).to_bytes(4, "little"))
# 30 records of 32 MiB: 960 MiB in a log of 32 kB.
BOMBS = SET_ZSTD + b"".join(fragment(1, bomb(32 * MIB)) for _ in range(30))
BOMB_LEN = len(fragment(1, bomb(32 * MIB)))


def refused(call):
    with pytest.raises(cordwood.RecordTooLargeError, match="unless the limit is 1073741825 or more") as caught:
        call()
    error = caught.value
    # The limit, 256 MiB plus 200 times the bytes up to a record's end, is exceeded by the ninth record.
    assert (error.offset, error.length, error.reason) == (len(SET_ZSTD) + 8 * BOMB_LEN, BOMB_LEN, "record_too_large")
    assert (error.record_len_max, error.hint) == (1073741825, "raise_record_len_max")


@pytest.mark.parametrize("policy", ["raise", "skip", "stop", "salvage"])
def test_decompression_is_limited_to_256_mib_and_200_times_the_file_length(policy):
    assert len(BOMBS) < BLOCK_LEN
    for step in (next, lambda reader: next(reader.records())):
        reader = cordwood.Reader(BOMBS, on_corruption=policy)
        for _ in range(8):
            assert len(step(reader)) == 32 * MIB if step is next else len(step(reader).data) == 32 * MIB
        position = reader.tell()
        for _ in range(3):
            refused(lambda: step(reader))  # noqa: B023
            assert reader.tell() == position
    reader = cordwood.Reader(BOMBS, on_corruption=policy)
    packs = reader.record_batches(target_len=MIB)
    assert sum(len(pack) for pack in itertools.islice(packs, 8)) == 8
    refused(lambda: next(packs))
    with cordwood.Reader(BOMBS, on_corruption=policy, record_len_max=(1 << 30) + 1) as reader:
        assert sum(1 for _ in reader) == 30


def test_library_functions_and_followers_respect_the_decompression_limit(tmp_path):
    refused(lambda: cordwood.verify(BOMBS))
    refused(lambda: cordwood.verify(BOMBS))
    refused(lambda: cordwood.stat(BOMBS))
    refused(lambda: cordwood.salvage(BOMBS, tmp_path / "clean.log"))
    assert list(tmp_path.iterdir()) == []
    assert cordwood.verify(BOMBS, record_len_max=(1 << 30) + 1).record_count == 30
    path = tmp_path / "live.log"
    path.write_bytes(BOMBS)
    follower = cordwood.follow(path, timeout=0)
    for _ in range(8):
        next(follower)
    for _ in range(3):
        refused(lambda: next(follower))
        assert follower.tell() == len(SET_ZSTD) + 8 * BOMB_LEN


@pytest.mark.parametrize("verb", ["verify", "stat", "cat", "follow --timeout 0"])
def test_commands_fail_with_the_decompression_limit_error(tmp_path, verb):
    path = tmp_path / "bombs.log"
    path.write_bytes(BOMBS)
    command = [sys.executable, "-m", "cordwood", *verb.split(), path]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr.count(b"--record-len-max") == 1
