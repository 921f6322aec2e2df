"""`salvage(..., repair_bit_flips=True)`: a log with one flipped bit becomes the log that it was.

The expected bytes are those that `salvage` makes of the undamaged log. The environment variable `CORDWOOD_FLIPS` says
how many flipped bits to try in each log, and `CORDWOOD_CORPUS` adds the logs of other people.
"""

import os
import random

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from random_logs import damaged_logs, smashed_logs
from real_files import ALL
from suite import fragment
from support import merged, plain_skipped, written

import cordwood

FLIPS = int(os.environ.get("CORDWOOD_FLIPS", "12"))

RECORDS = [bytes([number]) * (number * 7919 % 1500) for number in range(120)] + [bytes(range(251)) * 280, b"", b"end"]

KEPT = (cordwood.types.Reason.METADATA, cordwood.types.Reason.FILE_HEADER, cordwood.types.Reason.END_TRAILER)
"""Data that `salvage` keeps although no reader returns it."""


class Logs:
    """Salvages bytes under a name, since that may state the number of the log."""

    def __init__(self, directory, name):
        self.source = directory / "old" / name
        self.new = directory / "new" / name
        for path in (self.source, self.new):
            path.parent.mkdir()

    def salvage(self, data, **options):
        """The fate of the bytes: the new log, and the report."""
        self.source.write_bytes(data)
        self.new.unlink(missing_ok=True)
        report = cordwood.salvage(self.source, self.new, **options)
        return self.new.read_bytes(), report

    def check_flips(self, data, rng):
        """Checks that flipped bits of a log are flipped back: half of them in headers, and half anywhere."""
        good, report = self.salvage(data)
        assert report.ok
        fragments = list(cordwood.fragments(self.source))
        trailers = [one for one in fragments if one.kind == cordwood.types.FragmentKind.TRAILER]
        kept = [one for one in fragments if one not in trailers and one.reason in (None, *KEPT)]
        for number in range(FLIPS):
            place = rng.randrange(8 * len(data))
            if number % 2:
                place = min(8 * rng.choice(fragments).offset + rng.randrange(88), 8 * len(data) - 1)
            at, bit = divmod(place, 8)
            if any(one.offset <= at < one.end_offset for one in trailers if one.length >= reference.HEADER_LEN):
                continue  # It may interrupt a record, and no checksum shows which bit it was.
            new, report = self.salvage(flipped(data, at, bit), repair_bit_flips=True)
            assert new == good, f"bit {bit} of byte {at}"
            for one in kept:
                if one.offset <= at < one.end_offset:
                    [region] = report.repaired
                    assert (region.offset, region.end_offset) == (one.offset, one.end_offset)
                    assert (region.bit_flip.offset, region.bit_flip.bit) == (at, bit)
                    assert not report.ok
                    assert cordwood.types.Severity.CORRUPTION not in report.len_by_severity


def flipped(data, at, bit):
    """The bytes with one bit flipped."""
    out = bytearray(data)
    out[at] ^= 1 << bit
    return bytes(out)


@pytest.mark.parametrize("path", ALL)
def test_repairing_restores_a_real_log_with_one_flipped_bit(tmp_path, path):
    data = path.read_bytes()
    Logs(tmp_path, path.name).check_flips(data, random.Random(f"{path.parent.name}/{path.name}"))


@pytest.mark.parametrize("dialect", ["leveldb", "rocksdb", "pebble", "recyclable", "wandb", "wandb_old", "swanlab"])
def test_repairing_restores_a_log_with_one_flipped_bit(tmp_path, dialect):
    has_number = dialect in ("rocksdb", "pebble", "recyclable")
    path = tmp_path / ("000007.log" if has_number else "example.log")
    with cordwood.open(path, "w", dialect=dialect, log_number=7 if has_number else None) as writer:
        writer.extend(RECORDS)
    Logs(tmp_path, path.name).check_flips(path.read_bytes(), random.Random(dialect))


