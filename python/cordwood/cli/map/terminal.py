"""Draws a log as lines of characters, without side effects."""

from __future__ import annotations

from cordwood._map.cells import SHOWN_FIRST, TITLES, Category, Cells, damage_summary, rows, size, summary
from cordwood._text import quantity
from cordwood.cli._terminal import red

ROW_COUNT_MAX = 64
REGIONS_MAX = 20

# For each category, its character in UTF-8 and in ASCII, and its style. The colours approximate Okabe and Ito's
# palette. They are among the 256 colours that all terminals support, whether the background is light or dark.
_MARKS = {
    Category.WHOLE: ("█", "#", "38;5;32"),
    Category.PART: ("▓", "=", "38;5;74"),
    Category.OTHER: ("▒", "-", "38;5;244"),
    Category.ZEROS: ("·", ".", "38;5;244"),
    Category.STALE: ("░", ":", "38;5;175"),
    Category.TORN: ("~", "~", "1;38;5;232;48;5;214"),
    Category.LOST: ("x", "x", "38;5;232;48;5;216"),
    Category.DAMAGE: ("!", "!", "1;38;5;231;48;5;166"),
}
# The characters for the last cell of a log, indexed by the number of filled eighths.
_EIGHTHS = " ▏▎▍▌▋▊▉█"

_LABEL_LEN = 14
_MARGIN_LEN = 2


def cells_per_row(width: int) -> int:
    """Returns the number of cells in a row. It is a power of two, so each cell has a whole number of bytes."""
    room = max(width - _LABEL_LEN - _MARGIN_LEN, 8)
    return min(1 << (room.bit_length() - 1), 256)


def draw(cells: Cells, *, title: str, columns: int, color: bool, unicode: bool) -> list[str]:
    """Returns the lines of the picture. `columns` is the number of cells in a row."""
    marks = {category: known[0 if unicode else 1] for category, known in _MARKS.items()}
    row_len = cells.cell_len * columns
    lines = [_fit(title, unicode=unicode), summary(cells)]
    lines += [f"a row is {rows(row_len)}, a character {size(cells.cell_len)}", ""]
    categories = cells.categories()
    for start in range(0, len(categories), columns):
        row = categories[start : start + columns]
        drawn = [marks[category] for category in row]
        filled = cells.file_len % cells.cell_len
        if unicode and start + columns >= len(categories) and filled and row[-1] is Category.WHOLE:
            drawn[-1] = _EIGHTHS[max(1, filled * 8 // cells.cell_len)]
        mark = next((f" {marks[category]}" for category in SHOWN_FIRST if category in row), "")
        label = f"{start * cells.cell_len:>{_LABEL_LEN - 1},} "
        lines.append(label + _colored(row, drawn, color=color) + mark)
    if categories:
        lines += ["", *_legend(cells, marks, color=color), ""]
    if cells.regions:
        lines += [*_regions(cells, color=color), ""]
    return [*lines, red(damage_summary(cells), color=color and cells.is_damaged)]


def _colored(row: list[Category], drawn: list[str], *, color: bool) -> str:
    """Returns a row's characters. The colour changes only where the category of the cells changes."""
    if not color:
        return "".join(drawn)
    out: list[str] = []
    last = None
    for category, character in zip(row, drawn, strict=True):
        if category is not last:
            out.append(f"\x1b[0m\x1b[{_MARKS[category][2]}m")
            last = category
        out.append(character)
    return "".join(out) + "\x1b[0m"


def _legend(cells: Cells, marks: dict[Category, str], *, color: bool) -> list[str]:
    lines: list[str] = []
    for category in reversed(Category):
        if length := cells.totals[category]:
            mark = _colored([category], [marks[category]], color=color)
            lines.append(f"  {mark}  {TITLES[category]:42} {quantity(length, 'byte'):>21}")
    return lines


def _regions(cells: Cells, *, color: bool) -> list[str]:
    lines = [f"{'offset':>15}  {'bytes':>13}  reason"]
    for region in cells.regions[:REGIONS_MAX]:
        line = f"{region.start:>15,}  {region.end - region.start:>13,}  {region.reason}"
        lines.append(red(line, color=color and region.category is not Category.TORN))
    more = cells.region_count - REGIONS_MAX
    if more > 0:
        lines.append(f"{'':>15}  and {quantity(more, 'region')} more; `cordwood fragments` lists them")
    return lines


def _fit(title: str, *, unicode: bool) -> str:
    """Returns the title without characters that would move the cursor or cannot be displayed."""
    shown = "".join(character if character.isprintable() else "?" for character in title)
    return shown if unicode else shown.encode("ascii", "replace").decode("ascii")
