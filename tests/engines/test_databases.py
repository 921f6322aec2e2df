"""Directories of real databases, whole and with a fault: cordwood's report of them, and the engine's behaviour."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import plyvel
import pytest
import reference
from entities import varint
from rocksdict import DBPath, Options, Rdict, WriteOptions

import cordwood
from cordwood import _databases
from cordwood._databases import database_in, database_lines
from cordwood.cli import _terminal, info, main
from cordwood.payload import WriteBatch
from cordwood.payload.version_edit import live_files

FULL = os.environ.get("CORDWOOD_SURVIVAL") == "full"
DATABASES = 20 if FULL else 1
STATES = 50 if FULL else 20


def kinds(directory):
    return [(problem.kind, Path(problem.path).name) for problem in database_in(str(directory)).problems]


def keys_in_leveldb(directory):
    with plyvel.DB(str(directory)) as database:
        return sum(1 for _ in database)


def copied(directory, to):
    """A copy of a directory, made again if a file in it is removed meanwhile."""
    for _ in range(100):
        shutil.rmtree(to, ignore_errors=True)
        try:
            return shutil.copytree(directory, to)
        except shutil.Error:
            continue
    raise AssertionError("the database does not rest")


def refuses(directory, *, is_rocksdb):
    """Whether the engine refuses to open a copy of the directory, and why."""
    copy = copied(directory, Path(directory).with_name("opened"))
    try:
        if is_rocksdb:
            Rdict(str(copy), Options(raw_mode=True)).close()
        else:
            plyvel.DB(str(copy)).close()
    except Exception as error:  # noqa: BLE001 - each engine has its own
        return str(error)
    return None


def run(verb, directory):
    command = [sys.executable, "-m", "cordwood", verb, str(directory)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


# Faults ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A LevelDB database with tables, and with writes that are only in its logs; copied while it was open."""
    directory = tmp_path_factory.mktemp("leveldb")
    with plyvel.DB(str(directory / "open"), create_if_missing=True, write_buffer_size=64 << 10) as database:
        for number in range(2_000):
            database.put(b"key-%06d" % number, random.Random(number).randbytes(100))
        database.put(b"last", b"value")
        copied(directory / "open", directory / "whole")
    assert keys_in_leveldb(shutil.copytree(directory / "whole", directory / "judge")) == 2_001
    return directory / "whole"


@pytest.fixture
def database(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "db")


def tables(directory):
    return sorted([*directory.glob("*.ldb"), *directory.glob("*.sst")])


def listed_tables(directory):
    """The tables of the MANIFEST: the keys that LevelDB keeps when it is opened without compaction."""
    copy = shutil.copytree(directory, directory.with_name("listing"))
    plyvel.DB(str(copy)).close()
    return [path for path in tables(directory) if (copy / path.name).exists()]


CURRENT = {
    "current_empty": (b"", "is empty"),
    "current_zeros": (bytes(16), "contains only zeros"),
    "current_no_newline": (b"{}", "does not end with a newline"),
    "current_more_lines": (b"{}\n{}\n", "has more than one line"),
    "current_invalid": (b"{} \r\n", "does not name a MANIFEST"),
    "current_crlf": (b"{}\r\n", "ends with CR LF, as Git writes it on Windows without `* -text` in .gitattributes"),
}


@pytest.mark.parametrize("kind", CURRENT)
def test_a_wrong_pointer_to_the_manifest_can_be_repaired_with_the_newest_manifest(kind, database, capsys):
    [manifest] = database.glob("MANIFEST-*")
    text, words = CURRENT[kind]
    (database / "CURRENT").write_bytes(text.replace(b"{}", manifest.name.encode()))
    assert refuses(database, is_rocksdb=False)
    for verb in ("info", "verify"):
        assert main([verb, str(database)]) == 3
        line = f" current {words}; {manifest.name} is intact and the newest "
        assert line in " ".join(capsys.readouterr().out.split())
    (database / "CURRENT").write_text(database_in(str(database)).right_current)
    assert keys_in_leveldb(database) == 2_001
    assert main(["info", str(database)]) == 0


def test_a_missing_current_file_is_reported_as_a_fault(database):
    """LevelDB makes a new database, and removes every table of the old one."""
    (database / "CURRENT").unlink()
    assert kinds(database) == [("current_missing", "CURRENT")]
    (database / "CURRENT").write_text(database_in(str(database)).right_current)
    assert keys_in_leveldb(database) == 2_001


def test_info_reports_a_missing_manifest(database, capsys):
    [manifest] = database.glob("MANIFEST-*")
    (database / "CURRENT").write_text("MANIFEST-000099\n")
    assert refuses(database, is_rocksdb=False)
    assert main(["info", str(database)]) == 3
    found = " ".join(capsys.readouterr().out.split())
    assert f"names MANIFEST-000099, which is missing; {manifest.name} is intact and the newest" in found
    manifest.unlink()
    assert main(["info", str(database)]) == 3
    repair = f"repair   before you open {database}: the engine's own repair, such as plyvel.repair_db\n"
    assert repair in capsys.readouterr().out
    assert database_in(str(database)).right_current is None
    assert database_lines(database_in(str(database)))[0] == (
        "current",
        "names MANIFEST-000099, which is missing; no MANIFEST is intact",
        True,
    )


def test_info_checks_a_database_without_logs(database, capsys):
    """Its tables are left."""
    for path in [*database.glob("*.log"), *database.glob("MANIFEST-*")]:
        path.unlink()
    assert main(["info", str(database)]) == 3
    printed = capsys.readouterr()
    assert "no log was found" in printed.err
    assert printed.out.startswith(f"{database}: a database of LevelDB\n  logs     0\n")


def test_an_overlong_name_in_the_current_file_is_invalid(database):
    (database / "CURRENT").write_text("MANIFEST-" + "9" * 5_000 + "\n")
    assert kinds(database) == [("current_invalid", "CURRENT")]


def test_the_suggested_repair_points_to_the_newest_intact_manifest(database):
    [manifest] = database.glob("MANIFEST-*")
    damaged = bytearray(manifest.read_bytes())
    damaged[40] ^= 1
    (database / "MANIFEST-000901").write_bytes(damaged)
    (database / "MANIFEST-000900").write_bytes(manifest.read_bytes())
    (database / "MANIFEST-000902").write_bytes(b"")
    (database / "MANIFEST-000903").write_bytes(b"text, which is no log at all, but longer than a block's header")
    (database / "CURRENT").write_bytes(b"")
    assert database_in(str(database)).right_current == "MANIFEST-000900\n"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "manifest_empty"),
        (bytes(54), "manifest_empty"),
        (reference.encode([b"\1\5order"]), "manifest_empty"),
        (reference.encode([b"\1\x1aleveldb.BytewiseComparator", b"\2\0\3\2"]), "manifest_incomplete"),
    ],
    ids=["no byte", "zeros", "comparator", "no sequence"],
)
def test_a_manifest_with_no_usable_edits_is_reported_as_a_fault(content, kind, database):
    [manifest] = database.glob("MANIFEST-*")
    manifest.write_bytes(content)
    assert refuses(database, is_rocksdb=False)
    assert kinds(database) == [(kind, manifest.name)]
    assert main(["verify", str(database)]) == 3


