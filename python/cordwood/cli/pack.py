"""Make shorter, packed copies of closed logs, or unpack packed logs.

In a packed log, many records share a fragment and are compressed together. cordwood can read it without any options,
but no other program can. Do not pack the log of a database that you still need to open.

The copy contains every record. If a log is damaged, ends in an incomplete record, or has zeros other than padding at
its end, no log is written, and the exit status is 3. For these logs, use `cordwood salvage`. The new log is on disk
before it gets its name, so a file with that name is complete, even with --overwrite. The old log is not changed.

To unpack a log, use the same verb with --dialect. The verb rejects logs that it could not recreate. These logs have a
log number, individually compressed records, or an engine's metadata. RocksDB and Pebble write such logs. The verb also
rejects run files written by wandb-core before 0.17.6, or by SwanLab before 0.8.0.

As with `cordwood salvage`, DESTINATION is a directory if there are several logs, or if SOURCE is a pattern or a
directory.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import get_args

import cordwood
from cordwood._inputs.files import len_on_disk
from cordwood._inputs.input import Input
from cordwood._text import quantity
from cordwood.cli._messages import SourceFailure, Status
from cordwood.cli._new_logs import Copied, add_new_log_arguments, write_each
from cordwood.cli._options import RECORD_LEN_MAX_HELP, add_options, add_report_arguments
from cordwood.cli._reports import format_text
from cordwood.typing import CompressionName, DialectName

EXAMPLES = """\
  cordwood pack orders-1.log orders-1.packed
  cordwood pack --dialect leveldb orders-1.packed orders-1.log
  cordwood pack wandb/ packed/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `pack`."""
    add_new_log_arguments(parser)
    parser.add_argument(
        "--dialect",
        dest="new_dialect",
        choices=("packed", "leveldb", "wandb", "swanlab"),
        default="packed",
        help="how the new log is laid out (default: %(default)s)",
    )
    parser.add_argument(
        "--compression", choices=("zstd", "none"), help="how a new packed log is compressed (default: zstd)"
    )
    add_options(parser, "--record-len-max", help=f"fail at a longer record; {RECORD_LEN_MAX_HELP}")
    add_report_arguments(parser)
    # The dialect of each source is detected.
    parser.set_defaults(dialect=None, log_number=None)


def run(options: argparse.Namespace) -> Status:
    """Packs each source."""
    dialect = options.new_dialect
    if options.compression == "zstd" and dialect != "packed":
        raise ValueError(f"--compression is for packed logs, and {dialect} logs have none")
    is_stored = options.compression == "none" or dialect != "packed"
    compression: CompressionName | None = None if is_stored else "zstd"

    def copy(file: Input, new: str, progress: Callable[[int], object]) -> Copied:
        try:
            report = cordwood.pack(
                file.opened,
                new,
                dialect=dialect,
                compression=compression,
                record_len_max=options.record_len_max,
                progress=progress,
            )
        except cordwood.DialectError as error:
            if error.format in get_args(DialectName):
                # Otherwise, a source in a directory would be counted as a file that is not a log.
                raise SourceFailure(error.message) from error
            raise
        length = len_on_disk(new)
        old_len = file.file_len or report.file_len
        part = f", {length / old_len:.3f} of {old_len:,}" if old_len else ""
        return Copied(report, f"{format_text(dialect, compression)}, {quantity(length, 'byte')}{part}")

    return write_each(options, copy)
