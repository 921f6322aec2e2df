"""Reads and builds write batches, the records of LevelDB, RocksDB and Pebble write-ahead logs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple, final

from cordwood._jsonable import json_value
from cordwood._native import WriteBatchOperations, build_write_batch, write_batch_header
from cordwood.typing import ReadableBuffer

__all__ = [
    "Operation",
    "OperationKind",
    "SequenceGap",
    "SequenceNumbers",
    "WriteBatch",
    "sequence_numbers",
    "to_dict",
]


_HEADER_LEN = 12
"""The length of a batch's header: the sequence number and the count."""


class OperationKind(StrEnum):
    """The kind of operation. `docs/reference/payload.md` lists the tags, and the attributes of each kind.

    Attributes:
        PUT: Sets the value of a key.
        DELETE: Deletes a key.
        MERGE: Combines a value with the existing value of a key, using the merge operator of the database.
        LOG_DATA: Data for programs that read the log. The database ignores it.
        SINGLE_DELETE: Deletes a key that was put exactly once.
        DELETE_RANGE: Deletes all keys from `key` up to but not including `end_key`.
        PUT_BLOB_INDEX: Sets a key to a value stored in a blob file.
        PUT_ENTITY: Sets the columns of a key.
        TIMED_PUT: Sets a key to a value that was written at an earlier time.
        NOOP: Has no effect.
        BEGIN_PREPARE: The operations that follow don't take effect until the transaction is committed.
        BEGIN_PERSISTED_PREPARE: Like `BEGIN_PREPARE`, but for RocksDB's WritePrepared write policy.
        BEGIN_UNPREPARE: Like `BEGIN_PREPARE`, but for RocksDB's WriteUnprepared write policy.
        END_PREPARE: Marks the end of the operations that a transaction prepares.
        COMMIT: Commits a transaction.
        COMMIT_WITH_TIMESTAMP: Commits a transaction and gives its keys a timestamp.
        ROLLBACK: Rolls back a transaction.
        DELETE_SIZED: In Pebble, deletes a key and records the size of the deleted entry.
        RANGE_KEY_SET: In Pebble, sets range keys.
        RANGE_KEY_UNSET: In Pebble, removes range keys.
        RANGE_KEY_DELETE: In Pebble, deletes all range keys in a range.
        INGEST_SST: In Pebble, ingests a table.
        INGEST_SST_WITH_BLOBS: In Pebble, ingests a table with blob files.
        EXCISE: In Pebble, deletes all data in a range when a table is ingested.
    """

    PUT = "put"
    DELETE = "delete"
    MERGE = "merge"
    LOG_DATA = "log_data"
    SINGLE_DELETE = "single_delete"
    DELETE_RANGE = "delete_range"
    PUT_BLOB_INDEX = "put_blob_index"
    PUT_ENTITY = "put_entity"
    TIMED_PUT = "timed_put"
    NOOP = "noop"
    BEGIN_PREPARE = "begin_prepare"
    BEGIN_PERSISTED_PREPARE = "begin_persisted_prepare"
    BEGIN_UNPREPARE = "begin_unprepare"
    END_PREPARE = "end_prepare"
    COMMIT = "commit"
    COMMIT_WITH_TIMESTAMP = "commit_with_timestamp"
    ROLLBACK = "rollback"
    DELETE_SIZED = "delete_sized"
    RANGE_KEY_SET = "range_key_set"
    RANGE_KEY_UNSET = "range_key_unset"
    RANGE_KEY_DELETE = "range_key_delete"
    INGEST_SST = "ingest_sst"
    INGEST_SST_WITH_BLOBS = "ingest_sst_with_blobs"
    EXCISE = "excise"