def test_a_damaged_manifest_is_reported_as_a_fault(database):
    """Its list is not whole: there is no line about tables."""
    [manifest] = database.glob("MANIFEST-*")
    content = bytearray(manifest.read_bytes())
    content[len(content) // 2] ^= 1
    manifest.write_bytes(content)
    tables(database)[0].unlink()
    assert kinds(database) == [("manifest_damaged", manifest.name)]
    assert database_in(str(database)).right_current is None


def test_info_lists_missing_tables(database, capsys):
    listed = listed_tables(database)
    assert len(listed) >= 2
    listed[0].unlink()
    assert "missing files" in refuses(database, is_rocksdb=False)
    assert main(["info", str(database)]) == 3
    counts = re.search(rf"  tables   (\d+) of (\d+): {listed[0].name} is missing\n", capsys.readouterr().out)
    assert int(counts[1]) == int(counts[2]) - 1
    listed[1].write_bytes(listed[1].read_bytes()[:-1])
    assert sorted(kinds(database)) == [("table_missing", listed[0].name), ("table_short", listed[1].name)]


def test_verify_reports_a_missing_log_that_leveldb_needs(database, capsys):
    """LevelDB opens the database without a report."""
    for log in sorted(database.glob("*.log")):
        needed = log
        log.unlink()
    assert refuses(database, is_rocksdb=False) is None
    assert main(["verify", str(database)]) == 3
    # A table may also show that a newer log is missing, or may be unlisted.
    [name] = [name for kind, name in kinds(database) if kind == "log_missing"]
    assert name <= needed.name
    assert f"{name} is missing, which LevelDB does not report" in " ".join(capsys.readouterr().out.split())


def test_a_damaged_log_is_not_needed_if_the_engine_ignores_it(tmp_path, capsys):
    directory = tmp_path / "db"
    with plyvel.DB(str(directory), create_if_missing=True) as database:
        database.put(b"key", b"value")
        [old] = directory.glob("*.log")
        damaged = bytearray(old.read_bytes())
        damaged[-1] ^= 1
        needed = copied(directory, tmp_path / "needed")
    plyvel.DB(str(directory)).close()
    assert not old.exists()
    # It was put back, as by a copy that was made again.
    old.write_bytes(damaged)
    (needed / old.name).write_bytes(damaged)
    line = f"{old} is not needed: by the MANIFEST, its writes are in tables, and LevelDB does not read it"
    for copy in directory, needed:
        assert main(["info", str(copy)]) == 3
        assert (line in " ".join(capsys.readouterr().out.split())) == (copy == directory)
    (tmp_path / "all").mkdir()
    for name in ("a", "b"):
        shutil.copytree(directory, tmp_path / "all" / name)
        assert main(["info", str(tmp_path / "all")]) == 3
        assert " ".join(capsys.readouterr().out.split()).count("is not needed") == 1 + (name == "b")
    # Without the table, the log is the only file with the write.
    without = copied(directory, tmp_path / "without")
    for table in without.glob("*.ldb"):
        table.unlink()
    assert main(["info", str(without)]) == 3
    assert "is not needed" not in capsys.readouterr().out
    assert (keys_in_leveldb(directory), keys_in_leveldb(needed)) == (1, 0)


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([], 0),
        ([bytes([2, 9])], 9),
        # The previous log of LevelDB (tag 9), another column family (200), and the logs that RocksDB keeps (tag 10).
        ([bytes([2, 9, 9, 7])], 7),
        ([bytes([2, 9]), bytes([2, 12]) + varint(200) + b"\1"], 9),
        ([bytes([2, 12]), bytes([2, 9]) + varint(200) + b"\1"], 9),
        ([bytes([2, 9, 10, 8])], 8),
        ([bytes([2, 9, 10, 12])], 9),
    ],
)
def test_the_lowest_needed_log_number_is_read_from_the_manifest(edits, expected, tmp_path):
    assert database_in(str(edited(tmp_path, *edits))).log_number_min == expected


@pytest.mark.parametrize(
    ("newer", "expected"),
    [
        (["000007.ldb"], [("table_newer", "000007.ldb")]),
        (["000006.log", "000007.ldb"], []),
        # The tables of a compaction that a crash interrupted.
        (["000006.ldb", "000007.ldb"], []),
        ([], []),
    ],
)
def test_a_table_newer_than_the_manifest_indicates_a_missing_log(newer, expected, tmp_path, capsys):
    """The MANIFEST says that the next file is number 6: LevelDB made log 6, and table 7 of the writes in log 4."""
    first = b"\1\x1aleveldb.BytewiseComparator" + bytes([2, 4, 9, 0, 3, 6, 4, 0])
    (tmp_path / "MANIFEST-000002").write_bytes(reference.encode([first]))
    (tmp_path / "CURRENT").write_text("MANIFEST-000002\n")
    for name in ["000004.log", *newer]:
        (tmp_path / name).write_bytes(reference.encode([b"record"]))
    assert kinds(tmp_path) == expected
    assert main(["info", str(tmp_path)]) == 0
    line = "log a newer log may be missing: 000007.ldb is newer than the MANIFEST"
    assert (line in " ".join(capsys.readouterr().out.split())) == bool(expected)


@pytest.mark.parametrize("is_rocksdb", [False, True])
def test_an_empty_log_is_reported_but_not_as_a_fault(is_rocksdb, tmp_path, capsys):
    """The engine opens the database without the writes. A new database looks the same."""
    directory = tmp_path / "db"
    database = rocksdb(directory) if is_rocksdb else plyvel.DB(str(directory), create_if_missing=True)
    [name] = [log.name for log in directory.glob("*.log")]
    assert kinds(directory) == [("log_empty", name)]
    if is_rocksdb:
        database[b"key"] = b"value"
    else:
        database.put(b"key", b"value")
    assert kinds(directory) == []
    copy = copied(directory, tmp_path / "copy")
    database.close()

    (copy / name).write_bytes(b"")
    assert refuses(copy, is_rocksdb=is_rocksdb) is None
    line = f"  log      {name} is without a record: no write reached it, or its writes\n           were lost\n"
    assert (main(["info", str(copy)]), line in capsys.readouterr().out) == (0, True)
    assert (main(["verify", str(copy)]), f", 0 tables\n{line}total" in capsys.readouterr().out) == (0, True)
    assert (main(["verify", "-q", str(copy)]), capsys.readouterr().out) == (0, "")
    (copy / name).unlink()
    # LevelDB's MANIFEST names its log.
    expected = ("database_empty", "copy") if is_rocksdb else ("log_missing", name)
    assert (kinds(copy), main(["info", str(copy)])) == ([expected], 0 if is_rocksdb else 3)
    assert ("no log and no table: no key" in capsys.readouterr().out) == is_rocksdb


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """A LevelDB database with writes in two logs, in the moment before the table of the older one is listed."""
    directory = tmp_path_factory.mktemp("crashed")
    chance = random.Random(0)
    with plyvel.DB(str(directory / "open"), create_if_missing=True, write_buffer_size=64 << 10) as database:
        for number in range(1_000_000):
            database.put(b"key-%06d" % number, chance.randbytes(100))
            if len(list((directory / "open").glob("*.log"))) < 2:
                continue
            copy = copied(directory / "open", directory / "crashed")
            needed = database_in(str(copy)).log_number_min
            logs = [log for log in copy.glob("*.log") if int(log.stem) >= needed and log.stat().st_size]
            if len(logs) == 2:
                return copy, number + 1
    raise AssertionError("LevelDB lists each table at once")


@pytest.mark.parametrize("part", [0, 0.5, 0.999], ids=["empty", "half", "torn"])
def test_a_needed_log_that_lost_its_last_writes_is_reported_as_a_fault(part, crashed, tmp_path, capsys):
    """LevelDB opens the database without an error, and without these writes."""
    directory, count = shutil.copytree(crashed[0], tmp_path / "db"), crashed[1]
    assert database_in(str(directory)).ok
    needed = database_in(str(directory)).log_number_min
    log = directory / f"{needed:06}.log"
    log.write_bytes(log.read_bytes()[: int(log.stat().st_size * part)])
    assert keys_in_leveldb(shutil.copytree(directory, tmp_path / "opened")) < count
    assert kinds(directory) == [("log_cut", log.name)]
    assert main(["verify", str(directory)]) == 3
    assert main(["info", str(directory)]) == 3
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        f"log {log.name} is truncated or empty although a newer log has later writes; LevelDB does not report this"
        in printed
    )
    repair = (
        f"repair before you open {directory}: the engine's own repair, such as plyvel.repair_db if you have a copy of "
    )
    assert f"{repair}{log}, put it back instead" in printed


def made_in_leveldb(directory, sequences, *, last_sequence=0):
    """A LevelDB directory whose MANIFEST needs log 3, and logs from this on with a batch of each sequence number."""
    first = b"\1\x1aleveldb.BytewiseComparator" + bytes([2, 3, 9, 0, 3, 4, 4, last_sequence])
    (directory / "MANIFEST-000002").write_bytes(reference.encode([first]))
    (directory / "CURRENT").write_text("MANIFEST-000002\n")
    for number, numbers in enumerate(sequences, 3):
        batches = [n.to_bytes(8, "little") + b"\1\0\0\0\0\1k" for n in numbers]
        (directory / f"{number:06}.log").write_bytes(reference.encode(batches))


@pytest.mark.parametrize(
    ("sequences", "last_sequence", "info", "expected"),
    [
        ([[1, 2], [3]], 0, "", []),
        ([[1, 2], [4]], 0, "", [("log_cut", "000003.log")]),
        # An empty log that a flush without writes ended.
        ([[], [1]], 0, "", [("log_empty", "000003.log")]),
        ([[], [2]], 1, "Recovering log #2\n", [("log_empty", "000003.log")]),
        ([[], [2]], 0, "", [("log_cut", "000003.log")]),
        # Recoveries that a crash interrupted.
        ([[1, 2], [], []], 2, "", [("log_empty", "000005.log")]),
        ([[1], [2], []], 1, "", [("log_empty", "000005.log")]),
    ],
)
def test_a_sequence_gap_between_leveldb_logs_is_reported_as_a_fault(sequences, last_sequence, info, expected, tmp_path):
    made_in_leveldb(tmp_path, sequences, last_sequence=last_sequence)
    (tmp_path / "LOG").write_text(info)
    assert kinds(tmp_path) == expected


@pytest.mark.parametrize(
    ("info", "kind"),
    [("Recovering log #2\n", "log_cut"), ("Recovering log #4\n", "log_empty"), (None, "log_empty")],
)
def test_a_newer_table_can_show_that_an_empty_log_has_lost_its_writes(info, kind, tmp_path):
    """Unless LevelDB recovers a database, it makes a table after log 4 from the writes in log 3."""
    made_in_leveldb(tmp_path, [[], [2]], last_sequence=1)
    (tmp_path / "000005.ldb").write_bytes(b"table")
    if info:
        (tmp_path / "LOG").write_text(info)
    assert kinds(tmp_path) == [(kind, "000003.log")]
    # A log of zeros has no writes, either.
    (tmp_path / "000003.log").write_bytes(bytes(100))
    assert kinds(tmp_path) == [(kind, "000003.log")]


