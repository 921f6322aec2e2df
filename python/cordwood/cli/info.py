"""Describe files and directories in a few lines.

SOURCE can be a log, a database directory, an export or a directory of runs. The output shows which dialects the logs
have, what their records contain, how many records there are, when they were logged, how much is damaged, and which
commands show more. If there are several logs, the first ten runs get a line each. All logs are read. The exit status is
3 if a log is damaged, or if a file is named after one log but belongs entirely to another. It is also 3 if an export is
incomplete. For a database, the status is 3 if the engine would refuse to open it or would lose data, for example
because files are missing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence

import cordwood
from cordwood import _content
from cordwood._databases import log_number
from cordwood._inputs.exports import export_text
from cordwood._inputs.files import is_one_file
from cordwood._inputs.input import METADATA
from cordwood._jsonable import database_fields, export_fields
from cordwood._summary import ZEROS_ARE, has_no_dialect, zeros_inside_text, zeros_of
from cordwood._tables.payloads import KINDS
from cordwood._text import display_name, quantity, source_name
from cordwood.cli._directories import print_database_lines
from cordwood.cli._messages import Status, complain, worst
from cordwood.cli._options import add_quiet_argument, add_source_arguments, processor_count
from cordwood.cli._output import print_json
from cordwood.cli._reports import NO_DIALECT, format_text, salvaged_text
from cordwood.cli._sources import Tally
from cordwood.cli._terminal import move_command, print_commands, print_folded, red, shell_word, write_command
from cordwood.errors import CordwoodError
from cordwood.types import Database, Engine, Info, ProblemKind, Run, Severity

EXAMPLES = """\
  cordwood info 000003.log
  cordwood info database/ wandb/ export/
