"""Arrow: `scan` and `RecordBatch.__arrow_c_array__`, read by Arrow consumers.

Expected values come from the reference or, for files of other engines, from iteration.
"""

import collections
import ctypes
import gc
import io
import itertools
import json
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import datafusion
import duckdb
import pandas
import polars
import pyarrow
import pytest
import reference
from c_data import RELEASE, Array, Schema, Stream, copied, counted, pointed
from real_files import ALL
from support import HELPERS, PAYLOAD, OnlyRead

import cordwood

RECORDS = [b"one", b"", PAYLOAD[:70_000], b"two", *[PAYLOAD[at : at + at % 300] for at in range(1_200)]]
FILE = reference.encode(RECORDS)
OFFSETS = reference.record_offsets(RECORDS)
# The next record starts where the last one ends, or after a trailer.
END_OFFSETS = [
    offset + len(reference.encode_record(record, offset)) for offset, record in zip(OFFSETS, RECORDS, strict=True)
]
BINARY = pyarrow.schema(
    [
        pyarrow.field("offset", pyarrow.uint64(), nullable=False),
        pyarrow.field("record", pyarrow.binary(), nullable=False),
    ]
)
LARGE = pyarrow.schema(
    [
        pyarrow.field("offset", pyarrow.uint64(), nullable=False),
        pyarrow.field("record", pyarrow.large_binary(), nullable=False),
    ]
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "some.log"
    path.write_bytes(FILE)
    return path


def table(scan):
    table = pyarrow.table(scan)
    table.validate(full=True)
    return table


def flipped(file, at):
    return file[:at] + bytes([file[at] ^ 1]) + file[at + 1 :]


# The contents of columns -----------------------------------------------------------------------


COLUMNS = {
    "offset": OFFSETS,
    "record": RECORDS,
    "end_offset": END_OFFSETS,
    "length": [len(record) for record in RECORDS],
    "path": None,
    "salvaged": [False] * len(RECORDS),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "columns",
    [
        *itertools.combinations(COLUMNS, 1),
        *itertools.permutations(COLUMNS, 2),
        *itertools.combinations(COLUMNS, 5),
        tuple(COLUMNS),
    ],
)
def test_a_scan_returns_exactly_the_requested_columns(path, columns, threads):
    found = table(cordwood.scan([path], columns=columns, threads=threads))
    assert found.column_names == list(columns)
    expected = {**COLUMNS, "path": [str(path)] * len(RECORDS)}
    assert found.to_pydict() == {name: expected[name] for name in columns}


def test_scan_columns_have_the_documented_arrow_types(path):
    assert pyarrow.schema(cordwood.scan(path)) == LARGE
    assert table(cordwood.scan(path)).schema == LARGE
    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.utf8())
    assert table(cordwood.scan([path])).schema == LARGE.append(pyarrow.field("path", text))
    others = table(cordwood.scan(path, columns=["end_offset", "length", "salvaged"])).schema
    assert str(others) == "end_offset: uint64 not null\nlength: uint64 not null\nsalvaged: bool not null"


@pytest.mark.parametrize("source", ALL)
def test_a_scan_of_an_engine_log_matches_the_reader(source):
    with cordwood.open(source) as reader:
        records = [(record.offset, record.data, record.end_offset) for record in reader.records()]
        outcome, skipped = reader.outcome, reader.skipped
        dialect = reader.dialect
    for named in [None, dialect]:
        scan = cordwood.scan(source, columns=["offset", "record", "end_offset"], dialect=named)
        found = table(scan).to_pydict()
        assert list(zip(found["offset"], found["record"], found["end_offset"], strict=True)) == records
        assert (scan.outcomes, scan.skipped) == ((outcome,), (skipped,))
    lengths = table(cordwood.scan(source, columns=["length"]))["length"].to_pylist()
    assert lengths == [len(data) for _, data, _ in records]


def test_a_pickled_batch_does_not_include_paths_of_other_logs(tmp_path):
    paths = [tmp_path / f"{number:03}.log" for number in range(200)]
    for path in paths:
        path.write_bytes(reference.encode([b"one", b"two"]))
    batches = list(pyarrow.RecordBatchReader.from_stream(cordwood.scan(paths)))
    assert [batch["path"].to_pylist() for batch in batches] == [[str(path)] * 2 for path in paths]
    [alone] = pyarrow.RecordBatchReader.from_stream(cordwood.scan(paths[:1]))
    assert {len(pickle.dumps(batch)) for batch in batches} == {len(pickle.dumps(alone))}


