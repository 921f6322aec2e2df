"""The public surface as a type checker sees it: for pyright and mypy, both strict. It is never run."""

import io
import mmap
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, assert_type

from obstore.store import MemoryStore
from upath import UPath

import cordwood
from cordwood import (
    LogFormat,
    LogMap,
    Reader,
    Record,
    Report,
    Results,
    Scan,
    SkippedRegion,
    Split,
    Stat,
    Writer,
)
from cordwood.compat import appengine, ccl, leveldb_export
from cordwood.compat.wandb import DataStore
from cordwood.payload import (
    Operation,
    OperationKind,
    PayloadError,
    PayloadReason,
    VersionEdit,
    WriteBatch,
    entity,
    version_edit,
    wandb,
    write_batch,
)
from cordwood.types import (
    BitFlip,
    Database,
    Fragment,
    FragmentKind,
    FragmentPart,
    Outcome,
    OutcomeKind,
    ProblemKind,
    Reason,
    Severity,
)
from cordwood.typing import DialectName

with cordwood.open("example.log") as reader:
    assert_type(reader, Reader)
    assert_type(iter(reader), Iterator[bytes])
    assert_type(next(reader), bytes)
    assert_type(list(reader), list[bytes])
    assert_type(reader.records(), Iterator[Record])
    for pack in reader.record_batches(target_len=1 << 20):
        assert_type(pack, cordwood.RecordBatch)
        assert_type(pack.data, memoryview)
        assert_type(pack.offsets, memoryview)
        assert_type(pack[0], bytes)
    assert_type(reader.tell(), int)
    assert_type(reader.skipped, tuple[SkippedRegion, ...])
    assert_type(reader.outcome, Outcome)
    assert_type(reader.path, str | None)
    assert_type(reader.closed, bool)
    reader.seek(0)
    reader.close()

with cordwood.open("example.log", "w") as writer:
    assert_type(writer, Writer)
    assert_type(writer.append(b"one"), int)
    assert_type(writer.append(bytearray()), int)
    assert_type(writer.append(memoryview(b"")), int)
    assert_type(writer.extend([b"one", bytearray()]), int)
    assert_type(writer.extend(reader), int)
    assert_type(writer.tell(), int)
    assert_type(writer.durable_offset, int)
    assert_type(writer.path, str | None)
    assert_type(writer.closed, bool)
    writer.flush()
    writer.sync()
    writer.close()

assert_type(cordwood.open("example.log", "r"), Reader)
assert_type(cordwood.open("example.log", "a"), Writer)
assert_type(cordwood.open("example.log", mode="x"), Writer)
assert_type(cordwood.open("example.log", "rb"), Reader)
assert_type(cordwood.open("example.log", "ab", sync="close"), Writer)


def open_in(mode: str) -> Reader | Writer:
    return assert_type(cordwood.open("example.log", mode, dialect="leveldb"), Reader | Writer)


assert_type(
    cordwood.open("x", on_corruption="skip", start=1, end=None, verify_checksums=False, record_len_max=1), Reader
)
assert_type(Reader(b"", on_corruption="stop", start=0, end=5, verify_checksums=True, record_len_max=1), Reader)
assert_type(Writer("example.log"), Writer)
assert_type(Writer("example.log", "a"), Writer)
assert_type(cordwood.open("example.log", "w", record_len_max=1), Writer)


class Source:
    """The minimal source."""

    def read(self, size: int, /) -> bytearray:
        """Returns `None`."""
        return bytearray(size)[:0]


class Sink:
    """The minimal sink."""

    def write(self, data: memoryview, /) -> None:
        """Accepts everything."""


with Path("example.log").open("rb") as file:
    cordwood.open(file)
    cordwood.open(mmap.mmap(file.fileno(), 0))
with Path("example.log").open("wb") as new_file:
    cordwood.open(new_file, "w")
cordwood.open(Path("example.log"))
cordwood.open(b"")
cordwood.open(bytearray())
cordwood.open(memoryview(b""))
cordwood.open(array("B"))
cordwood.open(io.BytesIO())
cordwood.open(Source())
cordwood.open(Path("example.log"), "x")
cordwood.open(io.BytesIO(), "w")
cordwood.open(Sink(), "w")

