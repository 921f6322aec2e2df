"""`scan(decode=)`: the contents of records, as a table for everything that reads Arrow."""

import io
import json
import subprocess
import sys
from datetime import UTC, datetime

import entities
import pytest

import cordwood

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


def test_entities_of_several_files(exports):
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


def test_all_kinds(tmp_path):
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


def test_consumers(exports):
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


def test_columns_and_schema(exports):
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
def test_no_value_becomes_another_one(name, kind, exports):
    """A value that does not fit the schema is an error; in a text column it becomes JSON."""
    values = {"n": 0.5, "due": NOON.replace(microsecond=1), "tags": ["x"], "b": True}
    written(exports[0], [entities.entity([("T", 1)], values)])
    schema = pa.schema([(name, pa.string_view() if kind == "string_view" else pa.type_for_alias(kind))])
    scan = cordwood.scan(exports[0], decode="entity", schema=schema)
    if kind == "string_view":
        assert pa.table(scan)[name].to_pylist() == ["0.5"]
        return
    with pytest.raises((OSError, ValueError), match=f"the column {name} is .*, and cannot have this: "):
        pa.table(scan)


def test_the_columns_are_found_once(exports, tmp_path):
    """With a schema they are not searched for, so even a source that cannot seek can be read."""

    class Pipe:
        def __init__(self, data):
            self._file = io.BytesIO(data)
            self.read = self._file.read

    class Counted(io.BytesIO):
        begins = 0

        def seek(self, *arguments):
            Counted.begins += 1
            return super().seek(*arguments)

    data = exports[0].read_bytes()
    file = Counted(b"before" + data)
    file.read(6)
    scan = cordwood.scan(file, decode="entity")
    assert Counted.begins == 0
    for begins in (2, 3):
        assert pa.table(scan)["n"].to_pylist() == [1.0, 0.5]
        assert Counted.begins == begins
    schema = pa.schema([("n", pa.float64())])
    assert pa.table(cordwood.scan(Pipe(data), decode="entity", schema=schema))["n"].to_pylist() == [1.0, 0.5]
    with pytest.raises((OSError, ValueError), match="was read once, and cannot seek"):
        pa.table(cordwood.scan(Pipe(data), decode="entity"))


def test_a_file_that_changes(exports):
    scan = cordwood.scan(exports[0], decode="entity")
    assert scan.columns[-1] == "tags"
    for values in {"new": 1}, {"n": "one"}:
        written(exports[0], [entities.entity([("Task", 1)], values)])
        with pytest.raises((OSError, ValueError), match=r"'new' was not there when|n is double, and cannot have"):
            pa.table(scan)


def test_what_is_something_else(exports, tmp_path):
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


def test_a_value_that_cannot_be_read_is_left_out(tmp_path):
    path = written(tmp_path / "run-a.wandb", [step(a="1", b="{")], dialect="wandb")
    with pytest.raises(cordwood.errors.PayloadError, match="the value of 'b' is not JSON"):
        pa.table(cordwood.scan(path, decode="wandb-history"))
    scan = cordwood.scan(path, decode="wandb-history", on_corruption="salvage")
    assert pa.table(scan).to_pylist() == [{"a": 1}]
    assert [offset for offset, _ in scan.left_out[0]] == [7]


def test_damage(exports):
    data = bytearray(exports[1].read_bytes())
    data[-1] ^= 1
    exports[1].write_bytes(data)
    with pytest.raises(cordwood.CorruptionError, match="output-1"):
        pa.table(cordwood.scan(exports, decode="entity"))
    scan = cordwood.scan(exports, decode="entity", on_corruption="skip")
    assert pa.table(scan).num_rows == 2
    assert [[region.reason for region in regions] for regions in scan.skipped] == [[], ["checksum_mismatch"]]
    assert not scan.ok


def test_options(exports, tmp_path):
    path = exports[0]
    with pytest.raises(ValueError, match=r"decode must be one of 'write-batch', .*, not 'entities'"):
        cordwood.scan(path, decode="entities")
    with pytest.raises(ValueError, match="schema requires decode"):
        cordwood.scan(path, schema=pa.schema([]))
    with pytest.raises(TypeError, match=r"schema must be a pyarrow.Schema, not list"):
        cordwood.scan(path, decode="entity", schema=[])
    with pytest.raises(ValueError, match="schema names the columns"):
        cordwood.scan(path, decode="entity", schema=pa.schema([]), columns=["n"])
    with pytest.raises(ValueError, match="twice"):
        cordwood.scan(path, decode="entity", columns=["n", "n"])
    with pytest.raises(FileNotFoundError):
        pa.table(cordwood.scan(tmp_path / "missing", decode="entity"))
    with cordwood.open(path) as reader:
        _, second = reader.records()
    part = pa.table(cordwood.scan(path, decode="entity", start=second.offset))
    assert part["__name__"].to_pylist() == ["two"]
    assert pa.table(cordwood.scan(path.read_bytes(), decode="entity")).num_rows == 2
    assert repr(cordwood.scan(exports, decode="entity")) == "<cordwood.DecodedScan of 2 sources: entity>"


def test_pyarrow_is_not_imported_before_it_is_needed():
    script = "import cordwood, sys; assert not {'pyarrow', 'json'} & sys.modules.keys(), sys.modules.keys()"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    script = (
        "import sys; sys.modules['pyarrow'] = None; import cordwood\n"
        "try: cordwood.scan('x', decode='entity')\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout.startswith("scan with decode= needs the package pyarrow: pip install 'cordwood[arrow]'")


@pytest.mark.parametrize("sources", [5, None, [5], ["some.log", None], io.StringIO("text"), [io.StringIO("text")]])
def test_wrong_sources_are_refused_as_by_a_scan_of_bytes(sources):
    message = r"must be a path, a URL, bytes or another buffer|text file"
    with pytest.raises(TypeError, match=message):
        cordwood.scan(sources, decode="json")
