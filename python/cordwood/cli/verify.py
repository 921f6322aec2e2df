"""Check logs and say what is wrong with them.

One line for each log, and below it one for each region that is damaged, incomplete or left over from another log, and
for zeros, up to 1,000. What is no loss is not listed: the header of a file, what an engine wrote for its own use.
--json lists all of it.

Exit status 3 if a log is damaged, or if all of the file belongs to another log, as after it was renamed. An incomplete
record at the end is what a crash leaves. Zeros before more records, or at the end, are space that was never written,
padding, or data that was lost: LevelDB silently skips them. Neither is damage, but with --strict the exit status is
then 3. Zeros that fill the block of the last record, in a file of whole blocks, are taken for padding.

After damage, records in the same block are found and counted, too: what is listed is the damage itself. LevelDB drops
these records, and so do cat and convert, unless --on-corruption says otherwise; a line says how many there are.

With --as write-batch, the log is read again, and the sequence numbers that no batch in it has are listed. They may be
lost, in another log of the database, or of writes without a log. Batches that cannot be decoded are damage, too.

In a folder, all logs are checked, also those in its subfolders; other files are counted. Each database in it has a
line, too, with the files that its engine would miss. Exit status 3 if the engine would refuse it, or lose data. After
several logs, their totals are printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import nullcontext
from typing import NamedTuple

import cordwood
from cordwood._inputs.each import Progress, each
from cordwood._inputs.expand import Input
from cordwood._summary import LogSummary, summary_of_report
from cordwood._text import quantity
from cordwood.cli._batches import Batches, read_batches
from cordwood.cli._folders import print_databases, report_exports
from cordwood.cli._messages import Status, complain
from cordwood.cli._options import (
    ONLY_DAMAGED,
    add_dialect_argument,
    add_quiet_argument,
    add_range_arguments,
    add_record_len_max_argument,
    add_source_arguments,
    add_strict_argument,
    add_threads_argument,
    check_range,
    reading_options,
)
from cordwood.cli._output import print_json
from cordwood.cli._progress import ProgressBar
from cordwood.cli._reports import (
    LISTED_MAX,
    NO_DIALECT,
    is_listed,
    other_log_parts,
    outcome_fields,
    place_text,
    print_more,
    print_repaired,
    reason_text,
    region_fields,
    report_other_log,
    salvaged_text,
    sha256_of,
    state_of_log,
    zeros_text,
)
from cordwood.cli._sources import display_name, inputs_of, reopenable, source_name, stdin_or_path
from cordwood.cli._tally import Tally, report_same, take_results
from cordwood.cli._terminal import print_folded, red

EXAMPLES = """\
  cordwood verify 000003.log
  cordwood verify database/
  cordwood verify --strict exports/
  cordwood verify --as write-batch database/000003.log
  cordwood verify --json database/ |
    jq -r 'select(.ok != true and has("source")).source'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `verify`."""
    add_source_arguments(parser)
    add_dialect_argument(parser, "how the log is laid out; detected from its content if not given")
    add_range_arguments(parser)
    add_record_len_max_argument(parser)
    add_threads_argument(parser)
    add_strict_argument(parser)
    parser.add_argument(
        "--as",
        dest="payload",
        choices=("write-batch",),
        help="also decode the records of a write-ahead log, and list the sequence numbers that no batch has",
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON object for each log, and one with the totals of several"
    )
    add_quiet_argument(parser, ONLY_DAMAGED)


class _Read(NamedTuple):
    """What was read from a log."""

    report: cordwood.Report
    sha256: str | None
    """The SHA-256 of what was read, for JSON."""
    batches: Batches | None
    """With `--as write-batch`, what its write batches show."""


def run(options: argparse.Namespace) -> Status:
    """Checks each source."""
    check_range(options)
    tally = Tally()

    def read(file: Input, threads: int, progress: Progress) -> _Read:
        name = file.name
        # What the batches show needs a second reading.
        with reopenable(name) if options.payload else nullcontext() as again:
            report = cordwood.verify(
                again.open() if again else stdin_or_path(name),
                threads=threads,
                start=options.start,
                end=options.end,
                progress=progress,
                **reading_options(options),
            )
            batches = read_batches(name, again.open(), report, options, progress) if again else None
        sha256 = sha256_of(name, report.file_len, lambda _: progress(0)) if options.json else None
        return _Read(report, sha256, batches)

    def take(name: str, found: _Read) -> Status:
        report, sha256, batches = found
        tally.add_sums(report, report.len_by_severity.get(cordwood.Severity.CORRUPTION, 0))
        summary = summary_of_report(report)
        is_damaged = bool(
            not report.ok or (batches and batches.fault_count) or (options.strict and summary.is_incomplete)
        )
        # Nothing is wrong with a range that contains only an older log.
        is_other = report.other_log_number is not None and not options.start
        if is_damaged or is_other or not options.quiet:
            print_report(
                name,
                report,
                summary,
                options,
                sha256=sha256,
                names_other_log=not options.start,
                must_be_complete=options.strict,
                fields=batches.fields() if batches else None,
            )
            if batches and not options.json:
                batches.print()
        tally.only_other_count += is_other and not is_damaged
        return Status.DAMAGE if is_damaged or is_other else Status.CLEAN

    damaged = "damaged or incomplete" if options.strict else "damaged"
    files = inputs_of(options.sources, same=report_same)
    results = each(files, read, options.threads, dialect=options.dialect, shown=ProgressBar)
    take_results(options.sources, results, take, as_json=options.json, tally=tally)
    status = print_databases(files, as_json=options.json, is_quiet=options.quiet)
    status = status or report_exports(files, must_be_complete=options.strict)
    logs = tally.print_totals(options, names_others=True, damaged=damaged)
    return Status.FAILURE if Status.FAILURE in (logs, status) else max(logs, status)


def print_report(
    name: str,
    report: cordwood.Report,
    summary: LogSummary,
    options: argparse.Namespace,
    *,
    sha256: str | None,
    names_other_log: bool = True,
    must_be_complete: bool = False,
    fields: Mapping[str, object] | None = None,
) -> None:
    """Prints a report on stdout.

    Args:
        name: The name of the log.
        report: What `verify` or `salvage` returned.
        summary: What the report says.
        options: Only `json` and `log_number` are used.
        sha256: The SHA-256 of what was read, for JSON.
        names_other_log: Whether to say that all of the file belongs to another log.
        must_be_complete: Whether an incomplete record at the end, or zeros, are an error.
        fields: Further fields for the end of the JSON object.
    """
    other = report.other_log_number if names_other_log else None
    if options.json:
        if summary.has_no_dialect:
            complain(f"{display_name(name)}: {NO_DIALECT}")
        report_other_log(name, report.log_number, other, options)
        print_json(
            {
                "source": source_name(name),
                "dialect": report.dialect,
                "log_number": report.log_number,
                "other_log_number": report.other_log_number,
                "ok": report.ok and not (must_be_complete and summary.is_incomplete),
                "record_count": report.record_count,
                "salvaged_count": report.salvaged_count,
                "payload_len": report.payload_len,
                "file_len": report.file_len,
                "outcome": outcome_fields(report.outcome),
                "skipped_len": report.skipped_len,
                "len_by_severity": report.len_by_severity,
                "len_by_reason": report.len_by_reason,
                "skipped": [region_fields(region) for region in summary.regions],
                "sha256": sha256,
                "version": cordwood.__version__,
                **(fields or {}),
            }
        )
        return
    # Not "DAMAGED, 1 record", which could be read as the extent of the damage.
    records = ("" if report.ok else "read ") + quantity(report.record_count, "record")
    payload = quantity(report.payload_len, "byte")
    advice = None
    zeros, last_zeros = {region.offset for region in summary.zeros_inside}, summary.zeros_at_end
    if other is None:
        state = state_of_log(
            report.outcome,
            last_zeros,
            ok=report.ok,
            has_zeros_inside=bool(zeros),
            must_be_complete=must_be_complete,
        )
        content = quantity(last_zeros.length, "byte") if last_zeros and last_zeros.is_all else f"{records}, {payload}"
        print(f"{display_name(name)}: {state}, {content}")
    else:
        # Not "ok": it may be a log that was renamed, in which readers find nothing.
        state = "" if report.ok else f"{red('DAMAGED')}, "
        is_named = options.log_number is not None
        why, says, advice = other_log_parts(report.log_number, other, is_named=is_named)
        print(f"{display_name(name)}: {state}{records}; {why}, and {says}")
    own = "" if report.log_number is None else f"; this one is log {report.log_number}"
    listed = [region for region in summary.regions if is_listed(region) or region.offset in zeros]
    for region in listed[:LISTED_MAX]:
        if region.reason == cordwood.Reason.STALE:
            print_folded(f"  {place_text(region)}, left over from another log{own}")
        elif region.offset in zeros:
            print_folded(f"  {zeros_text(region)}")
        else:
            is_damage = region.severity == cordwood.Severity.CORRUPTION
            reason = reason_text(region, names_flip=not summary.has_no_dialect)
            print_folded(f"  {place_text(region)}, {reason}", is_damage=is_damage)
    print_more(report, len(listed))
    print_repaired(report)
    if last_zeros:
        print_folded(f"  {last_zeros}")
    if advice:
        print(f"  {advice}")
    if summary.has_no_dialect:
        print_folded(f"  {NO_DIALECT}")
    if report.salvaged_count:
        print_folded(f"  {salvaged_text(report.salvaged_count)}")
