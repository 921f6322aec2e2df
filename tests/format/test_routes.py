"""Every kind of log on every way of reading it, against `log_kinds.py`, which reads in pure Python.

A mark `cell` states which cells of the table in `tests/README.md` a test fills.
"""

import io
import random
import time
from contextlib import contextmanager
from itertools import pairwise

import containers
import fsspec
import log_kinds
import obstore
import pyarrow
import pytest
import recycled_logs
import reference
from log_kinds import NUMBER, Log, log, payloads
from obstore.store import MemoryStore
from reference import BLOCK_LEN, Record, Skipped
from shortened_ranges import Splitting, Tracker
from support import OnlyRead, merged, plain_skipped, start_of

import cordwood
from cordwood._claims import WHOLE_LEN, ClaimedRange
from cordwood._spark import reading
from cordwood._spark.options import options_of

pytestmark = [pytest.mark.usefixtures("no_log"), pytest.mark.filterwarnings("ignore:Generating overly large repr")]

SEEDS = range(4)
LOCAL = ("one-file", "segmented", "packed", "numbered", "compressed")
DAMAGES = ("none", "flips", "zeros")
every_kind = pytest.mark.parametrize("kind", log_kinds.ALL)
every_local_kind = pytest.mark.parametrize("kind", LOCAL)
every_damage = pytest.mark.parametrize("damage", DAMAGES)
both_policies = pytest.mark.parametrize("policy", ["skip", "salvage"])
follows = pytest.mark.parametrize("kind", ["one-file", "segmented", "packed", "numbered", "compressed"])
appends = pytest.mark.parametrize("kind", ["one-file", "segmented", "packed"])


def put(made: Log, path):
    """The log on the disk: the path of its file, or that of the directory of its segments."""
    if made.kind == "segmented":
        path.mkdir(exist_ok=True)
        for base, data in made.files.items():
            (path / f"{base:020}.log").write_bytes(data)
    else:
        path.write_bytes(made.data)
    return path


def newest_file(made: Log, path):
    return path / f"{max(made.files):020}.log" if made.kind == "segmented" else path


def stored(made: Log, seed: int):
    """The log in a file system of fsspec or a store of obstore, both in memory."""
    if seed % 2:
        store = MemoryStore()
        obstore.put(store, "a.log", made.data)
        return store, "a.log"
    fsspec.filesystem("memory").pipe_file(f"/routes/{seed}.log", made.data)
    return f"memory://routes/{seed}.log"


def source_of(made: Log, seed: int, tmp_path):
    return stored(made, seed) if made.kind == "remote" else put(made, tmp_path / f"some-{seed}.log")


def url_or_path_of(made: Log, seed: int, tmp_path):
    """Some functions take a URL, but no store."""
    return stored(made, 2 * seed) if made.kind == "remote" else source_of(made, seed, tmp_path)


def as_plain(record):
    return Record(record.offset, record.end_offset, bytes(record.data), record.salvaged)


def pairs(records):
    return [(record.offset, record.data) for record in records]


def check(reader, made, policy):
    """Compares all records, the regions and, where the model knows it, the end."""
    events, end = made.events(policy)
    assert [as_plain(record) for record in reader.records()] == made.records(policy)
    assert merged(plain_skipped(reader)) == merged(event for event in events if isinstance(event, Skipped))
    if end is not None:
        assert (str(reader.outcome.kind), reader.outcome.offset) == (end.kind, end.offset)


# Reading -----------------------------------------------------------------------------------------


@pytest.mark.cell("*", "whole")
@every_damage
@both_policies
@every_kind
def test_reading_a_whole_log_matches_the_model(kind, policy, damage, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed, damage)
        sources = [source_of(made, seed, tmp_path)]
        if kind != "segmented":
            sources += [made.data, io.BytesIO(made.data), OnlyRead(made.data, 5_000)]
        for source in sources:
            with cordwood.open(source, on_corruption=policy, **made.options) as reader:
                check(reader, made, policy)


