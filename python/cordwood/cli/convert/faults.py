"""Reports the faults that `convert` finds in a log's records."""

from __future__ import annotations

import argparse

from cordwood import Record, Report
from cordwood._summary import is_incomplete
from cordwood._tables.payloads import Payload
from cordwood._tables.table import Fault
from cordwood._text import display_name, quantity
from cordwood.cli._messages import REPORTED_MAX, Status, complain
from cordwood.cli._payloads import LOST_EDITS, UNKNOWN_EDITS, other_payload, report_engine
from cordwood.cli._reports import report_left_out
from cordwood.types import PayloadReason

_WORDS = {
    "record": ("record", "the record at offset {} is left out", "left out in all"),
    "row": ("row", "a row of the record at offset {} is left out", "left out in all"),
    "value": ("value", "a value of the record at offset {} is left out", "left out in all"),
    "rest": ("fault", "the record at offset {} is read up to a fault", "in all"),
}
"""For each part that may be missing: its noun, the message about one of them, and the words after the total."""


class Faults:
    """The faults of a log. All of them are counted, and the first few reported.

    Attributes:
        dialect: The dialect of the log.
    """

    def __init__(self, options: argparse.Namespace, source: str, payload: Payload, *, is_silent: bool) -> None:
        """Creates an object with no faults yet. Only the first reading of a log reports its faults."""
        self.dialect: str | None = None
        self._options = options
        self._source = source
        self._name = display_name(source)
        self._payload = payload
        self._is_silent = is_silent
        self._counts = dict.fromkeys(_WORDS, 0)
        self._reported_max = dict.fromkeys(_WORDS, REPORTED_MAX)
        self._unknown_count = 0
        # The offset of the first record left out, and whether the log contains records of another kind.
        self._first_left_out: int | None = None
        self._is_other_kind = False

    def __call__(self, fault: Fault) -> None:
        """Counts a fault, and reports it if it is one of the first few."""
        part, record, error = fault
        _, sentence, _ = _WORDS[part]
        self._counts[part] += 1
        self._unknown_count += error.reason == PayloadReason.UNKNOWN_TAG
        what = str(error)
        if part == "record" and self._first_left_out is None:
            self._first_left_out = record.offset
            advice = None if self._is_silent else other_payload(record.data, self._payload, self.dialect)
            if advice:
                what = f"it is {advice}"
                self._is_other_kind = True
        if not self._is_silent and self._counts[part] <= self._reported_max[part]:
            complain(f"{self._name}: {sentence.format(record.offset)}: {what}")
        if self._is_other_kind:
            self._reported_max["record"] = 1

    def start(self, first: Record) -> None:
        """Reports a log whose records are of another kind, because all of them may be skipped."""
        if self._is_silent or not self._payload.is_part or self._first_left_out == first.offset:
            return
        if advice := other_payload(first.data, self._payload, self.dialect):
            complain(f"{self._name}: the record at offset {first.offset} is {advice}")
            self._is_other_kind = True

    def note(self, text: str) -> None:
        """Reports that it is uncertain which engine wrote the log."""
        if not self._is_silent:
            report_engine(self._source, text)

    def end(self, record_count: int) -> None:
        """Reports the total number of faults, unless each of them was reported."""
        for part, count in self._counts.items():
            word, _, in_all = _WORDS[part]
            # If all records are of another kind, this has already been reported.
            if count > self._reported_max[part] and not (self._is_other_kind and count == record_count):
                complain(f"{self._name}: {quantity(count, word)} {in_all}")

    def judge(self, report: Report) -> Status:
        """Reports the log's skipped regions, and the option that would return more records."""
        status = report_left_out(self._source, report, self._options)
        own = Status.DAMAGE if self._is_other_kind or any(self._counts.values()) else Status.CLEAN
        is_lost = max(status, own) == Status.DAMAGE and not self._is_other_kind
        if self._payload.name == "live-files" and is_lost:
            are_all_unknown = self._unknown_count == sum(self._counts.values())
            complain(f"{self._name}: {UNKNOWN_EDITS if report.ok and are_all_unknown else LOST_EDITS}")
        strict = Status.DAMAGE if self._options.strict and is_incomplete(report) else Status.CLEAN
        return max(status, own, strict)
