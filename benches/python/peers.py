"""The contenders: the needs of each, and how it reads and writes.

Every environment imports this file, so a contender's packages are imported in the functions that use them; a pass over
the records is long enough to hide the cost.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

Read = Callable[[Path], Iterable[object]]
Write = Callable[[Path, Iterable[bytes]], None]
Checksum = Callable[[bytes], int]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A package, or a way of using one."""

    name: str
    requires: tuple[str, ...] = ()
    """The packages that pip installs for it. If empty, it runs where cordwood is installed."""
    file: str = "own"
    """Its input: "log", a log of the records; "batches", a log of WriteBatches as in LevelDB; "own", a file of
    its own format."""
    verifies: bool = True
    """Whether it verifies checksums when reading."""
    read: Read | None = None
    write: Write | None = None
    """Writes with gathering: records wait in memory until there are many, or the file is closed."""
    append: Write | None = None
    """Writes each record to the operating system before the next is started."""
    time_writing: bool = True
    """False if another contender writes in the same way."""
    checksum: Callable[[], Checksum] | None = None
    """If the package computes checksums: returns the function that does."""
    in_batches: bool = False
    """Reading returns lists of records."""
    gives: str = "records"
    """For a file of WriteBatches: their values ("records"), or the "batches" as they are in the log."""
    record_of: Callable[[object], bytes] = bytes
    """Converts the result of reading to the record; used when the answer is checked, not when it is timed."""
    note: str = ""


def cordwood_read(path: Path) -> Iterable[bytes]:
    import cordwood

    return cordwood.open(path)


def cordwood_read_batches(path: Path) -> Iterable[Iterable[bytes]]:
    import cordwood

    return cordwood.open(path).record_batches()


def cordwood_read_records(path: Path) -> Iterable[object]:
    import cordwood

    return cordwood.open(path).records()


def cordwood_append(path: Path, records: list[bytes]) -> None:
    import cordwood

    with cordwood.open(path, "w", flush="close") as writer:
        append = writer.append
        for record in records:
            append(record)


def cordwood_extend(path: Path, records: list[bytes]) -> None:
    import cordwood

    with cordwood.open(path, "w", flush="close") as writer:
        writer.extend(records)


def packed_append(path: Path, records: list[bytes], compression: str | None = None) -> None:
    import cordwood

    with cordwood.open(path, "w", flush="close", dialect="packed", compression=compression) as writer:
        append = writer.append
        for record in records:
            append(record)


def packed_extend(path: Path, records: list[bytes], compression: str | None = None) -> None:
    import cordwood

    with cordwood.open(path, "w", flush="close", dialect="packed", compression=compression) as writer:
        writer.extend(records)


def cordwood_append_each(path: Path, records: Iterable[bytes]) -> None:
    import cordwood

    with cordwood.open(path, "w", flush="append") as writer:
        append = writer.append
        for record in records:
            append(record)


def cordwood_checksum() -> Checksum:
    import cordwood

    return cordwood.crc32c


def plain_read(path: Path) -> Iterable[bytes]:
    import plain

    return plain.read(path)


def plain_write(path: Path, records: list[bytes]) -> None:
    import plain

    plain.write(path, records)


def plain_append(path: Path, records: Iterable[bytes]) -> None:
    import plain

    plain.write(path, records, flush=True)


def file_read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while header := file.read(4):
            yield file.read(int.from_bytes(header, "little"))


