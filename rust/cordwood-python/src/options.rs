//! The values of options: parsed, or refused with an error that names the valid ones.

use std::ops;
use std::time::Duration;

use cordwood::{Compression, Dialect, FlushPolicy, LogFormat, OnCorruption, OnTornTail, SyncPolicy, UnknownName};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

/// The name of an option's value; `rule` lists the valid ones: `"sync must be 'never' or 'close'"`.
pub(crate) fn name<'a>(value: &'a Bound<'_, PyAny>, rule: &str) -> PyResult<&'a str> {
    match value.cast::<PyString>() {
        Ok(name) => name.to_str(),
        Err(_) => Err(PyTypeError::new_err(format!("{rule}, not {}", value.repr()?))),
    }
}

/// The exception for a name that no value has.
pub(crate) fn unknown_name(rule: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("{rule}, not '{name}'"))
}

/// The range of the arguments `start` and `end`.
pub(crate) fn range_of(start: u64, end: Option<u64>) -> (ops::Bound<u64>, ops::Bound<u64>) {
    (
        ops::Bound::Included(start),
        end.map_or(ops::Bound::Unbounded, ops::Bound::Excluded),
    )
}

/// The class of the names of detected dialects: see its docstring.
static DETECTED: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn detected_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    DETECTED.import(py, "cordwood.types", "DetectedDialect")
}

/// The name of a dialect for Python, which [`dialect_of`] turns into the same dialect.
pub(crate) fn dialect_name(py: Python<'_>, dialect: Dialect) -> PyResult<Bound<'_, PyAny>> {
    if dialect.is_detected() {
        detected_class(py)?.call1((dialect.name(),))
    } else {
        Ok(PyString::intern(py, dialect.name()).into_any())
    }
}

/// The dialect with this name.
fn dialect_of(name: &Bound<'_, PyString>) -> PyResult<Dialect> {
    let dialect = by_name(name.to_str()?)?;
    Ok(if name.is_instance(detected_class(name.py())?)? {
        dialect.detected()
    } else {
        dialect
    })
}

fn by_name(name: &str) -> PyResult<Dialect> {
    name.parse().map_err(|error: UnknownName| {
        let names: Vec<String> = error.expected.iter().map(|name| format!("'{name}'")).collect();
        PyValueError::new_err(format!("dialect must be one of {}, not '{name}'", names.join(", ")))
    })
}

/// The values of the options `dialect`, `log_number` and `compression`. The dialect is also `None`
/// for `"auto"`.
pub(crate) fn format_options(
    dialect: Option<&Bound<'_, PyAny>>,
    log_number: Option<u32>,
    compression: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Option<Dialect>, Option<u32>, Option<Compression>)> {
    let dialect = match text_of("dialect", dialect)? {
        None => None,
        Some(name) if name.to_str()? == "auto" => None,
        Some(name) => Some(dialect_of(name)?),
    };
    let compression = match text_of("compression", compression)? {
        None => None,
        Some(name) => Some(compression_named(name.to_str()?)?),
    };
    Ok((dialect, log_number, compression))
}

fn compression_named(name: &str) -> PyResult<Compression> {
    name.parse()
        .map_err(|_| PyValueError::new_err(format!("compression must be 'zstd' or None, not {name:?}")))
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

const ON_CORRUPTION: &str = "on_corruption must be 'raise', 'skip', 'stop' or 'salvage'";

pub(crate) fn on_corruption_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    name(value, ON_CORRUPTION)
}

/// The policy with this name.
pub(crate) fn on_corruption_of(name: &str) -> PyResult<OnCorruption> {
    name.parse().map_err(|_| unknown_name(ON_CORRUPTION, name))
}

pub(crate) const MODE: &str = "mode must be 'r', 'w', 'x' or 'a' to open a log";
const SYNC: &str = "sync must be 'never', 'close' or 'append'";
const FLUSH: &str = "flush must be 'append' or 'close'";
const ON_TORN_TAIL: &str = "on_torn_tail must be 'refuse', 'truncate' or 'pad'";

pub(crate) fn mode_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    name(value, MODE)
}

pub(crate) fn sync_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    name(value, SYNC)
}

pub(crate) fn flush_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a str>> {
    (!value.is_none()).then(|| name(value, FLUSH)).transpose()
}

pub(crate) fn on_torn_tail_name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    name(value, ON_TORN_TAIL)
}

/// The policy that the three options define together.
pub(crate) fn sync_policy_of(
    sync: &str,
    sync_len: Option<u64>,
    sync_interval: Option<Duration>,
) -> PyResult<SyncPolicy> {
    let policy = match sync {
        "never" => SyncPolicy::Never,
        "close" => SyncPolicy::OnClose,
        "append" => SyncPolicy::EveryAppend,
        other => return Err(unknown_name(SYNC, other)),
    };
    match (policy, sync_len, sync_interval) {
        (_, None, None) => Ok(policy),
        (SyncPolicy::Never, Some(len), None) => Ok(SyncPolicy::EveryBytes(len)),
        (SyncPolicy::Never, None, Some(interval)) => Ok(SyncPolicy::EveryInterval(interval)),
        _ => Err(PyValueError::new_err(
            "of sync, sync_len and sync_interval only one can be given",
        )),
    }
}

pub(crate) fn flush_policy_of(name: &str) -> PyResult<FlushPolicy> {
    name.parse().map_err(|_| unknown_name(FLUSH, name))
}

pub(crate) fn on_torn_tail_of(name: &str) -> PyResult<OnTornTail> {
    name.parse().map_err(|_| unknown_name(ON_TORN_TAIL, name))
}
