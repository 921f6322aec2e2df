"""Where the copies of many logs go."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

from cordwood._inputs.files import is_one_file, segments_in
from cordwood._inputs.input import Input
from cordwood._remote import local_path

T = TypeVar("T")


def destinations(names: Sequence[str], files: Sequence[Input], destination: str) -> dict[str, str]:
    """The new log for each source. Its folder is not created here.

    Whether the destination is a folder depends on the names, not on how many logs they turn out to be.

    Raises:
        ValueError: Several logs would go to one file, or into the folder that they are from.
    """
    is_several = not is_one_file(names)
    # A trailing slash is that of a folder, and hides a file that has the name without it.
    bare = destination.rstrip(os.sep + (os.altsep or ""))
    is_folder = is_several or bare != destination or os.path.isdir(destination)
    if not destination or not is_folder:
        # A log in segments is a folder, and so is its copy.
        if any(map(os.path.isdir, names)):
            check_new_folder(destination, names)
        return dict.fromkeys((file.name for file in files), destination)
    check_new_folder(destination, names, why=", and several logs, or a pattern, need one" if is_several else "")
    if any(file.name == "-" for file in files):
        raise ValueError("a log from stdin has no name to be kept: name a file for the new log")
    return {file.name: os.path.join(destination, file.relative) for file in files}


def check_new_folder(folder: str, sources: Iterable[str], *, why: str = "") -> None:
    """Checks that a folder can get the new files: it is a folder, but not of segments, or does not exist.

    Nor may it be in one that is read.

    Raises:
        ValueError: It cannot, and `why` says why a folder is needed.
    """
    if not folder:
        raise ValueError("the name of the folder is empty")
    bare = folder.rstrip(os.sep + (os.altsep or ""))
    if bare and os.path.lexists(bare) and not os.path.isdir(folder):
        raise ValueError(f"{folder} is not a folder{why}")
    if segments_in(folder):
        raise ValueError(f"{folder} is a log in segments: with other files in its folder, it could not be opened")
    new = os.path.realpath(folder)
    for source in sources:
        old = os.path.realpath(source)
        if os.path.isdir(source) and os.path.commonpath([new, old]) == old:
            raise ValueError(f"{folder} is in {source}: the new files would be among those that are read")


def make_folder(path: str, source: str) -> list[str]:
    """Creates a folder and those above it. Returns those that did not exist, the topmost first.

    They are as open to others as the folder of `source`, the log that is copied to it: a private folder protects the
    logs in it, with any modes of their own.
    """
    mode = 0o777
    if (log := local_path(source)) is not None:
        mode &= os.stat(os.path.dirname(log) or os.curdir).st_mode
    missing: list[str] = []
    above = path
    while above and not os.path.lexists(above):
        missing.insert(0, above)
        above = os.path.dirname(above)
    for folder in missing:
        with contextlib.suppress(FileExistsError):
            # Without the bits for the owner, no file could be written there.
            os.mkdir(folder, mode | 0o700)
    return missing


@contextlib.contextmanager
def new_folders() -> Generator[Callable[[str, str], None]]:
    """Returns `make_folder`. The new folders to which no file is written are removed at the end."""
    created: list[str] = []
    try:
        yield lambda path, source: created.extend(make_folder(path, source))
    finally:
        for folder in reversed(created):
            # It is not empty.
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def sync_folder(path: str) -> None:
    """Syncs the name of a file, whose content is already on the disk."""
    sync_names(os.path.dirname(os.path.realpath(path)))


def sync_names(folder: str) -> None:
    """Syncs the names in a folder."""
    # On Windows, a folder cannot be opened.
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            error.filename = folder
            raise
        finally:
            os.close(descriptor)
