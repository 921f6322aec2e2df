"""App Engine's `RecordsReader` and `RecordsWriter`, for the format of Datastore exports and of MapReduce.

The originals are in `google.appengine.api.files.records` in the App Engine SDK for Python 2.7, as of December 2014. The
SDK runs only on Python 2, so the tests compare the reader with the Python 3 copy in leveldb-export. They compare the
writer's bytes with LevelDB's. Change::

    from google.appengine.api.files import records

to::

    from cordwood.compat import appengine as records

>>> import io
>>> from cordwood.compat import appengine as records
>>> file = io.BytesIO()
>>> with records.RecordsWriter(file) as writer:
...     writer.write(b"one")
>>> _ = file.seek(0)
>>> list(records.RecordsReader(file))
[b'one']

For an undamaged file, the reader and the writer give the same results as Google's. Like Google's reader, this one
reports damage to a logger and continues at the next block. This module differs in the following ways:

* **logger**: The logger is `cordwood`, not the root logger. `RecordsReader.reader.skipped` lists the skipped regions.
* **unknown-type**: A fragment of an unknown type is skipped, but not the rest of its block.
* **joined**: A record is not returned if a part of it was skipped. The original joins the pieces around a block of
  zeros.
* **read-ahead**: The file's own position can be ahead of the reader's. Use `RecordsReader.tell` and
  `RecordsReader.seek`, not the file's own methods.
* **torn-tail**: At the end of a file, `tell` returns the start of an incomplete record, if there is one. If the file
  is seekable, `read` returns the record once it is complete.
* **tell**: At damage, `tell` returns the end of the regions skipped so far. The original may return another offset.
* **append**: A writer that starts inside a block fills the block with zeros and continues in the next one. So does a
  writer that is used after `close`. Readers lose the records that the original writes there.
* **close**: Closing twice fills only one block. The original writes the same number of zeros again.
* **only-read**: A file without `tell` is assumed to be at position 0.
* **bytes**: A `str` or a file in text mode raises a `TypeError`.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any, Protocol, Self

import cordwood
from cordwood.typing import Readable, ReadableBuffer

__all__ = ["Error", "FileReader", "FileWriter", "InvalidRecordError", "RecordsReader", "RecordsWriter"]

BLOCK_SIZE = 32768
HEADER_FORMAT = "<IHB"
HEADER_LENGTH = 7

RECORD_TYPE_NONE = 0
RECORD_TYPE_FULL = 1
RECORD_TYPE_FIRST = 2
RECORD_TYPE_MIDDLE = 3
RECORD_TYPE_LAST = 4


class Error(Exception):
    """The base class of `InvalidRecordError`."""


class InvalidRecordError(Error):
    """An invalid record. Neither this reader nor the original raises it, because both skip damage."""


class FileWriter:
    """The methods that a writer needs. A file doesn't have to be an instance of this class."""

    def write(self, data: bytes) -> object:
        """Writes all of `data`."""
        raise NotImplementedError


class FileReader:
    """The methods that a reader needs. A file doesn't have to be an instance of this class."""

    def read(self, size: int) -> bytes:
        """Returns the next `size` bytes, or fewer bytes at the end of the file."""
        raise NotImplementedError

    def tell(self) -> int:
        """Returns the file offset."""
        raise NotImplementedError


def _position_of(file: object) -> int:
    """Returns the position of a file, or 0 if it has none."""
    try:
        return int(file.tell())  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return 0


class _Log:
    """Presents a file as a log that starts at offset 0. Moves the file's position only if necessary."""

    def __init__(self, file: Readable) -> None:
        self.file: Any = file
        self.position = _position_of(file)
        self._is_before = False

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return 0

    def seek(self, offset: int) -> None:
        # A reader starts one byte earlier to check that the file is long enough, but ignores the byte's value.
        self._is_before = offset == self.position - 1 and not hasattr(self.file, "seek")
        if offset != self.position and not self._is_before:
            if not hasattr(self.file, "seek"):
                raise io.UnsupportedOperation("the file cannot seek")
            self.file.seek(offset)
            self.position = offset

    def read(self, size: int) -> Any:
        if self._is_before:
            self._is_before = False
            return b"\0"
        data = self.file.read(size)
        if data is not None:
            self.position += len(data)
        return data


