//! The function `index` and the class `RecordIndex`.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use cordwood::read::{IndexedLog, RecordBatch};
use cordwood::{Compression, Dialect, Error, ReadOptions};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PySlice, PyTuple};

use crate::interpreter::imported;
use crate::interpreter::python_code::PythonCode;
use crate::io::source::open_path;
use crate::memory::buffer::{no_memory, try_bytes, vec_for};
use crate::ops::watched::{Watch, watched};
use crate::values::arguments::{place_of, refuse_url, required_path};
use crate::values::error::{call_python, check_signals, closed, to_python};
use crate::values::options::{compression_of, dialect_name, dialect_of, named};
use crate::values::position::{Position, Start, read_options};
use crate::values::shown::handle_repr;

/// Reads records from logs by index. Created by `cordwood.index`.
///
/// `index[i]` is a record. Indices start at 0, and negative indices count from the end.
/// `index[i:j]` is a list of records. Any number of threads, and even a forked process, can use an
/// index at the same time. An index can be pickled; once unpickled, it opens the files again by
/// their absolute paths. A log may grow after it has been indexed. Reading raises `LogChangedError`
/// if a reopened path leads to a different log, or if a record no longer starts at its old offset.
#[pyclass(frozen, weakref, module = "cordwood")]
pub(crate) struct RecordIndex {
    index: cordwood::RecordIndex,
    options: ReadOptions,
    is_closed: AtomicBool,
}

/// How many bytes of records to read before converting them to `bytes`.
const BATCH_LEN: usize = 1 << 20;

impl RecordIndex {
    fn new(logs: Vec<IndexedLog>, options: ReadOptions) -> PyResult<Self> {
        let index = cordwood::RecordIndex::of_logs(logs, options.clone());
        isize::try_from(index.len()).map_err(|_| PyOverflowError::new_err("the logs have too many records"))?;
        Ok(RecordIndex {
            index,
            options,
            is_closed: AtomicBool::new(false),
        })
    }

    /// Returns the log's path if the index has exactly one log.
    fn path(&self) -> Option<&Path> {
        match self.index.logs() {
            [log] => Some(&log.path),
            _ => None,
        }
    }

    /// Releases the interpreter lock while running `work`, which may read files.
    fn reading<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
        self.check_open(py)?;
        let done = py.detach(work);
        if self.is_closed() {
            self.index.close_files();
        }
        done.map_err(|error| to_python(py, error, None))
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    fn check_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_closed() {
            return Err(closed(py, "index", self.path()));
        }
        Ok(())
    }

    /// Converts an index, which may be negative, to one that counts from 0.
    fn place_of(&self, index: &Bound<'_, PyAny>) -> PyResult<u64> {
        let len = self.index.len();
        place_of(index, len)?.ok_or_else(|| {
            let shown = index.str().map(|shown| shown.to_string()).unwrap_or_default();
            PyIndexError::new_err(format!("the index {shown} is out of range: there are {len} records"))
        })
    }

    fn list<'py>(&self, py: Python<'py>, indices: &[u64]) -> PyResult<Bound<'py, PyList>> {
        let mut records: Vec<Option<Py<PyBytes>>> = vec_for(indices.len())?;
        records.resize_with(indices.len(), || None);
        let (mut batch, mut places) = (RecordBatch::default(), Vec::new());
        self.reading(py, || {
            self.index.read(indices, |place, record| {
                // The offsets of the records are not needed.
                batch.push(record, 0, 0).map_err(io::Error::from)?;
                places.push(place);
                if batch.is_full(BATCH_LEN) {
                    call_python(|py| convert(py, &mut batch, &mut places, &mut records))?;
                }
                Ok(())
            })
        })?;
        convert(py, &mut batch, &mut places, &mut records)?;
        PyList::new(py, records)
    }
}

/// Converts the records of a batch to `bytes`, and moves them to their places in the list.
fn convert(
    py: Python<'_>,
    batch: &mut RecordBatch,
    places: &mut Vec<usize>,
    records: &mut [Option<Py<PyBytes>>],
) -> PyResult<()> {
    check_signals(py)?;
    for (place, record) in places.drain(..).zip(batch.iter()) {
        records[place] = Some(try_bytes(py, record)?.unbind());
    }
    batch.clear();
    Ok(())
}

#[pymethods]
impl RecordIndex {
    /// The number of records.
    fn __len__(&self) -> usize {
        self.index.len() as usize
    }

