"""The `cordwood` command, which works with whole logs at the terminal and in scripts.

Each verb is a module in this package, imported only when the verb is used:

* Its docstring is the help text of the verb. The first line also appears in the list of all verbs.
* `EXAMPLES` is printed below the help text.
* `add_arguments` defines the arguments. `run` does the work and returns the exit status.

Data goes to stdout, messages go to stderr. `Status` lists the exit statuses.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import cordwood
from cordwood.cli import _messages
from cordwood.cli._messages import Failure, Status, complain, guess
from cordwood.cli._options import VERBS, is_option, make_parser
from cordwood.cli._output import drop_failed, drop_pending, open_streams

__all__ = ["VERBS", "main", "make_parser"]

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
"""For each verb, the words that other tools use for the same task."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status. `--help` and invalid command lines raise `SystemExit`.

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
            # A command without arguments has no effect, so a script that runs it contains a mistake.
            make_parser().print_help(sys.stderr)
            return Status.USAGE
        if arguments[0] == "help":
            arguments = [*(word for word in arguments if word != "help"), "--help"]
        elif arguments[0] not in VERBS and _is_file(arguments[0]):
            arguments = ["info", *arguments]
        first = arguments[0]
        # Only one verb is imported, because each import takes a few milliseconds.
        verbs = [first] if first in VERBS else VERBS if first in {"-h", "--help"} else ()
        parser = make_parser(verbs)
        if not verbs and first not in {"-V", "--version"}:
            parser.error(f"there is no verb {first!r}{_verb_like(first)}")
        options = parser.parse_args(arguments)
        # The page that `evidence` writes contains the command.
        options.command = ["cordwood", *arguments]
        _messages.is_quiet = getattr(options, "quiet", False)
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The program reading the output has closed the pipe, as `head` does.
        drop_failed()
        return Status.BROKEN_PIPE
    # An `ImportError` means that a package from an extra is not installed or cannot be imported. Its message names the
    # package.
    except (OSError, MemoryError, cordwood.CordwoodError, ImportError, Failure) as error:
        complain(error)
        drop_failed()
        return Status.FAILURE
    except ValueError as error:
        # The options conflict, for example because the end is before the start.
        complain(error)
        print(f"  see: cordwood {first} --help", file=sys.stderr)
        return Status.USAGE
    return status


def _is_file(word: str) -> bool:
    """Checks whether the first word of a command line is a pattern, a URL, or the name of a file or directory."""
    return not word.startswith("-") and (any(sign in word for sign in "/\\.*?[") or os.path.lexists(word))


def _verb_like(word: str) -> str:
    """Returns the end of a message, suggesting a verb that the user may have meant."""
    if is_option(word):
        return "; options come after the verb"
    verb = next((verb for verb, words in SYNONYMS.items() if word in words), None)
    return f"; did you mean {verb}?" if verb else guess(word, VERBS)
