"""Sources that are read in ranges: URLs, fsspec and universal_pathlib files, and objects in obstore's stores."""

import contextlib
import errno
import gc
import hashlib
import io
import itertools
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import fsspec
import obstore
import pyarrow
import pytest
import reference
import upath
from entities import field, varint
from fsspec.implementations.memory import MemoryFileSystem
from interrupts import Interrupt, interrupting
from obstore.store import MemoryStore
from reference import BLOCK_LEN
from support import PAYLOAD

import cordwood
from cordwood import _remote
from cordwood.cli import main

TIMEOUT = 120  # seconds
MIB = 1 << 20


class Ranges:
    """Ranges of bytes in memory. Records the requests; `answer` may change the result."""

    def __init__(self, data, name=None, answer=None):
        self.data = data
        self.requests = []
        self.threads = set()
        self._answer = answer
        if name:
            self.name = name

    def size(self):
        return len(self.data)

    def read_range(self, start, end):
        self.requests.append((start, end))
        self.threads.add(threading.current_thread())
        data = self.data[start:end]
        return self._answer(start, data) if self._answer else data

    @property
    def requested_len(self):
        return sum(end - start for start, end in self.requests)


class CountingFileSystem(MemoryFileSystem):
    protocol = "counted"
    store = {}  # noqa: RUF012 - fsspec's own is the same
    pseudo_dirs = [""]  # noqa: RUF012
    requests = []  # noqa: RUF012
    infos = []  # noqa: RUF012

    def info(self, path, **options):
        self.infos.append(path)
        return super().info(path, **options)

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("counted://", "memory://"))

    def cat_file(self, path, start=None, end=None, **options):
        self.requests.append((start, end))
        return super().cat_file(path, start=start, end=end, **options)


class Store:
    """Like an obstore store, in memory."""

    def __init__(self, data):
        self._ranges = Ranges(data)
        self.requests = self._ranges.requests

    def head(self, path):
        return {"path": path, "size": self._ranges.size()}

    def get_range(self, path, *, start, end):
        return memoryview(self._ranges.read_range(start, end))


@pytest.fixture(autouse=True)
def stores():
    fsspec.register_implementation("counted", CountingFileSystem, clobber=True)
    yield
    MemoryFileSystem.store.clear()
    CountingFileSystem.store.clear()
    CountingFileSystem.requests.clear()


def in_memory(data, name="example.log"):
    fsspec.filesystem("memory").pipe_file(f"/bucket/{name}", data)
    return f"memory://bucket/{name}"


def in_store(data):
    store = MemoryStore()
    store.put("bucket/example.log", data)
    return store, "bucket/example.log"


SOURCES = {
    "URL": in_memory,
    "fsspec.OpenFile": lambda data: fsspec.open(in_memory(data)),
    "UPath": lambda data: upath.UPath(in_memory(data)),
    "store and path": in_store,
    "open_reader": lambda data: obstore.open_reader(*in_store(data)),
    "file of fsspec": lambda data: fsspec.open(in_memory(data)).open(),
    "own ranges": Ranges,
    "ranges with a name": lambda data: Ranges(data, "example.log"),
}
NAMES = {
    "URL": "memory://bucket/example.log",
    "fsspec.OpenFile": "memory:///bucket/example.log",
    "UPath": "memory:///bucket/example.log",
    "store and path": "bucket/example.log",
    "ranges with a name": "example.log",
}
DIALECTS = ["leveldb", "rocksdb", "pebble", "recyclable", "wandb", "wandb_old", "swanlab"]


def log_of(dialect, seed, length=1_000_000):
    """A log, and the offsets of its records."""
    random_ = random.Random(seed)
    sink = io.BytesIO()
    number = {"log_number": 7} if dialect in {"rocksdb", "pebble", "recyclable"} else {}
    with cordwood.Writer(sink, "w", dialect=dialect, **number) as writer:
        offsets = []
        while sink.tell() < length:
            longest = random_.choice([10, 300, 300, 5_000, 120_000])
            start = random_.randrange(1_000)
            offsets.append(writer.append(PAYLOAD[start : start + random_.randrange(longest)]))
            writer.flush()
    return sink.getvalue(), offsets


