"""Rows as Arrow batches of a given schema, made by pyarrow: a value that would be changed is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, TypeAlias

from cordwood._tables.columns import CELL_COUNT_MAX, Records
from cordwood._tables.json_text import json_text
from cordwood._tables.schema import FieldsOf, MisfitError, ToJson, arrow_name, check_names, utf8

if TYPE_CHECKING:
    from cordwood._tables.payloads import Payload

Make: TypeAlias = Callable[[list[Any]], Any]
"""Makes an array of values; `None` is null."""

_Classes: TypeAlias = tuple[type, ...]

_SURROGATE = re.compile("[\ud800-\udfff]")


def with_arrow_names(row: Mapping[str, Any], wanted: Collection[str]) -> dict[str, Any]:
    """The wanted fields of a row or an object, by their names in Arrow.

    Raises:
        MisfitError: Two have the same name.
    """
    found: dict[str, Any] = {}
    for name, value in row.items():
        other = arrow_name(name)
        if other in found:
            raise MisfitError(f"two values have the name {other!r} in a table, where some characters are escaped")
        if other in wanted:
            found[other] = value
    return found


def has_arrow_names(names: Iterable[str]) -> bool:
    """Whether these are the names in Arrow, too."""
    return all(name == arrow_name(name) for name in names)


def _kind_of(value: object) -> str:
    """The type of a value, for messages."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "int" if -(1 << 63) <= value < 1 << 63 else "int of more than 64 bits"
    return "null" if value is None else _KINDS.get(type(value), "object")


_KINDS: dict[type, str] = {
    bool: "bool",
    str: "text",
    float: "float",
    bytes: "bytes",
    datetime: "time",
    list: "list",
}


