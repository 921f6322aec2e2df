"""stdin that does not block, as some programs leave it to those that they start: no end of it is made up."""

import os
import subprocess
import sys

import pytest
import reference

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
def test_a_pipe_that_does_not_block_is_refused(command, tmp_path):
    outer, inner = os.pipe()
    os.set_blocking(outer, False)
    os.write(inner, reference.encode([b"1", b"2"])[:-1])
    # There may be more to come: the pipe stays open.
    done = subprocess.run(
        [*COMMAND, *command.split()], cwd=tmp_path, stdin=outer, capture_output=True, check=False, timeout=60, text=True
    )
    os.close(outer)
    os.close(inner)
    message = "cordwood: <stdin>: it is in non-blocking mode, where a read may return no bytes before the end\n"
    assert (done.returncode, done.stderr) == (1, message)
    assert not (tmp_path / "new").exists()
