"""The policy `salvage` against `reference.py`, and the functions built on it: `verify`, `salvage` and `stat`."""

import io
import mmap
from itertools import pairwise

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from random_logs import files, files_with_ranges, options, smashed_logs
from reference import BLOCK_LEN, FIRST, FULL, HEADER_LEN
from support import PAYLOAD, OnlyRead, merged, plain_end, plain_skipped, read_events, start_of, written

import cordwood

pytestmark = pytest.mark.usefixtures("no_log")


def read_salvaged(reader):
    """Like `read_events`, with the salvaged marks."""
    records = [reference.Record(item.offset, item.end_offset, item.data, item.salvaged) for item in reader.records()]
    return merged(sorted([*records, *plain_skipped(reader)], key=start_of))


# Against the reference -------------------------------------------------------------------------


@pytest.mark.cell("one-file", "salvage")
@given(st.one_of(smashed_logs(), smashed_logs(), files), options)
def test_salvage_matches_the_reference(file, options):
    *expected, end = reference.events(file, salvage=True, **options)
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage", **options) as reader:
        assert read_salvaged(reader) == merged(expected)
        assert plain_end(reader) == end


@given(files_with_ranges(), options)
def test_salvaging_a_range_matches_the_reference(file_with_range, options):
    file, file_range = file_with_range
    options |= file_range
    *expected, end = reference.events(file, salvage=True, **options)
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage", **options) as reader:
        assert read_salvaged(reader) == merged(expected)
        assert plain_end(reader) == end


@given(st.one_of(smashed_logs(), files), st.data())
def test_adjacent_ranges_add_up_to_the_whole_log(file, data):
    cuts = data.draw(st.lists(st.integers(0, len(file)), max_size=5))
    parts = []
    for start, end in pairwise([0, *sorted(cuts), None]):
        with cordwood.open(file, dialect="leveldb", on_corruption="salvage", start=start, end=end) as reader:
            parts += read_salvaged(reader)
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage") as reader:
        assert merged(parts) == read_salvaged(reader)


@given(st.one_of(smashed_logs(), files))
def test_salvage_returns_every_record_that_the_skip_policy_returns(file):
    with cordwood.open(file, dialect="leveldb", on_corruption="skip") as reader:
        skipped = list(reader.records())
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage") as reader:
        assert [record for record in reader.records() if not record.salvaged] == skipped


# The mark --------------------------------------------------------------------------------------


def test_salvaging_marks_records_after_damage_in_the_same_block():
    file = bytearray(written([b"one", b"two", b"three", PAYLOAD[:BLOCK_LEN], b"four"]))
    file[18] ^= 4
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage") as reader:
        assert [(record.data[:5], record.salvaged) for record in reader.records()] == [
            (b"one", False),
            (b"three", True),
            (PAYLOAD[:5], True),
            (b"four", False),
        ]
        (region,) = reader.skipped
        assert (region.offset, region.end_offset, region.reason) == (10, 20, "checksum_mismatch")
        assert region.bit_flip is None, "only verify and salvage look for it"


def test_salvaged_flag_affects_repr_and_equality():
    file = bytearray(written([b"one", b"two"]))
    with cordwood.open(file, dialect="leveldb") as reader:
        _, sound = reader.records()
    file[8] ^= 1
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage") as reader:
        (salvaged,) = reader.records()
    assert (sound.offset, sound.data) == (salvaged.offset, salvaged.data)
    assert sound != salvaged
    assert repr(salvaged) == "Record(offset=10, end_offset=20, data=b'two', salvaged=True)"
    assert repr(sound) == "Record(offset=10, end_offset=20, data=b'two')"


def test_record_batches_contain_salvaged_records():
    file = bytearray(written([b"one", b"two", b"three"]))
    file[8] ^= 1
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage") as reader:
        assert [list(batch) for batch in reader.record_batches()] == [[b"two", b"three"]]


def test_follow_rejects_the_salvage_policy(tmp_path):
    path = tmp_path / "live.log"
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="salvage"):
        cordwood.follow(path, on_corruption="salvage")


# verify ----------------------------------------------------------------------------------------


def check_report(report, file, **options):
    """Checks that a report agrees with a reader."""
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage", **options) as reader:
        records = list(reader.records())
        assert report.record_count == len(records)
        assert report.salvaged_count == sum(record.salvaged for record in records)
        assert report.payload_len == sum(len(record.data) for record in records)
        regions = merged(plain_skipped(report))
        assert regions == merged(plain_skipped(reader))
        assert report.outcome == reader.outcome
    for sums, attribute in ((report.len_by_reason, "reason"), (report.len_by_severity, "severity")):
        expected = {}
        for region in report.skipped:
            key = getattr(region, attribute)
            expected[key] = expected.get(key, 0) + region.length
        assert sums == expected
    assert report.ok == all(region.severity != "corruption" for region in report.skipped)


