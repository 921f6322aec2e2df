"""Record batches that threads read ahead: the results, and their order, do not depend on the number of threads.

Each thread reads parts of at least 1 MiB, and threads are used only if there are at least two parts for each of them,
so the files here are long.
"""

import collections
import contextlib
import errno
import gc
import hashlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from interrupts import Interrupt, after_work, raise_interrupt
from reference import BLOCK_LEN, FIRST, FULL, fragment
from support import PAYLOAD

import cordwood

PART_LEN = 1 << 20
FILE_LEN = 17 * PART_LEN
TIMEOUT = 120  # seconds
DIALECTS = ["leveldb", "wandb", "wandb_old", "swanlab"]


def records(seed):
    """Records of all lengths, some longer than a part; the same seed makes the same records."""
    random_ = random.Random(seed)
    total = 0
    while total < FILE_LEN:
        longest = random_.choice([10, 300, 300, 300, 5_000, 5_000, 120_000, 3_000_000 if random_.random() < 0.1 else 9])
        for _ in range(20 if longest < 1_000 else 2):
            start = random_.randrange(1_000)
            record = PAYLOAD[start : start + random_.randrange(longest)] * (1 if longest < 1_000_000 else 3)
            total += len(record) + 7
            yield record


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A log of each dialect that can be split: its bytes, and the offsets of its records."""
    directory = tmp_path_factory.mktemp("logs")
    made = {}
    for seed, dialect in enumerate(DIALECTS):
        path = directory / dialect
        with cordwood.open(path, "x", dialect=dialect, flush="close") as writer:
            offsets = [writer.append(record) for record in records(seed)]
        made[dialect] = path.read_bytes(), offsets
    return made


@pytest.fixture(scope="module")
def path(logs, tmp_path_factory):
    file = tmp_path_factory.mktemp("log") / "example.log"
    file.write_bytes(logs["leveldb"][0])
    return file


def damaged(file, random_):
    """`file` with damage of many kinds, much of it at the edges of parts."""
    file = bytearray(file)
    for _ in range(random_.choice([0, 1, 5, 100])):
        at = random_.choice(
            [random_.randrange(len(file)), random_.randrange(1, 16) * PART_LEN + random_.randint(-20, 20)]
        )
        match random_.randrange(5):
            case 0 | 1:
                file[at] ^= 1 << random_.randrange(8)
            case 2:
                file[at : at + 100] = bytes(len(file[at : at + 100]))
            case 3:
                file[at : at + 50_000] = PAYLOAD[: len(file[at : at + 50_000])]
            case 4 if random_.random() < 0.1:
                file[at : at + 3 * PART_LEN] = bytes(len(file[at : at + 3 * PART_LEN]))
    if random_.random() < 0.5:
        del file[
            random_.choice([random_.randrange(len(file) // 2, len(file)), 16 * PART_LEN + random_.randint(-9, 9)]) :
        ]
    return bytes(file)


def everything(source, threads, **options):
    """Everything that reading reports: where each record is, its bytes, skipped regions, errors, and the end."""
    offsets, lens, data, raised = [], [], hashlib.blake2b(), []
    with cordwood.open(source, **options) as reader:
        batches = reader.record_batches(threads=threads, target_len=300_000)
        while True:
            try:
                batch = next(batches, None)
            except cordwood.CorruptionError as error:
                raised.append((error.offset, error.length, error.reason, reader.tell()))
                continue
            if batch is None:
                break
            offsets += batch.record_offsets.tolist()
            ends = batch.offsets.tolist()
            lens += [end - start for start, end in itertools.pairwise(ends)]
            data.update(batch.data)
        return offsets, lens, data.digest(), raised, reader.skipped, reader.outcome, reader.tell()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_records_and_damage_do_not_depend_on_the_number_of_threads(logs, dialect, seed):
    file, offsets = logs[dialect]
    random_ = random.Random(f"{dialect} {seed}")
    options = {
        "dialect": dialect,
        "on_corruption": ["raise", "skip", "salvage", "stop"][seed % 4],
        "start": random_.choice(
            [0, 0, random_.choice(offsets[: len(offsets) // 10]), random_.randrange(FILE_LEN // 10)]
        ),
        "end": random_.choice([None, None, len(file) - random_.randrange(PART_LEN)]),
    }
    file = damaged(file, random_) if seed else file
    expected = everything(file, 1, **options)
    assert expected[0] or options["on_corruption"] == "stop"
    for threads in (2, 3, 8):
        assert everything(file, threads, **options) == expected, threads


@pytest.mark.parametrize("rest", ["", "torn", "clean"])
def test_reading_ahead_continues_after_an_oversized_record(rest):
    """Its fragment fills its block except for a byte; for any number of threads, the region ends before that byte."""
    block = b"".join(fragment(FULL, PAYLOAD[:length]) for length in (16_000, 16_000, 747))
    file = block * 300 + fragment(FIRST, bytes(32_760)) + b"x"
    file += {"": b"", "torn": fragment(FULL, PAYLOAD[:100])[:50], "clean": fragment(FULL, PAYLOAD[:100])}[rest]
    options = {"dialect": "leveldb", "record_len_max": 32_000, "on_corruption": "skip"}
    expected = everything(file, 1, **options)
    first = expected[4][0]
    assert (first.offset, first.end_offset, first.reason) == (
        300 * BLOCK_LEN,
        301 * BLOCK_LEN - 1,
        "record_too_large",
    )
    for threads in (2, 3):
        assert everything(file, threads, **options) == expected


def test_threads_return_exactly_the_records_that_were_written(logs):
    file, offsets = logs["leveldb"]
    with cordwood.open(file) as reader:
        found = [record for batch in reader.record_batches(threads=3) for record in batch]
    assert found == list(records(0))
    assert everything(file, 2)[0] == offsets


def running():
    """The number of threads of this process that cordwood has started."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # The thread has ended meanwhile.
            names.append((task / "comm").read_text().strip())
    return names.count("cordwood")


