"""A table is written while its columns are learned, and again if they change: both ways make the same table."""

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest
from interrupts import HANG

import cordwood
from cordwood._tables.table import Table
from cordwood.cli import main
from cordwood.cli.convert import logs as reading
from cordwood.cli.convert.logs import Logs

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(autouse=True)
def _short_batches(monkeypatch):
    """A batch has a few records, so that the first ones do not decide alone."""
    monkeypatch.setattr(reading, "_BATCH_LEN", 200)


@pytest.fixture
def readings(monkeypatch):
    """The number of readings of each log, by its base name."""
    found = {}
    read = Logs._read  # noqa: SLF001

    def counted(logs, path, *arguments):
        name = path.rpartition("/")[2]
        found[name] = found.get(name, 0) + 1
        return read(logs, path, *arguments)

    monkeypatch.setattr(Logs, "_read", counted)
    return found


def write(path, values):
    with cordwood.open(path, "x") as writer:
        writer.extend(value if isinstance(value, bytes) else json.dumps(value).encode() for value in values)
    return str(path)


def tables(tmp_path, *sources):
    """The status, the table as it is written, and as two readings write it."""
    arguments = ["convert", "--as", "json", *sources]
    status = main([*arguments, str(tmp_path / "draft.parquet")])
    with mock.patch.object(Logs, "new_table", learning_table):
        assert main([*arguments, str(tmp_path / "twice.parquet")]) == status
    return status, pq.read_table(tmp_path / "draft.parquet"), pq.read_table(tmp_path / "twice.parquet")


def learning_table(logs, columns, *, new_table=Logs.new_table, **options):
    """A table that only learns its columns, if it learns them."""
    return new_table(logs, columns, **{**options, "opens_early": False})


ROWS = [{"n": number, "text": f"row {number}"} for number in range(100)]


def test_a_log_with_stable_columns_is_read_once(tmp_path, readings):
    log = write(tmp_path / "log", ROWS)
    assert main(["convert", "--as", "json", log, str(tmp_path / "t.parquet")]) == 0
    assert readings == {"log": 1}
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == ROWS


LAST = {
    "a column of another type": {"n": 0.5, "text": "x"},
    "a column without a common type": {"n": "a", "text": "x"},
    "a new column": {"n": 1, "new": [1, {"a": None}]},
    "a new column without a value": {"n": 1, "new": None},
    "a large integer": {"n": 2**60},
    "a huge integer": {"n": 2**70},
}


@pytest.mark.parametrize("last", LAST.values(), ids=LAST)
def test_a_new_column_in_the_last_record_triggers_a_second_pass(tmp_path, readings, last):
    log = write(tmp_path / "log", [*ROWS, last])
    status, draft, twice = tables(tmp_path, log)
    assert (status, draft.num_rows) == (0, 101)
    assert draft.equals(twice)
    assert draft.schema.equals(twice.schema)
    # The second run always reads it twice.
    assert readings == {"log": 3 if last == {"n": 2**60} else 4}
    assert list(tmp_path.glob(".cordwood*")) == []


def test_a_float_after_a_large_integer_produces_a_text_column(tmp_path):
    """A large integer does not change the type of a column of integers, but a later float does."""
    log = write(tmp_path / "log", [*ROWS, {"n": 2**60}, *ROWS, {"n": 0.5}])
    _, draft, twice = tables(tmp_path, log)
    assert draft.schema.field("n").type == pa.string()
    assert draft.equals(twice)


def test_fields_inside_a_json_column_count_toward_the_field_limit(tmp_path, capfd):
    """Each may be the one too many, although none changes the type of the column."""
    values = [{"n": 1}, {"n": "a"}, *({"n": {f"k{number}": 1}} for number in range(1_001))]
    _, draft, twice = tables(tmp_path, write(tmp_path / "log", values))
    assert draft.equals(twice)
    first, second = capfd.readouterr().err.splitlines()
    assert first == second == "cordwood: the column n has too many fields, and is stored as JSON"


def test_an_empty_log_converts_to_a_table_with_no_rows(tmp_path):
    status, draft, twice = tables(tmp_path, write(tmp_path / "log", []))
    assert (status, draft.num_rows, draft.num_columns) == (0, 0, 0)
    assert draft.equals(twice)


def test_leading_rows_without_columns_are_kept(tmp_path):
    _, draft, twice = tables(tmp_path, write(tmp_path / "log", [*[{}] * 100, *ROWS]))
    assert draft.num_rows == 200
    assert draft.equals(twice)


