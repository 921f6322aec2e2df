"""Ctrl-C ends every call promptly and loses no record."""

import collections
import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import reference

import cordwood

# A hole, which takes no room on the disk but as long to read as a log of this length.
HOLE_LEN = 64 << 30
PROMPT = 2.0

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
# In a shell's background jobs SIGINT is ignored, and Python leaves it ignored.
SCRIPT = """
import signal
import sys
import cordwood
signal.signal(signal.SIGINT, signal.default_int_handler)
path = sys.argv[1]
print("ready", flush=True)
try:
    {}
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture(scope="module")
def hole(tmp_path_factory):
    path = tmp_path_factory.mktemp("hole") / "hole.log"
    path.write_bytes(reference.encode([b"one"]))
    os.truncate(path, HOLE_LEN)
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process here")
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_a_call(hole, name):
    assert_is_interrupted([sys.executable, "-c", SCRIPT.format(CALLS[name]), hole])


def assert_is_interrupted(command):
    """Sends Ctrl-C to a program that runs `SCRIPT`, which ends promptly."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.2)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30)
            assert time.monotonic() - begin < PROMPT
            assert (output, errors) == ("interrupted\n", "")
        finally:
            process.kill()


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


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process here")
@pytest.mark.parametrize("name", STREAM_CALLS)
def test_ctrl_c_ends_an_arrow_stream(hole, name):
    """The consumer raises an error of its own, so that code that handles errors of a file must not keep Ctrl-C."""
    call = f"""
    try:
        {STREAM_CALLS[name]}
    except OSError:
        while True:
            pass
"""
    script = SCRIPT.format(call).replace("import cordwood\n", "import cordwood\n" + STREAM_SCRIPT)
    assert_is_interrupted([sys.executable, "-c", script, hole])


