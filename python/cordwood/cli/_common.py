"""What the verbs share: sources, exit statuses, what is told and how."""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
import re
import stat
import sys
from collections.abc import Callable, Generator, Iterable
from enum import IntEnum
from typing import IO, TYPE_CHECKING, Any, Self

import cordwood

if TYPE_CHECKING:
    from cordwood.typing import Source


class Status(IntEnum):
    """The exit statuses."""

    CLEAN = 0
    """Nothing is wrong."""
    FAILURE = 1
    """It could not be done."""
    USAGE = 2
    """The command line is wrong. argparse exits with it by itself."""
    DAMAGE = 3
    """It was done, and damage was found or data was lost."""
    INTERRUPTED = 130
    """Ctrl-C, as a shell tells it: 128 and the number of the signal."""
    BROKEN_PIPE = 141
    """Nobody reads stdout any more, as a shell tells it."""


def complain(message: object) -> None:
    """Tells the user something on stderr, an error in its shortest form."""
    if isinstance(message, OSError) and message.strerror:
        message = f"{message.filename}: {message.strerror}" if message.filename else message.strerror
    # On a terminal, what was printed before comes first. If that fails, it is told when it is tried again.
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    print(f"cordwood: {message}", file=sys.stderr)


# What a verb reads -----------------------------------------------------------------------------


def names_file(action: argparse.Action) -> None:
    """Says that an argument is a file, for the completion scripts of shtab, which asks `complete`."""
    # None, if it was looked for and is not there.
    if shtab := sys.modules.get("shtab"):
        action.complete = shtab.FILE  # type: ignore[attr-defined]


def add_source_arguments(
    parser: argparse.ArgumentParser, what: str = "a log; a pattern such as '*.log' for several; - for stdin"
) -> None:
    """The sources of a verb that takes several."""
    names_file(parser.add_argument("sources", nargs="+", metavar="SOURCE", help=what))


def add_dialect_argument(parser: argparse.ArgumentParser, what: str) -> None:
    """`--dialect`."""
    parser.add_argument(
        "--dialect",
        choices=("leveldb", "rocksdb", "pebble", "recyclable", "wandb", "wandb_old", "swanlab"),
        help=what,
    )
    parser.add_argument(
        "--log-number",
        type=_log_number,
        metavar="NUMBER",
        help="with --dialect: which log it is, if neither the file's name nor its first fragment says it",
    )


def _log_number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise argparse.ArgumentTypeError(f"not the number of a log: {text!r}")
    # A header has room for the low half.
    return int(text) & 0xFFFFFFFF


def number_dialect(options: argparse.Namespace) -> None:
    """Makes one `dialect` of `--dialect` and `--log-number`.

    Raises:
        ValueError: There is no dialect, or its logs have no number.
    """
    number = getattr(options, "log_number", None)
    if number is None:
        return
    if options.dialect is None:
        raise ValueError("--log-number goes with --dialect")
    options.dialect = cordwood.Dialect(options.dialect, log_number=number)


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """How a log is read."""
    add_dialect_argument(parser, "how the log is laid out; found out by its content if not given")
    parser.add_argument(
        "--on-corruption",
        choices=("skip", "stop", "salvage"),
        default="skip",
        help="go on behind damage at the next block, end there, or look for sound records in the same block "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--start", type=parse_len, default=0, metavar="OFFSET", help="only what begins at this file offset or behind"
    )
    parser.add_argument("--end", type=parse_len, metavar="OFFSET", help="only what begins before this file offset")


def check_range(options: argparse.Namespace) -> None:
    """Whether there can be anything between `--start` and `--end`.

    Raises:
        ValueError: There cannot.
    """
    if options.end is not None and options.end < options.start:
        raise ValueError(f"--end {options.end} is in front of --start {options.start}")


THREADS_MAX = 256
"""The library takes no more."""


def add_threads_argument(parser: argparse.ArgumentParser) -> None:
    """`--threads`."""
    parser.add_argument(
        "--threads",
        type=_thread_count,
        default=_processors(),
        metavar="COUNT",
        help="read in so many threads (default: all)",
    )


def _thread_count(text: str) -> int:
    count = int(text) if re.fullmatch(r"[0-9]{1,3}", text) else 0
    if not 1 <= count <= THREADS_MAX:
        raise argparse.ArgumentTypeError(f"a number of threads from 1 to {THREADS_MAX} is needed, not {text!r}")
    return count


def _processors() -> int:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, THREADS_MAX)


LEN_MAX = (1 << 63) - 1
"""No file is longer."""


def parse_len(text: str) -> int:
    """A number of bytes: `10`, `64k`, `64KiB`, `1G`. The units are powers of 1024."""
    match = re.fullmatch(r"(\d+)\s*(?:([kmgt])(?:ib)?|b)?", text.strip(), re.ASCII | re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"not a number of bytes: {text!r} (try 4096, 64KiB or 1GiB)")
    number, unit = match.groups()
    length = int(number) << (10 * (1 + "kmgt".index(unit.lower())) if unit else 0)
    if length > LEN_MAX:
        raise argparse.ArgumentTypeError(f"more bytes than a file can have: {text!r}")
    return length


def opened(name: str) -> Source:
    """What a reader takes for a source that the user named."""
    return sys.stdin.buffer if name == "-" else name


