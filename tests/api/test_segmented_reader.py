"""Segmented logs, which are read and followed as one log."""

import asyncio
import hashlib
import os
from pathlib import Path
from threading import Thread

import pytest
import reference
from failing_calls import CAN_FAIL, calling_first

import cordwood
from cordwood._evidence import reading
from cordwood._inputs.files import sha256_of


@pytest.fixture
def orders(tmp_path):
    """A log of a few files, and its records with their offsets."""
    directory = tmp_path / "orders"
    records = [b"order %d" % number for number in range(100)]
    with cordwood.open(directory, "a", segment_len=300) as log:
        offsets = [log.append(record) for record in records]
    assert len(names_in(directory)) == 5
    return directory, list(zip(offsets, records, strict=True))


def names_in(directory):
    return sorted(file.name for file in directory.glob("*.log"))


def rotated(log, records):
    """Appends each record to a file of its own; returns them with their offsets."""
    added = []
    for record in records:
        added.append((log.append(record), record))
        log.rotate()
    return added


def test_a_directory_of_segments_is_opened_as_one_log(orders):
    directory, records = orders
    for source in (directory, str(directory)):
        with cordwood.open(source) as reader:
            assert [(record.offset, record.data) for record in reader.records()] == records
            assert reader.outcome.offset == reader.tell() == records[-1][0] + 7 + len(records[-1][1])
            assert reader.ok
            assert Path(os.fsdecode(reader.path)) == directory
    with cordwood.open(directory) as reader:
        for offset, record in reversed(records):
            reader.seek(offset)
            assert next(reader) == record
    with cordwood.open(directory, start=records[40][0], end=records[60][0]) as reader:
        assert list(reader) == [record for _, record in records[40:60]]


@pytest.mark.parametrize("threads", [1, 4])
def test_record_batches_and_tables_span_all_segments(orders, threads):
    directory, records = orders
    with cordwood.open(directory) as reader:
        batches = list(reader.record_batches(threads=threads))
    assert [record for batch in batches for record in batch] == [record for _, record in records]
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(cordwood.scan(directory, threads=threads))
    assert table["record"].to_pylist() == [record for _, record in records]
    assert table["offset"].to_pylist() == [offset for offset, _ in records]


def test_a_segmented_log_in_a_directory_is_treated_as_one_log(orders, tmp_path):
    directory, records = orders
    with cordwood.open(tmp_path / "other.log", "w") as writer:
        writer.append(b"other")
    reports = cordwood.verify(tmp_path)
    assert {Path(name): report.record_count for name, report in reports.items()} == {
        directory: len(records),
        tmp_path / "other.log": 1,
    }
    assert cordwood.verify(directory).record_count == len(records)
    assert cordwood.stat(directory).record_count == len(records)
    info = cordwood.info(directory)
    assert (info.what, info.log_count, info.record_count, info.databases) == ("a log", 1, len(records), ())


