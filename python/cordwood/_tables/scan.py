"""Implements the table of decoded records that `scan(decode=)` returns. `cordwood convert` makes similar tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

from cordwood._native import Reader
from cordwood._open import Split, part_of
from cordwood._optional import imported
from cordwood._pickling import refuse
from cordwood._tables.payloads import PAYLOADS
from cordwood._tables.schema import ColumnType, HasFirstError, MisfitError, arrow_name
from cordwood._tables.table import Fault, Table, columns_of
from cordwood.errors import PayloadError
from cordwood.types import Outcome, OutcomeKind, SkippedRegion

_BATCH_LEN = 1 << 20

LEFT_OUT_MAX = 1_000
"""The maximum number of records that a scan lists in `left_out` for each source."""

_KEPT_LEN_MAX = 64 << 20
"""The maximum total length, in bytes, of the batches that a stream keeps while it determines the columns.

If the batches are longer, the stream reads the logs again.
"""

_Reopened: TypeAlias = tuple[tuple[Any, int | None, bool], Split | None]
"""The `Reader` argument, the start offset, a flag for sources that can be read only once, and the `Split`, if any."""


class DecodedScan:
    """The table of decoded records that `scan` returns with `decode=`, for programs that read Arrow.

    The table has the same rows and columns as one made by `cordwood convert --as`. Creating it requires pyarrow. If the
    columns differ between logs, they are determined when they are first needed, by reading the sources. A stream that
    determines the columns reads short sources only once.

    Raises:
        ImportError: pyarrow is not installed, or cannot be imported.
        TypeError: `schema` is not a pyarrow schema.
        ValueError: `decode` has an invalid value, the options conflict, or `schema` names a column that the table
            cannot have.
    """

    def __init__(
        self,
        sources: list[_Reopened],
        are_several: bool,  # noqa: FBT001 - one caller, in Rust
        decode: str,
        schema: Any,
        columns: Sequence[str] | None,
        **options: Any,
    ) -> None:
        payload = PAYLOADS.get(decode)
        if payload is None:
            raise ValueError(f"decode must be one of {', '.join(map(repr, PAYLOADS))}, not {decode!r}")
        pa: Any = imported("pyarrow", "scan with decode= needs", "arrow")
        self._origins = [payload.origin] if are_several else []
        self._known: dict[str, ColumnType] | None = None
        if schema is not None:
            if not isinstance(schema, pa.Schema):
                raise TypeError(f"schema must be a pyarrow.Schema, not {type(schema).__name__}")
            if columns is not None:
                raise ValueError("schema names the columns: pass it without columns")
            if schema == pa.schema([]):
                raise ValueError("schema must name at least one column")
            # If the columns depend on the records, a name in `schema` that isn't found in any record becomes an empty
            # column.
            if (known := payload.known_columns(options["on_corruption"])) is not None:
                check_columns_known(schema.names, [*known, *self._origins])
            self._known = columns_of(schema)
        for name in columns or ():
            if columns and columns.count(name) > 1:
                raise ValueError(f"columns names {name!r} twice")
        self._sources = list(map(_Source, sources))
        self._payload = payload
        self._columns = columns
        self._options = options
        self._advice = (
            "give the column another type in schema="
            if schema is not None
            else "the file has changed: make a new scan, or pass schema="
        )
        self._given = schema
        self._lock = Lock()
        self._latest: list[_Log] = []

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the table as a stream of Arrow batches, in a capsule of the Arrow C stream interface.

        Args:
            requested_schema: A capsule with an Arrow schema. If possible, pyarrow casts the columns to this schema.
                Default: `None`.

        Returns:
            A capsule whose stream reads each source from its start.
        """
        # Only this stream uses the kept batches, because the sources may have changed by the time another stream is
        # created.
        kept = self._find_columns(keeps=True)
        schema = _exportable(self._schema())
        reader: Any = import_module("pyarrow").RecordBatchReader.from_batches(schema, self._stream(kept))
        return reader.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Returns the columns and their types, in a capsule of the Arrow C schema interface.

        Returns:
            The capsule.
        """
        return _exportable(self._schema()).__arrow_c_schema__()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._schema().names)

    @property
    def skipped(self) -> tuple[tuple[SkippedRegion, ...], ...]:
        """The skipped regions, as one tuple of `SkippedRegion` objects per source, in the order of the sources.

        These are the regions found so far by the most recently started read. Empty if no read has started.
        """
        return tuple(log.reader.skipped if log.reader else () for log in self._latest)

    @property
    def left_out(self) -> tuple[tuple[tuple[int, PayloadError], ...], ...]:
        """The offset and fault of each record that isn't of the kind given by `decode`, as one tuple per source.

        These are the records found so far by the most recently started read. Empty if no read has started. At most the
        first 1,000 records in each source are listed. A value that can't be read is left out of its row but listed
        here. With `on_corruption="raise"`, the faults are raised instead.
        """
        return tuple(tuple(log.left_out) for log in self._latest)

    @property
    def ok(self) -> bool:
        """True if no damage has been found and no record has been left out.

        This describes the most recently started read, up to the point that it has reached.
        """
        return not any(log.left_out or (log.reader and not log.reader.ok) for log in self._latest)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The `Outcome` for each source, in order, showing how reading ended.

        These are the outcomes from the most recently started read. If it has not reached the end of a source, that
        source's outcome is `"unfinished"`. Empty if no read has started.
        """
        unfinished = Outcome(kind=OutcomeKind.UNFINISHED, offset=self._options["start"])
        return tuple(log.reader.outcome if log.reader else unfinished for log in self._latest)

    def __repr__(self) -> str:
        count = len(self._sources)
        sources = f"{count} source{'' if count == 1 else 's'}"
        policy = self._options["on_corruption"]
        return f"<cordwood.DecodedScan of {sources}: {self._payload.name}; on_corruption={policy!r}>"

    def _schema(self) -> Any:
        self._find_columns(keeps=False)
        return self._table(self._known).schema

    def _find_columns(self, *, keeps: bool) -> _Kept | None:
        """Reads the sources to determine the columns if they are not yet known.

        Returns:
            The batches created by this read, if `keeps` is true. `None` if they are incomplete or too long.
        """
        with self._lock:
            if self._known is not None:
                return None
            known = self._payload.known_columns(self._options["on_corruption"])
            if known is not None:
                self._known = self._chosen({**dict.fromkeys(self._origins, "text"), **known})
                return None
            table = self._table(None, opens_early=keeps and self._columns is None)
            kept = _Kept([], self._logs())
            kept_len = 0
            for log in kept.logs:
                for batch in log.read(table):
                    kept.batches.append(batch)
                    kept_len += batch.nbytes
                    if kept_len > _KEPT_LEN_MAX:
                        table.only_learn()
                        kept.batches.clear()
            self._known = self._chosen(table.columns)
            return kept if table.is_open else None

    def _table(self, columns: dict[str, ColumnType] | None, *, opens_early: bool = False) -> Table:
        table = Table(
            self._payload,
            "arrow",
            columns,
            first=self._origins,
            has_salvaged=self._options["on_corruption"] == "salvage",
            wanted=list(columns) if columns and self._columns else None,
            opens_early=opens_early,
        )
        if self._given is not None:
            table.schema, table.cast = self._given, cast_array
        return table

    def _chosen(self, known: dict[str, ColumnType]) -> dict[str, ColumnType]:
        if self._columns is None:
            return known

        # pyarrow passes the names from its schema as `columns`.
        names = {arrow_name(name): name for name in known} | {name: name for name in known}
        wanted = [name if name in names else arrow_name(name) for name in self._columns]
        check_columns_known(wanted, names)
        return {names[name]: known[names[name]] for name in wanted}

    def _stream(self, kept: _Kept | None) -> Iterator[Any]:
        if kept is not None:
            self._latest = kept.logs
            kept.batches.reverse()
            while kept.batches:
                yield kept.batches.pop()
            return
        table = self._table(self._known)
        self._latest = logs = self._logs()
        for log in logs:
            try:
                yield from log.read(table)
            except MisfitError as error:
                place = "" if error.offset is None else f"the record at offset {error.offset}: "
                raise ValueError(f"{log.name}: {place}{error}; {self._advice}") from None

    def _logs(self) -> list[_Log]:
        return [_Log(source, number, self._options) for number, source in enumerate(self._sources)]