@pytest.mark.parametrize("number", [None, 9], ids=["plain", "recycled"])
def test_repairing_undoes_a_flipped_bit_in_metadata(tmp_path, number):
    piece = {} if number is None else {"log_number": number}
    of_form = 0 if number is None else 1
    timestamps = fragment(10 + of_form, b"\1\0\0\0\x08\0", piece)
    predecessor = fragment(130 + of_form, b"".join(value.to_bytes(8, "little") for value in (3, 500, 90)), piece)
    records = [fragment(1 + 4 * of_form, bytes([index]) * index, piece) for index in range(60)]
    data = timestamps + predecessor + b"".join(records[:30]) + timestamps + b"".join(records[30:])
    Logs(tmp_path, "000009.log").check_flips(data, random.Random(0))


@given(st.one_of(smashed_logs(), damaged_logs()))
def test_salvaging_makes_the_same_repairs_as_the_reference(tmp_path_factory, file):
    new = tmp_path_factory.mktemp("repair") / "new.log"
    report = cordwood.salvage(file, new, dialect="leveldb", repair_bit_flips=True)
    *expected, _ = reference.events(file, salvage=True, repair=True)
    records = [event.data for event in expected if isinstance(event, reference.Record)]
    assert new.read_bytes() == reference.encode(records)
    assert merged(plain_skipped(report)) == merged(
        [event for event in expected if not isinstance(event, reference.Record)]
    )
    assert report.repaired_count <= len(report.repaired)


def test_flipped_bits_in_records_are_repaired_only_on_request(tmp_path):
    data = flipped(written([b"one", b"two", b"three"]), 17, 5)
    report = cordwood.salvage(data, tmp_path / "new.log", dialect="leveldb")
    assert (report.record_count, report.repaired_count, report.repaired) == (2, 0, ())
    for reader in (cordwood.open(data, dialect="leveldb", on_corruption=policy) for policy in ("skip", "salvage")):
        assert b"two" not in list(reader)
    with pytest.raises(TypeError, match="repair_bit_flips"):
        cordwood.open(data, repair_bit_flips=True)


def test_does_not_repair_two_flipped_bits_in_one_fragment(tmp_path):
    data = flipped(flipped(written([b"one", b"two", b"three"]), 17, 5), 18, 0)
    report = cordwood.salvage(data, tmp_path / "new.log", dialect="leveldb", repair_bit_flips=True)
    assert (report.record_count, report.repaired_count, report.repaired) == (2, 0, ())
    assert [region.reason for region in report.skipped] == ["checksum_mismatch"]


def test_a_record_is_written_only_if_all_its_fragments_are_valid_or_repaired(tmp_path):
    """Of a record in three blocks, the first two fragments have one flipped bit each, and the third none or two."""
    record = bytes(range(251)) * 300
    data = flipped(flipped(written([record, b"next"]), 1000, 0), 40_000, 7)
    report = cordwood.salvage(data, tmp_path / "whole.log", dialect="leveldb", repair_bit_flips=True)
    assert (report.record_count, report.repaired_count) == (2, 1)
    assert [region.bit_flip.offset for region in report.repaired] == [1000, 40_000]
    assert (tmp_path / "whole.log").read_bytes() == written([record, b"next"])

    data = flipped(flipped(data, 70_000, 0), 70_001, 0)
    report = cordwood.salvage(data, tmp_path / "part.log", dialect="leveldb", repair_bit_flips=True)
    assert (report.record_count, report.repaired_count, report.repaired) == (1, 0, ())
    assert [region.reason for region in report.skipped] == ["interrupted_record", "checksum_mismatch"]
    assert list(cordwood.open(tmp_path / "part.log")) == [b"next"]


def test_locates_a_flipped_bit_in_the_file_header(tmp_path):
    path = tmp_path / "run.wandb"
    with cordwood.open(path, "w", dialect="wandb") as writer:
        writer.append(b"one")
    report = cordwood.verify(flipped(path.read_bytes(), 5, 1))
    assert report.skipped[0].reason == "bad_file_header"
    assert report.skipped[0].bit_flip == cordwood.types.BitFlip(offset=5, bit=1, part="file_header")


def test_a_repaired_log_still_counts_as_damaged(tmp_path):
    data = flipped(written([b"one", b"two"]), 8, 0)
    report = cordwood.salvage(data, tmp_path / "new.log", dialect="leveldb", repair_bit_flips=True)
    assert not report.ok
    assert (report.skipped, report.skipped_len) == ((), 0)
    [region] = report.repaired
    assert (region.reason, region.offset, region.end_offset) == ("checksum_mismatch", 0, 10)
