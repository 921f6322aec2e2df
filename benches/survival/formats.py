"""The formats and logs of the experiment: how each is written, read, and repaired.

Each is used as its documentation shows, with its defaults; checksums are asked for where they are an option. `write`
is for a program that appends, and so is the same in all experiments. `read` is the usual reader, and raises an error
or returns. `rescue` returns as many records as the format's own tool, or reading on after an error, can give.
"""

import gzip
import io
import itertools
import json
import platform
import shutil
import sqlite3
import struct
import subprocess
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import bagz
import crc32c
import fastavro
import h5py
import lmdb
import mcap.reader
import mcap.writer
import msgpack
import persistqueue
import plyvel
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import rocksdict
import tfrecord
import tfrecord.reader
import zstandard
from array_record.python.array_record_module import ArrayRecordReader, ArrayRecordWriter
from fastavro.write import Writer
from google.protobuf import proto
from google.protobuf.wrappers_pb2 import BytesValue
from warcio.archiveiterator import ArchiveIterator
from warcio.warcwriter import WARCWriter

import cordwood

Append = Callable[[list[bytes]], None]
"""Appends records, and returns once the format's writer has accepted them."""


class DamagedError(Exception):
    """The reader has no exception for damage, but a documented way to ask for it, and that says damage."""


Read = Callable[[Path], Iterable[bytes]]
"""Returns the records of a file or directory, up to an error."""


@dataclass(frozen=True)
class Format:
    """A format, and the functions that its documentation names for writing, reading and repair."""

    name: str
    package: str
    """The distribution on PyPI, for its version; `sqlite` and `python` are those of the machine."""
    checksum: str
    """The checksums that its reader compares."""
    write: Callable[..., Any]
    """A context that gives an `Append`; with `is_flushed`, each call is flushed or synced."""
    read: Read
    accepted: str
    """Where the records of an append are once it has returned, by default, according to the documentation."""
    flush: str | None = None
    """What `write` does with `is_flushed`, if the writer can do more than by default."""
    rescues: dict[str, Read] = field(default_factory=dict)
    """Tools, and other ways to read on, with their names."""
    batch: int = 1
    """The records that a call of its writer takes."""
    is_engine: bool = False
    """Its files are damaged as a killed process leaves them; those of the others, after they were closed."""


PROCESS, KERNEL, DISK = "in the process", "in the kernel", "on the disk"

# What people keep records in without a package --------------------------------------------------------------------


def each(read: Callable[[int], bytes], count: int) -> Iterator[bytes]:
    """The records with numbers from 0 on, without those that raise."""
    for number in range(count):
        with suppress(Exception):
            yield read(number)


def appending(encode: Callable[[bytes], bytes], opened: Callable[[Path, str], Any] = Path.open) -> Callable[..., Any]:
    """Writes one encoded record after another into a file that `opened` opens."""

    @contextmanager
    def write(path: Path, *, is_flushed: bool) -> Iterator[Append]:
        with opened(path, "wb") as file:

            def append(records: list[bytes]) -> None:
                file.write(encode(records[0]))
                if is_flushed:
                    file.flush()

            yield append

    return write


def text_of(record: bytes) -> bytes:
    """A line of JSON as the experiment writes it: the reader has parsed it."""
    return json.dumps(json.loads(record)).encode()


def lines(name: str, package: str, checksum: str, opened: Callable[[Path, str], Any]) -> Format:
    """Writes, reads and rescues lines of JSON in a file that `opened` opens."""
    write = appending(lambda record: record + b"\n", opened)

    def read(path: Path) -> Iterator[bytes]:
        with opened(path, "rb") as file:
            yield from map(text_of, file)

    def parsed(path: Path) -> Iterator[bytes]:
        with opened(path, "rb") as file:
            for line in file:
                with suppress(ValueError):
                    yield text_of(line)

    rescues: dict[str, Read] = {"each line that parses": parsed} if opened is Path.open else {}
    return Format(name, package, checksum, write, read, PROCESS, "`flush`", rescues)


def zstd_file(path: Path, mode: str) -> Any:
    if mode == "wb":
        return zstandard.ZstdCompressor(write_checksum=True).stream_writer(path.open("wb"), closefd=True)
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(path.open("rb"), closefd=True))


def messages() -> Format:
    """MessagePack: one object after the other."""

    def read(path: Path) -> Iterator[bytes]:
        with path.open("rb") as file:
            yield from msgpack.Unpacker(file)

    return Format("MessagePack", "msgpack", "none", appending(msgpack.packb), read, PROCESS, "`flush`")


