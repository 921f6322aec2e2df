"""`cordwood.evidence`: the contents and the damage of logs, as one value that is a page and JSON.

The code that reads logs and makes the page is imported with the first evidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import NamedTuple

from cordwood._native import __version__
from cordwood.types import Database, Export, Report, SkippedRegion
from cordwood.typing import DialectName


class KeyChange(NamedTuple):
    """A key of a write-ahead log that an operation deletes or overwrites.

    Attributes:
        key: The key, at most its first 256 bytes; of a deleted range, the first key.
        key_len: The length of the whole key in bytes.
        end_key: Of a deleted range, the exclusive end, at most its first 256 bytes; else `None`.
        column_family: The number of the column family; 0 is the default one.
        sequence: The sequence number of the operation; `None` if it has none.
        offset: The file offset of its record.
        old_sequence: The sequence number with which the old value was put; `None` if this log does not contain it.
        old_offset: The file offset of the record that contains the old value; `None` if this log does not contain it.
        is_certain: Whether the old value is certainly the last one before, or, if none was found, certainly not in this
            log. It is not after an interruption between the two records, or before this one: damage, zeros, a gap in
            the sequence numbers, a salvaged record, one that is not a write batch, or an operation that is neither a
            put nor the deletion of one key.
    """

    key: bytes
    key_len: int
    end_key: bytes | None
    column_family: int
    sequence: int | None
    offset: int
    old_sequence: int | None = None
    old_offset: int | None = None
    is_certain: bool = False


class KeyChanges(NamedTuple):
    """The keys that the write batches of a log delete and overwrite.

    Attributes:
        deleted_count: How many deletions there are.
        deleted: The first 1,000 of them.
        overwritten_count: How many values are overwritten in this log.
        overwritten: The first 1,000 of them.
        faulty_batch_count: How many records are not write batches, or damaged ones.
        are_all_followed: Whether the older value of each key was looked for. If there are more than a million different
            keys, or keys of more than 128 MiB, it was looked for only for the first ones.
    """

    deleted_count: int
    deleted: tuple[KeyChange, ...]
    overwritten_count: int
    overwritten: tuple[KeyChange, ...]
    faulty_batch_count: int
    are_all_followed: bool


class RegionEvidence(NamedTuple):
    """A region of a log that no record was read from.

    Attributes:
        region: The region, with its reason, and the flipped bit that explains it, if one does.
        first_bytes: Its first 16 bytes; `None` for a URL, or if its file was pruned meanwhile.
    """

    region: SkippedRegion
    first_bytes: bytes | None


class LogEvidence(NamedTuple):
    """The findings in a log.

    Attributes:
        path: The path or URL.
        report: The report of `verify`.
        modified: When the file was last modified, in UTC, as `2026-11-22T23:09:06.123456Z`; of a segmented log, the
            last time at which any of its files was. `None` for a URL.
        sha256: The SHA-256 of the file, in hexadecimal; of a segmented log, of its files, one after another. `None`
            for a URL.
        is_changed: Whether the file changed while it was read. Then report and SHA-256 may be of different states.
        regions: The first 1,000 skipped regions: those that are damaged or torn come first.
        keys: For a log of write batches, the deleted and overwritten keys; `None` for any other log.
        svg: The picture of the log, as `map` draws it.
    """

    path: str
    report: Report
    modified: str | None = None
    sha256: str | None = None
    is_changed: bool = False
    regions: tuple[RegionEvidence, ...] = ()
    keys: KeyChanges | None = None
    svg: str = ""

    def __repr__(self) -> str:
        # The picture has kilobytes, and the regions may be many.
        return f"<cordwood.LogEvidence: {self.path}, {self.report!r}>"


class Evidence(NamedTuple):
    """The findings in logs: the result of `cordwood.evidence`. A notebook shows it as a page.

    Attributes:
        logs: The logs: the damaged ones first, then the incomplete ones. Regions, keys and pictures are there for the
            first 50.
        databases: The databases in directories, and whether their engines find everything that they need.
        exports: The exports of Datastore or Firestore in directories, and whether they are complete.
        failed: The files that could not be read, with the reason. A log that disappeared after it was verified is also
            among the `logs`.
        other_files: The files in directories that are not logs, with their kind.
        command: The command that the page states; `None` if it states none.
        examined: When the logs had been read, in UTC, as `2026-11-22T23:09:06.123456Z`.
        directory: The current directory then, where relative paths start; `None` if it had been removed.
        version: The version of cordwood that read the logs.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> cordwood.evidence("example.log").html[:15]
    '<!doctype html>'
    """

    logs: tuple[LogEvidence, ...]
    databases: tuple[Database, ...] = ()
    exports: tuple[Export, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    other_files: tuple[tuple[str, str], ...] = ()
    command: str | None = None
    examined: str | None = None
    directory: str | None = None
    version: str = __version__

    def __repr__(self) -> str:
        damaged_count = sum(not log.report.ok for log in self.logs)
        return f"<cordwood.Evidence: logs={len(self.logs)}, damaged={damaged_count}, failed={len(self.failed)}>"

    @property
    def ok(self) -> bool:
        """Whether there is a log or a database, all could be read, none is damaged, and all exports are complete."""
        from cordwood._evidence.reading import rank

        directories = self.databases + self.exports
        is_whole = all(rank(log.report) for log in self.logs) and all(directory.ok for directory in directories)
        return is_whole and not self.failed and bool(self.logs or self.databases)

    @property
    def html(self) -> str:
        """An HTML page that needs no other file, no script and no network."""
        from cordwood._evidence.page import page

        return page(self)

    @property
    def json(self) -> str:
        """The same as one JSON object, without the pictures."""
        from cordwood._evidence.page import json_of

        return json_of(self)

    def _repr_html_(self) -> str:
        # In a frame of its own: the style of the page is not for the notebook.
        from html import escape

        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:40em;border:0"></iframe>'


def evidence(
    source: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    threads: int = 1,
    dialect: DialectName | None = None,
    log_number: int | None = None,
    command: str | None = None,
) -> Evidence:
    """Reads logs and keeps the findings, for a report that can be filed: a page, or JSON.

    For each log: size, time of modification, SHA-256, dialect, counts, a picture, the damaged regions with the reason,
    the offsets, the flipped bit and the first bytes, and, for a log of write batches, the keys that are deleted or
    overwritten, with their sequence numbers. Each log is read several times. The lists have limits, which the page
    states.

    Args:
        source: A path, a directory, a pattern such as `"*.log"`, a URL, or several of these.
        threads: How many logs are read at a time, and how many threads read a long one. Default: 1.
        dialect: As for `Reader`. Default: `None`: it is detected.
        log_number: As for `Reader`. Default: `None`.
        command: The command to be stated in the page. Default: `None`.

    Returns:
        The evidence. A file that cannot be read is in its `failed`.

    Raises:
        TypeError: A source is not a path.
        ValueError: An option has an invalid value.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> cordwood.evidence("example.log")
    <cordwood.Evidence: logs=1, damaged=0, failed=0>
    """
    from cordwood._evidence.reading import evidence_of, reads
    from cordwood._inputs.each import each
    from cordwood._inputs.files import named_files

    read = reads(dialect=dialect, log_number=log_number)
    return evidence_of(each(named_files(source), read, threads, dialect=dialect), command)