class _Arrays:
    """Makes arrays of the values of columns, one column at a time.

    pyarrow's own conversion is for values that have the type already: it takes 1.5 for the integer 1, and text for a
    list of its letters. So the classes of all values are compared with those that the type accepts, which costs little:
    few columns have values of more than one class.
    """

    def __init__(self, pa: Any, to_json: ToJson, fields_of: FieldsOf) -> None:
        self._pa = pa
        self._to_json = to_json
        self._fields_of = fields_of

    def maker(self, path: str, kind: Any) -> Make:  # noqa: PLR0911 - one for each type
        """Returns the maker of the arrays of a column, of its items or of a field.

        Args:
            path: Its name in messages: `a.b` is a field of `a`, and `a[]` are its items.
            kind: Its Arrow type.
        """
        pa, types = self._pa, self._pa.types
        if types.is_struct(kind):
            return self._struct(path, kind)
        if types.is_map(kind):
            return self._map(path, kind)
        if types.is_fixed_size_list(kind):
            return self._fixed_list(path, kind)
        if types.is_list(kind) or types.is_large_list(kind):
            return self._list(path, kind)
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return self._text(kind)
        if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
            return self._recoded(path, kind, kind.value_type)
        if types.is_list_view(kind):
            return self._recoded(path, kind, pa.list_(kind.value_field))
        if types.is_large_list_view(kind):
            return self._recoded(path, kind, pa.large_list(kind.value_field))
        return self._scalar(path, kind)

    def _scalar(self, path: str, kind: Any) -> Make:  # noqa: PLR0911 - one for each type
        types = self._pa.types
        if types.is_boolean(kind):
            return self._leaf(path, kind, (bool,))
        if types.is_integer(kind):
            return self._integers(path, kind)
        if types.is_floating(kind):
            return self._floats(path, kind)
        if types.is_decimal(kind):
            return self._leaf(path, kind, (int,))
        if types.is_timestamp(kind):
            return self._times(path, kind)
        if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
            return self._leaf(path, kind, (bytes, str))
        # No value has any other type.
        return self._leaf(path, kind, (bytes,) if types.is_fixed_size_binary(kind) else ())

    def column(self, path: str, field: Any) -> Make:
        """The same for a column or items of this field, which may have to be without nulls."""
        make = self.maker(path, field.type)

        def make_without_nulls(values: list[Any]) -> Any:
            self._check_nulls(path, field, values)
            return make(values)

        return make if field.nullable else make_without_nulls

    def _check_nulls(self, path: str, field: Any, values: list[Any]) -> None:
        """Raises `MisfitError` if there is a null, and the field must not have any."""
        if not field.nullable and any(value is None for value in values):
            raise self._misfit(path, field.type, None)

    def _misfit(self, path: str, kind: Any, value: object, why: object = None) -> MisfitError:
        name = _kind_of(value)
        reason = "" if why is None else f": {why}"
        return MisfitError(f"the column {path!r} is {kind}, and cannot have a value of type {name}{reason}")

    def _check(self, path: str, kind: Any, values: list[Any], classes: _Classes) -> None:
        for cls in set(map(type, values)):
            # A bool is an int to Python.
            is_accepted = issubclass(cls, classes) and (cls is not bool or bool in classes)
            if not is_accepted and cls is not type(None):
                raise self._misfit(path, kind, next(value for value in values if type(value) is cls))

    def _array(self, path: str, kind: Any, values: list[Any]) -> Any:
        errors = (self._pa.ArrowException, OverflowError, TypeError, ValueError)
        try:
            return self._pa.array(values, kind)
        except MemoryError:
            # One of Arrow's exceptions is a `MemoryError`, too. It is not about the values.
            raise
        except errors:
            for value in values:
                try:
                    self._pa.array([value], kind)
                except errors as error:
                    raise self._misfit(path, kind, value, error) from None
            raise

    def _leaf(self, path: str, kind: Any, classes: _Classes) -> Make:
        def make(values: list[Any]) -> Any:
            self._check(path, kind, values, classes)
            return self._array(path, kind, values)

        return make

    def _integers(self, path: str, kind: Any) -> Make:
        def integer(value: Any) -> Any:
            if not isinstance(value, float):
                return value
            if not value.is_integer():
                raise self._misfit(path, kind, value, f"{value!r} would be changed")
            return int(value)

        def make(values: list[Any]) -> Any:
            self._check(path, kind, values, (int, float))
            return self._array(path, kind, [integer(value) for value in values])

        return make

    def _floats(self, path: str, kind: Any) -> Make:
        is_narrow = kind.bit_width < self._pa.float64().bit_width

        def make(values: list[Any]) -> Any:
            self._check(path, kind, values, (int, float))
            array = self._array(path, kind, values)
            # pyarrow refuses only integers that would be rounded. NaN is not equal to itself.
            for value, stored in zip(values, array.to_pylist(), strict=True) if is_narrow else ():
                if value != stored and value == value:  # noqa: PLR0124
                    raise self._misfit(path, kind, value, f"{value!r} would be changed")
            return array

        return make

    def _times(self, path: str, kind: Any) -> Make:
        divisor = {"s": 1_000_000, "ms": 1_000}.get(kind.unit, 1)

        def make(values: list[Any]) -> Any:
            self._check(path, kind, values, (datetime,))
            for value in values if divisor > 1 else ():
                if value is not None and value.microsecond % divisor:
                    raise self._misfit(path, kind, value, f"{value.isoformat()} would be changed")
            return self._array(path, kind, values)

        return make

    def _text(self, kind: Any) -> Make:
        def make(values: list[Any]) -> Any:
            values = [value if isinstance(value, str) else self._json(value) for value in values]
            try:
                return self._pa.array(values, kind)
            except UnicodeEncodeError:
                return self._pa.array([None if value is None else utf8(value) for value in values], kind)

        return make

    def _json(self, value: Any) -> str | None:
        """A value as JSON. A lone surrogate is its escape, six characters, as in other text."""
        if value is None:
            return None
        text = json_text(self._to_json(value))
        return text if text.isascii() else _SURROGATE.sub(lambda match: rf"\\u{ord(match[0]):04x}", text)

    def _recoded(self, path: str, kind: Any, plain: Any) -> Make:
        """For a type with another memory layout than `plain`, which has the same values."""
        make_plain = self.maker(path, plain)
        return lambda values: self._array(path, kind, make_plain(values).to_pylist())

    def _fields(self, path: str, kind: Any, values: list[Any]) -> list[Mapping[str, Any] | None]:
        if set(map(type, values)) <= {dict, type(None)}:
            return values
        found: list[Mapping[str, Any] | None] = []
        for value in values:
            fields = None if value is None else self._fields_of(value)
            if fields is None and value is not None:
                raise self._misfit(path, kind, value)
            found.append(fields)
        return found

    def _struct(self, path: str, kind: Any) -> Make:
        pa = self._pa
        fields = list(kind)
        names = [field.name for field in fields]
        check_names(names, f"fields of the column {path!r}")
        parts = [
            (field.name, f"{path}.{field.name}", field, self.maker(f"{path}.{field.name}", field.type))
            for field in fields
        ]

        def make(values: list[Any]) -> Any:
            rows = self._fields(path, kind, values)
            present = [row for row in rows if row is not None]
            if not has_arrow_names(set[str]().union(*present)):
                rows = [None if row is None else with_arrow_names(row, names) for row in rows]
                present = [row for row in rows if row is not None]
            arrays: list[Any] = []
            for name, inside, field, make_inside in parts:
                if not field.nullable:
                    self._check_nulls(inside, field, [row.get(name) for row in present])
                arrays.append(make_inside([None if row is None else row.get(name) for row in rows]))
            if not arrays:
                return pa.array([None if row is None else {} for row in rows], kind)
            mask = None if len(present) == len(rows) else pa.array([row is None for row in rows])
            return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)

        return make

    def _starts(self, parts: list[Any], kind: Any) -> Any:
        """Where each part begins among the items of all, and where the last one ends; null for one that is null."""
        ends = list(accumulate((0 if part is None else len(part) for part in parts), initial=0))
        starts = [None if part is None else start for part, start in zip(parts, ends, strict=False)]
        return self._pa.array([*starts, ends[-1]], kind)

    def _list(self, path: str, kind: Any) -> Make:
        pa = self._pa
        make_items = self.column(f"{path}[]", kind.value_field)

        def make(values: list[Any]) -> Any:
            self._check(path, kind, values, (list,))
            items = list(chain.from_iterable(value for value in values if value is not None))
            if pa.types.is_large_list(kind):
                return pa.LargeListArray.from_arrays(self._starts(values, pa.int64()), make_items(items), type=kind)
            return pa.ListArray.from_arrays(self._starts(values, pa.int32()), make_items(items), type=kind)

        return make

    def _fixed_list(self, path: str, kind: Any) -> Make:
        pa = self._pa
        field, inside = kind.value_field, f"{path}[]"
        make_items = self.maker(inside, field.type)

        def make(values: list[Any]) -> Any:
            self._check(path, kind, values, (list,))
            present = [value for value in values if value is not None]
            for value in present:
                if len(value) != kind.list_size:
                    raise self._misfit(path, kind, value, f"it has {len(value)} items")
            self._check_nulls(inside, field, list(chain.from_iterable(present)))
            nulls = [None] * kind.list_size
            items = list(chain.from_iterable(nulls if value is None else value for value in values))
            mask = pa.array([value is None for value in values], pa.bool_())
            return pa.FixedSizeListArray.from_arrays(make_items(items), type=kind, mask=mask)

        return make

    def _map(self, path: str, kind: Any) -> Make:
        pa = self._pa
        make_keys, make_items = self.maker(f"{path}[]", kind.key_type), self.column(f"{path}[]", kind.item_field)

        def make(values: list[Any]) -> Any:
            rows = self._fields(path, kind, values)
            present = [row for row in rows if row is not None]
            keys = list(chain.from_iterable(present))
            items = list(chain.from_iterable(row.values() for row in present))
            starts = self._starts(rows, pa.int32())
            return pa.MapArray.from_arrays(starts, make_keys(keys), make_items(items), type=kind)

        return make


