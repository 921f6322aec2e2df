"""The columns of a table whose rows are not known beforehand: their names and what they can hold."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from cordwood.cli._messages import Failure

COLUMN_COUNT_MAX = 10_000
"""No more columns: BigQuery has no more either, and what has is not of one form."""

# An integer up to this size is a floating-point number, too, without loss.
_EXACT_MAX = 1 << 53
_INT64 = range(-(1 << 63), 1 << 63)


class TooManyColumnsError(Failure):
    """A log of which a table would have too many columns."""


class Columns:
    """Learns the columns of a table from its rows.

    A column in which all values are of one type has this type. Integers and floating-point numbers together are
    floating-point, if no integer is too large for that. Anything else, lists and objects among it, is JSON in a text.
    It tells numbers, texts and bytes apart, but not what JSON has no form for: a time and NaN are texts there.
    """

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}

    def add(self, row: dict[str, Any]) -> None:
        """Takes a row into account.

        Raises:
            TooManyColumnsError: There are too many columns.
        """
        for name, value in row.items():
            seen = self._seen.setdefault(name, set())
            if value is not None:
                seen.add(_type_of(value))
        if len(self._seen) > COLUMN_COUNT_MAX:
            raise TooManyColumnsError(f"more than {COLUMN_COUNT_MAX:,} columns; --to ndjson has no columns")

    def types(self) -> dict[str, str]:
        """The columns by name, in the order in which they were first seen.

        Each is one of `bool`, `int`, `float`, `text`, `bytes`, `time` and `json`. (`uint` is only in tables whose
        columns are known beforehand.)
        """
        return {name: _common(seen) for name, seen in self._seen.items()}

    def conflicts(self) -> dict[str, list[str]]:
        """The types of the columns that have several, and none for all of them."""
        return {
            name: sorted({"int" if kind == "large" else kind for kind in seen})
            for name, seen in self._seen.items()
            if len(seen) > 1 and _common(seen) == "json"
        }


def _type_of(value: object) -> str:
    # In the order of what is most often there; a bool is an int to Python.
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -_EXACT_MAX <= value <= _EXACT_MAX else "large" if value in _INT64 else "json"
    for kind, name in ((str, "text"), (float, "float"), (bytes, "bytes"), (datetime, "time")):
        if isinstance(value, kind):
            return name
    return "json"


def _common(seen: Iterable[str]) -> str:
    match sorted(seen):
        case []:
            return "text"
        case ["int" | "large"] | ["int", "large"]:
            return "int"
        case ["float", "int"]:
            return "float"
        case [alone]:
            return alone
        case _:
            return "json"