# Errors are detected: strict checkers report an ignore comment that is not needed.
cordwood.open("example.log", "r", flush="append")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
cordwood.open("example.log", "w", start=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
cordwood.open("example.log", on_corruption="x")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
Writer(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
writer.append("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def values(value: Record | SkippedRegion | Outcome) -> object:
    """Uses the parts of each kind of value."""
    match value:
        case Record(offset, end_offset, data):
            assert_type(offset, int)
            assert_type(end_offset, int)
            return assert_type(data, bytes)
        case SkippedRegion(offset, end_offset, reason):
            assert_type(offset, int)
            assert_type(end_offset, int)
            assert_type(reason, Reason)
            assert_type(value.severity, Severity)
            assert_type(value.stored_crc, int | None)
            assert_type(value.computed_crc, int | None)
            assert_type((value.stated_len, value.type_byte), tuple[int | None, int | None])
            assert_type(value.version, int | None)
            return assert_type((value.length, value.description), tuple[int, str])
        case Outcome(kind, offset):
            assert_type(kind, OutcomeKind)
            return assert_type(offset, int)


def errors() -> None:
    """Uses each kind of error."""
    try:
        next(reader)
    except cordwood.CorruptionError as error:
        assert_type(error.path, str | None)
        assert_type(error.offset, int)
        assert_type(error.length, int)
        assert_type(error.reason, Reason)
        assert_type(error.stored_crc, int | None)
        assert_type(error.computed_crc, int | None)
    except (cordwood.RecordTooLargeError, cordwood.TornTailError) as error:
        assert_type(error.length, int)
    except cordwood.CordwoodError as error:
        assert_type(error.offset, int)


assert_type(cordwood.crc32c(b"data"), int)
assert_type(cordwood.crc32c(memoryview(b"data"), 1), int)
assert_type(cordwood.mask_crc(1), int)
assert_type(cordwood.unmask_crc(1), int)
assert_type(cordwood.__version__, str)

report = cordwood.verify(b"", threads=2, start=0, end=None, verify_checksums=True)
assert_type(report, Report)
assert_type(cordwood.salvage(io.BytesIO(), Path("clean.log"), record_len_max=1), Report)
assert_type(cordwood.pack(b"", "packed.log", dialect="packed", compression=None), Report)
assert_type((report.ok, report.record_count, report.salvaged_count, report.payload_len), tuple[bool, int, int, int])
assert_type((report.repaired_count, report.repaired), tuple[int, tuple[cordwood.SkippedRegion, ...]])
assert_type(report.file_len, int | None)
assert_type(report.skipped, tuple[SkippedRegion, ...])
assert_type(report.skipped[0].bit_flip, BitFlip | None)
assert_type(report.len_by_reason, dict[Reason, int])
assert_type(report.len_by_severity, dict[Severity, int])
assert_type(report.damaged_len, int)
assert_type(report.outcome, Outcome)
match report.skipped[0].bit_flip:
    case BitFlip(offset, bit, part):
        assert_type((offset, bit, part), tuple[int, int, FragmentPart])
    case None:
        pass
stat = cordwood.stat(b"", verify_checksums=False, record_len_max=1)
assert_type(stat, Stat)
assert_type((stat.record_count, stat.payload_len, stat.trailer_len, stat.skipped_len), tuple[int, int, int, int])
assert_type((stat.full_count, stat.first_count, stat.middle_count, stat.last_count), tuple[int, int, int, int])
assert_type(
    (stat.record_len_min, stat.record_len_max, stat.record_len_mean), tuple[int | None, int | None, float | None]
)
assert_type((stat.stored_len, stat.header_len), tuple[int, int])
assert_type((stat.block_count, stat.file_len, stat.outcome), tuple[int | None, int | None, Outcome])
for known in (reader, writer, stat, cordwood.verify(b""), cordwood.follow("example.log", log_number=7)):
    assert_type(known.dialect, DialectName)
    assert_type(known.log_number, int | None)
    assert_type(known.compression, Literal["zstd"] | None)
format_ = cordwood.detect(b"")
assert_type(format_, LogFormat | None)
if format_:
    assert_type((format_.dialect, format_.log_number), tuple[DialectName, int | None])
    assert_type(cordwood.open(b"", dialect=format_.dialect, compression=format_.compression), Reader)
for split in cordwood.plan_splits(["example.log"], 1, dialect="auto"):
    assert_type(split, Split)
    assert_type((split.dialect, split.log_number), tuple[DialectName | None, int | None])
    assert_type(cordwood.open(split), Reader)
# A path may be one log or many; a list is many.
assert_type(cordwood.verify("example.log").ok, bool | Any)
assert_type(cordwood.stat(Path("example.log")), Stat | Any)
assert_type(cordwood.map("example.log").damaged_len, int | Any)
info = cordwood.info("example.log", threads=2)
assert_type(info.databases, tuple[Database, ...])
assert_type([problem.kind for database in info.databases for problem in database.problems], list[ProblemKind])
assert_type(cordwood.info(["example.log", Path("directory")]).ok, bool)
reports = cordwood.verify(["example.log", Path("directory"), *cordwood.plan_splits([("example.log", 10)], 1)])
assert_type(reports, Results[Report])
assert_type(reports["example.log"], Report)
assert_type(
    (reports.errors, reports.others, reports.ok),
    tuple[Mapping[str | Split, Exception], Mapping[str | Split, str], bool],
)
assert_type(cordwood.salvage([Path("directory")], "new"), Results[Report])
assert_type(cordwood.map(["directory"]), Results[LogMap])
assert_type(cordwood.group_splits(cordwood.plan_splits("directory", 1), 1), list[list[Split]])
assert_type(cordwood.scan(cordwood.plan_splits("directory", 1)), Scan)
for fragment in cordwood.fragments(b"", dialect="leveldb"):
    assert_type(fragment, Fragment)
    assert_type((fragment.offset, fragment.end_offset, fragment.block, fragment.length), tuple[int, int, int, int])
    assert_type((fragment.kind, fragment.reason), tuple[FragmentKind, Reason | None])
    assert_type(
        (fragment.type_byte, fragment.payload_len, fragment.computed_crc), tuple[int | None, int | None, int | None]
    )

batch = WriteBatch(b"", engine="pebble")
assert_type(WriteBatch.build(1, [Operation(OperationKind.PUT, key=b"k", value=b"v")]), WriteBatch)
assert_type((batch.sequence, batch.count, len(batch), bytes(batch)), tuple[int, int, int, bytes])
for operation in batch:
    assert_type(operation, Operation)
    assert_type((operation.kind, operation.sequence, operation.key), tuple[OperationKind, int | None, bytes | None])
assert_type(write_batch.to_dict(b""), dict[str, object])
assert_type(version_edit.to_dict(b""), dict[str, object])
for field in VersionEdit(b"").fields:
    assert_type(field.kind, version_edit.FieldKind)
    match field.value:
        case version_edit.NewFile() as table:
            assert_type((table.level, table.smallest.user_key), tuple[int, bytes])
        case version_edit.DeletedFile(level, file_number):
            assert_type((level, file_number), tuple[int, int])
        case _:
            pass
document = entity.decode(b"")
assert_type(document, entity.Entity)
assert_type((document.key, document.unindexed), tuple[entity.Key | None, frozenset[str]])
assert_type(document.properties["name"], entity.Value)
assert_type((entity.to_dict(b""), wandb.to_dict(b"")), tuple[dict[str, object], dict[str, object]])
assert_type(wandb.output(Reader(b"")), str)
assert_type(wandb.summary("run-1.wandb"), dict[str, Any])
for metrics in wandb.metrics(Reader(b"")):
    assert_type(metrics, dict[str, Any])
for row in wandb.history(Reader(b"")):
    assert_type(row, dict[str, Any])
try:
    batch.to_dict()
except PayloadError as error:
    assert_type((error.offset, error.length, error.reason), tuple[int, int, PayloadReason])

with appengine.RecordsWriter(io.BytesIO()) as records_writer:
    assert_type(records_writer, appengine.RecordsWriter)
assert_type(list(leveldb_export.RecordsReader(io.BytesIO())), list[bytes])
store = DataStore()
assert_type(store.scan_data(), bytes | None)
assert_type(store.scan_record(), tuple[int, bytes] | None)
for key in ccl.LogFile(Path("000003.log")):
    assert_type((key.user_key, key.state), tuple[bytes, ccl.KeyState])


class Ranges:
    def size(self) -> int:
        return 0

    def read_range(self, start: int, end: int, /) -> bytes:
        return bytes(end - start)


cordwood.open(Ranges())
cordwood.open((MemoryStore(), "name"))
cordwood.open(UPath("memory://name"))
cordwood.scan([Ranges(), (MemoryStore(), "name"), "s3://bucket/name"])
