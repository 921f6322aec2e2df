"""`cordwood.index`: the records that iteration returns, in any order, from any thread and process."""

import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import real_files
import recycled_logs
import reference
from interrupts import Interrupt, after_work, raise_interrupt
from support import PAYLOAD

import cordwood

DESCRIPTORS = Path("/proc/self/fd")
POLICIES = ["raise", "skip", "stop", "salvage"]
FILES = sorted(path for path in real_files.VECTORS.rglob("*") if path.is_file() and path.suffix != ".md")
OTHERS = real_files.LOGS + real_files.MANIFESTS + real_files.PEBBLE + real_files.FIRESTORE


def numbered(count):
    """Records that are all different, some empty but for their number, some longer than a block."""
    return [
        b"%d " % number + bytes([number % 256]) * (number * 7919 % (70_000 if number % 211 == 0 else 90))
        for number in range(count)
    ]


def written(path, records, **options):
    with cordwood.open(path, "w", **options) as writer:
        writer.extend(records)
    return path


def check(index, expected):
    assert len(index) == len(expected)
    assert [index[at] for at in range(len(expected))] == expected
    assert [index[at] for at in range(-len(expected), 0)] == expected
    assert index[:] == expected
    assert index[5:-2:3] == expected[5:-2:3]
    assert index[::-7] == expected[::-7]
    order = random.Random(1).choices(range(-len(expected), len(expected)), k=2 * len(expected)) if expected else []
    assert index.read(order) == [expected[at] for at in order]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(real_files.VECTORS)))
def test_logs_written_by_engines_are_indexed(path, policy):
    check(cordwood.index(path, on_corruption=policy), list(cordwood.open(path, on_corruption=policy)))


@pytest.mark.parametrize("path", [param for param in OTHERS if param.marks])
def test_third_party_logs_are_indexed(path):
    check(cordwood.index(path), list(cordwood.open(path)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dialect": "wandb"},
        {"dialect": "swanlab"},
        {"dialect": "rocksdb", "log_number": 7},
        {"dialect": "rocksdb", "compression": "zstd"},
        {"dialect": "pebble", "log_number": 7},
        {"dialect": "packed"},
        {"dialect": "packed", "compression": "zstd"},
    ],
    ids=str,
)
def test_logs_of_each_dialect_are_indexed(tmp_path, options):
    records = numbered(700)
    path = written(tmp_path / "000007.log", records, **options)
    index = cordwood.index(path)
    check(index, records)
    check(pickle.loads(pickle.dumps(index)), records)  # noqa: S301 - our own bytes
    check(cordwood.index(path, **options), records)


def test_directories_patterns_and_lists_are_indexed_in_order(tmp_path):
    names = ["a.log", "b.log", "c.wandb"]
    parts = [written(tmp_path / name, numbered(50 + number)) for number, name in enumerate(names)]
    (tmp_path / "notes.txt").write_text("no log")
    expected = numbered(50) + numbered(51) + numbered(52)
    check(cordwood.index(tmp_path), expected)
    check(cordwood.index(tmp_path / "*.log"), numbered(50) + numbered(51))
    check(cordwood.index([parts[2], str(parts[0])]), numbered(52) + numbered(50))
    check(cordwood.index(iter(parts)), expected)
    check(cordwood.index([]), [])


def test_an_index_returns_the_log_and_offset_of_every_record(tmp_path):
    logs = [str(written(tmp_path / f"{number}.log", numbered(100 + number))) for number in range(2)]
    with cordwood.open(tmp_path / "segments", "a", segment_len=9_000) as log:
        log.extend(numbered(100))
    logs.append(str(tmp_path / "segments"))
    expected = [(log, record.offset) for log in logs for record in cordwood.open(log).records()]
    index = cordwood.index(logs)
    assert [index.place(at) for at in range(len(index))] == expected
    assert index.place(-1) == pickle.loads(pickle.dumps(index)).place(-1) == expected[-1]  # noqa: S301 - our own
    for at in (301, -302):
        with pytest.raises(IndexError):
            index.place(at)
    path, offset = index.place(150)
    assert next(iter(cordwood.open(path, start=offset))) == index[150]


