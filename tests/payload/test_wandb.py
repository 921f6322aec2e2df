"""The records of a wandb run, compared with the logged values and with wandb's own reader and messages."""

import json
import math
import socket
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import naive_wandb
import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from naive_json import NaiveError
from real_engines import offline_program, offline_run, scan_wandb
from real_files import RUNS, corpus
from wandb.proto.wandb_internal_pb2 import (
    ConfigRecord,
    EnvironmentRecord,
    HistoryRecord,
    OutputRawRecord,
    OutputRecord,
    Record,
    RunRecord,
    StatsRecord,
    SummaryRecord,
)
from wandb.sdk.internal.datastore import DataStore

import cordwood
from cordwood._native import RecordDecoder
from cordwood.errors import PayloadError
from cordwood.payload import wandb

RUN = """
import sys
import time
import wandb
run = wandb.init(
    project="test",
    config={"lr": 0.1, "model": {"depth": 3}},
    settings=wandb.Settings(console="wrap", x_stats_sampling_interval=0.1),
)
run.config.late = [1, 2]
print("one", 1)
print("\\r50%", end="", file=sys.stderr)
print("tw\u00f6")
time.sleep(1)
for step in range(20):
    run.log({
        "loss": 1 / (step + 1), "count": step, "nested": {"a": step, "b": {"text": "\\u00e4"}}, "nan": float("nan"),
        "large": 2**60, "flag": step % 2 == 0, "list": [1, 2.5],
    })
run.log({"rare": None}, step=100)
run.summary["best"] = {"loss": 0.05}
run.finish()
"""


