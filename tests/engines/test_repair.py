"""After `salvage(..., repair_bit_flips=True)`, the engines find everything that was written."""

import shutil

import plyvel
import pytest
from real_engines import the_log_of
from rocksdict import Options, Rdict

import cordwood

COUNT = 5_000


def items():
    return {b"user:%06d" % index: b"value %d " % index * 8 for index in range(COUNT)}


def flip(path, places):
    """Flips one bit at each of these places, which are shares of the file."""
    data = bytearray(path.read_bytes())
    for place in places:
        data[int(len(data) * place)] ^= 1
    path.write_bytes(data)


def repair(path):
    """Replaces a log with the repaired one."""
    new = path.with_name("repaired")
    report = cordwood.salvage(path, new, repair_bit_flips=True)
    new.replace(path)
    return report


def in_rocksdb(directory):
    database = Rdict(str(directory), Options(raw_mode=True))
    try:
        return dict(database.items())
    finally:
        database.close()


def in_leveldb(directory):
    database = plyvel.DB(str(directory))
    try:
        return dict(database)
    finally:
        database.close()


def test_rocksdb_finds_each_key_of_a_repaired_log(tmp_path):
    database = Rdict(str(tmp_path / "live"), Options(raw_mode=True))
    for key, value in items().items():
        database[key] = value
    database.flush_wal(sync=True)
    # As after a crash: closing a database may write its keys to a table.
    directory = tmp_path / "copy"
    shutil.copytree(tmp_path / "live", directory)
    database.close()
    log = the_log_of(directory)
    flip(log, [0.33, 0.5])
    damaged = tmp_path / "damaged"
    shutil.copytree(directory, damaged)
    assert len(in_rocksdb(damaged)) < COUNT
    report = repair(log)
    assert (report.record_count, report.repaired_count) == (COUNT, 2)
    assert in_rocksdb(directory) == items()


def test_leveldb_finds_each_key_of_a_repaired_log(tmp_path):
    directory = tmp_path / "database"
    database = plyvel.DB(str(directory), create_if_missing=True, write_buffer_size=64 << 20)
    for key, value in items().items():
        database.put(key, value)
    database.close()
    log = the_log_of(directory)
    flip(log, [0.33, 0.5])
    assert repair(log).repaired_count == 2
    assert in_leveldb(directory) == items()


def test_leveldb_opens_a_database_with_a_repaired_manifest(tmp_path):
    directory = tmp_path / "database"
    for _ in range(2):  # The second time, the log becomes a table, which the MANIFEST names.
        database = plyvel.DB(str(directory), create_if_missing=True)
        for key, value in items().items():
            database.put(key, value)
        database.close()
    [manifest] = directory.glob("MANIFEST-*")
    good = manifest.read_bytes()
    flip(manifest, [0.5])
    with pytest.raises(plyvel.Error):
        in_leveldb(directory)
    assert not repair(manifest).ok
    assert manifest.read_bytes() == good
    assert in_leveldb(directory) == items()
