"""A verb imports only the modules it needs: slow imports would take most of its time.

`python -X importtime -m cordwood VERB` shows how long each import takes. The times depend on the machine; the modules
imported do not.
"""

import os
import re
import subprocess
import sys

import pytest
import reference

import cordwood
from cordwood.cli import VERBS

# Modules of the standard library that take a millisecond or more, and everything from outside it.
SLOW = {
    *(
        "ast",
        "asyncio",
        "base64",
        "bz2",
        "concurrent",
        "csv",
        "ctypes",
        "dataclasses",
        "datetime",
        "decimal",
        "dis",
        "doctest",
    ),
    *(
        "email",
        "glob",
        "hashlib",
        "html",
        "http",
        "inspect",
        "json",
        "logging",
        "lzma",
        "multiprocessing",
        "pathlib",
        "pickle",
    ),
    *("random", "shlex", "shutil", "socket", "ssl", "subprocess", "tempfile", "textwrap", "threading", "tokenize"),
    *("unittest", "urllib", "uuid", "xml", "zipfile", "zlib"),
    *("fsspec", "numpy", "obstore", "pandas", "polars", "pyarrow", "tqdm", "wandb"),
}
JSON = {"json"}
# Which of these each command needs.
COMMANDS = {
    "info a.log": {"shlex"},
    "info --json a.log": JSON,
    "cat a.log": set(),
    "cat --json a.log": JSON,
    "stat a.log": set(),
    "stat --json a.log": JSON,
    "verify a.log": set(),
    "verify --json a.log": {"hashlib", "json"},
    "map a.log": set(),
    "map --svg - a.log": set(),
    "fragments a.log": set(),
    "fragments --json a.log": JSON,
    "evidence a.log new.html": {"datetime", "hashlib", "html", "shlex"},
    "salvage a.log new.log": set(),
    "pack a.log new.log": set(),
    "follow --timeout 0 a.log": set(),
    "write new.log": set(),
    "convert a.log": set(),
    "convert --to csv a.log": set(),
    "split a.log": set(),
    "split --json a.log": JSON,
}


# The modules that argparse itself needs depend on the version of Python.
ARGPARSE = (
    "import argparse; argparse.ArgumentParser(formatter_class=lambda prog: argparse.HelpFormatter(prog, width=80))"
)


def imported(statement, cwd):
    """The modules that a statement imports, in addition to those of `ARGPARSE`."""
    counted = "import sys; {}; print(*sys.modules, file=sys.stderr)"
    with_it, without = (
        subprocess.run(
            [sys.executable, "-c", counted.format(text)],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            text=True,
        ).stderr.split()
        for text in (statement, ARGPARSE)
    )
    return set(with_it) - set(without)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_import_slow_modules_only_when_needed(command, tmp_path):
    (tmp_path / "a.log").write_bytes(reference.encode([b"one", b"two"]))
    modules = imported(f"from cordwood.cli import main; main({command.split()!r})", tmp_path)
    assert {name.partition(".")[0] for name in modules} & SLOW == COMMANDS[command]
    verb = command.split()[0]
    # The records are not decoded, except for the keys of `evidence`.
    assert "cordwood.payload" not in modules or verb == "evidence"
    shown = {name for name in VERBS if f"cordwood.cli.{name}" in modules}
    assert shown == {verb}


def test_version_imports_no_command_modules(tmp_path):
    statement = "from cordwood.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass"
    modules = imported(f"exec({statement!r})", tmp_path)
    assert "cordwood.cli" in modules
    assert not {f"cordwood.cli.{name}" for name in VERBS} & modules
    # argparse needs it to wrap the text.
    assert {name.partition(".")[0] for name in modules} & SLOW == {"textwrap"}


def test_the_import_checks_cover_every_command():
    # `completion` is left out: it imports all of them, and its script is printed only once.
    assert {command.split()[0] for command in COMMANDS} == set(VERBS) - {"completion"}


def test_importing_the_package_does_not_load_slow_modules(tmp_path):
    modules = imported("import cordwood", tmp_path)
    assert "cordwood.types" in modules
    assert {name.partition(".")[0] for name in modules} & SLOW == set()
    assert {name for name in modules if re.match(r"cordwood\.(cli|payload|compat|_html|_map\.)", name)} == set()


@pytest.mark.parametrize(
    ("package", "command", "need"),
    [
        ("pyarrow", ["convert", "--as", "raw", "x.log", "x.parquet"], "parquet needs"),
        ("pyarrow", ["convert", "--as", "raw", "--to", "arrow", "x.log", "-"], "arrow needs"),
        ("wandb", ["convert", "--as", "wandb", "x.wandb", "x.ndjson"], "all fields of a record need"),
    ],
)
def test_a_failed_package_import_is_reported_on_one_line(package, command, need, tmp_path):
    directory = tmp_path / "packages" / package
    directory.mkdir(parents=True)
    (directory / "__init__.py").write_text("raise AttributeError('no float_\\nin this release')")
    for name, dialect in (("x.log", "leveldb"), ("x.wandb", "wandb")):
        with cordwood.open(tmp_path / name, "w", dialect=dialect) as writer:
            writer.append(b"\x12\x00")
    done = subprocess.run(
        [sys.executable, "-m", "cordwood", *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(directory.parent), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"cordwood: {need} the package {package}, which is installed, but cannot be imported")
    assert done.stderr.endswith(" (AttributeError: no float_ in this release)\n")
    assert not (tmp_path / command[-1]).exists()
