"""One report on the directories of many browser profiles, against the records that LevelDB was asked to write."""

import json
import sqlite3
import subprocess
import sys

import pytest
import reference

plyvel = pytest.importorskip("plyvel")

COMMAND = [sys.executable, "-m", "cordwood"]
RECORD_COUNT = 40


def profile(directory):
    """Makes a profile like Chrome's, with LevelDB databases in directories and files of other formats. Returns the
    logs.
    """
    logs = []
    for name in ("Local Storage/leveldb", "IndexedDB/https_example.org_0.indexeddb.leveldb"):
        path = directory / name
        path.mkdir(parents=True)
        with plyvel.DB(str(path), create_if_missing=True) as database:
            for number in range(RECORD_COUNT):
                database.put(f"_https://example.org\0\x01key{number:03}".encode(), b"\x01" + b"value" * 30)
        [log] = path.glob("*.log")
        logs.append(log)
    (directory / "Preferences").write_text(json.dumps({"profile": {"name": directory.name}}))
    with sqlite3.connect(directory / "Cookies") as cookies:
        cookies.execute("create table cookies (name text)")
    cookies.close()
    return logs


def flip_a_bit(log):
    file = bytearray(log.read_bytes())
    # Within the first record, which is longer than this.
    file[7 + 12 + 100] ^= 1
    log.write_bytes(file)


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    """50 profiles. In every fifth, one database's log has a flipped bit, and one log was cut."""
    root = tmp_path_factory.mktemp("chrome")
    logs = [profile(root / f"Profile {number}") for number in range(50)]
    damaged = [logs[number][number % 2] for number in range(0, 50, 5)]
    for log in damaged:
        flip_a_bit(log)
    torn = logs[1][0]
    torn.write_bytes(torn.read_bytes()[:-3])
    return root, damaged, torn


def test_verifying_50_profiles_prints_one_report(profiles):
    root, damaged, torn = profiles
    done = subprocess.run(
        [*COMMAND, "verify", "--json", root],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3
    *values, totals = map(json.loads, done.stdout.splitlines())
    databases = [value["database"] for value in values if "database" in value]
    reports = [value for value in values if "database" not in value]
    assert {database["engine"] for database in databases} == {"LevelDB"}
    assert len(databases) == 100
    assert {database["path"] for database in databases if not database["ok"]} == {str(log.parent) for log in damaged}
    by_source = {report["source"]: report for report in reports}
    logs = {str(path) for path in root.rglob("*.log")}
    manifests = {str(path) for path in root.rglob("MANIFEST-*")}
    assert (len(logs), len(manifests)) == (100, 100)
    assert set(by_source) == logs | manifests
    lost = {str(path) for path in [*damaged, torn]}
    assert {name: by_source[name]["record_count"] for name in logs} == {
        name: RECORD_COUNT - (name in lost) for name in logs
    }
    assert {name for name in by_source if not by_source[name]["ok"]} == {str(path) for path in damaged}
    for path in damaged:
        [region] = by_source[str(path)]["skipped"]
        assert region["bit_flip"] == {"offset": 119, "bit": 0, "part": "payload"}
    assert by_source[str(torn)]["outcome"]["kind"] == "torn_tail"
    totals = totals["totals"]
    assert (totals["damaged_count"], totals["failed_count"]) == (10, 0)
    assert totals["record_count"] == sum(report["record_count"] for report in reports)
    assert totals["log_count"] == len(reports)
    # Cookies; LOCK; LOG; CURRENT and Preferences.
    assert totals["other_file_count_by_format"] == {"SQLite": 50, "empty": 100, "info log": 100, "text": 150}


def test_the_text_report_ends_with_the_totals(profiles):
    root, damaged, _ = profiles
    done = subprocess.run([*COMMAND, "verify", root], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3
    lines = done.stdout.splitlines()
    assert sum("DAMAGED, read" in line for line in lines) == len(damaged)
    assert sum("DAMAGED, a database" in line for line in lines) == len(damaged)
    assert lines[-13].startswith("total: 200 logs, 10 damaged, 0 failed; ")
    assert lines[-12].startswith("  400 files are not logs: ")
    assert lines[-11].startswith(f"    {root}")
    assert lines[-1] == "    and 390 more"


@pytest.mark.parametrize("name", ["queue.bin", "output-0.bak"])
def test_a_log_is_recognized_despite_a_flipped_bit(name, tmp_path):
    """The bit is in the log's only record, and the name is no evidence, or is that of an export's copy."""
    log = bytearray(reference.encode([b"the only record"]))
    log[12] ^= 4
    (tmp_path / name).write_bytes(log)
    done = subprocess.run(
        [sys.executable, "-m", "cordwood", "verify", "--json", tmp_path], capture_output=True, check=False
    )
    first, totals = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, first["ok"], first["skipped"][0]["reason"]) == (3, False, "checksum_mismatch")
    assert totals["totals"]["other_files"] == []


@pytest.mark.parametrize("text", [b"", b"old", b"run_id\n", b"a,b,c\td\n1,2,3\n"])
def test_overwrite_replaces_an_existing_table(text, tmp_path):
    """Even a short one, which could be the start of a record whose rest was never written."""
    log, table = tmp_path / "1.log", tmp_path / "t.csv"
    log.write_bytes(reference.encode([b"one"]))
    table.write_bytes(text)
    options = ["--as", "raw", "--overwrite", "--encoding", "utf-8"]
    command = [sys.executable, "-m", "cordwood", "convert", *options, log, table]
    subprocess.run(command, check=True)
    assert table.read_text(encoding="ascii") == "offset,end_offset,data\n0,10,one\n"


FLIPPED = bytearray(reference.encode([b"the only record"]))
FLIPPED[12] ^= 4


@pytest.mark.parametrize(
    ("name", "log"),
    [
        ("a.bin", bytes(FLIPPED)),
        # Its only record is incomplete.
        ("a.bin", reference.encode([b"the only record"])[:-1]),
        # No byte identifies it, but the name is that of a log.
        ("000002.log", b"\xff" * 100),
        ("MANIFEST-000002", bytes(50_000)),
    ],
)
@pytest.mark.parametrize("command", [["convert", "--as", "raw", "--to", "csv"], ["map", "--svg"]])
def test_overwrite_never_replaces_a_damaged_log(command, name, log, tmp_path):
    """Not even one that does not start with a valid record."""
    good, bad = tmp_path / "1.log", tmp_path / name
    good.write_bytes(reference.encode([b"one"]))
    bad.write_bytes(log)
    names = [good, bad] if command[0] == "convert" else [bad, good]
    done = subprocess.run(
        [sys.executable, "-m", "cordwood", *command, *names, "--overwrite"], capture_output=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert b"may be a damaged log" in done.stderr
    assert bad.read_bytes() == log