class Operation(NamedTuple):
    """An operation in a `WriteBatch`. Iterating over a batch yields operations, and `WriteBatch.build` accepts them.

    Attributes that this kind of operation doesn't have are `None`. Comparing two operations ignores their sequence
    numbers.

    Attributes:
        kind: The kind of the operation.
        sequence: The sequence number of the batch, plus one for each earlier operation that has a sequence number.
            `None` if the operation has no number, or wasn't read from a batch. RocksDB's WritePrepared and
            WriteUnprepared write policies assign the same number to all operations in a batch, but this can't be
            detected from the record.
        column_family: The number of the column family. If you omit it when writing an operation, it is 0, the default
            column family.
        key: The key, or the first key of a range.
        end_key: The exclusive end of a range.
        value: The value, or the data of `LOG_DATA`.
        xid: The name of a transaction.
        timestamp: The timestamp of a commit.
        write_unix_time: When the value was written, in seconds since 1970.

    >>> from cordwood.payload import Operation, OperationKind
    >>> operation = Operation(OperationKind.DELETE_RANGE, key=b"a", end_key=b"c", column_family=3)
    >>> operation
    Operation('delete_range', column_family=3, key=b'a', end_key=b'c')
    >>> operation.key, operation.value
    (b'a', None)
    """

    kind: OperationKind
    sequence: int | None = None
    column_family: int | None = None
    key: bytes | None = None
    end_key: bytes | None = None
    value: bytes | None = None
    xid: bytes | None = None
    timestamp: bytes | None = None
    write_unix_time: int | None = None

    def _content(self) -> tuple[object, ...]:
        return (self.kind, self.column_family or 0, *self[3:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operation) and self._content() == other._content()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._content())

    def __repr__(self) -> str:
        attributes = zip(self._fields[2:], (self.column_family or None, *self[3:]), strict=True)
        shown = (f", {name}={_short(value)}" for name, value in attributes if value is not None)
        return f"Operation({str(self.kind)!r}{''.join(shown)})"


def _short(value: int | bytes) -> str:
    """Returns the `repr` of a value, shortened if the value has many bytes."""
    if isinstance(value, bytes) and len(value) > 64:
        return f"<{len(value)} bytes: {value[:32]!r}...>"
    return repr(value)


