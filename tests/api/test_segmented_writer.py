"""`open(directory, "a", segment_len=...)`: a segmented log, as its files show it to the reference."""

import errno
import io
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import reference
from failing_calls import CAN_FAIL, failing
from process import bytes_read

import cordwood

NUMBERS = [b"%03d" % number for number in range(100)]
"""Ten of them, with their headers, fill a segment of 100 bytes."""


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "orders"


def opened(directory, **options):
    return cordwood.open(directory, "a", **{"segment_len": 100} | options)


def files(directory):
    """The content of each segment, by the log offset in its name."""
    return {int(path.name[:-4]): path.read_bytes() for path in sorted(directory.glob("*.log"))}


def records(directory):
    """All records, each with its log offset. Each segment must end where the next one starts."""
    found, end = [], None
    for base, data in files(directory).items():
        assert end in {None, base}
        for item in reference.events(data):
            assert isinstance(item, reference.Record | reference.End), item
            if isinstance(item, reference.Record):
                found.append((base + item.offset, item.data))
        end = base + len(data)
    return found


def test_a_segment_is_named_after_the_offset_of_its_first_byte(directory):
    with opened(directory) as writer:
        assert [writer.append(record) for record in NUMBERS[:12]] == list(range(0, 120, 10))
        assert writer.extend(NUMBERS[12:35]) == 23
        assert (writer.tell(), writer.first_offset, writer.path) == (350, 0, str(directory))
    assert sorted(path.name for path in directory.iterdir()) == [
        *(f"{base:020}.log" for base in (0, 100, 200, 300)),
        "LOCK",
    ]
    assert files(directory)[200] == reference.encode(NUMBERS[20:30])
    assert records(directory) == [(10 * number, record) for number, record in enumerate(NUMBERS[:35])]
    with opened(directory) as writer:
        assert (writer.durable_offset, writer.append(NUMBERS[35])) == (300, 350)


def test_rotating_starts_a_segment_and_pruning_removes_old_segments(directory):
    with opened(directory) as writer:
        assert writer.rotate() == 0
        writer.extend(NUMBERS[:35])
        assert writer.rotate() == writer.rotate() == 350
        assert writer.prune_before(299) == writer.first_offset == 200
        assert list(files(directory)) == [200, 300, 350]
        assert writer.prune_before(1 << 40) == 350
        assert writer.prune_before(0) == 350
        assert writer.append(b"035") == 350
        with pytest.raises(OverflowError):
            writer.prune_before(-1)
    assert writer.first_offset == 350
    for call in (writer.rotate, lambda: writer.prune_before(0), writer.tell):
        with pytest.raises(cordwood.ClosedError):
            call()


def test_rotate_and_prune_require_a_segmented_log(tmp_path):
    with cordwood.open(tmp_path / "log", "w") as of_file, cordwood.open(io.BytesIO(), "w") as of_object:
        for writer in (of_file, of_object):
            assert writer.first_offset == 0
            for call in (writer.rotate, lambda writer=writer: writer.prune_before(0)):
                with pytest.raises(io.UnsupportedOperation, match="only a segmented log"):
                    call()


@pytest.mark.parametrize(
    "options", [{"flush": "close"}, {"sync": "append"}, {"sync_interval": 0}, {"dialect": "packed"}]
)
def test_a_segmented_log_accepts_other_writer_options(directory, options):
    with opened(directory, **options) as writer:
        for record in NUMBERS[:50]:
            writer.append(record)
        writer.extend(NUMBERS[50:])
        if "sync" in options:
            assert writer.durable_offset == writer.tell()
    if "dialect" in options:
        found = [record for path in sorted(directory.glob("*.log")) for record in cordwood.open(path)]
        assert found == NUMBERS
        with opened(directory) as writer:
            assert writer.dialect == "packed"
    else:
        assert [record for _, record in records(directory)] == NUMBERS
    assert len(files(directory)) > 5
    assert all(len(data) <= 100 for data in files(directory).values())


