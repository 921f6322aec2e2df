"""Opens sources that are read several times. Streams can only be read once, so they are copied."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterable
from typing import IO, cast

from cordwood._inputs import files
from cordwood._inputs.input import Input
from cordwood._remote import is_url, source_of
from cordwood._text import display_name
from cordwood.cli._messages import Failure, SourceFailure
from cordwood.cli._stdin import stdin
from cordwood.typing import RangeReadable, Source


def is_stream(name: str) -> bool:
    """Checks whether a source is stdin, a pipe or a device, which can only be read once and may block forever."""
    return name == "-" or files.is_stream(name)


def first_stream(inputs: Iterable[Input]) -> str | None:
    """Returns the display name of the first input that can only be read once, or `None`."""
    return next((display_name(file.name) for file in inputs if not file.format and is_stream(file.name)), None)


class Reopenable:
    """A source that can be read more than once.

    A named file, a segmented log or a URL can have several readers at the same time. Stdin, or the temporary file that
    a pipe is copied to, can have only one reader at a time, so each must finish before the next starts.
    """

    def __init__(self, name: str, file: IO[bytes] | None, *, is_path: bool) -> None:
        self._name = name
        self._file = file
        self._is_path = is_path
        self._start = 0 if is_path or not file else file.tell()

    def open(self) -> Source:
        """Returns the source, positioned at its start."""
        if self._is_path or not self._file:
            return self._name
        self._file.seek(self._start)
        return self._file

    def read(self, start: int, end: int) -> bytes:
        """Returns the bytes between two file offsets. Readers of stdin or a pipe must have finished first.

        Raises:
            SourceFailure: The file has become shorter.
        """
        if not self._file:
            return bytes(cast("RangeReadable", source_of(self._name)).read_range(start, end))
        self._file.seek(self._start + start)
        data = self._file.read(end - start)
        if len(data) < end - start:
            raise SourceFailure("the file was cut while it was read: read it again while no program writes to it")
        return data

    def check_same(self, end: int) -> None:
        """Checks that a named file hasn't been replaced or shortened.

        Call this after reopening the file. The original file stays open so that no other file can get its inode.

        Raises:
            Failure: The file was replaced or cut short.
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
    """Returns the error for a file that changed between two passes."""
    return Failure(
        f"{name}: the file was {what} while it was converted; its columns are found in a first pass, and the second "
        "one found different records: convert it again while no program writes to it"
    )


@contextlib.contextmanager
def reopenable(name: str) -> Generator[Reopenable]:
    """Opens a source so that it can be read several times."""
    with contextlib.ExitStack() as stack:
        # A directory is read as a segmented log, whose files are opened one at a time.
        if is_url(name) or os.path.isdir(name):
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
