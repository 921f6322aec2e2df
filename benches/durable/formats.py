"""Damages files of records in other formats, and reads them: "Other formats" in docs/guides/which-log.md.

It needs mcap, bagz and pyarrow besides cordwood: `pip install mcap bagz pyarrow`.
"""

import json
import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import bagz
import mcap.reader
import mcap.writer
import pyarrow
import pyarrow.parquet

import cordwood

RECORDS = [f"{number:03d} {'record ' * 13}" for number in range(40)]
# Records in a chunk or a row group: a file has four of them.
GROUP_LEN = 10
FLIPS = 150
# The end of the last complete record in the first bytes of a file, where it is not that of its text. SQLite's
# write-ahead log consists of a header and, for each record, a page with its own header.
COMPLETE: dict[str, Callable[[bytes], int]] = {
    "JSON lines": lambda content: content.rfind(b"}") + 1,
    "SQLite": lambda content: max(len(content) - (len(content) - 32) % (24 + 4096), 0),
}

Read = Callable[[Path], list[str]]
"""Returns the records of a file; those before an error are in `found` of the `UnreadableError` that it raises."""


class UnreadableError(Exception):
    """The reader has raised an error, after these records."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self.found = found


def until_error(records) -> list[str]:
    """The records of an iterator; `UnreadableError` if it raises."""
    found = []
    try:
        for record in records:
            found.append(record if isinstance(record, str) else record.decode())  # noqa: PERF401 - up to an exception
    except Exception as error:
        raise UnreadableError(found) from error
    return found


def write_cordwood(path: Path) -> None:
    with cordwood.open(path, "w") as log:
        log.extend([record.encode() for record in RECORDS])


def read_cordwood(path: Path) -> list[str]:
    """With the default, damage is skipped and reported."""
    with cordwood.open(path) as log:
        found = until_error(log)
        if not log.ok:
            raise UnreadableError(found)
        return found


def write_json(path: Path) -> None:
    path.write_text("".join(json.dumps({"record": record}) + "\n" for record in RECORDS), encoding="utf-8")


def read_json(path: Path) -> list[str]:
    return until_error(json.loads(line)["record"] for line in path.read_bytes().splitlines())


def write_sqlite(path: Path) -> None:
    """The file of the test is the write-ahead log, as a killed program leaves it beside the database."""
    database = path.with_suffix(".db")
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, record TEXT)")
        for record in RECORDS:
            connection.execute("INSERT INTO log (record) VALUES (?)", [record])
        shutil.copy(f"{database}-wal", path)
        shutil.copy(database, path.with_suffix(".copy"))


def read_sqlite(path: Path) -> list[str]:
    with tempfile.TemporaryDirectory() as directory:
        database = Path(directory, "log.db")
        shutil.copy(path.with_suffix(".copy"), database)
        shutil.copy(path, f"{database}-wal")
        with closing(sqlite3.connect(database)) as connection:
            return until_error(record for (record,) in rows(connection))


def rows(connection: sqlite3.Connection):
    yield from connection.execute("SELECT record FROM log ORDER BY id")


def write_mcap(path: Path) -> None:
    chunk_len = GROUP_LEN * len(RECORDS[0])
    writer = mcap.writer.Writer(str(path), chunk_size=chunk_len, compression=mcap.writer.CompressionType.NONE)
    writer.start()
    channel = writer.register_channel("log", "text", schema_id=0)
    for number, record in enumerate(RECORDS):
        writer.add_message(channel, log_time=number, publish_time=number, data=record.encode())
    writer.finish()


def read_mcap(path: Path) -> list[str]:
    with path.open("rb") as file:
        reader = mcap.reader.NonSeekingReader(file, validate_crcs=True)
        return until_error(message.data for _, _, message in reader.iter_messages(log_time_order=False))


def write_parquet(path: Path) -> None:
    table = pyarrow.table({"record": RECORDS})
    pyarrow.parquet.write_table(
        table, path, row_group_size=GROUP_LEN, compression="none", use_dictionary=False, write_page_checksum=True
    )


def read_parquet(path: Path) -> list[str]:
    return until_error(groups(path))


def groups(path: Path):
    with pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
        for number in range(file.num_row_groups):
            yield from file.read_row_group(number)["record"].to_pylist()


def write_bagz(path: Path) -> None:
    with bagz.Writer(path, bagz.Writer.Options(compression=bagz.CompressionNone())) as writer:
        for record in RECORDS:
            writer.write(record.encode())


def read_bagz(path: Path) -> list[str]:
    def records():
        yield from bagz.Reader(path, bagz.Reader.Options(compression=bagz.CompressionNone()))

    return until_error(records())


FORMATS: dict[str, tuple[Callable[[Path], None], Read]] = {
    "cordwood": (write_cordwood, read_cordwood),
    "JSON lines": (write_json, read_json),
    "SQLite": (write_sqlite, read_sqlite),
    "mcap": (write_mcap, read_mcap),
    "Parquet": (write_parquet, read_parquet),
    "bagz": (write_bagz, read_bagz),
}


def outcome(read: Read, path: Path, expected: list[str]) -> str:
    """The outcome of reading a damaged file that was written with these records."""
    try:
        found, is_reported = read(path), False
    except UnreadableError as error:
        found, is_reported = error.found, True
    if set(found) - set(RECORDS):
        return "wrong record, reported" if is_reported else "wrong record"
    if set(expected) - set(found):
        return "lost, reported" if is_reported else "lost silently"
    return "reported" if is_reported else "all"


def main() -> None:
    for name, (write, read) in FORMATS.items():
        cuts, flips = Counter[str](), Counter[str]()
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "records")
            write(path)
            content = path.read_bytes()
            assert read(path) == RECORDS
            for length in range(0, len(content), 797 if name == "SQLite" else 17):
                path.write_bytes(content[:length])
                complete = content[: COMPLETE.get(name, len)(content[:length])]
                before = [record for record in RECORDS if record.encode() in complete]
                cuts[outcome(read, path, before)] += 1
            draw = random.Random(1)
            for _ in range(FLIPS):
                damaged = bytearray(content)
                damaged[draw.randrange(len(content) * 2 // 3)] ^= 1 << draw.randrange(8)
                path.write_bytes(damaged)
                flips[outcome(read, path, RECORDS)] += 1
        print(name, len(content), "cut:", dict(cuts), "flipped:", dict(flips), flush=True)


if __name__ == "__main__":
    main()
