"""Version edits: the MANIFESTs of real databases, compared with the files on disk."""

import json
import random
import shutil
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import plyvel
import pytest
from real_files import MANIFESTS, VECTORS
from rocksdict import Options, Rdict
from write_batch import take_varint, varint

import cordwood
from cordwood._native import VersionState
from cordwood.payload import PayloadError, VersionEdit, version_edit
from cordwood.payload.version_edit import (
    BlobFileAddition,
    BlobFileGarbage,
    CompactPointer,
    CustomField,
    CustomFieldKind,
    DeletedFile,
    Field,
    FieldKind,
    InternalKey,
    NewFile,
    WalAddition,
)


def edits_of(path):
    """All edits of a MANIFEST; checks that each encodes to the same bytes."""
    with cordwood.open(path) as reader:
        edits = []
        for record in reader:
            edit = VersionEdit(record)
            assert bytes(edit) == record
            json.dumps(edit.to_dict())
            edits.append(edit)
        assert reader.outcome.kind == "clean"
    return edits


def converted(manifest, *, status=0):
    """The rows of `--as live-files`."""
    done = subprocess.run(
        [sys.executable, "-m", "cordwood", "convert", "--as", "live-files", "--encoding", "hex", manifest],
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == status, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


KEY = b"\x09a\x01" + bytes(7)


def new(level, number):
    return bytes([7, level, number, 100]) + KEY + KEY


def deleted(level, number):
    return bytes([6, level, number])


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([], []),
        ([new(0, 5) + new(1, 4)], [(0, 0, 5), (0, 1, 4)]),
        # Within an edit, deletions come first, in any order of the fields: the added file is there.
        ([new(0, 5), new(0, 5) + deleted(0, 5)], [(0, 0, 5)]),
        ([new(0, 5), new(1, 5) + deleted(0, 5)], [(0, 1, 5)]),
        ([new(0, 5), deleted(0, 5)], []),
        ([deleted(0, 5), new(0, 5)], [(0, 0, 5)]),
        # Column families 0 and 1, one of which is dropped.
        ([new(0, 5), b"\xc8\x01\x01" + new(0, 6)], [(0, 0, 5), (1, 0, 6)]),
        ([new(0, 5), b"\xc8\x01\x01" + new(0, 6), b"\xca\x01\xc8\x01\x01"], [(0, 0, 5)]),
        # Two edits that take effect together; then one of three, not all of which are there.
        ([b"\xac\x02\x01" + new(0, 5), b"\xac\x02\x00" + new(0, 6)], [(0, 0, 5), (0, 0, 6)]),
        ([new(0, 4), b"\xac\x02\x01" + new(0, 5)], [(0, 0, 4)]),
        ([b"\xac\x02\x02" + new(0, 5), new(0, 6), b"\xac\x02\x00" + new(0, 7)], [(0, 0, 6), (0, 0, 7)]),
    ],
)
def test_live_files_are_the_files_added_and_not_deleted_by_the_edits(edits, expected, tmp_path):
    found = version_edit.live_files(edits)
    assert [(live.column_family, live.file.level, live.file.file_number) for live in found] == expected
    with cordwood.open(tmp_path / "MANIFEST-000001", "x") as writer:
        writer.extend(edits)
    rows = converted(tmp_path / "MANIFEST-000001")
    assert [(row["column_family"], row["level"], row["file_number"]) for row in rows] == expected


def test_a_record_that_is_not_an_edit_is_omitted_from_the_table(tmp_path):
    with cordwood.open(tmp_path / "MANIFEST-000001", "x") as writer:
        writer.extend([new(0, 5), b"junk", new(0, 6)])
    assert [row["file_number"] for row in converted(tmp_path / "MANIFEST-000001", status=3)] == [5, 6]
    with pytest.raises(PayloadError):
        version_edit.live_files([b"junk"])


def fields_of(edits, kind):
    return [field.value for edit in edits for field in edit.fields if field.kind == kind]


