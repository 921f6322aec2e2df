"""Every output says the same of a directory: its logs, its databases and its exports, one by one and together.

The directories are those of `tests/vectors`, databases with each of their files deleted, emptied, cut, zeroed or with a
flipped bit, databases whose writers were killed, and others with faults. `CORDWOOD_DIRECTORIES` may name more,
separated as in `PATH`: each directory in one of these is a case.
"""

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
from rocksdict import Options, Rdict

import cordwood
from cordwood.cli import main

VECTORS = Path(__file__).parents[1] / "vectors"
MORE = [Path(name) for name in os.environ.get("CORDWOOD_DIRECTORIES", "").split(os.pathsep) if name]
FULL = os.environ.get("CORDWOOD_SURVIVAL") == "full"


def number(pattern, text, default=0):
    match = re.search(pattern, text, re.MULTILINE)
    return int(match[1].replace(",", "")) if match else default


def assert_one_verdict(directory, capfd):
    """Compares what `verify`, `info` and `evidence` say about a directory, in text, in JSON and in Python."""
    directory = str(directory)
    results, info, evidence = cordwood.verify(directory), cordwood.info(directory), cordwood.evidence(directory)
    status = main(["verify", directory])
    text = capfd.readouterr().out
    assert main(["verify", "--json", directory]) == status
    *values, last = map(json.loads, capfd.readouterr().out.splitlines())
    totals = last["totals"]
    info_status = main(["info", directory])
    info_text = capfd.readouterr().out
    assert main(["info", "--json", directory]) == info_status
    described = json.loads(capfd.readouterr().out.splitlines()[-1])
    page, evidence_json = evidence.html, json.loads(evidence.json)

    # Each log.
    fault_of = {}
    for path, report in results.items():
        fault_of[path] = "damaged" if not report.ok else "other" if report.other_log_number is not None else None
    assert {log.path: log.report for log in evidence.logs} == dict(results)
    logs = {value["source"]: value for value in values if "ok" in value}
    assert {path: value["ok"] for path, value in logs.items()} == {path: not fault for path, fault in fault_of.items()}
    assert {log["source"]: log["ok"] for log in evidence_json["logs"]} == {
        path: not fault for path, fault in fault_of.items()
    }
    for path, fault in fault_of.items():
        [line] = [
            line
            for line in text.splitlines()
            if line.startswith(f"{path}: ") and not re.search(", an? (export|data)", line)
        ]
        assert (": DAMAGED, " in line) == (fault == "damaged"), line
    assert info.damaged_logs == tuple(path for path, fault in fault_of.items() if fault == "damaged")
    assert [path for path, *_ in info.misnamed_logs if path not in info.damaged_logs] == [
        path for path, fault in fault_of.items() if fault == "other"
    ]

    # Each database and export.
    assert list(results.databases) == list(info.databases) == list(evidence.databases)
    assert list(results.exports) == list(info.exports) == list(evidence.exports)
    judged = {database.path: database.ok for database in results.databases}
    printed = [value["database"] for value in values if "database" in value]
    for found in (printed, described.get("databases", []), evidence_json["databases"]):
        assert {database["path"]: database["ok"] for database in found} == judged
        for database, value in zip(results.databases, found, strict=True):
            assert [problem["kind"] for problem in value["problems"]] == [each.kind for each in database.problems]
    for path, ok in judged.items():
        assert f"{path}: {'ok' if ok else 'DAMAGED'}, a database of " in text
        assert (f"DAMAGED  {path}, a database of " in info_text) == (not ok and len(judged) > 1)

    # The totals: each counts its own kind.
    damaged = sum(fault == "damaged" for fault in fault_of.values())
    others = sum(fault == "other" for fault in fault_of.values())
    faulty = sum(not ok for ok in judged.values())
    incomplete = sum(not export.ok for export in results.exports)
    names = ("damaged_count", "other_log_count", "damaged_database_count", "incomplete_export_count")
    assert [totals[name] for name in names] == [damaged, others, faulty, incomplete]
    assert number(r"^total: [\d,]+ logs?, ([\d,]+) damaged", text) == damaged
    assert number(r"^total: .* ([\d,]+) of another log", text) == others
    assert number(r"^total: [\d,]+ databases?, ([\d,]+) damaged", text) == faulty
    heading = page[: page.index("</h1>")]
    assert number(r"[\d,]+ logs?, ([\d,]+) damaged", heading) == damaged + others
    assert number(r"[\d,]+ databases?, ([\d,]+) damaged", heading) == faulty
    if "error" not in described:
        assert described["damaged_count"] == damaged

    # All together.
    has_fault = bool(damaged or others or faulty or incomplete)
    assert (status == 3) == (info_status == 3) == (has_fault and status != 1)
    if (results or judged) and not results.errors:
        assert status == (3 if has_fault else 0)
        assert results.ok == info.ok == evidence.ok == evidence_json["ok"] == (not has_fault)
    return results


