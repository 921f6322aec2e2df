"""Implements `convert --by-kind`, which makes a table for each kind of entity."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from cordwood._inputs.destinations import check_new_directory, make_directory
from cordwood._native import Reader, entity_kinds
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.schema import MisfitError
from cordwood._tables.table import OnFault, Table
from cordwood._text import quantity
from cordwood.cli._messages import Failure, Status, complain
from cordwood.cli._output import check_new_file
from cordwood.cli._sources import first_stream
from cordwood.cli.convert.logs import SUFFIXES, Logs, Target


def convert_by_kind(options: argparse.Namespace, form: str) -> Status:
    """Writes the tables. Reads all logs twice, first to determine the kinds and their columns."""
    if options.payload != "entity":
        raise ValueError("--by-kind is for entities: --as entity")
    if options.columns or options.limit is not None:
        raise ValueError("--columns and --limit are for one table, not for a table of each kind")
    directory: str = options.by_kind
    suffix = os.path.splitext(directory)[1].lower()
    if suffix in SUFFIXES and not os.path.isdir(directory):
        raise ValueError(
            f"{directory} has the name of a table, and --by-kind makes a directory of them: name a directory, and the "
            f"form of the tables with --to {SUFFIXES[suffix]}"
        )
    check_new_directory(directory, options.sources)
    if stream := first_stream(options.files):
        raise ValueError(f"{stream} can be read only once, and --by-kind reads all files twice")
    logs = Logs(options, form)

    found = _Kinds(options, partial(logs.new_table, None, form="arrow", opens_early=False))
    status = logs.read_all(found).status
    kinds = {kind: target.table for kind, target in found.targets.items()}
    if not logs.firsts:
        return status
    if not kinds:
        complain("no entity was found: there is no table")
        return status
    paths = _paths(directory, kinds, form)
    for path in paths.values():
        check_new_file(path, "table", options.files, overwrite=options.overwrite)
    _check_open_files(len(paths))
    make_directory(directory, next(iter(logs.firsts)))
    with contextlib.ExitStack() as stack:
        written = _Kinds(options)
        for kind, learned in kinds.items():
            table = logs.new_table(logs.columns_of(learned))
            written.targets[kind] = target = stack.enter_context(Target(table, form, paths[kind], options))
            target.sink()
        logs.read_again(written)
        for target in written.targets.values():
            target.write(target.table.rest())
    return status


def _paths(directory: str, kinds: Iterable[str | None], form: str) -> dict[str | None, str]:
    """Returns the path of the table for each kind.

    Raises:
        Failure: Two kinds would share a file, or a file name is too long.
    """
    paths: dict[str | None, str] = {}
    # Some file systems treat names that differ only in case or in Unicode normalization as the same.
    alike: dict[str, str | None] = {}
    for kind in kinds:
        name = f"{_file_name(kind)}.{form}"
        if len(os.fsencode(name)) > _NAME_LEN_MAX:
            raise Failure(f"the kind {kind!r} is too long for the name of a file: {_ADVICE}")
        other = alike.setdefault(unicodedata.normalize("NFC", name.casefold()), kind)
        if other != kind:
            raise Failure(f"the kinds {other!r} and {kind!r} would have the same file on some systems: {_ADVICE}")
        paths[kind] = os.path.join(directory, name)
    return paths


_ADVICE = "convert them to one table, without --by-kind"

_NAME_LEN_MAX = 255
"""The maximum length, in bytes, of a file name on most file systems."""


def _file_name(kind: str | None) -> str:
    """Returns the file name of a kind's table, without the extension. An entity without a key has no kind."""
    # The names `%none` and `%` are unique: in the name of any other kind, each % is followed by two hexadecimal digits.
    if kind is None:
        return "%none"
    return re.sub(r'[/\\:*?"<>|%\x00-\x1f\x7f]|^\.', lambda match: f"%{ord(match[0]):02X}", kind) or "%"


def _check_open_files(count: int) -> None:
    """Checks that `count` tables can be open at the same time.

    Raises:
        Failure: The system does not allow this many open files.
    """
    try:
        import resource
    except ModuleNotFoundError:
        # Windows has no such limit.
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and count + _OTHER_FILES > limit:
        raise Failure(
            f"{quantity(count, 'kind')}, and the table of each is an open file, of which the system allows {limit:,}: "
            f"raise the limit with ulimit -n {count + _OTHER_FILES}, or {_ADVICE}"
        )


_OTHER_FILES = 64
"""The number of open files to reserve for the log, stdin, stdout, stderr and files opened by libraries."""


class _Kinds(Target):
    """The tables of all kinds. `table` receives unreadable records and reports their faults."""

    def __init__(self, options: argparse.Namespace, new_table: Callable[[], Table] | None = None) -> None:
        """Creates an object without tables.

        `new_table` makes the table for each new kind. Such a table determines its columns from its records.
        """
        super().__init__(Table(PAYLOADS["entity"], "arrow", opens_early=False), "", "", options)
        self.targets: dict[str | None, Target] = {}
        self._new_table = new_table

    def read(self, reader: Reader, report: OnFault, **options: Any) -> Iterator[tuple[int, list[Any]]]:
        """Reads a log, and writes each row to the table for its kind."""
        started: set[str | None] = set()
        self.table.start(reader, options["name"])
        for source in reader.record_batches(target_len=options["target_len"], threads=options["threads"]):
            kinds, left_out = entity_kinds(source)
            for _made in self.table.feed(source, report, left_out):
                pass
            for kind, indices in kinds:
                if kind not in self.targets:
                    if self._new_table is None:
                        raise MisfitError(f"the kind {kind!r} was not there when the kinds were found")
                    self.targets[kind] = Target(self._new_table(), "", "", self._options)
                target = self.targets[kind]
                if kind not in started:
                    started.add(kind)
                    target.table.start(reader, options["name"])
                for _, made in target.table.feed(source, report, indices):
                    target.write(made)
            yield len(source), []
