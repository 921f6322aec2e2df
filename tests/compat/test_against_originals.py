"""The same calls to the originals and to the drop-ins differ only in deviations that the drop-in's module lists.

`DEVIATIONS` says in which logs each deviation shows. In those the outcomes must differ; in all others they must not.
"""

import importlib
import random
import struct

import compat_logs
import compat_peers
import pytest
from compat_logs import DAMAGE, LEVELDB, WANDB, Log, lengths, truth
from compat_pairs import DEVIATIONS, PAIRS
from compat_peers import on_and_on, outcome, shown
from real_files import EXPORTS, LOGS, MANIFESTS, RUNS
from write_batch import parse_write_batch

SEEDS = range(2)

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


def test_the_table_of_deviations_lists_only_existing_logs():
    named = {log for table in DEVIATIONS.values() for logs in table.values() for log in logs.split()}
    assert named <= {*DAMAGE, *lengths(LEVELDB)}


@pairs
@pytest.mark.parametrize("name", lengths(LEVELDB))
def test_drop_in_modules_return_the_same_results_as_the_originals_for_undamaged_logs(pair, name, tmp_path):
    path = tmp_path / "000005.log"
    path.write_bytes(pair.log_of_lengths(name).file)
    compare(pair, name, path)


@pairs
@damages
@pytest.mark.parametrize("seed", SEEDS)
def test_drop_in_modules_return_the_same_results_as_the_originals_for_damaged_logs(pair, damage, seed, tmp_path):
    rng = random.Random(seed)
    log = Log.of(pair.flavour, pair.records(rng))
    DAMAGE[damage](log, rng)
    path = tmp_path / "000005.log"
    path.write_bytes(log.file)
    compare(pair, damage, path)


REAL_FILES = [(WANDB, param) for param in RUNS] + [
    # The originals do not know RocksDB's other types.
    (LEVELDB, param)
    for param in EXPORTS + LOGS + MANIFESTS
    if "rocksdb/recycled" not in param.id and "rocksdb/compressed" not in param.id
]


@pytest.mark.parametrize(
    ("pair", "path"),
    [
        pytest.param(pair, *param.values, id=f"{pair.calls}-{param.id}", marks=param.marks)
        for pair in PAIRS
        for flavour, param in REAL_FILES
        if flavour is pair.flavour and (param.id.endswith(".log") or not pair.in_batches)
    ],
)
def test_drop_in_modules_return_the_same_results_as_the_originals_for_real_files(pair, path):
    theirs, ours = pair.outcomes(path)
    assert ours == theirs
    assert ours[-1] == "ended"


# The drop-ins are also compared with the reference: they return all that can be read, even after damage. ------


def wandb_data(module, path):
    store = module.DataStore()
    store.open_for_scan(path)
    yield from on_and_on(store.scan_data)
    store.close()


def records_data(module, path):
    with path.open("rb") as file:
        yield from module.RecordsReader(file)


READERS = [
    (wandb_data, "wandb", WANDB, True),
    (records_data, "appengine", LEVELDB, False),
    (records_data, "leveldb_export", LEVELDB, False),
]


@damages
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[1])
def test_drop_in_modules_return_every_readable_record(reader, damage, seed, tmp_path):
    calls, drop_in, flavour, salvage = reader
    rng = random.Random(seed)
    log = Log.of(flavour, compat_logs.plain_records(rng))
    DAMAGE[damage](log, rng)
    path = tmp_path / "000005.log"
    path.write_bytes(log.file)
    expected = [record.data for record in truth(flavour, bytes(log.file), salvage=salvage)]
    assert list(calls(importlib.import_module(f"cordwood.compat.{drop_in}"), path)) == expected


@damages
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.calls in ("ccl_records", "dfindexeddb_keys")])
def test_drop_in_modules_return_every_readable_batch(pair, damage, seed, tmp_path):
    rng = random.Random(seed)
    log = Log.of(LEVELDB, compat_logs.batch_records(rng))
    DAMAGE[damage](log, rng)
    path = tmp_path / "000005.log"
    path.write_bytes(log.file)
    expected = []
    for record in truth(LEVELDB, bytes(log.file), salvage=True):
        try:
            sequence, operations = parse_write_batch(record.data)
        except (AssertionError, IndexError, struct.error):
            continue  # Not a batch: some kinds of damage insert other records.
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
