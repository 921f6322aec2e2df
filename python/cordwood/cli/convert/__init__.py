"""Convert logs to a table: NDJSON, CSV, Parquet or Arrow.

The form follows from the extension of the destination: .ndjson or .jsonl, .csv, .parquet, .arrow or .feather. Without a
destination the table goes to stdout, as NDJSON or what --to says.

What is a row, by --as:
  raw            a record: offset, end_offset, data
  write-batch    an operation of a LevelDB, RocksDB or Pebble log: offset of its
                 record, sequence, kind, key, value, ...
  version-edit   a record of a MANIFEST: offset, fields
  live-files     a table that a database has after all edits of its MANIFEST:
                 column family, level, file_number, ...
  entity         an entity of a Datastore or Firestore export: __kind__,
                 __id__, __name__, __path__, __key__ and its properties
  json           a record that is a text of JSON: the values of an object by
                 their names; any other value as __value__
  wandb-history  a step of a run in a .wandb file: _step and what was logged
  wandb-summary  a run: what its summary was in the end
  wandb-config   a run: what its configuration was in the end
  wandb-metrics  a measurement of the system while a run went on: _timestamp,
                 _runtime, system.cpu, ...
  wandb-output   a line that a run printed: _timestamp, stream, line
  wandb          a record of a .wandb file: offset and its fields; needs the
                 extra wandb
  auto           one of these, by the dialect and the first record: which one
                 is said on stderr

In NDJSON, bytes that are UTF-8 are text, others {"base64": "..."}, as are all bytes of entities. In CSV, all bytes
of a column are in the form that --encoding names. Where columns are not known beforehand, as those of entities and of
wandb, the log is read twice, except for NDJSON: first to find them. (Many files of an export are mostly read once.) A
column whose values are all of one type has that type; arrays and objects are lists and structures in Parquet and Arrow;
anything else is JSON. It needs a few tens of MiB of memory, more for very long records or thousands of columns.

Several logs, or all logs in a folder, make one table. Its first column says which log a row is from: path; for entities
and JSON __file__; and for wandb run_id, from the name of the file, and __file__ if --columns or --where names it. It
has the columns of all of them.

What is damaged, or is not of that form, is reported on stderr and left out: of a run, only the value. The exit status
is then 3.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import cordwood
from cordwood._tables.json_text import Streamed
from cordwood._tables.rows import (
    ROW_KINDS,
    Row,
    all_columns,
    json_of,
    known_columns,
    origin_column,
    origin_of,
    rows_as,
    shapes_of,
)
from cordwood._tables.schema import Columns, ColumnType, TooManyColumnsError
from cordwood._text import quantity
from cordwood.cli._messages import Failure, Status, complain, escaped
from cordwood.cli._options import (
    add_reading_arguments,
    add_source_arguments,
    check_range,
    complete_file_names,
    reading_options,
)
from cordwood.cli._output import check_destination, check_no_log, new_file
from cordwood.cli._payloads import (
    AUTO,
    LOST_EDITS,
    hint_at_payload,
    other_kind,
    other_payload,
    payload_by_content,
    report_engine,
    report_payload,
)
from cordwood.cli._progress import Progress
from cordwood.cli._reopenable import Reopenable, changed_meanwhile, reopenable
from cordwood.cli._reports import REPORTED_MAX, format_of, policy_note, report_skipped, salvageable_count
from cordwood.cli._selection import Selection, add_selection_arguments
from cordwood.cli._sources import (
    check_url,
    display_name,
    for_each_source,
    is_one_file,
    named_files,
    source_name,
    stdin_or_path,
)
from cordwood.cli.convert.writers import (
    BINARY_FORMATS,
    ENCODINGS,
    SUFFIXES,
    TABLE_FORMATS,
    ArrowTable,
    Table,
    check_installed,
    open_table,
)
from cordwood.errors import PayloadError

if TYPE_CHECKING:
    from cordwood._tables.entity_batches import EntityColumns, EntityRecords, LeftOutRecord
    from cordwood.cli._output import Output

EXAMPLES = """\
  cordwood convert app.log records.parquet
  cordwood convert --as entity output-0 documents.ndjson
  cordwood convert --as wandb-history run-59kl0f4q.wandb history.csv
  cordwood convert --as wandb-history wandb/ histories.parquet
  cordwood convert --as wandb-summary wandb/ summaries.csv
  cordwood convert --as wandb-history --columns _step,loss wandb/ losses.csv
  cordwood convert --as write-batch 000003.log | jq .key
  cordwood convert --as live-files MANIFEST-000005 tables.csv
