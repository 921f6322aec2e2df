"""The exceptions.

All exceptions derive from `CordwoodError`::

    CordwoodError
    ├── ClosedError            a use after `close`; also a `ValueError`
    ├── CorruptionError        damage, if the policy is to raise
    ├── DialectError           a file that is not a log, or a log that cannot be appended to or packed
    ├── LogChangedError        a path that no longer names the log that was read before
    ├── LogRotatedError        a followed log whose path names another file
    ├── LogTruncatedError      a log that ends before the offset at which reading should start
    ├── OtherLogError          a file to be salvaged that belongs to a log with another number
    ├── PayloadError           a record that cannot be decoded; also a `ValueError`
    ├── RecordTooLargeError    a record longer than `record_len_max`
    └── TornTailError          a log that ends in an incomplete record was opened for appending

Operating system errors are still raised as `OSError`. Invalid arguments raise a `TypeError` or a `ValueError`.
"""

from __future__ import annotations

from typing import Any

from cordwood.types import Hint, PayloadReason, Reason


class CordwoodError(Exception):
    """The base class of all exceptions in this module.

    `str(error)` starts with the path. The `hint` attribute contains advice, which a traceback prints as text.

    Attributes:
        path: The file, or `None` if the source has no path.
        offset: The file offset of the fault, in bytes. For a region, this is the offset of its first byte. It is 0 if
            the fault affects the whole file.
        message: The fault, without the path.
        hint: Advice on how to proceed, or `None`.

    >>> try:
    ...     list(cordwood.open(bytes.fromhex("504b0304") + bytes(100)))
    ... except cordwood.CordwoodError as error:
    ...     type(error), error.path, error.offset, error.hint
    (<class 'cordwood.errors.DialectError'>, None, 0, <Hint.NAME_DIALECT: 'name_dialect'>)
    """

    message: str
    path: str | None = None
    offset: int = 0
    hint: Hint | None = None

    def __init__(self, message: str, *, hint: Hint | None = None, **attributes: Any) -> None:
        """Creates an error with these attributes. The other attributes of its class keep their defaults."""
        self.message = message
        self.__dict__.update(attributes)
        # The argument includes the path, because other programs recreate an error from its arguments. Apache Beam does
        # this to add a step's name.
        super().__init__(str(self))
        if hint is not None:
            _add_hint(self, hint)

    def __str__(self) -> str:
        if self.path is None:
            return self.message
        # A path can contain line breaks, and bytes that are invalid in every encoding.
        place = self.path if self.path.isprintable() else repr(self.path)
        return f"{place}: {self.message}"


class ClosedError(CordwoodError, ValueError):
    """A reader, a writer, a follower or an index was used after `close`. Open the log again.

    Attributes:
        path: The file, or `None` if the source or sink has no path.
        offset: Always 0.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> try:
    ...     writer.append(b"two")
    ... except cordwood.ClosedError as error:
    ...     print(error)
    example.log: the writer is closed
    """


class _RegionError(CordwoodError):
    """A fault in a region of a log.

    Attributes:
        length: The number of affected bytes, starting at `offset`.
        reason: The reason, as in `SkippedRegion.reason`.
    """

    length: int
    reason: Reason


class CorruptionError(_RegionError):
    """A log contains bytes that no complete write could have produced.

    The reader remains usable, and its next read continues after the damage. `pack` also raises this error if there is
    an incomplete record at the end, or zeros that aren't padding.

    Attributes:
        path: The file, or `None` if the source has no path.
        offset: The file offset of the first affected byte.
        length: The number of affected bytes, starting at `offset`.
        reason: The reason, as in `SkippedRegion.reason`.
        stored_crc: The checksum stored in the file, if the reason is `checksum_mismatch`. Otherwise `None`.
        computed_crc: The checksum of the data, if the reason is `checksum_mismatch`. Otherwise `None`.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> with open("example.log", "r+b") as file:
    ...     _ = file.seek(7), file.write(b"X")
    >>> try:
    ...     list(cordwood.open("example.log"))
    ... except cordwood.CorruptionError as error:
    ...     print(error.path, error.offset, error.length, error.reason)
    example.log 0 10 checksum_mismatch
    """

    stored_crc: int | None = None
    computed_crc: int | None = None


