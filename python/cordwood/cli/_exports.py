"""The metadata in an export of Datastore or Firestore: which files it consists of, and how many entities they contain.

Each folder with entities has a file `*.export_metadata`, a single protocol buffer message that lists the files
`output-0`, `output-1` and so on. The folder of the whole export has `*.overall_export_metadata`, a log of two records:
a version, and a message with the number of entities. The field numbers were taken from exports of the Firestore
emulator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

_LEN_MAX = 16 << 20
"""The longest list that is read, in bytes. One of this length names about a million files."""


def listed_files(path: str) -> list[str]:
    """The files named in a list, relative to its folder.

    Raises:
        OSError: The list cannot be read.
        ValueError: It is damaged, or too long.
    """
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
        message = file.read(_LEN_MAX + 1)
    if len(message) > _LEN_MAX:
        raise ValueError("too long")
    names: list[str] = []
    for entry in _messages(message, 2):
        names += [name.decode() for name in _messages(entry, 2)]
    return names


class Entities(NamedTuple):
    """A number of entities, and the length in bytes of the files that contain them."""

    entity_count: int
    file_len: int


def total(entities: Iterable[Entities]) -> Entities:
    """The sums."""
    counts, lens = list(zip(*entities, strict=True)) or ((), ())
    return Entities(sum(counts), sum(lens))


def stated(record: bytes) -> Entities:
    """The numbers in the second record of `*.overall_export_metadata`.

    Raises:
        ValueError: The record is not such a message.
    """
    folders = (dict(_fields(folder)) for folder in _messages(record, 1))
    return total(Entities(_number(folder.get(3)), _number(folder.get(4))) for folder in folders)


def _number(value: int | bytes | None) -> int:
    """The value of a number field. A field whose value is 0 may be absent."""
    if isinstance(value, bytes):
        raise ValueError("not a number field")  # noqa: TRY004 - the message is wrong, not an argument
    return value or 0


def _messages(message: bytes, wanted: int) -> list[bytes]:
    """The values of one field of strings or messages."""
    return [value for number, value in _fields(message) if number == wanted and isinstance(value, bytes)]


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, each with its number and its value."""
    at = 0
    value: int | bytes
    while at < len(message):
        tag, at = _varint(message, at)
        match tag & 7:
            case 0:
                value, at = _varint(message, at)
            case 1:
                value, at = message[at : at + 8], at + 8
            case 2:
                value_len, at = _varint(message, at)
                value, at = message[at : at + value_len], at + value_len
            case 5:
                value, at = message[at : at + 4], at + 4
            case wire_type:
                raise ValueError(f"wire type {wire_type}")
        if at > len(message):
            raise ValueError("a field is cut off")
        yield tag >> 3, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A variable-length number, and where it ends."""
    value = 0
    for index in range(10):
        if at + index >= len(message):
            break
        byte = message[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError("a number is cut off")
