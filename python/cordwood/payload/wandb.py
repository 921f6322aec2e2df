"""Decodes the records of `.wandb` files, which contain the data logged by a Weights & Biases run.

This module doesn't require an account, a network or any other package. The only exception is `to_dict`, which requires
the `wandb` package.

`run`, `history`, `summary`, `config`, `metrics` and `output` accept the path of a run's file, or the run's records: an
open `cordwood.Reader`, a `cordwood.Follower` of a run in progress, or any other iterable of `bytes`.

    >>> from cordwood.payload import wandb
    >>> for row in wandb.history("run-59kl0f4q.wandb"):  # doctest: +SKIP
    ...     print(row["_step"], row["loss"])
    0 1
    1 0.5
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any

from cordwood._native import RecordDecoder
from cordwood._open import open as open_log
from cordwood._optional import imported
from cordwood.errors import PayloadError
from cordwood.types import PayloadReason

__all__ = ["config", "history", "history_row", "metrics", "output", "run", "summary", "to_dict"]


def to_dict(record: bytes) -> dict[str, object]:
    """Returns the message in a record as JSON values.

    Requires the `wandb` package: `pip install 'cordwood[wandb]'`.

    Args:
        record: A record from a `.wandb` file.

    Returns:
        The fields, keyed by their names in wandb's `.proto` file, in the JSON format for protocol buffers: 64-bit
        integers are strings, and fields with default values are left out. If a newer wandb wrote the record,
        `unknown_len` is the number of bytes that the installed wandb does not recognise.

    Raises:
        PayloadError: The record is not a wandb message, or JSON cannot represent one of its values.
        ImportError: `wandb` is not installed, or cannot be imported.
    """
    # These modules have no type annotations, because their classes are created on import.
    message = _imported("wandb.proto.wandb_internal_pb2").Record()
    protobuf, json_format = _imported("google.protobuf.message"), _imported("google.protobuf.json_format")
    try:
        message.ParseFromString(record)
    except protobuf.DecodeError as error:
        raise _error(f"not a record of wandb: {error}", record, PayloadReason.BAD_WIRE_TYPE) from error
    record_len = message.ByteSize()
    message.DiscardUnknownFields()
    try:
        out: dict[str, object] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (json_format.Error, ValueError) as error:
        # For example, a time before the year 1 or after the year 9999.
        raise _error(f"a value that JSON cannot have: {error}", record, PayloadReason.NON_CANONICAL) from error
    unknown_len = record_len - message.ByteSize()
    return {**out, "unknown_len": unknown_len} if unknown_len else out


def _error(message: str, record: bytes, reason: PayloadReason) -> PayloadError:
    """Returns the error for a record, with a message worded like the native module's."""
    message = f"{message} ({len(record)} byte{'' if len(record) == 1 else 's'} at offset 0 of the payload)"
    return PayloadError(message, offset=0, length=len(record), reason=reason)


def _imported(name: str) -> Any:
    without = "; the logged data of a run is read without it, for example as wandb-history"
    return imported(name, "all fields of a record need", "wandb", without=without)


