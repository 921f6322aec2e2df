"""`cordwood.compat.wandb`: the cases that the shared logs do not show. Tests are named after deviations."""

import io
import logging
import os
import random
from pathlib import Path

import compat_logs
import pytest
import reference
from compat_logs import DAMAGE, WANDB, Log, lengths
from compat_peers import on_and_on, original
from failing_calls import CAN_FAIL, failing

import cordwood
from cordwood.compat import wandb
from cordwood.compat._wandb_scanner import LISTED_ENOUGH

WANDB_MODULE = "wandb.sdk.internal.datastore"
# When another file is opened, the original leaves the first one to the garbage collector.
lets_go_of_files = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
RECORDS = [b"one", b"two" * 30_000, b"three", b"", b"five" * 10]


class Message:
    """Stands in for the protocol buffer that wandb's `write` expects."""

    def __init__(self, data):
        self.data = data

    def ByteSize(self):  # noqa: N802
        return len(self.data)

    def SerializeToString(self):  # noqa: N802
        return self.data


class OnlySerialize:
    def SerializeToString(self):  # noqa: N802
        return b"one"


def written(directory, flavour, records, name="run-1.wandb"):
    path = directory / name
    path.write_bytes(Log.of(flavour, records).file)
    return path


def scanned(path):
    store = wandb.DataStore()
    store.open_for_scan(str(path))
    return store


@pytest.mark.parametrize("name", lengths(WANDB))
def test_wandb_write_produces_the_same_bytes_and_offsets_as_the_original(name, tmp_path):
    """The same bytes and the same offsets, which say how much is on the disk."""
    theirs, ours = original(WANDB_MODULE).DataStore(), wandb.DataStore()
    theirs.open_for_write(str(tmp_path / "theirs"))
    ours.open_for_write(str(tmp_path / "ours"))
    for length in lengths(WANDB)[name]:
        message = Message(bytes(length))
        assert ours.write(message) == theirs.write(message)
        assert ours.get_offset() == theirs.get_offset()
    for store in (theirs, ours):
        store.ensure_flushed(0)
        store.close()
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


@pytest.mark.skipif(not CAN_FAIL, reason="no table of functions that is known here")
def test_wandb_write_syncs_the_records_it_reports_as_durable(tmp_path):
    """The third offset that it returns moves only with a record in pieces, which is synced."""
    store = wandb.DataStore()
    store.open_for_write(str(tmp_path / "run-1.wandb"))
    with failing("fdatasync"):
        assert store.write(Message(b"one"))[2] == 0
        with pytest.raises(OSError, match="Inappropriate ioctl"):
            store.write(Message(bytes(70_000)))
    with pytest.raises(OSError, match="an earlier sync failed"):
        store.close()


def test_wandb_write_accepts_any_message(tmp_path):
    store = wandb.DataStore()
    store.open_for_write(str(tmp_path / "run-1.wandb"))
    assert store.write(OnlySerialize()) == (7, 17, 0)
    with pytest.raises(BlockingIOError):
        wandb.DataStore().open_for_append(str(tmp_path / "run-1.wandb"))
    store.close()
    with pytest.raises(FileExistsError):
        wandb.DataStore().open_for_write(str(tmp_path / "run-1.wandb"))


def test_wandb_append_continues_a_file_record_by_record(tmp_path):
    path = tmp_path / "run-1.wandb"
    for record in RECORDS:
        store = wandb.DataStore()
        store.open_for_append(str(path))
        store.write(Message(record))
        store.close()
    assert path.read_bytes() == bytes(Log.of(WANDB, RECORDS).file)
    theirs = original(WANDB_MODULE).DataStore()
    theirs.open_for_scan(str(path))
    assert list(iter(theirs.scan_data, None)) == RECORDS
    theirs.close()
    # The original truncates the file.
    theirs.open_for_append(str(path))
    theirs.close()
    assert path.read_bytes() == b""


def test_wandb_append_rejects_torn_and_damaged_files(tmp_path):
    path = written(tmp_path, WANDB, RECORDS)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(cordwood.TornTailError):
        wandb.DataStore().open_for_append(str(path))
    log = Log.of(WANDB, RECORDS)
    log.file[16] ^= 1
    path.write_bytes(log.file)
    with pytest.raises(cordwood.CorruptionError):
        wandb.DataStore().open_for_append(str(path))


