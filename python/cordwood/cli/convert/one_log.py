"""The table of one log."""

from __future__ import annotations

import argparse
import contextlib
from itertools import islice
from typing import Any

from cordwood._tables.schema import ColumnType, MisfitError
from cordwood._text import quantity
from cordwood.cli._messages import Failure, Status, complain
from cordwood.cli._options import reader_of
from cordwood.cli._output import new_file
from cordwood.cli._progress import ProgressBar
from cordwood.cli._selection import Selection
from cordwood.cli._sources import Reopenable, changed_meanwhile, display_name, source_name
from cordwood.cli.convert.columns import columns_found, columns_to_learn, is_native_table, selection_of, takes_records
from cordwood.cli.convert.log_rows import BATCH_COUNT, LogRows, Read, report_damage
from cordwood.cli.convert.writers import Table, open_table


def convert_once(options: argparse.Namespace, form: str, known: dict[str, ColumnType], source: Any) -> Status:
    """Writes the table of a log whose columns are known."""
    selection = selection_of(options)
    with reader_of(options, source, options.end) as reader:
        log_rows = LogRows(options, options.source, reader, selection)
        _write_table(options, form, known, log_rows)
        return max(log_rows.status, report_damage(options, log_rows, log_rows.summary()))


def convert_twice(options: argparse.Namespace, form: str, source: Reopenable) -> Status:
    """Finds the columns, and writes the table of the records that were read to find them: later ones stay out."""
    selection = selection_of(options)
    found = columns_to_learn(options.payload, selection)
    with reader_of(options, source.open(), options.end) as reader:
        first = LogRows(
            options, options.source, reader, selection, found, is_native=takes_records(options.payload, selection)
        )
        for _ in first:
            pass
        # A torn record here is reported as such.
        end, summary = reader.tell(), first.summary()
    selection.check_names()
    columns = columns_found(options.payload, found, form)
    with reader_of(options, source.open(), end) as reader:
        source.check_same(end)
        is_native = is_native_table(options.payload, selection, form)
        log_rows = LogRows(options, options.source, reader, selection_of(options), is_native=is_native)
        _write_table(options, form, columns, log_rows, first.read)
        return max(log_rows.status, report_damage(options, log_rows, summary))


def _write_table(
    options: argparse.Namespace, form: str, columns: dict[str, ColumnType], log_rows: LogRows, first: Read | None = None
) -> None:
    """Writes the rows. If the records are not those of a `first` pass, the file was rewritten: there is no table."""
    with (
        ProgressBar(options.source, prints_records=options.destination == "-") as progress,
        new_file(options.destination, options.files, overwrite=options.overwrite) as file,
    ):
        columns = log_rows.selection.of_columns(columns, "text")
        with contextlib.closing(open_table(options, form, file, columns)) as table:
            position = options.start
            row_count = 0
            for rows in log_rows:
                row_count += write_rows(table, rows, options.source)
                progress(log_rows.reader.tell() - position)
                position = log_rows.reader.tell()
            log_rows.selection.check_names()
            write_held_back(table, log_rows.selection, options.source)
        if row_count and not columns and form in ("csv", "parquet"):
            # pyarrow writes 0 rows to Parquet if there is no column, and a line of CSV is a row only if there is one.
            name = {"csv": "CSV", "parquet": "Parquet"}[form]
            complain(
                f"{display_name(options.source)}: no row has a value, and without columns {name} cannot count rows: "
                f"{quantity(row_count, 'row')} left out; --to ndjson and --to arrow keep them"
            )
        if first is not None and log_rows.read != first:
            raise changed_meanwhile(options.source, "rewritten")


def write_held_back(table: Table, selection: Selection, source: str) -> None:
    """Writes the empty rows that the selection has held back."""
    held_back = iter(selection.held_back())
    while rows := list(islice(held_back, BATCH_COUNT)):
        write_rows(table, rows, source)


def write_rows(table: Table, rows: Any, source: str) -> int:
    """Writes some rows of the log `source`. Returns how many there are."""
    try:
        return table.write(rows)
    except Failure as error:
        raise Failure(f"{source_name(source)}: {error}") from error
    except MisfitError as error:
        raise changed_meanwhile(source_name(source), "rewritten") from error
