"""A packed log that states far more than it contains is an error or damage, and needs at most 300 MiB."""

import json
import subprocess
import sys

import bombs
import pytest
from support import HELPERS

# The process that reads them has no room for more.
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it needs /proc and a limit of the address space")


def run(*arguments):
    command = [sys.executable, HELPERS / "bombs.py", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def found():
    return run()


@pytest.mark.parametrize(("name", "expected"), [pytest.param(case[0], case[3], id=case[0]) for case in bombs.cases()])
def test_reading_a_decompression_bomb_uses_little_memory(found, name, expected):
    assert found[name] == expected


# Attack R1. The process has 320 MiB at the default, or else 64 MiB more than the longest record.
@pytest.mark.parametrize(("count", "record_len_max"), [(20, bombs.RECORD_LEN_MAX), (60, 1000), (60, 16 << 20)])
def test_reading_or_appending_to_a_decompression_bomb_uses_little_memory(count, record_len_max):
    assert run("generated", count, record_len_max) == {}
