"""`cordwood convert --as entity --by-kind`: a table for each kind."""

import json
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from entities import entity

import cordwood
from cordwood._inputs import destinations
from cordwood.cli import main
from cordwood.cli.convert import by_kind

pq = pytest.importorskip("pyarrow.parquet")

GUIDE = Path(__file__).parents[2] / "docs/guides/databases.md"
KEY = ["__file__", "__kind__", "__id__", "__name__", "__path__", "__key__"]


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    """A directory with an export of two files, in which entities of two kinds take turns."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "export").mkdir()
    for number in range(2):
        with cordwood.open(tmp_path / f"export/output-{number}", "x") as log:
            for place in range(3):
                values = {"title": f"t{number}{place}", "pages": place, "tags": ["a", "b"]}
                log.append(entity([("books", f"b{number}{place}")], values))
                values = {"price": 1.5 * place, "at": datetime(2026, 1, 1 + place, tzinfo=UTC)}
                log.append(entity([("books", "b"), ("Über/Orders", 10 * number + place + 1)], values))
    return tmp_path


def test_converting_by_kind_writes_one_table_per_kind(directory):
    assert main(["convert", "--as", "entity", "--by-kind", "tables", "export"]) == 0
    books, orders = pq.read_table("tables/books.parquet"), pq.read_table("tables/Über%2FOrders.parquet")
    assert sorted(path.name for path in (directory / "tables").iterdir()) == ["books.parquet", "Über%2FOrders.parquet"]
    assert books.column_names == [*KEY, "title", "pages", "tags"]
    assert orders.column_names == [*KEY, "price", "at"]
    assert books.column("title").to_pylist() == ["t00", "t01", "t02", "t10", "t11", "t12"]
    assert orders.column("__id__").to_pylist() == [1, 2, 3, 11, 12, 13]
    assert {str(orders.schema.field("price").type), str(books.schema.field("pages").type)} == {"double", "int64"}
    one = directory / "one.parquet"
    assert main(["convert", "--as", "entity", "export", str(one)]) == 0
    rows = pq.read_table(one).to_pylist()
    for table in books, orders:
        [kind] = set(table.column("__kind__").to_pylist())
        wanted = [{name: row[name] for name in table.column_names} for row in rows if row["__kind__"] == kind]
        assert table.to_pylist() == wanted


def test_converting_by_kind_supports_ndjson_and_csv(directory):
    assert main(["convert", "--as", "entity", "--by-kind", "t", "--to", "ndjson", "export/output-0"]) == 0
    rows = [json.loads(line) for line in (directory / "t/books.ndjson").read_text().splitlines()]
    assert [row["title"] for row in rows] == ["t00", "t01", "t02"]
    assert main(["convert", "--as", "entity", "--by-kind", "t", "--to", "csv", "export/output-0"]) == 0
    assert (directory / "t/books.csv").read_text().splitlines()[0] == ",".join([*KEY, "title", "pages", "tags"])


@pytest.mark.parametrize(
    ("kind", "name"),
    [("..", "%2E."), ("a\x00b", "a%00b"), ("100%", "100%25"), ("CON|", "CON%7C"), ("", "%"), ("%none", "%25none")],
)
def test_converting_by_kind_escapes_path_characters(kind, name, directory):
    with cordwood.open("some", "x") as log:
        log.append(entity([(kind, 1)], {"a": 1}))
    assert main(["convert", "--as", "entity", "--by-kind", "t", "some"]) == 0
    assert [path.name for path in (directory / "t").iterdir()] == [f"{name}.parquet"]


def test_converting_by_kind_cleans_up_after_errors_and_does_not_replace_files_by_default(directory, capsys):
    command = ["convert", "--as", "entity", "--by-kind", "t", "export"]
    (directory / "t").mkdir()
    (directory / "t/Über%2FOrders.parquet").write_bytes(b"mine")
    assert main(command) == 1
    assert "File exists" in capsys.readouterr().err
    assert [path.name for path in (directory / "t").iterdir()] == ["Über%2FOrders.parquet"]
    assert main([*command, "--overwrite"]) == 0
    assert len(pq.read_table("t/Über%2FOrders.parquet")) == 6


def test_converting_by_kind_creates_no_directory_if_there_are_no_entities(directory, capsys):
    for name in "output-0", "output-1":
        (directory / "export" / name).write_bytes(b"")
    (directory / "export/a.export_metadata").write_bytes(bytes.fromhex("0a03 0a0161 120c 0a00 1208") + b"output-0")
    assert main(["convert", "--as", "entity", "--by-kind", "t", "export"]) == 3
    printed = capsys.readouterr().err
    assert "output-0 is empty" in printed
    assert "cordwood: no entity was found: there is no table\n" in printed
    assert not (directory / "t").exists()


def test_converting_by_kind_reports_damage_that_destroys_one_record(directory, capsys):
    path = directory / "export/output-1"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    assert main(["convert", "--as", "entity", "--by-kind", "t", "--on-corruption", "salvage", "export"]) == 3
    assert "export/output-1: at 0" in capsys.readouterr().err
    assert pq.read_table("t/books.parquet").column("title").to_pylist() == ["t00", "t01", "t02", "t11", "t12"]


@pytest.fixture
def log_of(directory):
    """Writes a log with an entity of each kind, and returns its name."""

    def log_of(name, *kinds):
        with cordwood.open(directory / name, "w") as log:
            for kind in kinds:
                log.append(entity([] if kind is None else [(kind, 1)], {"a": 1}))
        return name

    return log_of


def test_converting_by_kind_never_overwrites_a_log(log_of, directory, capsys):
    (directory / "d").mkdir()
    logs = [directory / log_of(name, "Task") for name in ("d/first", "d/Task.ndjson", "d/other", "some")]
    logs[2].rename(directory / "d/Note.ndjson")
    log_of("some", "Note")
    before = {path: path.read_bytes() for path in (directory / "d").iterdir()}
    command = ["convert", "--as", "entity", "--by-kind", "d", "--to", "ndjson", "--overwrite"]
    assert main([*command, "d/first", "d/Task.ndjson"]) == 2
    assert "d/Task.ndjson is the log that is read, and would be overwritten" in capsys.readouterr().err
    assert main([*command, "some"]) == 2
    assert "d/Note.ndjson is a log, which --overwrite does not replace with a table" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in (directory / "d").iterdir()} == before


def test_entities_without_a_key_get_their_own_table(log_of, directory):
    log = log_of("some", None, "__none__", "%none", "none", "")
    assert main(["convert", "--as", "entity", "--by-kind", "t", "--to", "ndjson", log]) == 0
    kinds = {path.stem: json.loads(path.read_text()).get("__kind__") for path in (directory / "t").iterdir()}
    assert kinds == {"%none": None, "__none__": "__none__", "%25none": "%none", "none": "none", "%": ""}


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (["Task", "other", "task"], "the kinds 'Task' and 'task' would have the same file on some systems"),
        (["\xe9", "E\u0301"], "would have the same file on some systems"),
        (["a" * 248], "is too long for the name of a file"),
        (["/" * 83], "is too long for the name of a file"),
    ],
)
def test_converting_by_kind_fails_if_file_names_would_be_equal_or_too_long(kinds, message, log_of, directory, capsys):
    log = log_of("some", *kinds)
    assert main(["convert", "--as", "entity", "--by-kind", "t", log]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
    assert "convert them to one table, without --by-kind" in line
    assert not (directory / "t").exists()


def test_converting_by_kind_supports_kind_names_of_up_to_247_characters(log_of, directory):
    assert main(["convert", "--as", "entity", "--by-kind", "t", log_of("some", "a" * 247)]) == 0
    assert [path.name for path in (directory / "t").iterdir()] == ["a" * 247 + ".parquet"]


def test_converting_by_kind_fails_if_it_runs_out_of_file_descriptors(log_of, directory):
    resource = pytest.importorskip("resource")
    log = log_of("some", *(f"k{number}" for number in range(240)))

    def convert(open_max):
        return subprocess.run(
            [sys.executable, "-m", "cordwood", "convert", "--as", "entity", "--by-kind", "t", log],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (open_max, open_max)),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    refused = convert(256)
    assert (refused.returncode, (directory / "t").exists()) == (1, False)
    assert "240 kinds, and the table of each is an open file, of which the system allows 256" in refused.stderr
    assert "ulimit -n 304, or convert them to one table" in refused.stderr
    done = convert(304)
    assert (done.returncode, done.stderr, len(list((directory / "t").iterdir()))) == (0, "", 240)


def test_converting_by_kind_fails_if_a_new_kind_appears_after_the_first_pass(log_of, directory, monkeypatch, capsys):
    log_of("some", "A", "A")

    def make_directory(path, source):
        log_of("some", "A", "B")
        return destinations.make_directory(path, source)

    monkeypatch.setattr(by_kind, "make_directory", make_directory)
    assert main(["convert", "--as", "entity", "--by-kind", "t", "some"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("cordwood: some: the file was rewritten while it was converted")
    assert not list((directory / "t").iterdir())


END_AT_ROWS = """
import os, signal, sys
from cordwood.cli import main
from cordwood.cli.convert import logs

