"""A record is returned before the next one exists: no read happens while a record is at hand."""

import itertools
import os
import socket
import threading

import pytest
import reference
from support import PAYLOAD

import cordwood

# Around the edges of blocks, and longer than the bytes read at once.
RECORDS = [b"one", b"", PAYLOAD[:32_700], b"two", PAYLOAD[:40_000], b"\0" * 300_000, b"three", b"last"]


def parts():
    """The bytes that each record adds to the log."""
    ends = [len(reference.encode(RECORDS[:count])) for count in range(len(RECORDS) + 1)]
    log = reference.encode(RECORDS)
    return [log[start:end] for start, end in itertools.pairwise(ends)]


STEPS = {
    "next": lambda reader: reader,
    "iter": iter,
    "records": lambda reader: (record.data for record in reader.records()),
    "record_batches": lambda reader: (record for batch in reader.record_batches(target_len=0) for record in batch),
}


@pytest.mark.parametrize("dialect", ["leveldb", None])
@pytest.mark.parametrize("step", STEPS)
def test_returns_available_records_before_reading_the_file_object_again(step, dialect):
    class Source:
        written = b""

        def read(self, size):
            assert self.written, "read before the record was returned"
            read, self.written = self.written[:size], self.written[size:]
            return read

    source = Source()
    records = STEPS[step](cordwood.Reader(source, dialect=dialect))
    for part, record in zip(parts(), RECORDS, strict=True):
        source.written += part
        assert next(records) == record


# If a reader waited for more, this would be the time that the test takes to fail.
TIMEOUT = 120


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_pipes_and_sockets_deliver_each_record_before_the_next_is_written(kind, step):
    if kind == "pipe":
        receive, send = os.pipe()
        source, sink = os.fdopen(receive, "rb", buffering=0), os.fdopen(send, "wb", buffering=0)
    else:
        one, other = socket.socketpair()
        source, sink = one.makefile("rb", buffering=0), other.makefile("wb", buffering=0)
        one.close()
        other.close()
    returned = threading.Semaphore(0)
    found = []

    def read():
        for record in STEPS[step](cordwood.Reader(source, dialect="leveldb")):
            found.append(record)
            returned.release()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    for number, part in enumerate(parts()):
        written = 0
        while written < len(part):
            written += sink.write(part[written:])
        assert returned.acquire(timeout=TIMEOUT), f"record {number} was not returned before the next one was written"
        assert found == RECORDS[: number + 1]
    sink.close()
    thread.join(TIMEOUT)
    assert not thread.is_alive()
    source.close()


def test_a_follower_delivers_each_record_before_the_next_is_written(tmp_path):
    path = tmp_path / "live.log"
    path.write_bytes(b"")
    with cordwood.follow(path, timeout=0, dialect="leveldb") as follower, path.open("ab", buffering=0) as file:
        for part, record in zip(parts(), RECORDS, strict=True):
            assert follower.poll() is None
            file.write(part)
            assert follower.poll().data == record
