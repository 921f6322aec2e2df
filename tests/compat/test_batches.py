"""`cordwood.compat.ccl` and `dfindexeddb`: the cases that the shared logs do not show. Tests are named after
deviations."""

import logging

import pytest
import reference
from compat_logs import LEVELDB, Log
from compat_peers import original
from write_batch import PUT, write_batch

from cordwood.compat import ccl, dfindexeddb


def test_ccl_zeros_at_the_end_of_a_file_are_skipped(tmp_path):
    """chromium-reader also skips them; ccl_leveldb does not."""
    path = tmp_path / "000005.log"
    path.write_bytes(reference.encode([write_batch(7, [(PUT, b"key", b"value")])]) + bytes(100_000))
    log = ccl.LogFile(path)
    for _ in range(2):
        assert [(found.seq, found.key, found.value) for found in log] == [(7, b"key", b"value")]
    log.close()
    log.close()


def test_records_that_are_not_batches_are_skipped_and_reported(tmp_path, caplog):
    good, other = write_batch(7, [(PUT, b"key", b"value")]), write_batch(8, [(PUT, b"a", b"b"), (9, b"c")])
    path = tmp_path / "000005.log"
    path.write_bytes(reference.encode([b"no batch", other, good]))
    with caplog.at_level(logging.WARNING):
        assert [found.key for found in ccl.LogFile(path)] == [b"a", b"key"]
        assert [key.key for key in dfindexeddb.FileReader(str(path)).GetParsedInternalKeys()] == [b"a", b"key"]
    assert [record.name for record in caplog.records] == ["cordwood"] * 4


def test_drop_in_modules_skip_no_op_and_log_data_entries_in_transaction_batches(tmp_path, caplog):
    """RocksDB starts each with a no-op and may put log data in it: neither is counted or has a key."""
    parts = [b"\x0d", b"\x01\x01a\x01b", b"\x03\x04blob", b"\x00\x01c"]
    batch = bytes.fromhex("0700000000000000 02000000") + b"".join(parts)
    path = tmp_path / "000005.log"
    path.write_bytes(reference.encode([batch]))
    # After the fragment's header, the batch's header, and the bytes before the entry in the batch.
    start = 7 + 12 + len(parts[0])
    expected = [(start, 7, b"a", b"b"), (start + len(parts[1]) + len(parts[2]), 8, b"c", b"")]
    log = ccl.LogFile(path)
    assert [(found.offset, found.seq, found.key, found.value) for found in log] == expected
    assert [found.state.name for found in log] == ["Live", "Deleted"]
    log.close()
    keys = dfindexeddb.FileReader(str(path)).GetParsedInternalKeys()
    assert [(key.offset, key.sequence_number, key.key, key.value) for key in keys] == expected
    assert caplog.messages == []


def logs_with_counts(directory):
    """Logs that start with a batch of two operations whose header states another number."""
    for count in (0, 1, 3):
        batch = bytearray(write_batch(7, [(PUT, b"a", b"b"), (PUT, b"c", b"d")]))
        batch[8] = count
        path = directory / f"{count:06}.log"
        path.write_bytes(reference.encode([batch, write_batch(9, [(PUT, b"z", b"")])]))
        yield count, path


def test_ccl_count_mismatches_are_logged_without_losing_operations(tmp_path, caplog):
    for count, path in logs_with_counts(tmp_path):
        caplog.clear()
        log = ccl.LogFile(path)
        assert [found.key for found in log] == [b"a", b"c", b"z"]
        log.close()
        assert [f"states {count} operation" in message for message in caplog.messages] == [True]
        theirs = original("chromium_reader.leveldb").LogFile(path)
        assert [found.key for found in theirs] == [*[b"a", b"c"][:count], b"z"]
        theirs.close()


def test_dfindexeddb_count_mismatches_are_logged_and_the_stated_count_is_returned(tmp_path, caplog):
    for count, path in logs_with_counts(tmp_path):
        caplog.clear()
        found, _ = dfindexeddb.FileReader(str(path)).GetWriteBatches()
        assert (found.count, [key.key for key in found.records]) == (count, [b"a", b"c"])
        assert [f"states {count} operation" in message for message in caplog.messages] == [True]
        theirs = original("dfindexeddb.leveldb.log").FileReader(str(path)).GetWriteBatches()
        if count > 2:
            with pytest.raises(Exception, match="Read 0 bytes"):
                next(theirs)
            continue
        found, _ = theirs
        assert (found.count, [key.key for key in found.records]) == (count, [b"a", b"c"][:count])


def test_ccl_only_logs_are_supported_so_classes_for_tables_and_databases_are_missing(tmp_path):
    assert {"LdbFile", "ManifestFile", "RawLevelDb"}.isdisjoint(dir(ccl))
    with pytest.raises(FileNotFoundError):
        ccl.LogFile(tmp_path / "000005.log")
    with pytest.raises(ValueError, match="invalid literal"):
        ccl.LogFile(tmp_path / "name.log")


def test_dfindexeddb_only_logs_are_supported_so_other_constructors_are_missing():
    assert not any(hasattr(dfindexeddb.PhysicalRecord, name) for name in ("FromDecoder", "FromStream", "FromBytes"))


def test_dfindexeddb_continues_after_damage_and_reports_it(tmp_path, caplog):
    batches = [write_batch(index, [(PUT, b"key", b"v" * 10_000)]) for index in range(6)]
    log = Log.of(LEVELDB, batches)
    log.file[100] ^= 1
    path = tmp_path / "000005.log"
    path.write_bytes(log.file)
    reader = dfindexeddb.FileReader(str(path))
    with caplog.at_level(logging.WARNING):
        assert [batch.sequence_number for batch in reader.GetWriteBatches()] == [1, 2, 3, 4, 5]
        fragments = [(found.base_offset + found.offset) for found in reader.GetPhysicalRecords()]
    assert fragments == [start for start, _ in log.fragments()[1:]]
    assert [record.name for record in caplog.records] == ["cordwood"] * 2
