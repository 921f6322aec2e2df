"""Reads logs and collects evidence about them."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from os.path import basename
from typing import Any, Literal, NamedTuple

import cordwood
from cordwood._evidence import limits
from cordwood._evidence.page import Evidence, rank
from cordwood._inputs.each import Progress, is_gone
from cordwood._inputs.files import files_of, is_stream, sha256_of
from cordwood._inputs.input import Input
from cordwood._map.svg import FRAGMENTS_MAX, Picture, document, picture_of
from cordwood._native import RecordDecoder
from cordwood._summary import Fold, format_of, is_cut, suspect_regions
from cordwood._tables.payloads import WRITE_BATCH, kind_by_content
from cordwood._text import own_path
from cordwood.errors import CordwoodError, PayloadError
from cordwood.payload.write_batch import Operation, OperationKind, WriteBatch
from cordwood.types import KeyChange, KeyChanges, LogEvidence, RegionEvidence, Report, Severity, SkippedRegion

_PUTS = {OperationKind.PUT, OperationKind.PUT_BLOB_INDEX, OperationKind.PUT_ENTITY, OperationKind.TIMED_PUT}
_DELETES = {OperationKind.DELETE, OperationKind.SINGLE_DELETE, OperationKind.DELETE_SIZED}
_WITHOUT_EFFECT = {OperationKind.LOG_DATA, OperationKind.NOOP}


def reads(**log: Any) -> Callable[[Input, int, Progress], LogEvidence]:
    """Returns the function that `each` calls to collect a log's counts, times and SHA-256.

    Args:
        log: The options that specify the log's format.
    """

    def read(file: Input, threads: int, progress: Progress) -> LogEvidence:
        if is_stream(file.name):
            raise CordwoodError("evidence reads a log several times, and this is a pipe or a device: copy it to a file")
        path = own_path(file.name)
        before = _stats(path)
        report = cordwood.verify(file.name, threads=threads, progress=progress, **log)
        if path is None:
            return LogEvidence(file.name, report)
        sha256 = sha256_of(path, report.file_len, progress)
        modified = max(modified for _, _, modified in before)
        return LogEvidence(file.name, report, utc(modified), sha256, before != _stats(path))

    return read


def _stats(path: str | None) -> list[tuple[str, int, int]]:
    """Returns the path, length and modification time of each file of a log."""
    files = files_of(path) if path else []
    return [(name, stat.st_size, stat.st_mtime_ns) for _, name in files for stat in (os.stat(name),)]


def evidence_of(fold: Fold, logs: list[LogEvidence], command: str | None) -> Evidence:
    """Returns the evidence. Call this after all results have been collected."""
    inputs = {file.name: file for file in fold.files}
    fold.judge()
    failed = [(name, _reason(error)) for name, error in fold.failures]
    logs.sort(key=lambda log: rank(log.report))
    fragments_max = FRAGMENTS_MAX
    for index, log in enumerate(logs[: limits.DETAILED_MAX]):
        log_format = format_of(log.report)
        try:
            pictures: list[Picture] = []
            for _, path in files_of(log.path)[: limits.DETAILED_MAX]:
                picture = picture_of(partial(str, path), log_format._asdict(), basename(path), fragments_max)
                pictures.append(picture)
                fragments_max -= picture.fragment_count
            logs[index] = log._replace(
                regions=regions_of(log), keys=key_changes(log.path, log.report), svg=document(pictures)
            )
        except (OSError, CordwoodError, MemoryError) as error:
            # Keep the report even if a live database has removed the log.
            if not is_gone(inputs[log.path], error):
                failed.append((log.path, _reason(error)))
    directory = None
    with suppress(FileNotFoundError):
        directory = os.getcwd()
    return Evidence(
        tuple(logs),
        tuple(fold.databases),
        tuple(fold.exports),
        tuple(failed),
        tuple(fold.others),
        command,
        examined=utc(time.time_ns()),
        directory=directory,
    )


def _reason(error: Exception) -> str:
    """Returns the reason a file could not be read."""
    reason = error.strerror if isinstance(error, OSError) else getattr(error, "message", None)
    return reason or str(error)


def utc(time_ns: int) -> str | None:
    """Returns a time in nanoseconds since 1970 as text, or `None` if the year is not between 1 and 9999."""
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_ns // 1000)
    except OverflowError:
        return None
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def regions_of(log: LogEvidence) -> tuple[RegionEvidence, ...]:
    """Returns the regions to list, each with its first bytes."""
    skipped = sorted(log.report.skipped, key=lambda region: region.severity == Severity.INFO)[: limits.LISTED_MAX]
    path = own_path(log.path)
    if path is None:
        return tuple(RegionEvidence(region, None) for region in skipped)
    first_bytes: dict[SkippedRegion, bytes] = {}
    left = sorted(skipped)
    # The files are read from last to first. `files_of` doesn't return pruned files.
    for start, name in reversed(files_of(path)):
        here: list[SkippedRegion] = []
        while left and left[-1].offset >= start:
            here.append(left.pop())
        if here:
            with open(name, "rb") as file:
                for region in here:
                    file.seek(region.offset - start)
                    first_bytes[region] = file.read(min(region.length, limits.FIRST_LEN))
    return tuple(RegionEvidence(region, first_bytes.get(region)) for region in skipped)


def key_changes(path: str, report: Report) -> KeyChanges | None:
    """Returns the keys a log deletes or overwrites, or `None` if its records are not write batches."""
    changes = _Changes()
    faulty_count = 0
    has_batch = False
    next_sequence = None
    suspects, has_unlisted = suspect_regions(report)[::-1], is_cut(report)
    # The report lists only the first regions.
    decoder = RecordDecoder("write-batch", report.dialect)
    engine: Literal["rocksdb", "pebble"] = "pebble" if report.dialect == "pebble" else "rocksdb"
    with cordwood.Reader(path, on_corruption="salvage", **format_of(report)._asdict()) as reader:
        for index, record in enumerate(reader.records()):
            if not index and kind_by_content(path, record.data, reader.dialect) not in (None, WRITE_BATCH):
                return None
            batch = error = None
            try:
                engine = decoder.engine(record.data)
            except PayloadError as fault:
                error = fault
            # A record may be too short to contain a batch header.
            with suppress(PayloadError):
                batch = WriteBatch(record.data, engine=engine)
            has_batch |= error is None
            faulty_count += error is not None
            is_after_suspect = False
            while suspects and suspects[-1].offset <= record.offset:
                is_after_suspect = bool(suspects.pop())
            is_unlisted = has_unlisted and not suspects
            has_gap = bool(batch and next_sequence not in (None, batch.sequence))
            if is_after_suspect or is_unlisted or has_gap or record.salvaged:
                changes.interruption_count += 1
            if batch:
                next_sequence = batch.sequence + batch.count
            # The operations before a fault can still be read.
            with suppress(PayloadError):
                for operation in batch or ():
                    changes.add(operation, record.offset)
            if error:
                changes.interruption_count += 1
    if not has_batch and faulty_count:
        return None
    deleted, overwritten = map(tuple, (changes.deleted, changes.overwritten))
    counts = changes.counts
    return KeyChanges(
        counts["deleted"], deleted, counts["overwritten"], overwritten, faulty_count, changes.are_complete
    )


class _Value(NamedTuple):
    """A value's position in the log, and the number of interruptions before it."""

    sequence: int | None
    offset: int | None
    interruption_count: int


