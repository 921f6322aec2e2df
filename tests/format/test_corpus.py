"""Logs that other programs wrote. They lie beside the repository, or in the folder that `CORDWOOD_CORPUS` names."""

import os
from pathlib import Path

import pytest
import reference
from support import merged, plain_end, read_events

import cordwood

CORPUS = Path(os.environ.get("CORDWOOD_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")
FILES = sorted(str(path.relative_to(CORPUS)) for path in CORPUS.glob("*/*/*"))

pytestmark = pytest.mark.skipif(not FILES, reason=f"no corpus in {CORPUS}")

# File: how many records, how many of them are in pieces, the length of the longest.
RECORDS = {
    "firestore/daily-cat/output-0": (11, 5, 38_539),
    "firestore/swift-guide/output-0": (16, 0, 457),
    "leveldb/100k-keys/000004.log": (17_613, 21, 33),
    "leveldb/chrome-indexeddb/000003.log": (18, 0, 624),
    "leveldb/large-record/000003.log": (3, 1, 97_288),
    "leveldb/log-only/000003.log": (4, 0, 472),
    "leveldb/plyvel/000003.log": (2_367, 95, 300_020),
    "leveldb/plyvel/MANIFEST-000002": (2, 0, 28),
    "leveldb/preallocated/000003.log": (5, 0, 23),
    "leveldb/preallocated/MANIFEST-000002": (2, 0, 28),
    "rocksdb/plain/000010.log": (300, 13, 5_024),
}
# File: where its zeros begin.
PREALLOCATED = {
    "leveldb/preallocated/000003.log": 139,
    "leveldb/preallocated/MANIFEST-000002": 50,
}


@pytest.mark.parametrize("name", RECORDS)
def test_records(name):
    with cordwood.open(CORPUS / name) as reader:
        records = list(reader.records())
        assert reader.outcome.kind == "clean"
    in_pieces = [
        record for record in records if record.end_offset - record.offset > reference.HEADER_LEN + len(record.data)
    ]
    assert (len(records), len(in_pieces), max(len(record.data) for record in records)) == RECORDS[name]


@pytest.mark.parametrize("name", RECORDS)
def test_nothing_is_skipped_but_the_zeros_of_preallocated_files(name):
    with cordwood.open(CORPUS / name) as reader:
        list(reader)
        skipped = [(region.offset, region.end_offset, region.reason) for region in reader.skipped]
    zeros = PREALLOCATED.get(name)
    assert skipped == ([] if zeros is None else [(zeros, 65_536, "zero_fill")])


@pytest.mark.parametrize("name", PREALLOCATED)
def test_preallocated_files_are_not_appended_to(name, tmp_path):
    copy = tmp_path / "copy.log"
    copy.write_bytes((CORPUS / name).read_bytes())
    with pytest.raises(cordwood.TornTailError) as caught:
        cordwood.open(copy, "a")
    assert (caught.value.offset, caught.value.reason) == (PREALLOCATED[name], "zero_fill")
    assert copy.read_bytes() == (CORPUS / name).read_bytes()


@pytest.mark.parametrize("name", [name for name in RECORDS if name not in PREALLOCATED])
def test_writing_the_records_gives_the_file_again(name, tmp_path):
    with cordwood.open(CORPUS / name) as reader, cordwood.open(tmp_path / "copy", "x") as writer:
        writer.extend(reader)
    assert (tmp_path / "copy").read_bytes() == (CORPUS / name).read_bytes()


@pytest.mark.parametrize("name", FILES)
def test_events_are_those_of_the_reference_also_in_other_dialects(name):
    file = (CORPUS / name).read_bytes()
    *expected, end = reference.events(file)
    with cordwood.open(CORPUS / name, dialect="leveldb", on_corruption="skip") as reader:
        assert read_events(reader) == merged(expected)
        assert plain_end(reader) == end
