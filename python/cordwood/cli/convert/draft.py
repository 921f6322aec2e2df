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
    from cordwood import Record
    from cordwood._tables.columns import Columns, Records
    from cordwood._tables.decoders import LeaveOut
    from cordwood.errors import PayloadError


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

        if self._table is not None:
            faults = _Faults()
            try:
                row_count: int = self._table.write(faults.counted(records), self.columns)
            except GrownError as error:
                self.give_up()
                records = records._replace(begin=error.index)
            except _FAULTS:
                self.give_up()
                # All of them are read again, and have the same faults in the same order.
                records = faults.after_counted(records)
            else:
                return row_count
        row_count = self.columns.learn(records)
        new_table, self._new_table = self._new_table, None
        if new_table and (found := self.columns.types()):
            try:
                self._table = self._open.enter_context(new_table(found))
                self._table.write(_in_silence(records))
            except _FAULTS:
                self.give_up()
        return row_count

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


class _Faults:
    """The faults of records that have been reported."""

    def __init__(self) -> None:
        self._count = 0

    def counted(self, records: Records) -> Records:
        """The same records, whose reported faults are counted."""
        return _each_fault(records, self._count_one)

    def after_counted(self, records: Records) -> Records:
        """The same records, of which the counted faults are not reported again."""
        return _each_fault(records, self._is_new)

    def _count_one(self) -> bool:
        self._count += 1
        return True

    def _is_new(self) -> bool:
        self._count -= 1
        return self._count < 0


def _each_fault(records: Records, is_reported: Callable[[], bool]) -> Records:
    """The same records, of which each fault is reported if `is_reported` says so."""

    def of(leave_out: LeaveOut) -> LeaveOut:
        def call(record: Record, error: PayloadError) -> None:
            if is_reported():
                leave_out(record, error)

        return call

    return records._replace(leave_out=of(records.leave_out), leave_out_value=of(records.leave_out_value))


def _in_silence(records: Records) -> Records:
    """The same records, whose faults have been reported."""
    return records._replace(leave_out=_ignore, leave_out_value=_ignore)


def _ignore(_record: object, _error: object) -> None:
    pass


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
