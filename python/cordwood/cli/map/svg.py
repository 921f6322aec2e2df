"""A picture of a log as SVG: cells or fragments in, one document out. Pure.

It needs no script and no other file: the browser shows each `<title>` when the pointer rests on it, and `<style>` has
the colours for light and for dark backgrounds. They are those of Okabe and Ito, which all kinds of colour vision tell
apart; damage is hatched and has a mark in the margin besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

from cordwood.cli._messages import quantity
from cordwood.cli.map.cells import SHOWN_FIRST, TITLES, Category, Cells, damage_summary, rows, summary

ROW_COUNT_MAX = 64
COLUMNS = 128
FRAGMENTS_MAX = 4000
"""With more, cells are drawn in place of fragments."""
REGIONS_MAX = 16

_LEFT, _RIGHT, _WIDTH = 112, 28, 1024
_TOP, _ROW, _BAR = 84, 20, 15

_CLASSES = {
    Category.WHOLE: "whole",
    Category.PART: "part",
    Category.OTHER: "other",
    Category.ZEROS: "zeros",
    Category.STALE: "stale",
    Category.TORN: "torn",
    Category.LOST: "lost",
    Category.DAMAGE: "damage",
}

_STYLE = """
:root { color-scheme: light dark; }
svg { background: #fff; font: 13px ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
text { fill: #1c2430; }
.h { font-size: 18px; font-weight: 600; }
.q { fill: #5a6572; }
.n { font: 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #5a6572; }
.m { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.bar { fill: #eef1f4; }
.whole { fill: #0072b2; } .part { fill: #56b4e9; } .other { fill: #6b7580; } .zeros { fill: #d3d9df; }
.stale { fill: #cc79a7; } .torn { fill: #f0e442; } .lost { fill: #f3b27a; } .damage { fill: #d55e00; }
.mark { fill: #d55e00; } .bad { fill: #b84a00; font-weight: 600; } .mark2 { fill: #e69f00; }
.hatch { stroke: #fff; stroke-width: 2; }
rect:hover { stroke: #1c2430; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  svg { background: #14181d; }
  text { fill: #e8edf2; }
  .q, .n { fill: #9aa7b4; }
  .bar { fill: #20262d; }
  .whole { fill: #2b8ccb; } .part { fill: #7cc7f2; } .other { fill: #8a95a1; } .zeros { fill: #4a5561; }
  .stale { fill: #d48fb6; } .torn { fill: #f0e442; } .lost { fill: #b5764a; } .damage { fill: #ff6a13; }
  .mark, .bad { fill: #f58549; } .mark2 { fill: #f0b429; }
  .hatch { stroke: #14181d; }
  rect:hover { stroke: #e8edf2; }
}
"""


@dataclass(frozen=True, slots=True)
class Box:
    """Bytes `[begin, end)` that are drawn as one, and what is said of them."""

    begin: int
    end: int
    category: Category
    title: str


def boxes_of_cells(cells: Cells, columns: int) -> Iterator[Box]:
    """Cells as boxes: those of a row that touch and have the same category are one."""
    categories = cells.categories()
    begin = 0
    for index in range(1, len(categories) + 1):
        if index < len(categories) and index % columns and categories[index] is categories[begin]:
            continue
        sums = [sum(column) for column in zip(*cells.sums[begin:index], strict=True)]
        first, end = begin * cells.cell_len, min(index * cells.cell_len, cells.file_len)
        held = "\n".join(
            f"{TITLES[category]}: {quantity(sums[category], 'byte')}"
            for category in reversed(Category)
            if sums[category]
        )
        yield Box(first, end, categories[begin], f"{first:,} to {end:,}\n{held}")
        begin = index


def draw(cells: Cells, boxes: Iterable[Box], *, title: str, dialect: str, row_len: int) -> str:
    """The document. A row shows `row_len` bytes."""
    row_count = max(-(-cells.file_len // row_len), 1)
    below = _TOP + row_count * _ROW + 26
    categories = [category for category in reversed(Category) if cells.totals[category]]
    shown = cells.regions[:REGIONS_MAX]
    has_more = cells.region_count > len(shown)
    height = below + max(24 * len(categories), 20 * (len(shown) + 1 + has_more) if shown else 0) + 12
    width = _LEFT + _WIDTH + _RIGHT
    marks = {Category.DAMAGE: "mark", Category.LOST: "mark", Category.TORN: "mark2"}
    state = "bad" if cells.is_damaged else "q"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<title>{_text(title)}: {damage_summary(cells)}</title>",
        f"<style>{_STYLE}</style>",
        '<defs><pattern id="h" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">',
        '<path class="hatch" d="M0 0V6" opacity=".55"/></pattern></defs>',
        f'<text x="16" y="30" class="h">{_text(title)}</text>',
        f'<text x="16" y="50" class="q">{summary(cells, dialect)}; a row is {rows(row_len)}</text>',
        f'<text x="16" y="69" class="{state}">{damage_summary(cells)}</text>',
    ]
    for row in range(row_count):
        y = _TOP + row * _ROW
        out.append(f'<text x="{_LEFT - 8}" y="{y + 12}" class="n" text-anchor="end">{row * row_len:,}</text>')
        length = min(cells.file_len - row * row_len, row_len)
        out.append(
            f'<rect class="bar" x="{_LEFT}" y="{y}" width="{_number(length * _WIDTH / row_len)}" height="{_BAR}"/>'
        )
    marked: dict[int, Category] = {}
    for box in boxes:
        out += _box(box, row_len)
        if box.category in marks:
            for row in range(box.begin // row_len, (box.end - 1) // row_len + 1):
                marked[row] = max(box.category, marked.get(row, box.category))
    for row, category in marked.items():
        x, middle = _LEFT + _WIDTH + 6, _number(_TOP + row * _ROW + _BAR / 2)
        out.append(f'<path class="{marks[category]}" d="M{x} {middle}l11 -6v12z"/>')
    for index, category in enumerate(categories):
        y = below + 24 * index
        out += _swatch(category, y)
        out.append(f'<text x="{_LEFT + 28}" y="{y + 12}">{TITLES[category]}</text>')
        total = quantity(cells.totals[category], "byte")
        out.append(f'<text x="{_LEFT + 410}" y="{y + 12}" class="m" text-anchor="end">{total}</text>')
    if shown:
        out.append(_listed(below, "offset", "bytes", "reason", "q"))
    for index, region in enumerate(shown):
        y = below + 20 * (index + 1)
        out.append(_listed(y, f"{region.begin:,}", f"{region.end - region.begin:,}", region.reason, "m"))
    if has_more:
        more = quantity(cells.region_count - len(shown), "region")
        out.append(_listed(below + 20 * (len(shown) + 1), "", "", f"and {more} more", "q"))
    return "\n".join([*out, "</svg>", ""])


def _box(box: Box, row_len: int) -> Iterator[str]:
    """The box, cut where rows end. Never so thin that it cannot be seen."""
    begin = box.begin
    while begin < box.end:
        row = begin // row_len
        end = min(box.end, (row + 1) * row_len)
        x = _LEFT + (begin % row_len) * _WIDTH / row_len
        width = (end - begin) * _WIDTH / row_len
        # A gap tells one fragment from the next, where there is room for it.
        width = width - 0.8 if width > 2.4 else width
        if box.category in SHOWN_FIRST:
            width = max(width, 2.5)
        place = f'x="{_number(x)}" y="{_TOP + row * _ROW}" width="{_number(width)}" height="{_BAR}"'
        title = f"<title>{_text(box.title)}</title>"
        yield f'<rect class="{_CLASSES[box.category]}" {place}>{title}</rect>'
        if box.category is Category.DAMAGE and width > 4:
            yield f'<rect fill="url(#h)" pointer-events="none" {place}/>'
        begin = end


def _listed(y: int, offset: str, length: str, reason: str, style: str) -> str:
    """One line of the list of regions."""
    x = _LEFT + 500
    return (
        f'<text x="{x + 130}" y="{y + 12}" class="{style}" text-anchor="end">{offset}</text>'
        f'<text x="{x + 250}" y="{y + 12}" class="{style}" text-anchor="end">{length}</text>'
        f'<text x="{x + 274}" y="{y + 12}" class="{style}">{reason}</text>'
    )


def _swatch(category: Category, y: int) -> Iterator[str]:
    place = f'x="{_LEFT}" y="{y}" width="18" height="{_BAR}"'
    yield f'<rect class="{_CLASSES[category]}" {place}/>'
    if category is Category.DAMAGE:
        yield f'<rect fill="url(#h)" {place}/>'


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    """Text for XML, which has no way to write most control characters."""
    printable = "".join(character if character.isprintable() or character == "\n" else "?" for character in text)
    return escape(printable, quote=False)
