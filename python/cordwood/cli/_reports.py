"""How verbs print the findings in a log: on stdout, on stderr, and as JSON."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import cordwood
from cordwood._summary import LogSummary, ZerosAtEnd, zeros_inside_text
from cordwood._text import quantity
from cordwood.cli._messages import REPORTED_MAX, Status, complain, display_name, source_name
from cordwood.cli._output import print_json
from cordwood.cli._terminal import print_folded, red
from cordwood.types import Engine


def region_fields(region: cordwood.SkippedRegion) -> dict[str, Any]:
    """A skipped region as JSON."""
    fields = {field: getattr(region, field) for field in ("offset", "end_offset", "reason", "severity")}
    crcs = {"stored_crc": region.stored_crc, "computed_crc": region.computed_crc}
    return {**fields, "message": str(region), **crcs, "bit_flip": region.bit_flip and region.bit_flip._asdict()}


def format_text(dialect: str, compression: str | None) -> str:
    """The dialect of a log, and how it is compressed, if its dialect has compression: `packed, stored`."""
    how = compression or ("stored" if dialect == "packed" else None)
    return f"{dialect}, {how}" if how else dialect


def state_of_log(
    end: cordwood.Outcome,
    zeros: ZerosAtEnd | None,
    *,
    ok: bool,
    has_zeros_inside: bool,
    must_be_complete: bool = False,
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
    """The text about zeros that a record follows."""
    return f"at {region.offset:,}: {zeros_inside_text(region.length)}"


def place_text(region: cordwood.SkippedRegion) -> str:
    """Where a region is, and how long."""
    return f"at {region.offset:,}: {quantity(region.length, 'byte')}"


def reason_text(region: cordwood.SkippedRegion, *, names_flip: bool = True) -> str:
    """Why a region was not returned, with the bit that was flipped, if that explains it and is to be named."""
    flip = region.bit_flip
    if region.reason == cordwood.Reason.RECORD_TOO_LARGE:
        return "a record longer than --record-len-max"
    if flip is None or not names_flip:
        return region.description
    # The bit says more than the two checksums.
    is_mismatch = region.reason == cordwood.Reason.CHECKSUM_MISMATCH
    what = "checksum mismatch" if is_mismatch else region.description
    return f"{what}: bit {flip.bit} of byte {flip.offset:,} was flipped"


LISTED_MAX = 1_000
"""At most this many regions of a log are listed on stdout; `--json` lists more."""


_LISTED = (cordwood.Reason.STALE, cordwood.Reason.UNKNOWN_VERSION)


def _is_listed(region: cordwood.SkippedRegion) -> bool:
    """Whether reports on stdout list a region: it is no part of a log as this version of cordwood knows it."""
    return region.severity != cordwood.Severity.INFO or region.reason in _LISTED


def _print_more(report: cordwood.Report, count: int) -> None:
    """Prints how many of `count` regions are not listed, and how to list them."""
    more = quantity(count - LISTED_MAX, "more region")
    # The report itself has the first 100,000.
    is_cut = sum(region.length for region in report.skipped) < report.skipped_len
    print(f"  and {'at least ' if is_cut else ''}{more}; to list them: cordwood verify --json")


NO_DIALECT = "the dialect could not be detected, so the log was read as leveldb; --dialect chooses another"
"""The text about a damaged log whose dialect could not be detected."""


def _report_skipped(name: str, summary: LogSummary) -> None:
    """Reports the regions that contain data that was not returned, and the zeros at the end."""
    # There may be 100,000: the common parts are looked up once.
    info, unknown_version = cordwood.Severity.INFO, cordwood.Reason.UNKNOWN_VERSION
    zeros = {region.offset for region in summary.zeros_inside}
    count, rest_len = 0, 0
    for region in summary.regions:
        is_zeros = region.offset in zeros
        if region.reason is unknown_version:
            complain(f"{display_name(name)}: {reason_text(region)}; its records are read")
        if region.severity is info and not is_zeros:
            continue
        count += 1
        if count <= REPORTED_MAX:
            reason = reason_text(region, names_flip=not summary.has_no_dialect)
            what = zeros_text(region) if is_zeros else f"{place_text(region)} left out, {reason}"
            complain(f"{display_name(name)}: {what}")
        else:
            rest_len += region.length
    if count > REPORTED_MAX:
        rest = f"{quantity(count - REPORTED_MAX, 'more region')}, {quantity(rest_len, 'byte')} left out"
        complain(f"{display_name(name)}: {rest}; to list them: cordwood verify")
    if summary.zeros_at_end and not summary.zeros_at_end.is_padding:
        complain(f"{display_name(name)}: {summary.zeros_at_end}")
    if (summary.is_torn or not summary.ok) and sum(region.length for region in summary.regions) < summary.skipped_len:
        regions = quantity(len(summary.regions), "region")
        complain(f"{display_name(name)}: more than {regions} were left out; for the totals: cordwood verify --json")


def other_log_text(name: str, own: int | None, number: int, *, is_named: bool) -> str:
    """The message about a file that belongs entirely to another log."""
    return f"{display_name(name)}: {'; '.join(other_log_parts(own, number, is_named=is_named))}"


def other_log_parts(own: int | None, number: int, *, is_named: bool) -> tuple[str, str, str]:
    """Why no record of such a file is returned, and the advice."""
    says = f"--log-number says {own}" if is_named else f"the name says {own}"
    return f"the whole file belongs to log {number}", says, f"to read it: --log-number {number}"


def report_other_log(name: str, own: int | None, number: int | None, options: argparse.Namespace) -> None:
    """Reports such a file on stderr. With `None` there is no message."""
    if number is not None:
        complain(other_log_text(name, own, number, is_named=options.log_number is not None))


def sha256_of(name: str, length: int | None, on_read: Callable[[int], object] | None = None) -> str | None:
    """The SHA-256 of the first `length` bytes of a file. `None` if it is not a regular file, or has become shorter.

    `on_read` is called with the number of bytes of each read.
    """
    if length is None or name == "-" or not os.path.isfile(name):
        return None
    import hashlib

    digest = hashlib.sha256()
    with open(name, "rb", buffering=0) as file:
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


def report_left_out(name: str, summary: LogSummary, options: argparse.Namespace) -> Status:
    """Reports the records that a verb left out of a log, and the option that would return more.

    The status is `DAMAGE` also if all of the file was left out because it belongs to another log.
    """
    _report_skipped(name, summary)
    if summary.has_no_dialect:
        complain(f"{display_name(name)}: {NO_DIALECT}")
    if not summary.ok:
        complain(f"{display_name(name)}: {_policy_note(options.on_corruption, summary.left_out_count)}")
    # A range that contains only an older log is not a fault.
    if summary.other_log_number is not None and not (summary.record_count or options.start):
        report_other_log(name, summary.log.log_number, summary.other_log_number, options)
        return Status.DAMAGE
    return Status.CLEAN if summary.ok else Status.DAMAGE


def _policy_note(policy: str, left_out_count: int) -> str:
    """How damage was treated, and how many records the policy "salvage" would add."""
    note = f"read with --on-corruption {policy}"
    if policy == "stop":
        return f"{note}; salvage may return more records"
    return f"{note}; salvage returns {quantity(left_out_count, 'more record')}" if left_out_count else note


def salvaged_text(count: int, engine: Engine = Engine.LEVELDB) -> str:
    """The text about records that were found after damage in their block."""
    where, them = ("1 record follows damage in its block", "it")
    if count > 1:
        where, them = (f"{count:,} records follow damage in their blocks", "them")
    rules = {
        Engine.LEVELDB: f"LevelDB's rule drops {them}",
        Engine.ROCKSDB: "RocksDB, by default, stops at the first damage",
        Engine.PEBBLE: "Pebble stops at the first damage",
    }
    return f"{where}: {rules[engine]}"


def print_report(
    name: str,
    report: cordwood.Report,
    summary: LogSummary,
    options: argparse.Namespace,
    *,
    sha256: str | None = None,
    **fields: object,
) -> None:
    """Prints a report on stdout.

    Args:
        name: The name of the log.
        report: The report of `verify`, `salvage` or `pack`.
        summary: The contents of the report.
        options: Only `json`, `log_number`, and those of `verify`, `start` and `strict`, are used.
        sha256: The SHA-256 of the bytes that were read, for JSON.
        fields: Further fields for the end of the JSON object.
    """
    # A range after the beginning may contain only an older log.
    other = None if getattr(options, "start", 0) else report.other_log_number
    is_strict = getattr(options, "strict", False)
    if not options.json:
        _print_text(name, report, summary, other, is_named=options.log_number is not None, is_strict=is_strict)
        return
    if summary.has_no_dialect:
        complain(f"{display_name(name)}: {NO_DIALECT}")
    report_other_log(name, report.log_number, other, options)
    print_json(
        {
            "source": source_name(name),
            **{field: getattr(report, field) for field in ("dialect", "log_number", "other_log_number")},
            "ok": report.ok and not (is_strict and summary.is_incomplete),
            **{
                field: getattr(report, field) for field in ("record_count", "salvaged_count", "payload_len", "file_len")
            },
            "outcome": report.outcome._asdict(),
            **{field: getattr(report, field) for field in ("skipped_len", "len_by_severity", "len_by_reason")},
            "skipped": [region_fields(region) for region in summary.regions],
            "sha256": sha256,
            "version": cordwood.__version__,
            **fields,
        }
    )


def _print_text(
    name: str, report: cordwood.Report, summary: LogSummary, other: int | None, *, is_named: bool, is_strict: bool
) -> None:
    # Not "DAMAGED, 1 record", which could be read as the extent of the damage.
    records = ("" if report.ok else "read ") + quantity(report.record_count, "record")
    payload = quantity(report.payload_len, "byte")
    advice = None
    zeros, last_zeros = {region.offset for region in summary.zeros_inside}, summary.zeros_at_end
    if other is None:
        state = state_of_log(
            report.outcome,
            last_zeros,
            ok=report.ok,
            has_zeros_inside=bool(zeros),
            must_be_complete=is_strict,
        )
        content = quantity(last_zeros.length, "byte") if last_zeros and last_zeros.is_all else f"{records}, {payload}"
        print(f"{display_name(name)}: {state}, {content}")
    else:
        # Not "ok": it may be a log that was renamed, in which readers find no record.
        state = "" if report.ok else f"{red('DAMAGED')}, "
        why, says, advice = other_log_parts(report.log_number, other, is_named=is_named)
        print(f"{display_name(name)}: {state}{records}; {why}, and {says}")
    own = "" if report.log_number is None else f"; this one is log {report.log_number}"
    listed = [region for region in summary.regions if _is_listed(region) or region.offset in zeros]
    # Those whose flipped bit was flipped back, too, in the order of the file.
    repaired = {region.offset: region for region in report.repaired[:LISTED_MAX]}
    for region in sorted([*listed[:LISTED_MAX], *repaired.values()], key=lambda region: region.offset):
        is_damage = False
        if region is repaired.get(region.offset):
            text = f"{place_text(region)} repaired, {reason_text(region)}"
        elif region.reason == cordwood.Reason.STALE:
            text = f"{place_text(region)}, left over from another log{own}"
        elif region.offset in zeros:
            text = zeros_text(region)
        else:
            is_damage = region.severity == cordwood.Severity.CORRUPTION
            text = f"{place_text(region)}, {reason_text(region, names_flip=not summary.has_no_dialect)}"
        print_folded(f"  {text}", is_damage=is_damage)
    if len(listed) > LISTED_MAX:
        _print_more(report, len(listed))
    if last_zeros:
        print_folded(f"  {last_zeros}")
    if advice:
        print(f"  {advice}")
    if summary.has_no_dialect:
        print_folded(f"  {NO_DIALECT}")
    if report.salvaged_count:
        print_folded(f"  {salvaged_text(report.salvaged_count)}")
