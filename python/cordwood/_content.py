"""The contents of a file or a folder, for `cordwood.info` and the verb `info`."""

from __future__ import annotations

import contextlib
import errno
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from cordwood._inputs.each import Progress, each
from cordwood._inputs.files import expand, is_stream, len_on_disk
from cordwood._inputs.input import Input, is_of_export, may_be_of_exports
from cordwood._native import Reader, decode_wandb, verify
from cordwood._summary import summary_of
from cordwood.errors import CordwoodError
from cordwood.types import Database, Export, Info, OutcomeKind, Report, Run

FOLDERS = {
    "version-edit": ("logs of a database", {"version-edit", "write-batch"}),
    "entity": ("an export of Datastore or Firestore", {"entity", "export-metadata"}),
    "wandb": ("runs of Weights & Biases", {"wandb"}),
}
"""The name of a folder in which a log contains this, and the possible contents of the others."""


def described(source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], threads: int) -> Info:
    """The result of `cordwood.info`."""
    names = [os.fsdecode(name) for name in ([source] if isinstance(source, str | bytes | os.PathLike) else source)]
    files = expand(names)
    content = Content()
    for file, found in content.taken(each(files, read, threads)):
        if isinstance(found, Exception) and not file.is_in_folder and len(files) == 1:
            raise found
    return content.info(" ".join(names), files)


def read(file: Input, threads: int, progress: Progress) -> Report:
    """Reads a log, as `each` calls it."""
    if is_stream(file.name):
        text = "info reads a log more than once, and this is a pipe or a device: copy it to a file"
        raise OSError(errno.ESPIPE, text, file.name)
    return verify(file.name, threads=threads, progress=progress)


class _Log(NamedTuple):
    """The findings in a log that are added up, with its report, which has lost its regions."""

    path: str
    report: Report
    payload: str | None
    """The kind of the records; `None` if there are none and the dialect does not say."""
    is_manifest: bool
    file_len: int
    zeros_len: int
    zeros_inside_len: int
    run: Run | None


class Content:
    """The logs of a source, together.

    Attributes:
        failures: The files that could not be read: the path, and the exception.
    """

    def __init__(self) -> None:
        self.failures: list[tuple[str, Exception]] = []
        self._logs: list[_Log] = []
        self._others: Counter[str] = Counter()
        self._report: Report | None = None

    def taken(
        self, results: Iterable[tuple[Input, Report | str | Exception]]
    ) -> Iterator[tuple[Input, Report | str | Exception]]:
        """The results of `each` for `read`, which are added."""
        for file, found in results:
            result = found
            if isinstance(found, str):
                self._others[found] += 1
            elif isinstance(found, Report):
                try:
                    self._logs.append(_log(file.name, found))
                    self._report = found
                except (OSError, CordwoodError, MemoryError) as error:
                    # It was read again. A live database may have removed the log.
                    result = error
            if isinstance(result, Exception):
                self.failures.append((file.name, result))
            yield file, result

    def info(self, path: str, files: Sequence[Input]) -> Info:
        """The description of a source that stands for these files, once all of their results are taken."""
        logs = self._logs
        databases, exports = self._databases(files), self._exports(files)
        payloads = Counter(log.payload for log in logs if log.payload)
        is_one = len(files) == 1 and not files[0].is_in_folder
        what = "a log" if is_one else "a folder" if os.path.isdir(path) else "several files"
        if is_one and self._report and self._report.outcome.zeros_offset == 0:
            what = "only zeros"
        if what == "a folder":
            what = _folder(payloads, databases, exports) or what
        sums = Counter[str]()
        for log in logs:
            sums.update({name: getattr(log.report, name) for name in _OF_REPORT})
            sums.update({name: getattr(log, name) for name in ("file_len", "zeros_len", "zeros_inside_len")})
        return Info(
            path=path,
            what=what,
            log_count=len(logs),
            log_count_by_dialect=dict(Counter(str(log.report.dialect) for log in logs)),
            log_count_by_compression=dict(Counter(log.report.compression or "none" for log in logs)),
            log_count_by_payload=dict(payloads),
            **{name: sums[name] for name in (*_OF_REPORT, "file_len", "zeros_len", "zeros_inside_len")},
            torn_count=sum(log.report.outcome.kind == OutcomeKind.TORN_TAIL for log in logs),
            zeros_count=sum(log.zeros_len > 0 for log in logs),
            runs=tuple(log.run for log in logs if log.run),
            databases=tuple(databases),
            exports=tuple(exports),
            damaged_logs=tuple(log.path for log in logs if not log.report.ok),
            damaged_manifests=tuple(log.path for log in logs if log.is_manifest and not log.report.ok),
            misnamed_logs=tuple(
                (log.path, log.report.log_number, log.report.other_log_number)
                for log in logs
                if log.report.other_log_number is not None
            ),
            other_file_count_by_format=dict(self._others),
            failures=tuple(self.failures),
            report=self._report if len(logs) == 1 else None,
        )

    def _databases(self, files: Iterable[Input]) -> list[Database]:
        from cordwood._databases import databases_of

        databases, failures = databases_of(files)
        self.failures += failures
        return databases

    def _exports(self, files: Iterable[Input]) -> list[Export]:
        if not may_be_of_exports(files):
            return []
        from cordwood._inputs.exports import exports_of

        exports, failures = exports_of(
            files, {os.path.realpath(log.path): log.report.record_count for log in self._logs}
        )
        self.failures += failures
        return exports


