"""Formats evidence as an HTML page and as JSON.

Names, keys and messages come from untrusted files, so all text is escaped, and control and bidirectional characters are
shown as their code points. The page's content security policy blocks both scripts and requests.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import NamedTuple

from cordwood import __version__
from cordwood._databases import database_lines
from cordwood._evidence import limits
from cordwood._inputs.exports import export_text
from cordwood._jsonable import database_fields, export_fields, json_text, jsonable
from cordwood._summary import is_cut, is_incomplete
from cordwood._text import escaped, quantity
from cordwood.types import Database, Export, KeyChange, LogEvidence, Reason, RegionEvidence, Report, Severity

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --quiet: #55606c; --line: #d3d9df; --bad: #a84300; --back: #fff; }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; background: var(--back); color: var(--ink);
  font: 15px/1.45 ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; } h3 { font-size: 1rem; } h1, h2, h3 { line-height: 1.25; }
section { border-top: 1px solid var(--line); margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.2rem 0.75rem 0.2rem 0; }
tr { border-bottom: 1px solid var(--line); }
thead th { color: var(--quiet); font-weight: 400; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1rem; margin: 0.5rem 0; }
a, code, dd, h2, .name { overflow-wrap: anywhere; }
dt { color: var(--quiet); } dd { margin: 0; }
code { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre-wrap; }
.bad { color: var(--bad); font-weight: 600; } .quiet { color: var(--quiet); }
@media (max-width: 40rem) {
  body { font-size: 14px; } code { font-size: 12px; }
  th, td { padding-right: 0.4rem; }
}
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e8edf2; --quiet: #9aa7b4; --line: #37414b; --bad: #ff9256; --back: #14181d; }
}
@media print { body { max-width: none; padding: 0; } tr, svg { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""

_STATES = ("damaged", "incomplete", "ok")


_SUMMARY_MAX = 10_000
"""The maximum number of rows in each table on the page."""

_LIMITS = (
    f"This page is limited. It lists at most {_SUMMARY_MAX:,} logs, and describes the first {limits.DETAILED_MAX}: "
    f"damaged logs come first. Of each it lists at most {limits.LISTED_MAX:,} regions, {limits.LISTED_MAX:,} deleted "
    f"and {limits.LISTED_MAX:,} overwritten keys. It shows {limits.FIRST_LEN} bytes of a region and "
    f"{limits.KEY_LEN_MAX} of a key. It looks for a value in the same log only, for at most {limits.FOLLOWED_MAX:,} "
    f"keys or {limits.FOLLOWED_LEN_MAX >> 20} MiB of keys, and not for those of a deleted range. To list all: "
    "cordwood verify --json FILE; cordwood convert --as write-batch --on-corruption salvage FILE."
)

_CAT = ("cordwood", "cat", "--as", "write-batch", "--on-corruption", "salvage", "-n", "1", "--start", "OFFSET")
"""The keys are read with the `salvage` policy, because other policies may drop the record."""

_ZEROS = "zeros: space that was never written, padding, or data that was lost"

_CERTAIN = (
    "An older value is not certainly the last one before, and one that was not found may be lost, after damage, zeros, "
    "a gap in the sequence numbers, a salvaged record, one that is not a write batch, or an operation that is neither "
    "a put nor the deletion of one key."
)

_SEVERITIES = {Severity.CORRUPTION: "damage", Severity.TORN_TAIL: "torn tail", Severity.INFO: "no damage"}


class Evidence(NamedTuple):
    """The contents and damage of logs, as returned by `cordwood.evidence`. Notebooks show this as a page.

    Attributes:
        logs: The logs: damaged ones first, then incomplete ones. Only the first 50 include regions, keys and pictures.
        databases: The databases in directories, and whether each has everything its engine needs.
        exports: The Datastore or Firestore exports in directories, and whether they are complete.
        failed: The files that could not be read, each with the reason. A log that disappeared after it was verified
            is also in `logs`.
        other_files: The non-log files in directories, each with its format.
        command: The command to print on the page, or `None` to leave it out.
        examined: The UTC time at which all logs had been read, such as `2026-11-22T23:09:06.123456Z`.
        directory: The current directory at the time given by `examined`. Relative paths were resolved against it.
            `None` if it no longer existed.
        version: The version of cordwood that read the logs.

    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> cordwood.evidence("example.log").html[:15]
    '<!doctype html>'
    """

    logs: tuple[LogEvidence, ...]
    databases: tuple[Database, ...] = ()
    exports: tuple[Export, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    other_files: tuple[tuple[str, str], ...] = ()
    command: str | None = None
    examined: str | None = None
    directory: str | None = None
    version: str = __version__

    def __repr__(self) -> str:
        damaged_count = sum(not log.report.ok for log in self.logs)
        return f"<cordwood.Evidence: logs={len(self.logs)}, damaged={damaged_count}, failed={len(self.failed)}>"

    @property
    def ok(self) -> bool:
        """Whether everything could be read, all logs and databases are undamaged, and all exports are complete.

        `False` if no log or database was found.
        """
        directories = self.databases + self.exports
        is_whole = all(rank(log.report) for log in self.logs) and all(directory.ok for directory in directories)
        return is_whole and not self.failed and bool(self.logs or self.databases)

    @property
    def html(self) -> str:
        """The evidence as a self-contained HTML page without scripts."""
        logs = self.logs
        title = f"Evidence: {counts_text(self)}"
        facts = [("version", f"cordwood {self.version}")]
        if self.command is not None:
            facts.append(("command", _code(self.command)))
        circumstances = (("examined", self.examined), ("directory", self.directory))
        facts += [(term, _text(fact)) for term, fact in circumstances if fact]
        parts = [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{title}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{title}</h1>{_facts(facts)}",
            _table("", ("log", "state", "records", "bytes"), map(_summary_row, range(len(logs)), logs), len(logs)),
        ]
        if self.databases:
            head = ("database", "state", "engine", "findings")
            parts.append(_table("Databases", head, map(_database_row, self.databases), len(self.databases)))
        if self.exports:
            rows_of_exports = map(_export_row, self.exports)
            parts.append(_table("Exports", ("export", "state", "findings"), rows_of_exports, len(self.exports)))
        if self.failed:
            rows = ((f'<span class="name">{_text(name)}</span>', _text(reason)) for name, reason in self.failed)
            parts.append(_table("Files that could not be read", ("file", "reason"), rows, len(self.failed)))
        if self.other_files:
            counts = Counter(kind for _, kind in self.other_files)
            rows = ((_text(kind), f"{count:,}") for kind, count in sorted(counts.items()))
            parts.append(_table("Files that are not logs", ("kind", "files"), rows, len(self.other_files), len(counts)))
        parts.append(f'<p class="quiet">{_text(_LIMITS)}</p>')
        parts += (_section(index, log) for index, log in enumerate(logs[: limits.DETAILED_MAX]))
        return "\n".join([*parts, "</body></html>\n"])

    @property
    def json(self) -> str:
        """The evidence as one JSON object, without the pictures."""
        # The names are the same as in `cordwood verify --json`.
        logs: list[dict[str, object]] = []
        for path, report, modified, sha256, is_changed, regions, keys, _ in self.logs:
            counts = {name: value for name, value in report._asdict().items() if name not in _NOT_IN_JSON}
            skipped = [
                {
                    **region._asdict(),
                    "severity": region.severity,
                    "message": str(region),
                    "first_bytes": None if first is None else first.hex(),
                }
                for region, first in regions
            ]
            is_ok = rank(report) > 0
            facts = {"source": path, "modified": modified, "sha256": sha256, "is_changed": is_changed, "ok": is_ok}
            logs.append({**facts, **counts, "skipped_len": report.skipped_len, "skipped": skipped, "keys": keys})
        failed = [{"source": path, "error": reason} for path, reason in self.failed]
        others = [{"source": path, "format": kind} for path, kind in self.other_files]
        databases, exports = list(map(database_fields, self.databases)), list(map(export_fields, self.exports))
        about = {name: getattr(self, name) for name in ("version", "command", "examined", "directory", "ok")}
        found = {"logs": logs, "databases": databases, "exports": exports, "failed": failed, "other_files": others}
        text = json_text(jsonable({**about, **found})) + "\n"
        # A path may contain bytes that are not valid text.
        return text.encode("utf-8", "backslashreplace").decode()

    def _repr_html_(self) -> str:
        # Show the page in a frame so that its style does not affect the notebook.
        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:40em;border:0"></iframe>'


def rank(report: Report) -> int:
    """Returns a log's rank for sorting.

    The rank is 0 for a damaged log or a file that belongs entirely to another log, 1 for an incomplete log, and 2 for
    any other.
    """
    if not report.ok or report.other_log_number is not None:
        return 0
    return 1 if is_incomplete(report) else 2


def counts_text(evidence: Evidence) -> str:
    """Returns how many logs, databases and exports there are, and how many of each are damaged or incomplete."""
    logs, databases, exports = evidence.logs, evidence.databases, evidence.exports
    states = Counter(_STATES[rank(log.report)] for log in logs)
    incomplete = f", {states['incomplete']:,} incomplete" if states["incomplete"] else ""
    parts = [f"{quantity(len(logs), 'log')}, {states['damaged']:,} damaged{incomplete}"]
    if databases:
        parts.append(f"{quantity(len(databases), 'database')}, {sum(not each.ok for each in databases):,} damaged")
    if exports:
        parts.append(f"{quantity(len(exports), 'export')}, {sum(not each.ok for each in exports):,} incomplete")
    return "; ".join(parts)


def _summary_row(index: int, log: LogEvidence) -> Sequence[str]:
    name = _text(log.path)
    link = f'<a href="#log-{index}">{name}</a>' if index < limits.DETAILED_MAX else f'<span class="name">{name}</span>'
    return link, _state(log.report), f"{log.report.record_count:,}", f"{log.report.file_len or 0:,}"


def _database_row(database: Database) -> Sequence[str]:
    lines = (f"{label}: {text}" for label, text, _ in database_lines(database))
    state = "ok" if database.ok else '<span class="bad">damaged</span>'
    name = f'<span class="name">{_text(database.path)}</span>'
    return name, state, _text(database.engine), "<br>".join(map(_text, lines))


def _export_row(export: Export) -> Sequence[str]:
    state = "ok" if export.ok else '<span class="bad">incomplete</span>'
    return f'<span class="name">{_text(export.path)}</span>', state, _text(export_text(export))


def _section(index: int, log: LogEvidence) -> str:
    report = log.report
    facts = [
        ("state", _state(report)),
        ("size", "not known" if report.file_len is None else quantity(report.file_len, "byte")),
        ("modified", log.modified or "not known"),
        ("SHA-256", _code(log.sha256) if log.sha256 else "not computed"),
        ("dialect", _dialect(report)),
        ("records", f"{report.record_count:,}, {quantity(report.payload_len, 'byte')}"),
        ("damaged", quantity(report.damaged_len, "byte")),
        ("skipped", f"{quantity(report.skipped_len, 'byte')}, damaged bytes included"),
    ]
    if zeros_len := report.len_by_reason.get(Reason.ZERO_FILL):
        facts.append(("of these", f"{quantity(zeros_len, 'byte')} of {_ZEROS}"))
    if report.salvaged_count:
        facts.append(("salvaged", f"{quantity(report.salvaged_count, 'record')} after damage in the same block"))
    parts = [f'<section id="log-{index}"><h2>{_text(log.path)}</h2>']
    if log.is_changed:
        parts.append('<p class="bad">The file changed while it was read: counts and SHA-256 may disagree.</p>')
    parts += (_facts(facts), log.svg)
    if report.skipped:
        head = ("offsets", "reason", "flipped bit", "first bytes")
        rows, is_more = map(_region_row, log.regions), is_cut(report)
        parts.append(_table("Skipped regions", head, rows, len(report.skipped), is_cut=is_more))
    if keys := log.keys:
        if keys.deleted or keys.overwritten:
            parts.append(
                '<p class="quiet">The offset is that of the record in the file, which '
                f"{_code(shlex.join([*_CAT, log.path]))} prints. {_CERTAIN}</p>"
            )
        for verb, changes, count in (
            ("deleted", keys.deleted, keys.deleted_count),
            ("overwritten", keys.overwritten, keys.overwritten_count),
        ):
            head = ("key", f"{verb} by sequence number", "sequence number of the older value", "its offset")
            parts.append(_table(f"{verb.title()} keys", head, map(_key_row, changes), count))
        if keys.faulty_batch_count:
            faulty = quantity(keys.faulty_batch_count, "record")
            parts.append(f'<p class="bad">{faulty} could not be decoded as a write batch: keys may be missing.</p>')
        if not keys.are_all_followed:
            parts.append('<p class="bad">There are too many keys: not all values were looked for.</p>')
    return "\n".join([*parts, "</section>"])


def _state(report: Report) -> str:
    if report.ok and report.other_log_number is not None:
        return f'<span class="bad">the whole file belongs to log {report.other_log_number}</span>'
    state = _STATES[rank(report)]
    return f'<span class="bad">{state}</span>' if state == "damaged" else state


def _dialect(report: Report) -> str:
    number = "" if report.log_number is None else f", log number {report.log_number}"
    unknown = "" if report.dialect_known else ": the file does not show it"
    return f"{report.dialect}{', zstd' if report.compression else ''}{number}{unknown}"


def _region_row(found: RegionEvidence) -> Sequence[str]:
    region, first = found
    flip = region.bit_flip
    severity = _SEVERITIES[region.severity]
    style = ' class="bad"' if region.severity == Severity.CORRUPTION else ""
    return (
        f"{region.offset:,} to {region.end_offset:,}, {quantity(region.length, 'byte')}",
        _ZEROS if region.reason == Reason.ZERO_FILL else f"<span{style}>{severity}</span>: {_text(region.description)}",
        "" if flip is None else f"bit {flip.bit} of byte {flip.offset:,}, in the {flip.part}",
        "not read" if first is None else _code(first.hex(" ")),
    )


def _key_row(change: KeyChange) -> Sequence[str]:
    key = _key(change.key)
    if change.key_len > len(change.key):
        key += f" and {quantity(change.key_len - len(change.key), 'more byte')}"
    if change.end_key is not None:
        key += f" up to {_key(change.end_key)}"
    if change.column_family:
        key += f" in column family {change.column_family:,}"
    old_offset = ""
    if change.old_offset is not None:
        old_offset = f"{change.old_offset:,}"
        value = _number(change.old_sequence)
        if not change.is_certain:
            value += '<span class="bad">, not certainly the last value before</span>'
    elif change.end_key is not None:
        value = "not looked for"
    else:
        value = "not in this log" if change.is_certain else '<span class="bad">not found: it may be lost</span>'
    return key, f"{_number(change.sequence)} at {change.offset:,}", value, old_offset


def _key(key: bytes) -> str:
    """Returns a key as text, or as a Python bytes literal if it is not valid text."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = "\\"
    if not text.isprintable() or "\\" in text:
        text = repr(key)[2:-1]
    return f"<code><bdi>{_text(text)}</bdi></code>" if key else "(empty)"


