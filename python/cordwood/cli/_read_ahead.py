"""Several files at a time: each is read in one thread, and what was read is handed over in its turn."""

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
"""A shorter file is read when it is its turn: to hand it to a thread would take longer than to read it."""

_POLL_SECONDS = 0.1
"""So often the progress of a file whose turn it is is looked at."""


class ReadAhead(Generic[T]):
    """Reads files with several threads, if there are several files.

    Threads gain most if each reads a file of its own: they then share nothing, and the logs of dialects with log
    numbers can be read by only one thread each. A file that is longer than what each thread has to do for all that are
    left is read by all threads together. In turn, and by the caller, are read short files, what is no regular file,
    and what was found in a folder and need not be a log.

    Args:
        files: All files, in their order.
        read: Reads the file of a name with so many threads, and calls what it is given with the number of bytes of
            each read. It is called in other threads, too, and must not print.
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
            has_more_than_its_share = job.file_len * self._threads > self._left_len
            self._left_len -= job.file_len
            threads = self._threads if has_more_than_its_share else 1
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
