"""The promises of a writer to a file when a write or a sync fails, the process ends, or another writer interferes."""

import errno
import io
import os
import resource
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import reference
from failing_calls import CAN_FAIL, failing
from process import bytes_written
from support import HELPERS, PAYLOAD

import cordwood


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.log"


def run(*command):
    return subprocess.run(command, capture_output=True, check=False, timeout=300)


def python(*arguments):
    """Runs the same Python with the same package."""
    return run(sys.executable, *arguments)


# When it syncs ---------------------------------------------------------------------------------


def durable_offsets(path, lengths, **options):
    """The durable offset after each append, and after closing."""
    with cordwood.Writer(path, "w", **options) as writer:
        offsets = []
        for length in lengths:
            writer.append(bytes(length))
            offsets.append(writer.durable_offset)
    return offsets, writer.durable_offset


@pytest.mark.parametrize(
    ("options", "offsets", "closed"),
    [
        ({}, [0, 0, 0, 0], 0),
        ({"sync": "never"}, [0, 0, 0, 0], 0),
        ({"sync": "close"}, [0, 0, 0, 0], 428),
        ({"sync": "append"}, [107, 214, 321, 428], 428),
        ({"sync_interval": 0}, [107, 214, 321, 428], 428),
        ({"sync_interval": 3600}, [0, 0, 0, 0], 428),
        ({"sync_interval": float("inf")}, [0, 0, 0, 0], 428),
    ],
)
def test_each_sync_policy_syncs_records_on_schedule(path, options, offsets, closed):
    assert durable_offsets(path, [100] * 4, **options) == (offsets, closed)
    assert path.read_bytes() == reference.encode([bytes(100)] * 4)


def test_append_with_sync_also_syncs_all_earlier_records(path):
    with cordwood.Writer(path) as writer:
        assert writer.append(b"one") == 0
        assert writer.append(b"two", sync=True) == 10
        assert writer.durable_offset == 20
        assert path.read_bytes() == reference.encode([b"one", b"two"])
        assert writer.append(b"three", sync=False) == 20
        assert writer.durable_offset == 20


@pytest.mark.parametrize("flush", ["append", "close"])
def test_extend_syncs_the_records_before_an_overlong_one(path, flush):
    with cordwood.Writer(path, sync="append", flush=flush, record_len_max=5) as writer:
        with pytest.raises(cordwood.RecordTooLargeError):
            writer.extend([b"one", b"two", b"longer"])
        assert (writer.tell(), writer.durable_offset) == (20, 20)


def test_existing_records_are_durable_after_the_first_sync(path):
    path.write_bytes(reference.encode([b"one"]))
    with cordwood.Writer(path, "a") as writer:
        assert writer.durable_offset == 0
        writer.sync()
        assert writer.durable_offset == 10


@pytest.mark.parametrize(
    "options",
    [
        {"sync": "sometimes"},
        {"sync": "append", "sync_interval": 1},
        {"sync": "close", "sync_interval": 1},
        {"sync_interval": -1},
        {"sync_interval": float("nan")},
        {"on_torn_tail": "hope", "mode": "a"},
        {"on_torn_tail": "truncate"},
        {"checkpoint": 0},
    ],
    ids=str,
)
def test_invalid_option_values_are_rejected_before_a_file_is_created(path, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        cordwood.Writer(path, **options)
    assert not path.exists()


@pytest.mark.parametrize("options", [{"sync": "append"}, {"sync_interval": 1}])
def test_sync_options_require_a_path(tmp_path, options):
    with (tmp_path / "some.log").open("wb") as file, pytest.raises(ValueError, match="require a path"):
        cordwood.Writer(file, "w", **options)


@pytest.mark.parametrize("kind", ["path", "object"])
def test_synced_appends_from_several_threads_are_written_exactly_once(path, kind):
    """Once its append returns, each record is in the log exactly once."""
    count = 50
    start = threading.Barrier(8)
    with path.open("wb") as file, cordwood.Writer(path if kind == "path" else file, "w") as writer:

        def append(thread):
            start.wait(120)
            for number in range(count):
                record = b"%d %d" % (thread, number)
                offset = writer.append(record, sync=True)
                assert writer.durable_offset >= offset + 7 + len(record)

        with ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(append, thread) for thread in range(8)]:
                future.result(120)
    records = [tuple(map(int, record.split())) for record in cordwood.open(path)]
    assert sorted(records) == [(thread, number) for thread in range(8) for number in range(count)]
    for thread in range(8):
        assert [number for owner, number in records if owner == thread] == list(range(count))


