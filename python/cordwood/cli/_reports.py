"""What a verb says about a log: its state, its damage, and what could still be read."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import cordwood
from cordwood._text import quantity
from cordwood.cli._expansion import is_one_file
from cordwood.cli._messages import REPORTED_MAX, Status, complain, with_options
from cordwood.cli._named import Named, display_name, is_stream
from cordwood.cli._options import processor_count
from cordwood.cli._output import print_json
from cordwood.cli._recognition import NO_FRAGMENT
from cordwood.cli._sources import Tally, for_each_source
from cordwood.cli._terminal import WIDTH, print_folded, red
from cordwood.cli._zeros import ZerosAtEnd, zeros_at_end, zeros_inside, zeros_inside_text

if TYPE_CHECKING:
    from cordwood.typing import Source


def format_of(read: cordwood.Reader | cordwood.Report | cordwood.Stat) -> cordwood.LogFormat:
    """Which log was read."""
    return cordwood.LogFormat(read.dialect, read.log_number, read.compression)


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
    return {"kind": end.kind, "offset": end.offset, "zeros_offset": end.zeros_offset}


def state_of_log(
    end: cordwood.Outcome,
    *,
    ok: bool,
    must_be_complete: bool = False,
    has_zeros_inside: bool = False,
    zeros: ZerosAtEnd | None = None,
) -> str:
    """Whether a log is damaged, in a few words, for stdout. `zeros` are those at its end."""
    if not ok:
        return red("DAMAGED")
    if zeros and zeros.is_all:
        return f"{red('INCOMPLETE')}, only zeros" if must_be_complete else "only zeros"
    places = [*(["inside"] if has_zeros_inside else []), *(["at the end"] if zeros and not zeros.is_padding else [])]
    found = [f"zeros {' and '.join(places)}"] if places else []
    if end.kind == cordwood.OutcomeKind.TORN_TAIL:
        found.append("a torn tail")
    if not found:
        return "ok"
    return f"{red('INCOMPLETE') if must_be_complete else 'ok'}, with {' and '.join(found)}"


def zeros_text(region: cordwood.SkippedRegion) -> str:
    """What is said of zeros that a record follows."""
    return f"at {region.offset:,}: {zeros_inside_text(len(region))}"


def place_text(region: cordwood.SkippedRegion) -> str:
    """Where a region is, and how long."""
    return f"at {region.offset:,}: {quantity(len(region), 'byte')}"


def reason_text(region: cordwood.SkippedRegion, *, names_flip: bool = True) -> str:
    """Why a region was not returned, with the bit that was flipped, if that explains it and is to be named."""
    # The text of the region ends with its place.
    reason = with_options(re.sub(r" \(\d+ bytes? at offset \d+\)$", "", str(region)))
    flip = region.bit_flip
    if flip is None or not names_flip:
        return reason
    # The bit says more than the two checksums.
    return f"{reason.partition(': ')[0]}: bit {flip.bit} of byte {flip.offset:,} was flipped"


LISTED_MAX = 1_000
"""At most this many regions of a log are listed on stdout; `--json` lists more."""


_LISTED = (cordwood.Reason.STALE, cordwood.Reason.UNKNOWN_VERSION)


def is_listed(region: cordwood.SkippedRegion) -> bool:
    """Whether reports on stdout list a region: it is no part of a log as this version of cordwood knows it."""
    return region.severity != cordwood.Severity.INFO or region.reason in _LISTED


def print_more(report: cordwood.Report, count: int) -> None:
    """Prints how many regions are not among the `count` that are listed, if any, and how to list them."""
    if count <= LISTED_MAX:
        return
    more = quantity(count - LISTED_MAX, "more region")
    # The report itself has the first 100,000.
    is_cut = sum(map(len, report.skipped)) < report.skipped_len
    print(f"  and {'at least ' if is_cut else ''}{more}; to list them: cordwood verify --json")


def print_repaired(report: cordwood.Report) -> None:
    """Prints the fragments that were repaired, and which bit was flipped back."""
    for region in report.repaired[:LISTED_MAX]:
        print_folded(f"  {place_text(region)} repaired, {reason_text(region)}")


NO_DIALECT = "nothing shows its dialect, so it was read as leveldb: if it is another, name it with --dialect"
"""What is said of a damaged log for which `is_undetected` is true."""


def is_undetected(
    name: str,
    dialect: str,
    count: int,
    regions: Iterable[cordwood.SkippedRegion],
    *,
    ok: bool,
    options: argparse.Namespace,
) -> bool:
    """Whether nothing in a damaged log shows its dialect: it may be in another than the one it was read in.

    In another dialect, headers have other lengths, and the same bytes can look as if a bit of a length had been
    flipped. A flipped bit elsewhere shows the dialect. For what can be read only once, `False` is returned.

    Args:
        name: The name of the log.
        dialect: The one it was read in.
        count: How many records were read.
        regions: What was not returned.
        ok: Whether there was no damage.
        options: Only `dialect` is used, if the verb has it.
    """
    if ok or count or dialect != "leveldb" or getattr(options, "dialect", None) or is_stream(name):
        return False
    with contextlib.suppress(OSError, cordwood.CordwoodError):
        if cordwood.detect(name) is None:
            flips = (region.bit_flip for region in regions)
            return not any(flip and flip.part != cordwood.FragmentPart.LENGTH for flip in flips)
    return False


class Skipped(NamedTuple):
    """What a reader has not returned so far."""

    regions: Sequence[cordwood.SkippedRegion]
    """The first 100,000 regions."""
    skipped_len: int
    """Bytes in all regions, listed or not."""
    ok: bool
    """Whether no region is damage, listed or not."""
    is_torn: bool
    """Whether the log ends with an incomplete record."""
    zeros: Sequence[cordwood.SkippedRegion]
    """The listed regions of zeros that a record follows."""
    zeros_at_end: ZerosAtEnd | None
    """The zeros at the end of the file, unless they are padding."""

    @property
    def is_incomplete(self) -> bool:
        """Whether `--strict` fails on the log, damaged or not."""
        return self.is_torn or bool(self.zeros) or self.zeros_at_end is not None


def skipped_by(reader: cordwood.Reader, record_count: int) -> Skipped:
    """What a reader, which has returned this many records, has not returned so far."""
    regions, end = reader.skipped, reader.outcome
    is_torn = end.kind == cordwood.OutcomeKind.TORN_TAIL
    zeros = zeros_at_end(end, record_count)
    if zeros and zeros.is_padding:
        zeros = None
    return Skipped(regions, reader.skipped_len, reader.ok, is_torn, zeros_inside(regions, reader.tell()), zeros)


def report_skipped(name: str, skipped: Skipped, *, names_flips: bool = True) -> Status:
    """Reports the regions that contain something that was not returned. Damage decides the exit status."""
    # There may be 100,000: what is the same for each is looked up once.
    info, unknown_version = cordwood.Severity.INFO, cordwood.Reason.UNKNOWN_VERSION
    zeros = {region.offset for region in skipped.zeros}
    count, rest_len = 0, 0
    for region in skipped.regions:
        is_zeros = region.offset in zeros
        if region.reason is unknown_version:
            complain(f"{display_name(name)}: {reason_text(region)}; its records are read")
        if region.severity is info and not is_zeros:
            continue
        count += 1
        if count <= REPORTED_MAX:
            reason = reason_text(region, names_flip=names_flips)
            what = zeros_text(region) if is_zeros else f"{place_text(region)} left out, {reason}"
            complain(f"{display_name(name)}: {what}")
        else:
            rest_len += len(region)
    if count > REPORTED_MAX:
        rest = f"{quantity(count - REPORTED_MAX, 'more region')}, {quantity(rest_len, 'byte')} left out"
        complain(f"{display_name(name)}: {rest}; to list them: cordwood verify")
    if skipped.zeros_at_end:
        complain(f"{display_name(name)}: {skipped.zeros_at_end}")
    if (skipped.is_torn or not skipped.ok) and sum(map(len, skipped.regions)) < skipped.skipped_len:
        regions = quantity(len(skipped.regions), "region")
        complain(f"{display_name(name)}: more than {regions} were left out; for the totals: cordwood verify --json")
    return Status.CLEAN if skipped.ok else Status.DAMAGE


def other_log(source: Source, log: cordwood.LogFormat) -> int | None:
    """The number of another log, if the file begins with a fragment of it."""
    if log.log_number is None:
        return None
    first = next(iter(cordwood.fragments(source, **log._asdict())), None)
    is_stale = first is not None and first.reason == cordwood.Reason.STALE
    return first.log_number if first and is_stale else None


def other_log_text(name: str, own: int | None, number: int, *, is_named: bool) -> str:
    """The message about a file that belongs entirely to another log."""
    return f"{display_name(name)}: {'; '.join(other_log_parts(own, number, is_named=is_named))}"


def other_log_parts(own: int | None, number: int, *, is_named: bool) -> tuple[str, str, str]:
    """Why no record of such a file is returned, and what to do."""
    says = f"--log-number says {own}" if is_named else f"the name says {own}"
    return f"all of it belongs to log {number}", says, f"to read it: --log-number {number}"


def report_other_log(name: str, own: int | None, number: int | None, options: argparse.Namespace) -> None:
    """Reports such a file on stderr. With `None` there is nothing to report."""
    if number is not None:
        complain(other_log_text(name, own, number, is_named=options.log_number is not None))


def salvageable_count(
    name: str,
    count: int,
    *,
    threads: int,
    policy: str,
    log: cordwood.LogFormat,
    record_len_max: int,
    start: int = 0,
    end: int | None = None,
    on_read: Callable[[int], object] | None = None,
) -> int | None:
    """How many more records than `count` the policy "salvage" reads from a log that is damaged.

    The log is read again for this. `None` if that cannot be done, as with a pipe. `on_read` is called with the number
    of bytes of each read.
    """
    if policy == "salvage":
        return 0
    if name == "-" or not os.path.isfile(name):  # noqa: PTH113 - pathlib is slow to import
        return None
    report = cordwood.verify(
        name,
        threads=threads,
        on_corruption="salvage",
        record_len_max=record_len_max,
        start=start,
        end=end,
        progress=on_read,
        **log._asdict(),
    )
    return max(0, report.record_count - count)


def sha256_of(name: str, length: int | None, on_read: Callable[[int], object] | None = None) -> str | None:
    """The SHA-256 of the first `length` bytes of a file. `None` if it is not a regular file, or has become shorter.

    `on_read` is called with the number of bytes of each read.
    """
    if length is None or name == "-" or not os.path.isfile(name):  # noqa: PTH113 - pathlib is slow to import
        return None
    import hashlib

    digest = hashlib.sha256()
    with open(name, "rb", buffering=0) as file:  # noqa: PTH123
        while length > 0:
            piece = file.read(min(length, _HASHED_LEN))
            if not piece:
                return None
            if on_read:
                on_read(len(piece))
            digest.update(piece)
            length -= len(piece)
    return digest.hexdigest()


_HASHED_LEN = 1 << 20


def report_left_out(
    name: str, log: cordwood.LogFormat, count: int, skipped: Skipped, options: argparse.Namespace, *, end: int | None
) -> Status:
    """Reports what a verb left out of a log from which it read `count` records, and what would return more.

    Reading ended at the file offset `end`, if that is given. The status is `DAMAGE` also if all of the file was left
    out because it belongs to another log.
    """
    has_no_dialect = is_undetected(name, log.dialect, count, skipped.regions, ok=skipped.ok, options=options)
    status = report_skipped(name, skipped, names_flips=not has_no_dialect)
    if has_no_dialect:
        complain(f"{display_name(name)}: {NO_DIALECT}")
    if status == Status.DAMAGE:
        more = salvageable_count(
            name,
            count,
            threads=processor_count(),
            policy=options.on_corruption,
            log=log,
            record_len_max=options.record_len_max,
            start=options.start,
            end=end,
        )
        complain(f"{display_name(name)}: {policy_note(options.on_corruption, more)}")
    # Nothing is wrong with a range that contains only an older log.
    if not (count or options.start or is_stream(name)) and (other := other_log(name, log)) is not None:
        report_other_log(name, log.log_number, other, options)
        return Status.DAMAGE
    return status


def policy_note(policy: str, more: int | None) -> str:
    """How damage was treated, and what more the policy "salvage" would read: `more` is from `salvageable_count`."""
    note = f"read with the policy {policy}"
    if more is None:
        return f"{note}; --on-corruption salvage may return more records"
    return f"{note}; --on-corruption salvage returns {quantity(more, 'more record')}" if more else note


def print_policy(policy: str, more: int | None) -> None:
    """The same on stdout."""
    note = f"  {policy_note(policy, more)}"
    print(note if len(note) <= WIDTH else note.replace("; ", "\n  "))


class Totals:
    """The sums over several logs, which verbs print at the end.

    Attributes:
        only_other_count: How many logs have status 3 only because all of the file belongs to another log.
    """

    def __init__(self) -> None:
        self.only_other_count = 0
        self._sums: dict[str, int | None] = dict.fromkeys(
            ("record_count", "payload_len", "skipped_len", "damaged_len", "file_len"), 0
        )

    def add(self, read: cordwood.Report | cordwood.Stat, damaged_len: int) -> None:
        """Takes a log into account. The sum of the lengths is unknown once that of a file is."""
        for name, total in self._sums.items():
            value = damaged_len if name == "damaged_len" else getattr(read, name)
            self._sums[name] = None if value is None or total is None else total + value

    def print(self, tally: Tally, *, as_json: bool, names_others: bool, damaged: str) -> None:
        """Prints them on stdout, and, if wanted, which files are not logs. `damaged` names what damaged logs are."""
        damaged_count = tally.damaged_count - self.only_other_count
        if as_json:
            counts = {
                "log_count": tally.log_count,
                "damaged_count": damaged_count,
                "failed_count": tally.failed_count,
            }
            others = [{"source": name, "format": what} for name, what in tally.other_files]
            print_json(
                {
                    "totals": {
                        **counts,
                        "other_file_count_by_format": tally.others,
                        "other_files": others,
                        **self._sums,
                    }
                }
            )
            return
        damaged = f"{damaged_count:,} {damaged}"
        damaged = red(damaged) if damaged_count else damaged
        records = quantity(self._sums["record_count"] or 0, "record")
        payload = quantity(self._sums["payload_len"] or 0, "byte")
        print(
            f"total: {quantity(tally.log_count, 'log')}, {damaged}, {tally.failed_count:,} failed; {records}, {payload}"
        )
        if tally.others:
            print_folded(f"  {tally.others_text()}")
            if names_others:
                _print_names(tally.other_files)


def _print_names(files: list[tuple[str, str]]) -> None:
    """Prints the first files that are not logs, beginning with those that could be."""
    ordered = sorted(files, key=lambda file: file[1] not in (NO_FRAGMENT, "unknown"))
    for name, what in ordered[:REPORTED_MAX]:
        print(f"    {display_name(name)}: {what}")
    if len(ordered) > REPORTED_MAX:
        print(f"    and {len(ordered) - REPORTED_MAX:,} more")


def for_each_source_with_totals(
    options: argparse.Namespace,
    work: Callable[[str], Status],
    totals: Totals,
    *,
    files: Iterable[Named] | None = None,
    names_others: bool = False,
    damaged: str = "damaged",
) -> Status:
    """Does the work for each source and prints the totals, unless the command line names a single file."""
    tally = for_each_source(
        options.sources, work, files=files, dialect=options.dialect, as_json=options.json, has_totals=True
    )
    if not is_one_file(options.sources):
        totals.print(tally, as_json=options.json, names_others=names_others, damaged=damaged)
    return tally.status
