//! The function `detect`.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

use cordwood::ReadOptions;
use cordwood::ops::DETECT_LEN;
use pyo3::prelude::*;

use crate::interpreter::imported;
use crate::interpreter::python_code::PythonCode;
use crate::io::source::{OpenedReader, open_reader};
use crate::values::error::to_python;
use crate::values::options::{compression_name, dialect_name};

/// Detects a log's format from the start of the file.
///
/// Args:
///     source: Same as for `Reader`. If the first 96 KiB are enough to identify a log, no more is
///         read. Otherwise, if the file is longer, its end and the starts of its blocks are read
///         too.
///
/// Returns:
///     A `LogFormat` with the dialect, the log number and the compression. For dialects with log
///     numbers, the log number is taken from the file's name or, if the name has none, from the
///     first fragment. The result is `None` if the format cannot be detected, because the file is
///     empty or its start contains no complete fragment with a valid checksum. `Reader` reads such
///     a file as `"leveldb"`.
///
/// Raises:
///     DialectError: The source is not a log.
///     OSError: The source cannot be opened or read.
///     TypeError: `Reader` does not accept `source`.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> cordwood.detect("example.log")
/// LogFormat(dialect='leveldb', log_number=None, compression=None)
#[pyfunction]
#[pyo3(signature = (source, /))]
pub(crate) fn detect<'py>(source: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = source.py();
    let options = ReadOptions::default().with_range(..DETECT_LEN as u64);
    let OpenedReader { reader, options, .. } = open_reader(source, options)?;
    // Without this limit, the reader would read more at a time.
    let source = reader.into_inner().map(|input| input.take(DETECT_LEN as u64));
    let mut reader = cordwood::Reader::with_source(source, options);
    let detected = py.detach(|| reader.detect());
    let path = reader.path();
    let Some(format) = detected.map_err(|error| to_python(py, error, path))? else {
        return Ok(None);
    };
    let class = imported!(py, "cordwood.types", "LogFormat")?;
    let values = (
        dialect_name(py, format.dialect)?,
        format.log_number,
        compression_name(format),
    );
    class.run(values).map(Some)
}

/// Returns the log offset where the segment with this name starts.
///
/// Returns `None` if `name` isn't the name of a segment.
#[pyfunction]
#[pyo3(signature = (name, /))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts names to this type")]
pub(crate) fn segment_offset(name: OsString) -> Option<u64> {
    cordwood::segments::offset_of(&name)
}

/// Checks whether a file is named like a log or a copy of one.
#[pyfunction]
#[pyo3(signature = (path, /))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 converts paths to this type")]
pub(crate) fn is_log_name(path: PathBuf) -> bool {
    cordwood::ops::is_log_name(&path)
}
