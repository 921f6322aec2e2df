"""Functions for one log, or for many logs given as a directory, a pattern or a list."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import wraps
from os import fsdecode
from os.path import basename
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from cordwood._inputs.destinations import check_new_directory, new_directories
from cordwood._inputs.each import Progress, Read, each, each_start
from cordwood._inputs.exports import export_text, exports_of
from cordwood._inputs.files import expand, is_one_file, is_path, list_of_export
from cordwood._inputs.input import Input
from cordwood._native import detect
from cordwood._native import salvage as salvage_one
from cordwood._native import stat as stat_one
from cordwood._native import verify as verify_one
from cordwood._open import Split, part_of
from cordwood._remote import source_of, with_options
from cordwood._summary import Fold, judged
from cordwood._tables.payloads import PAYLOADS, other_kind
from cordwood._text import damaged_text, quantity
from cordwood.types import Database, Export, Report

__all__ = ["Results", "for_many", "is_buffer", "logs_of", "salvage", "stat", "verify"]

T = TypeVar("T")
U = TypeVar("U")


class Results(Mapping[str | Split, T], Generic[T]):
    """The results of `verify`, `stat`, `map` and `salvage` for a directory, a pattern or a list.

    `Results` maps the path, the URL or the `Split` of each log to its result, in the order of the logs. For `verify`,
    the result is a `Report`. A file is left out if it couldn't be read, or if it was found in a directory and isn't a
    log.

    >>> import os
    >>> os.mkdir("directory")
    >>> with cordwood.open("directory/1.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> with open("directory/notes", "w") as file:
    ...     _ = file.write("something else")
    >>> reports = cordwood.verify("directory")
    >>> reports
    <cordwood.Results: 1 log, 0 errors, 1 other file; ok=True>
    >>> reports["directory/1.log"].record_count, reports.others
    (1, {'directory/notes': 'text'})
    """

    def __init__(
        self,
        results: Mapping[str | Split, T],
        errors: Mapping[str | Split, Exception],
        others: Mapping[str | Split, str],
        databases: tuple[Database, ...] = (),
        exports: tuple[Export, ...] = (),
    ) -> None:
        self._results = results
        self._errors = errors
        self._others = others
        self._databases = databases
        self._exports = exports

    def __getitem__(self, name: str | Split) -> T:
        """Returns the result for the log with this name."""
        return self._results[name]

    def __iter__(self) -> Iterator[str | Split]:
        """Iterates over the names of the logs."""
        return iter(self._results)

    def __len__(self) -> int:
        """Returns the number of logs."""
        return len(self._results)

    @staticmethod
    def of(read: Callable[..., U], source: Any, /, **options: Any) -> U | Results[U]:
        """Calls a function for one log or many, and returns a single result or a `Results`.

        Args:
            read: The function to call with each log's source and the options.
            source: One log, or a directory, a pattern or a list of logs.
            options: The options. With a `dialect`, the logs in a directory are read in that dialect.

        >>> with cordwood.open("example.log", "w") as writer:
        ...     _ = writer.append(b"one")
        >>> cordwood.Results.of(cordwood.detect, "example.log").dialect
        'leveldb'
        """
        return cast("U | Results[U]", for_many(read)(source, **options))

    @property
    def errors(self) -> Mapping[str | Split, Exception]:
        """The exception for each file that could not be read."""
        return self._errors

    @property
    def others(self) -> Mapping[str | Split, str]:
        """The format of each non-log file in a directory, such as `"SQLite"` or `"text"`."""
        return self._others

    @property
    def databases(self) -> tuple[Database, ...]:
        """For `verify`, the databases in directories. Otherwise empty."""
        return self._databases

    @property
    def exports(self) -> tuple[Export, ...]:
        """For `verify`, the Datastore or Firestore exports in directories. Otherwise empty."""
        return self._exports

    @property
    def ok(self) -> bool:
        """Whether all logs, databases and exports could be read, and all logs are free of faults.

        Damage counts as a fault, and so does a file that belongs to another log. For `verify`, all `databases` and
        `exports` must also be `ok`. `False` if no log, database or export was found.
        """
        is_whole = all(directory.ok for directory in self.databases + self.exports) and not self.errors
        is_any = bool(self._results or self._databases or self.exports)
        return is_whole and is_any and all(_is_ok(*item) for item in self._results.items())

    def __repr__(self) -> str:
        counts = (len(self), "log"), (len(self.errors), "error"), (len(self.others), "other file")
        texts = [quantity(*count) for count in counts]
        damaged = [
            name if isinstance(name, str) else name.path for name, result in self.items() if not _is_ok(name, result)
        ]
        return f"<cordwood.Results: {', '.join([texts[0], *damaged_text(damaged), *texts[1:]])}; ok={self.ok}>"

    def _repr_html_(self) -> str:
        from cordwood._html import results_page

        return results_page(self, _is_ok)


def _is_ok(name: str | Split, result: Any) -> bool:
    """Checks that a `Report` or `Stat` has no fault, or that a `LogMap` shows no damage."""
    if not isinstance(result, Report):
        return getattr(result, "ok", not result.damaged_len)
    # Everything in a split that doesn't include the log's start may be from an older log.
    is_start = isinstance(name, str) or not name.start
    return result.ok and not (is_start and result.other_log_number is not None)


def files_of(source: Any) -> list[Input] | None:
    """Returns the files if `source` refers to many logs, or `None` if it refers to one log or cannot be read."""
    if isinstance(source, bytes | Split):
        return None
    if is_path(source):
        name = fsdecode(source)
        return None if is_one_file([name]) else expand([name])
    is_one = hasattr(source, "read") or is_buffer(source) or source_of(source) is not None
    if is_one or not hasattr(source, "__iter__"):
        return None
    return expand(_name_or_input(item) for item in source)


def is_buffer(source: object) -> bool:
    try:
        memoryview(source)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _name_or_input(item: Any) -> str | Input:
    if is_path(item):
        return fsdecode(item)
    if isinstance(item, Split):
        return Input(item.path, basename(item.path), file_len=item.end - item.start, source=item)
    if item is None:
        raise TypeError("a source must be a path, a URL, bytes or another buffer, or a Split, not None")
    ranges = None if is_buffer(item) else source_of(item)
    name = getattr(ranges, "name", "")
    return Input(name, basename(name), source=item if ranges is None else ranges)


def logs_of(
    sources: object, decode: str | None, options: Mapping[str, Any]
) -> tuple[list[tuple[object, Split | None]], bool]:
    """Returns each source, its `Split` if it has one, and whether `sources` refers to many logs.

    Called by the native `scan`. Non-log files in directories are left out. If `decode` names a kind of record, export
    metadata is left out too. The same goes for a log in a directory if its first record is known to be of another kind.

    Raises:
        OSError: A directory, or a file in it, cannot be read.
    """
    if isinstance(sources, Split):
        return [(part_of(sources, {})[0], sources)], False
    files = files_of(sources)
    if files is None:
        return [(sources, None)], False
    wanted = PAYLOADS[decode].kind if decode in PAYLOADS else None
    if wanted:
        files = [file._replace(format=file.not_decoded) for file in files]

    def is_other_kind(file: Input, *_: object) -> bool:
        if not file.is_in_directory:
            return False
        # A file named like a log can have another format, such as text.
        detect(file.opened)
        return wanted is not None and other_kind(file.name, wanted, **options) is not None

    found: list[tuple[object, Split | None]] = []
    for file, is_left_out in each_start(files, is_other_kind):
        if isinstance(file.source, Split):
            found.append((part_of(file.source, {})[0], file.source))
        elif not (is_left_out and file.is_in_directory):
            found.append((file.opened, None))
        elif isinstance(is_left_out, Exception):
            raise is_left_out
    faults = [(export.path, export_text(export)) for export in exports_of(files)[0] if not export.ok]
    if not found:
        faults.append((fsdecode(sources) if is_path(sources) else repr(sources), "no log was found"))
    if faults:
        from cordwood._log import log_fault

        for place, text in faults:
            log_fault(place, text)
    return found, True


def for_many(one: Callable[..., T], *own: str, judges_directories: bool = False) -> Callable[..., Any]:
    """Returns a version of `one` that also accepts many logs, for which it returns a `Results`.

    Args:
        one: The function to call for each log.
        own: Those of the options `"threads"`, `"progress"` and `"start"` that `one` accepts. A function that accepts
            `"start"` also accepts splits.
        judges_directories: Whether to check each directory as a whole. The results then include the databases and
            exports in directories, and each `Report` takes into account the files next to its log.
    """

    def of(source: object, options: dict[str, Any]) -> T:
        if isinstance(source, Split):
            if "start" not in own:
                raise TypeError("a Split is a part of a log: pass its path")
            source, options = part_of(source, options)
        result = one(source, **options)
        if judges_directories and cast("Any", result).other_log_number is not None:
            return judged(source, result)
        return result

    def function(source: object, **options: Any) -> T | Results[T]:
        source = with_options(source, options.pop("storage_options", None))
        files = list_of_export(source) or files_of(source)
        if files is None:
            return of(source, options)

        def read(file: Input, threads: int, progress: Progress) -> T:
            here = {"threads": threads, "progress": progress}
            return of(file.opened, options | {name: here[name] for name in own if name in here})

        return _results_of(files, read, judges_directories=judges_directories, **options)

    return _named_like(one, function)


def _named_like(one: Callable[..., T], function: Callable[..., Any]) -> Callable[..., Any]:
    """Copies the name, docstring and signature of a function for one log to its equivalent for many."""
    wraps(one)(function)
    function.__module__ = "cordwood"
    function.__annotations__ = {"return": object}
    return function


def _results_of(
    files: list[Input],
    read: Read[T],
    *,
    threads: int = 1,
    dialect: str | None = None,
    progress: Progress = None,
    judges_directories: bool = False,
    **options: Any,
) -> Results[T]:
    """Calls a function with these options for each file, and returns the results."""
    names = Counter(file.name for file in files if not isinstance(file.source, Split))
    for file in files:
        if not (file.source is None or isinstance(file.source, Split) or file.is_requested):
            kind = type(file.source).__name__
            raise TypeError(f"a list of logs contains paths, URLs, objects in stores and splits, not {kind}")
        if file.source is not None and names[file.name] > 1:
            raise ValueError(f"two sources have the name {file.name}")
    fold = Fold(files)
    results: dict[str | Split, T] = {}
    named = None if dialect == "auto" else dialect
    raised: list[Exception] = []

    def called(done_len: int) -> None:
        try:
            if progress:
                progress(done_len)
        except Exception as error:
            raised.append(error)
            raise

    found_of = each(files, read, threads, dialect=named, shown=lambda _: nullcontext(called))
    for file, found in fold.take(found_of):
        if raised:
            # The caller's code raised this exception, so the file is not at fault. The exception may be of any class.
            raise raised[0]
        if not isinstance(found, str | Exception):
            results[file.source if isinstance(file.source, Split) else file.name] = found
    if judges_directories:
        fold.judge(has_all_records=not options.get("start") and options.get("end") is None)
    return Results(results, dict(fold.failures), dict(fold.others), tuple(fold.databases), tuple(fold.exports))


def _salvaged(source: Any, files: list[Input], directory: str, options: dict[str, Any]) -> Results[Any]:
    """Salvages each log to a directory. A new log keeps its path relative to the directory or pattern in `source`."""
    check_new_directory(
        directory, [fsdecode(name) for name in ([source] if is_path(source) else source) if is_path(name)]
    )

    def read(file: Input, _threads: int, progress: Progress) -> object:
        destination = os.path.join(directory, file.relative)
        if os.path.lexists(destination):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), destination)
        make_directory(os.path.dirname(destination), file.name)
        own: dict[str, Any] = options | {"progress": progress}
        return salvage_one(file.opened, destination, **own)

    with new_directories() as make_directory:
        return _results_of(files, read, **options)


if TYPE_CHECKING:
    from cordwood._native import salvage, stat, verify
else:

    def salvage(source, destination, **options):
        source = list(source) if isinstance(source, Iterator) and not hasattr(source, "read") else source
        source = with_options(source, options.pop("storage_options", None))
        files = files_of(source)
        if isinstance(source, Split) or any(isinstance(file.source, Split) for file in files or ()):
            raise TypeError("a Split is a part of a log: pass its path")
        if files is None:
            return salvage_one(source, destination, **options)
        return _salvaged(source, files, fsdecode(destination), options)

    verify = for_many(verify_one, "threads", "progress", "start", judges_directories=True)
    stat = for_many(stat_one, "threads", "progress", "start")
    salvage = _named_like(salvage_one, salvage)
