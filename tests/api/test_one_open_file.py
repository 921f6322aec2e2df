"""A reader reads the file that it opened, even if its path names another one later or the file's cursor is moved."""

import functools
import os
import threading
from pathlib import Path

import pytest
import reference

import cordwood

MIB = 1 << 20
# Longer than the part that two threads read ahead at a time.
COUNT = 80

DESCRIPTORS = Path("/proc/self/fd")
needs_descriptors = pytest.mark.skipif(not DESCRIPTORS.exists(), reason="the system does not list open files here")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Two logs with the same layout and different records."""
    directory = tmp_path_factory.mktemp("logs")
    for name in ("a", "b"):
        (directory / name).write_bytes(reference.encode([name.encode() * MIB] * COUNT))
    return directory


@pytest.fixture
def directory(logs, tmp_path):
    for name in ("a", "b"):
        os.link(logs / name, tmp_path / name)
    return tmp_path


def replace(directory):
    (directory / "b").replace(directory / "a")


def unlink(directory):
    (directory / "a").unlink()


def change_directory(directory):
    os.chdir(directory.parent)


@pytest.mark.parametrize("happens", [replace, unlink, change_directory])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_reader_keeps_reading_a_file_that_is_replaced_or_removed(directory, monkeypatch, happens, threads):
    monkeypatch.chdir(directory)
    with cordwood.Reader("a") as reader:
        packs = reader.record_batches(threads=threads)
        found = [next(packs)]
        happens(directory)
        found += packs
        assert [bytes(set(record)) for pack in found for record in pack] == [b"a"] * COUNT
        assert reader.skipped == ()


@needs_descriptors
@pytest.mark.parametrize("function", [cordwood.verify, cordwood.stat])
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("dialect", [None, "leveldb"])
def test_verify_and_stat_open_the_file_only_once(directory, monkeypatch, function, threads, dialect):
    opened = count_opens(directory / "a", lambda: function(str(directory / "a"), threads=threads, dialect=dialect))
    assert opened == 1


@needs_descriptors
@pytest.mark.parametrize("dialect", [None, "leveldb"])
def test_a_reader_that_starts_in_the_middle_opens_its_path_only_once(directory, dialect):
    path = str(directory / "a")
    start = 40 * MIB

    def read():
        with cordwood.Reader(path, start=start, dialect=dialect, on_corruption="skip") as reader:
            assert sum(1 for _ in reader.record_batches(threads=2)) > 1

    assert count_opens(directory / "a", read) == 1
    assert count_opens(directory / "a", lambda: list(cordwood.fragments(path))) == 1


def count_opens(path, work):
    """How many descriptors `work` opens for `path`, which it opens at least once."""
    # On a busy machine the list may not have been checked in time.
    while not (seen := opens(path, work)):
        pass
    return len(seen)


def opens(path, work):
    """The descriptors that `work` opens for `path`, from the list that Linux keeps, checked every half millisecond."""
    seen = set()
    source = path.stat()

    def look():
        for descriptor in DESCRIPTORS.iterdir():
            try:
                found = descriptor.stat()
            except OSError:
                continue
            if (found.st_dev, found.st_ino) == (source.st_dev, source.st_ino):
                seen.add(descriptor.name)

    is_over = threading.Event()

    def watch():
        while not is_over.wait(0.0005):
            look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        work()
    finally:
        is_over.set()
        thread.join()
    return seen


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_reading_in_a_forked_child_does_not_change_the_position_in_the_parent(directory):
    with cordwood.Reader(directory / "a") as reader:
        assert next(reader)[:1] == b"a"
        child = os.fork()
        if child == 0:
            # It continues reading from the shared descriptor.
            count = sum(1 for _ in reader)
            os._exit(0 if count == COUNT - 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert [record[:1] for record in reader] == [b"a"] * (COUNT - 1)


@pytest.mark.skipif(not Path("/proc/self/fdinfo").exists(), reason="the system does not show cursors here")
@pytest.mark.parametrize("opened", [cordwood.Reader, functools.partial(cordwood.follow, timeout=0)])
def test_reading_does_not_move_the_file_cursor(directory, opened):
    """A fork shares the cursor, so a process that reads at it reads where the other one has moved it to."""
    path = directory / "a"
    with opened(path) as reader:
        assert sum(1 for _ in reader) == COUNT
        (descriptor,) = [name.name for name in DESCRIPTORS.iterdir() if name.exists() and name.samefile(path)]
        fields = dict(line.split(":") for line in Path("/proc/self/fdinfo", descriptor).read_text().splitlines())
        assert int(fields["pos"]) == 0


def test_truncating_a_log_while_threads_read_it_raises_an_error(tmp_path):
    path = tmp_path / "cut.log"
    path.write_bytes(reference.encode([b"x" * MIB] * COUNT))
    with cordwood.Reader(path) as reader:
        packs = reader.record_batches(threads=2)
        found = list(next(packs))
        os.truncate(path, 50 * MIB)
        with pytest.raises(OSError, match="the file was cut while it was read"):
            found.extend(record for pack in packs for record in pack)
        assert len(found) == 49
        assert reader.outcome.kind == "unfinished"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("start", [1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_reading_past_the_end_of_the_file_raises_a_truncation_error(tmp_path, threads, start):
    path = tmp_path / "short.log"
    path.write_bytes(reference.encode([b"one"]))
    with cordwood.Reader(path, start=start) as reader:
        for take in (lambda: list(reader.record_batches(threads=threads)), lambda: list(reader)):
            with pytest.raises(cordwood.LogTruncatedError):
                take()
