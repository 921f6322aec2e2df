"""Writes the table of `convert` as text, Parquet or Arrow IPC."""

from __future__ import annotations

import argparse
import contextlib
from collections import deque
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from cordwood._native import Reader
from cordwood._optional import imported
from cordwood._tables.table import Report, Table
from cordwood.cli._new_files import new_file
from cordwood.cli._output import Output

SUFFIXES = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
"""Maps the suffix of a destination to the form of the table."""

TABLE_FORMATS = ("ndjson", "csv", "parquet", "arrow")

BINARY_FORMATS = ("parquet", "arrow")
"""The forms that aren't text. They require pyarrow."""


def check_installed(form: str) -> None:
    """Checks that the package required for the format is installed, and imports it.

    Loading a library may kill the process if memory is low, so call this before a table is started.

    Raises:
        ImportError: The package is not installed or cannot be imported.
    """
    if form in BINARY_FORMATS:
        imported("pyarrow.parquet" if form == "parquet" else "pyarrow", f"{form} needs", "arrow")


class Target(contextlib.ExitStack):
    """A table and its file, which is opened for the first output and gets its name when complete."""

    def __init__(self, table: Table, form: str, path: str, options: argparse.Namespace) -> None:
        super().__init__()
        self.table = table
        self._form = form
        self._path = path
        self._options = options
        self._sink: Output | _ArrowSink | None = None

    def read(self, reader: Reader, report: Report, **options: Any) -> Iterator[tuple[int, list[Any]]]:
        """Reads a log. Accepts the same arguments as `Table.read`, and yields the same values."""
        return self.table.read(reader, report, **options)

    def write(self, made: Iterable[Any]) -> None:
        """Writes the output of the table."""
        for some in made:
            self.sink().write(some)

    def sink(self) -> Output | _ArrowSink:
        """Returns the file, opening it if necessary.

        Raises:
            SameNamesError: Two columns would have the same name in Arrow.
        """
        if self._sink is None:
            options = self._options
            file = self.enter_context(new_file(self._path, options.files, overwrite=options.overwrite))
            if self._form in BINARY_FORMATS:
                self._sink = _ArrowSink(self._form, file, self.table.schema, is_stream=self._path == "-")
                self.callback(self._sink.close)
            else:
                self._sink = file
        return self._sink


class _ArrowSink:
    """Writes Parquet or one of Arrow's two IPC formats. A batch of rows becomes a row group or a record batch.

    A second thread writes batches to a file while later batches are made. The threads can run at the same time, because
    pyarrow releases the interpreter lock. A stream is written in the main thread, because Ctrl-C would not interrupt
    any other thread while it waits for a pipe's reader. Arrow output to a stream is in Arrow's streaming format.
    """

    def __init__(self, form: str, file: Output, schema: Any, *, is_stream: bool) -> None:
        self._file = file
        self._form = "stream" if form == "arrow" and is_stream else form
        self._schema = schema
        self._threads: Any = None if is_stream else import_module("concurrent.futures").ThreadPoolExecutor(1)
        # The batches being written or waiting to be written.
        self._pending: deque[Any] = deque()
        self._writer: Any = None

    def write(self, made: Any) -> None:
        """Writes a batch. May raise an earlier batch's error."""
        self._wait(_PENDING_MAX - 1)
        if self._writer is None:
            self._writer = self._open(made)
        if self._threads:
            earlier = self._pending[-1] if self._pending else None
            self._pending.append(self._threads.submit(self._write_after, earlier, made))
        else:
            self._writer.write_batch(made)

    def _write_after(self, earlier: Any, batch: Any) -> None:
        """Writes a batch in the second thread, or raises the error of an earlier batch that failed."""
        if earlier is not None:
            earlier.result()
        self._writer.write_batch(batch)

    def _open(self, first: Any = None) -> Any:
        """Opens the writer of the table. `first` is the first batch, if the table has one."""
        if self._form == "parquet":
            # The first batch determines which columns get dictionaries, unless it has too few rows.
            dictionaries: bool | list[str] = True
            if first is not None and len(first) >= _ROWS_MIN:
                dictionaries = [path for path, values in _leaves(first) if _repeats(values)]
            return import_module("pyarrow.parquet").ParquetWriter(self._file, self._schema, use_dictionary=dictionaries)
        ipc = import_module("pyarrow").ipc
        return (ipc.new_stream if self._form == "stream" else ipc.new_file)(self._file, self._schema)

    def _wait(self, count: int = 0) -> None:
        """Waits until no more than `count` batches remain to be written."""
        while len(self._pending) > count:
            self._pending.popleft().result()

    def close(self) -> None:
        """Writes the file's end, even if the file is incomplete and will be removed. The file stays open."""
        try:
            self._wait()
        finally:
            if self._threads:
                self._threads.shutdown()
            if self._writer is None:
                self._writer = self._open()
            self._writer.close()


_PENDING_MAX = 2
"""The maximum number of batches being written or waiting to be written."""

_ROWS_MIN = 1_000
"""With fewer rows than this, it is unclear whether a column's values repeat."""


def _leaves(batch: Any) -> Iterator[tuple[str, Any]]:
    """Yields the path and the values of each Parquet column in a batch."""
    arrays = list(zip(batch.schema.names, batch.columns, strict=True))
    types = import_module("pyarrow").types
    while arrays:
        path, array = arrays.pop()
        if types.is_struct(array.type):
            names = [f"{path}.{field.name}" for field in array.type]
            arrays.extend(zip(names, array.flatten(), strict=True))
        elif types.is_list(array.type):
            arrays.append((f"{path}.list.element", array.flatten()))
        else:
            yield path, array


def _repeats(values: Any) -> bool:
    """Checks whether values repeat. If they do, a dictionary makes the column smaller at no cost in speed."""
    count: int = len(values) - values.null_count
    distinct_count: int = import_module("pyarrow.compute").count_distinct(values).as_py()
    return distinct_count * 2 <= count
