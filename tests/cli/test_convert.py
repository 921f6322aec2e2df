"""`cordwood convert` to the forms that are not text, and cases that no console session shows."""

import base64
import csv
import errno
import io
import json
import math
import os
import random
import re
import resource
import struct
import subprocess
import sys
from pathlib import Path

import entities
import pytest
import reference
from support import HELPERS, written

import cordwood
from cordwood._tables.schema import ListOf, StructOf
from cordwood.cli import main
from cordwood.cli.convert.logs import Logs

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
learned_of = pytest.importorskip("table_pairs").learned_of

COMMAND = [sys.executable, "-m", "cordwood", "convert"]
RECORDS = [
    b"",
    b"one",
    b"\xff\0",
    'ä\n,"'.encode(),
    b'say "x"',
    b"a\nb",
    b" a",
    b"x" * 100_000,
    *(b"%d" % index for index in range(3_000)),
]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log"
    with cordwood.open(path, "x") as writer:
        writer.extend(RECORDS)
    return path


def convert(*arguments, status=0, **options):
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, check=False, timeout=120, **options)
    assert done.returncode == status, done.stderr.decode()
    return done.stdout


def read(form, source):
    if form == "parquet":
        return pq.read_table(source)
    return (pa.ipc.open_stream if isinstance(source, io.BytesIO) else pa.ipc.open_file)(source).read_all()


@pytest.mark.parametrize(("form", "name"), [("parquet", "a.parquet"), ("arrow", "a.arrow"), ("arrow", "a.FEATHER")])
def test_converted_tables_have_columns_for_offsets_and_records(form, name, log, tmp_path):
    with cordwood.open(log) as reader:
        expected = [(record.offset, record.end_offset, record.data) for record in reader.records()]
    assert [data for _, _, data in expected] == RECORDS
    assert convert(log, tmp_path / name) == b""
    sources = [
        tmp_path / name,
        io.BytesIO(convert("--to", form, log)),
        io.BytesIO(convert("--to", form, "-", input=log.read_bytes())),
    ]
    for source in sources:
        table = read(form, source if isinstance(source, io.BytesIO) else str(source))
        assert [str(column.type) for column in table.schema] == ["uint64", "uint64", "binary"]
        assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == expected


def csv_rows(*arguments):
    csv.field_size_limit(1 << 20)
    header, *rows = csv.reader(io.StringIO(convert("--to", "csv", *arguments).decode(), newline=""))
    assert header == ["offset", "end_offset", "data"]
    return rows


def json_rows(*arguments):
    return [list(json.loads(line).values()) for line in convert("--to", "ndjson", *arguments).splitlines()]


def test_arbitrary_bytes_become_base64_objects(log):
    rows = csv_rows(log)
    assert [row[:2] for row in rows[:3]] == [["0", "7"], ["7", "17"], ["17", "26"]]
    objects = [{"base64": base64.b64encode(record).decode()} for record in RECORDS]
    assert [json.loads(row[2]) for row in rows] == objects
    assert [row[2] for row in json_rows(log)] == objects


@pytest.mark.parametrize("rows", [csv_rows, json_rows])
def test_records_can_be_written_as_base64_or_hex_text(rows, log):
    assert [base64.b64decode(row[2], validate=True) for row in rows("--encoding", "base64", log)] == RECORDS
    assert [bytes.fromhex(row[2]) for row in rows("--encoding", "hex", log)] == RECORDS


