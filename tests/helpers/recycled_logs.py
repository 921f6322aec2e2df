"""New logs written over older ones, as RocksDB and Pebble recycle files: a writer that shares no code with cordwood."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

import reference
from crc32c import crc32c
from reference import BLOCK_LEN

HEADER_LENS = {"plain": 7, "recyclable": 11, "synced": 19}
FIRST_TYPES = {"plain": 1, "recyclable": 5, "synced": 9}
"""The type of FULL; those of FIRST, MIDDLE and LAST follow it."""


@dataclass
class Log:
    """A log and the places in it."""

    number: int
    form: str
    data: bytearray = field(default_factory=bytearray)
    records: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Each record's offset, its end, and its bytes."""
    fragments: list[tuple[int, int]] = field(default_factory=list)
    synced: int = 0

    def header_len(self) -> int:
        return HEADER_LENS[self.form]

    def append(self, record: bytes) -> None:
        """Adds a record, after zeros if a block has no room for a header."""
        left = BLOCK_LEN - len(self.data) % BLOCK_LEN
        if left < self.header_len():
            self.data += bytes(left)
        start, rest, is_first = len(self.data), record, True
        while is_first or rest:
            room = BLOCK_LEN - len(self.data) % BLOCK_LEN - self.header_len()
            payload, rest = rest[:room], rest[room:]
            kind = (0 if is_first else 3) if not rest else (1 if is_first else 2)
            self.fragment(FIRST_TYPES[self.form] + kind, payload)
            is_first = False
        self.records.append((start, len(self.data), record))

    def fragment(self, kind: int, payload: bytes) -> None:
        numbers = {"plain": b"", "recyclable": struct.pack("<I", self.number)}
        numbers["synced"] = numbers["recyclable"] + struct.pack("<Q", self.synced)
        covered = bytes([kind]) + numbers[self.form] + payload
        start = len(self.data)
        self.data += struct.pack("<IH", reference.mask(crc32c(covered)), len(payload)) + covered
        self.fragments.append((start, len(self.data)))

    def close(self) -> None:
        """Adds the trailer with which Pebble ends a log."""
        left = BLOCK_LEN - len(self.data) % BLOCK_LEN
        if left < self.header_len():
            self.data += bytes(left)
        self.data += struct.pack("<IHBI", 0, 0, 5, self.number + 1)


def a_record(rng: random.Random, length_max: int) -> bytes:
    """Random bytes, zeros, text, or a batch of RocksDB, whose first bytes are a sequence number and a count."""
    length = rng.randrange(rng.choice([20, 300, length_max, 30 * length_max if rng.random() < 0.05 else length_max]))
    what = rng.randrange(4)
    if what == 0:
        return bytes(length)
    if what == 1:
        return (b"key-%06d value " % rng.randrange(1_000) * (length // 10))[:length]
    if what == 2:
        return struct.pack("<QI", rng.randrange(1_000), 1) + rng.randbytes(length)
    return rng.randbytes(length)


def a_log(rng: random.Random, number: int, form: str, length: int, length_max: int = 3_000) -> Log:
    """A log of about `length` bytes."""
    log = Log(number, form)
    while len(log.data) < length:
        log.append(a_record(rng, length_max))
        if rng.random() < 0.1:
            log.synced = len(log.data)
    return log


@dataclass
class State:
    """A file while a log is written to it: log `new`, over older ones."""

    new: Log
    dialect: str
    data: bytes
    own_len: int
    """How many bytes of the new log are in the file."""

    def records(self) -> list[bytes]:
        """Those that are whole in the file, be it that the older log happened to have the same bytes."""
        return [record for _, end, record in self.new.records if self.data[:end] == self.new.data[:end]]

    def looks_whole(self) -> bool:
        """Whether the fragment that is only partly written differs in one bit from the whole one."""
        torn = [slice(*span) for span in self.new.fragments if span[0] < self.own_len < span[1]]
        pairs = [zip(self.data[span], self.new.data[span], strict=False) for span in torn]
        return any(sum((one ^ other).bit_count() for one, other in pair) == 1 for pair in pairs)

    def whole_fragment(self, offset: int) -> tuple[int, int] | None:
        """The fragment at this offset, if all of it is in the file."""
        spans = (span for span in self.new.fragments if span[0] <= offset < span[1] <= self.own_len)
        return next(spans, None)


def a_state(rng: random.Random) -> State:
    """A log of RocksDB or Pebble, over one or two older ones, after a record, or in the middle of one."""
    dialect = rng.choice(["pebble", "recyclable", "rocksdb"])
    form = rng.choice(["recyclable", "recyclable", "synced"]) if dialect == "pebble" else "recyclable"
    number = rng.randrange(10, 3_000)
    length = rng.choice([rng.randrange(2_000), rng.randrange(40_000), rng.randrange(150_000)])
    data = bytearray()
    for older in sorted(rng.sample(range(1, number), rng.randrange(1, 3))):
        # Pebble started to write synced offsets in a later version.
        older_form = rng.choice(["recyclable", "synced"]) if form == "synced" else form
        log = a_log(rng, older, older_form, length, rng.choice([300, 3_000]))
        if dialect == "pebble" and rng.random() < 0.7:
            log.close()
        data[: len(log.data)] = log.data
        length = rng.randrange(length + 1)
    new = a_log(rng, number, form, 1 + rng.randrange(len(data) + 1), rng.choice([300, 3_000]))
    own_len = rng.choice(new.records)[1]
    if rng.random() < 0.3:
        own_len = rng.randrange(new.records[0][1], own_len + 1)
    data[:own_len] = new.data[:own_len]
    return State(new, dialect, bytes(data), own_len)
