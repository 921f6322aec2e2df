"""A table of entities for each kind, with the columns of that kind only."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cordwood._inputs.destinations import check_new_folder, make_folder
from cordwood._tables.learner import Columns
from cordwood._tables.payloads import PAYLOADS
from cordwood.cli._messages import Status
from cordwood.cli._output import check_destination, new_file
from cordwood.cli._sources import first_stream
from cordwood.cli.convert.columns import columns_found
from cordwood.cli.convert.many_logs import Logs
from cordwood.cli.convert.writers import Table, open_table

if TYPE_CHECKING:
    from cordwood._tables.decoders import Row


def convert_by_kind(options: argparse.Namespace, form: str) -> Status:
    """Writes the tables. All logs are read twice: first to find the kinds and their columns."""
    if options.payload != "entity":
        raise ValueError("--by-kind is for entities: --as entity")
    if options.columns or options.limit is not None:
        raise ValueError("--columns and --limit are for one table, not for a table of each kind")
    folder: str = options.by_kind
    check_new_folder(folder, options.sources)
    if stream := first_stream(options.files):
        raise ValueError(f"{stream} can be read only once, and --by-kind reads all files twice")
    logs, found = Logs(options, form), _KindColumns()
    status = logs.find(found)
    if not logs.firsts:
        return status
    first = next(iter(logs.firsts))
    make_folder(folder, first)
    with contextlib.ExitStack() as stack:
        tables: dict[str | None, Table] = {}
        for kind, columns in found.kinds.items():
            path = os.path.join(folder, f"{_file_name(kind)}.{form}")  # noqa: PTH118 - pathlib is slow to import
            check_destination(first, path, overwrite=options.overwrite)
            file = stack.enter_context(new_file(path, options.files, overwrite=options.overwrite))
            types = {logs.origin: "text", **columns_found(options.payload, columns, form)}
            tables[kind] = stack.enter_context(contextlib.closing(open_table(options, form, file, types)))
        written = logs.write_to(_KindTables(tables))
    return status or written


def _file_name(kind: str | None) -> str:
    """The name of the table of a kind. An entity without a key has no kind."""
    # No kind begins and ends with two underscores.
    if kind is None:
        return "__none__"
    return re.sub(r'[/\\:*?"<>|%\x00-\x1f\x7f]|^\.', lambda match: f"%{ord(match[0]):02X}", kind)


class _KindColumns(Columns):
    """Learns the columns of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[str | None, Columns] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        kind = row.get("__kind__")
        if kind not in self.kinds:
            self.kinds[kind] = Columns(PAYLOADS["entity"].shapes())
        self.kinds[kind].add(row)


class _KindTables:
    """Writes each row to the table of its kind."""

    takes_records = False

    def __init__(self, tables: dict[str | None, Table]) -> None:
        self._tables = tables

    def write(self, rows: list[Row]) -> int:
        """Writes some rows. Returns how many there are."""
        by_kind: dict[str | None, list[Row]] = {}
        for row in rows:
            by_kind.setdefault(row.get("__kind__"), []).append(row)
        for kind, some in by_kind.items():
            self._tables[kind].write(some)
        return len(rows)

    def close(self) -> None:
        """Whoever opened the tables closes them."""
