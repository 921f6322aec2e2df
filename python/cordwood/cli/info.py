"""Describe files and folders in a few lines.

For a log, a folder of a database, an export or a folder of runs: the dialects of its logs, what their records contain,
how many there are, when they were logged, how much is damaged, and the commands that show more. Among several logs, the
first ten runs have a line each. All logs are read. Exit status 3 if one is damaged, or if the engine of a database
would refuse it or lose data, because files that it needs are missing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import cordwood
from cordwood._inputs.each import Progress, each
from cordwood._inputs.expand import Input, is_one_file
from cordwood._inputs.exports import Entities, overall_message, stated, total
from cordwood._inputs.kind import METADATA, is_of_export
from cordwood._native import decode_wandb
from cordwood._summary import ZEROS_ARE, ZerosAtEnd, summary_of_report, zeros_inside_text
from cordwood._tables.payloads import KINDS, VERSION_EDIT, kinds_of
from cordwood._text import quantity
from cordwood.cli._databases import database_fields, databases_of, print_database_lines
from cordwood.cli._messages import Status, complain
from cordwood.cli._options import add_source_arguments, processor_count
from cordwood.cli._output import print_json
from cordwood.cli._progress import ProgressBar
from cordwood.cli._reports import NO_DIALECT, format_text, salvaged_text
from cordwood.cli._sources import SourceFailure, display_name, inputs_of, is_stream, source_name
from cordwood.cli._tally import Tally, take_results
from cordwood.cli._terminal import print_folded, red
from cordwood.types import Database

EXAMPLES = """\
  cordwood info 000003.log
  cordwood info database/ wandb/ export/
"""

HOLDS = {**{kind.name: kind.plural for kind in KINDS}, "export-metadata": METADATA, "other": "other records"}
"""What the records of a log contain, by the names of their kinds where there is one."""

FOLDERS = {
    "version-edit": ("logs of a database", {"version-edit", "write-batch"}),
    "entity": ("an export of Datastore or Firestore", {"entity", "export-metadata"}),
    "wandb": ("runs of Weights & Biases", {"wandb"}),
}
"""What a folder is if a log in it contains this, and what the others in it may contain."""

RUNS_MAX = 10
"""At most this many runs have a line each."""


class _Run(NamedTuple):
    source: str
    record_count: int
    first_time: float | None
    last_time: float | None
    state: str
    """"ok", "torn" or "damaged"."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `info`."""
    add_source_arguments(parser, "a log; a folder, for all logs in it; a pattern such as '*.log'; a URL")
    parser.add_argument("--json", action="store_true", help="one JSON object for each SOURCE")


def run(options: argparse.Namespace) -> Status:
    """Describes each source."""
    files = [inputs_of([name]) for name in options.sources]
    results = each(list(chain.from_iterable(files)), _verified, processor_count(), shown=ProgressBar)
    statuses = [_describe(name, own, results, options) for name, own in zip(options.sources, files, strict=True)]
    return Status.FAILURE if Status.FAILURE in statuses else max(statuses)


def _verified(file: Input, threads: int, progress: Progress) -> cordwood.Report:
    path = file.name
    if path == "-":
        raise SourceFailure("info takes files and folders, not stdin: copy it to a file; ./- is a file")
    if is_stream(path):
        raise SourceFailure("info reads a log more than once, and this is a pipe or a device: copy it to a file")
    return cordwood.verify(path, threads=threads, progress=progress)


