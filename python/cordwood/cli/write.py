"""Write records from stdin to a log.

Records are written to the file as they arrive, unless --flush says otherwise. It is an error if the log cannot be
written, or if the destination exists and neither --append nor --overwrite is given. If writing to a file fails, a
message on stderr shows how many of the records from stdin are in the log, and where the log ends.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import stat
import sys

import cordwood
from cordwood._inputs.files import is_stream
from cordwood._text import quantity
from cordwood.cli._framing import records_from
from cordwood.cli._messages import Failure, Status, complain
from cordwood.cli._options import add_dialect_argument, parse_len, rare
from cordwood.cli._output import print_json
from cordwood.cli._stdin import stdin

EXAMPLES = """\
  journalctl --output json --follow | cordwood write --append journal.log
  find . -print0 | cordwood write --format nul names.log
  cordwood cat --format len old.log | cordwood write --format len - |
    ssh host 'cat > new.log'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `write`."""
    parser.add_argument("destination", metavar="DESTINATION", help="the log; - for stdout")
    parser.add_argument(
        "--format",
        choices=("lines", "nul", "len"),
        default="lines",
        help="the end of a record: a newline, a NUL, or its 32-bit little-endian length before it "
        "(default: %(default)s)",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--append", dest="mode", action="store_const", const="a", help="append to the log; start it if there is none"
    )
    mode.add_argument("--overwrite", dest="mode", action="store_const", const="w", help="replace an existing file")
    parser.set_defaults(mode="x")
    add_dialect_argument(
        parser,
        "how the log is laid out (default: leveldb; with --append, as the log is)",
        "the number of the log, in the dialects rocksdb, pebble and recyclable: it goes into each fragment, and the "
        "log is never appended to (default: fragments without a number, for any file name)",
    )
    parser.add_argument(
        "--on-torn-tail",
        choices=("refuse", "truncate", "pad"),
        default="refuse",
        help="with --append, if the log ends in an incomplete record: refuse, cut it off, or continue in the next "
        "block (default: %(default)s)",
    )
    parser.add_argument(
        "--segment-len",
        type=parse_len,
        metavar="N",
        help="with --append, the log is a directory of files of at most N bytes, as in 64M (default: it is one file)",
    )
    parser.add_argument(
        "--sync",
        choices=("never", "close", "append"),
        help="wait until the records are on the disk: not at all, at the end, or for each record "
        "(default: close for a file)",
    )
    rare(parser).add_argument(
        "--flush",
        choices=("append", "close"),
        default="append",
        help="hand records to the operating system as they come in, or 256 KiB at a time (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="at the end, how much was written, as one JSON object")


def run(options: argparse.Namespace) -> Status:
    """Writes stdin to the destination."""
    to_stdout = options.destination == "-"
    if to_stdout and (options.json or options.mode == "a" or options.sync not in {None, "never"}):
        raise ValueError("stdout takes records only: no --json, --append or --sync with -")
    if options.on_torn_tail != "refuse" and options.mode != "a":
        raise ValueError("--on-torn-tail applies only to an existing log: add --append")
    if options.segment_len is not None and options.mode != "a":
        raise ValueError("--segment-len starts or continues a segmented log: add --append")
    # If stdin cannot be read, no log is created.
    records = stdin()
    with contextlib.suppress(FileNotFoundError):
        log = os.stat(options.destination)
        if not to_stdout and stat.S_ISREG(log.st_mode) and os.path.samestat(log, os.fstat(records.fileno())):
            raise Failure(f"{options.destination}: input file is output file")
    # Pipes and devices cannot be synced to disk.
    has_disk = not (to_stdout or is_stream(options.destination))
    try:
        writer = cordwood.open(
            sys.stdout.buffer if to_stdout else options.destination,
            options.mode,
            flush=None if to_stdout else options.flush,
            sync=options.sync or ("close" if has_disk else "never"),
            on_torn_tail=options.on_torn_tail,
            segment_len=options.segment_len,
            **options.log,
        )
    except FileExistsError as error:
        advice = "choose another name, or --append to it, or replace it with --overwrite"
        raise Failure(f"{error.filename}: {error.strerror}; {advice}") from error
    start = writer.tell()
    record_count = 0
    try:
        with writer:
            try:
                for some in records_from(records, options.format):
                    record_count += writer.extend(some)
                    if options.flush == "append":
                        writer.flush()
                end_offset = writer.tell()
            except ValueError as error:
                # The input on stdin is not valid. The records before the fault are written.
                complain(error)
                return Status.FAILURE
    except OSError as error:
        if to_stdout or isinstance(error, BrokenPipeError):
            raise
        complain(error)
        _report_written(options, start)
        return Status.FAILURE
    if options.json:
        print_json({"destination": options.destination, "record_count": record_count, "end_offset": end_offset})
    return Status.CLEAN


def _report_written(options: argparse.Namespace, start: int) -> None:
    """Reports how many records, from the file offset `start` onward, were written before the failure.

    The log is read to count the records, because a failed call does not report how many bytes it has written.
    """
    if not (os.path.isfile(options.destination) or os.path.isdir(options.destination)):
        return
    with (
        contextlib.suppress(OSError, cordwood.CordwoodError),
        cordwood.open(options.destination, start=start, **options.log) as log,
    ):
        record_count = sum(1 for _ in log)
        verb = "is" if record_count == 1 else "are"
        count, end = quantity(record_count, "record"), log.tell()
        complain(f"{options.destination}: {count} from stdin {verb} in the log, which ends at {end:,}")
