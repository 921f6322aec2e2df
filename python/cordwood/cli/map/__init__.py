"""Draw logs: their blocks in rows, what they hold, and where the damage is.

A row is one block, or several of a long log. Damage is marked in the row and in the margin, and listed below. Exit
status 3 if there is damage. A terminal gets colours, unless NO_COLOR is set or TERM is "dumb".
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

import cordwood
from cordwood._native import runs
from cordwood.cli._messages import Status, complain, quantity
from cordwood.cli._options import add_dialect_argument, add_source_arguments, complete_file_names, log_options
from cordwood.cli._output import check_destination, has_color, new_file, print_folded
from cordwood.cli._reopenable import reopenable
from cordwood.cli._reports import format_of, other_log, policy_note, report_other_log
from cordwood.cli._sources import display_name, for_each_source, one_source
from cordwood.cli.map import svg, terminal
from cordwood.cli.map.cells import Cells, category_of, damage_summary
from cordwood.types import BLOCK_LEN

if TYPE_CHECKING:
    from cordwood.typing import Source

EXAMPLES = """\
  cordwood map 000003.log
  cordwood map database/ | less -R
  cordwood map --svg 000003.svg 000003.log
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `map` takes."""
    add_source_arguments(parser)
    add_dialect_argument(parser, "how the log is laid out; detected from its content if not given")
    complete_file_names(
        parser.add_argument(
            "--svg",
            metavar="FILE",
            help="write the picture of one log to this new file, for a browser, where each fragment says what it is; "
            "- for stdout",
        )
    )
    parser.add_argument("--overwrite", action="store_true", help="with --svg: replace what is there")


def run(options: argparse.Namespace) -> Status:
    """Draws each source."""
    if options.svg is not None:
        source = one_source(options.sources, 'map --svg "$f.svg" "$f"')
        check_destination(source, options.svg, overwrite=options.overwrite)
    elif options.overwrite:
        raise ValueError("--overwrite goes with --svg")

    drawn_count = 0

    def draw(name: str) -> Status:
        nonlocal drawn_count
        with reopenable(name) as source:
            log = format_of(cordwood.Reader(source.open(), **log_options(options)))
            if options.svg is None:
                if drawn_count:
                    print()
                drawn_count += 1
                cells = _print_text(name, source.open, log)
            else:
                cells = _write_svg(name, source.open, log, options)
            # The first fragment is looked at before all are.
            if other_log(source.open(), log) is not None:
                other = cordwood.stat(source.open(), **log._asdict()).other_log_number
                report_other_log(name, log.log_number, other, options)
        return Status.DAMAGE if cells.is_damaged else Status.CLEAN

    return for_each_source(options.sources, draw, dialect=options.dialect).status


def _print_text(name: str, source: Callable[[], Source], log: cordwood.LogFormat) -> Cells:
    columns = terminal.cells_per_row(shutil.get_terminal_size().columns)
    cells, _ = _cells(source, log, columns, terminal.ROW_COUNT_MAX)
    lines = terminal.draw(
        cells,
        title=display_name(name),
        dialect=log.dialect,
        columns=columns,
        color=has_color(),
        unicode=sys.stdout.encoding.lower().replace("-", "") == "utf8",
    )
    print("\n".join(lines))
    if cells.is_damaged:
        print_folded(policy_note("salvage", 0))
    return cells


def _write_svg(name: str, source: Callable[[], Source], log: cordwood.LogFormat, options: argparse.Namespace) -> Cells:
    cells, row_len = _cells(source, log, svg.COLUMNS, svg.ROW_COUNT_MAX)
    boxes = _fragment_boxes(source, log)
    if boxes is None:
        boxes = list(svg.boxes_of_cells(cells, svg.COLUMNS))
    title = os.path.basename(display_name(name))  # noqa: PTH119 - pathlib is slow to import
    text = svg.draw(cells, boxes, title=title, dialect=log.dialect, row_len=row_len)
    with new_file(options.svg, overwrite=options.overwrite) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
    if cells.is_damaged:
        complain(f"{display_name(name)}: {damage_summary(cells)}; {policy_note('salvage', 0)}")
    return cells


def _cells(
    source: Callable[[], Source], log: cordwood.LogFormat, columns: int, row_count_max: int
) -> tuple[Cells, int]:
    """The cells of a log, and how many bytes a row of them is: a block; more of a long log, less of a short one."""

    def of(cell_len: int) -> Cells:
        return Cells.of(runs(source(), **log._asdict()), cell_len=cell_len, count_max=columns * row_count_max)

    cells = of(BLOCK_LEN // columns)
    if cells.file_len <= BLOCK_LEN // 2:
        short = max(-(-cells.file_len // columns), 1)
        cells = of(1 << (short - 1).bit_length())
    return cells, cells.cell_len * columns


def _fragment_boxes(source: Callable[[], Source], log: cordwood.LogFormat) -> list[svg.Box] | None:
    """Each fragment by itself; `None` if there are too many."""
    boxes = [
        svg.Box(
            fragment.offset,
            fragment.end_offset,
            category_of(fragment.kind, fragment.reason, fragment.severity),
            _title(fragment),
        )
        for fragment in islice(cordwood.fragments(source(), **log._asdict()), svg.FRAGMENTS_MAX + 1)
    ]
    return boxes if len(boxes) <= svg.FRAGMENTS_MAX else None


def _title(fragment: cordwood.Fragment) -> str:
    """The text that is shown while the pointer rests on a fragment."""
    lines = [f"{fragment.kind}, {quantity(len(fragment), 'byte')}, {fragment.offset:,} to {fragment.end_offset:,}"]
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
