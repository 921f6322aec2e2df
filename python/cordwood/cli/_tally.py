"""What is done for each source of a verb, and what became of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import cordwood
from cordwood._inputs.expand import Input
from cordwood._inputs.kind import without_fragment
from cordwood._remote import is_url, source_of
from cordwood._text import quantity
from cordwood.cli._messages import NO_MEMORY, Status, complain, reason_of
from cordwood.cli._output import STDOUT, print_json
from cordwood.cli._sources import SourceFailure, display_name, inputs_of, source_name


class Tally:
    """What became of the sources of a verb.

    Attributes:
        log_count: Logs that were read, damaged ones among them.
        damaged_count: How many of those are damaged.
        failed_count: Sources that could not be read.
        others: How many files in folders are not logs, by what they are.
        other_files: The name of each of those files, and what it is.
        other_kinds: Logs in folders that contain something other than what was requested, by what that is.
        status: The exit status: the worst of all, and a failure is worse than damage.
    """

    def __init__(self) -> None:
        self.log_count = 0
        self.damaged_count = 0
        self.failed_count = 0
        self.others: dict[str, int] = {}
        self.other_files: list[tuple[str, str]] = []
        self.other_kinds: dict[str, list[str]] = {}

    @property
    def status(self) -> Status:
        if self.failed_count or not self.log_count:
            return Status.FAILURE
        return Status.DAMAGE if self.damaged_count else Status.CLEAN

    def add_other(self, name: str, what: str) -> None:
        """Counts a file in a folder that is not a log."""
        self.others[what] = self.others.get(what, 0) + 1
        self.other_files.append((name, what))

    def others_text(self) -> str:
        """The files in folders that are not logs."""
        count = sum(self.others.values())
        kinds = ", ".join(
            what if len(self.others) == 1 else f"{what} ({count:,})" for what, count in sorted(self.others.items())
        )
        return f"{quantity(count, 'file')} {'is not a log' if count == 1 else 'are not logs'}: {kinds}"


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
    has_totals: bool = False,
) -> Tally:
    """Does the work for each source that is named.

    One that fails does not stop the others. Files in folders that are not logs are counted. With `dialect`, all named
    files are read in it, and those files in folders that are logs.

    Args:
        names: Files, patterns and folders.
        work: What to do with a file.
        files: What `inputs_of` returned for the names, if it has been called.
        dialect: The value of `--dialect`.
        other_kind: Returns what a log in a folder contains if that is not what was requested: the log is then left out,
            and reported. `None` if it is to be read.
        as_json: A source that fails also has an object: its `source`, and the `error`.
        has_totals: The caller says how many files are not logs. Otherwise that is reported on stderr.
    """
    tally = Tally()
    for file in inputs_of(names, same=report_same) if files is None else files:
        _attempt(file, work, tally, dialect=dialect, other_kind=other_kind, as_json=as_json)
    for kind, (first, *more) in tally.other_kinds.items():
        if more:
            others = quantity(len(more), "more log")
            complain(f"{display_name(first)} and {others} left out: the first record of each is {kind}")
        else:
            complain(f"{display_name(first)}: left out: its first record is {kind}")
    if not (tally.log_count or tally.failed_count or tally.other_kinds):
        found = tally.others_text() if tally.others else "there are no files"
        complain(f"{' '.join(map(display_name, names))}: no log was found; {found}")
    elif tally.others and not has_totals:
        complain(tally.others_text())
    return tally


def _other_kind(file: Input, dialect: str | None, other_kind: Callable[[str], str | None] | None) -> str | None:
    """What a log in a folder contains, if that is not what was requested.

    Raises:
        DialectError: It is not a log, which reading it in the `dialect` would not show.
    """
    if not file.is_in_folder:
        return None
    if dialect:
        cordwood.detect(file.name)
    return other_kind(file.name) if other_kind else None


def check_url(name: str) -> None:
    """Checks that a source, if it is a URL, can be read. Nothing is requested.

    Raises:
        SourceFailure: Its protocol is not known, or the package that reads it is not installed.
    """
    if is_url(name):
        try:
            source_of(name)
        except (ValueError, ModuleNotFoundError) as error:
            raise SourceFailure(getattr(error, "message", error)) from error


def _attempt(
    file: Input,
    work: Callable[[str], Status],
    tally: Tally,
    *,
    dialect: str | None,
    other_kind: Callable[[str], str | None] | None,
    as_json: bool,
) -> None:
    name = file.name
    try:
        if file.error:
            raise file.error
        check_url(name)
        what = (file.not_decoded if other_kind else file.format) or without_fragment(file)
        if not what and (kind := _other_kind(file, dialect, other_kind)):
            tally.other_kinds.setdefault(kind, []).append(name)
            return
        status = Status.CLEAN if what else work(name)
    except BrokenPipeError:
        raise
    except OSError as error:
        # The client of a store has classes of its own, and names no file.
        is_of_client = error.filename is None and type(error).__module__ != "builtins"
        # The output: the others would fail in the same way.
        if error.filename == STDOUT or (error.filename is None and name != "-" and not is_of_client):
            raise
        complain(f"{source_name(name)}: {reason_of(error)}" if is_of_client else error)
        # An error of `salvage` may be about the new log.
        is_other = error.filename not in (None, source_name(name)) and error.strerror
        text = f"{error.filename}: {reason_of(error)}" if is_other else reason_of(error)
    except (cordwood.CordwoodError, MemoryError, SourceFailure) as error:
        if file.is_in_folder and isinstance(error, cordwood.DialectError):
            tally.add_other(name, error.format)
            return
        complain(error, place=source_name(name))
        text = error.message if isinstance(error, cordwood.CordwoodError) else str(error)
        text = NO_MEMORY if isinstance(error, MemoryError) else text
    else:
        if what:
            tally.add_other(name, what)
        elif status == Status.FAILURE:
            tally.failed_count += 1
        else:
            tally.log_count += 1
            tally.damaged_count += status == Status.DAMAGE
        return
    tally.failed_count += 1
    if as_json:
        print_json({"source": source_name(name), "error": text})