@given(files_with_ranges(), options, st.integers(2, 5))
def test_a_report_matches_a_reader_regardless_of_the_thread_count(file_with_range, options, threads):
    file, file_range = file_with_range
    options |= file_range
    report = cordwood.verify(file, dialect="leveldb", **options)
    assert report.file_len == len(file)
    check_report(report, file, **options)
    assert cordwood.verify(file, dialect="leveldb", threads=threads, **options) == report


@given(st.one_of(smashed_logs(), files))
def test_verify_counts_the_records_that_leveldb_would_drop(file):
    """In one reading."""
    *by_rule, _ = reference.events(file)
    count = sum(isinstance(event, reference.Record) for event in by_rule)
    report, stat = cordwood.verify(file, dialect="leveldb"), cordwood.stat(file, dialect="leveldb")
    assert report.record_count - report.salvaged_count == count
    assert (stat.record_count, stat.salvaged_count) == (report.record_count, report.salvaged_count)
    assert stat.damaged_len == report.len_by_severity.get("corruption", 0)


def test_each_kind_of_source_gives_the_same_report(tmp_path):
    file = bytearray(written([PAYLOAD[:100], PAYLOAD[: 3 * BLOCK_LEN], PAYLOAD[:50_000], b"end"]))
    file[2 * BLOCK_LEN] ^= 1
    path = tmp_path / "example.log"
    path.write_bytes(file)
    report = cordwood.verify(bytes(file), dialect="leveldb")
    assert not report.ok
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        sources = [str(path), path, file, memoryview(file), mapped]
        for source in sources:
            for threads in (1, 3):
                assert cordwood.verify(source, dialect="leveldb", threads=threads) == report
            assert cordwood.stat(source, dialect="leveldb") == cordwood.stat(bytes(file), dialect="leveldb")
        assert cordwood.verify(opened, threads=3) == report
    assert cordwood.verify(OnlyRead(bytes(file), 1000), threads=3) == report
    assert cordwood.stat(OnlyRead(bytes(file), 1000)) == cordwood.stat(bytes(file), dialect="leveldb")


@pytest.mark.parametrize(
    ("offset", "part"), [(0, "checksum"), (3, "checksum"), (4, "length"), (5, "length"), (6, "kind"), (7, "payload")]
)
@pytest.mark.parametrize("bit", range(8))
def test_verifying_a_log_locates_a_flipped_bit(offset, part, bit):
    file = bytearray(written([PAYLOAD[:70], b"next", PAYLOAD[:BLOCK_LEN]]))
    file[offset] ^= 1 << bit
    report = cordwood.verify(file, dialect="leveldb")
    flip = report.skipped[0].bit_flip
    assert (flip.offset, flip.bit, flip.part) == (offset, bit, part)
    assert isinstance(flip.part, cordwood.types.FragmentPart)
    assert repr(flip) == f"BitFlip(offset={offset}, bit={bit}, part='{part}')"
    assert flip == cordwood.verify(memoryview(file), dialect="leveldb").skipped[0].bit_flip
    assert len({flip, cordwood.verify(file, dialect="leveldb").skipped[0].bit_flip}) == 1
    file[20] ^= 1
    assert cordwood.verify(file, dialect="leveldb").skipped[0].bit_flip is None or offset == 20


def test_verifying_accepts_an_intact_log_and_a_log_with_a_torn_tail():
    file = written([b"one", b"two"])
    report = cordwood.verify(file, dialect="leveldb")
    assert (report.ok, report.skipped, report.len_by_reason, report.len_by_severity) == (True, (), {}, {})
    assert repr(report) == (
        "<cordwood.Report: ok=True, record_count=2, skipped=0, outcome=Outcome(kind='clean', offset=20)>"
    )
    report = cordwood.verify(file[:-1], dialect="leveldb")
    assert report.ok
    assert report.len_by_severity == {"torn_tail": 9}
    assert report.outcome.kind == "torn_tail"


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_an_undetectable_dialect_is_reported_as_unknown_regardless_of_the_thread_count(threads, tmp_path):
    path = tmp_path / "000003.log"
    path.write_bytes(written([b"one"]))
    assert cordwood.verify(path, threads=threads).dialect_known
    path.write_bytes(b"XY" + written([b"one"])[2:])
    assert not cordwood.verify(path, threads=threads).dialect_known
    assert cordwood.verify(path, threads=threads, dialect="leveldb").dialect_known


def test_verify_rejects_an_invalid_thread_count():
    with pytest.raises(ValueError, match="threads"):
        cordwood.verify(b"", threads=0)


def test_verify_propagates_exceptions_from_the_source(tmp_path):
    class Bad:
        def read(self, size):
            raise LookupError("no more")

    for verb in (cordwood.verify, cordwood.stat, lambda source: cordwood.salvage(source, tmp_path / "new.log")):
        with pytest.raises(LookupError, match="no more"):
            verb(Bad())
        with pytest.raises(FileNotFoundError) as caught:
            verb(tmp_path / "missing.log")
        assert caught.value.filename == str(tmp_path / "missing.log")
        with pytest.raises(TypeError, match="source"):
            verb(7)
    assert list(tmp_path.iterdir()) == []


# salvage ---------------------------------------------------------------------------------------