def left_out(*arguments):
    """The table without the rows that are left out, and the lines on stderr."""
    command = [*COMMAND, "--encoding", "utf-8", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert done.returncode == 3
    return done.stdout.decode(), done.stderr.decode().splitlines()


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_a_row_with_bytes_that_are_not_utf8_is_omitted_from_the_table(form, log):
    text, [fault] = left_out("--as", "raw", "--to", form, log)
    where = f"{log}: a row of the record at offset 17 is left out"
    assert fault == f"cordwood: {where}: bytes in the column data are not UTF-8 (1 byte at offset 0 of the payload)"
    if form == "csv":
        rows = list(csv.reader(io.StringIO(text, newline="")))[1:]
    else:
        rows = [list(json.loads(line).values()) for line in text.splitlines()]
    assert [row[2].encode() for row in rows] == [record for record in RECORDS if record != b"\xff\0"]


def test_omitted_rows_do_not_count_toward_the_limit(tmp_path):
    """25 operations have a key that is not UTF-8. The limit counts only the others."""
    batch = struct.pack("<QI", 7, 27) + b"\1\1a\1b" + b"\1\2k\xc3\1v" * 25 + b"\1\1c\1d"
    path = tmp_path / "log"
    path.write_bytes(written([batch, batch]))
    text, lines = left_out("--as", "write-batch", "--columns", "offset,key,value", "--limit", "3", path)
    rows = [(0, "a", "b"), (0, "c", "d"), (7 + len(batch), "a", "b")]
    assert [tuple(json.loads(line).values()) for line in text.splitlines()] == rows
    fault = f"cordwood: {path}: a row of the record at offset 0 is left out: bytes in the column key are not UTF-8"
    assert [lines[0], lines[9]] == [f"{fault} (1 byte at offset {at} of the payload)" for at in (20, 74)]
    assert lines[11:] == [f"cordwood: {path}: 25 rows left out in all"]


@pytest.mark.parametrize("form", ["ndjson", "csv"])
def test_a_fault_near_the_end_of_a_long_record_is_reported(form, tmp_path):
    """The rows of the record are more text than the output takes at once. Its count is wrong, too."""
    keys = [b"\xfe", *(b"%06d" % number for number in range(120_000)), b"\xff"]
    operations = b"".join(b"\1" + bytes([len(key)]) + key + b"\1v" for key in keys)
    path = tmp_path / "log"
    path.write_bytes(written([struct.pack("<QI", 7, len(keys) + 1) + operations]))
    text, lines = left_out("--as", "write-batch", "--columns", "offset,key,value", "--to", form, path)
    assert len(text.splitlines()) == 120_000 + (form == "csv")
    left = [line for line in lines if "bytes in the column key are not UTF-8" in line]
    assert [line.split("at offset ")[-1].split()[0] for line in left] == ["14", str(12 + len(operations) - 3)]
    [count] = [line for line in lines if line not in left]
    assert f"the header states {len(keys) + 1} operations, but there are {len(keys)}" in count


@pytest.mark.parametrize("reading_count", [1, 2])
def test_omitted_rows_do_not_add_columns_to_the_table(reading_count, tmp_path):
    """A table for stdout is read twice. The fault is reported once."""
    values = [{"n": b"text"}, {"n": [b"ok", b"\xff"], "x": 1}, {"n": b"more"}]
    path, table = tmp_path / "log", tmp_path / "a.csv"
    path.write_bytes(written([entities.entity([("K", at)], value) for at, value in enumerate(values, 1)]))
    destination = [table] if reading_count == 1 else ["-"]
    text, [fault] = left_out("--as", "entity", "--to", "csv", path, *destination)
    assert "is left out: bytes in the column n are not UTF-8 (1 byte at offset " in fault
    header, *rows = (text or table.read_text()).splitlines()
    assert header == "__kind__,__id__,__name__,__path__,__key__,n"
    assert [row.rpartition(",")[2] for row in rows] == ["text", "more"]


def test_a_live_file_with_a_key_that_is_not_utf8_is_omitted_from_the_table(tmp_path):
    def added(number, smallest):
        keys = bytes([len(smallest) + 8]) + smallest + b"\1" + bytes(7) + b"\11z\1" + bytes(7)
        return b"\7\0" + bytes([number]) + b"\52" + keys

    path = tmp_path / "MANIFEST-000001"
    path.write_bytes(written([added(5, b"a"), added(6, b"\xff"), added(7, b"b")]))
    columns = ["--columns", "file_number,smallest_key"]
    text, lines = left_out("--as", "live-files", *columns, "--to", "csv", path)
    assert text == "file_number,smallest_key\n5,a\n7,b\n"
    where = f"{path}: a row of the record at offset 62 is left out: bytes in the column smallest_key are not UTF-8"
    assert lines[0].startswith(f"cordwood: {where} ")


def test_spreadsheet_formulas_are_escaped_on_request(tmp_path):
    path = tmp_path / "log"
    records = [b"=1+1", b"+1", b"-1", b"@SUM(A1)", b"\t=1", b"\r=1", b"\n=1"]
    records += [sign.encode() + b"1" for sign in "\uff1d\uff0b\uff0d\uff20"]
    records += [b"1-1", b""]
    with cordwood.open(path, "x") as writer:
        writer.extend(records)
    texts = [row[2] for row in csv_rows("--encoding", "utf-8", path)]
    assert [text.encode() for text in texts] == records
    escaped = [row[2] for row in csv_rows("--escape-formulas", "--encoding", "utf-8", path)]
    assert escaped == [*(f"'{text}" for text in texts[:11]), "1-1", ""]
    assert csv_rows("--escape-formulas", path)[2][:2] == ["20", "29"]


def test_text_tables_contain_numbers_as_python_prints_them(tmp_path):
    """Numbers with a few bits are often equally close to two texts."""
    few_bits = [sign * count / 2**places for count in range(1, 200) for places in range(60) for sign in (1, -1)]
    many_bits = [count / 8 for count in range(2**49, 2**49 + 1_000)]
    any_bits = [struct.unpack("<d", random.Random(at).randbytes(8))[0] for at in range(20_000)]
    numbers = [number for number in (*few_bits, *many_bits, *any_bits) if math.isfinite(number)]
    path = tmp_path / "numbers.log"
    with cordwood.open(path, "x") as writer:
        writer.extend([json.dumps({"n": number}).encode() for number in numbers])
    lines = convert("--as", "json", path).splitlines()
    assert lines == [f'{{"n":{number!r}}}'.encode() for number in numbers]
    _, *lines = convert("--as", "json", "--to", "csv", path, "-").splitlines()
    assert lines == [repr(number).encode() for number in numbers]


def test_binary_tables_reject_text_options(log):
    for option in (["--encoding", "hex", "--to", "arrow"], ["--escape-formulas"]):
        done = subprocess.run([*COMMAND, *option, log], capture_output=True, check=False, timeout=120)
        assert (done.returncode, done.stdout) == (2, b"")


def test_an_empty_log_converts_to_a_table_with_no_rows(tmp_path):
    path = tmp_path / "log"
    path.touch()
    operation = (
        "offset,sequence,kind,column_family,column_family_name,key,end_key,value,xid,timestamp,write_unix_time\n"
    )
    for payload, header in [
        ("raw", "offset,end_offset,data\n"),
        ("write-batch", operation),
        ("entity", "__kind__,__id__,__name__,__path__,__key__\n"),
        ("wandb", "offset\n"),
        ("wandb-history", ""),
        ("wandb-summary", ""),
        ("wandb-config", ""),
        ("wandb-metrics", ""),
        ("wandb-output", "_timestamp,stream,line\n"),
    ]:
        assert convert("--as", payload, path) == b""
        assert convert("--as", payload, "--to", "csv", path).decode() == header
        for form in "parquet", "arrow":
            table = read(form, io.BytesIO(convert("--as", payload, "--to", form, path)))
            assert table.num_rows == 0
            assert ",".join(table.column_names) == header.strip()


@pytest.mark.parametrize("payload", ["entity", "write-batch", "version-edit"])
@pytest.mark.parametrize("verb", ["convert", "cat"])
def test_convert_recognises_a_wandb_run_and_gives_advice(verb, payload, tmp_path, capsys):
    path = tmp_path / "run-0.wandb"
    # A number and a summary, as wandb writes them: fields 1 and 3. Some such records also decode as another payload.
    with cordwood.open(path, "x", dialect="wandb") as writer:
        writer.extend([bytes.fromhex("08011a020a00"), bytes.fromhex("08021a020a00")])
    assert main([verb, "--as", payload, str(path)]) == 3
    start, advice = f"{path}: the record at offset 7 is ", "a record of a run of Weights & Biases: --as wandb-history\n"
    assert re.search(re.escape(start) + "(left out: it is )?" + re.escape(advice), capsys.readouterr().err)


def test_an_entity_export_is_not_mistaken_for_a_run_without_steps(tmp_path):
    path = tmp_path / "output-0"
    path.write_bytes(reference.encode([entity(b"c"), entity(b"d")]))
    for form in ("ndjson", "csv"):
        command = [*COMMAND, "--as", "wandb-history", "--to", form, str(path)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)
        assert done.returncode == 3
        advice = "the record at offset 0 is an entity of a Datastore or Firestore export: --as entity"
        assert done.stderr.decode() == f"cordwood: {path}: {advice}\n"
    done = subprocess.run([*COMMAND[:-1], "cat", "--as", "wandb-summary", path], capture_output=True, check=False)
    assert done.returncode == 3
    assert done.stderr.decode() == f"cordwood: {path}: {advice}\n"


@pytest.mark.parametrize(("name", "count"), [("t.ndjson", 3), ("t.arrow", 3), ("t.parquet", 0), ("t.csv", 0)])
def test_a_table_without_columns_preserves_its_row_count(name, count, tmp_path, capfd):
    """Arrow has a number of rows without columns. The forms that cannot say it are named."""
    path, table = str(tmp_path / "log"), tmp_path / name
    with cordwood.open(path, "x") as writer:
        writer.extend([b"{}"] * 3)
    assert main(["convert", "--as", "json", path, str(table)]) == 0
    if name == "t.ndjson":
        assert table.read_bytes() == b"{}\n" * 3
    elif name == "t.csv":
        assert table.read_bytes() == b""
    else:
        assert read(name[2:], str(table)).num_rows == count
    form = {"t.parquet": "Parquet", "t.csv": "CSV"}.get(name)
    left_out = f"without columns {form} cannot count rows: 3 rows left out; --to ndjson and --to arrow keep them\n"
    said = capfd.readouterr().err
    assert said.endswith(left_out) if form else not said


def test_the_table_of_operations_has_the_same_columns_for_every_log(tmp_path):
    path = tmp_path / "log"
    with cordwood.open(path, "x") as writer:
        writer.append(bytes.fromhex("ffffffffffffff00 01000000 01036b65790576616c7565"))
    table = read("arrow", io.BytesIO(convert("--as", "write-batch", "--to", "arrow", path)))
    assert table.num_rows == 1
    row = {name: value for name, value in table.to_pylist()[0].items() if value is not None}
    assert row == {
        "offset": 0,
        "sequence": 2**56 - 1,
        "kind": "put",
        "column_family": 0,
        "key": b"key",
        "value": b"value",
    }
    assert [str(table.schema.field(name).type) for name in ("sequence", "xid")] == ["uint64", "binary"]


def test_each_column_has_the_type_of_its_values():
    cases = {
        "none": ([None], "text"),
        "bool": ([True, None], "bool"),
        "int": ([1, -(2**63)], "int"),
        "wide": ([2**63], "json"),
        "float": ([1, 0.5], "float"),
        "exact": ([2**53 + 1, 0.5], "json"),
        "flag": ([1, True], "json"),
        "text": (["a", None], "text"),
        "mixed": (["a", 1], "json"),
        "list": ([[1], []], ListOf("int")),
        "lists": ([[1], [[1]], ["a"]], ListOf("json")),
        "empty": ([[]], ListOf("text")),
        "object": ([{"a": 1}, {"b": True, "a": None}], StructOf((("a", "int"), ("b", "bool")))),
        "listed": ([1, [1]], "json"),
    }
    rows = [{name: value} for name, (values, _) in cases.items() for value in values]
    table, _ = learned_of("json", written(json.dumps(row).encode() for row in rows))
    assert table.columns == {name: kind for name, (_, kind) in cases.items()}
    rows = [{"bytes": b"a"}, {"either": b"a"}, {"either": "a"}]
    table, _ = learned_of("entity", written(entities.entity([("T", 1)], row) for row in rows))
    assert [table.columns[name] for name in ("bytes", "either")] == ["bytes", "json"]


def test_a_table_is_removed_if_writing_fails(tmp_path):
    # The limit on the file's length stands in for a disk that fills up in the middle of the table.
    path = tmp_path / "log"
    with cordwood.open(path, "x") as writer:
        for seed in range(40):
            writer.append(random.Random(seed).randbytes(1 << 18))
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)); "
    for name in "a.ndjson", "a.csv", "a.parquet", "a.arrow":
        script = limit + "import sys; from cordwood.cli import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", script, "convert", "--as", "raw", str(path), str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)
        assert (done.returncode, done.stdout) == (1, b""), done.stderr.decode()
        assert done.stderr.decode() == f"cordwood: {tmp_path / name}: {os.strerror(errno.EFBIG)}\n"
        assert not (tmp_path / name).exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet", "arrow"])
