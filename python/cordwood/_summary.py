"""Summarizes what was read from one log, and from all the files of a source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from cordwood._databases import databases_of, is_without_record
from cordwood._inputs.each import Result
from cordwood._inputs.exports import exports_of
from cordwood._inputs.input import Input, dialect_of_empty_run
from cordwood._native import Reader, left_out
from cordwood._open import Split
from cordwood._text import quantity
from cordwood.types import (
    BLOCK_LEN,
    Database,
    Export,
    FragmentPart,
    LogFormat,
    OutcomeKind,
    Reason,
    Report,
    Severity,
    SkippedRegion,
)

T = TypeVar("T")

_HEADER_LEN_MIN = 7
"""The length of the shortest header. A shorter gap between regions is a block's trailer."""


_HIDES_NO_DATA = {
    *(Reason.NONZERO_TRAILER, Reason.EMPTY_FIRST, Reason.FILE_HEADER, Reason.UNKNOWN_VERSION, Reason.METADATA),
    *(Reason.IGNORED_KIND, Reason.END_TRAILER, Reason.STALE),
}


def suspect_regions(report: Report) -> list[SkippedRegion]:
    """Returns the listed regions where records may have been lost: damage, zeros and a torn tail.

    Zeros at the end are left out if they are just padding.
    """
    zeros = zeros_of(report)
    end_offset = zeros.offset if zeros and zeros.is_padding else report.outcome.offset + 1
    return [each for each in report.skipped if each.reason not in _HIDES_NO_DATA and each.offset < end_offset]


def zeros_inside_text(length: int) -> str:
    """Describes how many zeros precede a record, and where they may come from."""
    return f"{quantity(length, 'byte')} of zeros before more records: never written, or lost"


ZEROS_ARE = "space that was never written, or data that was lost"
"""The possible explanations for zeros at the end of a file."""


class ZerosAtEnd(NamedTuple):
    """The zeros at the end of a file."""

    offset: int
    length: int
    is_padding: bool
    """Whether the zeros follow a complete record and merely pad the file to whole blocks.

    App Engine's writer pads files in this way.
    """
    is_all: bool
    """Whether the file consists entirely of zeros."""

    def __str__(self) -> str:
        what = "padding" if self.is_padding else ZEROS_ARE
        return f"at {self.offset:,}: {quantity(self.length, 'zero')} at the end: {what}"


def zeros_at_end(offset: int | None, file_len: int, *, has_records: bool, follow_damage: bool) -> ZerosAtEnd | None:
    """Returns the zeros from this offset to the end of a log, or `None` if there are none.

    Zeros that follow damage are treated as part of a record that never reached the disk, not as padding.
    """
    if offset is None:
        return None
    length = file_len - offset
    is_padding = has_records and not follow_damage and length < BLOCK_LEN and file_len % BLOCK_LEN == 0
    return ZerosAtEnd(offset, length, is_padding, is_all=offset == 0)


def zeros_inside(report: Report) -> list[SkippedRegion]:
    """Returns the skipped regions that consist of zeros and come before a record."""
    end = report.outcome.offset
    found: list[SkippedRegion] = []
    has_record = False
    for region in reversed(report.skipped):
        has_record = has_record or end - region.end_offset >= _HEADER_LEN_MIN
        end = region.offset
        if has_record and region.reason == Reason.ZERO_FILL:
            found.append(region)
    return found[::-1]


def zeros_of(report: Report) -> ZerosAtEnd | None:
    """Returns the zeros at the end of a log."""
    end = report.outcome
    follow_damage = end.zeros_offset is not None and any(
        region.severity == Severity.CORRUPTION and region.end_offset >= end.zeros_offset for region in report.skipped
    )
    return zeros_at_end(end.zeros_offset, end.offset, has_records=_has_records(report), follow_damage=follow_damage)


def _has_records(report: Report) -> bool:
    return report.record_count + report.salvaged_count > 0


def is_cut(report: Report) -> bool:
    """Checks whether the report lists only some of the skipped regions."""
    return sum(region.length for region in report.skipped) < report.skipped_len


def is_torn(report: Report) -> bool:
    """Checks whether a log ends with an incomplete record."""
    return report.outcome.kind == OutcomeKind.TORN_TAIL