FUNCTIONS = (
    lambda records: list(wandb.history(records)),
    lambda records: list(wandb.metrics(records)),
    wandb.summary,
    wandb.config,
    wandb.output,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    return offline_run(directory, RUN)


def messages_in(path):
    """The messages of a file, read by wandb's own reader and parsed by its own protocol."""
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


def test_the_history_contains_the_logged_values(run):
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


@pytest.mark.parametrize("decode", ["wandb-run", "wandb-history"])
def test_scanning_a_wandb_directory_ignores_its_debug_logs(run, decode):
    """wandb writes texts with the names of logs, such as `debug.log`, beside the run."""
    pa = pytest.importorskip("pyarrow")
    directory = run.parents[1]
    assert list(directory.rglob("debug*.log"))
    table = pa.table(cordwood.scan(directory, decode=decode))
    run_id = run.stem.removeprefix("run-")
    assert table["run_id"].to_pylist() == [run_id] * {"wandb-run": 1, "wandb-history": 21}[decode]


def test_the_summary_and_the_config_contain_the_values_of_the_run(run):
    summary = wandb.summary(cordwood.open(run))
    assert math.isnan(summary.pop("nan"))
    for name in "_timestamp", "_runtime", "_wandb":
        del summary[name]
    # It contains no invalid values.
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


DESCRIBED = """
import sys
import wandb
run = wandb.init(
    project="proj", entity="team", id="r1", name="first", group="grp", job_type="train", tags=["a", "b"], notes="one",
)
run.log({"loss": 1})
run.tags += ("c d",)
run.notes = "two\\nlines"
run.finish(exit_code=int(sys.argv[1]))
"""


@pytest.mark.parametrize(("end", "state", "code"), [("0", "finished", 0), ("3", "failed", 3)])
def test_the_description_of_a_run_includes_its_command_commit_and_state(end, state, code, tmp_path):
    program = tmp_path / "train it.py"
    program.write_text(DESCRIBED, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    identity = ["-c", "user.email=a@example.org", "-c", "user.name=a"]
    subprocess.run(["git", "-C", tmp_path, *identity, "commit", "--quiet", "--allow-empty", "-m", "x"], check=True)
    head = subprocess.run(["git", "-C", tmp_path, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    start = datetime.now(UTC)
    path = offline_program(tmp_path, [program, end])
    found = wandb.run(path)
    assert abs(found.pop("start_time") - start) < timedelta(minutes=2)
    assert found == {
        "id": "r1",
        "name": "first",
        "project": "proj",
        "entity": "team",
        "group": "grp",
        "job_type": "train",
        "tags": ["a", "b", "c d"],
        "notes": "two\nlines",
        "state": state,
        "exit_code": code,
        "host": socket.gethostname(),
        "git_commit": head.stdout.strip(),
        "command": f"{sys.executable} '{program}' {end}",
    }
    # A file that ends before the run does.
    records = list(cordwood.open(path))[:-1]
    assert wandb.run(records)["state"] == "unfinished"
    assert wandb.run(records)["exit_code"] is None


def test_environment_records_are_merged_and_the_last_run_record_wins():
    parts = [{"program": "a.py", "args": ["-x"], "host": "h"}, {"git": {"commit": "c0"}}, {"executable": "/py"}]
    runs = [{"run_id": "r", "notes": "one", "tags": ["a"]}, {"run_id": "r"}]
    records = [message_of(environment=part) for part in parts] + [message_of(run=run) for run in runs]
    found = wandb.run(records)
    assert (found["command"], found["host"], found["git_commit"]) == ("/py a.py -x", "h", "c0")
    assert (found["id"], found["notes"], found["tags"]) == ("r", None, [])


def test_the_command_contains_dash_m_if_the_run_was_started_as_a_module():
    record = message_of(environment={"program": "-m pkg.train", "args": ["a b"]})
    assert wandb.run([record])["command"] == "python -m pkg.train 'a b'"


def test_the_output_of_a_run_is_the_text_that_it_printed(run):
    assert wandb.output(run) == "one 1\n\r50%tw\u00f6\n"


def test_system_metrics_match_the_metrics_recorded_by_wandb(run):
    """Rows are expected as made by `send_stats` in `wandb/sdk/internal/sender.py`."""
    messages = messages_in(run)
    [start] = [message.run.start_time.ToMicroseconds() for message in messages if message.HasField("run")]
    expected = []
    for message in messages:
        if message.HasField("stats"):
            now = message.stats.timestamp.ToMicroseconds()
            values = {f"system.{item.key}": json.loads(item.value_json) for item in message.stats.item}
            expected.append({"_timestamp": now / 1e6, "_runtime": (now - start) / 1e6, **values})
    assert list(wandb.metrics(run)) == expected
    assert len(expected) >= 2
    assert 0 < expected[0]["_runtime"] < 60
    assert expected[0].keys() >= {"system.cpu", "system.memory_percent"}


@pytest.mark.parametrize("path", [pytest.param(None, id="made here"), *RUNS])
def test_every_record_decodes_the_same_as_in_wandb(path, request):
    path = path or request.getfixturevalue("run")
    messages = list(messages_in(path))
    with cordwood.open(path) as reader:
        records = list(reader)
    expected = [MessageToDict(message, preserving_proto_field_name=True) for message in messages]
    assert [wandb.to_dict(record) for record in records] == expected
    assert len(messages) >= 10
    # It is valid JSON.
    assert json.loads(json.dumps(expected, allow_nan=False)) == expected


@pytest.mark.parametrize("path", corpus("wandb/offline-run/run-g9dvvkua.wandb"))
def test_a_run_without_a_history_still_has_its_config_and_metrics(path):
    assert list(wandb.history(cordwood.open(path))) == []
    assert wandb.summary(cordwood.open(path)) == {}
    assert wandb.config(cordwood.open(path)) == {"_wandb": {"code_path": "code/standalone_tests/code-toad.py"}}
    assert wandb.output(path) == ""
    [row] = wandb.metrics(path)
    # 2021-02-16T23:44:12.246828Z, after a start at 23:44:07.
    assert (row["_timestamp"], row["_runtime"]) == (1613519052.246828, 5.246828)
    assert (row["system.cpu"], row["system.network.sent"]) == (24.3, 260096)


def test_history_steps_written_by_older_wandb_versions_are_read():
    # Old releases had keys of one part, and the step next to the values.
    history = HistoryRecord()
    item(history.item, "loss", 0.5)
    history.step.num = 7
    row = wandb.history_row(message_of(history=history))
    assert list(row.items()) == [("_step", 7), ("loss", 0.5)]
    assert wandb.history_row(message_of()) is None


def test_later_changes_to_a_summary_replace_and_remove_values():
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


def test_bytes_of_fields_unknown_to_wandb_are_counted():
    known = message_of(num=5)
    assert wandb.to_dict(known) == {"num": "5"}
    assert wandb.to_dict(known + b"\xfa\x3f\x03abc") == {"num": "5", "unknown_len": 6}
    inside = HistoryRecord()
    inside.MergeFromString(b"\xfa\x3f\x01x")
    assert wandb.to_dict(message_of(history=inside))["unknown_len"] == 4


def test_reading_a_record_that_wandb_would_not_write_raises_an_error():
    twice, no_json, deep, deeper = (HistoryRecord() for _ in range(4))
    nested = SummaryRecord()
    item(nested.update, ["a"] * 101, 1)
    item(twice.item, ["a", "b"], 1)
    item(twice.item, "a.b", 2)
    item(no_json.item, "a", "{")
    item(deep.item, "a", "[" * 100_000)
    item(deeper.item, "a", "[" * 101 + "]" * 101)
    # The place of a value, the last of its record, if only that is wrong.
    for record, length, reason, text in [
        (b"\xff", 1, "truncated", "ends inside a number"),
        (message_of(summary=nested), 1, "too_deep", "has more than 100 levels"),
        (message_of(history=twice), None, "non_canonical", "two values have the name 'a.b'"),
        (message_of(history=no_json), 0, "non_canonical", "the value of 'a' is not JSON"),
        (message_of(history=deep), 100_000, "too_deep", "the value of 'a' has more than 100 levels"),
        (message_of(history=deeper), 202, "too_deep", "the value of 'a' has more than 100 levels"),
    ]:
        with pytest.raises(PayloadError, match=text) as caught:
            list(wandb.history([record])) or wandb.summary([record])
        found, start = caught.value, 0 if length is None else len(record) - length
        assert (found.offset, found.offset + found.length, found.reason) == (start, len(record), reason)


def test_reads_the_deepest_nesting_allowed():
    history = HistoryRecord()
    item(history.item, "a", '{"a":' * 50 + "[" * 50 + "1" + "]" * 50 + "}" * 50)
    assert wandb.history_row(message_of(history=history)).keys() == {"a"}


@pytest.mark.parametrize("form", ["cat --as wandb", "convert --as wandb", "convert --as wandb-history --to csv"])
def test_an_invalid_record_is_reported_and_the_records_around_it_are_kept(form, tmp_path):
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


def test_run_functions_accept_a_path(tmp_path):
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
    for function in FUNCTIONS:
        with pytest.raises(TypeError, match="path of the file"):
            function(path.read_bytes())


@pytest.mark.parametrize("decode", ["wandb-run", "wandb-summary", "wandb-config"])
@pytest.mark.parametrize("after", [b"", b"\x01\x02\x03"])
def test_a_run_killed_before_its_first_record_still_gets_a_row(after, decode, tmp_path):
    pa = pytest.importorskip("pyarrow")
    with cordwood.open(tmp_path / "run-whole.wandb", "x", dialect="wandb") as writer:
        writer.append(message_of(run=RunRecord(run_id="whole")))
    # wandb writes the header of the file when it opens it, and records later.
    header = (tmp_path / "run-whole.wandb").read_bytes()[:7]
    (tmp_path / "run-early.wandb").write_bytes(header + after)
    # It writes the header with the first records: until then, the file has no byte.
    store = DataStore()
    store.open_for_write(str(tmp_path / "run-empty.wandb"))
    copy = (tmp_path / "run-empty.wandb").read_bytes()
    store.close()
    (tmp_path / "run-empty.wandb").write_bytes(copy)
    assert copy == b""
    # A log of another dialect is no run, with or without records.
    cordwood.open(tmp_path / "empty.log", "x").close()
    rows = pa.table(cordwood.scan(tmp_path, decode=decode)).to_pylist()
    assert [row["run_id"] for row in rows] == ["early", "empty", "whole"]
    to = tmp_path / "runs.ndjson"
    command = [sys.executable, "-m", "cordwood", "convert", "--as", decode, tmp_path, to]
    subprocess.run(command, check=True, timeout=120)
    lines = [json.loads(line) for line in to.read_text().splitlines()]
    assert [line["run_id"] for line in lines] == ["early", "empty", "whole"]
    if decode == "wandb-run":
        expected = [(None, "unfinished"), (None, "unfinished"), ("whole", "unfinished")]
        assert [(row["id"], row["state"]) for row in rows] == expected
        assert [(line["id"], line["state"]) for line in lines] == expected
    assert pa.table(cordwood.scan(tmp_path / "run-empty.wandb", decode=decode)).num_rows == 1


def test_a_directory_of_runs_is_rejected_with_a_hint(tmp_path):
    for function in FUNCTIONS:
        with pytest.raises(IsADirectoryError) as raised:
            list(function(tmp_path))
        assert raised.value.hint == cordwood.types.Hint.READ_DIRECTORY


def test_one_invalid_value_does_not_drop_the_whole_history_step(tmp_path):
    path = tmp_path / "run.wandb"
    history = HistoryRecord()
    for name, value in [("loss", "0.5"), ("bad", ""), ("loss", "1"), ("deep", "[" * 900 + "]" * 900), ("_step", "3")]:
        item(history.item, [name], value)
    errors = []
    row = wandb.history_row(message_of(history=history), errors)
    assert list(row.items()) == [("_step", 3), ("loss", 0.5)]
    assert [error.reason for error in errors] == ["non_canonical", "too_deep", "non_canonical"]
    with cordwood.open(path, "x", dialect="wandb") as writer:
        writer.append(message_of(history=history))
    for form, expected in [("ndjson", '{"_step":3,"loss":0.5}\n'), ("csv", "_step,loss\n3,0.5\n")]:
        command = [sys.executable, "-m", "cordwood", "convert", "--as", "wandb-history", "--to", form, str(path)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120, text=True)
        assert (done.returncode, done.stdout) == (3, expected)
        lines = done.stderr.splitlines()
        assert len(lines) == 3
        for line, text in zip(
            lines, ["'bad' is not JSON", "'deep' has more", "two values have the name 'loss'"], strict=True
        ):
            assert "a value of the record at offset 7 is left out" in line
            assert text in line


def test_an_error_about_one_byte_uses_the_singular():
    with pytest.raises(PayloadError, match=r"\(1 byte at offset 0 of the payload\)"):
        wandb.to_dict(b"\xff")


def test_an_integer_with_thousands_of_digits_is_kept_as_text():
    history = HistoryRecord()
    item(history.item, "a", "1" * 5_000)
    item(history.item, "b", "1" * 100)
    assert wandb.history_row(message_of(history=history)) == {"a": "1" * 5_000, "b": int("1" * 100)}


# JSON as Python writes it, with NaN. The names are such that no two metrics get the same name when flattened.
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(st.text("abä", max_size=2), inside, max_size=2),
    max_leaves=4,
).map(json.dumps)
NAMES = st.sampled_from(["a", "b", "a.b", "_step", "ä", ""])
SECONDS = st.integers(-62_135_596_800, 253_402_300_799)


@st.composite
def items(draw, *, unique=False):
    """Items of a history, a summary or a configuration, with a single name or a path."""
    out = []
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.lists(NAMES, max_size=3))
        name = {"nested_key": path} if path else {"key": draw(NAMES)}
        out.append({**name, "value_json": draw(JSON)})
    names = [".".join(item.get("nested_key", [item.get("key")])) for item in out]
    return out if not unique or len(set(names)) == len(names) else out[:1]


def timestamps():
    return st.fixed_dictionaries({}, optional={"seconds": SECONDS, "nanos": st.integers(0, 999_999_999)})


def changes(kind):
    return st.builds(kind, update=items(), remove=items())


def outputs(kind):
    lines = st.text(max_size=5) | st.sampled_from(["\n", "\r50%"])
    return st.builds(kind, output_type=st.sampled_from([0, 1]), timestamp=st.none() | timestamps(), line=lines)


KINDS = {
    "history": st.builds(
        HistoryRecord, item=items(unique=True), step=st.none() | st.builds(dict, num=st.integers(-(2**63), 2**63 - 1))
    ),
    "summary": changes(SummaryRecord),
    "config": changes(ConfigRecord),
    "run": st.builds(
        RunRecord,
        run_id=NAMES,
        project=NAMES,
        display_name=NAMES,
        entity=NAMES,
        run_group=NAMES,
        job_type=NAMES,
        notes=NAMES,
        host=NAMES,
        git=st.none() | st.builds(dict, commit=NAMES, remote_url=NAMES),
        tags=st.lists(NAMES, max_size=2),
        starting_step=st.integers(0, 9),
        start_time=st.none() | timestamps(),
        config=st.none() | changes(ConfigRecord),
    ),
    "output": outputs(OutputRecord),
    "output_raw": outputs(OutputRawRecord),
    "stats": st.builds(
        StatsRecord,
        timestamp=st.none() | timestamps(),
        item=st.lists(
            st.builds(dict, key=st.sampled_from(["cpu", "gpu.0", ""]), value_json=JSON),
            max_size=3,
            unique_by=lambda item: item["key"],
        ),
    ),
    "environment": st.builds(
        EnvironmentRecord,
        os=NAMES,
        program=NAMES,
        args=st.lists(NAMES, max_size=2),
        host=NAMES,
        executable=NAMES,
        git=st.none() | st.builds(dict, commit=NAMES),
    ),
    "exit": st.builds(dict, exit_code=st.integers(-(2**31), 2**31 - 1), runtime=st.integers(0, 9)),
    "files": st.just({"files": [{"path": "a"}]}),
    "telemetry": st.just({"python_version": "3.11"}),
}
MESSAGES = st.sampled_from(list(KINDS)).flatmap(
    lambda kind: st.builds(Record, num=st.integers(0, 9), uuid=NAMES, **{kind: KINDS[kind]})
)


def expected_of(messages):
    """The contents of wandb's own messages: the history, the metrics, the summary, the configuration and the output."""
    reasons = []
    rows = list(naive_wandb.history_rows(messages, reasons))
    metrics = list(naive_wandb.metrics_rows(messages, reasons))
    summary, config = (naive_wandb.changes(messages, kind, reasons) for kind in ("summary", "config"))
    assert reasons == []
    return [rows, metrics, summary, config, "".join(piece["text"] for piece in naive_wandb.output_pieces(messages))]


def comparable(values):
    """The values as text, in which NaN equals itself, and 1 equals neither 1.0 nor `True`."""
    return json.dumps(values, sort_keys=True)


@given(st.lists(MESSAGES, max_size=5))
def test_wandb_messages_decode_to_the_values_that_wandb_reads(messages):
    records = [message.SerializeToString() for message in messages]
    parsed = [Record.FromString(record) for record in records]
    found = [function(records) for function in FUNCTIONS]
    assert comparable(found) == comparable(expected_of(parsed))
    assert wandb.run(records) == naive_wandb.run_row(parsed)
    assert all(next(iter(row)) == "_step" for row in found[0] if "_step" in row)


def value_or_reason(decode):
    try:
        return decode()
    except (PayloadError, NaiveError) as error:
        return error.reason


BROKEN = st.sampled_from(
    ["", "{", "nul", "[1,]", "[" * 101 + "]" * 101, '"\\x"', "01", "1e400", r'"\ud800"', '{"a":1,"a":2}']
)


@given(st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=2), JSON | BROKEN), max_size=6), st.booleans())
def test_unreadable_values_are_omitted_from_history_and_summary(values, is_last):
    message = Record()
    for path, text in values:
        item(message.history.item, path, text)
    reasons, errors = [], []
    expected = list(naive_wandb.history_rows([message], reasons))
    row = wandb.history_row(message.SerializeToString(), errors)
    assert comparable([row]) == comparable(expected or [None])
    assert sorted(error.reason for error in errors) == sorted(reasons)
    summary = Record()
    for path, text in values:
        item(summary.summary.update, path, text)
    if values and is_last:
        summary.summary.remove.add().nested_key.extend(values[0][0])
    record = summary.SerializeToString()
    decode = RecordDecoder("wandb-summary").value
    expected = value_or_reason(lambda: naive_wandb.change_of(summary, "summary"))
    assert comparable(value_or_reason(lambda: decode(record))) == comparable(expected)
    reasons, errors = [], []
    decoder = RecordDecoder("wandb-summary")
    assert decoder.row(record, errors) is None
    assert comparable(decoder.rest()) == comparable(naive_wandb.changes([summary], "summary", reasons))
    assert [error.reason for error in errors] == reasons
    assert decoder.rest() is None