@pytest.mark.cell("*", "range")
@every_damage
@both_policies
@every_kind
def test_adjacent_ranges_contain_all_records_and_regions(kind, policy, damage, tmp_path):
    for seed in SEEDS:
        rng = random.Random(seed)
        made = log(kind, seed, damage)
        source = source_of(made, seed, tmp_path)
        records = made.records(policy)
        first, last = min(made.files), max(made.files) + len(made.data)
        near = [start_of(event) + by for event in made.events(policy)[0] for by in (-1, 0, 1)]
        cuts = [rng.randrange(first, last) for _ in range(3)] + rng.sample(near, 4)
        edges = [first, *sorted(cut for cut in cuts if first <= cut < last), last + 1]
        regions = []
        for start, end in pairwise(edges):
            options = {"start": start, "end": end, "on_corruption": policy, **made.options}
            with cordwood.open(source, **options) as reader:
                found = [as_plain(record) for record in reader.records()]
                assert found == [record for record in records if start <= record.offset < end]
                regions += plain_skipped(reader)
        assert merged(sorted(regions, key=start_of)) == made.regions(policy)


@pytest.mark.cell("*", "range")
@every_kind
def test_seeking_to_a_record_returns_that_record_and_all_later_records(kind, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed, "flips")
        records = made.records()
        with cordwood.open(source_of(made, seed, tmp_path), on_corruption="skip", **made.options) as reader:
            for at in random.Random(seed).sample(range(len(records)), 8):
                reader.seek(records[at].offset)
                assert [as_plain(record) for record in reader.records()] == records[at:]


@pytest.mark.cell("*", "splits")
@every_damage
@both_policies
@every_kind
def test_splits_contain_each_record_and_region_exactly_once(kind, policy, damage, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed, damage)
        source = url_or_path_of(made, seed, tmp_path)
        records, regions = [], []
        for split in cordwood.plan_splits(source, BLOCK_LEN, **made.options):
            with cordwood.open(split, on_corruption=policy) as reader:
                records += [as_plain(record) for record in reader.records()]
                regions += plain_skipped(reader)
        assert records == made.records(policy)
        assert merged(sorted(regions, key=start_of)) == made.regions(policy)


@pytest.mark.cell("*", "threads")
@pytest.mark.parametrize("damage", ["none", "flips"])
@both_policies
@every_kind
def test_reading_with_threads_matches_the_model(kind, policy, damage, tmp_path):
    made = log(kind, 0, damage, count=1_400)
    source = source_of(made, 0, tmp_path)
    with cordwood.open(source, on_corruption=policy, **made.options) as reader:
        batches = list(reader.record_batches(threads=2, target_len=BLOCK_LEN))
        found = [pair for batch in batches for pair in zip(batch.record_offsets, batch, strict=True)]
        assert found == pairs(made.records(policy))
        assert merged(plain_skipped(reader)) == made.regions(policy)


@pytest.mark.cell("*", "threads batches")
@pytest.mark.parametrize("threads", [1, 3])
@every_damage
@both_policies
@every_kind
def test_record_batches_match_the_model(kind, policy, damage, threads, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed, damage)
        source = source_of(made, seed, tmp_path)
        with cordwood.open(source, on_corruption=policy, **made.options) as reader:
            batches = list(reader.record_batches(threads=threads, target_len=[1, 9_000, 1 << 18][seed % 3]))
            found = [pair for batch in batches for pair in zip(batch.record_offsets, batch, strict=True)]
            assert found == pairs(made.records(policy))
            assert merged(plain_skipped(reader)) == made.regions(policy)
        report = cordwood.verify(source, threads=threads, **made.options)
        assert report.record_count == len(made.records("salvage"))
        assert report.ok == (not any(region.reason in reference.CORRUPTION for region in made.regions("salvage")))


@pytest.mark.cell("*", "scan")
@pytest.mark.parametrize("threads", [1, 3])
@every_damage
@both_policies
@every_kind
def test_scan_matches_the_model(kind, policy, damage, threads, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed, damage)
        source = url_or_path_of(made, seed, tmp_path)
        columns = ["offset", "end_offset", "record", "salvaged"]
        scan = cordwood.scan(source, columns=columns, threads=threads, on_corruption=policy, **made.options)
        rows = pyarrow.table(scan).to_pylist()
        assert [Record(*(row[column] for column in columns)) for row in rows] == made.records(policy)


@pytest.mark.cell("one-file segmented packed numbered compressed", "index")
@every_damage
@both_policies
@every_local_kind
def test_index_matches_the_model(kind, policy, damage, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed, damage)
        records = [record.data for record in made.records(policy)]
        with cordwood.index(source_of(made, seed, tmp_path), on_corruption=policy, **made.options) as index:
            assert len(index) == len(records)
            assert index[:] == records
            order = random.Random(seed).sample(range(len(records)), len(records))
            assert [index[at] for at in order] == [records[at] for at in order]


# Copies ------------------------------------------------------------------------------------------


