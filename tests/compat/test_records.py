"""`cordwood.compat.appengine` and `leveldb_export`, in what no log shows. Tests have the names of deviations."""

import io
import logging

import pytest
import reference
from compat_logs import LEVELDB, lengths
from compat_peers import original

from cordwood.compat import appengine, leveldb_export

RECORDS = [b"one", b"two" * 30_000, b"three", b"", b"five" * 10]


@pytest.mark.parametrize("name", lengths(LEVELDB))
def test_appengine_writes_what_leveldb_writes(name):
    records = [bytes([index % 256]) * length for index, length in enumerate(lengths(LEVELDB)[name])]
    file = io.BytesIO()
    with appengine.RecordsWriter(file) as writer:
        for record in records:
            writer.write(record)
            assert file.tell() >= len(record)  # At once: nobody has to close it.
    assert file.getvalue() == reference.encode(records)
    assert not file.closed


@pytest.mark.parametrize("used", [1, 10, 32_760, 32_768, 40_000])
def test_appengine_append(used):
    file = io.BytesIO(reference.encode([bytes(used - 7)]) if used > 7 else b"\0" * used)
    begin = file.seek(0, io.SEEK_END)
    writer = appengine.RecordsWriter(file)
    for record in RECORDS:
        writer.write(record)
    block_end = -(-begin // 32_768) * 32_768
    assert file.getvalue()[begin:] == bytes(block_end - begin) + reference.encode(RECORDS)
    file.seek(0)
    assert list(appengine.RecordsReader(file))[-len(RECORDS) :] == RECORDS


def test_appengine_bytes(tmp_path):
    with pytest.raises(TypeError):
        appengine.RecordsWriter(io.BytesIO()).write("one")
    path = tmp_path / "output-0"
    path.write_text("one", encoding="ascii")
    with path.open(encoding="ascii") as file, pytest.raises(TypeError):
        list(appengine.RecordsReader(file))


def test_appengine_read_ahead_and_seek():
    file = io.BytesIO(reference.encode(RECORDS))
    reader = appengine.RecordsReader(file)
    offsets = [*reference.record_offsets(RECORDS)]
    ends = []
    for record in RECORDS:
        assert reader.read() == record
        ends.append(reader.tell())
    assert ends == [*offsets[1:], len(file.getvalue())]
    for _ in range(2):
        with pytest.raises(EOFError):
            reader.read()
    assert reader.seek(offsets[2]) == offsets[2]
    assert next(iter(reader)) == RECORDS[2]
    assert reader.seek(-len(RECORDS[2]) - 7, io.SEEK_CUR) == offsets[2]
    assert reader.read() == RECORDS[2]
    assert reader.seek(offsets[4] - ends[-1], io.SEEK_END) == offsets[4]
    assert list(reader) == RECORDS[4:]
    # From where the file is.
    file.seek(offsets[3])
    assert list(appengine.RecordsReader(file)) == RECORDS[3:]


def test_appengine_torn_tail(tmp_path):
    path = tmp_path / "output-0"
    whole = reference.encode(RECORDS[:2])
    path.write_bytes(whole[:-3])
    with path.open("rb") as file:
        reader = appengine.RecordsReader(file)
        assert (list(reader), reader.tell()) == (RECORDS[:1], 10)
        with pytest.raises(EOFError):
            reader.read()
        path.write_bytes(whole)
        assert reader.read() == RECORDS[1]


def test_appengine_reads_what_cannot_seek():
    class Pipe:
        def __init__(self, data):
            self.read = io.BytesIO(data).read

    reader = appengine.RecordsReader(Pipe(reference.encode(RECORDS)))
    assert list(reader) == RECORDS
    with pytest.raises(EOFError):
        reader.read()


def test_appengine_logger(caplog):
    log = bytearray(reference.encode([b"one", b"two"]))
    log[8] ^= 1
    reader = appengine.RecordsReader(io.BytesIO(log))
    with caplog.at_level(logging.WARNING):
        assert list(reader) == []
    assert [record.name for record in caplog.records] == ["cordwood"]
    assert [(region.begin, region.end) for region in reader.reader.skipped] == [(0, 20)]


def test_leveldb_export_seek():
    reader = leveldb_export.RecordsReader(io.BytesIO(reference.encode(RECORDS)))
    reader.seek(10)
    assert next(iter(reader)) == RECORDS[1]
    assert not hasattr(original("leveldb_export.records").RecordsReader, "seek")


def test_appengine_tell():
    """In front of damage, and behind it."""
    log = bytearray(reference.encode([b"one", bytes(32_768), b"two"]))
    log[17 + 10] ^= 1
    reader = appengine.RecordsReader(io.BytesIO(log))
    assert (reader.read(), reader.tell()) == (b"one", 10)
    assert (reader.read(), reader.tell()) == (b"two", len(log))
