"""Entities as in Datastore and Firestore exports, encoded by hand: protocol buffers of `storage_onestore_v3`."""

import struct
from datetime import UTC, datetime

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Key(tuple):
    """A reference: kinds with ids or names, starting at the root."""

    __slots__ = ()


class Place(tuple):
    """Degrees north and degrees east."""

    __slots__ = ()


class Raw(tuple):
    """A meaning (or `None`) and the bytes of a PropertyValue."""

    __slots__ = ()


def varint(number):
    number %= 1 << 64
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def value_of(value):  # noqa: PLR0911 - one for each type
    """A value's meaning and its PropertyValue."""
    match value:
        case None:
            return None, b""
        case bool():
            return None, b"\x10" + varint(value)
        case int():
            return None, b"\x08" + varint(value)
        case float():
            return None, b"\x21" + struct.pack("<d", value)
        case str():
            return None, field(3, value.encode())
        case bytes():
            return 14, field(3, value)
        case datetime():
            since = value - EPOCH
            return 7, b"\x08" + varint((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)
        case Raw():
            return value
        case Place():
            return None, b"\x2b\x31" + struct.pack("<d", value[0]) + b"\x39" + struct.pack("<d", value[1]) + b"\x2c"
        case Key():
            elements = (
                b"\x73"
                + field(15, kind.encode())
                + (field(17, last.encode()) if isinstance(last, str) else b"\x80\x01" + varint(last))
                + b"\x74"
                for kind, last in value
            )
            return None, b"\x63" + field(13, b"s~app") + b"".join(elements) + b"\x64"
        case dict():
            return 19, field(3, properties(value))
    raise TypeError(value)


def properties(values):
    out = b""
    for name, value in values.items():
        items = value if isinstance(value, list) else [value]
        for item in items:
            meaning, content = value_of(item)
            out += field(
                14,
                (b"" if meaning is None else b"\x08" + varint(meaning))
                + field(3, name.encode())
                + (b"\x20\x01" if isinstance(value, list) else b"\x20\x00")
                + field(5, content),
            )
    return out


def entity(path, values):
    """An entity with this path (kinds with ids or names) and these values by name; no list may be empty."""
    elements = (
        b"\x0b"
        + field(2, kind.encode())
        + (field(4, last.encode()) if isinstance(last, str) else b"\x18" + varint(last))
        + b"\x0c"
        for kind, last in path
    )
    return field(13, field(13, b"s~app") + field(14, b"".join(elements))) + properties(values)
