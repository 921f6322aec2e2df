"""Reads the complete records of a log in plain Python, in LevelDB's dialect and others.

`reference.py` reads LevelDB's dialect and packed logs. The others differ only in the bytes before the records, in the
header and in the checksum; for them there is a strict reader of a few lines, which stops at the first byte that no
writer writes there.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import packed_reference
import reference
from reference import BLOCK_LEN, FIRST, FULL, HEADER, HEADER_LEN, LAST, MIDDLE, Record


class WrongRecordsError(AssertionError):
    """A record is lost, appears twice, or was never appended."""


@dataclass(frozen=True)
class Dialect:
    """The facts that a strict reader has to know about a dialect."""

    file_header: bytes
    checksum: Callable[[bytes], int]
    extra: bytes = b""
    """The bytes between a header's first seven and the payload."""
    kind_of_full: int = FULL
    end_trailer: bytes = b""


def crc32c(covered: bytes) -> int:
    return reference.mask(reference.crc32c(covered))


LOG_NUMBER = 3
DIALECTS = {
    "wandb": Dialect(bytes.fromhex("3a572642e1be00"), zlib.crc32),
    "swanlab": Dialect(bytes.fromhex("3a53574cd6e102"), zlib.crc32),
    "pebble": Dialect(
        b"", crc32c, LOG_NUMBER.to_bytes(4, "little"), 5, bytes(6) + b"\x05" + (LOG_NUMBER + 1).to_bytes(4, "little")
    ),
}


REFERENCE = {"leveldb": reference.LEVELDB, "packed": reference.PACKED}


def file_header(data: bytes, dialect: str) -> bytes:
    """The bytes of a log without a record. In a packed log it says which codec the writer uses."""
    if dialect == "packed":
        return next((mark for mark in map(packed_reference.mark, (0, 1)) if data.startswith(mark)), b"")
    return DIALECTS[dialect].file_header if dialect in DIALECTS else b""


def records_in(data: bytes, dialect: str = "leveldb", *, skips: bool = False) -> list[Record]:
    """The records of a log. Only a torn write may follow the last one, and no byte before it may be skipped.

    With `skips`, regions before it may be skipped: torn writes were left in place.
    """
    if dialect not in REFERENCE:
        return list(strict(data, DIALECTS[dialect]))
    *events, _ = reference.events(data, dialect=REFERENCE[dialect])
    records = [event for event in events if isinstance(event, Record)]
    end = records[-1].end_offset if records else 0
    start = len(file_header(data, dialect))
    for event in events:
        if isinstance(event, reference.Skipped) and start <= event.start < end and not skips:
            raise WrongRecordsError(f"{event} is skipped before the last record, which ends at {end}")
    return records


def strict(data: bytes, dialect: Dialect) -> Iterator[Record]:
    header_len = HEADER_LEN + len(dialect.extra)
    at = len(dialect.file_header)
    if not data.startswith(dialect.file_header):
        return
    parts: list[bytes] = []
    start = at
    while at < len(data):
        left = BLOCK_LEN - at % BLOCK_LEN
        if left < header_len:
            at += left
            continue
        if at + header_len > len(data):
            return
        stored, length, kind = HEADER.unpack_from(data, at)
        end = at + header_len + length
        is_right = (
            end <= len(data)
            and header_len + length <= left
            and data[at + HEADER_LEN : at + header_len] == dialect.extra
            and dialect.checksum(data[at + HEADER_LEN - 1 : end]) == stored
        )
        place = kind - dialect.kind_of_full + FULL
        if not is_right or place not in ((MIDDLE, LAST) if parts else (FULL, FIRST)):
            return
        if not parts:
            start = at
        parts.append(data[at + header_len : end])
        at = end
        if place in (FULL, LAST):
            yield Record(start, at, b"".join(parts))
            parts = []
