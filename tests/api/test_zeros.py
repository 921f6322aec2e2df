"""Zeros in a log: where those at its end start, and how many are before a record."""

import io
import pickle
from typing import get_args

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from random_logs import files
from reference import BLOCK_LEN
from support import PAYLOAD, OnlyRead

import cordwood
from cordwood.typing import DialectName

pytestmark = pytest.mark.usefixtures("no_log")

DIALECTS = get_args(DialectName)


def log_in(dialect, records):
    """A log in this dialect; with a log number, if it may have one."""
    number = {"log_number": 7} if dialect in ("rocksdb", "pebble", "recyclable") else {}
    sink = io.BytesIO()
    with cordwood.Writer(sink, dialect=dialect, **number) as writer:
        writer.extend(records)
        writer.flush()
        # Before it is closed: a closed log of Pebble ends with a trailer, and the bytes after it are no part of it.
        return sink.getvalue()


def outcomes_of(source, **options):
    """How each function that reads a whole log says that it ended."""
    yield cordwood.verify(source, **options).outcome
    yield cordwood.verify(source, threads=3, **options).outcome
    yield cordwood.stat(source, **options).outcome
    for policy in ("raise", "skip", "stop", "salvage"):
        with cordwood.open(source, on_corruption=policy, **options) as reader:
            list(reader)
            yield reader.outcome
    yield reader.outcome
    with cordwood.open(source, **options) as reader:
        list(reader.record_batches(threads=2))
        yield reader.outcome


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("length", [20, 5_000, BLOCK_LEN, 3 * BLOCK_LEN + 1])
def test_trailing_zeros_start_after_the_last_record(dialect, length):
    log = log_in(dialect, [b"one", PAYLOAD[:40_000], b"three"])
    source = log + bytes(length)
    for outcome in outcomes_of(source, dialect=dialect):
        assert (outcome.kind, outcome.offset, outcome.zeros_offset) == ("clean", len(source), len(log))
    report = cordwood.verify(source)
    assert (report.ok, report.outcome.zeros_offset) == (True, len(log))
    assert cordwood.verify(OnlyRead(source, 1000)).outcome == report.outcome


def test_trailing_zeros_can_span_parts_read_by_several_threads():
    """Each part is at least 1 MiB long."""
    log = reference.encode([b"one"])
    for inside, after in ((0, 8 << 20), (3 << 20, 5 << 20)):
        source = log + bytes(inside)
        if inside:
            source += bytes(-len(source) % BLOCK_LEN) + reference.encode([b"two"])
        stat = cordwood.stat(source + bytes(after), threads=3)
        assert (stat.outcome.zeros_offset, stat.zeros_inside_len) == (len(source), max(0, len(source) - 20))
        assert cordwood.verify(source + bytes(after), threads=3).outcome == stat.outcome


# The two records of a packed log share a container.
@pytest.mark.parametrize("dialect", sorted({*DIALECTS} - {"packed"}))
def test_a_log_without_trailing_zeros_has_no_zeros_offset(dialect):
    log = log_in(dialect, [b"one", bytes(50)])
    record = log_in(dialect, [b"one", b"two"])[len(log_in(dialect, [b"one"])) :]
    block = 2 * BLOCK_LEN + (7 if dialect == "wandb_old" else 0)
    holed = log + bytes(block - len(log)) + record
    for source in (log, log[:-1], holed):
        for outcome in outcomes_of(source, dialect=dialect):
            assert outcome.zeros_offset is None


def test_zeros_offset_is_0_if_the_file_is_all_zeros():
    for length in (1, 7, 5_000, 2 * BLOCK_LEN):
        assert [outcome.zeros_offset for outcome in outcomes_of(bytes(length))] == [0] * 9


def test_zeros_that_are_too_short_for_a_header_are_treated_as_a_block_trailer():
    file = reference.encode([PAYLOAD[: BLOCK_LEN - 7 - 6]]) + bytes(6)
    assert cordwood.verify(file).outcome.zeros_offset is None
    assert cordwood.verify(file + bytes(1)).outcome.zeros_offset == BLOCK_LEN


def test_the_offset_of_trailing_zeros_after_damage_is_reported():
    file = bytearray(reference.encode([b"one", PAYLOAD[: BLOCK_LEN - 17 - 7], b"three"]))
    file[8] ^= 1
    report = cordwood.verify(bytes(file) + bytes(100))
    assert (report.ok, report.outcome.zeros_offset) == (False, len(file))


