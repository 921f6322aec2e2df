"""Whole exports of Datastore or Firestore, with the metadata that Google's emulator writes into them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import entities
import pytest
import reference
from entities import field, varint

import cordwood
from cordwood import _summary
from cordwood._inputs import exports
from cordwood._inputs.exports import listed_files, stated
from cordwood.cli import main

FILE_COUNT = 3
ENTITY_COUNT = 5
KINDS = ("Task", "User")


def number(index, value):
    return varint(index << 3) + varint(value)


def list_of_files(names):
    times = field(1, b"an_export") + number(2, 1_700_000_000_000_000) + number(3, 1_700_000_000_500_000)
    return field(1, times) + b"".join(field(2, field(1, b"") + field(2, name.encode())) for name in names)


def overall(directories):
    """Metadata: for each directory of an export, its list, the number of entities, and the length of its files."""
    records = (
        field(1, number(1, 2) + number(2, 3)) + field(2, path.encode()) + number(3, entity_count) + number(4, file_len)
        for path, entity_count, file_len in directories
    )
    return b"".join(field(1, record) for record in records)


@pytest.fixture
def export(tmp_path):
    """Two kinds, of three files each, of five entities each."""
    root = tmp_path / "2026-11-23"
    directories = []
    for kind in KINDS:
        directory = root / f"all_namespaces/kind_{kind}"
        directory.mkdir(parents=True)
        files = [
            reference.encode(
                [
                    entities.entity([(kind, file * ENTITY_COUNT + index + 1)], {"name": f"{kind} {index}"})
                    for index in range(ENTITY_COUNT)
                ]
            )
            for file in range(FILE_COUNT)
        ]
        for file, data in enumerate(files):
            (directory / f"output-{file}").write_bytes(data)
        metadata = directory / f"all_namespaces_kind_{kind}.export_metadata"
        metadata.write_bytes(list_of_files([f"output-{file}" for file in range(FILE_COUNT)]))
        directories.append((str(metadata.relative_to(root)), FILE_COUNT * ENTITY_COUNT, sum(map(len, files))))
    (root / f"{root.name}.overall_export_metadata").write_bytes(reference.encode([b"3", overall(directories)]))
    return root


ALL = [f"{kind} {index % ENTITY_COUNT}" for kind in KINDS for index in range(FILE_COUNT * ENTITY_COUNT)]


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize("payload", ["entity", "auto"])
def test_a_complete_export_converts_to_one_entity_table(form, payload, export, tmp_path, capfd):
    to = tmp_path / f"table.{form}"
    assert main(["convert", "--as", payload, "--columns", "name", str(export), str(to)]) == 0
    lines = capfd.readouterr().err.splitlines()
    first = export / "all_namespaces/kind_Task/output-0"
    read_as = [f"cordwood: {first}: read with --as entity"] if payload == "auto" else []
    assert lines == read_as
    if form == "parquet":
        names = pytest.importorskip("pyarrow.parquet").read_table(to)["name"].to_pylist()
    elif form == "csv":
        names = to.read_text().splitlines()[1:]
    else:
        names = [json.loads(line)["name"] for line in to.read_text().splitlines()]
    assert names == ALL


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_zeros_followed_by_more_entities_are_reported(form, export, tmp_path, capfd):
    """Also if the files could be read at once: zeros are not damage."""
    if form == "parquet":
        pytest.importorskip("pyarrow.parquet")
    path = export / "all_namespaces/kind_User/output-1"
    path.write_bytes(bytes(reference.BLOCK_LEN) + path.read_bytes() + bytes(100))
    for strict, status in ([], 0), (["--strict"], 3):
        to = tmp_path / f"{status}.{form}"
        assert main(["convert", "--as", "entity", *strict, str(export), str(to)]) == status
        zeros = capfd.readouterr().err.splitlines()
        end = path.stat().st_size - 100
        assert zeros == [
            f"cordwood: {path}: at 0: 32,768 bytes of zeros before more records: never written, or lost",
            f"cordwood: {path}: at {end:,}: 100 zeros at the end: space that was never written, or data that was lost",
        ]


@pytest.mark.parametrize("payload", ["entity", "auto"])
def test_cat_prints_every_entity_in_an_export(payload, export, capfd):
    assert main(["cat", "--as", payload, "--columns", "value.properties.name", str(export)]) == 0
    printed = capfd.readouterr()
    assert [json.loads(line)["value.properties.name"] for line in printed.out.splitlines()] == ALL
    lines = [line for line in printed.err.splitlines() if not line.endswith(": read with --as entity")]
    assert lines == []


def test_verify_checks_export_metadata(export, capfd):
    """The log that describes all of it is one; the lists of files are none."""
    assert main(["verify", "--json", str(export)]) == 0
    *logs, judged, totals = map(json.loads, capfd.readouterr().out.splitlines())
    assert len(logs) == FILE_COUNT * len(KINDS) + 1
    assert (judged["export"]["ok"], judged["export"]["entity_count"]) == (True, 30)
    assert totals["totals"]["other_file_count_by_format"] == {"metadata of an export": len(KINDS)}
    for verb in "verify", "info":
        assert main([verb, str(export)]) == 0
        assert "not a log" not in capfd.readouterr().out
    (export / "note.txt").write_text("This is not a log. " * 100)
    assert main(["verify", str(export)]) == 0
    assert "\n  1 file is not a log: text\n" in capfd.readouterr().out


def test_a_directory_with_only_metadata_is_an_empty_export(tmp_path, capfd):
    (tmp_path / "x.export_metadata").write_bytes(list_of_files([]))
    assert main(["verify", str(tmp_path)]) == 0
    out, err = capfd.readouterr()
    assert (": ok, an export: 0 entities in 0 bytes" in out, err) == (True, "")


@pytest.mark.parametrize("verb", ["verify", "stat", "info", "cat --as entity", "convert --as entity", "salvage"])
def test_a_file_missing_from_an_export_makes_the_command_fail(verb, export, tmp_path, capfd):
    missing = export / "all_namespaces/kind_User/output-1"
    missing.unlink()
    to = {"convert --as entity": [tmp_path / "t.ndjson"], "salvage": [tmp_path / "salvaged"]}.get(verb, [])
    assert main([*verb.split(), str(export), *map(str, to)]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert f"cordwood: {missing}: missing, and all_namespaces_kind_User.export_metadata lists it" in lines
    if verb.startswith("convert"):
        names = [json.loads(line)["name"] for line in to[0].read_text().splitlines()]
        assert names == ALL[:-ENTITY_COUNT]


NAMES = ["", "..", "a/../../b", "/etc/passwd", "a\0b"]


@pytest.mark.parametrize(
    "data", ["cut", b"", b"<html>", bytes(2 << 20), *(list_of_files([name]) for name in NAMES)], ids=range(9)
)
def test_verify_fails_if_the_file_list_is_unreadable(data, export, capfd):
    """Otherwise missing files would not be noticed."""
    path = export / "all_namespaces/kind_User/all_namespaces_kind_User.export_metadata"
    path.write_bytes(path.read_bytes()[:-1] if data == "cut" else data)
    assert main(["verify", str(export)]) == 1
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith(f"cordwood: {path}: not a list of the files of an export (")
    assert line.endswith("), so missing files cannot be detected")


@pytest.mark.parametrize("change", ["every cut", "damage", "junk", "not a message"])
def test_commands_fail_if_the_overall_metadata_is_unreadable(change, export, capfd):
    """Otherwise missing entities would not be noticed. A cut between the two records leaves a log without damage."""
    path = next(export.glob("*.overall_export_metadata"))
    data = path.read_bytes()
    changed = {
        "every cut": [data[:end] for end in (1, 7, 8, 9, len(data) // 2, len(data) - 1)],
        "damage": [bytes([data[0] ^ 1]) + data[1:], data[:-1] + bytes([data[-1] ^ 1]), bytes(len(data))],
        "junk": [b"<html>" * 20],
        "not a message": [reference.encode([b"3", b"\xff"])],
    }[change]
    lost = export / "all_namespaces/kind_User/output-2"
    whole = lost.read_bytes()
    for path_data in changed:
        path.write_bytes(path_data)
        for lost_data in whole, reference.encode([]):
            lost.write_bytes(lost_data)
            for verb in "info", "verify", "cat --as entity":
                assert main([*verb.split(), str(export)]) == 1
                errors = capfd.readouterr().err.splitlines()
                assert errors[0].startswith(f"cordwood: {path}: not a list of the files of an export (")
                assert errors[0].endswith("), so missing files cannot be detected")
            assert not cordwood.info(export).ok


def test_info_and_verify_mention_a_missing_entity_count(export, capfd):
    next(export.glob("*.overall_export_metadata")).unlink()
    shutil.rmtree(export / "all_namespaces/kind_User")
    for verb in "info", "verify":
        assert main([verb, str(export)]) == 0
        file_len = sum(path.stat().st_size for path in export.rglob("output-*"))
        line = "its metadata states no number of entities: missing entities would not be noticed "
        printed = " ".join(capfd.readouterr().out.split()) + " "
        assert f" 15 entities in {file_len} bytes; {line}" in printed
    assert main(["verify", "--json", str(export)]) == 0
    *_, found, _ = map(json.loads, capfd.readouterr().out.splitlines())
    assert (found["export"]["entity_count"], found["export"]["stated_entity_count"]) == (15, None)


def test_an_export_directory_without_files_is_accepted(export, capfd):
    directory = export / "all_namespaces/kind_Empty"
    directory.mkdir()
    (directory / "all_namespaces_kind_Empty.export_metadata").write_bytes(list_of_files([]))
    assert main(["verify", str(export)]) == 0
    assert capfd.readouterr().err == ""


def test_verify_fails_if_a_directory_is_missing_from_an_export(export, capfd):
    shutil.rmtree(export / "all_namespaces/kind_User")
    assert main(["verify", str(export)]) == 1
    path = export / "all_namespaces/kind_User/all_namespaces_kind_User.export_metadata"
    assert capfd.readouterr().err == f"cordwood: {path}: missing, and {export.name}.overall_export_metadata lists it\n"


@pytest.mark.parametrize("put", ["text", "directory", "link"])
def test_a_listed_export_file_must_be_a_log(put, export, capfd):
    path = export / "all_namespaces/kind_Task/output-1"
    path.unlink()
    if put == "text":
        path.write_text("This is not a log. " * 100)
    elif put == "directory":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    assert main(["verify", str(export)]) == 1
    line, *hint = capfd.readouterr().err.splitlines()
    assert line.startswith(f"cordwood: {path}: ")
    assert len(hint) == (put == "text")
    assert ("not a log" if put == "text" else "missing, and") in line


def test_a_missing_file_is_reported_once(export, tmp_path, capfd):
    """However often it is named; a table that is replaced is made of the others."""
    missing = export / "all_namespaces/kind_User/output-1"
    missing.unlink()
    (tmp_path / "link").symlink_to(export)
    to = tmp_path / "t.ndjson"
    to.write_text("old")
    sources = [export, export, missing.parent, tmp_path / "link"]
    assert main(["convert", "--overwrite", "--as", "entity", *map(str, sources), str(to)]) == 1
    assert len([line for line in capfd.readouterr().err.splitlines() if "missing" in line]) == 1
    assert len(to.read_text().splitlines()) == len(ALL) - ENTITY_COUNT


def test_at_most_ten_missing_files_are_reported(tmp_path, capfd):
    path = tmp_path / "x.export_metadata"
    path.write_bytes(list_of_files([f"output-{index}" for index in range(40_000)]))
    assert main(["verify", str(tmp_path)]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 11
    last = f"cordwood: {tmp_path}/output-10005: missing, and 39,989 more files that {path.name} lists"
    assert lines[-1] == last


def test_each_missing_file_is_counted(tmp_path, capfd):
    """Ten are reported one by one, the rest together."""
    (tmp_path / "output-7").write_bytes(reference.encode([entities.entity([("Task", 1)], {"name": "one"})]))
    (tmp_path / "x.export_metadata").write_bytes(list_of_files([f"output-{index}" for index in range(1_018)]))
    assert main(["verify", "--json", str(tmp_path)]) == 1
    totals = json.loads(capfd.readouterr().out.splitlines()[-1])["totals"]
    assert (totals["log_count"], totals["failed_count"]) == (1, 1_017)
    assert len(cordwood.info(tmp_path).exports[0].missing_files) == 1_017


@pytest.mark.parametrize("content", ["empty", "shorter"])
def test_an_empty_or_truncated_export_file_is_reported(content, export, tmp_path, capfd):
    """It decides the status. A file that was cut between two records has no other trace of that."""
    cut = export / "all_namespaces/kind_User/output-2"
    whole_len = sum(path.stat().st_size for path in export.rglob("output-*"))
    cut.write_bytes(reference.encode([entities.entity([("User", 11)], {"name": "User 0"})] * (content == "shorter")))
    cut_len = sum(path.stat().st_size for path in export.rglob("output-*"))
    overall_path = export / f"{export.name}.overall_export_metadata"
    ending = "; output-2 is empty" * (content == "empty")
    bytes_text = f"{cut_len:,} of {whole_len:,} stated bytes{ending}"
    line = f"cordwood: {overall_path}: the export's files have {bytes_text}"
    assert main(["verify", str(export)]) == 3
    printed = capfd.readouterr()
    entities_text = f"{25 if content == 'empty' else 26} of 30 stated entities"
    verdict = f"{overall_path}: INCOMPLETE, an export export the export's files have {entities_text}, {bytes_text} "
    assert verdict in " ".join(printed.out.split())
    assert printed.err == ""
    convert = ["convert", "--as", "entity", "--to", "ndjson"]
    table, directory = tmp_path / "t.ndjson", tmp_path / "t"
    cat = ["cat", "--as", "entity", export]
    for command in [*convert, export, table], [*convert, "--by-kind", directory, export], cat:
        assert main([*map(str, command)]) == 3
        assert line in capfd.readouterr().err.splitlines()
    info = cordwood.info(export)
    assert (info.ok, info.exports[0].ok) == (False, False)
    assert info.exports[0].empty_files == ((str(cut),) if content == "empty" else ())


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_verify_totals_state_whether_exports_are_complete(is_whole, export, capfd):
    if not is_whole:
        (export / "all_namespaces/kind_User/output-2").write_bytes(b"")
    results = cordwood.verify([export])
    assert (results.ok, [found.ok for found in results.exports]) == (is_whole, [is_whole])
    assert results.exports[0].path == str(export / f"{export.name}.overall_export_metadata")
    incomplete_count, status = (0, 0) if is_whole else (1, 3)
    assert main(["verify", str(export)]) == status
    assert f"\ntotal: 1 export, {incomplete_count} incomplete\n" in capfd.readouterr().out
    assert main(["verify", "--json", str(export)]) == status
    totals = json.loads(capfd.readouterr().out.splitlines()[-1])["totals"]
    assert (totals["export_count"], totals["incomplete_export_count"]) == (1, incomplete_count)
    assert main(["verify", "--quiet", str(export)]) == status
    metadata = results.exports[0].path
    assert [line.startswith(f"{metadata}: INCOMPLETE") for line in capfd.readouterr().out.splitlines()[:1]] == (
        [] if is_whole else [True]
    )
    assert main(["verify", str(export)]) == status
    verdict = (
        f"\n{metadata}: ok, an export: 30 entities in {results.exports[0].file_len:,} bytes, as its metadata states\n"
    )
    assert (verdict in capfd.readouterr().out) == is_whole


def test_an_emptied_export_file_is_reported_by_name(export, tmp_path, capfd):
    emptied = export / "all_namespaces/kind_User/output-2"
    emptied.write_bytes(b"")
    for path, metadata in (
        (emptied, emptied.with_name("all_namespaces_kind_User.export_metadata")),
        (export, export / f"{export.name}.overall_export_metadata"),
    ):
        assert main(["verify", "--json", str(path)]) == 3
        out, _ = capfd.readouterr()
        [found] = [value["export"] for value in map(json.loads, out.splitlines()) if "export" in value]
        assert (found["path"], found["empty_files"], found["ok"]) == (str(metadata), [str(emptied)], False)
        assert main(["info", str(path)]) == 3
        assert "output-2 is empty" in " ".join(capfd.readouterr().out.split())
        assert main(["cat", str(path)]) == 3
        assert "output-2 is empty" in capfd.readouterr().err
        assert not cordwood.info(path).ok
    # An empty file that no list names is an empty log.
    other = emptied.with_name("other")
    other.write_bytes(b"")
    assert main(["verify", "--strict", "--json", str(other)]) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("verb", ["verify", "info"])
def test_surplus_entities_of_an_export_are_reported(verb, export, capfd):
    """A file may be one of another export, or have been appended to."""
    grown = export / "all_namespaces/kind_User/output-2"
    file_len = sum(path.stat().st_size for path in export.rglob("output-*"))
    records = [entities.entity([("User", index + 11)], {"name": "more"}) for index in range(ENTITY_COUNT + 1)]
    grown.write_bytes(reference.encode(records))
    more_len = sum(path.stat().st_size for path in export.rglob("output-*"))
    assert main([verb, str(export)]) == 3
    counts = f"31 entities, more than the 30 stated, {more_len:,} bytes, more than the {file_len:,} stated"
    assert f"the export's files have {counts}" in " ".join(capfd.readouterr().out.split())
    assert not getattr(cordwood, verb)(export).ok
    # Only parts of the files are read, so their entities are not counted.
    assert cordwood.verify(export, start=10).exports[0].entity_count is None
    # The bytes may be counted in another way by another exporter.
    grown.write_bytes(reference.encode(records[:-1]))
    more = [len(path.read_bytes()) for path in export.rglob("output-*")]
    assert sum(more) != file_len
    overall_path = next(export.glob("*.overall_export_metadata"))
    lists = [(str(path.relative_to(export)), 15, 1) for path in export.rglob("*.export_metadata")]
    overall_path.write_bytes(reference.encode([b"3", overall(lists)]))
    assert main([verb, str(export)]) == 0
    assert f"30 of 30 stated entities, {sum(more):,} bytes, more than the 2 stated" in " ".join(
        capfd.readouterr().out.split()
    )
    # Some state only the entities.
    overall_path.write_bytes(reference.encode([b"3", overall([(name, 20, 0) for name, *_ in lists])]))
    assert main([verb, str(export)]) == 3
    assert f"the export's files have 30 of 40 stated entities, {sum(more):,} bytes" in " ".join(
        capfd.readouterr().out.split()
    )
    # Nor does every exporter count the entities.
    overall_path.write_bytes(reference.encode([b"3", overall([(name, 0, 1) for name, *_ in lists])]))
    assert main([verb, str(export)]) == 0
    assert f"30 entities, {sum(more):,} bytes, more than the 2 stated" in " ".join(capfd.readouterr().out.split())


@pytest.mark.parametrize("pattern", ["*.export_metadata", "*.overall_export_metadata"])
def test_emptied_export_metadata_is_not_reported_as_missing(pattern, export, capfd):
    path = max(export.rglob(pattern))
    path.write_bytes(b"")
    for verb in "verify", "info":
        assert main([verb, str(export)]) == 1
        out, err = capfd.readouterr()
        text = "not a list of the files of an export (it is empty), so missing files cannot be detected"
        assert err == f"cordwood: {path}: {text}\n"
        assert "is missing" not in out
        assert (f"{path.name} is empty" in " ".join(out.split())) == (pattern == "*.export_metadata")
    judged = cordwood.info(export).exports
    assert [found.empty_files for found in judged if not found.ok] == ([(str(path),)] if len(judged) == 1 else [])


def test_two_exports_in_a_directory_are_checked_separately(export, tmp_path, capfd):
    both = tmp_path / "both"
    for name in ("a", "b"):
        shutil.copytree(export, both / name)
    (both / "b/all_namespaces/kind_User/output-1").write_bytes(b"")
    assert main(["info", str(both)]) == 3
    printed = " ".join(capfd.readouterr().out.split())
    assert printed.startswith(f"{both}: 2 exports of Datastore or Firestore ")
    file_len = sum(path.stat().st_size for path in export.rglob("output-*"))
    metadata = f"{export.name}.overall_export_metadata"
    assert f"export {both}/a/{metadata}: 30 entities in {file_len:,} bytes, as its metadata states" in printed
    assert f"export {both}/b/{metadata}: the export's files have 25 of 30 stated entities, " in printed
    assert [found.ok for found in cordwood.info(both).exports] == [True, False]


def test_scan_returns_the_entities_of_a_complete_export(export):
    pa = pytest.importorskip("pyarrow")
    assert pa.table(cordwood.scan(export, decode="entity"))["name"].to_pylist() == ALL
    (export / "all_namespaces/kind_Task/output-1").unlink()
    with pytest.raises(FileNotFoundError, match="output-1"):
        cordwood.scan(export, decode="entity")


@pytest.mark.parametrize("decode", [None, "entity"])
def test_scan_warns_about_an_incomplete_export(decode, export, caplog):
    pytest.importorskip("pyarrow")
    cordwood.scan(export, decode=decode)
    assert caplog.messages == []
    for path in export.rglob("output-*"):
        path.write_bytes(b"")
    cordwood.scan(export, decode=decode)
    metadata = next(export.glob("*.overall_export_metadata"))
    [message] = caplog.messages
    assert message.startswith(f"{metadata}: the export's files have 0 of ")
    assert message.endswith("; output-0 and 5 more listed files are empty")


def test_scan_and_index_warn_about_a_directory_without_logs(tmp_path, caplog):
    (tmp_path / "output-0").write_bytes(b"")
    for sources, name in (tmp_path, str(tmp_path)), ([tmp_path], f"[{tmp_path!r}]"), ([], "[]"):
        for read in cordwood.scan, cordwood.index:
            caplog.clear()
            read(sources)
            assert caplog.messages == [f"{name}: no log was found"]


@pytest.mark.parametrize("name", ["backup.overall_export_metadata", "backup.export_metadata"])
def test_a_log_named_like_export_metadata_is_still_read(name, tmp_path, capfd):
    records = [entities.entity([("Task", index + 1)], {"name": f"Task {index}"}) for index in range(3)]
    (tmp_path / name).write_bytes(reference.encode(records))
    assert main(["cat", "--as", "entity", "--columns", "value.properties.name", str(tmp_path)]) == 0
    printed = capfd.readouterr()
    assert len(printed.out.splitlines()) == 3
    assert printed.err == ""
    assert main(["info", "--json", str(tmp_path)]) == 0
    assert json.loads(capfd.readouterr().out)["exports"] == []


def test_verify_accepts_a_link_to_an_export_file_list(export, capfd):
    list_ = export / "all_namespaces/kind_User/all_namespaces_kind_User.export_metadata"
    (export / "link.export_metadata").symlink_to(list_)
    assert main(["verify", str(export)]) == 0
    assert capfd.readouterr().err == ""


MEASURED = """
import sys
sys.path.insert(0, sys.argv[2])
from process import peak_len
from cordwood.cli import _directories, main
main(["info", sys.argv[1]])
print(peak_len())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_info_does_not_load_the_second_record(tmp_path):
    peaks = []
    for length in (10, 48 << 20):
        path = tmp_path / f"{length}.log"
        path.write_bytes(reference.encode([b"x", bytes(length)]))
        command = [sys.executable, "-c", MEASURED, path, Path(reference.__file__).parent]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
        peaks.append(int(done.stdout.splitlines()[-1]))
    assert peaks[1] - peaks[0] < 24 << 20


