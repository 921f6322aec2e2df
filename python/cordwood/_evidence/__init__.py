"""Implements `cordwood.evidence`: pages and JSON that report the contents and damage of logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from cordwood._evidence.page import Evidence
from cordwood._evidence.reading import evidence_of, reads
from cordwood._inputs.each import each
from cordwood._inputs.files import named_files
from cordwood._remote import with_options
from cordwood._summary import Fold
from cordwood.types import LogEvidence
from cordwood.typing import DialectName

__all__ = ["Evidence", "evidence"]


def evidence(
    source: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    threads: int = 1,
    dialect: DialectName | None = None,
    log_number: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    command: str | None = None,
) -> Evidence:
    """Reads logs and returns evidence of their contents and damage: a report that you can save as a page or as JSON.

    For each log, the evidence contains the size, the modification time, the SHA-256, the dialect, counts and a picture.
    Each damaged region is listed with its reason, its offsets, any flipped bit and its first bytes. For a log of write
    batches, the evidence also lists the deleted and overwritten keys with their sequence numbers. Each log is read
    several times. The page states the maximum length of each list.

    Args:
        source: A path, a directory, a pattern such as `"*.log"`, a URL, or several of these.
        threads: How many logs to read in parallel, and how many threads to use for a long log. Default: 1.
        dialect: Same as for `Reader`. Default: `None`, which detects the dialect.
        log_number: Same as for `Reader`. Default: `None`.
        storage_options: Same as for `Reader`. Default: `None`.
        command: The command to print on the page. Default: `None`.

    Returns:
        The evidence. Its `failed` attribute lists the files that can't be read.

    Raises:
        TypeError: A source is not a path.
        ValueError: An option has an invalid value.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> cordwood.evidence("example.log")
    <cordwood.Evidence: logs=1, damaged=0, failed=0>
    """
    source = with_options(source, storage_options)
    read = reads(dialect=dialect, log_number=log_number)
    fold = Fold(named_files(source))
    results = fold.take(each(fold.files, read, threads, dialect=dialect))
    return evidence_of(fold, [found for _, found in results if isinstance(found, LogEvidence)], command)
