"""Cut logs into byte ranges that workers can read independently.

Each record belongs to exactly one range, the one in which it starts. To read a range, use `cordwood cat --start START
--end END SOURCE` or `cordwood.open(source, start=start, end=end)`. Only the start of a log is read, and no file is
written. A log that has a log number (RocksDB or Pebble) is always one range. A message is printed if that range is
longer than --len.

Each range gets a line with its source, start and end, separated by tabs. A name with a tab, a newline or another
control character cannot be shown in this way. Use --json for such names.
"""

from __future__ import annotations

import argparse
import errno

import cordwood
from cordwood._inputs.files import is_stream
from cordwood._inputs.input import Input
from cordwood._text import display_name, escaped
from cordwood.cli import _options
from cordwood.cli._messages import SourceFailure, Status, complain
from cordwood.cli._output import print_json
from cordwood.cli._sources import for_each_source

EXAMPLES = """\
  cordwood split --len 64MiB big.log
  cordwood split --len 1GiB --json *.log
  cordwood split big.log | cut -f 2,3 | xargs -P 8 -n 2 \\
    sh -c 'cordwood cat --start "$0" --end "$1" big.log > part-"$0"'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `split`."""
    _options.add_source_arguments(
        parser, "a log, a regular file or a URL; a directory, for all logs in it; a pattern such as '*.log'"
    )
    _options.add_dialect_argument(
        parser, "how the log is laid out: a file that does not look like a log is then also split"
    )
    parser.add_argument(
        "--len",
        dest="split_len",
        type=_split_len,
        default=64 << 20,
        metavar="LENGTH",
        help=f"the length of a range, rounded up to whole blocks, {_options.BYTES_HELP} (default: 64MiB)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each range")


def _split_len(text: str) -> int:
    length = _options.parse_len(text)
    if not length:
        raise argparse.ArgumentTypeError("a range must have at least 1 byte")
    return length


def run(options: argparse.Namespace) -> Status:
    """Prints the ranges of each source."""

    def split(file: Input) -> Status:
        name = file.name
        if name == "-":
            raise SourceFailure("split takes files, not stdin: copy it to a file; ./- is a file")
        if is_stream(name):
            raise OSError(errno.EINVAL, "only a regular file can be split: copy it to a file", name)
        parts = cordwood.plan_splits([name], options.split_len, **options.log)
        # Ranges are at most --len long, rounded up to whole blocks. A longer range means that the log can't be split.
        if parts and parts[0].end > options.split_len + -options.split_len % cordwood.BLOCK_LEN:
            complain(
                f"{display_name(name)}: one range: a log in the dialect {parts[0].dialect} is read from its start, "
                "since only the part before says where it ends"
            )
        for part in parts:
            if options.json:
                print_json({"source": part.path, "start": part.start, "end": part.end})
            elif escaped(part.path) != part.path:
                raise OSError(errno.EINVAL, "the name has control characters in it, or is not text: use --json", name)
            else:
                print(part.path, part.start, part.end, sep="\t")
        return Status.CLEAN

    return for_each_source(options, split).status