def test_info_reports_an_incomplete_record_if_a_newer_log_follows(tmp_path, capsys):
    """No write is known to be lost: the sequence numbers continue."""
    made_in_leveldb(tmp_path, [[1, 2], [2]])
    log = tmp_path / "000003.log"
    log.write_bytes(log.read_bytes()[:-1])
    assert kinds(tmp_path) == [("log_torn", "000003.log")]
    assert main(["info", str(tmp_path)]) == 0
    line = "000003.log is followed by a newer log, and torn: writes after the incomplete record may be lost"
    assert line in " ".join(capsys.readouterr().out.split())


COMPACTING = """
import plyvel, sys, threading, time

def compact():
    while True:
        database.compact_range()

database = plyvel.DB(sys.argv[1], create_if_missing=True, write_buffer_size=64 << 10)
for _ in range(3):
    threading.Thread(target=compact, daemon=True).start()
for number in range(10**9):
    database.put(b"%d" % number, bytes(100))
    time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("seconds", ["0", "0.003"])
def test_a_leveldb_database_has_no_faults_after_its_writer_is_killed_repeatedly(seconds, tmp_path):
    """Its logs may be several, torn at the end, and empty where a flush found no write."""
    chance = random.Random(0)
    for _ in range(200 if FULL else 10):
        writer = subprocess.Popen([sys.executable, "-c", COMPACTING, str(tmp_path), seconds])
        time.sleep(0.1 + chance.random() / 4)
        writer.kill()
        writer.wait()
        if (tmp_path / "CURRENT").exists():
            assert database_in(str(tmp_path)).ok, database_in(str(tmp_path))


def test_info_identifies_which_of_several_databases_is_damaged(database, tmp_path, capsys):
    shutil.copytree(database, tmp_path / "all/whole")
    shutil.copytree(database, tmp_path / "all/faulty")
    (tmp_path / "all/faulty/CURRENT").write_bytes(b"")
    assert main(["info", str(tmp_path / "all")]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("all: 2 databases")
    assert [line for line in lines if "DAMAGED" in line] == [f"  DAMAGED  {tmp_path}/all/faulty, a database of LevelDB"]


# Damaged logs, and the numbers of writes ------------------------------------------------------


def verdict(directory):
    """The database, judged with the reports of its logs."""
    [database] = cordwood.verify(directory).databases
    assert [database] == list(cordwood.info(directory).databases) == list(cordwood.evidence(directory).databases)
    return database


def flipped(path, offset, mask=1):
    content = bytearray(path.read_bytes())
    content[offset] ^= mask
    path.write_bytes(content)


def repaired_by_hand(directory, printed, monkeypatch):
    """Follows the lines after `repair`: all of them are commands."""
    after = printed.split("  repair   ")[1].split("  more     ")[0]
    monkeypatch.chdir(directory.parent)
    shell = directory.parent / "bin"
    shell.mkdir(exist_ok=True)
    for name, arguments in (("cordwood", "-m cordwood"), ("python", "")):
        (shell / name).write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
        (shell / name).chmod(0o755)
    # `salvage` itself ends with 3 if it finds damage.
    for line in after.splitlines():
        done = subprocess.run(["sh", "-c", f"PATH={shell}:$PATH; {line.strip()}"], capture_output=True, check=False)
        assert done.returncode in (0, 3), (line, done.stderr)
    return after


def opened_leveldb(directory):
    """Writes that are only in the log of a database that is copied while it is open."""
    with plyvel.DB(str(directory / "open"), create_if_missing=True) as database:
        for number in range(1_000):
            database.put(b"key-%06d" % number, bytes(100))
        return copied(directory / "open", directory / "db")


def opened_rocksdb(directory):
    database = Rdict(str(directory / "open"), Options(raw_mode=True))
    for number in range(1_000):
        database[b"key-%06d" % number] = bytes(100)
    database.flush_wal(True)
    copy = copied(directory / "open", directory / "db")
    database.close()
    return copy


@pytest.mark.parametrize("is_rocksdb", [False, True])
@pytest.mark.parametrize("bits", ["one bit", "many bits"])
def test_suggests_a_repair_for_a_damaged_log_that_the_database_needs(is_rocksdb, bits, tmp_path, capsys, monkeypatch):
    directory = (opened_rocksdb if is_rocksdb else opened_leveldb)(tmp_path)
    keys = keys_in_rocksdb if is_rocksdb else keys_in_leveldb
    [log] = directory.glob("*.log")
    assert verdict(directory).ok
    for offset in range(20_000, 20_001 if bits == "one bit" else 20_004):
        flipped(log, offset)
    assert keys(copied(directory, tmp_path / "opened")) < 999
    database = verdict(directory)
    assert (database.ok, database.problems) == (False, (cordwood.types.Problem("log_damaged", str(log)),))
    assert cordwood.verify([tmp_path / "db/../db" / log.name, directory]).databases == (database,)
    assert main(["verify", str(directory)]) == 3
    printed = " ".join(capsys.readouterr().out.split())
    does = "RocksDB would refuse the database, or drop the writes" if is_rocksdb else "LevelDB drops the rest of each"
    assert f"log {log.name} is damaged: {does}" in printed
    assert "total: 1 database, 1 damaged total: 2 logs, 1 damaged" in printed
    assert main(["info", str(directory)]) == 3
    commands = repaired_by_hand(directory, capsys.readouterr().out, monkeypatch)
    assert ("--repair-bit-flips" in commands) == (bits == "one bit")
    assert verdict(directory).ok
    assert keys(directory) == (1_000 if bits == "one bit" else 999)


def test_a_damaged_log_that_the_engine_ignores_is_not_reported_as_a_database_fault(tmp_path, capsys):
    directory = opened_leveldb(tmp_path)
    plyvel.DB(str(directory)).close()
    old = directory / "000001.log"
    old.write_bytes(reference.encode([b"one", b"two"]))
    flipped(old, 8)
    assert not cordwood.verify(old).ok
    assert verdict(directory).ok
    assert main(["verify", "--json", str(directory)]) == 3
    totals = json.loads(capsys.readouterr().out.splitlines()[-1])["totals"]
    assert (totals["damaged_count"], totals["damaged_database_count"]) == (1, 0)
    assert main(["info", str(directory)]) == 3
    assert "repair" not in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"This is a text, and no log.\n", b"SQLite format 3\0" + bytes(100)])
def test_a_needed_log_overwritten_with_other_content_is_reported_as_a_fault(content, tmp_path, capsys):
    directory = opened_leveldb(tmp_path)
    [log] = directory.glob("*.log")
    log.write_bytes(content)
    assert keys_in_leveldb(copied(directory, tmp_path / "opened")) == 0
    assert [problem.kind for problem in verdict(directory).problems] == ["log_damaged"]
    assert main(["info", str(directory)]) == 3
    assert f"repair   put {log} back before you open the database\n" in capsys.readouterr().out


def test_every_file_of_a_pebble_log_is_needed(tmp_path):
    directory = edited(tmp_path, bytes([2, 6]))
    (directory / "marker.manifest.000001.MANIFEST-000005").write_bytes(b"")
    for name in ("000005-001.log", "000006.log", "000006-001.log"):
        (directory / name).write_bytes(reference.encode([b"one", b"two"]))
        flipped(directory / name, 8)
    assert [problem.path for problem in verdict(directory).problems if problem.kind == "log_damaged"] == [
        str(directory / "000006-001.log"),
        str(directory / "000006.log"),
    ]


def test_every_log_is_needed_if_a_manifest_has_an_unknown_edit(tmp_path):
    directory = edited(tmp_path, b"\x69\x05\x05")
    (directory / "000008.log").write_bytes(reference.encode([b"one", b"two"]))
    flipped(directory / "000008.log", 8)
    database = verdict(directory)
    assert [problem.kind for problem in database.problems] == ["manifest_unknown", "log_damaged"]
    assert "no MANIFEST is intact" not in str(database_lines(database))


def recycling():
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_recycle_log_file_num(2)
    return options


@pytest.fixture
def recycled(tmp_path):
    """A RocksDB database whose newest log is an older one that has not been written over yet, and that log."""
    directory = tmp_path / "recycled"
    database = Rdict(str(directory), recycling())
    for _ in range(6):
        for number in range(50):
            database[b"key-%d" % number] = bytes(100)
        database.flush()
    database.close()
    return directory, max(directory.glob("*.log"))


def test_no_fault_is_reported_if_the_newest_log_is_recycled_and_has_no_records(recycled, capsys):
    directory, log = recycled
    results = cordwood.verify(directory)
    assert (results.ok, results[str(log)].record_count, results[str(log)].other_log_number) == (True, 0, None)
    assert verdict(directory).problems == (cordwood.types.Problem("log_empty", str(log)),)
    assert cordwood.evidence(directory).ok
    assert cordwood.info(directory).misnamed_logs == ()
    assert cordwood.verify(log) == results[str(log)]
    for arguments in (["verify"], ["info"], ["stat"], ["cat", "--json"]):
        for source in (directory, log):
            assert main([*arguments, str(source)]) == 0, arguments
            printed = capsys.readouterr()
            assert "--log-number" not in printed.out + printed.err
    assert main(["salvage", str(log), str(log.with_suffix(".saved"))]) == 1
    assert "--log-number" not in capsys.readouterr().err
    assert len(list(Rdict(str(directory), recycling()).keys())) == 50


def test_an_older_or_renamed_log_with_no_records_of_its_own_is_reported_as_a_fault(recycled, tmp_path, capsys):
    directory, log = recycled
    alone = tmp_path / log.name
    shutil.copy(log, alone)
    newer = shutil.copytree(directory, tmp_path / "newer")
    (newer / "000099.log").write_bytes(reference.encode([bytes([200, *bytes(7), 1, 0, 0, 0, 0, 1]) + b"k"]))
    for source, path in ((alone, alone), (newer, newer / log.name)):
        assert cordwood.verify(path).other_log_number is not None
        assert main(["verify", str(source)]) == 3
        assert "to read it: --log-number" in capsys.readouterr().out
        assert main(["info", str(source)]) == 3
        assert not cordwood.evidence(source).ok
    # RocksDB never gave it a smaller number than that of the records.
    older = newer / "000099.log"
    shutil.move(newer / log.name, newer / "000001.log")
    shutil.move(older, tmp_path / "000099.log")
    assert main(["verify", str(newer)]) == 3


def test_a_log_of_zeros_is_treated_as_a_log_without_records(tmp_path, capsys):
    """As after a loss of power. LevelDB opens the database without a report."""
    directory = opened_leveldb(tmp_path)
    [log] = directory.glob("*.log")
    log.write_bytes(bytes(log.stat().st_size))
    assert verdict(directory).problems == (cordwood.types.Problem("log_empty", str(log)),)
    assert main(["info", str(directory)]) == 0
    line = f"log {log.name} is without a record: no write reached it, or its writes were lost"
    assert line in " ".join(capsys.readouterr().out.split())
    assert keys_in_leveldb(directory) == 0


@pytest.mark.parametrize(
    ("sequences", "last_sequence", "expected"),
    [
        ([[1, 2]], 2, None),
        ([[1, 2]], 5, (3, 5)),
        ([[1], [2, 3]], 5, (4, 5)),
        ([[1, 2], []], 5, (3, 5)),
        # All of its writes are later: those before are in tables.
        ([[7, 8]], 5, None),
        ([[7, 8]], 6, None),
        ([[]], 5, None),
    ],
)
def test_reports_writes_counted_in_the_manifest_but_missing_from_the_logs(sequences, last_sequence, expected, tmp_path):
    made_in_leveldb(tmp_path, sequences, last_sequence=last_sequence)
    found = [problem.missing_sequences for problem in database_in(str(tmp_path)).problems if problem.missing_sequences]
    assert found == ([expected] if expected else [])
    assert database_in(str(tmp_path)).ok


def test_reports_lost_writes_if_the_newest_log_is_truncated_at_a_record_boundary(tmp_path, capsys):
    """LevelDB opens the database without a report. A compaction counts the writes that are only in the log, too."""
    directory = opened_leveldb(tmp_path)
    [log], [manifest] = directory.glob("*.log"), directory.glob("MANIFEST-*")
    with cordwood.open(manifest, "a") as edits:
        edits.append(b"\4" + varint(990))
    assert verdict(directory).problems == ()
    assert keys_in_leveldb(copied(directory, tmp_path / "opened")) == 1_000
    with cordwood.open(log) as records:
        [end] = [record.end_offset for record in records.records() if WriteBatch(record.data).sequence == 50]
    os.truncate(log, end)
    assert keys_in_leveldb(copied(directory, tmp_path / "opened")) == 50
    assert verdict(directory) == database_in(str(directory))
    assert verdict(directory).problems == (cordwood.types.Problem("log_behind", str(log), (51, 990)),)
    assert verdict(directory).ok
    assert main(["verify", "--as", "write-batch", str(directory)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{log.name} is without the writes 51 to 990, which the MANIFEST counts: they are lost total" in printed
    assert "sequence numbers 1 to 50: no gap" in printed


FLUSHED = """
import os, sys
from rocksdict import Options, Rdict

