"""Packed logs beside the pure-Python reference, which reads and writes them by docs/format/packed.md."""

import contextlib
import io
import itertools
import os
import random
import subprocess
import sys
from pathlib import Path

import fsspec
import packed_reference
import pyarrow
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from reference import BLOCK_LEN
from support import PAYLOAD, OnlyRead

import cordwood

CODECS = {None: 0, "zstd": 1}
FLIPS = 1_000 if os.environ.get("CORDWOOD_SURVIVAL") == "full" else 200
lengths = st.one_of(st.integers(0, 40), st.integers(0, 5_000), st.sampled_from([BLOCK_LEN, 70_000]))
records = st.lists(st.tuples(st.integers(0, 1_000), lengths), max_size=60).map(
    lambda places: [PAYLOAD[start : start + length] for start, length in places]
)


def fits(groups):
    """The groups whose records have offsets: `encode` does not check them."""
    return [(group, codec) for group, codec in groups if group and (codec != 1 or sum(map(len, group)) > 60)]


groups = st.lists(st.tuples(records, st.sampled_from([None, 0, 1])), max_size=6).map(fits)


def plain(records):
    return [(record.offset, record.end_offset, bytes(record.data)) for record in records]


def by_reference(file):
    records = packed_reference.read(file)
    return records and [(record.offset, record.end_offset, record.data) for record in records]


@given(groups, st.sampled_from([0, 1]))
def test_a_reader_returns_the_same_records_as_the_reference(groups, codec):
    file = packed_reference.encode(groups, codec)
    expected = by_reference(file)
    if expected is None:
        # A container so small that its records have no offsets.
        assert not cordwood.verify(file).ok
        return
    with cordwood.open(file) as reader:
        assert plain(reader.records()) == expected
        assert reader.dialect == "packed"
        assert reader.outcome.kind == "clean"
    assert list(cordwood.open(io.BytesIO(file))) == [data for _, _, data in expected]
    batches = list(cordwood.open(file).record_batches())
    assert [bytes(record) for batch in batches for record in batch] == [data for _, _, data in expected]
    report = cordwood.verify(file)
    assert (report.ok, report.record_count) == (True, len(expected))


@given(groups, st.sampled_from([0, 1]))
def test_stat_counts_the_same_containers_as_the_reference(groups, codec):
    file = packed_reference.encode(groups, codec)
    if packed_reference.read(file) is None:
        assert cordwood.stat(file).damaged_len > 0
        return
    packed = [(records, own) for records, own in groups if own is not None]
    stat = cordwood.stat(file)
    assert (stat.dialect, stat.compression) == ("packed", "zstd" if codec else None)
    assert stat.container_count == len(packed)
    assert stat.container_len == sum(len(packed_reference.container(*container)) for container in packed)
    assert stat.packed_count == sum(len(records) for records, _ in packed)
    assert stat.packed_len == sum(len(record) for records, _ in packed for record in records)
    assert stat.payload_len == sum(len(record) for records, _ in groups for record in records)
    assert stat.stored_len + stat.header_len + stat.trailer_len + stat.skipped_len == stat.file_len == len(file)