class _Logs:
    """What the logs of a source contain, together.

    Attributes:
        counts: The sums over all logs, as `--json` names them.
        dialects: How many logs are in each dialect.
        formats: The same with their compression, in words.
        compressions: How many logs have each compression.
        payloads: How many contain what, by the keys of `HOLDS`.
        runs: The runs of Weights & Biases.
        entities: How many entities each log of an export contains.
        stated_entities: How many an export should contain, according to its metadata.
        damaged_manifests: The paths of damaged ones.
        numbers: For each file that belongs entirely to another log: the number in its name, and that in its fragments.
        zeros: Those at the ends of the logs.
    """

    def __init__(self) -> None:
        names = (
            *("record_count", "salvaged_count", "payload_len", "file_len", "damaged_len", "torn_count"),
            *("zeros_count", "zeros_len", "zeros_inside_len"),
        )
        self.counts: dict[str, int] = dict.fromkeys(names, 0)
        self.dialects: dict[str, int] = {}
        self.formats: dict[str, int] = {}
        self.compressions: dict[str, int] = {}
        self.payloads: dict[str, int] = {}
        self.runs: list[_Run] = []
        self.entities: list[Entities] = []
        self.stated_entities: list[Entities] = []
        self.damaged_manifests: list[str] = []
        self.numbers: list[tuple[int | None, int]] = []
        self.zeros: list[ZerosAtEnd] = []

    def add(self, path: str, report: cordwood.Report) -> Status:
        """Adds what a log contains."""
        summary = summary_of_report(report)
        if summary.has_no_dialect:
            complain(f"{display_name(path)}: {NO_DIALECT}")
        payload = self._payload(path, report)
        if payload:
            _count(self.payloads, payload)
        if payload == "entity":
            self.entities.append(Entities(report.record_count, report.file_len or 0))
        if not report.ok and (payload == VERSION_EDIT.name or VERSION_EDIT.is_name(path)):
            self.damaged_manifests.append(path)
        if report.other_log_number is not None:
            self.numbers.append((report.log_number, report.other_log_number))
        _count(self.dialects, report.dialect)
        _count(self.formats, format_text(report.dialect, report.compression))
        _count(self.compressions, report.compression or "none")
        counts = self.counts
        counts["record_count"] += report.record_count
        counts["salvaged_count"] += report.salvaged_count
        counts["payload_len"] += report.payload_len
        counts["file_len"] += report.file_len or 0
        counts["damaged_len"] += report.len_by_severity.get(cordwood.Severity.CORRUPTION, 0)
        counts["torn_count"] += summary.is_torn
        counts["zeros_inside_len"] += sum(region.length for region in summary.zeros_inside)
        if zeros := summary.zeros_at_end:
            self.zeros.append(zeros)
            counts["zeros_count"] += not zeros.is_padding
            counts["zeros_len"] += 0 if zeros.is_padding else zeros.length
        return Status.CLEAN if report.ok else Status.DAMAGE

    def _payload(self, path: str, report: cordwood.Report) -> str | None:
        """What the records contain, by the keys of `HOLDS`; `None` if there are none and the dialect does not say."""
        log: dict[str, Any] = {"dialect": report.dialect, "log_number": report.log_number, "on_corruption": "salvage"}
        with cordwood.Reader(path, **log) as reader:
            first = next(reader.records(), None)
        if is_of_export(path) and (message := overall_message(path)) is not None:
            self.stated_entities.append(stated(message))
            return "export-metadata"
        # For a log without records, it is known only if the dialect says it.
        fits = kinds_of(first.data if first else b"", report.dialect)
        if not (first or fits):
            return None
        payload = fits[0].name if len(fits) == 1 else "other"
        if payload == "wandb":
            is_torn = report.outcome.kind == cordwood.OutcomeKind.TORN_TAIL
            state = "torn" if report.ok and is_torn else "ok" if report.ok else "damaged"
            first_time, last_time = _times_of(path, log)
            self.runs.append(_Run(source_name(path), report.record_count, first_time, last_time, state))
        return payload


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _describe(
    name: str,
    files: Sequence[Input],
    results: Iterator[tuple[Input, cordwood.Report | str | Exception]],
    options: argparse.Namespace,
) -> Status:
    as_json = options.json
    logs = _Logs()
    tally = take_results([name], islice(results, len(files)), logs.add, as_json=as_json, tally=Tally())
    databases, status = databases_of(files)
    if not tally.log_count:
        if as_json and not tally.failed_count:
            print_json({"source": source_name(name), "error": "no log was found"})
        return tally.status
    is_one = len(files) == 1 and not files[0].is_in_folder
    what = "a log" if is_one else "a folder" if os.path.isdir(name) else "several files"  # noqa: PTH112
    if is_one and logs.zeros and logs.zeros[0].is_all:
        what = "only zeros"
    if what == "a folder":
        what = _folder(logs.payloads, databases) or what
    times = [time for run in logs.runs for time in (run.first_time, run.last_time) if time is not None]
    fields: dict[str, Any] = {
        "source": source_name(name),
        "what": what,
        "log_count": tally.log_count,
        "log_count_by_dialect": logs.dialects,
        "log_count_by_compression": logs.compressions,
        "log_count_by_payload": logs.payloads,
        **logs.counts,
        "other_log_count": len(logs.numbers),
        "first_time": min(times, default=None),
        "last_time": max(times, default=None),
        "runs": [run._asdict() for run in logs.runs],
        "entities": total(logs.entities)._asdict() if logs.entities else None,
        "stated_entities": total(logs.stated_entities)._asdict() if logs.stated_entities else None,
        "databases": [database_fields(database) for database in databases],
        "damaged_manifest_count": len(logs.damaged_manifests),
        "damaged_count": tally.damaged_count,
        "failed_count": tally.failed_count,
        "other_file_count_by_format": tally.others,
    }
    if as_json:
        print_json(fields)
    else:
        _print_text(name, fields, tally, logs, databases)
    return tally.status if tally.status == Status.FAILURE else max(tally.status, status)


