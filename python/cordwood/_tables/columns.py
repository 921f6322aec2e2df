"""The columns of a table, which the native module learns and makes, from records or from rows.

It decodes the records of some payloads itself. Those of others become rows in Python first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cordwood._native import Record, RecordBatch, TableBuilder, TableLearner
from cordwood._tables.decoders import Log
from cordwood._tables.schema import (
    ColumnType,
    ListOf,
    MisfitError,
    StructOf,
    TooManyColumnsError,
    arrow_name,
    check_names,
    utf8,
)
from cordwood.errors import PayloadError
from cordwood.types import PayloadReason

if TYPE_CHECKING:
    from cordwood._tables.decoders import LeaveOut, Row
    from cordwood._tables.payloads import Payload

COLUMN_COUNT_MAX = 10_000
"""The most columns, as in BigQuery: records with more do not have one form. Fields in columns also count."""

FIELD_COUNT_MAX = 1_000
"""The most fields within one column: a column with more is a mapping whose keys are data."""

LEVEL_COUNT_MAX = 20
"""The most levels of lists and structures in a column. Datastore itself allows no more."""

ROW_COUNT_MAX = 1 << 16
"""The most rows in an Arrow batch."""

CELL_COUNT_MAX = 1 << 22
"""The most cells in an Arrow batch of several rows: a column that is in any row takes room in each.

