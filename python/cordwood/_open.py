"""Implements `cordwood.open`, `cordwood.follow` and `cordwood.Split`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from os import PathLike, fsdecode
from typing import Any, Literal, NamedTuple, overload

from cordwood._native import Follower, Position, Reader, Writer, moved_to
from cordwood._text import is_url
from cordwood.errors import _add_hint  # pyright: ignore[reportPrivateUsage] - of the package, not for users
from cordwood.types import Hint
from cordwood.typing import CompressionName, DialectName, RangeReadable, Sink, Source


class Split(NamedTuple):
    """The byte range `[start, end)` of a log. `cordwood.open(split)` reads the records that start in this range.

    Attributes:
        path: The path or the URL of the file.
        start: The file offset of the first byte, which is the start of a block.
        end: The file offset after the last byte. A record that starts before this offset may extend past it.
        dialect: How the bytes are laid out. `None` if the dialect couldn't be detected. Default: `None`.
        log_number: The number of the log. `None` if the dialect doesn't have log numbers or the number is not known.
            Default: `None`.
        compression: The compression of each record: `"zstd"`, or `None` for no compression. Default: `None`.
        file_len: The length of the file, in bytes, when the splits were planned. `None` if unknown, in which case
            readers of a remote file request it. Default: `None`.
        position: The position at the start of the log. Readers use it to recognise the log, and raise a
            `LogChangedError` if the path now refers to a different log. `None` if planning read none of the log's bytes
            and got no version of the file from a store. Default: `None`.
        source: The object in a store that was split, if any. Readers read this object instead of the path. Default:
            `None`.

    A split can be pickled. The pickle contains the absolute path or the object.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> [split] = cordwood.plan_splits(["example.log"], 32_768)
    >>> split.path, split.start, split.end, split.dialect, split.file_len
    ('example.log', 0, 10, 'leveldb', 10)
    >>> list(cordwood.open(split))
    [b'one']
    """

    path: str
    start: int
    end: int
    dialect: DialectName | None = None
    log_number: int | None = None
    compression: CompressionName | None = None
    file_len: int | None = None
    position: Position | None = None
    source: RangeReadable | None = None

    def __reduce__(self) -> tuple[type[Split], tuple[Any, ...]]:
        is_local = self.source is None and not is_url(self.path)
        path = os.path.abspath(self.path) if is_local else self.path
        return Split, (path, *self[1:])


def part_of(split: Split, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Returns a source for functions that read logs, and the options merged with the split's.

    Raises:
        ValueError: An option has a different value in the split.
    """
    source = split.path if split.source is None else split.source
    file_len, position, own = split.file_len, split.position, split._asdict()
    del own["path"], own["file_len"], own["position"], own["source"]
    if split.dialect is None:
        # The format could not be detected, so the options determine it.
        own = {name: value for name, value in own.items() if value is not None}
    for name, value in own.items():
        given = options.get(name)
        if given not in (None, value) and not (name == "start" and given == 0):
            raise ValueError(f"{name} is {value!r} in the Split, not {given!r}: open its path instead")
    if position is not None:
        own["start"] = moved_to(position, split.start)
    if file_len is None or split.source is not None or not is_url(split.path):
        return source, options | own
    from cordwood._remote import ranges_of_url

    return ranges_of_url(split.path, file_len), options | own


