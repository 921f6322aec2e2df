"""The command and the library give the same answers about the same files.

The directories are those of `tests/vectors`, and one with all kinds of faults. `CORDWOOD_DIRECTORIES` may name more,
separated as in `PATH`.
"""

import json
import os
import shutil
from pathlib import Path

import pyarrow
import pytest
import reference

import cordwood
from cordwood.cli import main

VECTORS = Path(__file__).parents[1] / "vectors"
MORE = [Path(name) for name in os.environ.get("CORDWOOD_DIRECTORIES", "").split(os.pathsep) if name]
DIRECTORIES = [
    *sorted(path for path in VECTORS.iterdir() if path.is_dir()),
    *(path for directory in MORE for path in sorted(directory.iterdir()) if path.is_dir()),
]

# The kinds of records that `convert` and `scan` decode, by the name that `info` has for them.
DECODED = {
    "write-batch": "write-batch",
    "version-edit": "version-edit",
    "entity": "entity",
    "wandb": "wandb-history",
}
COLUMNS = ["offset", "end_offset", "data", "salvaged"]


@pytest.fixture(params=["faults", *DIRECTORIES], ids=lambda directory: getattr(directory, "name", directory))
def directory(request, tmp_path):
    """A directory, whose files are not changed."""
    if request.param != "faults":
        return request.param
    directory = tmp_path / "faults"
    (directory / "below").mkdir(parents=True)
    whole = reference.encode([b"%d" % number * 9_000 for number in range(12)])
    damaged = bytearray(whole)
    damaged[40_000] ^= 1
    damaged[50_000:50_009] = b"x" * 9
    (directory / "damaged.log").write_bytes(damaged)
    (directory / "below/whole.log").write_bytes(whole)
    (directory / "below/torn.log").write_bytes(whole[:-1])
    (directory / "below/without-suffix").write_bytes(whole)
    (directory / "zeros.log").write_bytes(whole + bytes(70_000))
    (directory / "empty").write_bytes(b"")
    (directory / "notes").write_text("This is a text, and no log.")
    (directory / "dangling").symlink_to("missing")
    # A log of RocksDB that was renamed.
    shutil.copy(VECTORS / "rocksdb/recycled/000014.log", directory / "000099.log")
    # A database without CURRENT, and an export of which a file is missing.
    shutil.copytree(VECTORS / "leveldb/plyvel", directory / "database")
    (directory / "database/LOCK").write_bytes(b"")
    return directory


