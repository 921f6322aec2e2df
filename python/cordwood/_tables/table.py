"""Turns records into a table. `Table` decodes them, determines columns and writes rows with the native module."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, Self, TypeAlias, cast

from cordwood._inputs.input import dialect_of_empty_run
from cordwood._jsonable import json_text
from cordwood._native import Reader, Record, RecordBatch
from cordwood._native import Table as NativeTable
from cordwood._tables.payloads import VERSION_EDIT, Payload, origin_of
from cordwood._tables.schema import ColumnType, GivenAs, ListOf, SameNamesError, StructOf
from cordwood.errors import DialectError, PayloadError

COLUMN_COUNT_MAX = 10_000
"""The maximum number of columns. Fields count too, as in BigQuery. Records that need more don't have a common form."""

FIELD_COUNT_MAX = 1_000
"""The maximum number of fields in one column. A column with more is treated as a mapping whose keys are data."""

LEVEL_COUNT_MAX = 20
"""The maximum nesting depth of lists and structures in a column, as in Datastore."""

ROW_COUNT_MAX = 1 << 16
"""The maximum number of rows in an Arrow batch."""

CELL_COUNT_MAX = 1 << 22
"""The maximum number of cells in an Arrow batch of several rows.

A column that has at least one value takes up space in every row. With a lower limit, Parquet's metadata for each column
of each row group would take more space.
"""


class Fault(NamedTuple):
    """A fault in a record, found while creating a table."""

    part: Literal["record", "row", "value", "rest"]
    """The part missing from the table: the record, a row, a value, or all rows after a certain row."""
    record: Record
    error: PayloadError


OnFault: TypeAlias = Callable[[Fault], None]


