from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, Self, final, overload

from _typeshed import ReadableBuffer

from cordwood._tables.scan import DecodedScan
from cordwood.errors import PayloadError
from cordwood.payload.entity import Entity
from cordwood.payload.version_edit import Field
from cordwood.payload.write_batch import OperationKind
from cordwood.types import FragmentKind, FragmentPart, LogFormat, OutcomeKind, Reason, Severity, WaitReason
from cordwood.typing import ColumnName, CompressionName, DecoderName, DialectName, Sink, Source

__all__ = [
    "NUMBERED_DIALECTS",
    "BitFlip",
    "EntityBuilder",
    "EntityLearner",
    "Follower",
    "FollowerRecords",
    "Fragment",
    "Fragments",
    "NotYet",
    "Operation",
    "Outcome",
    "Reader",
    "Record",
    "RecordBatch",
    "Report",
    "Runs",
    "Scan",
    "SkippedRegion",
    "Stat",
    "VersionEdit",
    "WriteBatch",
    "Writer",
    "__version__",
    "batch_crc",
    "crc32c",
    "decode_entity",
    "decode_wandb",
    "detect",
    "fragments",
    "mask_crc",
    "runs",
    "salvage",
    "scan",
    "stat",
    "unmask_crc",
    "verify",
]

NUMBERED_DIALECTS: Final[tuple[DialectName, ...]]
"""The dialects whose logs have a number. They cannot be read in parts."""

__version__: str
"""The version of this package, `"major.minor.patch"`."""

