"""Logs that other programs wrote: their contents, and that each is listed with its origin."""

import re
import zlib

import pytest
import reference
from real_files import ALL, VECTORS, corpus, vectors
from support import merged, plain_end, read_events

import cordwood


def files(names):
    own = vectors(*(name for name in names if not name.startswith("corpus:")))
    return own + corpus(*(name.removeprefix("corpus:") for name in names if name.startswith("corpus:")))


def known(names):
    """The files, each with the known facts about it."""
    return [pytest.param(*param.values, names[param.id], id=param.id, marks=param.marks) for param in files(names)]


# In LevelDB's dialect: the number of records, how many of them are in pieces, and the length of the longest: the
# records that tools/vectors.py puts into a file, or those in the notes of the corpus.
RECORDS = {
    "appengine/export/output-0": (60, 0, 775),
    "leveldb/plyvel/000003.log": (24, 5, 100_027),
    "leveldb/plyvel/MANIFEST-000002": (2, 0, 28),
    "leveldb/preallocated/000003.log": (5, 0, 30),
    "leveldb/preallocated/MANIFEST-000002": (2, 0, 28),
    "rocksdb/plain/000004.log": (16, 2, 32_772),
    "corpus:firestore/daily-cat/output-0": (11, 5, 38_539),
    "corpus:firestore/swift-guide/output-0": (16, 0, 457),
    "corpus:leveldb/100k-keys/000004.log": (17_613, 21, 33),
    "corpus:leveldb/chrome-indexeddb/000003.log": (18, 0, 624),
    "corpus:leveldb/large-record/000003.log": (3, 1, 97_288),
    "corpus:leveldb/log-only/000003.log": (4, 0, 472),
    "corpus:leveldb/plyvel/000003.log": (2_367, 95, 300_020),
    "corpus:leveldb/plyvel/MANIFEST-000002": (2, 0, 28),
    "corpus:leveldb/preallocated/000003.log": (5, 0, 23),
    "corpus:leveldb/preallocated/MANIFEST-000002": (2, 0, 28),
    "corpus:rocksdb/plain/000010.log": (300, 13, 5_024),
}
# By file, where its zeros start.
PREALLOCATED = {
    "leveldb/preallocated/000003.log": 185,
    "leveldb/preallocated/MANIFEST-000002": 50,
    "corpus:leveldb/preallocated/000003.log": 139,
    "corpus:leveldb/preallocated/MANIFEST-000002": 50,
}


def test_the_readme_table_describes_each_vector_file():
    table = re.findall(
        r"^\| `([^`]+)` \| ([\d,]+) \| `(\w+)` \|", (VECTORS / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    found = {path.relative_to(VECTORS).as_posix(): path.read_bytes() for path in VECTORS.rglob("*") if path.is_file()}
    del found["README.md"]
    assert table == [(name, f"{len(file):,}", f"{zlib.crc32(file):08x}") for name, file in sorted(found.items())]
    assert {param.id for param in ALL if not param.marks} == found.keys()
    assert sum(map(len, found.values())) < 1 << 20


@pytest.mark.parametrize(("path", "expected"), known(RECORDS))
def test_each_vector_has_the_expected_number_of_records(path, expected):
    with cordwood.open(path) as reader:
        records = list(reader.records())
        assert reader.outcome.kind == "clean"
    in_pieces = [
        record for record in records if record.end_offset - record.offset > reference.HEADER_LEN + len(record.data)
    ]
    assert (len(records), len(in_pieces), max(len(record.data) for record in records)) == expected


@pytest.mark.parametrize(("path", "zeros"), known({name: PREALLOCATED.get(name) for name in RECORDS}))
def test_only_the_zeros_of_preallocated_files_are_skipped(path, zeros):
    with cordwood.open(path) as reader:
        list(reader)
        skipped = [(region.offset, region.end_offset, region.reason) for region in reader.skipped]
    assert skipped == ([] if zeros is None else [(zeros, 65_536, "zero_fill")])


@pytest.mark.parametrize(("path", "zeros"), known(PREALLOCATED))
def test_appending_to_a_preallocated_file_is_rejected(path, zeros, tmp_path):
    copy = tmp_path / "copy.log"
    copy.write_bytes(path.read_bytes())
    with pytest.raises(cordwood.TornTailError) as caught:
        cordwood.open(copy, "a")
    assert (caught.value.offset, caught.value.reason) == (zeros, "zero_fill")
    assert copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", files([name for name in RECORDS if name not in PREALLOCATED]))
def test_rewriting_a_vector_reproduces_its_file(path, tmp_path):
    with cordwood.open(path) as reader, cordwood.open(tmp_path / "copy", "x") as writer:
        writer.extend(reader)
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", ALL)
def test_reading_each_vector_file_matches_the_reference(path):
    file = path.read_bytes()
    *expected, end = reference.events(file)
    with cordwood.open(path, dialect="leveldb", on_corruption="skip") as reader:
        assert read_events(reader) == merged(expected)
        assert plain_end(reader) == end
