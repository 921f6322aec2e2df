"""Records as Arrow batches, which the native module makes without rows in Python.

The naive counterpart is the rows of `decoders`, the columns of `learner` and the batches of `arrow`: the tables are
equal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from cordwood._native import Record, RecordBatch, TableBuilder, TableLearner
from cordwood._tables.decoders import LeaveOut, Log
from cordwood._tables.learner import COLUMN_COUNT_MAX, FIELD_COUNT_MAX, LEVEL_COUNT_MAX, Columns
from cordwood._tables.payloads import Payload
from cordwood._tables.schema import ColumnType, MisfitError, TooManyColumnsError
from cordwood.errors import PayloadError
from cordwood.payload._error import payload_error
from cordwood.types import PayloadReason

ROW_COUNT_MAX = 1 << 16
"""The most rows in an Arrow batch."""


class Records(NamedTuple):
    """Records of a log that have not been turned into rows yet."""

    batch: RecordBatch
    first: Mapping[str, str | None]
    """The columns that each row begins with."""
    leave_out: LeaveOut
    """Gets each record that cannot be read."""
    leave_out_value: LeaveOut
    """Gets each value that cannot be read."""
    begin: int = 0
    """The index in the batch of the first record."""


def record_at(batch: RecordBatch, index: int) -> Record:
    """A record of a batch."""
    offset = batch.record_offsets[index]
    return Record(offset=offset, end_offset=offset, data=batch[index])


def _leave_out(payload: Payload, records: Records, index: int) -> None:
    """Leaves out a record, or those of its values that cannot be read. Decoding it in Python finds the errors."""
    record = record_at(records.batch, index)
    has_values = False

    def leave_out_value(record: Record, error: PayloadError) -> None:
        nonlocal has_values
        has_values = True
        records.leave_out_value(record, error)

    try:
        payload.rows(Log(None, leave_out=leave_out_value)).of_record(record)
    except PayloadError as error:
        records.leave_out(record, error)
    else:
        if not has_values:
            message = "two values have one name in a table, where lone surrogates are escaped"
            records.leave_out(record, payload_error(message, record.data, PayloadReason.NON_CANONICAL))


class HasOriginError(ValueError):
    """A log whose rows have a column with the name of the table's further column."""


class GrownError(Exception):
    """A record that adds a column to those that a table has, or makes one of another type.

    Attributes:
        index: Its index in the batch.
    """

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


def _check(stop: str | None, index: int) -> None:
    """Raises the error for the reason for which a record was not taken."""
    if stop == "columns":
        raise TooManyColumnsError(f"more than {COLUMN_COUNT_MAX:,} columns")
    if stop == "origin":
        raise HasOriginError
    if stop == "grown":
        raise GrownError(index)


class NativeColumns(Columns):
    """Learns the columns of a table from records."""

    takes_records = True

    def __init__(self, payload: Payload, origin: str | None) -> None:
        """`origin` is a further column of the table."""
        super().__init__(payload.shapes())
        self._payload = payload
        self._origin = origin
        self._native: TableLearner = TableLearner(
            payload.name,
            column_count_max=COLUMN_COUNT_MAX - (origin is not None),
            field_count_max=FIELD_COUNT_MAX,
            level_count_max=LEVEL_COUNT_MAX,
        )

    def learn(self, records: Records) -> None:
        """Takes records into account.

        Raises:
            HasOriginError: A row has a column with the name of the further column.
            TooManyColumnsError: There are too many columns.
        """
        batch, begin = records.batch, records.begin
        while begin < len(batch):
            begin, left_out, stop = self._native.learn(batch, begin, self._origin)
            for index in left_out:
                _leave_out(self._payload, records, index)
            _check(stop, begin)

    @property
    def learner(self) -> tuple[TableLearner, str | None]:
        """The last arguments of `TableBuilder.build`."""
        return self._native, self._origin

    def types(self) -> dict[str, ColumnType]:
        """The columns by name, in the order in which they were first seen."""
        return dict(self._native.columns()[0])

    def conflicts(self) -> dict[str, list[str]]:
        """The types of each column that has several without a common type."""
        return dict(self._native.columns()[1])

    @property
    def overfull(self) -> list[str]:
        """The columns that are JSON because they would have too many fields."""
        return self._native.columns()[2]


