"""Tables of JSON and of steps of runs: those that the native module makes must equal those made from rows in Python."""

import entities
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import written

import cordwood
from cordwood._tables.columns import Batches, Columns, GrownError, Records
from cordwood._tables.decoders import Log
from cordwood._tables.payloads import PAYLOADS
from cordwood.errors import PayloadError

pa = pytest.importorskip("pyarrow")
naive_tables = pytest.importorskip("naive_tables")


class Left:
    """Collects the records and the values that are left out."""

    def __init__(self):
        self.found = []

    def __call__(self, record, error):
        self.found.append((record.offset, str(error), error.offset, error.length, error.reason))


def by_rows(payload, log):
    """The naive counterpart: the columns, the table as Python has it, and the errors."""
    left, rows = Left(), []
    maker = payload.rows(Log("wandb", print, left))
    for record in cordwood.Reader(log).records():
        try:
            rows.extend(maker.of_record(record))
        except PayloadError as error:
            left(record, error)
    found = naive_tables.Columns()
    for row in rows:
        found.add(row)
    table = naive_tables.table_of(rows, found.types(), payload.to_json()) if found.types() else len(rows)
    return found.types(), found.conflicts(), table, left.found


def by_records(payload, log):
    found = Columns(payload)
    left = [Left(), Left()]
    for batch in cordwood.Reader(log).record_batches():
        found.learn(Records(batch, {}, left[0], left[0]))
    batches = Batches(payload, found.types())
    made = [
        part
        for batch in cordwood.Reader(log).record_batches()
        for part in batches.of(Records(batch, {}, left[1], left[1]))
    ]
    assert left[0].found == left[1].found
    table = pa.Table.from_batches(made, batches.schema) if found.types() else sum(part.num_rows for part in made)
    return found.types(), found.conflicts(), table, left[0].found


def check_same(payload, records):
    log = written(records)
    types, conflicts, table, left = by_records(payload, log)
    naive_types, naive_conflicts, naive_table, naive_left = by_rows(payload, log)
    assert (list(types.items()), conflicts, left) == (list(naive_types.items()), naive_conflicts, naive_left)
    if isinstance(table, int):
        assert table == naive_table
        return
    table.validate(full=True)
    assert table.schema.equals(naive_table.schema)
    # Compared as text: NaN equals nothing, and 0.0 equals -0.0.
    assert repr(table.to_pylist()) == repr(naive_table.to_pylist())


# Texts, not values: each way to write a value, and texts that are nearly one.
names = st.sampled_from(["a", "b", "c", "ä", r"\u00e4", "", "_step", r"x\n", "b.c", r"z\u0000", "__value__"])
numbers = st.sampled_from(
    [
        *["0", "-0", "1", "-1", "0.0", "-0.0", "1.5", "1e3", "1E-3", "1e400", "-1e400", "5e-324", "1e-400"],
        *["9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808"],
        *["123456789012345678901234567890", "1" + "0" * 4_299, "1" + "0" * 4_300, "-" + "9" * 4_301],
        *["0.1", "2.5e-8", "1e16", "1e15", "1e22", "1.7976931348623157e308", "NaN", "Infinity", "-Infinity"],
    ]
)
wrong = st.sampled_from(
    [
        *["01", "1.", ".5", "+1", "1e", "--1", "-", "nul", "tru", "-NaN", '"', '"\\x"', '"\\u12g4"', '"\\u123"'],
        *["[1,]", "[,]", '"\n"', '"\x1f"', "{a:1}", '{"a" 1}', '{"a":1,}', "[1 2]", "", " ", "1 1", "'a'"],
        *["\ufeff1", "\xa01", "[" * 200],
    ]
)
strings = st.sampled_from(
    [
        *['""', '"x"', '"ä\\"\\\\\\/\\b\\f\\n\\r\\t"', r'"\u00e4\u0041"', r'"\ud83d\ude00"', r'"\uD83D\uDE00"'],
        *['"\x7f"', r'"a\u0000b"', '"😀"'],
    ]
)
plain = st.one_of(numbers, strings, st.sampled_from(["true", "false", "null", " 1 ", "\t\r\n2"]))