@pytest.mark.parametrize("last", [ROWS[0], LAST["a new column"]], ids=["one reading", "two readings"])
def test_damage_in_the_middle_of_a_log_is_reported_once(tmp_path, capfd, last):
    path = tmp_path / "log"
    write(path, [*ROWS[:50], b"no JSON", *ROWS[50:], last])
    data = bytearray(path.read_bytes())
    at = data.index(b"row 70")
    data[at] ^= 1
    path.write_bytes(data)
    status, draft, twice = tables(tmp_path, str(path))
    assert status == 3
    assert draft.equals(twice)
    assert 0 < draft.num_rows < 101
    lines = capfd.readouterr().err.splitlines()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
    assert sum("left out" in line for line in lines) == 4


@pytest.mark.parametrize("form", ["parquet", "csv", "ndjson"])
def test_faults_in_the_first_records_are_counted_once(tmp_path, capfd, monkeypatch, form):
    """There are more than are returned at a time, before the columns of the table are known."""
    monkeypatch.setattr(reading, "_BATCH_LEN", 1 << 20)
    log = write(tmp_path / "log", [value for row in ROWS * 25 for value in (b"no JSON", row)])
    assert main(["convert", "--as", "json", log, str(tmp_path / f"t.{form}")]) == 3
    assert capfd.readouterr().err.splitlines()[-1].endswith(": 2,500 records left out in all")
    scanned = cordwood.scan(log, decode="json", on_corruption="skip")
    assert pa.table(scanned).num_rows == 2_500
    offsets = [offset for offset, _ in scanned.left_out[0]]
    assert len(offsets) == len(set(offsets)) == 1_000


def test_logs_with_the_same_columns_are_read_once(tmp_path, readings):
    logs = [write(tmp_path / name, ROWS) for name in ("a", "b", "c")]
    assert main(["convert", "--as", "json", *logs, str(tmp_path / "t.parquet")]) == 0
    assert readings == dict.fromkeys("abc", 1)
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.select(["n", "text"]).to_pylist() == ROWS * 3
    assert table["__file__"].to_pylist() == [log for log in logs for _ in ROWS]
    logs.append(write(tmp_path / "d", [{"other": 1}]))
    _, draft, twice = tables(tmp_path, *logs)
    assert draft.equals(twice)


def test_a_log_that_cannot_be_read_to_its_end_contributes_no_rows(tmp_path, capfd):
    logs = [write(tmp_path / name, ROWS) for name in ("a", "b", "c")]
    sources = Table.sources

    def failing(table, reader, **options):
        for number, batch in enumerate(sources(table, reader, **options)):
            if number == 2 and reader.path == logs[1]:
                raise OSError(5, "Input/output error", reader.path)
            yield batch

    with mock.patch.object(Table, "sources", failing):
        assert main(["convert", "--as", "json", *logs, str(tmp_path / "t.parquet")]) == 1
    assert pq.read_table(tmp_path / "t.parquet")["__file__"].to_pylist() == [logs[0]] * 100 + [logs[2]] * 100
    assert capfd.readouterr().err == f"cordwood: {logs[1]}: Input/output error\n"


def test_a_full_disk_is_reported_as_an_error_writing_the_table(tmp_path, capfd):
    """No log is reported as unreadable."""
    logs = [write(tmp_path / name, ROWS) for name in ("a", "b")]
    full = OSError(28, "No space left on device")
    with mock.patch("pyarrow.parquet.ParquetWriter.write_batch", side_effect=full):
        assert main(["convert", "--as", "json", *logs, str(tmp_path / "t.parquet")]) == 1
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith(f"cordwood: {tmp_path / 't.parquet'}: No space left on device")
    assert list(tmp_path.glob("t.parquet")) == []


def test_converting_stops_writing_after_a_batch_fails(tmp_path, capfd, monkeypatch):
    """The next one is handed over while the failing one is being written."""
    monkeypatch.setattr("cordwood._tables.table.ROW_COUNT_MAX", 20)
    log = write(tmp_path / "log", ROWS)
    original, writers, failed = pq.ParquetWriter.write_batch, [], set()
    submit, submits, handed_over = ThreadPoolExecutor.submit, Counter(), threading.Event()

    def count_submits(self, *work):
        submits[self] += 1
        future = submit(self, *work)
        if submits[self] == 3:
            handed_over.set()
        return future

    def write_batch(self, batch, *args):
        writers.append(self)
        assert self not in failed
        if writers.count(self) == 2:
            failed.add(self)
            assert handed_over.wait(HANG)
            raise OSError(28, "No space left on device")
        return original(self, batch, *args)

    with (
        mock.patch("pyarrow.parquet.ParquetWriter.write_batch", write_batch),
        mock.patch.object(ThreadPoolExecutor, "submit", count_submits),
    ):
        assert main(["convert", "--as", "json", log, str(tmp_path / "t.parquet")]) == 1
    assert [writers.count(writer) for writer in failed] == [2]
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith(f"cordwood: {tmp_path / 't.parquet'}: No space left on device")
