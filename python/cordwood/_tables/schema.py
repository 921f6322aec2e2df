"""Defines the types of a table's columns, and converts the types in a given schema."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
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
    """A log has a column with the same name as one of those at the start of every row. The message is that name."""


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


def columns_of(schema: Any) -> dict[str, ColumnType]:
    """Returns the column types of a `pyarrow.Schema`.

    The native module creates columns of its own types, and `cast` casts them to the types in the schema. The module
    accepts only values that this cast doesn't change.

    Raises:
        SameNamesError: Two columns, or two fields of one column, have the same name.
    """
    return _types_of("", "columns", schema)


def _types_of(path: str, what: str, fields: Iterable[Any]) -> dict[str, ColumnType]:
    types: dict[str, ColumnType] = {}
    for field in fields:
        if field.name in types:
            raise SameNamesError(f"two {what} have the name {field.name!r}")
        types[field.name] = _type_of(f"{path}{field.name}", field)
    return types


def _type_of(path: str, field: Any) -> GivenAs:  # noqa: PLR0911 - one for each type
    """Returns the type of a column, of a list's items (`path[]`), or of a field (`path.name`)."""
    types: Any = import_module("pyarrow").types
    kind = field.type

    def given(made_as: ColumnType, fits: str = "same", size: int = 0) -> GivenAs:
        return GivenAs(str(kind), made_as, fits, size, field.nullable)

    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _type_of(path, field.with_type(kind.value_type))
    if types.is_struct(kind):
        return given(StructOf(tuple(_types_of(f"{path}.", f"fields of the column {path!r}", kind).items())))
    if types.is_map(kind):
        key, value = (_type_of(f"{path}[]", inside) for inside in (kind.key_field, kind.item_field))
        return given(ListOf(StructOf((("key", key), ("value", value)))), "map")
    # List types of all kinds have this attribute.
    if hasattr(kind, "value_field"):
        items = ListOf(_type_of(f"{path}[]", kind.value_field))
        return given(items, "count", kind.list_size) if types.is_fixed_size_list(kind) else given(items)
    if types.is_timestamp(kind):
        return given("time", "times", {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit])
    if types.is_integer(kind):
        return given("int" if types.is_signed_integer(kind) else "uint", "integers", kind.bit_width)
    if types.is_floating(kind):
        return given("float", "floats", kind.bit_width)
    if types.is_decimal(kind):
        return given("json", "digits", max(kind.precision - kind.scale, 0))
    if types.is_fixed_size_binary(kind):
        return given("bytes", "count", kind.byte_width)
    if types.is_boolean(kind):
        return given("bool")
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return given("json")
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return given("bytes", "bytes")
    # No value fits a type not handled above.
    return given("bool", "nothing")


def cast(array: Any, kind: Any) -> Any:  # noqa: PLR0911 - one for each type
    """Casts an array from the native module to a type of a given schema.

    pyarrow cannot cast to some nested types, or to a type without nulls.
    """
    pa: Any = import_module("pyarrow")
    types, compute = pa.types, import_module("pyarrow.compute")

    def of(buffers: list[Any], *children: Any) -> Any:
        return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, children=children)

    if types.is_dictionary(kind):
        encoded = cast(array, kind.value_type).dictionary_encode()
        indices = encoded.indices.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=kind.ordered)
    if types.is_run_end_encoded(kind):
        return compute.run_end_encode(cast(array, kind.value_type), run_end_type=kind.run_end_type)
    if types.is_struct(kind):
        return of(array.buffers()[:1], *(cast(array.field(at), inside.type) for at, inside in enumerate(kind)))
    if types.is_map(kind):
        pairs = cast(array.values, pa.struct([kind.key_field, kind.item_field]))
        return of(array.buffers()[:2], pairs)
    if hasattr(kind, "value_field"):
        if types.is_fixed_size_list(kind):
            # Even a null fixed-size list has items.
            return of(array.buffers()[:1], cast(array.values, kind.value_field.type))
        items = cast(array.values, kind.value_field.type)
        validity, offsets = array.buffers()[0], array.offsets
        if types.is_large_list(kind) or types.is_large_list_view(kind):
            offsets = offsets.cast(pa.int64())
        buffers = [validity, offsets.buffers()[1]]
        if types.is_list_view(kind) or types.is_large_list_view(kind):
            buffers.append(compute.subtract(offsets[1:], offsets[:-1]).buffers()[1])
        return of(buffers, items)
    # All-null arrays can have a type that no value fits.
    if array.null_count == len(array):
        return pa.nulls(len(array), kind)
    try:
        return array.cast(kind)
    except pa.ArrowNotImplementedError:
        # pyarrow 17 cannot cast to views.
        return pa.array(array.to_pylist(), kind)
