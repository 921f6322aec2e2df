"""New logs that a verb makes of others: of one log a file, of several a folder of files."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

import cordwood
from cordwood._identity import identity_of
from cordwood._inputs.expand import Input, is_one_file
from cordwood._inputs.kind import may_be_log
from cordwood._remote import local_path
from cordwood.cli._options import add_source_arguments
from cordwood.cli._output import check_destination, unfinished
from cordwood.cli._progress import ProgressBar
from cordwood.cli._reports import sha256_of
from cordwood.cli._sources import SourceFailure, inputs_of, is_stream
from cordwood.cli._tally import report_same


def add_new_log_arguments(parser: argparse.ArgumentParser) -> None:
    """The sources, the destination, and `--overwrite`."""
    add_source_arguments(parser)
    parser.add_argument(
        "destination", metavar="DESTINATION", help="the new log; for several or a pattern, the folder for them"
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace a log that is there, once the new one is complete; any other file is refused",
    )


class NewLogs:
    """The new logs of a command, each of which gets its name once it is complete.

    Attributes:
        files: The sources.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        if options.destination == "-":
            raise ValueError("a new log is written to a file, not to stdout; ./- is a file")
        self.files = inputs_of(options.sources, same=report_same)
        self._options = options
        self._destinations = _destinations(self.files, options)
        if options.overwrite and len(self.files) > 1:
            _check_no_source(self.files, self._destinations.values())
        # The old log of each new one, by the real path of the new one.
        self._written: dict[str, str] = {}
        self._created: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # A folder stays if a log was written to it.
        for folder in reversed(self._created):
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # noqa: PTH106

    def write(
        self, name: str, copy: Callable[[str, Callable[[int], object]], cordwood.Report]
    ) -> tuple[str, cordwood.Report]:
        """Writes the new log of the source `name`.

        Args:
            name: The name of the source.
            copy: Writes a new log to a path. It reports its progress to its second argument.

        Returns:
            The path of the new log, and what `copy` returned.
        """
        overwrite = self._options.overwrite
        # No folder is created for what is not a log. What can be read only once is not checked in advance.
        if not (self._options.dialect or is_stream(name)):
            cordwood.detect(name)
        destination = self._destinations[name]
        # Two paths may lead to one file.
        place = os.path.realpath(destination)
        if place in self._written:
            raise SourceFailure(
                f"{self._written[place]} has been copied to {destination}, where this one would also go; "
                "copy it on its own, to another folder"
            )
        if os.path.exists(destination) and not os.path.isfile(destination):  # noqa: PTH110, PTH113
            # A pipe or a device would be replaced by the new log.
            raise SourceFailure(f"{destination} is not a regular file, as the new log will be: choose another name")
        check_destination(name, destination, overwrite=overwrite)
        if overwrite:
            _check_replaced(destination)
        if destination != self._options.destination:
            self._created.extend(make_folder(os.path.dirname(destination), name))  # noqa: PTH120 - pathlib is slow to import
        with unfinished(destination, overwrite=overwrite) as new, ProgressBar(name) as progress:
            report = copy(new, progress)
        _sync_folder(destination)
        self._written[place] = name
        return destination, report


def new_log_fields(path: str) -> dict[str, object]:
    """What JSON says about a new log."""
    length = os.path.getsize(path)  # noqa: PTH202 - pathlib is slow to import
    return {"destination": path, "destination_len": length, "destination_sha256": sha256_of(path, length)}


def _check_replaced(destination: str) -> None:
    """Checks that what `--overwrite` would replace is a log, maybe a damaged one, or empty.

    Raises:
        SourceFailure: It is something else, which nobody can have meant.
    """
    what = ""
    try:
        if may_be_log(destination):
            return
    except FileNotFoundError:
        return
    except cordwood.DialectError as error:
        what = f" ({error.format})"
    raise SourceFailure(
        f"{destination} is not a log{what}, and --overwrite replaces only logs: choose another name, or remove it first"
    )


def make_folder(path: str, source: str) -> list[str]:
    """Creates a folder and those above it. Returns those that did not exist, the topmost first.

    They are as open to others as the folder of `source`, the log that is copied to it: a private folder protects the
    logs in it, whatever their own modes.
    """
    mode = 0o777
    if (log := local_path(source)) is not None:
        mode &= os.stat(os.path.dirname(log) or os.curdir).st_mode  # noqa: PTH116, PTH120
    missing: list[str] = []
    above = path
    while above and not os.path.lexists(above):
        missing.insert(0, above)
        above = os.path.dirname(above)  # noqa: PTH120 - pathlib is slow to import
    for folder in missing:
        with contextlib.suppress(FileExistsError):
            # Without the bits for the owner, nothing could be written there.
            os.mkdir(folder, mode | 0o700)  # noqa: PTH102
    return missing


def _sync_folder(path: str) -> None:
    """Syncs the name of a file, whose content is already on the disk."""
    # On Windows, a folder cannot be opened.
    if os.name == "posix":
        folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)  # noqa: PTH120
        try:
            os.fsync(folder)
        except OSError as error:
            error.filename = path
            raise
        finally:
            os.close(folder)


def _destinations(files: Sequence[Input], options: argparse.Namespace) -> dict[str, str]:
    """The new log for each source. Its folder is not created here.

    Whether the destination is a folder depends on what is named, not on how many logs that turns out to be.

    Raises:
        ValueError: Several logs would go to one file, or into the folder that they are from.
    """
    destination: str = options.destination
    is_several = not is_one_file(options.sources)
    # A trailing slash is that of a folder, and hides a file that has the name without it.
    bare = destination.rstrip(os.sep + (os.altsep or ""))
    is_folder = is_several or bare != destination or os.path.isdir(destination)  # noqa: PTH112
    if not destination or not is_folder:
        return dict.fromkeys((file.name for file in files), destination)
    check_new_folder(
        destination, options.sources, why=", and several logs, or a pattern, need one" if is_several else ""
    )
    if any(file.name == "-" for file in files):
        raise ValueError("a log from stdin has no name to be kept: name a file for the new log")
    return {file.name: os.path.join(destination, file.relative) for file in files}  # noqa: PTH118


def check_new_folder(folder: str, sources: Iterable[str], *, why: str = "") -> None:
    """Checks that a folder can get the new files: it is a folder or does not exist, and is not in one that is read.

    Raises:
        ValueError: It cannot, and `why` says what needs a folder.
    """
    if not folder:
        raise ValueError("the name of the folder is empty")
    bare = folder.rstrip(os.sep + (os.altsep or ""))
    if bare and os.path.lexists(bare) and not os.path.isdir(folder):  # noqa: PTH112 - pathlib is slow to import
        raise ValueError(f"{folder} is not a folder{why}")
    new = os.path.realpath(folder)
    for source in sources:
        old = os.path.realpath(source)
        if os.path.isdir(source) and os.path.commonpath([new, old]) == old:  # noqa: PTH112
            raise ValueError(f"{folder} is in {source}: the new files would be among those that are read")


def _check_no_source(files: Sequence[Input], destinations: Iterable[str]) -> None:
    """Checks that no new log would replace a source, which might not have been read by then.

    Raises:
        ValueError: One would.
    """
    read = {identity_of(file.name) for file in files} - {None}
    for destination in destinations:
        if identity_of(destination) in read:
            raise ValueError(f"{destination} is one of the logs that are read, and would be overwritten")
