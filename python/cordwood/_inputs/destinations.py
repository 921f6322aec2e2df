"""Decides where the copies of many logs go."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

from cordwood._inputs.files import is_one_file, segments_in
from cordwood._inputs.input import Input
from cordwood._text import local_path

T = TypeVar("T")


def destinations(names: Sequence[str], files: Sequence[Input], destination: str) -> dict[str, str]:
    """Returns the new log's path for each source. No directories are created.

    Whether the destination is a directory depends on the names of the sources, not on the number of logs.

    Raises:
        ValueError: Several logs would be written to one file, or to the directory that contains the logs.
    """
    is_several = not is_one_file(names)
    # A trailing slash marks a directory. Without one, the path may name a file.
    bare = destination.rstrip(os.sep + (os.altsep or ""))
    is_directory = is_several or bare != destination or os.path.isdir(destination)
    if not destination or not is_directory:
        # A segmented log is a directory, and so is its copy.
        if any(map(os.path.isdir, names)):
            check_new_directory(destination, names)
        return dict.fromkeys((file.name for file in files), destination)
    check_new_directory(destination, names, why=", and several logs, or a pattern, need one" if is_several else "")
    if any(file.name == "-" for file in files):
        raise ValueError("a log from stdin has no name to be kept: name a file for the new log")
    return {file.name: os.path.join(destination, file.relative) for file in files}


def check_new_directory(directory: str, sources: Iterable[str], *, why: str = "") -> None:
    """Checks that new files can be written to a directory.

    If the path exists, it must be a directory, but not a segmented log. In any case, the path must not be inside a
    source directory.

    Raises:
        ValueError: New files can't be created in this directory. `why` explains why a directory is needed.
    """
    if not directory:
        raise ValueError("the name of the directory is empty")
    bare = directory.rstrip(os.sep + (os.altsep or ""))
    if bare and os.path.lexists(bare) and not os.path.isdir(directory):
        raise ValueError(f"{directory} is not a directory{why}")
    if segments_in(directory):
        raise ValueError(f"{directory} is a segmented log: with other files in its directory, it could not be opened")
    new = os.path.realpath(directory)
    for source in sources:
        old = os.path.realpath(source)
        if os.path.isdir(source) and os.path.commonpath([new, old]) == old:
            raise ValueError(f"{directory} is in {source}: the new files would be among those that are read")


def make_directory(path: str, source: str) -> list[str]:
    """Creates a directory and its parents, and returns the ones it created, topmost first.

    `source` is the log to be copied. The new directories give other users the same permissions as the log's directory.
    A private directory protects the logs in it even if their own permissions let everyone read them.
    """
    mode = 0o777
    if (log := local_path(source)) is not None:
        mode &= os.stat(os.path.dirname(log) or os.curdir).st_mode
    missing: list[str] = []
    above = path
    while above and not os.path.lexists(above):
        missing.insert(0, above)
        above = os.path.dirname(above)
    for directory in missing:
        with contextlib.suppress(FileExistsError):
            # The owner must be able to write files to the directory.
            os.mkdir(directory, mode | 0o700)
    return missing


@contextlib.contextmanager
def new_directories() -> Generator[Callable[[str, str], None]]:
    """Yields `make_directory`. On exit, removes the new directories that are still empty."""
    created: list[str] = []
    try:
        yield lambda path, source: created.extend(make_directory(path, source))
    finally:
        for directory in reversed(created):
            # The directory is not empty.
            with contextlib.suppress(OSError):
                os.rmdir(directory)


def sync_directory(path: str) -> None:
    """Syncs the directory entry of a file whose contents are already on disk."""
    sync_names(os.path.dirname(os.path.realpath(path)))


def sync_names(directory: str) -> None:
    """Syncs the entries of a directory."""
    # Windows cannot open a directory.
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            error.filename = directory
            raise
        finally:
            os.close(descriptor)
