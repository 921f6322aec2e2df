"""`--as`: the rows that a record of a log makes in a table (`convert`)."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

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


class Rows(NamedTuple):
    """What makes the rows of a log."""

    of_record: RowsOf
    """Those of a record. It raises `PayloadError` for one that is not of the form."""
    at_end: Callable[[], Iterable[Row]] = tuple
    """Those that are complete only after the last record."""


ROW_KINDS = (
    "raw",
    "write-batch",
    "version-edit",
    "wandb",
    "wandb-history",
    "wandb-summary",
    "wandb-config",
    "wandb-metrics",
    "wandb-output",
    "entity",
    "json",
)
"""What `--as` can name."""


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
    "wandb-output": {"_timestamp": "float", "stream": "text", "line": "text"},
}
"""The columns of forms that have the same in every log, so that their tables go together."""

FIRST_COLUMNS = {"entity": {"__key__": "json"}, "wandb": {"offset": "uint"}}
"""Of forms whose other columns differ from log to log, those that are in every table, even in one without rows."""


def rows_as(form: str, name: str, dialect: str, leave_out: LeaveOut) -> Rows:
    """What makes the rows of a log. `leave_out` gets each value that a row has to do without.

    Raises:
        ModuleNotFoundError: It takes a package that is not installed; the message says which extra has it.
    """
    makers: dict[str, Callable[[], Rows]] = {
        "raw": lambda: Rows(_raw),
        "write-batch": lambda: Rows(_write_batch(name, dialect)),
        "version-edit": lambda: Rows(_version_edit()),
        "wandb": lambda: Rows(_dicts("cordwood.payload.wandb")),
        "wandb-history": lambda: Rows(_wandb_history(leave_out)),
        "wandb-summary": lambda: _wandb_values("summary", leave_out),
        "wandb-config": lambda: _wandb_values("config", leave_out),
        "wandb-metrics": lambda: Rows(_wandb_metrics(leave_out)),
        "wandb-output": _wandb_lines,
        "entity": lambda: Rows(_entity()),
        "json": lambda: Rows(_json()),
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
    """One row for each line that was printed, with the time of its beginning. Lines end where stdout and stderr do."""
    from cordwood.payload.wandb import output_piece

    # Of each stream, when its last line began, and the parts of it.
    unfinished: dict[str, tuple[float | None, list[str]]] = {}

    def rows(record: cordwood.Record) -> Iterable[Row]:
        piece = output_piece(record.data)
        return [] if piece is None else lines(**piece)

    def lines(_timestamp: float | None, stream: str, text: str) -> Iterator[Row]:
        # Only a newline ends a line: a carriage return writes over it.
        for part in io.StringIO(text, newline="\n"):
            unfinished.setdefault(stream, (_timestamp, []))[1].append(part)
            if part.endswith("\n"):
                yield line(stream)

    def line(stream: str) -> Row:
        timestamp, parts = unfinished.pop(stream)
        return {"_timestamp": timestamp, "stream": stream, "line": "".join(parts).removesuffix("\n")}

    return Rows(rows, lambda: [line(stream) for stream in list(unfinished)])


def _entity() -> RowsOf:
    from cordwood.payload.entity import decode, other_fields

    def rows(record: cordwood.Record) -> Iterable[Row]:
        entity = decode(record.data)
        others = other_fields(entity)
        # No property has one of the two names.
        return [{"__key__": entity.key, **entity.properties, **({"__other_fields__": others} if others else {})}]

    return rows


def _json() -> RowsOf:
    from cordwood.payload._json_text import document

    def rows(record: cordwood.Record) -> Iterable[Row]:
        value = document(record.data)
        return [value if isinstance(value, dict) else {"__value__": value}]

    return rows


def json_of(form: str) -> Callable[[Any], object]:
    """What makes JSON of a value of a row."""
    if form == "entity":
        from cordwood.payload.entity import to_json

        return to_json
    from cordwood.payload._json import jsonable

    return jsonable
