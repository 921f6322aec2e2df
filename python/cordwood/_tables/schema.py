"""The types that a column of a table can have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias


class ListOf(NamedTuple):
    """The type of a column of lists."""

    item: ColumnType


class StructOf(NamedTuple):
    """The type of a column of structures: the names and the types of their fields."""

    fields: tuple[tuple[str, ColumnType], ...]


class GivenAs(NamedTuple):
    """The type of a column of a given schema."""

    name: str
    """Its name in Arrow, for messages."""
    made_as: ColumnType
    """The type as which the native module makes it."""
    fits: str
    """Which values fit, as in `cordwood_payload::table::Fits`."""
    size: int
    is_nullable: bool


ColumnType: TypeAlias = str | ListOf | StructOf | GivenAs
"""`bool`, `int`, `uint`, `float`, `text`, `bytes`, `time` or `json`, or a type that contains others.

`uint` occurs only in tables whose columns are known beforehand.
"""


class TooManyColumnsError(ValueError):
    """A log whose table would have too many columns."""


class HasFirstError(ValueError):
    """A log whose rows have a column with the name of one of those that each row starts with: its text."""


class MisfitError(ValueError):
    """A value that its column cannot have.

    Attributes:
        offset: The file offset of the record, if it is known.
    """

    offset: int | None = None


class SameNamesError(ValueError):
    """Two columns of a table, or two fields of a structure in it, would have the same name."""


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
