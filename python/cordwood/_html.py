"""Reports as a notebook shows them. A separate module, imported only in notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cordwood.types import Outcome, Report, SkippedRegion, Stat

# A log may have thousands of damaged regions: only the first are shown.
_REGIONS_MAX = 10


def of_report(report: Report) -> str:
    """The result of `Report._repr_html_`."""
    rows: list[tuple[str, object]] = [
        ("dialect", report.dialect),
        ("ok", report.ok),
        ("outcome", _outcome(report.outcome)),
        ("record_count", report.record_count),
        ("payload_len", report.payload_len),
        ("file_len", report.file_len),
        ("skipped_len", report.skipped_len),
    ]
    if report.not_kept:
        rows.append(("not_kept", ", ".join(report.not_kept)))
    html = _table(report.path or "Report", rows)
    if report.skipped:
        regions: list[tuple[object, ...]] = [
            (region.offset, region.end_offset, _reason(region), region.severity)
            for region in report.skipped[:_REGIONS_MAX]
        ]
        html += _table("skipped", regions, ("offset", "end_offset", "reason", "severity"))
        more = len(report.skipped) - len(regions)
        html += f"<p>and {more:,} more</p>" if more else ""
    return html


def of_stat(stat: Stat) -> str:
    """The result of `Stat._repr_html_`."""
    names = (
        *("record_count", "payload_len", "record_len_min", "record_len_mean", "record_len_max"),
        *("full_count", "first_count", "middle_count", "last_count", "block_count"),
        *("container_count", "container_len", "packed_count", "packed_len"),
        *("stored_len", "header_len", "trailer_len", "skipped_len", "damaged_len", "zeros_inside_len", "file_len"),
    )
    rows: list[tuple[str, object]] = [("dialect", stat.dialect), ("outcome", _outcome(stat.outcome))]
    return _table(stat.path or "Stat", [*rows, *((name, getattr(stat, name)) for name in names)])


def _outcome(outcome: Outcome) -> str:
    zeros = "" if outcome.zeros_offset is None else f"; zeros from {outcome.zeros_offset:,} on"
    return f"{outcome.kind} at {outcome.offset:,}{zeros}"


def _reason(region: SkippedRegion) -> str:
    flip = region.bit_flip
    return region.description + ("" if flip is None else f"; bit {flip.bit} of byte {flip.offset:,} was flipped")


def _table(caption: str, rows: Iterable[tuple[object, ...]], head: Iterable[str] = ()) -> str:
    """A table. A path may contain any characters, and bytes that are not characters: everything is escaped."""
    lines = [f"<caption>{escape(caption.encode(errors='backslashreplace').decode())}</caption>"]
    if names := "".join(f"<th>{escape(name)}</th>" for name in head):
        lines.append(f"<tr>{names}</tr>")
    lines += ["<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>" for row in rows]
    return "<table>" + "".join(lines) + "</table>"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}" if isinstance(value, float) else str(value)
