"""One table of many logs. Its first column says which log a row is from."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cordwood._tables.decoders import Row
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.schema import ColumnType
from cordwood._text import display_name, quantity
from cordwood.cli._messages import REPORTED_MAX, Failure, Status, complain
from cordwood.cli._options import reader_of
from cordwood.cli._payloads import other_kind
from cordwood.cli._progress import ProgressBar
from cordwood.cli._reopenable import changed_meanwhile, first_stream
from cordwood.cli._sources import Tally, for_each_source
from cordwood.cli._stdin import stdin_or_path
from cordwood.cli.convert.columns import columns_found, origin_value, selection_of
from cordwood.cli.convert.draft import Draft, draft_of, new_table
from cordwood.cli.convert.log_rows import LogRows, Read, report_damage
from cordwood.cli.convert.one_log import write_held_back, write_records
from cordwood.cli.convert.writers import Table

if TYPE_CHECKING:
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
    with draft_of(options, logs.selection, form, logs.origins) as draft:
        status = logs.find(draft)
        if not logs.firsts:
            return status
        columns = columns_found(options.payload, draft.columns, form)
        if draft.is_table():
            logs.report_run_ids()
            return status
    logs.write(form, columns)
    return status


class _First(NamedTuple):
    """The findings of a first reading of a log."""

    end: int
    """How far the log was read: records appended since stay out of the table."""
    read: Read


class Logs:
    """The logs of one table.

    Attributes:
        origin: The column that says which log a row is from.
        origins: That column, and the column of the file if it is wanted: the first of each row.
        selection: Which rows and columns are wanted.
        firsts: The findings of a first reading, by the names of the logs that could be read.
    """

    def __init__(self, options: argparse.Namespace, form: str) -> None:
        self.origin: str = PAYLOADS[options.payload].origin
        self.firsts: dict[str, _First] = {}
        self._options = options
        self._form = form
        names_file = FILE in (options.columns or ())
        self.origins: list[str] = [self.origin, FILE] if self.origin == "run_id" and names_file else [self.origin]
        self.selection: Selection = selection_of(options, self.origins)
        # The first log that was not read because there were enough rows.
        self._unread: str | None = None
        # The logs that were read.
        self._begun: dict[str, None] = {}

    def find(self, draft: Draft) -> Status:
        """Reads the logs for their columns."""
        status = self._for_each(lambda name: self._read_log(name, draft=draft)).status
        if self.firsts:
            self.selection.check_names()
        self._report_unread()
        return status

    def write(self, form: str, columns: dict[str, ColumnType]) -> Status:
        """Writes the table, limited to the findings of a first reading, if there was one."""
        options = self._options
        self.selection = selection_of(options, self.origins)
        columns = self.selection.of_columns({**dict.fromkeys(self.origins, "text"), **columns}, "text")
        with new_table(options, form, columns) as table:
            status = self.write_to(table)
            write_held_back(table, self.selection, options.sources[-1])
            self.report_run_ids()
            if not self.firsts:
                self._report_unread()
        return status

    def write_to(self, table: Table) -> Status:
        """Writes the rows of all logs, limited to those of a first reading, if there was one."""
        if self.firsts:
            # The first reading has reported all faults.
            for name in self.firsts:
                self._if_more_is_wanted(name, lambda name: self._read_log(name, table=table))
            return Status.CLEAN
        tally = self._for_each(lambda name: self._read_log(name, table=table))
        if not tally.log_count:
            raise Failure("no log was converted: there is no table")
        self.selection.check_names()
        return tally.status

    def _read_log(self, name: str, *, table: Table | None = None, draft: Draft | None = None) -> Status:
        first = self.firsts.get(name)
        with (
            reader_of(self._options, stdin_or_path(name), first.end if first else self._options.end) as reader,
            ProgressBar(name, prints_records=self._options.destination == "-") as progress,
            contextlib.ExitStack() as failing,
        ):
            if draft:
                # The rows of a log that cannot be read to its end stay out of the table.
                failing.callback(draft.give_up)
            origins: Row = {column: origin_value(name, column, self._form) for column in self.origins}
            log_rows = LogRows(
                self._options,
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
                    write_records(table, records, name)
            failing.pop_all()
            if first:
                if log_rows.read != first.read:
                    raise changed_meanwhile(name, "rewritten")
                return Status.CLEAN
            if draft:
                self.firsts[name] = _First(reader.tell(), log_rows.read)
            return max(log_rows.status, report_damage(self._options, log_rows, log_rows.summary()))

    def _report_unread(self) -> None:
        if self._unread is not None:
            self.selection.report_stop(self._unread, None, "row")

    def report_run_ids(self) -> None:
        """Reports files whose rows have the `run_id` of another file, unless a column says which file a row is from."""
        if self.origins != ["run_id"]:
            return
        # The first file of each run.
        files: dict[str, str] = {}
        names = {name: origin_value(name, self.origin, self._form) for name in self.firsts or self._begun}
        pairs = [(same, name) for name, run in names.items() if (same := files.setdefault(run, name)) != name]
        if pairs:
            _report_files_of_one_run(pairs)

    def _for_each(self, work: Callable[[str], Status]) -> Tally:
        return for_each_source(
            self._options,
            lambda file: self._if_more_is_wanted(file.name, work),
            files=self._options.files,
            other_kind=other_kind(self._options, lambda: self.selection.is_full),
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
