"""Distinguishes URLs from paths, and formats names, quantities and bytes as text that is safe for a terminal."""

from __future__ import annotations

import os
import re
from binascii import b2a_base64
from collections.abc import Sequence


def is_url(name: str) -> bool:
    """Checks whether a name is a URL for fsspec, such as `s3://...` or `simplecache::s3://...`, rather than a path.

    A single letter before a colon is a drive letter.
    """
    return URL.fullmatch(name) is not None


URL = re.compile(r"(?s)((?:[\w+.-]{2,}::)*)([\w+.-]{2,}://.*?)(::.*)?")
"""Matches the parts of a chain: any caches, the first URL, and the rest, such as an archive."""


def local_path(name: str) -> str | None:
    """Returns the path of the local file or archive that a name refers to, or `None` for any other URL."""
    if not is_url(name):
        return name
    # In a chain of URLs, the bytes come from the last part.
    protocol, _, path = name.rpartition("::")[2].partition("://")
    return path if protocol in ("file", "local") else None


def own_path(name: str) -> str | None:
    """Returns the path of the local file that a path or URL refers to. `None` if the file is in a store or archive."""
    url = URL.fullmatch(name)
    # A cache contains the same bytes as the file, whereas an archive contains several members.
    return None if url and "://" in (url[3] or "") else local_path(name)


def base_name(name: str) -> str:
    """Returns the last part of a path or a URL. For an archive member, this is the last part of its path."""
    url = URL.fullmatch(name)
    return os.path.basename(url[2] if url else name)


def source_name(name: str) -> str:
    """Returns a source's name for JSON: the name of the file, unchanged. `-` is stdin."""
    return "<stdin>" if name == "-" else name


def display_name(name: str) -> str:
    """Returns a source's name for display, with unprintable characters escaped."""
    return escaped(source_name(name))


def quantity(count: int, noun: str) -> str:
    """Returns a number with its noun, such as `1 record` or `2 records`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def damaged_text(paths: Sequence[str]) -> list[str]:
    """Returns a list with one message: the number of damaged logs and the first one's name. Empty if there are none."""
    more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
    return [f"{len(paths):,} damaged: {display_name(paths[0])}{more}"] if paths else []


def base64_text(data: bytes) -> str:
    """Returns bytes as base64 on one line. Importing the `base64` module would be slower."""
    return b2a_base64(data, newline=False).decode("ascii")


def escaped(text: str, kept: str = "") -> str:
    """Escapes unprintable characters as in JSON, so that the text can't control a terminal or break a line."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in kept else _escape(character) for character in text
    )


_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escape(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