def test_error_names_the_output_file_if_the_disk_is_full(form, tmp_path):
    """A short table is written only when the file is closed."""
    path = tmp_path / "log"
    with cordwood.open(path, "x") as writer:
        writer.append(b"one")
    done = subprocess.run(
        [*COMMAND, "--as", "raw", "--overwrite", "--to", form, path, "/dev/full"],
        capture_output=True,
        check=False,
        timeout=120,
    )
    text = f"cordwood: /dev/full: {os.strerror(errno.ENOSPC)}\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", text)


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet", "arrow"])
def test_convert_exits_quietly_when_the_consumer_closes_the_pipe(form, tmp_path):
    path = tmp_path / "log"
    with cordwood.open(path, "x") as writer:
        for seed in range(100):
            writer.append(random.Random(seed).randbytes(1 << 18))
    with subprocess.Popen(
        [*COMMAND, "--as", "raw", "--to", form, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=False
    ) as process:
        process.stdout.read(10)
        process.stdout.close()
        words = process.stderr.read()
        assert (process.wait(120), words) == (141, b"")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_converting_uses_bounded_memory(form, tmp_path):
    def records(count):
        return (random.Random(seed).randbytes(1 << 16) for seed in range(count))

    # 16 MiB and 128 MiB.
    peaks = [peak(tmp_path / str(count), records(count), "convert", "--to", form) for count in (256, 2_048)]
    assert peaks[1] - peaks[0] < 48 << 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_for_a_long_batch_is_a_small_multiple_of_its_length(tmp_path):
    """Operations of one byte: as objects, all of them would be about a hundred times as long."""
    command = ("convert", "--to", "csv", "--as", "write-batch")

    def record(count):
        return bytes(12) + b"\x0d" * count

    peaks = [peak(tmp_path / str(count), [record(count)], *command) for count in (1 << 16, 1 << 18)]
    assert peaks[1] - peaks[0] < 24 << 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_omitted_values_are_not_kept_in_memory_while_converting(tmp_path):
    """A step with many nameless values of two bytes each. Decoded, they are about 60 times as large."""
    wandb = pytest.importorskip("wandb.proto.wandb_internal_pb2")

    def record(count):
        return wandb.Record(history=wandb.HistoryRecord(item=[wandb.HistoryItem()] * count)).SerializeToString()

    peaks = [
        peak(tmp_path / str(count), [record(count)], "convert", "--to", "csv", "--as", "wandb-history", status=3)
        for count in (1 << 10, 1 << 15)
    ]
    assert peaks[1] - peaks[0] < 24 << 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_cost_of_converting_a_row_depends_only_on_its_values(form, tmp_path):
    """9,900 columns, of which every row but the first has one. Work per column in each row would take 13 seconds."""
    wandb = pytest.importorskip("wandb.proto.wandb_internal_pb2")

    def record(step, names):
        items = [wandb.HistoryItem(key=name, value_json="1") for name in names]
        return wandb.Record(history=wandb.HistoryRecord(step={"num": step}, item=items)).SerializeToString()

    def took(count):
        """Processor seconds, and memory in KiB."""
        records = [record(0, map(str, range(9_900))), *(record(step, []) for step in range(count))]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        memory = peak(tmp_path / str(count), records, "convert", "--to", form, "--as", "wandb-history")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime, memory

    few, many = took(100), took(5_000)
    assert many[0] - few[0] < (2 if form == "csv" else 6)
    assert many[1] - few[1] < 100 << 10


def peak(path, records, *command, status=0):
    """A command's peak memory, in KiB."""
    with cordwood.open(path, "x") as writer:
        writer.extend(records)
    script = f"import sys; sys.path.append({str(HELPERS)!r}); from process import peak_len; "
    script += (
        "from cordwood.cli import main; status = main(sys.argv[1:]); print(status, peak_len() >> 10, file=sys.stderr)"
    )
    command = [sys.executable, "-c", script, *command, str(path), *([f"{path}.out"] if command[0] == "convert" else [])]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, timeout=300)
    found, memory = done.stderr.split()[-2:]
    assert int(found) == status, done.stderr
    return int(memory)


