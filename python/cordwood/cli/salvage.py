"""Write all that can be read of a damaged log to a new log.

The source is not changed. The new log is put on the disk before it gets its name, so what has the name is complete; so
it is with --overwrite. The report about the source goes to stdout, as `cordwood verify` prints it; exit status 3 if
damage was found in it.
"""

from __future__ import annotations

import argparse
import contextlib

import cordwood
from cordwood.cli._common import (
    Progress,
    Status,
    add_dialect_argument,
    check_destination,
    names_file,
    one_source,
    opened,
    replacement,
)
from cordwood.cli.verify import print_report

EXAMPLES = """\
  cordwood salvage damaged.log clean.log
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `salvage` takes."""
    names_file(
        parser.add_argument(
            "source", metavar="SOURCE", help="the damaged log; a pattern that only one matches; - for stdin"
        )
    )
    names_file(parser.add_argument("destination", metavar="DESTINATION", help="the new log"))
    parser.add_argument("--overwrite", action="store_true", help="replace the destination, once the log is complete")
    add_dialect_argument(parser, "how the log is laid out; found out by its content if not given")
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")


def run(options: argparse.Namespace) -> Status:
    """Salvages the source."""
    if options.destination == "-":
        raise ValueError("a log is salvaged to a file, not to stdout; ./- is a file")
    source = one_source(options.source, 'salvage "$f" "$f.salvaged"')
    check_destination(source, options.destination, overwrite=options.overwrite)
    place = replacement(options.destination) if options.overwrite else contextlib.nullcontext(options.destination)
    with place as destination, Progress(source) as progress:
        report = cordwood.salvage(opened(source), destination, dialect=options.dialect, progress=progress)
    print_report(source, report, as_json=options.json, policy="salvage", more=0)
    return Status.CLEAN if report.ok else Status.DAMAGE