def test_a_pickled_index_can_be_loaded_after_its_logs_are_removed(tmp_path):
    path = written(tmp_path / "a.log", numbered(300))
    saved = pickle.dumps(cordwood.index(path))
    path.rename(tmp_path / "b.log")
    index = pickle.loads(saved)  # noqa: S301 - our own bytes
    assert len(index) == 300
    with pytest.raises(FileNotFoundError):
        index[0]
    (tmp_path / "b.log").rename(path)
    check(index, numbered(300))


def test_an_index_treats_a_segmented_log_as_one_log(tmp_path):
    records = numbered(300)
    with cordwood.open(tmp_path, "a", segment_len=9_000) as log:
        for record in records:
            log.append(record)
    assert len(list(tmp_path.iterdir())) > 4
    index = cordwood.index(tmp_path)
    check(index, records)
    check(pickle.loads(pickle.dumps(index)), records)  # noqa: S301


@pytest.mark.parametrize("content", [b"", reference.encode([b"torn"])[:-1]])
def test_an_index_of_a_log_without_records_is_empty(tmp_path, content):
    path = tmp_path / "empty.log"
    path.write_bytes(content)
    index = cordwood.index(path)
    check(index, [])
    for at in (0, -1):
        with pytest.raises(IndexError):
            index[at]


@pytest.mark.parametrize("at", [3, -4, 1 << 63, -(1 << 63), 1 << 100])
def test_an_out_of_range_subscript_raises_an_index_error(tmp_path, at):
    index = cordwood.index(written(tmp_path / "a.log", [b"one", b"two", b"three"]))
    with pytest.raises(IndexError, match="is out of range: there are 3 records"):
        index[at]
    with pytest.raises(IndexError, match="is out of range: there are 3 records"):
        index.read([0, at])
    assert index[at:at] == []


def test_an_index_rejects_subscripts_that_are_not_integers(tmp_path):
    index = cordwood.index(written(tmp_path / "a.log", [b"one", b"two"]))
    for wrong in ("0", 0.0, None):
        with pytest.raises(TypeError):
            index[wrong]
        with pytest.raises(TypeError):
            index.read([wrong])
    with pytest.raises(TypeError):
        index.read(1)
    assert index[True] == b"two"
    assert list(index) == [b"one", b"two"]


@pytest.mark.cell("remote", "index")
def test_an_index_rejects_sources_that_are_not_files(tmp_path):
    path = written(tmp_path / "a.log", [b"one"])
    with pytest.raises(ValueError, match="an index reads files"):
        cordwood.index("memory://a.log")
    with path.open("rb") as file:
        for source in (b"bytes", file, None):
            with pytest.raises(TypeError):
                cordwood.index(source)
    with pytest.raises(TypeError, match="a Split is a part of a log"):
        cordwood.index(cordwood.plan_splits(path, 32_768))
    with pytest.raises(FileNotFoundError):
        cordwood.index(tmp_path / "missing.log")
    with pytest.raises(ValueError, match="on_corruption must be"):
        cordwood.index(path, on_corruption="ignore")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_an_index_rejects_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(b""))
    writer.start()
    with pytest.raises(OSError, match="only a regular file can be indexed"):
        cordwood.index(tmp_path / "pipe")
    writer.join()


def test_the_corruption_policy_applies_to_an_indexed_log(tmp_path):
    path = written(tmp_path / "a.log", numbered(2000))
    content = bytearray(path.read_bytes())
    content[40_000] ^= 1
    path.write_bytes(content)
    with pytest.raises(cordwood.CorruptionError):
        cordwood.index(path)
    for policy in POLICIES[1:]:
        check(cordwood.index(path, on_corruption=policy), list(cordwood.open(path, on_corruption=policy)))


