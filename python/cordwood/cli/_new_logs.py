"""New logs that a verb makes of others: of one log a file, of several a folder of files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import cordwood
from cordwood._inputs.destinations import destinations, new_folders, sync_folder
from cordwood._inputs.files import Input, identity_of, len_on_disk
from cordwood._inputs.kind import may_be_log
from cordwood.cli._messages import SourceFailure, Status
from cordwood.cli._new_files import check_destination, unfinished
from cordwood.cli._options import add_source_arguments
from cordwood.cli._reopenable import is_stream
from cordwood.cli._reports import sha256_of
from cordwood.cli._sources import ProgressBar, Tally, for_each_source, inputs_of


def add_new_log_arguments(parser: argparse.ArgumentParser) -> None:
    """The sources, the destination, and `--overwrite`."""
    add_source_arguments(parser)
    parser.add_argument(
        "destination", metavar="DESTINATION", help="the new log; for several or a pattern, the folder for them"
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an existing log once the new one is complete; refuse to replace any other file",
    )


Copy: TypeAlias = Callable[[str, Callable[[int], object]], cordwood.Report]
"""Writes a new log to a path. It reports its progress to its second argument."""


def copy_each(options: argparse.Namespace, work: Callable[[Input, NewLogs], Status], tally: Tally) -> Status:
    """Does the work for each source, which writes a new log, and prints the totals."""
    if options.destination == "-":
        raise ValueError("a new log is written to a file, not to stdout; ./- is a file")
    with new_folders() as make:
        new_logs = NewLogs(options, make)
        for_each_source(options, lambda file: work(file, new_logs), files=new_logs.files, tally=tally)
        return tally.print_totals()


class NewLogs:
    """The new logs of a command, each of which gets its name once it is complete.

    Attributes:
        files: The sources.
    """

    def __init__(self, options: argparse.Namespace, make_folder: Callable[[str, str], None]) -> None:
        self.files = inputs_of(options.sources)
        self._options = options
        self._make_folder = make_folder
        self._destinations = destinations(options.sources, self.files, options.destination)
        if options.overwrite and len(self.files) > 1:
            _check_no_source(self.files, self._destinations.values())
        # The old log of each new one, by the real path of the new one.
        self._written: dict[str, str] = {}

    def write(self, name: str, copy: Copy) -> tuple[str, cordwood.Report]:
        """Writes the new log of the source `name`. Returns its path, and the result of `copy`."""
        overwrite = self._options.overwrite
        # No folder is created for a file that is not a log. A source that can be read only once is not checked in
        # advance.
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
        if os.path.exists(destination) and not os.path.isfile(destination):
            # A pipe or a device would be replaced by the new log.
            raise SourceFailure(f"{destination} is not a regular file, as the new log will be: choose another name")
        check_destination([name], destination, overwrite=overwrite)
        if overwrite:
            _check_replaced(destination)
        if destination != self._options.destination:
            self._make_folder(os.path.dirname(destination), name)
        with unfinished(destination, overwrite=overwrite) as new, ProgressBar(name) as progress:
            report = copy(new, progress)
        sync_folder(destination)
        self._written[place] = name
        return destination, report


def new_log_fields(path: str) -> dict[str, object]:
    """The JSON about a new log."""
    length = len_on_disk(path)
    return {"destination": path, "destination_len": length, "destination_sha256": sha256_of(path, length)}


def _check_replaced(destination: str) -> None:
    """Checks that the file that `--overwrite` would replace is a log, maybe a damaged one, or empty.

    Raises:
        SourceFailure: It is of another kind, which nobody can have meant.
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


def _check_no_source(files: Sequence[Input], new: Iterable[str]) -> None:
    """Checks that no new log would replace a source, which might not have been read by then.

    Raises:
        ValueError: One would.
    """
    read = {identity_of(file.name) for file in files} - {None}
    for destination in new:
        if identity_of(destination) in read:
            raise ValueError(f"{destination} is one of the logs that are read, and would be overwritten")
