"""Functions that take a directory, a pattern or a list of logs, and the splits of logs."""

import json
import os
import pickle
import shutil
from functools import partial
from pathlib import Path

import pyarrow
import pytest
import reference

import cordwood
from cordwood._inputs import each
from cordwood._inputs.files import expand
from cordwood.cli import main

VECTORS = Path(__file__).parents[1] / "vectors"
BLOCK_LEN = 32_768
LOG = reference.encode([b"one", b"two" * 20_000, b"three"])
DAMAGED = bytearray(LOG)
DAMAGED[40_000] ^= 1


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """Two logs, of which one is damaged, in different directories, and two other files."""
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "data/000001.log": LOG,
        "data/sub/000002.log": DAMAGED,
        "data/notes": b"a text, and no log",
        "data/nothing": b"",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Path("data")


@pytest.mark.parametrize("source", ["data", Path("data"), "data/", "dat?", ["data"], iter(["data"])])
def test_accepts_a_directory_a_pattern_or_a_list_of_logs(source, directory):
    reports = cordwood.verify(source)
    names = [os.path.normpath(name) for name in reports]
    assert names == ["data/000001.log", "data/sub/000002.log"]
    assert [report.ok for report in reports.values()] == [True, False]
    assert {os.path.normpath(name): kind for name, kind in reports.others.items()} == {
        "data/notes": "text",
        "data/nothing": "empty",
    }
    assert (reports.ok, reports.errors) == (False, {})


def test_verifying_one_log_returns_one_report(directory):
    assert cordwood.verify("data/000001.log") == cordwood.verify(Path("data/000001.log"))
    assert cordwood.verify("data/000001.log").record_count == 3
    assert cordwood.stat(LOG).record_count == 3
    with Path("data/000001.log").open("rb") as file:
        assert cordwood.stat(file).record_count == 3
    (directory / "[1].log").write_bytes(LOG)
    assert cordwood.verify("data/[1].log").ok


def test_the_other_files_are_verified_if_one_is_unreadable(directory):
    reports = cordwood.verify(["data/000001.log", "data/missing", "data/notes"])
    assert list(reports) == ["data/000001.log"]
    assert {name: type(error) for name, error in reports.errors.items()} == {
        "data/missing": FileNotFoundError,
        "data/notes": cordwood.DialectError,
    }
    assert not reports.ok


def test_an_empty_directory_fails_verification(tmp_path):
    assert not cordwood.verify(tmp_path).ok
    assert list(cordwood.verify(str(tmp_path / "*.log")).errors) == [str(tmp_path / "*.log")]


@pytest.mark.parametrize("function", [cordwood.verify, cordwood.stat, cordwood.info, cordwood.evidence])
@pytest.mark.parametrize("threads", [0, -3, 257])
def test_an_invalid_number_of_threads_is_rejected(function, threads, directory):
    for source in ([directory / "000001.log"], directory, directory / "000001.log"):
        with pytest.raises(ValueError, match=f"from 1 to 256, not {threads}"):
            function(source, threads=threads)


def test_invalid_options_raise_an_error_when_reading_many_logs(directory):
    with pytest.raises(ValueError, match=r"the length of data/000001.log is negative: -5"):
        cordwood.plan_splits([(directory / "000001.log", -5)], BLOCK_LEN)
    with pytest.raises(TypeError, match="not bytes"):
        cordwood.verify([LOG])


def test_stat_and_map_work_on_many_logs(directory):
    stats, pictures = cordwood.stat(directory), cordwood.map(directory)
    assert [stat.record_count for stat in stats.values()] == [3, 2]
    assert [picture.damaged_len > 0 for picture in pictures.values()] == [False, True]
    assert (stats.ok, pictures.ok) == (False, False)
    assert pickle.loads(pickle.dumps(stats)) == stats  # noqa: S301 - our own


def test_reported_progress_adds_up_to_the_total_size(directory):
    read_lens = []
    cordwood.verify(directory, progress=read_lens.append)
    assert sum(read_lens) == 2 * len(LOG)


def test_salvaging_copies_each_log_to_a_directory(directory):
    reports = cordwood.salvage(directory, "new")
    assert [report.record_count for report in reports.values()] == [3, 2]
    assert sorted(str(path) for path in Path("new").rglob("*")) == ["new/000001.log", "new/sub", "new/sub/000002.log"]
    assert Path("new/000001.log").read_bytes() == LOG
    assert list(cordwood.open("new/sub/000002.log")) == [b"one", b"three"]
    again = cordwood.salvage(directory, "new")
    assert [type(error) for error in again.errors.values()] == [FileExistsError] * 2
    with pytest.raises(ValueError, match="would be among those that are read"):
        cordwood.salvage(directory, "data/new")


