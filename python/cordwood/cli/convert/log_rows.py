"""The rows of one log, many at a time."""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import cordwood
from cordwood._native import batch_crc
from cordwood._summary import LogSummary, summary_of
from cordwood._tables.columns import ROW_COUNT_MAX, HasFirstError, Records, rows_together
from cordwood._tables.decoders import Log, Row
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.schema import TooManyColumnsError
from cordwood._text import display_name, quantity
from cordwood.cli._messages import REPORTED_MAX, Failure, Status, complain
from cordwood.cli._payloads import LOST_EDITS, UNKNOWN_EDITS, other_payload, report_engine
from cordwood.cli._progress import ProgressBar
from cordwood.cli._reports import report_left_out
from cordwood.cli._selection import Selection
from cordwood.errors import PayloadError
from cordwood.types import PayloadReason

if TYPE_CHECKING:
    from cordwood.cli.convert.draft import Draft
    from cordwood.cli.convert.writers import Table


# A batch is made from this many bytes of records, or from a single longer one.
BATCH_LEN = 4 << 20

# Reads ahead while the columns of a batch are made, and another batch is written.
_THREADS = 2


class Read(NamedTuple):
    """The results of reading a log."""

    record_count: int
    """How many records."""
    crc: int
    """The CRC of their offsets and their data."""


_IN_ALL = {"record": "left out in all", "value": "left out in all", "fault": "in all"}
"""The faults that are counted, and the words after the total of each: a record that is left out, a value that is left
out of its row, and a fault up to which a record was read."""