def test_invalid_option_values_are_rejected_before_a_file_is_created(directory, tmp_path):
    for mode in ("w", "x"):
        with pytest.raises(ValueError, match="segment_len is for mode 'a'"):
            cordwood.open(directory, mode, segment_len=100)
    with pytest.raises(ValueError, match="segment_len must be at least 1"):
        opened(directory, segment_len=0)
    with pytest.raises(OverflowError):
        opened(directory, segment_len=-1)
    with pytest.raises(ValueError, match="wandb logs are not written in segments"):
        opened(directory, dialect="wandb")
    with pytest.raises(TypeError, match="segment_len is an option for writing"):
        cordwood.open(directory, segment_len=100)
    with pytest.raises(FileNotFoundError):
        opened(directory, checkpoint=10)
    assert not directory.exists()
    opened(directory).close()
    for write in (cordwood.open, cordwood.Writer):
        with pytest.raises(IsADirectoryError) as caught:
            write(directory, "a")
        assert caught.value.hint == cordwood.types.Hint.SEGMENT_LEN
    database = tmp_path / "database"
    database.mkdir()
    (database / "000003.log").touch()
    with pytest.raises(cordwood.DialectError) as caught:
        opened(database)
    assert caught.value.path == str(database / "000003.log")
    assert not (database / "LOCK").exists()


def test_error_offsets_are_relative_to_the_whole_log(directory):
    with opened(directory) as writer:
        writer.extend(NUMBERS[:13])
    last = directory / f"{100:020}.log"
    os.truncate(last, 27)
    with pytest.raises(cordwood.TornTailError) as caught:
        opened(directory)
    assert (caught.value.path, caught.value.offset, caught.value.length) == (str(directory), 120, 7)
    with opened(directory, on_torn_tail="truncate") as writer:
        assert (writer.discarded_tail.offset, writer.discarded_tail.end_offset) == (120, 127)
        assert writer.append(b"012") == 120
        writer.wait_durable(130)
        assert writer.durable_offset == 130
        with pytest.raises(OSError, match="after the end of the log") as caught:
            writer.wait_durable(131)
        assert caught.value.errno in {errno.EINVAL, None}
    os.truncate(directory / f"{0:020}.log", 95)
    for policy in ("refuse", "truncate", "pad"):
        with pytest.raises(cordwood.CorruptionError) as caught:
            opened(directory, on_torn_tail=policy)
        error = caught.value
        assert (error.offset, error.length, error.reason, error.hint) == (95, 5, "missing_segment", "salvage")


def test_checkpoint_offsets_are_relative_to_the_whole_log(directory):
    with opened(directory) as writer:
        writer.extend(NUMBERS[:25])
    for checkpoint in (0, 70, 200, 240, 250):
        with opened(directory, checkpoint=checkpoint) as writer:
            assert writer.tell() == 250
    for checkpoint in (245, 251):
        with pytest.raises(OSError, match="no record starts or ends"):
            opened(directory, checkpoint=checkpoint)


def test_a_second_writer_is_rejected(directory):
    with opened(directory) as writer:
        writer.extend(NUMBERS[:15])
        with pytest.raises(BlockingIOError) as caught:
            opened(directory)
        assert caught.value.filename == str(directory)
        with pytest.raises(BlockingIOError):
            cordwood.open(directory / f"{100:020}.log", "a")
    opened(directory).close()