options = Options(raw_mode=True)
options.create_if_missing(True)
database = Rdict(sys.argv[1], options)
for flush in range(3):
    for number in range(100):
        database[b"key-%d-%d" % (flush, number)] = bytes(50)
    database.flush()
for number in range(5):
    database[b"last-%d" % number] = b"value"
os.kill(os.getpid(), 9)
"""


def test_sequence_numbers_show_that_a_rocksdb_manifest_has_lost_its_last_edits(tmp_path, capsys):
    """RocksDB opens the database without an error, and removes the tables that are not listed."""
    subprocess.run([sys.executable, "-c", FLUSHED, str(tmp_path / "db")], check=False)
    assert verdict(tmp_path / "db").ok
    [manifest] = (tmp_path / "db").glob("MANIFEST-*")
    with cordwood.open(manifest) as log:
        ends = [log.tell() for _ in log]
    counts = []
    for end in ends[-8:]:
        directory = copied(tmp_path / "db", tmp_path / "cut")
        os.truncate(directory / manifest.name, end)
        found = verdict(directory)
        repaired = copied(directory, tmp_path / "repaired")
        counts.append(0 if refuses(directory, is_rocksdb=True) else keys_in_rocksdb(directory))
        assert found.ok == (counts[-1] == 305), (end, counts, found)
        if counts[-1] not in (0, 305):
            assert {problem.kind for problem in found.problems if problem.severity == "corruption"} == {
                "table_unlisted"
            }
            Rdict.repair(str(repaired), Options(raw_mode=True))
            assert keys_in_rocksdb(repaired) == 305
    assert {0, 205, 305} <= {*counts}


@pytest.mark.parametrize(
    ("logs", "start", "unlisted"),
    [([32, 34], 113, [33, 35]), ([32, 34], 1, []), ([28, 34], 113, []), ([32], 113, [33, 35])],
)
def test_unlisted_tables_show_that_a_rocksdb_manifest_has_lost_its_last_edits(logs, start, unlisted, tmp_path):
    """It says that the next file is number 30: a log with a smaller number is the first one."""
    directory = edited(tmp_path)
    for number in logs:
        (directory / f"{number:06}.log").write_bytes(reference.encode([start.to_bytes(8, "little") + b"\1\0\0\0\0\1k"]))
    for number in (33, 35):
        (directory / f"{number:06}.sst").write_bytes(b"table")
    assert kinds(directory) == [("table_unlisted", f"{number:06}.sst") for number in unlisted]


def test_a_sequence_gap_from_unlogged_writes_is_not_reported_as_a_fault(tmp_path):
    directory = tmp_path / "db"
    database = rocksdb(directory)
    without = WriteOptions()
    without.disable_wal = True
    for count in range(4):
        database.set_write_options(without)
        for number in range(100):
            database[b"key-%d-%d" % (count, number)] = bytes(50)
        database.set_write_options(WriteOptions())
        database[b"last-%d" % count] = b"value"
        if count == 1:
            database.flush()
        database.flush_wal(True)
        # A table of the next flush that a crash interrupted.
        copy = copied(directory, tmp_path / "copy")
        (copy / "000999.sst").write_bytes(b"unfinished")
        assert verdict(copy).ok
    database.close()


# Cures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_rocksdb", [False, True])
def test_repairing_a_truncated_table_preserves_the_rest_of_the_database(is_rocksdb, tmp_path, capsys):
    (filled_rocksdb if is_rocksdb else filled_leveldb)(tmp_path / "db")
    keys = keys_in_rocksdb if is_rocksdb else keys_in_leveldb
    table = tables(tmp_path / "db")[0] if is_rocksdb else listed_tables(tmp_path / "db")[0]
    os.truncate(table, table.stat().st_size - 1)
    if is_rocksdb:
        assert refuses(tmp_path / "db", is_rocksdb=True)
    else:
        with pytest.raises(plyvel.IOError):
            keys(copied(tmp_path / "db", tmp_path / "opened"))
    assert main(["info", str(tmp_path / "db")]) == 3
    tool = "ldb repair" if is_rocksdb else "plyvel.repair_db"
    line = f"repair   put {table} back; without it: the engine's own repair, such as {tool}\n"
    assert line in capsys.readouterr().out
    if is_rocksdb:
        Rdict.repair(str(tmp_path / "db"), Options(raw_mode=True))
    else:
        plyvel.repair_db(str(tmp_path / "db"))
    assert 0 < keys(tmp_path / "db") < 2_000


@pytest.mark.parametrize("is_rocksdb", [False, True])
def test_info_suggests_a_repair_for_a_directory_with_only_tables(is_rocksdb, tmp_path, capsys):
    (filled_rocksdb if is_rocksdb else filled_leveldb)(tmp_path / "db")
    directory = tmp_path / "tables"
    directory.mkdir()
    for path in tables(tmp_path / "db"):
        shutil.copy(path, directory)
    assert main(["info", str(directory)]) == 1
    tool = "ldb repair" if is_rocksdb else "plyvel.repair_db"
    cure = f"cordwood: {directory}: tables without their list; on a copy: the engine's own repair, such as {tool}\n"
    assert cure in capsys.readouterr().err
    if is_rocksdb:
        Rdict.repair(str(directory), Options(raw_mode=True))
        assert keys_in_rocksdb(directory) == 2_000
    else:
        plyvel.repair_db(str(directory))
        assert 0 < keys_in_leveldb(directory) <= 2_000


def test_info_does_not_suggest_a_repair_if_the_newest_log_is_torn(tmp_path, capsys):
    directory = opened_leveldb(tmp_path)
    [log] = directory.glob("*.log")
    os.truncate(log, log.stat().st_size - 1)
    assert main(["info", str(directory)]) == 0
    assert "repair" not in capsys.readouterr().out


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 12345\n" % (b"0" * 64)
ANNEX = b"/annex/objects/SHA256E-s12345--" + b"0" * 64 + b".ldb\n"


@pytest.mark.parametrize("names", [["*.ldb"], ["*.log"], ["MANIFEST-*"], ["CURRENT", "MANIFEST-*", "*.ldb", "*.log"]])
@pytest.mark.parametrize(
    ("content", "command"), [(POINTER, "lfs pull"), (ANNEX, "annex get .")], ids=["Git LFS", "git-annex"]
)
def test_info_suggests_a_fetch_rather_than_a_repair_for_git_pointer_files(names, content, command, database, capsys):
    """The engine's repair would make an empty database."""
    for pattern in names:
        for path in database.glob(pattern):
            path.write_bytes(content)
    judged = verdict(database)
    assert {problem.kind for problem in judged.problems} == {
        "git_lfs_pointer" if content == POINTER else "git_annex_pointer"
    }
    assert all(Path(problem.path).read_bytes() == content for problem in judged.problems)
    assert not judged.ok
    assert main(["info", str(database)]) == 3
    printed = capsys.readouterr().out
    assert f"  repair   git -C {database} {command}\n" in printed
    assert "repair_db" not in printed
    assert "not fetched" in " ".join(printed.split())


