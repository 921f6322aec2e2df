"""Directories by URL: those that are not judged as a whole, although each log in them is read.

Only exports are: the lengths of their files are enough.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable

from cordwood._inputs.input import Input, is_of_export
from cordwood._remote import base_name

_OF_DATABASE = re.compile(r"CURRENT|MANIFEST-[0-9]+|marker\.manifest\..*")


def is_in_archive(name: str) -> bool:
    """Whether it is a URL with another one in it, as of a member of an archive: a file beside it has no simple name."""
    return "://" in name and "::" in name


def unjudged(files: Iterable[Input]) -> list[tuple[str, OSError]]:
    """The directories by URL that are a database or an export, each with an error that says so.

    Their logs are read one by one: a missing file would not be noticed.
    """
    found: dict[str, str] = {}
    for file in files:
        if "://" not in file.name or not file.is_in_directory:
            continue
        name = base_name(file.name)
        if kind := _kind(file.name, name):
            found.setdefault(file.name[: file.name.rindex(name)], kind)
    return [
        (
            directory,
            OSError(
                errno.ENOTSUP,
                f"{kind} in a store: not judged, because its files are compared only on a disk",
                directory,
            ),
        )
        for directory, kind in found.items()
    ]


def _kind(path: str, name: str) -> str | None:
    """The kind of the directory in which there is a file of this name; `None` if it has none, or is judged."""
    if _OF_DATABASE.fullmatch(name):
        return "a database"
    return "an export" if is_of_export(name) and is_in_archive(path) else None
