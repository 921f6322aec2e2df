"""The same calls of the originals and of the drop-ins: what differs is a deviation that the drop-in's module names.

`DEVIATIONS` says in which logs which deviation shows. In those the outcomes must differ, in all others they must not.
"""

import importlib
import os
import random
import re
import struct
from dataclasses import dataclass
from pathlib import Path

import compat_peers
import pytest
from compat_peers import DAMAGE, LEVELDB, SWANLAB, WANDB, Flavour, Log, lengths, original, outcome, shown, truth
from write_batch import PUT, parse_write_batch, write_batch

CORPUS = Path(os.environ.get("CORDWOOD_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")
SEEDS = range(2)


@dataclass(frozen=True)
class Pair:
    """An original, its drop-in, and what of both is called."""

    calls: str
    original: str
    drop_in: str
    flavour: Flavour = LEVELDB
    in_batches: bool = False

    def outcomes(self, path):
        calls = getattr(compat_peers, self.calls)
        drop_in = importlib.import_module(f"cordwood.compat.{self.drop_in}")
        return outcome(calls, original(self.original), path), outcome(calls, drop_in, path)

    def deviations(self):
        """Those that the drop-in's module lists; what has a copy has its deviations, too."""
        names = [self.drop_in, *(["appengine"] if self.drop_in == "leveldb_export" else [])]
        texts = [importlib.import_module(f"cordwood.compat.{name}").__doc__ for name in names]
        return set(re.findall(r"^\* \*\*([a-z-]+)\*\*:", "\n".join(texts), re.MULTILINE))

    def records(self, rng):
        return compat_peers.batch_records(rng) if self.in_batches else compat_peers.plain_records(rng)

    def log_of_lengths(self, name):
        rng = random.Random(name)
        records = [rng.randbytes(length) for length in lengths(self.flavour)[name]]
        if self.in_batches:
            empty_len = len(write_batch(0, [(PUT, b"k", b"v" * 30_000)])) - 30_000
            puts = [(PUT, b"k", record[empty_len:]) for record in records]
            records = [write_batch(index, [put]) for index, put in enumerate(puts)]
        return Log.of(self.flavour, records)


_WANDB, _SWANLAB = "wandb.sdk.internal.datastore", "swanlab.sdk.internal.core_python.store"
_EXPORT, _DFINDEXEDDB = "leveldb_export.records", "dfindexeddb.leveldb.log"
PAIRS = [
    Pair("wandb_scan_data", _WANDB, "wandb", WANDB),
    Pair("wandb_scan_record", _WANDB, "wandb", WANDB),
    Pair("swanlab_iterate", _SWANLAB, "swanlab", SWANLAB),
    Pair("swanlab_scan", _SWANLAB, "swanlab", SWANLAB),
    Pair("swanlab_wandb", "swanlab.converter.wb.wbdatastore", "swanlab", WANDB),
    Pair("records_iterate", _EXPORT, "leveldb_export"),
    Pair("records_iterate_by_default", _EXPORT, "leveldb_export"),
    Pair("records_read", _EXPORT, "leveldb_export"),
    Pair("ccl_records", "chromium_reader.leveldb", "ccl", in_batches=True),
    Pair("dfindexeddb_blocks", _DFINDEXEDDB, "dfindexeddb", in_batches=True),
    Pair("dfindexeddb_fragments", _DFINDEXEDDB, "dfindexeddb", in_batches=True),
    Pair("dfindexeddb_batches", _DFINDEXEDDB, "dfindexeddb", in_batches=True),
    Pair("dfindexeddb_keys", _DFINDEXEDDB, "dfindexeddb", in_batches=True),
]

# By calls: deviation, and the logs in which it shows.
_ALL_CHECKSUMS = "flipped_payload flipped_payload_of_a_piece flipped_checksum zeroed_page"
_ENDS_IN_TRAILER = " ".join(f"left_{left}_at_end" for left in range(1, 7))
_BATCHES = {
    "empty": "left_7",
    "checksums": f"{_ALL_CHECKSUMS} length_too_big",
    "goes-on": "length_too_small length_past_block length_past_end unknown_kind garbage_tail",
    "torn-tail": "torn_payload torn_in_a_piece",
    "joined": "zeroed_block first_without_last missing_start",
    "not-a-batch": "nonzero_trailer lost_block",
}
DEVIATIONS = {
    "wandb_scan_data": {
        "exception": "unknown_kind garbage_tail",
        "torn-tail": "torn_payload torn_header torn_behind_header torn_in_a_piece",
        "length": "length_past_end",
        "zeros": "zero_tail",
        "trailer": f"nonzero_trailer {_ENDS_IN_TRAILER}",
    },
    "wandb_scan_record": {
        "exception": "unknown_kind garbage_tail",
        "length": "length_past_end",
        "zeros": "zero_tail zeroed_block",
    },
    "swanlab_iterate": {
        "raises": "flipped_payload flipped_payload_of_a_piece flipped_checksum flipped_kind length_too_small "
        "length_too_big length_past_block unknown_kind zeroed_page zeroed_block garbage_tail first_without_last "
        "missing_start",
        "length": "length_past_end",
        "trailer": "nonzero_trailer",
    },
    "swanlab_scan": {
        "exception": "flipped_payload flipped_payload_of_a_piece flipped_checksum flipped_kind length_too_small "
        "length_too_big length_past_block unknown_kind zeroed_page zeroed_block garbage_tail first_without_last "
        "missing_start",
        "torn-tail": "torn_payload torn_header torn_behind_header torn_in_a_piece",
        "length": "length_past_end",
        "zeros": "zero_tail",
        "trailer": f"nonzero_trailer {_ENDS_IN_TRAILER}",
    },
    "swanlab_wandb": {"length": "length_past_end", "zeros": "zero_tail", "trailer": "nonzero_trailer"},
    "records_iterate": {"unknown-type": "unknown_kind", "joined": "zeroed_block"},
    "records_iterate_by_default": {
        "checksums": f"{_ALL_CHECKSUMS} flipped_kind length_too_small length_too_big",
        "unknown-type": "unknown_kind",
        "joined": "zeroed_block",
    },
    "records_read": {"unknown-type": "unknown_kind", "joined": "zeroed_block"},
    "ccl_records": {
        "checksums": f"{_ALL_CHECKSUMS} length_too_small length_too_big length_past_block length_past_end zeroed_block",
        "goes-on": "flipped_kind unknown_kind garbage_tail first_without_last missing_start",
        "torn-tail": "torn_payload",
        "not-a-batch": "lost_block nonzero_trailer",
    },
    "dfindexeddb_blocks": {},
    "dfindexeddb_fragments": {
        "empty": "left_7",
        "checksums": f"{_ALL_CHECKSUMS} flipped_kind length_too_small length_too_big",
        "goes-on": "length_past_block length_past_end unknown_kind garbage_tail",
        "torn-tail": "torn_payload torn_in_a_piece",
    },
    "dfindexeddb_batches": _BATCHES,
    "dfindexeddb_keys": _BATCHES,
}

pairs = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.calls)
damages = pytest.mark.parametrize("damage", DAMAGE)


