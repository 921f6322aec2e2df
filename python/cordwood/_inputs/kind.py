"""Decides which files are not logs, based on their contents."""

from __future__ import annotations

import os
import re
from typing import Any, get_args

from cordwood._native import detect, fragments, is_log_name, verify
from cordwood.types import OutcomeKind, Report
from cordwood.typing import DialectName

NO_FRAGMENT = "no valid fragment"
"""The format of a file that could be a log, but has no readable fragments and isn't named like a log."""

ONLY_ZEROS = "only zeros"
"""The format of a file that could be a log, but contains only zeros and isn't named like a log."""


def without_fragment(name: str, source: Any) -> str | None:
    """Returns `NO_FRAGMENT` or `ONLY_ZEROS` if a file has no valid fragment and isn't named like a log.

    `source` is the value to pass to readers of the file.

    Raises:
        DialectError: The file is known to have another format.
    """
    # A directory is passed only if its file names show that it is a segmented log.
    if os.path.isdir(name) or is_log_name(name) or detect(source) is not None:
        return None
    # Detection reads only the start of the file and the starts of its blocks.
    is_valid = any(
        fragment.stored_crc is not None and fragment.stored_crc == fragment.computed_crc
        for dialect in get_args(DialectName)
        for fragment in fragments(source, dialect=dialect)
    )
    # A log whose only record has a flipped bit must still be recognised as a log.
    if is_valid:
        return None
    report = verify(source)
    if report.outcome.zeros_offset == 0:
        return ONLY_ZEROS
    return None if _has_flipped_bit(report) else NO_FRAGMENT


def may_be_damaged_log(path: str) -> bool:
    """Checks whether a file may be a log even though its dialect could not be detected.

    A file may be a log if it is named like one, if its only record is incomplete, or if a single bit is wrong.
    """
    if is_log_name(path):
        return True
    report = verify(path)
    if report.outcome.kind == OutcomeKind.TORN_TAIL:
        # A short text file can look like an incomplete record, but a record's header is rarely text.
        with open(path, "rb") as file:
            return re.search(_CONTROL, file.read(_HEADER_LEN_MAX)) is not None
    return _has_flipped_bit(report)


_HEADER_LEN_MAX = 11
"""The length of a header with a log number."""

_CONTROL = rb"[\0-\x08\x0b\x0e-\x1f]"
"""Bytes that never appear in text."""


def _has_flipped_bit(report: Report) -> bool:
    """Checks whether a single flipped bit explains a skipped region. This is rarely a coincidence."""
    return any(region.bit_flip for region in report.skipped)
