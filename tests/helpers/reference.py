"""The LevelDB log format in plain Python, written for readability, and to check the Rust implementation against.

It follows `docs/format/reading.md` and, for packed logs, `packed.md`. It shares no code with Rust. A file is
divided into blocks of 32,768 bytes. A block contains fragments, each a header (checksum u32, length u16, kind u8,
little endian) and its payload. A record is one FULL fragment, or FIRST, MIDDLE..., LAST. Reading has three steps,
each a function: `fragments` (which bytes are a fragment), `assemble` (which fragments are a record), and `events`
(which of these a range owns, and the end).

This code is neither fast nor lazy: the whole file is in memory, and a range is cut out of the events of the whole file.
That is what a range promises, and an implementation that starts in the middle of the file must return the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, pairwise
from struct import Struct

import containers
from containers import MARK
from crc32c import crc32c

BLOCK_LEN = 32_768
HEADER_LEN = 7
HEADER = Struct("<IHB")  # masked checksum, payload length, kind

FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
KINDS = (FULL, FIRST, MIDDLE, LAST)
# FULL, FIRST, MIDDLE and LAST of a container.
CONTAINER_KINDS = (0x40, 0x42, 0x44, 0x46)
KIND_BY_PLACE = {(True, True): FULL, (True, False): FIRST, (False, False): MIDDLE, (False, True): LAST}

CORRUPTION = frozenset(
    {
        "bad_length",
        "checksum_mismatch",
        "unknown_kind",
        "missing_start",
        "missing_end",
        "interrupted_record",
        "zero_header",
        "record_too_large",
        "bad_metadata",
        "bad_container",
        "bad_compression",
        "unsupported_compression",
        "missing_segment",
        "grown_segment",
    }
)

# RocksDB's metadata, which a detected dialect knows: how records are compressed, too late; the lengths of timestamps;
# the log before this one.
SET_COMPRESSION = 9
TIMESTAMP_SIZES = (10, 11)
PREDECESSOR = (130, 131)
# These carry the number of the log, if it has one: the checksum says how long the header is.
NUMBERED = (TIMESTAMP_SIZES[1], PREDECESSOR[1])


@dataclass(frozen=True, slots=True)
class Dialect:
    """The types of a log besides 1 to 4."""

    has_metadata: bool = False
    """RocksDB's own records."""
    has_containers: bool = False
    """Containers, and the mark of a packed log."""

    def place(self, kind: int) -> int | None:
        """FULL, FIRST, MIDDLE or LAST, if a fragment of this type is one."""
        if kind in KINDS:
            return kind
        if self.has_containers and kind in CONTAINER_KINDS:
            return KINDS[CONTAINER_KINDS.index(kind)]
        return None


LEVELDB = Dialect()
PACKED = Dialect(has_containers=True)
DETECTED = Dialect(has_metadata=True, has_containers=True)
"""A `leveldb` that was detected, not named."""

LEAVES_THE_BLOCK = ("bad_length", "checksum_mismatch", "zero_header")
"""The damage after which the rest of the block is not trusted: F3, F5 and F6, and a wrong length of F4."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record; its span runs from its first fragment's header to the end of its last fragment's payload."""

    offset: int
    end_offset: int
    data: bytes
    salvaged: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """A region `[start, end)` that contains no record."""

    start: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class Refused(Skipped):
    """A mark or a container that no reader skips."""

    error: containers.RefusedError


@dataclass(frozen=True, slots=True)
class End:
    """The last event: `clean`, `torn_tail` or `stopped`, and where."""

    kind: str
    offset: int


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment as in F8: valid, and of a known kind."""

    start: int
    end: int
    kind: int
    """FULL, FIRST, MIDDLE or LAST."""
    payload: bytes
    salvaged: bool = False
    is_container: bool = False


# Writing


def mask(crc: int) -> int:
    """Mask a checksum before it is stored, so that a log inside a payload does not look like a valid one."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def unmask(masked: int) -> int:
    """Undo `mask`."""
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def fragment(kind: int, payload: bytes) -> bytes:
    """Header and payload (F6). The checksum covers the kind and the payload, not the length."""
    return HEADER.pack(mask(crc32c(payload, crc32c(bytes([kind])))), len(payload), kind) + payload


