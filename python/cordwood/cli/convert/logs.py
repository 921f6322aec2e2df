"""Converts logs to the rows of one table, one batch of records at a time, and writes the table."""

from __future__ import annotations

import argparse
import contextlib
from collections import deque
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

from cordwood import Reader, Record, Report
from cordwood._inputs.input import Input
from cordwood._optional import imported
from cordwood._summary import is_incomplete, report_of
from cordwood._tables.payloads import PAYLOADS, Payload, origin_of
from cordwood._tables.schema import ColumnType, HasFirstError, MisfitError, TooManyColumnsError, utf8
from cordwood._tables.table import COLUMN_COUNT_MAX, Fault, OnFault, Table
from cordwood._text import display_name, escaped, quantity, source_name
from cordwood.cli._messages import REPORTED_MAX, Failure, Status, complain
from cordwood.cli._options import reader_of
from cordwood.cli._output import Output, new_file
from cordwood.cli._payloads import LOST_EDITS, UNKNOWN_EDITS, other_kind, other_payload, report_engine
from cordwood.cli._reports import report_left_out
from cordwood.cli._selection import no_column, report_stop
from cordwood.cli._sources import ProgressBar, Reopenable, Tally, changed_meanwhile, for_each_source, is_stream
from cordwood.cli._stdin import stdin_or_path
from cordwood.types import PayloadReason

FILE = "__file__"
"""The column for file names in tables whose rows start with a run's ID. Several files may have the same ID."""

_BATCH_LEN = 4 << 20
"""Records are converted to rows in batches of about this many bytes."""

_THREADS = 2
"""The number of threads that read ahead while one batch is turned into rows and another is written."""


class _First(NamedTuple):
    """The results of reading a log for the first time."""

    end: int
    """The offset where reading ended. Records appended later are not in the table."""
    record_count: int


class Logs:
    """The logs that make up a table.

    Attributes:
        origins: The leading columns, which identify a row's log if there are several logs. There is one such column, or
            two if the column with the file name is also requested.
        firsts: The results of the first read of each log, by name. Logs that could not be read completely are not
            included.
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
        """Set `is_one` if the command line names a single log.

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
        # All logs for which reading has started.
        self._started = set[str]()

    def convert(self) -> Status:
        """Writes the table. If later rows need columns that were not known at first, the table is written again."""
        known = columns = self._known_columns()
        status = Status.CLEAN
        with contextlib.suppress(_AgainError), self.new_target(known) as target:
            if known is not None:
                target.sink()
            tally = self.read_all(target)
            status = tally.status
            if known is None:
                # An export without entities produces a table without rows.
                if not (self.firsts or (tally.is_export and not tally.failed_count)):
                    raise _AgainError
                self._check_names(target.table)
                columns = self.columns_of(target.table)
                # At this point, the table also has rows from logs that could not be read completely.
                if not (target.table.is_open and self._started <= self.firsts.keys()):
                    raise _AgainError
            elif not (tally.log_count or tally.is_export):
                raise Failure("no log was converted: there is no table")
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
        """Returns a table with the given columns. If `columns` is `None`, the table determines its columns."""
        options = self._options
        form = form or self._form
        return Table(
            self._payload,
            "arrow" if form in BINARY_FORMATS else form,
            columns,
            first=self.origins,
            has_salvaged=options.on_corruption == "salvage",
            limit=options.limit,
            wanted=options.columns and list(map(utf8, options.columns)),
            opens_early=opens_early,
            bytes_as=options.encoding or "object",
            escapes_formulas=options.escape_formulas,
        )

    def new_target(self, columns: dict[str, ColumnType] | None) -> Target:
        """Returns the table at the destination."""
        destination: str = self._options.destination
        # Output already written to a pipe cannot be removed.
        table = self.new_table(columns, opens_early=not is_stream(destination))
        return Target(table, self._form, destination, self._options)

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
        # If reading stopped in the middle of a log, that has already been reported.
        if unread and target.table.stop_offset is None:
            report_stop(unread[0], None, options.limit, "row")
        # If no option names a kind, logs whose kind differs from the first log's are counted as damaged.
        tally.damaged_count += options.is_auto and bool(tally.other_kinds)
        return tally

    def read_again(self, target: Target) -> None:
        """Reads each log in `firsts` again, up to the same offset, without reporting its faults again."""
        for name, first in self.firsts.items():
            if not target.table.is_full:
                self._read(name, target, first)

    def columns_of(self, table: Table) -> dict[str, ColumnType]:
        """Returns the columns found for a table, and reports those that had to be stored as JSON."""
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
            ValueError: An unknown column was requested.
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
        """Reads a log. If `first` is given, rereads the log, but only up to `first.end`."""
        options = self._options
        record_count, position = 0, options.start
        self._started.add(name)
        with (
            self._opened[0] if self._opened else self._reader(name, first) as reader,
            ProgressBar(name, prints_records=options.destination == "-") as progress,
        ):
            if self._source and first:
                self._source.check_same(first.end)
            faults = Faults(options, name, self._payload, reader.dialect)
            rows = target.read(
                reader,
                (lambda _: None) if first else faults,
                name=source_name(name),
                starts=None if first else faults.start,
                taken=self._opened[1] if self._opened else [],
                target_len=_BATCH_LEN,
                threads=_THREADS,
            )
            try:
                for count, made in rows:
                    if not first:
                        faults.note(target.table.note)
                    target.write(made)
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

    def _check_names(self, table: Table) -> None:
        """Checks that each requested column appeared in at least one row. Call this after the last row.

        Raises:
            ValueError: There were rows, but a requested column is missing from all of them.
        """
        missing, seen = table.missing
        if missing and table.row_count:
            raise no_column(missing[0], seen)

    def _end(self, target: Target) -> None:
        """Writes the remainder of a table, and reports any problems with it."""
        table = target.table
        if self._form == "ndjson" and self._payload.columns is None:
            self._check_names(table)
        target.write(table.rest())
        target.sink()
        self._report_run_ids()
        if table.row_count and not table.columns and self._form in ("csv", "parquet"):
            # If a table has no columns, pyarrow writes no rows to Parquet, and CSV can't represent any.
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
        names = {name: origin_of(name, "run_id") for name in self.firsts}
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


