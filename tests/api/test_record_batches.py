"""`Reader.record_batches`: the contents of the buffers, who may view them, and how long they live."""

import array
import collections
import contextlib
import gc
import io
import os
import subprocess
import sys

import pytest
import reference
from reference import BLOCK_LEN
from support import PAYLOAD

import cordwood

RECORDS = [b"one", b"", PAYLOAD[:70_000], b"two"]
FILE = reference.encode(RECORDS)
OFFSETS = reference.record_offsets(RECORDS)


def test_a_record_batch_exposes_data_and_offset_buffers():
    [pack] = cordwood.open(FILE).record_batches()
    assert pack.data == b"".join(RECORDS)
    assert (pack.offsets.format, pack.offsets.itemsize) == ("q", 8)
    assert pack.offsets.tolist() == [0, 3, 3, 70_003, 70_006]
    assert (pack.record_offsets.format, pack.record_offsets.itemsize) == ("Q", 8)
    assert pack.record_offsets.tolist() == OFFSETS
    assert pack.end_offset == len(FILE)
    assert repr(pack) == "<cordwood.RecordBatch: 4 records, 70006 bytes>"
    for view in [pack.data, pack.offsets, pack.record_offsets]:
        assert view.readonly
        assert view.c_contiguous
        with pytest.raises(TypeError):
            view[0] = 1
        with pytest.raises(TypeError, match=r"read-only|readonly|read-write"):
            io.BytesIO(b"xxxxxxxx").readinto(view)


def test_a_record_batch_is_a_sequence():
    [pack] = cordwood.open(FILE).record_batches()
    assert list(pack) == RECORDS
    assert [pack[index - 4] for index in range(4)] == RECORDS
    for index in [4, -5, 1 << 62, -1 << 62, 10**30, -(10**30)]:
        with pytest.raises(IndexError):
            pack[index]


def test_empty_log_has_no_batches():
    assert list(cordwood.open(b"").record_batches()) == []
    assert list(cordwood.open(bytes(100)).record_batches()) == []


@pytest.mark.parametrize(
    ("len_max", "lengths"), [(0, [1] * 10), (1, [1] * 10), (100, [1] * 10), (101, [2] * 5), (1 << 40, [10])]
)
def test_a_batch_ends_once_it_reaches_the_target_length(len_max, lengths):
    with cordwood.open(reference.encode([bytes(100)] * 10)) as reader:
        assert [len(pack) for pack in reader.record_batches(target_len=len_max)] == lengths


def test_batches_and_single_records_share_one_position():
    with cordwood.open(reference.encode([b"a", b"b", b"c", b"d", b"e"])) as reader:
        assert next(reader) == b"a"
        packs = reader.record_batches(target_len=1)
        assert list(next(packs)) == [b"b"]
        assert reader.tell() == 16
        assert next(reader.records()).data == b"c"
        assert list(next(packs)) == [b"d"]
        assert next(reader) == b"e"
        assert list(packs) == []
        reader.seek(8)
        assert [list(pack) for pack in reader.record_batches()] == [[b"b", b"c", b"d", b"e"]]


def test_batch_memory_is_reused_only_if_no_view_of_it_exists():
    records = [bytes([number]) * 1000 for number in range(200)]
    packs = cordwood.open(reference.encode(records)).record_batches(target_len=10_000)
    kept = []
    for number, pack in enumerate(packs):
        if number % 3 == 0:
            kept.append((number, pack.data, pack.offsets))
    del pack
    gc.collect()
    for number, data, offsets in kept:
        assert data == b"".join(records[number * 10 : number * 10 + 10])
        assert offsets.tolist() == list(range(0, 10_001, 1000))


READ_AGAIN = """
import resource, sys
import cordwood

def faults_of_reading():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for pack in cordwood.open(sys.argv[1]).record_batches():
        len(pack)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults = [faults_of_reading() for _ in range(10)]
print(*faults[5:])
"""