class GivenBatches:
    """Makes batches of rows, with the columns of a schema. All else in rows is left out.

    Attributes:
        schema: The `pyarrow.Schema` of the batches.
    """

    def __init__(self, payload: Payload, schema: Any) -> None:
        """Raises `SameNamesError` if two columns, or two fields of one, have the same name."""
        pa: Any = import_module("pyarrow")
        self._pa = pa
        self.schema = schema
        check_names(schema.names, "columns")
        arrays = _Arrays(pa, payload.to_json(), payload.fields_of())
        self._makers: dict[str, Make] = {field.name: arrays.column(field.name, field) for field in schema}

    def of(self, records: Records) -> Iterator[Any]:
        """The rows, which have the offsets of their records, in batches of few cells.

        Raises:
            MisfitError: A value does not fit its column.
        """
        count = max(CELL_COUNT_MAX // len(self._makers), 1)
        for begin in range(0, len(records.rows), count):
            rows, offsets = records.rows[begin : begin + count], records.offsets[begin : begin + count]
            try:
                batch = self._batch(rows)
            except MisfitError as error:
                raise self._first_misfit(rows, offsets, error) from None
            yield batch

    def _batch(self, rows: list[dict[str, Any]]) -> Any:
        names = set[str]().union(*rows)
        if not has_arrow_names(names):
            rows = [with_arrow_names(row, self._makers) for row in rows]
            names = {arrow_name(name) for name in names}
        # One column at a time: cells are larger as Python objects than in Arrow.
        arrays = [
            self._makers[field.name]([row.get(field.name) for row in rows])
            if field.name in names or not field.nullable
            else self._pa.nulls(len(rows), field.type)
            for field in self.schema
        ]
        return self._pa.record_batch(arrays, schema=self.schema)

    def _first_misfit(self, rows: list[dict[str, Any]], offsets: Sequence[int], error: MisfitError) -> MisfitError:
        """The error of the first row that does not fit, with the offset of its record. `error` is that of any row."""
        begin, end = 0, len(rows)
        while begin < end:
            middle = (begin + end) // 2
            try:
                self._batch(rows[begin : middle + 1])
            except MisfitError as earlier:
                error, end = earlier, middle
            else:
                begin = middle + 1
        error.offset = offsets[end]
        return error
