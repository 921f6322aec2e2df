"""Checks whether a database is complete and, if not, which needed files are missing.

An engine reads `CURRENT`, then the MANIFEST it names, then the tables and logs that the MANIFEST lists. These files can
change while cordwood reads them: the engine writes a file before listing it, and removes a file only once it is no
longer listed. A directory with a fault is therefore reread until `CURRENT` and the MANIFESTs don't change during the
read. After reading the MANIFEST, cordwood checks whether each file exists, because the directory listing is older.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress

from cordwood._inputs.files import is_path
from cordwood._inputs.input import Input
from cordwood._inputs.stores import unjudged
from cordwood._native import Reader, VersionState, detect, verify
from cordwood.errors import CordwoodError, DialectError, PayloadError
from cordwood.types import OF_CURRENT, Database, Engine, OutcomeKind, Problem, ProblemKind, Severity

_READINGS_MAX = 10
"""The maximum number of times to read a directory whose database keeps changing."""

_NAMES_MAX = 10
"""The maximum number of files named on one line."""

_TEXT_LEN_MAX = 1 << 20
"""The maximum number of bytes read from `CURRENT`, an options file or an info log. Later bytes do not matter."""

_MANIFEST = re.compile(r"MANIFEST-([0-9]{1,20})")
_MARKER = re.compile(r"marker\.manifest\.([0-9]+)\.(MANIFEST-[0-9]+)")
_TABLE = re.compile(r"[0-9]+\.(ldb|sst)")
_LOG = re.compile(r"[0-9]+\.log")
_ANY_LOG = re.compile(r"([0-9]+)(?:-[0-9]+)?\.log")
"""Matches the name of every log, including the additional files in which Pebble continues a log."""
_OTHER_CURRENT = re.compile(r"CURRENT\.([0-9]{1,20}|bak)")
_OPTIONS = re.compile(r"OPTIONS-([0-9]{1,20})")
_INFO_LOG = re.compile(r"LOG(\.old\.[0-9]+)?")

# This text may be untrusted, so the patterns scan each line only once, regardless of its contents.
_OWN_DIRECTORY = re.compile(r"(?m)^(?>.*?manifest file: ?)(.*)/MANIFEST-")
_DIRECTORIES = re.compile(r"(?m)^(?>.*?SST files in )(.*) dir, Total Num|^(?>.*?cf_paths does not yet exist: )(.*)$")
_SEPARATORS = "/\\"
"""These files may contain Windows paths even if the program runs on another system."""
_LOG_DIRECTORY = re.compile(r"(?m)^[ \t]*wal_dir=(.+)$")
_SKIPS_TORN_LOGS = re.compile(rb"(?m)^[ \t]*wal_recovery_mode=k(Skip|Tolerate)")
_ACCEPTS_TORN_LOGS = re.compile(rb"(?m)^[ \t]*strict_wal_tail=false")
_REFUSES_TORN_LOGS = re.compile(rb"(?m)^[ \t]*wal_recovery_mode=kAbsoluteConsistency")

_NETEASE = b"\x80\x1d\x30\x01"
"""If `CURRENT` starts with these bytes, both `CURRENT` and the MANIFEST are encrypted."""

_BATCH = struct.Struct("<QI")
"""A write batch's header: the first sequence number and the number of operations."""


def databases_of(files: Iterable[Input], damaged: Iterable[object]) -> tuple[list[Database], list[tuple[str, OSError]]]:
    """Returns the databases in these files' directories, and the directories that were not read.

    The second list contains the directories that can't be read, and the databases and exports that `unjudged` returns.
    `damaged` contains the paths of damaged logs and of files that aren't logs. Non-string values are ignored.
    """
    files = list(files)
    parts = (os.path.split(file.name) for file in files if file.is_in_directory and "://" not in file.name)
    # The path of a damaged log may name its directory differently than `files` does.
    names: dict[str, set[str]] = defaultdict(set)
    for directory, name in (os.path.split(path) for path in damaged if isinstance(path, str)):
        if _ANY_LOG.fullmatch(name):
            names[os.path.realpath(directory)].add(name)
    databases: list[Database] = []
    failures = unjudged(files)
    for directory in dict.fromkeys(directory for directory, name in parts if _is_of_database(name)):
        try:
            if database := database_in(directory, names[os.path.realpath(directory)]):
                databases.append(database)
        except OSError as error:
            failures.append((directory, error))
    return databases, failures


def _is_of_database(name: str) -> bool:
    return name == "CURRENT" or bool(_MANIFEST.fullmatch(name) or _MARKER.fullmatch(name))


def database_in(directory: str, damaged: Collection[str] = ()) -> Database | None:
    """Checks the database in a directory.

    Args:
        directory: The path of the directory.
        damaged: The names of the damaged files in the directory. Only logs that the engine reads are considered.

    Returns:
        The database, or `None` if the directory doesn't contain one or if NetEase has encrypted it.

    Raises:
        OSError: The directory or a file in it cannot be read.
    """
    database = None
    for _ in range(_READINGS_MAX):
        found = _Directory(directory)
        database = found.database(damaged)
        if database is None or database.ok or _Directory(directory).version == found.version:
            break
    return database


