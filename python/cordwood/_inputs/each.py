"""Reads several files in parallel with a given function, and yields the results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from cordwood._inputs.files import listed_beside
from cordwood._inputs.input import Input
from cordwood._inputs.kind import without_fragment
from cordwood._native import detect, is_log_name
from cordwood._remote import ranges_read_twice, source_of
from cordwood._text import is_url
from cordwood.errors import CordwoodError, DialectError

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

Progress: TypeAlias = Callable[[int], object] | None
"""A function to call after each read with the number of bytes read. `None` shows no progress."""

Read: TypeAlias = Callable[[Input, int, Progress], T]
"""A function that reads a file with a given number of threads, and raises a `DialectError` if it is not a log."""

Result: TypeAlias = tuple[Input, T | str | Exception]
"""A file, and what `result_of` returned for it."""

THREADS_MAX = 256
"""The maximum number of threads. Functions that read a single log have the same limit."""

REQUESTS_MAX = 16
"""The maximum number of files that `each_start` reads in parallel from a store.

`each_start` reads only the start of each file. The whole files are read later.
"""

LEN_MIN = 1 << 21
"""A file on disk that is shorter than this is read without a thread, because starting a task would take longer."""

_LISTINGS_MAX = 10
"""The maximum number of times to list a directory whose files keep disappearing."""

_POLL_SECONDS = 0.1
"""The interval between progress reports for the current file."""


def result_of(
    file: Input, read: Read[T], *, threads: int = 1, dialect: str | None = None, progress: Progress = None
) -> T | str | Exception:
    """Returns the result of reading one file, or the exception raised.

    If a file found in a directory isn't a log, this returns its format. If `dialect` is given, it applies to every file
    named directly, and to every log found in a directory.

    Raises:
        Exception: An error occurred that has nothing to do with the file, such as an invalid option or a failure in
            Python code.
    """
    try:
        if file.error:
            return file.error
        if "://" in file.name and is_url(file.name):
            try:
                source_of(file.name)
            except (ValueError, ModuleNotFoundError) as error:
                return error
            if file.source is None:
                file = file._replace(source=ranges_read_twice(file.name, file.file_len or None, file.version))
        if format_ := file.format or (file.is_in_directory and without_fragment(file.name, file.opened)):
            return format_
        if file.is_in_directory and dialect:
            # A file that can be read in the given dialect isn't necessarily a log.
            detect(file.opened)
        return read(file, threads, progress)
    except DialectError as error:
        # The directory of a segmented log also contains some other file. The log isn't read, but it is still reported
        # as a log.
        return error.format if file.is_in_directory and not os.path.isdir(file.name) else error
    except (OSError, CordwoodError, MemoryError) as error:
        return error


def is_gone(file: Input, found: object) -> bool:
    """Checks whether a file found in a directory is now missing, perhaps removed by a live database."""
    is_listed = file.is_in_directory and file.error is None and isinstance(found, FileNotFoundError)
    return is_listed and "://" not in file.name and not os.path.lexists(file.name)


def each(
    files: Sequence[Input],
    read: Read[T],
    threads: int = 1,
    *,
    dialect: str | None = None,
    shown: Callable[[str], AbstractContextManager[Progress]] | None = None,
) -> Iterator[Result[T]]:
    """Yields each file with its `result_of`, in order.

    If `is_gone` returns true for a file, the file is skipped and its directory is listed again. Any new files are
    yielded later.

    A thread pool reads some files in advance: long files, and all files in a store. The larger a file's share of the
    total bytes, the more threads it gets. A single file gets all the threads. All other files are read when their turn
    comes. This includes a long file in a local directory if it isn't named like a log.

    Args:
        files: The files.
        read: The function that reads a file. It is called in other threads, and must not print.
        threads: The number of files to read in parallel. For a single file, the number of threads that read it.
        dialect: Same as for `result_of`.
        shown: A function that starts displaying progress for the current file. Default: `None`, which displays no
            progress.

    Raises:
        ValueError: `threads` is not between 1 and `THREADS_MAX`.
    """
    if not 1 <= threads <= THREADS_MAX:
        raise ValueError(f"threads must be from 1 to {THREADS_MAX}, not {threads}")
    known = {file.name for file in files}
    for _ in range(_LISTINGS_MAX):
        gone: dict[str, Input] = {}
        for file, found in _each_once(files, read, threads, dialect, shown):
            if is_gone(file, found):
                gone[os.path.dirname(file.name)] = file
            else:
                yield file, found
        files = [file for first in gone.values() for file in listed_beside(first) if file.name not in known]
        if not files:
            return
        known.update(file.name for file in files)


def each_start(files: Sequence[Input], look: Read[T], dialect: str | None = None) -> Iterator[Result[T]]:
    """Like `each`, but for a function that reads only a file's start. Files in a store are read in parallel."""
    threads = REQUESTS_MAX if any(file.is_requested for file in files) else 1
    return each(files, look, threads, dialect=dialect)


def _each_once(
    files: Sequence[Input],
    read: Read[T],
    threads: int,
    dialect: str | None,
    shown: Callable[[str], AbstractContextManager[Progress]] | None,
) -> Iterator[Result[T]]:
    total_len = sum(file.file_len for file in files)

    def result(file: Input, progress: Progress) -> T | str | Exception:
        share = round(threads * file.file_len / total_len) if len(files) > 1 and total_len else threads
        return result_of(file, read, threads=max(1, share), dialect=dialect, progress=progress)

    long_files = [file for file in files if file.is_requested or _is_long(file)]
    if threads == 1 or len(long_files) < 2:
        for file in files:
            with shown(file.name) if shown else nullcontext() as progress:
                found = result(file, progress)
            yield file, found
        return

    from concurrent.futures import ThreadPoolExecutor, wait

    started: deque[tuple[Input, _Job, Future[T | str | Exception]]] = deque()
    waiting = deque(long_files)
    with ThreadPoolExecutor(threads) as pool:
        try:
            for file in files:
                # Start more files than there are threads, so that no thread sits idle while a result is printed.
                while waiting and len(started) < 2 * threads:
                    job, next_file = _Job(), waiting.popleft()
                    try:
                        started.append((next_file, job, pool.submit(result, next_file, job)))
                    except RuntimeError:
                        # The system cannot start more threads, so this file and all later ones are read when their turn
                        # comes.
                        job.is_cancelled = True
                        waiting.clear()
                with shown(file.name) if shown else nullcontext() as progress:
                    if not (started and started[0][0] is file):
                        found = result(file, progress)
                    else:
                        _, job, future = started[0]
                        while not wait([future], _POLL_SECONDS).done:
                            job.report(progress)
                        job.report(progress)
                        found = future.result()
                        started.popleft()
                yield file, found
        finally:
            for _, job, future in started:
                job.is_cancelled = True
                future.cancel()


def _is_long(file: Input) -> bool:
    return file.file_len >= LEN_MIN and (not file.is_in_directory or is_log_name(file.name))


class _Job:
    """The progress of a thread that reads a file."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self._done_len = self._reported_len = 0

    def __call__(self, done_len: int) -> None:
        if self.is_cancelled:
            raise _CancelledError
        self._done_len += done_len

    def report(self, progress: Progress) -> None:
        """Reports the number of bytes read since the last call."""
        done_len = self._done_len
        if progress:
            progress(done_len - self._reported_len)
        self._reported_len = done_len


class _CancelledError(Exception):
    """Stops reading because the result is no longer needed."""