def test_info_checks_an_export_against_its_metadata(export, capfd):
    assert main(["info", str(export)]) == 0
    printed = capfd.readouterr().out
    file_len = sum(path.stat().st_size for path in export.rglob("output-*"))
    assert printed.startswith(f"{export}: an export of Datastore or Firestore\n")
    assert f"\n  export   30 entities in {file_len:,} bytes, as its metadata states\n" in printed
    assert printed.endswith(f" {export}\n           cordwood convert --as entity --strict --by-kind tables/ {export}\n")
    # Cut between two records, which leaves no trace in the file.
    cut = export / "all_namespaces/kind_User/output-2"
    cut_len = cut.stat().st_size
    cut.write_bytes(reference.encode([entities.entity([("User", 11)], {"name": "User 0"})]))
    cut_len -= cut.stat().st_size
    metadata = next(export.glob("*.overall_export_metadata"))
    assert main(["info", str(export)]) == 3
    printed = " ".join(capfd.readouterr().out.split())
    found = f"26 of 30 stated entities, {file_len - cut_len:,} of {file_len:,} stated bytes"
    assert f"export {metadata}: the export's files have {found}" in printed
    assert printed.endswith(f" more cordwood verify {export}")
    assert main(["info", "--json", str(export)]) == 3
    fields = json.loads(capfd.readouterr().out)
    [found] = fields["exports"]
    assert (found["entity_count"], found["file_len"]) == (26, file_len - cut_len)
    assert (found["stated_entity_count"], found["stated_len"]) == (30, file_len)
    assert fields["log_count_by_payload"] == {"entity": 6, "export-metadata": 1}