def test_salvage_rejects_a_split_of_a_log(directory):
    splits = cordwood.plan_splits(directory / "000001.log", BLOCK_LEN)
    assert len(splits) == 2
    for source in (splits, iter(splits), ["data", splits[0]], splits[0]):
        with pytest.raises(TypeError, match="a Split is a part of a log: pass its path"):
            cordwood.salvage(source, "new")
    assert not os.path.lexists("new")


@pytest.mark.parametrize("pattern", ["data/su*/../../b.log", "data/su*/../../b.l*", "data/su*/../../ot*"])
def test_salvaging_never_writes_outside_its_directory(pattern, directory):
    """Its fixed part is `data`, which does not contain the logs."""
    Path("other").mkdir()
    Path("b.log").write_bytes(LOG)
    Path("other/b.log").write_bytes(LOG)
    Path("place").mkdir()
    assert cordwood.salvage(pattern, "place/new").ok
    [path] = [path for path in Path("place").rglob("*") if path.is_file()]
    assert path.as_posix() == ("place/new/other/b.log" if "ot*" in pattern else "place/new/b.log")


@pytest.fixture
def deep(directory):
    """A log 1,200 directories below the others, more than Python 3.11 can go down by calling a function for each."""
    path = directory / "/".join("d" * 1_200) / "3.log"
    for number in range(1, 1_201):
        (directory / "/".join("d" * number)).mkdir()
    path.write_bytes(LOG)
    yield path
    # Nor can pytest remove them.
    path.unlink()
    os.removedirs(path.parent)


@pytest.mark.parametrize("source", ["data", "data/**/*.log"])
def test_a_directory_is_searched_for_logs_at_any_depth(source, deep):
    reports = cordwood.verify(source)
    assert reports[str(deep)].record_count == 3
    assert (len(reports), reports.errors) == (3, {})


def test_salvaging_does_not_create_a_directory_if_no_log_is_found(directory):
    shutil.rmtree("data/sub")
    Path("data/000001.log").unlink()
    assert cordwood.salvage(directory, "new").others == {"data/notes": "text", "data/nothing": "empty"}
    assert not os.path.lexists("new")


@pytest.mark.parametrize("name", ["open", "Reader", "follow", "Follower", "fragments", "detect", "pack"])
def test_a_directory_cannot_be_opened_as_a_log(directory, name):
    more = ["new.log"] if name == "pack" else []
    with pytest.raises(IsADirectoryError) as raised:
        getattr(cordwood, name)(directory, *more)
    assert raised.value.filename == str(directory)
    assert "cordwood.verify" in raised.value.__notes__[0]
    assert raised.value.hint == cordwood.types.Hint.READ_DIRECTORY


def test_planned_splits_cover_all_logs_in_a_directory(directory):
    splits = cordwood.plan_splits(directory, 1)
    assert [(split.path, split.start, split.end) for split in splits] == [
        ("data/000001.log", 0, BLOCK_LEN),
        ("data/000001.log", BLOCK_LEN, len(LOG)),
        ("data/sub/000002.log", 0, BLOCK_LEN),
        ("data/sub/000002.log", BLOCK_LEN, len(LOG)),
    ]
    assert {split.file_len for split in splits} == {len(LOG)}
    known = [("data/000001.log", len(LOG)), ("data/sub/000002.log", len(LOG))]
    assert cordwood.plan_splits(known, 1) == splits
    # A length that is given is not asked for again, right or wrong.
    assert [split.end for split in cordwood.plan_splits([("data/000001.log", 7)], 1)] == [7]


def test_each_split_is_verified_and_summarized_separately(directory):
    splits = cordwood.plan_splits("data/000001.log", 1)
    # The second record starts in the first block, and the third after the second.
    assert [cordwood.verify(split).record_count for split in splits] == [2, 1]
    assert [cordwood.stat(split).payload_len for split in splits] == [60_003, 5]
    reports = cordwood.verify(splits)
    assert {split: report.record_count for split, report in reports.items()} == dict(zip(splits, (2, 1), strict=True))
    with pytest.raises(ValueError, match="start"):
        cordwood.verify(splits[1], start=3)
    with pytest.raises(TypeError, match="part of a log"):
        cordwood.salvage(splits[0], "new")


