"""A program that ends while its threads call cordwood ends with its own status, and buffered records are written."""

import gzip
import subprocess
import sys

import pytest
import reference

import cordwood

# A module of its own: the globals of `__main__`, to which a function of a thread there would refer, are not finalized.
WORKER = """
import gzip
import io
import logging
import threading
import time

import cordwood
import cordwood.payload


class Slow(io.RawIOBase):
    def __init__(self):
        self.file = open("log", "rb")

    def readable(self):
        return True

    def readinto(self, buffer):
        time.sleep(0.001)
        return self.file.readinto(buffer)


class SlowSink:
    def write(self, data):
        time.sleep(0.001)
        return len(data)


class SlowToEnd(io.BytesIO):
    def __del__(self):
        time.sleep(0.001)


class SlowToKnow(io.BytesIO):
    @property
    def __class__(self):
        time.sleep(0.001)
        return io.BytesIO


class SlowPath:
    def __fspath__(self):
        time.sleep(0.001)
        return "log"


def ticks():
    while True:
        time.sleep(0.001)
        yield b"tick"


def pause(*_):
    time.sleep(0.001)


class Handler(logging.Handler):
    def emit(self, record):
        time.sleep(0.001)


logging.getLogger("cordwood").addHandler(Handler())
batch = cordwood.payload.WriteBatch.build(1, [cordwood.payload.Operation("put", key=b"k", value=b"v")] * 100)


begun = threading.Semaphore(0)


def work():
    begun.release()
    while True:
        try:
            CALL
        except (cordwood.CordwoodError, BlockingIOError):
            # The second comes from reading a URL: no thread can be started by then.
            pass


for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
"""
CALLS = {
    "extend, from a generator": "cordwood.Writer(io.BytesIO()).extend(ticks())",
    "extend, to a sink": "cordwood.Writer(SlowSink()).extend([bytes(300_000)] * 1_000)",
    "read an object": "list(cordwood.Reader(Slow()))",
    "read a buffered object": "list(cordwood.Reader(io.BufferedReader(Slow())).record_batches())",
    "read gzip": "list(cordwood.Reader(gzip.open('log.gz')))",
    "read a URL": "list(cordwood.Reader(url))",
    "release an object": "cordwood.Reader(SlowToEnd())",
    "release a scan": "cordwood.scan(SlowToEnd())",
    "release a sink": "cordwood.Writer(SlowToEnd())",
    "ask for a class": "cordwood.Writer(SlowToKnow())",
    "detect": "cordwood.detect(Slow())",
    "a path": "cordwood.verify(SlowPath())",
    "progress": "cordwood.verify('log', progress=pause)",
    "progress, 2 threads": "cordwood.verify('log', threads=2, progress=pause)",
    "verify, 4 threads": "cordwood.verify('log', threads=4)",
    "stat, 4 threads": "cordwood.stat('log', threads=4)",
    "make values": "cordwood.stat('damaged')",
    "log damage": "list(cordwood.Reader('damaged', on_corruption='skip'))",
    "raise": "list(cordwood.Reader('damaged'))",
    "decode": "batch.to_dict()",
}
MAIN = """
import os, time
import cordwood
log = cordwood.open("main.log", "w", flush="close")  # Not closed: written, with a warning, at the end.
for number in range(100):
    log.append(b"%d" % number)
import worker
for _ in range(8):
    worker.begun.acquire()
time.sleep(0.3)  # Its length only decides where in their calls the threads are.
"""


@pytest.mark.parametrize("name", CALLS)
def test_a_program_ends_although_threads_are_within_our_calls(name, tmp_path):
    """Before Python 3.14, its end unwinds the stack of a thread that asks for the interpreter, also through ours."""
    data = reference.encode([bytes(1_000)] * 6_000)
    (tmp_path / "log").write_bytes(data)
    (tmp_path / "log.gz").write_bytes(gzip.compress(data, compresslevel=1))
    (tmp_path / "damaged").write_bytes(data[:100] + b"\1" + data[101:100_000])
    call = CALLS[name].replace("url", repr(f"file://{tmp_path}/log"))
    (tmp_path / "worker.py").write_text(WORKER.replace("CALL", call), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", MAIN],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(cordwood.open(tmp_path / "main.log")) == [b"%d" % number for number in range(100)]