def test_info_lists_incomplete_exports_and_counts_other_logs(export, tmp_path, capfd):
    """Nobody can know whether entities are missing from those."""
    alone = tmp_path / "alone"
    shutil.copytree(export / "all_namespaces/kind_User", alone, ignore=shutil.ignore_patterns("*metadata"))
    assert main(["info", str(alone)]) == 0
    printed = " ".join(capfd.readouterr().out.split())
    assert "export 3 logs of entities without metadata: missing entities would not be noticed damage none" in printed
    assert printed.endswith(f"cordwood convert --as entity --strict --by-kind tables/ {alone}")
    (export / "all_namespaces/kind_User/output-1").write_bytes(b"")
    assert main(["info", str(tmp_path)]) == 3
    printed = capfd.readouterr().out
    assert printed.startswith(f"{tmp_path}: exports of Datastore or Firestore\n")
    metadata = next(export.glob("*.overall_export_metadata"))
    assert f"export {metadata}: the export's files have 25 of 30 stated" in " ".join(printed.split())
    assert main(["info", "--json", str(tmp_path)]) == 3
    assert json.loads(capfd.readouterr().out)["unlisted_log_count"] == FILE_COUNT
    # A log that is named is not searched for metadata.
    assert cordwood.info(alone / "output-0").unlisted_logs == ()


