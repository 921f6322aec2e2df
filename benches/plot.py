"""Draws the pictures and tables of `docs/performance.md` from the newest record in `benches/record`.

    python benches/plot.py [--check]

With `--check` it does not write, and fails if the documentation does not match the record.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/performance.md"
PICTURES = ROOT / "docs/performance"

RECORD_TICKS = {16.0: "16 B", 100.0: "100 B", 1024.0: "1 KiB", 10_240.0: "10 KiB", 102_400.0: "100 KiB"}

# A light and a dark shade of each; cordwood's is the highlighted one.
COLOURS = {
    "ours": ("#d9480f", "#ff922b"),
    "ours2": ("#e8890c", "#ffc078"),
    "blue": ("#1864ab", "#74c0fc"),
    "green": ("#2b8a3e", "#8ce99a"),
    "violet": ("#862e9c", "#e599f7"),
    "teal": ("#0b7285", "#66d9e8"),
    "rose": ("#a61e4d", "#faa2c1"),
    "brown": ("#7a5230", "#d8b89a"),
    "grey": ("#495057", "#ced4da"),
    "olive": ("#5c6b00", "#c0d860"),
}
INK = {"ink": ("#1f2328", "#e6edf3"), "soft": ("#57606a", "#9aa4ae"), "grid": ("#dfe3e8", "#30363d")}
PAPER = ("#ffffff", "#0d1117")


@dataclass
class Line:
    """One contender: points of x and (low, median, high)."""

    label: str
    colour: str
    points: list[tuple[float, list[float]]]
    dashed: bool = False


@dataclass
class Panel:
    """A plot with logarithmic axes."""

    title: str
    x_title: str
    y_title: str
    x_ticks: dict[float, str]
    y_format: Callable[[float], str]
    lines: list[Line] = field(default_factory=list)

    def y_range(self) -> tuple[float, float]:
        """The lowest and the highest of all values."""
        values = [value for line in self.lines for _, values in line.points for value in values]
        return min(values), max(values)


PLOT_WIDTH, PLOT_HEIGHT = 300, 360
LEFT, TOP, BOTTOM, LABELS = 64, 56, 56, 164
LABEL_HEIGHT = 15


def style() -> str:
    def rules(which: int) -> str:
        fills = "".join(f".{name}{{fill:{both[which]}}}" for name, both in (COLOURS | INK).items())
        strokes = "".join(f".s-{name}{{stroke:{both[which]}}}" for name, both in (COLOURS | INK).items())
        return f".paper{{fill:{PAPER[which]}}}{fills}{strokes}"

    return (
        "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:12px}"
        ".title{font-size:14px;font-weight:600}.line{fill:none;stroke-width:1.6}.bold{stroke-width:3}.strong{font-weight:700}"
        f"{rules(0)}@media(prefers-color-scheme:dark){{{rules(1)}}}"
    )


def nanoseconds(value: float) -> str:
    if value < 1e3:
        return f"{value:g} ns"
    return f"{value / 1e3:g} µs" if value < 1e6 else f"{value / 1e6:g} ms"


def ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten; only the powers if the range is wide."""
    steps = (1,) if high / low > 300 else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]


def spread(places: list[float], low: float, high: float) -> list[float]:
    """Moves labels apart, as little as a sweep from either side allows."""
    order = sorted(range(len(places)), key=places.__getitem__)
    at = list(places)
    for before, index in zip([None, *order], order, strict=False):
        at[index] = max(at[index], low if before is None else at[before] + LABEL_HEIGHT)
    for index, behind in zip(reversed(order), [None, *reversed(order)], strict=False):
        at[index] = min(at[index], high if behind is None else at[behind] - LABEL_HEIGHT)
    return at


