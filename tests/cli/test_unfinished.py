"""A file that a verb writes gets its name once it is complete, however the command ends."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from interrupts import HANG
from support import PAYLOAD, written

import cordwood
from cordwood.cli import main
from cordwood.cli._output import new_file

LOG = written([PAYLOAD] * 9)


@contextlib.contextmanager
def started(arguments, directory, prepare=None):
    """A command that has started to write a file in `directory`, and waits for the rest of a log."""
    before = set(directory.iterdir())
    command = [sys.executable, "-m", "cordwood", *arguments]
    with subprocess.Popen(
        command,
        cwd=directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=prepare,  # noqa: PLW1509 - `prepare` uses no threads
    ) as process:
        try:
            process.stdin.write(LOG)
            process.stdin.flush()
            until = time.monotonic() + HANG
            while set(directory.iterdir()) == before:
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.01)
            yield process
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("name", ["a.ndjson", "a.csv", "a.parquet", "a.log"])
def test_a_killed_process_leaves_no_file_under_the_final_name(name, tmp_path):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    verb = ["salvage"] if name.endswith(".log") else ["convert", "--as", "raw"]
    with started([*verb, "-", name], tmp_path) as process:
        process.kill()
        assert process.wait(120) == -signal.SIGKILL
        assert not (tmp_path / name).exists()


END_AT_IMPORT = """
import os, sys
from cordwood.cli import main

class Finder:
    def find_spec(name, path=None, target=None):
        if name == "pyarrow.parquet":
            os._exit(7)

sys.meta_path.insert(0, Finder)
sys.exit(main(sys.argv[1:]))
"""


def test_a_library_that_exits_on_import_leaves_no_file(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.log").write_bytes(LOG)
    command = [sys.executable, "-c", END_AT_IMPORT, "convert", "--as", "raw", "a.log", "a.parquet"]
    done = subprocess.run(command, cwd=tmp_path, timeout=120, check=False)
    assert (done.returncode, [path.name for path in tmp_path.iterdir()]) == (7, ["a.log"])


def test_running_out_of_memory_leaves_no_unfinished_file(monkeypatch, tmp_path, capfd):
    (tmp_path / "a.log").write_bytes(LOG)

    def refuse(path):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), path)

    def fill(table, made):
        monkeypatch.setattr(os, "listdir", refuse)
        raise MemoryError

    monkeypatch.setattr("cordwood.cli.convert.logs.Target.write", fill)
    assert main(["convert", "--as", "raw", str(tmp_path / "a.log"), str(tmp_path / "a.csv")]) == 1
    monkeypatch.undo()
    assert capfd.readouterr().err == "cordwood: not enough memory\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]


signals = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")


@signals
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "arguments",
    [
        ("convert", "--as", "raw", "-", "a.csv"),
        ("convert", "--as", "raw", "-", "a.parquet"),
        ("convert", "--as", "raw", "--overwrite", "-", "old.csv"),
        ("salvage", "-", "a.log"),
        ("salvage", "--overwrite", "-", "old.log"),
        ("pack", "--overwrite", "-", "old.log"),
    ],
    ids=" ".join,
)
def test_no_unfinished_file_is_left_after_a_signal(arguments, number, tmp_path):
    if "a.parquet" in arguments:
        pytest.importorskip("pyarrow")
    old = tmp_path / ("old.csv" if "convert" in arguments else "old.log")
    old.write_bytes(content := b"old" if "convert" in arguments else LOG)
    with started(arguments, tmp_path, lambda: signal.signal(number, signal.SIG_DFL)) as process:
        process.send_signal(number)
        # stdin stays open, so the end of the input is not why the command ends.
        assert process.wait(120) == -number
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    assert list(tmp_path.iterdir()) == [old]
    assert old.read_bytes() == content


@signals
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_the_program_ignores_is_still_ignored(number, tmp_path):
    """As after `nohup`."""
    arguments = ["convert", "--as", "raw", "-", "a.ndjson"]
    with started(arguments, tmp_path, lambda: signal.signal(number, signal.SIG_IGN)) as process:
        process.send_signal(number)
        process.stdin.close()
        assert process.wait(120) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["a.ndjson"]
    assert len((tmp_path / "a.ndjson").read_bytes().splitlines()) == 9


@pytest.fixture
def handlers():
    """The handlers of SIGTERM, which has its default action, also under `nohup`, and of SIGHUP, which has its own."""
    handlers = {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: lambda *_: None}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield handlers
    for number, handler in before.items():
        signal.signal(number, handler)


@signals
def test_the_signal_handlers_of_a_program_are_restored(handlers, tmp_path):
    with new_file(str(tmp_path / "a.csv"), []):
        assert signal.getsignal(signal.SIGTERM) != handlers[signal.SIGTERM]
        assert signal.getsignal(signal.SIGHUP) == handlers[signal.SIGHUP]
    assert {number: signal.getsignal(number) for number in handlers} == handlers


def test_a_table_can_be_written_outside_the_main_thread(tmp_path):
    """Only the main thread may handle signals."""
    (tmp_path / "log").write_bytes(LOG)
    statuses = []
    arguments = ["convert", "--as", "raw", str(tmp_path / "log"), str(tmp_path / "a.ndjson")]
    thread = threading.Thread(target=lambda: statuses.append(main(arguments)))
    thread.start()
    thread.join()
    assert statuses == [0]


@pytest.fixture(params=["links", "no links"])
def links(request, monkeypatch):
    """With hard links, and as on a file system that has none."""

    def refused(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    if request.param == "no links":
        monkeypatch.setattr(os, "link", refused)


@pytest.mark.usefixtures("links")
def test_a_new_file_gets_its_final_name_only_once_it_is_complete(tmp_path):
    path = tmp_path / "a.csv"
    with new_file(str(path), []) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("links")
def test_a_new_file_does_not_replace_a_file_that_appears_during_writing(tmp_path):
    path = tmp_path / "a.csv"

    def write():
        with new_file(str(path), []) as file:
            file.write(b"new")
            path.write_bytes(b"other")

    with pytest.raises(FileExistsError) as caught:
        write()
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"other"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="a directory cannot be synced")
@pytest.mark.parametrize("options", [[], ["--overwrite"]], ids=["new", "overwrite"])
def test_salvaging_syncs_the_directory(options, tmp_path, monkeypatch):
    (tmp_path / "log").write_bytes(LOG)
    new = tmp_path / "new.log"
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append((new.exists(), os.fstat(file).st_ino)))
    assert main(["salvage", *options, str(tmp_path / "log"), str(new)]) == 0
    assert synced == [(True, tmp_path.stat().st_ino)]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")
def test_convert_can_write_to_a_named_pipe(tmp_path):
    log, pipe = tmp_path / "log", tmp_path / "a.csv"
    with cordwood.open(log, "x") as writer:
        writer.append(b"one")
    os.mkfifo(pipe)
    command = [
        sys.executable,
        "-m",
        "cordwood",
        "convert",
        "--as",
        "raw",
        "--overwrite",
        "--encoding",
        "hex",
        log,
        pipe,
    ]
    with subprocess.Popen(command) as process:
        assert pipe.read_text() == "offset,end_offset,data\n0,10,6f6e65\n"
        assert process.wait(120) == 0
    assert set(tmp_path.iterdir()) == {log, pipe}
