"""Turns sources that are read in ranges, such as objects in a store, into file objects that read ahead.

The binding calls `file_of` for each source that isn't a path or a buffer. The packages for a kind of source are
imported when the first such source is opened.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import re
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from cordwood._native import Position, crc32c, detect, marks_of, start_of
from cordwood._text import URL, is_url
from cordwood.errors import CordwoodError, LogChangedError, _add_hint  # pyright: ignore[reportPrivateUsage] - of the package, not for users
from cordwood.types import BLOCK_LEN, Hint, LogFormat
from cordwood.typing import RangeReadable, ReadableBuffer

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

RANGE_LENS = (1 << 20, 4 << 20, 16 << 20)
"""The lengths of successive ranges: short at first, in case only the start is read. The last length is repeated."""

AHEAD_MAX = 4
"""The maximum number of ranges to request in advance, each in its own thread."""

read_ahead_len = AHEAD_MAX * RANGE_LENS[-1]
"""The current limit, as passed to `set_read_ahead`."""


def set_read_ahead(length: int) -> None:
    """Limits how many bytes this process requests in advance from each remote file.

    The limit applies to URLs and other sources read in ranges, provided that they are opened after the call. A lower
    limit saves memory when many files are read at once, but causes more requests.

    Args:
        length: The limit in bytes, at least 131,072 (four blocks). The default limit is 64 MiB.

    Raises:
        ValueError: `length` is less than four blocks.

    >>> cordwood.set_read_ahead(64 << 20)
    """
    global read_ahead_len  # noqa: PLW0603 - of the process
    if length < (least := AHEAD_MAX * BLOCK_LEN):
        raise ValueError(f"length must be at least {least}, not {length}")
    read_ahead_len = length


_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "adlfs"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    "sftp": "paramiko",
    "hf": "huggingface_hub",
}
"""The packages that fsspec needs for the URLs of common stores."""


class _Url(str):
    """A URL that carries its file system arguments, so they aren't lost in lists, splits or pickles."""

    storage_options: Mapping[str, Any]


def with_options(source: Any, storage_options: Mapping[str, Any] | None) -> Any:
    """Returns the source, or the list of sources, with the file system arguments added to each URL.

    Raises:
        ValueError: The source doesn't contain a URL.
    """
    if not storage_options:
        return source
    urls: list[_Url] = []

    def given(part: Any) -> Any:
        if isinstance(part, str) and is_url(part):
            urls.append(_Url(part))
            urls[-1].storage_options = dict(storage_options)
            return urls[-1]
        kind: type[object] = part.__class__
        if issubclass(kind, list | Iterator) and not hasattr(part, "read"):
            return list(map(given, part))
        # A `Split` is a tuple too, but already has the options it was planned with.
        return tuple(map(given, part)) if kind is tuple else part

    found = given(source)
    if not urls:
        raise ValueError("storage_options are for URLs, and no source is one")
    return found


def beside(url: str, name: str) -> str:
    """Returns the URL `name`, with the file system arguments of `url`."""
    found: str = with_options(name, getattr(url, "storage_options", None))
    return found


def source_of(source: object) -> RangeReadable | None:
    """Returns a `RangeReadable` for the source, or `None` if it cannot be read in ranges. No bytes are requested.

    Args:
        source: A URL, or another source that isn't a path or a buffer.

    Raises:
        ImportError: A package needed for the URL is not installed.
        TypeError: The source is an `fsspec.OpenFile` that decompresses its file.
        ValueError: The URL's file system is not known.
    """
    if isinstance(source, str):
        return ranges_of_url(source)
    if hasattr(source, "read"):
        return None
    if hasattr(source, "read_range"):
        return cast("RangeReadable", source)
    pair = list(cast("Any", source)) if isinstance(cast("Any", source), tuple) else []
    is_in_store = len(pair) == 2 and hasattr(pair[0], "get_range") and isinstance(pair[1], str)
    return _InStore(*pair) if is_in_store else _of_fsspec(source)


