"""Check logs and report their damage.

Each log gets a line. Below it, there is a line for each region that is damaged, incomplete, left over from another log,
or filled with zeros. At most 1,000 regions are listed. Regions without user data (a file header, an engine's metadata)
are not listed. --json lists these too, and is not limited to 1,000 regions.

The exit status is 3 if a log is damaged, or if the whole file belongs to another log, for example because it was
renamed. A crash leaves an incomplete record at the end. Zeros can be unwritten space, padding, or lost data, whether or
not records follow them. LevelDB silently skips zeros. They aren't damage, and neither is an incomplete record at the
end. With --strict, the exit status is 3 in either case. If the file consists of whole blocks, zeros between the last
record and the end of its block are considered padding.

Records that follow damage in the same block are found and counted too. The list therefore shows the damage itself, not
the rest of the block. LevelDB drops these records, and so do cat and convert, unless --on-corruption says otherwise. An
additional line shows the number of these records.

With --as write-batch, the log is read again, and the sequence numbers missing from its batches are listed. Writes with
these numbers may be lost, may be in another log of the database, or may have been made without a log. Batches that
cannot be decoded count as damage.

In a directory, all logs are checked, including those in its subdirectories. Other files are counted. Each database in
the directory also gets a line, followed by any missing files that its engine needs. Each export gets a line, too. The
exit status is 3 if the engine would refuse to open the database or would lose data. It is also 3 if an export has an
empty file or fewer bytes than its metadata states, or if the metadata states a different number of entities. If there
are several logs, their totals come last.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from typing import NamedTuple

import cordwood
from cordwood import _native
from cordwood._inputs.each import Progress
from cordwood._inputs.files import sha256_of
from cordwood._inputs.input import Input
from cordwood._summary import is_incomplete, judged
from cordwood._text import display_name
from cordwood.cli import _options
from cordwood.cli._batches import Batches, read_batches
from cordwood.cli._directories import print_databases, print_exports
from cordwood.cli._messages import Status, complain, worst
from cordwood.cli._reports import print_report
from cordwood.cli._sources import Tally, reopenable

EXAMPLES = """\
  cordwood verify 000003.log
  cordwood verify database/
  cordwood verify --strict exports/
  cordwood verify --as write-batch database/000003.log
  cordwood verify --json logs/ > report.ndjson
  jq -r '.database // .export // . | select(.ok == false or .error)
    | .source // .path' report.ndjson
"""


class _Log(NamedTuple):
    report: cordwood.Report
    sha256: str | None
    batches: Batches | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `verify`."""
    _options.add_source_arguments(parser, may_be_piped=True)
    _options.add_dialect_argument(parser)
    _options.add_options(parser, "--start", "--end", "--record-len-max", "--threads", "--strict")
    parser.add_argument(
        "--as",
        dest="payload",
        choices=("write-batch",),
        help="also decode the records of a write-ahead log, and list the sequence numbers that no batch has",
    )
    _options.add_report_arguments(parser)


def run(options: argparse.Namespace) -> Status:
    """Checks each source."""

    def read(file: Input, threads: int, progress: Progress) -> _Log:
        report: cordwood.Report
        # The log is read a second time for its batches.
        with reopenable(file.name) if options.payload else nullcontext() as again:
            source = again.open() if again else file.opened
            report = _native.verify(
                source, threads=threads, progress=progress, start=options.start, end=options.end, **options.log
            )
            report = judged(file.name, report)
            batches = read_batches(file.name, again.open(), report, options, progress) if again else None
        sha256 = sha256_of(file.name, report.file_len, progress) if options.json else None
        return _Log(report, sha256, batches)

    tally = Tally(options.sources, as_json=options.json, judges_exports=True)
    for file, (report, sha256, batches) in tally.read(options, read):
        is_damaged = not report.ok or bool(batches and batches.fault_count)
        is_damaged |= options.strict and is_incomplete(report)
        # If a range doesn't include the log's start, it may contain only an older log. That isn't a fault.
        is_other = report.other_log_number is not None and not options.start
        if is_damaged or is_other or not options.quiet:
            fields = batches.fields() if batches else {}
            print_report(file.name, report, options, sha256=sha256, **fields)
            if batches and not options.json:
                batches.print()
        tally.add_sums(report)
        tally.count(Status.DAMAGE if is_damaged or is_other else Status.CLEAN)
        tally.other_log_count += is_other and not is_damaged
    if tally.is_one_file and tally.files[0].file_len and not tally.files[0].not_decoded:
        return tally.status
    reported_count = len(tally.failures)
    tally.judge(has_all_records=not options.start and options.end is None)
    failures = tally.failures[reported_count:]
    for name, error in failures:
        complain(error, place=display_name(name))
    databases, database_counts = print_databases(tally.databases, as_json=options.json, is_quiet=options.quiet)
    exports, export_counts = print_exports(tally.exports, tally.files, as_json=options.json, is_quiet=options.quiet)
    adjective = "damaged or incomplete" if options.strict else "damaged"
    counts = {"other_log_count": tally.other_log_count, **database_counts, **export_counts}
    logs = tally.print_totals(names_others=True, damaged=adjective, **counts)
    return worst(Status.FAILURE if failures else logs, databases, exports)