def _print_text(name: str, fields: dict[str, Any], tally: Tally, logs: _Logs, databases: Sequence[Database]) -> None:
    """Prints what `--json` has as `fields`."""
    print(f"{display_name(name)}: {fields['what']}")
    # Among several formats, only the dialects are named.
    formats = logs.formats if len(logs.formats) == 1 else logs.dialects
    _print("logs", f"{tally.log_count:,}: {_listed(formats)}; {quantity(fields['file_len'], 'byte')}")
    records = f"{fields['record_count']:,}, {quantity(fields['payload_len'], 'byte')}"
    _print("records", f"{records}: {_held(logs.payloads, tally.log_count)}" if logs.payloads else records)
    if fields["first_time"] is not None:
        _print("time", f"{_time(fields['first_time'])} to {_time(fields['last_time'])}")
    if tally.log_count > 1:
        _print_runs(logs.runs)
    _print_databases(databases)
    if logs.stated_entities and os.path.isdir(name):  # noqa: PTH112
        found, should = total(logs.entities), total(logs.stated_entities)
        _print("export", _export(found, should), is_damage=found != should)
    _print("damage", _damage(tally.damaged_count, fields), is_damage=tally.damaged_count > 0)
    if salvaged_count := fields["salvaged_count"]:
        _print("", salvaged_text(salvaged_count))
    if inside_len := fields["zeros_inside_len"]:
        _print("zeros", zeros_inside_text(inside_len))
    if zeros := _zeros(logs.zeros, fields):
        _print("zeros", zeros)
    if logs.damaged_manifests:
        _print("files", _live_files_text(logs.damaged_manifests), is_damage=True)
    if logs.numbers:
        _print("number", _numbers(logs.numbers))
    if tally.others:
        _print("others", tally.others_text())
    repairs = [
        f"echo {database.right_current.rstrip()} > {_shell_word(os.path.join(database.path, 'CURRENT'))}"  # noqa: PTH118
        for database in databases
        if database.right_current
    ]
    _print_commands("repair", repairs)
    _print_commands("more", _commands(name, tally.damaged_count, logs.payloads, logs.numbers))


def _print_commands(label: str, commands: Sequence[str]) -> None:
    """Prints commands, which are meant to be copied, so they are not folded."""
    for command in commands:
        print(f"  {label:9}{command}")
        label = ""


def _print_databases(databases: Sequence[Database]) -> None:
    """Prints a database, or which of several have faults."""
    if len(databases) == 1:
        print_database_lines(databases[0])
        return
    for database in databases:
        if not database.ok:
            print(f"  {red('DAMAGED')}  {display_name(database.path)}, a database of {database.engine}")
            print_database_lines(database, indent=4)


def _print(label: str, text: str, *, is_damage: bool = False) -> None:
    print_folded(f"  {label:9}{text}", indent=11, is_damage=is_damage)


def _folder(payloads: dict[str, int], databases: Sequence[Database]) -> str | None:
    """What a folder is whose logs contain this; `None` if that is several things, or mostly unknown."""
    known = payloads.keys() - {"other"}
    if databases and known <= FOLDERS["version-edit"][1]:
        return f"a database of {databases[0].engine}" if len(databases) == 1 else f"{len(databases):,} databases"
    for payload, (text, held) in FOLDERS.items():
        known_count = sum(payloads[name] for name in known)
        if payload in known and known <= held and known_count > payloads.get("other", 0):
            return text
    return None


def _held(payloads: dict[str, int], log_count: int) -> str:
    """What the records contain, and, for several logs, in how many logs they do."""
    held = {HOLDS[payload]: count for payload, count in payloads.items()}
    if log_count == 1:
        return _listed(held)
    texts = [f"{name} ({quantity(count, 'log')})" for name, count in sorted(held.items())]
    without = log_count - sum(held.values())
    return ", ".join([*texts, *([f"none ({quantity(without, 'log')})"] if without else [])])


def _print_runs(runs: list[_Run]) -> None:
    for run in runs[:RUNS_MAX]:
        begin = "" if run.first_time is None else f"{_time(run.first_time)}, "
        state = {"ok": "", "torn": ", with a torn tail", "damaged": f", {red('DAMAGED')}"}[run.state]
        # A name is not folded.
        print(f"  run      {begin}{quantity(run.record_count, 'record')}{state}: {display_name(run.source)}")
    if len(runs) > RUNS_MAX:
        _print("", f"and {quantity(len(runs) - RUNS_MAX, 'more run')}")


