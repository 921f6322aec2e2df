//! Errors and exceptions, as an Arrow consumer receives them.

use std::path::Path;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::arrow::Failure;
use crate::error::{EINVAL, EIO, ENOMEM, with_path};

pub(super) fn io_failure(message: impl Into<String>) -> Failure {
    Failure {
        errno: EIO,
        message: message.into(),
    }
}

/// An error of the core, as an Arrow consumer receives it.
pub(super) fn failure(error: cordwood::Error, path: Option<&Path>) -> Failure {
    if let cordwood::Error::Io { source, .. } = &error
        && let Some(raised) = source.get_ref().and_then(|source| source.downcast_ref::<PyErr>())
        && let Some(failure) = Python::try_attach(|py| failure_of(py, raised))
    {
        return failure;
    }
    let errno = match &error {
        cordwood::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::OutOfMemory => ENOMEM,
        cordwood::Error::Unsupported { .. } => EINVAL,
        _ => EIO,
    };
    Failure {
        errno,
        message: with_path(error.to_string(), path),
    }
}

/// An exception, as an Arrow consumer receives it. Ctrl-C is repeated: the consumer raises an error
/// of its own, which a program may handle as one of the file.
pub(crate) fn failure_of(py: Python<'_>, error: &PyErr) -> Failure {
    let text = error.value(py).str().map(|text| text.to_string()).unwrap_or_default();
    let name = error
        .get_type(py)
        .name()
        .map(|name| name.to_string())
        .unwrap_or_default();
    // Last: Python looks for signals when it makes text of an object, for example.
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        let _ = py
            .import("_thread")
            .and_then(|thread| thread.call_method0("interrupt_main"));
    }
    io_failure(if text.is_empty() { name } else { text })
}

/// Runs `work`, which needs the interpreter.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, Failure> {
    let done = Python::try_attach(|py| work(py).map_err(|error| failure_of(py, &error)));
    done.unwrap_or_else(|| {
        Err(io_failure(
            "the Python interpreter has shut down, and the source needs it",
        ))
    })
}
