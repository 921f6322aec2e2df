"""A runner for readers that others wrote: an example for yours.

    python conformance/suite.py python conformance/runners/foreign.py NAME [COMMAND ...]

The name is that of a Python package below, or of a command that prints each record of the file as a line in hex.
"""

import json
import logging
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from suite import crc32c

LEVELDB, ROCKSDB, ARGUMENTS = ("leveldb",), ("leveldb", "recyclable", "rocksdb"), sys.argv[2:]
# Less than the suite waits: it would end this runner, but not the command.
COMMAND_SECONDS = 10


def command(path):
    done = subprocess.run([*ARGUMENTS, path], capture_output=True, check=False, timeout=COMMAND_SECONDS)
    yield from map(bytes.fromhex, done.stdout.decode().split("\n")[:-1])
    if done.stderr or done.returncode:
        raise ValueError(done.stderr.decode()[:200])


def leveldb_export(path):
    from leveldb_export.records import RecordsReader

    with Path(path).open("rb") as file:
        yield from RecordsReader(file, no_check_crc=False)


def dfindexeddb(path):
    from dfindexeddb.leveldb import log

    log.WriteBatch.FromBytes = staticmethod(lambda data, **_: bytes(data))  # The record, not its operations.
    yield from log.FileReader(path).GetWriteBatches()


def chromium_reader(path):
    from chromium_reader.leveldb import _iter_log_blocks

    with Path(path).open("rb") as file:
        yield from (record for _, record in _iter_log_blocks(file, path))


def wandb(path):
    from wandb.sdk.internal.datastore import DataStore

    store = DataStore()
    store.open_for_scan(path)
    yield from iter(store.scan_data, None)


def swanlab(path):
    from swanlab.sdk.internal.core_python.store import DataStoreReader

    reader = DataStoreReader()
    reader.open(path)
    yield from iter(reader.scan, None)


READERS = {
    "leveldb-export": (leveldb_export, LEVELDB),
    "dfindexeddb": (dfindexeddb, LEVELDB),
    "chromium-reader": (chromium_reader, LEVELDB),
    "wandb": (wandb, ("wandb",)),
    "swanlab": (swanlab, ("swanlab",)),
    "RocksDB, point in time": (command, ROCKSDB),
    "RocksDB, skip any": (command, ROCKSDB),
}


class Warnings(logging.Handler):
    """A warning in the log of a program is its report of damage."""

    def emit(self, record):
        self.latest = record.getMessage()


def answer(request, read, dialects):
    if request["do"] == "describe":
        return {"dialects": dialects, "policies": ["skip"], "features": []}
    if (dialect := request.get("dialect", request.get("detected"))) not in dialects:
        return {"unsupported": dialect or "detection"}
    records, warnings.latest = [], None
    try:
        for record in read(request["path"]):
            records.append([None, None, len(record), f"{crc32c(record):08x}"])  # noqa: PERF401 - up to an exception
    except subprocess.TimeoutExpired:
        return {"error": "no answer in time"}
    except Exception as error:  # noqa: BLE001 - so is any exception
        warnings.latest = f"{type(error).__name__}: {error}"
    return {"records": records} | ({"reported": warnings.latest} if warnings.latest else {})


warnings = Warnings(logging.WARNING)
if __name__ == "__main__":
    logging.getLogger().addHandler(warnings)
    reader = READERS.get(sys.argv[1], (command, LEVELDB))
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"id": asked["id"]} | answer(asked, *reader)), flush=True)
