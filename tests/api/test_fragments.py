"""`cordwood.fragments` against the codec in plain Python, the golden file, and files of real engines."""

import io
import os
import struct
import subprocess
import sys
import threading
import zlib
from itertools import pairwise

import pytest
import reference
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from real_files import ALL

import cordwood

BLOCK_LEN = 32_768
NAMES = {1: "full", 2: "first", 3: "middle", 4: "last"}

lens = st.lists(st.one_of(st.integers(0, 300), st.integers(0, 9_000), st.integers(30_000, 70_000)), max_size=12)
damages = st.lists(
    st.tuples(
        st.sampled_from(["flip", "zero", "fill", "cut", "append"]), st.integers(0, 1 << 20), st.binary(max_size=40)
    ),
    max_size=4,
)


def damaged(file, damages):
    file = bytearray(file)
    for what, at, data in damages:
        if what == "append":
            file += data
        elif file:
            start = at % len(file)
            if what == "flip":
                file[start] ^= 1 << (len(data) % 8)
            elif what == "zero":
                count = min(len(data) * 500, len(file) - start)
                file[start : start + count] = bytes(count)
            elif what == "fill":
                file[start : start + len(data)] = data[: len(file) - start]
            else:
                del file[start:]
    return bytes(file)


def check_tiling(fragments, file_len):
    assert [fragment.end_offset for fragment in fragments] == [
        *(fragment.offset for fragment in fragments[1:]),
        *([file_len] if file_len else []),
    ]
    assert not fragments or fragments[0].offset == 0
    for fragment in fragments:
        assert fragment.block == fragment.offset // BLOCK_LEN == (fragment.end_offset - 1) // BLOCK_LEN
        assert fragment.length == fragment.end_offset - fragment.offset > 0


@settings(max_examples=200, deadline=None)
@given(lens, damages)
def test_fragments_match_the_python_reference_implementation(lens, damages):
    file = damaged(reference.encode(bytes([index]) * length for index, length in enumerate(lens)), damages)
    fragments = list(cordwood.fragments(file, dialect="leveldb"))
    check_tiling(fragments, len(file))
    spans = {(fragment.offset, fragment.end_offset): fragment for fragment in fragments}
    # The events tell for each fragment which record it belongs to, or why it belongs to none.
    events = list(reference.events(file, salvage=True))
    records = [event for event in events if isinstance(event, reference.Record)]
    regions = [event for event in events if isinstance(event, reference.Skipped)]
    for item in reference.fragments(file, verify_checksums=True, salvage=True):
        if not isinstance(item, reference.Fragment):
            continue
        fragment = spans.pop((item.start, item.end))
        crc = crc32c(file[item.start + 6 : item.end])
        assert (fragment.type_byte, fragment.kind, fragment.payload_len) == (
            item.kind,
            NAMES[item.kind],
            len(item.payload),
        )
        assert (fragment.stored_crc, fragment.computed_crc) == (crc, crc)
        record = next((record for record in records if record.offset <= item.start < record.end_offset), None)
        region = next((region for region in regions if region.start <= item.start < region.end), None)
        assert fragment.record_offset == (record and record.offset)
        assert fragment.salvaged == (record is not None and record.salvaged)
        assert fragment.reason == (region and region.reason)
    # The other fragments are in skipped regions, with the region's reason, or are trailers.
    for fragment in spans.values():
        region = next((region for region in regions if region.start <= fragment.offset < region.end), None)
        assert fragment.reason == (region and region.reason)
        assert fragment.record_offset is None
        if region is None:
            assert fragment.kind == "trailer"
            assert fragment.end_offset % BLOCK_LEN in (0, len(file) % BLOCK_LEN)
            assert fragment.length < 7
        elif fragment.type_byte is not None:
            stored, length, kind = reference.HEADER.unpack_from(file, fragment.offset)
            assert (fragment.stored_crc, fragment.payload_len, fragment.type_byte) == (
                reference.unmask(stored),
                length,
                kind,
            )
            end = fragment.offset + 7 + length
            is_there = end <= min(len(file), (fragment.block + 1) * BLOCK_LEN)
            assert fragment.computed_crc == (crc32c(file[fragment.offset + 6 : end]) if is_there else None)


