"""`LogFile` of ccl_chromium_reader 0.3.17 (ccl_leveldb 0.4), which reads LevelDB's write-ahead logs.

Change

    from ccl_chromium_reader.storage_formats import ccl_leveldb

to

    from cordwood.compat import ccl as ccl_leveldb

>>> import cordwood, pathlib
>>> from cordwood.compat import ccl as ccl_leveldb
>>> with cordwood.open("000003.log", "w") as writer:
...     _ = writer.append(bytes.fromhex("0700000000000000 02000000 01036b65790576616c7565 00036f6c64"))
>>> for record in ccl_leveldb.LogFile(pathlib.Path("000003.log")):
...     print(record.seq, record.state.name, record.user_key, record.value, record.offset)
7 Live b'key' b'value' 19
8 Deleted b'old' b'' 30

On an undamaged log it gives what ccl_leveldb gives. That is on no package index: the tests compare with
chromium-reader 0.1.1, a rewrite of it, where the names of states and types are in capitals. The deviations:

* **checksums**: Checksums are verified. ccl_leveldb does not look at them, and hands out damaged data as good.
* **goes-on**: Damage is passed over and told to the logger `cordwood`; `LogFile.reader.skipped` lists it. All sound
  records are returned, also those behind damage in the same block (the policy `"salvage"`). ccl_leveldb raises a
  `ValueError` at much of it, and what is behind is lost.
* **torn-tail**: What a crash has left of a last record is not returned. ccl_leveldb returns it as if it were whole,
  or raises a `struct.error`.
* **zeros**: Zeros up to the end of the file or of a block are passed over. ccl_leveldb raises a `ValueError`.
* **not-a-batch**: A record that is no batch, and in a batch what is neither a put nor a delete, is passed over and
  told to the logger, up to the next batch. ccl_leveldb raises, or makes something of it.
* **only-logs**: `LdbFile`, `ManifestFile` and `RawLevelDb` are not here. `cordwood.payload.VersionEdit` reads the
  records of a MANIFEST.

As in ccl_leveldb, the offset of an operation in a batch of several fragments takes no account of the headers between
them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import cordwood
from cordwood.compat._batches import batch_of, batches, operations

__all__ = ["FileType", "KeyState", "LogFile", "Record"]


class FileType(enum.Enum):
    """What kind of file a record is from: here always a log."""

    Ldb = 1
    Log = 2


class KeyState(enum.Enum):
    """What the record does to its key."""

    Deleted = 0
    Live = 1
    Unknown = 2


@dataclass(frozen=True)
class Record:
    """A put or a delete, and where it is from."""

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
        """The key. In a log, there is nothing behind it."""
        return self.key


class LogFile:
    """A write-ahead log. Iterating gives its records, from the beginning each time.

    Args:
        file: Its path. The name without suffix is a hexadecimal number.

    Raises:
        FileNotFoundError: There is none.
        ValueError: The name is no number.

    Attributes:
        path: The path.
        file_no: The number in the name.
        reader: The reader below: `skipped` and `end` tell what was not returned.
    """

    LOG_ENTRY_HEADER_SIZE = 7
    LOG_BLOCK_SIZE = 32768

    def __init__(self, file: PathLike[str]) -> None:
        self.path: PathLike[str] = file
        self.file_no: int = int(Path(file).stem, 16)
        self.reader: cordwood.Reader = cordwood.Reader(file, dialect="leveldb", on_corruption="salvage")

    def _get_batches(self) -> Iterator[tuple[int, bytes]]:
        """The records and their offsets. Private in ccl_leveldb, too, but the only way to records of other kinds."""
        self.reader.seek(0)
        return batches(self.reader)

    def __iter__(self) -> Iterator[Record]:
        path = str(self.path)
        for offset, data in self._get_batches():
            batch = batch_of(offset, data, path)
            if batch is not None:
                for found in operations(offset, batch, path):
                    state = KeyState.Live if found.is_put else KeyState.Deleted
                    yield Record(
                        key=found.key,
                        value=found.value,
                        seq=found.sequence,
                        state=state,
                        file_type=FileType.Log,
                        origin_file=self.path,
                        offset=found.offset,
                        was_compressed=False,
                    )

    def close(self) -> None:
        """Closes the file. Closing twice is no error."""
        self.reader.close()
