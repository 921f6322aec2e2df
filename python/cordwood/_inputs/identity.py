"""Which names are those of one file: every function for many sources reads each file once."""

from __future__ import annotations

import os
import stat
from typing import TypeAlias

Identity: TypeAlias = tuple[int, int] | str
"""The identity that all names of a file share: device and inode; for a URL of a store or into an archive, its text."""


def identity_of(name: str) -> Identity | None:
    """The identity of the file that a path or a URL names. `None` if the file is missing, or as for `file_identity`."""
    path: str | None = name
    if "://" in name:
        from cordwood._remote import own_path

        path = own_path(name)
    if path is None:
        return name
    try:
        return file_identity(os.stat(path))
    except (OSError, ValueError):
        return None


def file_identity(status: os.stat_result) -> Identity | None:
    """The identity of a file; `None` if it may be read more than once, as a pipe may, or has no inode."""
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) and status.st_ino else None