@given(st.one_of(smashed_logs(), files))
def test_salvaging_writes_the_records_to_the_new_log(tmp_path_factory, file):
    destination = tmp_path_factory.mktemp("salvage") / "clean.log"
    report = cordwood.salvage(file, destination, dialect="leveldb")
    check_report(report, file)
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage") as reader:
        records = list(reader)
    assert destination.read_bytes() == reference.encode(records)
    assert list(destination.parent.iterdir()) == [destination]


def test_salvaging_never_overwrites_a_file(tmp_path):
    source = tmp_path / "example.log"
    source.write_bytes(written([b"one"]))
    other = tmp_path / "other.log"
    other.write_bytes(b"precious")
    dangling = tmp_path / "dangling.log"
    dangling.symlink_to(tmp_path / "nowhere.log")
    before = sorted(tmp_path.iterdir())
    for destination in (source, other, dangling):
        with pytest.raises(FileExistsError) as caught:
            cordwood.salvage(source, destination)
        assert caught.value.filename == str(destination)
    assert source.read_bytes() == written([b"one"])
    assert other.read_bytes() == b"precious"
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(FileNotFoundError):
        cordwood.salvage(source, tmp_path / "missing" / "clean.log")
    with pytest.raises(TypeError, match="destination"):
        cordwood.salvage(source, io.BytesIO())


def test_destination_defaults_to_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cordwood.salvage(written([b"one"]), "clean.log")
    assert (tmp_path / "clean.log").read_bytes() == written([b"one"])


def test_a_salvage_that_fails_midway_leaves_no_file(tmp_path):
    class Fails(OnlyRead):
        def read(self, size):
            piece = super().read(size)
            if not piece:
                raise OSError("the disk is on fire")
            return piece

    with pytest.raises(OSError, match="on fire"):
        cordwood.salvage(Fails(written([PAYLOAD] * 3)), tmp_path / "clean.log")
    assert list(tmp_path.iterdir()) == []


# stat ------------------------------------------------------------------------------------------


@given(st.one_of(smashed_logs(), files), options)
def test_the_statistics_of_a_log_match_the_reference(file, options):
    stat = cordwood.stat(file, dialect="leveldb", **options)
    *events, end = reference.events(file, salvage=True, **options)
    records = [event for event in events if isinstance(event, reference.Record)]
    lens = [len(record.data) for record in records]
    verifies = options.get("verify_checksums", True)
    found = reference.fragments(file, verify_checksums=verifies, salvage=True)
    parts = [part for part in found if isinstance(part, reference.Fragment)]
    spans = [(record.offset, record.end_offset) for record in records]
    own = [part for part in parts if any(start <= part.start < end for start, end in spans)]
    counts = [sum(part.kind == kind for part in own) for kind in range(FULL, FULL + 4)]
    assert [stat.full_count, stat.first_count, stat.middle_count, stat.last_count] == counts
    assert stat.record_count == len(records)
    assert stat.payload_len == sum(lens)
    assert (stat.record_len_min, stat.record_len_max) == (min(lens, default=None), max(lens, default=None))
    assert stat.record_len_mean == (sum(lens) / len(lens) if lens else None)
    assert stat.skipped_len == sum(event.end - event.start for event in events if isinstance(event, reference.Skipped))
    report = cordwood.verify(file, dialect="leveldb", **options)
    assert stat.damaged_len == report.len_by_severity.get(cordwood.types.Severity.CORRUPTION, 0)
    assert stat.file_len == len(file)
    assert stat.block_count == -(-len(file) // BLOCK_LEN)
    assert stat.payload_len + HEADER_LEN * sum(counts) + stat.trailer_len + stat.skipped_len == len(file)
    assert (str(stat.outcome.kind), stat.outcome.offset) == (end.kind, end.offset)
    assert cordwood.stat(file, dialect="leveldb", threads=3, **options) == stat


def test_salvage_reassembles_a_record_that_starts_right_after_damage():
    bad = bytearray(reference.fragment(FULL, b"bad"))
    bad[8] ^= 1
    whole = BLOCK_LEN - len(bad) - HEADER_LEN
    file = bytes(bad) + reference.fragment(FIRST, PAYLOAD[:whole]) + reference.fragment(4, b"last")
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage") as reader:
        (record,) = reader.records()
        assert record.data == PAYLOAD[:whole] + b"last"
        assert record.salvaged
    with cordwood.open(file, dialect="leveldb", on_corruption="skip") as reader:
        assert [type(event) for event in read_events(reader)] == [reference.Skipped] * 2


def test_a_salvaged_record_is_still_marked_after_seeking_to_it():
    file = bytearray(reference.encode([b"record %d" % number for number in range(5)]))
    file[15 + 9] ^= 1
    with cordwood.open(bytes(file), dialect="leveldb", on_corruption="salvage") as reader:
        records = list(reader.records())
        assert [record.salvaged for record in records] == [False, True, True, True]
        for at, record in enumerate(records):
            reader.seek(record.offset)
            assert list(reader.records()) == records[at:]