"""

# A batch of rows has this many rows, or is made of this many bytes of records, or of a single longer one.
BATCH_COUNT = 1 << 16
BATCH_LEN = 4 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `convert` takes."""
    add_source_arguments(parser)
    complete_file_names(
        parser.add_argument(
            "destination",
            metavar="DESTINATION",
            nargs="?",
            help="a new file; - for stdout, the default after a single SOURCE",
        )
    )
    parser.add_argument("--to", choices=TABLE_FORMATS, help="the form of the table")
    parser.add_argument(
        "--as",
        dest="payload",
        choices=(*ROW_KINDS, AUTO),
        help="what a record is (default: raw)",
    )
    parser.add_argument(
        "--encoding",
        choices=ENCODINGS,
        help="in CSV: what all bytes of a column are; as text, they must be UTF-8 (default: base64)",
    )
    parser.add_argument(
        "--escape-formulas",
        action="store_true",
        help="in CSV: put a ' before what a spreadsheet takes for a formula: text that begins with =, +, -, @, one of "
        "these in full width, a tab, a carriage return or a newline; base64 with a ' is no base64 any more",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the destination once the table is complete, unless it is a log",
    )
    add_selection_arguments(parser, "row", "columns")
    add_reading_arguments(parser)


def run(options: argparse.Namespace) -> Status:
    """Converts the sources."""
    if options.payload:
        return _convert(options)
    options.payload = "raw"
    status = _convert(options)
    hint_at_payload(options)
    return status


def _convert(options: argparse.Namespace) -> Status:
    check_range(options)
    # argparse takes the last of several names for a source.
    options.destination = options.sources.pop() if len(options.sources) > 1 else "-"
    form = options.to or _form_of(options.destination)
    if form != "csv" and (options.encoding or options.escape_formulas):
        raise ValueError(f"--encoding and --escape-formulas are for CSV, not for {form}")
    if form in BINARY_FORMATS and options.destination == "-" and sys.stdout.isatty():
        raise ValueError(f"{form} is nothing for a terminal; name a destination")
    check_installed(form)
    for file in named_files(options.sources):
        # A file that is missing is reported when it is opened.
        with contextlib.suppress(FileNotFoundError):
            check_destination(file.name, options.destination, overwrite=options.overwrite)
    if options.overwrite:
        check_no_log(options.destination, "table", "; the DESTINATION is the last name")
    if not is_one_file(options.sources):
        if options.payload == AUTO:
            options.payload = _payload_of_all(options)
        return _convert_many(options, form, _known_columns(options, form))
    [options.source] = options.sources
    check_url(options.source)
    if options.payload == AUTO:
        with reopenable(options.source) as source:
            with _reader(options, source.open(), options.end) as reader:
                payload, has_records = _payload_of(options.source, reader)
                report_payload(options.source, payload, has_records=has_records)
                options.payload = payload or "raw"
            known = _known_columns(options, form)
            return (
                _convert_twice(options, form, source)
                if known is None
                else _convert_once(options, form, known, source.open())
            )
    known = _known_columns(options, form)
    if known is not None:
        return _convert_once(options, form, known, stdin_or_path(options.source))
    with reopenable(options.source) as source:
        return _convert_twice(options, form, source)


def _known_columns(options: argparse.Namespace, form: str) -> dict[str, ColumnType] | None:
    """The columns that are known before a log is read; `None` if it has to be read for them."""
    return {} if form == "ndjson" else known_columns(options.payload, options.on_corruption)


