"""Types for annotations: sources for readers, sinks for writers, and the names that options accept."""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as ReadableBuffer  # noqa: PLC0414 - it is public here
else:
    ReadableBuffer = bytes | bytearray | memoryview
    """An object that exposes its bytes without a copy: `bytes`, `bytearray`, `memoryview`, an array, or an `mmap`."""

DialectName: TypeAlias = Literal[
    "leveldb", "rocksdb", "pebble", "recyclable", "wandb", "wandb_old", "swanlab", "packed"
]
"""The name of a dialect, which defines how the bytes of a log are laid out. `cordwood.Reader` explains each name."""

CompressionName: TypeAlias = Literal["zstd"]
"""The name of the compression method used for each record in a log."""

ColumnName: TypeAlias = Literal["offset", "record", "end_offset", "length", "path", "salvaged"]
"""The name of a column in a table of records. `cordwood.scan` describes each column."""

DecoderName: TypeAlias = Literal[
    "raw",
    "write-batch",
    "version-edit",
    "live-files",
    "entity",
    "json",
    "wandb-run",
    "wandb-history",
    "wandb-summary",
    "wandb-config",
    "wandb-metrics",
    "wandb-output",
    "wandb",
    "swanlab-history",
]
"""The kinds of records that `cordwood.scan` decodes."""


class Readable(Protocol):
    """An object that returns the bytes of a file in pieces, such as an open binary file or an HTTP response."""

    def read(self, size: int, /) -> ReadableBuffer:
        """Reads the next bytes.

        Args:
            size: The maximum number of bytes to read.

        Returns:
            At most `size` bytes. An empty result (`b""`) means the end of the file.
        """
        ...


class Writable(Protocol):
    """An object that accepts the bytes of a file in pieces."""

    def write(self, data: memoryview, /) -> int | None:
        """Writes all of the bytes, or only the first few.

        Args:
            data: The bytes, which are read-only. You may keep a reference to them, because they never change.

        Returns:
            The number of bytes written. `None` means all of them.
        """
        ...


class ArrowArrayExportable(Protocol):
    """An object that exports an Arrow array, such as a `pyarrow.Array`."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Exports the array through the Arrow C data interface.

        Args:
            requested_schema: A capsule with the schema that the consumer prefers. Default: `None`.

        Returns:
            One capsule with the schema and one with the content.
        """
        ...


class ArrowStreamExportable(Protocol):
    """An object that exports a stream of Arrow arrays, such as a `pyarrow.ChunkedArray` or a `polars.Series`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Exports the stream through the Arrow C stream interface.

        Args:
            requested_schema: A capsule with the schema that the consumer prefers. Default: `None`.

        Returns:
            The capsule with the stream.
        """
        ...


class RangeReadable(Protocol):
    """A file from which any range can be read, such as an object in a store.

    The file may have a `name` attribute, a `str` that is used in errors and reports. To read ahead, several threads
    call `read_range` concurrently.
    """

    def size(self) -> int:
        """Returns the length of the file in bytes. Called once, when the file is opened."""
        ...

    def read_range(self, start: int, end: int, /) -> ReadableBuffer:
        """Reads the bytes `[start, end)`.

        Args:
            start: The file offset of the first byte.
            end: The file offset after the last byte, never past the end of the file.

        Returns:
            All of the bytes. If the method returns fewer bytes or raises an exception, the read fails and is not
            retried.
        """
        ...


class FsspecFile(Protocol):
    """A file on an fsspec file system: an `fsspec.OpenFile`, or a `UPath` from universal_pathlib."""

    @property
    def fs(self) -> object:
        """The file system, an `AbstractFileSystem`."""
        ...

    @property
    def path(self) -> str:
        """The path on the file system."""
        ...


class ObjectStore(Protocol):
    """An obstore store, such as `obstore.store.S3Store`."""

    def head(self, path: str, /) -> Mapping[str, Any]:
        """Looks up an object.

        Args:
            path: The path of the object in the store.

        Returns:
            The object's metadata, which includes its length as `"size"`.
        """
        ...

    def get_range(self, path: str, /, *, start: int, end: int) -> ReadableBuffer:
        """Reads the bytes `[start, end)` of an object.

        Args:
            path: The path of the object in the store.
            start: The offset of the first byte.
            end: The offset after the last byte.

        Returns:
            The bytes.
        """
        ...


Source: TypeAlias = (
    str | PathLike[str] | ReadableBuffer | Readable | RangeReadable | FsspecFile | tuple[ObjectStore, str]
)
"""A path, a URL, the content of a file in memory, an object with `read` or `read_range`, or a file in a store."""

Sink: TypeAlias = str | PathLike[str] | Writable
"""A path, or an object with `write`."""