def test_a_group_of_splits_becomes_a_single_table(directory):
    pa = pytest.importorskip("pyarrow")
    splits = cordwood.plan_splits("data/000001.log", 1)
    offsets = [pa.table(cordwood.scan(source))["offset"].to_pylist() for source in (splits[0], splits[1:], splits)]
    assert offsets == [[0, 10], [60_024], [0, 10, 60_024]]
    for source in ("data/*1.log", ["data/000001.log"]):
        assert pa.table(cordwood.scan(source))["path"].to_pylist() == ["data/000001.log"] * 3
    assert pa.table(cordwood.scan(directory, on_corruption="skip")).num_rows == 4
    many = reference.encode([b'{"a":%d}' % number for number in range(9_000)])
    Path("many.log").write_bytes(many)
    parts = [
        pa.table(cordwood.scan(split, decode="json"))["a"].to_pylist()
        for split in cordwood.plan_splits(["many.log"], BLOCK_LEN)
    ]
    assert len(parts) > 3
    assert [value for part in parts for value in part] == list(range(9_000))


def test_scanning_and_verifying_leave_out_the_same_files(directory):
    pa = pytest.importorskip("pyarrow")
    for name in ("LOG", "notes.log", "sub/000007.log"):
        (directory / name).write_text("2026/11/26-12:00:00 a text with the name of a log\n" * 3)
    (directory / "000003.log").write_bytes(b"\xff\xfe\x01" * 20)
    reports = cordwood.verify(directory)
    assert {"data/LOG", "data/notes.log", "data/sub/000007.log"} < set(reports.others)
    for dialect in (None, "leveldb"):
        scan = cordwood.scan(directory, on_corruption="skip", dialect=dialect)
        assert pa.table(scan)["path"].to_pylist() == ["data/000001.log"] * 3 + ["data/sub/000002.log"]
        # A damaged log is a log, also if no record is left.
        assert [bool(regions) for regions in scan.skipped] == [False, True, True]
    with pytest.raises(OSError, match="not a log, but text"):
        pa.table(cordwood.scan(directory / "notes.log"))


def test_small_splits_are_combined_into_groups():
    lens = [10, 10, 30, 5, 90, 10, 0]
    splits = [cordwood.Split(str(number), 0, length) for number, length in enumerate(lens)]
    groups = cordwood.group_splits(splits, 30)
    assert [[split.end for split in group] for group in groups] == [[10, 10], [30], [5], [90], [10, 0]]
    assert cordwood.group_splits([], 30) == []
    with pytest.raises(ValueError, match="at least 1"):
        cordwood.group_splits(splits, 0)


def scanned(sources):
    return pyarrow.table(cordwood.scan(sources)).column("record").to_pylist()


def planned(sources):
    return [record for split in cordwood.plan_splits(sources, 1 << 20) for record in cordwood.open(split)]


@pytest.mark.parametrize(("module", "records_in"), [("_many", scanned), ("_splits", planned)])
def test_finds_a_log_renamed_while_its_directory_is_being_listed(module, records_in, tmp_path, monkeypatch):
    """A live database starts a log and removes the one before."""
    for name in ("000003", "000004"):
        (tmp_path / f"{name}.log").write_bytes(reference.encode([name.encode()]))
    first, new = tmp_path / "000003.log", tmp_path / "000005.log"
    detect = cordwood.detect

    def removes(name):
        if name == str(first) and first.exists():
            first.rename(new)
        return detect(name)

    monkeypatch.setattr(f"cordwood.{module}.detect", removes)
    assert records_in(tmp_path) == [b"000004", b"000003"]
    with pytest.raises(OSError, match="No such file"):
        records_in([first])


def test_the_command_and_the_library_return_the_same_results(directory, capsys):
    """Of the test vectors, and of a directory with damage and other files."""
    for source in (str(VECTORS), str(directory), "data/0*"):
        reports, stats = cordwood.verify(source), cordwood.stat(source)
        assert len(reports) > 0
        for verb, results, names in (
            ("verify", reports, ("record_count", "payload_len", "skipped_len", "dialect", "log_number", "file_len")),
            ("stat", stats, ("record_count", "payload_len", "skipped_len", "dialect", "damaged_len", "block_count")),
        ):
            status = main([verb, "--json", source])
            *lines, totals = map(json.loads, capsys.readouterr().out.splitlines())
            assert status == (0 if results.ok else 3)
            assert [line["source"] for line in lines] == list(results)
            for line, result in zip(lines, results.values(), strict=True):
                assert {name: line[name] for name in names} == {name: getattr(result, name) for name in names}
            others = {other["source"]: other["format"] for other in totals["totals"]["other_files"]}
            assert others == results.others
            assert totals["totals"]["record_count"] == sum(result.record_count for result in results.values())
        splits = cordwood.plan_splits(source, 64 << 20)
        assert main(["split", "--json", source]) == 0
        lines = map(json.loads, capsys.readouterr().out.splitlines())
        assert [(line["source"], line["end"]) for line in lines] == [(split.path, split.end) for split in splits]
        pictures = cordwood.map(source)
        main(["map", source])
        drawn = capsys.readouterr().out
        assert all(name in drawn for name in pictures)
        assert list(pictures) == list(reports)