@overload
def open(  # noqa: A001
    source: Source | Split,
    mode: Literal["r", "rb"] = "r",
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    on_corruption: Literal["raise", "skip", "stop", "salvage"] = "raise",
    start: int | Position = 0,
    end: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    verify_checksums: bool = True,
    record_len_max: int = 1073741824,
) -> Reader: ...
@overload
def open(  # noqa: A001
    source: Sink,
    mode: Literal["w", "wb", "x", "xb", "a", "ab"],
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    flush: Literal["append", "close"] | None = None,
    sync: Literal["never", "close", "append"] = "never",
    sync_interval: float | None = None,
    on_torn_tail: Literal["refuse", "truncate", "pad"] = "refuse",
    checkpoint: int | None = None,
    segment_len: int | None = None,
    retention_bytes: int | None = None,
    retention_time: float | None = None,
    record_len_max: int = 1073741824,
) -> Writer: ...
@overload
def open(  # noqa: A001
    source: Source | Split | Sink,
    mode: str,
    *,
    # The options for reading and writing.
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    record_len_max: int = 1073741824,
) -> Reader | Writer: ...
def open(  # noqa: A001
    source: Source | Split | Sink,
    mode: str = "r",
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    record_len_max: int = 1073741824,
    on_corruption: Literal["raise", "skip", "stop", "salvage"] = "raise",
    start: int | Position = 0,
    end: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    verify_checksums: bool = True,
    flush: Literal["append", "close"] | None = None,
    sync: Literal["never", "close", "append"] = "never",
    sync_interval: float | None = None,
    on_torn_tail: Literal["refuse", "truncate", "pad"] = "refuse",
    checkpoint: int | None = None,
    segment_len: int | None = None,
    retention_bytes: int | None = None,
    retention_time: float | None = None,
) -> Reader | Writer:
    """Opens a log for reading or writing records.

    Args:
        source: To read, pass a path, a URL, an object with a `read` method, any other source `Reader` accepts, or a
            `Split`, which specifies its own range. The path can be a segmented log's directory. A `bytes` object or any
            other buffer (such as `mmap`) is taken as the content of a log, never as a path: `b"name.log"` is a log of
            eight bytes. To write, pass a path or an object with a `write` method. With `segment_len`, pass the path of
            a directory.
        mode: `"r"` reads. `"w"` writes a new file, replacing any existing one. `"x"` writes a new file, and fails if
            the file already exists. `"a"` appends. `"rb"`, `"wb"`, `"xb"` and `"ab"` mean the same thing, because logs
            are always binary. Default: `"r"`.
        dialect: How the bytes are laid out, as in `Reader` and `Writer`. Default: `None`, which means the file's
            dialect, or `"leveldb"` for a new file.
        log_number: The number of the log, as in `Reader` and `Writer`. Default: `None`, in which case readers detect
            the number.
        compression: How each record is compressed, as in `Reader` and `Writer`. Default: `None`, in which case readers
            detect the compression.
        record_len_max: Refuse records longer than this many bytes, as in `Reader` and `Writer`. Default: 1 GiB.

    Options for reading:
        on_corruption: How to treat damage, as in `Reader`. Default: `"raise"`.
        start: Return only the records that start at or after this file offset, in bytes. For a segmented log, this is a
            log offset. A `Position` in the same log is also accepted. Default: 0, the start of the log, even if its
            oldest segments were pruned.
        end: Return only the records that start before this file offset, in bytes. Default: `None`, the end of
            the file.
        storage_options: The arguments for a URL's file system, as in `Reader`. Default: `None`.
        verify_checksums: Whether to verify each checksum. Default: `True`.

    Options for writing:
        flush: When to pass records to the operating system, as in `Writer`. Default: `None`, which is `"append"` for a
            path.
        sync: When to wait until records are on disk, as in `Writer`. Default: `"never"`.
        sync_interval: Sync during an append if the last sync was at least this many seconds ago. Default: `None`.
        on_torn_tail: When appending, how to treat a file that does not end with a complete record, as in `Writer`.
            Default: `"refuse"`.
        checkpoint: When appending, start reading the existing file at this file offset, in bytes, as in `Writer`.
            Default: `None`, the start of the file.
        segment_len: When appending, write the log as a directory of segments. Each segment is a file of at most this
            many bytes, as in `Writer`. `Writer.rotate` starts a segment, and `Writer.prune_before` removes the oldest
            segments. Default: `None`, which writes the log as a single file.
        retention_bytes: When appending to a segmented log, remove the oldest segments each time a new one is started,
            but keep at least this many bytes of older segments, as in `Writer`. Default: `None`, which keeps all
            segments.
        retention_time: When appending to a segmented log, remove the oldest segments each time a new one is started, if
            their files have not changed for more than this many seconds. Default: `None`, which keeps all segments.

    Returns:
        A `Reader` in mode `"r"`, or a `Writer` in any other mode. Both are context managers.

    Raises:
        OSError: The operating system reports an error, such as `FileNotFoundError`, `PermissionError` or
            `IsADirectoryError`. The exception contains the path.
        FileExistsError: The mode is `"x"` and the file already exists.
        ModuleNotFoundError: `source` is a URL, and fsspec or a package that it needs for this URL is not installed.
        BlockingIOError: Another writer has the file open.
        TornTailError: The mode is `"a"` and the file does not end with a complete record.
        CorruptionError: The mode is `"a"`, and either the file is damaged or a segment is missing between two others.
        LogChangedError: The mode is `"r"`, and either `start` or the `Split` belongs to another log.
        LogTruncatedError: The mode is `"r"` and the segments that contained `start` were pruned.
        DialectError: The mode is `"a"`, but the file is not a log, is not in the given dialect, or cannot be appended
            to.
        TypeError: `source` is not a valid source, or an option for reading or writing is passed in the wrong mode. The
            message lists the mode's options.
        ValueError: The mode is unknown, or an option has an invalid value, doesn't apply to the dialect, or conflicts
            with the `Split`.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.append(b"one")
    0
    >>> with cordwood.open("example.log") as reader:
    ...     list(reader)
    [b'one']
    """
    given = locals()
    options = {name: given[name] for name, default in _DEFAULTS.items() if given[name] != default}
    is_reading = mode in {"r", "rb"}
    if isinstance(source, Split):
        if not is_reading:
            raise TypeError(f"a Split is for reading, and the mode is {mode!r}")
        source, options = part_of(source, options)
    own, other = (_OF_READER, _OF_WRITER) if is_reading else (_OF_WRITER, _OF_READER)
    for name in [name for name in other if name in options]:
        wrong, right = ("writing", "reading") if is_reading else ("reading", "writing")
        listed = ", ".join([*_OF_BOTH, *own])
        raise TypeError(f"{name} is an option for {wrong}, and the mode is {mode!r}; options for {right}: {listed}")
    if is_reading:
        try:
            return Reader(source, **options)  # type: ignore[arg-type]  # Reader names the types that it accepts.
        except FileNotFoundError as error:
            # Add a hint if the path looks like a pattern. Only functions that read many logs accept patterns.
            if isinstance(source, str | PathLike) and not {*"*?["}.isdisjoint(fsdecode(source)):
                _add_hint(error, Hint.READ_DIRECTORY)
            raise
    return Writer(source, mode[0] if mode in {"wb", "xb", "ab"} else mode, **options)  # type: ignore[arg-type]  # Writer names the modes.


