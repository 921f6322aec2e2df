"""The quick ways through `Reader.__next__` and `Writer.append` give what PyO3's own functions give.

They are in the binding's `bytes.rs`. `Reader.__next__` called by its name is PyO3's function, and so is `append` with a
keyword; `next` and a plain `append` take the quick ways.
"""

import subprocess
import sys

import pytest
import reference
from reference import BLOCK_LEN, fragment
from support import PAYLOAD

import cordwood

# Around the pieces of a copy, the end of a block, and more than the writer's buffer.
LENGTHS = [0, 1, 16, 2047, 2048, 2049, 30_000, 70_000, 0, 5, BLOCK_LEN - 14, 3, (1 << 20) + 7, 100, *range(300)]
RECORDS = [PAYLOAD[:length] if length <= len(PAYLOAD) else bytes(length) for length in LENGTHS]
FILE = reference.encode(RECORDS)

DAMAGE = [
    FILE,
    FILE[:-1],
    FILE[:50_000] + b"\xff" + FILE[50_001:],
    fragment(9, b"unknown") + FILE,
    FILE + b"\0" * 100,
    b"",
]


def told(step, reader):
    """Each record with the position behind it, then how it ended."""
    records = []
    while True:
        try:
            record = step(reader)
        except StopIteration:
            return records, reader.end, list(reader.skipped)
        except cordwood.CorruptionError as error:
            return records, str(error), error.offset
        records.append((record, reader.tell()))


@pytest.mark.parametrize("on_corruption", ["raise", "skip", "salvage", "stop"])
@pytest.mark.parametrize("file", DAMAGE)
def test_next(file, on_corruption):
    quick, named = (cordwood.open(file, on_corruption=on_corruption) for _ in range(2))
    # Not in one line: pytest would take minutes to show how they differ.
    is_same = told(next, quick) == told(cordwood.Reader.__next__, named)
    assert is_same


def test_both_ways_of_next_share_one_position():
    with cordwood.open(FILE) as reader:
        ways = [next, cordwood.Reader.__next__]
        is_same = [ways[number % 2](reader) for number in range(len(RECORDS))] == RECORDS
    assert is_same


def test_next_of_a_reader_that_is_closed():
    reader = cordwood.open(FILE)
    assert next(reader) == RECORDS[0]
    reader.close()
    for step in (next, cordwood.Reader.__next__):
        with pytest.raises(ValueError, match="the reader is closed"):
            step(reader)


def test_append(tmp_path):
    quick, named = tmp_path / "quick.log", tmp_path / "named.log"
    with cordwood.open(quick, "x") as writer:
        offsets = [writer.append(record) for record in RECORDS]
    with cordwood.open(named, "x") as writer:
        assert [writer.append(record, sync=False) for record in RECORDS] == offsets
    assert offsets == reference.record_offsets(RECORDS)
    is_same = quick.read_bytes() == named.read_bytes() == FILE
    assert is_same


def test_append_of_other_bytes_and_to_an_object(tmp_path):
    class Bytes(bytes):
        pass

    with cordwood.open(tmp_path / "some.log", "x") as writer:
        for record in (b"abc", Bytes(b"abc"), bytearray(b"abc"), memoryview(b"abc")):
            writer.append(record)
    assert (tmp_path / "some.log").read_bytes() == reference.encode([b"abc"] * 4)
    with (tmp_path / "other.log").open("xb") as file, cordwood.Writer(file) as writer:
        assert [writer.append(b"abc") for _ in range(3)] == [0, 10, 20]
    assert (tmp_path / "other.log").read_bytes() == reference.encode([b"abc"] * 3)


def test_append_syncs_when_asked(tmp_path):
    with cordwood.open(tmp_path / "some.log", "x") as writer:
        writer.append(b"abc")
        assert writer.durable_offset == 0
        writer.append(b"abc", sync=True)
        assert writer.durable_offset == 20
    with cordwood.open(tmp_path / "other.log", "x", sync="append") as writer:
        writer.append(b"abc")
        assert writer.durable_offset == 10


def test_append_refuses_what_it_refuses_by_name(tmp_path):
    writer = cordwood.open(tmp_path / "some.log", "x")
    for arguments, keywords in [
        ((), {}),
        ((b"a", b"b"), {}),
        ((b"a",), {"none": 1}),
        ((), {"record": b"a"}),
        (("a",), {}),
        ((None,), {}),
    ]:
        with pytest.raises(TypeError):
            writer.append(*arguments, **keywords)
    assert writer.tell() == 0
    writer.close()
    for keywords in ({}, {"sync": False}):
        with pytest.raises(ValueError, match="the writer is closed"):
            writer.append(b"a", **keywords)


def test_neither_takes_what_is_not_its_own(tmp_path):
    """The quick ways look at the object's memory without asking what it is.

    Python has to make sure, and nobody can derive from the classes.
    """
    with cordwood.open(tmp_path / "some.log", "x") as writer, cordwood.open(FILE) as reader:
        for wrong in (object(), b"abc", reader):
            with pytest.raises(TypeError):
                cordwood.Writer.append(wrong, b"abc")
        for wrong in (object(), b"abc", writer):
            with pytest.raises(TypeError):
                cordwood.Reader.__next__(wrong)
    for base in (cordwood.Reader, cordwood.Writer):
        with pytest.raises(TypeError):
            type("Derived", (base,), {})


def test_the_module_can_be_imported_anew(tmp_path):
    code = f"""
import sys, cordwood
first = cordwood.open({str(tmp_path / "some.log")!r}, "x")
for name in [name for name in sys.modules if name.startswith("cordwood")]:
    del sys.modules[name]
import cordwood
first.append(b"one")
first.append(b"two", sync=True)
first.close()
print(list(cordwood.open({str(tmp_path / "some.log")!r})))
"""
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert (result.stdout, result.stderr) == ("[b'one', b'two']\n", "")