def trailer_len(offset: int) -> int:
    """How many zero bytes the writer puts at `offset` before a record: the rest of a block, if too short (F1)."""
    left = BLOCK_LEN - offset % BLOCK_LEN
    return left if left < HEADER_LEN else 0


def encode_record(record: bytes, offset: int, kinds: tuple[int, int, int, int] = KINDS) -> bytes:
    """The fragments of one record whose first header is at `offset`, of these types (F8)."""
    out = bytearray()
    taken = 0
    while True:  # Runs once for an empty record, which is a FULL without payload.
        room = BLOCK_LEN - (offset + len(out)) % BLOCK_LEN - HEADER_LEN  # If 0, FIRST is empty.
        payload = record[taken : taken + room]
        is_first = not out
        taken += len(payload)
        is_last = taken == len(record)
        out += fragment(kinds[KINDS.index(KIND_BY_PLACE[is_first, is_last])], payload)
        if is_last:
            return bytes(out)


def encode(records: Iterable[bytes], offset: int = 0) -> bytes:
    """The bytes that LevelDB's writer adds to a file of length `offset`. Only before a record is a trailer (F1)."""
    out = bytearray()
    for record in records:
        out += bytes(trailer_len(offset + len(out)))
        out += encode_record(record, offset + len(out))
    return bytes(out)


def record_offsets(records: Iterable[bytes], offset: int = 0) -> list[int]:
    """The file offset of each record's first header, given the same arguments as `encode`."""
    offsets = []
    for record in records:
        offset += trailer_len(offset)
        offsets.append(offset)
        offset += len(encode_record(record, offset))
    return offsets


# Reading, step 1: bytes into fragments ("One fragment")


def fragments(
    data: bytes, *, verify_checksums: bool, salvage: bool = False, repair: bool = False, dialect: Dialect = LEVELDB
) -> Iterator[Fragment | Skipped]:
    """The contents of the file, in order, without trailers of zeros (F8)."""
    view = memoryview(data)
    start = 0
    salvaged_end = 0  # Fragments up to here are salvaged.
    searched_end = 0  # The end of the last block that was searched for a chain.
    goes_on = False  # The preceding fragment is FIRST or MIDDLE.
    while start < len(data):
        left = BLOCK_LEN - start % BLOCK_LEN
        rest = view[start : start + left]  # Shorter than `left` if the file ends in this block.
        metadata = metadata_at(rest) if dialect.has_metadata else None  # D11
        verdict = judge_rest(rest, left, verify_checksums=verify_checksums, is_first=start == 0, dialect=dialect)
        if repair and verdict in LEAVES_THE_BLOCK and metadata is None:  # B1
            repaired = repaired_fragment(rest, left, is_first=start == 0, dialect=dialect)
            if repaired is not None:
                rest = memoryview(repaired)
                verdict = "whole"
                metadata = metadata_at(rest) if dialect.has_metadata else None
        if metadata:  # D10, D11
            length, reason = metadata
            end = start + length
            yield Skipped(start, end, reason)
            goes_on = False
        elif verdict == "whole":  # F7, F8
            item = whole(rest, start, dialect, is_salvaged=start < salvaged_end)
            yield item
            end = item.end
            goes_on = isinstance(item, Fragment) and item.kind in (FIRST, MIDDLE)
        else:
            end = start + len(rest)
            if verdict == "zero_fill" and len(rest) < HEADER_LEN and goes_on and start % BLOCK_LEN > 0:
                verdict = "torn_tail"  # F2
            if salvage and verdict in LEAVES_THE_BLOCK:  # S4, S9
                length, has_searched = lost_len(rest, left, may_search=searched_end <= start, dialect=dialect)
                end = start + length
                salvaged_end = start + left
                if has_searched:
                    searched_end = start + left
            if verdict != "zero_trailer" and not (verdict == "nonzero_trailer" and goes_on):  # F1
                yield Skipped(start, end, verdict)
            goes_on = False
        start = end


