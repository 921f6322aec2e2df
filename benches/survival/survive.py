"""Damages files of many formats, kills their writers, and counts the records that their readers return.

    python benches/survival/survive.py [--only NAME ...] [--json FILE]

`make bench-survival` runs it, and `page.py` then writes the figures into docs/survival.md. The records are made from a
seed, and what a reader returns is compared with them. Each reader runs in a process of its own, of limited memory and
time, since damage makes some of them crash, hang or ask for memory without bound.
"""

import argparse
import datetime
import json
import multiprocessing
import os
import platform
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import formats
import rocksdict
from formats import Format

import cordwood

SEED = 20_260
COUNT = 10_000
TRIALS = {"flip": 100, "page": 40, "cut": 40}
PAGE_LEN = 4096
KILLS = 3
SECONDS_MAX = 20
MEMORY_MAX = 4 << 30
# The rest of a directory has no records: locks, texts for people, and what the next process makes again.
WITHOUT_RECORDS = ("LOCK", "LOG", "LOG.old", "IDENTITY", "OPTIONS-*", "lock.mdb", "*-shm")
WORDS = ("account", "closed", "disk", "event", "failed", "index", "ledger", "order", "payment", "retry", "stored")


def records() -> list[bytes]:
    """Events as a service logs them, each a line of JSON of about 200 bytes; all are different."""
    rng = random.Random(SEED)
    return [
        json.dumps(
            {
                "number": number,
                "time": round(1_790_000_000 + number * 0.25 + rng.random(), 3),
                "user": f"{rng.getrandbits(64):016x}",
                "amount": rng.randrange(1_000_000) / 100,
                "words": " ".join(rng.choices(WORDS, k=rng.randrange(8, 18))),
            }
        ).encode()
        for number in range(COUNT)
    ]


RECORDS = records()

# Damage -----------------------------------------------------------------------------------------------------------


class Trial(NamedTuple):
    """A damage, at a place that is a share of all bytes."""

    kind: str
    place: float
    bit: int


def trials(kind: str) -> list[Trial]:
    """The same for each format: one place in each of the equal parts of its bytes."""
    rng = random.Random(SEED)
    count = TRIALS[kind]
    return [Trial(kind, (index + rng.random()) / count, rng.randrange(8)) for index in range(count)]


UNDAMAGED = Trial("none", 0.0, 0)


def damage(path: Path, trial: Trial) -> None:
    """Damages the file, or that file of the directory in which the place is."""
    if trial == UNDAMAGED:
        return
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    files = [file for file in files if not any(file.match(pattern) for pattern in WITHOUT_RECORDS)]
    offset = int(trial.place * sum(file.stat().st_size for file in files))
    for file in files:
        if offset < file.stat().st_size:
            break
        offset -= file.stat().st_size
    content = bytearray(file.read_bytes())
    if trial.kind == "cut":
        del content[offset:]
    elif trial.kind == "page":
        start = offset // PAGE_LEN * PAGE_LEN
        end = min(start + PAGE_LEN, len(content))
        content[start:end] = bytes(end - start)
    else:
        content[offset] ^= 1 << trial.bit
    file.write_bytes(content)


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


# Reading ----------------------------------------------------------------------------------------------------------


def outcome(found: Iterable[bytes], expected: dict[bytes, int], count: int) -> dict[str, Any]:
    """The records that a reader returned before its error, compared with the first `count` that were written."""
    right, wrong, error = set(), 0, None
    try:
        for record in found:
            number = expected.get(bytes(record))
            if number is None or number in right:
                wrong += 1
            else:
                right.add(number)
    except BaseException as raised:  # noqa: BLE001 - some packages raise a panic, which is no `Exception`
        error = type(raised).__name__
    return {"right": sum(number < count for number in right), "wrong": wrong, "error": error}


def ways_of(each: Format) -> dict[str, formats.Read]:
    return {"read": each.read, **each.rescues}


