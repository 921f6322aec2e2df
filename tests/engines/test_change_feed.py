"""The change feed of `docs/guides/change-feed.md`, of live databases of RocksDB and LevelDB."""

import ast
import random
import re
import subprocess
import sys
from pathlib import Path

import plyvel
import pytest
from rocksdict import Options, Rdict, WriteOptions

PAGE = Path(__file__).parents[2] / "docs/guides/change-feed.md"


@pytest.fixture(scope="module")
def changes():
    """The function of the page, without the example that calls it."""
    first_block = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    module = ast.parse(first_block)
    module.body = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)]
    names = {}
    exec(compile(module, str(PAGE), "exec"), names)  # noqa: S102 - the page's own code
    return names["changes"]


class RocksDB:
    def __init__(self, directory, *, archives=False):
        options = Options(raw_mode=True)
        if archives:
            options.set_wal_ttl_seconds(3600)
        self.database = Rdict(str(directory), options)
        self.put = self.database.put
        self.close = self.database.close
        self.start_log = self.database.flush

    def put_without_log(self, key, value):
        options = WriteOptions()
        options.disable_wal = True
        self.database.put(key, value, write_opt=options)


class LevelDB:
    def __init__(self, directory):
        self.database = plyvel.DB(str(directory), create_if_missing=True)
        self.put = self.database.put
        self.close = self.database.close
        self.start_log = self.database.compact_range


def news(feed):
    """What the feed has until there is nothing more: the sequence number and key of each operation, and the gaps."""
    found = []
    for change in feed:
        if change is None:
            return found
        if isinstance(change, range):
            found.append(change)
        else:
            found += [(change.sequence + place, operation.key) for place, operation in enumerate(change)]
    raise AssertionError("a feed does not end")


def key_of(number):
    return b"key %d" % number


def check(found, count):
    """Each number once, in order, as an operation with its key or in a gap. Returns how many are in gaps."""
    next_number, missing = 1, 0
    for change in found:
        if isinstance(change, range):
            assert change.start == next_number
            next_number = change.stop
            missing += len(change)
        else:
            assert change == (next_number, key_of(next_number))
            next_number += 1
    assert next_number == count + 1
    return missing


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("engine", [RocksDB, LevelDB])
def test_a_change_feed_returns_every_change_if_polled_after_each_new_log(changes, engine, seed, tmp_path):
    rng = random.Random(seed)
    database = engine(tmp_path / "db")
    feed, found, count = changes(tmp_path / "db", 1), [], 0
    for _ in range(30):
        for _ in range(rng.randrange(1, 20)):
            count += 1
            database.put(key_of(count), rng.randbytes(rng.choice([0, 10, 40_000])))
        found += news(feed)
        database.start_log()
        found += news(feed)
    database.close()
    assert check(found, count) == 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("engine", [RocksDB, LevelDB])
def test_a_change_feed_that_falls_behind_reports_the_sequence_numbers_it_missed(changes, engine, seed, tmp_path):
    rng = random.Random(seed)
    database = engine(tmp_path / "db")
    feed, found, count = changes(tmp_path / "db", 1), [], 0
    for _ in range(40):
        for _ in range(rng.randrange(1, 20)):
            count += 1
            database.put(key_of(count), b"value")
        database.start_log()
        if rng.randrange(4) == 0:
            found += news(feed)
    count += 1
    database.put(key_of(count), b"the last one")
    found += news(feed)
    database.close()
    assert 0 < check(found, count) < count


def test_a_change_feed_reads_the_logs_archived_by_rocksdb(changes, tmp_path):
    database = RocksDB(tmp_path / "db", archives=True)
    for number in range(1, 101):
        database.put(key_of(number), b"value")
        if number % 10 == 0:
            database.start_log()
    assert list((tmp_path / "db/archive").glob("*.log"))
    found = news(changes(tmp_path / "db", 1))
    database.close()
    assert check(found, 100) == 0


def test_a_change_feed_reports_an_unlogged_write_as_a_gap(changes, tmp_path):
    database = RocksDB(tmp_path / "db")
    database.put(key_of(1), b"value")
    database.put_without_log(key_of(2), b"value")
    database.put(key_of(3), b"value")
    assert news(changes(tmp_path / "db", 1)) == [(1, key_of(1)), range(2, 3), (3, key_of(3))]
    database.close()


def test_a_change_feed_resumes_at_the_sequence_number_after_the_last_batch(changes, tmp_path):
    database = LevelDB(tmp_path / "db")
    for number in range(1, 6):
        database.put(key_of(number), b"value")
    assert news(changes(tmp_path / "db", 4)) == [(4, key_of(4)), (5, key_of(5))]
    assert news(changes(tmp_path / "db", 6)) == []
    assert news(changes(tmp_path / "db")) == [(number, key_of(number)) for number in range(1, 6)]
    database.close()


WRITER = """
import sys
from rocksdict import Options, Rdict
import plyvel
engine, directory, count = sys.argv[1:]
if engine == "RocksDB":
    options = Options(raw_mode=True)
    options.set_write_buffer_size(1 << 17)
    database = Rdict(directory, options)
else:
    database = plyvel.DB(directory, create_if_missing=True, write_buffer_size=1 << 17)
for number in range(1, int(count) + 1):
    database.put(b"key %d" % number, b"v" * 100)
# Closing may remove the last log, and then no later batch shows that its changes are missing.
sys.stdin.read()
database.close()
"""


@pytest.mark.parametrize("engine", ["RocksDB", "LevelDB"])
def test_a_change_feed_reads_a_database_written_by_another_process(changes, engine, tmp_path):
    count = 20_000
    command = [sys.executable, "-c", WRITER, engine, tmp_path / "db", str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as writer:
        feed, found = changes(tmp_path / "db", 1), []
        while writer.poll() is None and (count, key_of(count)) not in found[-1:]:
            found += news(feed)
        writer.stdin.close()
    assert writer.returncode == 0
    missing = check(found, count)
    assert missing < count
