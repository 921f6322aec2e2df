from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, Self, SupportsIndex, TypeAlias, final, overload

from _typeshed import ReadableBuffer
from typing_extensions import disjoint_base

from cordwood._many import Results
from cordwood._open import Split
from cordwood._tables.scan import DecodedScan
from cordwood._tables.schema import ColumnType
from cordwood.errors import PayloadError
from cordwood.payload.entity import Entity
from cordwood.payload.write_batch import Operation
from cordwood.types import Fragment, LogFormat, NotYet, Outcome, Reason, Report, SkippedRegion, Stat
from cordwood.typing import (
    ArrowArrayExportable,
    ArrowStreamExportable,
    ColumnName,
    CompressionName,
    DecoderName,
    DialectName,
    FsspecFile,
    ObjectStore,
    RangeReadable,
    Readable,
    Sink,
    Source,
)

__all__ = [
    "NUMBERED_DIALECTS",
    "SEVERITIES",
    "Follower",
    "FollowerRecords",
    "Fragments",
    "Position",
    "Reader",
    "Record",
    "RecordBatch",
    "RecordDecoder",
    "RecordIndex",
    "Scan",
    "Table",
    "VersionState",
    "WriteBatchOperations",
    "Writer",
    "__version__",
    "build_write_batch",
    "checked_version_edit",
    "crc32c",
    "decode_entity",
    "detect",
    "entity_kinds",
    "fragments",
    "index",
    "is_decoded",
    "is_log_name",
    "leave_out_salvaged",
    "left_out",
    "marks_of",
    "mask_crc",
    "moved_to",
    "pack",
    "reason_in_words",
    "restored_index",
    "salvage",
    "scan",
    "segment_offset",
    "start_at",
    "start_of",
    "stat",
    "unmask_crc",
    "verify",
    "version_edit_field",
    "write_batch_header",
]

_InStore: TypeAlias = RangeReadable | FsspecFile | tuple[ObjectStore, str]
"""A file in a store that is not named by a URL."""

_Object: TypeAlias = ReadableBuffer | Readable | _InStore
"""A source that is neither a path nor a URL: it is one log."""

NUMBERED_DIALECTS: Final[tuple[DialectName, ...]]
"""The dialects whose logs have a number. Such logs cannot be read in parts."""

SEVERITIES: Final[dict[str, str]]
"""The severity of each reason for which a region is skipped."""

__version__: str
"""The version of this package, `"major.minor.patch"`."""

@final
class Record:
    """A record and its place in the file, as returned by `Reader.records` and `Follower.poll`.

    Records are immutable, and two records are equal if their offsets, their data and `salvaged` are
    equal. The constructor takes the attributes as keyword arguments.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> with cordwood.open("example.log") as reader:
    ...     for record in reader.records():
    ...         record
    Record(offset=0, end_offset=10, data=b'one')
    Record(offset=10, end_offset=20, data=b'two')
    """

    def __new__(cls, *, offset: int, end_offset: int, data: ReadableBuffer, salvaged: bool = False) -> Self: ...
    @property
    def offset(self) -> int:
        """The file offset, in bytes, of the header of the record's first fragment.

        `Reader.seek` accepts it.
        """
    @property
    def end_offset(self) -> int:
        """The file offset, in bytes, after the data of the record's last fragment."""
    @property
    def data(self) -> bytes:
        """The record's contents."""
    @property
    def salvaged(self) -> bool:
        """Whether the record starts after damage in the same block.

        This can only be true under the policy `"salvage"`.

        The checksums of a salvaged record are valid, but the reader had to search for its start. If
        a record's data contains another log, a record in that log can be mistaken for a salvaged
        record.
        """
    __match_args__ = ("offset", "end_offset", "data")
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Position:
    """An offset in a log, together with marks that identify the log. Returned by `Follower.position`.

    An offset is valid in only one log, so a position also contains checksums. They cover bytes that
    precede the offset: some in the log's first block, and some in the block before the offset. In a
    segmented log, a position also contains a checksum of the end of the previous segment. When a
    log is read or followed from a position, these checksums are compared with those of the log. If
    any of them differ, the position belongs to a different log, and `LogChangedError` is raised. A
    log remains the same log even if it grows, is copied or renamed, or loses its oldest segments. A
    block that contains damage is not compared. A position at offset 0 matches any log.

    `str(position)` returns a short string without line breaks, and `Position(text)` restores the
    position from it. Positions can be pickled and compared.

    Args:
        text: A position as text, as returned by `str`.

    Raises:
        ValueError: The text doesn't represent a position, or was written by a later release.

    >>> with cordwood.open("live.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> with cordwood.follow("live.log", timeout=0) as follower:
    ...     list(follower)
    ...     text = str(follower.position())
    [b'one']
    >>> with cordwood.open("live.log", "a") as writer:
    ...     _ = writer.append(b"two")
    >>> list(cordwood.follow("live.log", start=cordwood.Position(text), timeout=0))
    [b'two']
    """

    def __new__(cls, text: str) -> Self: ...
    @property
    def offset(self) -> int:
        """The offset in the log, in bytes."""
    def __hash__(self) -> int: ...

