"""Keeps the figures of a benchmark run with the facts of the machine: `make bench` runs it last.

    python benches/record.py PYTHON_FIGURES

Writes `benches/record/DATE-CPU.json` from what `bench.py --json` wrote and from what criterion left under
`target/criterion`.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def cpu() -> str:
    """The name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def cpu_features() -> list[str]:
    """Those that the checksum's kernels look for."""
    wanted = {"sse4_2", "pclmulqdq", "avx2", "vpclmulqdq", "avx512bw", "crc32", "pmull"}
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return sorted(wanted & set(text.split()))


def criterion() -> dict[str, dict[str, float]]:
    """Nanoseconds of each benchmark: the median and its interval of 95 %."""
    figures = {}
    for path in sorted((ROOT / "target/criterion").rglob("new/estimates.json")):
        name = "/".join(path.relative_to(ROOT / "target/criterion").parts[:-2])
        median = json.loads(path.read_text())["median"]
        interval = median["confidence_interval"]
        figures[name] = {
            "median": round(median["point_estimate"], 2),
            "low": round(interval["lower_bound"], 2),
            "high": round(interval["upper_bound"], 2),
        }
    return figures


def main() -> None:
    """Writes the record and says where."""
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.strip()
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit,
        "cpu": cpu(),
        "cpu_features": cpu_features(),
        "cpu_count": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "rustc": rustc,
        "rust_ns": criterion(),
        "python_ns_per_record": json.loads(Path(sys.argv[1]).read_text()),
    }
    name = re.sub(r"[^a-z0-9]+", "-", str(record["cpu"]).lower()).strip("-")
    path = ROOT / f"benches/record/{record['date']}-{name}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