@final
class Record:
    """A record and where it is in the file: what `Reader.records` and `Follower.poll` return.

    A record cannot be changed. Records are equal if their offsets, data and `salvaged` are. The
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
        """File offset of the first fragment's header, in bytes. `Reader.seek` goes there."""
    @property
    def end_offset(self) -> int:
        """File offset after the last fragment's data, in bytes."""
    @property
    def data(self) -> bytes:
        """The bytes that were written."""
    @property
    def salvaged(self) -> bool:
        """Whether it begins after damage in the same block, under the policy `"salvage"`.

        Its checksums are right, but where it begins had to be searched for: a log inside a record's
        data can look like this.
        """
    __match_args__ = ("offset", "end_offset", "data")
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class SkippedRegion:
    """A region of a file that was not returned as a record: the bytes `[offset, end_offset)`, and why.

    `Reader.skipped`, `Follower.skipped` and `Report.skipped` list them. `len(region)` is its
    length in bytes, and `str(region)` a sentence about it. The constructor takes the attributes as
    keywords, but `severity`, which is that of the reason.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> with open("example.log", "r+b") as file:
    ...     _ = file.seek(7), file.write(b"X")
    >>> region = cordwood.verify("example.log").skipped[0]
    >>> region
    SkippedRegion(offset=0, end_offset=20, reason='checksum_mismatch')
    >>> len(region), region.severity.value
    (20, 'corruption')
    """

    def __new__(
        cls,
        *,
        offset: int,
        end_offset: int,
        reason: Reason | str,
        stored_crc: int | None = None,
        computed_crc: int | None = None,
        stated_len: int | None = None,
        type_byte: int | None = None,
        bit_flip: BitFlip | None = None,
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """File offset of the first byte."""
    @property
    def end_offset(self) -> int:
        """File offset after the last byte."""
    @property
    def reason(self) -> Reason:
        """Why these bytes were not returned."""
    @property
    def severity(self) -> Severity:
        """The severity of that: `"info"`, `"torn_tail"` or `"corruption"`."""
    @property
    def stored_crc(self) -> int | None:
        """The CRC-32C that the file states, if the reason is `checksum_mismatch`; else `None`."""
    @property
    def computed_crc(self) -> int | None:
        """The CRC-32C of the data, if the reason is `checksum_mismatch`; else `None`."""
    @property
    def stated_len(self) -> int | None:
        """The length in bytes that the header states, if the reason is `bad_length`; else `None`."""
    @property
    def type_byte(self) -> int | None:
        """The type byte, if the reason is about it; else `None`.

        The reasons are `unknown_kind`, `ignored_kind`, `metadata` and `bad_metadata`.
        """
    @property
    def bit_flip(self) -> BitFlip | None:
        """The one flipped bit that explains the region, if `verify` or `salvage` found it.

        Nothing is repaired.
        """
    __match_args__ = ("offset", "end_offset", "reason")
    def __len__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class BitFlip:
    """The one bit that explains damage: flipped back, it makes the fragment's checksum valid.

    `SkippedRegion.bit_flip` gives it. The constructor takes the attributes as keywords.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> with open("example.log", "r+b") as file:
    ...     _ = file.seek(7), file.write(b"O")
    >>> cordwood.verify("example.log").skipped[0].bit_flip
    BitFlip(offset=7, bit=5, part='payload')
    """

    def __new__(cls, *, offset: int, bit: int, part: FragmentPart | str) -> Self: ...
    @property
    def offset(self) -> int:
        """File offset of the byte."""
    @property
    def bit(self) -> int:
        """Which bit of it: 0 is the lowest, 7 the highest."""
    @property
    def part(self) -> FragmentPart:
        """The part of the fragment to which the byte belongs."""
    __match_args__ = ("offset", "bit", "part")
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Outcome:
    """How reading a log ended, or that it has not: the `outcome` of a reader, follower or report.

    The constructor takes the attributes as keywords.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> cordwood.verify("example.log").outcome
    Outcome(kind='clean', offset=10)
    """

    def __new__(cls, *, kind: OutcomeKind | str, offset: int) -> Self: ...
    @property
    def kind(self) -> OutcomeKind:
        """`"clean"`, `"torn_tail"`, `"stopped"` or `"unfinished"`."""
    @property
    def offset(self) -> int:
        """Where, as a file offset, in bytes.

        The end of the file (or of the range), the beginning of the torn tail, the beginning of the
        damage, or how far reading has come.
        """
    __match_args__ = ("kind", "offset")
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Reader:
    """Reads the records of a log. `cordwood.open(source)` creates one; so does calling the class.

    Iterating gives each record as `bytes`. A torn tail, the incomplete end that a crash leaves,
    ends the iteration without an error; `outcome` says so afterwards. What is not returned is
    listed in `skipped`: every byte of the file is accounted for. A `with` statement closes the
    reader; the end of a loop does not.

    There is one position, that of the reader: a second loop continues where the first was left,
    and so does `next(reader)`, which returns the next record.

    Threads may share a reader; each record goes to one of them. After a fork, both processes
    may read on, each for itself, if the source is a path or memory.

    A path is opened once, and what it named then is read to its end, by threads too: renaming,
    replacing or removing it changes nothing. An exception that a signal handler raises, Ctrl-C
    among them, and `MemoryError` lose no record: the next step returns what comes next.

    Args:
        source: A path (`str` or `os.PathLike`); the content of a file in memory (`bytes` or any
            other buffer, `mmap` among them), never a path: convert a path in `bytes` with `os.fsdecode`; or
            an object with `read(size)` that returns bytes, at whose position the log begins. If the
            file of an `mmap` is cut while it is read, the operating system ends the process
            (`SIGBUS`), as it does with every program that reads a map: pass the path of a file that
            others may cut. What is read in ranges of up to 16 MiB, four of them ahead: a URL, a `str`
            such as `"s3://bucket/name"`, and an `fsspec.OpenFile` or a `UPath`, through fsspec; a
            store of obstore and a path in it, as a tuple; or an object with `size()` and
            `read_range(start, end)`.
        dialect: How the bytes of the log are laid out. `"leveldb"`: also what Datastore,
            Firestore, App Engine, and RocksDB without recycling write; `"rocksdb"`: a write-ahead
            log with all that it may hold; `"pebble"`: the same of Pebble; `"recyclable"`: what
            the two have in common; `"wandb"`: a run file of Weights & Biases; `"wandb_old"`: one
            of wandb-core before 0.17.6; `"swanlab"`: a run file of SwanLab. Default: `None`, or
            `"auto"`: it is detected from what the file begins with.
        log_number: Which log it is, in `"rocksdb"`, `"pebble"` and `"recyclable"`: the number in
            the file's name, its low 32 bits. Fragments with another number are left over from an
            older log; if that is the whole file, the logger `cordwood` gets a warning. Default:
            `None`: the number in the file's name, or else that of the first valid fragment.
        compression: How each record is compressed, in `"rocksdb"`: `"zstd"`. Default: `None`: the
            beginning of the log says so.
        on_corruption: What to do with damage. `"raise"`: raise `CorruptionError`; the next step
            continues after the damage. `"skip"`: continue at the next block, as LevelDB does; the
            logger `cordwood` gets a warning for each of the first ten regions, and the number of
            the others at the end of the log, by `seek` or by `close`. `"stop"`: take it as the end
            of the log. `"salvage"`: like `"skip"`, but keep valid records after the damage in the
            same block; `records()` marks them. Default: `"raise"`.
        start: Return only what begins at or after this file offset, in bytes. Default: 0.
        end: Return only what begins before this file offset, in bytes; the last record may end
            after it. A record belongs to the range in which its first fragment starts, so adjacent
            ranges give each record once. Default: `None`, the end of the file.
        verify_checksums: Check each checksum. Without it, damaged data is returned as if it were
            intact. Default: `True`.
        record_len_max: Refuse a longer record with `RecordTooLargeError`, in bytes. Default: 1 GiB.
            The records of a compressed log may together have 256 MiB plus 200 times the bytes read
            since the reader began or last sought; the one that would exceed that is a
            `RecordTooLargeError` under every policy, and is neither skipped nor consumed. A value
            above the default replaces the 256 MiB.

    Raises:
        OSError: The file cannot be opened. A missing file is a `FileNotFoundError`.
        OverflowError: `log_number` is not a number of 32 bits.
        TypeError: `source` is none of the above, or is a text file.
        ModuleNotFoundError: `source` is a URL, and fsspec or what it needs for this one is not installed.
        ValueError: An option has no such value, or the dialect has no log number or no
            compression; or fsspec does not know the file system of a URL.

    A step of the iteration, over the reader or what `records`, `batches` and `record_batches`
    return, raises:

    * `CorruptionError`: damage, under the policy `"raise"`. The next step continues after it.
    * `RecordTooLargeError`: a record longer than `record_len_max`, under the same policy.
    * `DialectError`: the source is not a log. Only the first step.
    * `OSError`: the source cannot be read.
    * `ClosedError`: the reader is closed.
    * `ValueError`: the detected dialect has no log number or no compression, and one was given.
    * `RuntimeError`: the source's own `read` uses the reader.

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
        start: int = 0,
        end: int | None = None,
        verify_checksums: bool = True,
        record_len_max: int = 1073741824,
    ) -> Self: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __next__(self) -> bytes: ...
    def records(self) -> Iterator[Record]:
        """Iterates over the records with their offsets. It shares its position with the reader.

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
    def batches(self, *, len_max: int = 262144) -> Iterator[list[bytes]]:
        """Iterates over lists of records. It shares its position with the reader.

        Args:
            len_max: The most bytes of records in a list; a longer record comes alone. A list may be
                shorter, and has at most 65,536 records. Default: 256 KiB, which stays in the
                processor's cache.

        Returns:
            An iterator of lists of `bytes`, none of them empty.

        Raises:
            ClosedError: The reader is closed.
            ValueError: `len_max` is negative or has more than 64 bits.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.extend([b"one", b"two"])
        2
        >>> with cordwood.open("example.log") as reader:
        ...     list(reader.batches())
        [[b'one', b'two']]
        """
    def record_batches(self, *, target_len: int = 262144, threads: int = 1) -> Iterator[RecordBatch]:
        """Iterates over record batches: many records in a few buffers, without an object for each.

        The fastest way to read.

        Args:
            target_len: A batch is closed once it holds at least this many bytes; or 65,536 records,
                or one record for each 16 bytes of `target_len` if that is more. It ends earlier
                before damage that has to be reported, and at the end. Default: 256 KiB.
            threads: Read ahead in this many threads, 1 to 256: parts of 1 MiB, or of `target_len` up
                to 16 MiB, of which at most two more than there are threads are held in memory. The records
                and their order are the same. One thread reads an object with `read`, a log with log
                numbers, a file of fewer than two parts for each thread, and anything under the
                policy `"stop"`. Default: 1.

        Returns:
            An iterator of `RecordBatch`, none of them empty.

        Raises:
            ClosedError: The reader is closed.
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
        """The dialect that is read, such as `"leveldb"`.

        To detect it, the source is read.

        Raises:
            DialectError: It is not a log.
            OSError: The source cannot be read.
            ClosedError: The reader is closed.
        """
    @property
    def log_number(self) -> int | None:
        """The number of the log; `None` if the dialect has none or it is not known.

        To detect it, the source is read.

        Raises:
            DialectError: It is not a log.
            OSError: The source cannot be read.
            ClosedError: The reader is closed.
        """
    @property
    def compression(self) -> CompressionName | None:
        """How each record is compressed: `"zstd"`; `None`: not at all.

        To detect it, the source is read.

        Raises:
            DialectError: It is not a log.
            OSError: The source cannot be read.
            ClosedError: The reader is closed.
        """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rest of the log as a stream of Arrow batches: a capsule of the Arrow C stream interface.

        The columns are `offset` and `record`. The stream shares its position with the reader, so only
        one can be read: `cordwood.scan` makes tables that can be read again.

        Args:
            requested_schema: A capsule of an Arrow schema. If its column `record` is `binary`, that
                is what the stream has; nothing else of it is regarded. Default: `None`.

        Returns:
            The capsule.

        Raises:
            ClosedError: The reader is closed.
            RuntimeError: A stream of this reader has begun to be read.
        """

    def tell(self) -> int:
        """The file offset after what has been returned or skipped so far: `seek` continues from there.

        A torn tail is not skipped: once it is complete, it can be read from there.

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
        """Moves to a file offset: `Record.offset`, `Record.end_offset` or what `tell` returned.

        At any other offset, what is found is reported as damage. `skipped` and `outcome` are reset,
        and the range's `start` is now here.

        Args:
            offset: The file offset, in bytes.

        Raises:
            io.UnsupportedOperation: The source cannot seek.
            OSError: Seeking failed.
            ClosedError: The reader is closed.
            ValueError: `offset` is negative or has more than 64 bits.

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
        """What was not returned so far, in the order of the offsets: the first 100,000 regions.

        Adjacent regions are one, if the reason with all its details is the same.

        It, `skipped_len` and `outcome` can still be read when the reader is closed.
        """
    @property
    def ok(self) -> bool:
        """Whether no damage was found so far.

        Damage is a region of severity `"corruption"`: torn tails do not count.
        An `outcome` of `"clean"` does not say that: it is about the end of the file.
        """

    @property
    def skipped_len(self) -> int:
        """Bytes in all regions that were not returned so far, listed or not."""
    @property
    def outcome(self) -> Outcome:
        """How reading ended; `"unfinished"` while it has not."""
    @property
    def path(self) -> str | None:
        """The path, if the source is one; else `None`."""
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
    """Consecutive records in one buffer, and where each begins in another.

    The layout is that of Arrow's `LargeBinary`: `pyarrow.record_batch(batch)` copies nothing.

    `Reader.record_batches` makes them. The buffers are shared, not copied; they are read-only, and
    stay as they are for as long as anything refers to them.

    `len(batch)` is the number of records. `batch[i]` copies one record to `bytes`, and raises
    `IndexError` if there is none; a slice gives a list, and iterating gives all.

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
        """Where each record begins in `data`, and then where the last one ends.

        One more than there are records; 64-bit signed integers in native byte order (format `"q"`).
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
            requested_schema: A capsule of an Arrow schema. If its column `record` is `binary`, and
                the batch has less than 2 GiB, that is its type; nothing else of it is regarded.
                Default: `None`: `large_binary`.

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
    @overload
    def __getitem__(self, index: int, /) -> bytes: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[bytes]: ...

@final
class NotYet:
    """There is no record yet: where, and why. The value of `Follower.waiting`.

    It distinguishes a writer that is idle from one that is stuck. The constructor takes the
    attributes as keywords, but `pending_len`, which follows from the others.

    >>> with cordwood.open("live.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> with cordwood.follow("live.log", timeout=0) as follower:
    ...     list(follower), follower.waiting
    ([b'one'], NotYet(reason='idle', offset=10, file_len=10))
    """

    def __new__(cls, *, reason: WaitReason | str, offset: int, file_len: int) -> Self: ...
    @property
    def reason(self) -> WaitReason:
        """What the follower is waiting for."""
    @property
    def offset(self) -> int:
        """The file offset after what has been returned or skipped."""
    @property
    def file_len(self) -> int:
        """The length of the file, in bytes."""
    @property
    def pending_len(self) -> int:
        """Bytes of the file after `offset`. Zeros that a writer has preallocated are among them."""
    __match_args__ = ("reason", "offset", "file_len")
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Follower:
    """Follows a log that is being written. `cordwood.follow` makes one.

    Iterating returns each record as `bytes` once it is complete, and waits for the next: `for` in
    this thread, where Ctrl-C works and other threads run on, `async for` in the event loop. The
    iteration ends after `timeout` seconds without a record, and a new one continues. It waits at
    incomplete records, and at the zeros of a preallocated file. A `with` statement closes the
    follower; the end of a loop does not. `next(follower)` is a step of the iteration.

    Threads may share a follower, also while one of them waits; if one closes it, the one that
    waits gets a `ClosedError`. After a fork, both processes may follow on, each for itself.

    Args:
        path: The file. It must exist; it may be empty.
        start: Return only what begins at or after this file offset, in bytes: `tell` of an
            earlier run. Default: 0.
        timeout: A step of the iteration waits at most this long for a record, in seconds. 0
            takes what is there and never waits. Default: `None`, forever.
        dialect: As for `Reader`; it is detected as soon as there is a file header or a complete
            fragment. Default: `None`.
        log_number: As for `Reader`. Default: `None`.
        compression: As for `Reader`. Default: `None`.
        on_corruption: As for `Reader`; not `"salvage"`. Default: `"raise"`.
        on_rotation: What to do once the path names another file, or none, and all of the old one
            has been returned. `"raise"`: raise `LogRotatedError`. `"reopen"`: wait until there is a
            file under the path, and continue at its beginning; `tell`, `skipped` and `outcome` are
            then about that one. `"stop"`: the iteration ends for good, as `outcome` says. The
            logger `cordwood` gets a warning if the old file ended in an incomplete record, under
            the last two. Default: `"raise"`.
        poll_interval: How long to sleep between polls of the file, in seconds. Default: 0.05.
        retry_polls: What looks damaged, with no valid block after it, is read again this many
            times before it is reported. Default: 3.
        retry_time: What looks damaged is also read again for at least this long, in seconds. Default: 0.1.
        record_len_max: As for `Reader`, in bytes. Default: 1 GiB.

    Raises:
        OSError: The file cannot be opened, or is not a regular file.
        TypeError: `path` is not a path.
        ValueError: An option has no such value.

    A step of the iteration, and `poll`, raise:

    * `CorruptionError`, `RecordTooLargeError`: damage, under the policy `"raise"`. The next
      step continues after it.
    * `DialectError`: the file is not a log.
    * `LogTruncatedError`: the file is shorter than what has been read of it. Every further step
      raises it again.
    * `LogRotatedError`: the path names another file or none, and all of the old one has been
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
        start: int = 0,
        timeout: float | None = None,
        dialect: DialectName | Literal["auto"] | None = None,
        log_number: int | None = None,
        compression: CompressionName | None = None,
        on_corruption: Literal["raise", "skip", "stop"] = "raise",
        on_rotation: Literal["raise", "reopen", "stop"] = "raise",
        poll_interval: float = 0.05,
        retry_polls: int = 3,
        retry_time: float = 0.1,
        record_len_max: int = 1073741824,
    ) -> Self: ...
    def __iter__(self) -> Iterator[bytes]: ...
    def __next__(self) -> bytes: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    def records(self) -> FollowerRecords:
        """Iterates over the records with their offsets, also with `async for`.

        It shares the follower's position.

        Returns:
            An iterator of `Record`, and an asynchronous one.

        Raises:
            ClosedError: The follower is closed.

        >>> with cordwood.open("live.log", "w") as writer:
        ...     _ = writer.append(b"one")
        >>> with cordwood.follow("live.log", timeout=0) as follower:
        ...     [record.end_offset for record in follower.records()]
        [10]
        """
    def poll(self) -> Record | None:
        """Returns the next record if there is one. It never waits.

        Returns:
            The record, or `None`: `waiting` then says why, and `outcome` whether there will be
            more.

        Raises:
            CordwoodError: As a step of the iteration: damage, or a change of the file.
            OSError: The file cannot be read.
            ClosedError: The follower is closed.

        >>> with cordwood.open("live.log", "w") as writer:
        ...     _ = writer.append(b"one")
        >>> with cordwood.follow("live.log") as follower:
        ...     follower.poll(), follower.poll()
        (Record(offset=0, end_offset=10, data=b'one'), None)
        """
    def tell(self) -> int:
        """The file offset after what has been returned or skipped so far.

        With this offset as its `start`, a new follower continues from there.

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
    @property
    def waiting(self) -> NotYet | None:
        """Where and why the last step or `poll` found no record; `None` if it found one, or raised."""
    @property
    def delay(self) -> float:
        """Seconds to wait before the next `poll`, in a loop of your own.

        It is `poll_interval`, or less while what looks damaged is read again.
        """
    @property
    def timeout(self) -> float | None:
        """How long a step waits at most, in seconds; `None` means forever."""
    @property
    def skipped(self) -> tuple[SkippedRegion, ...]:
        """What was not returned so far, in the order of the offsets: the first 100,000 regions.

        Adjacent regions are one, if the reason with all its details is the same.
        """
    @property
    def ok(self) -> bool:
        """Whether no damage was found so far.

        Damage is a region of severity `"corruption"`: torn tails do not count.
        """

    @property
    def skipped_len(self) -> int:
        """Bytes in all regions that were not returned so far, listed or not."""
    @property
    def outcome(self) -> Outcome:
        """`"stopped"` where damage ended the log under the policy `"stop"`; else `"unfinished"`.

        Under `on_rotation="stop"`, once the file was rotated: `"clean"`, or `"torn_tail"` if it
        ends with bytes that are not a complete record.
        """
    @property
    def dialect(self) -> DialectName:
        """The dialect of the log; `"leveldb"` until the file has shown another one."""
    @property
    def log_number(self) -> int | None:
        """The number of the log; `None` if the dialect has none or it is not known yet."""
    @property
    def compression(self) -> CompressionName | None:
        """How each record is compressed: `"zstd"`; `None`: not at all, or it is not known yet."""
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

@final
class FollowerRecords:
    """What `Follower.records` returns: an iterator of `Record`, also for `async for`."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...
    def __aiter__(self) -> AsyncIterator[Record]: ...

@final
class Writer:
    """Writes records to a log, byte for byte as LevelDB does.

    `cordwood.open(sink, "w")` creates one; so does calling the class.

    By default, a record for which `append` has returned survives if this process crashes or is
    killed; what has been synced survives a crash of the machine. A `with` statement closes the
    writer.

    Threads may share a writer; each record is written whole. A file is locked against a second
    writer until it is closed, in this process and in others that ask (all that use cordwood
    do). A writer belongs to the process that opened it: in a forked child, `append`, `extend`,
    `flush` and `sync` raise `OSError`, and closing or dropping it changes nothing.

    A write to a file that fails is undone: the file is truncated to the end of its last complete
    record, and the writer stays usable. If it cannot be undone, or if a sync has failed, every
    later call fails: what is on the disk after `durable_offset` is not known, and a second sync
    would not reveal it. Close the log and open it again with `"a"`, in this process: that rewrites
    the uncertain part. An object with `write` is not used again after it has failed.

    An unclosed writer writes its buffer when it is dropped or its cycle is collected, and warns
    (`ResourceWarning`); a failure then is shown (`sys.unraisablehook`), and an exception that is
    already being raised is kept.

    Args:
        sink: A path (`str` or `os.PathLike`), or an object with `write(data)`, at whose
            position the log begins. `data` is a read-only `memoryview`; it may be kept, and then
            never changes.
        mode: `"x"`: a new file; fails if the file exists. `"w"`: a new file, replacing an existing
            one. `"a"`: append to the file, or create it. An object takes `"x"` or `"w"`, which are
            then the same. Default: `"x"`.
        dialect: How the bytes are laid out, as for `Reader`. For Pebble, closing also writes the
            end-of-log trailer. Default: `None`: for `"a"` the dialect of the file, as a `Reader`
            detects it; for a new file `"leveldb"`.
        log_number: Which log it is, in `"rocksdb"`, `"pebble"` and `"recyclable"`: it goes into
            each fragment. Such a log is never appended to. Default: `None`: the fragments have no
            number and are those of `"leveldb"`, also if the file's name has a number.
        compression: How each record is compressed, in `"rocksdb"`: `"zstd"`. Such a log is never
            appended to. Default: `None`, not at all.
        flush: For a path: when to write records to the operating system, which keeps them if this
            process ends. `"append"`: before each `append` returns, with one write; an `extend`
            makes one for each 1,024 records or 128 KiB. `"close"`: records are buffered, up to 256
            KiB, until `flush`, `sync` or `close`. An object is written to as with `"close"`, and
            takes no `flush`. Default: `None`, which is `"append"`.
        sync: When to wait until records are on the disk, besides `sync()` and `append(...,
            sync=True)`. `"never"`: not at all; `"close"`: when the writer is closed;
            `"append"`: before each `append` returns. Every setting but `"never"` also syncs on
            close, and so do the next two. Default: `"never"`.
        sync_len: Instead of `sync`: sync within the `append` with which this many bytes have
            been appended since the last sync. Default: `None`.
        sync_interval: Instead of `sync`: sync within the first `append` that comes this many
            seconds after the last sync, or later. While nothing is appended, nothing is synced:
            no thread runs in the background. Default: `None`.
        on_torn_tail: For `"a"`, if the file does not end with a complete record. `"refuse"`: raise.
            `"truncate"`: cut off what a crash can have left after the last complete record; damage
            raises, and so does what one flipped bit explains, or a file without any valid fragment.
            `"pad"`: keep every byte, damaged or not, and continue in the next block; readers keep
            reporting the skipped bytes. Default: `"refuse"`.
        checkpoint: For `"a"`: a file offset at which a record begins or ends and before which
            everything is known to be on the disk, such as an earlier `durable_offset`. The file is
            read from there on to find its end, and what follows is rewritten, so that the next sync
            covers it. Default: `None`, the beginning, and nothing is rewritten unless a sync of
            this file has failed in this process.
        preallocate_len: Ask the file system for space this many bytes at a time (Linux only,
            elsewhere without effect). The length of the file stays that of its records. Default: 0,
            not at all.
        record_len_max: Refuse to write a longer record, with `RecordTooLargeError`, in bytes.
            Default: 1 GiB, as for `Reader`: what is longer can be read only with the option of the
            same name.

    Raises:
        OSError: The file cannot be opened. For `"x"` an existing file is a `FileExistsError`.
        BlockingIOError: Another writer has the file open.
        TornTailError: For `"a"`, the file ends in an incomplete record or in zeros, and
            `on_torn_tail` is `"refuse"`.
        CorruptionError: For `"a"`, the file is damaged, and `on_torn_tail` is not `"pad"`.
        DialectError: For `"a"`, the file is not in the given dialect, or is not a log; or it is of
            a kind that is never appended to: a log with a log number, or a compressed one.
        OverflowError: `log_number` is not a number of 32 bits.
        TypeError: `sink` is not a path and has no `write`, or is a text file.
        ValueError: An option has no such value, or makes no sense here, such as a log number or a
            compression that the dialect does not have.

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
        sync_len: int | None = None,
        sync_interval: float | None = None,
        on_torn_tail: Literal["refuse", "truncate", "pad"] = "refuse",
        checkpoint: int | None = None,
        preallocate_len: int = 0,
        record_len_max: int = 1073741824,
    ) -> Self: ...
    def append(self, record: ReadableBuffer, /, *, sync: bool = False) -> int:
        """Appends a record.

        Args:
            record: `bytes` or any other buffer.
            sync: Return once it and everything before it are on the disk. Threads that wait for
                this share one sync. Default: `False`.

        Returns:
            The file offset of its first fragment's header, in bytes.

        Raises:
            OSError: A write or a sync failed. The message says what is on the disk and whether the
                writer can still be used. The record is not in the log if the write was undone; if
                only the sync failed, it may be.
            TypeError: `record` is not bytes-like.
            ClosedError: The writer is closed.
            RecordTooLargeError: The record is longer than `record_len_max`. It is not in the log.
            MemoryError: There is no memory for the record, and it is not in the log. Or only the
                offset that is returned cannot be allocated: then the record is in the log, and
                `tell()` is after it.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     writer.append(b"one"), writer.append(b"two", sync=True)
        (0, 10)
        """
    def extend(self, records: Iterable[ReadableBuffer], /) -> int:
        """Appends all records of an iterable. If it raises, those before are in the log.

        Args:
            records: An iterable of `bytes` or other buffers.

        Returns:
            How many records there were.

        Raises:
            OSError: As for `append`.
            TypeError: A record is not bytes-like, or `records` is one record, or a text.
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

        They then survive the end of this process, not a crash of the machine.

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
            OSError: They may not be, and never will be: a failed sync cannot be repeated, so the
                writer stays unusable.
            io.UnsupportedOperation: The sink has no file descriptor.
            ClosedError: The writer is closed.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     _ = writer.append(b"one")
        ...     writer.sync()
        ...     writer.durable_offset
        10
        """
    @property
    def durable_offset(self) -> int:
        """Everything before this file offset is on the disk, and survives a crash of the machine.

        0 before the first sync of this writer. It can still be read when the writer is closed.
        """
    @property
    def discarded_tail(self) -> SkippedRegion | None:
        """What followed the last complete record when the log was opened with `"a"`; else `None`.

        It has been cut off or kept, as `on_torn_tail` says.
        """
    @property
    def dialect(self) -> DialectName:
        """The dialect that is written, such as `"leveldb"`."""
    @property
    def log_number(self) -> int | None:
        """The number of the log, which each fragment carries; `None` if none does."""
    @property
    def compression(self) -> CompressionName | None:
        """How each record is compressed: `"zstd"`; `None`: not at all."""
    @property
    def path(self) -> str | None:
        """The path, if the sink is one; else `None`."""
    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
    def close(self) -> None:
        """Flushes, syncs if `sync` says so, and closes the file. Closing twice is allowed.

        If other threads wait for a sync, it waits until that is done. Then another writer may open
        the file. In a forked child it only closes the child's copy of the descriptor.

        An object that was passed in is only flushed.

        Raises:
            OSError: A write or a sync failed. The writer is closed all the same.

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
class Report:
    """What is in a log, and what is wrong with it: what `verify` and `salvage` return.

    The constructor takes the attributes as keywords, without those that follow from the others:
    `ok`, `skipped_len` and `len_by_severity`. Two reports are equal if everything but the paths is.
    A notebook shows a table.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> cordwood.verify("example.log")
    <cordwood.Report: ok=True, record_count=2, skipped=0, outcome=Outcome(kind='clean', offset=20)>
    """

    def __new__(
        cls,
        *,
        dialect: DialectName,
        record_count: int,
        payload_len: int,
        file_len: int | None,
        outcome: Outcome,
        log_number: int | None = None,
        compression: CompressionName | None = None,
        salvaged_count: int = 0,
        skipped: Iterable[SkippedRegion] | None = None,
        len_by_reason: dict[Reason, int] | dict[str, int] | None = None,
        other_log_number: int | None = None,
        not_kept: Iterable[str] | None = None,
        path: str | PathLike[str] | None = None,
    ) -> Self: ...
    @property
    def dialect(self) -> DialectName:
        """The dialect of the log, such as `"leveldb"`."""
    @property
    def log_number(self) -> int | None:
        """The number of the log; `None` if the dialect has none or it is not known."""
    @property
    def compression(self) -> CompressionName | None:
        """How each record is compressed: `"zstd"`; `None`: not at all."""
    @property
    def ok(self) -> bool:
        """Whether no damage was found: no region of severity `"corruption"`. Torn tails do not count."""
    @property
    def record_count(self) -> int:
        """Records that were returned."""
    @property
    def salvaged_count(self) -> int:
        """How many of these begin after damage in the same block: only under the policy `"salvage"`."""
    @property
    def payload_len(self) -> int:
        """Bytes of data in the records, without headers and trailers."""
    @property
    def file_len(self) -> int | None:
        """The length of the whole file, including what is not in the range.

        `None` if it is not known: for an object with `read` that was not read to its end.
        """
    @property
    def skipped(self) -> tuple[SkippedRegion, ...]:
        """What was not returned, in the order of the offsets: the first 100,000 regions.

        Each has its `bit_flip`, if one flipped bit explains it.

        Adjacent regions are one, if the reason with all its details is the same and no flipped bit
        explains either.
        """
    @property
    def skipped_len(self) -> int:
        """Bytes in all regions, listed or not."""
    @property
    def len_by_severity(self) -> dict[Severity, int]:
        """Bytes in the regions of each severity that occurs."""
    @property
    def len_by_reason(self) -> dict[Reason, int]:
        """Bytes in the regions with each reason that occurs."""
    @property
    def outcome(self) -> Outcome:
        """How reading ended."""
    @property
    def other_log_number(self) -> int | None:
        """The number of another log, if the whole file belongs to it; else `None`.

        The file's name, or `log_number`, has this log's number: the file was recycled and nothing
        has been written to this log yet, or it was renamed or copied.
        """
    @property
    def not_kept(self) -> tuple[str, ...]:
        """What `salvage` could not keep in the new log; empty after `verify`.

        `"synced_offsets"`: how far the file had been synced, as some records of Pebble state.
        `"bad_metadata"` and `"ignored_kinds"`: metadata that no engine writes like this, or of an
        unknown type. `"compression"`: this build does not compress.
        """
    @property
    def path(self) -> str | None:
        """The path, if the source was one; else `None`."""
    def _repr_html_(self) -> str:
        """What a notebook shows: a table, in HTML."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Stat:
    """What is in a log, in numbers: what `stat` returns.

    `stored_len`, `header_len`, `trailer_len` and `skipped_len` add up to `file_len`. The
    constructor takes the attributes as keywords, without `record_len_mean` and `block_count`, which
    follow from the others. Two are equal if everything but the paths is. A notebook shows a table.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> stat = cordwood.stat("example.log")
    >>> stat
    <cordwood.Stat: record_count=2, payload_len=6, outcome=Outcome(kind='clean', offset=20)>
    >>> stat.stored_len, stat.header_len, stat.file_len
    (6, 14, 20)
    """

    def __new__(
        cls,
        *,
        dialect: DialectName,
        record_count: int,
        payload_len: int,
        file_len: int | None,
        outcome: Outcome,
        log_number: int | None = None,
        compression: CompressionName | None = None,
        stored_len: int = 0,
        header_len: int = 0,
        record_len_min: int | None = None,
        record_len_max: int | None = None,
        full_count: int = 0,
        first_count: int = 0,
        middle_count: int = 0,
        last_count: int = 0,
        trailer_len: int = 0,
        skipped_len: int = 0,
        damaged_len: int = 0,
        other_log_number: int | None = None,
        path: str | PathLike[str] | None = None,
    ) -> Self: ...
    @property
    def dialect(self) -> DialectName:
        """The dialect of the log, such as `"leveldb"`."""
    @property
    def log_number(self) -> int | None:
        """The number of the log; `None` if the dialect has none or it is not known."""
    @property
    def compression(self) -> CompressionName | None:
        """How each record is compressed: `"zstd"`; `None`: not at all."""
    @property
    def record_count(self) -> int:
        """Records that were returned."""
    @property
    def payload_len(self) -> int:
        """Bytes of data in the records."""
    @property
    def stored_len(self) -> int:
        """Bytes of data as they are stored: fewer than `payload_len` in a compressed log."""
    @property
    def header_len(self) -> int:
        """Bytes of the headers of the records' fragments."""
    @property
    def record_len_min(self) -> int | None:
        """Bytes of the shortest record; `None` if there is none."""
    @property
    def record_len_max(self) -> int | None:
        """Bytes of the longest record; `None` if there is none."""
    @property
    def record_len_mean(self) -> float | None:
        """Mean length of a record in bytes; `None` if there is none."""
    @property
    def full_count(self) -> int:
        """FULL fragments of the records: records in one piece."""
    @property
    def first_count(self) -> int:
        """FIRST fragments of the records."""
    @property
    def middle_count(self) -> int:
        """MIDDLE fragments of the records."""
    @property
    def last_count(self) -> int:
        """LAST fragments of the records."""
    @property
    def block_count(self) -> int | None:
        """Blocks of 32 KiB in the file, including a partial last one; `None` if `file_len` is."""
    @property
    def trailer_len(self) -> int:
        """Bytes of trailers: at the ends of blocks, too few for a header."""
    @property
    def skipped_len(self) -> int:
        """Bytes that were not returned, for whatever reason: `verify` says which."""
    @property
    def damaged_len(self) -> int:
        """Bytes of these in regions of `Severity.CORRUPTION`."""
    @property
    def file_len(self) -> int | None:
        """The length of the file in bytes; `None` if it is not known."""
    @property
    def outcome(self) -> Outcome:
        """How reading ended."""
    @property
    def other_log_number(self) -> int | None:
        """The number of another log, if the whole file belongs to it; else `None`.

        The file's name, or `log_number`, has this log's number: the file was recycled and nothing
        has been written to this log yet, or it was renamed or copied.
        """
    @property
    def path(self) -> str | None:
        """The path, if the source was one; else `None`."""
    def _repr_html_(self) -> str:
        """What a notebook shows: a table, in HTML."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class WriteBatch:
    """The record of a write-ahead log of LevelDB, RocksDB or Pebble: operations that are one unit.

    Iterating gives the operations, in order. They are decoded one by one: a batch that is
    damaged gives those before the damage, then raises `PayloadError`, as it does if the header
    states another count. `len(batch)` decodes all and raises the same; `bool(batch)` says
    whether there are any; `bytes(batch)` is the record. What can be read can be written:
    `bytes` of what `build` makes of the operations is the record.

    Args:
        record: The record. Only its header is decoded yet.
        engine: `"rocksdb"`, of which LevelDB knows the first two tags, or `"pebble"`. Five tags
            have one meaning in RocksDB and another in Pebble. Default: `"rocksdb"`.

    Raises:
        PayloadError: The record is shorter than the header of a batch.
        TypeError: `record` is not bytes-like.
        ValueError: There is no such engine.

    >>> from cordwood.payload import Operation, WriteBatch
    >>> operations = [Operation("put", key=b"k", value=b"v"), Operation("delete", key=b"old")]
    >>> batch = WriteBatch.build(100, operations)
    >>> bytes(batch).hex(" ", -4)
    '64000000 00000000 02000000 01016b01 7600036f 6c64'
    >>> for operation in WriteBatch(bytes(batch)):
    ...     print(operation.sequence, operation)
    100 Operation('put', key=b'k', value=b'v')
    101 Operation('delete', key=b'old')
    """

    def __new__(cls, record: ReadableBuffer, *, engine: Literal["rocksdb", "pebble"] = "rocksdb") -> Self: ...
    @staticmethod
    def build(
        sequence: int, operations: Iterable[Operation], *, engine: Literal["rocksdb", "pebble"] = "rocksdb"
    ) -> WriteBatch:
        """Makes a batch of operations. The count in its header is that of the operations that count.

        Args:
            sequence: The sequence number of the first operation.
            operations: The operations, in order. Their own sequence numbers are ignored.
            engine: As for the class.

        Returns:
            The batch.

        Raises:
            PayloadError: The engine does not know one of the operations, or something is too large.
            TypeError: Something in `operations` is not an `Operation`.
            ValueError: There is no such engine.
            OverflowError: `sequence` is not a number of 64 bits.

        >>> from cordwood.payload import Operation, WriteBatch
        >>> WriteBatch.build(7, [Operation("put", key=b"k", value=b"v")])
        <cordwood.payload.WriteBatch: sequence=7, count=1>
        """
    @property
    def sequence(self) -> int:
        """The sequence number of the first operation."""
    @property
    def count(self) -> int:
        """How many operations the header states. Log data and the marks of transactions do not count."""
    @property
    def engine(self) -> Literal["rocksdb", "pebble"]:
        """`"rocksdb"` or `"pebble"`."""
    def to_dict(self) -> dict[str, object]:
        """The batch in the form that JSON can hold.

        Bytes become text if they are UTF-8, and `{"base64": "..."}` if they are not.

        Returns:
            `sequence`, `count`, and `operations` with the attributes that each has.

        Raises:
            PayloadError: The batch is damaged.

        >>> from cordwood.payload import Operation, WriteBatch
        >>> WriteBatch.build(7, [Operation("delete", key=b"k")]).to_dict()["operations"]
        [{'kind': 'delete', 'sequence': 7, 'column_family': 0, 'key': 'k'}]
        """
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __iter__(self) -> Iterator[Operation]: ...
    def __bytes__(self) -> bytes:
        """The record."""
    def __getnewargs_ex__(self) -> tuple[tuple[bytes], dict[str, str]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Operation:
    """An operation of a `WriteBatch`.

    Iterating over one gives them; the class makes those for `WriteBatch.build`.

    An attribute is `None` if operations of this kind do not have it. Two operations are equal if
    everything but the sequence numbers is. One that was read from a record keeps that record in
    memory.

    Args:
        kind: An `OperationKind`, or its name. It decides which others must be given: all that it
            has.
        column_family: The number of the column family. Default: 0, the default one.
        key: The key; of a range, the first one.
        end_key: The key after the last one of a range.
        value: The value; of log data, the data.
        xid: The name of a transaction.
        timestamp: The timestamp of a commit.
        write_unix_time: When the value was written, in seconds since 1970.
        sequence: The sequence number, as that of one that was read. `WriteBatch.build` ignores it.

    Raises:
        TypeError: An attribute that this kind has is missing, or one that it does not have is
            given.
        ValueError: There is no such kind.
        OverflowError: A number is negative, or has too many bits.
        PayloadError: Something is too large.

    >>> from cordwood.payload import Operation
    >>> operation = Operation("delete_range", key=b"a", end_key=b"c", column_family=3)
    >>> operation.column_family, operation.key, operation.end_key, operation.value
    (3, b'a', b'c', None)
    """

    def __new__(
        cls,
        kind: str,
        *,
        column_family: int | None = None,
        key: ReadableBuffer | None = None,
        end_key: ReadableBuffer | None = None,
        value: ReadableBuffer | None = None,
        xid: ReadableBuffer | None = None,
        timestamp: ReadableBuffer | None = None,
        write_unix_time: int | None = None,
        sequence: int | None = None,
    ) -> Self: ...
    @property
    def kind(self) -> OperationKind:
        """What it does: an `OperationKind`."""
    @property
    def sequence(self) -> int | None:
        """The sequence number: the batch's, plus one for each operation before it that counts.

        `None` if it does not count, or was not read from a batch. RocksDB's write policies
        WritePrepared and WriteUnprepared give one number to all operations of a batch; the record
        does not say so.
        """
    @property
    def column_family(self) -> int | None:
        """The number of the column family, 0 for the default one."""
    @property
    def key(self) -> bytes | None:
        """The key; of a range, the first one."""
    @property
    def end_key(self) -> bytes | None:
        """The key after the last one of a range."""
    @property
    def value(self) -> bytes | None:
        """The value; of log data, the data. What the engine wraps in it is not unwrapped."""
    @property
    def xid(self) -> bytes | None:
        """The name of a transaction."""
    @property
    def timestamp(self) -> bytes | None:
        """The timestamp of a commit."""
    @property
    def write_unix_time(self) -> int | None:
        """When the value was written, in seconds since 1970."""
    def attributes(self) -> dict[str, str | int | bytes]:
        """All its attributes, by name: faster than reading them one by one.

        Returns:
            The attributes that are not `None`; `kind` as `str`.

        >>> from cordwood.payload import Operation
        >>> Operation("put", key=b"k", value=b"v").attributes()
        {'kind': 'put', 'column_family': 0, 'key': b'k', 'value': b'v'}
        """
    __match_args__ = ("kind",)
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class VersionEdit:
    r"""The record of a MANIFEST of LevelDB or RocksDB: what changes in one version of the database.

    Iterating gives the same as `fields`, one at a time: as objects, the fields of a long record
    take many times its bytes. `bytes(edit)` encodes the fields again, which gives the record,
    byte for byte.

    Args:
        record: The record. All of it is decoded.

    Raises:
        PayloadError: The record is not a version edit. Tags that only Pebble knows are unknown
            here.
        TypeError: `record` is not bytes-like.

    >>> from cordwood.payload import VersionEdit
    >>> edit = VersionEdit(b"\x01\x1aleveldb.BytewiseComparator\x02\x04\x06\x01\x05")
    >>> for kind, tag, value in edit.fields:
    ...     print(kind, tag, value)
    comparator 1 b'leveldb.BytewiseComparator'
    log_number 2 4
    deleted_file 6 DeletedFile(level=1, file_number=5)
    """

    def __new__(cls, record: ReadableBuffer) -> Self: ...
    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields, in the order of the record. They are made at the first use, and kept."""
    def __iter__(self) -> Iterator[Field]: ...
    def to_dict(self) -> dict[str, object]:
        r"""The edit in the form that JSON can hold.

        Bytes become text if they are UTF-8, and `{"base64": "..."}` if they are not; `None` is left
        out.

        Returns:
            `fields`, each with `kind`, `tag` and `value`.

        >>> from cordwood.payload import VersionEdit
        >>> VersionEdit(b"\x02\x04").to_dict()
        {'fields': [{'kind': 'log_number', 'tag': 2, 'value': 4}]}
        """
    def __bytes__(self) -> bytes:
        """The fields, encoded again: the record, byte for byte."""
    def __getnewargs__(self) -> tuple[bytes]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def verify(
    source: Source,
    *,
    threads: int = 1,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    on_corruption: Literal["skip", "stop", "salvage"] = "skip",
    start: int = 0,
    end: int | None = None,
    verify_checksums: bool = True,
    record_len_max: int = 1073741824,
    progress: Callable[[int], object] | None = None,
) -> Report:
    """Reads a log to its end, and reports what is in it and what is wrong with it.

    Damage is not an error here.

    Args:
        source: What `Reader` takes.
        threads: Read it in this many threads, 1 to 256. The report is the same for any number. One
            thread reads an object with `read`, a log with log numbers, a file of less than 4 MiB
            for each thread, and anything under the policy `"stop"`. Default: 1.
        dialect: As for `Reader`. Default: `None`.
        log_number: As for `Reader`. Default: `None`.
        compression: As for `Reader`. Default: `None`.
        on_corruption: Continue after damage at the next block (`"skip"`), end there (`"stop"`),
            or search for valid records in the same block (`"salvage"`). Default: `"skip"`.
        start: As for `Reader`: a file offset in bytes. Default: 0.
        end: As for `Reader`: a file offset in bytes. Default: `None`.
        verify_checksums: As for `Reader`. Default: `True`.
        record_len_max: As for `Reader`, in bytes. Default: 1 GiB.
        progress: Called with the number of bytes of each read, up to a few MiB, by the thread
            that has read them. If it raises, so does this function. Default: `None`.

    Returns:
        The report. `ok` says whether there is no damage.

    Raises:
        DialectError: It is not a log.
        OSError: The source cannot be opened or read.
        TypeError: `source` is nothing that `Reader` takes.
        ValueError: An option has no such value.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> report = cordwood.verify("example.log")
    >>> report.ok, report.record_count, report.payload_len, report.file_len
    (True, 2, 6, 20)
    """

