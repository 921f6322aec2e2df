"""Entities as Arrow batches, which the native module makes from records, without rows in Python.

The naive counterpart is the rows of `rows`, the columns of `learner` and the batches of `arrow`: the tables are equal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

from cordwood._native import EntityBuilder, EntityLearner, Record, RecordBatch
from cordwood._tables.decoders import entity_rows
from cordwood._tables.entities import SHAPES, reserved_name
from cordwood._tables.learner import COLUMN_COUNT_MAX, FIELD_COUNT_MAX, LEVEL_COUNT_MAX, Columns
from cordwood._tables.schema import ColumnType, ListOf, MisfitError, StructOf, TooManyColumnsError
from cordwood.errors import PayloadError

ROW_COUNT_MAX = 1 << 16
"""The most rows in an Arrow batch."""

_THREAD_COUNT = 2
"""How many threads make batches. A third thread writes them, which takes about as long."""


class LeftOutRecord(NamedTuple):
    """A record that is not an entity."""

    offset: int
    data: bytes


class NewColumnsError(Exception):
    """A record has something that is not in the columns found before."""


LeaveOutEntity: TypeAlias = Callable[[LeftOutRecord, PayloadError], None]


class EntityRecords(NamedTuple):
    """Records of a log that have not been turned into rows yet."""

    batch: RecordBatch
    first: Mapping[str, str | None]
    """What each row begins with."""
    leave_out: LeaveOutEntity
    learner: EntityColumns | None = None
    """If there is one, it learns from the records; further columns are a `NewColumnsError`."""


def leave_out_all(batch: RecordBatch, left_out: list[tuple[int, Any]], leave_out: LeaveOutEntity) -> None:
    """Leaves out each record that is not an entity."""
    for index, error in left_out:
        record = LeftOutRecord(batch.record_offsets[index], batch[index])
        leave_out(record, reserved_name(error, record.data) if isinstance(error, str) else error)


class EntityColumns(Columns):
    """Learns the columns of entities from records."""

    def __init__(self, origin: str | None) -> None:
        """`origin` is a further column of the table."""
        super().__init__(SHAPES)
        self._origin = origin
        self._settled: dict[str, ColumnType] = {}
        self.native: EntityLearner = EntityLearner(
            column_count_max=COLUMN_COUNT_MAX,
            field_count_max=FIELD_COUNT_MAX,
            level_count_max=LEVEL_COUNT_MAX,
            other_count=0 if origin is None else 1,
        )

    def learn(self, batch: RecordBatch, leave_out: LeaveOutEntity) -> bool:
        """Takes records into account. Returns whether none has a property with the name of the further column.

        Raises:
            TooManyColumnsError: There are too many columns.
        """
        begin = 0
        while begin < len(batch):
            begin, left_out, stop = self.native.learn(batch, begin, self._origin)
            leave_out_all(batch, left_out, leave_out)
            if stop == "columns":
                raise TooManyColumnsError(f"more than {COLUMN_COUNT_MAX:,} columns")
            if stop is not None:
                return False
        return True

    def finish(self) -> None:
        """Must be called before the columns are requested."""
        self.load(self.native.columns())

    def settle(self) -> dict[str, ColumnType]:
        """The columns so far; `check_settled` says whether they are still the same."""
        self.finish()
        self._settled = self.types()
        return self._settled

    def check_settled(self) -> None:
        """Raises `NewColumnsError` if there are other columns than when they were settled."""
        self.finish()
        if self.types() != self._settled:
            raise NewColumnsError


def is_native(columns: Mapping[str, ColumnType]) -> bool:
    """Whether the native module can make these columns. Names with a zero byte have no form in Arrow's interface."""
    return not any("\0" in name for name in _names(StructOf(tuple(columns.items()))))


def _names(kind: ColumnType) -> Iterator[str]:
    if isinstance(kind, ListOf):
        yield from _names(kind.item)
    elif isinstance(kind, StructOf):
        for name, inside in kind.fields:
            yield name
            yield from _names(inside)


class _Capsules:
    """What pyarrow accepts as a table. It would take a named tuple for a list of arrays."""

    def __init__(self, capsules: tuple[object, object]) -> None:
        self._capsules = capsules

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._capsules


class _Chunk(NamedTuple):
    """What `EntityBuilder.build` returns."""

    next: int
    is_new: bool
    left_out: list[tuple[int, Any]]
    misfit: int | None
    names: list[str]
    row_count: int
    capsules: tuple[object, object]


