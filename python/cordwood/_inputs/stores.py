"""Finds the directories that are given by URL and are not checked as a whole.

All logs in these directories are still read. Only exports are checked as a whole, because checking an export requires
just the lengths of its files.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable

from cordwood._inputs.input import Input, is_of_export
from cordwood._text import base_name

_OF_DATABASE = re.compile(r"CURRENT|MANIFEST-[0-9]+|marker\.manifest\..*")


def is_in_archive(name: str) -> bool:
    """Checks whether a name is a URL that contains another URL, such as one for an archive member.

    For an archive member, the names of other files in its directory cannot be derived from the URL.
    """
    return "://" in name and "::" in name


def unjudged(files: Iterable[Input]) -> list[tuple[str, OSError]]:
    """Returns the databases and exports that aren't checked as a whole, each with an error that gives the reason.

    The logs in an unchecked directory are read one by one, so a missing file would go unnoticed.
    """
    found: dict[str, str] = {}
    for file in files:
        if "://" not in file.name or not file.is_in_directory:
            continue
        name = base_name(file.name)
        if kind := _kind(file.name, name):
            found.setdefault(file.name[: file.name.rindex(name)], kind)
    why = "in a store: not judged, because its files are compared only on a disk"
    return [(directory, OSError(errno.ENOTSUP, f"{kind} {why}", directory)) for directory, kind in found.items()]


def _kind(path: str, name: str) -> str | None:
    """Returns the kind of the unchecked directory that contains this file, or `None` if there is none."""
    if _OF_DATABASE.fullmatch(name):
        return "a database"
    return "an export" if is_of_export(name) and is_in_archive(path) else None
