//! Errors of the core as Python exceptions. The classes are written in Python, in
//! `cordwood.errors`.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::PyTypeInfo;
use pyo3::exceptions::{
    PyBlockingIOError, PyMemoryError, PyOSError, PyRuntimeError, PyStopAsyncIteration, PyStopIteration, PyValueError,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

use crate::enums::{PAYLOAD_REASON, REASON};
use crate::python_code::PythonCode;

mod classes {
    use pyo3::import_exception;

    import_exception!(cordwood.errors, ClosedError);
    import_exception!(cordwood.errors, CorruptionError);
    import_exception!(cordwood.errors, DialectError);
    import_exception!(cordwood.errors, LogRotatedError);
    import_exception!(cordwood.errors, LogTruncatedError);
    import_exception!(cordwood.errors, OtherLogError);
    import_exception!(cordwood.errors, PayloadError);
    import_exception!(cordwood.errors, RecordTooLargeError);
    import_exception!(cordwood.errors, TornTailError);
}

/// The exception for an error of the core; `path` is the one that the user gave, if any.
pub(crate) fn to_python(py: Python<'_>, error: cordwood::Error, path: Option<&Path>) -> PyErr {
    let message = error.to_string();
    match error {
        cordwood::Error::Io { source, .. } => os_error(source, path),
        cordwood::Error::Corruption { region, .. } => {
            let class = match region.reason {
                cordwood::damage::Reason::RecordTooLarge => classes::RecordTooLargeError::type_object(py),
                _ => classes::CorruptionError::type_object(py),
            };
            about_region(&class, message, region, path)
        }
        cordwood::Error::OverBudget { offset, end_offset, .. } => {
            record_too_large(py, message, offset, end_offset - offset, path)
        }
        cordwood::Error::RecordTooLarge { offset, record_len, .. } => {
            record_too_large(py, message, offset, record_len, path)
        }
        cordwood::Error::TornTail { region, .. } => {
            about_region(&classes::TornTailError::type_object(py), message, region, path)
        }
        cordwood::Error::Truncated { offset, file_len, .. } => {
            let class = classes::LogTruncatedError::type_object(py);
            log_changed(&class, with_path(message, path), path, offset, file_len)
        }
        cordwood::Error::Foreign { foreign, .. } => dialect_error(py, message, path, foreign.name()),
        cordwood::Error::WrongDialect { found, .. } => dialect_error(py, message, path, found),
        cordwood::Error::NeverAppended { format, .. } => dialect_error(py, message, path, format.dialect.name()),
        cordwood::Error::Unsupported { .. } => PyValueError::new_err(with_path(message, path)),
        cordwood::Error::Forked { .. } => PyOSError::new_err(with_path(message, path)),
        cordwood::Error::OtherLog {
            log_number,
            other_log_number,
            ..
        } => {
            let class = classes::OtherLogError::type_object(py);
            raised(&class, with_path(message, path), |attributes| {
                attributes.set_item("path", path.map(Path::as_os_str))?;
                attributes.set_item("log_number", log_number)?;
                attributes.set_item("other_log_number", other_log_number)
            })
        }
        cordwood::Error::Locked { .. } => locked(py, &message, path),
        cordwood::Error::Write { ref source, .. } if source.kind() == io::ErrorKind::OutOfMemory => {
            PyMemoryError::new_err(with_path(message, path))
        }
        cordwood::Error::Write { ref source, .. } => {
            let message = without_number(&message);
            match (source.raw_os_error(), path) {
                (Some(errno), Some(path)) => {
                    let text = without_path(&message, Some(path));
                    PyOSError::new_err((errno, text, path.as_os_str().to_owned()))
                }
                _ => PyOSError::new_err(message),
            }
        }
        cordwood::Error::Closed { .. } => closed(py, "writer", path),
        // Errors that a later core may add.
        _ => PyRuntimeError::new_err(message),
    }
}

/// An exception of one of the classes written in Python, with the attributes that `set` sets; or
/// what was raised instead of making it.
fn raised(class: &Bound<'_, PyType>, message: String, set: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>) -> PyErr {
    let attributes = PyDict::new(class.py());
    let made = set(&attributes).and_then(|()| class.run_with((message,), Some(&attributes)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The exception for using a closed object; `what` names the object, such as `"reader"`.
#[cold]
pub(crate) fn closed(py: Python<'_>, what: &str, path: Option<&Path>) -> PyErr {
    let message = with_path(format!("the {what} is closed"), path);
    raised(&classes::ClosedError::type_object(py), message, |attributes| {
        attributes.set_item("path", path.map(Path::as_os_str))
    })
}

/// The same for a writer to an object, under its lock: no Python code runs before it is raised.
#[cold]
pub(crate) fn object_closed() -> PyErr {
    classes::ClosedError::new_err("the writer is closed")
}

/// The exception for an error when opening a log to append to it. For damage, it also says how to
/// append nevertheless.
pub(crate) fn opening_to_python(py: Python<'_>, error: cordwood::Error, path: &Path) -> PyErr {
    let message = error.to_string();
    match error {
        cordwood::Error::Corruption { region, .. } => about_region(
            &classes::CorruptionError::type_object(py),
            format!(
                "{message}; nothing was appended (on_torn_tail: pad leaves every byte and continues in the next block, in a file without any valid fragment only if the dialect is given; truncate cuts off what a crash can have left, and refuses any other damage)"
            ),
            region,
            Some(path),
        ),
        error => to_python(py, error, Some(path)),
    }
}

/// The exception for an error at the very offset that was sought: damage there may only mean that
/// no record begins at that offset.
pub(crate) fn sought_to_python(py: Python<'_>, error: cordwood::Error, path: Option<&Path>) -> PyErr {
    let message = error.to_string();
    match error {
        cordwood::Error::Corruption { region, .. } if region.reason != cordwood::damage::Reason::RecordTooLarge => {
            about_region(
                &classes::CorruptionError::type_object(py),
                format!("{message}; seek moved the reader here: if no record begins at this offset, that is no damage"),
                region,
                path,
            )
        }
        error => to_python(py, error, path),
    }
}

/// The exception for a followed log that was cut, or whose path names another file (`is_rotated`).
pub(crate) fn not_followed(py: Python<'_>, is_rotated: bool, path: &Path, offset: u64, file_len: u64) -> PyErr {
    let shown = path.display();
    let (class, message) = if is_rotated {
        (
            classes::LogRotatedError::type_object(py),
            format!("{shown}: the file was replaced or removed; the old one was read up to offset {offset}"),
        )
    } else {
        (
            classes::LogTruncatedError::type_object(py),
            format!("{shown}: the file was cut to {file_len} bytes; it had been read up to {offset}"),
        )
    };
    log_changed(&class, message, Some(path), offset, Some(file_len))
}

/// An exception of one of the two classes for a file that has been cut, replaced or removed.
fn log_changed(
    class: &Bound<'_, PyType>,
    message: String,
    path: Option<&Path>,
    offset: u64,
    file_len: Option<u64>,
) -> PyErr {
    raised(class, message, |attributes| {
        attributes.set_item("path", path.map(Path::as_os_str))?;
        attributes.set_item("offset", offset)?;
        attributes.set_item("file_len", file_len)
    })
}

/// A `MemoryError`. Making it allocates nothing.
pub(crate) fn no_memory() -> PyErr {
    PyMemoryError::new_err(())
}

/// The exception for a payload that cannot be decoded or encoded.
pub(crate) fn payload_error(py: Python<'_>, error: cordwood_payload::PayloadError) -> PyErr {
    if error.reason == cordwood_payload::PayloadReason::OutOfMemory {
        return no_memory();
    }
    let class = classes::PayloadError::type_object(py);
    raised(&class, error.to_string(), |attributes| {
        attributes.set_item("offset", error.offset)?;
        attributes.set_item("length", error.len)?;
        attributes.set_item("reason", PAYLOAD_REASON.member(py, error.reason.as_str())?)
    })
}

fn dialect_error(py: Python<'_>, message: String, path: Option<&Path>, format: &str) -> PyErr {
    let class = classes::DialectError::type_object(py);
    raised(&class, with_path(message, path), |attributes| {
        attributes.set_item("path", path.map(Path::as_os_str))?;
        attributes.set_item("format", format)
    })
}

fn record_too_large(py: Python<'_>, message: String, offset: u64, len: u64, path: Option<&Path>) -> PyErr {
    let class = classes::RecordTooLargeError::type_object(py);
    let reason = cordwood::damage::Reason::RecordTooLarge;
    raised(&class, with_path(message, path), |attributes| {
        set_place(attributes, offset, len, reason, path)
    })
}

fn about_region(
    class: &Bound<'_, PyType>,
    message: String,
    region: cordwood::damage::SkippedRegion,
    path: Option<&Path>,
) -> PyErr {
    raised(class, with_path(message, path), |attributes| {
        set_place(attributes, region.begin, region.len(), region.reason, path)?;
        if let cordwood::damage::Reason::ChecksumMismatch { stored, computed } = region.reason {
            attributes.set_item("stored_crc", stored)?;
            attributes.set_item("computed_crc", computed)?;
        }
        Ok(())
    })
}

fn set_place(
    attributes: &Bound<'_, PyDict>,
    offset: u64,
    len: u64,
    reason: cordwood::damage::Reason,
    path: Option<&Path>,
) -> PyResult<()> {
    attributes.set_item("path", path.map(Path::as_os_str))?;
    attributes.set_item("offset", offset)?;
    attributes.set_item("length", len)?;
    attributes.set_item("reason", REASON.member(attributes.py(), reason.as_str())?)
}

/// An exception that a Python function raised which was called to read, to write, to handle a
/// signal or to log. `StopIteration` and `StopAsyncIteration` would end the iteration during which
/// they were raised, as if the log ended there: as in a generator (PEP 479), they become the cause
/// of a `RuntimeError`.
pub(crate) fn of_call(py: Python<'_>, raised: PyErr) -> PyErr {
    let name = if raised.is_instance_of::<PyStopIteration>(py) {
        "StopIteration"
    } else if raised.is_instance_of::<PyStopAsyncIteration>(py) {
        "StopAsyncIteration"
    } else {
        return raised;
    };
    let error = PyRuntimeError::new_err(format!("a function that cordwood called raised {name}"));
    error.set_cause(py, Some(raised));
    error
}

/// Calls Python to read or write, in a thread that might not hold the interpreter. An exception
/// becomes an error of no particular kind: a read or write that fails with the kind of an
/// `InterruptedError` is repeated, and the exception would be lost.
pub(crate) fn call_python<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> io::Result<T> {
    Python::try_attach(|py| work(py).map_err(|raised| io::Error::other(of_call(py, raised))))
        .unwrap_or_else(|| Err(io::Error::other("the interpreter has ended")))
}

/// Runs the handlers of signals that have arrived, and fails with the exception that one raised.
pub(crate) fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals().map_err(|raised| of_call(py, raised))
}

/// The same during a read or write: see [`call_python`].
pub(crate) fn check_signals_anywhere() -> io::Result<()> {
    // After the interpreter has shut down, there are no handlers.
    Python::try_attach(|py| check_signals(py).map_err(io::Error::other)).unwrap_or(Ok(()))
}

/// The same in a thread that holds the interpreter or not, as an Arrow consumer that reads a stream.
/// Whoever holds it may wait for this thread, so only the main one looks, which is the only one that
/// signals reach. It looks rarely: getting the interpreter from a busy thread may take 5 ms.
pub(crate) fn check_signals_in_main_thread() -> io::Result<()> {
    thread_local!(static NEXT: Cell<Option<Instant>> = const { Cell::new(None) });
    if MAIN_THREAD.get() != Some(&thread::current().id()) {
        return Ok(());
    }
    let now = Instant::now();
    if NEXT.get().is_some_and(|next| now < next) {
        return Ok(());
    }
    NEXT.set(Some(now + PAUSE));
    check_signals_anywhere()
}

/// The time between two looks for signals.
const PAUSE: Duration = Duration::from_millis(50);

/// The main thread, once it has been seen.
static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Remembers this thread if it is the main one: without the interpreter, nothing says which is.
pub(crate) fn note_main_thread(py: Python<'_>) -> PyResult<()> {
    if MAIN_THREAD.get().is_some() {
        return Ok(());
    }
    let threading = py.import("threading")?;
    let current = threading.run_method(intern!(py, "current_thread"), ())?;
    if current.is(&threading.run_method(intern!(py, "main_thread"), ())?) {
        let _ = MAIN_THREAD.set(thread::current().id());
    }
    Ok(())
}

/// An `OSError` of the right subclass with the path, or the exception that a Python object raised
/// during the read or write.
pub(crate) fn os_error(error: io::Error, path: Option<&Path>) -> PyErr {
    let is_of_object = error
        .get_ref()
        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<PyErr>);
    if is_of_object {
        return error.into();
    }
    // Created by this crate: errors of the system have a number.
    if error.kind() == io::ErrorKind::OutOfMemory && error.raw_os_error().is_none() {
        let message = "not enough memory for the next record; nothing is lost: a further call tries again, or skip such records (record_len_max)";
        return PyMemoryError::new_err(with_path(message.to_owned(), path));
    }
    let Some(path) = path else { return error.into() };
    // Rust's own errors have a kind but no number; their texts are not those of the system.
    let known = match (error.raw_os_error(), error.kind()) {
        (Some(errno), _) => Some((errno, strerror(&error))),
        (None, io::ErrorKind::IsADirectory) => Some((EISDIR, "Is a directory".to_owned())),
        (None, io::ErrorKind::AlreadyExists) => Some((EEXIST, "File exists".to_owned())),
        // Some are created by this crate, and say what is wrong.
        (None, io::ErrorKind::InvalidInput) if error.get_ref().is_some() => Some((EINVAL, error.to_string())),
        (None, io::ErrorKind::InvalidInput) => Some((EINVAL, "Invalid argument".to_owned())),
        (None, io::ErrorKind::UnexpectedEof) => Some((EIO, error.to_string())),
        _ => None,
    };
    match known {
        Some((errno, text)) => PyOSError::new_err((errno, text, path.as_os_str().to_owned())),
        None => error.into(),
    }
}

// The numbers on Linux, macOS and Windows.
pub(crate) const EIO: i32 = 5;
pub(crate) const ENOMEM: i32 = 12;
const EEXIST: i32 = 17;
const EISDIR: i32 = 21;
pub(crate) const EINVAL: i32 = 22;

/// The same exception as `fcntl.flock` raises in Python.
fn locked(py: Python<'_>, message: &str, path: Option<&Path>) -> PyErr {
    let errno = py.import("errno").and_then(|errno| errno.getattr("EAGAIN"));
    match errno.and_then(|errno| errno.extract::<i32>()) {
        Ok(errno) => PyBlockingIOError::new_err((
            errno,
            without_path(message, path),
            path.map(|path| path.as_os_str().to_owned()),
        )),
        Err(error) => error,
    }
}

/// Only the text: Rust appends "(os error 2)", and Python shows the number itself.
fn strerror(error: &io::Error) -> String {
    without_number(&error.to_string())
}

/// A message may contain several errors.
fn without_number(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((before, rest)) => {
            let after = rest.split_once(')').map_or("", |(_, after)| after);
            format!("{before}{}", without_number(after))
        }
        None => text.to_owned(),
    }
}

/// Adds the path unless the message begins with it: the core names the path only if it knows it.
pub(crate) fn with_path(message: String, path: Option<&Path>) -> String {
    match path.map(|path| path.display().to_string()) {
        Some(path) if !message.starts_with(&path) => format!("{path}: {message}"),
        _ => message,
    }
}

/// The path is a separate attribute, which Python shows after the text.
fn without_path(message: &str, path: Option<&Path>) -> String {
    let begin = path.map(|path| format!("{}: ", path.display())).unwrap_or_default();
    message.strip_prefix(&begin).unwrap_or(message).to_owned()
}

/// An `io.UnsupportedOperation`.
pub(crate) fn unsupported(py: Python<'_>, message: &str) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let error = CLASS
        .import(py, "io", "UnsupportedOperation")
        .and_then(|class| class.call1((message,)));
    error.map_or_else(|error| error, PyErr::from_value)
}