def test_a_scan_reads_its_sources_in_the_given_order(path, tmp_path):
    other = tmp_path / "other.log"
    other.write_bytes(reference.encode([b"other"]))
    empty = tmp_path / "empty.log"
    empty.write_bytes(b"")
    last = tmp_path / "last.log"
    last.write_bytes(reference.encode([b"last"]))
    sources = [other, str(path), empty, FILE, io.BytesIO(FILE), bytearray(FILE), last]
    scan = cordwood.scan(iter(sources))
    names = [str(other), str(path), None, None, None, str(last)]
    counts = [1, *[len(RECORDS)] * 4, 1]
    for _ in range(2):
        found = table(scan)
        paths = itertools.chain.from_iterable([name] * count for name, count in zip(names, counts, strict=True))
        assert found["path"].to_pylist() == list(paths)
        assert found["record"].to_pylist() == [b"other", *RECORDS * 4, b"last"]
    assert [outcome.kind for outcome in scan.outcomes] == ["clean"] * 7
    assert scan.skipped == ((),) * 7
    assert repr(scan) == "<cordwood.Scan of 7 sources: offset, record, path; on_corruption='raise'>"
    assert table(cordwood.scan([])).num_rows == 0


def test_a_scan_only_returns_records_in_its_range(path):
    start, end = OFFSETS[2], OFFSETS[10]
    assert table(cordwood.scan(path, start=start, end=end))["record"].to_pylist() == RECORDS[2:10]
    assert table(cordwood.scan(io.BytesIO(FILE), start=start, end=end))["record"].to_pylist() == RECORDS[2:10]


def test_a_scan_reads_a_file_object_from_its_current_position():
    file = io.BytesIO(b"before" + FILE)
    file.seek(6)
    scan = cordwood.scan(file)
    for _ in range(2):
        assert table(scan)["record"].to_pylist() == RECORDS


@pytest.mark.parametrize("threads", [2, 3])
def test_reading_ahead_does_not_change_the_table(tmp_path, threads):
    path = tmp_path / "long.log"
    file = reference.encode(PAYLOAD[at : at + 99] for at in range(140_000))
    at = 5_000_000
    path.write_bytes(flipped(file, at))
    options = {"columns": ["offset", "record", "end_offset", "length", "path"], "on_corruption": "skip"}
    ahead, alone = cordwood.scan(path, threads=threads, **options), cordwood.scan(path, **options)
    assert table(ahead) == table(alone)
    assert table(ahead).num_rows > 100_000
    assert (ahead.skipped, ahead.outcomes) == (alone.skipped, alone.outcomes)
    assert [region.reason for region in ahead.skipped[0]] == ["checksum_mismatch", "missing_start"]
    message = rf"^{path}: \d+ bytes at offset {ahead.skipped[0][0].offset}: checksum mismatch: "
    with pytest.raises(OSError, match=message):
        table(cordwood.scan(path, threads=threads))
    # Released before its end.
    reader = pyarrow.RecordBatchReader.from_stream(ahead)
    reader.read_next_batch()
    del reader


# Consumers -------------------------------------------------------------------------------------


def rows(offsets, records):
    return list(zip(offsets, records, strict=True))


EXPECTED = rows(OFFSETS, RECORDS)


@pytest.fixture(params=["path", "object", "content"])
def scan(request, path):
    return cordwood.scan({"path": path, "object": io.BytesIO(FILE), "content": FILE}[request.param])


def test_pyarrow_can_read_a_scan_twice(scan):
    for _ in range(2):
        found = table(scan)
        assert rows(found["offset"].to_pylist(), found["record"].to_pylist()) == EXPECTED


def test_polars_can_read_a_scan_twice(scan):
    for _ in range(2):
        assert polars.DataFrame(scan).rows() == EXPECTED
    categories = polars.DataFrame(cordwood.scan([FILE, FILE], columns=["path", "length"]))
    assert categories["path"].null_count() == 2 * len(RECORDS)


