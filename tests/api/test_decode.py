"""`scan(decode=)`: the contents of records, as a table for everything that reads Arrow."""

import io
import json
import math
import shutil
import struct
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import entities
import pytest

import cordwood
from cordwood._tables.payloads import PAYLOADS
from cordwood.cli import main
from cordwood.typing import DecoderName

pa = pytest.importorskip("pyarrow")

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEY_COLUMNS = ["__kind__", "__id__", "__name__", "__path__", "__key__"]


def written(path, records, **options):
    with cordwood.open(path, "w", **options) as writer:
        writer.extend(records)
    return path


@pytest.fixture
def exports(tmp_path):
    """Two files, each with columns that the other does not have."""
    return [
        written(
            tmp_path / "output-0",
            [
                entities.entity([("Task", 1)], {"n": 1, "due": NOON}),
                entities.entity([("Task", "two")], {"n": 0.5, "tags": ["a"]}),
            ],
        ),
        written(tmp_path / "output-1", [entities.entity([("Task", 3)], {"spot": {"x": 7}})]),
    ]


def step(**values):
    field = entities.field
    return field(2, b"".join(field(1, field(2, k.encode()) + field(16, v.encode())) for k, v in values.items()))


def test_a_table_of_several_files_contains_all_their_entities(exports):
    scan = cordwood.scan(exports, decode="entity")
    assert isinstance(scan, cordwood.DecodedScan)
    assert (scan.skipped, scan.outcomes, scan.left_out, scan.ok) == ((), (), (), True)
    assert scan.columns == ("__file__", *KEY_COLUMNS, "n", "due", "tags", "spot")
    # It can be read any number of times.
    for _ in range(2):
        table = pa.table(scan)
        table.validate(full=True)
        rows = [{k: v for k, v in row.items() if v is not None and k != "__key__"} for row in table.to_pylist()]
        first, second = map(str, exports)
        assert rows == [
            {"__file__": first, "__kind__": "Task", "__id__": 1, "__path__": "Task/1", "n": 1.0, "due": NOON},
            {"__file__": first, "__kind__": "Task", "__name__": "two", "__path__": "Task/two", "n": 0.5, "tags": ["a"]},
            {"__file__": second, "__kind__": "Task", "__id__": 3, "__path__": "Task/3", "spot": {"x": 7}},
        ]
    assert [outcome.kind for outcome in scan.outcomes] == ["clean", "clean"]
    assert (scan.skipped, scan.left_out, scan.ok) == (((), ()), ((), ()), True)
    assert pa.schema(scan).equals(table.schema)


def test_a_scan_decodes_every_kind_of_payload(tmp_path):
    wal = written(tmp_path / "wal", [bytes.fromhex("0700000000000000 02000000 01036b65790576616c7565 00036f6c64")])
    table = pa.table(cordwood.scan(wal, decode="write-batch"))
    assert table.select(["sequence", "kind", "key", "value"]).to_pylist() == [
        {"sequence": 7, "kind": "put", "key": b"key", "value": b"value"},
        {"sequence": 8, "kind": "delete", "key": b"old", "value": None},
    ]
    manifest = written(tmp_path / "manifest", [b"\x02\x04"])
    [row] = pa.table(cordwood.scan(manifest, decode="version-edit")).to_pylist()
    assert (row["offset"], json.loads(row["fields"])) == (0, [{"kind": "log_number", "tag": 2, "value": 4}])
    run = written(tmp_path / "run-abc.wandb", [step(_step="0", loss="1"), step(_step="1", loss="0.5")], dialect="wandb")
    assert pa.table(cordwood.scan([run], decode="wandb-history")).to_pylist() == [
        {"run_id": "abc", "_step": 0, "loss": 1.0},
        {"run_id": "abc", "_step": 1, "loss": 0.5},
    ]
    lines = written(tmp_path / "lines", [b'{"a": [1], "b": null}', b"2"])
    assert pa.table(cordwood.scan(lines, decode="json")).to_pylist() == [
        {"a": [1], "b": None, "__value__": None},
        {"a": None, "b": None, "__value__": 2},
    ]


def test_a_decoded_directory_scan_reads_only_one_kind_of_log(tmp_path):
    """The directory of a database has logs of two kinds, and a text with the name of a log."""
    directory = tmp_path / "database"
    directory.mkdir()
    batch = bytes.fromhex("0700000000000000 01000000 01036b65790576616c7565")
    written(directory / "000003.log", [batch])
    written(directory / "MANIFEST-000002", [b"\x02\x04"])
    (directory / "LOG").write_text("2026/11/26-12:00:00.000000 7f Recovering log #3\n")
    (directory / "CURRENT").write_text("MANIFEST-000002\n")
    damaged = bytearray(written(directory / "000004.log", [batch]).read_bytes())
    damaged[0] ^= 1
    (directory / "000004.log").write_bytes(damaged)
    scan = cordwood.scan(directory, decode="write-batch", on_corruption="skip")
    assert pa.table(scan).select(["path", "key"]).to_pylist() == [
        {"path": str(directory / "000003.log"), "key": b"key"}
    ]
    assert [bool(regions) for regions in scan.skipped] == [False, True]
    assert not any(scan.left_out)
    [row] = pa.table(cordwood.scan(directory / "MANIFEST*", decode="version-edit")).to_pylist()
    assert row["path"] == str(directory / "MANIFEST-000002")
    # A log that is named has to be of the kind.
    with pytest.raises(Exception, match="MANIFEST-000002: the record at offset 0"):
        pa.table(cordwood.scan([directory / "MANIFEST-000002"], decode="write-batch"))
    assert pa.table(cordwood.scan(directory, decode="raw", on_corruption="skip")).num_rows == 2