def damaged(file, random_):
    file = bytearray(file)
    for _ in range(random_.choice([0, 1, 5])):
        at = random_.randrange(len(file))
        file[at] ^= 1 << random_.randrange(8)
    if random_.random() < 0.5:
        del file[random_.randrange(len(file) // 2, len(file)) :]
    return bytes(file)


def everything(source, **options):
    """Everything that reading reports."""
    raised = []
    with cordwood.open(source, **options) as reader:
        records = []
        iterator = reader.records()
        while True:
            try:
                record = next(iterator)
            except StopIteration:
                break
            except cordwood.CorruptionError as error:
                raised.append((error.offset, error.length, error.reason))
            except cordwood.LogTruncatedError as error:
                raised.append((error.offset, error.file_len))
                break
            else:
                records.append((record.offset, record.end_offset, record.data))
        return records, raised, reader.skipped, reader.outcome, reader.dialect, reader.log_number


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("cordwood")]


def wait_for_no_threads():
    end = time.monotonic() + TIMEOUT
    while threads():
        assert time.monotonic() < end, threads()
        time.sleep(0.01)


@pytest.fixture
def short_ranges(monkeypatch):
    """Makes small logs have many ranges, none of them a multiple of the block length."""
    monkeypatch.setattr(_remote, "RANGE_LENS", (40_001, 100_003, 300_007))


# Reading -------------------------------------------------------------------------------------


@pytest.mark.cell("remote", "whole")
@pytest.mark.parametrize("kind", SOURCES)
def test_reads_records_from_every_kind_of_source(kind, tmp_path, short_ranges):
    file, offsets = log_of("leveldb", 1)
    path = tmp_path / "example.log"
    path.write_bytes(file)
    assert everything(SOURCES[kind](file)) == everything(path)
    middle = {"start": offsets[len(offsets) // 3] + 1, "end": offsets[len(offsets) // 2]}
    assert everything(SOURCES[kind](file), **middle) == everything(path, **middle)
    with cordwood.Reader(SOURCES[kind](file)) as reader, cordwood.Reader(path) as local:
        assert reader.path == NAMES.get(kind)
        for offset in random.Random(2).choices(offsets, k=20):
            reader.seek(offset)
            local.seek(offset)
            assert next(reader) == next(local)
    wait_for_no_threads()


@pytest.mark.parametrize("kind", SOURCES)
def test_all_functions_accept_all_kinds_of_sources(kind, tmp_path, short_ranges):
    file, offsets = log_of("leveldb", 3)
    file = bytearray(file)
    file[offsets[5] + 7] ^= 1
    path = tmp_path / "example.log"
    path.write_bytes(file)
    report, expected = (
        cordwood.verify(SOURCES[kind](file)),
        cordwood.verify(path),
    )
    assert not report.ok
    assert (report.record_count, report.skipped) == (expected.record_count, expected.skipped)
    assert report.path == NAMES.get(kind)
    assert report.file_len == (len(file) if kind not in {"open_reader", "file of fsspec"} or report.file_len else None)
    assert cordwood.stat(SOURCES[kind](file)).header_len == cordwood.stat(path).header_len
    assert list(cordwood.fragments(SOURCES[kind](file))) == list(cordwood.fragments(path))
    assert cordwood.detect(SOURCES[kind](file)) == cordwood.detect(path)
    cordwood.salvage(SOURCES[kind](file), tmp_path / "new.log")
    cordwood.salvage(path, tmp_path / "expected.log")
    assert (tmp_path / "new.log").read_bytes() == (tmp_path / "expected.log").read_bytes()
    scan = cordwood.scan([SOURCES[kind](file), path], on_corruption="skip")
    for _ in range(2):
        table = pyarrow.table(scan)
        half = table.num_rows // 2
        assert table["record"][:half].to_pylist() == table["record"][half:].to_pylist()
        assert set(table["path"][:half].to_pylist()) == {NAMES.get(kind)}
    wait_for_no_threads()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_remote_and_local_reads_agree_in_every_dialect(dialect, seed, tmp_path, short_ranges, no_log):
    file, offsets = log_of(dialect, seed, 500_000)
    random_ = random.Random(f"{dialect} {seed}")
    file = damaged(file, random_) if seed else file
    options = {
        "on_corruption": ["raise", "skip", "salvage", "stop"][seed % 4],
        "start": random_.choice([0, 0, random_.choice(offsets), random_.randrange(len(file))]),
        "end": random_.choice([None, None, len(file)]),
        "dialect": random_.choice([None, dialect]),
    }
    # The log number is in the name.
    path = tmp_path / "000007.log"
    path.write_bytes(file)
    assert everything(Ranges(file, "memory://bucket/000007.log"), **options) == everything(path, **options)


def test_the_log_number_is_read_from_the_url():
    file, _ = log_of("rocksdb", 1, 1_000)
    with cordwood.open(in_memory(file, "000007.log")) as reader:
        assert reader.log_number == 7
    with pytest.raises(cordwood.OtherLogError):
        cordwood.salvage(in_memory(file, "000008.log"), "new.log")


@pytest.mark.parametrize("file", [b"", b"no log " * 100, PAYLOAD[:300_000]], ids=["empty", "text", "random"])
def test_remote_and_local_files_that_are_not_logs_raise_the_same_error(file, tmp_path):
    """Like a file object, it is identified from its start only."""

    def outcome(source):
        try:
            return list(cordwood.open(source))
        except cordwood.CordwoodError as error:
            return type(error), getattr(error, "format", None)

    assert outcome(Ranges(file)) == outcome(io.BytesIO(file))


@pytest.mark.cell("remote", "splits")
def test_splits_of_a_url_cover_the_log():
    file, _ = log_of("leveldb", 4, 300_000)
    url = in_memory(file)
    splits = cordwood.plan_splits([url], 65_536)
    assert len(splits) == -(-len(file) // 65_536)
    assert [record for split in splits for record in cordwood.open(split)] == list(cordwood.open(file))
    with pytest.raises(FileNotFoundError):
        cordwood.plan_splits(["memory://bucket/missing.log"], 65_536)


@pytest.fixture
def counted():
    """A directory of three logs in a store that counts requests."""
    file, _ = log_of("leveldb", 4, 100_000)
    fsspec.register_implementation("counted", CountingFileSystem, clobber=True)
    CountingFileSystem.store.clear()
    for name in ("1.log", "2.log", "sub/3.log"):
        fsspec.filesystem("counted").pipe_file(f"counted://logs/{name}", file)
    CountingFileSystem.requests.clear()
    CountingFileSystem.infos.clear()
    return file


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("counted://logs/", ["1.log", "2.log", "sub/3.log"]),
        ("counted://logs/*.log", ["1.log", "2.log"]),
        ("counted://logs/**/*.log", ["1.log", "2.log", "sub/3.log"]),
        (["counted://logs/sub/", "counted://logs/1.log"], ["sub/3.log", "1.log"]),
    ],
)
def test_logs_in_a_store_can_be_selected_by_directory_or_pattern(url, names, counted):
    reports = cordwood.verify(url)
    assert [name.partition("logs/")[2] for name in reports] == names
    assert reports.ok
    assert {split.path.partition("logs/")[2] for split in cordwood.plan_splits(url, 1 << 20)} == set(names)


def test_salvaging_a_store_keeps_paths_and_only_writes_to_the_new_directory(counted, tmp_path):
    fsspec.filesystem("counted").pipe_file("counted://logs/../../out.log", counted)
    for url, names in (
        ("counted://logs/", ["1.log", "2.log", "out.log", "sub/3.log"]),
        ("counted://logs/*/*.log", ["sub/3.log"]),
    ):
        new = tmp_path / str(len(names)) / "new"
        assert cordwood.salvage(url, new).ok
        files = [path for path in tmp_path.joinpath(str(len(names))).rglob("*") if path.is_file()]
        assert sorted(str(path.relative_to(new)) for path in files) == names
        assert {path.read_bytes() for path in files} == {counted}


@pytest.mark.parametrize(
    ("pattern", "relatives"),
    [
        ("memory://x[12]/*.log", ["x1/a.log", "x2/b.log"]),
        ("memory://x?/*.log", ["x1/a.log", "x2/b.log"]),
        ("memory://x1/*", ["a.log", "n/c.log"]),
        ("memory://x*", ["x1/a.log", "x1/n/c.log", "x2/b.log"]),
        ("memory://**/*.log", ["x1/a.log", "x1/n/c.log", "x2/b.log"]),
    ],
)
def test_salvage_keeps_paths_relative_to_the_fixed_prefix_of_a_pattern(pattern, relatives, tmp_path):
    memory = fsspec.filesystem("memory")
    for name in ("x1/a.log", "x2/b.log", "x1/n/c.log"):
        memory.pipe_file(f"/{name}", reference.encode([name.encode()]))
    memory.pipe_file("/x1/n/notes.txt", b"a text, and no log")
    reports = cordwood.salvage(pattern, tmp_path / "new")
    # As in a directory on this machine, a file that the pattern does not match itself need not be a log.
    assert reports.ok, reports.errors
    assert reports.others == ({"memory:///x1/n/notes.txt": "text"} if pattern.endswith("*") else {})
    new = {path.relative_to(tmp_path / "new").as_posix(): path for path in (tmp_path / "new").rglob("*.log")}
    assert sorted(new) == relatives
    assert all(next(cordwood.open(path)).decode().endswith(relative) for relative, path in new.items())


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("zip://*.log::file://{}/a.zip", ["zip://1.log::file://{}/a.zip", "zip://2.log::file://{}/a.zip"]),
        ("zip://s*::file://{}/a.zip", ["zip://s/3.log::file://{}/a.zip"]),
        ("simplecache::zip://1*::file://{}/a.zip", ["simplecache::zip://1.log::file://{}/a.zip"]),
        ("simplecache::file://{}/b/*.log", ["simplecache::file://{}/b/4.log"]),
        ("simplecache::file://{}/b/", ["simplecache::file://{}/b/4.log"]),
    ],
)
def test_each_match_of_a_chained_url_pattern_is_itself_a_complete_chained_url(url, names, tmp_path):
    import zipfile

    log = reference.encode([b"one"])
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("1.log", "2.log", "s/3.log"):
            archive.writestr(name, log)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/4.log").write_bytes(log)
    reports = cordwood.verify(url.format(tmp_path))
    assert reports.ok, reports.errors
    assert list(reports) == [name.format(tmp_path) for name in names]


