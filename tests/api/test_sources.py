"""The sources and sinks of logs."""

import array
import gc
import gzip
import io
import mmap
import os
import random
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow
import pytest
import reference
from reference import BLOCK_LEN
from support import PAYLOAD, OnlyRead

import cordwood

RECORDS = [b"one", b"", PAYLOAD[:100_000], b"two", PAYLOAD[:32_740], PAYLOAD[5:3_000_000], b"three"]
FILE = reference.encode(RECORDS)
OFFSETS = reference.record_offsets(RECORDS)


class PathLike:
    def __init__(self, path):
        self._path = path

    def __fspath__(self):
        return str(self._path)


class PathOfBytes(PathLike):
    """Such as an entry of `os.scandir(b".")`."""

    def __fspath__(self):
        return os.fsencode(self._path)


class RandomShortReads:
    def __init__(self, data, make=bytes):
        self._file = io.BytesIO(data)
        self._random = random.Random(1)
        self._make = make

    def read(self, size):
        return self._make(self._file.read(self._random.randint(1, min(size, 50_000))))


def from_mmap(path):
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def from_gzip(path):
    with gzip.open(path.with_suffix(".gz"), "wb", compresslevel=1) as file:
        file.write(path.read_bytes())
    return gzip.open(path.with_suffix(".gz"), "rb")


SOURCES = {
    "str": str,
    "pathlib.Path": Path,
    "os.PathLike": PathLike,
    "bytes": lambda path: path.read_bytes(),
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memoryview": lambda path: memoryview(path.read_bytes()),
    "part of a memoryview": lambda path: memoryview(b"head" + path.read_bytes() + b"tail")[4:-4],
    "array": lambda path: array.array("B", path.read_bytes()),
    "mmap": from_mmap,
    "BytesIO": lambda path: io.BytesIO(path.read_bytes()),
    "a file": lambda path: path.open("rb"),
    "an unbuffered file": lambda path: path.open("rb", buffering=0),
    "gzip": from_gzip,
    "only read": lambda path: OnlyRead(path.read_bytes()),
    "short reads": lambda path: RandomShortReads(path.read_bytes()),
    "read gives a bytearray": lambda path: RandomShortReads(path.read_bytes(), bytearray),
    "read gives a memoryview": lambda path: RandomShortReads(path.read_bytes(), memoryview),
}


@pytest.fixture(params=SOURCES)
def source(request, tmp_path):
    path = tmp_path / "example.log"
    path.write_bytes(FILE)
    source = SOURCES[request.param](path)
    yield source
    if hasattr(source, "close"):
        source.close()


def test_reads_records_from_every_kind_of_source(source):
    with cordwood.open(source) as reader:
        assert list(reader) == RECORDS
        assert reader.skipped == ()
        assert (reader.outcome.kind, reader.outcome.offset) == ("clean", len(FILE))


def test_reads_ranges_from_every_kind_of_source(source):
    with cordwood.open(source, start=OFFSETS[3], end=OFFSETS[5]) as reader:
        assert [record.offset for record in reader.records()] == OFFSETS[3:5]
        assert (reader.outcome.kind, reader.outcome.offset) == ("clean", OFFSETS[5])


def test_closing_a_reader_releases_every_kind_of_source(source):
    """A file stays open, and a buffer can be resized or closed."""
    with cordwood.open(source) as reader:
        next(reader)
    if isinstance(source, bytearray):
        source.append(0)
    assert not getattr(source, "closed", False)


@pytest.mark.parametrize("name", ["str", "bytes", "bytearray", "memoryview", "mmap", "BytesIO", "a file", "gzip"])
def test_a_reader_can_seek_in_every_kind_of_source(name, tmp_path):
    path = tmp_path / "example.log"
    path.write_bytes(FILE)
    source = SOURCES[name](path)
    with cordwood.open(source) as reader:
        for index in [6, 2, 0, 5]:
            reader.seek(OFFSETS[index])
            assert next(reader.records()).offset == OFFSETS[index]
            assert next(reader, None) == (RECORDS[index + 1] if index < 6 else None)
    if hasattr(source, "close"):
        source.close()


