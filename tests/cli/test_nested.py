"""`cordwood convert`: keys as columns, and nested values as structures and lists in Arrow and Parquet."""

import io
import json
from datetime import UTC, datetime

import entities
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import written

import cordwood
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.schema import ListOf, MisfitError, StructOf, TooManyColumnsError
from cordwood._tables.table import FIELD_COUNT_MAX, Table
from cordwood.cli import main
from cordwood.errors import PayloadError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
table_pairs = pytest.importorskip("table_pairs")

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def exported(path, *records):
    path.parent.mkdir(exist_ok=True)
    with cordwood.open(path, "w") as writer:
        writer.extend(records)


def table_of(source, *options, form="entity", status=0):
    to = source.with_suffix(".parquet")
    assert main(["convert", "--as", form, "--overwrite", *options, str(source), str(to)]) == status
    return pq.read_table(to)


def test_a_record_with_colliding_field_names_is_omitted_from_the_table(tmp_path, capfd):
    """A lone surrogate is escaped in a table, and no field takes the place of another: the record is left out."""
    path = tmp_path / "log"
    for record in rb'{"s":{"\ud800":1,"\\ud800":2}}', rb'{"\ud800":1,"\\ud800":2}':
        path.unlink(missing_ok=True)
        exported(path, record)
        to = tmp_path / "log.parquet"
        assert main(["convert", "--as", "json", "--overwrite", str(path), str(to)]) == 3
        assert r"is left out: not JSON: two values have the name '\ud800'" in capfd.readouterr().err
        assert pq.read_table(to).num_rows == 0
        with pytest.raises(PayloadError, match="two values have the name"):
            pa.table(cordwood.scan(path, decode="json"))
        assert main(["convert", "--as", "json", str(path)]) == 3
        assert capfd.readouterr().out == ""


def test_a_summary_value_with_colliding_field_names_is_omitted_from_the_table(tmp_path, capfd):
    """Only the value is left out: the run has a row."""
    item = entities.field(2, b"s") + entities.field(16, rb'{"\ud800":1,"\\ud800":2}')
    path = tmp_path / "run-a.wandb"
    with cordwood.open(path, "w", dialect="wandb") as writer:
        writer.append(entities.field(3, entities.field(1, item)))
    command = ["convert", "--as", "wandb-summary", str(path)]
    for form, rows in ("arrow", 1), ("ndjson", 1), ("csv", 0):
        to = tmp_path / f"t.{form}"
        assert main([*command, str(to)]) == 3
        assert "a value of the record at offset 7 is left out: two values have one name" in capfd.readouterr().err
        assert (pa.ipc.open_file(to).read_all().num_rows if form == "arrow" else to.read_text().count("\n")) == rows


def test_columns_with_invalid_utf8_names_can_be_selected(tmp_path):
    path = tmp_path / "log"
    exported(path, rb'{"\udcff":1,"b":2}', b'{"b":3}')
    assert table_of(path, "--columns", "b,\udcff", form="json").to_pydict() == {"b": [2, 3], r"\udcff": [1, None]}


def test_names_with_a_lone_surrogate_are_escaped_in_csv(tmp_path, capfd):
    """They are escaped, and no value takes the place of another."""
    path, other = tmp_path / "log", tmp_path / "other"
    exported(path, rb'{"\ud800":1,"a":5}', rb'{"\ud800":2,"a":6}')
    exported(other, rb'{"\ud800":1,"\\ud800":2}')
    command = ["convert", "--as", "json", "--to", "csv"]
    assert main([*command, str(path), "-"]) == 0
    assert capfd.readouterr().out == "\\ud800,a\n1,5\n2,6\n"
    assert main([*command, str(other), "-"]) == 3
    assert capfd.readouterr().out == ""
    assert main([*command, str(path), str(other), "-"]) == 3
    assert capfd.readouterr().out == f"__file__,\\ud800,a\n{path},1,5\n{path},2,6\n"


def test_csv_output_fails_if_a_value_has_no_column():
    table = Table(PAYLOADS["json"], "csv", {"a": "int"})
    with pytest.raises(MisfitError, match="the column 'b' was not there"):
        table_pairs.fill(table, written([b'{"a":1,"b":2}']))


def test_choosing_columns_does_not_change_text_in_json(tmp_path, capfd):
    path = tmp_path / "log"
    exported(path, rb'{"a":"\ud800"}', b'{"a":1}')
    for options in [], ["--columns", "a"]:
        assert table_of(path, *options, form="json")["a"].to_pylist() == [r'"\\ud800"', "1"]


