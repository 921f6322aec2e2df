"""The records of `.wandb` files: the logged data of a run of Weights & Biases.

No account, no network and no other package is needed: only `to_dict` needs an installed `wandb`.

`run`, `history`, `summary`, `config`, `metrics` and `output` accept the path of a run, or its records: an open
`cordwood.Reader`, a `cordwood.Follower` of a run in progress, or any other iterable of `bytes`.

    >>> from cordwood.payload import wandb
    >>> for row in wandb.history("run-59kl0f4q.wandb"):  # doctest: +SKIP
    ...     print(row["_step"], row["loss"])
    0 1
    1 0.5
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import Any, TypeAlias, cast

from cordwood._native import decode_wandb
from cordwood._open import open as open_log
from cordwood._optional import imported
from cordwood.errors import PayloadError
from cordwood.payload._error import payload_error
from cordwood.payload._json_parser import DEPTH_MAX, is_too_deep, parsed
from cordwood.types import PayloadReason

__all__ = ["config", "history", "history_row", "metrics", "output", "run", "summary", "to_dict"]

# As `decode_wandb` returns them: names, from the outermost to the value's own, and the value in JSON.
_Items: TypeAlias = list[tuple[tuple[str, ...], str]]
RunFields: TypeAlias = dict[str, dict[str, Any]]
"""The fields that describe a run, by the kinds of the records that have them."""
_LeaveOut: TypeAlias = Callable[[PayloadError], object]


def to_dict(record: bytes) -> dict[str, object]:
    """The message in a record, as JSON values. It needs the package `wandb`: `pip install 'cordwood[wandb]'`.

    Args:
        record: The record of a `.wandb` file.

    Returns:
        Fields by their names in wandb's `.proto` file, with the JSON of protocol buffers: 64-bit integers are strings,
        and a field that has its default value is left out. `unknown_len`, if present, is the number of bytes that the
        installed wandb does not know: a newer one wrote the record.

    Raises:
        PayloadError: The record is not such a message, or a value of it cannot be represented in JSON.
        ImportError: `wandb` is not installed, or cannot be imported.
    """
    # These modules have no types: their classes are created when they are imported.
    message = _imported("wandb.proto.wandb_internal_pb2").Record()
    protobuf, json_format = _imported("google.protobuf.message"), _imported("google.protobuf.json_format")
    try:
        message.ParseFromString(record)
    except protobuf.DecodeError as error:
        raise payload_error(f"not a record of wandb: {error}", record, PayloadReason.BAD_WIRE_TYPE) from error
    record_len = message.ByteSize()
    message.DiscardUnknownFields()
    try:
        out: dict[str, object] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (json_format.Error, ValueError) as error:
        # For example, a time before the year 1 or after the year 9999.
        raise payload_error(f"a value that JSON cannot have: {error}", record, PayloadReason.NON_CANONICAL) from error
    unknown_len = record_len - message.ByteSize()
    return {**out, "unknown_len": unknown_len} if unknown_len else out


def _imported(name: str) -> Any:
    without = "; the logged data of a run is read without it, for example as wandb-history"
    return imported(name, "all fields of a record need", "wandb", without=without)


def history(records: Iterable[bytes] | str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """The values logged with `run.log`, step by step.

    Args:
        records: The records of a run, or the path of its file.

    Yields:
        A row for each step, as from `history_row`.

    Raises:
        PayloadError: A record is not one of wandb, or a value does not have the type that `history_row` needs.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
    """
    for record in _records(records):
        row = history_row(record)
        if row is not None:
            yield row


def history_row(record: bytes, errors: list[PayloadError] | None = None) -> dict[str, Any] | None:
    """The values of one step.

    Args:
        record: The record of a `.wandb` file.
        errors: A value that cannot be read is left out, and its error is appended to this list. Default: `None`: the
            error is raised.

    Returns:
        The values by the names that wandb shows: a value logged as `{"a": {"b": 1}}` is `{"a.b": 1}`. wandb itself
        adds `_step`, which comes first, `_timestamp` (Unix time) and `_runtime`, both in seconds. An integer with more
        digits than Python accepts, usually 4,300, becomes text. `None` if this is not a record of the history.

    Raises:
        PayloadError: The record is not one of wandb. Without `errors`: a value is not JSON or is nested too deeply, or
            two have the same name.
    """
    return history_row_without(record, None if errors is None else errors.append)


def history_row_without(record: bytes, leave_out: _LeaveOut | None) -> dict[str, Any] | None:
    """The same. The error of a value is passed to `leave_out`, not kept: a record can have millions of them."""
    fields = decode_wandb(record, "history")
    if fields is None:
        return None
    row = _row(record, fields["items"], leave_out)
    # In old files, the step is not among the items, but only here.
    if fields["step"] is not None:
        row.setdefault("_step", fields["step"])
    return {"_step": row["_step"], **row} if "_step" in row else row


def metrics(records: Iterable[bytes] | str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """The measurements of wandb itself on the machine during the run.

    Args:
        records: The records of a run, or the path of its file.

    Yields:
        A row for each measurement: `_timestamp` (Unix time) and `_runtime`, both in seconds, and the values by the
        names that wandb shows, such as `system.cpu` and `system.disk./.usageGB`. Without `_runtime` if no earlier
        record says when the run began.

    Raises:
        PayloadError: A record is not one of wandb. A value is not JSON or is nested too deeply, or two have the same
            name.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
    """
    row_of = metrics_rows()
    for record in _records(records):
        row = row_of(record, None)
        if row is not None:
            yield row


def metrics_rows() -> Callable[[bytes, _LeaveOut | None], dict[str, Any] | None]:
    """Returns the function that turns consecutive records of a run into rows. It remembers when the run began."""
    start: int | None = None

    def row_of(record: bytes, leave_out: _LeaveOut | None) -> dict[str, Any] | None:
        nonlocal start
        run = decode_wandb(record, "run")
        if run is not None and run["start_time"] is not None:
            start = run["start_time"]
        fields = decode_wandb(record, "stats")
        if fields is None:
            return None
        row: dict[str, Any] = {}
        if (timestamp := fields["timestamp"]) is not None:
            row["_timestamp"] = timestamp / 1e6
            if start is not None:
                row["_runtime"] = (timestamp - start) / 1e6
        return row | _row(record, fields["items"], leave_out, "system.")

    return row_of


def output(records: Iterable[bytes] | str | PathLike[str]) -> str:
    """The output that a run printed.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        The text of stdout and stderr, in the order in which it was printed. Terminal control characters are left as
        they are, among them the carriage returns with which a progress bar overwrites itself.

    Raises:
        PayloadError: A record is not one of wandb.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
    """
    pieces = (output_piece(record) for record in _records(records))
    return "".join(piece["text"] for piece in pieces if piece is not None)


def output_piece(record: bytes) -> dict[str, Any] | None:
    """A piece of text that was printed at once, to which stream, and when."""
    fields = decode_wandb(record, "output")
    if fields is None:
        return None
    timestamp = fields["timestamp"]
    return {
        "_timestamp": None if timestamp is None else timestamp / 1e6,
        "stream": fields["stream"],
        "text": fields["line"],
    }


def run(records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    """The description of a run: who ran which program, where, when, and how it ended.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        `id`, `name`, `project`, `entity`, `group`, `job_type`, `tags` (a list), `notes`, `state`, `exit_code`,
        `start_time` (a `datetime` in UTC), `host`, `git_commit` and `command`, in this order. A value that is not in
        the records is `None`. `state` is `"finished"`, `"failed"` (the exit code is not 0), or `"unfinished"`: the
        records do not say how the run ended, because it continues, or its process was killed.

    Raises:
        PayloadError: A record is not one of wandb.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
    """
    fields: RunFields = {}
    for record in _records(records):
        take_run_fields(fields, record)
    return run_row(fields)


def take_run_fields(fields: RunFields, record: bytes) -> None:
    """Adds to the fields of a run those of a record that describes the run, its beginning or its end."""
    for kind in ("run", "environment", "exit"):
        found = decode_wandb(record, kind)
        if found is not None:
            # Each record of the kind "run" describes all of it, one of the kind "environment" a part.
            known = fields.get(kind, {}) if kind == "environment" else {}
            fields[kind] = known | {name: value for name, value in found.items() if value not in (None, "", [])}


def run_row(fields: RunFields) -> dict[str, Any]:
    """The description of a run that has these fields, as `run` returns it."""
    about, environment, end = (fields.get(kind, {}) for kind in ("run", "environment", "exit"))
    program: str | None = environment.get("program")
    start = about.get("start_time")
    command = None
    if program is not None:
        # The program may be `-m` and the name of a module.
        parts = program.split(" ", 1) if program.startswith("-m ") else [program]
        command = shlex.join([environment.get("executable", "python"), *parts, *environment.get("args", [])])
    return {
        "id": about.get("run_id"),
        "name": about.get("display_name"),
        **{name: about.get(name) for name in ("project", "entity", "group", "job_type")},
        "tags": about.get("tags", []),
        "notes": about.get("notes"),
        "state": "unfinished" if not end else "failed" if end["exit_code"] else "finished",
        "exit_code": end.get("exit_code"),
        "start_time": None if start is None else _EPOCH + timedelta(microseconds=start),
        "host": about.get("host") or environment.get("host"),
        "git_commit": about.get("git_commit") or environment.get("git_commit"),
        "command": command,
    }


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def summary(records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    """The summary of a run: the contents of `run.summary` at the end of the run, or where the file ends.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        The values by their names, nested as they were.

    Raises:
        PayloadError: A record is not one of wandb, or a value is not JSON or is nested too deeply.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
    """
    return _changed(records, "summary")


def config(records: Iterable[bytes] | str | PathLike[str]) -> dict[str, Any]:
    """The configuration of a run: the contents of `run.config`. wandb itself adds the entry `_wandb`.

    Args:
        records: The records of the run, or the path of its file.

    Returns:
        The values by their names, nested as they were.

    Raises:
        PayloadError: A record is not one of wandb, or a value is not JSON or is nested too deeply.
        CorruptionError: There is damage in the file. `cordwood.open(path, on_corruption="salvage")`, in place of the
            path, leaves it out.
    """
    return _changed(records, "config")


def _changed(records: Iterable[bytes] | str | PathLike[str], kind: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for record in _records(records):
        apply_change(values, record, kind, None)
    return values


def change_of(record: bytes, kind: str) -> dict[str, Any] | None:
    """The changes of a record: the new values by their names, as in a row of the history, and the removed names."""
    change = decode_wandb(record, kind)
    if change is None:
        return None
    removed = [".".join(path) for path, _ in change["remove"]]
    return {"update": _row(record, change["update"], None), "remove": removed}


def apply_change(values: dict[str, Any], record: bytes, kind: str, leave_out: _LeaveOut | None) -> None:
    """Changes the values of a `"summary"` or a `"config"` as a record says, if it is of that kind."""
    change = decode_wandb(record, kind)
    if change is None:
        return
    for path, text in change["update"]:
        *folders, name = path
        try:
            value = _value(record, ".".join(path), text)
            if len(path) > DEPTH_MAX:
                raise _too_deep(record, ".".join(path))
        except PayloadError as error:
            _leave(error, leave_out)
            continue
        folder = values
        for key in folders:
            # A value that is not a dictionary gives way.
            if not isinstance(folder.get(key), dict):
                folder[key] = {}
            folder = folder[key]
        folder[name] = value
    for (*folders, name), _ in change["remove"]:
        folder = values
        for key in folders:
            inside = folder.get(key)
            folder = cast("dict[str, Any]", inside) if isinstance(inside, dict) else {}
        folder.pop(name, None)


def _records(records: Iterable[bytes] | str | PathLike[str]) -> Iterable[bytes]:
    if isinstance(records, bytes | bytearray | memoryview):
        raise TypeError("the records of a run are needed, not bytes: cordwood.open(...), or the path of the file")
    # A reader that is iterated over closes its file at the end.
    return open_log(records) if isinstance(records, str | PathLike) else records


def _row(record: bytes, items: _Items, leave_out: _LeaveOut | None, prefix: str = "") -> dict[str, Any]:
    """Values by their names. With a prefix, dictionaries are flattened, as wandb does with metrics."""
    row: dict[str, Any] = {}
    for path, text in items:
        name = prefix + ".".join(path)
        try:
            value = _value(record, name, text)
            for leaf, inside in _leaves(name, value) if prefix else [(name, value)]:
                if leaf in row:
                    raise payload_error(f"two values have the name {leaf!r}", record, PayloadReason.NON_CANONICAL)
                row[leaf] = inside
        except PayloadError as error:
            _leave(error, leave_out)
    return row


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inside in cast("dict[str, Any]", value).items():
            yield from _leaves(f"{name}.{key}", inside)
    else:
        yield name, value


def _leave(error: PayloadError, leave_out: _LeaveOut | None) -> None:
    if leave_out is None:
        raise error
    leave_out(error)


def _value(record: bytes, name: str, text: str) -> Any:
    try:
        value = parsed(text)
    except RecursionError as error:
        raise _too_deep(record, name) from error
    except ValueError as error:
        raise payload_error(
            f"the value of {name!r} is not JSON: {error}", record, PayloadReason.NON_CANONICAL
        ) from error
    if is_too_deep(text):
        raise _too_deep(record, name)
    return value


def _too_deep(record: bytes, name: str) -> PayloadError:
    return payload_error(f"the value of {name!r} has more than {DEPTH_MAX} levels", record, PayloadReason.TOO_DEEP)