def test_a_file_is_not_recognized_as_export_metadata_by_its_name_alone(export, capfd):
    path = next(export.glob("*.overall_export_metadata"))
    path.write_bytes(reference.encode([b"3", b"\xff"]))
    assert main(["info", "--json", str(path)]) == 0
    fields = json.loads(capfd.readouterr().out)
    assert fields["log_count_by_payload"] == {"other": 1}
    assert fields["exports"] == []


def test_truncated_metadata_raises_an_error_or_lists_fewer_files(tmp_path):
    names = ["output-0", "output-1"]
    path = tmp_path / "x.export_metadata"
    message = list_of_files(names)
    for end in range(len(message) + 1):
        path.write_bytes(message[:end])
        try:
            found = listed_files(str(path))
        except ValueError:
            continue
        # Fields may be missing at the end: that is a message, too.
        assert found == names[: len(found)]
    assert found == names
    record = overall([("a", 300, 70_000), ("b", 1, 2)])
    assert stated(record) == (301, 70_002)
    for end in range(len(record)):
        try:
            assert stated(record[:end])[0] in (0, 300)
        except ValueError:
            continue


@pytest.mark.parametrize("message", [b"\x80" * 11, b"\x0b", b"\x0a\x02\x18", b"\x0a\x02\x1a\x00"])
def test_malformed_export_metadata_raises_an_error(message):
    with pytest.raises(ValueError, match=r"cut off|wire type|number"):
        stated(message)


