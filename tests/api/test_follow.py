"""`cordwood.follow`: reading a log while another process writes it, in threads and in an event loop."""

import asyncio
import collections
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from interrupts import HANG, Interrupt, after_work, interrupting, raise_interrupt, write_long_log
from reference import BLOCK_LEN, FULL, encode, fragment

import cordwood

# The record `foo` of log 123 of RocksDB, in a fragment of type 5, which carries the number.
FOO_OF_LOG_123 = b"\x45\xb7\x1d\x10\x03\x00\x05\x7b\x00\x00\x00foo"

# Writes a log in pieces of random length, to the end of a file or over the zeros of a longer one.
WRITER = """
import random, sys, time
path, source, seed, ahead = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
rng = random.Random(seed)
log = open(source, "rb").read()
with open(path, "r+b", buffering=0) as file:
    if ahead:
        file.truncate(len(log) + ahead)
    written = 0
    while written < len(log):
        chunk = log[written : written + rng.randint(1, rng.choice([10, 1_000, 100_000]))]
        file.write(chunk)
        written += len(chunk)
        if rng.random() < 0.3:
            time.sleep(rng.random() / 500)
"""


@pytest.fixture
def live(tmp_path):
    path = tmp_path / "live.log"
    path.touch()
    return path


def random_records(seed, count=80):
    rng = random.Random(seed)
    lengths = [rng.choice([0, rng.randrange(300), rng.randrange(300), rng.randrange(100_000)]) for _ in range(count)]
    return [rng.randbytes(length) + bytes(rng.choice([0, 0, length % 50])) for length in lengths]


def write(path, records, mode="w"):
    with cordwood.open(path, mode) as writer:
        writer.extend(records)


def start_writer(live, records, seed, *, ahead):
    source = live.with_name("source.log")
    write(source, records)
    arguments = [str(live), str(source), str(seed), str(ahead)]
    return subprocess.Popen([sys.executable, "-c", WRITER, *arguments])


