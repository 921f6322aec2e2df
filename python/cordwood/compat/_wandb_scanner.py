"""Implements the scanner of `cordwood.compat.wandb`, which returns one record per call."""

from __future__ import annotations

import contextlib
import io
from collections import deque
from collections.abc import Iterator

import cordwood
from cordwood.types import Severity
from cordwood.typing import DialectName

# The maximum number of regions in `Reader.skipped`.
LISTED_MAX = 100_000
# The first access after a region is added rebuilds the list. To limit this cost, the list is emptied once it has this
# many regions.
LISTED_ENOUGH = 1_000


class _Whole:
    """A file read from its start. This object tracks its own position because other code may seek in the file."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self._file = file
        self._position = 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int) -> None:
        self._position = offset

    def read(self, size: int) -> bytes:
        self._file.seek(self._position)
        data = self._file.read(size)
        self._position += len(data)
        return data


class Scanner:
    """Reads a file from any offset, one record per call, including records appended later.

    Valid records after damage in the same block are also returned. After a damaged fragment, the original trusts the
    length in its header and continues. This scanner must return at least as many records. The damage before such
    records still raises an error.

    Attributes:
        file: The file, which stays open. It can be read even after its name has been removed.
        name: The name of the file, as shown in messages.
        reader: The underlying reader.
        offset: The file offset after the returned records, in bytes. After an error about damage, this is the start
            of the damage.
    """

    def __init__(self, file: io.BufferedIOBase, name: str, offset: int) -> None:
        self.file, self.name = file, name
        dialect: DialectName = "wandb"
        with contextlib.suppress(cordwood.DialectError):  # A caller may continue after a wrong header.
            detected = cordwood.detect(_Whole(file))
            if detected is not None and detected.dialect == "wandb_old":
                dialect = "wandb_old"
        self.reader = cordwood.Reader(_Whole(file), dialect=dialect, on_corruption="salvage")
        self._records: Iterator[cordwood.Record] = self.reader.records()
        self.seek(offset)

    def seek(self, offset: int) -> None:
        """Moves to a file offset."""
        self.reader.seek(offset)
        self.offset = offset
        self._starts_anew = False
        self._skipped_len = self._skipped_count = 0
        self._pending: deque[cordwood.SkippedRegion | cordwood.Record | None] = deque()

    def scan(self, error_type: type[cordwood.CorruptionError]) -> bytes | None:
        """Returns the next record, or `None` at the end.

        Raises:
            error_type: There is damage at `offset`. The next call continues after the damage.
        """
        if not self._pending:
            if self._starts_anew:
                self.seek(self.reader.tell())
            record = self._next()
            if record is not None and self.reader.skipped_len == self._skipped_len:
                self.offset = record.end_offset
                return record.data
            reported = self._reported(record)  # This may seek, which drops the pending record.
            self._pending.extend(reported)
        found = self._pending.popleft()
        if isinstance(found, cordwood.SkippedRegion):
            self.offset = found.offset
            names = ("offset", "length", "reason", "stored_crc", "computed_crc")
            raise error_type(str(found), path=self.name, **{name: getattr(found, name) for name in names})
        if found is None:
            self.offset = self.reader.tell()
            self._starts_anew = True  # The file may have grown by the next call.
            return None
        self.offset = found.end_offset
        return found.data

    def _next(self) -> cordwood.Record | None:
        try:
            return next(self._records, None)
        except cordwood.LogTruncatedError:
            return None  # As in the original, no record follows the end.

    def _reported(self, record: cordwood.Record | None) -> list[cordwood.SkippedRegion | cordwood.Record | None]:
        """Returns the damage skipped since the last call, and the record after the damage."""
        skipped = self.reader.skipped
        regions = skipped[self._skipped_count :]
        reported: list[cordwood.SkippedRegion | cordwood.Record | None] = [
            region for region in regions if region.severity == Severity.CORRUPTION
        ]
        if len(skipped) >= LISTED_MAX:
            # Unlisted damage may precede the record, so the bytes after the listed regions are read again.
            self.seek(regions[-1].end_offset)
            return reported or self._reported(self._next())
        self._skipped_len = self.reader.skipped_len
        self._skipped_count = len(skipped)
        self._starts_anew = self._skipped_count >= LISTED_ENOUGH
        return [*reported, record]

    def close(self) -> None:
        """Releases the file."""
        self.reader.close()
