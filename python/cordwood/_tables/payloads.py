"""Lists the payloads, one for each name that the `--as` option and `scan`'s `decode=` argument accept.

The native module decodes the records. Each entry here describes a payload's tables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from cordwood._native import Reader, Record, is_decoded
from cordwood._tables.schema import ColumnType, ListOf, StructOf, utf8


class Kind(NamedTuple):
    """A kind of record. A kind may have several payloads that show different parts of its records."""

    name: str
    title: str
    """The singular name for records of this kind."""
    plural: str
    """The plural name for records of this kind."""
    best: str
    """The name of the payload that extracts the most data from a record of this kind."""
    starts_with: bytes = b""
    """The bytes that each record starts with."""
    dialects: tuple[str, ...] = ()
    """The dialects whose logs contain only records of this kind. No other logs contain such records."""
    file_name: str | None = None
    """A pattern for the names that databases give to logs of this kind."""

    def is_name(self, path: str) -> bool:
        """Checks whether a file has a name that databases give to logs of this kind."""
        name = os.path.basename(path)
        return self.file_name is not None and re.fullmatch(self.file_name, name) is not None


class Payload(NamedTuple):
    """A way to show a log's records in a table. The native module has a decoder of the same name."""

    name: str
    help: str
    """What each row represents, and which columns are the most important."""
    kind: Kind | None
    """The kind of records the payload shows, or `None` for all kinds."""
    columns: Mapping[str, ColumnType] | None = None
    """The columns, or `None` if they differ between logs."""
    always: Mapping[str, ColumnType] = {}
    """If the columns differ between logs, these columns always come first, even if they have no values."""
    has_value: bool = True
    """Whether `cat` and `follow` print a value for each record."""
    origin: str = "path"
    """The column that shows which of several logs a row comes from."""
    is_by_record: bool = False
    """Whether each row depends only on its own record, so that parts of a log can be decoded separately."""
    is_part: bool = False
    """Whether records without values for the table are skipped."""

    def known_columns(self, on_corruption: str) -> dict[str, ColumnType] | None:
        """Returns the columns, or `None` if they aren't known before a log is read.

        With the "salvage" policy, rows with an `offset` also show whether the record starts after damage in its block.
        """
        if self.columns is None:
            return None
        has_salvaged = on_corruption == "salvage" and "offset" in self.columns
        return {**({"offset": "uint", "salvaged": "bool"} if has_salvaged else {}), **self.columns}


WRITE_BATCH = Kind(
    "write-batch",
    "a write batch, as in a write-ahead log of LevelDB, RocksDB or Pebble",
    "write batches",
    "write-batch",
    file_name=r"[0-9]+\.log",
)
VERSION_EDIT = Kind(
    "version-edit",
    "a version edit, as in a MANIFEST",
    "version edits",
    "version-edit",
    file_name=r"MANIFEST-[0-9]+",
)
ENTITY = Kind("entity", "an entity of a Datastore or Firestore export", "entities of Datastore or Firestore", "entity")
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
JSON = Kind("json", "a JSON object", "JSON objects", "json", b"{")

KEY = StructOf(
    (
        ("app", "text"),
        ("namespace", "text"),
        ("database", "text"),
        ("path", ListOf(StructOf((("kind", "text"), ("id", "int"), ("name", "text"))))),
    )
)
"""The type of an entity's key."""


def _columns(text: str) -> Mapping[str, ColumnType]:
    """Returns columns with simple types, given as `name:type` words separated by white space."""
    return dict(column.split(":") for column in text.split())


KEY_COLUMNS = _columns("__kind__:text __id__:int __name__:text __path__:text")
"""The columns for the parts of an entity's key. No property may use these names."""

_of_run = partial(Payload, kind=WANDB, origin="run_id", is_part=True)

