"""The types that a column of a table can have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from datetime import datetime


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


FieldsOf: TypeAlias = Callable[[object], Mapping[str, Any] | None]
"""Returns the fields of a value, or `None` if it is not a structure."""


def fields_of_object(value: object) -> Mapping[str, Any] | None:
    """The fields of a JSON object; `None` for any other value."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


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


def new_column(path: str) -> MisfitError:
    """The error for a column, or a field of one, that was not found."""
    return MisfitError(f"the column {path!r} was not there when the columns were found")


def utf8(text: str) -> str:
    """Escapes lone surrogates, which JSON can contain and UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def arrow_name(name: str) -> str:
    r"""The name of a column or a field in Arrow, whose interface ends a name at a NUL: that is `\x00`."""
    return utf8(name.replace("\0", r"\x00"))


def check_names(names: Iterable[str], what: str) -> None:
    """Checks the names of columns or fields as they are in Arrow.

    Raises:
        SameNamesError: Two are the same.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SameNamesError(f"two {what} have the name {name!r}")
        seen.add(name)


def microseconds(time: datetime) -> int:
    """Microseconds since 1970 in UTC."""
    from datetime import UTC, datetime, timedelta

    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
