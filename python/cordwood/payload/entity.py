"""Decodes the records of Datastore and Firestore exports. Each record is an entity.

This module uses Datastore's terms: a Firestore document is an entity, a collection is a kind, and a map is an entity
inside another entity.

>>> from cordwood.payload import entity
>>> record = bytes.fromhex("6a0f 6a0161 720a0b 12045461736b 1807 0c 7209 1a016e 2000 2a020805")
>>> task = entity.decode(record)
>>> task.key.path, task.properties
((('Task', 7),), {'n': 5})
>>> entity.to_dict(record)
{'key': {'app': 'a', 'path': ['Task', 7]}, 'properties': {'n': 5}}
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias

from cordwood._jsonable import json_value
from cordwood._native import decode_entity

__all__ = ["Entity", "GeoPoint", "Key", "OtherField", "User", "Value", "decode", "to_dict"]


class Key(NamedTuple):
    """The key of an entity, which identifies it in its database.

    Attributes:
        app: The application: a partition and a project, such as `s~project`, or `dev~project` in an emulator. Empty in
            Firestore maps.
        path: The elements from the root to the entity. Each has a kind, and a number or a name. The number or name is
            `None` if none has been assigned yet.
        namespace: The namespace, if it isn't the default.
        database: The database, if it isn't the default.
    """

    app: str
    path: tuple[tuple[str, int | str | None], ...]
    namespace: str | None = None
    database: str | None = None


class GeoPoint(NamedTuple):
    """A place on Earth.

    Attributes:
        latitude: Degrees north of the equator.
        longitude: Degrees east of Greenwich.
    """

    latitude: float
    longitude: float


class User(NamedTuple):
    """A user account in App Engine's Users service.

    Attributes:
        email: The address of the account.
        auth_domain: The domain in which the account was authenticated.
        nickname: The display name, if there is one.
        gaia_id: The number of the Google account.
        obfuscated_gaia_id: The obfuscated account number, if the record contains one.
        federated_identity: The OpenID identity, if there is one.
        federated_provider: The provider of the OpenID identity, if there is one.
    """

    email: str
    auth_domain: str
    nickname: str | None
    gaia_id: int
    obfuscated_gaia_id: str | None
    federated_identity: str | None
    federated_provider: str | None


class OtherField(NamedTuple):
    """A field that is kept but not interpreted.

    Attributes:
        message: The message of `storage_onestore_v3` that contains the field: `"EntityProto"`, `"Property"`, ...
        number: The number of the field.
        offset: The offset of the field in bytes, counted from the start of the record.
        data: The whole field, including its tag.
    """

    message: str
    number: int
    offset: int
    data: bytes


class Entity(NamedTuple):
    """A Datastore entity, or a Firestore document or map.

    Attributes:
        key: The key of the entity. An entity inside another entity may have no key.
        properties: The property values by name, in the same order as in the record.
        meanings: The meanings of the values (`Property.Meaning`), if the record contains them. For example, 2 means a
            link, and 15 means long text. For an array, the tuple contains one meaning for each value.
        unindexed: The names of properties with at least one unindexed value. All Firestore properties are included.
        other_fields: The fields left uninterpreted: those that Google's reader skips, and any that this release doesn't
            know.
    """

    key: Key | None
    properties: Mapping[str, Value]
    meanings: Mapping[str, tuple[int | None, ...]]
    unindexed: frozenset[str]
    other_fields: tuple[OtherField, ...]


Value: TypeAlias = bool | int | float | str | bytes | datetime | GeoPoint | Key | User | Entity | list["Value"] | None
"""The value of a property.

A time is a `datetime` in UTC, or an `int` of microseconds since 1970 if it is outside the years 1 to 9999. Text that is
not UTF-8 is kept as `bytes`.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# The native module calls this function for times in the years 1 to 9999.
def _timestamp(microseconds: int) -> datetime:  # pyright: ignore[reportUnusedFunction]
    return _EPOCH + timedelta(microseconds=microseconds)


def decode(record: bytes) -> Entity:
    """Returns the entity in a record, with its values as Python types.

    Args:
        record: A record from an export.

    Returns:
        The entity.

    Raises:
        PayloadError: The record is not a valid entity. For example, a record with two keys is refused, although a
            lenient reader might accept the last key.
        TypeError: `record` is not bytes-like.
    """
    return decode_entity(record)


def to_dict(record: bytes) -> dict[str, object]:
    """Returns the entity in a record, as JSON values.

    Args:
        record: A record from an export.

    Returns:
        A dictionary with `key` and `properties`. If there are other fields, it also has `other_fields`. A time becomes
        an RFC 3339 string, bytes become `{"base64": "..."}`, and a place becomes `{"latitude": ..., "longitude": ...}`.
        A user becomes an object. A key becomes an object with a flat list as its `path`. An entity becomes an object
        with its properties. If the entity has a key, the object also has an entry `__key__`. No property has this name.
        Numbers that JSON can't represent become `"NaN"`, `"Infinity"` and `"-Infinity"`, as in the JSON form of
        protocol buffers. The result includes neither the meanings of the values nor the names of unindexed properties.
        `decode` returns both.

    Raises:
        PayloadError: The record is not an entity.
    """
    return json_value("entity", record)