def test_the_parts_of_entity_keys_are_converted_to_columns(tmp_path):
    path = tmp_path / "output-0"
    exported(
        path,
        entities.entity([("List", 7), ("Task", "write")], {"n": 1}),
        entities.entity([("Task", 8)], {"n": 2}),
    )
    table = table_of(path)
    assert table.column_names == ["__kind__", "__id__", "__name__", "__path__", "__key__", "n"]
    assert [str(table.schema.field(name).type) for name in ("__kind__", "__id__", "__name__", "__path__")] == [
        "string",
        "int64",
        "string",
        "string",
    ]
    first, second = table.to_pylist()
    assert first == {
        "__kind__": "Task",
        "__id__": None,
        "__name__": "write",
        "__path__": "List/7/Task/write",
        "__key__": {
            "app": "s~app",
            "namespace": None,
            "database": None,
            "path": [{"kind": "List", "id": 7, "name": None}, {"kind": "Task", "id": None, "name": "write"}],
        },
        "n": 1,
    }
    assert [second[name] for name in ("__kind__", "__id__", "__name__", "__path__")] == ["Task", 8, None, "Task/8"]


def test_nested_values_get_typed_columns(tmp_path, capfd):
    """The types cover all rows: a field that only some maps have is null in the others."""
    path = tmp_path / "output-0"
    exported(
        path,
        entities.entity(
            [("Task", 1)],
            {
                "address": {"city": "Bern", "zip": 3000, "seen": NOON, "inner": {"raw": b"\xff"}},
                "tags": ["a", "b"],
                "scores": [1, 0.5],
                "moves": [{"x": 1}, {"x": 2, "y": "up"}],
                "place": entities.Place((46.9, 7.4)),
                "owner": entities.Key([("User", "eve")]),
            },
        ),
        entities.entity([("Task", 2)], {"address": {"city": "Biel", "po": True}, "tags": [None, "c"], "moves": [None]}),
        entities.entity([("Task", 3)], {"address": None}),
    )
    table = table_of(path)
    path_type = "list<element: struct<kind: string, id: int64, name: string>>"
    key = f"struct<app: string, namespace: string, database: string, path: {path_type}>"
    address = "city: string, zip: int64, seen: timestamp[us, tz=UTC], inner: struct<raw: binary>, po: bool"
    assert {name: str(table.schema.field(name).type) for name in table.column_names[5:]} == {
        "address": f"struct<{address}>",
        "tags": "list<element: string>",
        "scores": "list<element: double>",
        "moves": "list<element: struct<x: int64, y: string>>",
        "place": "struct<latitude: double, longitude: double>",
        "owner": key,
    }
    columns = {name: table[name].to_pylist() for name in table.column_names[5:]}
    absent = dict.fromkeys(("zip", "seen", "inner"))
    assert columns == {
        "address": [
            {"city": "Bern", "zip": 3000, "seen": NOON, "inner": {"raw": b"\xff"}, "po": None},
            {**absent, "city": "Biel", "po": True},
            None,
        ],
        "tags": [["a", "b"], [None, "c"], None],
        "scores": [[1.0, 0.5], None, None],
        "moves": [[{"x": 1, "y": None}, {"x": 2, "y": "up"}], [None], None],
        "place": [{"latitude": 46.9, "longitude": 7.4}, None, None],
        "owner": [
            {
                "app": "s~app",
                "namespace": None,
                "database": None,
                "path": [{"kind": "User", "id": None, "name": "eve"}],
            },
            None,
            None,
        ],
    }
    assert capfd.readouterr().err == ""


def test_only_conflicting_values_fall_back_to_json(tmp_path, capfd):
    """Only the value in conflict becomes JSON, not the values around it; so does a map that is empty in all rows."""
    path = tmp_path / "output-0"
    exported(
        path,
        entities.entity([("T", 1)], {"a": {"n": 1, "m": {}}, "l": [1, "x"], "v": [1]}),
        entities.entity([("T", 2)], {"a": {"n": "one", "m": {}}, "l": [2, 3], "v": 1}),
        entities.entity([("T", 3)], {"a": {"n": [{"deep": 1}]}, "v": entities.Key([("U", 9)])}),
    )
    table = table_of(path)
    assert capfd.readouterr().err.splitlines() == [
        "cordwood: the column a.n has values of several types, and is stored as JSON: int, list, text",
        "cordwood: the column l[] has values of several types, and is stored as JSON: int, text",
        "cordwood: the column v has values of several types, and is stored as JSON: int, key, list",
    ]
    a, lists, v = (table[name].to_pylist() for name in ("a", "l", "v"))
    assert [json.loads(row["n"]) for row in a] == [1, "one", [{"deep": 1}]]
    assert [row["m"] for row in a] == ["{}", "{}", None]
    assert lists == [["1", '"x"'], ["2", "3"], None]
    assert [json.loads(row) for row in v] == [[1], 1, {"app": "s~app", "path": ["U", 9]}]
    # In CSV, which has no nested columns, only a whole column can be in conflict.
    assert main(["convert", "--as", "entity", str(path), str(tmp_path / "t.csv")]) == 0
    assert capfd.readouterr().err.splitlines() == [
        "cordwood: the column v has values of several types, and is stored as JSON: int, key, list"
    ]
    assert '"{""n"":1,""m"":{}}","[1,""x""]",[1]' in (tmp_path / "t.csv").read_text()


