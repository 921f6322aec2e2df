"""`parse_leveldb_documents` and `RecordsReader` from leveldb-export 0.1.1, which reads Firestore exports.

Change::

    from leveldb_export import parse_leveldb_documents
    from leveldb_export.records import RecordsReader

to::

    from cordwood.compat.leveldb_export import parse_leveldb_documents
    from cordwood.compat.leveldb_export import RecordsReader

and `from leveldb_export import records` to `from cordwood.compat import leveldb_export as records`.

>>> import cordwood
>>> from cordwood.compat import leveldb_export as records
>>> with cordwood.open("output-0", "w") as writer:
...     _ = writer.append(b"one")
>>> with open("output-0", "rb") as file:
...     list(records.RecordsReader(file))
[b'one']

For an undamaged file, it returns the same results as leveldb-export. leveldb-export copied App Engine's reader, so all
differences listed for `cordwood.compat.appengine.RecordsReader` apply here too. This module also differs in the
following ways:

* **checksums**: Checksums are always verified. leveldb-export verifies them only with `no_check_crc=False`.
* **seek**: `RecordsReader` has `seek`.
* **documents**: `parse_leveldb_documents` reads keys with numbers, while leveldb-export raises a `TypeError`. In maps,
  it keeps places, keys, users, empty strings, and bytes that are not text. leveldb-export drops such bytes and returns
  `None` for the rest.
* **values**: Places, keys and users have the types from `cordwood.payload.entity`. All text is `str`.
* **not-an-entity**: A record that is not an entity raises a `cordwood.PayloadError`.
* **names**: `parse_entity_field` and the module `leveldb_export.utils` are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from cordwood.compat import appengine
from cordwood.compat.appengine import (
    BLOCK_SIZE,
    HEADER_FORMAT,
    HEADER_LENGTH,
    RECORD_TYPE_FIRST,
    RECORD_TYPE_FULL,
    RECORD_TYPE_LAST,
    RECORD_TYPE_MIDDLE,
    RECORD_TYPE_NONE,
    FileReader,
    InvalidRecordError,
)
from cordwood.payload import entity
from cordwood.typing import Readable

__all__ = ["FileReader", "InvalidRecordError", "RecordsReader", "parse_leveldb_documents"]
__all__ += ["BLOCK_SIZE", "CRC_INIT", "ENDIANNESS", "HEADER_FORMAT", "HEADER_LENGTH"]
__all__ += ["RECORD_TYPE_FIRST", "RECORD_TYPE_FULL", "RECORD_TYPE_LAST", "RECORD_TYPE_LENGTH"]
__all__ += ["RECORD_TYPE_MIDDLE", "RECORD_TYPE_NONE"]

ENDIANNESS = "little"
CRC_INIT = 0
RECORD_TYPE_LENGTH = 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class RecordsReader(appengine.RecordsReader):
    """Reads the records in a log. Iterating yields records from the current position onward, as `bytes`.

    Args:
        reader: Same as for `appengine.RecordsReader`.
        no_check_crc: Has no effect. Default: `True`.
    """

    def __init__(self, reader: Readable, no_check_crc: bool = True) -> None:  # noqa: FBT001, FBT002 - theirs
        super().__init__(reader)
        self.no_check_crc = no_check_crc


def parse_leveldb_documents(path_or_fp: str | Readable) -> Iterator[dict[str, object]]:
    """Yields the documents of an export. `_key` has the `id`, `name`, `namespace`, `app` and `path` of the key.

    Args:
        path_or_fp: The path of the export, or an open binary file, which this function doesn't close.

    Raises:
        OSError: The file cannot be opened or read.
        PayloadError: A record is not an entity.
        RuntimeError: A document has a `_key` property.
    """
    if isinstance(path_or_fp, str):
        with open(path_or_fp, "rb") as file:
            yield from parse_leveldb_documents(file)
        return
    for record in RecordsReader(path_or_fp):
        found = entity.decode(record)
        if "_key" in found.properties:
            raise RuntimeError("the document has a property _key, which is the name for its key")
        document = {name: _value(value) for name, value in found.properties.items()}
        key = found.key or entity.Key("", ())
        id_or_name = key.path[-1][1] if key.path else None
        document["_key"] = {
            "id": id_or_name if isinstance(id_or_name, int) else None,
            "name": id_or_name if isinstance(id_or_name, str) else None,
            "namespace": key.namespace or "",
            "app": key.app,
            "path": "/".join(str(part) for element in key.path for part in element),
        }
        yield document


def _value(value: entity.Value, *, in_map: bool = False) -> object:  # noqa: PLR0911 - one for each type
    """Returns a value in the form that leveldb-export uses.

    Times have no time zone. Inside a map, times become numbers of microseconds, and bytes become text if they are valid
    UTF-8.
    """
    match value:
        case entity.Entity():
            return {name: _value(item, in_map=True) for name, item in value.properties.items()}
        case list():
            return [_value(item, in_map=in_map) for item in value]
        case datetime() if in_map:
            return (value - _EPOCH) // _MICROSECOND
        case datetime():
            return value.replace(tzinfo=None)
        case bytes() if in_map:
            try:
                return value.decode()
            except UnicodeDecodeError:
                return value
        case _:
            return value
