"""Runs one contender in its own environment: `python worker.py NAME`, for `bench.py`.

Each line in is a request, each line out its answer, both JSON. The output of the contender goes to standard error.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import workload
from peers import PEERS, Peer

CALLS = 1000


class Worker:
    """One contender, and the records of the size being measured."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.records: list[bytes] = []
        self.path = Path()
        self.scratch = Path()
        self.data = b""
        self.checksum = peer.checksum() if peer.checksum else None

    def prepare(self, size: str, path: str, scratch: str) -> dict[str, Any]:
        """Writes the records if the contender can, reads them back, and reports the result."""
        self.records = workload.records(size)
        self.path = Path(path)
        self.scratch = Path(scratch)
        answer: dict[str, Any] = {"count": len(self.records)}
        if self.peer.write:
            self.write()
            answer["written_len"] = sum(path.stat().st_size for path in self.scratch.rglob("*") if path.is_file())
            if self.peer.file == "own":
                self.path = self.path_to_write
            else:
                answer["writes_the_same"] = self.path_to_write.read_bytes() == self.path.read_bytes()
        if self.peer.append:
            written = self.path_to_write.read_bytes()
            self.clear()
            self.peer.append(self.path_to_write, self.each_is_there())
            answer["writes_the_same"] = answer.get("writes_the_same", True) and (
                self.path_to_write.read_bytes() == written
            )
        if self.peer.read:
            read: Any = self.peer.read(self.path)
            if self.peer.in_batches:
                read = (record for batch in read for record in batch)
            answer["digest"] = workload.digest(map(self.peer.record_of, read))
        return answer

    def prepare_checksum(self, length: int) -> dict[str, Any]:
        """Computes the checksum of that many bytes once."""
        self.data = b"cordwood" * (length // 8) + b"cordwood"[: length % 8]
        return {"value": self.checksum(self.data)}

    def turn_read(self, seconds: float) -> dict[str, Any]:
        """As many passes as fit into the time, at least one: nanoseconds per record."""
        return take_turn(self.read, seconds, len(self.records))

    def turn_write(self, seconds: float) -> dict[str, Any]:
        """The same, each pass into a new file."""
        return take_turn(self.write, seconds, len(self.records), before=self.clear)

    def turn_append(self, seconds: float) -> dict[str, Any]:
        """The same, but each record is written to the operating system before the next is started."""
        return take_turn(self.append, seconds, len(self.records), before=self.clear)

    def turn_checksum(self, seconds: float) -> dict[str, Any]:
        """Nanoseconds per call, including the loop."""
        return take_turn(lambda: self.sum(self.data), seconds, CALLS)

    def turn_net(self, seconds: float) -> dict[str, Any]:
        """How many nanoseconds a call takes beyond a call with no data; the two take turns.

        This is a small difference of larger times: medians are used so that an interrupted pass does not count.
        """
        wholes, empties = [], []
        while sum(wholes) + sum(empties) < seconds * 1e9:
            wholes.append(clock(lambda: self.sum(self.data)))
            empties.append(clock(lambda: self.sum(b"")))
        return {"ns": (statistics.median(wholes) - statistics.median(empties)) / CALLS}

    @property
    def path_to_write(self) -> Path:
        """The path to write to, named as LevelDB would."""
        return self.scratch / "000004.log"

    def clear(self) -> None:
        """Removes the files: some contenders leave extra ones, and some refuse to replace one."""
        shutil.rmtree(self.scratch)
        self.scratch.mkdir()

    def write(self) -> None:
        """One pass."""
        self.peer.write(self.path_to_write, self.records)

    def append(self) -> None:
        """One pass."""
        self.peer.append(self.path_to_write, self.records)

    def each_is_there(self) -> Iterator[bytes]:
        """The records; raises if one is requested while the one before is not yet in the file."""
        length = 0
        for record in self.records:
            yield record
            before, length = length, self.path_to_write.stat().st_size
            if length < before + len(record):
                raise ValueError("a record is not in the file when the next is started")

    def read(self) -> None:
        """One pass: each record is seen and released."""
        if self.peer.in_batches:
            for batch in self.peer.read(self.path):
                for _ in batch:
                    pass
        else:
            for _ in self.peer.read(self.path):
                pass

    def sum(self, data: bytes) -> None:
        """One pass."""
        checksum = self.checksum
        for _ in range(CALLS):
            checksum(data)


def clock(run: Callable[[], None]) -> int:
    start = time.perf_counter_ns()
    run()
    return time.perf_counter_ns() - start


def take_turn(
    run: Callable[[], None], seconds: float, steps: int, before: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    spent = passes = 0
    while spent < seconds * 1e9:
        before()
        spent += clock(run)
        passes += 1
    return {"ns": spent / passes / steps}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = Worker(next(peer for peer in PEERS if peer.name == sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:  # noqa: BLE001 - any exception of a contender is its answer
            answer = {"problem": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