def file_of(source: object, start: int, end: int | None, position: Position | None = None) -> RangeFile | None:
    """Returns the source as a file object for a reader of `[start, end)`, or `None` if `source_of` returns `None`.

    If a position is given, it must belong to the source's log.
    """
    if isinstance(source, RangeFile):
        return source
    ranges = source_of(source)
    return None if ranges is None else RangeFile(ranges, start, end, position)


def _about(url: str, kind: type[Exception], message: str, **attributes: Any) -> Exception:
    """Returns an error about a URL. As in a `CordwoodError`, the `message` attribute doesn't name the URL."""
    error: Any = kind(f"{url}: {message}", **attributes)
    error.message = message
    return cast("Exception", error)


def ranges_of_url(url: str, file_len: int | None = None, version: str | None = None) -> RangeReadable:
    """Returns a `RangeReadable` for the file at a URL.

    No bytes are requested. The length is only requested if `file_len` is not given.

    Args:
        url: The URL.
        file_len: The length of the file in bytes, if known.
        version: The file's version when its length was `file_len`, if known.

    Raises:
        ModuleNotFoundError: A package needed for the URL is not installed.
        ValueError: The URL's file system is not known.
    """
    return _OnFilesystem(*_filesystem_of(url), url, file_len, version)


def ranges_read_twice(url: str, file_len: int | None, version: str | None) -> RangeReadable:
    """Like `ranges_of_url`, but caches the length and first bytes of a file that is opened repeatedly."""
    return _ReadTwice(*_filesystem_of(url), url, file_len, version)


def is_listed(name: str) -> bool:
    """Checks whether a name is a URL for several files: a pattern, or a directory's URL ending in a slash.

    A web server's URL always refers to a single file. Web servers don't list their files, and their URLs may contain
    any characters, including `*`.
    """
    return is_url(name) and not name.startswith(("http:", "https:")) and ("*" in name or name.endswith("/"))


def listed(url: str) -> list[tuple[str, str, bool, int, str | None]]:
    """Returns the files in a directory, or those matching a pattern, in sorted order.

    Each file is a tuple of its URL, its relative path, whether it was found in a directory, its length in bytes, and
    its version. The URL includes the caches or the archive of `url`. The path is relative to the directory or, for a
    pattern, to the last directory before the first wildcard. The path never contains `..`, so it can't lead out of this
    directory. If the pattern matches the file itself, the file doesn't count as found in a directory. The version is
    `None` if the store doesn't report one.

    Raises:
        OSError: The files cannot be listed, or there are none.
        ModuleNotFoundError, ValueError: Same as for `ranges_of_url`.
    """
    fs, path = _filesystem_of(url)
    with _os_errors_of(url):
        fs.invalidate_cache()
        matched: dict[str, Any] = {} if url.endswith("/") else fs.glob(path, detail=True)
        directories = [name for name, info in matched.items() if info["type"] == "directory"]
        found = dict(matched)
        for directory in [path] if url.endswith("/") else directories:
            found.pop(directory, None)
            if "**" not in url:
                found |= fs.find(directory, detail=True)
    if not found:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    chain = cast("re.Match[str]", URL.fullmatch(url))
    directory_len = len(path if url.endswith("/") else re.split(r"[*?[]", path)[0].rpartition("/")[0])
    files: list[tuple[str, str, bool, int, str | None]] = []
    for name, info in sorted(found.items()):
        parts = [part for part in name[directory_len:].split("/") if part not in ("", ".", "..")]
        # The file system doesn't know about the caches and the archive in the URL.
        own_url = beside(url, f"{chain[1]}{fs.unstrip_protocol(name)}{chain[3] or ''}")
        files.append((own_url, "/".join(parts), name not in matched, info["size"] or 0, _version_of(info)))
    return files


def _filesystem_of(url: str) -> tuple[Any, str]:
    """Returns the fsspec file system for a URL, and the file's path within it."""
    protocol = url.partition("://")[0].rpartition("::")[2]
    packages = " ".join(["fsspec", *filter(None, [_PACKAGES.get(protocol)])])
    try:
        fsspec: Any = importlib.import_module("fsspec")
    except ModuleNotFoundError as error:
        if error.name != "fsspec":
            raise
        text = f"a URL is read through fsspec, which is not installed: pip install {packages}"
        raise _about(url, ModuleNotFoundError, text, name="fsspec") from None
    try:
        fs, path = fsspec.core.url_to_fs(url, **getattr(url, "storage_options", {}))
    except ImportError as error:
        text = f"{error}: pip install {packages}"
        raise _about(url, ModuleNotFoundError, text, name=_PACKAGES.get(protocol)) from error
    except ValueError as error:
        raise _about(url, ValueError, str(error)) from error
    except Exception:
        # Opening an archive, or checking the options of another file system, can raise an exception of any class.
        with _os_errors_of(url):
            raise
    return fs, path


