"""Zeros in a log: which of them are reported, and in which words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cordwood
from cordwood._text import quantity

_HEADER_LEN_MIN = 7
"""No record is shorter than the shortest header. Between two regions, fewer bytes are the trailer of a block."""


def zeros_inside(regions: Sequence[cordwood.SkippedRegion], end: int) -> list[cordwood.SkippedRegion]:
    """The zeros, among the regions skipped up to the file offset `end`, that a record follows."""
    found: list[cordwood.SkippedRegion] = []
    has_record = False
    # Each region is an object that is made when it is looked at, so each is looked at once.
    for region in reversed(regions):
        has_record = has_record or end - region.end_offset >= _HEADER_LEN_MIN
        end = region.offset
        if has_record and region.reason == cordwood.Reason.ZERO_FILL:
            found.append(region)
    return found[::-1]


def zeros_inside_text(length: int) -> str:
    """How many zeros a record follows, and what they may be."""
    return f"{quantity(length, 'byte')} of zeros before more records: never written, or lost"


ZEROS_ARE = "space that was never written, or data that was lost"
"""What zeros at the end of a file may be."""


class ZerosAtEnd(NamedTuple):
    """The zeros at the end of a file."""

    offset: int
    length: int
    is_padding: bool
    """Whether they fill the block of the last record, in a file of whole blocks, as App Engine's writer leaves it."""
    is_all: bool
    """Whether the file consists of nothing else."""

    def __str__(self) -> str:
        what = "padding" if self.is_padding else ZEROS_ARE
        return f"at {self.offset:,}: {quantity(self.length, 'zero')} at the end: {what}"


def zeros_at_end(end: cordwood.Outcome, *, has_records: bool) -> ZerosAtEnd | None:
    """The zeros at the end of a log, if there are any."""
    offset, file_len = end.zeros_offset, end.offset
    if offset is None:
        return None
    length = file_len - offset
    is_padding = has_records and length < cordwood.BLOCK_LEN and file_len % cordwood.BLOCK_LEN == 0
    return ZerosAtEnd(offset, length, is_padding, is_all=offset == 0)
