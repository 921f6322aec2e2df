"""Logs of each kind, made from a seed, and what a reader must return: pure Python, without cordwood.

The table of `tests/README.md` names the kinds. `reference.py` reads files of LevelDB and packed logs.
For logs with numbers and compressed ones, the place of each fragment is known from the writing: the fragments
that damage leaves are put together by `reference.assemble`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import packed_reference
import pyarrow
import recycled_logs
import reference
from reference import BLOCK_LEN, HEADER_LEN, KINDS, End, Fragment, Record, Skipped
from support import PAYLOAD, Event, merged, start_of

ALL = ("one-file", "segmented", "packed", "numbered", "compressed", "remote")
NUMBER = 7
SET_ZSTD = reference.fragment(reference.SET_COMPRESSION, b"\x07\0\0\0")
"""RocksDB's first fragment of a compressed log."""


@dataclass
class Log:
    """A log in memory. All offsets are those of the log."""

    kind: str
    files: dict[int, bytes]
    """The bytes of each file, by the offset at which it starts; only a segmented log has several."""
    plain: dict[bytes, bytes] = field(default_factory=dict)
    """The record of each zstd frame of a compressed log."""
    damaged: dict[int, str] = field(default_factory=dict)
    """The damage of each damaged fragment of the layout, by its offset: "flips" or "zeros"."""
    layout: list[Fragment] = field(default_factory=list)
    """The fragments as written, of a log with numbers or a compressed one."""

    @property
    def options(self) -> dict[str, object]:
        """Names the dialect."""
        return {
            "packed": {"dialect": "packed"},
            "numbered": {"dialect": "rocksdb", "log_number": NUMBER},
            "compressed": {"dialect": "rocksdb", "compression": "zstd"},
        }.get(self.kind, {"dialect": "leveldb"})

    @property
    def data(self) -> bytes:
        """The bytes of the only or newest file."""
        return self.files[max(self.files)]

    def events(self, policy: str = "skip") -> tuple[list[Event], End | None]:
        """All records and regions in the order of their offsets, and the end, if the model knows it.

        `policy`: "skip", "salvage", or "repair", which is "salvage" with flipped bits put back.
        """
        salvage, repair = policy != "skip", policy == "repair"
        end = None
        if self.layout:
            found = list(self._laid_out(salvage=salvage, repair=repair))
        elif self.kind == "segmented":
            *found, end = reference.events_of_segments(self.files, salvage=salvage, repair=repair)
        else:
            dialect = reference.PACKED if self.kind == "packed" else reference.LEVELDB
            *found, end = reference.events(self.data, salvage=salvage, repair=repair, dialect=dialect)
        return merged(sorted(found, key=lambda event: (start_of(event), isinstance(event, Skipped)))), end

    def records(self, policy: str = "skip") -> list[Record]:
        return [event for event in self.events(policy)[0] if isinstance(event, Record)]

    def regions(self, policy: str = "skip") -> list[Skipped]:
        return [event for event in self.events(policy)[0] if isinstance(event, Skipped)]

    def fragments(self) -> list[Fragment]:
        """Those of the only or newest file, as written."""
        if self.layout:
            return self.layout
        found = reference.fragments(self.data, verify_checksums=False, dialect=reference.PACKED)
        return [part for part in found if isinstance(part, Fragment)]

    def _laid_out(self, *, salvage: bool, repair: bool) -> list[Event]:
        items: list[Fragment | Skipped] = []
        if self.kind == "compressed":
            items.append(Skipped(0, len(SET_ZSTD), "metadata"))
        lost_end = salvaged_end = 0
        for part in self.layout:
            block_end = min(part.start - part.start % BLOCK_LEN + BLOCK_LEN, len(self.data))
            damage = self.damaged.get(part.start)
            if part.start < lost_end:
                continue
            if damage == "zeros":
                items.append(Skipped(part.start, block_end, "zero_fill"))
                lost_end = block_end
            elif damage == "flips" and not repair:
                lost_end = part.end if salvage else block_end
                salvaged_end = block_end
                items.append(Skipped(part.start, lost_end, "checksum_mismatch"))
            else:
                salvaged = salvage and part.start < salvaged_end
                items.append(Fragment(part.start, part.end, part.kind, part.payload, salvaged))
        events = [event for _, event in reference.assemble(items, 1 << 30, verify_checksums=True)]
        if self.kind == "compressed":
            return [
                Record(event.offset, event.end_offset, self.plain[event.data], event.salvaged)
                if isinstance(event, Record)
                else event
                for event in events
            ]
        return events


