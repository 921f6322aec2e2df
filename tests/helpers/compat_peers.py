"""The originals that `cordwood.compat` stands in for, and the calls made to both."""

from __future__ import annotations

import importlib
import os
import sys
import types
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# The originals are installed without their dependencies, which clash with each other and with other packages; the parts
# that read logs need none of them. `make test` fills this directory.
PEERS = Path(os.environ.get("CORDWOOD_PEERS") or Path(sys.prefix) / "peers")


def original(name: str) -> types.ModuleType:
    """A module of an original; skips the test if it is not installed."""
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


# Calls: each yields plain values. The same calls are made to the original and to the drop-in. ---------

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
    """Fragments, stepping past the trailers by hand, as a strict script does."""
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
    """The results of the calls, up to the first exception; the last item says how they ended."""
    given: list[object] = []
    try:
        given.extend(calls(module, path))
    except Exception as error:  # noqa: BLE001 - any exception
        # Only exceptions that scripts catch matter; the class names may differ.
        given.append(f"raised {'AssertionError' if isinstance(error, AssertionError) else _family(error)}")
    else:
        given.append("ended")
    return given


def _family(error: Exception) -> str:
    names = [base.__name__ for base in type(error).__mro__]
    known = ("DataStoreTruncatedError", "DataStoreCorruptionError", "DataStoreError")
    return next((name for name in known if name in names), type(error).__name__)


def on_and_on(step: Callable[[], bytes | None]) -> Iterator[bytes]:
    """The results of a call until it returns `None`, ignoring exceptions in between."""
    raised = 0
    while raised < 100:
        try:
            data = step()
        except Exception:  # noqa: BLE001 - any exception
            raised += 1
        else:
            if data is None:
                return
            yield data