@pytest.mark.parametrize("ahead", [0, 300_000], ids=["plain", "preallocated"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_follower_returns_records_that_another_process_writes_in_chunks(live, seed, ahead):
    records = random_records(seed)
    with (
        start_writer(live, records, seed, ahead=ahead),
        cordwood.follow(live, timeout=HANG, poll_interval=0.001) as follower,
    ):
        found = [next(follower) for _ in records]
        assert follower.poll() is None
        assert follower.waiting.reason == ("zeros" if ahead else "idle")
    assert found == records
    assert follower.closed


def test_an_async_for_loop_returns_records_written_by_another_process(live):
    records = random_records(3)

    async def read():
        found = []
        with cordwood.follow(live, timeout=HANG, poll_interval=0.001) as follower:
            async for record in follower.records():
                found.append(record)
                if len(found) == len(records):
                    return found
        return found

    with start_writer(live, records, 3, ahead=0):
        found = asyncio.run(read())
    assert [record.data for record in found] == records
    assert found == list(cordwood.open(live).records())


def test_a_follower_resumes_from_a_saved_offset(live):
    records = random_records(4, 20)
    write(live, records)
    offsets = [record.offset for record in cordwood.open(live).records()]
    for number, offset in enumerate(offsets):
        follower = cordwood.follow(live, start=offset, timeout=0)
        assert next(follower) == records[number]
        again = cordwood.follow(live, start=follower.tell(), timeout=0)
        assert list(again) == records[number + 1 :]
        assert list(again) == []


def test_a_follower_can_be_iterated_again_after_a_timeout(live):
    follower = cordwood.follow(live, timeout=0.15)
    start = time.monotonic()
    assert list(follower) == []
    assert 0.15 <= time.monotonic() - start < HANG
    assert follower.timeout == 0.15
    write(live, [b"one"])
    assert list(follower) == [b"one"]
    assert follower.waiting == follower.waiting
    assert repr(follower.waiting) == "NotYet(reason='idle', offset=10, file_len=10)"

    async def collect():
        return [record async for record in follower]

    start = time.monotonic()
    assert asyncio.run(collect()) == []
    assert 0.15 <= time.monotonic() - start < HANG


def test_waiting_in_an_event_loop_takes_no_longer_than_the_remaining_timeout(live):
    async def collect():
        return [record async for record in cordwood.follow(live, timeout=0.1, poll_interval=2 * HANG)]

    start = time.monotonic()
    assert asyncio.run(collect()) == []
    assert 0.1 <= time.monotonic() - start < HANG


def test_a_follower_waits_for_a_recycled_file_to_be_reused(tmp_path):
    path = tmp_path / "000124.log"
    path.write_bytes(FOO_OF_LOG_123)
    with cordwood.follow(path, timeout=0) as follower:
        assert list(follower) == []
        assert follower.waiting == cordwood.types.NotYet(reason="stale", offset=0, file_len=14)
        assert follower.waiting.reason is cordwood.types.WaitReason.STALE
        with cordwood.Writer(tmp_path / "new.log", dialect="rocksdb", log_number=124) as writer:
            writer.append(b"bar")
        path.write_bytes((tmp_path / "new.log").read_bytes())
        assert list(follower) == [b"bar"]
        assert follower.waiting.reason == "idle"


def test_a_follower_distinguishes_an_idle_log_from_an_incomplete_record(live):
    write(live, [b"one", b"two"])
    whole = live.read_bytes()
    live.write_bytes(whole[:15])
    follower = cordwood.follow(live, timeout=0)
    assert follower.waiting is None
    assert list(follower) == [b"one"]
    assert (follower.waiting.reason, follower.waiting.pending_len) == (cordwood.types.WaitReason.INCOMPLETE, 5)
    live.write_bytes(whole)
    assert follower.poll() == cordwood.open(live, start=10).records().__next__()
    assert follower.waiting is None
    assert follower.poll() is None
    assert (follower.waiting.reason, follower.waiting.pending_len) == ("idle", 0)


def damaged(live):
    write(live, [b"one", b"two", b"x" * 40_000, b"three"])
    data = bytearray(live.read_bytes())
    data[18] ^= 1
    live.write_bytes(data)


def test_damage_is_raised_right_away_if_a_valid_block_follows(live):
    write(live, [b"one", b"x" * 32_751, b"three"])
    data = bytearray(live.read_bytes())
    data[18] ^= 1
    live.write_bytes(data)
    follower = cordwood.follow(live, retry_time=1_000_000)
    assert next(follower) == b"one"
    with pytest.raises(cordwood.CorruptionError) as caught:
        next(follower)
    assert (caught.value.path, caught.value.offset, caught.value.length) == (str(live), 10, 32_758)
    assert follower.tell() == 32_768
    assert next(follower) == b"three"
    assert [region.reason for region in follower.skipped] == ["checksum_mismatch"]


def test_damage_at_the_end_of_a_log_promptly_raises_a_single_error(live):
    write(live, [b"one", b"two"])
    data = bytearray(live.read_bytes())
    data[-1] ^= 1
    live.write_bytes(data)
    follower = cordwood.follow(live, poll_interval=2 * HANG)
    assert next(follower) == b"one"
    start = time.monotonic()
    with pytest.raises(cordwood.CorruptionError):
        next(follower)
    assert 0.1 <= time.monotonic() - start < HANG
    with live.open("ab") as file:
        file.write(bytes(32_768 - 20))
    write(live.with_name("other"), [b"next"])
    with live.open("ab") as file:
        file.write(live.with_name("other").read_bytes())
    assert next(follower) == b"next"
    (region,) = follower.skipped
    assert (region.offset, region.end_offset, region.severity) == (10, 32_768, "corruption")


def test_a_follower_honors_the_skip_and_stop_policies(live, caplog):
    damaged(live)
    follower = cordwood.follow(live, on_corruption="skip", timeout=0)
    reader = cordwood.open(live, on_corruption="skip")
    assert list(follower) == list(reader) == [b"one", b"three"]
    assert follower.skipped == reader.skipped
    assert "checksum mismatch" in caplog.text

    follower = cordwood.follow(live, on_corruption="stop")
    assert list(follower) == [b"one"]
    assert follower.outcome.kind == cordwood.types.OutcomeKind.STOPPED
    assert follower.outcome.offset == 10
    assert follower.poll() is None
    assert follower.waiting is None

    async def collect():
        return [record async for record in cordwood.follow(live, on_corruption="stop")]

    assert asyncio.run(collect()) == [b"one"]


def test_a_follower_raises_on_truncation_and_rotation(live):
    write(live, [b"one", b"two"])
    follower = cordwood.follow(live, timeout=0)
    list(follower)
    whole = live.read_bytes()
    old = live.rename(live.with_name("old.log"))
    with pytest.raises(cordwood.LogRotatedError) as caught:
        next(follower)
    assert (caught.value.path, caught.value.offset, caught.value.file_len) == (str(live), 20, 20)
    with old.open("ab") as file:
        file.write(whole[:10])
    assert next(follower) == b"one"

    os.truncate(old, 12)
    for _ in range(2):
        with pytest.raises(cordwood.LogTruncatedError, match="past the end of the log") as caught:
            follower.poll()
    assert isinstance(caught.value, cordwood.CordwoodError)
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (type(copy), str(copy), vars(copy)) == (type(caught.value), str(caught.value), vars(caught.value))


# Rotation --------------------------------------------------------------------------------------


def rename(path):
    path.rename(path.with_name("old.log"))


@pytest.mark.parametrize("leave", [rename, os.remove], ids=["rename", "remove"])
def test_reopening_after_rotation_continues_with_the_next_file(live, leave):
    write(live, [b"one", b"two"])
    with cordwood.follow(live, timeout=0, on_rotation="reopen") as follower:
        assert next(follower) == b"one"
        leave(live)
        # The rest of the old file is read first; then there is no file.
        assert list(follower) == [b"two"]
        assert follower.waiting == cordwood.types.NotYet(reason="idle", offset=20, file_len=20)
        assert (follower.tell(), follower.outcome.kind) == (20, "unfinished")
        write(live, [b"three"])
        assert list(follower) == [b"three"]
        assert (follower.tell(), follower.waiting.file_len) == (12, 12)
        leave(live)
        write(live, [b"four"])
        leave(live)
        write(live, [b"five", b"six"])
        # A file that came and went between two polls cannot be noticed.
        assert list(follower) == [b"five", b"six"]


def test_reopening_after_rotation_follows_the_replacement_file(live):
    write(live, [b"one"])
    with cordwood.follow(live, timeout=0, on_rotation="reopen") as follower:
        assert list(follower) == [b"one"]
        new = live.with_name("new.log")
        write(new, [b"two", b"three"])
        new.replace(live)
        assert [(record.offset, record.data) for record in follower.records()] == [(0, b"two"), (10, b"three")]


def test_records_written_late_to_the_old_file_are_returned_before_reopening(live):
    """The writer renames its file, continues writing to it, and only then creates the next one."""
    write(live, [b"one"])
    with cordwood.follow(live, timeout=0, on_rotation="reopen") as follower:
        old = live.rename(live.with_name("old.log"))
        assert list(follower) == [b"one"]
        write(old, [b"one", b"late"])
        write(live, [b"two"])
        assert list(follower) == [b"late", b"two"]


def test_a_late_record_that_follows_a_long_run_of_zeros_is_returned_before_reopening(live):
    """The rest of the old file is searched in parts: the result of a step does not depend on that."""
    write(live, [b"one"])
    os.truncate(live, 64 << 20)
    with cordwood.follow(live, timeout=0, on_rotation="reopen") as follower:
        old = live.rename(live.with_name("old.log"))
        assert list(follower) == [b"one"]
        assert follower.waiting.reason == "idle"
        with old.open("r+b") as file:
            file.seek(63 << 20)
            file.write(encode([b"late"]))
        write(live, [b"two"])
        assert list(follower) == [b"late", b"two"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such timers here")
def test_ctrl_c_interrupts_searching_through_a_replaced_file(live):
    write(live, [b"one"])
    # The search takes minutes, the file hardly any space.
    os.truncate(live, 8 << 40)
    with cordwood.follow(live, timeout=0, on_rotation="raise") as follower:
        assert list(follower) == [b"one"]
        rename(live)
        with after_work(0.1, raise_interrupt), pytest.raises(Interrupt):
            next(follower)


def test_reopening_reads_the_new_file_from_its_start_with_the_same_options(live, caplog, monkeypatch, tmp_path):
    write(live, [b"one", b"two"])
    monkeypatch.chdir(live.parent)
    with cordwood.follow(live.name, timeout=0, start=10, on_corruption="skip", on_rotation="reopen") as follower:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert list(follower) == [b"two"]
        with live.open("ab") as file:
            file.write(b"torn")
        rename(live)
        damaged = bytearray(encode([bytes(40_000), b"after"]))
        damaged[100] ^= 1
        live.write_bytes(damaged)
        assert list(follower) == [b"after"]
        assert [region.offset for region in follower.skipped] == [0, 32_768]
        rename(live)
        write(live, [b"three"])
        assert list(follower) == [b"three"]
        assert follower.skipped == ()
        assert follower.skipped_len == 0
    assert caplog.messages[0] == (
        f"{live.name}: rotated: the old file ends with 4 bytes at offset 20 that are not a whole record"
    )
    assert all("skipped" in message for message in caplog.messages[1:])


def test_reopening_raises_an_error_if_the_file_was_replaced_by_a_directory(live):
    write(live, [b"one"])
    with cordwood.follow(live, timeout=0, on_rotation="reopen") as follower:
        rename(live)
        live.mkdir()
        assert next(follower) == b"one"
        for _ in range(2):
            with pytest.raises(IsADirectoryError):
                next(follower)
        live.rmdir()
        write(live, [b"two"])
        assert list(follower) == [b"two"]


@pytest.mark.parametrize(("tail", "kind"), [(b"", "clean"), (b"torn", "torn_tail")])
def test_the_stop_policy_ends_iteration_at_a_rotation(live, tail, kind, caplog):
    write(live, [b"one", b"two"])
    follower = cordwood.follow(live, on_rotation="stop", timeout=HANG)
    assert next(follower) == b"one"
    with live.open("ab") as file:
        file.write(tail)
    rename(live)
    write(live, [b"three"])
    assert list(follower) == [b"two"]
    for _ in range(2):
        assert follower.outcome == cordwood.types.Outcome(kind=kind, offset=20)
        assert (list(follower), follower.poll(), follower.waiting, follower.tell()) == ([], None, None, 20)
        assert len(caplog.messages) == bool(tail)

    async def collect():
        return [record async for record in follower]

    assert asyncio.run(collect()) == []
    follower.close()
    assert follower.outcome.kind == kind


@pytest.mark.parametrize("on_rotation", ["reopen", "stop"])
def test_truncation_raises_an_error_regardless_of_the_rotation_policy(live, on_rotation):
    write(live, [b"one", b"two"])
    with cordwood.follow(live, timeout=0, on_rotation=on_rotation) as follower:
        assert list(follower) == [b"one", b"two"]
        os.truncate(live, 5)
        with pytest.raises(cordwood.LogTruncatedError):
            next(follower)


def test_reopening_after_rotation_waits_for_the_next_file(live):
    """Each file is renamed only after its record was read: of two renames in one poll the follower sees one."""
    write(live, [b"one"])
    was_read = threading.Semaphore(0)

    def rotate():
        for number in range(5):
            was_read.acquire()
            rename(live)
            time.sleep(0.05)
            write(live, [b"%d" % number])

    with cordwood.follow(live, timeout=HANG, on_rotation="reopen", poll_interval=0.005) as follower:
        thread = threading.Thread(target=rotate)
        thread.start()
        for expected in [b"one", b"0", b"1", b"2", b"3", b"4"]:
            assert next(follower) == expected
            was_read.release()
        thread.join()

    async def collect():
        with cordwood.follow(live, timeout=HANG, on_rotation="reopen", poll_interval=0.005) as follower:
            records = aiter(follower)
            first = await anext(records)
            rename(live)
            write(live, [b"last"])
            return first, await anext(records)

    assert asyncio.run(collect()) == (b"4", b"last")


def test_an_unknown_rotation_policy_is_rejected(live):
    write(live, [b"one"])
    with pytest.raises(ValueError, match="on_rotation must be 'raise', 'reopen' or 'stop', not 'none'"):
        cordwood.follow(live, on_rotation="none")
    with pytest.raises(TypeError, match="while processing 'on_rotation'"):
        cordwood.follow(live, on_rotation=3)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="a signal cannot be sent to a thread here")
def test_ctrl_c_interrupts_a_waiting_follower_shared_with_other_threads(live):
    follower = cordwood.follow(live, poll_interval=2 * HANG)
    looks = []

    def has_waited():
        # Other threads run, and use the follower, while it waits.
        looks.append(follower.tell())
        return follower.waiting is not None and len(looks) > 10

    with interrupting(has_waited), pytest.raises(Interrupt):
        next(follower)
    assert set(looks) == {0}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are missing here")
@pytest.mark.parametrize("take", [iter, cordwood.Follower.records])
def test_ctrl_c_interrupts_a_follower_with_a_backlog(live, take):
    """No code of Python runs between the records."""
    write_long_log(live)
    with cordwood.follow(live, timeout=0) as follower:
        with after_work(0.05, raise_interrupt), pytest.raises(Interrupt):
            collections.deque(take(follower), 0)
        assert 0 < follower.tell() < live.stat().st_size
        assert next(follower) == b""


def close_once_it_waits(follower):
    """Closes a follower in another thread, once the caller waits for its next record."""

    def close():
        while follower.waiting is None:
            time.sleep(0.01)
        follower.close()

    threading.Thread(target=close).start()


@pytest.mark.parametrize("timeout", [None, 2 * HANG])
def test_closing_ends_a_wait_long_before_the_next_poll(live, timeout):
    follower = cordwood.follow(live, poll_interval=2 * HANG, timeout=timeout)
    close_once_it_waits(follower)
    with pytest.raises(cordwood.ClosedError):
        next(follower)
    follower.close()
    with pytest.raises(ValueError, match="the follower is closed"):
        follower.tell()
    follower = cordwood.follow(live, poll_interval=2 * HANG, timeout=timeout)
    close_once_it_waits(follower)

    async def read():
        return [record async for record in follower]

    with pytest.raises(cordwood.ClosedError):
        asyncio.run(read())


def test_leaving_an_async_with_block_closes_the_follower(live):
    live.write_bytes(encode([b"one", b"two"]))

    async def read(follower):
        async with follower as entered:
            assert entered is follower
            found = [record async for record in follower]
            assert not follower.closed
        assert follower.closed
        return found

    assert asyncio.run(read(cordwood.follow(live, timeout=0))) == [b"one", b"two"]

    async def fail(follower):
        async with follower:
            raise ZeroDivisionError

    follower = cordwood.follow(live)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(fail(follower))
    assert follower.closed
    with pytest.raises(cordwood.ClosedError):
        asyncio.run(read(follower))


def test_the_outcome_is_still_available_after_closing_the_follower(live):
    log = bytearray(encode([b"one", b"two"]))
    log[8] ^= 1
    live.write_bytes(log + encode([b"three"] * 8_000)[:40_000])
    with cordwood.follow(live, timeout=0, on_corruption="stop", retry_time=0) as follower:
        assert list(follower) == []
        before = (follower.outcome, follower.skipped, follower.skipped_len)
        assert (before[0].kind, before[0].offset, len(before[1])) == ("stopped", 0, 1)
    assert (follower.outcome, follower.skipped, follower.skipped_len) == before
    idle = cordwood.follow(live, on_corruption="skip")
    idle.close()
    assert (idle.outcome.kind, idle.outcome.offset) == ("unfinished", 0)


def test_a_cancelled_task_does_not_lose_records(live):
    records = [b"%d" % number for number in range(200)]
    rng = random.Random(1)

    async def read():
        follower = cordwood.follow(live, poll_interval=0.001)
        reader = aiter(follower)
        found = []
        with cordwood.open(live, "w") as writer:
            for record in records:
                writer.append(record)
                if rng.random() < 0.5:
                    writer.flush()
                try:
                    async with asyncio.timeout(rng.choice([0, 0.0005, 0.002])):
                        found.append(await anext(reader))
                except TimeoutError:
                    pass
        follower_rest = cordwood.follow(live, start=follower.tell(), timeout=0)
        return found + [record async for record in follower_rest]

    assert asyncio.run(read()) == records


def test_cancelling_a_task_at_any_step_does_not_lose_records(live):
    records = [b"%d" % number for number in range(40)]
    write(live, records)

    async def read():
        reader = aiter(cordwood.follow(live))
        found = []
        for number in range(100):
            task = asyncio.create_task(anext(reader))
            for _ in range(number % 5):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                found.append(task.result())
        return found

    assert asyncio.run(read()) == records


def test_the_event_loop_keeps_running_during_a_backlog(live):
    write(live, [b"x"] * 20_000)

    async def read():
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(count())
        records = [record async for record in cordwood.follow(live, timeout=0)]
        task.cancel()
        return records, turns

    records, turns = asyncio.run(read())
    assert len(records) == 20_000
    assert turns > 1_000


def test_the_event_loop_keeps_running_with_a_poll_interval_of_zero(live):
    async def read():
        follower = cordwood.follow(live, poll_interval=0)

        async def close():
            for _ in range(100):
                await asyncio.sleep(0)
            follower.close()

        task = asyncio.create_task(close())
        with pytest.raises(cordwood.ClosedError):
            await anext(aiter(follower))
        await task

    asyncio.run(read())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"poll_interval": -1}, "poll_interval must be a number of seconds"),
        ({"timeout": float("nan")}, "timeout must be a number of seconds"),
        ({"retry_time": -0.5}, "retry_time must be a number of seconds"),
        ({"on_corruption": "hope"}, "on_corruption must be"),
    ],
)
def test_a_follower_rejects_invalid_options(live, options, error):
    with pytest.raises(ValueError, match=error):
        cordwood.follow(live, **options)