def test_a_sync_does_not_block_other_threads(path):
    """The lock is free while a thread waits for the disk; if it were not, this would take forever."""
    with cordwood.Writer(path) as writer:
        stop = threading.Event()

        def sync():
            while not stop.is_set():
                writer.append(b"synced", sync=True)

        thread = threading.Thread(target=sync)
        thread.start()
        for _ in range(20_000):
            writer.append(b"plain")
        stop.set()
        thread.join(120)
    assert sum(record == b"plain" for record in cordwood.open(path)) == 20_000


def test_wait_durable_triggers_a_sync_without_appending(path):
    with cordwood.Writer(path, flush="close") as writer:
        writer.append(b"one")
        writer.wait_durable(writer.tell())
        assert (writer.durable_offset, writer.tell()) == (10, 10)
        assert path.read_bytes() == reference.encode([b"one"])
        with pytest.raises(OSError, match="the offset 11 is after the end of the log, 10") as caught:
            writer.wait_durable(11)
        assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, str(path))
        with pytest.raises(OverflowError):
            writer.wait_durable(-1)
    with pytest.raises(cordwood.ClosedError):
        writer.wait_durable(10)


def test_wait_durable_works_on_files_but_not_on_buffers(path):
    with path.open("wb") as file, cordwood.Writer(file) as writer:
        writer.append(b"one")
        writer.wait_durable(10)
        assert (writer.durable_offset, path.read_bytes()) == (10, reference.encode([b"one"]))
        with pytest.raises(OSError, match="the offset 11 is after the end of the log, 10"):
            writer.wait_durable(11)
    with cordwood.Writer(io.BytesIO()) as writer:
        writer.append(b"one")
        with pytest.raises(io.UnsupportedOperation):
            writer.wait_durable(10)


def test_waiting_for_durability_does_not_block_other_threads(path):
    """It waits without the interpreter and without the lock; if it had them, this would take forever."""
    with cordwood.Writer(path) as writer:
        end = writer.append(b"start") + 7 + 5
        is_stopped = threading.Event()

        def wait():
            while not is_stopped.is_set():
                offset = writer.tell()
                writer.wait_durable(offset)
                assert writer.durable_offset >= offset >= end

        with ThreadPoolExecutor(1) as pool:
            waits = pool.submit(wait)
            for _ in range(20_000):
                writer.append(b"plain")
            is_stopped.set()
            waits.result(120)


@pytest.mark.skipif(not CAN_FAIL, reason="no table of functions that is known here")
def test_waiting_for_durability_fails_after_a_failed_sync(path):
    writer = cordwood.Writer(path)
    writer.append(b"one")
    with failing("fdatasync"), pytest.raises(OSError, match="no byte is known to be on the disk"):
        writer.wait_durable(10)
    with pytest.raises(OSError, match="an earlier sync failed"):
        writer.wait_durable(10)
    assert writer.durable_offset == 0
    with pytest.raises(OSError, match="an earlier sync failed"):
        writer.close()


# A second writer -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["w", "a"])
def test_a_second_writer_is_rejected(path, mode):
    with cordwood.Writer(path) as writer:
        writer.append(b"one", sync=True)
        with pytest.raises(BlockingIOError, match="another writer") as caught:
            cordwood.Writer(path, mode)
        assert (caught.value.errno, caught.value.filename) == (errno.EAGAIN, str(path))
        # The second writer has changed no byte.
        assert path.read_bytes() == reference.encode([b"one"])
        writer.append(b"two")
    with cordwood.Writer(path, "a") as writer:
        assert writer.append(b"three") == 20


APPEND = """
import sys
import cordwood
try:
    with cordwood.Writer(sys.argv[1], "a") as writer:
        writer.append(b"from the other process")
except BlockingIOError as error:
    print(error)
    sys.exit(3)
"""