CASES = [
    *sorted(path for path in VECTORS.iterdir() if path.is_dir()),
    *(path for directory in MORE for path in sorted(directory.iterdir()) if path.is_dir()),
]


@pytest.mark.parametrize("directory", CASES, ids=lambda directory: directory.name)
def test_all_interfaces_report_the_same_results_for_a_directory(directory, capfd, no_log):
    assert_one_verdict(directory, capfd)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A database of each engine, with tables, and with writes that are only in a log."""
    directory = tmp_path_factory.mktemp("whole")
    with plyvel.DB(str(directory / "leveldb"), create_if_missing=True, write_buffer_size=64 << 10) as database:
        for key in range(2_000):
            database.put(b"key-%06d" % key, random.Random(key).randbytes(100))
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_recycle_log_file_num(2)
    # No file changes while it is copied.
    options.set_disable_auto_compactions(True)
    database = Rdict(str(directory / "recycling"), options)
    for count in range(5):
        for key in range(300):
            database[b"key-%06d" % key] = random.Random(key).randbytes(100)
        if count < 4:
            database.flush()
    database.flush_wal(True)
    shutil.copytree(directory / "recycling", directory / "rocksdb")
    database.close()
    return directory


def zeroed(path):
    path.write_bytes(bytes(path.stat().st_size))


def cut(path):
    os.truncate(path, path.stat().st_size * 2 // 3)


def flipped(path):
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 2] ^= 4
    path.write_bytes(content)


CHANGES = [Path.unlink, lambda path: path.write_bytes(b""), cut, zeroed, flipped, lambda path: path.write_text("text.")]


@pytest.mark.parametrize("engine", ["leveldb", "rocksdb", "recycling"])
def test_all_interfaces_report_the_same_results_for_a_changed_database(engine, whole, tmp_path, capfd, no_log):
    patterns = ("CURRENT", "MANIFEST-*", "*.log", "*.ldb", "*.sst")
    count = 3 if FULL else 1
    names = [path.name for pattern in patterns for path in sorted((whole / engine).glob(pattern))[-count:]]
    for name in names:
        for change in CHANGES:
            # Sometimes beside another one, which is whole.
            directory = tmp_path / "changed"
            changed = directory / "beside" if change in CHANGES[::2] else directory
            shutil.copytree(whole / engine, changed)
            if changed != directory:
                shutil.copytree(whole / "leveldb", directory / "whole")
            change(changed / name)
            assert_one_verdict(directory, capfd)
            shutil.rmtree(directory)


WRITERS = {
    "leveldb": """
import plyvel, random, sys
database = plyvel.DB(sys.argv[1], create_if_missing=True, write_buffer_size=64 << 10)
def put(chance):
    database.put(b"key-%06d" % chance.randrange(5_000), chance.randbytes(chance.choice([10, 100, 2000])))
""",
    "rocksdb": """
import random, sys
from rocksdict import Options, Rdict
options = Options(raw_mode=True)
options.create_if_missing(True)
options.set_write_buffer_size(64 << 10)
options.set_recycle_log_file_num(int(sys.argv[3]))
database = Rdict(sys.argv[1], options)
def put(chance):
    database[b"key-%06d" % chance.randrange(5_000)] = chance.randbytes(chance.choice([10, 100, 2000]))
    if chance.random() < 0.003:
        database.flush(chance.random() < 0.8)
""",
}
WRITERS = {
    name: f"{code}\nchance = random.Random(sys.argv[2])\nprint(flush=True)\nwhile True:\n    put(chance)\n"
    for name, code in WRITERS.items()
}


@pytest.mark.parametrize(("engine", "recycled"), [("leveldb", "0"), ("rocksdb", "0"), ("rocksdb", "2")])
def test_a_database_has_no_faults_after_its_writer_is_killed(engine, recycled, tmp_path, capfd, no_log):
    chance = random.Random(0)
    for seed in range(100 if FULL else 8):
        arguments = [sys.executable, "-c", WRITERS[engine], str(tmp_path / "db"), str(seed), recycled]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as writer:
            writer.stdout.readline()
            time.sleep(chance.random() / 3)
            writer.kill()
        results = assert_one_verdict(tmp_path / "db", capfd)
        assert results.ok, (seed, [database.problems for database in results.databases])


def test_all_interfaces_report_the_same_results_for_a_mixed_directory(whole, tmp_path, capfd, no_log):
    directory = tmp_path / "all"
    for name in ("leveldb", "rocksdb", "recycling"):
        shutil.copytree(whole / name, directory / name)
        shutil.copytree(whole / name, directory / "below" / name)
    flipped(max((directory / "leveldb").glob("*.log")))
    (directory / "rocksdb/CURRENT").unlink()
    shutil.copy(VECTORS / "rocksdb/recycled/000014.log", directory / "000099.log")
    (directory / "damaged.log").write_bytes(reference.encode([b"one", b"two", b"three"])[:-1] + b"?")
    assert_one_verdict(directory, capfd)
    (directory / "damaged.log").unlink()
    assert_one_verdict(directory, capfd)