_WORDS = {
    "record": ("record", "the record at offset {} is left out", "left out in all"),
    "row": ("row", "a row of the record at offset {} is left out", "left out in all"),
    "value": ("value", "a value of the record at offset {} is left out", "left out in all"),
    "rest": ("fault", "the record at offset {} is read up to a fault", "in all"),
}
"""Maps each kind of missing part to its name, the message about one such part, and the text that follows the total."""


class Faults:
    """The faults of a log. All of them are counted, but only the first few are reported."""

    def __init__(self, options: argparse.Namespace, source: str, payload: Payload, dialect: str | None) -> None:
        """Creates an object with no faults yet."""
        self._options = options
        self._source = source
        self._name = display_name(source)
        self._payload = payload
        self._dialect = dialect
        self._is_noted = False
        self._counts = dict.fromkeys(_WORDS, 0)
        self._reported_max = dict.fromkeys(_WORDS, REPORTED_MAX)
        self._unknown_count = 0
        # The offset of the first record left out, and whether any records are of a kind that wasn't requested.
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
            if advice := other_payload(record.data, self._payload, self._dialect):
                what = f"it is {advice}"
                self._is_other_kind = True
        if self._counts[part] <= self._reported_max[part]:
            complain(f"{self._name}: {sentence.format(record.offset)}: {what}")
        if self._is_other_kind:
            self._reported_max["record"] = 1

    def start(self, first: Record) -> None:
        """Reports a log whose first record is of another kind, because its records might all be skipped silently."""
        if not self._payload.is_part or self._first_left_out == first.offset:
            return
        if advice := other_payload(first.data, self._payload, self._dialect):
            complain(f"{self._name}: the record at offset {first.offset} is {advice}")
            self._is_other_kind = True

    def note(self, text: str | None) -> None:
        """Reports, but only once, that it is uncertain which engine wrote the log."""
        if text and not self._is_noted:
            report_engine(self._source, text)
            self._is_noted = True

    def end(self, record_count: int) -> None:
        """For each kind of fault, reports the total, unless every fault of this kind has already been reported."""
        for part, count in self._counts.items():
            word, _, in_all = _WORDS[part]
            # A log without records of the requested kind has already been reported.
            if count > self._reported_max[part] and not (self._is_other_kind and count == record_count):
                complain(f"{self._name}: {quantity(count, word)} {in_all}")

    def judge(self, report: Report) -> Status:
        """Reports the log's skipped regions, and which option would return more records."""
        status = report_left_out(self._source, report, self._options)
        own = Status.DAMAGE if self._is_other_kind or any(self._counts.values()) else Status.CLEAN
        is_lost = max(status, own) == Status.DAMAGE and not self._is_other_kind
        if self._payload.name == "live-files" and is_lost:
            are_all_unknown = self._unknown_count == sum(self._counts.values())
            complain(f"{self._name}: {UNKNOWN_EDITS if report.ok and are_all_unknown else LOST_EDITS}")
        strict = Status.DAMAGE if self._options.strict and is_incomplete(report) else Status.CLEAN
        return max(status, own, strict)


SUFFIXES = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
"""Maps the suffix of a destination to the form of the table."""

TABLE_FORMATS = ("ndjson", "csv", "parquet", "arrow")

BINARY_FORMATS = ("parquet", "arrow")
"""The forms that aren't text. They require pyarrow."""


def check_installed(form: str) -> None:
    """Checks that the package required for the format is installed, and imports it.

    Loading a library may kill the process if memory is low, so call this before a table is started.

    Raises:
        ImportError: The package is not installed or cannot be imported.
    """
    if form in BINARY_FORMATS:
        imported("pyarrow.parquet" if form == "parquet" else "pyarrow", f"{form} needs", "arrow")


