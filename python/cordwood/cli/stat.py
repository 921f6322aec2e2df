"""Count the records, fragments and bytes of logs.

The exit status is 3 if a log is damaged. `cordwood verify` shows where.

In a directory, all logs are counted, including those in its subdirectories. For other files, only a count is shown. If
there are several logs, their totals come last.
"""

from __future__ import annotations

import argparse

import cordwood
from cordwood import _native
from cordwood._inputs.each import Progress
from cordwood._inputs.input import Input
from cordwood._summary import judged, zeros_at_end, zeros_inside_text
from cordwood._text import display_name, quantity, source_name
from cordwood.cli import _options
from cordwood.cli._messages import Status
from cordwood.cli._output import print_json
from cordwood.cli._reports import format_text, report_other_log, salvaged_text, state_of_log
from cordwood.cli._sources import Tally
from cordwood.cli._terminal import fault_count, print_folded

EXAMPLES = """\
  cordwood stat 000003.log
  cordwood stat database/
  cordwood stat --json *.log *.wandb | jq '.totals.record_count // empty'
"""

_JSON_FIELDS = (
    *("ok", "dialect", "compression", "log_number", "other_log_number", "record_count", "salvaged_count"),
    *("payload_len", "record_len_min", "record_len_mean", "record_len_max"),
    *("full_count", "first_count", "middle_count", "last_count"),
    *("container_count", "container_len", "packed_count", "packed_len"),
    *("block_count", "trailer_len", "skipped_len", "damaged_len", "zeros_inside_len", "file_len"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `stat`."""
    _options.add_source_arguments(parser, may_be_piped=True)
    _options.add_dialect_argument(parser)
    _options.add_options(parser, "--record-len-max", "--threads", "--json")
    _options.add_quiet_argument(parser)


def run(options: argparse.Namespace) -> Status:
    """Counts the contents of each source."""

    def read(file: Input, threads: int, progress: Progress) -> cordwood.Stat:
        stat: cordwood.Stat = _native.stat(file.opened, threads=threads, progress=progress, **options.log)
        return judged(file.name, stat)

    tally = Tally(options.sources, as_json=options.json)
    for file, stat in tally.read(options, read):
        report_other_log(file.name, stat.log_number, stat.other_log_number, options)
        if options.json:
            counts = {name: getattr(stat, name) for name in _JSON_FIELDS}
            print_json({"source": source_name(file.name), **counts, "outcome": stat.outcome._asdict()})
        else:
            _print_text(file, stat)
        tally.add_sums(stat)
        tally.count(Status.CLEAN if stat.ok else Status.DAMAGE)
    return tally.print_totals()


def _print_text(file: Input, stat: cordwood.Stat) -> None:
    """Prints the counts in four lines, along with any notes."""
    if segments := file.segments:
        size = f"{quantity(sum(length for _, length in segments), 'byte')} in {quantity(len(segments), 'segment')}"
    elif stat.file_len is None:
        size = "not read to its end"
    else:
        size = f"{quantity(stat.file_len, 'byte')} in {quantity(stat.block_count or 0, 'block')}"
    end = stat.outcome
    has_records = stat.record_count > 0
    zeros = zeros_at_end(end.zeros_offset, end.offset, has_records=has_records, follow_damage=not stat.ok)
    state = state_of_log(end, zeros, ok=stat.ok, has_zeros_inside=stat.zeros_inside_len > 0)
    print(f"{display_name(file.name)}: {state}, {format_text(stat.dialect, stat.compression)}, {size}")
    lengths = ""
    if stat.record_len_mean is not None:
        lengths = f": from {stat.record_len_min:,} to {stat.record_len_max:,}, {stat.record_len_mean:,.1f} on average"
    print(f"  records    {stat.record_count:,}, {quantity(stat.payload_len, 'byte')}{lengths}")
    print(
        f"  fragments  {stat.full_count:,} full, {stat.first_count:,} first, {stat.middle_count:,} middle, "
        f"{stat.last_count:,} last"
    )
    if stat.container_count:
        mean = f"{stat.packed_count / stat.container_count:,.1f}"
        print_folded(
            f"  containers {stat.container_count:,}, {mean} records on average: {quantity(stat.packed_len, 'byte')} in "
            f"{stat.container_len:,}"
        )
    print(
        f"  others     {quantity(stat.skipped_len, 'byte')} skipped, {fault_count(stat.damaged_len, 'damaged')}; "
        f"{quantity(stat.trailer_len, 'byte')} of trailers"
    )
    if stat.zeros_inside_len:
        print_folded(f"  zeros      {zeros_inside_text(stat.zeros_inside_len)}")
    if zeros:
        print_folded(f"  zeros      {zeros}")
    if stat.salvaged_count:
        print_folded(f"  {salvaged_text(stat.salvaged_count)}")
