"""What the verbs share: sources, exit statuses, what is reported and how."""

from __future__ import annotations

import argparse
import contextlib
import errno
import glob
import os
import re
import stat
import sys
from collections.abc import Callable, Generator, Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol, Self, get_args

import cordwood
from cordwood.typing import DialectName

if TYPE_CHECKING:
    from cordwood.typing import Source


class Output(Protocol):
    """Where data goes: a file, or stdout."""

    def write(self, data: bytes, /) -> int:
        """Writes all of the data."""
        ...

    def flush(self) -> None:
        """Hands what was written on."""


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


class Failure(Exception):  # noqa: N818 - as in `Status.FAILURE`
    """What could not be done, and is no error of the operating system or of a log; the message says all."""


def complain(message: object, *, advice: str | None = None) -> None:
    """Reports something on stderr. An error of the operating system comes with its file and what to do about it."""
    if isinstance(message, OSError) and message.strerror:
        message = f"{_file_of(message)}{message.strerror}{advice or _advice(message)}"
    # On a terminal, what was printed before comes first. If that fails, it is reported when it is tried again.
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    print(f"cordwood: {escaped(str(message))}", file=sys.stderr)


def _file_of(error: OSError) -> str:
    return "" if error.filename is None else f"{error.filename or repr('')}: "


def _advice(error: OSError) -> str:
    if isinstance(error, FileExistsError):
        return "; choose another name, or replace it with --overwrite"
    if isinstance(error, IsADirectoryError):
        return f"; for the files in it: '{error.filename}/*'"
    return ""


# On a terminal --------------------------------------------------------------------------------


