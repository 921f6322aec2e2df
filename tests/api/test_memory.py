"""How much memory reading and writing need, each measured in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import HELPERS

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")

MIB = 1 << 20

# The start of each script.
PRELUDE = """
import json, struct, sys
sys.path.append(sys.argv[1])
from pathlib import Path
import cordwood
from process import peak_len

MIB = 1 << 20

class Repeated:
    '''A source: `head` once, and `chunk` over and over, `len_` bytes together.'''

    def __init__(self, head, chunk, len_):
        self.rest, self.chunk, self.left, self.taken = memoryview(head), memoryview(chunk), len_, 0

    def read(self, size):
        self.rest = self.rest or self.chunk
        piece = self.rest[:min(size, self.left)]
        self.rest = self.rest[len(piece):]
        self.left -= len(piece)
        self.taken += len(piece)
        return piece

def fragment(kind, payload):
    crc = cordwood.mask_crc(cordwood.crc32c(payload, cordwood.crc32c(bytes([kind]))))
    return struct.pack("<IHB", crc, len(payload), kind) + payload
"""


def run(script, *arguments):
    # The process is the same Python with the same package; the script is one of those below.
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script, HELPERS, *map(str, arguments)],
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


READ = """
import io
before = peak_len()
sink = io.BytesIO()
with cordwood.open(sink, "w") as writer:
    for length in (20_000, 100, 70_000, 0, 32_761, 1_000) * 10:
        writer.append(bytes(length))
    # A last record fills the last block, so that chunks may follow each other.
    writer.append(bytes(32_768 - writer.tell() % 32_768 - 7))
chunk = sink.getvalue()
assert len(chunk) % 32_768 == 0
chunks = (4 << 30) // len(chunk)
source = Repeated(b"", chunk, chunks * len(chunk))

count = 0
with cordwood.open(source) as reader:
    for record in reader:
        count += 1
    assert (reader.outcome.kind, reader.outcome.offset, reader.skipped) == ("clean", chunks * len(chunk), ())
print(json.dumps({"count": count, "expected": chunks * 61, "len": chunks * len(chunk), "growth": peak_len() - before}))
"""


def test_reading_four_gigabytes_uses_little_memory(capsys):
    result = run(READ)
    with capsys.disabled():
        print(f"[4 GiB read: peak memory grew by {result['growth'] / MIB:.1f} MiB]", end=" ")  # noqa: T201
    assert result["len"] > 0.99 * (4 << 30)
    assert result["count"] == result["expected"]
    assert result["growth"] < 32 * MIB


ENDLESS = """
middle = fragment(3, bytes(32_761))
source = Repeated(fragment(2, bytes(32_761)), middle * 32, 1 << 30)

before = peak_len()
reader = cordwood.open(source, record_len_max=16 * MIB)
try:
    next(reader)
except cordwood.RecordTooLargeError as error:
    taken, length = source.taken, error.length
assert next(reader, None) is None
[too_large, rest] = reader.skipped
assert (too_large.reason, rest.reason) == ("record_too_large", "too_large_rest")
assert (too_large.offset, too_large.end_offset, rest.offset, rest.end_offset) == (0, length, length, 1 << 30)
print(json.dumps({"taken": taken, "length": length, "growth": peak_len() - before}))
"""


def test_an_endless_record_is_rejected_early(capsys):
    result = run(ENDLESS)
    with capsys.disabled():
        print(f"[endless record: peak memory grew by {result['growth'] / MIB:.1f} MiB]", end=" ")  # noqa: T201
    assert 16 * MIB < result["length"] <= result["taken"] <= 18 * MIB
    assert result["growth"] < 2 * 16 * MIB + 32 * MIB


HOSTILE = """
# Seven bytes each, never two alike in a row: so many regions that a list of all would take twenty times the file.
pair = fragment(77, b"") + fragment(78, b"")
block = pair * 2340 + fragment(77, b"") + b"\\x01"
assert len(block) == 32_768
file = Repeated(b"", block * 16, 16 * MIB)
before = peak_len()
with cordwood.open(file, on_corruption="skip") as reader:
    assert list(reader) == []
