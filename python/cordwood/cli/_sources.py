"""Lists, opens, reads and counts the sources of a verb. Also shows progress and reports failures."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import cached_property
from typing import IO, Any, Self, TypeVar, cast

import cordwood
from cordwood._inputs.each import Read, Result, each
from cordwood._inputs.exports import exports_of
from cordwood._inputs.files import expand
from cordwood._inputs.files import is_stream as is_special_file
from cordwood._inputs.input import METADATA, Input
from cordwood._inputs.kind import NO_FRAGMENT
from cordwood._remote import source_of
from cordwood._summary import Fold
from cordwood._text import display_name, is_url, quantity, source_name
from cordwood.cli import _messages
from cordwood.cli._messages import NO_MEMORY, REPORTED_MAX, Failure, SourceFailure, Status, complain, reason_of
from cordwood.cli._output import STDOUT, print_json
from cordwood.cli._stdin import stdin, stdin_or_path
from cordwood.cli._terminal import fault_count, print_folded
from cordwood.typing import RangeReadable, Source

T = TypeVar("T")


def inputs_of(names: Iterable[str]) -> list[Input]:
    """Returns the files that the names on a command line refer to. `-` is stdin.

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
        other_kinds: For each kind of record that wasn't requested, the names of the logs with such records. Only logs
            found in directories are included.
    """

    def __init__(
        self,
        names: Sequence[str],
        files: Sequence[Input] | None = None,
        *,
        as_json: bool = False,
        judges_exports: bool = False,
    ) -> None:
        """Creates a tally with all counts at zero."""
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
        """Whether exports were found that make a log unnecessary.

        No log is needed if the verb checks exports, or if the exports list no files.
        """
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
        """Counts a log as read and, if `status` is `DAMAGE`, as damaged."""
        self.log_count += 1
        self.damaged_count += status == Status.DAMAGE

    def report_rest(self) -> None:
        """Reports logs that were left out, and files that aren't logs. Verbs that don't print totals call this."""
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
        """Prints the totals to stdout unless the command line names a single file. Returns the exit status.

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
        # A store's client raises its own exception types. These exceptions don't name the file.
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


def is_stream(name: str) -> bool:
    """Checks whether a source is stdin, a pipe or a device, which can only be read once and may block forever."""
    return name == "-" or is_special_file(name)


def first_stream(inputs: Iterable[Input]) -> str | None:
    """Returns the display name of the first input that can only be read once, or `None`."""
    return next((display_name(file.name) for file in inputs if not file.format and is_stream(file.name)), None)


class Reopenable:
    """A source that can be read more than once.

    A named file, a segmented log or a URL can have several readers at the same time. Stdin, or the temporary file that
    a pipe is copied to, can have only one reader at a time, so each must finish before the next starts.
    """

    def __init__(self, name: str, file: IO[bytes] | None, *, is_path: bool) -> None:
        self._name = name
        self._file = file
        self._is_path = is_path
        self._start = 0 if is_path or not file else file.tell()

    def open(self) -> Source:
        """Returns the source, positioned at its start."""
        if self._is_path or not self._file:
            return self._name
        self._file.seek(self._start)
        return self._file

    def read(self, start: int, end: int) -> bytes:
        """Returns the bytes between two file offsets. Readers of stdin or a pipe must have finished first.

        Raises:
            SourceFailure: The file has become shorter.
        """
        if not self._file:
            return bytes(cast("RangeReadable", source_of(self._name)).read_range(start, end))
        self._file.seek(self._start + start)
        data = self._file.read(end - start)
        if len(data) < end - start:
            raise SourceFailure("the file was cut while it was read: read it again while no program writes to it")
        return data

    def check_same(self, end: int) -> None:
        """Checks that a named file hasn't been replaced or shortened.

        Call this after reopening the file. The original file stays open so that no other file can get its inode.

        Raises:
            Failure: The file was replaced or cut short.
        """
        if not self._is_path or not self._file:
            return
        first = os.fstat(self._file.fileno())
        try:
            is_same = os.path.samestat(first, os.stat(self._name))
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise changed_meanwhile(self._name, "replaced")
        if first.st_size < end:
            raise changed_meanwhile(self._name, "cut")


def changed_meanwhile(name: str, what: str) -> Failure:
    """Returns the error for a file that changed between two passes."""
    return Failure(
        f"{name}: the file was {what} while it was converted; its columns are found in a first pass, and the second "
        "one found different records: convert it again while no program writes to it"
    )


@contextlib.contextmanager
def reopenable(name: str) -> Generator[Reopenable]:
    """Opens a source so that it can be read several times."""
    with contextlib.ExitStack() as stack:
        # A directory is read as a segmented log, whose files are opened one at a time.
        if is_url(name) or os.path.isdir(name):
            yield Reopenable(name, None, is_path=False)
            return
        is_path = name != "-" and os.path.isfile(name)
        file: IO[bytes] = stdin() if name == "-" else stack.enter_context(open(name, "rb"))
        if not file.seekable():
            import shutil
            import tempfile

            copy = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            file = copy
        yield Reopenable(name, file, is_path=is_path)


class ProgressBar:
    """A progress bar on stderr that shows the rate and the remaining time.

    The bar appears after one second, if stderr is a terminal and tqdm is installed (the `cli` extra). It isn't shown
    while records are being printed on the terminal, because they already show the progress. It is removed before a
    message is printed and when the work ends.
    """

    def __init__(self, name: str, *, prints_records: bool = False) -> None:
        self._bar: Any = None
        if not sys.stderr.isatty() or _messages.is_quiet or (prints_records and sys.stdout.isatty()):
            return
        try:
            from tqdm import tqdm
        except ImportError:
            return
        total = None
        # A missing file raises an error later, when a reader tries to open it.
        with contextlib.suppress(OSError, ValueError):
            total = None if name == "-" or is_url(name) else os.stat(name).st_size
        self._bar = tqdm(
            total=total, desc=display_name(name), delay=1, leave=False, unit="B", unit_scale=True, unit_divisor=1024
        )
        # Leave space for `^C`, which the terminal prints on Ctrl-C.
        if self._bar.ncols:
            self._bar.ncols = max(self._bar.ncols - 3, 1)

    def __call__(self, done_len: int) -> None:
        """Adds the number of bytes read since the last call."""
        if self._bar is not None:
            self._bar.update(done_len)

    def __enter__(self) -> Self:
        _messages.before_message = self._clear
        return self

    def __exit__(self, *_: object) -> None:
        _messages.before_message = None
        if self._bar is not None:
            self._clear()
            self._bar.close()

    def _clear(self) -> None:
        """Removes the bar from the terminal until it is drawn again."""
        # Ctrl-C may arrive while the bar is being drawn, before tqdm has recorded that it is visible.
        if self._bar is None or time.time() < self._bar.start_t + self._bar.delay:
            return
        # This also removes `^C` from the line.
        is_dumb = os.environ.get("TERM") == "dumb"
        print(
            "\r" + (" " * (self._bar.ncols or 0) + "\r" if is_dumb else "\x1b[K"), end="", file=sys.stderr, flush=True
        )
