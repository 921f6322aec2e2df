"""Packed logs in pure Python, written from docs/format/packed.md: made here, and read by `reference.py`.

zstd is pyarrow's.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow
import reference
from containers import MAGIC, MARK, varint
from reference import CONTAINER_KINDS, KINDS, Record, Skipped, encode_record, fragment, trailer_len


def mark(codec: int, version: int = 1) -> bytes:
    return fragment(MARK, MAGIC + bytes([version, codec]))


def container(records: list[bytes], codec: int) -> bytes:
    body = b"".join(varint(len(record)) for record in records) + b"".join(records)
    if codec:
        body = pyarrow.Codec("zstd").compress(body, asbytes=True)
    return bytes([codec]) + varint(len(records)) + body


def encode(groups: Iterable[tuple[list[bytes], int | None]], codec: int) -> bytes:
    """A log: a mark, and each group as a container with this codec, or as ordinary records if it is `None`."""
    out = bytearray(mark(codec))
    for records, own in groups:
        kinds, payloads = (KINDS, records) if own is None else (CONTAINER_KINDS, [container(records, own)])
        for payload in payloads:
            out += bytes(trailer_len(len(out)))
            out += encode_record(payload, len(out), kinds)
    return bytes(out)


def read(file: bytes) -> list[Record] | None:
    """The records of an intact log; `None` for a damaged one."""
    *events, end = reference.events(file, dialect=reference.PACKED)
    reasons = {event.reason for event in events if isinstance(event, Skipped)}
    if end.kind != "clean" or reasons - {"metadata"}:
        return None
    return [event for event in events if isinstance(event, Record)]
