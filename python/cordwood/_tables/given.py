"""Rows as Arrow batches of a given schema, made by pyarrow: a value that would be changed is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from itertools import chain, islice
from operator import is_
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from cordwood._tables.columns import CELL_COUNT_MAX, Records
from cordwood._tables.json_text import json_text
from cordwood._tables.schema import MisfitError, arrow_name, check_names, utf8

if TYPE_CHECKING:
    from cordwood._tables.payloads import Payload

Fit: TypeAlias = Callable[[list[Any]], list[Any]]
"""Returns values as pyarrow accepts them for a column: the same list if none changes, as is usual.

It raises `MisfitError` if one does not fit.
"""

_SURROGATE = re.compile("[\ud800-\udfff]")


def _with_arrow_names(rows: list[Mapping[str, Any]], wanted: Collection[str]) -> list[Mapping[str, Any]]:
    """The same rows or objects, of which at least the wanted values have their names in Arrow.

    Raises:
        MisfitError: Two values of one have the same name.
    """
    if all(name == arrow_name(name) for name in set[str]().union(*rows)):
        return rows
    found: list[Mapping[str, Any]] = []
    for row in rows:
        renamed: dict[str, Any] = {}
        for name, value in row.items():
            other = arrow_name(name)
            if other in renamed:
                raise MisfitError(f"two values have the name {other!r} in a table, where some characters are escaped")
            if other in wanted:
                renamed[other] = value
        found.append(renamed)
    return found


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


class _Fits:
    """Makes the functions that fit values into columns, one column at a time.

    pyarrow's own conversion is for values that have the type already: it takes 1.5 for the integer 1, and text for a
    list of its letters. So the classes of all values are compared with those that the type accepts, which costs little:
    few columns have values of more than one class.
    """

    def __init__(self, payload: Payload) -> None:
        self._pa: Any = import_module("pyarrow")
        self._to_json = payload.to_json()
        self._fields_of = payload.fields_of()

    def column(self, path: str, field: Any) -> Fit:
        """For a column, or for fields or items in one, where `None` is null.

        Args:
            path: Its name in messages: `a.b` is a field of `a`, and `a[]` are its items.
            field: Its field in Arrow.
        """
        fit = self._fit(path, field.type)

        def fit_present(values: list[Any]) -> list[Any]:
            present = [value for value in values if value is not None]
            if len(present) < len(values) and not field.nullable:
                raise _misfit(path, field.type, None)
            fitted = fit(present)
            if fitted is present:
                return values
            left = iter(fitted)
            return [None if value is None else next(left) for value in values]

        return fit_present

    def array(self, path: str, kind: Any, values: list[Any]) -> Any:
        """The array of values that have been fitted, or only of their classes."""
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
                    raise _misfit(path, kind, value, error) from None
            raise

    def _fit(self, path: str, kind: Any) -> Fit:  # noqa: PLR0911 - one for each type
        types = self._pa.types
        if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
            return self._fit(path, kind.value_type)
        if types.is_struct(kind):
            return self._struct(path, kind)
        if types.is_map(kind):
            return self._map(path, kind)
        # Lists of all kinds.
        if hasattr(kind, "value_field"):
            return self._list(path, kind)
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return self._text
        if types.is_integer(kind):
            return self._integers(path, kind)
        if types.is_floating(kind):
            return self._floats(path, kind)
        if types.is_timestamp(kind):
            return self._times(path, kind)
        if types.is_boolean(kind):
            return self._leaf(path, kind, bool)
        if types.is_decimal(kind):
            return self._leaf(path, kind, int)
        if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
            return self._leaf(path, kind, bytes, str)
        if types.is_fixed_size_binary(kind):
            return self._leaf(path, kind, bytes)
        # No value has any other type.
        return self._leaf(path, kind)

    def _leaf(self, path: str, kind: Any, *classes: type) -> Fit:
        def fit(values: list[Any]) -> list[Any]:
            _check_classes(path, kind, values, *classes)
            if values:
                self.array(path, kind, values)
            return values

        return fit

    def _integers(self, path: str, kind: Any) -> Fit:
        fit_integers = self._leaf(path, kind, int)

        def integer(value: Any) -> Any:
            if not isinstance(value, float):
                return value
            if not value.is_integer():
                raise _misfit(path, kind, value, f"{value!r} would be changed")
            return int(value)

        def fit(values: list[Any]) -> list[Any]:
            return fit_integers([integer(value) for value in values] if float in set(map(type, values)) else values)

        return fit

    def _floats(self, path: str, kind: Any) -> Fit:
        is_narrow = kind.bit_width < self._pa.float64().bit_width

        def fit(values: list[Any]) -> list[Any]:
            _check_classes(path, kind, values, int, float)
            array = self.array(path, kind, values)
            # pyarrow refuses only integers that would be rounded. NaN is not equal to itself.
            for value, stored in zip(values, array.to_pylist(), strict=True) if is_narrow else ():
                if value != stored and value == value:  # noqa: PLR0124
                    raise _misfit(path, kind, value, f"{value!r} would be changed")
            return values

        return fit

    def _times(self, path: str, kind: Any) -> Fit:
        fit_times = self._leaf(path, kind, datetime)
        divisor = {"s": 1_000_000, "ms": 1_000}.get(kind.unit, 1)

        def fit(values: list[Any]) -> list[Any]:
            for value in fit_times(values):
                if value.microsecond % divisor:
                    raise _misfit(path, kind, value, f"{value.isoformat()} would be changed")
            return values

        return fit

    def _text(self, values: list[Any]) -> list[Any]:
        fitted = [utf8(value) if isinstance(value, str) else self._json(value) for value in values]
        return values if fitted == values else fitted

    def _json(self, value: Any) -> str:
        """A value as JSON. A lone surrogate is its escape, six characters, as in other text."""
        text = json_text(self._to_json(value))
        return text if text.isascii() else _SURROGATE.sub(lambda match: rf"\\u{ord(match[0]):04x}", text)

    def _objects(self, path: str, kind: Any, values: list[Any]) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        for value in values:
            fields = self._fields_of(value)
            if fields is None:
                raise _misfit(path, kind, value)
            found.append(fields)
        return found

    def _struct(self, path: str, kind: Any) -> Fit:
        names = [field.name for field in kind]
        check_names(names, f"fields of the column {path!r}")
        fits = [self.column(f"{path}.{field.name}", field) for field in kind]

        def fit(values: list[Any]) -> list[Any]:
            rows = _with_arrow_names(self._objects(path, kind, values), names)
            columns = [[row.get(name) for row in rows] for name in names]
            fitted = [fit(column) for fit, column in zip(fits, columns, strict=True)]
            if all(map(is_, fitted, columns)):
                # pyarrow ignores other fields.
                return rows
            return [dict(zip(names, cells, strict=True)) for cells in zip(*fitted, strict=True)]

        return fit

    def _list(self, path: str, kind: Any) -> Fit:
        fit_items = self.column(f"{path}[]", kind.value_field)
        count = kind.list_size if self._pa.types.is_fixed_size_list(kind) else None

        def fit(values: list[Any]) -> list[Any]:
            _check_classes(path, kind, values, list)
            for value in () if count is None else values:
                if len(value) != count:
                    raise _misfit(path, kind, value, f"it has {len(value)} items")
            items = list(chain.from_iterable(values))
            fitted = fit_items(items)
            if fitted is items:
                return values
            left = iter(fitted)
            return [list(islice(left, len(value))) for value in values]

        return fit

    def _map(self, path: str, kind: Any) -> Fit:
        fit_keys, fit_items = (self.column(f"{path}[]", field) for field in (kind.key_field, kind.item_field))

        def fit(values: list[Any]) -> list[Any]:
            rows = self._objects(path, kind, values)
            keys = fit_keys(list(chain.from_iterable(rows)))
            items = fit_items(list(chain.from_iterable(row.values() for row in rows)))
            pairs = zip(keys, items, strict=True)
            return [list(islice(pairs, len(row))) for row in rows]

        return fit


def _misfit(path: str, kind: Any, value: object, why: object = None) -> MisfitError:
    reason = "" if why is None else f": {why}"
    return MisfitError(f"the column {path!r} is {kind}, and cannot have a value of type {_kind_of(value)}{reason}")


def _check_classes(path: str, kind: Any, values: list[Any], *classes: type) -> None:
    for cls in set(map(type, values)):
        # A bool is an int to Python.
        if not issubclass(cls, classes) or (cls is bool and bool not in classes):
            raise _misfit(path, kind, next(value for value in values if type(value) is cls))


class GivenBatches:
    """Makes batches of rows, with the columns of a schema. All else in rows is left out.

    Attributes:
        schema: The `pyarrow.Schema` of the batches.
    """

    def __init__(self, payload: Payload, schema: Any) -> None:
        """Raises `SameNamesError` if two columns, or two fields of one, have the same name."""
        self.schema = schema
        check_names(schema.names, "columns")
        self._pa: Any = import_module("pyarrow")
        self._fits = _Fits(payload)
        self._columns: dict[str, Fit] = {field.name: self._fits.column(field.name, field) for field in schema}

    def of(self, records: Records) -> Iterator[Any]:
        """The rows, which have the offsets of their records, in batches of few cells.

        Raises:
            MisfitError: A value does not fit its column.
        """
        count = max(CELL_COUNT_MAX // len(self._columns), 1)
        for begin in range(0, len(records.rows), count):
            rows, offsets = records.rows[begin : begin + count], records.offsets[begin : begin + count]
            try:
                batch = self._batch(rows)
            except MisfitError as error:
                raise self._first_misfit(rows, offsets, error) from None
            yield batch

    def _batch(self, rows: list[dict[str, Any]]) -> Any:
        named = _with_arrow_names(cast("list[Mapping[str, Any]]", rows), self._columns)
        names = set[str]().union(*named)
        # One column at a time: cells are larger as Python objects than in Arrow.
        arrays = [
            self._array(field, [row.get(field.name) for row in named])
            if field.name in names or not field.nullable
            else self._pa.nulls(len(rows), field.type)
            for field in self.schema
        ]
        return self._pa.record_batch(arrays, schema=self.schema)

    def _array(self, field: Any, values: list[Any]) -> Any:
        return self._fits.array(field.name, field.type, self._columns[field.name](values))

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