def test_duckdb_and_polars_can_query_a_decoded_scan(exports):
    """DuckDB opens the stream several times for one query."""
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    scan = cordwood.scan(exports, decode="entity")
    with duckdb.connect() as connection:
        connection.register("tasks", scan)
        assert connection.sql("select sum(n), count(*), max(spot.x) from tasks").fetchall() == [(1.5, 3, 7)]
        assert connection.sql("select __name__ from tasks where len(tags) = 1").fetchall() == [("two",)]
    frame = polars.DataFrame(scan)
    assert frame.shape == (3, 10)
    assert frame["tags"].to_list() == [None, ["a"], None]


def test_a_decoded_scan_has_the_columns_it_was_asked_for(exports):
    scan = cordwood.scan(exports[0], decode="entity", columns=["n", "__path__"])
    assert pa.table(scan).to_pydict() == {"n": [1.0, 0.5], "__path__": ["Task/1", "Task/two"]}
    with pytest.raises(ValueError, match="there is no column 'm', only '__kind__'"):
        pa.table(cordwood.scan(exports[0], decode="entity", columns=["m"]))
    schema = pa.schema(
        [
            ("n", pa.float32()),
            ("other", pa.int8()),
            ("tags", pa.large_list(pa.large_string())),
            ("spot", pa.string()),
            ("__key__", pa.struct([("app", pa.string())])),
        ]
    )
    table = pa.table(cordwood.scan(exports, decode="entity", schema=schema))
    assert table.schema.equals(schema)
    assert table.to_pydict() == {
        "n": [1.0, 0.5, None],
        "other": [None] * 3,
        "tags": [None, ["a"], None],
        "spot": [None, None, '{"x":7}'],
        "__key__": [{"app": "s~app"}] * 3,
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("n", "int64"),
        ("n", "string_view"),
        ("due", "timestamp[s]"),
        ("due", "date32"),
        ("tags", "int64"),
        ("b", "float64"),
    ],
)
def test_applying_a_schema_never_changes_a_value(name, kind, exports):
    """A value that does not fit the schema is an error; in a text column it becomes JSON."""
    values = {"n": 0.5, "due": NOON.replace(microsecond=1), "tags": ["x"], "b": True}
    written(exports[0], [entities.entity([("T", 1)], values)])
    schema = pa.schema([(name, pa.string_view() if kind == "string_view" else pa.type_for_alias(kind))])
    scan = cordwood.scan(exports[0], decode="entity", schema=schema)
    if kind == "string_view":
        assert pa.table(scan)[name].to_pylist() == ["0.5"]
        return
    with pytest.raises((OSError, ValueError), match=f"the column '{name}' is .*, and cannot have a value of type "):
        pa.table(scan)


class Pipe:
    """A source that cannot seek."""

    def __init__(self, data):
        self._file = io.BytesIO(data)
        self.read = self._file.read


class Counted(io.BytesIO):
    """A file that counts its readings, which start at a position of it."""

    def __init__(self, data):
        super().__init__(data)
        self.start_count = 0

    def seek(self, *arguments):
        self.start_count += 1
        return super().seek(*arguments)


def found_by(scan):
    """What a scan knows of its latest reading."""
    return scan.skipped, scan.left_out, scan.ok, [outcome.kind for outcome in scan.outcomes]


@pytest.mark.parametrize("kept_len_max", [None, 0], ids=["kept", "too long"])
@pytest.mark.parametrize("columns", [None, ["n", "__path__"]])
def test_a_decoded_scan_reads_its_source_once_to_determine_the_columns(columns, kept_len_max, exports, monkeypatch):
    """The first table of all columns is made meanwhile, if it is not too long."""
    if kept_len_max is not None:
        monkeypatch.setattr("cordwood._tables.scan._KEPT_LEN_MAX", kept_len_max)
    file = Counted(b"before" + exports[0].read_bytes())
    file.read(6)
    scan = cordwood.scan(file, decode="entity", columns=columns)
    assert file.start_count == 0
    first = 1 if columns is None and kept_len_max is None else 2
    for start_count in (first, first + 1):
        assert pa.table(scan)["n"].to_pylist() == [1.0, 0.5]
        assert file.start_count == start_count
        assert found_by(scan) == (((),), ((),), True, ["clean"])


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        ([b'{"a":1}', b'{"a":2.5}'], [{"a": 1.0}, {"a": 2.5}]),
        ([b'{"a":1}', b'{"b":true}', b'{"a":2}'], [{"a": 1, "b": None}, {"a": None, "b": True}, {"a": 2, "b": None}]),
        ([b'{"a":{"x":1}}', b'{"a":{"y":1}}'], [{"a": {"x": 1, "y": None}}, {"a": {"x": None, "y": 1}}]),
        ([b"{}", b'{"a":1}', b'{"b":1}'], [{"a": None, "b": None}, {"a": 1, "b": None}, {"a": None, "b": 1}]),
    ],
    ids=["value", "column", "field", "first columns"],
)
def test_a_log_is_reread_if_its_table_gains_columns(lines, rows, tmp_path, monkeypatch):
    """The batches that were made before lack them."""
    monkeypatch.setattr("cordwood._tables.scan._BATCH_LEN", 1)
    file = Counted(written(tmp_path / "log", lines).read_bytes())
    table = pa.table(cordwood.scan(file, decode="json"))
    table.validate(full=True)
    assert (table.to_pylist(), file.start_count) == (rows, 2)


