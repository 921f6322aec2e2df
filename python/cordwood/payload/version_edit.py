"""Decodes MANIFEST records, which are the version edits of LevelDB and RocksDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, cast, final

from cordwood._jsonable import json_value
from cordwood._native import VersionState, checked_version_edit, version_edit_field
from cordwood.typing import ReadableBuffer

__all__ = [
    "BlobFileAddition",
    "BlobFileGarbage",
    "CompactPointer",
    "CustomField",
    "CustomFieldKind",
    "DeletedFile",
    "Field",
    "FieldKind",
    "InternalKey",
    "LiveFile",
    "NewFile",
    "Value",
    "VersionEdit",
    "WalAddition",
    "live_files",
    "to_dict",
]


_SHOWN_MAX = 8
"""The maximum number of fields that `repr` displays."""


class FieldKind(StrEnum):
    """The kind of field in a version edit, and the type of its value. `docs/reference/payload.md` lists the tags.

    Attributes:
        COMPARATOR: The name of the comparator that orders the keys (`bytes`).
        LOG_NUMBER: Logs with numbers below this value are not needed (`int`).
        NEXT_FILE_NUMBER: The number of the next file to be created (`int`).
        LAST_SEQUENCE: The last sequence number that was assigned (`int`).
        COMPACT_POINTER: The key where a level's next compaction starts (`CompactPointer`).
        DELETED_FILE: A table that was removed from a level (`DeletedFile`).
        NEW_FILE: A table that was added to a level (`NewFile`).
        PREV_LOG_NUMBER: The number of an older log that is also needed (`int`, always 0 since 2011).
        MIN_LOG_NUMBER_TO_KEEP: No column family needs logs with numbers below this value (`int`).
        COLUMN_FAMILY: The number of the column family that the edit changes, if it isn't the default (`int`).
        COLUMN_FAMILY_ADD: The column family is new. The value is its name (`bytes`).
        COLUMN_FAMILY_DROP: The column family is dropped. The value is `None`.
        MAX_COLUMN_FAMILY: The largest number ever given to a column family (`int`).
        IN_ATOMIC_GROUP: The number of following edits that take effect together with this edit (`int`).
        BLOB_FILE_ADDITION: A blob file that was added (`BlobFileAddition`).
        BLOB_FILE_GARBAGE: The garbage in a blob file (`BlobFileGarbage`).
        DB_ID: The identity of the database (`bytes`).
        WAL_ADDITION: A write-ahead log that was created or synced (`WalAddition`).
        WAL_DELETION: Write-ahead logs with numbers below this value were removed (`int`).
        FULL_HISTORY_TS_LOW: The oldest user-defined timestamp that is still needed (`bytes`).
        PERSIST_USER_DEFINED_TIMESTAMPS: Whether user-defined timestamps are stored in files (`bool`).
        SUBCOMPACTION_PROGRESS: The progress of a resumable compaction (`bytes`, not decoded).
        LAST_COMPACTED_MANIFEST_FILE_SIZE: The length of the MANIFEST when it was last rewritten, in bytes (`int`).
        IGNORABLE: A field that was added in a newer RocksDB release and is safe to ignore (`bytes`).
    """

    COMPARATOR = "comparator"
    LOG_NUMBER = "log_number"
    NEXT_FILE_NUMBER = "next_file_number"
    LAST_SEQUENCE = "last_sequence"
    COMPACT_POINTER = "compact_pointer"
    DELETED_FILE = "deleted_file"
    NEW_FILE = "new_file"
    PREV_LOG_NUMBER = "prev_log_number"
    MIN_LOG_NUMBER_TO_KEEP = "min_log_number_to_keep"
    COLUMN_FAMILY = "column_family"
    COLUMN_FAMILY_ADD = "column_family_add"
    COLUMN_FAMILY_DROP = "column_family_drop"
    MAX_COLUMN_FAMILY = "max_column_family"
    IN_ATOMIC_GROUP = "in_atomic_group"
    BLOB_FILE_ADDITION = "blob_file_addition"
    BLOB_FILE_GARBAGE = "blob_file_garbage"
    DB_ID = "db_id"
    WAL_ADDITION = "wal_addition"
    WAL_DELETION = "wal_deletion"
    FULL_HISTORY_TS_LOW = "full_history_ts_low"
    PERSIST_USER_DEFINED_TIMESTAMPS = "persist_user_defined_timestamps"
    SUBCOMPACTION_PROGRESS = "subcompaction_progress"
    LAST_COMPACTED_MANIFEST_FILE_SIZE = "last_compacted_manifest_file_size"
    IGNORABLE = "ignorable"


class CustomFieldKind(StrEnum):
    """The kind of additional field for a new file, and the type of its value. The names are spelled as in RocksDB.

    Attributes:
        NEED_COMPACTION: Whether the file is marked for compaction (`bool`).
        MIN_LOG_NUMBER_TO_KEEP: No part of the database needs logs with numbers below this value (`int`).
        OLDEST_BLOB_FILE_NUMBER: The number of the oldest blob file that the table refers to (`int`).
        OLDEST_ANCESTER_TIME: The Unix time, in seconds, of the oldest data, or 0 if it isn't known (`int`).
        FILE_CREATION_TIME: The Unix time, in seconds, when the file was created, or 0 if it isn't known (`int`).
        FILE_CHECKSUM: The checksum of the whole file (`bytes`).
        FILE_CHECKSUM_FUNC_NAME: The name of the checksum function (`bytes`).
        TEMPERATURE: The temperature of the storage (`int`).
        MIN_TIMESTAMP: The smallest user-defined timestamp in the file (`bytes`).
        MAX_TIMESTAMP: The largest user-defined timestamp in the file (`bytes`).
        UNIQUE_ID: The file's unique number, 16 or 24 bytes (`bytes`).
        EPOCH_NUMBER: A number that indicates the order in which files were flushed or ingested (`int`).
        COMPENSATED_RANGE_DELETION_SIZE: The estimated number of bytes covered by range deletions in the file (`int`).
        TAIL_SIZE: The number of bytes in the file after its data blocks (`int`).
        USER_DEFINED_TIMESTAMPS_PERSISTED: Whether user-defined timestamps are stored in the file (`bool`).
        FILE_OPEN_METADATA: Metadata that speeds up opening the file (`bytes`).
        PATH_ID: The number of the file's directory in RocksDB's `db_paths` (`int`).
        IGNORABLE: A field that was added in a newer version and is safe to ignore (`bytes`).
    """

    NEED_COMPACTION = "need_compaction"
    MIN_LOG_NUMBER_TO_KEEP = "min_log_number_to_keep"
    OLDEST_BLOB_FILE_NUMBER = "oldest_blob_file_number"
    OLDEST_ANCESTER_TIME = "oldest_ancester_time"
    FILE_CREATION_TIME = "file_creation_time"
    FILE_CHECKSUM = "file_checksum"
    FILE_CHECKSUM_FUNC_NAME = "file_checksum_func_name"
    TEMPERATURE = "temperature"
    MIN_TIMESTAMP = "min_timestamp"
    MAX_TIMESTAMP = "max_timestamp"
    UNIQUE_ID = "unique_id"
    EPOCH_NUMBER = "epoch_number"
    COMPENSATED_RANGE_DELETION_SIZE = "compensated_range_deletion_size"
    TAIL_SIZE = "tail_size"
    USER_DEFINED_TIMESTAMPS_PERSISTED = "user_defined_timestamps_persisted"
    FILE_OPEN_METADATA = "file_open_metadata"
    PATH_ID = "path_id"
    IGNORABLE = "ignorable"


class InternalKey(NamedTuple):
    """A key as it is stored in database tables.

    Attributes:
        user_key: The key as the user of the database sees it.
        sequence: The 56-bit sequence number.
        value_type: The type of the entry: the tag of its operation, such as 0 for a delete and 1 for a put.
    """

    user_key: bytes
    sequence: int
    value_type: int


class CompactPointer(NamedTuple):
    """Where the next compaction of a level starts.

    Attributes:
        level: The level. Level 0 is the newest.
        key: The key where the compaction starts.
    """

    level: int
    key: InternalKey


class DeletedFile(NamedTuple):
    """A table that was removed from a level.

    Attributes:
        level: The level. Level 0 is the newest.
        file_number: The number in the file's name.
    """

    level: int
    file_number: int


class CustomField(NamedTuple):
    """An additional field for a new file or a blob file.

    Attributes:
        kind: The kind of the field.
        tag: The number before the field in the record.
        value: The value, whose type depends on the kind.
    """

    kind: CustomFieldKind
    tag: int
    value: int | bytes


class NewFile(NamedTuple):
    """A table that was added to a level.

    Attributes:
        level: The level. Level 0 is the newest.
        file_number: The number in the file's name.
        file_len: The length of the file, in bytes.
        smallest: The smallest key in the table.
        largest: The largest key in the table.
        smallest_sequence: The smallest sequence number in the table. LevelDB does not record this number.
        largest_sequence: The largest sequence number in the table. LevelDB does not record this number.
        path_id: The index of the table's directory in RocksDB's `db_paths`.
        custom_fields: Additional RocksDB fields.
    """

    level: int
    file_number: int
    file_len: int
    smallest: InternalKey
    largest: InternalKey
    smallest_sequence: int | None
    largest_sequence: int | None
    path_id: int
    custom_fields: tuple[CustomField, ...]


class BlobFileAddition(NamedTuple):
    """A blob file written by RocksDB.

    Attributes:
        file_number: The number in the file's name.
        blob_count: The number of values in the file.
        blob_len: The total length of the values, in bytes.
        checksum_method: The name of the checksum method. Empty if there is no checksum.
        checksum: The checksum of the whole file.
        custom_fields: Additional RocksDB fields.
    """

    file_number: int
    blob_count: int
    blob_len: int
    checksum_method: bytes
    checksum: bytes
    custom_fields: tuple[CustomField, ...]


class BlobFileGarbage(NamedTuple):
    """Values in a blob file that are no longer referenced by any table.

    Attributes:
        file_number: The number in the file's name.
        blob_count: The number of unreferenced values.
        blob_len: The total length of these values, in bytes.
        custom_fields: Additional RocksDB fields.
    """

    file_number: int
    blob_count: int
    blob_len: int
    custom_fields: tuple[CustomField, ...]


class WalAddition(NamedTuple):
    """A write-ahead log that RocksDB tracks.

    Attributes:
        log_number: The number in the file's name.
        synced_len: The number of synced bytes in the log, if the edit contains this number.
    """

    log_number: int
    synced_len: int | None


Value: TypeAlias = (
    int | bytes | CompactPointer | DeletedFile | NewFile | BlobFileAddition | BlobFileGarbage | WalAddition | None
)
"""The value of a field. `FieldKind` lists the type for each kind."""


class Field(NamedTuple):
    """A field in a version edit.

    Attributes:
        kind: The kind of the field.
        tag: The number before the field in the record. Some kinds have several tags, because the engines have changed
            the way they write these fields.
        value: The value, whose type depends on the kind.
    """

    kind: FieldKind
    tag: int
    value: Value


_CLASSES: dict[str, Any] = {
    "blob_file_addition": BlobFileAddition,
    "blob_file_garbage": BlobFileGarbage,
    "compact_pointer": CompactPointer,
    "deleted_file": DeletedFile,
    "new_file": NewFile,
    "wal_addition": WalAddition,
}


def _value(kind: str, value: object) -> Any:
    """Returns the value of a field. The native module passes a dictionary if the value has several parts."""
    if not isinstance(value, dict):
        return value
    parts = cast("dict[str, Any]", value)
    for name, part in parts.items():
        if isinstance(part, dict):
            parts[name] = InternalKey(**cast("dict[str, Any]", part))
        elif isinstance(part, list):
            fields = cast("list[dict[str, Any]]", part)
            parts[name] = tuple(CustomField(CustomFieldKind(one["kind"]), one["tag"], one["value"]) for one in fields)
    return _CLASSES[kind](*map(parts.get, _CLASSES[kind]._fields))


@final
class VersionEdit:
    r"""A record in a LevelDB or RocksDB MANIFEST, listing the changes that lead to a new database version.

    Iterating yields the same fields as `fields`, but creates them one at a time, because all fields of a long record
    together take up many times the record's size. `bytes(edit)` is the record.

    Args:
        record: The record. All of it is checked immediately.

    Raises:
        PayloadError: The record is not a version edit. Tags that only Pebble uses are not supported.
        TypeError: `record` is not bytes-like.

    >>> from cordwood.payload import VersionEdit
    >>> edit = VersionEdit(b"\x01\x1aleveldb.BytewiseComparator\x02\x04\x06\x01\x05")
    >>> for kind, tag, value in edit.fields:
    ...     print(kind, tag, value)
    comparator 1 b'leveldb.BytewiseComparator'
    log_number 2 4
    deleted_file 6 DeletedFile(level=1, file_number=5)
    """

    __slots__ = ("_fields", "_record")

    def __init__(self, record: ReadableBuffer) -> None:
        self._record = checked_version_edit(record)
        self._fields: tuple[Field, ...] | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields in the same order as in the record, created on first use and then cached."""
        if self._fields is None:
            self._fields = tuple(self)
        return self._fields

    def __iter__(self) -> Iterator[Field]:
        offset = 0
        while step := version_edit_field(self._record, offset):
            kind, tag, value, offset = step
            yield Field(FieldKind(kind), tag, _value(kind, value))

    def to_dict(self) -> dict[str, object]:
        r"""Returns the edit in a form that JSON can represent.

        Bytes become a string if they are valid UTF-8, and `{"base64": "..."}` otherwise. Values that are `None` are
        left out.

        Returns:
            A dictionary with the list `fields`, whose items have `kind`, `tag` and `value`.

        >>> from cordwood.payload import VersionEdit
        >>> VersionEdit(b"\x02\x04").to_dict()
        {'fields': [{'kind': 'log_number', 'tag': 2, 'value': 4}]}
        """
        return json_value("version-edit", self._record)

    def __bytes__(self) -> bytes:
        """Returns the record."""
        return self._record

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VersionEdit) and self._record == other._record

    def __hash__(self) -> int:
        return hash(self._record)

    def __reduce__(self) -> tuple[object, ...]:
        return VersionEdit, (self._record,)

    def __repr__(self) -> str:
        # A record can have millions of fields.
        kinds = [str(field.kind) for field in islice(self, _SHOWN_MAX + 1)]
        more = ", ..." if len(kinds) > _SHOWN_MAX else ""
        return f"<cordwood.payload.VersionEdit: {', '.join(kinds[:_SHOWN_MAX])}{more}>"