def whole(rest: memoryview, start: int, dialect: Dialect, *, is_salvaged: bool) -> Fragment | Skipped:
    """F7 and F8."""
    _, length, kind = HEADER.unpack_from(rest)
    end = start + HEADER_LEN + length
    payload = bytes(rest[HEADER_LEN : HEADER_LEN + length])
    place = dialect.place(kind)
    if place is not None:  # F8
        return Fragment(start, end, place, payload, is_salvaged, kind in CONTAINER_KINDS)
    if kind == MARK and dialect.has_containers:  # K2, K9
        is_trusted = checksum_is_right(rest) and not is_salvaged
        try:
            return Skipped(start, end, containers.mark_reason(payload, start, is_trusted=is_trusted))
        except containers.RefusedError as error:
            return Refused(start, end, "bad_metadata", error)
    return Skipped(start, end, "unknown_kind")  # F7: the only skip that does not cover the whole rest


def metadata_at(rest: memoryview) -> tuple[int, str] | None:
    """The length of RocksDB's metadata record at the start of `rest` (D10, D11), and why it is skipped, or `None`."""
    if len(rest) < HEADER_LEN:
        return None
    stored, length, kind = HEADER.unpack_from(rest)
    for number_len in (0, 4) if kind in NUMBERED else (0,):  # D11
        end = HEADER_LEN + number_len + length
        if end > len(rest) or crc32c(rest[HEADER_LEN - 1 : end]) != unmask(stored):
            continue
        payload = rest[HEADER_LEN + number_len : end]
        if kind in TIMESTAMP_SIZES:  # pairs of a column family and a length that is not 0
            lengths = [payload[at : at + 2] for at in range(4, length, 6)]
            is_usual = length % 6 == 0 and all(any(pair) for pair in lengths)
            return end, "metadata" if is_usual else "bad_metadata"
        if kind in PREDECESSOR:  # three numbers
            return end, "metadata" if length == 24 else "bad_metadata"
        if kind == SET_COMPRESSION:
            return end, "bad_metadata"
    return None


def judge_rest(rest: memoryview, left: int, *, verify_checksums: bool, is_first: bool, dialect: Dialect) -> str:
    """F1 to F6: why the rest is skipped. "zero_trailer" is not an event; "whole" means that F7 and F8 decide."""
    if left < HEADER_LEN:  # F1
        return "nonzero_trailer" if any(rest) else "zero_trailer"
    if len(rest) < HEADER_LEN:  # F2
        return "torn_tail" if any(rest) else "zero_fill"
    _, length, kind = HEADER.unpack_from(rest)
    if HEADER_LEN + length > left:  # F3
        return "bad_length"
    if HEADER_LEN + length > len(rest):  # F4
        is_torn = may_be_torn(rest, left, is_first=is_first, dialect=dialect) and not length_is_proved_wrong(
            rest, dialect
        )
        return "torn_tail" if is_torn else "bad_length"
    if kind == 0 and length == 0:  # F5
        return "zero_header" if any(rest) else "zero_fill"
    return "checksum_mismatch" if verify_checksums and not checksum_is_right(rest) else "whole"  # F6


def checksum_is_right(rest: memoryview) -> bool:
    """Whether the fragment at the start of `rest`, which fits in it, has the checksum that its header states (F6)."""
    stored, length, _ = HEADER.unpack_from(rest)
    return crc32c(rest[HEADER_LEN - 1 : HEADER_LEN + length]) == unmask(stored)


