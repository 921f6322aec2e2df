"""Logs that grow as a stream of Spark, whose offsets are the text of the `Follower.position` of each log."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, BinaryIO

from cordwood._inputs.files import named_files
from cordwood._native import NUMBERED_DIALECTS, Follower, Position, crc32c, detect, marks_of
from cordwood._spark.options import Options
from cordwood._splits import Split, group_splits
from cordwood.errors import DialectError, LogRotatedError
from cordwood.types import BLOCK_LEN, WaitReason


def ends_of(options: Options, start: Mapping[str, str]) -> dict[str, str]:
    """The position in each log after its last record, for the logs that have one: those of `start`, moved on.

    Raises:
        CorruptionError: A log is damaged, under the policy `"raise"`.
        LogChangedError: Another log has the path of a log in `start`.
        LogRotatedError: A log in `start` was renamed: its records would be delivered again.
        LogTruncatedError: A log is shorter than its position in `start`.
        OSError: A log cannot be read.
        ValueError: A path is a URL.
    """
    ends = dict(start)
    missing = {path: text for path, text in start.items() if not os.path.exists(path)}
    for file in named_files(options.paths):
        if "://" in file.name:
            raise ValueError(f"{file.name} is a URL, and only a log on a disk of this machine can be followed")
        if file.error:
            raise file.error
        # However the path is spelled, and through whichever links it leads.
        path = os.path.realpath(file.name)
        begin = Position(start[path]) if path in start else None
        if file.format or (file.is_in_folder and not begin and not _is_log(file.name)):
            continue
        if not begin:
            _check_not_renamed(path, missing)
        with Follower(
            file.name,
            start=begin or 0,
            timeout=0,
            on_corruption="skip" if options.on_corruption == "skip" else "raise",
            **options.log,
        ) as follower:
            _read_all(follower)
            if follower.tell() > (begin.offset if begin else 0):
                ends[path] = str(follower.position())
    return ends


def _check_not_renamed(path: str, missing: Mapping[str, str]) -> None:
    """Checks that a new log is none of those whose files are missing now.

    Raises:
        LogRotatedError: It is one of them.
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
    """Whether the beginning of a file shows a log, as it does once there is a whole fragment."""
    try:
        return detect(path) is not None
    except DialectError:
        return False


def _read_all(follower: Follower) -> None:
    """Reads the records that are there. At apparent damage, it waits until the follower has read it often enough."""
    for _ in follower:
        pass
    while follower.waiting and follower.waiting.reason == WaitReason.SUSPECT:
        time.sleep(_POLL_INTERVAL)
        for _ in follower:
            pass


_POLL_INTERVAL = 0.05


def planned_between(options: Options, start: Mapping[str, str], end: Mapping[str, str]) -> list[list[Split]]:
    """The splits of each partition of a batch: the records from one position in each log to the next."""
    splits: list[Split] = []
    for path, text in end.items():
        position = Position(text)
        begin, last = Position(start[path]).offset if path in start else 0, position.offset
        if begin >= last:
            continue
        given = {name: value for name, value in options.log.items() if value != "auto"}
        log = None if "dialect" in given else detect(path)
        own: dict[str, Any] = (log._asdict() if log else {}) | given
        # As in `plan_splits`: parts begin with a block, and a log with numbers has one.
        step = (
            last
            if own.get("dialect") in NUMBERED_DIALECTS
            else options.partition_len - options.partition_len % BLOCK_LEN
        )
        cuts = [begin, *range(begin - begin % step + step, last, step), last]
        splits += [Split(path, *part, **own, position=position) for part in pairwise(cuts)]
    return group_splits(splits, options.partition_len)
