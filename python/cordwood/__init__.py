"""Read and write the LevelDB log format.

>>> import cordwood
>>> with cordwood.open("example.log", "w") as writer:
...     writer.append(b"one"), writer.append(b"two")
(0, 10)
>>> with cordwood.open("example.log") as reader:
...     list(reader)
[b'one', b'two']

Start with `open`, which returns a `Reader` or a `Writer`. `follow` reads a log while it is being written.

`verify`, `salvage`, `pack`, `stat`, `fragments` and `map` work on whole logs. `info` also describes databases and
exports, `scan` turns the records of many logs into a table for any program that reads Arrow, and `evidence` creates a
page that reports on one or more logs. `index` gives access to records by number. `cordwood.payload` decodes the data
that programs store in records, and `cordwood.compat` contains replacements for the readers in other packages.

A reader raises a `CorruptionError` when it reaches damage, but you can continue iterating afterwards. The
`on_corruption` option can make the reader stop at the damage, skip it, or also salvage the valid records that follow.
See `Reader` for details. `Reader.ok` shows whether any damage was found, and `Reader.skipped` lists the skipped
regions. `help(cordwood.errors)` lists all exceptions.
"""

from typing import TYPE_CHECKING

from cordwood import _pickling as _pickling  # registers how objects are pickled
from cordwood._native import (
    Follower,
    Position,
    Reader,
    Record,
    RecordBatch,
    RecordIndex,
    Scan,
    Writer,
    __version__,
    crc32c,
    detect,
    fragments,
    index,
    mask_crc,
    pack,
    scan,
    unmask_crc,
)
from cordwood._open import Split, follow, open  # noqa: A004 - as in gzip, bz2 and lzma
from cordwood.errors import (
    ClosedError,
    CordwoodError,
    CorruptionError,
    DialectError,
    LogChangedError,
    LogRotatedError,
    LogTruncatedError,
    OtherLogError,
    PayloadError,
    RecordTooLargeError,
    TornTailError,
)
from cordwood.types import (
    BLOCK_LEN,
    Info,
    LogFormat,
    Report,
    SkippedRegion,
    Stat,
)

if TYPE_CHECKING:
    from cordwood._content import info
    from cordwood._evidence import Evidence, evidence
    from cordwood._many import Results, salvage, stat, verify
    from cordwood._map import LogMap, map  # noqa: A004 - as the verb of the command
    from cordwood._remote import set_read_ahead
    from cordwood._splits import group_splits, plan_splits
    from cordwood._tables.scan import DecodedScan

del TYPE_CHECKING

_LATE = {
    "_evidence": ("Evidence", "evidence"),
    "_content": ("info",),
    "_many": ("Results", "salvage", "stat", "verify"),
    "_map": ("LogMap", "map"),
    "_remote": ("set_read_ahead",),
    "_splits": ("group_splits", "plan_splits"),
    "_tables.scan": ("DecodedScan",),
}
"""Imported on first use. Few programs need these names, and the modules that define them are slow to import."""


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module, names in _LATE.items():
        if name in names:
            value: object = getattr(import_module(f"cordwood.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'cordwood' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = ["BLOCK_LEN", "__version__"]
__all__ += ["ClosedError", "CordwoodError", "CorruptionError", "DialectError", "LogChangedError", "LogRotatedError"]
__all__ += ["LogTruncatedError", "OtherLogError", "PayloadError", "RecordTooLargeError", "TornTailError"]
__all__ += ["DecodedScan", "Evidence", "Info", "LogFormat", "LogMap", "Report", "Results", "Scan", "SkippedRegion"]
__all__ += ["Follower", "Position", "Reader", "Record", "RecordBatch", "RecordIndex", "Split", "Stat", "Writer"]
__all__ += ["crc32c", "detect", "evidence", "follow", "fragments", "group_splits", "index", "info", "map", "mask_crc"]
__all__ += ["open", "pack", "plan_splits", "salvage", "scan", "set_read_ahead", "stat", "unmask_crc", "verify"]