def may_be_torn(rest: memoryview, left: int, *, is_first: bool, dialect: Dialect) -> bool:
    """F4: the length goes past the end of the file; whether a writer writes such a header there."""
    _, length, kind = HEADER.unpack_from(rest)
    if kind == 0:  # F4c: the sector with the type, and those after it, were not written.
        return not any(rest[HEADER_LEN:])
    place = dialect.place(kind)
    if place in (FIRST, MIDDLE) and left - HEADER_LEN - length >= HEADER_LEN:  # F4d: the rest is in the next block
        return False
    if dialect.has_metadata and kind in TIMESTAMP_SIZES:  # D3
        return length > 0 and length % 6 == 0
    if dialect.has_metadata and kind in PREDECESSOR:  # D3
        return length == 24
    if dialect.has_containers and kind == MARK:  # K12
        return length >= 10
    return place in ((FULL, FIRST) if is_first else KINDS)  # F4c, F4e


def length_is_proved_wrong(rest: memoryview, dialect: Dialect) -> bool:
    """F4: whether the bytes after the header show that it is damaged, and not from a write that was cut short."""
    stored = unmask(HEADER.unpack_from(rest)[0])
    crc_of_kind = crc32c(rest[HEADER_LEN - 1 : HEADER_LEN])
    crcs = accumulate(rest[HEADER_LEN:], lambda crc, byte: crc32c(bytes([byte]), crc), initial=crc_of_kind)
    if any(crc == stored for crc in crcs):  # F4a: some shorter payload, from 0 bytes on, fits the checksum
        return True
    for at in range(HEADER_LEN, len(rest) - HEADER_LEN + 1):  # F4b: a whole fragment follows the header
        _, length, kind = HEADER.unpack_from(rest, at)
        is_part = dialect.place(kind) is not None
        if is_part and at + HEADER_LEN + length <= len(rest) and checksum_is_right(rest[at:]):
            return True
    return False


# Reading, step 1 with the policy salvage ("Salvage")


def lost_len(rest: memoryview, left: int, *, may_search: bool, dialect: Dialect) -> tuple[int, bool]:
    """How much of `rest` is lost to the damage at its start, and whether a chain was searched for (S1 to S5)."""
    stored, length, kind = HEADER.unpack_from(rest)
    stated = HEADER_LEN + length
    crc_of_kind = crc32c(rest[HEADER_LEN - 1 : HEADER_LEN])
    for n in sorted(length ^ 1 << bit for bit in range(16)):  # S1
        if HEADER_LEN + n <= len(rest) and crc32c(rest[HEADER_LEN : HEADER_LEN + n], crc_of_kind) == unmask(stored):
            if valid_end(rest, HEADER_LEN + n, dialect) or is_end(rest, left, HEADER_LEN + n):
                return HEADER_LEN + n, False
            break
    if valid_end(rest, stated, dialect):  # S2
        return stated, False
    if dialect.place(kind) is not None and is_hard_end(rest, left, stated):  # S3
        return stated, False
    found = first_chain(rest, left, dialect) if may_search else None  # S4
    if found is not None:
        return found, may_search
    return (stated if is_end(rest, left, stated) else len(rest)), may_search  # S5


def repaired_fragment(rest: memoryview, left: int, *, is_first: bool, dialect: Dialect) -> bytes | None:
    """The fragment at the start of `rest` without the one flipped bit that damaged it, if there is one (B1, B2, B3)."""
    places = [(at, bit) for at in range(HEADER_LEN) for bit in range(8)]
    stored, length, _ = HEADER.unpack_from(rest)
    stated = HEADER_LEN + length
    change = crc32c(rest[HEADER_LEN - 1 : stated]) ^ unmask(stored)
    if stated <= len(rest) and change in bits_by_change():
        distance, bit = bits_by_change()[change]
        if distance < length:
            places.append((stated - 1 - distance, bit))
    own = (*TIMESTAMP_SIZES, *PREDECESSOR) if dialect.has_metadata else ()
    if dialect.has_containers and is_first:
        own += (MARK,)
    found = []
    for at, bit in places:
        flipped = bytearray(rest)
        flipped[at] ^= 1 << bit
        _, length, kind = HEADER.unpack_from(flipped)
        end = HEADER_LEN + length
        place = dialect.place(kind)
        is_written = kind in own or place in (FULL, LAST) or (place in (FIRST, MIDDLE) and end == left)
        if is_written and end <= len(rest) and checksum_is_right(memoryview(flipped)):
            found.append(bytes(flipped[:end]))
    if len(found) > 1:  # B3
        found = [one for one in found if valid_end(rest, len(one), dialect) or is_end(rest, left, len(one))]
    return found[0] if len(found) == 1 else None  # B3


