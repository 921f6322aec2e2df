"""`cordwood.open`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from cordwood._native import Reader, Writer

if TYPE_CHECKING:
    from cordwood.typing import Sink, Source


@overload
def open(  # noqa: A001
    source: Source,
    mode: Literal["r"] = "r",
    *,
    on_corruption: Literal["raise", "skip", "stop"] = "raise",
    start: int = 0,
    end: int | None = None,
    verify_checksums: bool = True,
    record_len_max: int = 1 << 30,
) -> Reader: ...
@overload
def open(source: Sink, mode: Literal["w", "x", "a"]) -> Writer: ...  # noqa: A001
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
        TornTailError, CorruptionError: For `"a"`, if the file does not end with a whole record.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.append(b"one")
    0
    >>> with cordwood.open("example.log") as reader:
    ...     list(reader)
    [b'one']
    """
    if mode == "r":
        return Reader(source, **options)
    return Writer(source, mode, **options)  # type: ignore[arg-type]  # Writer names the modes in its error.
