"""Draw logs block by block, and mark the damage.

Each row is one block, or several blocks if the log is long. Damage is marked in the row and the margin, and listed
below. The exit status is 3 if there is damage. Terminals get colours, unless NO_COLOR is set or TERM is "dumb".
"""

from __future__ import annotations

import argparse
import os
import sys

from cordwood._inputs.files import is_one_file
from cordwood._inputs.input import Input
from cordwood._map.cells import Category, Cells, cells_of, damage_summary
from cordwood._map.svg import FRAGMENTS_MAX, Picture, document, picture_of
from cordwood._summary import zeros_at_end, zeros_inside_text
from cordwood._text import display_name
from cordwood.cli import _options
from cordwood.cli._messages import Status, complain
from cordwood.cli._output import check_new_file, new_file
from cordwood.cli._reports import report_other_log, salvaged_text
from cordwood.cli._sources import for_each_source, inputs_of, reopenable
from cordwood.cli._terminal import has_color, print_folded, terminal_width
from cordwood.cli.map import terminal

EXAMPLES = """\
  cordwood map 000003.log
  cordwood map database/ | less -R
  cordwood map --svg 000003.svg 000003.log
  cordwood map --svg database.svg database/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `map`."""
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
    if options.overwrite and options.svg is None:
        raise ValueError("--overwrite goes with --svg")
    files = inputs_of(options.sources)
    if options.svg is not None:
        check_new_file(options.svg, "picture", files, overwrite=options.overwrite)
    is_one = is_one_file(options.sources)
    is_first = True
    pictures: list[Picture] = []

    def draw(file: Input) -> Status:
        nonlocal is_first
        title = display_name(file.name)
        with reopenable(file.name) as source:
            if options.svg is None:
                columns = terminal.cells_per_row(terminal_width())
                cells = cells_of(source.open(), options.log, columns, terminal.ROW_COUNT_MAX)
                is_unicode = sys.stdout.encoding.lower().replace("-", "") == "utf8"
                lines = terminal.draw(cells, title=title, columns=columns, color=has_color(), unicode=is_unicode)
                print("\n".join(lines if is_first else ["", *lines]))
                for text in _notes(cells):
                    print_folded(text)
            else:
                heading = os.path.basename(title) if is_one else title
                fragments_max = FRAGMENTS_MAX - sum(picture.fragment_count for picture in pictures)
                picture = picture_of(source.open, options.log, heading, fragments_max)
                pictures.append(picture)
                cells = picture.cells
                damage = [damage_summary(cells)] if cells.is_damaged else []
                for text in damage + _notes(cells):
                    complain(f"{title}: {text}")
        is_first = False
        report_other_log(file.name, cells.log.log_number, cells.other_log_number, options)
        return Status.DAMAGE if cells.is_damaged else Status.CLEAN

    status = for_each_source(options, draw, files=files).status
    if options.svg is not None and pictures:
        with new_file(options.svg, files, overwrite=options.overwrite) as output:
            output.write(document(pictures).encode("utf-8", "backslashreplace"))
    return status


def _notes(cells: Cells) -> list[str]:
    """Returns the notes about records that follow damage, and about zeros."""
    notes = [salvaged_text(cells.salvaged_count)] if cells.salvaged_count else []
    if cells.zeros_inside_len:
        notes.append(zeros_inside_text(cells.zeros_inside_len))
    follow_damage = cells.zeros_offset is not None and cells.damage_end >= cells.zeros_offset
    has_records = cells.totals[Category.WHOLE] + cells.totals[Category.PART] > 0
    zeros = zeros_at_end(cells.zeros_offset, cells.file_len, has_records=has_records, follow_damage=follow_damage)
    return [*notes, str(zeros)] if zeros else notes
