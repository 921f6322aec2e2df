"""Lines for a terminal: their width, their colours, and commands that are to be copied."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

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


def print_commands(label: str, commands: Sequence[str]) -> None:
    """Prints commands, which are meant to be copied, so they are not folded."""
    for command in commands:
        print(f"  {label:9}{command}")
        label = ""


IS_WINDOWS = os.name == "nt"


def write_command(line: str, path: str) -> str:
    """The command that makes a file of one line."""
    if IS_WINDOWS:
        # `echo` of its shells adds a space or a byte order mark, and CR.
        return f"python -c \"open({_literal(path)}, 'wb').write(b'{line}\\n')\""
    return f"echo {line} > {shell_word(path)}"


def move_command(old: str, new: str) -> str:
    """The command that puts a file in the place of another one."""
    if IS_WINDOWS:
        return f'python -c "import os; os.replace({_literal(old)}, {_literal(new)})"'
    return f"mv {shell_word(old)} {shell_word(new)}"


def _literal(path: str) -> str:
    """A path in Python, without a character that means something else to a shell of Windows."""
    safe = (c if c.isalnum() or c in "/:. -_" else f"\\x{ord(c):02x}" for c in path.replace("\\", "/"))
    return f"'{''.join(safe)}'"


def shell_word(path: str) -> str:
    """A path as an argument in a shell: it is not taken for an option, and shows no control characters."""
    if path.startswith("-"):
        path = f"./{path}"
    if IS_WINDOWS:
        return f'"{path}"' if " " in path else path
    import shlex

    if path.isprintable():
        return shlex.quote(path)
    # Three digits each: one may follow, which would belong to a shorter number.
    numbers = {character: "".join(f"\\{byte:03o}" for byte in os.fsencode(character)) for character in path}
    shown = (c if c.isprintable() and c not in "\\'" else numbers[c] for c in path)
    return f"$'{''.join(shown)}'"
