"""`Writer`: modes, buffering, and the bytes that each leaves in the file."""

import inspect
import io
import os
import signal
import subprocess
import sys
import threading

import pytest
import reference
from reference import BLOCK_LEN, FIRST, FULL, HEADER_LEN, fragment
from support import PAYLOAD

import cordwood

ONE = reference.encode([b"one"])
ONE_TWO = reference.encode([b"one", b"two"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "example.log"


# Appending records -----------------------------------------------------------------------------


def test_append_returns_the_record_offset_and_tell_returns_the_log_length():
    with cordwood.open(io.BytesIO(), "w") as writer:
        assert writer.tell() == 0
        assert writer.append(b"one") == 0
        assert writer.tell() == 10
        assert writer.append(bytes(BLOCK_LEN - 10 - HEADER_LEN - 3)) == 10
        assert writer.append(b"behind the trailer") == BLOCK_LEN
        assert writer.tell() == BLOCK_LEN + HEADER_LEN + 18


def test_extending_a_log_returns_the_number_of_records():
    sink = io.BytesIO()
    with cordwood.open(sink, "w") as writer:
        assert writer.extend([]) == 0
        assert writer.extend(iter([b"one", b"two"])) == 2
    assert sink.getvalue() == ONE_TWO


def test_extend_accepts_a_reader(path):
    path.write_bytes(reference.encode([PAYLOAD, b"", b"x"]))
    sink = io.BytesIO()
    with cordwood.open(path) as reader, cordwood.open(sink, "w") as writer:
        assert writer.extend(reader) == 3
    assert sink.getvalue() == path.read_bytes()


def test_writes_a_record_of_many_megabytes(path):
    record = PAYLOAD * 40
    with cordwood.open(path, "x") as writer:
        writer.append(record)
        writer.append(b"one")
    assert list(cordwood.open(path)) == [record, b"one"]


def test_a_buffer_is_copied_when_it_is_appended():
    sink = io.BytesIO()
    record = bytearray(b"one")
    with cordwood.open(sink, "w") as writer:
        writer.append(record)
        record[:] = b"two"
        record.append(0)
    assert sink.getvalue() == ONE


# When it is written ----------------------------------------------------------------------------


class Writes(list):
    """A sink that lists the writes to it."""

    def write(self, data):
        self.append(data)


def test_records_are_buffered_and_written_in_256_kib_pieces():
    sink = Writes()
    with cordwood.open(sink, "w") as writer:
        for _ in range(4000):
            writer.append(PAYLOAD[:1000])
        # 261 is the lowest number of records that, with their headers, reach this length.
        assert len(sink) == 4000 // 261
        assert all(256 << 10 <= len(data) < (256 << 10) + 2000 for data in sink)
        writer.flush()
    assert b"".join(sink) == reference.encode([PAYLOAD[:1000]] * 4000)


def test_append_writes_before_returning_by_default(path):
    with cordwood.open(path, "w") as writer:
        writer.append(b"one")
        assert path.read_bytes() == ONE
        writer.extend([b"two"])
        assert path.read_bytes() == ONE_TWO
        writer.flush()
        assert path.read_bytes() == ONE_TWO


def test_flushing_writes_each_buffered_record_once(path):
    with cordwood.open(path, "w", flush="close") as writer:
        writer.append(b"one")
        assert path.read_bytes() == b""
        writer.flush()
        assert path.read_bytes() == ONE
        writer.flush()
        writer.append(b"two")
        writer.flush()
        assert path.read_bytes() == ONE_TWO


def test_syncing_writes_the_buffer_and_advances_the_durable_offset(path):
    with cordwood.open(path, "w") as writer:
        assert writer.durable_offset == 0
        writer.append(b"one")
        writer.flush()
        assert writer.durable_offset == 0
        writer.sync()
        assert writer.durable_offset == 10
        writer.append(b"two")
        assert writer.durable_offset == 10
        writer.sync()
        assert writer.durable_offset == writer.tell() == 20
        assert path.read_bytes() == ONE_TWO


def test_syncing_through_a_file_object_makes_records_durable(path):
    with path.open("wb") as file, cordwood.open(file, "w") as writer:
        writer.append(b"one")
        writer.sync()
        assert writer.durable_offset == 10
        assert path.read_bytes() == ONE


# Closing ---------------------------------------------------------------------------------------


def test_close_writes_the_records_and_can_be_called_twice(path):
    writer = cordwood.open(path, "w")
    writer.append(b"one")
    writer.close()
    assert writer.closed
    writer.close()
    assert path.read_bytes() == ONE
    assert writer.path == str(path)


def test_an_exception_in_a_with_block_still_closes_the_writer(path):
    def write():
        with cordwood.open(path, "w") as writer:
            writer.append(b"one")
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert path.read_bytes() == ONE


def test_closing_a_writer_without_records_leaves_an_empty_file(path):
    cordwood.open(path, "w").close()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("records", [[], iter(())], ids=["list", "iterator"])
@pytest.mark.parametrize("kind", ["path", "object"])
def test_a_closed_writer_rejects_even_an_empty_iterable(kind, records, path):
    writer = cordwood.open(path if kind == "path" else io.BytesIO(), "w")
    assert writer.extend(records) == 0
    writer.close()
    with pytest.raises(cordwood.ClosedError):
        writer.extend(records)


def test_extending_a_closed_writer_still_propagates_exceptions_from_the_iterable(path):
    def records():
        raise KeyError("mine")
        yield b""

    writer = cordwood.open(path, "w")
    writer.close()
    with pytest.raises(KeyError, match="mine"):
        writer.extend(records())


def test_dropping_an_unclosed_writer_writes_its_records_and_warns(path):
    writer = cordwood.open(path, "w")
    writer.append(b"one")
    with pytest.warns(ResourceWarning, match=r"unclosed writer .*example\.log"):
        del writer
    assert path.read_bytes() == ONE


def test_an_unclosed_writer_flushes_to_its_sink():
    sink = Writes()
    writer = cordwood.open(sink, "w")
    writer.append(b"one")
    with pytest.warns(ResourceWarning, match="unclosed writer"):
        del writer
    assert sink == [ONE]


def test_a_closed_writer_does_not_warn(path):
    writer = cordwood.open(path, "w")
    writer.close()
    del writer


def test_an_unclosed_writer_writes_its_records_at_exit(path):
    script = "import cordwood, sys; writer = cordwood.open(sys.argv[1], 'w'); writer.append(b'one')"
    subprocess.run([sys.executable, "-c", script, path], check=True, timeout=120)
    assert path.read_bytes() == ONE


def test_the_repr_shows_the_type_and_its_fields(path):
    with cordwood.open(path, "w") as writer:
        assert str(path) in repr(writer)
    with cordwood.open(io.BytesIO(), "w") as writer:
        assert "Writer" in repr(writer)


# Modes -----------------------------------------------------------------------------------------


def test_the_default_mode_creates_a_new_file(path):
    with cordwood.Writer(path) as writer:
        writer.append(b"one")
    with pytest.raises(FileExistsError):
        cordwood.Writer(path)
    assert path.read_bytes() == ONE


def test_opening_in_write_mode_replaces_an_existing_file(path):
    path.write_bytes(b"something longer than a record")
    with cordwood.open(path, "w") as writer:
        writer.append(b"one")
    assert path.read_bytes() == ONE


@pytest.mark.parametrize("exists", [True, False])
def test_append_mode_starts_a_log_if_the_file_is_empty_or_missing(path, exists):
    if exists:
        path.touch()
    with cordwood.open(path, "a") as writer:
        assert writer.tell() == 0
        assert writer.append(b"one") == 0
    assert path.read_bytes() == ONE


def test_a_log_can_be_opened_for_append_repeatedly(path):
    records = [PAYLOAD[:length] for length in (3, 40_000, 0, 25_000, 32_761, 5)]
    for record in records:
        with cordwood.open(path, "a") as writer:
            writer.append(record)
    assert path.read_bytes() == reference.encode(records)


@pytest.mark.parametrize("distance", range(20))
def test_append_mode_works_at_any_distance_from_the_block_end(path, distance):
    first = PAYLOAD[: BLOCK_LEN - HEADER_LEN - distance]
    path.write_bytes(reference.encode([first]))
    with cordwood.open(path, "a") as writer:
        assert writer.tell() == BLOCK_LEN - distance
        writer.append(b"second")
    assert path.read_bytes() == reference.encode([first, b"second"])


@pytest.mark.parametrize("written", range(7))
def test_appending_completes_a_partial_trailer(path, written):
    first = PAYLOAD[: BLOCK_LEN - HEADER_LEN - 6]
    path.write_bytes(reference.encode([first]) + bytes(written))
    with cordwood.open(path, "a") as writer:
        assert writer.append(b"second") == BLOCK_LEN
    assert path.read_bytes() == reference.encode([first, b"second"])


TORN = {
    "a header": (ONE + b"1234", 10, 4, "torn_tail"),
    "a payload": (ONE_TWO[:-1], 10, 9, "torn_tail"),
    "only a first fragment": (ONE + fragment(FIRST, b"abc"), 10, 10, "torn_tail"),
    "a record of many blocks": (reference.encode([b"one", PAYLOAD])[:100_000], 10, 99_990, "torn_tail"),
    "some zeros": (ONE + bytes(3), 10, 3, "zero_fill"),
    "blocks of zeros": (ONE + bytes(3 * BLOCK_LEN), 10, 3 * BLOCK_LEN, "zero_fill"),
    "nothing but zeros": (bytes(100), 0, 100, "zero_fill"),
}


@pytest.mark.parametrize("name", TORN)
def test_opening_a_torn_log_for_append_fails_with_advice(path, name):
    file, offset, length, reason = TORN[name]
    path.write_bytes(file)
    with pytest.raises(cordwood.TornTailError) as caught:
        cordwood.open(path, "a")
    error = caught.value
    assert (error.path, error.offset, error.length, error.reason) == (str(path), offset, length, reason)
    assert str(path) in str(error)
    [note] = error.__notes__
    assert error.hint == "on_torn_tail"
    assert note == "on_torn_tail='truncate' cuts it off, 'pad' keeps every byte and continues in the next block"
    assert path.read_bytes() == file

    with cordwood.open(path, "a", on_torn_tail="truncate") as writer:
        tail = writer.discarded_tail
        assert writer.append(b"two") == offset
    assert (tail.offset, tail.end_offset, tail.reason) == (offset, offset + length, reason)
    assert path.read_bytes() == reference.encode([*([b"one"] if offset else []), b"two"])


@pytest.mark.parametrize("name", TORN)
def test_padding_a_torn_tail_does_not_change_existing_bytes(path, name):
    file, offset, length, reason = TORN[name]
    path.write_bytes(file)
    with cordwood.open(path, "a", on_torn_tail="pad") as writer:
        assert (writer.discarded_tail.offset, writer.discarded_tail.length) == (offset, length)
        start = writer.append(b"two")
        assert start == -(-len(file) // BLOCK_LEN) * BLOCK_LEN
    # Zeros only could complete a torn record.
    mark = b"" if reason == "zero_fill" or len(file) == start else b"\xff"
    assert path.read_bytes() == (file + mark).ljust(start, b"\0") + reference.encode([b"two"])
    with cordwood.open(path, on_corruption="skip") as reader:
        assert list(reader) == [*([b"one"] if offset else []), b"two"]


def test_opening_for_append_rejects_damage_anywhere_in_the_log(path):
    for file in [
        bytes([ONE[0] ^ 1]) + ONE[1:],
        bytes([ONE[0] ^ 1]) + ONE[1:] + bytes(BLOCK_LEN - 10) + ONE,
        fragment(FIRST, b"abc") + ONE,
        ONE + fragment(80, b""),
    ]:
        path.write_bytes(file)
        for on_torn_tail in ["refuse", "truncate"]:
            with pytest.raises(cordwood.CorruptionError) as caught:
                cordwood.open(path, "a", on_torn_tail=on_torn_tail)
            assert caught.value.path == str(path)
            assert caught.value.hint == "pad"
            assert path.read_bytes() == file
        # Damage is skipped only on request, and every byte of it stays.
        with cordwood.open(path, "a", on_torn_tail="pad") as writer:
            writer.append(b"behind")
        assert path.read_bytes().startswith(file)
        with cordwood.open(path, on_corruption="skip") as reader:
            assert list(reader)[-1] == b"behind"


def test_opening_for_append_accepts_zeros_between_records(path):
    path.write_bytes(ONE + bytes(BLOCK_LEN - 10) + ONE)
    with cordwood.open(path, "a") as writer:
        assert writer.append(b"two") == BLOCK_LEN + 10
    assert list(cordwood.open(path)) == [b"one", b"one", b"two"]


def test_appending_continues_after_a_nonzero_trailer(path):
    path.write_bytes(fragment(FULL, PAYLOAD[: BLOCK_LEN - HEADER_LEN - 6]) + b"xx")
    with cordwood.open(path, "a") as writer:
        writer.append(b"two")
    assert list(cordwood.open(path)) == [PAYLOAD[: BLOCK_LEN - HEADER_LEN - 6], b"two"]


@pytest.mark.parametrize("flush", ["append", "close", None])
def test_a_writer_rejects_a_record_that_readers_would_reject(tmp_path, flush):
    path = tmp_path / "example.log"
    sink = io.BytesIO() if flush is None else path
    writer = cordwood.open(sink, "w", record_len_max=5, **({"flush": flush} if flush else {}))
    calls = [
        lambda: writer.append(b"123456"),
        lambda: writer.append(bytearray(40_000), sync=flush is not None),
        lambda: writer.extend([b"three", b"123456", b"four"]),
        lambda: writer.extend(iter([bytes(6)])),
    ]
    writer.append(b"12345")
    for call, length, offset in zip(calls, [6, 40_000, 6, 6], [12, 12, 24, 24], strict=True):
        with pytest.raises(cordwood.RecordTooLargeError, match="the limit is 5") as caught:
            call()
        error = caught.value
        expected = (str(path) if flush else None, offset, length, "record_too_large")
        assert (error.path, error.offset, error.length, error.reason) == expected
        assert (error.record_len_max, error.hint) == (length, "raise_record_len_max")
    writer.append(b"")
    writer.close()
    log = path.read_bytes() if flush else sink.getvalue()
    assert list(cordwood.Reader(log, record_len_max=5)) == [b"12345", b"three", b""]


def test_readers_and_writers_share_the_same_default_record_limit():
    defaults = {
        inspect.signature(function).parameters["record_len_max"].default
        for function in (cordwood.Reader, cordwood.Writer, cordwood.follow, cordwood.verify, cordwood.stat)
    }
    assert defaults == {1 << 30}


# A file that is renamed while it is opened --------------------------------------------------------


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a lease, which makes an open() wait")
@pytest.mark.parametrize("starts_the_next", [True, False])
def test_opening_for_append_detects_a_concurrent_rename(starts_the_next, path):
    """The writer that has the log open renames it and closes it, after another one has opened it but not locked it."""
    import fcntl

    older = path.with_name("older.log")
    path.write_bytes(ONE)
    descriptor = os.open(path, os.O_RDWR)
    # No `threading.Event`: a handler that sets it may interrupt its own `wait`, which holds its lock.
    signals = []
    before = signal.signal(signal.SIGIO, lambda *_: signals.append(True))
    writers = []
    thread = threading.Thread(target=lambda: writers.append(cordwood.open(path, "a")))
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        thread.start()
        while not signals:
            thread.join(0.01)
            assert thread.is_alive()
        path.rename(older)
        if starts_the_next:
            path.write_bytes(ONE_TWO)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    finally:
        os.close(descriptor)
        thread.join()
        signal.signal(signal.SIGIO, before)
    with writers[0] as writer:
        writer.append(b"three")
    assert older.read_bytes() == ONE
    assert path.read_bytes() == (reference.encode([b"one", b"two", b"three"] if starts_the_next else [b"three"]))