def test_a_table_reflects_the_files_at_the_time_it_is_read(tmp_path):
    """What was read for the columns alone is not kept for it."""
    path = written(tmp_path / "log", [b'{"a":1}'])
    scan = cordwood.scan(path, decode="json")
    assert scan.columns == ("a",)
    for count in range(2, 4):
        with cordwood.open(path, "a") as writer:
            writer.append(b'{"a":%d}' % count)
        assert pa.table(scan)["a"].to_pylist() == list(range(1, count + 1))


@pytest.mark.parametrize("kept_len_max", [None, 0], ids=["kept", "too long"])
def test_a_scan_reports_the_rows_left_out_of_its_table(kept_len_max, tmp_path, monkeypatch):
    """Of one table, and not also of the reading that found the columns."""
    if kept_len_max is not None:
        monkeypatch.setattr("cordwood._tables.scan._KEPT_LEN_MAX", kept_len_max)
    lines = [b'{"a":1}', b"junk", b'{"a":2}']
    good, bad = (written(tmp_path / name, lines) for name in ("good", "bad"))
    data = bytearray(bad.read_bytes())
    data[-1] ^= 1
    bad.write_bytes(data)
    scan = cordwood.scan([good, bad], decode="json", on_corruption="skip")
    for _ in range(2):
        assert pa.table(scan)["a"].to_pylist() == [1, 2, 1]
        skipped, left_out, ok, outcomes = found_by(scan)
        assert [[region.reason for region in regions] for regions in skipped] == [[], ["checksum_mismatch"]]
        assert [[offset for offset, _ in errors] for errors in left_out] == [[14], [14]]
        assert (ok, outcomes) == (False, ["clean", "clean"])


def test_an_unseekable_source_is_read_only_once(exports, tmp_path, monkeypatch):
    """A short one is a table without a schema, too."""
    data = exports[0].read_bytes()
    schema = pa.schema([("n", pa.float64())])
    for _ in range(2):
        assert pa.table(cordwood.scan(Pipe(data), decode="entity", schema=schema))["n"].to_pylist() == [1.0, 0.5]
    assert pa.table(cordwood.scan(Pipe(data), decode="entity"))["n"].to_pylist() == [1.0, 0.5]
    monkeypatch.setattr("cordwood._tables.scan._KEPT_LEN_MAX", 0)
    with pytest.raises((OSError, ValueError), match="was read once, and cannot seek"):
        pa.table(cordwood.scan(Pipe(data), decode="entity"))


def test_a_decoded_scan_rejects_a_file_whose_columns_changed(exports):
    scan = cordwood.scan(exports[0], decode="entity")
    assert scan.columns[-1] == "tags"
    for values in {"new": 1}, {"n": "one"}:
        written(exports[0], [entities.entity([("Task", 1)], values)])
        with pytest.raises((OSError, ValueError), match=r"'new' was not there when|'n' is double, and cannot have"):
            pa.table(scan)


CHANGED = "; the file has changed: make a new scan"


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (1, 1.5, "'a' is int64, and cannot have a value of type float"),
        (1, 2.0, "'a' is int64, and cannot have a value of type float"),
        (1, True, "'a' is int64, and cannot have a value of type bool"),
        (1.5, True, "'a' is double, and cannot have a value of type bool"),
        (True, 1, "'a' is bool, and cannot have a value of type int"),
        (None, 1, "'a' is string, and cannot have a value of type int"),
        ("p", True, "'a' is string, and cannot have a value of type bool"),
        ("p", {"b": None}, "'a' is string, and cannot have a value of type object"),
        (1, 1 << 63, "'a' is int64, and cannot have a value of type int of more than 64 bits"),
        (0.5, (1 << 53) + 1, "'a' is double, and cannot have a value of type int of more than 53 bits"),
        ({"x": 1}, 5, "'a' is struct<x: int64>, and cannot have a value of type int"),
        ({"x": 1}, [1], "'a' is struct<x: int64>, and cannot have a value of type list"),
        ({"x": 1}, {"y": 2}, "'a.y' was not there when the columns were found"),
        ({"x": 1}, {"y": None}, "'a.y' was not there when the columns were found"),
        ([{"x": {"y": 1}}], [None, {"x": {"y": "z"}}], "'a[].x.y' is int64, and cannot have a value of type text"),
        (["p"], "abc", "'a' is list<item: string>, and cannot have a value of type text"),
        (["p"], {"k": 1}, "'a' is list<item: string>, and cannot have a value of type object"),
        (["p"], ["q", 1], "'a[]' is string, and cannot have a value of type int"),
    ],
)
@pytest.mark.parametrize("decode", ["json", "entity"])
def test_a_later_value_that_does_not_fit_the_columns_raises_an_error(decode, first, second, message, tmp_path):
    """A value that does not fit the columns is an error that says where it is; no value is changed or left out."""
    if decode == "entity" and second == 1 << 63:
        pytest.skip("not an integer of Datastore")

    def record(value):
        return json.dumps({"a": value}).encode() if decode == "json" else entities.entity([("T", 1)], {"a": value})

    path = written(tmp_path / "log", [record(first)])
    scan = cordwood.scan(path, decode=decode)
    assert pa.table(scan)["a"].to_pylist() == [first]
    with cordwood.open(path, "a") as writer:
        writer.extend([record(first), record(second), record(second)])
    with cordwood.open(path) as reader:
        offset = list(reader.records())[2].offset
    message = f"{path}: the record at offset {offset}: the column {message}"
    with pytest.raises((OSError, ValueError)) as caught:
        pa.table(scan)
    assert message in str(caught.value)
    assert CHANGED in str(caught.value)


