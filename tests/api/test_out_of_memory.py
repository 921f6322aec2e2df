"""Too little memory raises `MemoryError`; the process continues, and no record is lost."""

import os
import subprocess
import sys

import pytest
import reference
from reference import BLOCK_LEN, HEADER_LEN, fragment

import cordwood

resource = pytest.importorskip("resource", reason="memory cannot be limited here")
if not sys.platform.startswith("linux"):
    pytest.skip("the size of the process is read from /proc", allow_module_level=True)

MIB = 1 << 20
RECORD_LEN = 192 * MIB

# Enough for the windows of a few threads, but not for the record (`SMALL`), or not for two copies of it (`LARGE`).
SMALL, LARGE = 128 * MIB, 300 * MIB

SCRIPT = """
import os, resource, sys
import cordwood
path, room, is_compressed = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "zstd"

# What the process has now. Threads would take arenas of their own.
def measure():
    global used
    line, = (line for line in open("/proc/self/status") if line.startswith("VmSize"))
    used = int(line.split()[1]) << 10

def limit(room):
    resource.setrlimit(resource.RLIMIT_AS, (used + room if room else resource.RLIM_INFINITY, resource.RLIM_INFINITY))

def refused(call):
    limit(room)
    try:
        call()
    except MemoryError as error:
        pass
    else:
        sys.exit("no MemoryError")
    finally:
        limit(0)

measure()
{}
"""

READ = """
reader = cordwood.Reader(path)
assert next(reader) == b"first"
step = {}
for _ in range(2):
    refused(lambda: step(reader))
    assert reader.tell() == START, reader.tell()
records = list(reader)
assert [len(record) for record in records] == [RECORD_LEN, 4], [len(record) for record in records]
assert records[1] == b"last"
"""
STEPS = {
    "next": "next",
    "records": "lambda reader: next(reader.records())",
    "record_batches": "lambda reader: next(reader.record_batches())",
    "packs, 2 threads": "lambda reader: next(reader.record_batches(threads=2))",
}


