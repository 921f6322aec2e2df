"""Faults of arguments, files and logs, and the errors that report them."""

import contextlib
import copy
import errno
import io
import logging
import os
import pickle
import re
import signal
import socket
from functools import partial
from pathlib import Path

import pyarrow
import pytest
import reference

import cordwood
from cordwood import payload
from cordwood.payload import entity

RECORDS = [b"one", b"two", b"three"]
FILE = reference.encode(RECORDS)
DAMAGED = bytes([*FILE[:9], FILE[9] ^ 1, *FILE[10:]])  # The last byte of the first record.


@pytest.fixture
def path(tmp_path):
    return tmp_path / "example.log"


# Files -----------------------------------------------------------------------------------------


def test_opening_a_missing_file_raises_a_file_not_found_error(path):
    with pytest.raises(FileNotFoundError) as caught:
        cordwood.open(path)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(path))
    assert str(caught.value) == f"[Errno 2] No such file or directory: {str(path)!r}"


@pytest.mark.parametrize("mode", ["x", "w", "a"])
def test_creating_a_file_in_a_missing_directory_raises_a_file_not_found_error(path, mode):
    with pytest.raises(FileNotFoundError) as caught:
        cordwood.open(path / "x.log", mode)
    assert caught.value.filename == str(path / "x.log")


@pytest.mark.parametrize("mode", ["r", "w", "a"])
def test_the_error_from_opening_a_directory_says_that_it_is_a_directory(tmp_path, mode):
    with pytest.raises(IsADirectoryError) as caught:
        cordwood.open(tmp_path, mode)
    assert caught.value.filename == str(tmp_path)


def test_errors_include_the_message_from_the_operating_system(tmp_path):
    """Rust has different texts, such as "entity already exists"."""
    (tmp_path / "there.log").write_bytes(FILE)
    for call, number in [
        (lambda: cordwood.open(tmp_path), errno.EISDIR),
        (lambda: cordwood.detect(tmp_path), errno.EISDIR),
        (lambda: cordwood.salvage(FILE, tmp_path / "there.log"), errno.EEXIST),
        (lambda: cordwood.pack(FILE, tmp_path / "there.log"), errno.EEXIST),
    ]:
        with pytest.raises(OSError, match=os.strerror(number)) as caught:
            call()
        assert (caught.value.errno, caught.value.strerror) == (number, os.strerror(number))


@pytest.mark.parametrize("call", [cordwood.open, cordwood.verify, cordwood.follow])
def test_a_path_that_looks_like_a_url_is_still_a_path(call):
    for name in "missing.log", "/a://b", "a b://c":
        with pytest.raises(FileNotFoundError) as caught:
            call(name)
        assert caught.value.strerror == os.strerror(errno.ENOENT)


def test_a_reader_rejects_writer_options(path):
    path.write_bytes(FILE)
    for options in ({"sync": "close"}, {"on_torn_tail": "pad"}):
        [name] = options
        with pytest.raises(TypeError) as caught:
            cordwood.open(path, **options)
        assert str(caught.value) == (
            f"{name} is an option for writing, and the mode is 'r'; options for reading: dialect, log_number, "
            "compression, record_len_max, on_corruption, start, end, storage_options, verify_checksums"
        )


def test_a_writer_rejects_reader_options(path):
    for mode in ("w", "ab"):
        for options in ({"start": 1}, {"end": 1}, {"on_corruption": "skip"}, {"verify_checksums": False}):
            [name] = options
            with pytest.raises(TypeError, match=f"{name} is an option for reading, and the mode is '{mode}'"):
                cordwood.open(path, mode, **options)
    assert not path.exists()


@pytest.mark.parametrize(("source", "kind"), [(b"a.log", "bytes"), (3, "int"), (None, "NoneType")])
def test_plan_splits_rejects_objects_that_are_not_paths(source, kind):
    with pytest.raises(TypeError, match=rf"path must be str or os\.PathLike, not {kind}"):
        cordwood.plan_splits([source], 1)


def test_plan_splits_rejects_a_path_given_as_bytes():
    with pytest.raises(TypeError, match=r"path must be str or os\.PathLike, not bytes"):
        cordwood.plan_splits(b"a.log", 1)


def test_creating_an_existing_file_fails(path):
    path.write_bytes(FILE)
    for open_new in (lambda: cordwood.open(path, "x"), lambda: cordwood.Writer(path)):
        with pytest.raises(FileExistsError) as caught:
            open_new()
        assert (caught.value.errno, caught.value.filename) == (errno.EEXIST, str(path))
    assert path.read_bytes() == FILE


