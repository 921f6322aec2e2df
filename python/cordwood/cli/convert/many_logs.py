"""One table of many logs. Its first column says which log a row is from."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import cordwood
from cordwood._summary import LogSummary
from cordwood._tables.decoders import Row
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.schema import ColumnType
from cordwood._text import quantity
from cordwood.cli._messages import REPORTED_MAX, Failure, Status, complain, display_name
from cordwood.cli._options import reader_of
from cordwood.cli._output import new_file
from cordwood.cli._payloads import other_kind
from cordwood.cli._reopenable import changed_meanwhile, first_stream
from cordwood.cli._sources import ProgressBar, Tally, for_each_source, stdin_or_path
from cordwood.cli.convert.columns import (
    columns_found,
    columns_to_learn,
    origin_value,
    selection_of,
)
from cordwood.cli.convert.log_rows import LogRows, Read, report_damage
from cordwood.cli.convert.one_log import write_held_back, write_rows
from cordwood.cli.convert.writers import Table, open_table

if TYPE_CHECKING:
    from cordwood._tables.learner import Columns
    from cordwood.cli._selection import Selection

FILE = "__file__"
"""The column for the file of a log, in tables whose first column is the ID of a run: several files may have one ID."""


def convert_many(options: argparse.Namespace, form: str, known: dict[str, ColumnType] | None) -> Status:
    """Writes the table. Where the columns are not `known`, the logs are read twice: first to find them."""
    logs = Logs(options, form)
    if known is not None:
        return logs.write(form, known)
    if stream := first_stream(options.files):
        raise ValueError(
            f"{stream} can be read only once: convert it on its own, or together with other logs to NDJSON: --to ndjson"
        )
    found = columns_to_learn(options.payload, logs.selection, form, logs.origin)
    status = logs.find(found)
    if not logs.firsts:
        return status
    columns = columns_found(options.payload, found, form)
    written = logs.write(form, columns)
    # A log that could not be read is worse than a damaged one.
    return status or written


class _First(NamedTuple):
    """The findings of a first reading of a log."""

    end: int
    """How far the log was read: records appended since stay out of the table."""
    read: Read
    summary: LogSummary
    """A torn record at that end is damage in the middle to a reader that ends there."""


class Logs:
    """The logs of one table.

    Attributes:
        origin: The column that says which log a row is from.
        selection: Which rows and columns are wanted.
        firsts: The findings of a first reading, by the names of the logs that could be read.
    """

    def __init__(self, options: argparse.Namespace, form: str) -> None:
        self.origin: str = PAYLOADS[options.payload].origin
        self.firsts: dict[str, _First] = {}
        self._options = options
        self._form = form
        names_file = FILE in (options.columns or ())
        self._origins = [self.origin, FILE] if self.origin == "run_id" and names_file else [self.origin]
        self.selection: Selection = selection_of(options, self._origins)
        # The first log that was not read because there were enough rows.
        self._unread: str | None = None
        # Pairs of files with the same `run_id`, the earlier one first.
        self._twice: list[tuple[str, str]] = []

    def find(self, found: Columns) -> Status:
        """Reads the logs for their columns."""

        def find(name: str) -> Status:
            with reader_of(self._options, stdin_or_path(name), self._options.end) as reader:
                log_rows = self._rows_of(name, reader, found=found)
                for _ in log_rows:
                    pass
                self.firsts[name] = _First(reader.tell(), log_rows.read, log_rows.summary())
            return Status.CLEAN

        status = self._for_each(find).status
        if self.firsts:
            self.selection.check_names()
        return status

    def write(self, form: str, columns: dict[str, ColumnType]) -> Status:
        """Writes the table, limited to the findings of a first reading, if there was one."""
        options = self._options
        self.selection = selection_of(options, self._origins)
        with new_file(options.destination, options.files, overwrite=options.overwrite) as file:
            columns = self.selection.of_columns({**dict.fromkeys(self._origins, "text"), **columns}, "text")
            with contextlib.closing(open_table(options, form, file, columns)) as table:
                status = self.write_to(table)
                write_held_back(table, self.selection, options.sources[-1])
                if self._twice and self._origins == ["run_id"]:
                    _report_files_of_one_run(self._twice)
                if self._unread is not None:
                    self.selection.report_stop(self._unread, None, "row")
        return status

    def write_to(self, table: Table) -> Status:
        """Writes the rows of all logs, limited to those of a first reading, if there was one."""
        # The first file of each run.
        files: dict[str, str] = {}

        def write(name: str) -> Status:
            if (same := files.setdefault(origin_value(name, self.origin, self._form), name)) != name:
                self._twice.append((same, name))
            return self._write_log(table, name)

        if self.firsts:
            # An unreadable log has been reported.
            status = max(self._if_more_is_wanted(name, write) for name in self.firsts)
        else:
            tally = self._for_each(write)
            if not tally.log_count:
                raise Failure("no log was converted: there is no table")
            self.selection.check_names()
            status = tally.status
        return status

    def _write_log(self, table: Table, name: str) -> Status:
        first = self.firsts.get(name)
        with (
            reader_of(self._options, stdin_or_path(name), first.end if first else self._options.end) as reader,
            ProgressBar(name, prints_records=self._options.destination == "-") as progress,
        ):
            log_rows = self._rows_of(name, reader, table=table)
            position = self._options.start
            for rows in log_rows:
                write_rows(table, rows, name)
                progress(reader.tell() - position)
                position = reader.tell()
            if first and log_rows.read != first.read:
                raise changed_meanwhile(name, "rewritten")
            summary = first.summary if first else log_rows.summary()
            return max(log_rows.status, report_damage(self._options, log_rows, summary))

    def _for_each(self, work: Callable[[str], Status]) -> Tally:
        return for_each_source(
            self._options,
            lambda file: self._if_more_is_wanted(file.name, work),
            files=self._options.files,
            other_kind=other_kind(self._options, lambda: self.selection.is_full),
        )

    def _if_more_is_wanted(self, name: str, work: Callable[[str], Status]) -> Status:
        if not self.selection.is_full:
            return work(name)
        self._unread = self._unread or name
        return Status.CLEAN

    def _rows_of(self, name: str, reader: cordwood.Reader, **user: Any) -> LogRows:
        first: Row = {column: origin_value(name, column, self._form) for column in self._origins}
        return LogRows(self._options, name, reader, self.selection, first=first, **user)


def _report_files_of_one_run(pairs: list[tuple[str, str]]) -> None:
    """Reports files whose rows have the `run_id` of another file."""
    for first, second in pairs[:REPORTED_MAX]:
        complain(
            f"{display_name(first)} and {display_name(second)} have the same run_id, as parts of a run or copies do"
        )
    if len(pairs) > REPORTED_MAX:
        complain(f"{quantity(len(pairs) - REPORTED_MAX, 'more file')} with the run_id of another file")
    complain(f"the column {FILE}, if --columns names it, says which file a row is from")
