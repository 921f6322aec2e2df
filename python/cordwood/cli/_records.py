"""The forms in which records leave (`cat`, `follow`) and enter (`write`) the command line."""

from __future__ import annotations

import argparse
import base64
import contextlib
import functools
import importlib
import operator
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from typing import TYPE_CHECKING, Any, Literal

import cordwood
from cordwood.cli._common import REPORTED_MAX, Status, complain, shown, source_of, stdout
from cordwood.errors import PayloadError

if TYPE_CHECKING:
    from typing import TypeAlias

    from cordwood.cli._json import Streamed
    from cordwood.payload import WriteBatch

    # The data of a record as JSON has it; the last array of that, and what is to be in it, if it is not there yet.
    _Encoded: TypeAlias = tuple[dict[str, Any], list[object], Streamed | None]

DELIMITERS = {"lines": b"\n", "nul": b"\0"}
"""The forms that end each record with a byte, which a record must not contain."""

RECORD_LEN_MAX = 1 << 30
"""No longer record is taken from stdin: readers refuse it."""

_CHUNK_LEN = 1 << 20

PAYLOADS = {
    "write-batch": "cordwood.payload.write_batch",
    "version-edit": "cordwood.payload.version_edit",
    "entity": "cordwood.payload.entity",
    "wandb": "cordwood.payload.wandb",
}
"""The choices of `--as`, and the modules whose `to_dict` decodes a record."""


# Out -------------------------------------------------------------------------------------------


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """How records are printed."""
    parser.add_argument(
        "--format",
        choices=("lines", "nul", "len", "raw"),
        default="lines",
        help="a newline or a NUL after each record, or its 32-bit little-endian length before it, or "
        "nothing (default: %(default)s)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help='one JSON object for each record: source, offset, end_offset, len, salvaged, and the data as "text" if it '
        'is UTF-8, else as "base64"',
    )
    parser.add_argument("--encoding", choices=("hex", "base64"), help='with --json: all data as "hex" or "base64"')
    parser.add_argument(
        "--as", dest="payload", choices=PAYLOADS, help='decode each record to JSON, in place of the data as "value"'
    )


def check_output(options: argparse.Namespace) -> None:
    """Whether the options of `add_output_arguments` go together.

    Raises:
        ValueError: One of them would be without effect.
    """
    if options.format != "lines" and (options.json or options.payload):
        raise ValueError(
            f"--format {options.format} is for records as they are, not for JSON, which has a line for each"
        )
    if options.encoding and (options.payload or not options.json):
        raise ValueError("--encoding is for the data of records in --json, without --as")


def joined(records: Iterable[bytes], form: str) -> bytes:
    """Records in one of the forms of `--format`."""
    if form == "raw":
        return b"".join(records)
    if form == "len":
        return b"".join(part for record in records for part in (len(record).to_bytes(4, "little"), record))
    return b"".join(part for record in records for part in (record, DELIMITERS[form]))


def write_batches(name: str, dialect: str | None) -> Callable[[bytes], WriteBatch]:
    """What reads the write batches of a log in this dialect, each to its end. It raises `PayloadError`.

    A few tags mean one thing to RocksDB and another to Pebble. A log of Pebble that was not closed is laid out like
    one of RocksDB, an old one like one of LevelDB. Then the batches themselves say whose they are: those that only one
    of the two can read. Where none has said so yet, RocksDB is assumed, and that is reported if it makes a difference.
    """
    from cordwood.payload.write_batch import WriteBatch

    engine: Literal["rocksdb", "pebble"] = "pebble" if dialect == "pebble" else "rocksdb"
    other: Literal["rocksdb", "pebble"] = "rocksdb" if dialect == "pebble" else "pebble"
    is_named = dialect in ("pebble", "rocksdb")
    is_sure = is_reported = False

    def read(record: bytes, engine: Literal["rocksdb", "pebble"]) -> WriteBatch:
        batch = WriteBatch(record, engine=engine)
        len(batch)
        return batch

    def read_undecided(record: bytes) -> WriteBatch:
        nonlocal engine, other, is_sure, is_reported
        try:
            batch = read(record, engine)
        except PayloadError:
            with contextlib.suppress(PayloadError):
                batch = read(record, other)
                engine, other, is_sure = other, engine, True
                return batch
            raise
        if is_sure:
            return batch
        try:
            rival = read(record, other)
        except PayloadError:
            is_sure = True
            return batch
        if not is_reported and (len(batch) != len(rival) or any(map(operator.ne, batch, rival))):
            complain(
                f"{shown(name)}: RocksDB and Pebble read this log differently, and it may be of either; "
                "taken for one of RocksDB: --dialect rocksdb or --dialect pebble decides"
            )
            is_reported = True
        return batch

    return functools.partial(read, engine=engine) if is_named else read_undecided


KINDS = {
    "write-batch": "a write batch, as in a write-ahead log of LevelDB, RocksDB or Pebble",
    "version-edit": "a version edit, as in a MANIFEST",
    "entity": "an entity of a Datastore or Firestore export",
}


def other_payload(record: bytes, payload: str) -> str | None:
    """What a record is that is not what `--as` says, and how to say it; `None` if it is nothing, or may be several."""
    from cordwood.payload.entity import decode
    from cordwood.payload.version_edit import VersionEdit
    from cordwood.payload.write_batch import WriteBatch

    checks: dict[str, Callable[[bytes], object]] = {
        "write-batch": lambda record: len(WriteBatch(record)),
        "version-edit": VersionEdit,
        "entity": decode,
    }
    fits: list[str] = []
    for name, check in checks.items():
        # Of nothing, a version edit is made, too.
        if name != payload and record:
            with contextlib.suppress(PayloadError):
                check(record)
                fits.append(name)
    return f"{KINDS[fits[0]]}: --as {fits[0]}" if len(fits) == 1 else None