def protobuf() -> Format:
    """Messages of Protocol Buffers, each with its length in front."""

    def encode(record: bytes) -> bytes:
        buffer = io.BytesIO()
        proto.serialize_length_prefixed(BytesValue(value=record), buffer)
        return buffer.getvalue()

    def read(path: Path) -> Iterator[bytes]:
        file = io.BytesIO(path.read_bytes())
        while (message := proto.parse_length_prefixed(BytesValue, file)) is not None:
            yield message.value

    return Format("Protocol Buffers, delimited", "protobuf", "none", appending(encode), read, PROCESS, "`flush`")


# Files of records -------------------------------------------------------------------------------------------------


def cordwood_log(name: str, **options: Any) -> Format:
    @contextmanager
    def write(path: Path, *, is_flushed: bool) -> Iterator[Append]:
        with cordwood.open(path, "x", **options) as log:
            yield lambda records: log.append(records[0], sync=is_flushed)

    def read(path: Path) -> Iterator[bytes]:
        with cordwood.open(path) as reader:
            yield from reader
            if reader.outcome.kind != "clean":
                raise DamagedError(reader.outcome.kind)

    def rescue(path: Path) -> Iterator[bytes]:
        new = path.with_name("salvaged")
        cordwood.salvage(path, new, repair_bit_flips=True)
        with cordwood.open(new) as reader:
            yield from reader

    return Format(name, "cordwood", "CRC-32C", write, read, KERNEL, "`sync`", {"`salvage`": rescue})


def tfrecord_package() -> Format:
    """The package that reads TFRecord without TensorFlow. It packs each record into a `tf.train.Example`."""

    @contextmanager
    def write(path: Path, *, is_flushed: bool) -> Iterator[Append]:
        with closing(tfrecord.TFRecordWriter(str(path))) as writer:

            def append(records: list[bytes]) -> None:
                writer.write({"record": (records[0], "byte")})
                if is_flushed:
                    writer.file.flush()

            yield append

    def read(path: Path) -> Iterator[bytes]:
        for example in tfrecord.reader.tfrecord_loader(str(path), None, {"record": "byte"}):
            yield bytes(example["record"])

    return Format("TFRecord, package tfrecord", "tfrecord", "none", write, read, PROCESS, "`flush`")


def tfrecord_checked() -> Format:
    """The format as TensorFlow documents it, with both checksums compared."""

    def masked(data: bytes) -> bytes:
        crc = crc32c.crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    def encode(record: bytes) -> bytes:
        length = struct.pack("<Q", len(record))
        return length + masked(length) + record + masked(record)

    def read(path: Path) -> Iterator[bytes]:
        with path.open("rb") as file:
            while header := file.read(12):
                if masked(header[:8]) != header[8:]:
                    raise DamagedError("corrupted record")
                (length,) = struct.unpack("<Q", header[:8])
                data = file.read(length + 4)
                if len(data) != length + 4 or masked(data[:-4]) != data[-4:]:
                    raise DamagedError("truncated or corrupted record")
                yield data[:-4]

    return Format("TFRecord, checked", "crc32c", "CRC-32C", appending(encode), read, PROCESS, "`flush`")


def array_record() -> Format:
    @contextmanager
    def write(path: Path, **_: bool) -> Iterator[Append]:
        with closing(ArrayRecordWriter(str(path))) as writer:
            yield lambda records: writer.write(records[0])

    def read(path: Path) -> Iterator[bytes]:
        with closing(ArrayRecordReader(str(path))) as reader:
            yield from reader.read_all()
            if not reader.ok():
                raise DamagedError("the reader is not ok")

    def rescue(path: Path) -> Iterator[bytes]:
        with closing(ArrayRecordReader(str(path))) as reader:
            yield from each(lambda number: reader.read([number])[0], reader.num_records())

    return Format("ArrayRecord", "array_record", "HighwayHash", write, read, PROCESS, rescues={"each record": rescue})


def bagz_file() -> Format:
    """A directory: while it is written, the lengths of its records are in a second file."""

    @contextmanager
    def write(path: Path, *, is_flushed: bool) -> Iterator[Append]:
        path.mkdir()
        with bagz.Writer(str(path / "log.bagz")) as writer:

            def append(records: list[bytes]) -> None:
                writer.write(records[0])
                if is_flushed:
                    writer.flush()

            yield append

    def read(path: Path) -> Iterator[bytes]:
        yield from bagz.Reader(str(path / "log.bagz"))

    def rescue(path: Path) -> Iterator[bytes]:
        options = bagz.Reader.Options()
        if (path / "limits.log.bagz").exists():
            options.limits_placement = bagz.LimitsPlacement.SEPARATE
        reader = bagz.Reader(str(path / "log.bagz"), options)
        yield from each(reader.__getitem__, len(reader))

    return Format("bagz", "bagz", "none", write, read, PROCESS, "`flush`", {"each record": rescue})


