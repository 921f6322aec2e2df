"""The sources of a verb: the files that the command line names, and what is done for each."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast, get_args

import cordwood
from cordwood._remote import is_url, local_path, source_of
from cordwood._text import quantity
from cordwood.cli._messages import NO_MEMORY, Failure, Status, complain, escaped, with_options
from cordwood.cli._names import is_log_name, is_of_export
from cordwood.cli._output import STDOUT, has_flipped_bit, print_json
from cordwood.typing import DialectName

if TYPE_CHECKING:
    from io import BufferedReader

    from cordwood.typing import Source

Identity: TypeAlias = tuple[int, int] | str
"""What two names of one file have in common: device and inode; for a file that is missing, its path."""

EMPTY = "empty"
"""A file in a folder without a byte."""

METADATA = "metadata of an export"
"""A file of an export that describes the export and contains no entities."""


class Named(NamedTuple):
    """A file that the command line names, directly or with a pattern or a folder."""

    name: str
    """Its path or URL, or `-` for stdin."""
    relative: str
    """Its path below the folder, or below the part of the pattern without wildcards; else the last part of its name."""
    is_in_folder: bool = False
    """It was found in a folder: then it need not be a log."""
    what: str | None = None
    """What it is, if it is known not to be a log without reading it."""
    error: OSError | SourceFailure | None = None
    """Why it cannot be read, if that is known: a folder cannot be listed, or a file of an export is missing."""
    is_metadata: bool = False
    """It is the log that describes an export. None of its records can be decoded."""
    file_len: int = 0
    """Its length in bytes, if it is a regular file."""

    @property
    def not_decoded(self) -> str | None:
        """What it is, if no verb that decodes records reads it."""
        return METADATA if self.is_metadata else self.what


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


def stdin() -> BufferedReader:
    """stdin, for data.

    Raises:
        OSError: It is closed, or a folder, or its reads do not block.
    """
    name = source_name("-")
    try:
        os.read(sys.stdin.fileno(), 0)
    except OSError as error:
        error.filename = name
        raise
    # Many readers, Python's among them, take a read that found nothing yet for the end.
    if sys.platform != "win32" and not os.get_blocking(sys.stdin.fileno()):
        text = "it is in non-blocking mode, where a read may find nothing before the end"
        raise OSError(errno.EAGAIN, text, name)
    return cast("BufferedReader", sys.stdin.buffer)


def stdin_or_path(name: str) -> Source:
    """What to pass to a reader for a source that the user named."""
    if name != "-":
        return name
    # A buffered read of a pipe waits for all bytes that were requested, and notices a Ctrl-C that comes between two of
    # its system calls only when they are there.
    return stdin().raw


def is_stream(name: str) -> bool:
    """Whether a source can be read only once: stdin, or a pipe or device, where reading more may take forever."""
    if name == "-":
        return True
    return not is_url(name) and os.path.exists(name) and not os.path.isfile(name)  # noqa: PTH110, PTH113


def first_stream(files: Iterable[Named]) -> str | None:
    """The display name of the first of these that would be read and can be read only once."""
    return next((display_name(file.name) for file in files if not file.what and is_stream(file.name)), None)


def source_name(name: str) -> str:
    """The name of a source in JSON: that of the file, character by character."""
    return "<stdin>" if name == "-" else name


def display_name(name: str) -> str:
    """The name of a source in lines for people: what is not printable is escaped."""
    return escaped(source_name(name))


def is_one_file(names: Sequence[str]) -> bool:
    """Whether a command line names a single file, rather than several, a pattern or a folder."""
    return len(names) == 1 and not (_is_pattern(names[0]) or os.path.isdir(names[0]))  # noqa: PTH112


def named_files(names: Iterable[str]) -> list[Named]:
    """The named files, in the order in which they are named, each once, even if it has several names.

    A pattern is replaced by its matches, in sorted order, as in many shells, and a folder by all files in it and in its
    subfolders, in the order of their paths. A file that is named or matched as well as found in a folder counts as
    named.
    """
    files: list[Named] = []
    places: dict[Identity, int] = {}
    for file, identity in _expanded(names):
        place = places.setdefault(identity, len(files)) if identity else len(files)
        if place == len(files):
            files.append(file)
        elif not file.is_in_folder:
            files[place] = files[place]._replace(is_in_folder=False, what=None)
    return files


def for_each_source(
    names: Sequence[str],
    work: Callable[[str], Status],
    *,
    files: Iterable[Named] | None = None,
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
        files: What `named_files` returned for the names, if it has been called.
        dialect: The value of `--dialect`.
        other_kind: Returns what a log in a folder contains if that is not what was requested: the log is then left out,
            and reported. `None` if it is to be read.
        as_json: A source that fails also has an object: its `source`, and the `error`.
        has_totals: The caller says how many files are not logs. Otherwise that is reported on stderr.
    """
    tally = Tally()
    for file in named_files(names) if files is None else files:
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