@pytest.mark.parametrize("mode", ["r", "w"])
def test_a_path_containing_a_null_character_is_rejected(mode):
    with pytest.raises(ValueError, match=r"(?i)nul"):
        cordwood.open("a\0b", mode)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_appending_to_a_full_disk_raises_an_out_of_space_error():
    writer = cordwood.open("/dev/full", "w")
    with pytest.raises(OSError, match="No space left on device") as caught:
        writer.append(b"one")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")
    with pytest.raises(OSError, match="earlier write failed"):
        writer.append(b"two")
    with pytest.raises(OSError, match="earlier write failed"):
        writer.close()
    assert writer.closed


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_closing_a_writer_reports_a_full_disk():
    writer = cordwood.open("/dev/full", "w", flush="close")
    writer.append(b"one")
    with pytest.raises(OSError, match="No space left on device") as caught:
        writer.close()
    assert caught.value.errno == errno.ENOSPC
    # The error has been reported; the writer is closed like any other.
    writer.close()
    for use in (lambda: writer.append(b"two"), lambda: writer.append(b"two", sync=True), writer.flush, writer.tell):
        with pytest.raises(ValueError, match="the writer is closed"):
            use()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_leaving_a_with_block_raises_the_first_write_error():
    def write():
        with cordwood.open("/dev/full", "w") as writer:
            writer.append(b"one")
            writer.flush()

    with pytest.raises(OSError, match="No space left on device") as caught:
        write()
    assert caught.value.errno == errno.ENOSPC


# Arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [None, 1, 1.5, [b"one"], object()])
def test_a_reader_rejects_objects_that_are_not_sources(source):
    with pytest.raises(TypeError, match="source must be a path"):
        cordwood.open(source)


@pytest.mark.parametrize("sink", [None, 1, b"bytes", bytearray(), object()])
def test_a_writer_rejects_objects_that_are_not_sinks(sink):
    with pytest.raises(TypeError, match="sink must be a path"):
        cordwood.open(sink, "w")


def test_a_reader_rejects_a_text_file_object(path):
    path.write_text("text")
    for source in [io.StringIO("text"), path.open(encoding="utf-8")]:
        with source, pytest.raises(TypeError, match="binary"):
            cordwood.open(source)


def test_a_writer_rejects_a_text_file_object(path):
    with path.open("w", encoding="utf-8") as sink, pytest.raises(TypeError, match="binary"):
        cordwood.open(sink, "w")


def test_a_trailing_b_in_the_mode_has_no_effect(path):
    for mode, records in ("xb", [b"one"]), ("ab", [b"one", b"two"]), ("wb", [b"new"]):
        with cordwood.open(path, mode) as writer:
            writer.append(records[-1])
        with cordwood.open(path, "rb") as reader:
            assert list(reader) == records
    with pytest.raises(FileExistsError):
        cordwood.open(path, "xb")


@pytest.mark.parametrize("mode", ["r+b", "br", "rbb", "rt", "r+", "b", "", "R"])
def test_rejecting_an_unknown_mode_creates_no_file(path, mode):
    with pytest.raises(ValueError, match=f"mode must be 'r', 'w', 'x' or 'a', not '{re.escape(mode)}'"):
        cordwood.open(path, mode)
    assert not path.exists()


def test_a_writer_rejects_the_read_mode(path):
    with pytest.raises(ValueError, match=r"a writer has the modes 'w', 'x' and 'a': cordwood\.open\(path\)"):
        cordwood.Writer(path, "r")


def test_an_unknown_corruption_policy_is_rejected():
    with pytest.raises(ValueError, match="'raise', 'skip', 'stop' or 'salvage'"):
        cordwood.open(FILE, on_corruption="ignore")


def test_append_mode_requires_a_path():
    with pytest.raises(ValueError, match="path"):
        cordwood.open(io.BytesIO(FILE), "a")


def test_unknown_option_errors_name_the_option(path):
    with pytest.raises(TypeError, match="encoding"):
        cordwood.open(FILE, encoding="utf-8")
    with pytest.raises(TypeError, match="encoding"):
        cordwood.open(path, "w", encoding="utf-8")
    assert not path.exists()


@pytest.mark.parametrize("number", [-1, 1 << 64])
@pytest.mark.parametrize("option", ["start", "end", "record_len_max"])
def test_negative_and_65_bit_option_values_raise_an_overflow_error(option, number):
    with pytest.raises(OverflowError, match=f"(?m)^while processing '{option}'$"):
        cordwood.open(FILE, **{option: number})


@pytest.mark.parametrize("option", ["start", "end", "record_len_max", "log_number", "verify_checksums"])
def test_numeric_options_reject_other_types(option):
    for value in "1", 1.5, [1]:
        with pytest.raises(TypeError, match=f"'{type(value).__name__}' object (?s:.*)while processing '{option}'$"):
            cordwood.open(FILE, **{option: value})
    if option != "verify_checksums":

        class Number:
            def __index__(self):
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            cordwood.open(FILE, **{option: Number()})
    else:
        with pytest.raises(TypeError, match=r"'int' object (?s:.*)while processing 'verify_checksums'$"):
            cordwood.open(FILE, verify_checksums=0)


OUT_OF_RANGE = {
    "log_number": lambda value: cordwood.open(FILE, log_number=value),
    "sequence": lambda value: payload.WriteBatch.build(value, []),
    "crc": lambda value: cordwood.crc32c(b"", value),
    "masked": cordwood.unmask_crc,
    "threads": lambda value: cordwood.stat(FILE, threads=value),
    "checkpoint": lambda value: cordwood.Writer("none/x.log", "a", checkpoint=value),
    "offset": lambda value: cordwood.open(FILE).seek(value),
    "timeout": lambda value: cordwood.follow(__file__, timeout=value),
    "poll_interval": lambda value: cordwood.follow(__file__, poll_interval=value),
    "sync_interval": lambda value: cordwood.Writer("none/x.log", sync_interval=value),
}
TIMES = {"timeout", "poll_interval", "sync_interval"}


