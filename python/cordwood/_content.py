"""Implements `cordwood.info`, which describes the contents of a file or a directory."""

from __future__ import annotations

import contextlib
import errno
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cordwood._databases import judged
from cordwood._fold import Fold
from cordwood._inputs.each import Progress, each
from cordwood._inputs.exports import overall_message
from cordwood._inputs.files import expand, is_stream
from cordwood._inputs.input import Input, dialect_of_empty_run, is_of_export
from cordwood._native import Reader, RecordDecoder, verify
from cordwood._remote import with_options
from cordwood._summary import is_torn, zeros_inside, zeros_of
from cordwood._tables.payloads import VERSION_EDIT, kinds_of
from cordwood._text import source_name
from cordwood.errors import CordwoodError
from cordwood.types import Database, Export, Info, Report, Run

DIRECTORIES = {
    "version-edit": ("logs of a database", {"version-edit", "write-batch"}),
    "entity": ("an export of Datastore or Firestore", {"entity", "export-metadata"}),
    "wandb": ("runs of Weights & Biases", {"wandb"}),
}
"""Maps each kind of record to what a directory of such logs is called and which kinds it may contain."""


def info(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    threads: int = 1,
    storage_options: Mapping[str, Any] | None = None,
) -> Info:
    """Summarizes a file or a directory, including its format, records, damage, databases and exports.

    Every log is read. Database tables aren't, but missing tables are reported.

    Args:
        source: A log, a directory of logs, a pattern such as `"*.log"`, a URL, or several of these, summarized
            together.
        threads: The number of threads that read logs.
        storage_options: Same as for `Reader`. Default: `None`.

    Returns:
        The summary. Its `failures` attribute lists the files that could not be read.

    Raises:
        OSError: The source is a single file that cannot be read, or is a pipe or a device.
        DialectError: The source is a single file that is not a log.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> info = cordwood.info("example.log")
    >>> info.what, info.record_count, info.ok
    ('a log', 2, True)
    """
    source = with_options(source, storage_options)
    names = [os.fsdecode(name) for name in ([source] if isinstance(source, str | bytes | os.PathLike) else source)]
    fold = Fold(expand(names))
    logs: list[tuple[Input, Log]] = []
    for file, found in fold.take(each(fold.files, read, threads)):
        if isinstance(found, Log):
            logs.append((file, found))
        elif isinstance(found, Exception) and not file.is_in_directory and len(fold.files) == 1:
            raise found
    return summary(" ".join(names), fold, logs)


class Log(NamedTuple):
    """A log, with additional information about its records."""

    report: Report
    dialect: str
    payload: str | None
    """The kind of the records, if known."""
    run: Run | None


def read(file: Input, threads: int, progress: Progress) -> Log:
    """Reads a log, then rereads its first record, or the whole log if it belongs to a run. `each` calls this."""
    path = file.name
    if path == "-" or is_stream(path):
        text = "info reads a log more than once, and this is stdin, a pipe or a device: copy it to a file"
        raise OSError(errno.ESPIPE, text, source_name(path))
    report: Report = judged(path, verify(file.opened, threads=threads, progress=progress))
    empty = dialect_of_empty_run(path, report.file_len)
    dialect = empty or report.dialect
    log: dict[str, Any] = {"dialect": dialect, "log_number": report.log_number, "on_corruption": "salvage"}
    payload = _payload(file, report, dialect, log)
    run = None
    if payload == "wandb" or empty:
        state = "empty" if empty else "damaged" if not report.ok else "torn" if is_torn(report) else "ok"
        first_time, last_time = _times_of(path, log)
        run = Run(path, report.record_count, first_time, last_time, state)
    return Log(report, dialect, payload, run)


