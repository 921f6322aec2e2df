"""The lines of the verbs about zeros at the end of a log, and when `--strict` fails on them."""

import json

import pytest
import reference
from reference import BLOCK_LEN

import cordwood
from cordwood.cli import main

RECORDS = [b"one", b"two"]
LOG = reference.encode(RECORDS)
MEANING = "space that was never written, or data that was lost"


@pytest.fixture
def run(capfd):
    """Runs the command and returns its status, its output and its messages, each on one line."""

    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return status, " ".join(out.split()), " ".join(err.split())

    return run


def write(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("verb", ["verify", "stat", "info", "map", "salvage", "convert", "cat", "map --svg"])
def test_trailing_zeros_are_reported_with_offset_and_length(verb, run, tmp_path):
    path = write(tmp_path / "log", LOG + bytes(5_000))
    verb, *options = verb.split()
    options += {"salvage": [path, tmp_path / "new"], "map": [*([tmp_path / "p.svg"] if options else []), path]}.get(
        verb, [path]
    )
    status, out, err = run(verb, *options)
    said = out if verb in ("verify", "stat", "info", "salvage") or (verb == "map" and len(options) == 1) else err
    assert status == 0
    assert said.count(f"at 20: 5,000 zeros at the end: {MEANING}") == 1


@pytest.mark.parametrize("verb", ["verify", "convert --as raw"])
@pytest.mark.parametrize(
    ("content", "status"),
    {
        "no zeros": (LOG, 0),
        "zeros": (LOG + bytes(5_000), 3),
        "whole blocks, and the last record is in an earlier one": (LOG + bytes(2 * BLOCK_LEN - 20), 3),
        "whole blocks, and the last record ends with the one before": (
            reference.encode([bytes(BLOCK_LEN - 7)]) + bytes(BLOCK_LEN),
            3,
        ),
        "padding of the last record's own block": (LOG + bytes(BLOCK_LEN - 20), 0),
        "padding of the last of several blocks": (
            reference.encode([bytes(BLOCK_LEN), b"two"]) + bytes(BLOCK_LEN - 24),
            0,
        ),
        "one block, of which one byte is missing": (LOG + bytes(BLOCK_LEN - 21), 3),
        "only zeros": (bytes(BLOCK_LEN), 3),
        "only some zeros": (bytes(100), 3),
        "a file header and zeros": (b":W&B\xe1\xbe\0" + bytes(BLOCK_LEN - 7), 3),
    }.values(),
)
def test_strict_mode_fails_on_trailing_zeros_that_are_not_padding(verb, content, status, run, tmp_path):
    path = write(tmp_path / "log", content)
    assert run(*verb.split(), "--strict", path)[0] == status
    assert run(*verb.split(), path)[0] == 0


def test_verify_reports_padding_but_still_succeeds(run, tmp_path):
    path = write(tmp_path / "log", LOG + bytes(BLOCK_LEN - 20))
    for arguments in (["verify", "--strict", path], ["salvage", path, tmp_path / "new"]):
        status, out, _ = run(*arguments)
        assert status == 0
        assert "log: ok, 2 records, 6 bytes" in out
        assert "at 20: 32,748 zeros at the end: padding" in out
    for verb in ("stat", "info", "map"):
        status, out, _ = run(verb, path)
        assert "at 20: 32,748 zeros at the end: padding" in out


def test_verify_reports_a_file_that_is_all_zeros(run, tmp_path):
    path = write(tmp_path / "000003.log", bytes(5_000))
    assert f"{path}: only zeros, 5,000 bytes" in run("verify", path)[1]
    assert f"{path}: INCOMPLETE, only zeros, 5,000 bytes" in run("verify", "--strict", path)[1]
    assert f"{path}: only zeros, leveldb, 5,000 bytes in 1 block" in run("stat", path)[1]
    assert f"{path}: only zeros" in run("info", path)[1]
    (tmp_path / "other").write_bytes(bytes(40_000))
    assert "1 file is not a log: only zeros" in run("verify", tmp_path)[1]


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet"])
def test_an_export_that_is_half_zeros_is_reported_as_incomplete(form, run, tmp_path):
    """A copy that ends in zeros, as an interrupted download may leave it."""
    if form == "parquet":
        pytest.importorskip("pyarrow.parquet")
    record = bytes.fromhex(
        "6a196a05737e61707072100b12057461736b73220577726974650c"
        "7a0f1a046e616d6520002a051a03646f637a1408071a0364756520002a090880e085cd81999803"
    )
    whole = reference.encode([record] * 10)
    export = tmp_path / "export"
    export.mkdir()
    half = write(export / "output-0", whole[: len(whole) // 2] + bytes(len(whole) // 2))
    write(export / "output-1", whole)
    for arguments, expected in (([], 0), (["--strict"], 3)):
        to = tmp_path / f"{expected}.{form}"
        status, _, err = run("convert", "--as", "entity", *arguments, export, to)
        assert status == expected
        assert f"{half}: at {len(whole) // 2:,}: {len(whole) // 2:,} zeros at the end: {MEANING}" in err


def test_verify_and_stat_json_include_the_zeros_offset(run, tmp_path):
    path = write(tmp_path / "log", LOG + bytes(5_000))
    report = json.loads(run("verify", "--json", path)[1])
    assert (report["ok"], report["outcome"]) == (True, {"kind": "clean", "offset": 5_020, "zeros_offset": 20})
    assert json.loads(run("verify", "--json", "--strict", path)[1])["ok"] is False
    stat = json.loads(run("stat", "--json", path)[1])
    assert (stat["outcome"]["zeros_offset"], stat["zeros_inside_len"]) == (20, 0)
    info = json.loads(run("info", "--json", path)[1])
    assert (info["zeros_count"], info["zeros_len"], info["zeros_inside_len"]) == (1, 5_000, 0)


@pytest.mark.parametrize("verb", ["verify", "stat", "info", "map", "convert", "cat"])
def test_zeros_between_records_are_reported(verb, run, tmp_path):
    path = write(tmp_path / "log", LOG + bytes(BLOCK_LEN - 20) + LOG)
    status, out, err = run(verb, path)
    assert status == 0
    said = err if verb in ("convert", "cat") else out
    assert "32,748 bytes of zeros before more records: never written, or lost" in said
    assert "at the end" not in said


def test_info_counts_logs_that_end_in_zeros(run, tmp_path):
    for number, tail in enumerate([bytes(5_000), bytes(100), bytes(BLOCK_LEN - 20), b""]):
        write(tmp_path / f"{number:06}.log", LOG + tail)
    out = run("info", tmp_path)[1]
    assert f"5,100 zeros at the ends of 2 logs: {MEANING}" in out


def test_a_writer_treats_trailing_zeros_as_a_torn_tail(tmp_path):
    path = write(tmp_path / "log", LOG + bytes(5_000))
    with pytest.raises(cordwood.TornTailError):
        cordwood.open(path, "a")
    with cordwood.open(path, "a", on_torn_tail="truncate"):
        pass
    assert path.read_bytes() == LOG


@pytest.mark.parametrize("suffix", ["wandb", "swanlab"])
def test_an_empty_run_is_reported_by_verify_and_info_and_evidence(suffix, run, tmp_path):
    directory = tmp_path / "runs"
    directory.mkdir()
    path = write(directory / f"run-1.{suffix}", b"")
    whole = directory / "run-2.wandb"
    with cordwood.open(whole, "w", dialect="wandb") as writer:
        writer.append(b"\x12\x00")
    assert run("verify", path)[:2] == (0, f"{path}: ok, a run without a byte")
    assert run("verify", "--strict", path)[:2] == (3, f"{path}: INCOMPLETE, a run without a byte")
    assert json.loads(run("verify", "--json", "--strict", path)[1])["ok"] is False
    for source, logs in ((path, f"1: {suffix}; 0 bytes"), (directory, "logs 2: ")):
        status, out, _ = run("info", source)
        assert (status, logs in out) == (0, True)
        assert f"run without a byte, as if killed before its first record: {path}" in out
    assert {each.path: each.state for each in cordwood.info(directory).runs} == {str(path): "empty", str(whole): "ok"}
    status, _, err = run("convert", directory, tmp_path / "records.ndjson")
    assert (status, f"{path}: a run without a byte" in err) == (0, True)
    (directory / "other").write_bytes(b"")
    assert "other" in str(cordwood.verify(directory).others)
    assert cordwood.evidence(directory).ok
    assert "2 logs, 0 damaged, 1 incomplete" in cordwood.evidence(directory).html


def test_a_run_that_is_damaged_at_its_first_byte_is_not_reported_as_empty(run, tmp_path):
    path = tmp_path / "run-1.wandb"
    with cordwood.open(path, "w", dialect="wandb") as writer:
        writer.extend([b"\x12\x00"] * 40)
    write(path, b"?" + path.read_bytes()[1:])
    status, _, err = run("convert", path, "--on-corruption", "stop", tmp_path / "records.ndjson")
    assert (status, "left out" in err, "a run without a byte" in err) == (3, True, False)


@pytest.mark.parametrize("verb", ["verify", "stat", "info", "map"])
def test_zeros_after_an_incomplete_record_do_not_count_as_padding(verb, run, tmp_path):
    torn = reference.encode([b"a record of which the second half never reached the disk"], len(LOG))[:40]
    path = write(tmp_path / "log", LOG + torn + bytes(BLOCK_LEN - len(LOG) - len(torn)))
    out = run(verb, path)[1]
    assert f"zeros at the end: {MEANING}" in out
    assert "padding" not in out
    path = write(tmp_path / "log", LOG + bytes(BLOCK_LEN - len(LOG)))
    out = run(verb, path)[1]
    assert "zeros at the end: padding" in out