def test_a_writer_in_a_second_process_is_rejected(path):
    with cordwood.Writer(path) as writer:
        writer.append(b"one")
        writer.flush()
        done = python("-c", APPEND, path)
        assert done.returncode == 3, done.stderr.decode()
        assert b"another writer has this log open" in done.stdout
        assert str(path) in done.stdout.decode()
    assert python("-c", APPEND, path).returncode == 0
    assert list(cordwood.open(path)) == [b"one", b"from the other process"]


def test_waiting_threads_do_not_keep_a_closed_log_locked(path):
    writer = cordwood.Writer(path)

    def append_until_closed():
        while True:
            try:
                writer.append(b"one", sync=True)
            except ValueError:
                return

    with ThreadPoolExecutor(4) as pool:
        threads = [pool.submit(append_until_closed) for _ in range(4)]
        while writer.durable_offset == 0:
            pass
        writer.close()
        cordwood.Writer(path, "a").close()
        for thread in threads:
            thread.result(120)


def test_a_reader_can_open_a_log_that_is_locked_by_a_writer(path):
    with cordwood.Writer(path) as writer:
        writer.append(b"one")
        writer.flush()
        assert list(cordwood.open(path)) == [b"one"]


# Failures --------------------------------------------------------------------------------------


class Limit:
    """Limits the file to `length` bytes: writes beyond it are cut short, then fail."""

    def __init__(self, length):
        self.length = length

    def __enter__(self):
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.length, self.before[1]))

    def __exit__(self, *exception):
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)
        signal.signal(signal.SIGXFSZ, self.handler)


@pytest.mark.parametrize("length", [0, 1, 10, 5000, 9_999, 10_007, 20_000])
def test_a_write_that_does_not_fit_on_the_disk_is_rolled_back(path, length):
    """Part of the first write arrives. None of it stays, and everything appended is written once there is room."""
    with cordwood.Writer(path, flush="close") as writer:
        writer.append(b"before", sync=True)
        with Limit(13 + length):
            writer.append(PAYLOAD[:10_000])
            writer.append(b"two")
            with pytest.raises(OSError, match=r"everything before offset 13 is on the disk.*remains usable") as caught:
                writer.flush() if length < 10_017 else writer.append(PAYLOAD[:30_000], sync=True)
            assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
            assert path.read_bytes() == reference.encode([b"before"])
            assert writer.durable_offset == 13
        writer.append(b"three", sync=True)
        assert writer.durable_offset == writer.tell()
    assert list(cordwood.open(path)) == [b"before", PAYLOAD[:10_000], b"two", b"three"]


def test_a_record_whose_write_failed_is_not_in_the_log(path):
    """Records acknowledged earlier still are."""
    with cordwood.Writer(path) as writer:
        writer.append(b"one")
        with Limit(100), pytest.raises(OSError, match="no byte is known to be on the disk"):
            writer.append(PAYLOAD, sync=True)
        assert writer.tell() == 10
        assert writer.append(b"two", sync=True) == 10
    assert path.read_bytes() == reference.encode([b"one", b"two"])


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    directory = tmp_path / "small"
    directory.mkdir()
    mount = run("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", directory)
    if mount.returncode != 0:
        pytest.skip(f"cannot mount: {mount.stderr.decode().strip()}")
    yield directory
    assert run("umount", directory).returncode == 0