def test_directories_devices_and_missing_files_cannot_be_followed(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        cordwood.follow(tmp_path / "none")
    assert caught.value.filename == str(tmp_path / "none")
    with pytest.raises(OSError, match="directory"):
        cordwood.follow(tmp_path)
    with pytest.raises(OSError, match="only a regular file"):
        cordwood.follow("/dev/null")
    with pytest.raises(TypeError, match=r"path must be str or os\.PathLike, not bytes"):
        cordwood.follow(b"content")


def test_a_follower_accepts_an_infinite_timeout(live):
    write(live, [b"one"])
    follower = cordwood.follow(live, timeout=float("inf"), poll_interval=float("inf"))
    assert next(follower) == b"one"
    assert (follower.timeout, follower.delay) == (float("inf"), float("inf"))


def test_a_relative_path_still_works_after_a_directory_change(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with cordwood.open("live.log", "w") as writer, cordwood.follow("live.log", timeout=0) as follower:
        writer.append(b"one")
        writer.flush()
        assert list(follower) == [b"one"]
        monkeypatch.chdir("elsewhere")
        writer.append(b"two")
        writer.flush()
        assert list(follower) == [b"two"]
        assert follower.path == "live.log"
        # A file of that name in the other directory is a different one; here it is rotation, as always.
        Path("live.log").write_bytes(b"")
        assert list(follower) == []
        (tmp_path / "live.log").rename(tmp_path / "old.log")
        with pytest.raises(cordwood.LogRotatedError):
            next(follower)


TABLE_FOOTER = b"\x57\xfb\x80\x8b\x24\x75\x47\xdb"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (b"\x1f\x8b\x08" + bytes(20), "gzip"),
        (b"SQLite format 3\0" + bytes(84), "SQLite"),
        (b"PAR1\x15\x04\x15\x10" + bytes(40), "Parquet"),
        (b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(40), "ZIP"),
        (b"2026/01/31-23:59:59.999999 7f00 Recovering log #3\n", "info log"),
        # Recognised by its end: LevelDB writes such a file at once.
        (b"\xaa" * 100 + TABLE_FOOTER, "LevelDB table"),
    ],
)
def test_following_a_file_with_a_known_signature_is_rejected(tmp_path, file, name):
    path = tmp_path / "file"
    path.write_bytes(file)
    with cordwood.follow(path, timeout=0) as follower:
        for _ in range(2):
            with pytest.raises(cordwood.DialectError, match=f"not a log, but .*{name}") as caught:
                next(follower)
            assert (caught.value.path, caught.value.format) == (str(path), name)


@pytest.mark.parametrize(
    "file", [b"plain text, no log\n", b'{"key": 1}\n' * 5_000, b"\x01\xff\x02\xfe\x03\xfd\x4d\x05\x06"]
)
def test_a_file_without_a_signature_can_still_become_a_log(tmp_path, file):
    """A log's first record may appear as soon as a writer continues the file or starts it over."""
    path = tmp_path / "file"
    path.write_bytes(file)
    assert list(cordwood.follow(path, timeout=0, on_corruption="skip")) == []
    with pytest.raises(cordwood.DialectError):
        cordwood.verify(path)
    # The original contents are damage in the first blocks, and the log starts after them.
    start = -(-len(file) // BLOCK_LEN) * BLOCK_LEN
    follower = cordwood.follow(path, timeout=0, on_corruption="skip")
    assert list(follower) == []
    path.write_bytes(file.ljust(start, b"\0") + fragment(FULL, b"one"))
    assert list(follower) == [b"one"]
