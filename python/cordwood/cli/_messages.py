"""Messages on stderr, and exit statuses."""

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
    """The exit statuses."""

    CLEAN = 0
    """There is no fault."""
    FAILURE = 1
    """It could not be done."""
    USAGE = 2
    """The command line is wrong. argparse itself exits with it."""
    DAMAGE = 3
    """It was done, and damage was found or data was lost."""
    INTERRUPTED = 130
    """Ctrl-C, as a shell reports it: 128 and the number of the signal."""
    BROKEN_PIPE = 141
    """The reader of stdout has closed it, as a shell reports it."""


def worst(*statuses: Status) -> Status:
    """The worst of these statuses: a failure is worse than damage."""
    return Status.FAILURE if Status.FAILURE in statuses else max(statuses)


class Failure(Exception):  # noqa: N818 - as in `Status.FAILURE`
    """A failure that is not an error of the operating system or of a log; the message is complete."""


class SourceFailure(cordwood.CordwoodError):
    """One source fails, and others may not. The message does not name the source."""


NO_MEMORY = "not enough memory"
"""The message for a `MemoryError`, whose own is for Python programs or empty."""

REPORTED_MAX = 10
"""At most this many faults of a file are reported one by one on stderr, and the rest in one line."""

is_quiet = False
"""Whether progress and hints are not wanted: `--quiet`."""

before_message: Callable[[], None] | None = None
"""Called before a message is printed, to remove a progress bar."""


def complain(message: object, *, place: str | None = None) -> None:
    """Reports a message on stderr. An error comes with its file, or else its `place`, and advice."""
    if isinstance(message, OSError) and message.strerror:
        file = "" if message.filename is None else f"{message.filename or repr('')}: "
        exists = isinstance(message, FileExistsError)
        advice = "; choose another name, or replace it with --overwrite" if exists else ""
        text = f"{file}{reason_of(message)}{advice}"
    elif isinstance(message, cordwood.CordwoodError):
        place = message.path or place
        text = f"{place}: {message.message}" if place else message.message
    else:
        text = NO_MEMORY if isinstance(message, MemoryError) else str(message)
        text = f"{place}: {text}" if place else text
    lines = [f"cordwood: {escaped(text)}"]
    if hint := hint_of(message):
        lines.append(f"  {hint}")
    # On a terminal, earlier output comes first. If flushing fails, that is reported when it is tried again.
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
    """Advice after an error, in the words of the command. Where the command cannot help, `None`."""
    hint = getattr(error, "hint", None)
    return _HINTS.get(hint) if hint else None


def reason_of(error: OSError) -> str:
    """The message of the operating system, and advice.

    For a dangling link, that is where it points, since the named file is there.
    """
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        with contextlib.suppress(OSError, ValueError):
            reason += f"; it is a dangling link to {os.readlink(error.filename)}"
    return reason


def guess(word: str, known: Iterable[str]) -> str:
    """The word that may have been meant, as the end of a message; empty if none of the known words is close."""
    from difflib import get_close_matches

    matches = get_close_matches(word, known, n=1)
    return f"; did you mean {matches[0]}?" if matches else ""
