"""Computes the contents of a picture: cells of equal length, and the damage."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from cordwood import fragments
from cordwood._text import quantity
from cordwood.types import BLOCK_LEN, LogFormat
from cordwood.typing import Source

Run = tuple[int, int, str, str | None, str | None, int]
"""The offset, end offset, name, reason, severity and number of fragments, as returned by `next_run`."""


class Category(IntEnum):
    """The kinds of bytes in a picture."""

    WHOLE = 0
    """Records that consist of a single fragment."""
    PART = 1
    """Fragments of longer records."""
    OTHER = 2
    """Bytes without user data, such as file headers, trailers and engine metadata."""
    ZEROS = 3
    """Unwritten space."""
    STALE = 4
    """Bytes left over from an older log."""
    TORN = 5
    """The torn tail."""
    LOST = 6
    """Valid fragments of a record whose other fragments are lost."""
    DAMAGE = 7
    """Bytes that differ from those originally written."""


SHOWN_FIRST = (Category.DAMAGE, Category.LOST, Category.TORN)
"""A cell shows the first of these categories that it contains, even if only a few of its bytes belong to that category.

A cell that doesn't contain any of these categories shows the category with the most bytes.
"""

_LOST = ("missing_start", "missing_end", "interrupted_record")

REGIONS_MAX = 1000
"""The maximum number of regions to list."""

TITLES = {
    Category.WHOLE: "whole records",
    Category.PART: "fragments of longer records",
    Category.OTHER: "headers, trailers, engine metadata",
    Category.ZEROS: "zeros",
    Category.STALE: "left over from an older log",
    Category.TORN: "torn tail: an incomplete record at the end",
    Category.LOST: "lost with it: other parts of its records",
    Category.DAMAGE: "damage",
}


class Region(NamedTuple):
    """Adjacent bytes `[start, end)` with the same severity and reason."""

    start: int
    end: int
    reason: str
    category: Category


def category_of(name: str, reason: str | None, severity: str | None) -> Category:
    """Returns the category of a fragment."""
    if severity == "corruption":
        return Category.LOST if reason in _LOST else Category.DAMAGE
    if severity == "torn_tail":
        return Category.TORN
    if reason == "stale":
        return Category.STALE
    if name == "zeros":
        return Category.ZEROS
    if reason is not None or name == "trailer":
        return Category.OTHER
    return Category.WHOLE if name.endswith("full") else Category.PART


class Cells:
    """A log's bytes, divided into cells of equal length. The length doubles whenever there are too many cells.

    That way, the log's length doesn't have to be known in advance, and every log requires the same amount of memory.

    Attributes:
        sums: The number of bytes of each category in each cell.
        totals: The number of bytes of each category in the log.
        regions: The damaged and torn regions, up to `REGIONS_MAX`.
        region_count: The total number of regions, including those not listed.
        zeros_inside_len: The number of zeros that are followed by a record.
        zeros_offset: The offset where the zeros at the end of the log start, or `None` if there are none.
        damage_end: The offset where the last damaged region ends.
        salvaged_count: The number of records that follow damage in their block.
        log: The format of the log.
        other_log_number: The number of the other log that the whole file belongs to, if any.

    Args:
        found: The runs of the log, which cover the log without gaps.
        cell_len: The initial length of a cell.
        count_max: The maximum number of cells.
    """

    # Not a `dataclass`, because importing `dataclasses` takes longer than drawing a small log.
    def __init__(self, found: Iterable[Run], *, cell_len: int, count_max: int) -> None:
        self.cell_len: int = cell_len
        self.count_max = count_max
        self.sums: list[list[int]] = []
        self.totals: list[int] = [0] * len(Category)
        self.regions: list[Region] = []
        self.file_len: int = 0
        self.region_count: int = 0
        self.fragment_count: int = 0
        self.zeros_inside_len: int = 0
        self.salvaged_count: int = 0
        self.zeros_offset: int | None = None
        self.damage_end: int = 0
        self.log: LogFormat = LogFormat("leveldb")
        self.other_log_number: int | None = None
        last: Region | None = None
        zeros: list[tuple[int, int]] = []
        for start, end, name, reason, severity, count in found:
            category = category_of(name, reason, severity)
            self.add(start, end, category)
            if severity == "corruption":
                self.damage_end = end
            if reason == "zero_fill":
                # Zeros in adjacent blocks are merged.
                zeros.append((zeros.pop()[0] if zeros and zeros[-1][1] == start else start, end))
            elif category in (Category.WHOLE, Category.PART):
                self.zeros_inside_len += sum(end - start for start, end in zeros)
                zeros.clear()
            if name not in ("trailer", "zeros", "rest", "file_header"):
                self.fragment_count += count
            if category in SHOWN_FIRST and reason is not None:
                is_more = last is not None and (last.end, last.reason) == (start, reason)
                last = last._replace(end=end) if last and is_more else Region(start, end, reason, category)
                self.region_count += not is_more
                if self.region_count <= REGIONS_MAX:
                    self.regions[self.region_count - 1 :] = [last]
        if zeros and zeros[-1][1] == self.file_len:
            self.zeros_offset = zeros[-1][0]

    def add(self, start: int, end: int, category: Category) -> None:
        """Adds the bytes `[start, end)`."""
        self.totals[category] += end - start
        self.file_len = max(self.file_len, end)
        while end > self.cell_len * self.count_max:
            self.double()
        while start < end:
            index = start // self.cell_len
            cell_end = min(end, (index + 1) * self.cell_len)
            while len(self.sums) <= index:
                self.sums.append([0] * len(Category))
            self.sums[index][category] += cell_end - start
            start = cell_end

    def double(self) -> None:
        """Doubles the length of the cells."""
        pairs = zip(self.sums[::2], [*self.sums[1::2], [0] * len(Category)], strict=False)
        self.sums = [[one + other for one, other in zip(*pair, strict=True)] for pair in pairs]
        self.cell_len *= 2

    def categories(self) -> list[Category]:
        """Returns the category of each cell."""
        return [category_of_cell(sums) for sums in self.sums]

    @property
    def is_damaged(self) -> bool:
        """Whether the log is damaged. A torn tail is not damage."""
        return self.totals[Category.DAMAGE] + self.totals[Category.LOST] > 0


def cells_of(source: Source, log: dict[str, Any], columns: int, row_count_max: int) -> Cells:
    """Returns a log's cells. Each row has `columns` cells.

    Each row usually shows one block. A row shows several blocks of a long log, or part of a block of a short log.

    Args:
        source: The log, which is read once.
        log: The options that specify the log's format.
        columns: The number of cells per row, a power of two.
        row_count_max: The maximum number of rows.
    """
    found = fragments(source, **log)
    cells = Cells(iter(found.next_run, None), cell_len=1, count_max=columns * row_count_max)
    row_len = BLOCK_LEN if cells.file_len > BLOCK_LEN // 2 else cells.file_len
    while cells.cell_len * columns < row_len:
        cells.double()
    dialect, log_number, compression, cells.other_log_number, cells.salvaged_count = found.found
    cells.log = LogFormat(dialect, log_number, compression)
    return cells


def category_of_cell(sums: list[int]) -> Category:
    """Returns the category of a cell, given how many of its bytes are in each category."""
    for category in SHOWN_FIRST:
        if sums[category]:
            return category
    return max(Category, key=lambda category: sums[category])


def size(length: int) -> str:
    """Returns a length as text, in the largest unit that gives a whole number."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if length >= unit and length % unit == 0:
            return f"{length // unit:,} {name}"
    return f"{length:,} bytes" if length != 1 else "1 byte"


def rows(row_len: int) -> str:
    """Returns the length of a row as text, such as `2 blocks (64 KiB)`."""
    if row_len < BLOCK_LEN:
        return size(row_len)
    return f"{quantity(row_len // BLOCK_LEN, 'block')} ({size(row_len)})"


def summary(cells: Cells) -> str:
    """Returns a line about the log."""
    # The last block may be incomplete.
    blocks = quantity(-(-cells.file_len // BLOCK_LEN), "block")
    counts = f"{blocks}, {quantity(cells.fragment_count, 'fragment')}"
    return f"{size(cells.file_len)}, {counts}, dialect {cells.log.dialect}"


def damage_summary(cells: Cells) -> str:
    """Returns a line about the damage in the log."""
    lens = (cells.totals[category] for category in SHOWN_FIRST)
    states = ("damaged", "lost with it", "of a torn tail")
    found = (f"{quantity(length, 'byte')} {state}" for length, state in zip(lens, states, strict=True) if length)
    return ", ".join(found) or "no damage"
