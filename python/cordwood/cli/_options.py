"""Defines the options that several verbs share, and parses their values."""

from __future__ import annotations

import argparse
import os
import re
from typing import Any, get_args

import cordwood
from cordwood._inputs.each import THREADS_MAX
from cordwood._native import leave_out_salvaged
from cordwood.cli._stdin import is_piped
from cordwood.typing import DialectName


def rare(parser: Any) -> argparse.ArgumentParser:
    """Returns the group of options that few people need, which is shown last in a verb's help."""
    group: argparse.ArgumentParser = parser.rare
    return group


def add_quiet_argument(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Adds `-q`, for verbs that may take a long time. `more` names other lines that `-q` suppresses."""
    parser.add_argument("-q", "--quiet", action="store_true", help=f"no progress bar{more}")


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds `--json` and `-q`, for verbs that print a report about each log."""
    add_options(parser, "--json")
    add_quiet_argument(parser, ", no lines for logs without damage, and no totals: silence is success")


def add_source_arguments(
    parser: argparse.ArgumentParser,
    what: str = "a log; a directory, for all logs in it; a pattern such as '*.log'; a URL; - for stdin",
    *,
    may_be_piped: bool = False,
) -> None:
    """Adds the sources of a verb that accepts several. With `may_be_piped`, the `-` for a pipe is optional."""
    if may_be_piped:
        parser.add_argument("sources", nargs="*", action=_Sources, metavar="SOURCE", help=what)
    else:
        parser.add_argument("sources", nargs="+", metavar="SOURCE", help=what)


class _Sources(argparse.Action):
    """Makes stdin the source if no source is named and stdin is a pipe or a file.

    On a terminal, a source is required. Otherwise, the command would wait for input.
    """

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any) -> None:
        if not values and not is_piped():
            parser.error(f"the following arguments are required: {self.metavar}")
        setattr(namespace, self.dest, values or ["-"])


def add_dialect_argument(
    parser: argparse.ArgumentParser,
    what: str = "how the log is laid out; detected from its content if not given",
    which: str = "the number of the log, if neither the file's name nor its first fragment states it",
) -> None:
    """Adds `--dialect` and `--log-number`."""
    options = rare(parser)
    options.add_argument("--dialect", choices=get_args(DialectName), metavar="NAME", help=f"{what}; one of %(choices)s")
    options.add_argument("--log-number", type=_log_number, metavar="NUMBER", help=which)


def _log_number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise argparse.ArgumentTypeError(f"not the number of a log: {text!r}")
    # A header has room for only the low half of the number.
    return int(text) & 0xFFFFFFFF


def reader_of(options: argparse.Namespace, source: Any, end: int | None) -> cordwood.Reader:
    """Returns a reader with these options that reads `source` up to the file offset `end`.

    With `--on-corruption skip`, the reader drops the records after damage in the same block, as LevelDB does, and
    counts them.
    """
    by_rule = options.on_corruption == "skip"
    policy: Any = "salvage" if by_rule else options.on_corruption
    reader = cordwood.Reader(source, on_corruption=policy, start=options.start, end=end, **options.log)
    if by_rule:
        leave_out_salvaged(reader)
    return reader


BYTES_HELP = (
    "in bytes: 4096, 0x1000 or, as reports print it, 4,096; with K, M, G or T (also 64KiB, ...), in powers of 1024"
)
"""The help text on how to write offsets and lengths on the command line."""


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that control how a log is read."""
    add_dialect_argument(parser)
    add_options(parser, "--on-corruption", "--start", "--end", "--record-len-max")


def add_options(parser: argparse.ArgumentParser, *names: str, **changed: Any) -> None:
    """Adds options from `_OPTIONS`. `changed` overrides their `add_argument` arguments."""
    for name in names:
        group = rare(parser) if name in _RARE else parser
        group.add_argument(name, **(_OPTIONS[name] | changed))


def _thread_count(text: str) -> int:
    count = int(text) if re.fullmatch(r"[0-9]{1,3}", text) else 0
    if not 1 <= count <= THREADS_MAX:
        raise argparse.ArgumentTypeError(f"a number of threads from 1 to {THREADS_MAX} is needed, not {text!r}")
    return count


def processor_count() -> int:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, THREADS_MAX)


FILE_LEN_MAX = (1 << 63) - 1
"""The maximum length of a file."""


def parse_len(text: str) -> int:
    """Parses a number of bytes: `10`, `0xa`, `97,150`, `64k`, `64KiB`, `1G`. The units are powers of 1024."""
    match = re.fullmatch(
        r"(?:(0x[0-9a-f]+)|(\d+|\d{1,3}(?:,\d{3})+)\s*(?:([kmgt])(?:ib)?|b)?)", text.strip(), re.ASCII | re.IGNORECASE
    )
    if match is None:
        raise argparse.ArgumentTypeError(f"not a number of bytes: {text!r} (try 4096, 0x1000, 64KiB or 1GiB)")
    hexadecimal, number, unit = match.groups()
    length = int(hexadecimal, 16) if hexadecimal else int(number.replace(",", ""))
    if unit:
        length <<= 10 * (1 + "kmgt".index(unit.lower()))
    if length > FILE_LEN_MAX:
        raise argparse.ArgumentTypeError(f"more bytes than a file can have: {text!r}")
    return length


RECORD_LEN_MAX_HELP = (
    "a value above the default also raises the limit of the total length of the records of a compressed log "
    "(default: 1GiB)"
)

_OPTIONS: dict[str, dict[str, Any]] = {
    "--json": {"action": "store_true", "help": "one JSON object for each log, and one with the totals of several"},
    "--start": {
        "type": parse_len,
        "default": 0,
        "metavar": "OFFSET",
        "help": f"only records that start at this file offset or after it, {BYTES_HELP}",
    },
    "--end": {"type": parse_len, "metavar": "OFFSET", "help": "only records that start before this file offset"},
    "--record-len-max": {
        "type": parse_len,
        "default": 1 << 30,
        "metavar": "LENGTH",
        "help": f"leave out a longer record; {RECORD_LEN_MAX_HELP}",
    },
    "--on-corruption": {
        "choices": ("skip", "stop", "salvage"),
        "default": "skip",
        "help": "after damage, continue at the next block, end there, or also look for valid records in the same block "
        "(default: %(default)s)",
    },
    "--strict": {
        "action": "store_true",
        "help": "exit status 3 also if a log ends with an incomplete record, or has zeros before more records or at "
        "its end: for files that must be complete, such as exports and copies",
    },
    "--threads": {
        "type": _thread_count,
        "default": processor_count(),
        "metavar": "COUNT",
        "help": "about how many threads to use, across files and within long ones (default: one for each core)",
    },
}
"""The `add_argument` arguments for options that several verbs share."""

_RARE = frozenset(("--record-len-max", "--threads"))
"""The options that few people need."""
