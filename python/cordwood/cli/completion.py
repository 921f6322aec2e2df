"""Print a script that lets a shell complete the command line.

It needs the package shtab: `pip install 'cordwood[cli]'`.
"""

from __future__ import annotations

import argparse

from cordwood.cli._messages import Status, complain

EXAMPLES = """\
  cordwood completion bash > ~/.local/share/bash-completion/completions/cordwood
  cordwood completion zsh > ~/.zfunc/_cordwood        # a folder of your $fpath
  cordwood completion fish > ~/.config/fish/completions/cordwood.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `completion`."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(options: argparse.Namespace) -> Status:
    """Prints the script."""
    try:
        import shtab
    except ImportError:
        complain("completion needs the package shtab: pip install 'cordwood[cli]'")
        return Status.FAILURE
    from cordwood.cli import make_parser

    print(shtab.complete(make_parser(), shell=options.shell))
    return Status.CLEAN