def is_without_record(path: object, number: int | None) -> bool:
    """Checks whether a file is a database's newest log and has no records.

    RocksDB writes new logs over older ones (`recycle_log_file_num`). Until a new log's first record is written, its
    file belongs entirely to the older log.

    Args:
        path: The path of the file. If it isn't a path, the function returns false.
        number: The log number used to read the file. It must match the one in the file's name.
    """
    if not is_path(path):
        return False
    directory, name = os.path.split(os.fsdecode(path))
    with suppress(OSError):
        if number == log_number(name) and (database := database_in(directory or os.curdir)):
            kinds = (problem.kind for problem in database.problems if os.path.basename(problem.path) == name)
            return ProblemKind.LOG_EMPTY in kinds
    return False


class _Manifest:
    """The state of a database after the edits in a MANIFEST are applied.

    Attributes:
        is_intact: Whether the MANIFEST is an undamaged log.
        is_torn: Whether the MANIFEST ends with an incomplete record.
        is_decoded: Whether all edits are known.
        is_of_leveldb: Whether LevelDB supports all fields in the edits.
        numbers: The last value of each numeric field, by field name.
        log_numbers: The smallest log number each column family needs.
        synced_lens: The synced length, in bytes, of each log that RocksDB tracks.
        tables: The tables listed in the MANIFEST.
    """

    def __init__(self, path: str) -> None:
        state = VersionState()
        self.is_intact = self.is_decoded = True
        self.is_torn = False
        try:
            with Reader(path, on_corruption="skip") as reader:
                for record in reader:
                    state.apply(record)
                self.is_intact = reader.ok
                self.is_torn = reader.outcome.kind == OutcomeKind.TORN_TAIL
        except PayloadError:
            self.is_decoded = False
        except (CordwoodError, FileNotFoundError):
            self.is_intact = False
        self.numbers, self.log_numbers, self.synced_lens, self.is_of_leveldb = state.numbers()
        self.tables = state.tables()

    @property
    def oldest_log_number(self) -> int:
        """The number of the oldest log the database needs, or 0 if it needs none."""
        return max(self.numbers.get("min_log_number_to_keep", 0), min(self.log_numbers.values(), default=0))

    @property
    def log_number_min(self) -> int:
        """A lower bound on the numbers of the needed logs, valid even with RocksDB's two-phase transactions."""
        others = (self.numbers.get(kind, 0) for kind in ("min_log_number_to_keep", "prev_log_number"))
        return min([min(self.log_numbers.values(), default=0), *filter(None, others)])

    def fault(self, engine: Engine) -> ProblemKind | None:
        """Returns the problem that could keep the engine from opening a database with this MANIFEST."""
        needed = (
            {"next_file_number"} if engine == Engine.PEBBLE else {"next_file_number", "log_number", "last_sequence"}
        )
        if not self.is_intact:
            return ProblemKind.MANIFEST_DAMAGED
        if not self.is_decoded:
            return ProblemKind.MANIFEST_UNKNOWN
        if needed <= self.numbers.keys():
            return None
        return ProblemKind.MANIFEST_INCOMPLETE if self.numbers else ProblemKind.MANIFEST_EMPTY


