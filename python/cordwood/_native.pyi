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
    "WriteBatchReader",
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
    """A record and its place in the file: the result of `Reader.records` and `Follower.poll`.

    A record is immutable. Records are equal if their offsets, data and `salvaged` are. The
    constructor takes the attributes as keywords.

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
        """File offset of the first fragment's header, in bytes. `Reader.seek` accepts it."""
    @property
    def end_offset(self) -> int:
        """File offset after the last fragment's data, in bytes."""
    @property
    def data(self) -> bytes:
        """The bytes that were written."""
    @property
    def salvaged(self) -> bool:
        """Whether it starts after damage in the same block, under the policy `"salvage"`.

        Its checksums are valid, but its start had to be searched for: a log inside a record's
        data can look the same.
        """
    __match_args__ = ("offset", "end_offset", "data")
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Position:
    """An offset in a log, with marks by which the log is recognised: `Follower.position` returns one.

    An offset is valid in one log only. A position also keeps checksums of bytes of that log before
    the offset: in its first block and in the block before the offset. In a segmented log, it keeps
    one of the end of the segment before. Whoever starts at a position compares them, and another
    log is a `LogChangedError`. The log may have grown, been copied or been renamed since, and have
    lost its oldest segments. A block in which there is damage is not compared. At offset 0, any log
    fits.

    `str` returns its text, which is short and has no line break; `Position(text)` is the same
    position. Positions can be pickled and compared.

    Args:
        text: The text of a position.

    Raises:
        ValueError: The text is not that of a position, or that of a later release.

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
    """Reads the records of a log. `cordwood.open(source)` creates a reader; so does calling the class.

    Iterating yields each record as `bytes`. A torn tail, the incomplete end that a crash leaves,
    ends the iteration without an error; `outcome` says so afterwards. `skipped` lists the bytes
    that are not returned: every byte of the file is accounted for. A `with` statement closes the
    reader; the end of a loop does not.

    A reader has one position: a second loop continues where the first left off, and so does
    `next(reader)`, which returns the next record.

    Threads may share a reader; each record goes to one of them. After a fork, both processes may
    continue reading independently, if the source is a path or memory. If another thread was using
    the reader at the fork, the child cannot use its copy: `close` has no effect, and all other
    calls raise `OSError`.

    A path is opened once, and the file it named then is read to its end, even with several threads:
    renaming, replacing or removing it has no effect. If it is cut meanwhile, the rest is returned,
    and then an `OSError` is raised. A `MemoryError`, or an exception raised by a signal handler,
    including that of Ctrl-C, loses no record: the next step returns the next one.

    Args:
        source: A path (`str` or `os.PathLike`), also that of the directory of a segmented log,
            which is read as one log with one range of offsets; the content of a file in memory
            (`bytes` or any other buffer, including `mmap`), never a path: convert a path in `bytes`
            with `os.fsdecode`; or an object with `read(size)` that returns bytes, whose current
            position is the start of the log. If the file of an `mmap` is truncated while it is
            read, the operating system ends the process (`SIGBUS`), as it does for every program
            that reads a map: if others may truncate a file, pass its path. The following are read
            in ranges of up to 16 MiB, four of them ahead: a URL (a `str` such as
            `"s3://bucket/name"`), an `fsspec.OpenFile` or a `UPath`, through fsspec; an obstore
            store and a path in it, as a tuple; or an object with `size()` and `read_range(start,
            end)`.
        dialect: How the bytes of the log are laid out. `"leveldb"`: also the logs of Datastore,
            Firestore, App Engine, and RocksDB without recycling; `"rocksdb"`: a RocksDB write-ahead
            log with everything it may contain; `"pebble"`: the same for Pebble; `"recyclable"`:
            the common part of these two; `"wandb"`: a run file of Weights & Biases; `"wandb_old"`:
            a run file of wandb-core before 0.17.6; `"swanlab"`: a run file of SwanLab. Default:
            `None`, or `"auto"`: detected from the start of the file. RocksDB's metadata in a
            `"leveldb"` or `"recyclable"` log is read if the dialect was detected, and is damage if
            you name the dialect: see `cordwood.types.DetectedDialect`.
        log_number: The number of the log, in `"rocksdb"`, `"pebble"` and `"recyclable"`: the low 32
            bits of the number in the file's name. Fragments with another number are left over from
            an older log. If the whole file is left over, the logger `cordwood` gets a warning.
            Default: `None`: the number in the file's name, or, if it has none, that of the first
            valid fragment.
        compression: How each record is compressed, in `"rocksdb"`: `"zstd"`. Default: `None`: as
            stated at the start of the log.
        on_corruption: The treatment of damage. `"raise"`: raise `CorruptionError`; the next step
            continues after the damage. `"skip"`: continue at the next block, as LevelDB does; the
            logger `cordwood` gets a warning for each of the first ten regions, and the number of
            the others at the end of the log, on `seek` or on `close`. `"stop"`: treat it as the end
            of the log. `"salvage"`: like `"skip"`, but keep valid records after the damage in the
            same block; `records()` marks them. Default: `"raise"`.
        start: Return only the records that start at or after this file offset, in bytes; or at or
            after this `Position`, in the same log: of a path or a URL. Default: 0.
        end: Return only the records that start before this file offset, in bytes; the last record
            may end after it. A record belongs to the range in which its first fragment starts, so
            adjacent ranges return each record exactly once. Default: `None`, the end of the file.
        verify_checksums: Verify each checksum. If `False`, damaged data is returned as if it were
            intact. Default: `True`.
        record_len_max: The longest record to accept, in bytes; a longer one is refused with
            `RecordTooLargeError`. Default: 1 GiB. In a compressed log, all records together may
            also have only 256 MiB + 200 * (bytes read since the reader started or last sought), and
            those of one container of a packed log 256 MiB. The record that would exceed this raises
            `RecordTooLargeError` under every policy, and is neither skipped nor consumed. A value
            above the default replaces the 256 MiB.
        storage_options: For a URL: the arguments of its file system of fsspec, such as
            `{"endpoint_url": "..."}`. In a list of logs, each URL has them. Default: `None`: as fsspec
            is configured.

    Raises:
        OSError: The file cannot be opened. If it does not exist: `FileNotFoundError`.
        OverflowError: An integer is negative or too large for its option.
        TypeError: `source` is none of the above, or is a text file.
        ModuleNotFoundError: `source` is a URL, and fsspec, or a package it needs for this URL, is
            not installed.
        ValueError: An option has an invalid value; a log number or a compression is given for a
            dialect that has none; or fsspec does not know the file system of a URL.

    Each step of an iteration over the reader, `records` or `record_batches` may raise:

    * `CorruptionError`: damage, under the policy `"raise"`. The next step continues after it.
    * `RecordTooLargeError`: a record longer than `record_len_max`, under the same policy.
    * `DialectError`: the source is not a log. Only on the first step.
    * `OSError`: the source cannot be read.
    * `ClosedError`: the reader is closed.
    * `ValueError`: a log number or a compression was given, and the detected dialect has none.
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
        """Iterates over the records with their offsets. The iterator shares the reader's position.

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
        """Iterates over record batches: many records in a few buffers, without an object for each.

        This is the fastest way to read.

        Args:
            target_len: A batch is complete once it contains at least this many bytes; or 65,536
                records, or one record for each 16 bytes of `target_len` if that is more. It is
                shorter before damage that has to be reported, and at the end of the log. Default:
                256 KiB.
            threads: Read ahead in this many threads, 1 to 256, in parts of 1 to 2 MiB, or of
                `target_len` up to 8 MiB. At most two more parts than threads are held in memory.
                The records and their order are the same. A single thread reads an object with
                `read`, a log with log numbers, a file with fewer than two parts per thread, and all
                sources under the policy `"stop"`. Default: 1.

        Returns:
            An iterator of `RecordBatch`, none of them empty.

        Raises:
            ClosedError: The reader is closed.
            OverflowError: `target_len` is negative or too large.
            ValueError: `threads` is not 1 to 256.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two"])
        2
        >>> with cordwood.open("example.log") as reader:
        ...     [(len(batch), batch.end_offset) for batch in reader.record_batches()]
        [(2, 20)]
        """
    @property
    def dialect(self) -> DialectName:
        """The dialect of the log, such as `"leveldb"`.

        If it has to be detected, the source is read.

        Raises:
            DialectError: The source is not a log.
            OSError: The source cannot be read.
            ClosedError: The reader is closed.
        """
    @property
    def dialect_known(self) -> bool:
        """Whether the dialect was named, or can be detected.

        If not, the dialect could not be detected, and the log is read as `"leveldb"`. If it has to
        be detected, the source is read.

        Raises:
            DialectError: The source is not a log.
            OSError: The source cannot be read.
            ClosedError: The reader is closed.
        """
    @property
    def log_number(self) -> int | None:
        """The number of the log; `None` if the dialect has none or it is not known.

        If it has to be detected, the source is read.

        Raises:
            DialectError: The source is not a log.
            OSError: The source cannot be read.
            ClosedError: The reader is closed.
        """
    @property
    def compression(self) -> CompressionName | None:
        """How each record is compressed: `"zstd"`; `None` if it is not.

        If it has to be detected, the source is read.

        Raises:
            DialectError: The source is not a log.
            OSError: The source cannot be read.
            ClosedError: The reader is closed.
        """
    def tell(self) -> int:
        """The file offset after everything returned or skipped so far: `seek` to it to continue.

        A torn tail does not count as skipped: once it is complete, it can be read from there.

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
        """Moves to a file offset: `Record.offset`, `Record.end_offset` or a result of `tell`.

        At any other offset, the bytes there are reported as damage. `skipped` and `outcome` are
        reset, and this offset becomes the `start` of the range.

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
        """The regions not returned so far, in the order of their offsets: the first 100,000.

        Adjacent regions are merged if their reasons are the same in all details.

        `skipped`, `skipped_len` and `outcome` can still be read after the reader is closed.
        """
    @property
    def ok(self) -> bool:
        """Whether no damage has been found so far.

        Damage is a region of severity `"corruption"`: torn tails do not count. An `outcome` of
        `"clean"` does not mean this: it only describes the end of the file.
        """

    @property
    def skipped_len(self) -> int:
        """The number of bytes in all regions not returned so far, listed or not."""
    @property
    def outcome(self) -> Outcome:
        """How reading ended; `"unfinished"` until it has."""
    @property
    def other_log_number(self) -> int | None:
        """The number of another log, if everything read so far belongs to that log; else `None`.

        The file's name or `log_number` states a different number: the file was recycled and no
        record has been written to the log with that number yet, or the file was renamed or copied.

        Raises:
            ClosedError: The reader is closed.
        """
    @property
    def path(self) -> str | None:
        """The path, the URL, or the `name` of an object with `read_range`; otherwise `None`."""
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
    """Consecutive records in one buffer, with the position of each in another.

    The layout is that of Arrow's `LargeBinary`: `pyarrow.record_batch(batch)` makes no copy.

    `Reader.record_batches` returns them. The buffers are shared, not copied; they are read-only,
    and stay unchanged for as long as an object refers to them.

    `len(batch)` is the number of records. `batch[i]` copies one record to `bytes`, or raises
    `IndexError` if there is none; a slice returns a list, and iterating yields every record.

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
        """Where each record starts in `data`, followed by where the last one ends.

        One more than there are records: 64-bit signed integers in native byte order (format `"q"`).
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
        """The batch as an Arrow table, without a copy: two capsules of the Arrow C data interface.

        The columns are `offset` and `record`.

        Args:
            requested_schema: Ignored, as the interface allows: the consumer casts. Default: `None`.

        Returns:
            The capsules of the schema and of the table.
        """

    def __arrow_c_schema__(self) -> object:
        """The columns and their types: a capsule of the Arrow C schema interface.

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

    Iterating yields each record as `bytes` once it is complete, and waits for the next one: `for`
    in this thread, where Ctrl-C works and other threads keep running, `async for` in the event
    loop of `asyncio`, in whose thread the file is read. The iteration ends after `timeout` seconds
    without a record; a new iteration continues from there. It waits at incomplete records, and at
    the zeros of a preallocated file. A `with` or `async with` statement closes the follower; the end of
    a loop does not. `next(follower)` is one step of the iteration.

    Threads may share a follower, even while one of them waits; if another closes it, the waiting
    thread gets a `ClosedError`. After a fork, both processes may continue following independently.
    If another thread was polling the file at the fork, the child cannot use its copy: `close` has
    no effect, and all other calls raise `OSError`.

    Args:
        path: The file; it must exist, and may be empty. Or the directory of a segmented log, in
            which no rotation is ever raised and no record is missed.
        start: Return only the records that start at or after this: the `position` of an earlier
            run, by which the log is recognised; or a file offset, in bytes. The rest of a record that
            starts before it, damaged or not, is skipped and not reported. Default: 0.
        timeout: The longest that a step of the iteration waits for a record, in seconds. With 0, it
            returns the records that are there and never waits. Default: `None`, forever.
        dialect: As for `Reader`; detected as soon as there is a file header or a complete fragment.
            `"wandb_old"` is never detected: name it.
            Default: `None`.
        log_number: As for `Reader`. Default: `None`.
        compression: As for `Reader`. Default: `None`.
        on_corruption: As for `Reader`, except `"salvage"`. Default: `"raise"`.
        on_rotation: The reaction once the path names another file, or none, and everything in the
            old one has been returned. `"raise"`: raise `LogRotatedError`. `"reopen"`: wait until
            the path names a file, and continue at its start; `tell`, `skipped` and `outcome`
            then describe that file. A file that had the path only between two polls is missed,
            without an error: this is for a writer that rotates far less often than `poll_interval`.
            `"stop"`: end the iteration for good; `outcome` says so. Under the last two, the logger
            `cordwood` gets a warning if the old file ended in an incomplete record. Default:
            `"raise"`.
        poll_interval: How long to sleep between polls of the file, in seconds. Default: 0.05.
        retry_time: Apparent damage with no valid block after it is read again for at least this
            long, in seconds, and at least three times, before it is reported. 0 reports it at once.
            Default: 0.1.
        record_len_max: As for `Reader`, in bytes. Default: 1 GiB.

    Raises:
        LogChangedError: `start` is a position in another log.
        OSError: The file cannot be opened, or is not a regular file.
        OverflowError: An integer is negative or too large for its option.
        TypeError: `path` is not a path.
        ValueError: An option has an invalid value.

    Each step of the iteration, and `poll`, may raise:

    * `CorruptionError`, `RecordTooLargeError`: damage, under the policy `"raise"`. The next
      step continues after it.
    * `DialectError`: the file is not a log.
    * `LogChangedError`: another log is in the place of this one. Every further step raises it again.
    * `LogTruncatedError`: the file is shorter than the part that has been read. Every further step
      raises it again.
    * `LogRotatedError`: the path names another file or none, and everything in the old one has been
      returned. Only under `on_rotation="raise"`.
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
        """Iterates over the records with their offsets, also with `async for`.

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
        """Returns the next record if there is one, without waiting.

        Returns:
            The record, or `None`: then `waiting` says why, and `outcome` whether there will be
            more.

        Raises:
            CordwoodError: As in a step of the iteration, for damage or a change of the file.
            OSError: The file cannot be read.
            ClosedError: The follower is closed.

        >>> with cordwood.open("live.log", "w") as writer:
        ...     _ = writer.append(b"one")
        >>> with cordwood.follow("live.log") as follower:
        ...     follower.poll(), follower.poll()
        (Record(offset=0, end_offset=10, data=b'one'), None)
        """
    def tell(self) -> int:
        """The file offset after everything returned or skipped so far.

        A new follower with this offset as its `start` continues from there. It returns the same
        records, but does not report the rest of a record whose start was damaged before this
        offset.

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
        """The position after everything returned or skipped so far, by which the log is recognised later.

        A new follower with it as its `start` continues from there, as with the offset of `tell`. If
        the path names another log by then, that is a `LogChangedError`. To store it, use `str`.

        Returns:
            A `Position`. At most two blocks of the file are read for it.

        Raises:
            ClosedError: The follower is closed.
            LogTruncatedError: The file has become shorter.
            OSError: The file cannot be read.

        >>> with cordwood.open("live.log", "w") as writer:
        ...     _ = writer.append(b"one")
        >>> with cordwood.follow("live.log", timeout=0) as follower:
        ...     list(follower), follower.position().offset
        ([b'one'], 10)
        """
    @property
    def waiting(self) -> NotYet | None:
        """Where and why the last step or `poll` found no record; `None` if it found one, or raised."""
    @property
    def delay(self) -> float:
        """Seconds to wait before the next `poll`, in a loop of your own.

        It is `poll_interval`, or less while apparent damage is read again.
        """
    @property
    def timeout(self) -> float | None:
        """The longest that a step waits, in seconds; `None` means forever."""
    @property
    def skipped(self) -> tuple[SkippedRegion, ...]:
        """The regions not returned so far, in the order of their offsets: the first 100,000.

        Adjacent regions are merged if their reasons are the same in all details.
        """
    @property
    def ok(self) -> bool:
        """Whether no damage has been found so far.

        Damage is a region of severity `"corruption"`: torn tails do not count.
        """

    @property
    def skipped_len(self) -> int:
        """The number of bytes in all regions not returned so far, listed or not."""
    @property
    def outcome(self) -> Outcome:
        """`"stopped"` if damage ended the log under the policy `"stop"`; otherwise `"unfinished"`.

        After the trailer of a closed Pebble log: `"clean"`. Under `on_rotation="stop"`, after a
        rotation: `"clean"`, or `"torn_tail"` if the old file ends with bytes that are not a
        complete record.
        """
    @property
    def dialect(self) -> DialectName:
        """The dialect of the log; `"leveldb"` until another one is detected."""
    @property
    def log_number(self) -> int | None:
        """The number of the log; `None` if the dialect has none or it is not known yet."""
    @property
    def compression(self) -> CompressionName | None:
        """How each record is compressed: `"zstd"`; `None` if it is not or this is not known yet."""
    @property
    def path(self) -> str:
        """The path of the file."""
    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
    def close(self) -> None:
        """Closes the file. Closing twice is allowed.

        `skipped`, `skipped_len`, `outcome`, `dialect`, `log_number` and `compression` can still be
        read.
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
    """The result of `Follower.records`: an iterator of `Record`, also for `async for`."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...
    def __aiter__(self) -> AsyncIterator[Record]: ...

