"""JSON on one line."""

from __future__ import annotations

from collections.abc import Callable

# One encoder for all values: creating one takes as long as encoding a line.
_encode: list[Callable[[object], str]] = []


def json_text(value: object) -> str:
    """A value as JSON, on one line."""
    if not _encode:
        # Many of those who import this module write no JSON.
        import json

        _encode.append(json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode)
    return _encode[0](value)
