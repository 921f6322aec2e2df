"""Write a page about the contents of logs and any damage, to keep on file.

The page is a single HTML file. It needs no scripts, other files or network access. It can be printed, and is light or
dark to match the browser. DESTINATION must end in .html or .json. With .json, the same information is written as JSON.

The page states the version, the command, the time and the directory. For each log, it shows a picture and lists the
size, modification time, SHA-256, dialect and counts. For each skipped region, it shows the offsets, the reason, the
flipped bit and the first bytes. For a write-ahead log, it lists the deleted and overwritten keys, with their sequence
numbers and the offset of the older value. Damaged logs come first. Databases and exports in directories are checked as
in `cordwood info`. The page also states its limits, such as 1,000 deleted keys per log.

The logs are read several times, but not changed. The exit status is 3 if a log or database is damaged or an export is
incomplete.
"""

from __future__ import annotations

import argparse
import shlex

from cordwood._evidence.page import counts_text, rank
from cordwood._evidence.reading import evidence_of, reads
from cordwood._text import display_name
from cordwood.cli import _options
from cordwood.cli._messages import Status, complain
from cordwood.cli._output import check_new_file, new_file
from cordwood.cli._sources import Tally
from cordwood.types import LogEvidence

EXAMPLES = """\
  cordwood evidence 000003.log evidence.html
  cordwood evidence Default/IndexedDB/ evidence.html
  cordwood evidence database/ evidence.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `evidence`."""
    _options.add_source_arguments(parser, "a log; a directory, for all logs in it; a pattern such as '*.log'; a URL")
    parser.add_argument("destination", metavar="DESTINATION", help="a new file: .html, or .json")
    parser.add_argument("--overwrite", action="store_true", help="replace the destination, unless it is a log")
    _options.add_dialect_argument(parser, "how the logs are laid out; detected from their content if not given")
    _options.add_options(parser, "--threads")
    _options.add_quiet_argument(parser, ", and no line about the new file")


def run(options: argparse.Namespace) -> Status:
    """Writes the page."""
    destination = options.destination
    if not destination.endswith((".html", ".json")):
        raise ValueError(f"{destination}: the last name is the DESTINATION, and ends in .html or .json")
    if "-" in options.sources:
        raise ValueError("evidence reads a log several times, not stdin: copy it to a file; ./- is a file")
    tally = Tally(options.sources)
    check_new_file(destination, "page", tally.files, overwrite=options.overwrite)
    logs: list[LogEvidence] = []
    for _, log in tally.read(options, reads(**options.log)):
        logs.append(log)
        tally.count(Status.DAMAGE if rank(log.report) == 0 else Status.CLEAN)
    tally.report_rest()
    # `read` has already reported these failures.
    reported_count = len(tally.failures)
    if tally.log_count:
        evidence = evidence_of(tally, logs, shlex.join(options.command))
        text = evidence.json if destination.endswith(".json") else evidence.html
        with new_file(destination, tally.files, overwrite=options.overwrite) as output:
            output.write(text.encode())
        if not options.quiet:
            print(f"wrote {display_name(destination)}: {counts_text(evidence)}")
        for name, reason in evidence.failed[reported_count:]:
            complain(reason, place=display_name(name))
            tally.failed_count += 1
        if tally.status == Status.CLEAN and not evidence.ok:
            return Status.DAMAGE
    return tally.status
