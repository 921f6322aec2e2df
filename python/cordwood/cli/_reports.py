"""Prints the results of reading a log to stdout and stderr, as text or as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import cordwood
from cordwood import _summary
from cordwood._databases import is_without_record
from cordwood._text import display_name, quantity, source_name
from cordwood.cli._messages import REPORTED_MAX, Status, complain
from cordwood.cli._output import print_json
from cordwood.cli._terminal import print_folded, red
from cordwood.types import Engine, Outcome, OutcomeKind, Reason, Severity

LISTED_MAX = 1_000
"""The maximum number of regions to list on stdout for each log. `--json` lists more."""

NO_DIALECT = "the dialect could not be detected, so the log was read as leveldb; --dialect chooses another"
"""The message for a damaged log whose dialect could not be detected."""


EMPTY_RUN = "a run without a byte"
"""The text for a run with an empty log, such as a run that was killed before its first record."""


def format_text(dialect: str, compression: str | None) -> str:
    """Returns a log's dialect and its compression, if any. An uncompressed packed log is `packed, stored`."""
    how = compression or ("stored" if dialect == "packed" else None)
    return f"{dialect}, {how}" if how else dialect


def state_of_log(
    end: Outcome, zeros: _summary.ZerosAtEnd | None, *, ok: bool, has_zeros_inside: bool, must_be_complete: bool = False
) -> str:
    """Describes a log's state briefly, for stdout. `zeros` describes any zeros at the log's end."""
    if not ok:
        return red("DAMAGED")
    state = red("INCOMPLETE") if must_be_complete else "ok"
    if zeros and zeros.is_all:
        return f"{state}, only zeros" if must_be_complete else "only zeros"
    places = [*(["inside"] if has_zeros_inside else []), *(["at the end"] if zeros and not zeros.is_padding else [])]
    found = [f"zeros {' and '.join(places)}"] if places else []
    if end.kind == OutcomeKind.TORN_TAIL:
        found.append("a torn tail")
    return f"{state}, with {' and '.join(found)}" if found else "ok"


def salvaged_text(count: int, engine: Engine | None = None) -> str:
    """Returns a message about records after damage in the same block. Names RocksDB and Pebble, but not LevelDB."""
    where, them = ("1 record follows damage in its block", "it")
    if count > 1:
        where, them = (f"{count:,} records follow damage in their blocks", "them")
    stops: dict[Engine | None, str] = {
        Engine.ROCKSDB: "RocksDB, by default, stops at the first damage",
        Engine.PEBBLE: "Pebble stops at the first damage",
    }
    return f"{where}: {stops.get(engine, f'engines drop {them}')}, salvage keeps {them}"


def other_log_parts(own: int | None, number: int, options: argparse.Namespace) -> tuple[str, str, str]:
    """Returns the parts of a message about a file that belongs entirely to another log."""
    says = f"the name says {own}" if options.log_number is None else f"--log-number says {own}"
    return f"the whole file belongs to log {number}", says, f"to read it: --log-number {number}"


def report_other_log(name: str, own: int | None, number: int | None, options: argparse.Namespace) -> None:
    """Reports on stderr that a file belongs entirely to log `number`, unless `number` is `None`."""
    if number is not None and not is_without_record(name, own):
        complain(f"{display_name(name)}: {'; '.join(other_log_parts(own, number, options))}")


def report_left_out(name: str, report: cordwood.Report, options: argparse.Namespace) -> Status:
    """Reports what a verb left out of a log, and which option would return more records.

    The status is `DAMAGE` if the log is damaged, or if nothing was read because the whole file belongs to another log.
    """
    for text in _left_out(report, options.on_corruption):
        complain(f"{display_name(name)}: {text}")
    # A range that contains only an older log is not a fault.
    report = _summary.judged(name, report)
    if report.other_log_number is not None and not (report.record_count or options.start):
        report_other_log(name, report.log_number, report.other_log_number, options)
        return Status.DAMAGE
    return Status.CLEAN if report.ok else Status.DAMAGE