"""

HOLDS = {**{kind.name: kind.plural for kind in KINDS}, "export-metadata": METADATA, "other": "other records"}
"""Maps each kind of record to its name in the output."""

MANIFEST_LEN_LONG = 64 << 20
"""A MANIFEST is reported if it is at least this long. A typical one is a thousand times shorter."""

RUNS_MAX = 10
"""The maximum number of runs that get a line of their own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `info`."""
    add_source_arguments(
        parser, "a log; a directory, for all logs in it; a pattern such as '*.log'; a URL", may_be_piped=True
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each SOURCE")
    add_quiet_argument(parser)
    parser.set_defaults(threads=processor_count(), dialect=None)


def run(options: argparse.Namespace) -> Status:
    """Describes each source."""
    return worst(*(_describe(name, options) for name in options.sources))


def _describe(name: str, options: argparse.Namespace) -> Status:
    content = _content.Content()
    tally = Tally([name], as_json=options.json, judges_exports=True)
    for file, log in tally.read(options, _content.read):
        content.add(file, log)
        if has_no_dialect(log.report):
            complain(f"{display_name(file.name)}: {NO_DIALECT}")
        tally.count(Status.CLEAN if log.report.ok else Status.DAMAGE)
    reported_count = len(tally.failures)
    info = content.info(name, tally)
    if not (tally.log_count or info.databases or info.exports):
        for engine, tool in _TOOLS.items():
            if f"{engine} table" in info.other_file_count_by_format:
                complain(f"{display_name(name)}: tables without their list; on a copy: the engine's own repair{tool}")
        if options.json and not tally.failed_count:
            print_json({"source": source_name(name), "error": "no log was found"})
        return tally.status
    # `read` has already reported the earlier failures.
    for path, error in info.failures[reported_count:]:
        complain(error, place=display_name(path))
        tally.failed_count += 1
    if options.json:
        print_json(_fields(info, tally))
    else:
        _print_text(info, tally)
    if info.failures:
        return Status.FAILURE
    return Status.CLEAN if info.ok else Status.DAMAGE


def _fields(info: Info, tally: Tally) -> dict[str, object]:
    """Returns the description as JSON."""
    fields = info._asdict()
    for name in ("path", "unlisted_logs", "damaged_logs", "damaged_manifests", "misnamed_logs", "failures", "report"):
        del fields[name]
    return {
        "source": source_name(info.path),
        **fields,
        "runs": [{"source": run.path, **dict(zip(run._fields[1:], run[1:], strict=True))} for run in info.runs],
        "databases": [database_fields(database) for database in info.databases],
        "exports": [export_fields(export) for export in info.exports],
        "first_time": info.first_time,
        "last_time": info.last_time,
        "other_log_count": len(info.misnamed_logs),
        "unlisted_log_count": len(info.unlisted_logs),
        "damaged_manifest_count": len(info.damaged_manifests),
        "damaged_count": len(info.damaged_logs),
        "failed_count": tally.failed_count,
    }


def _print_text(info: Info, tally: Tally) -> None:
    print(f"{display_name(info.path)}: {info.what}")
    dialects, compressions = info.log_count_by_dialect, info.log_count_by_compression
    formats: Mapping[str, int] = dialects
    # If there are several formats, only the dialects are named.
    if len(dialects) == len(compressions) == 1:
        [dialect], [compression] = dialects, compressions
        formats = {format_text(dialect, None if compression == "none" else compression): info.log_count}
    logs = f": {_listed(formats)}; {quantity(info.file_len, 'byte')}" if info.log_count else ""
    _print("logs", f"{info.log_count:,}{logs}")
    records = f"{info.record_count:,}, {quantity(info.payload_len, 'byte')}"
    held = info.log_count_by_payload
    _print("records", f"{records}: {_held(held, info.log_count)}" if held else records)
    if info.first_time is not None and info.last_time is not None:
        _print("time", f"{_time(info.first_time)} to {_time(info.last_time)}")
    _print_runs(info.runs, are_several=info.log_count > 1)
    _print_databases(info)
    for export in info.exports:
        is_only_one = export.ok and len(info.exports) == 1 and not info.unlisted_logs
        name = "" if is_only_one else f"{display_name(export.path)}: "
        _print("export", f"{name}{export_text(export)}", is_damage=not export.ok)
    if info.unlisted_logs:
        logs = quantity(len(info.unlisted_logs), "log")
        _print("export", f"{logs} of entities without metadata: missing entities would not be noticed")
    _print("damage", _damage(info), is_damage=bool(info.damaged_logs))
    for text in _unneeded(info):
        _print("", text)
    if info.salvaged_count:
        engines = {database.engine for database in info.databases}
        engine = engines.pop() if len(engines) == 1 else None
        _print("", salvaged_text(info.salvaged_count, engine))
    if info.zeros_inside_len:
        _print("zeros", zeros_inside_text(info.zeros_inside_len))
    if zeros := _zeros(info):
        _print("zeros", zeros)
    if info.damaged_manifests:
        _print("files", _live_files_text(info.damaged_manifests), is_damage=True)
    if info.misnamed_logs:
        _print("number", _numbers(info.misnamed_logs), is_damage=True)
    if tally.reported_files:
        _print("others", tally.others_text())
    print_commands("repair", [line for database in info.databases for line in _repairs(database)])
    print_commands("more", _commands(info))


def _repairs(database: Database) -> Iterator[str]:
    """Yields lines that say how to repair a database. Each line names the database or some of its files."""
    paths: dict[ProblemKind, list[str]] = {kind: [] for kind in ProblemKind}
    for problem in database.problems:
        paths[problem.kind].append(problem.path)
    directory = shell_word(database.path)
    for kind, command in _FETCH.items():
        if paths[kind]:
            yield f"git -C {directory} {command}"
            return
    if database.right_current:
        yield write_command(database.right_current.rstrip(), os.path.join(database.path, "CURRENT"))
    not_salvaged: list[str] = []
    for log in paths[ProblemKind.LOG_DAMAGED]:
        commands = _salvage_commands(log)
        not_salvaged += [] if commands else [log]
        yield from commands
    own_repair = f"the engine's own repair{_TOOLS.get(database.engine, '')}"
    if tables := paths[ProblemKind.TABLE_MISSING] + paths[ProblemKind.TABLE_SHORT]:
        without = f"; without {'it' if len(tables) == 1 else 'them'}: {own_repair}"
        yield f"put {_names(tables, 'table')} back{without if database.engine in _TOOLS else ''}"
    logs = not_salvaged + paths[ProblemKind.LOG_MISSING] + paths[ProblemKind.LOG_CUT]
    manifests = paths[ProblemKind.MANIFEST_DAMAGED]
    has_no_list = database.table_count is None and not (database.ok or paths[ProblemKind.MANIFEST_UNKNOWN])
    if manifests and (commands := _salvage_commands(manifests[0], must_repair=True)):
        yield from commands
    elif any(paths[kind] for kind in _OF_REPAIR) or has_no_list:
        yield f"before you open {directory}: {own_repair}"
        if logs:
            yield f"if you have a copy of {_names(logs, 'log')}, put it back instead"
        return
    if logs:
        yield f"put {_names(logs, 'log')} back before you open the database"


_FETCH = {ProblemKind.GIT_LFS_POINTER: "lfs pull", ProblemKind.GIT_ANNEX_POINTER: "annex get ."}

_TOOLS = {Engine.LEVELDB: ", such as plyvel.repair_db", Engine.ROCKSDB: ", such as ldb repair"}

_OF_REPAIR = frozenset((ProblemKind.TABLE_UNLISTED, ProblemKind.LOG_CUT))
"""With these faults, the engine loses writes when it opens the database. The engine's own repair keeps them."""