def salvage(
    source: Source,
    destination: str | PathLike[str],
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    record_len_max: int = 1073741824,
    progress: Callable[[int], object] | None = None,
) -> Report:
    """Reads a log under the policy `"salvage"`, and writes all its records to a new log.

    The source is not changed. The new log is written in the folder of `destination` under a
    temporary name, synced, and renamed last: a file with the final name is complete. If anything
    fails, what was written is removed.

    Args:
        source: What `Reader` takes.
        destination: The path of the new log. It must not exist. It has the dialect, the log number
            and the engine's metadata of the source. RocksDB and Pebble look for the number of a log
            in the name of its file.
        dialect: As for `Reader`. Default: `None`.
        log_number: As for `Reader`. Default: `None`.
        compression: As for `Reader`. Default: `None`.
        record_len_max: As for `Reader`, in bytes. Default: 1 GiB.
        progress: As for `verify`. Default: `None`.

    Returns:
        The report about `source`.

    Raises:
        DialectError: `source` is not a log.
        FileExistsError: There is already a file at `destination`. It is not changed.
        OSError: The source cannot be opened or read, the new log cannot be written, or the number
            in the name of `destination` is not the one that the records carry.
        OtherLogError: All of `source` belongs to another log than its name or `log_number` says.
            Nothing is written.
        TypeError: `source` is nothing that `Reader` takes, or `destination` is not a path.
        ValueError: There is no such dialect.

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
    """