@final
class Writer:
    """Writes records to a log, byte for byte as LevelDB does.

    `cordwood.open(sink, "w")` creates one; so does calling the class.

    By default, once `append` has returned, the record survives if this process crashes or is
    killed; synced records survive a crash of the machine. A `with` statement closes the
    writer.

    Threads may share a writer; each record is written whole. Until it is closed, a file is locked
    against a second writer, in this process and in others that check the lock (all that use
    cordwood do). A writer belongs to the process that opened it: in a forked child, `append`,
    `extend`, `flush` and `sync` raise `OSError`, and closing or dropping it has no effect.

    If a write to a file fails, it is undone: the file is truncated to the end of its last complete
    record, and the writer stays usable. If it cannot be undone, or if a sync has failed, every
    later call fails: it is not known which bytes are on the disk after `durable_offset`, and a
    second sync would not reveal it. Close the log and reopen it with `"a"` in this process: that
    rewrites the uncertain part. An object with `write` is not used again after a failure.

    When an unclosed writer is dropped or its cycle is collected, it writes its buffer and warns
    (`ResourceWarning`). A failure at that point is reported through `sys.unraisablehook`; an
    exception that is already being raised is kept. At the end of the program, each unclosed writer
    does the same and is closed, even if a running thread uses it.

    Args:
        sink: A path (`str` or `os.PathLike`), or an object with `write(data)`, at whose position
            the log starts. `data` is a read-only `memoryview`; the object may keep it, and it then
            never changes.
        mode: `"x"`: create a file; fails if it exists. `"w"`: create a file, replacing any existing
            one. `"a"`: append to the file, or create it. An object accepts `"x"` or `"w"`, which
            then mean the same. Default: `"x"`.
        dialect: How the bytes are laid out, as for `Reader`. For Pebble, closing also writes the
            end-of-log trailer. Default: `None`: for `"a"`, the dialect of the file, as `Reader`
            detects it; for a new file, `"leveldb"`.
        log_number: The number of the log, for `"rocksdb"`, `"pebble"` and `"recyclable"`: each
            fragment carries it. A log with a number is never appended to. Default: `None`: the
            fragments carry no number and are those of `"leveldb"`, even if the file's name contains
            a number.
        compression: How each record is compressed, for `"rocksdb"`: `"zstd"`. A compressed log is
            never appended to. Default: `None`, not at all.
        flush: For a path: when to pass records to the operating system, which keeps them if this
            process ends. `"append"`: before each `append` returns, in one write, or in one for
            every 256 KiB of a longer record; `extend` makes one write for every 1,024 records or
            128 KiB. `"close"`: records are buffered, up to 256 KiB, until `flush`, `sync` or
            `close`. An object is written to as with `"close"`, and accepts no `flush`. Default:
            `None`, which is `"append"`.
        sync: When to wait until records are on the disk, in addition to `sync()` and
            `append(..., sync=True)`. `"never"`: not at all; `"close"`: when the writer is closed;
            `"append"`: before each `append` returns. Every setting except `"never"` also syncs on
            close. So does `sync_interval`. Default: `"never"`.
        sync_interval: Instead of `sync`: sync within the first `append` made at least this many
            seconds after the last sync. Without an `append` there is no sync: no thread runs in the
            background. Default: `None`.
        on_torn_tail: For `"a"`: the treatment of a file that does not end with a complete record.
            `"refuse"`: raise. `"truncate"`: cut off the bytes that a crash can have left after the
            last complete record; other damage raises, as do damage that one flipped bit explains
            and a file without any valid fragment. `"pad"`: keep every byte, damaged or not, and
            continue in the next block; readers keep reporting the skipped bytes. A damaged file
            without any valid fragment raises, unless a crash can have left it so and `dialect` is
            given. Default: `"refuse"`.
        checkpoint: For `"a"`: a file offset at which a record starts or ends, and before which
            everything is known to be on the disk, such as an earlier `durable_offset`. The file is
            read from there to find its end, and the bytes after the checkpoint are rewritten, so
            that the next sync covers them. If it is greater than 0, the file must exist. Default:
            `None`: the file is read from the start, and no byte is rewritten unless a sync of
            this file has failed in this process.
        segment_len: For `"a"`: the log is a directory of files, its segments, and this many bytes
            are the most that one has, unless its first record is longer. `sink` is the directory;
            it is created if it does not exist. All offsets are those of the log, which go on rising
            from one segment to the next; `checkpoint` is one, too. The dialect is `"leveldb"` or
            `"packed"`. Only the last segment is read. Default: `None`: the log is one file.
        retention_bytes: For a segmented log: with each segment that is started, the oldest ones are
            removed, as long as this many bytes are left before it. Only closed and synced segments
            are removed, whether they were read or not. Default: `None`: all are kept.
        retention_time: For a segmented log: with each segment that is started, the oldest ones are
            removed, as long as their files were last changed more than this many seconds ago. One of
            the future, by the system's clock, is kept, and so are all later ones. Default: `None`: all are
            kept.
        record_len_max: The length in bytes of the longest record to write; a longer one raises
            `RecordTooLargeError`. Default: 1 GiB, as for `Reader`, which reads longer records only
            if its own `record_len_max` allows them. For `"a"`, it also limits what is decompressed to
            find the end of a packed log, by the rules for readers.

    Raises:
        OSError: The file cannot be opened, or its name, such as `000012.log`, states another log number
            than `log_number`; or no record starts or ends at `checkpoint`. For `"x"`, an existing
            file raises `FileExistsError`; with a `checkpoint`, a missing one `FileNotFoundError`.
        BlockingIOError: Another writer has the file open.
        TornTailError: For `"a"`, the file ends in an incomplete record or in zeros, and
            `on_torn_tail` is `"refuse"`.
        CorruptionError: For `"a"`, the file is damaged, and `on_torn_tail` does not allow that.
        DialectError: For `"a"`, the file is not in the given dialect, or is not a log; or it is of
            a kind that is never appended to: a log with a log number, or a compressed one.
        OverflowError: An integer is negative or too large for its option.
        TypeError: `sink` is not a path and has no `write`, or is a text file.
        ValueError: An option has an invalid value, or makes no sense here, such as a log number or
            a compression that the dialect does not have.

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
            sync: Return only once the record and everything before it are on the disk. Threads that
                wait for this share one sync. Default: `False`.

        Returns:
            The file offset of the header of the record's first fragment, in bytes.

        Raises:
            OSError: A write or a sync failed. The message says how many bytes are on the disk and
                whether the writer can still be used. The record is not in the log if the write was
                undone; if only the sync failed, it may be.
            TypeError: `record` is not bytes-like.
            ClosedError: The writer is closed.
            RecordTooLargeError: The record is longer than `record_len_max`. It is not in the log.
            MemoryError: There is not enough memory for the record, which is then not in the log; or
                only the returned offset cannot be allocated, in which case the record is in the
                log, and `tell()` is after it.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.append(b"one"), writer.append(b"two", sync=True)
        (0, 10)
        """
    def extend(self, records: Iterable[ReadableBuffer] | ArrowArrayExportable | ArrowStreamExportable, /) -> int:
        """Appends all records of an iterable, or of a column of Arrow.

        Of a column of pyarrow, polars and other libraries, no Python object is made for a record.

        If it raises, the records before that point are in the log. After a failed write, those that had
        not reached the file, perhaps all of them, are not: `tell` returns where the log ends.

        Args:
            records: An iterable of `bytes` or other buffers; or a column of bytes or text, which has
                `__arrow_c_array__` or `__arrow_c_stream__`, such as one of a `pyarrow.Table`. Text is
                appended as UTF-8.

        Returns:
            How many records there were.

        Raises:
            OSError: As for `append`; or the stream of a column failed.
            TypeError: A record is not bytes-like, or `records` is a single record or a string, or a
                column of another type, or a table.
            ValueError: A record of a column is null. The message states its index.
            ClosedError: The writer is closed.
            MemoryError: As for `append`.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two"])
        2
        """
    def tell(self) -> int:
        """The length of the log with all records so far, including those not yet written out.

        Returns:
            The length in bytes: the file offset after the last record.

        Raises:
            ClosedError: The writer is closed.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.append(b"one"), writer.tell()
        (0, 10)
        """
    def flush(self) -> None:
        """Writes all records so far to the operating system, or to the sink.

        They then survive the end of this process, but not a crash of the machine.

        Raises:
            OSError: As for `append`.
            ClosedError: The writer is closed.

        >>> with cordwood.open("example.log", "w", flush="close") as writer:
        ...     _ = writer.append(b"one")
        ...     writer.flush()
        ...     list(cordwood.open("example.log"))
        [b'one']
        """
    def sync(self) -> None:
        """Flushes, and waits until the records are on the disk.

        For a new file, that includes its name.

        Raises:
            OSError: The records may not be on the disk, and a failed sync cannot be repeated, so
                the writer stays unusable.
            io.UnsupportedOperation: The sink has no file descriptor.
            ClosedError: The writer is closed.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     _ = writer.append(b"one")
        ...     writer.sync()
        ...     writer.durable_offset
        10
        """
    def rotate(self) -> int:
        """Starts a new segment of a segmented log now, unless there is no record in the last one.

        Otherwise, a segment is started by the append of a record that would make the last one
        longer than `segment_len`.

        Returns:
            The log offset at which the last segment starts, in bytes.

        Raises:
            OSError: The segment cannot be created, and the writer stays usable; or a write or a sync
                failed, as for `sync`.
            io.UnsupportedOperation: The log is not in segments.
            ClosedError: The writer is closed.

        >>> with cordwood.open("orders", "a", segment_len=64 << 20) as writer:
        ...     _ = writer.append(b"one")
        ...     writer.rotate()
        10
        """

    def prune_before(self, offset: int, /) -> int:
        """Removes the segments that end at or before an offset, the oldest first, and never the last.

        Appends go on meanwhile. After a crash, the segments from one of them on exist.

        Args:
            offset: A log offset, in bytes: no record from here on is removed.

        Returns:
            The new `first_offset`.

        Raises:
            OSError: A segment cannot be removed, and the writer stays usable; or a sync failed, as
                for `sync`.
            OverflowError: `offset` is negative.
            io.UnsupportedOperation: The log is not in segments.
            ClosedError: The writer is closed.

        >>> with cordwood.open("orders", "a", segment_len=64 << 20) as writer:
        ...     _ = writer.append(b"one")
        ...     end = writer.rotate()
        ...     writer.prune_before(end), writer.first_offset
        (10, 10)
        """

    @property
    def first_offset(self) -> int:
        """The log offset of the first byte that has not been removed; 0 if the log is not in segments."""

    def wait_durable(self, offset: int, /) -> None:
        """Waits until every byte before an offset is on the disk, without appending a record.

        So one thread can append and another wait, with `tell()` after the append as the offset. It
        shares the sync of another thread if that covers the offset; otherwise it syncs. Ctrl-C
        raises after the sync.

        Args:
            offset: A file offset, in bytes. A record ends where `tell()` is after its `append`, not
                at the offset that `append` returns.

        Raises:
            OSError: `offset` is after the end of the log (`errno.EINVAL`), or a write or a sync
                failed, as for `sync`.
            OverflowError: `offset` is negative.
            io.UnsupportedOperation: The sink has no file descriptor.
            ClosedError: The writer is closed.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     _ = writer.append(b"one")
        ...     writer.wait_durable(writer.tell())
        ...     writer.durable_offset
        10
        """
    @property
    def durable_offset(self) -> int:
        """Everything before this file offset is on the disk, and survives a crash of the machine.

        Before the first sync of this writer 0, or where the last segment starts. It can still be
        read after the writer is closed.
        """
    @property
    def discarded_tail(self) -> SkippedRegion | None:
        """The region after the last complete record when the log was opened with `"a"`, or `None`.

        It was cut off or kept, depending on `on_torn_tail`.
        """
    @property
    def dialect(self) -> DialectName:
        """The dialect that is written, such as `"leveldb"`."""
    @property
    def log_number(self) -> int | None:
        """The number of the log, which each fragment carries; `None` if the fragments carry none."""
    @property
    def compression(self) -> CompressionName | None:
        """How each record is compressed: `"zstd"`, or `None` for not at all."""
    @property
    def path(self) -> str | None:
        """The path, if the sink is one; else `None`."""
    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
    def close(self) -> None:
        """Flushes, syncs if `sync` says so, and closes the file. Closing twice is allowed.

        If other threads are waiting for a sync, it waits until that is done. After closing, another
        writer may open the file. In a forked child, it only closes the child's copy of the
        descriptor.

        An object that was passed in is only flushed.

        Raises:
            OSError: A write or a sync failed. The writer is closed nonetheless.

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
    """An iterator over the operations of a write batch, decoded one by one.

    Args:
        record: The record.
        engine: `"rocksdb"` or `"pebble"`.
    """

    def __new__(cls, record: bytes, engine: str, /) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Operation: ...

@final
class WriteBatchReader:
    """Checks the write batches of one log, and finds the engine that wrote them.

    Args:
        dialect: The dialect of the log, or `None`. Of those that RocksDB and Pebble share, the batches
            say which engine it is.
    """

    def __new__(cls, dialect: str | None, /) -> Self: ...
    def engine(self, record: bytes, /) -> Literal["rocksdb", "pebble"]:
        """The engine of the batch in the next record, all of which is decoded.

        Args:
            record: The record.

        Returns:
            `"rocksdb"` or `"pebble"`.

        Raises:
            PayloadError: The record is not a batch, or a damaged one.
        """
    @property
    def note(self) -> str | None:
        """The uncertain point that the batches so far have shown, in words; `None` if there is none."""

def version_edit_field(record: bytes, offset: int, /) -> tuple[str, int, object, int] | None:
    """A field of a version edit, and the offset of the next one.

    Fields are decoded one at a time: a decoded field takes up many times its size in the record.

    Args:
        record: The record.
        offset: The offset of the field in the record, in bytes.

    Returns:
        The name of its kind, its tag, its value and the offset after it; `None` at the end of the record.

    Raises:
        PayloadError: The bytes at the offset are not a field.
    """

def write_batch_header(record: ReadableBuffer, engine: str, /) -> tuple[bytes, int, int]:
    """The record of a write batch, and the numbers in its header.

    Args:
        record: `bytes` or any other buffer.
        engine: `"rocksdb"` or `"pebble"`.

    Returns:
        The record as `bytes`, the sequence number of the first operation, and the number of operations
        that count.

    Raises:
        PayloadError: The record is shorter than the header of a batch.
        TypeError: `record` is not bytes-like.
        ValueError: The engine is unknown.
    """

def build_write_batch(sequence: int, operations: Iterable[Operation], engine: str, /) -> bytes:
    """The record of a write batch with these operations.

    Args:
        sequence: The sequence number of the first operation.
        operations: The operations, in order.
        engine: `"rocksdb"` or `"pebble"`.

    Returns:
        The record.

    Raises:
        PayloadError: The engine does not know one of the operations, or a part is too large.
        TypeError: An item is not an `Operation`, lacks an attribute that its kind has, or has another.
        ValueError: The engine or a kind of operation is unknown.
        OverflowError: A number is negative or has too many bits.
    """

@final
class VersionState:
    """The state of a database after the edits in its MANIFEST: its tables, and the last value of each number."""
    def apply(self, record: ReadableBuffer, /) -> None:
        """Applies the edit in the next record.

        Args:
            record: `bytes` or any other buffer.

        Raises:
            PayloadError: The record is not a version edit. The state is then that before it.
            TypeError: `record` is not bytes-like.
        """
    def numbers(self) -> tuple[dict[str, int], dict[int, int], dict[int, int], bool]:
        """The numbers that the edits state.

        Returns:
            The last value of each field that is a number, by the name of the field; for each column family,
            the smallest number of a log that it needs; for each log that RocksDB keeps track of, its synced
            length in bytes; and whether LevelDB knows all fields.
        """
    def tables(self) -> list[tuple[int, bytes | None, dict[str, Any]]]:
        """The tables, by column family, level and number.

        Returns:
            For each, the number of its column family; the name of that family, if the MANIFEST states it;
            and the parts of the table by their names.
        """

def checked_version_edit(record: ReadableBuffer, /) -> bytes:
    """The record of a version edit, once all of it has been decoded.

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
    """Reads a log to its end, and reports its contents and its damage.

    Damage is not an error here. It is treated as under the policy `"salvage"`, so that the report
    is about the damage itself, and not the rest of its block. `Report.salvaged_count` says how many
    of the records LevelDB and the policy `"skip"` would drop.

    A log with a number in which damage is found is read a second time, if the source can seek, and
    the report is of the second reading: while RocksDB or Pebble writes such a log over an older one,
    a reader may see the older one where a record was written just after.

    Args:
        source: As for `Reader`, or a `Split`. Or many logs: a directory, for all logs in it and in
            its subdirectories; a pattern, such as `"*.log"`; or a list of paths, URLs, directories,
            patterns and splits.
        threads: The number of threads to read with, 1 to 256. The report does not depend on it.
            Only one thread is used for an object with `read`, a log with log numbers, and a file of
            less than about 2 MiB per thread. Of many logs, several are read at a time. Default: 1.
        dialect: As for `Reader`. Default: `None`.
        log_number: As for `Reader`. Default: `None`.
        compression: As for `Reader`. Default: `None`.
        start: As for `Reader`: a file offset in bytes. Default: 0.
        end: As for `Reader`: a file offset in bytes. Default: `None`.
        verify_checksums: As for `Reader`. Default: `True`.
        record_len_max: As for `Reader`, in bytes. Default: 1 GiB.
        storage_options: As for `Reader`. Default: `None`.
        progress: Called after each read, by the thread that read, with the number of bytes by which
            reading has advanced, up to a few MiB; 0 if only bytes were read again. The numbers add
            up to at most the length of the source, if that is known. If it raises, so does this
            function. Default: `None`.

    Returns:
        The report. `ok` is true if there is no damage. For many logs, a `Results`, a mapping from
        the name of each log to its report.

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
    """Reads a log under the policy `"salvage"`, and writes all its records to a new log.

    The source is not changed. The new log is written in the directory of `destination` under a
    temporary name, synced, and renamed last, so a file with the final name is complete. It has the
    permissions of a source that is a path, as with `cp`. After a failure, the unfinished log is
    removed.

    Args:
        source: As for `Reader`. Or many logs, as for `verify`, except splits.
        destination: The path of the new log, which must not exist. For many logs, a directory,
            which is created if it does not exist; each keeps its path below the directory or
            pattern that `source` names. The new log has the dialect, the log number and the engine
            metadata of the source. RocksDB and Pebble take the number of a log from the name of its
            file.
        dialect: As for `Reader`. Default: `None`.
        log_number: As for `Reader`. Default: `None`.
        compression: As for `Reader`. Default: `None`.
        record_len_max: As for `Reader`, in bytes. Default: 1 GiB.
        repair_bit_flips: Also write a record whose damage one flipped bit explains, with that bit
            flipped back. `repaired_count` and `repaired` of the report say which. Such a record has
            the contents that its checksum confirms, if one bit was flipped. Default: `False`.
        storage_options: As for `Reader`. Default: `None`.
        progress: As for `verify`. Default: `None`.

    Returns:
        The report on `source`. For many logs, a `Results`, as for `verify`.

    Raises:
        DialectError: `source` is not a log.
        FileExistsError: There is already a file at `destination`. It is not changed.
        OSError: The source cannot be opened or read, the new log cannot be written, `destination` has
            the name of a segment, or the number in its name is not the one that the records carry.
        OtherLogError: All of `source` belongs to a different log from the one that its name or
            `log_number` states. No log is written.
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
    """The records of logs as a table, for everything that reads Arrow: the result of `scan`.

    pyarrow, polars, DuckDB, pandas, DataFusion and others accept it directly, through its
    `__arrow_c_stream__`. Each reading opens the sources again, so it can be read any number of
    times.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a stream of Arrow batches: a capsule of the Arrow C stream interface.

        Args:
            requested_schema: Ignored, as the interface allows: the consumer casts. Default: `None`.

        Returns:
            The capsule, which reads the sources from their start.
        """

    def __arrow_c_schema__(self) -> object:
        """The columns and their types: a capsule of the Arrow C schema interface.

        Returns:
            The capsule.
        """

    @property
    def columns(self) -> tuple[ColumnName, ...]:
        """The names of the columns."""

    @property
    def skipped(self) -> tuple[tuple[SkippedRegion, ...], ...]:
        """The regions that were not returned: a tuple of `SkippedRegion` for each source, in order.

        These are the findings so far of the most recently started reading; empty if none has
        started. For each source, the first 100,000 regions are listed.
        """

    @property
    def ok(self) -> bool:
        """Whether no damage has been found: no region of severity `"corruption"` in any source.

        These are the findings so far of the most recently started reading.
        """

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """How reading each source ended: an `Outcome` for each, in order.

        This describes the most recently started reading; `"unfinished"` for a source whose end it
        has not reached. Empty if none has started.
        """

