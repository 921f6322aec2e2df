//! The class `Writer`.

use std::ffi::{CString, OsStr};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Duration;

use cordwood::damage::Finding;
use cordwood::write::{LogStatus, Process};
use cordwood::{
    Compression, Dialect, Error, ErrorKind, LogFile, LogFileOptions, LogFormat, OnTornTail, SegmentedLog, SyncPolicy,
    WriterOptions,
};
use pyo3::exceptions::{PyResourceWarning, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString, PyTuple};

use crate::arrow::import::Column;
use crate::exclusive::Exclusive;
use crate::interpreter::fast_call::{FastAppend, FastClass};
use crate::interpreter::interned;
use crate::interpreter::kept_exception::KeptException;
use crate::interpreter::python_code::{Held, PythonCode};
use crate::io::sink::ObjectOutput;
use crate::log_on_disk::LogOnDisk;
use crate::memory::buffer::new_int;
use crate::open_logs::{self, AtEnd};
use crate::reader::record_batch::RecordBatch;
use crate::values::SkippedRegion;
use crate::values::arguments::{bytes_of, path_of, refuse_text, refuse_url};
use crate::values::error::{check_signals, check_signals_anywhere, closed, to_python, unsupported};
use crate::values::options::{
    compression_name, compression_of, dialect_name, dialect_of, named, sync_policy_of, time_of, unknown_name,
};
use crate::values::shown::handle_repr;

/// The limit for appending a record without a write. The buffered bytes and the record together
/// must be shorter than this. The core's buffer holds 256 KiB, and the remaining 1 KiB is more than
/// enough for a record's headers and trailers.
const BUFFERED_MAX: usize = (1 << 18) - 1024;

/// The number of bytes that `extend` collects before appending them. A batch of this length fits in
/// the processor's cache.
const BATCH_LEN: usize = 128 << 10;

/// The number of records that `extend` collects for a file. Each batch requires one write.
const FILE_BATCH_COUNT: usize = 1024;

/// The number of records that `extend` collects for an object. Larger batches wouldn't save any
/// calls, because the object's `write` is called only when the writer's buffer is full. The
/// first-level cache can hold the headers of this many Python objects until the objects are
/// released.
const OBJECT_BATCH_COUNT: usize = 256;

enum Sink {
    /// A file opened by cordwood, or a directory of segments.
    Disk(LogOnDisk),
    /// An object with `write`.
    Object(Exclusive<Object>),
}

struct Object {
    /// `None` once the writer is closed.
    writer: Option<cordwood::Writer<ObjectOutput>>,
    durable_offset: u64,
}

/// These methods match those of [`LogOnDisk`].
impl Object {
    fn writer(&mut self) -> Result<&mut cordwood::Writer<ObjectOutput>, Error> {
        self.writer.as_mut().ok_or_else(|| ErrorKind::Closed.into())
    }

    fn append_sync(&mut self, record: &[u8]) -> Result<u64, Error> {
        let offset = self.writer()?.append(record)?;
        self.sync()?;
        Ok(offset)
    }

    fn sync(&mut self) -> Result<(), Error> {
        let writer = self.writer()?;
        if !writer.has_failed() {
            writer.get_mut().check_sync()?;
        }
        writer.sync_with(|sink| sink.sync())?;
        self.durable_offset = writer.offset();
        Ok(())
    }