@final
class Scan:
    """The records of logs as a table, for everything that reads Arrow: what `scan` returns.

    pyarrow, polars, DuckDB, pandas, DataFusion and others take it as it is, by its
    `__arrow_c_stream__`. Each reading opens the sources again, so it can be read any number of
    times; making it opens nothing.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a stream of Arrow batches: a capsule of the Arrow C stream interface.

        Args:
            requested_schema: A capsule of an Arrow schema. If its column `record` is `binary`, that
                is what the stream has; nothing else of it is regarded. Default: `None`.

        Returns:
            The capsule, which reads the sources from their beginning.
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
        """What was not returned: a tuple of `SkippedRegion` for each source, in their order.

        Of the reading that began last, as far as it has come; empty if none has begun. Of each
        source, the first 100,000 regions are listed.
        """

    @property
    def ok(self) -> bool:
        """Whether no damage was found: no region of severity `"corruption"` in any source.

        Of the reading that began last, as far as it has come.
        """

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """How reading each source has ended: an `Outcome` for each, in their order.

        Of the reading that began last; `"unfinished"` for a source of which it has not reached the
        end. Empty if none has begun.
        """

@overload
def scan(
    sources: Source | Iterable[Source],
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
) -> Scan: ...
@overload
def scan(
    sources: Source | Iterable[Source],
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
) -> DecodedScan: ...
@overload
def scan(
    sources: Source | Iterable[Source],
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
) -> Scan | DecodedScan:
    """The records of one log or many as a table, for everything that reads Arrow.

    Pass it to `pyarrow.table`, `polars.DataFrame`, `pandas.DataFrame.from_arrow`, DuckDB, DataFusion
    and others. Each reads the sources again, in batches of about 256 KiB, of which one is in memory at
    a time unless the reader keeps them. Nothing is opened before.

    What goes wrong is raised by the one that reads, as an exception of its own, with our message.
    After an error, a stream returns nothing more.

    Args:
        sources: What `Reader` takes: a path, a URL, bytes, or an object with `read`, which must be able
            to seek in order to be read twice. Or an iterable of these, which are read in its order.
        columns: Which columns, in this order. `"offset"`: the file offset of the record, `uint64`;
            `"record"`: its bytes, `large_binary`; `"end_offset"`: the file offset after it;
            `"length"`: its number of bytes; `"path"`: the path of its log, a dictionary of text,
            null without one; `"salvaged"`: whether it begins after damage in its block. Without
            `"record"`, records are checked and not copied. Default: `None`: offset and record, and
            path if `sources` is an iterable.
        decode: What the records are: `"write-batch"`, `"version-edit"`, `"entity"`, `"wandb-history"`
            or `"json"`. Rows and columns are then those of `cordwood convert --as`, and `columns`
            are some of these. It needs pyarrow, and reads in one thread. The columns of the last
            three are found by reading all sources once before. A record that is something else
            raises `PayloadError`; under the other policies it is left out, and
            `DecodedScan.left_out` lists it. Default: `None`: bytes.
        schema: With `decode`: a `pyarrow.Schema`, in place of that reading. Columns that it does
            not name are left out. Default: `None`.
        dialect: As for `Reader`.
        log_number: As for `Reader`.
        compression: As for `Reader`.
        on_corruption: As for `Reader`: `"raise"`, `"skip"`, `"stop"` or `"salvage"`. Under all but
            the first, `Scan.skipped` lists afterwards what is missing. Default: `"raise"`.
        threads: Read each file ahead in this many threads, 1 to 256. One thread reads what is not a
            path, what `Reader.record_batches` reads in one, and anything without the column
            `"record"` or with `"salvaged"`. Default: 1.
        start: As for `Reader`, in each source.
        end: As for `Reader`, in each source.

    Returns:
        A `Scan`: an object with `__arrow_c_stream__` and `__arrow_c_schema__`. With `decode`, a
        `DecodedScan`, which has them, too.

    Raises:
        ModuleNotFoundError: With `decode`: pyarrow is not installed.
        OverflowError: `log_number` is not a number of 32 bits.
        TypeError: A source is none of the above, or is a text file.
        ValueError: An option has no such value, or a column is unknown or named twice.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> cordwood.scan("example.log")
    <cordwood.Scan of "example.log": offset, record>
    >>> import pyarrow
    >>> pyarrow.table(cordwood.scan("example.log")).to_pydict()
    {'offset': [0, 10], 'record': [b'one', b'two']}
    """

def stat(
    source: Source,
    *,
    threads: int = 1,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    on_corruption: Literal["skip", "stop", "salvage"] = "skip",
    verify_checksums: bool = True,
    record_len_max: int = 1073741824,
    progress: Callable[[int], object] | None = None,
) -> Stat:
    """Reads a log to its end, and counts what is in it. Damage is not an error here.

    Args:
        source: What `Reader` takes.
        threads: As for `verify`. Default: 1.
        dialect: As for `Reader`. Default: `None`.
        log_number: As for `Reader`. Default: `None`.
        compression: As for `Reader`. Default: `None`.
        on_corruption: As for `verify`. Default: `"skip"`.
        verify_checksums: As for `Reader`. Default: `True`.
        record_len_max: As for `Reader`, in bytes. Default: 1 GiB.
        progress: As for `verify`. Default: `None`.

    Returns:
        The numbers.

    Raises:
        DialectError: It is not a log.
        OSError: The source cannot be opened or read.
        TypeError: `source` is nothing that `Reader` takes.
        ValueError: `threads` is not 1 to 256, or there is no such dialect.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two" * 20_000])
    2
    >>> stat = cordwood.stat("example.log")
    >>> stat.record_count, stat.record_len_max, stat.full_count, stat.first_count
    (2, 60000, 1, 1)
    """

def detect(source: Source, /) -> LogFormat | None:
    """Detects the format of a log from the beginning of the file.

    Args:
        source: What `Reader` takes. Its first 96 KiB are read; if they do not show a log, and
            it is a longer file, also its end and the beginnings of its blocks.

    Returns:
        A `LogFormat`: the dialect, the log number if its logs have one (that in the name of the
        file, or else that of the first fragment), and the compression. `None` if it cannot be
        detected: the file is empty, or its beginning holds no complete fragment with a valid
        checksum. `Reader` then reads `"leveldb"`.

    Raises:
        DialectError: It is not a log.
        OSError: The source cannot be opened or read.
        TypeError: `source` is nothing that `Reader` takes.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> cordwood.detect("example.log")
    LogFormat(dialect='leveldb', log_number=None, compression=None)
    """

def crc32c(data: ReadableBuffer, crc: int = 0) -> int:
    """The CRC-32C of some bytes.

    Args:
        data: `bytes` or any other buffer.
        crc: The CRC-32C of the bytes before them, to continue from there. Default: 0, that of
            none.

    Returns:
        A number of 32 bits.

    Raises:
        TypeError: `data` is not bytes-like.
        OverflowError: `crc` is not a number of 32 bits.

    >>> hex(cordwood.crc32c(b"123456789"))
    '0xe3069283'
    >>> hex(cordwood.crc32c(b"6789", cordwood.crc32c(b"12345")))
    '0xe3069283'
    """

def mask_crc(crc: int, /) -> int:
    """The form in which the format stores a CRC-32C: rotated right by 15 bits, plus a constant.

    Args:
        crc: The CRC-32C, a number of 32 bits.

    Returns:
        What the header of a fragment holds, a number of 32 bits.

    Raises:
        OverflowError: `crc` is not a number of 32 bits.

    >>> hex(cordwood.mask_crc(cordwood.crc32c(b"foo")))
    '0xfebe8a61'
    """

def unmask_crc(masked: int, /) -> int:
    """Undoes `mask_crc`.

    Args:
        masked: What the header of a fragment holds, a number of 32 bits.

    Returns:
        The CRC-32C, a number of 32 bits.

    Raises:
        OverflowError: `masked` is not a number of 32 bits.

    >>> hex(cordwood.unmask_crc(0xfebe8a61))
    '0xcfc4ae1d'
    """

def decode_entity(record: ReadableBuffer, /) -> Entity:
    """The entity in a record of a Datastore or Firestore export.

    What `cordwood.payload.entity.decode` returns.

    Args:
        record: `bytes` or any other buffer.

    Returns:
        The entity.

    Raises:
        PayloadError: The record is not an entity.
        TypeError: `record` is not bytes-like.
    """

@final
class EntityLearner:
    """Learns the columns of a table of entities: what `cordwood._tables.schema.Columns` does with rows.

    Args:
        column_count_max: So many columns there may be, fields in columns included.
        field_count_max: So many fields there may be in a column.
        level_count_max: So many levels of lists and structures there may be in a column.
        other_count: So many columns there are besides.
    """

    def __new__(
        cls, *, column_count_max: int, field_count_max: int, level_count_max: int, other_count: int
    ) -> EntityLearner: ...
    def learn(
        self, batch: RecordBatch, begin: int, origin: str | None, /
    ) -> tuple[int, list[tuple[int, PayloadError | str]], Literal["columns", "origin"] | None]:
        """Takes records into account.

        It stops at one after which there are too many columns, and at one that has a property of
        the name `origin`.

        Args:
            batch: The records.
            begin: The number of the first of them.
            origin: The name of a column that the table has besides, if it has one.

        Returns:
            The number of the record to continue with; the numbers of those that are left out, each
            with the error or with the reserved name of a property; and `"columns"` or `"origin"` if
            it stopped because of these.
        """

    def columns(self) -> dict[str, tuple[list[str], Any, dict[str, Any]] | None]:
        """What was learned.

        Returns:
            For each column by its name the kinds that were seen, what was in the items of lists,
            and what was in fields; `None` for one that has too many fields.
        """

@final
class EntityBuilder:
    """Makes columns of entities: what `cordwood._tables.arrow.Batches` does with rows.

    Args:
        columns: Pairs of a name and a type of `cordwood._tables.schema`, or `None` for a column that
            is not wanted.
        row_count_max: So many rows a batch may have.
        cell_count_max: So many cells it may have.
    """

    def __new__(
        cls, columns: Sequence[tuple[str, object]], *, row_count_max: int, cell_count_max: int
    ) -> EntityBuilder: ...
    def build(
        self, batch: RecordBatch, begin: int, learner: EntityLearner | None, /
    ) -> tuple[
        int,
        bool,
        list[tuple[int, PayloadError | str]],
        str | None,
        str | None,
        list[str],
        int,
        tuple[object, object],
    ]:
        """Makes rows of records, as many as one batch of Arrow may have.

        Args:
            batch: The records.
            begin: The number of the first of them.
            learner: It takes the records into account, if it is given, and the rows end with one that
                has a name that no column has. It may be given to several calls at a time.

        Returns:
            The number of the record to continue with; whether the learner found what it had not seen before; the
            numbers of those that are left out, as `learn` has them; a name that no column has, or
            `None`; the name of a column that a value does not fit, or `None`; the names of the
            columns that have values, the number of rows, and capsules of the Arrow C data interface
            with them.
        """

def batch_crc(batch: RecordBatch, crc: int, /) -> int:
    """The CRC-32C of the offsets and the data of records, after what gave `crc`.

    Args:
        batch: The records.
        crc: That of those before them.

    Returns:
        A number of 32 bits.
    """

def decode_wandb(record: ReadableBuffer, kind: str, /) -> dict[str, Any] | None:
    """The fields of a record of a run of Weights & Biases.

    Items are pairs of a path, a tuple of at least one name, and the value in JSON. Times are
    in microseconds since 1970-01-01 00:00 UTC. What is not in the record is `None`.

    Args:
        record: `bytes` or any other buffer.
        kind: Of which kind it must be, and so what fields there are. `"history"`: `items` and
            `step`. `"stats"`: `timestamp` and `items`. `"summary"`, and `"config"`, which a record
            of the run may also have: `update` and `remove`, items. `"run"`: `run_id`, `entity`,
            `project`, `display_name` and `start_time`. `"output"`, raw or not: `stream`
            (`"stdout"` or `"stderr"`), `timestamp` and `line`. `"exit"`: `exit_code`.

    Returns:
        The fields. `None` if it is a record of another kind.

    Raises:
        PayloadError: It is not a record of a run.
        ValueError: There is no such kind.
        TypeError: `record` is not bytes-like.
    """

@final
class Fragment:
    """A fragment of a log, or a gap between fragments. `cordwood.fragments` returns them.

    `len(fragment)` is the number of bytes from `offset` to `end_offset`. The constructor takes the
    attributes as keywords, but `severity`, which is that of the reason.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> next(cordwood.fragments("example.log"))
    Fragment(offset=0, end_offset=10, kind='full')
    """

    def __new__(
        cls,
        *,
        offset: int,
        end_offset: int,
        kind: FragmentKind | str,
        block: int | None = None,
        type_byte: int | None = None,
        payload_len: int | None = None,
        stored_crc: int | None = None,
        computed_crc: int | None = None,
        log_number: int | None = None,
        synced_offset: int | None = None,
        reason: Reason | str | None = None,
        record_offset: int | None = None,
        salvaged: bool = False,
    ) -> Self: ...
    @property
    def offset(self) -> int:
        """File offset of the first byte."""
    @property
    def end_offset(self) -> int:
        """File offset after the last byte. After damage, the beginning of the next fragment found."""
    @property
    def block(self) -> int:
        """The index of its block, from 0."""
    @property
    def kind(self) -> FragmentKind:
        """What it is: `"full"`, `"first"`, `"trailer"`, ..."""
    @property
    def type_byte(self) -> int | None:
        """The type byte; `None` if there is no header."""
    @property
    def payload_len(self) -> int | None:
        """Bytes of payload as stated by the header, right or wrong; `None` if there is no header."""
    @property
    def stored_crc(self) -> int | None:
        """The CRC-32C that the header states, without the mask; `None` if there is no header."""
    @property
    def computed_crc(self) -> int | None:
        """The CRC-32C of what it should cover; `None` if that goes past the end of block or file."""
    @property
    def log_number(self) -> int | None:
        """The number of the log, if headers of this type carry one; else `None`."""
    @property
    def synced_offset(self) -> int | None:
        """How far the file had been synced, in bytes, if headers of this type state it; else `None`."""
    @property
    def reason(self) -> Reason | None:
        """Why these bytes were not returned as part of a record.

        `None` if they were, and for trailers.
        """
    @property
    def severity(self) -> Severity | None:
        """The severity of that; `None` if there is no reason."""
    @property
    def record_offset(self) -> int | None:
        """File offset of the record that contains it, if that was returned; else `None`."""
    @property
    def salvaged(self) -> bool:
        """Whether that record begins after damage in the same block.

        Only the policy `"salvage"` returns such a record.
        """
    __match_args__ = ("offset", "end_offset", "kind")
    def __len__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, object]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Fragments:
    """The iterator that `fragments` returns."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Fragment: ...

