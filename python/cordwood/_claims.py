"""Reads a range of a log for Apache Beam, which may reassign the end of the range to another worker mid-read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias

from cordwood._native import Reader, RecordBatch
from cordwood.types import BLOCK_LEN

OpenRange: TypeAlias = Callable[[int, int], AbstractContextManager[Reader]]
"""A function that opens a log and returns a reader for its bytes `[start, end)`."""

WHOLE_LEN = 1 << 63
"""The length of a part that covers a whole log. Used for logs that can't be divided."""


class ClaimedRange:
    """The records and regions of a log that start in one of the parts `[first, end)`.

    Each part is claimed separately, and reading stops when a claim fails. A part is usually one block. A log that can't
    be divided has a single part, of length `WHOLE_LEN`.

    Args:
        open_range: A function that opens a reader for a range of the log.
        first: The number of the first part.
        end: One more than the number of the last part.
        place_len: The length of a part in bytes.
    """

    def __init__(self, open_range: OpenRange, first: int, end: int, place_len: int = BLOCK_LEN) -> None:
        self._open_range = open_range
        self._first = first
        self._end = end
        self._place_len = place_len

    def batches(
        self, try_claim: Callable[[int], bool], *, target_len: int = 1 << 18
    ) -> Iterator[tuple[RecordBatch, int]]:
        """Yields each batch and how many of its records start in claimed parts. This number is at least 1.

        Args:
            try_claim: A function that claims the part with the given number for this worker. It is called once for each
                part where a record starts, in order, and finally for `end`. Once it returns false, no more records are
                returned.
            target_len: Same as for `Reader.record_batches`.
        """
        claimed = self._first - 1
        with self._open(self._end) as self._reader:
            for batch in self._reader.record_batches(target_len=target_len):
                offsets = batch.record_offsets
                count = 0
                while count < len(offsets):
                    place = offsets[count] // self._place_len
                    if place != claimed and not try_claim(place):
                        if count:
                            yield batch, count
                        return
                    claimed = place
                    count = bisect_left(offsets, (place + 1) * self._place_len, count)
                yield batch, count
        try_claim(self._end)

    def findings(self, end: int) -> Reader:
        """Returns a closed reader whose `skipped` and `skipped_len` cover the parts `[first, end)`.

        Args:
            end: The end of the range once `batches` has finished. It is smaller than the original end if another worker
                took over the rest.
        """
        end_offset = end * self._place_len
        if end == self._end or all(region.end_offset <= end_offset for region in self._reader.skipped):
            return self._reader
        # The reader has read past the claimed parts, so a region may extend into another worker's range. Read this
        # range again.
        with self._open(end) as reader:
            for _ in reader.record_batches():
                pass
        return reader

    def _open(self, end: int) -> AbstractContextManager[Reader]:
        return self._open_range(self._first * self._place_len, end * self._place_len)
