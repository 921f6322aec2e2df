"""New files: which names they may have, and that each gets its name once it is complete."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterable
from functools import partial

import cordwood
from cordwood._inputs.files import file_identity, files_of, identity_of
from cordwood._inputs.input import Input
from cordwood._inputs.kind import may_be_damaged_log
from cordwood._remote import is_url, local_path
from cordwood.cli._output import Output, stdout


def check_destination(sources: Iterable[str], destination: str, *, overwrite: bool) -> None:
    """Checks that a new file can have this name. This happens before the logs are read, which may take long.

    Raises:
        FileExistsError: The file exists, and `overwrite` is false.
        ValueError: The name is that of one of the logs, a URL, or empty.
    """
    if not destination:
        raise ValueError("the name of the DESTINATION is empty")
    if is_url(destination):
        raise ValueError(f"{destination} is a URL, and URLs can only be read")
    if destination == "-" or not os.path.lexists(destination):
        return
    if not overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), destination)
    # A dangling link and a missing source have no identity. A missing source is reported when it is opened.
    replaced = identity_of(destination)
    for source in sources:
        log = file_identity(os.fstat(sys.stdin.fileno())) if source == "-" else identity_of(source)
        if log is not None and log == replaced:
            raise ValueError(f"{destination} is the log that is read, and would be overwritten")


def check_new_file(destination: str, what: str, files: Iterable[Input], *, overwrite: bool, advice: str = "") -> None:
    """Checks that `what` can have this name, before the files from which it is made are read.

    Raises:
        FileExistsError: The file exists, and `overwrite` is false.
        ValueError: The name is that of a directory, one of these files or a log, a URL, or empty.
    """
    if os.path.isdir(destination):
        raise ValueError(f"{destination} is a directory, and a {what} is a new file{advice}")
    # A page or a picture in a directory comes from an earlier run, unless it is a log, so it may be replaced. Both
    # names must be those of pages: otherwise, a log could be replaced through a link that has the name of a page.
    pages = (".html", ".json", ".svg")
    named = [
        file.name
        for file in files
        if not (file.is_in_directory and file.name.endswith(pages) and destination.endswith(pages))
    ]
    check_destination(named, destination, overwrite=overwrite)
    if overwrite:
        _check_no_log(destination, what, advice)


def _check_no_log(destination: str, what: str, advice: str) -> None:
    """Checks that the file to be replaced by `what` is not a log.

    A shell that expands a pattern may have put one of several logs in the place of the destination.

    Raises:
        ValueError: The file is a log, or it may be one. It may be one if a flipped bit explains why its first
            fragment is not valid, if its only record is incomplete, or if it has the name of a log.
    """
    refusal = f"which --overwrite does not replace with a {what}{advice}"
    # detect() raises if a file is not a log or cannot be read. Such a file may be replaced.
    with contextlib.suppress(OSError, cordwood.CordwoodError):
        if not os.path.isfile(destination):
            return
        if cordwood.detect(destination) is not None:
            raise ValueError(f"{destination} is a log, {refusal}")
        if os.path.getsize(destination) and may_be_damaged_log(destination):
            raise ValueError(f"{destination} may be a damaged log, {refusal}")


@contextlib.contextmanager
def new_file(name: str, sources: Iterable[Input], *, overwrite: bool = False) -> Generator[Output]:
    """Opens a file that gets its name once it is complete. For `-`, returns stdout.

    Only users who can read all the `sources` can read a new file. With `overwrite`, an existing file is replaced, but
    the new one has the same mode. A file that is not a regular file, such as a pipe, is written to directly.
    """
    if name == "-":
        yield stdout()
        return
    is_stream = os.path.exists(name) and not os.path.isfile(name)
    with contextlib.nullcontext(name) if is_stream else unfinished(name, overwrite=overwrite) as path:
        try:
            mode = _mode_of(sources)
            # Closing it may fail, too.
            with open(path, "wb" if overwrite else "xb", opener=partial(os.open, mode=mode)) as file:
                yield file
        except OSError as error:
            # The error of a failed write has no file name. Reads never raise these errors.
            if error.errno in _NO_ROOM and error.filename is None:
                error.filename = name
            raise


def _mode_of(sources: Iterable[Input]) -> int:
    """Returns the mode of a new file that is made from these, before the system clears the bits of the umask.

    For a single file, this is its own mode, as with `cp`. For several files, or for a segmented log, it consists of
    the permissions that all of them have.
    """
    allowed: int | None = None
    for source in sources:
        if source.name != "-" and not source.format and (path := local_path(source.name)) is not None:
            # An unreadable file is reported elsewhere.
            with contextlib.suppress(OSError, ValueError):
                for part in {path, *(part for _, part in files_of(path))}:
                    status = os.stat(part)
                    # A directory is executable, but a file that is made from the log in it must not be.
                    mode = status.st_mode & (_READ_WRITE if stat.S_ISDIR(status.st_mode) else _PERMISSIONS)
                    allowed = mode if allowed is None else allowed & mode
    return _READ_WRITE if allowed is None else allowed


_READ_WRITE = 0o666

_PERMISSIONS = 0o777
"""The permission bits. The setuid, setgid and sticky bits apply to one program or directory, not to a copy."""

_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextlib.contextmanager
def unfinished(name: str, *, overwrite: bool) -> Generator[str]:
    """Yields the path of a temporary file to write. Once it is complete, it becomes the file `name` atomically.

    With `overwrite`, it replaces an existing file and gets its mode. Without `overwrite`, a file that has appeared in
    the meantime is an error. The temporary file is in a directory of its own, which no other user can enter. It has
    the same base name, because the name may state the number of a log.
    """
    target = os.path.realpath(name)
    directory = os.path.join(os.path.dirname(target), f".cordwood-{os.urandom(8).hex()}.partial")
    new = os.path.join(directory, os.path.basename(os.path.normpath(name)))

    def remove() -> None:
        # The file may not exist, for example because its name is too long.
        with contextlib.suppress(OSError):
            os.unlink(new)
        with contextlib.suppress(FileNotFoundError):
            try:
                os.rmdir(directory)
            except OSError:
                # A signal has interrupted `cordwood.salvage`, so its temporary file remains. The directory is listed
                # only in this case: listing takes memory, and a lack of memory may have caused the failure.
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
    """Renames a file. If the file system has hard links, gives it a second name instead.

    No file may have the new name.
    """
    try:
        # A link fails if the name exists, whereas a rename would replace the existing file.
        os.link(old, new)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), old) from None
        os.rename(old, new)


@contextlib.contextmanager
def _called_on_signals(remove: Callable[[], None]) -> Generator[None]:
    """Makes SIGTERM and SIGHUP call `remove` before they end the process. By default, they end it immediately.

    Several files may be unfinished at the same time. The functions of all of them are called.

    The signal handlers raise no exception, because it could interrupt the exit of a context manager and skip its last
    steps. A signal is left alone if it is ignored, as after `nohup`, or if a program that calls `main` handles it.
    """
    import signal

    def end(number: int, _: object) -> None:
        try:
            for each in _removers:
                each()
        finally:
            # The parent process can see which signal ended this one.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            # The first process of a container survives the signal.
            os._exit(128 + number)

    # Windows has no SIGHUP.
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    _removers.append(remove)
    try:
        # Only the main thread may do this.
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
"""The functions of all unfinished files. The first file installs the handlers, and it is complete last."""
