"""Logs for comparing the originals with `cordwood.compat`: undamaged, or damaged at random from a seed."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import reference
from write_batch import DELETE, PUT, write_batch


@dataclass(frozen=True)
class Flavour:
    """How a peer's files differ from LevelDB's: a seven-byte file header, and another checksum."""

    header: bytes = b""

    def checksum(self, kind: int, payload: bytes) -> int:
        if not self.header:
            return reference.HEADER.unpack_from(reference.fragment(kind, payload))[0]
        return zlib.crc32(payload, zlib.crc32(bytes([kind])))

    def fragment(self, kind: int, payload: bytes) -> bytes:
        return reference.HEADER.pack(self.checksum(kind, payload), len(payload), kind) + payload


LEVELDB = Flavour()
WANDB = Flavour(b":W&B\xe1\xbe\x00")
SWANLAB = Flavour(b":SWL\xd6\xe1\x02")


@dataclass
class Log:
    """A log in a file that can be damaged, with the spans of its fragments."""

    flavour: Flavour
    file: bytearray
    spans: list[list[tuple[int, int]]]
    """The spans of each record's fragments."""

    @classmethod
    def of(cls, flavour: Flavour, records: list[bytes]) -> Log:
        # The file header is as long as an empty record, and takes its place.
        twin = reference.encode([b"", *records] if flavour.header else records)
        spans = []
        for item in reference.fragments(twin, verify_checksums=True):
            if item.kind in (reference.FULL, reference.FIRST):
                spans.append([])
            spans[-1].append((item.start, item.end))
        log = cls(flavour, bytearray(twin), spans[1:] if flavour.header else spans)
        log.file[: len(flavour.header)] = flavour.header
        for start, _ in log.fragments():
            log.seal(start)
        return log

    def fragments(self) -> list[tuple[int, int]]:
        return [span for spans in self.spans for span in spans]

    def seal(self, start: int) -> None:
        """Puts the valid checksum into a header."""
        _, length, kind = reference.HEADER.unpack_from(self.file, start)
        payload = bytes(self.file[start + 7 : start + 7 + length])
        struct.pack_into("<I", self.file, start, self.flavour.checksum(kind, payload))

    def small(self, rng: random.Random) -> tuple[int, int]:
        """A record of one fragment, with others around it in its block."""
        alone = [spans[0] for spans in self.spans if len(spans) == 1 and spans[0][1] - spans[0][0] > 7 + 40]
        blocks = [start // reference.BLOCK_LEN for start, _ in alone]
        return rng.choice([span for index, span in enumerate(alone[1:-1]) if len({*blocks[index : index + 3]}) == 1])

    def big(self) -> list[tuple[int, int]]:
        return max(self.spans, key=len)


def plain_records(rng: random.Random) -> list[bytes]:
    lengths = [*[rng.randrange(50, 2_000) for _ in range(20)], 100_000, *[rng.randrange(50, 2_000) for _ in range(39)]]
    return [rng.randbytes(length) for length in lengths]


def batch_records(rng: random.Random) -> list[bytes]:
    records = []
    for index, value in enumerate(plain_records(rng)):
        key = b"key-%04d" % index
        operations = [(PUT, key, value), (DELETE, key), (PUT, key * 20, b"")][: 1 + index % 3]
        records.append(write_batch(3 * index + 1, operations))
    return records


def twin_of(flavour: Flavour, file: bytes) -> bytes:
    """The same file in LevelDB's dialect: valid checksums become LevelDB's, invalid ones stay invalid."""
    if not flavour.header:
        return file
    twin = bytearray(file)
    twin[:7] = reference.fragment(reference.FULL, b"")
    for start in range(7, len(file) - 6):
        left = reference.BLOCK_LEN - start % reference.BLOCK_LEN
        stored, length, kind = reference.HEADER.unpack_from(file, start)
        if kind < 16 and 7 + length <= min(left, len(file) - start):
            payload = bytes(file[start + 7 : start + 7 + length])
            if stored == flavour.checksum(kind, payload):
                twin[start : start + 4] = reference.fragment(kind, payload)[:4]
    return bytes(twin)


def truth(flavour: Flavour, file: bytes, *, salvage: bool = False) -> list[reference.Record]:
    """The records that can be read."""
    events = reference.events(twin_of(flavour, file), salvage=salvage)
    records = [event for event in events if isinstance(event, reference.Record)]
    return records[1:] if flavour.header else records


# Damage: each function takes a log and a random number generator, and changes the log's file. ------

Damage = Callable[[Log, random.Random], None]
DAMAGE: dict[str, Damage] = {}


def damage(function: Damage) -> Damage:
    DAMAGE[function.__name__] = function
    return function


@damage
def flipped_payload(log, rng):
    start, end = log.small(rng)
    log.file[rng.randrange(start + 7, end)] ^= 1 << rng.randrange(8)


@damage
def flipped_payload_of_a_piece(log, rng):
    start, end = log.big()[1]
    log.file[rng.randrange(start + 7, end)] ^= 1 << rng.randrange(8)


@damage
def flipped_checksum(log, rng):
    start, _ = log.small(rng)
    log.file[start + rng.randrange(4)] ^= 1 << rng.randrange(8)


@damage
def flipped_kind(log, rng):
    start, _ = log.small(rng)
    log.file[start + 6] = reference.MIDDLE


@damage
def length_too_small(log, rng):
    start, end = log.small(rng)
    struct.pack_into("<H", log.file, start + 4, end - start - 7 - rng.randrange(1, 40))


@damage
def length_too_big(log, rng):
    start, end = log.small(rng)
    struct.pack_into("<H", log.file, start + 4, end - start - 7 + rng.randrange(1, 20))


@damage
def length_past_block(log, rng):
    struct.pack_into("<H", log.file, log.small(rng)[0] + 4, 0xFFFF)


@damage
def length_past_end(log, rng):
    start, end = log.fragments()[-1]
    struct.pack_into("<H", log.file, start + 4, end - start - 7 + rng.randrange(1, 20))


@damage
def unknown_kind(log, rng):
    start, _ = log.small(rng)
    log.file[start + 6] = 9
    log.seal(start)


@damage
def torn_payload(log, rng):
    start, end = log.fragments()[-1]
    del log.file[rng.randrange(start + 8, end) :]


@damage
def torn_header(log, rng):
    del log.file[log.fragments()[-1][0] + rng.randrange(1, 7) :]


@damage
def torn_after_header(log, rng):
    del log.file[log.fragments()[-1][0] + 7 :]


@damage
def torn_in_a_piece(log, rng):
    start, end = log.big()[1]
    del log.file[rng.randrange(start + 8, end) :]


@damage
def torn_between_pieces(log, rng):
    del log.file[log.big()[0][1] :]


@damage
def zero_tail(log, rng):
    log.file += bytes(rng.randrange(7, 200_000))


@damage
def zeroed_page(log, rng):
    page = log.big()[1][0] + 4096 * rng.randrange(1, 7)
    log.file[page : page + 4096] = bytes(4096)


@damage
def zeroed_block(log, rng):
    start, end = log.big()[1]
    log.file[start:end] = bytes(end - start)


@damage
def garbage_tail(log, rng):
    log.file += rng.randbytes(5_000)


@damage
def first_without_last(log, rng):
    start, _ = log.big()[1]
    log.file[start + 6] = reference.FULL
    log.seal(start)


@damage
def lost_block(log, rng):
    start, end = log.big()[1]
    del log.file[start:end]


@damage
def nonzero_trailer(log, rng):
    """The block after the big record ends in a trailer whose bytes are not zero."""
    _, end = log.big()[-1]
    room = reference.BLOCK_LEN - end % reference.BLOCK_LEN
    del log.file[end:]
    for payload in (rng.randbytes(room - 7 - 4), b"behind the trailer"):
        log.file += log.flavour.fragment(reference.FULL, payload) + b"trai"
    del log.file[-4:]


@damage
def missing_start(log, rng):
    del log.file[log.big()[0][0] :]
    log.file += log.flavour.fragment(reference.LAST, b"the end of nothing")
    log.file += log.flavour.fragment(reference.FULL, b"behind it")


# Undamaged logs, by the lengths of their records.
def lengths(flavour: Flavour) -> dict[str, list[int]]:
    used = len(flavour.header)
    room = reference.BLOCK_LEN - used - 7
    edges = {f"left_{left}": [room - left, 500, 30] for left in range(15)}
    return {
        "no_records": [],
        "one_record": [10],
        "many_blocks": [3_000_000, 5, 70_000],
        "mixed": [length for length in range(0, 3_000, 7) if length],
        **edges,
        **{f"{name}_at_end": those[:1] for name, those in edges.items()},
    }