def counted(count: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shown(name: str) -> str:
    """The name of a source in messages and reports."""
    return "<stdin>" if name == "-" else name


def one_source(name: str) -> str:
    """The one file that a pattern matches.

    Raises:
        ValueError: It matches several.
    """
    names = list(_expanded([name]))
    if len(names) > 1:
        raise ValueError(f"{name} is {len(names)} files, and only one can be taken")
    return names[0]


def for_each_source(names: Iterable[str], work: Callable[[str], Status]) -> Status:
    """Does the work for each source. One that fails does not stop the others; the status is the worst of all."""
    statuses = [_attempt(name, work) for name in _expanded(names)]
    return Status.FAILURE if Status.FAILURE in statuses else max(statuses)


def _expanded(names: Iterable[str]) -> Iterable[str]:
    """The names with patterns replaced by what they match: not every shell does it. A file of that name comes first."""
    for name in names:
        is_pattern = name != "-" and glob.has_magic(name) and not os.path.lexists(name)
        if is_pattern and (matches := sorted(glob.glob(name, recursive=True))):  # noqa: PTH207 - keeps names as given
            # A file of the name `-` is not stdin.
            yield from ("./-" if match == "-" else match for match in matches)
        else:
            yield name


def _attempt(name: str, work: Callable[[str], Status]) -> Status:
    try:
        return work(name)
    except BrokenPipeError:
        raise
    except OSError as error:
        # stdout: the others would fail in the same way.
        if error.filename is None and name != "-":
            raise
        complain(error)
    except cordwood.CordwoodError as error:
        complain(error if error.path else f"{shown(name)}: {error}")
    return Status.FAILURE


# What a verb tells -----------------------------------------------------------------------------


def print_json(value: object) -> None:
    """One line of JSON, in UTF-8, on stdout. A path that is no text is escaped."""
    from cordwood.cli._json import json_text

    sys.stdout.buffer.write((json_text(value) + "\n").encode("utf-8", "backslashreplace"))


def region_fields(region: cordwood.SkippedRegion) -> dict[str, Any]:
    """A skipped region as JSON."""
    flip = region.bit_flip
    return {
        "begin": region.begin,
        "end": region.end,
        "reason": region.reason,
        "severity": region.severity,
        "message": str(region),
        "stored": region.stored,
        "computed": region.computed,
        "bit_flip": flip and {"offset": flip.offset, "bit": flip.bit, "part": flip.part},
    }


def end_fields(end: cordwood.End) -> dict[str, Any]:
    """How the records ended, as JSON."""
    return {"kind": end.kind, "offset": end.offset}


def verdict(end: cordwood.End, *, ok: bool) -> str:
    """Whether a log is damaged, in a word or two."""
    if not ok:
        return "DAMAGED"
    return "ok, with a torn tail" if end.kind == cordwood.EndKind.TORN_TAIL else "ok"


def tell_skipped(name: str, regions: Iterable[cordwood.SkippedRegion]) -> Status:
    """Tells of each region that holds something which was not returned. Damage decides the exit status."""
    status = Status.CLEAN
    for region in regions:
        if region.severity != cordwood.Severity.INFO:
            complain(f"{shown(name)}: {region}")
        if region.severity == cordwood.Severity.CORRUPTION:
            status = Status.DAMAGE
    return status


def other_log(source: Source, dialect: cordwood.Dialect) -> int | None:
    """The number of another log, if the log begins with a fragment of that."""
    if dialect.log_number is None:
        return None
    first = next(iter(cordwood.fragments(source, dialect=dialect)), None)
    is_stale = first is not None and first.reason == cordwood.Reason.STALE
    return first.log_number if first and is_stale else None


def other_log_text(name: str, dialect: cordwood.Dialect, number: int, *, is_named: bool) -> str:
    """What to tell of a file all of which belongs to another log than the one that is looked for."""
    own = f"--log-number says {dialect.log_number}" if is_named else f"the name says {dialect.log_number}"
    option = f"--dialect {dialect.name} --log-number {number}"
    return f"{shown(name)}: all of it belongs to log {number}; {own}; to read it: {option}"


def tell_other_log(name: str, dialect: cordwood.Dialect, number: int | None, options: argparse.Namespace) -> None:
    """Tells of such a file on stderr. With `None` there is nothing to tell."""
    if number is not None:
        complain(other_log_text(name, dialect, number, is_named=options.log_number is not None))


# What a verb writes ----------------------------------------------------------------------------


@contextlib.contextmanager
def new_file(name: str, *, overwrite: bool = False) -> Generator[IO[bytes]]:
    """The file to be written; removed, if it does not become whole. Of `-`, stdout."""
    if name == "-":
        yield sys.stdout.buffer
        return
    with open(name, "wb" if overwrite else "xb") as file:  # noqa: PTH123 - pathlib is slow to import
        try:
            yield file
            file.flush()
        except BaseException:
            # What is no file of ours stays: a link, a device.
            if stat.S_ISREG(os.lstat(name).st_mode):
                os.unlink(name)  # noqa: PTH108
            raise


# While it works --------------------------------------------------------------------------------


class Progress:
    """A bar on stderr with rate and time left, once the work takes longer than a second.

    Only on a terminal, and only where tqdm is installed (the extra `cli`). Where records go to the same terminal, they
    are the progress.
    """

    def __init__(self, name: str, *, prints_records: bool = False) -> None:
        self._bar: Any = None
        if not sys.stderr.isatty() or (prints_records and sys.stdout.isatty()):
            return
        try:
            from tqdm import tqdm
        except ImportError:
            return
        total = None if name == "-" else os.stat(name).st_size  # noqa: PTH116 - pathlib is slow to import
        self._bar = tqdm(
            total=total, desc=shown(name), delay=1, leave=False, unit="B", unit_scale=True, unit_divisor=1024
        )

    def __call__(self, done_len: int) -> None:
        """So many bytes more are done."""
        if self._bar is not None:
            self._bar.update(done_len)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