def summary(path: str, fold: Fold, logs: Sequence[tuple[Input, Log]]) -> Info:
    """Returns the summary of a source with these logs. Call this after adding all results to `fold`."""
    fold.judge()
    files, databases, exports = fold.files, fold.databases, fold.exports
    reports = [log.report for _, log in logs]
    payloads = Counter(log.payload for _, log in logs if log.payload)
    zeros_at_ends = [zeros for zeros in map(zeros_of, reports) if zeros and not zeros.is_padding]
    listed = {os.path.realpath(name) for export in exports for name in export.files}
    entity_logs = [file.name for file, log in logs if log.payload == "entity" and file.is_in_directory]
    unlisted = tuple(name for name in entity_logs if os.path.realpath(name) not in listed)
    is_one = len(files) == 1 and not files[0].is_in_directory
    what = "a log" if is_one else "a directory" if os.path.isdir(path) else "several files"
    if is_one and reports and reports[0].outcome.zeros_offset == 0:
        what = "only zeros"
    if is_one and exports and not logs:
        what = DIRECTORIES["entity"][0]
    if what == "a directory":
        what = _directory(payloads, databases, exports, unlisted) or what
    return Info(
        path=path,
        what=what,
        log_count=len(logs),
        log_count_by_dialect=dict(Counter(str(log.dialect) for _, log in logs)),
        log_count_by_compression=dict(Counter(report.compression or "none" for report in reports)),
        log_count_by_payload=dict(payloads),
        record_count=sum(report.record_count for report in reports),
        salvaged_count=sum(report.salvaged_count for report in reports),
        payload_len=sum(report.payload_len for report in reports),
        file_len=sum(file.file_len if file.segments else log.report.file_len or 0 for file, log in logs),
        damaged_len=sum(report.damaged_len for report in reports),
        torn_count=sum(map(is_torn, reports)),
        zeros_count=len(zeros_at_ends),
        zeros_len=sum(zeros.length for zeros in zeros_at_ends),
        zeros_inside_len=sum(region.length for report in reports for region in zeros_inside(report)),
        runs=tuple(log.run for _, log in logs if log.run),
        databases=tuple(databases),
        exports=tuple(exports),
        unlisted_logs=unlisted,
        damaged_logs=tuple(fold.damaged),
        damaged_manifests=tuple(file.name for file, log in logs if _is_damaged_manifest(file.name, log)),
        misnamed_logs=tuple(
            (file.name, log.report.log_number, log.report.other_log_number)
            for file, log in logs
            if log.report.other_log_number is not None
        ),
        other_file_count_by_format=dict(Counter(kind for _, kind in fold.others)),
        failures=tuple(fold.failures),
        report=reports[0] if len(reports) == 1 else None,
    )


def _is_damaged_manifest(path: str, log: Log) -> bool:
    return not log.report.ok and (log.payload == VERSION_EDIT.name or VERSION_EDIT.is_name(path))


def _payload(file: Input, report: Report, dialect: str, log: dict[str, Any]) -> str | None:
    first = None
    if report.record_count:
        with Reader(file.opened, **log) as reader:
            first = next(reader.records(), None)
    with contextlib.suppress(ValueError):
        if is_of_export(file.name) and overall_message(file.name) is not None:
            return "export-metadata"
    # If a log has no records, its kind is only known if the dialect determines it.
    fits = kinds_of(first.data if first else b"", dialect)
    if not (first or fits):
        return None
    return fits[0].name if len(fits) == 1 else "other"


def _directory(
    payloads: Counter[str], databases: Sequence[Database], exports: Sequence[Export], unlisted: Sequence[str]
) -> str | None:
    """Names a directory by its kinds of records. Returns `None` if they are mixed or mostly unknown."""
    known = payloads.keys() - {"other"}
    known_count = sum(payloads[name] for name in known)
    if databases and known <= DIRECTORIES["version-edit"][1] and known_count >= payloads["other"]:
        return f"a database of {databases[0].engine}" if len(databases) == 1 else f"{len(databases):,} databases"
    if exports and known <= DIRECTORIES["entity"][1]:
        if unlisted:
            return "exports of Datastore or Firestore"
        return DIRECTORIES["entity"][0] if len(exports) == 1 else f"{len(exports):,} exports of Datastore or Firestore"
    for payload, (text, held) in DIRECTORIES.items():
        if payload in known and known <= held and known_count > payloads["other"]:
            return text
    return None


# The range of Unix times in the years 1 to 9999.
_TIMES = range(-62_135_596_800, 253_402_300_800)


def _times_of(path: str, log: dict[str, Any]) -> tuple[float, float] | tuple[None, None]:
    """Returns the times when a run's first and last steps were logged."""
    with Reader(path, **log) as reader:
        first, last = float("inf"), float("-inf")
        decoder = RecordDecoder("wandb-history")
        for record in reader.records():
            if b"_timestamp" in record.data and (time := _time_of(decoder, record.data)) is not None:
                first, last = min(time, first), max(time, last)
    return (first, last) if first <= last else (None, None)


def _time_of(decoder: RecordDecoder, record: bytes) -> float | None:
    with contextlib.suppress(CordwoodError):
        time: object = (decoder.row(record, []) or {}).get("_timestamp")
        if isinstance(time, int | float) and not isinstance(time, bool) and _TIMES.start <= time < _TIMES.stop:
            return float(time)
    return None