@final
class Reader:
    """Reads the records in a log. Created by `cordwood.open(source)` or `Reader`.

    Iterating yields each record as `bytes`. A torn tail, the incomplete end left by a crash, ends
    the iteration without an error and is reported by `outcome`. `skipped` lists the bytes that were
    not returned, so every byte in the file is accounted for. A `with` statement closes the reader;
    a loop doesn't.

    A reader has a single position. A second loop continues where the first one ended, as does
    `next(reader)`, which returns the next record.

    Threads may share a reader, and each record goes to exactly one of them. If the source is a path
    or a buffer, parent and child can both continue reading independently after a fork. If another
    thread was using the reader at the time of the fork, the child cannot use its copy of the
    reader: `close` has no effect, and all other calls raise `OSError`.

    A path is opened only once, and the opened file is read to its end, even with several threads.
    Renaming, replacing or removing the file does not affect the reader. If the file is truncated
    during reading, the reader returns the records that are left and then raises `OSError`. No
    record is lost if a step raises a `MemoryError` or an exception from a signal handler, such as
    `KeyboardInterrupt` for Ctrl-C. The next step then returns the next record.

    Args:
        source: A path (`str` or `os.PathLike`), the content of a file in memory (`bytes` or any
            other buffer, including `mmap`), or an object with `read(size)` that returns bytes. A
            path may name the directory of a segmented log, which is read as a single log whose
            offsets continue from one segment to the next. A path in `bytes` would be read as
            content, so convert it with `os.fsdecode`. For an object with `read`, the log starts at
            the object's current position. If the file behind an `mmap` is truncated while the log
            is being read, the operating system kills the process (`SIGBUS`). This happens to any
            program that reads beyond the end of a mapped file. If a file might be truncated, pass
            its path instead. The source can also be a URL (a `str` such as `"s3://bucket/name"`),
            an `fsspec.OpenFile` or a `UPath`. These are read through fsspec. A tuple of an obstore
            store and a path in it is also accepted, and so is an object with `size()` and
            `read_range(start, end)`. All five kinds are read in ranges of up to 16 MiB, and four
            ranges are read ahead.
        dialect: How the bytes of the log are laid out. `"leveldb"`: a log from LevelDB, Datastore,
            Firestore, App Engine, or RocksDB without recycling. `"rocksdb"`: any RocksDB
            write-ahead log. `"pebble"`: any Pebble log. `"recyclable"`: a log with the features
            that RocksDB and Pebble have in common. `"wandb"`: a Weights & Biases run file.
            `"wandb_old"`: a run file from wandb-core before 0.17.6. `"swanlab"`: a SwanLab run
            file. With `"auto"`, the dialect is detected from the start of the file. Default:
            `None`, which means `"auto"`. RocksDB's metadata in a `"leveldb"` or `"recyclable"` log
            is read if the dialect was detected, but treated as damage if you name the dialect. See
            `cordwood.types.DetectedDialect`.
        log_number: The number of a `"rocksdb"`, `"pebble"` or `"recyclable"` log: the low 32 bits
            of the number in the file's name. Fragments with another number are left over from an
            older log. If the entire file is left over from an older log, a warning is logged to the
            `cordwood` logger. Default: `None`, which means the number in the file's name or, if
            there is none, the number of the first valid fragment.
        compression: How each record in a `"rocksdb"` log is compressed. The only supported value is
            `"zstd"`. Default: `None`, which means the compression stated at the start of the log.
        on_corruption: How to treat damage. `"raise"`: raise `CorruptionError`. The next step
            resumes after the damage. `"skip"`: continue at the next block, as LevelDB does. For
            each of the first ten regions, a warning is logged to the `cordwood` logger. Further
            regions are counted, and their number is logged when the reader reaches the end, seeks
            or is closed. `"stop"`: treat the damage as the end of the log. `"salvage"`: like
            `"skip"`, but keep valid records after the damage in the same block. `records()` marks
            them. Default: `"raise"`.
        start: Return only the records that start at or after this file offset, in bytes. For a path
            or URL, this can also be a `Position` in the same log. Default: 0.
        end: Return only the records that start before this file offset, in bytes. The last record
            can extend past this offset. A record belongs to the range where its first fragment
            starts, so adjacent ranges return each record exactly once. Default: `None`, the end of
            the file.
        verify_checksums: Verify each checksum. If `False`, damaged data is returned as if it were
            intact. Default: `True`.
        record_len_max: The maximum length of a record in bytes. A longer record raises
            `RecordTooLargeError` under the policy `"raise"`, and is treated like damage under the
            other policies. There are two more limits for compressed data. In a compressed log, the
            total length of all records is at most 256 MiB + 200 * (bytes read since the reader was
            created, or since its last seek). In a packed log, the total length of the records in
            one container is at most 256 MiB. A record that would exceed one of these two limits
            raises `RecordTooLargeError` under every policy. The record is neither skipped nor
            consumed. If `record_len_max` is above the default, it also replaces the 256 MiB in
            these limits. Default: 1 GiB.
        storage_options: The arguments for the fsspec file system of a URL, such as
            `{"endpoint_url": "..."}`. In a list of logs, the arguments are used for each URL.
            Default: `None`, which means fsspec's own configuration.

    Raises:
        OSError: The file cannot be opened. If it does not exist, `FileNotFoundError` is raised.
        OverflowError: An integer is negative or too large for its option.
        TypeError: `source` has an unsupported type, or is a text file.
        ModuleNotFoundError: `source` is a URL, but fsspec, or a package that fsspec needs for this
            URL, is not installed.
        ValueError: An option has an invalid value, or fsspec does not know the file system of a
            URL. Also raised if a log number or compression is given for a dialect that does not
            support it.

    Each step of an iteration over the reader, `records` or `record_batches` can raise:

    * `CorruptionError`: the log is damaged, and the policy is `"raise"`. The next step resumes
      after the damage.
    * `RecordTooLargeError`: a record is longer than `record_len_max`, and the policy is `"raise"`.
    * `DialectError`: the source is not a log. Only the first step raises this.
    * `OSError`: the source cannot be read.
    * `ClosedError`: the reader is closed.
    * `ValueError`: a log number or compression was given, but the detected dialect does not support
      it.
    * `RuntimeError`: the source's own `read` uses the reader, or raises `StopIteration`.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> reader = cordwood.Reader("example.log")
    >>> [record.offset for record in reader.records()]
    [0, 10]
    >>> reader.outcome
    Outcome(kind='clean', offset=20)
    """

    def __new__(
        cls,
        source: Source,
        *,
        dialect: DialectName | Literal["auto"] | None = None,
        log_number: int | None = None,
        compression: CompressionName | None = None,
        on_corruption: Literal["raise", "skip", "stop", "salvage"] = "raise",
        start: int | Position = 0,
        end: int | None = None,
        verify_checksums: bool = True,
        record_len_max: int = 1073741824,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __next__(self) -> bytes: ...
    def records(self) -> Iterator[Record]:
        """Returns an iterator over the records and their offsets. It shares the reader's position.

        Returns:
            An iterator of `Record`.

        Raises:
            ClosedError: The reader is closed.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two"])
        2
        >>> with cordwood.open("example.log") as reader:
        ...     [(record.offset, record.data) for record in reader.records()]
        [(0, b'one'), (10, b'two')]
        """
    def record_batches(self, *, target_len: int = 262144, threads: int = 1) -> Iterator[RecordBatch]:
        """Returns an iterator over record batches, which hold many records in a few buffers.

        This is the fastest way to read, because it doesn't create a Python object for each record.

        Args:
            target_len: A batch is complete once it contains at least this many bytes. It is also
                complete once it contains 65,536 records or one record for every 16 bytes of
                `target_len`, whichever is more. A batch may be shorter if the log ends after it, or
                if damage after it has to be reported. Default: 256 KiB.
            threads: Read ahead in this many threads, 1 to 256. Each thread reads a part of 1 to 2
                MiB at a time. If `target_len` is greater than 2 MiB, a part is `target_len` bytes
                long, up to a maximum of 8 MiB. The number of parts in memory exceeds the number of
                threads by at most two. The records and their order are the same for any number of
                threads. Only one thread is used if the source is an object with `read`, if the log
                has log numbers, if the file has fewer than two parts per thread, or if the policy
                is `"stop"`. Default: 1.

        Returns:
            An iterator of `RecordBatch`. Batches are never empty.

        Raises:
            ClosedError: The reader is closed.
            OverflowError: `target_len` is negative or too large.
            ValueError: `threads` is not in the range 1 to 256.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two"])
        2
        >>> with cordwood.open("example.log") as reader:
        ...     [(len(batch), batch.end_offset) for batch in reader.record_batches()]
        [(2, 20)]
        """
    @property
    def dialect(self) -> DialectName:
        """The log's dialect, such as `"leveldb"`.

        Reads the source if the dialect has to be detected.

        Raises:
            DialectError: The source is not a log.
            OSError: The source cannot be read.
            ClosedError: The reader is closed.
        """
    @property
    def dialect_known(self) -> bool:
        """Whether the dialect was specified or can be detected.

        If the dialect is unknown, the log is read as `"leveldb"`. Reads the source if the dialect
        has to be detected.

        Raises:
            DialectError: The source is not a log.
            OSError: The source cannot be read.
            ClosedError: The reader is closed.
        """
    @property
    def log_number(self) -> int | None:
        """The log's number. `None` if the dialect has no log numbers or the number isn't known.

        Reads the source if the number has to be detected.

        Raises:
            DialectError: The source is not a log.
            OSError: The source cannot be read.
            ClosedError: The reader is closed.
        """
    @property
    def compression(self) -> CompressionName | None:
        """How each record is compressed: `"zstd"`, or `None` if records are not compressed.

        Reads the source if the compression has to be detected.

        Raises:
            DialectError: The source is not a log.
            OSError: The source cannot be read.
            ClosedError: The reader is closed.
        """
    def tell(self) -> int:
        """Returns the end of the data returned or skipped so far, as a file offset.

        To continue from this offset later, pass it to `seek`. A torn tail is not skipped: once the
        incomplete record has been completed, you can read it from this offset.

        Returns:
            The offset in bytes.

        Raises:
            ClosedError: The reader is closed.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two"])
        2
        >>> with cordwood.open("example.log") as reader:
        ...     next(reader), reader.tell()
        (b'one', 10)
        """
    def seek(self, offset: int, /) -> None:
        """Moves to a file offset taken from `Record.offset`, `Record.end_offset` or `tell`.

        Any other offset makes the reader report the bytes there as damage. Seeking resets `skipped`
        and `outcome`, and the offset becomes the `start` of the range.

        Args:
            offset: The file offset, in bytes.

        Raises:
            io.UnsupportedOperation: The source cannot seek.
            OSError: Seeking failed.
            ClosedError: The reader is closed.
            OverflowError: `offset` is negative or has more than 64 bits.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two"])
        2
        >>> with cordwood.open("example.log") as reader:
        ...     reader.seek(10)
        ...     list(reader)
        [b'two']
        """
    @property
    def skipped(self) -> tuple[SkippedRegion, ...]:
        """The regions found but not returned so far, up to the first 100,000, ordered by offset.

        Adjacent regions are merged if their reasons are identical, including all details.

        `skipped`, `skipped_len` and `outcome` can still be read after the reader is closed.
        """
    @property
    def ok(self) -> bool:
        """True if no damage has been found so far.

        Only regions with severity `"corruption"` count as damage; a torn tail doesn't. There may be
        damage even if `outcome` is `"clean"`, because `outcome` describes only the end of the file.
        """

    @property
    def skipped_len(self) -> int:
        """The number of bytes not returned so far, including any regions that aren't in `skipped`."""
    @property
    def outcome(self) -> Outcome:
        """How reading ended. `"unfinished"` until it ends."""
    @property
    def other_log_number(self) -> int | None:
        """The number of another log if everything read so far belongs to that log, otherwise `None`.

        This is never the number in the file's name or in `log_number`. A value other than `None`
        has one of two causes: either the file was recycled and no record has been written to the
        new log yet, or the file was renamed or copied.

        Raises:
            ClosedError: The reader is closed.
        """
    @property
    def path(self) -> str | None:
        """The path, the URL, or the `name` of an object with `read_range`. `None` for other sources."""
    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
    def close(self) -> None:
        """Releases the source. A file object that was passed in stays open. Closing twice is allowed.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     _ = writer.append(b"one")
        >>> reader = cordwood.open("example.log")
        >>> reader.close()
        >>> reader.closed, reader.skipped
        (True, ())
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@final
class RecordBatch:
    """Consecutive records in one buffer, with their positions in another buffer.

    The layout is Arrow's `LargeBinary`, so `pyarrow.record_batch(batch)` doesn't make a copy.

    `Reader.record_batches` returns record batches. The buffers are read-only, are shared rather
    than copied, and don't change while an object refers to them.

    `len(batch)` is the number of records. `batch[i]` copies one record to `bytes`, or raises
    `IndexError` if there is no record `i`. Slicing returns a list, and iterating yields every
    record.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> reader = cordwood.open("example.log")
    >>> for batch in reader.record_batches():
    ...     bytes(batch.data), batch.offsets.tolist(), batch.record_offsets.tolist(), batch[1]
    (b'onetwo', [0, 3, 6], [0, 10], b'two')
    """

    @property
    def data(self) -> memoryview:
        """The bytes of all records, concatenated."""
    @property
    def offsets(self) -> memoryview:
        """The position in `data` where each record starts, followed by the end of the last record.

        A batch of `n` records has `n + 1` positions: 64-bit signed integers in native byte order
        (format `"q"`).
        """
    @property
    def record_offsets(self) -> memoryview:
        """The file offset of each record.

        64-bit unsigned integers in native byte order (format `"Q"`).
        """
    @property
    def end_offset(self) -> int:
        """The file offset after the last record."""
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Returns the batch as an Arrow table, without copying it.

        The table has the columns `offset` and `record`, and is passed in two capsules of the Arrow
        C data interface.

        Args:
            requested_schema: Ignored, as the interface allows. The consumer casts the columns
                itself. Default: `None`.

        Returns:
            One capsule with the schema and one with the table.
        """

    def __arrow_c_schema__(self) -> object:
        """Returns the columns and their types, in a capsule of the Arrow C schema interface.

        Returns:
            The capsule.
        """

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __reversed__(self) -> Iterator[bytes]: ...
    @overload
    def __getitem__(self, index: int, /) -> bytes: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[bytes]: ...

@final
class Follower:
    """Follows a log that is being written. `cordwood.follow` creates a follower.

    Iterating yields each record as `bytes` once it is complete, and then waits for the next one.
    Iteration also waits at an incomplete record and at the zeros of a preallocated file. A `for`
    loop blocks the current thread while it waits, but Ctrl-C works and other threads keep running.
    An `async for` loop waits in the `asyncio` event loop, and reads the file in the event loop's
    thread. The iteration ends after `timeout` seconds without a record, and a new iteration
    continues from the same position. `next(follower)` performs one step of the iteration. A `with`
    or `async with` statement closes the follower; a loop doesn't.

    Threads may share a follower, even while one of them waits. If another thread closes the
    follower, the waiting thread gets a `ClosedError`. After a fork, both processes can continue
    following independently. If another thread was polling the file at the time of the fork, the
    child cannot use its copy of the follower: `close` has no effect, and all other calls raise
    `OSError`.

    Args:
        path: The file, which must exist but may be empty, or the directory of a segmented log. With
            a segmented log, rotations never raise an exception and no record is missed.
        start: Return only the records that start at or after this offset, which is a file offset in
            bytes or the `position` of an earlier run. A position also identifies the log. If a
            record starts before this offset, the rest of it is skipped and not reported, even if it
            is damaged. Default: 0.
        timeout: The longest time to wait for a record in each step of the iteration, in seconds.
            With 0, the iteration returns the records already in the file and never waits. Default:
            `None`, which waits forever.
        dialect: Same as for `Reader`. The dialect is detected as soon as the file has a file header
            or a complete fragment. `"wandb_old"` is never detected, so you must pass it explicitly.
            Default: `None`.
        log_number: Same as for `Reader`. Default: `None`.
        compression: Same as for `Reader`. Default: `None`.
        on_corruption: Same as for `Reader`, except that `"salvage"` is not supported. Default:
            `"raise"`.
        on_rotation: How to react to a rotation. A rotation means that the file at the path has been
            replaced or removed. The follower reacts to this only after it has returned everything
            in the old file. `"raise"`: raise `LogRotatedError`. `"reopen"`: wait until there is a
            file at the path, and read it from its start. `tell`, `skipped` and `outcome` then
            describe the new file. If a new file appears at the path and is replaced before the next
            poll, the follower silently misses it. Use `"reopen"` only if the time between rotations
            is much longer than `poll_interval`. `"stop"`: end the iteration for good, and report
            the end in `outcome`. With `"reopen"` and `"stop"`, a warning is logged to the
            `cordwood` logger if the old file ended in an incomplete record. Default: `"raise"`.
        poll_interval: How long to sleep between polls of the file, in seconds. Default: 0.05.
        retry_time: Apparent damage may be a write still in progress if no valid block follows it.
            Before reporting such damage, the follower rereads the bytes at least three times, over
            at least this many seconds. With 0, the damage is reported at once. Default: 0.1.
        record_len_max: The maximum length of a record in bytes, as in `Reader`. Default: 1 GiB.

    Raises:
        LogChangedError: `start` is a position in another log.
        OSError: The file cannot be opened, or is not a regular file.
        OverflowError: An integer is negative or too large for its option.
        TypeError: `path` is not a path.
        ValueError: An option has an invalid value.

    Both `poll` and each step of the iteration can raise:

    * `CorruptionError`, `RecordTooLargeError`: the log is damaged or a record is too long, and the
      policy is `"raise"`. The next step resumes after the damage or the record.
    * `DialectError`: the file is not a log.
    * `LogChangedError`: another log has replaced this one. Every later step raises this again.
    * `LogTruncatedError`: the file is now shorter than the part already read. Every later step
      raises this again.
    * `LogRotatedError`: the file at the path has been replaced or removed, and everything in the
      old file has been returned. Raised only with `on_rotation="raise"`.
    * `OSError`: the file cannot be read. The next step tries again.
    * `ClosedError`: the follower is closed.

    >>> with cordwood.open("live.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> follower = cordwood.follow("live.log", timeout=0)
    >>> [(record.offset, record.data) for record in follower.records()]
    [(0, b'one')]
    >>> follower.waiting
    NotYet(reason='idle', offset=10, file_len=10)
    """

    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        start: int | Position = 0,
        timeout: float | None = None,
        dialect: DialectName | Literal["auto"] | None = None,
        log_number: int | None = None,
        compression: CompressionName | None = None,
        on_corruption: Literal["raise", "skip", "stop"] = "raise",
        on_rotation: Literal["raise", "reopen", "stop"] = "raise",
        poll_interval: float = 0.05,
        retry_time: float = 0.1,
        record_len_max: int = 1073741824,
    ) -> Self: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __next__(self) -> bytes: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    def records(self) -> FollowerRecords:
        """Returns an iterator over the records and their offsets. It also works with `async for`.

        The iterator shares the follower's position.

        Returns:
            An object that is both an iterator and an asynchronous iterator of `Record`.

        Raises:
            ClosedError: The follower is closed.

        >>> with cordwood.open("live.log", "w") as writer:
        ...     _ = writer.append(b"one")
        >>> with cordwood.follow("live.log", timeout=0) as follower:
        ...     [record.end_offset for record in follower.records()]
        [10]
        """
    def poll(self) -> Record | None:
        """Returns the next record if it is complete, without waiting.

        Returns:
            The record, or `None`. After `None`, `waiting` says why there is no record, and
            `outcome` says whether more can follow.

        Raises:
            CordwoodError: The log is damaged or the file has changed. Iteration raises the same
                exceptions.
            OSError: The file cannot be read.
            ClosedError: The follower is closed.

        >>> with cordwood.open("live.log", "w") as writer:
        ...     _ = writer.append(b"one")
        >>> with cordwood.follow("live.log") as follower:
        ...     follower.poll(), follower.poll()
        (Record(offset=0, end_offset=10, data=b'one'), None)
        """
    def tell(self) -> int:
        """Returns the end of the data returned or skipped so far, as a file offset.

        A new follower whose `start` is this offset continues where this one left off. However, if a
        record starts before this offset and the start of the record was damaged, the new follower
        doesn't report the rest of that record.

        Returns:
            The offset in bytes.

        Raises:
            ClosedError: The follower is closed.

        >>> with cordwood.open("live.log", "w") as writer:
        ...     _ = writer.append(b"one")
        >>> with cordwood.follow("live.log", timeout=0) as follower:
        ...     list(follower), follower.tell()
        ([b'one'], 10)
        """
    def position(self) -> Position:
        """Returns the position at the end of the data returned or skipped so far.

        A position contains the offset that `tell` returns, and also identifies the log. To continue
        at that offset later, pass the position to a new follower as `start`. If there is a
        different log at the path by then, the new follower raises `LogChangedError`. To store a
        position, convert it with `str`.

        Returns:
            A `Position`. To determine it, at most two blocks of the file are read.

        Raises:
            ClosedError: The follower is closed.
            LogTruncatedError: The file has shrunk.
            OSError: The file cannot be read.

        >>> with cordwood.open("live.log", "w") as writer:
        ...     _ = writer.append(b"one")
        >>> with cordwood.follow("live.log", timeout=0) as follower:
        ...     list(follower), follower.position().offset
        ([b'one'], 10)
        """
    @property
    def waiting(self) -> NotYet | None:
        """Where and why the last step or `poll` found no record.

        `None` if it found a record, raised an exception or reached the end of the log.
        """
    @property
    def delay(self) -> float:
        """The time to wait before the next `poll` in your own loop, in seconds.

        This is `poll_interval`, or less while bytes that look damaged are being reread.
        """
    @property
    def timeout(self) -> float | None:
        """The longest time to wait for a record in each step, in seconds, or `None` for no limit."""
    @property
    def skipped(self) -> tuple[SkippedRegion, ...]:
        """The regions found but not returned so far, up to the first 100,000, ordered by offset.

        Adjacent regions are merged if their reasons are identical, including all details.
        """
    @property
    def ok(self) -> bool:
        """True if no damage has been found so far.

        Only regions with severity `"corruption"` count as damage; a torn tail doesn't.
        """

    @property
    def skipped_len(self) -> int:
        """The number of bytes not returned so far, including any regions that aren't in `skipped`."""
    @property
    def outcome(self) -> Outcome:
        """How the follower finished, or `"unfinished"` if it hasn't finished yet.

        The outcome is `"stopped"` if the follower found damage and the policy is `"stop"`. It is
        `"clean"` if the follower reached the trailer of a closed Pebble log. After a rotation with
        `on_rotation="stop"`, it is `"torn_tail"` if the old file ends with bytes that are not a
        complete record, and otherwise `"clean"`.
        """
    @property
    def dialect(self) -> DialectName:
        """The log's dialect: `"leveldb"` until another dialect is detected."""
    @property
    def log_number(self) -> int | None:
        """The log's number, or `None` if the log has no number or the number isn't known yet."""
    @property
    def compression(self) -> CompressionName | None:
        """The records' compression: `"zstd"`, or `None` if there is none or it isn't known yet."""
    @property
    def path(self) -> str:
        """The file's path."""
    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
    def close(self) -> None:
        """Closes the file. Closing twice is allowed.

        You can still read `skipped`, `skipped_len`, `outcome`, `dialect`, `log_number` and
        `compression`.
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...
    def __aenter__(self) -> Awaitable[Self]: ...
    def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None, /
    ) -> Awaitable[None]: ...

@final
class FollowerRecords:
    """An iterator of `Record` that also works with `async for`. Returned by `Follower.records`."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...
    def __aiter__(self) -> AsyncIterator[Record]: ...