    fn wait_durable(&mut self, offset: u64) -> Result<(), Error> {
        let end = self.writer()?.offset();
        if offset > end {
            let text = format!("the offset {offset} is after the end of the log, {end}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text).into());
        }
        if offset > self.durable_offset {
            self.sync()?;
        }
        Ok(())
    }

    fn status(&self) -> LogStatus {
        let mut status = LogStatus::default();
        status.durable_offset = self.durable_offset;
        match &self.writer {
            Some(writer) => (status.offset, status.has_failed) = (writer.offset(), writer.has_failed()),
            None => status.is_closed = true,
        }
        status
    }
}

/// Writes records to a log, byte for byte as LevelDB does.
///
/// To create a writer, call `cordwood.open(sink, "w")` or `cordwood.Writer(sink)`.
///
/// By default, once `append` has returned, the record survives even if this process crashes or is
/// killed. Synced records also survive a machine crash. A `with` statement closes the writer.
///
/// Threads may share a writer, and each record is written whole. A file stays locked until its
/// writer is closed. The lock keeps out a second writer in this process, and in any other process
/// that checks the lock. All programs that use cordwood check it. A writer belongs to the process
/// that opened it: in a forked child, `append`, `extend`, `flush` and `sync` raise `OSError`, and
/// closing or dropping the writer has no effect.
///
/// A failed write to a file is undone: the file is truncated to the end of its last complete
/// record, and the writer stays usable. If the write can't be undone, or a sync fails, every later
/// call fails. It is then impossible to tell which bytes after `durable_offset` are on disk, and a
/// second sync would not help. To recover, close the log and reopen it with `"a"` in this process.
/// Reopening rewrites the uncertain part. If a write to an object fails, the writer does not use
/// the object again.
///
/// An unclosed writer writes its buffer and warns (`ResourceWarning`) when it is dropped or when
/// the garbage collector finds it in a cycle. A failure at that point is reported through
/// `sys.unraisablehook` and doesn't replace an exception that is already being raised. When the
/// program ends, cordwood also flushes and closes each unclosed writer with a warning, even if a
/// running thread is using the writer.
///
/// Args:
///     sink: A path (`str` or `os.PathLike`), or an object with `write(data)`. For an object, the
///         log starts at its current position. `data` is a read-only `memoryview` whose bytes never
///         change, so the object may keep it.
///     mode: `"x"`: create a file, and fail if it exists. `"w"`: create a file, replacing any
///         existing one. `"a"`: append to the file, or create it if it does not exist. For an
///         object, pass `"x"` or `"w"`, which are equivalent. Default: `"x"`.
///     dialect: How the bytes are laid out, as in `Reader`. For Pebble, closing also writes the
///         end-of-log trailer. Default: `None`, which means `"leveldb"` for a new file. If `"a"`
///         opens an existing file, `None` means the dialect that `Reader` detects.
///     log_number: The log number, for `"rocksdb"`, `"pebble"` and `"recyclable"`. Each fragment
///         carries it. You cannot append to a log with a number. Default: `None`. The fragments
///         then carry no number and are laid out as in `"leveldb"`, even if the file's name
///         contains a number.
///     compression: How to compress each record, for `"rocksdb"`. The only supported value is
///         `"zstd"`. You cannot append to a compressed log. Default: `None`, which means that
///         records are not compressed.
///     flush: For a path, when to pass records to the operating system, which keeps them even after
///         this process ends. `"append"`: before each `append` returns. Each record takes one
///         write, or one write per 256 KiB if it is longer. `extend` makes one write per 1,024
///         records or 128 KiB. `"close"`: up to 256 KiB of records are buffered until `flush`,
///         `sync` or `close`. If the sink is an object, you cannot pass `flush`: records are always
///         buffered, as under `"close"`. Default: `None`, which means `"append"`.
///     sync: When to wait for records to reach the disk, apart from calls to `sync()` and
///         `append(..., sync=True)`. `"never"`: only in those calls. However, each segment of a
///         segmented log is synced before the next one starts. `"close"`: when the writer is
///         closed. `"append"`: before each `append` returns, and when the writer is closed.
///         Default: `"never"`.
///     sync_interval: A time in seconds. An `append` also syncs if the last sync was at least this
///         long ago. Closing the writer syncs too. No thread runs in the background, so a sync
///         never happens just because time has passed. You cannot combine `sync_interval` with
///         `sync`. Default: `None`.
///     on_torn_tail: For `"a"`, how to treat a file that does not end with a complete record.
///         `"refuse"`: raise an exception. `"truncate"`: cut off the bytes that a crash may have
///         left after the last complete record. An exception is raised if there is any other
///         damage, if a single flipped bit can explain the damage, or if the file has no valid
///         fragment. `"pad"`: keep every byte, damaged or not, and continue in the next block.
///         Readers keep reporting the skipped bytes. A damaged file that has no valid fragment
///         raises an exception, unless you pass `dialect` and a crash may have left the file in
///         this state. Default: `"refuse"`.
///     checkpoint: For `"a"`, a file offset where a record starts or ends, such as an earlier
///         `durable_offset`. Everything before the checkpoint must be on disk. The writer reads the
///         file from the checkpoint onward to find the end of the log, then rewrites the bytes
///         after the checkpoint so that the next sync covers them. If the checkpoint is greater
///         than 0, the file must exist. Default: `None`. The file is then read from the start, and
///         bytes are rewritten only if a sync of this file has failed in this process.
///     segment_len: For `"a"`, the maximum length of a segment in bytes. Pass `segment_len` to
///         write a segmented log, which is a directory of files. A segment is longer only if its
///         first record doesn't fit. `sink` is the directory, which is created if it does not
///         exist. All offsets, including `checkpoint`, are log offsets: they continue from one
///         segment to the next. The dialect is `"leveldb"` or `"packed"`. Only the last segment is
///         read. Default: `None`, which means that the log is one file.
///     retention_bytes: The number of bytes to keep in the older segments of a segmented log. Each
///         time a new segment starts, the oldest segments are removed, as long as at least this
///         many bytes remain before the new segment. Only closed and synced segments are removed,
///         whether or not a reader has read them. Default: `None`, which keeps all segments.
///     retention_time: The number of seconds to keep a segment of a segmented log. Each time a new
///         segment starts, segments are removed, oldest first. Removal stops at the first segment
///         whose file has changed within this time. If a segment's last change is in the future,
///         that segment and all later ones are kept. Default: `None`, which keeps all segments.
///     record_len_max: The maximum length of a record in bytes. A longer record raises
///         `RecordTooLargeError`. For `"a"`, this also limits how much of a packed log is
///         decompressed to find its end. The rules are the same as for a `Reader`. Default: 1 GiB,
///         as in `Reader`. A `Reader` needs a higher `record_len_max` to read records longer than 1
///         GiB.
///
/// Raises:
///     OSError: The file cannot be opened, its name (such as `000012.log`) contains a log number
///         other than `log_number`, or no record starts or ends at `checkpoint`. In mode `"x"`,
///         `FileExistsError` is raised if the file exists. With a `checkpoint`, `FileNotFoundError`
///         is raised if the file is missing.
///     BlockingIOError: Another writer has the file open.
///     TornTailError: In mode `"a"`, the file ends with an incomplete record or with zeros, and
///         `on_torn_tail` is `"refuse"`.
///     CorruptionError: In mode `"a"`, the file is damaged in a way that `on_torn_tail` does not
///         accept.
///     DialectError: In mode `"a"`, the file is not a log, or not in the given dialect. Also raised
///         if the log has a log number or is compressed, because you cannot append to such a log.
///     OverflowError: An integer is negative or too large for its option.
///     TypeError: `sink` is not a path and has no `write`, or is a text file.
///     ValueError: An option has an invalid value or is not allowed here, such as a log number or
///         compression for a dialect that does not support it.
///
/// >>> with cordwood.Writer("example.log", "w") as writer:
/// ...     writer.append(b"one")
/// 0
/// >>> with cordwood.Writer("example.log", "a", sync="close") as writer:
/// ...     writer.append(b"two")
/// 10
/// >>> writer.durable_offset
/// 20
#[pyclass(frozen, weakref, subclass, module = "cordwood")]
pub(crate) struct Writer(Arc<Log>);

impl Deref for Writer {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.0
    }
}

