"""`cordwood convert --as entity --by-kind`: a table for each kind."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from entities import entity

import cordwood
from cordwood.cli import main

pq = pytest.importorskip("pyarrow.parquet")

GUIDE = Path(__file__).parents[2] / "docs/guides/databases.md"
KEY = ["__file__", "__kind__", "__id__", "__name__", "__path__", "__key__"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with an export of two files, in which entities of two kinds take turns."""
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


def test_each_table_has_the_rows_and_the_columns_of_its_kind(folder):
    assert main(["convert", "--as", "entity", "--by-kind", "tables", "export"]) == 0
    books, orders = pq.read_table("tables/books.parquet"), pq.read_table("tables/Über%2FOrders.parquet")
    assert sorted(path.name for path in (folder / "tables").iterdir()) == ["books.parquet", "Über%2FOrders.parquet"]
    assert books.column_names == [*KEY, "title", "pages", "tags"]
    assert orders.column_names == [*KEY, "price", "at"]
    assert books.column("title").to_pylist() == ["t00", "t01", "t02", "t10", "t11", "t12"]
    assert orders.column("__id__").to_pylist() == [1, 2, 3, 11, 12, 13]
    assert {str(orders.schema.field("price").type), str(books.schema.field("pages").type)} == {"double", "int64"}
    one = folder / "one.parquet"
    assert main(["convert", "--as", "entity", "export", str(one)]) == 0
    rows = pq.read_table(one).to_pylist()
    for table in books, orders:
        [kind] = set(table.column("__kind__").to_pylist())
        wanted = [{name: row[name] for name in table.column_names} for row in rows if row["__kind__"] == kind]
        assert table.to_pylist() == wanted


def test_other_forms(folder):
    assert main(["convert", "--as", "entity", "--by-kind", "t", "--to", "ndjson", "export/output-0"]) == 0
    rows = [json.loads(line) for line in (folder / "t/books.ndjson").read_text().splitlines()]
    assert [row["title"] for row in rows] == ["t00", "t01", "t02"]
    assert main(["convert", "--as", "entity", "--by-kind", "t", "--to", "csv", "export/output-0"]) == 0
    assert (folder / "t/books.csv").read_text().splitlines()[0] == ",".join([*KEY, "title", "pages", "tags"])


@pytest.mark.parametrize(
    ("kind", "name"), [("..", "%2E."), ("a\x00b", "a%00b"), ("100%", "100%25"), ("CON|", "CON%7C")]
)
def test_a_kind_is_no_path(kind, name, folder):
    with cordwood.open("some", "x") as log:
        log.append(entity([(kind, 1)], {"a": 1}))
    assert main(["convert", "--as", "entity", "--by-kind", "t", "some"]) == 0
    assert [path.name for path in (folder / "t").iterdir()] == [f"{name}.parquet"]


def test_nothing_is_replaced_and_nothing_is_left_after_an_error(folder, capsys):
    command = ["convert", "--as", "entity", "--by-kind", "t", "export"]
    (folder / "t").mkdir()
    (folder / "t/Über%2FOrders.parquet").write_bytes(b"mine")
    assert main(command) == 1
    assert "File exists" in capsys.readouterr().err
    assert [path.name for path in (folder / "t").iterdir()] == ["Über%2FOrders.parquet"]
    assert main([*command, "--overwrite"]) == 0
    assert len(pq.read_table("t/Über%2FOrders.parquet")) == 6


def test_damage_is_reported_and_costs_only_its_record(folder, capsys):
    path = folder / "export/output-1"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    assert main(["convert", "--as", "entity", "--by-kind", "t", "--on-corruption", "salvage", "export"]) == 3
    assert "export/output-1: at 0" in capsys.readouterr().err
    assert pq.read_table("t/books.parquet").column("title").to_pylist() == ["t00", "t01", "t02", "t11", "t12"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--as", "json"], "--by-kind is for entities: --as entity"),
        (["--as", "entity", "--limit", "1"], "--columns and --limit are for one table"),
        (["--as", "entity", "--columns", "a"], "--columns and --limit are for one table"),
        (["--as", "entity", "-"], "can be read only once, and --by-kind reads all files twice"),
    ],
)
def test_options_that_do_not_go_together(arguments, message, capsys):
    assert main(["convert", "--by-kind", "t", "export", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_lines_for_duckdb_in_the_guide(folder):
    duckdb = pytest.importorskip("duckdb")
    assert main(["convert", "--as", "entity", "--by-kind", "tables", "export"]) == 0
    [lines] = re.findall(r"```sql\n(-- DuckDB\n.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    database = duckdb.connect("books.duckdb")
    for statement in lines.split(";"):
        if statement.strip():
            found = database.sql(statement)
    assert found.fetchall() == [("a", 6), ("b", 6)]
    assert (folder / "books.duckdb").exists()
