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
from real_files import OLD_RUNS

import cordwood

pq = pytest.importorskip("pyarrow.parquet")

COMMAND = [sys.executable, "-m", "cordwood", "convert"]
KEY_COLUMNS = ["__file__", "__kind__", "__id__", "__name__", "__path__", "__key__"]


def values_of(chance, number):
    """Of one entity: types differ from file to file, and any of the values may be missing."""
    values = {
        "count": chance.randrange(-(2**40), 2**40),
        # Integers in some files, floating-point numbers in others.
        "ratio": number if number % 2 else number / 8,
        "done": chance.random() < 0.5,
        "name": chance.choice(["", "ä", "x" * 300]),
        "raw": chance.randbytes(5),
        "due": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(10**15)),
        # No type is that of all of them.
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
    """A value that was written, as the table should have it."""
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
    """A value of a table, without what only other rows have."""
    if isinstance(value, dict):
        return {name: without_none(item) for name, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


def test_200_files_of_an_export(tmp_path):
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
    assert done.stderr == f"cordwood: the column mixed has values of several types, and is JSON in a text: {types}\n"
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


def test_50_runs_of_three_releases_of_which_one_was_killed(tmp_path):
    store = pytest.importorskip("wandb.sdk.internal.datastore")
    messages = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    environment = {"WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path), "WANDB_SILENT": "true", "HOME": str(tmp_path)}
    made = [sys.executable, "-c", RUNS]
    subprocess.run(made, env=os.environ | environment, capture_output=True, check=True, timeout=400)
    paths = sorted(tmp_path.glob("wandb/offline-run-*/run-*.wandb"))
    # Those that `tools/wandb_run.py` wrote with wandb 0.12.21 and 0.17.9, whose messages have no nested keys.
    for param in OLD_RUNS:
        paths.append(Path(shutil.copy(*param.values, tmp_path / "wandb")))
    assert len(paths) == 50
    # The run r17 ends within a record, which is that of its tenth step: wandb's own reader says where that is.
    [killed] = [path for path in paths if path.name == "run-r17.wandb"]
    reader = store.DataStore()
    reader.open_for_scan(str(killed))
    count = 0
    while count < 10:
        message = messages.Record.FromString(bytes(reader.scan_data()))
        count += message.WhichOneof("record_type") == "history"
    os.truncate(killed, reader._index - 3)  # noqa: SLF001 - it says so nowhere else
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