def test_a_reader_reports_the_path_of_its_source(tmp_path):
    path = tmp_path / "example.log"
    path.write_bytes(FILE)
    for source in [str(path), path, PathLike(path)]:
        with cordwood.open(source) as reader:
            assert reader.path == str(path)
    assert cordwood.open(FILE).path is None


@pytest.mark.skipif(os.name == "nt", reason="file names are Unicode there")
def test_non_unicode_paths_can_be_written_and_read(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.log")
    with cordwood.open(path, "x") as writer:
        writer.append(b"one")
        assert writer.path == path
    with cordwood.open(path) as reader:
        assert list(reader) == [b"one"]
        assert reader.path == path
    Path(path).unlink()
    with pytest.raises(FileNotFoundError) as caught:
        cordwood.open(path)
    assert caught.value.filename == path


def test_a_relative_path_can_be_written_and_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with cordwood.open("example.log", "x") as writer:
        writer.append(b"one")
    assert list(cordwood.open("example.log")) == [b"one"]


@pytest.mark.parametrize("step", [2, -1])
def test_a_noncontiguous_memoryview_is_rejected(step):
    with pytest.raises(TypeError, match="contiguous"):
        cordwood.open(memoryview(FILE)[::step])


CONTIGUOUS = {
    "no rows": np.zeros((0, 3)),
    "no columns": np.zeros((3, 0)),
    "no items": memoryview(b"")[::2],
    "no items of a longer one": memoryview(b"abcd")[4:4:2],
    "big-endian": np.arange(3, dtype=">f4"),
    "structures": np.zeros(3, "u1,i4"),
    "no dimensions": np.float64(1.5),
    "rows": np.arange(6).reshape(2, 3),
    "rows of one item": np.arange(6)[::6],
}


@pytest.mark.parametrize("name", CONTIGUOUS)
def test_a_contiguous_buffer_is_read_as_bytes(name):
    data = CONTIGUOUS[name]
    content = memoryview(data).tobytes()
    sink = io.BytesIO()
    with cordwood.open(sink, "w") as writer:
        writer.append(data)
        writer.extend([data])
    assert list(cordwood.open(sink.getvalue())) == [content] * 2
    with cordwood.open(data, dialect="leveldb", on_corruption="skip") as reader:
        list(reader)
        assert reader.outcome.offset + sum(region.length for region in reader.skipped) >= len(content)


@pytest.mark.parametrize("data", [np.arange(6).reshape(2, 3).T, np.arange(6)[::2]])
def test_a_noncontiguous_array_is_rejected(data):
    with cordwood.Writer(io.BytesIO()) as writer, pytest.raises(TypeError, match="contiguous"):
        writer.append(data)


def test_a_buffer_of_any_item_type_is_read_as_bytes():
    padded = FILE + bytes(-len(FILE) % 8)
    with cordwood.open(array.array("Q", padded)) as reader:
        assert list(reader) == RECORDS


def test_changing_a_buffer_while_it_is_being_read_is_safe():
    file = bytearray(reference.encode([PAYLOAD] * 4))
    with cordwood.open(file, on_corruption="skip") as reader:
        next(reader)
        file[3 * 1024 * 1024 :] = bytes(len(file) - 3 * 1024 * 1024)
        assert next(reader) == PAYLOAD
        list(reader)


def test_a_buffer_cannot_be_resized_while_it_is_being_read():
    file = bytearray(FILE)
    with cordwood.open(file) as reader, pytest.raises(BufferError):
        file.append(reader.tell())


def test_reading_starts_at_the_position_of_a_file_object():
    source = io.BytesIO(b"header" + FILE)
    source.seek(6)
    with cordwood.open(source, start=OFFSETS[3]) as reader:
        assert next(reader.records()).offset == OFFSETS[3]
        reader.seek(0)
        assert list(reader) == RECORDS


def test_reading_a_range_of_a_seekable_object_reads_little_more_than_the_range(tmp_path):
    """Even if the dialect has to be detected from the file's start: in a remote file, each byte costs time."""

    class Counting(io.FileIO):
        count = 0

        def read(self, size=-1):
            data = super().read(size)
            self.count += len(data)
            return data

    path = tmp_path / "example.log"
    with cordwood.open(path, "x", flush="close") as writer:
        writer.extend([PAYLOAD[:10_000]] * 4_000)
    start, end = 20 << 20, 24 << 20
    with Counting(path) as source, cordwood.open(source, start=start, end=end) as reader:
        offsets = [record.offset for record in reader.records()]
        assert reader.dialect == "leveldb"
        # The bytes that detection needs, the range, and the bytes after it.
        assert source.count <= (1 << 20) + (end - start) + 2 * BLOCK_LEN
    with cordwood.open(path, start=start, end=end) as reader:
        assert offsets == [record.offset for record in reader.records()]
    # Where little is left in the file, and then none.
    for start in (path.stat().st_size - 15_000, path.stat().st_size):
        with Counting(path) as source, cordwood.open(source, start=start) as reader:
            assert len(list(reader)) <= 1
            assert reader.outcome.kind == "clean"


def test_an_unseekable_source_is_read_through_to_the_start_of_a_range():
    with cordwood.open(OnlyRead(FILE, 1000), start=OFFSETS[6]) as reader:
        assert list(reader) == [b"three"]


def test_opening_a_compressed_file_does_not_decompress_it(tmp_path):
    class Counted(io.FileIO):
        taken = 0

        def read(self, size=-1):
            data = super().read(size)
            self.taken += len(data)
            return data

    with gzip.open(tmp_path / "example.gz", "wb", compresslevel=0) as file:
        file.write(FILE)
    with (
        Counted(tmp_path / "example.gz") as file,
        gzip.GzipFile(fileobj=file) as source,
        cordwood.open(source) as reader,
    ):
        assert file.taken < len(FILE) // 2
        assert list(reader) == RECORDS


def test_an_empty_source_has_no_records_and_no_damage():
    for source in [b"", bytearray(), io.BytesIO(), OnlyRead(b"")]:
        with cordwood.open(source) as reader:
            assert list(reader) == []
            assert (reader.outcome.kind, reader.outcome.offset, reader.skipped) == ("clean", 0, ())


def test_accepts_a_bytes_subclass_as_a_source():
    class Bytes(bytes):
        pass

    assert list(cordwood.open(Bytes(FILE))) == RECORDS


def test_reads_records_written_to_a_pipe():
    read_end, write_end = os.pipe()

    def write():
        with os.fdopen(write_end, "wb") as sink, cordwood.open(sink, "w") as writer:
            writer.extend(RECORDS)

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(read_end, "rb") as source, cordwood.open(source) as reader:
        assert list(reader) == RECORDS
    thread.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_named_pipe_can_be_written_and_read_by_path(tmp_path):
    """Both sides wait for each other, so neither may hold the interpreter meanwhile."""
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        with cordwood.open(path, "w") as writer:
            writer.extend(RECORDS)

    thread = threading.Thread(target=write)
    thread.start()
    with cordwood.open(path, start=OFFSETS[1]) as reader:
        assert list(reader) == RECORDS[1:]
    thread.join()


# Sinks -----------------------------------------------------------------------------------------


class OnlyWrite:
    """A sink that has only `write`: `takes` decides how many bytes it accepts, and `says` its result."""

    def __init__(self, takes=len, says=lambda taken: taken):
        self.file = bytearray()
        self._takes = takes
        self._says = says

    def write(self, data):
        assert (type(data), data.format, data.readonly) == (memoryview, "B", True)
        taken = self._takes(data)
        self.file += data[:taken]
        return self._says(taken)


def short_writes():
    rng = random.Random(1)
    return OnlyWrite(takes=lambda data: rng.randint(1, min(len(data), 50_000)))


@pytest.mark.parametrize(
    "sink",
    [
        OnlyWrite(),
        short_writes(),
        OnlyWrite(says=lambda taken: None),
    ],
    ids=["only write", "short writes", "write returns None"],
)
def test_any_object_with_a_write_method_can_be_a_sink(sink):
    with cordwood.open(sink, "w") as writer:
        assert writer.extend(RECORDS) == len(RECORDS)
        assert writer.path is None
    assert sink.file == FILE


@pytest.mark.parametrize("make", [str, Path, PathLike])
@pytest.mark.parametrize("mode", ["x", "w", "a"])
def test_the_output_file_can_be_given_as_a_string_or_a_path_object(tmp_path, make, mode):
    path = tmp_path / "example.log"
    with cordwood.open(make(path), mode) as writer:
        writer.extend(RECORDS)
        assert writer.path == str(path)
    assert path.read_bytes() == FILE


KEPT = {
    "the view": lambda data: data,
    "a part of the view": lambda data: data[5:],
    "a view of the view": memoryview,
    "what exports the view": lambda data: data.obj,
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("some", [lambda number: True, lambda number: number % 3 == 0], ids=["all", "some"])
def test_the_bytes_stored_by_a_sink_never_change(kept, some):
    """The writer reuses its memory, but not while an object still references it."""
    expected = []

    class Keeps:
        def write(self, data):
            if some(len(expected)):
                self.kept.append((kept(data), bytes(kept(data))))
            expected.append(bytes(data))
            return min(len(data), 700_000)

    sink = Keeps()
    sink.kept = []
    records = [bytes([number]) * length for number, length in enumerate((400_000, 3, 800_000, 30_000, 2_000_000) * 3)]
    with cordwood.open(sink, "w") as writer:
        for record in records:
            writer.append(record)
            if len(record) == 3:
                writer.flush()
    assert len(sink.kept) >= 5
    assert all(bytes(view) == copy for view, copy in sink.kept)
    assert b"".join(data[:700_000] for data in expected) == reference.encode(records)


def test_bytes_kept_by_a_sink_stay_valid_after_the_sink_raises():
    kept = []

    class Raises:
        def write(self, data):
            kept.append(data)
            raise OSError("mine")

    writer = cordwood.open(Raises(), "w")
    writer.append(b"one")
    with pytest.raises(OSError, match="mine"):
        writer.flush()
    with pytest.raises(OSError, match="an earlier write failed"):
        writer.close()
    del writer
    assert kept == [reference.encode([b"one"])]


def test_the_data_passed_to_a_sink_does_not_keep_the_writer_alive():
    class Keeps:
        def write(self, data):
            self.data = data

    sink = Keeps()
    sink.writer = cordwood.open(sink, "w")
    sink.writer.append(b"one")
    sink.writer.flush()
    view, sink_alive, writer_alive = sink.data, weakref.ref(sink), weakref.ref(sink.writer)
    sink.writer.close()
    del sink
    gc.collect()
    assert (sink_alive(), writer_alive()) == (None, None)
    assert view == reference.encode([b"one"])


def test_file_objects_stay_open_and_are_flushed(tmp_path):
    with (tmp_path / "example.log").open("wb") as file:
        with cordwood.open(file, "w") as writer:
            writer.append(b"one")
        assert not file.closed
        assert (tmp_path / "example.log").stat().st_size == 10


def test_writes_to_a_gzip_file(tmp_path):
    with gzip.open(tmp_path / "example.gz", "wb", compresslevel=1) as file, cordwood.open(file, "w") as writer:
        writer.extend(RECORDS)
    with gzip.open(tmp_path / "example.gz") as file:
        assert file.read() == FILE


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview, lambda data: array.array("B", data)])
def test_append_accepts_any_buffer(make):
    sink = io.BytesIO()
    with cordwood.open(sink, "w") as writer:
        for record in RECORDS:
            writer.append(make(record))
    assert sink.getvalue() == FILE


