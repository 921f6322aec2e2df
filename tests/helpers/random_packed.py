"""Packed logs made from a seeded generator: intact ones, damaged ones, and ones whose checksums are right after all.

Mutating bytes seldom gets past a checksum, so most of the damage is done before the checksums are
computed: to the values in a container, to its frame, and to the types of fragments.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable

import packed_reference
import reference
from containers import MARK, USUAL_LEN_MAX, varint
from reference import BLOCK_LEN, CONTAINER_KINDS, HEADER, HEADER_LEN, KINDS, encode_record, fragment, trailer_len
from support import PAYLOAD

import cordwood

ALL_KINDS = (*KINDS, *CONTAINER_KINDS, MARK)


def some_records(rng: random.Random) -> list[bytes]:
    """Records that compress and records that do not, mostly short."""
    count = rng.choice([1, 1, 2, 3, rng.randrange(1, 40)])
    length_max = rng.choice([0, 3, 40, 40, 300, 300, 5_000])
    records = []
    for _ in range(count):
        length = rng.randrange(length_max + 1)
        start = rng.randrange(1_000)
        text = PAYLOAD[start : start + length] if rng.random() < 0.5 else b"a line of text, "[: start % 16] * length
        records.append(text[:length])
    if rng.random() < 0.05:  # A log in a record.
        records.append(written_by_reference(rng)[: rng.randrange(1, 2_000)])
    return records


def up_to_the_edge(rng: random.Random, offset: int) -> bytes:
    """An ordinary record at `offset` that leaves a few bytes of the block, so that a container crosses its end."""
    room = BLOCK_LEN - offset % BLOCK_LEN - HEADER_LEN
    return PAYLOAD[: max(0, room - rng.randrange(60))]


# Containers ------------------------------------------------------------------------------------


def frame(rng: random.Random, body: bytes) -> bytes:
    """A zstd frame of raw blocks and blocks of one repeated byte, in one of the forms that a header has."""
    size_len = rng.choice([0, 2, 4, 8] if len(body) >= 256 else [1, 4, 8])
    flag = {0: 0, 1: 0, 2: 1, 4: 2, 8: 3}[size_len]
    has_checksum = rng.random() < 0.2
    is_single = size_len == 1 or rng.random() < 0.7
    head = bytes([flag << 6 | is_single << 5 | has_checksum << 2])
    if not is_single:
        head += bytes([rng.choice([0, 8, 88, 0xA8, 0xFF])])
    if size_len:
        head += ((len(body) - (256 if size_len == 2 else 0)) % (1 << 8 * size_len)).to_bytes(size_len, "little")
    blocks = []
    rest = body
    while rest or not blocks:
        run = len(rest) - len(rest.lstrip(rest[:1]))
        if run > 8:
            blocks.append((1, run, rest[:1]))
            rest = rest[run:]
        else:
            length = min(len(rest), rng.randrange(1, 2_000))
            blocks.append((0, length, rest[:length]))
            rest = rest[length:]
    out = b"\x28\xb5\x2f\xfd" + head
    for index, (kind, size, data) in enumerate(blocks):
        out += (size << 3 | kind << 1 | (index + 1 == len(blocks))).to_bytes(3, "little") + data
    # The checksum is wrong: XXH64 is not computed here.
    return out + (rng.randbytes(4) if has_checksum else b"")


def container(rng: random.Random) -> bytes:
    """One that a writer writes, or that states other lengths than it contains."""
    records = some_records(rng)
    codec = rng.choice([0, 0, 1])
    if rng.random() < 0.4:
        return packed_reference.container(records, codec)
    lengths = [len(record) for record in records]
    if rng.random() < 0.2:
        at = rng.randrange(len(lengths))
        lengths[at] = max(0, lengths[at] + rng.choice([-1, 1, 128, 1 << 20, 1 << 34]))
    stated = [varint(length) for length in lengths]
    if rng.random() < 0.1:
        at = rng.randrange(len(stated))
        stated[at] = rng.choice([longer(stated[at]), stated[at][:-1], b"\x80" * rng.randrange(7)])
    body = b"".join(stated) + b"".join(records)
    if rng.random() < 0.1:
        body += rng.choice([b"\0", b"junk"])
    count = len(records)
    if rng.random() < 0.2:
        count = rng.choice([0, count - 1, count + 1, 32_768, 32_769, 1 << 34])
    head = longer(varint(count)) if rng.random() < 0.05 else varint(max(0, count))
    if codec:
        body = frame(rng, body)
        if rng.random() < 0.2:
            skippable = b"\x50\x2a\x4d\x18\x02\x00\x00\x00xy"
            body = rng.choice([body + b"\0", body + body, skippable + body, body + skippable, body[:-1], b""])
    if rng.random() < 0.03:
        codec = rng.randrange(256)
    return bytes([codec]) + head + body


def longer(number: bytes) -> bytes:
    """The varint with a byte more than it needs."""
    return number[:-1] + bytes([number[-1] | 0x80]) + b"\0"


def mutated(rng: random.Random, data: bytes) -> bytes:
    """A few bytes changed, inserted or removed, mostly near the start, where the lengths are."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = min(len(out), int(rng.expovariate(1 / 12)) if rng.random() < 0.7 else rng.randrange(len(out) + 1))
        what = rng.randrange(4)
        if what == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif what == 1 and at < len(out):
            out[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif what == 2:
            out[at:at] = rng.randbytes(rng.randrange(1, 4))
        else:
            del out[at : at + rng.randrange(1, 4)]
    return bytes(out)


# Files -----------------------------------------------------------------------------------------


def written_by_reference(rng: random.Random) -> bytes:
    """An intact log."""
    groups = [(some_records_that_fit(rng), rng.choice([None, 0, 1])) for _ in range(rng.randrange(6))]
    return packed_reference.encode(groups, rng.choice([0, 1]))


def some_records_that_fit(rng: random.Random) -> list[bytes]:
    """A frame of these has more bytes than records."""
    return [b"%d " % rng.randrange(1_000) + PAYLOAD[: rng.randrange(100)] for _ in range(rng.randrange(1, 12))]


def written_by_cordwood(rng: random.Random) -> bytes:
    """A log as a writer leaves it."""
    sink = io.BytesIO()
    with cordwood.Writer(sink, dialect="packed", compression=rng.choice([None, "zstd"])) as writer:
        for _ in range(rng.randrange(6)):
            rng.choice([writer.extend, lambda records: [writer.append(record) for record in records]])(
                some_records(rng)
            )
            if rng.random() < 0.5:
                writer.flush()
            if rng.random() < 0.1:
                writer.append(PAYLOAD[: rng.randrange(2 * BLOCK_LEN)])
    return sink.getvalue()


def with_fixed_checksums(rng: random.Random) -> bytes:
    """Fragments and containers that no writer writes, each with a valid checksum."""
    file = bytearray()
    if rng.random() < 0.9:
        file += packed_reference.mark(rng.choice([0, 1]))
    if rng.random() < 0.4:
        file += encode_record(up_to_the_edge(rng, len(file)), len(file))
    for _ in range(rng.randrange(1, 8)):
        what = rng.random()
        kinds = list(KINDS if what < 0.2 else CONTAINER_KINDS)
        if rng.random() < 0.1:  # A fragment of the wrong sort or place.
            kinds[rng.randrange(4)] = rng.choice(ALL_KINDS)
        if what < 0.2:
            payload = rng.choice(some_records(rng))
        elif what < 0.25:
            kinds = [MARK] * 4
            payload = rng.choice(
                [b"cordwood\1\0", b"cordwood\1\1more", b"cordwood\1", b"cord", b"cordwood\2\0", b"cordwood\1\2"]
            )
        else:
            payload = container(rng)
            if rng.random() < 0.4:
                payload = mutated(rng, payload)
        file += bytes(trailer_len(len(file)))
        if rng.random() < 0.1:  # In fragments that do not end with their block.
            cut = rng.randrange(len(payload) + 1)
            parts = [(kinds[1], payload[:cut]), (kinds[3], payload[cut:])]
            for kind, part in parts:
                left = BLOCK_LEN - len(file) % BLOCK_LEN
                if left >= HEADER_LEN + len(part):
                    file += fragment(kind, part)
        else:
            file += encode_record(payload, len(file), tuple(kinds))
    return bytes(file)


def a_file(rng: random.Random, write: Callable[[random.Random], bytes]) -> bytes:
    """A log of one of these three, of which half are damaged."""
    file = bytearray(write(rng))
    if rng.random() < 0.5:
        for _ in range(rng.choice([1, 1, 2, 4])):
            damage(rng, file)
    return bytes(file)


def damage(rng: random.Random, file: bytearray) -> None:
    """Damages a file in one way, mostly at a header."""
    if not file:
        return
    headers = [item.start for item in reference.fragments(bytes(file), verify_checksums=False)] or [0]
    header = min(rng.choice(headers), len(file) - 1)
    anywhere = rng.randrange(len(file))
    what = rng.randrange(10)
    if what <= 2:
        at = min(header + rng.randrange(HEADER_LEN + 6), len(file) - 1) if what == 0 else anywhere
        file[at] ^= 1 << rng.randrange(8)
    elif what == 3:
        del file[rng.choice([header + rng.randrange(HEADER_LEN + 6), anywhere]) :]
    elif what == 4:
        start = rng.choice([header, anywhere])
        end = min(len(file), start + rng.choice([1, 7, 100, BLOCK_LEN - start % BLOCK_LEN]))
        file[start:end] = bytes(end - start)
    elif what == 5:
        new = rng.randbytes(rng.choice([1, 4, 7, 20]))[: len(file) - header]
        file[header : header + len(new)] = new
    elif what == 6 and header + HEADER_LEN <= len(file):
        kind = rng.choice(ALL_KINDS)
        _, length, _ = HEADER.unpack_from(file, header)
        part = fragment(kind, bytes(file[header + HEADER_LEN : header + HEADER_LEN + length]))[: len(file) - header]
        file[header : header + len(part)] = part
    elif what == 7:
        file[anywhere:anywhere] = rng.choice([rng.randbytes(5), bytes(9), written_by_reference(rng)])
    elif what == 8:
        file += rng.choice([bytes(rng.choice([1, 6, 7, 500])), rng.randbytes(30), written_by_reference(rng)])
    else:
        blocks = [file[at : at + BLOCK_LEN] for at in range(0, len(file), BLOCK_LEN)]
        rng.shuffle(blocks)
        file[:] = b"".join(blocks)


def some_options(rng: random.Random) -> dict[str, int | bool]:
    options: dict[str, int | bool] = {}
    if rng.random() < 0.1:
        options["verify_checksums"] = False
    if rng.random() < 0.2:
        options["record_len_max"] = rng.choice([0, 3, 40, 300, 5_000, 2 * USUAL_LEN_MAX])
    return options
