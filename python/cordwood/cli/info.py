"""Say in a few lines what files and folders are.

Of a log, a folder of a database, an export or a folder of runs: the dialects of its logs, what their records hold, how
many there are, when they were logged, how much is damaged, and the commands that show more. All logs are read, with the
policy "salvage". Exit status 3 if one is damaged.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from typing import Any

import cordwood
from cordwood._native import decode_wandb
from cordwood._text import quantity
from cordwood.cli._messages import Status
from cordwood.cli._options import add_source_arguments, processor_count
from cordwood.cli._output import print_folded, print_json
from cordwood.cli._payloads import payloads_of
from cordwood.cli._progress import Progress
from cordwood.cli._sources import display_name, for_each_source, is_one_file, source_name

EXAMPLES = """\
  cordwood info 000003.log
  cordwood info database/ wandb/ export/
"""

HOLDS = {
    "write-batch": "write batches",
    "version-edit": "version edits",
    "entity": "entities of Datastore or Firestore",
    "wandb": "records of Weights & Biases",
    "other": "other records",
}
"""What the records of a log hold, by the names of `--as`."""

FOLDERS = {
    "version-edit": "a database",
    "entity": "an export of Datastore or Firestore",
    "wandb": "runs of Weights & Biases",
}
"""What a folder is in which a log holds this."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `info` takes."""
    add_source_arguments(parser, "a log; a folder, for all logs in it; a pattern such as '*.log'; a URL")
    parser.add_argument("--json", action="store_true", help="one JSON object for each SOURCE")


def run(options: argparse.Namespace) -> Status:
    """Describes each source."""
    if "-" in options.sources:
        raise ValueError("info takes files and folders, not stdin; ./- is a file")
    statuses = [_describe(name, as_json=options.json) for name in options.sources]
    return Status.FAILURE if Status.FAILURE in statuses else max(statuses)


def _describe(name: str, *, as_json: bool) -> Status:
    dialects: dict[str, int] = {}
    payloads: dict[str, int] = {}
    names = ("record_count", "payload_len", "file_len", "damaged_len", "torn_count")
    counts: dict[str, int] = dict.fromkeys(names, 0)
    times: list[float] = []
    # Of each log that belongs to another one as a whole: the number that its name says, and that of its fragments.
    numbers: list[tuple[int | None, int]] = []

    def look(path: str) -> Status:
        with Progress(path) as progress:
            report = cordwood.verify(path, threads=processor_count(), on_corruption="salvage", progress=progress)
        log: dict[str, Any] = {"dialect": report.dialect, "log_number": report.log_number, "on_corruption": "salvage"}
        with cordwood.Reader(path, **log) as reader:
            first = next(iter(reader.records()), None)
        # Of a log without records it is known only if the dialect says it.
        fits = payloads_of(first.data if first else b"", report.dialect)
        if first or fits:
            payload = fits[0] if len(fits) == 1 else "other"
            payloads[payload] = payloads.get(payload, 0) + 1
            if payload == "wandb":
                _add_times(times, path, log)
        dialects[report.dialect] = dialects.get(report.dialect, 0) + 1
        counts["record_count"] += report.record_count
        counts["payload_len"] += report.payload_len
        counts["file_len"] += report.file_len or 0
        counts["damaged_len"] += report.len_by_severity.get(cordwood.Severity.CORRUPTION, 0)
        counts["torn_count"] += report.outcome.kind == cordwood.OutcomeKind.TORN_TAIL
        if report.other_log_number is not None:
            numbers.append((report.log_number, report.other_log_number))
        return Status.CLEAN if report.ok else Status.DAMAGE

    tally = for_each_source([name], look, as_json=as_json, has_totals=True)
    if not tally.log_count:
        if as_json and not tally.failed_count:
            print_json({"source": source_name(name), "error": "no log was found"})
        return tally.status
    what = "a log" if is_one_file([name]) else "a folder" if os.path.isdir(name) else "several files"  # noqa: PTH112
    if what == "a folder":
        what = next((text for payload, text in FOLDERS.items() if payload in payloads), what)
    fields: dict[str, Any] = {
        "source": source_name(name),
        "what": what,
        "log_count": tally.log_count,
        "log_count_by_dialect": dialects,
        "log_count_by_payload": payloads,
        **counts,
        "other_log_count": len(numbers),
        "first_time": min(times, default=None),
        "last_time": max(times, default=None),
        "damaged_count": tally.damaged_count,
        "failed_count": tally.failed_count,
        "other_file_count_by_format": tally.others,
    }
    if as_json:
        print_json(fields)
        return tally.status
    print(f"{display_name(name)}: {what}")
    _print("logs", f"{tally.log_count:,}: {_listed(dialects)}; {quantity(counts['file_len'], 'byte')}")
    held = {HOLDS[payload]: count for payload, count in payloads.items()}
    records = f"{counts['record_count']:,}, {quantity(counts['payload_len'], 'byte')}"
    _print("records", f"{records}: {_listed(held)}" if held else records)
    if times:
        _print("time", f"{_time(min(times))} to {_time(max(times))}")
    _print("damage", _damage(tally.damaged_count, counts), is_damage=tally.damaged_count > 0)
    if numbers:
        _print("number", _numbers(numbers))
    if tally.others:
        _print("others", tally.others_text())
    # They are to be copied, and not folded.
    for label, command in zip(("more", ""), _commands(name, tally.damaged_count, payloads, numbers), strict=False):
        print(f"  {label:9}{command}")
    return tally.status


