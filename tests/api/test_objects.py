"""Objects that are dropped during an exception or in a cycle, and weak references."""

import gc
import io
import subprocess
import sys
import weakref

import pytest
import reference

import cordwood

ONE = reference.encode([b"one"])

# Each drops an unclosed writer while an exception propagates, which must reach the program unchanged.
DROPPED = {
    "a call whose later argument fails": ("print(cordwood.open(path, 'w'), 1 / 0)", ZeroDivisionError),
    "a list whose later item fails": ("[cordwood.Writer(path, 'w'), {}['x']]", KeyError),
    "append of text": ("cordwood.open(path, 'w').append('text')", TypeError),
    "append of a number": ("cordwood.open(path, 'w').append(3)", TypeError),
    "extend with text": ("cordwood.open(path, 'w').extend(['text'])", TypeError),
    "a keyword that is none": ("cordwood.open(path, 'w').append(b'x', x=1)", TypeError),
    "Ctrl-C in what is appended": ("cordwood.open(path, 'w').extend(interrupted())", KeyboardInterrupt),
    "a sink that cannot be written": ("cordwood.open(Full(), 'w').extend([b'x', 3])", TypeError),
}
SCRIPT = """
import sys, warnings
import cordwood
path = sys.argv[1]

def interrupted():
    yield b"one"
    raise KeyboardInterrupt

class Full:
    def write(self, data):
        raise OSError(28, "No space left on device")

try:
    {}
except BaseException as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("flags", [["-W", "always"], ["-W", "error"], []], ids=" ".join)
@pytest.mark.parametrize("name", DROPPED)
def test_dropping_a_writer_preserves_a_pending_exception(tmp_path, name, flags):
    statement, expected = DROPPED[name]
    path = tmp_path / "example.log"
    command = [sys.executable, *flags, "-c", SCRIPT.format(statement), path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, expected.__name__ + "\n")
    # Python shows this warning only on request.
    assert ("ResourceWarning: unclosed writer" in done.stderr) == bool(flags)
    assert ("No space left on device" in done.stderr) == ("Full" in statement)


def test_an_unclosed_writer_warns_and_preserves_a_pending_exception(tmp_path):
    path = tmp_path / "example.log"

    def write():
        yield b"one"
        raise KeyError("later")

    with pytest.warns(ResourceWarning, match=r"unclosed writer .*example\.log"), pytest.raises(KeyError, match="later"):
        cordwood.open(path, "w").extend(write())
    assert path.read_bytes() == ONE


PANIC = """
import cordwood

class Ranges:
    name = "mine"

    def size(self):
        return 10

    def read_range(self, start, end):
        return bytes(end - start)

def panic():
    # The class of a panic, which exists once the module has asked for it.
    [cls] = [cls for cls in BaseException.__subclasses__() if cls.__name__ == "PanicException"]
    raise cls("mine")

try:
    [cordwood.open(Ranges()), panic()]
except BaseException as error:
    print(type(error).__name__, error)
"""


def test_closing_a_source_preserves_a_pending_panic():
    done = subprocess.run([sys.executable, "-c", PANIC], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "PanicException mine\n", "")


# Cycles ----------------------------------------------------------------------------------------


class Log:
    """A sink that references its own writer."""

    def __init__(self, path):
        self.path = path
        self.writer = cordwood.Writer(self)

    def write(self, data):
        with self.path.open("ab") as file:
            return file.write(data)


def test_garbage_collecting_a_writer_writes_its_records_and_warns(tmp_path):
    path = tmp_path / "example.log"
    log = Log(path)
    log.writer.append(b"one")
    is_alive = weakref.ref(log)
    del log
    with pytest.warns(ResourceWarning, match="unclosed writer"):
        gc.collect()
    assert is_alive() is None
    assert path.read_bytes() == ONE


def test_a_closed_writer_in_a_reference_cycle_does_not_warn(tmp_path):
    log = Log(tmp_path / "example.log")
    log.writer.close()
    is_alive = weakref.ref(log)
    del log
    gc.collect()
    assert is_alive() is None


CYCLE_AT_EXIT = """
import os, sys, cordwood
class Log:
    def __init__(self, write):
        self.write = write
        self.writer = cordwood.Writer(self)
{}
log.writer.append(b"one")
"""


def run_to_its_end(path, script):
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", script, path]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stderr


def test_a_writer_in_a_reference_cycle_writes_its_records_at_exit(tmp_path):
    path = tmp_path / "example.log"
    make = """
fd, write = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY), os.write
log = Log(lambda data: write(fd, data))
"""
    assert "unclosed writer" in run_to_its_end(path, CYCLE_AT_EXIT.format(make))
    assert path.read_bytes() == ONE


def test_a_writer_in_a_reference_cycle_with_its_file_never_loses_a_record_silently(tmp_path):
    path = tmp_path / "example.log"
    # Python finalises the objects of a cycle in any order: the file may come first.
    make = """
file = open(sys.argv[1], "wb")
log = Log(lambda data: file.write(data))
log.file = file
"""
    errors = run_to_its_end(path, CYCLE_AT_EXIT.format(make))
    assert "unclosed writer" in errors
    assert path.read_bytes() == ONE or "ValueError: write to closed file" in errors


# Weak references -------------------------------------------------------------------------------


def test_writers_support_weak_references(tmp_path):
    path = tmp_path / "example.log"
    with cordwood.open(path, "w") as writer:
        writer.append(b"one")
    for log in (writer, cordwood.open(io.BytesIO(), "w")):
        reference = weakref.ref(log)
        assert reference() is log
        log.close()
        del log
    del writer
    assert reference() is None


class Source:
    """A source that references its own reader."""

    def __init__(self, hold):
        self.data = io.BytesIO(ONE * 3)
        self.held = hold(self)

    def read(self, size):
        return self.data.read(size)

    def seekable(self):
        return True

    def tell(self):
        return self.data.tell()

    def seek(self, offset):
        return self.data.seek(offset)


class Buffer(bytearray):
    """A buffer that can have attributes."""


READERS = {
    "reader": cordwood.Reader,
    "iterator": lambda source: iter(cordwood.Reader(source)),
    "records": lambda source: cordwood.Reader(source).records(),
    "record_batches": lambda source: cordwood.Reader(source).record_batches(threads=2),
    "fragments": cordwood.fragments,
}


@pytest.mark.parametrize("is_started", [False, True])
@pytest.mark.parametrize("name", READERS)
def test_a_source_that_references_its_reader_is_freed(name, is_started):
    source = Source(READERS[name])
    buffer = Buffer(ONE * 3)
    buffer.held = READERS[name](buffer)
    if is_started:
        next(source.held)
        next(buffer.held)
    are_alive = [weakref.ref(source), weakref.ref(buffer), weakref.ref(source.held), weakref.ref(buffer.held)]
    del source, buffer
    gc.collect()
    assert [is_alive() for is_alive in are_alive] == [None] * 4


def test_the_garbage_collector_keeps_objects_that_are_still_referenced():
    source = Source(cordwood.Reader)
    held = source.held
    del source
    gc.collect()
    assert list(held) == [b"one"] * 3


def test_readers_and_followers_support_weak_references(tmp_path):
    path = tmp_path / "example.log"
    path.write_bytes(ONE)
    reader = cordwood.Reader(path)
    follower = cordwood.follow(path, timeout=0)
    for held in (
        reader,
        iter(reader),
        reader.records(),
        reader.record_batches(),
        next(reader.record_batches()),
    ):
        assert weakref.ref(held)() is held
    for held in (cordwood.fragments(path), follower, iter(follower), follower.records()):
        assert weakref.ref(held)() is held
