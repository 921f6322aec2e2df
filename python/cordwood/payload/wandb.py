"""The records of `.wandb` files: what a run of Weights & Biases has logged.

They are protocol buffers, `wandb_internal.Record`. It takes an installed `wandb`, any version that has
`wandb.proto.wandb_internal_pb2`, to read them: `pip install 'cordwood[wandb]'`. No account and no network is needed.

`history`, `summary` and `config` take the path of a run, or its records: an open `cordwood.Reader`, a
`cordwood.Follower` of a run that goes on, or any other iterable of `bytes`.

    >>> from cordwood.payload import wandb
    >>> for row in wandb.history("run-59kl0f4q.wandb"):  # doctest: +SKIP
    ...     print(row["_step"], row["loss"])
    0 1
    1 0.5
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from os import PathLike
from typing import Any, cast

from cordwood._native import Reader
from cordwood.errors import PayloadError
from cordwood.types import PayloadReason

__all__ = ["config", "decode", "history", "history_row", "summary", "to_dict"]


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        text = f"the records of .wandb files need the package wandb: pip install 'cordwood[wandb]' ({error})"
        raise ModuleNotFoundError(text, name=error.name) from error


# They have no types: their classes are made when they are imported.
_protobuf = _imported("google.protobuf.message")
_json_format = _imported("google.protobuf.json_format")
_wandb = _imported("wandb.proto.wandb_internal_pb2")


def decode(record: bytes) -> Any:
    """The message in a record.

    Args:
        record: The record of a `.wandb` file.

    Returns:
        A `wandb.proto.wandb_internal_pb2.Record`.

    Raises:
        PayloadError: The record is no such message.
    """
    message = _wandb.Record()
    try:
        message.ParseFromString(record)
    except _protobuf.DecodeError as error:
        raise _error(record, f"not a record of wandb: {error}", PayloadReason.BAD_WIRE_TYPE) from error
    return message


def to_dict(record: bytes) -> dict[str, object]:
    """The message in a record, as JSON has it.

    Args:
        record: The record of a `.wandb` file.

    Returns:
        Fields by their names in wandb's `.proto` file, with the JSON of protocol buffers: 64-bit integers are strings,
        and a field that has its default value is left out. `unknown_len`, if it is there, says how many bytes the
        installed wandb does not know what to do with: a newer one wrote the record.

    Raises:
        PayloadError: The record is no such message, or something in it has no form in JSON.
    """
    message = decode(record)
    record_len = message.ByteSize()
    message.DiscardUnknownFields()
    try:
        out: dict[str, object] = _json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (_json_format.Error, ValueError) as error:
        # For example, a time before the year 1 or after the year 9999.
        raise _error(record, f"a value that JSON cannot have: {error}", PayloadReason.NON_CANONICAL) from error
    unknown_len = record_len - message.ByteSize()
    return {**out, "unknown_len": unknown_len} if unknown_len else out


def history(records: Iterable[bytes] | str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """What was logged with `run.log`, step by step.

    Args:
        records: The records of a run, or the path of its file.

    Yields:
        A row for each step, as from `history_row`.

    Raises:
        PayloadError: A record is not a wandb message.
        CorruptionError: The records come from a reader, and there is damage in the file.
    """
    for record in _records(records):
        row = history_row(record)
        if row is not None:
            yield row


def history_row(record: bytes, errors: list[PayloadError] | None = None) -> dict[str, Any] | None:
    """The values of one step.

    Args:
        record: The record of a `.wandb` file.
        errors: A value that cannot be read is left out, and what is wrong with it comes into this list. Default:
            `None`, it is raised.

    Returns:
        The values by the names that wandb shows: what was logged as `{"a": {"b": 1}}` is `{"a.b": 1}`. wandb itself
        adds `_step`, `_timestamp` (Unix time) and `_runtime`, both in seconds. An integer of more digits than Python
        takes, 4,300 as a rule, is a text. `None` if this is no record of the history.

    Raises:
        PayloadError: The record is not a wandb message. Without `errors`: a value is not JSON or nested too deep, or
            two have the same name.
    """
    return history_row_without(record, None if errors is None else errors.append)


def history_row_without(record: bytes, leave_out: Callable[[PayloadError], object] | None) -> dict[str, Any] | None:
    """The same. What is wrong with a value is handed to `leave_out`, not kept: a record can have millions of them."""
    message = decode(record)
    if message.WhichOneof("record_type") != "history":
        return None
    row: dict[str, Any] = {}
    for item in message.history.item:
        name = ".".join(_path(item))
        try:
            if name in row:
                raise _error(record, f"two values have the name {name!r}", PayloadReason.NON_CANONICAL)
            row[name] = _value(record, item)
        except PayloadError as error:
            if leave_out is None:
                raise
            leave_out(error)
    # Before there were steps in the items, they were only here.
    if message.history.HasField("step"):
        row.setdefault("_step", message.history.step.num)
    return row


def summary(records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    """The summary of a run: what `run.summary` had at the end, or where the file ends.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        The values by their names, nested as they were.

    Raises:
        PayloadError: A record is not a wandb message.
        CorruptionError: The records come from a reader, and there is damage in the file.
    """
    out: dict[str, Any] = {}
    for record in _records(records):
        message = decode(record)
        if message.WhichOneof("record_type") == "summary":
            _apply(out, record, message.summary)
    return out


def config(records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    """The configuration of a run: what `run.config` had. `_wandb` in it is wandb's own.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        The values by their names, nested as they were.

    Raises:
        PayloadError: A record is not a wandb message.
        CorruptionError: The records come from a reader, and there is damage in the file.
    """
    out: dict[str, Any] = {}
    for record in _records(records):
        message = decode(record)
        match message.WhichOneof("record_type"):
            case "run":
                _apply(out, record, message.run.config)
            case "config":
                _apply(out, record, message.config)
            case _:
                pass
    return out


def _records(records: Iterable[bytes] | str | PathLike[str]) -> Iterable[bytes]:
    if isinstance(records, bytes | bytearray | memoryview):
        raise TypeError("the records of a run are needed, not bytes: cordwood.open(...), or the path of the file")
    # A reader that is iterated over closes its file at the end.
    return Reader(records) if isinstance(records, str | PathLike) else records


def _apply(values: dict[str, Any], record: bytes, change: Any) -> None:
    """Changes a tree of values as a `SummaryRecord` or a `ConfigRecord` says: their items have the same fields."""
    for item in change.update:
        *folders, name = _path(item)
        folder = values
        for key in folders:
            # A value that was none of several gives way.
            if not isinstance(folder.get(key), dict):
                folder[key] = {}
            folder = folder[key]
        folder[name] = _value(record, item)
    for item in change.remove:
        *folders, name = _path(item)
        folder = values
        for key in folders:
            inside = folder.get(key)
            folder = cast("dict[str, Any]", inside) if isinstance(inside, dict) else {}
        folder.pop(name, None)


def _path(item: Any) -> list[str]:
    return list(item.nested_key) or [item.key]


# As many levels as protocol buffers themselves allow. Python is sure to write so many back.
_DEPTH_MAX = 100


def _value(record: bytes, item: Any) -> Any:
    name = ".".join(_path(item))
    try:
        value = json.loads(item.value_json, parse_int=_int)
    except RecursionError as error:
        raise _too_deep(record, name) from error
    except ValueError as error:
        raise _error(record, f"the value of {name!r} is not JSON: {error}", PayloadReason.NON_CANONICAL) from error
    if _is_deeper(value, _DEPTH_MAX):
        raise _too_deep(record, name)
    return value


def _int(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text


def _is_deeper(value: Any, depth_max: int) -> bool:
    # The arrays and objects of one level after the other: nothing here calls itself.
    level = [value]
    for _ in range(depth_max):
        level = [item for value in level for item in _items(value) if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("Iterable[Any]", value) if isinstance(value, list) else ()


def _too_deep(record: bytes, name: str) -> PayloadError:
    return _error(record, f"the value of {name!r} has more than {_DEPTH_MAX} levels", PayloadReason.TOO_DEEP)


def _error(record: bytes, message: str, reason: PayloadReason) -> PayloadError:
    message = f"{message} ({len(record)} bytes at offset 0 of the payload)"
    return PayloadError(message, offset=0, length=len(record), reason=reason)