class _Directory:
    """The files in a directory at one point in time."""

    def __init__(self, path: str) -> None:
        self.path = path
        with os.scandir(path) as entries:
            # Opening a pipe may block forever.
            self.names = {entry.name for entry in entries if entry.is_file(follow_symlinks=False) or entry.is_symlink()}
        lens = {name: self._len(name) for name in self._matching(_MANIFEST)}
        self.manifests = sorted((name for name in lens if lens[name] is not None), key=_number, reverse=True)
        self.current = self._text("CURRENT")
        markers = [match for match in map(_MARKER.fullmatch, self.names) if match]
        self.marker = max(markers, key=lambda match: int(match[1]), default=None)
        self.version = (self.current, self.marker and self.marker[0], lens)
        """A value that changes whenever the engine changes which files it needs."""
        self._no_record: dict[str, bool] = {}
        """The results of `_has_no_record`, cached because each call reads a log."""

    def _path(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _len(self, name: str) -> int | None:
        """Returns the length of a file in bytes, or `None` if there is no regular file with this name."""
        try:
            status = os.stat(self._path(name))
        except FileNotFoundError:
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def _text(self, name: str) -> bytes | None:
        """Returns the start of a file, or `None` if `_len` returns `None`."""
        with suppress(FileNotFoundError):
            if self._len(name) is not None:
                with open(self._path(name), "rb") as file:
                    return file.read(_TEXT_LEN_MAX)
        return None

    def _matching(self, pattern: re.Pattern[str]) -> list[str]:
        return [name for name in self.names if pattern.fullmatch(name)]

    def database(self, damaged: Collection[str]) -> Database | None:
        """Returns the database, or `None` if there isn't one or if NetEase has encrypted it."""
        if not self._is_database():
            return None
        database = self._judged()
        # If the oldest needed log is unknown, assume that the engine reads every log. An empty file doesn't count as a
        # damaged log.
        oldest = database.log_number_min or 0
        logs = ((name, _ANY_LOG.fullmatch(name)) for name in sorted(damaged))
        needed = [self._path(name) for name, match in logs if match and int(match[1]) >= oldest and self._len(name)]
        # Writes that seem to be missing from the end of a damaged log may be in its damaged part.
        rest = [each for each in database.problems if each.kind != ProblemKind.LOG_CUT or each.path not in needed]
        problems = [*rest, *(Problem(ProblemKind.LOG_DAMAGED, path) for path in needed)]
        # The other problems disappear once the contents of the pointers are fetched.
        pointers = [Problem(kind, problem.path) for problem in problems if (kind := _pointer_kind(problem.path))]
        return database._replace(problems=tuple(pointers or problems))

    def _judged(self) -> Database:
        """Returns the database with all of its problems other than damaged logs."""
        current, name = self._named()
        problems = [Problem(current, self._path("CURRENT"))] if current else []
        problems += [Problem(ProblemKind.CURRENT_OTHER, self._path(other)) for other in self._others() if current]
        manifest = newest = None
        if name is not None and self._len(name) is None:
            problems.append(Problem(ProblemKind.MANIFEST_MISSING, self._path(name)))
        elif name is not None:
            manifest = _Manifest(self._path(name))
            engine = self._engine(manifest)
            if fault := manifest.fault(engine):
                problems.append(Problem(fault, self._path(name)))
                # An incomplete list of files doesn't show which files are missing, or whether another MANIFEST is
                # older.
                if fault in (ProblemKind.MANIFEST_DAMAGED, ProblemKind.MANIFEST_UNKNOWN):
                    return Database(self.path, engine, name, None, None, tuple(problems))
                manifest = None
        if not manifest:
            manifests = ((other, _Manifest(self._path(other))) for other in self.manifests)
            intact = ((other, found) for other, found in manifests if not found.fault(self._engine(found)))
            newest, manifest = next(intact, (None, None))
        engine = self._engine(manifest)
        if manifest:
            problems += self._table_problems(manifest, engine)
            problems += self._log_problems(manifest, engine)
            problems += self._lost_writes(manifest, engine)
            problems += self._missing_writes(manifest)
            problems += self._cut_logs(manifest) if engine == Engine.LEVELDB else self._torn_logs(manifest, engine)
        count, log_number_min = (len(manifest.tables), manifest.log_number_min) if manifest else (None, None)
        return Database(self.path, engine, name, newest, count, tuple(problems), log_number_min)

    def _is_database(self) -> bool:
        above, name = os.path.split(os.path.abspath(self.path))
        # Titan keeps a different kind of MANIFEST in a RocksDB database's "titandb" directory. An engine that repairs a
        # database moves the replaced files to its "lost" directory.
        if name == "titandb" or (name == "lost" and os.path.isfile(os.path.join(above, "CURRENT"))):
            return False
        has_tables, has_logs = bool(self._matching(_TABLE)), bool(self._matching(_LOG))
        if self.marker or (self.current is not None and not self.current.startswith(_NETEASE)):
            return bool(self.marker or self.manifests or has_tables or has_logs)
        if self.current is not None or not self.manifests:
            return False
        # A directory of copied or salvaged logs isn't a database. A database that has never had a `CURRENT` file is
        # empty.
        return has_tables or (has_logs and not self.names.isdisjoint(("LOCK", "LOG", "IDENTITY")))

    def _named(self) -> tuple[ProblemKind | None, str | None]:
        """Returns the problem with `CURRENT`, if any, and the MANIFEST that the marker or `CURRENT` names."""
        if self.marker:
            return None, self.marker[2]
        if self.current is None:
            return ProblemKind.CURRENT_MISSING, None
        first, newline, more = os.fsdecode(self.current).partition("\n")
        if not _MANIFEST.fullmatch(first):
            is_zeros = not self.current.strip(b"\0")
            kind = ProblemKind.CURRENT_ZEROS if is_zeros else ProblemKind.CURRENT_INVALID
            if newline and not more and _MANIFEST.fullmatch(first.removesuffix("\r")):
                kind = ProblemKind.CURRENT_CRLF
            return kind if self.current else ProblemKind.CURRENT_EMPTY, None
        if not newline:
            return ProblemKind.CURRENT_NO_NEWLINE, None
        return (ProblemKind.CURRENT_MORE_LINES, None) if more else (None, first)

    def _others(self) -> list[str]:
        """Returns the file that goleveldb uses instead of a faulty `CURRENT`, if any. The file must name a MANIFEST."""
        names = [name for name in self.names if _OTHER_CURRENT.fullmatch(name)]
        # The newest file comes first, and `CURRENT.bak` last.
        names.sort(key=lambda name: int(name[8:]) if name[8:].isdecimal() else -1, reverse=True)
        return [name for name in names if (self._text(name) or b"").decode(errors="replace")[:-1] in self.manifests][:1]

    def _options(self) -> bytes:
        """Returns the start of the newest RocksDB or Pebble options file, or `b""` if there is none."""
        names = self._matching(_OPTIONS)
        return self._lines(max(names, key=_number)) if names else b""

    def _lines(self, name: str) -> bytes:
        """Returns the start of a text file, with LF line endings even if Git on Windows wrote CR LF."""
        return (self._text(name) or b"").replace(b"\r\n", b"\n")

    def _engine(self, manifest: _Manifest | None) -> Engine:
        if any(name.startswith("marker.") for name in self.names) or b"pebble_version=" in self._options():
            return Engine.PEBBLE
        if "IDENTITY" in self.names or self._options() or (manifest and not manifest.is_of_leveldb):
            return Engine.ROCKSDB
        return Engine.LEVELDB

    def _table_problems(self, manifest: _Manifest, engine: Engine) -> Iterator[Problem]:
        is_sst = engine != Engine.LEVELDB or {name[-3:] for name in self._matching(_TABLE)} == {"sst"}
        suffixes = ("sst", "ldb") if is_sst else ("ldb", "sst")
        missing: dict[int, list[str]] = {}
        found: set[int] = set()
        for family, _, table in manifest.tables:
            name, other = (_file_name(table["file_number"], suffix) for suffix in suffixes)
            table_len = self._len(name)
            if table_len is None and (table_len := self._len(other)) is not None:
                name = other
            if table_len is not None:
                if table["path_id"] == 0:
                    found.add(family)
                if table_len < table["file_len"]:
                    yield Problem(ProblemKind.TABLE_SHORT, self._path(name))
            elif engine != Engine.LEVELDB and table["path_id"] > 0:
                yield Problem(ProblemKind.TABLE_ELSEWHERE, self._path(name))
            else:
                missing.setdefault(family, []).append(name)
        for family, absent in missing.items():
            # A column family's tables with the same path_id are all in the same directory.
            is_elsewhere = family not in found and engine != Engine.LEVELDB and self._may_have_other_directories(engine)
            kind = ProblemKind.TABLE_ELSEWHERE if is_elsewhere else ProblemKind.TABLE_MISSING
            yield from (Problem(kind, self._path(name)) for name in absent)

    def _may_have_other_directories(self, engine: Engine) -> bool:
        """Checks whether RocksDB or Pebble may keep tables in other directories.

        RocksDB's info logs list all table directories (`db_paths`, `cf_paths`). Its options files don't. All backups
        share one directory of tables. Pebble's tables may be in a store.
        """
        above, name = os.path.split(os.path.abspath(self.path))
        backup, private = os.path.split(above)
        if private == "private" and os.path.isfile(os.path.join(backup, "meta", name)):
            return True
        if engine == Engine.PEBBLE:
            return any(name.startswith("REMOTE-OBJ-CATALOG") for name in self.names)
        infos = self._infos()
        for info in infos:
            own = _own_directory(info)
            directories = _DIRECTORIES.findall(info)
            if any((first or second).rstrip(_SEPARATORS) != own for first, second in directories):
                return True
        return not infos

    def _infos(self) -> list[str]:
        """Returns the text of each RocksDB info log."""
        return [text.decode(errors="replace") for name in self._matching(_INFO_LOG) if (text := self._lines(name))]

    def _has_other_log_directory(self) -> bool:
        """Checks whether the options specify another directory for the logs.

        RocksDB versions before 7 always name a log directory in their options, even if it is the database directory
        itself.
        """
        found = _LOG_DIRECTORY.search(self._options().decode(errors="replace"))
        return found is not None and found[1].rstrip(_SEPARATORS) not in map(_own_directory, self._infos())

    def _log_problems(self, manifest: _Manifest, engine: Engine) -> Iterator[Problem]:
        unlisted = self._unlisted_tables(manifest, engine)
        yield from (Problem(ProblemKind.TABLE_UNLISTED, self._path(name)) for name in unlisted)
        # The table was listed by a later edit, which is missing from the torn MANIFEST. After that edit, the engine
        # removed the log that the MANIFEST names.
        if unlisted and manifest.is_torn:
            return
        if engine == Engine.LEVELDB:
            # LevelDB creates a log before writing the edit that names it. LevelDB removes the log only after writing
            # the edit that names the next log.
            for kind in ("log_number", "prev_log_number"):
                name = _file_name(manifest.numbers.get(kind, 0), "log")
                if manifest.numbers.get(kind) and self._len(name) is None:
                    yield Problem(ProblemKind.LOG_MISSING, self._path(name))
            newer = self._newer_table(manifest.numbers["next_file_number"])
            if newer and not unlisted:
                yield Problem(ProblemKind.TABLE_NEWER, self._path(newer))
            return
        if not self._matching(_LOG) and self._has_other_log_directory():
            return
        for number, synced_len in manifest.synced_lens.items():
            name = _file_name(number, "log")
            log_len = self._len(name)
            if log_len is None or log_len < synced_len:
                kind = ProblemKind.LOG_MISSING if log_len is None else ProblemKind.LOG_SHORT
                yield Problem(kind, self._path(name))
        oldest = manifest.oldest_log_number
        # RocksDB removes only the oldest logs. If a column family's log was ever created, it still exists.
        needed = {number for number in (oldest, *manifest.log_numbers.values()) if number >= max(oldest, 1)}
        for number in sorted(needed - manifest.synced_lens.keys()) if not unlisted else ():
            name = _file_name(number, "log")
            if self._len(name) is None:
                yield Problem(ProblemKind.LOG_ABSENT, self._path(name))

    def _lost_writes(self, manifest: _Manifest, engine: Engine) -> Iterator[Problem]:
        """Yields each log without records, or the directory if the database has neither logs nor tables.

        A database without logs or tables either is new or has lost its writes. For LevelDB, only the newest log is
        checked, because the sequence numbers show whether other logs were lost.
        """
        if logs := sorted(self._matching(_LOG), key=_table_or_log_number):
            needed = [] if engine == Engine.LEVELDB else self._needed_logs(manifest)
            for name in dict.fromkeys([*needed, logs[-1]]):
                if self._has_no_record(name, manifest):
                    yield Problem(ProblemKind.LOG_EMPTY, self._path(name))
        elif not (manifest.tables or manifest.oldest_log_number or self._has_other_log_directory()):
            yield Problem(ProblemKind.DATABASE_EMPTY, self.path)

    def _has_no_record(self, name: str, manifest: _Manifest) -> bool:
        """Checks whether a log is empty, contains only zeros, or still holds an older log that will be overwritten."""
        if name not in self._no_record:
            self._no_record[name] = self._is_without_record(name, manifest)
        return self._no_record[name]

    def _is_without_record(self, name: str, manifest: _Manifest) -> bool:
        if not (log_len := self._len(name)):
            return log_len == 0
        number, path = _table_or_log_number(name), self._path(name)
        # A `Reader` would log a warning about the older log. If the log contains records, as it usually does, only the
        # first one is read.
        with suppress(CordwoodError, FileNotFoundError):
            if not verify(path, end=1).record_count and (report := verify(path)).ok and not report.record_count:
                is_newest = number == max(map(_table_or_log_number, self._matching(_LOG)))
                is_recycled = number >= manifest.oldest_log_number and (report.other_log_number or number) < number
                return (is_newest and is_recycled) or report.outcome.zeros_offset == 0
        return False

    def _written_logs(self, manifest: _Manifest) -> list[str]:
        """Returns the needed logs that contain at least one record."""
        return [name for name in self._needed_logs(manifest) if not self._has_no_record(name, manifest)]

    def _missing_writes(self, manifest: _Manifest) -> Iterator[Problem]:
        """Yields the newest log if the MANIFEST's last sequence number is higher than any in the logs.

        The logs must contain write batches.

        The engine writes a sequence number to a log before writing it to the MANIFEST. However, the disk may not keep
        this order, and RocksDB also numbers writes that bypass the log.
        """
        logs = self._written_logs(manifest)
        last = manifest.numbers.get("last_sequence", 0)
        end = 0
        for start, batch_end in self._batches(logs):
            if batch_end > last or start > last:
                return
            end = max(end, batch_end)
        if end:
            yield Problem(ProblemKind.LOG_BEHIND, self._path(logs[-1]), (end, last))

    def _batches(self, logs: list[str]) -> Iterator[tuple[int, int]]:
        """Yields the range `[start, end)` of each write batch's sequence numbers."""
        for name in logs:
            # The log may contain records other than write batches, or a live database may have removed it.
            with (
                suppress(CordwoodError, FileNotFoundError, struct.error),
                Reader(self._path(name), on_corruption="skip") as reader,
            ):
                for record in reader:
                    start, count = _BATCH.unpack_from(record)
                    if count:
                        yield start, start + count

    def _cut_logs(self, manifest: _Manifest) -> Iterator[Problem]:
        """Yields logs that are cut short, empty or torn even though a newer log has later writes.

        LevelDB starts a new log once the previous one is complete. The new log continues the sequence numbers, so a gap
        in the numbers means that writes were lost. An empty log doesn't always leave a gap. A flush closes a log even
        if nothing was written to it. Also, the sequence number in the MANIFEST may be higher than those of the log's
        writes. However, a table that is newer than the next log contains the writes that were once in the empty log.
        This doesn't apply if LevelDB has since recovered the next log.
        """
        from cordwood.payload.write_batch import WriteBatch, sequence_numbers

        logs = self._needed_logs(manifest)
        listed = {table["file_number"] for _, _, table in manifest.tables}
        newest_table = max({*map(_table_or_log_number, self._matching(_TABLE))} - listed, default=0)
        infos = [text for name in ("LOG", "LOG.old") if (text := self._lines(name))]
        end = manifest.numbers["last_sequence"] + 1
        earlier: list[tuple[str, bool, ProblemKind | None]] = []
        # Reading stops at a log without write batches, or at one that a live database has removed.
        with suppress(CordwoodError, FileNotFoundError):
            # Usually, only one log is needed. In that case, it doesn't have to be read here.
            for name in logs if len(logs) > 1 else ():
                number = _table_or_log_number(name)
                with Reader(self._path(name), dialect="leveldb", on_corruption="skip") as reader:
                    found = sequence_numbers(map(WriteBatch, reader))
                    note = ProblemKind.LOG_TORN if reader.outcome.kind == OutcomeKind.TORN_TAIL else None
                if found.start is not None and found.end is not None:
                    recovering = b"Recovering log #%d\n" % number
                    is_flushed = newest_table > number and bool(infos) and not any(recovering in info for info in infos)
                    for place, (log, has_writes, kind) in enumerate(earlier, 1):
                        has_gap = place == len(earlier) and found.start > end
                        is_cut = has_gap or (is_flushed and not has_writes)
                        if fault := ProblemKind.LOG_CUT if is_cut else kind:
                            yield Problem(fault, self._path(log))
                    earlier, end = [], found.end
                is_empty = found.start is None and self._has_no_record(name, manifest)
                kind = ProblemKind.LOG_EMPTY if is_empty else note
                earlier.append((name, found.start is not None, kind))

    def _torn_logs(self, manifest: _Manifest, engine: Engine) -> Iterator[Problem]:
        """Yields RocksDB and Pebble logs that end with an incomplete record even though a newer log exists.

        RocksDB reads the newer log if its sequence numbers continue those of the torn log, which they do after a crash.
        RocksDB also reads it if the options say to skip or tolerate incomplete records. Otherwise, RocksDB refuses to
        open the database, or opens it without the newer logs. With absolute consistency, RocksDB always refuses to open
        the database. Pebble refuses as well.
        """
        from cordwood.payload.write_batch import WriteBatch

        logs = self._written_logs(manifest)
        is_rocksdb = engine == Engine.ROCKSDB
        is_strict = is_rocksdb and not _SKIPS_TORN_LOGS.search(self._options())
        is_refused = bool(_REFUSES_TORN_LOGS.search(self._options()))
        if not is_rocksdb:
            # Pebble may also continue a log in another file.
            is_continued = len(self._matching(_ANY_LOG)) > len(self._matching(_LOG))
            is_refused = not (is_continued or _ACCEPTS_TORN_LOGS.search(self._options()))
        torn: list[tuple[str, int | None]] = []
        end = None
        # Reading stops at a log without write batches, or at one that a live database has removed.
        with suppress(CordwoodError, FileNotFoundError):
            for name in logs if len(logs) > 1 else ():
                log_len = self._len(name)
                with Reader(self._path(name), on_corruption="skip") as reader:
                    first = last = next(reader, None)
                    if first is not None and torn:
                        start = WriteBatch(first).sequence
                        is_cut = is_refused or (is_strict and start != end)
                        kind = ProblemKind.LOG_CUT if is_cut else ProblemKind.LOG_TORN
                        # If a log has grown, it was still being written.
                        yield from (Problem(kind, self._path(log)) for log, old in torn if self._len(log) == old)
                        torn = []
                    if name == logs[-1]:
                        return
                    for record in reader:
                        last = record
                    if reader.outcome.kind == OutcomeKind.TORN_TAIL:
                        torn.append((name, log_len))
                if last is not None:
                    batch = WriteBatch(last)
                    end = batch.sequence + batch.count

    def _needed_logs(self, manifest: _Manifest) -> list[str]:
        """Returns the names of the logs the engine reads, in order."""
        numbered = [(_table_or_log_number(name), name) for name in self._matching(_LOG) if self._len(name) is not None]
        return [name for number, name in sorted(numbered) if number >= manifest.oldest_log_number]

    def _unlisted_tables(self, manifest: _Manifest, engine: Engine) -> list[str]:
        """Returns the tables that the engine removes because the MANIFEST has lost its last edits.

        After a crash, tables can also be newer than the last edit. In that case, however, the log from the time of that
        edit still exists, because the engine removes it only after a later edit. In LevelDB, the last edit names this
        log. In RocksDB, the last edit may name a log that was never created. In older versions of RocksDB, the existing
        log's number is larger than the log number in the edit. A Pebble database doesn't always have a log.

        RocksDB starts a log before writing the previous log's table. In two cases, only the sequence numbers show that
        edits are missing. Either the MANIFEST ends with a complete edit, or the next log was started before the last
        remaining edit was written. The last edit's log is then missing, and the writes between that edit and the first
        log are in neither a log nor a listed table. Writes that bypass the log leave the same kind of gap, but in this
        case the last edit's log still exists.
        """
        next_number, oldest = manifest.numbers["next_file_number"], manifest.oldest_log_number
        listed = {table["file_number"] for _, _, table in manifest.tables}
        names = {_table_or_log_number(name): name for name in self._matching(_TABLE)}
        newer = sorted(number for number in names if number >= next_number and number not in listed)
        logs = {_table_or_log_number(name) for name in self._matching(_LOG)}
        if not newer or engine == Engine.PEBBLE:
            return []
        if engine == Engine.LEVELDB:
            has_log = not oldest or self._len(_file_name(oldest, "log")) is not None
        elif not logs and self._has_other_log_directory():
            return []
        else:
            start, _ = next(self._batches(self._written_logs(manifest)), (0, 0))
            # The first edit doesn't name a log, but the first log's number is smaller than the next file number.
            is_gone = oldest not in logs if oldest else min(logs, default=0) >= next_number
            if is_gone and start > manifest.numbers["last_sequence"] + 1:
                return [names[number] for number in sorted(names.keys() - listed) if number > oldest]
            has_log = any(oldest <= number < (next_number if manifest.is_torn else newer[0]) for number in logs)
        return [] if has_log else [names[number] for number in newer]

    def _newer_table(self, next_number: int) -> str | None:
        """Returns LevelDB's newest table if its number shows that a log may be missing.

        `next_number` is the number of the next file, according to the MANIFEST. LevelDB numbers files consecutively. It
        creates a log, then creates a table from the older log's data, and finally adds the edit that names the new log
        and the table. A compaction creates only tables, so there is no gap before the numbers of those tables.
        """
        tables = {_table_or_log_number(name): name for name in self._matching(_TABLE)}
        without = next(number for number in itertools.count(next_number) if number not in tables)
        has_log = any(_table_or_log_number(name) >= next_number for name in self._matching(_LOG))
        # The log may have been created after the directory was listed.
        has_log = has_log or self._len(_file_name(without, "log")) is not None
        return None if has_log or max(tables, default=0) < without else tables[max(tables)]


_POINTERS = {"Git LFS pointer": ProblemKind.GIT_LFS_POINTER, "git-annex pointer": ProblemKind.GIT_ANNEX_POINTER}
"""The formats of pointers to files whose contents were not fetched."""


def _pointer_kind(path: str) -> ProblemKind | None:
    """Returns what kind of pointer this file is, or `None` if it isn't a pointer."""
    try:
        if os.path.isfile(path):  # Opening a pipe may block forever.
            detect(path)
    except DialectError as error:
        return _POINTERS.get(error.format)
    except (OSError, CordwoodError):
        pass
    return None


def _own_directory(info: str) -> str | None:
    """Returns the directory the database was in when RocksDB wrote this info log."""
    found = _OWN_DIRECTORY.search(info)
    return found and found[1].rstrip(_SEPARATORS)


def log_number(name: str) -> int | None:
    """Returns the log number in this name, or `None` if it isn't the name of a database's log."""
    return _table_or_log_number(name) if _LOG.fullmatch(name) else None


def _number(name: str) -> int:
    """Returns the number at the end of a MANIFEST or options file name."""
    return int(name.rpartition("-")[2])


def _table_or_log_number(name: str) -> int:
    return int(name.partition(".")[0])


def _file_name(number: int, suffix: str) -> str:
    return f"{number:06}.{suffix}"


_CURRENT_TEXTS = {
    ProblemKind.CURRENT_MISSING: "is missing",
    ProblemKind.CURRENT_EMPTY: "is empty",
    ProblemKind.CURRENT_ZEROS: "contains only zeros",
    ProblemKind.CURRENT_NO_NEWLINE: "does not end with a newline",
    ProblemKind.CURRENT_MORE_LINES: "has more than one line",
    ProblemKind.CURRENT_INVALID: "does not name a MANIFEST",
    ProblemKind.CURRENT_CRLF: "ends with CR LF, as Git writes it on Windows without `* -text` in .gitattributes",
    ProblemKind.MANIFEST_MISSING: "names {}, which is missing",
    ProblemKind.MANIFEST_EMPTY: "names {}, which has no usable edit",
    ProblemKind.MANIFEST_INCOMPLETE: "names {}, which lacks the next file, log or sequence number",
    ProblemKind.MANIFEST_DAMAGED: "names {}, which is damaged: its list of tables is not whole",
    ProblemKind.MANIFEST_UNKNOWN: "names {}, which has edits of an unknown kind: its list of tables is not known",
}


def _current_texts(database: Database, names: Mapping[ProblemKind, list[str]]) -> list[str]:
    """Describes what is wrong with `CURRENT` and says which MANIFEST it should name."""
    texts = [text.format(database.manifest) for kind, text in _CURRENT_TEXTS.items() if names[kind]]
    if database.newest_manifest:
        texts.append(f"{database.newest_manifest} is intact and the newest")
    elif database.table_count is None and any(names[kind] for kind in OF_CURRENT):
        texts.append("no MANIFEST is intact")
    others = names[ProblemKind.CURRENT_OTHER]
    return texts + [f"goleveldb opens it by {name}, {database.engine} does not" for name in others]


_CUT = {
    Engine.LEVELDB: "truncated or empty although a newer log has later writes; LevelDB does not report this",
    Engine.ROCKSDB: "torn, and a newer log has later writes: RocksDB would refuse the database, or drop the newer log",
    Engine.PEBBLE: "torn, and a newer log has later writes: Pebble would refuse the database",
}
"""How each engine treats a log whose end is missing."""


def database_lines(database: Database, *, is_brief: bool = False) -> list[tuple[str, str, bool]]:
    """Describes a database in several lines, each with a label, text, and a flag that marks faults.

    With `is_brief`, the MANIFEST and the tables are mentioned only if they are faulty or unusual.
    """
    lines: list[tuple[str, str, bool]] = []
    names: dict[ProblemKind, list[str]] = {kind: [] for kind in ProblemKind}
    for problem in database.problems:
        names[problem.kind].append(os.path.basename(problem.path))
    for kind, program in ((ProblemKind.GIT_LFS_POINTER, "Git LFS"), (ProblemKind.GIT_ANNEX_POINTER, "git-annex")):
        if names[kind]:
            return [("files", f"{_listed(names[kind])} not fetched: {program} left a pointer instead", True)]
    texts = _current_texts(database, names)
    if texts or not is_brief:
        is_fault = bool(texts) and not names[ProblemKind.MANIFEST_UNKNOWN]
        lines.append(("current", "; ".join(texts) or str(database.manifest), is_fault))
    missing, short = names[ProblemKind.TABLE_MISSING], names[ProblemKind.TABLE_SHORT]
    if database.table_count is not None:
        texts = [f"{_listed(missing)} missing"] if missing else []
        texts += [f"{_listed(short)} shorter than the MANIFEST states"] if short else []
        if elsewhere := names[ProblemKind.TABLE_ELSEWHERE]:
            texts.append(f"{_listed(elsewhere)} not in this directory, but maybe in another one of the database")
        here = database.table_count - len(missing) - len(elsewhere)
        if texts:
            text = f"{here:,} of {database.table_count:,}: {'; '.join(texts)}"
            lines.append(("tables", text, bool(missing or short)))
        elif not is_brief:
            lines.append(("tables", f"{here:,}", False))
    if unlisted := names[ProblemKind.TABLE_UNLISTED]:
        text = f"{_listed(unlisted)} newer than the MANIFEST, and not listed in it: {database.engine} would remove"
        lines.append(("tables", f"{text} {'it' if len(unlisted) == 1 else 'them'}", True))
    silently, damaged = "", "would refuse the database, or drop the writes that follow"
    if database.engine == Engine.LEVELDB:
        silently = ", which LevelDB does not report: the writes in it, and in any newer log that is missing, are lost"
        damaged = "drops the rest of each damaged block"
    missing_writes = (problem.missing_sequences for problem in database.problems if problem.missing_sequences)
    behind = "".join(f"{{}} without the writes {first:,} to {last:,}" for first, last in missing_writes)
    behind += ", which the MANIFEST counts: they are lost"
    behind += ", or were written without a log" * (database.engine == Engine.ROCKSDB)
    for kind, text in (
        (ProblemKind.LOG_MISSING, f"{{}} missing{silently}"),
        (ProblemKind.TABLE_NEWER, "a newer log may be missing: {} newer than the MANIFEST"),
        (ProblemKind.LOG_SHORT, "{} shorter than the part that was synced"),
        (ProblemKind.LOG_DAMAGED, f"{{}} damaged: {database.engine} {damaged}"),
        (ProblemKind.LOG_ABSENT, f"{{}} missing; {database.engine} may never have written to it"),
        (ProblemKind.LOG_CUT, f"{{}} {_CUT[database.engine]}"),
        (ProblemKind.LOG_TORN, "{} followed by a newer log, and torn: writes after the incomplete record may be lost"),
        (ProblemKind.LOG_EMPTY, "{} without a record: no write reached it, or its writes were lost"),
        (ProblemKind.LOG_BEHIND, behind),
        (ProblemKind.DATABASE_EMPTY, "no log and no table: no key was written, or all were lost"),
    ):
        if names[kind]:
            lines.append(("log", text.format(_listed(names[kind])), Problem(kind, "").severity == Severity.CORRUPTION))
    return lines


def _listed(names: list[str]) -> str:
    """Joins the first few names and appends the verb."""
    more = f" and {len(names) - _NAMES_MAX:,} more" if len(names) > _NAMES_MAX else ""
    return f"{', '.join(names[:_NAMES_MAX])}{more} {'is' if len(names) == 1 else 'are'}"
