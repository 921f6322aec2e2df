"""Each kind of error, as Python and the command show it, for files with hostile names. `rust/cordwood/tests/errors.rs`
does the same in Rust.
"""

import errno
import io
import os
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
import reference

import cordwood
from cordwood.cli import main

NAMES = ["the", "a name", "x (os error 9) y", "two\nlines", os.fsdecode(b"not utf-8 \xff")]
ONE = reference.encode([b"one"])
DAMAGED = bytes([*ONE[:7], ONE[7] ^ 1, *ONE[8:]])
SENTENCE_LEN_MAX = 120


@pytest.fixture(params=NAMES, ids=ascii)
def name(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return request.param


def numbered(log_number):
    sink = io.BytesIO()
    with cordwood.open(sink, "w", dialect="recyclable", log_number=log_number) as writer:
        writer.append(b"one")
    return sink.getvalue()


def read(name, **options):
    return lambda: list(cordwood.open(name, **options))


def append(name, **options):
    return lambda: cordwood.open(name, "a", **options)


def pack(name):
    return lambda: cordwood.pack(name, "packed.log")


def use_closed(name):
    def use():
        writer = cordwood.open(name, "a")
        writer.close()
        writer.append(b"")

    return use


def append_too_long(name):
    def use():
        with cordwood.open(name, "a", record_len_max=3) as writer:
            writer.append(b"four")

    return use


# The bytes of the file, the failing call, the class of the exception, its message without the path, and the hint.
KINDS = {
    "corruption": (
        DAMAGED,
        read,
        cordwood.CorruptionError,
        "10 bytes at offset 0: checksum mismatch: the header states ",
        "on_corruption",
    ),
    "seek": (
        ONE * 2,
        lambda name: lambda: (reader := cordwood.open(name)).seek(5) or next(reader),
        cordwood.CorruptionError,
        "15 bytes at offset 5: ",
        "check_offset",
    ),
    "too long to read": (
        ONE,
        lambda name: read(name, record_len_max=2),
        cordwood.RecordTooLargeError,
        "10 bytes at offset 0: a record longer than the limit",
        "raise_record_len_max",
    ),
    "too long to write": (
        ONE,
        append_too_long,
        cordwood.RecordTooLargeError,
        "cannot write a record of 4 bytes: the limit is 3",
        "raise_record_len_max",
    ),
    "truncated": (
        ONE,
        lambda name: read(name, start=11),
        cordwood.LogTruncatedError,
        "offset 11 is past the end of the file (10 bytes): it was truncated, or the offset belongs to another file",
        None,
    ),
    "foreign": (
        b"PK\3\4" + bytes(60),
        read,
        cordwood.DialectError,
        "not a log, but a ZIP archive: unpack it first, with `unzip`",
        "name_dialect",
    ),
    "other log": (
        numbered(6),
        lambda name: lambda: cordwood.salvage(name, "new.log", log_number=9),
        cordwood.OtherLogError,
        "the whole file belongs to log 6; expected log 9 (from the file's name or an option)",
        "name_log_number",
    ),
    "torn tail": (
        ONE + b"torn",
        append,
        cordwood.TornTailError,
        "4 bytes at offset 10: an incomplete record at the end of the file; records appended after it would be lost",
        "on_torn_tail",
    ),
    "damage before appending": (
        DAMAGED.ljust(reference.BLOCK_LEN, b"\0") + ONE,
        append,
        cordwood.CorruptionError,
        "32768 bytes at offset 0: checksum mismatch: the header states ",
        "pad",
    ),
    "damage everywhere": (
        DAMAGED + ONE,
        append,
        cordwood.CorruptionError,
        "20 bytes at offset 0: checksum mismatch: the header states ",
        "create_log",
    ),
    "wrong dialect": (
        ONE,
        lambda name: append(name, dialect="wandb"),
        cordwood.DialectError,
        "cannot append in dialect wandb: readers of this leveldb log would not find the record",
        "name_detected_dialect",
    ),
    "never appended": (
        numbered(6),
        append,
        cordwood.DialectError,
        "pebble logs with a log number are never appended to: readers take the bytes after their end for an older log",
        "create_log",
    ),
    "damage before packing": (
        DAMAGED,
        pack,
        cordwood.CorruptionError,
        "10 bytes at offset 0: checksum mismatch: the header states ",
        "salvage",
    ),
    "never packed": (
        numbered(6),
        pack,
        cordwood.DialectError,
        "cannot pack pebble logs with a log number: they could not be restored from the packed copy",
        None,
    ),
    "closed": (ONE, use_closed, cordwood.ClosedError, "the writer is closed", None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_errors_have_separate_attributes_for_the_path_the_message_and_the_hint(name, kind):
    content, use, class_, message, hint = KINDS[kind]
    Path(name).write_bytes(content)
    with pytest.raises(class_) as caught:
        use(name)()
    error = caught.value
    assert error.path == name
    assert error.message.startswith(message)
    assert len(error.message) <= SENTENCE_LEN_MAX
    assert error.hint == hint
    # On one line, and printable in any encoding of a terminal.
    shown = name if name.isprintable() else repr(name)
    assert str(error) == f"{shown}: {error.message}"
    assert str(error).encode()
    assert "\n" not in str(error)
    lines = "".join(traceback.format_exception_only(error)).splitlines()
    assert len(lines) == 1 + (hint is not None)
    assert lines[0].endswith(str(error))
    assert lines[1:] == getattr(error, "__notes__", [])
    assert all(len(line) <= SENTENCE_LEN_MAX for line in lines[1:])
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(copy), str(copy), vars(copy), copy.args) == (type(error), str(error), vars(error), error.args)
    # As Apache Beam makes one that also names the step.
    assert str(type(error)(f"{error.args[0]} [step]", *error.args[1:])) == f"{error} [step]"


def test_an_operating_system_error_has_an_errno_and_a_file_name(name):
    with pytest.raises(FileNotFoundError) as caught:
        cordwood.open(name)
    assert str(caught.value) == f"[Errno {errno.ENOENT}] No such file or directory: {name!r}"
    assert caught.value.filename == name
    with cordwood.open(name, "w"), pytest.raises(BlockingIOError) as caught:
        cordwood.open(name, "a")
    expected = "another writer has this log open; a log can have only one writer at a time"
    assert (caught.value.errno, caught.value.strerror, caught.value.filename) == (errno.EAGAIN, expected, name)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_write_error_reports_how_much_of_the_log_is_on_disk(name):
    Path(name).symlink_to("/dev/full")
    writer = cordwood.open(name, "w")
    for earlier in ("", "; an earlier write failed"):
        with pytest.raises(OSError, match="No space") as caught:
            writer.append(b"x")
        error = caught.value
        assert (error.errno, error.filename, error.hint) == (errno.ENOSPC, name, "reopen")
        assert error.strerror.startswith(f"No space left on device{earlier}; ")
        assert str(error).endswith(f"may be lost: {name!r}")
        assert error.__notes__ == ["to continue, open the log again in this process"]
    with pytest.raises(OSError, match="No space left"):
        writer.close()


def test_unsupported_dialect_arguments_raise_an_error_with_a_hint(name):
    with pytest.raises(ValueError, match="leveldb logs have no log number") as caught:
        cordwood.open(name, "w", dialect="leveldb", log_number=1)
    assert caught.value.hint == "omit_log_number"
    assert len(caught.value.__notes__) == 1
    assert not Path(name).exists()


def test_the_hint_to_check_the_offset_appears_only_after_a_seek(name):
    records = [b"x" * 100] * 10_000
    data = bytearray(reference.encode(records))
    data[107 + 7] ^= 1
    Path(name).write_bytes(data)
    for is_sought, hint in ((False, "on_corruption"), (True, "check_offset")):
        reader = cordwood.open(name)
        if is_sought:
            reader.seek(107)
        else:
            next(reader)
        with pytest.raises(cordwood.CorruptionError) as caught:
            list(reader.record_batches(threads=2))
        assert (caught.value.offset, caught.value.hint) == (107, hint)


def test_appending_in_a_forked_child_raises_an_os_error(name):
    code = """if True:
        import os, sys, cordwood
        writer = cordwood.open(sys.argv[1], "w")
        if not os.fork():
            try:
                writer.append(b"x")
            except OSError as error:
                assert "before the process forked" in str(error), error
                assert error.hint == "reopen"
                os._exit(7)
            os._exit(1)
        os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
    """
    assert subprocess.run([sys.executable, "-c", code, name], check=False).returncode == 7


def test_a_follower_raises_an_error_for_a_truncated_log(name):
    Path(name).write_bytes(ONE * 2)
    with cordwood.follow(name, timeout=0) as follower:
        assert next(follower) == b"one"
        assert next(follower) == b"one"
        os.truncate(name, 5)
        with pytest.raises(cordwood.LogTruncatedError) as caught:
            next(follower)
    assert (caught.value.path, caught.value.offset, caught.value.file_len) == (name, 20, 5)
    assert caught.value.message == (
        "offset 20 is past the end of the log (5 bytes): it was truncated, or the offset belongs to another log"
    )


# The command -------------------------------------------------------------------------------------


COMMANDS = {
    "foreign": (["cat"], 1, "to read it as a log anyway, name its dialect with --dialect"),
    "torn tail": (
        ["write", "--append"],
        1,
        "--on-torn-tail truncate cuts it off; pad keeps every byte and continues in the next block",
    ),
    "damage before appending": (
        ["write", "--append"],
        1,
        "--on-torn-tail pad keeps every byte and continues in the next block; cordwood salvage makes a new log",
    ),
    "never appended": (["write", "--append"], 1, "create a new log"),
    "wrong dialect": (["write", "--append", "--dialect", "wandb"], 1, "name that dialect with --dialect, or none"),
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_hints_from_a_command_mention_its_own_options(name, kind, capfd, monkeypatch):
    content, _, _, message, _ = KINDS[kind]
    arguments, status, hint = COMMANDS[kind]
    Path(name).write_bytes(content)
    with Path(os.devnull).open(encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert main([*arguments, name]) == status
    shown, advice = capfd.readouterr().err.splitlines()
    escaped = name.replace("\n", r"\n").replace("\udcff", r"\udcff")
    assert shown.startswith(f"cordwood: {escaped}: {message}")
    assert len(shown) <= len("cordwood: : ") + len(escaped) + SENTENCE_LEN_MAX
    assert advice == f"  {hint}"
    assert len(advice) <= SENTENCE_LEN_MAX


def test_each_hint_fits_on_one_line():
    for hint in cordwood.types.Hint:
        error = cordwood.CordwoodError("message", hint=hint)
        [note] = error.__notes__
        assert len(note) <= SENTENCE_LEN_MAX
        assert error.hint is hint
