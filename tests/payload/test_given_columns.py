"""The columns of a given schema, against a naive counterpart in Python and value by value."""

import json
import math
import random
import re
from datetime import UTC, datetime, timedelta

import entities
import pytest

import cordwood

pa = pytest.importorskip("pyarrow")

import naive_given  # noqa: E402 - it needs pyarrow

LEAVES = [
    *[pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()],
    *[pa.float16(), pa.float32(), pa.float64(), pa.decimal128(3), pa.decimal128(9, 2), pa.decimal256(60)],
    *[pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()],
    *[pa.date32(), pa.null(), pa.timestamp("us"), pa.binary(2)],
    *[pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int16(), pa.float32(), ordered=True)],
]
LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda field: pa.list_(field, 2)]
NAMES = ["a", "b", "c", "ü", "a.b", r"\x00", r"\ud800"]
JSON_NAMES = [b'"a"', b'"b"', b'"c"', b'"\\u00fc"', b'"a.b"', b'"\\u0000"', b'"\\\\x00"', b'"\\ud800"', b'"d"']
VALUES = [
    *[
        "null",
        "true",
        "false",
        "0",
        "1",
        "-1",
        "-0.0",
        "1.0",
        "0.5",
        "0.1",
        "1e300",
        "127",
        "128",
        "-128",
        "-129",
        "255",
    ],
    *["256", "2048", "2049", "65504", "65505.0", "65536", "5.960464477539063e-08", "8.940696716308594e-08", "1e-45"],
    *["16777216", "16777217", "3.4028234663852886e+38", "3.5e38", "999", "1000", "9999999", "10000000"],
    *["9007199254740992", "9007199254740993", "-9223372036854775808", "9223372036854775807", "9223372036854775808"],
    *["18446744073709551615", "18446744073709551616", "1e19", "-1e18", "123456789012345678901234567890"],
    *['""', '"a"', '"\\ud800"', '"\\u0000\\""', '"1"', "[]", "{}"],
]


def random_type(rng, levels):
    choice = rng.random()
    if levels == 0 or choice < 0.4:
        return rng.choice(LEAVES)
    if choice < 0.6:
        fields = [random_field(rng, name, levels - 1) for name in rng.sample(NAMES, rng.randrange(4))]
        return pa.struct(fields)
    if choice < 0.7:
        return pa.map_(
            rng.choice([pa.string(), pa.large_string(), pa.binary()]), random_field(rng, "value", levels - 1)
        )
    return rng.choice(LISTS)(random_field(rng, "item", levels - 1))


def random_field(rng, name, levels):
    kind = random_type(rng, levels)
    return pa.field(name, kind, nullable=rng.random() < 0.9 or pa.types.is_null(kind))


def random_json(rng, kind, levels):
    """A value that fits a type quite often."""
    types = pa.types
    if rng.random() < 0.1 or kind is None:
        return rng.choice(VALUES) if rng.random() < 0.8 or not levels else random_json(rng, random_type(rng, 1), 1)
    if types.is_struct(kind) or types.is_map(kind):
        names = rng.sample(JSON_NAMES, rng.randrange(len(JSON_NAMES)))
        return f"{{{','.join(random_member(rng, name, kind, levels) for name in names)}}}"
    if hasattr(kind, "value_field") and not types.is_dictionary(kind) and not types.is_run_end_encoded(kind):
        count = 2 if types.is_fixed_size_list(kind) and rng.random() < 0.9 else rng.randrange(4)
        return f"[{','.join(random_json(rng, kind.value_type, levels - 1) for _ in range(count))}]"
    fitting = [value for value in VALUES if fits(value, kind)] or ["null"]
    return rng.choice(fitting)


def random_member(rng, name, kind, levels):
    inside = None
    if pa.types.is_map(kind):
        inside = kind.item_type
    else:
        number = kind.get_field_index(
            json.loads(name).encode("utf-8", "backslashreplace").decode().replace("\0", r"\x00")
        )
        inside = kind[number].type if number >= 0 else None
    return f"{name.decode()}:{random_json(rng, inside, levels - 1)}"


def fits(value, kind):
    try:
        naive_given.table_of([{"a": json.loads(value)}], pa.schema([("a", kind)]))
    except naive_given.MisfitError:
        return False
    return True


