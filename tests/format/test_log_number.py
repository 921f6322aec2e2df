"""A log's number is the one that was named, or else that in its file's name, or else its first fragment's."""

from __future__ import annotations

import io
import random
import struct
import subprocess
import sys
from pathlib import Path

import crc32c
import pyarrow as pa
import pytest
import reference

import cordwood
from cordwood.types import Reason, Severity

BLOCK_LEN = 32_768


def write(path: Path, number: int, records: list[bytes]) -> bytes:
    """Writes a RocksDB log with this number, and returns its bytes."""
    with cordwood.open(path, "w", dialect="rocksdb", log_number=number) as writer:
        writer.extend(records)
    return path.read_bytes()


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """A file named for log 9 that contains log 6."""
    written = tmp_path / "000006.log"
    write(written, 6, [b"one", b"two"])
    return written.rename(tmp_path / "000009.log")


@pytest.mark.parametrize("mode", ["w", "x"])
def test_rejects_a_file_name_with_a_different_log_number(mode: str, tmp_path: Path) -> None:
    """Every reader would treat its records as stale."""
    path = tmp_path / "000009.log"
    text = "the records belong to log 6, but the file name says 9.*name the file 000006.log"
    with pytest.raises(OSError, match=text) as caught:
        cordwood.open(path, mode, dialect="rocksdb", log_number=6)  # type: ignore[call-overload]
    assert caught.value.filename == str(path)
    assert not path.exists()