@given(records, st.sampled_from([None, "zstd"]), st.sampled_from(["append", "close"]), st.data())
def test_the_reference_reads_records_written_by_the_library(tmp_path_factory, records, compression, flush, data):
    path = tmp_path_factory.mktemp("packed") / "a.log"
    offsets = []
    left = list(records)
    with cordwood.open(path, "w", dialect="packed", compression=compression, flush=flush) as writer:
        while left:
            count = data.draw(st.integers(0, min(len(left), 30)))
            if count:
                writer.extend(left[:count])
                offsets += [None] * count
            else:
                count = 1
                offsets.append(writer.append(left[0]))
            if data.draw(st.booleans()):
                writer.flush()
            del left[:count]
    file = path.read_bytes()
    found = by_reference(file)
    assert [record for _, _, record in found] == records
    assert all(known in (None, offset) for known, (offset, _, _) in zip(offsets, found, strict=True))
    assert plain(cordwood.open(file).records()) == found
    ordinary = len(reference.encode(records))
    # The mark, and a header for each block.
    assert len(file) <= ordinary + 17 + 7 * (ordinary // BLOCK_LEN + 1)


def a_log():
    """Three blocks of containers of both codecs and ordinary records."""
    groups = []
    for number, codec in zip(range(70), itertools.cycle([0, 1, None, 0, 1])):
        groups.append(([PAYLOAD[number * 50 + i * 7 :][: (i * 37 + number) % 150] for i in range(20)], codec))
    return packed_reference.encode(groups, 1)


def test_ranges_split_at_any_offset_add_up_to_the_whole_log():
    file = a_log()
    whole = by_reference(file)
    assert 2 * BLOCK_LEN < len(file) < 3 * BLOCK_LEN
    starts = {offset for offset, _, _ in whole}
    near = {offset + delta for offset in starts for delta in (-1, 0, 1)}
    for at in sorted(near | set(range(0, len(file), 97)) | {len(file)}):
        parts = [cordwood.open(file, start=0, end=at), cordwood.open(file, start=at, end=len(file))]
        before, after = (plain(part.records()) for part in parts)
        assert before == [record for record in whole if record[0] < at]
        assert after == [record for record in whole if record[0] >= at]


def test_readers_and_followers_can_resume_at_every_record(tmp_path):
    file = a_log()
    whole = by_reference(file)
    path = tmp_path / "a.log"
    path.write_bytes(file)
    with cordwood.open(path) as reader:
        for index, (offset, end_offset, data) in enumerate(whole):
            reader.seek(offset)
            assert next(reader) == data
            assert reader.tell() == end_offset
            with cordwood.follow(path, start=end_offset, timeout=0) as follower:
                assert next(follower, None) == (whole[index + 1][2] if index + 1 < len(whole) else None)


def in_batches(source, threads=1, **bounds):
    for batch in cordwood.open(source, **bounds).record_batches(target_len=500, threads=threads):
        yield from zip(batch.record_offsets.tolist(), map(bytes, batch), strict=True)


def in_arrow(source, **bounds):
    stream = pyarrow.RecordBatchReader.from_stream(cordwood.scan(source, columns=["offset", "record"], **bounds))
    table = stream.read_all()
    return zip(table["offset"].to_pylist(), table["record"].to_pylist(), strict=True)


WAYS = {
    "records": lambda path, **bounds: [(one.offset, one.data) for one in cordwood.open(path, **bounds).records()],
    "batches": in_batches,
    "threads": lambda path, **bounds: in_batches(path, threads=3, **bounds),
    "arrow": in_arrow,
    "remote": lambda path, **bounds: in_batches(path.as_uri(), **bounds),
}


@pytest.mark.parametrize("way", WAYS)
def test_reading_a_log_in_1_to_40_parts_returns_the_whole_log(tmp_path, way):
    file = a_log()
    whole = [(offset, data) for offset, _, data in by_reference(file)]
    path = tmp_path / "a.log"
    path.write_bytes(file)
    for count in range(1, 41) if way == "records" else (1, 2, 7, 40):
        edges = [len(file) * number // count for number in range(count + 1)]
        parts = [list(WAYS[way](path, start=start, end=end)) for start, end in itertools.pairwise(edges)]
        assert list(itertools.chain(*parts)) == whole, count


@pytest.mark.parametrize("codec", [0, 1])
def test_the_splits_of_a_packed_log_contain_every_record(tmp_path, codec):
    file = packed_reference.mark(codec) + a_log()[17:]
    path = tmp_path / "a.log"
    path.write_bytes(file)
    splits = cordwood.plan_splits([path], BLOCK_LEN)
    assert len(splits) == 3
    found = [plain(cordwood.open(split).records()) for split in splits]
    assert list(itertools.chain(*found)) == by_reference(file)


def test_a_damaged_container_is_reported_in_exactly_one_of_the_adjacent_ranges():
    log = packed_reference.encode([([b"before"], None), ([b"%d" % number for number in range(30)], 0)], 0)
    start = 17 + 7 + 6
    # Its checksum is right, its lengths are not; or its checksum is wrong.
    bad_lengths = bytearray(log[start + 7 :])
    bad_lengths[2] += 1
    flipped = bytearray(log)
    flipped[-1] ^= 1
    after = reference.fragment(reference.FULL, b"after")
    for container, reason in [
        (reference.fragment(0x40, bytes(bad_lengths)), "bad_container"),
        (bytes(flipped[start:]), "checksum_mismatch"),
    ]:
        file = log[:start] + container + after
        for at in range(start - 1, len(file) + 1):
            records, regions = [], []
            for bounds in ({"end": at}, {"start": at}):
                with cordwood.open(file, dialect="packed", on_corruption="salvage", **bounds) as reader:
                    records += reader
                    regions += [region for region in reader.skipped if region.reason != "metadata"]
            assert records == [b"before", b"after"], at
            assert [(region.reason, region.offset) for region in regions] == [(reason, start)], at


def test_two_packed_logs_joined_at_a_block_boundary_are_both_read():
    first, second = a_log(), packed_reference.encode([([b"second", b"log"], 0)], 0)
    file = first.ljust(3 * BLOCK_LEN, b"\0") + second
    with cordwood.open(file) as reader:
        assert list(reader) == [data for _, _, data in by_reference(first)] + [b"second", b"log"]
        assert [region.offset for region in reader.skipped if region.reason == "metadata"] == [0, 3 * BLOCK_LEN]
        assert reader.ok
        assert (reader.dialect, reader.compression) == ("packed", "zstd")


@pytest.mark.parametrize("damage", [b"\0" * 17, b"\xff" * 17, bytes(range(100, 117))])
def test_ordinary_records_and_containers_are_read_after_a_damaged_mark(damage):
    log = packed_reference.encode([([b"one", b"two"], None), ([b"three", b"four"], 1), ([b"five", b"six"], 0)], 1)
    file = damage + log[17:]
    with cordwood.open(file, on_corruption="salvage") as reader:
        assert list(reader) == [b"one", b"two", b"three", b"four", b"five", b"six"]
        assert {(region.offset, region.end_offset) for region in reader.skipped} == {(0, 17)}


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_appending_to_a_packed_log_keeps_its_compression(tmp_path, compression):
    path = tmp_path / "a.log"
    records = [b"record %d" % number * 5 for number in range(100)]
    with cordwood.open(path, "w", dialect="packed", compression=compression) as writer:
        writer.extend(records)
    with cordwood.open(path, "a") as writer:
        writer.extend(records)
    file = path.read_bytes()
    assert [data for _, _, data in by_reference(file)] == records * 2
    parts = reference.fragments(file, verify_checksums=True, dialect=reference.PACKED)
    codecs = {part.payload[0] for part in parts if getattr(part, "is_container", False)}
    assert codecs == {CODECS[compression]}
    with pytest.raises(cordwood.DialectError):
        cordwood.open(path, "a", dialect="leveldb")


# Vectors 10 and 11 of docs/format/packed.md.
CODEC_2 = bytes.fromhex("7a778073090040020301000361666f6ff69fcfef0200016f6b")
VERSION_2 = bytes.fromhex("4f3d7d610a0048636f7264776f6f640200f69fcfef0200016f6b")


@pytest.mark.parametrize("policy", ["raise", "skip", "salvage", "stop"])
@pytest.mark.parametrize(
    ("file", "message"), [(CODEC_2, "codec is 2"), (VERSION_2, "version 2")], ids=["codec", "version"]
)
def test_unknown_features_are_rejected_under_every_policy(file, message, policy):
    with pytest.raises(cordwood.CordwoodError, match=message):
        list(cordwood.open(file, on_corruption=policy))
    with pytest.raises(cordwood.CordwoodError, match=message):
        cordwood.verify(file)


SOURCES = {
    "bytes": Path.read_bytes,
    "path": lambda path: path,
    "open file": lambda path: path.open("rb"),
    "file without seek": lambda path: OnlyRead(path.read_bytes()),
    "one byte at a time": lambda path: OnlyRead(path.read_bytes(), 1),
    "BytesIO": lambda path: io.BytesIO(path.read_bytes()),
    "fsspec": lambda path: fsspec.filesystem("file").open(str(path)),
    "URL": Path.as_uri,
}
CALLS = {
    "records": lambda source: list(cordwood.open(source)),
    "batches": lambda source: list(cordwood.open(source).record_batches()),
    "a range": lambda source: list(cordwood.open(source, start=5)),
    "verify": cordwood.verify,
    "stat": cordwood.stat,
    "arrow": lambda source: pyarrow.RecordBatchReader.from_stream(cordwood.scan(source)).read_all(),
}
OF_A_PATH = {
    "threads": lambda path: list(cordwood.open(path).record_batches(threads=2)),
    "splits": lambda path: list(itertools.chain(*map(cordwood.open, cordwood.plan_splits([path], 2)))),
    "a follower": lambda path: list(cordwood.follow(path, timeout=0)),
    "salvage": lambda path: cordwood.salvage(path, path.with_name("new.log")),
    "appending": lambda path: cordwood.open(path, "a"),
}
REFUSED = pytest.mark.parametrize(
    ("file", "message"), [(CODEC_2, "codec is 2"), (VERSION_2, "version 2")], ids=["codec", "version"]
)


@REFUSED
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("call", CALLS)
def test_a_newer_format_version_is_rejected_in_every_source(tmp_path, file, message, source, call):
    path = tmp_path / "a.log"
    path.write_bytes(file)
    opened = SOURCES[source](path)
    closing = contextlib.closing(opened) if hasattr(opened, "close") else contextlib.nullcontext()
    # A stream of Arrow's raises errors of its own.
    error = pyarrow.ArrowInvalid if call == "arrow" else cordwood.DialectError
    with closing, pytest.raises(error, match=message):
        CALLS[call](opened)


@REFUSED
@pytest.mark.parametrize("call", OF_A_PATH)
def test_functions_that_require_a_path_reject_a_newer_format_version(tmp_path, file, message, call):
    path = tmp_path / "a.log"
    path.write_bytes(file)
    with pytest.raises(cordwood.DialectError, match=message):
        OF_A_PATH[call](path)
    assert [one.name for one in tmp_path.iterdir()] == ["a.log"]
    assert path.read_bytes() == file


@REFUSED
@pytest.mark.parametrize("verb", [["cat"], ["verify"], ["stat"], ["salvage", "new.log"]])
def test_the_command_line_tool_rejects_a_newer_format_version(tmp_path, file, message, verb):
    (tmp_path / "a.log").write_bytes(file)
    command = [sys.executable, "-m", "cordwood", verb[0], "a.log", *verb[1:]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert message in done.stderr


def test_reading_a_packed_log_as_leveldb_reports_containers_as_an_unknown_type():
    file = packed_reference.encode([([b"a", b"b"], 0)], 0) + reference.encode([b"ok"])
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage") as reader:
        assert list(reader) == [b"ok"]
        assert {region.reason for region in reader.skipped} == {"unknown_kind"}


@pytest.mark.parametrize("codec", [0, 1])
def test_a_flipped_bit_damages_at_most_one_container_and_is_repaired(tmp_path, codec):
    groups = [([b"%d of %d" % (i, number) * 3 for i in range(20)], codec) for number in range(10)]
    file = packed_reference.encode(groups, codec)
    whole = by_reference(file)
    path, new = tmp_path / "a.log", tmp_path / "new.log"
    rng = random.Random(f"flipped bits {codec}")
    for bit in [rng.randrange(len(file) * 8) for _ in range(FLIPS)]:
        damaged = bytearray(file)
        damaged[bit // 8] ^= 1 << bit % 8
        with cordwood.open(bytes(damaged), on_corruption="salvage") as reader:
            found = plain(reader.records())
            assert not reader.ok, bit
        lost = set(whole) - set(found)
        assert set(found) <= set(whole), bit
        assert len(lost) in {0, 20}, bit
        assert bool(lost) == (bit >= 17 * 8), bit
        path.write_bytes(damaged)
        new.unlink(missing_ok=True)
        cordwood.salvage(path, new, repair_bit_flips=True)
        assert [data for _, _, data in by_reference(new.read_bytes())] == [data for _, _, data in whole], bit
