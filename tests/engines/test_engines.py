"""The package and the real LevelDB, through plyvel, read each other's files."""

import os
import random

import plyvel
import pytest
import reference
from real_engines import the_log_of
from support import PAYLOAD
from write_batch import DELETE, PUT, parse_write_batch, take_bytes, take_varint, write_batch

import cordwood

# The longest is cut into ten fragments, and every length around that of a block is included.
LENGTHS = [*range(200), *range(1_000, 100_001, 9_000), 100_000, 300_000, *range(32_700, 32_780)]


def key_of(index):
    return b"key-%06d" % index


def open_database(directory, **options):
    # The buffer is larger than everything that is put, so that it all stays in one log.
    return plyvel.DB(str(directory), create_if_missing=True, write_buffer_size=64 << 20, **options)


def keys_in_leveldb(directory, **options):
    database = open_database(directory, **options)
    try:
        return {key: value for key, value in database if key.startswith(b"key-")}
    finally:
        database.close()


@pytest.fixture(scope="module")
def written_by_leveldb(tmp_path_factory):
    """A database's directory and its operations: pairs of a sequence number and operations."""
    directory = tmp_path_factory.mktemp("leveldb") / "database"
    database = open_database(directory)
    done = []
    sequence = 1
    for index, length in enumerate(LENGTHS):
        value = PAYLOAD[index : index + length]
        database.put(key_of(index), value)
        done.append((sequence, [(PUT, key_of(index), value)]))
        sequence += 1
        if index % 7 == 0:
            database.delete(key_of(index))
            done.append((sequence, [(DELETE, key_of(index))]))
            sequence += 1
        if index % 11 == 0:
            operations = [(PUT, b"a", b"1"), (DELETE, b"a"), (PUT, b"", b"")]
            with database.write_batch() as batch:
                batch.put(b"a", b"1")
                batch.delete(b"a")
                batch.put(b"", b"")
            done.append((sequence, operations))
            sequence += len(operations)
    database.close()
    return directory, done


def test_reads_a_log_written_by_leveldb(written_by_leveldb):
    directory, done = written_by_leveldb
    log = the_log_of(directory)
    with cordwood.open(log) as reader:
        assert [parse_write_batch(record) for record in reader] == done
        assert reader.skipped == ()
        assert (reader.outcome.kind, reader.outcome.offset) == ("clean", log.stat().st_size)


def test_reads_a_manifest_written_by_leveldb(written_by_leveldb):
    directory, _ = written_by_leveldb
    [manifest] = directory.glob("MANIFEST-*")
    with cordwood.open(manifest) as reader:
        edit = next(reader)
        assert edit[0] == 1  # tag: comparator
        assert take_bytes(edit, 1)[0] == b"leveldb.BytewiseComparator"
        log_number = int(the_log_of(directory).stem)
        assert next(reader)[:2] == bytes([2, log_number])  # tag: log number
        assert list(reader) == []
        assert (reader.outcome.kind, reader.skipped) == ("clean", ())


def test_writing_the_records_of_a_leveldb_log_reproduces_the_file(written_by_leveldb, tmp_path):
    directory, done = written_by_leveldb
    with cordwood.open(tmp_path / "copy.log", "x") as writer:
        writer.extend(write_batch(sequence, operations) for sequence, operations in done)
    assert (tmp_path / "copy.log").read_bytes() == the_log_of(directory).read_bytes()


def make_database_with(directory, log_bytes):
    """A database without data except in its log."""
    open_database(directory).close()
    the_log_of(directory).write_bytes(log_bytes)


def log_of_cordwood(path, values):
    with cordwood.open(path, "w") as writer:
        for index, value in enumerate(values):
            writer.append(write_batch(index + 1, [(PUT, key_of(index), value)]))
    return path.read_bytes()


def test_leveldb_opens_a_log_written_by_cordwood(tmp_path):
    values = [PAYLOAD[index : index + length] for index, length in enumerate(LENGTHS)]
    make_database_with(tmp_path / "database", log_of_cordwood(tmp_path / "x.log", values))
    found = keys_in_leveldb(tmp_path / "database", paranoid_checks=True)
    assert found == {key_of(index): value for index, value in enumerate(values)}


def test_leveldb_opens_a_log_that_cordwood_appended_to(tmp_path):
    values = [PAYLOAD[:length] for length in (10, 40_000, 5)]
    log = tmp_path / "x.log"
    for index, value in enumerate(values):
        with cordwood.open(log, "a") as writer:
            writer.append(write_batch(index + 1, [(PUT, key_of(index), value)]))
    make_database_with(tmp_path / "database", log.read_bytes())
    found = keys_in_leveldb(tmp_path / "database", paranoid_checks=True)
    assert found == {key_of(index): value for index, value in enumerate(values)}


def flip_bits(file, rng):
    for _ in range(rng.randint(1, 8)):
        file[rng.randrange(len(file))] ^= 1 << rng.randrange(8)


