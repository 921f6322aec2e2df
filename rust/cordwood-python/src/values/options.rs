//! Converts option values. The error for an invalid value lists the valid ones.

use std::str::FromStr;
use std::time::Duration;

use cordwood::{Compression, Dialect, LogFormat, SyncPolicy, UnknownName};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::interpreter::imported;
use crate::interpreter::python_code::PythonCode;

/// Returns the value with this name.
pub(crate) fn named<T: FromStr<Err = UnknownName>>(option: &str, name: &str) -> PyResult<T> {
    name.parse()
        .map_err(|error: UnknownName| unknown_name(option, &error.expected, name))
}

/// Returns the value in `choices` with this name.
pub(crate) fn chosen<T: Clone, const N: usize>(option: &str, choices: [(&str, T); N], name: &str) -> PyResult<T> {
    let found = choices.iter().find(|(choice, _)| *choice == name);
    found
        .map(|(_, value)| value.clone())
        .ok_or_else(|| unknown_name(option, &choices.map(|(choice, _)| choice), name))
}

/// Returns the exception for a name that isn't a value of the option.
pub(crate) fn unknown_name(option: &str, expected: &[&str], name: &str) -> PyErr {
    let mut expected: Vec<String> = expected.iter().map(|name| format!("'{name}'")).collect();
    let last = expected.pop().unwrap_or_default();
    let or = if expected.is_empty() { "" } else { " or " };
    let others = expected.join(", ");
    PyValueError::new_err(format!("{option} must be {others}{or}{last}, not '{name}'"))
}

/// Checks the `threads` argument. Reading with more than 256 threads is no faster.
pub(crate) fn threads_of(threads: isize) -> PyResult<usize> {
    match usize::try_from(threads) {
        Ok(threads @ 1..=256) => Ok(threads),
        _ => Err(PyValueError::new_err(format!(
            "threads must be from 1 to 256, not {threads}"
        ))),
    }
}

/// Converts an argument that is a time in seconds. If the time is too long for the clock, returns
/// [`Duration::MAX`], which means forever.
pub(crate) fn time_of(name: &str, seconds: f64) -> PyResult<Duration> {
    if seconds >= 1e15 {
        Ok(Duration::MAX)
    } else if seconds >= 0.0 {
        Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    } else {
        Err(PyValueError::new_err(format!(
            "{name} must be a number of seconds, 0 or more, not {seconds:?}"
        )))
    }
}

/// Converts a time to seconds, Python's unit.
pub(crate) fn in_seconds(time: Duration) -> f64 {
    if time == Duration::MAX {
        f64::INFINITY
    } else {
        time.as_secs_f64()
    }
}

/// Returns the class for the names of detected dialects. The class's docstring explains its
/// purpose.
fn detected_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    imported!(py, "cordwood.types", "DetectedDialect")
}

/// Returns a dialect's name for Python. [`dialect_of`] converts the name back to the dialect.
pub(crate) fn dialect_name(py: Python<'_>, dialect: Dialect) -> PyResult<Bound<'_, PyAny>> {
    if dialect.is_detected() {
        detected_class(py)?.run((dialect.name(),))
    } else {
        Ok(PyString::intern(py, dialect.name()).into_any())
    }
}

/// Converts the `dialect` argument. `"auto"` becomes `None`.
pub(crate) fn dialect_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Dialect>> {
    let Some(name) = value.extract::<Option<Bound<'_, PyString>>>()? else {
        return Ok(None);
    };
    let dialect = match name.to_str()? {
        "auto" => return Ok(None),
        name => named::<Dialect>("dialect", name)?,
    };
    let is_detected = name.is_a(detected_class(name.py())?)?;
    Ok(Some(if is_detected { dialect.detected() } else { dialect }))
}

/// Converts the `compression` argument.
pub(crate) fn compression_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Compression>> {
    let name: Option<String> = value.extract()?;
    name.map(|name| named("compression", &name)).transpose()
}

/// Returns the name of a log's compression.
pub(crate) fn compression_name(format: LogFormat) -> Option<&'static str> {
    format.compression.map(Compression::as_str)
}

/// Returns the sync policy that results from `sync` and `sync_interval`.
pub(crate) fn sync_policy_of(sync: &str, sync_interval: Option<Duration>) -> PyResult<SyncPolicy> {
    let policies = [
        ("never", SyncPolicy::Never),
        ("close", SyncPolicy::OnClose),
        ("append", SyncPolicy::EveryAppend),
    ];
    let policy = chosen("sync", policies, sync)?;
    match (policy, sync_interval) {
        (_, None) => Ok(policy),
        (SyncPolicy::Never, Some(interval)) => Ok(SyncPolicy::EveryInterval(interval)),
        _ => Err(PyValueError::new_err(
            "sync and sync_interval are given, and each is a policy: pass one of them",
        )),
    }
}
