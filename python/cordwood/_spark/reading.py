"""Reads logs as Spark tables: plans a table's partitions, and reads a partition's batches with pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, TypeAlias, cast

from cordwood._many import verify
from cordwood._native import scan
from cordwood._open import Split
from cordwood._spark.options import Options
from cordwood._splits import group_splits, plan_splits
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.scan import LEFT_OUT_MAX, check_columns_known

pa: Any = import_module("pyarrow")
Schema: TypeAlias = Any
RecordBatch: TypeAlias = Any


def _schema(**columns: Any) -> Schema:
    return pa.schema([pa.field(name, of_column, nullable=False) for name, of_column in columns.items()])


RECORDS = _schema(path=pa.string(), offset=pa.int64(), record=pa.binary())
"""The default columns of records."""

MORE_COLUMNS = ("end_offset", "length", "salvaged")
"""The additional columns that a job can request for records."""

SKIPPED = _schema(path=pa.string(), offset=pa.int64(), end_offset=pa.int64(), reason=pa.string(), severity=pa.string())
"""The columns of skipped regions."""

LEFT_OUT = _schema(path=pa.string(), offset=pa.int64(), error=pa.string())
"""The columns of the `left_out` table, which lists the records left out by `decode`."""

_TABLES = {"records": RECORDS, "skipped": SKIPPED, "left_out": LEFT_OUT}

_SKIPPED_MAX = 100_000
"""The maximum number of regions listed in a report."""


def schema_of(options: Options) -> Schema:
    """Returns a job's default columns, with Spark's types. With `decode`, this may read all logs once."""
    if not options.decode or options.table != "records":
        return _TABLES[options.table]
    reading: dict[str, Any] = {"on_corruption": options.on_corruption, "storage_options": options.storage_options}
    decoded = scan(list(options.paths), decode=options.decode, **reading, **options.log)
    return pa.schema([field.with_type(_type_in_spark(field.type)) for field in pa.schema(decoded)])


def check_columns(names: Iterable[str], options: Options) -> None:
    """Checks the columns that a job names.

    Raises:
        ValueError: A column does not exist.
    """
    if options.decode and options.table == "records":
        # A column is empty if no record has a value for it.
        return
    more = MORE_COLUMNS if options.table == "records" else ()
    check_columns_known(names, [*_TABLES[options.table].names, *more])


def planned(options: Options) -> list[list[Split]]:
    """Returns the splits in each partition."""
    is_whole = options.decode and not PAYLOADS[options.decode].is_by_record
    split_len = 1 << 62 if is_whole else options.partition_len
    splits = plan_splits(options.paths, split_len, storage_options=options.storage_options, **options.log)
    return group_splits(splits, options.partition_len)


def batches(splits: list[Split], schema: Schema, options: Options) -> Iterator[RecordBatch]:
    """Yields a partition's rows with exactly this schema."""
    if not splits:
        return
    if options.table == "skipped":
        yield from _skipped(splits, schema)
        return
    if options.table == "left_out":
        yield from _left_out(splits, schema, options)
        return
    if options.decode:
        table = scan(splits, decode=options.decode, schema=schema, on_corruption=options.on_corruption)
    else:
        table = scan(splits, columns=schema.names, on_corruption=options.on_corruption)
    # Request arrays with 32-bit offsets to match Spark's types.
    stream = pa.RecordBatchReader.from_stream(table, schema=RECORDS if "record" in schema.names else None)
    for batch in stream:
        # Columns of other types are cast, and a cast that would change a value raises an error.
        yield pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)


def _skipped(splits: list[Split], schema: Schema) -> Iterator[RecordBatch]:
    reports = verify(splits)
    for error in reports.errors.values():
        raise error
    for split, report in reports.items():
        if len(report.skipped) == _SKIPPED_MAX:
            raise ValueError(f"{split} has {_SKIPPED_MAX} skipped regions or more: name a lower partition_len")
    rows = [
        {"path": cast("Split", split).path, **{name: getattr(region, name) for name in SKIPPED.names[1:]}}
        for split, report in reports.items()
        for region in report.skipped
    ]
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _left_out(splits: list[Split], schema: Schema, options: Options) -> Iterator[RecordBatch]:
    for split in splits:
        table: Any = scan(split, decode=options.decode, on_corruption="skip")
        for _ in pa.RecordBatchReader.from_stream(table):
            pass
        [left_out] = table.left_out
        if len(left_out) == LEFT_OUT_MAX:
            raise ValueError(f"{split} has {LEFT_OUT_MAX} such records or more: name a lower partition_len")
        if left_out:
            rows = [{"path": split.path, "offset": offset, "error": str(error)} for offset, error in left_out]
            yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _type_in_spark(data_type: Any) -> Any:
    if pa.types.is_uint64(data_type):
        # Offsets and sequence numbers always fit in 64-bit signed integers.
        return pa.int64()
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type