def escaped(text: str, kept: str = "") -> str:
    """The text with what is no printable character as in JSON, so that it cannot command a terminal or break a line."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in kept else _escape(character) for character in text
    )


_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escape(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def stdout() -> Output:
    """stdout, for data. On a terminal, control characters are escaped, and what is not UTF-8."""
    return _Terminal() if sys.stdout.isatty() else sys.stdout.buffer


class _Terminal:
    def write(self, data: bytes) -> int:
        text = data.decode("utf-8", "backslashreplace")
        sys.stdout.buffer.write(escaped(text, "\n\t").encode("utf-8"))
        return len(data)

    def flush(self) -> None:
        sys.stdout.buffer.flush()


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
    """`--dialect` and `--log-number`."""
    parser.add_argument(
        "--dialect",
        choices=get_args(DialectName),
        help=what,
    )
    parser.add_argument(
        "--log-number",
        type=_log_number,
        metavar="NUMBER",
        help="which log it is, if neither the file's name nor its first fragment says it",
    )


def _log_number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise argparse.ArgumentTypeError(f"not the number of a log: {text!r}")
    # A header has room for the low half.
    return int(text) & 0xFFFFFFFF


def log_options(options: argparse.Namespace) -> dict[str, Any]:
    """`--dialect` and `--log-number`, as options of what reads or writes a log."""
    return {"dialect": options.dialect, "log_number": options.log_number}


def log_of(read: cordwood.Reader | cordwood.Report | cordwood.Stat) -> cordwood.LogFormat:
    """Which log was read."""
    return cordwood.LogFormat(read.dialect, read.log_number, read.compression)


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """How a log is read."""
    add_dialect_argument(parser, "how the log is laid out; detected from its content if not given")
    add_on_corruption_argument(parser)
    parser.add_argument(
        "--start", type=parse_len, default=0, metavar="OFFSET", help="only what begins at this file offset or after it"
    )
    parser.add_argument("--end", type=parse_len, metavar="OFFSET", help="only what begins before this file offset")


def add_on_corruption_argument(parser: argparse.ArgumentParser) -> None:
    """`--on-corruption`, for verbs that do not end at damage."""
    parser.add_argument(
        "--on-corruption",
        choices=("skip", "stop", "salvage"),
        default="skip",
        help="after damage, continue at the next block, end there, or also look for valid records in the same block "
        "(default: %(default)s)",
    )


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
        help="read with this many threads (default: one for each core)",
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


def source_of(name: str) -> str:
    """The name of a source in JSON: that of the file, character by character."""
    return "<stdin>" if name == "-" else name


def shown(name: str) -> str:
    """The name of a source in lines for people: what is not printable is escaped."""
    return escaped(source_of(name))


def one_source(name: str, command: str) -> str:
    """The one file that a pattern matches.

    Args:
        name: A name or a pattern.
        command: What to do for each file, as it would be typed.

    Raises:
        ValueError: It matches several.
    """
    names = list(_expanded([name]))
    if len(names) > 1:
        raise ValueError(
            f"{name} is {len(names)} files, and only one can be taken; for each of them: "
            f"for f in {name}; do cordwood {command}; done"
        )
    return names[0]


def for_each_source(names: Iterable[str], work: Callable[[str], Status], *, as_json: bool = False) -> Status:
    """Does the work for each source. One that fails does not stop the others; the status is the worst of all.

    With `as_json`, one that fails has an object, too: its `source`, and the `error`.
    """
    statuses = [_attempt(name, work, as_json=as_json) for name in _expanded(names)]
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


def _attempt(name: str, work: Callable[[str], Status], *, as_json: bool) -> Status:
    try:
        return work(name)
    except BrokenPipeError:
        raise
    except OSError as error:
        # stdout: the others would fail in the same way.
        if error.filename is None and name != "-":
            raise
        complain(error)
        text = error.strerror or str(error)
    except cordwood.CordwoodError as error:
        complain(error if error.path else f"{source_of(name)}: {error}")
        text = str(error).removeprefix(f"{error.path}: ")
    if as_json:
        print_json({"source": source_of(name), "error": text})
    return Status.FAILURE


# What a verb reports ---------------------------------------------------------------------------


def print_json(value: object) -> None:
    """One line of JSON, in UTF-8, on stdout. A path that is no text is escaped."""
    from cordwood.cli._json import json_text

    stdout().write((json_text(value) + "\n").encode("utf-8", "backslashreplace"))


def region_fields(region: cordwood.SkippedRegion) -> dict[str, Any]:
    """A skipped region as JSON."""
    flip = region.bit_flip
    return {
        "offset": region.offset,
        "end_offset": region.end_offset,
        "reason": region.reason,
        "severity": region.severity,
        "message": str(region),
        "stored_crc": region.stored_crc,
        "computed_crc": region.computed_crc,
        "bit_flip": flip and {"offset": flip.offset, "bit": flip.bit, "part": flip.part},
    }


def outcome_fields(end: cordwood.Outcome) -> dict[str, Any]:
    """How the records ended, as JSON."""
    return {"kind": end.kind, "offset": end.offset}


def verdict(end: cordwood.Outcome, *, ok: bool) -> str:
    """Whether a log is damaged, in a word or two."""
    if not ok:
        return "DAMAGED"
    return "ok, with a torn tail" if end.kind == cordwood.OutcomeKind.TORN_TAIL else "ok"


def described(region: cordwood.SkippedRegion) -> str:
    """Where a region is, how long, and why it was not returned, in one line."""
    # The text of the region ends in its place.
    reason = re.sub(r" \(\d+ bytes? at offset \d+\)$", "", str(region))
    flip = region.bit_flip
    cause = f"; bit {flip.bit} of the byte at {flip.offset:,} was flipped" if flip else ""
    return f"at {region.offset:,}: {counted(len(region), 'byte')} left out, {reason}{cause}"


REPORTED_MAX = 10
"""So much of what is wrong with a file is reported one by one on stderr, and the rest in one line."""


def report_skipped(name: str, regions: Iterable[cordwood.SkippedRegion]) -> Status:
    """Reports the regions that hold something which was not returned. Damage decides the exit status."""
    status = Status.CLEAN
    count, rest_len = 0, 0
    for region in regions:
        severity = region.severity
        if severity == cordwood.Severity.CORRUPTION:
            status = Status.DAMAGE
        elif severity == cordwood.Severity.INFO:
            continue
        count += 1
        if count <= REPORTED_MAX:
            complain(f"{shown(name)}: {described(region)}")
        else:
            rest_len += len(region)
    if count > REPORTED_MAX:
        rest = f"{counted(count - REPORTED_MAX, 'more region')}, {counted(rest_len, 'byte')} left out"
        complain(f"{shown(name)}: {rest}; to list them: cordwood verify")
    return status


def other_log(source: Source, log: cordwood.LogFormat) -> int | None:
    """The number of another log, if the log begins with a fragment of that."""
    if log.log_number is None:
        return None
    first = next(iter(cordwood.fragments(source, **log._asdict())), None)
    is_stale = first is not None and first.reason == cordwood.Reason.STALE
    return first.log_number if first and is_stale else None


def other_log_text(name: str, own: int | None, number: int, *, is_named: bool) -> str:
    """The message about a file that belongs to another log as a whole."""
    says = f"--log-number says {own}" if is_named else f"the name says {own}"
    return f"{shown(name)}: all of it belongs to log {number}; {says}; to read it: --log-number {number}"


def report_other_log(name: str, own: int | None, number: int | None, options: argparse.Namespace) -> None:
    """Reports such a file on stderr. With `None` there is nothing to report."""
    if number is not None:
        complain(other_log_text(name, own, number, is_named=options.log_number is not None))


def salvageable(
    name: str, count: int, *, policy: str, log: cordwood.LogFormat, start: int = 0, end: int | None = None
) -> int | None:
    """How many more records than `count` the policy "salvage" reads from a log that is damaged.

    The log is read again for this. `None` if that cannot be done, as with a pipe.
    """
    if policy == "salvage":
        return 0
    if name == "-" or not os.path.isfile(name):  # noqa: PTH113 - pathlib is slow to import
        return None
    report = cordwood.verify(
        name, threads=_processors(), on_corruption="salvage", start=start, end=end, **log._asdict()
    )
    return max(0, report.record_count - count)


def policy_note(policy: str, more: int | None) -> str:
    """How damage was treated, and what the policy "salvage" would read besides: `more` is from `salvageable`."""
    note = f"read with the policy {policy}"
    if more is None:
        return f"{note}; more records may be read: --on-corruption salvage"
    records = "1 more record" if more == 1 else f"{more:,} more records"
    return f"{note}; {records} can be read: --on-corruption salvage" if more else note


# What a verb writes ----------------------------------------------------------------------------


def check_destination(source: str, destination: str, *, overwrite: bool) -> None:
    """Whether a new file can have this name. It is asked before the log is read, which may take long.

    Raises:
        FileExistsError: There is a file, and it is not to be replaced.
        ValueError: It is the log itself, or no name at all.
    """
    if not destination:
        raise ValueError("the name of the DESTINATION is empty")
    if destination == "-" or not os.path.lexists(destination):
        return
    if not overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), destination)
    log = os.fstat(sys.stdin.fileno()) if source == "-" else os.stat(source)  # noqa: PTH116
    with contextlib.suppress(FileNotFoundError):  # A link to nothing.
        if os.path.samestat(log, os.stat(destination)):  # noqa: PTH116
            raise ValueError(f"{destination} is the log itself: it would be lost")


@contextlib.contextmanager
def new_file(name: str, *, overwrite: bool = False) -> Generator[Output]:
    """The file to be written; removed, if it does not become whole. Of `-`, stdout.

    With `overwrite`, a file that is there is replaced once the new one is whole.
    """
    if name == "-":
        yield stdout()
    elif overwrite and os.path.isfile(name):  # noqa: PTH113 - pathlib is slow to import
        with replacement(name) as partial, new_file(partial) as file:
            yield file
    else:
        with open(name, "wb" if overwrite else "xb") as file:  # noqa: PTH123
            try:
                yield file
                file.flush()
            except BaseException as error:
                # What is no file of ours stays: a link, a device.
                if stat.S_ISREG(os.lstat(name).st_mode):
                    os.unlink(name)  # noqa: PTH108
                # A failed write has no name of a file. These come from no read.
                if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
                    error.filename = name
                raise


_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextlib.contextmanager
def replacement(name: str) -> Generator[str]:
    """The name of a file that is to be written, and then takes the place of the file `name`, if any, in one step."""
    target = os.path.realpath(name)
    partial = os.path.join(os.path.dirname(target), f".cordwood-{os.urandom(8).hex()}.partial")  # noqa: PTH118, PTH120
    try:
        yield partial
        with contextlib.suppress(FileNotFoundError):
            os.chmod(partial, stat.S_IMODE(os.stat(target).st_mode))  # noqa: PTH101, PTH116
        os.replace(partial, target)  # noqa: PTH105
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)  # noqa: PTH108
        if isinstance(error, OSError) and error.filename == partial:
            error.filename = name
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
        """Adds the number of bytes that have been done since the last call."""
        if self._bar is not None:
            self._bar.update(done_len)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
