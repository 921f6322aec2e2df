"""The originals that `cordwood.compat` stands in for, the calls that are made of both, and logs to make them with."""

from __future__ import annotations

import importlib
import os
import random
import struct
import sys
import types
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import reference
from write_batch import DELETE, PUT, write_batch

# Those that are in an environment of their own, for they have dependencies that clash with others or with each other.
# What reads logs in them needs none of these, so they lie in a folder without. `make test` fills it.
PEERS = Path(os.environ.get("CORDWOOD_PEERS") or Path(sys.prefix) / "peers")


def original(name: str) -> types.ModuleType:
    """A module of an original; the test is skipped if it is not there."""
    if str(PEERS) not in sys.path:
        sys.path.append(str(PEERS))
    # The other half of leveldb-export, which its `__init__` imports, needs protobuf below version 4.
    half = types.ModuleType("leveldb_export.export")
    half.parse_leveldb_documents = None
    sys.modules.setdefault("leveldb_export.export", half)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error}: `make test` installs it into {PEERS}")


# Logs ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flavour:
    """How a peer's files differ from LevelDB's: a header of seven bytes, and checksums."""

    header: bytes = b""

    def checksum(self, kind: int, payload: bytes) -> int:
        if not self.header:
            return reference.HEADER.unpack_from(reference.fragment(kind, payload))[0]
        return zlib.crc32(payload, zlib.crc32(bytes([kind])))

    def fragment(self, kind: int, payload: bytes) -> bytes:
        return reference.HEADER.pack(self.checksum(kind, payload), len(payload), kind) + payload


LEVELDB = Flavour()
WANDB = Flavour(b":W&B\xe1\xbe\x00")
SWANLAB = Flavour(b":SWL\xd6\xe1\x02")


