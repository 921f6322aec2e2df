"""A record whose `append` returned is there, once, after any kill, fork or rotation; threads read the same as one does.

Each test is a program in the directory `survival`, since it forks. It checks with `reference.py`, not with cordwood.
`make survival` repeats each many more times.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent

# Full counts are divided into parts small enough to end long before a test is considered hung.
FULL = os.environ.get("CORDWOOD_SURVIVAL") == "full"
KILLS = [200] * 10 if FULL else [60]
KILLS_OF_PACKED = [100] * 20 if FULL else [30]
KILLS_IN_SEGMENTS = [50] * 40 if FULL else [20]
FORKS = [100] * 3 if FULL else [30]
ROTATIONS = [100] * 2 if FULL else [20]
READINGS = [200] * 8 if FULL else [16]

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="it needs fork and pidfd_open: Linux")


def survive(program, directory, count, seed, capsys, *more):
    command = [sys.executable, "-W", "ignore", PROGRAMS / program, directory, str(count), str(seed), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=170)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    problems = result.pop("problems")
    with capsys.disabled():
        print(f"[{', '.join(f'{number} {what}' for what, number in result.items())}]", end=" ")  # noqa: T201
    assert not problems, "\n".join([*(f"{where}: {what}" for where, what in problems.items()), done.stderr])
    assert result["count"] >= count
    return result


@pytest.mark.parametrize("part", range(len(KILLS)))
def test_killed_writers_do_not_lose_acknowledged_records(tmp_path, capsys, part):
    result = survive("kills.py", tmp_path, KILLS[part], 20261121 + part, capsys)
    assert result["records"] > 10 * KILLS[part]
    if KILLS[part] >= 200:  # Fewer kills may all fall between two writes.
        assert result["torn"] > 0


@pytest.mark.parametrize("part", range(len(KILLS_OF_PACKED)))
def test_killed_writers_of_packed_logs_do_not_lose_acknowledged_records(tmp_path, capsys, part):
    result = survive("kills.py", tmp_path, KILLS_OF_PACKED[part], 20261125 + part, capsys, "packed")
    assert result["records"] > 10 * KILLS_OF_PACKED[part]
    if KILLS_OF_PACKED[part] >= 100:  # About every ninth leaves a torn end.
        assert result["torn"] > 0


@pytest.mark.parametrize("part", range(len(KILLS_IN_SEGMENTS)))
def test_killed_writers_of_segmented_logs_do_not_lose_acknowledged_records(tmp_path, capsys, part):
    packed = ["packed"] if part % 4 == 3 else []
    result = survive("segments.py", tmp_path, KILLS_IN_SEGMENTS[part], 20261126 + part, capsys, *packed)
    assert result["records"] > 100 * KILLS_IN_SEGMENTS[part]
    assert result["pruned"] > 0


@pytest.mark.parametrize("part", range(len(FORKS)))
def test_a_forked_process_never_changes_a_log_opened_by_its_parent(tmp_path, capsys, part):
    survive("forks.py", tmp_path, FORKS[part], 20261121 + part, capsys)


@pytest.mark.parametrize("part", range(len(ROTATIONS)))
def test_a_follower_does_not_lose_records_across_file_rotations(tmp_path, capsys, part):
    result = survive("rotations.py", tmp_path, ROTATIONS[part], 20261121 + part, capsys)
    assert result["records"] > ROTATIONS[part]


@pytest.mark.parametrize("part", range(len(READINGS)))
def test_reading_with_threads(tmp_path, capsys, part):
    result = survive("threads.py", tmp_path, READINGS[part], 20261122 + part, capsys)
    assert result["records"] > 1_000 * READINGS[part]