_NO_FILE = "pipe, socket or device"
"""It is opened only if it is named directly: opening it may take forever."""


def _is_pattern(name: str) -> bool:
    # A file of that name takes precedence.
    return name != "-" and _has_magic(name) and not os.path.lexists(name) and not is_url(name)


def _expanded(names: Iterable[str]) -> Iterable[tuple[Named, Identity | None]]:
    for name in names:
        if _is_pattern(name) and (matches := _matches(name)):
            above = _without_magic(name)
            for match in matches:
                relative = os.path.relpath(match, above)
                if os.path.isdir(match):  # noqa: PTH112 - pathlib is slow to import
                    # `**` also matches what is in the folder.
                    if "**" not in name:
                        yield from _in_folder(match, relative)
                elif match != "-" and is_stream(match):
                    yield Named(match, relative, is_in_folder=True, what=_NO_FILE), None
                else:
                    # A file named `-` is not stdin.
                    yield _named("./-" if match == "-" else match, relative)
        elif os.path.isdir(name):  # noqa: PTH112
            yield from _in_folder(name, "")
        else:
            yield _named(name, os.path.basename(name))  # noqa: PTH119


def _has_magic(name: str) -> bool:
    """Like `glob.has_magic`, whose module is imported only for patterns."""
    return not _MAGIC.isdisjoint(name)


_MAGIC = frozenset("*?[")


def _matches(pattern: str) -> list[str]:
    """What a pattern matches, in sorted order."""
    return sorted(set(_unsorted_matches(pattern)))


def _unsorted_matches(pattern: str) -> Iterator[str]:
    import glob

    two_stars = re.fullmatch(rf"(?s)((?:.*?{_SEPARATOR})??)\*\*(?:{_SEPARATOR}+(.*))?", pattern)
    if not two_stars:
        yield from glob.glob(pattern)  # noqa: PTH207 - keeps names
        return
    # `glob` itself goes through links that `**` matches, in circles, too. A shell does not.
    above, below = two_stars.groups("*")
    for top in glob.glob(above) if above else [""]:  # noqa: PTH207
        for path, folders, _ in os.walk(top or os.curdir):
            folders[:] = [name for name in folders if not name.startswith(".")]
            folder = os.path.join(path, "")  # noqa: PTH118
            yield from _unsorted_matches(glob.escape(folder if top else folder[len("./") :]) + below)


_SEPARATOR = f"[{re.escape(os.sep + (os.altsep or ''))}]"


def _without_magic(pattern: str) -> str:
    """The folder that contains everything that a pattern can match."""
    folder = os.path.dirname(pattern)  # noqa: PTH120
    while _has_magic(folder):
        folder = os.path.dirname(folder)  # noqa: PTH120
    return folder or os.curdir


def _named(name: str, relative: str) -> tuple[Named, Identity | None]:
    if name == "-":
        # There may be a file of that name.
        return Named(name, relative), None
    try:
        status = os.stat(name)  # noqa: PTH116
    except (OSError, ValueError):
        # It is reported when it is opened.
        return Named(name, relative), None
    file_len = status.st_size if stat.S_ISREG(status.st_mode) else 0
    return Named(name, relative, file_len=file_len), _identity(status)


def identity_of(name: str) -> Identity | None:
    """What all names of a file have in common; `None` if it is missing, or cannot be read twice."""
    path = local_path(name)
    return None if path is None else _named(path, "")[1]


def _identity(status: os.stat_result) -> Identity | None:
    """What two names of one file have in common; `None` if it may be read twice, as a pipe may, or has no inode."""
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) and status.st_ino else None