@final
class Writer:
    """Writes records to a log, byte for byte as LevelDB does.

    To create a writer, call `cordwood.open(sink, "w")` or `cordwood.Writer(sink)`.

    By default, once `append` has returned, the record survives even if this process crashes or is
    killed. Synced records also survive a machine crash. A `with` statement closes the writer.

    Threads may share a writer, and each record is written whole. A file stays locked until its
    writer is closed. The lock keeps out a second writer in this process, and in any other process
    that checks the lock. All programs that use cordwood check it. A writer belongs to the process
    that opened it: in a forked child, `append`, `extend`, `flush` and `sync` raise `OSError`, and
    closing or dropping the writer has no effect.

    A failed write to a file is undone: the file is truncated to the end of its last complete
    record, and the writer stays usable. If the write can't be undone, or a sync fails, every later
    call fails. It is then impossible to tell which bytes after `durable_offset` are on disk, and a
    second sync would not help. To recover, close the log and reopen it with `"a"` in this process.
    Reopening rewrites the uncertain part. If a write to an object fails, the writer does not use
    the object again.

    An unclosed writer writes its buffer and warns (`ResourceWarning`) when it is dropped or when
    the garbage collector finds it in a cycle. A failure at that point is reported through
    `sys.unraisablehook` and doesn't replace an exception that is already being raised. When the
    program ends, cordwood also flushes and closes each unclosed writer with a warning, even if a
    running thread is using the writer.

    Args:
        sink: A path (`str` or `os.PathLike`), or an object with `write(data)`. For an object, the
            log starts at its current position. `data` is a read-only `memoryview` whose bytes never
            change, so the object may keep it.
        mode: `"x"`: create a file, and fail if it exists. `"w"`: create a file, replacing any
            existing one. `"a"`: append to the file, or create it if it does not exist. For an
            object, pass `"x"` or `"w"`, which are equivalent. Default: `"x"`.
        dialect: How the bytes are laid out, as in `Reader`. For Pebble, closing also writes the
            end-of-log trailer. Default: `None`, which means `"leveldb"` for a new file. If `"a"`
            opens an existing file, `None` means the dialect that `Reader` detects.
        log_number: The log number, for `"rocksdb"`, `"pebble"` and `"recyclable"`. Each fragment
            carries it. You cannot append to a log with a number. Default: `None`. The fragments
            then carry no number and are laid out as in `"leveldb"`, even if the file's name
            contains a number.
        compression: How to compress each record, for `"rocksdb"`. The only supported value is
            `"zstd"`. You cannot append to a compressed log. Default: `None`, which means that
            records are not compressed.
        flush: For a path, when to pass records to the operating system, which keeps them even after
            this process ends. `"append"`: before each `append` returns. Each record takes one
            write, or one write per 256 KiB if it is longer. `extend` makes one write per 1,024
            records or 128 KiB. `"close"`: up to 256 KiB of records are buffered until `flush`,
            `sync` or `close`. If the sink is an object, you cannot pass `flush`: records are always
            buffered, as under `"close"`. Default: `None`, which means `"append"`.
        sync: When to wait for records to reach the disk, apart from calls to `sync()` and
            `append(..., sync=True)`. `"never"`: only in those calls. However, each segment of a
            segmented log is synced before the next one starts. `"close"`: when the writer is
            closed. `"append"`: before each `append` returns, and when the writer is closed.
            Default: `"never"`.
        sync_interval: A time in seconds. An `append` also syncs if the last sync was at least this
            long ago. Closing the writer syncs too. No thread runs in the background, so a sync
            never happens just because time has passed. You cannot combine `sync_interval` with
            `sync`. Default: `None`.
        on_torn_tail: For `"a"`, how to treat a file that does not end with a complete record.
            `"refuse"`: raise an exception. `"truncate"`: cut off the bytes that a crash may have
            left after the last complete record. An exception is raised if there is any other
            damage, if a single flipped bit can explain the damage, or if the file has no valid
            fragment. `"pad"`: keep every byte, damaged or not, and continue in the next block.
            Readers keep reporting the skipped bytes. A damaged file that has no valid fragment
            raises an exception, unless you pass `dialect` and a crash may have left the file in
            this state. Default: `"refuse"`.
        checkpoint: For `"a"`, a file offset where a record starts or ends, such as an earlier
            `durable_offset`. Everything before the checkpoint must be on disk. The writer reads the
            file from the checkpoint onward to find the end of the log, then rewrites the bytes
            after the checkpoint so that the next sync covers them. If the checkpoint is greater
            than 0, the file must exist. Default: `None`. The file is then read from the start, and
            bytes are rewritten only if a sync of this file has failed in this process.
        segment_len: For `"a"`, the maximum length of a segment in bytes. Pass `segment_len` to
            write a segmented log, which is a directory of files. A segment is longer only if its
            first record doesn't fit. `sink` is the directory, which is created if it does not
            exist. All offsets, including `checkpoint`, are log offsets: they continue from one
            segment to the next. The dialect is `"leveldb"` or `"packed"`. Only the last segment is
            read. Default: `None`, which means that the log is one file.
        retention_bytes: The number of bytes to keep in the older segments of a segmented log. Each
            time a new segment starts, the oldest segments are removed, as long as at least this
            many bytes remain before the new segment. Only closed and synced segments are removed,
            whether or not a reader has read them. Default: `None`, which keeps all segments.
        retention_time: The number of seconds to keep a segment of a segmented log. Each time a new
            segment starts, segments are removed, oldest first. Removal stops at the first segment
            whose file has changed within this time. If a segment's last change is in the future,
            that segment and all later ones are kept. Default: `None`, which keeps all segments.
        record_len_max: The maximum length of a record in bytes. A longer record raises
            `RecordTooLargeError`. For `"a"`, this also limits how much of a packed log is
            decompressed to find its end. The rules are the same as for a `Reader`. Default: 1 GiB,
            as in `Reader`. A `Reader` needs a higher `record_len_max` to read records longer than 1
            GiB.

    Raises:
        OSError: The file cannot be opened, its name (such as `000012.log`) contains a log number
            other than `log_number`, or no record starts or ends at `checkpoint`. In mode `"x"`,
            `FileExistsError` is raised if the file exists. With a `checkpoint`, `FileNotFoundError`
            is raised if the file is missing.
        BlockingIOError: Another writer has the file open.
        TornTailError: In mode `"a"`, the file ends with an incomplete record or with zeros, and
            `on_torn_tail` is `"refuse"`.
        CorruptionError: In mode `"a"`, the file is damaged in a way that `on_torn_tail` does not
            accept.
        DialectError: In mode `"a"`, the file is not a log, or not in the given dialect. Also raised
            if the log has a log number or is compressed, because you cannot append to such a log.
        OverflowError: An integer is negative or too large for its option.
        TypeError: `sink` is not a path and has no `write`, or is a text file.
        ValueError: An option has an invalid value or is not allowed here, such as a log number or
            compression for a dialect that does not support it.

    >>> with cordwood.Writer("example.log", "w") as writer:
    ...     writer.append(b"one")
    0
    >>> with cordwood.Writer("example.log", "a", sync="close") as writer:
    ...     writer.append(b"two")
    10
    >>> writer.durable_offset
    20
    """

    def __new__(
        cls,
        sink: Sink,
        mode: Literal["x", "w", "a"] = "x",
        *,
        dialect: DialectName | Literal["auto"] | None = None,
        log_number: int | None = None,
        compression: CompressionName | None = None,
        flush: Literal["append", "close"] | None = None,
        sync: Literal["never", "close", "append"] = "never",
        sync_interval: float | None = None,
        on_torn_tail: Literal["refuse", "truncate", "pad"] = "refuse",
        checkpoint: int | None = None,
        segment_len: int | None = None,
        retention_bytes: int | None = None,
        retention_time: float | None = None,
        record_len_max: int = 1073741824,
    ) -> Self: ...
    def append(self, record: ReadableBuffer, /, *, sync: bool = False) -> int:
        """Appends a record.

        Args:
            record: `bytes` or any other buffer.
            sync: Wait until the record and everything before it are on disk. Threads that wait
                at the same time share one sync. Default: `False`.

        Returns:
            The file offset of the header of the record's first fragment, in bytes.

        Raises:
            OSError: A write or a sync failed. The message says how many bytes are on disk and
                whether the writer can still be used. If the write was undone, the record is not in
                the log. If only the sync failed, the record may be in the log.
            TypeError: `record` is not bytes-like.
            ClosedError: The writer is closed.
            RecordTooLargeError: The record is longer than `record_len_max`. The record is not in
                the log.
            MemoryError: There is not enough memory for the record, so it is not in the log. If
                memory runs out only when the returned offset is created, the record is in the log,
                and `tell()` returns the offset after it.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.append(b"one"), writer.append(b"two", sync=True)
        (0, 10)
        """
    def extend(self, records: Iterable[ReadableBuffer] | ArrowArrayExportable | ArrowStreamExportable, /) -> int:
        """Appends all records from an iterable or an Arrow column.

        For a column from pyarrow, polars or another library, this doesn't create a Python object
        for each record.

        If this raises an exception, the records before the error are already in the log. After a
        failed write, however, the log lacks the records that had not reached the file yet, possibly
        all of them. `tell` returns the offset where the log ends.

        Args:
            records: An iterable of `bytes` or other buffers, or a column of bytes or text, such as
                a column of a `pyarrow.Table`. A column must have `__arrow_c_array__` or
                `__arrow_c_stream__`. Its text is appended as UTF-8.

        Returns:
            The number of records appended.

        Raises:
            OSError: Same as for `append`. Also raised if the column's stream fails.
            TypeError: A record is not bytes-like, or `records` is a single record, a string, a
                table, or a column of a type other than bytes or text.
            ValueError: A record in a column is null. The message contains the record's index.
            ClosedError: The writer is closed.
            MemoryError: Same as for `append`.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two"])
        2
        """
    def tell(self) -> int:
        """Returns the log's length, including records that have not been written out yet.

        Returns:
            The length in bytes, which is also the file offset after the last record.

        Raises:
            ClosedError: The writer is closed.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.append(b"one"), writer.tell()
        (0, 10)
        """
    def flush(self) -> None:
        """Passes all records appended so far to the operating system or to the sink.

        The records then survive if this process ends or crashes, but not if the machine crashes.

        Raises:
            OSError: Same as for `append`.
            ClosedError: The writer is closed.

        >>> with cordwood.open("example.log", "w", flush="close") as writer:
        ...     _ = writer.append(b"one")
        ...     writer.flush()
        ...     list(cordwood.open("example.log"))
        [b'one']
        """
    def sync(self) -> None:
        """Flushes the records and waits until they are on disk.

        For a new file, this also makes its directory entry durable.

        Raises:
            OSError: The records may not have reached the disk. A failed sync can't be retried, so
                the writer stays unusable.
            io.UnsupportedOperation: The sink doesn't have a file descriptor.
            ClosedError: The writer is closed.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     _ = writer.append(b"one")
        ...     writer.sync()
        ...     writer.durable_offset
        10
        """
    def rotate(self) -> int:
        """Starts a new segment in a segmented log now, unless the last segment has no records.

        Without this call, a new segment starts when a record would make the last segment longer
        than `segment_len`.

        Returns:
            The log offset where the last segment starts, in bytes.

        Raises:
            OSError: The segment cannot be created. The writer stays usable. Also raised if a write
                or a sync fails, as in `sync`.
            io.UnsupportedOperation: The log is not segmented.
            ClosedError: The writer is closed.

        >>> with cordwood.open("orders", "a", segment_len=64 << 20) as writer:
        ...     _ = writer.append(b"one")
        ...     writer.rotate()
        10
        """

    def prune_before(self, offset: int, /) -> int:
        """Removes the segments that end at or before an offset, starting with the oldest.

        The last segment is never removed.

        Other threads can append during this call. After a crash, some of these segments may still
        exist, but there is never a gap between the ones that remain.

        Args:
            offset: A log offset, in bytes. Records at or after this offset are kept.

        Returns:
            The new `first_offset`.

        Raises:
            OSError: A segment cannot be removed. The writer stays usable. Also raised if a sync
                fails, as in `sync`.
            OverflowError: `offset` is negative.
            io.UnsupportedOperation: The log is not segmented.
            ClosedError: The writer is closed.

        >>> with cordwood.open("orders", "a", segment_len=64 << 20) as writer:
        ...     _ = writer.append(b"one")
        ...     end = writer.rotate()
        ...     writer.prune_before(end), writer.first_offset
        (10, 10)
        """

    @property
    def first_offset(self) -> int:
        """The log offset of the first byte that still exists, or 0 if the log is not segmented."""

    def wait_durable(self, offset: int, /) -> None:
        """Waits until every byte before an offset is on disk, without appending a record.

        For example, one thread can append while another waits for the offset that `tell()` returns
        after the append. If a sync already running in another thread covers the offset, this call
        waits for that sync. Otherwise, it syncs. Ctrl-C raises `KeyboardInterrupt` only after the
        sync.

        Args:
            offset: A file offset, in bytes. To wait for a record, pass the offset that `tell()`
                returns after its `append`. The offset returned by `append` is the start of the
                record.

        Raises:
            OSError: A write or a sync failed, as in `sync`. Also raised if `offset` is past the end
                of the log (`errno.EINVAL`).
            OverflowError: `offset` is negative.
            io.UnsupportedOperation: The sink doesn't have a file descriptor.
            ClosedError: The writer is closed.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     _ = writer.append(b"one")
        ...     writer.wait_durable(writer.tell())
        ...     writer.durable_offset
        10
        """
    @property
    def durable_offset(self) -> int:
        """Everything before this file offset is on disk and survives a machine crash.

        Until this writer's first sync, this offset is 0, or the start of the last segment in a
        segmented log. You can still read this attribute after the writer is closed.
        """
    @property
    def discarded_tail(self) -> SkippedRegion | None:
        """The region that followed the last complete record when `"a"` opened the log, or `None`.

        The region was cut off or kept, depending on `on_torn_tail`.
        """
    @property
    def dialect(self) -> DialectName:
        """The dialect that records are written in, such as `"leveldb"`."""
    @property
    def log_number(self) -> int | None:
        """The log number in each fragment, or `None` if fragments don't contain a number."""
    @property
    def compression(self) -> CompressionName | None:
        """How each record is compressed: `"zstd"`, or `None` if records are not compressed."""
    @property
    def path(self) -> str | None:
        """The path, or `None` if the sink is an object."""
    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
    def close(self) -> None:
        """Flushes, syncs if `sync` requires it, and closes the file. Closing twice is allowed.

        If other threads are waiting for a sync, this call waits until the sync is done. Afterwards,
        another writer can open the file. In a forked child, this only closes the child's copy of
        the descriptor.

        A sink that is an object is flushed but not closed.

        Raises:
            OSError: A write or a sync failed. The writer is closed even if this exception is
                raised.

        >>> writer = cordwood.open("example.log", "w")
        >>> writer.append(b"one")
        0
        >>> writer.close()
        >>> list(cordwood.open("example.log"))
        [b'one']
        """
    def __enter__(self) -> Self: ...
    def __del__(self) -> None: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