@final
class RecordIndex:
    """The records of logs by their indices, from 0: the result of `index`.

    `index[i]` is a record, also with a negative index, and `index[i:j]` a list of records. Any
    number of threads may use it at a time, and so may a forked process. It can be pickled: the
    files are opened again where it is used, by their absolute paths. A log may grow. Another log
    under the path is a `LogChangedError`, once its file is opened again; so is a record that does not
    start where it did.
    """

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> bytes: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[bytes]: ...
    def read(self, indices: Iterable[SupportsIndex]) -> list[bytes]:
        """Returns many records, faster than one by one.

        Records that are near each other are read together.

        Args:
            indices: Their indices, in any order, also negative, also more than once.

        Returns:
            The records, in the order of `indices`.

        Raises:
            ClosedError: The index is closed.
            CorruptionError: A record has been damaged since, and `on_corruption` is `"raise"`.
            IndexError: There is no record with one of the indices.
            LogChangedError: A log has changed since it was indexed.
            OSError: A file cannot be opened or read.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two", b"three"])
        3
        >>> cordwood.index("example.log").read([2, 0, -1])
        [b'three', b'one', b'three']
        """

    def __getitems__(self, indices: Iterable[SupportsIndex]) -> list[bytes]:
        """The same as `read`, under the name by which torch and other loaders ask for a batch."""
    def place(self, index: SupportsIndex) -> tuple[str, int]:
        """Returns where a record is. The record is read.

        Args:
            index: Its index, also negative.

        Returns:
            The path of the log, and the offset of the record in it, in bytes.

        Raises:
            IndexError: There is no record with this index.
            Exception: As for `read`.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two", b"three"])
        3
        >>> cordwood.index("example.log").place(1)
        ('example.log', 10)
        """
    def close(self) -> None:
        """Closes the files.

        A call in another thread still returns its records; later calls raise `ClosedError`. Closing
        again has no effect.
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
    """Indexes the records of one or more logs, so that each can be read by its number.

    The logs are read once. The index keeps 8 bytes for every 16 records, and for each record near
    damage. It opens files when they are needed: at most 64 stay open, each with 264 KiB of memory. To
    return a record, it reads the 16 among which the record is, or, in a packed log, a block of 32 KiB or
    more, and checks them.

    To read all records in order, a `Reader` is faster.

    Args:
        sources: A path, also that of a segmented log; a directory, for all logs in it and in its
            subdirectories; a pattern, such as `"*.log"`; or an iterable of these. The records are
            numbered in this order. URLs, bytes and objects with `read` are not accepted.
        dialect: As for `Reader`.
        log_number: As for `Reader`.
        compression: As for `Reader`.
        on_corruption: As for `Reader`. Under all but `"raise"`, the records that are lost have no
            index. Default: `"raise"`.

    Returns:
        A `RecordIndex`, for any number of threads. It can be pickled.

    Raises:
        CorruptionError: A log is damaged, and `on_corruption` is `"raise"`.
        DialectError: A file is not a log.
        OSError: A file cannot be opened or read, or is not a regular file.
        TypeError: A source is none of the above.
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
    """Returns the records of one or more logs as a table, for everything that reads Arrow.

    Pass it to `pyarrow.table`, `polars.DataFrame`, `pandas.DataFrame.from_arrow`, DuckDB,
    DataFusion and others. Each reads the sources again, in batches of about 256 KiB. One is in
    memory at a time, unless the consumer keeps them. Before then, only files in directories are
    opened, to see which are logs.

    Errors are raised by the consumer, as exceptions of its own with cordwood's message. After an
    error, a stream returns no more batches.

    Args:
        sources: Like the source of `Reader`: a path, a URL, bytes, or an object with `read`, which
            must be able to seek in order to be read twice. Or a `Split`; a directory, for all logs
            in it and in its subdirectories; a pattern, such as `"*.log"`; or an iterable of all of
            these, which are read in its order. Directories are listed by this function, and their
            files that are not logs are left out. A file with several of the names, such as a link
            to another one, is read once, under the first of them; so is a URL that occurs more than
            once.
        columns: The columns, in this order. `"offset"`: the file offset of the record, `uint64`;
            `"record"`: its bytes, `large_binary`; `"end_offset"`: the file offset after it;
            `"length"`: its number of bytes; `"path"`: the path of its log, a dictionary of text,
            null if it has none; `"salvaged"`: whether it starts after damage in its block. Without
            `"record"`, records are checked but not copied. Default: `None`: `"offset"` and
            `"record"`, and `"path"` if `sources` is a directory, a pattern or an iterable.
        decode: The contents of the records: a name that `cordwood convert --as` accepts, such as
            `"write-batch"`, `"entity"`, `"wandb-history"` or `"json"`; `cordwood.typing.DecoderName`
            lists them. The rows and columns are then those of `convert`, and `columns` selects from
            them. Requires pyarrow, and reads in one thread; the records of entities, JSON and W&B
            histories are decoded in up to two. Columns that differ from log to log are
            determined by first reading all sources once. A record with any other content is an
            error, in that first reading a `PayloadError`; under a policy other than `"raise"` it is
            left out, and `DecodedScan.left_out` lists it. Logs in directories whose first record is
            of another kind are left out, as by `convert`. Default: `None`: bytes.
        schema: With `decode`: a `pyarrow.Schema`, which replaces that first reading. Columns that
            it does not name are left out. Default: `None`.
        dialect: As for `Reader`.
        log_number: As for `Reader`.
        compression: As for `Reader`.
        on_corruption: As for `Reader`: `"raise"`, `"skip"`, `"stop"` or `"salvage"`. Under all but
            the first, `Scan.skipped` then lists the losses. Default: `"raise"`.
        threads: Read ahead in each file with this many threads, 1 to 256. A single thread reads a
            source that is not a path, all sources that `Reader.record_batches` reads in one thread,
            and any table without the column `"record"` or with `"salvaged"`. Default: 1.
        start: As for `Reader`, in each source that is not a `Split`.
        end: As for `Reader`, in each source that is not a `Split`.
        storage_options: As for `Reader`. Default: `None`.

    Returns:
        A `Scan`: an object with `__arrow_c_stream__` and `__arrow_c_schema__`. With `decode`, a
        `DecodedScan`, which also has them.

    Raises:
        ModuleNotFoundError: With `decode`: pyarrow is not installed.
        OSError: A directory, or a file in it, cannot be read.
        OverflowError: An integer is negative or too large for its option.
        TypeError: A source is none of the above, or is a text file.
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
    """Copies all records of a closed log to a new log: to a packed log, or back.

    The copy is strict: it contains all records, or it is not made. Damage, an incomplete record at
    the end, and zeros are errors, since any of them may have been a record. Only zeros that fill the
    block of the last record, in a file of whole blocks, are taken for padding, and left out.

    The way back is the same function: a packed log that is copied to the dialect of the log that was
    packed has the same records, and the same bytes, if that consisted of whole records only. Logs
    that could not be made again are refused: those with a number, with compression of each record
    or with an engine's metadata, `"wandb_old"`, and the versions 0 and 1 of `"swanlab"`.

    The source is not changed. The new log is written as by `salvage`: a file with the final name is
    complete and on the disk. Only cordwood reads a packed log, so never pack one that a database is
    to read.

    Args:
        source: As for `Reader`. It should be closed: records appended to it meanwhile may be
            missing.
        destination: The path of the new log, which must not exist.
        dialect: That of the new log: `"packed"`, `"leveldb"`, `"wandb"` or `"swanlab"`. Default:
            `"packed"`.
        compression: That of the new log: `"zstd"`, or `None` for none. Default: `"zstd"` for a packed
            log, and `None` for others, which have no compression.
        record_len_max: As for `Reader`, in bytes. Default: 1 GiB.
        progress: As for `verify`. Default: `None`.

    Returns:
        The report on `source`.

    Raises:
        CorruptionError: The log is damaged, ends in an incomplete record, or contains zeros other
            than padding. No log is written.
        DialectError: `source` is not a log, or one that could not be made again from the new one.
        FileExistsError: There is already a file at `destination`. It is not changed.
        OSError: The source cannot be opened or read, the new log cannot be written, or `destination`
            has the name of a segment.
        RecordTooLargeError: A record is longer than `record_len_max`. No log is written.
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
    """Reads a log to its end, and counts its contents.

    Damage is not an error here: it is treated as by `verify`.

    Args:
        source: As for `verify`.
        threads: As for `verify`. Default: 1.
        dialect: As for `Reader`. Default: `None`.
        log_number: As for `Reader`. Default: `None`.
        compression: As for `Reader`. Default: `None`.
        start: As for `Reader`: a file offset in bytes. Default: 0.
        end: As for `Reader`: a file offset in bytes. Default: `None`.
        verify_checksums: As for `Reader`. Default: `True`.
        record_len_max: As for `Reader`, in bytes. Default: 1 GiB.
        storage_options: As for `Reader`. Default: `None`.
        progress: As for `verify`. Default: `None`.

    Returns:
        The numbers. For many logs, a `Results`, as for `verify`.

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
    """Detects the format of a log from the start of the file.

    Args:
        source: As for `Reader`. Its first 96 KiB are read; if they do not show a log and the file
            is longer, its end and the starts of its blocks are read as well.

    Returns:
        A `LogFormat`: the dialect; the log number, if logs of that dialect have one (the number in
        the name of the file, or else that of the first fragment); and the compression. `None` if
        the format cannot be detected: the file is empty, or its start contains no complete
        fragment with a valid checksum. `Reader` then reads it as `"leveldb"`.

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
    """The log offset at which the segment of this name starts; `None` if it is the name of no segment."""

