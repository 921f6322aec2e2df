"""stdout, buffered by Python or not (PYTHONUNBUFFERED): all data is written, or the command fails and says so."""

import os
import shutil
import signal
import subprocess
import sys
import time
from random import Random

import pytest
import reference
from interrupts import HANG, unread_len, waits

COMMAND = [sys.executable, "-m", "cordwood"]

# Each writes more than WRITTEN_MAX, which is more than a pipe can hold.
COMMANDS = [
    "cat",
    "cat --format raw",
    "convert --as raw",
    "convert --as json",
    "convert --as raw --to csv",
    "convert --as raw --to arrow",
    "convert --as raw --to parquet",
    "map --svg -",
    "fragments",
    "fragments --json",
]
WRITTEN_MAX = 100_000


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log whose records, tables, picture and list of fragments are all longer than that."""
    path = tmp_path_factory.mktemp("stdout") / "a.log"
    random = Random(1)
    path.write_bytes(reference.encode([b'{"a": "%s"}' % random.randbytes(40).hex().encode() for _ in range(2_500)]))
    return path


@pytest.fixture(params=["", "1"], ids=["buffered", "unbuffered"])
def env(request):
    return os.environ | {"PYTHONUNBUFFERED": request.param}


def arguments(command, log):
    if command.endswith(("arrow", "parquet")):
        pytest.importorskip("pyarrow")
    return [*COMMAND, *command.split(), str(log)]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_reported_when_writing_to_stdout(command, env, log, tmp_path):
    """The limit of a file's length acts as a disk does: it ends a write in the middle, and only the next one fails."""
    script = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({WRITTEN_MAX}, {WRITTEN_MAX})); "
    script += "os.execv(sys.argv[1], sys.argv[1:])"
    with (tmp_path / "out").open("wb") as out:
        limited = [sys.executable, "-c", script, *arguments(command, log)]
        done = subprocess.run(limited, stdout=out, stderr=subprocess.PIPE, env=env, check=False, timeout=120)
    assert (tmp_path / "out").stat().st_size == WRITTEN_MAX
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, b"cordwood: <stdout>: File too large")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
@pytest.mark.parametrize("command", ["cat", "convert --as json", "map --svg -"])
def test_a_full_non_blocking_pipe_is_reported(command, env, log):
    outer, inner = os.pipe()
    os.set_blocking(inner, False)
    # Nobody reads.
    done = subprocess.run(
        arguments(command, log), stdout=inner, stderr=subprocess.PIPE, env=env, check=False, timeout=120
    )
    os.close(inner)
    os.close(outer)
    message = b"cordwood: <stdout>: write could not complete without blocking"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, message)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
@pytest.mark.parametrize("command", ["cat", "convert --as json", "map --svg -"])
def test_a_closed_pipe_ends_the_command(command, env, log):
    with subprocess.Popen(arguments(command, log), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        assert os.read(process.stdout.fileno(), 20)
        process.stdout.close()
        assert (process.wait(120), process.stderr.read()) == (141, b"")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux how full a pipe is")
@pytest.mark.parametrize(
    ("command", "stream"),
    [(command, "stdout") for command in [*COMMANDS, "cat --json", "follow", "verify --json", "info", "stat"]]
    + [(command, "stdout and stderr") for command in ("cat", "convert --as raw --to arrow", "verify --json")],
)
def test_ctrl_c_ends_a_command_blocked_on_a_full_pipe(command, stream, log, tmp_path):
    """As `cordwood follow x.log | less` does, with `2>&1` or without."""
    import fcntl

    sources = [str(log)]
    if command in ("verify --json", "info", "stat"):
        for number in range(40):
            shutil.copy(log, path := tmp_path / f"{number:0100}.log")
            os.truncate(path, 20)
            sources.append(str(path))
    outer, inner = os.pipe()
    fcntl.fcntl(inner, fcntl.F_SETPIPE_SZ, 4_096)
    command = [*arguments(command, sources[0]), *sources[1:]]
    prepare = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
    with subprocess.Popen(
        command,
        stdout=inner,
        stderr=inner if "stderr" in stream else subprocess.PIPE,
        preexec_fn=prepare,  # noqa: PLW1509 - it uses no threads
    ) as process:
        try:
            filled, before = 0, -1
            until = time.monotonic() + HANG
            while not (filled == before > 0 and waits(process.pid)):
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.05)
                before, filled = filled, unread_len(outer)
            process.send_signal(signal.SIGINT)
            assert process.wait(HANG) == 130
            assert not process.stderr or process.stderr.read() == b""
        finally:
            process.kill()
            os.close(inner)
            os.close(outer)
