"""Draw logs block by block, and mark the damage.

A row is one block, or several blocks of a long log. Damage is marked in the row and in the margin, and listed below.
Exit status 3 if there is damage. A terminal gets colours, unless NO_COLOR is set or TERM is "dumb".
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import cordwood
from cordwood._inputs.files import is_one_file
from cordwood._inputs.input import Input
from cordwood._map.cells import Cells, cells_of, damage_summary
from cordwood._summary import zeros_at_end, zeros_inside_text
from cordwood.cli import _options
from cordwood.cli._messages import Status, complain, display_name
from cordwood.cli._new_files import check_new_file, new_file
from cordwood.cli._reopenable import reopenable
from cordwood.cli._reports import report_other_log, salvaged_text
from cordwood.cli._sources import for_each_source, inputs_of
from cordwood.cli._terminal import has_color, print_folded, terminal_width
from cordwood.cli.map import terminal

if TYPE_CHECKING:
    from cordwood.typing import Source

EXAMPLES = """\
  cordwood map 000003.log
  cordwood map database/ | less -R
  cordwood map --svg 000003.svg 000003.log
  cordwood map --svg database.svg database/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `map`."""
    _options.add_source_arguments(parser)
    _options.add_dialect_argument(parser)
    parser.add_argument(
        "--svg",
        metavar="FILE",
        help="write the pictures to this new file, for a browser, which shows the kind and the place of "
        "each fragment; - for stdout",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="with --svg: replace an existing file, unless it is a log"
    )


def run(options: argparse.Namespace) -> Status:
    """Draws each source."""
    if options.svg is not None:
        return _draw_svg(options)
    if options.overwrite:
        raise ValueError("--overwrite goes with --svg")
    drawn_count = 0

    def draw(name: str, source: Callable[[], Source]) -> Cells:
        nonlocal drawn_count
        columns = terminal.cells_per_row(terminal_width())
        cells = cells_of(source(), _options.log_options(options), columns, terminal.ROW_COUNT_MAX)
        if drawn_count:
            print()
        drawn_count += 1
        _print_text(name, cells, columns)
        return cells

    return _draw_each(options, inputs_of(options.sources), draw)


def _draw_each(
    options: argparse.Namespace, files: Sequence[Input], draw: Callable[[str, Callable[[], Source]], Cells]
) -> Status:
    def work(file: Input) -> Status:
        with reopenable(file.name) as source:
            cells = draw(file.name, source.open)
        report_other_log(file.name, cells.log.log_number, cells.other_log_number, options)
        return Status.DAMAGE if cells.is_damaged else Status.CLEAN

    return for_each_source(options, work, files=files).status


def _draw_svg(options: argparse.Namespace) -> Status:
    """Draws the pictures of all sources into one document."""
    from cordwood._map import svg
    from cordwood._map.drawing import picture_of

    files = inputs_of(options.sources)
    check_new_file(options.svg, "picture", files, overwrite=options.overwrite)
    is_one = is_one_file(options.sources)
    drawings: list[svg.Drawing] = []
    fragments_max = svg.FRAGMENTS_MAX

    def draw(name: str, source: Callable[[], Source]) -> Cells:
        nonlocal fragments_max
        title = display_name(name)
        heading = os.path.basename(title) if is_one else title
        picture = picture_of(source, _options.log_options(options), heading, fragments_max)
        fragments_max -= picture.fragment_count
        drawings.append(picture.drawing)
        if picture.cells.is_damaged:
            complain(f"{title}: {damage_summary(picture.cells)}")
        for text in _notes(picture.cells):
            complain(f"{title}: {text}")
        return picture.cells

    status = _draw_each(options, files, draw)
    if drawings:
        with new_file(options.svg, files, overwrite=options.overwrite) as output:
            output.write(svg.document(drawings).encode("utf-8", "backslashreplace"))
    return status


def _print_text(name: str, cells: Cells, columns: int) -> None:
    lines = terminal.draw(
        cells,
        title=display_name(name),
        dialect=cells.log.dialect,
        columns=columns,
        color=has_color(),
        unicode=sys.stdout.encoding.lower().replace("-", "") == "utf8",
    )
    print("\n".join(lines))
    for text in _notes(cells):
        print_folded(text)


def _notes(cells: Cells) -> list[str]:
    """The text about the records after damage, and about zeros."""
    notes = [salvaged_text(cells.salvaged_count)] if cells.salvaged_count else []
    if cells.zeros_inside_len:
        notes.append(zeros_inside_text(cells.zeros_inside_len))
    end = cordwood.Outcome(kind=cordwood.OutcomeKind.CLEAN, offset=cells.file_len, zeros_offset=cells.zeros_offset)
    zeros = zeros_at_end(end, has_records=cells.has_records)
    return [*notes, str(zeros)] if zeros else notes