class RecordsReader:
    """Reads the records in a log. Iterating yields records from the current position onward, as `bytes`.

    Args:
        reader: A binary file, or another object with `read`. If it has a `tell` method, reading starts at its current
            position. Offsets are counted from the start of the file.
    """

    def __init__(self, reader: Readable) -> None:
        self._log = _Log(reader)
        position = self._log.position
        self.reader: cordwood.Reader = cordwood.Reader(self._log, dialect="leveldb", on_corruption="skip")
        """The underlying reader, whose `skipped` and `outcome` describe the bytes that were not returned."""
        if position:
            self.reader.seek(position)

    def read(self) -> bytes:
        """Returns the next record.

        Raises:
            EOFError: There are no more records.
        """
        self._resume()
        record = next(self.reader, None)
        if record is None:
            raise EOFError(f"no more records at offset {self.tell()}")
        return record

    def __iter__(self) -> Iterator[bytes]:
        self._resume()
        yield from self.reader

    def _resume(self) -> None:
        """Resumes reading at the end of a seekable file, because the file may have grown."""
        if self.reader.outcome.kind != "unfinished":
            with contextlib.suppress(io.UnsupportedOperation):
                self.reader.seek(self.reader.tell())

    def tell(self) -> int:
        """Returns the file offset, in bytes, after the last record or skipped region."""
        return self.reader.tell()

    def seek(self, offset: int, whence: int = 0) -> int:
        """Moves to a file offset that `tell` returned, or to the start of a block.

        Args:
            offset: The offset in bytes.
            whence: The origin of the offset, as in `io.IOBase.seek`.

        Raises:
            AttributeError: The file has no `seek` method.
        """
        if whence == io.SEEK_CUR:
            offset, whence = self.tell() + offset, 0
        file = self._log.file
        file.seek(offset, whence)  # The file refuses calls that it does not support.
        self._log.position = position = int(file.tell())
        self.reader.seek(position)
        return position


class _Writable(Protocol):
    def write(self, data: bytes, /) -> int | None: ...


class _OnlyWrite:
    """A file that only has `write`. As in the original, it receives the data as `bytes`."""

    def __init__(self, file: _Writable) -> None:
        self._write = file.write

    def write(self, data: memoryview) -> int | None:
        return self._write(bytes(data))


class RecordsWriter:
    """Writes records to a log, inside a `with` statement. Each record is passed to the file immediately.

    Args:
        writer: A binary file, or another object with `write`. The file stays open.
        _pad_last_block: Whether to fill the last block with zeros on closing. Default: `True`.
    """

    def __init__(self, writer: _Writable, _pad_last_block: bool = True) -> None:  # noqa: FBT001, FBT002 - theirs
        self._file = writer
        self._pads = _pad_last_block
        self._has_entered = False
        if padding_len := -_position_of(writer) % BLOCK_SIZE:
            writer.write(bytes(padding_len))
        self._start_block()

    def _start_block(self) -> None:
        # The writer does not call the file's `flush`, so written bytes may remain in the file's own buffer.
        self._writer = cordwood.Writer(_OnlyWrite(self._file), "w")

    def write(self, data: ReadableBuffer) -> None:
        """Appends a record, given as `bytes` or any other buffer.

        Raises:
            RuntimeError: The call is not inside a `with` statement.
        """
        if not self._has_entered:
            raise RuntimeError("write to a RecordsWriter inside a 'with' statement only")
        self._writer.append(data)
        self._writer.flush()

    def close(self) -> None:
        """Fills the last block with zeros, unless `_pad_last_block` is false. The file stays open."""
        if not self._pads:
            return
        if padding_len := -self._writer.tell() % BLOCK_SIZE:
            self._writer.close()
            self._file.write(bytes(padding_len))
            self._start_block()

    def __enter__(self) -> Self:
        self._has_entered = True
        return self

    def __exit__(self, atype: object, value: object, traceback: object) -> None:
        self.close()

    def __del__(self) -> None:
        # The original doesn't have to be closed, so this writer must not warn if left open. If the last write failed,
        # its error has already been raised, and the write would fail again here.
        with contextlib.suppress(Exception):
            self._writer.close()
