"""Prints the databases and exports in directories."""

from __future__ import annotations

from collections.abc import Sequence

from cordwood._databases import database_lines
from cordwood._inputs.exports import export_text, exports_of
from cordwood._inputs.input import Input
from cordwood._jsonable import database_fields, export_fields
from cordwood._text import display_name, quantity
from cordwood.cli._messages import Status, complain
from cordwood.cli._output import print_json
from cordwood.cli._terminal import fault_count, print_commands, print_folded, red, shell_word
from cordwood.types import Database, Export


def print_databases(databases: Sequence[Database], *, as_json: bool, is_quiet: bool) -> tuple[Status, dict[str, int]]:
    """Prints the databases. With `is_quiet`, prints only those with faults.

    Returns the exit status and the database totals to include in JSON.

    The text output ends with the number of databases, because the totals for the logs don't include it.
    """
    for database in databases:
        if is_quiet and database.ok:
            continue
        if as_json:
            print_json({"database": database_fields(database)})
            continue
        state = "ok" if database.ok else red("DAMAGED")
        line = f"{display_name(database.path)}: {state}, a database of {database.engine}"
        if database.ok and (count := database.table_count) is not None:
            print(f"{line}: {database.manifest}, {quantity(count, 'table')}")
            print_database_lines(database, is_brief=True)
        else:
            print(line)
            print_database_lines(database)
        if not database.ok:
            print_commands("more", [f"cordwood info {shell_word(database.path)}"])
    damaged_count = sum(not database.ok for database in databases)
    if databases and not (as_json or is_quiet):
        print(f"total: {quantity(len(databases), 'database')}, {fault_count(damaged_count, 'damaged')}")
    counts = {"database_count": len(databases), "damaged_database_count": damaged_count}
    return Status.DAMAGE if damaged_count else Status.CLEAN, counts


def print_database_lines(database: Database, *, indent: int = 2, is_brief: bool = False) -> None:
    """Prints `database_lines`."""
    for label, text, is_fault in database_lines(database, is_brief=is_brief):
        print_folded(f"{'':{indent}}{label:9}{text}", indent=indent + 9, is_damage=is_fault)


def print_exports(
    exports: Sequence[Export], files: Sequence[Input], *, as_json: bool, is_quiet: bool
) -> tuple[Status, dict[str, int]]:
    """Prints which of these files are exports, and the number of exports.

    With `is_quiet`, prints only incomplete exports. Returns the exit status and the export totals to include in JSON.
    """
    for export in exports:
        if is_quiet and export.ok:
            continue
        name, text = display_name(export.path), export_text(export)
        if as_json:
            print_json({"export": export_fields(export)})
        elif export.ok:
            print(f"{name}: ok, an export: {text}")
        else:
            print(f"{name}: {red('INCOMPLETE')}, an export")
            print_folded(f"  export   {text}", indent=11, is_damage=True)
    incomplete_count = sum(not export.ok for export in exports)
    if exports and not (as_json or is_quiet):
        print(f"total: {quantity(len(exports), 'export')}, {fault_count(incomplete_count, 'incomplete')}")
    status = Status.DAMAGE if any(_is_short(export, files) for export in exports) else Status.CLEAN
    return status, {"export_count": len(exports), "incomplete_export_count": incomplete_count}


def report_exports(files: Sequence[Input]) -> Status:
    """Reports on stderr which exports among these files are incomplete, and returns the exit status."""
    exports, failures = exports_of(files)
    for path, error in failures:
        complain(error, place=display_name(path))
    short = [export for export in exports if _is_short(export, files)]
    for export in short:
        complain(f"{display_name(export.path)}: {export_text(export)}")
    return Status.FAILURE if failures else Status.DAMAGE if short else Status.CLEAN


def _is_short(export: Export, files: Sequence[Input]) -> bool:
    """Checks whether an export is incomplete for a reason that is not reported elsewhere.

    Each missing file is reported as a separate error, unless the user named the metadata file itself.
    """
    is_named = any(file.name == export.path and not file.is_in_directory for file in files)
    return not export.ok and (is_named or not export.missing_files)
