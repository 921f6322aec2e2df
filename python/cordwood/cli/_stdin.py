"""Opens stdin for data."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
from io import BufferedReader, FileIO, RawIOBase
from typing import TYPE_CHECKING, cast

from cordwood._text import source_name
from cordwood.typing import Source

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class _Pipe(RawIOBase):
    """Reads from a stdin that does not support seeking, waiting at most one second at a time.

    Python runs signal handlers only between calls. If a signal arrives just before a blocking system call, it doesn't
    interrupt that call. Without this time limit, the command would wait for bytes that may never arrive.
    """

    def __init__(self, raw: FileIO) -> None:
        self._raw = raw

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        while not select.select([self._raw], [], [], 1)[0]:
            pass
        return self._raw.readinto(buffer)


def stdin() -> BufferedReader:
    """Returns stdin for data.

    Raises:
        OSError: stdin is closed, is a directory, or is in non-blocking mode.
    """
    name = source_name("-")
    try:
        os.read(sys.stdin.fileno(), 0)
    except OSError as error:
        error.filename = name
        raise
    # Many readers, including Python's own, treat a read that returns no bytes as the end of the file.
    if sys.platform != "win32" and not os.get_blocking(sys.stdin.fileno()):
        text = "it is in non-blocking mode, where a read may return no bytes before the end"
        raise OSError(errno.EAGAIN, text, name)
    buffered = cast("BufferedReader", sys.stdin.buffer)
    if sys.platform == "win32" or buffered.seekable():
        return buffered
    return BufferedReader(_Pipe(cast("FileIO", buffered.raw)))


def is_piped() -> bool:
    """Checks whether stdin is a pipe, a socket or a file rather than a terminal or a device."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode)


def stdin_or_path(name: str) -> Source:
    """Returns stdin if the name is `-`, and otherwise the name."""
    # A buffered read from a pipe waits for all requested bytes. If the user presses Ctrl-C between two system calls,
    # the read doesn't react until all the bytes have arrived.
    return stdin().raw if name == "-" else name