_OF_REPORT = ("record_count", "salvaged_count", "payload_len", "damaged_len")


def _log(path: str, report: Report) -> _Log:
    """The findings in a log. It reads the log again, for its first record, and all of a run."""
    from cordwood._tables.payloads import VERSION_EDIT

    log: dict[str, Any] = {"dialect": report.dialect, "log_number": report.log_number, "on_corruption": "salvage"}
    payload = _payload(path, report.dialect, log)
    run = None
    if payload == "wandb":
        is_torn = report.outcome.kind == OutcomeKind.TORN_TAIL
        state = "torn" if report.ok and is_torn else "ok" if report.ok else "damaged"
        first_time, last_time = _times_of(path, log)
        run = Run(path, report.record_count, first_time, last_time, state)
    summary = summary_of(report)
    zeros = summary.zeros_at_end
    return _Log(
        path,
        report._replace(skipped=(), repaired=()),
        payload,
        payload == VERSION_EDIT.name or VERSION_EDIT.is_name(path),
        len_on_disk(path) if os.path.isdir(path) else report.file_len or 0,
        zeros.length if zeros and not zeros.is_padding else 0,
        sum(region.length for region in summary.zeros_inside),
        run,
    )


def _payload(path: str, dialect: str, log: dict[str, Any]) -> str | None:
    from cordwood._tables.payloads import kinds_of

    with Reader(path, **log) as reader:
        first = next(reader.records(), None)
    if is_of_export(path):
        from cordwood._inputs.exports import overall_message

        if overall_message(path) is not None:
            return "export-metadata"
    # For a log without records, it is known only if the dialect says it.
    fits = kinds_of(first.data if first else b"", dialect)
    if not (first or fits):
        return None
    return fits[0].name if len(fits) == 1 else "other"


def _folder(payloads: Counter[str], databases: Sequence[Database], exports: Sequence[Export]) -> str | None:
    """The name of a folder whose logs contain this; `None` if that is several things, or mostly unknown."""
    known = payloads.keys() - {"other"}
    known_count = sum(payloads[name] for name in known)
    if databases and known <= FOLDERS["version-edit"][1] and known_count >= payloads["other"]:
        return f"a database of {databases[0].engine}" if len(databases) == 1 else f"{len(databases):,} databases"
    if exports and known <= FOLDERS["entity"][1]:
        return FOLDERS["entity"][0] if len(exports) == 1 else f"{len(exports):,} exports of Datastore or Firestore"
    for payload, (text, held) in FOLDERS.items():
        if payload in known and known <= held and known_count > payloads["other"]:
            return text
    return None


# The years 1 to 9999.
_TIMES = range(-62_135_596_800, 253_402_300_800)


def _times_of(path: str, log: dict[str, Any]) -> tuple[float, float] | tuple[None, None]:
    """When the first and the last steps of a run were logged."""
    with Reader(path, **log) as reader:
        first, last = float("inf"), float("-inf")
        for record in reader.records():
            if b"_timestamp" in record.data and (time := _time_of(record.data)) is not None:
                first, last = min(time, first), max(time, last)
    return (first, last) if first <= last else (None, None)


def _time_of(record: bytes) -> float | None:
    with contextlib.suppress(CordwoodError, ValueError):
        fields = decode_wandb(record, "history") or {"items": []}
        for path, text in fields["items"]:
            if path == ("_timestamp",) and _TIMES.start <= (time := float(text)) < _TIMES.stop:
                return time
    return None
