"""Writes new logs made from other logs: a file for one log, or a directory for several."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import cordwood
from cordwood._inputs.destinations import destinations, new_directories, sync_directory
from cordwood._inputs.files import identity_of, len_on_disk, sha256_of
from cordwood._inputs.input import Input
from cordwood._inputs.kind import may_be_damaged_log
from cordwood._text import display_name, escaped, source_name
from cordwood.cli._messages import SourceFailure, Status, complain
from cordwood.cli._options import add_source_arguments
from cordwood.cli._output import check_destination, print_json, unfinished
from cordwood.cli._reports import print_report
from cordwood.cli._sources import ProgressBar, Tally, for_each_source, inputs_of, is_stream


class Copied(NamedTuple):
    """Describes a new log and its source."""

    report: cordwood.Report
    """The report for the source."""
    text: str
    """The text about the new log's contents."""
    fields: Mapping[str, Any] = {}
    """Additional fields of the JSON object."""
    notes: Sequence[str] = ()
    """Messages for stderr."""


Copy: TypeAlias = Callable[[Input, str, Callable[[int], object]], Copied]
"""A function that makes a new log from a source.

It takes the source, the path of the new log, and a function that reports progress.
"""


def add_new_log_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the sources and the destination, and `--overwrite`."""
    add_source_arguments(parser)
    parser.add_argument(
        "destination", metavar="DESTINATION", help="the new log; for several or a pattern, the directory for them"
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an existing log once the new one is complete; refuse to replace any other file",
    )
    # Each source is read completely. The report is the one that `verify` prints without `--strict`.
    parser.set_defaults(start=0, strict=False)


def write_each(options: argparse.Namespace, copy: Copy) -> Status:
    """Writes a new log for each source, and prints a report on each source, followed by the totals.

    Each new log gets its final name once it is complete.
    """
    if options.destination == "-":
        raise ValueError("a new log is written to a file, not to stdout; ./- is a file")
    files = inputs_of(options.sources)
    places = destinations(options.sources, files, options.destination)
    if options.overwrite and len(files) > 1:
        _check_no_source(files, places.values())
    tally = Tally(options.sources, files, as_json=options.json)
    # Maps the real path of each new log to the log's source. Real paths are used because two paths may refer to the
    # same file.
    written: dict[str, str] = {}

    def write(file: Input) -> Status:
        name, destination = file.name, places[file.name]
        # Don't create a directory for a file that isn't a log. A source that can only be read once can't be checked in
        # advance.
        if not (options.dialect or is_stream(name)):
            cordwood.detect(name)
        place = os.path.realpath(destination)
        if place in written:
            raise SourceFailure(
                f"{written[place]} has been copied to {destination}, where this one would also go; "
                "copy it on its own, to another directory"
            )
        _check_place(name, destination, overwrite=options.overwrite)
        if destination != options.destination:
            make_directory(os.path.dirname(destination), name)
        try:
            with unfinished(destination, overwrite=options.overwrite) as new, ProgressBar(name) as progress:
                report, text, fields, notes = copy(file, new, progress)
        except cordwood.CorruptionError as error:
            complain(error, place=source_name(name))
            if options.json:
                print_json({"source": source_name(name), "error": error.message})
            return Status.DAMAGE
        sync_directory(destination)
        written[place] = name
        tally.add_sums(report)
        if not (report.ok and options.quiet):
            sha256 = sha256_of(name, report.file_len) if options.json else None
            more = _fields_of(destination) if options.json else {}
            print_report(name, report, options, sha256=sha256, **more, **fields)
            if not options.json:
                print(f"  wrote {escaped(destination)}: {text}")
        for note in notes:
            complain(f"{display_name(name)}: {note}")
        return Status.CLEAN if report.ok else Status.DAMAGE

    def try_to_write(file: Input) -> Status:
        try:
            return write(file)
        except cordwood.DialectError as error:
            if "new_dialect" in options:
                # Here, `--dialect` names the dialect of the new log, so the hint would be wrong.
                error.hint = None
            raise

    with new_directories() as make_directory:
        for_each_source(options, try_to_write, tally=tally)
        return tally.print_totals()


def _fields_of(destination: str) -> dict[str, object]:
    """Returns the JSON fields about a new log."""
    length = len_on_disk(destination)
    sha256 = sha256_of(destination, length)
    return {"destination": destination, "destination_len": length, "destination_sha256": sha256}


def _check_place(name: str, destination: str, *, overwrite: bool) -> None:
    """Checks that the new log for a source can have this path.

    Raises:
        FileExistsError: The file exists, and `overwrite` is false.
        SourceFailure: The existing file is neither empty nor a log, not even a damaged one. The user probably didn't
            mean to replace it.
        ValueError: Same as for `check_destination`.
    """
    if os.path.exists(destination) and not os.path.isfile(destination):
        # Otherwise, the new log would replace a pipe or a device.
        raise SourceFailure(f"{destination} is not a regular file, as the new log will be: choose another name")
    check_destination([name], destination, overwrite=overwrite)
    if not overwrite:
        return
    kind = ""
    try:
        if cordwood.detect(destination) or not os.path.getsize(destination) or may_be_damaged_log(destination):
            return
    except FileNotFoundError:
        return
    except cordwood.DialectError as error:
        kind = f" ({error.format})"
    raise SourceFailure(
        f"{destination} is not a log{kind}, and --overwrite replaces only logs: choose another name, or remove it first"
    )


def _check_no_source(files: Sequence[Input], new: Iterable[str]) -> None:
    """Checks that no new log would replace a source, because the source might not have been read yet.

    Raises:
        ValueError: A new log would replace a source.
    """
    read = {identity_of(file.name) for file in files} - {None}
    for destination in new:
        if identity_of(destination) in read:
            raise ValueError(f"{destination} is one of the logs that are read, and would be overwritten")
