"""What records contain, by the names of `--as`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

import cordwood
from cordwood._inputs.kind import is_engine_name
from cordwood.cli import _messages
from cordwood.cli._messages import complain
from cordwood.cli._options import reading_options
from cordwood.cli._sources import display_name, inputs_of
from cordwood.errors import PayloadError

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
    "json": "cordwood.payload._json_parser",
}
"""The names that `--as` accepts, and the modules that decode a record."""

AUTO = "auto"
"""The choice of `--as` that leaves it to the first record of a log."""


def report_engine(name: str, text: str) -> None:
    """Reports that a log may be of several engines, and how to decide."""
    complain(f"{display_name(name)}: {text}: --dialect rocksdb or --dialect pebble decides")


def wandb_values(payload: str) -> Callable[[bytes], dict[str, Any] | None]:
    """Returns a decoder for the records of a run that a form of `--as` is about. It returns `None` for any other."""
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
    """What a record is, if not what `--as` says, and the option for it; `None` if it is unknown or ambiguous.

    Files of Weights & Biases have a dialect of their own, which decides, whatever else the record may be decoded as.
    """
    if payload.startswith("wandb") and dialect and dialect.startswith("wandb"):
        return None
    fits = [name for name in payloads_of(record, dialect) if name != payload]
    if len(fits) != 1:
        return None
    return _advice(fits[0])


def _advice(payload: str) -> str:
    form = "wandb-history" if payload == "wandb" else payload
    return f"{DESCRIPTIONS[payload]}: --as {form}"


def other_kind(options: argparse.Namespace, is_full: Callable[[], bool]) -> Callable[[str], str | None] | None:
    """The `other_kind` of `for_each_source`; `None` if every log contains what `--as` names.

    Once the limit of rows is reached, no log is opened. A database has write batches in one file and version
    edits in another, and nothing is wrong with either.
    """
    wanted = _kind_of(options.payload)
    if wanted in (None, "raw"):
        return None
    if wanted == AUTO:
        return lambda _: None

    def other_kind_of(name: str) -> str | None:
        if is_full():
            return None
        with cordwood.Reader(name, on_corruption="skip", **reading_options(options)) as reader:
            first = next(reader.records(), None)
            found = _kind_of(payload_by_content(name, first.data if first else None, reader.dialect))
        return None if found in (None, wanted) else _advice(found)

    return other_kind_of


def is_manifest(name: str, payload: str | None) -> bool:
    """Whether a log with records of this kind is a MANIFEST, or has the name of one where that is not known."""
    return payload == "version-edit" or is_engine_name(name, "version-edit")


LOST_EDITS = (
    "records were lost: its live files and column families may be wrong, and a database opened with it may lose more"
)
"""What damage to a MANIFEST means: its records say which files and column families were added, and which removed."""


def hint_at_payload(options: argparse.Namespace) -> None:
    """On a terminal, says how to decode the records of the first log, if that is known; a script gets no hint."""
    if _messages.is_quiet or not sys.stderr.isatty():
        return
    for file in inputs_of(options.sources):
        # Opening a pipe again would wait for another writer.
        if not os.path.isfile(file.name):  # noqa: PTH113 - pathlib is slow to import
            continue
        # What cannot be read has been reported.
        with contextlib.suppress(OSError, cordwood.CordwoodError):
            with cordwood.Reader(file.name, on_corruption="skip", **reading_options(options)) as reader:
                first = next(reader.records(), None)
                payload = payload_by_content(file.name, first.data if first else None, reader.dialect)
            if first and payload:
                description = DESCRIPTIONS[_kind_of(payload) or payload]
                complain(f"{display_name(file.name)}: the first record is {description}: --as {payload} decodes it")
            if first:
                return


def _kind_of(payload: str | None) -> str | None:
    """The key of `DESCRIPTIONS` for what `--as` names, where there is one."""
    if payload and payload.startswith("wandb"):
        return "wandb"
    return "version-edit" if payload == "live-files" else payload


def payload_by_content(name: str, first: bytes | None, dialect: str | None) -> str | None:
    """What `--as auto` takes the records of a log to be; `None` for bytes.

    It is what the first record can be. If that is several things, the name of the file decides, if a database gave it.
    """
    fits = payloads_of(first or b"", dialect)
    named = [payload for payload in fits if is_engine_name(name, payload)]
    if len(fits) != 1 and not named:
        return None
    [payload, *_] = named or fits
    return "wandb-history" if payload == "wandb" else payload


def report_payload(name: str, payload: str | None, *, has_records: bool = True) -> None:
    """Reports what the records of a log are taken to be."""
    why = "its first record does not have exactly one known form" if has_records else "there are no records"
    text = f"read with --as {payload}" if payload else f"read as bytes: {why}"
    complain(f"{display_name(name)}: {text}")


def payloads_of(record: bytes, dialect: str | None) -> list[str]:
    """What a record can be: names of `--as`, none for an empty record. The dialects of Weights & Biases decide it."""
    if dialect and dialect.startswith("wandb"):
        return ["wandb"]
    # The payload modules define the types of values, and are imported once there is a value.
    from cordwood._native import VersionEdit, WriteBatch, decode_entity

    checks: dict[str, Callable[[bytes], object]] = {
        "write-batch": lambda record: len(WriteBatch(record, engine="pebble" if dialect == "pebble" else "rocksdb")),
        "version-edit": VersionEdit,
        "entity": decode_entity,
    }
    fits: list[str] = []
    for name, check in checks.items():
        # An empty record would also be a version edit.
        if record:
            with contextlib.suppress(PayloadError):
                check(record)
                fits.append(name)
    return fits