@pytest.mark.parametrize("option", OUT_OF_RANGE)
def test_rejects_out_of_range_option_values(option):
    use = OUT_OF_RANGE[option]
    if option in {"threads", *TIMES}:
        with pytest.raises(ValueError, match=rf"^{option} must be .*, not -1(\.0)?$"):
            use(-1)
    else:
        with pytest.raises(OverflowError, match=f"(?m)^while processing '{option}'$"):
            use(-1)
    # The first is a time beyond the range of any clock, which means forever; the second, not even a `float`.
    for value in 10**40, 10**5000:
        if option not in TIMES or value == 10**5000:
            with pytest.raises(OverflowError, match=f"(?m)^while processing '{option}'$"):
                use(value)


@pytest.mark.parametrize(
    ("option", "use"),
    [
        ("timeout", lambda value: cordwood.follow(__file__, timeout=value)),
        ("retry_time", lambda value: cordwood.follow(__file__, retry_time=value)),
        ("sync_interval", lambda value: cordwood.Writer("none/x.log", sync_interval=value)),
    ],
)
def test_time_options_reject_text_nan_and_negative_numbers(option, use):
    with pytest.raises(TypeError, match=f"(?m)^while processing '{option}'$"):
        use("1")
    for value, text in [(float("nan"), "NaN"), (-1.5, "-1.5"), (-1e300, "-1e300")]:
        with pytest.raises(ValueError, match=f"^{option} must be a number of seconds, 0 or more, not {text}$"):
            use(value)


