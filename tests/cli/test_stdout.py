"""stdout, buffered by Python or not (PYTHONUNBUFFERED): all data is written, or the command fails and says so."""

import os
import subprocess
import sys
from random import Random

import pytest
import reference

COMMAND = [sys.executable, "-m", "cordwood"]

# Each writes more than WRITTEN_MAX, which is more than a pipe can hold.
COMMANDS = [
    "cat",
    "cat --format raw",
    "convert",
    "convert --as json",
    "convert --to csv",
    "convert --to arrow",
    "convert --to parquet",
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
def test_a_full_disk_is_reported(command, env, log, tmp_path):
    """The limit of a file's length acts as a disk does: it ends a write in the middle, and only the next one fails."""
    script = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({WRITTEN_MAX}, {WRITTEN_MAX})); "
    script += "os.execv(sys.argv[1], sys.argv[1:])"
    with (tmp_path / "out").open("wb") as out:
        limited = [sys.executable, "-c", script, *arguments(command, log)]
        done = subprocess.run(limited, stdout=out, stderr=subprocess.PIPE, env=env, check=False, timeout=60)
    assert (tmp_path / "out").stat().st_size == WRITTEN_MAX
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, b"cordwood: <stdout>: File too large")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
@pytest.mark.parametrize("command", ["cat", "convert --as json", "map --svg -"])
def test_a_pipe_that_does_not_block_and_is_full_is_reported(command, env, log):
    outer, inner = os.pipe()
    os.set_blocking(inner, False)
    # Nobody reads.
    done = subprocess.run(
        arguments(command, log), stdout=inner, stderr=subprocess.PIPE, env=env, check=False, timeout=60
    )
    os.close(inner)
    os.close(outer)
    message = b"cordwood: <stdout>: write could not complete without blocking"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, message)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
@pytest.mark.parametrize("command", ["cat", "convert --as json", "map --svg -"])
def test_a_reader_that_stops_reading_ends_the_command(command, env, log):
    with subprocess.Popen(arguments(command, log), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        assert os.read(process.stdout.fileno(), 20)
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (141, b"")