def _number(number: int | None) -> str:
    return "no number" if number is None else f"{number:,}"


def _text(text: str) -> str:
    return escape(escaped(text))


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    """Returns an HTML description list. The values must be HTML."""
    return "<dl>" + "".join(f"<dt>{term}</dt><dd>{value}</dd>" for term, value in facts) + "</dl>"


def _table(
    caption: str,
    head: Iterable[str],
    rows: Iterable[Sequence[str]],
    count: int,
    row_count: int | None = None,
    *,
    is_cut: bool = False,
) -> str:
    """Returns an HTML table, and a note saying how many of the `count` items aren't listed. The cells must be HTML."""
    listed = list(islice(rows, _SUMMARY_MAX))
    heading = f"<h3>{caption}: {'more than ' if is_cut else ''}{count:,}</h3>" if caption else ""
    if not listed:
        return heading
    names = "".join(f"<th>{name}</th>" for name in head)
    lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in listed]
    left = (count if row_count is None else row_count) - len(listed)
    more = f'<p class="quiet">{left:,} more are not listed.</p>' if left else ""
    return f"{heading}<table><thead><tr>{names}</tr></thead><tbody>{''.join(lines)}</tbody></table>{more}"


_NOT_IN_JSON = {"path", "repaired", "not_kept", "skipped", "repaired_count"}
