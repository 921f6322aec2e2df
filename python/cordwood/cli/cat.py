"""Print the records of logs.

Damage is told on stderr, and what is behind it is printed all the same; the exit status is then 3.
"""

from __future__ import annotations

import argparse
import sys

import cordwood
from cordwood.cli._common import (
    Progress,
    Status,
    add_reading_arguments,
    add_source_arguments,
    check_range,
    for_each_source,
    opened,
    other_log,
    tell_other_log,
    tell_skipped,
)
from cordwood.cli._records import add_output_arguments, check_output, joined, json_printer

EXAMPLES = """\
  cordwood cat app.log
  cordwood cat --json app.log | jq .offset
  cordwood cat --as write-batch 000003.log
  cordwood cat --format nul old.log | cordwood write --format nul new.log
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `cat` takes."""
    add_source_arguments(parser)
    add_output_arguments(parser)
    add_reading_arguments(parser)


def run(options: argparse.Namespace) -> Status:
    """Prints the records of each source."""
    check_range(options)
    check_output(options)

    def cat(name: str) -> Status:
        reader = cordwood.Reader(
            opened(name),
            dialect=options.dialect,
            on_corruption=options.on_corruption,
            start=options.start,
            end=options.end,
        )
        status = Status.CLEAN
        position = options.start
        has_records = False
        with reader, Progress(name, prints_records=True) as progress:
            dialect = reader.dialect
            if options.json or options.payload:
                print_record = json_printer(options, name, dialect.name)
                for record in reader.records():
                    has_records = True
                    status = max(status, print_record(record))
                    progress(record.end_offset - position)
                    position = record.end_offset
            else:
                for batch in reader.batches():
                    has_records = True
                    sys.stdout.buffer.write(joined(batch, options.format))
                    progress(reader.tell() - position)
                    position = reader.tell()
        # Of a range that holds only an older log nothing is wrong, and stdin has no name that could be wrong.
        if name != "-" and not (has_records or options.start):
            tell_other_log(name, dialect, other_log(name, dialect), options)
        return max(status, tell_skipped(name, reader.skipped))

    return for_each_source(options.sources, cat)
