"""Logs that grow as a stream of Spark, whose offsets are the `Follower.tell` of each log."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from cordwood._inputs.files import named_files
from cordwood._native import NUMBERED_DIALECTS, Follower, detect
from cordwood._spark.options import Options
from cordwood._splits import Split, group_splits
from cordwood.errors import DialectError
from cordwood.types import BLOCK_LEN, WaitReason


def ends_of(options: Options, start: Mapping[str, int]) -> dict[str, int]:
    """The offset of each log after its last record, for the logs that have one: those of `start`, moved on.

    Raises:
        CorruptionError: A log is damaged, under the policy `"raise"`.
        LogTruncatedError: A log is shorter than its offset in `start`: it was cut, or replaced by another.
        OSError: A log cannot be read.
        ValueError: A path is a URL.
    """
    ends = dict(start)
    for file in named_files(options.paths):
        if "://" in file.name:
            raise ValueError(f"{file.name} is a URL, and only a log on a disk of this machine can be followed")
        if file.error:
            raise file.error
        begin = start.get(file.name, 0)
        if file.format or (file.file_len == begin and not os.path.isdir(file.name)):
            continue
        if file.is_in_folder and not begin and not _is_log(file.name):
            continue
        with Follower(
            file.name,
            start=begin,
            timeout=0,
            on_corruption="skip" if options.on_corruption == "skip" else "raise",
            **options.log,
        ) as follower:
            _read_all(follower)
            if follower.tell() > begin:
                ends[file.name] = follower.tell()
    return ends


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


def planned_between(options: Options, start: Mapping[str, int], end: Mapping[str, int]) -> list[list[Split]]:
    """The splits of each partition of a batch: the records from one offset of each log to the next."""
    splits: list[Split] = []
    for path, last in end.items():
        begin = start.get(path, 0)
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
        splits += [Split(path, *part, **own) for part in pairwise(cuts)]
    return group_splits(splits, options.partition_len)
