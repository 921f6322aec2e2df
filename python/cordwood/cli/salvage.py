"""Write all that can be read of a damaged log to a new log.

The source is not changed. The new log is put on the disk before it gets its name, so what has the name is complete,
also with --overwrite. The report about the source goes to stdout, as `cordwood verify` prints it; exit status 3 if
damage was found in it.

The new log keeps the dialect of the source, its log number, and what the engine wrote for itself. What cannot be kept
is reported. RocksDB and Pebble look for the number of a log in the name of its file, so give the new one the name of
the old, in another folder: under the name of another log they would find no record in it.
"""

from __future__ import annotations

import argparse
import contextlib

import cordwood
from cordwood.cli._messages import Status, complain
from cordwood.cli._options import (
    add_dialect_argument,
    add_record_len_max_argument,
    complete_file_names,
    reading_options,
)
from cordwood.cli._output import check_destination, replacement
from cordwood.cli._progress import Progress
from cordwood.cli._reports import other_log_text
from cordwood.cli._sources import display_name, one_source, stdin_or_path
from cordwood.cli.verify import print_report

EXAMPLES = """\
  cordwood salvage damaged.log clean.log
  cordwood salvage db/000042.log saved/000042.log
"""

NOT_KEPT = {
    "synced_offsets": "the new log does not say how far the old one had been synced: Pebble's types 9 to 12 are 5 to 8",
    "bad_metadata": "the new log is without engine metadata that no engine writes in this form or place",
    "ignored_kinds": "the new log is without the fragments of unknown types that readers may skip",
    "compression": "the new log is not compressed: this build has no zstd",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `salvage` takes."""
    complete_file_names(
        parser.add_argument(
            "source", metavar="SOURCE", help="the damaged log; a pattern that matches one file; - for stdin"
        )
    )
    complete_file_names(parser.add_argument("destination", metavar="DESTINATION", help="the new log"))
    parser.add_argument("--overwrite", action="store_true", help="replace the destination, once the log is complete")
    add_dialect_argument(parser, "how the log is laid out; detected from its content if not given")
    add_record_len_max_argument(parser)
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")


def run(options: argparse.Namespace) -> Status:
    """Salvages the source."""
    if options.destination == "-":
        raise ValueError("a log is salvaged to a file, not to stdout; ./- is a file")
    source = one_source([options.source], 'salvage "$f" "$f.salvaged"')
    check_destination(source, options.destination, overwrite=options.overwrite)
    place = replacement(options.destination) if options.overwrite else contextlib.nullcontext(options.destination)
    try:
        with place as destination, Progress(source) as progress:
            report = cordwood.salvage(stdin_or_path(source), destination, progress=progress, **reading_options(options))
    except cordwood.OtherLogError as error:
        is_named = options.log_number is not None
        complain(other_log_text(source, error.log_number, error.other_log_number, is_named=is_named))
        return Status.FAILURE
    print_report(source, report, options, policy="salvage", more=0)
    for what in report.not_kept:
        complain(f"{display_name(source)}: {NOT_KEPT[what]}")
    return Status.CLEAN if report.ok else Status.DAMAGE
