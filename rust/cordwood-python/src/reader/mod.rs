//! The class `Reader`. For its state, see `cursor.rs`; for its iterator classes, see
//! `iterators.rs`.

pub(crate) mod cursor;
pub(crate) mod iterators;
pub(crate) mod log;
pub(crate) mod read_ahead;
pub(crate) mod record_batch;
pub(crate) mod skipped;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cordwood::{Compression, Dialect, Error};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyBytes, PyDict, PyTuple};

use self::cursor::Cursor;
use self::iterators::{ReaderIterator, RecordBatches};
use self::log::log;
use self::read_ahead::{Batches, Stop};
use self::skipped::Skipped;
use crate::exclusive::Exclusive;
use crate::interpreter::fast_call::class_with_next;
use crate::interpreter::python_code::PythonCode;
use crate::io::source::{open_reader, with_options};
use crate::values::error::{closed, to_python};
use crate::values::options::{compression_name, compression_of, dialect_name, dialect_of, named, threads_of};
use crate::values::position::{Start, read_options};
use crate::values::record::Record;
use crate::values::shown::handle_repr;
use crate::values::{Outcome, len_by_reason};

/// Reads the records in a log. Created by `cordwood.open(source)` or `Reader`.
///
/// Iterating yields each record as `bytes`. A torn tail, the incomplete end left by a crash, ends
/// the iteration without an error and is reported by `outcome`. `skipped` lists the bytes that were
/// not returned, so every byte in the file is accounted for. A `with` statement closes the reader;
/// a loop doesn't.
///
/// A reader has a single position. A second loop continues where the first one ended, as does
/// `next(reader)`, which returns the next record.
///
/// Threads may share a reader, and each record goes to exactly one of them. If the source is a path
/// or a buffer, parent and child can both continue reading independently after a fork. If another
/// thread was using the reader at the time of the fork, the child cannot use its copy of the
/// reader: `close` has no effect, and all other calls raise `OSError`.
///
/// A path is opened only once, and the opened file is read to its end, even with several threads.
/// Renaming, replacing or removing the file does not affect the reader. If the file is truncated
/// during reading, the reader returns the records that are left and then raises `OSError`. No
/// record is lost if a step raises a `MemoryError` or an exception from a signal handler, such as
/// `KeyboardInterrupt` for Ctrl-C. The next step then returns the next record.
///
/// Args:
///     source: A path (`str` or `os.PathLike`), the content of a file in memory (`bytes` or any
///         other buffer, including `mmap`), or an object with `read(size)` that returns bytes. A
///         path may name the directory of a segmented log, which is read as a single log whose
///         offsets continue from one segment to the next. A path in `bytes` would be read as
///         content, so convert it with `os.fsdecode`. For an object with `read`, the log starts at
///         the object's current position. If the file behind an `mmap` is truncated while the log
///         is being read, the operating system kills the process (`SIGBUS`). This happens to any
///         program that reads beyond the end of a mapped file. If a file might be truncated, pass
///         its path instead. The source can also be a URL (a `str` such as `"s3://bucket/name"`),
///         an `fsspec.OpenFile` or a `UPath`. These are read through fsspec. A tuple of an obstore
///         store and a path in it is also accepted, and so is an object with `size()` and
///         `read_range(start, end)`. All five kinds are read in ranges of up to 16 MiB, and four
///         ranges are read ahead.
///     dialect: How the bytes of the log are laid out. `"leveldb"`: a log from LevelDB, Datastore,
///         Firestore, App Engine, or RocksDB without recycling. `"rocksdb"`: any RocksDB
///         write-ahead log. `"pebble"`: any Pebble log. `"recyclable"`: a log with the features
///         that RocksDB and Pebble have in common. `"wandb"`: a Weights & Biases run file.
///         `"wandb_old"`: a run file from wandb-core before 0.17.6. `"swanlab"`: a SwanLab run
///         file. With `"auto"`, the dialect is detected from the start of the file. Default:
///         `None`, which means `"auto"`. RocksDB's metadata in a `"leveldb"` or `"recyclable"` log
///         is read if the dialect was detected, but treated as damage if you name the dialect. See
///         `cordwood.types.DetectedDialect`.
///     log_number: The number of a `"rocksdb"`, `"pebble"` or `"recyclable"` log: the low 32 bits
///         of the number in the file's name. Fragments with another number are left over from an
///         older log. If the entire file is left over from an older log, a warning is logged to the
///         `cordwood` logger. Default: `None`, which means the number in the file's name or, if
///         there is none, the number of the first valid fragment.
///     compression: How each record in a `"rocksdb"` log is compressed. The only supported value is
///         `"zstd"`. Default: `None`, which means the compression stated at the start of the log.
///     on_corruption: How to treat damage. `"raise"`: raise `CorruptionError`. The next step
///         resumes after the damage. `"skip"`: continue at the next block, as LevelDB does. For
///         each of the first ten regions, a warning is logged to the `cordwood` logger. Further
///         regions are counted, and their number is logged when the reader reaches the end, seeks
///         or is closed. `"stop"`: treat the damage as the end of the log. `"salvage"`: like
///         `"skip"`, but keep valid records after the damage in the same block. `records()` marks
///         them. Default: `"raise"`.
///     start: Return only the records that start at or after this file offset, in bytes. For a path
///         or URL, this can also be a `Position` in the same log. Default: 0.
///     end: Return only the records that start before this file offset, in bytes. The last record
///         can extend past this offset. A record belongs to the range where its first fragment
///         starts, so adjacent ranges return each record exactly once. Default: `None`, the end of
///         the file.
///     verify_checksums: Verify each checksum. If `False`, damaged data is returned as if it were
///         intact. Default: `True`.
///     record_len_max: The maximum length of a record in bytes. A longer record raises
///         `RecordTooLargeError` under the policy `"raise"`, and is treated like damage under the
///         other policies. There are two more limits for compressed data. In a compressed log, the
///         total length of all records is at most 256 MiB + 200 * (bytes read since the reader was
///         created, or since its last seek). In a packed log, the total length of the records in
///         one container is at most 256 MiB. A record that would exceed one of these two limits
///         raises `RecordTooLargeError` under every policy. The record is neither skipped nor
///         consumed. If `record_len_max` is above the default, it also replaces the 256 MiB in
///         these limits. Default: 1 GiB.
///     storage_options: The arguments for the fsspec file system of a URL, such as
///         `{"endpoint_url": "..."}`. In a list of logs, the arguments are used for each URL.
///         Default: `None`, which means fsspec's own configuration.
///
/// Raises:
///     OSError: The file cannot be opened. If it does not exist, `FileNotFoundError` is raised.
///     OverflowError: An integer is negative or too large for its option.
///     TypeError: `source` has an unsupported type, or is a text file.
///     ModuleNotFoundError: `source` is a URL, but fsspec, or a package that fsspec needs for this
///         URL, is not installed.
///     ValueError: An option has an invalid value, or fsspec does not know the file system of a
///         URL. Also raised if a log number or compression is given for a dialect that does not
///         support it.
///
/// Each step of an iteration over the reader, `records` or `record_batches` can raise:
///
/// * `CorruptionError`: the log is damaged, and the policy is `"raise"`. The next step resumes
///   after the damage.
/// * `RecordTooLargeError`: a record is longer than `record_len_max`, and the policy is `"raise"`.
/// * `DialectError`: the source is not a log. Only the first step raises this.
/// * `OSError`: the source cannot be read.
/// * `ClosedError`: the reader is closed.
/// * `ValueError`: a log number or compression was given, but the detected dialect does not support
///   it.
/// * `RuntimeError`: the source's own `read` uses the reader, or raises `StopIteration`.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> reader = cordwood.Reader("example.log")
/// >>> [record.offset for record in reader.records()]
/// [0, 10]
/// >>> reader.outcome
/// Outcome(kind='clean', offset=20)
#[pyclass(frozen, weakref, module = "cordwood")]
pub(crate) struct Reader {
    /// `None` after `close`.
    cursor: Exclusive<Option<Cursor>>,
    /// The regions that the cursor has skipped and, after `close`, the outcome.
    skipped: Skipped,
    path: Option<PathBuf>,
}

