"""`cordwood.info`: what it returns, and that the verb `info` prints the same."""

import json
import os

import plyvel
import pytest
import reference
from rocksdict import Rdict

import cordwood
from cordwood import _content
from cordwood.cli import info as cli_info
from cordwood.cli import main


@pytest.fixture
def directory(tmp_path):
    """A database whose CURRENT is empty, a damaged log, a text, and an empty file."""
    directory = tmp_path / "directory"
    directory.mkdir()
    with plyvel.DB(str(directory / "db"), create_if_missing=True) as database:
        database.put(b"key", b"value")
    (directory / "db/CURRENT").write_bytes(b"")
    damaged = bytearray(reference.encode([b"one", b"two", b"three"]))
    damaged[17] ^= 1
    (directory / "damaged.log").write_bytes(damaged)
    (directory / "note").write_text("This is a text. It is no log.")
    return directory


def test_info_about_a_directory_describes_its_contents(directory):
    info = cordwood.info(directory)
    assert (info.path, info.what, info.ok) == (str(directory), "a database of LevelDB", False)
    assert info.damaged_logs == (str(directory / "damaged.log"),)
    assert info.log_count_by_payload == {"other": 1, "write-batch": 1, "version-edit": 1}
    assert info.other_file_count_by_format == {"text": 1, "empty": 2, "info log": 1}
    [database] = info.databases
    assert (database.path, database.engine) == (str(directory / "db"), cordwood.types.Engine.LEVELDB)
    assert [problem.kind for problem in database.problems] == [cordwood.types.ProblemKind.CURRENT_EMPTY]
    (directory / "db/CURRENT").write_text(database.right_current)
    (directory / "damaged.log").unlink()
    assert cordwood.info(directory).ok


def test_info_about_a_single_log_includes_its_report(tmp_path):
    path = tmp_path / "example.log"
    path.write_bytes(reference.encode([b"one", b"two"]))
    for source in (path, str(path), os.fsencode(path)):
        info = cordwood.info(source)
        assert info.report == cordwood.verify(path)
        assert (info.what, info.log_count, info.record_count, info.payload_len) == ("a log", 1, 2, 6)
        assert info.ok


def test_info_about_several_sources_describes_them_together(directory, tmp_path):
    (tmp_path / "other.log").write_bytes(reference.encode([b"one", b"two"]))
    info = cordwood.info([directory / "damaged.log", str(tmp_path / "other.log")])
    assert (info.what, info.log_count, info.record_count) == ("several files", 2, 2 + 2)
    assert info.path == f"{directory}/damaged.log {tmp_path}/other.log"
    info = cordwood.info([tmp_path / "missing", tmp_path / "other.log"])
    assert [(path, type(error)) for path, error in info.failures] == [(f"{tmp_path}/missing", FileNotFoundError)]


def test_info_about_an_unreadable_file_raises_an_error(tmp_path):
    (tmp_path / "note").write_text("This is a text. It is no log.")
    with pytest.raises(cordwood.DialectError):
        cordwood.info(tmp_path / "note")
    with pytest.raises(FileNotFoundError):
        cordwood.info(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="more than once"):
        cordwood.info(tmp_path / "pipe")


def test_info_about_a_directory_without_logs_reports_zero_logs(tmp_path):
    assert cordwood.info(tmp_path)[:3] == (str(tmp_path), "a directory", 0)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_unreadable_files_are_listed_as_failures(directory):
    (directory / "damaged.log").chmod(0)
    [(path, error)] = cordwood.info(directory).failures
    assert (path, type(error)) == (str(directory / "damaged.log"), PermissionError)


@pytest.mark.parametrize("name", ["", "db", "damaged.log"])
def test_the_info_command_prints_the_same_fields_as_the_library(name, directory, capsys):
    source = directory / name
    info = cordwood.info(source)
    assert main(["info", "--json", str(source)]) == 3
    fields = json.loads(capsys.readouterr().out)
    names = info._asdict().keys() & fields.keys() - {"runs", "databases", "exports"}
    assert len(names) == 15
    assert {name: fields[name] for name in names} == {name: getattr(info, name) for name in names}
    assert fields["damaged_count"] == len(info.damaged_logs)
    assert [found["right_current"] for found in fields["databases"]] == [
        database.right_current for database in info.databases
    ]


def test_logs_that_disappear_from_a_listed_directory_are_ignored(directory, monkeypatch, capsys):
    verify = _content.verify
    gone = directory / "damaged.log"
    data = gone.read_bytes()

    def verify_and_remove(file, **options):
        report = verify(file, **options)
        if file == str(gone):
            gone.unlink()
        return report

    monkeypatch.setattr(_content, "verify", verify_and_remove)
    info = cordwood.info(directory)
    assert info.failures == ()
    # The two logs of the database.
    assert (info.log_count, info.damaged_logs, info.ok) == (2, (), False)
    gone.write_bytes(data)
    assert main(["info", str(directory)]) == 3
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith(f"{directory}: a database of LevelDB\n")
    gone.write_bytes(data)
    with pytest.raises(FileNotFoundError):
        cordwood.info(gone)


@pytest.mark.parametrize("engine", ["LevelDB", "RocksDB"])
def test_the_info_command_explains_how_to_shorten_an_overlong_manifest(engine, tmp_path, monkeypatch, capsys):
    def opened():
        return plyvel.DB(str(tmp_path), create_if_missing=True) if engine == "LevelDB" else Rdict(str(tmp_path))

    opened().close()
    manifest = tmp_path / (tmp_path / "CURRENT").read_text().strip()
    *_, last = cordwood.open(manifest)
    with cordwood.open(manifest, "a") as writer:
        writer.extend([last] * 1_000)
    monkeypatch.setattr(cli_info, "MANIFEST_LEN_LONG", 10_000)
    text = f"{manifest} has {manifest.stat().st_size:,} bytes: {engine} writes a short one when it opens the database"
    assert main(["info", str(tmp_path)]) == 0
    assert text in " ".join(capsys.readouterr().out.split())
    opened().close()
    assert main(["info", str(tmp_path)]) == 0
    assert "writes a short one" not in " ".join(capsys.readouterr().out.split())
