"""Converts logs to the rows of one table, one batch of records at a time."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple, cast

from cordwood import Reader, Record
from cordwood._inputs.input import Input
from cordwood._summary import report_of
from cordwood._tables.payloads import PAYLOADS, origin_of
from cordwood._tables.schema import ColumnType, HasFirstError, MisfitError, TooManyColumnsError
from cordwood._tables.table import COLUMN_COUNT_MAX, Report, Table
from cordwood._text import display_name, escaped, quantity
from cordwood.cli._messages import REPORTED_MAX, Failure, Status, complain
from cordwood.cli._new_files import new_file
from cordwood.cli._options import reader_of
from cordwood.cli._payloads import other_kind
from cordwood.cli._progress import ProgressBar
from cordwood.cli._reopenable import Reopenable, changed_meanwhile, is_stream
from cordwood.cli._selection import no_column, report_stop
from cordwood.cli._sources import Tally, for_each_source
from cordwood.cli._stdin import stdin_or_path
from cordwood.cli.convert.faults import Faults
from cordwood.cli.convert.sinks import BINARY_FORMATS, Sink, open_sink

FILE = "__file__"
"""The file name column, in tables that start with a run's ID. Several files may have the same ID."""

_BATCH_LEN = 4 << 20
"""About this many bytes of records are converted to rows at a time."""

_THREADS = 2
"""The number of threads that read ahead while one batch is turned into rows and another is written."""


class _First(NamedTuple):
    """The results of a log's first reading."""

    end: int
    """The offset where the first reading ended. Records appended later are not in the table."""
    record_count: int


class Target:
    """A table and its sink, which is opened once the table has output."""

    def __init__(self, table: Table, new_sink: Callable[[], Sink]) -> None:
        self.table = table
        self._new_sink = new_sink
        self._sink: Sink | None = None

    def read(self, reader: Reader, report: Report, **options: Any) -> Iterator[int]:
        """Adds the rows of a log. Takes the arguments of `Table.read`, and yields the numbers of records read."""
        for count, made in self.table.read(reader, report, **options):
            self.write(made)
            yield count

    def write(self, made: Iterable[Any] = ()) -> None:
        """Writes the output of a table."""
        for some in made:
            self.sink().write(some)

    def sink(self) -> Sink:
        """Returns the sink, opening it if necessary."""
        if self._sink is None:
            self._sink = self._new_sink()
        return self._sink

    def close(self) -> None:
        """Closes the sink."""
        if self._sink is not None:
            self._sink.close()


