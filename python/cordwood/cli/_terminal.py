"""The limits of a terminal: the width of lines, and colours."""

from __future__ import annotations

import contextlib
import os
import sys

WIDTH = 80
"""No line of a report is wider, except for names, and for commands that are to be copied."""


def terminal_width() -> int:
    """How many columns the terminal has: like `shutil.get_terminal_size`, whose module is slow to import."""
    with contextlib.suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or WIDTH  # type: ignore[union-attr]
    return WIDTH


def has_color() -> bool:
    """Whether stdout is a terminal that has colours, and its user wants them."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def red(text: str, *, color: bool | None = None) -> str:
    """The text of damage, as printed on stdout: red if `color`, or, if that is `None`, if `has_color()`."""
    return f"\x1b[1;31m{text}\x1b[0m" if (has_color() if color is None else color) else text


def print_folded(text: str, *, indent: int = 4, is_damage: bool = False) -> None:
    """Prints a line of a report on stdout, folded where it is too wide. The lines that follow are indented."""
    lines = [text]
    if len(text) > WIDTH:
        import textwrap

        lines = textwrap.wrap(
            text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
        )
    for line in lines:
        print(red(line) if is_damage else line)
