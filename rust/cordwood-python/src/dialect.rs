//! The options for the format of a log, and the function `detect`.

use std::io::Read;

use cordwood::verbs::DETECT_LEN;
use cordwood::{Compression, LogFormat, ReadOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

use crate::error::to_python;
use crate::source::{OpenedReader, open_reader};

fn by_name(name: &str) -> PyResult<cordwood::Dialect> {
    cordwood::Dialect::from_name(name).ok_or_else(|| {
        let names = cordwood::Dialect::ALL
            .iter()
            .map(|dialect| format!("'{}'", dialect.name()));
        let names: Vec<String> = names.collect();
        PyValueError::new_err(format!("dialect must be one of {}, not '{name}'", names.join(", ")))
    })
}

/// The values of the options `dialect`, `log_number` and `compression`. The dialect is `None` for
/// `"auto"`, too.
pub(crate) fn named(
    dialect: Option<&Bound<'_, PyAny>>,
    log_number: Option<u32>,
    compression: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Option<cordwood::Dialect>, Option<u32>, Option<Compression>)> {
    let dialect = match text_of("dialect", dialect)? {
        None => None,
        Some(name) => match name.to_str()? {
            "auto" => None,
            name => Some(by_name(name)?),
        },
    };
    let compression = match text_of("compression", compression)? {
        None => None,
        Some(name) => Some(compression_named(name.to_str()?)?),
    };
    Ok((dialect, log_number, compression))
}

/// The format with these names and this number, of which nothing is left to detect.
pub(crate) fn format_of(dialect: &str, log_number: Option<u32>, compression: Option<&str>) -> PyResult<LogFormat> {
    let mut format = LogFormat::new(by_name(dialect)?);
    if let Some(number) = log_number {
        format = format.with_log_number(number);
    }
    if let Some(name) = compression {
        format = format.with_compression(compression_named(name)?);
    }
    Ok(format)
}

fn compression_named(name: &str) -> PyResult<Compression> {
    Compression::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("compression must be 'zstd' or None, not {name:?}")))
}

fn text_of<'a, 'py>(option: &str, value: Option<&'a Bound<'py, PyAny>>) -> PyResult<Option<&'a Bound<'py, PyString>>> {
    let Some(value) = value else { return Ok(None) };
    match value.cast::<PyString>() {
        Ok(text) => Ok(Some(text)),
        Err(_) => {
            let name = value.get_type().name()?;
            Err(PyTypeError::new_err(format!(
                "{option} must be str or None, not {name}"
            )))
        }
    }
}

/// The name of the compression of a log.
pub(crate) fn compression_name(format: LogFormat) -> Option<&'static str> {
    format.compression.map(Compression::name)
}

/// Detects the format of a log from the beginning of the file.
///
/// Args:
///     source: What `Reader` takes. Its first 96 KiB are read; if they do not show a log, and
///         it is a longer file, also its end and the beginnings of its blocks.
///
/// Returns:
///     A `LogFormat`: the dialect, the log number if its logs have one (that in the name of the
///     file, or else that of the first fragment), and the compression. `None` if it cannot be
///     detected: the file is empty, or its beginning holds no complete fragment with a valid
///     checksum. `Reader` then reads `"leveldb"`.
///
/// Raises:
///     DialectError: It is not a log.
///     OSError: The source cannot be opened or read.
///     TypeError: `source` is nothing that `Reader` takes.
///
/// >>> with cordwood.open("example.log", "w") as writer:
/// ...     _ = writer.append(b"one")
/// >>> cordwood.detect("example.log")
/// LogFormat(dialect='leveldb', log_number=None, compression=None)
#[pyfunction]
#[pyo3(signature = (source, /))]
pub(crate) fn detect<'py>(source: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static LOG_FORMAT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = source.py();
    let OpenedReader { reader, .. } = open_reader(source, ReadOptions::default())?;
    // A reader reads more at a time.
    let mut reader = reader.map_source(|source| source.map(|input| input.take(DETECT_LEN as u64)));
    let detected = py.detach(|| reader.detect());
    let path = reader.path();
    let Some(format) = detected.map_err(|error| to_python(py, error, path))? else {
        return Ok(None);
    };
    let class = LOG_FORMAT.import(py, "cordwood.types", "LogFormat")?;
    let values = (format.dialect.name(), format.log_number, compression_name(format));
    class.call1(values).map(Some)
}
