"""Writes the manual page of the command, from the help of its verbs.

`make dev` runs it. With `--check`, it only fails if the page is out of date.
"""

# ruff: noqa: SLF001 - argparse has no public way to its arguments.

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cordwood
from cordwood.cli import VERBS, make_parser

PAGE = Path(__file__).parent.parent / "python/cordwood.data/data/share/man/man1/cordwood.1"
"""maturin puts it into the wheels, and pip into the directory `share` of the environment, where `man` finds it."""


def main() -> None:
    new = page()
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text(encoding="utf-8") != new:
            sys.exit(f"{PAGE} is not up to date: run python tools/man.py")
    else:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(new, encoding="utf-8")


def page() -> str:
    parser = make_parser()
    # The types of argparse do not say what its actions have.
    subparsers: Any = parser._subparsers
    verbs: dict[str, argparse.ArgumentParser] = subparsers._group_actions[0].choices
    description = str(parser.description)
    lines = [
        f'.TH CORDWOOD 1 "" "cordwood {cordwood.__version__}"',
        *section("NAME"),
        rf"cordwood \- {escaped(description[0].lower() + description[1:].rstrip('.'))}",
        *section("SYNOPSIS"),
        r".B cordwood",
        r".I VERB",
        r"[\fIOPTION\fR ...] [\fISOURCE\fR ...]",
        *section("VERBS"),
    ]
    for verb in VERBS:
        lines += [".TP", rf".B {verb}", escaped(str(verbs[verb].description).partition("\n")[0])]
    lines += blocks(str(parser.epilog), ".SH")
    for verb in VERBS:
        lines += section(f"cordwood {verb}")
        lines += [usage(verbs[verb]), *paragraphs(str(verbs[verb].description)), *options(verbs[verb])]
        lines += blocks(str(verbs[verb].epilog), ".SS")
    return "\n".join(lines) + "\n"


def section(title: str, kind: str = ".SH") -> list[str]:
    return [f'{kind} "{escaped(title)}"']


def usage(parser: argparse.ArgumentParser) -> str:
    """The form of a command line. That of argparse depends on the version of Python."""
    formatter = argparse.HelpFormatter(parser.prog)
    sources = [formatter._format_args(action, action.dest) for action in parser._get_positional_actions()]
    return escaped(" ".join([parser.prog, "[OPTION ...]", *sources]))


def invocation(action: argparse.Action) -> str:
    """An option and its value, or the name of an argument."""
    value = action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else "")
    return " ".join(filter(None, [", ".join(action.option_strings), str(value)]))


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The arguments of a verb, each with its help."""
    formatter = argparse.HelpFormatter(parser.prog)
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        if actions:
            yield from section(str(group.title), ".SS")
        for action in actions:
            yield from (".TP", rf"\fB{escaped(invocation(action))}\fR")
            yield escaped(" ".join(formatter._expand_help(action).split()))


def paragraphs(text: str) -> Iterator[str]:
    """Paragraphs, of which those with indented lines stay as they are."""
    for paragraph in text.strip().split("\n\n"):
        yield ".PP"
        yield from unfilled(paragraph) if "\n  " in paragraph else [escaped(" ".join(paragraph.split()))]


def blocks(text: str, kind: str) -> Iterator[str]:
    """The parts below the options, each with a title."""
    for block in text.strip().split("\n\n"):
        title, _, lines = block.partition(":\n")
        yield from [*section(title.upper() if kind == ".SH" else title, kind), *unfilled(lines)]


def unfilled(text: str) -> list[str]:
    """Lines that `man` does not join."""
    return [".nf", *map(escaped, text.rstrip("\n").split("\n")), ".fi"]


def escaped(text: str) -> str:
    """Text in which `man` sees no commands of its own."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    return rf"\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    main()
