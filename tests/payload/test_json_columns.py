"""Tables of JSON and of steps of runs: those that `convert` writes must equal those of the naive counterpart."""

import entities
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import written

import cordwood
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.table import Table

pa = pytest.importorskip("pyarrow")
table_pairs = pytest.importorskip("table_pairs")


# Texts, not values: each way to write a value, and texts that are nearly one.
names = st.sampled_from(
    ["a", "b", "c", "ä", r"\u00e4", "", "_step", r"x\n", "b.c", r"z\u0000", r"\ud800", r"\\ud800", "__value__"]
)
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
        *['"\x7f"', r'"a\u0000b"', '"😀"', r'"\udcff x"'],
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
def test_json_tables_match_the_naive_decoder(documents):
    records = [text.encode() for text in documents]
    table_pairs.check_converted("json", records)
    check_learned("json", records)


def check_learned(payload, records):
    """Checks what is learned from records, of which one at a time or all become rows at once."""
    log = written(records)
    rows, naive, columns, _ = table_pairs.naive_of(payload, log)
    for target_len in (1, 1 << 20):
        learned, faults = table_pairs.learned_of(payload, log, target_len)
        assert list(learned.columns.items()) == list(columns.items())
        assert learned.conflicts == (naive.conflicts(), naive.overfull)
        table = Table(PAYLOADS[payload], "arrow", columns)
        made, later_faults = table_pairs.fill(table, log, target_len)
        assert list(map(repr, later_faults)) == list(map(repr, faults))
        table_pairs.check_same(pa.Table.from_batches(made, table.schema), rows, columns)


def test_a_record_that_is_not_utf_8_is_omitted_from_the_table():
    table_pairs.check_converted("json", [b'"\xff"', b'{"a":1}', b'{"a":"\xed\xa0\x80"}'])


def step(items, number):
    field = entities.field
    parts = (b"".join(field(2, part.encode()) for part in path) + field(16, value.encode()) for path, value in items)
    body = b"".join(field(1, part) for part in parts)
    return field(2, body + (b"" if number is None else field(2, b"\x08" + entities.varint(number))))


paths = st.lists(st.sampled_from(["a", "b", "_step", "ä", ""]), min_size=1, max_size=2)
# Two names that become one leave out a step as a whole: `test_convert.py` has these.
values = documents.filter(lambda text: "ud800" not in text)
steps = st.builds(step, st.lists(st.tuples(paths, values), max_size=4), st.one_of(st.none(), st.integers(0, 2**62)))


@given(st.lists(st.one_of(steps, steps, steps, st.sampled_from([b"", b"junk", b"\x12\x01\x0a"])), max_size=5))
@example([step([(["a"], '{"x":1,"x":2,"y":3,"x":4}'), (["_step"], "7")], None), step([(["a"], "1"), (["a"], "2")], 5)])
@example([step([(["a", "b"], "[]"), (["a", "b"], "{}"), (["c"], f'{{"x":{"[" * 100 + "]" * 100},"x":0}}')], None)])
def test_wandb_history_tables_match_the_naive_decoder(records):
    pytest.importorskip("wandb")
    table_pairs.check_converted("wandb-history", records, "run-a.wandb", "wandb")


ODD = {
    "a new column": b'{"n": 1, "b": 2}',
    "a value of another type": b'{"n": "text"}',
    "a value of another kind and the same type": b'{"n": 9007199254740993}',
    "no JSON": b'{"n"',
    "no value": b'{"n": null}',
}


def made_meanwhile(records, piece_len):
    """What a table of records is, so many at a time after the first of them, which decides its columns."""
    table, faults, made = Table(PAYLOADS["json"], "arrow"), [], []
    table.start(cordwood.Reader(written([])), None)
    for start, end in [(0, 1), *((at, at + piece_len) for at in range(1, len(records), piece_len))]:
        for _, some in table.feed(records[start:end], lambda fault: faults.append((fault.record.offset, str(fault)))):
            made += some
    whole = pa.Table.from_batches(made, table.schema) if table.is_open else None
    return table.columns, table.conflicts, faults, whole


@pytest.mark.parametrize("at", [1, 2, 2_000, 2_001, 2_002, 4_000])
@pytest.mark.parametrize("odd", ODD)
def test_the_table_does_not_depend_on_the_batch_size(odd, at):
    lines = [b'{"n": %d}' % number for number in range(4_001)]
    lines[at] = ODD[odd]
    lines[4_000 - at // 2] = b'{"n": tru'
    records = list(cordwood.Reader(written(lines)).records())
    few, many = made_meanwhile(records, 500), made_meanwhile(records, 4_000)
    assert few == many
    assert (few[3] is None) == (odd in ("a new column", "a value of another type"))