def _names(paths: Sequence[str], noun: str) -> str:
    """Returns the first path and the number of other paths."""
    more = f" and {quantity(len(paths) - 1, f'more {noun}')}" if len(paths) > 1 else ""
    return f"{display_name(paths[0])}{more}"


def _salvage_commands(path: str, *, must_repair: bool = False) -> list[str]:
    """Returns the commands that replace a damaged log with a salvaged one, or none if nothing can be salvaged.

    With `must_repair`, returns commands only if flipped bits explain all of the damage.
    """
    try:
        report: cordwood.Report = cordwood.verify(path)
    except (OSError, CordwoodError):
        return []
    flips = [region.bit_flip is not None for region in report.skipped if region.severity == Severity.CORRUPTION]
    if not (all(flips) if must_repair else report.record_count or any(flips)):
        return []
    new = f"{os.path.basename(path)}.repaired"
    option = "--repair-bit-flips " if any(flips) else ""
    return [f"cordwood salvage {option}{shell_word(path)} {shell_word(new)}", move_command(new, path)]


def _print_databases(info: Info) -> None:
    """Prints a line for each long MANIFEST, then the database. Of several databases, prints only those with faults."""
    for text in filter(None, map(_long_manifest, info.databases)):
        _print("manifest", text)
    if len(info.databases) == 1:
        print_database_lines(info.databases[0])
        return
    for database in info.databases:
        if not database.ok:
            print(f"  {red('DAMAGED')}  {display_name(database.path)}, a database of {database.engine}")
            print_database_lines(database, indent=4)


def _long_manifest(database: Database) -> str | None:
    """Returns a line about a MANIFEST that takes a while to read.

    The line states the MANIFEST's length. It also suggests a remedy, if there is one.
    """
    path = os.path.join(database.path, database.manifest or "")
    length = 0
    with contextlib.suppress(OSError):
        length = os.path.getsize(path) if database.manifest else 0
    if length < MANIFEST_LEN_LONG:
        return None
    writes = {Engine.LEVELDB, Engine.ROCKSDB}
    cure = f": {database.engine} writes a short one when it opens the database" if database.engine in writes else ""
    return f"{display_name(path)} has {quantity(length, 'byte')}{cure}"


def _print(label: str, text: str, *, is_damage: bool = False) -> None:
    print_folded(f"  {label:9}{text}", indent=11, is_damage=is_damage)


def _held(payloads: Mapping[str, int], log_count: int) -> str:
    """Returns the kinds of records. For several logs, also says how many logs contain each kind."""
    held = {HOLDS[payload]: count for payload, count in payloads.items()}
    if log_count == 1:
        return _listed(held)
    texts = [f"{name} ({quantity(count, 'log')})" for name, count in sorted(held.items())]
    without = log_count - sum(held.values())
    return ", ".join([*texts, *([f"none ({quantity(without, 'log')})"] if without else [])])


def _print_runs(runs: Sequence[Run], *, are_several: bool) -> None:
    """Prints a line about the empty runs. For several logs, also lists the other runs, up to `RUNS_MAX`."""
    if empty := [run.path for run in runs if run.state == "empty"]:
        _print("run", f"without a byte, as if killed before its first record: {_names(empty, 'run')}")
    if not are_several:
        return
    runs = [run for run in runs if run.state != "empty"]
    for run in runs[:RUNS_MAX]:
        start = "" if run.first_time is None else f"{_time(run.first_time)}, "
        state = {"ok": "", "torn": ", with a torn tail", "damaged": f", {red('DAMAGED')}"}[run.state]
        # A name is never wrapped.
        print(f"  run      {start}{quantity(run.record_count, 'record')}{state}: {display_name(run.path)}")
    if len(runs) > RUNS_MAX:
        _print("", f"and {quantity(len(runs) - RUNS_MAX, 'more run')}")


def _live_files_text(manifests: Sequence[str]) -> str:
    """Returns the text from `LOST_EDITS` about damaged MANIFESTs."""
    which = display_name(manifests[0]) if len(manifests) == 1 else f"{len(manifests):,} MANIFEST files"
    whose = "its" if len(manifests) == 1 else "their"
    return f"records of {which} were lost: {whose} live files and column families may be wrong"