logs.Logs.read_again = lambda *_: os.kill(os.getpid(), signal.SIGTERM)
main(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a process of Windows at once")
def test_no_unfinished_table_is_left_after_a_signal(directory):
    command = [sys.executable, "-c", END_AT_ROWS, "convert", "--as", "entity", "--by-kind", "t", "export"]
    done = subprocess.run(command, timeout=120, check=False)
    assert (done.returncode, list((directory / "t").iterdir())) == (-signal.SIGTERM, [])


def test_converting_by_kind_rejects_a_table_name_as_the_destination(directory, capsys):
    assert main(["convert", "--as", "entity", "--by-kind", "out.csv", "export"]) == 2
    advice = "name a directory, and the form of the tables with --to csv"
    assert f"cordwood: out.csv has the name of a table, and --by-kind makes a directory of them: {advice}" in (
        capsys.readouterr().err
    )
    assert not (directory / "out.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--as", "json"], "--by-kind is for entities: --as entity"),
        (["--as", "entity", "--limit", "1"], "--columns and --limit are for one table"),
        (["--as", "entity", "--columns", "a"], "--columns and --limit are for one table"),
        (["--as", "entity", "-"], "can be read only once, and --by-kind reads all files twice"),
    ],
)
def test_converting_by_kind_rejects_conflicting_options(arguments, message, capsys):
    assert main(["convert", "--by-kind", "t", "export", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_duckdb_statements_in_the_guide_work(directory):
    duckdb = pytest.importorskip("duckdb")
    assert main(["convert", "--as", "entity", "--by-kind", "tables", "export"]) == 0
    [lines] = re.findall(r"```sql\n(-- DuckDB\n.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    database = duckdb.connect("books.duckdb")
    for statement in lines.split(";"):
        if statement.strip():
            found = database.sql(statement)
    assert found.fetchall() == [("a", 6), ("b", 6)]
    assert (directory / "books.duckdb").exists()