def test_a_store_pattern_that_matches_no_files_is_reported_as_an_error(counted):
    reports = cordwood.verify("counted://logs/*.wandb")
    assert [type(error) for error in reports.errors.values()] == [FileNotFoundError]
    assert not reports.ok


def test_the_length_of_each_file_is_requested_only_once_when_planning_splits(counted):
    urls = [f"counted://logs/{number}.log" for number in (1, 2)]
    splits = cordwood.plan_splits(urls, 1 << 20)
    assert sorted(CountingFileSystem.infos) == ["/logs/1.log", "/logs/2.log"]
    # A listing states them, and so does a split, and a caller may.
    CountingFileSystem.infos.clear()
    assert [record for split in splits for record in cordwood.open(split)] == 2 * list(cordwood.open(counted))
    assert cordwood.verify(splits).ok
    # Whoever reads a split compares the version once.
    assert len(CountingFileSystem.infos) == 2 * len(splits)
    CountingFileSystem.infos.clear()
    again = cordwood.plan_splits([(url, len(counted)) for url in urls], 1 << 20)
    assert [split._replace(position=None) for split in again] == [split._replace(position=None) for split in splits]
    assert CountingFileSystem.infos == []
    CountingFileSystem.requests.clear()
    cordwood.plan_splits([(url, len(counted)) for url in urls], 1 << 20, dialect="leveldb")
    assert CountingFileSystem.requests == CountingFileSystem.infos == []


@pytest.mark.parametrize("function", [cordwood.verify, cordwood.stat, cordwood.info, cordwood.scan])
def test_does_not_request_file_lengths_already_in_the_listing(function, counted):
    function("counted://logs/")
    assert CountingFileSystem.infos == []


class Private(CountingFileSystem):
    """A file system with an option that must be right."""

    protocol = "private"

    def __init__(self, *, user=None, **options):
        super().__init__(**options)
        if user != "right":
            raise PermissionError("no user")

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("private://", "memory://"))


def test_storage_options_can_come_from_the_fsspec_configuration(counted, monkeypatch):
    fsspec.register_implementation("private", Private, clobber=True)
    calls = cordwood.verify, cordwood.stat, cordwood.info, lambda url: cordwood.plan_splits(url, MIB)
    assert all(not call("private://logs/").ok for call in calls[:1])
    monkeypatch.setitem(fsspec.config.conf, "private", {"user": "right"})
    for call in calls:
        assert call("private://logs/")
    for split in cordwood.plan_splits("private://logs/*.log", MIB, dialect="leveldb"):
        assert list(cordwood.open(split)) == list(cordwood.open(counted))
    assert pyarrow.table(cordwood.scan("private://logs/")).num_rows


def records_of_splits(sources, **options):
    """The records of the splits, in the process that reads them."""
    splits = pickle.loads(pickle.dumps(cordwood.plan_splits(sources, 65_536, **options)))  # noqa: S301 - our own
    assert "right" not in repr(splits)
    return sum(len(list(cordwood.open(split))) for split in splits)


def record_count_of_all(results):
    return sum(result.record_count for result in results.values())


COUNTS = {
    "verify": lambda sources, **options: record_count_of_all(cordwood.verify(sources, threads=4, **options)),
    "stat": lambda sources, **options: record_count_of_all(cordwood.stat(sources, **options)),
    "info": lambda sources, **options: cordwood.info(sources, **options).record_count,
    "evidence": lambda sources, **options: sum(
        log.report.record_count for log in cordwood.evidence(sources, **options).logs
    ),
    "scan": lambda sources, **options: pyarrow.table(cordwood.scan(sources, **options)).num_rows,
    "scan(decode=)": lambda sources, **options: pyarrow.table(cordwood.scan(sources, decode="raw", **options)).num_rows,
    "plan_splits": records_of_splits,
    "plan_splits(dialect=)": lambda sources, **options: records_of_splits(sources, dialect="leveldb", **options),
    "salvage": lambda sources, **options: record_count_of_all(cordwood.salvage(sources, "new", **options)),
}


@pytest.mark.parametrize(
    "sources",
    [
        "private://logs/",
        "private://logs/**/*.log",
        [f"private://logs/{name}" for name in ("1.log", "2.log", "sub/3.log")],
    ],
    ids=["directory", "pattern", "list"],
)
@pytest.mark.parametrize("function", COUNTS)
def test_storage_options_are_passed_to_the_file_system_of_each_url(function, sources, counted, tmp_path, monkeypatch):
    fsspec.register_implementation("private", Private, clobber=True)
    monkeypatch.chdir(tmp_path)
    record_count = 3 * len(log_of("leveldb", 4, 100_000)[1])
    assert COUNTS[function](sources, storage_options={"user": "right"}) == record_count
    # Some report the error in their result.
    with contextlib.suppress(PermissionError):
        assert not COUNTS[function](sources, storage_options={"user": "wrong"})


def test_every_function_forwards_storage_options(counted):
    fsspec.register_implementation("private", Private, clobber=True)
    url, options = "private://logs/1.log", {"user": "right"}
    records = list(cordwood.open(counted))
    for source in url, iter([url]):
        assert pyarrow.table(cordwood.scan(source, storage_options=options))["record"].to_pylist() == records
    assert list(cordwood.open(url, storage_options=options)) == records
    assert cordwood.verify(url, storage_options=options).path == url
    assert cordwood.map(url, storage_options=options).file_len == len(counted)
    [split] = cordwood.plan_splits([(url, len(counted))], MIB, dialect="leveldb", storage_options=options)
    assert list(cordwood.open(split)) == records
    with pytest.raises(OSError, match="Permission denied"):
        cordwood.open(url, storage_options={"user": "wrong"})
    with pytest.raises(TypeError, match="storage_options is an option for reading"):
        cordwood.open("new.log", "w", storage_options=options)


@pytest.mark.parametrize(
    "source",
    ["example.log", ["example.log"], b"", io.BytesIO(), (MemoryStore(), "example.log")],
    ids=lambda at: type(at).__name__,
)
def test_rejects_storage_options_without_a_url(source):
    for function in cordwood.open, cordwood.verify, cordwood.scan, cordwood.info:
        with pytest.raises(ValueError, match="storage_options are for URLs, and no source is one"):
            function(source, storage_options={"user": "right"})


def test_info_requests_the_length_and_the_start_of_a_file_once(counted):
    assert cordwood.info("counted://logs/1.log").record_count == len(list(cordwood.Reader(counted)))
    assert (CountingFileSystem.infos, CountingFileSystem.requests) == (["/logs/1.log"], [(0, len(counted))])