@settings(max_examples=50, deadline=None)
@given(lens, damages)
def test_adjacent_fragments_of_the_same_kind_are_merged_into_runs(lens, damages):
    file = damaged(reference.encode(bytes([index]) * length for index, length in enumerate(lens)), damages)
    expected = []
    for fragment in cordwood.fragments(file, dialect="leveldb"):
        key = (fragment.block, fragment.kind, fragment.reason, fragment.severity)
        if expected and expected[-1][0] == key:
            expected[-1][2:] = [fragment.end_offset, expected[-1][3] + 1]
        else:
            expected.append([key, fragment.offset, fragment.end_offset, 1])
    assert list(iter(cordwood.fragments(file, dialect="leveldb").next_run, None)) == [
        (start, end, name, reason, severity, count) for (_, name, reason, severity), start, end, count in expected
    ]


def test_the_example_fragments_match_the_format_page():
    file = reference.encode([b"a" * 1000, b"b" * 97_270, b"c" * 8000])
    assert [(f.offset, f.kind, f.payload_len, f.stored_crc) for f in cordwood.fragments(file)] == [
        (0, "full", 1000, 0xAE2E7AAD),
        (1007, "first", 31_754, 0x25F66779),
        (32_768, "middle", 32_761, 0x660EFA53),
        (65_536, "last", 32_755, 0xB3227CA9),
        (98_298, "trailer", None, None),
        (98_304, "full", 8000, 0x5FDB9967),
    ]
    assert [f.record_offset for f in cordwood.fragments(file)] == [0, 1007, 1007, 1007, None, 98_304]


def dumped(file, dialect):
    return [
        (f.offset, f.length, f.kind, f.type_byte, f.payload_len, f.log_number, f.synced_offset, f.reason)
        for f in cordwood.fragments(file, dialect=dialect)
    ]


def test_fragments_of_other_dialects_are_listed():
    # Golden vectors of RocksDB, Pebble and W&B.
    recyclable = bytes.fromhex("45b71d100300057b000000") + b"foo"
    compression = bytes.fromhex("e12c08f804000907000000")
    assert dumped(compression + recyclable, "rocksdb") == [
        (0, 11, "set_compression", 9, 4, None, None, "metadata"),
        (11, 14, "recyclable_full", 5, 3, 123, None, "bad_compression"),
    ]
    walsync = bytes.fromhex("905d84dc010009010000000000000000000000") + b"\0"
    closing = bytes.fromhex("0000000000000502000000")
    assert dumped(walsync + closing + b"older", "pebble") == [
        (0, 20, "wal_sync_full", 9, 1, 1, 0, None),
        (20, 11, "end_trailer", 5, 0, None, None, "end_trailer"),
        (31, 5, "rest", None, None, None, None, "stale"),
    ]
    wandb = bytes.fromhex("3a572642e1be00") + bytes.fromhex("4a04caea030001") + b"foo"
    assert dumped(wandb, None) == [
        (0, 7, "file_header", None, None, None, None, "file_header"),
        (7, 10, "full", 1, 3, None, None, None),
    ]
    [_, fragment] = cordwood.fragments(wandb)
    assert fragment.stored_crc == fragment.computed_crc == zlib.crc32(b"\x01foo")


def test_every_faulty_fragment_has_a_reason():
    foo = reference.fragment(1, b"foo")
    cases = {
        b"": [],
        foo[:5]: [("rest", "torn_tail")],
        foo[:9]: [("full", "torn_tail")],
        bytes(20): [("zeros", "zero_fill")],
        bytes(7) + b"x": [("zero", "zero_header")],
        foo + reference.fragment(9, b"x"): [("full", None), ("unknown", "unknown_kind")],
        reference.fragment(3, b"x") + foo: [("middle", "missing_start"), ("full", None)],
        reference.fragment(2, b"x") + foo: [("first", "missing_end"), ("full", None)],
        foo + reference.fragment(2, b"x"): [("full", None), ("first", "torn_tail")],
        struct.pack("<IHB", 1, 3, 1) + b"foo" + foo: [("full", "checksum_mismatch"), ("full", None)],
        struct.pack("<IHB", 1, 60_000, 1) + foo: [("full", "bad_length"), ("full", None)],
    }
    for file, expected in cases.items():
        assert [(f.kind, f.reason) for f in cordwood.fragments(file, dialect="leveldb")] == expected, file


@pytest.mark.parametrize("path", ALL)
def test_the_fragments_of_real_logs_leave_no_gaps(path):
    fragments = list(cordwood.fragments(path))
    check_tiling(fragments, path.stat().st_size)
    assert not any(fragment.severity == "corruption" for fragment in fragments)


class NotSeekable(io.RawIOBase):
    def readable(self):
        return True