@final
class WriteBatch:
    """A record in a LevelDB, RocksDB or Pebble write-ahead log. Its operations take effect together.

    Iterating yields the operations in order, decoded one by one. A damaged batch yields the operations before the
    damage and then raises a `PayloadError`. If the count in the header is wrong, this error is raised at the end of the
    batch. `len(batch)` decodes all operations and raises the same errors. `bool(batch)` is true if there are any
    operations, and `bytes(batch)` is the record. Every batch that can be read can also be written: pass its operations
    to `build`, and you get a batch with the same `bytes`.

    Args:
        record: The record. Only its header is decoded at first.
        engine: `"rocksdb"` or `"pebble"`. For LevelDB, use `"rocksdb"`, because RocksDB also uses LevelDB's two tags.
            Five tags mean one thing in RocksDB and another in Pebble. Default: `"rocksdb"`.

    Raises:
        PayloadError: The record is shorter than the header of a batch.
        TypeError: `record` is not bytes-like.
        ValueError: The engine is unknown.

    >>> from cordwood.payload import Operation, OperationKind, WriteBatch
    >>> put = Operation(OperationKind.PUT, key=b"k", value=b"v")
    >>> batch = WriteBatch.build(100, [put, Operation(OperationKind.DELETE, key=b"old")])
    >>> bytes(batch).hex(" ", -4)
    '64000000 00000000 02000000 01016b01 7600036f 6c64'
    >>> for operation in WriteBatch(bytes(batch)):
    ...     print(operation.sequence, operation)
    100 Operation('put', key=b'k', value=b'v')
    101 Operation('delete', key=b'old')
    """

    __slots__ = ("_count", "_engine", "_record", "_sequence")

    def __init__(self, record: ReadableBuffer, *, engine: Literal["rocksdb", "pebble"] = "rocksdb") -> None:
        self._record, self._sequence, self._count = write_batch_header(record, engine)
        self._engine: Literal["rocksdb", "pebble"] = engine

    @staticmethod
    def build(
        sequence: int, operations: Iterable[Operation], *, engine: Literal["rocksdb", "pebble"] = "rocksdb"
    ) -> WriteBatch:
        """Builds a batch from operations. The count in its header includes only operations with sequence numbers.

        Args:
            sequence: The sequence number of the first operation.
            operations: The operations, in order. Each must have exactly the attributes of its kind. Their sequence
                numbers are ignored.
            engine: Same as for `WriteBatch`.

        Returns:
            The batch.

        Raises:
            PayloadError: The engine does not support one of the operations, or a part of the batch is too large.
            TypeError: An item in `operations` is not an `Operation`, lacks an attribute that its kind requires, or has
                one that its kind doesn't allow.
            ValueError: The engine or a kind of operation is unknown.
            OverflowError: A number is negative or has too many bits.

        >>> from cordwood.payload import Operation, OperationKind, WriteBatch
        >>> WriteBatch.build(7, [Operation(OperationKind.PUT, key=b"k", value=b"v")])
        <cordwood.payload.WriteBatch: sequence=7, count=1>
        """
        return WriteBatch(build_write_batch(sequence, operations, engine), engine=engine)

    @property
    def sequence(self) -> int:
        """The sequence number of the first operation."""
        return self._sequence

    @property
    def count(self) -> int:
        """The number of operations according to the header.

        Log data and transaction markers are not counted.
        """
        return self._count

    @property
    def engine(self) -> Literal["rocksdb", "pebble"]:
        """`"rocksdb"` or `"pebble"`."""
        return self._engine

    def to_dict(self) -> dict[str, object]:
        """Returns the batch in a form that JSON can represent.

        Bytes become a string if they are valid UTF-8, and `{"base64": "..."}` otherwise.

        Returns:
            A dictionary with `sequence`, `count` and the list `operations`, whose items have the attributes of the
            operations.

        Raises:
            PayloadError: The batch is damaged.

        >>> from cordwood.payload import Operation, OperationKind, WriteBatch
        >>> delete = Operation(OperationKind.DELETE, key=b"k")
        >>> WriteBatch.build(7, [delete]).to_dict()["operations"]
        [{'kind': 'delete', 'sequence': 7, 'column_family': 0, 'key': 'k'}]
        """
        return json_value("write-batch", self._record, self._engine)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return len(self._record) > _HEADER_LEN

    def __iter__(self) -> Iterator[Operation]:
        return WriteBatchOperations(self._record, self._engine)

    def __bytes__(self) -> bytes:
        """Returns the record."""
        return self._record

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WriteBatch) and (self._engine, self._record) == (other._engine, other._record)

    def __hash__(self) -> int:
        return hash(self._record)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(WriteBatch, engine=self._engine), (self._record,)

    def __repr__(self) -> str:
        return f"<cordwood.payload.WriteBatch: sequence={self.sequence}, count={self.count}>"


class SequenceGap(NamedTuple):
    """Sequence numbers missing between the batches in a log.

    Attributes:
        start: The first missing number.
        end: The number after the last missing number.
        after: The key of the operation before the gap.
    """

    start: int
    end: int
    after: bytes | None = None


class SequenceNumbers(NamedTuple):
    """The sequence numbers in a log's batches, and those missing between the batches.

    Attributes:
        start: The lowest sequence number. `None` if no operation has a sequence number.
        end: The number after the highest sequence number.
        missing_count: The number of missing sequence numbers between `start` and `end`.
        gap_count: The number of gaps.
        gaps: The first 100,000 gaps, in ascending order.
        has_shared: Whether several batches share a number. If so, some gaps may go unnoticed.
    """

    start: int | None
    end: int | None
    missing_count: int
    gap_count: int
    gaps: tuple[SequenceGap, ...]
    has_shared: bool


GAPS_MAX = 100_000
"""The maximum number of gaps to list."""