def marks_of(position: Position) -> tuple[list[tuple[int, int, int]], str | None]:
    """The marks of a position, for a log that Python reads.

    Args:
        position: The position.

    Returns:
        Where the bytes of each mark start, how many they are, and their checksum; and the version that
        a store has given to the log.
    """

def moved_to(position: Position, offset: int) -> Position:
    """Another offset in the same log.

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
    """The position at the start of a log.

    Args:
        start: The first block of the log, or all of it.
        dialect: As for `Reader`. `None`: the start is not compared.
        log_number: As for `Reader`.
        compression: As for `Reader`.
        version: The version that a store has given to the log.

    Returns:
        A `Position` with the offset 0.
    """

def start_at(
    path: str | PathLike[str],
    dialect: DialectName | None,
    log_number: int | None,
    compression: CompressionName | None,
) -> Position:
    """The position at the start of a log on a disk.

    Args:
        path: The path of a file or of a segmented log.
        dialect: As for `Reader`.
        log_number: As for `Reader`.
        compression: As for `Reader`.

    Returns:
        A `Position`.

    Raises:
        OSError: The file cannot be read.
    """

def is_log_name(path: str | PathLike[str], /) -> bool:
    """Whether a file has the name of a log, or of a copy of one."""

def crc32c(data: ReadableBuffer, crc: int = 0) -> int:
    """The CRC-32C of some bytes.

    Args:
        data: `bytes` or any other buffer.
        crc: The CRC-32C of the bytes before `data`, to continue from. Default: 0, the CRC-32C of no
            bytes.

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
    """The form in which the format stores a CRC-32C: rotated right by 15 bits, plus a constant.

    Args:
        crc: The CRC-32C, an unsigned 32-bit integer.

    Returns:
        The checksum as the header of a fragment stores it, an unsigned 32-bit integer.

    Raises:
        OverflowError: `crc` is not an unsigned 32-bit integer.

    >>> hex(cordwood.mask_crc(cordwood.crc32c(b"foo")))
    '0xfebe8a61'
    """