PATTERNS = ["orders/*.log", "orders/*000.log", "*/*", "**/*.log", "**", "ord*"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_that_matches_segments_selects_the_whole_log(orders, pattern, monkeypatch):
    """Otherwise nobody would notice that a segment is missing."""
    directory, records = orders
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.chdir(directory.parent)
    assert {Path(name): report.record_count for name, report in cordwood.verify(pattern).items()} == {
        Path("orders"): len(records)
    }
    assert cordwood.plan_splits([pattern], 32_768) == cordwood.plan_splits("orders", 32_768)
    table = pyarrow.table(cordwood.scan(pattern, columns=["path", "offset"]))
    assert table["offset"].to_pylist() == [offset for offset, _ in records]
    assert {Path(name) for name in table["path"].to_pylist()} == {Path("orders")}
    (directory / names_in(directory)[2]).unlink()
    assert not cordwood.verify(pattern).ok
    with pytest.raises(OSError, match="no segment has these bytes"):
        pyarrow.table(cordwood.scan(pattern))


def test_a_pattern_that_matches_segments_in_the_current_directory_selects_the_log(orders, monkeypatch):
    directory, records = orders
    monkeypatch.chdir(directory)
    [(name, report)] = cordwood.verify("*.log").items()
    assert (name, report.record_count) == (".", len(records))


def test_plain_and_segmented_logs_matched_by_several_patterns_are_listed_once(orders, monkeypatch):
    directory, records = orders
    monkeypatch.chdir(directory.parent)
    with cordwood.open("a.log", "w") as writer:
        writer.append(b"a")
    reports = cordwood.verify(["**/*.log", "orders", "orders/*0.log"])
    assert {name: report.record_count for name, report in reports.items()} == {"a.log": 1, "orders": len(records)}


def test_verifying_a_single_segment_by_its_path_reads_only_that_file(orders):
    directory, records = orders
    first = directory / names_in(directory)[0]
    assert cordwood.verify([first])[str(first)].record_count == cordwood.verify(first).record_count < len(records)


@pytest.mark.parametrize("name", ["orders/", "", "orders/*.log", "**/*.log"])
def test_rejects_segmented_logs_in_a_store(orders, name):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    directory, _ = orders
    memory.store.clear()
    for segment in names_in(directory):
        memory.pipe_file(f"/shop/orders/{segment}", (directory / segment).read_bytes())
    url = f"memory://shop/{name}"
    text = "a segmented log is read only from a local directory: .* name its files"
    with pytest.raises(OSError, match=text):
        pytest.importorskip("pyarrow").table(cordwood.scan(url))
    with pytest.raises(OSError, match=text) as caught:
        cordwood.plan_splits(url, 32_768)
    assert caught.value.filename == "memory:///shop/orders"
    results = cordwood.verify(url)
    assert not results.ok
    assert list(results.errors) == ["memory:///shop/orders"]
    assert cordwood.verify(f"memory://shop/orders/{names_in(directory)[0]}").record_count > 1


def test_splits_of_a_pruned_log_return_each_record_once(tmp_path):
    directory = tmp_path / "orders"
    with cordwood.open(directory, "a", segment_len=100_000) as log:
        records = [(log.append(bytes(5_000)), bytes(5_000)) for _ in range(100)]
        first = log.prune_before(250_000)
    left = [offset for offset, _ in records if offset >= first]
    splits = cordwood.plan_splits(directory, 32_768)
    assert len(splits) > 5
    assert [record.offset for split in splits for record in cordwood.open(split).records()] == left


def test_reading_at_a_pruned_offset_reports_the_first_available_offset(orders):
    directory, records = orders
    with cordwood.open(directory, "a", segment_len=300) as log:
        first = log.prune_before(records[50][0])
    assert first > 0
    for start in (
        lambda: cordwood.open(directory, start=records[3][0]),
        lambda: cordwood.open(directory).seek(records[3][0]),
        lambda: cordwood.follow(directory, start=records[3][0]),
    ):
        with pytest.raises(cordwood.LogTruncatedError, match=f"records before {first} were pruned") as caught:
            start()
        assert (caught.value.offset, caught.value.first_offset, caught.value.file_len) == (records[3][0], first, None)
        assert caught.value.hint == "start_at_first_offset"
    with cordwood.open(directory) as reader:
        assert next(reader.records()).offset == first


@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_a_missing_segment_is_reported_as_one_region(orders, policy, caplog):
    directory, records = orders
    names = names_in(directory)
    (directory / names[2]).unlink()
    start, end = (int(name[:20]) for name in names[2:4])
    with cordwood.open(directory, on_corruption=policy) as reader:
        if policy == "raise":
            with pytest.raises(cordwood.CorruptionError) as caught:
                list(reader)
            assert (caught.value.offset, caught.value.length) == (start, end - start)
            assert str(caught.value.reason) == "missing_segment"
        rest = [record for offset, record in records if not start <= offset < end]
        assert list(reader) == (rest if policy == "skip" else [record for offset, record in records if offset >= end])
        assert [(region.offset, region.length) for region in reader.skipped] == [(start, end - start)]
        assert not reader.ok


def test_an_overlong_segment_is_reported_as_an_empty_region(orders):
    directory, records = orders
    with (directory / names_in(directory)[0]).open("ab") as file:
        file.write(b"?")
    report, stat = cordwood.verify(directory), cordwood.stat(directory)
    assert (report.ok, report.len_by_reason, report.damaged_len) == (False, {"grown_segment": 0}, 0)
    assert (stat.ok, stat.damaged_len) == (False, 0)
    assert report.record_count == stat.record_count == len(records)


def test_seek_to_end_discovers_new_segments(orders):
    directory, records = orders
    with cordwood.open(directory) as reader:
        assert list(reader) == [record for _, record in records]
        with cordwood.open(directory, "a", segment_len=300) as log:
            log.rotate()
            added = rotated(log, [b"cake", b"juice", b"salad"])
            end = log.tell()
        for number, (offset, _) in enumerate(added):
            reader.seek(offset)
            assert list(reader) == [record for _, record in added[number:]]
        reader.seek(end)
        assert list(reader) == []
        reader.seek(records[0][0])
        assert list(reader) == [record for _, record in records + added]


def test_follower_with_zero_timeout_reports_a_missing_segment(orders):
    directory, records = orders
    names = names_in(directory)
    (directory / names[2]).unlink()
    start, end = (int(name[:20]) for name in names[2:4])
    with cordwood.follow(directory, timeout=0, on_corruption="skip") as follower:
        assert list(follower) == [record for offset, record in records if not start <= offset < end]
        assert [(region.offset, region.length) for region in follower.skipped] == [(start, end - start)]


def test_a_directory_with_other_files_is_not_opened_as_a_log(tmp_path):
    for read in (cordwood.open, cordwood.follow):
        with pytest.raises(IsADirectoryError) as raised:
            read(tmp_path)
        assert raised.value.hint == cordwood.types.Hint.READ_DIRECTORY
    (tmp_path / f"{0:020}.log").touch()
    (tmp_path / "notes").touch()
    for read in (cordwood.open, cordwood.follow):
        with pytest.raises(cordwood.DialectError, match="notes"):
            read(tmp_path)


def test_copy_of_a_segmented_log_is_a_directory_with_one_segment(orders, tmp_path):
    directory, records = orders
    for copy in (cordwood.salvage, cordwood.pack):
        new = tmp_path / copy.__name__
        copy(directory, new)
        assert names_in(new) == [f"{0:020}.log"]
        assert list(cordwood.open(new)) == [record for _, record in records]
        with pytest.raises(OSError, match="in the directory of the old one"):
            copy(directory, directory / "new")
    # It can be appended to.
    with cordwood.open(tmp_path / "salvage", "a", segment_len=300) as log:
        log.append(b"more")
    assert list(cordwood.open(tmp_path / "salvage"))[-1] == b"more"


def test_salvage_and_pack_reject_destinations_named_like_a_segment(orders, tmp_path):
    directory, _ = orders
    first, second, *_ = (str(directory / name) for name in names_in(directory))
    segment = tmp_path / f"{99:020}.log"
    for copy in (cordwood.salvage, cordwood.pack):
        for source in (directory, first):
            with pytest.raises(OSError, match="read as a segment") as caught:
                copy(source, segment)
            assert caught.value.filename == str(segment)
            assert caught.value.hint == cordwood.types.Hint.OTHER_NAME
    results = cordwood.salvage([first, second], tmp_path / "copies")
    assert [error.hint for error in results.errors.values()] == [cordwood.types.Hint.OTHER_NAME] * 2
    assert list(tmp_path.iterdir()) == [directory]


def test_a_follower_returns_each_record_once_across_many_rotations(tmp_path):
    with cordwood.open(tmp_path / "orders", "a", segment_len=1000) as log:
        follower = cordwood.follow(tmp_path / "orders", timeout=0)
        for count in (0, 1, 20, 3, 0, 50):
            added = rotated(log, [b"record %d" % number for number in range(count)])
            assert [(record.offset, record.data) for record in follower.records()] == added
            assert follower.tell() == log.tell()
        # Starts again where the first one was.
        with cordwood.follow(tmp_path / "orders", timeout=0, start=follower.tell()) as another:
            added = rotated(log, [b"a", b"b"])
            assert [(record.offset, record.data) for record in another.records()] == added


def test_follower_raises_an_error_when_pruning_overtakes_it(tmp_path):
    with cordwood.open(tmp_path / "orders", "a", segment_len=1000) as log:
        first, *_, last = rotated(log, [b"first", b"second", b"third"])
        follower = cordwood.follow(tmp_path / "orders", timeout=0)
        assert next(follower) == first[1]
        log.prune_before(last[0])
        for _ in range(2):
            with pytest.raises(cordwood.LogTruncatedError) as caught:
                next(follower)
            assert caught.value.first_offset == last[0]


def test_a_coroutine_can_follow_a_log_that_a_thread_rotates(tmp_path):
    records = [b"record %d" % number for number in range(200)]
    log = cordwood.open(tmp_path / "orders", "a", segment_len=1000)

    async def consume():
        seen = []
        with cordwood.follow(tmp_path / "orders") as follower:
            async for record in follower:
                seen.append(record)
                if len(seen) == len(records):
                    return seen
        return seen

    writer = Thread(target=rotated, args=(log, records))
    writer.start()
    assert asyncio.run(asyncio.wait_for(consume(), 60)) == records
    writer.join()
    log.close()


def test_cannot_create_a_log_inside_a_segment_directory(orders, tmp_path):
    directory, records = orders
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "tea.log").write_bytes(b"")
    with pytest.raises(ValueError, match="orders is a segmented log"):
        cordwood.salvage(tmp_path / "logs", directory)
    assert len(list(cordwood.open(directory))) == len(records)


