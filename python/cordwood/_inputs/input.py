"""A file named directly, matched by a pattern, or found in a directory."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from cordwood._remote import ranges_of_url
from cordwood._text import is_url

Identity: TypeAlias = tuple[int, int] | str
"""Identifies a file under any of its names: by device and inode, or by URL if it is in a store or an archive."""

EMPTY = "empty"
"""The format of an empty file in a directory."""

METADATA = "metadata of an export"
"""The format of a file that describes an export but contains no entities."""

NO_FILE = "pipe, socket or device"
"""The format of a file that may block forever when opened. Such a file is opened only if it is named directly."""

LIST_SUFFIX = ".export_metadata"
"""The suffix of a file that lists the files in one directory of a Datastore or Firestore export."""

OVERALL_SUFFIX = ".overall_export_metadata"
"""Each log with this suffix describes a whole export."""

RUN_SUFFIXES = (".wandb", ".swanlab")
"""Logs with these suffixes contain runs. Each suffix without its dot is also the name of a dialect."""


class Input(NamedTuple):
    """A file named directly, matched by a pattern, or found in a directory."""

    name: str
    """The path or the URL of the file."""
    relative: str
    """The file's path relative to the directory, or to the part of the pattern without wildcards.

    For a file named directly, this is the last part of the name.
    """
    is_in_directory: bool = False
    """Whether the file was found in a directory, and so might not be a log."""
    format: str | None = None
    """The file's format if the file is already known not to be a log. Otherwise, `None`."""
    error: OSError | None = None
    """Why the file cannot be read, for example because it is missing from an export. `None` if no problem is known."""
    is_metadata: bool = False
    """Whether the file is the log that describes an export. Such a log's records can't be decoded."""
    file_len: int = 0
    """The number of bytes to read from the file, or 0 if unknown."""
    version: str | None = None
    """The file's version, if a store reported it along with the length."""
    source: Any = None
    """The source to read instead of the file, such as a `Split`, stdin, or an object that can be read in ranges."""
    segments: tuple[tuple[int, int], ...] = ()
    """The offset and length that each segment had when the segmented log was listed."""
    file_count: int = 1
    """The number of files this input represents. It is more than 1 if missing files of an export share an error."""
    identity: Identity | None = None
    """The identity of the file. If it is `None`, each of the file's names counts as a separate file."""

    @property
    def opened(self) -> Any:
        """The value to pass to a reader. A length that a store has already reported is not requested again."""
        if self.source is None and self.file_len and "://" in self.name:
            return ranges_of_url(self.name, self.file_len, self.version) if is_url(self.name) else self.name
        return self.name if self.source is None else self.source

    @property
    def is_requested(self) -> bool:
        """Whether reading the file requires network requests, which are slow."""
        return "://" in self.name or hasattr(self.source, "read_range")

    @property
    def not_decoded(self) -> str | None:
        """The file's format if the file is skipped by verbs that decode records, otherwise `None`."""
        return METADATA if self.is_metadata else self.format


def dialect_of_empty_run(path: str, file_len: int | None) -> str | None:
    """Returns the dialect if this is an empty log named like a run's log.

    A run's log is empty if the run was killed before writing its first records. Returns `None` for all other files.
    """
    return path.rpartition(".")[2] if file_len == 0 and path.endswith(RUN_SUFFIXES) else None


def is_of_export(path: str) -> bool:
    """Checks whether a path ends with a suffix for export metadata."""
    return path.endswith((LIST_SUFFIX, OVERALL_SUFFIX))