class _Capsules:
    """A value that pyarrow accepts as a table. It would take a named tuple for a list of arrays."""

    def __init__(self, capsules: tuple[object, object]) -> None:
        self._capsules = capsules

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._capsules


class NativeBatches:
    """Makes batches of records, with the columns of a table."""

    def __init__(
        self,
        payload: Payload,
        schema: Any,
        columns: Mapping[str, ColumnType],
        known: Collection[str],
        *,
        cell_count_max: int,
        check: Callable[[dict[str, Any]], object],
    ) -> None:
        """`columns` have the names in rows, which `schema` may escape; `known` are all columns that rows may have.

        `check` raises the error for a row with a value that does not fit its column.
        """
        from importlib import import_module

        self._pa: Any = import_module("pyarrow")
        self._payload = payload
        self._check = check
        self._schema = schema
        self._names = list(columns)
        self._columns: dict[str, ColumnType | None] = {**dict.fromkeys(known), **columns}
        self._cell_count_max = cell_count_max
        self._builder: TableBuilder | None = None

    def of(self, records: Records, found: NativeColumns | None = None) -> Iterator[Any]:
        """The rows of records in batches. If `found` is given, it learns from them, as `learn` does.

        Raises:
            GrownError: With `found`: the table needs other columns than it has.
            MisfitError: A value does not fit its column, or is in none.
        """
        if self._builder is None:
            # The first columns of all rows are not in the records.
            columns = [(name, kind) for name, kind in self._columns.items() if name not in records.first]
            self._builder = TableBuilder(
                self._payload.name, columns, row_count_max=ROW_COUNT_MAX, cell_count_max=self._cell_count_max
            )
        batch, begin = records.batch, records.begin
        learner, origin = found.learner if found else (None, None)
        while begin < len(batch):
            begin, left_out, stop, names, row_count, capsules = self._builder.build(batch, begin, learner, origin)
            for index in left_out:
                _leave_out(self._payload, records, index)
            if stop == "misfit":
                raise self._misfit(record_at(batch, begin))
            _check(stop, begin)
            if row_count:
                columns = self._pa.record_batch(_Capsules(capsules)).columns
                yield self._whole(dict(zip(names, columns, strict=True)), row_count, records.first)

    def _misfit(self, record: Record) -> MisfitError:
        """The error for a record with a value that does not fit its column, as the naive counterpart finds it."""
        error = MisfitError("the record has a value that its column cannot have")
        rows: Iterable[dict[str, Any]] = self._payload.rows(Log(None)).of_record(record)
        for row in rows:
            try:
                self._check(row)
            except MisfitError as found:
                error = found
        error.offset = record.offset
        return error

    def _whole(self, found: dict[str, Any], row_count: int, first: Mapping[str, str | None]) -> Any:
        """A batch with all columns. Those without a value share one array for each type."""
        pa = self._pa
        if not self._schema.names:
            # Without an array, only this says how many rows there are.
            return pa.RecordBatch.from_struct_array(pa.array([{}] * row_count, pa.struct([])))
        nulls: dict[Any, Any] = {}
        arrays: list[Any] = []
        for field, name in zip(self._schema, self._names, strict=True):
            kind = field.type
            if name in first:
                arrays.append(pa.repeat(pa.scalar(first[name], kind), row_count))
            elif name in found:
                arrays.append(found[name])
            else:
                if kind not in nulls:
                    nulls[kind] = pa.nulls(row_count, kind)
                arrays.append(nulls[kind])
        return pa.record_batch(arrays, schema=self._schema)
