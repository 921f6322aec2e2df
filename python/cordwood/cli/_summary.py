"""What one reading of a log says about it: everything that a verb prints, and what `--strict` and the status need."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import cordwood
from cordwood._native import leave_out_salvaged, left_out_count
from cordwood.cli._options import reading_options
from cordwood.cli._zeros import ZerosAtEnd, zeros_at_end, zeros_inside


class LogSummary(NamedTuple):
    """What was found in a log."""

    log: cordwood.LogFormat
    end: cordwood.Outcome
    ok: bool
    """Whether nothing is damaged."""
    record_count: int
    """How many records were returned."""
    left_out_count: int
    """How many records after damage in their block were found, and left out by LevelDB's rule."""
    regions: Sequence[cordwood.SkippedRegion]
    """The skipped regions: the first 100,000."""
    skipped_len: int
    """Bytes in all regions, listed or not."""
    zeros_inside: Sequence[cordwood.SkippedRegion]
    """The listed regions of zeros that a record follows."""
    zeros_at_end: ZerosAtEnd | None
    other_log_number: int | None
    """The number of another log, if the whole file belongs to that."""
    has_no_dialect: bool
    """Whether it is damaged, and nothing in it shows its dialect: it may be another than the one it was read in."""

    @property
    def is_torn(self) -> bool:
        """Whether it ends with an incomplete record."""
        return self.end.kind == cordwood.OutcomeKind.TORN_TAIL

    @property
    def is_incomplete(self) -> bool:
        """Whether `--strict` fails on it, damaged or not."""
        has_zeros = self.zeros_at_end is not None and not self.zeros_at_end.is_padding
        return self.is_torn or bool(self.zeros_inside) or has_zeros


def summary_of_report(report: cordwood.Report) -> LogSummary:
    """What a report says about its log."""
    return _summary(report, report.record_count, 0)


def summary_of_reader(reader: cordwood.Reader, record_count: int) -> LogSummary:
    """What a reader of `reader_of`, which has returned this many records, says about its log."""
    return _summary(reader, record_count, left_out_count(reader))


def _summary(read: cordwood.Report | cordwood.Reader, record_count: int, left_out_count: int) -> LogSummary:
    regions, end, ok = read.skipped, read.outcome, read.ok
    has_records = record_count + left_out_count > 0
    return LogSummary(
        log=format_of(read),
        end=end,
        ok=ok,
        record_count=record_count,
        left_out_count=left_out_count,
        regions=regions,
        skipped_len=read.skipped_len,
        zeros_inside=zeros_inside(regions, end.offset),
        zeros_at_end=zeros_at_end(end, has_records=has_records),
        other_log_number=read.other_log_number,
        has_no_dialect=not (ok or has_records or read.dialect_known or _shows_flip(regions)),
    )


def _shows_flip(regions: Sequence[cordwood.SkippedRegion]) -> bool:
    """Whether a flipped bit outside of a length explains a region.

    In another dialect, headers have other lengths, and the same bytes can look as if a bit of a length had been
    flipped. A flipped bit elsewhere shows the dialect.
    """
    flips = (region.bit_flip for region in regions)
    return any(flip and flip.part != cordwood.FragmentPart.LENGTH for flip in flips)


def format_of(read: cordwood.Reader | cordwood.Report | cordwood.Stat) -> cordwood.LogFormat:
    """Which log was read."""
    return cordwood.LogFormat(read.dialect, read.log_number, read.compression)


def reader_of(options: argparse.Namespace, source: Any, end: int | None) -> cordwood.Reader:
    """A reader of the log `source`, as the options say, up to the file offset `end`.

    By LevelDB's rule (`--on-corruption skip`), it leaves out the records after damage in their block, and counts them.
    """
    by_rule = options.on_corruption == "skip"
    if by_rule:
        options = argparse.Namespace(**vars(options) | {"on_corruption": "salvage"})
    reader = cordwood.Reader(
        source, on_corruption=options.on_corruption, start=options.start, end=end, **reading_options(options)
    )
    if by_rule:
        leave_out_salvaged(reader)
    return reader
