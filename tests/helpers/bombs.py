"""Packed logs that state far more than they contain, each with the result that a reader must return.

`python bombs.py` reads them all with little memory, and prints the result of each. `python bombs.py generated COUNT
RECORD_LEN_MAX` reads generated ones instead, and opens them to append, as files and as segments.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from containers import varint
from reference import BLOCK_LEN, CONTAINER_KINDS, HEADER_LEN, encode_record, fragment

import cordwood

FULL, FIRST, MIDDLE, LAST = CONTAINER_KINDS
MIB = 1 << 20
RUN = 128 << 10
FRAME = b"\x28\xb5\x2f\xfd"
SKIPPABLE = b"\x50\x2a\x4d\x18"

MEMORY_MAX = 300 * MIB
RECORD_LEN_MAX = 1 << 30


def block(kind: int, size: int, data: bytes, *, is_last: bool) -> bytes:
    return (size << 3 | kind << 1 | is_last).to_bytes(3, "little") + data


def frame(content_len: int, blocks: bytes, descriptor: int = 0xE0) -> bytes:
    """One that states its content in eight bytes, and has a single segment."""
    return FRAME + bytes([descriptor]) + content_len.to_bytes(8, "little") + blocks


def repeated(start: bytes, length: int) -> bytes:
    """A frame of `start` and then `length` bytes, a multiple of 128 KiB, each of which takes four bytes of the file."""
    runs = [block(1, RUN, b"z", is_last=False)] * (length // RUN - 1) + [block(1, RUN, b"z", is_last=True)]
    return frame(len(start) + length, block(0, len(start), start, is_last=False) + b"".join(runs))


def zstd(count: int, data: bytes) -> bytes:
    """A container."""
    return b"\x01" + varint(count) + data


def stored(count: int, body: bytes) -> bytes:
    return b"\x00" + varint(count) + body


ONE = frame(4, block(0, 4, b"\x03abc", is_last=True))
# A record of 100 MiB, and one of 240 MiB.
LONG = zstd(1, repeated(varint(100 * MIB), 100 * MIB))
LONGEST = zstd(1, repeated(varint(240 * MIB), 240 * MIB))

CONTAINERS = {
    # The stated count.
    "no record": (stored(0, b""), "bad_container"),
    "32,768 records of no byte, in too few bytes": (stored(32_768, bytes(30_000)), "bad_container"),
    "32,769 records": (stored(32_769, bytes(32_000)), "bad_container"),
    "2^35 - 1 records": (stored((1 << 35) - 1, bytes(100)), "bad_container"),
    "a count that does not end": (b"\x00" + b"\xff" * 30_000, "bad_container"),
    "as many records in a frame as the block has bytes": (
        zstd(32_768, frame(32_768, block(1, 32_768, b"\0", is_last=True))),
        "bad_container",
    ),
    # The stated lengths.
    "a record of 32 GiB": (stored(1, varint((1 << 35) - 1) + b"x"), "bad_container"),
    "30 records of 32 GiB": (stored(30, varint((1 << 35) - 1) * 30 + b"x"), "bad_container"),
    "6,000 records of 32 GiB": (stored(6_000, varint((1 << 35) - 1) * 6_000), "bad_container"),
    "lengths that are 128 KiB of continued bytes": (
        zstd(1, frame(RUN, block(1, RUN, b"\xff", is_last=True))),
        "bad_container",
    ),
    "240 MiB that are one byte more than the length": (
        zstd(1, repeated(varint(240 * MIB - 1), 240 * MIB)),
        "bad_container",
    ),
    # The stated length of the frame.
    "a frame that states 1 GiB in 20 bytes": (zstd(1, frame(1 << 30, b"\1\0\0")), "bad_compression"),
    "a frame that states 2^63 bytes": (zstd(1, frame(1 << 63, b"\1\0\0")), "bad_compression"),
    "a frame that states 2^64 - 1 bytes": (zstd(1, frame((1 << 64) - 1, b"\1\0\0")), "bad_compression"),
    "a frame that states a byte too few": (zstd(1, frame(3, block(0, 4, b"\x03abc", is_last=True))), "bad_compression"),
    "a frame that states a byte too many": (
        zstd(1, frame(5, block(0, 4, b"\x03abc", is_last=True))),
        "bad_compression",
    ),
    "a frame that does not state its length": (
        zstd(1, FRAME + b"\x00\x58" + block(1, RUN, b"\0", is_last=False) * 2_000),
        "bad_compression",
    ),
    "a window of 2 GiB": (zstd(1, FRAME + b"\xc0\xa8" + bytes([4, *bytes(7)]) + b"\1\0\0"), "bad_compression"),
    "a window of more": (zstd(1, FRAME + b"\xc0\xff" + bytes([4, *bytes(7)]) + b"\1\0\0"), "bad_compression"),
    "a dictionary": (zstd(1, FRAME + b"\x21\x07\x04" + block(0, 4, b"\x03abc", is_last=True)), "bad_compression"),
    "240 MiB after which a block is missing": (
        zstd(1, repeated(varint(240 * MIB), 240 * MIB)[:-4]),
        "bad_compression",
    ),
    "two frames": (zstd(1, ONE + ONE), "bad_compression"),
    "a frame and one of 100 MiB": (zstd(1, ONE + repeated(b"", 100 * MIB)), "bad_compression"),
    "a skippable frame of 4 GiB": (zstd(1, SKIPPABLE + b"\xff" * 4 + ONE), "bad_compression"),
    "a skippable frame before": (zstd(1, SKIPPABLE + b"\2\0\0\0xy" + ONE), "bad_compression"),
    "a skippable frame after": (zstd(1, ONE + SKIPPABLE + b"\2\0\0\0xy"), "bad_compression"),
    "a zero after": (zstd(1, ONE + b"\0"), "bad_compression"),
    "no frame": (zstd(1, b""), "bad_compression"),
    "a wrong checksum": (
        zstd(1, FRAME + b"\x24\x04" + block(0, 4, b"\x03abc", is_last=True) + b"\1\2\3\4"),
        "bad_compression",
    ),
}


def of_container(container: bytes) -> bytes:
    return encode_record(container, 0, CONTAINER_KINDS)


def cases() -> Iterator[tuple[str, bytes, dict[str, int], object]]:
    """A name, a log, options, and the result of `outcome`."""
    for name, (container, reason) in CONTAINERS.items():
        file = of_container(container)
        yield name, file, {}, [0, {reason: len(file)}]
    file = of_container(LONGEST)
    yield "a record of 240 MiB", file, {}, [1, {}]
    yield "a record above the limit", file, {"record_len_max": MIB}, [0, {"record_too_large": len(file)}]
    three = of_container(LONG) * 3
    assert len(three) < BLOCK_LEN
    yield "records of 300 MiB together", three, {}, "record_too_large"
    broken = of_container(LONG + b"\0") * 3
    yield "frames of 300 MiB together that are damaged", broken, {}, "record_too_large"
    # The starts of containers, which are held until one ends.
    starts = fragment(FIRST, b"\0\1").ljust(BLOCK_LEN, b"\0")
    yield "a container without an end", starts, {}, [0, {"interrupted_record": HEADER_LEN + 2}]
    part = bytes(BLOCK_LEN - HEADER_LEN)
    long = fragment(FIRST, b"\0" + part[1:]) + fragment(MIDDLE, part) * 200 + fragment(LAST, part)
    first_len = (MIB + 5 * 32_768) // len(part) + 1
    expected = {"record_too_large": first_len * BLOCK_LEN, "too_large_rest": (202 - first_len) * BLOCK_LEN}
    yield "a container of 6 MiB above the limit", long, {"record_len_max": 1000}, [0, expected]


def outcome(file: bytes, options: dict[str, int]) -> object:
    """How many records there are, and the bytes of each reason; or the reason of the error."""
    try:
        report = cordwood.verify(file, dialect="packed", **options)
    except cordwood.RecordTooLargeError as error:
        return str(error.reason)
    lens = {str(reason): length for reason, length in report.len_by_reason.items() if reason != "zero_fill"}
    return [report.record_count, lens]


def generated(seed: int) -> tuple[bytes, list[tuple[int, int]]]:
    """A packed log of whole containers and records, and of each frame: what it states, and where its container ends.

    A frame states up to 4 GiB, by 4 bytes for each 128 KiB.
    """
    rng = random.Random(seed)
    file = bytearray(fragment(0x48, b"cordwood\1\1"))
    frames = []
    for _ in range(rng.randrange(1, 6)):
        file += bytes(-len(file) % BLOCK_LEN) if -len(file) % BLOCK_LEN < HEADER_LEN else b""
        choice = rng.randrange(6)
        if choice == 0:
            file += encode_record(rng.randbytes(rng.choice([0, 100, 40_000])), len(file))
            continue
        if choice == 1:
            # More bytes than a container may have, if records may only be short.
            file += encode_record(stored(1, varint(2 * MIB) + bytes(2 * MIB)), len(file), CONTAINER_KINDS)
            continue
        length = RUN * rng.choice(
            [1, 8, rng.randrange(1, 2048), rng.randrange(2048, 8192), rng.randrange(8192, 32_768)]
        )
        count = min(rng.choice([1, 2, 300]), BLOCK_LEN - len(file) % BLOCK_LEN)  # K7
        lens = varint(length) + varint(0) * (count - 1)
        file += encode_record(zstd(count, repeated(lens, length)), len(file), CONTAINER_KINDS)
        frames.append((len(lens) + length, len(file)))
    return bytes(file), frames


def is_over_budget(frames: list[tuple[int, int]], record_len_max: int) -> bool:
    """Whether a frame exceeds the budget, by C5 and C6 of `docs/format/packed.md`."""
    total = 0
    for stated, end in frames:
        if stated <= max(record_len_max, MIB):  # The few bytes that C5 adds make no difference to these frames.
            total += stated
            if stated > 256 * MIB or total > 256 * MIB + 200 * end:
                return True
    return False


def appended_to(file: bytes, record_len_max: int, **options: int) -> str:
    """The result of opening it to append, as a file or, with `segment_len`, as a segmented log."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, f"{0:020}.log" if options else "file.log")
        path.write_bytes(file)
        try:
            with cordwood.open(
                directory if options else path, "a", record_len_max=record_len_max, on_torn_tail="truncate", **options
            ) as writer:
                return "lost a whole record" if writer.discarded_tail or writer.tell() < len(file) else "opened"
        except (cordwood.CordwoodError, MemoryError) as error:
            return type(error).__name__


