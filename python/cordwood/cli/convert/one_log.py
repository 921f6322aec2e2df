"""The table of one log."""

from __future__ import annotations

import argparse
from itertools import islice
from typing import Any

import cordwood
from cordwood._tables.columns import ROW_COUNT_MAX, Records
from cordwood._tables.schema import ColumnType, MisfitError
from cordwood._text import display_name, quantity, source_name
from cordwood.cli._messages import Failure, Status, complain
from cordwood.cli._options import reader_of
from cordwood.cli._progress import ProgressBar
from cordwood.cli._reopenable import Reopenable, changed_meanwhile
from cordwood.cli._selection import Selection
from cordwood.cli.convert.columns import columns_found, selection_of
from cordwood.cli.convert.draft import draft_of, new_table
from cordwood.cli.convert.log_rows import LogRows, Read, report_damage
from cordwood.cli.convert.writers import Table


def convert_once(options: argparse.Namespace, form: str, known: dict[str, ColumnType], source: Any) -> Status:
    """Writes the table of a log whose columns are known."""
    with reader_of(options, source, options.end) as reader:
        log_rows = _write_table(options, form, known, reader)
        return max(log_rows.status, report_damage(options, log_rows, log_rows.summary()))


def convert_learned(options: argparse.Namespace, form: str, source: Reopenable) -> Status:
    """Finds the columns, and writes the table of the records that were read to find them: later ones stay out."""
    selection = selection_of(options)
    with draft_of(options, selection, form) as draft:
        with reader_of(options, source.open(), options.end) as reader, _progress_bar(options) as progress:
            first = LogRows(options, options.source, reader, selection, progress, draft=draft)
            for _ in first:
                pass
            # A torn record here is reported as such.
            end, summary = reader.tell(), first.summary()
        selection.check_names()
        status = max(first.status, report_damage(options, first, summary))
        columns = columns_found(options.payload, draft.columns, form)
        if draft.is_table():
            return status
    with reader_of(options, source.open(), end) as reader:
        source.check_same(end)
        _write_table(options, form, columns, reader, first.read)
    return status


def _progress_bar(options: argparse.Namespace) -> ProgressBar:
    return ProgressBar(options.source, prints_records=options.destination == "-")


def _write_table(
    options: argparse.Namespace,
    form: str,
    columns: dict[str, ColumnType],
    reader: cordwood.Reader,
    first: Read | None = None,
) -> LogRows:
    """Writes the rows. If the records are not those of a `first` reading, the file was rewritten: there is no table."""
    selection = selection_of(options)
    columns = selection.of_columns(columns, "text")
    with _progress_bar(options) as progress, new_table(options, form, columns) as table:
        log_rows = LogRows(options, options.source, reader, selection, progress, table=table, earlier=first)
        row_count = sum(write_records(table, records, options.source) for records in log_rows)
        selection.check_names()
        write_held_back(table, selection, options.source)
        if first is not None and log_rows.read != first:
            raise changed_meanwhile(options.source, "rewritten")
    if row_count and not columns and form in ("csv", "parquet"):
        # pyarrow writes 0 rows to Parquet if there is no column, and a line of CSV is a row only if there is one.
        name = {"csv": "CSV", "parquet": "Parquet"}[form]
        complain(
            f"{display_name(options.source)}: no row has a value, and without columns {name} cannot count rows: "
            f"{quantity(row_count, 'row')} left out; --to ndjson and --to arrow keep them"
        )
    return log_rows


def write_held_back(table: Table, selection: Selection, source: str) -> None:
    """Writes the empty rows that the selection has held back."""
    held_back = iter(selection.held_back())
    while rows := list(islice(held_back, ROW_COUNT_MAX)):
        write_records(table, Records(rows), source)


def write_records(table: Table, records: Records, source: str) -> int:
    """Writes records or rows of the log `source`. Returns the number of rows."""
    try:
        return table.write(records)
    except Failure as error:
        raise Failure(f"{source_name(source)}: {error}") from error
    except MisfitError as error:
        raise changed_meanwhile(source_name(source), "rewritten") from error
