"""Reading several files at a time: the output is as if they were read in turn, and no thread is left running."""

import contextlib
import json
import threading
import time
from pathlib import Path

import pytest
import reference
from interrupts import HANG, Interrupt, interrupting
from support import PAYLOAD, written

import cordwood
from cordwood._inputs.each import LEN_MIN, each
from cordwood._inputs.input import Input
from cordwood.cli import main


@pytest.fixture
def directory(tmp_path):
    """Logs, some long enough to be read ahead, undamaged, damaged and torn, and other files."""
    log = written([PAYLOAD] * 3)
    assert len(log) > LEN_MIN
    damaged = bytearray(log)
    damaged[100_000] ^= 1
    for name, file in {
        "000001.log": log,
        "000002.log": damaged,
        "000003.log": reference.encode([b"short"]),
        "000004.log": log[:-5],
        "000005.log": b"text " * LEN_MIN,
        "000006.log": written([PAYLOAD] * 12),
        "Cookies": b"SQLite format 3\0" + bytes(LEN_MIN),
        "data": bytes(range(251)) * (2 * LEN_MIN // 251),
        "history": log,
        "run-1.wandb": damaged,
    }.items():
        (tmp_path / name).write_bytes(file)
    return tmp_path


@pytest.mark.parametrize("verb", [["verify"], ["verify", "--json"], ["stat"], ["stat", "--json"]])
def test_the_output_does_not_depend_on_the_number_of_threads(verb, directory, capsys):
    sources = [
        str(directory),
        str(directory / "000005.log"),
        str(directory / "absent.log"),
        *map(str, directory.glob("*.wandb")),
    ]
    outputs = set()
    for threads in (1, 2, 8):
        status = main([*verb, "--threads", str(threads), *sources])
        outputs.add((status, *capsys.readouterr()))
    [(status, out, err)] = outputs
    # The status is 1: two named files cannot be read.
    assert (status, err.count("absent.log"), err.count("000005.log")) == (1, 1, 1)
    if verb[1:]:
        *logs, totals = map(json.loads, out.splitlines())
        counts = [log["record_count"] for log in logs if "record_count" in log]
        # By name: 000001, 2, 3, 4 and 6, history, run-1.
        assert counts == [3, 2, 1, 2, 12, 3, 2]
        assert (totals["totals"]["log_count"], totals["totals"]["damaged_count"]) == (7, 2)


@pytest.fixture
def _two_threads(monkeypatch):
    monkeypatch.setattr("cordwood.cli.info.processor_count", lambda: 2)


@pytest.mark.usefixtures("_two_threads")
def test_info_reads_ahead_into_the_next_files(directory, capsys, monkeypatch):
    others = set()

    def verify(path, **options):
        if threading.current_thread() is not threading.main_thread():
            others.add(Path(path).name)
        return cordwood.verify(path, **options)

    monkeypatch.setattr("cordwood._content.verify", verify)
    assert main(["info", "--json", str(directory)]) == 3
    assert json.loads(capsys.readouterr().out)["record_count"] == 3 + 2 + 1 + 2 + 12 + 3 + 2
    long_logs = {"000001.log", "000002.log", "000004.log", "000005.log", "000006.log", "run-1.wandb"}
    assert others <= long_logs
    assert {"000001.log", "000002.log", "run-1.wandb"} <= others
    others.clear()
    # Of files that are named one by one, one of them twice, each is read by all threads.
    names = [str(directory / name) for name in ("000001.log", "000003.log", "000002.log", "000001.log")]
    assert main(["info", "--json", *names]) == 3
    counts = [json.loads(line)["record_count"] for line in capsys.readouterr().out.splitlines()]
    assert counts == [3, 1, 2, 3]
    assert not others


def named(*lens):
    return [Input(f"{number:06}.log", "", file_len=length) for number, length in enumerate(lens)]


def results(files, read, threads=2, **options):
    return [found for _, found in each(files, read, threads, **options)]


@pytest.mark.parametrize(
    ("lens", "threads", "expected"),
    [
        # A file's share of the threads is its share of the bytes.
        ((LEN_MIN, LEN_MIN, LEN_MIN), 2, [(1, False)] * 3),
        ((LEN_MIN, 10 * LEN_MIN, LEN_MIN), 4, [(1, False), (3, False), (1, False)]),
        # Short files and a pipe are read when it is their turn.
        ((LEN_MIN, 0, LEN_MIN, LEN_MIN - 1), 2, [(1, False), (1, True), (1, False), (1, True)]),
        # A single file, also one whose length is not known; a single long file; a single thread.
        ((0,), 2, [(2, True)]),
        ((LEN_MIN, 0), 2, [(2, True), (1, True)]),
        ((LEN_MIN, LEN_MIN), 1, [(1, True), (1, True)]),
    ],
)
def test_threads_per_file_depend_on_file_lengths_and_thread_count(lens, threads, expected):
    def read(_file, threads, _progress):
        return threads, threading.current_thread() is threading.main_thread()

    assert results(named(*lens), read, threads) == expected


def test_errors_are_reported_in_order_and_other_files_are_still_read():
    def read(file, _threads, _progress):
        if "1" in file.name:
            raise FileNotFoundError(2, "gone", file.name)
        return file.name

    files = named(*[LEN_MIN] * 20)
    found = [getattr(found, "filename", found) for found in results(files, read, 3)]
    assert found == [file.name for file in files]


def test_only_a_few_files_per_thread_are_read_ahead():
    started = []
    files = named(*[LEN_MIN] * 50)
    for count, _ in enumerate(each(files, lambda file, _threads, _progress: started.append(file), 3), 1):
        assert len(started) <= count + 6
    assert sorted(started) == files


def test_ctrl_c_ends_all_threads():
    count_before = threading.active_count()
    started, ended = [], []

    def read(file, _threads, progress):
        started.append(file)
        try:
            while True:
                progress(1)
                time.sleep(0.01)
        finally:
            ended.append(file)

    with interrupting(lambda: len(started) == 2), pytest.raises(Interrupt):
        results(named(*[LEN_MIN] * 9), read)
    # Those that had been started, and none after them.
    assert len(ended) == 2
    assert threading.active_count() == count_before


def test_progress_shows_the_current_file():
    shown = []

    @contextlib.contextmanager
    def bar(name):
        yield lambda done_len: shown.append((name, done_len))

    files = named(LEN_MIN, LEN_MIN)
    read_len = 0

    def read(file, _threads, progress):
        nonlocal read_len
        end = time.monotonic() + HANG
        # Until it has been shown twice.
        while file is files[0] and len(shown) < 2 and time.monotonic() < end:
            progress(7)
            read_len += 7
            time.sleep(0.01)

    results(files, read, shown=bar)
    first = [done_len for name, done_len in shown if name == files[0].name]
    assert len(first) > 1
    assert sum(first) == read_len
    assert all(done_len % 7 == 0 for done_len in first)


def test_stopping_early_waits_only_for_files_that_are_already_being_read():
    started = []

    def read(file, _threads, progress):
        started.append(file)
        deadline = time.monotonic() + HANG
        while len(started) > 1 and time.monotonic() < deadline:
            progress(1)
            time.sleep(0.001)

    files = each(named(*[LEN_MIN] * 50), read, 2)
    next(files)
    files.close()
    assert len(started) <= 3


def test_each_file_is_read_once_even_if_no_thread_can_start(monkeypatch):
    start = threading.Thread.start
    started, finished = [], []

    def start_one(thread):
        started.append(thread)
        if len(started) > 1:
            raise RuntimeError("can't start new thread")
        start(thread)

    def read(file, _threads, progress):
        time.sleep(0.02)
        # A file that is read when its turn comes has no progress here.
        if progress:
            progress(1)
        finished.append(file)
        return file

    monkeypatch.setattr(threading.Thread, "start", start_one)
    files = named(*[LEN_MIN] * 9)
    assert results(files, read, 4) == files
    assert sorted(finished) == files