def test_wandb_continues_after_damage_that_raised_an_error(tmp_path):
    log = Log.of(WANDB, RECORDS)
    start = log.spans[2][0][0]
    log.file[start + 8] ^= 1
    path = tmp_path / "run-1.wandb"
    path.write_bytes(log.file)
    store = scanned(path)
    assert [store.scan_data(), store.scan_data()] == RECORDS[:2]
    with pytest.raises(wandb.DamagedError) as caught:
        store.scan_data()
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, cordwood.CorruptionError)
    assert (caught.value.offset, caught.value.reason) == (start, "checksum_mismatch")
    assert (caught.value.path, caught.value.length) == (str(path), 7 + len(RECORDS[2]))
    assert store.get_offset() == start
    assert list(iter(store.scan_data, None)) == RECORDS[3:]
    assert [region.offset for region in store.reader.skipped if region.severity == "corruption"] == [start]
    store.close()


def test_wandb_continues_after_each_of_two_damaged_records(tmp_path):
    log = Log.of(WANDB, RECORDS)
    damaged = [log.spans[index][0][0] for index in (2, 3)]
    log.file[damaged[0]] ^= 1
    log.file[damaged[1] + 6] = 9  # The checksum stays valid: this is different damage.
    log.seal(damaged[1])
    path = tmp_path / "run-1.wandb"
    path.write_bytes(log.file)
    store = scanned(path)
    assert [store.scan_data(), store.scan_data()] == RECORDS[:2]
    for start in damaged:
        with pytest.raises(wandb.DamagedError) as caught:
            store.scan_data()
        assert caught.value.offset == store.get_offset() == start
    assert list(iter(store.scan_data, None)) == RECORDS[4:]
    store.close()


def raised_and_returned(store):
    """The offsets of all damage that is raised, and all records that are returned."""
    raised, returned = [], []
    while True:
        try:
            data = store.scan_data()
        except wandb.DamagedError as error:
            raised.append(error.offset)
        else:
            if data is None:
                return raised, returned
            returned.append(data)
        assert store._scanner._skipped_count <= LISTED_ENOUGH + 100  # noqa: SLF001 - each check costs this much


def test_a_data_store_reads_past_101000_damaged_regions(tmp_path, caplog):
    """101,000 regions before the first record: they touch, but have different reasons."""
    twin = bytearray(reference.encode([b"", *[b"x"] * 101_000, b"last"]))
    damaged = []
    for index, item in enumerate(reference.fragments(bytes(twin), verify_checksums=True)):
        payload = bytes(twin[item.start + 7 : item.end])
        kind = reference.FULL if payload != b"x" else reference.LAST if index % 2 else 9
        twin[item.start : item.end] = WANDB.fragment(kind, payload)
        if kind != reference.FULL:
            damaged.append(item.start)
    path = tmp_path / "run-1.wandb"
    path.write_bytes(WANDB.header + twin[7:])
    assert len(damaged) == 101_000
    caplog.set_level(logging.CRITICAL, "cordwood")  # It logs each.
    store = scanned(path)
    assert raised_and_returned(store) == (damaged, [b"last"])
    store.close()


def test_a_data_store_reads_past_thousands_of_damaged_records(tmp_path, caplog):
    log = Log.of(WANDB, [b"%08d" % index for index in range(6_000)])
    damaged = [spans[0][0] for spans in log.spans[::2] if len(spans) == 1]
    for start in damaged:
        log.file[start] ^= 1
    path = tmp_path / "run-1.wandb"
    path.write_bytes(log.file)
    caplog.set_level(logging.CRITICAL, "cordwood")  # It logs each.
    store = scanned(path)
    raised, returned = raised_and_returned(store)
    store.close()
    assert {*raised} >= {*damaged}
    assert returned == [b"%08d" % index for index in range(6_000) if log.spans[index][0][0] not in damaged]


