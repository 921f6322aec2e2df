"""`cordwood convert` to the forms that are no text, and what no console session shows."""

import csv
import io
import random
import subprocess
import sys
from pathlib import Path

import pytest

import cordwood
from cordwood.cli import main
from cordwood.cli._columns import Columns
from cordwood.cli._tables import open_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

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
def test_records_in_columns(form, name, log, tmp_path):
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


def test_csv_is_what_others_read(log):
    rows = list(csv.reader(io.StringIO(convert("--to", "csv", log).decode(), newline="")))
    assert rows[0] == ["offset", "end_offset", "data"]
    assert rows[1:4] == [["0", "7", ""], ["7", "17", "one"], ["17", "26", '{"base64":"/wA="}']]
    assert [row[2] for row in rows[4:]] == [record.decode() for record in RECORDS[3:]]


def test_a_log_without_records(tmp_path):
    path = tmp_path / "log"
    path.touch()
    operation = "offset,sequence,kind,column_family,key,end_key,value,xid,timestamp,write_unix_time\n"
    for payload, header in [
        ("raw", "offset,end_offset,data\n"),
        ("write-batch", operation),
        ("entity", "__key__\n"),
        ("wandb", "offset\n"),
        ("wandb-history", ""),
    ]:
        assert convert("--as", payload, path) == b""
        assert convert("--as", payload, "--to", "csv", path).decode() == header
        for form in "parquet", "arrow":
            table = read(form, io.BytesIO(convert("--as", payload, "--to", form, path)))
            assert table.num_rows == 0
            assert ",".join(table.column_names) == header.strip()


def test_operations_have_the_same_columns_in_every_log(tmp_path):
    path = tmp_path / "log"
    with cordwood.open(path, "x") as writer:
        writer.append(bytes.fromhex("ffffffffffffffff 01000000 01036b65790576616c7565"))
    table = read("arrow", io.BytesIO(convert("--as", "write-batch", "--to", "arrow", path)))
    assert table.num_rows == 1
    row = {name: value for name, value in table.to_pylist()[0].items() if value is not None}
    assert row == {
        "offset": 0,
        "sequence": 2**64 - 1,
        "kind": "put",
        "column_family": 0,
        "key": b"key",
        "value": b"value",
    }
    assert str(table.schema.field("xid").type) == "binary"


def test_columns_have_the_type_of_their_values():
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
        "bytes": ([b"a"], "bytes"),
        "either": ([b"a", "a"], "json"),
        "list": ([[1]], "json"),
    }
    columns = Columns()
    for name, (values, _) in cases.items():
        for value in values:
            columns.add({name: value})
    assert columns.types() == {name: kind for name, (_, kind) in cases.items()}
    with pytest.raises(ValueError, match="columns"):
        columns.add({str(index): None for index in range(10_000)})


def test_nothing_is_left_of_a_table_that_fails(tmp_path):
    # A reader that passes its limit ends the command: the disk is full in the midst of the table.
    path = tmp_path / "log"
    with cordwood.open(path, "x") as writer:
        for seed in range(40):
            writer.append(random.Random(seed).randbytes(1 << 18))
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)); "
    for name in "a.ndjson", "a.csv", "a.parquet", "a.arrow":
        script = limit + "import sys; from cordwood.cli import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", script, "convert", str(path), str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)
        assert (done.returncode, done.stdout) == (1, b""), done.stderr.decode()
        assert done.stderr.decode().startswith("cordwood: ")
        assert done.stderr.count(b"\n") == 1, done.stderr.decode()
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet", "arrow"])
def test_who_reads_may_have_enough(form, tmp_path):
    path = tmp_path / "log"
    with cordwood.open(path, "x") as writer:
        for seed in range(100):
            writer.append(random.Random(seed).randbytes(1 << 18))
    with subprocess.Popen(
        [*COMMAND, "--to", form, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=False
    ) as process:
        process.stdout.read(10)
        process.stdout.close()
        words = process.stderr.read()
        assert (process.wait(60), words) == (141, b"")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_memory_is_bounded(form, tmp_path):
    def records(count):
        return (random.Random(seed).randbytes(1 << 16) for seed in range(count))

    # 16 MiB and 128 MiB.
    peaks = [peak(tmp_path / str(count), records(count), "--to", form) for count in (256, 2_048)]
    assert peaks[1] - peaks[0] < 48 << 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_record_of_many_operations_does_not_fill_the_memory(tmp_path):
    def record(count):
        return bytes(12) + b"\x0d" * count

    peaks = [
        peak(tmp_path / str(count), [record(count)], "--to", "csv", "--as", "write-batch")
        for count in (1 << 16, 1 << 18)
    ]
    assert peaks[1] - peaks[0] < 24 << 10


def peak(path, records, *options):
    """The most memory that a conversion takes, in KiB."""
    with cordwood.open(path, "x") as writer:
        writer.extend(records)
    # Not `ru_maxrss`, which begins with that of the process that starts this one.
    script = "import sys; from cordwood.cli import main; main(sys.argv[1:]); "
    script += "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    command = [sys.executable, "-c", script, "convert", *options, str(path), f"{path}.out"]
    return int(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)


def test_a_table_of_many_columns_is_written_in_parts():
    file = io.BytesIO()
    table = open_table("arrow", file, {str(number): "int" for number in range(2_000)}, str, is_stream=False)
    table.write([{str(index % 2_000): index} for index in range(3_000)])
    table.close()
    with pa.ipc.open_file(file) as reader:
        assert [reader.get_batch(index).num_rows for index in range(reader.num_record_batches)] == [2_097, 903]
        assert reader.get_batch(1).column("999").to_pylist() == [None] * 902 + [2_999]


def test_a_log_that_grows_meanwhile(tmp_path, monkeypatch, capfdbinary):
    """What the first of the two passes has not seen stays out, and its torn tail is told."""
    path = tmp_path / "output-0"
    key = bytes.fromhex("6a0f 6a0161 720a0b 12045461736b 1807 0c")
    entity = {name: key + b"\x72\x09\x1a\x01" + name + b"\x20\x00\x2a\x02\x08\x05" for name in (b"a", b"b")}
    with cordwood.open(path, "x") as writer:
        writer.extend(entity.values())
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    found = Columns.types

    def types(columns):
        path.write_bytes(whole)
        return found(columns)

    monkeypatch.setattr(Columns, "types", types)
    assert main(["convert", "--as", "entity", str(path), str(tmp_path / "a.csv")]) == 0
    header, row = (tmp_path / "a.csv").read_text().splitlines()
    assert (header, row[-2:]) == ("__key__,a", ",5")
    assert b"an incomplete record at the end of the file (34 bytes at offset 35)" in capfdbinary.readouterr().err