@final
class WriteBatchOperations:
    """An iterator that decodes the operations of a write batch one at a time.

    Args:
        record: The record.
        engine: `"rocksdb"` or `"pebble"`.
    """

    def __new__(cls, record: bytes, engine: str, /) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Operation: ...

def version_edit_field(record: bytes, offset: int, /) -> tuple[str, int, object, int] | None:
    """Decodes one field of a version edit.

    Fields are decoded one at a time, because a decoded field takes much more memory than its bytes
    in the record.

    Args:
        record: The record.
        offset: The field's offset in the record, in bytes.

    Returns:
        The name of the field's kind, its tag, its value, and the offset where the field ends.
        `None` at the end of the record.

    Raises:
        PayloadError: The bytes at the offset are not a field.
    """

def write_batch_header(record: ReadableBuffer, engine: str, /) -> tuple[bytes, int, int]:
    """Reads the numbers in a write batch's header, and returns them with the record.

    Args:
        record: `bytes` or any other buffer.
        engine: `"rocksdb"` or `"pebble"`.

    Returns:
        The record as `bytes`, the first operation's sequence number, and the number of counted
        operations.

    Raises:
        PayloadError: The record is shorter than a batch header.
        TypeError: `record` is not bytes-like.
        ValueError: The engine is unknown.
    """

