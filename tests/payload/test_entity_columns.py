"""Tables of entities: those that `convert` writes must equal those of the naive counterpart."""

from datetime import UTC, datetime
from unittest import mock

import entities
import pytest
from entities import Raw, field, varint
from hypothesis import example, given
from hypothesis import strategies as st
from support import written

import cordwood
from cordwood._tables import table as tables
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.schema import ListOf, MisfitError, StructOf, TooManyColumnsError
from cordwood._tables.table import Table

pa = pytest.importorskip("pyarrow")
table_pairs = pytest.importorskip("table_pairs")

ENTITY = PAYLOADS["entity"]

OTHER_FIELD = field(17, b"owner")
EMPTY = Raw((24, b""))

texts = st.sampled_from(["", "a", 'ä"\\\n\t\r\b\f\x1f\x7f\x00', "\U0001f600 </script>", "x" * 200])
integers = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, 1, 2**53, 2**53 + 1, -(2**53), -(2**53) - 1, 10**15])
)
times = st.one_of(
    # The years 1 to 9999, and the ones just outside.
    st.sampled_from(
        [-62_135_596_800_000_000, -62_135_596_800_000_001, 253_402_300_799_999_999, 253_402_300_800_000_000]
    ),
    st.sampled_from([0, -1, 951_782_400_000_000, 4_107_542_400_000_001, -2_203_891_200_000_000]),
    st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
    integers,
)
paths = st.lists(st.tuples(texts, st.one_of(texts, integers, st.none())), max_size=3)


def key_of(path, app, namespace, database, number=13):
    """A key in a message; every part except the app may be missing."""
    elements = b"".join(
        b"\x0b"
        + field(2, kind.encode())
        + (b"" if last is None else field(4, last.encode()) if isinstance(last, str) else b"\x18" + varint(last))
        + b"\x0c"
        for kind, last in path
    )
    key = field(13, app.encode()) + field(14, elements)
    for tag, text in ((20, namespace), (23, database)):
        key += b"" if text is None else field(tag, text.encode())
    return field(number, key)


keys = st.builds(key_of, paths, texts, st.none() | texts, st.none() | texts)


def reference(path, app):
    elements = b"".join(
        b"\x73"
        + field(15, kind.encode())
        + (b"" if last is None else field(17, last.encode()) if isinstance(last, str) else b"\x80\x01" + varint(last))
        + b"\x74"
        for kind, last in path
    )
    return Raw((None, b"\x63" + field(13, app.encode()) + elements + b"\x64"))


def user(email, nickname, number):
    fields = field(9, email.encode()) + field(10, b"example.com")
    fields += b"" if nickname is None else field(11, nickname.encode())
    return Raw((None, b"\x43" + fields + b"\x90\x01" + varint(number) + b"\x44"))


def entity_in(key, values, others):
    return Raw((19, field(3, key + entities.properties(values) + others)))


plain = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    st.floats(),
    st.sampled_from([1e16, 1e15, 1e-4, 1e-5, 123456789012345680.0, 5e-324, -0.0]),
    texts,
    st.binary(max_size=5),
    # A time; text that is not UTF-8; an unknown field in a value.
    times.map(lambda time: Raw((7, b"\x08" + varint(time)))),
    st.just(Raw((None, field(3, b"\xff\xfe")))),
    st.just(Raw((None, field(31, b"?")))),
    st.tuples(st.floats(), st.floats()).map(entities.Place),
    st.builds(reference, paths, texts),
    st.builds(user, texts, st.none() | texts, integers),
    st.just(EMPTY),
)
names = st.sampled_from(["a", "b", "c", "d", "ä.b", "", "__file__"])


def nested(values):
    maps = st.dictionaries(names, values, max_size=3)
    # A list is in another list only within a map, and is empty only as a whole value.
    items = st.lists(
        values.filter(lambda value: not isinstance(value, list) and value != EMPTY), min_size=1, max_size=4
    )
    others = st.sampled_from([b"", b"", OTHER_FIELD])
    return st.one_of(maps, items, st.builds(entity_in, st.just(b"") | keys, maps, others))


values = st.recursive(plain, nested, max_leaves=12)
some_names = st.one_of(names, names, names, st.sampled_from(["__id__", "__kind__", "__key__", "zero\0"]))
records = st.one_of(
    *[
        st.builds(
            lambda key, values, others: key + entities.properties(values) + others,
            keys,
            st.dictionaries(some_names, values, max_size=5),
            st.sampled_from([b"", b"", OTHER_FIELD]),
        )
    ]
    * 4,
    st.sampled_from([b"", b"junk", field(13, b"")]),
)


def made_of(log, columns, target_len=1 << 20):
    """The batches with these columns, and the faults."""
    return table_pairs.fill(Table(ENTITY, "arrow", columns), log, target_len)


