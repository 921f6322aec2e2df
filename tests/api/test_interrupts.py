"""Ctrl-C ends every call promptly and loses no record."""

import collections
import itertools
import os
import signal
import subprocess
import sys
import time

import pytest
import reference
from interrupts import HANG, Interrupt, after_work, interrupting, unread_len, waits, write_long_log

import cordwood

# A hole, which takes no room on the disk but as long to read as a log of this length: some minutes, even with threads.
# So a call that Ctrl-C does not end exceeds `HANG`.
HOLE_LEN = 8 << 40

CALLS = {
    "verify": "cordwood.verify(path)",
    "verify, 2 threads": "cordwood.verify(path, threads=2)",
    "verify, 4 threads, salvage": "cordwood.verify(path, threads=4)",
    "stat": "cordwood.stat(path)",
    "stat, 2 threads": "cordwood.stat(path, threads=2)",
    "salvage": "cordwood.salvage(path, path + '.salvaged')",
    "pack": "cordwood.pack(path, path + '.packed')",
    "index": "cordwood.index(path)",
    "iterate": "list(cordwood.Reader(path))",
    "record_batches": "list(cordwood.Reader(path).record_batches())",
    "record_batches, 2 threads": "list(cordwood.Reader(path).record_batches(threads=2))",
    "fragments": "sum(1 for _ in cordwood.fragments(path))",
    "open for append": "cordwood.Writer(path, 'a')",
    "detect and start": "list(cordwood.Reader(path, start=1 << 20))",
}
# The program interrupts itself, as Ctrl-C does, once its call has used the processor for a while. If it waits for
# a pipe, the test sends Ctrl-C again and again, of which only the first counts.
SCRIPT = """
import signal
import sys
import cordwood
def raise_once(*_):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGPROF, signal.default_int_handler)
path = sys.argv[1]
try:
    START
    CALL
except KeyboardInterrupt:
    print("interrupted")
"""
ONCE = "signal.signal(signal.SIGINT, raise_once)"
AFTER_WORK = "signal.setitimer(signal.ITIMER_PROF, 0.2)"


def script(call, *, start=AFTER_WORK, imports=""):
    """A program that is interrupted in a call, and says so."""
    return (
        SCRIPT.replace("START", start).replace("CALL", call).replace("import cordwood\n", "import cordwood\n" + imports)
    )


@pytest.fixture(scope="module")
def hole(tmp_path_factory):
    path = tmp_path_factory.mktemp("hole") / "hole.log"
    path.write_bytes(reference.encode([b"one"]))
    os.truncate(path, HOLE_LEN)
    return path


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are missing here")
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_interrupts_a_call(hole, name):
    assert_is_interrupted(script(CALLS[name]), hole)


def assert_is_interrupted(program, path):
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, timeout=HANG, check=False
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