def _payload_of(name: str, reader: cordwood.Reader) -> tuple[str | None, bool]:
    """What the records of a log are taken for, and whether there are any."""
    first = next(reader.records(), None)
    return payload_by_content(name, first.data if first else None, reader.dialect), first is not None


def _payload_of_all(options: argparse.Namespace) -> str:
    """What the records of all logs are.

    Raises:
        Failure: It is not the same in all of them.
    """
    if "-" in options.sources:
        raise ValueError("--as auto reads the beginning of each log first, and stdin with others cannot be read twice")
    # The first log of each kind.
    firsts: dict[str | None, str] = {}
    for file in named_files(options.sources):
        # What cannot be read is reported later.
        with contextlib.suppress(OSError, cordwood.CordwoodError, Failure):
            if file.what or file.error:
                continue
            check_url(file.name)
            with _reader(options, file.name, options.end) as reader:
                payload, has_records = _payload_of(file.name, reader)
                # A log without records may be anything.
                if payload or has_records:
                    firsts.setdefault(payload, file.name)
    if len(firsts) > 1:
        several = ", ".join(f"{payload or 'raw'} ({display_name(name)})" for payload, name in firsts.items())
        raise Failure(
            f"the logs hold records of several kinds: {several}; name one with --as, and the logs that have it"
        )
    for payload, name in firsts.items():
        report_payload(name, payload)
    return next(iter(firsts), None) or "raw"


def _convert_once(options: argparse.Namespace, form: str, known: dict[str, ColumnType], source: Any) -> Status:
    selection = _selection(options)
    with _reader(options, source, options.end) as reader:
        batches = _Batches(options, reader, selection)
        _write_table(options, form, known, batches)
        return max(batches.status, _report_damage(options, batches, reader.skipped))


def _form_of(destination: str) -> str:
    if destination == "-":
        return "ndjson"
    suffix = os.path.splitext(destination)[1].lower()  # noqa: PTH122 - pathlib is slow to import
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{destination}: the last name is the destination, and this says no form: name one that ends in "
            f"{', '.join(SUFFIXES)}, or - for stdout, or name the form with --to"
        )
    return SUFFIXES[suffix]


def _convert_twice(options: argparse.Namespace, form: str, source: Reopenable) -> Status:
    """Finds the columns, and writes the table of what was read for that: what a log has grown by stays out."""
    selection = _selection(options)
    found = _columns(options.payload, selection)
    with _reader(options, source.open(), options.end) as reader:
        first = _Batches(options, reader, selection, found, is_native=_takes_records(options.payload, selection))
        for _ in first:
            pass
        # What was torn here is reported as such.
        end, skipped = reader.tell(), reader.skipped
    selection.check_names()
    columns = _columns_found(options.payload, found, form)
    with _reader(options, source.open(), end) as reader:
        source.check_same(end)
        batches = _Batches(
            options, reader, _selection(options), is_native=_is_native(options.payload, selection, columns, form)
        )
        _write_table(options, form, columns, batches, first.read)
        return max(batches.status, _report_damage(options, batches, skipped))