growth = peak_len() - before
print(json.dumps({"listed": len(reader.skipped), "skipped_len": reader.skipped_len, "growth": growth}))
"""


def test_the_list_of_damaged_regions_is_bounded():
    result = run(HOSTILE)
    assert result["listed"] == 100_000
    assert result["skipped_len"] == 16 * MIB
    assert result["growth"] < 32 * MIB


WRITE = """
class Null:
    taken = 0
    def write(self, data):
        self.taken += len(data)

sink = Null()
records = [bytes(length) for length in (20_000, 100, 70_000, 0, 32_761, 1_000)]
before = peak_len()
with cordwood.open(sink, "w") as writer:
    while writer.tell() < 1 << 30:
        writer.extend(records)
print(json.dumps({"taken": sink.taken, "growth": peak_len() - before}))
"""


def test_writing_a_gigabyte_uses_little_memory():
    result = run(WRITE)
    assert result["taken"] >= 1 << 30
    assert result["growth"] < 32 * MIB


CLOSED = """
import tempfile
with tempfile.TemporaryDirectory() as directory:
    before, writers = peak_len(), []
    for number in range(100):
        writers.append(cordwood.open(Path(directory, str(number)), "x"))
        writers[-1].append(bytes(MIB // 2))
        writers[-1].close()
    print(json.dumps({"growth": peak_len() - before}))
"""


def test_closing_writers_frees_their_memory():
    assert run(CLOSED)["growth"] < 16 * MIB


OPENED = """
log = fragment(1, b"one")
readers = []
for number in range(400):
    if number == 100:
        before = peak_len()
    readers.append(cordwood.open(log))
    assert next(readers[-1]) == b"one"
    readers[-1].close()
print(json.dumps({"growth": peak_len() - before}))
"""


def test_closing_readers_frees_their_memory():
    assert run(OPENED)["growth"] < MIB


DAMAGED = """
block = fragment(1, bytes(32_761))
good_and_bad = block + bytes([block[0] ^ 1]) + block[1:]
source = Repeated(b"", good_and_bad * 16, 1 << 30)
before = peak_len()
count = 0
with cordwood.open(source) as reader:
    while True:
        try:
            if next(reader, None) is None:
                break
            count += 1
        except cordwood.CorruptionError:
            count += 1
print(json.dumps({"count": count, "growth": peak_len() - before}))
"""


def test_reading_a_file_full_of_damage_uses_little_memory():
    result = run(DAMAGED)
    assert result["count"] == 1 << 15
    assert result["growth"] < 32 * MIB


APPEND = """
import resource
from bombs import CONTAINER_KINDS, LONGEST, encode_record
from packed_reference import mark
path = Path(sys.argv[2])
path.write_bytes(mark(1) + encode_record(LONGEST, len(mark(1)), CONTAINER_KINDS))
before = peak_len()
try:
    cordwood.open(path, "a", record_len_max=1_000, on_torn_tail="truncate").close()
except cordwood.CordwoodError:
    pass
print(json.dumps(peak_len() - before))
"""


def test_opening_for_append_ignores_the_length_stated_in_a_compressed_frame(tmp_path):
    assert run(APPEND, tmp_path / "some.log") < 64 * MIB


MANY = """
import pyarrow
directory = Path(sys.argv[2])
log = fragment(1, bytes(100)) * 5
for index in range(4_000):
    (directory / f"{index:04}.log").write_bytes(log)
    if index == 1:
        # This loads the modules.
        pyarrow.table(cordwood.scan(directory))
before = peak_len()
table = pyarrow.table(cordwood.scan(directory))
print(json.dumps({"rows": len(table), "growth": peak_len() - before}))
"""


def test_building_a_table_from_many_short_logs_uses_little_memory(tmp_path, capsys):
    """And not for the block that each batch has room for, which would be 200 MiB."""
    pytest.importorskip("pyarrow")
    result = run(MANY, tmp_path)
    with capsys.disabled():
        print(f"[4,000 logs: peak memory grew by {result['growth'] / MIB:.1f} MiB]", end=" ")  # noqa: T201
    assert result["rows"] == 20_000
    assert result["growth"] < 64 * MIB