def test_reading_an_indexed_record_that_was_damaged_later_raises_an_error(tmp_path):
    path = written(tmp_path / "a.log", [b"%05d" % number for number in range(100)])
    index, skipping = cordwood.index(path), cordwood.index(path, on_corruption="skip")
    with path.open("r+b") as file:
        file.seek(50 * 12 + 7)
        file.write(b"x")
    with pytest.raises(cordwood.CorruptionError) as corruption:
        index[50]
    assert (corruption.value.path, corruption.value.offset) == (str(path), 600)
    # Of the several records that are read at once for the index, this is the first.
    with path.open("r+b") as file:
        file.seek(7)
        file.write(b"x")
    with pytest.raises(cordwood.CorruptionError) as first:
        index[0]
    assert first.value.hint is corruption.value.hint is cordwood.types.Hint.ON_CORRUPTION
    with pytest.raises(cordwood.LogChangedError) as changed:
        skipping[60]
    assert changed.value.path == str(path)
    assert index[20] == skipping[20] == b"00020"


@pytest.mark.parametrize("cut", [1, 1 << 20])
def test_a_pickled_index_rejects_a_truncated_file(tmp_path, cut):
    path = written(tmp_path / "a.log", numbered(100))
    pickled = pickle.dumps(cordwood.index(path))
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    with pytest.raises(cordwood.LogChangedError) as changed:
        pickle.loads(pickled)[0]  # noqa: S301
    left = max(len(content) - cut, 0)
    assert (changed.value.path, changed.value.offset, changed.value.length) == (str(path), left, len(content) - left)
    path.write_bytes(content + b"x")
    assert pickle.loads(pickled)[:] == numbered(100)  # noqa: S301
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(pickled).read([0])  # noqa: S301


