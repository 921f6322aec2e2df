"""`RecordsReader` and `RecordsWriter` of GoogleAppEngineMapReduce 1.9.22.0.

Change

    from mapreduce import records

to

    from cordwood.compat import mapreduce as records

It runs on Python 2 only. Its reader is that of the App Engine SDK; its writer neither pads the last block nor needs
`with`. What the tests compare with is said in `cordwood.compat.appengine`.

>>> import io
>>> from cordwood.compat import mapreduce as records
>>> file = io.BytesIO()
>>> writer = records.RecordsWriter(file)
>>> writer.write(b"one")
>>> len(file.getvalue())
10

The deviations are those of `cordwood.compat.appengine` but **close**, and:

* **errors**: `mapreduce.errors` is not here. No reader raises its `InvalidRecordError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from cordwood.compat import appengine
from cordwood.compat.appengine import RecordsReader

if TYPE_CHECKING:
    from cordwood.typing import Writable

__all__ = ["RecordsReader", "RecordsWriter"]


class RecordsWriter(appengine.RecordsWriter):
    """Writes records to a log. Each is handed to the file at once.

    Args:
        writer: A binary file, or another object with `write`.
    """

    def __init__(self, writer: Writable) -> None:
        super().__init__(writer, _pad_last_block=False)
        self._has_entered = True

    def __enter__(self) -> Self:
        return self

    def _pad_block(self) -> None:
        """Fills the last block with zeros. Private in MapReduce, too, whose output writers call it."""
        self._pad()
