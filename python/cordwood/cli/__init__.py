"""The command `cordwood`: work with whole logs, at the terminal and in scripts.

Each verb is a module of this package, imported only when it is used:

* its docstring is the verb's help: the first line in the list of all verbs, all of it in the verb's own,
* `EXAMPLES` is printed below it,
* `add_arguments` defines its arguments, `run` does the work and returns the exit status.

Data goes to stdout, messages go to stderr. The exit statuses are those of `Status`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import cordwood
from cordwood._remote import is_url
from cordwood.cli import _messages
from cordwood.cli._messages import Failure, Status, complain, guess
from cordwood.cli._output import drop_failed, drop_pending, open_streams
from cordwood.cli._terminal import terminal_width

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

__all__ = ["VERBS", "main", "make_parser"]

VERBS = (
    "info",
    "cat",
    "stat",
    "verify",
    "map",
    "fragments",
    "evidence",
    "salvage",
    "pack",
    "follow",
    "write",
    "convert",
    "split",
    "completion",
)

LOG_OPTIONS = ("dialect", "log_number", "record_len_max")
"""The options of the same names of functions that read or write a log. Those that a verb has are in `options.log`."""

SYNONYMS: dict[str, tuple[str, ...]] = {
    "salvage": ("fix", "recover", "repair", "rescue"),
    "verify": ("check", "fsck", "test", "validate"),
    "cat": ("dump", "print", "read"),
    "convert": ("export", "to-csv", "to-json", "to-parquet"),
    "info": ("inspect", "ls", "show"),
    "follow": ("tail", "watch"),
    "pack": ("compress",),
    "evidence": ("report",),
}
"""Words that other tools have for a verb."""

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
    """The parser of a command line that knows some of the verbs. Each costs an import."""
    # Otherwise, argparse would look up the width with `shutil`, for each option that is added.
    formatter_class = partial(_Formatter, width=terminal_width() - 2)
    parser = _Parser(
        prog="cordwood",
        description="Read, check, rescue and write logs in the LevelDB log format.",
        epilog=EPILOG,
        formatter_class=formatter_class,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"cordwood {cordwood.__version__}")
    # Without `prog`, argparse would format the usage here, and import modules that only help needs.
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
    """Help that fits in a terminal.

    The paragraphs of a description are folded, but indented ones stay as they are: examples.
    """

    def _split_lines(self, text: str, width: int) -> list[str]:
        import textwrap

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap

        wrapper = textwrap.TextWrapper(width, indent, indent, break_on_hyphens=False)
        paragraphs = text.strip().split("\n\n")
        return "\n\n".join(each if "\n  " in each else wrapper.fill(each) for each in paragraphs)


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


class _Parser(argparse.ArgumentParser):
    # Options that a verb does not know are reported by the verb, with its own usage.
    is_verb = True

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - one signature for all overloads
        self, args: Any = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        if self.is_verb and args is not None:
            self._check_options(args)
        options, unknown = super().parse_known_args(args, namespace)
        if not self.is_verb:
            return options, unknown
        if hasattr(options, "sources"):
            if not any(_is_option(word) for word in unknown):
                # To argparse, the names of sources end at the first option that follows one of them.
                destination = getattr(options, "destination", None)
                options.sources = [*options.sources, *([] if destination is None else [destination]), *unknown]
                if destination is not None:
                    options.destination = options.sources.pop()
                unknown = []
            # In this package, `map` is the module of a verb, not the function of Python.
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
        """Reports the options that the verb does not have: argparse would report a missing argument instead."""
        words = words[: words.index("--")] if "--" in words else words
        known = [option for option in self._option_string_actions if option.startswith("--")]
        unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
        if unknown:
            guesses = [guess(word.partition("=")[0], known) for word in unknown]
            self.error(f"unrecognized arguments: {' '.join(unknown)}{guesses[0]}")

    def error(self, message: str) -> NoReturn:
        """Reports a wrong command line in two lines, and exits: argparse would print the whole usage."""
        complain(message)
        self.exit(Status.USAGE, f"  see: {self.prog} --help\n")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        # argparse does not report that --help or --version cannot be written.
        if message and file is sys.stdout:
            print(message, end="", flush=True)
        else:
            super()._print_message(message, file)


def _path_before_url(name: str) -> str:
    """The name of a source or destination, but `./` and the name for a file whose path looks like a URL.

    Otherwise, a log from somebody else's archive, in a directory named `https:`, would be requested from a network.
    """
    return f".{os.sep}{name}" if "://" in name and is_url(name) and os.path.lexists(name) else name


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status. A wrong command line raises `SystemExit`, as `--help` does.

    Args:
        arguments: The arguments of the command, without `cordwood` itself. Default: `sys.argv[1:]`.
    """
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        drop_pending()
        return Status.INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    first = ""
    try:
        open_streams()
        if not arguments:
            # The command had no effect, and a script that relies on this is wrong.
            make_parser().print_help(sys.stderr)
            return Status.USAGE
        if arguments[0] == "help":
            arguments = [*(word for word in arguments if word != "help"), "--help"]
        elif arguments[0] not in VERBS and _is_file(arguments[0]):
            arguments = ["info", *arguments]
        first = arguments[0]
        # Only one verb is imported: each takes a few milliseconds.
        verbs = [first] if first in VERBS else VERBS if first in {"-h", "--help"} else ()
        parser = make_parser(verbs)
        if not verbs and first not in {"-V", "--version"}:
            parser.error(f"there is no verb {first!r}{_verb_like(first)}")
        options = parser.parse_args(arguments)
        # For a page that states how it was made.
        options.command = ["cordwood", *arguments]
        _messages.is_quiet = getattr(options, "quiet", False)
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does.
        drop_failed()
        return Status.BROKEN_PIPE
    # A package of one of the extras is not installed, or cannot be imported: the message names it.
    except (OSError, MemoryError, cordwood.CordwoodError, ImportError, Failure) as error:
        complain(error)
        drop_failed()
        return Status.FAILURE
    except ValueError as error:
        # Options that make no sense together, such as an end before the start.
        complain(error)
        print(f"  see: cordwood {first} --help", file=sys.stderr)
        return Status.USAGE
    return status


def _is_file(word: str) -> bool:
    """Whether the first word of a command line is the name of a file, directory or pattern, or a URL."""
    return not word.startswith("-") and (any(sign in word for sign in "/\\.*?[") or os.path.lexists(word))


def _verb_like(word: str) -> str:
    """The verb that may have been meant, as the end of a message."""
    if _is_option(word):
        return "; options come after the verb"
    verb = next((verb for verb, words in SYNONYMS.items() if word in words), None)
    return f"; did you mean {verb}?" if verb else guess(word, VERBS)