def test_competing_processes_take_turns_writing_a_log(directory):
    code = """if True:
        import os, sys, cordwood
        directory, process = sys.argv[1:]
        done = 0
        while done < 20:
            try:
                writer = cordwood.open(directory, "a", segment_len=100, on_torn_tail="refuse")
            except BlockingIOError:
                continue
            held = os.open(directory + ".held", os.O_CREAT | os.O_EXCL)
            for number in range(7):
                writer.append(f"{process} {done} {number}".encode())
            os.close(held)
            os.unlink(directory + ".held")
            writer.close()
            done += 1
    """
    processes = [subprocess.Popen([sys.executable, "-c", code, directory, str(process)]) for process in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    written = [record.decode().split() for _, record in records(directory)]
    turns = [tuple(turn) for *turn, number in written if number == "0"]
    assert sorted(turns) == sorted((str(process), str(done)) for process in range(3) for done in range(20))
    assert written == [[*turn, str(number)] for turn in turns for number in range(7)]


def test_threads_can_share_a_log_while_it_is_rotated_and_pruned(directory):
    acknowledged = []
    with opened(directory, segment_len=1000) as writer:

        def append(thread):
            for number in range(100):
                record = b"%d %d" % (thread, number)
                acknowledged.append((writer.append(record, sync=True), record))

        threads = [threading.Thread(target=append, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        are_running = True
        while are_running:  # The last round is after the end of all threads, however fast they are.
            are_running = any(thread.is_alive() for thread in threads)
            writer.rotate()
            writer.prune_before(writer.tell() // 2)
        for thread in threads:
            thread.join()
        first = writer.first_offset
        assert first > 0
    assert records(directory) == sorted(item for item in acknowledged if item[0] >= first)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_does_not_change_any_file(directory):
    code = """if True:
        import os, sys, cordwood
        writer = cordwood.open(sys.argv[1], "a", segment_len=100, flush="close")
        writer.extend([b"one", b"two"])
        if not os.fork():
            for call in (lambda: writer.append(b"x"), writer.rotate, writer.sync, lambda: writer.prune_before(0)):
                try:
                    call()
                except OSError as error:
                    assert error.hint == "reopen"
                else:
                    os._exit(1)
            writer.close()
            os._exit(7)
        status = os.waitstatus_to_exitcode(os.wait()[1])
        writer.close()
        os._exit(status)
    """
    assert subprocess.run([sys.executable, "-c", code, directory], check=False).returncode == 7
    assert [record for _, record in records(directory)] == [b"one", b"two"]


def test_a_segmented_writer_cannot_be_pickled(directory):
    writer = opened(directory, flush="close")
    writer.append(b"one")
    with pytest.raises(TypeError):
        pickle.dumps(writer)
    with pytest.warns(ResourceWarning, match="orders"):
        del writer
    assert records(directory) == [(0, b"one")]
    opened(directory).close()


def test_opening_a_segmented_log_reads_at_most_its_last_segment(directory):
    segment_len = 1 << 20
    directory.mkdir()
    for index in range(256):
        with Path(directory, f"{index * segment_len:020}.log").open("wb") as file:
            file.truncate(segment_len)
    last = reference.encode([bytes(1000)] * 1000)
    Path(directory, f"{256 * segment_len:020}.log").write_bytes(last)
    before = bytes_read()
    with opened(directory, segment_len=segment_len) as writer:
        assert bytes_read() - before < len(last) + (256 << 10)
        assert writer.append(b"one") == 256 * segment_len + len(last)


@pytest.mark.skipif(not CAN_FAIL, reason="only on Linux, x86-64")
def test_opening_a_segmented_log_syncs_its_existing_directory(directory):
    directory.mkdir()
    with failing("fsync"), pytest.raises(OSError, match=os.strerror(errno.ENOTTY)) as caught:
        opened(directory)
    assert caught.value.filename == str(directory)
    assert list(directory.iterdir()) == []


def test_opens_a_log_if_the_first_sector_of_its_last_segment_is_lost(directory):
    synced = [b"synced %d" % number for number in range(100)]
    directory.mkdir()
    first = reference.encode(synced)
    (directory / f"{0:020}.log").write_bytes(first)
    lost = reference.encode([b"lost" * 75, b"also" * 75, b"more" * 75])
    (directory / f"{len(first):020}.log").write_bytes(bytes(512) + lost[512:])
    before = files(directory)
    # Whole records follow the zeros, so truncating would remove them.
    with pytest.raises(cordwood.CorruptionError, match="zeros") as refused:
        cordwood.open(directory, "a", segment_len=1 << 20, on_torn_tail="truncate")
    assert "on_torn_tail='pad'" in "".join(refused.value.__notes__)
    assert files(directory) == before
    with cordwood.open(directory, "a", segment_len=1 << 20, on_torn_tail="pad") as writer:
        writer.append(b"new")
    found = list(reference.events_of_segments(files(directory)))
    assert [event.data for event in found if isinstance(event, reference.Record)] == [*synced, b"new"]