def test_error_names_the_invalid_segment(orders):
    directory, _ = orders
    name = names_in(directory)[0]
    (directory / name).write_text("no log\n" * 50)
    with cordwood.open(directory, on_corruption="skip") as reader, pytest.raises(cordwood.DialectError) as caught:
        list(reader)
    assert caught.value.path == str(directory / name)


@pytest.mark.parametrize("policy", ["skip", "salvage"])
def test_an_invalid_segment_after_a_valid_segment_is_reported_as_damage(orders, policy):
    directory, records = orders
    start, end = (int(name.removesuffix(".log")) for name in names_in(directory)[2:4])
    (directory / f"{start:020}.log").write_bytes(b"text\n" * 100)
    os.truncate(directory / f"{start:020}.log", end - start)
    with cordwood.open(directory, on_corruption=policy) as reader:
        read = [(record.offset, record.data) for record in reader.records()]
    assert read == [record for record in records if not start <= record[0] < end]
    report = cordwood.verify(directory)
    assert (report.ok, report.record_count) == (False, len(read))


class Listings:
    """Counts how often a directory is listed, and its files are looked at, by Python."""

    def __init__(self, monkeypatch, directory):
        self.lists, self.stats = 0, 0
        listdir, scandir, stat = os.listdir, os.scandir, os.stat

        def counted(function, attribute, is_it):
            def call(path=".", *args, **options):
                if isinstance(path, str | os.PathLike) and is_it(Path(path)):
                    setattr(self, attribute, getattr(self, attribute) + 1)
                return function(path, *args, **options)

            return call

        monkeypatch.setattr(os, "listdir", counted(listdir, "lists", lambda path: path == directory))
        monkeypatch.setattr(os, "scandir", counted(scandir, "lists", lambda path: path == directory))
        monkeypatch.setattr(os, "stat", counted(stat, "stats", lambda path: path.parent == directory))


