"""The rows that a record of a log becomes in a table, by the names that `--as` and `decode=` accept."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import cordwood
from cordwood._tables.json_text import Streamed
from cordwood._tables.schema import ColumnType, Shapes
from cordwood.errors import PayloadError

if TYPE_CHECKING:
    from cordwood.payload import WriteBatch

Row: TypeAlias = dict[str, Any]
"""Values by the names of their columns: of Python's built-in types, or anything that `json_of` accepts.

One of them may be `Streamed`, where the columns are known beforehand; such a row can be written only once.
"""

RowsOf: TypeAlias = Callable[[cordwood.Record], Iterable[Row]]
"""Turns a record into rows. There may be many more than fit in memory: a record of a few MiB can contain millions."""

LeaveOut: TypeAlias = Callable[[cordwood.Record, PayloadError], None]


class Rows(NamedTuple):
    """Makes the rows of a log."""

    of_record: RowsOf
    """The rows of a record. It raises `PayloadError` for a record that is not of the form."""
    at_end: Callable[[], Iterable[Row]] = tuple
    """The rows that are complete only after the last record."""


ROW_KINDS = (
    "raw",
    "write-batch",
    "version-edit",
    "live-files",
    "wandb",
    "wandb-history",
    "wandb-summary",
    "wandb-config",
    "wandb-metrics",
    "wandb-output",
    "entity",
    "json",
)
"""The names that `--as` accepts."""


KNOWN_COLUMNS: dict[str, dict[str, ColumnType]] = {
    "raw": {"offset": "uint", "end_offset": "uint", "data": "bytes"},
    "write-batch": {
        "offset": "uint",
        "sequence": "uint",
        "kind": "text",
        "column_family": "uint",
        "key": "bytes",
        "end_key": "bytes",
        "value": "bytes",
        "xid": "bytes",
        "timestamp": "bytes",
        "write_unix_time": "uint",
    },
    "version-edit": {"offset": "uint", "fields": "json"},
    "live-files": {
        "column_family": "uint",
        "column_family_name": "bytes",
        "level": "uint",
        "file_number": "uint",
        "file_len": "uint",
        "smallest_key": "bytes",
        "largest_key": "bytes",
        "smallest_sequence": "uint",
        "largest_sequence": "uint",
        "path_id": "uint",
    },
    "wandb-output": {"_timestamp": "float", "stream": "text", "line": "text"},
}
"""The columns of those forms that have the same columns in every log, so that their tables can be combined."""


_OF_RECORDS = ("raw", "write-batch", "version-edit", "wandb")
"""The forms whose rows have the `offset` of their record."""


def known_columns(form: str, on_corruption: str) -> dict[str, ColumnType] | None:
    """The columns of a form, if they are known before a log is read.

    Under the policy "salvage", rows with the `offset` of a record say whether it begins after damage in its block.
    """
    known = KNOWN_COLUMNS.get(form)
    if known is None or on_corruption != "salvage" or form not in _OF_RECORDS:
        return known
    return {"offset": "uint", "salvaged": "bool", **known}


def all_columns(form: str, found: dict[str, ColumnType]) -> dict[str, ColumnType]:
    """The columns of a table, in their order: those of all tables of the form, and those that were found."""
    first: dict[str, ColumnType] = {"offset": "uint"} if form == "wandb" else {}
    if form == "entity":
        from cordwood._tables.entities import KEY, KEY_COLUMNS

        first = {**KEY_COLUMNS, "__key__": KEY}
    return first | found | first


def rows_as(
    form: str, dialect: str, leave_out: LeaveOut, report: Callable[[str], None], *, on_corruption: str = "skip"
) -> Rows:
    """What makes the rows of a log. `leave_out` gets each value left out of a row, `report` what is uncertain.

    With the policy "salvage", rows have the columns that `known_columns` adds.

    Raises:
        ModuleNotFoundError: It needs a package that is not installed; the message says which extra has it.
    """
    makers: dict[str, Callable[[], Rows]] = {
        "raw": lambda: Rows(_raw),
        "write-batch": lambda: Rows(_write_batch(dialect, report)),
        "version-edit": lambda: Rows(_version_edit()),
        "live-files": _live_files,
        "wandb": lambda: Rows(_dicts("cordwood.payload.wandb")),
        "wandb-history": lambda: Rows(_wandb_history(leave_out)),
        "wandb-summary": lambda: _wandb_values("summary", leave_out),
        "wandb-config": lambda: _wandb_values("config", leave_out),
        "wandb-metrics": lambda: Rows(_wandb_metrics(leave_out)),
        "wandb-output": _wandb_lines,
        "entity": lambda: Rows(entity_rows()),
        "json": lambda: Rows(_json()),
    }
    rows = makers[form]()
    if on_corruption == "salvage" and form in _OF_RECORDS:
        return rows._replace(of_record=_with_salvaged(rows.of_record))
    return rows


def _with_salvaged(rows_of: RowsOf) -> RowsOf:
    def rows(record: cordwood.Record) -> Iterable[Row]:
        first = {"offset": record.offset, "salvaged": record.salvaged}
        return ({**first, **row} for row in rows_of(record))

    return rows


def write_batches(dialect: str | None, report: Callable[[str], None]) -> Callable[[bytes], WriteBatch]:
    """Returns a function that reads write batches of a log in this dialect, each to its end, or raises `PayloadError`.

    A few tags mean one thing to RocksDB and another to Pebble. A Pebble log that was not closed is laid out like a
    RocksDB log, an old one like a LevelDB log. The batches then decide: those that only one of the two engines can
    read. As long as there is none, RocksDB is assumed, and if that makes a difference, `report` is called, once.
    """
    from cordwood.payload.write_batch import WriteBatch

    engine: Literal["rocksdb", "pebble"] = "pebble" if dialect == "pebble" else "rocksdb"
    other: Literal["rocksdb", "pebble"] = "rocksdb" if dialect == "pebble" else "pebble"
    is_named = dialect in ("pebble", "rocksdb")
    is_sure = is_reported = False

    def read(record: bytes, engine: Literal["rocksdb", "pebble"]) -> WriteBatch:
        batch = WriteBatch(record, engine=engine)
        len(batch)
        return batch

    def read_undecided(record: bytes) -> WriteBatch:
        nonlocal engine, other, is_sure, is_reported
        try:
            batch = read(record, engine)
        except PayloadError:
            with contextlib.suppress(PayloadError):
                batch = read(record, other)
                engine, other, is_sure = other, engine, True
                return batch
            raise
        if is_sure:
            return batch
        try:
            rival = read(record, other)
        except PayloadError:
            is_sure = True
            return batch
        if not is_reported and (len(batch) != len(rival) or any(map(operator.ne, batch, rival))):
            report("RocksDB and Pebble read this log differently, and it is read as one from RocksDB")
            is_reported = True
        return batch

    return functools.partial(read, engine=engine) if is_named else read_undecided


def _raw(record: cordwood.Record) -> Iterable[Row]:
    return [{"offset": record.offset, "end_offset": record.end_offset, "data": record.data}]


def _write_batch(dialect: str, report: Callable[[str], None]) -> RowsOf:
    from cordwood.payload.write_batch import attributes_of

    batch_of = write_batches(dialect, report)

    def rows(record: cordwood.Record) -> Iterable[Row]:
        # It has been read to its end: no error can follow the first row.
        batch = batch_of(record.data)
        # An empty batch is also a row.
        if not batch:
            return [{"offset": record.offset, "sequence": batch.sequence}]
        return (
            # Each row begins with the sequence number, or with `None` in its place.
            {"offset": record.offset, "sequence": None, **attributes_of(operation)}
            for operation in batch
        )

    return rows


def _version_edit() -> RowsOf:
    from cordwood.payload.version_edit import VersionEdit, fields_of

    return lambda record: [{"offset": record.offset, "fields": Streamed(fields_of(VersionEdit(record.data)))}]


def _live_files() -> Rows:
    """One row for each table that a database has after all edits in its MANIFEST."""
    from cordwood.payload.version_edit import LiveFiles, VersionEdit

    state = LiveFiles()

    def apply(record: cordwood.Record) -> Iterable[Row]:
        state.apply(VersionEdit(record.data))
        return []

    def rows() -> Iterator[Row]:
        for family, name, file in state.files():
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


def _dicts(module: str) -> RowsOf:
    to_dict = importlib.import_module(module).to_dict
    return lambda record: [{"offset": record.offset, **to_dict(record.data)}]


def _wandb_history(leave_out: LeaveOut) -> RowsOf:
    from cordwood.payload.wandb import history_row_without

    def rows(record: cordwood.Record) -> Iterable[Row]:
        row = history_row_without(record.data, lambda error: leave_out(record, error))
        return [] if row is None else [row]

    return rows


def _wandb_metrics(leave_out: LeaveOut) -> RowsOf:
    from cordwood.payload.wandb import metrics_rows

    row_of = metrics_rows()

    def rows(record: cordwood.Record) -> Iterable[Row]:
        row = row_of(record.data, lambda error: leave_out(record, error))
        return [] if row is None else [row]

    return rows


def _wandb_values(kind: str, leave_out: LeaveOut) -> Rows:
    """One row for a run; none if there is no record, and so no run."""
    from cordwood.payload.wandb import apply_change

    values: list[Row] = []

    def change(record: cordwood.Record) -> Iterable[Row]:
        if not values:
            values.append({})
        apply_change(values[0], record.data, kind, lambda error: leave_out(record, error))
        return []

    return Rows(change, lambda: values)


def _wandb_lines() -> Rows:
    """One row for each printed line, with the time of its beginning. The end of a stream also ends its last line."""
    from cordwood.payload.wandb import output_piece

    # For each stream, when its last line began, and the parts of that line.
    unfinished: dict[str, tuple[float | None, list[str]]] = {}

    def rows(record: cordwood.Record) -> Iterable[Row]:
        piece = output_piece(record.data)
        return [] if piece is None else lines(**piece)

    def lines(_timestamp: float | None, stream: str, text: str) -> Iterator[Row]:
        # Only a newline ends a line: a carriage return overwrites it.
        for part in io.StringIO(text, newline="\n"):
            unfinished.setdefault(stream, (_timestamp, []))[1].append(part)
            if part.endswith("\n"):
                yield line(stream)

    def line(stream: str) -> Row:
        timestamp, parts = unfinished.pop(stream)
        return {"_timestamp": timestamp, "stream": stream, "line": "".join(parts).removesuffix("\n")}

    return Rows(rows, lambda: [line(stream) for stream in list(unfinished)])


def entity_rows() -> RowsOf:
    """Returns the function that turns the record of an entity into its row."""
    from cordwood._tables.entities import KEY_COLUMNS, key_columns, reserved_name
    from cordwood.payload.entity import decode, other_fields

    def rows(record: cordwood.Record) -> Iterable[Row]:
        entity = decode(record.data)
        others = other_fields(entity)
        for name in KEY_COLUMNS:
            if name in entity.properties:
                raise reserved_name(name, record.data)
        row = {**key_columns(entity.key), "__key__": entity.key, **entity.properties}
        return [{**row, "__other_fields__": others} if others else row]

    return rows


def _json() -> RowsOf:
    from cordwood.payload._json_parser import document

    def rows(record: cordwood.Record) -> Iterable[Row]:
        value = document(record.data)
        return [cast("Row", value) if isinstance(value, dict) else {"__value__": value}]

    return rows


def json_of(form: str) -> Callable[[Any], object]:
    """Returns the function that converts a row's value to JSON."""
    if form == "entity":
        from cordwood.payload.entity import to_json

        return to_json
    from cordwood._jsonable import jsonable

    return jsonable


def shapes_of(form: str) -> Shapes:
    """Which values of a row are structures."""
    if form == "entity":
        from cordwood._tables.entities import SHAPES

        return SHAPES
    return Shapes()


def origin_column(form: str) -> str:
    """The column that says which of several logs a row is from."""
    return "run_id" if form.startswith("wandb") else "__file__" if form in ("entity", "json") else "path"


def origin_of(path: str, column: str, *, is_escaped: bool = True) -> str:
    r"""The value of that column: the path, or the ID of a run, from the name that wandb gives its file.

    A name need not be valid text. What is not has the form `\udcff`, or, unless it `is_escaped`, is a lone surrogate.
    """
    if column == "run_id" and (match := re.fullmatch(r"run-(.+)\.wandb", os.path.basename(path))):  # noqa: PTH119
        path = match[1]
    return path.encode("utf-8", "backslashreplace").decode() if is_escaped else path
