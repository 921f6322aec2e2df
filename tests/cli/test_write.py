"""`cordwood write`, as no console session shows it: when records arrive, and how long they may be."""

import io
import os
import select
import subprocess
import sys
import time

import pytest
import reference
from interrupts import HANG

from cordwood.cli import _framing


class Pipe(io.BytesIO):
    """Returns at most 64 KiB at a time."""

    def read1(self, size):
        return super().read1(min(size, 1 << 16))


COMMAND = [sys.executable, "-m", "cordwood", "write"]


@pytest.mark.parametrize("record", [b"one", bytes(70_000)], ids=["short", "long"])
def test_write_flushes_records_before_waiting_for_input(record, tmp_path):
    path = tmp_path / "log"
    expected = reference.encode([record])
    with subprocess.Popen([*COMMAND, "--format", "nul", path], stdin=subprocess.PIPE) as process:
        process.stdin.write(record.replace(b"\0", b"x") + b"\0")
        process.stdin.flush()
        until = time.monotonic() + HANG
        while not (path.exists() and path.stat().st_size == len(expected)):
            assert time.monotonic() < until
            time.sleep(0.01)
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(HANG) == 0


def test_write_flushes_stdout_before_waiting_for_input():
    with subprocess.Popen([*COMMAND, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for record in (b"one", b"three"):
            process.stdin.write(record + b"\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], HANG)[0]
            assert process.stdout.read(7 + len(record))[7:] == record
        process.stdin.close()
        assert (process.stdout.read(), process.wait(HANG)) == (b"", 0)


def test_write_exits_quietly_if_a_named_pipe_loses_its_reader(tmp_path):
    """As with stdout: no message, and the status of a closed pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(
        [*COMMAND, "--overwrite", pipe], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        with pipe.open("rb") as reader:
            process.stdin.write("one\n")
            process.stdin.flush()
            assert reader.read(10)[7:] == b"one"
        _, err = process.communicate("two\n", timeout=HANG)
    assert (process.returncode, err) == (141, "")


@pytest.mark.parametrize("form", ["lines", "nul"])
def test_write_rejects_records_over_the_length_limit(form, monkeypatch):
    assert _framing.RECORD_LEN_MAX == 1 << 30
    monkeypatch.setattr(_framing, "RECORD_LEN_MAX", 200_000)
    delimiter = {"lines": b"\n", "nul": b"\0"}[form]

    def records(*lens):
        stream = Pipe(b"".join(b"x" * length + delimiter for length in lens))
        return [record for some in _framing.records_from(stream, form) for record in some]

    assert [len(record) for record in records(100_000, 200_000, 5)] == [100_000, 200_000, 5]
    with pytest.raises(ValueError, match="a record on stdin is longer than 200000 bytes; is the --format right"):
        records(5, 600_000, 5)
