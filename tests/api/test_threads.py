"""Readers and writers shared by several threads. No test here measures time; a hang ends with a timeout."""

import io
import os
import signal
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
import reference
from reference import BLOCK_LEN, FULL, fragment
from support import PAYLOAD

import cordwood

THREADS = 4
TIMEOUT = 120  # seconds


@pytest.fixture
def frequent_switches():
    """Makes threads take turns a thousand times more often than usual."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture
def no_switches():
    """Lets a thread run until it releases the interpreter of its own accord."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(interval)


def in_threads(function, arguments=range(THREADS)):
    """Calls `function` in threads that start at the same time, and returns their results."""
    start = threading.Barrier(len(arguments))

    def run(argument):
        start.wait(TIMEOUT)
        return function(argument)

    with ThreadPoolExecutor(len(arguments)) as pool:
        return [future.result(TIMEOUT) for future in [pool.submit(run, argument) for argument in arguments]]


def numbered(count, thread=0):
    """Distinct records, of very different lengths, in a recognisable order."""
    return [b"%02d-%08d-" % (thread, index) + PAYLOAD[: index * 7919 % 3000] for index in range(count)]


TAKE = [
    list,
    lambda reader: [record.data for record in reader.records()],
    lambda reader: [record for pack in reader.record_batches(target_len=10_000) for record in pack],
]


@pytest.mark.parametrize("source", [bytes, bytearray, io.BytesIO])
def test_threads_sharing_a_reader_get_each_record_exactly_once(source, frequent_switches):
    records = numbered(20_000)
    with cordwood.open(source(reference.encode(records))) as reader:
        shares = in_threads(lambda thread: TAKE[thread % len(TAKE)](reader))
        assert reader.outcome.kind == "clean"
    assert all(share == sorted(share) for share in shares)
    assert sorted(record for share in shares for record in share) == records


def test_threads_sharing_an_iterator_get_each_record_exactly_once(frequent_switches):
    records = numbered(20_000)
    with cordwood.open(reference.encode(records)) as reader:
        iterator = reader.records()
        shares = in_threads(lambda _: [record.data for record in iterator])
    assert sorted(record for share in shares for record in share) == records


def test_records_stay_intact_when_threads_share_a_writer(tmp_path, frequent_switches):
    path = tmp_path / "example.log"

    def write(thread):
        offsets = [writer.append(record) for record in numbered(2_500, thread)]
        assert writer.extend(numbered(2_500, thread + THREADS)) == 2_500
        writer.flush()
        return offsets

    with cordwood.open(path, "x") as writer:
        offsets = in_threads(write)
    with cordwood.open(path) as reader:
        found = {record.offset: record.data for record in reader.records()}
        assert reader.skipped == ()
    for thread in range(THREADS):
        assert [found[offset] for offset in offsets[thread]] == numbered(2_500, thread)
    expected = [record for thread in range(2 * THREADS) for record in numbered(2_500, thread)]
    assert sorted(found.values()) == sorted(expected)