def test_duckdb_can_read_a_relation_twice(scan):
    relation = duckdb.sql("select * from scan")
    assert relation.fetchall() == EXPECTED
    assert duckdb.sql("select count(*), sum(octet_length(record)) from relation").fetchall() == [
        (len(RECORDS), sum(map(len, RECORDS)))
    ]
    assert duckdb.sql("select sum(octet_length(record)) from scan").fetchall() == [(sum(map(len, RECORDS)),)]


def test_duckdb_can_group_records_by_path(path, tmp_path):
    other = tmp_path / "other.log"
    other.write_bytes(reference.encode([b"other"]))
    scan = cordwood.scan([path, other], columns=["path", "length"])  # noqa: F841 - DuckDB finds it
    found = duckdb.sql("select path, count(*), sum(length) from scan group by path order by 2").fetchall()
    assert found == [(str(other), 1, 5), (str(path), len(RECORDS), sum(map(len, RECORDS)))]


def test_pandas_can_read_a_scan_twice(scan):
    for _ in range(2):
        found = pandas.DataFrame.from_arrow(scan)
        assert rows(found["offset"], found["record"]) == EXPECTED


def test_datafusion_can_query_and_join_scans(scan):
    context = datafusion.SessionContext()
    for name in "ab":
        batches = context.from_arrow(scan, name).sort("offset").collect()
        found = pyarrow.Table.from_batches(batches)
        assert rows(found["offset"].to_pylist(), found["record"].to_pylist()) == EXPECTED
    joined = context.sql("select count(*), sum(a.offset) from a join b on a.record = b.record where a.offset > 0")
    others = EXPECTED[1:]
    copies = collections.Counter(RECORDS)
    (batch,) = joined.collect()
    assert batch.to_pydict() == {
        "count(*)": [sum(copies[record] for _, record in others)],
        "sum(a.offset)": [sum(offset * copies[record] for offset, record in others)],
    }


# Damage ----------------------------------------------------------------------------------------


CONSUMERS = {
    "pyarrow": (pyarrow.table, OSError),
    "polars": (polars.DataFrame, polars.exceptions.ComputeError),
    "duckdb": (lambda scan: duckdb.sql("select * from scan").fetchall(), duckdb.InvalidInputException),
    "pandas": (pandas.DataFrame.from_arrow, OSError),
    # DataFusion has no exception class of its own.
    "datafusion": (lambda scan: datafusion.SessionContext().from_arrow(scan).collect(), Exception),
}


@pytest.mark.parametrize("columns", [["record"], ["offset"], ["salvaged", "record"]])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_arrow_consumers_report_damage_with_the_cordwood_message(path, consumer, columns):
    read, error = CONSUMERS[consumer]
    at = OFFSETS[1000]
    path.write_bytes(flipped(FILE, at + 10))
    message = rf"some\.log: \d+ bytes at offset {at}: checksum mismatch: the header states [0-9a-f]+, the data has"
    with pytest.raises(error, match=message):
        read(cordwood.scan(path, columns=columns))


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_arrow_consumers_raise_the_error_from_a_failing_file_object(consumer):
    class Failing(io.BytesIO):
        def read(self, size):
            raise ValueError("the network is gone")

    read, error = CONSUMERS[consumer]
    with pytest.raises(error, match="the network is gone"):
        read(cordwood.scan(Failing(FILE)))


def test_scanning_a_missing_file_or_a_zip_archive_raises_an_error(tmp_path):
    with pytest.raises(OSError, match=r"none\.log: No such file"):
        table(cordwood.scan(tmp_path / "none.log"))
    other = tmp_path / "some.zip"
    other.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(OSError, match=r"some\.zip: .*zip"):
        table(cordwood.scan(other))
    with pytest.raises(OSError, match="bytes are the content of a log, not its path"):
        table(cordwood.scan(other.read_bytes()))


def test_a_failed_stream_raises_its_error_again_on_every_read(path):
    at = OFFSETS[1000]
    path.write_bytes(flipped(FILE, at + 10))
    reader = pyarrow.RecordBatchReader.from_stream(cordwood.scan(path))
    assert reader.read_next_batch()["record"].to_pylist() == RECORDS[:1000]
    for _ in range(3):
        with pytest.raises(OSError, match=f"at offset {at}"):
            reader.read_next_batch()


