//! The class `Stat`.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use cordwood::format::BLOCK_LEN;
use cordwood::ops;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::options::{compression_name, dialect_name, format_of};
use crate::outcome::Outcome;
use crate::value::{Reduced, html, reduced};

/// The path of a log, which equality ignores.
struct Source(Option<PathBuf>);

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Source {}

/// What is in a log, in numbers, as `stat` returns it.
///
/// `stored_len`, `header_len`, `trailer_len` and `skipped_len` add up to `file_len`. The
/// constructor takes the attributes as keywords, except `record_len_mean` and `block_count`, which
/// follow from the others. Two are equal if everything except their paths is. A notebook shows one
/// as a table.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     writer.extend([b"one", b"two"])
/// 2
/// >>> stat = cordwood.stat("example.log")
/// >>> stat
/// <cordwood.Stat: record_count=2, payload_len=6, outcome=Outcome(kind='clean', offset=20)>
/// >>> stat.stored_len, stat.header_len, stat.file_len
/// (6, 14, 20)
#[pyclass(frozen, module = "cordwood", eq)]
#[derive(PartialEq, Eq)]
pub(crate) struct Stat {
    format: cordwood::LogFormat,
    /// Records that were returned.
    #[pyo3(get)]
    record_count: u64,
    /// Returned records that begin after damage in the same block: as `Report.salvaged_count`.
    #[pyo3(get)]
    salvaged_count: u64,
    /// Bytes of data in the records.
    #[pyo3(get)]
    payload_len: u64,
    /// Bytes of data as they are stored: fewer than `payload_len` in a compressed log.
    #[pyo3(get)]
    stored_len: u64,
    /// Bytes of the headers of the records' fragments.
    #[pyo3(get)]
    header_len: u64,
    /// Length of the shortest record in bytes; `None` if there are no records.
    #[pyo3(get)]
    record_len_min: Option<u64>,
    /// Length of the longest record in bytes; `None` if there are no records.
    #[pyo3(get)]
    record_len_max: Option<u64>,
    /// FULL fragments of the records: records in one piece.
    #[pyo3(get)]
    full_count: u64,
    /// FIRST fragments of the records.
    #[pyo3(get)]
    first_count: u64,
    /// MIDDLE fragments of the records.
    #[pyo3(get)]
    middle_count: u64,
    /// LAST fragments of the records.
    #[pyo3(get)]
    last_count: u64,
    /// Bytes of trailers: the ends of blocks, too short for a header.
    #[pyo3(get)]
    trailer_len: u64,
    /// Bytes that were not returned, for whatever reason; `verify` reports the reasons.
    #[pyo3(get)]
    skipped_len: u64,
    /// Skipped bytes in regions of `Severity.CORRUPTION`.
    #[pyo3(get)]
    damaged_len: u64,
    /// Bytes of zeros that a record follows: space that was never written, padding, or lost data.
    #[pyo3(get)]
    zeros_inside_len: u64,
    /// The length of the file in bytes; `None` if it is not known.
    #[pyo3(get)]
    file_len: Option<u64>,
    /// How reading ended.
    #[pyo3(get)]
    outcome: Outcome,
    /// The number of another log, if the whole file belongs to that log; else `None`.
    ///
    /// The file's name or `log_number` states a different number: the file was recycled and nothing
    /// has been written to the log with that number yet, or the file was renamed or copied.
    #[pyo3(get)]
    other_log_number: Option<u32>,
    path: Source,
}

impl Stat {
    pub(crate) fn of(stat: ops::Stat, path: Option<PathBuf>) -> Self {
        Stat {
            format: stat.format,
            record_count: stat.record_count,
            salvaged_count: stat.salvaged_count,
            payload_len: stat.payload_len,
            stored_len: stat.stored_len,
            header_len: stat.header_len,
            record_len_min: stat.record_len_min,
            record_len_max: stat.record_len_max,
            full_count: stat.full_count,
            first_count: stat.first_count,
            middle_count: stat.middle_count,
            last_count: stat.last_count,
            trailer_len: stat.trailer_len,
            skipped_len: stat.skipped_len,
            damaged_len: stat.damaged_len,
            zeros_inside_len: stat.zeros_inside_len(),
            file_len: stat.file_len,
            outcome: Outcome::of(stat.end, stat.zeros_offset()),
            other_log_number: stat.other_log_number,
            path: Source(path),
        }
    }
}