def _left_out(report: cordwood.Report, policy: str) -> Iterator[str]:
    """Yields lines for the regions of data that were left out, and for other findings, such as zeros at the end."""
    yield from (
        f"{_reason_text(region)}; its records are read"
        for region in report.skipped
        if region.reason == Reason.UNKNOWN_VERSION
    )
    zeros = {region.offset for region in _summary.zeros_inside(report)}
    names_flip = not _summary.has_no_dialect(report)
    left = [region for region in report.skipped if region.severity != Severity.INFO or region.offset in zeros]
    for region in left[:REPORTED_MAX]:
        reason = _reason_text(region, names_flip=names_flip)
        yield _zeros_text(region) if region.offset in zeros else f"{_place_text(region)} left out, {reason}"
    if more := left[REPORTED_MAX:]:
        length = quantity(sum(region.length for region in more), "byte")
        yield f"{quantity(len(more), 'more region')}, {length} left out; to list them: cordwood verify"
    if (zeros_at_end := _summary.zeros_of(report)) and not zeros_at_end.is_padding:
        yield str(zeros_at_end)
    if (_summary.is_torn(report) or not report.ok) and _summary.is_cut(report):
        regions = quantity(len(report.skipped), "region")
        yield f"more than {regions} were left out; for the totals: cordwood verify --json"
    if _summary.is_empty_run(report):
        yield EMPTY_RUN
    if not names_flip:
        yield NO_DIALECT
    if not report.ok:
        count = report.salvaged_count
        more_records = f"; salvage returns {quantity(count, 'more record')}" if count else ""
        more_records = "; salvage may return more records" if policy == "stop" else more_records
        yield f"read with --on-corruption {policy}{more_records}"


def _place_text(region: cordwood.SkippedRegion) -> str:
    return f"at {region.offset:,}: {quantity(region.length, 'byte')}"


def _zeros_text(region: cordwood.SkippedRegion) -> str:
    """Describes a region of zeros before a record."""
    return f"at {region.offset:,}: {_summary.zeros_inside_text(region.length)}"


def _reason_text(region: cordwood.SkippedRegion, *, names_flip: bool = True) -> str:
    """Returns why a region was skipped. With `names_flip`, this includes any flipped bit that was found."""
    flip = region.bit_flip
    if region.reason == Reason.RECORD_TOO_LARGE:
        return "a record longer than --record-len-max"
    if flip is None or not names_flip:
        return region.description
    # The flipped bit is more informative than the two checksums.
    fault = "checksum mismatch" if region.reason == Reason.CHECKSUM_MISMATCH else region.description
    return f"{fault}: bit {flip.bit} of byte {flip.offset:,} was flipped"


def region_fields(region: cordwood.SkippedRegion) -> dict[str, Any]:
    """Returns a skipped region as JSON."""
    fields = {field: getattr(region, field) for field in ("offset", "end_offset", "reason", "severity")}
    crcs = {"stored_crc": region.stored_crc, "computed_crc": region.computed_crc}
    return {**fields, "message": str(region), **crcs, "bit_flip": region.bit_flip and region.bit_flip._asdict()}


_JSON_FIELDS = (
    *("dialect", "log_number", "other_log_number", "ok", "record_count", "salvaged_count", "payload_len", "file_len"),
    *("outcome", "skipped_len", "len_by_severity", "len_by_reason"),
)


def print_report(
    name: str,
    report: cordwood.Report,
    options: argparse.Namespace,
    *,
    sha256: str | None = None,
    **fields: object,
) -> None:
    """Prints a report to stdout.

    Args:
        name: The name of the log.
        report: The report from `verify`, `salvage` or `pack`.
        options: Only `json`, `log_number`, `start` and `strict` are used.
        sha256: The SHA-256 of the bytes read, for JSON.
        fields: Additional fields at the end of the JSON object.
    """
    # If a range doesn't include the log's start, it may contain only an older log. That isn't a fault.
    other = None if options.start else report.other_log_number
    if not options.json:
        _print_text(name, report, other, options)
        return
    if _summary.has_no_dialect(report):
        complain(f"{display_name(name)}: {NO_DIALECT}")
    report_other_log(name, report.log_number, other, options)
    print_json(
        {
            "source": source_name(name),
            **{field: getattr(report, field) for field in _JSON_FIELDS},
            "ok": report.ok and other is None and not (options.strict and _summary.is_incomplete(report)),
            "outcome": report.outcome._asdict(),
            "skipped": [region_fields(region) for region in report.skipped],
            "sha256": sha256,
            "version": cordwood.__version__,
            **fields,
        }
    )