def deviation_of(pair, log):
    found = [name for name, logs in DEVIATIONS[pair.calls].items() if log in logs.split()]
    assert len(found) <= 1
    return found[0] if found else None


def compare(pair, log, path):
    theirs, ours = pair.outcomes(path)
    deviation = deviation_of(pair, log)
    if deviation is None:
        assert ours == theirs
    else:
        assert deviation in pair.deviations()
        assert ours != theirs


def test_the_table_names_logs_that_there_are():
    named = {log for table in DEVIATIONS.values() for logs in table.values() for log in logs.split()}
    assert named <= {*DAMAGE, *lengths(LEVELDB)}


@pairs
@pytest.mark.parametrize("name", lengths(LEVELDB))
def test_undamaged(pair, name, tmp_path):
    path = tmp_path / "000005.log"
    path.write_bytes(pair.log_of_lengths(name).file)
    compare(pair, name, path)


@pairs
@damages
@pytest.mark.parametrize("seed", SEEDS)
def test_damaged(pair, damage, seed, tmp_path):
    rng = random.Random(seed)
    log = Log.of(pair.flavour, pair.records(rng))
    DAMAGE[damage](log, rng)
    path = tmp_path / "000005.log"
    path.write_bytes(log.file)
    compare(pair, damage, path)