@pytest.mark.parametrize("source", [FILE, bytearray(FILE), io.BytesIO(FILE)], ids=["bytes", "bytearray", "BytesIO"])
@pytest.mark.parametrize("number", [1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_start_offset_far_past_the_end_raises_an_error(source, number):
    """The file was cut, or the offset belongs to another file: its records would be lost silently."""
    refused = () if isinstance(source, bytes | bytearray) else (OverflowError, OSError)
    with pytest.raises((cordwood.LogTruncatedError, *refused)) as raised, cordwood.open(source, start=number) as reader:
        list(reader)
    if isinstance(raised.value, cordwood.LogTruncatedError):
        assert (raised.value.offset, raised.value.path) == (number, None)
        assert raised.value.file_len == (None if refused else len(FILE))
    else:
        assert number >= (1 << 63) - (1 << 15)
    with cordwood.open(FILE, end=number, record_len_max=number) as reader:
        assert list(reader) == RECORDS


@pytest.mark.parametrize("dialect", [None, "leveldb"])
@pytest.mark.parametrize("start", [len(FILE) + 1, reference.BLOCK_LEN, reference.BLOCK_LEN + 1])
def test_a_start_offset_past_the_end_of_a_file_raises_a_truncation_error(path, start, dialect):
    """A position was saved, and then the file was cut."""
    path.write_bytes(FILE)
    options = {"dialect": dialect, "on_corruption": "skip"}
    for source in (path, FILE, io.BytesIO(FILE)):
        for read in (
            list,
            lambda reader: list(reader.record_batches()),
            lambda reader: list(reader.record_batches(threads=2)),
        ):
            if isinstance(source, io.BytesIO):
                source.seek(0)
            with cordwood.open(source, start=start, **options) as reader:
                for _ in range(2):
                    with pytest.raises(cordwood.LogTruncatedError):
                        read(reader)
                assert reader.outcome.kind == "unfinished"
            if isinstance(source, io.BytesIO):
                source.seek(0)
            with cordwood.open(source, **options) as reader:
                reader.seek(start)
                with pytest.raises(cordwood.LogTruncatedError):
                    read(reader)
                reader.seek(0)
                assert list(reader) == RECORDS
    for threads in (1, 2):
        with pytest.raises(cordwood.LogTruncatedError, match=f"past the end of the file .{len(FILE)} bytes"):
            cordwood.verify(path, start=start, threads=threads, dialect=dialect)
    with pytest.raises(Exception, match="truncated"):
        pyarrow.table(cordwood.scan(path, start=start, **options))
    with cordwood.open(path, start=len(FILE), **options) as reader:
        assert list(reader) == []
        assert reader.outcome == cordwood.types.Outcome(kind="clean", offset=len(FILE))


def test_an_offset_that_overflows_the_file_position_raises_an_error():
    source = io.BytesIO(b"other" + FILE)
    source.seek(5)
    with pytest.raises(OverflowError):
        cordwood.open(source, dialect="leveldb", start=(1 << 64) - 5)
    source.seek(5)
    with cordwood.open(source, dialect="leveldb") as reader, pytest.raises(OverflowError):
        reader.seek((1 << 64) - 5)


@pytest.mark.parametrize("number", [-1, 1 << 64])
def test_methods_reject_negative_and_65_bit_numbers(path, number):
    with cordwood.open(FILE) as reader:
        for use in [
            lambda: reader.seek(number),
            lambda: reader.record_batches(target_len=number),
            lambda: cordwood.verify(FILE, start=number),
            lambda: cordwood.stat(FILE, record_len_max=number),
            lambda: cordwood.Writer(path, "w", checkpoint=number),
            lambda: cordwood.follow(__file__, start=number),
        ]:
            with pytest.raises(OverflowError, match=r"(?m)^while processing '\w+'$"):
                use()
        with pytest.raises(ValueError if number.bit_length() < 64 else OverflowError, match="threads"):
            reader.record_batches(threads=number)
        assert list(reader) == RECORDS
    for function in [cordwood.mask_crc, cordwood.unmask_crc, lambda crc: cordwood.crc32c(b"", crc)]:
        with pytest.raises((ValueError, OverflowError)):
            function(number)


NAMES = {
    "sync": ("'never', 'close' or 'append'", lambda value: cordwood.Writer("log", "w", sync=value)),
    "flush": ("'append' or 'close'", lambda value: cordwood.Writer("log", "w", flush=value)),
    "on_torn_tail": ("'refuse', 'truncate' or 'pad'", lambda value: cordwood.Writer("log", "a", on_torn_tail=value)),
    "on_corruption": ("'raise', 'skip', 'stop' or 'salvage'", lambda value: cordwood.open(FILE, on_corruption=value)),
}


@pytest.mark.parametrize("option", NAMES)
def test_rejects_unknown_option_values(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values, use = NAMES[option]
    with pytest.raises(TypeError, match=f"(?m)^while processing '{option}'$"):
        use(True)
    with pytest.raises(ValueError, match=re.escape(f"{option} must be {values}, not 'yes'")):
        use("yes")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("record", ["text", 1, None, 1.5, [1], memoryview(b"abcd")[::2]])
def test_append_and_extend_reject_objects_that_are_not_records(record):
    sink = io.BytesIO()
    with cordwood.open(sink, "w") as writer:
        writer.append(b"one")
        with pytest.raises(TypeError):
            writer.append(record)
        with pytest.raises(TypeError):
            writer.extend([b"two", record, b"lost"])
        writer.append(b"three")
    assert sink.getvalue() == FILE


def test_extend_rejects_objects_that_are_not_iterable():
    with cordwood.open(io.BytesIO(), "w") as writer, pytest.raises(TypeError):
        writer.extend(1)


@pytest.mark.parametrize("data", ["text", None, 1])
def test_crc32c_rejects_objects_that_are_not_bytes(data):
    with pytest.raises(TypeError):
        cordwood.crc32c(data)


def test_internal_classes_cannot_be_constructed():
    for class_ in [cordwood.Record, cordwood.SkippedRegion, cordwood.types.Outcome, cordwood.RecordBatch]:
        with pytest.raises(TypeError):
            class_()


def test_a_closed_reader_rejects_every_call():
    reader = cordwood.open(FILE)
    records, packs = reader.records(), reader.record_batches()
    reader.close()
    for use in [
        lambda: next(packs),
        reader.record_batches,
        lambda: next(reader),
        lambda: next(records),
        reader.records,
        reader.tell,
        lambda: reader.seek(0),
        reader.__enter__,
    ]:
        with pytest.raises(ValueError, match="closed"):
            use()


def test_the_outcome_is_still_available_after_closing_the_reader():
    file = bytes([FILE[0] ^ 1]) + FILE[1:]
    with cordwood.open(file, on_corruption="skip") as reader:
        assert list(reader) == []
    assert reader.closed
    assert [(region.offset, region.end_offset) for region in reader.skipped] == [(0, len(FILE))]
    assert reader.skipped_len == len(FILE)
    assert (reader.outcome.kind, reader.outcome.offset) == ("clean", len(FILE))


def test_a_closed_writer_rejects_every_call(path):
    writer = cordwood.open(path, "w")
    writer.close()
    for use in [
        lambda: writer.append(b""),
        lambda: writer.extend([b""]),
        writer.flush,
        writer.sync,
        writer.tell,
        writer.__enter__,
    ]:
        with pytest.raises(ValueError, match="closed"):
            use()


# Damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_path", [True, False])
def test_damage_raises_one_error_and_reading_resumes_after_the_damage(path, by_path):
    file = DAMAGED[:10].ljust(reference.BLOCK_LEN, b"x") + reference.encode([b"next block"])
    path.write_bytes(file)
    with cordwood.open(path if by_path else file) as reader:
        with pytest.raises(cordwood.CorruptionError) as caught:
            next(reader)
        error = caught.value
        assert isinstance(error, cordwood.CordwoodError)
        assert (error.path, error.offset, error.length) == (str(path) if by_path else None, 0, 32_768)
        assert error.reason is cordwood.types.Reason.CHECKSUM_MISMATCH
        assert error.reason == "checksum_mismatch"
        assert error.stored_crc == reference.crc32c(b"\x01one")
        assert error.computed_crc == reference.crc32c(b"\x01ond")
        for part in ["checksum mismatch", "32768 bytes at offset 0", *([str(path)] if by_path else [])]:
            assert part in str(error)
        assert str(error).count(str(path)) == by_path
        assert list(reader) == [b"next block"]


def test_a_record_longer_than_the_maximum_length_raises_an_error():
    with cordwood.open(FILE, record_len_max=4) as reader:
        assert [next(reader), next(reader)] == RECORDS[:2]
        with pytest.raises(cordwood.RecordTooLargeError, match="record_len_max") as caught:
            next(reader)
        assert (caught.value.offset, caught.value.length, caught.value.reason) == (20, 12, "record_too_large")
        assert next(reader, None) is None
    assert list(cordwood.open(FILE, record_len_max=5)) == RECORDS


@pytest.mark.parametrize("length", [1, 5, 32_761, 32_762, 100_000])
def test_a_record_of_exactly_the_maximum_length_is_returned(length):
    file = reference.encode([b"", bytes(length), b""])
    with cordwood.open(file, record_len_max=length) as reader:
        assert [len(record) for record in reader] == [0, length, 0]
    with cordwood.open(file, record_len_max=length - 1, on_corruption="skip") as reader:
        assert list(reader) == [b"", b""]


def test_empty_records_are_accepted_even_with_a_length_limit_of_zero():
    file = reference.encode([b"", b"x", b""])
    with cordwood.open(file, record_len_max=0, on_corruption="skip") as reader:
        assert list(reader) == [b"", b""]


def all_errors(path):
    path.write_bytes(DAMAGED)
    for make in [
        lambda: list(cordwood.open(path)),
        lambda: list(cordwood.open(DAMAGED)),
        lambda: list(cordwood.open(FILE, record_len_max=1)),
    ]:
        with pytest.raises(cordwood.CordwoodError) as caught:
            make()
        yield caught.value
    path.write_bytes(FILE[:-1])
    with pytest.raises(cordwood.TornTailError) as caught:
        cordwood.open(path, "a")
    yield caught.value


@pytest.mark.parametrize(
    "again",
    [
        lambda error: pickle.loads(pickle.dumps(error)),  # noqa: S301 - our own bytes
        lambda error: pickle.loads(pickle.dumps(error, 0)),  # noqa: S301
        copy.copy,
        copy.deepcopy,
    ],
    ids=["pickle", "pickle, first protocol", "copy", "deepcopy"],
)
def test_errors_can_be_passed_between_processes(path, again):
    errors = list(all_errors(path))
    assert {type(error).__name__ for error in errors} == {"CorruptionError", "RecordTooLargeError", "TornTailError"}
    for error in errors:
        error.add_note("a note")
        other = again(error)
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert vars(other) == vars(error)
        assert type(other.reason) is cordwood.types.Reason


# Sources that fail -----------------------------------------------------------------------------


class Answers:
    """A source that returns or raises one answer after another, and then returns no bytes."""

    def __init__(self, *answers):
        self._answers = list(answers)

    def read(self, size):
        answer = self._answers.pop(0) if self._answers else b""
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.mark.parametrize(
    "error",
    [
        ValueError("mine"),
        OSError(errno.EIO, "mine"),
        BlockingIOError(errno.EAGAIN, "mine"),
        InterruptedError("mine"),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
def test_a_reader_can_continue_after_read_raises(error):
    with cordwood.open(Answers(FILE[:15], error, FILE[15:])) as reader:
        assert next(reader) == b"one"
        with pytest.raises(type(error)) as caught:
            next(reader)
        assert caught.value is error
        assert list(reader) == RECORDS[1:]
        assert reader.outcome.kind == "clean"


@pytest.mark.parametrize("take", [cordwood.Reader.records, cordwood.Reader.record_batches])
def test_no_records_are_lost_when_read_raises(take):
    with cordwood.open(Answers(FILE[:15], OSError("mine"), FILE[15:])) as reader:
        found = [next(take(reader))]
        with pytest.raises(OSError, match="mine"):
            next(take(reader))
        found += take(reader)
    flat = [record for item in found for record in ([item.data] if isinstance(item, cordwood.Record) else item)]
    assert flat == RECORDS


@pytest.mark.parametrize("error", [StopIteration("mine"), StopAsyncIteration()], ids=repr)
@pytest.mark.parametrize("take", [iter, cordwood.Reader.records, cordwood.Reader.record_batches])
def test_a_source_that_raises_stop_iteration_does_not_end_the_log(take, error):
    """As in a generator (PEP 479)."""
    with cordwood.open(Answers(FILE[:15], error, FILE[15:])) as reader:
        with pytest.raises(RuntimeError, match=f"raised {type(error).__name__}") as caught:
            list(take(reader))
        assert caught.value.__cause__ is error
        assert reader.outcome.kind == "unfinished"
        list(take(reader))
        assert reader.outcome.kind == "clean"


@pytest.mark.parametrize("method", ["seekable", "tell"])
@pytest.mark.parametrize("function", [cordwood.open, cordwood.verify, cordwood.scan, cordwood.fragments])
def test_stop_iteration_raised_while_opening_becomes_a_runtime_error(function, method):
    def stop():
        raise StopIteration

    source = type("Source", (io.BytesIO,), {})(FILE)
    setattr(source, method, stop)
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        # As an iterator, it would end without an error.
        list(map(function, [source]))


@pytest.mark.parametrize("method", ["read", "seek"])
def test_stop_iteration_raised_by_the_read_or_seek_method_becomes_a_runtime_error(method):
    class Source(io.BytesIO):
        pass

    def stop(*_):
        raise StopIteration

    source = Source(FILE)
    fragments, reader = cordwood.fragments(source), cordwood.open(source)
    setattr(source, method, stop)
    uses = {"read": lambda: list(fragments), "seek": lambda: list(map(reader.seek, [0]))}
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        uses[method]()


def test_stop_iteration_raised_by_a_log_handler_becomes_a_runtime_error(monkeypatch):
    def stop(*_):
        raise StopIteration

    damaged = bytearray(reference.encode([b"one", b"two"]))
    damaged[8] ^= 1
    logger = logging.getLogger("cordwood")
    monkeypatch.setattr(logger, "handle", stop)
    with cordwood.open(bytes(damaged), on_corruption="skip") as reader, pytest.raises(RuntimeError):
        list(reader)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
def test_no_records_are_lost_when_a_signal_handler_raises(tmp_path):
    class AlarmError(Exception):
        pass

    is_reading = False

    def handler(number, frame):
        # On a slow machine the alarm may go off after everything has been read.
        if is_reading:
            raise AlarmError

    records = [b"%08d" % index for index in range(2_000_000)]
    path = tmp_path / "example.log"
    with cordwood.open(path, "x") as writer:
        writer.extend(records)
    before = signal.signal(signal.SIGPROF, handler)
    found = []
    alarms = 0
    with cordwood.open(path) as reader:
        while reader.outcome.kind == "unfinished":
            try:
                is_reading = True
                signal.setitimer(signal.ITIMER_PROF, 0.01)
                # One batch of all records: the alarm goes off while it grows.
                for batch in reader.record_batches(target_len=1 << 40):
                    found += batch
                is_reading = False
            except AlarmError:
                alarms += 1
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
    assert alarms
    assert found == records


@pytest.mark.parametrize("error", [MemoryError("mine"), OSError(errno.EIO, "mine"), KeyboardInterrupt()], ids=repr)
def test_append_does_not_change_exceptions_from_the_sink(error):
    class Failing:
        def write(self, data):
            raise error

    writer = cordwood.Writer(Failing())
    with pytest.raises(type(error)) as caught:
        writer.append(bytes(1 << 20))
    assert caught.value is error
    with pytest.raises(OSError, match="an earlier write failed"):
        writer.close()


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_write_that_would_block_raises_an_error(kind):
    """It returns None if it has written no byte."""
    if kind == "pipe":
        start, end = os.pipe()
        os.set_blocking(end, False)
        source, sink = open(start, "rb"), open(end, "wb", buffering=0)  # noqa: SIM115, PTH123
    else:
        other, own = socket.socketpair()
        own.setblocking(False)
        source, sink = other.makefile("rb"), own.makefile("wb", buffering=0)
        other.close(), own.close()
    with source, sink:
        writer = cordwood.Writer(sink)
        with pytest.raises(BlockingIOError, match="blocking mode"):
            writer.extend([bytes(10_000)] * 1_000)
        with pytest.raises(OSError, match="an earlier write failed"):
            writer.close()


@pytest.mark.parametrize("answer", ["text", 1, [1, 2]])
def test_read_must_return_bytes(answer):
    with cordwood.open(Answers(answer)) as reader, pytest.raises(TypeError, match=r"read\(.*\) must return bytes"):
        next(reader)


def test_read_returning_none_raises_an_error():
    with cordwood.open(Answers(None, FILE)) as reader:
        with pytest.raises(BlockingIOError, match="None"):
            next(reader)
        assert list(reader) == RECORDS


def test_read_returning_too_many_bytes_raises_an_error():
    class Generous:
        def read(self, size):
            return bytes(size + 1)

    with cordwood.open(Generous()) as reader, pytest.raises(ValueError, match="returned"):
        next(reader)


@pytest.mark.parametrize(
    "use", [next, lambda reader: next(reader.record_batches()), cordwood.Reader.tell, cordwood.Reader.close]
)
def test_a_source_cannot_call_back_into_its_reader(use):
    class Knot:
        def read(self, size):
            use(self.reader)

    source = Knot()
    with cordwood.open(source) as source.reader:
        for take in [next, lambda reader: next(reader.record_batches())]:
            with pytest.raises(RuntimeError, match="already in use by this thread"):
                take(source.reader)


class Stream(io.BytesIO):
    def seekable(self):
        return False


@pytest.mark.parametrize("source", [Answers(FILE), Stream(FILE)], ids=["only read", "seekable() is False"])
def test_seeking_in_an_unseekable_source_raises_an_error(source):
    with cordwood.open(source) as reader:
        assert next(reader) == b"one"
        with pytest.raises(io.UnsupportedOperation):
            reader.seek(0)
        assert list(reader) == RECORDS[1:]


# Sinks that fail -------------------------------------------------------------------------------


class FailsOnce:
    """A sink whose first write raises and accepts no byte."""

    def __init__(self, error):
        self.file = b""
        self._error = error

    def write(self, data):
        if self._error:
            error, self._error = self._error, None
            raise error
        self.file += data


@pytest.mark.parametrize("error", [ValueError("mine"), OSError(errno.ENOSPC, "mine"), KeyboardInterrupt()], ids=repr)
def test_every_writer_call_fails_after_the_sink_raises(error):
    sink = FailsOnce(error)
    writer = cordwood.open(sink, "w")
    writer.append(b"one")
    with pytest.raises(type(error)) as caught:
        writer.flush()
    assert caught.value is error
    for use in [lambda: writer.append(b"two"), lambda: writer.extend([b"two"]), writer.flush]:
        with pytest.raises(OSError, match="an earlier write failed"):
            use()
    with pytest.raises(OSError, match="an earlier write failed"):
        writer.close()
    writer.close()
    assert sink.file == b""


@pytest.mark.parametrize("method", ["write", "flush", "fileno"])
def test_stop_iteration_raised_by_a_sink_becomes_a_runtime_error(method):
    """It would end an iteration that the writer is part of, as if everything had been written."""

    class Sink(io.BytesIO):
        pass

    def stop(*_):
        raise StopIteration("mine")

    sink = Sink()
    setattr(sink, method, stop)
    writer = cordwood.Writer(sink)
    writer.append(b"one")
    use = cordwood.Writer.sync if method == "fileno" else cordwood.Writer.flush
    with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
        list(map(use, [writer]))
    assert isinstance(caught.value.__cause__, StopIteration)
    with contextlib.suppress(OSError):
        writer.close()


@pytest.mark.parametrize("answer", [-1, 0, 11, 1 << 70, "10", 1.5])
def test_an_invalid_return_value_from_write_raises_an_error(answer):
    class Liar:
        def write(self, data):
            return answer

    writer = cordwood.open(Liar(), "w")
    writer.append(b"one")
    with pytest.raises((OSError, ValueError, TypeError, OverflowError)):
        writer.flush()
    with pytest.raises(OSError, match="an earlier write failed"):
        writer.close()


def test_exceptions_from_flush_propagate_to_the_caller():
    class Sink(io.BytesIO):
        def flush(self):
            raise OSError("mine")

    writer = cordwood.open(Sink(), "w")
    with pytest.raises(OSError, match="mine"):
        writer.flush()
    with pytest.raises(OSError, match="an earlier write failed"):
        writer.close()


def test_only_real_files_can_be_synced():
    for sink in [io.BytesIO(), FailsOnce(None)]:
        with cordwood.open(sink, "w") as writer:
            writer.append(b"one")
            with pytest.raises(io.UnsupportedOperation):
                writer.sync()
            # No write has failed.
            writer.append(b"two")


@pytest.mark.parametrize(
    "use",
    [
        cordwood.Writer.flush,
        lambda writer: writer.append(bytes(1 << 20)),
        lambda writer: writer.extend([bytes(1 << 20)]),
    ],
    ids=["flush", "append", "extend"],
)
def test_a_sink_cannot_call_back_into_its_writer(use):
    class Knot:
        def write(self, data):
            self.writer.append(data)

    sink = Knot()
    sink.writer = cordwood.open(sink, "w")
    sink.writer.append(b"one")
    with pytest.raises(RuntimeError, match="already in use by this thread"):
        use(sink.writer)
    with pytest.raises(OSError, match="an earlier write failed"):
        sink.writer.close()


def test_extend_keeps_the_records_yielded_before_an_exception():
    def records():
        yield b"one"
        yield b"two"
        raise ValueError("mine")

    sink = io.BytesIO()
    with cordwood.open(sink, "w") as writer:
        with pytest.raises(ValueError, match="mine"):
            writer.extend(records())
        writer.append(b"three")
    assert sink.getvalue() == FILE


# Objects that are not records ------------------------------------------------------------------


def build(**attributes):
    return payload.WriteBatch.build(1, [payload.Operation("put", **attributes)])


@pytest.mark.parametrize(("name", "bits"), [("column_family", 32), ("write_unix_time", 64)])
def test_a_batch_operation_rejects_numbers_with_too_many_bits(name, bits):
    for number in -1, 1 << bits:
        operation = payload.Operation("put", key=b"k", value=b"v", **{name: number})
        with pytest.raises(OverflowError, match=f"(?m)^while processing '{name}'$"):
            payload.WriteBatch.build(1, [operation])


BYTES_LIKE = {
    "append": ("record", lambda writer, value: writer.append(value)),
    "append and sync": ("record", lambda writer, value: writer.append(value, sync=True)),
    "extend": ("a record", lambda writer, value: writer.extend([b"one", value])),
    "extend from an iterator": ("a record", lambda writer, value: writer.extend(iter([b"one", value]))),
    "Record": ("data", lambda _, value: cordwood.Record(offset=0, end_offset=1, data=value)),
    "WriteBatch": ("record", lambda _, value: payload.WriteBatch(value)),
    "VersionEdit": ("record", lambda _, value: payload.VersionEdit(value)),
    "entity": ("record", lambda _, value: entity.decode(value)),
    "crc32c": ("data", lambda _, value: cordwood.crc32c(value)),
    "key": ("key", lambda _, value: build(key=value, value=b"v")),
    "value": ("value", lambda _, value: build(key=b"k", value=value)),
}


@pytest.mark.parametrize("name", BYTES_LIKE)
def test_an_error_explains_why_a_buffer_cannot_be_read(name, tmp_path):
    argument, use = BYTES_LIKE[name]
    released = memoryview(bytearray(8))
    released.release()
    with cordwood.open(tmp_path / "some.log", "w") as writer:
        with pytest.raises(TypeError, match=f"{argument} must be bytes-like, not memoryview") as caught:
            use(writer, released)
        assert isinstance(caught.value.__cause__, ValueError)
        assert "released memoryview" in str(caught.value.__cause__)
        with pytest.raises(TypeError) as caught:
            use(writer, 1)
        assert caught.value.__cause__ is None


def test_an_error_explains_why_a_source_cannot_be_read():
    released = memoryview(bytearray(8))
    released.release()
    with pytest.raises(TypeError, match="not memoryview") as caught:
        cordwood.open(released)
    assert "released memoryview" in str(caught.value.__cause__)


@pytest.mark.parametrize("name", BYTES_LIKE)
def test_invalid_record_errors_suggest_a_fix(name, tmp_path):
    argument, use = BYTES_LIKE[name]
    with cordwood.open(tmp_path / "some.log", "w") as writer:
        for value, text in [
            ("text", f"{argument} must be bytes-like, not str: encode it first, for example text.encode()"),
            (3, f"{argument} must be bytes-like, not int: pass bytes, bytearray or another buffer"),
            ([b"x"], f"{argument} must be bytes-like, not list: pass bytes, bytearray or another buffer"),
        ]:
            with pytest.raises(TypeError) as raised:
                use(writer, value)
            assert str(raised.value) == text
    # The records before it are in the log.
    assert list(cordwood.open(tmp_path / "some.log")) == ([b"one"] * 3 if "extend" in name else [])


@pytest.mark.parametrize(
    "value",
    ["text", "", b"bytes", b"", bytearray(b"bytes"), memoryview(b"bytes")],
    ids=lambda value: f"{type(value).__name__} {len(value)}",
)
def test_extend_rejects_a_single_record(value):
    with cordwood.Writer(io.BytesIO()) as writer:
        with pytest.raises(TypeError) as raised:
            writer.extend(value)
        expected = f"not {type(value).__name__}: append(record) takes one record"
        assert str(raised.value) == f"records must be an iterable of records, {expected}"
        assert writer.tell() == 0


# Closed ----------------------------------------------------------------------------------------


def uses_of_reader(source):
    reader = cordwood.open(source)
    steps = [partial(next, step) for step in (iter(reader), reader.records(), reader.record_batches())]
    reader.close()
    return reader, [
        *steps,
        *(reader.records, reader.record_batches, reader.tell, reader.__enter__),
        *(lambda: next(reader), lambda: iter(reader), lambda: reader.seek(0), lambda: reader.dialect),
    ]


def uses_of_writer(sink):
    writer = cordwood.open(sink, "w")
    writer.close()
    return writer, [
        *(writer.tell, writer.flush, writer.sync, writer.__enter__),
        *(lambda: writer.append(b"x"), lambda: writer.append(b"x", sync=True), lambda: writer.append(bytearray(b"x"))),
        lambda: writer.extend([b"x"]),
    ]


def uses_of_follower(path):
    follower = cordwood.follow(path)
    steps = [partial(next, step) for step in (iter(follower), follower.records())]
    follower.close()
    return follower, [
        *steps,
        *(follower.records, follower.poll, follower.tell, follower.__enter__),
        *(lambda: next(follower), lambda: iter(follower), lambda: aiter(follower)),
        *(lambda: follower.waiting, lambda: follower.delay),
    ]


@pytest.mark.parametrize(
    ("uses_of", "opened", "what"),
    [
        (uses_of_reader, "path", "reader"),
        (uses_of_reader, FILE, "reader"),
        (uses_of_writer, "path", "writer"),
        (uses_of_writer, io.BytesIO(), "writer"),
        (uses_of_follower, "path", "follower"),
    ],
    ids=["reader of a path", "reader of bytes", "writer to a path", "writer to an object", "follower"],
)
def test_using_a_closed_object_always_raises_a_clear_error(tmp_path, uses_of, opened, what):
    path = tmp_path / "some.log"
    path.write_bytes(FILE)
    closed, uses = uses_of(path if opened == "path" else opened)
    assert len(uses) >= 8
    for use in uses:
        with pytest.raises(cordwood.ClosedError) as raised:
            use()
        assert isinstance(raised.value, ValueError)
        assert (raised.value.path, raised.value.offset) == (closed.path, 0)
        assert str(raised.value) == (f"{closed.path}: " if closed.path else "") + f"the {what} is closed"