def test_later_values_are_included_if_they_fit_the_columns(tmp_path):
    """A column of floating-point numbers also takes integers, and JSON text all values."""
    lines = [b'{"f": 0.5, "j": [1, {}]}', b'{"j": 1}']
    path = written(tmp_path / "log", lines)
    scan = cordwood.scan(path, decode="json")
    assert scan.columns == ("f", "j")
    with cordwood.open(path, "a") as writer:
        writer.append(b'{"j": {"new": "\\ud800"}, "f": 2}')
    assert pa.table(scan).to_pylist() == [
        {"f": 0.5, "j": "[1,{}]"},
        {"f": None, "j": "1"},
        {"f": 2.0, "j": r'{"new":"\\ud800"}'},
    ]


ONE = pa.struct([("x", pa.int64())])


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *[(value, ONE) for value in (5, "text", [1, 2], {"x": 0.5}, {"x": "1"})],
        *[(value, pa.list_(pa.string())) for value in ("abc", {"k": 1, "l": 2}, 1)],
        *[([1.5], kind(pa.int64())) for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)],
        ([1], pa.list_(pa.int64(), 2)),
        ([None], pa.list_(pa.field("item", pa.int64(), nullable=False))),
        ({"x": None}, pa.struct([pa.field("x", pa.int64(), nullable=False)])),
        *[(value, pa.float32()) for value in (1e300, 0.1, (1 << 24) + 1, True)],
        *[(value, pa.float16()) for value in (70000.0, 2049)],
        *[(value, pa.int64()) for value in (1.5, 1e300, True, "1", 1 << 63)],
        (300, pa.uint8()),
        (1.5, pa.dictionary(pa.int32(), pa.int64())),
        (1.5, pa.run_end_encoded(pa.int32(), pa.int64())),
        ({"k": 1.5}, pa.map_(pa.string(), pa.int64())),
        ({"k": 1}, pa.map_(pa.int64(), pa.int64())),
        (1, pa.bool_()),
        (True, pa.decimal128(9)),
        (0.5, pa.decimal128(9)),
        ("2026-01-01", pa.date32()),
        (1, pa.timestamp("us")),
        (1, pa.null()),
    ],
)
def test_a_value_that_does_not_fit_the_schema_raises_an_error_with_its_offset(value, kind, tmp_path):
    path = written(tmp_path / "log", [b'{"a": null}', json.dumps({"a": value}).encode()])
    scan = cordwood.scan(path, decode="json", schema=pa.schema([("a", kind)]))
    with pytest.raises((OSError, ValueError), match=r"log: the record at offset 18: the column 'a.*' is .*; give the"):
        pa.table(scan)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"x": 1}, ONE),
        ({"x": None}, ONE),
        ({}, pa.struct([])),
        *[([1, None], kind(pa.int64())) for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)],
        ([1, None], pa.list_(pa.int64(), 2)),
        ([[1], [], None], pa.list_(pa.large_list(pa.int8()))),
        ({"x": [{"y": 1}]}, pa.struct([pa.field("x", pa.list_(pa.struct([("y", pa.uint8())])), nullable=False)])),
        (0.5, pa.float32()),
        (0.5, pa.float16()),
        (2048, pa.float16()),
        (1.0, pa.int8()),
        (7, pa.dictionary(pa.int8(), pa.int64())),
        (["k"], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        (7, pa.run_end_encoded(pa.int32(), pa.int64())),
        (12, pa.decimal128(9)),
        (True, pa.bool_()),
        ("text", pa.large_string()),
    ],
)
def test_a_value_that_fits_the_schema_is_returned_unchanged(value, kind, tmp_path):
    """Each fits between nulls as well."""
    lines = [json.dumps({"a": each}).encode() for each in (None, value, None, value)]
    schema = pa.schema([("a", kind)])
    table = pa.table(cordwood.scan(written(tmp_path / "log", lines), decode="json", schema=schema))
    table.validate(full=True)
    assert table.schema.equals(schema)
    assert table["a"].to_pylist() == [None, value, None, value]


