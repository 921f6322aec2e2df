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

    Attributes:
        reader: The reader below.
        offset: The file offset of the next record, in bytes.
    """

    def __init__(self, path: str | PathLike[str], dialects: tuple[str, ...], offset: int) -> None:
        dialect = cordwood.detect(path)
        name = dialect.name if dialect is not None and dialect.name in dialects else dialects[0]
        self.reader = cordwood.Reader(path, dialect=name)
        self._records: Iterator[cordwood.Record] = self.reader.records()
        self.seek(offset)

    def seek(self, offset: int) -> None:
        """Goes to a file offset."""
        self.reader.seek(offset)
        self.offset = offset

    def scan(self) -> bytes | None:
        """The next record, or `None` at the end.

        Raises:
            CorruptionError: There is damage, at `offset`. The next call goes on behind it.
        """
        if self.reader.end is not None:  # The file may have grown since.
            self.reader.seek(self.reader.tell())
        try:
            record = next(self._records, None)
        except cordwood.CordwoodError as error:
            # Not behind the damage: who goes to the next block from here must not miss one.
            self.offset = error.offset
            raise
        if record is None:
            self.offset = self.reader.tell()
            return None
        self.offset = record.end_offset
        return record.data

    def close(self) -> None:
        """Closes the file."""
        self.reader.close()
