"""List the fragments of logs, with their faults.

Each fragment gets a line, and so does each part of a block that is not a fragment. Together, the lines cover the whole
file. If the reader skips a line's bytes, the line ends with the reason. The payload length and the checksum come from
the header, even if they are wrong. The checksum is shown without its mask. --json adds the computed checksum and other
fields. The exit status is 3 if there is damage.

With --bytes, the skipped bytes are also written to a directory. Each skipped region gets a file, unless it consists of
zeros. With --damaged, only damaged regions get a file. Each file's name consists of the log's name and the region's
start and end offsets.
"""

from __future__ import annotations

import argparse
import os

import cordwood
from cordwood._inputs.destinations import check_new_directory, make_directory
from cordwood._inputs.input import Input
from cordwood._text import display_name, escaped, quantity, source_name
from cordwood.cli import _options
from cordwood.cli._messages import SourceFailure, Status, complain
from cordwood.cli._output import new_file, print_json
from cordwood.cli._reports import report_other_log, salvaged_text
from cordwood.cli._sources import Reopenable, for_each_source, reopenable
from cordwood.cli._terminal import red
from cordwood.types import Fragment, FragmentKind, Reason, Severity, SkippedRegion

EXAMPLES = """\
  cordwood fragments 000003.log | less
  cordwood fragments --damaged database/
  cordwood fragments --bytes lost/ --damaged database/
  cordwood fragments --json *.log | jq -c 'select(.severity == "corruption")'
"""

HEADING = "       offset  bytes kind              payload checksum reason"

PIECE_LEN = 1 << 20
"""The maximum number of skipped bytes to copy at a time."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `fragments`."""
    _options.add_source_arguments(parser, may_be_piped=True)
    _options.add_dialect_argument(parser)
    parser.add_argument("--damaged", action="store_true", help="only damaged entries")
    parser.add_argument(
        "--bytes",
        metavar="DIRECTORY",
        help="also write the bytes of each skipped region to a new file in this directory",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each fragment")


def run(options: argparse.Namespace) -> Status:
    """Lists the fragments of each source."""
    directory: str | None = options.bytes
    if directory is not None:
        check_new_directory(directory, options.sources)
    written: list[SkippedRegion] = []

    def list_fragments(file: Input) -> Status:
        name = file.name
        damaged_len = 0
        regions: list[SkippedRegion] = []
        with reopenable(name) as source:
            fragments = cordwood.fragments(source.open(), **options.log)
            # A file that cannot be read gets no heading.
            has_heading = options.json
            for fragment in fragments:
                is_damage = fragment.severity == Severity.CORRUPTION
                if is_damage:
                    damaged_len += fragment.length
                elif options.damaged:
                    continue
                if not has_heading:
                    print(f"{display_name(name)}:\n{HEADING}")
                    has_heading = True
                if options.json:
                    fields = {field: getattr(fragment, field) for field in _JSON_FIELDS}
                    print_json({"source": source_name(name), **fields})
                else:
                    line = _line(fragment)
                    print(red(line) if is_damage else line)
                if directory is not None:
                    _add_to(regions, fragment)
            if not (has_heading or options.damaged):
                print(f"{display_name(name)}:\n{HEADING}")
            _, own, _, other, salvaged_count = fragments.found
            report_other_log(name, own, other, options)
            if damaged_len:
                rule = f"; {salvaged_text(salvaged_count)}" if salvaged_count else ""
                complain(f"{display_name(name)}: {quantity(damaged_len, 'byte')} damaged{rule}")
            for region in regions:
                _write(region, source, file, options.bytes)
                written.append(region)
        return Status.DAMAGE if damaged_len else Status.CLEAN

    status = for_each_source(options, list_fragments).status
    # After a failure, "0 files" is not printed, because it would suggest that there is no damage.
    if directory is not None and (written or status != Status.FAILURE):
        skipped = quantity(sum(region.length for region in written), "skipped byte")
        complain(f"{quantity(len(written), 'file')} with {skipped} written to {escaped(directory)}")
    return status


def _add_to(regions: list[SkippedRegion], fragment: Fragment) -> None:
    """Adds a fragment to the regions if it was skipped. Fragments of zeros are left out."""
    if fragment.reason in (None, Reason.ZERO_FILL):
        return
    start = fragment.offset
    if regions and regions[-1].end_offset == start and regions[-1].reason == fragment.reason:
        start = regions.pop().offset
    regions.append(SkippedRegion(start, fragment.end_offset, fragment.reason))


def _write(region: SkippedRegion, source: Reopenable, log: Input, directory: str) -> None:
    """Writes a region's bytes to a new file that has the same permissions as the log."""
    stem = os.path.join(directory, "stdin" if log.name == "-" else log.relative)
    path = f"{stem}.{region.offset}-{region.end_offset}"
    make_directory(os.path.dirname(path), log.name)
    try:
        with new_file(path, [log]) as file:
            for start in range(region.offset, region.end_offset, PIECE_LEN):
                file.write(source.read(start, min(region.end_offset, start + PIECE_LEN)))
    except FileExistsError:
        raise SourceFailure(f"{path} exists: name another directory") from None


def _line(fragment: Fragment) -> str:
    is_unknown = fragment.kind == FragmentKind.UNKNOWN
    kind = f"{fragment.kind} {fragment.type_byte}" if is_unknown else fragment.kind
    payload = "-" if fragment.payload_len is None else f"{fragment.payload_len:,}"
    checksum = "-" if fragment.stored_crc is None else f"{fragment.stored_crc:08x}"
    line = f"{fragment.offset:>13,} {fragment.length:>6,} {kind:17} {payload:>7} {checksum:8} {fragment.reason or ''}"
    return line.rstrip()


_JSON_FIELDS = (
    *("offset", "end_offset", "block", "kind", "type_byte", "payload_len", "stored_crc", "computed_crc"),
    *("log_number", "synced_offset", "reason", "severity", "record_offset", "salvaged"),
)