def test_json_objects_can_be_read_as_maps_with_a_schema(tmp_path):
    path = written(tmp_path / "log", [b'{"a": {"k": 1, "l": null}}', b"{}", b'{"a": {}}'])
    schema = pa.schema([("a", pa.map_(pa.string(), pa.int64()))])
    table = pa.table(cordwood.scan(path, decode="json", schema=schema))
    assert table["a"].to_pylist() == [[("k", 1), ("l", None)], None, []]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"ab", pa.list_(pa.int64())),
        (entities.Place((1.0, 2.0)), pa.list_(pa.float64())),
        (entities.Key([("K", 2)]), pa.list_(pa.string())),
        (NOON, ONE),
        (NOON, pa.int64()),
    ],
)
def test_an_entity_value_that_does_not_fit_the_schema_raises_an_error(value, kind, tmp_path):
    path = written(tmp_path / "log", [entities.entity([("T", 1)], {"a": value})])
    scan = cordwood.scan(path, decode="entity", schema=pa.schema([("a", kind)]))
    with pytest.raises((OSError, ValueError), match=r"log: the record at offset 0: the column 'a' is .*; give the"):
        pa.table(scan)


def test_a_null_in_a_non_nullable_column_raises_an_error(tmp_path):
    """A null in it is an error, also where a record lacks the column; so is a column with the name of another."""
    field = pa.field("a", pa.int64(), nullable=False)
    path = written(tmp_path / "log", [b'{"a": 1}', b'{"a": null}'])
    for records in [b'{"a": null}'], [b"{}"]:
        written(path, records)
        message = r"offset 0: the column 'a' is int64, and cannot have a value of type null; give"
        with pytest.raises((OSError, ValueError), match=message):
            pa.table(cordwood.scan(path, decode="json", schema=pa.schema([field])))
    with pytest.raises(ValueError, match="two columns have the name 'a'"):
        cordwood.scan(path, decode="json", schema=pa.schema([field, field]))
    with pytest.raises(ValueError, match="two fields of the column 's' have the name 'a'"):
        cordwood.scan(path, decode="json", schema=pa.schema([("s", pa.struct([field, field]))]))


@pytest.mark.parametrize("decode", ["json", "entity"])
@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_the_first_stream_over_a_file_object_fails_once_another_stream_starts(decode, policy, tmp_path):
    """They would move each other's position: the one that has started first fails, as in a scan of bytes."""
    text = "x" * 10_000
    lines = [json.dumps({"i": i, "text": text}).encode() for i in range(600)]
    if decode == "entity":
        lines = [entities.entity([("T", i + 1)], {"i": i, "text": text}) for i in range(600)]
    path = written(tmp_path / "log", lines)
    with path.open("rb") as file:
        for source in file, io.BytesIO(path.read_bytes()):
            scan = cordwood.scan(source, decode=decode, on_corruption=policy)
            assert scan.columns
            first, second = (pa.RecordBatchReader.from_stream(scan) for _ in range(2))
            first.read_next_batch()
            rows = second.read_next_batch().num_rows
            with pytest.raises(OSError, match="another stream has started reading the same file object: read the"):
                first.read_all()
            # The other is not disturbed, and neither is the next one.
            assert rows + second.read_all().num_rows == 600
            assert pa.table(scan)["i"].to_pylist() == list(range(600))
    for source in path, path.read_bytes():
        scan = cordwood.scan(source, decode=decode)
        first, second = (pa.RecordBatchReader.from_stream(scan) for _ in range(2))
        rows = [stream.read_next_batch().num_rows for stream in (first, second)]
        assert [rows[0] + first.read_all().num_rows, rows[1] + second.read_all().num_rows] == [600, 600]


def test_a_null_character_in_a_column_name_is_escaped(tmp_path):
    """Names in Arrow's C interface end there: it is escaped."""
    for line, column in (rb'{"a\u0000b":1,"a":2,"c":3}', r"a\x00b"), (rb'{"s":{"a\u0000b":1,"a":2},"c":3}', "s"):
        path = written(tmp_path / "log", [line])
        scan = cordwood.scan(path, decode="json")
        assert scan.columns[0] == column
        [row] = pa.table(scan).to_pylist()
        values = {r"a\x00b": 1, "a": 2}
        assert row == ({**values, "c": 3} if column != "s" else {"s": values, "c": 3})
        assert pa.table(cordwood.scan(path, decode="json", columns=["c"])).to_pylist() == [{"c": 3}]
        schema = pa.schema([("a", pa.int8()), ("s", pa.struct([("a", pa.int8())]))])
        [row] = pa.table(cordwood.scan(path, decode="json", schema=schema)).to_pylist()
        assert row == ({"a": 2, "s": None} if line.startswith(b'{"a') else {"a": None, "s": {"a": 2}})
    with pytest.raises(ValueError, match="has a NUL"):
        pa.table(cordwood.scan(path, decode="json", schema=pa.schema([("a\0b", pa.int8())])))


@pytest.mark.parametrize(
    ("name", "column"),
    [(rb"a\u0000b", r"a\x00b"), (rb"\ud800", r"\ud800"), (rb"\ud800\u0000", r"\ud800\x00")],
    ids=repr,
)
def test_scan_columns_can_be_reused_as_a_selection_or_schema(name, column, tmp_path):
    lines = [b'{"%s":1,"s":{"%s":2},"c":3}' % (name, name), b'{"c":4}', b'{"%s":5}' % name]
    path = written(tmp_path / "log", lines)
    whole = pa.table(cordwood.scan(path, decode="json"))
    assert whole.to_pylist() == [
        {column: 1, "s": {column: 2}, "c": 3},
        {column: None, "s": None, "c": 4},
        {column: 5, "s": None, "c": None},
    ]
    assert pa.table(cordwood.scan(path, decode="json", schema=whole.schema)) == whole
    assert pa.table(cordwood.scan(path, decode="json", columns=[column])) == whole.select([column])
    assert pa.table(
        cordwood.scan(
            path, decode="json", columns=[json.loads(b'"%s"' % name).encode("utf-8", "backslashreplace").decode()]
        )
    ) == whole.select([column])


