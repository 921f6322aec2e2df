"""The cost of bytes that are expensive, by design or by accident: CPU per byte and peak memory, by family and verb.

    python benches/python/hostile.py [--len MIB] [--family NAME]...

Each measurement is the fastest of three calls, each in a fresh process. `ratio` compares its CPU time per byte with
iterating over the records of an undamaged log of the same length, whose records take 100 bytes each, or as many as a
fragment of the family. `memory` is how far the peak rose above the memory of the process once cordwood was loaded. The
zstd family is a short file whose ratio is meaningless: the budget for compressed logs bounds it. The time of `cat`
includes its imports, which dominate for a few MiB; `--len 64` shows the cost per byte. Linux only.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory import peak_len

import cordwood
from cordwood.cli import main as main_of_cli

BLOCK_LEN = 32_768
TEXT = b"It was the best of times, it was the worst of times, it was the age of wisdom. "


def log_of(records: list[bytes], **options: Any) -> bytes:
    file = io.BytesIO()
    with cordwood.Writer(file, "w", **options) as writer:
        writer.extend(records)
    return file.getvalue()


def fragment(kind: int, payload: bytes) -> bytes:
    crc = cordwood.mask_crc(cordwood.crc32c(bytes([kind]) + payload))
    return struct.pack("<IHB", crc, len(payload), kind) + payload


def repeated(piece: bytes, length: int) -> bytes:
    return (piece * (length // len(piece) + 1))[:length]


def every_second_record_damaged(length: int) -> bytes:
    log = bytearray(log_of([b"x" * 93] * (length // 100))[:length])
    for start in range(0, len(log) - 100, 200):
        log[start + 50] ^= 1
    return bytes(log)


WHOLE = "whole log"
WHOLE_EMPTY = "whole log, empty records"
# The file of a given length, and the dialect to read it as: None if its contents show it.
FAMILIES: dict[str, tuple[Callable[[int], bytes], str | None]] = {
    WHOLE: (lambda length: log_of([b"x" * 93] * (length // 100)), None),
    WHOLE_EMPTY: (lambda length: log_of([b""] * (length // 7)), None),
    "@ everywhere": (lambda length: b"@" * length, "leveldb"),
    "a record a block, then @": (lambda length: repeated(fragment(1, b"").ljust(BLOCK_LEN, b"@"), length), None),
    "English text": (lambda length: repeated(TEXT, length), "leveldb"),
    "random bytes": (lambda length: random.Random(1).randbytes(length), "leveldb"),
    "empty MIDDLE fragments": (lambda length: repeated(fragment(3, b""), length), None),
    "empty FIRST fragments": (lambda length: repeated(fragment(2, b""), length), None),
    "every 2nd record damaged": (every_second_record_damaged, None),
    "zstd: 256 MiB in 8 KiB": (
        lambda _: log_of([bytes(256 << 20)], dialect="rocksdb", compression="zstd"),
        None,
    ),
}


def call(verb: str, policy: str, path: str, dialect: str | None) -> None:
    """Runs one verb to its end."""
    named = {"dialect": dialect, "on_corruption": policy}
    match verb:
        case "iterate":
            collections.deque(cordwood.Reader(path, **named), 0)
        case "open for append":
            cordwood.Writer(path, "a", on_torn_tail=policy, dialect=dialect).close()
        case "detect":
            cordwood.detect(path)
        case "verify":
            cordwood.verify(path, **named)
        case "stat":
            cordwood.stat(path, **named)
        case "salvage":
            cordwood.salvage(path, f"{path}.salvaged", dialect=dialect)
        case "follow":
            collections.deque(cordwood.follow(path, timeout=0, retry_time=0, **named), 0)
        case "cat":
            options = ["--dialect", dialect] if dialect else []
            main_of_cli(["cat", "--format", "raw", "--on-corruption", policy, *options, path])


VERBS = dict.fromkeys(["iterate", "verify", "stat", "cat"], ("skip", "salvage"))
VERBS |= {"open for append": ("refuse", "truncate", "pad"), "detect": ("-",), "salvage": ("-",), "follow": ("skip",)}


def measure(*what: str) -> None:
    """The work of the fresh process: prints CPU seconds and bytes of memory."""
    verb, policy, path, *dialect = what
    cordwood.crc32c(b"loaded")
    memory = peak_len()
    start = time.process_time()
    # Errors are results too. A verb's output is ignored.
    with (
        contextlib.suppress(OSError, ValueError, cordwood.CordwoodError),
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        call(verb, policy, path, *(dialect or [None]))
    print(json.dumps([time.process_time() - start, peak_len() - memory]))


def in_fresh_process(file: bytes, verb: str, policy: str, dialect: str | None) -> tuple[float, int]:
    """The seconds and bytes that `measure` prints for a new file, since some verbs change it."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "log")
        path.write_bytes(file)
        command = [sys.executable, __file__, "--measure", verb, policy, path, *([dialect] if dialect else [])]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return tuple(json.loads(answer.stdout))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--len", type=int, default=4, metavar="MIB")
    parser.add_argument("--family", action="append", choices=FAMILIES)
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(*options.measure)
        return
    plain: dict[str, float] = {}
    row = "{:25} {:16} {:9} {:>8} {:>6} {:>12}"
    print(row.format("family", "verb", "policy", "ns/byte", "ratio", "memory, MiB"))
    for family in dict.fromkeys([WHOLE, WHOLE_EMPTY, *(options.family or FAMILIES)]):
        make, dialect = FAMILIES[family]
        file = make(options.len << 20)
        for verb, policy in ((verb, policy) for verb, policies in VERBS.items() for policy in policies):
            # The memory is the same for each, whichever was the fastest.
            seconds, memory = min(in_fresh_process(file, verb, policy, dialect) for _ in range(3))
            ns = seconds / len(file) * 1e9
            plain.setdefault(family, ns)
            base = WHOLE_EMPTY if "empty" in family else WHOLE
            ratio = f"{ns / plain[base]:.1f}"
            print(row.format(family, verb, policy, f"{ns:.2f}", ratio, f"{memory / (1 << 20):.1f}"), flush=True)


if __name__ == "__main__":
    main()