def _build(builder: EntityBuilder, records: EntityRecords, begin: int) -> _Chunk:
    return _Chunk(*builder.build(records.batch, begin, None if records.learner is None else records.learner.native))


class EntityBatches:
    """Makes batches of entities, with the columns of a table."""

    def __init__(
        self,
        pa: Any,
        schema: Any,
        columns: Mapping[str, ColumnType | None],
        cell_count_max: int,
        convert: Callable[[dict[str, Any]], object],
    ) -> None:
        """Those of `columns` that have no type are known, but not in the table.

        `convert` makes a batch of one row, or raises the error for a value that does not fit its column.
        """
        self._pa = pa
        self._convert = convert
        self._schema = schema
        self._columns = columns
        self._cell_count_max = cell_count_max
        self._builder: EntityBuilder | None = None

    def of(self, records: EntityRecords) -> Iterator[Any]:
        """The rows of records in batches.

        Raises:
            NewColumnsError: There is a learner, and it found other columns.
            MisfitError: A value does not fit its column, or is in none.
        """
        return self._made(records, _build(self._builder_of(records), records, 0))

    def of_all(self, all_records: Iterable[EntityRecords]) -> Iterator[Any]:
        """The rows of all records in batches, in the order of the records.

        Some are made ahead, in threads that leave the interpreter free.

        Raises:
            NewColumnsError: There is a learner, and it found other columns.
            MisfitError: A value does not fit its column, or is in none.
        """
        ahead: deque[tuple[EntityRecords, Future[_Chunk]]] = deque()
        with ThreadPoolExecutor(_THREAD_COUNT) as threads:
            for records in all_records:
                ahead.append((records, threads.submit(_build, self._builder_of(records), records, 0)))
                if len(ahead) > _THREAD_COUNT:
                    first, chunk = ahead.popleft()
                    yield from self._made(first, chunk.result())
            for first, chunk in ahead:
                yield from self._made(first, chunk.result())

    def _builder_of(self, records: EntityRecords) -> EntityBuilder:
        if self._builder is None:
            # What all rows begin with is not a property.
            columns = [(name, kind) for name, kind in self._columns.items() if name not in records.first]
            self._builder = EntityBuilder(columns, row_count_max=ROW_COUNT_MAX, cell_count_max=self._cell_count_max)
        return self._builder

    def _made(self, records: EntityRecords, chunk: _Chunk) -> Iterator[Any]:
        """The batches of all records, the first of which is already built."""
        while True:
            # What is new may already have been learned for another batch, which comes after this one.
            if records.learner and (chunk.is_new or chunk.misfit is not None):
                records.learner.check_settled()
            leave_out_all(records.batch, chunk.left_out, records.leave_out)
            if chunk.misfit is not None:
                raise self._misfit(records.batch, chunk.misfit)
            if chunk.row_count:
                found = dict(zip(chunk.names, self._columns_of(chunk.capsules), strict=True))
                yield self._whole(found, chunk.row_count, records.first)
            if chunk.next >= len(records.batch):
                return
            chunk = _build(self._builder_of(records), records, chunk.next)

    def _misfit(self, batch: RecordBatch, index: int) -> MisfitError:
        """The error for a record with a value that does not fit its column, as the naive counterpart finds it."""
        record = Record(offset=batch.record_offsets[index], end_offset=batch.record_offsets[index], data=batch[index])
        error = MisfitError("the record has a value that its column cannot have")
        for row in entity_rows()(record):
            try:
                self._convert(row)
            except MisfitError as found:
                error = found
        error.offset = record.offset
        return error

    def _columns_of(self, capsules: tuple[object, object]) -> list[Any]:
        columns: list[Any] = self._pa.record_batch(_Capsules(capsules)).columns
        return columns

    def _whole(self, found: dict[str, Any], row_count: int, first: Mapping[str, str | None]) -> Any:
        """A batch with all columns. Those without a value share one array for each type."""
        pa = self._pa
        nulls: dict[Any, Any] = {}
        arrays: list[Any] = []
        for field in self._schema:
            name, kind = field.name, field.type
            if name in first:
                arrays.append(pa.repeat(pa.scalar(first[name], kind), row_count))
            elif name in found:
                arrays.append(found[name])
            else:
                if kind not in nulls:
                    nulls[kind] = pa.nulls(row_count, kind)
                arrays.append(nulls[kind])
        return pa.record_batch(arrays, schema=self._schema)
