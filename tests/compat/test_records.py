"""`cordwood.compat.appengine` and `leveldb_export`: the cases that no log shows. Tests are named after deviations."""

import gc
import io
import logging

import pytest
import reference
from compat_logs import LEVELDB, lengths
from compat_peers import original

from cordwood.compat import appengine, leveldb_export

RECORDS = [b"one", b"two" * 30_000, b"three", b"", b"five" * 10]


def to_block_end(data):
    """Zeros up to the end of the block."""
    return bytes(-len(data) % 32_768)


@pytest.mark.parametrize("name", lengths(LEVELDB))
@pytest.mark.parametrize("pads", [True, False])
def test_appengine_writers_write_the_same_bytes_as_leveldb(pads, name):
    records = [bytes([index % 256]) * length for index, length in enumerate(lengths(LEVELDB)[name])]
    file = io.BytesIO()
    with appengine.RecordsWriter(file, _pad_last_block=pads) as writer:
        for record in records:
            writer.write(record)
            assert file.tell() >= len(record)  # Written at once, without closing the file.
        expected = reference.encode(records)
        assert file.getvalue() == expected
    assert file.getvalue() == expected + (to_block_end(expected) if pads else b"")
    assert not file.closed
    file.seek(0)
    assert list(appengine.RecordsReader(file)) == records


def test_appengine_writers_fill_the_last_block_by_default(caplog):
    file = io.BytesIO()

    def fail():
        with appengine.RecordsWriter(file) as writer:
            writer.write(b"one")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert file.getvalue() == reference.encode([b"one"]) + bytes(32_758)
    file.seek(0)
    assert list(appengine.RecordsReader(file)) == [b"one"]
    assert not caplog.records  # This is not damage.


def test_appengine_writers_accept_records_only_inside_a_with_block():
    file = io.BytesIO()
    writer = appengine.RecordsWriter(file)
    with pytest.raises(Exception, match="with"):
        writer.write(b"one")
    writer.close()
    assert file.getvalue() == b""


def test_appengine_close_can_be_called_twice():
    """Closing twice, and again after further records."""
    file = io.BytesIO()
    with appengine.RecordsWriter(file) as writer:
        writer.write(b"one")
        writer.close()
        assert len(file.getvalue()) == 32_768
    assert len(file.getvalue()) == 32_768


def test_appengine_append_after_close_starts_the_next_block():
    file = io.BytesIO()
    with appengine.RecordsWriter(file) as writer:
        writer.write(b"one")
    writer.write(b"two" * 30_000)
    writer.close()
    assert len(file.getvalue()) == 4 * 32_768
    file.seek(0)
    assert list(appengine.RecordsReader(file)) == [b"one", b"two" * 30_000]