def _convert_many(  # noqa: PLR0915 - two passes
    options: argparse.Namespace, form: str, known: dict[str, ColumnType] | None
) -> Status:
    """Writes one table of several logs. A first column says which log a row is from."""
    origin = origin_column(options.payload)
    # Of each log, how far it was read to find the columns, what was read, and what was skipped.
    firsts: dict[str, tuple[int | None, Read | None, Sequence[cordwood.SkippedRegion]]] = {}
    origins = _origins(options, origin)
    selection = _selection(options, origins)
    found = _columns(options.payload, selection, origin)
    is_native = known is None and _takes_records(options.payload, selection)

    unread: str | None = None
    # Of each run, the first file.
    files: dict[str, str] = {}
    twice: list[tuple[str, str]] = []

    def batches_of(one: argparse.Namespace, reader: cordwood.Reader, found: Columns | None = None) -> _Batches:
        first: Row = {column: _whence(one.source, column) for column in origins}
        return _Batches(one, reader, selection, found, first=first, is_native=is_native)

    def find(name: str) -> Status:
        nonlocal unread
        if selection.is_full:
            unread = unread or name
            return Status.CLEAN
        one = _of_one(options, name)
        with _reader(one, stdin_or_path(name), one.end) as reader:
            batches = batches_of(one, reader, found)
            for _ in batches:
                pass
            firsts[name] = (reader.tell(), batches.read, reader.skipped)
        return Status.CLEAN

    other_kind_of = other_kind(options, lambda: selection.is_full)
    status = Status.CLEAN
    if is_native and form in BINARY_FORMATS and _convert_at_once(options, form, origin):
        return Status.CLEAN
    if known is None:
        if "-" in options.sources:
            raise ValueError("stdin can be converted by itself, or together with other logs to NDJSON: --to ndjson")
        status = for_each_source(options.sources, find, dialect=options.dialect, other_kind=other_kind_of).status
        if not firsts:
            return status
        selection.check_names()
        known = _columns_found(options.payload, found, form)
        is_native = _is_native(options.payload, selection, known, form)
        selection = _selection(options, origins)
    is_stream = options.destination == "-"
    with new_file(options.destination, overwrite=options.overwrite) as file:
        columns = selection.of_columns({**dict.fromkeys(origins, "text"), **known}, "text")
        with contextlib.closing(_open_table(options, form, file, columns)) as table:

            def write(name: str) -> Status:
                nonlocal unread
                if selection.is_full:
                    unread = unread or name
                    return Status.CLEAN
                if (same := files.setdefault(_whence(name, origin), name)) != name:
                    twice.append((same, name))
                one = _of_one(options, name)
                end, first, skipped = firsts.get(name, (one.end, None, ()))
                with (
                    _reader(one, stdin_or_path(name), end) as reader,
                    Progress(name, prints_records=is_stream) as progress,
                ):
                    batches = batches_of(one, reader)
                    position = one.start
                    for rows in batches:
                        _write_rows(table, rows, name)
                        progress(reader.tell() - position)
                        position = reader.tell()
                    if first is not None and batches.read != first:
                        raise changed_meanwhile(name, "rewritten")
                    return max(batches.status, _report_damage(one, batches, skipped if first else reader.skipped))

            if firsts:
                # What cannot be read has been reported.
                damage = max(write(name) for name in firsts)
                status = status or damage
            else:
                tally = for_each_source(options.sources, write, dialect=options.dialect, other_kind=other_kind_of)
                if not tally.log_count:
                    raise Failure("nothing was converted: there is no table")
                selection.check_names()
                status = tally.status
            _write_held_back(table, selection, options.sources[-1])
            selection.report_nothing()
            if twice and origins == ["run_id"]:
                _report_files_of_one_run(twice)
            if unread is not None:
                selection.report_stop(unread, None, "row")
    return status


def _convert_at_once(options: argparse.Namespace, form: str, origin: str) -> bool:
    """Writes one table of entities in one reading. Returns whether that could be done: else there is no table yet."""
    from cordwood.cli.convert.at_once import Again, AtOnce

    # Of a stream, nothing can be taken back.
    to = options.destination
    if to == "-" or (os.path.exists(to) and not os.path.isfile(to)):  # noqa: PTH110, PTH113 - pathlib is slow to import
        return False
    try:
        logs = AtOnce(options, lambda name: _reader(options, name, options.end), origin)
        with new_file(options.destination, overwrite=options.overwrite) as file:
            columns: dict[str, ColumnType] = {origin: "text", **logs.columns}
            to_json, shapes = json_of(options.payload), shapes_of(options.payload)
            with contextlib.closing(ArrowTable(form, file, columns, to_json, shapes, is_stream=False)) as table:
                logs.write(table, lambda name: _whence(name, origin))
    except Again:
        return False
    _report_conflicts(logs.found, form)
    if logs.others.others:
        complain(logs.others.others_text())
    return True


def _columns(payload: str, selection: Selection, origin: str | None = None) -> Columns:
    """What learns the columns; `origin` is one that the table has besides."""
    if not _takes_records(payload, selection):
        return Columns(shapes_of(payload))
    from cordwood._tables.entity_batches import EntityColumns

    return EntityColumns(origin)


