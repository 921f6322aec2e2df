"""Log files: the committed ones in `tests/vectors`, and optionally more from other people.

A test that needs the latter gets their paths from `corpus` and is not run unless the environment variable
`CORDWOOD_CORPUS` is set; the end of the run's output says so. A missing vector fails its tests.
"""

import os
from pathlib import Path

import pytest
from support import TESTS

VECTORS = TESTS / "vectors"
CORPUS = Path(os.environ["CORDWOOD_CORPUS"]) if os.environ.get("CORDWOOD_CORPUS") else None


def vectors(*names):
    """Test parameters: the paths of committed files."""
    return [pytest.param(VECTORS / name, id=name) for name in names]


def corpus(*names):
    """Test parameters: the paths of files in the `CORDWOOD_CORPUS` directory."""
    return [pytest.param(CORPUS and CORPUS / name, id=f"corpus:{name}", marks=pytest.mark.corpus) for name in names]


LOGS = vectors(
    "leveldb/plyvel/000003.log",
    "leveldb/preallocated/000003.log",
    "rocksdb/plain/000004.log",
    "rocksdb/compressed/000008.log",
    "rocksdb/recycled/000014.log",
    "rocksdb/recycled-last-block/000012.log",
) + corpus(
    "leveldb/100k-keys/000004.log",
    "leveldb/chrome-indexeddb/000003.log",
    "leveldb/large-record/000003.log",
    "leveldb/log-only/000003.log",
    "leveldb/plyvel/000003.log",
    "leveldb/preallocated/000003.log",
    "rocksdb/plain/000010.log",
    "rocksdb/recycled-stale-tail/000010.log",
)
"""Their records are write batches."""

LATE_TIMESTAMPS = vectors(
    "rocksdb/late-timestamps-compressed/000004.log",
    "rocksdb/late-timestamps-plain/000004.log",
    "rocksdb/late-timestamps-recycled-compressed/000014.log",
    "rocksdb/late-timestamps-recycled/000014.log",
)
"""Likewise; among them is RocksDB's own record with the lengths of timestamps, which the drop-ins' originals refuse."""

MANIFESTS = vectors("leveldb/plyvel/MANIFEST-000002", "leveldb/preallocated/MANIFEST-000002") + corpus(
    "leveldb/plyvel/MANIFEST-000002", "leveldb/preallocated/MANIFEST-000002"
)
PEBBLE = corpus("pebble/walsync/000007.log", "pebble/recyclable-trailer/000002.log")
FIRESTORE = corpus("firestore/daily-cat/output-0", "firestore/swift-guide/output-0")
EXPORTS = vectors("appengine/export/output-0") + FIRESTORE
OLD_RUNS = vectors("wandb/releases/run-0.12.21.wandb", "wandb/releases/run-0.17.9.wandb")
RUNS = vectors("wandb/run/run-1.wandb") + OLD_RUNS + corpus("wandb/offline-run/run-g9dvvkua.wandb")
SWANLAB = vectors(
    "swanlab/releases/run-0.6.4.swanlab", "swanlab/releases/run-0.7.10.swanlab", "swanlab/run/run.swanlab"
)
OTHERS = vectors("pebble/recyclable-trailer/000002.log", "pebble/walsync/000007.log")
ALL = [*LOGS, *LATE_TIMESTAMPS, *MANIFESTS, *PEBBLE, *EXPORTS, *RUNS, *SWANLAB, *OTHERS]
