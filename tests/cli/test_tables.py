"""Many files in one table: 200 files of an export, and 50 runs made by wandb, against the values that were written."""

import json
import os
import random
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import entities
import pytest
import reference
from real_files import OLD_RUNS

import cordwood
from cordwood.cli import main

pq = pytest.importorskip("pyarrow.parquet")

COMMAND = [sys.executable, "-m", "cordwood", "convert"]
KEY_COLUMNS = ["__file__", "__kind__", "__id__", "__name__", "__path__", "__key__"]


def values_of(chance, number):
    """One entity's values: types differ from file to file, and any value may be missing."""
    values = {
        "count": chance.randrange(-(2**40), 2**40),
        # Integers in some files, floating-point numbers in others.
        "ratio": number if number % 2 else number / 8,
        "done": chance.random() < 0.5,
        "name": chance.choice(["", "ä", "x" * 300]),
        "raw": chance.randbytes(5),
        "due": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(10**15)),
        # No single type fits all of them.
        "mixed": chance.choice([1, "one", True, 0.5, {"one": 1}, [1, "one"]]),
        "tags": [chance.choice("abc") for _ in range(chance.randrange(1, 4))],
        "scores": [chance.choice([1, 0.25]) for _ in range(2)],
        "owner": entities.Key([("Group", chance.randrange(1, 9)), ("User", chance.choice(["eve", "bob"]))]),
        "spot": entities.Place((chance.random(), chance.random())),
        "address": {"city": chance.choice(["Bern", "Biel"]), f"line{number % 3}": "x", "geo": {"level": number}},
        "moves": [{"x": 1}, {"x": 2, "y": "up"}, None],
        f"only{number // 50}": number,
    }
    return {name: value for name, value in values.items() if chance.random() < 0.9}


def in_parquet(name, value):
    """A written value, as the table should contain it."""
    if name == "mixed" and value is not None:
        return json.dumps(value, separators=(",", ":"))
    match value:
        case entities.Key():
            path = [{"kind": kind, ("name" if isinstance(last, str) else "id"): last} for kind, last in value]
            return {"app": "s~app", "path": path}
        case entities.Place():
            return {"latitude": value[0], "longitude": value[1]}
        case _:
            return value


