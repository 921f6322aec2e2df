"""The stores of SwanLab 0.10.3: of its own run files, and its reader of `.wandb` files.

Change

    from swanlab.sdk.internal.core_python.store import DataStoreReader, DataStoreWriter
    from swanlab.converter.wb.wbdatastore import WBDataStoreReader, DataStoreCorruptionError, DataStoreTruncatedError
    from swanlab.exceptions import DataStoreError

to

    from cordwood.compat.swanlab import DataStoreReader, DataStoreWriter
    from cordwood.compat.swanlab import WBDataStoreReader, DataStoreCorruptionError, DataStoreTruncatedError
    from cordwood.compat.swanlab import DataStoreError

>>> from cordwood.compat.swanlab import DataStoreReader, DataStoreWriter
>>> writer = DataStoreWriter()
>>> writer.open("run.swanlab")
>>> writer.write(b"one")
>>> writer.close()
>>> reader = DataStoreReader()
>>> reader.open("run.swanlab")
>>> list(reader)
[b'one']
>>> reader.close()

On an undamaged file, all calls return what SwanLab's return. The deviations:

* **raises**: Iterating over a `DataStoreReader` raises `DataStoreCorruptionError` at damage. SwanLab's iteration
  ends there, as if it were the end of the file.
* **exception**: At damage, `scan` of a `DataStoreReader` raises `DataStoreCorruptionError`, which is a
  `DataStoreError`, and a `cordwood.CorruptionError` with offset and reason. SwanLab's raises a `DataStoreError`, an
  `AssertionError` or an `IndexError`.
* **goes-on**: After damage, the next step of any reader goes on behind it: all sound records are returned, also
  those in the same block (the policy `"salvage"`). SwanLab's goes on at the place that the length in the damaged
  header gives, right or wrong.
* **torn-tail**: The incomplete end of a run that was killed or is still running ends `scan` of a `DataStoreReader`:
  it returns `None`, and a later call returns the record once it is complete. SwanLab's raises or returns `None`,
  depending on where the file is cut. A `WBDataStoreReader` raises `DataStoreTruncatedError`, as SwanLab's; the next
  call tries again.
* **length**: A length in a header that is not that of the data is damage. SwanLab's `DataStoreReader` takes a last
  record with such a header for whole; its `WBDataStoreReader` calls that truncated.
* **zeros**: Zeros up to the end of the file or of a block, as a preallocated file has them, are passed over.
  SwanLab's readers raise; an iteration ends.
* **trailer**: What stands in a block's trailer does not matter, and the file may end in front of it or in it.
  SwanLab's readers raise; an iteration ends.
* **old-files**: A `WBDataStoreReader` reads files of wandb-core before 0.17.6, which have other checksums.
  SwanLab's does not.
* **file-header**: A file header that is cut short is a `DataStoreError` in a `DataStoreReader`, too. SwanLab's is
  an `AssertionError`. A file with a wrong header is not open then; SwanLab's `DataStoreReader` reads on behind it.
* **descriptor**: A file descriptor is read from the file's beginning, in SwanLab's readers from where it stands.
* **attributes**: All errors have `path` and `offset`, as any `cordwood.CordwoodError`, and cannot be made without
  them.
* **not-open**: `next` of a `DataStoreReader` that is not open is an `AssertionError`, as `iter` and `scan` are in
  both. SwanLab's is a `StopIteration`.
* **close**: Any `close` can be called twice. That of SwanLab's `DataStoreReader` and `DataStoreWriter` is an
  `AssertionError` then.
* **reuse**: A writer can write a second file. SwanLab's goes on counting where the first one ended, and so cuts the
  records of the second in the wrong places.
* **write**: A file that is written is locked against a second writer. Records are gathered: SwanLab's are in
  Python's buffer of 8 KiB, these in one of 1 MiB, until `ensure_flushed` or `close`. The file header is written
  with the first record, or by `close`. A path is needed, not a file descriptor.
* **names**: `console` and `safe`, by which SwanLab's store tells of damage, are not here; the store tells by raising.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Protocol, Self, TypeAlias

import cordwood
from cordwood.compat._store import HEADER_LEN, Scanner, check_file_header, name_of

__all__ = [
    "DataStoreCorruptionError",
    "DataStoreError",
    "DataStoreReader",
    "DataStoreTruncatedError",
    "DataStoreWriter",
    "DataStoreWriterProtocol",
    "NullDataStoreWriter",
    "WBDataStoreReader",
]

LEVELDBLOG_HEADER_LEN = 7
LEVELDBLOG_BLOCK_LEN = 32768
LEVELDBLOG_DATA_LEN = LEVELDBLOG_BLOCK_LEN - LEVELDBLOG_HEADER_LEN

LEVELDBLOG_FULL = 1
LEVELDBLOG_FIRST = 2
LEVELDBLOG_MIDDLE = 3
LEVELDBLOG_LAST = 4
LEVELDBLOG_TYPES = (LEVELDBLOG_FULL, LEVELDBLOG_FIRST, LEVELDBLOG_MIDDLE, LEVELDBLOG_LAST)

LEVELDBLOG_HEADER_IDENT = b":SWL"
LEVELDBLOG_HEADER_MAGIC = 0xE1D6
LEVELDBLOG_HEADER_VERSION = 2

WANDB_HEADER_IDENT = b":W&B"
WANDB_HEADER_MAGIC = 0xBEE1
WANDB_HEADER_VERSION = 0

_Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class DataStoreError(cordwood.CordwoodError):
    """A file that cannot be read, in whole or in part."""


class DataStoreCorruptionError(DataStoreError, cordwood.CorruptionError):
    """Damage. Its attributes are those of `cordwood.CorruptionError`."""


class DataStoreTruncatedError(DataStoreError):
    """The file ends in a record that is not complete, at `offset`."""


class DataStoreWriterProtocol(Protocol):
    """What a writer of records can do."""

    def open(self, filename: Path | str) -> None:
        """Makes a new file."""

    def write(self, data: bytes) -> None:
        """Appends a record."""

    def ensure_flushed(self) -> None:
        """Hands all records so far to the operating system."""

    def close(self) -> None:
        """Closes the file."""


class DataStoreWriter:
    """Writes a run file of SwanLab."""

    def __init__(self) -> None:
        self._writer: cordwood.Writer | None = None

    def open(self, filename: _Path) -> None:
        """Makes a new file, and closes the one before, if that is open.

        Raises:
            FileExistsError: There is one.
        """
        writer = cordwood.Writer(os.fsdecode(filename), "x", dialect="swanlab", flush="close")
        self.close()
        self._writer = writer

    def write(self, data: bytes) -> None:
        """Appends a record."""
        self._open_writer().append(data)

    def ensure_flushed(self) -> None:
        """Hands all records so far to the operating system."""
        self._open_writer().flush()

    def close(self) -> None:
        """Writes what is left and closes the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open_writer(self) -> cordwood.Writer:
        if self._writer is None:
            raise AssertionError("the writer is not open")
        return self._writer


