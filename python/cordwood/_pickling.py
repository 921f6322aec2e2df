"""Defines how `pickle` and `copy` treat objects of the native module.

Objects that hold a file, a lock or a position can't be pickled or copied. The error names the arguments to pass
instead.
"""

import copyreg
from typing import Any, NoReturn

from cordwood._native import Follower, Reader, Record, RecordBatch, Scan, Writer


def _reduced(record: Record) -> tuple[Any, ...]:
    """Returns the constructor and its keyword arguments. This form is compact in all `pickle` protocols."""
    keywords = {name: getattr(record, name) for name in ("offset", "end_offset", "data", "salvaged")}
    return copyreg.__newobj_ex__, (Record, (), keywords)  # type: ignore[attr-defined]  # of Python's own, not for users


def refuse(given: type, instead: str) -> None:
    """Makes `pickle` and `copy` refuse instances of a class. `instead` says what to pass in place of an instance."""

    def refused(_value: object) -> NoReturn:
        raise TypeError(f"a {given.__name__} cannot be pickled or copied: {instead}")

    copyreg.pickle(given, refused)


refuse(Follower, "pass the path and position(), and follow from that start")
refuse(Reader, "pass the path, or a Split (cordwood.plan_splits), and open that")
refuse(RecordBatch, "pass list(batch), or a path and a range for the other process to read")
refuse(Scan, "pass the arguments of scan, and call it there")
refuse(Writer, "one process writes a log; close it and pass the path, which mode 'a' appends to")
copyreg.pickle(Record, _reduced)
