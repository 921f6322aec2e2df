"""Writes tests/vectors: small logs from real engines, and a few made by hand where the engine has no Python package.

    .venv/bin/python tools/vectors.py

It needs the dependency groups `test` and `appengine` (`make .venv/test.stamp .venv/appengine.stamp`). Run it when an
engine writes a new form, never to make a test pass: cordwood is compared with these files. Then look at `git diff
--stat` and record the changes in tests/vectors/README.md; a test checks the table there.
"""

from __future__ import annotations

import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

import plyvel  # noqa: E402
import reference  # noqa: E402
from google.protobuf.json_format import ParseDict  # noqa: E402
from real_engines import the_log_of  # noqa: E402
from rocksdict import Options, Rdict  # noqa: E402
from swanlab.sdk.internal.core_python.store import DataStoreWriter  # noqa: E402
from wandb.proto.wandb_internal_pb2 import Record  # noqa: E402
from wandb.sdk.internal.datastore import DataStore  # noqa: E402

VECTORS = ROOT / "tests" / "vectors"
NOISE = random.Random(20261122).randbytes(1 << 17)
# Lengths around those at which a record is split, and one of several blocks.
LENGTHS = [*range(10), 100, 1_000, 100_000, *range(32_744, 32_748), 100, 10]


def key_of(index: int) -> bytes:
    return b"key-%06d" % index


def keep(path: Path, name: str) -> None:
    target = VECTORS / name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def keep_bytes(content: bytes, name: str) -> None:
    target = VECTORS / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def leveldb(directory: Path) -> None:
    database = plyvel.DB(str(directory / "db"), create_if_missing=True, write_buffer_size=64 << 20)
    for index, length in enumerate(LENGTHS):
        database.put(key_of(index), NOISE[index : index + length])
        if index % 5 == 0:
            database.delete(key_of(index))
    with database.write_batch() as batch:
        batch.put(b"a", b"1")
        batch.delete(b"a")
    database.close()
    log, [manifest] = the_log_of(directory / "db"), (directory / "db").glob("MANIFEST-*")
    keep(log, "leveldb/plyvel/000003.log")
    keep(manifest, "leveldb/plyvel/MANIFEST-000002")
    # Zeros, as golang/leveldb leaves them: it preallocates blocks.
    small = plyvel.DB(str(directory / "small"), create_if_missing=True)
    for index in range(5):
        small.put(key_of(index), b"value")
    small.close()
    keep_bytes(the_log_of(directory / "small").read_bytes().ljust(1 << 16, b"\0"), "leveldb/preallocated/000003.log")
    keep_bytes(manifest.read_bytes().ljust(1 << 16, b"\0"), "leveldb/preallocated/MANIFEST-000002")


def rocksdb_options(**options: object) -> Options:
    made = Options(raw_mode=True)
    made.create_if_missing(True)
    made.set_write_buffer_size(64 << 20)
    for name, value in options.items():
        getattr(made, f"set_{name}")(value)
    return made


def put_all(database: Rdict, lengths: list[int]) -> None:
    for index, length in enumerate(lengths):
        database.put(key_of(index), NOISE[index : index + length])
    database.flush_wal(True)


def rocksdb(directory: Path) -> None:
    database = Rdict(str(directory / "plain"), rocksdb_options())
    put_all(database, [length for length in LENGTHS if length < 32_746])
    log = the_log_of(directory / "plain")
    keep(log, f"rocksdb/plain/{log.name}")
    database.close()

    # The third log, which is shorter, reuses the file of the first.
    database = Rdict(str(directory / "recycled"), rocksdb_options(recycle_log_file_num=2))
    for _ in range(4):
        put_all(database, [300] * 300)
        database.flush()
    put_all(database, [*LENGTHS[:12], 40_000, 5])
    log = the_log_of(directory / "recycled")
    keep(log, f"rocksdb/recycled/{log.name}")
    database.close()

    Rdict(str(directory / "compressed"), rocksdb_options()).close()
    # rocksdict has no setter for this option, but its options file has a line for it.
    for path in (directory / "compressed").glob("OPTIONS-*"):
        path.write_text(re.sub("wal_compression=.*", "wal_compression=kZSTD", path.read_text()))
    database = Rdict(str(directory / "compressed"), *Options.load_latest(str(directory / "compressed")))
    for index, length in enumerate([*LENGTHS[:12], 40_000]):
        database[key_of(index)] = NOISE[:length] + bytes(length)
    database.flush_wal(True)
    log = the_log_of(directory / "compressed")
    keep(log, f"rocksdb/compressed/{log.name}")
    database.close()


