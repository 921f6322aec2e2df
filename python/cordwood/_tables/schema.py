"""The types that a column of a table can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast


class ListOf(NamedTuple):
    """The type of a column of lists."""

    item: ColumnType


class StructOf(NamedTuple):
    """The type of a column of structures: the names and the types of their fields."""

    fields: tuple[tuple[str, ColumnType], ...]


ColumnType: TypeAlias = str | ListOf | StructOf
"""`bool`, `int`, `uint`, `float`, `text`, `bytes`, `time` or `json`, or a type that contains others.

`uint` occurs only in tables whose columns are known beforehand.
"""


class Shapes(NamedTuple):
    """Which values of a table are structures."""

    fields_of: Callable[[object], Mapping[str, Any] | None] = lambda value: (
        cast("dict[str, Any]", value) if isinstance(value, dict) else None
    )
    """The fields of a value, or `None` if it is not a structure."""
    fixed: Mapping[type, tuple[str, StructOf]] = {}
    """Classes whose values always have the same fields, with a name for messages and the type."""


ToJson: TypeAlias = Callable[[Any], object]
"""Converts a value to one that JSON has."""


class TooManyColumnsError(ValueError):
    """A log whose table would have too many columns."""


class MisfitError(ValueError):
    """A value that its column cannot have.

    Attributes:
        offset: The file offset of the record, if it is known.
    """

    offset: int | None = None


class SameNamesError(ValueError):
    """Two columns of a table, or two fields of a structure in it, would have the same name."""


def leaf_count(kind: ColumnType) -> int:
    """How many Parquet columns a column of this type becomes."""
    if isinstance(kind, ListOf):
        return leaf_count(kind.item)
    return sum(leaf_count(inside) for _, inside in kind.fields) if isinstance(kind, StructOf) else 1


def new_column(path: str) -> MisfitError:
    """The error for a column, or a field of one, that was not found."""
    return MisfitError(f"the column {path!r} was not there when the columns were found")