@pytest.mark.parametrize("values", [(b"1", b"1"), (b"1", b"null"), (b"null", b"1"), (b"null", b"null")])
def test_a_schema_rejects_colliding_column_names(values, tmp_path):
    row = rb'"a\u0000b":%s,"a\\x00b":%s' % values
    number = (r"a\x00b", pa.int64())
    fields = {"row": pa.schema([number]), "object": pa.schema([("s", pa.struct([number]))])}
    path = written(tmp_path / "log", [b'{"c":1}', b'{%s,"s":{%s}}' % (row, row)])
    for schema in fields.values():
        with pytest.raises((OSError, ValueError), match=r"offset 14: two values have the name 'a\\x00b' in a table"):
            pa.table(cordwood.scan(path, decode="json", schema=schema))
    other = pa.schema([("c", pa.int64())])
    assert pa.table(cordwood.scan(path, decode="json", schema=other))["c"].to_pylist() == [1, None]


def test_a_lone_surrogate_is_escaped_with_and_without_a_schema(tmp_path):
    path = written(tmp_path / "log", [rb'{"a":"\ud800"}', rb'{"a":{"\ud800":["x\udfff"]}}', b'{"a":1}'])
    whole = pa.table(cordwood.scan(path, decode="json"))
    assert whole["a"].to_pylist() == [r'"\\ud800"', r'{"\\ud800":["x\\udfff"]}', "1"]
    given = pa.table(cordwood.scan(path, decode="json", schema=whole.schema))["a"].to_pylist()
    # Text alone needs no quotation marks there.
    assert given == [r"\ud800", r'{"\\ud800":["x\\udfff"]}', "1"]


def test_an_integer_with_thousands_of_digits_is_not_decoded(tmp_path):
    """It would become text. The largest that Python converts is JSON text."""
    lines = [b'{"a":' + b"9" * 4_300 + b"}", b'{"a":[-' + b"9" * 4_301 + b"]}", b'{"a":"x"}']
    path = written(tmp_path / "log", lines)
    with pytest.raises(cordwood.errors.PayloadError, match=r"offset 4313: an integer of 4301 digits \(4310 bytes"):
        pa.table(cordwood.scan(path, decode="json"))
    scan = cordwood.scan(path, decode="json", on_corruption="skip")
    assert pa.table(scan)["a"].to_pylist() == ["9" * 4_300, '"x"']
    [[(offset, error)]] = scan.left_out
    assert (offset, error.reason) == (4313, "too_large")


@pytest.mark.parametrize("number", ["1e400", "-1E+309", "1" + "0" * 309 + ".0"])
def test_a_number_outside_the_range_of_a_double_is_not_decoded(tmp_path, number):
    """It would become infinity, which is another number."""
    lines = [b'{"a":1.5}', f'{{"a":[{number}]}}'.encode(), b'{"a":1e-400}', b'{"a":Infinity}']
    path = written(tmp_path / "log", lines)
    scan = cordwood.scan(path, decode="json", on_corruption="skip")
    assert pa.table(scan)["a"].to_pylist() == [1.5, 0.0, math.inf]
    [[(offset, error)]] = scan.left_out
    assert (offset, error.reason) == (16, "too_large")
    assert f"the number {number[:40]}, which is beyond the range of a double" in str(error)


@pytest.mark.parametrize("decode", ["write-batch", "version-edit"])
def test_a_schema_with_an_unsupported_column_is_rejected(decode, tmp_path):
    path = written(tmp_path / "log", [])
    with pytest.raises(ValueError, match="there is no column 'kee', only 'offset'"):
        cordwood.scan(path, decode=decode, schema=pa.schema([("offset", pa.uint64()), ("kee", pa.binary())]))
    # The path of a log is a column only if there are several logs, and `salvaged` only under that policy.
    names = pa.schema([("path", pa.string()), ("salvaged", pa.bool_()), ("offset", pa.uint64())])
    with pytest.raises(ValueError, match="there is no column 'path'"):
        cordwood.scan(path, decode=decode, schema=names)
    scan = cordwood.scan([path], decode=decode, schema=names, on_corruption="salvage")
    assert pa.table(scan).schema.equals(names)


def test_a_table_without_columns_preserves_its_row_count(tmp_path):
    """The number of rows is that of the records, as in a table of several sources."""
    path = written(tmp_path / "log", [b"{}"] * 3)
    scan = cordwood.scan(path, decode="json")
    table = pa.table(scan)
    assert (scan.columns, table.num_rows, table.num_columns) == ((), 3, 0)
    assert pa.table(cordwood.scan([path], decode="json")).num_rows == 3
    assert pa.table(cordwood.scan(written(tmp_path / "none", []), decode="json")).num_rows == 0


