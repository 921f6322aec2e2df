"""The budget of packed.md: each packed log that cordwood writes is read by default, whole and from any place.

However well its records compress, no range of its frames exceeds the budget of a reader.
"""

import random
import struct

import pytest
from reference import BLOCK_LEN, CONTAINER_KINDS, HEADER_LEN

import cordwood

MIB = 1 << 20
BASE, RATIO = 256 * MIB, 200


def records_of(seed):
    """Records that compress well, of more bytes than the budget allows for frames that are as short as they can be."""
    rng = random.Random(seed)
    left = 320 * MIB
    while left > 0:
        length = rng.choice([16, 1_000, 5_000, 33_000, MIB, MIB, 8 * MIB, 40 * MIB])
        for _ in range(max(1, min(MIB // length, 200))):
            yield b"%8d" % rng.randrange(1 << 20) + bytes(length)
            left -= length


def equal_records(_seed):
    return (b"%8d" % number + bytes(MIB) for number in range(300))


def by_append(path, records):
    with cordwood.open(path, "w", dialect="packed", compression="zstd") as writer:
        for record in records:
            writer.append(record)


def by_append_that_gathers(path, records):
    with cordwood.open(path, "w", dialect="packed", compression="zstd", flush="close") as writer:
        for record in records:
            writer.append(record)


def by_extend(path, records):
    with cordwood.open(path, "w", dialect="packed", compression="zstd") as writer:
        writer.extend(records)


def by_pack(path, records):
    plain = path.with_name("plain.log")
    with cordwood.open(plain, "w", flush="close") as writer:
        writer.extend(records)
    cordwood.pack(plain, path)
    plain.unlink()


def reopened(path, records):
    records = iter(records)
    with cordwood.open(path, "w", dialect="packed", compression="zstd") as writer:
        for _ in range(3):
            writer.append(next(records))
    for record in records:
        with cordwood.open(path, "a", checkpoint=path.stat().st_size) as writer:
            writer.append(record)


def content_len(frame):
    """What the header of a zstd frame states. Source: RFC 8878, 3.1.1.1."""
    assert frame[:4] == b"\x28\xb5\x2f\xfd"
    flags = frame[4]
    is_single = flags >> 5 & 1
    at = 5 + (not is_single)
    size = [is_single, 2, 4, 8][flags >> 6]
    return int.from_bytes(frame[at : at + size], "little") + (256 if size == 2 else 0)


def frames(file):
    """Where each compressed container starts and ends, and what its frame states."""
    at, payload, start = 0, b"", 0
    while at < len(file):
        left = BLOCK_LEN - at % BLOCK_LEN
        if left < HEADER_LEN:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", file, at)
        end = at + HEADER_LEN + length
        part = file[at + HEADER_LEN : end]
        if kind in CONTAINER_KINDS[:2]:
            payload, start = b"", at
        payload += part if kind in CONTAINER_KINDS else b""
        if kind in (CONTAINER_KINDS[0], CONTAINER_KINDS[3]) and payload[0] == 1:
            count_len = next(index for index in range(1, 6) if payload[index] < 128)
            yield start, end, content_len(payload[1 + count_len :])
        at = end


def most_used(file):
    """The most that frames state, from the start of any one to the end of any later one, beyond 200 for each byte."""
    most = float("-inf")
    best_start = float("-inf")
    total = 0
    for start, end, stated in frames(file):
        # In terms of sums from the start, so that each pair of start and end is considered.
        best_start = max(best_start, RATIO * start - total)
        total += stated
        most = max(most, total - RATIO * end + best_start)
    return most


CASES = [
    (by_append, equal_records),
    (by_append_that_gathers, records_of),
    (by_extend, equal_records),
    (by_extend, records_of),
    (by_pack, equal_records),
    (by_pack, records_of),
]


@pytest.mark.parametrize(("write", "records"), CASES)
def test_k16_a_highly_compressible_log_is_read_by_default(tmp_path, write, records):
    path = tmp_path / "packed.log"
    write(path, records(1))
    lens = [len(record) for record in records(1)]
    file = path.read_bytes()
    # The budget is used, so the test reaches it; and it is kept.
    assert BASE * 9 // 10 < most_used(file) <= BASE
    assert len(file) < sum(lens) // 20

    with cordwood.Reader(path) as reader:
        offsets = [(record.offset, len(record.data)) for record in reader.records()]
        assert [length for _, length in offsets] == lens
        for offset, _ in (offsets[1], offsets[len(offsets) // 2]):
            reader.seek(offset)
            assert sum(1 for _ in reader) == sum(1 for start, _ in offsets if start >= offset)
    for end in range(0, len(file), max(BLOCK_LEN, len(file) // 3)):
        with cordwood.Reader(path, start=end, end=end + max(BLOCK_LEN, len(file) // 3)) as split:
            part = [start for start, _ in offsets if end <= start < end + max(BLOCK_LEN, len(file) // 3)]
            assert [record.offset for record in split.records()] == part
    assert cordwood.verify(path).record_count == len(lens)
    index = cordwood.index([path])
    assert len(index) == len(lens)
    assert len(index[len(lens) - 1]) == lens[-1]
    with cordwood.follow(path, timeout=0) as follower:
        assert sum(1 for _ in follower) == len(lens)
    pyarrow = pytest.importorskip("pyarrow")
    assert sum(batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(cordwood.scan(path))) == len(lens)


def by_segments(path, records):
    with cordwood.open(path, "a", dialect="packed", compression="zstd", segment_len=1 << 20) as writer:
        writer.extend(records)


@pytest.mark.parametrize("write", [by_append, by_extend, by_pack, by_segments])
def test_c6_a_record_of_more_than_256_mib_is_stored_outside_containers(tmp_path, write):
    path = tmp_path / "packed.log"
    write(path, [bytes(256 * MIB - 3)])
    (file,) = path.glob("*.log") if path.is_dir() else [path]
    assert list(frames(file.read_bytes())) == []
    assert cordwood.stat(path).record_len_max == 256 * MIB - 3


def test_k16_a_reopened_log_starts_without_decompression_budget(tmp_path):
    path = tmp_path / "packed.log"
    reopened(path, (bytes(3 * MIB) for _ in range(20)))
    found = list(frames(path.read_bytes()))
    assert len(found) == 20
    assert all(stated <= RATIO * (end - start) for start, end, stated in found[3:])
    assert all(stated > RATIO * (end - start) for start, end, stated in found[:3])
    assert cordwood.verify(path).record_count == 20


def test_k16_a_reopened_segmented_log_starts_without_decompression_budget(tmp_path):
    directory = tmp_path / "log"
    options = {"dialect": "packed", "compression": "zstd", "segment_len": 1 << 20}
    with cordwood.open(directory, "a", **options) as writer:
        for _ in range(3):
            writer.append(bytes(3 * MIB))
            writer.rotate()
    with cordwood.open(directory, "a", segment_len=1 << 20) as writer:
        writer.append(bytes(3 * MIB))
    first, *rest = (next(frames(path.read_bytes())) for path in sorted(directory.glob("*.log")))
    assert len(rest) == 3
    assert first[2] > RATIO * (first[1] - first[0])
    # A reader that comes from the first has read all bytes from the start of the segment on.
    assert all(stated <= RATIO * end for _, end, stated in rest)
    assert sum(1 for _ in cordwood.Reader(directory)) == 4
