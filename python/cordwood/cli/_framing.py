"""Splits a stream into records, and joins records, in any format that `--format` accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BufferedReader

DELIMITERS = {"lines": b"\n", "nul": b"\0"}
"""In these formats, each record ends with a delimiter byte, which no record may contain."""

RECORD_LEN_MAX = 1 << 30
"""The maximum length of a record from stdin. Readers would refuse a longer record."""

_CHUNK_LEN = 1 << 20


def framed(records: Iterable[bytes], form: str) -> bytes:
    """Returns the records in one of the formats that `--format` accepts."""
    if form == "raw":
        return b"".join(records)
    if form == "len":
        return b"".join(part for record in records for part in (len(record).to_bytes(4, "little"), record))
    return DELIMITERS[form].join([*records, b""])


def records_from(stream: BufferedReader, form: str) -> Iterator[list[bytes]]:
    """Yields the records in a stream, grouped into lists.

    If records end with a delimiter, each list contains all the records completed by one read. With length prefixes,
    it contains just one record.

    Raises:
        ValueError: The stream ends in the middle of a length-prefixed record, or a record is too long.
    """
    return _prefixed(stream) if form == "len" else _delimited(stream, DELIMITERS[form])


def _delimited(stream: BufferedReader, delimiter: bytes) -> Iterator[list[bytes]]:
    started: list[bytes] = []
    started_len = 0
    while chunk := stream.read1(_CHUNK_LEN):
        first, *others = chunk.split(delimiter)
        started.append(first)
        started_len += len(first)
        if started_len > RECORD_LEN_MAX:
            raise ValueError(f"a record on stdin is longer than {RECORD_LEN_MAX} bytes; is the --format right?")
        if others:
            yield [b"".join(started), *others[:-1]]
            started, started_len = [others[-1]], len(others[-1])
    if started_len:
        yield [b"".join(started)]


def _prefixed(stream: BufferedReader) -> Iterator[list[bytes]]:
    while prefix := stream.read(4):
        record_len = int.from_bytes(prefix, "little")
        if record_len > RECORD_LEN_MAX:
            raise ValueError(f"a record on stdin states a length of {record_len} bytes; is the --format right?")
        record = stream.read(record_len) if len(prefix) == 4 else b""
        if len(prefix) < 4 or len(record) < record_len:
            raise ValueError("stdin ends within a record; those before it are written")
        yield [record]