class Logs:
    """The logs of a table.

    Attributes:
        origins: The first columns of each row, which show which of several logs the row comes from. There is one, or
            two if the column with the file name is also requested.
        firsts: The result of the first reading of each log that could be read to its end.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        form: str,
        *,
        is_one: bool = False,
        source: Reopenable | None = None,
        opened: tuple[Reader, list[Record]] | None = None,
    ) -> None:
        """With `is_one`, the command line names a single log.

        If this log is read several times, it is passed as `source`. Otherwise, it may be passed as `opened`: a reader
        and the records already read from it.
        """
        self.firsts: dict[str, _First] = {}
        self._options = options
        self._form = form
        self._source = source
        self._opened = opened
        self._is_one = is_one
        self._payload = PAYLOADS[options.payload]
        origin = self._payload.origin
        names_file = origin == "run_id" and FILE in (options.columns or ())
        self.origins: list[str] = [] if is_one else [origin, FILE] if names_file else [origin]
        # All logs whose first reading has started.
        self._started = set[str]()

    def convert(self) -> Status:
        """Writes the table. If later rows need columns that were not known at first, the table is written again."""
        known = self._known_columns()
        if known is not None:
            with self.new_target(known) as target:
                target.sink()
                tally = self.read_all(target)
                if not (tally.log_count or tally.is_export):
                    raise Failure("no log was converted: there is no table")
                self._end(target)
            return tally.status
        status = Status.CLEAN
        columns: dict[str, ColumnType] | None = None
        with contextlib.suppress(_AgainError), self.new_target(None) as target:
            tally = self.read_all(target)
            status = tally.status
            # An export without entities produces a table without rows.
            if not (self.firsts or (tally.is_export and not tally.failed_count)):
                raise _AgainError
            self._check_names(target.table)
            columns = self.columns_of(target.table)
            # The table also contains rows of the logs that could not be read to their end.
            if not (target.table.is_open and self._started <= self.firsts.keys()):
                raise _AgainError
            self._end(target)
            return status
        if columns is not None:
            with self.new_target(columns) as target:
                target.sink()
                self.read_again(target)
                self._end(target)
        return status

    def new_table(
        self, columns: dict[str, ColumnType] | None, *, form: str | None = None, opens_early: bool = True
    ) -> Table:
        """Returns a table with these columns. If `columns` is `None`, the table determines its columns."""
        options = self._options
        form = form or self._form
        return Table(
            self._payload,
            "arrow" if form in BINARY_FORMATS else cast("Any", form),
            columns,
            first=self.origins,
            wanted=options.columns,
            limit=options.limit,
            opens_early=opens_early,
            bytes_as=options.encoding or "object",
            escapes_formulas=options.escape_formulas,
        )

    @contextlib.contextmanager
    def new_target(self, columns: dict[str, ColumnType] | None) -> Generator[Target]:
        """Opens the table at the destination. The file gets its name once it is complete."""
        options = self._options
        # Output already written to a pipe cannot be removed.
        table = self.new_table(columns, opens_early=not is_stream(options.destination))
        with contextlib.ExitStack() as stack:

            def new_sink() -> Sink:
                file = stack.enter_context(new_file(options.destination, options.files, overwrite=options.overwrite))
                return open_sink(self._form, file, table, is_stream=options.destination == "-")

            with contextlib.closing(Target(table, new_sink)) as target:
                yield target

    def read_all(self, target: Target) -> Tally:
        """Reads all logs."""
        options = self._options
        unread: list[str] = []

        def read_if_more_is_wanted(file: Input) -> Status:
            if target.table.is_full:
                unread.append(file.name)
                return Status.CLEAN
            return self._read(file.name, target)

        if self._is_one:
            tally = Tally(options.sources, options.files)
            tally.count(self._read(options.sources[0], target))
        else:
            other = other_kind(options, lambda: target.table.is_full)
            tally = for_each_source(options, read_if_more_is_wanted, files=options.files, other_kind=other)
        # If reading stopped within a log, this has already been reported.
        if unread and target.table.stop_offset is None:
            report_stop(unread[0], None, options.limit, "row")
        # If no option names a kind, logs of another kind are counted as damaged.
        tally.damaged_count += options.is_auto and bool(tally.other_kinds)
        return tally

    def read_again(self, target: Target) -> None:
        """Rereads each log that could be read to its end, up to the same end, but does not report faults again."""
        for name, first in self.firsts.items():
            if not target.table.is_full:
                self._read(name, target, first)

    def columns_of(self, table: Table) -> dict[str, ColumnType]:
        """Returns the columns that a table has determined, and reports those that fit no type but JSON."""
        # In CSV, nested values are always JSON.
        is_nested = self._form in BINARY_FORMATS
        columns = table.columns
        conflicts, overfull = table.conflicts
        for name, types in conflicts.items():
            if is_nested or name in columns:
                complain(
                    f"the column {escaped(name)} has values of several types, and is stored as JSON: {', '.join(types)}"
                )
        for name in overfull if is_nested else ():
            complain(f"the column {escaped(name)} has too many fields, and is stored as JSON")
        return columns

    def _known_columns(self) -> dict[str, ColumnType] | None:
        """Returns the columns if they are known before a log is read, or `None` if logs must be read first.

        Raises:
            ValueError: A requested column is not among the known ones.
        """
        options, payload = self._options, self._payload
        known = payload.known_columns(options.on_corruption)
        if known is None:
            return {} if self._form == "ndjson" else None
        if self._is_one and payload.origin in (options.columns or ()) and payload.origin not in known:
            raise ValueError(
                f"a table of one log has no column {payload.origin}: name several logs, or their directory"
            )
        columns = {**dict.fromkeys(self.origins, "text"), **known}
        for name in options.columns or ():
            if name not in columns:
                raise no_column(name, list(columns))
        return columns if options.columns is None else {name: columns[name] for name in options.columns}

    def _read(self, name: str, target: Target, first: _First | None = None) -> Status:
        """Reads a log. With `first`, reads it again up to the same end."""
        options = self._options
        faults = Faults(options, name, self._payload, is_silent=first is not None)
        record_count, position = 0, options.start
        self._started.add(name)
        with (
            self._opened[0] if self._opened else self._reader(name, first) as reader,
            ProgressBar(name, prints_records=options.destination == "-") as progress,
        ):
            if self._source and first:
                self._source.check_same(first.end)
            faults.dialect = reader.dialect
            rows = target.read(
                reader,
                faults,
                starts=faults.start,
                notes=faults.note,
                taken=self._opened[1] if self._opened else [],
                first={column: self._origin(name, column) for column in self.origins},
                on_corruption=options.on_corruption,
                target_len=_BATCH_LEN,
                threads=_THREADS,
            )
            try:
                for count in rows:
                    record_count += count
                    position, before = reader.tell(), position
                    progress(position - before)
            except HasFirstError as error:
                raise Failure(f"the logs have a column {error} of their own: convert each on its own") from None
            except TooManyColumnsError:
                raise Failure(f"more than {COLUMN_COUNT_MAX:,} columns; --to ndjson has no columns") from None
            except MisfitError as error:
                raise changed_meanwhile(name, "rewritten") from error
            if first:
                if record_count != first.record_count:
                    raise changed_meanwhile(name, "rewritten")
                return Status.CLEAN
            self.firsts[name] = _First(reader.tell(), record_count)
            if target.table.stop_offset is not None:
                report_stop(name, target.table.stop_offset, options.limit, "row")
            faults.end(record_count)
            return faults.judge(report_of(reader, record_count))

    def _reader(self, name: str, first: _First | None) -> Reader:
        source = self._source.open() if self._source else stdin_or_path(name)
        return reader_of(self._options, source, first.end if first else self._options.end)

    def _origin(self, name: str, column: str) -> str:
        return "<stdin>" if name == "-" else origin_of(name, column)

    def _check_names(self, table: Table) -> None:
        """Checks that each requested column appeared in at least one row. Call this after the last row.

        Raises:
            ValueError: There were rows, but a requested column is missing from all of them.
        """
        missing, seen = table.missing
        if missing and table.row_count:
            raise no_column(missing[0], seen)

    def _end(self, target: Target) -> None:
        """Writes the rest of a table, and reports problems with it."""
        table = target.table
        if self._form == "ndjson" and self._payload.columns is None:
            self._check_names(table)
        target.write(table.rest())
        target.sink()
        self._report_run_ids()
        if table.row_count and not table.columns and self._form in ("csv", "parquet"):
            # Without columns, pyarrow writes no rows to Parquet, and CSV cannot show any.
            name = display_name(self._options.sources[0])
            form = {"csv": "CSV", "parquet": "Parquet"}[self._form]
            complain(
                f"{name}: no row has a value, and without columns {form} cannot count rows: "
                f"{quantity(table.row_count, 'row')} left out; --to ndjson and --to arrow keep them"
            )

    def _report_run_ids(self) -> None:
        """Reports files that share a `run_id`, unless a column shows each row's file."""
        if self.origins != ["run_id"]:
            return
        # The first file of each run.
        files: dict[str, str] = {}
        names = {name: self._origin(name, "run_id") for name in self.firsts}
        pairs = [(same, name) for name, run in names.items() if (same := files.setdefault(run, name)) != name]
        for first, second in pairs[:REPORTED_MAX]:
            complain(
                f"{display_name(first)} and {display_name(second)} have the same run_id, as parts of a run or copies do"
            )
        if len(pairs) > REPORTED_MAX:
            complain(f"{quantity(len(pairs) - REPORTED_MAX, 'more file')} with the run_id of another file")
        if pairs:
            complain(f"the column {FILE}, if --columns names it, says which file a row is from")


class _AgainError(Exception):
    """The output is not usable, so the file is removed."""