With fewer, the table would need more room for Parquet's metadata about each column of each row group.
"""


def ignore(_record: Record, _error: PayloadError) -> None:
    """A `LeaveOut` that reports nothing."""


class Records(NamedTuple):
    """Records of a log, or rows that were made of records."""

    source: RecordBatch | list[Record] | list[Row]
    first: Mapping[str, str | None] = {}
    """The columns that each row begins with, which are not in `source`."""
    leave_out: LeaveOut = ignore
    """Gets each record that cannot be read."""
    leave_out_value: LeaveOut = ignore
    """Gets each value that cannot be read."""
    begin: int = 0
    """The index in `source` of the first record or row."""
    offsets: Sequence[int] = ()
    """The file offset of the record of each row, if it is known."""

    @property
    def rows(self) -> list[Row]:
        """The rows, where `source` contains rows."""
        return cast("list[Row]", self.source)

    def record(self, index: int) -> Record:
        """A record, where `source` contains records."""
        if not isinstance(self.source, RecordBatch):
            return cast("Record", self.source[index])
        offset = self.source.record_offsets[index]
        return Record(offset=offset, end_offset=offset, data=self.source[index])

    def offset(self, index: int) -> int | None:
        """The file offset of a record, or of the record of a row, if it is known."""
        if isinstance(self.source, list) and not isinstance(self.source[index], Record):
            return self.offsets[index] if self.offsets else None
        return self.record(index).offset


def rows_together(found: Iterable[tuple[int, int, Iterable[Row]]], len_max: int) -> Iterator[Records]:
    """The rows of many records at a time: at most `ROW_COUNT_MAX`, or those of about `len_max` bytes of records.

    Args:
        found: For each record, its offset, its length and its rows.
        len_max: Bytes of records.
    """
    rows: list[Row] = []
    offsets: list[int] = []
    rows_len = 0
    for offset, data_len, of_record in found:
        for row in of_record:
            rows.append(row)
            offsets.append(offset)
            if len(rows) >= ROW_COUNT_MAX:
                yield Records(rows, offsets=offsets)
                rows, offsets, rows_len = [], [], 0
        rows_len += data_len
        if rows_len >= len_max:
            yield Records(rows, offsets=offsets)
            rows, offsets, rows_len = [], [], 0
    if rows:
        yield Records(rows, offsets=offsets)


def leave_out(payload: Payload, records: Records, index: int) -> None:
    """Leaves out a record, or those of its values that cannot be read. Decoding it in Python finds the errors."""
    record = records.record(index)
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
            from cordwood.payload._error import payload_error

            message = "two values have one name in a table, where lone surrogates are escaped"
            records.leave_out(record, payload_error(message, record.data, PayloadReason.NON_CANONICAL))


class HasFirstError(ValueError):
    """A log whose rows have a column with the name of one of the columns that the table begins with."""


class GrownError(Exception):
    """A record that adds a column to those that a table has, or makes one of another type.

    Attributes:
        index: Its index in the source.
    """

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


def _check(stop: str | None, records: Records, index: int) -> None:
    """Raises the error for the reason for which a row was not taken."""
    match stop:
        case None:
            return
        case "columns":
            raise TooManyColumnsError(f"more than {COLUMN_COUNT_MAX:,} columns")
        case "first":
            raise HasFirstError
        case "grown":
            raise GrownError(index)
        case message:
            error = MisfitError(message)
            error.offset = records.offset(index)
            raise error


class Columns:
    """Learns the columns of a table.

    A column in which all values are of one type has that type. Integers and floating-point numbers together are
    floating-point, unless an integer is too large for that. Lists are lists of one such type, and objects are
    structures of all the fields that they have. All other values are JSON text. It keeps numbers, text and bytes apart,
    but not values that JSON cannot represent: times and NaN are text there.
    """

    def __init__(
        self,
        payload: Payload,
        first: Sequence[str] = (),
        *,
        chosen: Sequence[str] | None = None,
        are_rows: bool = False,
    ) -> None:
        """`first` are the columns that the table begins with, and `chosen` those that are wanted of the others.

        If `are_rows` or the payload is decoded in Python, `learn` takes rows, otherwise records.
        """
        self.takes_records: bool = payload.is_native and not are_rows
        self._payload = payload
        self._first = list(first)
        # The native module has names that are UTF-8.
        self._chosen = {utf8(name): name for name in chosen or () if name not in first}
        self._learner: TableLearner = TableLearner(
            payload.name if self.takes_records else None,
            None if chosen is None else list(self._chosen),
            column_count_max=COLUMN_COUNT_MAX - len(first),
            field_count_max=FIELD_COUNT_MAX,
            level_count_max=LEVEL_COUNT_MAX,
        )

    def learn(self, records: Records) -> int:
        """Takes records into account. Returns the number of their rows.

        Raises:
            HasFirstError: A row has a column with the name of one that the table begins with.
            TooManyColumnsError: There are too many columns.
        """
        row_count = 0
        begin = records.begin
        while begin < len(records.source):
            begin, left_out, stop, count = self._learner.learn(records.source, begin, self._first)
            for index in left_out:
                leave_out(self._payload, records, index)
            _check(stop, records, begin)
            row_count += count
        return row_count

    @property
    def learner(self) -> tuple[TableLearner, list[str]]:
        """The last arguments of `TableBuilder.build`."""
        return self._learner, self._first

    def types(self) -> dict[str, ColumnType]:
        """The columns by name, in the order in which they were first seen."""
        return {self._chosen.get(name, name): kind for name, kind in self._learner.columns()[0]}

    def conflicts(self) -> dict[str, list[str]]:
        """The types of each column that has several without a common type.

        `a.b` is a field of `a`, and `a[]` are its items.
        """
        return dict(self._learner.columns()[1])

    @property
    def overfull(self) -> list[str]:
        """The columns that are JSON because they would have too many fields."""
        return self._learner.columns()[2]


class _Capsules:
    """A value that pyarrow accepts as a table. It would take a named tuple for a list of arrays."""

    def __init__(self, capsules: tuple[object, object]) -> None:
        self._capsules = capsules

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._capsules


class Batches:
    """Makes Arrow batches with the columns of a table.

    Attributes:
        schema: The `pyarrow.Schema` of the batches.
    """

    def __init__(
        self,
        payload: Payload,
        columns: Mapping[str, ColumnType],
        known: Collection[str] = (),
        *,
        are_chosen: bool = False,
        are_rows: bool = False,
    ) -> None:
        """A row may have the `columns`, and those in `known`, which are left out.

        If `are_chosen`, it may have any others, and `a.b` is the field `b` of the column `a`. If `are_rows` or the
        payload is decoded in Python, `of` takes rows, otherwise records.

        Raises:
            SameNamesError: Two columns, or two fields of one, have the same name in Arrow.
        """
        pa: Any = import_module("pyarrow")
        self._pa = pa
        self._payload = payload
        self.schema: Any = pa.schema(
            [(arrow_name(name), _arrow_type(pa, name, kind)) for name, kind in columns.items()]
        )
        check_names(self.schema.names, "columns")
        self._names = list(columns)
        self._columns: dict[str, ColumnType | None] = {**dict.fromkeys(known), **columns}
        self._are_chosen = are_chosen
        self._native_name = payload.name if payload.is_native and not are_rows else None
        self._builder: tuple[TableBuilder, list[str]] | None = None

    def of(self, records: Records, found: Columns | None = None) -> Iterator[Any]:
        """The rows in batches. If `found` is given, it learns from them, as `learn` does.

        Raises:
            GrownError: With `found`: the table needs other columns than it has.
            MisfitError: A value does not fit its column, or is in none.
        """
        builder, names = self._builder = self._builder or self._new_builder(records.first)
        begin = records.begin
        learner, first = found.learner if found else (None, [])
        while begin < len(records.source):
            begin, left_out, stop, batches = builder.build(records.source, begin, learner, first)
            for index in left_out:
                leave_out(self._payload, records, index)
            _check(stop, records, begin)
            for numbers, row_count, capsules in batches:
                if row_count:
                    columns = self._pa.record_batch(_Capsules(capsules)).columns
                    made = {names[number]: column for number, column in zip(numbers, columns, strict=True)}
                    yield self._whole(made, row_count, records.first)

    def _new_builder(self, first: Collection[str]) -> tuple[TableBuilder, list[str]]:
        """A builder of the columns that are not the first of all rows, and their names."""
        columns = [(name, kind) for name, kind in self._columns.items() if name not in first]
        builder = TableBuilder(
            self._native_name,
            [(utf8(name), kind) for name, kind in columns] if self._native_name else columns,
            are_chosen=self._are_chosen,
            row_count_max=ROW_COUNT_MAX,
            cell_count_max=CELL_COUNT_MAX,
        )
        return builder, [name for name, _ in columns]

    def _whole(self, made: dict[str, Any], row_count: int, first: Mapping[str, str | None]) -> Any:
        """A batch with all columns. Those without a value share one array for each type."""
        pa = self._pa
        if not self._names:
            # Without an array, only this says how many rows there are.
            return pa.RecordBatch.from_struct_array(pa.array([{}] * row_count, pa.struct([])))
        nulls: dict[Any, Any] = {}
        arrays: list[Any] = []
        for field, name in zip(self.schema, self._names, strict=True):
            kind = field.type
            if name in first:
                arrays.append(pa.repeat(pa.scalar(first[name], kind), row_count))
            elif name in made:
                arrays.append(made[name])
            else:
                if kind not in nulls:
                    nulls[kind] = pa.nulls(row_count, kind)
                arrays.append(nulls[kind])
        return pa.record_batch(arrays, schema=self.schema)


def _arrow_type(pa: Any, path: str, kind: ColumnType) -> Any:
    """The Arrow type of a column, of its items, which are `path[]`, or of a field, which is `path.name`."""
    if isinstance(kind, ListOf):
        return pa.list_(_arrow_type(pa, f"{path}[]", kind.item))
    if isinstance(kind, StructOf):
        fields = [(arrow_name(name), _arrow_type(pa, f"{path}.{name}", inside)) for name, inside in kind.fields]
        check_names((name for name, _ in fields), f"fields of the column {path!r}")
        return pa.struct(fields)
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
