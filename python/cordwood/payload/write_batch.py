"""The records of write-ahead logs: the write batches of LevelDB, RocksDB and Pebble."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Literal

from cordwood._jsonable import jsonable
from cordwood._native import Operation, WriteBatch

__all__ = ["Operation", "OperationKind", "WriteBatch", "to_dict"]


class OperationKind(StrEnum):
    """What an operation does. `docs/payload.md` lists the tags, and the attributes of each kind.

    Attributes:
        PUT: The key has this value from now on.
        DELETE: The key no longer has a value.
        MERGE: The database's merge operator combines this with the value of the key.
        LOG_DATA: Data for readers of the log; the database ignores it.
        SINGLE_DELETE: Deletes a key that was put once.
        DELETE_RANGE: Deletes the keys from `key` on, up to but excluding `end_key`.
        PUT_BLOB_INDEX: The value of the key is in a blob file.
        PUT_ENTITY: The key has columns.
        TIMED_PUT: A put of data that was written at an earlier time.
        NOOP: Nothing.
        BEGIN_PREPARE: What follows takes effect only once the transaction is committed.
        BEGIN_PERSISTED_PREPARE: The same with RocksDB's write policy WritePrepared.
        BEGIN_UNPREPARE: The same with RocksDB's write policy WriteUnprepared.
        END_PREPARE: The end of what a transaction prepares.
        COMMIT: The transaction is committed.
        COMMIT_WITH_TIMESTAMP: The transaction is committed, with a timestamp for its keys.
        ROLLBACK: The transaction is rolled back.
        DELETE_SIZED: Pebble: a delete that says how much it deletes.
        RANGE_KEY_SET: Pebble: sets range keys.
        RANGE_KEY_UNSET: Pebble: removes range keys.
        RANGE_KEY_DELETE: Pebble: deletes all range keys of a range.
        INGEST_SST: Pebble: ingests a table.
        INGEST_SST_WITH_BLOBS: Pebble: ingests a table with blob files.
        EXCISE: Pebble: deletes everything in a range, when a table is ingested.
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


def to_dict(record: bytes, *, engine: Literal["rocksdb", "pebble"] = "rocksdb") -> dict[str, object]:
    """A write batch as JSON values: what `WriteBatch.to_dict` returns.

    Args:
        record: The record of a log.
        engine: As for `WriteBatch`. Default: `"rocksdb"`.

    Returns:
        `sequence`, `count`, and `operations`, each with its attributes.

    Raises:
        PayloadError: The record is not a write batch.
        TypeError: `record` is not bytes-like.
        ValueError: There is no such engine.

    >>> from cordwood.payload import write_batch
    >>> write_batch.to_dict(bytes.fromhex("0700000000000000 01000000 01036b6579 02fffe"))
    {'sequence': 7, 'count': 1, 'operations': [{'kind': 'put', 'sequence': 7, 'column_family': 0, 'key': 'key', 'value': {'base64': '//4='}}]}
    """  # noqa: E501 - what is printed is one line
    return WriteBatch(record, engine=engine).to_dict()


def dict_of(batch: WriteBatch) -> dict[str, object]:
    """What the native `to_dict` returns."""
    return {"sequence": batch.sequence, "count": batch.count, "operations": list(operations_of(batch))}


def operations_of(batch: WriteBatch) -> Iterator[dict[str, object]]:
    """The operations in it, one at a time: together they may take hundreds of times the bytes of the record."""
    for operation in batch:
        yield {
            name: jsonable(value) if type(value) is bytes else value for name, value in operation.attributes().items()
        }