def test_a_table_with_many_columns_is_written_in_parts(tmp_path):
    path, table = tmp_path / "log", tmp_path / "t.arrow"
    with cordwood.open(path, "x") as writer:
        writer.extend(json.dumps({str(index % 2_000): index}).encode() for index in range(3_000))
    convert("--as", "json", path, table)
    with pa.ipc.open_file(table) as reader:
        assert [reader.get_batch(index).num_rows for index in range(reader.num_record_batches)] == [2_097, 903]
        assert reader.get_batch(1).column("999").to_pylist() == [None] * 902 + [2_999]


def entity(name):
    """An entity that has a property with this one-character name."""
    key = bytes.fromhex("6a0f 6a0161 720a0b 12045461736b 1807 0c")
    return key + b"\x72\x09\x1a\x01" + name + b"\x20\x00\x2a\x02\x08\x05"


def between_passes(monkeypatch, change):
    """Has logs read twice, and calls `change` after the first pass, before the file is opened for the second."""
    new_table, read_again = Logs.new_table, Logs.read_again

    def change_and_read(*arguments):
        change()
        read_again(*arguments)

    monkeypatch.setattr(Logs, "new_table", lambda *args, **_: new_table(*args, opens_early=False))
    monkeypatch.setattr(Logs, "read_again", change_and_read)


