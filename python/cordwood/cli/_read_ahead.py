"""Reads several files at a time, each in a thread, with the results in the order of the files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from cordwood._native import is_log_name
from cordwood.cli._progress import Progress

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from cordwood._inputs.expand import Input

T = TypeVar("T")

LEN_MIN = 1 << 21
"""A shorter file is read when its turn comes: handing it to a thread takes longer than reading it."""

_POLL_SECONDS = 0.1
"""How often the progress bar of the current file is updated."""


class ReadAhead(Generic[T]):
    """Reads files in several threads, before their turn comes.

    Each thread reads a file of its own: it waits for no other thread, and a log with log numbers cannot be split
    between several. Only a long file gets more threads, in proportion to its share of the bytes that are left to read.
    Short files, anything that is not a regular file, and files in folders that do not have the name of a log are read
    when their turn comes.

    Args:
        files: All files, in their order.
        read: Reads the file of this name with this number of threads, and calls its third argument with the number of
            bytes of each read. It is called in other threads, and must not print.
        threads: The number of threads. Another file is begun while fewer are reading.
    """

    def __init__(
        self,
        files: Sequence[Input],
        read: Callable[[str, int, Callable[[int], object]], T],
        threads: int,
    ) -> None:
        self._read = read
        self._threads = threads
        self._places: dict[str, int] = {}
        for file in files:
            self._places.setdefault(file.name, len(self._places))
        long_files = {file.name: file for file in files if _is_read_ahead(file)} if threads > 1 else {}
        # Everything below is also used by the threads, if there are any, after they have read a file.
        self._lock: AbstractContextManager[object] = nullcontext()
        self._waiting: deque[_Job[T]] = deque(_Job(name, file.file_len) for name, file in long_files.items())
        self._waiting_len = sum(job.file_len for job in self._waiting)
        self._begun: dict[str, _Job[T]] = {}
        self._free_count = threads
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        if len(self._waiting) > 1:
            from concurrent.futures import ThreadPoolExecutor
            from threading import RLock

            self._lock = RLock()
            self._pool = ThreadPoolExecutor(self._threads)
            try:
                self._begin()
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._waiting.clear()
            for job in self._begun.values():
                job.is_cancelled = True
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def result(self, name: str) -> T:
        """Returns what was read from a file, with a progress bar until it is available.

        The files before it, which may have been rejected, are abandoned: a later call for one of them reads it again.

        Raises:
            Exception: What `read` raised.
        """
        place = self._places[name]
        with self._lock:
            self._drop_before(place)
            if self._waiting and self._waiting[0].name == name:
                self._waiting_len -= self._waiting.popleft().file_len
        with Progress(name) as progress:
            job = self._begun.get(name)
            if not job or not job.future:
                return self._read(name, max(1, self._free_count), progress)
            from concurrent.futures import wait

            shown_len = 0
            try:
                while not wait([job.future], _POLL_SECONDS).done:
                    done_len = job.done_len
                    progress(done_len - shown_len)
                    shown_len = done_len
                return job.future.result()
            finally:
                self._drop_before(place + 1)

    def _drop_before(self, place: int) -> None:
        """Cancels the files before this place, and begins others instead."""
        with self._lock:
            while self._waiting and self._places[self._waiting[0].name] < place:
                self._waiting_len -= self._waiting.popleft().file_len
            for job in [job for name, job in self._begun.items() if self._places[name] < place]:
                job.is_cancelled = True
                if job.future and job.future.cancel():
                    self._free_count += job.threads
                del self._begun[job.name]
            self._begin()

    def _begin(self) -> None:
        """Begins to read files while there are free threads."""
        with self._lock:
            # One more result than there are threads, so that no thread is idle while a result is printed.
            while self._pool and self._waiting and self._free_count > 0 and len(self._begun) <= self._threads:
                job = self._waiting.popleft()
                job.threads = max(1, round(self._threads * job.file_len / self._waiting_len))
                self._waiting_len -= job.file_len
                self._begun[job.name] = job
                self._free_count -= job.threads
                try:
                    job.future = self._pool.submit(self._run, job)
                except RuntimeError:
                    # The system has no more threads: this file and all others are read in turn. The pool has the job
                    # nevertheless, and may come to it.
                    job.is_cancelled = True
                    self._free_count += job.threads
                    job.threads = 0
                    self._waiting.clear()

    def _run(self, job: _Job[T]) -> T:
        try:
            job(0)
            return self._read(job.name, job.threads, job)
        finally:
            with self._lock:
                self._free_count += job.threads
                self._begin()


class _Job(Generic[T]):
    """A file that is read in a thread."""

    def __init__(self, name: str, file_len: int) -> None:
        self.name = name
        self.file_len = file_len
        self.threads = 0
        self.future: Future[T] | None = None
        self.done_len = 0
        self.is_cancelled = False

    def __call__(self, done_len: int) -> None:
        """Adds the number of bytes of a read."""
        if self.is_cancelled:
            raise _CancelledError
        self.done_len += done_len


class _CancelledError(Exception):
    """The result is no longer needed."""


def _is_read_ahead(file: Input) -> bool:
    return file.file_len >= LEN_MIN and (not file.is_in_folder or is_log_name(file.name))
