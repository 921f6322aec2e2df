"""Values of JSON in the columns of a given schema, made one by one in Python: the naive counterpart."""

import json
import struct
from decimal import Decimal

import pyarrow as pa


class MisfitError(Exception):
    """A value that would be changed, or that no value of the type is like."""


def table_of(rows, schema):
    """An Arrow table of rows, which are objects as `json.loads` returns them.

    Raises `MisfitError` with the number of the first row of which a value does not fit.
    """
    made = []
    for number, row in enumerate(rows):
        try:
            made.append(_struct(row, schema))
        except MisfitError as error:
            raise MisfitError(number) from error
    arrays = [pa.array([row[field.name] for row in made], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _struct(row, fields):
    if not isinstance(row, dict):
        raise MisfitError
    named = [(_utf8(name).replace("\0", r"\x00"), value) for name, value in row.items()]
    found = {}
    for field in fields:
        values = [value for name, value in named if name == field.name]
        if len(values) > 1:
            raise MisfitError
        found[field.name] = _fit(values[0] if values else None, field)
    return found


def _fit(value, field):
    """The value as pyarrow makes a value of the field of it, without a change."""
    if value is not None:
        return _present(value, field.type)
    if not field.nullable:
        raise MisfitError
    return None


def _present(value, kind):  # noqa: PLR0911 - one for each type
    types = pa.types
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _present(value, kind.value_type)
    if types.is_struct(kind):
        return _struct(value, kind)
    if types.is_map(kind):
        _check(value, dict)
        return [(_present(_utf8(key), kind.key_type), _fit(item, kind.item_field)) for key, item in value.items()]
    if hasattr(kind, "value_field"):
        _check(value, list)
        if types.is_fixed_size_list(kind) and len(value) != kind.list_size:
            raise MisfitError
        return [_fit(item, kind.value_field) for item in value]
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _utf8(value) if isinstance(value, str) else _json(value)
    if types.is_integer(kind):
        return _integer(value, kind)
    if types.is_floating(kind):
        return _float(value, kind)
    if types.is_decimal(kind):
        _check(value, int)
        if abs(value) >= 10 ** (kind.precision - kind.scale):
            raise MisfitError
        return Decimal(value)
    if types.is_boolean(kind):
        _check(value, bool)
        return value
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        _check(value, str)
        return _utf8(value).encode()
    raise MisfitError


def _integer(value, kind):
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    _check(value, int)
    low = -(1 << kind.bit_width - 1) if pa.types.is_signed_integer(kind) else 0
    if not low <= value < low + (1 << kind.bit_width):
        raise MisfitError
    return value


def _float(value, kind):
    _check(value, int, float)
    if isinstance(value, int) and abs(value) > 1 << 53:
        raise MisfitError
    form = {16: "<e", 32: "<f", 64: "<d"}[kind.bit_width]
    try:
        [stored] = struct.unpack(form, struct.pack(form, float(value)))
    except OverflowError:
        raise MisfitError from None
    if stored != value:
        raise MisfitError
    return stored


def _check(value, *classes):
    # A bool is an int to Python.
    if not isinstance(value, classes) or (isinstance(value, bool) and bool not in classes):
        raise MisfitError


def _json(value):
    return _utf8(json.dumps(_escaped(value), ensure_ascii=False, separators=(",", ":")))


def _escaped(value):
    """The value with the escapes of lone surrogates in place of these."""
    if isinstance(value, str):
        return _utf8(value)
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    if isinstance(value, dict):
        return {_utf8(name): _escaped(item) for name, item in value.items()}
    return value


def _utf8(text):
    return text.encode("utf-8", "backslashreplace").decode()
