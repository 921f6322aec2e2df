"""List the fragments of logs, with what is wrong with them.

One line for each fragment, and for each part of a block that is not one; together they cover the whole file. For what
the reader skips, the line ends with the reason. The payload length is the one that the header states, right or wrong,
and the checksum is that of the header, without its mask: --json also has the computed one, and more. Exit status 3 if
there is damage.
"""

from __future__ import annotations

import argparse
from itertools import chain, islice

import cordwood
from cordwood._text import quantity
from cordwood.cli._messages import Status, complain
from cordwood.cli._options import add_dialect_argument, add_source_arguments, log_options
from cordwood.cli._output import print_json
from cordwood.cli._reports import report_other_log, salvaged_text
from cordwood.cli._sources import display_name, reopenable, source_name
from cordwood.cli._tally import for_each_source
from cordwood.cli._terminal import red

EXAMPLES = """\
  cordwood fragments 000003.log | less
  cordwood fragments --damaged database/
  cordwood fragments --json *.log | jq -c 'select(.severity == "corruption")'
"""

HEADING = "       offset  bytes kind              payload checksum reason"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `fragments`."""
    add_source_arguments(parser)
    add_dialect_argument(parser, "how the log is laid out; detected from its content if not given")
    parser.add_argument("--damaged", action="store_true", help="only what is damaged")
    parser.add_argument("--json", action="store_true", help="one JSON object for each fragment")


def run(options: argparse.Namespace) -> Status:
    """Lists the fragments of each source."""

    def list_fragments(name: str) -> Status:
        damaged_len = 0
        with reopenable(name) as source:
            fragments = cordwood.fragments(source.open(), **log_options(options))
            # What cannot be read has no heading.
            first = list(islice(fragments, 1))
            has_heading = options.json
            if not (options.damaged or has_heading):
                _print_heading(name)
                has_heading = True
            for fragment in chain(first, fragments):
                is_damage = fragment.severity == cordwood.Severity.CORRUPTION
                if is_damage:
                    damaged_len += fragment.length
                elif options.damaged:
                    continue
                if not has_heading:
                    _print_heading(name)
                    has_heading = True
                if options.json:
                    _print_fields(name, fragment)
                else:
                    line = _line(fragment)
                    print(red(line) if is_damage else line)
            _, own, _, other, salvaged_count = fragments.found
            report_other_log(name, own, other, options)
        if not damaged_len:
            return Status.CLEAN
        rule = f"; {salvaged_text(salvaged_count)}" if salvaged_count else ""
        complain(f"{display_name(name)}: {quantity(damaged_len, 'byte')} damaged{rule}")
        return Status.DAMAGE

    return for_each_source(options.sources, list_fragments, dialect=options.dialect).status


def _print_heading(name: str) -> None:
    print(f"{display_name(name)}:")
    print(HEADING)


def _line(fragment: cordwood.Fragment) -> str:
    is_unknown = fragment.kind == cordwood.FragmentKind.UNKNOWN
    kind = f"{fragment.kind} {fragment.type_byte}" if is_unknown else fragment.kind
    payload = "-" if fragment.payload_len is None else f"{fragment.payload_len:,}"
    checksum = "-" if fragment.stored_crc is None else f"{fragment.stored_crc:08x}"
    line = f"{fragment.offset:>13,} {fragment.length:>6,} {kind:17} {payload:>7} {checksum:8} {fragment.reason or ''}"
    return line.rstrip()


def _print_fields(name: str, fragment: cordwood.Fragment) -> None:
    print_json(
        {
            "source": source_name(name),
            "offset": fragment.offset,
            "end_offset": fragment.end_offset,
            "block": fragment.block,
            "kind": fragment.kind,
            "type_byte": fragment.type_byte,
            "payload_len": fragment.payload_len,
            "stored_crc": fragment.stored_crc,
            "computed_crc": fragment.computed_crc,
            "log_number": fragment.log_number,
            "synced_offset": fragment.synced_offset,
            "reason": fragment.reason,
            "severity": fragment.severity,
            "record_offset": fragment.record_offset,
            "salvaged": fragment.salvaged,
        }
    )
