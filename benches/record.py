"""Saves the figures of a benchmark run with facts about the machine: `make bench` runs it last.

    python benches/record.py [--rust] [--compare FILE] [--python FILE] [--checksums FILE] [--memory FILE]

Writes the named parts into `benches/record/DATE-CPU.json`, and keeps the other parts that are already there.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def cpu() -> str:
    """The name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def cpu_features() -> list[str]:
    """The features that the checksum kernels check for."""
    wanted = {"sse4_2", "pclmulqdq", "avx2", "vpclmulqdq", "avx512bw", "crc32", "pmull"}
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return sorted(wanted & set(text.split()))


def memory_len() -> int:
    """Bytes of main memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def output_of(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


def criterion() -> dict[str, list[float]]:
    """Nanoseconds for each benchmark: the median, between the ends of its 95 % confidence interval."""
    figures = {}
    for path in sorted((ROOT / "target/criterion").rglob("new/estimates.json")):
        name = "/".join(path.relative_to(ROOT / "target/criterion").parts[:-2])
        median = json.loads(path.read_text())["median"]
        interval = median["confidence_interval"]
        numbers = (interval["lower_bound"], median["point_estimate"], interval["upper_bound"])
        figures[name] = [round(number, 2) for number in numbers]
    return figures


def compare(path: Path) -> dict[str, Any]:
    """The output of `cordwood-compare`, in the form that `bench.py` writes."""
    figures: dict[str, dict[str, dict[str, Any]]] = {}
    for line in path.read_text().splitlines()[1:]:
        verb, size, name, *numbers = line.split("\t")
        by_name = figures.setdefault(verb, {}).setdefault(size, {})
        if verb == "file_share":
            (by_name[name],) = map(float, numbers)
        else:
            ns, low, high, ratio, ratio_low, ratio_high = map(float, numbers)
            by_name[name] = {"ns": [low, ns, high], "ratio": [ratio_low, ratio, ratio_high]}
    return figures


def to_json(record: object) -> str:
    """Keeps a list of numbers on one line: a line for each contender's result at one size."""
    text = json.dumps(record, indent=1)
    return re.sub(r"\[[-\d.,\s]+\]", lambda found: "".join(found[0].split()).replace(",", ", "), text) + "\n"


def main() -> None:
    """Writes the record and prints its path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rust", action="store_true", help="take what criterion left under target/criterion")
    parser.add_argument("--compare", type=Path, help="what cordwood-compare printed")
    parser.add_argument("--python", type=Path, help="what bench.py wrote")
    parser.add_argument("--checksums", type=Path, help="what bench.py --checksums wrote")
    parser.add_argument("--memory", type=Path, help="what memory.py wrote")
    arguments = parser.parse_args()

    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    commit = output_of("git", "describe", "--always")
    # The parts of a record are measured one by one, and change it and the pages that show it.
    if output_of("git", "status", "--porcelain", "--untracked-files=no", "--", ":!benches/record", ":!docs"):
        commit += "-dirty"
    name = re.sub(r"[^a-z0-9]+", "-", cpu().lower()).strip("-")
    path = ROOT / f"benches/record/{date}-{name}.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    record["machine"] = {
        "date": date,
        "cpu": cpu(),
        "cpu_features": cpu_features(),
        "cpu_count": os.cpu_count(),
        "memory_len": memory_len(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "rustc": output_of("rustc", "--version"),
    }
    parts: dict[str, object] = {}
    if arguments.rust:
        parts["rust"] = {"ns": criterion()}
    if arguments.compare:
        parts["compare"] = compare(arguments.compare)
    for part in ("python", "checksums", "memory"):
        if file := getattr(arguments, part):
            parts[part] = json.loads(file.read_text())
    for part, figures in parts.items():
        record[part] = {"commit": commit, **figures}
    path.write_text(to_json(record))
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