_ALL = (
    Payload(
        "raw",
        "a record: offset, end_offset, data",
        None,
        _columns("offset:uint end_offset:uint data:bytes"),
        is_by_record=True,
        has_value=False,
    ),
    Payload(
        "write-batch",
        "an operation of a LevelDB, RocksDB or Pebble log: offset of its record, sequence, kind, key, value, ...; a "
        "batch without operations is a row without a kind",
        WRITE_BATCH,
        _columns(
            "offset:uint sequence:uint kind:text column_family:uint column_family_name:bytes key:bytes end_key:bytes "
            "value:bytes xid:bytes timestamp:bytes write_unix_time:uint"
        ),
        is_by_record=True,
    ),
    Payload(
        "version-edit",
        "a record of a MANIFEST: offset, fields",
        VERSION_EDIT,
        _columns("offset:uint fields:json"),
    ),
    Payload(
        "live-files",
        "a table that a database has after all edits in its MANIFEST: column family, level, file_number, ...",
        VERSION_EDIT,
        _columns(
            "column_family:uint column_family_name:bytes level:uint file_number:uint file_len:uint smallest_key:bytes "
            "largest_key:bytes smallest_sequence:uint largest_sequence:uint path_id:uint"
        ),
        has_value=False,
    ),
    Payload(
        "entity",
        "an entity of a Datastore or Firestore export: __kind__, __id__, __name__, __path__, __key__ and its "
        "properties",
        ENTITY,
        always={**KEY_COLUMNS, "__key__": KEY},
        origin="__file__",
        is_by_record=True,
    ),
    Payload(
        "json",
        "a record that is JSON text: the values of an object by their names; any other value as __value__",
        JSON,
        origin="__file__",
        is_by_record=True,
    ),
    _of_run(
        "wandb-run",
        "a run: id, name, project, group, tags, notes, state, exit_code, start_time, host, git_commit, command, ...",
        columns={
            **_columns("id:text name:text project:text entity:text group:text job_type:text"),
            "tags": ListOf("text"),
            **_columns("notes:text state:text exit_code:int start_time:time host:text git_commit:text command:text"),
        },
        has_value=False,
    ),
    _of_run("wandb-history", "a step of a run in a .wandb file: _step and what was logged"),
    _of_run("wandb-summary", "a run: its final summary"),
    _of_run("wandb-config", "a run: its final configuration"),
    _of_run("wandb-metrics", "a measurement of the system during a run: _timestamp, _runtime, system.cpu, ..."),
    _of_run(
        "wandb-output",
        "a line that a run printed: _timestamp, stream, line",
        columns=_columns("_timestamp:float stream:text line:text"),
    ),
    Payload(
        "wandb",
        "a record of a .wandb file: offset and its fields; needs the extra wandb",
        WANDB,
        always=_columns("offset:uint"),
        origin="run_id",
    ),
    Payload(
        "swanlab-history",
        "a number that a run in a .swanlab file has logged: key, step, epoch, value, time",
        SWANLAB,
        _columns("key:text step:int epoch:int value:float time:time"),
        is_part=True,
    ),
)

PAYLOADS: dict[str, Payload] = {payload.name: payload for payload in _ALL}
"""The payloads by name."""

KINDS: tuple[Kind, ...] = tuple(dict.fromkeys(payload.kind for payload in _ALL if payload.kind))
"""All kinds of records."""


def kinds_of(record: bytes, dialect: str | None) -> list[Kind]:
    """Returns the possible kinds of a record.

    Some dialects have only one kind of record. In all others, an empty record has no kind.
    """
    for kind in KINDS:
        if dialect in kind.dialects:
            return [kind]
    # Without these checks, an empty record would be mistaken for a version edit, and digits would be mistaken for JSON.
    return [
        kind
        for kind in KINDS
        if record
        and not kind.dialects
        and record.startswith(kind.starts_with)
        and is_decoded(kind.best, record, dialect)
    ]


def kind_by_content(path: str, first: bytes | None, dialect: str | None) -> Kind | None:
    """Returns the kind of records in a log, or `None` if the records are arbitrary bytes.

    The first record must be valid for this kind. If it is valid for several kinds, the file must have a name that
    databases give to logs of this kind.
    """
    fits = kinds_of(first or b"", dialect)
    named = [kind for kind in fits if kind.is_name(path)]
    return (named or fits)[0] if len(fits) == 1 or named else None


def kind_of_records(path: str, reader: Reader) -> tuple[Kind | None, Record | None]:
    """Returns the kind of records in a log, and the first record, which determines the kind."""
    first = next(reader.records(), None)
    return kind_by_content(path, first.data if first else None, reader.dialect), first


def other_kind(path: str, wanted: Kind, **options: Any) -> Kind | None:
    """Returns the kind of a log's first record, or `None` if the kind is unknown or equals `wanted`.

    The log is read with the given `Reader` options. A database has write batches in one file and version edits in
    another, so an unexpected kind is not a fault.
    """
    with Reader(path, on_corruption="skip", **options) as reader:
        found, _ = kind_of_records(path, reader)
    return None if found == wanted else found


def origin_of(path: str, column: str) -> str:
    r"""Returns the value for an `origin` column: the path, or a run's ID, taken from its file name.

    A name may contain bytes that are not valid text. Each such byte becomes six characters, such as `\udcff`.
    """
    name = os.path.basename(path)
    if column == "run_id" and (match := re.fullmatch(r"run-(.+)\.wandb", name)):
        path = match[1]
    return utf8(path)