@pytest.mark.parametrize(
    "call",
    [
        lambda directory: cordwood.plan_splits(directory, 100),
        cordwood.info,
        lambda directory: cordwood.plan_splits([directory], 100),
    ],
    ids=["splits", "info", "splits of several"],
)
def test_each_call_lists_the_segment_directory_only_once(orders, call, monkeypatch):
    directory, _ = orders
    listings = Listings(monkeypatch, directory)
    assert call(directory)
    assert (listings.lists, listings.stats) == (1, len(names_in(directory)))


def test_a_file_name_beyond_the_offset_limit_is_not_a_segment(tmp_path):
    path = tmp_path / "orders" / "99999999999999999999.log"
    path.parent.mkdir()
    with cordwood.open(path, "w") as log:
        log.append(b"one")
    assert [split.path for split in cordwood.plan_splits(path.parent, 100)] == [str(path)]
    assert list(cordwood.verify(path.parent)) == [str(path)]


def test_evidence_treats_a_segmented_log_as_one_log(orders):
    directory, _ = orders
    names = names_in(directory)
    whole = b"".join((directory / name).read_bytes() for name in names)
    [log] = cordwood.evidence(directory).logs
    assert (log.sha256, log.is_changed) == (hashlib.sha256(whole).hexdigest(), False)
    assert all(name in log.svg for name in names)

    damaged = bytearray((directory / names[1]).read_bytes())
    damaged[8] ^= 1
    (directory / names[1]).write_bytes(damaged)
    (directory / names[2]).unlink()
    [log] = cordwood.evidence(directory).logs
    starts = [int(name[:20]) for name in names]
    damage, missing = log.regions
    assert (damage.region.offset, damage.first_bytes) == (starts[1], bytes(damaged[: damage.region.length][:16]))
    assert (missing.region.offset, missing.region.end_offset, missing.first_bytes) == (*starts[2:4], b"")
    for name in names[:2]:  # As if they were pruned while the evidence is collected.
        (directory / name).unlink()
    assert [found.first_bytes for found in reading.regions_of(log)] == [None, None]


