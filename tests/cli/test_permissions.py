"""A new file that is made from others is as private as they are, from the start."""

import os
import stat
import sys
from pathlib import Path

import pytest
from support import written

import cordwood
from cordwood.cli import main

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files have no modes here")

LOG = written([b'{"a": 1}', b'{"a": 2}'])


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o022)
    yield tmp_path
    os.umask(before)


def log(path, mode):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(LOG)
    path.chmod(mode)
    return path


NEW_FILES = [
    "salvage a.log new.log",
    "salvage a.log new/",
    "pack a.log new.log",
    "convert --as json a.log new.csv",
    "convert --as json a.log new.ndjson",
    "convert --as json a.log new.parquet",
    "map a.log --svg new.svg",
]


@pytest.mark.parametrize(
    ("mode", "umask", "expected"),
    [
        (0o600, 0o022, 0o600),
        (0o640, 0o022, 0o640),
        (0o664, 0o022, 0o644),
        (0o400, 0o000, 0o400),
        (0o666, 0o077, 0o600),
        (0o6644, 0o022, 0o644),
    ],
)
@pytest.mark.parametrize("command", NEW_FILES)
def test_a_new_file_has_the_same_permissions_as_its_source(command, mode, umask, expected, directory):
    if "parquet" in command:
        pytest.importorskip("pyarrow")
    log(directory / "a.log", mode)
    os.umask(umask)
    assert main(command.split()) == 0
    [new] = [path for path in directory.rglob("*") if path.is_file() and path != directory / "a.log"]
    assert mode_of(new) == expected


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_file_of_skipped_bytes_has_the_same_permissions_as_its_source(mode, directory):
    log(directory / "a.log", mode).write_bytes(LOG[:-1])
    assert main(["fragments", "--bytes", "lost", "a.log"]) == 0
    [new] = (directory / "lost").iterdir()
    assert (new.read_bytes(), mode_of(new)) == (LOG[15:-1], mode)


def test_a_merged_file_has_only_the_permissions_shared_by_all_sources(directory):
    log(directory / "a.log", 0o640)
    log(directory / "b.log", 0o604)
    assert main(["convert", "--as", "json", "a.log", "b.log", "new.ndjson"]) == 0
    assert mode_of(directory / "new.ndjson") == 0o600


@pytest.mark.parametrize("name", ["new.ndjson", "new.log"])
def test_a_file_created_from_standard_input_has_the_default_permissions(name, directory, monkeypatch):
    verb = "salvage" if name.endswith(".log") else "convert"
    with log(directory / "a.log", 0o600).open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main([verb, "-", name]) == 0
    assert mode_of(directory / name) == 0o644


def test_new_directories_are_as_private_as_the_source_directories(directory):
    log(directory / "open" / "a.log", 0o644)
    log(directory / "private" / "b.log", 0o644)
    (directory / "private").chmod(0o500)
    assert main(["salvage", "open/", "new/"]) == 0
    assert main(["salvage", "private/", "saved/below/"]) == 0
    (directory / "private").chmod(0o700)
    modes = {str(path.relative_to(directory)): mode_of(path) for path in directory.rglob("*") if path.is_dir()}
    assert modes == {"open": 0o755, "private": 0o700, "new": 0o755, "saved": 0o700, "saved/below": 0o700}


@pytest.mark.parametrize(
    ("command", "old"),
    [("salvage --overwrite a.log old.log", "old.log"), ("convert --overwrite --as json a.log old.csv", "old.csv")],
)
@pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o664, 0o664), (0o4755, 0o755), (0o2755, 0o755)])
def test_an_overwritten_file_keeps_its_permissions_except_for_setuid(command, old, mode, expected, directory):
    log(directory / "a.log", 0o644)
    log(directory / old, 0o644).write_bytes(LOG if old.endswith(".log") else b"")
    (directory / old).chmod(mode)
    assert main(command.split()) == 0
    assert mode_of(directory / old) == expected


@pytest.mark.parametrize(
    "command", ["salvage --overwrite a.log old.log", "convert --as raw --overwrite a.log old.ndjson"]
)
def test_an_unfinished_file_is_private(command, directory, monkeypatch):
    log(directory / "a.log", 0o644)
    old = directory / command.split()[-1]
    log(old, 0o600).write_bytes(LOG if old.suffix == ".log" else b"")
    os.umask(0)
    replace, seen = os.replace, []

    def look(source, target):
        seen.append(mode_of(Path(source).parent))
        replace(source, target)

    monkeypatch.setattr(os, "replace", look)
    assert main(command.split()) == 0
    assert seen == [0o700]


def test_a_new_log_written_by_the_library_has_the_same_permissions_as_its_source(directory):
    path = log(directory / "a.log", 0o640)
    cordwood.salvage(path, directory / "new.log")
    assert mode_of(directory / "new.log") == 0o640
    cordwood.pack(path, directory / "packed.log")
    assert mode_of(directory / "packed.log") == 0o640
    cordwood.salvage(LOG, directory / "other.log")
    assert mode_of(directory / "other.log") == 0o644


@pytest.mark.parametrize(
    ("directory_mode", "mode", "expected"), [(0o755, 0o644, 0o644), (0o755, 0o600, 0o600), (0o700, 0o644, 0o600)]
)
def test_converting_a_segmented_log_does_not_widen_its_permissions(directory_mode, mode, expected):
    with cordwood.open("orders", "a", segment_len=100) as log:
        log.extend([b'{"a": 1}'] * 20)
    segments = list(Path("orders").glob("*.log"))
    assert len(segments) > 1
    for segment in segments:
        segment.chmod(mode)
    Path("orders").chmod(directory_mode)
    assert main(["convert", "--as", "json", "orders", "new.csv"]) == 0
    assert mode_of(Path("new.csv")) == expected