def comes_to(count):
    """Waits until `running()` is `count`: a thread is named, and leaves /proc, with a short delay."""
    deadline = time.monotonic() + TIMEOUT
    while running() != count and time.monotonic() < deadline:
        time.sleep(0.001)
    return running() == count


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads in /proc")


@needs_proc
@pytest.mark.parametrize(
    "end", ["close", "drop the iterator", "drop both", "another iterator", "read on in another way"]
)
def test_closing_or_dropping_a_reader_stops_its_threads(path, end):
    reader = cordwood.open(path)
    batches = reader.record_batches(threads=3)
    next(batches)
    assert comes_to(3)
    match end:
        case "close":
            reader.close()
            with pytest.raises(cordwood.ClosedError):
                next(batches)
        case "drop the iterator":
            del batches
        case "drop both":
            del reader, batches
        case "another iterator":
            others = reader.record_batches(threads=2)
            next(others)
            assert comes_to(2)
            del others
        case "read on in another way":
            next(reader)
            assert next(batches)
            assert comes_to(3)
            del batches
    gc.collect()
    assert comes_to(0)


@needs_proc
def test_threads_stop_after_the_last_batch_is_returned(path):
    with cordwood.open(path) as reader:
        for _ in reader.record_batches(threads=3):
            pass
        assert comes_to(0)


