"""Types for annotations: the sources of readers, the sinks of writers, and the names that options accept."""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as ReadableBuffer  # noqa: PLC0414 - it is public here
else:
    ReadableBuffer = bytes | bytearray | memoryview
    """An object that shows its bytes without a copy: `bytes`, a `bytearray`, a `memoryview`, an array, an `mmap`."""

DialectName: TypeAlias = Literal[
    "leveldb", "rocksdb", "pebble", "recyclable", "wandb", "wandb_old", "swanlab", "packed"
]
"""How the bytes of a log are laid out: `cordwood.Reader` explains each name."""

CompressionName: TypeAlias = Literal["zstd"]
"""How each record of a log is compressed."""

ColumnName: TypeAlias = Literal["offset", "record", "end_offset", "length", "path", "salvaged"]
"""A column of a table of records: `cordwood.scan` describes the contents of each."""

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
    """An object that returns the bytes of a file piece by piece: an open binary file, a socket's file, a response."""

    def read(self, size: int, /) -> ReadableBuffer:
        """Reads the next bytes.

        Args:
            size: How many bytes to read at most.

        Returns:
            The bytes: at most `size`; none at the end of the file, and only there.
        """
        ...


class Writable(Protocol):
    """An object that accepts the bytes of a file piece by piece."""

    def write(self, data: memoryview, /) -> int | None:
        """Writes the bytes, or only the first of them.

        Args:
            data: The bytes, read-only. They may be kept: they never change.

        Returns:
            How many were written; `None` means all.
        """
        ...


class ArrowArrayExportable(Protocol):
    """An object that exports an array of Arrow, such as a `pyarrow.Array`."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Exports it by the Arrow C data interface.

        Args:
            requested_schema: A capsule of the schema that the consumer prefers. Default: `None`.

        Returns:
            The capsules of its schema and of its content.
        """
        ...


class ArrowStreamExportable(Protocol):
    """An object that exports a stream of Arrow arrays, such as a `pyarrow.ChunkedArray` or a `polars.Series`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Exports it by the Arrow C stream interface.

        Args:
            requested_schema: A capsule of the schema that the consumer prefers. Default: `None`.

        Returns:
            The capsule of the stream.
        """
        ...


class RangeReadable(Protocol):
    """A file from which any range can be read, such as an object in a store.

    It may have an attribute `name`, a `str`, for errors and reports. Ranges are requested ahead, by several threads at
    once.
    """

    def size(self) -> int:
        """The length of the file in bytes. It is requested once, when the file is opened."""
        ...

    def read_range(self, start: int, end: int, /) -> ReadableBuffer:
        """Reads the bytes `[start, end)`.

        Args:
            start: File offset of the first byte.
            end: File offset after the last byte; not after the end of the file.

        Returns:
            All of the bytes: returning fewer is an error, as is raising an exception. There are no retries.
        """
        ...


class FsspecFile(Protocol):
    """A file on an fsspec file system: an `fsspec.OpenFile`, or a `UPath` of universal_pathlib."""

    @property
    def fs(self) -> object:
        """The file system, an `AbstractFileSystem`."""
        ...

    @property
    def path(self) -> str:
        """The path on it."""
        ...


class ObjectStore(Protocol):
    """An obstore store, such as `obstore.store.S3Store`."""

    def head(self, path: str, /) -> Mapping[str, Any]:
        """Looks an object up.

        Args:
            path: Its path in the store.

        Returns:
            Its metadata: its length is `"size"`.
        """
        ...

    def get_range(self, path: str, /, *, start: int, end: int) -> ReadableBuffer:
        """Reads the bytes `[start, end)` of an object.

        Args:
            path: Its path in the store.
            start: The offset of the first byte.
            end: The offset after the last byte.

        Returns:
            The bytes.
        """
        ...


Source: TypeAlias = (
    str | PathLike[str] | ReadableBuffer | Readable | RangeReadable | FsspecFile | tuple[ObjectStore, str]
)
"""A path or a URL; the content of a file in memory; an object with `read` or `read_range`; or a file in a store."""

Sink: TypeAlias = str | PathLike[str] | Writable
"""A path, or an object with `write`."""