def test_wrong_format_errors_include_the_record_offset(exports, tmp_path):
    path = written(
        tmp_path / "mixed", [entities.entity([("T", 1)], {"n": 1}), b"junk", *[entities.entity([("T", 2)], {"n": 2})]]
    )
    with cordwood.open(path) as reader:
        offset = list(reader.records())[1].offset
    with pytest.raises(cordwood.errors.PayloadError, match=rf"mixed: the record at offset {offset}: "):
        pa.table(cordwood.scan(path, decode="entity"))
    # With a schema it is detected only when the stream is read, as an exception raised by the consumer.
    schema = pa.schema([("n", pa.int64())])
    with pytest.raises(Exception, match=rf"mixed: the record at offset {offset}: "):
        pa.table(cordwood.scan(path, decode="entity", schema=schema))
    scan = cordwood.scan([exports[0], path], decode="entity", on_corruption="skip")
    assert pa.table(scan)["n"].to_pylist() == [1.0, 0.5, 1.0, 2.0]
    [none, [(where, error)]] = scan.left_out
    assert (none, where, scan.ok) == ((), offset, False)
    assert isinstance(error, cordwood.errors.PayloadError)


def test_salvaging_leaves_out_values_that_cannot_be_decoded(tmp_path):
    path = written(tmp_path / "run-a.wandb", [step(a="1", b="{")], dialect="wandb")
    with pytest.raises(cordwood.errors.PayloadError, match="the value of 'b' is not JSON"):
        pa.table(cordwood.scan(path, decode="wandb-history"))
    scan = cordwood.scan(path, decode="wandb-history", on_corruption="salvage")
    assert pa.table(scan).to_pylist() == [{"a": 1}]
    assert [offset for offset, _ in scan.left_out[0]] == [7]


def names_of(path):
    table = pa.table(cordwood.scan(path, decode="write-batch"))
    return list(zip(*(table.column(name).to_pylist() for name in ("key", "column_family_name")), strict=True))


def test_column_families_get_the_names_rocksdb_stored(tmp_path):
    rocksdict = pytest.importorskip("rocksdict")
    database = rocksdict.Rdict(str(tmp_path / "db"), rocksdict.Options(raw_mode=True))
    users, units = (
        database.create_column_family(name, rocksdict.Options(raw_mode=True)) for name in ("users", "ünits")
    )
    database[b"x"], users[b"u"], units[b"v"] = b"1", b"2", b"3"
    database.drop_column_family("users")
    shutil.copytree(tmp_path / "db", tmp_path / "copy")
    [log] = [path for path in (tmp_path / "copy").glob("*.log") if path.stat().st_size]
    expected = [(b"x", b"default"), (b"u", b"users"), (b"v", "ünits".encode())]
    assert names_of(log) == expected
    # A MANIFEST that is damaged after the names, or is no log, takes nothing away.
    [manifest] = (tmp_path / "copy").glob("MANIFEST-*")
    manifest.write_bytes(manifest.read_bytes()[:-1])
    (tmp_path / "copy/MANIFEST-999999").write_bytes(b"this is no log, but text")
    (tmp_path / "copy/MANIFEST-999998").mkdir()
    assert names_of(log) == expected
    manifest.unlink()
    assert names_of(log) == [(key, None) for key, _ in expected]


def added(*families):
    """A record of a MANIFEST for each column family."""
    return [b"\xc8\x01" + bytes([number]) + b"\xc9\x01" + bytes([len(name)]) + name for number, name in families]


def test_column_family_names_are_read_only_once_for_many_logs(tmp_path, monkeypatch):
    manifest = written(tmp_path / "MANIFEST-000001", added((1, b"users")))
    paths = [
        written(tmp_path / f"{number:06}.log", [struct.pack("<QI", 1, 1) + b"\x05\x01\x01k\x01v"])
        for number in range(20)
    ]
    opened, reader = [], cordwood.Reader
    monkeypatch.setattr(
        "cordwood._tables.table.Reader", lambda path, **options: opened.append(path) or reader(path, **options)
    )
    assert [name for path in paths for _, name in names_of(path)] == [b"users"] * 20
    assert opened.count(str(manifest)) == 1
    # A MANIFEST that has grown since is read again.
    written(manifest, added((1, b"users"), (1, b"people")))
    assert names_of(paths[0]) == [(b"k", b"people")]


def test_a_leveldb_database_has_no_column_family_names():
    assert {name for _, name in names_of(VECTORS / "leveldb/plyvel/000003.log")} == {None}


def test_operations_before_a_fault_still_become_rows(tmp_path):
    put = b"\x01\x02k1\x01v"
    records = [
        struct.pack("<QI", 1, 2) + put + b"\x63",
        struct.pack("<QI", 3, 3) + put * 2,
        struct.pack("<QI", 6, 1) + put,
        struct.pack("<QI", 7, 1) + b"\x63",
    ]
    path = written(tmp_path / "000003.log", records)
    scan = cordwood.scan(path, decode="write-batch", on_corruption="skip")
    assert pa.table(scan).column("sequence").to_pylist() == [1, 3, 4, 6]
    assert [(str(error.reason), error.offset) for _, error in scan.left_out[0]] == [
        ("unknown_tag", 18),
        ("wrong_count", 8),
        ("unknown_tag", 12),
    ]
    with pytest.raises(pa.ArrowInvalid, match="the record at offset 0") as raised:
        pa.table(cordwood.scan(path, decode="write-batch"))
    assert str(raised.value).partition("Detail")[0].count("the record at offset 0") == 1


