"""Write all readable records of damaged logs to new logs.

The source is not changed. The new log is on disk before it gets its name, so a file with that name is complete, even
with --overwrite. The report on the source goes to stdout, as `cordwood verify` prints it. The exit status is 3 if
damage was found.

The new log keeps the source's dialect, log number and engine metadata. Lost properties are reported. RocksDB and Pebble
take a log's number from its file name. Write the new log to another directory, under the same name as the old one. If
the new log's name had another number, the engines wouldn't find any records in it.

If there are several logs, or if SOURCE is a pattern or a directory, DESTINATION is a directory, which is created if it
does not exist. A single log is also salvaged to a directory if DESTINATION is an existing directory or ends in a slash.
The logs keep their names, and their paths relative to the given directory. For a pattern, the paths are relative to the
last directory before the first wildcard. Only logs are written to DESTINATION. A database's other files, such as its
tables and CURRENT, are not copied.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import cordwood
from cordwood import _native
from cordwood._databases import is_without_record
from cordwood._inputs.input import Input
from cordwood._summary import format_of
from cordwood._tables.payloads import VERSION_EDIT, kind_of_records
from cordwood._text import quantity
from cordwood.cli import _options
from cordwood.cli._messages import SourceFailure, Status
from cordwood.cli._new_logs import Copied, add_new_log_arguments, write_each
from cordwood.cli._payloads import LOST_EDITS
from cordwood.cli._reports import other_log_parts, region_fields

EXAMPLES = """\
  cordwood salvage damaged.log clean.log
  cordwood salvage db/000042.log saved/
  cordwood salvage --repair-bit-flips damaged.log repaired.log
  cordwood salvage database/ saved/
"""

NOT_KEPT = {
    "synced_offsets": "the new log does not say how far the old one had been synced: Pebble's types 9 to 12 are 5 to 8",
    "bad_metadata": "the new log is without engine metadata that no engine writes in this form or place",
    "ignored_kinds": "the new log is without the fragments of unknown types that readers may skip",
    "timestamp_sizes": (
        "a record of RocksDB's own with the lengths of timestamps is damaged, or follows damage in its block, and was "
        "left out: with the new log, RocksDB opens without an error and finds no key with a timestamp"
    ),
    "predecessor": (
        "a record of RocksDB's own that names the log before this one is damaged, or follows damage in its block, and "
        "was left out: with the new log, RocksDB cannot notice that the log before it is missing"
    ),
    "version_edit": (
        "no engine opens a database with the new MANIFEST: only the lost records stated the next file number, the log "
        "number or the last sequence number"
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `salvage`."""
    add_new_log_arguments(parser)
    _options.add_dialect_argument(parser)
    _options.add_options(parser, "--record-len-max")
    parser.add_argument(
        "--repair-bit-flips",
        action="store_true",
        help="also write records whose damage one flipped bit explains, with that bit flipped back; such a "
        "record is valid by its checksum, if one bit was flipped",
    )
    _options.add_report_arguments(parser)


def run(options: argparse.Namespace) -> Status:
    """Salvages each source."""

    def copy(file: Input, new: str, progress: Callable[[int], object]) -> Copied:
        source, repair = file.opened, options.repair_bit_flips
        report: cordwood.Report
        try:
            report = _native.salvage(source, new, repair_bit_flips=repair, progress=progress, **options.log)
        except cordwood.OtherLogError as error:
            parts = other_log_parts(error.log_number, error.other_log_number, options)
            # The old records are already in tables, so no advice is needed.
            advised = 2 if is_without_record(file.name, error.log_number) else 3
            raise SourceFailure("; ".join(parts[:advised])) from error
        fields = _fields(report) if options.json else {}
        return Copied(report, quantity(report.record_count, "record"), fields, list(_notes(file.name, new, report)))

    return write_each(options, copy)


def _fields(report: cordwood.Report) -> dict[str, Any]:
    repaired = [region_fields(region) for region in report.repaired]
    return {"repaired_count": report.repaired_count, "repaired": repaired, "not_kept": report.not_kept}


def _notes(name: str, new: str, report: cordwood.Report) -> Iterator[str]:
    """Yields the messages about a new log made from the log `name`."""
    is_opened = "version_edit" not in report.not_kept
    if is_opened and report.damaged_len:
        with cordwood.Reader(new, **format_of(report)._asdict()) as reader:
            kind, _ = kind_of_records(new, reader)
        if kind == VERSION_EDIT or VERSION_EDIT.is_name(name):
            yield LOST_EDITS
    yield from (NOT_KEPT[part] for part in report.not_kept)
