//! `scan` and the class `Scan`.

use std::sync::{Arc, Mutex};

use cordwood::{Compression, Dialect};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyCapsule, PyDict, PyString, PyTuple};

use super::source::Source;
use super::stream::{Plan, Stream};
use crate::arrow::columns::Column;
use crate::arrow::{schema_capsule, stream_capsule};
use crate::interpreter::imported;
use crate::interpreter::python_code::PythonCode;
use crate::io::source::with_options;
use crate::reader::skipped::Skipped;
use crate::values::error::{note_main_thread, to_python};
use crate::values::options::{compression_of, dialect_name, dialect_of, named, threads_of};
use crate::values::position::{Start, read_options};

/// A table of records from logs, for any library that reads Arrow. Created by `cordwood.scan`.
///
/// pyarrow, polars, DuckDB, pandas, DataFusion and others accept a scan directly, through its
/// `__arrow_c_stream__`. You can read a scan any number of times, because each read opens the
/// sources again.
#[pyclass(frozen, weakref, module = "cordwood")]
pub(crate) struct Scan(Arc<Plan>);

#[pymethods]
impl Scan {
    /// Returns the table as an Arrow stream, in a capsule of the Arrow C stream interface.
    ///
    /// Args:
    ///     requested_schema: Ignored, as the interface allows. The consumer casts the columns
    ///         itself. Default: `None`.
    ///
    /// Returns:
    ///     The capsule. Its stream reads the sources from their start.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        note_main_thread(py)?;
        stream_capsule(py, Stream::new(Arc::clone(&self.0)))
    }

    /// Returns the columns and their types, in a capsule of the Arrow C schema interface.
    ///
    /// Returns:
    ///     The capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.fields())
    }

    /// The column names.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.columns.iter().map(|column| column.as_str()))
    }

    /// The regions that were not returned: a tuple of `SkippedRegion` for each source, in order.
    ///
    /// These are the regions found so far by the most recently started read, up to the first
    /// 100,000 for each source. The outer tuple is empty if no read has started.
    #[getter]
    fn skipped<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let latest = self.0.latest();
        let tuples = latest.iter().map(|skipped| skipped.tuple(py));
        PyTuple::new(py, tuples.collect::<PyResult<Vec<_>>>()?)
    }

    /// True if no damage has been found so far.
    ///
    /// This covers all sources. Only regions with severity `"corruption"` count as damage. If the
    /// table has been read several times, only the most recently started read is considered.
    #[getter]
    fn ok(&self) -> bool {
        self.0.latest().iter().all(Skipped::is_ok)
    }

    /// The `Outcome` for each source, in order, showing how reading ended.
    ///
    /// These are the outcomes of the most recently started read. If a source's end has not been
    /// reached, its outcome is `"unfinished"`. The tuple is empty if no read has started.
    #[getter]
    fn outcomes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.latest().iter().map(Skipped::outcome))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if Arc::strong_count(&self.0) > 1 {
            // A stream keeps the sources alive.
            return Ok(());
        }
        for source in &self.0.sources {
            visit.call(&*source.object)?;
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        let columns: Vec<_> = self.0.columns.iter().map(|column| column.as_str()).collect();
        let sources = match &self.0.sources[..] {
            [source] => match &source.path {
                Some(path) => format!("{:?}", path.display().to_string()),
                None => "1 source".to_owned(),
            },
            sources => format!("{} sources", sources.len()),
        };
        let (columns, policy) = (columns.join(", "), self.0.on_corruption);
        format!("<cordwood.Scan of {sources}: {columns}; on_corruption='{policy}'>")
    }
}