def is_empty_run(report: Report) -> bool:
    """Checks whether a log is empty and named like a run's log."""
    # Reading can also stop at damage before the first record.
    return not report.skipped and dialect_of_empty_run(report.path or "", report.outcome.offset) is not None


def is_incomplete(report: Report) -> bool:
    """Checks whether a log is incomplete. `--strict` fails on such a log even if it isn't damaged."""
    zeros = zeros_of(report)
    has_zeros = zeros is not None and not zeros.is_padding
    return is_torn(report) or has_zeros or bool(zeros_inside(report)) or is_empty_run(report)


def has_no_dialect(report: Report) -> bool:
    """Checks whether a log is damaged and its dialect could not be detected.

    If so, the log may have been read in the wrong dialect.
    """
    # Header lengths differ between dialects, so a log read in the wrong dialect can seem to have a flipped bit in a
    # length. A flipped bit outside a length confirms the dialect.
    flips = (region.bit_flip for region in report.skipped)
    shows_flip = any(flip and flip.part != FragmentPart.LENGTH for flip in flips)
    return not (report.ok or _has_records(report) or report.dialect_known or shows_flip)


def report_of(reader: Reader, record_count: int) -> Report:
    """Returns the report for a reader, given the number of records it has returned.

    The report's `salvaged_count` is the number of records that LevelDB drops because they follow damage in their block.
    """
    left_out_count, len_by_reason = left_out(reader)
    return Report(
        reader.dialect,
        record_count,
        payload_len=0,
        file_len=None,
        outcome=reader.outcome,
        len_by_reason=len_by_reason,
        log_number=reader.log_number,
        salvaged_count=left_out_count,
        skipped=reader.skipped,
        other_log_number=reader.other_log_number,
        dialect_known=reader.dialect_known,
        path=reader.path,
    )


def judged(path: object, read: T) -> T:
    """Returns a log's `Report` or `Stat`, adjusted for the other files in its directory.

    If the file for a database's newest log still belongs entirely to another log, that isn't a fault, and
    `other_log_number` is set to `None`.
    """
    log: Any = read
    is_fault = log.other_log_number is None or not is_without_record(path, log.log_number)
    return read if is_fault else log._replace(other_log_number=None)


def format_of(report: Report) -> LogFormat:
    """Returns the format the log was read in."""
    return LogFormat(report.dialect, report.log_number, report.compression)


class Fold:
    """Combines the results for a source's files.

    Attributes:
        files: The files.
        failures: For each file that could not be read, a tuple of its name (or `Split`) and the exception.
        others: For each non-log file in a directory, a tuple of its name (or `Split`) and its format.
        damaged: The names of the damaged logs. Empty if the results have no reports.
        record_counts: The number of records read from each log that has a report.
        databases: The databases among the files, once `judge` has been called.
        exports: The Datastore or Firestore exports among the files, once `judge` has been called.
    """

    def __init__(self, files: Sequence[Input]) -> None:
        self.files = files
        self.failures: list[tuple[Any, Exception]] = []
        self.others: list[tuple[Any, str]] = []
        self.damaged: list[str] = []
        self.record_counts: dict[str, int] = {}
        self.databases: list[Database] = []
        self.exports: list[Export] = []

    def take(self, results: Iterable[Result[T]]) -> Iterator[Result[T]]:
        """Yields the results of `each` unchanged, after adding them to this object."""
        for file, found in results:
            name = file.source if isinstance(file.source, Split) else file.name
            report = getattr(found, "report", found)
            if isinstance(found, Exception):
                self.failures.append((name, found))
            elif isinstance(found, str):
                self.others.append((name, found))
            elif isinstance(report, Report) and isinstance(name, str):
                self.record_counts[name] = report.record_count
                self.damaged += [] if report.ok else [name]
            yield file, found

    def judge(self, *, has_all_records: bool = True) -> None:
        """Checks the databases and exports. Call this after adding all results.

        Directories that cannot be read are added to the failures.
        """
        not_whole = [*self.damaged, *(name for name, _ in self.others)]
        self.databases, failures = databases_of(self.files, not_whole)
        counts = self.record_counts if has_all_records else None
        self.exports, more_failures = exports_of(self.files, counts)
        self.failures += [*failures, *more_failures]