@pytest.mark.parametrize("cut", [3, 40_000, 80_000])
def test_a_data_store_reads_a_torn_record_once_it_is_complete(cut, tmp_path):
    path = tmp_path / "run-1.wandb"
    whole = bytes(Log.of(WANDB, RECORDS[:2]).file)
    path.write_bytes(whole[:-cut])
    store = scanned(path)
    assert (store.scan_data(), store.scan_data(), store.scan_data()) == (RECORDS[0], None, None)
    assert (store.reader.outcome.kind, store.reader.outcome.offset) == ("torn_tail", 17)
    assert store.get_offset() == 17
    path.write_bytes(whole)
    assert (store.scan_data(), store.scan_data()) == (RECORDS[1], None)
    path.write_bytes(bytes(Log.of(WANDB, RECORDS).file))
    assert list(iter(store.scan_data, None)) == RECORDS[2:]
    store.close()


def test_wandb_old_files_can_be_scanned(tmp_path):
    path = tmp_path / "run-1.wandb"
    with cordwood.Writer(path, dialect="wandb_old") as writer:
        writer.extend(RECORDS)
    store = scanned(path)
    assert list(iter(store.scan_data, None)) == RECORDS
    store.close()


def test_wandb_read_only_mode_rejects_writes(tmp_path):
    path = written(tmp_path, WANDB, RECORDS)
    whole = path.read_bytes()
    store = scanned(path)
    with pytest.raises(io.UnsupportedOperation):
        store.write(Message(b"one"))
    store.close()
    assert path.read_bytes() == whole
    # The original's behaviour here.
    theirs = original(WANDB_MODULE).DataStore()
    theirs.open_for_scan(str(path))
    theirs.write(Message(b"two"))
    theirs.close()
    assert path.read_bytes() != whole


def test_wandb_read_only_mode_ignores_the_current_position_of_a_file_descriptor(tmp_path):
    """The log is preceded by other bytes, which the test skips by hand."""
    path = written(tmp_path, WANDB, RECORDS)
    path.write_bytes(b"front" + path.read_bytes())
    outcomes = []
    for store in (original(WANDB_MODULE).DataStore(), wandb.DataStore()):
        descriptor = os.open(path, os.O_RDWR)
        os.lseek(descriptor, 5, os.SEEK_SET)
        try:
            store.open_for_scan(descriptor)
            outcomes.append(store.scan_data())
        except wandb.FileHeaderError as error:
            outcomes.append(type(error))
        store.close()
    assert outcomes == [RECORDS[0], wandb.FileHeaderError]


def test_wandb_read_only_mode_is_used_for_scanning(tmp_path, monkeypatch):
    modes = []
    original_open = open
    monkeypatch.setattr("builtins.open", lambda name, mode="r": modes.append(mode) or original_open(name, mode))
    scanned(written(tmp_path, WANDB, RECORDS)).close()
    assert modes == ["rb"]


@pytest.mark.parametrize("header", [b"", WANDB.header[:6], b":SWL\xd6\xe1\x02", b":W&B\xe1\xbe\x01"])
def test_wandb_file_header_errors_match_the_original(header, tmp_path):
    path = tmp_path / "run-1.wandb"
    path.write_bytes(header)
    theirs = original(WANDB_MODULE).DataStore()
    with pytest.raises(Exception, match="header") as caught:
        theirs.open_for_scan(str(path))
    theirs.close()
    store = wandb.DataStore()
    with pytest.raises(wandb.FileHeaderError, match="header") as ours:
        store.open_for_scan(str(path))
    assert isinstance(ours.value, AssertionError)
    assert isinstance(ours.value, type(caught.value))
    store.close()


def calls_of(store):
    """The result of each call, or the name of the exception that scripts would catch."""
    calls = {
        name: getattr(store, name) for name in ("get_offset", "scan_data", "scan_record", "in_last_block", "close")
    }
    calls["seek"] = lambda: store.seek(7)
    calls["ensure_flushed"] = lambda: store.ensure_flushed(0)
    calls["write"] = lambda: store.write(Message(b""))
    for name, call in calls.items():
        try:
            yield name, call()
        except Exception as error:  # noqa: BLE001 - any of them
            # Ours may be a class of our own that derives from one of these.
            bases = type(error).__mro__
            yield name, next(base.__name__ for base in bases if base.__module__ == "builtins" and base is not Exception)