def payloads(rng: random.Random, count: int) -> list[bytes]:
    """Records that are all different, most of them short, some longer than a block."""
    lens = [rng.choice([5, 40, 300, 300, 3_000, 9_000, 40_000]) for _ in range(count)]
    starts = [rng.randrange(1 << 19) for _ in lens]
    return [
        b"%d " % rng.getrandbits(60) + PAYLOAD[at : at + rng.randrange(length)]
        for at, length in zip(starts, lens, strict=True)
    ]


@cache
def log(kind: str, seed: int, damage: str = "none", count: int = 40) -> Log:
    """The log of a kind with this seed. `damage`: "none", "flips" (payload bits) or "zeros" (rests of blocks)."""
    rng = random.Random(f"{kind} {seed} {damage}")
    made = written(kind, rng, count)
    if damage != "none":
        spoil(made, rng, damage)
    return made


def written(kind: str, rng: random.Random, count: int) -> Log:
    records = payloads(rng, count)
    if kind == "segmented":
        # No base is a multiple of the length of a block.
        files, offset = {}, rng.randrange(1, 3 * BLOCK_LEN)
        records += payloads(rng, count)
        edges = [0, *sorted(rng.sample(range(1, 2 * count), 2)), 2 * count]
        for start, end in pairwise(edges):
            offset += offset % BLOCK_LEN == 0
            files[offset] = reference.encode(records[start:end])
            offset += len(files[offset])
        return Log(kind, files)
    if kind == "packed":
        groups, at = [], 0
        while at < count:
            size = rng.randrange(1, 9)
            groups.append((records[at : at + size], rng.choice([None, 0, 1, 1])))
            at += size
        return Log(kind, {0: packed_reference.encode(groups, 1)})
    if kind == "numbered":
        return of_recycled(recycled(records))
    if kind == "compressed":
        frames = {pyarrow.Codec("zstd").compress(record, asbytes=True): record for record in records}
        file = SET_ZSTD + reference.encode(frames, len(SET_ZSTD))
        layout = [part for part in reference.fragments(file, verify_checksums=True) if isinstance(part, Fragment)]
        return Log(kind, {0: file}, frames, layout=layout)
    return Log(kind, {0: reference.encode(records)})


def recycled(records: list[bytes]) -> recycled_logs.Log:
    made = recycled_logs.Log(NUMBER, "recyclable")
    for record in records:
        made.append(record)
    return made


def of_recycled(made: recycled_logs.Log) -> Log:
    data = bytes(made.data)
    layout = [
        Fragment(start, end, KINDS[data[start + 6] - 5], data[start + made.header_len() : end])
        for start, end in made.fragments
    ]
    return Log("numbered", {0: data}, layout=layout)


def spoil(made: Log, rng: random.Random, damage: str) -> None:
    """Damages a few blocks, but not the last one of a file, and not the first one if it shows the form of the log."""
    header_len = 11 if made.kind == "numbered" else HEADER_LEN
    for base, data in made.files.items():
        parts = made.layout or [
            part
            for part in reference.fragments(data, verify_checksums=False, dialect=reference.PACKED)
            if isinstance(part, Fragment)
        ]
        last = (len(data) - 1) // BLOCK_LEN
        blocks = range(1 if made.layout else 0, last)
        file = bytearray(data)
        for block in rng.sample(blocks, min(len(blocks), 3)):
            part = rng.choice([p for p in parts if p.start // BLOCK_LEN == block and p.end > p.start + header_len])
            if damage == "flips":
                file[rng.randrange(part.start + header_len, part.end)] ^= 1 << rng.randrange(8)
            else:
                end = (block + 1) * BLOCK_LEN
                file[part.start : end] = bytes(end - part.start)
            made.damaged[part.start] = damage
        made.files[base] = bytes(file)