/// A writer's log. It is shared because [`close_all`] closes every log still open at the end of the
/// program.
pub(crate) struct Log {
    sink: Sink,
    path: Option<PathBuf>,
    discarded_tail: Option<cordwood::damage::SkippedRegion>,
    format: LogFormat,
    /// The process that opened the log.
    owner: u64,
    /// Whether the program is exiting. If it is, a writer whose sink is an object doesn't accept
    /// any more records.
    is_ending: AtomicBool,
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (
        sink, mode = "x", *, dialect = None, log_number = None, compression = None, flush = None, sync = "never", sync_interval = None, on_torn_tail = "refuse", checkpoint = None, segment_len = None,
        retention_bytes = None, retention_time = None, record_len_max = 1_073_741_824
    ))]
    fn new(
        sink: &Bound<'_, PyAny>,
        mode: &str,
        #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
        log_number: Option<u32>,
        #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
        flush: Option<&str>,
        sync: &str,
        sync_interval: Option<f64>,
        on_torn_tail: &str,
        checkpoint: Option<u64>,
        segment_len: Option<u64>,
        retention_bytes: Option<u64>,
        retention_time: Option<f64>,
        record_len_max: u64,
    ) -> PyResult<Self> {
        if mode == "r" {
            return Err(PyValueError::new_err(
                "a writer has the modes 'w', 'x' and 'a': cordwood.open(path) opens a log to read it",
            ));
        }
        if !matches!(mode, "x" | "w" | "a") {
            return Err(unknown_name("mode", &["r", "w", "x", "a"], mode));
        }
        let sync_interval = sync_interval.map(|time| time_of("sync_interval", time)).transpose()?;
        let retention_time = retention_time.map(|time| time_of("retention_time", time)).transpose()?;
        let options = LogFileOptions::default()
            .with_retention_bytes(retention_bytes)
            .with_retention_time(retention_time)
            .with_sync(sync_policy_of(sync, sync_interval)?)
            .with_on_torn_tail(named("on_torn_tail", on_torn_tail)?)
            .with_checkpoint(checkpoint)
            .with_record_len_max(record_len_max)
            .with_dialect(dialect)
            .with_log_number(log_number)
            .with_compression(compression);
        if mode != "a" && (options.on_torn_tail != OnTornTail::Refuse || checkpoint.is_some()) {
            return Err(PyValueError::new_err(
                "on_torn_tail and checkpoint are for mode 'a', which reads the log that is there",
            ));
        }
        let options = match segment_len {
            Some(0) => return Err(PyValueError::new_err("segment_len must be at least 1")),
            Some(_) if mode != "a" => {
                return Err(PyValueError::new_err(
                    "segment_len is for mode 'a', which starts a segmented log or appends to it",
                ));
            }
            Some(len) => options.with_segment_len(len),
            None if retention_bytes.is_some() || retention_time.is_some() => {
                return Err(PyValueError::new_err(
                    "retention_bytes and retention_time are for a segmented log: pass segment_len",
                ));
            }
            None => options,
        };
        let flush = flush.map(|flush| named("flush", flush)).transpose()?;
        let advice = match mode {
            "a" => "URLs can only be read; mode 'a' needs the path of a file",
            _ => "URLs can only be read; to write there, pass an open file",
        };
        refuse_url(sink, advice)?;
        let log = match path_of(sink)? {
            Some(path) => {
                let options = options.with_flush(flush.unwrap_or_default());
                Log::open(sink.py(), path, mode, segment_len.is_some(), options)?
            }
            None if flush.is_some() || segment_len.is_some() => return Err(PyValueError::new_err(NEEDS_A_PATH)),
            None => Log::with_object(sink, mode, &options)?,
        };
        let log = Arc::new(log);
        open_logs::add(sink.py(), log.clone())?;
        Ok(Writer(log))
    }

    /// Appends a record.
    ///
    /// Args:
    ///     record: `bytes` or any other buffer.
    ///     sync: Wait until the record and everything before it are on disk. Threads that wait
    ///         at the same time share one sync. Default: `False`.
    ///
    /// Returns:
    ///     The file offset of the header of the record's first fragment, in bytes.
    ///
    /// Raises:
    ///     OSError: A write or a sync failed. The message says how many bytes are on disk and
    ///         whether the writer can still be used. If the write was undone, the record is not in
    ///         the log. If only the sync failed, the record may be in the log.
    ///     TypeError: `record` is not bytes-like.
    ///     ClosedError: The writer is closed.
    ///     RecordTooLargeError: The record is longer than `record_len_max`. The record is not in
    ///         the log.
    ///     MemoryError: There is not enough memory for the record, so it is not in the log. If
    ///         memory runs out only when the returned offset is created, the record is in the log,
    ///         and `tell()` returns the offset after it.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     writer.append(b"one"), writer.append(b"two", sync=True)
    /// (0, 10)
    #[pyo3(signature = (record, /, *, sync = false))]
    fn append<'py>(&self, record: &Bound<'py, PyAny>, sync: bool) -> PyResult<Bound<'py, PyAny>> {
        let py = record.py();
        let bytes = bytes_of("record", record)?;
        new_int(py, self.append_bytes(py, bytes.as_bytes(), sync)?)
    }

    /// Appends all records from an iterable or an Arrow column.
    ///
    /// For a column from pyarrow, polars or another library, this doesn't create a Python object
    /// for each record.
    ///
    /// If this raises an exception, the records before the error are already in the log. After a
    /// failed write, however, the log lacks the records that had not reached the file yet, possibly
    /// all of them. `tell` returns the offset where the log ends.
    ///
    /// Args:
    ///     records: An iterable of `bytes` or other buffers, or a column of bytes or text, such as
    ///         a column of a `pyarrow.Table`. A column must have `__arrow_c_array__` or
    ///         `__arrow_c_stream__`. Its text is appended as UTF-8.
    ///
    /// Returns:
    ///     The number of records appended.
    ///
    /// Raises:
    ///     OSError: Same as for `append`. Also raised if the column's stream fails.
    ///     TypeError: A record is not bytes-like, or `records` is a single record, a string, a
    ///         table, or a column of a type other than bytes or text.
    ///     ValueError: A record in a column is null. The message contains the record's index.
    ///     ClosedError: The writer is closed.
    ///     MemoryError: Same as for `append`.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     writer.extend([b"one", b"two"])
    /// 2
    #[pyo3(signature = (records, /))]
    fn extend(&self, records: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = records.py();
        if is_one_record(records) {
            let class = records.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "records must be an iterable of records, not {class}: append(record) takes one record"
            )));
        }
        // The length of a list can be determined without a Python call, which would cost as much as
        // appending a short record.
        if let Ok(list) = records.cast_exact::<PyList>() {
            return self.extend_from(py, list.iter().map(Ok));
        }
        // A `RecordBatch` would be imported as a table, so iterate over it to get its records.
        if !records.is_instance_of::<RecordBatch>()
            && let Some(column) = Column::of(records)?
        {
            return self.extend_from_column(py, column);
        }
        self.extend_from(py, records.items()?)
    }

    /// Returns the log's length, including records that have not been written out yet.
    ///
    /// Returns:
    ///     The length in bytes, which is also the file offset after the last record.
    ///
    /// Raises:
    ///     ClosedError: The writer is closed.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     writer.append(b"one"), writer.tell()
    /// (0, 10)
    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        match self.status(py)? {
            LogStatus { is_closed: true, .. } => Err(closed(py, "writer", self.path.as_deref())),
            LogStatus { offset, .. } => Ok(offset),
        }
    }

    /// Passes all records appended so far to the operating system or to the sink.
    ///
    /// The records then survive if this process ends or crashes, but not if the machine crashes.
    ///
    /// Raises:
    ///     OSError: Same as for `append`.
    ///     ClosedError: The writer is closed.
    ///
    /// >>> with cordwood.open("example.log", "w", flush="close") as writer:
    /// ...     _ = writer.append(b"one")
    /// ...     writer.flush()
    /// ...     list(cordwood.open("example.log"))
    /// [b'one']
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with_sink(py, LogOnDisk::flush, |object| object.writer()?.flush())
    }

    /// Flushes the records and waits until they are on disk.
    ///
    /// For a new file, this also makes its directory entry durable.
    ///
    /// Raises:
    ///     OSError: The records may not have reached the disk. A failed sync can't be retried, so
    ///         the writer stays unusable.
    ///     io.UnsupportedOperation: The sink doesn't have a file descriptor.
    ///     ClosedError: The writer is closed.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     _ = writer.append(b"one")
    /// ...     writer.sync()
    /// ...     writer.durable_offset
    /// 10
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.with_sink(py, LogOnDisk::sync, Object::sync)
    }

    /// Waits until every byte before an offset is on disk, without appending a record.
    ///
    /// For example, one thread can append while another waits for the offset that `tell()` returns
    /// after the append. If a sync already running in another thread covers the offset, this call
    /// waits for that sync. Otherwise, it syncs. Ctrl-C raises `KeyboardInterrupt` only after the
    /// sync.
    ///
    /// Args:
    ///     offset: A file offset, in bytes. To wait for a record, pass the offset that `tell()`
    ///         returns after its `append`. The offset returned by `append` is the start of the
    ///         record.
    ///
    /// Raises:
    ///     OSError: A write or a sync failed, as in `sync`. Also raised if `offset` is past the end
    ///         of the log (`errno.EINVAL`).
    ///     OverflowError: `offset` is negative.
    ///     io.UnsupportedOperation: The sink doesn't have a file descriptor.
    ///     ClosedError: The writer is closed.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     _ = writer.append(b"one")
    /// ...     writer.wait_durable(writer.tell())
    /// ...     writer.durable_offset
    /// 10
    #[pyo3(signature = (offset, /))]
    fn wait_durable(&self, py: Python<'_>, offset: u64) -> PyResult<()> {
        self.with_sink(py, |log| log.wait_durable(offset), |object| object.wait_durable(offset))
    }

    /// Starts a new segment in a segmented log now, unless the last segment has no records.
    ///
    /// Without this call, a new segment starts when a record would make the last segment longer
    /// than `segment_len`.
    ///
    /// Returns:
    ///     The log offset where the last segment starts, in bytes.
    ///
    /// Raises:
    ///     OSError: The segment cannot be created. The writer stays usable. Also raised if a write
    ///         or a sync fails, as in `sync`.
    ///     io.UnsupportedOperation: The log is not segmented.
    ///     ClosedError: The writer is closed.
    ///
    /// >>> with cordwood.open("orders", "a", segment_len=64 << 20) as writer:
    /// ...     _ = writer.append(b"one")
    /// ...     writer.rotate()
    /// 10
    fn rotate(&self, py: Python<'_>) -> PyResult<u64> {
        let log = self.segments(py)?;
        py.detach(|| log.rotate()).map_err(|error| self.raised(py, error))
    }

    /// Removes the segments that end at or before an offset, starting with the oldest.
    ///
    /// The last segment is never removed.
    ///
    /// Other threads can append during this call. After a crash, some of these segments may still
    /// exist, but there is never a gap between the ones that remain.
    ///
    /// Args:
    ///     offset: A log offset, in bytes. Records at or after this offset are kept.
    ///
    /// Returns:
    ///     The new `first_offset`.
    ///
    /// Raises:
    ///     OSError: A segment cannot be removed. The writer stays usable. Also raised if a sync
    ///         fails, as in `sync`.
    ///     OverflowError: `offset` is negative.
    ///     io.UnsupportedOperation: The log is not segmented.
    ///     ClosedError: The writer is closed.
    ///
    /// >>> with cordwood.open("orders", "a", segment_len=64 << 20) as writer:
    /// ...     _ = writer.append(b"one")
    /// ...     end = writer.rotate()
    /// ...     writer.prune_before(end), writer.first_offset
    /// (10, 10)
    #[pyo3(signature = (offset, /))]
    fn prune_before(&self, py: Python<'_>, offset: u64) -> PyResult<u64> {
        let log = self.segments(py)?;
        py.detach(|| log.prune_before(offset))
            .map_err(|error| self.raised(py, error))
    }

    /// The log offset of the first byte that still exists, or 0 if the log is not segmented.
    #[getter]
    fn first_offset(&self) -> u64 {
        match &self.sink {
            Sink::Disk(LogOnDisk::Segments(log)) => log.first_offset(),
            _ => 0,
        }
    }

    /// Everything before this file offset is on disk and survives a machine crash.
    ///
    /// Until this writer's first sync, this offset is 0, or the start of the last segment in a
    /// segmented log. You can still read this attribute after the writer is closed.
    #[getter]
    fn durable_offset(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.status(py)?.durable_offset)
    }

    /// The region that followed the last complete record when `"a"` opened the log, or `None`.
    ///
    /// The region was cut off or kept, depending on `on_torn_tail`.
    #[getter]
    fn discarded_tail(&self) -> Option<SkippedRegion> {
        self.discarded_tail.map(|region| SkippedRegion(Finding::new(region)))
    }

    /// The dialect that records are written in, such as `"leveldb"`.
    #[getter]
    fn dialect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dialect_name(py, self.format.dialect)
    }

    /// The log number in each fragment, or `None` if fragments don't contain a number.
    #[getter]
    fn log_number(&self) -> Option<u32> {
        self.format.log_number
    }

    /// How each record is compressed: `"zstd"`, or `None` if records are not compressed.
    #[getter]
    fn compression(&self) -> Option<&'static str> {
        compression_name(self.format)
    }

    /// The path, or `None` if the sink is an object.
    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.path.as_deref().map(Path::as_os_str)
    }

    /// Whether `close` has been called.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.status(py)?.is_closed)
    }

    /// Flushes, syncs if `sync` requires it, and closes the file. Closing twice is allowed.
    ///
    /// If other threads are waiting for a sync, this call waits until the sync is done. Afterwards,
    /// another writer can open the file. In a forked child, this only closes the child's copy of
    /// the descriptor.
    ///
    /// A sink that is an object is flushed but not closed.
    ///
    /// Raises:
    ///     OSError: A write or a sync failed. The writer is closed even if this exception is
    ///         raised.
    ///
    /// >>> writer = cordwood.open("example.log", "w")
    /// >>> writer.append(b"one")
    /// 0
    /// >>> writer.close()
    /// >>> list(cordwood.open("example.log"))
    /// [b'one']
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().tell(py)?;
        Ok(slf)
    }

    // The garbage collector calls this for a writer in a cycle while all objects in the cycle are
    // still intact. The writer can therefore still write to a sink that refers back to it. A writer
    // outside a cycle is [dropped](Drop) instead.
    fn __del__(&self, py: Python<'_>) {
        if self.is_unclosed() {
            self.finalize(py, self.close(py));
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Sink::Object(object) = &self.sink else {
            return Ok(());
        };
        // If the lock is held, a thread is using the writer. That thread keeps the writer alive,
        // along with all objects that the writer refers to.
        let mut object = object.try_lock();
        let writer = object.as_mut().and_then(|object| object.writer.as_mut());
        visit.call(writer.map(|writer| &*writer.get_mut().0))
    }

    #[pyo3(signature = (exc_type, *_rest), text_signature = "($self, exc_type, exc, traceback, /)")]
    fn __exit__(&self, py: Python<'_>, exc_type: &Bound<'_, PyAny>, _rest: &Bound<'_, PyTuple>) -> PyResult<()> {
        // In a forked child, closing has no effect and cannot fail.
        let had_failed = !self.is_forked() && self.status(py)?.has_failed;
        match self.close(py) {
            // The writer had already failed, and the exception from that failure is propagating.
            Err(_) if had_failed && !exc_type.is_none() => Ok(()),
            closed => closed,
        }
    }

    fn __repr__(&self) -> String {
        self.shown()
    }
}

