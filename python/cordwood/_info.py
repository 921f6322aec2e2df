"""`cordwood.info`: a file or a folder in a few numbers. The code that reads is imported with the first call."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from cordwood.types import Info


def info(source: str | PathLike[str] | Iterable[str | PathLike[str]], *, threads: int = 1) -> Info:
    """Describes a file or a folder in a few numbers: its format, its records, its damage, its databases and exports.

    All logs are read. Tables of databases are not, but it is checked that none is missing.

    Args:
        source: A log; a folder, for all logs in it; a pattern such as `"*.log"`; a URL; or several of these, which are
            described together.
        threads: How many threads read.

    Returns:
        The description. Files that could not be read are among its `failures`.

    Raises:
        OSError: The source is a single file and cannot be read, or is a pipe or a device.
        DialectError: The source is a single file and is not a log.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> info = cordwood.info("example.log")
    >>> info.what, info.record_count, info.ok
    ('a log', 2, True)
    """
    from cordwood._content import described

    return described(source, threads)