def test_a_decoded_scan_either_raises_on_damage_or_skips_it(exports):
    data = bytearray(exports[1].read_bytes())
    data[-1] ^= 1
    exports[1].write_bytes(data)
    with pytest.raises(cordwood.CorruptionError, match="output-1"):
        pa.table(cordwood.scan(exports, decode="entity"))
    scan = cordwood.scan(exports, decode="entity", on_corruption="skip")
    assert pa.table(scan).num_rows == 2
    assert [[region.reason for region in regions] for regions in scan.skipped] == [[], ["checksum_mismatch"]]
    assert not scan.ok


VECTORS = Path(__file__).parents[1] / "vectors"


def test_the_type_for_decoder_names_lists_every_payload_name():
    assert list(get_args(DecoderName)) == list(PAYLOADS)


@pytest.mark.parametrize("name", PAYLOADS)
def test_scan_and_convert_produce_the_same_rows_and_columns(name, exports, tmp_path):
    """On one log of each kind, and on two."""
    kind = PAYLOADS[name].kind
    log = {
        "write-batch": lambda: VECTORS / "leveldb/plyvel/000003.log",
        "version-edit": lambda: VECTORS / "leveldb/plyvel/MANIFEST-000002",
        "wandb": lambda: VECTORS / "wandb/run/run-1.wandb",
        "swanlab": lambda: VECTORS / "swanlab/releases/run-0.7.10.swanlab",
        "entity": lambda: exports[0],
        "json": lambda: written(tmp_path / "json.log", [b'{"a":1,"b":[{"c":"x"}]}', b"[]"]),
        None: lambda: exports[0],
    }[kind and kind.name]()
    pq = pytest.importorskip("pyarrow.parquet")
    if name == "wandb":
        pytest.importorskip("wandb")
    copy = tmp_path / "copy" / log.name
    copy.parent.mkdir()
    copy.write_bytes(log.read_bytes())
    for number, logs in enumerate([[log], [log, copy]]):
        to = tmp_path / f"{number}.parquet"
        assert main(["convert", "--as", name, *map(str, logs), str(to)]) == 0
        scan = cordwood.scan(logs if number else log, decode=name)
        table = pa.table(scan)
        assert table.equals(pq.read_table(to))
        # This database never wrote a table, and this run has no output and no metrics.
        assert (table.num_rows > 0) == (name not in ("live-files", "wandb-metrics", "wandb-output"))
        assert scan.ok


def test_invalid_options_are_rejected(exports, tmp_path):
    path = exports[0]
    with pytest.raises(ValueError, match=r"decode must be one of 'raw', .*, not 'entities'"):
        cordwood.scan(path, decode="entities")
    with pytest.raises(ValueError, match="schema requires decode"):
        cordwood.scan(path, schema=pa.schema([]))
    with pytest.raises(TypeError, match=r"schema must be a pyarrow.Schema, not list"):
        cordwood.scan(path, decode="entity", schema=[])
    with pytest.raises(ValueError, match="schema names the columns"):
        cordwood.scan(path, decode="entity", schema=pa.schema([]), columns=["n"])
    with pytest.raises(ValueError, match="schema must name at least one column"):
        cordwood.scan(path, decode="entity", schema=pa.schema([]))
    for options in {}, {"decode": "entity"}:
        with pytest.raises(ValueError, match="columns must name at least one column"):
            cordwood.scan(path, columns=[], **options)
        with pytest.raises(TypeError, match=r"columns must be a list of names, not a str: columns=\['n'\]"):
            cordwood.scan(path, columns="n", **options)
    with pytest.raises(ValueError, match="columns names 'n' twice"):
        cordwood.scan(path, decode="entity", columns=["n", "n"])
    with pytest.raises(FileNotFoundError):
        pa.table(cordwood.scan(tmp_path / "missing", decode="entity"))
    with cordwood.open(path) as reader:
        _, second = reader.records()
    part = pa.table(cordwood.scan(path, decode="entity", start=second.offset))
    assert part["__name__"].to_pylist() == ["two"]
    assert pa.table(cordwood.scan(path.read_bytes(), decode="entity")).num_rows == 2
    assert repr(cordwood.scan(exports, decode="entity")) == (
        "<cordwood.DecodedScan of 2 sources: entity; on_corruption='raise'>"
    )


def test_pyarrow_is_not_imported_until_a_table_is_created():
    script = "import cordwood, sys; assert not {'pyarrow', 'json'} & sys.modules.keys(), sys.modules.keys()"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    script = (
        "import sys; sys.modules['pyarrow'] = None; import cordwood\n"
        "try: cordwood.scan('x', decode='entity')\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, timeout=120, capture_output=True, text=True)
    assert done.stdout.startswith("scan with decode= needs the package pyarrow: pip install 'cordwood[arrow]'")


@pytest.mark.parametrize("sources", [5, None, [5], ["some.log", None], io.StringIO("text"), [io.StringIO("text")]])
def test_decoded_scans_reject_invalid_sources(sources):
    message = r"must be a path, a URL, bytes or another buffer|text file"
    with pytest.raises(TypeError, match=message):
        cordwood.scan(sources, decode="json")


def test_the_error_for_a_final_row_does_not_mention_a_record():
    path = VECTORS / "wandb/run/run-1.wandb"
    with pytest.raises(ValueError, match=r"run-1\.wandb: the column 'id' is int8, and cannot have"):
        pa.table(cordwood.scan(path, decode="wandb-run", schema=pa.schema([("id", pa.int8())])))
