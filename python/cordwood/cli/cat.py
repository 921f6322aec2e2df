"""Print the records of logs.

Damage is reported on stderr, the records after it are still printed, and the exit status is 3. The status is also 3 if
an export has an empty file, if an export has fewer bytes than its metadata states, or if a whole file belongs to
another log. The records of such a file are not printed. If a file grows while it is being read, printing stops near its
original end. On a terminal, control characters are escaped, except with --format raw.
"""

from __future__ import annotations

import argparse
import math
import os
import stat
import sys

from cordwood._inputs.input import Input
from cordwood._summary import report_of
from cordwood._text import is_url
from cordwood.cli import _options
from cordwood.cli._directories import report_exports
from cordwood.cli._framing import framed
from cordwood.cli._messages import Status, worst
from cordwood.cli._output import stdout
from cordwood.cli._payloads import hint_at_payload, other_kind
from cordwood.cli._printing import Printer, add_output_arguments, check_output, end_selection
from cordwood.cli._reports import report_left_out
from cordwood.cli._selection import Selection, report_stop
from cordwood.cli._sources import ProgressBar, for_each_source

EXAMPLES = """\
  cordwood cat app.log
  cordwood cat --json app.log | jq .offset
  cordwood cat --as write-batch 000003.log
  cordwood cat --limit 10 app.log
  cordwood cat --format nul old.log | cordwood write --format nul new.log
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `cat`."""
    _options.add_source_arguments(parser, may_be_piped=True)
    add_output_arguments(parser)
    _options.add_reading_arguments(parser)
    _options.add_quiet_argument(parser)


def run(options: argparse.Namespace) -> Status:
    """Prints the records of each source."""
    check_output(options)
    selection = Selection(options)

    def cat(file: Input) -> Status:
        name = file.name
        if selection.is_full:
            return Status.CLEAN
        file_len = _file_len(name)
        reader = _options.reader_of(options, file.opened, options.end)
        status = Status.CLEAN
        position, count = options.start, 0
        with reader, ProgressBar(name, prints_records=True) as progress:
            if options.json or options.payload or selection.is_active:
                print_record = Printer(options, name, reader.dialect, selection)
                for record in reader.records():
                    print_record(record)
                    progress(record.end_offset - position)
                    position = record.end_offset
                    count += 1
                    if selection.is_full:
                        report_stop(name, position, options.limit, "record")
                    if selection.is_full or position >= file_len:
                        break
                print_record.close()
                status = print_record.status
            else:
                for batch in reader.record_batches():
                    if options.format == "raw":
                        sys.stdout.buffer.write(batch.data)
                    else:
                        stdout().write(framed(batch, options.format))
                    progress(reader.tell() - position)
                    position = reader.tell()
                    count += len(batch)
                    if position >= file_len:
                        break
            damage = report_left_out(name, report_of(reader, count), options)
        return max(status, damage)

    tally = for_each_source(options, cat, other_kind=other_kind(options, lambda: selection.is_full))
    end_selection(selection)
    if not options.payload:
        hint_at_payload(tally.files, options)
    return worst(tally.status, report_exports(tally.files))


def _file_len(name: str) -> float:
    """Returns a file's current length, which limits how much is printed.

    The output may be appended to the file being read, as in `cat log | write --append log`. The length isn't passed to
    the reader as `end`, because a reader recognises a recycled log's stale bytes only at the end of the file.
    """
    if name == "-" or is_url(name):
        return math.inf
    status = os.stat(name)
    return status.st_size if stat.S_ISREG(status.st_mode) else math.inf
