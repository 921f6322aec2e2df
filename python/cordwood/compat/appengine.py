"""`RecordsReader` and `RecordsWriter` of App Engine, the format of Datastore's exports and of MapReduce.

They are those of `google.appengine.api.files.records` in the App Engine SDK for Python 2.7, as of December 2014. That
runs on Python 2 only; leveldb-export's copy of the reader runs on Python 3, and is what the tests compare with. The
bytes of the writer are compared with those of LevelDB. Change

    from google.appengine.api.files import records

to

    from cordwood.compat import appengine as records

>>> import io
>>> from cordwood.compat import appengine as records
>>> file = io.BytesIO()
>>> with records.RecordsWriter(file) as writer:
...     writer.write(b"one")
>>> _ = file.seek(0)
>>> list(records.RecordsReader(file))
[b'one']

On an undamaged file, the reader returns and the writer writes what theirs do. Damage is skipped up to the next
block, and told to a logger, as theirs do. The deviations:

* **logger**: The logger is `cordwood`, not the root. `RecordsReader.reader.skipped` lists what was skipped.
* **unknown-type**: A fragment of an unknown type is skipped alone, as LevelDB does. Theirs skips the rest
  of its block.
* **joined**: A record in the middle of which something was skipped is not returned. Theirs joins the pieces around
  a block of zeros.
* **read-ahead**: The file is read ahead: `RecordsReader.tell` says where the records are, the file's own `tell`
  does not. The file must not be moved but by `RecordsReader.seek`.
* **torn-tail**: At the end, `tell` is where an incomplete record begins, and once it is whole, `read` returns it,
  if the file can seek. Theirs is after what it could read, and returns nothing more.
* **tell**: In damage, `tell` may be elsewhere: it is after what was skipped so far.
* **append**: A writer on a file that is not at the beginning of a block continues in the next one, and fills this one
  with zeros; so does one that is written to after `close`. Theirs mistakes the one place for the beginning of a block,
  the other for the middle of one, and readers lose what is written there.
* **close**: Closing twice fills one block. Theirs writes as many zeros again, after the end of the block.
* **only-read**: A file needs no `tell`. Its position is then offset 0; theirs raises an `AttributeError`.
* **bytes**: Records are bytes: `str` is a `TypeError`, and so is a file that is open for text.
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

_WHENCE_CURRENT = 1


class Error(Exception):
    """The base of `InvalidRecordError`."""


class InvalidRecordError(Error):
    """What no reader raises, neither here nor in the original: damage is skipped."""


class FileWriter:
    """What a writer needs. A file need not be one of these."""

    def write(self, data: bytes) -> object:
        """Takes all of `data`."""
        raise NotImplementedError


class FileReader:
    """What a reader needs. A file need not be one of these."""

    def read(self, size: int) -> bytes:
        """The next bytes; fewer than `size` at the end only."""
        raise NotImplementedError

    def tell(self) -> int:
        """The file offset."""
        raise NotImplementedError


def _position_of(file: object) -> int:
    """Where a file is; 0 if it does not know."""
    try:
        return int(file.tell())  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return 0


class _Log:
    """A file as the log that begins at its offset 0, wherever its position is. It is moved only if necessary."""

    def __init__(self, file: Readable) -> None:
        self.file: Any = file
        self.position = _position_of(file)
        self._is_before = False

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return 0

    def seek(self, offset: int) -> int:
        # A reader begins with the byte before, which shows that the file goes so far. It is not looked at.
        self._is_before = offset == self.position - 1 and not hasattr(self.file, "seek")
        if offset != self.position and not self._is_before:
            if not hasattr(self.file, "seek"):
                raise io.UnsupportedOperation("the file cannot seek")
            self.file.seek(offset)
            self.position = offset
        return offset

    def read(self, size: int) -> Any:
        if self._is_before:
            self._is_before = False
            return b"\0"
        data = self.file.read(size)
        if data is not None:
            self.position += len(data)
        return data


class RecordsReader:
    """Reads the records of a log. Iterating gives those from the current position on, as `bytes`.

    Args:
        reader: A binary file, or another object with `read`. With `tell`, the position is that of the file; offsets are
            counted from the file's beginning.
    """

    def __init__(self, reader: Readable) -> None:
        self._log = _Log(reader)
        position = self._log.position
        self.reader: cordwood.Reader = cordwood.Reader(self._log, dialect="leveldb", on_corruption="skip")
        """The reader below: `skipped` and `outcome` say what was not returned."""
        if position:
            self.reader.seek(position)

    def read(self) -> bytes:
        """The next record.

        Raises:
            EOFError: There is none.
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
        """Reads at the end again: the file may have grown. One that cannot seek has ended."""
        if self.reader.outcome.kind != "unfinished":
            with contextlib.suppress(io.UnsupportedOperation):
                self.reader.seek(self.reader.tell())

    def tell(self) -> int:
        """The file offset after what has been returned or skipped, in bytes."""
        return self.reader.tell()

    def seek(self, offset: int, whence: int = 0) -> int:
        """Goes to a file offset: one that `tell` returned, or the beginning of a block.

        Args:
            offset: In bytes.
            whence: From where on it counts, as for a file.

        Raises:
            AttributeError: The file has no `seek`.
        """
        if whence == _WHENCE_CURRENT:
            offset, whence = self.tell() + offset, 0
        file = self._log.file
        file.seek(offset, whence)  # It refuses what it cannot do.
        self._log.position = position = int(file.tell())
        self.reader.seek(position)
        return position


class _Writable(Protocol):
    def write(self, data: bytes, /) -> int | None: ...


class _OnlyWrite:
    """A file without its other methods, which gets `bytes`, as from the original."""

    def __init__(self, file: _Writable) -> None:
        self._write = file.write

    def write(self, data: memoryview) -> int | None:
        return self._write(bytes(data))


class RecordsWriter:
    """Writes records to a log, inside a `with` statement. Each is handed to the file at once.

    Args:
        writer: A binary file, or another object with `write`. It stays open.
        _pad_last_block: Fill the last block with zeros at the end. Default: `True`.
    """

    def __init__(self, writer: _Writable, _pad_last_block: bool = True) -> None:  # noqa: FBT001, FBT002 - theirs
        self._file = writer
        self._pads = _pad_last_block
        self._has_entered = False
        used = _position_of(writer) % BLOCK_SIZE
        if used:
            writer.write(bytes(BLOCK_SIZE - used))
        self._begin_block()

    def _begin_block(self) -> None:
        # Without the file's `flush`: what is written goes into the file's own buffer.
        self._writer = cordwood.Writer(_OnlyWrite(self._file), "w")

    def write(self, data: ReadableBuffer) -> None:
        """Appends a record: `bytes` or any other buffer.

        Raises:
            RuntimeError: This is not inside `with`.
        """
        if not self._has_entered:
            raise RuntimeError("write to a RecordsWriter inside a 'with' statement only")
        self._writer.append(data)
        self._writer.flush()

    def close(self) -> None:
        """Fills the last block with zeros, unless told not to. The file stays open."""
        if not self._pads:
            return
        used = self._writer.tell() % BLOCK_SIZE
        if used:
            self._writer.close()
            self._file.write(bytes(BLOCK_SIZE - used))
            self._begin_block()

    def __enter__(self) -> Self:
        self._has_entered = True
        return self

    def __exit__(self, atype: object, value: object, traceback: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Theirs need not be closed, so neither must this one warn that it was not. If the last write failed, that has
        # been raised; it fails again here.
        with contextlib.suppress(Exception):
            self._writer.close()