@pytest.mark.parametrize("header", [b":W&B\xe1\xbe\x01", b"\x1f\x8b\x08\0\0\0\0", b"\0" * 7, b":W&"])
def test_wandb_continues_after_a_wrong_file_header(header, tmp_path):
    path = tmp_path / "run-1.wandb"
    path.write_bytes(header + (Log.of(WANDB, RECORDS[:1]).file[7:] if len(header) == 7 else b""))
    found = []
    for store in (original(WANDB_MODULE).DataStore(), wandb.DataStore()):
        with pytest.raises(Exception, match="header"):
            store.open_for_scan(str(path))
        found.append([store.get_offset(), store.scan_data(), store.scan_data()])
        store.close()
    assert found[0] == found[1]


def test_calls_before_opening_a_file_raise_the_same_errors_as_the_original(tmp_path):
    stores = [original(WANDB_MODULE).DataStore(), wandb.DataStore()]
    theirs, ours = (dict(calls_of(store)) for store in stores)
    assert ours == theirs
    assert ours["get_offset"] == "AttributeError"
    path = written(tmp_path, WANDB, RECORDS)
    for store in stores:
        store.open_for_scan(str(path))
        store.scan_data()
        store.close()
    theirs, ours = (dict(calls_of(store)) for store in stores)
    assert ours == theirs
    assert ours["scan_data"] == ours["write"] == "ValueError"
    for name, store in zip(("theirs", "ours"), stores, strict=True):
        store.open_for_write(str(tmp_path / name))
        with pytest.raises(io.UnsupportedOperation):
            store.scan_data()
        store.close()
    theirs, ours = (dict(calls_of(store)) for store in stores)
    assert ours == theirs


def test_wandb_reuses_a_store_for_another_file(tmp_path):
    """The same store opens another file, with or without `close`."""
    store = scanned(written(tmp_path, WANDB, RECORDS))
    assert store.scan_data() == RECORDS[0]
    for name in ("a", "b"):
        store.open_for_write(str(tmp_path / name))
        for record in RECORDS:
            store.write(Message(record))
        assert store.get_offset() > 90_000
    store.close()
    whole = bytes(Log.of(WANDB, RECORDS).file)
    assert [(tmp_path / name).read_bytes() == whole for name in ("a", "b")] == [True, True]


@lets_go_of_files
def test_opening_another_file_releases_the_first_file(tmp_path):
    """There is no `close` in between. The first file is released."""
    paths = [written(tmp_path, WANDB, [name.encode()] * 2, name) for name in ("one", "two")]
    stores = [original(WANDB_MODULE).DataStore(), wandb.DataStore()]
    for store in stores:
        for path in paths:
            store.open_for_scan(str(path))
            assert store.scan_data() == path.name.encode()
            assert store.get_offset() == 17
        store.close()


@lets_go_of_files
def test_records_written_by_a_data_store_can_be_scanned(tmp_path):
    for name, store in (("theirs", original(WANDB_MODULE).DataStore()), ("ours", wandb.DataStore())):
        path = str(tmp_path / name)
        store.open_for_write(path)
        store.write(Message(b"one"))
        store.open_for_scan(path)
        assert (store.scan_data(), store.scan_data(), store.get_offset()) == (b"one", None, 17)
        assert store.in_last_block()
        store.close()


def test_a_data_store_continues_to_read_the_file_that_was_opened(tmp_path, monkeypatch):
    """Even if its name has another meaning by then: it was relative, or the file was moved or removed."""
    path = written(tmp_path, WANDB, RECORDS)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    written(elsewhere, WANDB, [b"another"])
    monkeypatch.chdir(tmp_path)
    stores = [original(WANDB_MODULE).DataStore(), wandb.DataStore()]
    for store in stores:
        store.open_for_scan(path.name)
    monkeypatch.chdir(elsewhere)
    if os.name != "nt":
        path.unlink()
    for store in stores:
        assert list(iter(store.scan_data, None)) == RECORDS
        store.close()