def draw_panel(panel: Panel, left: float, y_range: tuple[float, float]) -> Iterable[str]:
    x_low, x_high = min(panel.x_ticks), max(panel.x_ticks)
    y_low, y_high = y_range[0] / 1.25, y_range[1] * 1.25
    bottom = TOP + PLOT_HEIGHT

    def x(value: float) -> float:
        return round(left + math.log(value / x_low) / math.log(x_high / x_low) * PLOT_WIDTH, 1)

    def y(value: float) -> float:
        return round(bottom - math.log(value / y_low) / math.log(y_high / y_low) * PLOT_HEIGHT, 1)

    yield f'<text class="title ink" x="{left}" y="{TOP - 30}">{escape(panel.title)}</text>'
    yield f'<text class="soft" x="{left}" y="{TOP - 12}">{escape(panel.y_title)}</text>'
    middle = left + PLOT_WIDTH / 2
    yield f'<text class="soft" x="{middle}" y="{bottom + 42}" text-anchor="middle">{escape(panel.x_title)}</text>'
    for value in ticks(y_low, y_high):
        yield f'<path class="s-grid" d="M{left} {y(value)}h{PLOT_WIDTH}"/>'
        text = escape(panel.y_format(value))
        yield f'<text class="soft" x="{left - 8}" y="{y(value) + 4}" text-anchor="end">{text}</text>'
    for value, text in panel.x_ticks.items():
        yield f'<path class="s-grid" d="M{x(value)} {TOP}v{PLOT_HEIGHT}"/>'
        yield f'<text class="soft" x="{x(value)}" y="{bottom + 20}" text-anchor="middle">{escape(text)}</text>'

    ends = [y(line.points[-1][1][1]) for line in panel.lines]
    places = spread(ends, TOP + 6, bottom - 6)
    # cordwood's last, on top of the others.
    for line, end, place in sorted(
        zip(panel.lines, ends, places, strict=True), key=lambda each: each[0].colour[:4] == "ours"
    ):
        bold = " bold" if line.colour == "ours" else ""
        path = "L".join(f"{x(at)} {y(values[1])}" for at, values in line.points)
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        yield f'<path class="line{bold} s-{line.colour}" d="M{path}"{dash}/>'
        for at, (low, median, high) in line.points:
            yield f'<path class="s-{line.colour}" d="M{x(at)} {y(low)}V{y(high)}"/>'
            yield f'<circle class="{line.colour}" cx="{x(at)}" cy="{y(median)}" r="2.6"/>'
        right = x(line.points[-1][0])
        label = left + PLOT_WIDTH + 26
        yield f'<path class="line s-{line.colour}" style="stroke-width:.8" d="M{right + 4} {end}L{label - 4} {place}"/>'
        strong = " strong" if line.colour == "ours" else ""
        yield f'<text class="{line.colour}{strong}" x="{label}" y="{place + 4}">{escape(line.label)}</text>'


def draw(panels: dict[str, Panel], description: str) -> dict[str, str]:
    """An SVG file for each panel, all with the same scale. Side by side, they would be too wide for a phone."""
    ranges = [panel.y_range() for panel in panels.values() if panel.lines]
    y_range = min(low for low, _ in ranges), max(high for _, high in ranges)
    width, height = LEFT + PLOT_WIDTH + LABELS + 8, TOP + PLOT_HEIGHT + BOTTOM
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}"',
        f' viewBox="0 0 {width} {height}">',
    )
    paper = f'<rect class="paper" width="{width}" height="{height}" rx="6"/>'
    return {
        f"{name}.svg": "\n".join(
            [
                *head,
                f"<title>{escape(panel.title)}: {escape(description)}</title>",
                f"<style>{style()}</style>",
                paper,
                *draw_panel(panel, LEFT, y_range),
                "</svg>",
                "",
            ]
        )
        for name, panel in panels.items()
    }


def by_size(figures: dict[str, Any], names: dict[str, tuple[str, str]]) -> list[Line]:
    """Lines over the record length, for the contenders that were measured."""
    lines = []
    for name, (label, colour) in names.items():
        sized = [
            (float(size), figures[size][name]["ns"]) for size in figures if size.isdigit() and name in figures[size]
        ]
        if sized:
            lines.append(Line(label, colour, sized))
    return lines


OURS = {"cordwood": ("cordwood", "ours")}