@pytest.mark.parametrize("columns", [["offset", "record"], ["offset", "end_offset"], ["offset", "record", "salvaged"]])
@pytest.mark.parametrize("policy", ["skip", "stop", "salvage"])
def test_skipped_bytes_are_logged_and_listed_by_the_scan(path, policy, columns, caplog):
    path.write_bytes(flipped(flipped(FILE, OFFSETS[1000] + 10), OFFSETS[1010] + 10))
    with cordwood.open(path, on_corruption=policy) as reader:
        records = list(reader.records())
        skipped, outcome = reader.skipped, reader.outcome
    logged = [record.getMessage() for record in caplog.records]
    caplog.clear()
    scan = cordwood.scan([path, FILE], columns=columns, on_corruption=policy)
    assert (scan.skipped, scan.outcomes) == ((), ())
    found = table(scan)
    count = len(records)
    assert found["offset"].to_pylist() == [record.offset for record in records] + OFFSETS
    if "salvaged" in columns:
        salvaged = [record.salvaged for record in records]
        assert any(salvaged) == (policy == "salvage")
        assert found["salvaged"].to_pylist() == salvaged + [False] * len(RECORDS)
    if "record" in columns:
        assert found["record"].to_pylist()[:count] == [record.data for record in records]
    assert scan.skipped == (skipped, ())
    assert scan.outcomes == (outcome, cordwood.types.Outcome(kind="clean", offset=len(FILE)))
    assert [record.getMessage() for record in caplog.records] == logged


def test_each_source_gets_an_outcome_as_soon_as_the_scan_reads_it(path):
    scan = cordwood.scan([FILE * 1, path])
    reader = pyarrow.RecordBatchReader.from_stream(scan)
    assert scan.outcomes == ()
    first = reader.read_next_batch()
    assert [outcome.kind for outcome in scan.outcomes] == ["clean", "unfinished"]
    assert first.num_rows == len(RECORDS)


# Sources without a second reading ---------------------------------------------------------------


def test_a_scan_can_pick_up_where_a_reader_left_off(path):
    with cordwood.open(path) as reader:
        assert next(reader) == RECORDS[0]
        assert pyarrow.table(cordwood.scan(path, start=reader.tell()))["record"].to_pylist() == RECORDS[1:]
        assert list(reader) == RECORDS[1:]
        assert pyarrow.table(cordwood.scan(path, start=reader.tell()))["record"].to_pylist() == []


def test_an_unseekable_object_can_only_be_read_once():
    scan = cordwood.scan(OnlyRead(FILE))
    assert table(scan)["record"].to_pylist() == RECORDS
    with pytest.raises(OSError, match="was read once, and cannot seek"):
        table(scan)


def test_a_second_stream_over_a_file_object_invalidates_the_first():
    file = reference.encode(PAYLOAD[at : at + 999] for at in range(5_000))
    scan = cordwood.scan(io.BytesIO(file))
    first, second = (pyarrow.RecordBatchReader.from_stream(scan) for _ in range(2))
    first.read_next_batch()
    assert len(second.read_all()) == 5_000
    with pytest.raises(OSError, match="another stream has started reading the same file object"):
        first.read_all()


# Record batches --------------------------------------------------------------------------------


def test_pyarrow_imports_a_record_batch_without_copying():
    [batch] = cordwood.open(FILE).record_batches()
    found = pyarrow.record_batch(batch)
    found.validate(full=True)
    assert found.schema == LARGE == pyarrow.schema(batch)
    assert found.to_pydict() == {"offset": OFFSETS, "record": RECORDS}
    # There is no copy: the addresses are those of the batch.
    _, offsets, data = found["record"].buffers()
    assert (data.address, offsets.address) == (address(batch.data), address(batch.offsets))
    assert found["offset"].buffers()[1].address == address(batch.record_offsets)


def address(view):
    return pyarrow.py_buffer(view).address


def test_pyarrow_can_cast_a_batch_to_a_requested_schema(path):
    [batch] = cordwood.open(FILE).record_batches()
    found = pyarrow.record_batch(batch, schema=BINARY)
    found.validate(full=True)
    assert (found.schema, found["record"].to_pylist()) == (BINARY, RECORDS)
    found = pyarrow.table(cordwood.scan(path), schema=BINARY)
    assert (found.schema, found["record"].to_pylist()) == (BINARY, RECORDS)
    schema_capsule, _ = batch.__arrow_c_array__(BINARY.__arrow_c_schema__())
    assert pyarrow.Schema._import_from_c_capsule(schema_capsule) == LARGE  # noqa: SLF001


# Arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"columns": ["data"]}, ValueError, "a column must be 'offset', 'record', .* not 'data'"),
        ({"columns": ["record", "record"]}, ValueError, "columns names 'record' twice"),
        ({"columns": []}, ValueError, "at least one"),
        ({"columns": "record"}, TypeError, "str"),
        ({"threads": 0}, ValueError, "threads must be from 1 to 256"),
        ({"on_corruption": "pass"}, ValueError, "on_corruption must be"),
        ({"dialect": "other"}, ValueError, "dialect must be 'leveldb', "),
        ({"dialect": "leveldb", "log_number": 5}, ValueError, "log number"),
        ({"start": -1}, OverflowError, "while processing 'start'"),
    ],
)
def test_a_scan_rejects_invalid_arguments(path, options, error, message):
    with pytest.raises(error, match=message):
        cordwood.scan(path, **options)


@pytest.mark.parametrize("sources", [5, None, [5], ["some.log", None], io.StringIO("text"), [io.StringIO("text")]])
def test_a_scan_rejects_objects_that_are_not_sources(sources):
    with pytest.raises(TypeError, match=r"must be a path, a URL, bytes or another buffer|text file"):
        cordwood.scan(sources)


def test_a_scan_does_not_open_its_sources_until_it_is_read(tmp_path):
    scan = cordwood.scan(tmp_path / "later.log")
    stream = scan.__arrow_c_stream__()
    (tmp_path / "later.log").write_bytes(FILE)
    assert pyarrow.RecordBatchReader._import_from_c_capsule(stream).read_all().num_rows == len(RECORDS)  # noqa: SLF001


def test_the_garbage_collector_frees_a_scan_in_a_reference_cycle():
    class Source(io.BytesIO):
        pass

    source = Source(FILE)
    alive = []
    source.scan = cordwood.scan(source)
    source.gone = Gone(alive)
    stream = pyarrow.RecordBatchReader.from_stream(source.scan)
    del source
    gc.collect()
    assert not alive
    assert stream.read_all().num_rows == len(RECORDS)
    del stream
    gc.collect()
    assert alive == ["gone"]


class Gone:
    def __init__(self, alive):
        self.alive = alive

    def __del__(self):
        self.alive.append("gone")


# The structures, by hand -----------------------------------------------------------------------


def test_dropping_an_unconsumed_capsule_releases_its_structure():
    [batch] = cordwood.open(FILE).record_batches()
    calls = []
    schema, array = batch.__arrow_c_array__()
    kept = [
        counted(pointed(schema, Schema, b"arrow_schema"), calls),
        counted(pointed(array, Array, b"arrow_array"), calls),
    ]
    stream = cordwood.scan(FILE).__arrow_c_stream__()
    kept.append(counted(pointed(stream, Stream, b"arrow_array_stream"), calls))
    del schema, array, stream
    assert sorted(calls) == ["Array", "Schema", "Stream"]
    del kept


def test_a_capsule_does_not_release_a_structure_twice():
    [batch] = cordwood.open(FILE).record_batches()
    schema, array = batch.__arrow_c_array__()
    stream = cordwood.scan(FILE).__arrow_c_stream__()
    for capsule, struct, name in [
        (schema, Schema, b"arrow_schema"),
        (array, Array, b"arrow_array"),
        (stream, Stream, b"arrow_array_stream"),
    ]:
        found = pointed(capsule, struct, name)
        found.release(ctypes.byref(found))
        assert not found.release
    del schema, array, stream