_DEFAULTS: dict[str, Any] = open.__kwdefaults__ or {}
_OF_BOTH = ("dialect", "log_number", "compression", "record_len_max")
_OF_READER = ("on_corruption", "start", "end", "storage_options", "verify_checksums")
_OF_WRITER = [name for name in _DEFAULTS if name not in (*_OF_BOTH, *_OF_READER)]


def follow(
    path: str | PathLike[str],
    *,
    start: int | Position = 0,
    timeout: float | None = None,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    on_corruption: Literal["raise", "skip", "stop"] = "raise",
    on_rotation: Literal["raise", "reopen", "stop"] = "raise",
    poll_interval: float = 0.05,
    retry_time: float = 0.1,
    record_len_max: int = 1073741824,
) -> Follower:
    """Follows a log while it is being written, and returns each record once it is complete.

    The writer may be in another process, or in this one.

    Args:
        path: The path of an existing file or of a segmented log's directory. The file may be empty. Following a
            segmented log never raises a `LogRotatedError` or misses a record.
        start: Return only the records that start at or after this position. Pass a file offset in bytes, or the
            `Follower.position` of an earlier run, which also identifies the log. Default: 0.
        timeout: How many seconds the iteration waits for the next record before it ends. A new iteration over the same
            follower continues where the last one ended. With 0, the follower returns the existing records and never
            waits. Default: `None`, which waits forever.
        dialect: Same as for `Reader`. The dialect is detected once the file contains a file header or a whole fragment.
            `"wandb_old"` is never detected, so you must pass it. Default: `None`.
        log_number: Same as for `Reader`. Default: `None`.
        compression: Same as for `Reader`. Default: `None`.
        on_corruption: Same as for `Reader`, except that `"salvage"` is not allowed. Default: `"raise"`.
        on_rotation: What to do if the path no longer refers to the followed file. This applies once all of that file's
            records have been returned. `"raise"` raises a `LogRotatedError`. `"reopen"` continues at the start of the
            new file, but misses a file that appears and disappears between two polls. `"stop"` ends the iteration. See
            `Follower`. Default: `"raise"`.
        poll_interval: How long to sleep before checking the file again, in seconds. Default: 0.05.
        retry_time: If no valid block follows apparent damage, the follower rereads the damage at least three times,
            over at least this many seconds, before reporting it. With 0, damage is reported immediately. Default: 0.1.
        record_len_max: Same as for `Reader`, in bytes. Default: 1 GiB.

    Returns:
        A `Follower`, which yields `bytes` in both `for` and `async for` loops.

    Raises:
        OSError: The file cannot be opened or is not a regular file.
        OverflowError: A number is negative or too large.
        TypeError: `path` is not a path.
        ValueError: An option has an invalid value.

    >>> with cordwood.open("live.log", "w") as writer:
    ...     _ = writer.append(b"one")
    ...     follower = cordwood.follow("live.log", timeout=0)
    ...     print(list(follower))
    ...     _ = writer.append(b"two")
    ...     print(list(follower), follower.tell())
    [b'one']
    [b'two'] 20
    """
    # `Follower` has the same parameters.
    return Follower(**locals())
