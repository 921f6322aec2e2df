"""Tables of records, as cordwood makes them, next to those of the naive counterpart."""

import contextlib
import io
import re
import tempfile
from pathlib import Path
from unittest import mock

import naive_tables
import pyarrow as pa
from naive_rows import ROWS

import cordwood
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.table import Table
from cordwood.cli import main


def fill(table, log, target_len=1 << 20):
    """What a table makes of a log, and the faults."""
    faults, made = [], []
    for _, some in table.read(cordwood.Reader(log), faults.append, target_len=target_len):
        made += some
    made += table.rest()
    return made, [(part, record.offset, error) for part, record, error in faults]


def learned_of(payload, log, target_len=1 << 20):
    """A table that has learned its columns from a log, and the faults."""
    table = Table(PAYLOADS[payload], "arrow", opens_early=False)
    made, faults = fill(table, log, target_len)
    assert made == []
    return table, faults


def naive_of(payload, log):
    """The rows of a log, what is learned from them, the columns, and the faults, as the naive counterpart has them."""
    faults = []
    records = cordwood.Reader(log).records()
    rows = list(ROWS[payload](records, lambda part, record: faults.append((part, record.offset))))
    found = naive_tables.Columns()
    for row in rows:
        found.add(row)
    known = PAYLOADS[payload].columns
    columns = dict(known) if known else {**PAYLOADS[payload].always, **found.types()}
    return rows, found, columns, faults


def check_converted(payload, records, name="log", dialect="leveldb"):
    """Checks that `convert` writes the tables that the naive counterpart makes, and reports the same faults."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory, name)
        with cordwood.open(log, "x", dialect=dialect) as writer:
            writer.extend(records)
        rows, _, columns, faults = naive_of(payload, log.read_bytes())
        for form in ("ndjson", "csv", "arrow"):
            table, errors = Path(directory, form), io.StringIO()
            # Of a log of another kind, only the first fault is reported.
            no_other_kind = mock.patch("cordwood.cli.convert.logs.other_payload", return_value=None)
            with contextlib.redirect_stderr(errors), no_other_kind:
                status = main(["convert", "--as", payload, "--to", form, str(log), str(table)])
            assert status == (3 if faults else 0), errors.getvalue()
            assert _reported(errors.getvalue()) == faults
            if form == "ndjson":
                assert table.read_bytes().decode() == naive_tables.ndjson_of(rows)
            elif form == "csv":
                assert table.read_bytes().decode() == naive_tables.csv_of(rows, columns)
            else:
                check_same(pa.ipc.open_file(table).read_all(), rows, columns)


def check_same(table, rows, columns):
    """Checks an Arrow table against rows."""
    table.validate(full=True)
    if not columns:
        assert (table.num_rows, table.num_columns) == (len(rows), 0)
        return
    expected = naive_tables.table_of(rows, columns)
    assert table.schema.equals(expected.schema)
    # Compared as text: NaN equals nothing, and 0.0 equals -0.0.
    assert repr(table.to_pylist()) == repr(expected.to_pylist())
    assert [column.null_count for column in table.columns] == [column.null_count for column in expected.columns]


def _reported(errors):
    parts = {"is left out": "record", "is read up to a fault": "rest"}
    found = re.findall(r"(a value of )?the record at offset (\d+) (is left out|is read up to a fault): ", errors)
    return [("value" if value else parts[what], int(offset)) for value, offset, what in found]
