"""From a log to its picture."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from cordwood._map import svg
from cordwood._map.cells import Cells, category_of, cells_of
from cordwood._native import fragments
from cordwood._text import quantity
from cordwood.types import Fragment, LogFormat

if TYPE_CHECKING:
    from cordwood.typing import Source


class Picture(NamedTuple):
    """The picture of a log, as a part of a document."""

    cells: Cells
    drawing: svg.Drawing
    fragment_count: int
    """Fragments that are drawn individually; 0 if there are too many."""


def picture_of(source: Callable[[], Source], log: dict[str, Any], title: str, fragments_max: int) -> Picture:
    """The picture of a log. If there are more fragments than `fragments_max`, cells are drawn in their place.

    Args:
        source: Opens the log, as often as it is called.
        log: The options that say which log it is, as far as they are given.
        title: The heading above it.
        fragments_max: How many fragments are drawn individually.
    """
    cells = cells_of(source(), log, svg.COLUMNS, svg.ROW_COUNT_MAX)
    boxes = _fragment_boxes(source, cells.log, fragments_max)
    count = len(boxes or [])
    if boxes is None:
        boxes = list(svg.boxes_of_cells(cells, svg.COLUMNS))
    row_len = cells.cell_len * svg.COLUMNS
    return Picture(cells, svg.draw(cells, boxes, title=title, row_len=row_len), count)


def _fragment_boxes(source: Callable[[], Source], log: LogFormat, fragments_max: int) -> list[svg.Box] | None:
    """A box for each fragment; `None` if there are too many."""
    boxes = [
        svg.Box(
            fragment.offset,
            fragment.end_offset,
            category_of(fragment.kind, fragment.reason, fragment.severity),
            _title(fragment),
        )
        for fragment in islice(fragments(source(), **log._asdict()), fragments_max + 1)
    ]
    return boxes if len(boxes) <= fragments_max else None


def _title(fragment: Fragment) -> str:
    """The text shown while the pointer rests on a fragment."""
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
    return "\n".join(lines)
