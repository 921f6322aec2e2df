"""Implements `cordwood.map`, which draws a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from os.path import basename
from typing import Any, Literal, NamedTuple, overload

import cordwood
from cordwood._map.cells import Category
from cordwood._map.svg import FRAGMENTS_MAX, document, picture_of
from cordwood.typing import CompressionName, DialectName, FsspecFile, ObjectStore, RangeReadable, ReadableBuffer


class LogMap(NamedTuple):
    """A picture of a log, as returned by `cordwood.map`. Notebooks display it.

    Attributes:
        path: The path of the log, or `None` if the source has no path.
        dialect: The dialect of the log, which defines how its bytes are laid out.
        file_len: The length of the log in bytes.
        damaged_len: The number of bytes with severity `"corruption"`: those that are damaged and those lost because of
            the damage.
        torn_len: The number of bytes in the torn tail.
        svg: The picture as an SVG document in one `<svg>` element. You can write the document to a file or embed it
            in a page.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> cordwood.map("example.log").svg[:36]
    '<svg xmlns="http://www.w3.org/2000/s'
    """

    path: str | None
    dialect: DialectName
    file_len: int
    damaged_len: int
    torn_len: int
    svg: str

    def __repr__(self) -> str:
        return (
            f"LogMap(path={self.path!r}, dialect={self.dialect!r}, file_len={self.file_len}, "
            f"damaged_len={self.damaged_len}, torn_len={self.torn_len}, svg=<{len(self.svg):,} characters>)"
        )

    def _repr_html_(self) -> str:
        return self.svg


@overload
def map(  # type: ignore[overload-overlap]  # noqa: A001 - as the verb of the command; a `str` is an iterable, too
    source: str | PathLike[str] | ReadableBuffer | RangeReadable | FsspecFile | tuple[ObjectStore, str],
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> LogMap | Any: ...
@overload
def map(  # noqa: A001
    source: Iterable[str | PathLike[str]],
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> cordwood.Results[LogMap]: ...
def map(  # noqa: A001
    source: Any,
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> LogMap | cordwood.Results[LogMap]:
    """Draws a picture of a log, showing where its records and damage are.

    The log is read twice with the `"salvage"` policy, which takes about a second per GiB. Memory use doesn't depend on
    the log's length. The picture is the same one that `cordwood map --svg` draws. It doesn't need scripts or other
    files, and is as wide as the page allows.

    Args:
        source: A path, a URL, a buffer with the content of a file, or a file in a store, but not an open file. For many
            logs, pass a directory with logs in it or in its subdirectories, a pattern such as `"*.log"`, or a list of
            these.
        dialect: Same as for `Reader`. Default: `None`, which detects the dialect.
        log_number: Same as for `Reader`. Default: `None`.
        compression: Same as for `Reader`. Default: `None`.
        storage_options: Same as for `Reader`. Default: `None`.

    Returns:
        The picture. For many logs, a `Results` that maps each log's name to its picture.

    Raises:
        DialectError: The file is not a log.
        OSError: The file is missing or cannot be read.
        OverflowError: A number is negative or too large.
        TypeError: `source` can only be read once, like an open file.
        ValueError: An option has an invalid value or doesn't apply to the dialect.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> cordwood.map("example.log").damaged_len
    0
    """
    log = {"dialect": dialect, "log_number": log_number, "compression": compression}
    return cordwood.Results.of(_map_of, source, storage_options=storage_options, **log)


def _map_of(source: Any, **log: Any) -> LogMap:
    if hasattr(source, "read") and not _is_buffer(source):
        raise TypeError("map reads a log several times: pass its path, or its content, not an open file")
    with cordwood.Reader(source, **log) as reader:
        path = reader.path
    picture = picture_of(lambda: source, log, basename(path or "log"), FRAGMENTS_MAX)
    cells, totals = picture.cells, picture.cells.totals
    damaged_len = totals[Category.DAMAGE] + totals[Category.LOST]
    return LogMap(path, cells.log.dialect, cells.file_len, damaged_len, totals[Category.TORN], document([picture]))


def _is_buffer(source: object) -> bool:
    try:
        memoryview(source)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True