def _listed(counts: Mapping[str, int]) -> str:
    """Returns the names as text. If there are several, each is followed by its count."""
    return ", ".join(name if len(counts) == 1 else f"{name} ({count:,})" for name, count in sorted(counts.items()))


def _damage(info: Info) -> str:
    count = len(info.damaged_logs)
    # A log with the wrong number in its name is not damaged.
    none = "none" if info._replace(misnamed_logs=()).ok else "none in the logs"
    if any(database.table_count for database in info.databases):
        none = "none in the logs; tables are not read"
    damage = f"{quantity(info.damaged_len, 'byte')} in {quantity(count, 'log')}" if count else none
    if count and not info.damaged_len:
        # A segment extends past the start of the next one, but its extra bytes do not belong to the log.
        damage = f"{quantity(count, 'damaged log')}, without a damaged byte"
    end = "ends in an incomplete record" if info.torn_count == 1 else "end in incomplete records"
    return f"{damage}; {quantity(info.torn_count, 'log')} {end}" if info.torn_count else damage


def _unneeded(info: Info) -> Iterator[str]:
    """Yields a line for each database that no longer needs some of its damaged logs."""
    # If a table is missing, a damaged log may be the only file containing its writes.
    for database in (database for database in info.databases if database.ok):
        names = [
            path
            for path in info.damaged_logs
            if os.path.dirname(path) == database.path
            and (number := log_number(os.path.basename(path))) is not None
            and number < (database.log_number_min or 0)
        ]
        if names:
            are, their, them = ("is", "its", "it") if len(names) == 1 else ("are", "their", "them")
            reason = f"by the MANIFEST, {their} writes are in tables, and {database.engine} does not read {them}"
            yield f"{_names(names, 'damaged log')} {are} not needed: {reason}"


def _zeros(info: Info) -> str | None:
    """Returns a message about the zeros at the ends of logs. For several logs, it doesn't mention padding."""
    if info.report:
        zeros = zeros_of(info.report)
        return str(zeros) if zeros else None
    if not info.zeros_count:
        return None
    ends = "end" if info.zeros_count == 1 else "ends"
    where = f"at the {ends} of {quantity(info.zeros_count, 'log')}"
    return f"{quantity(info.zeros_len, 'zero')} {where}: {ZEROS_ARE}"


def _numbers(misnamed: Sequence[tuple[str, int | None, int]]) -> str:
    """Returns a message about logs with wrong numbers in their names. Readers find no records in such logs."""
    if len(misnamed) > 1:
        return f"{quantity(len(misnamed), 'log')} belong to logs with other numbers than their names say"
    _, own, other = misnamed[0]
    return f"1 log belongs to log {other}, and its name says {own}"


def _commands(info: Info) -> list[str]:
    """Returns commands that locate the damage and show the contents of the records."""
    path = shell_word(info.path)
    if info.misnamed_logs and is_one_file([info.path]):
        return [f"cordwood cat --log-number {info.misnamed_logs[0][2]} {path}"]
    payloads = [payload for payload in info.log_count_by_payload if payload != "export-metadata"]
    has_lost_batches = "write-batch" in payloads and len(info.damaged_logs) > len(info.damaged_manifests)
    has_lost_batches &= {*payloads} <= {"write-batch", "version-edit"}
    verify = f"cordwood verify {'--as write-batch ' * has_lost_batches}{path}"
    # A table made from an incomplete export would also be incomplete.
    is_short = not all(export.ok for export in info.exports)
    if info.misnamed_logs or len(payloads) > 1 or not info.log_count or is_short:
        return [verify]
    damage = [verify] if info.damaged_logs else []
    payload = next(iter(payloads), "other")
    kind = next((kind for kind in KINDS if kind.name == payload), None)
    # Without `--on-corruption salvage`, records that follow damage in the same block would be left out.
    source = f"--on-corruption salvage {path}" if info.salvaged_count else path
    if kind is None:
        return [*damage, f"cordwood cat {source}"]
    verb = "cat" if kind.best == kind.name else "convert"
    commands = [*damage, f"cordwood {verb} --as {kind.best} {source}"]
    if kind.name == "wandb":
        commands.append(f"cordwood convert --as wandb-run {source}")
    if info.exports or info.unlisted_logs:
        commands.append(f"cordwood convert --as entity --strict --by-kind tables/ {source}")
    return commands


def _time(seconds: float) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
