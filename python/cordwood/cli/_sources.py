"""Lists a verb's sources, reads them in order, shows progress, counts them, and reports failures."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import cordwood
from cordwood._fold import Fold
from cordwood._inputs.each import Read, Result, each
from cordwood._inputs.exports import exports_of
from cordwood._inputs.files import expand
from cordwood._inputs.input import METADATA, Input
from cordwood._inputs.kind import NO_FRAGMENT
from cordwood._remote import is_url, source_of
from cordwood._text import display_name, quantity, source_name
from cordwood.cli import _messages
from cordwood.cli._messages import NO_MEMORY, REPORTED_MAX, SourceFailure, Status, complain, reason_of
from cordwood.cli._output import STDOUT, print_json
from cordwood.cli._progress import ProgressBar
from cordwood.cli._stdin import stdin_or_path
from cordwood.cli._terminal import fault_count, print_folded

T = TypeVar("T")


def inputs_of(names: Iterable[str]) -> list[Input]:
    """Expands the names on a command line to files, using `expand`. `-` is stdin.

    If two names refer to the same file, it is read only once, and the second name is reported.
    """
    inputs = [_of_stdin() if name == "-" else name for name in names]
    return expand(inputs, same=_report_same)


def _report_same(name: str, first: str) -> None:
    is_segment = os.path.isdir(first) and not os.path.isdir(name)
    relation = "read as a segment of" if is_segment else "the same file as"
    complain(f"{display_name(name)}: {relation} {display_name(first)}")


def _of_stdin() -> Input:
    try:
        return Input("-", "-", source=stdin_or_path("-"))
    except OSError as error:
        return Input("-", "-", error=error)


class Tally(Fold):
    """The results for a verb's sources.

    Attributes:
        names: The names of files, patterns and directories.
        as_json: Whether to print a JSON object with `source` and `error` for each source that fails.
        judges_exports: Whether the verb prints exports that it finds among the files.
        log_count: The number of logs read, including damaged ones.
        damaged_count: How many of these logs are damaged.
        other_log_count: The number of logs that count as damaged only because the whole file belongs to another log.
        failed_count: The number of sources that could not be read.
        other_kinds: For each kind of record that wasn't requested, the names of the logs of that kind found in
            directories.
    """

    def __init__(
        self,
        names: Sequence[str],
        files: Sequence[Input] | None = None,
        *,
        as_json: bool = False,
        judges_exports: bool = False,
    ) -> None:
        """Creates a tally before the first source is read."""
        super().__init__(inputs_of(names) if files is None else files)
        self.names = names
        self.as_json = as_json
        self.judges_exports = judges_exports
        self.log_count: int = 0
        self.damaged_count: int = 0
        self.other_log_count: int = 0
        self.failed_count: int = 0
        self.other_kinds: dict[str, list[str]] = {}
        self._sums: dict[str, int | None] = dict.fromkeys(
            ("record_count", "payload_len", "skipped_len", "damaged_len", "file_len"), 0
        )

    @cached_property
    def is_one_file(self) -> bool:
        """Whether the command line names a single file rather than several files, a pattern or a directory."""
        return len(self.names) == 1 and [file.name for file in self.files] == [self.names[0]]

    @property
    def is_export(self) -> bool:
        """Whether every file is the metadata of an export that the verb checks or that lists no entities."""
        exports, failures = exports_of(self.files)
        is_other = failures or self.other_kinds or not exports
        return not is_other and all(self.judges_exports or not export.files for export in exports)

    @property
    def status(self) -> Status:
        """The exit status, which is the worst status of any source. A failure is worse than damage."""
        if self.failed_count or not (self.log_count or self.databases or self.is_export):
            return Status.FAILURE
        return Status.DAMAGE if self.damaged_count else Status.CLEAN

    def read(self, options: argparse.Namespace, read: Read[T]) -> Iterator[tuple[Input, T]]:
        """Reads the logs in several threads, shows a progress bar, and yields the results of `read`."""
        shown = ProgressBar if sys.stderr.isatty() and not _messages.is_quiet else None
        return self.taken(each(self.files, read, options.threads, dialect=options.dialect, shown=shown))

    def taken(self, results: Iterable[Result[T]]) -> Iterator[tuple[Input, T]]:
        """Yields the results of `each` for the logs, in order. Reports failures and counts non-log files."""
        for file, found in self.take(results):
            if isinstance(found, Exception):
                text = _report(file.name, found)
                self.failed_count += file.file_count
                if self.as_json:
                    print_json({"source": source_name(file.name), "error": text})
            elif not isinstance(found, str):
                yield file, found
        if not (self.log_count or self.failed_count or self.other_kinds or self.is_export):
            found_files = self.others_text() if self.others else "there are no files"
            complain(f"{' '.join(map(display_name, self.names))}: no log was found; {found_files}")

    def add_sums(self, counts: cordwood.Report | cordwood.Stat) -> None:
        """Adds a log's counts to the totals. If a length is unknown, so is the total length."""
        if self.is_one_file:
            return
        for name, total in self._sums.items():
            value: int | None = getattr(counts, name)
            self._sums[name] = None if value is None or total is None else total + value

    def count(self, status: Status) -> None:
        """Counts a log that was read, and whether it is damaged."""
        self.log_count += 1
        self.damaged_count += status == Status.DAMAGE

    def report_rest(self) -> None:
        """Reports logs that were left out and files that aren't logs, for verbs that don't print totals."""
        for kind, (first, *more) in self.other_kinds.items():
            if more:
                others = quantity(len(more), "more log")
                complain(f"{display_name(first)} and {others} left out: the first record of each is {kind}")
            else:
                complain(f"{display_name(first)}: left out: its first record is {kind}")
        if self.reported_files and (self.log_count or self.failed_count or self.other_kinds):
            complain(self.others_text())

    @property
    def reported_files(self) -> list[tuple[str, str]]:
        """The non-log files in directories. Export metadata is included only if no log was read."""
        if not (self.log_count or self.failed_count or self.other_kinds):
            return self.others
        return [file for file in self.others if file[1] != METADATA]

    def others_text(self) -> str:
        """Returns the number of `reported_files` in each format."""
        counts = Counter(what for _, what in self.reported_files)
        kinds = ", ".join(what if len(counts) == 1 else f"{what} ({count:,})" for what, count in sorted(counts.items()))
        count = counts.total()
        return f"{quantity(count, 'file')} {'is not a log' if count == 1 else 'are not logs'}: {kinds}"

    def print_totals(self, *, names_others: bool = False, damaged: str = "damaged", **counts: int) -> Status:
        """Prints the sums on stdout, unless the command line names a single file, and returns the status.

        Args:
            names_others: Whether to name the files that are not logs.
            damaged: The adjective for damaged logs.
            counts: Additional totals for JSON.
        """
        if self.is_one_file or _messages.is_quiet:
            return self.status
        damaged_count = self.damaged_count - self.other_log_count
        if self.as_json:
            logs_and_files = {
                "log_count": self.log_count,
                "damaged_count": damaged_count,
                "failed_count": self.failed_count,
                "other_file_count_by_format": Counter(what for _, what in self.others),
                "other_files": [{"source": name, "format": what} for name, what in self.others],
            }
            print_json({"totals": {**logs_and_files, **self._sums, **counts}})
            return self.status
        faults = fault_count(damaged_count, damaged)
        if self.other_log_count:
            faults += f", {fault_count(self.other_log_count, 'of another log')}"
        records = quantity(self._sums["record_count"] or 0, "record")
        payload = quantity(self._sums["payload_len"] or 0, "byte")
        logs = quantity(self.log_count, "log")
        print(f"total: {logs}, {faults}, {self.failed_count:,} failed; {records}, {payload}")
        if self.reported_files:
            print_folded(f"  {self.others_text()}")
            if names_others:
                _print_names(self.reported_files)
        return self.status