refuse(DecodedScan, "pass the arguments of scan, and call it there")


def check_columns_known(names: Iterable[str], known: Collection[str]) -> None:
    """Raises a `ValueError` for a name that isn't one of the known columns."""
    for name in names:
        if name not in known:
            raise ValueError(f"there is no column {name!r}, only {', '.join(map(repr, list(known)[:50]))}")


def _exportable(schema: Any) -> Any:
    """Returns the schema after checking that Arrow's C interface doesn't change it.

    In this interface, a string ends at its first NUL.

    Raises:
        ValueError: The interface changes the schema.
    """
    exported: Any = import_module("pyarrow").schema(schema)
    for field, other in zip(schema, exported, strict=True):
        if field != other:
            raise ValueError(
                f"the name of the column {field.name!r}, or of a field in it, has a NUL in schema=, and a scan cannot "
                r"represent it: write it as \x00, four characters"
            )
    return schema


class _Source:
    """A source for a scan. Each read starts at the position that the source had at first."""

    def __init__(self, reopened: _Reopened) -> None:
        (self._source, self._start, self._is_read_once), self._split = reopened
        self._opening_count = 0

    def open(self, options: Mapping[str, Any]) -> Reader:
        """Returns a reader positioned at the start of the source."""
        if self._is_read_once and self._opening_count:
            raise ValueError("the source was read once, and cannot seek: pass a path, or a file object that can")
        self._opening_count += 1
        if self._start is not None:
            self._source.seek(self._start)
        _, options = part_of(self._split, dict(options)) if self._split else (None, options)
        return Reader(self._source, **options)

    @property
    def opening(self) -> int:
        """A number that changes when another stream starts to read, because that moves the source's position."""
        return 0 if self._start is None else self._opening_count


