"""Print each record of a log as soon as it has been completely written.

Without --timeout, it runs until you press Ctrl-C. To continue later, pass the end_offset of the last record as --start.
--json prints this offset.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time

import cordwood
from cordwood._inputs.files import is_directory_of_logs
from cordwood.cli import _options
from cordwood.cli._messages import Failure, Status, complain, hint_of
from cordwood.cli._printing import Printer, add_output_arguments, check_output, end_selection
from cordwood.cli._reports import other_log_parts
from cordwood.cli._selection import Selection, report_stop
from cordwood.cli._sources import is_stream
from cordwood.types import Reason, WaitReason

EXAMPLES = """\
  cordwood follow live.log
  cordwood follow --limit 1 live.log
  cordwood follow --json --timeout 10 --start 65536 live.log
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `follow`."""
    parser.add_argument("source", metavar="SOURCE", help="the log: a file, or the directory of a segmented log")
    add_output_arguments(parser)
    _options.add_dialect_argument(parser)
    _options.add_options(parser, "--start", "--record-len-max")
    parser.add_argument(
        "--on-rotation",
        choices=["stop", "reopen"],
        default="stop",
        help="once the path names another file, or none, and everything in the old one has been printed: end, or "
        "continue with the next file under the path, from its start, which misses a file that had the path for "
        "less than about 0.05 seconds (default: stop)",
    )
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="end after this long without a record")


def run(options: argparse.Namespace) -> Status:
    """Prints the records of the source as they arrive."""
    check_output(options)
    if is_directory_of_logs(options.source):
        raise Failure(
            f"{options.source}: {os.strerror(errno.EISDIR)}; follow takes one file, or the directory of a segmented log"
        )
    if options.source == "-":
        raise Failure("<stdin>: follow takes the name of one file, not stdin; cordwood cat - reads it; ./- is a file")
    if is_stream(options.source):
        what = "only a regular file can be followed, and this is a pipe or a device; cordwood cat reads it"
        raise Failure(f"{options.source}: {what}")
    selection = Selection(options)
    print_record = None
    status = Status.CLEAN
    with cordwood.follow(
        options.source,
        start=options.start,
        timeout=options.timeout,
        # The error explains why no more records are returned.
        on_rotation="raise" if options.on_rotation == "stop" else "reopen",
        **options.log,
    ) as follower:
        is_log = _may_be_log(options, follower)
        records = follower.records()
        while True:
            try:
                record = next(records)
            except StopIteration:
                # Apparent damage is read again before it is reported, even after the timeout. Otherwise, the loop would
                # end without reporting it.
                if follower.waiting and follower.waiting.reason == WaitReason.SUSPECT:
                    time.sleep(follower.delay)
                    continue
                break
            except cordwood.LogRotatedError as error:
                complain(error)
                break
            except (cordwood.CorruptionError, cordwood.RecordTooLargeError) as error:
                if follower.tell() <= error.offset:
                    # The record was refused but not skipped, so the next step would raise the same error.
                    raise
                complain(error)
                status = Status.DAMAGE
                continue
            # The dialect cannot be detected before the first record.
            print_record = print_record or Printer(options, options.source, follower.dialect, selection)
            print_record(record)
            status = max(status, print_record.status)
            sys.stdout.flush()
            if selection.is_full:
                report_stop(options.source, record.end_offset, options.limit, "record")
                break
    end_selection(selection)
    # Damage or a record is better evidence of a log than the start of the file.
    return status if is_log or print_record or status else Status.FAILURE


_MAY_BECOME_LOGS = {
    "text": "the file is text",
    "unknown": "the file is in an unknown format, without a valid fragment or the header of a log",
}
"""The message for each format without a signature. Such a file may still become a log as it grows."""


def _may_be_log(options: argparse.Namespace, follower: cordwood.Follower) -> bool:
    """Checks whether the bytes so far may be the start of a log. If not, reports the file's format.

    A follower refuses a file in another format only if that format has a signature. Otherwise, it waits for more bytes.
    It also waits if the file contains the remainder of another log. If the file was renamed, the follower would wait
    forever without a message.
    """
    if not os.path.isfile(options.source):
        return True
    if options.dialect:
        log = cordwood.LogFormat(follower.dialect, follower.log_number)
    else:
        try:
            detected = cordwood.detect(options.source)
        except cordwood.DialectError as error:
            if error.format not in _MAY_BECOME_LOGS:
                return True
            complain(f"{options.source}: no record so far: {_MAY_BECOME_LOGS[error.format]}; {hint_of(error)}")
            return False
        if detected is None:
            return True
        log = detected if options.log_number is None else detected._replace(log_number=options.log_number)
    first = None if log.log_number is None else next(iter(cordwood.fragments(options.source, **log._asdict())), None)
    if first and first.reason == Reason.STALE and first.log_number is not None:
        _, says, hint = other_log_parts(log.log_number, first.log_number, options)
        complain(f"{options.source}: no record so far: it starts with log {first.log_number}; {says}; {hint}")
    return True