    /// Returns the record with this index, or a list of the records in a slice.
    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let slice = slice.indices(self.index.len() as isize)?;
            let mut indices = vec_for(slice.slicelength)?;
            indices.extend((0..slice.slicelength).map(|nth| (slice.start + nth as isize * slice.step) as u64));
            return Ok(self.list(py, &indices)?.into_any());
        }
        let at = self.place_of(index)?;
        let record = self.reading(py, || self.index.get(at))?;
        Ok(try_bytes(py, &record.unwrap_or_default())?.into_any())
    }

    /// Returns several records. This is faster than one call for each record.
    ///
    /// Records near each other are read together.
    ///
    /// Args:
    ///     indices: The indices of the records, in any order. They may be negative, and an index
    ///         may be repeated.
    ///
    /// Returns:
    ///     The records, in the order of `indices`.
    ///
    /// Raises:
    ///     ClosedError: The index is closed.
    ///     CorruptionError: A record has become damaged since it was indexed, and `on_corruption` is
    ///         `"raise"`.
    ///     IndexError: An index is out of range.
    ///     LogChangedError: A log has changed since it was indexed.
    ///     OSError: A file cannot be opened or read.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     writer.extend([b"one", b"two", b"three"])
    /// 3
    /// >>> cordwood.index("example.log").read([2, 0, -1])
    /// [b'three', b'one', b'three']
    fn read<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let mut places = Vec::new();
        for index in indices.items()? {
            places.try_reserve(1).map_err(|_| no_memory())?;
            places.push(self.place_of(&index?)?);
        }
        self.list(py, &places)
    }

    /// Equivalent to `read`. PyTorch and other data loaders call this to get a batch.
    fn __getitems__<'py>(&self, py: Python<'py>, indices: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.read(py, indices)
    }

    /// Returns the path of the log that contains a record, and the record's offset in that log.
    ///
    /// This reads the record.
    ///
    /// Args:
    ///     index: The record's index, which may be negative.
    ///
    /// Returns:
    ///     The log's path, and the record's offset in the log, in bytes.
    ///
    /// Raises:
    ///     IndexError: There is no record with this index.
    ///     Exception: Same as for `read`.
    ///
    /// >>> with cordwood.open("example.log", "w") as writer:
    /// ...     writer.extend([b"one", b"two", b"three"])
    /// 3
    /// >>> cordwood.index("example.log").place(1)
    /// ('example.log', 10)
    fn place<'py>(&'py self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Option<(&'py OsStr, u64)>> {
        let at = self.place_of(index)?;
        let found = self.reading(py, || self.index.place(at))?;
        Ok(found.map(|(path, offset)| (path.as_os_str(), offset)))
    }

    /// Closes the files.
    ///
    /// Calls already running in other threads still return their records; later calls raise
    /// `ClosedError`. Closing the index again has no effect.
    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.index.close_files();
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().check_open(py)?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised), text_signature = "($self, exc_type, exc, traceback, /)")]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let logs = self.index.logs().iter().map(|log| {
            Ok((
                std::path::absolute(&log.path)?,
                log.position.to_string(),
                log.record_count,
                pickled(py, &log.offsets)?,
                pickled(py, &log.near_damage)?,
                pickled(py, &log.exact_offsets)?,
            ))
        });
        let options = &self.options;
        let arguments = (
            logs.collect::<PyResult<Vec<_>>>()?,
            options.dialect.map(|dialect| dialect_name(py, dialect)).transpose()?,
            options.log_number,
            options.compression.map(Compression::as_str),
            options.on_corruption.to_string(),
        );
        (imported!(py, "cordwood._native", "restored_index")?, arguments).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        handle_repr("RecordIndex", self.path(), self.is_closed())
    }
}

/// A pickled log: its path, the position after its last record, its number of records, and three
/// lists of numbers.
type PickledLog<'py> = (
    PathBuf,
    String,
    u64,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

/// Pickles a list of numbers, each as 8 little-endian bytes.
fn pickled<'py>(py: Python<'py>, numbers: &[u64]) -> PyResult<Bound<'py, PyBytes>> {
    let mut bytes: Vec<u8> = vec_for(numbers.len().saturating_mul(8))?;
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    try_bytes(py, &bytes)
}

/// Restores numbers from their [pickled] form.
fn unpickled(bytes: &Bound<'_, PyBytes>) -> PyResult<Vec<u64>> {
    match bytes.as_bytes().as_chunks() {
        (numbers, []) => Ok(numbers.iter().copied().map(u64::from_le_bytes).collect()),
        _ => Err(PyValueError::new_err("an offset has 8 bytes")),
    }
}

