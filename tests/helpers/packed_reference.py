"""Packed logs in pure Python, written from docs/format/packed.md: the oracle of their tests.

It reads and writes intact logs only. zstd is pyarrow's.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator

import pyarrow
from crc32c import crc32c
from reference import BLOCK_LEN, HEADER_LEN, Record, mask

MARK = 0x48
# FULL, FIRST, MIDDLE and LAST.
PLAIN = (1, 2, 3, 4)
PACKED = (0x40, 0x42, 0x44, 0x46)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def take_varint(data: bytes) -> tuple[int, bytes]:
    number = 0
    for index, byte in enumerate(data[:5]):
        number |= (byte & 127) << 7 * index
        if byte < 128:
            assert byte or not index, "not the shortest form"
            return number, data[index + 1 :]
    raise AssertionError("not a varint")


def fragment(kind: int, payload: bytes) -> bytes:
    return struct.pack("<IHB", mask(crc32c(bytes([kind]) + payload)), len(payload), kind) + payload


def mark(codec: int, version: int = 1) -> bytes:
    return fragment(MARK, b"cordwood" + bytes([version, codec]))


def container(records: list[bytes], codec: int) -> bytes:
    body = b"".join(varint(len(record)) for record in records) + b"".join(records)
    if codec:
        body = pyarrow.Codec("zstd").compress(body, asbytes=True)
    return bytes([codec]) + varint(len(records)) + body


def encode(groups: Iterable[tuple[list[bytes], int | None]], codec: int) -> bytes:
    """A log: a mark, and each group as a container with this codec, or as ordinary records if it is `None`."""
    out = bytearray(mark(codec))
    for records, own in groups:
        kinds, payloads = (PLAIN, records) if own is None else (PACKED, [container(records, own)])
        for payload in payloads:
            rest, is_first = payload, True
            while is_first or rest:
                left = BLOCK_LEN - len(out) % BLOCK_LEN
                if left < HEADER_LEN:
                    out += bytes(left)
                    left = BLOCK_LEN
                part, rest = rest[: left - HEADER_LEN], rest[left - HEADER_LEN :]
                kind = kinds[0 if is_first and not rest else 1 if is_first else 2 if rest else 3]
                out += fragment(kind, part)
                is_first = False
    return bytes(out)


def fragments(file: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Type, begin, end and payload of each fragment."""
    begin = 0
    while begin < len(file):
        left = BLOCK_LEN - begin % BLOCK_LEN
        if left < HEADER_LEN:
            assert not any(file[begin : begin + left])
            begin += left
            continue
        crc, length, kind = struct.unpack_from("<IHB", file, begin)
        end = begin + HEADER_LEN + length
        payload = file[begin + HEADER_LEN : end]
        assert length <= left - HEADER_LEN
        assert len(payload) == length
        assert crc == mask(crc32c(bytes([kind]) + payload))
        yield kind, begin, end, payload
        begin = end


def read(file: bytes) -> list[Record]:
    """The records of an intact log."""
    found: list[Record] = []
    begin, joined, kinds = 0, b"", None
    for kind, offset, end, payload in fragments(file):
        if kind == MARK:
            assert payload[:9] == b"cordwood\x01"
            continue
        own = PACKED if kind in PACKED else PLAIN
        place = own.index(kind)
        if place < 2:
            assert kinds is None
            begin, joined, kinds = offset, b"", own
        assert kinds == own
        joined += payload
        if place in {0, 3}:
            kinds = None
            found += records_of(joined, begin, end) if own == PACKED else [Record(begin, end, joined)]
    assert kinds is None
    return found


def records_of(payload: bytes, begin: int, end: int) -> Iterator[Record]:
    """The records of the container at `begin..end`."""
    count, body = take_varint(payload[1:])
    assert 1 <= count <= 32_768
    assert begin + count <= min(end, begin - begin % BLOCK_LEN + BLOCK_LEN)
    if payload[0]:
        body = pyarrow.input_stream(io.BytesIO(body), compression="zstd").read()
    lengths = []
    for _ in range(count):
        length, body = take_varint(body)
        lengths.append(length)
    assert sum(lengths) == len(body)
    for index, length in enumerate(lengths):
        last = index + 1 == count
        yield Record(begin + index, end if last else begin + index + 1, body[:length])
        body = body[length:]
