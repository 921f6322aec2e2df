"""LevelDB and RocksDB on a packed log: they report it or refuse it, and return only keys that were put."""

import plyvel
import pytest
import reference
from packed_reference import container, mark
from real_engines import the_log_of
from reference import CONTAINER_KINDS, encode_record
from rocksdict import DBRecoveryMode, Options, Rdict
from write_batch import PUT, write_batch

import cordwood

KEYS = [b"key-%d" % number for number in range(4)]
VALUE = b"one value, " * 20
PUTS = [write_batch(number + 1, [(PUT, key, VALUE)]) for number, key in enumerate(KEYS)]


def packed(codec, *, has_mark):
    """A put, a container of two puts, and a put; perhaps the mark before them."""
    file = mark(codec) if has_mark else b""
    file += encode_record(PUTS[0], len(file))
    file += encode_record(container(PUTS[1:3], codec), len(file), CONTAINER_KINDS)
    return file + encode_record(PUTS[3], len(file))


FILES = [
    pytest.param(packed(codec, has_mark=has_mark), id=f"codec {codec}, {'a' if has_mark else 'no'} mark")
    for codec in (0, 1)
    for has_mark in (True, False)
]


@pytest.mark.parametrize("file", FILES)
def test_cordwood_reads_a_packed_log(file):
    assert list(cordwood.open(file)) == PUTS


# LevelDB ---------------------------------------------------------------------------------------


def leveldb_with(directory, file):
    """A database whose log is this file."""
    plyvel.DB(str(directory), create_if_missing=True).close()
    the_log_of(directory).write_bytes(file)


@pytest.mark.parametrize("file", FILES)
def test_leveldb_reports_each_unknown_fragment_and_returns_the_other_records(tmp_path, file):
    leveldb_with(tmp_path, file)
    database = plyvel.DB(str(tmp_path))
    assert dict(database) == {KEYS[0]: VALUE, KEYS[3]: VALUE}
    database.close()
    text = (tmp_path / "LOG").read_text(encoding="utf-8")
    has_mark = file[6] == 0x48
    assert text.count("unknown record type 64") == 1
    assert text.count("unknown record type 72") == has_mark


@pytest.mark.parametrize("file", FILES)
def test_leveldb_with_paranoid_checks_rejects_a_packed_log(tmp_path, file):
    leveldb_with(tmp_path, file)
    with pytest.raises(plyvel.CorruptionError, match="unknown record type"):
        plyvel.DB(str(tmp_path), paranoid_checks=True)


# RocksDB ---------------------------------------------------------------------------------------


def rocksdb_options(mode):
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_wal_recovery_mode(mode)
    return options


def rocksdb_with(directory, file):
    """A database whose log is this file."""
    Rdict(str(directory), rocksdb_options(DBRecoveryMode.point_in_time())).close()
    the_log_of(directory).write_bytes(file)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("mode", ["tolerate_corrupted_tail_records", "absolute_consistency"])
def test_the_strict_modes_of_rocksdb_reject_a_packed_log(tmp_path, file, mode):
    rocksdb_with(tmp_path, file)
    with pytest.raises(Exception, match="unknown record type"):
        Rdict(str(tmp_path), rocksdb_options(getattr(DBRecoveryMode, mode)()))


@pytest.mark.parametrize("file", FILES)
def test_other_rocksdb_modes_either_stop_at_a_packed_log_or_skip_it(tmp_path, file):
    has_mark = file[6] == 0x48
    for mode, expected in [
        (DBRecoveryMode.point_in_time(), set() if has_mark else {KEYS[0]}),
        (DBRecoveryMode.skip_any_corrupted_record(), {KEYS[0], KEYS[3]}),
    ]:
        directory = tmp_path / str(len(expected))
        rocksdb_with(directory, file)
        database = Rdict(str(directory), rocksdb_options(mode))
        found = dict(database.items())
        database.close()
        assert found == dict.fromkeys(expected, VALUE)


# LevelDB's dialect, named ----------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES)
def test_reading_with_an_explicit_dialect_reports_an_unknown_type(file):
    with pytest.raises(cordwood.CorruptionError) as caught:
        list(cordwood.open(file, dialect="leveldb"))
    assert caught.value.reason == "unknown_kind"
    assert "of the dialect packed" in str(caught.value)
    with cordwood.open(file, dialect="leveldb", on_corruption="skip") as reader:
        assert list(reader) == [PUTS[0], PUTS[3]]
        kinds = [region.type_byte for region in reader.skipped if region.reason == "unknown_kind"]
        assert kinds == [kind for kind in (0x48, 0x40) if kind == 0x40 or file[6] == 0x48]
    *events, _ = reference.events(file)
    assert [event.data for event in events if isinstance(event, reference.Record)] == [PUTS[0], PUTS[3]]