#[pymethods]
impl Reader {
    #[new]
    #[pyo3(signature = (
        source, *, dialect = None, log_number = None, compression = None, on_corruption = "raise", start = Start::default(), end = None, verify_checksums = true,
        record_len_max = 1_073_741_824, storage_options = None
    ), text_signature = "(source, *, dialect=None, log_number=None, compression=None, on_corruption=\"raise\", start=0, end=None, \
        verify_checksums=True, record_len_max=1073741824, storage_options=None)")]
    fn new(
        source: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
        log_number: Option<u32>,
        #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
        on_corruption: &str,
        start: Start,
        end: Option<u64>,
        verify_checksums: bool,
        record_len_max: u64,
        storage_options: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let format = (dialect, log_number, compression);
        let options = read_options(format, (start, end))
            .with_verify_checksums(verify_checksums)
            .with_record_len_max(record_len_max)
            .with_on_corruption(named("on_corruption", on_corruption)?);
        let opened = open_reader(&with_options(source, storage_options)?, options)?;
        let path = opened.reader.path().map(Path::to_owned);
        let skipped = Skipped::default();
        Ok(Reader {
            cursor: Exclusive::new(Some(Cursor::new(opened, skipped.clone()))),
            skipped,
            path,
        })
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Reader::iterator(slf, false)
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyBytes>>> {
        self.next(py, |record| Ok(record.data))
    }

    /// Returns an iterator over the records and their offsets. It shares the reader's position.
    ///
    /// Returns:
    ///     An iterator of `Record`.
    ///
    /// Raises:
    ///     ClosedError: The reader is closed.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     writer.extend([b"one", b"two"])
    /// 2
    /// >>> with cordwood.open("example.log") as reader:
    /// ...     [(record.offset, record.data) for record in reader.records()]
    /// [(0, b'one'), (10, b'two')]
    fn records<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Reader::iterator(slf, true)
    }

    /// Returns an iterator over record batches, which hold many records in a few buffers.
    ///
    /// This is the fastest way to read, because it doesn't create a Python object for each record.
    ///
    /// Args:
    ///     target_len: A batch is complete once it contains at least this many bytes. It is also
    ///         complete once it contains 65,536 records or one record for every 16 bytes of
    ///         `target_len`, whichever is more. A batch may be shorter if the log ends after it, or
    ///         if damage after it has to be reported. Default: 256 KiB.
    ///     threads: Read ahead in this many threads, 1 to 256. Each thread reads a part of 1 to 2
    ///         MiB at a time. If `target_len` is greater than 2 MiB, a part is `target_len` bytes
    ///         long, up to a maximum of 8 MiB. The number of parts in memory exceeds the number of
    ///         threads by at most two. The records and their order are the same for any number of
    ///         threads. Only one thread is used if the source is an object with `read`, if the log
    ///         has log numbers, if the file has fewer than two parts per thread, or if the policy
    ///         is `"stop"`. Default: 1.
    ///
    /// Returns:
    ///     An iterator of `RecordBatch`. Batches are never empty.
    ///
    /// Raises:
    ///     ClosedError: The reader is closed.
    ///     OverflowError: `target_len` is negative or too large.
    ///     ValueError: `threads` is not in the range 1 to 256.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     writer.extend([b"one", b"two"])
    /// 2
    /// >>> with cordwood.open("example.log") as reader:
    /// ...     [(len(batch), batch.end_offset) for batch in reader.record_batches()]
    /// [(2, 20)]
    #[pyo3(signature = (*, target_len = 262_144, threads = 1))]
    fn record_batches(slf: Py<Self>, py: Python<'_>, target_len: usize, threads: isize) -> PyResult<RecordBatches> {
        slf.get().tell(py)?;
        Ok(RecordBatches {
            reader: slf,
            batches: Batches::new(target_len, threads_of(threads)?),
        })
    }

    /// Returns the end of the data returned or skipped so far, as a file offset.
    ///
    /// To continue from this offset later, pass it to `seek`. A torn tail is not skipped: once the
    /// incomplete record has been completed, you can read it from this offset.
    ///
    /// Returns:
    ///     The offset in bytes.
    ///
    /// Raises:
    ///     ClosedError: The reader is closed.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     writer.extend([b"one", b"two"])
    /// 2
    /// >>> with cordwood.open("example.log") as reader:
    /// ...     next(reader), reader.tell()
    /// (b'one', 10)
    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.with_cursor(py, |cursor| Ok(cursor.position()))
    }

    /// Moves to a file offset taken from `Record.offset`, `Record.end_offset` or `tell`.
    ///
    /// Any other offset makes the reader report the bytes there as damage. Seeking resets `skipped`
    /// and `outcome`, and the offset becomes the `start` of the range.
    ///
    /// Args:
    ///     offset: The file offset, in bytes.
    ///
    /// Raises:
    ///     io.UnsupportedOperation: The source cannot seek.
    ///     OSError: Seeking failed.
    ///     ClosedError: The reader is closed.
    ///     OverflowError: `offset` is negative or has more than 64 bits.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     writer.extend([b"one", b"two"])
    /// 2
    /// >>> with cordwood.open("example.log") as reader:
    /// ...     reader.seek(10)
    /// ...     list(reader)
    /// [b'two']
    #[pyo3(signature = (offset, /))]
    fn seek(&self, py: Python<'_>, offset: u64) -> PyResult<()> {
        let messages = self.detached(py, |cursor| cursor.seek(offset))?;
        log(py, messages, self.path.as_deref())
    }

    /// The regions found but not returned so far, up to the first 100,000, ordered by offset.
    ///
    /// Adjacent regions are merged if their reasons are identical, including all details.
    ///
    /// `skipped`, `skipped_len` and `outcome` can still be read after the reader is closed.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        self.skipped_regions(py)?.tuple(py)
    }

    /// True if no damage has been found so far.
    ///
    /// Only regions with severity `"corruption"` count as damage; a torn tail doesn't. There may be
    /// damage even if `outcome` is `"clean"`, because `outcome` describes only the end of the file.
    #[getter]
    fn ok(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.skipped_regions(py)?.is_ok())
    }

    /// The number of bytes not returned so far, including any regions that aren't in `skipped`.
    #[getter]
    fn skipped_len(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.skipped_regions(py)?.len())
    }

    /// How reading ended. `"unfinished"` until it ends.
    #[getter]
    fn outcome(&self, py: Python<'_>) -> PyResult<Outcome> {
        Ok(match &*self.cursor.lock(py)? {
            Some(cursor) => cursor.outcome(),
            None => self.skipped.outcome(),
        })
    }

    /// The log's dialect, such as `"leveldb"`.
    ///
    /// Reads the source if the dialect has to be detected.
    ///
    /// Raises:
    ///     DialectError: The source is not a log.
    ///     OSError: The source cannot be read.
    ///     ClosedError: The reader is closed.
    #[getter]
    fn dialect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dialect_name(py, self.format(py)?.dialect)
    }

    /// Whether the dialect was specified or can be detected.
    ///
    /// If the dialect is unknown, the log is read as `"leveldb"`. Reads the source if the dialect
    /// has to be detected.
    ///
    /// Raises:
    ///     DialectError: The source is not a log.
    ///     OSError: The source cannot be read.
    ///     ClosedError: The reader is closed.
    #[getter]
    fn dialect_known(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.detached(py, |cursor| cursor.reader.detect())?.is_some())
    }

    /// The log's number. `None` if the dialect has no log numbers or the number isn't known.
    ///
    /// Reads the source if the number has to be detected.
    ///
    /// Raises:
    ///     DialectError: The source is not a log.
    ///     OSError: The source cannot be read.
    ///     ClosedError: The reader is closed.
    #[getter]
    fn log_number(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        Ok(self.format(py)?.log_number)
    }

    /// How each record is compressed: `"zstd"`, or `None` if records are not compressed.
    ///
    /// Reads the source if the compression has to be detected.
    ///
    /// Raises:
    ///     DialectError: The source is not a log.
    ///     OSError: The source cannot be read.
    ///     ClosedError: The reader is closed.
    #[getter]
    fn compression(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(compression_name(self.format(py)?))
    }

    /// The number of another log if everything read so far belongs to that log, otherwise `None`.
    ///
    /// This is never the number in the file's name or in `log_number`. A value other than `None`
    /// has one of two causes: either the file was recycled and no record has been written to the
    /// new log yet, or the file was renamed or copied.
    ///
    /// Raises:
    ///     ClosedError: The reader is closed.
    #[getter]
    fn other_log_number(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.with_cursor(py, |cursor| Ok(cursor.reader.info().other_log_number))
    }

    /// The path, the URL, or the `name` of an object with `read_range`. `None` for other sources.
    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.path.as_deref().map(Path::as_os_str)
    }

    /// Whether `close` has been called.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.cursor.lock(py)?.is_none())
    }

    /// Releases the source. A file object that was passed in stays open. Closing twice is allowed.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     _ = writer.append(b"one")
    /// >>> reader = cordwood.open("example.log")
    /// >>> reader.close()
    /// >>> reader.closed, reader.skipped
    /// (True, ())
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        // If a forked child can never use its copy of the reader, the copy is left as it is.
        let Some(mut cursor) = self.cursor.lock_unless_lost(py)? else {
            return Ok(());
        };
        let Some(mut open) = cursor.take() else {
            return Ok(());
        };
        self.skipped.set_outcome(open.outcome());
        let messages = [open.logged.summary(), None];
        drop(cursor);
        // The source is released without holding the lock, because releasing a Python object may
        // run Python code.
        drop(open);
        log(py, messages, self.path.as_deref())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A thread using the reader keeps it alive, along with all objects it refers to.
        let cursor = self.cursor.try_lock();
        let referent = cursor.as_ref().and_then(|cursor| cursor.as_ref()?.referent.as_ref());
        visit.call(referent.map(|referent| &***referent))
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().tell(py)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised), text_signature = "($self, exc_type, exc, traceback, /)")]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        // A reader is not closed while another thread is using it.
        let is_closed = matches!(self.cursor.try_lock().as_deref(), Some(None));
        handle_repr("Reader", self.path.as_deref(), is_closed)
    }
}

