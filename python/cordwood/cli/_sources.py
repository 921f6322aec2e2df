"""The sources of a command by their names: stdin, names as they are printed, and sources that are read twice."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Generator, Iterable
from typing import IO, TYPE_CHECKING, cast

import cordwood
from cordwood._inputs import expand
from cordwood._inputs.expand import Input
from cordwood._remote import is_url, source_of
from cordwood._text import escaped
from cordwood.cli._messages import Failure

if TYPE_CHECKING:
    from io import BufferedReader

    from cordwood.typing import RangeReadable, Source


class SourceFailure(cordwood.CordwoodError):
    """One source fails, and others may not. The message does not name the source."""


def inputs_of(names: Iterable[str], *, same: Callable[[str, str], object] | None = None) -> list[Input]:
    """The files that a command line names, as `expand` returns them; `-` is stdin."""
    return expand.expand((Input(name, name) if name == "-" else name for name in names), same=same)


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
    # Many readers, Python's among them, take a read that returned no bytes yet for the end.
    if sys.platform != "win32" and not os.get_blocking(sys.stdin.fileno()):
        text = "it is in non-blocking mode, where a read may return no bytes before the end"
        raise OSError(errno.EAGAIN, text, name)
    return cast("BufferedReader", sys.stdin.buffer)


def stdin_or_path(name: str) -> Source:
    """The argument of a reader for a source that the user named."""
    if name != "-":
        return name
    # A buffered read of a pipe waits for all bytes that were requested, and notices a Ctrl-C that comes between two of
    # its system calls only when they are there.
    return stdin().raw


def path_before_url(name: str) -> str:
    """The name of a source or destination, but `./` and the name for a file whose path looks like a URL.

    Otherwise, a log from somebody else's archive, in a folder named `https:`, would be requested from a network.
    """
    return f".{os.sep}{name}" if is_url(name) and os.path.lexists(name) else name


def is_stream(name: str) -> bool:
    """Whether a source can be read only once: stdin, or a pipe or device, where reading more may take forever."""
    return name == "-" or expand.is_stream(name)


def first_stream(files: Iterable[Input]) -> str | None:
    """The display name of the first of these that would be read and can be read only once."""
    return next((display_name(file.name) for file in files if not file.format and is_stream(file.name)), None)


def source_name(name: str) -> str:
    """The name of a source in JSON: that of the file, character by character."""
    return "<stdin>" if name == "-" else name


def display_name(name: str) -> str:
    """The name of a source in lines for people: other characters than printable ones are escaped."""
    return escaped(source_name(name))


class Reopenable:
    """A source that can be read several times.

    A file by name, or a URL, can have several readers at a time. stdin, and the temporary file into which a pipe is
    copied, can have only one: the next begins when the previous one has ended.
    """

    def __init__(self, name: str, file: IO[bytes] | None, *, is_path: bool) -> None:
        self._name = name
        self._file = file
        self._is_path = is_path
        self._begin = 0 if is_path or not file else file.tell()

    def open(self) -> Source:
        """Returns the source, at its beginning."""
        if self._is_path or not self._file:
            return self._name
        self._file.seek(self._begin)
        return self._file

    def read(self, begin: int, end: int) -> bytes:
        """Returns the bytes between two file offsets. A reader of stdin or a pipe must have ended.

        Raises:
            SourceFailure: The file has become shorter.
        """
        if not self._file:
            return bytes(cast("RangeReadable", source_of(self._name)).read_range(begin, end))
        self._file.seek(self._begin + begin)
        data = self._file.read(end - begin)
        if len(data) < end - begin:
            raise SourceFailure("the file was cut while it was read: read it again while no program writes to it")
        return data

    def check_same(self, end: int) -> None:
        """Checks that a named file is still the same, and not shorter: must be called after it has been opened again.

        Raises:
            Failure: It is not. The original file stays open, so that no other file has its number.
        """
        if not self._is_path or not self._file:
            return
        first = os.fstat(self._file.fileno())
        try:
            is_same = os.path.samestat(first, os.stat(self._name))
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise changed_meanwhile(self._name, "replaced")
        if first.st_size < end:
            raise changed_meanwhile(self._name, "cut")


def changed_meanwhile(name: str, what: str) -> Failure:
    """The error for a file that was changed between two passes."""
    return Failure(
        f"{name}: the file was {what} while it was converted; its columns are found in a first pass, and the second "
        "one found different records: convert it again while no program writes to it"
    )


@contextlib.contextmanager
def reopenable(name: str) -> Generator[Reopenable]:
    """A source that can be read several times."""
    with contextlib.ExitStack() as stack:
        if is_url(name):
            yield Reopenable(name, None, is_path=False)
            return
        is_path = name != "-" and os.path.isfile(name)
        file: IO[bytes] = stdin() if name == "-" else stack.enter_context(open(name, "rb"))
        if not file.seekable():
            import shutil
            import tempfile

            copy = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            file = copy
        yield Reopenable(name, file, is_path=is_path)
