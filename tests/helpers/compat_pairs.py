"""Each original with its drop-in, and the logs in which each deviation shows."""

import importlib
import random
import re
from dataclasses import dataclass

import compat_logs
import compat_peers
from compat_logs import LEVELDB, WANDB, Flavour, Log, lengths
from compat_peers import original, outcome
from write_batch import PUT, write_batch


@dataclass(frozen=True)
class Pair:
    """An original, its drop-in, and the calls to compare."""

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
        """The deviations that the drop-in's module lists; `leveldb_export` also has those of `appengine`."""
        names = [self.drop_in, *(["appengine"] if self.drop_in == "leveldb_export" else [])]
        texts = [importlib.import_module(f"cordwood.compat.{name}").__doc__ for name in names]
        return set(re.findall(r"^\* \*\*([a-z-]+)\*\*:", "\n".join(texts), re.MULTILINE))

    def records(self, rng):
        return compat_logs.batch_records(rng) if self.in_batches else compat_logs.plain_records(rng)

    def log_of_lengths(self, name):
        rng = random.Random(name)
        records = [rng.randbytes(length) for length in lengths(self.flavour)[name]]
        if self.in_batches:
            empty_len = len(write_batch(0, [(PUT, b"k", b"v" * 30_000)])) - 30_000
            puts = [(PUT, b"k", record[empty_len:]) for record in records]
            records = [write_batch(index, [put]) for index, put in enumerate(puts)]
        return Log.of(self.flavour, records)


_WANDB = "wandb.sdk.internal.datastore"
_EXPORT, _DFINDEXEDDB = "leveldb_export.records", "dfindexeddb.leveldb.log"
PAIRS = [
    Pair("wandb_scan_data", _WANDB, "wandb", WANDB),
    Pair("wandb_scan_record", _WANDB, "wandb", WANDB),
    Pair("records_iterate", _EXPORT, "leveldb_export"),
    Pair("records_iterate_by_default", _EXPORT, "leveldb_export"),
    Pair("records_read", _EXPORT, "leveldb_export"),
    Pair("ccl_records", "chromium_reader.leveldb", "ccl", in_batches=True),
    Pair("dfindexeddb_blocks", _DFINDEXEDDB, "dfindexeddb", in_batches=True),
    Pair("dfindexeddb_fragments", _DFINDEXEDDB, "dfindexeddb", in_batches=True),
    Pair("dfindexeddb_batches", _DFINDEXEDDB, "dfindexeddb", in_batches=True),
    Pair("dfindexeddb_keys", _DFINDEXEDDB, "dfindexeddb", in_batches=True),
]

# For each set of calls: the deviations, and the logs in which each shows.
_ALL_CHECKSUMS = "flipped_payload flipped_payload_of_a_piece flipped_checksum zeroed_page"
_ENDS_IN_TRAILER = " ".join(f"left_{left}_at_end" for left in range(1, 7))
_BATCHES = {
    "empty": "left_7",
    "checksums": f"{_ALL_CHECKSUMS} length_too_big",
    "continues": "length_too_small length_past_block length_past_end unknown_kind garbage_tail",
    "torn-tail": "torn_payload torn_in_a_piece",
    "joined": "zeroed_block first_without_last missing_start",
    "not-a-batch": "nonzero_trailer lost_block",
}
DEVIATIONS = {
    "wandb_scan_data": {
        "exception": "unknown_kind garbage_tail",
        "torn-tail": "torn_payload torn_header torn_after_header torn_in_a_piece",
        "length": "length_past_end",
        "zeros": "zero_tail",
        "trailer": f"nonzero_trailer {_ENDS_IN_TRAILER}",
    },
    "wandb_scan_record": {
        "exception": "unknown_kind garbage_tail",
        "length": "length_past_end",
        "zeros": "zero_tail zeroed_block",
    },
    "records_iterate": {"unknown-type": "unknown_kind", "joined": "zeroed_block"},
    "records_iterate_by_default": {
        "checksums": f"{_ALL_CHECKSUMS} flipped_kind length_too_small length_too_big",
        "unknown-type": "unknown_kind",
        "joined": "zeroed_block",
    },
    "records_read": {"unknown-type": "unknown_kind", "joined": "zeroed_block"},
    "ccl_records": {
        "checksums": f"{_ALL_CHECKSUMS} length_too_small length_too_big length_past_block length_past_end zeroed_block",
        "continues": "flipped_kind unknown_kind garbage_tail first_without_last missing_start",
        "torn-tail": "torn_payload",
        "not-a-batch": "lost_block nonzero_trailer",
    },
    "dfindexeddb_blocks": {},
    "dfindexeddb_fragments": {
        "empty": "left_7",
        "checksums": f"{_ALL_CHECKSUMS} flipped_kind length_too_small length_too_big",
        "continues": "length_past_block length_past_end unknown_kind garbage_tail",
        "torn-tail": "torn_payload torn_in_a_piece",
    },
    "dfindexeddb_batches": _BATCHES,
    "dfindexeddb_keys": _BATCHES,
}
