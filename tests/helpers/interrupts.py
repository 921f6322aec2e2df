"""Signals that arrive while a call runs, without a clock, and without the risk of ending pytest.

`KeyboardInterrupt` ends pytest wherever it is raised, so a handler in its process raises `Interrupt`. Children raise
`KeyboardInterrupt`.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reference import encode

HANG = 120
"""Seconds that no call takes unless it hangs, on a busy machine either."""


class Interrupt(BaseException):
    """`KeyboardInterrupt` for tests."""


@contextmanager
def interrupting(
    is_ready: Callable[[], bool], error: BaseException | type[BaseException] = Interrupt
) -> Iterator[None]:
    """Sends SIGINT to the main thread once `is_ready()`, and again until its handler has run, which raises `error`.

    A single signal could arrive just before a system call, which would then wait.
    """
    # No `threading.Event`: a handler that sets it may interrupt its own `set`, which holds its lock.
    over = False
    main = threading.main_thread().ident

    def handler(_number: int, _frame: object) -> None:
        nonlocal over
        if not over:
            over = True
            raise error

    def send() -> None:
        while not over:
            if is_ready():
                signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.01)

    before = signal.signal(signal.SIGINT, handler)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over = True
        thread.join()
        signal.signal(signal.SIGINT, before)


@contextmanager
def after_work(seconds: float, handler: Callable[[], object], *, every: float = 0) -> Iterator[None]:
    """Calls a signal handler once this process has used the processor for `seconds`, and then `every` so many.

    The time that other processes take does not count.
    """
    signal.signal(signal.SIGPROF, lambda _number, _frame: handler())
    signal.setitimer(signal.ITIMER_PROF, seconds, every)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        # By default, a signal that is still on its way would end the process.
        signal.signal(signal.SIGPROF, signal.SIG_IGN)


def raise_interrupt() -> None:
    """A handler for `after_work`."""
    raise Interrupt


def write_long_log(path: Path) -> None:
    """A log of nine million empty records, which take longer to return than the 0.05 s of an `after_work`."""
    block = encode([b""] * 4_681) + b"\0"
    path.write_bytes(block * 2_000)


def unread_len(descriptor: int) -> int:
    """The number of bytes in a pipe that no one has read."""
    import array
    import fcntl
    import termios

    length = array.array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, length)
    return length[0]


def waits(process: int) -> bool:
    """Whether the main thread of a process waits in a system call; true where Linux's /proc is missing."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "S"
    except FileNotFoundError:
        return True