def test_decoder_accepts_only_a_buffer_and_a_payload_name():
    with pytest.raises(TypeError, match="record must be bytes-like, not str"):
        RecordDecoder("wandb-history").row("")
    with pytest.raises(ValueError, match="'wandb-x' is not known"):
        RecordDecoder("wandb-x")
    history = HistoryRecord()
    item(history.item, "a", 1)
    record = memoryview(message_of(history=history))
    assert RecordDecoder("wandb-history").row(record) == RecordDecoder("wandb-history").value(record) == {"a": 1}
    assert RecordDecoder("wandb-run").value(record) is None


def test_lone_surrogates_in_names_are_escaped_and_duplicate_names_are_rejected():
    history = HistoryRecord()
    item(history.item, "a", r'{"\ud83d": ["\udcff\ud83d\ude00"]}')
    assert wandb.history_row(message_of(history=history)) == {"a": {r"\ud83d": ["\\udcff\U0001f600"]}}
    item(history.item, "b", r'{"\ud83d": 1, "\\ud83d": 2}')
    with pytest.raises(PayloadError, match="two values have one name"):
        wandb.history_row(message_of(history=history), [])


def each_decoded(record):
    """The record, decoded by each function; only a `PayloadError` may be raised, about bytes within the record."""
    for function in FUNCTIONS:
        value = error = None
        try:
            value = function([record])
        except PayloadError as caught:
            error = caught
        assert error is None or 0 <= error.offset <= error.offset + error.length <= len(record)
        yield value


