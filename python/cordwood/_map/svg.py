"""Draws logs as one SVG document.

The document doesn't need scripts or other files. Browsers show each `<title>` when the pointer hovers over its element.
`<style>` defines colours for light and dark backgrounds. The colours are from the Okabe and Ito palette, and can be
distinguished with any type of colour vision. Damage is also hatched and marked in the margin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from cordwood import fragments
from cordwood._map.cells import (
    SHOWN_FIRST,
    TITLES,
    Category,
    Cells,
    category_of,
    cells_of,
    damage_summary,
    rows,
    summary,
)
from cordwood._text import quantity
from cordwood.types import Fragment
from cordwood.typing import Source

ROW_COUNT_MAX = 64
COLUMNS = 128
FRAGMENTS_MAX = 4000
"""The maximum number of fragments in a document. If a log has more, cells are drawn instead."""
REGIONS_MAX = 16

# A document is as wide as the page allows, so the browser scales these units. On a page 500 pixels wide, letters are
# still 9 pixels high.
_WIDTH = 720
_LEFT, _BARS = 126, 560
_TOP, _ROW, _BAR, _LINE = 106, 20, 15, 23
_TITLE_LEN_MAX = 56
_LINE_LEN_MAX = 78

# A document may be embedded in a page, so these names must not be used elsewhere in the page.
_STYLE = """
.cordwood-map { max-width: 900px; height: auto; display: block; background: #fff; color-scheme: light dark; }
.cordwood-map text { fill: #1c2430; font: 15px ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
.cordwood-map .h { font-size: 19px; font-weight: 600; }
.cordwood-map .q { fill: #5a6572; }
.cordwood-map .n { fill: #5a6572; }
.cordwood-map .n, .cordwood-map .m { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.cordwood-map .bar { fill: #eef1f4; }
.cordwood-map .whole { fill: #0072b2; } .cordwood-map .part { fill: #56b4e9; }
.cordwood-map .other { fill: #6b7580; } .cordwood-map .zeros { fill: #d3d9df; }
.cordwood-map .stale { fill: #cc79a7; } .cordwood-map .torn { fill: #f0e442; }
.cordwood-map .lost { fill: #f3b27a; } .cordwood-map .damage { fill: #d55e00; }
.cordwood-map .mark { fill: #d55e00; } .cordwood-map .mark2 { fill: #e69f00; }
.cordwood-map .bad { fill: #b84a00; font-weight: 600; }
.cordwood-map .hatch { stroke: #fff; stroke-width: 2; }
.cordwood-map rect:hover { stroke: #1c2430; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
  .cordwood-map { background: #14181d; }
  .cordwood-map text { fill: #e8edf2; }
  .cordwood-map .q, .cordwood-map .n { fill: #9aa7b4; }
  .cordwood-map .bar { fill: #20262d; }
  .cordwood-map .whole { fill: #2b8ccb; } .cordwood-map .part { fill: #7cc7f2; }
  .cordwood-map .other { fill: #8a95a1; } .cordwood-map .zeros { fill: #4a5561; }
  .cordwood-map .stale { fill: #d48fb6; } .cordwood-map .torn { fill: #f0e442; }
  .cordwood-map .lost { fill: #b5764a; } .cordwood-map .damage { fill: #ff6a13; }
  .cordwood-map .mark, .cordwood-map .bad { fill: #f58549; } .cordwood-map .mark2 { fill: #f0b429; }
  .cordwood-map .hatch { stroke: #14181d; }
  .cordwood-map rect:hover { stroke: #e8edf2; }
}
"""


class Box(NamedTuple):
    """Bytes `[start, end)` drawn as one box, with a description."""

    start: int
    end: int
    category: Category
    title: str


def _box_of(fragment: Fragment) -> Box:
    """Returns the box for a fragment. Its description is shown while the pointer hovers over it."""
    lines = [f"{fragment.kind}, {quantity(fragment.length, 'byte')}, {fragment.offset:,} to {fragment.end_offset:,}"]
    if fragment.payload_len is not None:
        lines.append(f"type {fragment.type_byte}, payload {quantity(fragment.payload_len, 'byte')}")
    if fragment.stored_crc is not None:
        computed = "unknown" if fragment.computed_crc is None else f"{fragment.computed_crc:08x}"
        is_right = fragment.stored_crc == fragment.computed_crc
        lines.append(f"checksum {fragment.stored_crc:08x}" + ("" if is_right else f", computed {computed}"))
    if fragment.log_number is not None:
        lines.append(f"log number {fragment.log_number}")
    if fragment.record_offset is not None:
        salvaged = ", after damage in the same block" if fragment.salvaged else ""
        lines.append(f"part of the record at {fragment.record_offset:,}{salvaged}")
    if fragment.reason is not None:
        lines.append(f"{fragment.severity}: {fragment.reason}")
    category = category_of(fragment.kind, fragment.reason, fragment.severity)
    return Box(fragment.offset, fragment.end_offset, category, "\n".join(lines))


def boxes_of_cells(cells: Cells, columns: int) -> Iterator[Box]:
    """Yields boxes for cells. Adjacent cells share a box if they are in the same row and category."""
    categories = cells.categories()
    start = 0
    for index in range(1, len(categories) + 1):
        if index < len(categories) and index % columns and categories[index] is categories[start]:
            continue
        sums = [sum(column) for column in zip(*cells.sums[start:index], strict=True)]
        first, end = start * cells.cell_len, min(index * cells.cell_len, cells.file_len)
        held = "\n".join(
            f"{TITLES[category]}: {quantity(sums[category], 'byte')}"
            for category in reversed(Category)
            if sums[category]
        )
        yield Box(first, end, categories[start], f"{first:,} to {end:,}\n{held}")
        start = index


class Picture(NamedTuple):
    """The picture of a log, as part of a document."""

    cells: Cells
    title: str
    height: int
    elements: list[str]
    fragment_count: int = 0
    """The number of fragments drawn individually, or 0 if there are too many."""


def picture_of(source: Callable[[], Source], log: dict[str, Any], title: str, fragments_max: int) -> Picture:
    """Draws a log. If it has more than `fragments_max` fragments, cells are drawn instead.

    Args:
        source: A function that opens the log. It is called several times.
        log: The options that specify the log's format.
        title: The heading above the picture.
        fragments_max: The maximum number of fragments to draw individually.
    """
    cells = cells_of(source(), log, COLUMNS, ROW_COUNT_MAX)
    boxes = list(map(_box_of, islice(fragments(source(), **cells.log._asdict()), fragments_max + 1)))
    are_all = len(boxes) <= fragments_max
    drawn = boxes if are_all else boxes_of_cells(cells, COLUMNS)
    picture = draw(cells, drawn, title=title, row_len=cells.cell_len * COLUMNS)
    return picture._replace(fragment_count=len(boxes) if are_all else 0)


def document(pictures: Sequence[Picture]) -> str:
    """Returns one document with the pictures stacked vertically."""
    height = sum(picture.height for picture in pictures)
    # All documents on a page can share the same hatch pattern.
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="cordwood-map" viewBox="0 0 {_WIDTH} {height}" width="100%">',
        f"<title>{pictures[0].title if len(pictures) == 1 else quantity(len(pictures), 'log')}</title>",
        f"<style>{_STYLE}</style>",
        '<defs><pattern id="cordwood-hatch" width="6" height="6" patternUnits="userSpaceOnUse"',
        ' patternTransform="rotate(45)"><path class="hatch" d="M0 0V6" opacity=".55"/></pattern></defs>',
    ]
    y = 0
    for picture in pictures:
        out += [f'<g transform="translate(0 {y})">', f"<title>{picture.title}</title>", *picture.elements, "</g>"]
        y += picture.height
    return "\n".join([*out, "</svg>", ""])


def draw(cells: Cells, boxes: Iterable[Box], *, title: str, row_len: int) -> Picture:
    """Draws a log. Each row shows `row_len` bytes."""
    row_count = max(-(-cells.file_len // row_len), 1)
    marks = {Category.DAMAGE: "mark", Category.LOST: "mark", Category.TORN: "mark2"}
    state = "bad" if cells.is_damaged else "q"
    out = [
        f'<text x="16" y="30" class="h">{_text(_shortened(title))}</text>',
        _headline(53, "q", summary(cells)),
        f'<text x="16" y="73" class="q">a row is {rows(row_len)}</text>',
        _headline(93, state, damage_summary(cells)),
    ]
    for row in range(row_count):
        y = _TOP + row * _ROW
        out.append(f'<text x="{_LEFT - 8}" y="{y + 12}" class="n" text-anchor="end">{row * row_len:,}</text>')
        length = min(cells.file_len - row * row_len, row_len)
        out.append(
            f'<rect class="bar" x="{_LEFT}" y="{y}" width="{_number(length * _BARS / row_len)}" height="{_BAR}"/>'
        )
    marked: dict[int, Category] = {}
    for box in boxes:
        out += _box(box, row_len)
        if box.category in marks:
            for row in range(box.start // row_len, (box.end - 1) // row_len + 1):
                marked[row] = max(box.category, marked.get(row, box.category))
    for row, category in marked.items():
        x, middle = _LEFT + _BARS + 6, _number(_TOP + row * _ROW + _BAR / 2)
        out.append(f'<path class="{marks[category]}" d="M{x} {middle}l11 -6v12z"/>')
    y = _TOP + row_count * _ROW + 20
    for category in reversed(Category):
        if length := cells.totals[category]:
            out += _legend(category, length, y)
            y += _LINE
    if shown := cells.regions[:REGIONS_MAX]:
        y += 16
        out.append(_listed(y, "offset", "bytes", "reason", "q"))
    for region in shown:
        y += _LINE
        out.append(_listed(y, f"{region.start:,}", f"{region.end - region.start:,}", region.reason, "m"))
    if cells.region_count > len(shown):
        y += _LINE
        out.append(_listed(y, "", "", f"and {quantity(cells.region_count - len(shown), 'region')} more", "q"))
    return Picture(cells, f"{_text(title)}: {damage_summary(cells)}", y + _LINE + 12, out)


def _headline(y: int, style: str, text: str) -> str:
    """Returns a line about the log, condensed if it is too long."""
    narrower = f' textLength="{_WIDTH - 32}" lengthAdjust="spacingAndGlyphs"' if len(text) > _LINE_LEN_MAX else ""
    return f'<text x="16" y="{y}" class="{style}"{narrower}>{text}</text>'


def _shortened(title: str) -> str:
    """Returns the title, shortened to fit on one line. Keeps more of a path's end than of its start."""
    start = _TITLE_LEN_MAX // 4
    end = _TITLE_LEN_MAX - start - 1
    return title if len(title) <= _TITLE_LEN_MAX else f"{title[:start]}\N{HORIZONTAL ELLIPSIS}{title[-end:]}"


def _box(box: Box, row_len: int) -> Iterator[str]:
    """Yields the parts of a box that fall in each row. Damage is always drawn wide enough to be visible."""
    start = box.start
    while start < box.end:
        row = start // row_len
        end = min(box.end, (row + 1) * row_len)
        x = _LEFT + (start % row_len) * _BARS / row_len
        width = (end - start) * _BARS / row_len
        # Leave a gap between fragments if there is enough space.
        width = width - 0.8 if width > 2.4 else width
        if box.category in SHOWN_FIRST:
            width = max(width, 2.5)
        place = f'x="{_number(x)}" y="{_TOP + row * _ROW}" width="{_number(width)}" height="{_BAR}"'
        title = f"<title>{_text(box.title)}</title>"
        yield f'<rect class="{box.category.name.lower()}" {place}>{title}</rect>'
        if box.category is Category.DAMAGE and width > 4:
            yield f'<rect fill="url(#cordwood-hatch)" pointer-events="none" {place}/>'
        start = end


def _legend(category: Category, length: int, y: int) -> Iterator[str]:
    """Yields a legend line, which shows how a category is drawn and how many bytes belong to it."""
    place = f'x="{_LEFT}" y="{y}" width="18" height="{_BAR}"'
    yield f'<rect class="{category.name.lower()}" {place}/>'
    if category is Category.DAMAGE:
        yield f'<rect fill="url(#cordwood-hatch)" {place}/>'
    yield f'<text x="{_LEFT + 28}" y="{y + 13}">{TITLES[category]}</text>'
    total = quantity(length, "byte")
    yield f'<text x="{_LEFT + _BARS}" y="{y + 13}" class="m" text-anchor="end">{total}</text>'


def _listed(y: int, offset: str, length: str, reason: str, style: str) -> str:
    """Returns a line for the list of regions."""
    return (
        f'<text x="{_LEFT + 140}" y="{y + 13}" class="{style}" text-anchor="end">{offset}</text>'
        f'<text x="{_LEFT + 290}" y="{y + 13}" class="{style}" text-anchor="end">{length}</text>'
        f'<text x="{_LEFT + 316}" y="{y + 13}" class="{style}">{reason}</text>'
    )


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    """Returns text escaped for XML. Most control characters are replaced, because XML can't represent them."""
    printable = "".join(character if character.isprintable() or character == "\n" else "?" for character in text)
    # `html.escape` isn't used, because importing `html` would load all HTML entities.
    return printable.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