class DialectError(CordwoodError):
    """A file is not a log, its version is too new, or the log cannot be appended to or packed.

    To read an unrecognised file as a log, pass `dialect`.

    Attributes:
        path: The file, or `None` if the source has no path.
        offset: Usually 0. If a packed log has an unknown version or codec, this is the offset of that version or codec.
            If a log cannot be packed because of an engine's metadata, this is the offset of that metadata.
        format: The detected format: `"gzip"`, `"ZIP"`, `"SQLite"`, `"Parquet"`, `"LevelDB table"`, `"Git LFS pointer"`,
            `"text"`, ... For a log, this is the name of its dialect. Otherwise it may be `"unknown"`.
    """

    format: str


class OtherLogError(CordwoodError):
    """A file to be salvaged belongs entirely to another log, not to the one indicated by its name or `log_number`.

    To read the other log, call `cordwood.open(path, log_number=error.other_log_number)`.

    Attributes:
        path: The file, or `None` if the source has no path.
        offset: Always 0.
        log_number: The number in the file's name, or the number that you passed.
        other_log_number: The number in the file's fragments.
    """

    log_number: int
    other_log_number: int


class RecordTooLargeError(_RegionError):
    """A record is longer than `record_len_max`.

    A `Reader` remains usable, and its next read continues after the record.

    Under every policy, a reader of a compressed log also raises this error for a record that decompresses to too many
    bytes. In that case, the reader stays before the record, and every further attempt to read raises the same error.
    See `Reader`.

    A `Writer` rejects a record longer than its `record_len_max`, and remains usable. For a `Writer`, the error's
    `offset` is the length of the log, and its `length` is the length of the record.

    Attributes:
        path: The file, or `None` if the source has no path.
        offset: The file offset of the record's first fragment.
        length: The number of affected bytes, starting at `offset`.
        reason: `Reason.RECORD_TOO_LARGE`.
        record_len_max: The smallest limit that allows the record, or `None` if its length is unknown.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"longer", b"short"])
    2
    >>> reader = cordwood.open("example.log", record_len_max=5)
    >>> try:
    ...     next(reader)
    ... except cordwood.RecordTooLargeError as error:
    ...     error.offset, next(reader)
    (0, b'short')
    """

    record_len_max: int | None = None


class TornTailError(_RegionError):
    """A log that ends with an incomplete record, or with zeros, was opened for appending.

    If records were appended directly after the incomplete record or the zeros, every reader would lose all new records
    before the next block.

    Attributes:
        path: The file.
        offset: The file offset after the last complete record.
        length: The number of bytes from `offset` to the end of the file.
        reason: The reason why these bytes are not a record. See `SkippedRegion.reason`.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> with open("example.log", "ab") as file:
    ...     _ = file.write(b"torn")
    >>> try:
    ...     cordwood.open("example.log", "a")
    ... except cordwood.TornTailError as error:
    ...     error.offset, error.length
    (10, 4)
    >>> with cordwood.open("example.log", "a", on_torn_tail="truncate") as writer:
    ...     writer.append(b"two")
    10
    """


class PayloadError(CordwoodError, ValueError):
    """A record cannot be decoded, or a value cannot be stored in a record.

    Attributes:
        path: Always `None`, because a record can come from anywhere.
        offset: The offset of the unreadable part in bytes, from the start of the record.
        length: The number of affected bytes, starting at `offset`.
        reason: Why these bytes cannot be decoded.

    >>> from cordwood.payload import PayloadError, WriteBatch
    >>> try:
    ...     WriteBatch(b"short")
    ... except PayloadError as error:
    ...     print(error.offset, error.length, error.reason)
    0 5 truncated
    """

    length: int
    reason: PayloadReason


class _ChangedError(CordwoodError):
    """A log's file has changed."""

    file_len: int | None = None


class LogTruncatedError(_ChangedError):
    """Reading should start at an offset that is past the end of the log, or before its start.

    The offset is a reader's `start`, the target of a `seek`, or the offset a follower has reached. The file was
    truncated, or replaced by another file in which the offset is meaningless. If the oldest segments of a segmented log
    were pruned, the log may start after the offset. In that case, `first_offset` is where the log starts.

    Attributes:
        path: The path of the log. `None` if the source has no path.
        offset: The file offset where reading should start.
        file_len: The length of the file, in bytes. `None` if the length isn't known, for example for an object with
            `read`.
        first_offset: The offset where the log starts, if its oldest segments were pruned and it starts after `offset`.
            Otherwise `None`.
    """

    first_offset: int | None = None


