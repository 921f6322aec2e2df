"""Scripts as people write them for the originals: with one import changed, they print the same.

The records that they read are written here, and the output is also compared with those.
"""

import io
import json
from contextlib import redirect_stdout
from textwrap import dedent

import pytest
from compat_logs import LEVELDB, WANDB, Log
from compat_peers import original
from write_batch import DELETE, PUT, write_batch

JSON_ROWS = [{"step": step, "loss": 1 / (step + 1), "note": "x" * (step % 3_000)} for step in range(200)]
ROWS = [json.dumps(row).encode() for row in JSON_ROWS]
# In some scripts the originals leave files open; some scripts do so themselves.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

BATCHES = [
    write_batch(
        2 * index + 1, [(PUT, b"key-%d" % (index % 5), b"value %d" % index * 400), (DELETE, b"gone-%d" % index)]
    )
    for index in range(60)
]


def printed(script, import_line, path):
    out = io.StringIO()
    with redirect_stdout(out):
        exec(f"{import_line}\n{dedent(script)}", {"path": path})  # noqa: S102 - a script of this file
    return out.getvalue()


def run_both(script, imports, path):
    """The output of a script with the original's import and with the drop-in's."""
    theirs, ours = imports
    original(theirs.split()[1])  # Skips the test if it is not installed.
    expected = printed(script, theirs, path)
    assert printed(script, ours, path) == expected
    assert expected
    return expected


def log_file(directory, flavour, records, name="000005.log"):
    path = directory / name
    path.write_bytes(Log.of(flavour, records).file)
    return path


# wandb -----------------------------------------------------------------------------------------

DATA_STORE = ("from wandb.sdk.internal.datastore import DataStore", "from cordwood.compat.wandb import DataStore")
DATA_STORE_MODULE = ("from wandb.sdk.internal import datastore", "from cordwood.compat import wandb as datastore")


def test_a_script_prints_the_history_rows_of_a_run(tmp_path):
    script = """
        import json

        store = DataStore()
        store.open_for_scan(str(path))
        rows = []
        while (data := store.scan_data()) is not None:
            row = json.loads(data)
            if row["step"] % 50 == 0:
                rows.append((row["step"], row["loss"]))
        store.close()
        print(rows)
    """
    found = run_both(script, DATA_STORE, log_file(tmp_path, WANDB, ROWS))
    assert found == f"{[(step, 1 / (step + 1)) for step in range(0, 200, 50)]}\n"


@pytest.mark.parametrize("is_running", [False, True])
def test_a_script_reads_an_unfinished_run(is_running, tmp_path):
    """A guard around `scan_data` takes a failure in the last block for the end. The drop-in ends without one."""
    script = """
        def robust_scan(store):
            try:
                return store.scan_data()
            except AssertionError:
                if store.in_last_block():
                    return None
                raise

        store = datastore.DataStore()
        try:
            store.open_for_scan(str(path))
        except AssertionError as error:
            print("empty")
        else:
            count = 0
            while (data := robust_scan(store)) is not None:
                count += 1
            print(count, store.get_offset() // 1000)
        store.close()
    """
    path = log_file(tmp_path, WANDB, ROWS)
    if is_running:
        path.write_bytes(path.read_bytes()[:-10])
    path.chmod(0o644)
    found = run_both(script, DATA_STORE_MODULE, path)
    assert found.split()[0] == ("199" if is_running else "200")
    path.write_bytes(WANDB.header[:3])
    assert run_both(script, DATA_STORE_MODULE, path) == "empty\n"


def test_a_script_can_seek_to_the_next_block_after_an_error(tmp_path):
    """After an error, the script itself seeks to the next block. It must get no less from the drop-in."""
    script = """
        store = datastore.DataStore()
        store.open_for_scan(str(path))
        found, errors = [], 0
        while True:
            try:
                data = store.scan_data()
            except Exception:
                errors += 1
                block = store.get_offset() // datastore.LEVELDBLOG_BLOCK_LEN
                store.seek((block + 1) * datastore.LEVELDBLOG_BLOCK_LEN)
                continue
            if data is None:
                break
            found.append(data)
        store.close()
        print(len(found), errors > 0)
    """
    records = [b"%d" % index * 600 for index in range(300)]
    log = Log.of(WANDB, records)
    log.file[log.spans[100][0][0] + 9] ^= 1
    path = tmp_path / "run-1.wandb"
    path.write_bytes(log.file)
    run_both(script, DATA_STORE_MODULE, path)


def test_a_script_can_override_the_open_for_scan_method(tmp_path):
    """Scripts have one in order to read a read-only file, or to inspect each fragment."""
    script = """
        import os

        def open_read_only(self, name):
            self._fname = name
            self._fp = open(name, "rb")
            self._index = 0
            self._size_bytes = os.stat(name).st_size
            self._opened_for_scan = True
            self._read_header()

        datastore.DataStore.open_for_scan, before = open_read_only, datastore.DataStore.open_for_scan
        try:
            store = datastore.DataStore()
            store.open_for_scan(str(path))
            first = store.scan_record()
            rest = list(iter(store.scan_data, None))
            store.close()
        finally:
            datastore.DataStore.open_for_scan = before
        print(first, len(rest), store._index)
    """
    found = run_both(script, DATA_STORE_MODULE, log_file(tmp_path, WANDB, ROWS))
    assert found.startswith(f"(1, {ROWS[0]!r}) 199 ")


# App Engine, leveldb-export ----------------------------------------------------------------------

# App Engine's own module runs only on Python 2; leveldb-export has a copy of its reader.
RECORDS = pytest.mark.parametrize(
    "imports",
    [
        ("from leveldb_export import records", f"from cordwood.compat import {name} as records")
        for name in ("leveldb_export", "appengine")
    ],
    ids=["leveldb-export", "App Engine"],
)


