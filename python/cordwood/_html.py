"""Reports as a notebook shows them. A separate module, imported only in notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import cast

from cordwood.types import Outcome, Report, SkippedRegion, Stat

# A log may have thousands of damaged regions: only the first are shown.
_REGIONS_MAX = 10

_REPORT_FIELDS = ("dialect", "ok", "outcome", "record_count", "payload_len", "file_len", "skipped_len")
_STAT_FIELDS = (
    *("dialect", "outcome", "record_count", "payload_len", "record_len_min", "record_len_mean", "record_len_max"),
    *("full_count", "first_count", "middle_count", "last_count", "block_count"),
    *("container_count", "container_len", "packed_count", "packed_len"),
    *("stored_len", "header_len", "trailer_len", "skipped_len", "damaged_len", "zeros_inside_len", "file_len"),
)


def of_report(report: Report) -> str:
    """The result of `Report._repr_html_`."""
    names = (*_REPORT_FIELDS, "not_kept") if report.not_kept else _REPORT_FIELDS
    html = _table(report.path or "Report", ((name, getattr(report, name)) for name in names))
    if not report.skipped:
        return html
    listed = report.skipped[:_REGIONS_MAX]
    rows = ((region.offset, region.end_offset, _reason(region), region.severity) for region in listed)
    html += _table("skipped", rows, ("offset", "end_offset", "reason", "severity"))
    more = len(report.skipped) - len(listed)
    return f"{html}<p>and {more:,} more</p>" if more else html


def of_stat(stat: Stat) -> str:
    """The result of `Stat._repr_html_`."""
    return _table(stat.path or "Stat", ((name, getattr(stat, name)) for name in _STAT_FIELDS))


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
    if isinstance(value, Outcome):
        zeros = "" if value.zeros_offset is None else f"; zeros from {value.zeros_offset:,} on"
        return f"{value.kind} at {value.offset:,}{zeros}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(cast("tuple[str, ...]", value))
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    return "" if value is None else str(value)
