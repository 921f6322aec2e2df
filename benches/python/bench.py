"""Reading and writing from Python, compared with other packages. `make bench` runs it.

    python benches/python/bench.py [--checksums] [--json FILE] [--rounds N] [--only WORD]... [--size SIZE]...

Each contender runs in its own process, in an environment created for it under `target/peers`. They take turns, in
another order each round, so that other load on the machine affects all alike; the results of each are checked before it
is timed. A figure is nanoseconds per record, the median of the rounds with the middle half; a ratio compares two turns
of the same round. Files are in memory if the system has a directory for that: the disk is the same for all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import workload
from peers import NOT_MEASURED, PEERS, Peer

import cordwood

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / "target/peers"

TURN_SECONDS = 0.05
INSTALL_LIMIT = 600
ANSWER_LIMIT = 120
"""Seconds after which a contender is dropped."""

BASELINES = {"log": "cordwood", "own": "cordwood", "batches": "cordwood on WriteBatches"}
"""The contender that a time is compared with, by its input."""


VERBS = {
    "read": "read",
    "write": "write, records gathered",
    "append": "append, each record written",
    "checksum": "checksum",
    "net": "checksum, without the time of the call",
}
"""The contents of a table. Writers are compared only with those of the same policy."""


class GivenUpError(Exception):
    """The contender cannot be measured; the text says why."""


class Contender:
    """A contender's process."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        python = environment(peer)
        with (ENVIRONMENTS / f"{slug(peer.name)}.log").open("w") as log:
            self.process = subprocess.Popen(
                [python, HERE / "worker.py", peer.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # Packages must not do other work, such as sending reports.
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "WANDB_MODE": "offline", "DO_NOT_TRACK": "1"},
            )

    def ask(self, do: str, **arguments: object) -> dict[str, Any]:
        """Sends a request and waits for the answer."""
        assert self.process.stdin
        assert self.process.stdout
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise GivenUpError("its process ended") from None
        if not select.select([self.process.stdout], [], [], ANSWER_LIMIT)[0]:
            self.process.kill()
            raise GivenUpError(f"no answer within {ANSWER_LIMIT} seconds")
        line = self.process.stdout.readline()
        if not line:
            raise GivenUpError("its process ended")
        answer = json.loads(line)
        if "problem" in answer:
            raise GivenUpError(answer["problem"])
        return answer

    def close(self) -> None:
        """Lets the process end."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.wait()


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def environment(peer: Peer) -> str:
    """The interpreter of an environment with the packages that the contender needs; creates it if it does not exist."""
    if not peer.requires:
        return sys.executable
    directory = ENVIRONMENTS / slug(peer.requires[-1])
    python = directory / "bin/python"
    stamp = directory / "requires.txt"
    wanted = "\n".join(peer.requires)
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making an environment for {peer.requires[-1]}", file=sys.stderr)
        shutil.rmtree(directory, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        try:
            subprocess.run(
                [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requires],
                check=True,
                capture_output=True,
                text=True,
                timeout=INSTALL_LIMIT,
            )
        except subprocess.TimeoutExpired:
            raise GivenUpError(f"pip did not finish within {INSTALL_LIMIT} seconds") from None
        except subprocess.CalledProcessError as error:
            lines = [line.strip() for line in error.stderr.splitlines() if "error" in line.lower()]
            why = re.sub(r"https?://\S+", "(address)", lines[-1]) if lines else "no reason given"
            raise GivenUpError(f"pip cannot install it: {why}") from None
        stamp.write_text(wanted)
    return str(python)


def quartiles(values: list[float], digits: int) -> list[float]:
    """The median and the middle half: low, median, high."""
    if len(values) == 1:
        return [round(values[0], digits)] * 3
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return [round(low, digits), round(median, digits), round(high, digits)]


class Bench:
    """The remaining contenders, and the measurements."""

    def __init__(self, peers: list[Peer], rounds: int) -> None:
        self.rounds = rounds
        self.contenders: dict[str, Contender] = {}
        self.problems: dict[str, str] = {}
        self.figures: dict[str, dict[str, dict[str, dict[str, list[float]]]]] = {}
        self.file_share: dict[str, dict[str, float]] = {}
        """Bytes in the file for each byte of the records, by size and contender."""
        for peer in peers:
            try:
                self.contenders[peer.name] = Contender(peer)
            except GivenUpError as reason:
                self.give_up(peer.name, reason)

    def give_up(self, name: str, reason: object) -> None:
        """Continues without this contender; the record says why."""
        print(f"{name}: {reason}", file=sys.stderr)
        self.problems[name] = str(reason)
        if contender := self.contenders.pop(name, None):
            contender.close()

    def each(self, names: list[str], do: str, **arguments: object) -> dict[str, dict[str, Any]]:
        """Sends the request to each in turn; one that fails is dropped."""
        answers = {}
        for name in names:
            if name in self.contenders:
                try:
                    answers[name] = self.contenders[name].ask(do, **arguments)
                except GivenUpError as reason:
                    self.give_up(name, reason)
        return answers

    def take_turns(self, verb: str, size: str, names: list[str]) -> None:
        """Measures, prints a table and keeps the figures."""
        times: dict[str, list[float]] = {name: [] for name in names}
        for number in range(self.rounds + 1):
            # Another order each round, since each contender finds the caches as the one before it left them.
            order = random.Random(number).sample(names, len(names))
            for name, answer in self.each(order, f"turn_{verb}", seconds=TURN_SECONDS).items():
                if number > 0:  # The first round warms up.
                    times[name].append(answer["ns"])
        print(f"\n{VERBS[verb]}, {size}: ns (middle half), multiple of cordwood's time (middle half)")
        kept = self.figures.setdefault(verb, {}).setdefault(size, {})
        for name in names:
            if name not in self.contenders:
                continue
            baseline = times[BASELINES[self.contenders[name].peer.file] if verb == "read" else "cordwood"]
            ratios = [time / base for time, base in zip(times[name], baseline, strict=True)]
            kept[name] = {"ns": quartiles(times[name], 2), "ratio": quartiles(ratios, 3)}
            low, median, high = kept[name]["ns"]
            ratio_low, ratio, ratio_high = kept[name]["ratio"]
            print(
                f"  {name:28}{median:12,.1f} ({low:,.1f} - {high:,.1f})"
                f"{ratio:10.2f} ({ratio_low:.2f} - {ratio_high:.2f})",
                flush=True,
            )

    def logs(self, size: str, directory: Path) -> None:
        """Checks and measures reading and writing records of this size."""
        records = workload.records(size)
        data_len = sum(map(len, records))
        batches = workload.batches(records)
        digests = {"records": workload.digest(records), "batches": workload.digest(batches)}
        paths = {"own": Path()}
        for kind, content in (("log", records), ("batches", batches)):
            paths[kind] = directory / kind / "000003.log"
            paths[kind].parent.mkdir()
            with cordwood.open(paths[kind], "w") as writer:
                writer.extend(content)
        names = [name for name, contender in self.contenders.items() if contender.peer.read]
        for name in names:
            peer = self.contenders[name].peer
            scratch = directory / slug(name)
            scratch.mkdir()
            answers = self.each([name], "prepare", size=size, path=str(paths[peer.file]), scratch=str(scratch))
            for answer in answers.values():  # One, or none if it was dropped.
                if answer["digest"] != digests[peer.gives]:
                    self.give_up(name, f"it does not read what was written, records of {size}")
                elif not answer.get("writes_the_same", True):
                    self.give_up(name, f"it writes other bytes, records of {size}")
                elif "written_len" in answer:
                    self.file_share.setdefault(size, {})[name] = round(answer["written_len"] / data_len, 4)
        self.take_turns("read", size, names)
        writers = [peer.name for peer in PEERS if peer.write and peer.time_writing]
        self.take_turns("write", size, [name for name in writers if name in names])
        appenders = [peer.name for peer in PEERS if peer.append]
        self.take_turns("append", size, [name for name in appenders if name in names])

    def checksums(self) -> None:
        """Checks and measures one checksum by length."""
        names = [name for name, contender in self.contenders.items() if contender.peer.checksum]
        for length in workload.CHECKSUM_LENS:
            values = self.each(names, "prepare_checksum", length=length)
            for name, answer in values.items():
                if answer != values["cordwood"]:
                    self.give_up(name, f"another checksum of {length} bytes")
            self.take_turns("checksum", str(length), names)
            if length >= 1024:  # For less, the call costs more than the checksum.
                self.take_turns("net", str(length), names)


def describe(peer: Peer) -> dict[str, object]:
    return {"requires": " ".join(peer.requires), "file": peer.file, "verifies": peer.verifies, "note": peer.note}


def main() -> None:
    """Measures, prints the tables, and writes the figures to the named file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checksums", action="store_true", help="measure checksums instead of reading and writing")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each contender, default 9")
    parser.add_argument("--only", action="append", help="only contenders with this word in their name; may be repeated")
    parser.add_argument("--size", action="append", choices=workload.SIZES, help="only this size; may be repeated")
    arguments = parser.parse_args()

    load_before = round(os.getloadavg()[0], 2)
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    words = arguments.only or [""]
    peers = [
        peer
        for peer in PEERS
        if (peer.checksum if arguments.checksums else peer.read)
        and (peer.name in BASELINES.values() or any(word in peer.name for word in words))
    ]
    bench = Bench(peers, arguments.rounds)
    memory = Path("/dev/shm")  # noqa: S108 - a fresh directory in it
    where = memory if os.access(memory, os.W_OK) else None
    if arguments.checksums:
        bench.checksums()
    else:
        for size in arguments.size or workload.SIZES:
            with tempfile.TemporaryDirectory(dir=where) as directory:
                bench.logs(size, Path(directory))
    for contender in bench.contenders.values():
        contender.close()

    if arguments.json:
        result = {
            "files": "in memory" if where else "on disk",
            "rounds": arguments.rounds,
            "load_before": load_before,
            "contenders": {peer.name: describe(peer) for peer in peers},
            "problems": bench.problems | ({} if arguments.checksums else NOT_MEASURED),
            **({} if arguments.checksums else {"file_share": bench.file_share}),
            **bench.figures,
        }
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
