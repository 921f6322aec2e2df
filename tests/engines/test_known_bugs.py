"""Bugs in engines and scripts that read this format: tests that this library has none of them.

`docs/format/damage.md` lists them, with the behaviour of each engine.
"""

import io
import threading

import pytest
import reference
from reference import BLOCK_LEN, FIRST, FULL, HEADER_LEN, KINDS, LAST, MIDDLE, fragment

import cordwood

ONE, TWO, THREE = (fragment(FULL, data) for data in (b"one", b"two", b"three"))


def read(file, policy="skip", **options):
    """The records, and the skipped regions."""
    with cordwood.open(file, on_corruption=policy, **options) as reader:
        records = list(reader)
    return records, [(region.offset, region.end_offset, region.reason) for region in reader.skipped]


# Damage that passes for a clean end ------------------------------------------------------------


@pytest.mark.parametrize("bit", range(16))
def test_a_flipped_bit_of_a_length_near_the_end_hides_no_record(bit):
    """LevelDB takes any length beyond the end of the file for a torn write, and drops everything that follows."""
    length = bytearray(TWO[4:6])
    length[bit // 8] ^= 1 << bit % 8
    file = ONE + TWO[:4] + length + TWO[6:] + THREE
    with pytest.raises(cordwood.CorruptionError) as caught:
        list(cordwood.open(file))
    assert (caught.value.offset, caught.value.offset + caught.value.length) == (len(ONE), len(file))
    assert read(file, "salvage")[0] == [b"one", b"three"]


def test_a_zero_header_swallows_no_record():
    """LevelDB and RocksDB take type 0 and length 0 for padding, even if fragments follow in the block."""
    file = ONE + bytes(HEADER_LEN) + TWO
    assert read(file) == ([b"one"], [(len(ONE), len(file), "zero_header")])
    assert read(file, "salvage") == ([b"one", b"two"], [(len(ONE), len(ONE) + HEADER_LEN, "zero_header")])


class OneByOne:
    """A source that returns one byte at a time, as a pipe or a network file system may."""

    def __init__(self, data):
        self.rest = data

    def read(self, size):
        assert size > 0
        piece, self.rest = self.rest[:1], self.rest[1:]
        return piece


def test_a_short_read_is_not_the_end():
    """LevelDB issue 1285."""
    records = [b"one", bytes(5000), b"two"]
    assert list(cordwood.open(OneByOne(reference.encode(records)))) == records


def test_a_log_cut_at_any_length_can_be_read():
    """LevelDB before 1.16 could not open a database whose log was torn (issue 160)."""
    first = bytes(BLOCK_LEN - 2 * HEADER_LEN - 5)
    file = reference.encode([first, b"first, last"])  # The second is cut after five bytes, at the end of the block.
    begin = HEADER_LEN + len(first)
    for length in [*range(20), *range(begin - 20, len(file))]:
        assert read(file[:length], "raise")[0] == ([first] if length >= begin else [])


# Records that were never written ---------------------------------------------------------------


@pytest.mark.parametrize("kind", [FULL, FIRST])
def test_an_interrupted_record_is_not_joined_with_the_next(kind):
    """All readers of the Go family join FIRST and FULL, or FIRST, FIRST and LAST, into one wrong record."""
    file = fragment(FIRST, b"a") + fragment(kind, b"b") + (fragment(LAST, b"c") if kind == FIRST else b"")
    assert read(file) == ([b"bc" if kind == FIRST else b"b"], [(0, HEADER_LEN + 1, "missing_end")])


def test_a_record_is_not_joined_across_a_hole():
    """Pebble issue 36, and the live reader of older W&B versions: a block of zeros is left out of a record."""
    payload = bytes(range(1, 251)) * 400
    file = bytearray(reference.encode([payload, b"behind"]))
    file[BLOCK_LEN : 2 * BLOCK_LEN] = bytes(BLOCK_LEN)
    records, regions = read(bytes(file))
    assert records == [b"behind"]
    assert [region[2] for region in regions] == ["interrupted_record", "zero_fill", "missing_start"]


def test_the_beginning_of_a_record_is_not_the_record():
    """golang/leveldb returned a FIRST at the end of the file as a record."""
    assert read(ONE + fragment(FIRST, b"a")) == ([b"one"], [(10, 18, "torn_tail")])


def test_a_fragment_of_an_unknown_type_is_not_joined():
    """golang/leveldb joins the payload of any type between FIRST and LAST."""
    file = fragment(FIRST, b"a") + fragment(80, b"b") + fragment(LAST, b"c") + ONE
    records, regions = read(file)
    assert records == [b"one"]
    assert [region[2] for region in regions] == ["interrupted_record", "unknown_kind", "missing_start"]


def test_damaged_data_is_not_returned():
    """leveldb-export on PyPI checks the checksum only on request, dfindexeddb never."""
    file = ONE[:-1] + b"E"
    assert read(file) == ([], [(0, len(file), "checksum_mismatch")])


# Types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("kind", range(256))
def test_a_changed_type_is_damage_and_neither_the_end_nor_a_hang(kind, is_first):
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
def test_an_unknown_type_with_a_valid_checksum_costs_only_itself(kind):
    """LevelDB uses types 5 and 6 as internal codes, so such a fragment ends the log. goleveldb drops the block."""
    file = ONE + fragment(kind, b"?") + TWO
    assert read(file, dialect="leveldb") == ([b"one", b"two"], [(10, 18, "unknown_kind")])


# Where fragments end ---------------------------------------------------------------------------


@pytest.mark.parametrize("left", range(15))
def test_a_header_in_the_last_bytes_of_a_block_is_read(left):
    """dfindexeddb misses a header in the last seven bytes of a block; dain/leveldb wrote them wrong (issue 20)."""
    records = [bytes(BLOCK_LEN - HEADER_LEN - left), b"behind", b""]
    file = reference.encode(records)
    assert read(file) == (records, [])
    with cordwood.open(sink := io.BytesIO(), "w") as writer:
        writer.extend(records)
    assert sink.getvalue() == file


def test_an_empty_first_does_not_end_the_block():
    """LevelDB wrote them in 2012. dfindexeddb takes a length of 0 for the end of the block."""
    file = ONE + fragment(FIRST, b"") + TWO
    assert read(file) == ([b"one", b"two"], [(10, 17, "empty_first")])


def test_a_zeroed_block_does_not_end_the_log():
    """Prometheus's live reader looped on padding; RocksDB's recyclable reader lost the records after it."""
    file = ONE + bytes(BLOCK_LEN - len(ONE)) + bytes(BLOCK_LEN) + TWO
    assert read(file, "raise") == ([b"one", b"two"], [(10, 2 * BLOCK_LEN, "zero_fill")])


# Losses are reported -------------------------------------------------------------------------------


def test_damage_costs_one_block_and_is_reported_with_its_range():
    """W&B's readers raise AssertionError, or stop for good at the first damage; no reader reports the range."""
    file = (ONE[:-1] + b"E").ljust(BLOCK_LEN, b"x") + TWO
    assert read(file) == ([b"two"], [(0, BLOCK_LEN, "checksum_mismatch")])
    with pytest.raises(cordwood.CorruptionError, match="checksum") as caught:
        list(cordwood.open(file))
    assert (caught.value.offset, caught.value.length) == (0, BLOCK_LEN)


def test_stopping_at_damage_reports_the_unread_bytes():
    """RocksDB's point-in-time recovery silently drops all later data."""
    file = (ONE[:-1] + b"E").ljust(BLOCK_LEN, b"x") + TWO
    assert read(file, "stop") == ([], [(0, BLOCK_LEN, "checksum_mismatch"), (BLOCK_LEN, len(file), "not_read")])


@pytest.mark.parametrize("offset", range(len(TWO)))
@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_is_located(offset, bit):
    """No other reader does this, though the checksum distinguishes every single flipped bit of a fragment."""
    file = bytearray(ONE + TWO + THREE)
    file[len(ONE) + offset] ^= 1 << bit
    [region] = cordwood.verify(bytes(file)).skipped
    assert region.bit_flip is not None
    assert (region.bit_flip.offset, region.bit_flip.bit) == (len(ONE) + offset, bit)


def test_a_record_cannot_be_longer_than_allowed():
    """Every other reader joins all fragments, until memory runs out."""
    file = fragment(FIRST, b"a" * 60) + fragment(MIDDLE, b"b" * 60) + fragment(LAST, b"c") + ONE
    with cordwood.open(file, record_len_max=100) as reader:
        with pytest.raises(cordwood.RecordTooLargeError):
            next(reader)
        assert next(reader) == b"one"


# Live logs -------------------------------------------------------------------------------------


def test_a_live_log_continues_after_damage(tmp_path):
    """W&B's live reader says "no more data" forever at the first damaged byte."""
    path = tmp_path / "live.log"
    path.write_bytes((ONE[:-1] + b"E").ljust(BLOCK_LEN, b"x"))
    with cordwood.follow(path, timeout=10, on_corruption="skip", poll_interval=0.01) as follower:
        writer = threading.Timer(0.3, append, (path, TWO))
        writer.start()
        assert next(follower) == b"two"
        writer.join()


def append(path, data):
    with path.open("ab") as file:
        file.write(data)
