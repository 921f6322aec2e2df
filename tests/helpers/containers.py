"""The containers of packed logs in plain Python, written from docs/format/packed.md for readability.

It shares no code with Rust. `reference.py` defines fragments, records and ranges; here a container,
joined from its fragments, becomes records. Only the contents of a zstd frame are decompressed by a library, pyarrow;
where the frame ends and its stated length are read here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow

BLOCK_LEN = 32_768

MARK = 0x48
MAGIC = b"cordwood"
STORED, ZSTD = 0, 1

COUNT_MAX = 32_768
VARINT_LEN_MAX = 5
USUAL_LEN_MAX = 1 << 20

FRAME_MAGIC = b"\x28\xb5\x2f\xfd"
WINDOW_LOG_MAX = 31
BLOCK_HEADER_LEN, BLOCK_DATA_LEN_MAX = 3, 128 << 10
"""RFC 8878: the bytes before each block of a frame, and the most data in it."""


class RefusedError(Exception):
    """Errors that no reader skips, under any policy: a later version or codec, or more data than the log may
    contain."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what, offset)
        self.what = what
        self.offset = offset


class Budget:
    """How many bytes the frames of a log may state together (C6)."""

    def __init__(self, record_len_max: int) -> None:
        self.base = record_len_max if record_len_max > 1 << 30 else 256 << 20
        self.total = 0

    def spend(self, length: int, start: int, end: int) -> None:
        """C6: counts a frame of the container at `[start, end)`."""
        if length > self.base or self.total + length > self.base + 200 * end:
            raise RefusedError("budget", start)
        self.total += length


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def take_varint(data: bytes, at: int) -> tuple[int, int] | None:
    """K4: the number at `at`, and where it ends. `None`: it is cut, too long, or not in the shortest form."""
    number = 0
    for index, byte in enumerate(data[at : at + VARINT_LEN_MAX]):
        number |= (byte & 127) << 7 * index
        if byte < 128:
            return None if index > 0 and byte == 0 else (number, at + index + 1)
    return None


def mark_reason(payload: bytes, start: int, *, is_trusted: bool) -> str:
    """K2, K9, K10: how a mark is reported. `is_trusted`: its checksum is right, no damage precedes it in its block."""
    if not is_trusted or len(payload) < len(MAGIC) + 2 or not payload.startswith(MAGIC):
        return "bad_metadata"
    version, codec = payload[len(MAGIC) : len(MAGIC) + 2]
    if version != 1:
        raise RefusedError(f"version {version}", start)
    if codec not in (STORED, ZSTD):
        raise RefusedError(f"codec {codec}", start)
    return "metadata"


def joined_len_max(record_len_max: int) -> int:
    """K8: the longest container that is joined."""
    return body_len_max(record_len_max, COUNT_MAX)


def body_len_max(record_len_max: int, count: int) -> int:
    """C5: the longest body that is decompressed."""
    return max(record_len_max, USUAL_LEN_MAX) + VARINT_LEN_MAX * count


def opened(
    container: bytes, start: int, end: int, record_len_max: int, budget: Budget, *, is_trusted: bool
) -> str | list[bytes]:
    """C2 to C9: the records of the container at `[start, end)`, or why it is damage.

    `is_trusted`: its checksums were verified, and no damage precedes it in its block.
    """
    if not container:  # C2
        return "bad_container"
    codec = container[0]
    if codec not in (STORED, ZSTD):  # C2, K9
        if is_trusted:
            raise RefusedError(f"codec {codec}", start)
        return "unsupported_compression"
    found = take_varint(container, 1)  # C3
    if found is None:
        return "bad_container"
    count, at = found
    block_end = start - start % BLOCK_LEN + BLOCK_LEN
    if not 1 <= count <= COUNT_MAX or start + count > min(end, block_end):  # C3
        return "bad_container"
    body = container[at:]
    if codec == ZSTD:
        content = decompressed(body, body_len_max(record_len_max, count), start, end, budget)
        if isinstance(content, str):
            return content
        body = content
    records = list(records_of(body, count))  # C8
    return "bad_container" if None in records else records


def records_of(body: bytes, count: int) -> Iterator[bytes | None]:
    """C8: the records in a body, or `None` if the lengths and the data are not exactly the body."""
    lengths, at = [], 0
    for _ in range(count):
        found = take_varint(body, at)
        if found is None:
            yield None
            return
        length, at = found
        lengths.append(length)
    if at + sum(lengths) != len(body):
        yield None
        return
    for length in lengths:
        yield body[at : at + length]
        at += length


def decompressed(frame: bytes, len_max: int, start: int, end: int, budget: Budget) -> str | bytes:
    """C4 to C7: the content of a frame, or why it is damage."""
    header = frame_header(frame)
    if header is None:
        return "bad_compression"
    at, length, has_checksum = header
    if length > (len(frame) // BLOCK_HEADER_LEN + 1) * BLOCK_DATA_LEN_MAX:  # C4
        return "bad_compression"
    if length > len_max:  # C5
        return "record_too_large"
    budget.spend(length, start, end)
    if frame_end(frame, at, has_checksum=has_checksum) != len(frame):  # C7
        return "bad_compression"
    try:
        return pyarrow.Codec("zstd").decompress(frame, length, asbytes=True)
    except OSError:
        return "bad_compression"


def frame_header(frame: bytes) -> tuple[int, int, bool] | None:
    """C4: where the first block starts, the stated length of the content, whether a checksum follows the last block.

    RFC 8878, 3.1.1.1. `None`: it is no frame, or does not state the length.
    """
    if not frame.startswith(FRAME_MAGIC) or len(frame) == len(FRAME_MAGIC):
        return None
    descriptor = frame[4]
    at = 5
    is_single = descriptor & 0x20
    if descriptor & 0x08:  # reserved
        return None
    if not is_single:
        if frame[at : at + 1] and frame[at] >> 3 > WINDOW_LOG_MAX - 10:
            return None
        at += 1
    at += (0, 1, 2, 4)[descriptor & 3]  # a dictionary
    size_len = (1 if is_single else 0, 2, 4, 8)[descriptor >> 6]
    size = frame[at : at + size_len]
    if size_len == 0 or len(size) < size_len:
        return None
    length = int.from_bytes(size, "little") + (256 if size_len == 2 else 0)
    return at + size_len, length, bool(descriptor & 0x04)


def frame_end(frame: bytes, at: int, *, has_checksum: bool) -> int | None:
    """C7: where a frame ends whose first block starts at `at`. RFC 8878, 3.1.1.2."""
    is_last = False
    while not is_last:
        if at + BLOCK_HEADER_LEN > len(frame):
            return None
        header = int.from_bytes(frame[at : at + BLOCK_HEADER_LEN], "little")
        is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        if kind == 3:  # reserved
            return None
        at += BLOCK_HEADER_LEN + (1 if kind == 1 else size)  # 1: one repeated byte
    return at + 4 if has_checksum else at