def _print_names(files: list[tuple[str, str]]) -> None:
    """Prints the first files that are not logs. Files in an unknown format, which could be logs, come first."""
    ordered = sorted(files, key=lambda file: file[1] not in (NO_FRAGMENT, "unknown"))
    for name, what in ordered[:REPORTED_MAX]:
        print(f"    {display_name(name)}: {what}")
    if len(ordered) > REPORTED_MAX:
        print(f"    and {len(ordered) - REPORTED_MAX:,} more")


def for_each_source(
    options: argparse.Namespace,
    work: Callable[[Input], Status],
    *,
    files: Sequence[Input] | None = None,
    other_kind: Callable[[str], str | None] | None = None,
    tally: Tally | None = None,
) -> Tally:
    """Calls `work` for each source.

    With `--dialect`, all named files and all logs in directories are read in this dialect.

    Args:
        options: Only `sources` and `dialect` are used.
        work: The function to call for each file.
        files: The result of `inputs_of` for the sources, if it has been called.
        other_kind: A function to call for each log in a directory. If it returns the log's kind, the log is left out
            and reported. If it returns `None`, the log is passed to `work`.
        tally: The tally to use, if the verb prints totals.
    """
    has_totals = tally is not None
    tally = tally or Tally(options.sources, files)
    files = tally.files
    if other_kind:
        files = [file._replace(format=file.not_decoded) for file in files]

    def read(file: Input, _threads: int, _progress: object) -> None:
        if file.is_in_directory and other_kind and (kind := other_kind(file.name)):
            tally.other_kinds.setdefault(kind, []).append(file.name)
        else:
            tally.count(work(file))

    # `read` has already counted each log.
    for _ in tally.taken(each(files, read, dialect=options.dialect)):
        pass
    if not has_totals:
        tally.report_rest()
    return tally


def check_url(name: str) -> None:
    """Checks that a URL can be read, without requesting any bytes. Other sources are not checked.

    Raises:
        SourceFailure: The URL's protocol is unknown, or a package it needs is not installed.
    """
    if is_url(name):
        try:
            source_of(name)
        except (ValueError, ModuleNotFoundError) as error:
            raise SourceFailure(getattr(error, "message", str(error))) from error


def _report(name: str, error: Exception) -> str:
    """Reports why a source failed, and returns the reason.

    Raises:
        OSError: The error concerns stdout, so the other sources would fail in the same way.
    """
    if isinstance(error, OSError):
        # A store's client raises errors of its own classes, which don't name the file.
        is_of_client = error.filename is None and type(error).__module__ != "builtins"
        is_of_output = error.filename == STDOUT or (error.filename is None and name != "-" and not is_of_client)
        if isinstance(error, BrokenPipeError) or is_of_output:
            raise error
        complain(f"{source_name(name)}: {reason_of(error)}" if is_of_client else error)
        # An error from `salvage` may concern the new log.
        is_other = error.filename not in (None, source_name(name)) and error.strerror
        return f"{error.filename}: {reason_of(error)}" if is_other else reason_of(error)
    text = NO_MEMORY if isinstance(error, MemoryError) else getattr(error, "message", str(error))
    complain(error if isinstance(error, cordwood.CordwoodError) else text, place=source_name(name))
    return text
