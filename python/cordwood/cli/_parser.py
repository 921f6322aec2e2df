"""Defines the command-line parser."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn

import cordwood
from cordwood._remote import is_url
from cordwood.cli._messages import Status, complain, guess
from cordwood.cli._terminal import terminal_width

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
    # Without this formatter, argparse would look up the terminal's width with `shutil` for each option added.
    formatter_class = partial(_Formatter, width=terminal_width() - 2)
    parser = _Parser(
        prog="cordwood",
        description="Read, check, rescue and write logs in the LevelDB log format.",
        epilog=EPILOG,
        formatter_class=formatter_class,
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
            formatter_class=formatter_class,
            allow_abbrev=False,
        )
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Formats help that fits in a terminal.

    The paragraphs of a description are wrapped. Indented paragraphs are examples and are left as they are.
    """

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
            # In this package, `map` is a verb's module, so the built-in function is not used here.
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

    def error(self, message: str) -> NoReturn:
        """Reports an invalid command line in two lines and exits. By default, argparse prints the whole usage."""
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
    return f".{os.sep}{name}" if "://" in name and is_url(name) and os.path.lexists(name) else name
