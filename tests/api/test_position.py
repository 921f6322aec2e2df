"""Whether the path of a log names the same log later: each cell of the table in `docs/format/following.md`.

A log is made, and read up to `HALF`; then it is changed in one of the ways of the table, and read on. Expected are the
records that were written. `tests/pipelines/test_beam.py` has the column of Beam.
"""

import json
import os
import pickle
import random
import shutil
from itertools import count
from pathlib import Path

import fsspec
import pytest
import reference
from log_changes import ERRORS, HALF, OLD, OTHER, Changes, name_of, table, write, write_segments

import cordwood

pa = pytest.importorskip("pyarrow")

from cordwood._spark import following, reading  # noqa: E402 - it needs pyarrow
from cordwood._spark.options import options_of  # noqa: E402


def position_at_half(path):
    with cordwood.follow(path, timeout=0) as follower:
        assert [next(follower) for _ in range(HALF)] == OLD[:HALF]
        return follower.position()


class Consumers:
    """Reads a log, lets it change, and returns the records that it reads then, and those that it should."""

    def running_follower(self, path, change):
        with cordwood.follow(path, timeout=0) as follower:
            # All of them, so that no record is left that was found before the change.
            assert list(follower) == OLD
            _, now = change(path)
            return list(follower), now and now[len(OLD) :]

    def position(self, path, change):
        position = cordwood.Position(str(position_at_half(path)))
        path, now = change(path)
        with cordwood.follow(path, start=position, timeout=0) as follower:
            followed = list(follower)
        assert list(cordwood.open(path, start=position)) == followed
        return followed, now and now[HALF:]

    def index(self, path, change):
        index = pickle.dumps(cordwood.index(path))
        new, now = change(path)
        if not path.exists() and now:
            # The index has the path in it.
            path.symlink_to(new)
        index = pickle.loads(index)  # noqa: S301 - of this test
        return index[:], now and now[: len(OLD)]

    def split(self, path, change):
        splits = cordwood.plan_splits(path, 1)
        path, now = change(path)
        splits = [split._replace(path=str(path)) for split in splits]
        found = [record for split in splits for record in cordwood.open(split)]
        assert pa.table(cordwood.scan(splits))["record"].to_pylist() == found
        return found, now and now[: len(OLD)]

    def spark_stream(self, path, change):
        def batch(start):
            end = json.loads(json.dumps(following.ends_of(given, start)))
            parts = following.planned_between(given, start, end)
            rows = [
                row
                for part in parts
                for rows in reading.batches(part, reading.RECORDS, given)
                for row in rows.to_pylist()
            ]
            return [row["record"] for row in rows], end

        given = options_of({"path": str(path if path.is_dir() else path.parent)}, is_stream=True)
        found, start = batch({})
        assert found == OLD
        new, now = change(path)
        given = options_of({"path": str(new if new.is_dir() else new.parent)}, is_stream=True)
        return batch(start)[0], now and now[len(OLD) :]

    def in_a_store(self, path, change):
        name = f"/{path.parent.name}{next(SERIAL)}"
        fs = fsspec.filesystem("memory")
        fs.put(str(path.parent), name, recursive=True)
        splits = cordwood.plan_splits(f"memory:/{name}/{path.name}", 1)
        assert [record for split in splits for record in cordwood.open(split)] == OLD
        path, now = change(path)
        fs.rm(name, recursive=True)
        if path.exists():
            fs.put(str(path.parent), name, recursive=True)
        return [record for split in splits for record in cordwood.open(split)], now and now[: len(OLD)]


SERIAL = count()


def test_the_table_of_outcomes_covers_every_change_and_consumer():
    cells = [param.values for param in table()]
    assert {name_of(change) for change, _, _ in cells} == {name for name in vars(Changes) if name[0] != "_"}
    assert {name_of(consumer) for _, consumer, _ in cells} == {name for name in vars(Consumers) if name[0] != "_"}


@pytest.mark.cell("one-file segmented remote", "follow-growing range splits index spark")
@pytest.mark.parametrize(("change", "consumer", "cell"), list(table()))
def test_each_combination_of_change_and_consumer_has_the_documented_outcome(change, consumer, cell, tmp_path):
    path = tmp_path / "logs" / "a.log"
    path.parent.mkdir()
    if change.startswith("is segmented"):
        write_segments(path, OLD)
    else:
        write(path, OLD)
    consume = getattr(Consumers(), name_of(consumer))
    changed = getattr(Changes(), name_of(change))
    if cell in ERRORS:
        with pytest.raises(ERRORS[cell]):
            consume(path, changed)
    else:
        assert cell == "continues"
        found, expected = consume(path, changed)
        assert found == expected


@pytest.mark.parametrize("read", [cordwood.verify, cordwood.stat, cordwood.scan])
def test_every_function_that_reads_splits_detects_a_replaced_log(read, tmp_path):
    path = tmp_path / "a.log"
    write(path, OLD)
    splits = cordwood.plan_splits(path, 1)
    assert len(splits) == 2
    write(path, OTHER)
    if read is cordwood.scan:
        with pytest.raises(Exception, match="the log that was read before"):
            pa.table(read(splits))
        with pytest.raises(Exception, match="the log that was read before"):
            pa.table(read(splits, decode="raw"))
    else:
        assert {type(error) for error in read(splits).errors.values()} == {cordwood.LogChangedError}
        with pytest.raises(cordwood.LogChangedError) as raised:
            read(splits[1])
        assert (raised.value.path, raised.value.offset, raised.value.length) == (str(path), 0, reference.BLOCK_LEN)
        assert raised.value.hint == "start_again"


