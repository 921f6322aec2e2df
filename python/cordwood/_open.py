"""`cordwood.open` and `cordwood.follow`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from cordwood._native import Follower, Reader, Writer

if TYPE_CHECKING:
    from os import PathLike

    from cordwood._native import Dialect
    from cordwood.typing import Sink, Source


@overload
def open(  # noqa: A001
    source: Source,
    mode: Literal["r"] = "r",
    *,
    dialect: Dialect | str | None = None,
    on_corruption: Literal["raise", "skip", "stop", "salvage"] = "raise",
    start: int = 0,
    end: int | None = None,
    verify_checksums: bool = True,
    record_len_max: int = 1 << 30,
) -> Reader: ...
@overload
def open(  # noqa: A001
    source: Sink,
    mode: Literal["w", "x", "a"],
    *,
    dialect: Dialect | str | None = None,
    flush: Literal["append", "close"] | None = None,
    sync: Literal["never", "close", "append"] = "never",
    sync_len: int | None = None,
    sync_interval: float | None = None,
    on_torn_tail: Literal["refuse", "truncate", "pad"] = "refuse",
    checkpoint: int | None = None,
    preallocate_len: int = 0,
    record_len_max: int = 1 << 30,
) -> Writer: ...
def open(source: Any, mode: str = "r", **options: Any) -> Reader | Writer:  # noqa: A001
    """Opens a log to read its records or to write some.

    Args:
        source: To read: a path, bytes or any other buffer (`mmap` among them), or an object with `read`.
            To write: a path, or an object with `write`.
        mode: `"r"` reads. `"w"` writes a new file in place of any that is there, `"x"` writes a new file and fails if
            one is there, `"a"` appends.
        **options: Those of `Reader` or `Writer`.

    Returns:
        A `Reader` for `"r"`, else a `Writer`. Both are context managers.

    Raises:
        FileNotFoundError, PermissionError, IsADirectoryError, ...: What the operating system says, with the path.
        FileExistsError: For `"x"`.
        BlockingIOError: Another writer has the file open.
        TornTailError, CorruptionError: For `"a"`, if the file does not end with a whole record.
        DialectError: For `"a"`, if the file is no log, or in another dialect than the one that is named.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.append(b"one")
    0
    >>> with cordwood.open("example.log") as reader:
    ...     list(reader)
    [b'one']
    """
    if mode == "r":
        for name in _WRITER_OPTIONS.intersection(options):
            raise TypeError(f"{name} is an option for writing, and the mode is 'r'")
        return Reader(source, **options)
    for name in _READER_OPTIONS.intersection(options):
        raise TypeError(f"{name} is an option for reading, and the mode is {mode!r}")
    return Writer(source, mode, **options)  # type: ignore[arg-type]  # Writer names the modes in its error.


_READER_OPTIONS = frozenset(("end", "on_corruption", "record_len_max", "start", "verify_checksums"))
_WRITER_OPTIONS = frozenset(
    ("checkpoint", "on_torn_tail", "preallocate_len", "flush", "sync", "sync_interval", "sync_len"),
)


def follow(
    path: str | PathLike[str],
    *,
    start: int = 0,
    timeout: float | None = None,
    dialect: Dialect | str | None = None,
    on_corruption: Literal["raise", "skip", "stop"] = "raise",
    poll_interval: float = 0.05,
    retry_polls: int = 3,
    retry_time: float = 0.1,
    record_len_max: int = 1 << 30,
) -> Follower:
    """Follows a log that another process, or this one, is still writing: gives each record when all of it is there.

    Args:
        path: The file. It must exist; it may be empty.
        start: Return only what begins at this file offset or behind it: `Follower.tell` of a run before this one.
            Default: 0.
        timeout: A step of the iteration waits at most this long for a record, in seconds; then the iteration ends, and
            a new one over the same follower goes on. 0 takes what is there and never waits. Default: `None`, for ever.
        dialect: As for `Reader`; it is found out as soon as there is a file header or a whole fragment.
        on_corruption: As for `Reader`.
        poll_interval: How long to sleep before looking at the file again, in seconds. Default: 0.05.
        retry_polls: What looks damaged, with no sound block behind it, is read again this many times before it is told.
            Default: 3.
        retry_time: And for at least this long, in seconds. Default: 0.1.
        record_len_max: As for `Reader`. Default: 1 GiB.

    Returns:
        A `Follower`: an iterator of `bytes`, also for `async for`.

    Raises:
        OSError: The file cannot be opened, or is no regular file.
        ValueError: An option has no such value.

    >>> with cordwood.open("live.log", "w") as writer:
    ...     _ = writer.append(b"one")
    ...     follower = cordwood.follow("live.log", timeout=0)
    ...     print(list(follower))
    ...     _ = writer.append(b"two")
    ...     print(list(follower), follower.tell())
    [b'one']
    [b'two'] 20
    """
    return Follower(
        path,
        start=start,
        timeout=timeout,
        dialect=dialect,
        on_corruption=on_corruption,
        poll_interval=poll_interval,
        retry_polls=retry_polls,
        retry_time=retry_time,
        record_len_max=record_len_max,
    )
