"""Combines the results for a source's files. Used by every function and verb that accepts many logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from cordwood._databases import databases_of
from cordwood._inputs.each import Result
from cordwood._inputs.exports import exports_of
from cordwood._inputs.input import Input
from cordwood._open import Split
from cordwood.types import Database, Export, Report

T = TypeVar("T")


class Fold:
    """Combines the results for a source's files.

    Attributes:
        files: The files.
        failures: A tuple for each file that could not be read: the name or `Split`, and the exception.
        others: A tuple for each non-log file in a directory: the name or `Split`, and the format.
        damaged: The names of the damaged logs. Empty unless the results are or contain reports.
        record_counts: The number of records read from each log that has a report.
        databases: The databases among the files, once `judge` has been called.
        exports: The Datastore or Firestore exports among the files, once `judge` has been called.
    """

    def __init__(self, files: Sequence[Input]) -> None:
        self.files = files
        self.failures: list[tuple[Any, Exception]] = []
        self.others: list[tuple[Any, str]] = []
        self.damaged: list[str] = []
        self.record_counts: dict[str, int] = {}
        self.databases: list[Database] = []
        self.exports: list[Export] = []

    def take(self, results: Iterable[Result[T]]) -> Iterator[Result[T]]:
        """Adds the results of `each`, and yields them unchanged."""
        for file, found in results:
            name = file.source if isinstance(file.source, Split) else file.name
            report = getattr(found, "report", found)
            if isinstance(found, Exception):
                self.failures.append((name, found))
            elif isinstance(found, str):
                self.others.append((name, found))
            elif isinstance(report, Report) and isinstance(name, str):
                self.record_counts[name] = report.record_count
                self.damaged += [] if report.ok else [name]
            yield file, found

    def judge(self, *, has_all_records: bool = True) -> None:
        """Checks the databases and exports. Call this after adding all results.

        Directories that cannot be read are added to the failures.
        """
        not_whole = [*self.damaged, *(name for name, _ in self.others)]
        self.databases, failures = databases_of(self.files, not_whole)
        counts = self.record_counts if has_all_records else None
        self.exports, more_failures = exports_of(self.files, counts)
        self.failures += [*failures, *more_failures]
