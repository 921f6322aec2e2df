"""Defines the column types of tables, and the errors raised while creating tables."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class ListOf(NamedTuple):
    """The type of a column of lists."""

    item: ColumnType


class StructOf(NamedTuple):
    """The type of a column of structures, with the names and types of their fields."""

    fields: tuple[tuple[str, ColumnType], ...]


class GivenAs(NamedTuple):
    """The type of a column in a given schema."""

    name: str
    """The type's Arrow name, for messages."""
    made_as: ColumnType
    """The type that the native module uses for the column."""
    fits: str
    """The values that fit the column, as in `cordwood_payload::table::Fits`."""
    size: int
    is_nullable: bool


ColumnType: TypeAlias = str | ListOf | StructOf | GivenAs
"""One of `bool`, `int`, `uint`, `float`, `text`, `bytes`, `time` and `json`, or a type that contains other types.

`uint` is only used in tables whose columns are known in advance.
"""


class TooManyColumnsError(ValueError):
    """The table for a log would have too many columns."""


class HasFirstError(ValueError):
    """A log has a column with the same name as a column that starts every row. The error message is that name."""


class MisfitError(ValueError):
    """A value does not fit its column.

    Attributes:
        offset: The file offset of the record, if it is known.
    """

    offset: int | None = None


class SameNamesError(ValueError):
    """Two columns of a table, or two fields of a structure in it, would have the same name."""


def utf8(text: str) -> str:
    """Escapes lone surrogates, which JSON can contain but UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def arrow_name(name: str) -> str:
    r"""Returns the Arrow name of a column or a field. A NUL becomes `\x00`, because it would end the name."""
    return utf8(name.replace("\0", r"\x00"))
