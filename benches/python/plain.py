"""Code by hand that reads and writes this format: forty lines of Python, and a package for the checksum."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from crc32c import crc32c

BLOCK_LEN = 32_768
HEADER = struct.Struct("<IHB")


def mask(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from records(file)


def records(file: BinaryIO) -> Iterator[bytes]:
    """Verifies every checksum, knows FULL to LAST, and stops at damage."""
    parts = []
    while block := file.read(BLOCK_LEN):
        at = 0
        while at + 7 <= len(block):
            stored, length, kind = HEADER.unpack_from(block, at)
            end = at + 7 + length
            if mask(crc32c(block[at + 6 : end])) != stored:
                raise ValueError(f"checksum mismatch at {at}")
            data = block[at + 7 : end]
            at = end
            if kind == 1:
                yield data
            else:
                parts.append(data)
                if kind == 4:
                    yield b"".join(parts)
                    parts.clear()


def write(path: Path, records: Iterable[bytes], *, flush: bool = False) -> None:
    """With `flush`, each record is written to the operating system before the next is started."""
    with path.open("wb") as file:
        offset = 0
        for record in records:
            taken, is_first = 0, True
            while True:
                left = BLOCK_LEN - offset
                if left < 7:
                    file.write(bytes(left))
                    offset, left = 0, BLOCK_LEN
                data = record[taken : taken + left - 7]
                taken += len(data)
                is_last = taken == len(record)
                kind = (1 if is_last else 2) if is_first else (4 if is_last else 3)
                file.write(HEADER.pack(mask(crc32c(data, crc32c(bytes([kind])))), len(data), kind))
                file.write(data)
                offset = (offset + 7 + len(data)) % BLOCK_LEN
                if is_last:
                    break
                is_first = False
            if flush:
                file.flush()
