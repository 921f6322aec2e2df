"""Reads batches and their operations with file offsets, for all readers of LevelDB's write-ahead logs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

import cordwood
from cordwood.payload import OperationKind, PayloadError, WriteBatch

FRAGMENT_HEADER_LEN = 7
BATCH_HEADER_LEN = 12

_PUT, _DELETE = OperationKind.PUT, OperationKind.DELETE
_NOTHING = (OperationKind.NOOP, OperationKind.LOG_DATA)

logger = logging.getLogger("cordwood")


class KeyValue(NamedTuple):
    """An operation of a batch. A delete has an empty value."""

    offset: int
    is_put: bool
    sequence: int
    key: bytes
    value: bytes


def records(reader: cordwood.Reader) -> Iterator[tuple[int, bytes]]:
    """Yields each record with the offset of its first byte, just after the fragment's header."""
    for record in reader.records():
        yield record.offset + FRAGMENT_HEADER_LEN, record.data


def batches(reader: cordwood.Reader, path: str) -> Iterator[tuple[int, WriteBatch, Iterator[KeyValue]]]:
    """Yields each batch with its offset and operations. A warning is logged for each record that isn't a batch."""
    for offset, record in records(reader):
        try:
            batch = WriteBatch(record)
        except PayloadError as error:
            logger.warning("%s: the record at offset %d: %s", path, offset, error)
        else:
            yield offset, batch, _operations(offset, batch, path)


def _operations(offset: int, batch: WriteBatch, path: str) -> Iterator[KeyValue]:
    """Yields a batch's puts and deletes. Any other operation is logged as a warning and ends the iteration.

    RocksDB's no-ops and log-data entries are skipped, because they have no key and no sequence number. RocksDB's
    TransactionDB starts each batch with a no-op. An operation's offset is that of its tag, counted from `offset` as if
    the batch were contiguous in the file.
    """
    at = BATCH_HEADER_LEN
    sequence = batch.sequence
    try:
        for operation in batch:
            kind, key, value = operation.kind, operation.key, operation.value
            if key is not None and (kind == _PUT or kind == _DELETE):  # noqa: PLR1714, SIM109 - twice as fast
                yield KeyValue(offset + at, value is not None, sequence, key, value or b"")
                sequence += 1
                at += _prefixed_len(key)
            elif kind not in _NOTHING:
                logger.warning("%s: the batch at offset %d has a %s", path, offset, kind)
                return
            at += 1 + (0 if value is None else _prefixed_len(value))
    except PayloadError as error:
        logger.warning("%s: the batch at offset %d: %s", path, offset, error)


def _prefixed_len(data: bytes) -> int:
    """Returns the length of the data, including its length prefix, which is a varint."""
    return max(1, (len(data).bit_length() + 6) // 7) + len(data)