def test_a_pickled_index_uses_eight_bytes_per_16_records(tmp_path):
    path = written(tmp_path / "a.log", [b"x"] * 100_000)
    before, after = (len(pickle.dumps(cordwood.index(path))) for path in (written(tmp_path / "b.log", [b"x"]), path))
    assert after - before < 100_000 // 16 * 8 + 100
    tracemalloc.start()
    index = cordwood.index(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert len(index) == 100_000


def test_loading_an_invalid_pickle_raises_an_error(tmp_path):
    path = str(written(tmp_path / "a.log", numbered(100)))
    (logs, *options) = cordwood.index(path).__reduce__()[1]
    ((_, length, count, offsets, *none),) = logs
    assert none == [b"", b""]
    restored = cordwood.index(path).__reduce__()[0]
    for wrong in (b"", b"\xff" * len(offsets), offsets[-8:] * 4, offsets[:8] * 4):
        index = restored([(path, length, count, wrong, *none)], *options)
        for at in (0, 50, 99):
            with pytest.raises(cordwood.CordwoodError):
                index[at]
    with pytest.raises(ValueError, match="8 bytes"):
        restored([(path, length, count, b"1234567", *none)], *options)
    # Near damage, the offset of each record is its own.
    group = (3).to_bytes(8, "little")
    for wrong in (b"", offsets[:8] * 16, b"\xff" * 128):
        index = restored([(path, length, count, offsets, group, wrong)], *options)
        if wrong:
            with pytest.raises(cordwood.CordwoodError):
                index[50]
        assert index[0] == numbered(100)[0]
    with pytest.raises(OverflowError):
        restored([(path, length, 1 << 63, offsets, *none)], *options)
    with pytest.raises(OverflowError):
        restored([(path, length, (1 << 63) - 1, offsets, *none)] * 4, *options)


@pytest.mark.parametrize("options", [{}, {"dialect": "wandb"}, {"dialect": "packed", "compression": "zstd"}], ids=str)
def test_sixteen_threads_each_get_the_right_records(tmp_path, options):
    """With one reader for all, which they seek and then step, hundreds of these were other records."""
    records = numbered(3000)
    index = cordwood.index(written(tmp_path / "a.log", records, **options))
    start = threading.Barrier(16)

    def wrong(seed):
        places = random.Random(seed).choices(range(3000), k=200)
        start.wait(120)
        alone = sum(index[at] != records[at] for at in places)
        return alone + sum(map(bytes.__ne__, index.read(places), (records[at] for at in places)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    try:
        with ThreadPoolExecutor(16) as pool:
            assert sum(pool.map(wrong, range(16))) == 0
    finally:
        sys.setswitchinterval(interval)


def test_a_pickled_index_can_be_used_in_another_process(tmp_path):
    records = numbered(500)
    index = cordwood.index(written(tmp_path / "a.log", records))
    script = (
        "import pickle, sys; index = pickle.load(sys.stdin.buffer); sys.stdout.buffer.write(pickle.dumps(index[:]))"
    )
    done = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(index), capture_output=True, check=True)
    assert pickle.loads(done.stdout) == records  # noqa: S301


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_can_read_while_threads_in_its_parent_are_reading(tmp_path):
    """A thread may hold the list of open files at the moment of the fork; the child must not wait for it."""
    records = numbered(500)
    index = cordwood.index(written(tmp_path / "a.log", records))
    is_over = threading.Event()

    def read():
        while not is_over.is_set():
            index[17], index.read([4, 400])

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            if not (child := os.fork()):
                os._exit(0 if all(index[at] == records[at] for at in range(0, 500, 25)) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def test_a_closed_index_rejects_every_call(tmp_path):
    path = written(tmp_path / "a.log", [b"one", b"two"])
    with cordwood.index(path) as index:
        assert index[1] == b"two"
    index.close()
    assert repr(index) == f'<cordwood.RecordIndex of "{path}", closed>'
    assert len(index) == 2
    for call in (lambda: index[0], lambda: index.read([0]), lambda: index[:], index.__enter__):
        with pytest.raises(cordwood.ClosedError, match="the index is closed"):
            call()
    assert pickle.loads(pickle.dumps(index))[0] == b"one"  # noqa: S301


@pytest.mark.skipif(not DESCRIPTORS.exists(), reason="the system does not show open files here")
def test_an_index_keeps_at_most_64_files_open_and_none_after_close(tmp_path):
    def count():
        return sum(os.path.realpath(name).startswith(str(tmp_path)) for name in DESCRIPTORS.iterdir())

    for number in range(100):
        written(tmp_path / f"{number:03}.log", [b"%d" % number])
    index = cordwood.index(tmp_path)
    assert count() == 0
    assert index.read(range(100)) == [b"%d" % number for number in range(100)]
    assert [index[at] for at in range(100)] == [b"%d" % number for number in range(100)]
    assert count() == 64
    index.close()
    assert count() == 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers are missing here")
def test_ctrl_c_interrupts_a_long_call(tmp_path):
    index = cordwood.index(written(tmp_path / "a.log", [b"x"] * 2000))
    places = list(range(2000)) * 500

    with after_work(0.005, raise_interrupt), pytest.raises(Interrupt):
        index.read(places)
    assert index[1999] == b"x"


def test_an_index_and_a_reader_salvage_the_same_records_from_a_log_with_a_number(tmp_path):
    log = recycled_logs.Log(9, "recyclable")

    def fill(end, word):
        while len(log.data) < end:
            log.append(b"%s %d " % (word, len(log.records)) * 10)
        while len(log.records) % 16:
            log.append(b"fill")

    block = reference.BLOCK_LEN
    fill(block - 3_000, b"own")
    log.append(PAYLOAD[: block - len(log.data) - 11 + 2_000])
    fill(2 * block - 3_000, b"own")
    log.append(b"first of a group")
    log.append(b"second")
    log.append(PAYLOAD[: 2 * block - len(log.data) - 11 + 5])
    while len(log.data) < 2 * block + 100:
        log.append(b"x")
    # A record that contains a log without numbers, which ends with the block.
    room = 3 * block - len(log.data) - 11
    inner = reference.encode([b"inner %d" % number for number in range(1_700)])
    assert 0 < len(inner) + 7 < room
    log.append(inner + reference.encode([b"i" * (room - len(inner) - 7)]) + b"rest" * 10)
    start = log.records[-1][0]
    fill(3 * block + 900, b"late")
    content = log.data
    content[block : block + 11] = bytes(range(1, 12))
    content[2 * block : start + 11] = PAYLOAD[: start + 11 - 2 * block]
    path = tmp_path / "some.log"
    path.write_bytes(content)
    options = {"dialect": "rocksdb", "log_number": 9, "on_corruption": "salvage"}
    records = list(cordwood.open(path, **options))
    assert len(records) > 100
    index = cordwood.index(path, **options)
    assert [index[at] for at in range(len(index))] == records
