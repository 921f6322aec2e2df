"""A packed log that states far more than it contains is an error or damage, and needs at most 300 MiB."""

import json
import subprocess
import sys

import bombs
import pytest
from support import HELPERS

# The process that reads them has no room for more.
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it needs /proc and a limit of the address space")


@pytest.fixture(scope="module")
def found():
    command = [sys.executable, HELPERS / "bombs.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("name", "expected"), [pytest.param(case[0], case[3], id=case[0]) for case in bombs.cases()])
def test_a_bomb_needs_little_memory(found, name, expected):
    assert found[name] == expected