class _Changes:
    """Collects the changes to keys in a log, and tracks where each key was last written.

    A value from before an interruption may not be the latest one for its key.
    """

    def __init__(self) -> None:
        self.deleted: list[KeyChange] = []
        self.overwritten: list[KeyChange] = []
        self.counts = Counter[str]()
        self.are_complete = True
        self._values: dict[tuple[int, bytes], _Value] = {}
        self._len = 0
        self.interruption_count = 0

    def add(self, operation: Operation, offset: int) -> None:
        """Adds an operation from the record at the given file offset."""
        key = operation.key or b""
        name = (operation.column_family or 0, key)
        if operation.kind in _PUTS:
            if old := self._values.get(name):
                self._append("overwritten", operation, key, offset, old)
            else:
                self._len += len(key)
                if len(self._values) == limits.FOLLOWED_MAX or self._len > limits.FOLLOWED_LEN_MAX:
                    self.are_complete = False
                    return
            self._values[name] = _Value(operation.sequence, offset, self.interruption_count)
        elif operation.kind in _DELETES:
            absent = _Value(None, None, 0 if self.are_complete else -1)
            self._append("deleted", operation, key, offset, self._values.pop(name, absent))
        elif operation.kind not in _WITHOUT_EFFECT:
            # Merges, range deletions and parts of transactions can change any key.
            self.interruption_count += 1
            if operation.kind == OperationKind.DELETE_RANGE:
                self._append("deleted", operation, key, offset, _Value(None, None, -1))

    def _append(self, change: str, operation: Operation, key: bytes, offset: int, old: _Value) -> None:
        """Counts a change, and stores it unless the list is full."""
        self.counts[change] += 1
        changes: list[KeyChange] = getattr(self, change)
        if len(changes) < limits.LISTED_MAX:
            end_key = None if operation.end_key is None else operation.end_key[: limits.KEY_LEN_MAX]
            changes.append(
                KeyChange(
                    key[: limits.KEY_LEN_MAX],
                    len(key),
                    end_key,
                    operation.column_family or 0,
                    operation.sequence,
                    offset,
                    old.sequence,
                    old.offset,
                    old.interruption_count == self.interruption_count,
                )
            )