def test_splits_planned_with_an_explicit_dialect_have_no_position(tmp_path):
    path = tmp_path / "a.log"
    write(path, OLD)
    [split] = cordwood.plan_splits(path, 1 << 20, dialect="leveldb")
    assert split.position is None
    write(path, OTHER)
    assert list(cordwood.open(split)) == OTHER[: len(list(cordwood.open(split)))]


def test_pickled_splits_and_indexes_contain_absolute_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path("a.log"), OLD)
    [split, *_] = cordwood.plan_splits("a.log", 1 << 20)
    pickled = pickle.dumps([split, cordwood.index("a.log")])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    split, index = pickle.loads(pickled)  # noqa: S301 - of this test
    assert split.path == str(tmp_path / "a.log")
    assert list(cordwood.open(split)) == index[:] == OLD


def test_a_position_round_trips_through_text_and_pickle(tmp_path):
    path = tmp_path / "a.log"
    write(path, OLD)
    position = position_at_half(path)
    end = HALF * 2_007 + 7  # The record at the end of the first block has two fragments.
    assert position.offset == end
    assert str(position).startswith(f"1:{end}:0+0+32768=")
    same = cordwood.Position(str(position))
    assert same == position
    assert hash(same) == hash(position)
    assert pickle.loads(pickle.dumps(position)) == position  # noqa: S301 - of this test
    assert repr(position) == f"Position('{position}')"
    assert position != cordwood.Position(f"1:{end}::")
    with pytest.raises(ValueError, match="is not a position that this release knows"):
        cordwood.Position("7")
    with pytest.raises(TypeError, match="start must be an offset"):
        cordwood.open(path.read_bytes(), start=position)


def followed(path, position, rng, left):
    """Some of the next `left` records, and the position after them."""
    with cordwood.follow(path, start=cordwood.Position(position) if position else 0, timeout=0) as follower:
        found = [next(follower) for _ in range(rng.randrange(left + 1))]
        return found, str(follower.position())


def streamed(path, start, _rng, _left):
    """All records that are there, as a stream of Spark reads them."""
    given = options_of({"path": str(path)}, is_stream=True)
    end = json.loads(json.dumps(following.ends_of(given, start or {})))
    parts = following.planned_between(given, start or {}, end)
    batches = [rows for part in parts for rows in reading.batches(part, reading.RECORDS, given)]
    return [row["record"] for rows in batches for row in rows.to_pylist()], end


class History:
    """A log that grows, moves and is replaced, and the records that a consumer of it should get."""

    def __init__(self, rng, path):
        self.rng, self.path = rng, path
        self.options = {"dialect": rng.choice(["leveldb", "packed"])}
        if rng.random() < 0.5:
            self.options["segment_len"] = rng.choice([500, 3_000])
        # Equal lengths, and half of the logs start with the same record.
        self.starts_same, self.length = rng.random() < 0.5, rng.choice([10, 100, 3_000])
        self.serial, self.numbers, self.expected = 0, count(), []
        self.is_same_log = True

    def append(self, number):
        first = not self.expected
        made = [b"log %d record %d" % (self.serial, next(self.numbers)) for _ in range(number)]
        if first and self.starts_same:
            made[:1] = [b"same"]
        made = [record.ljust(self.length, b".") for record in made]
        with cordwood.open(self.path, "a", **self.options) as log:
            log.extend(made)
        self.expected += made

    def copy(self):
        new = self.path.with_name(f"copy{next(self.numbers)}")
        (shutil.copytree if self.path.is_dir() else shutil.copy)(self.path, new)
        self.path = new

    def prune(self, offset):
        if self.path.is_dir():
            with cordwood.open(self.path, "a", **self.options) as log:
                log.prune_before(log.tell() if offset is None else offset)

    def replace(self, delivered):
        """Renames the log, or cuts it to no byte, and starts another one in its place."""
        if self.path.is_dir() or self.rng.random() < 0.5:
            self.path.rename(self.path.with_name(f"moved{next(self.numbers)}"))
        else:
            os.truncate(self.path, 0)
        self.serial += 1
        self.expected = []
        self.append(self.rng.randrange(1, 60))
        # Another log whose bytes are the same up to the position is the same log.
        self.is_same_log = self.expected[: len(delivered)] == delivered


@pytest.mark.cell("one-file segmented packed", "follow-growing spark")
@pytest.mark.parametrize("consume", [followed, streamed])
@pytest.mark.parametrize("seed", range(200))
def test_no_record_is_silently_lost_or_repeated_when_the_log_changes(consume, seed, tmp_path):
    """A consumer stops and resumes at a saved position."""
    rng = random.Random(seed)
    log = History(rng, tmp_path / "log")
    log.append(rng.randrange(1, 30))
    delivered, position = [], None
    for _ in range(8):
        try:
            found, position = consume(log.path, position, rng, max(len(log.expected) - len(delivered), 0))
            delivered += found
        except (cordwood.LogChangedError, cordwood.LogTruncatedError):
            assert not log.is_same_log
            return
        assert log.is_same_log, "no error, although the log is another one"
        assert delivered == log.expected[: len(delivered)], "a record is missing or was delivered twice"
        event = rng.choice(["append", "append", "copy", "prune", "replace"])
        if event == "append":
            log.append(rng.randrange(30))
        elif event == "copy" and consume is followed:
            log.copy()
        elif event == "prune":
            log.prune(None if consume is streamed else cordwood.Position(position).offset)
        elif event == "replace" and delivered:
            log.replace(delivered)
            if log.is_same_log and log.options["dialect"] == "packed":
                # The same records, but perhaps in other containers.
                return