def mcap_file() -> Format:
    @contextmanager
    def write(path: Path, *, is_flushed: bool) -> Iterator[Append]:
        with path.open("wb") as file:
            writer = mcap.writer.Writer(file)
            writer.start()
            schema = writer.register_schema("record", "jsonschema", b"{}")
            channel = writer.register_channel("/records", "json", schema)
            times = itertools.count()

            def append(records: list[bytes]) -> None:
                time = next(times)
                writer.add_message(channel, time, records[0], time)
                if is_flushed:
                    writer.flush()
                    file.flush()

            yield append
            writer.finish()

    def read(path: Path) -> Iterator[bytes]:
        with path.open("rb") as file:
            for _, _, message in mcap.reader.make_reader(file, validate_crcs=True).iter_messages():
                yield message.data

    def rescue(path: Path) -> Iterator[bytes]:
        with path.open("rb") as file:
            reader = mcap.reader.NonSeekingReader(file, validate_crcs=True)
            for _, _, message in reader.iter_messages(log_time_order=False):
                yield message.data

    return Format("MCAP", "mcap", "CRC-32", write, read, PROCESS, "`flush`", {"in order": rescue})


def avro(name: str, codec: str, checksum: str) -> Format:
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": [{"name": "data", "type": "bytes"}]})

    @contextmanager
    def write(path: Path, *, is_flushed: bool) -> Iterator[Append]:
        with path.open("wb") as file:
            writer = Writer(file, schema, codec)

            def append(records: list[bytes]) -> None:
                writer.write({"data": records[0]})
                if is_flushed:
                    writer.flush()
                    file.flush()

            yield append
            writer.flush()

    def read(path: Path) -> Iterator[bytes]:
        with path.open("rb") as file:
            for record in fastavro.reader(file):
                yield record["data"]

    return Format(name, "fastavro", checksum, write, read, PROCESS, "`flush`")


def warc() -> Format:
    """A web archive: each record is a member of gzip, with a SHA-1 of its contents."""

    @contextmanager
    def write(path: Path, **_: bool) -> Iterator[Append]:
        with path.open("wb") as file:
            writer = WARCWriter(file, gzip=True)

            def append(records: list[bytes]) -> None:
                # By default, an id is random and the date is now: the same places would have other bytes in each run.
                headers = {
                    "Content-Type": "application/json",
                    "WARC-Date": "2026-01-01T00:00:00Z",
                    "WARC-Record-ID": f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, records[0].decode())}>",
                }
                payload = io.BytesIO(records[0])
                writer.write_record(
                    writer.create_warc_record("urn:record", "resource", payload, warc_headers_dict=headers)
                )

            yield append

    def read(path: Path) -> Iterator[bytes]:
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                yield record.content_stream().read()

    return Format("WARC, gzip", "warcio", "CRC-32, SHA-1", write, read, KERNEL)


def queue() -> Format:
    """A queue in files of pickles."""

    @contextmanager
    def write(path: Path, **_: bool) -> Iterator[Append]:
        pending = persistqueue.Queue(str(path))
        yield lambda records: pending.put(records[0])
        pending.task_done()

    def read(path: Path) -> Iterator[bytes]:
        pending = persistqueue.Queue(str(path))
        while pending.qsize():
            yield pending.get(block=False)

    return Format("persist-queue", "persist-queue", "none", write, read, KERNEL)


# Tables and arrays ------------------------------------------------------------------------------------------------

COLUMN = pyarrow.schema([("data", pyarrow.binary())])


def batch_of(records: list[bytes]) -> pyarrow.RecordBatch:
    return pyarrow.record_batch([pyarrow.array(records, pyarrow.binary())], schema=COLUMN)


def parquet() -> Format:
    @contextmanager
    def write(path: Path, **_: bool) -> Iterator[Append]:
        with pyarrow.parquet.ParquetWriter(path, COLUMN, write_page_checksum=True) as writer:
            yield lambda records: writer.write_batch(batch_of(records))

    def read(path: Path) -> Iterator[bytes]:
        yield from pyarrow.parquet.read_table(path, page_checksum_verification=True)["data"].to_pylist()

    def rescue(path: Path) -> Iterator[bytes]:
        with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
            for number in range(file.num_row_groups):
                with suppress(Exception):
                    yield from file.read_row_group(number)["data"].to_pylist()

    return Format("Parquet", "pyarrow", "CRC-32", write, read, PROCESS, rescues={"each row group": rescue}, batch=1000)