@pytest.mark.parametrize("function", [cordwood.verify, cordwood.stat])
def test_an_explicit_dialect_causes_no_extra_requests(function, counted):
    function("counted://logs/")
    without = len(CountingFileSystem.requests)
    assert without == 3
    CountingFileSystem.requests.clear()
    assert list(function("counted://logs/", dialect="leveldb")) == list(function("counted://logs/"))
    assert (len(CountingFileSystem.requests), CountingFileSystem.infos) == (2 * without, [])
    CountingFileSystem.requests.clear()
    cordwood.plan_splits("counted://logs/", MIB)
    without = len(CountingFileSystem.requests)
    CountingFileSystem.requests.clear()
    cordwood.plan_splits("counted://logs/", MIB, dialect="leveldb")
    assert (len(CountingFileSystem.requests), CountingFileSystem.infos) == (without, [])


def scanned(sources, threads):
    table = pyarrow.table(cordwood.scan(sources, threads=threads))
    return {path: SimpleNamespace(record_count=1) for path in table["path"].to_pylist()}


@pytest.mark.parametrize(
    ("function", "of"),
    [
        (cordwood.verify, "directory"),
        (cordwood.verify, "splits"),
        (cordwood.stat, "directory"),
        (cordwood.stat, "splits"),
        # It looks at the files of a directory in threads, and then reads each by itself.
        (scanned, "directory"),
    ],
)
def test_small_files_in_a_store_are_read_by_several_threads(function, of, monkeypatch):
    for number in range(40):
        fsspec.filesystem("counted").pipe_file(f"counted://many/{number:02}", reference.encode([b"%d" % number]))
    splits = cordwood.plan_splits("counted://many/", MIB)
    together = threading.Barrier(12)
    numbers = itertools.count()
    read = CountingFileSystem.cat_file

    def cat_file(self, path, **options):
        if next(numbers) < 12:
            together.wait(20)
        return read(self, path, **options)

    CountingFileSystem.requests.clear()
    monkeypatch.setattr(CountingFileSystem, "cat_file", cat_file)
    results = function("counted://many/" if of == "directory" else splits, threads=16)
    assert [result.record_count for result in results.values()] == [1] * 40
    assert not together.broken


def test_plan_splits_accepts_store_objects(counted):
    store = MemoryStore()
    obstore.put(store, "a.log", counted)
    file = fsspec.open("counted://logs/1.log")
    splits = cordwood.plan_splits([(store, "a.log"), file], BLOCK_LEN)
    names = ["a.log", file.fs.unstrip_protocol(file.path)]
    expected = cordwood.plan_splits([counted_as_url := "counted://logs/1.log"], BLOCK_LEN)
    assert [split.path for split in splits] == [name for name in names for _ in expected]
    assert [(split.start, split.end, split.dialect) for split in splits] == 2 * [
        (split.start, split.end, split.dialect) for split in expected
    ]
    records = list(cordwood.open(counted_as_url))
    assert [record for split in splits for record in cordwood.open(split)] == 2 * records
    assert cordwood.verify(splits, threads=4).ok
    assert pyarrow.table(cordwood.scan(splits)).num_rows == 2 * len(records)
    moved = pickle.loads(pickle.dumps(splits[-1]))  # noqa: S301 - our own bytes
    assert (moved.path, list(cordwood.open(moved))) == (splits[-1].path, list(cordwood.open(splits[-1])))
    named = cordwood.plan_splits([(store, "a.log"), file], BLOCK_LEN, dialect="leveldb")
    assert [record for split in named for record in cordwood.open(split)] == 2 * records
    obstore.put(store, "a.log", reference.encode([b"another"] * 30_000))
    with pytest.raises(cordwood.LogChangedError):
        list(cordwood.open(splits[0]))
    for wrong in io.BytesIO(counted), 5, (store, 5):
        with pytest.raises(TypeError):
            cordwood.plan_splits([wrong], BLOCK_LEN)


def test_a_list_can_mix_store_objects_and_urls(counted):
    store = MemoryStore()
    obstore.put(store, "a.log", counted)
    pair, file = (store, "a.log"), fsspec.open("counted://logs/1.log")
    for function in cordwood.verify, cordwood.stat:
        results = function([pair, file, "counted://logs/2.log"])
        assert list(results) == ["a.log", file.fs.unstrip_protocol(file.path), "counted://logs/2.log"]
        assert {result.record_count for result in results.values()} == {function(counted).record_count}
        with pytest.raises(ValueError, match=r"two sources have the name a\.log"):
            function([pair, (MemoryStore(), "a.log")])
        with pytest.raises(TypeError, match="a list of logs contains paths, URLs, objects in stores and splits"):
            function([io.BytesIO(counted)])
        [missing] = function([(store, "missing.log")]).errors
        assert missing == "missing.log"


@pytest.mark.parametrize("most", [0, 1, 5])
def test_failure_to_start_threads_is_reported_for_the_source(most, monkeypatch):
    file = reference.encode([b"one"])
    urls = [in_memory(file, f"{number}.log") for number in range(9)]
    start, started = threading.Thread.start, []

    def start_one(thread):
        if len(started) == most:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    splits = cordwood.plan_splits(urls, MIB, dialect="leveldb")
    assert [(split.path, split.end) for split in splits] == [(url, len(file)) for url in urls]
    started[:] = [None] * most
    with pytest.raises(BlockingIOError, match="no thread can be started to read it") as raised:
        list(cordwood.open(urls[0]))
    assert (raised.value.errno, raised.value.filename) == (errno.EAGAIN, urls[0])
    assert {type(error) for error in cordwood.verify(urls).errors.values()} == {BlockingIOError}


def test_file_lengths_are_requested_in_parallel_when_planning_splits(counted, monkeypatch):
    together = threading.Barrier(2)

    def info(self, path, **options):
        together.wait(TIMEOUT)
        return MemoryFileSystem.info(self, path, **options)

    monkeypatch.setattr(CountingFileSystem, "info", info)
    assert len(cordwood.plan_splits(["counted://logs/1.log", "counted://logs/2.log"], 1 << 20)) == 2


def test_the_last_split_includes_the_block_of_its_last_record():
    file, offsets = log_of("leveldb", 6, 3_000_000)
    end = 64 * BLOCK_LEN
    assert end not in offsets
    source = Ranges(file)
    assert len(list(cordwood.open(source, end=end))) == sum(offset < end for offset in offsets)
    assert source.requests[-1][1] == end + BLOCK_LEN
    assert len(source.requests) == 2


def test_the_read_ahead_setting_limits_the_length_of_the_requested_ranges():
    file, _ = log_of("leveldb", 6, 3_000_000)
    cordwood.set_read_ahead(256 << 10)
    try:
        source = Ranges(file)
        with cordwood.open(source) as reader:
            next(reader)
            assert max(end - start for start, end in source.requests) <= 64 << 10
        assert list(cordwood.open(Ranges(file))) == list(cordwood.open(file))
    finally:
        cordwood.set_read_ahead(64 << 20)
    with pytest.raises(ValueError, match="at least 131072"):
        cordwood.set_read_ahead(131_071)