def replace(path):
    path.with_name("new").write_bytes(path.read_bytes())
    path.with_name("new").replace(path)


def rewrite(path):
    """Keeps the inode, length and times, but changes the contents."""
    times = path.stat()
    path.write_bytes(reference.encode([entity(b"c"), entity(b"d")]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_mtime_ns == times.st_mtime_ns


CHANGES = {
    "replaced": replace,
    "cut": lambda path: os.truncate(path, 40),
    "rewritten": rewrite,
}


@pytest.mark.parametrize("what", CHANGES)
def test_converting_fails_if_a_file_changes_between_passes(what, tmp_path, monkeypatch, capfdbinary):
    """No table gets the columns of one file and the rows of another."""
    path = tmp_path / "output-0"
    path.write_bytes(reference.encode([entity(b"a"), entity(b"b")]))
    between_passes(monkeypatch, lambda: CHANGES[what](path))
    assert main(["convert", "--as", "entity", str(path), str(tmp_path / "a.csv")]) == 1
    message = capfdbinary.readouterr().err.decode()
    assert message.startswith(f"cordwood: {path}: the file was {what} while it was converted")
    assert "convert it again" in message
    assert not (tmp_path / "a.csv").exists()


@pytest.mark.parametrize("what", ["cut", "rewritten"])
def test_the_conversion_error_includes_the_name_of_the_file_that_changed(what, tmp_path, monkeypatch, capfdbinary):
    first, second = tmp_path / "output-0", tmp_path / "output-1"
    for path in first, second:
        path.write_bytes(reference.encode([entity(b"a"), entity(b"b")]))
    between_passes(monkeypatch, lambda: CHANGES[what](second))
    assert main(["convert", "--as", "entity", str(first), str(second), str(tmp_path / "a.csv")]) == 1
    [message] = capfdbinary.readouterr().err.decode().splitlines()
    assert message.startswith(f"cordwood: {second}: the file was rewritten while it was converted")
    assert not (tmp_path / "a.csv").exists()


def test_converting_fails_if_a_file_is_removed_between_passes(tmp_path, monkeypatch):
    path = tmp_path / "output-0"
    path.write_bytes(reference.encode([entity(b"a"), entity(b"b")]))
    between_passes(monkeypatch, path.unlink)
    assert main(["convert", "--as", "entity", str(path), str(tmp_path / "a.csv")]) == 1
    assert not (tmp_path / "a.csv").exists()


def test_convert_rejects_more_columns_than_a_table_can_have(tmp_path, capfdbinary):
    path = tmp_path / "output-0"
    # Names of one to three characters.
    names = [b"%d" % number for number in range(10_001)]
    key, tail = bytes.fromhex("6a0f 6a0161 720a0b 12045461736b 1807 0c"), b"\x20\x00\x2a\x02\x08\x05"
    parts = (b"\x1a" + bytes([len(name)]) + name + tail for name in names)
    record = key + b"".join(b"\x72" + bytes([len(part)]) + part for part in parts)
    path.write_bytes(reference.encode([record]))
    assert main(["convert", "--as", "entity", str(path), str(tmp_path / "a.csv")]) == 1
    assert b"more than 10,000 columns; --to ndjson has no columns" in capfdbinary.readouterr().err


def test_the_old_table_is_kept_until_the_new_table_is_complete(tmp_path):
    path, table = tmp_path / "log", tmp_path / "a.csv"
    with cordwood.open(path, "x") as writer:
        writer.extend([b"one", b"\xff"])
    table.write_text("old")
    table.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    note = tmp_path / "note"
    note.write_text("this is a note, not a log")
    convert("--overwrite", note, link, status=1)
    assert table.read_text() == "old"
    convert("--overwrite", path, link)
    assert table.read_text().splitlines()[1:] == ['0,10,"{""base64"":""b25l""}"', '10,18,"{""base64"":""/w==""}"']
    assert (link.is_symlink(), table.stat().st_mode & 0o777) == (True, 0o640)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.csv", "link.csv", "log", "note"]
    done = subprocess.run([*COMMAND, "--overwrite", "--to", "csv", path, path], capture_output=True, check=False)
    assert (done.returncode, b"is the log that is read" in done.stderr) == (2, True)


def test_records_added_between_passes_are_not_converted(tmp_path, monkeypatch, capfdbinary):
    """Records that the first of the two passes has not seen are left out, and the torn tail it saw is reported."""
    path = tmp_path / "output-0"
    whole = reference.encode([entity(b"a"), entity(b"b")])
    path.write_bytes(whole[:-1])
    between_passes(monkeypatch, lambda: path.write_bytes(whole))
    assert main(["convert", "--as", "entity", str(path), str(tmp_path / "a.csv")]) == 0
    header, row = (tmp_path / "a.csv").read_text().splitlines()
    assert (header, row[-2:]) == ("__kind__,__id__,__name__,__path__,__key__,a", ",5")
    assert b"at 35: 34 bytes left out, an incomplete record at the end of the file" in capfdbinary.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["--to", "ndjson"], [r'{"path":"bad/n\\udcff","offset":0}'] * 2),
        (["--to", "csv"], ["path,offset", r"bad/n\udcff,0", r"bad/n\udcff,0"]),
    ],
    ids=["ndjson", "csv"],
)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, names of files are text")
def test_a_file_name_that_is_not_utf8_is_escaped(arguments, lines, tmp_path, monkeypatch, capfd):
    """In a table, its other bytes are their escapes; the JSON of other verbs tells it from a name with a backslash."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad").mkdir()
    for name in (b"n\xff", b"n\\udcff"):
        (tmp_path / "bad" / os.fsdecode(name)).write_bytes(reference.encode([b"one"]))
    assert main(["convert", *arguments, "--columns", "path,offset", "bad", "-"]) == 0
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(lines)
    assert main(["cat", "--json", "--columns", "source,offset", "bad"]) == 0
    sources = {json.loads(line)["source"] for line in capfd.readouterr().out.splitlines()}
    assert sources == {"bad/n\udcff", r"bad/n\udcff"}


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv"])
def test_lone_surrogates_are_escaped(form, tmp_path):
    """JSON can express it, but no table can contain it."""
    item = b"\x12\x04text" + b"\x82\x01\x08" + rb'"\ud800"'
    history = b"\x0a" + bytes([len(item)]) + item
    message = b"\x12" + bytes([len(history)]) + history
    path, table = tmp_path / "run", tmp_path / f"table.{form}"
    with cordwood.open(path, "x") as writer:
        writer.append(message)
    convert("--as", "wandb-history", path, table)
    if form == "csv":
        assert table.read_text(encoding="utf-8") == "text\n\\ud800\n"
    else:
        found = pq.read_table(table) if form == "parquet" else pa.ipc.open_file(table).read_all()
        assert found.to_pydict() == {"text": ["\\ud800"]}


HISTORY_NAMES = [
    # The last value of a name counts.
    (rb'{"\ud800":1,"\ud800":2}', [{r"\ud800": 2}]),
    (rb'{"\\ud800":1,"\\ud800":2}', [{r"\ud800": 2}]),
    # Two names, which are the same once the lone surrogate is escaped.
    (rb'{"\ud800":1,"\\ud800":2}', []),
    (rb'{"\\ud800":1,"\ud800":2}', []),
    (rb'{"\ud800\\ud800":1,"\\ud800\ud800":2}', []),
]


@pytest.mark.parametrize(("value", "found"), HISTORY_NAMES, ids=repr)
def test_history_records_with_colliding_column_names_are_omitted(value, found, tmp_path, capfd):
    item = b"\x12\x05value" + b"\x82\x01" + bytes([len(value)]) + value
    history = b"\x0a" + bytes([len(item)]) + item
    path, table = tmp_path / "run", tmp_path / "table.arrow"
    with cordwood.open(path, "x") as writer:
        writer.append(b"\x12" + bytes([len(history)]) + history)
    status = main(["convert", "--as", "wandb-history", str(path), str(table)])
    rows = pa.ipc.open_file(table).read_all().to_pylist()
    assert (status, rows) == (0 if found else 3, [{"value": row} for row in found])
    assert ("record at offset 0 is left out: two values have one name" in capfd.readouterr().err) != bool(found)


def _field(number, value):
    """A length-delimited protocol buffer field, shorter than 128 bytes."""
    tag = number << 3 | 2
    return (bytes([tag]) if tag < 128 else bytes([tag & 0x7F | 0x80, tag >> 7])) + bytes([len(value)]) + value


def _step(**values):
    """A record of a run's history: names, and values in JSON."""
    items = (_field(2, name.encode()) + _field(16, value.encode()) for name, value in values.items())
    return _field(2, b"".join(_field(1, item) for item in items))


