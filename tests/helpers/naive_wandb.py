"""The rows of the records of a run, from wandb's own messages: the naive counterpart of `RecordDecoder`.

Faults of values are left out, and their reasons are appended to a list.
"""

import io
import shlex
from datetime import UTC

from naive_json import DEPTH_MAX, NaiveError, refuse, value_of_run
from wandb.proto.wandb_internal_pb2 import EnvironmentRecord, RunRecord

from cordwood.types import PayloadReason


def history_rows(messages, reasons):
    for message in messages:
        if message.HasField("history"):
            row = _row(message.history.item, reasons)
            if message.history.HasField("step"):
                row.setdefault("_step", message.history.step.num)
            yield {"_step": row["_step"], **row} if "_step" in row else row


def metrics_rows(messages, reasons):
    start = None
    for message in messages:
        if message.HasField("run") and message.run.HasField("start_time"):
            start = message.run.start_time.ToMicroseconds()
        if message.HasField("stats"):
            row = {}
            if message.stats.HasField("timestamp"):
                now = message.stats.timestamp.ToMicroseconds()
                row["_timestamp"] = now / 1e6
                if start is not None:
                    row["_runtime"] = (now - start) / 1e6
            yield row | _row(message.stats.item, reasons, "system.")


def changes(messages, kind, reasons):
    """The values of a `"summary"` or a `"config"` after all changes."""
    values = {}
    for message in messages:
        change = _change_of(message, kind)
        if change is not None:
            _apply(values, change, reasons)
    return values


def change_of(message, kind):
    """The change in a message: the new values by their names, and the names that are removed."""
    change = _change_of(message, kind)
    if change is None:
        return None
    reasons = []
    update = _row(change.update, reasons)
    if reasons:
        refuse(reasons[0])
    return {"update": update, "remove": [".".join(_path(item)) for item in change.remove]}


def _change_of(message, kind):
    if message.HasField(kind):
        return getattr(message, kind)
    if kind == "config" and message.HasField("run") and message.run.HasField("config"):
        return message.run.config
    return None


def _apply(values, change, reasons):
    for item in change.update:
        path = _path(item)
        *directories, name = path
        try:
            value = value_of_run(item.value_json)
            if len(path) > DEPTH_MAX:
                refuse(PayloadReason.TOO_DEEP)
        except NaiveError as error:
            reasons.append(error.reason)
            continue
        directory = values
        for key in directories:
            # A value that is not a dictionary gives way.
            if not isinstance(directory.get(key), dict):
                directory[key] = {}
            directory = directory[key]
        directory[name] = value
    for item in change.remove:
        *directories, name = _path(item)
        directory = values
        for key in directories:
            inside = directory.get(key)
            directory = inside if isinstance(inside, dict) else {}
        directory.pop(name, None)


def run_row(messages):
    about, environment, end = RunRecord(), EnvironmentRecord(), None
    for message in messages:
        if message.HasField("run"):
            about = message.run
        elif message.HasField("environment"):
            part = message.environment
            for name in ("executable", "program", "host"):
                setattr(environment, name, getattr(part, name) or getattr(environment, name))
            environment.git.commit = part.git.commit or environment.git.commit
            if part.args:
                environment.args[:] = part.args
        elif message.HasField("exit"):
            end = message.exit.exit_code
    command = None
    if program := environment.program:
        parts = program.split(" ", 1) if program.startswith("-m ") else [program]
        command = shlex.join([environment.executable or "python", *parts, *environment.args])
    return {
        "id": about.run_id or None,
        "name": about.display_name or None,
        "project": about.project or None,
        "entity": about.entity or None,
        "group": about.run_group or None,
        "job_type": about.job_type or None,
        "tags": list(about.tags),
        "notes": about.notes or None,
        "state": "unfinished" if end is None else "failed" if end else "finished",
        "exit_code": end,
        "start_time": about.start_time.ToDatetime(UTC) if about.HasField("start_time") else None,
        "host": about.host or environment.host or None,
        "git_commit": about.git.commit or environment.git.commit or None,
        "command": command,
    }


def output_pieces(messages):
    """The printed texts: their time, their stream and the text."""
    for message in messages:
        for kind in ("output", "output_raw"):
            if message.HasField(kind):
                output = getattr(message, kind)
                time = output.timestamp.ToMicroseconds() / 1e6 if output.HasField("timestamp") else None
                yield {"_timestamp": time, "stream": "stdout" if output.output_type else "stderr", "text": output.line}


def output_lines(messages):
    """The printed lines, each with the time of its start. The end of the log also ends a line."""
    unfinished = {}

    def line(stream):
        time, parts = unfinished.pop(stream)
        return {"_timestamp": time, "stream": stream, "line": "".join(parts).removesuffix("\n")}

    for piece in output_pieces(messages):
        # Only a newline ends a line: a carriage return overwrites it.
        for part in io.StringIO(piece["text"], newline="\n"):
            unfinished.setdefault(piece["stream"], (piece["_timestamp"], []))[1].append(part)
            if part.endswith("\n"):
                yield line(piece["stream"])
    yield from [line(stream) for stream in list(unfinished)]


def _path(item):
    # An item of a measurement has no path.
    return list(getattr(item, "nested_key", ())) or [item.key]


def _row(items, reasons, prefix=""):
    """Values by their names. With a prefix, dictionaries are flattened, as wandb does with metrics."""
    row = {}
    for item in items:
        name = prefix + ".".join(_path(item))
        try:
            value = value_of_run(item.value_json)
            for leaf, inside in _leaves(name, value) if prefix else [(name, value)]:
                if leaf in row:
                    refuse(PayloadReason.NON_CANONICAL)
                row[leaf] = inside
        except NaiveError as error:
            reasons.append(error.reason)
    return row


def _leaves(name, value):
    if not isinstance(value, dict):
        return [(name, value)]
    return [leaf for key, inside in value.items() for leaf in _leaves(f"{name}.{key}", inside)]
