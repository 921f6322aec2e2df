"""Reading several files at a time: the output is as if they were read in turn, and nothing is left running."""

import json
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import reference
from support import PAYLOAD, written

import cordwood
from cordwood._inputs.expand import Input
from cordwood.cli import main
from cordwood.cli._read_ahead import LEN_MIN, ReadAhead

SECONDS = 60


@pytest.fixture
def folder(tmp_path):
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
def test_threads_do_not_change_what_is_printed(verb, folder, capsys):
    sources = [str(folder), str(folder / "000005.log"), str(folder / "absent.log"), *map(str, folder.glob("*.wandb"))]
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
def test_info_reads_them_as_well(folder, capsys, monkeypatch):
    others = set()

    def verify(path, **options):
        if threading.current_thread() is not threading.main_thread():
            others.add(Path(path).name)
        return cordwood.verify(path, **options)

    monkeypatch.setattr("cordwood.cli.info.cordwood", SimpleNamespace(**{**vars(cordwood), "verify": verify}))
    assert main(["info", "--json", str(folder)]) == 3
    assert json.loads(capsys.readouterr().out)["record_count"] == 3 + 2 + 1 + 2 + 12 + 3 + 2
    long_logs = {"000001.log", "000002.log", "000004.log", "000005.log", "000006.log", "run-1.wandb"}
    assert others <= long_logs
    assert {"000001.log", "000002.log", "run-1.wandb"} <= others
    others.clear()
    # Also files that are named one by one, one of them twice.
    names = [str(folder / name) for name in ("000001.log", "000003.log", "000002.log", "000001.log")]
    assert main(["info", "--json", *names]) == 3
    counts = [json.loads(line)["record_count"] for line in capsys.readouterr().out.splitlines()]
    assert counts == [3, 1, 2, 3]
    assert others == {"000001.log", "000002.log"}


def named(*lens):
    return [Input(f"{number:06}.log", "", file_len=length) for number, length in enumerate(lens)]


def results(files, threads):
    """For each file, how many threads it may use, and whether the main thread reads it."""

    def read(name, threads, _progress):
        return name, threads, threading.current_thread() is threading.main_thread()

    with ReadAhead(files, read, threads) as ahead:
        return [ahead.result(file.name) for file in files]


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch):
    # A progress bar would look at the files, and there are none.
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)


@pytest.mark.parametrize(
    ("lens", "threads", "expected"),
    [
        # Each has one thread, and the last has both, since the other has nothing left to do.
        ((LEN_MIN, LEN_MIN, LEN_MIN), 2, [(1, False), (1, False), (2, False)]),
        # Towards the end, a file's share of the threads is its share of what is left.
        ((LEN_MIN,) * 8, 4, [(1, False)] * 5 + [(1, False), (2, False), (4, False)]),
        # One file that takes longer than all others together.
        ((LEN_MIN, 10 * LEN_MIN, LEN_MIN), 2, [(1, False), (2, False), (2, False)]),
        # Short files and a pipe are read when it is their turn, with the threads that are free.
        ((LEN_MIN, 0, LEN_MIN, LEN_MIN - 1), 2, [(1, False), (range(1, 3), True), (2, False), (range(1, 3), True)]),
        # A single long file; a single thread.
        ((LEN_MIN, 0), 2, [(2, True), (2, True)]),
        ((LEN_MIN, LEN_MIN), 1, [(1, True), (1, True)]),
    ],
)
def test_how_many_threads_read_a_file(lens, threads, expected):
    files = named(*lens)
    for file, (count, is_main), found in zip(files, expected, results(files, threads), strict=True):
        assert found[::2] == (file.name, is_main)
        assert found[1] in count if isinstance(count, range) else found[1] == count


def test_what_need_not_be_a_log_is_read_in_turn():
    files = [file._replace(is_in_folder=True) for file in named(LEN_MIN, LEN_MIN)]
    other = Input("Cookies", "", is_in_folder=True, file_len=LEN_MIN)
    assert [is_main for _, _, is_main in results([*files, other], 2)] == [False, False, True]


def test_an_error_is_raised_in_turn_and_the_others_go_on():
    def read(name, _threads, _progress):
        if "1" in name:
            raise FileNotFoundError(2, "gone", name)
        return name

    files = named(*[LEN_MIN] * 20)
    found = []
    with ReadAhead(files, read, 3) as ahead:
        for file in files:
            try:
                found.append(ahead.result(file.name))
            except FileNotFoundError as error:
                found.append(error.filename)
    assert found == [file.name for file in files]


