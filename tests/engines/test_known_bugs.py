"""Bugs in engines and scripts that read this format: tests that this library has none of them.

`docs/format/damage.md` lists them, with the behaviour of each engine.
"""

import io
import threading

import pytest
import reference
from reference import BLOCK_LEN, FULL, HEADER_LEN, KINDS, fragment

import cordwood

ONE, TWO, THREE = (fragment(FULL, data) for data in (b"one", b"two", b"three"))


def read(file, policy="skip", **options):
    """The records, and the skipped regions."""
    with cordwood.open(file, on_corruption=policy, **options) as reader:
        records = list(reader)
    return records, [(region.offset, region.end_offset, region.reason) for region in reader.skipped]


# Damage that passes for a clean end ------------------------------------------------------------


@pytest.mark.parametrize("bit", range(16))
def test_a_flipped_length_bit_near_the_end_does_not_hide_records(bit):
    """LevelDB takes any length beyond the end of the file for a torn write, and drops everything that follows."""
    length = bytearray(TWO[4:6])
    length[bit // 8] ^= 1 << bit % 8
    file = ONE + TWO[:4] + length + TWO[6:] + THREE
    with pytest.raises(cordwood.CorruptionError) as caught:
        list(cordwood.open(file))
    assert (caught.value.offset, caught.value.offset + caught.value.length) == (len(ONE), len(file))
    assert read(file, "salvage")[0] == [b"one", b"three"]


class OneByOne:
    """A source that returns one byte at a time, as a pipe or a network file system may."""

    def __init__(self, data):
        self.rest = data

    def read(self, size):
        assert size > 0
        piece, self.rest = self.rest[:1], self.rest[1:]
        return piece


def test_a_short_read_does_not_end_the_log():
    """LevelDB issue 1285."""
    records = [b"one", bytes(5000), b"two"]
    assert list(cordwood.open(OneByOne(reference.encode(records)))) == records


def test_a_log_can_be_read_no_matter_where_it_is_truncated():
    """LevelDB before 1.16 could not open a database whose log was torn (issue 160)."""
    first = bytes(BLOCK_LEN - 2 * HEADER_LEN - 5)
    file = reference.encode([first, b"first, last"])  # The second is cut after five bytes, at the end of the block.
    start = HEADER_LEN + len(first)
    for length in [*range(20), *range(start - 20, len(file))]:
        assert read(file[:length], "raise")[0] == ([first] if length >= start else [])


# Types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("kind", range(256))
def test_a_changed_fragment_type_is_reported_as_damage_and_does_not_end_the_log(kind, is_first):
    """RocksDB trusts the type before the checksum: one flipped bit makes it loop (issue 13333) or lose everything."""
    before = b"" if is_first else ONE
    changed = TWO[:6] + bytes([kind]) + TWO[7:]
    records, regions = read(before + changed + THREE)
    if kind == FULL:
        assert regions == []
    else:
        assert records == [b"one"][: not is_first]
        assert regions == [(len(before), len(before + changed + THREE), "checksum_mismatch")]


@pytest.mark.parametrize("kind", sorted(set(range(256)) - set(KINDS)))
def test_an_unknown_type_with_a_valid_checksum_does_not_lose_other_records(kind):
    """LevelDB uses types 5 and 6 as internal codes, so such a fragment ends the log. goleveldb drops the block."""
    file = ONE + fragment(kind, b"?") + TWO
    assert read(file, dialect="leveldb") == ([b"one", b"two"], [(10, 18, "unknown_kind")])


# Where fragments end ---------------------------------------------------------------------------


@pytest.mark.parametrize("left", range(15))
def test_a_fragment_header_in_the_last_bytes_of_a_block_is_read(left):
    """dfindexeddb misses a header in the last seven bytes of a block; dain/leveldb wrote them wrong (issue 20)."""
    records = [bytes(BLOCK_LEN - HEADER_LEN - left), b"behind", b""]
    file = reference.encode(records)
    assert read(file) == (records, [])
    with cordwood.open(sink := io.BytesIO(), "w") as writer:
        writer.extend(records)
    assert sink.getvalue() == file


# Losses are reported -------------------------------------------------------------------------------


def test_damage_loses_at_most_one_block_and_the_lost_range_is_reported():
    """W&B's readers raise AssertionError, or stop for good at the first damage; no reader reports the range."""
    file = (ONE[:-1] + b"E").ljust(BLOCK_LEN, b"x") + TWO
    assert read(file) == ([b"two"], [(0, BLOCK_LEN, "checksum_mismatch")])
    with pytest.raises(cordwood.CorruptionError, match="checksum") as caught:
        list(cordwood.open(file))
    assert (caught.value.offset, caught.value.length) == (0, BLOCK_LEN)


@pytest.mark.parametrize("offset", range(len(TWO)))
@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_is_located(offset, bit):
    """No other reader does this, though the checksum distinguishes every single flipped bit of a fragment."""
    file = bytearray(ONE + TWO + THREE)
    file[len(ONE) + offset] ^= 1 << bit
    [region] = cordwood.verify(bytes(file)).skipped
    assert region.bit_flip is not None
    assert (region.bit_flip.offset, region.bit_flip.bit) == (len(ONE) + offset, bit)


# Live logs -------------------------------------------------------------------------------------


def test_following_a_live_log_continues_after_damage(tmp_path):
    """W&B's live reader says "no more data" forever at the first damaged byte."""
    path = tmp_path / "live.log"
    path.write_bytes((ONE[:-1] + b"E").ljust(BLOCK_LEN, b"x"))
    with cordwood.follow(path, timeout=120, on_corruption="skip", poll_interval=0.01) as follower:
        writer = threading.Timer(0.3, append, (path, TWO))
        writer.start()
        assert next(follower) == b"two"
        writer.join()


def append(path, data):
    with path.open("ab") as file:
        file.write(data)