class Target(contextlib.ExitStack):
    """A table and its file.

    The file is opened when it is first needed. It gets its final name once it is complete.
    """

    def __init__(self, table: Table, form: str, path: str, options: argparse.Namespace) -> None:
        super().__init__()
        self.table = table
        self._form = form
        self._path = path
        self._options = options
        self._sink: Output | _ArrowSink | None = None

    def read(self, reader: Reader, report: OnFault, **options: Any) -> Iterator[tuple[int, list[Any]]]:
        """Reads a log. Accepts the same arguments as `Table.read`, and yields the same values."""
        return self.table.read(reader, report, **options)

    def write(self, made: Iterable[Any]) -> None:
        """Writes the output of the table."""
        for some in made:
            self.sink().write(some)

    def sink(self) -> Output | _ArrowSink:
        """Returns the file, opening it if necessary.

        Raises:
            SameNamesError: Two columns would have the same name in Arrow.
        """
        if self._sink is None:
            options = self._options
            file = self.enter_context(new_file(self._path, options.files, overwrite=options.overwrite))
            if self._form in BINARY_FORMATS:
                self._sink = _ArrowSink(self._form, file, self.table.schema, is_stream=self._path == "-")
                self.callback(self._sink.close)
            else:
                self._sink = file
        return self._sink


class _ArrowSink:
    """Writes Parquet or one of Arrow's two IPC formats. A batch of rows becomes a row group or a record batch.

    A second thread writes batches to a file while the next ones are being created. The threads can run at the same
    time, because pyarrow releases the interpreter lock. A stream is written in the main thread, because Ctrl-C cannot
    interrupt another thread that is blocked on a full pipe. Arrow output to a stream is in Arrow's streaming format.
    """

    def __init__(self, form: str, file: Output, schema: Any, *, is_stream: bool) -> None:
        self._file = file
        self._form = "stream" if form == "arrow" and is_stream else form
        self._schema = schema
        self._threads: Any = None if is_stream else import_module("concurrent.futures").ThreadPoolExecutor(1)
        # The batches being written or waiting to be written.
        self._pending: deque[Any] = deque()
        self._writer: Any = None

    def write(self, made: Any) -> None:
        """Writes a batch. May raise an earlier batch's error."""
        self._wait(_PENDING_MAX - 1)
        if self._writer is None:
            self._writer = self._open(made)
        if self._threads:
            earlier = self._pending[-1] if self._pending else None
            self._pending.append(self._threads.submit(self._write_after, earlier, made))
        else:
            self._writer.write_batch(made)

    def _write_after(self, earlier: Any, batch: Any) -> None:
        """Writes a batch in the second thread. If an earlier batch failed, raises its error instead."""
        if earlier is not None:
            earlier.result()
        self._writer.write_batch(batch)

    def _open(self, first: Any = None) -> Any:
        """Opens the writer of the table. `first` is the first batch, if the table has one."""
        if self._form == "parquet":
            # The first batch determines which columns get dictionaries, unless it has too few rows.
            dictionaries: bool | list[str] = True
            if first is not None and len(first) >= _ROWS_MIN:
                dictionaries = [path for path, values in _leaves(first) if _repeats(values)]
            return import_module("pyarrow.parquet").ParquetWriter(self._file, self._schema, use_dictionary=dictionaries)
        ipc = import_module("pyarrow").ipc
        return (ipc.new_stream if self._form == "stream" else ipc.new_file)(self._file, self._schema)

    def _wait(self, count: int = 0) -> None:
        """Waits until no more than `count` batches remain to be written."""
        while len(self._pending) > count:
            self._pending.popleft().result()

    def close(self) -> None:
        """Writes the file's end, even if the file is incomplete and will be removed. The file stays open."""
        try:
            self._wait()
        finally:
            if self._threads:
                self._threads.shutdown()
            if self._writer is None:
                self._writer = self._open()
            self._writer.close()


_PENDING_MAX = 2
"""The maximum number of batches being written or waiting to be written."""

_ROWS_MIN = 1_000
"""With fewer rows than this, it is unclear whether a column's values repeat."""


def _leaves(batch: Any) -> Iterator[tuple[str, Any]]:
    """Yields the path and the values of each Parquet column in a batch."""
    arrays = list(zip(batch.schema.names, batch.columns, strict=True))
    types = import_module("pyarrow").types
    while arrays:
        path, array = arrays.pop()
        if types.is_struct(array.type):
            names = [f"{path}.{field.name}" for field in array.type]
            arrays.extend(zip(names, array.flatten(), strict=True))
        elif types.is_list(array.type):
            arrays.append((f"{path}.list.element", array.flatten()))
        else:
            yield path, array


def _repeats(values: Any) -> bool:
    """Checks whether values repeat. If they do, a dictionary makes the column smaller at no cost in speed."""
    count: int = len(values) - values.null_count
    distinct_count: int = import_module("pyarrow.compute").count_distinct(values).as_py()
    return distinct_count * 2 <= count
