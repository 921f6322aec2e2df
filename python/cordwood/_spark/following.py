"""Reads growing logs as a Spark stream, whose offset holds each log's `Follower.position` as text."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, BinaryIO

from cordwood._inputs.files import named_files
from cordwood._inputs.input import Input
from cordwood._native import NUMBERED_DIALECTS, Follower, Position, crc32c, detect, marks_of
from cordwood._open import Split
from cordwood._spark.options import Options
from cordwood._splits import group_splits
from cordwood.errors import DialectError, LogChangedError, LogRotatedError, LogTruncatedError
from cordwood.types import BLOCK_LEN, WaitReason

_GONE = "gone "
"""The prefix of a log's position if the log was missing during the previous batch.

If the log is still missing during the next batch, the position is dropped.
"""


def paths_of_logs(options: Options) -> set[str]:
    """Returns the paths of the logs that exist now."""
    return {os.path.realpath(file.name) for file in named_files(options.paths)}


def ends_of(options: Options, start: Mapping[str, str], left: set[str] | None = None) -> dict[str, str]:
    """Advances the positions in `start` to the end of each log's last record, and adds new logs.

    At most `options.max_files` logs with new records are advanced, starting with the least recently modified. With
    `left`, only the logs in this set are advanced, and each log that has been advanced is removed from the set.

    Raises:
        CorruptionError: A log is damaged and the policy is `"raise"`.
        LogChangedError: The path of a log in `start` now refers to another log.
        LogRotatedError: A log in `start` was renamed, so its records would be delivered twice.
        LogTruncatedError: A log is shorter than the position that `start` gives for it.
        OSError: A log cannot be read.
        ValueError: A path is a URL.
    """
    known = {path: text.removeprefix(_GONE) for path, text in start.items()}
    missing = {path: text for path, text in known.items() if not os.path.exists(path)}
    moved: dict[str, str | None] = {}
    for file, path in _logs(options):
        if len(moved) == options.max_files:
            break
        position = Position(known[path]) if path in known else None
        if file.format or (file.is_in_directory and not position and not _is_log(file.name)):
            continue
        if left is not None and path not in left:
            continue
        if not position:
            _check_not_renamed(path, missing)
        try:
            end = _end_of(file.name, position, options)
        except (LogChangedError, LogTruncatedError):
            if options.fails_on_data_loss:
                raise
            # The next batch reads the log from its start.
            moved[path] = None
            continue
        if left is not None:
            left.remove(path)
        if end:
            moved[path] = end
    if not moved:
        return dict(start)
    gone = {path: None if start[path].startswith(_GONE) else _GONE + text for path, text in missing.items()}
    return {path: text for path, text in (known | gone | moved).items() if text is not None}


def _logs(options: Options) -> Iterator[tuple[Input, str]]:
    """Yields each file that may be a log, with its real path.

    All spellings of the path, and all links to it, have the same real path.
    """
    files = [(file, os.path.realpath(file.name)) for file in named_files(options.paths)]
    if options.max_files:
        files.sort(key=lambda found: os.stat(found[1]).st_mtime_ns if os.path.exists(found[1]) else 0)
    for file, path in files:
        if "://" in file.name:
            raise ValueError(f"{file.name} is a URL, and only a log on a disk of this machine can be followed")
        if file.error:
            raise file.error
        yield file, path


def _end_of(name: str, position: Position | None, options: Options) -> str | None:
    """Returns the position after the last record of a log, or `None` if there is no new record."""
    policy: Any = "skip" if options.on_corruption == "skip" else "raise"
    with Follower(name, start=position or 0, timeout=0, on_corruption=policy, **options.log) as follower:
        _read_all(follower)
        return str(follower.position()) if follower.tell() > (position.offset if position else 0) else None


def _check_not_renamed(path: str, missing: Mapping[str, str]) -> None:
    """Checks that a log is really new, and not a missing log under a new path.

    Raises:
        LogRotatedError: The log is one of the missing logs.
    """
    if not missing or os.path.isdir(path):
        return
    with open(path, "rb") as file:
        for old, position in ((old, Position(text)) for old, text in missing.items()):
            marks, _ = marks_of(position)
            if marks and all(_checksum_at(file, at, length) == checksum for at, length, checksum in marks):
                text = f"the log has the path {path} now: a stream needs logs that keep their paths"
                raise LogRotatedError(text, path=old, offset=position.offset)


def _checksum_at(file: BinaryIO, offset: int, length: int) -> int:
    file.seek(offset)
    return crc32c(file.read(length))


def _is_log(path: str) -> bool:
    """Checks whether a file starts with at least one whole fragment of a log."""
    try:
        return detect(path) is not None
    except DialectError:
        return False


def _read_all(follower: Follower) -> None:
    """Reads all available records. Waits until the follower has confirmed or ruled out any apparent damage."""
    while True:
        for _ in follower:
            pass
        if not (follower.waiting and follower.waiting.reason == WaitReason.SUSPECT):
            return
        time.sleep(_POLL_INTERVAL)


_POLL_INTERVAL = 0.05


def planned_between(options: Options, start: Mapping[str, str], end: Mapping[str, str]) -> list[list[Split]]:
    """Plans a batch containing each log's records from `start` to `end`, and returns each partition's splits."""
    splits: list[Split] = []
    for path, text in end.items():
        position = Position(text.removeprefix(_GONE))
        first = Position(start[path].removeprefix(_GONE)).offset if path in start else 0
        last = position.offset
        if first >= last:
            continue
        given = {name: value for name, value in options.log.items() if value != "auto"}
        log = None if "dialect" in given else detect(path)
        own: dict[str, Any] = (log._asdict() if log else {}) | given
        # As in `plan_splits`, each part starts at the start of a block, and a log with log numbers has only one part.
        is_whole = own.get("dialect") in NUMBERED_DIALECTS
        step = last if is_whole else options.partition_len - options.partition_len % BLOCK_LEN
        cuts = [first, *range(first - first % step + step, last, step), last]
        splits += [Split(path, *part, **own, position=position) for part in pairwise(cuts)]
    return group_splits(splits, options.partition_len)