def _takes_records(payload: str, selection: Selection) -> bool:
    """Whether the native module takes records: what is wanted of a row is known only to rows of Python."""
    return payload == "entity" and not selection.is_active


def _columns_found(payload: str, found: Columns, form: str) -> dict[str, ColumnType]:
    """All columns of a table, after the first pass."""
    found.finish()
    _report_conflicts(found, form)
    return all_columns(payload, found.types())


def _is_native(payload: str, selection: Selection, columns: dict[str, ColumnType], form: str) -> bool:
    """Whether the native module makes the table."""
    if form not in BINARY_FORMATS or not _takes_records(payload, selection):
        return False
    from cordwood._tables.entity_batches import is_native

    return is_native(columns)


def _whence(name: str, origin: str) -> str:
    """What is in the column that says which log a row is from."""
    return "<stdin>" if name == "-" else origin_of(name, origin)


_FILE = "__file__"


def _origins(options: argparse.Namespace, origin: str) -> list[str]:
    """The columns that say which log a row is from. Several files may have one run: then the name is asked for."""
    names = [*(options.columns or ()), *(condition.column for condition in options.where)]
    return [origin, _FILE] if origin == "run_id" and _FILE in names else [origin]


def _report_files_of_one_run(pairs: list[tuple[str, str]]) -> None:
    """Reports files whose rows have the `run_id` of another."""
    for first, second in pairs[:REPORTED_MAX]:
        complain(f"{display_name(first)} and {display_name(second)} have one run_id, as parts of a run or copies have")
    if len(pairs) > REPORTED_MAX:
        complain(f"{quantity(len(pairs) - REPORTED_MAX, 'more file')} with the run_id of another")
    complain(f"the column {_FILE}, if --columns names it, says which file a row is from")


def _selection(options: argparse.Namespace, first: Sequence[str] = ()) -> Selection:
    """What is wanted of the rows, which begin with columns `first`: to be made again for each pass."""
    known = known_columns(options.payload, options.on_corruption)
    if known is not None:
        return Selection(options, json_of(options.payload), [*first, *known])
    return Selection(
        options,
        json_of(options.payload),
        always=[*first, *all_columns(options.payload, {})],
        fields_of=shapes_of(options.payload).fields_of,
    )


def _of_one(options: argparse.Namespace, name: str) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(options), "source": name})


def _has_column(name: str) -> Failure:
    return Failure(f"the logs have a column {name} of their own: convert each by itself")


def _no_columns(error: TooManyColumnsError) -> Failure:
    return Failure(f"{error}; --to ndjson has no columns")


def _report_conflicts(found: Columns, form: str) -> None:
    """Reports columns that are JSON because their values are of several types, or have too many fields."""
    # In CSV, all that is within a value is JSON.
    is_nested = form in BINARY_FORMATS
    names = found.types()
    for name, types in found.conflicts().items():
        if is_nested or name in names:
            complain(
                f"the column {escaped(name)} has values of several types, and is JSON in a text: {', '.join(types)}"
            )
    for name in found.overfull if is_nested else ():
        complain(f"the column {escaped(name)} has too many fields, and is JSON in a text")


def _open_table(options: argparse.Namespace, form: str, file: Output, columns: dict[str, ColumnType]) -> Table:
    return open_table(
        form,
        file,
        columns,
        json_of(options.payload),
        shapes_of(options.payload),
        is_stream=options.destination == "-",
        encoding=options.encoding or "base64",
        escapes_formulas=options.escape_formulas,
    )


def _write_table(
    options: argparse.Namespace, form: str, columns: dict[str, ColumnType], batches: _Batches, first: Read | None = None
) -> None:
    """Writes the rows. Not the same records as in a `first` pass: the file was rewritten, and there is no table."""
    with (
        Progress(options.source, prints_records=options.destination == "-") as progress,
        new_file(options.destination, overwrite=options.overwrite) as file,
    ):
        columns = batches.selection.of_columns(columns, "text")
        with contextlib.closing(_open_table(options, form, file, columns)) as table:
            position = options.start
            for rows in batches:
                _write_rows(table, rows, options.source)
                progress(batches.reader.tell() - position)
                position = batches.reader.tell()
            batches.selection.check_names()
            _write_held_back(table, batches.selection, options.source)
            batches.selection.report_nothing()
        if first is not None and batches.read != first:
            raise changed_meanwhile(options.source, "rewritten")


