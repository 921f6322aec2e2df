"""How verbs print the databases in folders."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cordwood._databases import database_folders, database_in, database_lines
from cordwood._inputs.expand import Input
from cordwood._text import quantity
from cordwood.cli._messages import Status, complain
from cordwood.cli._output import print_json
from cordwood.cli._sources import display_name
from cordwood.cli._terminal import print_folded, red
from cordwood.types import Database


def databases_of(files: Iterable[Input]) -> tuple[list[Database], Status]:
    """The databases among the files that were found in folders. Folders that cannot be read are reported."""
    databases, status = [], Status.CLEAN
    for folder in database_folders(file.name for file in files if file.is_in_folder):
        try:
            if database := database_in(folder):
                databases.append(database)
        except OSError as error:
            complain(error)
            status = Status.FAILURE
    return databases, status or (Status.CLEAN if all(database.ok for database in databases) else Status.DAMAGE)


def print_databases(files: Iterable[Input], *, as_json: bool, is_quiet: bool) -> Status:
    """Prints the databases among these files, or with `is_quiet` those with faults, and returns the exit status."""
    databases, status = databases_of(files)
    for database in databases:
        if is_quiet and database.ok:
            continue
        if as_json:
            print_json({"database": database_fields(database)})
            continue
        state = "ok" if database.ok else red("DAMAGED")
        manifest = (
            f": {database.manifest}, {quantity(database.table_count or 0, 'table')}" if not database.problems else ""
        )
        print(f"{display_name(database.path)}: {state}, a database of {database.engine}{manifest}")
        if database.problems:
            print_database_lines(database)
    return status


def print_database_lines(database: Database, *, indent: int = 2) -> None:
    """Prints what is known of a database, in lines with labels."""
    for label, text, is_fault in database_lines(database):
        print_folded(f"{'':{indent}}{label:9}{text}", indent=indent + 9, is_damage=is_fault)


def database_fields(database: Database) -> dict[str, Any]:
    """A database as JSON."""
    problems = [problem._asdict() | {"severity": problem.severity} for problem in database.problems]
    properties = {"ok": database.ok, "right_current": database.right_current}
    return database._asdict() | properties | {"problems": problems}