def test_accepts_a_tuple_of_paths(tmp_path):
    paths = tmp_path / "a.log", tmp_path / "b.log"
    for path in paths:
        path.write_bytes(log_of("leveldb", 5, 1_000)[0])
    assert "2 sources" in repr(cordwood.scan(tuple(map(str, paths))))
    assert '"bucket/example.log"' in repr(cordwood.scan(in_store(b"")))


# Transfers -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_log():
    """64 MiB, and the offsets of its records."""
    sink = io.BytesIO()
    with cordwood.Writer(sink, "w") as writer:
        offsets = [writer.append(PAYLOAD[at % 1000 :][: at * 7919 % 20_000]) for at in range(6_700)]
    assert sink.tell() > 63 * MIB
    return sink.getvalue(), offsets


@pytest.mark.parametrize("dialect", [None, "leveldb"])
@pytest.mark.parametrize("kind", ["URL", "store and path", "own ranges"])
def test_range_read_transfers_little_more_than_the_range(kind, dialect, long_log):
    file, offsets = long_log
    if kind == "URL":
        fsspec.filesystem("counted").pipe_file("/bucket/long.log", file)
        source, requests = "counted://bucket/long.log", CountingFileSystem.requests
    elif kind == "store and path":
        source = Store(file), "long.log"
        requests = source[0].requests
    else:
        source = Ranges(file)
        requests = source.requests
    start, end = 16 * MIB, 24 * MIB
    with cordwood.open(source, start=start, end=end, dialect=dialect) as reader:
        assert [record.offset for record in reader.records()] == [at for at in offsets if start <= at < end]
    assert 8 * MIB <= sum(end - start for start, end in requests) <= 8 * MIB + 5 * BLOCK_LEN
    assert cordwood.verify(source, start=start, end=end).record_count


def test_every_byte_is_requested_exactly_once(long_log):
    file, offsets = long_log
    for read in (
        lambda source: len(list(cordwood.open(source))),
        lambda source: cordwood.verify(source).record_count,
        # `fragments` has two readers of one file.
        lambda source: len({part.record_offset for part in cordwood.fragments(source)} - {None}),
        lambda source: pyarrow.table(cordwood.scan(source, columns=["offset"])).num_rows,
    ):
        source = Ranges(file)
        assert read(source) == len(offsets)
        requests = sorted(source.requests)
        assert [start for start, _ in requests] == [0, *(end for _, end in requests[:-1])]
        assert [end - start for start, end in requests][:-1] == [MIB, 4 * MIB, 16 * MIB, 16 * MIB, 16 * MIB]
        assert requests[-1][1] == len(file)


def test_a_64_mib_split_takes_at_most_eight_requests():
    with cordwood.Writer(file := io.BytesIO()) as writer:
        writer.extend([bytes(100_000)] * 2_000)
    fsspec.filesystem("counted").pipe_file("/bucket/long.log", file.getvalue())
    splits = cordwood.plan_splits("counted://bucket/long.log", 64 * MIB)
    assert [split.end - split.start for split in splits[:2]] == [64 * MIB] * 2
    for split, info_count in [(splits[1], 1), (splits[1]._replace(file_len=None), 2)]:
        CountingFileSystem.requests.clear()
        CountingFileSystem.infos.clear()
        with cordwood.open(split) as reader:
            assert sum(1 for _ in reader) in {670, 671}
        assert len(CountingFileSystem.requests) == 6
        assert len(CountingFileSystem.infos) == info_count


def test_reading_only_the_first_record_requests_few_bytes(long_log):
    file, _ = long_log
    source = Ranges(file)
    with cordwood.open(source) as reader:
        next(reader)
    assert source.requested_len <= 5 * MIB
    source = Ranges(file)
    assert cordwood.detect(source) == cordwood.LogFormat("leveldb")
    assert source.requested_len <= 96 * 1024


def test_ranges_are_requested_before_they_are_needed(monkeypatch):
    """At most four, in threads that work at the same time."""
    monkeypatch.setattr(_remote, "RANGE_LENS", (50_000,))
    file, _ = log_of("leveldb", 6, 3_000_000)
    together = threading.Barrier(4)
    running, most = set(), []

    def answer(start, data):
        running.add(start)
        most.append(len(running))
        if 500_000 <= start < 700_000:
            together.wait(TIMEOUT)
        running.discard(start)
        return data

    source = Ranges(file, answer=answer)
    reader = cordwood.open(source)
    for record in reader.records():
        assert max(end for _, end in source.requests) <= max(MIB, record.end_offset) + MIB + 5 * 50_000
    assert max(most) <= 4
    assert len(source.threads) == 4
    reader.close()
    wait_for_no_threads()


# Failures ------------------------------------------------------------------------------------


class Failed(Exception):  # noqa: N818 - like some clients' errors, it is not an `OSError`
    pass


def fail(error):
    raise error


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda data: data[:-1], r"bytes at offset 140004 were requested, and \d+ were received"),
        (lambda data: b"", "bytes at offset 140004 were requested, and 0 were received"),
        (lambda data: data + b"x", r"bytes at offset 140004 were requested, and \d+ were received"),
        (lambda data: fail(Failed("payload is not completed")), "Failed: payload is not completed"),
        (lambda data: fail(ConnectionResetError("the peer")), "the peer"),
        (lambda data: fail(TypeError("of the client")), "TypeError: of the client"),
    ],
    ids=["short", "empty", "long", "foreign error", "dropped", "bug"],
)
@pytest.mark.parametrize("how", ["iterate", "batches", "verify", "scan", "fragments"])
def test_an_incomplete_response_body_raises_an_error(fault, message, how, short_ranges):
    """It is an error, never an end; the next step requests it again."""
    file, _ = log_of("leveldb", 7)
    is_broken = True

    def answer(start, data):
        return fault(data) if start == 140_004 and is_broken else data

    source = Ranges(file, "memory://bucket/x.log", answer)
    if how in {"verify", "scan"}:
        error = pyarrow.ArrowException if how == "scan" else OSError
        with pytest.raises((error, OSError), match=message):
            cordwood.verify(source) if how == "verify" else pyarrow.table(cordwood.scan(source))
        return
    with contextlib.ExitStack() as stack:
        if how == "fragments":
            parts = cordwood.fragments(source)
        else:
            reader = stack.enter_context(cordwood.open(source))
            parts = reader.records() if how == "iterate" else reader.record_batches()
        with pytest.raises(OSError, match=message) as caught:
            list(parts)
        assert caught.value.filename == "memory://bucket/x.log"
        is_broken = False
        rest = list(parts)
    if how == "fragments":
        expected = list(cordwood.fragments(file))
    elif how == "iterate":
        expected = list(cordwood.open(file).records())
    else:
        rest, expected = list(itertools.chain(*rest)), list(cordwood.open(file))
    assert rest
    assert rest == expected[-len(rest) :]


