"""How verbs print the databases and the exports in folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from cordwood._databases import database_lines, databases_of
from cordwood._inputs.expand import Input
from cordwood._inputs.kind import is_of_export
from cordwood._text import quantity
from cordwood.cli._messages import Status, complain
from cordwood.cli._output import print_json
from cordwood.cli._sources import display_name
from cordwood.cli._terminal import print_folded, red
from cordwood.types import Database, Export


def print_databases(files: Sequence[Input], *, as_json: bool, is_quiet: bool) -> Status:
    """Prints the databases among these files, or with `is_quiet` those with faults, and returns the exit status."""
    databases, failures = databases_of(files)
    for _, error in failures:
        complain(error)
    for database in databases:
        if is_quiet and database.ok:
            continue
        if as_json:
            print_json({"database": database_fields(database)})
            continue
        state = "ok" if database.ok else red("DAMAGED")
        tables = quantity(database.table_count or 0, "table")
        whole = "" if database.problems else f": {database.manifest}, {tables}"
        print(f"{display_name(database.path)}: {state}, a database of {database.engine}{whole}")
        if database.problems:
            print_database_lines(database)
    if failures:
        return Status.FAILURE
    return Status.CLEAN if all(database.ok for database in databases) else Status.DAMAGE


def print_database_lines(database: Database, *, indent: int = 2) -> None:
    """Prints the known facts about a database, in lines with labels."""
    for label, text, is_fault in database_lines(database):
        print_folded(f"{'':{indent}}{label:9}{text}", indent=indent + 9, is_damage=is_fault)


def database_fields(database: Database) -> dict[str, Any]:
    """A database as JSON."""
    problems = [problem._asdict() | {"severity": problem.severity} for problem in database.problems]
    properties = {"ok": database.ok, "right_current": database.right_current}
    return database._asdict() | properties | {"problems": problems}


def report_exports(files: Sequence[Input], *, must_be_complete: bool) -> Status:
    """Reports the exports among these files that are not complete, and returns the exit status."""
    if not any(is_of_export(file.name) for file in files):
        return Status.CLEAN
    from cordwood._inputs.exports import exports_of

    # Missing files are errors of their own.
    short = [export for export in exports_of(files) if not (export.ok or export.missing_files)]
    for export in short:
        complain(f"{display_name(export.path)}: {export_text(export)}")
    return Status.DAMAGE if short and must_be_complete else Status.CLEAN


def export_text(export: Export) -> str:
    """How much an export contains, and how much it should contain."""

    def text(count: int | None, file_len: int) -> str:
        entities = "" if count is None else f"{count:,} {'entity' if count == 1 else 'entities'} in "
        return f"{entities}{quantity(file_len, 'byte')}"

    found = text(export.entity_count, export.file_len)
    count = None if export.entity_count is None else export.stated_entity_count
    if export.stated_len is None:
        stated = ""
    elif (count, export.stated_len) == (export.entity_count, export.file_len):
        stated = ", as its metadata states"
    else:
        stated = f"; its metadata states {text(count, export.stated_len)}"
    missing, empty = _listed(export.missing_files, "missing"), _listed(export.empty_files, "empty")
    return f"{found}{stated}{missing}{empty}"


def _listed(paths: Sequence[str], state: str) -> str:
    """Which listed files are in this state, after a semicolon."""
    if not paths:
        return ""
    more = f" and {quantity(len(paths) - 1, 'more listed file')} are" if len(paths) > 1 else " is"
    return f"; {os.path.basename(paths[0])}{more} {state}"  # noqa: PTH119 - pathlib is slow to import


def export_fields(export: Export) -> dict[str, Any]:
    """An export as JSON."""
    fields = export._asdict()
    del fields["files"]
    return {**fields, "file_count": len(export.files), "ok": export.ok}