def nested(values):
    objects = st.lists(st.tuples(names, values), max_size=3).map(
        lambda items: "{" + " , ".join(f'"{name}" : {value}' for name, value in items) + "}"
    )
    deep = st.tuples(st.integers(95, 102), values).map(lambda pair: "[" * pair[0] + pair[1] + "]" * pair[0])
    return st.one_of(
        st.lists(values, max_size=3).map(lambda items: "[" + ",".join(items) + "]"), objects, objects, deep
    )


documents = st.recursive(st.one_of(plain, plain, plain, plain, wrong), nested, max_leaves=8)


@given(st.lists(documents, max_size=6))
@example([f'{{"a":{value}}}' for value in ("1", "0.5", "[1]", '{"b":1}', "null")])
@example(["{" + ",".join(f'"{n}":{n}' for n in range(40)) + "}", "{" + '"a":1,' * 20 + '"b":2}'])
@example(["{}", "{}"])
def test_json_makes_the_same_table_both_ways(documents):
    check_same(PAYLOADS["json"], [text.encode() for text in documents])


def test_a_record_that_is_not_utf_8_is_left_out():
    check_same(PAYLOADS["json"], [b'"\xff"', b'{"a":1}', b'{"a":"\xed\xa0\x80"}'])


def step(items, number):
    field = entities.field
    parts = (b"".join(field(2, part.encode()) for part in path) + field(16, value.encode()) for path, value in items)
    body = b"".join(field(1, part) for part in parts)
    return field(2, body + (b"" if number is None else field(2, b"\x08" + entities.varint(number))))


paths = st.lists(st.sampled_from(["a", "b", "_step", "ä", ""]), min_size=1, max_size=2)
steps = st.builds(step, st.lists(st.tuples(paths, documents), max_size=4), st.one_of(st.none(), st.integers(0, 2**62)))


@given(st.lists(st.one_of(steps, steps, steps, st.sampled_from([b"", b"junk", b"\x12\x01\x0a"])), max_size=5))
@example([step([(["a"], '{"x":1,"x":2,"y":3,"x":4}'), (["_step"], "7")], None), step([(["a"], "1"), (["a"], "2")], 5)])
@example([step([(["a", "b"], "[]"), (["a", "b"], "{}"), (["c"], f'{{"x":{"[" * 100 + "]" * 100},"x":0}}')], None)])
def test_steps_make_the_same_table_both_ways(records):
    check_same(PAYLOADS["wandb-history"], records)


ODD = {
    "a new column": b'{"n": 1, "b": 2}',
    "a value of another type": b'{"n": "text"}',
    "a value of another kind and the same type": b'{"n": 9007199254740993}',
    "no JSON": b'{"n"',
    "no value": b'{"n": null}',
}


def learned_meanwhile(records, piece_len):
    """What a table learns from records while it is made: so many at a time, after the first of them."""
    left, found, made, grown = Left(), Columns(PAYLOADS["json"]), [], None
    found.learn(Records(records[:1]))
    batches = Batches(PAYLOADS["json"], found.types())
    for begin in range(1, len(records), piece_len):
        piece = Records(records[begin : begin + piece_len], {}, left, left)
        try:
            made.extend(batches.of(piece, found))
        except GrownError as error:
            grown = begin + error.index
            break
    table = None if grown else pa.Table.from_batches(made, batches.schema)
    return found.types(), found.conflicts(), left.found, grown, table


@pytest.mark.parametrize("at", [1, 2, 2_000, 2_001, 2_002, 4_000])
@pytest.mark.parametrize("odd", ODD)
def test_many_records_at_a_time_make_the_table_that_few_at_a_time_make(odd, at):
    lines = [b'{"n": %d}' % number for number in range(4_001)]
    lines[at] = ODD[odd]
    lines[4_000 - at // 2] = b'{"n": tru'
    records = list(cordwood.Reader(written(lines)).records())
    few, many = learned_meanwhile(records, 500), learned_meanwhile(records, 4_000)
    assert few[:4] == many[:4]
    assert few[3] == (at if odd in ("a new column", "a value of another type") else None)
    assert few[4] == many[4]
