"""The progress bar: shown on a terminal, for work that takes longer than a second, and nowhere else."""

import contextlib
import fcntl
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest
from interrupts import HANG
from support import PAYLOAD, written

LOG = written([PAYLOAD] * 4)
# A table is written 4 MiB at a time.
LONG_LOG = written([PAYLOAD] * 9)


# The clock of the command counts how often it is asked, so that no work is slow or fast by chance.
COMMAND = """
import itertools, sys, time
clock = itertools.count(1_000_000_000, int(sys.argv.pop(1)))
time.time = lambda: next(clock)
from cordwood.cli import main
sys.exit(main())
"""
FAST, SLOW = "0", "1"


def stderr_of(
    *arguments,
    is_terminal,
    speed=SLOW,
    stdout=subprocess.PIPE,
    log=LOG,
    interrupted=False,
    file_len_max=None,
    status=0,
):
    """The text that a verb writes to stderr while it reads a log from a pipe, perhaps interrupted by Ctrl-C."""

    def prepare():
        # As at a terminal. In a shell's background jobs SIGINT is ignored, and Python leaves it ignored.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if is_terminal:
            fcntl.ioctl(2, termios.TIOCSCTTY, 0)
        if file_len_max:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_len_max, file_len_max))

    outer, inner = pty.openpty() if is_terminal else os.pipe()
    if is_terminal:
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, speed, *(arguments or ("verify", "-"))],
        stdin=subprocess.PIPE,
        stdout=inner if stdout is None else stdout,
        stderr=inner,
        # Ctrl-C goes to the programs that the terminal controls.
        start_new_session=True,
        preexec_fn=prepare,  # noqa: PLW1509 - `prepare` uses no threads
    )
    os.close(inner)
    shown = b""

    def watch():
        nonlocal shown
        try:
            while piece := os.read(outer, 65536):
                shown += piece
        except OSError:
            pass  # No process writes to the terminal any longer.

    watcher = threading.Thread(target=watch)
    watcher.start()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(log[:-1])
        process.stdin.flush()
        if interrupted:
            end = time.monotonic() + HANG
            while b"B/s" not in shown:
                assert time.monotonic() < end
                time.sleep(0.01)
            os.write(outer, b"\x03")
            # stdin stays open, so the end of the input is not why the command ends.
            process.wait(timeout=HANG)
        process.stdin.write(log[-1:])
    out, _ = process.communicate(timeout=HANG)
    watcher.join()
    os.close(outer)
    if not arguments and stdout is not None and not interrupted:
        assert out == b"<stdin>: ok, 4 records, 4,194,304 bytes\n"
    assert process.returncode == (130 if interrupted else status), shown
    return shown.decode()


def screen(shown, width=80):
    """The lines that a terminal finally shows."""
    lines, column = [""], 0
    for part in re.findall(r"\x1b\[K|\x1b\[A|.", shown, re.DOTALL):
        if part == "\r":
            column = 0
        elif part == "\n":
            lines.append("")
        elif part == "\x1b[K":
            lines[-1] = lines[-1][:column]
        else:
            assert part.isprintable(), part
            if column == width:
                lines.append("")
                column = 0
            lines[-1] = lines[-1][:column].ljust(column) + part + lines[-1][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]


def test_the_test_screen_emulator_handles_control_characters():
    assert screen("abc\rx\x1b[K\r\n") == ["x", ""]
    assert screen("abc\rx\n") == ["xbc", ""]
    assert screen("abcd", width=3) == ["abc", "d"]


def test_a_slow_command_shows_progress_on_a_terminal():
    pytest.importorskip("tqdm")
    shown = stderr_of(is_terminal=True)
    assert "<stdin>: " in shown
    assert "B/s" in shown


def test_a_fast_command_shows_no_progress():
    assert "B/s" not in stderr_of(is_terminal=True, speed=FAST)


def test_a_slow_command_shows_no_progress_without_a_terminal():
    assert stderr_of(is_terminal=False) == ""


@pytest.mark.parametrize("arguments", [("verify", "-q", "-"), ("convert", "--as", "raw", "-q", "-", "a.csv")])
def test_quiet_hides_progress(arguments, tmp_path, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.chdir(tmp_path)
    assert stderr_of(*arguments, is_terminal=True) == ""


@pytest.mark.parametrize(
    "arguments", [("verify", "-"), ("convert", "--as", "raw", "-", "a.csv"), ("salvage", "-", "a.log")]
)
def test_progress_is_shown_even_if_stdout_is_the_same_terminal(arguments, tmp_path, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.chdir(tmp_path)
    assert "B/s" in stderr_of(*arguments, is_terminal=True, stdout=None)


@pytest.mark.parametrize("arguments", [("cat", "--json", "-"), ("convert", "--as", "raw", "-")])
def test_progress_is_not_shown_while_records_are_printed_on_the_terminal(arguments):
    shown = stderr_of(*arguments, is_terminal=True, stdout=None)
    assert shown.startswith('{"')
    assert "B/s]" not in shown


def test_progress_is_removed_at_the_end():
    pytest.importorskip("tqdm")
    shown = stderr_of(is_terminal=True)
    assert "B/s" in shown
    assert screen(shown) == [""]


@pytest.mark.parametrize(
    "arguments", [("verify", "-"), ("stat", "-"), ("convert", "--as", "raw", "-", "a.csv"), ("salvage", "-", "a.log")]
)
def test_the_progress_line_is_cleared_after_ctrl_c(arguments, tmp_path, monkeypatch):
    """The terminal's echo of Ctrl-C is cleared, too."""
    pytest.importorskip("tqdm")
    monkeypatch.chdir(tmp_path)
    shown = stderr_of(*arguments, is_terminal=True, log=LONG_LOG, interrupted=True)
    assert "B/s" in shown
    assert "^C" in shown
    assert screen(shown) == [""]


def test_messages_are_printed_on_their_own_lines(tmp_path, monkeypatch):
    """Records that cannot be decoded are reported while the bar is shown."""
    pytest.importorskip("tqdm")
    monkeypatch.chdir(tmp_path)
    batch = bytes(8) + b"\1\0\0\0" + b"\1\1k" + b"\x80\x80\x40" + PAYLOAD
    log = written([batch] * 8 + [b"short", PAYLOAD])
    shown = stderr_of("convert", "--as", "write-batch", "-", "a.csv", is_terminal=True, log=log, status=3)
    assert "B/s" in shown.partition("cordwood: ")[0]
    lines = screen(shown)
    assert lines.pop() == ""
    assert sum(line.startswith("cordwood: <stdin>: the record at offset ") for line in lines) == 2
    # A message may be wider than the terminal.
    assert "".join(lines).count("cordwood: ") == 2
    assert "B/s" not in "".join(lines)


def test_an_error_does_not_share_a_line_with_the_progress_bar(tmp_path, monkeypatch):
    """The disk fills up while the bar is shown."""
    pytest.importorskip("tqdm")
    monkeypatch.chdir(tmp_path)
    arguments = ("convert", "--as", "raw", "-", "a.csv")
    shown = stderr_of(*arguments, is_terminal=True, log=LONG_LOG, file_len_max=8 << 20, status=1)
    assert "B/s" in shown
    assert screen(shown) == ["cordwood: a.csv: File too large", ""]
