"""A log whose start was lost is opened again: at the first start, and at every later one.

A loss of power leaves a first sector of zeros, all zeros, or less than the mark or the file header. Attack R2 and R4.
"""

import json
import os
import shutil

import pytest
import reference

import cordwood

OPTIONS = {
    "leveldb": {"dialect": "leveldb"},
    "packed": {"dialect": "packed", "compression": "zstd"},
}
SEGMENT_LEN = 1 << 20


def text(number, length):
    return (json.dumps({"number": number, "item": "two coffees"}) * length)[:length].encode()


def starts(path, count, **options):
    """Opens the log several times, and appends a record each time."""
    for number in range(count):
        with cordwood.open(path, "a", **options) as writer:
            writer.append(b"start %d" % number)
    return [b"start %d" % number for number in range(count)]


def damage(path, damaged_len, is_short):
    if is_short:
        os.truncate(path, damaged_len)
    else:
        with path.open("r+b") as file:
            file.write(bytes(min(damaged_len, path.stat().st_size)))


@pytest.mark.parametrize(
    ("damaged_len", "is_short"), [(7, True), (1, True), (16, True), (512, False), (1 << 20, False)]
)
@pytest.mark.parametrize("with_segments", [False, True])
def test_padding_a_packed_log_rewrites_its_format_mark(tmp_path, with_segments, damaged_len, is_short):
    path = tmp_path / "log"
    options = OPTIONS["packed"] | {"on_torn_tail": "pad"}
    before = []
    if with_segments:
        options["segment_len"] = SEGMENT_LEN
        before = [b"old %d" % number for number in range(5)]
    with cordwood.open(path, "a", **options) as writer:
        writer.extend(before)
        base = writer.rotate() if with_segments else 0
        writer.append(os.urandom(700))
    file = path / f"{base:020}.log" if with_segments else path
    damage(file, damaged_len, is_short)
    appended = starts(path, 3, **options)
    # The format is found without its name, too, and with its compression.
    assert cordwood.detect(file).dialect == "packed"
    block = file.read_bytes()[reference.BLOCK_LEN :]
    assert block[6:17] == b"\x48cordwood\1\1"
    del options["dialect"], options["compression"]
    appended += starts(path, 2, **options)
    assert list(cordwood.Reader(path, on_corruption="skip")) == before + appended


@pytest.mark.parametrize("dialect", ["wandb", "swanlab", "packed", "leveldb"])
@pytest.mark.parametrize("left", range(8))
def test_a_log_truncated_to_a_few_bytes_can_be_opened_repeatedly(tmp_path, dialect, left):
    path = tmp_path / "run"
    with cordwood.open(path, "w", dialect=dialect) as writer:
        writer.append(b"lost")
    os.truncate(path, left)
    appended = starts(path, 3, dialect=dialect, on_torn_tail="pad")
    assert list(cordwood.Reader(path, dialect=dialect, on_corruption="skip")) == appended


# What was appended to the last segment, and how much of its start is zeros.
LOST = {
    "three records, first sector": ([300] * 3, 512),
    "a record of text, first 4 KiB": ([5000], 4096),
    "a long record of text, first block": ([100_000], 36_864),
    "60 records, first sector": ([1000] * 60, 512),
}


@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("dialect", OPTIONS)
def test_a_log_can_be_reopened_if_the_start_of_its_last_segment_is_lost(tmp_path, dialect, lost, is_named):
    sizes, lost_len = LOST[lost]
    path = tmp_path / "log"
    before = [b"old %d" % number for number in range(100)]
    with cordwood.open(path, "a", segment_len=SEGMENT_LEN, **OPTIONS[dialect]) as writer:
        writer.extend(before)
        base = writer.rotate()
        for number, size in enumerate(sizes):
            writer.append(text(number, size) if dialect == "leveldb" else os.urandom(size))
    damage(path / f"{base:020}.log", lost_len, is_short=False)
    options = {"segment_len": SEGMENT_LEN} | (OPTIONS[dialect] if is_named else {})
    copy = tmp_path / "copy"
    opened = set()
    for on_torn_tail in ("truncate", "pad"):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(path, copy)
        try:
            appended = starts(copy, 3, on_torn_tail=on_torn_tail, **options)
        except cordwood.CorruptionError as error:
            assert (on_torn_tail, error.hint) == ("truncate", "pad")  # noqa: PT017
            continue
        opened.add(on_torn_tail)
        # No record that was durable is lost, and none is there twice.
        found = list(cordwood.Reader(copy, on_corruption="skip"))
        assert found[: len(before)] == before
        assert found[-3:] == appended
        assert len(set(found)) == len(found)
    assert "pad" in opened
    # By the rule for the middle of a file: a whole record after the damage is not cut off.
    assert ("truncate" in opened) == (len(sizes) == 1)


def test_opening_a_log_fails_if_the_start_of_its_only_segment_is_lost(tmp_path):
    # Nothing precedes it, so nothing but its bytes shows that it is a log.
    path = tmp_path / "log"
    path.mkdir()
    (path / f"{0:020}.log").write_bytes(bytes(512) + text(0, 5000))
    for on_torn_tail in ("truncate", "pad"):
        with pytest.raises(cordwood.CordwoodError):
            cordwood.open(path, "a", segment_len=SEGMENT_LEN, on_torn_tail=on_torn_tail)
