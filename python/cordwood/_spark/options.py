"""The options of `spark.read.format("cordwood")` and its like, which Spark passes as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from cordwood._native import Reader
from cordwood._remote import local_path
from cordwood._tables.payloads import PAYLOADS
from cordwood.types import BLOCK_LEN
from cordwood.typing import DecoderName, DialectName

PARTITION_LEN = 128 << 20
"""As for Spark's own files: `spark.sql.files.maxPartitionBytes`."""


class Options(NamedTuple):
    """The options of a job that reads.

    Attributes:
        paths: The arguments of `load`: files, folders, patterns and URLs.
        table: The rows: `"records"`, or `"skipped"` for the regions that readers skip.
        decode: The contents of the records, as for `cordwood.scan`.
        on_corruption: The treatment of damage.
        partition_len: Bytes in a partition.
        log: `dialect`, `log_number` and `compression`, as for `cordwood.plan_splits`.
    """

    paths: tuple[str, ...]
    table: Literal["records", "skipped"] = "records"
    decode: DecoderName | None = None
    on_corruption: Literal["raise", "skip", "salvage"] = "raise"
    partition_len: int = PARTITION_LEN
    log: Mapping[str, Any] = {}


def options_of(options: Mapping[str, str], *, is_stream: bool = False) -> Options:
    """The options of a job that reads a table, or a stream.

    Raises:
        ValueError: There is no such option, or it has an invalid value.
    """
    values = _checked(options, _READ)
    log = {name: values[name] for name in _LOG if name in values}
    given = {name: value for name, value in values.items() if name not in _LOG}
    found = Options(paths_of(options), **given, log=log)
    # Refuses values that no reader would accept.
    Reader(b"", on_corruption=found.on_corruption, **log).close()
    if found.table == "skipped" and (found.decode or found.on_corruption != "raise" or is_stream):
        raise ValueError("the table of skipped regions is about whole logs: no decode, no on_corruption, no stream")
    policies = ("raise", "skip") if is_stream else ("raise", "skip", "salvage")
    if found.on_corruption not in policies:
        raise ValueError(f"on_corruption must be one of {_listed(policies)}, not {found.on_corruption!r}")
    if is_stream and found.decode:
        raise ValueError("a stream has no decode: its columns would change with its records")
    return found


def dialect_of(options: Mapping[str, str]) -> DialectName:
    """The dialect of the logs that a job writes.

    Raises:
        ValueError: There is no such option, or a log of this dialect cannot be written by a job.
    """
    dialect: DialectName = _checked(options, _WRITE).get("dialect", "leveldb")
    return dialect


def paths_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """The paths and URLs of a job.

    Raises:
        ValueError: There is none.
    """
    paths = json.loads(options["paths"]) if "paths" in options else [options["path"]] if "path" in options else []
    if not paths:
        raise ValueError("load and save need the path of a log or of a folder")
    # Spark also writes file:/folder, which is no URL.
    names = (path.removeprefix("file:") if path.startswith("file:/") and "://" not in path else path for path in paths)
    return tuple(local_path(name) or name for name in names)


def _checked(options: Mapping[str, str], known: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in options.items():
        if name in _OF_SPARK:
            continue
        if name not in known:
            raise ValueError(f"there is no option {name!r}: the options are {_listed(known)}")
        try:
            values[name] = known[name](text)
        except ValueError as error:
            raise ValueError(f"{name} is {text!r}: {error}") from error
    return values


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names))


def _one_of(*names: str) -> Callable[[str], str]:
    def chosen(text: str) -> str:
        if text not in names:
            raise ValueError(f"it must be one of {_listed(names)}")
        return text

    return chosen


def _partition_len(text: str) -> int:
    if (length := int(text)) < BLOCK_LEN:
        raise ValueError(f"it must be at least {BLOCK_LEN} bytes, a block")
    return length


_OF_SPARK = {"path", "paths", "checkpointlocation", "queryname"}
_LOG: dict[str, Callable[[str], Any]] = {"dialect": str, "log_number": int, "compression": str}
_READ: dict[str, Callable[[str], Any]] = {
    "table": _one_of("records", "skipped"),
    "decode": _one_of(*PAYLOADS),
    "on_corruption": str,
    "partition_len": _partition_len,
    **_LOG,
}
_WRITE = {"dialect": _one_of("leveldb", "packed")}