def _write(path, records, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    with cordwood.open(path, "w", **options) as writer:
        writer.extend(records)


def test_the_histories_of_several_runs_are_combined_into_one_table(tmp_path, capfd):
    """It has the columns of all of them. A run that is also linked to appears once."""
    wandb = {"dialect": "wandb"}
    _write(tmp_path / "runs/offline-1/run-a.wandb", [_step(_step="0", loss="1"), _step(_step="1", loss="0.5")], **wandb)
    _write(tmp_path / "runs/offline-2/run-b.wandb", [_step(acc="true", loss="2")], **wandb)
    (tmp_path / "runs/latest.wandb").symlink_to("offline-2/run-b.wandb")
    to = tmp_path / "t.csv"
    assert main(["convert", "--as", "wandb-history", str(tmp_path / "runs"), str(to)]) == 0
    assert to.read_text() == "run_id,_step,loss,acc\na,0,1,\na,1,0.5,\nb,,2,true\n"
    assert capfd.readouterr().err == ""
    # A column of several types is reported once for all logs.
    _write(tmp_path / "runs/run-c.wandb", [_step(acc='"high"'), _step(acc="1")], **wandb)
    assert main(["convert", "--as", "wandb-history", "--overwrite", str(tmp_path / "runs"), str(to)]) == 0
    assert to.read_text().splitlines()[-3:] == ["b,,2,true", 'c,,,"""high"""', "c,,,1"]
    text = "the column acc has values of several types, and is stored as JSON: bool, int, text"
    assert capfd.readouterr().err == f"cordwood: {text}\n"
    # A column with the name of one that cordwood adds.
    _write(tmp_path / "runs/run-d.wandb", [_step(run_id="1")], **wandb)
    for form in "csv", "ndjson":
        new = tmp_path / f"new.{form}"
        assert main(["convert", "--as", "wandb-history", str(tmp_path / "runs"), str(new)]) == 1
        assert "the logs have a column run_id of their own" in capfd.readouterr().err
        assert not new.exists()


def _change(kind, **values):
    """A record that changes a run's summary (3) or configuration (5)."""
    return _field(kind, _step(**values)[2:])


def _printed(stream, text):
    """A record of the output of a run at second 1, to stderr (0) or stdout (1)."""
    return _field(13, bytes([0x08, stream, 0x12, 2, 0x08, 1]) + _field(3, text))


def test_converting_summaries_writes_one_row_per_run(tmp_path, capfd):
    """One row for each run, even one without a summary."""
    wandb = {"dialect": "wandb"}
    _write(tmp_path / "runs/run-a.wandb", [_change(3, loss="1", n='{"b":1}'), _change(3, loss="0.5")], **wandb)
    _write(tmp_path / "runs/run-b.wandb", [_change(5, lr="0.1")], **wandb)
    to = tmp_path / "t.csv"
    for form, text in [
        ("summary", 'run_id,loss,n\na,0.5,"{""b"":1}"\nb,,\n'),
        ("config", "run_id,lr\na,\nb,0.1\n"),
        ("metrics", "run_id\n"),
        ("output", "run_id,_timestamp,stream,line\n"),
    ]:
        assert main(["convert", "--as", f"wandb-{form}", "--overwrite", str(tmp_path / "runs"), str(to)]) == 0
        assert to.read_text() == text
    assert capfd.readouterr().err == ""
    # A value that cannot be read is left out, but the row is there.
    _write(tmp_path / "run-c.wandb", [_change(3, loss="{"), _change(3, acc="1")], **wandb)
    assert main(["convert", "--as", "wandb-summary", str(tmp_path / "run-c.wandb")]) == 3
    out, err = capfd.readouterr()
    assert out == '{"acc":1}\n'
    assert "a value of the record at offset 7 is left out: the value of 'loss' is not JSON" in err


def test_converting_run_output_assigns_each_line_to_stdout_or_stderr(tmp_path):
    """Each line belongs to one stream, even if the other prints meanwhile; the last lines end with the run."""
    path, table = tmp_path / "run-a.wandb", tmp_path / "t.parquet"
    pieces = [(1, b"on"), (0, b"\r1%"), (1, b"e\n\ntw"), (0, b""), (0, b"\r\n2%"), (1, b"\xc3\xb6"), (1, b"\x0b")]
    _write(path, [_printed(stream, text) for stream, text in pieces], dialect="wandb")
    convert("--as", "wandb-output", path, table)
    rows = [("stdout", "one"), ("stdout", ""), ("stderr", "\r1%\r"), ("stdout", "tw\u00f6\x0b"), ("stderr", "2%")]
    found = pq.read_table(table)
    assert [(row["stream"], row["line"]) for row in found.to_pylist()] == rows
    assert found["_timestamp"].to_pylist() == [1.0] * 5


def test_reports_an_unreadable_log_and_converts_the_rest(tmp_path, capfd):
    """The table contains the others, even if the logs are read twice. A torn tail is reported as for a single log."""
    _write(tmp_path / "run-a.wandb", [_step(loss="1"), _step(loss="2")], dialect="wandb")
    with (tmp_path / "run-a.wandb").open("r+b") as file:
        file.truncate((tmp_path / "run-a.wandb").stat().st_size - 1)
    sources = [str(tmp_path / "run-a.wandb"), str(tmp_path / "missing")]
    assert main(["convert", "--as", "wandb-history", *sources, str(tmp_path / "t.csv")]) == 1
    assert (tmp_path / "t.csv").read_text() == "run_id,loss\na,1\n"
    reports = capfd.readouterr().err.splitlines()
    assert "an incomplete record at the end of the file" in reports[0]
    assert "missing: No such file" in reports[1]
    assert len(reports) == 2


def test_converted_rows_have_a_salvaged_column(tmp_path):
    path = tmp_path / "000003.log"
    # The same batch three times: the second record is damaged, and the third follows in the same block.
    batch = b"\7\0\0\0\0\0\0\0\2\0\0\0\1\3key\5value\0\3old"
    file = bytearray(reference.encode([batch] * 3))
    file[len(file) // 2] ^= 1
    path.write_bytes(file)
    command = ["convert", "--as", "write-batch", "--overwrite", str(path)]
    for suffix in "parquet", "csv":
        to = tmp_path / f"all.{suffix}"
        assert main([*command, str(to)]) == 3
        assert main([*command, "--on-corruption", "salvage", str(to := tmp_path / f"salvaged.{suffix}")]) == 3
    assert "salvaged" not in pq.read_table(tmp_path / "all.parquet").column_names
    table = pq.read_table(tmp_path / "salvaged.parquet")
    assert table.column_names[:3] == ["offset", "salvaged", "sequence"]
    assert table["salvaged"].to_pylist() == [False, False, True, True]
    scan = cordwood.scan(path, decode="write-batch", on_corruption="salvage")
    assert pa.table(scan).equals(table)
    rows = (tmp_path / "salvaged.csv").read_text().splitlines()
    assert [row.split(",")[:3] for row in rows[1::2]] == [["0", "false", "7"], [str(table["offset"][2]), "true", "7"]]


def test_version_edits_have_a_salvaged_column(tmp_path, capfd):
    """Their last value is written while it is being made."""
    path = tmp_path / "MANIFEST-000002"
    path.write_bytes(reference.encode([b"\1\5order"]))
    assert main(["convert", "--as", "version-edit", "--on-corruption", "salvage", str(path)]) == 0
    assert capfd.readouterr().out == (
        '{"offset":0,"salvaged":false,"fields":[{"kind":"comparator","tag":1,"value":{"base64":"b3JkZXI="}}]}\n'
    )


@pytest.mark.parametrize(
    ("edit", "is_flipped", "words"),
    [
        # A table with a reference to a blob file (custom field 69), as CockroachDB 25.4 writes it.
        (
            b"\x67\0\x09\x0a\x09a\1\0\0\0\0\0\0\0\x09a\1\0\0\0\0\0\0\0\0\0\x45\2\1\x0a\x64\1",
            False,
            "edits with unknown tags, as a newer",
        ),
        (b"\x69\5\5", True, "records were lost: its live files"),
        (b"\x67\0", False, "records were lost: its live files"),
    ],
)
def test_undecoded_edits_are_not_reported_as_lost(edit, is_flipped, words, tmp_path, capsys):
    manifest = tmp_path / "MANIFEST-000005"
    content = bytearray(reference.encode([b"\1\x1aleveldb.BytewiseComparator\2\0\x09\0\3\x1e\4\0", edit]))
    content[8] ^= is_flipped
    manifest.write_bytes(content)
    assert main(["convert", "--as", "live-files", str(manifest), str(tmp_path / "x.ndjson")]) == 3
    assert f"{manifest}: {words}" in capsys.readouterr().err