def test_accepts_path_like_objects_with_bytes_paths(tmp_path):
    log, new = tmp_path / "\udcff.log", tmp_path / "new.log"
    path = PathOfBytes(log)
    with cordwood.open(path, "x") as writer:
        writer.append(b"one")
    assert list(cordwood.open(path)) == list(cordwood.follow(path, timeout=0)) == [b"one"]
    assert cordwood.verify(path).record_count == cordwood.stat(path).record_count == 1
    assert len(list(cordwood.fragments(path))) == 1
    assert cordwood.detect(path).dialect == "leveldb"
    assert cordwood.salvage(path, PathOfBytes(new)).record_count == 1
    assert [split.path for split in cordwood.plan_splits([path], 1)] == [str(log)]
    for source in path, [path]:
        assert cordwood.scan(source).ok
    # Plain bytes are data.
    with pytest.raises(cordwood.DialectError, match="bytes are the content of a log, not its path"):
        list(cordwood.open(os.fsencode(log)))


# Several names of one file ---------------------------------------------------------------------


@pytest.fixture
def names(tmp_path):
    """Four names of one file and one of another, as a directory of wandb has them: `latest-run` is a link."""
    (tmp_path / "run-1").mkdir()
    (tmp_path / "latest-run").symlink_to("run-1")
    log, other = tmp_path / "run-1" / "a.log", tmp_path / "b.log"
    log.write_bytes(reference.encode([b'{"a": 1}']))
    other.write_bytes(reference.encode([b'{"a": 2}']))
    (tmp_path / "hard.log").hardlink_to(log)
    return [tmp_path / "latest-run" / "a.log", str(log), PathOfBytes(tmp_path / "hard.log"), f"file://{log}", other]


