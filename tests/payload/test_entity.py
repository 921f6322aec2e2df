"""Entities, compared with Google's reader and leveldb-export's, which run in an environment of their own."""

import csv
import io
import json
import os
import struct
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from real_files import EXPORTS, FIRESTORE, corpus
from support import written

import cordwood
from cordwood.errors import PayloadError
from cordwood.payload import entity

TESTS = Path(__file__).parents[1]
JUDGE = Path(os.environ.get("CORDWOOD_APPENGINE_PYTHON") or TESTS.parent / ".venv" / "appengine" / "bin" / "python")

needs_judge = pytest.mark.skipif(
    not JUDGE.exists(), reason=f"no App Engine SDK in {JUDGE}; `make test-python` installs it"
)

KEY_COLUMNS = {"__kind__", "__id__", "__name__", "__path__", "__key__"}

# The key [Task 7] of the app "a", and the start of a property "p".
KEY = bytes.fromhex("6a0f 6a0161 720a0b 12045461736b 1807 0c")


def judged(*arguments):
    command = [str(JUDGE), str(TESTS / "helpers" / "appengine_judge.py"), *map(str, arguments)]
    return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)


def field(number, content):
    """A protocol buffer field with less than 16 KiB of content."""
    length = len(content)
    prefix = bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
    return bytes([number << 3 | 2]) + prefix + content


def entity_of(rest, number=14):
    return KEY + field(number, b"\x1a\x01p" + rest)


def converted(path, *options):
    command = [sys.executable, "-m", "cordwood", "convert", "--as", "entity", *options, str(path)]
    lines = subprocess.run(command, capture_output=True, check=True, timeout=120).stdout.splitlines()
    return [json.loads(line) for line in lines]


@needs_judge
@pytest.mark.parametrize("seed", range(4))
def test_records_written_by_the_sdk_decode_to_their_values(seed):
    records = judged("make", seed)
    assert len(records) == 500
    for record, expected in records:
        assert entity.to_dict(bytes.fromhex(record)) == expected


@needs_judge
@pytest.mark.parametrize("path", EXPORTS)
def test_exports_decode_to_the_values_that_the_sdk_reads(path):
    expected = judged("read", path)
    assert len(expected) > 10
    with cordwood.open(path) as reader:
        assert [entity.to_dict(record) for record in reader] == expected
    rows = [{name: row[name] for name in row if name not in KEY_COLUMNS - {"__key__"}} for row in converted(path)]
    assert rows == [{"__key__": item["key"], **item["properties"]} for item in expected]


def as_leveldb_export(value, *, is_nested=False):
    """The value as leveldb-export returns it, which turns empty texts in maps into None."""
    if isinstance(value, dict) and value.keys() != {"latitude", "longitude"}:
        return {name: as_leveldb_export(item, is_nested=True) for name, item in value.items()}
    if isinstance(value, list):
        return [as_leveldb_export(item, is_nested=is_nested) for item in value]
    return None if is_nested and value == "" else value


@needs_judge
@pytest.mark.parametrize("path", FIRESTORE)
def test_converting_an_export_prints_the_rows_of_leveldb_export(path):
    expected = judged("rows", path)
    assert len(expected) > 10
    rows = []
    for row in converted(path):
        key = row.pop("__key__")
        assert row.pop("__kind__") == key["path"][-2]
        names = {"id": row.pop("__id__", None), "name": row.pop("__name__", None)}
        path_text = row.pop("__path__")
        rows.append(
            {name: as_leveldb_export(value) for name, value in row.items()}
            | {"_key": names | {"namespace": "", "app": key["app"], "path": path_text}}
        )
    assert rows == expected


