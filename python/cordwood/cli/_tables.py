"""The forms in which a table leaves `convert`: NDJSON, CSV, Parquet and Arrow IPC."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

from cordwood.cli._json import json_text

if TYPE_CHECKING:
    from cordwood.cli._rows import Row

SUFFIXES = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
"""What a destination is by the end of its name."""

FORMS = ("ndjson", "csv", "parquet", "arrow")


class Table(Protocol):
    """A table that is being written."""

    def write(self, rows: list[Row]) -> None:
        """Writes some rows."""

    def close(self) -> None:
        """Writes what stands at the end. The file stays open."""


BINARY = ("parquet", "arrow")
"""The forms that are no text; they take pyarrow."""


def check_installed(form: str) -> None:
    """Whether what the form takes is installed.

    Raises:
        ModuleNotFoundError: It is not; the message says which extra has it.
    """
    if form in BINARY:
        try:
            import_module("pyarrow")
        except ModuleNotFoundError as error:
            text = f"{form} needs the package pyarrow: pip install 'cordwood[arrow]' ({error})"
            raise ModuleNotFoundError(text, name=error.name) from error


ToJson: TypeAlias = Callable[[Any], object]


def open_table(form: str, file: IO[bytes], columns: dict[str, str], to_json: ToJson, *, is_stream: bool) -> Table:
    """A table of some form with these columns, as `Columns.types` gives them; NDJSON has none.

    `to_json` makes JSON of a value. A stream, which cannot be read from its end, is Arrow's streaming format.
    """
    if form == "ndjson":
        return _Ndjson(file, to_json)
    if form == "csv":
        return _Csv(file, columns, to_json)
    return _Arrow(form, file, columns, to_json, is_stream=is_stream)


def _utf8(text: str) -> str:
    """JSON can escape half a character of two; UTF-8 cannot have it."""
    return text.encode("utf-8", "backslashreplace").decode()


class _Ndjson:
    """One JSON object a line."""

    def __init__(self, file: IO[bytes], to_json: ToJson) -> None:
        self._file = file
        self._to_json = to_json

    def write(self, rows: list[Row]) -> None:
        to_json = self._to_json
        lines = (json_text({name: to_json(value) for name, value in row.items()}) + "\n" for row in rows)
        self._file.write("".join(lines).encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        pass


class _Csv:
    """Comma-separated values as PostgreSQL has them: nothing between two commas is no value, `""` is an empty text."""

    def __init__(self, file: IO[bytes], columns: dict[str, str], to_json: ToJson) -> None:
        self._file = file
        self._columns = columns
        self._to_json = to_json
        self._write_line(map(_quoted, columns))

    def write(self, rows: list[Row]) -> None:
        for row in rows:
            self._write_line(self._cell(row.get(name), kind) for name, kind in self._columns.items())

    def _cell(self, value: object, kind: str) -> str:
        if value is None:
            return ""
        value = self._to_json(value)
        return _quoted(value if kind != "json" and isinstance(value, str) else json_text(value))

    def _write_line(self, cells: Iterable[str]) -> None:
        # Without columns, there is no table.
        if self._columns:
            self._file.write((",".join(cells) + "\n").encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        pass


_PLAIN = re.compile(r'[^",\r\n\s](?:[^",\r\n]*[^",\r\n\s])?')


def _quoted(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else '"' + text.replace('"', '""') + '"'


# Few of them, and the table would need more room for what Parquet notes of each column of each row group.
_CELL_COUNT_MAX = 1 << 22


class _Arrow:
    """Parquet, or one of Arrow's two IPC formats. A batch of rows is a row group, or a record batch.

    It is cut where it has many cells: a column takes room in each row, even where it has no value.
    """

    def __init__(
        self, form: str, file: IO[bytes], columns: dict[str, str], to_json: ToJson, *, is_stream: bool
    ) -> None:
        pa: Any = import_module("pyarrow")
        self._types = {
            "bool": pa.bool_(),
            "int": pa.int64(),
            "uint": pa.uint64(),
            "float": pa.float64(),
            "text": pa.string(),
            "bytes": pa.binary(),
            "time": pa.timestamp("us", tz="UTC"),
            "json": pa.string(),
        }
        self._columns = columns
        self._to_json = to_json
        self._schema = pa.schema([(_utf8(name), self._types[kind]) for name, kind in columns.items()])
        self._array: Callable[..., Any] = pa.array
        self._make_batch: Callable[..., Any] = pa.record_batch
        if form == "parquet":
            self._writer: Any = import_module("pyarrow.parquet").ParquetWriter(file, self._schema)
        elif is_stream:
            self._writer = pa.ipc.new_stream(file, self._schema)
        else:
            self._writer = pa.ipc.new_file(file, self._schema)

    def write(self, rows: list[Row]) -> None:
        step = max(1, _CELL_COUNT_MAX // max(1, len(self._columns)))
        for begin in range(0, len(rows), step):
            part = rows[begin : begin + step]
            # One column after the other: as objects of Python, cells are larger than in Arrow.
            arrays = [
                self._array([self._cell(row.get(name), kind) for row in part], self._types[kind])
                for name, kind in self._columns.items()
            ]
            self._writer.write_batch(self._make_batch(arrays, schema=self._schema))

    def _cell(self, value: object, kind: str) -> object:
        if value is None or kind not in ("json", "text"):
            return value
        return _utf8(json_text(self._to_json(value)) if kind == "json" else str(value))

    def close(self) -> None:
        self._writer.close()
