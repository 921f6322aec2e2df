"""The records of a run of wandb: beside what was logged, and what wandb's own reader finds."""

import json
import math
import subprocess
import sys

import pytest
from google.protobuf.json_format import MessageToDict
from real_engines import offline_run, scan_wandb
from real_files import RUNS, corpus
from wandb.proto.wandb_internal_pb2 import ConfigRecord, HistoryRecord, Record, RunRecord, SummaryRecord

import cordwood
from cordwood.errors import PayloadError
from cordwood.payload import wandb

RUN = """
import wandb
run = wandb.init(
    project="test", config={"lr": 0.1, "model": {"depth": 3}}, settings=wandb.Settings(console="off")
)
run.config.late = [1, 2]
for step in range(20):
    run.log({
        "loss": 1 / (step + 1), "count": step, "nested": {"a": step, "b": {"text": "\\u00e4"}}, "nan": float("nan"),
        "large": 2**60, "flag": step % 2 == 0, "list": [1, 2.5],
    })
run.log({"rare": None}, step=100)
run.summary["best"] = {"loss": 0.05}
run.finish()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return offline_run(folder, RUN)


def messages_in(path):
    """The messages of a file, found by wandb's own reader and parsed by its own protocol."""
    return [Record.FromString(record) for record in scan_wandb(path)]


def message_of(**fields):
    return Record(**fields).SerializeToString()


def item(message, path, value):
    """Adds a value to a message: a `HistoryRecord`'s `item`, or the `update` of another."""
    added = message.add()
    if isinstance(path, str):
        added.key = path
    else:
        added.nested_key.extend(path)
    added.value_json = value if isinstance(value, str) else json.dumps(value)


def test_the_history_is_what_was_logged(run):
    with cordwood.open(run) as reader:
        rows = list(wandb.history(reader))
        assert (reader.outcome.kind, reader.skipped_len) == ("clean", 7)
    assert len(rows) == 21
    for step, row in enumerate(rows[:-1]):
        assert math.isnan(row.pop("nan"))
        assert 1.7e9 < row.pop("_timestamp") < 1e10
        assert 0 <= row.pop("_runtime") < 60
        nested = {"nested.a": step, "nested.b.text": "ä"}
        plain = {"loss": 1 / (step + 1), "count": step, "large": 2**60, "flag": step % 2 == 0, "list": [1, 2.5]}
        assert row == {**plain, **nested, "_step": step}
    assert (rows[-1]["_step"], rows[-1]["rare"]) == (100, None)


def test_summary_and_configuration(run):
    summary = wandb.summary(cordwood.open(run))
    assert math.isnan(summary.pop("nan"))
    for name in "_timestamp", "_runtime", "_wandb":
        del summary[name]
    # It has no values that are none.
    assert summary == {
        "loss": 1 / 20,
        "count": 19,
        "large": 2**60,
        "flag": False,
        "list": [1, 2.5],
        "_step": 100,
        "nested": {"a": 19, "b": {"text": "ä"}},
        "best": {"loss": 0.05},
    }
    config = wandb.config(cordwood.open(run))
    assert config.pop("_wandb") is not None
    assert config == {"lr": 0.1, "model": {"depth": 3}, "late": [1, 2]}


@pytest.mark.parametrize("path", [pytest.param(None, id="made here"), *RUNS])
def test_each_record_is_what_wandb_reads(path, request):
    path = path or request.getfixturevalue("run")
    messages = list(messages_in(path))
    with cordwood.open(path) as reader:
        records = list(reader)
    assert [wandb.decode(record) for record in records] == messages
    expected = [MessageToDict(message, preserving_proto_field_name=True) for message in messages]
    assert [wandb.to_dict(record) for record in records] == expected
    assert len(messages) >= 10
    # As JSON, with nothing that JSON does not have.
    assert json.loads(json.dumps(expected, allow_nan=False)) == expected


@pytest.mark.parametrize("path", corpus("wandb/offline-run/run-g9dvvkua.wandb"))
def test_a_run_without_history(path):
    assert list(wandb.history(cordwood.open(path))) == []
    assert wandb.summary(cordwood.open(path)) == {}
    assert wandb.config(cordwood.open(path)) == {"_wandb": {"code_path": "code/standalone_tests/code-toad.py"}}


def test_steps_of_older_versions():
    # They had a key of one part, and the step beside the values.
    history = HistoryRecord()
    item(history.item, "loss", 0.5)
    history.step.num = 7
    assert wandb.history_row(message_of(history=history)) == {"loss": 0.5, "_step": 7}
    assert wandb.history_row(message_of()) is None


def test_values_that_are_replaced_and_removed():
    first, second, config = SummaryRecord(), SummaryRecord(), ConfigRecord()
    for path, value in [("a", 1), (["b", "c"], 2), (["b", "d"], 3), ("e", 4)]:
        item(first.update, path, value)
    item(second.update, ["a", "x"], 5)
    item(second.update, "b", {"f": 6})
    item(second.update, ["b", "g", "h"], 7)
    second.remove.add().key = "e"
    second.remove.add().nested_key.extend(["b", "f"])
    second.remove.add().nested_key.extend(["none", "of", "these"])
    item(config.update, "lr", 0.1)
    records = [message_of(summary=first), message_of(config=config), message_of(summary=second)]
    assert wandb.summary(records) == {"a": {"x": 5}, "b": {"g": {"h": 7}}}
    assert wandb.config(records) == {"lr": 0.1}


