"""Whether a file in which detection finds no log may still be one."""

from __future__ import annotations

import contextlib
import os
import re
from typing import get_args

import cordwood
from cordwood._native import is_log_name
from cordwood.cli._named import Named
from cordwood.typing import DialectName

NO_FRAGMENT = "no valid fragment"
"""A file in a folder that may be a log, but in which nothing can be read, and whose name is not that of a log."""


ONLY_ZEROS = "only zeros"
"""Such a file that contains nothing else."""


def without_fragment(file: Named) -> str | None:
    """`NO_FRAGMENT` or `ONLY_ZEROS`, if a file in a folder has no valid fragment, nor the name of a log.

    Raises:
        DialectError: It is known to be something else.
    """
    name = file.name
    if not file.is_in_folder or file.error or is_log_name(name):
        return None
    if cordwood.detect(name) is not None:
        return None
    # Detection looks only at the beginning of a file, and at the beginnings of its blocks.
    is_valid = any(
        fragment.stored_crc is not None and fragment.stored_crc == fragment.computed_crc
        for dialect in get_args(DialectName)
        for fragment in cordwood.fragments(name, dialect=dialect)
    )
    # A flipped bit in the only record of a log must not hide that it is one.
    if is_valid:
        return None
    report = cordwood.verify(name)
    if report.outcome.zeros_offset == 0:
        return ONLY_ZEROS
    return None if _has_flipped_bit(report) else NO_FRAGMENT


def check_no_log(destination: str, what: str, advice: str = "") -> None:
    """Checks that the file to be replaced by `what` is not a log: a shell may have put one of several logs there.

    Raises:
        ValueError: It is one, or may be one: a flipped bit explains why nothing at its beginning is valid, its only
            record is incomplete, or it has the name of a log.
    """
    refusal = f"which --overwrite does not replace with a {what}{advice}"
    # detect() raises for a file that is not a log or cannot be read; either may be replaced.
    with contextlib.suppress(OSError, cordwood.CordwoodError):
        if not os.path.isfile(destination):  # noqa: PTH113 - pathlib is slow to import
            return
        if cordwood.detect(destination) is not None:
            raise ValueError(f"{destination} is a log, {refusal}")
        if os.path.getsize(destination) and _may_be_damaged_log(destination):  # noqa: PTH202
            raise ValueError(f"{destination} may be a damaged log, {refusal}")


def may_be_log(path: str) -> bool:
    """Whether a file is a log, maybe a damaged one, or empty.

    Raises:
        DialectError: It is known to be something else.
    """
    return cordwood.detect(path) is not None or not os.path.getsize(path) or _may_be_damaged_log(path)  # noqa: PTH202


def _may_be_damaged_log(path: str) -> bool:
    """Whether a file that nothing was detected in may be a log.

    It has the name of a log, its only record is incomplete, or one bit is wrong.
    """
    if is_log_name(path):
        return True
    report = cordwood.verify(path)
    if report.outcome.kind == cordwood.OutcomeKind.TORN_TAIL:
        # A short text can look like one, but the header of a record is hardly ever text.
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            return re.search(_CONTROL, file.read(_HEADER_LEN_MAX)) is not None
    return _has_flipped_bit(report)


_HEADER_LEN_MAX = 11
"""The length of a header with a log number."""

_CONTROL = rb"[\0-\x08\x0b\x0e-\x1f]"
"""Bytes that no text has."""


def _has_flipped_bit(report: cordwood.Report) -> bool:
    """Whether one flipped bit explains a skipped region: by chance, that is rare."""
    return any(region.bit_flip for region in report.skipped)
