"""Kills a writing process over and over, and looks at what it leaves: `python kill.py FOLDER COUNT SEED`.

A program of its own, since it forks: each child appends numbered records to a log, flushes and syncs now and then, and
says through a pipe up to where the log is synced and up to where it is written. The parent kills it at any moment
(SIGKILL). Then all that was written must be there, in its order and only once, nothing else may be, and the next child
must be able to go on.
"""

import json
import os
import random
import signal
import struct
import sys
import time
import zlib
from pathlib import Path

import cordwood

sys.path.insert(0, str(Path(__file__).parents[1]))
import reference  # the judge; in the folder above

PROMISE = struct.Struct("<QQ")
"""All records that end before the first offset are synced, before the second written."""


def record(number):
    """A record that tells its number and whose every byte is known."""
    rng = random.Random(number)
    length = rng.choice([rng.randrange(200), rng.randrange(200), rng.randrange(3000), rng.randrange(70_000)])
    if number % 8 == 5:
        # Long enough for the system to stop in the middle of the write, and made in no time.
        body = bytes([number % 251]) * 1_500_000
    else:
        body = rng.randbytes(length) if number % 3 else bytes(length)
    return struct.pack("<II", number, zlib.crc32(body)) + body


def write(path, pipe, number, seed, on_torn_tail):
    """The child: appends records from `number` on, until it is killed."""
    rng = random.Random(seed)
    sync = rng.choice([{}, {"sync": "append"}, {"sync_len": 20_000}, {"sync_interval": 0.002}])
    room = rng.choice([0, 1 << 20])
    with cordwood.open(path, "a", on_torn_tail=on_torn_tail, preallocate_len=room, **sync) as writer:
        written = 0
        while True:
            for _ in range(rng.randrange(1, 20)):
                writer.append(record(number), sync=rng.random() < 0.05)
                number += 1
            if rng.random() < 0.3:
                writer.flush()
                written = writer.tell()
            if rng.random() < 0.1:
                writer.sync()
            # One write of so few bytes is whole or not there.
            os.write(pipe, PROMISE.pack(writer.durable_offset, written))


def run_child(path, number, seed, on_torn_tail, seconds):
    """Starts a child, kills it, and returns what it has promised."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write(path, writing, number, seed, on_torn_tail)
        finally:
            os._exit(1)
    os.close(writing)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    promises = b""
    while piece := os.read(reading, 1 << 16):
        promises += piece
    os.close(reading)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "the child ended by itself"
    whole = len(promises) // PROMISE.size * PROMISE.size
    return PROMISE.unpack(promises[whole - PROMISE.size : whole]) if whole else (0, 0)


def check(path, promised, on_torn_tail):
    """Looks at the file, and returns how many records there are and whether something stands behind them."""
    *events, _ = reference.events(path.read_bytes())
    records = [event for event in events if isinstance(event, reference.Record)]
    for number, found in enumerate(records):
        assert found.data == record(number), f"record {number} at {found.offset} is not the one that was written"
    end = records[-1].end_offset if records else 0
    assert end >= promised, f"written up to {promised}, and there up to {end}"
    regions = [event for event in events if isinstance(event, reference.Skipped)]
    if on_torn_tail == "truncate":
        assert all(region.begin >= end for region in regions), "something is skipped before the last record"
    return len(records), any(region.begin >= end for region in regions)


def main(folder, count, seed):
    rng = random.Random(seed)
    kills = torn = kept = 0
    while kills < count:
        path = folder / f"{kills}.log"
        on_torn_tail = rng.choice(["truncate", "pad"])
        number = 0
        for _ in range(10):
            promises = run_child(path, number, rng.random(), on_torn_tail, rng.uniform(0.001, 0.04))
            kills += 1
            if path.exists():
                number, is_torn = check(path, max(promises), on_torn_tail)
                torn += is_torn
        kept += number
        path.unlink(missing_ok=True)
    print(json.dumps({"kills": kills, "torn": torn, "records": kept}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