def sequence_numbers(batches: Iterable[WriteBatch]) -> SequenceNumbers:
    """Finds the sequence numbers missing between the batches in a log.

    A missing number does not always mean that data was lost. A batch in a damaged part of the log leaves a gap, but so
    do writes that bypass the log (`disableWAL`), writes to another log of the same database, and ingested tables.
    Batches may be in any order: with `unordered_write` or two write queues, RocksDB doesn't write them in order. With
    its WritePrepared and WriteUnprepared write policies, all operations in a batch get the same number, so batches
    appear to share numbers.

    Args:
        batches: The decodable batches in a log.

    Returns:
        The range of the sequence numbers, and the gaps in it.

    Raises:
        PayloadError: A batch before a gap is damaged.

    >>> from cordwood.payload import Operation, OperationKind, WriteBatch
    >>> from cordwood.payload.write_batch import sequence_numbers
    >>> deletes = {n: Operation(OperationKind.DELETE, key=b"k%d" % n) for n in (1, 2, 5)}
    >>> batches = [WriteBatch.build(n, [delete]) for n, delete in deletes.items()]
    >>> sequence_numbers(batches).gaps
    (SequenceGap(start=3, end=5, after=b'k2'),)
    """
    spans: list[_Span] = []
    unlisted_count = unlisted_len = 0
    has_shared = False
    for batch in batches:
        start, end = batch.sequence, batch.sequence + batch.count
        if start == end:
            continue
        if spans and start == spans[-1].end:
            # This is the most common case. Handling it separately makes it five times as fast.
            spans[-1] = _Span(spans[-1].start, end, batch)
            continue
        low = bisect_left(spans, start, key=lambda span: span.end)
        high = bisect_right(spans, end, key=lambda span: span.start)
        last: WriteBatch | bytes | None = batch
        if joined := spans[low:high]:
            has_shared |= any(min(end, span.end) > max(start, span.start) for span in joined) and not unlisted_count
            start = min(start, joined[0].start)
            if end <= joined[-1].end:
                end, last = joined[-1][1:]
        spans[low:high] = [_Span(start, end, last)]
        # The batches of a log may be too large to keep in memory together.
        for place in range(max(low - 1, 0), min(low + 1, len(spans) - 1)):
            spans[place] = spans[place]._replace(last=_last_key(spans[place].last))
        if len(spans) > GAPS_MAX + 1:
            before, after = spans[-2:]
            unlisted_count += 1
            unlisted_len += after.start - before.end
            spans[-2:] = [_Span(before.start, after.end, after.last)]
    gaps = tuple(SequenceGap(span.end, after.start, _last_key(span.last)) for span, after in pairwise(spans))
    return SequenceNumbers(
        spans[0].start if spans else None,
        spans[-1].end if spans else None,
        sum(gap.end - gap.start for gap in gaps) + unlisted_len,
        len(gaps) + unlisted_count,
        gaps,
        has_shared,
    )


class _Span(NamedTuple):
    """A contiguous range of numbers.

    `last` is the key of the range's last number. In the last span, it is the batch that contains this number.
    """

    start: int
    end: int
    last: WriteBatch | bytes | None


def _last_key(last: WriteBatch | bytes | None) -> bytes | None:
    if not isinstance(last, WriteBatch):
        return last
    # The operations are read one at a time, because together they may take up hundreds of times the record's size.
    keys = (operation.key for operation in last if operation.sequence is not None)
    return deque(keys, maxlen=1)[0]


def to_dict(record: bytes, *, engine: Literal["rocksdb", "pebble"] = "rocksdb") -> dict[str, object]:
    """Returns a write batch as JSON values, like `WriteBatch.to_dict`.

    Args:
        record: A record from a log.
        engine: Same as for `WriteBatch`. Default: `"rocksdb"`.

    Returns:
        A dictionary with `sequence`, `count` and the list `operations`, whose items have the attributes of the
        operations.

    Raises:
        PayloadError: The record is not a write batch.
        TypeError: `record` is not bytes-like.
        ValueError: The engine is unknown.

    >>> from cordwood.payload import write_batch
    >>> write_batch.to_dict(bytes.fromhex("0700000000000000 01000000 01036b6579 02fffe"))
    {'sequence': 7, 'count': 1, 'operations': [{'kind': 'put', 'sequence': 7, 'column_family': 0, 'key': 'key', 'value': {'base64': '//4='}}]}
    """  # noqa: E501 - the printed text is one line
    return WriteBatch(record, engine=engine).to_dict()