def block_of(records):
    return b"".join(records).ljust(BLOCK_LEN, b"\0")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.log"
    with cordwood.open(path, "w") as writer:
        writer.extend([b"first", bytes(RECORD_LEN), b"last"])
    return path


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """A RocksDB log with a zstd frame of a few dozen bytes for each MiB that it states."""
    run = 128 << 10
    blocks = [(1 << 1 | run << 3).to_bytes(3, "little") + b"x"] * (RECORD_LEN // run)
    blocks[-1] = (1 | 1 << 1 | run << 3).to_bytes(3, "little") + b"x"
    frame = b"\x28\xb5\x2f\xfd\xe0" + RECORD_LEN.to_bytes(8, "little") + b"".join(blocks)
    plain = [
        b"\x28\xb5\x2f\xfd\x20" + bytes([len(data)]) + (1 | len(data) << 3).to_bytes(3, "little") + data
        for data in (b"first", b"last")
    ]
    path = tmp_path_factory.mktemp("bomb") / "bomb.log"
    compression = fragment(9, (7).to_bytes(4, "little"))
    path.write_bytes(compression + b"".join(fragment(1, data) for data in (plain[0], frame, plain[1])))
    return path


def run(path, script, room, kind="plain"):
    first = HEADER_LEN + 5 if kind == "plain" else 2 * HEADER_LEN + 4 + 14
    script = script.replace("START", str(first)).replace("RECORD_LEN", str(RECORD_LEN))
    # The helpers of the tests are on the path, too.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT.replace("{}", script, 1), path, str(room), kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("room", [SMALL, LARGE])
@pytest.mark.parametrize("step", STEPS)
def test_running_out_of_memory_for_a_long_record_raises_a_memory_error(log, step, room):
    if (step, room) == ("packs, 2 threads", LARGE):
        pytest.skip("with so much memory threads read it")
    run(log, READ.replace("{}", STEPS[step]), room)


@pytest.mark.parametrize("room", [SMALL, LARGE])
@pytest.mark.parametrize("step", STEPS)
def test_running_out_of_memory_for_a_compressed_record_raises_a_memory_error(bomb, step, room):
    run(bomb, READ.replace("{}", STEPS[step]), room, "zstd")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("function", ["verify", "stat"])
def test_verifying_or_summarizing_a_huge_compressed_record_raises_a_memory_error(bomb, function, threads):
    script = f"""
refused(lambda: cordwood.{function}(path, threads={threads}))
assert cordwood.{function}(path, threads={threads}).record_count == 3
"""
    run(bomb, script, SMALL, "zstd")


HOLD_NOTHING = {
    "verify": "assert cordwood.verify(path).payload_len == RECORD_LEN + 9",
    "verify, 2 threads": "assert cordwood.verify(path, threads=2).payload_len == RECORD_LEN + 9",
    "stat": "assert cordwood.stat(path).record_len_max == RECORD_LEN",
    "stat, 2 threads": "assert cordwood.stat(path, threads=2).record_len_max == RECORD_LEN",
    "append": "cordwood.open(path, 'a').close()",
}


@pytest.mark.parametrize("call", HOLD_NOTHING)
def test_calls_that_return_no_records_never_hold_a_whole_record_in_memory(log, call):
    run(log, f"limit(room)\n{HOLD_NOTHING[call]}", SMALL)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A log of many records, whose batches do not fit into `TIGHT`."""
    path = tmp_path_factory.mktemp("many") / "many.log"
    path.write_bytes(reference.encode([number.to_bytes(4, "little") * 250 for number in range(60_000)]))
    return path


TIGHT = 24 * MIB

# The steps that are kept have their places from the start, and the places their numbers: keeping one needs no
# memory.
KEEP = """
steps = STEPS
kept, failed = [None] * 70_000, 0
places = iter(list(range(len(kept))))
limit(room)
while True:
    try:
        step = next(steps, None)
    except MemoryError:
        failed += 1
        limit(0)
        continue
    if step is None:
        break
    kept[next(places)] = step
limit(0)
assert failed > 0
del kept[next(places):]
"""


@pytest.mark.parametrize("room", [TIGHT, TIGHT + 100_000, TIGHT + 200_000])
def test_batches_read_before_memory_runs_out_are_unchanged(many, room):
    script = """
records = [record for batch in kept for record in batch]
assert records == list(cordwood.open(path))
"""
    run(many, KEEP.replace("STEPS", "cordwood.open(path).record_batches()") + script, room)


@pytest.mark.parametrize("room", [2 * MIB, 2 * MIB + 20_000, 2 * MIB + 40_000])
def test_fragments_read_before_memory_runs_out_are_unchanged(many, room):
    script = "assert kept == list(cordwood.fragments(path))"
    run(many, KEEP.replace("STEPS", "cordwood.fragments(path)") + script, room)


# Each call copies the data once, or twice: then there is not enough memory for the second copy, either.
COPY_ONCE = {
    "appending a view": "cordwood.open(Sink(), 'w').append(view)",
    "record of a view": "cordwood.Record(offset=0, end_offset=RECORD_LEN, data=view)",
    "record of an array": "cordwood.Record(offset=0, end_offset=RECORD_LEN, data=array)",
    "appending several views": "cordwood.open(Sink(), 'w').extend([view])",
    "write batch of a view": "WriteBatch(memoryview(batch_record))",
    "version edit of a view": "VersionEdit(memoryview(edit_record))",
    "text of an entity": "entity.decode(text_record)",
    "bytes of an entity": "entity.decode(bytes_record)",
    "step of a write batch": "next(iter(WriteBatch(batch_record)))",
    "fields of a version edit": "edit.fields",
    "step of a version edit": "next(iter(edit))",
}
COPY_TWICE = {
    "write batch of operations": "WriteBatch.build(1, [operation])",
    "write batch as a dict": "WriteBatch(batch_record).to_dict()",
}
MAKE = """
import entities
from cordwood.payload import Operation, VersionEdit, WriteBatch, entity

class Sink:
    def write(self, data):
        return len(data)

data = bytes(RECORD_LEN)
call = {!r}
if "array" in call:
    array = bytearray(data)
if "view" in call:
    view = memoryview(data)
if "operation" in call:
    operation = Operation("put", key=b"key", value=data)
if "batch_record" in call:
    batch_record = bytes(8) + (1).to_bytes(4, "little") + b"\\1\\3key" + entities.varint(RECORD_LEN) + data
if "edit" in call:
    edit_record = b"\\1" + entities.varint(RECORD_LEN) + data
    edit = VersionEdit(edit_record)
if "text_record" in call:
    text_record = entities.entity([("kind", "name")], {{"text": data.decode()}})
if "bytes_record" in call:
    bytes_record = entities.entity([("kind", "name")], {{"bytes": data}})
measure()
refused(lambda: eval(call))
"""


@pytest.mark.parametrize("call", COPY_ONCE | COPY_TWICE)
def test_copying_data_raises_a_memory_error(call, tmp_path):
    run(tmp_path, MAKE.format((COPY_ONCE | COPY_TWICE)[call]), SMALL)


@pytest.mark.parametrize("call", COPY_TWICE)
def test_a_second_copy_of_data_raises_a_memory_error(call, tmp_path):
    run(tmp_path, MAKE.format(COPY_TWICE[call]), LARGE)


def test_salvage_never_holds_two_copies_of_a_record_in_memory(log, tmp_path):
    script = f"limit(room)\nassert cordwood.salvage(path, {str(tmp_path / 'clean.log')!r}).record_count == 3"
    run(log, script, LARGE)
    assert (tmp_path / "clean.log").read_bytes() == log.read_bytes()


def test_salvaging_a_compressed_record_too_large_for_memory_raises_a_memory_error(bomb, tmp_path):
    clean = str(tmp_path / "clean.log")
    script = f"""
refused(lambda: cordwood.salvage(path, {clean!r}))
assert os.listdir({str(tmp_path)!r}) == []
assert cordwood.salvage(path, {clean!r}).record_count == 3
assert list(map(len, cordwood.open({clean!r}))) == [5, RECORD_LEN, 4]
"""
    run(bomb, script, LARGE, "zstd")


@pytest.mark.parametrize("room", [SMALL, LARGE])
def test_a_follower_raises_a_memory_error_for_a_record_that_does_not_fit_in_memory(log, room):
    script = """
follower = cordwood.follow(path, timeout=0)
assert next(follower) == b"first"
for _ in range(2):
    refused(follower.poll)
    assert follower.tell() == START
assert [len(record) for record in follower] == [RECORD_LEN, 4]
"""
    run(log, script, room)


def test_appending_a_large_compressed_record_raises_a_memory_error(tmp_path):
    script = """
writer = cordwood.Writer(path, "w", dialect="rocksdb", compression="zstd", flush="close")
writer.append(b"first")
record = bytes(RECORD_LEN)
measure()
for append in (lambda: writer.append(record), lambda: writer.extend([record])):
    refused(append)
writer.append(b"last")
writer.close()
assert list(cordwood.open(path)) == [b"first", b"last"]
"""
    run(tmp_path / "new.log", script, SMALL)


# Each item has a cell in each of the fields that any item has: 8 bytes, and in this log 1,000 times more than its text.
NESTED = """
import pyarrow
table = cordwood.scan(path, decode="json")
assert table.columns == ("a",)
measure()
"""


def nested(path, counts):
    pytest.importorskip("pyarrow")
    with cordwood.open(path, "w") as writer:
        fields = ",".join(f'"k{number}":1' for number in range(999))
        writer.append(b'{"a":[{%s}]}' % fields.encode())
        writer.extend(b'{"a":[%s]}' % b",".join([b"{}"] * count) for count in counts)
    return path


def test_a_record_with_too_many_cells_raises_a_memory_error(tmp_path):
    script = "refused(lambda: list(pyarrow.RecordBatchReader.from_stream(table)))"
    run(nested(tmp_path / "one.log", [400_000]), NESTED + script, LARGE)


def test_records_with_many_cells_are_split_into_several_batches(tmp_path):
    script = """
limit(room)
assert [batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(table)] == [3] + [2] * 19
"""
    run(nested(tmp_path / "several.log", [4_000] * 40), NESTED + script, LARGE)
