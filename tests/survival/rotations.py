"""Rotates a log over and over while it is followed: `python rotations.py DIRECTORY COUNT SEED`.

A program of its own, since it forks: the child appends numbered records, closes the log at a certain length, renames it
and starts a new one, as log rotation does. The parent follows the name. It must get each record once and in order, and
so must anyone who reads the files afterwards.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

import cordwood

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
import judge  # one of the helpers
from judge import WrongRecordsError

ROTATIONS = 5
"""Rotations per log."""

TIMEOUT = 120
"""Seconds within which an appended record must arrive."""

DIALECTS = ["leveldb", "packed", "wandb", "swanlab"]


def record(number: int) -> bytes:
    """A record that contains its number and whose every byte is known."""
    rng = random.Random(number)
    length = rng.choice([rng.randrange(100), rng.randrange(100), rng.randrange(3_000), rng.randrange(50_000)])
    return b"%08d" % number + (rng.randbytes(length) if number % 3 else bytes(length))


def write(path: Path, dialect: str, seed: float, seen: int) -> int:
    """The child: returns how many records it has appended. It stays at most one file ahead of its follower.

    A follower that is too late would find only the last of the files that had the name.
    """
    rng = random.Random(seed)
    number = 0
    for rotation in range(ROTATIONS):
        length = rng.choice([1, 2_000, 40_000, 300_000])
        writer = cordwood.open(path, rng.choice("xwa"), dialect=dialect)
        while writer.tell() < length:
            for _ in range(rng.randrange(1, 5)):
                writer.append(record(number))
                number += 1
            if rng.random() < 0.05:
                time.sleep(rng.random() / 500)
        # The follower has a record of this file, which is still open: others can read the appended records.
        if not select.select([seen], [], [], TIMEOUT)[0]:
            raise WrongRecordsError(f"no record of file {rotation} arrives while its writer has it open")
        os.read(seen, 1)
        if rng.random() < 0.5:
            writer.append(record(number))
            number += 1
        writer.close()
        path.rename(path.with_name(f"{path.name}.{rotation:03}"))
        if rng.random() < 0.5:
            time.sleep(rng.random() / 200)
    return number


def follow(path: Path, seen: int) -> list[bytes]:
    """The records of all files that had this name, in the order in which they arrived."""
    found: list[bytes] = []
    for _ in range(ROTATIONS):
        follower = open_when_it_is_there(path)
        is_first = True
        try:
            while True:
                try:
                    data = next(follower)
                except StopIteration:
                    raise WrongRecordsError(f"{len(found)} records, and no more for {TIMEOUT} seconds") from None
                found.append(data)
                if is_first:
                    os.write(seen, b".")
                    is_first = False
        except cordwood.LogRotatedError:
            if is_first:
                raise WrongRecordsError("a file is said to be rotated before any of its records") from None
    return found


def open_when_it_is_there(path: Path) -> cordwood.Follower:
    """Between two rotations there may briefly be no file with this name."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return cordwood.follow(path, timeout=TIMEOUT, poll_interval=0.001)
        except FileNotFoundError:
            if time.monotonic() > deadline:
                raise WrongRecordsError("there is no new file") from None
            time.sleep(0.0002)


def rotate(path: Path, dialect: str, seed: float) -> int:
    """Runs one log with all its rotations; returns how many records there were."""
    (told, telling), (seen, seeing) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        os.close(seeing)
        try:
            os.write(telling, write(path, dialect, seed, seen).to_bytes(8, "little"))
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - the parent says that it failed
            print(f"{dialect}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)  # noqa: T201
        finally:
            os._exit(1)
    os.close(telling)
    os.close(seen)
    try:
        found = follow(path, seeing)
        number = os.read(told, 8)
    finally:
        os.close(told)
        os.close(seeing)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if not number:
        raise WrongRecordsError("the writer failed")
    expected = [record(index) for index in range(int.from_bytes(number, "little"))]
    if found != expected:
        raise WrongRecordsError(f"{len(expected)} records were appended; the follower got {len(found)}, or others")
    files = sorted(path.parent.glob(f"{path.name}.*"))
    kept = [found.data for file in files for found in judge.records_in(file.read_bytes(), dialect)]
    if kept != expected:
        raise WrongRecordsError(f"{len(expected)} records were appended; {len(kept)} are in the files, or others")
    for file in files:
        file.unlink()
    return len(expected)


def main(directory: Path, count: int, seed: str) -> None:
    """Goes through logs of several rotations each, and prints the results. Files that fail are left in place."""
    rng = random.Random(seed)
    kept = 0
    problems: dict[str, str] = {}
    for number in range(0, count, ROTATIONS):
        path, dialect = directory / f"rotations-{number}.log", DIALECTS[number // ROTATIONS % len(DIALECTS)]
        try:
            kept += rotate(path, dialect, rng.random())
        except WrongRecordsError as problem:
            problems.setdefault(dialect, f"{path.name}: {problem}")
    print(json.dumps({"count": number + ROTATIONS, "records": kept, "problems": problems}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
