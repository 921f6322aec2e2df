"""Writes messages to the `cordwood` logger.

This is a separate module so that `logging` is imported only if there is a message.
"""

from __future__ import annotations

import logging

from cordwood.types import SkippedRegion

_logger = logging.getLogger("cordwood")
_logger.addHandler(logging.NullHandler())


def log_skipped(region: SkippedRegion, path: str | None) -> None:
    """Warns about skipped damage. If the policy is not to raise an error, only this message reports the damage."""
    _logger.warning("%s: skipped %s", path or "log", region)


def log_other_log(own: int, other: int, path: str | None) -> None:
    """Warns that a file has no records. Either it was renamed, or it was recycled and hasn't been written to yet."""
    _logger.warning(
        "%s: the whole file belongs to log %d; expected log %d (from the file's name or an option); "
        "log_number=%d reads it",
        path or "log",
        other,
        own,
        other,
    )


def log_left(offset: int, length: int, path: str) -> None:
    """Warns that a followed file was rotated and ends with an incomplete record."""
    _logger.warning(
        "%s: rotated: the old file ends with %d bytes at offset %d that are not a whole record", path, length, offset
    )


def log_summary(count: int, length: int, path: str | None) -> None:
    """Logs the number and length of the skipped regions that weren't logged individually. Call this after reading."""
    _logger.warning("%s: skipped %d more regions, %d bytes", path or "log", count, length)


def log_fault(place: str, text: str) -> None:
    """Logs a fault that involves several files and can't be found by reading only one of them."""
    _logger.warning("%s: %s", place, text)
