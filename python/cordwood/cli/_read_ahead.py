"""Several files at a time, each in a thread, with the results in the order of the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from cordwood.cli._names import is_log_name
from cordwood.cli._progress import Progress

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from cordwood.cli._sources import Named

T = TypeVar("T")

LEN_MIN = 1 << 21
"""A shorter file is read when it is its turn: to hand it to a thread takes longer than to read it."""

_POLL_SECONDS = 0.1
"""How often the progress bar of the current file is updated."""


class ReadAhead(Generic[T]):
    """Reads files in several threads, before it is their turn.

    Each thread reads a file of its own: it waits for no other thread, and a log with log numbers cannot be split
    between several. Only a long file has more threads, as many as its share of the bytes that are left to read. Short
    files, what is no regular file, and files in folders whose name is not that of a log are read when it is their turn,
    with all threads.

    Args:
        files: All files, in their order.
        read: Reads the file of a name with a number of threads, and calls its third argument with the number of
            bytes of each read. It is called in other threads, and must not print.
        threads: The number of threads.
    """

    def __init__(
        self,
        files: Iterable[Named],
        read: Callable[[str, int, Callable[[int], object]], T],
        threads: int,
    ) -> None:
        self._read = read
        self._threads = threads
        self._waiting = {file.name: _Job(file) for file in files if _is_read_ahead(file)} if threads > 1 else {}
        self._left_len = sum(job.file_len for job in self._waiting.values())
        self._begun: dict[str, tuple[_Job, Future[T]]] = {}
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        if len(self._waiting) > 1:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._threads)
            # One more than there are threads, so that none is idle while the result of another is printed.
            for _ in range(self._threads + 1):
                self._begin_next()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            for job, _future in self._begun.values():
                job.is_cancelled = True
            self._pool.shutdown(cancel_futures=True)

    def result(self, name: str) -> T:
        """What was read from a file, with a progress bar as long as that takes.

        Raises:
            Exception: What `read` raised.
        """
        with Progress(name) as progress:
            if name not in self._begun:
                if job := self._waiting.pop(name, None):
                    self._left_len -= job.file_len
                return self._read(name, self._threads, progress)
            from concurrent.futures import wait

            job, future = self._begun.pop(name)
            self._begin_next()
            shown_len = 0
            try:
                while not wait([future], _POLL_SECONDS).done:
                    done_len = job.done_len
                    progress(done_len - shown_len)
                    shown_len = done_len
            finally:
                job.is_cancelled = True
            return future.result()

    def _begin_next(self) -> None:
        if self._waiting and self._pool:
            name = next(iter(self._waiting))
            job = self._waiting.pop(name)
            threads = max(1, round(self._threads * job.file_len / self._left_len))
            self._left_len -= job.file_len
            self._begun[name] = job, self._pool.submit(self._read, name, threads, job)


class _Job:
    """A file that is read in a thread."""

    def __init__(self, file: Named) -> None:
        self.name = file.name
        self.file_len = file.file_len
        self.done_len = 0
        self.is_cancelled = False

    def __call__(self, done_len: int) -> None:
        """Notes the number of bytes of a read."""
        if self.is_cancelled:
            raise _CancelledError
        self.done_len += done_len


class _CancelledError(Exception):
    """Nobody waits for the result any more."""


def _is_read_ahead(file: Named) -> bool:
    return file.file_len >= LEN_MIN and (not file.is_in_folder or is_log_name(file.name))
