"""The records that every contender reads and writes, the same in each process. Uses only the standard library."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterable

JSON = "json"
"""Lines of a log of requests, about 100 bytes each: compression is measured on these."""

SIZES = ("16", "100", "1024", "10240", "102400", "mix", JSON)
"""Bytes per record; the mix is log-normal: most records are short, but most bytes are in long ones."""

CHECKSUM_LENS = (0, 16, 64, 100, 256, 1024, 4096, 10_240, 32_761)
"""The checksum of no bytes shows the cost of the call."""

COUNT_MAX = 200_000
TOTAL_LEN = 32 << 20

# The bytes between a WriteBatch's start and the value of its only entry are the sequence number and the count, then
# a Put of an eight-byte key.
KEY = b"key-0001"
BATCH_HEADER = (1).to_bytes(8, "little") + (1).to_bytes(4, "little") + b"\x01" + bytes([len(KEY)]) + KEY


def records(size: str) -> list[bytes]:
    """At most `COUNT_MAX` records, and about `TOTAL_LEN` bytes."""
    source = random.Random(size)
    if size == JSON:
        return [json_line(source, index) for index in range(COUNT_MAX)]
    noise = source.randbytes(2 << 20)
    lens = mixed_lens(source) if size == "mix" else [int(size)] * min(COUNT_MAX, TOTAL_LEN // int(size))
    starts = (source.randrange(1 << 20) for _ in lens)
    return [noise[start : start + length] for start, length in zip(starts, lens, strict=False)]


def json_line(source: random.Random, index: int) -> bytes:
    """A line of a log of requests."""
    line = {
        "time": 1_700_000_000_000 + 7 * index,
        "level": source.choice(("info", "info", "info", "warning", "error")),
        "user": source.randrange(5000),
        "path": f"/api/v1/{source.choice(('items', 'orders', 'users'))}/{source.randrange(100_000)}",
        "status": 200,
        "ms": source.randrange(2000),
    }
    return json.dumps(line, separators=(",", ":")).encode()


def mixed_lens(source: random.Random) -> list[int]:
    """Median 300 bytes, mean about 900, at least 1, at most 1 MiB."""
    lens = []
    left = TOTAL_LEN
    while left > 0:
        lens.append(min(max(1, int(source.lognormvariate(math.log(300), 1.5))), 1 << 20))
        left -= lens[-1]
    return lens


def batches(values: Iterable[bytes]) -> list[bytes]:
    """Each value as the only entry of a WriteBatch: the records that LevelDB itself puts into its log."""
    return [BATCH_HEADER + varint(len(value)) + value for value in values]


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def digest(values: Iterable[bytes]) -> str:
    """A digest of the records and their lengths: it is the same only for the same list of records."""
    summed = hashlib.blake2b(digest_size=16)
    for value in values:
        summed.update(len(value).to_bytes(8, "little"))
        summed.update(value)
    return summed.hexdigest()
