"""`LogFile` from ccl_chromium_reader 0.3.17 (ccl_leveldb 0.4), which reads LevelDB's write-ahead logs.

Change::

    from ccl_chromium_reader.storage_formats import ccl_leveldb

to::

    from cordwood.compat import ccl as ccl_leveldb

>>> import cordwood, pathlib
>>> from cordwood.compat import ccl as ccl_leveldb
>>> batch = bytes.fromhex("0700000000000000 02000000 01036b65790576616c7565 00036f6c64")
>>> with cordwood.open("000003.log", "w") as writer:
...     _ = writer.append(batch)
>>> for record in ccl_leveldb.LogFile(pathlib.Path("000003.log")):
...     print(record.seq, record.state.name, record.user_key, record.value, record.offset)
7 Live b'key' b'value' 19
8 Deleted b'old' b'' 30

For an undamaged log, it returns the same results as ccl_leveldb, except for **offset**. ccl_leveldb isn't on any
package index, so the tests compare this module with a rewrite, chromium-reader 0.1.1. The rewrite spells the names of
states and types in capitals. The differences:

* **checksums**: Checksums are verified. ccl_leveldb ignores them and returns damaged data.
* **continues**: Damage is skipped and reported to the `cordwood` logger, and `LogFile.reader.skipped` lists it.
  ccl_leveldb often raises a `ValueError` instead and loses the records after the damage.
* **torn-tail**: If a crash cut the last record short, it isn't returned.
* **zeros**: Zeros up to the end of the file or of a block are skipped. ccl_leveldb raises a `ValueError`.
* **not-a-batch**: A record that is not a batch is skipped and logged. So is the rest of a batch, starting at the first
  operation that is neither a put nor a delete. RocksDB's no-ops and log-data entries are skipped without a message.
* **count**: All operations of a batch are returned, and a wrong count is logged.
* **offset**: The offset of an operation does not count the headers between the fragments of its batch. ccl_leveldb
  multiplies the offset of the batch by 32,768.
* **path**: The path can be a `str`.
* **only-logs**: The classes for tables, MANIFESTs and whole databases are missing: `LdbFile`, `Block`, `BlockHandle`,
  `RawBlockEntry`, `ManifestFile`, `VersionEdit`, `VersionEditTag`, `RawLevelDb`, `read_le_varint` and
  `read_length_prefixed_blob`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import cordwood
from cordwood.compat._batches import batches, records

__all__ = ["FileType", "KeyState", "LogEntryType", "LogFile", "Record"]

# In a table, each key is followed by its sequence number and its kind.
_TAG_LEN = 8


class FileType(enum.Enum):
    """The kind of file that a record is from. For `LogFile`, this is always a log."""

    Ldb = 1
    Log = 2


class KeyState(enum.Enum):
    """The effect of a record on its key."""

    Deleted = 0
    Live = 1
    Unknown = 2


class LogEntryType(enum.IntEnum):
    """The types of fragments."""

    Zero = 0
    Full = 1
    First = 2
    Middle = 3
    Last = 4


@dataclass(frozen=True)
class Record:
    """A put or a delete, along with where it was read from."""

    key: bytes
    value: bytes
    seq: int
    state: KeyState
    file_type: FileType
    origin_file: PathLike[str]
    offset: int
    was_compressed: bool

    @property
    def user_key(self) -> bytes:
        """The key without the eight bytes that follow it in a table. In a log, no bytes follow it."""
        return self.key[:-_TAG_LEN] if self.file_type == FileType.Ldb and len(self.key) >= _TAG_LEN else self.key

    @classmethod
    def ldb_record(
        cls,
        key: bytes,
        value: bytes,
        origin_file: PathLike[str],
        offset: int,
        was_compressed: bool,  # noqa: FBT001 - theirs
    ) -> Record:
        """Returns a record from a table. `key` ends with the sequence number and the kind."""
        tag = int.from_bytes(key[-_TAG_LEN:], "little")
        state = KeyState.Unknown
        if len(key) > _TAG_LEN:
            state = KeyState.Live if tag & 0xFF else KeyState.Deleted
        return cls(key, value, tag >> 8, state, FileType.Ldb, origin_file, offset, was_compressed)

    @classmethod
    def log_record(  # noqa: PLR0917 - theirs
        cls, key: bytes, value: bytes, seq: int, state: KeyState, origin_file: PathLike[str], offset: int
    ) -> Record:
        """Returns a record from a log."""
        return cls(key, value, seq, state, FileType.Log, origin_file, offset, False)  # noqa: FBT003


class LogFile:
    """A write-ahead log. Each iteration yields the records from the start of the log.

    Args:
        file: The path of the log. The name without its suffix must be a hexadecimal number.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The name is not a number.

    Attributes:
        path: The path.
        file_no: The number in the name of the log.
        reader: The underlying reader, whose `skipped` and `outcome` describe the bytes that were not returned.
    """

    LOG_ENTRY_HEADER_SIZE = 7
    LOG_BLOCK_SIZE = 32768

    def __init__(self, file: PathLike[str]) -> None:
        self.path: PathLike[str] = file
        self.file_no: int = int(Path(file).stem, 16)
        self.reader: cordwood.Reader = cordwood.Reader(file, dialect="leveldb", on_corruption="salvage")

    def _get_batches(self) -> Iterator[tuple[int, bytes]]:
        """Returns all records with their offsets.

        In ccl_leveldb, only this method returns records that aren't batches.
        """
        self.reader.seek(0)
        return records(self.reader)

    def __iter__(self) -> Iterator[Record]:
        self.reader.seek(0)
        for _, _, operations in batches(self.reader, str(self.path)):
            for found in operations:
                state = KeyState.Live if found.is_put else KeyState.Deleted
                yield Record.log_record(found.key, found.value, found.sequence, state, self.path, found.offset)

    def close(self) -> None:
        """Closes the file. Closing twice is not an error."""
        self.reader.close()