def test_evidence_shows_the_first_bytes_of_two_regions_at_the_same_offset(orders):
    """A region without bytes, which says that a segment is too long, starts where the damage after it starts."""
    directory, _ = orders
    first, second = names_in(directory)[:2]
    with (directory / first).open("ab") as file:
        file.write(reference.encode([b"one more"]))
    damaged = bytearray((directory / second).read_bytes())
    damaged[8] ^= 1
    (directory / second).write_bytes(damaged)
    [log] = cordwood.evidence(directory).logs
    found = {region.reason: first_bytes for region, first_bytes in log.regions if region.offset == int(second[:20])}
    assert found == {"grown_segment": b"", "checksum_mismatch": bytes(damaged[:15])}


def test_the_sha256_hash_does_not_cover_segments_added_later(orders):
    directory, _ = orders
    end = cordwood.verify(directory).file_len
    whole = b"".join((directory / name).read_bytes() for name in names_in(directory))
    with cordwood.open(directory, "a", segment_len=300) as writer:
        writer.extend(b"a new order %d" % number for number in range(50))
    assert sha256_of(str(directory), end) == hashlib.sha256(whole).hexdigest()


def test_map_and_fragments_raise_an_error_for_a_segmented_log(orders):
    directory, _ = orders
    for refused in (cordwood.map, lambda path: list(cordwood.fragments(path))):
        with pytest.raises(IsADirectoryError, match="name its files") as raised:
            refused(directory)
        assert raised.value.filename == str(directory)


@pytest.mark.parametrize("policy", ["skip", "salvage"])
def test_a_damaged_segment_never_hides_later_segments(policy, tmp_path):
    records = [b"record %d " % number * 7 for number in range(6)]
    directory, offset = tmp_path / "orders", 0
    directory.mkdir()
    for number, record in enumerate(records):
        data = reference.encode([record])
        # Bytes that are no header take the place of the third one.
        found = bytes.fromhex("9f13a277c05511aa") + data[8:] if number == 2 else data
        (directory / f"{offset:020}.log").write_bytes(found)
        offset += len(data)
    assert list(cordwood.open(directory, on_corruption=policy)) == [*records[:2], *records[3:]]


def test_follower_reports_when_its_segmented_log_is_replaced(tmp_path):
    directory = tmp_path / "log"

    def write(tag):
        with cordwood.open(directory, "a", segment_len=1_000) as log:
            log.extend(b"%s %06d" % (tag, number) + b"." * 80 for number in range(45))

    write(b"old")
    with cordwood.follow(directory, timeout=0) as follower:
        for _ in range(20):
            next(follower)
        directory.rename(tmp_path / "before")
        write(b"new")
        with pytest.raises(cordwood.LogChangedError):
            list(follower)


@pytest.mark.parametrize("name", [".nfs0000000000000001", "lost+found", ".DS_Store"])
def test_ignores_files_that_the_operating_system_adds_to_the_directory(orders, name):
    directory, records = orders
    with cordwood.follow(directory, timeout=0) as follower:
        next(follower)
        (directory / name).touch()
        assert list(follower) == [record for _, record in records[1:]]
    assert list(cordwood.open(directory)) == [record for _, record in records]


@pytest.mark.skipif(not CAN_FAIL, reason="only on x86-64 Linux a call can be replaced")
def test_segments_are_listed_again_if_all_were_pruned_after_listing(tmp_path):
    directory = tmp_path / "log"
    directory.mkdir()
    old, new = (directory / f"{offset:020}.log" for offset in (0, 10))
    old.write_bytes(reference.encode([b"old"]))

    def prune():
        new.write_bytes(reference.encode([b"new"]))
        old.unlink(missing_ok=True)

    # The listing ends with this call, before a segment is looked at.
    with calling_first("closedir", prune):
        reader = cordwood.Reader(directory)
    assert not old.exists()
    assert list(reader) == [b"new"]
