"""Writes the tables of docs/survival.md from `record.json`, which `survive.py` has written.

    python benches/survival/page.py [--check]

With `--check` it does not write, and fails if the page does not match the record.
"""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("record.json")
PAGE = Path(__file__).parents[2] / "docs/survival.md"
OUTCOMES = ("wrong", "wrong, then an error", "lost", "error", "crash", "hang", "whole")


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def amount(right: float, count: int) -> str:
    """The records that are given back, on average."""
    if right == count:
        return "all"
    if right > count * 0.9:
        return f"all but {max(round(count - right), 1):,}"
    return f"{right / count:.0%}".replace("%", " %")


def given_back(figures: dict[str, Any], count: int) -> str:
    """With the reader, and with each tool that gives more."""
    read = figures["read"]
    parts = [amount(read["right"], count)]
    parts += [
        f"{way}: {amount(result['right'], count)}"
        for way, result in figures.items()
        if result["right"] > read["right"] and amount(result["right"], count) != parts[0]
    ]
    crashes = read["outcomes"].get("crash", 0)
    return "; ".join(parts) + (f"; **{crashes} crashes**" if crashes else "")


def unnoticed(figures: dict[str, Any]) -> str:
    """How often the reader returned wrong bytes, or too few records, without an error."""
    found = figures["read"]["outcomes"]
    return ", ".join(f"**{found[name]} {name}**" for name in ("wrong", "lost") if name in found) or "0"


def lost(figures: dict[str, Any]) -> str:
    """The acknowledged records that the reader does not return; those of a tool if it returns more."""

    def words(number: int) -> str:
        return "all" if number == figures["acknowledged"] else f"{number:,}"

    read = figures["lost"]["read"]
    return "; ".join(
        words(number) if way == "read" else f"{way}: {words(number)}"
        for way, number in figures["lost"].items()
        if way == "read" or number < read
    )


def summary(record: dict[str, Any]) -> str:
    count, trials = record["record_count"], record["trials"]
    heads = [
        "",
        f"{trials['flip']} flipped bits: no error",
        "given back",
        f"{trials['page']} pages of zeros: no error",
        "given back",
        f"{trials['cut']} cuts: given back",
        "kill -9: lost",
    ]
    rows = [
        [
            name,
            unnoticed(figures["flip"]),
            given_back(figures["flip"], count),
            unnoticed(figures["page"]),
            given_back(figures["page"], count),
            given_back(figures["cut"], count),
            lost(figures["kill"]),
        ]
        for name, figures in record["formats"].items()
    ]
    found = [figures["flip"]["read"]["outcomes"] for figures in record["formats"].values()]
    wrong, fewer = (sum(kind in outcomes for outcomes in found) for kind in ("wrong", "lost"))
    text = (
        f"After a flipped bit, {wrong} of {len(found)} readers returned wrong bytes without an error, and {fewer} "
        f"silently dropped records."
    )
    return f"{text}\n\n{table(heads, rows)}"


def details(record: dict[str, Any], kind: str) -> str:
    rows = [
        [
            name if way == "read" else f"{name}, {way}",
            *(result["outcomes"].get(outcome, "") for outcome in OUTCOMES),
            f"{result['right']:,.1f}",
        ]
        for name, figures in record["formats"].items()
        for way, result in figures[kind].items()
    ]
    heads = ["", "wrong, no error", "wrong, then an error", "lost, no error", "error", "crash", "too slow", "whole"]
    return table([*heads, "records, on average"], rows)


def kill(record: dict[str, Any]) -> str:
    rows = []
    for name, figures in record["formats"].items():
        flushed = figures.get("kill, flushed")
        rows.append(
            [
                name,
                figures["accepted"],
                f"{figures['kill']['acknowledged']:,}",
                lost(figures["kill"]),
                figures["flush"] or "",
                f"{flushed['acknowledged']:,}" if flushed else "",
                lost(flushed) if flushed else "",
            ]
        )
    heads = ["", "a record is then", "acknowledged", "lost", "with", "acknowledged", "lost"]
    return table(heads, rows)


def versions(record: dict[str, Any]) -> str:
    rows = [
        [name, figures["package"], figures["version"], figures["checksum"]]
        for name, figures in record["formats"].items()
    ]
    return table(["", "package", "version", "checksums that the reader compares"], rows)


def story(record: dict[str, Any]) -> str:
    found = record["rocksdb"]
    rows = [
        ["RocksDB opens the database", f"{found['RocksDB']:,}"],
        ["after `cordwood salvage`", f"{found['salvage']:,}"],
        ["after `cordwood salvage --repair-bit-flips`", f"{found['salvage --repair-bit-flips']:,}"],
    ]
    return table(["", f"of {found['written']:,} writes"], rows)


def run(record: dict[str, Any]) -> str:
    trials = record["trials"]
    return (
        f"{record['date']}; {record['system']}; Python {record['python']}; seed {record['seed']}: "
        f"{record['record_count']:,} records, {record['bytes']:,} bytes in total; {trials['flip']} flipped bits, "
        f"{trials['page']} pages, {trials['cut']} cuts and {record['kills']} kills for each format."
    )


def page(record: dict[str, Any]) -> str:
    """The page, with the text between its markers made from the record."""
    made = {
        "summary": summary(record),
        "run": run(record),
        "rocksdb": story(record),
        "kill": kill(record),
        "versions": versions(record),
        **{kind: details(record, kind) for kind in ("flip", "page", "cut")},
    }

    def fill(found: re.Match[str]) -> str:
        return f"<!-- {found[1]} -->\n\n{made[found[1]]}\n\n<!-- end -->"

    return re.sub(r"<!-- ([a-z]+) -->\n.*?<!-- end -->", fill, PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


if __name__ == "__main__":
    text = page(json.loads(RECORD.read_text(encoding="utf-8")))
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(text, encoding="utf-8")
    elif text != PAGE.read_text(encoding="utf-8"):
        sys.exit(f"{PAGE.name} is not what benches/survival/page.py makes of {RECORD.name}")
