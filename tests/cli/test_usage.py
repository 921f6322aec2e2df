"""The command itself: cases that no console session shows."""

import importlib
import os
import pty
import stat
import subprocess
import sys

import pytest

import cordwood
from cordwood.cli import main


def test_ctrl_c_during_import_prints_no_output(monkeypatch, capfd):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert main(["cat", "log"]) == 130
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("verb", ["salvage", "pack"])
@pytest.mark.parametrize("options", [[], ["--overwrite"]], ids=str)
def test_a_new_log_never_replaces_a_pipe_or_device(options, verb, tmp_path, capfd):
    (tmp_path / "log").write_bytes(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for name in (pipe, "/dev/null"):
        assert main([verb, *options, str(tmp_path / "log"), str(name)]) == 1
        message = f"{name} is not a regular file, as the new log will be: choose another name"
        assert message in capfd.readouterr().err
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("verb", ["cat", "convert --as raw", "fragments"])
def test_reports_a_log_that_is_truncated_while_being_read(verb, tmp_path):
    log = tmp_path / "log"
    with cordwood.open(log, "x") as writer:
        writer.extend([b"%020d" % number for number in range(500_000)])
    with subprocess.Popen(
        [sys.executable, "-m", "cordwood", *verb.split(), log], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.read(1)
        os.truncate(log, 1 << 20)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err.startswith(f"cordwood: {log}: the file was cut while it was read: it had 13501442 bytes".encode())


IN_LITTLE_MEMORY = """
import resource, sys
from cordwood.cli import main
line, = (line for line in open("/proc/self/status") if line.startswith("VmSize"))
limit = (int(line.split()[1]) << 10) + (48 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the size of the process is read from /proc")
@pytest.mark.parametrize(
    ("arguments", "out", "err"),
    [
        (["cat", "large.log", "small.log"], "small\n", "cordwood: large.log: not enough memory\n"),
        (
            ["convert", "--as", "raw", "large.log", "small.log", "table.csv"],
            "",
            "cordwood: large.log: not enough memory\n",
        ),
        (["convert", "--as", "raw", "large.log", "table.csv"], "", "cordwood: not enough memory\n"),
    ],
    ids=["cat", "convert several", "convert"],
)
def test_reports_a_log_that_is_too_large_for_memory_and_reads_the_other_logs(arguments, out, err, tmp_path):
    for name, record in ("large.log", bytes(96 << 20)), ("small.log", b"small"):
        with cordwood.open(tmp_path / name, "x") as writer:
            writer.append(record)
    command = [sys.executable, "-c", IN_LITTLE_MEMORY, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, out, err)
    is_several = {"small.log", "table.csv"} <= set(arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large.log", "small.log", *["table.csv"] * is_several]


def test_a_pyarrow_memory_error_is_reported_as_not_enough_memory(monkeypatch, tmp_path, capfd):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    with cordwood.open(tmp_path / "log", "x") as writer:
        writer.append(b"record")

    def refuse(*_):
        raise pyarrow.lib.ArrowMemoryError("malloc of size 6 failed")

    monkeypatch.setattr(parquet.ParquetWriter, "write_batch", refuse)
    assert main(["convert", "--as", "raw", str(tmp_path / "log"), str(tmp_path / "table.parquet")]) == 1
    assert capfd.readouterr().err == "cordwood: not enough memory\n"
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize(
    ("settings", "has_colors"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_color_depends_on_the_terminal_and_user_settings(settings, has_colors, tmp_path):
    (tmp_path / "log").write_bytes(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")
    outer, inner = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | settings
    command = [sys.executable, "-m", "cordwood", "map", str(tmp_path / "log")]
    subprocess.run(command, stdout=inner, env=env, check=True, timeout=120)
    shown = os.read(outer, 65536)
    os.close(inner)
    os.close(outer)
    assert (b"\x1b[" in shown) == has_colors


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
@pytest.mark.parametrize(
    "verb", ["info", "cat", "stat", "verify", "map", "fragments", "convert --as raw", "split", "salvage", "pack"]
)
def test_reading_many_files_needs_few_file_descriptors(verb, tmp_path):
    directory = tmp_path / "logs"
    directory.mkdir()
    for number in range(100):
        (directory / f"{number}.log").write_bytes(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")
    script = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)); "
    script += "from cordwood.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [*verb.split(), str(directory), *([str(tmp_path / "new")] if verb in {"salvage", "pack"} else [])]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
