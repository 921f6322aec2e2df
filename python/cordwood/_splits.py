"""Implements `cordwood.plan_splits`, which splits logs into byte ranges that workers can read independently."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from os import PathLike
from typing import Any, Literal, TypeAlias

from cordwood._inputs.each import each_start
from cordwood._inputs.files import is_plain_file, named_files, segments_in
from cordwood._inputs.input import Input
from cordwood._native import NUMBERED_DIALECTS, Position, Reader, detect, start_at, start_of
from cordwood._open import Split
from cordwood._remote import RangeFile, looked_at, with_options
from cordwood.types import BLOCK_LEN, LogFormat
from cordwood.typing import CompressionName, DialectName, FsspecFile, ObjectStore, RangeReadable

InStore: TypeAlias = RangeReadable | FsspecFile | tuple[ObjectStore, str]
"""A file in a store, passed as an object instead of a URL."""


def plan_splits(
    sources: str | PathLike[str] | Iterable[str | PathLike[str] | tuple[str | PathLike[str], int] | InStore],
    split_len: int,
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> list[Split]:
    """Splits logs into byte ranges that workers can read independently. Each record is in exactly one range.

    The length of each file is looked up unless you pass it. The start of each file is also read, unless you pass
    `dialect`. If there are several remote files, they are read in parallel. A log in a dialect with log numbers or
    compression (`"rocksdb"`, `"pebble"`, `"recyclable"`) can't be read in parts, so it becomes a single range.

    A file is split only once, even if links give it several names or its URL is repeated. Its splits use the first
    name. A file in a directory is split only if it is a log.

    Args:
        sources: A path, a URL, a directory, a pattern such as `"*.log"`, or an iterable of these. An iterable can also
            contain objects in stores. A directory includes all logs in it and its subdirectories. If you know a file's
            length in bytes, you can pass a `(path, length)` or `(url, length)` tuple.
        split_len: The number of bytes in a range, at least 1, rounded up to whole blocks of 32 KiB.
        dialect: Same as for `Reader`. Applies to all files. Default: `None`, which detects the dialect of each file.
        log_number: Same as for `Reader`. Default: `None`.
        compression: Same as for `Reader`. Default: `None`.
        storage_options: Same as for `Reader`. The splits keep these options, even when they are pickled. Default:
            `None`.

    Returns:
        The ranges of each file in turn, in order of offset. Together, a file's ranges cover the whole file. An empty
        file doesn't have any.

    Raises:
        DialectError: A file is not a log.
        OSError: A file is missing, or its length or content cannot be read.
        TypeError: A source has an unsupported type. It must be a path, a tuple of a path and a length, or an object
            that can read byte ranges.
        ValueError: `split_len` is less than 1, a length is negative, or an option has an invalid value or doesn't apply
            to the dialect.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one" * 20_000, b"two"])
    2
    >>> splits = cordwood.plan_splits("example.log", 32_768)
    >>> [(split.start, split.end) for split in splits]
    [(0, 32768), (32768, 60024)]
    >>> [len(list(cordwood.open(split))) for split in splits]
    [1, 1]
    >>> cordwood.plan_splits([("example.log", 60_024)], 32_768) == splits
    True
    """
    if split_len < 1:
        raise ValueError(f"split_len must be at least 1, not {split_len}")
    split_len += -split_len % BLOCK_LEN
    if dialect or log_number is not None or compression:
        # Creating a reader here rejects invalid options before any split is read.
        Reader(b"", dialect=dialect, log_number=log_number, compression=compression).close()
    named = None if dialect is None or dialect == "auto" else LogFormat(dialect, log_number, compression)

    def cut(name: str, first: int, file_len: int, log: LogFormat | None, position: Position | None) -> list[Split]:
        number = log_number if log_number is not None or log is None else log.log_number
        own_compression = compression or (log and log.compression)
        own_len = max(file_len, 1) if log and log.dialect in NUMBERED_DIALECTS else split_len
        return [
            Split(name, start, end, log and log.dialect, number, own_compression, file_len, position)
            for start in range(first, file_len, own_len)
            for end in [min(start + own_len, file_len)]
        ]

    sources = with_options(sources, storage_options)
    if is_plain_file(sources):
        name = os.fsdecode(sources)
        return cut(name, 0, os.stat(name).st_size, *_format_of(name, named))

    splits: list[Split] = []
    files = named_files(sources)
    for file, planned in each_start(files, partial(_planned, named), named and named.dialect):
        if isinstance(planned, Exception):
            raise planned
        if not isinstance(planned, str):
            splits += (split._replace(source=file.source) for split in cut(file.name, *planned))
    return splits


def _format_of(name: str, named: LogFormat | None) -> tuple[LogFormat | None, Position | None]:
    """Returns the format of a log and the position at its start. Doesn't read anything if the format is given."""
    if named:
        return named, None
    found = detect(name)
    return found, start_at(name, *found) if found else None


def _planned(named: LogFormat | None, file: Input, *_: object) -> tuple[int, int, LogFormat | None, Position | None]:
    """Returns a log's start, end and format, and the position at its start.

    `each` has already set the source of a remote file. If the file's length is unknown, it is requested once.
    """
    if file.source is not None:
        ranges = RangeFile(file.source, 0, 0)
        if not named:
            return 0, len(ranges), *looked_at(ranges)
        version: str | None = getattr(ranges.source, "version", None)
        return 0, len(ranges), named, start_of(b"", None, None, None, version)
    first, file_len = 0, file.file_len
    if segments := file.segments or segments_in(file.name):
        # The ranges are given as offsets in the log, whose first segments may have been pruned.
        first, file_len = segments[0][0], sum(segments[-1])
    return first, file_len or os.stat(file.name).st_size, *_format_of(file.name, named)


def group_splits(splits: Iterable[Split], group_len: int) -> list[list[Split]]:
    """Groups splits so that a worker can process many small files in one step.

    You can pass a group to `verify`, `stat` and `scan`.

    Args:
        splits: The splits, as returned by `plan_splits`.
        group_len: The maximum number of bytes in a group, at least 1. A longer split gets a group of its own.

    Returns:
        The groups. The splits keep their order.

    Raises:
        ValueError: `group_len` is less than 1.

    >>> splits = [cordwood.Split(f"{number}.log", 0, 10) for number in range(5)]
    >>> [len(group) for group in cordwood.group_splits(splits, 20)]
    [2, 2, 1]
    """
    if group_len < 1:
        raise ValueError(f"group_len must be at least 1, not {group_len}")
    groups: list[list[Split]] = []
    left_len = 0
    for split in splits:
        own_len = split.end - split.start
        if not groups or own_len > left_len:
            groups.append([])
            left_len = group_len
        groups[-1].append(split)
        left_len -= own_len
    return groups