STREAM_CALLS = {
    "table": "pyarrow.table(cordwood.scan(path))",
    "table, 2 threads": "pyarrow.table(cordwood.scan(path, threads=2))",
    "table of offsets": "pyarrow.table(cordwood.scan(path, columns=['offset']))",
    "batches": "list(pyarrow.RecordBatchReader.from_stream(cordwood.scan(path)))",
}
STREAM_SCRIPT = """
import pyarrow
# Imported at the first call.
pyarrow.table({"a": [1]})
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are missing here")
@pytest.mark.parametrize("name", STREAM_CALLS)
def test_ctrl_c_interrupts_an_arrow_stream_with_a_clear_error(hole, name):
    """If a signal were still pending, it would interrupt Python while it prints the traceback."""
    program = script(STREAM_CALLS[name], imports=STREAM_SCRIPT)
    done = subprocess.run(
        [sys.executable, "-c", program, hole], capture_output=True, text=True, timeout=HANG, check=False
    )
    first, *_, last = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert (first, last) == ("Traceback (most recent call last):", "OSError: KeyboardInterrupt")


PIPE_CALLS = {
    **{name: CALLS[name] for name in ("verify", "stat", "iterate", "record_batches")},
    "detect": "cordwood.detect(path)",
    "dialect": "cordwood.Reader(path).dialect",
    "start": "list(cordwood.Reader(path, start=1 << 20))",
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are missing here")
@pytest.mark.parametrize("name", PIPE_CALLS)
def test_ctrl_c_interrupts_a_call_that_waits_for_a_pipe(tmp_path, name):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    # Open for writing, so that the pipe does not end. The first bytes of a log show that the call reads them.
    descriptor = os.open(path, os.O_RDWR)
    os.write(descriptor, reference.encode([b"one"])[:5])
    command = [sys.executable, "-c", script(PIPE_CALLS[name], start=ONCE), path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            end = time.monotonic() + HANG
            while process.poll() is None and time.monotonic() < end:
                # Again and again: a signal that comes just before the system call does not end it.
                if unread_len(descriptor) == 0 and waits(process.pid):
                    process.send_signal(signal.SIGINT)
                time.sleep(0.02)
            assert process.poll() is not None
            assert process.communicate() == ("interrupted\n", "")
        finally:
            process.kill()
    os.close(descriptor)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are missing here")
def test_reading_a_pipe_can_be_retried_after_an_interrupt(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    log = reference.encode([b"one", b"two"])
    os.write(descriptor, log[:-1])
    with cordwood.Reader(path) as reader:
        assert next(reader) == b"one"
        for _ in range(2):
            with interrupting(lambda: waits(os.getpid())), pytest.raises(Interrupt):
                next(reader)
        os.write(descriptor, log[-1:])
        assert next(reader) == b"two"
    os.close(descriptor)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are missing here")
@pytest.mark.parametrize("error", [InterruptedError, FileExistsError])
def test_any_exception_raised_by_a_signal_handler_propagates_to_the_caller(tmp_path, error):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    os.write(descriptor, reference.encode([b"one"])[:-1])
    with (
        cordwood.Reader(path) as reader,
        interrupting(lambda: unread_len(descriptor) == 0 and waits(os.getpid()), error("of the handler")),
        pytest.raises(error, match="of the handler"),
    ):
        next(reader)
    os.close(descriptor)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are missing here")
@pytest.mark.parametrize("error", [InterruptedError, FileExistsError])
def test_any_exception_raised_by_a_signal_handler_interrupts_opening_for_append(hole, error):
    errors = iter([error("of the handler")])

    def handler():
        raise next(errors, RuntimeError("the first exception was lost"))

    with after_work(0.2, handler, every=2), pytest.raises(error, match="of the handler"):
        cordwood.Writer(hole, "a")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are missing here")
@pytest.mark.parametrize(
    "open_",
    [
        lambda path: iter(cordwood.open(path)),
        lambda path: cordwood.open(path).record_batches(),
        cordwood.fragments,
        cordwood.follow,
    ],
    ids=["iter", "record_batches", "fragments", "follow"],
)
def test_a_signal_handler_that_raises_stop_iteration_does_not_end_an_iteration(hole, open_):
    def handler():
        raise StopIteration

    steps = open_(hole)
    with after_work(0.2, handler), pytest.raises(RuntimeError, match="raised StopIteration"):
        collections.deque(steps, 0)


@pytest.mark.parametrize("function", [cordwood.verify, cordwood.stat])
def test_an_exception_raised_by_the_progress_callback_stops_all_threads(hole, function):
    def progress(length):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        function(hole, threads=4, progress=progress)


# Inside a batch --------------------------------------------------------------------------------

RECORDS = [b"%03d" % number for number in range(100)]
LOG = reference.encode(RECORDS)


class Interrupted:
    """A source whose third read raises."""

    def __init__(self, error):
        self.error = error
        self.pieces = [LOG[:170], LOG[170:300], None, LOG[300:700], LOG[700:]]

    def read(self, size):
        piece = self.pieces.pop(0) if self.pieces else b""
        if piece is None:
            raise self.error
        return piece


ITERATIONS = {
    "records": lambda reader: (record.data for record in reader.records()),
    "record_batches": lambda reader: (record for pack in reader.record_batches(target_len=1 << 30) for record in pack),
    "next": iter,
}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("after", ITERATIONS)
def test_an_interrupt_inside_a_batch_is_raised_immediately(after, error):
    reader = cordwood.Reader(Interrupted(error))
    with pytest.raises(error):
        next(reader.record_batches(target_len=1 << 30))
    assert reader.tell() == 0
    assert list(ITERATIONS[after](reader)) == RECORDS
    assert reader.tell() == len(LOG)


def test_records_read_before_an_interrupt_are_not_lost():
    reader = cordwood.Reader(Interrupted(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        next(reader.record_batches(target_len=1 << 30))
    with cordwood.Reader(LOG) as other:
        for expected in other.records():
            found = next(reader.records())
            assert (found.offset, found.end_offset, found.data) == (expected.offset, expected.end_offset, expected.data)
            assert reader.tell() == found.end_offset
    assert list(reader) == []


def test_the_end_offset_of_a_record_excludes_the_block_trailer():
    # Six bytes are left in the first block, three in the second one.
    file = reference.encode([*[bytes(4_088)] * 7, bytes(4_090), *[bytes(4_088)] * 7, bytes(4_093), b"last"])
    expected = [(event.offset, event.end_offset) for event in reference.events(file) if hasattr(event, "data")]
    assert [(end, start) for (_, end), (start, _) in itertools.pairwise(expected) if end != start] == [
        (32_755 + 7, 32_768),
        (65_536 - 3, 65_536),
    ]
    source = Interrupted(KeyboardInterrupt)
    source.pieces = [file[:-1], None, file[-1:]]
    reader = cordwood.Reader(source)
    with pytest.raises(KeyboardInterrupt):
        next(reader.record_batches(target_len=1 << 30))
    assert [(record.offset, record.end_offset) for record in reader.records()] == expected


def test_a_source_error_is_raised_after_earlier_records_are_returned():
    reader = cordwood.Reader(Interrupted(TimeoutError()))
    records = ITERATIONS["record_batches"](reader)
    assert [next(records) for _ in range(30)] == RECORDS[:30]
    with pytest.raises(TimeoutError):
        next(records)


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe has no path here")
def test_ctrl_c_in_the_middle_of_a_pipe_batch_loses_no_records():
    receive, send = os.pipe()
    with os.fdopen(send, "wb", buffering=0) as sink, cordwood.Reader(f"/dev/fd/{receive}") as reader:
        sink.write(LOG[:500])
        is_read = lambda: unread_len(receive) == 0 and waits(os.getpid())  # noqa: E731
        with interrupting(is_read), pytest.raises(Interrupt):
            next(reader.record_batches(target_len=10**9))
        assert reader.tell() == 0
        sink.write(LOG[500:])
        sink.close()
        assert list(reader) == RECORDS
    os.close(receive)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are missing here")
def test_a_signal_handler_can_close_a_follower_during_iteration_in_c_code(tmp_path):
    path = tmp_path / "log"
    write_long_log(path)
    follower = cordwood.follow(path)
    with after_work(0.05, follower.close), pytest.raises(cordwood.ClosedError):
        collections.deque(follower, 0)