def test_scan_reads_a_file_only_once_even_if_it_is_passed_under_several_names(names):
    scan = cordwood.scan(names, columns=["path", "record"])
    assert pyarrow.table(scan).to_pydict() == {
        "path": [str(names[0]), str(names[-1])],
        "record": [b'{"a": 1}', b'{"a": 2}'],
    }
    assert len(scan.outcomes) == 2
    decoded = pyarrow.table(cordwood.scan(names, decode="json"))
    assert decoded.to_pydict()["a"] == [1, 2]


def test_planning_splits_includes_each_file_exactly_once(names):
    splits = cordwood.plan_splits(names, 1)
    assert [(split.path, split.start) for split in splits] == [(str(names[0]), 0), (str(names[-1]), 0)]


def test_a_source_that_is_not_a_path_is_scanned_each_time_it_is_passed(names):
    content = reference.encode([b"one"])
    log = names[-1]
    with log.open("rb") as file:
        sources = [content, content, file, log, bytearray(content)]
        assert len(pyarrow.table(cordwood.scan(sources))) == 5
    # It has no inode, and is reported when it is opened.
    missing = cordwood.scan([log.parent / "missing.log"] * 2)
    assert "2 sources" in repr(missing)


@pytest.mark.parametrize("is_seekable", [True, False])
def test_a_source_object_can_provide_its_path(is_seekable, caplog):
    data = bytearray(reference.encode([b"one", b"two", b"three"]))
    data[17] ^= 1
    file = io.BytesIO(data)
    methods = {"read": file.read, "seek": file.seek, "tell": file.tell, "seekable": lambda: is_seekable}
    with cordwood.Reader(SimpleNamespace(cordwood_path="gs://bucket/1.log", **methods), on_corruption="skip") as reader:
        assert (list(reader), reader.path) == ([b"one"], "gs://bucket/1.log")
    [message] = caplog.messages
    assert message.startswith("gs://bucket/1.log: skipped ")
