"""Convert logs to a table: NDJSON, CSV, Parquet or Arrow.

The destination's extension determines the format: .ndjson or .jsonl, .csv, .parquet, .arrow or .feather. Without a
destination, the table goes to stdout, as NDJSON or in the format given by --to.

The rows that each value of --as produces:
PAYLOADS

In NDJSON and CSV, every byte string becomes {"base64": "..."}, or text if --encoding is given. With --encoding utf-8,
rows with bytes that are not UTF-8 are reported and left out. If the columns are not known beforehand, as with entities
and wandb, the log is read to find them. For Parquet and Arrow, reading it once is enough if the first records have all
the columns. Otherwise, and for CSV, the log is read again. If all values in a column have the same type, the column has
that type. In Parquet and Arrow, arrays become lists, and objects become structs. All other values are JSON. Converting
takes a few tens of MiB of memory, or 100 to 200 MiB for Parquet and Arrow. Very long records or thousands of columns
take more.

Several logs, or all logs in a directory, become one table with the columns of all of them. The first column shows which
log a row is from. This column is named path, or __file__ for entities and JSON. For wandb, the column is named run_id
and contains the ID from the file's name. In that case, --columns can add the column __file__.

Damaged records, and records of a kind not given by --as, are reported on stderr and left out. If only one value of a
run cannot be read, just that value is left out. In all these cases, the exit status is 3. It is also 3 if a file is
named after one log but belongs entirely to another, if an export has an empty file, or if an export has fewer bytes
than its metadata states. With --strict, the status is also 3 if a log has zeros before a record, has zeros at its end,
or ends with an incomplete record. For example, a file that was cut off can end with an incomplete record.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

import cordwood
from cordwood._inputs.files import identity_of, is_one_file
from cordwood._inputs.input import Input
from cordwood._tables.payloads import PAYLOADS, kind_of_records
from cordwood._tables.schema import SameNamesError
from cordwood.cli import _options
from cordwood.cli._directories import report_exports
from cordwood.cli._messages import Failure, Status, worst
from cordwood.cli._output import check_new_file
from cordwood.cli._payloads import AUTO, AUTO_HELP, report_payload
from cordwood.cli._sources import check_url, first_stream, inputs_of, reopenable
from cordwood.cli._stdin import stdin_or_path
from cordwood.cli.convert.by_kind import convert_by_kind
from cordwood.cli.convert.logs import BINARY_FORMATS, SUFFIXES, TABLE_FORMATS, Logs, check_installed

EXAMPLES = """\
  cordwood convert app.log records.parquet
  cordwood convert --as entity output-0 documents.ndjson
  cordwood convert --as entity --strict export/ entities.parquet
  cordwood convert --as entity --by-kind tables/ export/
  cordwood convert --as wandb-history run-59kl0f4q.wandb history.csv
  cordwood convert --as wandb-history wandb/ histories.parquet
  cordwood convert --as wandb-summary wandb/ summaries.csv
  cordwood convert --as wandb-history --columns _step,loss wandb/ losses.csv
  cordwood convert --as write-batch --encoding utf-8 000003.log | jq .key
  cordwood convert --as live-files MANIFEST-000005 tables.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for `convert`."""
    parser.description = (__doc__ or "").replace("PAYLOADS", _payloads_text())
    _options.add_source_arguments(parser)
    parser.add_argument(
        "destination",
        metavar="DESTINATION",
        nargs="?",
        help="a new file; - for stdout, the default after a single SOURCE",
    )
    parser.add_argument("--to", choices=TABLE_FORMATS, help="the form of the table")
    parser.add_argument(
        "--by-kind",
        metavar="DIRECTORY",
        help="with --as entity: a table for each kind in this directory, with the columns of that kind, as Parquet or "
        "in the form that --to names; all names are those of sources",
    )
    parser.add_argument(
        "--as",
        dest="payload",
        choices=(*PAYLOADS, AUTO),
        default=AUTO,
        metavar="NAME",
        help="the kind of the records (default: auto); one of %(choices)s",
    )
    parser.add_argument(
        "--encoding",
        choices=("utf-8", "base64", "hex"),
        help="in NDJSON and CSV: the text of bytes; with utf-8, rows with other bytes are left out (default: no text, "
        'but {"base64": "..."})',
    )
    _options.rare(parser).add_argument(
        "--escape-formulas",
        action="store_true",
        help="in CSV: put a ' before text that a spreadsheet takes for a formula: text that starts with =, +, -, @, "
        "one of these in full width, a tab, a carriage return or a newline",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the destination once the table is complete, unless it is a log",
    )
    _options.add_selection_arguments(parser, "row", "columns")
    _options.add_reading_arguments(parser)
    _options.add_options(parser, "--strict")
    _options.add_quiet_argument(parser)


def _payloads_text() -> str:
    """Returns a paragraph for each payload. Avoids `textwrap`, which is slow to import."""
    texts = {**{name: payload.help for name, payload in PAYLOADS.items()}, AUTO: AUTO_HELP}
    width = max(map(len, texts)) + 4
    lines: list[str] = []
    for name, text in texts.items():
        line = f"  {name}".ljust(width - 1)
        for word in text.split():
            if len(line) + len(word) >= _HELP_WIDTH:
                lines.append(line)
                line = " " * (width - 1)
            line += f" {word}"
        lines.append(line)
    return "\n".join(lines)


_HELP_WIDTH = 78


def run(options: argparse.Namespace) -> Status:
    """Converts the sources."""
    try:
        return _convert(options)
    except SameNamesError as error:
        raise Failure(f"{error}; --to ndjson keeps them apart") from error


def _convert(options: argparse.Namespace) -> Status:
    is_by_kind = options.by_kind is not None
    options.is_auto = options.payload == AUTO
    # argparse treats all names as sources. Without --by-kind, the last of several names is the destination.
    last = options.sources.pop() if len(options.sources) > 1 and not is_by_kind else "-"
    options.destination = options.by_kind if is_by_kind else last
    form = options.to or ("parquet" if is_by_kind else _form_of(options.destination))
    if form in BINARY_FORMATS and options.encoding:
        raise ValueError(f"--encoding is for NDJSON and CSV: {form} has a type for bytes")
    if form != "csv" and options.escape_formulas:
        raise ValueError(f"--escape-formulas is for CSV, not for {form}")
    if form in BINARY_FORMATS and options.destination == "-" and sys.stdout.isatty():
        raise ValueError(f"{form} is not for a terminal; name a destination")
    check_installed(form)
    options.files = _files_to_convert(options)
    if is_by_kind:
        return worst(convert_by_kind(options, form), report_exports(options.files))
    advice = "; the DESTINATION is the last name"
    check_new_file(options.destination, "table", options.files, overwrite=options.overwrite, advice=advice)
    if is_one_file(options.sources) and (options.payload == "raw" or not options.files[0].not_decoded):
        return _convert_one(options, form)
    if options.is_auto:
        options.payload = _payload_of_first(options)
    if _is_learned(options, form) and (stream := first_stream(options.files)):
        raise ValueError(
            f"{stream} can be read only once: convert it on its own, or together with other logs to NDJSON: --to ndjson"
        )
    return worst(Logs(options, form).convert(), report_exports(options.files))


def _convert_one(options: argparse.Namespace, form: str) -> Status:
    [name] = options.sources
    check_url(name)
    with contextlib.ExitStack() as stack:
        source = opened = None
        # For NDJSON, the log is read only once, so a pipe doesn't have to be copied.
        if form != "ndjson" and (options.is_auto or _is_learned(options, form)):
            source = stack.enter_context(reopenable(name))
        if options.is_auto:
            opened_source = source.open() if source else stdin_or_path(name)
            reader = stack.enter_context(_options.reader_of(options, opened_source, options.end))
            kind, first = kind_of_records(name, reader)
            report_payload(name, kind and PAYLOADS[kind.best], has_records=first is not None)
            options.payload = kind.best if kind else "raw"
            if source:
                reader.close()
            else:
                opened = reader, [first] if first else []
        return Logs(options, form, is_one=True, source=source, opened=opened).convert()


def _files_to_convert(options: argparse.Namespace) -> list[Input]:
    """Returns the files to convert.

    The destination is left out if it is a table that an earlier run wrote to a directory of logs.
    """
    table = identity_of(options.destination)

    def is_table(file: Input) -> bool:
        # Checking both names prevents a log from being replaced through a link that is named like a table.
        return (
            file.is_in_directory
            and _suffix(file.name) == _suffix(options.destination) in SUFFIXES
            and identity_of(file.name) == table is not None
        )

    return [file for file in inputs_of(options.sources) if not is_table(file)]


def _is_learned(options: argparse.Namespace, form: str) -> bool:
    """Checks whether the logs must be read to determine the columns."""
    return form != "ndjson" and PAYLOADS[options.payload].columns is None


def _payload_of_first(options: argparse.Namespace) -> str:
    """Returns the payload for the first log with records."""
    for file in options.files:
        if file.not_decoded or file.error:
            continue
        if stream := first_stream([file]):
            raise ValueError(f"{stream} cannot be read twice, and is first: name the kind of its records with --as")
        # An unreadable log is reported later.
        with contextlib.suppress(OSError, MemoryError, cordwood.CordwoodError, Failure):
            check_url(file.name)
            with _options.reader_of(options, file.name, options.end) as reader:
                kind, first = kind_of_records(file.name, reader)
            # A run's dialect determines its kind even if the run has no records.
            if kind or first:
                report_payload(file.name, kind and PAYLOADS[kind.best])
                return kind.best if kind else "raw"
    return "raw"


def _form_of(destination: str) -> str:
    if destination == "-":
        return "ndjson"
    suffix = _suffix(destination)
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{destination}: the last name is the destination, but not with the extension of a table: use one of "
            f"{', '.join(SUFFIXES)}, or - for stdout, or name the form with --to"
        )
    return SUFFIXES[suffix]


def _suffix(destination: str) -> str:
    return os.path.splitext(destination)[1].lower()
