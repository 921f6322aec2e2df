"""Defines the command line: the parser, and the options that several verbs share. Creates readers from them."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn, get_args

import cordwood
from cordwood._inputs.each import THREADS_MAX
from cordwood._native import leave_out_salvaged
from cordwood._text import is_url
from cordwood.cli._messages import Status, complain, guess
from cordwood.cli._stdin import is_piped
from cordwood.cli._terminal import WIDTH, terminal_width
from cordwood.typing import DialectName

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


VERBS = (
    *("info", "cat", "stat", "verify", "map", "fragments", "evidence", "salvage"),
    *("pack", "follow", "write", "convert", "split", "completion"),
)

LOG_OPTIONS = ("dialect", "log_number", "record_len_max")
"""The options for functions that read or write a log. `options.log` contains the ones that the verb accepts."""

EPILOG = """\
also:
  cordwood help VERB  describes a verb, as `cordwood VERB --help` does
  cordwood FILE       describes a file or directory, as `cordwood info` does

exit status:
  0  success, and no damage
  1  failure: a file is missing or is not a log, a disk is full; also if one
     of several files failed, even if others are damaged
  2  the command line is wrong
  3  success, but damage was found or data was left out: stderr or the report
     has the details; an incomplete record at the end, as a crash leaves it, is
     reported, but is not damage
  130 after Ctrl-C; 141 if the program that reads stdout has closed it

examples:
  cordwood info database/
  cordwood verify *.log
  cordwood cat 000003.log | less
  cordwood salvage damaged.log clean.log
"""


def make_parser(verbs: Iterable[str] = VERBS) -> argparse.ArgumentParser:
    """Returns a parser for some of the verbs, importing a module for each one."""
    parser = _Parser(
        prog="cordwood",
        description="Read, check, rescue and write logs in the LevelDB log format.",
        epilog=EPILOG,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"cordwood {cordwood.__version__}")
    # Without `prog`, argparse would format the usage here and import modules that only the help needs.
    subparsers = parser.add_subparsers(title="verbs", metavar="VERB", required=True, prog=parser.prog)
    parser.is_verb = False
    for verb in verbs:
        module = importlib.import_module(f"cordwood.cli.{verb}")
        description = module.__doc__ or ""
        subparser = subparsers.add_parser(
            verb,
            help=description.partition("\n")[0],
            description=description,
            epilog=f"examples:\n{module.EXAMPLES}",
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Formats help text to fit in a terminal.

    The paragraphs of a description are wrapped. Indented paragraphs are examples and are left as they are.
    """

    # argparse creates a formatter for each option added, but only `format_help` needs the terminal's width.
    def __init__(self, prog: str, width: int = WIDTH) -> None:
        super().__init__(prog, width=width)

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap

        wrapper = textwrap.TextWrapper(width, indent, indent, break_on_hyphens=False)
        paragraphs = text.strip().split("\n\n")
        return "\n\n".join(each if "\n  " in each else wrapper.fill(each) for each in paragraphs)


def is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


class _Parser(argparse.ArgumentParser):
    # A verb's parser reports unknown options itself, with the verb's usage.
    is_verb = True

    @cached_property
    def rare(self) -> Any:
        """Returns the group for rarely used options, which is always the last group."""
        return self.add_argument_group("rare options")

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - one signature for all overloads
        self, args: Any = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        if self.is_verb and args is not None:
            self._check_options(args)
        options, unknown = super().parse_known_args(args, namespace)
        if not self.is_verb:
            return options, unknown
        if hasattr(options, "sources"):
            if not any(is_option(word) for word in unknown):
                # argparse ends the list of sources at the first option after a source.
                destination = getattr(options, "destination", None)
                options.sources = [*options.sources, *([] if destination is None else [destination]), *unknown]
                if destination is not None:
                    options.destination = options.sources.pop()
                unknown = []
            # The built-in `map` isn't used, because `map` is also the name of a verb's module in this package.
            options.sources = [_path_before_url(name) for name in options.sources]
        for name in ("source", "destination"):
            if (value := getattr(options, name, None)) is not None:
                setattr(options, name, _path_before_url(value))
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        if getattr(options, "end", None) is not None and options.end < options.start:
            self.error(f"--end {options.end} is before --start {options.start}")
        options.log = {name: getattr(options, name) for name in LOG_OPTIONS if name in options}
        return options, unknown

    def _check_options(self, words: Sequence[str]) -> None:
        """Reports unknown options. Otherwise, argparse would report a missing argument."""
        words = words[: words.index("--")] if "--" in words else words
        known = [option for option in self._option_string_actions if option.startswith("--")]
        unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
        if unknown:
            guesses = [guess(word.partition("=")[0], known) for word in unknown]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{guesses[0]}")

    def format_help(self) -> str:
        self.formatter_class = partial(_Formatter, width=terminal_width() - 2)
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Reports an invalid command line in two lines and exits. By default, argparse prints the full usage."""
        complain(message)
        self.exit(Status.USAGE, f"  see: {self.prog} --help\n")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        # argparse ignores errors when it writes --help or --version.
        if message and file is sys.stdout:
            print(message, end="", flush=True)
        else:
            super()._print_message(message, file)


def _path_before_url(name: str) -> str:
    """Returns the name of a source or destination. Puts `./` before an existing path that looks like a URL.

    An untrusted archive may contain a directory named `https:`. Without the `./`, the path of a log in that directory
    would cause a network request.
    """
    return f".{os.sep}{name}" if is_url(name) and os.path.lexists(name) else name


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

    If stdin is a terminal, a source is required. Otherwise, the command would wait for input.
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


def add_selection_arguments(parser: argparse.ArgumentParser, row: str, column: str) -> None:
    """Adds `--limit` and `--columns`. `row` and `column` are the words used in their help texts."""
    parser.add_argument(
        "-n",
        "--limit",
        type=_count,
        metavar="COUNT",
        help=f"stop reading after this many {row}s; the rest is not checked for damage",
    )
    parser.add_argument(
        "--columns", type=_names, metavar="NAME,...", help=f"only these {column}, in this order, separated by commas"
    )


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or not int(text):
        raise argparse.ArgumentTypeError(f"a number of at least 1 is needed, not {text!r}")
    return int(text)


def _names(text: str) -> list[str]:
    names = [name.strip(" ") for name in text.split(",")]
    if "" in names:
        raise argparse.ArgumentTypeError(f"names separated by commas are needed, not {text!r}")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise argparse.ArgumentTypeError(f"it names {twice!r} twice")
    return names


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
