"""The logs that a job of Spark writes: hidden until all of its tasks have succeeded, then visible at once."""

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
    """The log that one attempt of a task has written.

    Attributes:
        name: The name of its file.
        record_count: How many records it has.
    """

    name: str
    record_count: int


class Job(NamedTuple):
    """A job that writes a table, or a batch of a stream, to a directory of logs.

    Its tasks write into a hidden directory beside the target, on the same file system. A commit moves the logs of the
    attempts that Spark counts into a second one, and renames that into the target: it is there as a whole or not at
    all, and without the files of attempts that failed, or that still run.

    Attributes:
        target: The directory of logs.
        name: The name of this job's directory in it.
        dialect: The dialect of the logs.
    """

    target: str
    name: str
    dialect: DialectName = "leveldb"

    def write(self, partition: int, attempt: int, batches: Iterable[Any]) -> Part:
        """Writes the records of a task: the only column of these batches. They are on the disk when it returns.

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
        """Shows the logs of these parts, and removes all other files of the job. A second commit has no effect.

        Raises:
            OSError: A log is missing, for example because a worker has written it to a disk of its own; or the target
                cannot be changed.
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
                self._add(made, target)
        self.abort()

    def abort(self) -> None:
        """Removes the files of the job that are not visible."""
        for use in ("tasks", "new"):
            shutil.rmtree(self._hidden(use), ignore_errors=True)

    def check_replaceable(self) -> None:
        """Checks that the target contains only logs of such jobs, which overwriting removes.

        Raises:
            FileExistsError: It contains another file.
        """
        for name in os.listdir(self.target) if os.path.exists(self.target) else ():
            if not _is_of_job(os.path.join(self.target, name)):
                raise FileExistsError(
                    f"{self.target} contains {name}, which is not a directory of logs that a job of Spark wrote: "
                    "remove it, or name another directory"
                )

    def _add(self, made: str, target: str) -> None:
        os.makedirs(self.target, exist_ok=True)
        if os.listdir(made):
            os.rename(made, target)
            sync_names(self.target)
            # The target may be new.
            sync_names(os.path.dirname(self.target))

    def _put(self, made: str) -> None:
        """Puts a new directory in the place of the target. Between the two renames, there is none."""
        sync_names(made)
        old = self._hidden("old")
        if os.path.exists(self.target):
            self.check_replaceable()
            os.rename(self.target, old)
        try:
            os.rename(made, self.target)
        except BaseException:
            # The old logs are the target again, unless another program has made one meanwhile.
            with suppress(OSError):
                os.rename(old, self.target)
            raise
        sync_names(os.path.dirname(self.target))
        shutil.rmtree(old, ignore_errors=True)

    def _hidden(self, use: str) -> str:
        above, name = os.path.split(self.target)
        return os.path.join(above, f".{name}.{self.name}.{use}")


PREFIX = "part-"
"""How the names of the directories of jobs start."""

_LOG_NAME = re.compile(r"\d{5,}\.log")


def _is_of_job(path: str) -> bool:
    """Whether a path is a directory that a job has added. Other programs also write files named `part-...`."""
    return (
        os.path.basename(path).startswith(PREFIX)
        and os.path.isdir(path)
        and all(map(_LOG_NAME.fullmatch, os.listdir(path)))
    )


def job_of(paths: tuple[str, ...], name: str, dialect: DialectName) -> Job:
    """The job with this name that writes to the only one of these paths.

    Raises:
        ValueError: It is a URL, a file or a segmented log, or there are several paths.
    """
    if len(paths) != 1 or "://" in paths[0]:
        raise ValueError(f"the logs are written to one directory that all workers see, not to {', '.join(paths)}")
    # A link stays, and the hidden directories are on the file system of the logs.
    target = os.path.realpath(paths[0])
    check_new_directory(target, ())
    return Job(target, PREFIX + name, dialect)