def test_unknown_fields_in_export_metadata_are_skipped():
    fixed = varint(9 << 3 | 1) + bytes(8) + varint(10 << 3 | 5) + bytes(4)
    assert stated(fixed + field(1, fixed + number(3, 7)) + field(8, b"x")) == (7, 0)


def moved_and_linked(path, directory):
    """Moves a file or a directory to another directory, and makes a link to it in its place."""
    directory.mkdir(exist_ok=True)
    path.symlink_to(path.rename(directory / path.name))


def test_a_file_list_linked_from_another_directory_is_not_reported_as_missing(export, tmp_path, capfd):
    directory = export / "all_namespaces/kind_User"
    moved_and_linked(directory / "all_namespaces_kind_User.export_metadata", tmp_path / "elsewhere")
    for path in directory.glob("output-*"):
        path.rename(tmp_path / "elsewhere" / path.name)
    [found] = cordwood.info(export).exports
    assert (found.ok, found.missing_files, found.entity_count) == (True, (), None)
    assert found.file_len == found.stated_len
    assert main(["info", str(export)]) == 0
    (tmp_path / "elsewhere/output-1").unlink()
    [found] = cordwood.info(export).exports
    assert found.missing_files == (str(tmp_path / "elsewhere/output-1"),)


def test_a_link_to_export_metadata_selects_the_linked_export(export, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links/link.overall_export_metadata").symlink_to(next(export.glob("*.overall_export_metadata")))
    [found] = cordwood.info(tmp_path / "links").exports
    assert (found.ok, len(found.files), found.file_len) == (True, 2 * FILE_COUNT, found.stated_len)
    os.mkfifo(tmp_path / "pipe")
    list_ = export / "all_namespaces/kind_User/all_namespaces_kind_User.export_metadata"
    list_.unlink()
    list_.symlink_to(tmp_path / "pipe")
    [found] = cordwood.info(tmp_path / "links").exports
    assert found.missing_files == (str(list_),)


def test_an_export_with_a_second_copy_of_its_metadata_is_complete(export, capfd):
    shutil.copy(next(export.glob("*.overall_export_metadata")), export / "copy.overall_export_metadata")
    exports = cordwood.info(export).exports
    assert [Path(found.path).name for found in exports] == [
        f"{export.name}.overall_export_metadata",
        "copy.overall_export_metadata",
    ]
    assert [(found.ok, found.entity_count, found.missing_files) for found in exports] == 2 * [(True, 30, ())]
    assert main(["info", str(export)]) == 0


def test_info_fails_if_the_metadata_disappears(export, monkeypatch, capfd):
    path = next(export.glob("*.overall_export_metadata"))
    data = path.read_bytes()
    exports_of = exports.exports_of

    def removed_before(*arguments):
        path.unlink()
        found = exports_of(*arguments)
        path.write_bytes(data)
        return found

    monkeypatch.setattr(_summary, "exports_of", removed_before)
    info = cordwood.info(export)
    assert [(name, type(error)) for name, error in info.failures] == [(str(path), FileNotFoundError)]
    # The lists are exports of their own then.
    assert [Path(found.path).suffix for found in info.exports] == 2 * [".export_metadata"]
    for verb in "info", "verify":
        assert main([verb, str(export)]) == 1
        assert capfd.readouterr().err == f"cordwood: {path}: No such file or directory\n"
    assert main(["info", "--json", str(export)]) == 1
    assert json.loads(capfd.readouterr().out)["failed_count"] == 1


def test_the_evidence_states_whether_exports_are_complete(export, tmp_path, capsys):
    found = cordwood.evidence(export)
    assert (found.ok, found.exports) == (True, cordwood.info(export).exports)
    assert "30 entities in " in found.html
    zeroed = export / "all_namespaces/kind_User/output-0"
    zeroed.write_bytes(bytes(zeroed.stat().st_size))
    found = cordwood.evidence(export)
    assert [(judged.ok, judged.entity_count) for judged in found.exports] == [(False, 25)]
    assert not found.ok
    assert '<span class="bad">incomplete</span>' in found.html
    counts = "7 logs, 0 damaged, 1 incomplete; 1 export, 1 incomplete"
    assert f"<h1>Evidence: {counts}</h1>" in found.html
    capsys.readouterr()
    page = tmp_path / "page.html"
    assert main(["evidence", str(export), str(page)]) == 3
    assert capsys.readouterr().out == f"wrote {page}: {counts}\n"
    [fields] = json.loads(found.json)["exports"]
    assert (fields["ok"], fields["file_count"], fields["stated_entity_count"]) == (False, 6, 30)


@pytest.mark.parametrize("is_overall", [True, False])
def test_the_path_of_export_metadata_selects_the_whole_export(is_overall, export, capfd):
    metadata = next(export.rglob("*.overall_export_metadata" if is_overall else "*kind_User.export_metadata"))
    assert main(["verify", str(metadata)]) == 0
    assert f"{metadata}: ok, an export: " in capfd.readouterr().out
    (export / "all_namespaces/kind_User/output-1").unlink()
    assert main(["verify", str(metadata)]) == 3
    assert "output-1 is missing" in " ".join(capfd.readouterr().out.split())
    assert main(["info", str(metadata)]) == 3
    # None of its records is an entity.
    assert main(["convert", "--as", "entity", str(metadata)]) == 1
    assert "no log was found; 1 file is not a log: metadata of an export" in capfd.readouterr().err


def test_metadata_of_an_unknown_version_raises_an_error(export, capfd):
    [metadata] = export.glob("*.overall_export_metadata")
    _, message = cordwood.open(metadata)
    metadata.write_bytes(reference.encode([b"4", message]))
    assert main(["verify", str(export)]) == 1
    assert "its version, 4, is not known), so missing files cannot be detected" in capfd.readouterr().err
    # On its own, it is a log.
    assert main(["verify", str(metadata)]) == 0
    # So is one of other records.
    metadata.write_bytes(reference.encode([b"other", message]))
    assert main(["verify", str(export)]) == 0


@pytest.mark.parametrize("is_in_windows_form", [False, True])
def test_an_export_from_windows_is_checked_like_any_other(is_in_windows_form, export, capsys):
    """The Firestore emulator on Windows separates directories by backslashes."""
    [metadata] = export.glob("*.overall_export_metadata")
    if is_in_windows_form:
        version, message = list(cordwood.open(metadata))
        assert b"all_namespaces/" in message
        metadata.write_bytes(reference.encode([version, message.replace(b"/", b"\\")]))
    assert main(["verify", str(export)]) == 0
    out = capsys.readouterr().out
    assert "ok, an export: 30 entities in " in out
    assert "as its metadata states" in out
    assert "total: 1 export, 0 incomplete" in out
    reports = cordwood.verify(export)
    assert (reports.ok, len(reports.exports), reports.exports[0].entity_count) == (True, 1, 30)
    (export / "all_namespaces/kind_Task/output-1").unlink()
    assert main(["verify", "--quiet", str(export)]) == 1
    assert "output-1: missing" in capsys.readouterr().err


def write(path, content):
    path.write_bytes(content)
    return str(path)


def test_an_export_file_name_can_contain_a_backslash(tmp_path):
    (tmp_path / "directory").mkdir()
    for name in ("directory\\output-0", "directory/output-0"):
        (tmp_path / name).write_bytes(reference.encode([b"entity"] * (1 + len(name) % 2)))
    metadata = tmp_path / "x.export_metadata"
    metadata.write_bytes(list_of_files(["directory\\output-0"]))
    assert cordwood.verify(metadata).exports[0].files == (f"{tmp_path}/directory\\output-0",)
    (tmp_path / "directory\\output-0").unlink()
    assert cordwood.verify(metadata).exports[0].files == (f"{tmp_path}/directory/output-0",)
    for name in ("..\\x\\output-0", "\\\\server\\output-0"):
        with pytest.raises(ValueError, match="is not the name of a file"):
            listed_files(write(metadata, list_of_files([name])))


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet", "arrow"])
def test_an_export_with_no_entities_converts_to_an_empty_table(form, tmp_path, capsys):
    directory = tmp_path / "export"
    directory.mkdir()
    (directory / "export.overall_export_metadata").write_bytes(reference.encode([b"3", overall([])]))
    assert main(["verify", str(directory)]) == 0
    assert "ok, an export: 0 entities in 0 bytes, as its metadata states" in capsys.readouterr().out
    table = tmp_path / f"table.{form}"
    assert main(["convert", "--as", "entity", str(directory), str(table)]) == 0
    assert capsys.readouterr() == ("", "")
    assert table.exists()
    assert main(["convert", "--as", "entity", "--by-kind", str(tmp_path / "kinds"), str(directory)]) == 0
    assert main(["cat", str(directory)]) == 0


def test_the_library_and_the_verify_command_give_the_same_result_for_an_export_file_list(export, capsys):
    [metadata] = export.glob("all_namespaces/kind_Task/*.export_metadata")
    assert main(["verify", str(metadata)]) == 0
    out, err = capsys.readouterr()
    assert (f"{metadata}: ok, an export: " in out, err) == (True, "")
    reports = cordwood.verify(metadata)
    assert (reports.ok, dict(reports.others), len(reports.exports)) == (
        True,
        {str(metadata): "metadata of an export"},
        1,
    )
    info = cordwood.info(metadata)
    assert (info.what, info.ok) == ("an export of Datastore or Firestore", True)
    (metadata.parent / "output-0").write_bytes(b"")
    assert not cordwood.verify(metadata).ok
    assert main(["verify", "--quiet", str(metadata)]) == 3
    assert main(["convert", "--as", "entity", str(metadata), str(export / "x.ndjson")]) == 1
    assert "no log was found; 1 file is not a log: metadata of an export" in capsys.readouterr().err