@given(st.binary(max_size=64))
def test_decoding_arbitrary_bytes_raises_only_documented_errors(record):
    for _ in each_decoded(record):
        pass


@given(MESSAGES, st.data())
def test_a_damaged_message_decodes_as_in_wandb_or_raises_an_error(message, data):
    """Cut anywhere, or with one byte changed. If it decodes, and wandb can read it, the results are the same."""
    whole = message.SerializeToString()
    for end in range(len(whole)):
        for _ in each_decoded(whole[:end]):
            pass
    if not whole:
        return
    damaged = bytearray(whole)
    damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    found = list(each_decoded(bytes(damaged)))
    if None in found:
        return
    # wandb validates texts that cordwood does not read.
    with suppress(DecodeError):
        assert comparable(found) == comparable(expected_of([Record.FromString(bytes(damaged))]))


WITHOUT_WANDB = """
import json, sys
for name in "wandb", "google", "google.protobuf":
    sys.modules[name] = None
from cordwood.cli import main
from cordwood.payload import wandb
path = sys.argv[1]
found = [list(wandb.history(path)), list(wandb.metrics(path)), wandb.summary(path), wandb.config(path)]
print(json.dumps([*found, wandb.output(path)]))
for form in "history", "metrics", "summary", "config", "output":
    for verb in "convert", "cat":
        assert main([verb, "--as", f"wandb-{form}", path]) == 0
assert main(["info", path]) == 0
for verb in "convert", "cat":
    assert main([verb, "--as", "wandb", path]) == 1
"""