class _Kept(NamedTuple):
    """All batches from one read of the sources, and the state of each source."""

    batches: list[Any]
    logs: list[_Log]


class _Intact(NamedTuple):
    """The results for a source without skipped regions. They replace the reader to save several kB of memory."""

    path: str | None
    outcome: Outcome
    skipped: tuple[SkippedRegion, ...] = ()
    ok: bool = True


class _Log:
    """The state of a source during one read."""

    def __init__(self, source: _Source, number: int, options: Mapping[str, Any]) -> None:
        self._source = source
        self._number = number
        self._options = options
        self.reader: Reader | _Intact | None = None
        self.left_out: list[tuple[int, PayloadError]] = []

    @property
    def name(self) -> str:
        return (self.reader and self.reader.path) or f"source {self._number}"

    def read(self, table: Table) -> Iterator[Any]:
        """Yields the batches of a table."""
        with self._source.open(self._options) as reader:
            self.reader = reader
            opening = self._source.opening
            try:
                for _, batches in table.read(reader, self._leave_out, name=reader.path, target_len=_BATCH_LEN):
                    # Another stream may start between two batches, or at any time in another thread.
                    self._check_alone(opening)
                    yield from batches
                    self._check_alone(opening)
            except HasFirstError as error:
                raise ValueError(
                    f"{self.name}: the rows have a column {str(error)!r} of their own: scan each on its own"
                ) from None
            if not reader.skipped and reader.ok:
                self.reader = _Intact(reader.path, reader.outcome)

    def _check_alone(self, opening: int) -> None:
        if self._source.opening != opening:
            raise OSError(
                "another stream has started reading the same file object: read the streams one after the other, or "
                "scan a path"
            )

    def _leave_out(self, fault: Fault) -> None:
        offset, error = fault.record.offset, fault.error
        if self._options["on_corruption"] == "raise":
            text = f"{self.name}: the record at offset {offset}: {error}"
            raise PayloadError(text, offset=error.offset, length=error.length, reason=error.reason) from error
        if len(self.left_out) < LEFT_OUT_MAX:
            self.left_out.append((offset, error))


def cast_array(array: Any, kind: Any) -> Any:  # noqa: PLR0911 - one for each type
    """Casts an array from the native module to a type of a given schema. Handles each type that `columns_of` finds.

    pyarrow doesn't support casts to some nested types or to non-nullable fields.
    """
    pa: Any = import_module("pyarrow")
    types, compute = pa.types, import_module("pyarrow.compute")

    def of(buffers: list[Any], *children: Any) -> Any:
        return pa.Array.from_buffers(kind, len(array), buffers, array.null_count, children=children)

    if types.is_dictionary(kind):
        encoded = cast_array(array, kind.value_type).dictionary_encode()
        indices = encoded.indices.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=kind.ordered)
    if types.is_run_end_encoded(kind):
        return compute.run_end_encode(cast_array(array, kind.value_type), run_end_type=kind.run_end_type)
    if types.is_struct(kind):
        return of(array.buffers()[:1], *(cast_array(array.field(at), inside.type) for at, inside in enumerate(kind)))
    if types.is_map(kind):
        pairs = cast_array(array.values, pa.struct([kind.key_field, kind.item_field]))
        return of(array.buffers()[:2], pairs)
    if hasattr(kind, "value_field"):
        if types.is_fixed_size_list(kind):
            # Even a null fixed-size list has items.
            return of(array.buffers()[:1], cast_array(array.values, kind.value_field.type))
        items = cast_array(array.values, kind.value_field.type)
        validity, offsets = array.buffers()[0], array.offsets
        if types.is_large_list(kind) or types.is_large_list_view(kind):
            offsets = offsets.cast(pa.int64())
        buffers = [validity, offsets.buffers()[1]]
        if types.is_list_view(kind) or types.is_large_list_view(kind):
            buffers.append(compute.subtract(offsets[1:], offsets[:-1]).buffers()[1])
        return of(buffers, items)
    # An array of nulls can have a type that accepts only nulls.
    if array.null_count == len(array):
        return pa.nulls(len(array), kind)
    try:
        return array.cast(kind)
    except pa.ArrowNotImplementedError:
        # pyarrow 17 cannot cast to views.
        return pa.array(array.to_pylist(), kind)