class LiveFile(NamedTuple):
    """A table in a database.

    Attributes:
        column_family: The number of the table's column family: 0 for the default, and always 0 in LevelDB.
        column_family_name: The name of the column family, if the MANIFEST contains it. The default column family's name
            is never in a MANIFEST.
        file: The level, number and other fields of the table, taken from the MANIFEST.
    """

    column_family: int
    column_family_name: bytes | None
    file: NewFile


def live_files(records: Iterable[bytes]) -> list[LiveFile]:
    r"""Returns the tables of a database after applying all edits in its MANIFEST.

    In RocksDB, a group of edits can take effect together. Such a group is applied only if all of its edits are present.
    Blob files are not listed.

    Args:
        records: All records of the MANIFEST. If a damaged record is missing, the result may be wrong.

    Returns:
        The tables, ordered by column family, level and number.

    Raises:
        PayloadError: A record is not a version edit.
        CorruptionError: The records come from a reader whose file is damaged.

    >>> from cordwood.payload import version_edit
    >>> key = b"\x09a\x01\x01\0\0\0\0\0\0"
    >>> added = b"\x07\x00\x05\xe8\x07" + key + key, b"\x07\x01\x06\x2a" + key + key
    >>> for live in version_edit.live_files([*added, b"\x06\x00\x05"]):
    ...     print(live.file.level, live.file.file_number, live.file.file_len)
    1 6 42
    """
    state = VersionState()
    for record in records:
        state.apply(record)
    return [LiveFile(family, name, _value("new_file", file)) for family, name, file in state.tables()]


def to_dict(record: bytes) -> dict[str, object]:
    r"""Returns a version edit as JSON values, like `VersionEdit.to_dict`.

    Args:
        record: A record from a MANIFEST.

    Raises:
        PayloadError: The record is not a version edit.

    >>> from cordwood.payload import version_edit
    >>> version_edit.to_dict(b"\x02\x04\x06\x01\x05")["fields"]
    [{'kind': 'log_number', 'tag': 2, 'value': 4}, {'kind': 'deleted_file', 'tag': 6, 'value': {'level': 1, 'file_number': 5}}]
    """  # noqa: E501 - the printed text is one line
    return VersionEdit(record).to_dict()