#[pymethods]
impl Stat {
    #[new]
    #[pyo3(signature = (
        *, dialect, record_count, payload_len, file_len, outcome, log_number = None, compression = None, salvaged_count = 0, stored_len = 0,
        header_len = 0, record_len_min = None, record_len_max = None, full_count = 0, first_count = 0, middle_count = 0, last_count = 0, trailer_len = 0,
        skipped_len = 0, damaged_len = 0, zeros_inside_len = 0, other_log_number = None, path = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python class")]
    fn new(
        dialect: &Bound<'_, PyString>,
        record_count: u64,
        payload_len: u64,
        file_len: Option<u64>,
        outcome: Outcome,
        log_number: Option<u32>,
        compression: Option<&str>,
        salvaged_count: u64,
        stored_len: u64,
        header_len: u64,
        record_len_min: Option<u64>,
        record_len_max: Option<u64>,
        full_count: u64,
        first_count: u64,
        middle_count: u64,
        last_count: u64,
        trailer_len: u64,
        skipped_len: u64,
        damaged_len: u64,
        zeros_inside_len: u64,
        other_log_number: Option<u32>,
        path: Option<PathBuf>,
    ) -> PyResult<Self> {
        Ok(Stat {
            format: format_of(dialect, log_number, compression)?,
            record_count,
            salvaged_count,
            payload_len,
            stored_len,
            header_len,
            record_len_min,
            record_len_max,
            full_count,
            first_count,
            middle_count,
            last_count,
            trailer_len,
            skipped_len,
            damaged_len,
            zeros_inside_len,
            file_len,
            outcome,
            other_log_number,
            path: Source(path),
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduced(
            slf,
            &[
                "dialect",
                "record_count",
                "payload_len",
                "file_len",
                "outcome",
                "log_number",
                "compression",
                "salvaged_count",
                "stored_len",
                "header_len",
                "record_len_min",
                "record_len_max",
                "full_count",
                "first_count",
                "middle_count",
                "last_count",
                "trailer_len",
                "skipped_len",
                "damaged_len",
                "zeros_inside_len",
                "other_log_number",
                "path",
            ],
        )
    }

    /// The dialect of the log, such as `"leveldb"`.
    #[getter]
    fn dialect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dialect_name(py, self.format.dialect)
    }

    /// The number of the log; `None` if the dialect has none or if it is not known.
    #[getter]
    fn log_number(&self) -> Option<u32> {
        self.format.log_number
    }

    /// How each record is compressed: `"zstd"`, or `None` for not at all.
    #[getter]
    fn compression(&self) -> Option<&'static str> {
        compression_name(self.format)
    }

    /// Mean length of a record in bytes; `None` if there are no records.
    #[getter]
    fn record_len_mean(&self) -> Option<f64> {
        (self.record_count > 0).then(|| self.payload_len as f64 / self.record_count as f64)
    }

    /// Blocks of 32 KiB in the file, including a partial last one; `None` if `file_len` is `None`.
    #[getter]
    fn block_count(&self) -> Option<u64> {
        self.file_len.map(|len| len.div_ceil(BLOCK_LEN as u64))
    }

    /// The path, the URL, or the `name` of an object with `read_range`; else `None`.
    #[getter]
    fn path(&self) -> Option<&OsStr> {
        self.path.0.as_deref().map(Path::as_os_str)
    }

    /// What a notebook shows: a table, in HTML.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf, "of_stat")
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let lens = (self.payload_len, self.header_len, self.skipped_len, self.file_len);
        (self.record_count, lens, self.outcome).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let Stat {
            record_count,
            payload_len,
            outcome,
            ..
        } = self;
        let outcome = outcome.__repr__();
        format!("<cordwood.Stat: record_count={record_count}, payload_len={payload_len}, outcome={outcome}>")
    }
}