def build_write_batch(sequence: int, operations: Iterable[Operation], engine: str, /) -> bytes:
    """Builds the record for a write batch with these operations.

    Args:
        sequence: The sequence number of the first operation.
        operations: The operations, in order.
        engine: `"rocksdb"` or `"pebble"`.

    Returns:
        The record.

    Raises:
        PayloadError: The engine does not support one of the operations, or a part is too large.
        TypeError: An item is not an `Operation`, lacks an attribute that its kind needs, or has an
            attribute that its kind does not have.
        ValueError: The engine or a kind of operation is unknown.
        OverflowError: A number is negative or has too many bits.
    """

@final
class VersionState:
    """The state of a database after all edits in its MANIFEST.

    The state consists of the database's tables and the last value of each numeric field.
    """
    def apply(self, record: ReadableBuffer, /) -> None:
        """Applies the edit in the next record.

        Args:
            record: `bytes` or any other buffer.

        Raises:
            PayloadError: The record is not a version edit. In that case, the state is unchanged.
            TypeError: `record` is not bytes-like.
        """
    def numbers(self) -> tuple[dict[str, int], dict[int, int], dict[int, int], bool]:
        """Returns the numbers that the edits contain.

        Returns:
            A tuple of four items. The first is the last value of each numeric field, by field name.
            The second is the smallest log number that each column family still needs. The third is
            the synced length in bytes of each log that RocksDB tracks. The fourth is true if
            LevelDB knows all fields.
        """
    def tables(self) -> list[tuple[int, bytes | None, dict[str, Any]]]:
        """Returns the tables, sorted by column family, level and number.

        Returns:
            For each table, a tuple of the number of its column family, the family's name (if the
            MANIFEST contains it), and the table's parts by name.
        """

def checked_version_edit(record: ReadableBuffer, /) -> bytes:
    """Checks a version edit by decoding the whole edit, and returns its record.

    Args:
        record: `bytes` or any other buffer.

    Returns:
        The record as `bytes`.

    Raises:
        PayloadError: The record is not a version edit.
        TypeError: `record` is not bytes-like.
    """

