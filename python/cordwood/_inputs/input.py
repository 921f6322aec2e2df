"""Describes a file that is named directly, or by a pattern or a directory."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from cordwood._remote import is_url, ranges_of_url

Identity: TypeAlias = tuple[int, int] | str
"""The identity that all names of a file share. It is the device and inode, or the text of a store or archive URL."""

EMPTY = "empty"
"""A file in a directory that has no bytes."""

METADATA = "metadata of an export"
"""A file of an export that describes the export and contains no entities."""

NO_FILE = "pipe, socket or device"
"""A file that is opened only if it is named directly, because opening it may take forever."""

LIST_SUFFIX = ".export_metadata"
"""The end of the name of the list of the files in one directory of a Datastore or Firestore export."""

OVERALL_SUFFIX = ".overall_export_metadata"
"""The end of the name of the log that describes a whole export."""

RUN_SUFFIXES = (".wandb", ".swanlab")
"""The ends of the names of the logs of runs. Each is also the name of the dialect."""


class Input(NamedTuple):
    """A file that is named directly, or by a pattern or a directory."""

    name: str
    """The path or the URL of the file."""
    relative: str
    """The path of the file below the directory, or below the part of the pattern without wildcards. Otherwise the
    last part of its name.
    """
    is_in_directory: bool = False
    """Whether the file was found in a directory. Such a file need not be a log."""
    format: str | None = None
    """The kind of file, if it is known without reading that the file is not a log."""
    error: OSError | None = None
    """Why the file cannot be read, if this is known: a directory cannot be listed, or an export's file is missing."""
    is_metadata: bool = False
    """Whether the file is the log that describes an export. None of its records can be decoded."""
    file_len: int = 0
    """The number of bytes to read, if it is known. It is the length of a regular file, or of a part of it."""
    version: str | None = None
    """The version that a store states with the length."""
    source: Any = None
    """The value to be read in place of the file of this name: a `Split`, or an object, such as stdin or ranges."""
    segments: tuple[tuple[int, int], ...] = ()
    """The offset in the log at which each segment of a segmented log starts, and its length, when it was listed."""
    file_count: int = 1
    """The number of files that this input represents. The missing files of an export may share one error."""

    @property
    def opened(self) -> Any:
        """The value to be read. A length that a store has stated is not requested again."""
        if self.source is None and self.file_len and "://" in self.name:
            return ranges_of_url(self.name, self.file_len, self.version) if is_url(self.name) else self.name
        return self.name if self.source is None else self.source

    @property
    def is_requested(self) -> bool:
        """Whether the file is read in requests, which are slow."""
        return "://" in self.name or hasattr(self.source, "read_range")

    @property
    def is_empty(self) -> bool:
        """Whether this may be a named file that has no bytes."""
        return not (self.is_in_directory or self.file_len or self.source or "://" in self.name)

    @property
    def not_decoded(self) -> str | None:
        """The kind of file, if verbs that decode records do not read it."""
        return METADATA if self.is_metadata else self.format


def dialect_of_empty_run(path: str, file_len: int | None) -> str | None:
    """Returns the dialect of a run whose log has no bytes, judged by the name of the log.

    Such a run was killed before its first records. Returns `None` for all other files.
    """
    return path.rpartition(".")[2] if file_len == 0 and path.endswith(RUN_SUFFIXES) else None


def is_of_export(path: str) -> bool:
    """Checks whether a file has the name of one that describes an export."""
    return path.endswith((LIST_SUFFIX, OVERALL_SUFFIX))
