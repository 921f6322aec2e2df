"""JSON on one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

# One encoder for all values: creating one takes as long as encoding a line.
_encode: list[Callable[[object], str]] = []


def json_text(value: object) -> str:
    """A value as JSON, on one line."""
    if not _encode:
        # Many of those who import this module write no JSON.
        import json

        _encode.append(json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode)
    return _encode[0](value)


class Streamed(NamedTuple):
    """A JSON array that is produced while it is written: it may be many times longer than fits in memory."""

    items: Iterable[object]
    """The items, as JSON has them."""


_SOME = 256


def json_pieces(value: object, array: list[object], streamed: Streamed) -> Iterator[str]:
    """A value as JSON, on one line, in pieces. `streamed` goes into `array`, the last array in it, which is empty."""
    items = iter(streamed.items)
    array.extend(islice(items, _SOME))
    if len(array) < _SOME:
        yield json_text(value)
        return
    some = array[:]
    array.clear()
    head, _, tail = json_text(value).rpartition("[]")
    yield head + "["
    comma = ""
    while some:
        yield comma + json_text(some)[1:-1]
        comma = ","
        some = list(islice(items, _SOME))
    yield "]" + tail