def live_files(edits):
    """The files in the levels of each column family after all edits."""
    families = {0: {}}
    for edit in edits:
        [family] = [field.value for field in edit.fields if field.kind is FieldKind.COLUMN_FAMILY] or [0]
        files = families.setdefault(family, {})
        for field in edit.fields:
            match field.value:
                case NewFile() as file:
                    files[file.level, file.file_number] = file
                case DeletedFile() as file:
                    del files[file]
                case None:
                    assert field.kind is FieldKind.COLUMN_FAMILY_DROP
                    del families[family]
    return families


def files_in(directory, suffix):
    return {int(path.stem): path.stat().st_size for path in Path(directory).glob(f"*.{suffix}")}


@pytest.mark.parametrize("path", MANIFESTS)
def test_the_manifest_of_a_new_database_has_two_edits(path):
    first, second = edits_of(path)
    assert first.fields == (Field(FieldKind.COMPARATOR, 1, b"leveldb.BytewiseComparator"),)
    assert [(str(kind), value) for kind, _, value in second.fields] == [
        ("log_number", 3),
        ("prev_log_number", 0),
        ("next_file_number", 4),
        ("last_sequence", 0),
    ]


def test_an_edit_iterates_over_its_fields_in_order():
    edit = VersionEdit(b"\x02\x04\x06\x01\x05")
    fields = iter(edit)
    assert next(fields) == Field(FieldKind.LOG_NUMBER, 2, 4)
    assert tuple(fields) == edit.fields[1:] == tuple(edit)[1:]
    assert list(fields) == []
    assert list(VersionEdit(b"")) == []


def test_a_leveldb_manifest_lists_exactly_the_existing_files(tmp_path):
    random.seed(3)
    directory = tmp_path / "db"
    database = plyvel.DB(str(directory), create_if_missing=True, write_buffer_size=1 << 20, max_file_size=1 << 20)
    for index in range(40_000):
        database.put(b"key%07d" % (index * 7919 % 40_000), random.randbytes(200))
        if index % 3 == 0:
            database.delete(b"key%07d" % (index * 13 % 40_000))
    database.compact_range()
    last_key = max(database.iterator(include_value=False))
    database.close()
    # Files that are no longer needed are deleted when the database is opened. It may then start a compaction, which
    # leaves an extra file if the database is closed meanwhile.
    for seconds in (0, 0.1, 1, 10):
        database = plyvel.DB(str(directory))
        time.sleep(seconds)
        database.close()
        [manifest] = directory.glob("MANIFEST-*")
        edits = edits_of(manifest)
        [files] = live_files(edits).values()
        if len(files) == len(files_in(directory, "ldb")):
            break

    assert {file.file_number: file.file_len for file in files.values()} == files_in(directory, "ldb")
    assert len(files) > 1
    rows = converted(manifest)
    assert {row["file_number"]: row["file_len"] for row in rows} == files_in(directory, "ldb")
    with cordwood.open(manifest) as reader:
        assert [live.file.file_number for live in version_edit.live_files(reader)] == [
            row["file_number"] for row in rows
        ]
    assert max(row["largest_key"] for row in rows) == last_key.hex()
    assert rows == sorted(rows, key=lambda row: (row["level"], row["file_number"]))
    for file in files.values():
        assert file.smallest.user_key <= file.largest.user_key
        assert {file.smallest.value_type, file.largest.value_type} <= {0, 1}
        assert 0 < file.smallest.sequence <= 40_000 + 13_334
        assert (file.smallest_sequence, file.largest_sequence, file.path_id, file.custom_fields) == (None, None, 0, ())
    assert max(file.largest.user_key for file in files.values()) == last_key
    [log] = directory.glob("*.log")
    assert fields_of(edits, "log_number")[-1] == int(log.stem)


