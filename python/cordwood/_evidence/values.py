"""The values that evidence consists of, and their limits."""

from __future__ import annotations

from typing import NamedTuple

from cordwood.types import Report, SkippedRegion

DETAILED_MAX = 50
"""Regions, keys and pictures are kept for at most this many logs."""
LISTED_MAX = 1000
"""At most this many regions, deleted keys and overwritten keys of a log are listed."""
FIRST_LEN = 16
KEY_LEN_MAX = 256
"""Bytes of a key that are kept."""
FOLLOWED_MAX = 1_000_000
"""The value of at most this many keys of a log is looked for, ..."""
FOLLOWED_LEN_MAX = 128 << 20
"""... whose lengths add up to at most this many bytes."""


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