class StoreError(OSError):
    """An error of a client, which takes arguments of its own."""

    def __init__(self, code):
        super().__init__(f"the store answered {code}")
        self.code = code


@pytest.mark.parametrize("method", ["size", "read_range"])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (TimeoutError("slow"), "slow"),
        (TimeoutError(), "TimeoutError"),
        (ConnectionError("net"), "net"),
        (ConnectionResetError("the peer"), "the peer"),
        (ConnectionResetError(errno.ECONNRESET, "the peer"), "the peer"),
        (InterruptedError("mine"), "mine"),
    ],
    ids=repr,
)
def test_os_errors_keep_their_class_and_mention_the_source(error, text, method):
    source = Ranges(log_of("leveldb", 7)[0], "memory://bucket/x.log")
    setattr(source, method, lambda *_: fail(error))
    with pytest.raises(OSError, match=text) as caught:
        list(cordwood.open(source))
    assert type(caught.value) is type(error)
    assert (caught.value.filename, caught.value.__cause__) == ("memory://bucket/x.log", error)


@pytest.mark.parametrize("method", ["size", "read_range"])
@pytest.mark.parametrize("error", [StoreError(503), io.UnsupportedOperation("mine")], ids=repr)
def test_store_client_exceptions_propagate_unchanged(error, method):
    source = Ranges(log_of("leveldb", 7)[0], "memory://bucket/x.log")
    setattr(source, method, lambda *_: fail(error))
    with pytest.raises(OSError, match=re.escape(str(error))) as caught:
        list(cordwood.open(source))
    assert caught.value is error


def test_a_file_object_shorter_than_its_stated_size_raises_an_error():
    """As obstore's file object does if a server sends an empty body."""

    class Cut(io.BytesIO):
        size = 0

    file, _ = log_of("leveldb", 11)
    source = Cut(file[:70_000])
    source.size = len(file)
    with pytest.raises(OSError, match=f"the source ended after 70000 bytes, and its size is {len(file)}"):
        list(cordwood.open(source))
    source = Cut(file)
    for source.size in len(file), None, "unknown", len(file) - 1:
        source.seek(0)
        assert list(cordwood.open(source)) == list(cordwood.open(file))


@pytest.mark.parametrize("kind", ["URL", "fsspec.OpenFile", "UPath", "store and path"])
def test_a_missing_store_object_raises_file_not_found_error(kind):
    source = SOURCES[kind](b"")
    if kind == "store and path":
        source[0].delete(source[1])
    else:
        MemoryFileSystem.store.clear()
    for call in cordwood.open, cordwood.verify, cordwood.stat, cordwood.fragments, cordwood.detect:
        with pytest.raises(FileNotFoundError) as caught:
            call(source)
        assert caught.value.filename == NAMES[kind]
    with pytest.raises((OSError, pyarrow.ArrowException), match="No such file or directory"):
        pyarrow.table(cordwood.scan(source))


@pytest.mark.parametrize("kind", ["URL", "fsspec.OpenFile", "UPath", "file"])
def test_a_directory_is_not_an_empty_log(kind, tmp_path):
    """A job over a mistyped prefix must not succeed with no data."""
    in_memory(b"", "directory/example.log")
    (tmp_path / "directory").mkdir()
    source, name = {
        "URL": ("memory://bucket/directory", "memory://bucket/directory"),
        "fsspec.OpenFile": (fsspec.open("memory://bucket/directory"), "memory:///bucket/directory"),
        "UPath": (upath.UPath("memory://bucket/directory"), "memory:///bucket/directory"),
        "file": (f"file://{tmp_path}/directory", f"file://{tmp_path}/directory"),
    }[kind]
    calls = [cordwood.open, cordwood.verify, cordwood.stat, cordwood.fragments, cordwood.detect]
    if isinstance(source, str):
        calls.append(lambda source: cordwood.plan_splits([source], 1))
    for call in calls:
        with pytest.raises(IsADirectoryError) as caught:
            call(source)
        assert (caught.value.filename, caught.value.hint) == (name, cordwood.types.Hint.READ_DIRECTORY)
    with pytest.raises((OSError, pyarrow.ArrowException), match="Is a directory"):
        pyarrow.table(cordwood.scan(source))


def test_a_url_that_is_given_twice_is_read_once():
    url, other = in_memory(log_of("leveldb", 1, 10_000)[0]), in_memory(b"", "other.log")
    assert "2 sources" in repr(cordwood.scan([url, other, url]))
    assert [split.path for split in cordwood.plan_splits([url, other, url], 1 << 20)] == [url]


ODD_URLS = {
    "reference://x": OSError,
    "zip://a::file://{directory}/not-a-zip": OSError,
    "tar://a::file://{directory}/not-a-tar": OSError,
    "async_wrapper://x": OSError,
    "generic://x": OSError,
    "zip://a::memory://missing.zip": FileNotFoundError,
}


def test_the_error_for_a_missing_library_is_one_sentence(monkeypatch):
    """pyarrow lists each place in which it has looked for libjvm, for `hdfs://`."""

    def load(*_, **__):
        raise OSError("Unable to load libjvm\ndlopen(/usr/lib/libjvm.so) failed\n" * 200)

    monkeypatch.setattr(CountingFileSystem, "__init__", load)
    CountingFileSystem.clear_instance_cache()
    with pytest.raises(OSError, match="counted") as raised:
        cordwood.open("counted://host/a.log")
    assert raised.value.strerror == "Unable to load libjvm"


@pytest.mark.parametrize("url", ODD_URLS)
def test_the_error_for_any_file_system_exception_includes_the_url(url, tmp_path):
    for name in "not-a-zip", "not-a-tar":
        (tmp_path / name).write_bytes(b"not an archive" * 100)
    url, expected = url.format(directory=tmp_path), ODD_URLS[url]
    splits = lambda url: cordwood.plan_splits([url], 1)  # noqa: E731
    for call in cordwood.open, cordwood.verify, cordwood.detect, cordwood.scan, splits:
        if call is cordwood.scan and url.startswith("generic"):
            continue  # It is opened without an error, and found to be missing when it is read.
        with pytest.raises(expected) as caught:
            call(url)
        assert caught.value.filename == url


def test_truncating_a_remote_file_while_it_is_being_read_raises_an_error(long_log):
    file, _ = long_log
    url = in_memory(file)
    with cordwood.open(url) as reader:
        next(reader)
        in_memory(file[: 20 * MIB])
        with pytest.raises(OSError, match="were requested, and"):
            list(reader)


def test_a_remote_file_of_unknown_length_raises_an_error():
    class NoLength(CountingFileSystem):
        def info(self, path, **options):
            return {**super().info(path, **options), "size": None}

    fs = NoLength()
    fs.pipe_file("/a.log", b"")
    with pytest.raises(OSError, match="its length is not known: pass an open file") as caught:
        cordwood.open(fsspec.core.OpenFile(fs, "/a.log"))
    assert caught.value.filename == "counted:///a.log"


# Threads, forks, signals ---------------------------------------------------------------------