def test_a_range_that_ends_early_has_no_zeros_offset():
    file = reference.encode([b"one"]) + bytes(3 * BLOCK_LEN - 10)
    assert cordwood.verify(file, end=BLOCK_LEN).outcome.zeros_offset is None
    assert cordwood.verify(file, start=BLOCK_LEN).outcome.zeros_offset == BLOCK_LEN
    assert cordwood.verify(file, start=1).outcome.zeros_offset == 10
    assert cordwood.verify(OnlyRead(file), end=BLOCK_LEN).outcome.zeros_offset is None


def test_seeking_resets_the_zeros_offset():
    with cordwood.open(reference.encode([b"one"]) + bytes(100)) as reader:
        list(reader)
        assert reader.outcome == cordwood.types.Outcome(kind="clean", offset=110, zeros_offset=10)
        reader.seek(10)
        assert reader.outcome.zeros_offset is None
        assert list(reader) == []
        assert reader.outcome.zeros_offset == 10
    assert reader.outcome.zeros_offset == 10


def test_a_scan_reports_the_zeros_offset_of_each_source(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow

    paths = [tmp_path / name for name in ("zeros.log", "good.log")]
    for path, tail in zip(paths, (bytes(5_000), b""), strict=True):
        path.write_bytes(reference.encode([b"one"]) + tail)
    scan = cordwood.scan(paths)
    assert len(pyarrow.table(scan)) == 2
    assert [outcome.zeros_offset for outcome in scan.outcomes] == [10, None]


def test_the_zeros_offset_is_part_of_the_outcome():
    with_zeros = cordwood.types.Outcome(kind="clean", offset=20, zeros_offset=10)
    assert with_zeros != cordwood.types.Outcome(kind="clean", offset=20)
    assert pickle.loads(pickle.dumps(with_zeros)) == with_zeros  # noqa: S301
    assert repr(with_zeros) == "Outcome(kind='clean', offset=20, zeros_offset=10)"
    match with_zeros:
        case cordwood.types.Outcome(kind, offset, zeros_offset):
            assert (kind, offset, zeros_offset) == ("clean", 20, 10)
    stat = cordwood.stat(reference.encode([b"one"]) + bytes(BLOCK_LEN - 10) + reference.encode([b"two"]))
    assert pickle.loads(pickle.dumps(stat)) == stat  # noqa: S301
    assert stat.zeros_inside_len == BLOCK_LEN - 10


def zeros_of(events, file_len):
    """Where the zeros at the end start, and how many bytes of zeros a record follows: by looking at each event."""
    zeros_offset, zeros_len, inside_len = None, 0, 0
    for event in events:
        if isinstance(event, reference.Record):
            zeros_offset, zeros_len, inside_len = None, 0, inside_len + zeros_len
        elif event.reason == "zero_fill":
            zeros_offset = event.start if zeros_offset is None else zeros_offset
            zeros_len += event.end - event.start
        else:
            zeros_offset = None
        end = event.end_offset if isinstance(event, reference.Record) else event.end
    return zeros_offset if events and end == file_len else None, inside_len


zeros_between = st.lists(st.one_of(files, st.integers(0, 3 * BLOCK_LEN).map(bytes)), max_size=4).map(b"".join)


@given(st.one_of(files, zeros_between))
def test_zeros_found_in_random_files_match_the_reference(file):
    *events, _ = reference.events(file, salvage=True)
    expected_offset, expected_len = zeros_of(events, len(file))
    for threads in (1, 3):
        stat = cordwood.stat(file, dialect="leveldb", threads=threads)
        assert (stat.outcome.zeros_offset, stat.zeros_inside_len) == (expected_offset, expected_len)
        report = cordwood.verify(file, dialect="leveldb", threads=threads)
        assert report.outcome == stat.outcome
    with cordwood.open(file, dialect="leveldb", on_corruption="salvage") as reader:
        list(reader)
        assert reader.outcome == stat.outcome


@given(st.one_of(files, zeros_between))
def test_the_skip_policy_finds_the_same_zeros_as_the_reference(file):
    *events, _ = reference.events(file)
    expected_offset, _ = zeros_of(events, len(file))
    with cordwood.open(file, dialect="leveldb", on_corruption="skip") as reader:
        list(reader)
        assert reader.outcome.zeros_offset == expected_offset
