"""What a picture of a log shows: its bytes in cells of one length, and the regions that are damaged. No drawing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from cordwood.cli._common import counted
from cordwood.types import BLOCK_LEN

Run = tuple[int, int, str, str | None, str | None, int]
"""Offset, end offset, name, reason, severity, number of fragments: what `cordwood._native.runs` gives."""


class Look(IntEnum):
    """What bytes look like in a picture."""

    WHOLE = 0
    """Records of one fragment."""
    PART = 1
    """Fragments of longer records."""
    OTHER = 2
    """What is not user data: file headers, trailers, engine metadata."""
    ZEROS = 3
    """Room that was never written."""
    STALE = 4
    """What is left of an older log."""
    TORN = 5
    """The incomplete end."""
    LOST = 6
    """Valid fragments of a record that lacks others."""
    DAMAGE = 7
    """Bytes that are not what was written."""


SHOWN_FIRST = (Look.DAMAGE, Look.LOST, Look.TORN)
"""However few bytes of a cell they are. Of the others, the one with the most bytes is shown."""

_LOST = ("missing_start", "missing_end", "interrupted_record")

TITLES = {
    Look.WHOLE: "whole records",
    Look.PART: "parts of longer records",
    Look.OTHER: "headers, trailers, the engine's own",
    Look.ZEROS: "zeros",
    Look.STALE: "left over from an older log",
    Look.TORN: "torn tail",
    Look.LOST: "lost with it: other parts of its records",
    Look.DAMAGE: "damage",
}


@dataclass(slots=True)
class Region:
    """Bytes `[begin, end)` of one severity and reason that touch."""

    begin: int
    end: int
    reason: str
    look: Look


def look_of(name: str, reason: str | None, severity: str | None) -> Look:
    """What a fragment looks like."""
    if severity == "corruption":
        return Look.LOST if reason in _LOST else Look.DAMAGE
    if severity == "torn_tail":
        return Look.TORN
    if reason == "stale":
        return Look.STALE
    if name == "zeros":
        return Look.ZEROS
    if reason is not None or name == "trailer":
        return Look.OTHER
    return Look.WHOLE if name.endswith("full") else Look.PART


@dataclass(slots=True)
class Cells:
    """The bytes of a log in cells of one length, which doubles as often as there would be too many cells.

    So the length of the log need not be known before, and a picture of any log takes the same memory.
    """

    cell_len: int
    count_max: int
    regions_max: int = 1000
    sums: list[list[int]] = field(default_factory=list[list[int]])
    """For each cell, its bytes by look."""
    totals: list[int] = field(default_factory=lambda: [0] * len(Look))
    """The bytes of the log by look."""
    regions: list[Region] = field(default_factory=list[Region])
    """What is damaged or torn, as far as it is listed."""
    region_count: int = 0
    """How many regions there are, listed or not."""
    file_len: int = 0
    fragment_count: int = 0

    @classmethod
    def of(cls, runs: Iterable[Run], *, cell_len: int, count_max: int) -> Cells:
        """The cells of a log, from runs that tile it."""
        cells = cls(cell_len, count_max)
        last: Region | None = None
        for begin, end, name, reason, severity, count in runs:
            look = look_of(name, reason, severity)
            cells.add(begin, end, look)
            if name not in ("trailer", "zeros", "rest", "file_header"):
                cells.fragment_count += count
            if look in SHOWN_FIRST and reason is not None:
                if last is not None and (last.end, last.reason) == (begin, reason):
                    last.end = end
                    continue
                last = Region(begin, end, reason, look)
                cells.region_count += 1
                if len(cells.regions) < cells.regions_max:
                    cells.regions.append(last)
        return cells

    def add(self, begin: int, end: int, look: Look) -> None:
        """Adds the bytes `[begin, end)`."""
        self.totals[look] += end - begin
        self.file_len = max(self.file_len, end)
        while end > self.cell_len * self.count_max:
            self._double()
        while begin < end:
            index = begin // self.cell_len
            cell_end = min(end, (index + 1) * self.cell_len)
            while len(self.sums) <= index:
                self.sums.append([0] * len(Look))
            self.sums[index][look] += cell_end - begin
            begin = cell_end

    def _double(self) -> None:
        pairs = zip(self.sums[::2], [*self.sums[1::2], [0] * len(Look)], strict=False)
        self.sums = [[one + other for one, other in zip(*pair, strict=True)] for pair in pairs]
        self.cell_len *= 2

    def looks(self) -> list[Look]:
        """What each cell looks like."""
        return [shown(sums) for sums in self.sums]

    @property
    def block_count(self) -> int:
        """Blocks in the log, the last one whole or not."""
        return -(-self.file_len // BLOCK_LEN)

    @property
    def is_damaged(self) -> bool:
        """Whether there is damage. A torn tail is none."""
        return self.totals[Look.DAMAGE] + self.totals[Look.LOST] > 0


def shown(sums: list[int]) -> Look:
    """The look of a cell with this many bytes of each."""
    for look in SHOWN_FIRST:
        if sums[look]:
            return look
    return max(Look, key=lambda look: sums[look])


def size(length: int) -> str:
    """A number of bytes, in the largest unit in which it is a whole number."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if length >= unit and length % unit == 0:
            return f"{length // unit:,} {name}"
    return f"{length:,} bytes" if length != 1 else "1 byte"


def rows(row_len: int) -> str:
    """How much of a log a row is."""
    if row_len < BLOCK_LEN:
        return size(row_len)
    return f"{counted(row_len // BLOCK_LEN, 'block')} ({size(row_len)})"


def summary(cells: Cells, dialect: str) -> str:
    """One line about the log."""
    parts = [size(cells.file_len), counted(cells.block_count, "block"), counted(cells.fragment_count, "fragment")]
    parts.append(f"dialect {dialect}")
    return ", ".join(parts)


def verdict(cells: Cells) -> str:
    """One line about its state."""
    damaged, lost, torn = (cells.totals[look] for look in SHOWN_FIRST)
    said: list[str] = []
    if damaged:
        said.append(f"{counted(damaged, 'byte')} damaged")
    if lost:
        said.append(f"{counted(lost, 'byte')} lost with it")
    if torn:
        said.append(f"{counted(torn, 'byte')} of a torn tail")
    return ", ".join(said) or "no damage"