def _of_fsspec(file: object) -> _OnFilesystem | None:
    """Returns the file an `OpenFile` or a `UPath` refers to. Both have the attributes `fs` and `path`."""
    fs: Any = getattr(file, "fs", None)
    path: Any = getattr(file, "path", None)
    if path is None or not hasattr(fs, "cat_file"):
        return None
    if getattr(file, "compression", None):
        raise TypeError("an OpenFile that decompresses has no ranges: pass the file object that its open() returns")
    return _OnFilesystem(fs, path, fs.unstrip_protocol(path))


_VERSIONS = (
    *("ETag", "etag", "generation", "VersionId", "version_id", "blob_id", "content_md5", "md5Hash", "Content-MD5"),
    *("Last-Modified", "LastModified", "last_modified", "mtime", "modified", "created"),
)
"""The names under which stores report versions. The most reliable come first: they change whenever the bytes do."""


def _version_of(info: dict[str, Any]) -> str | None:
    """Returns the version of a file according to its fsspec file system."""
    found = next((info[name] for name in _VERSIONS if info.get(name)), None)
    # In a listing, the time is a number; for a single file, it is a `datetime`.
    return None if found is None else str(found.timestamp() if hasattr(found, "timestamp") else found)


class _OnFilesystem:
    """A file on an fsspec file system."""

    def __init__(self, fs: Any, path: str, name: str, file_len: int | None = None, version: str | None = None) -> None:
        self.name = name
        self.version = version
        self._fs = fs
        self._path = path
        self._file_len = file_len

    def size(self) -> int:
        if self._file_len is not None:
            return self._file_len
        info = self._info()
        # A directory has length 0, just like an empty log.
        if info.get("type") == "directory":
            error = IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.name)
            _add_hint(error, Hint.READ_DIRECTORY)
            raise error
        size: int | None = info.get("size")
        if size is None:
            raise OSError("its length is not known: pass an open file, which is read from its start")
        self.version, self._file_len = _version_of(info), size
        return size

    def current_version(self) -> str | None:
        """The current version of the file."""
        return _version_of(self._info())

    def _info(self) -> dict[str, Any]:
        # The file may have been written to since the file system cached its listing.
        self._fs.invalidate_cache(self._path)
        info: dict[str, Any] = self._fs.info(self._path)
        return info

    def read_range(self, start: int, end: int) -> ReadableBuffer:
        data: bytes = self._fs.cat_file(self._path, start=start, end=end)
        return data


class _ReadTwice(_OnFilesystem):
    """A file that may be opened more than once. Its length and its start are requested only once."""

    _start: memoryview | None = None

    def read_range(self, start: int, end: int) -> ReadableBuffer:
        start_len = min(self.size(), RANGE_LENS[0])
        if end > start_len:
            return super().read_range(start, end)
        if self._start is None:
            self._start = memoryview(super().read_range(0, start_len))
        return self._start[start:end]


class _InStore:
    """An object in an obstore store."""

    def __init__(self, store: Any, path: str) -> None:
        self.name = path
        self.version: str | None = None
        self._store = store

    def size(self) -> int:
        found = self._store.head(self.name)
        self.version = found.get("e_tag")
        return int(found["size"])

    def current_version(self) -> str | None:
        """The current version of the file."""
        version: str | None = self._store.head(self.name).get("e_tag")
        return version

    def read_range(self, start: int, end: int) -> ReadableBuffer:
        data: ReadableBuffer = self._store.get_range(self.name, start=start, end=end)
        return data


class _Range(NamedTuple):
    start: int
    end: int
    body: Future[memoryview]


