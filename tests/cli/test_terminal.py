"""Control characters in names and records neither reach the terminal nor break a line."""

import json
import os
import pty
import subprocess
import sys

import pytest
import reference

NAME = "a\x1b[31m\n\tok.log: ok\x9b\u202e"
ESCAPED = r"a\u001b[31m\n\tok.log: ok\u009b\u202e"


def run(*arguments, cwd, stdin=b""):
    """The exit status, and the output on both streams."""
    done = subprocess.run(
        [sys.executable, "-m", "cordwood", *arguments], cwd=cwd, input=stdin, capture_output=True, check=False
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def directory(tmp_path):
    """A damaged log with a hostile name."""
    file = bytearray(reference.encode([b"one", b"two", b"three"]))
    file[17] ^= 0x20
    (tmp_path / NAME).write_bytes(file)
    return tmp_path


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize(
    "command",
    ["cat", "info", "stat", "verify", "map", "fragments", "salvage {} new", "follow --timeout 0", "convert", "split",
     "salvage new {}", "salvage --overwrite new {}", "write", "write --append",
     "convert new {}.csv", "map --svg {} new"],
)  # fmt: skip
def test_a_file_name_cannot_add_a_line_break_to_the_output(command, is_there, directory):
    (directory / "new").write_bytes(reference.encode([b"one"]))
    name = NAME if is_there else f"no{NAME}"
    words = [word.format(name) for word in command.split()]
    _, out, errors = run(*words, *([] if "{}" in command else [name]), cwd=directory)
    for line in [*out.split("\n"), *errors.split("\n")]:
        assert line.isprintable(), line
        assert not line.startswith("ok.log")
    if not is_there and not {"new", "write"}.intersection(words):
        assert errors.startswith(f"cordwood: no{ESCAPED}: No such file or directory"), errors


def test_file_names_in_json_output_are_exact(directory):
    for command in (["verify"], ["stat"], ["fragments"], ["cat"], ["split"]):
        _, out, _ = run(*command, "--json", NAME, cwd=directory)
        assert {json.loads(line)["source"] for line in out.splitlines()} == {NAME}, command


def test_split_leaves_out_file_names_that_would_break_its_columns(directory):
    """A name that cannot be in a column is not printed."""
    plain = "two words\\ä.log"
    (directory / plain).write_bytes(reference.encode([b"one"]))
    bad = [NAME, "a\tb", "a\nb", b"a\xff".decode("utf-8", "surrogateescape")]
    for name in bad[1:]:
        (directory / name).write_bytes(reference.encode([b"one"]))
    status, out, errors = run("split", *bad, plain, cwd=directory)
    assert (status, out) == (1, f"{plain}\t0\t10\n")
    assert errors.count("use --json\n") == len(bad)
    status, out, _ = run("split", "--json", *bad, plain, cwd=directory)
    assert (status, [json.loads(line)["source"] for line in out.splitlines()]) == (0, [*bad, plain])


def on_a_terminal(*arguments, cwd):
    outer, inner = pty.openpty()
    done = subprocess.run([sys.executable, "-m", "cordwood", *arguments], cwd=cwd, stdout=inner, check=False)
    os.close(inner)
    assert done.returncode == 0
    shown = os.read(outer, 65_536)
    os.close(outer)
    return shown.replace(b"\r\n", b"\n")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("cat", b"\\u001b[2J\t\xc3\xa4\\xff\\u009b\n"),
        ("cat --format nul", b"\\u001b[2J\t\xc3\xa4\\xff\\u009b\\u0000"),
        ("cat --format raw", b"\x1b[2J\t\xc3\xa4\xff\xc2\x9b"),
        ("follow --timeout 0", b"\\u001b[2J\t\xc3\xa4\\xff\\u009b\n"),
    ],
)
def test_records_are_escaped_on_a_terminal(command, shown, tmp_path):
    (tmp_path / "log").write_bytes(reference.encode(["\x1b[2J\tä".encode() + b"\xff\xc2\x9b"]))
    assert on_a_terminal(*command.split(), "log", cwd=tmp_path) == shown