def test_every_field_that_leveldb_writes_is_decoded(tmp_path):
    directory = tmp_path / "db"
    database = plyvel.DB(str(directory), create_if_missing=True, write_buffer_size=64 << 10, max_file_size=64 << 10)
    for index in range(40_000):
        database.put(b"key%07d" % (index * 7919 % 40_000), b"value" * 10)
    database.compact_range()
    manifest = shutil.copy(max(directory.glob("MANIFEST-*")), tmp_path)
    database.close()
    edits = edits_of(manifest)
    assert {field.tag for edit in edits for field in edit.fields} == {1, 2, 3, 4, 5, 6, 7, 9}
    live_files(edits)
    pointer = fields_of(edits, "compact_pointer")[0]
    assert pointer.key.user_key.startswith(b"key")


def options(**settings):
    made = Options(raw_mode=True)
    made.create_if_missing(True)
    for name, value in settings.items():
        getattr(made, f"set_{name}")(value)
    return made


def test_a_rocksdb_manifest_lists_exactly_the_existing_files(tmp_path):
    directory = tmp_path / "db"
    database = Rdict(str(directory), options(disable_auto_compactions=True))
    users = database.create_column_family("users", options(disable_auto_compactions=True))
    gone = database.create_column_family("gone", options())
    for turn in range(5):
        for index in range(500):
            database[b"%d" % index] = b"x%d" % turn
            users[b"u%d" % index] = b"y%d" % turn
        database.delete_range(b"1", b"2")
        gone[b"g"] = b"g"
        for family in (database, users, gone):
            family.flush()
        if turn == 3:
            database.compact_range(None, None)
            gone.close()
            database.drop_column_family("gone")
            gone = database.create_column_family("gone again", options())
    manifest = shutil.copy(max(directory.glob("MANIFEST-*")), tmp_path)
    live = [
        {(file["level"], int(Path(file["name"].lstrip("/")).stem), file["size"]) for file in family.live_files()}
        for family in (database, users, gone)
    ]
    on_disk = files_in(directory, "sst")
    identity = (directory / "IDENTITY").read_bytes()
    last_sequence = database.latest_sequence_number()

    edits = edits_of(manifest)
    families = live_files(edits)
    found = {
        family: {(level, number, file.file_len) for (level, number), file in files.items()}
        for family, files in families.items()
    }
    # Each handle names the files of all column families.
    assert set().union(*found.values()) == set().union(*live)
    assert {number: length for files in found.values() for _, number, length in files} == on_disk
    rows = converted(manifest)
    assert {(row["level"], row["file_number"], row["file_len"]) for row in rows} == set().union(*live)
    assert len(rows) == len(on_disk)
    assert {row["column_family"]: row.get("column_family_name") for row in rows} == {
        0: None,
        1: b"users".hex(),
        3: b"gone again".hex(),
    }
    assert {row["smallest_key"] for row in rows if row.get("column_family_name") == b"users".hex()} == {b"u0".hex()}
    assert sorted(found) == [0, 1, 3]
    assert all(found.values())
    assert fields_of(edits, "column_family_add") == [b"users", b"gone", b"gone again"]
    assert fields_of(edits, "db_id") == [identity]
    assert max(fields_of(edits, "last_sequence")) <= last_sequence
    numbers = {file.smallest.user_key: file for file in families[1].values()}
    assert set(numbers) == {b"u0"}
    for file in families[0].values():
        custom = {field.kind: field.value for field in file.custom_fields}
        assert len(custom[CustomFieldKind.UNIQUE_ID]) in (16, 24)
        assert custom[CustomFieldKind.FILE_CREATION_TIME] > 1_600_000_000
        assert custom[CustomFieldKind.TAIL_SIZE] < file.file_len
    for handle in (gone, users, database):
        handle.close()