@pytest.mark.parametrize("path", corpus("firestore/swift-guide/output-0"))
def test_an_export_can_be_converted_to_a_parquet_table(path):
    pq = pytest.importorskip("pyarrow.parquet")
    command = [sys.executable, "-m", "cordwood", "convert", "--as", "entity", "--to", "parquet", str(path)]
    table = pq.read_table(io.BytesIO(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout))
    with cordwood.open(path) as reader:
        entities = [entity.decode(record) for record in reader]
    assert table.num_rows == len(entities) == 16
    assert set(table.column_names) == {*KEY_COLUMNS, *(name for item in entities for name in item.properties)}
    assert table["__path__"].to_pylist() == [
        "/".join(map(str, (p for e in item.key.path for p in e))) for item in entities
    ]
    # A column of times, one of texts and numbers, and maps.
    assert str(table.schema.field("year").type) == "timestamp[us, tz=UTC]"
    assert table["year"].to_pylist() == [item.properties.get("year") for item in entities]
    pages = [json.loads(text) for text in table["numberOfPages"].to_pylist() if text is not None]
    assert pages == [item.properties["numberOfPages"] for item in entities if "numberOfPages" in item.properties]
    assert {type(value) for value in pages} == {int, str}
    locations = [place for place in table["location"].to_pylist() if place is not None]
    assert locations[0] == {"latitude": 40.7414688, "longitude": -74.0033873}


def test_entity_values_decode_to_python_types():
    values = {
        "": None,
        "1001": True,
        "08fbffffffffffffffff01": -5,
        "21000000000000f83f": 1.5,
        "1a0161": "a",
        "1a01ff": b"\xff",
        "2b 31000000000000f03f 390000000000000040 2c": entity.GeoPoint(1.0, 2.0),
        "63 6a0161 73 7a0154 800107 74 64": entity.Key("a", (("T", 7),)),
    }
    for content, expected in values.items():
        decoded = entity.decode(entity_of(b"\x20\x00" + field(5, bytes.fromhex(content))))
        assert decoded.properties == {"p": expected}
        assert type(decoded.properties["p"]) is type(expected)
        assert decoded.unindexed == frozenset()
    when = b"\x08\x07" + b"\x20\x00" + field(5, b"\x08\xc0\x84\x3d")
    assert entity.decode(entity_of(when, 15)) == entity.Entity(
        entity.Key("a", (("Task", 7),)),
        {"p": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)},
        {"p": (7,)},
        frozenset({"p"}),
        (),
    )
    # After the year 9999.
    far = b"\x08\x07" + b"\x20\x00" + field(5, b"\x08" + b"\xff" * 8 + b"\x7f")
    assert entity.decode(entity_of(far)).properties == {"p": 2**63 - 1}


def test_uninterpreted_fields_are_kept_in_the_dictionary():
    inner = field(13, field(13, b"") + field(14, b"")) + b"\x38\x07"
    record = entity_of(b"\x08\x13\x20\x00" + field(5, field(3, inner))) + b"\x8a\x01\x01x"
    others = entity.to_dict(record)["other_fields"]
    assert others == [
        {"message": "EntityProto", "number": 17, "offset": len(record) - 4, "data": {"base64": "igEBeA=="}},
        {"message": "EntityProto", "number": 7, "offset": len(record) - 6, "data": {"base64": "OAc="}},
    ]


def test_uninterpreted_fields_get_their_own_column(tmp_path):
    path = tmp_path / "output-0"
    plain = entity_of(b"\x20\x00" + field(5, b"\x08\x05"))
    path.write_bytes(written([plain + b"\x8a\x01\x01x", plain]))
    others = [{"message": "EntityProto", "number": 17, "offset": len(plain), "data": {"base64": "igEBeA=="}}]
    assert [row.get("__other_fields__") for row in converted(path)] == [others, None]
    command = [sys.executable, "-m", "cordwood", "convert", "--as", "entity", "--to", "csv", str(path)]
    text = subprocess.run(command, capture_output=True, check=True, timeout=120, text=True).stdout
    first, second = csv.DictReader(io.StringIO(text))
    assert (json.loads(first["__other_fields__"]), second["__other_fields__"]) == (others, "")


