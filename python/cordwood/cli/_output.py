"""Prepares the standard streams, and writes data and JSON to stdout."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from cordwood._jsonable import json_text
from cordwood._text import escaped

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


T = TypeVar("T")


class Output(Protocol):
    """A destination for data: a file or stdout."""

    def write(self, data: bytes, /) -> int:
        """Writes all of the data."""
        ...


STDOUT = "<stdout>"
"""The name of stdout in messages."""


class _Stdout(io.BufferedWriter):
    """A buffer for stdout. `write` accepts all of the data. Errors from `write` and `flush` name stdout.

    If a pipe is full, `write` and `flush` may wait for its reader. Once Ctrl-C has interrupted such a wait, no more
    data is written. Otherwise, closing a table, for example, would wait again.
    """

    def __init__(self, old: io.TextIOWrapper) -> None:
        super().__init__(open(old.fileno(), "wb", buffering=0, closefd=False))  # noqa: SIM115
        # Without this reference, the old stream could close its descriptor.
        self._old = old
        self._is_interrupted = False

    def write(self, data: ReadableBuffer, /) -> int:
        return memoryview(data).nbytes if self._is_interrupted else self._tried(super().write, data)

    def flush(self) -> None:
        if not self._is_interrupted:
            self._tried(super().flush)

    def _tried(self, call: Callable[..., T], *arguments: object) -> T:
        try:
            return call(*arguments)
        except OSError as error:
            error.filename = STDOUT
            raise
        except KeyboardInterrupt:
            self._is_interrupted = True
            raise


def open_streams() -> None:
    """Prepares the standard streams for the command.

    Characters that a stream can't encode are escaped, because a path may not be valid text.
    """
    _open_closed()
    _open_stdout()
    for stream in sys.stdout, sys.stderr:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _open_closed() -> None:
    """Reopens streams closed by the shell (`>&-`), so that no other file gets their descriptors.

    Python represents a closed stream as `None`. Reading from or writing to a reopened stream fails. Messages to a
    closed stderr are lost.
    """
    null = ("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")
    for name, flags, mode in null:
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode, encoding="utf-8"))  # noqa: SIM115


def _open_stdout() -> None:
    """Gives `sys.stdout` its own buffer.

    With PYTHONUNBUFFERED, Python's stdout doesn't have a buffer, so a write may accept only part of the data, for
    example when the disk becomes full. The only sign of this is the write's return value, which neither `print` nor
    pyarrow checks.
    """
    is_text_of_bytes = isinstance(sys.stdout, io.TextIOWrapper)
    old = cast("io.TextIOWrapper", sys.stdout)
    # In a notebook or a test, stdout may not have a descriptor.
    if not is_text_of_bytes or isinstance(old.buffer, _Stdout):
        return
    with contextlib.suppress(io.UnsupportedOperation):
        sys.stdout = io.TextIOWrapper(
            _Stdout(old),
            encoding=old.encoding,
            errors=old.errors,
            # If stdout was unbuffered, it becomes line-buffered, as on a terminal.
            line_buffering=old.line_buffering or old.write_through,
        )
        old.flush()


def drop_failed() -> None:
    """Drops output that can't be written. Otherwise, Python would flush stdout again on exit, and fail again."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def drop_pending() -> None:
    """Drops printed text that is still in a buffer.

    On exit, Python flushes stdout and stderr, and would wait for the reader of a full pipe. However, it doesn't flush a
    stream whose file object is closed. The descriptor stays open for the stream that replaces the closed one.
    """
    for name in "stdout", "stderr":
        old = getattr(sys, name)
        raw = getattr(getattr(old, "buffer", None), "raw", None)
        # Leave the streams of a notebook or a test alone.
        if isinstance(old, io.TextIOWrapper) and isinstance(raw, io.FileIO) and not raw.closefd:
            new = open(raw.fileno(), "w", encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
            setattr(sys, name, new)
            raw.close()


def stdout() -> Output:
    """Returns stdout for data. On a terminal, control characters and bytes that are not UTF-8 are escaped."""
    return _Terminal() if sys.stdout.isatty() else sys.stdout.buffer


class _Terminal:
    def write(self, data: bytes) -> int:
        text = data.decode("utf-8", "backslashreplace")
        sys.stdout.buffer.write(escaped(text, "\n\t").encode("utf-8"))
        return len(data)


def print_json(value: object) -> None:
    """Prints one line of JSON to stdout."""
    stdout().write(json_bytes(json_text(value)) + b"\n")


def json_bytes(text: str) -> bytes:
    """Returns JSON text as UTF-8 for output. Parts of a path that are not valid text are escaped.

    DEL and the C1 control characters are escaped too. JSON allows them in strings, but a terminal that receives the
    line through a pipe would interpret them.
    """
    if not text.isprintable():
        text = text.translate(_CONTROLS)
    return text.encode("utf-8", "backslashreplace")


_CONTROLS = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
