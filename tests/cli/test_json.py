"""The output of `--json` has the fields that docs/cli lists, in their order and with their types."""

import hashlib
import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from real_files import vectors
from support import PAYLOAD, written

from cordwood import open as writer_of
from cordwood.cli import VERBS

DOCS = Path(__file__).parents[2] / "docs/cli"
TYPES = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}


def fields(page, table=0):
    """The fields in a table of the section "JSON" on a page, each with its types."""
    section = (DOCS / f"{page}.md").read_text(encoding="utf-8").split("\n## JSON\n")[1]
    rows = re.split(r"^\| field.*\n\|[-|]+\|\n", section, flags=re.MULTILINE)[1 + table]
    return {
        name: tuple(TYPES[word] for word in words.split(" or "))
        for name, words in re.findall(r"^\| `(\w+)` \| ([\w ]+) \|", rows, flags=re.MULTILINE)
    }


def check(value, documented):
    assert list(value) == list(documented)
    for name, types in documented.items():
        assert type(value[name]) in types, name


def cordwood(*arguments, stdin=b""):
    done = subprocess.run([sys.executable, "-m", "cordwood", *arguments], input=stdin, capture_output=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


@pytest.fixture
def log(tmp_path):
    """One record, one with a flipped bit, one in several fragments, and a torn one."""
    file = bytearray(written([b"one", b"two", PAYLOAD[:70_000], PAYLOAD[:500]])[:-1])
    file[17] ^= 0x20
    path = tmp_path / "log"
    path.write_bytes(file)
    return str(path)


@pytest.mark.parametrize("verb", ["cat", "follow"])
@pytest.mark.parametrize(
    ("options", "data"), [((), "base64"), (("--encoding", "hex"), "hex"), (("--encoding", "base64"), "base64")]
)
def test_cat_and_follow_json(log, verb, options, data):
    more = ("--on-corruption", "salvage") if verb == "cat" else ("--timeout", "0.3")
    values, status = cordwood(verb, "--json", *options, *more, log)
    documented = fields("cat")
    kinds = fields("cat", 1)
    assert kinds.keys() == {"text", "base64", "hex", "value"}
    data = "text" if (verb, options) == ("follow", ()) else data  # It prints only the first record, which is text.
    check(values[-1], documented | {data: kinds[data]})
    assert status == 3
    if verb == "cat":
        assert [value["len"] for value in values] == [3, 70_000]
        assert [value["salvaged"] for value in values] == [False, True]


def test_the_json_output_of_verify_has_the_documented_fields(log):
    [value], status = cordwood("verify", "--json", log)
    assert status == 3
    check(value, fields("verify"))
    documented = fields("verify", 2)
    for region in value["skipped"]:
        check(region, documented)
    assert value["skipped"][0]["bit_flip"] == {"offset": 17, "bit": 5, "part": "payload"}
    assert list(value["outcome"]) == ["kind", "offset", "zeros_offset"]
    assert value["sha256"] == hashlib.sha256(Path(log).read_bytes()).hexdigest()
    assert value["version"] == version("cordwood")


def test_verify_json_has_no_hash_for_pipes(log):
    """A pipe cannot be read again."""
    [value], _ = cordwood("verify", "--json", "-", stdin=Path(log).read_bytes())
    assert value["sha256"] is None


def test_the_json_output_of_salvage_has_the_documented_fields(log, tmp_path):
    new = tmp_path / "new"
    [value], status = cordwood("salvage", "--json", log, str(new))
    assert status == 3
    check(value, {**fields("verify"), **fields("salvage"), **fields("salvage", 1)})
    assert value["sha256"] == hashlib.sha256(Path(log).read_bytes()).hexdigest()
    assert value["destination"] == str(new)
    assert value["destination_len"] == new.stat().st_size
    assert value["destination_sha256"] == hashlib.sha256(new.read_bytes()).hexdigest()


def test_the_json_output_of_pack_has_the_documented_fields(tmp_path):
    log, new = tmp_path / "log", tmp_path / "new"
    log.write_bytes(written([b"one", b"two"]))
    [value], status = cordwood("pack", "--json", str(log), str(new))
    assert status == 0
    check(value, {**fields("verify"), **fields("pack")})
    assert (value["source"], value["destination"]) == (str(log), str(new))
    assert value["destination_len"] == new.stat().st_size
    assert value["destination_sha256"] == hashlib.sha256(new.read_bytes()).hexdigest()


def test_the_json_output_of_stat_has_the_documented_fields(log):
    [value], status = cordwood("stat", "--json", log)
    assert status == 3
    check(value, fields("stat"))
    [report], _ = cordwood("verify", "--json", log)
    assert value["damaged_len"] == report["len_by_severity"]["corruption"]
    [value], status = cordwood("stat", "--json", "-", stdin=b"")
    check(value, fields("stat"))


@pytest.mark.parametrize("verb", ["verify", "stat"])
def test_json_output_ends_with_the_documented_totals(log, tmp_path, verb):
    (tmp_path / "text").write_bytes(b"a text is no log, as can be seen from all of its bytes")
    (tmp_path / "whole").write_bytes(written([b"one", b"two"]))
    *values, last = cordwood(verb, "--json", str(tmp_path), str(tmp_path / "none"))[0]
    assert [value["source"] for value in values] == [log, str(tmp_path / "whole"), str(tmp_path / "none")]
    assert list(last) == ["totals"]
    check(last["totals"], {**fields("index", 1), **(fields("index", 2) if verb == "verify" else {})})
    sums = ("record_count", "payload_len", "skipped_len", "file_len")
    assert {name: last["totals"][name] for name in sums} == {
        name: sum(value[name] for value in values[:2]) for name in sums
    }
    assert last["totals"]["other_file_count_by_format"] == {"text": 1}
    assert [last["totals"][name] for name in ("log_count", "damaged_count", "failed_count")] == [2, 1, 1]


def test_salvage_json_counts_logs_damage_and_records(log, tmp_path):
    (tmp_path / "whole").write_bytes(written([b"one", b"two"]))
    *_, last = cordwood("salvage", "--json", log, str(tmp_path / "whole"), str(tmp_path / "new"))[0]
    check(last["totals"], fields("index", 1))
    assert [last["totals"][name] for name in ("log_count", "damaged_count", "record_count")] == [2, 1, 4]


@pytest.mark.parametrize("verb", ["verify", "stat", "salvage", "pack", "info"])
def test_json_output_reports_sources_that_cannot_be_read(verb, log, tmp_path):
    text, none = tmp_path / "text", tmp_path / "none"
    text.write_bytes(b"a text is no log, as can be seen from all of its bytes")
    for name in text, none:
        values, status = cordwood(
            verb, "--json", str(name), *([str(tmp_path / "new")] if verb in {"salvage", "pack"} else [])
        )
        assert (len(values), status) == (1, 1)
        check(values[0], fields("index"))
        assert values[0]["source"] == str(name)
        assert ("not a log, but text" if name == text else "No such file or directory") in values[0]["error"]


def test_json_output_reports_sources_that_cannot_be_salvaged(tmp_path):
    """A file that belongs to another log, and a second file with the same destination."""
    (tmp_path / "old").mkdir()
    with writer_of(tmp_path / "000012.log", "x", dialect="recyclable", log_number=12) as writer:
        writer.append(b"one")
    (tmp_path / "000012.log").rename(tmp_path / "000014.log")
    for name in "a.log", "old/a.log":
        (tmp_path / name).write_bytes(written([b"one"]))
    logs = [str(tmp_path / name) for name in ("000014.log", "a.log", "old/a.log")]
    [other, _, second, totals], status = cordwood("salvage", "--json", *logs, str(tmp_path / "new"))
    for value, log, text in (
        (other, logs[0], "the whole file belongs to log 12"),
        (second, logs[2], "copy it on its own"),
    ):
        check(value, fields("index"))
        assert value["source"] == log
        assert text in value["error"]
    assert (totals["totals"]["failed_count"], status) == (2, 1)


def test_each_command_with_json_output_is_documented_and_tested():
    tests = Path(__file__).read_text(encoding="utf-8")
    for verb in VERBS:
        takes_json = "[--json]" in subprocess.run(
            [sys.executable, "-m", "cordwood", verb, "--help"], capture_output=True, check=True, text=True
        ).stdout.replace("\n", " ")
        page = (DOCS / f"{verb}.md").read_text(encoding="utf-8")
        assert ("\n## JSON\n" in page) == takes_json, verb
        assert (f'"{verb}"' in tests) == takes_json, verb


def test_the_json_output_of_info_has_the_documented_fields(log, tmp_path):
    (tmp_path / "text").write_bytes(b"a text is no log, as can be seen from all of its bytes")
    [value], status = cordwood("info", "--json", str(tmp_path))
    assert status == 3
    check(value, fields("info"))
    [report], _ = cordwood("verify", "--json", log)
    assert value["record_count"] == report["record_count"]
    assert value["damaged_len"] == report["len_by_severity"]["corruption"]
    assert (value["torn_count"], value["damaged_count"], value["other_file_count_by_format"]) == (1, 1, {"text": 1})


def test_the_json_output_of_fragments_has_the_documented_fields(log):
    values, status = cordwood("fragments", "--json", log)
    assert status == 3
    documented = fields("fragments")
    for value in values:
        check(value, documented)
    assert [value["reason"] for value in values] == [None, "checksum_mismatch", None, None, None, "torn_tail"]
    assert [value["salvaged"] for value in values] == [False, False, True, True, True, False]
    assert cordwood("fragments", "--json", "--damaged", log) == (values[1:2], 3)


def test_the_json_output_of_write_has_the_documented_fields(tmp_path):
    [value], status = cordwood("write", "--json", str(tmp_path / "new"), stdin=b"one\n")
    assert (value["record_count"], status) == (1, 0)
    check(value, fields("write"))


def test_the_json_output_of_split_has_the_documented_fields(log):
    values, status = cordwood("split", "--json", "--len", "1", log)
    assert (len(values), status) == (3, 0)
    for value in values:
        check(value, fields("split"))


@pytest.mark.parametrize("path", vectors("rocksdb/recycled/000014.log"))
def test_cat_ignores_the_old_tail_of_a_recycled_log(path):
    """The rest of an older log at the end is not damage, nor is it for the other verbs."""
    [report], status = cordwood("verify", "--json", str(path))
    assert (report["ok"], status) == (True, 0)
    values, status = cordwood("cat", "--json", str(path))
    assert (len(values), status) == (report["record_count"], 0)


@pytest.mark.skipif(sys.platform == "win32", reason="a name cannot have control characters here")
@pytest.mark.parametrize("verb", ["verify", "stat", "info", "cat", "fragments", "split", "follow --timeout 0"])
def test_json_output_has_no_control_characters(verb, tmp_path):
    """A pipe passes them on to a terminal, as in `cordwood verify --json x | tee log`."""
    path = tmp_path / "\x1b[1m \x7f \x9b31m \x85.log"
    path.write_bytes(written(["\x7f \x9b31m \u2028 ü".encode()]))
    done = subprocess.run(
        [sys.executable, "-m", "cordwood", *verb.split(), "--json", path], capture_output=True, check=True
    )
    line, end = done.stdout.decode().split("\n")
    assert end == ""
    assert [c for c in line if c < " " or "\x7f" <= c <= "\x9f"] == []
    assert json.loads(line)["source"] == str(path)
