"""The cases of `tests/cases`, whose README describes their form."""

from __future__ import annotations

import hashlib
import itertools
import json
import struct
import zlib
from typing import Any

import reference
from crc32c import crc32c
from real_files import VECTORS
from support import TESTS

CASES = TESTS / "cases"


def all_cases() -> list[dict[str, Any]]:
    """Every case of every file."""
    return [case for file in sorted(CASES.glob("*.json")) for case in json.loads(file.read_text(encoding="utf-8"))]


def content_of(case: dict[str, Any]) -> bytes:
    """The bytes of a case."""
    data = bytearray(joined(case["content"]))
    for what, offset, *rest in case.get("changes", []):
        if what == "flip":
            data[offset] ^= 1 << rest[0]
        elif what == "put":
            new = bytes.fromhex(rest[0])
            data[offset : offset + len(new)] = new
        else:
            assert what == "cut"
            del data[offset:]
    return bytes(data)


def joined(pieces: list[dict[str, Any]]) -> bytes:
    return b"".join(map(piece_bytes, pieces))


def piece_bytes(piece: dict[str, Any]) -> bytes:
    make = next(PIECES[key] for key in piece if key in PIECES)
    return make(piece)


def noise(seed: str, count: int) -> bytes:
    out = bytearray()
    for number in itertools.count():
        if len(out) >= count:
            return bytes(out[:count])
        out += hashlib.sha256(f"{seed}{number}".encode()).digest()
    raise AssertionError


def fragment(kind: int, data: bytes, piece: dict[str, Any]) -> bytes:
    numbers = b""
    if "log_number" in piece:
        numbers += struct.pack("<I", piece["log_number"])
    if "synced_offset" in piece:
        numbers += struct.pack("<Q", piece["synced_offset"])
    covered = bytes([kind]) + numbers + data
    if piece.get("checksum") == "crc32":
        return struct.pack("<IHB", zlib.crc32(covered), len(data), kind) + covered[1:]
    return struct.pack("<IHB", reference.mask(crc32c(covered)), len(data), kind) + covered[1:]


PIECES = {
    "hex": lambda piece: bytes.fromhex(piece["hex"]),
    "text": lambda piece: piece["text"].encode(),
    "zeros": lambda piece: bytes(piece["zeros"]),
    "noise": lambda piece: noise(piece["seed"], piece["noise"]),
    "repeat": lambda piece: joined(piece["repeat"]) * piece["count"],
    "fragment": lambda piece: fragment(piece["fragment"], joined(piece["data"]), piece),
    "vector": lambda piece: (VECTORS / piece["vector"]).read_bytes()[piece.get("begin", 0) : piece.get("end")],
}