@pytest.mark.parametrize(("name", "is_right"), [("CURRENT.bak", True), ("CURRENT.7", True), ("CURRENT.x", False)])
def test_mentions_a_backup_of_current_if_goleveldb_would_read_it(name, is_right, database, capsys):
    """By `GetMeta` of its `file_storage.go`."""
    [manifest] = database.glob("MANIFEST-*")
    (database / name).write_text(f"{manifest.name}\n")
    assert kinds(database) == []
    (database / "CURRENT").write_bytes(b"")
    (database / "CURRENT.3").write_text("MANIFEST-999999\n")
    assert kinds(database) == [("current_empty", "CURRENT"), *([("current_other", name)] if is_right else [])]
    assert main(["info", str(database)]) == 3
    line = f"; goleveldb opens it by {name}, LevelDB does not"
    assert (line in " ".join(capsys.readouterr().out.split())) == is_right


def test_every_suggested_repair_includes_the_database_path(database, tmp_path, capsys):
    for name in ("a", "b"):
        directory = shutil.copytree(database, tmp_path / "all" / name)
        next(directory.glob("MANIFEST-*")).unlink()
    assert main(["info", str(tmp_path / "all")]) == 3
    lines = capsys.readouterr().out.split("  repair   ")[1].split("  more ")[0].splitlines()
    assert [line.strip() for line in lines] == [
        f"before you open {tmp_path}/all/{name}: the engine's own repair, such as plyvel.repair_db" for name in "ab"
    ]