CORPUS_FILES = {
    WANDB: ["wandb/*/*"],
    SWANLAB: [],
    LEVELDB: ["firestore/*/output-*", "leveldb/*/*", "rocksdb/plain/*.log"],
}


@pairs
def test_corpus(pair):
    patterns = CORPUS_FILES[pair.flavour]
    files = [path for pattern in patterns for path in CORPUS.glob(pattern)]
    if pair.in_batches:
        files = [path for path in files if path.suffix == ".log"]
    if not files:
        pytest.skip(f"no file of this kind in {CORPUS}")
    for path in files:
        theirs, ours = pair.outcomes(path)
        assert ours == theirs, path
        assert ours[-1] == "ended"


# What the drop-ins give is judged by the reference, too: it is all that can be read, also behind damage. -------


def on_and_on(step):
    """What a call gives until it gives `None`, with the exceptions in between left out."""
    raised = 0
    while raised < 100:
        try:
            data = step()
        except Exception:  # noqa: BLE001
            raised += 1
        else:
            if data is None:
                return
            yield data


def wandb_data(module, path):
    store = module.DataStore()
    store.open_for_scan(path)
    yield from on_and_on(store.scan_data)
    store.close()


def swanlab_data(module, path):
    reader = module.DataStoreReader()
    reader.open(path)
    yield from on_and_on(lambda: next(reader, None))
    reader.close()


def records_data(module, path):
    with path.open("rb") as file:
        yield from module.RecordsReader(file)


READERS = [
    (wandb_data, "wandb", WANDB, True),
    (swanlab_data, "swanlab", SWANLAB, True),
    (records_data, "appengine", LEVELDB, False),
    (records_data, "leveldb_export", LEVELDB, False),
]


@damages
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[1])
def test_all_that_can_be_read_is_returned(reader, damage, seed, tmp_path):
    calls, drop_in, flavour, salvage = reader
    rng = random.Random(seed)
    log = Log.of(flavour, compat_peers.plain_records(rng))
    DAMAGE[damage](log, rng)
    path = tmp_path / "000005.log"
    path.write_bytes(log.file)
    expected = [record.data for record in truth(flavour, bytes(log.file), salvage=salvage)]
    assert list(calls(importlib.import_module(f"cordwood.compat.{drop_in}"), path)) == expected


@damages
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.calls in ("ccl_records", "dfindexeddb_keys")])
def test_all_batches_that_can_be_read_are_returned(pair, damage, seed, tmp_path):
    rng = random.Random(seed)
    log = Log.of(LEVELDB, compat_peers.batch_records(rng))
    DAMAGE[damage](log, rng)
    path = tmp_path / "000005.log"
    path.write_bytes(log.file)
    expected = []
    for record in truth(LEVELDB, bytes(log.file), salvage=True):
        try:
            sequence, operations = parse_write_batch(record.data)
        except (AssertionError, IndexError, struct.error):
            continue  # Not a batch: some damage puts other records in.
        expected += [
            (sequence + index, shown(key), shown(value[0]) if value else shown(b""))
            for index, (_, key, *value) in enumerate(operations)
        ]
    module = importlib.import_module(f"cordwood.compat.{pair.drop_in}")
    found = outcome(getattr(compat_peers, pair.calls), module, path)
    assert found.pop() == "ended"
    if pair.drop_in == "ccl":
        keys = [(seq, key, value) for key, _, value, seq, *_ in found]
    else:
        keys = [(sequence, key, value) for _, _, sequence, key, value in found]
    assert keys == expected
