"""A source of a verb: a file that the command line names, directly or with others, or stdin."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, cast

from cordwood._remote import is_url
from cordwood.cli._messages import Failure, escaped

if TYPE_CHECKING:
    from io import BufferedReader

    from cordwood.typing import Source

EMPTY = "empty"
"""A file in a folder without a byte."""

METADATA = "metadata of an export"
"""A file of an export that describes the export and contains no entities."""


class SourceFailure(Failure):
    """One source fails, and others may not. The message does not name the source."""


class Named(NamedTuple):
    """A file that the command line names, directly or with a pattern or a folder."""

    name: str
    """Its path or URL, or `-` for stdin."""
    relative: str
    """Its path below the folder, or below the part of the pattern without wildcards; else the last part of its name."""
    is_in_folder: bool = False
    """It was found in a folder: then it need not be a log."""
    what: str | None = None
    """What it is, if it is known not to be a log without reading it."""
    error: OSError | SourceFailure | None = None
    """Why it cannot be read, if that is known: a folder cannot be listed, or a file of an export is missing."""
    is_metadata: bool = False
    """It is the log that describes an export. None of its records can be decoded."""
    file_len: int = 0
    """Its length in bytes, if it is a regular file."""

    @property
    def not_decoded(self) -> str | None:
        """What it is, if no verb that decodes records reads it."""
        return METADATA if self.is_metadata else self.what


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
    # Many readers, Python's among them, take a read that found nothing yet for the end.
    if sys.platform != "win32" and not os.get_blocking(sys.stdin.fileno()):
        text = "it is in non-blocking mode, where a read may find nothing before the end"
        raise OSError(errno.EAGAIN, text, name)
    return cast("BufferedReader", sys.stdin.buffer)


def stdin_or_path(name: str) -> Source:
    """What to pass to a reader for a source that the user named."""
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
    if name == "-":
        return True
    return not is_url(name) and os.path.exists(name) and not os.path.isfile(name)  # noqa: PTH110, PTH113


def first_stream(files: Iterable[Named]) -> str | None:
    """The display name of the first of these that would be read and can be read only once."""
    return next((display_name(file.name) for file in files if not file.what and is_stream(file.name)), None)


def source_name(name: str) -> str:
    """The name of a source in JSON: that of the file, character by character."""
    return "<stdin>" if name == "-" else name


def display_name(name: str) -> str:
    """The name of a source in lines for people: what is not printable is escaped."""
    return escaped(source_name(name))
