"""stdin that does not block, as some programs leave it to those that they start, and stdin that waits for bytes."""

import os
import signal
import subprocess
import sys
import time

import pytest
import reference
from interrupts import HANG, unread_len, waits

COMMAND = [sys.executable, "-m", "cordwood"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")


COMMANDS = [
    "cat -",
    "convert -",
    "convert --as json -",
    "fragments -",
    "map -",
    "verify -",
    "salvage - new",
    "pack - new",
]


@pytest.mark.parametrize("command", [*COMMANDS, "write new"])
def test_a_non_blocking_stdin_is_rejected(command, tmp_path):
    outer, inner = os.pipe()
    os.set_blocking(outer, False)
    os.write(inner, reference.encode([b"1", b"2"])[:-1])
    # There may be more to come: the pipe stays open.
    done = subprocess.run(
        [*COMMAND, *command.split()],
        cwd=tmp_path,
        stdin=outer,
        capture_output=True,
        check=False,
        timeout=120,
        text=True,
    )
    os.close(outer)
    os.close(inner)
    message = "cordwood: <stdin>: it is in non-blocking mode, where a read may return no bytes before the end\n"
    assert (done.returncode, done.stderr) == (1, message)
    assert not (tmp_path / "new").exists()


# The handler of a signal that comes just before the system call is due, and the call waits: so it is, too, if another
# thread gets the signal.
SIGNAL_THAT_ENDS_NO_READ = """
import os, signal, sys, threading
from cordwood.cli import main

def kill():
    os.read(int(sys.argv[1]), 1)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

signal.signal(signal.SIGTERM, signal.SIG_DFL)
threading.Thread(target=kill, daemon=True).start()
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("command", ["convert - new.csv", "salvage - new"])
def test_a_signal_ends_the_command_without_interrupting_a_read(command, tmp_path):
    outer, inner = os.pipe()
    os.write(inner, reference.encode([b"1", b"2"]))
    order, orders = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-c", SIGNAL_THAT_ENDS_NO_READ, str(order), *command.split()],
        cwd=tmp_path,
        stdin=outer,
        pass_fds=[order],
    ) as process:
        try:
            end = time.monotonic() + HANG
            while unread_len(outer) or not waits(process.pid):
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.01)
            os.write(orders, b"k")
            # The pipe stays open, so its end is not why the command ends.
            assert process.wait(HANG) == -signal.SIGTERM
        finally:
            process.kill()
            for descriptor in (outer, inner, order, orders):
                os.close(descriptor)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["verify", "stat", "cat", "fragments"])
def test_piped_input_is_read_if_no_file_is_given(verb, tmp_path):
    log = reference.encode([b"one", b"two"])
    (tmp_path / "log").write_bytes(log)
    run = {"cwd": tmp_path, "capture_output": True, "timeout": 60}
    piped = subprocess.run([*COMMAND, verb, "-"], check=False, input=log, **run)
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert subprocess.run([*COMMAND, verb], check=False, input=log, **run).stdout == piped.stdout
    with (tmp_path / "log").open("rb") as file:
        done = subprocess.run([*COMMAND, verb], check=False, stdin=file, **run)
    assert (done.returncode, done.stdout) == (0, piped.stdout)
    # There is nobody who puts data there.
    done = subprocess.run([*COMMAND, verb], check=False, stdin=subprocess.DEVNULL, **run)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"the following arguments are required: SOURCE" in done.stderr
