"""Writes, follows, indexes and reads logs for hours, while processes are killed and disks are full: `make soak H=8`.

`python soak.py HOURS [--seed SEED] [--record]`. Each log has a writer, two followers and a
reader, which are processes of their own: this file with a role as its first argument. They print numbers of records,
and the parent checks them. Its oracle is the list of acknowledged records, those whose append has returned, and
`reference.py`, which reads the files after each kill. `--record` writes the figures into docs/safety.md.

A full disk is a limit of the length of files: a part of a write succeeds, and the rest fails. A sync fails in the C
library (`failing_calls.py`). Steps of the clock are missing: a process cannot set the clock for itself alone.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import os
import random
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cordwood

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
import judge
from failing_calls import failing

EXTEND_MAX = 20
SEGMENT_LEN = 64 << 10
FILE_LEN_MAX = 2 << 20
"""A log that is one file starts again after this many bytes: the reference is slow."""
RSS_MAX, RSS_GROWTH_MAX = 256 << 20, 32 << 20
WARM_UP = 30
"""Seconds after the start of a process from which its memory, descriptors and threads stay flat."""
HANG = 300

# Name: options.
LOGS = {
    "segmented": {"segment_len": SEGMENT_LEN},
    "segmented-packed": {"segment_len": SEGMENT_LEN, "dialect": "packed"},
    "file": {},
    "file-packed": {"dialect": "packed"},
    "segmented-pad": {"segment_len": SEGMENT_LEN, "on_torn_tail": "pad"},
    "packed-pad": {"dialect": "packed", "on_torn_tail": "pad"},
}


def record(number: int) -> bytes:
    """A record that contains its number and whose every byte is known."""
    rng = random.Random(number)
    length = rng.choice([*[rng.randrange(200)] * 8, rng.randrange(3_000), rng.randrange(40_000)])
    return b"%012d" % number + (rng.randbytes(length) if number % 3 else bytes(length))


def number_of(data: bytes) -> int:
    """The number of a record, whose every byte is as it was written."""
    number = int(data[:12])
    assert data == record(number), f"record {number} was changed"
    return number


def tell(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


# The processes of a log ---------------------------------------------------------------------------


def write(name: str, path: str, number: int) -> None:
    """Appends records and acknowledges them. It ends with status 3 if it does not know which are in the log."""
    options = {"on_torn_tail": "truncate"} | LOGS[name]
    writer = cordwood.open(path, "a", **options)
    rng = random.Random(number)
    tell("acknowledged", number)
    orders = b""
    while True:
        if select.select([0], [], [], rng.random() / 50)[0]:
            orders += os.read(0, 4096)
        *lines, orders = orders.split(b"\n")
        for line in lines:
            order, _, argument = line.decode().partition(" ")
            if order == "eio":
                with failing("fdatasync"), contextlib.suppress(OSError):
                    writer.sync()
                with contextlib.suppress(OSError):
                    writer.close()
                sys.exit(3)
            with contextlib.suppress(OSError):  # The disk may be full.
                writer.rotate() if order == "rotate" else writer.prune_before(int(argument))
        count = rng.choice([1, 1, 1, rng.randrange(2, EXTEND_MAX)])
        before = writer.tell()
        try:
            if count > 1:
                writer.extend([record(number + index) for index in range(count)])
            else:
                writer.append(record(number), sync=rng.random() < 0.05)
        except OSError as error:
            tell("failed", error.errno)
            with contextlib.suppress(OSError):
                if count == 1 and writer.tell() == before:
                    continue
            with contextlib.suppress(OSError):
                writer.close()
            sys.exit(3)
        number += count
        tell("acknowledged", number)


def policy(name: str) -> str:
    return "skip" if "pad" in name else "raise"


def follow(name: str, path: str, start: int) -> None:
    with cordwood.follow(path, start=start, poll_interval=0.02, on_corruption=policy(name)) as follower:
        for data in follower:
            tell("delivered", number_of(data), follower.tell())


def read(name: str, path: str, _: int) -> None:
    """Reads the log in order and through an index, again and again. A file may be pruned meanwhile."""
    rng = random.Random(path)
    while True:
        with contextlib.suppress(FileNotFoundError, cordwood.LogChangedError, cordwood.LogTruncatedError):
            with cordwood.open(path, on_corruption=policy(name)) as reader:
                numbers = [number_of(data) for data in reader]
            assert not numbers or numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            with cordwood.index(path, on_corruption=policy(name)) as index:
                places = [rng.randrange(len(index)) for _ in range(20)] if len(index) else []
                first = number_of(index[0]) if places else 0
                assert [number_of(data) - first for data in index.read(places)] == places
            tell("read", len(numbers))
        time.sleep(0.5)


# The parent ---------------------------------------------------------------------------------------


class Child:
    """A process of a log, and the lines that it has printed."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, __file__, *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.started = time.monotonic()
        self.rest = b""
        self.before: tuple[int, int, int] | None = None

    def lines(self) -> list[list[str]]:
        """The lines that are there, without waiting. The last one of a killed process may be incomplete."""
        while select.select([self.process.stdout], [], [], 0)[0] and (
            piece := os.read(self.process.stdout.fileno(), 65536)
        ):
            self.rest += piece
        *lines, self.rest = self.rest.split(b"\n")
        return [line.decode().split() for line in lines]

    def kill(self) -> int:
        self.process.kill()
        return self.process.wait(HANG)

    def usage(self) -> tuple[int, int, int]:
        """Memory in bytes, descriptors and threads. They must stay flat."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        used = (
            int(re.search(r"VmRSS:\s*(\d+)", status)[1]) << 10,
            len(list(Path(f"/proc/{self.process.pid}/fd").iterdir())),
            int(re.search(r"Threads:\s*(\d+)", status)[1]),
        )
        if time.monotonic() - self.started > WARM_UP:
            self.before = self.before or used
            # A reader has a few files open for a moment; an index has at most 64.
            allowed = (self.before[0] + RSS_GROWTH_MAX, self.before[1] + 70, self.before[2] + 2)
            assert all(now <= most for now, most in zip(used, allowed, strict=True)), (used, allowed)
        assert used[0] <= RSS_MAX, used
        return used


class Log:
    """A log, its processes, and the records that were acknowledged and delivered."""

    def __init__(self, name: str, directory: Path, rng: random.Random, figures: collections.Counter) -> None:
        self.name, self.rng, self.figures = name, rng, figures
        self.path = directory / name
        self.generation = 0
        self.start()

    @property
    def is_segmented(self) -> bool:
        return "segment_len" in LOGS[self.name]

    def start(self) -> None:
        self.acknowledged = self.pruned = 0
        # The next record of each follower, and the position that it has saved.
        self.delivered = [(0, 0), (0, 0)]
        self.start_writer()
        self.followers = [self.child("follow", 0), self.child("follow", 0)]
        self.reader = self.child("read", 0)

    def child(self, role: str, number: int) -> Child:
        return Child(role, self.name, self.path, number)

    def start_writer(self) -> None:
        self.writer = self.child("write", self.acknowledged)
        end = time.monotonic() + HANG
        while not (lines := self.writer.lines()):
            # It may fail on a full disk; `pump` then starts it again.
            if self.writer.process.poll() is not None:
                return
            assert time.monotonic() < end, "the writer does not start"
            time.sleep(0.01)
        self.take(lines)

    def take(self, lines: list[list[str]]) -> None:
        for word, number in lines:
            if word == "acknowledged":
                self.acknowledged = int(number)
            self.figures["failed appends"] += word == "failed"

    def pump(self) -> None:
        """Takes the lines of all processes."""
        self.take(self.writer.lines())
        for which, follower in enumerate(self.followers):
            for _, number, position in follower.lines():
                expected = self.delivered[which][0]
                assert int(number) == expected, f"{self.name}: follower {which} delivers {number}, not {expected}"
                self.delivered[which] = (expected + 1, int(position))
                self.figures["delivered"] += 1
        self.figures["readings"] += len(self.reader.lines())
        for child in [*self.followers, self.reader]:
            assert child.process.poll() is None, f"{self.name}: {child.process.args[2:]} ended"
            self.figures["peak RSS"] = max(self.figures["peak RSS"], child.usage()[0])
        if self.writer.process.poll() is not None:
            assert self.writer.process.returncode in (1, 3), self.writer.process.returncode
            self.check()
            self.start_writer()

    def check(self) -> None:
        """Reads the files of a writer that has ended."""
        self.take(self.writer.lines())
        files = {0: self.path} if not self.is_segmented else {int(file.stem): file for file in self.path.glob("*.log")}
        dialect = LOGS[self.name].get("dialect", "leveldb")
        numbers: list[int] = []
        for origin, following in itertools.pairwise([*sorted(files), None]):
            data = files[origin].read_bytes()
            assert following in (None, origin + len(data)), f"{self.name}: segment {origin} does not end at {following}"
            found = judge.records_in(data, dialect, skips="pad" in self.name)
            numbers += (number_of(event.data) for event in found)
        assert min(files) <= self.pruned, f"{self.name}: more is pruned than was asked"
        count = numbers[-1] + 1 if numbers else (0 if self.pruned == 0 else self.acknowledged)
        first = numbers[0] if numbers else 0
        assert first == 0 or self.pruned > 0, f"{self.name}: starts at record {first}"
        assert numbers == list(range(first, first + len(numbers))), f"{self.name}: a record is missing or appears twice"
        assert self.acknowledged <= count <= self.acknowledged + EXTEND_MAX, (self.name, self.acknowledged, count)
        self.acknowledged = count
        self.figures["checks"] += 1

    def order(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.writer.process.stdin.write(text.encode() + b"\n")

    def kill_writer(self) -> None:
        self.writer.kill()
        self.check()
        if not self.is_segmented and self.path.stat().st_size > FILE_LEN_MAX:
            self.finish()
            self.path.unlink()
            self.start()
        else:
            self.start_writer()

    def kill_follower(self) -> None:
        """The first one is never killed: its memory must stay flat."""
        self.followers[1].kill()
        lines = self.followers[1].lines()
        for _, number, position in lines:
            expected = self.delivered[1][0]
            assert int(number) == expected, f"{self.name}: the follower delivers {number}, not {expected}"
            self.delivered[1] = (expected + 1, int(position))
            self.figures["delivered"] += 1
        self.followers[1] = self.child("follow", self.delivered[1][1])

    def suspend(self) -> None:
        child = self.rng.choice([self.writer, *self.followers, self.reader])
        child.process.send_signal(signal.SIGSTOP)
        time.sleep(self.rng.random())
        child.process.send_signal(signal.SIGCONT)

    def fill_disk(self) -> None:
        """No file of the writer may grow beyond a limit: a part of a write succeeds, and the rest fails."""
        length = (
            self.rng.randrange(SEGMENT_LEN)
            if self.is_segmented
            else self.path.stat().st_size + self.rng.randrange(4096)
        )
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(self.writer.process.pid, resource.RLIMIT_FSIZE, (length, resource.RLIM_INFINITY))
            time.sleep(0.3)
            resource.prlimit(self.writer.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)

    def fail_sync(self) -> None:
        self.order("eio")

    def prune(self) -> None:
        if self.is_segmented:
            self.order("rotate")
            self.pruned = max(self.pruned, min(position for _, position in self.delivered))
            self.order(f"prune {self.pruned}")

    def finish(self) -> None:
        """The writer has ended: each follower delivers all of its records."""
        end = time.monotonic() + HANG
        while any(number < self.acknowledged for number, _ in self.delivered):
            assert time.monotonic() < end, f"{self.name}: {self.delivered} of {self.acknowledged} were delivered"
            for which, follower in enumerate(self.followers):
                for _, number, position in follower.lines():
                    assert int(number) == self.delivered[which][0], f"{self.name}: follower {which} delivers {number}"
                    self.delivered[which] = (int(number) + 1, int(position))
                    self.figures["delivered"] += 1
            time.sleep(0.02)
        self.figures["acknowledged"] += self.acknowledged
        self.end()

    def end(self) -> None:
        for child in [self.writer, *self.followers, self.reader]:
            child.kill()


EVENTS = {
    "kills of a writer": Log.kill_writer,
    "kills of a follower": Log.kill_follower,
    "suspensions": Log.suspend,
    "full disks": Log.fill_disk,
    "failed syncs": Log.fail_sync,
    "prunings": Log.prune,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hours", type=float)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    rng, figures = random.Random(options.seed), collections.Counter()
    print(f"seed {options.seed}", flush=True)  # noqa: T201
    started = time.monotonic()
    logs: list[Log] = []
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        try:
            logs += (Log(name, Path(directory), rng, figures) for name in LOGS)
            while time.monotonic() - started < options.hours * 3600:
                name = rng.choice(list(EVENTS))
                EVENTS[name](rng.choice(logs))
                figures[name] += 1
                time.sleep(rng.random() / 5)
                for log in logs:
                    log.pump()
            for log in logs:
                log.writer.kill()
                log.check()
                log.finish()
        finally:
            for log in logs:
                log.end()
    figures["peak RSS"] >>= 20
    text = f"{options.hours:g} hours, seed {options.seed}: " + ", ".join(
        f"{count:,} {name}" + " MiB" * (name == "peak RSS") for name, count in figures.items()
    )
    print(text)  # noqa: T201
    if options.record:
        page = Path(__file__).parents[2] / "docs" / "safety.md"
        old = page.read_text(encoding="utf-8")
        new = re.sub(r"(<!-- soak -->).*?(<!-- /soak -->)", rf"\g<1>{text}\2", old, flags=re.DOTALL)
        assert "<!-- soak -->" in old, f"{page} has no place for the figures"
        page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    roles = {"write": write, "follow": follow, "read": read}
    if len(sys.argv) == 5 and sys.argv[1] in roles:
        roles[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