# The last log has two batches.
@pytest.mark.parametrize("count", [20_000, 50_000, 100_000])
def test_reading_short_logs_reuses_the_same_batch_memory(count, tmp_path):
    # The system has to zero each page of new memory, and counts that as a fault.
    pytest.importorskip("resource", reason="faults are not counted here")
    path = tmp_path / "short.log"
    with cordwood.open(path, "w") as writer:
        writer.extend([bytes(16)] * count)
    # So that the C library gives memory of this length back to the system.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "30000"}
    command = [sys.executable, "-c", READ_AGAIN, path]
    faults = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    # The buffer for the file has 67 pages, and the batches have 156 or more.
    assert max(map(int, faults.split())) < 100, faults


def test_views_outlive_their_batch_and_reader():
    reader = cordwood.open(FILE)
    pack = next(reader.record_batches())
    data, offsets = pack.data, pack.offsets
    reader.close()
    del reader, pack
    gc.collect()
    assert data == b"".join(RECORDS)
    assert array.array("q", offsets) == array.array("q", [0, 3, 3, 70_003, 70_006])


def test_damage_between_batches_raises_an_error():
    bad = reference.fragment(reference.FULL, b"bad!!")
    block = reference.encode([b"one"]) + bytes([bad[0] ^ 1]) + bad[1:]
    file = block.ljust(BLOCK_LEN, b"x") + reference.encode([b"two"])
    with cordwood.open(file) as reader:
        packs = reader.record_batches()
        assert list(next(packs)) == [b"one"]
        assert reader.tell() == 10
        with pytest.raises(cordwood.CorruptionError):
            next(packs)
        assert reader.tell() == BLOCK_LEN
        assert list(next(packs)) == [b"two"]
        assert next(packs, None) is None


def test_a_batch_can_span_damage_that_is_no_longer_logged():
    # Every second record is damaged. The first ten regions are logged, and each ends a pack.
    records = [b"%093d" % index for index in range(3_000)]
    offsets = reference.record_offsets(records)
    file = bytearray(reference.encode(records))
    for offset in offsets[1::2]:
        file[offset + 50] ^= 1
    with cordwood.open(file, on_corruption="salvage") as reader:
        packs = list(reader.record_batches())
    assert [record for pack in packs for record in pack] == records[::2]
    assert [offset for pack in packs for offset in pack.record_offsets] == offsets[::2]
    assert len(packs) == 11


# In several threads ----------------------------------------------------------------------------


def take(packs):
    """Everything that is returned or raised, as values."""
    while True:
        try:
            pack = next(packs, None)
        except cordwood.CorruptionError as error:
            yield error.offset, error.length, error.reason
            continue
        if pack is None:
            break
        yield from zip(pack.record_offsets.tolist(), pack, strict=True)


@pytest.fixture(scope="module")
def long_file(tmp_path_factory):
    """Longer than threads read at once, with damage in places, including where a thread starts, and a torn tail."""
    records = [PAYLOAD[: index * 7919 % 90_000] for index in range(1200)]
    file = bytearray(reference.encode(records))
    assert len(file) > 3 * (16 << 20)
    for offset in [*range(100_000, len(file), 5_000_000), *range(16 << 20, len(file), 16 << 20)]:
        file[offset] ^= 0x10
    path = tmp_path_factory.mktemp("long") / "long.log"
    path.write_bytes(file[:-100])
    return path


class FailsOnce(io.BytesIO):
    """A source whose read raises an exception once."""

    def __init__(self, data, at, error):
        super().__init__(data)
        self.left, self.error = at, error

    def read(self, size=-1, /):
        self.left -= 1
        if self.left == 0:
            raise self.error
        return super().read(size)