def test_appending_to_a_full_disk_raises_an_out_of_space_error(small_disk):
    path, ballast = small_disk / "some.log", small_disk / "ballast"
    ballast.write_bytes(bytes(128 << 10))
    acknowledged = []
    with cordwood.Writer(path, sync="append") as writer:
        records = [b"%06d" % number + PAYLOAD[:1000] for number in range(1000)]
        with pytest.raises(OSError, match="on the disk") as caught:
            acknowledged.extend(record for record in records if writer.append(record) >= 0)
        assert caught.value.errno == errno.ENOSPC
        assert f"everything before offset {writer.durable_offset} is on the disk" in str(caught.value)
        assert list(cordwood.open(path)) == acknowledged
        assert 100 < len(acknowledged) < 140
        ballast.unlink()
        writer.append(b"there is room again")
    assert list(cordwood.open(path)) == [*acknowledged, b"there is room again"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_every_call_to_a_writer_is_rejected_after_a_failed_sync(tmp_path):
    """A pipe accepts writes but cannot be synced: the one way for a sync to fail without a broken disk."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        writer = cordwood.Writer(path, "w")
        writer.append(b"one")
        with pytest.raises(OSError, match="no byte is known to be on the disk") as caught:
            writer.sync()
        assert caught.value.errno == errno.EINVAL
        for use in [lambda: writer.append(b"two"), lambda: writer.extend([b"two"]), writer.flush, writer.sync]:
            with pytest.raises(OSError, match="an earlier sync failed") as caught:
                use()
            assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, str(path))
        assert writer.durable_offset == 0
        with pytest.raises(OSError, match="an earlier sync failed"):
            writer.close()
        writer.close()
        assert os.read(reading, 100) == reference.encode([b"one"])
    finally:
        os.close(reading)


@pytest.mark.skipif(not CAN_FAIL, reason="no table of functions that is known here")
@pytest.mark.parametrize("failures", [1, 2])
def test_bytes_left_unsynced_by_a_failed_sync_are_rewritten(path, failures):
    """Linux has marked its pages as clean, so the bytes must be written again to be synced."""
    records = [bytes(100)]
    with cordwood.open(path, "w") as writer:
        writer.append(records[0])
        writer.sync()
    for number in range(failures):
        writer = cordwood.open(path, "a")
        if number == 0:
            writer.sync()
        records.append(PAYLOAD[:100])
        writer.append(records[-1])
        with failing("fdatasync"), pytest.raises(OSError, match="sync") as caught:
            writer.sync()
        assert caught.value.errno == errno.ENOTTY
        with pytest.raises(OSError, match="an earlier sync failed"):
            writer.close()
    before = bytes_written()
    records.append(b"x")
    with cordwood.open(path, "a") as writer:
        assert writer.durable_offset <= 107
        writer.append(b"x")
        writer.sync()
        assert writer.durable_offset == 107 * (1 + failures) + 8
    assert path.read_bytes() == reference.encode(records)
    assert bytes_written() - before >= 107 * failures + 8


REOPEN = """
import sys
import cordwood
from process import bytes_written
before = bytes_written()
with cordwood.open(sys.argv[1], "a", checkpoint=107) as writer:
    writer.append(b"x")
    writer.sync()
    print(writer.durable_offset, bytes_written() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_new_process_rewrites_the_bytes_after_the_checkpoint(path):
    """Everything before the checkpoint is known to be synced; the state of the rest is unknown."""
    path.write_bytes(reference.encode([bytes(100), PAYLOAD[:100]]))
    done = run("env", f"PYTHONPATH={HELPERS}", sys.executable, "-c", REOPEN, path)
    assert done.returncode == 0, done.stderr.decode()
    durable_offset, written = map(int, done.stdout.split())
    assert durable_offset == 222
    assert written >= 222 - 107
    assert path.read_bytes() == reference.encode([bytes(100), PAYLOAD[:100], b"x"])


# Where it starts -------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(4))
def test_opening_at_a_checkpoint_checks_only_the_blocks_after_it(path, index):
    records = [b"one", PAYLOAD[:70_000], b"two", PAYLOAD[:40_000]]
    file = bytearray(reference.encode(records))
    offsets = reference.record_offsets(records)
    if index >= 2:
        file[8] ^= 1  # Blocks before the checkpoint's are not checked for damage.
    path.write_bytes(file)
    with cordwood.Writer(path, "a", checkpoint=offsets[index]) as writer:
        assert writer.discarded_tail is None
        assert writer.append(b"three") == len(file)
    assert path.read_bytes() == file + reference.encode([b"three"], len(file))


@pytest.mark.parametrize("offset", [1, 11, 21, 10_000])
def test_a_checkpoint_inside_a_record_is_rejected(path, offset):
    path.write_bytes(reference.encode([b"one", b"two"]))
    with pytest.raises(OSError, match="no record starts or ends at the checkpoint") as caught:
        cordwood.Writer(path, "a", checkpoint=offset)
    assert caught.value.filename == str(path)
    for checkpoint in (10, 20):
        with cordwood.Writer(path, "a", checkpoint=checkpoint) as writer:
            assert writer.tell() == 20
