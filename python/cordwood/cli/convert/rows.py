"""`--as`: the rows that a record of a log makes in a table (`convert`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import cordwood
from cordwood.cli._json import Streamed
from cordwood.cli._payloads import write_batches
from cordwood.errors import PayloadError

Row: TypeAlias = dict[str, Any]
"""Values by the names of their columns: of Python's own types, or anything that `json_of` takes.

One of them may be `Streamed`, where the columns are known beforehand; such a row can be written once.
"""

RowsOf: TypeAlias = Callable[[cordwood.Record], Iterable[Row]]
"""Makes rows of a record. They may be many more than fit in memory: a record of some MiB can hold millions."""

LeaveOut: TypeAlias = Callable[[cordwood.Record, PayloadError], None]

ROW_KINDS = ("raw", "write-batch", "version-edit", "wandb", "wandb-history", "entity")


KNOWN_COLUMNS = {
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
}
"""The columns of forms that have the same in every log, so that their tables go together."""

FIRST_COLUMNS = {"entity": {"__key__": "json"}, "wandb": {"offset": "uint"}}
"""Of forms whose other columns differ from log to log, those that are in every table, even in one without rows."""


def rows_as(form: str, name: str, dialect: str, leave_out: LeaveOut) -> RowsOf:
    """What makes rows of the records of a log. It raises `PayloadError` for a record that is not of that form.

    `leave_out` gets each value that a row has to do without.

    Raises:
        ModuleNotFoundError: It takes a package that is not installed; the message says which extra has it.
    """
    makers: dict[str, Callable[[], RowsOf]] = {
        "raw": lambda: _raw,
        "write-batch": lambda: _write_batch(name, dialect),
        "version-edit": _version_edit,
        "wandb": lambda: _dicts("cordwood.payload.wandb"),
        "wandb-history": lambda: _wandb_history(leave_out),
        "entity": _entity,
    }
    return makers[form]()


def _raw(record: cordwood.Record) -> Iterable[Row]:
    return [{"offset": record.offset, "end_offset": record.end_offset, "data": record.data}]


def _write_batch(name: str, dialect: str) -> RowsOf:
    batch_of = write_batches(name, dialect)

    def rows(record: cordwood.Record) -> Iterable[Row]:
        # It has been read to its end: no error comes after the first row.
        batch = batch_of(record.data)
        # A batch of nothing is a row, too.
        if not batch:
            return [{"offset": record.offset, "sequence": batch.sequence}]
        return (
            # Each row begins with the sequence number, or with `None` in its place.
            {"offset": record.offset, "sequence": None, **operation.attributes()}
            for operation in batch
        )

    return rows


def _version_edit() -> RowsOf:
    from cordwood.payload.version_edit import VersionEdit, fields_of

    return lambda record: [{"offset": record.offset, "fields": Streamed(fields_of(VersionEdit(record.data)))}]


def _dicts(module: str) -> RowsOf:
    to_dict = importlib.import_module(module).to_dict
    return lambda record: [{"offset": record.offset, **to_dict(record.data)}]


def _wandb_history(leave_out: LeaveOut) -> RowsOf:
    from cordwood.payload.wandb import history_row_without

    def rows(record: cordwood.Record) -> Iterable[Row]:
        row = history_row_without(record.data, lambda error: leave_out(record, error))
        return [] if row is None else [row]

    return rows


def _entity() -> RowsOf:
    from cordwood.payload.entity import decode, other_fields

    def rows(record: cordwood.Record) -> Iterable[Row]:
        entity = decode(record.data)
        others = other_fields(entity)
        # No property has one of the two names.
        return [{"__key__": entity.key, **entity.properties, **({"__other_fields__": others} if others else {})}]

    return rows


def json_of(form: str) -> Callable[[Any], object]:
    """What makes JSON of a value of a row."""
    if form == "entity":
        from cordwood.payload.entity import to_json

        return to_json
    from cordwood.payload._json import jsonable

    return jsonable