@cache
def bits_by_change() -> dict[int, tuple[int, int]]:
    """B1: each bit of a block, by how it changes a checksum: its distance from the last byte, and the bit in its byte.

    A CRC is linear: how a bit changes it depends only on its distance from the end, not on the data.
    """
    found = {}
    changes = [crc32c(bytes([1 << bit])) ^ crc32c(b"\0") for bit in range(8)]
    for distance in range(BLOCK_LEN):
        found.update({change: (distance, bit) for bit, change in enumerate(changes)})
        changes = [crc32c(b"\0", change) ^ crc32c(b"\0", 0) for change in changes]
    return found


def valid_end(rest: memoryview, at: int, dialect: Dialect) -> int | None:
    """Where the valid fragment at this place ends, if one starts there (S6)."""
    if at + HEADER_LEN > len(rest):
        return None
    stored, length, kind = HEADER.unpack_from(rest, at)
    for number_len in (0, 4) if dialect.has_metadata and kind in NUMBERED else (0,):
        end = at + HEADER_LEN + number_len + length
        fits = (length, kind) != (0, 0) and end <= len(rest)
        if fits and crc32c(rest[at + HEADER_LEN - 1 : end]) == unmask(stored):
            return end
    return None


def is_hard_end(rest: memoryview, left: int, at: int) -> bool:
    """S7."""
    return at == len(rest) or (at < len(rest) and left - at < HEADER_LEN)


def is_end(rest: memoryview, left: int, at: int) -> bool:
    """S7."""
    return is_hard_end(rest, left, at) or (at < len(rest) and not any(rest[at:]))


def is_torn(rest: memoryview, left: int, at: int) -> bool:
    """S8: F2 and F4, without the proof of F4 that the length is wrong."""
    if len(rest) == left:  # The file does not end in this block.
        return False
    if len(rest) - at < HEADER_LEN:
        return True
    _, length, _ = HEADER.unpack_from(rest, at)
    return len(rest) < at + HEADER_LEN + length <= left


def first_chain(rest: memoryview, left: int, dialect: Dialect) -> int | None:
    """The first position, after the first byte, at which a chain starts (S4, S8).

    A chain is followed by an end, a torn write, another chain, or one damaged fragment that an end or a chain follows.
    So whether one starts at a position depends only on later positions: they are examined from back to front.
    """
    zeros = len(bytes(rest).rstrip(b"\0"))  # Only zeros from here on.
    good: set[int] = set()  # An end, or the start of a chain.
    passable: set[int] = set()  # Where else a chain may end.
    found = None
    for at in range(len(rest), 0, -1):
        end = -1
        if at + HEADER_LEN <= len(rest):
            end = at + HEADER_LEN + HEADER.unpack_from(rest, at)[1]
        valid = valid_end(rest, at, dialect)
        if valid in good or valid in passable:
            found = at
            good.add(at)
        elif at >= zeros or is_hard_end(rest, left, at):
            good.add(at)
        elif is_torn(rest, left, at) or end in good:
            passable.add(at)
    return found


# Reading, step 2: fragments into records ("Fragments into records")


def is_continuation(item: Fragment | Skipped | None) -> bool:
    """MIDDLE and LAST continue the pending record; all others end it (A1 to A3)."""
    return isinstance(item, Fragment) and item.kind in (MIDDLE, LAST)