def _export(found: Entities, should: Entities) -> str:
    """How much an export contains, and how much it should contain."""

    def text(entities: Entities) -> str:
        noun = "entity" if entities.entity_count == 1 else "entities"
        return f"{entities.entity_count:,} {noun} in {quantity(entities.file_len, 'byte')}"

    if found == should:
        return f"{text(found)}, as its metadata states"
    return f"{text(found)}; its metadata states {text(should)}"


def _live_files_text(manifests: list[str]) -> str:
    """What damage to a MANIFEST means, as `LOST_EDITS` says it."""
    which = display_name(manifests[0]) if len(manifests) == 1 else f"{len(manifests):,} MANIFEST files"
    whose = "its" if len(manifests) == 1 else "their"
    return f"records of {which} were lost: {whose} live files and column families may be wrong"


def _listed(counts: dict[str, int]) -> str:
    """The names, each with its count if there are several."""
    return ", ".join(name if len(counts) == 1 else f"{name} ({count:,})" for name, count in sorted(counts.items()))


def _damage(damaged_count: int, counts: dict[str, Any]) -> str:
    damage = (
        f"{quantity(counts['damaged_len'], 'byte')} in {quantity(damaged_count, 'log')}" if damaged_count else "none"
    )
    torn = quantity(counts["torn_count"], "log")
    end = "ends in an incomplete record" if counts["torn_count"] == 1 else "end in incomplete records"
    return f"{damage}; {torn} {end}" if counts["torn_count"] else damage


def _zeros(zeros: list[ZerosAtEnd], counts: dict[str, Any]) -> str | None:
    """A text about the zeros at the ends of logs. Among several logs, those that are padding are not mentioned."""
    if counts["log_count"] == 1 and zeros:
        return str(zeros[0])
    if not counts["zeros_count"]:
        return None
    ends = "end" if counts["zeros_count"] == 1 else "ends"
    what = f"{quantity(counts['zeros_len'], 'zero')} at the {ends} of {quantity(counts['zeros_count'], 'log')}"
    return f"{what}: {ZEROS_ARE}"


def _numbers(numbers: list[tuple[int | None, int]]) -> str:
    """A text about logs in which no record is found."""
    if len(numbers) > 1:
        return f"{quantity(len(numbers), 'log')} belong to logs with other numbers than their names say"
    own, other = numbers[0]
    return f"1 log belongs to log {other}, and its name says {own}"


def _commands(
    name: str, damaged_count: int, payloads: dict[str, int], numbers: list[tuple[int | None, int]]
) -> list[str]:
    """The commands that show more: where the damage is, and what the records contain."""
    path = _shell_word(name)
    if numbers and is_one_file([name]):
        return [f"cordwood cat --log-number {numbers[0][1]} {path}"]
    verify = f"cordwood verify {path}"
    payloads = {payload: count for payload, count in payloads.items() if payload != "export-metadata"}
    if numbers or len(payloads) > 1:
        return [verify]
    damage = [verify] if damaged_count else []
    payload = next(iter(payloads), "other")
    kind = next((kind for kind in KINDS if kind.name == payload), None)
    if kind is None:
        return [*damage, f"cordwood cat {path}"]
    verb = "cat" if kind.best == kind.name else "convert"
    return [*damage, f"cordwood {verb} --as {kind.best} {path}"]


def _shell_word(path: str) -> str:
    """A path as an argument in a shell: it is not taken for an option, and shows no control characters."""
    import shlex

    if path.startswith("-"):
        path = f"./{path}"
    if path.isprintable():
        return shlex.quote(path)
    return "$'" + "".join(map(_shell_character, path)) + "'"


def _shell_character(character: str) -> str:
    """A character between `$'` and `'`."""
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    # A digit may follow, which would belong to a shorter number.
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(character))


def _time(seconds: float) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


# The years 1 to 9999.
_TIMES = range(-62_135_596_800, 253_402_300_800)


def _times_of(path: str, log: dict[str, Any]) -> tuple[float, float] | tuple[None, None]:
    """When the first and the last steps of a run were logged."""
    with cordwood.Reader(path, **log) as reader:
        first, last = float("inf"), float("-inf")
        for record in reader.records():
            if b"_timestamp" in record.data and (time := _time_of(record.data)) is not None:
                first, last = min(time, first), max(time, last)
    return (first, last) if first <= last else (None, None)


def _time_of(record: bytes) -> float | None:
    with contextlib.suppress(cordwood.CordwoodError, ValueError):
        fields = decode_wandb(record, "history") or {"items": []}
        for path, text in fields["items"]:
            if path == ("_timestamp",) and _TIMES.start <= (time := float(text)) < _TIMES.stop:
                return time
    return None
