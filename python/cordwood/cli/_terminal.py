"""Wraps and colours lines for a terminal, and formats commands that users can copy."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

WIDTH = 80
"""The maximum width of a line in a report. Names and copyable commands may be wider."""


def terminal_width() -> int:
    """Returns the width of the terminal. Avoids `shutil`, which is slow to import."""
    with contextlib.suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or WIDTH  # type: ignore[union-attr]
    return WIDTH


def has_color() -> bool:
    """Checks whether stdout is a terminal that supports colours, and whether the user wants them."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def red(text: str, *, color: bool | None = None) -> str:
    """Formats text about damage for stdout, in red if `color` is true. `None` means `has_color()`."""
    return f"\x1b[1;31m{text}\x1b[0m" if (has_color() if color is None else color) else text


def fault_count(count: int, adjective: str) -> str:
    """Returns the number of faults as text for stdout, formatted by `red` unless it is zero."""
    text = f"{count:,} {adjective}"
    return red(text) if count else text


def print_folded(text: str, *, indent: int = 4, is_damage: bool = False) -> None:
    """Prints a report line to stdout, wrapped if it is too wide. Continuation lines are indented."""
    lines = [text]
    if len(text) > WIDTH:
        import textwrap

        lines = textwrap.wrap(
            text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
        )
    for line in lines:
        print(red(line) if is_damage else line)


def print_commands(label: str, commands: Sequence[str]) -> None:
    """Prints commands without wrapping them, because they are meant to be copied."""
    for command in commands:
        print(f"  {label:9}{command}")
        label = ""


IS_WINDOWS = os.name == "nt"


def write_command(line: str, path: str) -> str:
    """Returns the shell command that creates a file with one line."""
    if IS_WINDOWS:
        # On Windows, `echo` adds a CR and, depending on the shell, a space or a byte order mark.
        return f"python -c \"open({_literal(path)}, 'wb').write(b'{line}\\n')\""
    return f"echo {line} > {shell_word(path)}"


def move_command(old: str, new: str) -> str:
    """Returns the shell command that replaces one file with another."""
    if IS_WINDOWS:
        return f'python -c "import os; os.replace({_literal(old)}, {_literal(new)})"'
    return f"mv {shell_word(old)} {shell_word(new)}"


def _literal(path: str) -> str:
    """Returns a path as a Python literal. Characters that are special in Windows shells are escaped."""
    safe = (c if c.isalnum() or c in "/:. -_" else f"\\x{ord(c):02x}" for c in path.replace("\\", "/"))
    return f"'{''.join(safe)}'"


def shell_word(path: str) -> str:
    """Returns a path as a shell argument that can't look like an option or contain control characters."""
    if path.startswith("-"):
        path = f"./{path}"
    if IS_WINDOWS:
        return f'"{path}"' if " " in path else path
    import shlex

    if path.isprintable():
        return shlex.quote(path)
    # Each number has three digits, because a digit that follows a shorter number would be read as part of that number.
    numbers = {character: "".join(f"\\{byte:03o}" for byte in os.fsencode(character)) for character in path}
    shown = (c if c.isprintable() and c not in "\\'" else numbers[c] for c in path)
    return f"$'{''.join(shown)}'"
