"""`--limit` and `--columns`: cases that no console session shows."""

import pytest

import cordwood
from cordwood.cli import main


@pytest.fixture
def tables(tmp_path):
    """Two runs: one with five steps, and one with another column."""

    def field(number, value):
        tag = number << 3 | 2
        return (bytes([tag]) if tag < 128 else bytes([tag & 0x7F | 0x80, tag >> 7])) + bytes([len(value)]) + value

    def step(**values):
        items = (field(2, name.encode()) + field(16, value.encode()) for name, value in values.items())
        return field(2, b"".join(field(1, item) for item in items))

    for run, steps in {
        "a": [step(_step=str(number), loss=str(number / 2)) for number in range(5)],
        "b": [step(_step="0", acc='"high"')],
    }.items():
        (tmp_path / "runs").mkdir(exist_ok=True)
        with cordwood.open(tmp_path / f"runs/run-{run}.wandb", "x", dialect="wandb") as writer:
            writer.extend(steps)
    return tmp_path / "runs"


def converted(tables, *options, status=0):
    to = tables.parent / "t.csv"
    assert main(["convert", "--as", "wandb-history", "--overwrite", *options, str(tables), str(to)]) == status
    return to.read_text() if status == 0 else None


def test_the_limit_counts_the_rows_of_all_logs(tables, capfd):
    assert converted(tables, "--limit", "2") == "run_id,_step,loss\na,0,0.0\na,1,0.5\n"
    path = tables / "run-a.wandb"
    with cordwood.open(path) as reader:
        end = list(reader.records())[1].end_offset
    assert capfd.readouterr().err == (
        f"cordwood: {path}: stopped at offset {end}, after 2 rows, as --limit says; the rest was not read\n"
    )
    # The limit is for all logs together.
    assert converted(tables, "--limit", "6", "--columns", "acc,run_id").splitlines()[-2:] == [",a", "high,b"]
    assert converted(tables, "--columns", "los", status=2) is None
    assert "there is no column los, only run_id, _step, loss, acc; did you mean loss?" in capfd.readouterr().err


def test_finishes_the_current_run_before_stopping_at_the_limit(tables, capfd):
    """A row is complete only after the run's last record, so only other runs are left unread."""
    to = tables.parent / "t.csv"
    assert main(["convert", "--as", "wandb-summary", "--limit", "1", str(tables), str(to)]) == 0
    assert to.read_text() == "run_id\na\n"
    text = f"{tables / 'run-b.wandb'}: stopped before it was read, after 1 row, as --limit says"
    assert capfd.readouterr().err == f"cordwood: {text}; the rest was not read\n"


def test_the_convert_command_lists_the_files_that_share_a_run_id(tables, capfd):
    assert converted(tables, "--columns", "_step").count("\n") == 7
    assert capfd.readouterr().err == ""
    (tables / "copies").mkdir()
    for run in "ab":
        (tables / f"copies/run-{run}.wandb").write_bytes((tables / f"run-{run}.wandb").read_bytes())
    assert converted(tables).count("\n") == 13
    assert capfd.readouterr().err.splitlines() == [
        *(
            f"cordwood: {tables}/copies/run-{run}.wandb and {tables}/run-{run}.wandb have the same run_id, as parts of "
            "a run or copies do"
            for run in "ab"
        ),
        "cordwood: the column __file__, if --columns names it, says which file a row is from",
    ]
    rows = converted(tables, "--columns", "acc,__file__").splitlines()
    assert (rows[0], rows[1], rows[6]) == (
        "acc,__file__",
        f",{tables}/copies/run-a.wandb",
        f"high,{tables}/copies/run-b.wandb",
    )
    assert capfd.readouterr().err == ""
    to = str(tables.parent / "t.ndjson")
    assert main(["convert", "--as", "wandb-output", "--columns", "__file__,line", str(tables), to]) == 0


def test_the_limit_applies_to_a_parquet_table(tables):
    pq = pytest.importorskip("pyarrow.parquet")
    to = tables.parent / "t.parquet"
    options = ["--limit", "3", "--columns", "loss,run_id,_step"]
    assert main(["convert", "--as", "wandb-history", *options, str(tables), str(to)]) == 0
    table = pq.read_table(to)
    assert {name: str(table.schema.field(name).type) for name in table.column_names} == {
        "loss": "double",
        "run_id": "string",
        "_step": "int64",
    }
    assert table.to_pydict() == {"loss": [0.0, 0.5, 1.0], "run_id": ["a"] * 3, "_step": [0, 1, 2]}


def test_an_empty_table_still_has_the_requested_columns(tmp_path):
    (tmp_path / "run-a.wandb").touch()
    to = tmp_path / "t.csv"
    command = ["convert", "--as", "wandb-history", "--columns", "loss,_step", "--dialect", "wandb"]
    assert main([*command, str(tmp_path / "run-a.wandb"), str(to)]) == 0
    assert to.read_text() == "loss,_step\n"


def test_fields_column_of_version_edits_can_be_in_any_position(tmp_path, capfd):
    """They are written while they are made, which is possible only at the end of a row."""
    path = tmp_path / "MANIFEST-000001"
    with cordwood.open(path, "x") as writer:
        writer.extend([b"\x02\x04", b"\x02\x05", b"\x03\x09"])
    command = ["convert", "--as", "version-edit", "--columns", "fields,offset", "--limit", "2"]
    assert main([*command, str(path)]) == 0
    assert capfd.readouterr().out.splitlines() == [
        '{"fields":[{"kind":"log_number","tag":2,"value":4}],"offset":0}',
        '{"fields":[{"kind":"log_number","tag":2,"value":5}],"offset":9}',
    ]


def test_a_follower_ends_when_it_reaches_the_limit(tmp_path, capfd):
    """It does not wait for more records."""
    path = tmp_path / "live.log"
    with cordwood.open(path, "x") as writer:
        writer.extend([b"one", b"two", b"three"])
    assert main(["follow", "--limit", "2", str(path)]) == 0
    assert capfd.readouterr().out == "one\ntwo\n"


def test_damage_after_the_limit_is_not_reported(tmp_path, capfd):
    pq = pytest.importorskip("pyarrow.parquet")
    path, to = tmp_path / "a.log", tmp_path / "t.parquet"
    with cordwood.open(path, "x") as writer:
        writer.extend([b"one", b"two", b"three"])
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert main(["convert", "--as", "raw", "--limit", "2", str(path), str(to)]) == 0
    assert pq.read_table(to)["data"].to_pylist() == [b"one", b"two"]
    assert main(["cat", "--limit", "2", str(path)]) == 0
    assert "left out" not in capfd.readouterr().err
    assert main(["cat", "--limit", "3", str(path)]) == 3