def test_the_salvage_command_and_the_library_write_the_same_files(directory, capsys):
    reports = cordwood.salvage(directory, "by-library")
    assert main(["salvage", str(directory), "by-command"]) == 3
    files = [
        {path.relative_to(top): path.read_bytes() for path in Path(top).rglob("*.log")}
        for top in ("by-library", "by-command")
    ]
    assert files[0] == files[1]
    assert len(files[0]) == len(reports) == 2
    assert "DAMAGED" in capsys.readouterr().out


def test_a_log_renamed_to_another_log_number_fails_verification(tmp_path, capsys):
    """For the library as for the verbs."""
    with cordwood.open(tmp_path / "000006.log", "w", dialect="recyclable", log_number=6) as writer:
        writer.append(bytes(40_000))
    path = (tmp_path / "000006.log").rename(tmp_path / "000009.log")
    reports, info, evidence = cordwood.verify(tmp_path), cordwood.info(tmp_path), cordwood.evidence(tmp_path)
    assert reports[str(path)].other_log_number == 6
    assert (reports[str(path)].ok, info.damaged_logs) == (True, ())
    assert (reports.ok, info.ok, evidence.ok) == (False, False, False)
    evidence_path = tmp_path.with_suffix(".json")
    for verb, more in ("verify", []), ("info", []), ("evidence", [evidence_path]):
        assert main([verb, str(tmp_path), *map(str, more)]) == 3
    found = json.loads(evidence_path.read_text())
    assert (found["ok"], found["logs"][0]["ok"]) == (False, False)
    assert "  damage   none\n" in capsys.readouterr().out
    # The verbs `stat` and `map` only mention it.
    assert (cordwood.stat(tmp_path).ok, cordwood.map(tmp_path).ok) == (True, True)
    assert main(["stat", str(tmp_path)]) == main(["map", str(tmp_path)]) == 0
    # As for `verify --start`, a range may contain only an older log.
    parts = [cordwood.Split(str(path), start, start + BLOCK_LEN, "recyclable", 9) for start in (0, BLOCK_LEN)]
    assert [cordwood.verify([part])[part].other_log_number for part in parts] == [6, 6]
    assert [cordwood.verify([part]).ok for part in parts] == [False, True]


def test_a_directory_without_logs_is_not_reported_as_ok(tmp_path):
    (tmp_path / "notes").write_text("This is a text. It is no log.")
    for source in tmp_path, []:
        found = cordwood.verify(source), cordwood.info(source), cordwood.evidence(source)
        assert [result.ok for result in found] == [False, False, False]


@pytest.mark.parametrize("error", [OSError("full"), cordwood.CordwoodError("mine"), KeyError("key")])
def test_an_exception_in_the_progress_callback_propagates_to_the_caller(error, directory):
    def progress(_):
        raise error

    # Files of this length are read in threads.
    for name in "ab":
        (directory / f"{name}.log").write_bytes(LOG.ljust(2 << 20, b"\0"))
    for call in (
        partial(cordwood.verify, directory),
        partial(cordwood.verify, directory, threads=2),
        partial(cordwood.stat, directory),
        partial(cordwood.salvage, directory, "new"),
    ):
        with pytest.raises(type(error)) as raised:
            call(progress=progress)
        assert raised.value is error


@pytest.mark.parametrize("content", [b"", bytes(100_000)])
def test_a_split_without_a_dialect_uses_the_given_dialect(content, tmp_path):
    (tmp_path / "log").write_bytes(content or LOG)
    [split, *_] = cordwood.plan_splits(tmp_path / "log", BLOCK_LEN)
    split = split._replace(dialect=None)
    assert cordwood.verify(split, dialect="leveldb").dialect_known
    with cordwood.open(split, dialect="recyclable", log_number=5) as reader:
        assert (reader.dialect, reader.log_number) == ("recyclable", 5)
    with pytest.raises(ValueError, match="start is 0 in the Split, not 7: open its path instead"):
        cordwood.open(split, start=7)
    with pytest.raises(ValueError, match="'leveldb' in the Split, not 'rocksdb': open its path instead"):
        cordwood.open(split._replace(dialect="leveldb"), dialect="rocksdb")


