"""Reports messages on stderr, and defines the exit statuses."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from enum import IntEnum

import cordwood
from cordwood._text import escaped
from cordwood.types import Hint


class Status(IntEnum):
    """The exit statuses of the command."""

    CLEAN = 0
    """No fault was found."""
    FAILURE = 1
    """The command failed."""
    USAGE = 2
    """The command line is invalid. argparse also exits with this status."""
    DAMAGE = 3
    """The command succeeded, but found that data is damaged or lost."""
    INTERRUPTED = 130
    """The user pressed Ctrl-C. Shells report this as 128 plus the signal's number."""
    BROKEN_PIPE = 141
    """The program reading stdout has closed the pipe. Shells report the same status for this."""


def worst(*statuses: Status) -> Status:
    """Returns the worst of the given statuses. A failure is worse than damage."""
    return Status.FAILURE if Status.FAILURE in statuses else max(statuses)


class Failure(Exception):  # noqa: N818 - as in `Status.FAILURE`
    """A failure that comes from neither the operating system nor a log. The message is printed unchanged."""


class SourceFailure(cordwood.CordwoodError):
    """A failure that affects only one source, so others may still succeed. The message doesn't name the source."""


NO_MEMORY = "not enough memory"
"""The message for a `MemoryError`, whose own message is empty or meant for Python programmers."""

REPORTED_MAX = 10
"""At most this many faults per file are reported one by one on stderr. Another line gives the total."""

is_quiet = False
"""Whether `--quiet` suppresses progress and hints."""

before_message: Callable[[], None] | None = None
"""A function called before a message is printed, to remove a progress bar."""


def complain(message: object, *, place: str | None = None) -> None:
    """Reports a message on stderr.

    The text of an error includes the file name or `place`, and advice if there is any.
    """
    if isinstance(message, OSError) and message.strerror:
        exists = isinstance(message, FileExistsError)
        advice = "; choose another name, or replace it with --overwrite" if exists else ""
        place = None if message.filename is None else message.filename or repr("")
        text = f"{reason_of(message)}{advice}"
    elif isinstance(message, cordwood.CordwoodError):
        place, text = message.path or place, message.message
    else:
        text = NO_MEMORY if isinstance(message, MemoryError) else str(message)
    lines = [f"cordwood: {escaped(f'{place}: {text}' if place else text)}"]
    if hint := hint_of(message):
        lines.append(f"  {hint}")
    # On a terminal, earlier output must appear first. If flushing it fails, the next flush reports the error.
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    if before_message:
        before_message()
    print("\n".join(lines), file=sys.stderr)


_HINTS = {
    Hint.RAISE_RECORD_LEN_MAX: "if you trust the data: --record-len-max raises the limit",
    Hint.NAME_DIALECT: "to read it as a log anyway, name its dialect with --dialect",
    Hint.NAME_DETECTED_DIALECT: "name that dialect with --dialect, or none",
    Hint.OMIT_LOG_NUMBER: "omit --log-number, or name a dialect that has one: rocksdb, pebble or recyclable",
    Hint.OMIT_COMPRESSION: "omit --compression, or use --dialect rocksdb or packed",
    Hint.ON_TORN_TAIL: "--on-torn-tail truncate cuts it off; pad keeps every byte and continues in the next block",
    Hint.PAD: "--on-torn-tail pad keeps every byte and continues in the next block; cordwood salvage makes a new log",
    Hint.PAD_WITH_DIALECT: "if it is a log: --dialect and --on-torn-tail pad continue in the next block",
    Hint.SEGMENT_LEN: "if it is a segmented log: --append --segment-len N appends to it",
    Hint.SALVAGE: "cordwood salvage makes a new log of all that can be read",
    Hint.CREATE_LOG: "create a new log",
    Hint.START_AT_FIRST_OFFSET: "--start with that offset continues there; the records before it are gone",
    Hint.START_AGAIN: "to read this log, start at offset 0",
    Hint.OWN_DIRECTORY: "move the file away, or choose another directory",
    Hint.OTHER_NAME: "give the new log another name",
}


def hint_of(error: object) -> str | None:
    """Returns the advice that the command prints for an error, or `None` if there is none."""
    hint = getattr(error, "hint", None)
    return _HINTS.get(hint) if hint else None


def reason_of(error: OSError) -> str:
    """Returns the operating system's error message, followed by any advice.

    For a dangling link, the advice names the link's target, because the link itself exists.
    """
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        with contextlib.suppress(OSError, ValueError):
            reason += f"; it is a dangling link to {os.readlink(error.filename)}"
    return reason


def guess(word: str, known: Iterable[str]) -> str:
    """Returns the end of a message that suggests a known word, or an empty string if none is similar."""
    from difflib import get_close_matches

    matches = get_close_matches(word, known, n=1)
    return f"; did you mean {matches[0]}?" if matches else ""
