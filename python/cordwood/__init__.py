"""Read and write the LevelDB log format.

>>> import cordwood
>>> with cordwood.open("example.log", "w") as writer:
...     writer.append(b"one"), writer.append(b"two")
(0, 10)
>>> with cordwood.open("example.log") as reader:
...     list(reader)
[b'one', b'two']

`open` is the way in; it returns a `Reader` or a `Writer`. `follow` reads a log while it is written. The format, what
damage does and what each error means are described in the documentation.
"""

from cordwood._native import (
    End,
    Follower,
    NotYet,
    Reader,
    Record,
    SkippedRegion,
    Writer,
    __version__,
    crc32c,
    mask,
    unmask,
)
from cordwood._open import follow, open  # noqa: A004 - as in gzip, bz2 and lzma
from cordwood.errors import (
    CordwoodError,
    CorruptionError,
    LogRotatedError,
    LogTruncatedError,
    RecordTooLargeError,
    TornTailError,
)
from cordwood.types import EndKind, Reason, Severity, WaitReason

__all__ = [
    "CordwoodError",
    "CorruptionError",
    "End",
    "EndKind",
    "Follower",
    "LogRotatedError",
    "LogTruncatedError",
    "NotYet",
    "Reader",
    "Reason",
    "Record",
    "RecordTooLargeError",
    "Severity",
    "SkippedRegion",
    "TornTailError",
    "WaitReason",
    "Writer",
    "__version__",
    "crc32c",
    "follow",
    "mask",
    "open",
    "unmask",
]