def with_damage_in_blocks(numbers):
    """A log of 80 blocks. In the given blocks, one bit is flipped in the first record that lies wholly in the block."""
    log = io.BytesIO()
    with cordwood.Writer(log) as writer:
        writer.extend(b"%0993d" % number for number in range(80 * BLOCK_LEN // 1000))
    data = bytearray(log.getvalue())
    for number in numbers:
        start = number * BLOCK_LEN
        first = next(r for r in cordwood.Reader(bytes(data), start=start).records() if r.end_offset < start + BLOCK_LEN)
        data[first.offset + 500] ^= 1
    return bytes(data)


@pytest.mark.parametrize("at", range(3, 9))
@pytest.mark.parametrize("read_on", ["records", "batches"])
def test_ctrl_c_does_not_change_which_records_are_marked_salvaged(at, read_on):
    """The batch being filled spans damage in many blocks."""
    data = with_damage_in_blocks(number for number in range(80) if number % 3)
    expected = list(cordwood.Reader(data, on_corruption="salvage").records())
    assert {record.salvaged for record in expected} == {True, False}
    reader = cordwood.Reader(FailsOnce(data, at, KeyboardInterrupt()), on_corruption="salvage")
    count = 0
    with contextlib.suppress(KeyboardInterrupt):
        for pack in reader.record_batches(target_len=1 << 30):
            count += len(pack)
    assert count < len(expected)
    if read_on == "batches":
        pack = next(reader.record_batches(target_len=10_000))
        assert list(pack) == [record.data for record in expected[count : count + len(pack)]]
        count += len(pack)
    assert list(reader.records()) == expected[count:]


def test_after_a_failed_read_tell_returns_an_offset_past_every_skipped_region():
    """Half of the blocks are damaged at their start, some just before a read that fails."""
    data = bytearray(with_damage_in_blocks([]))
    for number in range(80):
        if number % 8 >= 4:
            data[number * BLOCK_LEN + 40] ^= 0xFF
    for at in range(2, 11):
        reader = cordwood.Reader(FailsOnce(bytes(data), at, OSError("once")), on_corruption="skip")
        with contextlib.suppress(OSError):
            collections.deque(reader.record_batches(target_len=1 << 30), maxlen=0)
        ends = [region.end_offset for region in reader.skipped]
        assert reader.tell() >= max(ends, default=0)


@pytest.mark.parametrize("policy", ["raise", "skip", "salvage", "stop"])
@pytest.mark.parametrize("threads", [2, 3])
def test_batches_are_the_same_with_one_thread_or_several(long_file, policy, threads):
    with cordwood.open(long_file, on_corruption=policy) as one, cordwood.open(long_file, on_corruption=policy) as many:
        expected = list(take(one.record_batches()))
        assert list(take(many.record_batches(threads=threads))) == expected
        assert many.skipped == one.skipped
        assert (many.outcome, many.tell()) == (one.outcome, one.tell())
        assert policy == "stop" or len(one.skipped) > 5


def test_batches_read_by_threads_share_one_position(long_file):
    with cordwood.open(long_file, on_corruption="skip") as reader:
        expected = list(reader.records())
    with cordwood.open(long_file, on_corruption="skip") as reader:
        found = []
        packs, records, batches = reader.record_batches(threads=2), reader.records(), reader.record_batches()
        others = reader.record_batches(threads=3, target_len=1)
        for number in range(10**9):
            way = number * 7919 % 5
            if way == 0:
                item = next(packs, [])
            elif way == 1:
                item = [record.data for record in [next(records, None)] if record is not None]
            elif way == 2:
                item = next(batches, [])
            elif way == 3:
                item = next(others, [])
            else:
                reader.seek(reader.tell())
                continue
            if not item:
                break
            found += item
        assert found == [record.data for record in expected]
        assert reader.outcome.kind == "torn_tail"


def test_uses_one_thread_if_the_source_can_only_be_read_once():
    with cordwood.open(io.BytesIO(FILE)) as reader:
        assert [list(pack) for pack in reader.record_batches(threads=4)] == [RECORDS]


def test_the_record_batches_method_rejects_a_thread_count_of_zero():
    with pytest.raises(ValueError, match="threads"):
        cordwood.open(FILE).record_batches(threads=0)


def test_a_batch_can_be_reversed():
    records = [b"one", b"", b"three"]
    [batch] = cordwood.Reader(reference.encode(records)).record_batches()
    assert list(reversed(batch)) == records[::-1]
