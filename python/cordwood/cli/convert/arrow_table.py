"""The tables of `convert` that pyarrow writes."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Generator, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cordwood._tables.columns import Batches
from cordwood._tables.schema import ColumnType, SameNamesError
from cordwood.cli._messages import Failure

if TYPE_CHECKING:
    from cordwood._tables.columns import Columns, Records
    from cordwood._tables.payloads import Payload
    from cordwood.cli._output import Output


class ArrowTable:
    """Parquet, or one of Arrow's two IPC formats. A batch of rows is a row group, or a record batch.

    Batches are written to a file in another thread while the next are made: pyarrow leaves the interpreter free for
    both. A stream is written in the main thread, since Ctrl-C ends no other one that waits for the reader of a pipe.
    """

    def __init__(
        self,
        form: str,
        file: Output,
        payload: Payload,
        columns: dict[str, ColumnType],
        *,
        is_stream: bool,
        are_chosen: bool = False,
    ) -> None:
        self.takes_records: bool = payload.is_native
        with _without_same_names():
            self._batches = Batches(payload, columns, are_chosen=are_chosen)
        self._threads: Any = None if is_stream else import_module("concurrent.futures").ThreadPoolExecutor(1)
        # The batches that are being written, or wait for it.
        self._pending: deque[Any] = deque()
        self._form = "stream" if form == "arrow" and is_stream else form
        self._file = file
        self._writer: Any = None

    def write(self, records: Records) -> int:
        """Writes the rows of records. Returns how many there are."""
        count = 0
        for batch in self.batches(records):
            self.write_batch(batch)
            count += len(batch)
        return count

    def batches(self, records: Records, found: Columns | None = None) -> Iterator[Any]:
        """The rows of records in batches. If `found` is given, it learns from them.

        Raises:
            GrownError: With `found`: the table needs other columns than it has.
        """
        with _without_same_names():
            yield from self._batches.of(records, found)

    def write_batch(self, batch: Any) -> None:
        """Writes a batch. The fault of an earlier one may be raised."""
        self._wait(_PENDING_MAX - 1)
        if self._writer is None:
            self._writer = self._open(batch)
        if self._threads:
            earlier = self._pending[-1] if self._pending else None
            self._pending.append(self._threads.submit(self._write_after, earlier, batch))
        else:
            self._writer.write_batch(batch)

    def _write_after(self, earlier: Any, batch: Any) -> None:
        """Writes a batch in the other thread. The fault of the earlier one is raised: no batch is written after it."""
        if earlier is not None:
            earlier.result()
        self._writer.write_batch(batch)

    def _open(self, first: Any = None) -> Any:
        """Opens the writer of the table, whose first batch, if any, is `first`."""
        schema = self._batches.schema
        if self._form == "parquet":
            # The first batch decides for all; a batch of a few rows says too little.
            dictionaries: bool | list[str] = True
            if first is not None and len(first) >= _ROWS_MIN:
                dictionaries = [path for path, values in _leaves(first) if _repeats(values)]
            return import_module("pyarrow.parquet").ParquetWriter(self._file, schema, use_dictionary=dictionaries)
        ipc = import_module("pyarrow").ipc
        return (ipc.new_stream if self._form == "stream" else ipc.new_file)(self._file, schema)

    def _wait(self, count: int = 0) -> None:
        """Waits until at most `count` batches are not yet written."""
        while len(self._pending) > count:
            self._pending.popleft().result()

    def close(self) -> None:
        """Writes the end of the file."""
        try:
            self._wait()
        finally:
            if self._threads:
                self._threads.shutdown()
            if self._writer is None:
                self._writer = self._open()
            self._writer.close()


@contextlib.contextmanager
def _without_same_names() -> Generator[None]:
    try:
        yield
    except SameNamesError as error:
        raise Failure(f"{error}; --to ndjson keeps them apart") from error


_PENDING_MAX = 2
"""The most batches that are not yet written, while the next are made: as many as are made at a time."""

_ROWS_MIN = 1_000
"""Fewer rows do not show whether the values of a column repeat."""


def _leaves(batch: Any) -> Iterator[tuple[str, Any]]:
    """The Parquet columns of a batch: the path of each, and its values."""
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
    """Whether values repeat, so that a dictionary makes the column smaller, and no slower to write."""
    count: int = len(values) - values.null_count
    distinct_count: int = import_module("pyarrow.compute").count_distinct(values).as_py()
    return distinct_count * 2 <= count
