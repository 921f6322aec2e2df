"""Exports of Datastore and Firestore in one reading, where the beginnings of their files have all columns."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import NoReturn

import cordwood
from cordwood._tables.entity_batches import EntityColumns, EntityRecords, LeftOutRecord, NewColumnsError, is_native
from cordwood._tables.rows import all_columns
from cordwood._tables.schema import ColumnType, TooManyColumnsError
from cordwood.cli._progress import Progress
from cordwood.cli._sources import Tally, named_files, without_fragment
from cordwood.cli.convert.writers import ArrowTable
from cordwood.errors import PayloadError

BATCH_LEN = 4 << 20
_BEGINNING_LEN = 1 << 16
"""So much of each file is read for its columns."""


class Again(Exception):  # noqa: N818 - no error, but a reason to read all of it twice
    """What was found is to be reported, or is not what was expected: it takes two readings."""


class AtOnce:
    """Writes one table of many logs while it learns its columns, which must turn out to be those that it began with.

    Attributes:
        columns: Those of the beginnings of all logs.
        found: What was learned.
        others: Files that are not logs, if they were found in folders.
    """

    def __init__(self, options: argparse.Namespace, reader: Callable[[str], cordwood.Reader], origin: str) -> None:
        """Reads the beginnings.

        Raises:
            Again: They are not all logs of entities, or cannot be read.
        """
        self._reader = reader
        self._origin = origin
        self.others: Tally = Tally()
        self.found: EntityColumns = EntityColumns(origin)
        self._names: list[str] = []
        try:
            for file in named_files(options.sources):
                if file.error or (file.is_in_folder and options.dialect):
                    raise Again
                # What is no file can be read once.
                if not (file.what or os.path.isfile(file.name)):  # noqa: PTH113 - pathlib is slow to import
                    raise Again
                try:
                    what = file.what or without_fragment(file)
                    if not what:
                        self._read_beginning(file.name)
                except cordwood.DialectError as error:
                    if not file.is_in_folder:
                        raise
                    what = error.format
                if what:
                    self.others.add_other(file.name, what)
        except (OSError, TooManyColumnsError, cordwood.CordwoodError) as error:
            raise Again from error
        self.columns: dict[str, ColumnType] = all_columns("entity", self.found.settle())
        if not (self._names and is_native(self.columns)):
            raise Again

    def _read_beginning(self, name: str) -> None:
        with self._reader(name) as reader:
            batch = next(iter(reader.record_batches(target_len=_BEGINNING_LEN)), None)
            self._names.append(name)
            if batch is not None and not self.found.learn(batch, _refuse):
                raise Again

    def write(self, table: ArrowTable, first_of: Callable[[str], str | None]) -> None:
        """Writes all rows. `first_of` is what is in the column that says which log a row is from.

        Raises:
            Again: There is anything to report, or there are other columns.
        """
        try:
            table.write_all(self._records(first_of))
        except (OSError, NewColumnsError, cordwood.CordwoodError) as error:
            raise Again from error
        self.found.finish()

    def _records(self, first_of: Callable[[str], str | None]) -> Iterator[EntityRecords]:
        for name in self._names:
            with self._reader(name) as reader, Progress(name, prints_records=False) as progress:
                position = reader.tell()
                first = {self._origin: first_of(name)}
                for batch in reader.record_batches(target_len=BATCH_LEN):
                    yield EntityRecords(batch, first, _refuse, _ignore, self.found)
                    progress(reader.tell() - position)
                    position = reader.tell()
                if not reader.ok or reader.outcome.kind != "clean":
                    raise Again


def _refuse(_: LeftOutRecord, error: PayloadError) -> NoReturn:
    raise Again from error


def _ignore(name: str) -> None:
    """No name is unknown to what learns them."""