class Table(NativeTable):
    """A table of records from logs, created one batch at a time.

    Attributes:
        stop_offset: The offset at which reading stopped in the last log, once the table had enough rows. `None` if
            reading did not stop early.
        cast: A function that casts an array to the type of its column. `None` if no cast is needed.
    """

    stop_offset: int | None = None
    cast: Callable[[Any, Any], Any] | None = None
    _last: Record | None = None
    _payload: Payload
    _first: Sequence[str]
    _limit: int | None

    def __new__(
        cls,
        payload: Payload,
        form: str,
        columns: Mapping[str, ColumnType] | None = None,
        *,
        first: Sequence[str] = (),
        limit: int | None = None,
        **options: Any,
    ) -> Self:
        """Creates a table with the given columns, or with columns determined from the records if `columns` is `None`.

        Args:
            payload: The kind of payload in the records.
            form: The output format: "arrow", "ndjson" or "csv".
            columns: The columns, if they are known.
            first: The columns that each row starts with. Their values are derived from the name of the log.
            limit: The maximum number of rows.
            options: Further options of the native class.
        """
        table = super().__new__(
            cls,
            payload.name,
            form,
            None if columns is None else list(columns.items()),
            always=[*((name, "text") for name in first), *payload.always.items()],
            limit=limit,
            learned_max=(COLUMN_COUNT_MAX, FIELD_COUNT_MAX, LEVEL_COUNT_MAX),
            batch_max=(ROW_COUNT_MAX, CELL_COUNT_MAX),
            **options,
        )
        table._payload, table._first, table._limit = payload, first, limit
        return table

    @functools.cached_property
    def schema(self) -> Any:
        """The `pyarrow.Schema` of the batches.

        Raises:
            SameNamesError: Two columns, or two fields of one column, have the same name in Arrow.
        """
        schema = import_module("pyarrow").schema(self)
        columns_of(schema)
        return schema

    def read(
        self,
        reader: Reader,
        report: OnFault,
        *,
        name: str | None = None,
        starts: Callable[[Record], None] | None = None,
        taken: Sequence[Record] = (),
        target_len: int,
        threads: int = 1,
    ) -> Iterator[tuple[int, list[Any]]]:
        """Reads a log. Yields the number of records read, and their output, as `bytes` or batches.

        Args:
            reader: The reader of the log.
            report: A function to call with each fault.
            name: The name of the log, if it has one.
            starts: A function to call with the first record, once the record's faults have been reported.
            taken: The first records, if they have already been read from the reader.
            target_len: Approximately how many bytes of records to read at a time.
            threads: Same as for `record_batches`.

        Raises:
            HasFirstError: The record has a column with the same name as a column that starts every row.
            MisfitError: A value has no column, or does not fit its column.
            TooManyColumnsError: There are too many columns.
        """
        self.start(reader, name)
        sources = self.sources(reader, target_len=target_len, threads=threads)
        for source in chain([list(taken)] if taken else [], sources):
            for count, made in self.feed(source, report):
                if starts and count:
                    starts(record_of(source, 0))
                    starts = None
                yield count, made
        yield from self.end(report)

    def start(self, reader: Reader, name: str | None) -> None:
        """Starts reading a log, as `read` does."""
        self._last = None
        self.start_log(
            [(column, name and origin_of(name, column)) for column in self._first],
            dialect=reader.dialect,
            families=_family_names(reader.path) if self._payload.name == "write-batch" and reader.path else {},
            is_run=_is_run(reader),
        )

    def sources(self, reader: Reader, *, target_len: int, threads: int) -> Iterator[RecordBatch | list[Record]]:
        """Yields a log's records in groups. If there is a limit, yields no more records than needed."""
        if self._limit is None and self._payload.name != "wandb":
            yield from reader.record_batches(target_len=target_len, threads=threads)
            return
        records = reader.records()
        while not self.is_full:
            some: list[Record] = []
            some_len = 0
            left = ROW_COUNT_MAX if self._limit is None else min(self._limit - self.row_count, ROW_COUNT_MAX)
            for record in islice(records, left):
                some.append(record)
                some_len += len(record.data)
                if some_len >= target_len:
                    break
            if not some:
                return
            yield some

    def feed(
        self, source: RecordBatch | list[Record], report: OnFault, only: list[int] | None = None
    ) -> Iterator[tuple[int, list[Any]]]:
        """Adds a log's records, or just those with the indices in `only`. Yields the same values as `read`.

        Call `start` first.
        """
        decoded = _messages(source, report) if self._payload.name == "wandb" and isinstance(source, list) else source
        start, count = 0, len(decoded if only is None else only)
        # Messages that cannot be decoded count as records.
        if len(decoded) < len(source):
            yield len(source) - len(decoded), []
        while start < count and not self.is_full:
            end, made, faults, more_count = self.take(decoded, start, only)
            found = (Fault(part, record_of(decoded, index), error) for index, part, error in faults)
            _pass_on(report, found, more_count)
            if end > start:
                self._last = record_of(decoded, end - 1 if only is None else only[end - 1])
                if self.is_full:
                    self.stop_offset = self._last.end_offset
            yield end - start, self._whole(made)
            start = end

    def end(self, report: OnFault) -> Iterator[tuple[int, list[Any]]]:
        """Creates the rows that are not complete until the end of a log. Yields the same values as `read`.

        Faults in these rows are reported for the last record.
        """
        is_all = False
        while not is_all and not self.is_full:
            is_all, made, faults, more_count = self.take_rest(is_last=False)
            found = (Fault(part, self._last, error) for _, part, error in faults if self._last)
            _pass_on(report, found, more_count)
            yield 0, self._whole(made)

    def rest(self) -> Iterator[Any]:
        """Creates the rows that were held back until all logs had been read."""
        is_all = False
        while not is_all:
            is_all, made, *_ = self.take_rest(is_last=True)
            yield from self._whole(made)

    def _whole(self, made: list[Any]) -> list[Any]:
        """Returns the output. Each batch has all columns. Columns without values share one array per type."""
        return [batch if isinstance(batch, bytes) else self._batch(*batch) for batch in made]

    def _batch(self, numbers: list[int], row_count: int, capsules: tuple[object, object]) -> Any:
        pa: Any = import_module("pyarrow")
        if not self.schema.names:
            # For a batch without columns, the number of rows comes from this array.
            return pa.RecordBatch.from_struct_array(pa.array([{}] * row_count, pa.struct([])))
        made = dict(zip(numbers, pa.record_batch(_Capsules(capsules)).columns, strict=True))
        nulls: Callable[[Any], Any] = functools.cache(functools.partial(pa.nulls, row_count))
        arrays: list[Any] = []
        for at, field in enumerate(self.schema):
            array = made[at] if at in made else nulls(field.type)
            arrays.append(self.cast(array, field.type) if self.cast and at in made else array)
        return pa.record_batch(arrays, schema=self.schema)


class _Capsules:
    """A value that pyarrow accepts as a table.

    This class isn't a named tuple, because pyarrow would mistake one for a list of arrays.
    """

    def __init__(self, capsules: tuple[object, object]) -> None:
        self._capsules = capsules

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._capsules


def _pass_on(report: OnFault, faults: Iterable[Fault], more_count: int) -> None:
    """Reports each fault, then reports the last one another `more_count` times.

    A record can have millions of faults, so the native module doesn't return them all.
    """
    fault = None
    for fault in faults:
        report(fault)
    for _ in range(more_count if fault else 0):
        report(cast("Fault", fault))


def record_of(source: RecordBatch | list[Record], index: int) -> Record:
    """Returns the record with this index."""
    if not isinstance(source, RecordBatch):
        return source[index]
    offset = source.record_offsets[index]
    return Record(offset=offset, end_offset=offset, data=source[index])


def _messages(records: list[Record], report: OnFault) -> list[Record]:
    """Returns wandb's records with their messages as JSON text."""
    from cordwood.payload.wandb import to_dict

    messages: list[Record] = []
    for record in records:
        try:
            data = json_text(to_dict(record.data)).encode()
        except PayloadError as error:
            report(Fault("record", record, error))
        else:
            messages.append(
                Record(offset=record.offset, end_offset=record.end_offset, data=data, salvaged=record.salvaged)
            )
    return messages