@pytest.mark.parametrize("kept", ["batches", "reader, batches"])
@pytest.mark.parametrize("source", ["bytes", "buffer", "mmap", "path"])
def test_program_exits_cleanly_while_threads_are_reading_ahead(path, source, kept):
    """Global variables are destroyed when no thread can get the interpreter any more, even to read from a buffer."""
    program = f"""
import mmap, sys, cordwood
path, file = sys.argv[1], open(sys.argv[1], "rb")
match {source!r}:
    case "bytes": source = file.read()
    case "buffer": source = bytearray(file.read())
    case "mmap": source = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    case "path": source = path
file.close()
def start():
    reader = cordwood.open(source)
    batches = reader.record_batches(threads=3, target_len=1 << 16)
    next(batches)
    return {kept}
kept = start()
"""
    for _ in range(3):
        command = [sys.executable, "-c", program, path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@needs_proc
def test_a_reader_in_a_reference_cycle_with_its_source_is_garbage_collected(logs):
    class Bytes(bytearray):
        pass

    source = Bytes(logs["leveldb"][0])
    batches = cordwood.Reader(source).record_batches(threads=2)
    next(batches)
    source.batches = batches
    del source, batches
    gc.collect()
    assert comes_to(0)


def test_read_ahead_can_be_interleaved_with_other_reads(logs):
    """Each continues where the last one stopped."""
    file, _ = logs["leveldb"]
    expected = list(records(0))
    found = []
    with cordwood.open(file) as reader:
        batches, others = reader.record_batches(threads=2), reader.record_batches(threads=3)
        while True:
            batch = next(batches, None)
            if batch is None:
                break
            found += batch
            found += next(reader.record_batches(), [])
            found += next(others, [])
            found += (record.data for record in itertools.islice(reader.records(), 10))
            record = next(reader, None)
            if record is not None:
                found.append(record)
    assert found == expected[: len(found)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_parent_and_child_read_independently_after_a_fork(path):
    """The child does not inherit the threads: it starts its own, and the parent's continue."""
    program = """
import os, sys, cordwood
def rest(batches): return sum(len(batch) for batch in batches)
with cordwood.open(sys.argv[1]) as reader:
    batches = reader.record_batches(threads=3)
    for _ in range(5): next(batches)
    child = os.fork()
    count = rest(batches)
    if child == 0:
        reader.close()
        print(count, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(count)
"""
    command = [sys.executable, "-c", program, path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.stderr == ""
    child, parent = done.stdout.split()
    with cordwood.open(path) as reader:
        count = sum(1 for _ in reader)
    assert child == parent
    assert 0 < int(parent) < count


@pytest.mark.parametrize("threads", [1, 2])
def test_truncating_a_file_while_it_is_read_raises_an_error(path, tmp_path, threads):
    """The rest of it is returned first. The error is raised again, not taken for the end."""
    copy = tmp_path / "copy.log"
    copy.write_bytes(path.read_bytes())
    cut = 9 * PART_LEN + 12_345
    with cordwood.open(copy) as reader:
        batches = reader.record_batches(threads=threads)
        found = list(next(batches))
        os.truncate(copy, cut)
        for _ in range(2):
            with pytest.raises(OSError, match="the file was cut while it was read: ") as caught:
                found.extend(record for batch in batches for record in batch)
            assert f"it had {path.stat().st_size} bytes, and now has none after offset {cut}" in str(caught.value)
            error = caught.value
            assert (error.errno, error.filename, error.hint) == (errno.EIO, str(copy), "reopen")
        assert reader.outcome.kind == "unfinished"
    assert found == list(cordwood.open(copy))


def test_reads_a_growing_file_to_its_new_end(path, tmp_path):
    copy = tmp_path / "copy.log"
    copy.write_bytes(path.read_bytes())
    with cordwood.open(copy) as reader:
        batches = reader.record_batches(threads=2)
        found = list(next(batches))
        with cordwood.open(copy, "a") as writer:
            writer.extend([PAYLOAD[:10_000]] * 1_000)
        for batch in batches:
            found += batch
        assert reader.outcome.kind == "clean"
    assert found == list(cordwood.open(copy))


def test_replacing_a_file_does_not_affect_an_open_reader(path, tmp_path):
    copy = tmp_path / "copy.log"
    copy.write_bytes(path.read_bytes())
    with cordwood.open(copy) as reader:
        batches = reader.record_batches(threads=2)
        found = list(next(batches))
        other = tmp_path / "other.log"
        with cordwood.open(other, "x") as writer:
            writer.append(b"other")
        other.replace(copy)
        for batch in batches:
            found += batch
    assert found == list(records(0))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are missing here")
def test_ctrl_c_interrupts_reading_with_threads(tmp_path):
    """The zeros of a sparse file keep the threads busy for minutes."""
    hole = tmp_path / "hole.log"
    with cordwood.open(hole, "x") as writer:
        writer.append(PAYLOAD)
    os.truncate(hole, 8 << 40)
    with cordwood.open(hole, on_corruption="skip") as reader:
        batches = reader.record_batches(threads=2)
        with after_work(0.3, raise_interrupt), pytest.raises(Interrupt):
            collections.deque(batches, 0)