def arrow_stream() -> Format:
    @contextmanager
    def write(path: Path, *, is_flushed: bool) -> Iterator[Append]:
        with path.open("wb") as file, pyarrow.ipc.new_stream(file, COLUMN) as writer:

            def append(records: list[bytes]) -> None:
                writer.write_batch(batch_of(records))
                if is_flushed:
                    file.flush()

            yield append

    def read(path: Path) -> Iterator[bytes]:
        with path.open("rb") as file:
            for batch in pyarrow.ipc.open_stream(file):
                yield from batch["data"].to_pylist()

    return Format("Arrow IPC stream", "pyarrow", "none", write, read, PROCESS, "`flush`", batch=100)


def arrow_file() -> Format:
    """Also called Feather, version 2."""

    @contextmanager
    def write(path: Path, **_: bool) -> Iterator[Append]:
        with pyarrow.ipc.new_file(path, COLUMN) as writer:
            yield lambda records: writer.write_batch(batch_of(records))

    def read(path: Path) -> Iterator[bytes]:
        yield from pyarrow.ipc.open_file(path).read_all()["data"].to_pylist()

    def rescue(path: Path) -> Iterator[bytes]:
        file = pyarrow.ipc.open_file(path)
        for number in range(file.num_record_batches):
            with suppress(Exception):
                yield from file.get_batch(number)["data"].to_pylist()

    return Format("Arrow IPC file", "pyarrow", "none", write, read, PROCESS, rescues={"each batch": rescue}, batch=100)


HDF5_CHUNK = 100


def hdf5() -> Format:
    """A dataset of strings of a fixed length, with Fletcher's checksum for each chunk."""

    @contextmanager
    def write(path: Path, *, is_flushed: bool) -> Iterator[Append]:
        with h5py.File(path, "w") as file:
            data = file.create_dataset("data", (0,), "S256", maxshape=(None,), chunks=(HDF5_CHUNK,), fletcher32=True)

            def append(records: list[bytes]) -> None:
                data.resize(len(data) + len(records), axis=0)
                data[-len(records) :] = records
                if is_flushed:
                    file.flush()

            yield append

    def read(path: Path) -> Iterator[bytes]:
        with h5py.File(path) as file:
            yield from map(bytes, file["data"][:])

    def rescue(path: Path) -> Iterator[bytes]:
        with h5py.File(path) as file:
            for start in range(0, len(file["data"]), HDF5_CHUNK):
                with suppress(Exception):
                    yield from map(bytes, file["data"][start : start + HDF5_CHUNK])

    return Format("HDF5", "h5py", "Fletcher-32", write, read, PROCESS, "`flush`", {"each chunk": rescue}, HDF5_CHUNK)


# Engines ----------------------------------------------------------------------------------------------------------


def key_of(number: int) -> bytes:
    return struct.pack(">Q", number)