def wandb(directory: Path) -> None:
    """Not a whole run, which would contain the names of the machine and its user."""
    store = DataStore()
    store.open_for_write(str(directory / "run-1.wandb"))
    records = [
        {"run": {"run_id": "vector01", "project": "cordwood"}},
        {"config": {"update": [{"key": "lr", "value_json": "0.1"}]}},
        *(
            {
                "history": {
                    "item": [
                        {"nested_key": ["_step"], "value_json": str(step)},
                        {"nested_key": ["loss"], "value_json": str(1 / (step + 1))},
                        {"nested_key": ["text"], "value_json": f'"{"x" * step * 1_500}"'},
                    ],
                    "step": {"num": step},
                }
            }
            for step in range(12)
        ),
        {"summary": {"update": [{"key": "loss", "value_json": "0.25"}]}},
        {"exit": {"exit_code": 0}},
    ]
    for record in records:
        store.write(ParseDict(record, Record()))
    store.close()
    keep(directory / "run-1.wandb", "wandb/run/run-1.wandb")


def swanlab(directory: Path) -> None:
    store = DataStoreWriter()
    store.open(directory / "run.swanlab")
    for index, length in enumerate([1, 100, 40_000, 10]):
        store.write(NOISE[index : index + length])
    store.close()
    keep(directory / "run.swanlab", "swanlab/run/run.swanlab")


def pebble_fragment(kind: int, payload: bytes, number: int, synced: int | None = None) -> bytes:
    extra = struct.pack("<I", number) + (b"" if synced is None else struct.pack("<Q", synced))
    checksum = reference.mask(reference.crc32c(bytes([kind]) + extra + payload))
    return reference.HEADER.pack(checksum, len(payload), kind) + extra + payload


def pebble() -> None:
    """Made by hand, after record/record.go and record/log_writer.go: Pebble is a Go package."""
    # A block's last bytes, if too few for a header, are zeros. Here everything fits in the first block except the last
    # record, which is split at its end.
    for name, header_len, first_kind in ("recyclable-trailer/000002.log", 11, 5), ("walsync/000007.log", 19, 9):
        number = int(Path(name).stem)
        file = bytearray()

        def add(kind: int, payload: bytes) -> None:
            synced = len(file) if first_kind == 9 else None  # noqa: B023
            file.extend(pebble_fragment(first_kind + kind, payload, number, synced))  # noqa: B023

        for index in range(50):
            add(0, NOISE[index : index + 20 + index])
        room = reference.BLOCK_LEN - len(file) - header_len
        add(1, NOISE[:room])
        add(3, NOISE[room : room + 5_000])
        # The end of the log: the header of an empty fragment with the next log number, without a checksum.
        file.extend(reference.HEADER.pack(0, 0, first_kind if first_kind == 5 else 5) + struct.pack("<I", number + 1))
        keep_bytes(bytes(file), f"pebble/{name}")


def appengine() -> None:
    """The App Engine SDK makes the entities; the frames are LevelDB's, made here by the tests' reference."""
    import json

    command = [str(ROOT / ".venv/appengine/bin/python"), str(ROOT / "tests/helpers/appengine_judge.py"), "make", "7"]
    made = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    keep_bytes(reference.encode([bytes.fromhex(record) for record, _ in made[:60]]), "appengine/export/output-0")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        for write in (leveldb, rocksdb, wandb, swanlab):
            directory = Path(name, write.__name__)
            directory.mkdir()
            write(directory)
    pebble()
    appengine()
    # The table of tests/vectors/README.md has these columns.
    for path in sorted(path for path in VECTORS.rglob("*") if path.is_file() and path.suffix != ".md"):
        print(f"{path.relative_to(VECTORS)} | {path.stat().st_size:,} | {zlib.crc32(path.read_bytes()):08x}")


if __name__ == "__main__":
    main()