def _print(label: str, text: str, *, is_damage: bool = False) -> None:
    print_folded(f"  {label:9}{text}", indent=11, is_damage=is_damage)


def _listed(counts: dict[str, int]) -> str:
    """Names, with how many there are of each where there are several names."""
    return ", ".join(name if len(counts) == 1 else f"{name} ({count:,})" for name, count in sorted(counts.items()))


def _damage(damaged_count: int, counts: dict[str, int]) -> str:
    damage = (
        f"{quantity(counts['damaged_len'], 'byte')} in {quantity(damaged_count, 'log')}; read with the policy salvage"
        if damaged_count
        else "none"
    )
    torn = quantity(counts["torn_count"], "log")
    end = "ends in an incomplete record" if counts["torn_count"] == 1 else "end in incomplete records"
    return f"{damage}; {torn} {end}" if counts["torn_count"] else damage


def _numbers(numbers: list[tuple[int | None, int]]) -> str:
    """What is to be known of logs in which no record is found."""
    if len(numbers) > 1:
        return f"{quantity(len(numbers), 'log')} belong to logs of other numbers than their names say"
    own, other = numbers[0]
    return f"1 log belongs to log {other}, and its name says {own}"


def _commands(
    name: str, damaged_count: int, payloads: dict[str, int], numbers: list[tuple[int | None, int]]
) -> list[str]:
    """What shows more of it: where the damage is, and what the records hold."""
    import shlex

    path = display_name(shlex.quote(name))
    if numbers and is_one_file([name]):
        return [f"cordwood cat --log-number {numbers[0][1]} {path}"]
    verify = f"cordwood verify {path}"
    if numbers or len(payloads) > 1:
        return [verify]
    damage = [verify] if damaged_count else []
    payload = next(iter(payloads), "other")
    if payload == "wandb":
        return [*damage, f"cordwood convert --as wandb-history {path}"]
    return [*damage, f"cordwood cat {path}" if payload == "other" else f"cordwood cat --as {payload} {path}"]


def _time(seconds: float) -> str:
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


# The years 1 to 9999.
_TIMES = range(-62_135_596_800, 253_402_300_800)


def _add_times(times: list[float], path: str, log: dict[str, Any]) -> None:
    """Adds when the first and the last steps of a run were logged."""
    with cordwood.Reader(path, **log) as reader:
        found = (_time_of(record.data) for record in reader.records() if b"_timestamp" in record.data)
        span: list[float] = []
        for time in found:
            if time is not None:
                span = [min(time, *span), max(time, *span)] if span else [time]
    times += span


def _time_of(record: bytes) -> float | None:
    with contextlib.suppress(cordwood.CordwoodError, ValueError):
        fields = decode_wandb(record, "history") or {"items": []}
        for path, text in fields["items"]:
            if path == ("_timestamp",) and _TIMES.start <= (time := float(text)) < _TIMES.stop:
                return time
    return None