def _is_run(reader: Reader) -> bool:
    """Checks whether a log belongs to a run, even if the run was killed before its first record.

    A run's log has a dialect of its own. An empty file is recognised by its name, because wandb writes the file header
    with the first records.
    """
    if reader.dialect in ("wandb", "wandb_old"):
        return True
    with contextlib.suppress(OSError):
        return reader.path is not None and dialect_of_empty_run(reader.path, os.path.getsize(reader.path)) == "wandb"
    return False


def _family_names(path: str) -> dict[int, bytes]:
    """Returns the column family names from the MANIFESTs next to a log. Empty if there is only the default one."""
    directory = os.path.dirname(path) or os.curdir
    names: dict[int, bytes] = {}
    # If the directory cannot be listed or a file cannot be read, names remain unknown.
    with contextlib.suppress(OSError):
        for file in sorted(os.listdir(directory)):
            manifest = os.path.join(directory, file)
            if VERSION_EDIT.is_name(file) and os.path.isfile(manifest):
                status = os.stat(manifest)
                names.update(_families_in(manifest, status.st_ino, status.st_size, status.st_mtime_ns))
    return {0: b"default", **names} if names else {}


def _read_families(manifest: str, *_state: int) -> dict[int, bytes]:
    """Returns the names of the column families that a MANIFEST in this state adds. Empty if the file is not a log."""
    from cordwood.payload.version_edit import FieldKind, VersionEdit

    names: dict[int, bytes] = {}
    with contextlib.suppress(DialectError):
        for record in Reader(manifest, on_corruption="salvage"):
            # Most edits don't have to be decoded, because they lack the tag that adds a column family.
            if _ADDS_FAMILY in record:
                with contextlib.suppress(PayloadError):
                    fields = {field.kind: field.value for field in VersionEdit(record)}
                    if FieldKind.COLUMN_FAMILY_ADD in fields:
                        number = cast("int", fields.get(FieldKind.COLUMN_FAMILY, 0))
                        names[number] = cast("bytes", fields[FieldKind.COLUMN_FAMILY_ADD])
    return names


# Cached, because all logs in a directory share its MANIFESTs, which may be longer than all of the logs combined.
_families_in = functools.lru_cache(maxsize=8)(_read_families)


_ADDS_FAMILY = b"\xc9\x01"


def columns_of(schema: Any) -> dict[str, ColumnType]:
    """Returns the column types of a `pyarrow.Schema`.

    The native module creates columns of its own types, and `cast_array` in `scan.py` casts them to the types in the
    schema. The module accepts only values that this cast leaves unchanged.

    Raises:
        SameNamesError: Two columns, or two fields of one column, have the same name.
    """
    return _types_of("", "columns", schema)


def _types_of(path: str, what: str, fields: Iterable[Any]) -> dict[str, ColumnType]:
    types: dict[str, ColumnType] = {}
    for field in fields:
        if field.name in types:
            raise SameNamesError(f"two {what} have the name {field.name!r}")
        types[field.name] = _type_of(f"{path}{field.name}", field)
    return types


def _type_of(path: str, field: Any) -> GivenAs:  # noqa: PLR0911 - one for each type
    """Returns the type of a column, of a list's items (`path[]`), or of a field (`path.name`)."""
    types: Any = import_module("pyarrow").types
    kind = field.type

    def given(made_as: ColumnType, fits: str = "same", size: int = 0) -> GivenAs:
        return GivenAs(str(kind), made_as, fits, size, field.nullable)

    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _type_of(path, field.with_type(kind.value_type))
    if types.is_struct(kind):
        return given(StructOf(tuple(_types_of(f"{path}.", f"fields of the column {path!r}", kind).items())))
    if types.is_map(kind):
        key, value = (_type_of(f"{path}[]", inside) for inside in (kind.key_field, kind.item_field))
        return given(ListOf(StructOf((("key", key), ("value", value)))), "map")
    # All list types have this attribute.
    if hasattr(kind, "value_field"):
        items = ListOf(_type_of(f"{path}[]", kind.value_field))
        return given(items, "count", kind.list_size) if types.is_fixed_size_list(kind) else given(items)
    if types.is_timestamp(kind):
        return given("time", "times", {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit])
    if types.is_integer(kind):
        return given("int" if types.is_signed_integer(kind) else "uint", "integers", kind.bit_width)
    if types.is_floating(kind):
        return given("float", "floats", kind.bit_width)
    if types.is_decimal(kind):
        return given("json", "digits", max(kind.precision - kind.scale, 0))
    if types.is_fixed_size_binary(kind):
        return given("bytes", "count", kind.byte_width)
    if types.is_boolean(kind):
        return given("bool")
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return given("json")
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return given("bytes", "bytes")
    # Types not handled above accept only nulls.
    return given("bool", "nothing")