def test_no_more_are_read_ahead_than_threads_and_one():
    begun = []
    files = named(*[LEN_MIN] * 50)
    with ReadAhead(files, lambda name, _threads, _progress: begun.append(name), 3) as ahead:
        for count, file in enumerate(files, 1):
            ahead.result(file.name)
            assert len(begun) <= count + 4
    assert sorted(begun) == sorted(file.name for file in files)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_all_of_them():
    count_before = threading.active_count()
    ended = []

    def read(name, _threads, progress):
        try:
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline:
                progress(1)
                time.sleep(0.01)
        finally:
            ended.append(name)

    files = named(*[LEN_MIN] * 9)
    begun = time.monotonic()
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    with pytest.raises(KeyboardInterrupt), ReadAhead(files, read, 2) as ahead:  # noqa: PT012 - that is under test
        timer.start()
        ahead.result(files[0].name)
    timer.join()
    assert time.monotonic() - begun < SECONDS / 2
    # Those that had been begun, and none after them.
    assert len(ended) == 2
    assert threading.active_count() == count_before


def test_the_progress_is_that_of_the_file_whose_turn_it_is(monkeypatch):
    shown = []

    class Bar:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def __call__(self, done_len):
            shown.append((self.name, done_len))

    monkeypatch.setattr("cordwood.cli._read_ahead.Progress", Bar)

    def read(_name, _threads, progress):
        for _ in range(10):
            progress(7)
            time.sleep(0.05)

    files = named(LEN_MIN, LEN_MIN)
    with ReadAhead(files, read, 2) as ahead:
        for file in files:
            ahead.result(file.name)
    first = [done_len for name, done_len in shown if name == files[0].name]
    assert len(first) > 1
    assert 0 < sum(first) <= 70
    assert all(done_len % 7 == 0 for done_len in first)


def test_a_caller_that_stops_early_waits_only_for_what_was_begun():
    begun = []

    def read(name, _threads, progress):
        begun.append(name)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            progress(1)
            time.sleep(0.001)

    with ReadAhead(named(*[LEN_MIN] * 50), read, 2):
        while len(begun) < 2:
            time.sleep(0.001)
    assert len(begun) == 2


def test_few_more_threads_than_asked_for_read_at_a_time():
    lock, now, most = threading.Lock(), 0, 0

    def read(_name, threads, _progress):
        nonlocal now, most
        with lock:
            now += threads
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= threads

    for count in (8, 30):
        files = named(*[LEN_MIN] * count)
        with ReadAhead(files, read, 8) as ahead:
            for file in files:
                ahead.result(file.name)
    # When a file is begun, fewer than 8 threads are reading, and it may get 8 more.
    assert 8 <= most < 16


def test_files_that_are_rejected_are_not_waited_for():
    """The result of a file that is known not to be wanted is never requested."""
    files = named(*[LEN_MIN] * 40)
    wanted = [file.name for file in (files[0], *files[20:36:5])]
    begun, cancelled = [], []

    def read(name, _threads, progress):
        """A wanted file ends once a later one has been begun, which is then read until it is cancelled."""
        begun.append(name)
        deadline = time.monotonic() + SECONDS
        try:
            while name not in wanted or max(begun) <= name:
                progress(1)
                time.sleep(0.001)
                assert time.monotonic() < deadline
        except Exception:
            cancelled.append(name)
            raise
        return name

    with ReadAhead(files, read, 2) as ahead:
        assert [ahead.result(name) for name in wanted] == wanted
    assert sorted(cancelled) == sorted(set(begun) - set(wanted))
    assert len(begun) == len(set(begun))


def test_a_system_without_more_threads(monkeypatch):
    start = threading.Thread.start
    started, calls = [], []

    def start_one(thread):
        started.append(thread)
        if len(started) > 1:
            raise RuntimeError("can't start new thread")
        start(thread)

    def read(name, threads, _progress):
        calls.append((name, threads, threading.current_thread() is threading.main_thread()))
        time.sleep(0.02)
        return name

    monkeypatch.setattr(threading.Thread, "start", start_one)
    files = named(*[LEN_MIN] * 9)
    with ReadAhead(files, read, 4) as ahead:
        assert [ahead.result(file.name) for file in files] == [file.name for file in files]
    # The only thread reads the first file; each other file is read once, in turn, with all threads that this leaves.
    assert sorted(name for name, _, _ in calls) == [file.name for file in files]
    assert [is_main for _, _, is_main in sorted(calls)] == [False, *[True] * 8]
    assert max(threads for _, threads, _ in calls) == 4