def _body(source: RangeReadable, start: int, end: int) -> memoryview:
    """Reads a range. The result must be complete, because the length of the file is known."""
    body = memoryview(source.read_range(start, end)).cast("B")
    if len(body) != end - start:
        raise OSError(f"{end - start} bytes at offset {start} were requested, and {len(body)} were received")
    return body


class RangeFile:
    """A seekable file object that reads ahead in ranges.

    It requests ranges in advance, but only within `[start, end)` and one block on either side. The block that contains
    `start` may start before it, and the last record may extend past `end`. Everywhere else, only the bytes that a read
    asks for are requested, so hardly anything outside `[start, end)` is transferred.

    If an object is replaced between two requests, the bytes come from two different objects. To detect this, the
    object's version is compared before the last range is returned. If it has changed, bytes from all ranges are
    compared, because a log that has only grown is still the same log.

    Attributes:
        source: The source being read.
        name: The source's name, for errors and reports. `None` if it doesn't have one.
    """

    def __init__(self, source: RangeReadable, start: int, end: int | None, position: Position | None = None) -> None:
        self.source = source
        self.name: str | None = getattr(source, "name", None)
        self._pool: ThreadPoolExecutor | None = None
        self._pid = os.getpid()
        with _os_errors_of(self.name):
            self._len = source.size()
        # The marks and version of the log when the read was planned. If that version isn't known, the current version
        # is used.
        self._planned: list[tuple[int, int, int]] | None
        self._planned, version = marks_of(position) if position else (None, None)
        self._version: str | None = version or getattr(source, "version", None)
        # The mark of each received range, keyed by the range's start offset.
        self._marks: dict[int, tuple[int, int, int]] = {}
        self._is_compared = False
        self._start = max(0, start - BLOCK_LEN)
        if end is not None and end - start > RANGE_LENS[0]:
            # The last record may extend into the block after the end. When only the start is read, that block isn't
            # needed.
            end += BLOCK_LEN
        self._end = self._len if end is None else min(end, self._len)
        self._range_len_max = read_ahead_len // AHEAD_MAX
        self._position = 0
        # Adjacent ranges. The first may precede the range that contains the position.
        self._ranges: deque[_Range] = deque()
        # The number of ranges requested since `_ranges` was last cleared.
        self._count = 0

    def __len__(self) -> int:
        return self._len

    def seek(self, position: int) -> None:
        self._position = position

    def read(self, size: int) -> bytes:
        """Returns up to `size` bytes from the current position, or `b""` at the end of the file."""
        position = self._position
        size = min(size, self._len - position)
        if size <= 0:
            return b""
        if self._pid != os.getpid():
            error = OSError(errno.EIO, "it was opened before a fork", self.name)
            _add_hint(error, Hint.REOPEN)
            raise error
        start, _, request = self._range_at(position, size)
        with _os_errors_of(self.name):
            try:
                body = request.result()
            except Exception:
                # The next read requests the range again. Without `del`, the error, the request and this frame would
                # form a reference cycle.
                self._forget()
                del request
                raise
            self._received(start, body)
        data = bytes(body[position - start :][:size])
        self._position += len(data)
        return data

    def _received(self, start: int, body: memoryview) -> None:
        """Stores the mark of a range. For the last range, also compares the version."""
        if start in self._marks or not self._start <= start < self._end:
            return
        if self._end <= start + len(body) and not self._is_compared:
            self._compare()
            self._is_compared = True
        end = body[-BLOCK_LEN:]
        self._marks[start] = (start + len(body) - len(end), len(end), crc32c(end))

    def _compare(self) -> None:
        """Checks that the planned ranges and the ones received so far all come from the current object.

        Raises:
            LogChangedError: A range comes from a different object.
        """
        current: Any = getattr(self.source, "current_version", None)
        if self._planned is None and not (current and self._marks):
            # All the bytes of a single request come from the same object.
            return
        version = current() if current else None
        if version is not None and version == self._version:
            return
        if self._planned == [] and self._version:
            raise self._changed(0, self._len)
        for start, length, checksum in [*(self._planned or []), *self._marks.values()]:
            if start + length > self._len or crc32c(_body(self.source, start, start + length)) != checksum:
                raise self._changed(start, length)

    def _changed(self, offset: int, length: int) -> LogChangedError:
        text = f"it was replaced while it was read: bytes {offset} to {offset + length} differ"
        return LogChangedError(text, path=self.name, offset=offset, length=length, hint=Hint.START_AGAIN)

    def close(self) -> None:
        """Cancels the requests. Requests that have already started still finish, and so do their threads."""
        if self._pool and self._pid == os.getpid():
            self._forget()
            self._pool.shutdown(wait=False)
        self._pool = None

    __del__ = close

    def _range_at(self, position: int, size: int) -> _Range:
        """Returns the range that contains the position, requesting it and later ranges if necessary."""
        ranges = self._ranges
        if not (ranges and ranges[0].start <= position < ranges[-1].end):
            is_next = bool(ranges) and position == ranges[-1].end
            self._forget()
            if position < self._start and not is_next:
                self._request(position, position + min(size, BLOCK_LEN))
            elif not self._start <= position < self._end:
                self._request(position, position + size)
        current = next((at for at, range_ in enumerate(ranges) if position < range_.end), 0)
        # Keep the previous range, because two readers of the same file may take turns.
        for _ in range(current - 1):
            ranges.popleft()
        current = min(current, 1)
        number = self._count - len(ranges) + current
        while self._count <= number + min(number + 1, AHEAD_MAX):
            start = ranges[-1].end if ranges else position
            if not self._start <= start < self._end:
                break
            range_len = min(RANGE_LENS[min(self._count, len(RANGE_LENS) - 1)], self._range_len_max)
            self._request(start, min(start + range_len, self._end))
        return ranges[current]

    def _request(self, start: int, end: int) -> None:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(AHEAD_MAX, "cordwood")
        try:
            # The threads refer only to the source, so they end when this object is garbage-collected.
            body = self._pool.submit(_body, self.source, start, end)
        except RuntimeError as error:
            # The system has run out of threads, or the program is exiting.
            raise OSError(errno.EAGAIN, "no thread can be started to read it", self.name) from error
        self._ranges.append(_Range(start, end, body))
        self._count += 1

    def _forget(self) -> None:
        for range_ in self._ranges:
            range_.body.cancel()
        self._ranges.clear()
        self._count = 0


