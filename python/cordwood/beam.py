"""Reads and writes logs in Apache Beam pipelines. Requires `pip install 'cordwood[beam]'`.

`ReadFromLog` reads the logs that match a pattern, and `ReadAllFromLog` reads the logs named in a `PCollection`.
`WriteToLog` writes new logs. A log is split into ranges of blocks, which workers read independently. A runner may split
a range again while it is being read. Each record is returned exactly once, by the worker that reads the block where the
record starts.

>>> import apache_beam
>>> from cordwood.beam import ReadFromLog, WriteToLog
>>> with apache_beam.Pipeline() as pipeline:
...     _ = pipeline | apache_beam.Create([b"one", b"two"]) | WriteToLog("example", ".log")
>>> with apache_beam.Pipeline() as pipeline:
...     _ = pipeline | ReadFromLog("example-*.log") | apache_beam.Map(len) | apache_beam.Map(print)
3
3
"""

# Type checkers also run where Beam is not installed and its types are unknown.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import apache_beam as beam
from apache_beam.coders import BytesCoder
from apache_beam.io.filebasedsink import (
    DEFAULT_SHARD_NAME_TEMPLATE,
    DEFAULT_WINDOW_SHARD_NAME_TEMPLATE,
    FileBasedSink,
)
from apache_beam.io.filesystem import CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.iobase import Write
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.metrics import Metrics

from cordwood import Position, Reader, RecordBatch, Writer, crc32c, scan
from cordwood._claims import WHOLE_LEN, ClaimedRange
from cordwood._inputs.destinations import sync_directory
from cordwood._inputs.files import has_magic, is_segment, segmented_elsewhere, segments_in
from cordwood._native import NUMBERED_DIALECTS, marks_of
from cordwood._remote import RangeFile, looked_at
from cordwood._tables.payloads import PAYLOADS
from cordwood.errors import LogChangedError
from cordwood.types import BLOCK_LEN, LogFormat, SkippedRegion
from cordwood.typing import CompressionName, DecoderName, DialectName

if TYPE_CHECKING:

    class PTransform:
        """Stands in for Beam's class when a type checker runs without Beam."""

        def __or__(self, right: Any) -> Any: ...
        def __ror__(self, left: Any) -> Any: ...
        def __rrshift__(self, label: str) -> Any: ...

else:
    from apache_beam import PTransform

__all__ = ["LogOutputs", "ReadAllFromLog", "ReadFromLog", "WriteToLog"]

Policy: TypeAlias = Literal["raise", "skip", "salvage"]
"""How to treat damage. `"stop"` is not allowed, because it would apply to each range separately."""

_DAMAGE = "damage"
"""The tag of the second output."""


class LogOutputs(NamedTuple):
    """The outputs of `ReadFromLog` and `ReadAllFromLog` with `with_damage=True`.

    Attributes:
        records: The `PCollection` that the transform would return without `with_damage`.
        damage: A `PCollection` with a tuple for each region that was not returned: the path of the file and the
            `cordwood.SkippedRegion`. Adjacent regions may form one element or several, depending on how the log was
            split. Either way, the elements cover the same bytes.
    """

    records: Any
    damage: Any