@final
class Runs:
    """The iterator that `runs` returns. A run does not cross the end of a block."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[int, int, str, str | None, str | None, int]: ...

def fragments(
    source: Source,
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
) -> Iterator[Fragment]:
    """Lists every fragment and every gap of a log, with the reason for each that was not returned.

    They tile the file: each begins where the one before it ends, and none crosses the end of a
    block. Damage is not an error here. They follow what the policy `"salvage"` of `Reader` returns
    or skips: in a skipped region, each fragment carries the region's reason. Memory does not grow
    with the log.

    Args:
        source: What `Reader` takes, if it can be read twice: a path of a file, a URL or what else is
            read in ranges, a buffer, or an object with `read` and `seek`.
        dialect: As for `Reader`. Default: `None`.
        log_number: As for `Reader`. Default: `None`.
        compression: As for `Reader`. Default: `None`.

    Returns:
        An iterator of `Fragment`.

    Raises:
        DialectError: It is not a log, on the first step.
        OSError: The source cannot be opened or read.
        io.UnsupportedOperation: The source cannot seek.
        TypeError: `source` is nothing that `Reader` takes.
        ValueError: There is no such dialect.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> for fragment in cordwood.fragments("example.log"):
    ...     print(fragment.offset, fragment.kind, fragment.reason)
    0 full None
    10 full None
    """

def runs(
    source: Source,
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
) -> Iterator[tuple[int, int, str, str | None, str | None, int]]:
    """Lists `fragments`, with neighbours of the same kind and reason in one block as one.

    For pictures of long logs.

    Args:
        source: As for `fragments`.
        dialect: As for `fragments`. Default: `None`.
        log_number: As for `fragments`. Default: `None`.
        compression: As for `fragments`. Default: `None`.

    Returns:
        An iterator of tuples: the offset, the end offset, the kind, the reason, its severity
        and the number of fragments.
    """