impl Log {
    fn open(py: Python<'_>, path: PathBuf, mode: &str, is_segmented: bool, options: LogFileOptions) -> PyResult<Self> {
        // Reading the file can take a long time.
        let log = py
            .detach(|| match mode {
                _ if is_segmented => {
                    SegmentedLog::open_unless(&path, options, &check_signals_anywhere).map(LogOnDisk::Segments)
                }
                "x" => LogFile::create_new(&path, options).map(LogOnDisk::File),
                "w" => LogFile::create(&path, options).map(LogOnDisk::File),
                _ => LogFile::append_to_unless(&path, options, &check_signals_anywhere).map(LogOnDisk::File),
            })
            .map_err(|error| to_python(py, error, Some(&path)))?;
        Ok(Log {
            owner: Process::current().number(),
            is_ending: AtomicBool::new(false),
            discarded_tail: log.discarded_tail(),
            format: log.format(),
            sink: Sink::Disk(log),
            path: Some(path),
        })
    }

    fn with_object(sink: &Bound<'_, PyAny>, mode: &str, options: &LogFileOptions) -> PyResult<Self> {
        if !sink.hasattr(interned!(sink.py(), "write")?)? {
            let name = sink.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "sink must be a path or an object with write(data), not {name}"
            )));
        }
        if mode == "a" {
            return Err(PyValueError::new_err(
                "mode 'a' needs a path: the log has to be read before it is appended to",
            ));
        }
        if options.sync != SyncPolicy::Never {
            return Err(PyValueError::new_err(NEEDS_A_PATH));
        }
        refuse_text(sink)?;
        let options = WriterOptions::default()
            .with_dialect(options.dialect)
            .with_log_number(options.log_number)
            .with_compression(options.compression)
            .with_record_len_max(options.record_len_max);
        let writer = cordwood::Writer::with_options(ObjectOutput(Held::new(sink)), options);
        let writer = writer.map_err(|error| to_python(sink.py(), error, None))?;
        let format = writer.format();
        Ok(Log {
            sink: Sink::Object(Exclusive::new(Object {
                writer: Some(writer),
                durable_offset: 0,
            })),
            path: None,
            discarded_tail: None,
            format,
            owner: Process::current().number(),
            is_ending: AtomicBool::new(false),
        })
    }

    fn extend_from<'py>(
        &self,
        py: Python<'py>,
        mut records: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<u64> {
        let mut count = 0;
        loop {
            // Taking records from the iterable runs Python code, so the lock isn't held here. The
            // whole batch is then appended at once.
            let (batch, is_last) = next_batch(&mut records, self.batch_count());
            // Extending a closed writer is an error even if there are no records, but this error
            // must not replace an exception from the iterable.
            if !batch.is_empty() || (count == 0 && is_last.is_ok()) {
                let slices: Vec<&[u8]> = batch.iter().map(|record| record.as_bytes()).collect();
                self.extend_by(py, &slices)?;
                count += slices.len() as u64;
            }
            if is_last? {
                return Ok(count);
            }
            // Taking records from a long list doesn't run Python code, so check for signals here.
            check_signals(py)?;
        }
    }

    fn extend_from_column(&self, py: Python<'_>, mut column: Column) -> PyResult<u64> {
        let mut count = 0;
        // Extending a closed writer is an error even if there are no records.
        self.extend_by(py, &[])?;
        while let Some(array) = column.next(py)? {
            let mut start = 0;
            while start < array.len() {
                let (records, fault) = array.records(start, self.batch_count(), BATCH_LEN);
                self.extend_by(py, &records)?;
                start += records.len();
                count += records.len() as u64;
                if let Some(fault) = fault {
                    let message = format!("the record at index {count} of the column {fault}");
                    return Err(PyValueError::new_err(message));
                }
                check_signals(py)?;
            }
        }
        Ok(count)
    }

    /// Releases the interpreter lock and appends these records together.
    fn extend_by(&self, py: Python<'_>, records: &[&[u8]]) -> PyResult<()> {
        self.with_sink(py, |log| log.extend(records), |object| object.writer()?.extend(records))?;
        Ok(())
    }

    /// The maximum number of records that `extend` appends together.
    fn batch_count(&self) -> usize {
        match self.sink {
            Sink::Disk(_) => FILE_BATCH_COUNT,
            Sink::Object(_) => OBJECT_BATCH_COUNT,
        }
    }

    fn append_bytes(&self, py: Python<'_>, record: &[u8], sync: bool) -> PyResult<u64> {
        if sync {
            return self.with_sink(py, |log| log.append_sync(record), |object| object.append_sync(record));
        }
        match self.append_now(record) {
            Some(offset) => Ok(offset),
            None => self.with_sink(py, |log| log.append(record), |object| object.writer()?.append(record)),
        }
    }

    /// Appends a record, but only if the call doesn't have to wait or run Python code. Otherwise,
    /// or if the append fails, returns `None` without appending anything.
    #[inline]
    fn append_now(&self, record: &[u8]) -> Option<u64> {
        match &self.sink {
            Sink::Disk(log) => log.try_append(record).ok().flatten(),
            Sink::Object(object) => self.append_buffered(object, record),
        }
    }

    /// Appends a record to the buffer if there is room for it. The sink must be an object.
    #[inline(never)]
    fn append_buffered(&self, object: &Exclusive<Object>, record: &[u8]) -> Option<u64> {
        let mut state = object.try_lock().filter(|_| !self.is_forked())?;
        let _owner = object.may_run_python();
        let writer = state.writer.as_mut()?;
        let has_room = writer.buffered_len() + record.len() < BUFFERED_MAX;
        has_room.then(|| writer.append(record).ok()).flatten()
    }

    /// Releases the interpreter lock and calls the closure for this kind of sink.
    fn with_sink<T: Send>(
        &self,
        py: Python<'_>,
        on_disk: impl FnOnce(&LogOnDisk) -> Result<T, Error> + Send,
        to_object: impl FnOnce(&mut Object) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let done = match &self.sink {
            Sink::Disk(log) => py.detach(|| on_disk(log)),
            Sink::Object(object) => {
                let mut state = self.object(py, object)?;
                let _owner = object.may_run_python();
                let state = &mut *state;
                py.detach(|| to_object(state))
            }
        };
        done.map_err(|error| self.raised(py, error))
    }

    /// Checks whether this process is a forked child of the process that opened the writer.
    fn is_forked(&self) -> bool {
        Process::current().number() != self.owner
    }

    /// Locks a writer whose sink is an object. Fails in a forked child and while the program is
    /// exiting.
    fn object<'a>(&self, py: Python<'_>, object: &'a Exclusive<Object>) -> PyResult<MutexGuard<'a, Object>> {
        if self.is_forked() {
            return Err(self.raised(py, ErrorKind::Forked.into()));
        }
        if self.is_ending.load(Relaxed) {
            return Err(self.raised(py, ErrorKind::Closed.into()));
        }
        object.lock(py)
    }

    /// Returns the state. If another thread is writing, this call releases the interpreter lock and
    /// waits for that thread. Otherwise, it keeps the interpreter lock, because getting that lock
    /// back can take a long time.
    ///
    /// The state is also available in a forked child, with one exception. This call fails if the
    /// sink is an object and another thread was using the writer at the time of the fork, because
    /// no thread in the child would ever release the writer's lock.
    fn status(&self, py: Python<'_>) -> PyResult<LogStatus> {
        match (self.try_status(), &self.sink) {
            (Some(status), _) => Ok(status),
            (None, Sink::Disk(log)) => Ok(py.detach(|| log.status())),
            (None, Sink::Object(object)) => Ok(self.object(py, object)?.status()),
        }
    }

    /// Returns the state, or `None` if another thread is writing.
    fn try_status(&self) -> Option<LogStatus> {
        match &self.sink {
            Sink::Disk(log) => log.try_status(),
            Sink::Object(object) => object.try_lock().map(|object| object.status()),
        }
    }

    /// Returns the segmented log. Fails if the log is not segmented.
    fn segments(&self, py: Python<'_>) -> PyResult<&SegmentedLog> {
        match &self.sink {
            Sink::Disk(LogOnDisk::Segments(log)) => Ok(log),
            _ => Err(unsupported(
                py,
                "only a segmented log is rotated and pruned: open(directory, 'a', segment_len=...)",
            )),
        }
    }

    fn shown(&self) -> String {
        // A writer is not closed while another thread is using it.
        let is_closed = self.try_status().is_some_and(|status| status.is_closed);
        handle_repr("Writer", self.path.as_deref(), is_closed)
    }

    /// Checks whether the writer still needs to be closed. Returns `false` while another thread is
    /// using it, and in a forked child.
    fn is_unclosed(&self) -> bool {
        !self.is_forked() && self.try_status().is_some_and(|status| !status.is_closed)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match &self.sink {
            Sink::Disk(log) => py.detach(|| log.close()).map_err(|error| self.raised(py, error)),
            // Only the process that opened the writer may write its buffer. A forked child drops
            // its copy of the buffer.
            Sink::Object(object) if self.is_forked() => {
                drop(object.try_lock().and_then(|mut state| state.writer.take()));
                Ok(())
            }
            Sink::Object(object) => finish(py, object.lock(py)?),
        }
    }

    /// Warns about an unclosed writer. If closing it failed, the error is reported as an unraisable
    /// exception.
    fn finalize(&self, py: Python<'_>, closed: PyResult<()>) {
        // A path cannot contain a NUL byte, so this cannot fail.
        let message = CString::new(format!("unclosed writer {}", self.shown())).unwrap_or_default();
        let warned = PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &message, 1);
        for error in [closed, warned].into_iter().filter_map(Result::err) {
            error.write_unraisable(py, None);
        }
    }

    #[cold]
    fn raised(&self, py: Python<'_>, error: Error) -> PyErr {
        to_python(py, error, self.path.as_deref())
    }
}

