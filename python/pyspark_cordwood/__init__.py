"""Logs as an Apache Spark data source: `spark.read.format("cordwood")`, `readStream`, `write`, `writeStream`.

Spark finds this package by its name, without registration, if `cordwood[spark]` is installed. These classes just pass
Spark's calls on to `cordwood._spark`, which does the work.
https://spark.apache.org/docs/latest/api/python/tutorial/sql/python_data_source.html
"""

# Spark need not be installed where types are checked. Without it, its types are unknown.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, StringType, StructType

from cordwood._spark import following, reading
from cordwood._spark.options import Options, dialect_of, options_of, paths_of
from cordwood._spark.writing import Job, Part, job_of
from cordwood.typing import DialectName

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """The `cordwood` data source."""

    @classmethod
    def name(cls) -> str:
        """Returns the name to pass to `format`."""
        return "cordwood"

    def schema(self) -> StructType:
        """Returns the columns to use if the job doesn't name any."""
        return from_arrow_schema(reading.schema_of(options_of(self.options)))

    def reader(self, schema: StructType) -> LogReader:
        """Returns a reader for a table."""
        return LogReader(options_of(self.options), schema)

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802 - Spark names it.
        """Returns a reader for a stream."""
        return LogStreamReader(options_of(self.options, is_stream=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> LogWriter:  # noqa: FBT001 - Spark calls it.
        """Returns a writer for a table."""
        _check_written(schema)
        return LogWriter(job_of(paths_of(self.options), uuid4().hex, dialect_of(self.options)), overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LogStreamWriter:  # noqa: FBT001, N802
        """Returns a writer for a stream."""
        _check_written(schema)
        if overwrite:
            raise ValueError("a log is only appended to: the output mode must be 'append'")
        return LogStreamWriter(paths_of(self.options), dialect_of(self.options))


class _Batches:
    """Reads the rows of a partition of a table or stream."""

    def __init__(self, options: Options, schema: StructType) -> None:
        reading.check_columns(schema.names, options)
        self._options = options
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[reading.RecordBatch]:
        # If there are no partitions, Spark creates one without a value.
        return reading.batches(partition.value or [], to_arrow_schema(self._schema, timezone="UTC"), self._options)


class LogReader(_Batches, DataSourceReader):
    """Reads a table."""

    def partitions(self) -> list[InputPartition]:
        """Returns a partition for each group of splits."""
        return [InputPartition(splits) for splits in reading.planned(self._options)]


class LogStreamReader(_Batches, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a stream. An offset is a mapping from the path of each log to the text of its `Follower.position`."""

    _left: set[str] | None = None

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Returns the maximum number of logs in a batch."""
        max_files = self._options.max_files
        return ReadMaxFiles(max_files) if max_files else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remembers the logs that exist now. The query reads each of them once, to its end."""
        self._left = following.paths_of_logs(self._options)

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        """Returns the offset that precedes the first record of every log."""
        return {}

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """Returns the end of each log's last record, but advances only as many logs as a batch may hold."""
        options = self._options._replace(max_files=getattr(limit, "max_files", None))
        return following.ends_of(options, start, self._left)

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[InputPartition]:
        """Groups a batch's splits, and returns a partition for each group."""
        return [InputPartition(splits) for splits in following.planned_between(self._options, start, end)]


class LogWritten(WriterCommitMessage):
    """The log written by a task."""

    def __init__(self, job: Job, part: Part) -> None:
        self.job = job
        self.part = part


class LogWriter(DataSourceArrowWriter):
    """Writes a table."""

    def __init__(self, job: Job, overwrite: bool) -> None:  # noqa: FBT001
        self._job = job
        self._overwrite = overwrite
        if overwrite:
            job.check_replaceable()

    def write(self, iterator: Iterator[reading.RecordBatch]) -> LogWritten:
        """Writes a task's log."""
        return _written(self._job, iterator)

    def commit(self, messages: Sequence[LogWritten | None]) -> None:
        """Makes the logs of all tasks visible."""
        self._job.commit([message.part for message in messages if message], overwrite=self._overwrite)

    def abort(self, messages: Sequence[LogWritten | None]) -> None:  # noqa: ARG002
        """Removes the logs of all tasks."""
        self._job.abort()


class LogStreamWriter(DataSourceStreamArrowWriter):
    """Writes a stream. Each batch is a job, which a restarted query may repeat."""

    def __init__(self, paths: tuple[str, ...], dialect: DialectName) -> None:
        self._paths = paths
        self._dialect: DialectName = dialect
        job_of(paths, "", dialect)

    def write(self, iterator: Iterator[reading.RecordBatch]) -> LogWritten:
        """Writes a task's log."""
        task = TaskContext.get()
        query, batch = (task.getLocalProperty(name) for name in ("sql.streaming.queryId", "streaming.sql.batchId"))
        # A repeated batch keeps its query and its batch number, even if another program repeats it.
        return _written(job_of(self._paths, f"{query}-{int(batch):09}", self._dialect), iterator)

    def commit(self, messages: Sequence[LogWritten | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Makes the logs of a batch visible, unless they already are."""
        for job in {message.job for message in messages if message}:
            job.commit([message.part for message in messages if message])

    def abort(self, messages: Sequence[LogWritten | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Removes the logs of a batch."""
        for job in {message.job for message in messages if message}:
            job.abort()


def _written(job: Job, batches: Iterator[reading.RecordBatch]) -> LogWritten:
    task = TaskContext.get()
    return LogWritten(job, job.write(task.partitionId(), task.taskAttemptId(), batches))


def _check_written(schema: StructType) -> None:
    if [type(field.dataType) for field in schema.fields] not in ([BinaryType], [StringType]):
        raise ValueError(f"a log has one column, of type binary or string, not {schema.simpleString()}: select it")