def test_edits_with_rocksdb_blob_files_are_decoded(tmp_path):
    directory = tmp_path / "db"
    settings = {
        "enable_blob_files": True,
        "min_blob_size": 100,
        "enable_blob_gc": True,
        "blob_gc_age_cutoff": 0.25,
        "blob_gc_force_threshold": 1.0,
        "disable_auto_compactions": True,
    }
    database = Rdict(str(directory), options(**settings))
    users = database.create_column_family("users", options(**settings))
    for turn in range(4):
        for index in range(turn, 50):
            database[b"%02d" % index] = b"x" * 200
            users[b"%02d" % index] = b"u"
        database.flush()
    database.compact_range(None, None)
    manifest = shutil.copy(max(directory.glob("MANIFEST-*")), tmp_path)
    on_disk = files_in(directory, "blob")
    edits = edits_of(manifest)
    additions = fields_of(edits, "blob_file_addition")
    garbage = fields_of(edits, "blob_file_garbage")
    assert additions
    left = {blob.file_number: blob.blob_count for blob in additions}
    assert all(isinstance(blob, BlobFileAddition) for blob in additions)
    for blob in garbage:
        assert isinstance(blob, BlobFileGarbage)
        left[blob.file_number] -= blob.blob_count
    # A file that is all garbage is deleted.
    assert {number for number, count in left.items() if count} == set(on_disk)
    assert sum(left.values()) == 50
    assert len(garbage) > 1
    for handle in (users, database):
        handle.close()


def test_each_edit_of_a_rocksdb_atomic_flush_states_how_many_edits_follow(tmp_path):
    """Each edit of a group says how many more follow, down to 0."""
    directory = tmp_path / "db"
    settings = {"atomic_flush": True, "write_buffer_size": 64 << 10}
    database = Rdict(str(directory), options(**settings))
    users = database.create_column_family("users", options(**settings))
    for index in range(3_000):
        database[b"%d" % index] = bytes(100)
        users[b"%d" % index] = b"u"
    users.close()
    database.close()
    [manifest] = directory.glob("MANIFEST-*")
    groups = fields_of(edits_of(manifest), "in_atomic_group")
    assert groups.count(0) > 1
    assert max(groups) > 0
    assert all(later == left - 1 for left, later in pairwise(groups) if left)
    assert groups[-1] == 0


def test_an_empty_edit_has_no_fields():
    """RocksDB writes one after the edit with the identity of a new database."""
    edit = VersionEdit(b"")
    assert (edit.fields, bytes(edit), edit.to_dict()) == ((), b"", {"fields": []})


# Records made by hand ---------------------------------------------------------------------------


def text(content):
    return varint(len(content)) + content


KEY = text(b"a" + (7 << 8 | 1).to_bytes(8, "little"))


