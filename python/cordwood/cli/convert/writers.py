"""The forms in which `convert` writes a table: NDJSON, CSV, Parquet and Arrow IPC."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from cordwood._optional import imported
from cordwood._tables.decoders import Row
from cordwood._tables.json_text import json_text
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.schema import ColumnType, ToJson, new_column
from cordwood._text import base64_text

if TYPE_CHECKING:
    from cordwood._tables.columns import Records
    from cordwood.cli._output import Output

SUFFIXES = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
"""The form of a destination, by its suffix."""

TABLE_FORMATS = ("ndjson", "csv", "parquet", "arrow")


class Table(Protocol):
    """A table that is being written."""

    takes_records: bool
    """Whether `write` also accepts records that are not decoded yet."""

    def write(self, records: Records) -> int:
        """Writes the rows of records, and returns how many there are.

        Raises:
            Failure: This form cannot represent a value; the message says which, without the name of the log.
            MisfitError: A value fits no column.
        """
        ...

    def close(self) -> None:
        """Writes the end of the file, even if it is incomplete and will be removed. The file stays open."""


BINARY_FORMATS = ("parquet", "arrow")
"""The forms that are not text; they need pyarrow."""


def check_installed(form: str) -> None:
    """Checks that the package that the form needs is installed, and loads it.

    A library for which there is not enough memory may end the process: here, there is no unfinished table yet.

    Raises:
        ImportError: It is not, or cannot be imported.
    """
    if form in BINARY_FORMATS:
        imported("pyarrow.parquet" if form == "parquet" else "pyarrow", f"{form} needs", "arrow")


ENCODINGS: dict[str, Callable[[bytes], str]] = {
    "base64": base64_text,
    "hex": bytes.hex,
}
"""The forms that all bytes in CSV may have. By default, they are as in NDJSON."""


def open_table(options: argparse.Namespace, form: str, file: Output, columns: dict[str, ColumnType]) -> Table:
    """Opens a table of this form, to be written to `file`, with these columns; NDJSON has none.

    stdout, which cannot be read from its end, gets Arrow's streaming format.
    """
    payload = PAYLOADS[options.payload]
    to_json = payload.to_json()
    if form == "ndjson":
        return _Ndjson(file, to_json)
    if form == "csv":
        encode = ENCODINGS.get(options.encoding)
        return _Csv(file, columns, to_json, encode, escapes_formulas=options.escape_formulas)
    from cordwood.cli.convert.arrow_table import ArrowTable

    is_stream = options.destination == "-"
    are_chosen = options.columns is not None
    return ArrowTable(form, file, payload, columns, is_stream=is_stream, are_chosen=are_chosen)


class _Ndjson:
    """One JSON object per line."""

    takes_records = False

    def __init__(self, file: Output, to_json: ToJson) -> None:
        self._file = file
        self._to_json = to_json

    def write(self, records: Records) -> int:
        to_json = self._to_json
        lines = [json_text({name: to_json(value) for name, value in row.items()}) + "\n" for row in records.rows]
        self._file.write("".join(lines).encode("utf-8", "backslashreplace"))
        return len(lines)

    def close(self) -> None:
        pass


class _Csv:
    """Comma-separated values as PostgreSQL writes them: an empty field means no value, `""` is empty text.

    (The module `csv` can write that only from Python 3.12 on.) The time that a row takes depends on the values in it,
    not on the number of columns.
    """

    takes_records = False

    def __init__(
        self,
        file: Output,
        columns: dict[str, ColumnType],
        to_json: ToJson,
        encode: Callable[[bytes], str] | None,
        *,
        escapes_formulas: bool,
    ) -> None:
        self._file = file
        self._to_json = to_json
        self._encode = encode
        self._escapes_formulas = escapes_formulas
        cells: dict[str, Callable[[Any], str]] = {
            "bytes": self._bytes,
            "text": self._text,
            "int": str,
            "uint": str,
            "json": self._json,
        }
        self._columns = {
            name: (index, cells.get(kind, self._other) if isinstance(kind, str) else self._json)
            for index, (name, kind) in enumerate(columns.items())
        }
        # Without columns, there is no table.
        if columns:
            self._write(",".join(self._text(name) for name in columns) + "\n")

    def write(self, records: Records) -> int:
        columns = self._columns
        if not columns:
            return len(records.rows)
        last = len(columns) - 1
        lines: list[str] = []
        for row in records.rows:
            at = 0
            for name, value in self._in_order(row):
                if value is None:
                    continue
                index, cell = columns[name]
                if index > at:
                    lines.append("," * (index - at))
                    at = index
                lines.append(cell(value))
            lines.append("," * (last - at) + "\n")
            if len(lines) > _PIECES_MAX or last > _PIECES_MAX:
                self._write("".join(lines))
                lines = []
        self._write("".join(lines))
        return len(records.rows)

    def _in_order(self, row: Row) -> list[tuple[str, Any]]:
        columns = self._columns
        if new := row.keys() - columns.keys():
            raise new_column(min(new))
        return sorted(row.items(), key=lambda item: columns[item[0]][0])

    def _bytes(self, data: Any) -> str:
        if self._encode:
            return self._text(self._encode(data))
        value = self._to_json(data)
        return self._text(value if isinstance(value, str) else json_text(value))

    def _json(self, value: Any) -> str:
        return _quoted(json_text(self._to_json(value)))

    def _other(self, value: Any) -> str:
        """The text of a number, a truth value or a time, including those that JSON cannot represent."""
        value = self._to_json(value)
        return _quoted(value if isinstance(value, str) else json_text(value))

    def _text(self, text: str) -> str:
        if self._escapes_formulas and text.startswith(_FORMULA):
            text = "'" + text
        return _quoted(text)

    def _write(self, text: str) -> None:
        self._file.write(text.encode("utf-8", "backslashreplace"))

    def close(self) -> None:
        pass


# About this many cells are written at once.
_PIECES_MAX = 1 << 12

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The characters that spreadsheets take for the beginning of a formula. The last four are the full-width forms of the
first four."""

_PLAIN = re.compile(r'[^",\r\n\s](?:[^",\r\n]*[^",\r\n\s])?')


def _quoted(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else '"' + text.replace('"', '""') + '"'