def child(work: Callable[[int], None]) -> tuple[int, int]:
    """Forks, and calls this with the end of a pipe. Returns the process and the other end."""
    reader, writer = os.pipe()
    if process := os.fork():
        os.close(writer)
        return process, reader
    os.close(reader)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # Packages log a line for each fault.
    work(writer)
    os._exit(0)


def outcomes(each: Format, state: Path, all_trials: list[Trial], count: int = COUNT) -> list[dict[str, dict[str, Any]]]:
    """For each trial, the outcome of each way of reading. A process that ends early has crashed, or was too slow."""
    ways = ways_of(each)
    expected = {record: number for number, record in enumerate(RECORDS)}
    jobs = [(trial, read) for trial in all_trials for read in ways.values()]
    found: list[dict[str, Any]] = []

    def work(pipe: int) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for trial, read in jobs[len(found) :]:
            with tempfile.TemporaryDirectory(dir=state.parent) as directory:
                path = Path(directory, "log")
                copy(state, path)
                damage(path, trial)
                signal.alarm(SECONDS_MAX)  # It ends the process, even in code that is not Python.
                result = outcome(read(path), expected, count)
                signal.alarm(0)
            os.write(pipe, json.dumps(result).encode() + b"\n")

    while len(found) < len(jobs):
        process, pipe = child(work)
        with open(pipe, "rb") as output:  # noqa: PTH123 - it has no path
            results = [json.loads(line) for line in output]
        _, status = os.waitpid(process, 0)
        found += results
        if status:
            assert os.WIFSIGNALED(status), f"the reader of {each.name} has failed"
            error = "hang" if os.WTERMSIG(status) == signal.SIGALRM else "crash"
            found.append({"right": 0, "wrong": 0, "error": error})
    return [dict(zip(ways, found[start:], strict=False)) for start in range(0, len(jobs), len(ways))]


# Writing ----------------------------------------------------------------------------------------------------------


def write(each: Format, path: Path, pipe: int, *, is_flushed: bool, is_killed: bool) -> None:
    """Appends all records; a dot acknowledges each call."""
    with each.write(path, is_flushed=is_flushed) as append:
        for start in range(0, COUNT, each.batch):
            append(RECORDS[start : start + each.batch])
            os.write(pipe, b".")
        if is_killed:
            signal.pause()


def killed(each: Format, path: Path, count: int, *, is_flushed: bool) -> int:
    """Kills the writer once it has acknowledged that many records, and returns how many it had acknowledged then."""
    process, pipe = child(lambda pipe: write(each, path, pipe, is_flushed=is_flushed, is_killed=True))
    dots = 0
    while dots * each.batch < count:
        dots += len(got := os.read(pipe, 1 << 16))
        assert got, f"the writer of {each.name} has failed"
    os.kill(process, signal.SIGKILL)
    while got := os.read(pipe, 1 << 16):
        dots += len(got)
    os.close(pipe)
    os.waitpid(process, 0)
    return dots * each.batch


def closed(each: Format, path: Path) -> None:
    """Writes all records, in a process of its own: some packages have threads, which a fork does not have."""
    process, pipe = child(lambda pipe: write(each, path, pipe, is_flushed=False, is_killed=False))
    while os.read(pipe, 1 << 16):
        pass
    os.close(pipe)
    assert os.waitpid(process, 0)[1] == 0, f"the writer of {each.name} has failed"


# The experiment ---------------------------------------------------------------------------------------------------


def kind_of(result: dict[str, Any], count: int) -> str:
    """In one word. A record in a wrong place, or returned twice, counts as wrong."""
    if result["wrong"]:
        return "wrong" if result["error"] is None else "wrong, then an error"
    if result["error"] in ("crash", "hang"):
        return result["error"]
    if result["error"]:
        return "error"
    return "whole" if result["right"] == count else "lost"


