"""The contents of records: an entry for each name that `--as` of the command and `decode=` of `scan` accept.

The functions of an entry are in `decoders`, which imports the decoders when they are needed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cordwood._jsonable import jsonable
from cordwood._native import Reader, checked_version_edit, decode_entity, operation_count
from cordwood._tables import decoders
from cordwood._tables.schema import ColumnType, FieldsOf, ListOf, ToJson, fields_of_object
from cordwood.errors import PayloadError

if TYPE_CHECKING:
    from cordwood._tables.decoders import Log, Rows, ValueOf


class Kind(NamedTuple):
    """A kind of records. Several payloads may show different parts of one kind."""

    name: str
    title: str
    """The name of one record."""
    plural: str
    """The name of several."""
    best: str
    """The payload that shows most of it."""
    fits: Callable[[bytes, str | None], bool] = lambda _record, _dialect: False
    """Whether the bytes of a record in a log of some dialect can be of this kind; it may also raise `PayloadError`."""
    dialects: tuple[str, ...] = ()
    """Logs in these dialects contain only this kind."""
    file_name: str | None = None
    """A pattern of the names that databases give to their logs of this kind."""

    def is_name(self, path: str) -> bool:
        """Whether a file has the name that a database gives to its logs of this kind."""
        name = os.path.basename(path)
        return self.file_name is not None and re.fullmatch(self.file_name, name) is not None


class Payload(NamedTuple):
    """A way to decode the records of a log to rows."""

    name: str
    help: str
    """A description of a row, and its most important columns."""
    kind: Kind | None
    """The kind of records that it is about; `None` for all."""
    rows: Callable[[Log], Rows]
    """Makes the rows of a log."""
    value: Callable[[Log], ValueOf] | None = None
    """Decodes the records of a log one by one, for `cat` and `follow`."""
    columns: Mapping[str, ColumnType] | None = None
    """The columns, if they are the same in every log."""
    first: Callable[[], Mapping[str, ColumnType]] = dict
    """Otherwise, the columns that come first, even if no row has a value."""
    has_offset: bool = False
    """Whether rows have the `offset` of their record."""
    origin: str = "path"
    """The column that says which of several logs a row is from."""
    is_native: bool = False
    """Whether the native module decodes the records for a table."""
    is_by_record: bool = False
    """Whether the rows of a record depend on no other, so that a log can be decoded in parts."""
    is_part: bool = False
    """Whether records of its kind that have no values for it are skipped."""
    to_json: Callable[[], ToJson] = lambda: jsonable
    """Returns the function that turns a value of a row into JSON."""
    fields_of: Callable[[], FieldsOf] = lambda: fields_of_object
    """Returns the function that returns the fields of those values of a row that are structures."""

    def known_columns(self, on_corruption: str) -> dict[str, ColumnType] | None:
        """The columns, if they are known before a log is read.

        Under the policy "salvage", rows with the `offset` of a record say whether it begins after damage in its block.
        """
        if self.columns is None:
            return None
        if on_corruption != "salvage" or not self.has_offset:
            return dict(self.columns)
        return {"offset": "uint", "salvaged": "bool", **self.columns}

    def all_columns(self, found: dict[str, ColumnType]) -> dict[str, ColumnType]:
        """The columns of a table, in their order: those of all tables of the payload, and those that were found."""
        first = dict(self.first())
        return first | found | first

    def rows_of(self, log: Log) -> Rows:
        """The function that makes the rows of a log, with the columns that `known_columns` adds.

        Raises:
            ModuleNotFoundError: It needs a package that is not installed; the message says which extra has it.
        """
        made = self.rows(log)
        return decoders.with_salvaged(made) if log.on_corruption == "salvage" and self.has_offset else made


def _is_write_batch(record: bytes, dialect: str | None) -> bool:
    # The operations are decoded when they are counted.
    return operation_count(record, "pebble" if dialect == "pebble" else "rocksdb") >= 0


def _is_version_edit(record: bytes, _dialect: str | None) -> bool:
    checked_version_edit(record)
    return True


def _is_entity(record: bytes, _dialect: str | None) -> bool:
    decode_entity(record)
    return True


WRITE_BATCH = Kind(
    "write-batch",
    "a write batch, as in a write-ahead log of LevelDB, RocksDB or Pebble",
    "write batches",
    "write-batch",
    _is_write_batch,
    file_name=r"[0-9]+\.log",
)
VERSION_EDIT = Kind(
    "version-edit",
    "a version edit, as in a MANIFEST",
    "version edits",
    "version-edit",
    _is_version_edit,
    file_name=r"MANIFEST-[0-9]+",
)
ENTITY = Kind(
    "entity",
    "an entity of a Datastore or Firestore export",
    "entities of Datastore or Firestore",
    "entity",
    _is_entity,
)
WANDB = Kind(
    "wandb",
    "a record of a run of Weights & Biases",
    "records of Weights & Biases",
    "wandb-history",
    dialects=("wandb", "wandb_old"),
)
SWANLAB = Kind(
    "swanlab",
    "a record of a run of SwanLab",
    "records of SwanLab",
    "swanlab-history",
    dialects=("swanlab",),
)
JSON = Kind("json", "a JSON object", "JSON objects", "json", decoders.is_object)

_ALL = (
    Payload(
        "raw",
        "a record: offset, end_offset, data",
        None,
        decoders.raw,
        columns={"offset": "uint", "end_offset": "uint", "data": "bytes"},
        has_offset=True,
        is_by_record=True,
    ),
    Payload(
        "write-batch",
        "an operation of a LevelDB, RocksDB or Pebble log: offset of its record, sequence, kind, key, value, ...; a "
        "batch without operations is a row without a kind",
        WRITE_BATCH,
        decoders.operations,
        decoders.batch_values,
        columns={
            "offset": "uint",
            "sequence": "uint",
            "kind": "text",
            "column_family": "uint",
            "column_family_name": "bytes",
            "key": "bytes",
            "end_key": "bytes",
            "value": "bytes",
            "xid": "bytes",
            "timestamp": "bytes",
            "write_unix_time": "uint",
        },
        has_offset=True,
        is_by_record=True,
    ),
    Payload(
        "version-edit",
        "a record of a MANIFEST: offset, fields",
        VERSION_EDIT,
        decoders.dicts("version_edit"),
        decoders.dict_values("version_edit"),
        columns={"offset": "uint", "fields": "json"},
        has_offset=True,
    ),
    Payload(
        "live-files",
        "a table that a database has after all edits in its MANIFEST: column family, level, file_number, ...",
        VERSION_EDIT,
        decoders.live_files,
        columns={
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
    ),
    Payload(
        "entity",
        "an entity of a Datastore or Firestore export: __kind__, __id__, __name__, __path__, __key__ and its "
        "properties",
        ENTITY,
        decoders.entities,
        decoders.dict_values("entity"),
        first=decoders.entity_columns,
        origin="__file__",
        is_native=True,
        is_by_record=True,
        to_json=decoders.entity_json,
        fields_of=decoders.entity_fields_of,
    ),
    Payload(
        "json",
        "a record that is JSON text: the values of an object by their names; any other value as __value__",
        JSON,
        decoders.documents,
        decoders.values("_json_parser", "document"),
        origin="__file__",
        is_native=True,
        is_by_record=True,
    ),
    Payload(
        "wandb-run",
        "a run: id, name, project, group, tags, notes, state, exit_code, start_time, host, git_commit, command, ...",
        WANDB,
        decoders.runs,
        columns={
            "id": "text",
            "name": "text",
            "project": "text",
            "entity": "text",
            "group": "text",
            "job_type": "text",
            "tags": ListOf("text"),
            "notes": "text",
            "state": "text",
            "exit_code": "int",
            "start_time": "time",
            "host": "text",
            "git_commit": "text",
            "command": "text",
        },
        origin="run_id",
        is_part=True,
    ),
    Payload(
        "wandb-history",
        "a step of a run in a .wandb file: _step and what was logged",
        WANDB,
        decoders.history,
        decoders.values("wandb", "history_row"),
        origin="run_id",
        is_native=True,
        is_part=True,
    ),
    Payload(
        "wandb-summary",
        "a run: its final summary",
        WANDB,
        decoders.final("summary"),
        decoders.values("wandb", "change_of", "summary"),
        origin="run_id",
        is_part=True,
    ),
    Payload(
        "wandb-config",
        "a run: its final configuration",
        WANDB,
        decoders.final("config"),
        decoders.values("wandb", "change_of", "config"),
        origin="run_id",
        is_part=True,
    ),
    Payload(
        "wandb-metrics",
        "a measurement of the system during a run: _timestamp, _runtime, system.cpu, ...",
        WANDB,
        decoders.metrics,
        decoders.metrics_values,
        origin="run_id",
        is_part=True,
    ),
    Payload(
        "wandb-output",
        "a line that a run printed: _timestamp, stream, line",
        WANDB,
        decoders.lines,
        decoders.values("wandb", "output_piece"),
        columns={"_timestamp": "float", "stream": "text", "line": "text"},
        origin="run_id",
        is_part=True,
    ),
    Payload(
        "wandb",
        "a record of a .wandb file: offset and its fields; needs the extra wandb",
        WANDB,
        decoders.dicts("wandb"),
        decoders.dict_values("wandb"),
        first=lambda: {"offset": "uint"},
        has_offset=True,
        origin="run_id",
    ),
    Payload(
        "swanlab-history",
        "a number that a run in a .swanlab file has logged: key, step, epoch, value, time",
        SWANLAB,
        decoders.swanlab_history,
        decoders.values("swanlab", "history_row"),
        columns={"key": "text", "step": "int", "epoch": "int", "value": "float", "time": "time"},
        is_part=True,
    ),
)

PAYLOADS: dict[str, Payload] = {payload.name: payload for payload in _ALL}
"""The payloads by their names."""

KINDS: tuple[Kind, ...] = tuple(dict.fromkeys(payload.kind for payload in _ALL if payload.kind))
"""All kinds of records."""


def kinds_of(record: bytes, dialect: str | None) -> list[Kind]:
    """The kinds of which a record can be: none for an empty record. Some dialects decide it."""
    for kind in KINDS:
        if dialect in kind.dialects:
            return [kind]
    # An empty record would also be a version edit.
    return [kind for kind in KINDS if record and _fits(kind, record, dialect)]


def _fits(kind: Kind, record: bytes, dialect: str | None) -> bool:
    with contextlib.suppress(PayloadError):
        return kind.fits(record, dialect)
    return False


def kind_by_content(path: str, first: bytes | None, dialect: str | None) -> Kind | None:
    """The kind of the records of a log; `None` for bytes.

    It is a kind of which the first record can be. If there are several, the name of the file decides, if a database
    gave it.
    """
    fits = kinds_of(first or b"", dialect)
    named = [kind for kind in fits if kind.is_name(path)]
    return (named or fits)[0] if len(fits) == 1 or named else None


def kind_of_records(path: str, reader: Reader) -> tuple[Kind | None, bool]:
    """The kind of the records of a log, going by the first that its reader returns, and whether there are any."""
    first = next(reader.records(), None)
    return kind_by_content(path, first.data if first else None, reader.dialect), first is not None


def other_kind(path: str, wanted: Kind, **options: Any) -> Kind | None:
    """The kind of the first record of a log, read with these options of `Reader`; `None` if it is wanted or unknown.

    A database has write batches in one file and version edits in another, and neither is a fault.
    """
    with Reader(path, on_corruption="skip", **options) as reader:
        found, _ = kind_of_records(path, reader)
    return None if found == wanted else found


def origin_of(path: str, column: str, *, is_escaped: bool = True) -> str:
    r"""The value of an `origin` column: the path, or the ID of a run, from the name that wandb gives its file.

    A name need not be valid text. Each of its other bytes is a lone surrogate, or, if `is_escaped`, six characters:
    `\udcff`.
    """
    name = os.path.basename(path)
    if column == "run_id" and (match := re.fullmatch(r"run-(.+)\.wandb", name)):
        path = match[1]
    return path.encode("utf-8", "backslashreplace").decode() if is_escaped else path
