//! Converts errors and exceptions for an Arrow consumer.

use std::io;
use std::path::Path;

use cordwood::ErrorKind;
use pyo3::prelude::*;

use super::Failure;
use crate::values::error::{EINVAL, EIO, ENOMEM, call_python};

pub(crate) fn io_failure(message: impl Into<String>) -> Failure {
    Failure {
        errno: EIO,
        message: message.into(),
    }
}

/// Converts a core error for an Arrow consumer.
pub(crate) fn failure(mut error: cordwood::Error, path: Option<&Path>) -> Failure {
    let errno = match &error.kind {
        ErrorKind::Io { source, .. } => {
            if let Some(raised) = source.get_ref().and_then(|source| source.downcast_ref::<PyErr>())
                && let Some(failure) = Python::try_attach(|py| failure_of(py, raised))
            {
                return failure;
            }
            match source.kind() {
                io::ErrorKind::OutOfMemory => ENOMEM,
                _ => EIO,
            }
        }
        ErrorKind::Unsupported { .. } => EINVAL,
        _ => EIO,
    };
    error.path = path.map(Box::from).or(error.path);
    Failure {
        errno,
        message: error.to_string(),
    }
}

/// Converts an exception for an Arrow consumer. After Ctrl-C, the consumer gets only the
/// exception's name. The signal isn't raised again, because that would interrupt Python while it
/// prints the consumer's error.
pub(crate) fn failure_of(py: Python<'_>, error: &PyErr) -> Failure {
    let mut text = error.value(py).str().map(|text| text.to_string()).unwrap_or_default();
    let notes = error.value(py).getattr("__notes__").and_then(|notes| notes.extract());
    for note in notes.unwrap_or_else(|_| Vec::<String>::new()) {
        text += "; ";
        text += &note;
    }
    let name = error.get_type(py).name().map(|name| name.to_string());
    io_failure(if text.is_empty() {
        name.unwrap_or_default()
    } else {
        text
    })
}

/// Runs `work`, which needs the interpreter.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, Failure> {
    call_python(work).map_err(|error| failure(error.into(), None))
}
