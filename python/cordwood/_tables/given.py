"""Makes tables with the columns of a given schema. A value that cannot be converted exactly is an error."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cordwood._tables.payloads import Payload
from cordwood._tables.schema import ColumnType, GivenAs, ListOf, StructOf, check_schema
from cordwood._tables.table import Table


def given_table(payload: Payload, schema: Any) -> Table:
    """Returns a table with the columns of a `pyarrow.Schema`. All others are left out.

    The native module makes columns of other types, which pyarrow then casts. It accepts only values that this cast does
    not change.
    """
    table = Table(payload, "arrow", columns_of(schema))
    table.schema, table.cast = schema, _cast
    return table


def columns_of(schema: Any) -> dict[str, ColumnType]:
    """Returns the column types of a `pyarrow.Schema`.

    Raises:
        SameNamesError: Two columns, or two fields of one column, have the same name.
    """
    check_schema(schema)
    return {field.name: _type_of(field.name, field) for field in schema}


def _type_of(path: str, field: Any) -> GivenAs:  # noqa: PLR0911 - one for each type
    """Returns the type of a column, of a list's items (`path[]`), or of a field (`path.name`)."""
    types: Any = import_module("pyarrow").types
    kind = field.type

    def given(made_as: ColumnType, fits: str = "same", size: int = 0) -> GivenAs:
        return GivenAs(str(kind), made_as, fits, size, field.nullable)

    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _type_of(path, field.with_type(kind.value_type))
    if types.is_struct(kind):
        return given(StructOf(tuple((inside.name, _type_of(f"{path}.{inside.name}", inside)) for inside in kind)))
    if types.is_map(kind):
        pair = StructOf(tuple((name, _type_of(f"{path}[]", inside)) for name, inside in _pair_of(kind).items()))
        return given(ListOf(pair), "map")
    # Lists of all kinds have this attribute.
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
    # No value fits a type other than these.
    return given("bool", "nothing")


def _pair_of(kind: Any) -> dict[str, Any]:
    return {"key": kind.key_field, "value": kind.item_field}


def _cast(array: Any, kind: Any) -> Any:  # noqa: PLR0911 - one for each type
    """Casts an array from the native module to a type.

    pyarrow cannot cast to some nested types, or to a type without nulls.
    """
    pa: Any = import_module("pyarrow")
    types, compute = pa.types, import_module("pyarrow.compute")

    def of(buffers: list[Any], *children: Any) -> Any:
        return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, children=children)

    if types.is_dictionary(kind):
        encoded = _cast(array, kind.value_type).dictionary_encode()
        indices = encoded.indices.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=kind.ordered)
    if types.is_run_end_encoded(kind):
        return compute.run_end_encode(_cast(array, kind.value_type), run_end_type=kind.run_end_type)
    if types.is_struct(kind):
        return of(array.buffers()[:1], *(_cast(array.field(at), inside.type) for at, inside in enumerate(kind)))
    if types.is_map(kind):
        pairs = _cast(array.values, pa.struct(list(_pair_of(kind).values())))
        return of(array.buffers()[:2], pairs)
    if hasattr(kind, "value_field"):
        if types.is_fixed_size_list(kind):
            # A null list also has items.
            return of(array.buffers()[:1], _cast(array.values, kind.value_field.type))
        items = _cast(array.values, kind.value_field.type)
        validity, offsets = array.buffers()[0], array.offsets
        if types.is_large_list(kind) or types.is_large_list_view(kind):
            offsets = offsets.cast(pa.int64())
        buffers = [validity, offsets.buffers()[1]]
        if types.is_list_view(kind) or types.is_large_list_view(kind):
            buffers.append(compute.subtract(offsets[1:], offsets[:-1]).buffers()[1])
        return of(buffers, items)
    # This also works for types that no value fits.
    if array.null_count == len(array):
        return pa.nulls(len(array), kind)
    try:
        return array.cast(kind)
    except pa.ArrowNotImplementedError:
        # pyarrow 17 cannot cast to views.
        return pa.array(array.to_pylist(), kind)