@pytest.mark.parametrize("seed", range(10))
def test_random_values_fit_random_schemas_or_raise_an_error(seed, tmp_path):
    rng = random.Random(seed)
    misfit_count = 0
    for number in range(20):
        fields = [random_field(rng, name, 2) for name in rng.sample(NAMES, rng.randrange(1, 4))]
        schema = pa.schema(fields)
        lines = [random_json(rng, pa.struct(fields), 3).encode() for _ in range(6)]
        lines = [line if line.startswith(b"{") else b"{}" for line in lines]
        path = tmp_path / f"{number}.log"
        with cordwood.open(path, "w") as writer:
            writer.extend(lines)
        with cordwood.open(path) as reader:
            offsets = [record.offset for record in reader.records()]
        rows = [json.loads(line) for line in lines]
        while True:
            scan = cordwood.scan(path, decode="json", schema=schema)
            try:
                expected = naive_given.table_of(rows, schema)
            except naive_given.MisfitError as error:
                misfit_count += 1
                [at] = error.args
                with pytest.raises(pa.ArrowInvalid) as raised:
                    pa.table(scan)
                assert f"log: the record at offset {offsets[at]}: " in str(raised.value), (schema, lines)
                # The table of the records before it.
                rows, lines = rows[:at], lines[:at]
                with cordwood.open(path, "w") as writer:
                    writer.extend(lines)
                continue
            table = pa.table(scan)
            table.validate(full=True)
            assert table.schema.equals(schema)
            assert table.to_pylist() == expected.to_pylist(), (schema, lines)
            break
    assert 0 < misfit_count < 20


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND, MILLISECOND, MICROSECOND = (timedelta(**{name: 1}) for name in ("seconds", "milliseconds", "microseconds"))
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def scan_of(records, kind, decode, tmp_path, **options):
    """A scan of records with the column `a` of a type."""
    with cordwood.open(tmp_path / "log", "w") as writer:
        writer.extend(records)
    return cordwood.scan(tmp_path / "log", decode=decode, schema=pa.schema([("a", kind)]), **options)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        *[(NOON + SECOND, pa.timestamp(unit, "UTC"), NOON + SECOND) for unit in ("s", "ms", "us", "ns")],
        (NOON + MILLISECOND, pa.timestamp("ms", "UTC"), NOON + MILLISECOND),
        (NOON + MICROSECOND, pa.timestamp("us", "Europe/Berlin"), NOON + MICROSECOND),
        # Without a time zone, it is UTC.
        (NOON, pa.timestamp("us"), NOON.replace(tzinfo=None)),
        *[(time, pa.timestamp("us", "UTC"), time) for time in (FIRST, LAST)],
        (FIRST, pa.timestamp("s", "UTC"), FIRST),
        (NOON, pa.large_string(), '"2026-11-21T12:00:00Z"'),
        (b"\xff\x00", pa.binary(), b"\xff\x00"),
        (b"\xff\x00", pa.binary(2), b"\xff\x00"),
        (b"\xff\x00", pa.binary_view(), b"\xff\x00"),
        (b"\xff\x00", pa.string(), '{"base64":"/wA="}'),
        ("\u00fc\0", pa.binary(), b"\xc3\xbc\0"),
        (entities.Place((1.5, -2.0)), pa.struct([("longitude", pa.float16())]), {"longitude": -2.0}),
        (entities.Place((1.5, -2.0)), pa.map_(pa.string(), pa.int8()), None),
        (
            entities.Key([("K", 2)]),
            pa.struct([("path", pa.list_(pa.struct([("id", pa.int8())])))]),
            {"path": [{"id": 2}]},
        ),
        (entities.Key([("K", 2)]), pa.string(), '{"app":"s~app","path":["K",2]}'),
        ([b"a", NOON], pa.list_(pa.string()), ['{"base64":"YQ=="}', '"2026-11-21T12:00:00Z"']),
    ],
)
def test_entity_values_are_converted_to_the_types_of_a_schema(value, kind, expected, tmp_path):
    records = [entities.entity([("T", 1)], {"a": value}), entities.entity([("T", 1)], {})]
    scan = scan_of(records, kind, "entity", tmp_path)
    if expected is None:
        with pytest.raises(pa.ArrowInvalid, match=r"'a\[\].value' is int8, .* of type float: 1.5 would be changed"):
            pa.table(scan)
        return
    table = pa.table(scan)
    table.validate(full=True)
    assert table["a"].to_pylist() == [expected, None]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_nan_and_infinity_fit_only_floating_point_columns(number, tmp_path):
    line = b'{"a":%s}' % number.encode()
    for kind in pa.float16(), pa.float32(), pa.float64(), pa.dictionary(pa.int8(), pa.float16()):
        [found] = pa.table(scan_of([line], kind, "json", tmp_path))["a"].to_pylist()
        assert math.isnan(found) if number == "NaN" else found == float(number)
    with pytest.raises(pa.ArrowInvalid, match="is int64, and cannot have a value of type float"):
        pa.table(scan_of([line], pa.int64(), "json", tmp_path))


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ("300", pa.uint8(), "'a' is uint8, and cannot have a value of type int: 300 would be changed; give the"),
        ("9007199254740993", pa.int32(), "'a' is int32, and cannot have a value of type int: 9007199254740993 would"),
        ("1.5", pa.int64(), "'a' is int64, and cannot have a value of type float: 1.5 would be changed; give the"),
        ("9007199254740993", pa.float64(), "'a' is double, and cannot have a value of type int of more than 53 bits;"),
        ("0.1", pa.float32(), "'a' is float, and cannot have a value of type float: 0.1 would be changed; give the"),
        # One and a half times the smallest number.
        ("8.940696716308594e-08", pa.float16(), "'a' is halffloat, and cannot have a value of type float: 8.9"),
        (
            "1" * 60,
            pa.decimal128(5),
            "'a' is decimal128(5, 0), and cannot have a value of type int of more than 64 bits: it",
        ),
        ("[1,2,3]", pa.list_(pa.int64(), 2), "value of type list: it has 3 items; give the column another type"),
        (
            '{"x":[0.5]}',
            pa.struct([("x", pa.list_(pa.int8()))]),
            "'a.x[]' is int8, and cannot have a value of type float",
        ),
        (
            "{}",
            pa.struct([pa.field("x", pa.int8(), nullable=False)]),
            "'a.x' is int8, and cannot have a value of type null",
        ),
        ("1", pa.date32(), "'a' is date32[day], and cannot have a value of type int; give the column another type"),
    ],
)
def test_the_error_says_why_a_value_does_not_fit_its_column(value, kind, message, tmp_path):
    scan = scan_of([b'{"a":null}', b'{"a":%s}' % value.encode()], kind, "json", tmp_path)
    with pytest.raises(pa.ArrowInvalid, match=re.escape("log: the record at offset 17: the column ")) as raised:
        pa.table(scan)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (NOON + MICROSECOND, pa.timestamp("ms"), 'time: "2026-11-21T12:00:00.000001Z" would be changed'),
        (LAST, pa.timestamp("ns"), 'time: "9999-12-31T23:59:59.999999Z" would be changed'),
        (b"abc", pa.binary(2), "type bytes: it has 3 bytes"),
        ("ab", pa.binary(2), "type text;"),
        (NOON, pa.date32(), "type time;"),
    ],
)
def test_the_error_says_why_an_entity_value_does_not_fit_its_column(value, kind, message, tmp_path):
    with pytest.raises(pa.ArrowInvalid) as raised:
        pa.table(scan_of([entities.entity([("T", 1)], {"a": value})], kind, "entity", tmp_path))
    assert message in str(raised.value)