PIPE_CALLS = {
    **{name: CALLS[name] for name in ("verify", "stat", "iterate", "record_batches")},
    "detect": "cordwood.detect(path)",
    "dialect": "cordwood.Reader(path).dialect",
    "start": "list(cordwood.Reader(path, start=1 << 20))",
}
PIPE_SCRIPT = """
import os
# Opened for writing also, so that nothing else waits and the pipe does not end.
descriptor = os.open(sys.argv[1], os.O_RDWR)
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("name", PIPE_CALLS)
def test_ctrl_c_ends_a_call_that_waits_for_a_pipe(tmp_path, name):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    script = SCRIPT.format(PIPE_CALLS[name]).replace("import cordwood\n", "import cordwood\n" + PIPE_SCRIPT)
    assert_is_interrupted([sys.executable, "-c", script, path])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_read_of_a_pipe_that_was_interrupted_is_repeated(tmp_path, ctrl_c):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    log = reference.encode([b"one", b"two"])
    os.write(descriptor, log[:-1])
    with cordwood.Reader(path) as reader:
        assert next(reader) == b"one"
        for _ in range(2):
            # To the thread that waits, whichever this process would choose.
            threading.Timer(0.3, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
            with pytest.raises(KeyboardInterrupt):
                next(reader)
        os.write(descriptor, log[-1:])
        assert next(reader) == b"two"
    os.close(descriptor)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("error", [InterruptedError, FileExistsError])
def test_any_exception_of_a_signal_handler_is_raised(tmp_path, error):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)
    log = reference.encode([b"one"])
    os.write(descriptor, log[:-1])

    def handler(_number, _frame):
        raise error("of the handler")

    before = signal.signal(signal.SIGALRM, handler)
    # Otherwise, a read that goes on would never end.
    end = threading.Timer(3, os.write, [descriptor, log[-1:]])
    end.start()
    threading.Timer(0.3, signal.pthread_kill, [threading.main_thread().ident, signal.SIGALRM]).start()
    try:
        with cordwood.Reader(path) as reader, pytest.raises(error, match="of the handler"):
            next(reader)
    finally:
        end.cancel()
        end.join()
        signal.signal(signal.SIGALRM, before)
        os.close(descriptor)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
@pytest.mark.parametrize("error", [InterruptedError, FileExistsError])
def test_any_exception_of_a_signal_handler_ends_opening_for_append(hole, error):
    errors = iter([error("of the handler")])

    def handler(_number, _frame):
        raise next(errors, RuntimeError("the first exception was lost"))

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 2)
    try:
        with pytest.raises(error, match="of the handler"):
            cordwood.Writer(hole, "a")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
def test_a_signal_handler_that_raises_stop_iteration_does_not_end_an_iteration(hole):
    def handler(_number, _frame):
        raise StopIteration

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for open_ in [
            lambda: iter(cordwood.open(hole)),
            lambda: cordwood.open(hole).record_batches(),
            lambda: cordwood.fragments(hole),
            lambda: cordwood.follow(hole),
        ]:
            steps = open_()
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(RuntimeError, match="raised StopIteration"):
                collections.deque(steps, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_exception_of_the_progress_function_ends_all_threads(hole):
    def progress(length):
        raise RuntimeError("enough")

    for function in (cordwood.verify, cordwood.stat):
        begin = time.monotonic()
        with pytest.raises(RuntimeError, match="enough"):
            function(hole, threads=4, progress=progress)
        assert time.monotonic() - begin < PROMPT


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
def test_an_interrupt_inside_of_a_batch_is_raised_at_once(after, error):
    reader = cordwood.Reader(Interrupted(error))
    with pytest.raises(error):
        next(reader.record_batches(target_len=1 << 30))
    assert reader.tell() == 0
    assert list(ITERATIONS[after](reader)) == RECORDS
    assert reader.tell() == len(LOG)


def test_records_that_an_interrupt_left_are_returned_one_by_one():
    reader = cordwood.Reader(Interrupted(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        next(reader.record_batches(target_len=1 << 30))
    with cordwood.Reader(LOG) as other:
        for expected in other.records():
            found = next(reader.records())
            assert (found.offset, found.end_offset, found.data) == (expected.offset, expected.end_offset, expected.data)
            assert reader.tell() == found.end_offset
    assert list(reader) == []


def test_a_record_before_a_block_trailer_ends_where_it_ends():
    # Six bytes are left in the first block, three in the second one.
    file = reference.encode([*[bytes(4_088)] * 7, bytes(4_090), *[bytes(4_088)] * 7, bytes(4_093), b"last"])
    expected = [(event.offset, event.end_offset) for event in reference.events(file) if hasattr(event, "data")]
    assert [(end, begin) for (_, end), (begin, _) in itertools.pairwise(expected) if end != begin] == [
        (32_755 + 7, 32_768),
        (65_536 - 3, 65_536),
    ]
    source = Interrupted(KeyboardInterrupt)
    source.pieces = [file[:-1], None, file[-1:]]
    reader = cordwood.Reader(source)
    with pytest.raises(KeyboardInterrupt):
        next(reader.record_batches(target_len=1 << 30))
    assert [(record.offset, record.end_offset) for record in reader.records()] == expected


def test_an_error_of_the_source_comes_after_the_records_before_it():
    reader = cordwood.Reader(Interrupted(TimeoutError()))
    records = ITERATIONS["record_batches"](reader)
    assert [next(records) for _ in range(30)] == RECORDS[:30]
    with pytest.raises(TimeoutError):
        next(records)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process here")
def test_ctrl_c_inside_of_a_batch_from_a_pipe(ctrl_c):
    receive, send = os.pipe()
    with os.fdopen(send, "wb", buffering=0) as sink, cordwood.Reader(f"/dev/fd/{receive}") as reader:
        sink.write(LOG[:500])

        def interrupt():
            time.sleep(0.3)
            signal.raise_signal(signal.SIGINT)
            # A waiting read is not interrupted automatically.
            sink.write(LOG[500:600])

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            next(reader.record_batches(target_len=10**9))
        thread.join()
        assert reader.tell() == 0
        sink.write(LOG[600:])
        sink.close()
        assert list(reader) == RECORDS
    os.close(receive)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
def test_a_signal_handler_may_close_a_follower_whose_records_code_in_c_takes(tmp_path):
    path = tmp_path / "log"
    with cordwood.open(path, "x") as writer:
        writer.extend([b"record"] * 500_000)
    follower = cordwood.follow(path)
    before = signal.signal(signal.SIGALRM, lambda *_: follower.close())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        with pytest.raises(cordwood.ClosedError):
            collections.deque(follower, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