impl AtEnd for Log {
    fn close_at_end(&self, py: Python<'_>) {
        if self.is_forked() {
            return;
        }
        let closed = match &self.sink {
            Sink::Disk(log) if py.detach(|| log.status()).is_closed => return,
            Sink::Disk(_) => self.close(py),
            Sink::Object(object) => {
                // Reject further appends. Otherwise, a thread that keeps appending would rarely
                // leave the lock free.
                self.is_ending.store(true, Relaxed);
                match locked_soon(py, object) {
                    Some(object) if object.writer.is_none() => return,
                    Some(object) => finish(py, object),
                    None => Err(PyRuntimeError::new_err(
                        "the last records may be lost: another thread is writing to the object, and does not end",
                    )),
                }
            }
        };
        self.finalize(py, closed);
    }
}

/// Closes a writer whose sink is an object.
fn finish(py: Python<'_>, mut object: MutexGuard<'_, Object>) -> PyResult<()> {
    let writer = object.writer.take();
    // Writing to an object runs Python code, so the writer's lock is released first. The
    // interpreter lock isn't released, because the garbage collector may find unclosed objects at
    // the end of the program. A thread that releases the interpreter lock at that point never gets
    // it back.
    drop(object);
    let finished = writer.map_or(Ok(()), |writer| writer.finish().map(drop));
    finished.map_err(|error| to_python(py, error, None))
}

