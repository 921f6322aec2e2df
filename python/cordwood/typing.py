"""What a reader takes and a writer writes to, and the names of options, as types for annotations."""

from os import PathLike
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
else:
    ReadableBuffer = bytes | bytearray | memoryview

__all__ = ["ColumnName", "CompressionName", "DialectName", "Readable", "ReadableBuffer", "Sink", "Source", "Writable"]

DialectName: TypeAlias = Literal["leveldb", "rocksdb", "pebble", "recyclable", "wandb", "wandb_old", "swanlab"]
"""How the bytes of a log are laid out: `cordwood.Reader` says what each name means."""

CompressionName: TypeAlias = Literal["zstd"]
"""How each record of a log is compressed."""

ColumnName: TypeAlias = Literal["offset", "record", "end_offset", "length", "path", "salvaged"]
"""A column of a table of records: `cordwood.scan` says what each has."""


class Readable(Protocol):
    """An object that gives the bytes of a file piece by piece: an open binary file, a socket's file, a response."""

    def read(self, size: int, /) -> ReadableBuffer:
        """Reads the next bytes.

        Args:
            size: How many to read at most.

        Returns:
            The bytes: at most `size`; none at the end of the file, and only there.
        """
        ...


class Writable(Protocol):
    """An object that takes the bytes of a file piece by piece."""

    def write(self, data: memoryview, /) -> int | None:
        """Writes bytes, or the first of them.

        Args:
            data: The bytes, which cannot be written to. They may be kept, and then never change.

        Returns:
            How many were written; `None` means all.
        """
        ...


Source: TypeAlias = str | PathLike[str] | ReadableBuffer | Readable
"""A path, the content of a file in memory, or an object with `read`."""

Sink: TypeAlias = str | PathLike[str] | Writable
"""A path, or an object with `write`."""
