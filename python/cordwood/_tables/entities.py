"""The values of entities as columns have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from cordwood._tables.schema import ColumnType, ListOf, StructOf
from cordwood.errors import PayloadError
from cordwood.payload._error import payload_error
from cordwood.payload.entity import Entity, GeoPoint, Key, User
from cordwood.types import PayloadReason

KEY_COLUMNS: dict[str, ColumnType] = {
    "__kind__": "text",
    "__id__": "int",
    "__name__": "text",
    "__path__": "text",
}
"""The parts of an entity's key that have columns of their own. No property may have such a name."""

KEY = StructOf(
    (
        ("app", "text"),
        ("namespace", "text"),
        ("database", "text"),
        ("path", ListOf(StructOf((("kind", "text"), ("id", "int"), ("name", "text"))))),
    )
)


def key_columns(key: Key | None) -> dict[str, Any]:
    """The values of `KEY_COLUMNS` that a key has."""
    if key is None or not key.path:
        return {}
    kind, last = key.path[-1]
    path = "/".join(str(part) for element in key.path for part in element if part is not None)
    return {"__kind__": kind, **_id_or_name(last, "__"), "__path__": path}


def reserved_name(name: str, record: bytes) -> PayloadError:
    """The error for a record that has a property of this name, which is that of a column for the key."""
    message = f"a property has the name {name}, which a table has for the key"
    return payload_error(message, record, PayloadReason.RESERVED_NAME)


def _id_or_name(last: int | str | None, around: str = "") -> dict[str, int | str]:
    if last is None:
        return {}
    return {f"{around}{'name' if isinstance(last, str) else 'id'}{around}": last}


def fields_of(value: object) -> Mapping[str, Any] | None:
    """The fields of a value: keys, places and users always have the same, maps those that are in them."""
    if isinstance(value, Entity):
        # Firestore's maps have a key without a meaning.
        return value.properties if value.key in (None, Key("", ())) else {"__key__": value.key, **value.properties}
    if isinstance(value, Key):
        return {**value._asdict(), "path": [{"kind": kind, **_id_or_name(last)} for kind, last in value.path]}
    if isinstance(value, GeoPoint | User):
        return value._asdict()
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