/// Locks a writer whose sink is an object. Returns `None` if another thread has held the lock for a
/// second. That thread may be waiting forever, for example for the reader of a pipe.
fn locked_soon<'a>(py: Python<'_>, object: &'a Exclusive<Object>) -> Option<MutexGuard<'a, Object>> {
    for _ in 0..100 {
        if let Some(locked) = object.try_lock() {
            return Some(locked);
        }
        py.detach(|| thread::sleep(Duration::from_millis(10)));
    }
    None
}

const NEEDS_A_PATH: &str = "flush, sync, sync_interval and segment_len require a path; \
     for an object, call flush() or sync()";

/// Checks whether `records` is a single record or a string, since iterating over either would yield
/// numbers or characters.
fn is_one_record(records: &Bound<'_, PyAny>) -> bool {
    records.is_instance_of::<PyBytes>()
        || records.is_instance_of::<PyByteArray>()
        || records.is_instance_of::<PyMemoryView>()
        || records.is_instance_of::<PyString>()
}

/// Returns up to `count_max` records for `extend` to append together, and whether the iterable has
/// ended. The second value is an error if the iterable raised an exception after these records.
fn next_batch<'py>(
    records: &mut impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    count_max: usize,
) -> (Vec<Bound<'py, PyBytes>>, PyResult<bool>) {
    let mut batch = Vec::with_capacity(records.size_hint().0.min(count_max));
    let mut len = 0;
    while len < BATCH_LEN && batch.len() < count_max {
        let bytes_of = |record: Bound<'py, PyAny>| match record.cast_into_exact() {
            Ok(bytes) => Ok(bytes),
            Err(other) => bytes_of("a record", &other.into_inner()),
        };
        match records.next().map(|record| bytes_of(record?)) {
            Some(Ok(bytes)) => {
                len += bytes.as_bytes().len();
                batch.push(bytes);
            }
            Some(Err(error)) => return (batch, Err(error)),
            None => return (batch, Ok(true)),
        }
    }
    (batch, Ok(false))
}

static FAST_CLASS: FastClass = FastClass::new();

impl FastAppend for Writer {
    const FAST_CLASS: &'static FastClass = &FAST_CLASS;

    #[inline]
    fn append_now(&self, record: &[u8]) -> Option<u64> {
        self.0.append_now(record)
    }

    fn append<'py>(&self, record: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.append(record, false)
    }
}

/// A writer that is dropped without being closed writes its buffer and warns, as Python's files do.
impl Drop for Writer {
    fn drop(&mut self) {
        if !self.is_unclosed() {
            return;
        }
        // During interpreter shutdown, attaching fails and no warning is issued.
        let _ = Python::try_attach(|py| {
            // A writer may be dropped because of an exception. Python doesn't allow calls while an
            // exception is set, so the exception is set aside.
            let _kept = KeptException::new(py);
            self.finalize(py, self.close(py));
        });
    }
}