class JsonPrinter:
    """Prints the records of a source as JSON. Those that `--as` cannot decode are reported, and decide the status.

    Attributes:
        status: Of the records so far.
    """

    def __init__(self, options: argparse.Namespace, name: str, dialect: str | None) -> None:
        from cordwood.cli._json import json_pieces, json_text

        self._json_pieces, self._json_text = json_pieces, json_text
        self._out = stdout()
        self._name = name
        self._payload: str | None = options.payload
        self._encode = _decoder(options.payload, name, dialect) if options.payload else _encoder(options.encoding)
        self._error_count = 0
        self._reported_max = REPORTED_MAX
        self.status = Status.CLEAN

    def __call__(self, record: cordwood.Record) -> None:
        """Prints a record."""
        data, array, streamed = self._encode(record.data)
        value = {
            "source": source_of(self._name),
            "offset": record.offset,
            "end_offset": record.end_offset,
            "len": len(record.data),
            "salvaged": record.salvaged,
            **data,
        }
        if streamed is None:
            self._out.write((self._json_text(value) + "\n").encode("utf-8", "backslashreplace"))
        else:
            for piece in self._json_pieces(value, array, streamed):
                self._out.write(piece.encode("utf-8", "backslashreplace"))
            self._out.write(b"\n")
        if "error" in data:
            self._tell(record, data["error"])

    def _tell(self, record: cordwood.Record, error: str) -> None:
        """Reports the first errors; only the first, if the record is something else that is known."""
        self.status = Status.DAMAGE
        self._error_count += 1
        if self._error_count > self._reported_max:
            return
        complain(f"{shown(self._name)}: the record at offset {record.offset}: {error}")
        if self._error_count == 1 and self._payload and (advice := other_payload(record.data, self._payload)):
            complain(f"{shown(self._name)}: the record at offset {record.offset} is {advice}")
            self._reported_max = 1

    def close(self) -> None:
        """Reports how many records in all could not be decoded, if not each of them was reported."""
        if self._error_count > self._reported_max:
            complain(f"{shown(self._name)}: {self._error_count:,} records in all could not be decoded")


def _decoder(payload: str, name: str, dialect: str | None) -> Callable[[bytes], _Encoded]:
    from cordwood.cli._json import Streamed

    as_text = _encoder(None)

    def decoder(value_of: Callable[[bytes], _Encoded]) -> Callable[[bytes], _Encoded]:
        def decode(data: bytes) -> _Encoded:
            try:
                value, array, streamed = value_of(data)
            except cordwood.CordwoodError as error:
                return {"error": str(error), **as_text(data)[0]}, [], None
            return {"value": value}, array, streamed

        return decode

    module = importlib.import_module(PAYLOADS[payload])
    if payload == "write-batch":
        batch_of = write_batches(name, dialect)

        def batch(data: bytes) -> _Encoded:
            batch = batch_of(data)
            operations: list[object] = []
            value = {"sequence": batch.sequence, "count": batch.count, "operations": operations}
            return value, operations, Streamed(module.operations_of(batch))

        return decoder(batch)
    if payload == "version-edit":

        def edit(data: bytes) -> _Encoded:
            fields: list[object] = []
            return {"fields": fields}, fields, Streamed(module.fields_of(module.VersionEdit(data)))

        return decoder(edit)
    return decoder(lambda data: (module.to_dict(data), [], None))


def _encoder(encoding: str | None) -> Callable[[bytes], _Encoded]:
    def as_hex(data: bytes) -> _Encoded:
        return {"hex": data.hex()}, [], None

    def as_base64(data: bytes) -> _Encoded:
        return {"base64": base64.b64encode(data).decode()}, [], None

    def as_text(data: bytes) -> _Encoded:
        try:
            return {"text": data.decode()}, [], None
        except UnicodeDecodeError:
            return as_base64(data)

    return {"hex": as_hex, "base64": as_base64, None: as_text}[encoding]


# In --------------------------------------------------------------------------------------------


def records_from(stream: BufferedReader, form: str) -> Iterator[list[bytes]]:
    """The records that a stream holds, as many at a time as there are before it has to be waited for.

    Raises:
        ValueError: The stream ends within a record that states its length, or a record is too long.
    """
    return _prefixed(stream) if form == "len" else _delimited(stream, DELIMITERS[form])


def _delimited(stream: BufferedReader, delimiter: bytes) -> Iterator[list[bytes]]:
    begun: list[bytes] = []
    begun_len = 0
    while chunk := stream.read1(_CHUNK_LEN):
        first, *others = chunk.split(delimiter)
        begun.append(first)
        begun_len += len(first)
        if begun_len > RECORD_LEN_MAX:
            raise ValueError(f"a record on stdin is longer than {RECORD_LEN_MAX} bytes; is the --format right?")
        if others:
            yield [b"".join(begun), *others[:-1]]
            begun, begun_len = [others[-1]], len(others[-1])
    if begun_len:
        yield [b"".join(begun)]


def _prefixed(stream: BufferedReader) -> Iterator[list[bytes]]:
    while prefix := stream.read(4):
        record_len = int.from_bytes(prefix, "little")
        if record_len > RECORD_LEN_MAX:
            raise ValueError(f"a record on stdin states a length of {record_len} bytes; is the --format right?")
        record = stream.read(record_len) if len(prefix) == 4 else b""
        if len(prefix) < 4 or len(record) < record_len:
            raise ValueError("stdin ends within a record; those before it are written")
        yield [record]
