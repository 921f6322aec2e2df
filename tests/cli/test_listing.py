"""Which files a command reads: pipes, directories that change meanwhile, and logs with very many skipped regions."""

import glob
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import reference
from crc32c import crc32c

from cordwood.cli import _new_logs, main
from cordwood.cli._sources import inputs_of

COMMAND = [sys.executable, "-m", "cordwood"]


def recyclable(number, kind, data):
    covered = bytes([kind]) + struct.pack("<I", number) + data
    return struct.pack("<IH", reference.mask(crc32c(covered)), len(data)) + covered


def read_from_pipe(pipe, log, *arguments):
    """The status, stdout and stderr of a command that is given a named pipe with this log."""
    os.mkfifo(pipe)
    # A daemon: if the command does not open the pipe, the thread never ends.
    threading.Thread(target=pipe.write_bytes, args=[log], daemon=True).start()
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("verb", "expected", "code"),
    [
        (["cat"], "", 3),
        (["convert", "--as", "raw"], "", 3),
        (["convert", "--as", "raw", "--to", "csv"], "offset,end_offset,data\n", 3),
        (["verify"], "000009.log: 0 records; the whole file belongs to log 6", 3),
        (["stat"], "  records    0, 0 bytes\n", 0),
        (["map"], "no damage", 0),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_a_pipe_named_after_another_log_is_read_only_once(verb, expected, code, tmp_path):
    """It has the name of log 9 and the records of log 6. Opening it a second time would hang forever."""
    pipe = tmp_path / "000009.log"
    status, out, _ = read_from_pipe(pipe, recyclable(6, 5, b"one"), *verb, pipe)
    assert status == code
    assert expected in out if verb[0] in {"verify", "stat", "map"} else out == expected


@pytest.mark.parametrize("name", ["pipe", "000003.log"])
def test_a_command_reads_a_pipe_to_its_end(name, tmp_path):
    """It is longer than the part that detecting the dialect reads, and those bytes cannot be read again."""
    records = [b'{"a":%d}' % index for index in range(20_000)]
    log = reference.encode(records)
    other = tmp_path / "other.log"
    other.write_bytes(reference.encode([b'{"b":1}']))
    directory = tmp_path / "pipes"
    directory.mkdir()

    def read(*arguments):
        pipe = directory / name
        done = read_from_pipe(pipe, log, *(pipe if word == "PIPE" else word for word in arguments))
        pipe.unlink()
        return done

    length = sum(map(len, records))
    assert read("verify", "PIPE")[1].endswith(f": ok, 20,000 records, {length:,} bytes\n")
    status, out, _ = read("stat", "PIPE")
    assert (status, "records    20,000, " in out) == (0, True)
    status, out, err = read("salvage", "PIPE", tmp_path / "new.log")
    assert (status, err, (tmp_path / "new.log").read_bytes() == log) == (0, "", True)
    for payload in "auto", "raw", "json":
        status, out, _ = read("convert", "--as", payload, "PIPE")
        assert (status, out.count("\n")) == (0, 20_000)
    status, out, _ = read("convert", "--as", "json", "PIPE", other, "-")
    assert (status, out.count("\n")) == (0, 20_001)
    # These would need to read it twice.
    for arguments in ["--as", "auto", "PIPE", other, "-"], ["--as", "json", other, "PIPE", tmp_path / "new.csv"]:
        status, out, err = read("convert", "--as", "raw", *arguments)
        assert (status, out) == (2, "")
        assert f"{name} can" in err
    assert not (tmp_path / "new.csv").exists()
    status, out, err = read("info", "PIPE")
    assert (status, out) == (1, "")
    assert err.endswith("info reads a log more than once, and this is stdin, a pipe or a device: copy it to a file\n")


def test_stdin_is_not_mistaken_for_a_file_named_dash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").write_bytes(reference.encode([bytes(40_000)]) * 99)
    stdin, file = inputs_of(["-", "./-"])
    assert (stdin.name, stdin.file_len) == ("-", 0)
    assert (file.name, file.file_len) == ("./-", (tmp_path / "-").stat().st_size)


def test_a_pattern_that_matches_a_file_named_dash_does_not_read_stdin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("-").symlink_to("missing")
    assert [file.name for file in inputs_of(["*"])] == ["./-"]


def test_converting_does_not_overwrite_a_log_through_a_link(tmp_path, capsys):
    """The log is so damaged that no part of it is recognisable, and a database would not give it this name."""
    directory = tmp_path / "in"
    directory.mkdir()
    (directory / "one.log").write_bytes(reference.encode([b"one"]))
    (directory / "two.log").write_bytes(damaged := bytes(range(1, 200)))
    table = tmp_path / "out.csv"
    table.symlink_to(directory / "two.log")
    assert main(["convert", "--as", "raw", "--overwrite", str(directory), str(table)]) == 2
    message, _ = capsys.readouterr().err.splitlines()
    assert message == f"cordwood: {table} is the log that is read, and would be overwritten"
    assert (directory / "two.log").read_bytes() == damaged


@pytest.mark.parametrize("verb", [["evidence"], ["map", "--svg"]], ids=["evidence", "map"])
def test_overwrite_replaces_an_earlier_page_but_never_a_log(verb, tmp_path, capsys):
    directory = tmp_path / "in"
    directory.mkdir()
    (directory / "one.log").write_bytes(log := reference.encode([b"one"]))
    (directory / "two.log").write_bytes(damaged := bytes(range(1, 200)))
    (directory / "log.html").write_bytes(log)
    (directory / "link.html").symlink_to(directory / "two.log")

    def status_of(page):
        names = [str(directory), str(directory / page)]
        return main([*verb, *(names if verb == ["evidence"] else reversed(names)), "--overwrite"])

    assert status_of("page.html") == status_of("page.html") == 3
    assert (directory / "page.html").read_bytes().startswith(b"<")
    assert status_of("log.html") == status_of("link.html") == 2
    assert (directory / "log.html").read_bytes() == log
    assert (directory / "two.log").read_bytes() == damaged


def test_salvaging_lists_a_directory_only_once(tmp_path, monkeypatch, capsys):
    """If it were listed twice, a log created in the meantime would have no destination."""
    directory = tmp_path / "db"
    directory.mkdir()
    (directory / "000001.log").write_bytes(reference.encode([b"one"]))

    def listed(names, **options):
        files = inputs_of(names, **options)
        (directory / "000002.log").write_bytes(reference.encode([b"two"]))
        return files

    monkeypatch.setattr(_new_logs, "inputs_of", listed)
    assert main(["salvage", str(directory), str(tmp_path / "saved")]) == 0
    assert [path.name for path in (tmp_path / "saved").iterdir()] == ["000001.log"]
    assert "total: 1 log, 0 damaged, 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize("end", ["damage", "torn"])
@pytest.mark.parametrize("verb", ["cat", "convert", "convert many", "convert twice"])
def test_regions_that_are_not_listed_are_still_counted(verb, end, tmp_path, capsys):
    """Only the first 100,000 skipped regions are listed. Damage or a torn end after them still counts."""
    log = bytearray()
    record = recyclable(4, 5, b'{"a":1}')
    # A fragment that readers may ignore, and a record, so that each ignored fragment is a region of its own.
    pair = recyclable(4, 253, b"") + record
    for _ in range(100_001):
        left = reference.BLOCK_LEN - len(log) % reference.BLOCK_LEN
        log += pair if left >= len(pair) else bytes(left) + pair
    if end == "damage":
        log += recyclable(4, 5, b"lost")
        log[-1] ^= 1
    else:
        log = log[:-3]
    path = tmp_path / "000004.log"
    path.write_bytes(log)
    other = tmp_path / "000005.log"
    other.write_bytes(recyclable(5, 5, b'{"a":1}'))
    command = {
        "cat": ["cat"],
        "convert": ["convert", "--as", "raw", "--strict"],
        "convert many": ["convert", "--strict", "--as", "json", str(other)],
        "convert twice": ["convert", "--strict", "--as", "json", "--to", "csv"],
    }[verb]
    to = [] if verb == "cat" else ["-"]
    status = main([*command, "--dialect", "rocksdb", str(path), *to])
    assert status == (0 if (verb, end) == ("cat", "torn") else 3)
    [line] = [line for line in capsys.readouterr().err.splitlines() if "more than" in line]
    expected = f"cordwood: {path}: more than 100,000 regions were left out; for the totals: cordwood verify --json"
    assert line == expected


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Directories with files, in which the tests run."""
    for name in ("y.log", "a/x.log", "a/b/z.log", "a/[b]/z.log", "s/t/u/d.log", "s/t/e.txt", ".h/h.log", "s/.h.log"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes(name.encode())
    monkeypatch.chdir(tmp_path / "tree")
    return tmp_path / "tree"


PATTERNS = ["**/*.log", "**", "./**/*.log", "a/**", "*/**/*.log", "s/**/u/*", "**/t/**", "**/**/*.log", "**.log", "**/"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_double_asterisk_matches_files_in_subdirectories(pattern, tree):
    matches = set(glob.glob(pattern, recursive=True))  # noqa: PTH207
    expected = sorted(name for name in matches if not (tree / name).is_dir())
    assert [file.name for file in inputs_of([pattern])] == expected
    if not pattern.startswith("./"):
        absolute = sorted(str(tree / name) for name in expected)
        assert [file.name for file in inputs_of([f"{tree}/{pattern}"])] == absolute


def test_a_double_asterisk_does_not_follow_links(tree):
    """One that leads up would be followed 40 times, and one that leads elsewhere gives files strange names."""
    before = {pattern: inputs_of([pattern]) for pattern in PATTERNS}
    (tree.parent / "other").mkdir()
    (tree.parent / "other/ext.log").write_bytes(b"ext")
    (tree / "a/up").symlink_to("..")
    (tree / "s/t/link").symlink_to("../../../other")
    assert {pattern: inputs_of([pattern]) for pattern in PATTERNS} == before
    # Unless the link is named.
    assert [file.name for file in inputs_of(["s/t/link/**"])] == ["s/t/link/ext.log"]
    assert [file.name for file in inputs_of(["s/t/*/**/*.log"])] == ["s/t/link/ext.log", "s/t/u/d.log"]
