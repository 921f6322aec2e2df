"""`cordwood.plan_splits`: logs cut into byte ranges that workers can read independently."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fsdecode, stat
from typing import TYPE_CHECKING, Literal, NamedTuple

from cordwood._native import NUMBERED_DIALECTS, Reader, detect
from cordwood.types import BLOCK_LEN, LogFormat
from cordwood.typing import CompressionName, DialectName

if TYPE_CHECKING:
    from cordwood._identity import Identity


class Split(NamedTuple):
    """The bytes `[start, end)` of a log: `cordwood.open(split)` returns the records that begin there.

    Attributes:
        path: The file: a path, or a URL.
        start: File offset of the first byte, in bytes; the beginning of a block.
        end: File offset after the last byte, in bytes. A record that begins before it may end after it.
        dialect: How the bytes are laid out; `None` if it could not be detected. Default: `None`.
        log_number: The number of the log; `None` if the dialect has none or it is not known. Default: `None`.
        compression: How each record is compressed: `"zstd"`, or `None` if it is not. Default: `None`.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> [split] = cordwood.plan_splits(["example.log"], 32_768)
    >>> split
    Split(path='example.log', start=0, end=10, dialect='leveldb', log_number=None, compression=None)
    >>> list(cordwood.open(split))
    [b'one']
    """

    path: str
    start: int
    end: int
    dialect: DialectName | None = None
    log_number: int | None = None
    compression: CompressionName | None = None


def _file_len(path: str) -> int:
    if "://" in path:
        from cordwood._remote import file_of, is_url

        if is_url(path) and (file := file_of(path, 0, 0)) is not None:
            return len(file)
    return stat(path).st_size  # noqa: PTH116 - pathlib would be half of the time of our import


def plan_splits(
    sources: Iterable[str | PathLike[str]],
    split_len: int,
    *,
    dialect: DialectName | Literal["auto"] | None = None,
    log_number: int | None = None,
    compression: CompressionName | None = None,
) -> list[Split]:
    """Cuts logs into byte ranges that workers can read independently, each record in exactly one of them.

    Only the length of each file is read, and the beginning if `dialect` is not given. A log of a dialect with log
    numbers or compression (`"rocksdb"`, `"pebble"`, `"recyclable"`) cannot be read in parts: it is one range.

    A file that has several of the names, such as a link to another one, is cut once, under the first of them; so is a
    URL that occurs more than once.

    Args:
        sources: Paths of files, or URLs.
        split_len: Bytes in a range, at least 1; rounded up to whole blocks of 32 KiB.
        dialect: As for `Reader`, for all the files. Default: `None`: it is detected for each.
        log_number: As for `Reader`. Default: `None`.
        compression: As for `Reader`. Default: `None`.

    Returns:
        The ranges, file by file and in the order of the offsets. The ranges of a file cover it; an empty file has none.

    Raises:
        DialectError: A file is not a log.
        OSError: A file is missing, or its length or its content cannot be read.
        TypeError: `sources` is a single path, or an item of it is not a path.
        ValueError: `split_len` is less than 1; or an option has an invalid value, or makes no sense in the dialect.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one" * 20_000, b"two"])
    2
    >>> splits = cordwood.plan_splits(["example.log"], 32_768)
    >>> [(split.start, split.end) for split in splits]
    [(0, 32768), (32768, 60024)]
    >>> [len(list(cordwood.open(split))) for split in splits]
    [1, 1]
    """
    from cordwood._identity import identity_of

    if isinstance(sources, str | bytes | PathLike):
        raise TypeError("sources must be several paths, such as [path], not one")
    if split_len < 1:
        raise ValueError(f"split_len must be at least 1, not {split_len}")
    split_len += -split_len % BLOCK_LEN
    # Refuses options that no reader of the splits would accept.
    Reader(b"", dialect=dialect, log_number=log_number, compression=compression).close()
    named = None if dialect == "auto" else dialect
    splits: list[Split] = []
    seen: set[Identity] = set()
    for source in sources:
        if not isinstance(source, str | PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - it may be bytes
            raise TypeError(f"path must be str or os.PathLike, not {type(source).__name__}")
        # Bytes are data elsewhere; those of a path object are a path.
        path = fsdecode(source)
        if (identity := identity_of(path)) in seen:
            continue
        if identity:
            seen.add(identity)
        file_len = _file_len(path)
        log: LogFormat | None = LogFormat(named) if named else detect(path)
        own_number, own_compression = log_number, compression
        if log:
            own_number = log.log_number if log_number is None else log_number
            own_compression = compression or log.compression
        own_len = max(file_len, 1) if log and log.dialect in NUMBERED_DIALECTS else split_len
        splits += [
            Split(path, start, min(start + own_len, file_len), log and log.dialect, own_number, own_compression)
            for start in range(0, file_len, own_len)
        ]
    return splits
