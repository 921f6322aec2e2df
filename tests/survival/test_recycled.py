"""No state of a log that is written over an older one is damage, and a flipped bit in it is.

`make survival` looks at 10,000 states of each kind.
"""

import os
import random
import re
import shutil

import pytest
from real_engines import the_log_of
from recycled_logs import a_state
from rocksdict import Options, Rdict
from write_batch import parse_write_batch

import cordwood

FULL = os.environ.get("CORDWOOD_SURVIVAL") == "full"
STATES = 1_000 if FULL else 40
PARTS = range(10 if FULL else 1)
ENGINE_STATES = 2_500 if FULL else 50


@pytest.mark.parametrize("part", PARTS)
def test_reading_a_synthetic_recycled_log_returns_only_the_records_of_the_newest_log(tmp_path, part):
    """In half of them the dialect is named. One bit is flipped in the last fragment, or anywhere.

    For a log with synced offsets it is always named: if its first fragment is damaged, an older log of another form
    shows another dialect.
    """
    rng = random.Random(20261125 + part)
    stale_count = 0
    for index in range(STATES):
        state = a_state(rng)
        path = tmp_path / f"{state.new.number:06}.log"
        path.write_bytes(state.data)
        named = {"dialect": state.dialect} if index % 2 or state.new.form == "synced" else {}
        with cordwood.open(path, on_corruption="skip", **named) as reader:
            assert list(map(bytes, reader)) == state.records(), index
            assert reader.ok or state.looks_whole(), (index, reader.skipped)
            stale_count += any(region.reason == "stale" for region in reader.skipped)
        whole = [span for span in state.new.fragments if span[1] <= state.own_len]
        start, end = rng.choice([(0, state.own_len), whole[-1]])
        offset = rng.randrange(start, end)
        path.write_bytes(flipped(rng, state.data, offset))
        fragment = next((span for span in whole if span[0] <= offset < span[1]), None)
        # A crash may leave a record incomplete. And of the last fragment of a log with synced offsets, there is no
        # proof that it was synced.
        may_be_torn = fragment is None or (state.new.form == "synced" and fragment == whole[-1])
        assert may_be_torn or not cordwood.verify(path, **named).ok, (index, offset)
        path.unlink()
    assert stale_count > STATES / 3


@pytest.mark.parametrize("kind", ["64 KiB", "256 KiB", "small", "zstd"])
def test_reading_a_recycled_rocksdb_log_returns_only_the_records_of_the_newest_log(tmp_path, kind):
    """Each state is the newest log after a write."""
    rng = random.Random(kind)
    length = {"64 KiB": 1 << 16, "256 KiB": 1 << 18, "small": 3_000, "zstd": 8_000}[kind]
    database = a_database(tmp_path / "db", kind == "zstd")
    length_max, value_max, log_len, count = length, 300, 0, 0
    for index in range(ENGINE_STATES):
        if log_len > length_max:
            database.flush()
            length_max, value_max = rng.randrange(length), rng.choice([300, 3_000])
            log_len = count = 0
        value = rng.randbytes(rng.randrange(value_max)) if index % 3 else b"text" * rng.randrange(value_max // 4)
        database[b"key-%06d" % index] = value
        log_len += len(value) + 40
        count += 1
        log = the_log_of(tmp_path / "db")
        copy = tmp_path / log.name
        shutil.copyfile(log, copy)
        with cordwood.open(copy, on_corruption="skip") as reader:
            records = list(reader.records())
            assert reader.ok, (index, reader.skipped)
        keys = [parse_write_batch(record.data)[1][0][1] for record in records]
        assert keys == [b"key-%06d" % number for number in range(index + 1 - count, index + 1)], index
        last = records[-1]
        offset = rng.randrange(rng.choice([0, last.offset]), last.end_offset)
        copy.write_bytes(flipped(rng, copy.read_bytes(), offset))
        is_in_record = any(record.offset <= offset < record.end_offset for record in records)
        assert not is_in_record or not cordwood.verify(copy).ok, (index, offset)
        copy.unlink()
    database.close()


def a_database(directory, is_compressed):
    """A database of RocksDB that recycles its logs."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_recycle_log_file_num(2)
    database = Rdict(str(directory), options)
    if not is_compressed:
        return database
    database.close()
    # rocksdict has no setter for this option, but its options file has a line for it.
    for path in directory.glob("OPTIONS-*"):
        path.write_text(re.sub("wal_compression=.*", "wal_compression=kZSTD", path.read_text()))
    return Rdict(str(directory), *Options.load_latest(str(directory)))


def flipped(rng, data, offset):
    """The bytes, with one bit of the byte at the offset flipped."""
    data = bytearray(data)
    data[offset] ^= 1 << rng.randrange(8)
    return bytes(data)