def copied(made: Log, path):
    """The offsets and records of a copy, in pure Python."""
    data = next(path.iterdir()).read_bytes() if path.is_dir() else path.read_bytes()
    dialect = reference.PACKED if made.kind == "packed" else reference.LEVELDB
    if made.kind == "compressed":
        assert data.startswith(log_kinds.SET_ZSTD)
        data = data.replace(log_kinds.SET_ZSTD, reference.fragment(reference.FULL, b"zstd"), 1)
    found = [event for event in reference.events(data, dialect=dialect) if isinstance(event, Record)]
    if made.kind == "packed":
        # Readers of a packed log need its mark.
        assert data[6] == containers.MARK
    if made.kind == "compressed":
        frames = [record.data for record in found[1:]]
        # A frame states the length of its content.
        return [pyarrow.Codec("zstd").decompress(frame, zstd_len(frame), asbytes=True) for frame in frames]
    return [record.data for record in found]


def zstd_len(frame):
    _, length, _ = containers.frame_header(frame)
    return length


@pytest.mark.parametrize("way", ["salvage", "repair"])
@every_damage
@every_kind
@pytest.mark.cell("*", "salvage repair")
def test_a_salvaged_copy_contains_the_records_that_the_model_expects(kind, damage, way, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed, damage)
        new = tmp_path / f"new-{seed}.log"
        cordwood.salvage(source_of(made, seed, tmp_path), new, repair_bit_flips=way == "repair", **made.options)
        records = [record.data for record in made.records(way)]
        if kind == "numbered":
            expected = recycled_logs.Log(NUMBER, "recyclable")
            for record in records:
                expected.append(record)
            assert new.read_bytes() == expected.data
        else:
            assert copied(made, new) == records
        if way == "repair" and damage == "flips":
            assert len(records) == (80 if kind == "segmented" else 40)


# Following ---------------------------------------------------------------------------------------


def polled(follower):
    """The records that exist now. Apparent damage is read until the follower has decided, and never by chance."""
    found = []
    while (record := follower.poll()) or follower.waiting.reason == cordwood.types.WaitReason.SUSPECT:
        if record:
            found.append(as_plain(record))
        else:
            time.sleep(follower.delay)
    return found


def followed(made: Log, path, states):
    """The records and regions of a follower that looks once at each of these contents of the newest file."""
    file = newest_file(made, put(made, path))
    found = []
    file.write_bytes(b"")
    with cordwood.follow(path, on_corruption="skip", **made.options) as follower:
        for state in states:
            if state.startswith(before := file.read_bytes()):
                with file.open("ab") as grown:
                    grown.write(state[len(before) :])
            else:
                with file.open("r+b") as changed:
                    changed.write(state)
                    changed.truncate()
            found += polled(follower)
        return found, merged(plain_skipped(follower))


def growing(data, rng):
    at = 0
    while at < len(data):
        at += rng.choice([1, 3, 7, 500, 5_000, 33_000])
        yield data[:at]


@pytest.mark.cell("one-file segmented packed numbered compressed", "follow-growing")
@follows
def test_a_follower_of_a_growing_log_returns_each_record_once(kind, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed)
        assert followed(made, tmp_path / f"{seed}.log", growing(made.data, random.Random(seed))) == (
            made.records(),
            made.regions(),
        )


@pytest.mark.cell("one-file segmented packed numbered compressed", "follow-flips")
@every_local_kind
def test_followers_and_readers_report_flipped_bits_the_same_way(kind, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed, "flips")
        assert followed(made, tmp_path / f"{seed}.log", [made.data]) == (made.records(), made.regions())


@pytest.mark.cell("one-file segmented packed numbered compressed", "follow-zeros")
@follows
def test_a_follower_can_continue_after_zeros_inside_a_log(kind, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed, "zeros")
        assert followed(made, tmp_path / f"{seed}.log", [made.data]) == (made.records(), made.regions())


@pytest.mark.cell("one-file segmented packed numbered compressed", "follow-zeros")
@every_local_kind
def test_a_follower_waits_at_zeros_until_records_replace_them(kind, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed)
        parts = [part for part in made.fragments() if part.kind in (reference.LAST, reference.FULL)]
        cut = random.Random(seed).choice(parts).end
        states = [made.data[:cut] + bytes(len(made.data) - cut), made.data]
        assert followed(made, tmp_path / f"{seed}.log", states) == (made.records(), made.regions())


def torn(made: Log, seed):
    """The newest file up to the middle of a record that is longer than a block, which is the last one."""
    whole = made.data + bytes(reference.trailer_len(len(made.data)))
    return whole + reference.encode_record(b"torn" * 20_000, len(whole))[: 33_000 + 1_000 * seed]