class _Log(NamedTuple):
    """A file to read.

    Attributes:
        path: The path of the file.
        file_len: The length of the file in bytes.
        compression_type: How Beam's file system decompresses the file.
        format: The format of the log, or `None` if it could not be detected.
        place_len: The length in bytes of each part that can be read independently.
        position: The position at the start of the file, or `None` if no bytes have been read.
    """

    path: str
    file_len: int
    compression_type: str
    format: LogFormat | None
    place_len: int
    position: Position | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The `Reader` options for the format of the log."""
        return self.format._asdict() if self.format else {}

    @contextmanager
    def source(self) -> Generator[Any]:
        """Opens the file as a source for `Reader`. The path is included in errors and messages."""
        with FileSystems.open(self.path, compression_type=self.compression_type) as file:
            if self.compression_type == CompressionTypes.UNCOMPRESSED:
                methods = {name: getattr(file, name) for name in ("read", "seek", "tell", "seekable")}
            else:
                # Beam can't seek in a file that it decompresses.
                methods = {"read": partial(self._decompressed, file)}
            yield SimpleNamespace(cordwood_path=self.path, **methods)

    def _decompressed(self, file: Any, size: int) -> bytes:
        """Returns the next bytes of a file that Beam is decompressing. Beam doesn't report files that are cut short.

        Raises:
            EOFError: The file is cut short.
        """
        data: bytes = file.read(size)
        # Only this private attribute shows whether the file is cut short.
        if size and not data and not getattr(file._decompressor, "eof", True):  # noqa: SLF001
            raise EOFError(f"{self.path}: the compressed file ends early")
        return data

    def check(self) -> None:
        """Checks that the path still refers to the log that was found there.

        Raises:
            LogChangedError: The path now refers to another log.
        """
        marks, _ = marks_of(self.position) if self.position else ([], None)
        for start, length, checksum in marks:
            if crc32c(_Stored(self.path, self.file_len).read_range(start, start + length)) != checksum:
                text = f"it was replaced since it was found: its first {length} bytes differ"
                raise LogChangedError(text, path=self.path, offset=start, length=length)

    @contextmanager
    def open(self, on_corruption: Policy, start: int, end: int) -> Generator[Reader]:
        """Opens a reader for a range."""
        with (
            self.source() as source,
            Reader(source, start=start, end=end, on_corruption=on_corruption, **self.options) as reader,
        ):
            yield reader


class _Stored(NamedTuple):
    """The stored bytes of a file on a Beam file system, before any decompression."""

    name: str
    file_len: int

    def size(self) -> int:
        return self.file_len

    def read_range(self, start: int, end: int) -> bytes:
        with FileSystems.open(self.name, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            file.seek(start)
            data: bytes = file.read(end - start)
        return data


class _Match(beam.DoFn):
    """Turns paths, patterns and `FileMetadata` into a `FileMetadata` for each file that is not empty."""

    def process(self, element: Any) -> Iterator[Any]:
        if isinstance(element, FileMetadata) and is_segment(element.path):
            raise segmented_elsewhere(element.path)
        for file in [element] if isinstance(element, FileMetadata) else _matches(element):
            FileSystems.report_source_lineage(file.path)
            if file.size_in_bytes:
                yield file


class _Detect(beam.DoFn):
    """Turns each `FileMetadata` into a `_Log`."""

    def __init__(self, compression_type: str, dialect: DialectName | None, place_len: int = BLOCK_LEN) -> None:
        self._compression_type = compression_type
        self._dialect: DialectName | None = dialect
        self._place_len = place_len

    def process(self, file: Any) -> Iterator[Any]:
        compression_type = self._compression_type
        if compression_type == CompressionTypes.AUTO:
            compression_type = CompressionTypes.detect_compression_type(file.path)
        log = LogFormat(self._dialect) if self._dialect else None
        is_compressed = compression_type != CompressionTypes.UNCOMPRESSED
        position = None
        if not (log or is_compressed):
            log, position = looked_at(RangeFile(_Stored(file.path, file.size_in_bytes), 0, 0))
        is_whole = is_compressed or (log is not None and log.dialect in NUMBERED_DIALECTS)
        place_len = WHOLE_LEN if is_whole else self._place_len
        yield _Log(file.path, file.size_in_bytes, compression_type, log, place_len, position)


def _matches(pattern: str) -> list[Any]:
    """Returns the `FileMetadata` for a file, or for all files matching a pattern.

    If the pattern is also the name of a file, only that file is returned.

    Raises:
        FileNotFoundError: The file does not exist.
        OSError: The path refers to a segmented log, or the pattern matches segments of a segmented log.
    """
    if _is_local(pattern) and not os.path.dirname(pattern):
        # Beam finds files in the current directory only if the pattern names the directory.
        pattern = os.path.join(os.curdir, pattern)
    if (is_pattern := has_magic(pattern)) and FileSystems.exists(pattern):
        return [FileSystems.get_filesystem(pattern).metadata(pattern)]
    files: list[Any] = FileSystems.match([pattern])[0].metadata_list
    if not (files or is_pattern):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), pattern)
    for file in files:
        if segments_in(pattern) if file.path == pattern else is_segment(file.path):
            raise segmented_elsewhere(file.path)
    return files


def _is_local(path: str) -> bool:
    return FileSystems.get_scheme(path) is None


_TRACKER = beam.DoFn.RestrictionParam()
"""The default value that tells runners to pass the restriction tracker as this parameter."""


@dataclass(eq=False)
class _Read(beam.DoFn, beam.transforms.core.RestrictionProvider):
    """Turns each `_Log` into batches of its records. A restriction is a range of parts, claimed one by one.

    Attributes:
        of_batch: A function that converts the first records of a batch to an element.
        bundle_len: The number of bytes in a range.
        bundle_len_min: The minimum number of bytes in the last range of a file.
        with_filename: Whether each element is a tuple of the path and the batch.
        on_corruption: How to treat damage.
    """

    of_batch: Callable[[RecordBatch, int], Any]
    bundle_len: int
    bundle_len_min: int
    with_filename: bool
    on_corruption: Policy

    def initial_restriction(self, element: _Log) -> Any:
        return OffsetRange(0, -(-element.file_len // element.place_len))

    def create_tracker(self, restriction: Any) -> Any:
        return OffsetRestrictionTracker(restriction)

    def split(self, element: _Log, restriction: Any) -> Iterator[Any]:
        place_len = element.place_len
        yield from restriction.split(max(self.bundle_len // place_len, 1), max(self.bundle_len_min // place_len, 1))

    def restriction_size(self, element: _Log, restriction: Any) -> int:
        places: int = restriction.size()
        return min(places * element.place_len, element.file_len)

    def process(self, element: Any, tracker: Any = _TRACKER) -> Iterator[Any]:
        places = tracker.current_restriction()
        claimed = ClaimedRange(partial(element.open, self.on_corruption), places.start, places.stop, element.place_len)
        record_count = record_len = 0
        for batch, count in claimed.batches(tracker.try_claim):
            record_count += count
            record_len += batch.offsets[count] - batch.offsets[0]
            yield self._named(element, self.of_batch(batch, count))
        element.check()
        # If the runner has shortened the range, another worker reads the rest.
        found = claimed.findings(tracker.current_restriction().stop)
        _count("records", record_count)
        _count("record_bytes", record_len)
        _count("skipped_bytes", found.skipped_len)
        yield from _damage(element, found.skipped)

    def _named(self, log: _Log, batch: Any) -> Any:
        return (log.path, batch) if self.with_filename else batch


class _Decode(_Read):
    """Turns each `_Log` into Arrow batches of its records' contents. Each claimed part is read as a whole.

    Args:
        table: The options of `scan` that determine the columns.
        options: Same as for `_Read`.
    """

    def __init__(self, table: dict[str, Any], **options: Any) -> None:
        super().__init__(_arrow, **options)
        self._table = table

    def process(self, element: Any, tracker: Any = _TRACKER) -> Iterator[Any]:
        places = tracker.current_restriction()
        for place in range(places.start, places.stop):
            if not tracker.try_claim(place):
                return
            yield from self._decoded(element, place * element.place_len)

    def _decoded(self, element: _Log, start: int) -> Iterator[Any]:
        pa: Any = import_module("pyarrow")
        end = start + element.place_len
        with element.source() as source:
            table = scan(
                source, start=start, end=end, on_corruption=self.on_corruption, **element.options, **self._table
            )
            try:
                for batch in pa.RecordBatchReader.from_stream(table):
                    yield self._named(element, batch)
            except (pa.ArrowException, OSError) as error:
                error.add_note(f"in {element.path}")
                raise
        element.check()
        [skipped] = table.skipped
        _count("skipped_bytes", sum(region.length for region in skipped))
        _count("left_out", len(table.left_out[0]))
        yield from _damage(element, skipped)


def _list(batch: RecordBatch, count: int) -> list[bytes]:
    return batch[:count]


def _arrow(batch: RecordBatch, count: int) -> Any:
    pa: Any = import_module("pyarrow")
    return pa.record_batch(batch).slice(0, count)


def _damage(log: _Log, skipped: Iterable[SkippedRegion]) -> Iterator[Any]:
    return (beam.pvalue.TaggedOutput(_DAMAGE, (log.path, region)) for region in skipped)


def _count(name: str, number: int) -> None:
    """Adds to a counter. Call this once per range, because each call takes as long as processing a record."""
    Metrics.counter("cordwood", name).inc(number)


class ReadAllFromLog(PTransform):
    """Reads the logs in a `PCollection` of paths, patterns or Beam's `FileMetadata`.

    A path ending in `/` refers to all files in that directory. A `FileMetadata` as returned by `fileio.MatchAll` is
    always read as a single file, even if its name contains wildcard characters. Each file is read up to the length it
    had when it was found.

    Segmented logs are rejected, because a missing file could go unnoticed. Their files are rejected too, unless you
    name each of them.

    There are three counters in the `cordwood` namespace: `records` counts the records, `record_bytes` counts their
    bytes, and `skipped_bytes` counts the bytes in all regions of the `damage` output.

    Args:
        desired_bundle_size: The length in bytes of each range that a worker reads. It is rounded down to whole blocks
            of 32 KiB, with a minimum of one block. Default: 64 MiB.
        min_bundle_size: The minimum number of bytes in the last range of a file. Default: 0.
        compression_type: How files are decompressed, as one of Beam's `CompressionTypes`. Compressed files and logs in
            a dialect with log numbers can't be split. A compressed file that ends early raises an `EOFError` under
            every policy. Default: `"auto"`, which decides based on the file name extension.
        with_filename: Whether each element is a tuple of the path and the record (or list). Default: `False`.
        as_batches: With `True`, each element is a list of records totalling about 256 KiB, and reading takes half as
            long. With `"arrow"`, it is a `pyarrow.RecordBatch` of the same size with the columns `offset` and `record`.
            Default: `False`, which makes each element a record.
        decode: The kind of records, as in `cordwood.scan`. If `decode` is given, each element is a
            `pyarrow.RecordBatch` of decoded records. Ranges are not split further. One worker reads the whole log if a
            row may depend on several records, as with `"wandb-summary"`. Under any policy other than `"raise"`, the
            `left_out` counter counts the records of other kinds, up to 1,000 in each range. Default: `None`, which
            returns records as bytes.
        columns: The columns to return with `decode`, as in `cordwood.scan`. Default: `None`.
        schema: The schema to use with `decode`, as in `cordwood.scan`. If the columns depend on the records, as in
            JSON, you must pass a schema, because all logs must have the same columns. Default: `None`.
        with_damage: Whether to return a `LogOutputs`: the elements, plus the regions that were not returned. Default:
            `False`.
        dialect: Same as for `cordwood.Reader`. Default: `None`, which detects the dialect of each file.
        on_corruption: How to treat damage, as in `cordwood.Reader`: `"raise"`, `"skip"` or `"salvage"`. Default:
            `"raise"`, which makes the pipeline fail on damage.

    Raises:
        TypeError: `schema` is not a pyarrow schema.
        ValueError: An option has an invalid value or is missing.

    >>> import apache_beam, cordwood
    >>> from cordwood.beam import ReadAllFromLog
    >>> with cordwood.open("example.log", "w") as writer:
    ...     _ = writer.append(b"one")
    >>> with apache_beam.Pipeline() as pipeline:
    ...     logs = pipeline | apache_beam.Create(["example.log"])
    ...     _ = logs | ReadAllFromLog(with_filename=True) | apache_beam.Map(print)
    ('./example.log', b'one')
    """

    def __init__(
        self,
        *,
        desired_bundle_size: int = 64 << 20,
        min_bundle_size: int = 0,
        compression_type: str = CompressionTypes.AUTO,
        with_filename: bool = False,
        as_batches: bool | Literal["arrow"] = False,
        decode: DecoderName | None = None,
        columns: Sequence[str] | None = None,
        schema: object | None = None,
        with_damage: bool = False,
        dialect: DialectName | None = None,
        on_corruption: Policy = "raise",
    ) -> None:
        super().__init__()
        if on_corruption not in {"raise", "skip", "salvage"}:
            raise ValueError(f"on_corruption must be 'raise', 'skip' or 'salvage', not {on_corruption!r}")
        if as_batches not in (True, False, "arrow"):
            raise ValueError(f"as_batches must be True, False or 'arrow', not {as_batches!r}")
        if not CompressionTypes.is_valid_compression_type(compression_type):
            known = sorted(value for name, value in vars(CompressionTypes).items() if name.isupper())
            raise ValueError(f"compression_type must be one of {known}, not {compression_type!r}")
        _check_at_least("desired_bundle_size", desired_bundle_size, 1)
        _check_at_least("min_bundle_size", min_bundle_size, 0)
        Reader(b"", dialect=dialect).close()
        options: dict[str, Any] = {
            "bundle_len": desired_bundle_size,
            "bundle_len_min": min_bundle_size,
            "with_filename": with_filename,
            "on_corruption": on_corruption,
        }
        place_len = BLOCK_LEN
        if decode:
            table: dict[str, Any] = {"decode": decode, "columns": columns, "schema": schema}
            # Rejects options that a scan would reject, and those that could give two logs different columns.
            scan(b"", **table)
            if schema is None and PAYLOADS[decode].columns is None:
                raise ValueError(f"the columns of {decode!r} depend on the records: pass schema")
            block_count = max(desired_bundle_size // BLOCK_LEN, 1)
            place_len = block_count * BLOCK_LEN if PAYLOADS[decode].is_by_record else WHOLE_LEN
            self._read: _Read = _Decode(table, **options)
        elif columns is not None or schema is not None:
            raise ValueError("columns and schema choose from the contents of records: pass decode, too")
        else:
            self._read = _Read(_arrow if as_batches == "arrow" else _list, **options)
        self._detect = _Detect(compression_type, dialect, place_len)
        self._with_filename = with_filename
        self._as_batches = as_batches or decode
        self._with_damage = with_damage

    def expand(self, pcoll: Any) -> Any:
        """Applies the transform. Beam calls this method.

        Args:
            pcoll: The input: the `PCollection` before the `|`.

        Returns:
            A `PCollection`, or the `LogOutputs`.
        """
        # One worker lists the files, and many workers detect their formats.
        files = pcoll | "Match" >> beam.ParDo(_Match()) | "Reshuffle" >> beam.Reshuffle()
        logs = files | "Detect" >> beam.ParDo(self._detect)
        outputs = logs | "Read" >> beam.ParDo(self._read).with_outputs(_DAMAGE, main="batches")
        records = outputs.batches
        if not self._as_batches:
            # The list is processed in the same stage, because passing a list to another stage would cost as much as
            # passing a record.
            records |= "Records" >> (
                beam.FlatMap(_with_path).with_output_types(tuple[str, bytes])
                if self._with_filename
                else beam.FlatMap().with_output_types(bytes)
            )
        return LogOutputs(records, outputs.damage) if self._with_damage else records


def _check_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")


def _check_text(name: str, path: object) -> None:
    if not isinstance(path, str):
        raise TypeError(f"{name} must be a str, not {type(path).__name__}")


def _with_path(element: tuple[str, list[bytes]]) -> Iterable[tuple[str, bytes]]:
    path, records = element
    return [(path, record) for record in records]


class ReadFromLog(PTransform):
    """Reads the logs that match a pattern.

    Args:
        file_pattern: A path on one of Beam's file systems, or a pattern. In a pattern, `*`, `?` and `[...]` match
            characters in a name, and `**` matches directories. If the pattern is also the name of a file, only that
            file is read.
        min_bundle_size: Same as for `ReadAllFromLog`. Default: 0.
        validate: Whether to check, when the pipeline is built, that at least one file matches. Default: `True`.
        options: The other options of `ReadAllFromLog`.

    Raises:
        FileNotFoundError: No file matches.
        TypeError: `file_pattern` is not a string, or `ReadAllFromLog` rejects the type of an argument.
        ValueError: Same as for `ReadAllFromLog`.

    >>> import apache_beam, cordwood
    >>> from cordwood.beam import ReadFromLog
    >>> with cordwood.open("example.log", "w") as writer:
    ...     writer.extend([b"one", b"two"])
    2
    >>> with apache_beam.Pipeline() as pipeline:
    ...     _ = pipeline | ReadFromLog("*.log", as_batches=True) | apache_beam.Map(print)
    [b'one', b'two']
    """

    def __init__(self, file_pattern: str, min_bundle_size: int = 0, *, validate: bool = True, **options: Any) -> None:
        super().__init__()
        _check_text("file_pattern", file_pattern)
        if validate and not _matches(file_pattern):
            raise FileNotFoundError(errno.ENOENT, "no file matches the pattern", file_pattern)
        self._file_pattern = file_pattern
        self._read_all = ReadAllFromLog(min_bundle_size=min_bundle_size, **options)

    def expand(self, pbegin: Any) -> Any:
        """Applies the transform. Beam calls this method.

        Args:
            pbegin: The pipeline.

        Returns:
            Same as for `ReadAllFromLog`.
        """
        return pbegin | beam.Create([self._file_pattern]) | self._read_all


class _Sink(FileBasedSink):
    """Writes each bundle or shard to its own file. The files get their final names once all are complete."""

    def __init__(self, prefix: str, writer_options: dict[str, Any], **options: Any) -> None:
        super().__init__(prefix, BytesCoder(), compression_type=CompressionTypes.UNCOMPRESSED, **options)
        self._prefix = prefix
        self._writer_options = writer_options

    def open(self, temp_path: str) -> tuple[Any, Writer]:
        file = super().open(temp_path)
        return file, Writer(file, "w", **self._writer_options)

    def write_record(self, file_handle: tuple[Any, Writer], value: bytes) -> None:
        file_handle[1].append(value)

    def close(self, file_handle: tuple[Any, Writer]) -> None:
        file, writer = file_handle
        with file, writer:
            if _is_local(self._prefix):
                writer.sync()

    def initialize_write(self) -> str:
        directory = os.path.dirname(os.path.abspath(self._prefix + "-"))
        new: list[str] = []
        while _is_local(self._prefix) and not os.path.exists(directory):
            new.append(directory)
            directory = os.path.dirname(directory)
        temporary: str = super().initialize_write()
        for directory in new:
            sync_directory(directory)
        return temporary

    def pre_finalize(self, temporary: Any, results: Iterable[str]) -> list[list[str]]:
        # Beam itself adds the empty logs in the last step, which is too late. Beam removes the old logs here. It finds
        # them with a pattern that contains the number of new logs. A retry of the last step adds new empty logs, which
        # could replace renamed logs.
        logs = list(results)
        while len(logs) < max(self.num_shards, 1):
            logs.append(self.open_writer(temporary, os.urandom(16).hex()).close())
        super().pre_finalize(temporary, logs)
        return [logs]

    def finalize_write(self, temporary: Any, results: list[str], logs: list[str]) -> Iterator[str]:
        if not _is_local(self._prefix):
            # On an object store, removing the temporary directory doesn't remove Beam's own empty logs.
            FileSystems.delete([*set(results).difference(logs)])
        yield from super().finalize_write(temporary, logs, None)

    def finalize_windowed_write(self, *results: Any) -> Iterator[str]:
        yield from super().finalize_windowed_write(*results)
        if _is_local(self._prefix):
            # Syncs the directory so that the new names are on disk.
            sync_directory(self._prefix + "-")


class WriteToLog(PTransform):
    """Writes the records in a `PCollection` to new logs, one per shard, and returns the logs' paths.

    The logs get their final names once all of them are complete. On a local file system, the logs have been synced to
    disk by then, and their directory entries are synced immediately afterwards. A bundle that fails and is retried
    doesn't leave any duplicate records or partial logs. Existing files whose names match the logs' names are removed
    first. A name matches even if it has other text in place of the shard number. A shard without records becomes an
    empty log, and a bounded `PCollection` always has at least one shard.

    Each window of an unbounded `PCollection` has its own logs, which are complete once the watermark has passed the end
    of the window. A window's logs replace only existing logs with the same names.

    A worker can be killed after it has renamed a log and before Beam has recorded this. Beam then repeats the step. The
    returned paths don't include any logs that had already been renamed. For a window, the repeated step fails, because
    Beam doesn't find those logs. No records are lost: each log has its final name or is in the temporary directory.

    Args:
        file_path_prefix: The prefix of the logs' paths. The paths are on one of Beam's file systems.
        file_name_suffix: The suffix of the logs' paths, such as `".log"`. Default: `""`.
        num_shards: The number of logs, or the number per window for an unbounded `PCollection`. Default: 0, which means
            one log per window if the `PCollection` is unbounded. Otherwise, the runner decides.
        shard_name_template: The middle part of the logs' paths. `S` is replaced by a digit of the shard's number, `N`
            by a digit of the number of shards, and `W` by the window. With `""`, there is a single log. Default:
            `None`, which means `"-SSSSS-of-NNNNN"`, or `"-W-SSSSS-of-NNNNN"` for windows.
        triggering_frequency: The length of the windows of an unbounded `PCollection`, in seconds. Default: `None`,
            which keeps the windows of the `PCollection`. The global window is rejected, because it never ends.
        dialect: Same as for `cordwood.Writer`. Default: `None`, which means `"leveldb"`.
        compression: Same as for `cordwood.Writer`. Default: `None`.

    Raises:
        TypeError: A path is not a string. When the pipeline runs, this is also raised if a record is not `bytes`.
        ValueError: The prefix, the suffix or the template contains `*`, `?` or `[`, so Beam would remove or rename the
            wrong files. The template has no `S`, or lacks the `W` that an unbounded `PCollection` requires. An option
            has an invalid value.

    >>> import apache_beam, cordwood
    >>> from cordwood.beam import WriteToLog
    >>> with apache_beam.Pipeline() as pipeline:
    ...     records = pipeline | apache_beam.Create([b"one", b"two"])
    ...     _ = records | WriteToLog("new", ".log", num_shards=1)
    >>> list(cordwood.open("new-00000-of-00001.log"))
    [b'one', b'two']
    """

    def __init__(
        self,
        file_path_prefix: str,
        file_name_suffix: str = "",
        num_shards: int = 0,
        shard_name_template: str | None = None,
        *,
        triggering_frequency: float | None = None,
        dialect: DialectName | None = None,
        compression: CompressionName | None = None,
    ) -> None:
        super().__init__()
        names = {
            "file_path_prefix": file_path_prefix,
            "file_name_suffix": file_name_suffix,
            "shard_name_template": shard_name_template or "",
        }
        for option, text in names.items():
            _check_text(option, text)
            if has_magic(text):
                raise ValueError(f"{option} has a character of a pattern, *, ? or [: {text}")
        _check_at_least("num_shards", num_shards, 0)
        if triggering_frequency is not None and triggering_frequency <= 0:
            raise ValueError(f"triggering_frequency must be more than 0, not {triggering_frequency}")
        Writer(io.BytesIO(), "w", dialect=dialect, compression=compression).close()
        self._sink_for = partial(
            _Sink,
            file_path_prefix,
            {"dialect": dialect, "compression": compression},
            file_name_suffix=file_name_suffix,
            num_shards=num_shards,
            triggering_frequency=triggering_frequency,
        )
        self._sink = self._sink_for(shard_name_template=shard_name_template)

    def expand(self, pcoll: Any) -> Any:
        """Applies the transform. Beam calls this method.

        Args:
            pcoll: The input: the `PCollection` before the `|`.

        Returns:
            A `PCollection` of paths.
        """
        sink = self._sink
        if not pcoll.is_bounded:
            if sink.shard_name_template == DEFAULT_SHARD_NAME_TEMPLATE:
                sink = self._sink_for(shard_name_template=DEFAULT_WINDOW_SHARD_NAME_TEMPLATE)
            elif "W" not in sink.shard_name_template:
                # The logs of a window would replace those of the previous window.
                raise ValueError(
                    f"the shard_name_template of a stream needs a W, for the window: {sink.shard_name_template!r}"
                )
        return pcoll | Write(sink)
