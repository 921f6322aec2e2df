"""`cordwood.plan_splits`: a log cut into byte ranges that workers can read alone."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath, stat
from typing import NamedTuple

from cordwood.types import BLOCK_LEN


class Split(NamedTuple):
    """The bytes `[start, end)` of a log: `cordwood.open(path, start=start, end=end)` gives what begins there.

    Attributes:
        path: The file.
        start: File offset of the first byte, in bytes; the beginning of a block.
        end: File offset after the last byte, in bytes. A record that begins before it is finished after it.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> cordwood.plan_splits(["example.log"], 32_768)
    [Split(path='example.log', start=0, end=10)]
    """

    path: str
    start: int
    end: int


def plan_splits(sources: Iterable[str | PathLike[str]], split_len: int) -> list[Split]:
    """Cuts logs into byte ranges that workers can read alone, each record in exactly one of them.

    Only the length of each file is looked at. It takes time in proportion to the number of ranges.

    Args:
        sources: Paths of files.
        split_len: Bytes in a range, at least 1; rounded up to whole blocks of 32 KiB.

    Returns:
        The ranges, file by file and in the order of the offsets. Those of a file cover it; an empty file has none.

    Raises:
        OSError: A file is missing, or may not be asked for its length.
        TypeError: `sources` is one path, or something in it is none.
        ValueError: `split_len` is less than 1.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one" * 20_000, b"two"])
    2
    >>> splits = cordwood.plan_splits(["example.log"], 32_768)
    >>> splits
    [Split(path='example.log', start=0, end=32768), Split(path='example.log', start=32768, end=60024)]
    >>> [len(list(cordwood.open(path, start=start, end=end))) for path, start, end in splits]
    [1, 1]
    """
    if isinstance(sources, str | bytes | PathLike):
        raise TypeError("sources must be several paths, such as [path], not one")
    if split_len < 1:
        raise ValueError(f"split_len must be at least 1, not {split_len}")
    split_len += -split_len % BLOCK_LEN
    splits: list[Split] = []
    for source in sources:
        file_len = stat(source).st_size  # noqa: PTH116 - pathlib would be half of the time of our import
        splits += [
            Split(fspath(source), start, min(start + split_len, file_len)) for start in range(0, file_len, split_len)
        ]
    return splits