@dataclass
class Log:
    """A log that can be damaged, and its twin: the same log as LevelDB has it, which the reference reads."""

    flavour: Flavour
    file: bytearray
    spans: list[list[tuple[int, int]]]
    """Of each record, the spans of its fragments."""

    @classmethod
    def of(cls, flavour: Flavour, records: list[bytes]) -> Log:
        # The header is as long as an empty record, and stands in its place.
        twin = reference.encode([b"", *records] if flavour.header else records)
        spans = []
        for item in reference.fragments(twin, verify_checksums=True):
            if item.kind in (reference.FULL, reference.FIRST):
                spans.append([])
            spans[-1].append((item.begin, item.end))
        log = cls(flavour, bytearray(twin), spans[1:] if flavour.header else spans)
        log.file[: len(flavour.header)] = flavour.header
        for begin, _ in log.fragments():
            log.seal(begin)
        return log

    def fragments(self) -> list[tuple[int, int]]:
        return [span for spans in self.spans for span in spans]

    def seal(self, begin: int) -> None:
        """Puts the right checksum into a header."""
        _, length, kind = reference.HEADER.unpack_from(self.file, begin)
        payload = bytes(self.file[begin + 7 : begin + 7 + length])
        struct.pack_into("<I", self.file, begin, self.flavour.checksum(kind, payload))

    def small(self, rng: random.Random) -> tuple[int, int]:
        """A record of one fragment, with others around it in its block."""
        alone = [spans[0] for spans in self.spans if len(spans) == 1 and spans[0][1] - spans[0][0] > 7 + 40]
        blocks = [begin // reference.BLOCK_LEN for begin, _ in alone]
        return rng.choice([span for index, span in enumerate(alone[1:-1]) if len({*blocks[index : index + 3]}) == 1])

    def big(self) -> list[tuple[int, int]]:
        return max(self.spans, key=len)


def plain_records(rng: random.Random) -> list[bytes]:
    lengths = [*[rng.randrange(50, 2_000) for _ in range(20)], 100_000, *[rng.randrange(50, 2_000) for _ in range(39)]]
    return [rng.randbytes(length) for length in lengths]


def batch_records(rng: random.Random) -> list[bytes]:
    records = []
    for index, value in enumerate(plain_records(rng)):
        key = b"key-%04d" % index
        operations = [(PUT, key, value), (DELETE, key), (PUT, key * 20, b"")][: 1 + index % 3]
        records.append(write_batch(3 * index + 1, operations))
    return records


def twin_of(flavour: Flavour, file: bytes) -> bytes:
    """The file as LevelDB would have it, wherever a checksum is right; where one is wrong, it stays wrong."""
    if not flavour.header:
        return file
    twin = bytearray(file)
    twin[:7] = reference.fragment(reference.FULL, b"")
    for begin in range(7, len(file) - 6):
        left = reference.BLOCK_LEN - begin % reference.BLOCK_LEN
        stored, length, kind = reference.HEADER.unpack_from(file, begin)
        if kind < 16 and 7 + length <= min(left, len(file) - begin):
            payload = bytes(file[begin + 7 : begin + 7 + length])
            if stored == flavour.checksum(kind, payload):
                twin[begin : begin + 4] = reference.fragment(kind, payload)[:4]
    return bytes(twin)


def truth(flavour: Flavour, file: bytes, *, salvage: bool = False) -> list[reference.Record]:
    """The records that can be read."""
    events = reference.events(twin_of(flavour, file), salvage=salvage)
    records = [event for event in events if isinstance(event, reference.Record)]
    return records[1:] if flavour.header else records


# Damage: each takes a log and a source of chance, and changes the log's file. ----------------------

Damage = Callable[[Log, random.Random], None]
DAMAGE: dict[str, Damage] = {}


def damage(function: Damage) -> Damage:
    DAMAGE[function.__name__] = function
    return function


@damage
def flipped_payload(log, rng):
    begin, end = log.small(rng)
    log.file[rng.randrange(begin + 7, end)] ^= 1 << rng.randrange(8)


@damage
def flipped_payload_of_a_piece(log, rng):
    begin, end = log.big()[1]
    log.file[rng.randrange(begin + 7, end)] ^= 1 << rng.randrange(8)


@damage
def flipped_checksum(log, rng):
    begin, _ = log.small(rng)
    log.file[begin + rng.randrange(4)] ^= 1 << rng.randrange(8)


@damage
def flipped_kind(log, rng):
    begin, _ = log.small(rng)
    log.file[begin + 6] = reference.MIDDLE


@damage
def length_too_small(log, rng):
    begin, end = log.small(rng)
    struct.pack_into("<H", log.file, begin + 4, end - begin - 7 - rng.randrange(1, 40))


@damage
def length_too_big(log, rng):
    begin, end = log.small(rng)
    struct.pack_into("<H", log.file, begin + 4, end - begin - 7 + rng.randrange(1, 20))


@damage
def length_past_block(log, rng):
    struct.pack_into("<H", log.file, log.small(rng)[0] + 4, 0xFFFF)


@damage
def length_past_end(log, rng):
    begin, end = log.fragments()[-1]
    struct.pack_into("<H", log.file, begin + 4, end - begin - 7 + rng.randrange(1, 20))


@damage
def unknown_kind(log, rng):
    begin, _ = log.small(rng)
    log.file[begin + 6] = 9
    log.seal(begin)


@damage
def torn_payload(log, rng):
    begin, end = log.fragments()[-1]
    del log.file[rng.randrange(begin + 8, end) :]


@damage
def torn_header(log, rng):
    del log.file[log.fragments()[-1][0] + rng.randrange(1, 7) :]


@damage
def torn_behind_header(log, rng):
    del log.file[log.fragments()[-1][0] + 7 :]


@damage
def torn_in_a_piece(log, rng):
    begin, end = log.big()[1]
    del log.file[rng.randrange(begin + 8, end) :]


@damage
def torn_between_pieces(log, rng):
    del log.file[log.big()[0][1] :]


@damage
def zero_tail(log, rng):
    log.file += bytes(rng.randrange(7, 200_000))


@damage
def zeroed_page(log, rng):
    page = log.big()[1][0] + 4096 * rng.randrange(1, 7)
    log.file[page : page + 4096] = bytes(4096)


@damage
def zeroed_block(log, rng):
    begin, end = log.big()[1]
    log.file[begin:end] = bytes(end - begin)


@damage
def garbage_tail(log, rng):
    log.file += rng.randbytes(5_000)


@damage
def first_without_last(log, rng):
    begin, _ = log.big()[1]
    log.file[begin + 6] = reference.FULL
    log.seal(begin)


@damage
def lost_block(log, rng):
    begin, end = log.big()[1]
    del log.file[begin:end]


@damage
def nonzero_trailer(log, rng):
    """The block behind the big record ends in a trailer; its bytes are not zero."""
    _, end = log.big()[-1]
    room = reference.BLOCK_LEN - end % reference.BLOCK_LEN
    del log.file[end:]
    for payload in (rng.randbytes(room - 7 - 4), b"behind the trailer"):
        log.file += log.flavour.fragment(reference.FULL, payload) + b"trai"
    del log.file[-4:]


@damage
def missing_start(log, rng):
    del log.file[log.big()[0][0] :]
    log.file += log.flavour.fragment(reference.LAST, b"the end of nothing")
    log.file += log.flavour.fragment(reference.FULL, b"behind it")


# Logs that are not damaged, by the lengths of their records.
def lengths(flavour: Flavour) -> dict[str, list[int]]:
    used = len(flavour.header)
    room = reference.BLOCK_LEN - used - 7
    edges = {f"left_{left}": [room - left, 500, 30] for left in range(15)}
    return {
        "no_records": [],
        "one_record": [10],
        "many_blocks": [3_000_000, 5, 70_000],
        "mixed": [length for length in range(0, 3_000, 7) if length],
        **edges,
        **{f"{name}_at_end": those[:1] for name, those in edges.items()},
    }


# Calls: what each gives, as plain values. The same is asked of the original and of the drop-in. -------

Calls = Callable[[types.ModuleType, Path], Iterator[object]]


def shown(data: bytes) -> str:
    return f"{len(data)} {zlib.crc32(data):08x}"


def wandb_scan_data(module, path):
    store = module.DataStore()
    try:
        store.open_for_scan(str(path))
        while (data := store.scan_data()) is not None:
            yield shown(data), store.get_offset(), store.in_last_block()
    finally:
        store.close()


def wandb_scan_record(module, path):
    """Fragments, with the trailers passed by hand, as a strict script does it."""
    store = module.DataStore()
    try:
        store.open_for_scan(str(path))
        while True:
            left = module.LEVELDBLOG_BLOCK_LEN - store._index % module.LEVELDBLOG_BLOCK_LEN  # noqa: SLF001 - scripts do
            if left < module.LEVELDBLOG_HEADER_LEN:
                store._fp.read(left)  # noqa: SLF001 - scripts do
                store._index += left  # noqa: SLF001 - scripts do
            record = store.scan_record()
            if record is None:
                return
            yield record[0], shown(record[1]), store._index  # noqa: SLF001
    finally:
        store.close()


def swanlab_iterate(module, path):
    reader = module.DataStoreReader()
    reader.open(path)
    try:
        yield from map(shown, reader)
    finally:
        reader.close()


def swanlab_scan(module, path):
    reader = module.DataStoreReader()
    reader.open(path)
    try:
        yield from map(shown, iter(reader.scan, None))
    finally:
        reader.close()


def swanlab_wandb(module, path):
    with module.WBDataStoreReader() as reader:
        reader.open(path)
        yield from map(shown, iter(reader.scan, None))


def records_iterate(module, path):
    with path.open("rb") as file:
        yield from map(shown, module.RecordsReader(file, no_check_crc=False))


def records_iterate_by_default(module, path):
    with path.open("rb") as file:
        yield from map(shown, module.RecordsReader(file))


def records_read(module, path):
    with path.open("rb") as file:
        reader = module.RecordsReader(file, no_check_crc=False)
        while True:
            try:
                data = reader.read()
            except EOFError:
                return
            yield shown(data), reader.tell()


def ccl_records(module, path):
    file = module.LogFile(path)
    try:
        for found in file:
            state = found.state.name.title()
            kind = found.file_type.name.title()
            compressed = found.was_compressed
            keys = (shown(found.key), shown(found.user_key))
            yield (*keys, shown(found.value), found.seq, state, kind, found.offset, compressed, file.file_no)
    finally:
        file.close()


def dfindexeddb_blocks(module, path):
    for block in module.FileReader(str(path)).GetBlocks():
        yield block.offset, shown(block.data)


def dfindexeddb_fragments(module, path):
    for found in module.FileReader(str(path)).GetPhysicalRecords():
        at = (found.base_offset, found.offset, found.contents_offset)
        yield (*at, found.checksum, found.length, found.record_type.name, shown(found.contents))


def dfindexeddb_batches(module, path):
    for batch in module.FileReader(str(path)).GetWriteBatches():
        yield batch.offset, batch.sequence_number, batch.count, len(list(batch.records))


def dfindexeddb_keys(module, path):
    for key in module.FileReader(str(path)).GetParsedInternalKeys():
        yield key.offset, key.record_type.name, key.sequence_number, shown(key.key), shown(key.value)


def outcome(calls: Calls, module: types.ModuleType, path: Path) -> list[object]:
    """What the calls give, up to the first exception; the last item says how they ended."""
    given: list[object] = []
    try:
        given.extend(calls(module, path))
    except Exception as error:  # noqa: BLE001 - whatever it is
        # Of what scripts catch; the names of the classes need not be the same.
        given.append(f"raised {'AssertionError' if isinstance(error, AssertionError) else _family(error)}")
    else:
        given.append("ended")
    return given


def _family(error: Exception) -> str:
    names = [base.__name__ for base in type(error).__mro__]
    known = ("DataStoreTruncatedError", "DataStoreCorruptionError", "DataStoreError")
    return next((name for name in known if name in names), type(error).__name__)


def on_and_on(step: Callable[[], bytes | None]) -> Iterator[bytes]:
    """What a call gives until it gives `None`, with the exceptions in between left out."""
    raised = 0
    while raised < 100:
        try:
            data = step()
        except Exception:  # noqa: BLE001 - whatever it is
            raised += 1
        else:
            if data is None:
                return
            yield data
