"""The progress bar: on a terminal, for what takes longer than a second, and nowhere else."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest
from support import PAYLOAD, written

LOG = written([PAYLOAD] * 4)


def stderr_of(seconds, *arguments, is_terminal, stdout=subprocess.PIPE):
    """What a verb writes to stderr while a log comes through a pipe in so many seconds."""
    outer, inner = pty.openpty() if is_terminal else os.pipe()
    if is_terminal:
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "cordwood", *(arguments or ("verify", "-"))],
        stdin=subprocess.PIPE,
        stdout=inner if stdout is None else stdout,
        stderr=inner,
    )
    os.close(inner)
    shown = b""

    def watch():
        nonlocal shown
        try:
            while piece := os.read(outer, 65536):
                shown += piece
        except OSError:
            pass  # A terminal that nobody writes to any more.

    watcher = threading.Thread(target=watch)
    watcher.start()
    for part in range(40):
        process.stdin.write(LOG[part * len(LOG) // 40 : (part + 1) * len(LOG) // 40])
        process.stdin.flush()
        time.sleep(seconds / 40)
    out, _ = process.communicate(timeout=60)
    watcher.join()
    os.close(outer)
    if not arguments and stdout is not None:
        assert out == b"<stdin>: ok, 4 records, 4,194,304 bytes\n"
    assert process.returncode == 0
    return shown.decode()


def test_a_slow_one_on_a_terminal():
    pytest.importorskip("tqdm")
    shown = stderr_of(2.5, is_terminal=True)
    assert "<stdin>: " in shown
    assert "B/s" in shown


def test_a_fast_one_on_a_terminal():
    assert "B/s" not in stderr_of(0, is_terminal=True)


def test_a_slow_one_elsewhere():
    assert stderr_of(2.5, is_terminal=False) == ""


@pytest.mark.parametrize("arguments", [("verify", "-"), ("convert", "-", "a.csv"), ("salvage", "-", "a.log")])
def test_a_slow_one_whose_stdout_is_the_terminal_too(arguments, tmp_path, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.chdir(tmp_path)
    assert "B/s" in stderr_of(2.5, *arguments, is_terminal=True, stdout=None)


@pytest.mark.parametrize("arguments", [("cat", "--json", "-"), ("convert", "-")])
def test_records_on_the_terminal_are_the_progress(arguments):
    shown = stderr_of(2.5, *arguments, is_terminal=True, stdout=None)
    assert shown.startswith('{"')
    assert "B/s]" not in shown