@pytest.mark.parametrize("used", [1, 10, 32_760, 32_768, 40_000])
def test_appengine_append_starts_at_the_next_block(used):
    file = io.BytesIO(reference.encode([bytes(used - 7)]) if used > 7 else b"\0" * used)
    start = file.seek(0, io.SEEK_END)
    with appengine.RecordsWriter(file) as writer:
        for record in RECORDS:
            writer.write(record)
    block_end = -(-start // 32_768) * 32_768
    written = reference.encode(RECORDS)
    assert file.getvalue()[start:] == bytes(block_end - start) + written + to_block_end(written)
    file.seek(0)
    assert list(appengine.RecordsReader(file))[-len(RECORDS) :] == RECORDS


def test_appengine_bytes_are_accepted_but_text_is_rejected(tmp_path):
    with appengine.RecordsWriter(io.BytesIO()) as writer, pytest.raises(TypeError):
        writer.write("one")
    path = tmp_path / "output-0"
    path.write_text("one", encoding="ascii")
    with path.open(encoding="ascii") as file, pytest.raises(TypeError):
        list(appengine.RecordsReader(file))


def test_appengine_read_ahead_does_not_affect_tell_and_seek():
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
    # From the file's position.
    file.seek(offsets[3])
    assert list(appengine.RecordsReader(file)) == RECORDS[3:]


def test_appengine_torn_tail_is_read_once_it_is_complete(tmp_path):
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


class OnlySome:
    """A file with only some of its methods."""

    def __init__(self, file, *methods):
        for name in methods:
            setattr(self, name, getattr(file, name))


def test_appengine_only_read_is_called_on_the_source():
    pipe = OnlySome(io.BytesIO(reference.encode(RECORDS)), "read")
    reader = appengine.RecordsReader(pipe)
    assert list(reader) == RECORDS
    with pytest.raises(EOFError):
        reader.read()
    with pytest.raises(AttributeError):
        original("leveldb_export.records").RecordsReader(pipe).read()


@pytest.mark.parametrize("start", [0, 2, 3])
def test_an_unseekable_object_is_read_from_its_current_position(start):
    """The source has `tell`, which the original cannot do without."""
    offsets = [*reference.record_offsets(RECORDS)]
    for module in (original("leveldb_export.records"), leveldb_export, appengine):
        file = io.BytesIO(reference.encode(RECORDS))
        file.seek(offsets[start])
        reader = module.RecordsReader(OnlySome(file, "read", "tell"))
        assert reader.tell() == offsets[start]
        assert reader.read() == RECORDS[start]
        assert reader.tell() == [*offsets, len(file.getvalue())][start + 1]
        assert list(reader) == RECORDS[start + 1 :]
        for _ in range(2):
            with pytest.raises(EOFError):
                reader.read()
    with pytest.raises(AttributeError):
        reader.seek(0)


def test_a_torn_tail_of_an_unseekable_object_raises_eof_error():
    reader = appengine.RecordsReader(OnlySome(io.BytesIO(reference.encode(RECORDS)[:-3]), "read", "tell"))
    assert list(reader) == RECORDS[:-1]
    for _ in range(2):
        with pytest.raises(EOFError):
            reader.read()


@pytest.mark.parametrize("source", ["output-0", b"content", bytearray(40)])
def test_a_records_reader_rejects_objects_that_are_not_files(source):
    for module in (original("leveldb_export.records"), leveldb_export, appengine):
        reader = module.RecordsReader(source)
        with pytest.raises(AttributeError):
            reader.read()


def test_seek_raises_the_same_exceptions_as_the_original(tmp_path):
    path = tmp_path / "output-0"
    path.write_bytes(reference.encode(RECORDS))
    with path.open("rb") as file:
        for source, error in ((io.BytesIO(path.read_bytes()), ValueError), (file, OSError)):
            reader = appengine.RecordsReader(source)
            assert reader.read() == RECORDS[0]
            with pytest.raises(error):
                source.seek(-5)
            with pytest.raises(error):
                reader.seek(-5)
            assert list(reader) == RECORDS[1:]


class BytesOnly:
    """A file that accepts only `bytes`, which the original writes."""

    def __init__(self):
        self.file = b""

    def write(self, data):
        assert type(data) is bytes
        self.file += data


def test_the_writer_passes_bytes_objects_to_its_file():
    file = BytesOnly()
    with appengine.RecordsWriter(file, _pad_last_block=False) as writer:
        for record in RECORDS:
            writer.write(record)
    assert file.file == reference.encode(RECORDS)


class Failing:
    """A file on a full disk."""

    def write(self, data):
        raise OSError(28, "No space left on device")


def test_a_failed_write_is_reported_once():
    writer = appengine.RecordsWriter(Failing())
    writer.__enter__()
    with pytest.raises(OSError, match="No space left"):
        writer.write(b"one")
    del writer  # An exception that Python ignores here fails the test.
    gc.collect()


def test_appengine_logger_is_the_cordwood_logger(caplog):
    log = bytearray(reference.encode([b"one", b"two"]))
    log[8] ^= 1
    reader = appengine.RecordsReader(io.BytesIO(log))
    with caplog.at_level(logging.WARNING):
        assert list(reader) == []
    assert [record.name for record in caplog.records] == ["cordwood"]
    assert [(region.offset, region.end_offset) for region in reader.reader.skipped] == [(0, 20)]


def test_leveldb_export_seek_moves_the_reader_to_the_given_offset():
    reader = leveldb_export.RecordsReader(io.BytesIO(reference.encode(RECORDS)))
    reader.seek(10)
    assert next(iter(reader)) == RECORDS[1]
    assert not hasattr(original("leveldb_export.records").RecordsReader, "seek")


def test_appengine_tell_returns_offsets_before_and_after_damage():
    """Before and after damage."""
    log = bytearray(reference.encode([b"one", bytes(32_768), b"two"]))
    log[17 + 10] ^= 1
    reader = appengine.RecordsReader(io.BytesIO(log))
    assert (reader.read(), reader.tell()) == (b"one", 10)
    assert (reader.read(), reader.tell()) == (b"two", len(log))