def summary(each: Format, found: list[dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """For each way of reading, how often which outcome, and the records that were given back, on average."""
    return {
        way: {
            "right": round(sum(result[way]["right"] for result in found) / len(found), 1),
            "outcomes": dict(sorted(Counter(kind_of(result[way], COUNT) for result in found).items())),
        }
        for way in ways_of(each)
    }


def kills(each: Format, directory: Path, *, is_flushed: bool) -> dict[str, Any]:
    """How many acknowledged records there were, and how many of them were lost in each way of reading."""
    rng = random.Random(SEED)
    total, lost = 0, dict.fromkeys(ways_of(each), 0)
    for _ in range(KILLS):
        path = directory / "killed"
        count = killed(each, path, rng.randrange(COUNT // 4, COUNT), is_flushed=is_flushed)
        [found] = outcomes(each, path, [UNDAMAGED], count) if path.exists() else [{}]
        total += count
        for way in lost:
            lost[way] += count - found.get(way, {"right": 0})["right"]
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return {"acknowledged": total, "lost": lost}


def experiment(name: str) -> dict[str, Any]:
    """All figures of a format."""
    start = time.monotonic()
    each = formats.formats()[name]
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        state = directory / "state"
        if each.is_engine:
            killed(each, state, COUNT, is_flushed=False)
        else:
            closed(each, state)
        [whole] = outcomes(each, state, [UNDAMAGED])
        assert {kind_of(result, COUNT) for result in whole.values()} == {"whole"}, f"{each.name}: {whole}"
        figures: dict[str, Any] = {
            "package": each.package,
            "version": formats.version_of(each.package),
            "checksum": each.checksum,
            "accepted": each.accepted,
            "flush": each.flush,
        }
        for kind in TRIALS:
            figures[kind] = summary(each, outcomes(each, state, trials(kind)))
        figures["kill"] = kills(each, directory, is_flushed=False)
        if each.flush:
            figures["kill, flushed"] = kills(each, directory, is_flushed=True)
    print(f"{each.name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return figures


def story() -> dict[str, int]:
    """The writes that RocksDB finds in a log with two flipped bits: by itself, and after a salvage."""
    items = {b"user:%06d" % index: b"value %d " % index * 8 for index in range(5000)}
    found = {"written": len(items)}
    with tempfile.TemporaryDirectory() as name:
        damaged = Path(name, "damaged")
        options = rocksdict.Options(raw_mode=True)
        database = rocksdict.Rdict(f"{name}/live", options)
        for key, value in items.items():
            database[key] = value
        database.flush_wal(sync=True)
        shutil.copytree(f"{name}/live", damaged)  # As a crash leaves it.
        database.close()
        [log] = damaged.glob("*.log")
        content = bytearray(log.read_bytes())
        for place in (0.33, 0.5):
            content[int(len(content) * place)] ^= 1
        log.write_bytes(content)
        for way, salvage in {
            "RocksDB": None,
            "salvage": {},
            "salvage --repair-bit-flips": {"repair_bit_flips": True},
        }.items():
            copied = Path(name, way)
            shutil.copytree(damaged, copied)
            if salvage is not None:
                cordwood.salvage(log, Path(name, "new"), **salvage)
                Path(name, "new").replace(copied / log.name)
            database = rocksdict.Rdict(str(copied), options)
            found[way] = sum(items.get(key) == value for key, value in database.items())
            database.close()
    return found


def main() -> None:
    """Runs the experiment."""
    all_formats = formats.formats()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures into this file")
    parser.add_argument("--only", nargs="+", default=list(all_formats), metavar="NAME", help="some of the formats")
    arguments = parser.parse_args()
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        figures = dict(zip(arguments.only, pool.map(experiment, arguments.only, chunksize=1), strict=True))
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "seed": SEED,
        "record_count": COUNT,
        "bytes": sum(map(len, RECORDS)),
        "trials": TRIALS,
        "kills": KILLS,
        "rocksdb": story(),
        "formats": figures,
    }
    text = json.dumps(record, indent=1) + "\n"
    if arguments.json:
        arguments.json.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
