"""A table of entities for each kind, with the columns of that kind only."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from cordwood._inputs.destinations import check_new_folder, make_folder
from cordwood._native import entity_kinds
from cordwood._tables.columns import Columns, Records, leave_out
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.schema import MisfitError
from cordwood._text import quantity
from cordwood.cli._messages import Failure, Status, complain
from cordwood.cli._new_files import check_new_file, new_file
from cordwood.cli._reopenable import first_stream
from cordwood.cli.convert.columns import columns_found
from cordwood.cli.convert.draft import Draft
from cordwood.cli.convert.logs import Logs
from cordwood.cli.convert.writers import BINARY_FORMATS, SUFFIXES, Table, open_table

if TYPE_CHECKING:
    from cordwood import Record, RecordBatch
    from cordwood._tables.decoders import Row


def convert_by_kind(options: argparse.Namespace, form: str) -> Status:
    """Writes the tables. All logs are read twice: first to find the kinds and their columns."""
    if options.payload != "entity":
        raise ValueError("--by-kind is for entities: --as entity")
    if options.columns or options.limit is not None:
        raise ValueError("--columns and --limit are for one table, not for a table of each kind")
    folder: str = options.by_kind
    suffix = os.path.splitext(folder)[1].lower()
    if suffix in SUFFIXES and not os.path.isdir(folder):
        raise ValueError(
            f"{folder} has the name of a table, and --by-kind makes a folder of them: name a folder, and the form of "
            f"the tables with --to {SUFFIXES[suffix]}"
        )
    check_new_folder(folder, options.sources)
    if stream := first_stream(options.files):
        raise ValueError(f"{stream} can be read only once, and --by-kind reads all files twice")
    logs = Logs(options, form)
    found = _KindColumns(logs.origins)
    status = logs.find(Draft(found))
    if not logs.firsts:
        return status
    if not found.kinds:
        complain("no entity was found: there is no table")
        return status
    paths = _paths(folder, found.kinds, form)
    for path in paths.values():
        check_new_file(path, "table", options.files, overwrite=options.overwrite)
    _check_open_files(len(paths))
    make_folder(folder, next(iter(logs.firsts)))
    with contextlib.ExitStack() as stack:
        tables: dict[str | None, Table] = {}
        for kind, columns in found.kinds.items():
            file = stack.enter_context(new_file(paths[kind], options.files, overwrite=options.overwrite))
            types = {**dict.fromkeys(logs.origins, "text"), **columns_found(options.payload, columns, form)}
            tables[kind] = stack.enter_context(contextlib.closing(open_table(options, form, file, types)))
        logs.write_to(_KindTables(tables, takes_records=form in BINARY_FORMATS))
    return status


def _paths(folder: str, kinds: Iterable[str | None], form: str) -> dict[str | None, str]:
    """The path of the table of each kind.

    Raises:
        Failure: Two kinds would have one file, or a name is too long.
    """
    paths: dict[str | None, str] = {}
    # Some systems do not distinguish such names.
    alike: dict[str, str | None] = {}
    for kind in kinds:
        name = f"{_file_name(kind)}.{form}"
        if len(os.fsencode(name)) > _NAME_LEN_MAX:
            raise Failure(f"the kind {kind!r} is too long for the name of a file: {_ADVICE}")
        other = alike.setdefault(unicodedata.normalize("NFC", name.casefold()), kind)
        if other != kind:
            raise Failure(f"the kinds {other!r} and {kind!r} would have the same file on some systems: {_ADVICE}")
        paths[kind] = os.path.join(folder, name)
    return paths


_ADVICE = "convert them to one table, without --by-kind"

_NAME_LEN_MAX = 255
"""In bytes, as most file systems allow."""


def _file_name(kind: str | None) -> str:
    """The name of the table of a kind, without its extension. An entity without a key has no kind."""
    # A kind never gets one of the first two: its % is followed by two digits.
    if kind is None:
        return "%none"
    return re.sub(r'[/\\:*?"<>|%\x00-\x1f\x7f]|^\.', lambda match: f"%{ord(match[0]):02X}", kind) or "%"


def _check_open_files(count: int) -> None:
    """Checks that so many tables can be open.

    Raises:
        Failure: The system does not allow it.
    """
    try:
        import resource
    except ModuleNotFoundError:
        # Windows has no such limit.
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and count + _OTHER_FILES > limit:
        raise Failure(
            f"{quantity(count, 'kind')}, and the table of each is an open file, of which the system allows {limit:,}: "
            f"raise the limit with ulimit -n {count + _OTHER_FILES}, or {_ADVICE}"
        )


_OTHER_FILES = 64
"""Room for the other open files: the log, stdin, stdout, stderr, and those of libraries."""


class _KindColumns(Columns):
    """Learns the columns of each kind."""

    def __init__(self, first: Sequence[str]) -> None:
        super().__init__(PAYLOADS["entity"])
        self.kinds: dict[str | None, Columns] = {}
        self._first_columns = first

    def learn(self, records: Records) -> int:
        row_count = 0
        for kind, some in _by_kind(records):
            if kind not in self.kinds:
                self.kinds[kind] = Columns(PAYLOADS["entity"], self._first_columns)
            row_count += self.kinds[kind].learn(some)
        return row_count


def _by_kind(records: Records) -> Iterator[tuple[str | None, Records]]:
    """The records of each kind. Those that cannot be read are left out."""
    kinds, left_out = entity_kinds(cast("RecordBatch | list[Record]", records.source))
    for index in left_out:
        leave_out(PAYLOADS["entity"], records, index)
    for kind, indices in kinds:
        yield kind, records._replace(source=[records.record(index) for index in indices])


class _KindTables:
    """Writes each row to the table of its kind."""

    def __init__(self, tables: dict[str | None, Table], *, takes_records: bool) -> None:
        self.takes_records: bool = takes_records
        self._tables = tables

    def write(self, records: Records) -> int:
        """Writes the rows of records. Returns how many there are."""
        if self.takes_records:
            return sum(self._table(kind).write(some) for kind, some in _by_kind(records))
        by_kind: dict[str | None, list[Row]] = {}
        for row in records.rows:
            by_kind.setdefault(row.get("__kind__"), []).append(row)
        return sum(self._table(kind).write(Records(rows)) for kind, rows in by_kind.items())

    def _table(self, kind: str | None) -> Table:
        if kind not in self._tables:
            raise MisfitError(f"the kind {kind!r} was not there when the kinds were found")
        return self._tables[kind]

    def close(self) -> None:
        """Whoever opened the tables closes them."""