@pytest.mark.parametrize("name", ["db", "a b", "it's", "100%"])
def test_the_suggested_windows_commands_write_the_right_bytes(name, database, tmp_path, capsys, monkeypatch):
    """`echo` of cmd.exe and PowerShell would not."""
    monkeypatch.setattr(_terminal, "IS_WINDOWS", True)
    directory = database.rename(tmp_path / name)
    (directory / "CURRENT").write_bytes(b"")
    log = max(directory.glob("*.log"))
    flipped(log, log.stat().st_size // 2)
    assert main(["info", str(directory)]) == 3
    if name in ("it's", "100%"):
        # A POSIX shell would not read this path as those of Windows do.
        monkeypatch.setattr(_terminal, "shell_word", lambda path: f'"{path}"')
        monkeypatch.setattr(info, "shell_word", lambda path: f'"{path}"')
        main(["info", str(directory)])
    commands = repaired_by_hand(directory, capsys.readouterr().out.split(f"{directory}: ")[-1], monkeypatch)
    assert "echo" not in commands
    assert "mv" not in commands
    assert verdict(directory).ok
    assert keys_in_leveldb(directory) == 2_001


# No database -----------------------------------------------------------------------------------


def test_a_directory_of_copied_logs_is_not_a_database(whole, tmp_path):
    for path in [*whole.glob("*.log"), *whole.glob("MANIFEST-*")]:
        shutil.copy(path, tmp_path)
    assert database_in(str(tmp_path)) is None
    assert main(["verify", str(tmp_path)]) == 0


def test_a_directory_of_segments_is_not_a_database(tmp_path):
    for number in range(3):
        (tmp_path / f"{number:020}.log").write_bytes(reference.encode([b"one"]))
    (tmp_path / "LOCK").write_bytes(b"")
    assert database_in(str(tmp_path)) is None


def test_a_database_encrypted_by_netease_is_not_checked(database):
    (database / "CURRENT").write_bytes(b"\x80\x1d\x30\x01" + bytes(range(16)))
    assert database_in(str(database)) is None


def test_the_titan_directory_is_not_checked(database):
    """Its MANIFEST has other edits."""
    [manifest] = database.glob("MANIFEST-*")
    manifest.write_bytes(reference.encode([b"\1\5other"]))
    assert not database_in(str(database)).ok
    assert database_in(str(database.rename(database.with_name("titandb")))) is None


def test_a_database_repaired_by_leveldb_has_no_faults(database):
    """It needs no log: all writes are in tables. Before, its MANIFEST was missing."""
    next(database.glob("MANIFEST-*")).unlink()
    plyvel.repair_db(str(database))
    assert kinds(database) == []
    assert keys_in_leveldb(database) == 2_001


def test_files_replaced_by_a_repair_are_not_treated_as_a_database(database):
    """LevelDB moves its MANIFEST, its logs and an unfinished table to the directory `lost`."""
    (database / "000999.ldb").write_bytes(b"unfinished")
    plyvel.repair_db(str(database))
    lost = database / "lost"
    assert list(lost.glob("MANIFEST-*"))
    assert list(lost.glob("*.ldb"))
    assert [found.path for found in cordwood.info(database).databases] == [str(database)]
    (database / "CURRENT").unlink()
    assert str(lost) in [found.path for found in cordwood.info(database).databases]


# RocksDB and Pebble ----------------------------------------------------------------------------


def rocksdb(directory, families=(), **paths):
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(64 << 10)
    if "db_paths" in paths:
        options.set_db_paths([DBPath(str(path), 1 << 20) for path in paths["db_paths"]])
    if "wal_dir" in paths:
        options.set_wal_dir(str(paths["wal_dir"]))
    return Rdict(str(directory), options, dict.fromkeys(("default", *families), options))


def filled(database, count=1_000):
    for number in range(count):
        database[b"key-%06d" % number] = random.Random(number).randbytes(100)
    database.flush()


def test_missing_rocksdb_tables_are_reported_by_name(tmp_path):
    """Even if none is left: its info log shows that the database has no other directory."""
    directory = tmp_path / "db"
    database = rocksdb(directory)
    filled(database)
    database.close()
    assert database_in(str(directory)).ok
    names = [path.name for path in tables(directory)]
    for name in names:
        (directory / name).unlink()
    assert refuses(directory, is_rocksdb=True)
    problems = [problem for problem in kinds(directory) if problem[0] not in ("log_absent", "log_empty")]
    assert problems == [("table_missing", name) for name in names]
    assert database_in(str(directory)).engine == "RocksDB"
    (directory / "LOG").unlink()
    assert {kind for kind, _ in kinds(directory)} <= {"table_elsewhere", "log_absent", "log_empty"}


def test_a_rocksdb_blob_file_is_recognized(tmp_path):
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_enable_blob_files(True)
    database = Rdict(str(tmp_path / "db"), options)
    filled(database, 10)
    database.close()
    [blob] = (tmp_path / "db").glob("*.blob")
    assert cordwood.verify(tmp_path / "db").others[str(blob)] == "blob file"


@pytest.mark.parametrize(
    "text", ["manifest file: C:\\data\\db/MANIFEST-000001", "manifest file:C:\\data\\db/MANIFEST-000001"]
)
def test_windows_paths_in_rocksdb_files_are_recognized(text, tmp_path):
    """Git may also have changed the ends of their lines."""
    directory = edited(tmp_path, new_file(7, 0), bytes([2, 6]))
    log = f"{text}\r\nSST files in C:\\data\\db\\ dir, Total Num: 1, files: 000007.sst\r\n"
    (directory / "LOG").write_bytes(log.encode())
    for line in "wal_dir=", "wal_dir=C:\\data\\db", "wal_dir=C:\\data\\db\\":
        (directory / "OPTIONS-000004").write_bytes(f"[DBOptions]\r\n  {line}\r\n".encode())
        assert kinds(directory) == [("table_missing", "000007.sst"), ("log_absent", "000006.log")]
    (directory / "OPTIONS-000004").write_bytes(b"[DBOptions]\r\n  wal_dir=C:\\data\\logs\r\n")
    assert kinds(directory) == [("table_missing", "000007.sst")]
    (directory / "LOG").write_bytes(log.replace("db\\ dir", "other dir").encode())
    assert kinds(directory) == [("table_elsewhere", "000007.sst")]


def test_tables_and_logs_in_other_directories_are_not_reported_as_missing(tmp_path):
    directory = tmp_path / "db"
    database = rocksdb(directory, db_paths=[tmp_path / "first", tmp_path / "second"], wal_dir=tmp_path / "logs")
    filled(database)
    assert tables(directory) == []
    assert tables(tmp_path / "first") != []
    for copy in ("while open", "when closed"):
        shutil.copytree(directory, tmp_path / copy)
        assert {kind for kind, _ in kinds(tmp_path / copy)} == {"table_elsewhere"}
        assert main(["verify", str(tmp_path / copy)]) == 0
        if copy == "while open":
            database.close()


def test_tables_missing_from_a_rocksdb_backup_are_not_reported_as_a_fault(tmp_path):
    database = rocksdb(tmp_path / "db")
    filled(database)
    database.close()
    directory = shutil.copytree(tmp_path / "db", tmp_path / "backup/private/1")
    for table in tables(directory):
        table.unlink()
    assert not database_in(str(directory)).ok
    (tmp_path / "backup/meta").mkdir()
    (tmp_path / "backup/meta/1").write_bytes(b"")
    assert database_in(str(directory)).ok


def edited(tmp_path, *edits):
    """A RocksDB directory whose MANIFEST has these edits, after those that every database has."""
    directory = tmp_path / "made"
    directory.mkdir()
    first = b"\1\x1aleveldb.BytewiseComparator" + bytes([2, 0, 9, 0, 3, 30, 4, 0])
    (directory / "MANIFEST-000005").write_bytes(reference.encode([first, *edits]))
    (directory / "CURRENT").write_text("MANIFEST-000005\n")
    (directory / "IDENTITY").write_text("made")
    return directory


def new_file(number, path_id):
    """The edit of RocksDB (tag 102) that adds a table of 10 bytes to level 0, in one of its directories."""
    key = b"\x09a\1" + bytes(7)
    return bytes([102, 0, number, path_id, 10, *key, *key, 0, 0])


@pytest.mark.parametrize(
    ("here", "expected"),
    [
        ([7, 9], []),
        ([7], [("table_elsewhere", "000009.sst")]),
        ([9], [("table_elsewhere", "000007.sst")]),
        ([], [("table_elsewhere", "000007.sst"), ("table_elsewhere", "000009.sst")]),
    ],
)
def test_looks_for_each_rocksdb_table_in_its_own_directory(here, expected, tmp_path):
    """Table 7 is in the first of two directories, table 9 in the second; the database may be either, or neither."""
    directory = edited(tmp_path, new_file(7, 0), new_file(9, 1))
    (directory / "LOG").write_text("SST files in /elsewhere dir, Total Num: 1, files: 000007.sst\n")
    for number in here:
        (directory / f"{number:06}.sst").write_bytes(bytes(10))
    assert sorted(kinds(directory)) == expected


KILLED = """
import os, re, sys
from pathlib import Path
from rocksdict import Options, Rdict

directory, start, mode = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if start == 0:
    Rdict(str(directory), Options(raw_mode=True)).close()
# Recovery keeps the logs, and appends to none of them. rocksdict has no setter for this option.
path = max(directory.glob("OPTIONS-*"))
text = path.read_text().replace("avoid_flush_during_recovery=false", "avoid_flush_during_recovery=true")
path.write_text(re.sub("wal_recovery_mode=.*", f"wal_recovery_mode={mode}", text))
database = Rdict(str(directory), *Options.load_latest(str(directory)))
for number in range(start, start + 100):
    database[b"key-%06d" % number] = bytes(100)
database.flush_wal(True)
os.kill(os.getpid(), 9)
"""


def killed_rocksdb(directory, mode="kPointInTimeRecovery"):
    """A RocksDB database that was killed three times, twice in the middle of a write: it has three logs."""
    for start in (0, 100, 200):
        if start:
            log = max(directory.glob("*.log"))
            os.truncate(log, log.stat().st_size - 5)
        subprocess.run([sys.executable, "-c", KILLED, str(directory), str(start), mode], check=False)
    return sorted(directory.glob("*.log"))


def notes_of_logs(directory):
    return [note for note in kinds(directory) if note[0] != "log_absent"]


def test_info_reports_a_torn_rocksdb_log_if_a_newer_log_follows(tmp_path, capsys):
    """It continues in the newer log with the number of the write that the crash interrupted."""
    directory = tmp_path / "db"
    logs = killed_rocksdb(directory)
    assert notes_of_logs(directory) == [("log_torn", log.name) for log in logs[:2]]
    assert main(["info", str(directory)]) == 0
    line = f"{logs[0].name}, {logs[1].name} are followed by a newer log, and torn: writes after the incomplete record"
    assert line in " ".join(capsys.readouterr().out.split())
    assert keys_in_rocksdb(directory) == 298


@pytest.mark.parametrize("left", ["all but one", "none"])
def test_a_torn_log_that_makes_rocksdb_drop_newer_logs_is_reported_as_a_fault(left, tmp_path, capsys):
    directory = tmp_path / "db"
    logs = killed_rocksdb(directory)
    os.truncate(logs[0], logs[0].stat().st_size - 200 if left == "all but one" else 20)
    cut, torn = [("log_cut", logs[0].name)], [("log_torn", logs[1].name)]
    assert notes_of_logs(directory) == cut + torn
    assert main(["info", str(directory)]) == 3
    printed = " ".join(capsys.readouterr().out.split())
    assert f"log {logs[0].name} is torn, and a newer log has later writes: RocksDB would refuse" in printed
    assert f"repair before you open {directory}: the engine's own repair, such as ldb repair" in printed
    kept = 98 if left == "all but one" else 0
    Rdict.repair(str(copied(directory, tmp_path / "repaired")), Options(raw_mode=True))
    assert (keys_in_rocksdb(directory), keys_in_rocksdb(tmp_path / "repaired")) == (kept, kept + 199)


def test_a_log_that_grows_while_it_is_being_read_is_not_reported_as_torn(tmp_path, monkeypatch):
    """RocksDB writes the end of a log after it has made the file of the next one."""
    directory = tmp_path / "db"
    logs = killed_rocksdb(directory)
    content = logs[0].read_bytes()
    os.truncate(logs[0], len(content) - 200)
    read = _databases.Reader

    def read_while_it_grows(path, **options):
        if path == str(logs[1]):
            logs[0].write_bytes(content)
        return read(path, **options)

    monkeypatch.setattr(_databases, "Reader", read_while_it_grows)
    assert notes_of_logs(directory) == [("log_torn", logs[1].name)]


@pytest.mark.parametrize("mode", ["kSkipAnyCorruptedRecords", "kTolerateCorruptedTailRecords"])
def test_a_torn_log_that_rocksdb_skips_is_not_reported_as_a_fault(mode, tmp_path):
    directory = tmp_path / "db"
    logs = killed_rocksdb(directory, mode)
    os.truncate(logs[0], logs[0].stat().st_size - 200)
    assert notes_of_logs(directory) == [("log_torn", log.name) for log in logs[:2]]
    database = Rdict(str(directory), *Options.load_latest(str(directory)))
    assert len(list(database.keys())) == 297
    database.close()


@pytest.mark.parametrize("content", [b"", bytes(100)])
def test_an_older_rocksdb_log_without_records_is_reported_but_not_as_a_fault(content, tmp_path):
    """RocksDB opens the database without a report. It may also leave such a log itself."""
    directory = tmp_path / "db"
    logs = killed_rocksdb(directory)
    logs[0].write_bytes(content)
    assert notes_of_logs(directory) == [("log_empty", logs[0].name), ("log_torn", logs[1].name)]
    assert verdict(directory).ok
    assert keys_in_rocksdb(directory) < 298


def test_a_torn_log_is_reported_as_a_fault_unless_the_next_log_continues_it(tmp_path):
    directory = tmp_path / "db"
    logs = killed_rocksdb(directory)
    shutil.copy(logs[1], logs[0])
    assert notes_of_logs(directory) == [("log_cut", logs[0].name), ("log_torn", logs[1].name)]
    assert keys_in_rocksdb(directory) < 200


def test_absolute_consistency_mode_reports_every_torn_log(tmp_path):
    directory = tmp_path / "db"
    logs = killed_rocksdb(directory)
    options = max(directory.glob("OPTIONS-*"))
    options.write_text(options.read_text().replace("kPointInTimeRecovery", "kAbsoluteConsistency"))
    assert notes_of_logs(directory) == [("log_cut", log.name) for log in logs[:2]]
    with pytest.raises(Exception, match="Corruption"):
        Rdict(str(directory), *Options.load_latest(str(directory)))


FAMILIES = """
import itertools, os, random, sys
from rocksdict import Options, Rdict

options = Options(raw_mode=True)
options.create_if_missing(True)
chance = random.Random(sys.argv[2])
names = ["a", "b"] if os.path.exists(sys.argv[1]) else []
database = Rdict(sys.argv[1], options, dict.fromkeys(("default", *names), options))
families = [database.get_column_family(n) if names else database.create_column_family(n, options) for n in ("a", "b")]
for number in itertools.count():
    if sys.argv[3] == str(number):
        os.kill(os.getpid(), 9)
    chance.choice([database, *families])[b"key-%06d" % chance.randrange(10**6)] = chance.randbytes(1000)
    if chance.random() < 0.002:
        chance.choice(families).flush()
"""


def test_a_torn_log_that_makes_rocksdb_reject_the_database_is_reported_as_a_fault(tmp_path, capsys):
    directory = tmp_path / "db"
    subprocess.run([sys.executable, "-c", FAMILIES, str(directory), "0", "3000"], check=False)
    logs = sorted(directory.glob("*.log"))
    assert len(logs) > 2
    assert kinds(directory) == []
    os.truncate(logs[-1], logs[-1].stat().st_size - 1)
    assert kinds(directory) == []
    assert refuses(directory, is_rocksdb=True) is None
    os.truncate(logs[0], logs[0].stat().st_size - 1)
    assert "SST file is ahead of WALs" in refuses(directory, is_rocksdb=True)
    assert kinds(directory) == [("log_cut", logs[0].name)]
    assert main(["verify", str(directory)]) == 3
    assert "RocksDB would refuse the database, or drop the newer log" in " ".join(capsys.readouterr().out.split())
    Rdict.repair(str(directory), Options(raw_mode=True))
    assert refuses(directory, is_rocksdb=True) is None


def test_a_missing_log_that_a_column_family_needs_is_reported_but_not_as_a_fault(tmp_path):
    """RocksDB opens the database without a report. The default family may never have been flushed."""
    directory = tmp_path / "db"
    subprocess.run([sys.executable, "-c", FAMILIES, str(directory), "0", "3000"], check=False)
    [*_, log] = sorted(directory.glob("*.log"))
    assert kinds(directory) == []
    log.unlink()
    assert kinds(directory) == [("log_absent", log.name)]
    assert verdict(directory).ok
    assert refuses(directory, is_rocksdb=True) is None


@pytest.mark.parametrize(
    ("here", "expected"), [([4, 12], []), ([4], [12]), ([12], [4]), ([4, 12, 20], []), ([20], [4, 12])]
)
def test_reports_every_missing_log_that_a_rocksdb_column_family_needs(here, expected, tmp_path):
    """By the MANIFEST, the default family needs each log, one family those from 4 on, another those from 12 on."""
    edits = [bytes([2, number]) + varint(200) + bytes([family]) for family, number in ((1, 4), (2, 12))]
    directory = edited(tmp_path, *edits)
    for number in here:
        (directory / f"{number:06}.log").write_bytes(reference.encode([bytes([1, *bytes(7), 1, 0, 0, 0, 0, 1]) + b"k"]))
    assert kinds(directory) == [("log_absent", f"{number:06}.log") for number in expected]


@pytest.mark.parametrize(("path", "expected"), [("/old/db", [("log_absent", "000006.log")]), ("/old/logs", [])])
def test_the_log_directory_in_the_rocksdb_options_can_be_the_database_directory_itself(path, expected, tmp_path):
    """RocksDB before 7 stores the database's own path there. It is out of date once the database has been moved."""
    directory = edited(tmp_path, bytes([2, 6]))
    (directory / "OPTIONS-000004").write_text(f"[DBOptions]\n  wal_dir={path}\n")
    (directory / "LOG").write_text("[/version_set.cc:4595] Recovering from manifest file: /old/db/MANIFEST-000001\n")
    assert kinds(directory) == expected


def test_a_rocksdb_database_has_no_faults_after_its_writer_is_killed_repeatedly(tmp_path):
    chance = random.Random(0)
    for seed in range(100 if FULL else 6):
        writer = subprocess.Popen([sys.executable, "-c", FAMILIES, str(tmp_path / "db"), str(seed), ""])
        time.sleep(0.5 + chance.random() / 2)
        writer.kill()
        writer.wait()
        if (tmp_path / "db/CURRENT").exists():
            assert database_in(str(tmp_path / "db")).ok, database_in(str(tmp_path / "db"))
            assert not refuses(tmp_path / "db", is_rocksdb=True)
    assert (tmp_path / "db/CURRENT").exists()


@pytest.mark.parametrize(
    ("more", "options", "kind"),
    [
        (None, None, "log_cut"),
        (None, "  strict_wal_tail=true\n", "log_cut"),
        (None, "  strict_wal_tail=false\n", "log_torn"),
        # Pebble continued the log in a further file.
        ("000006-001.log", None, "log_torn"),
    ],
)
def test_pebble_accepts_an_incomplete_record_only_in_the_newest_log(more, options, kind, tmp_path):
    """By `replayWAL` of its `open.go`; versions before 2025 ask the option."""
    directory = edited(tmp_path)
    if more:
        (directory / more).write_bytes(reference.encode([bytes([2, *bytes(7), 1, 0, 0, 0, 0, 1]) + b"k"]))
    if options:
        (directory / "OPTIONS-000004").write_text(f"[Version]\n  pebble_version=0.1\n[Options]\n{options}")
    (directory / "marker.manifest.000001.MANIFEST-000005").write_bytes(b"")
    batches = [number.to_bytes(8, "little") + b"\1\0\0\0\0\1k" for number in (1, 5)]
    (directory / "000006.log").write_bytes(reference.encode(batches[:1])[:-1])
    (directory / "000007.log").write_bytes(reference.encode(batches[1:]))
    assert kinds(directory) == [(kind, "000006.log")]
    assert database_in(str(directory)).ok == (kind == "log_torn")


@pytest.mark.parametrize("is_newest", [False, True])
def test_an_overwritten_last_record_in_a_closed_pebble_log_is_damage(is_newest, tmp_path):
    """Its end trailer, with the number of the next log, shows that the record had been written."""
    directory = edited(tmp_path)
    (directory / "marker.manifest.000001.MANIFEST-000005").write_bytes(b"")
    batches = [number.to_bytes(8, "little") + b"\1\0\0\0\0\1k" for number in (1, 2, 3)]
    with cordwood.open(directory / "000006.log", "w", dialect="pebble", log_number=6) as log:
        log.extend(batches[:2])
    closed = bytearray((directory / "000006.log").read_bytes())
    assert closed.endswith(b"k\0\0\0\0\0\0\5\7\0\0\0")
    closed[-15:-11] = b"????"
    (directory / "000006.log").write_bytes(closed)
    if not is_newest:
        (directory / "000007.log").write_bytes(reference.encode(batches[2:]))
    found = verdict(directory)
    assert ("log_damaged", "000006.log") in [(each.kind, Path(each.path).name) for each in found.problems]
    assert not found.ok


def wal_addition(number, synced_len=None):
    """The edit of RocksDB (tag 8196) that says how much of a log was synced."""
    synced = b"" if synced_len is None else b"\2" + varint(synced_len)
    return varint(8196) + varint(number) + synced + b"\1"


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([wal_addition(7, 10)], [("log_missing", "000007.log")]),
        ([wal_addition(7)], []),
        ([wal_addition(8, 100)], [("log_short", "000008.log")]),
        ([wal_addition(8, 10)], []),
        ([wal_addition(7, 10), varint(8197) + b"\x08"], []),
        ([bytes([2, 9])], [("log_absent", "000009.log")]),
        ([bytes([2, 8])], []),
    ],
)
def test_needs_exactly_the_logs_tracked_by_the_rocksdb_manifest(edits, expected, tmp_path):
    directory = edited(tmp_path, *edits)
    (directory / "000008.log").write_bytes(reference.encode([bytes(43)]))
    assert (directory / "000008.log").stat().st_size == 50
    assert kinds(directory) == expected
    assert database_in(str(directory)).ok == (not expected or expected[0][0] == "log_absent")


