"""Which files are logs: ordinary files are not, and damaged logs are, whatever their names."""

import os
import random
from collections import defaultdict
from pathlib import Path

import pytest

import cordwood
from cordwood._native import is_log_name
from cordwood.types import OutcomeKind

VECTORS = Path(__file__).parents[1] / "vectors"
FILES_MIN, SUFFIXES_MIN, FILES_OF_SUFFIX_MAX, FILE_LEN_MAX = 2_000, 150, 40, 50_000_000


def ordinary_files():
    """Files of this system without the name of a log, at most some of each suffix."""
    by_suffix = defaultdict(list)
    for directory, _, names in os.walk("/usr"):
        for name in names:
            path = Path(directory, name)
            is_file = path.is_file() and not path.is_symlink() and os.access(path, os.R_OK)
            if is_file and not is_log_name(name) and 7 <= path.stat().st_size < FILE_LEN_MAX:
                by_suffix[path.suffix].append(path)
    chosen = random.Random(1)
    return {
        suffix: chosen.sample(sorted(paths), min(len(paths), FILES_OF_SUFFIX_MAX))
        for suffix, paths in by_suffix.items()
    }


def test_ordinary_files_are_not_reported_as_damaged_logs():
    by_suffix = ordinary_files()
    files = [path for paths in by_suffix.values() for path in paths if path.read_bytes().strip(b"\0")]
    if len(files) < FILES_MIN or len(by_suffix) < SUFFIXES_MIN:
        pytest.skip(f"/usr has {len(files):,} such files of {len(by_suffix)} suffixes: too few to tell")
    damaged, torn = [], []
    for path in files:
        try:
            report = cordwood.verify(path)
        except cordwood.DialectError:
            continue
        (torn if report.outcome.kind == OutcomeKind.TORN_TAIL else damaged).append(path)
        assert report.record_count == 0, path
    assert damaged == []
    assert len(torn) <= 0.005 * len(files), torn


def logs():
    """Logs of real engines, each with its records."""
    found = {}
    for path in sorted(VECTORS.rglob("*")):
        data = path.read_bytes() if path.is_file() and path.name != "README.md" else b""
        try:
            records = list(cordwood.open(path, on_corruption="skip").records()) if data else []
        except cordwood.CordwoodError:
            continue
        if records:
            found.setdefault(data, [(record.offset, record.end_offset) for record in records])
    return list(found.items())


def flipped(data, count, start, end, chosen):
    changed = bytearray(data)
    for bit in chosen.sample(range(start * 8, end * 8), count):
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def damaged(data, records, index, chosen):
    """A third of the logs have one to three records, and flipped bits in the first fragment or an end in it."""
    if index % 3 == 0:
        (start, first_end), (_, end) = records[0], chosen.choice(records[:3])
        fragment_end = min(first_end, start - start % cordwood.BLOCK_LEN + cordwood.BLOCK_LEN)
        if chosen.random() < 0.5:
            return data[: chosen.randrange(start + 1, fragment_end)]
        return flipped(data[:end], chosen.randint(1, 3), start, fragment_end, chosen)
    change = chosen.choice(["flips", "cut", "zeros", "noise"])
    at = chosen.randrange(len(data))
    if change == "flips":
        return flipped(data, chosen.randint(1, 5), 0, len(data), chosen)
    if change == "cut":
        return data[: at + 1]
    length = min(512 if change == "zeros" else 16, len(data) - at)
    return data[:at] + (bytes(length) if change == "zeros" else chosen.randbytes(length)) + data[at + length :]


def salvaged(path):
    """The records that `salvage` brings back from a file."""
    to = path.with_suffix(".salvaged")
    report = cordwood.salvage(path, to, repair_bit_flips=True)
    records = list(cordwood.open(to, dialect=report.dialect))
    to.unlink()
    return records


def test_a_damaged_log_with_any_name_is_recognized_as_a_log(tmp_path):
    chosen, all_logs, refused = random.Random(7), logs(), []
    # The name of a log is believed: under it, all records that are left come back.
    path, named = tmp_path / "x", tmp_path / "x.log"
    for index in range(1_000):
        data = damaged(*chosen.choice(all_logs), index, chosen)
        path.write_bytes(data)
        named.write_bytes(data)
        try:
            cordwood.verify(path)
        except cordwood.DialectError:
            refused.append(data)
            assert salvaged(named) == []
        else:
            assert salvaged(path) == salvaged(named)
    assert len(refused) <= 10
