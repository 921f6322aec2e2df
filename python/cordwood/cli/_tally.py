"""The sources of a verb in their order, and how many of them are logs, damaged, or failed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import cordwood
from cordwood._inputs.each import Read, each
from cordwood._inputs.expand import Input, is_one_file
from cordwood._inputs.kind import NO_FRAGMENT
from cordwood._remote import is_url, source_of
from cordwood._text import quantity
from cordwood.cli import _messages
from cordwood.cli._messages import NO_MEMORY, REPORTED_MAX, Status, complain, reason_of
from cordwood.cli._output import STDOUT, print_json
from cordwood.cli._progress import ProgressBar
from cordwood.cli._sources import SourceFailure, display_name, inputs_of, source_name
from cordwood.cli._terminal import print_folded, red

T = TypeVar("T")


class Tally:
    """The results of the sources of a verb.

    Attributes:
        log_count: Logs that were read, damaged ones among them.
        damaged_count: How many of those are damaged.
        only_other_count: How many of the damaged ones are so only because all of the file belongs to another log.
        failed_count: Sources that could not be read.
        others: How many files in folders are not logs, by format.
        other_files: The name of each of those files, and its format.
        other_kinds: Logs in folders that contain other records than requested, by kind.
        status: The exit status: the worst of all, and a failure is worse than damage.
    """

    def __init__(self) -> None:
        self.log_count = 0
        self.damaged_count = 0
        self.only_other_count = 0
        self.failed_count = 0
        self.others: dict[str, int] = {}
        self.other_files: list[tuple[str, str]] = []
        self.other_kinds: dict[str, list[str]] = {}
        self._sums: dict[str, int | None] = dict.fromkeys(
            ("record_count", "payload_len", "skipped_len", "damaged_len", "file_len"), 0
        )

    @property
    def status(self) -> Status:
        if self.failed_count or not self.log_count:
            return Status.FAILURE
        return Status.DAMAGE if self.damaged_count else Status.CLEAN

    def add_other(self, name: str, what: str) -> None:
        """Counts a file in a folder that is not a log."""
        self.others[what] = self.others.get(what, 0) + 1
        self.other_files.append((name, what))

    def add_sums(self, read: cordwood.Report | cordwood.Stat, damaged_len: int) -> None:
        """Adds the numbers of a log. The sum of the lengths is unknown once that of a file is."""
        for name, total in self._sums.items():
            value = damaged_len if name == "damaged_len" else getattr(read, name)
            self._sums[name] = None if value is None or total is None else total + value

    def others_text(self) -> str:
        """The files in folders that are not logs."""
        count = sum(self.others.values())
        kinds = ", ".join(
            what if len(self.others) == 1 else f"{what} ({count:,})" for what, count in sorted(self.others.items())
        )
        return f"{quantity(count, 'file')} {'is not a log' if count == 1 else 'are not logs'}: {kinds}"

    def print_totals(
        self, options: argparse.Namespace, *, names_others: bool = False, damaged: str = "damaged"
    ) -> Status:
        """Prints the sums on stdout, unless the command line names a single file, and returns the status.

        Args:
            options: Only `sources` and `json` are used.
            names_others: Whether to name the files that are not logs.
            damaged: The adjective for damaged logs.
        """
        if is_one_file(options.sources) or _messages.is_quiet:
            return self.status
        damaged_count = self.damaged_count - self.only_other_count
        if options.json:
            counts = {
                "log_count": self.log_count,
                "damaged_count": damaged_count,
                "failed_count": self.failed_count,
                "other_file_count_by_format": self.others,
                "other_files": [{"source": name, "format": what} for name, what in self.other_files],
            }
            print_json({"totals": {**counts, **self._sums}})
            return self.status
        damaged = f"{damaged_count:,} {damaged}"
        damaged = red(damaged) if damaged_count else damaged
        records = quantity(self._sums["record_count"] or 0, "record")
        payload = quantity(self._sums["payload_len"] or 0, "byte")
        logs = quantity(self.log_count, "log")
        print(f"total: {logs}, {damaged}, {self.failed_count:,} failed; {records}, {payload}")
        if self.others:
            print_folded(f"  {self.others_text()}")
            if names_others:
                _print_names(self.other_files)
        return self.status


def _print_names(files: list[tuple[str, str]]) -> None:
    """Prints the first files that are not logs, beginning with those that could be."""
    ordered = sorted(files, key=lambda file: file[1] not in (NO_FRAGMENT, "unknown"))
    for name, what in ordered[:REPORTED_MAX]:
        print(f"    {display_name(name)}: {what}")
    if len(ordered) > REPORTED_MAX:
        print(f"    and {len(ordered) - REPORTED_MAX:,} more")


def report_same(name: str, first: str) -> None:
    """Reports a file that is not read, because it is the same as one that is named before it."""
    complain(f"{display_name(name)}: the same file as {display_name(first)}")


def for_each_source(
    names: Sequence[str],
    work: Callable[[str], Status],
    *,
    files: Iterable[Input] | None = None,
    dialect: str | None = None,
    other_kind: Callable[[str], str | None] | None = None,
    as_json: bool = False,
    tally: Tally | None = None,
) -> Tally:
    """Does the work for each source that is named.

    With `dialect`, all named files are read in it, and those files in folders that are logs.

    Args:
        names: Files, patterns and folders.
        work: The function for a file.
        files: The result of `inputs_of` for the names, if it has been called.
        dialect: The value of `--dialect`.
        other_kind: Returns the kind of a log in a folder if another one was requested: the log is then left out,
            and reported. `None` if it is to be read.
        as_json: As for `take_results`.
        tally: As for `take_results`.
    """
    other_kinds: dict[str, list[str]] = {}

    def read(file: Input, _threads: int, _progress: object) -> Status | None:
        if file.is_in_folder and other_kind and (kind := other_kind(file.name)):
            other_kinds.setdefault(kind, []).append(file.name)
            return None
        return work(file.name)

    files = list(inputs_of(names, same=report_same) if files is None else files)
    if other_kind:
        files = [file._replace(format=file.not_decoded) for file in files]
    results = each(files, read, dialect=dialect)
    return take_results(names, results, lambda _, status: status, other_kinds, as_json=as_json, tally=tally)


def read_each(
    options: argparse.Namespace, read: Read[T], take: Callable[[str, T], Status | None], tally: Tally
) -> list[Input]:
    """Reads the sources in several threads, takes the results in their order, and returns the files.

    Args:
        options: Only `sources`, `threads`, `dialect` and `json` are used.
        read: As for `each`.
        take: As for `take_results`.
        tally: As for `take_results`.
    """
    files = inputs_of(options.sources, same=report_same)
    results = each(files, read, options.threads, dialect=options.dialect, shown=ProgressBar)
    take_results(options.sources, results, take, as_json=options.json, tally=tally)
    return files


def take_results(
    names: Sequence[str],
    results: Iterable[tuple[Input, T | str | Exception]],
    take: Callable[[str, T], Status | None],
    other_kinds: dict[str, list[str]] | None = None,
    *,
    as_json: bool = False,
    tally: Tally | None = None,
) -> Tally:
    """Takes the results of `each` for the sources, and counts them. Files in folders that are not logs are counted.

    Args:
        names: Files, patterns and folders.
        results: The results of `each`.
        take: Prints the result for a file of this name, and returns its status; `None` if it was left out.
        other_kinds: The logs that were left out, by kind.
        as_json: A source that fails also has an object: its `source`, and the `error`.
        tally: Where to count, if the caller prints how many files are not logs. Otherwise that is reported on stderr.
    """
    has_totals = tally is not None
    tally = tally or Tally()
    for file, found in results:
        name = file.name
        if isinstance(found, str):
            tally.add_other(name, found)
            continue
        if isinstance(found, Exception):
            text = _report(name, found)
            tally.failed_count += file.file_count
            if as_json:
                print_json({"source": source_name(name), "error": text})
            continue
        status = take(name, found)
        tally.failed_count += status == Status.FAILURE
        tally.log_count += status in (Status.CLEAN, Status.DAMAGE)
        tally.damaged_count += status == Status.DAMAGE
    tally.other_kinds = other_kinds or {}
    for kind, (first, *more) in tally.other_kinds.items():
        if more:
            others = quantity(len(more), "more log")
            complain(f"{display_name(first)} and {others} left out: the first record of each is {kind}")
        else:
            complain(f"{display_name(first)}: left out: its first record is {kind}")
    if not (tally.log_count or tally.failed_count or tally.other_kinds):
        found_files = tally.others_text() if tally.others else "there are no files"
        complain(f"{' '.join(map(display_name, names))}: no log was found; {found_files}")
    elif tally.others and not has_totals:
        complain(tally.others_text())
    return tally


def check_url(name: str) -> None:
    """Checks that a source, if it is a URL, can be read. No byte is requested.

    Raises:
        SourceFailure: Its protocol is not known, or the package that reads it is not installed.
    """
    if is_url(name):
        try:
            source_of(name)
        except (ValueError, ModuleNotFoundError) as error:
            raise SourceFailure(getattr(error, "message", str(error))) from error


def _report(name: str, error: Exception) -> str:
    """Reports why a source failed, and returns the reason.

    Raises:
        OSError: The error is about stdout: the other sources would fail in the same way.
    """
    if isinstance(error, OSError):
        # The client of a store has classes of its own, and names no file.
        is_of_client = error.filename is None and type(error).__module__ != "builtins"
        is_of_output = error.filename == STDOUT or (error.filename is None and name != "-" and not is_of_client)
        if isinstance(error, BrokenPipeError) or is_of_output:
            raise error
        complain(f"{source_name(name)}: {reason_of(error)}" if is_of_client else error)
        # An error of `salvage` may be about the new log.
        is_other = error.filename not in (None, source_name(name)) and error.strerror
        return f"{error.filename}: {reason_of(error)}" if is_other else reason_of(error)
    text = NO_MEMORY if isinstance(error, MemoryError) else getattr(error, "message", str(error))
    complain(error if isinstance(error, cordwood.CordwoodError) else text, place=source_name(name))
    return text
