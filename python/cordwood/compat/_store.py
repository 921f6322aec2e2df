"""What the readers of wandb's and SwanLab's files share: a header of seven bytes, then records, one call each."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from os import PathLike

import cordwood

BLOCK_LEN = 32768
HEADER_LEN = 7


def check_file_header(
    header: bytes, ident: bytes, magic: int, version: int, problem: Callable[[str], Exception]
) -> None:
    """Raises `problem` if these are not the seven bytes that a file begins with."""
    if len(header) != HEADER_LEN:
        raise problem(f"the file header is {len(header)} bytes instead of the expected {HEADER_LEN}")
    found_ident, found_magic, found_version = struct.unpack("<4sHB", header)
    if (found_ident, found_magic) != (ident, magic):
        raise problem(f"invalid file header: {header.hex(' ')}, expected {ident.hex(' ')} and {magic:04x}")
    if found_version != version:
        raise problem(f"invalid file header: version {found_version}, expected {version}")


class Scanner:
    """The records of one file, one a call, from any offset; what is appended later is found.

    Sound records behind damage in the same block are returned, too: those whom this is for trust the length in a header
    and go on behind it, so they must not get less. Damage is raised all the same, in its turn.

    Attributes:
        reader: The reader below.
        offset: The file offset behind what was returned, in bytes; of damage that was raised, where it begins.
    """

    def __init__(self, path: str | PathLike[str], dialects: tuple[str, ...], offset: int) -> None:
        dialect = cordwood.detect(path)
        name = dialect.name if dialect is not None and dialect.name in dialects else dialects[0]
        self.reader = cordwood.Reader(path, dialect=name, on_corruption="salvage")
        self._records: Iterator[cordwood.Record] = self.reader.records()
        self._path = str(path)
        self.seek(offset)

    def seek(self, offset: int) -> None:
        """Goes to a file offset."""
        self.reader.seek(offset)
        self.offset = offset
        self._has_ended = False
        self._skipped_len = self._skipped_count = 0
        self._pending: list[cordwood.SkippedRegion | cordwood.Record | None] = []

    def scan(self, error_type: type[cordwood.CorruptionError]) -> bytes | None:
        """The next record, or `None` at the end.

        Raises:
            error_type: There is damage, at `offset`. The next call goes on behind it.
        """
        if not self._pending:
            if self._has_ended:  # The file may have grown since.
                self.seek(self.reader.tell())
            record = next(self._records, None)
            if record is not None and self.reader.skipped_len == self._skipped_len:
                self.offset = record.end_offset
                return record.data
            self._pending = [*self._damage(), record]
        found = self._pending.pop(0)
        if isinstance(found, cordwood.SkippedRegion):
            self.offset = found.begin
            raise error_type(
                f"{self._path}: {found}",
                path=self._path,
                offset=found.begin,
                length=len(found),
                reason=found.reason,
                stored=found.stored,
                computed=found.computed,
            )
        if found is None:
            self.offset = self.reader.tell()
            self._has_ended = True
            return None
        self.offset = found.end_offset
        return found.data

    def _damage(self) -> list[cordwood.SkippedRegion]:
        """What has been skipped since the last time, and is damage."""
        regions = self.reader.skipped[self._skipped_count :]
        self._skipped_len = self.reader.skipped_len
        self._skipped_count += len(regions)
        return [region for region in regions if region.severity == cordwood.Severity.CORRUPTION]

    def close(self) -> None:
        """Closes the file."""
        self.reader.close()