@pytest.mark.parametrize(
    ("consumer", "read"),
    {
        "pyarrow": lambda capsule: pyarrow.RecordBatchReader._import_from_c_capsule(capsule).read_all(),  # noqa: SLF001
        "polars": lambda capsule: polars.DataFrame(Taken(capsule)),
        "datafusion": lambda capsule: datafusion.SessionContext().from_arrow(Taken(capsule)).collect(),
        "nothing": lambda capsule: None,
    }.items(),
)
def test_a_consumer_releases_each_structure_once(path, consumer, read):
    """Our stream's callbacks are wrapped in ones that count the calls."""
    calls, made = [], []
    capsule = cordwood.scan([path, FILE], columns=["record", "path"]).__arrow_c_stream__()
    ours = pointed(capsule, Stream, b"arrow_array_stream")
    original = copied(ours.get_next)

    def get_next(stream, out):
        status = original(stream, out)
        if status == 0 and out.contents.release:
            made.append(counted(out.contents, calls))
        return status

    kept = type(original)(get_next)
    ours.get_next = kept
    kept = [kept, counted(ours, calls)]
    found = read(capsule)
    del capsule, found
    gc.collect()
    assert calls.count("Stream") == 1
    assert calls.count("Array") == len(made) == (0 if consumer == "nothing" else 2)
    del kept


class Taken:
    def __init__(self, capsule):
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema=None):
        return self.capsule


def test_an_arrow_child_moved_out_of_its_parent_outlives_the_parent():
    [batch] = cordwood.open(FILE).record_batches()
    _, capsule = batch.__arrow_c_array__()
    del batch
    parent = pointed(capsule, Array, b"arrow_array")
    assert (parent.n_children, parent.n_buffers) == (2, 1)
    record = Array.from_buffer_copy(parent.children[1].contents)
    parent.children[1].contents.release = RELEASE[Array]()
    parent.release(ctypes.byref(parent))
    assert not parent.release
    del capsule
    # If the memory had been freed, these would reuse it.
    others = [list(cordwood.open(bytes(len(FILE))).record_batches()) for _ in range(10)]
    data = ctypes.string_at(record.buffers[2], sum(map(len, RECORDS)))
    assert data == b"".join(RECORDS)
    record.release(ctypes.byref(record))
    assert not record.release
    del others


def test_any_thread_can_release_batches_in_any_order(path):
    path.write_bytes(reference.encode(PAYLOAD[at : at + 999] for at in range(1_250)))
    reader = pyarrow.RecordBatchReader.from_stream(cordwood.scan(path))
    batches = list(reader)
    assert len(batches) == 5
    records = [batch["record"].to_pylist() for batch in batches]
    for index in (3, 0, 4):
        batches[index] = None
    thread = threading.Thread(target=batches.pop)
    thread.start()
    thread.join()
    again = list(pyarrow.RecordBatchReader.from_stream(cordwood.scan(path)))
    assert [batch["record"].to_pylist() for batch in again] == records
    assert [batches[index]["record"].to_pylist() for index in (1, 2)] == [records[1], records[2]]


def test_a_consumer_thread_can_read_while_another_runs_python():
    """The stream reads a Python file object, so the thread has to wait for the interpreter."""
    file = reference.encode(PAYLOAD[at : at + 999] for at in range(5_000))
    found = []
    thread = threading.Thread(target=lambda: found.append(pyarrow.table(cordwood.scan(io.BytesIO(file))).num_rows))
    thread.start()
    while thread.is_alive():
        sum(range(1000))
    thread.join()
    assert found == [5_000]


# Memory ----------------------------------------------------------------------------------------


GROWTH = """
import json, sys
sys.path.append(sys.argv[1])
import pyarrow
import cordwood
from process import rss

def used(work, count):
    for _ in range(20):
        work()
    before = rss()
    for _ in range(count):
        work()
    return rss() - before

path = sys.argv[2]
[batch] = cordwood.open(path).record_batches(target_len=1 << 30)
columns = ["offset", "record", "end_offset", "length", "path", "salvaged"]
def capsules():
    batch.__arrow_c_array__()
    cordwood.scan(path).__arrow_c_stream__()
def partly():
    pyarrow.RecordBatchReader.from_stream(cordwood.scan([path, b""], columns=columns)).read_next_batch()
def whole():
    for batch in pyarrow.RecordBatchReader.from_stream(cordwood.scan([path], columns=columns)):
        pass
print(json.dumps([used(capsules, 10_000), used(partly, 500), used(whole, 1_000)]))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_reading_streams_repeatedly_does_not_leak_memory(path):
    """A batch is 45 KB and a stream's window 256 KiB: a leak of one batch in ten, or of 16 windows, would show."""
    path.write_bytes(reference.encode(RECORDS[4:304]))
    done = subprocess.run([sys.executable, "-c", GROWTH, HELPERS, path], capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    for grown in json.loads(done.stdout):
        assert grown < 4 << 20
