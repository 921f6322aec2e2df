"""Rows as Arrow batches, made by pyarrow."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cordwood._tables.arrays import (
    Arrays,
    Make,
    arrow_name,
    check_names,
    has_arrow_names,
    with_arrow_names,
)
from cordwood._tables.schema import ColumnType, MisfitError, leaf_count, new_column

if TYPE_CHECKING:
    from cordwood._tables.native import NativeBatches, NativeColumns, Records
    from cordwood._tables.payloads import Payload

# With fewer, the table would need more room for Parquet's metadata about each column of each row group.
_CELL_COUNT_MAX = 1 << 22


class Batches:
    """Makes batches of rows.

    Attributes:
        schema: The `pyarrow.Schema` of the batches.
    """

    def __init__(
        self,
        payload: Payload,
        columns: Mapping[str, ColumnType] | Any,
        known: Collection[str] | None = None,
    ) -> None:
        """`columns` are those of `Columns`, or a `pyarrow.Schema`. All else in rows is left out.

        If `known` is given, it has the names of all columns that were found, and a row with any other is an error.

        Raises:
            SameNamesError: Two columns, or two fields of one, have the same name in Arrow.
        """
        pa: Any = import_module("pyarrow")
        self._pa = pa
        self._payload = payload
        self._known = None if known is None else frozenset(known)
        arrays = Arrays(pa, payload.to_json(), payload.shapes())
        self._check_nulls = arrays.check_nulls
        found: Mapping[str, ColumnType | None]
        self._is_given = False
        if isinstance(columns, pa.Schema):
            self._is_given = True
            self.schema: Any = columns
            found = dict.fromkeys(self.schema.names)
            check_names(self.schema.names, "columns")
            self._leaf_counts = dict.fromkeys(found, 1)
        else:
            self.schema = pa.schema([(arrow_name(name), arrays.type_of(kind)) for name, kind in columns.items()])
            found = columns
            check_names(self.schema.names, "columns")
            self._leaf_counts = {name: leaf_count(kind) for name, kind in columns.items()}
        self._makers: dict[str, tuple[Any, Make]] = {
            name: (field, arrays.maker(name, field.type, kind))
            for field, (name, kind) in zip(self.schema, found.items(), strict=True)
        }
        self._columns = columns

    def of(
        self,
        rows: list[dict[str, Any]] | Records,
        offsets: Sequence[int] = (),
        *,
        found: NativeColumns | None = None,
    ) -> Iterator[Any]:
        """The rows in batches, none with very many cells: a column that is in any row takes room in each.

        `offsets` are the file offsets of their records, for errors. If `found` is given, it learns from records.

        Raises:
            GrownError: With `found`: the table needs other columns than it has.
            MisfitError: A value does not fit its column.
        """
        if not isinstance(rows, list):
            yield from self._native.of(rows, found)
            return
        begin = width = 0
        names: set[str] = set()
        for index, row in enumerate(rows):
            new = row.keys() - names
            wider = width + sum(self._leaf_counts.get(name, 0) for name in new)
            if (index + 1 - begin) * wider > _CELL_COUNT_MAX and index > begin:
                yield self._batch(rows[begin:index], names, offsets[begin:index])
                begin, names = index, set(row)
                width = sum(self._leaf_counts.get(name, 0) for name in names)
            elif new:
                names |= new
                width = wider
        if rows[begin:]:
            yield self._batch(rows[begin:], names, offsets[begin:])

    @functools.cached_property
    def _native(self) -> NativeBatches:
        from cordwood._tables.native import NativeBatches

        return NativeBatches(
            self._payload,
            self.schema,
            self._columns,
            self._known or (),
            cell_count_max=_CELL_COUNT_MAX,
            check=lambda row: self._batch([row], set(row)),
        )

    def _batch(self, rows: list[dict[str, Any]], names: set[str], offsets: Sequence[int] = ()) -> Any:
        """A batch of rows that have values only in these columns. All other columns share one array for each type."""
        if self._known is not None and (new := names - self._known):
            name, index = min((name, index) for index, row in enumerate(rows) for name in new & row.keys())
            raise _at(new_column(name), offsets, index)
        if self._is_given and not has_arrow_names(names):
            # A schema that was given has the names of Arrow.
            rows = [self._with_arrow_names(row, offsets, index) for index, row in enumerate(rows)]
            names = {arrow_name(name) for name in names}
        if not self._makers:
            # Only an array says how many rows there are.
            return self._pa.RecordBatch.from_struct_array(self._pa.array([{}] * len(rows), self._pa.struct([])))
        nulls: dict[Any, Any] = {}
        arrays: list[Any] = []
        # One column at a time: cells are larger as Python objects than in Arrow.
        for name, (field, _) in self._makers.items():
            if name in names or not field.nullable:
                arrays.append(self._array(name, [row.get(name) for row in rows], offsets))
            else:
                if field.type not in nulls:
                    nulls[field.type] = self._pa.nulls(len(rows), field.type)
                arrays.append(nulls[field.type])
        return self._pa.record_batch(arrays, schema=self.schema)

    def _with_arrow_names(self, row: dict[str, Any], offsets: Sequence[int], index: int) -> dict[str, Any]:
        try:
            return with_arrow_names(row, self._makers)
        except MisfitError as error:
            raise _at(error, offsets, index) from None

    def _array(self, name: str, values: list[Any], offsets: Sequence[int]) -> Any:
        field, make = self._makers[name]

        def made(begin: int, end: int) -> Any:
            self._check_nulls(name, field, values[begin:end])
            return make(values[begin:end])

        try:
            return made(0, len(values))
        except MisfitError as error:
            # Which record it is in: that of the first row that does not fit, in the first half that does not fit.
            first, begin, end = error, 0, len(values)
            while end - begin > 1:
                middle = (begin + end) // 2
                try:
                    made(begin, middle)
                except MisfitError as earlier:
                    first, end = earlier, middle
                else:
                    begin = middle
            try:
                made(begin, end)
            except MisfitError as alone:
                first = alone
            raise _at(first, offsets, begin) from None


def _at(error: MisfitError, offsets: Sequence[int], index: int) -> MisfitError:
    if offsets:
        error.offset = offsets[index]
    return error