def test_a_log_number_applies_to_the_column_family_of_its_edit(tmp_path):
    """RocksDB writes the number (tag 2) before the column family (tag 200)."""
    family = varint(200) + b"\1"
    directory = edited(tmp_path, bytes([2, 5]), bytes([2, 12]) + family)
    # Log 5 may contain operations on the default family, and log 12 those on the other one.
    assert kinds(directory) == [("log_absent", "000005.log"), ("log_absent", "000012.log")]
    for number in (5, 12):
        (directory / f"{number:06}.log").write_bytes(reference.encode([b"record"]))
    assert kinds(directory) == []


def test_pebble_marker_file_takes_the_place_of_current(tmp_path):
    directory = edited(tmp_path)
    (directory / "CURRENT").unlink()
    (directory / "marker.manifest.000001.MANIFEST-000001").write_bytes(b"")
    (directory / "marker.manifest.000002.MANIFEST-000005").write_bytes(b"")
    database = database_in(str(directory))
    assert (database.engine, database.manifest, database.ok) == ("Pebble", "MANIFEST-000005", True)
    (directory / "MANIFEST-000005").unlink()
    assert kinds(directory) == [("manifest_missing", "MANIFEST-000005")]
    assert database_in(str(directory)).right_current is None


def test_an_unknown_manifest_edit_is_reported_but_not_as_a_fault(tmp_path):
    """Pebble's tag 105 makes a table that several virtual ones share."""
    directory = edited(tmp_path, b"\x69\x05\x05")
    assert kinds(directory) == [("manifest_unknown", "MANIFEST-000005")]
    assert main(["verify", str(directory)]) == 0


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST-000005", "MANIFEST-000009", "OPTIONS-000007", "LOG"])
@pytest.mark.parametrize("is_linked", [False, True])
@pytest.mark.parametrize("verb", ["verify", "info"])
def test_a_pipe_in_a_database_directory_is_not_opened(name, is_linked, verb, tmp_path):
    """Opening it would take forever."""
    directory = edited(tmp_path, new_file(7, 0))
    (directory / "000008.log").write_bytes(reference.encode([b"one"]))
    (directory / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "pipe" if is_linked else directory / name)
    if is_linked:
        (directory / name).symlink_to("../pipe")
    result = run(verb, directory)
    assert (result.returncode, result.stderr) == (3 if name in ("CURRENT", "MANIFEST-000005") else 0, "")