def looked_at(ranges: RangeFile) -> tuple[LogFormat | None, Position]:
    """Returns the format of a log, and the position at its start.

    One request is enough, unless the format cannot be determined from the start of the log.

    Raises:
        DialectError: The file is not a log.
        OSError: The file cannot be read.
    """
    # This is how many bytes `detect` reads. The range is kept until `detect` closes the file.
    start = ranges.read(3 * BLOCK_LEN)
    found = detect(cast("RangeReadable", ranges))
    version: str | None = getattr(ranges.source, "version", None)
    dialect, number, compression = found or (None, None, None)
    return found, start_of(start, dialect, number, compression, version)


@contextlib.contextmanager
def _os_errors_of(name: str | None) -> Generator[None]:
    """Raises a source's error as an `OSError` that names the source.

    An `OSError` keeps its class. If that class is not built in, it may take different arguments, so the error is raised
    unchanged. An error with a hint is also raised unchanged, because it already names the source.
    """
    try:
        yield
    except (MemoryError, CordwoodError):
        raise
    except OSError as error:
        kind = type(error)
        if kind.__module__ != "builtins" or hasattr(error, "hint"):
            raise
        number = _NUMBERS.get(kind)
        reason = os.strerror(number) if number else _first_line(error.strerror or str(error)) or kind.__name__
        raise kind(number or error.errno or errno.EIO, reason, name) from error
    except Exception as error:
        raise OSError(errno.EIO, f"{type(error).__name__}: {_first_line(str(error))}", name) from error


def _first_line(text: str) -> str:
    """Returns the first line. The rest may list thousands of directories searched for a library."""
    return text.partition("\n")[0]


# Stores raise these errors without an `errno` and with messages of their own.
_NUMBERS: dict[type[OSError], int] = {
    FileNotFoundError: errno.ENOENT,
    IsADirectoryError: errno.EISDIR,
    PermissionError: errno.EACCES,
}