@pytest.mark.parametrize(
    ("record", "kind", "value"),
    [
        (varint(1) + text(b"cmp"), "comparator", b"cmp"),
        (varint(5) + varint(2) + KEY, "compact_pointer", CompactPointer(2, InternalKey(b"a", 7, 1))),
        (varint(6) + varint(2) + varint(300), "deleted_file", DeletedFile(2, 300)),
        (varint(202), "column_family_drop", None),
        (varint(300) + varint(2), "in_atomic_group", 2),
        (varint(8196) + varint(4) + varint(1), "wal_addition", WalAddition(4, None)),
        (varint(8199) + text(varint(4) + varint(2) + varint(300) + varint(1)), "wal_addition", WalAddition(4, 300)),
        (varint(8200) + text(varint(300)), "wal_deletion", 300),
        (varint(8197) + varint(300), "wal_deletion", 300),
        (varint(8201) + text(b"\x01"), "persist_user_defined_timestamps", True),
        (varint(8203) + text(varint(300)), "last_compacted_manifest_file_size", 300),
        (varint(9000) + text(b"new"), "ignorable", b"new"),
        (
            varint(401) + varint(300) + varint(2) + varint(3) + varint(5) + text(b"new") + varint(0),
            "blob_file_garbage",
            BlobFileGarbage(300, 2, 3, (CustomField(CustomFieldKind.IGNORABLE, 5, b"new"),)),
        ),
        (
            varint(102) + varint(1) + varint(5) + varint(2) + varint(300) + KEY + KEY + varint(6) + varint(8),
            "new_file",
            NewFile(1, 5, 300, InternalKey(b"a", 7, 1), InternalKey(b"a", 7, 1), 6, 8, 2, ()),
        ),
        (
            varint(103)
            + varint(1)
            + varint(5)
            + varint(300)
            + KEY
            + KEY
            + varint(6)
            + varint(8)
            + varint(65)
            + text(b"\x03")
            + varint(2)
            + text(b"\x01")
            + varint(3)
            + text((9).to_bytes(8, "little"))
            + varint(1),
            "new_file",
            NewFile(
                1,
                5,
                300,
                InternalKey(b"a", 7, 1),
                InternalKey(b"a", 7, 1),
                6,
                8,
                3,
                (
                    CustomField(CustomFieldKind.PATH_ID, 65, 3),
                    CustomField(CustomFieldKind.NEED_COMPACTION, 2, True),
                    CustomField(CustomFieldKind.MIN_LOG_NUMBER_TO_KEEP, 3, 9),
                ),
            ),
        ),
    ],
)
def test_each_field_decodes_to_its_kind_and_value(record, kind, value):
    edit = VersionEdit(record)
    tag, _ = take_varint(record, 0)
    assert edit.fields == (Field(FieldKind(kind), tag, value),)
    assert isinstance(edit.fields[0].kind, FieldKind)
    assert bytes(edit) == record
    assert edit == VersionEdit(bytearray(record))
    assert hash(edit) == hash(VersionEdit(record))
    assert repr(edit) == f"<cordwood.payload.VersionEdit: {kind}>"
    for length in range(1, len(record)):
        with pytest.raises(PayloadError):
            VersionEdit(record[:length])


def test_the_repr_lists_the_first_eight_fields():
    assert repr(VersionEdit(b"\x02\x04\x03\x05")) == "<cordwood.payload.VersionEdit: log_number, next_file_number>"
    names = ", ".join(["log_number"] * 8)
    assert repr(VersionEdit(b"\x02\x04" * 8)) == f"<cordwood.payload.VersionEdit: {names}>"
    assert repr(VersionEdit(b"\x02\x04" * 9)) == f"<cordwood.payload.VersionEdit: {names}, ...>"


def test_the_error_for_an_invalid_edit_includes_its_offset_and_the_reason():
    with pytest.raises(PayloadError, match="tag 8 is unknown") as caught:
        VersionEdit(varint(2) + varint(0) + varint(8))
    assert (caught.value.offset, caught.value.length, caught.value.reason) == (2, 1, "unknown_tag")
    with pytest.raises(TypeError):
        VersionEdit("text")


def test_to_dict_values_are_json_serializable():
    record = (
        varint(7)
        + varint(1)
        + varint(5)
        + varint(300)
        + KEY
        + text(b"\xff" + bytes(8))
        + varint(202)
        + varint(9)
        + b"\0"
    )
    expected = {
        "fields": [
            {
                "kind": "new_file",
                "tag": 7,
                "value": {
                    "level": 1,
                    "file_number": 5,
                    "file_len": 300,
                    "smallest": {"user_key": "a", "sequence": 7, "value_type": 1},
                    "largest": {"user_key": {"base64": "/w=="}, "sequence": 0, "value_type": 0},
                    "path_id": 0,
                    "custom_fields": [],
                },
            },
            {"kind": "column_family_drop", "tag": 202},
            {"kind": "prev_log_number", "tag": 9, "value": 0},
        ]
    }
    assert version_edit.to_dict(record) == expected == json.loads(json.dumps(version_edit.to_dict(record)))