class NullDataStoreWriter:
    """A writer that writes nothing."""

    def open(self, filename: Path | str) -> None:
        """Does nothing."""

    def write(self, data: bytes) -> None:
        """Does nothing."""

    def ensure_flushed(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class _Reader:
    """A file with a header, and the records behind it."""

    _dialects: tuple[str, ...]
    _header: tuple[bytes, int, int]

    def __init__(self) -> None:
        self._scanner: Scanner | None = None

    def open(self, filename: _Path | int) -> None:
        """Opens a file and looks at its header. The path is not looked at again.

        Raises:
            DataStoreError: It is another one, or another version's.
        """
        name = name_of(filename)
        file = open(filename, "rb")  # noqa: PTH123, SIM115 - closed in `close`
        try:
            self.close()
            file.seek(0)
            header = file.read(HEADER_LEN)
            check_file_header(header, *self._header, lambda message: self._header_problem(message, header, name))
            self._scanner = Scanner(file, name, self._dialects, HEADER_LEN)
        except BaseException:
            file.close()
            raise

    def close(self) -> None:
        """Closes the file. Closing twice is no error."""
        if self._scanner is not None:
            self._scanner.close()
            self._scanner.file.close()
            self._scanner = None

    def scan(self) -> bytes | None:
        """The next record, or `None` at the end.

        Raises:
            DataStoreCorruptionError: There is damage. The next call goes on behind it.
        """
        return self._open_scanner().scan(DataStoreCorruptionError)

    @property
    def reader(self) -> cordwood.Reader:
        """The reader below: `skipped` and `end` tell what was not returned.

        `skipped` begins anew at an end, and when there are 1,000 regions.
        """
        return self._open_scanner().reader

    def _open_scanner(self) -> Scanner:
        if self._scanner is None:
            raise self._not_open()
        return self._scanner

    def _not_open(self) -> Exception:
        return AssertionError("the reader is not open")

    def _header_problem(self, message: str, _header: bytes, path: str) -> DataStoreError:
        return DataStoreError(message, path=path, offset=0)


class DataStoreReader(_Reader):
    """Reads a run file of SwanLab. Iterating gives its records."""

    _dialects = ("swanlab",)
    _header = (LEVELDBLOG_HEADER_IDENT, LEVELDBLOG_HEADER_MAGIC, LEVELDBLOG_HEADER_VERSION)

    def __iter__(self) -> Self:
        self._open_scanner()
        return self

    def __next__(self) -> bytes:
        record = self.scan()
        if record is None:
            raise StopIteration
        return record


class WBDataStoreReader(_Reader):
    """Reads a `.wandb` file."""

    _dialects = ("wandb", "wandb_old")
    _header = (WANDB_HEADER_IDENT, WANDB_HEADER_MAGIC, WANDB_HEADER_VERSION)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, filename: _Path | int) -> None:
        """Opens a file and looks at its header. The path is not looked at again.

        Raises:
            DataStoreCorruptionError: It is no `.wandb` file.
            DataStoreError: It is another version's; or a file is open already.
            DataStoreTruncatedError: It ends in the header.
        """
        if self._scanner is not None:
            raise DataStoreError("a file is open already", path=name_of(filename), offset=0)
        super().open(filename)

    def scan(self) -> bytes | None:
        """The next record, or `None` at the end.

        Raises:
            DataStoreCorruptionError: There is damage. The next call goes on behind it.
            DataStoreTruncatedError: The file ends in a record that is not complete. The next call tries again.
        """
        record = super().scan()
        if record is None:
            end = self.reader.end
            if end is not None and end.kind == "torn_tail":
                message = f"the file ends in an incomplete record, which begins at offset {end.offset}"
                raise DataStoreTruncatedError(message, path=self._open_scanner().name, offset=end.offset)
        return record

    def _not_open(self) -> Exception:
        return DataStoreError("the reader is not open", path=None, offset=0)

    def _header_problem(self, message: str, header: bytes, path: str) -> DataStoreError:
        if len(header) < HEADER_LEN:
            return DataStoreTruncatedError(message, path=path, offset=0)
        if header[:-1] != struct.pack("<4sH", WANDB_HEADER_IDENT, WANDB_HEADER_MAGIC):
            return DataStoreCorruptionError(
                message, path=path, offset=0, length=HEADER_LEN, reason=cordwood.Reason.BAD_FILE_HEADER
            )
        return super()._header_problem(message, header, path)
