"""A program that ends while its threads call cordwood ends with its own status, and buffered records are written."""

import gzip
import os
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


started = threading.Semaphore(0)


def work():
    started.release()
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
    worker.started.acquire()
time.sleep(0.3)  # Its length only decides where in their calls the threads are.
"""


@pytest.mark.parametrize("name", CALLS)
def test_the_program_can_exit_while_threads_are_in_the_middle_of_calls(name, tmp_path):
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


# Logs that are still open --------------------------------------------------------------------------

# A log that only a daemon thread refers to: Python never drops the variables of such a thread.
HELD = """
import io, os, sys, threading
import cordwood

class Sink:
    def __init__(self, path="log"):
        self.fd = os.open(path, os.O_CREAT | os.O_WRONLY)

    def write(self, data):
        return os.write(self.fd, data)

is_written = threading.Event()

def hold():
    log = OPEN
    log.extend([b"one", b"two"])
    is_written.set()
    threading.Event().wait()

threading.Thread(target=hold, daemon=True).start()
is_written.wait()
"""
OPEN = {
    "a buffered log": "cordwood.open('log', 'w', flush='close')",
    "a packed log": "cordwood.open('log', 'w', dialect='packed', flush='close')",
    "a log of Pebble": "cordwood.open('log', 'w', dialect='pebble', log_number=3)",
    "a segmented log": "cordwood.open('log', 'a', segment_len=1000, flush='close')",
    "an object": "cordwood.Writer(Sink())",
    "a file object": "cordwood.Writer(open('log', 'wb'))",
}


def run_program(script, directory, *flags):
    return subprocess.run(
        [sys.executable, *flags, "-c", script], cwd=directory, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("name", OPEN)
def test_a_daemon_threads_writer_is_closed_at_exit(name, tmp_path):
    done = run_program(HELD.replace("OPEN", OPEN[name]), tmp_path, "-W", "always::ResourceWarning")
    assert done.returncode == 0
    assert "ResourceWarning: unclosed writer" in done.stderr
    assert list(cordwood.open(tmp_path / "log")) == [b"one", b"two"]
    if "Pebble" in name:
        # Only `close` writes the end trailer: a header without a checksum, with the number of the next log.
        assert (tmp_path / "log").read_bytes().endswith(bytes(6) + b"\5\4\0\0\0")


APPENDS = """
import itertools, threading
import cordwood

log = OPEN
acknowledged = open("acknowledged", "wb", buffering=0)
is_started = threading.Event()

def append():
    for number in itertools.count():
        try:
            log.append(b"%d" % number)
        except cordwood.ClosedError:
            return
        acknowledged.write(b"%d\\n" % number)
        is_started.set()

threading.Thread(target=append, daemon=True).start()
is_started.wait()
"""


@pytest.mark.parametrize("name", ["a buffered log", "a packed log", "a segmented log", "a file object"])
def test_records_from_a_daemon_thread_are_written_at_exit(name, tmp_path):
    done = run_program(APPENDS.replace("OPEN", OPEN[name]), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    acknowledged = (tmp_path / "acknowledged").read_bytes().split()
    records = list(cordwood.open(tmp_path / "log"))
    assert records[: len(acknowledged)] == acknowledged
    assert len(records) <= len(acknowledged) + 1


def test_exit_handlers_can_still_append_records(tmp_path):
    appends = "import atexit, cordwood\nlog = OPEN\natexit.register(log.append, b'one')\n"
    done = run_program(appends.replace("OPEN", OPEN["a buffered log"]), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(cordwood.open(tmp_path / "log")) == [b"one"]


def test_a_write_error_at_exit_is_printed(tmp_path):
    fails = HELD.replace("OPEN", OPEN["an object"]).replace("os.write(self.fd, data)", "os.write(-1, data)")
    done = run_program(fails, tmp_path)
    assert done.returncode == 0
    assert "OSError: [Errno 9] Bad file descriptor" in done.stderr


WAITS = """
import threading
import cordwood

is_writing = threading.Event()

class Waits:
    def write(self, data):
        is_writing.set()
        threading.Event().wait()

log = cordwood.Writer(Waits())
threading.Thread(target=log.extend, args=[[bytes(1_000_000)]], daemon=True).start()
is_writing.wait()
"""


def test_the_program_exits_even_if_a_daemon_thread_is_stuck_writing(tmp_path):
    done = run_program(WAITS, tmp_path)
    assert done.returncode == 0
    assert "another thread is writing to the object" in done.stderr


FORKS = """
import os, sys

log = OPEN
log.append(b"one")
child = os.fork()
if not child:
    own = cordwood.open("child", "w", flush="close")
    own.append(b"of the child")
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
log.append(b"two")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", OPEN)
def test_a_forked_child_closes_only_its_own_logs(name, tmp_path):
    sink = HELD[: HELD.index("is_written")]
    done = run_program(sink + FORKS.replace("OPEN", OPEN[name]), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(cordwood.open(tmp_path / "log")) == [b"one", b"two"]
    assert list(cordwood.open(tmp_path / "child")) == [b"of the child"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_in_the_middle_of_a_write_can_exit(tmp_path):
    forks = """
import os, sys
child = os.fork()
if not child:
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""
    done = run_program(WAITS + forks, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