READERS = OURS | {
    "plain Python + crc32c": ("plain Python + crc32c", "blue"),
    "leveldb-export": ("leveldb-export", "green"),
    "wandb": ("wandb", "violet"),
    "swanlab": ("swanlab", "teal"),
    "rleveldb": ("rleveldb*", "rose"),
    "chromium-reader": ("chromium-reader*", "brown"),
    "dfindexeddb": ("dfindexeddb*", "grey"),
}
READERS_OF_OTHERS = OURS | {
    "bagz": ("bagz*", "blue"),
    "bagz, ranges": ("bagz*, ranges", "teal"),
    "array-record": ("array-record", "green"),
    "array-record, ranges": ("array-record, ranges", "olive"),
    "tfrecord": ("tfrecord*", "violet"),
    "mcap": ("mcap", "rose"),
    "sqlite3": ("sqlite3*", "grey"),
}
OUR_WRITERS = OURS | {"cordwood batches, extend": ("cordwood, extend", "ours2")}
WRITERS = OUR_WRITERS | {name: READERS[name] for name in ("plain Python + crc32c", "wandb", "swanlab")}
WRITERS_OF_OTHERS = OUR_WRITERS | {
    "bagz": ("bagz", "blue"),
    "array-record": ("array-record", "green"),
    "tfrecord": ("tfrecord", "violet"),
    "mcap": ("mcap", "rose"),
    "sqlite3": ("sqlite3", "grey"),
}


def record_panel(title: str, lines: list[Line]) -> Panel:
    return Panel(title, "length of each record", "time for a record", RECORD_TICKS, nanoseconds, lines)


def checksum_panel(record: dict[str, Any]) -> Panel:
    """Gigabytes per second: Rust crates, and Google's library through its Python package."""
    rust = record["compare"]["checksum"]

    def rates(name: str) -> list[tuple[float, list[float]]]:
        return [(float(size), [int(size) / ns for ns in rust[size][name]["ns"][::-1]]) for size in rust]

    lines = [
        Line("cordwood", "ours", rates("cordwood")),
        Line("crc32c", "blue", rates("crc32c")),
        Line("crc-fast", "green", rates("crc-fast")),
    ]
    # It was measured in a separate run, so only its ratio to cordwood in that run is used.
    net = record["checksums"]["net"]
    google = [
        (at, [ours[1] / ratio for ratio in net[f"{at:.0f}"]["google-crc32c"]["ratio"][::-1]])
        for at, ours in rates("cordwood")
        if "google-crc32c" in net.get(f"{at:.0f}", {})
        and net[f"{at:.0f}"]["google-crc32c"]["ratio"][0] > 0  # If not, the time was lost in the noise of the calls.
    ]
    if google:
        lines.append(Line("google-crc32c", "violet", google, dashed=True))
    x_ticks = {16.0: "16 B", 64.0: "64 B", 256.0: "256 B", 1024.0: "1 KiB", 4096.0: "4 KiB", 32761.0: "32 KiB"}
    return Panel("CRC-32C", "length of the data", "GB/s", x_ticks, lambda value: f"{value:g}", lines)


def pictures(record: dict[str, Any]) -> dict[str, str]:
    """The contents of each SVG file."""
    python, compare = record["python"], record["compare"]
    rivals = OURS | {"rusty-leveldb": ("rusty-leveldb", "blue")}
    by_length = "time for a record by its length"
    return (
        draw({"checksum": checksum_panel(record)}, "gigabytes a second by length")
        | draw(
            {
                "rust-read": record_panel("Reading, in Rust", by_size(compare["read"], rivals)),
                "rust-write": record_panel("Writing, in Rust", by_size(compare["write"], rivals)),
            },
            by_length,
        )
        | draw(
            {
                "read": record_panel("Reading this format", by_size(python["read"], READERS)),
                "read-others": record_panel(
                    "Reading other files of records", by_size(python["read"], READERS_OF_OTHERS)
                ),
            },
            by_length,
        )
        | draw(
            {
                "write": record_panel("Writing this format", by_size(python["write"], WRITERS)),
                "write-others": record_panel(
                    "Writing other files of records", by_size(python["write"], WRITERS_OF_OTHERS)
                ),
            },
            by_length,
        )
    )


# Tables ----------------------------------------------------------------------------------------------------------


def short(value: float) -> str:
    """With three significant digits: 41.7, 1,030 and 26,900."""
    if value < 100:
        return f"{value:.3g}"
    digits = 2 - math.floor(math.log10(value))
    return f"{round(value, digits):,.0f}"