def test_maps_with_too_many_fields_fall_back_to_json(tmp_path, capfd):
    path = tmp_path / "output-0"
    exported(
        path, *(entities.entity([("T", n + 1)], {"of": {f"user-{n}": n}, "n": n}) for n in range(FIELD_COUNT_MAX + 1))
    )
    table = table_of(path)
    assert capfd.readouterr().err == "cordwood: the column of has too many fields, and is stored as JSON\n"
    assert str(table.schema.field("of").type) == "string"
    assert [json.loads(text) for text in table["of"].to_pylist()] == [
        {f"user-{n}": n} for n in range(FIELD_COUNT_MAX + 1)
    ]
    # One fewer still fits.
    exported(path, *(entities.entity([("T", n + 1)], {"of": {f"user-{n}": n}}) for n in range(FIELD_COUNT_MAX)))
    assert table_of(path).schema.field("of").type.num_fields == FIELD_COUNT_MAX
    assert capfd.readouterr().err == ""


def test_entities_with_a_property_named_like_a_key_column_are_left_out(tmp_path, capfd):
    path = tmp_path / "output-0"
    exported(path, entities.entity([("T", 1)], {"__path__": "x"}), entities.entity([("T", 2)], {"n": 1}))
    assert table_of(path, status=3).num_rows == 1
    assert "the record at offset 0 is left out: a property has the name __path__" in capfd.readouterr().err


def test_nested_values_of_a_run_are_stored_in_nested_columns(tmp_path, capfd):
    def field(number, value):
        return entities.field(number, value)

    def step(**values):
        return field(
            2, b"".join(field(1, field(2, name.encode()) + field(16, value.encode())) for name, value in values.items())
        )

    path = tmp_path / "run-a.wandb"
    with cordwood.open(path, "w", dialect="wandb") as writer:
        writer.extend(
            [step(h='{"_type":"histogram","bins":[0,0.5],"values":[3]}', x="[[1,2],[]]"), step(h='{"n":null}')]
        )
    table = table_of(path, form="wandb-history")
    assert (
        str(table.schema.field("h").type)
        == "struct<_type: string, bins: list<element: double>, values: list<element: int64>, n: string>"
    )
    assert table.to_pylist() == [
        {"h": {"_type": "histogram", "bins": [0.0, 0.5], "values": [3], "n": None}, "x": [[1, 2], []]},
        {"h": {"_type": None, "bins": None, "values": None, "n": None}, "x": None},
    ]


def test_deeply_nested_values_fall_back_to_json():
    table, _ = table_pairs.learned_of("json", written([b'{"a":' + b"[" * 30 + b"]" * 30 + b"}"]))
    kind, count = table.columns["a"], 0
    while isinstance(kind, ListOf):
        kind, count = kind.item, count + 1
    assert (kind, count) == ("json", 20)


def test_nested_fields_count_toward_the_column_limit():
    full = dict.fromkeys(map(str, range(1_000)), 1)
    rows = [{f"s{number}": full} for number in range(9)]
    table, _ = table_pairs.learned_of("json", json_log(rows))
    assert table.conflicts == ({}, [])
    rows.append({"t": full, "u": {"x": 1}})
    table, _ = table_pairs.learned_of("json", json_log(rows))
    assert table.conflicts == ({}, ["t"])
    assert (table.columns["t"], table.columns["u"]) == ("json", StructOf((("x", "int"),)))
    rows.append({str(number): 1 for number in range(10_000)})
    with pytest.raises(TooManyColumnsError):
        table_pairs.learned_of("json", json_log(rows))


def json_log(rows):
    return written(json.dumps(row).encode() for row in rows)


def test_entity_tables_always_have_key_columns(tmp_path, capfd):
    """Even if no key has such a part."""
    path = tmp_path / "output-0"
    exported(path, entities.entity([("Task", "write")], {"n": 1}))
    assert main(["convert", "--as", "entity", "--columns", "n,__id__,m.city", str(path)]) == 2
    assert "there is no column m.city, only" in capfd.readouterr().err
    command = ["convert", "--as", "entity", "--columns", "n,__id__,__name__"]
    assert main([*command, str(path)]) == 0
    assert main([*command, "--to", "csv", str(path)]) == 0
    assert capfd.readouterr().out == '{"n":1,"__name__":"write"}\nn,__id__,__name__\n1,,write\n'