def history(records: Iterable[bytes] | str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yields the values logged with `run.log`, step by step.

    Args:
        records: The records of a run, or the path of its file.

    Yields:
        A row for each step, as returned by `history_row`.

    Raises:
        PayloadError: A record is not a wandb record, or a value does not have the type that `history_row` requires.
        CorruptionError: The file is damaged. To skip the damage, pass `cordwood.open(path, on_corruption="salvage")`
            instead of the path.
    """
    return _rows("wandb-history", records)


def history_row(record: bytes, errors: list[PayloadError] | None = None) -> dict[str, Any] | None:
    """Returns the values logged in one step.

    Args:
        record: A record from a `.wandb` file.
        errors: A list that collects an error for each unreadable value. Unreadable values are left out. Default:
            `None`, which raises the errors.

    Returns:
        The values, keyed by the names that wandb displays. A value logged as `{"a": {"b": 1}}` becomes `{"a.b": 1}`.
        wandb adds `_step`, which comes first. It also adds `_timestamp` (Unix time) and `_runtime`, both in seconds. An
        integer with more digits than Python's limit, which is 4,300 by default, becomes text. A lone surrogate becomes
        its six-character escape. The result is `None` if the record is not part of the history.

    Raises:
        PayloadError: The record is not a wandb record. Without `errors`, this is also raised if a value is not JSON or
            is nested too deeply, or if two values have the same name.
    """
    return RecordDecoder("wandb-history").row(record, errors)


def metrics(records: Iterable[bytes] | str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yields the system metrics that wandb collected during the run.

    Args:
        records: The records of a run, or the path of its file.

    Yields:
        A row for each measurement. `_timestamp` (Unix time) and `_runtime` are in seconds. The other values have the
        names that wandb displays, such as `system.cpu` and `system.disk./.usageGB`. `_runtime` is present only if an
        earlier record contains the run's start time.

    Raises:
        PayloadError: A record is not a wandb record, a value is not JSON or is nested too deeply, or two values have
            the same name.
        CorruptionError: The file is damaged. To skip the damage, pass `cordwood.open(path, on_corruption="salvage")`
            instead of the path.
    """
    return _rows("wandb-metrics", records)


def output(records: Iterable[bytes] | str | PathLike[str]) -> str:
    """Returns the output that a run printed.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        The text of stdout and stderr, in the order in which it was printed. Terminal control characters are left
        unchanged, including the carriage returns that progress bars use to overwrite themselves.

    Raises:
        PayloadError: A record is not a wandb record.
        CorruptionError: The file is damaged. To skip the damage, pass `cordwood.open(path, on_corruption="salvage")`
            instead of the path.
    """
    decoder = RecordDecoder("wandb-output")
    pieces = (decoder.value(record) for record in _records(records))
    return "".join(piece["text"] for piece in pieces if piece is not None)


def run(records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    """Returns a description of a run, including its name, program, start time and state.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        `id`, `name`, `project`, `entity`, `group`, `job_type`, `tags` (a list), `notes`, `state`, `exit_code`,
        `start_time` (a `datetime` in UTC), `host`, `git_commit` and `command`, in this order. Values not in the records
        are `None`. `state` is `"finished"`, `"failed"` (the exit code is not 0), or `"unfinished"` if the records do
        not say how the run ended. An unfinished run is still in progress, or its process was killed.

    Raises:
        PayloadError: A record is not a wandb record.
        CorruptionError: The file is damaged. To skip the damage, pass `cordwood.open(path, on_corruption="salvage")`
            instead of the path.
    """
    return _last_row("wandb-run", records)


def summary(records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    """Returns a run's summary, which is `run.summary` at the end of the run.

    If the file ends before the run does, this is `run.summary` at the end of the file.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        The values by name, with their original nesting.

    Raises:
        PayloadError: A record is not a wandb record, or a value is not JSON or is nested too deeply.
        CorruptionError: The file is damaged. To skip the damage, pass `cordwood.open(path, on_corruption="salvage")`
            instead of the path.
    """
    return _last_row("wandb-summary", records)


def config(records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    """Returns a run's configuration, which is `run.config` with a `_wandb` entry added by wandb.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        The values by name, with their original nesting.

    Raises:
        PayloadError: A record is not a wandb record, or a value is not JSON or is nested too deeply.
        CorruptionError: The file is damaged. To skip the damage, pass `cordwood.open(path, on_corruption="salvage")`
            instead of the path.
    """
    return _last_row("wandb-config", records)


def _rows(payload: str, records: Iterable[bytes] | str | PathLike[str]) -> Iterator[dict[str, Any]]:
    row_of = RecordDecoder(payload).row
    for record in _records(records):
        row = row_of(record)
        if row is not None:
            yield row


def _last_row(payload: str, records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    decoder = RecordDecoder(payload)
    for record in _records(records):
        decoder.row(record)
    return decoder.rest() or {}


def _records(records: Iterable[bytes] | str | PathLike[str]) -> Iterable[bytes]:
    if isinstance(records, bytes | bytearray | memoryview):
        raise TypeError("the records of a run are needed, not bytes: cordwood.open(...), or the path of the file")
    # Iterating over a reader to the end closes the file.
    return open_log(records) if isinstance(records, str | PathLike) else records
