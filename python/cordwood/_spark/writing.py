"""Writes a Spark job's logs, which stay hidden until all of the job's tasks have succeeded."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from cordwood._inputs.destinations import check_new_directory, sync_names
from cordwood._native import Writer
from cordwood.typing import DialectName


class Part(NamedTuple):
    """The log written by one attempt at a task.

    Attributes:
        name: The name of the file.
        record_count: The number of records in the log.
    """

    name: str
    record_count: int


class Job(NamedTuple):
    """A job that writes a table, or one batch of a stream, to a directory of logs.

    The tasks write to a hidden directory next to the target, on the same file system. A commit includes only logs from
    task attempts that Spark accepts. It moves them to a second hidden directory, and then moves that directory into the
    target. This way, the target gets either all of the job's logs or none of them, and never contains files from
    attempts that failed or are still running.

    Attributes:
        target: The directory of logs.
        name: The name of this job's directory in the target.
        dialect: The dialect of the logs.
    """

    target: str
    name: str
    dialect: DialectName = "leveldb"

    def write(self, partition: int, attempt: int, batches: Iterable[Any]) -> Part:
        """Writes a task's records to a log, and syncs it. Each batch must have exactly one column.

        Raises:
            OSError: The log cannot be written.
            ValueError: A record is null.
        """
        name = f"{partition:05}-{attempt}.log"
        directory = self._hidden("tasks")
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, name)
        try:
            with Writer(path, "w", dialect=self.dialect, flush="close", sync="close") as writer:
                count = sum(writer.extend(batch.column(0)) for batch in batches)
        except BaseException:
            if os.path.exists(path):
                os.unlink(path)
            raise
        return Part(name, count)

    def commit(self, parts: Sequence[Part], *, overwrite: bool = False) -> None:
        """Makes the given parts' logs visible and removes the job's other files. A second call has no effect.

        Raises:
            OSError: The target cannot be changed, or a log is missing, for example because a worker wrote it to its own
                disk.
        """
        target = os.path.join(self.target, self.name)
        if not os.path.exists(target):
            made = self._hidden("new")
            logs = os.path.join(made, self.name) if overwrite else made
            shutil.rmtree(made, ignore_errors=True)
            os.makedirs(logs)
            for number, part in enumerate(part for part in parts if part.record_count):
                os.rename(os.path.join(self._hidden("tasks"), part.name), os.path.join(logs, f"{number:05}.log"))
            sync_names(logs)
            if overwrite:
                self._put(made)
            else:
                os.makedirs(self.target, exist_ok=True)
                if os.listdir(made):
                    os.rename(made, target)
                    sync_names(self.target)
                    # The target may be a new directory, so its entry in the parent directory is synced too.
                    sync_names(os.path.dirname(self.target))
        self.abort()

    def abort(self) -> None:
        """Removes the hidden files of the job."""
        for use in ("tasks", "new"):
            shutil.rmtree(self._hidden(use), ignore_errors=True)

    def check_replaceable(self) -> None:
        """Checks that the target contains only logs from Spark jobs, because overwriting removes all of its files.

        Raises:
            FileExistsError: The target contains something other than logs from Spark jobs.
        """
        for name in os.listdir(self.target) if os.path.exists(self.target) else ():
            if not _is_of_job(os.path.join(self.target, name)):
                raise FileExistsError(
                    f"{self.target} contains {name}, which is not a directory of logs that a job of Spark wrote: "
                    "remove it, or name another directory"
                )

    def _put(self, made: str) -> None:
        """Replaces the target with a new directory. Between the two renames, the target does not exist."""
        sync_names(made)
        old = self._hidden("old")
        if os.path.exists(self.target):
            self.check_replaceable()
            os.rename(self.target, old)
        try:
            os.rename(made, self.target)
        except BaseException:
            # Restores the old logs, unless another program has created a new target.
            with suppress(OSError):
                os.rename(old, self.target)
            raise
        sync_names(os.path.dirname(self.target))
        shutil.rmtree(old, ignore_errors=True)

    def _hidden(self, use: str) -> str:
        above, name = os.path.split(self.target)
        return os.path.join(above, f".{name}.{self.name}.{use}")


PREFIX = "part-"
"""The prefix of job directories."""

_LOG_NAME = re.compile(r"\d{5,}\.log")


def _is_of_job(path: str) -> bool:
    """Checks whether a path is a directory added by a job. Other programs also write files named `part-...`."""
    return (
        os.path.basename(path).startswith(PREFIX)
        and os.path.isdir(path)
        and all(map(_LOG_NAME.fullmatch, os.listdir(path)))
    )


def job_of(paths: tuple[str, ...], name: str, dialect: DialectName) -> Job:
    """Returns the job that has this name and writes to the only path in `paths`.

    Raises:
        ValueError: There is more than one path, or the path is a URL, a file or a segmented log.
    """
    if len(paths) != 1 or "://" in paths[0]:
        raise ValueError(f"the logs are written to one directory that all workers see, not to {', '.join(paths)}")
    # The real path is used so that a link stays intact and the hidden directories are on the same file system as the
    # logs.
    target = os.path.realpath(paths[0])
    check_new_directory(target, ())
    return Job(target, PREFIX + name, dialect)