class LogRows:
    """The rows of a log, many at a time. Records that are not of the form are left out, and reported.

    Attributes:
        source: The name of the log.
        reader: Where the records come from.
        selection: How many rows are wanted, and which of their columns.
        read: The results, known after the last row.
        end: Where reading stopped because there were enough rows; `None` if it did not.
        is_other_kind: Whether it was reported that the log contains another kind.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        source: str,
        reader: cordwood.Reader,
        selection: Selection,
        progress: ProgressBar,
        *,
        draft: Draft | None = None,
        table: Table | None = None,
        first: Row | None = None,
        earlier: Read | None = None,
    ) -> None:
        """In a first reading, `draft` learns the columns of all rows; otherwise the rows are for `table`.

        Each row begins with `first`. Only the first reading of a log, which may be the only one, reports its faults;
        `earlier` are its results in the second.
        """
        self.source = source
        self._name = display_name(source)
        self._payload = PAYLOADS[options.payload]
        self._first = first or {}
        self.reader = reader
        self.selection = selection
        self.read: Read = Read(0, 0)
        self.end: int | None = None
        self._rows = self._payload.rows_of(
            Log(
                reader.dialect,
                functools.partial(report_engine, source),
                self._leave_out_value,
                self._cut,
                on_corruption=options.on_corruption,
                path=reader.path,
            )
        )
        self._progress = progress
        self._position: int = options.start
        self._draft = draft
        user = draft.columns if draft else table
        self._takes_records = bool(user and user.takes_records)
        self._earlier = earlier
        self._is_reporting = earlier is None
        # Otherwise, rows are passed on unchanged.
        self._is_selecting = bool(self._first or selection.is_active)
        self._left_out = dict.fromkeys(_IN_ALL, 0)
        self._unknown_count = 0
        self.is_other_kind: bool = False
        self._reported_max = dict.fromkeys(_IN_ALL, REPORTED_MAX)

    def summary(self) -> LogSummary:
        """The findings in the log: after the last row."""
        return summary_of(self.reader, self.read.record_count, path=self.source)

    @property
    def status(self) -> Status:
        """Whether a record was left out."""
        return Status.DAMAGE if self.is_other_kind or any(self._left_out.values()) else Status.CLEAN

    def __iter__(self) -> Iterator[Records]:
        """Rows, or records that are not decoded yet."""
        for records in self._records() if self._takes_records else rows_together(self._rows_of_records(), BATCH_LEN):
            if self._draft:
                count = self._learn(self._draft, records)
                if self._takes_records and self.selection.count_rows(count):
                    self.end = records.record(len(records.source) - 1).end_offset
            yield records
            position, self._position = self._position, self.reader.tell()
            self._progress(self._position - position)
        if self._is_reporting:
            self._report_end()

    def _learn(self, draft: Draft, records: Records) -> int:
        try:
            return draft.learn(records)
        except HasFirstError:
            raise _has_column(*self._first) from None
        except TooManyColumnsError as error:
            raise _no_columns(error) from error

    def _records(self) -> Iterator[Records]:
        for source in self._sources():
            if len(source) and not self.read.record_count and self._payload.is_part:
                first = Records(source).record(0)
                with contextlib.suppress(PayloadError):
                    self._payload.rows(Log(self.reader.dialect)).of_record(first)
                    self._report_other_kind(first)
            self.read = Read(self.read.record_count + len(source), batch_crc(source, self.read.crc))
            records = Records(source, self._first, self._leave_out, self._leave_out_value)
            self._look_for_names(records)
            yield records

    def _sources(self) -> Iterator[cordwood.RecordBatch | list[cordwood.Record]]:
        """The records, many at a time; with a limit, no more of them than are needed."""
        if not self.selection.has_limit:
            yield from self.reader.record_batches(target_len=BATCH_LEN, threads=_THREADS)
            return
        records = self.reader.records()
        if self._earlier:
            records = islice(records, self._earlier.record_count)
        while some := list(islice(records, min(self.selection.row_count_left, ROW_COUNT_MAX))):
            yield some

    def _look_for_names(self, records: Records) -> None:
        """Looks for the wanted columns in rows, as long as one was in no row."""
        if self._draft and self.selection.lacks_names:
            for index in range(len(records.source)):
                with contextlib.suppress(PayloadError):
                    for row in self._payload.rows(Log(None)).of_record(records.record(index)):
                        self.selection.look_for_names({**self._first, **row})
                if not self.selection.lacks_names:
                    break

    def _rows_of_records(self) -> Iterator[tuple[int, int, Iterable[Row]]]:
        """The offset and the length of each record, and its rows; then those that are complete only at the end."""
        count = crc = 0
        for record in self.reader.records():
            count += 1
            crc = cordwood.crc32c(record.data, cordwood.crc32c(record.offset.to_bytes(8, "little"), crc))
            try:
                rows = self._rows.of_record(record)
            except PayloadError as error:
                self._leave_out(record, error)
                continue
            if count == 1:
                self._report_other_kind(record)
            yield record.offset, len(record.data), self._selected(rows) if self._is_selecting else rows
            if self._is_selecting and self.selection.is_full:
                self.end = record.end_offset
                break
        self.read = Read(count, crc)
        if self.end is None:
            rows = self._rows.at_end()
            yield self.reader.tell(), 0, self._selected(rows) if self._is_selecting else rows

    def _report_end(self) -> None:
        if self.end is not None:
            self.selection.report_stop(self.source, self.end, "row")
        for noun, count in self._left_out.items():
            # If all records are of another kind, one line has said so.
            if count > self._reported_max[noun] and not (self.is_other_kind and count == self.read.record_count):
                complain(f"{self._name}: {quantity(count, noun)} {_IN_ALL[noun]}")

    def _selected(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The wanted rows, up to the limit."""
        selection, first = self.selection, self._first
        for row in rows:
            if first:
                for name in first:
                    if name in row:
                        raise _has_column(name)
                row = {**first, **row}  # noqa: PLW2901 - the same, with its first columns
            wanted = selection.take(row) if selection.is_active else row
            if wanted is not None:
                yield from selection.held_back()
                yield wanted
            if selection.is_full:
                return

    def _report_other_kind(self, first: cordwood.Record) -> None:
        """Reports a log of another kind, all of whose records might be skipped."""
        if not self._is_reporting or not self._payload.is_part:
            return
        if advice := other_payload(first.data, self._payload, self.reader.dialect):
            complain(f"{self._name}: the record at offset {first.offset} is {advice}")
            self.is_other_kind = True

    @property
    def are_all_unknown(self) -> bool:
        """Whether all records that were left out have a tag that is not known."""
        return self._unknown_count == sum(self._left_out.values())

    def _leave_out(self, record: cordwood.Record, error: PayloadError) -> None:
        self._unknown_count += error.reason == PayloadReason.UNKNOWN_TAG
        is_first = self._is_reporting and not self._left_out["record"]
        advice = other_payload(record.data, self._payload, self.reader.dialect) if is_first else None
        self._report(
            "record", f"the record at offset {record.offset} is left out: {f'it is {advice}' if advice else error}"
        )
        if advice:
            self._reported_max["record"] = 1
            self.is_other_kind = True

    def _leave_out_value(self, record: cordwood.Record, error: PayloadError) -> None:
        self._report("value", f"a value of the record at offset {record.offset} is left out: {error}")

    def _cut(self, record: cordwood.Record, error: PayloadError) -> None:
        self._report("fault", f"the record at offset {record.offset} is read up to a fault: {error}")

    def _report(self, noun: str, message: str) -> None:
        self._left_out[noun] += 1
        if self._is_reporting and self._left_out[noun] <= self._reported_max[noun]:
            complain(f"{self._name}: {message}")


def _has_column(name: str) -> Failure:
    return Failure(f"the logs have a column {name} of their own: convert each on its own")


def _no_columns(error: TooManyColumnsError) -> Failure:
    return Failure(f"{error}; --to ndjson has no columns")


def report_damage(options: argparse.Namespace, log_rows: LogRows, summary: LogSummary) -> Status:
    """Reports the skipped regions of a log, and the option that would return more of it."""
    status = report_left_out(log_rows.source, summary, options)
    is_lost = max(status, log_rows.status) == Status.DAMAGE and not log_rows.is_other_kind
    if options.payload == "live-files" and is_lost:
        why = UNKNOWN_EDITS if summary.ok and log_rows.are_all_unknown else LOST_EDITS
        complain(f"{display_name(log_rows.source)}: {why}")
    return Status.DAMAGE if options.strict and summary.is_incomplete else status
