"""Converts values to JSON. This is not part of `payload`, so printing JSON doesn't import `payload`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from cordwood._native import RecordDecoder
from cordwood._text import base64_text
from cordwood.types import Database, Export
from cordwood.typing import ReadableBuffer


def jsonable(value: object) -> object:
    """Replaces the bytes and tuples in a value, including those inside lists and objects.

    Bytes become a string if they are valid UTF-8, and `{"base64": "..."}` otherwise. A named tuple becomes an object
    without its `None` fields, and any other tuple becomes a list.
    """
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64_text(value)}
    if isinstance(value, dict):
        return {name: jsonable(item) for name, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        names: tuple[str, ...] | None = getattr(items, "_fields", None)
        if names is None:
            return [jsonable(item) for item in items]
        return {name: jsonable(item) for name, item in zip(names, items, strict=True) if item is not None}
    return value


# All values share one encoder, because creating an encoder takes as long as encoding a line.
_encode: list[Callable[[object], str]] = []


def json_value(payload: str, record: ReadableBuffer, dialect: str | None = None) -> dict[str, object]:
    """Returns the value of a record, decoded by the native module."""
    import json

    value: dict[str, object] = json.loads(RecordDecoder(payload, dialect).json(record) or "null")
    return value


def json_text(value: object) -> str:
    """Returns a value as one line of JSON."""
    if not _encode:
        # Many of the modules that import this one never write JSON.
        import json

        _encode.append(json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode)
    return _encode[0](value)


def database_fields(database: Database) -> dict[str, Any]:
    """Returns the JSON fields of a database."""
    problems = [problem._asdict() | {"severity": problem.severity} for problem in database.problems]
    properties = {"ok": database.ok, "right_current": database.right_current}
    return database._asdict() | properties | {"problems": problems}


def export_fields(export: Export) -> dict[str, Any]:
    """Returns the JSON fields of an export."""
    fields = export._asdict()
    del fields["files"]
    return {**fields, "file_count": len(export.files), "ok": export.ok}
