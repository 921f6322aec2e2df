"""Selects the rows and columns to show, according to `--limit` and `--columns`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from itertools import chain, islice, repeat
from typing import Any, cast

from cordwood._text import display_name, escaped, quantity
from cordwood.cli._messages import complain, guess

_LISTED_MAX = 50
"""The maximum number of columns to name in a message."""

_SEEN_MAX = 10_000
"""The maximum number of names to search for a suggestion when a column is unknown."""

_MISSING = object()


class Selection:
    """Counts records up to the limit, and selects fields from their JSON.

    Attributes:
        is_active: Whether fields are selected or the number of records is limited.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        """Creates a selection that has not counted any records yet.

        Raises:
            ValueError: A requested name is not known.
        """
        self._columns: list[str] | None = options.columns
        self._limit: int | None = options.limit
        self._count = self._held_count = 0
        self._has_values = False
        value = ["value", "error"] if options.payload else []
        data = [options.encoding] if options.encoding else ["text", "base64"]
        # The names of all fields. Those inside `value` are added once they appear in a record.
        self._seen = dict.fromkeys(("source", "offset", "end_offset", "len", "salvaged", *value, *data))
        # The requested names inside `value` that haven't appeared in any record yet.
        self._wanted = [name for name in self._columns or () if name not in self._seen]
        self.is_active: bool = self._columns is not None or self._limit is not None
        self._check(name for name in self._wanted if name.partition(".")[0] != "value")

    @property
    def is_full(self) -> bool:
        """Whether the limit has been reached and reading can stop."""
        return self._limit is not None and self._count >= self._limit

    def take(self, row: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """Counts a record, and returns the rows to print now.

        A requested name that hasn't appeared in any record yet might not exist, so rows without fields are held back.
        They are returned just before the next row that has fields. If no such row follows, `rest` returns them.
        """
        if self._wanted:
            self._look_for_names(row)
        self._count += 1
        selected = row
        if self._columns is not None:
            found = ((name, value_in(row, name)) for name in self._columns)
            selected = {name: value for name, value in found if value is not _MISSING}
        if self._wanted and not selected:
            self._held_count += 1
            return ()
        count, self._held_count = self._held_count, 0
        return chain(repeat({}, count), [selected])

    def rest(self) -> Iterable[dict[str, Any]]:
        """Returns the rows that are still held back. Call this after the last record.

        Raises:
            ValueError: There were values, but a requested name doesn't appear in any of them.
        """
        if self._has_values:
            self._check(self._wanted)
        return repeat({}, self._held_count)

    def _look_for_names(self, row: dict[str, Any]) -> None:
        """Searches a record's value for the requested names."""
        self._has_values = self._has_values or "value" in row
        self._wanted = [name for name in self._wanted if value_in(row, name) is _MISSING]
        # The message lists only a few names, even if the log contains many.
        names = (f"value.{field}" for field in _fields_of(row.get("value")))
        self._seen.update(dict.fromkeys(islice(names, _SEEN_MAX - len(self._seen))))

    def _check(self, missing: Iterable[str]) -> None:
        if name := next(iter(missing), None):
            raise no_column(name, list(self._seen))


def no_column(name: str, seen: list[str]) -> ValueError:
    """Returns the error for a requested name that doesn't appear in any row."""
    some = seen[:_LISTED_MAX]
    more = f" and {len(seen) - len(some):,} more" if len(seen) > len(some) else ""
    return ValueError(f"there is no column {escaped(name)}, only {escaped(', '.join(some))}{more}{guess(name, seen)}")


def report_stop(name: str, offset: int | None, count: int, noun: str) -> None:
    """Reports where the limit was reached. `offset` is `None` if that was before the log was read."""
    place = "before it was read" if offset is None else f"at offset {offset}"
    complain(
        f"{display_name(name)}: stopped {place}, after {quantity(count, noun)}, as --limit says; the rest was not read"
    )


def value_in(row: Mapping[str, Any], name: str) -> Any:
    """Returns the value with this name, or `_MISSING`.

    If the part before a dot names a value with fields, the part after the dot names one of these fields.
    """
    if name in row:
        return row[name]
    dots = [at for at, character in enumerate(name) if character == "."]
    for at in reversed(dots):
        inside = _fields_of(row.get(name[:at]))
        if inside and (value := value_in(inside, name[at + 1 :])) is not _MISSING:
            return value
    return _MISSING


def _fields_of(value: object) -> Mapping[str, Any]:
    """Returns the fields of a value. Only objects have fields."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