def test_damage_raises_an_error_in_one_thread_and_other_threads_continue(frequent_switches):
    records = numbered(3_000)
    file = b"".join(
        # One damaged fragment per block.
        (fragment(FULL, record) + b"damaged").ljust(BLOCK_LEN, b"x")
        for record in records[:500]
    )

    def read(_):
        found, errors = [], []
        while True:
            try:
                found.append(next(reader))
            except StopIteration:
                return found, errors
            except cordwood.CorruptionError as error:
                errors.append(error.offset)

    with cordwood.open(file) as reader:
        shares = in_threads(read)
    assert sorted(record for found, _ in shares for record in found) == records[:500]
    blocks = [offset // BLOCK_LEN for _, errors in shares for offset in errors]
    assert sorted(blocks) == list(range(500))


class FailsAtTimes:
    """A source or sink that raises at every third call."""

    def __init__(self, data=b""):
        self.file = io.BytesIO(data)
        self.calls = 0

    def call(self):
        self.calls += 1
        if self.calls % 3 == 0:
            raise OSError("mine")

    def read(self, size):
        self.call()
        return self.file.read(min(size, 5_000))

    def write(self, data):
        self.call()
        return self.file.write(data)


def test_an_exception_raised_by_the_source_does_not_stop_the_other_threads(frequent_switches):
    records = numbered(2_000)
    source = FailsAtTimes(reference.encode(records))

    def read(_):
        found = []
        while True:
            try:
                found.append(next(reader))
            except StopIteration:
                return found
            except OSError as error:
                assert str(error) == "mine"  # noqa: PT017 - caught to continue

    with cordwood.open(source) as reader:
        shares = in_threads(read)
    assert sorted(record for found in shares for record in found) == records


def test_an_exception_raised_by_the_sink_ends_all_threads(frequent_switches):
    def write_on():
        while True:
            writer.append(PAYLOAD[:1_000])

    def write(_):
        with pytest.raises(OSError, match=r"mine|earlier write failed") as caught:
            write_on()
        return str(caught.value)

    sink = FailsAtTimes()
    writer = cordwood.open(sink, "w")
    messages = in_threads(write)
    assert messages.count("mine") == 1
    with pytest.raises(OSError, match="earlier write failed"):
        writer.close()
    assert sink.calls == 3


def test_closing_a_reader_raises_in_every_thread_still_using_it(frequent_switches):
    def read_on():
        while True:
            next(reader, None)
            reader.seek(0)

    def read(thread):
        if thread == 0:
            next(reader, None)
            reader.close()
        with pytest.raises(ValueError, match="closed"):
            read_on()

    reader = cordwood.open(reference.encode([b"one", b"two"]))
    in_threads(read)
    assert reader.closed


def wait_for_a_turn():
    """A thread that, once `start` is set, sets `done` as soon as it gets the interpreter."""
    start, done = threading.Event(), threading.Event()

    def run():
        start.wait(TIMEOUT)
        done.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, start, done


# Sources and sinks are in memory: opening a file releases the interpreter, and these tests are about later calls.


@pytest.mark.parametrize("take", [iter, cordwood.Reader.records, cordwood.Reader.record_batches])
def test_other_threads_run_while_records_are_decoded(take, no_switches):
    file = reference.encode([PAYLOAD[:300_000], *numbered(300)] * 10)
    thread, start, done = wait_for_a_turn()
    start.set()
    # However long the system keeps the other thread from running.
    while not done.is_set():
        for _record in take(cordwood.open(file)):
            pass
    thread.join()


@pytest.mark.parametrize("function", [cordwood.verify, cordwood.stat])
def test_other_threads_run_while_a_log_is_verified(function, no_switches):
    file = reference.encode([PAYLOAD[:300_000]] * 20)
    thread, start, done = wait_for_a_turn()
    start.set()
    while not done.is_set():
        assert function(file).record_count == 20
    thread.join()


@pytest.mark.parametrize(
    "write",
    [lambda writer: writer.append(PAYLOAD), lambda writer: writer.extend([PAYLOAD[:1_000]])],
    ids=["append", "extend"],
)
def test_other_threads_run_while_records_are_written(write, no_switches):
    class Sink:
        def write(self, data):
            pass

    thread, start, done = wait_for_a_turn()
    writer = cordwood.open(Sink(), "w")
    start.set()
    while not done.is_set():
        write(writer)
    writer.close()
    thread.join()


def test_other_threads_run_while_a_reader_waits_for_a_pipe(no_switches):
    """The thread that waits and the one it waits for need the interpreter in turn."""
    read_end, write_end = os.pipe()
    records = numbered(1_000)

    def write():
        with os.fdopen(write_end, "wb") as sink, cordwood.open(sink, "w") as writer:
            writer.extend(records)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    with cordwood.open(f"/dev/fd/{read_end}") as reader:
        assert list(reader) == records
    os.close(read_end)
    thread.join(TIMEOUT)


# Forks -------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
ignores_warning = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def end_child(work):
    """Ends a forked process with status 0 if `work` returns; by a signal if it hangs."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(TIMEOUT)
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - shown, and the status says it
        traceback.print_exc()
    finally:
        os._exit(status)


def assert_ends_well(child):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Slow:
    """A source whose first read waits."""

    def __init__(self, file):
        self.file = io.BytesIO(file)
        self.is_reading, self.may_read = threading.Event(), threading.Event()

    def read(self, size):
        self.is_reading.set()
        assert self.may_read.wait(TIMEOUT)
        return self.file.read(size)


USES = [
    next,
    list,
    cordwood.Reader.tell,
    cordwood.Reader.record_batches,
    lambda reader: reader.seek(0),
    lambda reader: reader.skipped,
    lambda reader: reader.outcome,
    lambda reader: reader.closed,
    lambda reader: reader.dialect,
]


@needs_fork
@ignores_warning
def test_a_reader_that_was_busy_during_a_fork_cannot_be_used():
    """No thread of the child will ever finish the step that a thread of the parent has started."""
    records = numbered(100)
    source = Slow(reference.encode(records))
    reader = cordwood.open(source)
    found = []
    thread = threading.Thread(target=lambda: found.extend(reader), daemon=True)
    thread.start()
    assert source.is_reading.wait(TIMEOUT)

    def use():
        for use in USES:
            for _ in range(2):
                with pytest.raises(OSError, match="when this process was forked") as caught:
                    use(reader)
                assert caught.value.hint == "reopen"
            reader.close()
        with pytest.raises(OSError, match="when this process was forked"), reader:
            pass
        in_threads(lambda _: reader.close())

    child = os.fork()
    if child == 0:
        end_child(use)
    assert_ends_well(child)
    source.may_read.set()
    thread.join(TIMEOUT)
    assert found == records
    assert reader.outcome.kind == "clean"


@needs_fork
@ignores_warning
@pytest.mark.parametrize("is_started", [False, True])
def test_threads_can_share_a_reader_after_a_fork(frequent_switches, is_started):
    """They wait for each other, from the first use in that process on."""
    records = numbered(20_000)
    reader = cordwood.open(reference.encode(records))
    started = [next(reader)] if is_started else []

    def use():
        shares = in_threads(lambda thread: TAKE[thread % len(TAKE)](reader))
        assert sorted([*started, *(record for share in shares for record in share)]) == records

    child = os.fork()
    if child == 0:
        end_child(use)
    assert_ends_well(child)
    assert [*started, *reader] == records


@needs_fork
@ignores_warning
def test_both_processes_get_records_if_the_source_forks_during_a_read():
    """The step that forked is in both processes, and ends in both."""
    records = numbered(1_000)

    class Forking(io.BytesIO):
        child = None

        def read(self, size):
            if self.child is None:
                self.child = os.fork()
                with pytest.raises(RuntimeError, match="already in use by this thread"):
                    reader.tell()
            return super().read(size)

    source = Forking(reference.encode(records))
    reader = cordwood.open(source)

    def use():
        assert found == records[0]
        shares = in_threads(lambda _: list(reader))
        assert sorted(record for share in shares for record in share) == records[1:]
        reader.close()

    found = next(reader)
    if source.child == 0:
        end_child(use)
    assert_ends_well(source.child)
    assert [found, *reader] == records


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="several threads read only with several processors")
@pytest.mark.parametrize("function", [cordwood.verify, cordwood.stat])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_progress_counts_each_byte_once(function, threads, tmp_path):
    path = tmp_path / "example.log"
    # The record at the end of each part continues in the next one.
    path.write_bytes(reference.encode([PAYLOAD[:700_000]] * 20))
    lens = []
    assert function(path, threads=threads, progress=lens.append).record_count == 20
    assert sum(lens) == path.stat().st_size
