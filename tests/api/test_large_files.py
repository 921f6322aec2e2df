"""Offsets of more than 32 bits: a log at the end of a 5 GiB file whose rest is a hole that is never read."""

import asyncio
import os
import sys
from itertools import pairwise

import pytest
import reference
from reference import BLOCK_LEN
from support import PAYLOAD

import cordwood

BASE = 5 << 30
RECORDS = [b"one", PAYLOAD[:70_000], b"", PAYLOAD[: 2 * BLOCK_LEN], b"two"]
OFFSETS = [BASE + offset for offset in reference.record_offsets(RECORDS)]
END = BASE + len(reference.encode(RECORDS))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="not every system has files with holes")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "large.log"
    with path.open("wb") as file:
        file.truncate(BASE)
        file.seek(BASE)
        file.write(reference.encode(RECORDS))
    assert path.stat().st_blocks * 512 < 1 << 24
    return path


def found(records):
    return [(record.offset, record.data) for record in records]


EXPECTED = list(zip(OFFSETS, RECORDS, strict=True))


def test_a_reader_can_start_at_an_offset_in_a_large_file(path):
    for index, start in enumerate(OFFSETS):
        with cordwood.open(path, dialect="leveldb", start=start) as reader:
            assert found(reader.records()) == EXPECTED[index:]
            assert (reader.outcome.kind, reader.outcome.offset, reader.tell()) == ("clean", END, END)
            reader.seek(start)
            assert next(reader) == RECORDS[index]
            assert reader.skipped == ()


def test_threads_can_read_record_batches_from_a_large_file(path):
    with cordwood.open(path, dialect="leveldb", start=BASE) as reader:
        batches = list(reader.record_batches(threads=2))
        assert [record for batch in batches for record in batch] == RECORDS


def test_a_range_of_a_large_file_can_be_verified(path):
    report = cordwood.verify(path, dialect="leveldb", start=BASE, threads=2)
    assert (report.ok, report.record_count, report.outcome.offset) == (True, len(RECORDS), END)
    report = cordwood.verify(path, dialect="leveldb", start=OFFSETS[1], end=OFFSETS[3])
    assert report.record_count == 2
    with path.open("r+b") as file:
        file.seek(OFFSETS[1] + 7)
        file.write(b"?")
    report = cordwood.verify(path, dialect="leveldb", start=BASE)
    [region, *_] = report.skipped
    assert (region.offset, region.reason) == (OFFSETS[1], "checksum_mismatch")
    with pytest.raises(cordwood.CorruptionError, match=str(OFFSETS[1])) as caught:
        list(cordwood.open(path, dialect="leveldb", start=BASE))
    assert caught.value.offset == OFFSETS[1]


def test_the_splits_of_a_log_contain_every_record(path):
    splits = cordwood.plan_splits([path], BLOCK_LEN << 10, dialect="leveldb")
    assert (splits[0].start, splits[-1].end) == (0, END)
    assert all(left.end == right.start for left, right in pairwise(splits))
    last = [split for split in splits if split.end > BASE]
    assert [pair for split in last for pair in found(cordwood.open(split).records())] == EXPECTED


@pytest.mark.parametrize("mode", ["for", "async for"])
def test_a_follower_can_start_at_an_offset_in_a_large_file(path, mode):
    follower = cordwood.follow(path, dialect="leveldb", start=BASE, timeout=0)

    async def collect():
        return [record async for record in follower]

    assert (list(follower) if mode == "for" else asyncio.run(collect())) == RECORDS
    assert (follower.tell(), follower.waiting.reason, follower.waiting.file_len) == (END, "idle", END)
    with path.open("ab") as file:
        file.write(reference.encode([b"three"], END))
    assert found(follower.records()) == [(END, b"three")]


@pytest.mark.parametrize("checkpoint", [BASE, OFFSETS[3], END])
def test_a_writer_can_append_at_a_checkpoint_in_a_large_file(path, checkpoint):
    with cordwood.open(path, "a", dialect="leveldb", checkpoint=checkpoint) as writer:
        assert writer.tell() == END
        assert writer.append(b"three" * 20_000) == END
        writer.sync()
        end = END + len(reference.encode([b"three" * 20_000], END))
        assert (writer.tell(), writer.durable_offset) == (end, end)
    assert path.stat().st_size == end
    with cordwood.open(path, dialect="leveldb", start=BASE) as reader:
        assert list(reader) == [*RECORDS, b"three" * 20_000]


def test_a_torn_tail_in_a_large_file_is_truncated(path):
    os.truncate(path, END - 2)
    with pytest.raises(cordwood.TornTailError) as caught:
        cordwood.open(path, "a", dialect="leveldb", checkpoint=BASE)
    assert caught.value.offset == OFFSETS[-1]
    with cordwood.open(path, "a", dialect="leveldb", checkpoint=BASE, on_torn_tail="truncate") as writer:
        assert writer.append(b"new") == OFFSETS[-1]
    with cordwood.open(path, dialect="leveldb", start=BASE) as reader:
        assert list(reader) == [*RECORDS[:-1], b"new"]