def test_file_names_that_no_engine_uses_are_ignored(tmp_path):
    directory = edited(tmp_path)
    for name in ("OPTIONS-²", "OPTIONS-", "OPTIONS-" + "9" * 30, "MANIFEST-²"):
        (directory / name).write_text("pebble_version=1")
    assert database_in(str(directory)).engine == "RocksDB"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("LOG", "manifest file:"),
        ("LOG", "SST files in "),
        ("LOG", "cf_paths does not yet exist: "),
        ("LOG", "SST files in  dir, Total Num"),
        ("OPTIONS-000007", "\n"),
    ],
)
def test_no_text_file_is_slow_to_parse(name, text, tmp_path):
    """If each occurrence were compared with the rest of the text, this would take many minutes."""
    directory = edited(tmp_path, new_file(7, 0), bytes([2, 9]))
    (directory / name).write_text(text * ((1 << 20) // len(text)))
    assert run("verify", directory).returncode in (0, 3)


def filled_leveldb(directory):
    with plyvel.DB(str(directory), create_if_missing=True, write_buffer_size=64 << 10) as database:
        for number in range(2_000):
            database.put(b"key-%06d" % number, random.Random(number).randbytes(100))


def filled_rocksdb(directory):
    """Each table is in the MANIFEST before the next log is started: by itself, RocksDB would not always wait for
    that.
    """
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_disable_auto_compactions(True)
    database = Rdict(str(directory), options)
    for start in range(0, 2_000, 500):
        for number in range(start, start + 500):
            database[b"key-%06d" % number] = random.Random(number).randbytes(100)
        database.flush()
    database.close()


def keys_in_rocksdb(directory):
    database = Rdict(str(directory), Options(raw_mode=True))
    count = len(list(database.keys()))
    database.close()
    return count


@pytest.mark.parametrize(
    ("fill", "keys", "repairs"),
    [
        (filled_leveldb, keys_in_leveldb, {"plyvel.repair_db": plyvel.repair_db}),
        (filled_rocksdb, keys_in_rocksdb, {"ldb repair": lambda path: Rdict.repair(path, Options(raw_mode=True))}),
    ],
)
def test_a_manifest_missing_its_last_edits_is_reported_as_a_fault(fill, keys, repairs, tmp_path, capsys):
    """The engine opens the database without an error and removes the newer tables; its repair keeps every key."""
    fill(tmp_path / "db")
    [(tool, repair)] = repairs.items()
    [manifest] = (tmp_path / "db").glob("MANIFEST-*")
    with cordwood.open(manifest) as log:
        ends = [log.tell() for _ in log]
    counts = {}
    for cut in [cut for end in ends[-3:] for cut in (end - 3, end)]:
        directory = copied(tmp_path / "db", tmp_path / "cut")
        os.truncate(directory / manifest.name, cut)
        is_torn = cut not in ends
        problems = {kind for kind, _ in kinds(directory)} - ({"log_missing"} if not is_torn else set()) - {"log_empty"}
        status = main(["info", str(directory)])
        printed = capsys.readouterr().out
        repaired = copied(directory, tmp_path / "repaired")
        repair(str(repaired))
        assert keys(repaired) == 2_000
        counts[cut] = keys(directory)
        # RocksDB starts a log before it writes the table of the log before. After a whole edit, that log could have the
        # records of the table.
        is_seen = counts[cut] < 2_000 and (is_torn or fill is filled_leveldb)
        assert (status, problems) == ((3, {"table_unlisted"}) if is_seen else (0, problems)), (cut, counts)
        if status:
            assert f"before you open {directory}: the engine's own repair, such as {tool}" in printed
            # A log that an older list names is of no use. If the list is not torn, the log may have been lost, too.
            assert not (is_torn and " back" in printed)
    assert min(counts.values()) < 2_000 == counts[ends[-1]]
    assert min(counts[cut] for cut in counts if cut not in ends) < 2_000


# States that must not be condemned -------------------------------------------------------------


def leveldb_states(directory, chance):
    """Copies of a LevelDB database while it is open and closed, reopened and compacted."""
    database = None
    for _ in range(STATES):
        if database is None:
            size = chance.choice([4 << 10, 64 << 10, 4 << 20])
            database = plyvel.DB(
                str(directory / "db"), create_if_missing=True, write_buffer_size=size, max_file_size=1 << 20
            )
        step = chance.random()
        if step < 0.15:
            database.close()
            database = None
        elif step < 0.2:
            database.compact_range()
        else:
            with database.write_batch() as batch:
                for _ in range(chance.randrange(1, 200)):
                    key = b"key-%06d" % chance.randrange(5_000)
                    batch.put(key, chance.randbytes(100)) if chance.random() < 0.9 else batch.delete(key)
        yield directory / "db"
    if database:
        database.close()


def rocksdb_states(directory, chance):
    """The same for RocksDB, with column families, without logs, and with other directories."""
    paths = {} if chance.random() < 0.6 else {"db_paths": [directory / "first", directory / "second"]}
    if chance.random() < 0.4:
        paths["wal_dir"] = directory / "logs"
    database = None
    families = {}
    for _ in range(STATES):
        if database is None:
            database = rocksdb(directory / "db", families, **paths)
            families = {name: database.get_column_family(name) for name in families}
            options = WriteOptions()
            if chance.random() < 0.3:
                options.disable_wal = True
            database.set_write_options(options)
        step = chance.random()
        if step < 0.1:
            for handle in (*families.values(), database):
                handle.close()
            database = None
        elif step < 0.25:
            database.flush()
        elif step < 0.3:
            database.compact_range(None, None)
        elif step < 0.35:
            name = f"family {len(families)}"
            families[name] = database.create_column_family(name, Options(raw_mode=True))
        else:
            family = chance.choice([database, *families.values()])
            for _ in range(chance.randrange(1, 200)):
                family[b"key-%06d" % chance.randrange(5_000)] = chance.randbytes(100)
            if chance.random() < 0.2:
                family.flush()
        yield directory / "db"


@pytest.mark.parametrize("seed", range(DATABASES))
@pytest.mark.parametrize("states", [leveldb_states, rocksdb_states])
def test_healthy_databases_are_never_reported_as_faulty(states, seed, tmp_path):
    """Live, and as a copy: whoever finds a fault in a copy must show that the engine refuses that copy."""
    chance = random.Random(seed)
    for count, directory in enumerate(states(tmp_path, chance)):
        live = database_in(str(directory))
        assert live is not None
        assert live.ok, (count, live)
        assert "table_newer" not in {problem.kind for problem in live.problems}, (count, live)
        copied(directory, tmp_path / "copy")
        copy = database_in(str(tmp_path / "copy"))
        has_other_directories = (tmp_path / "first").exists()
        assert copy.ok or (
            not has_other_directories and refuses(tmp_path / "copy", is_rocksdb=states is rocksdb_states)
        ), (
            count,
            copy,
        )


def test_a_database_directory_is_read_again_if_it_changes_while_being_read(database, monkeypatch):
    """A table is removed after the MANIFEST was read that lists it: LevelDB had listed others instead."""
    [manifest] = database.glob("MANIFEST-*")
    table = listed_tables(database)[0]
    number = int(table.stem)
    levels = [live.file.level for live in live_files(cordwood.open(manifest)) if live.file.file_number == number]
    read = _databases._Manifest  # noqa: SLF001

    def read_before_a_compaction(path):
        state = read(path)
        if table.exists():
            with cordwood.open(manifest, "a") as log:
                log.append(b"\6" + varint(levels[0]) + varint(number))
            table.unlink()
        return state

    monkeypatch.setattr(_databases, "_Manifest", read_before_a_compaction)
    assert database_in(str(database)).ok
