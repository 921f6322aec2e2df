"""stdin, for data."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, cast

from cordwood._text import source_name

if TYPE_CHECKING:
    from io import FileIO

    from _typeshed import WriteableBuffer

    from cordwood.typing import Source


class _Pipe(RawIOBase):
    """stdin, if it cannot seek: a read waits for bytes at most a second at a time.

    Python runs the handlers of signals between two calls. A signal that arrives just before a blocking system call does
    not interrupt it: without a limit, the command would wait for bytes that may never come.
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
    """stdin, for data.

    Raises:
        OSError: It is closed, or a directory, or its reads do not block.
    """
    name = source_name("-")
    try:
        os.read(sys.stdin.fileno(), 0)
    except OSError as error:
        error.filename = name
        raise
    # Many readers, Python's among them, take a read that returned no bytes yet for the end.
    if sys.platform != "win32" and not os.get_blocking(sys.stdin.fileno()):
        text = "it is in non-blocking mode, where a read may return no bytes before the end"
        raise OSError(errno.EAGAIN, text, name)
    buffered = cast("BufferedReader", sys.stdin.buffer)
    return (
        buffered
        if sys.platform == "win32" or buffered.seekable()
        else BufferedReader(_Pipe(cast("FileIO", buffered.raw)))
    )


def is_piped() -> bool:
    """Whether stdin is a pipe, a socket or a file, rather than a terminal or a device: somebody has put data there."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode)


def stdin_or_path(name: str) -> Source:
    """The argument of a reader for a source that the user named."""
    # A buffered read of a pipe waits for all bytes that were requested, and notices a Ctrl-C that comes between two of
    # its system calls only when they are there.
    return stdin().raw if name == "-" else name