impl Reader {
    fn iterator<'py>(slf: &Bound<'py, Self>, has_offsets: bool) -> PyResult<Bound<'py, PyAny>> {
        slf.get().tell(slf.py())?;
        class_with_next::<ReaderIterator>(slf.py()).run((slf, has_offsets))
    }

    /// Returns the log's format.
    fn format(&self, py: Python<'_>) -> PyResult<cordwood::LogFormat> {
        self.detached(py, |cursor| cursor.reader.format())
    }

    /// Releases the interpreter lock while calling `use_it`, which may read the source.
    fn detached<T: Send>(
        &self,
        py: Python<'_>,
        use_it: impl FnOnce(&mut Cursor) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.with_cursor(py, |cursor| {
            let _owner = self.cursor.may_run_python();
            py.detach(|| use_it(cursor))
                .map_err(|error| to_python(py, error, self.path.as_deref()))
        })
    }

    #[inline]
    fn with_cursor<T>(&self, py: Python<'_>, use_it: impl FnOnce(&mut Cursor) -> PyResult<T>) -> PyResult<T> {
        let used = self.cursor.lock(py)?.as_mut().map(use_it);
        used.unwrap_or_else(|| Err(closed(py, "reader", self.path.as_deref())))
    }

    /// Returns the regions skipped so far, even after the reader has been closed. Waits while
    /// another thread is using the reader.
    fn skipped_regions(&self, py: Python<'_>) -> PyResult<&Skipped> {
        drop(self.cursor.lock(py)?);
        Ok(&self.skipped)
    }

    /// Returns the next record. `make` converts it, and must not run Python code. If the conversion
    /// fails, the next call returns the same record.
    fn next<T>(&self, py: Python<'_>, make: impl Fn(Record) -> PyResult<T>) -> PyResult<Option<T>> {
        self.find(py, |cursor| cursor.next(py, &make))
    }

    /// Returns the finding from `find_it`, or `None` at the end. Logs messages, such as those about
    /// skipped regions. The reader is unlocked before a message is logged or an error is raised, so
    /// that other threads can use it.
    fn find<T>(&self, py: Python<'_>, mut find_it: impl FnMut(&mut Cursor) -> Result<T, Stop>) -> PyResult<Option<T>> {
        loop {
            let (found, messages) = self.with_cursor(py, |cursor| {
                let _owner = self.cursor.may_run_python();
                let mut found = find_it(cursor);
                let messages = cursor.report(&mut found);
                Ok((found, messages))
            })?;
            log(py, messages, self.path.as_deref())?;
            match found {
                Ok(found) => return Ok(Some(found)),
                Err(Stop::Skipped(_)) => {}
                Err(Stop::Raised(error)) => return Err(error),
                Err(Stop::Failed(error)) => return Err(to_python(py, error, self.path.as_deref())),
                Err(Stop::End) => return Ok(None),
            }
        }
    }
}

/// Makes a reader leave out the records that the policy `"salvage"` marks as salvaged.
///
/// The reader then returns the same records as under the policy `"skip"`. Call this before reading
/// the first record, and do not combine it with `record_batches` in several threads.
///
/// Args:
///     reader: The reader.
#[pyfunction]
#[pyo3(signature = (reader, /))]
pub(crate) fn leave_out_salvaged(py: Python<'_>, reader: &Reader) -> PyResult<()> {
    reader.with_cursor(py, |cursor| {
        cursor.reader.leave_out_salvaged();
        Ok(())
    })
}

/// Returns how many records and bytes a reader has left out.
///
/// Args:
///     reader: The reader.
///
/// Returns:
///     The number of records that `leave_out_salvaged` has left out so far, and a dictionary with
///     the number of skipped bytes for each reason.
#[pyfunction]
#[pyo3(signature = (reader, /))]
pub(crate) fn left_out<'py>(py: Python<'py>, reader: &Reader) -> PyResult<(u64, Bound<'py, PyDict>)> {
    let (count, findings) = reader.with_cursor(py, |cursor| {
        Ok((cursor.reader.left_out_count(), cursor.skipped.findings()))
    })?;
    Ok((count, len_by_reason(py, &findings)?))
}
