"""The table of logs. Of several logs, its first column says which log a row is from."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from cordwood._tables.columns import ROW_COUNT_MAX, Records
from cordwood._tables.decoders import Row
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.schema import ColumnType, MisfitError
from cordwood._text import display_name, quantity, source_name
from cordwood.cli._messages import REPORTED_MAX, Failure, Status, complain
from cordwood.cli._options import reader_of
from cordwood.cli._payloads import other_kind
from cordwood.cli._progress import ProgressBar
from cordwood.cli._reopenable import Reopenable, changed_meanwhile
from cordwood.cli._sources import Tally, for_each_source
from cordwood.cli._stdin import stdin_or_path
from cordwood.cli.convert.columns import columns_found, origin_value, selection_of
from cordwood.cli.convert.draft import Draft, draft_of, new_table
from cordwood.cli.convert.log_rows import LogRows, Read, report_damage
from cordwood.cli.convert.writers import Table

if TYPE_CHECKING:
    from cordwood.cli._selection import Selection

FILE = "__file__"
"""The column for the file of a log, in tables whose first column is the ID of a run: several files may have one ID."""


class _First(NamedTuple):
    """The findings of a first reading of a log."""

    end: int
    """How far the log was read: records appended since stay out of the table."""
    read: Read


class Logs:
    """The logs of one table.

    Attributes:
        origins: The columns that say which of several logs a row is from: the first of each row. One, and the column of
            the file if it is wanted.
        selection: Which rows and columns are wanted.
        firsts: The findings of a first reading, by the names of the logs that could be read.
    """

    def __init__(
        self, options: argparse.Namespace, form: str, *, is_one: bool = False, source: Reopenable | None = None
    ) -> None:
        """If `is_one`, the command line names a single log, which is `source` where it is read several times."""
        self.firsts: dict[str, _First] = {}
        self._options = options
        self._form = form
        self._source = source
        self._is_one = is_one
        origin = PAYLOADS[options.payload].origin
        names_file = origin == "run_id" and FILE in (options.columns or ())
        self.origins: list[str] = [] if is_one else [origin, FILE] if names_file else [origin]
        self.selection: Selection = selection_of(options, self.origins)
        # The first log that was not read because there were enough rows.
        self._unread: str | None = None
        self._row_count = 0
        self._is_export = False
        # The logs that were read.
        self._begun: dict[str, None] = {}

    def convert(self, known: dict[str, ColumnType] | None) -> Status:
        """Writes the table. Where the columns are not `known`, the logs are read twice: first to find them."""
        if known is not None:
            return self.write(known)
        options = self._options
        with draft_of(options, self.selection, self._form, self.origins) as draft:
            status = self.find(draft)
            if not (self.firsts or self._is_export):
                return status
            columns = columns_found(options.payload, draft.columns, self._form)
            if draft.is_table():
                self._report_run_ids()
                return status
        self.write(columns)
        return status

    def find(self, draft: Draft) -> Status:
        """Reads the logs for their columns."""
        tally = self._for_each(lambda name: self._read_log(name, draft=draft))
        status = tally.status
        # Of an export without an entity, there is a table without rows.
        self._is_export = not (self.firsts or tally.failed_count) and tally.is_export
        if self.firsts:
            self.selection.check_names()
        self._report_unread()
        return status

    def write(self, columns: dict[str, ColumnType]) -> Status:
        """Writes the table, limited to the findings of a first reading, if there was one."""
        options = self._options
        self.selection = selection_of(options, self.origins)
        columns = self.selection.of_columns({**dict.fromkeys(self.origins, "text"), **columns}, "text")
        with new_table(options, self._form, columns) as table:
            status = self.write_to(table)
            self._write_held_back(table)
            self._report_run_ids()
            if not self.firsts:
                self._report_unread()
        if self._row_count and not columns and self._form in ("csv", "parquet"):
            # Without a column, pyarrow writes 0 rows to Parquet, and CSV has no way to show a row.
            name, form = display_name(options.sources[0]), {"csv": "CSV", "parquet": "Parquet"}[self._form]
            complain(
                f"{name}: no row has a value, and without columns {form} cannot count rows: "
                f"{quantity(self._row_count, 'row')} left out; --to ndjson and --to arrow keep them"
            )
        return status

    def write_to(self, table: Table) -> Status:
        """Writes the rows of all logs, limited to those of a first reading, if there was one."""
        if self.firsts:
            # The first reading has reported all faults.
            for name in self.firsts:
                self._if_more_is_wanted(name, lambda name: self._read_log(name, table=table))
            return Status.CLEAN
        tally = self._for_each(lambda name: self._read_log(name, table=table))
        if not (tally.log_count or tally.is_export):
            raise Failure("no log was converted: there is no table")
        self.selection.check_names()
        return tally.status

    def _read_log(self, name: str, *, table: Table | None = None, draft: Draft | None = None) -> Status:
        options = self._options
        first = self.firsts.get(name)
        source = self._source.open() if self._source else stdin_or_path(name)
        with (
            reader_of(options, source, first.end if first else options.end) as reader,
            ProgressBar(name, prints_records=options.destination == "-") as progress,
            contextlib.ExitStack() as failing,
        ):
            if self._source and first:
                self._source.check_same(first.end)
            if draft:
                # The rows of a log that cannot be read to its end stay out of the table.
                failing.callback(draft.give_up)
            origins: Row = {column: origin_value(name, column, self._form) for column in self.origins}
            log_rows = LogRows(
                options,
                name,
                reader,
                self.selection,
                progress,
                draft=draft,
                table=table,
                first=origins,
                earlier=first and first.read,
            )
            for records in log_rows:
                if table:
                    self._row_count += _write_records(table, records, name)
            failing.pop_all()
            if first:
                if log_rows.read != first.read:
                    raise changed_meanwhile(name, "rewritten")
                return Status.CLEAN
            if draft:
                self.firsts[name] = _First(reader.tell(), log_rows.read)
            return max(log_rows.status, report_damage(options, log_rows, log_rows.summary()))

    def _report_unread(self) -> None:
        if self._unread is not None:
            self.selection.report_stop(self._unread, None, "row")

    def _report_run_ids(self) -> None:
        """Reports files whose rows have the `run_id` of another file, unless a column says which file a row is from."""
        if self.origins != ["run_id"]:
            return
        # The first file of each run.
        files: dict[str, str] = {}
        names = {name: origin_value(name, "run_id", self._form) for name in self.firsts or self._begun}
        pairs = [(same, name) for name, run in names.items() if (same := files.setdefault(run, name)) != name]
        if pairs:
            _report_files_of_one_run(pairs)

    def _write_held_back(self, table: Table) -> None:
        """Writes the empty rows that the selection has held back."""
        held_back = iter(self.selection.held_back())
        while rows := list(islice(held_back, ROW_COUNT_MAX)):
            _write_records(table, Records(rows), self._options.sources[-1])

    def _for_each(self, work: Callable[[str], Status]) -> Tally:
        """Does the work for each log. The error of the only log is raised, that of one of several is reported."""
        options = self._options
        if self._is_one:
            tally = Tally(options.sources, options.files)
            tally.count(work(options.sources[0]))
            return tally
        return for_each_source(
            options,
            lambda file: self._if_more_is_wanted(file.name, work),
            files=options.files,
            other_kind=other_kind(options, lambda: self.selection.is_full),
        )

    def _if_more_is_wanted(self, name: str, work: Callable[[str], Status]) -> Status:
        if not self.selection.is_full:
            self._begun[name] = None
            return work(name)
        self._unread = self._unread or name
        return Status.CLEAN


def _report_files_of_one_run(pairs: list[tuple[str, str]]) -> None:
    """Reports files whose rows have the `run_id` of another file."""
    for first, second in pairs[:REPORTED_MAX]:
        complain(
            f"{display_name(first)} and {display_name(second)} have the same run_id, as parts of a run or copies do"
        )
    if len(pairs) > REPORTED_MAX:
        complain(f"{quantity(len(pairs) - REPORTED_MAX, 'more file')} with the run_id of another file")
    complain(f"the column {FILE}, if --columns names it, says which file a row is from")


def _write_records(table: Table, records: Records, source: str) -> int:
    """Writes records or rows of the log `source`. Returns the number of rows."""
    try:
        return table.write(records)
    except Failure as error:
        raise Failure(f"{source_name(source)}: {error}") from error
    except MisfitError as error:
        raise changed_meanwhile(source_name(source), "rewritten") from error
