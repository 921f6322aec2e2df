"""Print a shell completion script.

For each completion, the script asks `cordwood completion` for the possible words.
"""

from __future__ import annotations

import argparse
from typing import Any

from cordwood.cli._options import VERBS, make_parser

EXAMPLES = """\
  cordwood completion bash > ~/.local/share/bash-completion/completions/cordwood
  cordwood completion zsh > ~/.zfunc/_cordwood        # in your $fpath
  cordwood completion fish > ~/.config/fish/completions/cordwood.fish
"""

# If no word starts with the text typed so far, the shell completes file names instead.
SCRIPTS = {
    "bash": """\
_cordwood() { COMPREPLY=($(cordwood completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}")); }
complete -o bashdefault -o default -F _cordwood cordwood""",
    "zsh": """\
#compdef cordwood
compadd -- $(cordwood completion words -- "${(@)words[2,CURRENT]}") || _files""",
    "fish": """\
complete -c cordwood -a '(cordwood completion words -- (commandline -opc)[2..] "$(commandline -ct)")'""",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `completion`."""
    parser.add_argument("script", choices=(*SCRIPTS, "words"), help="the shell; or words, to complete a command line")
    parser.add_argument("typed", nargs="*", metavar="WORD", help="the words of that command line, without cordwood")


def run(options: argparse.Namespace) -> int:
    """Prints the script or the words."""
    print(SCRIPTS.get(options.script) or "\n".join(_words(options.typed)))
    return 0


def _words(typed: list[str]) -> list[str]:
    """Returns the verbs, options or values that start with the last word."""
    *before, last = typed or [""]
    found: list[str] = []
    if before in ([], ["help"]):
        found = [*VERBS, "help"]
    elif before[0] in VERBS:
        # argparse lists a parser's arguments only in private attributes.
        parser: Any = make_parser(before[:1])
        [verbs] = parser._subparsers._group_actions  # noqa: SLF001
        for action in verbs.choices[before[0]]._actions:  # noqa: SLF001
            if last.startswith("-"):
                found += action.option_strings
            elif before[-1] in action.option_strings or not action.option_strings:
                found += action.choices or ()
    return [word for word in found if word.startswith(last)]
