"""The functions of `payloads`: the rows that a record of a log becomes in a table, and its value as JSON."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import cordwood
from cordwood._inputs.input import dialect_of_empty_run
from cordwood._jsonable import jsonable
from cordwood._native import VersionState
from cordwood._tables.schema import ColumnType, FieldsOf, ToJson
from cordwood.errors import PayloadError

if TYPE_CHECKING:
    from cordwood.payload import WriteBatch

Row: TypeAlias = dict[str, Any]
"""Values by the names of their columns: Python's built-in types, or other values that the payload's `to_json`
accepts."""

RowsOf: TypeAlias = Callable[[cordwood.Record], Iterable[Row]]
"""Turns a record into rows. There may be many more than fit in memory: a record of a few MiB can contain millions."""

ValueOf: TypeAlias = Callable[[bytes], object]
"""Decodes a record to JSON. `None` for a record that a payload is not about."""

LeaveOut: TypeAlias = Callable[[cordwood.Record, PayloadError], None]


class Log(NamedTuple):
    """The facts that the decoders of a log may need."""

    dialect: str | None
    report: Callable[[str], None] = lambda _text: None
    """Gets the uncertain points."""
    leave_out: LeaveOut = lambda _record, _error: None
    """Gets each value that is left out of a row."""
    cut: LeaveOut = lambda _record, _error: None
    """Gets each record of which only the beginning is in the rows, before they are made."""
    on_corruption: str = "skip"
    path: str | None = None
    """The path or URL of the log, if it has one."""


class Rows(NamedTuple):
    """Makes the rows of a log."""

    of_record: RowsOf
    """The rows of a record. It raises `PayloadError` for a record that is not of the form."""
    at_end: Callable[[], Iterable[Row]] = tuple
    """The rows that are complete only after the last record."""


def _one_each(row_of: Callable[[cordwood.Record], Row | None]) -> Rows:
    """The row of each record; a record for which `row_of` returns `None` has none."""

    def of_record(record: cordwood.Record) -> Iterable[Row]:
        row = row_of(record)
        return [] if row is None else [row]

    return Rows(of_record)


def with_salvaged(rows: Rows) -> Rows:
    """The same rows, which also say whether their record begins after damage in its block."""

    def of_record(record: cordwood.Record) -> Iterable[Row]:
        first = {"offset": record.offset, "salvaged": record.salvaged}
        return ({**first, **row} for row in rows.of_record(record))

    return rows._replace(of_record=of_record)


def dicts(module: str) -> Callable[[Log], Rows]:
    """One row for a record: the result of `to_dict` of a module of `cordwood.payload`."""

    def rows(log: Log) -> Rows:
        to_dict = dict_values(module)(log)
        return _one_each(lambda record: {"offset": record.offset, **cast("Row", to_dict(record.data))})

    return rows


def dict_values(module: str) -> Callable[[Log], ValueOf]:
    """The function `to_dict` of a module of `cordwood.payload`."""
    return lambda _: importlib.import_module(f"cordwood.payload.{module}").to_dict


def values(module: str, function: str, *arguments: object) -> Callable[[Log], ValueOf]:
    """The result of a function of a module of `cordwood.payload`, whose first argument is the record, as JSON."""

    def value_of(_: Log) -> ValueOf:
        decode = getattr(importlib.import_module(f"cordwood.payload.{module}"), function)
        return lambda record: jsonable(decode(record, *arguments))

    return value_of


def raw(_: Log) -> Rows:
    """One row for a record, with its bytes."""
    return _one_each(lambda record: {"offset": record.offset, "end_offset": record.end_offset, "data": record.data})


def write_batches(
    dialect: str | None, report: Callable[[str], None]
) -> Callable[[bytes], tuple[WriteBatch, PayloadError | None]]:
    """Returns a function that reads write batches of a log in this dialect, each to its end.

    It returns the batch, and the fault after its first operations. It raises `PayloadError` for a record that is too
    short for the header of a batch.

    A few tags mean one thing to RocksDB and another to Pebble. A Pebble log that was not closed is laid out like a
    RocksDB log, an old one like a LevelDB log. The batches then decide: those that only one of the two engines can
    read. As long as there is none, RocksDB is assumed, and if that makes a difference, `report` is called, once.
    """
    from cordwood.payload.write_batch import WriteBatch

    engine: Literal["rocksdb", "pebble"] = "pebble" if dialect == "pebble" else "rocksdb"
    other: Literal["rocksdb", "pebble"] = "rocksdb" if dialect == "pebble" else "pebble"
    is_named = dialect in ("pebble", "rocksdb")
    is_sure = is_reported = False

    def read(record: bytes, engine: Literal["rocksdb", "pebble"]) -> tuple[WriteBatch, PayloadError | None]:
        batch = WriteBatch(record, engine=engine)
        try:
            len(batch)
        except PayloadError as error:
            return batch, error
        return batch, None

    def read_undecided(record: bytes) -> tuple[WriteBatch, PayloadError | None]:
        nonlocal engine, other, is_sure, is_reported
        batch, error = read(record, engine)
        if is_sure and not error:
            return batch, None
        rival, rival_error = read(record, other)
        if error:
            if not rival_error:
                engine, other, is_sure = other, engine, True
                return rival, None
        elif rival_error:
            is_sure = True
        elif not is_reported and (len(batch) != len(rival) or any(map(operator.ne, batch, rival))):
            report("RocksDB and Pebble read this log differently, and it is read as one from RocksDB")
            is_reported = True
        return batch, error

    return functools.partial(read, engine=engine) if is_named else read_undecided


def batch_values(log: Log) -> ValueOf:
    """The write batch in a record."""
    batch_of = write_batches(log.dialect, log.report)
    return lambda record: batch_of(record)[0].to_dict()


def operations(log: Log) -> Rows:
    """One row for each operation, and one for an empty batch."""
    from cordwood.payload.write_batch import attributes_of

    batch_of = write_batches(log.dialect, log.report)
    names = _family_names(log.path) if log.path else {}

    def rows(record: cordwood.Record) -> Iterable[Row]:
        batch, error = batch_of(record.data)
        if error:
            # The first operation is wrong, or there is none.
            next(iter(batch), None)
            log.cut(record, error)
        elif not batch:
            return [{"offset": record.offset, "sequence": batch.sequence}]
        return rows_of(record.offset, batch)

    def rows_of(offset: int, batch: WriteBatch) -> Iterator[Row]:
        # The error after the last operation has been reported.
        with contextlib.suppress(PayloadError):
            for operation in batch:
                # Each row begins with the sequence number, or with `None` in its place.
                row = {"offset": offset, "sequence": None, **attributes_of(operation)}
                name = names.get(operation.column_family)
                yield row if name is None else {**dict.fromkeys(_UP_TO_NAME), **row, "column_family_name": name}

    return Rows(rows)


_UP_TO_NAME = ("offset", "sequence", "kind", "column_family", "column_family_name")


def _family_names(path: str) -> dict[int | None, bytes]:
    """The names of the column families, from the MANIFESTs beside a log; none if there is only the default one."""
    folder = os.path.dirname(path) or os.curdir
    names: dict[int | None, bytes] = {}
    # A folder that cannot be listed, or a file that cannot be read, has no names.
    with contextlib.suppress(OSError):
        for file in sorted(os.listdir(folder)):
            manifest = os.path.join(folder, file)
            if re.fullmatch(r"MANIFEST-[0-9]+", file) and os.path.isfile(manifest):
                status = os.stat(manifest)
                names.update(_families_in(manifest, status.st_ino, status.st_size, status.st_mtime_ns))
    return {0: b"default", **names} if names else {}


def _read_families(manifest: str, *_state: int) -> dict[int | None, bytes]:
    """The names of the column families that a MANIFEST in this state adds; none if it is not a log."""
    try:
        return dict(_families_of(cordwood.Reader(manifest, on_corruption="salvage")))
    except cordwood.DialectError:
        return {}


# The logs of a folder have the same MANIFESTs, and a MANIFEST may be longer than all of them.
_families_in = functools.lru_cache(maxsize=8)(_read_families)


def _families_of(manifest: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The column families that the records of a MANIFEST add: their numbers and names."""
    from cordwood.payload.version_edit import FieldKind, VersionEdit

    for record in manifest:
        # Most edits need not be decoded: they lack the tag that adds a column family.
        if _ADDS_FAMILY in record:
            with contextlib.suppress(PayloadError):
                fields = {field.kind: field.value for field in VersionEdit(record)}
                if FieldKind.COLUMN_FAMILY_ADD in fields:
                    number = cast("int", fields.get(FieldKind.COLUMN_FAMILY, 0))
                    yield number, cast("bytes", fields[FieldKind.COLUMN_FAMILY_ADD])


