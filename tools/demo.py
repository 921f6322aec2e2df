"""Read the log and the MANIFEST that a real LevelDB wrote, then let a real LevelDB read a log of ours.

Run it with `make demo`. It works in a temporary directory and exits with 1 if a check fails.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import plyvel

import cordwood
from cordwood import payload

BLOCK_LEN = 32 * 1024

Operation = tuple[bytes, bytes | None]
"""Key and value; without a value, it is a delete."""


def main() -> None:
    """Run both directions."""
    with tempfile.TemporaryDirectory(prefix="cordwood-demo-") as name:
        directory = Path(name)
        read_what_leveldb_wrote(directory)
        print()
        let_leveldb_read_ours(directory)
    print()
    print("everything is as it must be")


def check(right: bool, what: str) -> None:
    """End the demo with exit code 1 unless the condition is true."""
    if not right:
        raise SystemExit(f"DIFFERS: {what}")


# LevelDB writes, cordwood reads ----------------------------------------------------------------


def read_what_leveldb_wrote(directory: Path) -> None:
    """Fill a database, copy its log and MANIFEST while it is open, and read the copies."""
    print("1. LevelDB writes, cordwood reads")
    written, copies = directory / "written", directory / "copies"
    copies.mkdir()
    batches = list(sample_batches())
    # The write buffer is larger than all the data, so every operation is still in the log.
    database = plyvel.DB(str(written), create_if_missing=True, write_buffer_size=64 << 20)
    try:
        apply(database, batches)
        log = Path(shutil.copy(newest_log(written), copies))
        (manifest,) = (Path(shutil.copy(path, copies)) for path in written.glob("MANIFEST-*"))
    finally:
        database.close()

    print_table_head()
    records = read_and_print(log, log.name)
    check([decode_batch(record) for record in records] == batches, "the log holds other operations than were put")
    edits = read_and_print(manifest, manifest.name)
    check(b"leveldb.BytewiseComparator" in b"".join(edits), "the MANIFEST does not name the comparator")

    # As after a crash: only a part of the last write is in the file. That is not damage, and no
    # record before it is lost.
    torn = copies / "torn.log"
    torn.write_bytes(log.read_bytes()[:-5])
    kept = read_and_print(torn, f"{log.name}, last 5 bytes cut", ends="torn_tail")
    check(kept == records[:-1], "a torn tail must cost the last record and no other")

    for path, records_of_leveldb in ((log, records), (manifest, edits)):
        again = copies / "again"
        write_log(again, records_of_leveldb)
        check(again.read_bytes() == path.read_bytes(), f"{path.name}, written again, is another file")
        print(f"  {path.name}: its records, written again by cordwood, give the same file byte for byte")


def sample_batches() -> Iterator[list[Operation]]:
    """Yield puts, deletes and batches; some values are longer than a block, some empty."""
    rng = random.Random(1)
    for number in range(3000):
        yield [(b"user:%06d" % number, rng.randbytes(rng.randrange(200)))]
    for number in range(0, 3000, 7):
        yield [(b"user:%06d" % number, None)]
    for length in (0, BLOCK_LEN - 1, BLOCK_LEN, BLOCK_LEN + 1, 3 * BLOCK_LEN, 1 << 20):
        yield [(b"blob:%07d" % length, rng.randbytes(length))]
    for number in range(50):
        puts: list[Operation] = [(b"item:%04d:%02d" % (number, item), rng.randbytes(100)) for item in range(40)]
        deletes: list[Operation] = [(key, None) for key, _ in puts[::9]]
        yield puts + deletes


def apply(database: plyvel.DB, batches: Iterable[list[Operation]]) -> None:
    """Make each batch one write to the database, so that it becomes one record of the log."""
    for operations in batches:
        with database.write_batch(transaction=True) as batch:
            for key, value in operations:
                if value is None:
                    batch.delete(key)
                else:
                    batch.put(key, value)


# cordwood writes, LevelDB reads ----------------------------------------------------------------


def let_leveldb_read_ours(directory: Path) -> None:
    """Put a log of ours in place of a database's own, and let LevelDB replay it."""
    print("2. cordwood writes, LevelDB reads")
    place = directory / "replayed"
    plyvel.DB(str(place), create_if_missing=True).close()
    log = newest_log(place)

    records = []
    expected: dict[bytes, bytes] = {}
    sequence = 1
    for operations in sample_batches():
        records.append(encode_batch(sequence, operations))
        sequence += len(operations)
        for key, value in operations:
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = value
    write_log(log, records)
    print_table_head()
    check(read_and_print(log, log.name) == records, "cordwood reads other records than it wrote")

    database = plyvel.DB(str(place), paranoid_checks=True)
    try:
        found = dict(database.iterator(verify_checksums=True))
    finally:
        database.close()
    check(found == expected, "LevelDB has other keys and values than cordwood wrote")
    print(f"  LevelDB opened it with paranoid checks: all {len(expected):,} keys have the value that was written")


def write_log(path: Path, records: Iterable[bytes]) -> None:
    """Write a new log, replacing an existing file."""
    with cordwood.open(path, "w") as writer:
        for record in records:
            writer.append(record)


# Shared ----------------------------------------------------------------------------------------


def newest_log(database: Path) -> Path:
    """Return the log that LevelDB appends to, or replays at the next start: the one with the highest number."""
    return max(database.glob("*.log"))


def print_table_head() -> None:
    """Print the column names of `read_and_print`."""
    print(f"  {'file':<30} {'records':>8} {'payload':>12} {'file size':>12}  {'end':<10} skipped")


def read_and_print(path: Path, label: str, *, ends: str = "clean") -> list[bytes]:
    """Read a log, print a one-line summary, and return its records."""
    with cordwood.open(path) as reader:
        records = list(reader)
        end, skipped = reader.outcome, reader.skipped
    payload_len = sum(map(len, records))
    regions = ", ".join(f"[{region.offset}, {region.end_offset}) {region.reason}" for region in skipped) or "none"
    print(f"  {label:<30} {len(records):>8,} {payload_len:>12,} {path.stat().st_size:>12,}  {end.kind:<10} {regions}")
    check(end.kind == ends, f"{label} must end as {ends}")
    check(ends == "torn_tail" or not skipped, f"{label} is whole, but has skipped regions")
    return records


def encode_batch(sequence: int, operations: list[Operation]) -> bytes:
    """Return a batch as LevelDB stores it in a record of its log."""
    changes = [
        payload.Operation("delete", key=key) if value is None else payload.Operation("put", key=key, value=value)
        for key, value in operations
    ]
    return bytes(payload.WriteBatch.build(sequence, changes))


def decode_batch(batch: bytes) -> list[Operation]:
    """Return the operations of a batch."""
    return [(change.key, change.value) for change in payload.WriteBatch(batch)]


if __name__ == "__main__":
    main()
