"""Prepares the standard streams, and writes to stdout and to new files.

A new file gets its name once it is complete.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import cordwood
from cordwood._inputs.files import file_identity, files_of, identity_of
from cordwood._inputs.input import Input
from cordwood._inputs.kind import may_be_damaged_log
from cordwood._jsonable import json_text
from cordwood._text import escaped, is_url, local_path

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

    If a pipe is full, `write` and `flush` may wait for its reader. If Ctrl-C interrupts this wait, no more data is
    written. Otherwise, the command could wait again, for example when it closes a table.
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

    On exit, Python flushes stdout and stderr. With a full pipe, this would block until the pipe is read. However,
    Python doesn't flush a stream whose file object is closed. The descriptor stays open for the stream that replaces
    the closed one.
    """
    for name in "stdout", "stderr":
        old = getattr(sys, name)
        raw = getattr(getattr(old, "buffer", None), "raw", None)
        # Don't replace the streams of a notebook or a test.
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

    DEL and the C1 control characters are escaped too. JSON allows them in strings, but if another program printed the
    JSON to a terminal, the terminal would interpret them.
    """
    if not text.isprintable():
        text = text.translate(_CONTROLS)
    return text.encode("utf-8", "backslashreplace")


_CONTROLS = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


def check_destination(sources: Iterable[str], destination: str, *, overwrite: bool) -> None:
    """Checks that a new file can have this name. This happens before the logs are read.

    Raises:
        FileExistsError: The file exists, and `overwrite` is false.
        ValueError: The name is empty, is a URL, or is the name of one of the logs.
    """
    if not destination:
        raise ValueError("the name of the DESTINATION is empty")
    if is_url(destination):
        raise ValueError(f"{destination} is a URL, and URLs can only be read")
    if destination == "-" or not os.path.lexists(destination):
        return
    if not overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), destination)
    # Dangling links and missing sources have no identity. A missing source is reported when opening it fails.
    replaced = identity_of(destination)
    for source in sources:
        log = file_identity(os.fstat(sys.stdin.fileno())) if source == "-" else identity_of(source)
        if log is not None and log == replaced:
            raise ValueError(f"{destination} is the log that is read, and would be overwritten")


def check_new_file(destination: str, what: str, files: Iterable[Input], *, overwrite: bool, advice: str = "") -> None:
    """Checks, before any source is read, that `what` can have this name.

    Raises:
        FileExistsError: The file exists, and `overwrite` is false.
        ValueError: The name is empty or a URL, or it refers to a directory or one of `files`. With `overwrite`, this is
            also raised if the file is or may be a log. A file may be a log if it is named like one, if its only record
            is incomplete, or if its first fragment would be valid but for a flipped bit.
    """
    if os.path.isdir(destination):
        raise ValueError(f"{destination} is a directory, and a {what} is a new file{advice}")
    # A page or a picture found in a directory is assumed to be from an earlier run. It may be replaced, unless it turns
    # out to be a log. Both the file and the destination must have a suffix in `pages`. This prevents a log from being
    # replaced through a link whose name has such a suffix.
    pages = (".html", ".json", ".svg")
    named = [
        file.name
        for file in files
        if not (file.is_in_directory and file.name.endswith(pages) and destination.endswith(pages))
    ]
    check_destination(named, destination, overwrite=overwrite)
    if not (overwrite and os.path.isfile(destination)):
        return
    refusal = f"which --overwrite does not replace with a {what}{advice}"
    # When a shell expands a pattern, one of the logs may end up as the destination. detect() raises an error if a file
    # is not a log or cannot be read. In both cases, the file may be replaced.
    with contextlib.suppress(OSError, cordwood.CordwoodError):
        if cordwood.detect(destination) is not None:
            raise ValueError(f"{destination} is a log, {refusal}")
        if os.path.getsize(destination) and may_be_damaged_log(destination):
            raise ValueError(f"{destination} may be a damaged log, {refusal}")


@contextlib.contextmanager
def new_file(name: str, sources: Iterable[Input], *, overwrite: bool = False) -> Generator[Output]:
    """Opens a new file, which gets its final name once it is complete. If the name is `-`, yields stdout.

    A new file can be read only by users who can read all `sources`. With `overwrite`, it replaces an existing file and
    takes on its mode. If the existing file isn't a regular file (a pipe, for example), the data is written to it
    directly.
    """
    if name == "-":
        yield stdout()
        return
    is_stream = os.path.exists(name) and not os.path.isfile(name)
    with contextlib.nullcontext(name) if is_stream else unfinished(name, overwrite=overwrite) as path:
        try:
            mode = _mode_of(sources)
            # Closing the file may also fail.
            with open(path, "wb" if overwrite else "xb", opener=partial(os.open, mode=mode)) as file:
                yield file
        except OSError as error:
            # The error from a failed write doesn't include a file name. Reads never raise `_NO_ROOM` errors.
            if error.errno in _NO_ROOM and error.filename is None:
                error.filename = name
            raise


def _mode_of(sources: Iterable[Input]) -> int:
    """Returns the mode for a new file made from these sources, before applying the umask.

    For a single file, this is the file's mode, as with `cp`. For several files or a segmented log, it contains only the
    permissions that all the files have.
    """
    allowed: int | None = None
    for source in sources:
        if source.name != "-" and not source.format and (path := local_path(source.name)) is not None:
            # A file that cannot be read is reported elsewhere.
            with contextlib.suppress(OSError, ValueError):
                for part in {path, *(part for _, part in files_of(path))}:
                    status = os.stat(part)
                    # The directory of a segmented log has execute bits, but the new file must not be executable.
                    mode = status.st_mode & (_READ_WRITE if stat.S_ISDIR(status.st_mode) else _PERMISSIONS)
                    allowed = mode if allowed is None else allowed & mode
    return _READ_WRITE if allowed is None else allowed


_READ_WRITE = 0o666

_PERMISSIONS = 0o777
"""The permission bits. The setuid, setgid and sticky bits must not apply to a copy."""

_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextlib.contextmanager
def unfinished(name: str, *, overwrite: bool) -> Generator[str]:
    """Yields the path of a temporary file, which atomically becomes the file `name` once it is complete.

    With `overwrite`, the temporary file replaces an existing file and takes on its mode. Without `overwrite`, an error
    is raised if a file with this name has appeared in the meantime. The temporary file is in a directory of its own,
    which other users can't enter. It has the same base name as the new file, because a file name may contain the number
    of a log.
    """
    target = os.path.realpath(name)
    directory = os.path.join(os.path.dirname(target), f".cordwood-{os.urandom(8).hex()}.partial")
    new = os.path.join(directory, os.path.basename(os.path.normpath(name)))

    def remove() -> None:
        # The file may be missing, for example because its name is too long.
        with contextlib.suppress(OSError):
            os.unlink(new)
        with contextlib.suppress(FileNotFoundError):
            try:
                os.rmdir(directory)
            except OSError:
                # A signal interrupted `cordwood.salvage`, so its temporary file was left behind. In other cases, the
                # directory isn't listed, because listing takes memory, and a lack of memory may have caused the
                # failure.
                for file in os.listdir(directory):
                    os.unlink(os.path.join(directory, file))
                os.rmdir(directory)

    with _called_on_signals(remove):
        try:
            os.mkdir(directory, 0o700)
            yield new
            if overwrite:
                with contextlib.suppress(FileNotFoundError):
                    os.chmod(new, os.stat(target).st_mode & _PERMISSIONS)
                os.replace(new, target)
            else:
                _rename_to_new(new, target)
        except OSError as error:
            if error.filename in {directory, new}:
                error.filename = name
            raise
        finally:
            remove()


def _rename_to_new(old: str, new: str) -> None:
    """Renames a file, or gives it a second name if the file system supports hard links.

    The new name must not exist.
    """
    try:
        # Creating a link fails if the name exists, whereas a rename would replace the file.
        os.link(old, new)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), old) from None
        os.rename(old, new)


@contextlib.contextmanager
def _called_on_signals(remove: Callable[[], None]) -> Generator[None]:
    """Makes SIGTERM and SIGHUP call `remove` before they terminate the process.

    By default, these signals would terminate the process immediately. If several files are unfinished, the handler
    calls the `remove` functions of all of them.

    The signal handlers don't raise exceptions, because an exception could interrupt the exit of a context manager and
    skip its last steps. Only the default handling of a signal is replaced. A signal that is ignored, as after `nohup`,
    stays ignored. A handler installed by a program that calls `main` stays in place.
    """
    import signal

    def end(number: int, _: object) -> None:
        try:
            for each in _removers:
                each()
        finally:
            # This way, the parent process can see which signal terminated its child.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            # A container's first process survives the signal, so it must exit explicitly.
            os._exit(128 + number)

    # Windows doesn't have SIGHUP.
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    _removers.append(remove)
    try:
        # Only the main thread can set signal handlers.
        with contextlib.suppress(ValueError):
            for number in numbers:
                if signal.getsignal(number) == signal.SIG_DFL:
                    signal.signal(number, end)
        yield
    finally:
        for number in numbers:
            if signal.getsignal(number) is end:
                signal.signal(number, signal.SIG_DFL)
        _removers.remove(remove)


_removers: list[Callable[[], None]] = []
"""The functions that remove all unfinished files.

The handlers are installed for the first file, which is also the last to be finished.
"""