def file_write(path: Path, records: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        write = file.write
        for record in records:
            write(len(record).to_bytes(4, "little") + record)


def file_append(path: Path, records: Iterable[bytes]) -> None:
    with path.open("wb") as file:
        write, flush = file.write, file.flush
        for record in records:
            write(len(record).to_bytes(4, "little") + record)
            flush()


def zstd_read(path: Path) -> Iterator[bytes]:
    import zstandard

    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        lines = io.BufferedReader(stream, 1 << 18)
        while header := lines.read(4):
            yield lines.read(int.from_bytes(header, "little"))


def zstd_write(path: Path, records: Iterable[bytes]) -> None:
    import zstandard

    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
    with path.open("wb") as file, compressor.stream_writer(file) as stream, io.BufferedWriter(stream, 1 << 18) as lines:
        write = lines.write
        for record in records:
            write(len(record).to_bytes(4, "little") + record)


def leveldb_export_read(path: Path) -> Iterator[bytes]:
    from leveldb_export.records import RecordsReader

    with path.open("rb") as file:
        yield from RecordsReader(file, no_check_crc=False)


def leveldb_export_read_unchecked(path: Path) -> Iterator[bytes]:
    from leveldb_export.records import RecordsReader

    with path.open("rb") as file:
        yield from RecordsReader(file)


def wandb_read(path: Path) -> Iterator[bytes]:
    from wandb.sdk.internal.datastore import DataStore

    store = DataStore()
    store.open_for_scan(str(path))
    yield from iter(store.scan_data, None)
    store.close()


def wandb_write(path: Path, records: list[bytes]) -> None:
    from wandb.sdk.internal.datastore import DataStore

    store = DataStore()
    store.open_for_write(str(path))
    # The public method accepts only protobuf messages, and it calls this one.
    write = store._write_data  # noqa: SLF001
    for record in records:
        write(record)
    store.close()


def wandb_append(path: Path, records: Iterable[bytes]) -> None:
    from wandb.sdk.internal.datastore import DataStore

    store = DataStore()
    store.open_for_write(str(path))
    write = store._write_data  # noqa: SLF001 - as in `wandb_write`
    flush = store.ensure_flushed
    for record in records:
        write(record)
        flush(0)
    store.close()


def swanlab_read(path: Path) -> Iterator[bytes]:
    from swanlab.sdk.internal.core_python.store import DataStoreReader

    reader = DataStoreReader()
    reader.open(path)
    yield from reader
    reader.close()


def swanlab_write(path: Path, records: list[bytes]) -> None:
    from swanlab.sdk.internal.core_python.store import DataStoreWriter

    writer = DataStoreWriter()
    writer.open(path)
    for record in records:
        writer.write(record)
    writer.close()


def swanlab_append(path: Path, records: Iterable[bytes]) -> None:
    from swanlab.sdk.internal.core_python.store import DataStoreWriter

    writer = DataStoreWriter()
    writer.open(path)
    for record in records:
        writer.write(record)
        writer.ensure_flushed()
    writer.close()


def rleveldb_read(path: Path) -> Iterator[bytes]:
    from rleveldb import RawLevelDb

    with RawLevelDb(str(path.parent)) as database:
        for record in database.iterate_records_raw():
            yield record.value


def chromium_reader_read(path: Path) -> Iterator[bytes]:
    from chromium_reader.leveldb import LogFile

    file = LogFile(path)
    for record in file:
        yield record.value
    file.close()


def chromium_reader_read_batches(path: Path) -> Iterator[bytes]:
    from chromium_reader import leveldb

    with path.open("rb") as file:
        # Private, but the only layer that does no more than cordwood does.
        for _, batch in leveldb._iter_log_blocks(file, path):  # noqa: SLF001
            yield batch


def dfindexeddb_read(path: Path) -> Iterator[bytes]:
    from dfindexeddb.leveldb.log import FileReader

    for key in FileReader(str(path)).GetParsedInternalKeys():
        yield key.value


def in_a_mebibyte(count: int, length: int) -> int:
    """How many of the records make about a mebibyte, at most 1,000: one call requests that many ranges."""
    return max(1, min(1000, count * (1 << 20) // length))


def bagz_read(path: Path) -> Iterable[bytes]:
    import bagz

    return bagz.Reader(path, bagz.Reader.Options(compression=bagz.CompressionNone()))


def bagz_read_ranges(path: Path) -> Iterator[list[bytes]]:
    import bagz

    reader = bagz.Reader(path, bagz.Reader.Options(compression=bagz.CompressionNone()))
    count = len(reader)
    step = in_a_mebibyte(count, path.stat().st_size)
    for start in range(0, count, step):
        yield reader.read_range(start, min(step, count - start))


def bagz_zstd_read(path: Path) -> Iterable[bytes]:
    import bagz

    return bagz.Reader(path, bagz.Reader.Options(compression=bagz.CompressionZstd()))


def bagz_zstd_write(path: Path, records: list[bytes]) -> None:
    import bagz

    with bagz.Writer(path, bagz.Writer.Options(compression=bagz.CompressionZstd())) as writer:
        for record in records:
            writer.write(record)


def bagz_write(path: Path, records: list[bytes]) -> None:
    import bagz

    with bagz.Writer(path, bagz.Writer.Options(compression=bagz.CompressionNone())) as writer:
        for record in records:
            writer.write(record)


def array_record_read(path: Path) -> Iterator[bytes]:
    from array_record.python.array_record_module import ArrayRecordReader

    reader = ArrayRecordReader(str(path))
    for _ in range(reader.num_records()):
        yield reader.read()
    reader.close()


def array_record_read_ranges(path: Path) -> Iterator[list[bytes]]:
    from array_record.python.array_record_module import ArrayRecordReader

    reader = ArrayRecordReader(str(path))
    count = reader.num_records()
    step = in_a_mebibyte(count, path.stat().st_size)
    for start in range(0, count, step):
        yield reader.read(start, min(start + step, count))
    reader.close()


def array_record_write(path: Path, records: list[bytes]) -> None:
    from array_record.python.array_record_module import ArrayRecordWriter

    # By default each record is a group of its own: good for random access, slow for sequential reading.
    group_size = in_a_mebibyte(len(records), sum(map(len, records)))
    writer = ArrayRecordWriter(str(path), f"uncompressed,group_size:{group_size}")
    for record in records:
        writer.write(record)
    writer.close()


def tfrecord_read(path: Path) -> Iterable[object]:
    from tfrecord.reader import tfrecord_iterator

    return tfrecord_iterator(str(path))


def tfrecord_record(example: object) -> bytes:
    from tfrecord.example_pb2 import Example

    return Example.FromString(bytes(example)).features.feature["record"].bytes_list.value[0]


def tfrecord_write(path: Path, records: list[bytes]) -> None:
    from tfrecord.writer import TFRecordWriter

    writer = TFRecordWriter(str(path))
    for record in records:
        writer.write({"record": (record, "byte")})
    writer.close()


def mcap_read(path: Path) -> Iterator[bytes]:
    from mcap.reader import make_reader

    with path.open("rb") as file:
        for _, _, message in make_reader(file, validate_crcs=True).iter_messages():
            yield message.data


def mcap_write(path: Path, records: list[bytes], compression: str = "NONE") -> None:
    from mcap.writer import CompressionType, Writer

    writer = Writer(str(path), compression=CompressionType[compression])
    writer.start()
    channel = writer.register_channel(topic="records", message_encoding="", schema_id=0)
    for index, record in enumerate(records):
        writer.add_message(channel_id=channel, log_time=index, publish_time=index, data=record)
    writer.finish()


def sqlite3_read(path: Path) -> Iterator[bytes]:
    import sqlite3

    database = sqlite3.connect(path)
    for (record,) in database.execute("SELECT data FROM records ORDER BY rowid"):
        yield record
    database.close()


def sqlite3_write(path: Path, records: list[bytes]) -> None:
    import sqlite3

    database = sqlite3.connect(path)
    database.execute("CREATE TABLE records (data BLOB NOT NULL)")
    insert = database.execute
    for record in records:
        insert("INSERT INTO records VALUES (?)", (record,))
    database.commit()
    database.close()


def crc32c_checksum() -> Checksum:
    import crc32c

    return crc32c.crc32c


def google_crc32c_checksum() -> Checksum:
    import google_crc32c

    return google_crc32c.value


def crc32c_rs_checksum() -> Checksum:
    import crc32c_rs

    return crc32c_rs.crc32c


CRC32C = ("crc32c==2.9.post0",)
LEVELDB_EXPORT = ("leveldb-export==0.1.1",)
ARRAY_RECORD = ("array-record==0.8.6",)
BAGZ = ("bagz==0.3.8",)
MCAP = ("mcap==1.6.0",)
CHROMIUM_READER = ("chromium-reader==0.1.1",)

PEERS = (
    Peer(
        name="cordwood",
        file="log",
        read=cordwood_read,
        write=cordwood_append,
        append=cordwood_append_each,
        checksum=cordwood_checksum,
        note="`for record in reader`; `append` in a loop",
    ),
    Peer(
        name="cordwood batches, extend",
        file="log",
        read=cordwood_read_batches,
        in_batches=True,
        write=cordwood_extend,
        note="`for batch in reader.record_batches(): for record in batch`; one `extend` of a list",
    ),
    Peer(
        name="cordwood records()",
        file="log",
        read=cordwood_read_records,
        record_of=lambda record: record.data,
        note="records with their offsets",
    ),
    Peer(
        name="cordwood on WriteBatches",
        file="batches",
        gives="batches",
        read=cordwood_read,
        note="the baseline for the readers of WriteBatches",
    ),
    Peer(
        name="cordwood packed",
        read=cordwood_read,
        write=packed_append,
        note="as the first, in the dialect `packed`",
    ),
    Peer(
        name="cordwood packed, batches, extend",
        read=cordwood_read_batches,
        in_batches=True,
        write=packed_extend,
        note="as the second, in the dialect `packed`",
    ),
    Peer(
        name="cordwood packed, zstd",
        read=cordwood_read,
        write=partial(packed_append, compression="zstd"),
        note="in the dialect `packed`, compressed",
    ),
    Peer(
        name="cordwood packed, zstd, batches, extend",
        read=cordwood_read_batches,
        in_batches=True,
        write=partial(packed_extend, compression="zstd"),
        note="in the dialect `packed`, compressed",
    ),
    Peer(
        name="one zstd stream",
        requires=("zstandard==0.25.0",),
        read=zstd_read,
        write=zstd_write,
        note="a length and the record, all compressed as one frame: nothing of it can be read alone",
    ),
    Peer(
        name="plain Python + crc32c",
        requires=CRC32C,
        file="log",
        read=plain_read,
        write=plain_write,
        append=plain_append,
        note="forty lines written by hand",
    ),
    Peer(
        name="a plain file",
        verifies=False,
        read=file_read,
        write=file_write,
        append=file_append,
        note="`write` of a length and the record: no checksum, no blocks",
    ),
    Peer(
        name="leveldb-export", requires=LEVELDB_EXPORT, file="log", read=leveldb_export_read, note="checksums asked for"
    ),
    Peer(
        name="leveldb-export as it ships",
        requires=LEVELDB_EXPORT,
        file="log",
        read=leveldb_export_read_unchecked,
        verifies=False,
        note="checksums are off by default",
    ),
    Peer(
        name="wandb",
        requires=("wandb==0.29.0",),
        read=wandb_read,
        write=wandb_write,
        append=wandb_append,
        note="the `DataStore` of the last version that has it; plain CRC-32; calls fsync at each block's end",
    ),
    Peer(
        name="swanlab",
        requires=("swanlab==0.10.3",),
        read=swanlab_read,
        write=swanlab_write,
        append=swanlab_append,
        note="its `DataStore`; plain CRC-32",
    ),
    Peer(
        name="rleveldb",
        requires=("rleveldb==1.0.0",),
        file="batches",
        verifies=False,
        read=rleveldb_read,
        note="gives keys and values, and all of a directory at once",
    ),
    Peer(
        name="chromium-reader",
        requires=CHROMIUM_READER,
        file="batches",
        verifies=False,
        read=chromium_reader_read,
        note="gives keys and values",
    ),
    Peer(
        name="chromium-reader, log alone",
        requires=CHROMIUM_READER,
        file="batches",
        gives="batches",
        verifies=False,
        read=chromium_reader_read_batches,
        note="the private function below the public one",
    ),
    Peer(
        name="dfindexeddb",
        # Its dependencies need a C++ compiler and Snappy's headers; its log reader uses none of them.
        requires=("--no-deps", "dfindexeddb==20260210"),
        file="batches",
        verifies=False,
        read=dfindexeddb_read,
        note="gives keys and values; installed without its dependencies, which its reader of logs does not use",
    ),
    Peer(
        name="bagz",
        requires=BAGZ,
        verifies=False,
        read=bagz_read,
        write=bagz_write,
        note="no compression",
    ),
    Peer(
        name="bagz, ranges",
        requires=BAGZ,
        verifies=False,
        read=bagz_read_ranges,
        write=bagz_write,
        in_batches=True,
        time_writing=False,
        note="about 1 MiB a call, at most 1,000 records",
    ),
    Peer(
        name="bagz, zstd",
        requires=BAGZ,
        verifies=False,
        read=bagz_zstd_read,
        write=bagz_zstd_write,
        note="each record is a frame of its own",
    ),
    Peer(
        name="array-record",
        requires=ARRAY_RECORD,
        read=array_record_read,
        write=array_record_write,
        note="no compression, groups of about 1 MiB and at most 1,000 records",
    ),
    Peer(
        name="array-record, ranges",
        requires=ARRAY_RECORD,
        read=array_record_read_ranges,
        write=array_record_write,
        in_batches=True,
        time_writing=False,
        note="about 1 MiB a call, at most 1,000 records",
    ),
    Peer(
        name="tfrecord",
        requires=("tfrecord==1.14.6",),
        verifies=False,
        read=tfrecord_read,
        write=tfrecord_write,
        record_of=tfrecord_record,
        note="each record in a `tf.train.Example`; reading gives the example's bytes, unparsed",
    ),
    Peer(
        name="mcap",
        requires=MCAP,
        read=mcap_read,
        write=mcap_write,
        note="no compression, checksums asked for",
    ),
    Peer(
        name="mcap, zstd",
        requires=MCAP,
        read=mcap_read,
        write=partial(mcap_write, compression="ZSTD"),
        note="compressed chunks, checksums asked for",
    ),
    Peer(
        name="sqlite3",
        verifies=False,
        read=sqlite3_read,
        write=sqlite3_write,
        note="one INSERT a record, one transaction",
    ),
    Peer(name="crc32c", requires=CRC32C, checksum=crc32c_checksum),
    Peer(name="google-crc32c", requires=("google-crc32c==1.9.0",), checksum=google_crc32c_checksum),
    Peer(name="crc32c-rs", requires=("crc32c-rs==0.0.7",), checksum=crc32c_rs_checksum),
)

NOT_MEASURED = {
    "ccl-chrome-indexeddb 0.1.1": "the package of this name parses tables (.ldb) and has no reader of logs; "
    "ccl_chromium_reader, which has one, is on no package index",
    "GoogleAppEngineMapReduce 1.9.22.0": "needs Python 2 and the App Engine SDK",
}