def flip_a_bit_of_headers(file, rng):
    headers = [item.start for item in reference.fragments(bytes(file), verify_checksums=False)]
    for start in rng.choices(headers, k=4):
        file[start + rng.randrange(7)] ^= 1 << rng.randrange(8)


def zero_stretches(file, rng):
    for _ in range(3):
        start = rng.randrange(len(file))
        length = min(rng.choice([10, 1_000, 40_000]), len(file) - start)
        file[start : start + length] = bytes(length)


def shuffle_blocks(file, rng):
    blocks = [file[at : at + reference.BLOCK_LEN] for at in range(0, len(file), reference.BLOCK_LEN)]
    for _ in range(3):
        at = rng.randrange(len(blocks) - 1)
        blocks[at], blocks[at - 1] = blocks[at - 1], blocks[at]
    file[:] = b"".join(blocks)


def lose_a_block(file, rng):
    start = rng.randrange(len(file) // reference.BLOCK_LEN) * reference.BLOCK_LEN
    del file[start : start + reference.BLOCK_LEN]


def cut(file, rng):
    del file[rng.randrange(len(file)) :]


def use_unknown_kinds(file, rng):
    """The checksums stay valid. Kinds 5 and 6 are left out: LevelDB takes them for its own codes and loses the rest."""
    for item in rng.choices(list(reference.fragments(bytes(file), verify_checksums=False)), k=3):
        file[item.start : item.end] = reference.fragment(rng.choice([0, 7, 80, 255]), item.payload or b"x")


def mix_up_known_kinds(file, rng):
    whole = [item for item in reference.fragments(bytes(file), verify_checksums=False) if item.kind == reference.FULL]
    for item in rng.choices(whole, k=4):
        file[item.start : item.end] = reference.fragment(rng.choice(reference.KINDS), item.payload)


def first_put(record):
    """LevelDB's reading of a record that may have been joined from pieces of others."""
    try:
        key, at = take_bytes(record, 13)
        length, at = take_varint(record, at)
    except IndexError:
        return {}
    is_whole = record[12] == PUT and key.startswith(b"key-") and at + length <= len(record)
    return {key: record[at : at + length]} if is_whole else {}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "damage",
    [
        flip_bits,
        flip_a_bit_of_headers,
        zero_stretches,
        shuffle_blocks,
        lose_a_block,
        cut,
        use_unknown_kinds,
        mix_up_known_kinds,
    ],
)
def test_leveldb_and_cordwood_return_the_same_records_from_a_damaged_log(tmp_path, damage, seed):
    rng = random.Random(f"{damage.__name__} {seed}")
    lengths = [rng.choice([rng.randrange(1, 300), rng.randrange(1, 20_000), 100_000]) for _ in range(60)]
    file = bytearray(log_of_cordwood(tmp_path / "x.log", [PAYLOAD[:length] for length in lengths]))
    damage(file, rng)
    make_database_with(tmp_path / "database", file)

    kept = {}
    with cordwood.open(file, on_corruption="skip") as reader:
        for record in reader:
            kept |= first_put(record)
    assert keys_in_leveldb(tmp_path / "database") == kept


@pytest.mark.parametrize("options", [{"on_torn_tail": "truncate"}, {"on_torn_tail": "pad"}], ids=["truncate", "pad"])
def test_leveldb_reads_a_torn_log_after_cordwood_appended_to_it(tmp_path, options):
    """LevelDB's own reuse of such a log loses the appended records."""
    directory = tmp_path / "database"
    database = open_database(directory)
    for index in range(3):
        database.put(key_of(index), b"from LevelDB")
    database.close()
    log = the_log_of(directory)
    os.truncate(log, log.stat().st_size - 3)  # The third is torn.

    with cordwood.Writer(log, "a", sync="append", **options) as writer:
        assert writer.discarded_tail is not None
        for index in range(10, 15):
            writer.append(write_batch(100 + index, [(PUT, key_of(index), b"from cordwood")]))
    found = keys_in_leveldb(directory)
    expected = {key_of(index): b"from LevelDB" for index in range(2)}
    assert found == expected | {key_of(index): b"from cordwood" for index in range(10, 15)}


@pytest.mark.parametrize("offset", [9, 45], ids=["an edit that is not needed", "the edit with the numbers"])
def test_leveldb_opens_a_salvaged_manifest_unless_a_needed_edit_was_lost(offset, tmp_path):
    directory = tmp_path / "database"
    open_database(directory).close()
    [manifest] = directory.glob("MANIFEST-*")
    old = tmp_path / manifest.name
    content = bytearray(manifest.read_bytes())
    content[offset] ^= 1
    old.write_bytes(content)
    manifest.unlink()

    report = cordwood.salvage(old, manifest)
    assert (report.record_count, report.ok) == (1, False)
    if offset == 9:
        assert report.not_kept == ()
        open_database(directory).close()
        return
    assert report.not_kept == ("version_edit",)
    with pytest.raises(plyvel.Error, match="no meta-nextfile entry in descriptor"):
        open_database(directory)