def is_boundary(item: Fragment | Skipped) -> bool:
    """FULL, FIRST and the skips of F1 to F7: the events that may start a range, and those that end it (R4)."""
    return not is_continuation(item)


def why_broken(payload_len: int, by: Fragment | Skipped | None) -> str:
    """A2 to A4: why a pending record of `payload_len` bytes is skipped; `by` is None at the end of the file."""
    if isinstance(by, Fragment):
        return "missing_end" if payload_len > 0 else "empty_first"
    if by is None or by.reason == "torn_tail":
        return "torn_tail"
    return "interrupted_record"


def assemble(
    items: list[Fragment | Skipped], record_len_max: int, *, verify_checksums: bool
) -> Iterator[tuple[int, Record | Skipped]]:
    """All events of a file except its end (A1 to A6), each with the offset that decides which range owns it.

    That offset is where the event's boundary (see `is_boundary`) starts: for a record, its first fragment; for a
    MIDDLE or LAST without a start, the boundary before it, or 0. For a skip of step 1, it is where the skip starts. A
    record of a container has an offset of its own.
    """
    run: list[Fragment] = []  # The pending record or, if `in_rest`, the rest after a `record_too_large`.
    payload_len = 0
    in_rest = False
    # The record in `run`, or the one that was too large, is to be continued by a fragment of the same sort.
    goes_on = False
    is_container = False
    owner = 0
    budget = containers.Budget(record_len_max)
    for item in [*items, None]:  # None: the end of the file
        if not is_continuation(item) or (goes_on and item.is_container != is_container):  # K1
            if run:
                reason = "too_large_rest" if in_rest else why_broken(payload_len, item)  # A6
                yield owner, Skipped(run[0].start, run[-1].end, reason)
            run, payload_len, in_rest, goes_on = [], 0, False, False
            if item is not None and is_boundary(item):
                owner = item.start
        if isinstance(item, Skipped):
            yield item.start, item
        elif isinstance(item, Fragment):
            if is_continuation(item) and not run and not in_rest:  # A1
                yield owner, Skipped(item.start, item.end, "missing_start")
                continue
            run.append(item)
            payload_len += len(item.payload)
            is_complete = item.kind in (FULL, LAST)
            is_container = item.is_container
            len_max = containers.joined_len_max(record_len_max) if is_container else record_len_max  # K8
            if not in_rest and payload_len > len_max:  # A5
                yield owner, Skipped(run[0].start, item.end, "record_too_large")
                run, in_rest = [], not is_complete
            elif is_complete:  # A2
                if in_rest:  # A6
                    yield owner, Skipped(run[0].start, item.end, "too_large_rest")
                elif is_container:
                    is_trusted = verify_checksums and not run[0].salvaged
                    yield from events_of(run, record_len_max, budget, is_trusted=is_trusted)
                else:
                    yield owner, Record(run[0].start, item.end, b"".join(part.payload for part in run), run[0].salvaged)
                run, in_rest = [], False
            goes_on = not is_complete


def events_of(
    run: list[Fragment], record_len_max: int, budget: containers.Budget, *, is_trusted: bool
) -> Iterator[tuple[int, Record | Skipped]]:
    """The events of a container, like those of `assemble` (K6, C9)."""
    start, end = run[0].start, run[-1].end
    joined = b"".join(part.payload for part in run)
    try:
        found = containers.opened(joined, start, end, record_len_max, budget, is_trusted=is_trusted)
    except containers.RefusedError as error:
        yield start, Refused(start, end, "bad_container", error)  # Of the range that owns the container.
        return
    if isinstance(found, str):
        yield start, Skipped(start, end, found)
        return
    ends = [*range(start + 1, start + len(found)), end]
    for offset, (end_offset, record) in enumerate(zip(ends, found, strict=True), start):
        if len(record) > record_len_max:
            yield offset, Skipped(offset, end_offset, "record_too_large")
        else:
            yield offset, Record(offset, end_offset, record, run[0].salvaged)


