"""`FileReader` from dfindexeddb 20260210 for LevelDB's write-ahead logs.

Change::

    from dfindexeddb.leveldb import log

to::

    from cordwood.compat import dfindexeddb as log

>>> import cordwood
>>> from cordwood.compat import dfindexeddb as log
>>> batch = bytes.fromhex("0700000000000000 02000000 01036b65790576616c7565 00036f6c64")
>>> with cordwood.open("000003.log", "w") as writer:
...     _ = writer.append(batch)
>>> for key in log.FileReader("000003.log").GetParsedInternalKeys():
...     print(key.sequence_number, key.record_type.name, key.key, key.value, key.offset)
7 VALUE b'key' b'value' 19
8 DELETED b'old' b'' 30

For an undamaged log, it returns the same results as dfindexeddb, except for **empty**. The differences:

* **empty**: A fragment of length 0 is read like any other. dfindexeddb treats it as the end of the block and loses the
  records after it.
* **checksums**: Checksums are verified. dfindexeddb treats a checksum of 0 as the end of the block.
* **continues**: Damage is skipped and reported to the `cordwood` logger. dfindexeddb often raises a `DecoderError`,
  `ParserError` or `ValueError` instead and loses the records after the damage.
* **torn-tail**: If a crash cut the last record short, the iteration ends there. dfindexeddb raises a `DecoderError`.
* **joined**: A record without its first or last fragment is not returned.
* **not-a-batch**: Same as in `cordwood.compat.ccl`.
* **count**: Same as in `cordwood.compat.ccl`.
* **only-logs**: The classes lack `FromDecoder`, `FromStream` and `FromBytes`. `errors`, `utils`, and the modules for
  tables and descriptors are also missing. `definitions` has only `InternalRecordType` and `LogFilePhysicalRecordType`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import cordwood
from cordwood.compat._batches import batches, logger
from cordwood.types import Severity

__all__ = ["Block", "FileReader", "InternalRecordType", "LogFilePhysicalRecordType"]
__all__ += ["ParsedInternalKey", "PhysicalRecord", "WriteBatch", "definitions"]


class LogFilePhysicalRecordType(enum.IntEnum):
    """The types of fragments."""

    FULL = 1
    FIRST = 2
    MIDDLE = 3
    LAST = 4


class InternalRecordType(enum.IntEnum):
    """The types of operations on a key."""

    DELETED = 0
    VALUE = 1


class definitions:  # noqa: N801 - the name of a module
    """The part of dfindexeddb's `definitions` that concerns logs."""

    InternalRecordType = InternalRecordType
    LogFilePhysicalRecordType = LogFilePhysicalRecordType


_TYPES = frozenset(LogFilePhysicalRecordType)


@dataclass
class ParsedInternalKey:
    """A put or a delete."""

    offset: int
    record_type: InternalRecordType
    sequence_number: int
    key: bytes
    value: bytes


@dataclass
class WriteBatch:
    """A batch of puts and deletes. `offset` is the position of the first byte after the fragment's header."""

    offset: int
    sequence_number: int
    count: int
    records: list[ParsedInternalKey]


@dataclass
class PhysicalRecord:
    """A fragment. `base_offset` is the file offset of its block. All other offsets are relative to `base_offset`."""

    base_offset: int
    offset: int
    checksum: int
    length: int
    record_type: LogFilePhysicalRecordType
    contents: bytes
    contents_offset: int

    PHYSICAL_HEADER_LENGTH: ClassVar[int] = 7


@dataclass
class Block:
    """A block of a log. The last block may be incomplete."""

    offset: int
    data: bytes

    BLOCK_SIZE: ClassVar[int] = 32768

    def GetPhysicalRecords(self) -> Iterator[PhysicalRecord]:  # noqa: N802
        """Yields the valid fragments of the block, and logs any damage."""
        for found in cordwood.fragments(self.data, dialect="leveldb"):
            stored, length = found.stored_crc, found.payload_len
            if found.type_byte in _TYPES and stored is not None and length is not None and stored == found.computed_crc:
                contents_offset = found.end_offset - length
                yield PhysicalRecord(
                    base_offset=self.offset,
                    offset=found.offset,
                    checksum=cordwood.mask_crc(stored),
                    length=length,
                    record_type=LogFilePhysicalRecordType(found.type_byte),
                    contents=self.data[contents_offset : found.end_offset],
                    contents_offset=contents_offset,
                )
            elif found.severity == Severity.CORRUPTION:
                logger.warning("the block at offset %d: %s at offset %d in it", self.offset, found.reason, found.offset)


class FileReader:
    """A write-ahead log. Each method reads the log from its start.

    Args:
        filename: The path of the log.

    Attributes:
        filename: The path.
    """

    def __init__(self, filename: str) -> None:
        self.filename = filename

    def GetBlocks(self) -> Iterator[Block]:  # noqa: N802
        """Yields the blocks of the file without checking them."""
        with open(self.filename, "rb") as file:
            offset = 0
            while data := file.read(Block.BLOCK_SIZE):
                yield Block(offset, data)
                offset += len(data)

    def GetPhysicalRecords(self) -> Iterator[PhysicalRecord]:  # noqa: N802
        """Yields the valid fragments."""
        for block in self.GetBlocks():
            yield from block.GetPhysicalRecords()

    def GetWriteBatches(self) -> Iterator[WriteBatch]:  # noqa: N802
        """Yields the batches."""
        with cordwood.Reader(self.filename, dialect="leveldb", on_corruption="salvage") as reader:
            for offset, batch, operations in batches(reader, self.filename):
                keys = [
                    ParsedInternalKey(found.offset, InternalRecordType(found.is_put), *found[2:])
                    for found in operations
                ]
                yield WriteBatch(offset, batch.sequence, batch.count, keys)

    def GetParsedInternalKeys(self) -> Iterator[ParsedInternalKey]:  # noqa: N802
        """Yields the puts and deletes of all batches."""
        for batch in self.GetWriteBatches():
            yield from batch.records