def unmask_crc(masked: int, /) -> int:
    """Undoes `mask_crc`.

    Args:
        masked: The checksum as the header of a fragment stores it, an unsigned 32-bit integer.

    Returns:
        The CRC-32C, an unsigned 32-bit integer.

    Raises:
        OverflowError: `masked` is not an unsigned 32-bit integer.

    >>> hex(cordwood.unmask_crc(0xfebe8a61))
    '0xcfc4ae1d'
    """

def decode_entity(record: ReadableBuffer, /) -> Entity:
    """The entity in a record of a Datastore or Firestore export.

    `cordwood.payload.entity.decode` returns this class.

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

    The columns are known, or learned. A table that learns them is open once the first records have
    shown some: from then on, its rows are also written. If later rows need other columns, they and all
    that follow only teach: the table is no longer open, and must be made again with all columns.

    Args:
        payload: The contents of the records, as in `cordwood._tables.payloads`.
        form: `"arrow"`, `"ndjson"` or `"csv"`.
        columns: Pairs of a name and a type from `cordwood._tables.schema`, if they are known.
        always: The columns that a table has even if no row has a value in them.
        wanted: The columns that are wanted, in their order; `None` for all. `a.b` is the field `b` of
            the column `a`.
        limit: The maximum number of rows.
        opens_early: Whether a table that learns its columns is opened with those of the first records.
        bytes_as: How bytes become text: `"object"`, `"utf-8"`, `"hex"` or `"base64"`. With `"utf-8"`, a row
            with other bytes is a fault.
        escapes_formulas: Whether text in CSV that a spreadsheet takes for a formula gets an apostrophe.
        column_count_max: The maximum number of columns, including fields in columns.
        field_count_max: The maximum number of fields in a column.
        level_count_max: The maximum number of levels of lists and structures in a column.
        row_count_max: The maximum number of rows in an Arrow batch.
        cell_count_max: The maximum number of cells in an Arrow batch. One row may have more.
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
        column_count_max: int,
        field_count_max: int,
        level_count_max: int,
        row_count_max: int,
        cell_count_max: int,
    ) -> Self: ...
    def start_log(
        self,
        first: Sequence[tuple[str, str | None]],
        *,
        dialect: str | None = None,
        families: dict[int, bytes] = ...,
        is_run: bool = False,
        has_salvaged: bool = False,
    ) -> None:
        """Starts a log.

        Args:
            first: Names and texts of the cells that each of its rows starts with.
            dialect: The dialect of the log, if it is known.
            families: The names of its column families by their numbers.
            is_run: Whether it is a run of Weights & Biases even without a record.
            has_salvaged: Whether rows with the offset of their record say whether it is salvaged.
        """
    def take(
        self, source: RecordBatch | Sequence[Record], start: int, only: Sequence[int] | None = None, /
    ) -> tuple[int, list[Any], list[tuple[int, str, PayloadError]], int]:
        """Takes the rows of records.

        Args:
            source: A `RecordBatch`, or a list of `Record`.
            start: The index of the first record to take.
            only: The indices of the records to take, in ascending order; `None` for all. `start` is
                then an index in this list.

        Returns:
            The index of the record to continue with. The output: `bytes`, or for Arrow the indices of
            the columns that have values, the number of rows and capsules of the Arrow C data interface.
            The faults: the index of a record, the missing part (`"record"`, `"row"`, `"value"` or `"rest"`),
            and a `PayloadError`. And how many more faults there are.

        Raises:
            MemoryError: There is not enough memory.
            TooManyColumnsError: There are too many columns.
            HasFirstError: A row has a column with which each row starts.
            MisfitError: A value does not fit its column, or is in none.
        """
    def take_rest(self) -> tuple[bool, list[Any], list[tuple[int, str, PayloadError]], int]:
        """Takes the rows that are complete only at the end of a log.

        Returns:
            Whether these are all: if not, it must be called again. And the output and the faults, as for
            `take`.
        """
    def take_held(self) -> tuple[bool, list[Any], list[tuple[int, str, PayloadError]], int]:
        """Takes the rows that are held back until all logs were read.

        Returns:
            As for `take_rest`.
        """
    @property
    def columns(self) -> dict[str, ColumnType]:
        """The columns that are known, or those that were learned, in their order, each with its type."""
    def __arrow_c_schema__(self) -> object:
        """The columns and their types: a capsule of the Arrow C schema interface.

        Returns:
            The capsule.
        """
    @property
    def conflicts(self) -> tuple[dict[str, list[str]], list[str]]:
        """The columns that are JSON: those with values of several types, and these; and those that are too wide.

        `a.b` is a field of `a`, and `a[]` are its items.
        """
    @property
    def note(self) -> str | None:
        """The uncertain point that the records of this log have shown so far; `None` if there is none."""
    @property
    def is_open(self) -> bool:
        """Whether its rows are written. If not at the end, it must be made again with all columns."""
    def only_learn(self) -> None:
        """Lets the rows that follow only teach, as if the columns had grown."""
    @property
    def row_count(self) -> int:
        """The number of rows."""
    @property
    def is_full(self) -> bool:
        """Whether there are as many rows as are wanted."""
    @property
    def missing(self) -> tuple[list[str], list[str]]:
        """The wanted columns that no row had; and the names of columns that rows had, for a message."""

@final
class RecordDecoder:
    """Decodes the records of one log, in their order.

    Args:
        payload: The contents of the records, as in `cordwood._tables.payloads`.
        dialect: The dialect of the log, if it is known.
    """

    def __new__(cls, payload: str, dialect: str | None = None, /) -> Self: ...
    def row(self, record: ReadableBuffer, errors: list[PayloadError] | None = None, /) -> dict[str, Any] | None:
        """The row of a record.

        Args:
            record: `bytes` or any other buffer.
            errors: A value that cannot be read is left out, and its error is appended to this list.
                `None`: the error is raised.

        Returns:
            The values by their names, or `None` for a record that has no row.

        Raises:
            PayloadError: The record cannot be decoded.
            TypeError: `record` is not bytes-like.
        """
    def rest(self) -> dict[str, Any] | None:
        """The row that is complete only after the last record.

        Returns:
            The values by their names, or `None` if there is no such row.
        """
    def json(self, record: ReadableBuffer, /) -> str | None:
        """The value of a record as JSON, on one line.

        Args:
            record: `bytes` or any other buffer.

        Returns:
            The text, or `None` for a record that the payload is not about.

        Raises:
            PayloadError: The record cannot be decoded.
            TypeError: `record` is not bytes-like.
        """
    @property
    def note(self) -> str | None:
        """The uncertain point that the records have shown so far; `None` if there is none."""
    def value(self, record: ReadableBuffer, /) -> Any:
        """The value of a record.

        Args:
            record: `bytes` or any other buffer.

        Returns:
            The value, or `None` for a record that the payload is not about.

        Raises:
            PayloadError: The record cannot be decoded.
            TypeError: `record` is not bytes-like.
        """

def is_decoded(payload: str, record: bytes, dialect: str | None, /) -> bool:
    """Whether a record is of the kind that a payload is about, all of it.

    Args:
        payload: The name of the payload.
        record: The record.
        dialect: The dialect of its log, if it is known.

    Returns:
        Whether it can be decoded without a fault.
    """

def entity_kinds(source: RecordBatch | Sequence[Record], /) -> tuple[list[tuple[str | None, list[int]]], list[int]]:
    """The kinds of the entities in records.

    Args:
        source: A `RecordBatch`, or a list of `Record`.

    Returns:
        Each kind, and the indices of its records; `None` is the kind of entities without a key. And
        the indices of the records that cannot be read.
    """

@final
class Fragments:
    """The iterator that `fragments` returns."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Fragment: ...
    def next_run(self) -> tuple[int, int, str, str | None, str | None, int] | None:
        """Merges the next fragments that are of the same kind and reason and in the same block.

        For pictures of long logs.

        Returns:
            A tuple: the offset, the end offset, the kind, the reason, its severity and the number of
            fragments. `None` at the end of the log.
        """
    @property
    def found(self) -> tuple[DialectName, int | None, CompressionName | None, int | None, int]:
        """The findings in the log so far.

        A tuple: its dialect, its number, its compression, the number of another log to which all of
        it belongs, and how many of its records start after damage in the same block.
        """

