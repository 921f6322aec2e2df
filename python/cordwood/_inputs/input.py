"""A file that is named, directly or with a pattern or a directory."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from cordwood._remote import is_url, ranges_of_url

Identity: TypeAlias = tuple[int, int] | str
"""The identity that all names of a file share: device and inode; for a URL of a store or into an archive, its text."""

EMPTY = "empty"
"""A file in a directory without a byte."""

METADATA = "metadata of an export"
"""A file of an export that describes the export and contains no entities."""

NO_FILE = "pipe, socket or device"
"""It is opened only if it is named directly: opening it may take forever."""

LIST_SUFFIX = ".export_metadata"
"""The end of the name of the list of the files in one directory of a Datastore or Firestore export."""

OVERALL_SUFFIX = ".overall_export_metadata"
"""The end of the name of the log that describes a whole export."""

RUN_SUFFIXES = (".wandb", ".swanlab")
"""The ends of the names of the logs of runs, each of which names the dialect."""


class Input(NamedTuple):
    """A file that is named, directly or with a pattern or a directory."""

    name: str
    """Its path or URL."""
    relative: str
    """Its path below the directory, or below the part of the pattern without wildcards; else the last part of its
    name.
    """
    is_in_directory: bool = False
    """It was found in a directory: then it need not be a log."""
    format: str | None = None
    """The kind of file, if it is known not to be a log without reading it."""
    error: OSError | None = None
    """Why it cannot be read, if that is known: a directory cannot be listed, or a file of an export is missing."""
    is_metadata: bool = False
    """It is the log that describes an export. None of its records can be decoded."""
    file_len: int = 0
    """The number of bytes to read, if it is known: the length of a regular file, or of a part of it."""
    version: str | None = None
    """The version that a store states with the length."""
    source: Any = None
    """The value to be read in place of the file of this name: a `Split`, or an object, such as stdin or ranges."""
    segments: tuple[tuple[int, int], ...] = ()
    """Of a segmented log: where in the log each segment starts, and its length, as they were listed."""
    file_count: int = 1
    """How many files it is: the missing files of an export may have one error together."""

    @property
    def opened(self) -> Any:
        """The value to be read. A store is not asked again for a length that it has stated."""
        if self.source is None and self.file_len and "://" in self.name:
            return ranges_of_url(self.name, self.file_len, self.version) if is_url(self.name) else self.name
        return self.name if self.source is None else self.source

    @property
    def is_requested(self) -> bool:
        """Whether it is read in requests, each of which takes long."""
        return "://" in self.name or hasattr(self.source, "read_range")

    @property
    def is_empty(self) -> bool:
        """Whether it may be a named file without a byte."""
        return not (self.is_in_directory or self.file_len or self.source or "://" in self.name)

    @property
    def not_decoded(self) -> str | None:
        """The kind of file, if no verb that decodes records reads it."""
        return METADATA if self.is_metadata else self.format


def dialect_of_empty_run(path: str, file_len: int | None) -> str | None:
    """The dialect of a run without a byte, as one is that was killed before its first records: by the name of its log.

    `None` for all other files.
    """
    return path.rpartition(".")[2] if file_len == 0 and path.endswith(RUN_SUFFIXES) else None


def is_of_export(path: str) -> bool:
    """Whether a file is named like one that describes an export."""
    return path.endswith((LIST_SUFFIX, OVERALL_SUFFIX))
