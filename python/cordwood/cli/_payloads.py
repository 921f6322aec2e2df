"""What records hold, as `--as` names it."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from cordwood.cli._messages import complain
from cordwood.cli._sources import display_name
from cordwood.errors import PayloadError

if TYPE_CHECKING:
    from cordwood.payload import WriteBatch


PAYLOADS = {
    "write-batch": "cordwood.payload.write_batch",
    "version-edit": "cordwood.payload.version_edit",
    "entity": "cordwood.payload.entity",
    "wandb": "cordwood.payload.wandb",
    "wandb-history": "cordwood.payload.wandb",
    "wandb-summary": "cordwood.payload.wandb",
    "wandb-config": "cordwood.payload.wandb",
    "wandb-metrics": "cordwood.payload.wandb",
    "wandb-output": "cordwood.payload.wandb",
}
"""The choices of `--as`, and the modules that decode a record."""


def write_batches(name: str, dialect: str | None) -> Callable[[bytes], WriteBatch]:
    """What reads the write batches of a log in this dialect, each to its end. It raises `PayloadError`.

    A few tags mean one thing to RocksDB and another to Pebble. A log of Pebble that was not closed is laid out like
    one of RocksDB, an old one like one of LevelDB. Then the batches themselves say whose they are: those that only one
    of the two can read. Where none has said so yet, RocksDB is assumed, and that is reported if it makes a difference.
    """
    from cordwood.payload.write_batch import WriteBatch

    engine: Literal["rocksdb", "pebble"] = "pebble" if dialect == "pebble" else "rocksdb"
    other: Literal["rocksdb", "pebble"] = "rocksdb" if dialect == "pebble" else "pebble"
    is_named = dialect in ("pebble", "rocksdb")
    is_sure = is_reported = False

    def read(record: bytes, engine: Literal["rocksdb", "pebble"]) -> WriteBatch:
        batch = WriteBatch(record, engine=engine)
        len(batch)
        return batch

    def read_undecided(record: bytes) -> WriteBatch:
        nonlocal engine, other, is_sure, is_reported
        try:
            batch = read(record, engine)
        except PayloadError:
            with contextlib.suppress(PayloadError):
                batch = read(record, other)
                engine, other, is_sure = other, engine, True
                return batch
            raise
        if is_sure:
            return batch
        try:
            rival = read(record, other)
        except PayloadError:
            is_sure = True
            return batch
        if not is_reported and (len(batch) != len(rival) or any(map(operator.ne, batch, rival))):
            complain(
                f"{display_name(name)}: RocksDB and Pebble read this log differently, and it may be of either; "
                "taken for one of RocksDB: --dialect rocksdb or --dialect pebble decides"
            )
            is_reported = True
        return batch

    return functools.partial(read, engine=engine) if is_named else read_undecided


def wandb_values(payload: str) -> Callable[[bytes], dict[str, Any] | None]:
    """What decodes those records of a run that a form of `--as` is about. Of any other record it makes `None`."""
    from cordwood.payload import wandb

    metrics_row = wandb.metrics_rows()
    decoders: dict[str, Callable[[bytes], dict[str, Any] | None]] = {
        "wandb-history": wandb.history_row,
        "wandb-summary": lambda record: wandb.change_of(record, "summary"),
        "wandb-config": lambda record: wandb.change_of(record, "config"),
        "wandb-metrics": lambda record: metrics_row(record, None),
        "wandb-output": wandb.output_piece,
    }
    return decoders[payload]


DESCRIPTIONS = {
    "write-batch": "a write batch, as in a write-ahead log of LevelDB, RocksDB or Pebble",
    "version-edit": "a version edit, as in a MANIFEST",
    "entity": "an entity of a Datastore or Firestore export",
    "wandb": "a record of a run of Weights & Biases",
}


def other_payload(record: bytes, payload: str, dialect: str | None) -> str | None:
    """What a record is that is not what `--as` says, and how to say it; `None` if it is nothing, or may be several.

    Files of Weights & Biases have a dialect of their own, which says so whatever the record may be decoded as.
    """
    if payload.startswith("wandb") and dialect and dialect.startswith("wandb"):
        return None
    fits = [name for name in payloads_of(record, dialect) if name != payload]
    if len(fits) != 1:
        return None
    form = "wandb-history" if fits[0] == "wandb" else fits[0]
    return f"{DESCRIPTIONS[fits[0]]}: --as {form}"


def payloads_of(record: bytes, dialect: str | None) -> list[str]:
    """What a record can be: names of `--as`, none of a record of nothing. The dialects of Weights & Biases say it."""
    if dialect and dialect.startswith("wandb"):
        return ["wandb"]
    # The modules of the payloads hold what a value is made of, and are imported once there is one.
    from cordwood._native import VersionEdit, WriteBatch, decode_entity

    checks: dict[str, Callable[[bytes], object]] = {
        "write-batch": lambda record: len(WriteBatch(record, engine="pebble" if dialect == "pebble" else "rocksdb")),
        "version-edit": VersionEdit,
        "entity": decode_entity,
    }
    fits: list[str] = []
    for name, check in checks.items():
        # Of nothing, a version edit is made, too.
        if record:
            with contextlib.suppress(PayloadError):
                check(record)
                fits.append(name)
    return fits
