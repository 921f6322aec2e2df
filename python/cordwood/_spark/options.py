"""Parses the options that Spark passes as text for `spark.read.format("cordwood")` and similar calls."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, cast

from cordwood._native import Reader
from cordwood._tables.payloads import PAYLOADS
from cordwood._text import local_path
from cordwood.types import BLOCK_LEN
from cordwood.typing import DecoderName, DialectName

PARTITION_LEN = 128 << 20
"""The default of `spark.sql.files.maxPartitionBytes`, which Spark uses for its own file formats."""


class Options(NamedTuple):
    """The options of a job that reads logs.

    Attributes:
        paths: The arguments of `load`: files, directories, patterns and URLs, as absolute paths.
        table: The kind of rows: `"records"`, `"skipped"` (the regions that readers skip) or `"left_out"` (the records
            that aren't of the kind given by `decode`).
        decode: The contents of the records, as in `cordwood.scan`.
        on_corruption: How to treat damage.
        partition_len: The length of a partition in bytes.
        log: The options `dialect`, `log_number` and `compression`, as in `cordwood.plan_splits`.
        max_files: The maximum number of logs in a batch of a stream.
        storage_options: The options fsspec passes to the file systems of URLs.
        fails_on_data_loss: Whether a stream fails if a log was pruned, truncated or replaced.
    """

    paths: tuple[str, ...]
    table: Literal["records", "skipped", "left_out"] = "records"
    decode: DecoderName | None = None
    on_corruption: Literal["raise", "skip", "salvage"] = "raise"
    partition_len: int = PARTITION_LEN
    log: Mapping[str, Any] = {}
    max_files: int | None = None
    fails_on_data_loss: bool = True
    storage_options: Mapping[str, Any] = {}


def options_of(options: Mapping[str, str], *, is_stream: bool = False) -> Options:
    """Returns the options of a job that reads a table or a stream.

    Raises:
        ValueError: An option is unknown or has an invalid value.
    """
    values = _checked(options, _READ)
    log = {name: values.pop(name) for name in _LOG if name in values}
    given = {_FIELDS.get(name, name): value for name, value in values.items()}
    found = Options(paths_of(options), **given, log=log)
    # Creating a reader raises an error for an invalid value.
    Reader(b"", on_corruption=found.on_corruption, **log).close()
    if found.table == "skipped" and (found.decode or found.on_corruption != "raise" or is_stream):
        raise ValueError("the table of skipped regions is about whole logs: no decode, no on_corruption, no stream")
    if found.table == "left_out" and (not found.decode or found.on_corruption != "raise"):
        raise ValueError("the table left_out has the records that decode leaves out: decode, and no on_corruption")
    policies = ("raise", "skip") if is_stream else ("raise", "skip", "salvage")
    if found.on_corruption not in policies:
        raise ValueError(f"on_corruption must be one of {_listed(policies)}, not {found.on_corruption!r}")
    if is_stream and found.decode:
        raise ValueError("a stream has no decode: its columns would change with its records")
    return found


def dialect_of(options: Mapping[str, str]) -> DialectName:
    """Returns the dialect of the logs a job writes.

    Raises:
        ValueError: An option is unknown, or jobs cannot write logs in the given dialect.
    """
    dialect: DialectName = _checked(options, _WRITE).get("dialect", "leveldb")
    return dialect


def paths_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the paths and URLs of a job.

    Raises:
        ValueError: The job doesn't have a path.
    """
    paths = json.loads(options["paths"]) if "paths" in options else [options["path"]] if "path" in options else []
    if not paths:
        raise ValueError(f"load and save need the path of a log or of a directory; {_NO_TABLE}")
    # Spark also passes paths of the form file:/directory, which are not URLs.
    names = (path.removeprefix("file:") if "://" not in path else path for path in paths)
    # Workers run in different working directories, so the paths must be absolute.
    return tuple(name if (local := local_path(name)) is None else os.path.abspath(local) for name in names)


def _checked(options: Mapping[str, str], known: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in options.items():
        if name in _OF_SPARK:
            continue
        if name == "owner":
            raise ValueError(_NO_TABLE)
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


def _at_least(least: int, unit: str = "") -> Callable[[str], int]:
    def chosen(text: str) -> int:
        if (number := int(text)) < least:
            raise ValueError(f"it must be at least {least}{unit}")
        return number

    return chosen


def _object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it must be an object of JSON")  # noqa: TRY004 - the text of an option has no type.
    return cast("dict[str, Any]", found)


_OF_SPARK = {"path", "paths", "checkpointlocation", "queryname"}
# Spark passes an owner when a table is created, but no options at all when it is read.
_NO_TABLE = (
    "Spark keeps no path for a table in its catalog: CREATE TEMPORARY VIEW name USING cordwood OPTIONS (path '...')"
)
_LOG: dict[str, Callable[[str], Any]] = {"dialect": str, "log_number": int, "compression": str}
_READ: dict[str, Callable[[str], Any]] = {
    "table": _one_of("records", "skipped", "left_out"),
    "decode": _one_of(*PAYLOADS),
    "on_corruption": str,
    "partition_len": _at_least(BLOCK_LEN, " bytes, a block"),
    "storage_options": _object,
    **_LOG,
    # The options for streams, which Spark also passes when it requests the columns.
    "maxfilespertrigger": _at_least(1),
    "failondataloss": lambda text: _one_of("true", "false")(text) == "true",
}
_FIELDS = {"maxfilespertrigger": "max_files", "failondataloss": "fails_on_data_loss"}
_WRITE = {"dialect": _one_of("leveldb", "packed")}