def test_decoding_runs_does_not_require_wandb_or_protobuf(tmp_path):
    path = tmp_path / "run.wandb"
    messages = [
        Record(
            run={
                "run_id": "a",
                "start_time": {"seconds": 100},
                "config": {"update": [{"key": "lr", "value_json": "1"}]},
            }
        ),
        Record(output_raw={"output_type": 1, "timestamp": {"seconds": 101}, "line": "o"}),
        Record(output_raw={"output_type": 0, "line": "\r50%"}),
        Record(output_raw={"output_type": 1, "line": "ne\n\nt"}),
        Record(history={"item": [{"key": "loss", "value_json": "NaN"}, {"nested_key": ["_step"], "value_json": "0"}]}),
        Record(stats={"timestamp": {"seconds": 102}, "item": [{"key": "cpu", "value_json": "0.5"}]}),
        Record(summary={"update": [{"nested_key": ["a", "b"], "value_json": "2"}], "remove": [{"key": "c"}]}),
    ]
    with cordwood.open(path, "x", dialect="wandb") as writer:
        writer.extend(message.SerializeToString() for message in messages)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_WANDB, str(path)], capture_output=True, check=False, timeout=120, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    metrics = '{"_timestamp":102.0,"_runtime":2.0,"system.cpu":0.5}'
    assert json.loads(lines.pop(0).replace("NaN", '"NaN"')) == [
        [{"_step": 0, "loss": "NaN"}], [json.loads(metrics)], {"a": {"b": 2}}, {"lr": 1}, "o\r50%ne\n\nt"
    ]  # fmt: skip
    # Only the value in `cat`'s output for a record.
    printed = [line.partition('"value":')[2][:-1] or line for line in lines]
    assert printed[: printed.index(f"{path}: a log")] == [
        *['{"_step":0,"loss":"NaN"}'] * 2,
        *[metrics] * 2,
        '{"a":{"b":2}}',
        '{"update":{"a.b":2},"remove":["c"]}',
        '{"lr":1}',
        '{"update":{"lr":1},"remove":[]}',
        '{"_timestamp":101.0,"stream":"stdout","line":"one"}',
        '{"_timestamp":null,"stream":"stdout","line":""}',
        '{"_timestamp":null,"stream":"stderr","line":"\\r50%"}',
        '{"_timestamp":null,"stream":"stdout","line":"t"}',
        '{"_timestamp":101.0,"stream":"stdout","text":"o"}',
        '{"_timestamp":null,"stream":"stderr","text":"\\r50%"}',
        '{"_timestamp":null,"stream":"stdout","text":"ne\\n\\nt"}',
    ]
    assert done.stderr.count("need the package wandb: pip install 'cordwood[wandb]'") == 2