def read(file: bytes, record_len_max: int) -> str:
    """The result of reading it."""
    try:
        report = cordwood.verify(file, record_len_max=record_len_max)
    except (cordwood.CordwoodError, MemoryError) as error:
        return type(error).__name__
    others = set(map(str, report.len_by_reason)) - {"metadata", "record_too_large", "too_large_rest"}
    return f"skipped: {others}" if others else "read"


def limit_memory(memory_max: int) -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + memory_max
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def results(file: bytes, record_len_max: int) -> list[str]:
    """The results of reading it, and of opening it to append, as a file and as a segment."""
    opened = [appended_to(file, record_len_max), appended_to(file, record_len_max, segment_len=1)]
    return [read(file, record_len_max), *opened]


def unexpected(count: int, record_len_max: int) -> dict[int, list[str]]:
    """The results of `count` generated logs that are not as expected."""
    assert results(of_container(zstd(1, ONE)), record_len_max) == ["read", "opened", "opened"]
    limit_memory(320 * MIB if record_len_max == RECORD_LEN_MAX else max(record_len_max, MIB) + 64 * MIB)
    wrong = {}
    for seed in range(count):
        file, frames = generated(seed)
        is_over = is_over_budget(frames, record_len_max)
        found = results(file, record_len_max)
        if found != (["RecordTooLargeError"] * 3 if is_over else ["read", "opened", "opened"]):
            wrong[seed] = found
    return wrong


def main() -> None:
    if sys.argv[1:2] == ["generated"]:
        sys.stdout.write(json.dumps(unexpected(int(sys.argv[2]), int(sys.argv[3]))))
        return
    all_cases = list(cases())
    outcome(of_container(zstd(1, ONE)), {})  # Everything is loaded.
    limit_memory(MEMORY_MAX)
    found = {name: outcome(file, options) for name, file, options, _ in all_cases}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
