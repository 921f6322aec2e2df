"""One allocation of Python fails: that raises `MemoryError`, and no record is lost.

A thread of pytest-xdist could meet that failure in place of the test, so each test runs in a process of its own.
"""

import gc
import io
import itertools
import os
import subprocess
import sys
import traceback
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


class Unseekable:
    """An object that can only be read on."""

    def __init__(self, path):
        self.file = path.open("rb")

    def read(self, size):
        return self.file.read(size)


OBJECTS = {
    "a file": lambda path: path.open("rb"),
    "a file without a buffer": lambda path: path.open("rb", buffering=0),
    "bytes in memory": lambda path: io.BytesIO(path.read_bytes()),
    "an object that cannot seek": Unseekable,
}
STEPS = {
    "next(reader)": lambda reader: next(reader, None),
    "iter(reader)": lambda reader: next(iter(reader), None),
    "records()": lambda reader: next(reader.records(), None),
    "record_batches()": lambda reader: next(reader.record_batches(target_len=100_000), None),
}


def check_object(path, name):
    """As `check_steps`, for an object that is read.

    Some allocations are made once in a process, so each that fails has a process of its own.
    """
    path.write_bytes(reference.encode(KEPT * 2))
    statuses = set()
    for step, nth in itertools.product(STEPS.values(), range(30)):
        child = os.fork()
        if not child:
            try:
                os._exit(read_object(OBJECTS[name](path), step, nth))
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
                os._exit(1)
        statuses.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    assert statuses == ({READ, REFUSED} if name == "an object that cannot seek" else {READ})


READ, REFUSED = 0, 2


def read_object(source, step, nth):
    reader, found, failed = cordwood.Reader(source), [], 0
    while True:
        try:
            _testcapi.set_nomemory(nth, nth + 1)
            item = step(reader)
        except MemoryError:
            _testcapi.remove_mem_hooks()
            failed += 1
            try:
                item = step(reader)
            except OSError:
                assert found == (KEPT * 2)[: len(found)]
                with pytest.raises(OSError, match="there was no memory for bytes that it has returned"):
                    step(reader)
                return REFUSED
        finally:
            _testcapi.remove_mem_hooks()
        if item is None:
            break
        found += [item] if isinstance(item, bytes) else [item.data] if isinstance(item, cordwood.Record) else list(item)
    assert failed > 0 or nth > 0
    assert found == KEPT * 2
    assert reader.outcome.kind == "clean"
    return READ


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
def test_a_failed_allocation_does_not_lose_records(name, tmp_path):
    run(tmp_path / "some.log", name)


def test_a_record_is_not_lost_if_its_offset_cannot_be_allocated(tmp_path):
    run(tmp_path / "example.log")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", OBJECTS)
def test_a_failed_allocation_inside_an_object_does_not_lose_records(name, tmp_path):
    run(tmp_path / "some.log", name, "object")


if __name__ == "__main__":
    # The garbage collector of Python would report a failure of its own.
    gc.disable()
    check = {2: check_append, 3: check_steps, 4: lambda path, name, _: check_object(path, name)}[len(sys.argv)]
    check(Path(sys.argv[1]), *sys.argv[2:])
    print("checked")  # noqa: T201
