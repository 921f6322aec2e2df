"""Formats values for notebooks. This is a separate module so that only notebooks import it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, cast

# A log may have thousands of damaged regions, and a directory may contain thousands of logs, so only the first few are
# shown.
_LISTED_MAX = 10


def page_of(value: Any, names: Iterable[str], regions: Sequence[Any] = ()) -> str:
    """Returns a table of a report's attributes, and a second table of its skipped regions."""
    caption: str = value.path or type(value).__name__
    html = _table(caption, ((name, getattr(value, name)) for name in names))
    listed = regions[:_LISTED_MAX]
    rows = ((region.offset, region.end_offset, _reason(region), region.severity) for region in listed)
    head = ("offset", "end_offset", "reason", "severity")
    return html + _table("skipped", rows, head, len(regions)) if regions else html


def results_page(results: Any, is_ok: Callable[[Any, Any], bool]) -> str:
    """Returns a table of the results for many logs, limited to the first few. Damaged logs are listed first."""
    logs = sorted(results.items(), key=lambda item: is_ok(*item))
    rows = (
        (getattr(name, "path", name), is_ok(name, result), getattr(result, "record_count", None))
        for name, result in logs[:_LISTED_MAX]
    )
    return _table(repr(results), rows, ("log", "ok", "record_count"), len(logs))


def _reason(region: Any) -> str:
    flip = region.bit_flip
    bit = f"; bit {flip.bit} of byte {flip.offset:,} was flipped" if flip else ""
    return f"{region.description}{bit}"


def _table(caption: str, rows: Iterable[tuple[object, ...]], head: Iterable[str] = (), count: int = 0) -> str:
    """Returns a table, followed by how many of the `count` items aren't listed.

    All text is escaped, because a path can contain any characters, even invalid ones.
    """
    lines = [f"<caption>{escape(caption.encode(errors='backslashreplace').decode())}</caption>"]
    if names := "".join(f"<th>{escape(name)}</th>" for name in head):
        lines.append(f"<tr>{names}</tr>")
    lines += ["<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>" for row in rows]
    more = f"<p>and {count - _LISTED_MAX:,} more</p>" if count > _LISTED_MAX else ""
    return f"<table>{''.join(lines)}</table>{more}"


def _text(value: object) -> str:
    if (kind := getattr(value, "kind", None)) is not None:
        outcome = cast("Any", value)
        zeros = "" if outcome.zeros_offset is None else f"; zeros from {outcome.zeros_offset:,} on"
        # Even a damaged log can end with a complete record, so the word "clean" is not used.
        end = "no torn tail," if kind == "clean" else kind
        return f"{end} at {outcome.offset:,}{zeros}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(cast("tuple[str, ...]", value))
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    return "" if value is None else str(value)