def _write_held_back(table: Table, selection: Selection, source: str) -> None:
    held_back = iter(selection.held_back())
    while rows := list(islice(held_back, BATCH_COUNT)):
        _write_rows(table, rows, source)


def _write_rows(table: Table, rows: Any, source: str) -> None:
    try:
        table.write(rows)
    except Failure as error:
        raise Failure(f"{source_name(source)}: {error}") from error


def _report_damage(options: argparse.Namespace, batches: _Batches, skipped: Sequence[cordwood.SkippedRegion]) -> Status:
    status = report_skipped(options.source, skipped)
    if status == Status.DAMAGE:
        reader, policy = batches.reader, options.on_corruption
        more = salvageable_count(
            options.source,
            batches.read.record_count,
            policy=policy,
            log=format_of(reader),
            record_len_max=options.record_len_max,
            start=options.start,
            end=options.end if batches.end is None else batches.end,
        )
        complain(f"{display_name(options.source)}: {policy_note(policy, more)}")
    if options.payload == "live-files" and max(status, batches.status) == Status.DAMAGE:
        complain(f"{display_name(options.source)}: {LOST_EDITS}")
    return status


def _all_of(value: object) -> object:
    """A value at once, also if it would be made while it is written: to look into it, or to put it anywhere."""
    return list(value.items) if type(value) is Streamed else value


def _reader(options: argparse.Namespace, source: Any, end: int | None) -> cordwood.Reader:
    return cordwood.Reader(
        source, on_corruption=options.on_corruption, start=options.start, end=end, **reading_options(options)
    )


class Read(NamedTuple):
    """What was read of a log."""

    record_count: int
    """How many records."""
    crc: int
    """Of their offsets and their data."""