/// Restores a pickled index.
///
/// Args:
///     logs: One tuple per log, with the path, the position after the last record, the number of
///         records, and three pickled lists of numbers.
///     dialect: Same as for `index`.
///     log_number: Same as for `index`.
///     compression: Same as for `index`.
///     on_corruption: Same as for `index`.
///
/// Returns:
///     The index.
#[pyfunction]
pub(crate) fn restored_index(
    logs: Vec<PickledLog<'_>>,
    #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
    log_number: Option<u32>,
    #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
    on_corruption: &str,
) -> PyResult<RecordIndex> {
    let options = read_options((dialect, log_number, compression), (Start::default(), None))
        .with_on_corruption(named("on_corruption", on_corruption)?);
    let logs = logs
        .into_iter()
        .map(|(path, position, record_count, offsets, near_damage, exact_offsets)| {
            Ok(IndexedLog {
                path,
                position: Position::new(&position)?.0,
                record_count,
                offsets: unpickled(&offsets)?,
                near_damage: unpickled(&near_damage)?,
                exact_offsets: unpickled(&exact_offsets)?,
            })
        });
    RecordIndex::new(logs.collect::<PyResult<_>>()?, options)
}

/// A source with its `Split`, if it has one.
type WithSplit<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Indexes the records in one or more logs, so that any record can be read by its number.
///
/// Creating the index reads each log once. The index takes 8 bytes of memory for every 16 records,
/// plus 8 bytes for each record near damage. Files are opened as needed; at most 64 stay open,
/// taking 264 KiB of memory each. To return a record, the index reads and checks the group of 16
/// records that contains it or, in a packed log, a block of 32 KiB or more.
///
/// A `Reader` is faster for reading all records in order.
///
/// Args:
///     sources: The path of a log or a segmented log, a directory, a pattern such as `"*.log"`, or
///         an iterable of these. A directory stands for all logs in it and its subdirectories. The
///         records are numbered in the order of the sources. URLs, bytes and objects with `read`
///         are not accepted.
///     dialect: Same as for `Reader`.
///     log_number: Same as for `Reader`.
///     compression: Same as for `Reader`.
///     on_corruption: Same as for `Reader`. Under a policy other than `"raise"`, lost records are
///         not numbered. Default: `"raise"`.
///
/// Returns:
///     A `RecordIndex`, which can be pickled and used by any number of threads.
///
/// Raises:
///     CorruptionError: A log is damaged, and `on_corruption` is `"raise"`.
///     DialectError: A file is not a log.
///     OSError: A file cannot be opened or read, or is not a regular file.
///     TypeError: A source has an unsupported type.
///     ValueError: A source is a URL, or an option has an invalid value.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend(b"record %d" % number for number in range(1000))
/// 1000
/// >>> index = cordwood.index("example.log")
/// >>> len(index), index[500], index[-1], index[10:12]
/// (1000, b'record 500', b'record 999', [b'record 10', b'record 11'])
#[pyfunction]
#[pyo3(signature = (sources, *, dialect = None, log_number = None, compression = None, on_corruption = "raise"))]
pub(crate) fn index(
    sources: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
    log_number: Option<u32>,
    #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
    on_corruption: &str,
) -> PyResult<RecordIndex> {
    let py = sources.py();
    let options = read_options((dialect, log_number, compression), (Start::default(), None))
        .with_on_corruption(named("on_corruption", on_corruption)?);
    options.check().map_err(|error| to_python(py, error, None))?;
    let logs_of = imported!(py, "cordwood._many", "logs_of")?;
    let (sources, _): (Vec<WithSplit<'_>>, bool) = logs_of.run((sources, py.None(), PyDict::new(py)))?.extract()?;
    let mut logs = Vec::new();
    for (source, split) in sources {
        if !split.is_none() {
            return Err(PyTypeError::new_err("a Split is a part of a log: pass its path"));
        }
        refuse_url(&source, "an index reads files: copy it to a file first")?;
        let path = required_path("a source", &source)?;
        let failed = |error| to_python(py, error, Some(&path));
        let opened = py.detach(|| open_path(&path, options.clone())).map_err(failed)?;
        let watch = Watch::new(None, None);
        let source = watched(opened.reader.into_inner(), &watch);
        let mut reader = cordwood::Reader::with_source(source, options.clone());
        logs.push(watch.run(py, 1, || IndexedLog::of(&mut reader))?.map_err(failed)?);
    }
    RecordIndex::new(logs, options)
}