def limited(fields, columns, levels, cells):
    """Patches the limits to lower values."""
    limits = {"FIELD_COUNT_MAX": fields, "COLUMN_COUNT_MAX": columns, "LEVEL_COUNT_MAX": levels}
    return mock.patch.multiple(tables, **limits, CELL_COUNT_MAX=cells)


@given(
    st.lists(records, max_size=8),
    st.sampled_from([1, 100, 1 << 20]),
    st.sampled_from([(1_000, 10_000, 20, 1 << 22), (3, 14, 3, 1 << 22), (5, 9, 2, 30), (1, 30, 20, 1)]),
)
@example([entities.entity([("", 0), ("", "x")], {"a": {"b": [1, {"c": None}]}, "d": EMPTY})], 1, (9, 99, 9, 99))
def test_tables_with_small_limits_match_the_naive_decoder(records, target_len, limits):
    log = written(records)
    with limited(*limits):
        try:
            rows, naive, columns, faults = table_pairs.naive_of("entity", log)
        except TooManyColumnsError:
            with pytest.raises(TooManyColumnsError):
                table_pairs.learned_of("entity", log, target_len)
            return
        learned, found = table_pairs.learned_of("entity", log, target_len)
        assert list(learned.columns.items()) == list(columns.items())
        assert learned.conflicts == (naive.conflicts(), naive.overfull)
        made, later_found = made_of(log, columns, target_len)
    assert [(part, offset) for part, offset, _ in found] == faults
    assert list(map(repr, later_found)) == list(map(repr, found))
    table_pairs.check_same(pa.Table.from_batches(made, learned.schema), rows, columns)


@given(st.lists(records, max_size=8))
def test_entity_tables_match_the_naive_decoder(records):
    table_pairs.check_converted("entity", records)


def test_distinguishes_property_names_of_any_length():
    """Even from names that differ in one letter, in the position that another record has them in."""
    for length in range(1, 40):
        alike = ["n" * at + "m" + "n" * (length - at - 1) for at in range(length)]
        log = written([entities.entity([("T", 1)], {name: name}) for name in ["n" * length, *alike, "n" * length]])
        rows, _, columns, _ = table_pairs.naive_of("entity", log)
        made = pa.Table.from_batches(made_of(log, columns)[0])
        table_pairs.check_same(made, rows, columns)
        assert [made[name].null_count for name in alike] == [length + 1] * length


def test_batches_of_wide_tables_have_few_rows():
    """A column that is in any row of a batch takes room in each row."""
    records = [entities.entity([("T", n + 1)], {f"p{n % 10}{m}": m for m in range(10)}) for n in range(100)]
    log = written(records)
    with limited(1_000, 10_000, 20, 300):
        made, _ = made_of(log, table_pairs.learned_of("entity", log)[0].columns)
    assert sum(batch.num_rows for batch in made) == 100
    for batch in made:
        used = sum(column.null_count < batch.num_rows for column in batch.columns[5:])
        assert batch.num_rows == 1 or batch.num_rows * used <= 300
    assert max(batch.num_rows for batch in made) > 1


def test_every_omitted_record_is_reported_even_if_there_are_thousands():
    """They are reported in groups."""
    log = written([b"junk", entities.entity([("T", 1)], {"n": 1}), *[b""] * 5_000])
    learned, faults = table_pairs.learned_of("entity", log)
    made, later_faults = made_of(log, learned.columns)
    assert pa.Table.from_batches(made)["n"].to_pylist() == [1]
    assert (len(faults), len(later_faults)) == (5_001, 5_001)


def test_a_value_that_does_not_fit_its_column_raises_an_error():
    """Possible only if the file has changed since its columns were determined."""
    types = {"n": "int", "m": ListOf("text"), "f": "float", "t": "text", "b": "bytes", "d": "time"}
    columns = {**ENTITY.always, **types, "s": StructOf((("x", "int"),))}
    time = datetime(2020, 1, 1, tzinfo=UTC)
    numbers = [{"n": "one"}, {"n": 0.5}, {"n": time}, {"f": 2**53 + 1}, {"f": time}, {"d": 5}]
    others = [{"m": ["a", 1]}, {"m": "a"}, {"m": [b"\xff"]}, {"t": b"\xff"}, {"b": "a"}, {"s": 1}, {"s": {"y": 1}}]
    for wrong in [*numbers, *others, {"new": 1}]:
        log = written([entities.entity([("T", 1)], values) for values in ({"n": 1}, wrong)])
        [batch] = cordwood.Reader(log).record_batches()
        with pytest.raises(MisfitError, match=r"the column '[a-z.\[\]]+' (is .*, and cannot|was not there)") as caught:
            made_of(log, columns)
        assert caught.value.offset == batch.record_offsets[1]
