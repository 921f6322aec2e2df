"""Read and write the LevelDB log format.

>>> import cordwood
>>> with cordwood.open("example.log", "w") as writer:
...     writer.append(b"one"), writer.append(b"two")
(0, 10)
>>> with cordwood.open("example.log") as reader:
...     list(reader)
[b'one', b'two']

`open` is the way in; it returns a `Reader` or a `Writer`. The format, what damage does and what each error means are
described in the documentation.
"""

from cordwood._native import End, Reader, Record, SkippedRegion, Writer, __version__, crc32c, mask, unmask
from cordwood._open import open  # noqa: A004 - as in gzip, bz2 and lzma
from cordwood.errors import CordwoodError, CorruptionError, RecordTooLargeError, TornTailError
from cordwood.types import EndKind, Reason, Severity

__all__ = [
    "CordwoodError",
    "CorruptionError",
    "End",
    "EndKind",
    "Reader",
    "Reason",
    "Record",
    "RecordTooLargeError",
    "Severity",
    "SkippedRegion",
    "TornTailError",
    "Writer",
    "__version__",
    "crc32c",
    "mask",
    "open",
    "unmask",
]
