"""Reads a log in threads over and over, while its file changes: `python threads.py DIRECTORY COUNT SEED`.

A program of its own, since it forks. Each reading has a different number of threads, different damage and a different
batch length, and the file changes during it: it is replaced, grows or is truncated, the reader is closed or
dropped, the process forks, or other Python threads read the same file. The result must be the same as one thread's,
reading record by record from the original file or, if the file is truncated, a part of that or an error. No thread may
be left afterwards.
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import json
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import cordwood

PART_LEN = 1 << 20
FILE_LEN = 17 * PART_LEN
"""From 16 MiB on, eight threads take part in reading."""

TIMEOUT = 100
"""Seconds after which a reading is considered hung."""

DIALECTS = ["leveldb", "wandb", "wandb_old", "swanlab", "packed"]
EVENTS = ["one", "several", "replace", "grow", "truncate", "close", "drop", "fork"]


class WrongReadingError(Exception):
    """The result differs from the file."""


def make(path: Path, dialect: str, rng: random.Random) -> bytes:
    """A log with records of all lengths, some longer than a part."""
    noise = rng.randbytes(3_000_000)
    with cordwood.open(path, "w", dialect=dialect, flush="close") as writer:
        while writer.tell() < FILE_LEN:
            longest = rng.choice([10, 300, 300, 5_000, 120_000, 3_000_000 if rng.random() < 0.05 else 9])
            start = rng.randrange(1_000)
            writer.extend([noise[start : start + rng.randrange(longest)] for _ in range(20 if longest < 1_000 else 2)])
    return path.read_bytes()


def damaged(file: bytes, rng: random.Random) -> bytes:
    """`file` with flipped bits and zeros, many of them at the edges of parts."""
    changed = bytearray(file)
    for _ in range(rng.choice([0, 1, 10, 300])):
        at = rng.choice([rng.randrange(len(file)), rng.randrange(1, 17) * PART_LEN + rng.randint(-20, 20)])
        if rng.random() < 0.8:
            changed[at] ^= 1 << rng.randrange(8)
        else:
            end = min(len(file), at + rng.choice([100, 50_000]))
            changed[at:end] = bytes(end - at)
    return bytes(changed)


def digest_of(records: Any) -> tuple[int, str]:
    """How many records there are, and a hash of all."""
    digest, count = hashlib.blake2b(), 0
    for record in records:
        digest.update(len(record).to_bytes(8, "little") + record)
        count += 1
    return count, digest.hexdigest()


def in_threads(path: Path, rng: random.Random, **options: Any) -> tuple[int, str]:
    """The result of reading with several threads."""
    with cordwood.open(path, **options) as reader:
        batches = reader.record_batches(threads=rng.choice([2, 3, 8]), target_len=rng.choice([1_000, 1 << 20, 8 << 20]))
        return digest_of(record for batch in batches for record in batch)


def check(found: object, expected: object) -> None:
    if found != expected:
        raise WrongReadingError(f"{found} in place of {expected}")


def read_at_once(path: Path, expected: tuple[int, str], count: int, rng: random.Random, **options: Any) -> None:
    """Reads `path` in `count` Python threads at the same time."""
    found: list[object] = []

    def read(seed: float) -> None:
        found.append(in_threads(path, random.Random(seed), **options))

    readings = [threading.Thread(target=read, args=[rng.random()]) for _ in range(count)]
    for reading in readings:
        reading.start()
    for reading in readings:
        reading.join()
    check(found, [expected] * count)


def read_meanwhile(
    path: Path, file: bytes, expected: tuple[int, str], event: str, rng: random.Random, **options: Any
) -> None:
    """Reads `path`; the event happens after the first batches."""
    reader = cordwood.open(path, **options)
    batches = reader.record_batches(threads=rng.choice([2, 3, 8]), target_len=rng.choice([1_000, 1 << 20]))
    first = [next(batches) for _ in range(rng.randrange(1, 3))]
    time.sleep(rng.random() / 200)
    match event:
        case "close":
            reader.close()
            return
        case "drop":
            return
        case "truncate":
            os.truncate(path, rng.randrange(len(file)))
            with contextlib.suppress(OSError, cordwood.CordwoodError):
                first += batches
            check_part([record for batch in first for record in batch], file, **options)
            return
        case "replace":
            other = path.with_name("other")
            other.write_bytes(b"no log")
            other.replace(path)
        case "grow":
            with path.open("ab") as end:
                end.write(file[: rng.randrange(PART_LEN)])
        case "fork":
            child = os.fork()
            if child == 0:
                # The threads belong to the parent: the child reads on its own, or raises an error.
                with contextlib.suppress(cordwood.CordwoodError, RuntimeError):
                    next(batches, None)
                os._exit(0)
            check(os.waitpid(child, 0)[1], 0)
    found = [record for some in (first, batches) for batch in some for record in batch]
    # Bytes after the old end may also have been read.
    check(len(found) >= expected[0], True)
    check(digest_of(found if event != "grow" else found[: expected[0]]), expected)


def check_part(found: list[bytes], file: bytes, **options: Any) -> None:
    """Checks that these are some of the records of `file`, in order; after truncation, some may be missing."""
    with cordwood.open(file, **options) as reader:
        rest = iter(reader)
        for record in found:
            check(any(record == original for original in rest), True)


def thread_count() -> int:
    """How many cordwood threads run in this process."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            names.append((task / "comm").read_text().strip())
    return names.count("cordwood")


def wait_for_threads() -> None:
    deadline = time.monotonic() + TIMEOUT / 2
    while thread_count():
        if time.monotonic() > deadline:
            raise WrongReadingError("a thread is left")
        time.sleep(0.001)


def main() -> None:
    directory, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    path = directory / "example.log"
    files = {dialect: make(path, dialect, rng) for dialect in DIALECTS}
    records, problems = 0, {}
    for number in range(count):
        faulthandler.dump_traceback_later(TIMEOUT, exit=True)
        dialect, event = rng.choice(DIALECTS), EVENTS[number % len(EVENTS)]
        options = {"dialect": dialect, "on_corruption": rng.choice(["skip", "salvage"])}
        file = damaged(files[dialect], rng) if rng.random() < 0.7 else files[dialect]
        path.write_bytes(file)
        try:
            with cordwood.open(file, **options) as reader:
                expected = digest_of(reader)
            records += expected[0]
            if event in ("one", "several"):
                read_at_once(path, expected, 1 if event == "one" else 4, rng, **options)
            else:
                read_meanwhile(path, file, expected, event, rng, **options)
            wait_for_threads()
        except Exception as error:  # noqa: BLE001 - each is a problem
            problems[f"reading {number} ({event}, {options})"] = repr(error)
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"count": count, "records": records, "problems": problems}))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main()
