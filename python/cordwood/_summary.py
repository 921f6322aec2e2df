"""The findings of one reading of a log: everything that a verb prints, and that `--strict` and the status need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cordwood._inputs.input import dialect_of_empty_run
from cordwood._native import Reader, left_out_count
from cordwood._text import quantity
from cordwood.types import (
    BLOCK_LEN,
    FragmentPart,
    LogFormat,
    Outcome,
    OutcomeKind,
    Reason,
    Report,
    Severity,
    SkippedRegion,
)

_HEADER_LEN_MIN = 7
"""No record is shorter than the shortest header. Between two regions, fewer bytes are the trailer of a block."""


def _zeros_inside(regions: Sequence[SkippedRegion], end: int) -> list[SkippedRegion]:
    """The zeros, among the regions skipped up to the file offset `end`, that a record follows."""
    found: list[SkippedRegion] = []
    has_record = False
    for region in reversed(regions):
        has_record = has_record or end - region.end_offset >= _HEADER_LEN_MIN
        end = region.offset
        if has_record and region.reason == Reason.ZERO_FILL:
            found.append(region)
    return found[::-1]


_HIDES_NO_DATA = {
    *(Reason.NONZERO_TRAILER, Reason.EMPTY_FIRST, Reason.FILE_HEADER, Reason.UNKNOWN_VERSION, Reason.METADATA),
    *(Reason.IGNORED_KIND, Reason.END_TRAILER, Reason.STALE),
}


def suspect_regions(report: Report) -> list[SkippedRegion]:
    """The listed regions that records may have been lost in: damage, zeros, and a torn tail.

    Zeros that are taken for padding at the end are not among them.
    """
    end = report.outcome
    zeros = _zeros_of(end, report.skipped, has_records=report.record_count > 0)
    end_offset = zeros.offset if zeros and zeros.is_padding else end.offset + 1
    return [each for each in report.skipped if each.reason not in _HIDES_NO_DATA and each.offset < end_offset]


def zeros_inside_text(length: int) -> str:
    """How many zeros a record follows, and their possible origin."""
    return f"{quantity(length, 'byte')} of zeros before more records: never written, or lost"


ZEROS_ARE = "space that was never written, or data that was lost"
"""The possible origin of zeros at the end of a file."""


class ZerosAtEnd(NamedTuple):
    """The zeros at the end of a file."""

    offset: int
    length: int
    is_padding: bool
    """Whether they fill the block of the last record, which is whole, in a file of whole blocks, as App Engine's writer
    leaves it."""
    is_all: bool
    """Whether the file consists of zeros only."""

    def __str__(self) -> str:
        what = "padding" if self.is_padding else ZEROS_ARE
        return f"at {self.offset:,}: {quantity(self.length, 'zero')} at the end: {what}"


def zeros_at_end(
    offset: int | None, file_len: int, *, has_records: bool, follow_damage: bool = False
) -> ZerosAtEnd | None:
    """The zeros at the end of a log, which start at this offset, if there are any.

    If they follow damage, they are part of a record that never reached the disk, and no padding.
    """
    if offset is None:
        return None
    length = file_len - offset
    is_padding = has_records and not follow_damage and length < BLOCK_LEN and file_len % BLOCK_LEN == 0
    return ZerosAtEnd(offset, length, is_padding, is_all=offset == 0)


def _zeros_of(end: Outcome, regions: Sequence[SkippedRegion], *, has_records: bool) -> ZerosAtEnd | None:
    offset = end.zeros_offset
    follow_damage = offset is not None and any(
        region.severity == Severity.CORRUPTION and region.end_offset >= offset for region in regions
    )
    return zeros_at_end(offset, end.offset, has_records=has_records, follow_damage=follow_damage)


class LogSummary(NamedTuple):
    """The findings in a log."""

    end: Outcome
    ok: bool
    """Whether there is no damage."""
    record_count: int
    """How many records were returned."""
    left_out_count: int
    """How many records after damage in their block were found, and left out by LevelDB's rule."""
    regions: Sequence[SkippedRegion]
    """The skipped regions: the first 100,000."""
    skipped_len: int
    """Bytes in all regions, listed or not."""
    zeros_inside: Sequence[SkippedRegion]
    """The listed regions of zeros that a record follows."""
    zeros_at_end: ZerosAtEnd | None
    log_number: int | None
    other_log_number: int | None
    """The number of another log, if the whole file belongs to that."""
    has_no_dialect: bool
    """Whether it is damaged, and its dialect could not be detected: it may be another than the one it was read in."""
    is_empty_run: bool
    """Whether it is the log of a run, by its name, and has no byte."""

    @property
    def is_torn(self) -> bool:
        """Whether it ends with an incomplete record."""
        return self.end.kind == OutcomeKind.TORN_TAIL

    @property
    def is_incomplete(self) -> bool:
        """Whether `--strict` fails on it, damaged or not."""
        has_zeros = self.zeros_at_end is not None and not self.zeros_at_end.is_padding
        return self.is_torn or bool(self.zeros_inside) or has_zeros or self.is_empty_run


def summary_of(read: Report | Reader, record_count: int | None = None, *, path: str = "") -> LogSummary:
    """The summary of a report, or of a reader of `reader_of`, which has returned this many records.

    Only `path` shows that a log without a byte is that of a run.
    """
    if isinstance(read, Report):
        record_count, left_out = read.record_count, 0
    else:
        record_count, left_out = record_count or 0, left_out_count(read)
    regions, end = read.skipped, read.outcome
    has_records = record_count + left_out > 0
    zeros_inside = _zeros_inside(regions, end.offset)
    at_end = _zeros_of(end, regions, has_records=has_records)
    ok = read.ok
    return LogSummary(
        end=end,
        ok=ok,
        record_count=record_count,
        left_out_count=left_out,
        regions=regions,
        skipped_len=read.skipped_len,
        zeros_inside=zeros_inside,
        zeros_at_end=at_end,
        log_number=read.log_number,
        other_log_number=read.other_log_number,
        has_no_dialect=not (ok or has_records or read.dialect_known or _shows_flip(regions)),
        # Reading can also stop at damage in front of the first record.
        is_empty_run=not regions and dialect_of_empty_run(path, end.offset) is not None,
    )


def _shows_flip(regions: Sequence[SkippedRegion]) -> bool:
    """Whether a flipped bit outside of a length explains a region.

    In another dialect, headers have other lengths, and the same bytes can look as if a bit of a length had been
    flipped. A flipped bit elsewhere shows the dialect.
    """
    flips = (region.bit_flip for region in regions)
    return any(flip and flip.part != FragmentPart.LENGTH for flip in flips)


def format_of(report: Report) -> LogFormat:
    """Which log was read."""
    return LogFormat(report.dialect, report.log_number, report.compression)
