"""Logs in files: `tests/vectors`, which is committed, and more by other people, which may be there.

A test that needs the latter takes its names by `corpus` and is not run without the environment variable
`CORDWOOD_CORPUS`; the last lines of the run say so. A vector that is missing fails its tests.
"""

import os
from pathlib import Path

import pytest
from support import TESTS

VECTORS = TESTS / "vectors"
CORPUS = Path(os.environ["CORDWOOD_CORPUS"]) if os.environ.get("CORDWOOD_CORPUS") else None


def vectors(*names):
    """Parameters: the paths of committed files."""
    return [pytest.param(VECTORS / name, id=name) for name in names]


def corpus(*names):
    """Parameters: the paths of files in the folder of `CORDWOOD_CORPUS`."""
    return [pytest.param(CORPUS and CORPUS / name, id=f"corpus:{name}", marks=pytest.mark.corpus) for name in names]


LOGS = vectors(
    "leveldb/plyvel/000003.log",
    "leveldb/preallocated/000003.log",
    "rocksdb/plain/000004.log",
    "rocksdb/compressed/000008.log",
    "rocksdb/recycled/000014.log",
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

MANIFESTS = vectors("leveldb/plyvel/MANIFEST-000002", "leveldb/preallocated/MANIFEST-000002") + corpus(
    "leveldb/plyvel/MANIFEST-000002", "leveldb/preallocated/MANIFEST-000002"
)
PEBBLE = corpus("pebble/walsync/000007.log", "pebble/recyclable-trailer/000002.log")
FIRESTORE = corpus("firestore/daily-cat/output-0", "firestore/swift-guide/output-0")
EXPORTS = vectors("appengine/export/output-0") + FIRESTORE
OLD_RUNS = vectors("wandb/releases/run-0.12.21.wandb", "wandb/releases/run-0.17.9.wandb")
RUNS = vectors("wandb/run/run-1.wandb") + OLD_RUNS + corpus("wandb/offline-run/run-g9dvvkua.wandb")
OTHERS = vectors("pebble/recyclable-trailer/000002.log", "pebble/walsync/000007.log", "swanlab/run/run.swanlab")
ALL = [*LOGS, *MANIFESTS, *PEBBLE, *EXPORTS, *RUNS, *OTHERS]