def test_an_undecodable_record_is_reported_before_a_later_type_mismatch(tmp_path):
    records = [b"junk", b'{"a":0.5}', b"junk"]
    with pytest.raises(pa.ArrowInvalid, match="the record at offset 0: not JSON"):
        pa.table(scan_of(records, pa.int8(), "json", tmp_path))
    scan = scan_of(records, pa.int8(), "json", tmp_path, on_corruption="skip")
    with pytest.raises(pa.ArrowInvalid, match="the record at offset 11: the column 'a' is int8"):
        pa.table(scan)
    assert [[offset for offset, _ in left_out] for left_out in scan.left_out] == [[0]]


def test_a_dictionary_index_type_that_is_too_small_raises_an_error(tmp_path):
    lines = [b'{"a":"%d"}' % number for number in range(129)]
    kind = pa.dictionary(pa.int8(), pa.string())
    assert pa.table(scan_of(lines[:128], kind, "json", tmp_path))["a"].to_pylist() == [str(i) for i in range(128)]
    with pytest.raises(pa.ArrowInvalid, match="not in range"):
        pa.table(scan_of(lines, kind, "json", tmp_path))


def test_a_schema_can_change_the_types_of_write_batch_columns(tmp_path):
    """The names of columns are known, and some of the types change."""
    record = bytes.fromhex("0700000000000000 01000000 01 0161 0176")
    with cordwood.open(tmp_path / "log", "w") as writer:
        writer.append(record)
    schema = pa.schema(
        [("sequence", pa.int8()), ("key", pa.large_binary()), ("kind", pa.dictionary(pa.int8(), pa.string()))]
    )
    table = pa.table(cordwood.scan(tmp_path / "log", decode="write-batch", schema=schema))
    assert table.to_pylist() == [{"sequence": 7, "key": b"a", "kind": "put"}]
    path = pa.schema([("path", pa.dictionary(pa.int32(), pa.string())), ("sequence", pa.uint64())])
    table = pa.table(cordwood.scan([tmp_path / "log"], decode="write-batch", schema=path))
    assert table.to_pylist() == [{"path": str(tmp_path / "log"), "sequence": 7}]