def _print_text(name: str, report: cordwood.Report, other: int | None, options: argparse.Namespace) -> None:
    zeros = _summary.zeros_of(report)
    regions = list(_regions(report))
    why = advice = None
    if other is None:
        has_inside = bool(_summary.zeros_inside(report))
        state = state_of_log(
            report.outcome, zeros, ok=report.ok, has_zeros_inside=has_inside, must_be_complete=options.strict
        )
        state += ", "
    else:
        # This isn't "ok", because the log may have been renamed, and readers wouldn't find any records in it.
        state = "" if report.ok else f"{red('DAMAGED')}, "
        why, says, advice = other_log_parts(report.log_number, other, options)
        why = f"; {why}, and {says}"
    if other is None and zeros and zeros.is_all:
        content = quantity(zeros.length, "byte")
    elif _summary.is_empty_run(report):
        state, content = f"{red('INCOMPLETE') if options.strict else 'ok'}, ", EMPTY_RUN
    else:
        # "DAMAGED, 1 record" could be misread as the extent of the damage, so "read" precedes the number.
        records = ("" if report.ok else "read ") + quantity(report.record_count, "record")
        content = records + (why or f", {quantity(report.payload_len, 'byte')}")
    print(f"{display_name(name)}: {state}{content}")
    for text, is_damage in regions:
        print_folded(f"  {text}", is_damage=is_damage)
    dialect = NO_DIALECT if _summary.has_no_dialect(report) else None
    salvaged = salvaged_text(report.salvaged_count) if report.salvaged_count else None
    count = report.repaired_count
    repaired = (
        f"{quantity(count, 'record')} repaired: the checksum is right with one bit flipped back" if count else None
    )
    for note in (zeros, advice, dialect, salvaged, repaired):
        if note:
            print_folded(f"  {note}")


def _regions(report: cordwood.Report) -> Iterator[tuple[str, bool]]:
    """For each region listed on stdout, yields a line and whether the region is damage."""
    own = "" if report.log_number is None else f"; this one is log {report.log_number}"
    zeros = {region.offset for region in _summary.zeros_inside(report)}
    names_flip = not _summary.has_no_dialect(report)
    listed = [
        region
        for region in report.skipped
        if region.severity != Severity.INFO
        or region.reason in (Reason.STALE, Reason.UNKNOWN_VERSION)
        or region.offset in zeros
    ]
    # Regions repaired by flipping a bit back are also listed. All regions are in file order.
    repaired = {region.offset: region for region in report.repaired[:LISTED_MAX]}
    for region in sorted([*listed[:LISTED_MAX], *repaired.values()], key=lambda region: region.offset):
        if region is repaired.get(region.offset):
            yield f"{_place_text(region)} repaired, {_reason_text(region)}", False
        elif region.reason == Reason.STALE:
            yield f"{_place_text(region)}, left over from another log{own}", False
        elif region.offset in zeros:
            yield _zeros_text(region), False
        else:
            reason = _reason_text(region, names_flip=names_flip)
            yield f"{_place_text(region)}, {reason}", region.severity == Severity.CORRUPTION
    if len(listed) > LISTED_MAX:
        # The report itself lists only the first 100,000 regions.
        more = f"{'at least ' if _summary.is_cut(report) else ''}{quantity(len(listed) - LISTED_MAX, 'more region')}"
        yield f"and {more}; to list them: cordwood verify --json", False
