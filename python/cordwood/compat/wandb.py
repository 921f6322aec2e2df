"""`DataStore` from wandb 0.29.0, which reads and writes `.wandb` files; wandb 0.30.0 removed it.

Change::

    from wandb.sdk.internal.datastore import DataStore

to::

    from cordwood.compat.wandb import DataStore

and `from wandb.sdk.internal import datastore` to `from cordwood.compat import wandb as datastore`. The records are
protocol buffers. To decode them, use `wandb.proto.wandb_internal_pb2`, which newer versions of wandb still include.

>>> from cordwood.compat.wandb import DataStore
>>> class Message:
...     def SerializeToString(self):
...         return b"one"
>>> store = DataStore()
>>> store.open_for_write("run-1.wandb")
>>> store.write(Message())
(7, 17, 0)
>>> store.close()
>>> store.open_for_scan("run-1.wandb")
>>> store.scan_data(), store.scan_data()
(b'one', None)
>>> store.close()

For an undamaged file, all calls return the same results as wandb's. This module differs in the following ways:

* **exception**: Damage raises a `DamagedError`, which is an `AssertionError` and a `cordwood.CorruptionError`. wandb
  returns damaged data under `python -O`.
* **continues**: After damage, `scan_data` returns the next valid record, even in the same block.
* **torn-tail**: At an incomplete record, `scan_data` returns `None`. Once the record is complete, `scan_data` returns
  it. wandb raises an `AssertionError` unless the file was cut between two pieces.
* **length**: A header with a wrong length counts as damage, even in the last record.
* **zeros**: `scan_data` skips zeros up to the end of the file or of a block. wandb raises an `AssertionError`.
  `scan_record` raises an error where wandb returns fragments of type 0.
* **trailer**: The contents of a block's trailer do not matter.
* **old-files**: `scan_data` also reads files written by wandb-core before 0.17.6.
* **read-only**: A scanned file is opened for reading, and `write` raises an `io.UnsupportedOperation`. wandb's `write`
  overwrites the file. A file descriptor is read from the start of the file, not from the current position.
* **file-header**: A wrong file header raises a `FileHeaderError`, which is an `AssertionError`. wandb raises a
  plain `Exception` unless the header is cut short.
* **append**: `open_for_append` appends after the last record, while wandb truncates the file to 0 bytes. If the file
  doesn't end with a complete record, `open_for_append` raises a `TornTailError` or `CorruptionError`.
* **write**: `write` takes any object with a `SerializeToString` method. The file is locked. Up to 256 KiB stay in a
  buffer until you call `ensure_flushed` or `close`, or until a record is written in several pieces. The file header is
  written with the first record or by `close`. A path is required. `seek` raises an `io.UnsupportedOperation`.
* **reuse**: A store can write a second file. wandb splits that file's records in the wrong places.
* **logger**: The module has no `logger`.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from typing import Protocol, TypeAlias

import cordwood
from cordwood.compat._wandb_scanner import Scanner
from cordwood.types import Reason

__all__ = ["DamagedError", "DataStore", "FileHeaderError"]

LEVELDBLOG_HEADER_LEN = 7
LEVELDBLOG_BLOCK_LEN = 32768
LEVELDBLOG_DATA_LEN = LEVELDBLOG_BLOCK_LEN - LEVELDBLOG_HEADER_LEN

LEVELDBLOG_FULL = 1
LEVELDBLOG_FIRST = 2
LEVELDBLOG_MIDDLE = 3
LEVELDBLOG_LAST = 4

LEVELDBLOG_HEADER_IDENT = ":W&B"
LEVELDBLOG_HEADER_MAGIC = 0xBEE1
LEVELDBLOG_HEADER_VERSION = 0

_Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def strtobytes(x: str) -> bytes:
    """Returns a string as bytes, one byte for each character."""
    return x.encode("iso8859-1")


def _name_of(file: _Path | int) -> str:
    """Returns the argument of `open` as a string, for messages."""
    return str(file) if isinstance(file, int) else os.fsdecode(file)


class DamagedError(cordwood.CorruptionError, AssertionError):
    """A file is damaged. The error has the same attributes as `cordwood.CorruptionError`."""


class FileHeaderError(cordwood.CordwoodError, AssertionError):
    """A file does not start with the header of a `.wandb` file."""


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802 - as protocol buffers have it


class DataStore:
    """A `.wandb` file, opened by one of the three `open_for_...` methods. Opening another file closes the first."""

    def __init__(self) -> None:
        # These names are the same as in wandb. Scripts use them, and some set them in their own `open_for_scan`.
        self._opened_for_scan = False
        self._fp: io.BufferedIOBase | None = None
        self._fname: _Path | int = ""
        self._index = 0
        self._flush_offset = 0
        self._size_bytes = 0
        self._scanner: Scanner | None = None
        self._writer: cordwood.Writer | None = None

    def open_for_write(self, fname: _Path) -> None:
        """Creates a new file for writing.

        Raises:
            FileExistsError: The file exists.
        """
        self._write_to(fname, cordwood.Writer(os.fsdecode(fname), "x", dialect="wandb", flush="close"))

    def open_for_append(self, fname: _Path) -> None:
        """Opens a file to append after its last record, or creates a new file.

        Raises:
            CorruptionError: The file is damaged, or is not a `.wandb` file.
            TornTailError: The file ends with an incomplete record. `cordwood.Writer` can truncate it.
        """
        self.close()  # This store may be writing the same file, which must be completed first.
        self._write_to(fname, cordwood.Writer(os.fsdecode(fname), "a", dialect="wandb", flush="close"))

    def _write_to(self, fname: _Path, writer: cordwood.Writer) -> None:
        self.close()
        self._fname = fname
        self._fp = self._scanner = None
        self._writer = writer
        # The header of a new file is written with the first record.
        self._index = max(writer.tell(), LEVELDBLOG_HEADER_LEN)
        self._flush_offset = 0

    def open_for_scan(self, fname: _Path | int) -> None:
        """Opens a file for reading. The path is not used afterwards, so the file may be renamed or removed.

        Raises:
            FileHeaderError: The file is empty, or does not start with the header of a `.wandb` file.
        """
        file = open(fname, "rb")  # noqa: SIM115 - closed in `close`
        try:
            self.close()  # If this store was writing the file, it must be complete.
            file.seek(0)
            self._size_bytes = os.stat(fname).st_size
        except BaseException:
            file.close()
            raise
        self._fname = fname
        self._fp, self._writer = file, None
        self._index = 0
        self._opened_for_scan = True
        self._read_header()

    def _read_header(self) -> None:
        header = self._file().read(LEVELDBLOG_HEADER_LEN)
        self._index += len(header)  # Some scripts continue after a wrong header.

        ident, magic = strtobytes(LEVELDBLOG_HEADER_IDENT), LEVELDBLOG_HEADER_MAGIC
        if len(header) != LEVELDBLOG_HEADER_LEN:
            problem = f"the file header is {len(header)} bytes instead of the expected {LEVELDBLOG_HEADER_LEN}"
        elif struct.unpack("<4sH", header[:-1]) != (ident, magic):
            problem = f"invalid file header: {header.hex(' ')}, expected {ident.hex(' ')} and {magic:04x}"
        elif header[-1] != LEVELDBLOG_HEADER_VERSION:
            problem = f"invalid file header: version {header[-1]}, expected {LEVELDBLOG_HEADER_VERSION}"
        else:
            return
        raise FileHeaderError(problem, path=_name_of(self._fname), offset=0)

    @property
    def reader(self) -> cordwood.Reader:
        """The reader of a scanned file. `skipped` and `outcome` describe the bytes that were not returned.

        `skipped` is emptied at the end of the file, and whenever it reaches 1,000 regions.
        """
        return self._scan().reader

    def seek(self, offset: int) -> None:
        """Moves to a file offset in bytes, which must be the offset of a record or the start of a block.

        Raises:
            io.UnsupportedOperation: The file is open for writing.
        """
        self._file()
        self._index = offset

    def get_offset(self) -> int:
        """Returns a file offset in bytes: the end of the last record returned or written, or the start of damage."""
        if self._writer is None or self._writer.closed:
            self._file()
        return self._index

    def in_last_block(self) -> bool:
        """Checks whether the file ends within 32,761 bytes, based on its length when it was opened."""
        return self._index > self._size_bytes - LEVELDBLOG_DATA_LEN

    def scan_data(self) -> bytes | None:
        """Returns the next record, or `None` at the end.

        Raises:
            DamagedError: The file is damaged. The next call continues after the damage.
        """
        scanner = self._scanner
        # The script may have opened the file itself.
        if scanner is None or scanner.file is not self._fp:
            scanner = self._scan()
        if scanner.offset != self._index:
            scanner.seek(self._index)
        try:
            return scanner.scan(DamagedError)
        finally:
            self._index = scanner.offset

    def scan_record(self) -> tuple[int, bytes] | None:
        """Returns the type and the data of the next fragment, or `None` at the end. A block's trailer is not skipped.

        Raises:
            DamagedError: The file is damaged, or the fragment is not complete yet.
        """
        self._assert_opened_for_scan()
        file = self._file()
        file.seek(self._index)
        header = file.read(LEVELDBLOG_HEADER_LEN)
        if not header:
            return None
        checksum, length, kind = struct.unpack("<IHB", header.ljust(LEVELDBLOG_HEADER_LEN, b"\0"))
        data = file.read(length)
        if not (
            len(header) == LEVELDBLOG_HEADER_LEN
            and len(data) == length
            and LEVELDBLOG_FULL <= kind <= LEVELDBLOG_LAST
            and zlib.crc32(data, zlib.crc32(bytes([kind]))) == checksum
        ):
            raise DamagedError(
                f"there is no whole fragment at offset {self._index}",
                path=_name_of(self._fname),
                offset=self._index,
                length=len(header) + len(data),
                reason=Reason.CHECKSUM_MISMATCH,
            )
        self._index += LEVELDBLOG_HEADER_LEN + length
        return kind, data

    def write(self, obj: _Message) -> tuple[int, int, int]:
        """Appends the result of `obj.SerializeToString()` as a record.

        Returns:
            Three file offsets: the end of the previous record, the end of this record, and the end of the bytes on
            the disk.
        """
        return self._write_data(obj.SerializeToString())

    def _write_data(self, s: bytes) -> tuple[int, int, int]:
        if self._writer is None:
            self._file()
            raise io.UnsupportedOperation("the file is open for scanning")
        start = self._index
        record_offset = self._writer.append(s)
        self._index = self._writer.tell()
        if self._index - record_offset > LEVELDBLOG_HEADER_LEN + len(s):
            # The record has several fragments. wandb syncs here so that a crash loses at most one block.
            self._writer.sync()
            self._flush_offset = self._index
        return start, self._index, self._flush_offset

    def ensure_flushed(self, off: int) -> None:  # noqa: ARG002 - wandb's signature
        """Passes all the records written so far to the operating system."""
        if self._writer is None:
            self._file()
        else:
            self._writer.flush()

    def close(self) -> None:
        """Closes the file. Closing twice is not an error."""
        for opened in (self._writer, self._scanner, self._fp):
            if opened is not None:
                opened.close()
        self._scanner = None

    def _assert_opened_for_scan(self) -> None:
        if not self._opened_for_scan:
            raise AssertionError("file not open for scanning")
        if self._fp is None:  # A file has been opened for writing in the meantime.
            raise io.UnsupportedOperation("the file cannot be read")

    def _scan(self) -> Scanner:
        self._assert_opened_for_scan()
        file = self._file()
        if self._scanner is None or self._scanner.file is not file:
            self._scanner = Scanner(file, _name_of(self._fname), self._index)
        return self._scanner

    def _file(self) -> io.BufferedIOBase:
        """Returns the scanned file or, if there isn't one, raises the exceptions that wandb would raise."""
        opened = self._writer if self._fp is None else self._fp
        if opened is None:
            raise AttributeError("no file has been opened")
        if opened.closed:
            raise ValueError("the file is closed")
        if self._fp is None:
            raise io.UnsupportedOperation("the file is open for writing")
        return self._fp