def test_bytes_that_wandb_does_not_know_are_counted():
    known = message_of(num=5)
    assert wandb.to_dict(known) == {"num": "5"}
    assert wandb.to_dict(known + b"\xfa\x3f\x03abc") == {"num": "5", "unknown_len": 6}
    inside = HistoryRecord()
    inside.MergeFromString(b"\xfa\x3f\x01x")
    assert wandb.to_dict(message_of(history=inside))["unknown_len"] == 4


def test_what_is_no_record_of_wandb():
    twice, no_json, deep, deeper = (HistoryRecord() for _ in range(4))
    item(twice.item, ["a", "b"], 1)
    item(twice.item, "a.b", 2)
    item(no_json.item, "a", "{")
    item(deep.item, "a", "[" * 100_000)
    item(deeper.item, "a", "[" * 101 + "]" * 101)
    for record, reason, text in [
        (b"\xff", "bad_wire_type", "not a record of wandb"),
        (message_of(history=twice), "non_canonical", "two values have the name 'a.b'"),
        (message_of(history=no_json), "non_canonical", "the value of 'a' is not JSON"),
        (message_of(history=deep), "too_deep", "the value of 'a' has more than 100 levels"),
        (message_of(history=deeper), "too_deep", "the value of 'a' has more than 100 levels"),
    ]:
        with pytest.raises(PayloadError, match=text) as caught:
            list(wandb.history([record]))
        assert (caught.value.offset, caught.value.length, caught.value.reason) == (0, len(record), reason)


def test_as_deep_as_it_may_be():
    history = HistoryRecord()
    item(history.item, "a", '{"a":' * 50 + "[" * 50 + "1" + "]" * 50 + "}" * 50)
    assert wandb.history_row(message_of(history=history)).keys() == {"a"}


@pytest.mark.parametrize("form", ["cat --as wandb", "convert --as wandb", "convert --as wandb-history --to csv"])
def test_one_bad_record_between_good_ones(form, tmp_path):
    path = tmp_path / "run.wandb"
    good, deep, late = HistoryRecord(), HistoryRecord(), RunRecord()
    item(good.item, "loss", 1.0)
    item(deep.item, "loss", "[" * 900 + "]" * 900)
    late.start_time.seconds = 10**15
    bad = message_of(history=deep) if "history" in form else message_of(run=late)
    with cordwood.open(path, "x", dialect="wandb") as writer:
        writer.extend([message_of(history=good), bad, message_of(history=good)])
    command = [sys.executable, "-m", "cordwood", *form.split(), str(path)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120, text=True)
    assert done.returncode == 3, done.stderr
    assert done.stdout.count("1.0") == 2
    assert done.stderr.count("\n") == 1
    assert "the record at offset" in done.stderr


def test_a_path_is_a_run(tmp_path):
    path = tmp_path / "run.wandb"
    history, summary, config = HistoryRecord(), SummaryRecord(), ConfigRecord()
    item(history.item, "loss", 0.5)
    item(summary.update, "loss", 0.5)
    item(config.update, "lr", 0.1)
    with cordwood.open(path, "x", dialect="wandb") as writer:
        writer.extend(map(bytes, [
            message_of(history=history), message_of(summary=summary), message_of(config=config)
        ]))  # fmt: skip
    for source in path, str(path):
        assert list(wandb.history(source)) == [{"loss": 0.5}]
        assert (wandb.summary(source), wandb.config(source)) == ({"loss": 0.5}, {"lr": 0.1})
    for function in (lambda records: list(wandb.history(records)), wandb.summary, wandb.config):
        with pytest.raises(TypeError, match="path of the file"):
            function(path.read_bytes())


def test_one_bad_value_does_not_drop_the_step(tmp_path):
    path = tmp_path / "run.wandb"
    history = HistoryRecord()
    for name, value in [("loss", "0.5"), ("bad", ""), ("loss", "1"), ("deep", "[" * 900 + "]" * 900), ("_step", "3")]:
        item(history.item, [name], value)
    errors = []
    assert wandb.history_row(message_of(history=history), errors) == {"loss": 0.5, "_step": 3}
    assert [error.reason for error in errors] == ["non_canonical", "non_canonical", "too_deep"]
    with cordwood.open(path, "x", dialect="wandb") as writer:
        writer.append(message_of(history=history))
    for form, expected in [("ndjson", '{"loss":0.5,"_step":3}\n'), ("csv", "loss,_step\n0.5,3\n")]:
        command = [sys.executable, "-m", "cordwood", "convert", "--as", "wandb-history", "--to", form, str(path)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120, text=True)
        assert (done.returncode, done.stdout) == (3, expected)
        lines = done.stderr.splitlines()
        assert len(lines) == 3
        for line, text in zip(
            lines, ["'bad' is not JSON", "two values have the name 'loss'", "'deep' has more"], strict=True
        ):
            assert "a value of the record at offset 7 is left out" in line
            assert text in line


def test_an_integer_of_thousands_of_digits():
    history = HistoryRecord()
    item(history.item, "a", "1" * 5_000)
    item(history.item, "b", "1" * 100)
    assert wandb.history_row(message_of(history=history)) == {"a": "1" * 5_000, "b": int("1" * 100)}