def length(size: str) -> str:
    """A size with its unit: 16 B, 10 KiB; others keep their names."""
    if not size.isdigit():
        return size
    kibibytes, rest = divmod(int(size), 1024)
    return f"{kibibytes} KiB" if kibibytes and not rest else f"{int(size):,} B"


def multiple(ratio: float) -> str:
    """With two significant digits: 0.42x, 1.0x, 24x."""
    return f"{ratio:.2f}x" if ratio < 0.995 else f"{ratio:.1f}x" if ratio < 9.95 else f"{ratio:,.0f}x"


def table(figures: dict[str, Any], mark: Callable[[str], str] = lambda name: name) -> str:
    """A table with a row per contender and a column per size: nanoseconds, and the multiple of cordwood's time."""
    sizes = list(figures)
    names = list(dict.fromkeys(name for size in sizes for name in figures[size]))
    rows = [["", *map(length, sizes)], ["---", *("--:" for _ in sizes)]]
    for name in names:
        cells = []
        for size in sizes:
            if name in figures[size]:
                ratio = figures[size][name]["ratio"]
                times = "" if ratio == [1, 1, 1] else f" ({multiple(ratio[1])})"
                cells.append(f"{short(figures[size][name]['ns'][1])}{times}")
            else:
                cells.append("-")
        rows.append([mark(name), *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


NOT_IN_RECORD = "Not in this record: `make bench` adds it."

PACKED = (
    "cordwood",
    "cordwood batches, extend",
    "cordwood packed",
    "cordwood packed, batches, extend",
    "cordwood packed, zstd",
    "cordwood packed, zstd, batches, extend",
    "one zstd stream",
    "mcap, zstd",
    "bagz, zstd",
    "riegeli",
    "riegeli, zstd",
)
"""The contenders whose files are compared by their length too."""


def packed(part: dict[str, Any], *verbs: str) -> str:
    """A table of the space and the time that short records and lines of JSON take."""
    if "file_share" not in part:
        return NOT_IN_RECORD
    shares = part["file_share"]
    sizes = ("16", "json")
    heads = [f"{length(size)}: {head}" for size in sizes for head in ("in the file", "write", "read")]
    rows = [["", *heads], ["---", *("--:" for _ in heads)]]
    for name in PACKED:
        if name in shares["json"]:
            cells = [
                [f"{shares[size][name]:.3f}", *(short(part[verb][size][name]["ns"][1]) for verb in verbs)]
                for size in sizes
            ]
            rows.append([name, *cells[0], *cells[1]])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def faster(record: dict[str, Any]) -> str:
    """Which contenders beat cordwood, and where: the whole middle half of the ratios lies below 1."""
    lines = []
    for part, verb, what in (
        ("compare", "read", "reading in Rust"),
        ("compare", "write", "writing in Rust"),
        ("compare", "append, each record written", "appending in Rust, each record written"),
        ("compare", "append, gathered", "appending in Rust, gathered"),
        ("compare", "checksum", "checksums in Rust"),
        ("python", "read", "reading in Python"),
        ("python", "write", "writing in Python"),
        ("python", "append", "appending in Python, each record written"),
        ("checksums", "checksum", "checksums in Python"),
        ("checksums", "net", "checksums in Python, without the time of the call"),
    ):
        found: dict[str, list[str]] = {}
        for size, figures in record[part].get(verb, {}).items():
            for name, figure in figures.items():
                if not name.startswith(("cordwood", "bare-writes")) and figure["ratio"][2] < 1:
                    found.setdefault(name, []).append(f"{length(size)} ({multiple(figure['ratio'][1])})")
        lines += [f"- {what}: {name} at {', '.join(sizes)}" for name, sizes in found.items()]
    return "\n".join(lines) or "- Nobody at any size."


def contenders(record: dict[str, Any]) -> str:
    python = record["python"]
    lines = ["| contender | installed as | reads | checks checksums | how |", "|---|---|---|---|---|"]
    files = {"log": "this format", "batches": "this format, WriteBatches inside", "own": "its own format"}
    for name, about in python["contenders"].items():
        if name in python["read"]["1024"]:
            version = about["requires"].removeprefix("--no-deps ") or "-"
            checks = "yes" if about["verifies"] else "no"
            lines.append(f"| {name} | {version} | {files[about['file']]} | {checks} | {about['note']} |")
    lines += ["", "Not measured:", ""]
    problems = python["problems"] | record["checksums"]["problems"]
    lines += [f"- {name}: {why}" for name, why in problems.items()]
    return "\n".join(lines)


GAINED = ("wandb", "swanlab", "leveldb-export", "plain Python + crc32c", "mcap", "tfrecord", "array-record", "sqlite3")


def gain(record: dict[str, Any]) -> str:
    """How long others take, as multiples of cordwood's time."""
    sizes = ("100", "1024", "10240")
    verbs = ("read", "write")
    rows = [["", *(f"{verb} {length(size)}" for verb in verbs for size in sizes)], ["---", *["--:"] * 6]]
    for name in GAINED:
        cells = [record["python"][verb][size].get(name) for verb in verbs for size in sizes]
        rows.append([name, *(multiple(cell["ratio"][1]) if cell else "-" for cell in cells)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def machine(record: dict[str, Any]) -> str:
    facts = record["machine"]
    python = record["python"]
    commits = {
        part: record[part]["commit"] for part in ("rust", "compare", "python", "checksums", "memory") if part in record
    }
    return "\n".join(
        [
            f"- {facts['date']}; {facts['cpu']}, {facts['cpu_count']} cores, {facts['memory_len'] / 2**30:.0f} GiB",
            f"- processor features that the checksum kernels use: {', '.join(facts['cpu_features'])}",
            f"- {facts['system']}; Python {facts['python']}; {facts['rustc']}",
            f"- in Python: {python['rounds']} rounds; files {python['files']}",
            f"- load average when the Python part started: {python['load_before']}",
            f"- commits: {', '.join(f'{part} {commit}' for part, commit in commits.items())}",
        ]
    )


def memory(record: dict[str, Any]) -> str:
    if "memory" not in record:
        return "Not in this record: `make bench-memory` adds it."
    lines = ["| file | records | ns a record | memory above the interpreter's own |", "|--:|--:|--:|--:|"]
    lines += [
        f"| {run['file_len'] / 2**20:,.0f} MiB | {run['count']:,} | {short(run['ns'])} "
        f"| {run['above_len'] / 2**20:.1f} MiB |"
        for run in record["memory"]["runs"]
    ]
    return "\n".join(lines)


def appending(part: dict[str, Any], verb: str) -> str:
    return table(part[verb]) if verb in part else NOT_IN_RECORD


def sections(record: dict[str, Any]) -> dict[str, str]:
    """The text between the page's markers."""
    python, compare = record["python"], record["compare"]

    def mark(name: str) -> str:
        return name if python["contenders"][name]["verifies"] else f"{name}*"

    return {
        "machine": machine(record),
        "gain": gain(record),
        "checksum": table(compare["checksum"]),
        "checksum-python": table(record["checksums"]["checksum"]),
        "checksum-net": table(record["checksums"]["net"]),
        "rust-read": table(compare["read"]),
        "rust-write": table(compare["write"]),
        "rust-append": appending(compare, "append, each record written"),
        "rust-append-gathered": appending(compare, "append, gathered"),
        "read": table(python["read"], mark),
        "write": table(python["write"]),
        "append": appending(python, "append"),
        "packed": packed(python, "write", "read"),
        "rust-packed": packed(compare, "packed, write", "packed, read"),
        "faster": faster(record),
        "contenders": contenders(record),
        "memory": memory(record),
    }


def page(record: dict[str, Any]) -> str:
    text = PAGE.read_text(encoding="utf-8")
    made = sections(record)

    def fill(found: re.Match[str]) -> str:
        return f"<!-- {found[1]} -->\n\n{made[found[1]]}\n\n<!-- end -->"

    return re.sub(r"<!-- ([a-z-]+) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


def main() -> None:
    """Writes the pictures and the page, or compares them with the existing ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the documentation is not up to date"
    )
    arguments = parser.parse_args()
    newest = max((ROOT / "benches/record").glob("*.json"))
    record = json.loads(newest.read_text())
    files = {PICTURES / name: content for name, content in pictures(record).items()} | {PAGE: page(record)}
    if arguments.check:
        stale = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not what benches/plot.py makes of {newest.name}", file=sys.stderr)
        sys.exit(bool(stale))
    PICTURES.mkdir(exist_ok=True)
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
