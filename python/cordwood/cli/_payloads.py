"""Determines the payload from the `--as` option or from the first record in a log."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterable

import cordwood
from cordwood._inputs.input import Input
from cordwood._tables import payloads
from cordwood._tables.payloads import PAYLOADS, Kind, Payload, kind_of_records, kinds_of
from cordwood._text import display_name
from cordwood.cli import _messages
from cordwood.cli._messages import complain

AUTO = "auto"
"""With this value of `--as`, a log's first record determines the payload."""

AUTO_HELP = "one of these, by the dialect and the first record; stderr says which one"


def report_engine(name: str, text: str) -> None:
    """Reports that a log may come from any of several engines, and explains how to choose one."""
    complain(f"{display_name(name)}: {text}: --dialect rocksdb or --dialect pebble decides")


def other_payload(record: bytes, payload: Payload, dialect: str | None) -> str | None:
    """Checks whether a record is of a different kind than `--as` specifies.

    Returns this kind and the option that decodes it. Returns `None` if the record is of the right kind, or if its kind
    is unknown or ambiguous. In some dialects, all records are of one kind, even if a record
    can also be decoded as another kind.
    """
    wanted = payload.kind
    if wanted and dialect in wanted.dialects:
        return None
    fits = [kind for kind in kinds_of(record, dialect) if kind != wanted]
    return _advice(fits[0]) if len(fits) == 1 else None


def _advice(kind: Kind) -> str:
    return f"{kind.title}: --as {kind.best}"


def other_kind(options: argparse.Namespace, is_full: Callable[[], bool]) -> Callable[[str], str | None] | None:
    """Returns the `other_kind` argument of `for_each_source`, or `None` if `--as` accepts records of every kind.

    Once enough rows have been read, no more logs are opened.
    """
    if options.payload == AUTO:
        return lambda _: None
    wanted = PAYLOADS[options.payload].kind if options.payload else None
    if wanted is None:
        return None

    def other_kind_of(name: str) -> str | None:
        if is_full():
            return None
        found = payloads.other_kind(name, wanted, **options.log)
        return _advice(found) if found else None

    return other_kind_of


LOST_EDITS = (
    "records were lost: its live files and column families may be wrong, and a database opened with it may lose more"
)
"""The text for a damaged MANIFEST, whose records state which files and column families were added or removed."""

UNKNOWN_EDITS = "edits with unknown tags, as a newer Pebble writes them, are not decoded: its live files may be wrong"
"""The text for an undamaged MANIFEST with unknown edits."""


def hint_at_payload(files: Iterable[Input], options: argparse.Namespace) -> None:
    """Suggests how to decode the first log's records, if their kind is known.

    Nothing is printed unless stderr is a terminal.
    """
    if _messages.is_quiet or not sys.stderr.isatty():
        return
    for file in files:
        # Opening a pipe again would wait for another writer.
        if not os.path.isfile(file.name):
            continue
        # An unreadable log has already been reported.
        with contextlib.suppress(OSError, cordwood.CordwoodError):
            with cordwood.Reader(file.name, on_corruption="skip", **options.log) as reader:
                kind, has_records = kind_of_records(file.name, reader)
            if has_records and kind:
                complain(f"{display_name(file.name)}: the first record is {_advice(kind)} decodes it")
            if has_records:
                return


def report_payload(name: str, payload: Payload | None, *, has_records: bool = True) -> None:
    """Reports which kind of records a log is assumed to contain."""
    why = "its first record does not have exactly one known form" if has_records else "there are no records"
    text = f"read with --as {payload.name}" if payload else f"read as bytes: {why}"
    complain(f"{display_name(name)}: {text}")
