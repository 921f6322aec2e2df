"""Implements `cordwood.info`, which describes the contents of a file or a directory."""

from __future__ import annotations

import contextlib
import errno
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cordwood._inputs.each import Progress, each
from cordwood._inputs.exports import overall_message
from cordwood._inputs.files import expand, is_stream
from cordwood._inputs.input import Input, dialect_of_empty_run, is_of_export
from cordwood._native import Reader, RecordDecoder, verify
from cordwood._remote import with_options
from cordwood._summary import Fold, is_torn, judged, zeros_inside, zeros_of
from cordwood._tables.payloads import VERSION_EDIT, kinds_of
from cordwood._text import source_name
from cordwood.errors import CordwoodError
from cordwood.types import Database, Export, Info, Report, Run

DIRECTORIES = {
    "version-edit": ("logs of a database", {"version-edit", "write-batch"}),
    "entity": ("an export of Datastore or Firestore", {"entity", "export-metadata"}),
    "wandb": ("runs of Weights & Biases", {"wandb"}),
}
"""For each record kind, the name shown for a directory of such logs, and the kinds that the directory may contain."""


def info(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    threads: int = 1,
    storage_options: Mapping[str, Any] | None = None,
) -> Info:
    """Summarizes a file or a directory, including its format, records, damage, databases and exports.

    Every log is read. Database tables are not read, but missing tables are reported.

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
    content = Content()
    for file, found in fold.take(each(fold.files, read, threads)):
        if isinstance(found, Log):
            content.add(file, found)
        elif isinstance(found, Exception) and not file.is_in_directory and len(fold.files) == 1:
            raise found
    return content.info(" ".join(names), fold)


class Log(NamedTuple):
    """A log, with additional information about its records."""

    report: Report
    dialect: str
    payload: str | None
    """The kind of the records, if known."""
    run: Run | None


def read(file: Input, threads: int, progress: Progress) -> Log:
    """Reads a log, then rereads its first record or, for a run, the whole log. `each` calls this."""
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


class Content:
    """Combines the contents of a source's logs."""

    def __init__(self) -> None:
        self._dialects = Counter[str]()
        self._compressions = Counter[str]()
        self._payloads = Counter[str]()
        # The attributes of `Info` that are totals over all logs.
        self._sums = Counter(dict.fromkeys((*_OF_REPORT, *_OF_SUMMARY), 0))
        self._entity_logs: list[str] = []
        self._runs: list[Run] = []
        self._damaged_manifests: list[str] = []
        self._misnamed: list[tuple[str, int | None, int]] = []
        # The report on the last log added.
        self._report: Report | None = None

    def add(self, file: Input, log: Log) -> None:
        """Adds the contents of a log."""
        path, report, payload = file.name, log.report, log.payload
        self._runs += [log.run] if log.run else []
        if payload == "entity" and file.is_in_directory:
            self._entity_logs.append(path)
        zeros = zeros_of(report)
        zeros_len = zeros.length if zeros and not zeros.is_padding else 0
        self._sums.update({name: getattr(report, name) for name in _OF_REPORT})
        self._sums.update(
            log_count=1,
            file_len=file.file_len if file.segments else report.file_len or 0,
            torn_count=is_torn(report),
            zeros_count=zeros_len > 0,
            zeros_len=zeros_len,
            zeros_inside_len=sum(region.length for region in zeros_inside(report)),
        )
        self._dialects[str(log.dialect)] += 1
        self._compressions[report.compression or "none"] += 1
        self._payloads.update([payload] if payload else [])
        if not report.ok and (payload == VERSION_EDIT.name or VERSION_EDIT.is_name(path)):
            self._damaged_manifests.append(path)
        if report.other_log_number is not None:
            self._misnamed.append((path, report.log_number, report.other_log_number))
        self._report = report

    def info(self, path: str, fold: Fold) -> Info:
        """Returns the source's summary. Call this after adding all results."""
        fold.judge()
        files, databases, exports = fold.files, fold.databases, fold.exports
        listed = {os.path.realpath(name) for export in exports for name in export.files}
        unlisted = tuple(path for path in self._entity_logs if os.path.realpath(path) not in listed)
        is_one = len(files) == 1 and not files[0].is_in_directory
        what = "a log" if is_one else "a directory" if os.path.isdir(path) else "several files"
        if is_one and self._report and self._report.outcome.zeros_offset == 0:
            what = "only zeros"
        if is_one and exports and not self._sums["log_count"]:
            what = DIRECTORIES["entity"][0]
        if what == "a directory":
            what = _directory(self._payloads, databases, exports, unlisted) or what
        return Info(
            path=path,
            what=what,
            log_count_by_dialect=dict(self._dialects),
            log_count_by_compression=dict(self._compressions),
            log_count_by_payload=dict(self._payloads),
            **self._sums,
            runs=tuple(self._runs),
            databases=tuple(databases),
            exports=tuple(exports),
            unlisted_logs=unlisted,
            damaged_logs=tuple(fold.damaged),
            damaged_manifests=tuple(self._damaged_manifests),
            misnamed_logs=tuple(self._misnamed),
            other_file_count_by_format=dict(Counter(kind for _, kind in fold.others)),
            failures=tuple(fold.failures),
            report=self._report if self._sums["log_count"] == 1 else None,
        )


_OF_REPORT = ("record_count", "salvaged_count", "payload_len", "damaged_len")
_OF_SUMMARY = ("log_count", "file_len", "torn_count", "zeros_count", "zeros_len", "zeros_inside_len")


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
    """Names a directory after the kinds of records in it. Returns `None` if they are mixed or mostly unknown."""
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


# The range of Unix times from year 1 to year 9999.
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