def json_of(arguments, capfd):
    """The status, and the values that the command prints."""
    status = main([*map(str, arguments)])
    return status, [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def logs_and_rest(values):
    """The printed values by their sources, and the totals."""
    [totals] = [value["totals"] for value in values if "totals" in value]
    return {value["source"]: value for value in values if "source" in value}, totals


def regions_of(report):
    return [(region.offset, region.end_offset, region.reason, region.severity) for region in report.skipped]


def test_verify_gives_the_same_results_in_the_cli_and_the_api(directory, capfd):
    status, values = json_of(["verify", "--json", directory], capfd)
    printed, totals = logs_and_rest(values)
    results, info = cordwood.verify(str(directory)), cordwood.info(directory)
    assert list(printed) == sorted([*results, *results.errors])
    for path, report in results.items():
        value = printed[path]
        assert value["ok"] == (report.ok and report.other_log_number is None)
        for name in ("dialect", "log_number", "record_count", "payload_len", "file_len", "len_by_reason"):
            assert value[name] == getattr(report, name), (path, name)
        regions = [
            (region["offset"], region["end_offset"], region["reason"], region["severity"])
            for region in value["skipped"]
        ]
        assert regions == regions_of(report)
    assert {path for path, value in printed.items() if "error" in value} == set(results.errors)
    assert {other["source"]: other["format"] for other in totals["other_files"]} == results.others
    assert results.databases == info.databases
    assert [export.path for export in results.exports] == [export.path for export in info.exports]
    assert status == (1 if results.errors or not results else 0 if results.ok else 3)


def test_stat_gives_the_same_results_in_the_cli_and_the_api(directory, capfd):
    _, values = json_of(["stat", "--json", directory], capfd)
    printed, totals = logs_and_rest(values)
    results = cordwood.stat(str(directory))
    assert list(printed) == sorted([*results, *results.errors])
    for path, stat in results.items():
        for name in printed[path].keys() - {"source", "outcome"}:
            assert printed[path][name] == getattr(stat, name), (path, name)
        assert printed[path]["outcome"] == stat.outcome._asdict()
    for name in ("record_count", "payload_len", "skipped_len", "damaged_len", "file_len"):
        assert totals[name] == sum(getattr(stat, name) for stat in results.values())


def test_info_gives_the_same_results_in_the_cli_and_the_api(directory, capfd):
    status, [printed] = json_of(["info", "--json", directory], capfd)
    info = cordwood.info(directory)
    if not info.log_count:
        assert (status, printed) == (1, {"source": str(directory), "error": "no log was found"})
        return
    fields = info._asdict()
    same = printed.keys() & fields.keys() - {"runs", "databases", "exports"}
    assert len(same) > 12
    assert {name: printed[name] for name in same} == {name: fields[name] for name in same}
    assert [run["source"] for run in printed["runs"]] == [run.path for run in info.runs]
    for name in "databases", "exports":
        assert [(value["path"], value["ok"]) for value in printed[name]] == [(v.path, v.ok) for v in fields[name]]
    assert printed["failed_count"] == len(info.failures)
    assert printed["damaged_count"] == len(info.damaged_logs)
    assert status == (1 if info.failures else 0 if info.ok else 3)


def test_map_gives_the_same_results_in_the_cli_and_the_api(directory, capfd):
    maps = cordwood.map(directory)
    for path, picture in maps.items():
        assert main(["map", "--svg", "-", path]) == (3 if picture.damaged_len else 0)
        assert capfd.readouterr().out == picture.svg
    assert list(maps) == list(cordwood.verify(directory))


def test_salvage_gives_the_same_results_in_the_cli_and_the_api(directory, tmp_path, capfd):
    by_command, by_library = tmp_path / "by-command", tmp_path / "by-library"
    _, values = json_of(["salvage", "--json", directory, by_command], capfd)
    printed, _ = logs_and_rest(values)
    results = cordwood.salvage(directory, by_library)
    files = [
        {path.relative_to(new): path.read_bytes() for path in new.rglob("*.*")} for new in (by_command, by_library)
    ]
    assert files[0] == files[1]
    assert list(printed) == sorted([*results, *results.errors])
    for path, report in results.items():
        value = printed[path]
        assert (value["ok"], value["record_count"]) == (report.ok, report.record_count)
        assert value["not_kept"] == list(report.not_kept)


def test_converting_and_scanning_return_the_same_records(directory, tmp_path, capfd):
    results = cordwood.verify(directory)
    records = 0
    for path in results:
        table = tmp_path / "table.arrow"
        assert main(["convert", "--as", "raw", "--on-corruption", "salvage", "--overwrite", path, str(table)]) in (0, 3)
        scanned = pyarrow.table(
            cordwood.scan(path, columns=["offset", "end_offset", "record", "salvaged"], on_corruption="salvage")
        )
        assert pyarrow.ipc.open_file(table).read_all().to_pydict() == scanned.rename_columns(COLUMNS).to_pydict()
        records += len(scanned)
    assert records == len(pyarrow.table(cordwood.scan(directory, on_corruption="salvage")))
    capfd.readouterr()


def test_converting_and_scanning_return_the_same_decoded_rows(directory, tmp_path, capfd):
    for path in cordwood.verify(directory):
        [*payloads] = cordwood.info(path).log_count_by_payload
        if not payloads or payloads[0] not in DECODED:
            continue
        decode = DECODED[payloads[0]]
        table = tmp_path / "table.arrow"
        arguments = ["convert", "--as", decode, "--on-corruption", "salvage", "--overwrite", path, str(table)]
        assert main(arguments) in (0, 3)
        scanned = pyarrow.table(cordwood.scan(path, decode=decode, on_corruption="salvage"))
        # As text: a value may be NaN.
        assert repr(pyarrow.ipc.open_file(table).read_all().to_pylist()) == repr(scanned.to_pylist())
    capfd.readouterr()


def test_the_splits_of_a_log_contain_every_record(directory, capfd):
    _, values = json_of(["split", "--json", "--len", "32KiB", directory], capfd)
    splits = cordwood.plan_splits(directory, 32_768)
    assert [(value["source"], value["start"], value["end"]) for value in values] == [split[:3] for split in splits]
    # Their records are those of the whole logs.
    stats = cordwood.stat(directory)
    assert sum(stat.record_count for stat in cordwood.stat(splits).values()) == sum(
        stat.record_count for stat in stats.values()
    )