def fragments(
    source: Source,
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
) -> Fragments:
    """Lists every fragment and every gap of a log, with the reason for each that was not returned.

    Together they tile the file: each starts where the one before it ends, and none crosses the end
    of a block. Damage is not an error here. The list follows the records and regions of `Reader`
    under the policy `"salvage"`: each fragment in a skipped region carries the region's reason.
    Memory use does not grow with the log.

    Args:
        source: As for `Reader`, if it can be read twice: the path of a file, a URL or another
            source that is read in ranges, a buffer, or an object with `read` and `seek`.
        dialect: As for `Reader`. Default: `None`.
        log_number: As for `Reader`. Default: `None`.
        compression: As for `Reader`. Default: `None`.

    Returns:
        An iterator of `Fragment`.

    Raises:
        DialectError: The source is not a log. Raised by the first step.
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
    """Makes a reader with the policy `"salvage"` leave out the records that it would mark.

    The others are those that the policy `"skip"` returns. Must be called before the first record is
    read; not for `record_batches` in threads.

    Args:
        reader: The reader.
    """

def left_out(reader: Reader, /) -> tuple[int, dict[Reason, int]]:
    """How much a reader has left out.

    Args:
        reader: The reader.

    Returns:
        The number of records so far that it has left out because of `leave_out_salvaged`, and the
        bytes in the skipped regions with each reason.
    """

def restored_index(
    logs: Sequence[tuple[str | PathLike[str], int, int, bytes]],
    dialect: DialectName | None,
    log_number: int | None,
    compression: CompressionName | None,
    on_corruption: str,
) -> RecordIndex:
    """Returns the index that was pickled.

    Args:
        logs: The path, the position after the last record, the number of records and the offsets of each log.
        dialect: As for `index`.
        log_number: As for `index`.
        compression: As for `index`.
        on_corruption: As for `index`.

    Returns:
        The index.
    """

def reason_in_words(reason: str, region: SkippedRegion, /) -> str:
    """The reason of a region in words: the result of `SkippedRegion.description`.

    Args:
        reason: The reason.
        region: Its attributes are the details of the reason. Others than this reason has are ignored.

    Returns:
        The text.

    Raises:
        ValueError: There is no such reason.
    """