class Held(Ranges):
    """Every request except the first waits until `let_go` is set."""

    def __init__(self, data):
        super().__init__(data)
        self.let_go = threading.Event()
        self.is_held = False

    def read_range(self, start, end):
        data = super().read_range(start, end)
        if start:
            self.is_held = True
            assert self.let_go.wait(TIMEOUT)
        return data


@pytest.mark.parametrize("end", ["close", "collect", "cycle", "fragments", "error", "scan"])
def test_close_leaves_no_threads_or_requests_running(end, short_ranges):
    file, _ = log_of("leveldb", 8)
    source = Held(file)
    gc.collect()
    wait_for_no_threads()
    if end == "fragments":
        source.let_go.set()
        reader = cordwood.fragments(source)
        next(reader)
        del reader
    elif end == "scan":
        batches = pyarrow.RecordBatchReader.from_stream(cordwood.scan(source))
        del batches
        source.let_go.set()
        pyarrow.table(cordwood.scan(source))
    else:
        reader = cordwood.Reader(source)
        next(reader)
        if end == "close":
            reader.close()
        elif end == "error":
            with pytest.raises(OSError, match="the source's"), reader:
                raise OSError("the source's")
        elif end == "cycle":
            weak = weakref.ref(reader)
            cycle = [reader]
            cycle.append(cycle)
            del reader, cycle
            gc.collect()
            assert weak() is None
        else:
            del reader
    # Two requests were made, but the second may not have started yet.
    assert source.let_go.is_set() or len(source.requests) <= 2
    source.let_go.set()
    wait_for_no_threads()
    assert end in {"fragments", "scan"} or len(source.requests) <= 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_threads_in_its_parent(short_ranges):
    file, _ = log_of("leveldb", 9)
    source = Held(file)
    with cordwood.open(source) as reader:
        next(reader)
        child = os.fork()
        if not child:
            status = 1
            with contextlib.suppress(BaseException):
                try:
                    list(reader)
                except OSError as error:
                    is_right = "opened before a fork" in str(error) and error.hint == "reopen"
                    status = 0 if is_right else 2
                reader.close()
                # Another reader can be opened.
                if list(cordwood.open(Ranges(file))) != list(cordwood.open(file)):
                    status = 3
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        source.let_go.set()
        assert len(list(reader)) == len(list(cordwood.open(file))) - 1
    wait_for_no_threads()


def test_ctrl_c_while_waiting_for_a_range_loses_no_records(short_ranges):
    """It takes effect at once, and no record is lost."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread")
    file, _ = log_of("leveldb", 10)
    source = Held(file)
    records = []
    with cordwood.open(source) as reader:
        with interrupting(lambda: source.is_held), pytest.raises(Interrupt):  # noqa: PT012
            for record in reader:
                records.append(record)  # noqa: PERF402 - those before the interrupt are kept
        source.let_go.set()
        records += reader
    assert records == list(cordwood.open(file))
    wait_for_no_threads()


# Installed packages --------------------------------------------------------------------------


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_remote_modules_are_imported_only_when_a_remote_source_is_used(tmp_path):
    path = tmp_path / "example.log"
    path.write_bytes(log_of("leveldb", 1, 1_000)[0])
    assert (
        run(f"""
import sys, cordwood
names = {{"cordwood._remote", "fsspec", "obstore", "upath", "concurrent.futures"}}
list(cordwood.open({str(path)!r}))
print(sorted(names & set(sys.modules)))
with open({str(path)!r}, "rb") as file:
    list(cordwood.open(file))
cordwood.verify({str(path)!r}), cordwood.plan_splits([{str(path)!r}], 1)
print(sorted(names & set(sys.modules)))
""")
        == "[]\n['cordwood._remote']\n"
    )


def test_error_names_fsspec_if_it_is_not_installed():
    """The import is blocked, so that the test works even if fsspec is installed."""
    text = run("""
import sys
sys.modules["fsspec"] = None
import cordwood
for url in "s3://b/a.log", "simplecache::gs://b/a.log", "other://a":
    for call in cordwood.open, cordwood.scan, cordwood.detect:
        try:
            call(url)
        except ModuleNotFoundError as error:
            print(error)