@pytest.mark.parametrize("kind", [os.fsencode, Path, lambda path: os.open(path, os.O_RDWR)])
def test_the_open_methods_accept_the_arguments_of_the_original(kind, tmp_path):
    path = str(written(tmp_path, WANDB, RECORDS))
    for store in (original(WANDB_MODULE).DataStore(), wandb.DataStore()):
        store.open_for_scan(kind(path))
        assert list(iter(store.scan_data, None)) == RECORDS
        store.close()
    log = Log.of(WANDB, RECORDS)
    log.file[16] ^= 1
    Path(path).write_bytes(log.file)
    store = wandb.DataStore()
    store.open_for_scan(opened := kind(path))
    with pytest.raises(wandb.DamagedError) as caught:
        store.scan_data()
    assert caught.value.path == (path if not isinstance(opened, int) else str(opened))
    store.close()


def test_a_data_store_writes_to_any_kind_of_path(tmp_path):
    for kind in (os.fsencode, Path, str):
        path = tmp_path / kind.__name__
        store = wandb.DataStore()
        store.open_for_write(kind(str(path)))
        store.write(Message(b"one"))
        store.close()
        store.open_for_append(kind(str(path)))
        store.close()
        assert len(path.read_bytes()) == 17


def test_wandb_write_mode_rejects_descriptors_and_seeks(tmp_path):
    store = wandb.DataStore()
    with pytest.raises(TypeError):
        store.open_for_write(7)
    store.open_for_write(str(tmp_path / "run-1.wandb"))
    with pytest.raises(io.UnsupportedOperation):
        store.seek(7)
    store.close()


def test_scan_data_and_scan_record_share_one_position(tmp_path):
    """They share a file, which one of them reads ahead."""
    records = [b"%d" % index * 100 for index in range(200)]
    path = written(tmp_path, WANDB, records)
    found = []
    for store in (original(WANDB_MODULE).DataStore(), wandb.DataStore()):
        store.open_for_scan(str(path))
        found.append([step() for _ in range(50) for step in (store.scan_data, store.scan_record)])
        store.close()
    assert found[0] == found[1]


def test_wandb_logger_does_not_exist_and_scanning_a_file_logs_nothing(caplog, tmp_path):
    with caplog.at_level(logging.INFO):
        scanned(written(tmp_path, WANDB, RECORDS)).close()
    assert not caplog.records
    assert not hasattr(wandb, "logger")


@pytest.mark.parametrize("damage", DAMAGE)
def test_continuing_after_an_exception_does_not_lose_records(damage, tmp_path):
    """Compared by the written records: the original also returns other data."""
    rng = random.Random(damage)
    records = compat_logs.plain_records(rng)
    log = Log.of(WANDB, records)
    DAMAGE[damage](log, rng)
    path = tmp_path / "run-1.wandb"
    path.write_bytes(log.file)
    stores = [original(WANDB_MODULE).DataStore(), wandb.DataStore()]
    for store in stores:
        store.open_for_scan(str(path))
    steps = [store.scan_data for store in stores]
    theirs, ours = (set(on_and_on(step)) for step in steps)
    for store in stores:
        store.close()
    missing = (theirs & {*records}) - ours
    # The deviation "length": this record's data is right, but its header is wrong.
    assert missing <= ({records[-1]} if damage == "length_past_end" else set())


def test_compat_limit_on_record_length_matches_the_reader(tmp_path, monkeypatch):
    """The limit is `Reader`'s; a smaller one stands in for it here."""
    assert cordwood.Reader.__text_signature__ is None or "1073741824" in str(cordwood.Reader.__text_signature__)
    monkeypatch.setattr(
        "cordwood.Reader", lambda *args, reader=cordwood.Reader, **options: reader(*args, **options, record_len_max=50)
    )
    path = written(tmp_path, WANDB, [b"x" * 100, b"short"])
    store = scanned(path)
    with pytest.raises(wandb.DamagedError) as caught:
        store.scan_data()
    assert caught.value.reason == "record_too_large"
    assert store.scan_data() == b"short"
    store.close()


def test_compat_private_attributes_include_those_that_scripts_use():
    """The private attributes that scripts for wandb use."""
    assert {"_fp", "_index", "_fname", "_size_bytes", "_opened_for_scan", "_flush_offset"} <= {*vars(wandb.DataStore())}
