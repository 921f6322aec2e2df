"""Which log it is: options and properties of everything that reads or writes, and values sent to other processes."""

from __future__ import annotations

import copy
import io
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, get_args

import pytest
import reference

import cordwood
from cordwood.typing import CompressionName, DialectName

RECORDS = [b"record %d " % number * (number % 300) for number in range(2_000)]

WRITTEN: dict[str, tuple[dict[str, Any], tuple[str, int | None, str | None]]] = {
    "leveldb": ({}, ("leveldb", None, None)),
    "wandb": ({"dialect": "wandb"}, ("wandb", None, None)),
    "numbered": ({"dialect": "rocksdb", "log_number": 7}, ("recyclable", 7, None)),
    "zstd": ({"dialect": "rocksdb", "compression": "zstd"}, ("rocksdb", None, "zstd")),
    "both": ({"dialect": "rocksdb", "log_number": 7, "compression": "zstd"}, ("rocksdb", 7, "zstd")),
}
"""The writer's options, and the format that a reader detects."""


@pytest.fixture(params=WRITTEN)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any], tuple[Any, ...]]:
    """A log, the options it was written with, and the format that a reader should detect."""
    options, found = WRITTEN[request.param]
    path = tmp_path / "some.log"
    with cordwood.open(path, "x", **options) as writer:
        writer.extend(RECORDS)
    return path, options, found


def identity(thing: Any) -> tuple[Any, ...]:
    return thing.dialect, thing.log_number, thing.compression


def test_every_kind_of_reader_reports_the_log_format(log: Any, tmp_path: Path) -> None:
    path, options, found = log
    assert cordwood.detect(path) == found
    # Detected and, where there are options, named.
    for named in [{}, options] if options else [{}]:
        expected = (named["dialect"], *found[1:]) if named else found
        with cordwood.open(path, **named) as reader:
            assert identity(reader) == expected
            assert list(reader) == RECORDS
            assert identity(reader) == expected
        with cordwood.follow(path, timeout=0, **named) as follower:
            assert list(follower) == RECORDS
            assert identity(follower) == expected
        assert identity(follower) == expected
        for threads in 1, 2:
            assert identity(cordwood.verify(path, threads=threads, **named)) == expected
            assert identity(cordwood.stat(path, threads=threads, **named)) == expected
        assert sum(f.record_offset == f.offset for f in cordwood.fragments(path, **named)) == len(RECORDS)
        saved = tmp_path / f"saved as {bool(named)}"
        assert identity(cordwood.salvage(path, saved, **named)) == expected
        assert list(cordwood.open(saved)) == RECORDS


@pytest.mark.parametrize("name", WRITTEN)
def test_a_writer_reports_its_log_format(name: str, tmp_path: Path) -> None:
    options, _ = WRITTEN[name]
    expected = tuple(options.get(key, default) for key, default in FORMAT.items())
    for sink in tmp_path / "new", io.BytesIO():
        with cordwood.open(sink, "x", **options) as writer:
            assert identity(writer) == expected
        assert identity(writer) == expected


FORMAT = {"dialect": "leveldb", "log_number": None, "compression": None}


def test_log_formats_can_be_compared_and_pickled_as_values() -> None:
    value = cordwood.LogFormat(dialect="rocksdb", log_number=7, compression="zstd")
    assert repr(value) == "LogFormat(dialect='rocksdb', log_number=7, compression='zstd')"
    assert cordwood.LogFormat("wandb") == cordwood.LogFormat("wandb", log_number=None, compression=None)
    for same in pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value):  # noqa: S301
        assert (same, hash(same), type(same)) == (value, hash(value), cordwood.LogFormat)
    assert value != cordwood.LogFormat("rocksdb", 8, "zstd")
    with pytest.raises(AttributeError):
        value.log_number = 8  # type: ignore[misc]  # On purpose.


def test_format_names_match_the_rust_core() -> None:
    with pytest.raises(ValueError, match="dialect must be ") as caught:
        cordwood.Reader(b"", dialect="gzip")  # type: ignore[arg-type]  # On purpose.
    *names, _ = re.findall("'([a-z_]+)'", str(caught.value))
    assert names == list(get_args(DialectName))
    with pytest.raises(ValueError, match="compression must be 'zstd', not 'gzip'"):
        cordwood.Reader(b"", compression="gzip")  # type: ignore[arg-type]  # On purpose.
    assert get_args(CompressionName) == ("zstd",)


NUMBERED = {"rocksdb", "pebble", "recyclable"}


