"""Defines the types of a table's columns."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias


class ListOf(NamedTuple):
    """The type of a column of lists."""

    item: ColumnType


class StructOf(NamedTuple):
    """The type of a column of structures, with the names and types of their fields."""

    fields: tuple[tuple[str, ColumnType], ...]


class GivenAs(NamedTuple):
    """The type of a column in a given schema."""

    name: str
    """The name of the type in Arrow, for messages."""
    made_as: ColumnType
    """The type that the native module gives the column."""
    fits: str
    """The values that fit the column, as in `cordwood_payload::table::Fits`."""
    size: int
    is_nullable: bool


ColumnType: TypeAlias = str | ListOf | StructOf | GivenAs
"""One of `bool`, `int`, `uint`, `float`, `text`, `bytes`, `time` and `json`, or a type that contains other types.

`uint` is used only in tables whose columns are known in advance.
"""


class TooManyColumnsError(ValueError):
    """The table of a log would have too many columns."""


class HasFirstError(ValueError):
    """A log has a column with the same name as one that starts every row. The text is this name."""


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


def check_schema(schema: Any) -> None:
    """Checks that no two columns of a `pyarrow.Schema`, and no two fields of one column, have the same name.

    Raises:
        SameNamesError: Two columns or two fields have the same name.
    """
    _check_names(schema.names, "columns")
    for field in schema:
        _check_type(field.type, field.name)


def _check_type(kind: Any, path: str) -> None:
    """Checks the type of a column, of a list's items (`path[]`), or of a field (`path.name`)."""
    if hasattr(kind, "item_type"):
        for inside in (kind.key_type, kind.item_type):
            _check_type(inside, f"{path}[]")
    elif hasattr(kind, "value_type"):
        # The type is a list, or a dictionary type, which stores its values only once.
        _check_type(kind.value_type, f"{path}[]" if hasattr(kind, "value_field") else path)
    elif fields := list(kind) if hasattr(kind, "get_field_index") else []:
        _check_names([field.name for field in fields], f"fields of the column {path!r}")
        for field in fields:
            _check_type(field.type, f"{path}.{field.name}")


def _check_names(names: list[str], what: str) -> None:
    # A table can have 10,000 columns.
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SameNamesError(f"two {what} have the name {name!r}")
        seen.add(name)