def _in_folder(folder: str, above: str) -> list[tuple[Named, Identity | None]]:
    """All files in a folder, and those that the metadata of an export in it lists.

    Links to folders are not followed, nor links to files that are found there anyway.
    """
    found: list[tuple[Named, Identity | None]] = []
    links: list[tuple[Named, Identity | None]] = []

    def unreadable(error: OSError) -> None:
        found.append((Named(error.filename, "", is_in_folder=True, error=error), None))

    for path, folders, names in os.walk(folder, onerror=unreadable):
        linked = [name for name in folders if os.path.islink(os.path.join(path, name))]  # noqa: PTH114, PTH118
        found += ((_file_in(folder, above, path, name, "link to a folder"), None) for name in linked)
        for name in names:
            full = os.path.join(path, name)  # noqa: PTH118
            try:
                status = os.stat(full)  # noqa: PTH116
            except FileNotFoundError:
                found.append((_file_in(folder, above, path, name, "link to nothing"), None))
                continue
            except OSError:
                found.append((_file_in(folder, above, path, name, None), None))
                continue
            what = _NO_FILE if not stat.S_ISREG(status.st_mode) else None if status.st_size else EMPTY
            file = _file_in(folder, above, path, name, what)
            if not what:
                file = file._replace(file_len=status.st_size)
            (links if os.path.islink(full) else found).append((file, _identity(status)))  # noqa: PTH114
    identities = {identity for _, identity in found}
    found += (link for link in links if link[1] is None or link[1] not in identities)
    if any(is_of_export(file.name) for file, _ in found):
        from cordwood.cli._exports import compared

        found = compared(found)
    return sorted(found, key=lambda file: file[0].name)


def _file_in(folder: str, above: str, path: str, name: str, what: str | None) -> Named:
    relative = os.path.normpath(os.path.join(above, os.path.relpath(path, folder), name))  # noqa: PTH118
    return Named(os.path.join(path, name), relative, is_in_folder=True, what=what)  # noqa: PTH118


def _other_kind(file: Named, dialect: str | None, other_kind: Callable[[str], str | None] | None) -> str | None:
    """What a log in a folder contains, if that is not what was requested.

    Raises:
        DialectError: It is not a log, which reading it in the `dialect` would not show.
    """
    if not file.is_in_folder:
        return None
    if dialect:
        cordwood.detect(file.name)
    return other_kind(file.name) if other_kind else None


NO_FRAGMENT = "no valid fragment"
"""A file in a folder that may be a log, but in which nothing can be read, and whose name is not that of a log."""


def without_fragment(file: Named) -> str | None:
    """`NO_FRAGMENT` if a file in a folder has no fragment that is valid in any dialect, nor the name of a log.

    Raises:
        DialectError: It is known to be something else.
    """
    name = file.name
    if not file.is_in_folder or file.error or is_log_name(name):
        return None
    if cordwood.detect(name) is not None:
        return None
    # Detection looks only at the beginning of a file, and at the beginnings of its blocks.
    is_valid = any(
        fragment.stored_crc is not None and fragment.stored_crc == fragment.computed_crc
        for dialect in get_args(DialectName)
        for fragment in cordwood.fragments(name, dialect=dialect)
    )
    # A flipped bit in the only record of a log must not hide that it is one.
    return None if is_valid or has_flipped_bit(name) else NO_FRAGMENT


class SourceFailure(Failure):
    """One source fails, and others may not. The message does not name the source."""


def check_url(name: str) -> None:
    """Checks that a source, if it is a URL, can be read. Nothing is requested.

    Raises:
        SourceFailure: Its protocol is not known, or the package that reads it is not installed.
    """
    if is_url(name):
        try:
            source_of(name)
        except (ValueError, ModuleNotFoundError) as error:
            raise SourceFailure(str(error)) from error


def _attempt(
    file: Named,
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
        what = (file.not_decoded if other_kind else file.what) or without_fragment(file)
        if not what and (kind := _other_kind(file, dialect, other_kind)):
            tally.other_kinds.setdefault(kind, []).append(name)
            return
        status = Status.CLEAN if what else work(name)
    except BrokenPipeError:
        raise
    except OSError as error:
        # The output: the others would fail in the same way.
        if error.filename == STDOUT or (error.filename is None and name != "-"):
            raise
        complain(error)
        # An error of `salvage` may be about the new log.
        is_other = error.filename not in (None, source_name(name)) and error.strerror
        text = f"{error.filename}: {error.strerror}" if is_other else error.strerror or str(error)
    except (cordwood.CordwoodError, MemoryError, SourceFailure) as error:
        if file.is_in_folder and isinstance(error, cordwood.DialectError):
            tally.add_other(name, error.format)
            return
        place = getattr(error, "path", None) or source_name(name)
        text = NO_MEMORY if isinstance(error, MemoryError) else with_options(str(error).removeprefix(f"{place}: "))
        complain(f"{place}: {text}")
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