def without_none(value):
    """A value from a table, without the fields that only other rows have."""
    if isinstance(value, dict):
        return {name: without_none(item) for name, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


def test_200_export_files_are_combined_into_one_table(tmp_path):
    chance = random.Random(18)
    expected = []
    (tmp_path / "export").mkdir()
    for number in range(200):
        path = tmp_path / f"export/output-{number:03}"
        with cordwood.open(path, "x") as writer:
            for index in range(chance.randrange(1, 12)):
                key = [("Task", f"n{index}" if number % 5 == 0 else index + 1)]
                values = values_of(chance, number)
                writer.append(entities.entity(key, values))
                [(kind, last)] = key
                path_of_key = [{"kind": kind, ("name" if isinstance(last, str) else "id"): last}]
                expected.append(
                    {
                        "__file__": str(path),
                        "__kind__": kind,
                        ("__name__" if isinstance(last, str) else "__id__"): last,
                        "__path__": f"{kind}/{last}",
                        "__key__": {"app": "s~app", "path": path_of_key},
                        **{name: in_parquet(name, value) for name, value in values.items()},
                    }
                )
    to = tmp_path / "t.parquet"
    command = [*COMMAND, "--as", "entity", tmp_path / "export", to]
    done = subprocess.run(command, capture_output=True, check=True, timeout=120, text=True)
    types = "bool, float, int, list, object, text"
    assert done.stderr == f"cordwood: the column mixed has values of several types, and is stored as JSON: {types}\n"
    table = pq.read_table(to)
    table.validate(full=True)
    assert table.column_names[:6] == KEY_COLUMNS
    assert {
        name: str(table.schema.field(name).type)
        for name in ("ratio", "due", "tags", "scores", "address", "moves", "only3")
    } == {
        "ratio": "double",
        "due": "timestamp[us, tz=UTC]",
        "tags": "list<element: string>",
        "scores": "list<element: double>",
        "address": "struct<city: string, line0: string, geo: struct<level: int64>, line1: string, line2: string>",
        "moves": "list<element: struct<x: int64, y: string>>",
        "only3": "int64",
    }
    assert [without_none(row) for row in table.to_pylist()] == expected

    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    levels = [row["address"]["geo"]["level"] for row in expected if "address" in row]
    tags = sum(len(row.get("tags", ())) for row in expected)
    query = f"select count(*), sum(address.geo.level), sum(len(tags)), count(distinct __file__) from '{to}'"  # noqa: S608
    assert duckdb.sql(query).fetchall() == [(len(expected), sum(levels), tags, 200)]
    frame = polars.read_parquet(to)
    assert frame.shape == (len(expected), table.num_columns)
    assert frame["address"].struct.field("geo").struct.field("level").sum() == sum(levels)
    assert [without_none(row["moves"]) for row in frame.select("moves").to_dicts()] == [
        row.get("moves") for row in expected
    ]


RUNS = """
import wandb
settings = wandb.Settings(console="off", x_disable_stats=True, x_disable_meta=True)
for number in range(48):
    with wandb.init(project="p", id=f"r{number:02}", settings=settings) as run:
        for step in range(20):
            values = {"loss": step / 7, "n": number, "nested": {"a": step}, f"only{number % 3}": f"s{step}"}
            if number % 10 == 0:
                values["sizes"] = [step, 0.5]
            run.log(values)
"""


def test_50_runs_from_three_releases_are_combined_into_one_table(tmp_path):
    store = pytest.importorskip("wandb.sdk.internal.datastore")
    messages = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    environment = {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "WANDB_SILENT": "true", "HOME": str(tmp_path)}
    made = [sys.executable, "-c", RUNS]
    subprocess.run(made, env=os.environ | environment, capture_output=True, check=True, timeout=400)
    paths = sorted(tmp_path.glob("wandb/offline-run-*/run-*.wandb"))
    # The runs that `tools/wandb_run.py` wrote with wandb 0.12.21 and 0.17.9, whose messages have no nested keys.
    for param in OLD_RUNS:
        paths.append(Path(shutil.copy(*param.values, tmp_path / "wandb")))
    assert len(paths) == 50
    # Run r17 is cut within the record of its tenth step, which wandb's own reader locates.
    [killed] = [path for path in paths if path.name == "run-r17.wandb"]
    reader = store.DataStore()
    reader.open_for_scan(str(killed))
    count = 0
    while count < 10:
        message = messages.Record.FromString(bytes(reader.scan_data()))
        count += message.WhichOneof("record_type") == "history"
    os.truncate(killed, reader._index - 3)  # noqa: SLF001 - it has no public offset
    reader.close()

    to = tmp_path / "t.parquet"
    command = [*COMMAND, "--as", "wandb-history", tmp_path / "wandb", to]
    done = subprocess.run(command, capture_output=True, check=True, timeout=120, text=True)
    assert f"{killed.name}: at " in done.stderr
    assert "an incomplete record at the end of the file" in done.stderr
    table = pq.read_table(to)
    found = {}
    for row in table.to_pylist():
        assert row.pop("_timestamp") > 1_700_000_000
        assert row.pop("_runtime") >= 0
        found.setdefault(row.pop("run_id"), []).append(without_none(row))
    expected = {
        f"r{number:02}": [
            {
                "_step": step,
                "loss": step / 7,
                "n": number,
                "nested.a": step,
                f"only{number % 3}": f"s{step}",
                **({"sizes": [step, 0.5]} if number % 10 == 0 else {}),
            }
            for step in range(9 if number == 17 else 20)
        ]
        for number in range(48)
    }
    for release in ("0.12.21", "0.17.9"):
        expected[release] = [
            {"_step": step, "loss": 1 / (step + 1), "step_text": f"s{step}", "nested": {"a": step, "b": [step, 0.5]}}
            for step in range(8)
        ]
    assert found == expected
    assert str(table.schema.field("sizes").type) == "list<element: double>"


def export_of(directory, seed, file_count=12, late=False):
    """An export whose files differ in their columns from the start or, if `late`, also in their last entity."""
    chance = random.Random(seed)
    directory.mkdir()
    for number in range(file_count):
        with cordwood.open(directory / f"output-{number:03}", "x") as writer:
            for index in range(chance.randrange(1, 400)):
                writer.append(entities.entity([("Task", index + 1)], values_of(chance, number)))
            if late:
                # The last entity comes after more than is read to determine the columns.
                writer.extend([entities.entity([("Task", 1)], {"name": "x" * 1_000})] * 200)
                last = {"count": 0.5, "new": 1, "address": {"new": [{"x": number}]}}
                writer.append(entities.entity([("Task", 1)], last))


def test_other_files_in_export_directories_are_reported_once(tmp_path, capfd):
    export_of(tmp_path / "export", seed=7, late=True)
    (tmp_path / "export/readme.txt").write_text("This is not a log. " * 100)
    (tmp_path / "export/zeros").write_bytes(bytes(40_000))
    (tmp_path / "export/x.overall_export_metadata").write_bytes(reference.encode([b"3", b""]))
    assert main(["convert", "--as", "entity", str(tmp_path / "export"), str(tmp_path / "t.parquet")]) == 0
    assert capfd.readouterr().err.count("2 files are not logs: only zeros (1), text (1)") == 1
    assert pq.read_table(tmp_path / "t.parquet").num_rows > 1_000


@pytest.mark.parametrize("what", ["junk", "damage", "torn"])
def test_converting_reports_each_fault_once(what, tmp_path, capfd):
    """Each problem is reported once, and the exit status says that data was left out."""
    export_of(tmp_path / "export", seed=8, file_count=3)
    path = tmp_path / "export/output-001"
    if what == "junk":
        with cordwood.open(path, "a") as writer:
            writer.append(b"junk")
    elif what == "damage":
        data = bytearray(path.read_bytes())
        data[100] ^= 1
        path.write_bytes(data)
    else:
        path.write_bytes(path.read_bytes()[:-3])
    to = tmp_path / "t.parquet"
    status = main(["convert", "--as", "entity", str(tmp_path / "export"), str(to)])
    assert status == (0 if what == "torn" else 3)
    lines = [line for line in capfd.readouterr().err.splitlines() if "output-001" in line]
    assert len(lines) == len(set(lines))
    assert lines
    assert pq.read_table(to).num_rows > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["export", "t.parquet"]
    assert main(["convert", "--strict", "--overwrite", "--as", "entity", str(tmp_path / "export"), str(to)]) == 3


def test_converting_reports_a_file_that_contains_records_of_another_log(tmp_path, capfd):
    """None of it is in the table: its name says 9, but its records are from log 6."""
    export_of(tmp_path / "export", seed=9, file_count=2)
    with cordwood.open(tmp_path / "log", "x", dialect="rocksdb", log_number=6) as writer:
        writer.append(entities.entity([("Task", 1)], {"count": 1}))
    (tmp_path / "log").rename(tmp_path / "export/000009.log")
    assert main(["convert", "--as", "entity", str(tmp_path / "export"), str(tmp_path / "t.parquet")]) == 3
    expected = "export/000009.log: the whole file belongs to log 6; the name says 9; to read it: --log-number 6\n"
    assert expected in capfd.readouterr().err


def test_stdin_is_not_mistaken_for_a_file_named_dash(tmp_path, monkeypatch):
    """Exports of several files are read twice, which stdin cannot be."""
    export_of(tmp_path / "export", seed=9, file_count=2)
    monkeypatch.chdir(tmp_path / "export")
    shutil.copy("output-001", "-")
    with Path("output-000").open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert main(["convert", "--as", "entity", "-", "output-001", str(tmp_path / "t.parquet")]) == 2
    assert not (tmp_path / "t.parquet").exists()


def test_a_single_unusual_row_does_not_disable_dictionary_encoding(tmp_path):
    """The first batch decides for all, but one row is too few to decide by."""
    (tmp_path / "export").mkdir()
    for number, count in enumerate([1, 3_000]):
        with cordwood.open(tmp_path / f"export/output-{number}", "x") as writer:
            writer.extend(entities.entity([("Task", index + 1)], {"color": "red"}) for index in range(count))
    assert main(["convert", "--as", "entity", str(tmp_path / "export"), str(tmp_path / "t.parquet")]) == 0
    group = pq.read_metadata(tmp_path / "t.parquet").row_group(1)
    columns = {group.column(number).path_in_schema: group.column(number) for number in range(group.num_columns)}
    assert columns["color"].has_dictionary_page


def test_parquet_columns_with_repeated_values_have_a_dictionary(tmp_path):
    """For other columns, the dictionary would be longer than the column."""
    log, to = tmp_path / "output-0", tmp_path / "t.parquet"
    with cordwood.open(log, "x") as writer:
        for number in range(1_000):
            names = [f"red {number % 3}", "blue"]
            place = {"city": "Bern" if number % 2 else "Biel", "id": number}
            rare = {"rare": 5} if number > 997 else {}
            values = {"once": f"text {number}", "often": number % 10, "names": names, "place": place, "none": None}
            writer.append(entities.entity([("Task", f"id{number}")], values | rare))
    assert main(["convert", "--as", "entity", str(log), str(to)]) == 0
    group = pq.read_metadata(to).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    has_dictionary = {column.path_in_schema: column.has_dictionary_page for column in columns}
    plain = {name for name, has in has_dictionary.items() if not has and not name.startswith("__key__")}
    assert plain == {"__name__", "__path__", "once", "place.id"}
    assert {
        "often",
        "names.list.element",
        "place.city",
        "rare",
        "none",
        "__kind__",
        "__key__.path.list.element.kind",
    } <= {name for name, has in has_dictionary.items() if has}
    assert pq.read_table(to)["names"].to_pylist()[5] == ["red 2", "blue"]
