"""The table of one log."""

from __future__ import annotations

import argparse
import contextlib
from itertools import islice
from typing import Any

import cordwood
from cordwood._summary import LogSummary
from cordwood._tables.schema import ColumnType, MisfitError
from cordwood._text import quantity
from cordwood.cli._messages import Failure, Status, complain, display_name, source_name
from cordwood.cli._options import reader_of
from cordwood.cli._output import new_file
from cordwood.cli._reopenable import Reopenable, changed_meanwhile
from cordwood.cli._selection import Selection
from cordwood.cli._sources import ProgressBar
from cordwood.cli.convert.columns import columns_found, columns_to_learn, selection_of
from cordwood.cli.convert.log_rows import BATCH_COUNT, LogRows, Read, report_damage
from cordwood.cli.convert.writers import Table, open_table


def convert_once(options: argparse.Namespace, form: str, known: dict[str, ColumnType], source: Any) -> Status:
    """Writes the table of a log whose columns are known."""
    with reader_of(options, source, options.end) as reader:
        return _write_table(options, form, known, reader)


def convert_twice(options: argparse.Namespace, form: str, source: Reopenable) -> Status:
    """Finds the columns, and writes the table of the records that were read to find them: later ones stay out."""
    selection = selection_of(options)
    found = columns_to_learn(options.payload, selection, form)
    with reader_of(options, source.open(), options.end) as reader:
        first = LogRows(options, options.source, reader, selection, found=found)
        for _ in first:
            pass
        # A torn record here is reported as such.
        end, summary = reader.tell(), first.summary()
    selection.check_names()
    columns = columns_found(options.payload, found, form)
    with reader_of(options, source.open(), end) as reader:
        source.check_same(end)
        return _write_table(options, form, columns, reader, (first.read, summary))


def _write_table(
    options: argparse.Namespace,
    form: str,
    columns: dict[str, ColumnType],
    reader: cordwood.Reader,
    first: tuple[Read, LogSummary] | None = None,
) -> Status:
    """Writes the rows. If the records are not those of a `first` pass, the file was rewritten: there is no table."""
    selection = selection_of(options)
    with (
        ProgressBar(options.source, prints_records=options.destination == "-") as progress,
        new_file(options.destination, options.files, overwrite=options.overwrite) as file,
    ):
        columns = selection.of_columns(columns, "text")
        with contextlib.closing(open_table(options, form, file, columns)) as table:
            log_rows = LogRows(options, options.source, reader, selection, table=table)
            position = options.start
            row_count = 0
            for rows in log_rows:
                row_count += write_rows(table, rows, options.source)
                progress(reader.tell() - position)
                position = reader.tell()
            selection.check_names()
            write_held_back(table, selection, options.source)
        if row_count and not columns and form in ("csv", "parquet"):
            # pyarrow writes 0 rows to Parquet if there is no column, and a line of CSV is a row only if there is one.
            name = {"csv": "CSV", "parquet": "Parquet"}[form]
            complain(
                f"{display_name(options.source)}: no row has a value, and without columns {name} cannot count rows: "
                f"{quantity(row_count, 'row')} left out; --to ndjson and --to arrow keep them"
            )
        if first is not None and log_rows.read != first[0]:
            raise changed_meanwhile(options.source, "rewritten")
    summary = first[1] if first else log_rows.summary()
    return max(log_rows.status, report_damage(options, log_rows, summary))


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