def test_fields_inside_maps_can_be_selected_as_columns(tmp_path):
    path = tmp_path / "output-0"
    maps = [{"city": "Bern", "geo": {"x": 1}}, {"city": "Biel"}, {"city": "Bern", "geo": {"x": 2}}, None]
    exported(path, *(entities.entity([("Task", n + 1)], {"m": value, "n": n}) for n, value in enumerate(maps)))
    table = table_of(path, "--columns", "m.geo.x,n,m.city")
    assert table.to_pydict() == {
        "m.geo.x": [1, None, 2, None],
        "n": [0, 1, 2, 3],
        "m.city": ["Bern", "Biel", "Bern", None],
    }


def test_parts_of_geo_points_and_keys_can_be_selected_as_columns(tmp_path, capfd):
    path = tmp_path / "output-0"
    bern, null = entities.Place((46.9, 7.4)), entities.Place((0.0, 0.0))
    link = entities.Key([("User", "eva")])
    exported(
        path,
        entities.entity([("Task", 1)], {"at": bern, "link": link}),
        entities.entity([("Task", 2)], {"at": null, "m": {"at": bern}}),
    )
    table = table_of(path, "--columns", "at.longitude,link.path,__id__,__key__.app")
    assert table.to_pydict() == {
        "at.longitude": [7.4, 0.0],
        "link.path": [[{"kind": "User", "name": "eva"}], None],
        "__id__": [1, 2],
        "__key__.app": ["s~app", "s~app"],
    }
    capfd.readouterr()
    assert main(["convert", "--as", "entity", "--columns", "at.latitud", str(path)]) == 2
    out, err = capfd.readouterr()
    assert (out, "at, link, at.latitude, at.longitude, m; did you mean at.latitude?\n" in err) == ("", True)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda values: (
        st.lists(values, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "ä.c", ""]), values, max_size=3)
    ),
    max_leaves=12,
)


def is_same(kind, found, value):
    """Whether a value in a table is the one that was written; it is JSON if its type is text and the value is not."""
    if value is None or found is None:
        return value is found
    if pa.types.is_struct(kind):
        names = {field.name for field in kind}
        rest = {name for name, item in value.items() if item is not None}
        return rest <= names and all(is_same(kind.field(name).type, found[name], value.get(name)) for name in names)
    if pa.types.is_list(kind):
        return len(found) == len(value) and all(map(is_same, [kind.value_type] * len(value), found, value))
    if pa.types.is_string(kind):
        return found == value or json.loads(found) == value
    return type(value) in {bool: {bool}, int: {int}, float: {int, float}}[type(found)] and found == value


@settings(deadline=None, max_examples=300)
@given(st.lists(st.dictionaries(st.sampled_from("xyz"), JSON, max_size=3), min_size=1, max_size=4))
def test_arbitrary_json_documents_can_be_stored_as_parquet(documents):
    learned, _ = table_pairs.learned_of("json", json_log(documents))
    batches, _ = table_pairs.fill(Table(PAYLOADS["json"], "arrow", learned.columns), json_log(documents))
    table = pa.Table.from_batches(batches, learned.schema)
    file = io.BytesIO()
    pq.write_table(table, file)
    table = pq.read_table(file)
    table.validate(full=True)
    # A column contains JSON text only if no other type fits; then the text shows each value's type.
    assert set(table.column_names) == {name for document in documents for name in document}
    for name in table.column_names:
        kind = table.schema.field(name).type
        for found, document in zip(table[name].to_pylist(), documents, strict=True):
            assert is_same(kind, found, document.get(name)), (kind, found, document.get(name))


def test_messages_mention_integers_of_more_than_64_bits(tmp_path, capfd):
    path = tmp_path / "log"
    exported(path, b'{"a":0.5,"b":9223372036854775808}', b'{"a":9223372036854775808}')
    table = table_of(path, form="json")
    assert table.to_pydict() == {"a": ["0.5", "9223372036854775808"], "b": ["9223372036854775808", None]}
    message = "cordwood: the column a has values of several types, and is stored as JSON: "
    assert capfd.readouterr().err == message + "float, int of more than 64 bits\n"


@pytest.mark.parametrize("last", [{}, {"other": 1}], ids=["one reading", "two readings"])
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_convert_fails_if_two_column_names_collide_in_arrow(form, last, tmp_path, capfd):
    path = tmp_path / "log"
    with cordwood.open(path, "x") as writer:
        writer.extend(json.dumps(value).encode() for value in ({"a\0": 1, r"a\x00": 2}, last))
    table = tmp_path / f"t.{form}"
    assert main(["convert", "--as", "json", str(path), str(table)]) == 1
    message = r"cordwood: two columns have the name 'a\\x00'; --to ndjson keeps them apart" + "\n"
    assert (capfd.readouterr().err, table.exists()) == (message, False)
    assert main(["convert", "--as", "json", str(path), str(tmp_path / "t.ndjson")]) == 0