_ADDS_FAMILY = b"\xc9\x01"


def live_files(_: Log) -> Rows:
    """One row for each table that a database has after all edits in its MANIFEST."""
    state = VersionState()

    def apply(record: cordwood.Record) -> Iterable[Row]:
        state.apply(record.data)
        return []

    def rows() -> Iterator[Row]:
        for family, name, file in state.tables():
            yield {
                "column_family": family,
                "column_family_name": name,
                "level": file.level,
                "file_number": file.file_number,
                "file_len": file.file_len,
                "smallest_key": file.smallest.user_key,
                "largest_key": file.largest.user_key,
                "smallest_sequence": file.smallest_sequence,
                "largest_sequence": file.largest_sequence,
                "path_id": file.path_id,
            }

    return Rows(apply, rows)


def _is_run(log: Log) -> bool:
    """Whether the dialect says that this is a run, which may have been killed before its first record.

    Of a file without a byte, the name says so: wandb writes the file header with the first records.
    """
    if log.dialect in ("wandb", "wandb_old"):
        return True
    with contextlib.suppress(OSError):
        return log.path is not None and dialect_of_empty_run(log.path, os.path.getsize(log.path)) == "wandb"
    return False


def runs(log: Log) -> Rows:
    """One row for a run. A log of another dialect has none, unless a record of it is one of a run."""
    from cordwood.payload.wandb import RunFields, run_row, take_run_fields

    found: list[RunFields] = [{}] if _is_run(log) else []

    def take(record: cordwood.Record) -> Iterable[Row]:
        fields = found[0] if found else {}
        take_run_fields(fields, record.data)
        found[:] = [fields]
        return []

    return Rows(take, lambda: map(run_row, found))