class _Batches:
    """The rows of a log that are wanted, many at a time. Records that are not of the form are left out, and reported.

    Attributes:
        reader: Where the records come from.
        selection: Which rows are wanted.
        read: What was read, after the last of them.
        end: Where reading stopped because there were enough rows; `None` if it did not.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        reader: cordwood.Reader,
        selection: Selection,
        found: Columns | None = None,
        *,
        first: Row | None = None,
        is_native: bool = False,
    ) -> None:
        """In a first pass, `found` learns the columns of all rows. `first` is what each row begins with.

        If `is_native`, what learns and what writes takes records, and no rows are made of them here.
        """
        self._source = options.source
        self._name = display_name(options.source)
        self._payload: str = options.payload
        self._first = first or {}
        self.reader = reader
        self.selection = selection
        self.read = Read(0, 0)
        self.end: int | None = None
        self._rows = rows_as(
            options.payload,
            reader.dialect,
            self._leave_out_value,
            lambda text: report_engine(options.source, text),
            on_corruption=options.on_corruption,
        )
        self._found = found
        self._is_native = is_native
        self._is_reporting = found is None
        # Otherwise, rows are as they come.
        self._is_selecting = bool(self._first or found is not None or selection.is_active)
        self._left_out = {"record": 0, "value": 0}
        self._is_other_kind = False
        self._reported_max = {"record": REPORTED_MAX, "value": REPORTED_MAX}

    @property
    def status(self) -> Status:
        return Status.DAMAGE if self._is_other_kind or any(self._left_out.values()) else Status.CLEAN

    def __iter__(self) -> Iterator[Any]:
        """Lists of rows, or `EntityRecords`."""
        if not self._is_native:
            yield from self._lists()
        elif self._found is None:
            yield from self._entities()
        else:
            self._learn(cast("EntityColumns", self._found))
        if self._is_reporting:
            self._report_end()

    def _learn(self, found: EntityColumns) -> None:
        for records in self._entities():
            try:
                if not found.learn(records.batch, self._leave_out):
                    raise _has_column(*self._first)
            except TooManyColumnsError as error:
                raise _no_columns(error) from error

    def _entities(self) -> Iterator[EntityRecords]:
        from cordwood._native import batch_crc
        from cordwood._tables.entity_batches import EntityRecords

        for batch in self.reader.record_batches(target_len=BATCH_LEN):
            self.read = Read(self.read.record_count + len(batch), batch_crc(batch, self.read.crc))
            yield EntityRecords(batch, self._first, self._leave_out)

    def _lists(self) -> Iterator[list[Row]]:
        rows: list[Row] = []
        rows_len = count = crc = 0
        selected = self._selected if self._is_selecting else None
        for record in self.reader.records():
            count += 1
            crc = cordwood.crc32c(record.data, cordwood.crc32c(record.offset.to_bytes(8, "little"), crc))
            try:
                rows_of_record = self._rows.of_record(record)
            except PayloadError as error:
                self._leave_out(record, error)
                continue
            if count == 1:
                self._report_other_kind(record)
            for row in rows_of_record if selected is None else selected(rows_of_record):
                rows.append(row)
                if len(rows) >= BATCH_COUNT:
                    yield rows
                    rows, rows_len = [], 0
            if selected is not None and self.selection.is_full:
                self.end = record.end_offset
                break
            rows_len += len(record.data)
            if rows_len >= BATCH_LEN:
                if rows:
                    yield rows
                rows, rows_len = [], 0
        if self.end is None:
            rows.extend(self._rows.at_end() if selected is None else selected(self._rows.at_end()))
        if rows:
            yield rows
        self.read = Read(count, crc)

    def _report_end(self) -> None:
        if self.end is not None:
            self.selection.report_stop(self._source, self.end, "row")
        for noun, count in self._left_out.items():
            if count > self._reported_max[noun]:
                complain(f"{self._name}: {quantity(count, noun)} left out in all")

    def _selected(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Those rows that are wanted, and no more than that."""
        selection, first, found = self.selection, self._first, self._found
        for row in rows:
            if first:
                for name in first:
                    if name in row:
                        raise _has_column(name)
                row = {**first, **row}  # noqa: PLW2901 - the same, with what it begins with
            if selection.has_names:
                row = {name: _all_of(value) for name, value in row.items()}  # noqa: PLW2901
            if found is not None:
                # Which rows are wanted has no influence on the columns.
                try:
                    found.add(selection.in_columns(row))
                except TooManyColumnsError as error:
                    raise _no_columns(error) from error
            wanted = selection.take(row) if selection.is_active else row
            if wanted is not None:
                yield from selection.held_back()
                yield wanted
            if selection.is_full:
                return

    def _report_other_kind(self, first: cordwood.Record) -> None:
        """Reports a log that is no run: its records may decode as those of a run of which nothing is in the table."""
        if not self._is_reporting or not self._payload.startswith("wandb-") or self.reader.dialect.startswith("wandb"):
            return
        if advice := other_payload(first.data, self._payload, self.reader.dialect):
            complain(f"{self._name}: the record at offset {first.offset} is {advice}")
            self._is_other_kind = True

    def _leave_out(self, record: cordwood.Record | LeftOutRecord, error: PayloadError) -> None:
        is_first = not self._left_out["record"]
        self._report("record", f"the record at offset {record.offset} is left out: {error}")
        if (
            is_first
            and self._is_reporting
            and (advice := other_payload(record.data, self._payload, self.reader.dialect))
        ):
            complain(f"{self._name}: the record at offset {record.offset} is {advice}")
            self._reported_max["record"] = 1

    def _leave_out_value(self, record: cordwood.Record, error: PayloadError) -> None:
        self._report("value", f"a value of the record at offset {record.offset} is left out: {error}")

    def _report(self, noun: str, message: str) -> None:
        self._left_out[noun] += 1
        if self._is_reporting and self._left_out[noun] <= self._reported_max[noun]:
            complain(f"{self._name}: {message}")
