"""Shared by several test files: cordwood's events as the reference's types, and unusual sources and sinks."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import reference

import cordwood

HELPERS = Path(__file__).parent
TESTS = HELPERS.parent
ROOT = TESTS.parent

Event = reference.Record | reference.Skipped

# No two parts of it are alike, and no part is a log.
PAYLOAD = random.Random(20261121).randbytes(1 << 20)


def start_of(event: Event) -> int:
    return event.offset if isinstance(event, reference.Record) else event.start


def end_of(event: Event) -> int:
    return event.end_offset if isinstance(event, reference.Record) else event.end


def merged(events: Iterable[Event]) -> list[Event]:
    """The events, with adjacent regions of the same reason merged, as they may be in `Reader.skipped`."""
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        if (
            isinstance(event, reference.Skipped)
            and isinstance(last, reference.Skipped)
            and (last.end, last.reason) == (event.start, event.reason)
        ):
            out[-1] = reference.Skipped(last.start, event.end, event.reason)
        else:
            out.append(event)
    return out


def plain_record(record: cordwood.Record) -> reference.Record:
    return reference.Record(record.offset, record.end_offset, record.data)


def plain_skipped(reader: cordwood.Reader) -> list[reference.Skipped]:
    return [reference.Skipped(region.offset, region.end_offset, str(region.reason)) for region in reader.skipped]


def plain_end(reader: cordwood.Reader) -> reference.End:
    assert reader.outcome.kind != "unfinished"
    return reference.End(str(reader.outcome.kind), reader.outcome.offset)


def read_events(reader: cordwood.Reader) -> list[Event]:
    """Everything that a reader returns or lists as skipped, by offset. Its policy must not be to raise."""
    records = [plain_record(record) for record in reader.records()]
    return merged(sorted([*records, *plain_skipped(reader)], key=start_of))


def step_on(iterator: Iterator[object]) -> Iterator[object]:
    """The items of an iterator, interspersed with the errors that it raises."""
    while True:
        try:
            yield next(iterator)
        except StopIteration:
            return
        except cordwood.CordwoodError as error:
            yield error


def written(records: Iterable[bytes]) -> bytes:
    """The log that cordwood writes for some records."""
    sink = io.BytesIO()
    with cordwood.Writer(sink) as writer:
        writer.extend(records)
    return sink.getvalue()


class OnlyRead:
    """A source that has only `read`, which returns at most `len_max` bytes at a time."""

    def __init__(self, data: bytes, len_max: int = 1 << 62) -> None:
        self._rest = memoryview(data)
        self._len_max = len_max

    def read(self, size: int) -> bytes:
        len_ = min(size, self._len_max)
        piece, self._rest = self._rest[:len_], self._rest[len_:]
        return bytes(piece)
