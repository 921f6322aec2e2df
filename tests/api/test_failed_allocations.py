"""One allocation of Python fails: that raises `MemoryError`, and no record is lost.

A thread of pytest-xdist could meet that failure in place of the test, so each test runs in a process of its own.
"""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import reference
from reference import HEADER_LEN

import cordwood

_testcapi = pytest.importorskip("_testcapi")

# Blocks with a run of records, a record on its own, one in several fragments, and one that is longer than a window.
KEPT = [bytes([number]) * length for number, length in enumerate([5, 500, 5, 5000, 50_000, 5, 300_000, 5, 5])]
ITERATORS = {
    "next(reader)": cordwood.Reader,
    "iter(reader)": lambda path: iter(cordwood.Reader(path)),
    "records()": lambda path: cordwood.Reader(path).records(),
    "record_batches()": lambda path: cordwood.Reader(path).record_batches(target_len=0),
    "record_batches() of several": lambda path: cordwood.Reader(path).record_batches(target_len=100_000),
    "record_batches(threads=2)": lambda path: cordwood.Reader(path).record_batches(target_len=32_768, threads=2),
    "iter(batch)": lambda path: iter(next(cordwood.Reader(path).record_batches(target_len=1 << 30))),
    "next(follower)": lambda path: cordwood.follow(path, timeout=0),
    "follower.records()": lambda path: cordwood.follow(path, timeout=0).records(),
    "follower.poll()": lambda path: iter(cordwood.follow(path).poll, None),
    "fragments": cordwood.fragments,
}


def check_steps(path, name):
    """In each step, the nth allocation fails; then the step is repeated."""
    # Threads read parts of at least 1 MiB.
    path.write_bytes(reference.encode(KEPT * (30 if "threads" in name else 2)))
    expected = [list(item) if "batches" in name else item for item in ITERATORS[name](path)]
    for nth in range(12):
        items, found, failed = ITERATORS[name](path), [], 0
        while True:
            try:
                _testcapi.set_nomemory(nth, nth + 1)
                item = next(items, None)
            except MemoryError:
                _testcapi.remove_mem_hooks()
                failed += 1
                item = next(items, None)
            finally:
                _testcapi.remove_mem_hooks()
            if item is None:
                break
            found.append(list(item) if "batches" in name else item)
        # A step needs at least one allocation. The fast path of `next` tries twice.
        assert failed > 0 or nth > 0 or name in ("next(reader)", "iter(reader)", "iter(batch)")
        assert found == expected, nth
        if "fragments" not in name:
            assert len(found) > 1


def append_without_memory(writer):
    try:
        _testcapi.set_nomemory(0, 1)
        writer.append(b"appended")
    finally:
        _testcapi.remove_mem_hooks()


def check_append(path):
    with cordwood.open(path, "w") as writer:
        writer.append(bytes(1000))
        before = writer.tell()
        with pytest.raises(MemoryError):
            append_without_memory(writer)
        assert writer.tell() == before + HEADER_LEN + 8
    assert list(cordwood.Reader(path)) == [bytes(1000), b"appended"]


def run(*arguments):
    command, env = [sys.executable, __file__, *arguments], os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=150, check=False)
    assert (done.returncode, done.stdout) == (0, "checked\n"), done.stderr


@pytest.mark.parametrize("name", ITERATORS)
def test_an_allocation_that_fails_loses_no_record(name, tmp_path):
    run(tmp_path / "some.log", name)


def test_append_whose_offset_cannot_be_allocated_has_appended(tmp_path):
    run(tmp_path / "example.log")


if __name__ == "__main__":
    # The garbage collector of Python would report a failure of its own.
    gc.disable()
    check_append(Path(sys.argv[1])) if len(sys.argv) == 2 else check_steps(Path(sys.argv[1]), sys.argv[2])
    print("checked")  # noqa: T201