@RECORDS
def test_a_script_reads_an_export(tmp_path, imports):
    script = """
        import pathlib

        for name in sorted(pathlib.Path(path).glob("output-*")):
            with open(name, "rb") as raw:
                sizes = [len(record) for record in records.RecordsReader(raw)]
            print(name.name, len(sizes), sum(sizes))
    """
    for index in range(3):
        log_file(tmp_path, LEVELDB, ROWS[index:], f"output-{index}")
    lines = [f"output-{index} {200 - index} {sum(map(len, ROWS[index:]))}" for index in range(3)]
    assert run_both(script, imports, tmp_path).splitlines() == lines


@RECORDS
def test_a_script_reads_the_version_record_and_then_the_other_records(tmp_path, imports):
    script = """
        import io

        reader = records.RecordsReader(io.BytesIO(path.read_bytes()), no_check_crc=False)
        if reader.read() != b"1":
            raise IOError("unsupported version")
        print(reader.tell(), len(list(reader)), reader.tell())
        try:
            reader.read()
        except EOFError:
            print("end")
    """
    path = log_file(tmp_path, LEVELDB, [b"1", *ROWS])
    if "appengine" in imports[1]:
        script = script.replace(", no_check_crc=False", "")  # App Engine's reader always checks.
    assert run_both(script, imports, path) == f"8 200 {path.stat().st_size}\nend\n"


@RECORDS
def test_a_script_resumes_an_export_where_it_left_off(tmp_path, imports):
    """Continues where an earlier run stopped, appending to a file that exists."""
    script = """
        with open(path, "rb") as raw:
            reader = records.RecordsReader(raw)
            for _ in range(50):
                reader.read()
            position = reader.tell()
        with open(path, "rb") as raw:
            raw.seek(position)
            print(position, len(list(records.RecordsReader(raw))))
    """
    assert run_both(script, imports, log_file(tmp_path, LEVELDB, ROWS)).endswith(" 150\n")


# ccl_chromium_reader, as packaged by chromium-reader ---------------------------------------------

LEVELDB_MODULE = ("from chromium_reader import leveldb", "from cordwood.compat import ccl as leveldb")


def test_a_script_writes_all_keys_to_a_csv_table(tmp_path):
    script = """
        import csv, sys

        out = csv.writer(sys.stdout)
        for record in leveldb.LogFile(path):
            out.writerow([record.user_key.hex(" ", 1), record.value[:9], record.origin_file, record.offset, record.seq])
    """
    assert len(run_both(script, LEVELDB_MODULE, log_file(tmp_path, LEVELDB, BATCHES)).splitlines()) == 120


def test_a_script_finds_the_newest_value_of_each_key(tmp_path):
    script = """
        newest = {}
        for record in leveldb.LogFile(path):
            if record.state.name.lower() == "live" and record.user_key.startswith(b"key-"):
                if record.user_key not in newest or newest[record.user_key].seq < record.seq:
                    newest[record.user_key] = record
        for key, record in sorted(newest.items()):
            print(key, record.value[:8])
    """
    found = run_both(script, LEVELDB_MODULE, log_file(tmp_path, LEVELDB, BATCHES))
    assert found.splitlines() == [f"{b'key-%d' % index} {b'value %d' % (55 + index)}" for index in range(5)]


def test_a_script_lists_deleted_keys_and_their_offsets(tmp_path):
    script = """
        log = leveldb.LogFile(path)
        deleted = [(record.key, record.offset) for record in log if record.state.value == 0]
        again = sum(1 for record in log)
        log.close()
        print(log.file_no, again, len(deleted), deleted[-1])
    """
    found = run_both(script, LEVELDB_MODULE, log_file(tmp_path, LEVELDB, BATCHES))
    assert found.startswith("5 120 60 (b'gone-59', ")


# dfindexeddb -------------------------------------------------------------------------------------

LOG_MODULE = ("from dfindexeddb.leveldb import log", "from cordwood.compat import dfindexeddb as log")


def test_a_script_writes_keys_as_json(tmp_path):
    script = """
        import dataclasses, json

        for key in log.FileReader(str(path)).GetParsedInternalKeys():
            row = dataclasses.asdict(key)
            print(json.dumps({**row, "key": row["key"].decode(), "value": row["value"][:9].decode()}))
    """
    rows = [
        json.loads(line) for line in run_both(script, LOG_MODULE, log_file(tmp_path, LEVELDB, BATCHES)).splitlines()
    ]
    assert [row["sequence_number"] for row in rows] == list(range(1, 121))


def test_a_script_lists_batches_with_several_keys(tmp_path):
    script = """
        for batch in log.FileReader(str(path)).GetWriteBatches():
            if batch.count > 1:
                print(batch.sequence_number, batch.offset, [(key.record_type.name, key.key) for key in batch.records])
    """
    assert len(run_both(script, LOG_MODULE, log_file(tmp_path, LEVELDB, BATCHES)).splitlines()) == 60


def test_a_script_lists_blocks_and_fragments(tmp_path):
    script = """
        for block in log.FileReader(str(path)).GetBlocks():
            print(block.offset, len(block.data))
            for found in block.GetPhysicalRecords():
                print(" ", found.base_offset + found.offset, found.record_type.name, found.length, hex(found.checksum))
    """
    found = run_both(script, LOG_MODULE, log_file(tmp_path, LEVELDB, BATCHES))
    assert {line.split()[1] for line in found.splitlines() if line[0] == " "} == {"FULL", "FIRST", "LAST"}
