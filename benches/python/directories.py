"""The cost of a directory: of `verify` and `stat` for each small log, and of `info` for each edit of a long MANIFEST.

    python benches/python/directories.py [--edits COUNT]

Processor time, user and system, of fresh processes, the smallest of three; the time for each file is what the command
takes beyond calls of `cordwood.verify` or `stat` for the same files, and that for each edit what `info` takes beyond an
empty database. The answers are checked: a wrong count ends it. Status 1 if a limit is exceeded.
"""

from __future__ import annotations

import argparse
import json
import resource
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import cordwood

VERBS = ("verify", "stat")
COUNTS = (1_500, 12_000)
RECORDS = [b"x" * 140] * 10
FILE_LIMIT, GROWTH_LIMIT, EDIT_LIMIT = 40, 1.5, 3
LIVE_COUNT = 100

EACH = "import sys, os, cordwood\nfor name in sorted(os.listdir(sys.argv[1])): cordwood.{}(sys.argv[1] + '/' + name)"


def seconds(*command: str) -> tuple[float, str]:
    """The processor time of a Python process, and its output."""
    best, out = float("inf"), ""
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True, check=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return best, out


def small_logs(directory: Path) -> bool:
    """Prints the cost of a small log."""
    is_good = True
    # For each verb and number of logs: of the command, and of the calls.
    taken: dict[tuple[str, int], tuple[float, float]] = {}
    for count in COUNTS:
        logs = directory / str(count)
        logs.mkdir()
        for index in range(count):
            with cordwood.open(logs / f"{index:06}.log", "w") as writer:
                writer.extend(RECORDS)
        for verb in VERBS:
            _, out = seconds("-m", "cordwood", verb, "--json", str(logs), str(logs))
            totals = json.loads(out.splitlines()[-1])["totals"]
            expected = count, len(RECORDS) * count
            if (totals["log_count"], totals["record_count"]) != expected:
                raise SystemExit(f"{verb}: {totals}, not {expected}")
            calls = seconds("-c", EACH.format(verb), str(logs))[0]
            taken[verb, count] = seconds("-m", "cordwood", verb, str(logs))[0], calls
    few, many = COUNTS
    for verb in VERBS:
        # The difference of two directories is without the start of the process.
        command, calls = (
            (of_many - of_few) / (many - few) * 1e6
            for of_few, of_many in zip(taken[verb, few], taken[verb, many], strict=True)
        )
        growth = taken[verb, many][0] / taken[verb, few][0]
        print(f"{verb}: {command - calls:.1f} µs a log beyond the library's own call, {calls:.1f} µs")
        print(f"{verb}: {many:,} logs take {growth:.1f} times as long as {few:,}")
        is_good &= command - calls <= FILE_LIMIT and growth <= many / few * GROWTH_LIMIT
    return is_good


def varint(number: int) -> bytes:
    head = b""
    while number >= 128:
        head += bytes([number & 127 | 128])
        number >>= 7
    return head + bytes([number])


def database(directory: Path, edit_count: int) -> Path:
    """A database of LevelDB that was never reopened: each edit adds a table and removes an old one."""
    directory.mkdir()
    comparator = b"leveldb.BytewiseComparator"
    number, live = 5, []
    with cordwood.open(directory / "MANIFEST-000002", "w") as writer:
        writer.append(varint(1) + varint(len(comparator)) + comparator + bytes.fromhex("020003050400"))
        for index in range(edit_count):
            edit = varint(2) + varint(number - 1) + varint(3) + varint(number + 2) + varint(4) + varint(index * 10)
            if len(live) >= LIVE_COUNT:
                edit += varint(6) + varint(0) + varint(live.pop(0))
            key = b"key%013d" % index + struct.pack("<Q", index << 8 | 1)
            writer.append(edit + varint(7) + varint(0) + varint(number) + varint(1) + (varint(len(key)) + key) * 2)
            live.append(number)
            number += 2
    (directory / "CURRENT").write_text("MANIFEST-000002\n")
    for table in live:
        (directory / f"{table:06}.ldb").write_bytes(b"x")
    (directory / f"{max(number - 3, 3):06}.log").write_bytes(b"")
    return directory


def long_manifest(directory: Path, edit_count: int) -> bool:
    """Prints the cost of an edit."""
    times = []
    for count in (0, edit_count):
        path = database(directory / f"edits-{count}", count)
        taken, out = seconds("-m", "cordwood", "info", "--json", str(path))
        info = json.loads(out)
        found = info["databases"][0]["table_count"], info["record_count"]
        if found != (min(count, LIVE_COUNT), count + 1):
            raise SystemExit(f"info: {found[0]} tables and {found[1]} records of {count:,} edits")
        times.append(taken)
    each = (times[1] - times[0]) / edit_count * 1e6
    print(f"info: {each:.2f} µs an edit, of {edit_count:,}, beyond an empty database")
    return each <= EDIT_LIMIT


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=200_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        results = [small_logs(Path(directory)), long_manifest(Path(directory), options.edits)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