def test_bytes_are_converted_to_base64_in_arrays_maps_and_columns(tmp_path):
    """On their own, in an array, in a map, and in a column that also contains text."""
    path = tmp_path / "output-0"
    blob = b"\x08\x0e" + b"\x20\x00" + field(5, field(3, b"abc"))
    in_array = b"\x08\x0e" + b"\x20\x01" + field(5, field(3, b"abc"))
    in_map = b"\x08\x13\x20\x00" + field(5, field(3, field(14, b"\x1a\x01x" + blob)))
    text = b"\x20\x00" + field(5, field(3, b"abc"))
    record = entity_of(blob) + field(14, b"\x1a\x01l" + in_array) + field(14, b"\x1a\x01m" + in_map)
    record += field(14, b"\x1a\x01b" + blob)
    path.write_bytes(written([record, entity_of(text)]))
    tagged = {"base64": "YWJj"}
    rows = converted(path)
    values = {name: value for name, value in rows[0].items() if name not in KEY_COLUMNS}
    assert values == {"p": tagged, "l": [tagged], "m": {"x": tagged}, "b": tagged}
    assert rows[0].items() >= entity.to_dict(record)["properties"].items()
    command = [sys.executable, "-m", "cordwood", "convert", "--as", "entity", "--to", "csv", str(path)]
    first, second = csv.DictReader(
        io.StringIO(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    )
    assert [json.loads(first[name]) for name in "plmb"] == [tagged, [tagged], {"x": tagged}, tagged]
    assert json.loads(second["p"]) == "abc"


def test_an_embedded_key_without_a_path_is_preserved():
    for key, expected in [
        (field(13, b"") + field(14, b""), {}),
        (field(13, b"s~a") + field(14, b""), {"__key__": {"app": "s~a", "path": []}}),
        (field(13, b"") + b"\xa2\x01\x02ns", {"__key__": {"app": "", "path": [], "namespace": "ns"}}),
    ]:
        record = entity_of(b"\x08\x13\x20\x00" + field(5, field(3, field(13, key))))
        assert entity.to_dict(record)["properties"] == {"p": expected}


def test_error_for_a_non_entity_record_gives_its_offset_and_the_reason():
    for record, offset, reason in [
        (b"", 0, "missing_field"),
        (KEY + b"\x72\x05", len(KEY) + 1, "truncated"),
        (KEY + b"\x08\x80", len(KEY) + 1, "truncated"),
        (KEY + KEY, len(KEY), "non_canonical"),
        (entity_of(b"\x20\x00\x28\x00"), 24, "bad_wire_type"),
        (KEY + field(14, b"\x1a\x01\xff\x20\x00\x2a\x00"), 19, "not_utf8"),
        (KEY + field(14, field(3, b"__key__") + b"\x20\x00\x2a\x00"), 19, "reserved_name"),
        (KEY + field(14, field(3, b"__other_fields__") + b"\x20\x00\x2a\x00"), 19, "reserved_name"),
        (
            entity_of(b"\x08\x13" + field(5, field(3, field(14, field(3, b"__key__") + b"\x2a\x00")))),
            30,
            "reserved_name",
        ),
    ]:
        with pytest.raises(PayloadError) as caught:
            entity.decode(record)
        assert (caught.value.offset, caught.value.reason) == (offset, reason), record
    with pytest.raises(TypeError, match="bytes-like"):
        entity.decode("text")
    assert entity.decode(bytearray(KEY)) == entity.decode(memoryview(KEY)) == entity.decode(KEY)


def test_an_entity_that_is_nested_too_deeply_is_rejected():
    record = KEY
    for _ in range(49):
        record = entity_of(b"\x08\x13\x20\x00" + field(5, field(3, record)))
    depth = 0
    value = entity.to_dict(record)["properties"]
    while "p" in value:
        value, depth = value["p"], depth + 1
    assert depth == 49
    with pytest.raises(PayloadError, match="nested more deeply"):
        entity.decode(entity_of(b"\x08\x13\x20\x00" + field(5, field(3, record))))
    with pytest.raises(PayloadError, match="nested more deeply"):
        entity.decode(KEY + b"\x0b" * 1_000_000)


def test_nan_and_infinity_are_written_as_text_in_json(tmp_path):
    path = tmp_path / "output-0"
    values = [float("nan"), float("inf"), float("-inf")]
    records = [entity_of(b"\x20\x00" + field(5, b"\x21" + struct.pack("<d", value))) for value in values]
    path.write_bytes(written(records))
    assert [row["p"] for row in converted(path)] == ["NaN", "Infinity", "-Infinity"]
