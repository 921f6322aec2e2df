"""How much memory reading a log needs, by the length of the file. `make bench-memory` runs it. Linux only.

    python benches/python/memory.py [--json FILE] [--len MIB]... [--directory DIRECTORY]

For each length, writes a log of 1 KiB records, reads it in a fresh process, and reports how far that process's peak
memory rose from the one before the file was opened.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cordwood

RECORD = bytes(range(256)) * 4
BATCH = [RECORD] * 1024


def write(path: Path, file_len: int) -> int:
    """Writes a log of about that length, and returns how many records it contains."""
    count = 0
    with cordwood.open(path, "w") as writer:
        while writer.tell() < file_len:
            count += writer.extend(BATCH)
    return count


def peak_len() -> int:
    """This process's peak memory, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("no VmHWM in /proc/self/status")


def read(path: Path) -> None:
    """The work of the fresh process: prints its measurements."""
    cordwood.crc32c(RECORD)  # Loads the module and selects its kernel.
    before = peak_len()
    start = time.perf_counter()
    count = 0
    for record in cordwood.open(path):
        count += 1
        if len(record) != len(RECORD):
            raise ValueError(f"a record of {len(record)} bytes")
    seconds = time.perf_counter() - start
    print(json.dumps({"count": count, "ns": round(seconds / count * 1e9, 2), "above_len": peak_len() - before}))


def measure(file_len: int, directory: Path) -> dict[str, float]:
    path = directory / f"{file_len}.log"
    count = write(path, file_len)
    answer = subprocess.run([sys.executable, __file__, "--read", path], check=True, capture_output=True, text=True)
    run = {"file_len": path.stat().st_size, **json.loads(answer.stdout)}
    path.unlink()
    assert run["count"] == count
    return run


def main() -> None:
    """Measures, prints a table, and writes the figures to the named file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument(
        "--len", type=int, action="append", help="length of a log in MiB; default 1, 64, 1024 and 10240"
    )
    parser.add_argument("--directory", type=Path, help="where the logs lie for a while; default: the system's")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        read(arguments.read)
        return

    runs = []
    print("       file       records   ns a record   memory above the interpreter's own")
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        directory = Path(name)
        for mebibytes in arguments.len or [1, 64, 1024, 10_240]:
            file_len = mebibytes << 20
            free_len = shutil.disk_usage(directory).free
            if free_len < file_len + (1 << 30):  # Leaves a gibibyte free for others.
                print(f"{mebibytes:>7} MiB   left out: only {free_len >> 20} MiB are free")
                continue
            run = measure(file_len, directory)
            runs.append(run)
            print(
                f"{mebibytes:>7} MiB{run['count']:>14,}{run['ns']:>14,.1f}{run['above_len'] / 2**20:>14.2f} MiB",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps({"runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