""")
    says = "a URL is read through fsspec, which is not installed: pip install fsspec"
    assert text.splitlines() == [
        *[f"s3://b/a.log: {says} s3fs"] * 3,
        *[f"simplecache::gs://b/a.log: {says} gcsfs"] * 3,
        *[f"other://a: {says}"] * 3,
    ]


def test_error_names_the_missing_file_system_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(ModuleNotFoundError, match=r"^gs://b/a.log: .*: pip install fsspec gcsfs$"):
        cordwood.open("gs://b/a.log")
    with pytest.raises(ValueError, match=r"^unheard-of://a: Protocol not known: unheard-of$"):
        cordwood.open("unheard-of://a")


# Other sources -------------------------------------------------------------------------------


def test_a_local_path_may_contain_a_url_like_prefix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "c://x", "a b://c", "./memory://x", "/memory://x":
        with pytest.raises(FileNotFoundError) as caught:
            cordwood.open(name)
        assert caught.value.filename == name


@pytest.mark.cell("remote", "follow-growing follow-pad follow-truncate follow-zeros follow-flips")
@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda url: cordwood.open(url, "w"), "URLs can only be read; to write there, pass an open file"),
        (cordwood.Writer, "URLs can only be read; to write there, pass an open file"),
        (lambda url: cordwood.open(url, "a"), "URLs can only be read; mode 'a' needs the path of a file"),
        (cordwood.follow, "only a file on this machine can be followed: name its path"),
        (
            lambda url: cordwood.salvage(b"", url),
            "URLs can only be read; write to the path of a file, and copy that file there",
        ),
    ],
    ids=["open", "Writer", "append", "follow", "salvage"],
)
def test_writing_to_or_following_a_url_is_rejected(call, why):
    with pytest.raises(ValueError, match=f"^memory://bucket/new.log is a URL, and {re.escape(why)}$"):
        call("memory://bucket/new.log")


def test_rejects_open_files_that_decompress_their_data(tmp_path):
    file, _ = log_of("leveldb", 1, 10_000)
    url = in_memory(b"", "example.log.gz")
    with fsspec.open(url, "wb", compression="gzip") as compressed:
        compressed.write(file)
    with pytest.raises(TypeError, match="decompresses has no ranges: pass the file object"):
        cordwood.open(fsspec.open(url, compression="gzip"))
    with fsspec.open(url, compression="gzip") as source:
        assert list(cordwood.open(source)) == list(cordwood.open(file))


def test_reads_archive_members(tmp_path):
    import tarfile
    import zipfile

    file, _ = log_of("leveldb", 1, 10_000)
    expected = list(cordwood.open(file))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.log", file)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive, archive.open("a.log") as member:
        assert list(cordwood.open(member)) == expected
    assert list(cordwood.open(f"zip://a.log::file://{tmp_path}/a.zip")) == expected
    (tmp_path / "a.log").write_bytes(file)
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "a.log", "a.log")
    with tarfile.open(tmp_path / "a.tar.gz") as archive, archive.extractfile("a.log") as member:
        assert list(cordwood.open(member)) == expected


def test_each_member_of_an_archive_is_read_as_a_separate_log(tmp_path):
    import zipfile

    logs = {"1.log": b"one", "2.log": b"two"}
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, record in logs.items():
            archive.writestr(name, reference.encode([record]))
    members = [f"zip://{name}::file://{tmp_path}/a.zip" for name in logs]
    reports = cordwood.verify([*members, members[0]])
    assert [report.payload_len for report in reports.values()] == [3, 3]
    assert list(reports) == members
    # The SHA-256 and the bytes of the archive are not those of a member.
    assert [log.sha256 for log in cordwood.evidence(members).logs] == [None, None]
    assert cordwood.salvage(members, tmp_path / "new").ok
    assert {path.name: next(cordwood.open(path)) for path in (tmp_path / "new").iterdir()} == logs


def test_a_url_and_its_cached_form_are_treated_as_the_same_file(tmp_path):
    path = tmp_path / "1.log"
    path.write_bytes(reference.encode([b"one"]))
    names = [f"simplecache::file://{path}", str(path), f"file://{path}"]
    assert list(cordwood.verify(names)) == names[:1]
    [log] = cordwood.evidence(names[0]).logs
    assert log.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_writes_to_an_fsspec_file():
    with fsspec.open("memory://bucket/new.log", "wb") as file, cordwood.open(file, "w") as writer:
        writer.extend([b"one", b"two"])
    assert list(cordwood.open("memory://bucket/new.log")) == [b"one", b"two"]


@pytest.mark.parametrize("source", [5, None, object(), MemoryStore(), (1, "a")])
def test_open_rejects_objects_that_are_not_sources(source):
    with pytest.raises(TypeError, match=r"must be a path, a URL, bytes or another buffer, or an object with read"):
        cordwood.open(source)


def test_replacing_an_object_while_it_is_being_read_raises_an_error():
    store = MemoryStore()
    old, new = (reference.encode([letter * 1_000] * 12_000) for letter in (b"A", b"B"))
    obstore.put(store, "some.log", old)
    cordwood.set_read_ahead(131_072)
    try:
        with cordwood.open((store, "some.log")) as reader:
            assert next(reader) == b"A" * 1_000
            obstore.put(store, "some.log", new)
            with pytest.raises(cordwood.LogChangedError, match=r"some\.log"):
                list(reader)
    finally:
        cordwood.set_read_ahead(64 << 20)


VECTORS = Path(__file__).parents[1] / "vectors"
SEGMENTS = ["00000000000000000000.log", "00000000000000000100.log"]


def copied_to_store(directory, protocol="memory"):
    """The directory, in a store."""
    memory = fsspec.filesystem(protocol)
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            memory.pipe_file(f"/bucket/{path.relative_to(directory.parent).as_posix()}", path.read_bytes())
    return f"{protocol}://bucket/{directory.name}/"


@pytest.mark.parametrize("damage", ["none", "missing", "empty", "short"])
def test_an_export_in_a_store_is_verified_like_an_export_on_disk(damage, tmp_path, capsys):
    directory = tmp_path / "export"
    (directory / "kind").mkdir(parents=True)
    for name in ("output-0", "output-1"):
        shutil.copy(VECTORS / "appengine/export/output-0", directory / "kind" / name)
    file_len = (directory / "kind/output-0").stat().st_size
    count = len(list(cordwood.open(directory / "kind/output-0")))
    list_name = "kind.export_metadata"
    (directory / "kind" / list_name).write_bytes(
        field(1, field(1, b"an_export")) + b"".join(field(2, field(2, name)) for name in (b"output-0", b"output-1"))
    )
    stated = varint(3 << 3) + varint(2 * count) + varint(4 << 3) + varint(2 * file_len)
    message = field(1, field(2, b"kind/" + list_name.encode()) + stated)
    (directory / "x.overall_export_metadata").write_bytes(reference.encode([b"3", message]))
    output = directory / "kind/output-1"
    if damage == "missing":
        output.unlink()
    elif damage != "none":
        output.write_bytes(output.read_bytes()[: 0 if damage == "empty" else -1])
    url = copied_to_store(directory)
    on_disk, reports = cordwood.verify(directory), cordwood.verify(url)
    assert (reports.ok, on_disk.ok) == (damage == "none",) * 2
    [export], [own] = reports.exports, on_disk.exports
    for name in ("file_len", "stated_entity_count", "stated_len", "entity_count", "ok"):
        assert getattr(export, name) == getattr(own, name)
    assert len(reports.errors) == len(on_disk.errors)
    assert sorted(reports.others.values()) == sorted(on_disk.others.values())
    fsspec.register_implementation("private", Private, clobber=True)
    private_url = copied_to_store(directory, "counted").replace("counted", "private")
    [with_options] = cordwood.verify(private_url, storage_options={"user": "right"}).exports
    assert repr(with_options) == repr(export).replace("memory", "private")
    status = main(["verify", "--quiet", str(directory)])
    assert main(["verify", "--quiet", url]) == status
    table = str(tmp_path / "x.ndjson")
    status = main(["convert", "--as", "entity", str(directory), table])
    assert main(["convert", "--overwrite", "--as", "entity", url, table]) == status
    capsys.readouterr()


@pytest.mark.parametrize("names", [["CURRENT", "MANIFEST-000001"], ["marker.manifest.000001.MANIFEST-000001"]])
def test_a_database_in_a_store_is_not_checked(names, tmp_path, capsys):
    directory = tmp_path / "directory"
    directory.mkdir()
    for name in (*names, "000003.log"):
        (directory / name).write_bytes(reference.encode([b"one"]))
    url = copied_to_store(directory)
    text = "a database in a store: not judged, because its files are compared only on a disk"
    check_refused(url, "memory:///bucket/directory/", text, capsys)
    assert all(report.ok for report in cordwood.verify(url).values())
    assert main(["cat", url]) == 0


def test_segmented_logs_in_a_store_cannot_be_opened(tmp_path, capsys):
    directory = tmp_path / "directory"
    directory.mkdir()
    for name in SEGMENTS:
        (directory / name).write_bytes(reference.encode([b"one"]))
    url = copied_to_store(directory)
    text = "a segmented log is read only from a local directory: copy it there, or name its files to read each as a log"
    check_refused(url, "memory:///bucket/directory", text, capsys)
    assert main(["cat", url]) == 1


def check_refused(url, path, text, capsys):
    """Checks that each verdict on a directory is an error."""
    reports = cordwood.verify(url)
    assert (reports.ok, reports.databases) == (False, ())
    [(found, error)] = reports.errors.items()
    assert (found, error.strerror) == (path, text)
    info = cordwood.info(url)
    assert (info.ok, [failed for failed, _ in info.failures]) == (False, [path])
    assert cordwood.evidence(url).failed == ((path, text),)
    for verb in ("verify", "info"):
        assert main([verb, url]) == 1
        out, err = capsys.readouterr()
        assert err.startswith(f"cordwood: {path}: {text}\n")
        assert "DAMAGED" not in out