# Reading, step 3: the events of a range ("Ranges", "How a file ends", "Policies")


def events(
    data: bytes,
    *,
    start: int = 0,
    end: int | None = None,
    record_len_max: int = 1 << 30,
    verify_checksums: bool = True,
    stop: bool = False,
    salvage: bool = False,
    repair: bool = False,
    dialect: Dialect = LEVELDB,
) -> Iterator[Record | Skipped | End]:
    """The events of `data` that the range from `start` to `end` owns (R1 to R5), followed by the End (E1 to E3).

    `repair`: a fragment that one flipped bit has damaged is read with that bit flipped back. A `RefusedError` is an
    error under every policy.
    """
    items = list(fragments(data, verify_checksums=verify_checksums, salvage=salvage, repair=repair, dialect=dialect))
    limit = len(data) if end is None else end
    owners = set()
    torn_start: int | None = None  # E1: where the run of torn_tail regions at the end of the events so far started.
    for owner, event in assemble(items, record_len_max, verify_checksums=verify_checksums):
        owners.add(owner)
        if not start <= owner < limit:
            continue
        if isinstance(event, Refused):
            raise event.error
        yield event
        if isinstance(event, Record) or event.reason != "torn_tail":
            torn_start = None
        elif torn_start is None:  # E1
            torn_start = event.start
        if stop and isinstance(event, Skipped) and event.reason in CORRUPTION:  # O3
            if event.end < min(limit, len(data)):
                yield Skipped(event.end, min(limit, len(data)), "not_read")
            yield End("stopped", event.start)
            return
    boundaries = [item.start for item in items if is_boundary(item)]
    if torn_start is not None:
        yield End("torn_tail", torn_start)
    elif limit <= start or (start > 0 and not any(start <= place < limit for place in boundaries)):
        yield End("clean", min(limit, len(data)))  # R5, E2
    elif limit in owners:
        yield End("clean", limit)  # K13: perhaps in a container.
    else:
        yield End("clean", next((place for place in boundaries if place >= limit), len(data)))  # E2


# A segmented log ("Segmented logs")


def events_of_segments(
    files: dict[int, bytes], *, salvage: bool = False, repair: bool = False, dialect: Dialect = LEVELDB
) -> Iterator[Record | Skipped | End]:
    """The events of a log whose files start at these offsets (G1 to G3). A file ends where the next one starts.

    An incomplete record or zeros at the end of a file, except the newest, are a part of the break after it.
    """
    for origin, following in pairwise([*sorted(files), None]):
        data = files[origin] if following is None else files[origin][: following - origin]
        *found, end = (moved(event, origin) for event in events(data, salvage=salvage, repair=repair, dialect=dialect))
        if following is None:
            yield from [*found, end]
            return
        torn = [event for event in found if is_torn_end(event, origin + len(data))]
        yield from (event for event in found if event not in torn)
        reached = min([start_of(event) for event in torn], default=origin + len(data))
        if reached < following:
            yield Skipped(reached, following, "missing_segment")
        elif len(files[origin]) > len(data):
            yield Skipped(following, following, "grown_segment")


def is_torn_end(event: Record | Skipped | End, file_end: int) -> bool:
    """Whether it is at the end of a file, and could have been a record that was being written."""
    if not isinstance(event, Skipped):
        return False
    return event.reason == "torn_tail" or (event.reason == "zero_fill" and event.end == file_end)


def start_of(event: Record | Skipped | End) -> int:
    """Where it starts."""
    return event.start if isinstance(event, Skipped) else event.offset


def moved(event: Record | Skipped | End, by: int) -> Record | Skipped | End:
    """The same event in a file that starts at this offset."""
    if isinstance(event, Skipped):
        return replace(event, start=event.start + by, end=event.end + by)
    if isinstance(event, Record):
        return replace(event, offset=event.offset + by, end_offset=event.end_offset + by)
    return replace(event, offset=event.offset + by)