def sqlite() -> Format:
    """A row for each record, in WAL mode, each row committed."""

    @contextmanager
    def write(path: Path, **_: bool) -> Iterator[Append]:
        path.mkdir()
        with closing(sqlite3.connect(path / "log.sqlite", isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, data BLOB)")
            yield lambda records: database.execute("INSERT INTO log (data) VALUES (?)", records)

    def read(path: Path) -> Iterator[bytes]:
        with closing(sqlite3.connect(path / "log.sqlite")) as database:
            for (data,) in database.execute("SELECT data FROM log ORDER BY id"):
                yield data if isinstance(data, bytes) else str(data).encode()

    def both_ends(path: Path) -> Iterator[bytes]:
        with closing(sqlite3.connect(path / "log.sqlite")) as database:
            found: dict[int, bytes] = {}
            for order in ("ASC", "DESC"):
                with suppress(sqlite3.Error):
                    for number, data in database.execute(f"SELECT id, data FROM log ORDER BY id {order}"):  # noqa: S608
                        found[number] = data  # noqa: PERF403 - up to an error
        yield from (data if isinstance(data, bytes) else str(data).encode() for data in found.values())

    def recover(path: Path) -> Iterator[bytes]:
        new = path / "recovered.sqlite"
        sql = sqlite_command(path / "log.sqlite", ".recover")
        subprocess.run(["sqlite3", new], input=sql, capture_output=True, check=False)
        with closing(sqlite3.connect(new)) as database:
            yield from (bytes(data) for (data,) in database.execute("SELECT data FROM log ORDER BY id"))

    rescues: dict[str, Read] = {"from both ends": both_ends}
    # Not each build of the command has it.
    if shutil.which("sqlite3") and b"CREATE" in sqlite_command(":memory:", "CREATE TABLE t (i)", ".recover"):
        rescues["`.recover`"] = recover
    return Format("SQLite, WAL mode", "sqlite", "WAL only", write, read, DISK, rescues=rescues, is_engine=True)


def sqlite_command(*arguments: object) -> bytes:
    """The output of SQLite's own command."""
    command = ["sqlite3", *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout


def salvaged_for(read: Read) -> Read:
    """The engine reads its database after `cordwood salvage --repair-bit-flips` of its logs."""

    def rescue(path: Path) -> Iterable[bytes]:
        for log in [*path.glob("*.log"), *path.glob("MANIFEST-*")]:
            new = path.with_name("salvaged")
            with suppress(cordwood.CordwoodError):
                cordwood.salvage(log, new, repair_bit_flips=True)
                new.replace(log)
            new.unlink(missing_ok=True)
        return read(path)

    return rescue


def lmdb_file() -> Format:
    @contextmanager
    def write(path: Path, **_: bool) -> Iterator[Append]:
        numbers = itertools.count()
        with lmdb.open(str(path), map_size=1 << 28) as database:

            def append(records: list[bytes]) -> None:
                with database.begin(write=True) as transaction:
                    transaction.put(key_of(next(numbers)), records[0], append=True)

            yield append

    def read(path: Path) -> Iterator[bytes]:
        with lmdb.open(str(path), map_size=1 << 28) as database, database.begin() as transaction:
            yield from (bytes(value) for _, value in transaction.cursor())

    return Format("LMDB", "lmdb", "none", write, read, DISK, is_engine=True)


def leveldb() -> Format:
    @contextmanager
    def write(path: Path, *, is_flushed: bool) -> Iterator[Append]:
        numbers = itertools.count()
        with closing(plyvel.DB(str(path), create_if_missing=True)) as database:
            yield lambda records: database.put(key_of(next(numbers)), records[0], sync=is_flushed)

    def read(path: Path) -> Iterator[bytes]:
        with closing(plyvel.DB(str(path))) as database:
            yield from database.iterator(include_key=False)

    def rescue(path: Path) -> Iterator[bytes]:
        plyvel.repair_db(str(path))
        return read(path)

    rescues = {"`repair_db`": rescue, "`cordwood salvage`": salvaged_for(read)}
    return Format("LevelDB", "plyvel", "CRC-32C", write, read, KERNEL, "`sync`", rescues, is_engine=True)


def rocksdb() -> Format:
    def options() -> rocksdict.Options:
        chosen = rocksdict.Options(raw_mode=True)
        chosen.create_if_missing(True)  # noqa: FBT003 - the binding takes no name
        return chosen

    @contextmanager
    def write(path: Path, *, is_flushed: bool) -> Iterator[Append]:
        numbers = itertools.count()
        database = rocksdict.Rdict(str(path), options())
        durable = rocksdict.WriteOptions()
        durable.sync = is_flushed
        yield lambda records: database.put(key_of(next(numbers)), records[0], write_opt=durable)
        database.close()

    def read(path: Path) -> Iterator[bytes]:
        database = rocksdict.Rdict(str(path), options())
        try:
            yield from database.values()
        finally:
            database.close()

    def rescue(path: Path) -> Iterator[bytes]:
        rocksdict.Rdict.repair(str(path), options())
        return read(path)

    rescues = {"`repair`": rescue, "`cordwood salvage`": salvaged_for(read)}
    return Format("RocksDB", "rocksdict", "CRC-32C, XXH3", write, read, KERNEL, "`sync`", rescues, is_engine=True)


def formats() -> dict[str, Format]:
    """All of them, by their names."""
    all_formats = [
        cordwood_log("cordwood"),
        cordwood_log("cordwood, packed", dialect="packed"),
        array_record(),
        arrow_file(),
        arrow_stream(),
        avro("Avro", "null", "none"),
        avro("Avro, snappy", "snappy", "CRC-32, not compared"),
        bagz_file(),
        hdf5(),
        lines("JSON lines", "python", "none", Path.open),
        lines("JSON lines, gzip", "python", "CRC-32, at the end", gzip.open),
        lines("JSON lines, zstd", "zstandard", "XXH64, at the end", zstd_file),
        mcap_file(),
        messages(),
        parquet(),
        queue(),
        protobuf(),
        tfrecord_checked(),
        tfrecord_package(),
        warc(),
        leveldb(),
        rocksdb(),
        lmdb_file(),
        sqlite(),
    ]
    return {each.name: each for each in all_formats}


def version_of(package: str) -> str:
    """The version of a distribution on PyPI, or of a part of Python."""
    own = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    return own.get(package) or version(package)