class Removes:
    """Progress of a function that, at its first read, removes a file that was listed, and makes another one."""

    def __init__(self, directory):
        self.directory = directory

    def __call__(self, _):
        gone = self.directory / "2.log"
        if gone.exists():
            gone.rename(self.directory / "4.log")


@pytest.mark.parametrize("function", [cordwood.verify, cordwood.stat])
@pytest.mark.parametrize("threads", [1, 3])
def test_removing_a_listed_file_from_a_directory_is_not_an_error(function, threads, tmp_path):
    """As by a live database. The files that have come instead are read."""
    for name in ("1.log", "2.log", "below/3.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(reference.encode([b"one"]))
    results = function(tmp_path, threads=threads, progress=Removes(tmp_path))
    assert [Path(name).name for name in results] == ["1.log", "3.log", "4.log"]
    assert (results.ok, results.errors, results.others) == (True, {}, {})


def test_a_removed_file_is_reported_as_an_error_if_it_was_passed_by_name(tmp_path):
    for name in ("1.log", "2.log"):
        (tmp_path / name).write_bytes(reference.encode([b"one"]))
    results = cordwood.verify([tmp_path / "1.log", tmp_path / "2.log"], progress=Removes(tmp_path))
    assert list(results.errors) == [str(tmp_path / "2.log")]
    (tmp_path / "link.log").symlink_to("missing")
    assert cordwood.verify(tmp_path).others == {str(tmp_path / "link.log"): "dangling link"}


def test_listing_a_directory_finishes_even_if_files_keep_disappearing(tmp_path):
    (tmp_path / "1.log").write_bytes(reference.encode([b"one"]))
    (tmp_path / "2-0.log").write_bytes(reference.encode([b"two"]))
    listings = 0

    def read(file, *_):
        nonlocal listings
        if file.relative != "1.log":
            Path(file.name).rename(tmp_path / f"2-{listings + 1}.log")
            listings += 1
            raise FileNotFoundError
        return file.relative

    found = list(each.each(expand([str(tmp_path)]), read))
    assert ([result for _, result in found], listings) == (["1.log"], 10)


@pytest.mark.parametrize("verb", ["verify", "info", "stat", "evidence"])
def test_commands_succeed_even_if_a_listed_file_disappears(verb, tmp_path, monkeypatch, capsys):
    for name in ("1.log", "2.log"):
        (tmp_path / name).write_bytes(reference.encode([b"one"]))
    result_of = each.result_of

    def removes(file, *arguments, **options):
        Removes(tmp_path)(0)
        return result_of(file, *arguments, **options)

    monkeypatch.setattr(each, "result_of", removes)
    assert main([verb, str(tmp_path), *([str(tmp_path) + ".html"] if verb == "evidence" else [])]) == 0
    printed = capsys.readouterr()
    assert "2.log" not in printed.out + printed.err


def test_the_repr_of_several_reports_includes_the_damaged_logs(tmp_path):
    whole = reference.encode([b"one", b"two"])
    damaged = whole[:-1] + b"x"
    for index in range(30):
        (tmp_path / f"{index:02}.log").write_bytes(damaged if index > 27 else whole)
    first = f"2 damaged: {tmp_path}/28.log and 1 more"
    reports, info = cordwood.verify(tmp_path), cordwood.info(tmp_path)
    assert repr(reports) == f"<cordwood.Results: 30 logs, {first}, 0 errors, 0 other files; ok=False>"
    assert repr(info) == f"<cordwood.types.Info: a directory, 30 logs, {first}, 58 records; ok=False>"
    html = reports._repr_html_()
    assert html.index("28.log</td><td>no</td>") < html.index("00.log</td><td>yes</td><td>2</td>")
    assert html.endswith("<p>and 20 more</p>")
    assert "<td>damaged_logs</td>" in info._repr_html_()
    (tmp_path / "other.log").write_bytes(damaged + reference.encode([b"three"], len(damaged)))
    html = cordwood.verify(tmp_path / "other.log")._repr_html_()
    assert ("clean" in html, "<td>no torn tail, at 32</td>" in html) == (False, True)
    evidence = cordwood.evidence(tmp_path)
    assert evidence.logs[0].svg
    assert len(repr(evidence.logs[0])) < 500


def test_passing_a_pattern_instead_of_a_log_raises_with_a_hint(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        cordwood.open(tmp_path / "*.log")
    assert caught.value.hint == cordwood.types.Hint.READ_DIRECTORY
    with pytest.raises(FileNotFoundError) as caught:
        cordwood.open(tmp_path / "a.log")
    assert not hasattr(caught.value, "hint")
