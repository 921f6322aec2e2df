"""Prints records for `cat` and `follow`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import cordwood
from cordwood._jsonable import json_text
from cordwood._native import RecordDecoder
from cordwood._tables.payloads import PAYLOADS, Payload, kind_by_content
from cordwood._text import base64_text, display_name, source_name
from cordwood.cli import _options
from cordwood.cli._framing import framed
from cordwood.cli._messages import REPORTED_MAX, Status, complain
from cordwood.cli._output import json_bytes, print_json, stdout
from cordwood.cli._payloads import AUTO, other_payload, report_engine, report_payload
from cordwood.cli._selection import Selection

_Encoded: TypeAlias = dict[str, Any]
"""A record's data as JSON fields. The field `value` contains text that is already formatted as JSON."""


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that control how records are printed."""
    parser.add_argument(
        "--format",
        choices=("lines", "nul", "len", "raw"),
        default="lines",
        help="a newline or a NUL after each record, or its 32-bit little-endian length before it, or no "
        "delimiter (default: %(default)s)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help='one JSON object for each record: source, offset, end_offset, len, salvaged, and the data as "text" if it '
        'is UTF-8, else as "base64"',
    )
    parser.add_argument("--encoding", choices=("hex", "base64"), help='with --json: all data as "hex" or "base64"')
    parser.add_argument(
        "--as",
        dest="payload",
        type=_with_values,
        choices=(*(name for name, payload in PAYLOADS.items() if payload.has_value), AUTO),
        metavar="NAME",
        help='decode each record, and print it as "value" in place of the data; the forms wandb-... print only '
        "the records of a run that they apply to; auto: chosen by the dialect and the first record, and reported on "
        "stderr; one of %(choices)s",
    )
    _options.add_selection_arguments(parser, "record", "fields of the JSON, such as offset or value.loss")


def _with_values(name: str) -> str:
    """Checks a value of `--as`. If it requires a table, the error names the verb that makes tables."""
    if name in PAYLOADS and not PAYLOADS[name].has_value:
        raise argparse.ArgumentTypeError(f"{name} is a table: cordwood convert --as {name} makes it")
    return name


def check_output(options: argparse.Namespace) -> None:
    """Checks that the options of `add_output_arguments` are compatible.

    Raises:
        ValueError: One of the options would have no effect.
    """
    if options.format != "lines" and (options.json or options.payload):
        raise ValueError(
            f"--format {options.format} is for records as they are, not for JSON, which has a line for each"
        )
    if options.encoding and (options.payload or not options.json):
        raise ValueError("--encoding is for the data of records in --json, without --as")
    if options.columns and not (options.json or options.payload):
        raise ValueError("--columns is for fields of JSON: with --json or --as")


def end_selection(selection: Selection) -> None:
    """Ends the output. Call this after the last record.

    Raises:
        ValueError: A requested name doesn't appear in any record.
    """
    for row in selection.rest():
        print_json(row)


class Printer:
    """Prints a source's records one by one, as JSON or in the format given by `--format`.

    Records that can't be decoded as `--as` requires are reported and set the status to `DAMAGE`.

    Attributes:
        status: The exit status so far.
    """

    def __init__(self, options: argparse.Namespace, name: str, dialect: str | None, selection: Selection) -> None:
        self._out = sys.stdout.buffer if options.format == "raw" else stdout()
        self._format = None if options.json or options.payload else options.format
        self._name = name
        self._dialect = dialect
        self._selection = selection
        self._payload = PAYLOADS.get(options.payload)
        self._is_auto = options.payload == AUTO
        self._encoding = options.encoding
        self._encode: Callable[[bytes], _Encoded | None] | None = None
        self._error_count = 0
        self._reported_max = REPORTED_MAX
        self.status = Status.CLEAN

    def __call__(self, record: cordwood.Record) -> None:
        """Prints a record if it is of the kind given by `--as`."""
        if self._format:
            self._selection.take({})
            self._out.write(framed([record.data], self._format))
            return
        is_first = self._encode is None
        encode = self._encode = self._encode or self._encoder_for(record)
        data = encode(record.data)
        error = data.get("error") if data else None
        if is_first and error is None and self._payload and self._payload.is_part:
            # If no record is of the requested kind, all records are skipped.
            self._report_advice(record)
        if data is None:
            return
        fields = {
            "source": source_name(self._name),
            "offset": record.offset,
            "end_offset": record.end_offset,
            "len": len(record.data),
            "salvaged": record.salvaged,
        }
        if not self._selection.is_active:
            self._out.write(json_bytes(_json_of(fields, data)) + b"\n")
        else:
            for row in self._selection.take(fields | _parsed(data)):
                self._out.write(json_bytes(json_text(row)) + b"\n")
        if error is not None:
            self._report(record, error)

    def _encoder_for(self, first: cordwood.Record) -> Callable[[bytes], _Encoded | None]:
        if self._is_auto:
            kind = kind_by_content(self._name, first.data, self._dialect)
            self._payload = PAYLOADS[kind.best] if kind else None
            report_payload(self._name, self._payload)
        payload = self._payload
        return _decoder(payload, self._name, self._dialect) if payload else _ENCODERS[self._encoding]

    def _report(self, record: cordwood.Record, error: str) -> None:
        """Reports the first few errors. Reports only the first one if its record is known not to match `--as`."""
        self.status = Status.DAMAGE
        self._error_count += 1
        if self._error_count > self._reported_max:
            return
        if self._error_count == 1 and self._report_advice(record):
            self._reported_max = 1
        else:
            complain(f"{display_name(self._name)}: the record at offset {record.offset}: {error}")

    def _report_advice(self, record: cordwood.Record) -> bool:
        """Checks whether a record is known not to match `--as`. If so, reports the record."""
        advice = other_payload(record.data, self._payload, self._dialect) if self._payload else None
        if advice:
            self.status = Status.DAMAGE
            complain(f"{display_name(self._name)}: the record at offset {record.offset} is {advice}")
        return bool(advice)

    def close(self) -> None:
        """Reports how many records could not be decoded, unless each of them has already been reported."""
        if self._error_count > self._reported_max:
            complain(f"{display_name(self._name)}: {self._error_count:,} records in all could not be decoded")


def _json_of(fields: dict[str, Any], data: _Encoded) -> str:
    """Returns a record as one line of JSON."""
    if "value" not in data:
        return json_text(fields | data)
    return f'{json_text(fields)[:-1]},"value":{data["value"]}}}'


def _parsed(data: _Encoded) -> _Encoded:
    """Parses the value in the data, because fields inside the value may be requested."""
    if "value" not in data:
        return data
    import json

    return {"value": json.loads(data["value"])}


def _decoder(payload: Payload, name: str, dialect: str | None) -> Callable[[bytes], _Encoded | None]:
    """Returns a decoder that returns `None` for any record without the requested payload."""
    decoder = RecordDecoder(payload.name, dialect)
    value_of = _messages() if payload.name == "wandb" else decoder.json
    is_noted = False

    def decode(data: bytes) -> _Encoded | None:
        nonlocal is_noted
        try:
            value = value_of(data)
        except cordwood.CordwoodError as error:
            return {"error": str(error), **_as_text(data)}
        if not is_noted and (note := decoder.note):
            report_engine(name, note)
            is_noted = True
        return None if value is None else {"value": value}

    return decode


def _messages() -> Callable[[bytes], str]:
    from cordwood.payload.wandb import to_dict

    return lambda data: json_text(to_dict(data))


def _as_text(data: bytes) -> _Encoded:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64_text(data)}


_ENCODERS: dict[str | None, Callable[[bytes], _Encoded]] = {
    "hex": lambda data: {"hex": data.hex()},
    "base64": lambda data: {"base64": base64_text(data)},
    None: _as_text,
}
"""The encoder for each value of `--encoding`."""
