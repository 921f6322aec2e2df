"""Convert a log to a table: NDJSON, CSV, Parquet or Arrow.

The form is known by the end of the destination's name: .ndjson or .jsonl, .csv, .parquet, .arrow or .feather. Without a
destination the table goes to stdout, as NDJSON or what --to says.

What is a row, by --as:
  raw            a record: offset, end_offset, data
  write-batch    an operation of a LevelDB, RocksDB or Pebble log: offset of its record, sequence, kind, key, value, ...
  version-edit   a record of a MANIFEST: offset, fields
  entity         an entity of a Datastore or Firestore export: __key__ and its properties
  wandb          a record of a .wandb file: offset and its fields
  wandb-history  a step of a run in a .wandb file: what was logged

In NDJSON and CSV, bytes that are UTF-8 are text, others {"base64": "..."}; bytes of entities always are that. Where
columns are not known beforehand, as those of entities and of wandb, the log is read twice, except for NDJSON: first to
find them. A column whose values are all of one type has that type, any other one holds JSON. No more than some tens of
MiB are in memory.

What is damaged, or is not of that form, is told on stderr and left out: of a step, only the value. The exit status is
then 3.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import cordwood
from cordwood.cli._columns import Columns
from cordwood.cli._common import (
    Progress,
    Status,
    add_reading_arguments,
    check_range,
    complain,
    counted,
    names_file,
    new_file,
    one_source,
    opened,
    shown,
    tell_skipped,
)
from cordwood.cli._rows import FIRST_COLUMNS, KNOWN_COLUMNS, Row, json_of, rows_as
from cordwood.cli._rows import FORMS as ROW_FORMS
from cordwood.cli._tables import BINARY, FORMS, SUFFIXES, check_installed, open_table
from cordwood.cli._twice import readable_twice
from cordwood.errors import PayloadError

EXAMPLES = """\
  cordwood convert app.log records.parquet
  cordwood convert --as entity output-0 documents.ndjson
  cordwood convert --as wandb-history run-59kl0f4q.wandb history.csv
  cordwood convert --as write-batch 000003.log | jq .key
"""

# A batch of rows has this many rows, or is made of this many bytes of records, or of a single longer one.
BATCH_COUNT = 1 << 16
BATCH_LEN = 4 << 20

# So many records that are not of the form are told one by one.
TOLD_MAX = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `convert` takes."""
    names_file(
        parser.add_argument("source", metavar="SOURCE", help="a log; a pattern that only one matches; - for stdin")
    )
    names_file(
        parser.add_argument(
            "destination", metavar="DESTINATION", nargs="?", default="-", help="a new file; - for stdout (default: -)"
        )
    )
    parser.add_argument("--to", choices=FORMS, help="the form of the table")
    parser.add_argument(
        "--as", dest="payload", choices=ROW_FORMS, default="raw", help="what a record is (default: %(default)s)"
    )
    add_reading_arguments(parser)


def run(options: argparse.Namespace) -> Status:
    """Converts the source."""
    check_range(options)
    options.source = one_source(options.source)
    form = options.to or _form_of(options.destination)
    if form in BINARY and options.destination == "-" and sys.stdout.isatty():
        raise ValueError(f"{form} is nothing for a terminal; name a destination")
    known = {} if form == "ndjson" else KNOWN_COLUMNS.get(options.payload)
    check_installed(form)
    if known is not None:
        return _convert(options, form, lambda: opened(options.source), known)
    with readable_twice(options.source) as source:
        return _convert(options, form, source, known)


def _form_of(destination: str) -> str:
    if destination == "-":
        return "ndjson"
    suffix = os.path.splitext(destination)[1].lower()  # noqa: PTH122 - pathlib is slow to import
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{destination}: what form is this? Name it with --to, or end the name in {', '.join(SUFFIXES)}"
        )
    return SUFFIXES[suffix]


def _convert(
    options: argparse.Namespace, form: str, open_source: Callable[[], Any], columns: dict[str, str] | None
) -> Status:
    skipped = None
    end = options.end
    if columns is None:
        found = Columns()
        with _reader(options, open_source(), end) as reader:
            for rows in _Batches(options, reader, is_told=False):
                for row in rows:
                    found.add(row)
            # Should the log have grown meanwhile, then what is new stays out, and what was torn here is told as such.
            end = reader.tell()
            skipped = reader.skipped
        columns = found.types() | FIRST_COLUMNS.get(options.payload, {})
    is_stream = options.destination == "-"
    with (
        _reader(options, open_source(), end) as reader,
        Progress(options.source, prints_records=is_stream) as progress,
    ):
        batches = _Batches(options, reader, is_told=True)
        with new_file(options.destination) as file:
            to_json = json_of(options.payload)
            table = open_table(form, file, columns, to_json, is_stream=is_stream)
            position = options.start
            for rows in batches:
                table.write(rows)
                progress(reader.tell() - position)
                position = reader.tell()
            table.close()
    return max(batches.status, tell_skipped(options.source, reader.skipped if skipped is None else skipped))


def _reader(options: argparse.Namespace, source: Any, end: int | None) -> cordwood.Reader:
    return cordwood.Reader(
        source, dialect=options.dialect, on_corruption=options.on_corruption, start=options.start, end=end
    )


class _Batches:
    """The rows of a log, many at a time. Records that are not of the form are left out, and told."""

    def __init__(self, options: argparse.Namespace, reader: cordwood.Reader, *, is_told: bool) -> None:
        self._name = shown(options.source)
        self._reader = reader
        self._rows_of = rows_as(options.payload, options.source, reader.dialect, self._leave_out_value)
        self._is_told = is_told
        self._left_out = {"record": 0, "value": 0}

    @property
    def status(self) -> Status:
        return Status.DAMAGE if any(self._left_out.values()) else Status.CLEAN

    def __iter__(self) -> Iterator[list[Row]]:
        rows: list[Row] = []
        rows_len = 0
        for record in self._reader.records():
            try:
                rows_of_record = self._rows_of(record)
            except PayloadError as error:
                self._leave_out(record, error)
                continue
            for row in rows_of_record:
                rows.append(row)
                if len(rows) >= BATCH_COUNT:
                    yield rows
                    rows, rows_len = [], 0
            rows_len += len(record.data)
            if rows_len >= BATCH_LEN:
                yield rows
                rows, rows_len = [], 0
        if rows:
            yield rows
        for noun, count in self._left_out.items():
            if self._is_told and count > TOLD_MAX:
                complain(f"{self._name}: {counted(count, noun)} left out in all")

    def _leave_out(self, record: cordwood.Record, error: PayloadError) -> None:
        self._tell("record", f"the record at offset {record.offset} is left out: {error}")

    def _leave_out_value(self, record: cordwood.Record, error: PayloadError) -> None:
        self._tell("value", f"a value of the record at offset {record.offset} is left out: {error}")

    def _tell(self, noun: str, message: str) -> None:
        self._left_out[noun] += 1
        if self._is_told and self._left_out[noun] <= TOLD_MAX:
            complain(f"{self._name}: {message}")