def history(log: Log) -> Rows:
    """One row for each step."""
    from cordwood.payload.wandb import history_row_without

    return _one_each(lambda record: history_row_without(record.data, lambda error: log.leave_out(record, error)))


def metrics(log: Log) -> Rows:
    """One row for each measurement."""
    from cordwood.payload.wandb import metrics_rows

    row_of = metrics_rows()
    return _one_each(lambda record: row_of(record.data, lambda error: log.leave_out(record, error)))


def metrics_values(_: Log) -> ValueOf:
    """The values of a measurement."""
    from cordwood.payload.wandb import metrics_rows

    row_of = metrics_rows()
    return lambda record: jsonable(row_of(record, None))


def final(kind: str) -> Callable[[Log], Rows]:
    """One row for a run, its `"summary"` or its `"config"`. A log of another dialect has none without a record."""

    def rows(log: Log) -> Rows:
        from cordwood.payload.wandb import apply_change

        values: list[Row] = [{}] if _is_run(log) else []

        def change(record: cordwood.Record) -> Iterable[Row]:
            if not values:
                values.append({})
            apply_change(values[0], record.data, kind, lambda error: log.leave_out(record, error))
            return []

        return Rows(change, lambda: values)

    return rows


def lines(_: Log) -> Rows:
    """One row for each printed line, with the time of its beginning. The end of a stream also ends its last line."""
    from cordwood.payload.wandb import output_piece

    # For each stream, when its last line began, and the parts of that line.
    unfinished: dict[str, tuple[float | None, list[str]]] = {}

    def rows(record: cordwood.Record) -> Iterable[Row]:
        piece = output_piece(record.data)
        return [] if piece is None else lines_of(**piece)

    def lines_of(_timestamp: float | None, stream: str, text: str) -> Iterator[Row]:
        # Only a newline ends a line: a carriage return overwrites it.
        for part in io.StringIO(text, newline="\n"):
            unfinished.setdefault(stream, (_timestamp, []))[1].append(part)
            if part.endswith("\n"):
                yield line(stream)

    def line(stream: str) -> Row:
        timestamp, parts = unfinished.pop(stream)
        return {"_timestamp": timestamp, "stream": stream, "line": "".join(parts).removesuffix("\n")}

    return Rows(rows, lambda: [line(stream) for stream in list(unfinished)])


def swanlab_history(_: Log) -> Rows:
    """One row for each number that was logged."""
    from cordwood.payload.swanlab import history_row

    return _one_each(lambda record: history_row(record.data))


def entity_columns() -> Mapping[str, ColumnType]:
    """The columns of the key, which all tables of entities have."""
    from cordwood._tables.entities import KEY, KEY_COLUMNS

    return {**KEY_COLUMNS, "__key__": KEY}


def entity_json() -> ToJson:
    """The function that turns the values of entities into JSON."""
    from cordwood.payload.entity import to_json

    return to_json


def entity_fields_of() -> FieldsOf:
    """The function that returns the fields of values of entities."""
    from cordwood._tables.entities import fields_of

    return fields_of


def entities(_: Log) -> Rows:
    """One row for an entity."""
    from cordwood._tables.entities import KEY_COLUMNS, key_columns, reserved_name
    from cordwood.payload.entity import decode, other_fields

    def row_of(record: cordwood.Record) -> Row:
        entity = decode(record.data)
        others = other_fields(entity)
        for name in KEY_COLUMNS:
            if name in entity.properties:
                raise reserved_name(name, record.data)
        row = {**key_columns(entity.key), "__key__": entity.key, **entity.properties}
        return {**row, "__other_fields__": others} if others else row

    return _one_each(row_of)


def is_object(record: bytes, _: str | None) -> bool:
    """Whether a record is a JSON object. Any digits would also be JSON."""
    if record[:1] != b"{":
        return False
    from cordwood.payload._json_parser import document

    return document(record) is not None


def documents(_: Log) -> Rows:
    """One row for a record that is JSON text."""
    from cordwood.payload._json_parser import document

    def row_of(record: cordwood.Record) -> Row:
        value = document(record.data)
        return cast("Row", value) if isinstance(value, dict) else {"__value__": value}

    return _one_each(row_of)