def console(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cordwood", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("zstd", [False, True])
def test_the_log_number_is_found_even_if_the_log_starts_with_damage(zstd: bool) -> None:
    """If the first record is damaged, the next block may be left from an older log, and is not returned."""

    def log(number: int, records: list[bytes]) -> bytes:
        file = io.BytesIO()
        with cordwood.Writer(
            file, "w", dialect="rocksdb", log_number=number, compression="zstd" if zstd else None
        ) as writer:
            writer.extend(records)
        return file.getvalue()

    numbers = random.Random(1)
    records = [b"new%d" % index for index in range(10)]
    own, older = log(4, records), log(3, [numbers.randbytes(300) for _ in range(400)])
    assert len(older) > 3 * BLOCK_LEN
    file = own + older[len(own) :]
    detected = cordwood.detect(file)
    assert detected is not None
    assert (detected.log_number, detected.compression) == (4, "zstd" if zstd else None)
    assert list(cordwood.open(file)) == records
    damaged = bytearray(file)
    # The length of the first record; in the zstd log, the record that names the compression precedes it.
    damaged[15 if zstd else 4] ^= 1
    for dialect in None, "rocksdb":
        for policy, expected in ("skip", []), ("salvage", records[1:]):
            with cordwood.open(bytes(damaged), dialect=dialect, on_corruption=policy) as reader:
                assert list(reader) == expected
                assert reader.log_number == 4
        report = cordwood.verify(bytes(damaged), dialect=dialect)
        assert (report.record_count, report.salvaged_count) == (len(records) - 1, len(records) - 1)


@pytest.mark.parametrize(("kind", "reason"), [(15, "unknown_kind"), (253, "ignored_kind")])
def test_a_block_that_starts_with_an_unknown_fragment_type_is_read(kind: int, reason: str) -> None:
    """After damage, a block that starts with a fragment of this log is not skipped, for any type of fragment."""

    def fragment(kind: int, data: bytes) -> bytes:
        covered = bytes([kind, 4, 0, 0, 0]) + data
        return struct.pack("<IH", reference.mask(crc32c.crc32c(covered)), len(data)) + covered

    block = bytes([1]) + bytes(BLOCK_LEN - 1)
    file = block + fragment(kind, b"of a later version") + fragment(5, b"one")
    with cordwood.open(file, dialect="rocksdb", log_number=4, on_corruption="skip") as reader:
        assert list(reader) == [b"one"]
        regions = [(region.offset, region.end_offset, region.reason) for region in reader.skipped]
    assert regions == [(0, BLOCK_LEN, "zero_header"), (BLOCK_LEN, BLOCK_LEN + 11 + 18, reason)]


def test_every_function_uses_the_log_number_from_the_file_name(renamed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.log"
    copy.write_bytes(renamed.read_bytes())
    for path, number, found, other in (renamed, 9, [], 6), (copy, 6, [b"one", b"two"], None):
        for dialect in None, "rocksdb", "recyclable":
            assert list(cordwood.Reader(path, dialect=dialect)) == found
            assert cordwood.Reader(path, dialect=dialect).log_number == number
            report = cordwood.verify(path, dialect=dialect)
            assert (report.record_count, report.other_log_number, report.ok) == (len(found), other, True)
            stat = cordwood.stat(path, dialect=dialect)
            assert (stat.record_count, stat.other_log_number) == (len(found), other)
            with cordwood.follow(path, timeout=0, dialect=dialect) as follower:
                assert list(follower) == found
            first = next(iter(cordwood.fragments(path, dialect=dialect)))
            assert (first.reason is Reason.STALE) is (other is not None)
        detected = cordwood.detect(path)
        assert detected is not None
        assert detected.log_number == number
    # With the number named, it is read.
    for dialect in None, "rocksdb", "recyclable":
        assert list(cordwood.Reader(renamed, dialect=dialect, log_number=6)) == [b"one", b"two"]
    # A buffer has no name.
    assert list(cordwood.Reader(renamed.read_bytes())) == [b"one", b"two"]


def test_a_file_that_belongs_entirely_to_another_log_is_logged_once(
    renamed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    message = (
        f"{renamed}: the whole file belongs to log 6; expected log 9 (from the file's name or an option); "
        "log_number=6 reads it"
    )
    with cordwood.open(renamed) as reader:
        assert [*reader, *reader.records(), *reader.record_batches()] == []
    with cordwood.open(renamed) as reader:
        assert list(reader.record_batches(threads=2)) == []
    scan = cordwood.scan([renamed], columns=["offset", "record"])
    assert list(pa.RecordBatchReader.from_stream(scan)) == []
    assert list(pa.RecordBatchReader.from_stream(cordwood.scan([renamed], columns=["offset"]))) == []
    assert [(entry.levelname, entry.message) for entry in caplog.records] == [("WARNING", message)] * 4
    caplog.clear()

    copy = tmp_path / "000006.log"
    copy.write_bytes(renamed.read_bytes())
    # One record of log 7, and the remains of log 6.
    recycled = tmp_path / "000007.log"
    new, old = write(recycled, 7, [b"new"]), write(tmp_path / "old.log", 6, [b"old"] * 5_000)
    recycled.write_bytes(new + old[len(new) :])
    for path, number, expected in (
        (copy, None, [b"one", b"two"]),
        (renamed, 6, [b"one", b"two"]),
        (recycled, 7, [b"new"]),
    ):
        with cordwood.open(path, log_number=number) as reader:
            assert list(reader) == expected
    # The bytes after a start position may well be left from an older log.
    with cordwood.open(recycled, start=BLOCK_LEN) as reader:
        assert list(reader) == []
    with cordwood.open(recycled) as reader:
        reader.seek(BLOCK_LEN)
        assert list(reader) == []
    assert list(pa.RecordBatchReader.from_stream(cordwood.scan([recycled], start=BLOCK_LEN))) == []
    assert caplog.records == []
    (tmp_path / "saved").mkdir()
    # Records without a number, as RocksDB wrote them before it recycled logs.
    plain = tmp_path / "000009.log"
    records = [b"plain%d" % index for index in range(20)]
    plain.write_bytes(reference.encode(records) + write(tmp_path / "six.log", 6, [b"old"] * 5))
    with cordwood.open(plain, dialect="rocksdb") as reader:
        assert list(reader) == records
    assert cordwood.verify(plain, dialect="rocksdb").other_log_number is None
    assert cordwood.stat(plain, dialect="rocksdb").other_log_number is None
    assert cordwood.salvage(plain, tmp_path / "saved/000009.log", dialect="rocksdb").record_count == len(records)
    assert caplog.records == []
    # Only a salvaged record belongs to log 9: the file's first record is damaged.
    mixed = tmp_path / "000009.log"
    file = bytearray(write(tmp_path / "new.log", 9, [b"lost", b"salvaged"]))
    file[11] ^= 1
    mixed.write_bytes(bytes(file) + old[len(file) :])
    with cordwood.open(mixed, on_corruption="salvage") as reader:
        assert list(reader) == [b"salvaged"]
    scan = cordwood.scan([mixed], columns=["record"], on_corruption="salvage")
    assert [batch.to_pylist() for batch in pa.RecordBatchReader.from_stream(scan)] == [[{"record": b"salvaged"}]]
    assert {entry.message.partition(": ")[2].split()[0] for entry in caplog.records} == {"skipped"}
    assert cordwood.verify(mixed).other_log_number is None
    assert cordwood.stat(mixed).other_log_number is None


def test_salvaging_a_file_that_belongs_to_another_log_writes_no_file(renamed: Path, tmp_path: Path) -> None:
    destination = tmp_path / "saved.log"
    with pytest.raises(cordwood.OtherLogError, match=r"000009\.log: the whole file belongs to log 6") as raised:
        cordwood.salvage(renamed, destination)
    error = raised.value
    assert (error.path, error.log_number, error.other_log_number) == (str(renamed), 9, 6)
    assert list(tmp_path.iterdir()) == [renamed]
    cordwood.salvage(renamed, destination, log_number=error.other_log_number)
    assert list(cordwood.Reader(destination)) == [b"one", b"two"]
    # Under another log's name every reader would take the records for remains of an older log.
    with pytest.raises(OSError, match=r"name the file 000006\.log"):
        cordwood.salvage(destination, tmp_path / "000007.log")


def test_salvage_cannot_overwrite_a_log_that_has_a_different_log_number(renamed: Path, tmp_path: Path) -> None:
    """Even with --overwrite, records are not put under another log's name."""
    saved = tmp_path / "saved"
    saved.mkdir()
    before = write(saved / "000007.log", 7, [b"as it was"])
    write(saved / "000006.log", 6, [b"as it was"])
    done = console("salvage", "--overwrite", "--log-number", 6, renamed, saved / "000007.log")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"cordwood: {saved / '000007.log'}: the records belong to log 6")
    assert (saved / "000007.log").read_bytes() == before
    done = console("salvage", "--overwrite", "--log-number", 6, renamed, saved / "000006.log")
    assert (done.returncode, done.stderr) == (0, "")
    assert list(cordwood.Reader(saved / "000006.log")) == [b"one", b"two"]
    assert sorted(path.name for path in saved.iterdir()) == ["000006.log", "000007.log"]


def test_commands_print_the_log_number_found_and_the_expected_number(renamed: Path, tmp_path: Path) -> None:
    text = "the whole file belongs to log 6; the name says 9; to read it: --log-number 6\n"
    convert = "convert --as raw"
    for verb in "verify", "verify --json", "stat", "cat", convert, f"{convert} --to csv", "fragments", "map":
        done = console(*verb.split(), renamed)
        status = 3 if verb.split()[0] in {"verify", "cat", "convert"} else 0
        message = "" if verb == "verify" else f"cordwood: {renamed}: {text}"
        assert (done.returncode, done.stderr) == (status, message), verb
        # The advice in the message works.
        done = console(*verb.split(), "--log-number", 6, renamed)
        assert (done.returncode, done.stderr) == (0, ""), verb
    first, *_, last = console("verify", renamed).stdout.splitlines()
    assert first == f"{renamed}: 0 records; the whole file belongs to log 6, and the name says 9"
    assert last == "  to read it: --log-number 6"
    assert console("cat", "--dialect", "recyclable", "--log-number", 6, renamed).stdout == "one\ntwo\n"
    assert '"log_number":9,"other_log_number":6' in console("verify", "--json", renamed).stdout
    assert '"log_number":9,"other_log_number":6' in console("stat", "--json", renamed).stdout

    saved = tmp_path / "saved.log"
    done = console("salvage", renamed, saved)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"cordwood: {renamed}: {text}")
    assert not saved.exists()
    assert console("salvage", "--dialect", "recyclable", "--log-number", 6, renamed, saved).returncode == 0
    done = console("verify", "--dialect", "recyclable", "--log-number", 5, saved)
    assert "0 records; the whole file belongs to log 6, and --log-number says 5\n" in done.stdout

    done = console("cat", "--dialect", "leveldb", "--log-number", "6", renamed)
    assert (done.returncode, done.stdout) == (2, "")
    assert "leveldb logs have no log number\n  omit --log-number" in done.stderr


def test_splits_of_a_recycled_log_can_be_read(tmp_path: Path) -> None:
    old = write(tmp_path / "old.log", 6, [b"o" * 901] * 500)
    records = [b"%05d" % number + b"n" * 700 for number in range(100)]
    own = write(tmp_path / "own.log", 7, records)
    path = tmp_path / "recycled.log"
    path.write_bytes(own + old[len(own) :])
    for split_len in BLOCK_LEN, 2 * BLOCK_LEN, 1 << 20:
        found: list[bytes] = []
        for part in cordwood.plan_splits([path], split_len):
            with cordwood.open(part) as reader:
                found += reader
                assert all(region.severity != Severity.CORRUPTION for region in reader.skipped)
        assert found == records


def test_compression_is_detected_despite_a_damaged_first_fragment(tmp_path: Path) -> None:
    path = tmp_path / "000005.log"
    records = [b"record %d " % number * 20 for number in range(1000)]
    with cordwood.open(path, "w", dialect="rocksdb", compression="zstd") as writer:
        writer.extend(records)
    whole = path.read_bytes()
    for bit in range(88):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        assert list(cordwood.Reader(bytes(damaged), on_corruption="salvage")) == records


@pytest.mark.parametrize("policy", ["skip", "stop", "salvage", "raise"])
@pytest.mark.parametrize("older", ["whole fragments", "the middle of a record", "without numbers"])
def test_an_end_offset_past_the_end_of_the_file_has_no_effect(tmp_path: Path, policy: str, older: str) -> None:
    new = write(tmp_path / "new", 7, [b"n" * 100] * 400)
    old = {
        "whole fragments": write(tmp_path / "old", 6, [b"o" * 100] * 2_000),
        "the middle of a record": b"o" * 50 + write(tmp_path / "old", 6, [b"o" * 100] * 2_000),
        "without numbers": reference.encode([b"o" * 100] * 2_000),
    }[older]
    whole = new + b"\x01" * 40 + old[len(new) + 40 :]
    for file in whole, whole[: 5 * BLOCK_LEN], whole[:-5], new + old[len(new) :]:
        path = tmp_path / "000007.log"
        path.write_bytes(file)
        answers = []
        for end in None, len(file), len(file) + 1, 1 << 40:
            reader = cordwood.Reader(path, dialect="rocksdb", on_corruption=policy, end=end)
            records = []
            while True:
                try:
                    records.append(next(reader))
                except StopIteration:
                    break
                except cordwood.CorruptionError as error:
                    records.append(str(error).encode())
            answers.append((records, reader.skipped, reader.outcome))
        assert answers[1:] == answers[:1] * 3
        assert b"".join(answers[0][0][:400]) == b"n" * 40_000
