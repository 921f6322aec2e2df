"""`RecordsReader` of leveldb-export 0.1.1, which reads Firestore's exports.

Change

    from leveldb_export.records import RecordsReader

to

    from cordwood.compat.leveldb_export import RecordsReader

and `from leveldb_export import records` to `from cordwood.compat import leveldb_export as records`.

>>> import cordwood
>>> from cordwood.compat import leveldb_export as records
>>> with cordwood.open("output-0", "w") as writer:
...     _ = writer.append(b"one")
>>> with open("output-0", "rb") as file:
...     list(records.RecordsReader(file))
[b'one']

On an undamaged file it returns what leveldb-export's returns. Its deviations are those of
`cordwood.compat.appengine.RecordsReader`, of which leveldb-export has a copy, and:

* **checksums**: Checksums are always verified. leveldb-export does so only with `no_check_crc=False`, and else
  returns damaged data as good. The parameter is taken, and changes nothing.
* **seek**: It has `seek`, as App Engine's has. leveldb-export's has not.
* **documents**: `parse_leveldb_documents`, which makes dictionaries of the records, is not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cordwood.compat import appengine

if TYPE_CHECKING:
    from cordwood.typing import Readable

__all__ = ["RecordsReader"]


class RecordsReader(appengine.RecordsReader):
    """Reads the records of a log. Iterating gives those from the current position on, as `bytes`.

    Args:
        reader: As for `appengine.RecordsReader`.
        no_check_crc: Makes no difference. Default: `True`.
    """

    def __init__(self, reader: Readable, no_check_crc: bool = True) -> None:  # noqa: FBT001, FBT002 - theirs
        super().__init__(reader)
        self.no_check_crc = no_check_crc