def test_accepted_sources(tmp_path):
    file = reference.encode([b"one", b"x" * 5_000_000, b"two"])
    path = tmp_path / "example.log"
    path.write_bytes(file)
    expected = list(cordwood.fragments(path))
    check_tiling(expected, len(file))
    assert list(cordwood.fragments(str(path))) == list(cordwood.fragments(memoryview(file))) == expected
    # A file object is read from its position; both halves share the object.
    shared = io.BytesIO(b"before" + file)
    shared.seek(6)
    assert list(cordwood.fragments(shared)) == expected
    with pytest.raises(io.UnsupportedOperation, match="seek"):
        list(cordwood.fragments(NotSeekable()))
    with pytest.raises(TypeError, match="source"):
        cordwood.fragments(3)
    with pytest.raises(FileNotFoundError, match="missing"):
        cordwood.fragments(tmp_path / "missing")
    with pytest.raises(ValueError, match="dialect"):
        cordwood.fragments(file, dialect="gzip")


@pytest.mark.skipif(os.name == "nt", reason="no pipe with a name")
def test_a_pipe_is_rejected_immediately(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: os.close(os.open(pipe, os.O_WRONLY)))
    writer.start()
    with pytest.raises(io.UnsupportedOperation, match="seek"):
        cordwood.fragments(pipe)
    writer.join()


def test_listing_fragments_of_a_gzip_file_raises_immediately():
    fragments = cordwood.fragments(b"\x1f\x8b\x08\0" + bytes(100))
    with pytest.raises(cordwood.DialectError, match="gzip"):
        next(fragments)


def test_listing_fragments_can_be_retried_after_a_source_error():
    class Failing(io.BytesIO):
        fails = True

        def read(self, size=-1):
            if self.fails and self.tell() > 0:
                raise OSError("out of order")
            return super().read(size)

    source = Failing(reference.encode([b"x" * 3_000_000] * 3))
    fragments = cordwood.fragments(source)
    with pytest.raises(OSError, match="out of order"):
        list(fragments)
    source.fails = False
    assert sum(fragment.length for fragment in cordwood.fragments(source)) > 0


def test_fragment_repr_and_eq():
    one, two = cordwood.fragments(reference.encode([b"foo", b"bar"]))
    [again, _] = cordwood.fragments(reference.encode([b"foo", b"bar"]))
    assert one == again != two
    assert len({one, again, two}) == 2
    assert repr(one) == (
        "Fragment(offset=0, end_offset=10, kind='full', block=0, type_byte=1, payload_len=3, "
        "stored_crc=0x3a82ec18, computed_crc=0x3a82ec18, record_offset=0)"
    )
    [torn] = cordwood.fragments(b"abc", dialect="leveldb")
    assert repr(torn) == "Fragment(offset=0, end_offset=3, kind='rest', block=0, reason='torn_tail')"
    match one:
        case cordwood.types.Fragment(offset, end_offset, cordwood.types.FragmentKind.FULL):
            assert (offset, end_offset) == (0, 10)
        case _:
            pytest.fail("no match")
    with pytest.raises(AttributeError):
        one.offset = 1


def test_memory_use_does_not_grow_with_the_log(tmp_path):
    path = tmp_path / "long.log"
    with cordwood.open(path, "w") as writer:
        writer.extend([bytes(100)] * 10)
        for _ in range(16):
            writer.append(bytes(8 << 20))
    script = (
        "import sys, resource, cordwood\n"
        "next(cordwood.fragments(sys.argv[1]))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(sum(1 for _ in cordwood.fragments(sys.argv[1])))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    if sys.platform != "linux":
        pytest.skip("the unit of ru_maxrss is Linux's")
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, check=True, text=True)
    count, grown = map(int, done.stdout.split())
    assert count > 4000
    # Memory contains one joined record of 8 MiB, in a buffer that grows by doubling, but not all 128 MiB.
    assert grown < 48 << 10


def test_two_threads_sharing_an_iterator_get_each_fragment_exactly_once():
    fragments = cordwood.fragments(reference.encode([b"record"] * 50_000))
    found = [[], []]
    threads = [threading.Thread(target=lambda into=into: into.extend(fragments)) for into in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    offsets = sorted((f.offset, f.end_offset) for f in found[0] + found[1])
    assert all(one[1] == other[0] for one, other in pairwise(offsets))
    assert offsets[-1][1] == len(reference.encode([b"record"] * 50_000))
