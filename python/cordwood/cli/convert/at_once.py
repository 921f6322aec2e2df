"""Exports of Datastore and Firestore in one reading, if the beginnings of their files contain all columns."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from typing import NoReturn

import cordwood
from cordwood._inputs.kind import without_fragment
from cordwood._remote import is_url
from cordwood._summary import summary_of_reader
from cordwood._tables.entity_batches import EntityColumns, EntityRecords, LeftOutRecord, NewColumnsError, is_native
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.schema import ColumnType, MisfitError, TooManyColumnsError
from cordwood.cli._messages import complain
from cordwood.cli._options import reader_of
from cordwood.cli._output import new_file
from cordwood.cli._progress import ProgressBar
from cordwood.cli._sources import is_stream
from cordwood.cli._tally import Tally
from cordwood.cli.convert.arrow_table import ArrowTable
from cordwood.cli.convert.columns import origin_value, report_conflicts
from cordwood.cli.convert.log_rows import BATCH_LEN
from cordwood.errors import PayloadError

_BEGINNING_LEN = 1 << 16
"""How many bytes of each file are read to find its columns."""


def convert_at_once(options: argparse.Namespace, form: str, origin: str) -> bool:
    """Writes one table of entities in one reading. Returns whether that was possible: if not, there is no table yet."""
    # What is written to a stream cannot be taken back.
    to = options.destination
    if to == "-" or (os.path.exists(to) and not os.path.isfile(to)):  # noqa: PTH110, PTH113 - pathlib is slow to import
        return False
    try:
        logs = _AtOnce(options, origin)
        with new_file(options.destination, options.files, overwrite=options.overwrite) as file:
            columns: dict[str, ColumnType] = {origin: "text", **logs.columns}
            to_json, shapes = PAYLOADS["entity"].to_json(), PAYLOADS["entity"].shapes()
            with contextlib.closing(ArrowTable(form, file, columns, to_json, shapes, is_stream=False)) as table:
                logs.write(table, form)
    except _Again:
        return False
    report_conflicts(logs.found, form)
    if logs.others.others:
        complain(logs.others.others_text())
    return True


class _Again(Exception):  # noqa: N818 - no error, but a reason to read all of it twice
    """Something must be reported, or is not as expected: two readings are needed."""


class _AtOnce:
    """Writes one table of many logs while it learns its columns, which must turn out to be those that it began with.

    Attributes:
        columns: Those of the beginnings of all logs.
        found: What was learned.
        others: Files that are not logs, if they were found in folders.
    """

    def __init__(self, options: argparse.Namespace, origin: str) -> None:
        """Reads the beginnings.

        Raises:
            _Again: They are not all logs of entities, or cannot be read.
        """
        self._options = options
        self._origin = origin
        self.others: Tally = Tally()
        self.found: EntityColumns = EntityColumns(origin)
        self._names: list[str] = []
        try:
            for file in options.files:
                if file.error or (file.is_in_folder and options.dialect):
                    raise _Again
                if not file.format and (is_stream(file.name) or is_url(file.name)):
                    raise _Again
                try:
                    what = file.not_decoded or without_fragment(file)
                    if not what:
                        self._read_beginning(file.name)
                except cordwood.DialectError as error:
                    if not file.is_in_folder:
                        raise
                    what = error.format
                if what:
                    self.others.add_other(file.name, what)
        except (OSError, TooManyColumnsError, cordwood.CordwoodError) as error:
            raise _Again from error
        self.columns: dict[str, ColumnType] = PAYLOADS["entity"].all_columns(self.found.settle())
        if not (self._names and is_native(self.columns)):
            raise _Again

    def _reader(self, name: str) -> cordwood.Reader:
        return reader_of(self._options, name, self._options.end)

    def _read_beginning(self, name: str) -> None:
        with self._reader(name) as reader:
            batch = next(iter(reader.record_batches(target_len=_BEGINNING_LEN)), None)
            self._names.append(name)
            if batch is None:
                # The reason why a file has no record at all has to be reported.
                if reader.other_log_number is not None:
                    raise _Again
            elif not self.found.learn(batch, _refuse):
                raise _Again

    def write(self, table: ArrowTable, form: str) -> None:
        """Writes all rows.

        Raises:
            _Again: There is something to report, or there are other columns.
        """
        try:
            table.write_all(self._records(form))
        except (NewColumnsError, MisfitError, cordwood.CordwoodError) as error:
            raise _Again from error
        self.found.finish()

    def _records(self, form: str) -> Iterator[EntityRecords]:
        try:
            yield from self._records_of_all(form)
        except OSError as error:
            # This error is from a source. A table that cannot be written is an error.
            raise _Again from error

    def _records_of_all(self, form: str) -> Iterator[EntityRecords]:
        for name in self._names:
            with self._reader(name) as reader, ProgressBar(name, prints_records=False) as progress:
                position = reader.tell()
                first = {self._origin: origin_value(name, self._origin, form)}
                count = 0
                for batch in reader.record_batches(target_len=BATCH_LEN):
                    count += len(batch)
                    yield EntityRecords(batch, first, _refuse, self.found)
                    progress(reader.tell() - position)
                    position = reader.tell()
                if not reader.ok or summary_of_reader(reader, count).is_incomplete:
                    raise _Again


def _refuse(_: LeftOutRecord, error: PayloadError) -> NoReturn:
    raise _Again from error