def test_json_output_on_a_terminal_is_valid_json(tmp_path):
    text = "\x1b\x7f\x9b\u202eä\U000e0001"
    (tmp_path / "log").write_bytes(reference.encode([text.encode()]))
    for command, field in [
        ("cat --json", "text"),
        ("follow --json --timeout 0", "text"),
        ("convert --encoding utf-8", "data"),
    ]:
        shown = on_a_terminal(*command.split(), "log", cwd=tmp_path).decode()
        assert shown.removesuffix("\n").isprintable()
        assert json.loads(shown)[field] == text
    shown = on_a_terminal("convert", "--to", "csv", "--encoding", "utf-8", "log", cwd=tmp_path).decode()
    assert shown.splitlines()[1] == r"0,20,\u001b\u007f\u009b\u202eä\udb40\udc01"


def hint_on_a_terminal(*arguments, cwd):
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "cordwood", *arguments]
    subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=inner, check=True)
    # Gives the reader bytes to read.
    os.write(inner, b"end\n")
    os.close(inner)
    shown = os.read(outer, 65_536).decode().replace("\r\n", "\n")
    os.close(outer)
    return shown.removesuffix("end\n")


def test_cat_explains_how_to_decode_records(tmp_path):
    batch = b"\7\0\0\0\0\0\0\0\1\0\0\0\1\3key\5value"
    (tmp_path / "db").mkdir()
    (tmp_path / "db/000003.log").write_bytes(reference.encode([batch, batch]))
    (tmp_path / "text.log").write_bytes(reference.encode([b"one"]))
    hint = (
        "cordwood: db/000003.log: the first record is a write batch, as in a write-ahead log of LevelDB, RocksDB or "
        "Pebble: --as write-batch decodes it\n"
    )
    assert hint_on_a_terminal("cat", "db/000003.log", cwd=tmp_path) == hint
    assert hint_on_a_terminal("cat", "--as", "write-batch", "db/000003.log", cwd=tmp_path) == ""
    assert hint_on_a_terminal("cat", "text.log", cwd=tmp_path) == ""
    # A script has no use for the hint.
    assert run("cat", "db/000003.log", cwd=tmp_path)[2] == ""
    assert hint_on_a_terminal("cat", "db", "text.log", cwd=tmp_path) == hint
    assert hint_on_a_terminal("cat", "--json", "db", cwd=tmp_path) == hint


def test_output_to_a_pipe_contains_the_exact_bytes(tmp_path):
    record = b"\x1b[2J\xff\0"
    (tmp_path / "log").write_bytes(reference.encode([record]))
    done = subprocess.run(
        [sys.executable, "-m", "cordwood", "cat", "log"], cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout == record + b"\n"


def test_a_pipe_is_opened_only_once(tmp_path):
    """The hint about its records does not open it again, which would wait for another writer."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    shell = 'printf "one\\n" | "$0" -m cordwood write - > "$1" & exec "$0" -m cordwood cat "$1"'
    main, terminal = pty.openpty()
    try:
        done = subprocess.run(
            ["sh", "-c", shell, sys.executable, pipe], stdout=subprocess.PIPE, stderr=terminal, check=False, timeout=120
        )
    finally:
        os.close(main)
        os.close(terminal)
    assert (done.returncode, done.stdout) == (0, b"one\n")


@pytest.mark.skipif(os.name == "nt", reason="the names are those of POSIX, and the commands are for its shells")
@pytest.mark.parametrize(
    "name", ["-dash.log", "-ldb", "new\nline.log", b"bad\xff\xfe1.log", NAME, "it's.log", "\\n\t'\x01.log"]
)
@pytest.mark.parametrize("is_damaged", [False, True])
def test_suggested_commands_can_be_pasted(name, is_damaged, tmp_path):
    """The command that `info` offers names the same file to a shell, and contains no control characters."""
    file = bytearray(reference.encode([b"one", b"two"]))
    file[17] ^= is_damaged
    (tmp_path / os.fsdecode(name)).write_bytes(file)
    status, out, _ = run("info", "--", name, cwd=tmp_path)
    assert status == (3 if is_damaged else 0)
    assert all(line.isprintable() for line in out.splitlines())
    command = next(line for line in out.splitlines() if line.startswith("  more"))[len("  more") :]
    script = f'cordwood() {{ "{sys.executable}" -m cordwood "$@"; }}; {command}'
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (status, b"")
    assert b"1 record" in done.stdout if is_damaged else done.stdout == b"one\ntwo\n"