@overload
def verify(  # type: ignore[overload-overlap]  # A `str` is an iterable, too.
    source: str | PathLike[str],
    *,
    threads: int = 1,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    start: int | Position = 0,
    end: int | None = None,
    verify_checksums: bool = True,
    record_len_max: int = 1073741824,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Report | Any: ...
@overload
def verify(  # type: ignore[overload-overlap]  # A tuple is an iterable, too.
    source: _Object | Split,
    *,
    threads: int = 1,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    start: int | Position = 0,
    end: int | None = None,
    verify_checksums: bool = True,
    record_len_max: int = 1073741824,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Report: ...
@overload
def verify(
    source: Iterable[str | PathLike[str] | Split | _InStore],
    *,
    threads: int = 1,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    start: int | Position = 0,
    end: int | None = None,
    verify_checksums: bool = True,
    record_len_max: int = 1073741824,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Results[Report]:
    """Reads a log to the end, and reports on its contents and any damage.

    Damage does not raise an exception. The log is read with the policy `"salvage"`, so the report
    covers only the damage itself, not the rest of the block. `Report.salvaged_count` is the number
    of records that LevelDB and the policy `"skip"` would drop.

    If damage is found in a log with a log number, and the source can seek, the log is read a second
    time. The report then describes the second pass. This matters while RocksDB or Pebble is
    overwriting an older log with a new one. The first pass may see bytes of the older log where a
    new record is written a moment later.

    Args:
        source: Any source that `Reader` accepts, or a `Split`. To read many logs, pass a directory,
            a pattern such as `"*.log"`, or a list of paths, URLs, directories, patterns and splits.
            A directory stands for all logs in it and its subdirectories.
        threads: The number of threads to read with, from 1 to 256. The report is the same for any
            number of threads. Only one thread is used for an object with `read`, a log with log
            numbers, or a file with less than about 2 MiB per thread. If there are many logs,
            several are read at a time. Default: 1.
        dialect: Same as for `Reader`. Default: `None`.
        log_number: Same as for `Reader`. Default: `None`.
        compression: Same as for `Reader`. Default: `None`.
        start: A file offset in bytes, as in `Reader`. Default: 0.
        end: A file offset in bytes, as in `Reader`. Default: `None`.
        verify_checksums: Same as for `Reader`. Default: `True`.
        record_len_max: The maximum length of a record in bytes, as in `Reader`. Default: 1 GiB.
        storage_options: Same as for `Reader`. Default: `None`.
        progress: A function to call after each read, in the thread that did the read. Its argument
            is the number of new bytes, at most a few MiB. It is 0 if all bytes in this read had
            been read before. If the length of the source is known, the numbers add up to at most
            that length. If `progress` raises, so does this function. Default: `None`.

    Returns:
        The report, whose `ok` is true if there is no damage. If there are many logs, a `Results`,
        which maps each log's name to its report.

    Raises:
        DialectError: The source is not a log.
        OSError: The source cannot be opened or read.
        OverflowError: An integer is negative or too large for its option.
        TypeError: `Reader` does not accept `source`.
        ValueError: An option has an invalid value.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> report = cordwood.verify("example.log")
    >>> report.ok, report.record_count, report.payload_len, report.file_len
    (True, 2, 6, 20)
    """

@overload
def salvage(  # type: ignore[overload-overlap]  # A `str` is an iterable, too.
    source: str | PathLike[str],
    destination: str | PathLike[str],
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    record_len_max: int = 1073741824,
    repair_bit_flips: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Report | Any: ...
@overload
def salvage(  # type: ignore[overload-overlap]  # A tuple is an iterable, too.
    source: _Object,
    destination: str | PathLike[str],
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    record_len_max: int = 1073741824,
    repair_bit_flips: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Report: ...
@overload
def salvage(
    source: Iterable[str | PathLike[str] | _InStore],
    destination: str | PathLike[str],
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    record_len_max: int = 1073741824,
    repair_bit_flips: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Results[Report]:
    """Reads a log with the policy `"salvage"` and writes all its records to a new log.

    The source is not changed. The new log is written under a temporary name in the directory of
    `destination`, synced, and then renamed, so once a file has its final name, it is complete. If
    the source is a path, the new log has the same permissions, as with `cp`. After a failure, the
    unfinished log is removed.

    Args:
        source: Any source that `Reader` accepts, or many logs as in `verify`, but no splits.
        destination: The path of the new log, which must not exist. If there are many logs,
            `destination` is a directory, which is created if it does not exist. Each new log keeps
            the old log's path relative to the directory or pattern in `source`. The new log has the
            dialect, log number and engine metadata of the source. RocksDB and Pebble take the log
            number from the file's name.
        dialect: Same as for `Reader`. Default: `None`.
        log_number: Same as for `Reader`. Default: `None`.
        compression: Same as for `Reader`. Default: `None`.
        record_len_max: The maximum length of a record in bytes, as in `Reader`. Default: 1 GiB.
        repair_bit_flips: Also write each record whose damage can be explained by a single flipped
            bit, with that bit flipped back. The report gives the number of these records as
            `repaired_count`, and lists the repaired fragments in `repaired`. If only one bit was
            flipped, the checksum of a repaired record confirms its contents. Default: `False`.
        storage_options: Same as for `Reader`. Default: `None`.
        progress: Same as for `verify`. Default: `None`.

    Returns:
        The report on `source`. If there are many logs, a `Results`, as in `verify`.

    Raises:
        DialectError: `source` is not a log.
        FileExistsError: A file already exists at `destination`. It is not changed.
        OSError: The source cannot be opened or read, or the new log cannot be written. Also raised
            if `destination` is named like a segment, or if the number in its name differs from the
            number in the records.
        OtherLogError: All of `source` belongs to another log, whose number is neither the number in
            the file's name nor `log_number`. No new log is written.
        OverflowError: An integer is negative or too large for its option.
        TypeError: `Reader` does not accept `source`, or `destination` is not a path.
        ValueError: An option has an invalid value.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two", b"three"])
    3
    >>> with open("example.log", "r+b") as file:
    ...     _ = file.seek(17), file.write(b"T")
    >>> report = cordwood.salvage("example.log", "clean.log")
    >>> report.record_count, report.skipped[0].bit_flip
    (2, BitFlip(offset=17, bit=5, part='payload'))
    >>> list(cordwood.Reader("clean.log"))
    [b'one', b'three']
    >>> report = cordwood.salvage("example.log", "repaired.log", repair_bit_flips=True)
    >>> report.record_count, report.repaired_count, report.repaired[0].bit_flip
    (3, 1, BitFlip(offset=17, bit=5, part='payload'))
    >>> list(cordwood.Reader("repaired.log"))
    [b'one', b'two', b'three']
    """

@final
class Scan:
    """A table of records from logs, for any library that reads Arrow. Created by `cordwood.scan`.

    pyarrow, polars, DuckDB, pandas, DataFusion and others accept a scan directly, through its
    `__arrow_c_stream__`. You can read a scan any number of times, because each read opens the
    sources again.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the table as an Arrow stream, in a capsule of the Arrow C stream interface.

        Args:
            requested_schema: Ignored, as the interface allows. The consumer casts the columns
                itself. Default: `None`.

        Returns:
            The capsule. Its stream reads the sources from their start.
        """

    def __arrow_c_schema__(self) -> object:
        """Returns the columns and their types, in a capsule of the Arrow C schema interface.

        Returns:
            The capsule.
        """

    @property
    def columns(self) -> tuple[ColumnName, ...]:
        """The column names."""

    @property
    def skipped(self) -> tuple[tuple[SkippedRegion, ...], ...]:
        """The regions that were not returned: a tuple of `SkippedRegion` for each source, in order.

        These are the regions found so far by the most recently started read, up to the first
        100,000 for each source. The outer tuple is empty if no read has started.
        """

    @property
    def ok(self) -> bool:
        """True if no damage has been found so far.

        This covers all sources. Only regions with severity `"corruption"` count as damage. If the
        table has been read several times, only the most recently started read is considered.
        """

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The `Outcome` for each source, in order, showing how reading ended.

        These are the outcomes of the most recently started read. If a source's end has not been
        reached, its outcome is `"unfinished"`. The tuple is empty if no read has started.
        """

@final
class RecordIndex:
    """Reads records from logs by index. Created by `cordwood.index`.

    `index[i]` is a record. Indices start at 0, and negative indices count from the end.
    `index[i:j]` is a list of records. Any number of threads, and even a forked process, can use an
    index at the same time. An index can be pickled; once unpickled, it opens the files again by
    their absolute paths. A log may grow after it has been indexed. Reading raises `LogChangedError`
    if a reopened path leads to a different log, or if a record no longer starts at its old offset.
    """

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> bytes: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[bytes]: ...
    def read(self, indices: Iterable[SupportsIndex]) -> list[bytes]:
        """Returns several records. This is faster than one call for each record.

        Records near each other are read together.

        Args:
            indices: The indices of the records, in any order. They may be negative, and an index
                may be repeated.

        Returns:
            The records, in the order of `indices`.

        Raises:
            ClosedError: The index is closed.
            CorruptionError: A record has become damaged since it was indexed, and `on_corruption` is
                `"raise"`.
            IndexError: An index is out of range.
            LogChangedError: A log has changed since it was indexed.
            OSError: A file cannot be opened or read.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two", b"three"])
        3
        >>> cordwood.index("example.log").read([2, 0, -1])
        [b'three', b'one', b'three']
        """

    def __getitems__(self, indices: Iterable[SupportsIndex]) -> list[bytes]:
        """Equivalent to `read`. PyTorch and other data loaders call this to get a batch."""
    def place(self, index: SupportsIndex) -> tuple[str, int]:
        """Returns the path of the log that contains a record, and the record's offset in that log.

        This reads the record.

        Args:
            index: The record's index, which may be negative.

        Returns:
            The log's path, and the record's offset in the log, in bytes.

        Raises:
            IndexError: There is no record with this index.
            Exception: Same as for `read`.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two", b"three"])
        3
        >>> cordwood.index("example.log").place(1)
        ('example.log', 10)
        """
    def close(self) -> None:
        """Closes the files.

        Calls already running in other threads still return their records; later calls raise
        `ClosedError`. Closing the index again has no effect.
        """

    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

def index(
    sources: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    on_corruption: Literal["raise", "skip", "stop", "salvage"] = "raise",
) -> RecordIndex:
    """Indexes the records in one or more logs, so that any record can be read by its number.

    Creating the index reads each log once. The index takes 8 bytes of memory for every 16 records,
    plus 8 bytes for each record near damage. Files are opened as needed; at most 64 stay open,
    taking 264 KiB of memory each. To return a record, the index reads and checks the group of 16
    records that contains it or, in a packed log, a block of 32 KiB or more.

    A `Reader` is faster for reading all records in order.

    Args:
        sources: The path of a log or a segmented log, a directory, a pattern such as `"*.log"`, or
            an iterable of these. A directory stands for all logs in it and its subdirectories. The
            records are numbered in the order of the sources. URLs, bytes and objects with `read`
            are not accepted.
        dialect: Same as for `Reader`.
        log_number: Same as for `Reader`.
        compression: Same as for `Reader`.
        on_corruption: Same as for `Reader`. Under a policy other than `"raise"`, lost records are
            not numbered. Default: `"raise"`.

    Returns:
        A `RecordIndex`, which can be pickled and used by any number of threads.

    Raises:
        CorruptionError: A log is damaged, and `on_corruption` is `"raise"`.
        DialectError: A file is not a log.
        OSError: A file cannot be opened or read, or is not a regular file.
        TypeError: A source has an unsupported type.
        ValueError: A source is a URL, or an option has an invalid value.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend(b"record %d" % number for number in range(1000))
    1000
    >>> index = cordwood.index("example.log")
    >>> len(index), index[500], index[-1], index[10:12]
    (1000, b'record 500', b'record 999', [b'record 10', b'record 11'])
    """

@overload
def scan(
    sources: Source | Split | Iterable[Source | Split],
    *,
    columns: Sequence[ColumnName] | None = None,
    decode: None = None,
    schema: None = None,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    on_corruption: Literal["raise", "skip", "stop", "salvage"] = "raise",
    threads: int = 1,
    start: int = 0,
    end: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Scan: ...
@overload
def scan(
    sources: Source | Split | Iterable[Source | Split],
    *,
    columns: Sequence[str] | None = None,
    decode: DecoderName,
    schema: object | None = None,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    on_corruption: Literal["raise", "skip", "stop", "salvage"] = "raise",
    threads: int = 1,
    start: int = 0,
    end: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DecodedScan: ...
@overload
def scan(
    sources: Source | Split | Iterable[Source | Split],
    *,
    columns: Sequence[str] | None = None,
    decode: DecoderName | None = None,
    schema: object | None = None,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    on_corruption: Literal["raise", "skip", "stop", "salvage"] = "raise",
    threads: int = 1,
    start: int = 0,
    end: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Scan | DecodedScan:
    """Returns the records in one or more logs as a table for any library that reads Arrow.

    Pass the table to `pyarrow.table`, `polars.DataFrame`, `pandas.DataFrame.from_arrow`, DuckDB,
    DataFusion and others. Each of them reads the sources again, in batches of about 256 KiB. Only
    one batch is in memory at a time, unless the consumer keeps the batches. If you pass a
    directory, cordwood opens its files right away, to determine which of them are logs. All other
    files are opened only when a consumer reads the table.

    If reading fails, the consumer raises its own exception with cordwood's message. After an error,
    a stream doesn't return any more batches.

    Args:
        sources: Any source that `Reader` accepts (such as a path, a URL, bytes, or an object with
            `read`), a `Split`, a directory, a pattern such as `"*.log"`, or an iterable of these. A
            directory stands for all logs in it and its subdirectories. An iterable is read in
            order. An object with `read` can be read twice only if it can seek. Files in a directory
            are left out if they are not logs. If several names lead to the same file, for example
            through a link, the file is read once, under the first name. A repeated URL is also read
            only once.
        columns: The names of the columns, in order. `"offset"`: the file offset of the record,
            `uint64`. `"record"`: the bytes of the record, `large_binary`. `"end_offset"`: the file
            offset after the record. `"length"`: the length of the record in bytes. `"path"`: the
            path of the log, as dictionary-encoded text, or null if the log has no path.
            `"salvaged"`: whether the record starts after damage in the same block. Without
            `"record"`, records are checked but not copied. Default: `None`, which means `"offset"`
            and `"record"`, plus `"path"` if `sources` is a directory, a pattern or an iterable.
        decode: The kind of content in the records. Pass a name that `cordwood convert --as`
            accepts, such as `"write-batch"`, `"entity"`, `"wandb-history"` or `"json"`;
            `cordwood.typing.DecoderName` lists them. The rows and columns are the same as in
            `convert`. To get only some of the columns, pass `columns`. Decoding requires pyarrow,
            and the sources are read in one thread. Entities, JSON and W&B histories are decoded on
            up to two threads. If the columns can differ from log to log, all sources are first read
            once to determine the columns. A record whose content is not of this kind raises an
            error. While the columns are being determined, the error is a `PayloadError`. Under a
            policy other than `"raise"`, such a record is left out and listed in
            `DecodedScan.left_out`. Logs in directories are left out if their first record is
            recognised as another kind, as in `convert`. Default: `None`, which means that the
            records are bytes.
        schema: With `decode`, a `pyarrow.Schema`. If you pass one, cordwood doesn't need to read
            the sources first to determine the columns. Columns that are not in the schema are left
            out. Default: `None`.
        dialect: Same as for `Reader`.
        log_number: Same as for `Reader`.
        compression: Same as for `Reader`.
        on_corruption: `"raise"`, `"skip"`, `"stop"` or `"salvage"`, as in `Reader`. With a policy
            other than `"raise"`, `Scan.skipped` lists the skipped regions. Default: `"raise"`.
        threads: Read ahead in each file with this many threads, 1 to 256. Only one thread is used
            if the source is not a path, if `Reader.record_batches` would use only one thread, or if
            the table has no `"record"` column. Default: 1.
        start: Same as for `Reader`. Ignored for a `Split`.
        end: Same as for `Reader`. Ignored for a `Split`.
        storage_options: Same as for `Reader`. Default: `None`.

    Returns:
        A `Scan` or, with `decode`, a `DecodedScan`. Both have `__arrow_c_stream__` and
        `__arrow_c_schema__`.

    Raises:
        ModuleNotFoundError: `decode` is given, but pyarrow is not installed.
        OSError: A directory, or a file in a directory, cannot be read.
        OverflowError: An integer is negative or too large for its option.
        TypeError: A source has an unsupported type, or is a text file.
        ValueError: An option has an invalid value, or a column is unknown or named twice.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> cordwood.scan("example.log")
    <cordwood.Scan of "example.log": offset, record; on_corruption='raise'>
    >>> import pyarrow
    >>> pyarrow.table(cordwood.scan("example.log")).to_pydict()
    {'offset': [0, 10], 'record': [b'one', b'two']}
    """

def pack(
    source: Source,
    destination: str | PathLike[str],
    *,
    dialect: Literal["packed", "leveldb", "wandb", "swanlab"] = "packed",
    compression: CompressionName | None = ...,
    record_len_max: int = 1073741824,
    progress: Callable[[int], object] | None = None,
) -> Report:
    """Copies all records of a closed log to a new log, for example to pack or unpack it.

    Either all records are copied, or no log is written. It is an error if the log is damaged,
    contains zeros, or ends with an incomplete record, because a record may have been lost. The only
    exception is padding: if the file consists of whole blocks, zeros that pad the last block are
    left out.

    This function also unpacks a log. To get the same records back, pass the packed log as `source`
    and the original log's dialect as `dialect`. If the original contained only complete records,
    the unpacked log is also byte-for-byte identical to it. The function rejects logs that could not
    be restored from the new log. These are logs that have a log number, engine metadata, or
    individually compressed records. They also include `"wandb_old"` logs, and `"swanlab"` logs of a
    version other than 2.

    The source is not changed. The new log is written as in `salvage`: once a file has its final
    name, it is complete and on disk. Only cordwood can read a packed log, so never pack a log that
    a database has to read.

    Args:
        source: Same as for `Reader`. The log should be closed: records appended during the copy may
            be missing from the new log.
        destination: The path of the new log, which must not exist.
        dialect: The dialect of the new log: `"packed"`, `"leveldb"`, `"wandb"` or `"swanlab"`.
            Default: `"packed"`.
        compression: The compression of the new log: `"zstd"`, or `None` for no compression.
            Default: `"zstd"` for a packed log, and `None` for the other dialects, which have no
            compression.
        record_len_max: The maximum length of a record in bytes, as in `Reader`. Default: 1 GiB.
        progress: Same as for `verify`. Default: `None`.

    Returns:
        The report on `source`.

    Raises:
        CorruptionError: The log is damaged, ends in an incomplete record, or contains zeros other
            than padding. No new log is written.
        DialectError: `source` is not a log, or it could not be restored from the new log.
        FileExistsError: A file already exists at `destination`. It is not changed.
        OSError: The source cannot be opened or read, the new log cannot be written, or
            `destination` is named like a segment.
        RecordTooLargeError: A record is longer than `record_len_max`. No new log is written.
        TypeError: `Reader` does not accept `source`, or `destination` is not a path.
        ValueError: An option has an invalid value.

    >>> import os
    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend(b"record %d" % number for number in range(1000))
    1000
    >>> report = cordwood.pack("example.log", "packed.log")
    >>> report.record_count, os.path.getsize("packed.log") < report.file_len
    (1000, True)
    >>> cordwood.open("packed.log").dialect, next(cordwood.open("packed.log"))
    ('packed', b'record 0')
    >>> _ = cordwood.pack("packed.log", "again.log", dialect="leveldb")
    >>> with open("again.log", "rb") as again, open("example.log", "rb") as example:
    ...     again.read() == example.read()
    True
    """

@overload
def stat(  # type: ignore[overload-overlap]  # A `str` is an iterable, too.
    source: str | PathLike[str],
    *,
    threads: int = 1,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    start: int | Position = 0,
    end: int | None = None,
    verify_checksums: bool = True,
    record_len_max: int = 1073741824,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Stat | Any: ...
@overload
def stat(  # type: ignore[overload-overlap]  # A tuple is an iterable, too.
    source: _Object | Split,
    *,
    threads: int = 1,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    start: int | Position = 0,
    end: int | None = None,
    verify_checksums: bool = True,
    record_len_max: int = 1073741824,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Stat: ...
@overload
def stat(
    source: Iterable[str | PathLike[str] | Split | _InStore],
    *,
    threads: int = 1,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    start: int | Position = 0,
    end: int | None = None,
    verify_checksums: bool = True,
    record_len_max: int = 1073741824,
    storage_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Results[Stat]:
    """Reads a log to the end, and counts its contents.

    Damage doesn't raise an exception, but is handled as in `verify`.

    Args:
        source: Same as for `verify`.
        threads: Same as for `verify`. Default: 1.
        dialect: Same as for `Reader`. Default: `None`.
        log_number: Same as for `Reader`. Default: `None`.
        compression: Same as for `Reader`. Default: `None`.
        start: A file offset in bytes, as in `Reader`. Default: 0.
        end: A file offset in bytes, as in `Reader`. Default: `None`.
        verify_checksums: Same as for `Reader`. Default: `True`.
        record_len_max: The maximum length of a record in bytes, as in `Reader`. Default: 1 GiB.
        storage_options: Same as for `Reader`. Default: `None`.
        progress: Same as for `verify`. Default: `None`.

    Returns:
        The counts. If there are many logs, a `Results`, as in `verify`.

    Raises:
        DialectError: The source is not a log.
        OSError: The source cannot be opened or read.
        OverflowError: An integer is negative or too large for its option.
        TypeError: `Reader` does not accept `source`.
        ValueError: An option has an invalid value.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two" * 20_000])
    2
    >>> stat = cordwood.stat("example.log")
    >>> stat.record_count, stat.record_len_max, stat.full_count, stat.first_count
    (2, 60000, 1, 1)
    """

def detect(source: Source, /) -> LogFormat | None:
    """Detects a log's format from the start of the file.

    Args:
        source: Same as for `Reader`. If the first 96 KiB are enough to identify a log, no more is
            read. Otherwise, if the file is longer, its end and the starts of its blocks are read
            too.

    Returns:
        A `LogFormat` with the dialect, the log number and the compression. For dialects with log
        numbers, the log number is taken from the file's name or, if the name has none, from the
        first fragment. The result is `None` if the format cannot be detected, because the file is
        empty or its start contains no complete fragment with a valid checksum. `Reader` reads such
        a file as `"leveldb"`.

    Raises:
        DialectError: The source is not a log.
        OSError: The source cannot be opened or read.
        TypeError: `Reader` does not accept `source`.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> cordwood.detect("example.log")
    LogFormat(dialect='leveldb', log_number=None, compression=None)
    """

def segment_offset(name: str, /) -> int | None:
    """Returns the log offset where the segment with this name starts.

    Returns `None` if `name` isn't the name of a segment.
    """

def marks_of(position: Position) -> tuple[list[tuple[int, int, int]], str | None]:
    """Returns a position's marks, for Python code that reads the log.

    Args:
        position: The position.

    Returns:
        The start, length and checksum of each mark, and the version that the object store has
        assigned to the log.
    """

def moved_to(position: Position, offset: int) -> Position:
    """Returns the position at another offset in the same log.

    Args:
        position: A position in the log.
        offset: The offset, in bytes.

    Returns:
        The `Position`.
    """

def start_of(
    start: bytes,
    dialect: DialectName | None,
    log_number: int | None,
    compression: CompressionName | None,
    version: str | None,
) -> Position:
    """Returns the position at the start of a log.

    Args:
        start: The first block of the log, or the whole log if it is shorter.
        dialect: Same as for `Reader`. If `None`, the start of the log is not compared.
        log_number: Same as for `Reader`.
        compression: Same as for `Reader`.
        version: The version that the object store has assigned to the log.

    Returns:
        A `Position` at offset 0.
    """

def start_at(
    path: str | PathLike[str],
    dialect: DialectName | None,
    log_number: int | None,
    compression: CompressionName | None,
) -> Position:
    """Returns the position at the start of a log on disk.

    Args:
        path: The path of a file or a segmented log.
        dialect: Same as for `Reader`.
        log_number: Same as for `Reader`.
        compression: Same as for `Reader`.

    Returns:
        A `Position`.

    Raises:
        OSError: The file cannot be read.
    """

def is_log_name(path: str | PathLike[str], /) -> bool:
    """Checks whether a file is named like a log or a copy of one."""

def crc32c(data: ReadableBuffer, crc: int = 0) -> int:
    """Computes the CRC-32C of the bytes in a buffer.

    Args:
        data: `bytes` or any other buffer.
        crc: The CRC-32C of the bytes before `data`, so that the result covers those bytes too.
            Default: 0, the CRC-32C of an empty buffer.

    Returns:
        An unsigned 32-bit integer.

    Raises:
        TypeError: `data` is not bytes-like.
        OverflowError: `crc` is not an unsigned 32-bit integer.

    >>> hex(cordwood.crc32c(b"123456789"))
    '0xe3069283'
    >>> hex(cordwood.crc32c(b"6789", cordwood.crc32c(b"12345")))
    '0xe3069283'
    """

def mask_crc(crc: int, /) -> int:
    """Masks a CRC-32C as the format specifies: rotates it right by 15 bits and adds a constant.

    Args:
        crc: The CRC-32C, an unsigned 32-bit integer.

    Returns:
        The checksum as stored in a fragment header, an unsigned 32-bit integer.

    Raises:
        OverflowError: `crc` is not an unsigned 32-bit integer.

    >>> hex(cordwood.mask_crc(cordwood.crc32c(b"foo")))
    '0xfebe8a61'
    """

def unmask_crc(masked: int, /) -> int:
    """Reverses `mask_crc`.

    Args:
        masked: The checksum as stored in a fragment header, an unsigned 32-bit integer.

    Returns:
        The CRC-32C, an unsigned 32-bit integer.

    Raises:
        OverflowError: `masked` is not an unsigned 32-bit integer.

    >>> hex(cordwood.unmask_crc(0xfebe8a61))
    '0xcfc4ae1d'
    """

def decode_entity(record: ReadableBuffer, /) -> Entity:
    """Decodes the entity in a record from a Datastore or Firestore export.

    Called by `cordwood.payload.entity.decode`.

    Args:
        record: `bytes` or any other buffer.

    Returns:
        The entity.

    Raises:
        PayloadError: The record is not an entity.
        TypeError: `record` is not bytes-like.
    """

@disjoint_base
class Table:
    """Turns the records of logs into a table.

    The columns are either known in advance or learned from the rows. If they are learned, the table
    is opened once the first records have shown some of them. From then on, the table also writes
    its rows. If a later row needs a new column, the table stops writing. From that row onward, it
    only collects the names and types of columns. You must then create another table with all the
    columns.

    Args:
        payload: The contents of the records, as in `cordwood._tables.payloads`.
        form: `"arrow"`, `"ndjson"` or `"csv"`.
        columns: The columns, if known, as pairs of a name and a type from
            `cordwood._tables.schema`.
        always: The columns that the table has even if no row has a value in them.
        wanted: The columns to keep, in this order, or `None` for all columns. `a.b` is the field
            `b` of the column `a`.
        limit: The maximum number of rows.
        opens_early: If the columns are learned, whether to open the table with the columns found in
            the first records.
        bytes_as: How to convert bytes to text: `"object"`, `"utf-8"`, `"hex"` or `"base64"`. With
            `"utf-8"`, a row whose bytes are not UTF-8 is reported as a fault.
        escapes_formulas: Whether to put an apostrophe before CSV text that a spreadsheet would
            interpret as a formula.
        has_salvaged: If true, rows with a record offset also show whether the record was salvaged.
        learned_max: Three limits for learned columns. The first limits the number of columns,
            including fields inside columns. The second limits the number of fields in a column. The
            third limits the nesting depth of lists and structures in a column.
        batch_max: The maximum number of rows in an Arrow batch, and the maximum number of cells if
            the batch has more than one row.
    """
    def __new__(
        cls,
        payload: str,
        form: str,
        columns: Sequence[tuple[str, ColumnType]] | None = None,
        *,
        always: Sequence[tuple[str, ColumnType]] = ...,
        wanted: Sequence[str] | None = None,
        limit: int | None = None,
        opens_early: bool = True,
        bytes_as: str = "object",
        escapes_formulas: bool = False,
        has_salvaged: bool = False,
        learned_max: tuple[int, int, int],
        batch_max: tuple[int, int],
    ) -> Self: ...
    def start_log(
        self,
        first: Sequence[tuple[str, str | None]],
        *,
        dialect: str | None = None,
        families: dict[int, bytes] = ...,
        is_run: bool = False,
    ) -> None:
        """Starts a log.

        Args:
            first: The names and texts of the leading cells, which are the same in every row from
                the log.
            dialect: The dialect of the log, if it is known.
            families: The names of the log's column families, by number.
            is_run: Whether to treat the log as a Weights & Biases run even if it has no records.
        """
    def take(
        self, source: RecordBatch | Sequence[Record], start: int, only: Sequence[int] | None = None, /
    ) -> tuple[int, list[Any], list[tuple[int, Literal["record", "row", "value", "rest"], PayloadError]], int]:
        """Takes rows from records.

        Args:
            source: A `RecordBatch`, or a list of `Record`.
            start: The index of the first record to take.
            only: The indices of the records to take, in ascending order, or `None` for all records.
                If this is a list, `start` is a position in the list.

        Returns:
            A tuple of four items: the index of the record to continue with, a list with the output,
            a list of faults, and the number of further faults. If there is no output, the first
            list is empty. The output is `bytes`. For Arrow, it is a tuple of the indices of the
            columns that have values, the number of rows, and capsules of the Arrow C data
            interface. Each fault gives the index of a record, the missing part (`"record"`,
            `"row"`, `"value"` or `"rest"`), and a `PayloadError`.

        Raises:
            MemoryError: There is not enough memory.
            TooManyColumnsError: There are too many columns.
            HasFirstError: A row has a column with the same name as a leading cell.
            MisfitError: A value does not fit its column, or has no column.
        """
    def take_rest(
        self, *, is_last: bool
    ) -> tuple[bool, list[Any], list[tuple[int, Literal["record", "row", "value", "rest"], PayloadError]], int]:
        """Takes the rows that become complete only at the end of a log.

        Args:
            is_last: Whether this log was the last one. If so, this method takes the rows that the
                table has held back.

        Returns:
            A tuple of four items. The first says whether all these rows have been taken; if not,
            call this method again. The other items are the same as for `take`.
        """
    @property
    def columns(self) -> dict[str, ColumnType]:
        """Returns the known or learned columns, in order, each with its type."""
    def __arrow_c_schema__(self) -> object:
        """Returns the columns and their types as a capsule of the Arrow C schema interface.

        Returns:
            The capsule.
        """
    @property
    def conflicts(self) -> tuple[dict[str, list[str]], list[str]]:
        """Returns the columns that were converted to JSON.

        The first item is a dictionary. For each column whose values have different types, it
        contains a list of those types. The second item lists the columns that are too wide.

        `a.b` is a field in `a`, and `a[]` means the items in `a`.
        """
    @property
    def note(self) -> str | None:
        """A message if the records so far can be read in more than one way, or `None` otherwise."""
    @property
    def is_open(self) -> bool:
        """Whether the table writes its rows.

        If this is false at the end, you must create another table with all the columns.
        """
    def only_learn(self) -> None:
        """Stops writing rows.

        After this call, the table only collects the names and types of columns, as it does once a
        row needs a new column.
        """
    @property
    def row_count(self) -> int:
        """The number of rows."""
    @property
    def is_full(self) -> bool:
        """Whether the table has reached its maximum number of rows."""
    @property
    def missing(self) -> tuple[list[str], list[str]]:
        """Returns the requested columns that no row contained, and the known columns.

        A column is known if it always exists or has appeared in a row.
        """

@final
class RecordDecoder:
    """Decodes the records of one log, in order.

    Args:
        payload: The contents of the records, as in `cordwood._tables.payloads`.
        dialect: The log's dialect, if known.
    """

    def __new__(cls, payload: str, dialect: str | None = None, /) -> Self: ...
    def row(self, record: ReadableBuffer, errors: list[PayloadError] | None = None, /) -> dict[str, Any] | None:
        """Returns a record's row.

        Args:
            record: `bytes` or any other buffer.
            errors: A list to which the errors for unreadable values are appended; the row then
                omits these values. If `errors` is `None`, the first error is raised.

        Returns:
            The values by name, or `None` if the record has no row.

        Raises:
            PayloadError: The record cannot be decoded.
            TypeError: `record` is not bytes-like.
        """
    def rest(self) -> dict[str, Any] | None:
        """Returns the last row, which isn't complete until all records have been read.

        Returns:
            The values by name, or `None` if there is no such row.
        """
    def json(self, record: ReadableBuffer, /) -> str | None:
        """Returns a record's value as JSON, on one line.

        Args:
            record: `bytes` or any other buffer.

        Returns:
            The text, or `None` if the payload doesn't describe this record.

        Raises:
            PayloadError: The record cannot be decoded.
            TypeError: `record` is not bytes-like.
        """
    def engine(self, record: bytes, /) -> Literal["rocksdb", "pebble"]:
        """Decodes the whole write batch in a record, and returns the engine that wrote it.

        Args:
            record: The record.

        Returns:
            `"rocksdb"` or `"pebble"`.

        Raises:
            PayloadError: The record is not a batch, or the batch is damaged.
        """
    @property
    def note(self) -> str | None:
        """A message if the records so far can be read in more than one way, or `None` otherwise."""
    def value(self, record: ReadableBuffer, /) -> Any:
        """Returns a record's value.

        Args:
            record: `bytes` or any other buffer.

        Returns:
            The value, or `None` if the payload doesn't describe this record.

        Raises:
            PayloadError: The record cannot be decoded.
            TypeError: `record` is not bytes-like.
        """

def is_decoded(payload: str, record: bytes, dialect: str | None, /) -> bool:
    """Checks whether a whole record can be decoded as this payload.

    Args:
        payload: The name of the payload.
        record: The record.
        dialect: The dialect of the log, if it is known.

    Returns:
        True if the record can be decoded without a fault.
    """

def entity_kinds(source: RecordBatch | Sequence[Record], /) -> tuple[list[tuple[str | None, list[int]]], list[int]]:
    """Returns the kinds of the entities in records.

    Args:
        source: A `RecordBatch`, or a list of `Record`.

    Returns:
        A pair of lists. The first contains the entity kinds, each with the indices of its records.
        The second contains the indices of the unreadable records. If an entity has no key, its kind
        is `None`.
    """

@final
class Fragments:
    """The iterator that `fragments` returns."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Fragment: ...
    def next_run(self) -> tuple[int, int, str, str | None, str | None, int] | None:
        """Merges the next fragments that are in the same block and have the same kind and reason.

        This method is used to draw long logs.

        Returns:
            A tuple of the offset, the end offset, the kind, the reason, the reason's severity, and
            the number of fragments. `None` at the end of the log.
        """
    @property
    def found(self) -> tuple[DialectName, int | None, CompressionName | None, int | None, int]:
        """Returns the findings so far.

        The findings are a tuple of the dialect, the log number, the compression, the other log
        number, and the salvaged count. If the whole file belongs to another log, the other log
        number is the number of that log; otherwise, it is `None`. The salvaged count is the number
        of records that start after damage in the same block.
        """

def fragments(
    source: Source,
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
) -> Fragments:
    """Lists every fragment and gap in a log.

    Each fragment or gap that a reader would skip is listed with the reason.

    Together, the fragments and gaps cover the file: each one starts where the previous one ends,
    and none crosses the end of a block. Damage does not raise an exception. The list matches the
    records and regions of `Reader` under the policy `"salvage"`: each fragment in a skipped region
    has that region's reason. Memory use does not grow with the log.

    Args:
        source: Same as for `Reader`, but it must be possible to read the source twice. It can be
            the path of a file, a buffer, an object with `read` and `seek`, a URL, or another source
            that is read in ranges.
        dialect: Same as for `Reader`. Default: `None`.
        log_number: Same as for `Reader`. Default: `None`.
        compression: Same as for `Reader`. Default: `None`.

    Returns:
        An iterator of `Fragment`.

    Raises:
        DialectError: The source is not a log. The first step of the iterator raises this error.
        OSError: The source cannot be opened or read.
        io.UnsupportedOperation: The source cannot seek.
        OverflowError: An integer is negative or too large for its option.
        TypeError: `Reader` does not accept `source`.
        ValueError: An option has an invalid value.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> for fragment in cordwood.fragments("example.log"):
    ...     print(fragment.offset, fragment.kind, fragment.reason)
    0 full None
    10 full None
    """

def leave_out_salvaged(reader: Reader, /) -> None:
    """Makes a reader leave out the records that the policy `"salvage"` marks as salvaged.

    The reader then returns the same records as under the policy `"skip"`. Call this before reading
    the first record, and do not combine it with `record_batches` in several threads.

    Args:
        reader: The reader.
    """

def left_out(reader: Reader, /) -> tuple[int, dict[Reason, int]]:
    """Returns how many records and bytes a reader has left out.

    Args:
        reader: The reader.

    Returns:
        The number of records that `leave_out_salvaged` has left out so far, and a dictionary with
        the number of skipped bytes for each reason.
    """

def restored_index(
    logs: Sequence[tuple[str | PathLike[str], int, int, bytes]],
    dialect: DialectName | None,
    log_number: int | None,
    compression: CompressionName | None,
    on_corruption: str,
) -> RecordIndex:
    """Restores a pickled index.

    Args:
        logs: One tuple per log, with the path, the position after the last record, the number of
            records, and three pickled lists of numbers.
        dialect: Same as for `index`.
        log_number: Same as for `index`.
        compression: Same as for `index`.
        on_corruption: Same as for `index`.

    Returns:
        The index.
    """

def reason_in_words(reason: str, region: SkippedRegion, /) -> str:
    """Describes in words why a region was skipped.

    `SkippedRegion.description` returns this text.

    Args:
        reason: The reason.
        region: The region. Its attributes contain the details of why it was skipped. Attributes
            that don't belong to `reason` are ignored.

    Returns:
        The text.

    Raises:
        ValueError: The reason is unknown.
    """