class NaiveState:
    """The state that `VersionState` keeps, from the fields of each edit."""

    def __init__(self):
        self.numbers, self.log_numbers, self.synced_lens, self.is_of_leveldb = {}, {}, {}, True
        self.files, self.names, self.group = {}, {}, []

    def apply(self, record):
        fields = VersionEdit(record).fields
        family = next((value for kind, _, value in fields if kind == FieldKind.COLUMN_FAMILY), 0)
        for kind, tag, value in fields:
            self.is_of_leveldb &= tag < 10
            if kind == FieldKind.COLUMN_FAMILY_DROP:
                self.log_numbers.pop(family, None)
            elif isinstance(value, WalAddition) and value.synced_len is not None:
                self.synced_lens[value.log_number] = value.synced_len
            elif isinstance(value, int) and not isinstance(value, bool):
                self.numbers[str(kind)] = value
                if kind == FieldKind.LOG_NUMBER:
                    self.log_numbers[family] = value
                elif kind == FieldKind.WAL_DELETION:
                    self.synced_lens = {
                        number: length for number, length in self.synced_lens.items() if number >= value
                    }
        rest = next((value for kind, _, value in fields if kind == FieldKind.IN_ATOMIC_GROUP), None)
        if rest is None:
            self.group = []
            self.apply_files(fields, family)
            return
        self.group.append((fields, family))
        if rest == 0:
            for edit in self.group:
                self.apply_files(*edit)
            self.group = []

    def apply_files(self, fields, family):
        for field in fields:
            if isinstance(field.value, DeletedFile):
                self.files.pop((family, *field.value), None)
        for field in fields:
            if isinstance(field.value, NewFile):
                self.files[family, field.value.level, field.value.file_number] = field.value
            elif field.kind == FieldKind.COLUMN_FAMILY_ADD:
                self.names[family] = field.value
            elif field.kind == FieldKind.COLUMN_FAMILY_DROP:
                self.files = {key: file for key, file in self.files.items() if key[0] != family}

    def tables(self):
        return [(key[0], self.names.get(key[0]), file) for key, file in sorted(self.files.items())]


def random_edit(chosen):
    """An edit of any of the fields that the state keeps, with small numbers, so that they meet."""
    number = lambda: varint(chosen.randrange(6))  # noqa: E731
    fields = [
        *(varint(tag) + number() for tag in (2, 3, 4, 9, 10, 203)),
        varint(6) + varint(chosen.randrange(2)) + number(),
        *(varint(7) + varint(chosen.randrange(2)) + number() + number() + 2 * KEY for _ in range(3)),
        varint(8196) + number() + chosen.choice([b"", varint(2) + number()]) + varint(1),
        varint(8197) + number(),
        varint(201) + b"\x01a",
        varint(202),
    ]
    edit = chosen.sample(fields, chosen.randrange(1, 5))
    edit += [varint(200) + varint(chosen.randrange(1, 3))] if chosen.random() < 0.4 else []
    edit += [varint(300) + varint(chosen.randrange(3))] if chosen.random() < 0.4 else []
    chosen.shuffle(edit)
    return b"".join(edit)


def test_the_state_combines_the_fields_of_all_edits():
    chosen = random.Random(5)
    manifests = [list(cordwood.open(path)) for path in sorted(VECTORS.rglob("MANIFEST-*"))]
    for edits in [*manifests, *([random_edit(chosen) for _ in range(30)] for _ in range(300))]:
        state, naive = VersionState(), NaiveState()
        for count, edit in enumerate(edits, 1):
            state.apply(edit)
            naive.apply(edit)
            assert [tuple(live) for live in version_edit.live_files(edits[:count])] == naive.tables()
            assert state.numbers() == (naive.numbers, naive.log_numbers, naive.synced_lens, naive.is_of_leveldb)
        # One that is not an edit changes nothing.
        with pytest.raises(PayloadError):
            state.apply(b"\x02\x07junk")
        assert state.numbers()[0] == naive.numbers