/// Returns the records in one or more logs as a table for any library that reads Arrow.
///
/// Pass the table to `pyarrow.table`, `polars.DataFrame`, `pandas.DataFrame.from_arrow`, DuckDB,
/// DataFusion and others. Each of them reads the sources again, in batches of about 256 KiB. Only
/// one batch is in memory at a time, unless the consumer keeps the batches. If you pass a
/// directory, cordwood opens its files right away, to determine which of them are logs. All other
/// files are opened only when a consumer reads the table.
///
/// If reading fails, the consumer raises its own exception with cordwood's message. After an error,
/// a stream doesn't return any more batches.
///
/// Args:
///     sources: Any source that `Reader` accepts (such as a path, a URL, bytes, or an object with
///         `read`), a `Split`, a directory, a pattern such as `"*.log"`, or an iterable of these. A
///         directory stands for all logs in it and its subdirectories. An iterable is read in
///         order. An object with `read` can be read twice only if it can seek. Files in a directory
///         are left out if they are not logs. If several names lead to the same file, for example
///         through a link, the file is read once, under the first name. A repeated URL is also read
///         only once.
///     columns: The names of the columns, in order. `"offset"`: the file offset of the record,
///         `uint64`. `"record"`: the bytes of the record, `large_binary`. `"end_offset"`: the file
///         offset after the record. `"length"`: the length of the record in bytes. `"path"`: the
///         path of the log, as dictionary-encoded text, or null if the log has no path.
///         `"salvaged"`: whether the record starts after damage in the same block. Without
///         `"record"`, records are checked but not copied. Default: `None`, which means `"offset"`
///         and `"record"`, plus `"path"` if `sources` is a directory, a pattern or an iterable.
///     decode: The kind of content in the records. Pass a name that `cordwood convert --as`
///         accepts, such as `"write-batch"`, `"entity"`, `"wandb-history"` or `"json"`;
///         `cordwood.typing.DecoderName` lists them. The rows and columns are the same as in
///         `convert`. To get only some of the columns, pass `columns`. Decoding requires pyarrow,
///         and the sources are read in one thread. Entities, JSON and W&B histories are decoded on
///         up to two threads. If the columns can differ from log to log, all sources are first read
///         once to determine the columns. A record whose content is not of this kind raises an
///         error. While the columns are being determined, the error is a `PayloadError`. Under a
///         policy other than `"raise"`, such a record is left out and listed in
///         `DecodedScan.left_out`. Logs in directories are left out if their first record is
///         recognised as another kind, as in `convert`. Default: `None`, which means that the
///         records are bytes.
///     schema: With `decode`, a `pyarrow.Schema`. If you pass one, cordwood doesn't need to read
///         the sources first to determine the columns. Columns that are not in the schema are left
///         out. Default: `None`.
///     dialect: Same as for `Reader`.
///     log_number: Same as for `Reader`.
///     compression: Same as for `Reader`.
///     on_corruption: `"raise"`, `"skip"`, `"stop"` or `"salvage"`, as in `Reader`. With a policy
///         other than `"raise"`, `Scan.skipped` lists the skipped regions. Default: `"raise"`.
///     threads: Read ahead in each file with this many threads, 1 to 256. Only one thread is used
///         if the source is not a path, if `Reader.record_batches` would use only one thread, or if
///         the table has no `"record"` column. Default: 1.
///     start: Same as for `Reader`. Ignored for a `Split`.
///     end: Same as for `Reader`. Ignored for a `Split`.
///     storage_options: Same as for `Reader`. Default: `None`.
///
/// Returns:
///     A `Scan` or, with `decode`, a `DecodedScan`. Both have `__arrow_c_stream__` and
///     `__arrow_c_schema__`.
///
/// Raises:
///     ModuleNotFoundError: `decode` is given, but pyarrow is not installed.
///     OSError: A directory, or a file in a directory, cannot be read.
///     OverflowError: An integer is negative or too large for its option.
///     TypeError: A source has an unsupported type, or is a text file.
///     ValueError: An option has an invalid value, or a column is unknown or named twice.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> cordwood.scan("example.log")
/// <cordwood.Scan of "example.log": offset, record; on_corruption='raise'>
/// >>> import pyarrow
/// >>> pyarrow.table(cordwood.scan("example.log")).to_pydict()
/// {'offset': [0, 10], 'record': [b'one', b'two']}
#[pyfunction]
#[pyo3(signature = (
    sources, *, columns = None, decode = None, schema = None, dialect = None, log_number = None, compression = None, on_corruption = "raise", threads = 1, start = 0, end = None,
    storage_options = None
))]
pub(crate) fn scan<'py>(
    sources: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = names_of)] columns: Option<Vec<String>>,
    decode: Option<&Bound<'py, PyAny>>,
    schema: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = dialect_of)] dialect: Option<Dialect>,
    log_number: Option<u32>,
    #[pyo3(from_py_with = compression_of)] compression: Option<Compression>,
    on_corruption: &str,
    threads: isize,
    start: u64,
    end: Option<u64>,
    storage_options: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = sources.py();
    let whole = Start {
        offset: start,
        position: None,
    };
    let options = read_options((dialect, log_number, compression), (whole, end))
        .with_on_corruption(named("on_corruption", on_corruption)?);
    options.check().map_err(|error| to_python(py, error, None))?;
    let threads = threads_of(threads)?;
    let reading = PyDict::new(py);
    reading.set_item("dialect", dialect.map(|dialect| dialect_name(py, dialect)).transpose()?)?;
    reading.set_item("log_number", log_number)?;
    reading.set_item("compression", compression.map(Compression::as_str))?;
    let sources = &with_options(sources, storage_options)?;
    let (sources, are_several) = Source::all_of(sources, &options, decode, &reading)?;
    if let Some(decode) = decode {
        let sources: Vec<_> = sources
            .iter()
            .map(|(source, split)| (source.to_reopen(), split))
            .collect();
        reading.set_item("on_corruption", on_corruption)?;
        reading.set_item("start", start)?;
        reading.set_item("end", end)?;
        let decoded_scan = imported!(py, "cordwood._tables.scan", "DecodedScan")?;
        return decoded_scan.run_with((sources, are_several, decode, schema, columns), Some(&reading));
    }
    if schema.is_some() {
        return Err(PyValueError::new_err("schema requires decode"));
    }
    let columns = match columns {
        Some(names) => columns_of(&names)?,
        None if are_several => vec![Column::Offset, Column::Record, Column::Path],
        None => vec![Column::Offset, Column::Record],
    };
    let scan = Scan(Arc::new(Plan {
        sources: sources.into_iter().map(|(source, _)| source).collect(),
        columns,
        on_corruption: options.on_corruption,
        threads,
        latest: Mutex::new(Arc::new([])),
    }));
    Ok(Bound::new(py, scan)?.into_any())
}

/// Converts the `columns` argument.
fn names_of(names: &Bound<'_, PyAny>) -> PyResult<Option<Vec<String>>> {
    if let Ok(name) = names.cast::<PyString>() {
        return Err(PyTypeError::new_err(format!(
            "columns must be a list of names, not a str: columns=[{}]",
            name.repr()?
        )));
    }
    let names: Option<Vec<String>> = names.extract()?;
    if names.as_ref().is_some_and(Vec::is_empty) {
        return Err(PyValueError::new_err("columns must name at least one column"));
    }
    Ok(names)
}

fn columns_of(names: &[String]) -> PyResult<Vec<Column>> {
    let mut columns = Vec::new();
    for name in names {
        let column = Column::named(name)?;
        if columns.contains(&column) {
            return Err(PyValueError::new_err(format!("columns names '{name}' twice")));
        }
        columns.push(column);
    }
    Ok(columns)
}
