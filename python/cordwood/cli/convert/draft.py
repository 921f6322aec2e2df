"""One reading instead of two: a table is written while its columns are still being learned."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

from cordwood._tables.payloads import ENTITY, PAYLOADS
from cordwood._tables.schema import ColumnType, MisfitError
from cordwood.cli._messages import Failure
from cordwood.cli._new_files import new_file
from cordwood.cli._selection import Selection
from cordwood.cli.convert.writers import BINARY_FORMATS, Table, open_table

if TYPE_CHECKING:
    from cordwood._tables.columns import Columns, Records


@contextlib.contextmanager
def new_table(options: argparse.Namespace, form: str, columns: dict[str, ColumnType]) -> Generator[Table]:
    """The table at the destination, which gets its name once it is complete."""
    with (
        new_file(options.destination, options.files, overwrite=options.overwrite) as file,
        contextlib.closing(open_table(options, form, file, columns)) as table,
    ):
        yield table


class Draft:
    """The first reading of logs, which learns the columns of a table.

    If it can, it writes the table at the same time, with the columns of the first records. If all later records fit
    these columns, the table is complete, and equal to that of a second reading. If not, the file is removed.

    Attributes:
        columns: The columns that have been learned.
    """

    def __init__(
        self,
        columns: Columns,
        new_table: Callable[[dict[str, ColumnType]], AbstractContextManager[Table]] | None = None,
    ) -> None:
        """Opens the table with `new_table` when the first columns are known; `None` if there is to be none."""
        self.columns = columns
        self._new_table = new_table
        self._open = contextlib.ExitStack()
        self._table: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_up()

    def learn(self, records: Records) -> int:
        """Takes records into account. Returns the number of their rows.

        Raises:
            HasFirstError: A row has a column with the name of one that the table begins with.
            TooManyColumnsError: There are too many columns.
        """
        from cordwood._tables.columns import GrownError

        if self._table is None:
            return self._learn_before_table(records)
        row_count = 0
        try:
            for batch in self._table.batches(records, self.columns):
                row_count += len(batch)
                self._write(batch)
        except GrownError as error:
            self.give_up()
            row_count += self.columns.learn(records._replace(begin=error.index))
        return row_count

    def _learn_before_table(self, records: Records) -> int:
        """`learn` before there is a table: the first columns open it."""
        from cordwood._tables.columns import ignore

        row_count = self.columns.learn(records)
        new_table, self._new_table = self._new_table, None
        if new_table and (found := self.columns.types()):
            try:
                self._table = self._open.enter_context(new_table(found))
                # The faults of these records have been reported.
                self._table.write(records._replace(leave_out=ignore, leave_out_value=ignore))
            except _FAULTS:
                self.give_up()
        return row_count

    def _write(self, batch: Any) -> None:
        """Writes a batch. After a fault of the table, which is then removed, the rest of its batches only teach."""
        if self._table is not None:
            try:
                self._table.write_batch(batch)
            except OSError:
                self.give_up()

    def give_up(self) -> None:
        """Removes the unfinished table."""
        self._table = self._new_table = None
        with contextlib.suppress(_GivenUpError, *_FAULTS), self._open:
            raise _GivenUpError

    def is_table(self) -> bool:
        """Whether the table is complete, which then gets its name."""
        is_table = self._table is not None
        self._table = self._new_table = None
        self._open.close()
        return is_table


class _GivenUpError(Exception):
    """The table is of no use."""


_FAULTS = (Failure, MisfitError, OSError)
"""Faults of the table. The second reading meets and reports them."""


def draft_of(options: argparse.Namespace, selection: Selection, form: str, first: Sequence[str] = ()) -> Draft:
    """The first reading for a table, which begins with the columns `first`."""
    from cordwood._tables.columns import Columns

    payload = PAYLOADS[options.payload]
    # CSV has the names of rows, of which the native module escapes those that are not UTF-8, as in JSON.
    are_rows = form not in BINARY_FORMATS and payload.kind is not ENTITY
    if are_rows or not payload.is_native:
        return Draft(Columns(payload, are_rows=are_rows))
    columns = Columns(payload, first, chosen=selection.columns)
    # A pipe cannot be removed.
    is_pipe = os.path.exists(options.destination) and not os.path.isfile(options.destination)
    if form not in BINARY_FORMATS or selection.is_active or is_pipe or options.destination == "-":
        return Draft(columns)
    types: dict[str, ColumnType] = dict.fromkeys(first, "text")
    return Draft(columns, lambda found: new_table(options, form, {**types, **payload.all_columns(found)}))
