"""Rows as Arrow batches, made by pyarrow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from cordwood._tables.json_text import Streamed, json_pieces, json_text
from cordwood._tables.schema import ColumnType, ListOf, Shapes, StructOf, ToJson, leaf_count

if TYPE_CHECKING:
    from cordwood._tables.entity_batches import EntityBatches, EntityRecords

_Cell: TypeAlias = Callable[[Any], object]

_SAME = frozenset(("bool", "int", "uint", "float", "bytes", "time"))
"""Types whose values pyarrow accepts as they are."""

# With fewer, the table would need more room for what Parquet records about each column of each row group.
_CELL_COUNT_MAX = 1 << 22


def utf8(text: str) -> str:
    """Escapes lone surrogates, which JSON can contain and UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class Batches:
    """Makes batches of rows.

    Attributes:
        schema: The `pyarrow.Schema` of the batches.
    """

    def __init__(
        self,
        columns: Mapping[str, ColumnType] | Any,
        to_json: ToJson,
        shapes: Shapes | None = None,
        known: Iterable[str] = (),
    ) -> None:
        """`columns` are those of `Columns`, or a `pyarrow.Schema`. All else in rows, `known` or not, is left out."""
        pa: Any = import_module("pyarrow")
        self._pa = pa
        self._fields_of = (shapes or Shapes()).fields_of
        self._to_json = to_json
        self._known = known
        if isinstance(columns, pa.Schema):
            self.schema: Any = columns
            self._types = {field.name: field.type for field in self.schema}
            self._cells = {name: self._given_cell(kind) for name, kind in self._types.items()}
            self._leaf_counts = dict.fromkeys(self._types, 1)
        else:
            self._types = {name: self._arrow_type(kind) for name, kind in columns.items()}
            self._cells = {name: self._cell(kind) for name, kind in columns.items()}
            self._leaf_counts = {name: leaf_count(kind) for name, kind in columns.items()}
            self.schema = pa.schema([(utf8(name), kind) for name, kind in self._types.items()])
        self._columns = columns

    def of(self, rows: list[dict[str, Any]] | EntityRecords) -> Iterator[Any]:
        """The rows in batches, none with very many cells: a column that is in any row takes room in each."""
        if not isinstance(rows, list):
            yield from self._entity_batches.of(rows)
            return
        begin = width = 0
        names: set[str] = set()
        for index, row in enumerate(rows):
            new = row.keys() - names
            wider = width + sum(self._leaf_counts.get(name, 0) for name in new)
            if (index + 1 - begin) * wider > _CELL_COUNT_MAX and index > begin:
                yield self._batch(rows[begin:index], names)
                begin, names = index, set(row)
                width = sum(self._leaf_counts.get(name, 0) for name in names)
            elif new:
                names |= new
                width = wider
        if rows[begin:]:
            yield self._batch(rows[begin:], names)

    def of_all(self, all_records: Iterable[EntityRecords]) -> Iterator[Any]:
        """The rows of all records in batches, which are made ahead in threads."""
        return self._entity_batches.of_all(all_records)

    @functools.cached_property
    def _entity_batches(self) -> EntityBatches:
        from cordwood._tables.entity_batches import EntityBatches

        columns = {**dict.fromkeys(self._known), **self._columns}
        return EntityBatches(self._pa, self.schema, columns, _CELL_COUNT_MAX)

    def _batch(self, rows: list[dict[str, Any]], names: set[str]) -> Any:
        """A batch of rows that have values only in these columns. All other columns share one array for each type."""
        nulls: dict[Any, Any] = {}
        arrays: list[Any] = []
        # One column at a time: cells are larger as Python objects than in Arrow.
        for name, kind in self._types.items():
            if name in names:
                cell = self._cells[name]
                values = [row.get(name) for row in rows]
                try:
                    if cell is not None:
                        values = [None if value is None else cell(value) for value in values]
                    arrays.append(self._pa.array(values, kind))
                except (self._pa.ArrowException, OverflowError, TypeError, ValueError) as error:
                    raise ValueError(f"the column {name} is {kind}, and cannot have this: {error}") from error
            else:
                if kind not in nulls:
                    nulls[kind] = self._pa.nulls(len(rows), kind)
                arrays.append(nulls[kind])
        return self._pa.record_batch(arrays, schema=self.schema)

    def _arrow_type(self, kind: ColumnType) -> Any:
        pa = self._pa
        if isinstance(kind, ListOf):
            return pa.list_(self._arrow_type(kind.item))
        if isinstance(kind, StructOf):
            return pa.struct([(utf8(name), self._arrow_type(inside)) for name, inside in kind.fields])
        return {
            "bool": pa.bool_,
            "int": pa.int64,
            "uint": pa.uint64,
            "float": pa.float64,
            "text": pa.string,
            "bytes": pa.binary,
            "time": lambda: pa.timestamp("us", tz="UTC"),
            "json": pa.string,
        }[kind]()

    def _cell(self, kind: ColumnType) -> _Cell | None:
        """The function that converts a value other than `None` to what pyarrow accepts; `None` if none is needed."""
        if isinstance(kind, ListOf):
            return self._list_cell(self._cell(kind.item))
        if isinstance(kind, StructOf):
            return self._struct_cell([(name, utf8(name), self._cell(inside)) for name, inside in kind.fields])
        return None if kind in _SAME else self._json_cell if kind == "json" else _text_cell

    def _given_cell(self, kind: Any) -> _Cell | None:  # noqa: PLR0911 - one for each type
        """The same for an Arrow type."""
        types = self._pa.types
        if types.is_struct(kind):
            return self._struct_cell([(field.name, field.name, self._given_cell(field.type)) for field in kind])
        if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            return self._list_cell(self._given_cell(kind.value_type))
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return lambda value: utf8(value) if isinstance(value, str) else self._json_cell(value)
        # pyarrow would change values of these types.
        if types.is_integer(kind):
            return lambda value: _exactly(value, not isinstance(value, float) or value.is_integer())
        if types.is_floating(kind):
            return lambda value: _exactly(value, not isinstance(value, bool))
        if types.is_timestamp(kind):
            divisor = {"s": 1_000_000, "ms": 1_000}.get(kind.unit, 1)
            return lambda value: _exactly(value, isinstance(value, datetime) and value.microsecond % divisor == 0)
        if types.is_temporal(kind):
            return lambda value: _exactly(value, False)  # noqa: FBT003 - there are no other times
        return None

    def _list_cell(self, cell: _Cell | None) -> _Cell | None:
        if cell is None:
            return None
        return lambda items: [None if item is None else cell(item) for item in items]

    def _struct_cell(self, fields: list[tuple[str, str, _Cell | None]]) -> _Cell:
        fields_of = self._fields_of

        def struct(value: Any) -> object:
            values = fields_of(value) or {}
            found: dict[str, object] = {}
            for name, shown, cell in fields:
                item = values.get(name)
                if item is not None:
                    found[shown] = item if cell is None else cell(item)
            return found

        return struct

    def _json_cell(self, value: Any) -> object:
        if type(value) is Streamed:
            array: list[object] = []
            return utf8("".join(json_pieces(array, array, value)))
        return utf8(json_text(self._to_json(value)))


def _exactly(value: object, is_exact: bool) -> object:  # noqa: FBT001 - the only thing to say of it
    if not is_exact:
        raise ValueError(f"{value!r} would be changed")
    return value


def _text_cell(value: Any) -> object:
    return utf8(str(value))
