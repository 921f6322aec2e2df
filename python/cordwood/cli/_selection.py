"""Implements `--limit` and `--columns`, which select how many rows and which columns are shown."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice, repeat
from typing import Any, cast

from cordwood._text import display_name, escaped, quantity
from cordwood.cli._messages import complain, guess

_LISTED_MAX = 50
"""A message names at most this many columns."""

_SEEN_MAX = 10_000
"""A message about an unknown column suggests one of at most this many names."""

_MISSING = object()


def add_selection_arguments(parser: argparse.ArgumentParser, row: str, column: str) -> None:
    """Adds `--limit` and `--columns` for a verb that prints these rows and columns."""
    parser.add_argument(
        "-n",
        "--limit",
        type=_count,
        metavar="COUNT",
        help=f"stop reading after this many {row}s; the rest is not checked for damage",
    )
    parser.add_argument(
        "--columns", type=_names, metavar="NAME,...", help=f"only these {column}, in this order, separated by commas"
    )


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or not int(text):
        raise argparse.ArgumentTypeError(f"a number of at least 1 is needed, not {text!r}")
    return int(text)


def _names(text: str) -> list[str]:
    names = [name.strip(" ") for name in text.split(",")]
    if "" in names:
        raise argparse.ArgumentTypeError(f"names separated by commas are needed, not {text!r}")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise argparse.ArgumentTypeError(f"it names {twice!r} twice")
    return names


class Selection:
    """Counts rows up to the limit, and selects their columns.

    Attributes:
        columns: The names of the columns in order, or `None` for all columns.
        is_active: Whether the selection chooses columns or counts rows.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        known: Collection[str] | None = None,
        nested: Collection[str] = (),
    ) -> None:
        """Creates a selection that has not counted any rows yet.

        Args:
            options: The options of `add_selection_arguments`.
            known: The names of all columns, if they are known before the first row.
            nested: The names in `known` whose values contain further, unknown names.

        Raises:
            ValueError: A requested name is not known.
        """
        self.columns: list[str] | None = options.columns
        self._limit: int | None = options.limit
        self._nested = nested
        self._count = self._held_count = 0
        self._has_rows = False
        # The requested names that no row has had yet, and the names that rows have had.
        self._wanted = dict.fromkeys(self.columns or ())
        self._seen: dict[str, None] = {}
        self.is_active: bool = self.columns is not None or self._limit is not None
        if known is not None:
            self._seen = dict.fromkeys(known)
            others = [name for name in self._wanted if name not in known]
            self._check(name for name in others if name.partition(".")[0] not in nested)
            self._wanted = dict.fromkeys(others)

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached and reading can stop."""
        return self._limit is not None and self._count >= self._limit

    def take(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """Counts a row and returns its requested part, or `None` if `held_back` returns the row later."""
        if self._wanted:
            self.look_for_names(row)
        self._count += 1
        wanted = self.in_columns(row)
        if self._wanted and not wanted:
            self._held_count += 1
            return None
        return wanted

    def held_back(self) -> Iterable[dict[str, Any]]:
        """Returns the empty rows that `take` has held back.

        A requested column missing from all rows so far may not exist, so rows without values are held back. Each of
        them is returned once: before the next row that `take` returns or, if no row follows, at the end, after the
        names have been checked.
        """
        count, self._held_count = self._held_count, 0
        return repeat({}, count)

    def in_columns(self, row: dict[str, Any]) -> dict[str, Any]:
        """Returns the requested columns of a row."""
        if self.columns is None:
            return row
        found = ((name, value_in(row, name)) for name in self.columns)
        return {name: value for name, value in found if value is not _MISSING}

    def look_for_names(self, row: dict[str, Any]) -> None:
        """Searches a row for the requested columns."""
        # A name inside a value is missing only if a row has such a value.
        self._has_rows = self._has_rows or not self._nested or any(name in row for name in self._nested)
        self._see(row)
        for name in list(self._wanted):
            if value_in(row, name) is not _MISSING:
                del self._wanted[name]
            elif (inside := _fields_of(row.get(head := name.partition(".")[0]))) is not None:
                self._see(f"{head}.{field}" for field in inside)

    def _see(self, names: Iterable[str]) -> None:
        # However many names a log has, the message lists only a few.
        self._seen.update(dict.fromkeys(islice(names, _SEEN_MAX - len(self._seen))))

    def check_names(self) -> None:
        """Checks that each requested name appeared in at least one row. Call this after the last row.

        Raises:
            ValueError: There were rows, but a requested name is missing from all of them.
        """
        if self._has_rows:
            self._check(self._wanted)

    def _check(self, missing: Iterable[str]) -> None:
        if name := next(iter(missing), None):
            raise no_column(name, list(self._seen))


def no_column(name: str, seen: list[str]) -> ValueError:
    """Returns the error for a requested name that no row has."""
    some = seen[:_LISTED_MAX]
    more = f" and {len(seen) - len(some):,} more" if len(seen) > len(some) else ""
    return ValueError(f"there is no column {escaped(name)}, only {escaped(', '.join(some))}{more}{guess(name, seen)}")


def report_stop(name: str, offset: int | None, count: int, noun: str) -> None:
    """Reports that the limit was reached, and where in the log. No offset means before the log was read."""
    place = "before it was read" if offset is None else f"at offset {offset}"
    complain(
        f"{display_name(name)}: stopped {place}, after {quantity(count, noun)}, as --limit says; the rest was not read"
    )


def value_in(row: Mapping[str, Any], name: str) -> Any:
    """Returns the value with this name, or `_MISSING`.

    If the part before a dot names a value with fields, the rest names one of these fields.
    """
    if name in row:
        return row[name]
    for head, rest in _splits(name):
        inside = _fields_of(row.get(head))
        if inside is not None and (value := value_in(inside, rest)) is not _MISSING:
            return value
    return _MISSING


def _fields_of(value: object) -> Mapping[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Yields the name split at each dot, from the last dot to the first."""
    at = name.rfind(".")
    while at >= 0:
        yield name[:at], name[at + 1 :]
        at = name.rfind(".", 0, at)
