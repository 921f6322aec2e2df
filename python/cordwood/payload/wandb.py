"""Decodes the records of `.wandb` files, which contain the logged data of a run of Weights & Biases.

You need no account, no network and no other package. Only `to_dict` needs an installed `wandb`.

`run`, `history`, `summary`, `config`, `metrics` and `output` accept the path of a run, or its records. The records
can be an open `cordwood.Reader`, a `cordwood.Follower` of a run in progress, or any other iterable of `bytes`.

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
    """Returns the message in a record, as JSON values.

    This needs the package `wandb`: `pip install 'cordwood[wandb]'`.

    Args:
        record: The record of a `.wandb` file.

    Returns:
        The fields by their names in wandb's `.proto` file, in the JSON of protocol buffers. 64-bit integers are
        strings, and a field that has its default value is left out. If a newer wandb wrote the record, `unknown_len`
        is the number of bytes that the installed wandb does not know.

    Raises:
        PayloadError: The record is not such a message, or JSON cannot represent one of its values.
        ImportError: `wandb` is not installed, or cannot be imported.
    """
    # These modules have no types, because their classes are created when they are imported.
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
    """Returns the error for a record, with a message like those of the native module."""
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
        A row for each step, as from `history_row`.

    Raises:
        PayloadError: A record is not one of wandb, or a value does not have the type that `history_row` needs.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
    """
    return _rows("wandb-history", records)


def history_row(record: bytes, errors: list[PayloadError] | None = None) -> dict[str, Any] | None:
    """Returns the values of one step.

    Args:
        record: The record of a `.wandb` file.
        errors: A value that cannot be read is left out, and its error is appended to this list. Default: `None`: the
            error is raised.

    Returns:
        The values by the names that wandb shows. A value logged as `{"a": {"b": 1}}` becomes `{"a.b": 1}`. wandb adds
        `_step`, which comes first, `_timestamp` (Unix time) and `_runtime`, both in seconds. An integer with more
        digits than Python accepts, usually 4,300, becomes text. A lone surrogate becomes its escape of six
        characters. `None` if this is not a record of the history.

    Raises:
        PayloadError: The record is not a wandb record. Without `errors`, also if a value is not JSON or is nested too
            deeply, or if two values have the same name.
    """
    return RecordDecoder("wandb-history").row(record, errors)


def metrics(records: Iterable[bytes] | str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yields the measurements that wandb made of the machine during the run.

    Args:
        records: The records of a run, or the path of its file.

    Yields:
        A row for each measurement. It has `_timestamp` (Unix time) and `_runtime`, both in seconds, and the values by
        the names that wandb shows, such as `system.cpu` and `system.disk./.usageGB`. It has no `_runtime` if no
        earlier record states when the run started.

    Raises:
        PayloadError: A record is not one of wandb. A value is not JSON or is nested too deeply, or two have the same
            name.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
    """
    return _rows("wandb-metrics", records)


def output(records: Iterable[bytes] | str | PathLike[str]) -> str:
    """Returns the output that a run printed.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        The text of stdout and stderr, in the order in which it was printed. Terminal control characters are left as
        they are. This includes the carriage returns with which a progress bar overwrites itself.

    Raises:
        PayloadError: A record is not one of wandb.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
    """
    decoder = RecordDecoder("wandb-output")
    pieces = (decoder.value(record) for record in _records(records))
    return "".join(piece["text"] for piece in pieces if piece is not None)


def run(records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    """Returns the description of a run: who ran which program, where, when, and how it ended.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        `id`, `name`, `project`, `entity`, `group`, `job_type`, `tags` (a list), `notes`, `state`, `exit_code`,
        `start_time` (a `datetime` in UTC), `host`, `git_commit` and `command`, in this order. A value that is not in
        the records is `None`. `state` is `"finished"`, `"failed"` (the exit code is not 0), or `"unfinished"`. A run
        is unfinished if the records do not say how it ended, because it continues or its process was killed.

    Raises:
        PayloadError: A record is not one of wandb.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
    """
    return _last_row("wandb-run", records)


def summary(records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    """Returns the summary of a run: the contents of `run.summary` at the end of the run, or where the file ends.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        The values by their names, nested as they were.

    Raises:
        PayloadError: A record is not one of wandb, or a value is not JSON or is nested too deeply.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
    """
    return _last_row("wandb-summary", records)


def config(records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    """Returns the configuration of a run, which is the contents of `run.config`. wandb adds the entry `_wandb`.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        The values by their names, nested as they were.

    Raises:
        PayloadError: A record is not one of wandb, or a value is not JSON or is nested too deeply.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
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
    # A reader that is iterated over closes its file at the end.
    return open_log(records) if isinstance(records, str | PathLike) else records
