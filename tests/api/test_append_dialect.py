"""Appending to an existing file: in that file's dialect, and never at the cost of its contents."""

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import judge
import packed_reference
import pytest
import reference
from reference import BLOCK_LEN
from support import PAYLOAD

import cordwood

POLICIES = ["refuse", "truncate", "pad"]
NUMBERED = {"dialect": "recyclable", "log_number": 7}
COMPRESSED = {"dialect": "rocksdb", "compression": "zstd"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.log"


def make(path, dialect, records):
    options = dialect if isinstance(dialect, dict) else {"dialect": dialect}
    with cordwood.open(path, "w", **options) as writer:
        writer.extend(records)
    return path.read_bytes()


# Zeros in the records look like the traces of a crash.
WITH_ZEROS = [bytes(1200)] * 100


# Files of another dialect ------------------------------------------------------------------------


@pytest.mark.parametrize("on_torn_tail", POLICIES)
@pytest.mark.parametrize("named", [None, "auto", "the dialect"])
@pytest.mark.parametrize("records", [WITH_ZEROS, [b"one"], [PAYLOAD[:100_000], b""]], ids=["zeros", "one", "long"])
@pytest.mark.parametrize("dialect", ["leveldb", "wandb", "swanlab"])
def test_appending_preserves_the_dialect_of_the_file(path, dialect, records, named, on_torn_tail):
    before = make(path, dialect, records)
    name = dialect if named == "the dialect" else named
    with cordwood.open(path, "a", dialect=name, on_torn_tail=on_torn_tail) as writer:
        assert writer.discarded_tail is None
        assert writer.append(b"new") >= len(before)
    data = path.read_bytes()
    assert data.startswith(before)
    assert [record.data for record in judge.records_in(data, dialect)] == [*records, b"new"]
    assert list(cordwood.open(path)) == [*records, b"new"]


@pytest.mark.parametrize("on_torn_tail", ["truncate", "pad"])
@pytest.mark.parametrize("dialect", ["wandb", "swanlab"])
def test_appending_preserves_the_dialect_of_a_torn_file(path, dialect, on_torn_tail):
    path.write_bytes(make(path, dialect, [b"one", PAYLOAD[:1000]])[:-10])
    with cordwood.open(path, "a", on_torn_tail=on_torn_tail) as writer:
        assert writer.discarded_tail.reason == "torn_tail"
        writer.append(b"new")
    assert list(cordwood.open(path, on_corruption="skip")) == [b"one", b"new"]
    if on_torn_tail == "truncate":
        assert [record.data for record in judge.records_in(path.read_bytes(), dialect)] == [b"one", b"new"]


def test_a_new_file_defaults_to_the_leveldb_dialect(path):
    with cordwood.open(path, "a", dialect="auto") as writer:
        writer.append(b"one")
    assert path.read_bytes() == reference.encode([b"one"])


@pytest.mark.parametrize("on_torn_tail", POLICIES)
@pytest.mark.parametrize(
    ("dialect", "named"),
    [("leveldb", "wandb"), ("leveldb", "swanlab"), ("wandb", "leveldb"), ("wandb", "swanlab"), ("swanlab", "leveldb")],
)
@pytest.mark.parametrize("records", [WITH_ZEROS, [b"one"]], ids=["zeros", "one"])
def test_append_dialect_errors_name_the_dialect_of_the_file(path, dialect, named, records, on_torn_tail):
    before = make(path, dialect, records)
    with pytest.raises(cordwood.DialectError, match=dialect) as caught:
        cordwood.open(path, "a", dialect=named, on_torn_tail=on_torn_tail).close()
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


# Logs of engines that never append -----------------------------------------------------------------


NEVER_APPENDED = {
    "pebble": {"dialect": "pebble", "log_number": 7},
    "recyclable": NUMBERED,
    "rocksdb": {"dialect": "rocksdb", "log_number": 7},
    "zstd": COMPRESSED,
    "zstd and log number": {"dialect": "rocksdb", "log_number": 7, "compression": "zstd"},
}


@pytest.mark.parametrize("on_torn_tail", POLICIES)
@pytest.mark.parametrize("named", [False, True], ids=["not named", "named"])
@pytest.mark.parametrize("records", [WITH_ZEROS, [b"one"]], ids=["zeros", "one"])
@pytest.mark.parametrize("name", NEVER_APPENDED)
def test_rejects_appending_to_logs_of_engines_that_never_append(path, name, records, named, on_torn_tail):
    """It is refused, but not reported as damaged; no byte is written where no reader looks."""
    dialect = NEVER_APPENDED[name]
    before = make(path, dialect, records)
    with pytest.raises((cordwood.DialectError, ValueError), match="never appended to"):
        cordwood.open(path, "a", on_torn_tail=on_torn_tail, **(dialect if named else {})).close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("dialect", [NUMBERED, COMPRESSED], ids=["log number", "zstd"])
def test_a_rejected_open_does_not_create_a_file(path, dialect):
    with pytest.raises((cordwood.DialectError, ValueError), match="never appended to") as caught:
        cordwood.open(path, "a", **dialect).close()
    assert ("log number" in str(caught.value)) == (dialect == NUMBERED)
    assert not path.exists()


@pytest.mark.parametrize("dialect", ["rocksdb", "pebble", "recyclable"])
@pytest.mark.parametrize("records", [[], [b"one", PAYLOAD[:50_000]]], ids=["new", "there"])
def test_unnumbered_records_have_the_same_bytes_as_in_leveldb(path, dialect, records):
    """The named dialect can read LevelDB's records, and writes the same bytes."""
    if records:
        path.write_bytes(reference.encode(records))
    with cordwood.open(path, "a", dialect=dialect) as writer:
        writer.append(b"new")
    assert path.read_bytes().startswith(reference.encode([*records, b"new"]))
    assert list(cordwood.open(path)) == [*records, b"new"]


# Files that are not logs -------------------------------------------------------------------------


def foreign_files():
    text = b"".join(b"%d a line of a text file\n" % number for number in range(3000))
    library = Path(reference.crc32c.__self__.__file__).read_bytes()
    return {
        "a short text": text[:2050],
        "a text of a line": text[:20],
        "a text": text,
        "a program": library,
        "the start of a program": library[:20_000],
        "gzip": gzip.compress(text, mtime=1_700_000_000),
        "PNG": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + PAYLOAD[:3000] + bytes(1000),
        "random": PAYLOAD[:10_000],
        "random and zeros": PAYLOAD[:1_000] + bytes(2_000),
        "LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 123\n" % 1,
    }


@pytest.mark.parametrize("on_torn_tail", ["refuse", "truncate"])
@pytest.mark.parametrize("name", foreign_files())
def test_a_file_without_valid_fragments_is_not_truncated(path, name, on_torn_tail):
    before = foreign_files()[name]
    path.write_bytes(before)
    with pytest.raises(cordwood.CordwoodError) as caught:
        cordwood.open(path, "a", on_torn_tail=on_torn_tail).close()
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("length", [1, 6, 7, 8, 100, 5_006])
def test_a_torn_first_record_is_truncated(path, length):
    path.write_bytes(reference.encode([PAYLOAD[:5000]])[:length])
    with cordwood.open(path, "a", on_torn_tail="truncate") as writer:
        assert writer.discarded_tail.length == length
        writer.append(b"new")
    assert path.read_bytes() == reference.encode([b"new"])


@pytest.mark.parametrize("length", range(1, 17))
def test_a_torn_first_record_of_a_run_file_is_truncated(path, length):
    path.write_bytes(make(path, "wandb", [PAYLOAD[:5000]])[:length])
    with cordwood.open(path, "a", dialect="wandb", on_torn_tail="truncate") as writer:
        writer.append(b"new")
    assert [record.data for record in judge.records_in(path.read_bytes(), "wandb")] == [b"new"]


def contents():
    whole = reference.encode([b"one", PAYLOAD[:50_000]])
    return foreign_files() | {
        "leveldb": whole,
        "leveldb, torn": whole[:-5],
        "leveldb, damaged": whole[:9] + b"?" + whole[10:],
        "leveldb, zeros": whole + bytes(5000),
        "zeros": bytes(5000),
        "blocks of zeros": bytes(3 * BLOCK_LEN),
        "the start of a header": whole[:4],
        "the start of a file header": b":W&",
        "a file header": bytes.fromhex("3a572642e1be00"),
        "a file header and zeros": bytes.fromhex("3a572642e1be00") + bytes(500),
        "a damaged file header": bytes.fromhex("3a572642e1be01") + bytes(500),
    }


def numbered(path):
    for name, dialect in NEVER_APPENDED.items():
        whole = make(path, dialect, [b"one", PAYLOAD[:50_000]])
        yield name, whole
        yield f"{name}, torn", whole[:-20]
        yield f"{name}, zeros", whole + bytes(50_000)


def test_appended_records_can_be_read_back(path):
    """For every file, a writer that opens it appends where readers look, and keeps every byte."""
    for name, before in [*contents().items(), *numbered(path)]:
        path.write_bytes(before)
        try:
            writer = cordwood.open(path, "a", on_torn_tail="pad")
        except (cordwood.CordwoodError, ValueError):
            assert path.read_bytes() == before, name
            continue
        with writer:
            writer.append(b"what is appended")
        assert path.read_bytes().startswith(before), name
        assert list(cordwood.open(path, on_corruption="skip"))[-1:] == [b"what is appended"], name


@pytest.mark.parametrize("dialect", ["wandb", {"dialect": "pebble", "log_number": 3}], ids=["wandb", "pebble"])
@pytest.mark.parametrize("on_torn_tail", ["truncate", "pad"])
def test_the_write_command_follows_the_same_append_rules_as_the_library(path, dialect, on_torn_tail):
    before = make(path, dialect, WITH_ZEROS)
    command = [sys.executable, "-m", "cordwood", "write", "--append", "--on-torn-tail", on_torn_tail, path]
    done = subprocess.run(command, input=b"more\n", capture_output=True, check=False, timeout=120)
    if dialect == "wandb":
        assert done.returncode == 0, done.stderr.decode()
        assert [record.data for record in judge.records_in(path.read_bytes(), "wandb")] == [*WITH_ZEROS, b"more"]
    else:
        assert done.returncode == 1
        assert b"never appended to" in done.stderr
        assert path.read_bytes() == before


# Flipped bits ------------------------------------------------------------------------------------


PAGE = PAYLOAD[:50] + bytes(4_000) + PAYLOAD[50:96]
LAST_RECORDS = {
    "random": PAYLOAD[:3000],
    "nothing": b"",
    "600 zeros": bytes(600),
    "2,000 zeros": bytes(2000),
    "random, then zeros": PAYLOAD[:1500] + bytes(1500),
    "a page of a database": PAGE,
    "many blocks": PAYLOAD[:40_000] + bytes(1100) + PAYLOAD[40_000:100_000],
    "5,000 zeros": bytes(5000),
}


@pytest.mark.parametrize("name", LAST_RECORDS)
def test_append_treats_a_flipped_bit_in_the_last_record_as_damage(path, name):
    """It may have been synced. With any zeros in the record, no crash leaves it like this."""
    start = reference.encode([b"one", b"two", b"three"])
    whole = start + reference.encode([LAST_RECORDS[name]], len(start))
    # Every bit of the header, and a sample of the others.
    bits = [
        *range(8 * len(start), 8 * (len(start) + 7)),
        *range(8 * (len(start) + 7), 8 * len(whole), len(whole) // 20),
    ]
    for bit in bits:
        file = bytearray(whole)
        file[bit // 8] ^= 1 << bit % 8
        path.write_bytes(file)
        with pytest.raises(cordwood.CorruptionError):
            cordwood.open(path, "a", on_torn_tail="truncate").close()
        assert path.read_bytes() == file, bit


def test_append_does_not_mistake_an_unwritten_sector_for_a_flipped_bit(path):
    whole = reference.encode([b"one", PAYLOAD[:5000]])
    file = bytearray(whole)
    file[1024:1536] = bytes(512)
    path.write_bytes(file)
    with cordwood.open(path, "a", on_torn_tail="truncate") as writer:
        writer.append(b"new")
    assert path.read_bytes() == reference.encode([b"one", b"new"])


# The end of the process ----------------------------------------------------------------------------


ENDS = {
    "returns": (0, "pass"),
    "an exception": (1, "raise KeyError"),
    "os._exit": (1, "os._exit(1)"),
    "SIGTERM": (-signal.SIGTERM, "os.kill(os.getpid(), signal.SIGTERM)"),
    "SIGKILL": (-signal.SIGKILL, "os.kill(os.getpid(), signal.SIGKILL)"),
    "SIGABRT": (-signal.SIGABRT, "os.abort()"),
}


@pytest.mark.parametrize("mode", ["x", "w", "a"])
@pytest.mark.parametrize("how", ENDS)
def test_by_default_appended_records_survive_a_program_crash(path, mode, how):
    """The program neither closes nor flushes the writer."""
    status, statement = ENDS[how]
    script = f"""
import os, resource, signal, sys, cordwood
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
writer = cordwood.open(sys.argv[1], "{mode}")
for number in range(1000):
    writer.append(b"%d" % number)
{statement}
"""
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, check=False, timeout=120)
    assert done.returncode == status, done.stderr.decode()
    assert path.read_bytes() == reference.encode([b"%d" % number for number in range(1000)])


def test_with_flush_on_close_records_stay_buffered_until_close(path):
    with cordwood.open(path, "w", flush="close") as writer:
        writer.append(b"one")
        assert path.read_bytes() == b""
        writer.flush()
        assert path.read_bytes() == reference.encode([b"one"])
        writer.append(b"two")
        assert path.read_bytes() == reference.encode([b"one"])
    assert path.read_bytes() == reference.encode([b"one", b"two"])


@pytest.mark.parametrize("options", [{}, {"flush": "append"}])
def test_with_flush_on_append_each_record_is_written_immediately(path, options):
    records = [b"one", b"", PAYLOAD[:100_000], bytes(BLOCK_LEN), b"two"]
    with cordwood.open(path, "w", **options) as writer:
        for count, record in enumerate(records, 1):
            writer.append(record)
            assert path.read_bytes() == reference.encode(records[:count])
        writer.extend([b"three"] * 1000)
        assert path.read_bytes() == reference.encode([*records, *[b"three"] * 1000])


def test_rejects_an_unknown_flush_value(path):
    with pytest.raises(ValueError, match="flush"):
        cordwood.open(path, "w", flush="sometimes")
    assert not os.path.lexists(path)


@pytest.mark.parametrize("segment_len", [None, 1 << 20])
@pytest.mark.parametrize("start", [b"torn by a crash"[:7], bytes(4_096)], ids=["torn mark", "zeros"])
def test_a_packed_log_with_padding_before_its_first_record_can_be_reopened(tmp_path, start, segment_len):
    path = tmp_path / "some"
    file = path
    options = {"dialect": "packed", "on_torn_tail": "pad", "segment_len": segment_len}
    if segment_len:
        path.mkdir()
        file = path / f"{0:020}.log"
    mark = packed_reference.mark(1)
    file.write_bytes(start if not any(start) else mark[: len(start)])
    for number in range(3):
        with cordwood.open(path, "a", **options) as writer:
            writer.append(b"%d" % number)
    dialect = reference.PACKED
    events = reference.events(file.read_bytes(), dialect=dialect)
    assert [event.data for event in events if isinstance(event, reference.Record)] == [b"0", b"1", b"2"]