class LogChangedError(CordwoodError):
    """The path no longer names the log that was read, split or indexed before.

    The log was replaced, or rewritten from its start. A log that has only grown still counts as the same log. So does a
    copy of the log. To read the new log, start at offset 0, or make a new index or new splits.

    Attributes:
        path: The path of the log.
        offset: The file offset of the first byte that differs or is missing.
        length: The number of bytes that differ or are missing.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> index = cordwood.index("example.log")
    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"two")
    >>> try:
    ...     index[0]
    ... except cordwood.LogChangedError as error:
    ...     print(error)
    example.log: this is not the log that was read before: bytes 0 to 10 differ
    """

    length: int = 0


class LogRotatedError(_ChangedError):
    """A followed log was renamed, removed or replaced, and all records in the old file have been returned.

    If more records are written to the old file, the follower's next read returns them. To read the new file, start a
    new follower, or use `on_rotation="reopen"`, which makes the follower continue with the new file. A file that
    appears at the path and disappears again between two polls goes unnoticed.

    Attributes:
        path: The path of the log.
        offset: The offset in the old file, in bytes, after the last record or skipped region.
        file_len: The length of the old file, in bytes.
    """


_WORDS = {
    Hint.ON_CORRUPTION: "the next step continues after it; on_corruption='skip' or 'salvage' leaves it out, "
    "cordwood.salvage() makes a new log",
    Hint.CHECK_OFFSET: "seek moved the reader here: if no record starts at this offset, this is not damage",
    Hint.RAISE_RECORD_LEN_MAX: "if you trust the data, raise record_len_max; above 1 GiB, readers and writers need it",
    Hint.LOWER_RECORD_LEN_MAX: "no record is lost: the next call tries again; "
    "a lower record_len_max skips such records",
    Hint.NAME_DIALECT: "to read it as a log anyway, pass dialect",
    Hint.NAME_DETECTED_DIALECT: "pass the detected dialect, or none",
    Hint.NAME_LOG_NUMBER: "to read it, pass the log_number that it belongs to",
    Hint.OMIT_LOG_NUMBER: "pass no log_number, or a dialect that has one: 'rocksdb', 'pebble' or 'recyclable'",
    Hint.OMIT_COMPRESSION: "pass no compression, or dialect='rocksdb' or 'packed'",
    Hint.ENABLE_ZSTD: "build it with the feature zstd",
    Hint.ON_TORN_TAIL: "on_torn_tail='truncate' cuts it off, 'pad' keeps every byte and continues in the next block",
    Hint.PAD: "on_torn_tail='pad' keeps every byte and continues in the next block; cordwood.salvage() makes a new log",
    Hint.PAD_WITH_DIALECT: "if it is a log, pass dialect and on_torn_tail='pad', which continues in the next block",
    Hint.SALVAGE: "cordwood.salvage() makes a new log of all that can be read",
    Hint.CREATE_LOG: "create a new log",
    Hint.REOPEN: "to continue, open the log again in this process",
    Hint.START_AT_FIRST_OFFSET: "start at first_offset: the records before it are gone",
    Hint.START_AGAIN: "to read this log, start at offset 0",
    Hint.OWN_DIRECTORY: "a segmented log needs a directory of its own: move the file away, or choose another directory",
    Hint.SEGMENT_LEN: "to append to a segmented log, pass segment_len",
    Hint.READ_DIRECTORY: "a reader or a follower takes one log; cordwood.verify, stat, map, salvage, scan, index and "
    "plan_splits take directories",
    Hint.OTHER_NAME: "give the new log another name",
}
"""The text of each hint, added to exceptions as a note."""


def _add_hint(error: BaseException, hint: Hint) -> None:
    """Adds a hint to an exception, as the `hint` attribute and as a note shown in tracebacks."""
    error.hint = hint  # type: ignore[attr-defined]
    error.add_note(_WORDS[hint])
