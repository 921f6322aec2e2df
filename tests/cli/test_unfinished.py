"""A file that a verb writes gets its name once it is complete, however the command ends."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time

import pytest
from support import PAYLOAD, written

import cordwood
from cordwood.cli._output import new_file

LOG = written([PAYLOAD] * 9)


@contextlib.contextmanager
def begun(arguments, folder, prepare=None):
    """A command that has begun to write a file in `folder`, and waits for the rest of a log."""
    before = set(folder.iterdir())
    command = [sys.executable, "-m", "cordwood", *arguments]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=prepare,  # noqa: PLW1509 - `prepare` uses no threads
    ) as process:
        try:
            process.stdin.write(LOG)
            process.stdin.flush()
            until = time.monotonic() + 60
            while set(folder.iterdir()) == before:
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.01)
            yield process
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("name", ["a.ndjson", "a.csv", "a.parquet", "a.log"])
def test_what_is_killed_leaves_nothing_under_the_name(name, tmp_path):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    verb = "salvage" if name.endswith(".log") else "convert"
    with begun([verb, "-", name], tmp_path) as process:
        process.kill()
        assert process.wait(60) == -signal.SIGKILL
        assert not (tmp_path / name).exists()


@pytest.fixture(params=["links", "no links"])
def links(request, monkeypatch):
    """With hard links, and as on a file system that has none."""

    def refused(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    if request.param == "no links":
        monkeypatch.setattr(os, "link", refused)


@pytest.mark.usefixtures("links")
def test_a_new_file_gets_its_name_once_it_is_complete(tmp_path):
    path = tmp_path / "a.csv"
    with new_file(str(path)) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("links")
def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "a.csv"

    def write():
        with new_file(str(path)) as file:
            file.write(b"new")
            path.write_bytes(b"other")

    with pytest.raises(FileExistsError) as caught:
        write()
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"other"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")
def test_a_pipe_is_written_to(tmp_path):
    log, pipe = tmp_path / "log", tmp_path / "a.csv"
    with cordwood.open(log, "x") as writer:
        writer.append(b"one")
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "cordwood", "convert", "--overwrite", "--encoding", "text", log, pipe]
    with subprocess.Popen(command) as process:
        assert pipe.read_text() == "offset,end_offset,data\n0,10,one\n"
        assert process.wait(60) == 0
    assert set(tmp_path.iterdir()) == {log, pipe}