def after(data: bytes, made: Log, end: bytes) -> Log:
    """The log whose newest file is `data` and then `end`."""
    return Log(made.kind, {**made.files, max(made.files): data + end})


@pytest.mark.cell("one-file segmented packed", "follow-pad")
@appends
def test_follower_can_continue_past_a_padded_torn_record(kind, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed)
        start = torn(made, seed)
        padded = start + bytes(-len(start) % BLOCK_LEN)
        new = after(padded, made, reference.encode(payloads(random.Random(seed), 20)))
        states = [start, padded, *(new.data[:end] for end in range(len(padded), len(new.data), 40_000)), new.data]
        assert followed(new, tmp_path / f"{seed}.log", states) == (new.records(), new.regions())


@pytest.mark.cell("one-file segmented packed", "follow-truncate")
@appends
def test_follower_returns_records_that_replace_a_truncated_record(kind, tmp_path):
    for seed in SEEDS:
        made = log(kind, seed)
        more = reference.encode(payloads(random.Random(seed), 20), len(made.data))
        new = after(made.data, made, more)
        states = [torn(made, seed), *([made.data] if seed % 2 else []), new.data]
        assert followed(new, tmp_path / f"{seed}.log", states) == (new.records(), new.regions())


@pytest.mark.cell("numbered compressed", "follow-pad follow-truncate")
@pytest.mark.parametrize("on_torn_tail", ["pad", "truncate"])
@pytest.mark.parametrize("kind", ["numbered", "compressed"])
def test_numbered_and_compressed_logs_cannot_be_appended_to(kind, on_torn_tail, tmp_path):
    path = tmp_path / "some.log"
    data = log(kind, 0).data[:-1]
    path.write_bytes(data)
    with pytest.raises(cordwood.DialectError, match="never appended to"):
        cordwood.open(path, "a", on_torn_tail=on_torn_tail)
    assert path.read_bytes() == data


# Pipelines ---------------------------------------------------------------------------------------


@pytest.mark.cell("*", "spark")
@pytest.mark.parametrize("policy", ["skip", "salvage"])
@pytest.mark.parametrize("damage", ["none", "flips"])
@every_kind
def test_spark_job_matches_the_model(kind, damage, policy, tmp_path):
    """The part of the data source that needs no Spark."""
    for seed in SEEDS:
        made = log(kind, seed, damage)
        named = {name: str(value) for name, value in made.options.items()}
        path = str(url_or_path_of(made, seed, tmp_path))
        options = options_of({"path": path, "on_corruption": policy, "partition_len": "32768", **named})
        rows = [
            (row["offset"], row["record"])
            for splits in reading.planned(options)
            for batch in reading.batches(splits, reading.schema_of(options), options)
            for row in batch.to_pylist()
        ]
        assert rows == pairs(made.records(policy))


@pytest.mark.cell("one-file packed numbered compressed remote", "beam")
@every_damage
@both_policies
@pytest.mark.parametrize("kind", ["one-file", "packed", "numbered", "compressed", "remote"])
def test_ranges_claimed_by_beam_match_the_model(kind, policy, damage, tmp_path):
    """The part of Beam's source that needs no Beam."""
    for seed in SEEDS:
        made = log(kind, seed, damage)
        source = source_of(made, seed, tmp_path)
        opened = open_range_of(source, on_corruption=policy, **made.options)
        whole = kind in ("numbered", "compressed")
        count = 1 if whole else -(-len(made.data) // BLOCK_LEN)
        rng, ranges, records, regions = random.Random(seed), [(0, count)], [], []
        while ranges:
            first, end = ranges.pop()
            tracker = Tracker(first, end)
            splitting = Splitting(rng, tracker, [])
            claimed = ClaimedRange(opened, first, end, *([WHOLE_LEN] if whole else []))
            for batch, taken in claimed.batches(splitting.try_claim, target_len=20_000):
                records += zip(batch.record_offsets[:taken].tolist(), batch[:taken], strict=True)
            regions += plain_skipped(claimed.findings(tracker.stop))
            ranges += splitting.rests
        assert sorted(records) == pairs(made.records(policy))
        assert merged(sorted(regions, key=start_of)) == made.regions(policy)


def open_range_of(source, **options):
    @contextmanager
    def opened(start, end):
        with cordwood.open(source, start=start, end=end, **options) as reader:
            yield reader

    return opened