@pytest.mark.parametrize("dialect", get_args(DialectName))
def test_options_that_the_dialect_does_not_support_are_rejected(dialect: Any, tmp_path: Path) -> None:
    source, sink = tmp_path / "log", tmp_path / "sink"
    source.write_bytes(reference.encode([b"one"]))
    for options, has, message in [
        ({"log_number": 7}, dialect in NUMBERED, f"{dialect} logs have no log number"),
        (
            {"compression": "zstd"},
            dialect in {"rocksdb", "packed"},
            f"{dialect} logs are not compressed",
        ),
    ]:
        named: dict[str, Any] = {"dialect": dialect, **options}
        calls = [
            lambda named: cordwood.open(source, **named),
            lambda named: cordwood.open(b"", **named),
            lambda named: cordwood.verify(source, **named),
            lambda named: cordwood.stat(source, **named),
            lambda named: list(cordwood.fragments(source, **named)),
            lambda named: cordwood.follow(source, timeout=0, **named),
            lambda named: cordwood.salvage(source, sink, **named),
            lambda named: cordwood.plan_splits([source], 1, **named),
            lambda named: cordwood.open(sink, "x", **named),
            lambda named: cordwood.open(source, "w", **named),
            lambda named: cordwood.open(source, "a", **named),
            lambda named: cordwood.open(io.BytesIO(), "x", **named),
        ]
        if has:
            for call in calls[:2]:
                call(named)
            continue
        for call in calls:
            with pytest.raises(ValueError, match=message):
                call(named)
        assert source.read_bytes() == reference.encode([b"one"])
        assert not sink.exists()


def test_a_log_number_is_rejected_for_a_dialect_without_log_numbers(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(reference.encode([b"one"]))
    for call in [
        lambda: next(cordwood.open(path, log_number=7)),
        lambda: cordwood.verify(path, log_number=7),
        lambda: next(cordwood.follow(path, timeout=0, log_number=7)),
        lambda: cordwood.open(path, compression="zstd").dialect,
        lambda: cordwood.open(path, "a", log_number=7),
    ]:
        with pytest.raises(ValueError, match="leveldb logs"):
            call()
    for number in -1, 1 << 32:
        with pytest.raises(OverflowError):
            cordwood.open(path, dialect="rocksdb", log_number=number)
    for options in {"dialect": 1}, {"compression": 1}:
        with pytest.raises(TypeError, match="'int' object"):
            cordwood.open(path, **options)  # type: ignore[call-overload]  # On purpose.


@pytest.mark.parametrize("content", [bytes(1 << 20), reference.encode([bytes(100)] * 10_000)], ids=["zeros", "log"])
def test_detection_reads_at_most_three_blocks(content: bytes) -> None:
    file = io.BytesIO(content)
    cordwood.detect(file)
    assert file.tell() <= 98_304


# Splits ----------------------------------------------------------------------------------------


def read(split: cordwood.Split) -> list[bytes]:
    """Reads a split; runs in another process."""
    with cordwood.open(split) as reader:
        assert identity(reader) == identity(split)
        return list(reader)


def test_a_split_keeps_its_format_in_other_processes(log: Any) -> None:
    path, options, found = log
    named = (options["dialect"], options.get("log_number"), options.get("compression")) if options else found
    with ProcessPoolExecutor(2) as pool:
        for given, expected in ({}, found), (options, named):
            splits = cordwood.plan_splits([path], 65_536, **given)
            assert {identity(split) for split in splits} == {expected}
            assert (len(splits) == 1) == (expected[0] in NUMBERED)
            assert [pickle.loads(pickle.dumps(split)) for split in splits] == splits  # noqa: S301
            assert [record for records in pool.map(read, splits) for record in records] == RECORDS


def test_splits_have_the_default_format_if_the_format_of_the_file_cannot_be_detected(tmp_path: Path) -> None:
    path = tmp_path / "zeros"
    path.write_bytes(bytes(100_000))
    splits = cordwood.plan_splits([path], 32_768)
    assert [identity(split) for split in splits] == [(None, None, None)] * 4
    assert [list(cordwood.open(split)) for split in splits] == [[]] * 4
    (tmp_path / "text").write_text("This is no log.\n")
    with pytest.raises(cordwood.DialectError, match="text"):
        cordwood.plan_splits([tmp_path / "text"], 32_768)


def test_an_option_that_contradicts_the_split_is_rejected(log: Any) -> None:
    path, _, found = log
    [split, *_] = cordwood.plan_splits([path], 65_536)
    same = dict(zip(FORMAT, found, strict=True)) | {"start": split.start, "end": split.end}
    with cordwood.open(split, on_corruption="skip", **same) as reader:
        assert next(reader) == RECORDS[0]
    for other in [{"dialect": "swanlab"}, {"log_number": 8}, {"start": 1}, {"end": split.end - 1}]:
        with pytest.raises(ValueError, match=f"^{next(iter(other))} is .* in the Split, not"):
            cordwood.open(split, **other)  # type: ignore[call-overload]  # On purpose.
    with pytest.raises(TypeError, match="a Split is for reading"):
        cordwood.open(split, "w")  # type: ignore[call-overload]  # On purpose.
