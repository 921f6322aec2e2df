//! Converts the core's errors to Python exceptions. Their classes are written in Python, in
//! `cordwood.errors`.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use cordwood::damage::Reason;
use cordwood::{Dialect, Error, ErrorKind, Hint};
use cordwood_payload::table::Fault;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyStopAsyncIteration, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::enums::{HINT, PAYLOAD_REASON, REASON};
use crate::interpreter::python_code::{PythonCode, module};
use crate::interpreter::{imported, interned};
use crate::memory::buffer::no_memory;

/// Returns the exception for an error from the core. `path` is the path that the user gave, which
/// usually takes precedence over the path in the error.
pub(crate) fn to_python(py: Python<'_>, error: Error, path: Option<&Path>) -> PyErr {
    let path = match error.kind {
        // The user may have given a directory, and the error may be about a file in it.
        ErrorKind::NotASegment | ErrorKind::Foreign { .. } => error.path.as_deref().or(path),
        _ => path.or(error.path.as_deref()),
    };
    let message = match &error.kind {
        // A Python exception has its own message, and converting the exception to text would run
        // Python code.
        ErrorKind::Io { .. } => String::new(),
        ErrorKind::Write { source, .. } if is_raised(source) => String::new(),
        kind => kind.to_string(),
    };
    let offset = error.offset();
    let exception = match error.kind {
        ErrorKind::Io { source, .. } => os_error(py, source, path),
        // The user's own exception is returned unchanged, because a hint would add a note to it.
        ErrorKind::Write { source, .. } if is_raised(&source) => return source.into(),
        ErrorKind::Write { source, .. } if source.kind() == io::ErrorKind::OutOfMemory => {
            PyMemoryError::new_err(placed(path, &message))
        }
        ErrorKind::Write { source, failure, .. } => match source.raw_os_error() {
            Some(errno) => numbered(errno, format!("{}; {failure}", strerror(py, errno)), path),
            None => PyOSError::new_err(placed(path, &message)),
        },
        // Python's `fcntl.flock` fails with the same error number.
        ErrorKind::Locked => match imported!(py, "errno", "EAGAIN").and_then(|errno| errno.extract()) {
            Ok(errno) => numbered(errno, message, path),
            Err(error) => error,
        },
        ErrorKind::Forked => PyOSError::new_err(placed(path, &message)),
        // An error without an offset is about an option. If the error has an offset, the log was
        // written by a later version.
        ErrorKind::Unsupported { .. } if offset.is_none() => PyValueError::new_err(placed(path, &message)),
        ErrorKind::Closed => return closed(py, "writer", path),
        kind => {
            return raised(py, message, path, error.hint, |attributes| {
                of_log(attributes, &kind, offset)
            });
        }
    };
    match error.hint {
        Some(hint) => with_hint(py, exception, hint),
        None => exception,
    }
}

/// Returns the name of the exception class for an error in a log, and sets the exception's
/// attributes.
fn of_log(attributes: &Bound<'_, PyDict>, kind: &ErrorKind, offset: Option<u64>) -> PyResult<&'static str> {
    if let Some(offset) = offset {
        attributes.set_item("offset", offset)?;
    }
    let set_region = |reason: Reason, len: u64| {
        attributes.set_item("reason", REASON.member(attributes.py(), reason.as_str())?)?;
        attributes.set_item("length", len)
    };
    let set_too_large = |len, record_len_max: u64| {
        set_region(Reason::RecordTooLarge, len)?;
        attributes.set_item("record_len_max", record_len_max)?;
        Ok::<_, PyErr>("RecordTooLargeError")
    };
    let set_format = |name: &str| attributes.set_item("format", name).map(|()| "DialectError");
    let set_number = |name: &str, number: Option<u64>, class| attributes.set_item(name, number).map(|()| class);
    Ok(match *kind {
        ErrorKind::Corruption { region, .. } => {
            set_region(region.reason, region.len())?;
            if let Reason::ChecksumMismatch { stored, computed, .. } = region.reason {
                attributes.set_item("stored_crc", stored)?;
                attributes.set_item("computed_crc", computed)?;
            }
            match region.reason {
                Reason::RecordTooLarge => "RecordTooLargeError",
                _ => "CorruptionError",
            }
        }
        ErrorKind::TornTail { region, .. } => {
            set_region(region.reason, region.len())?;
            "TornTailError"
        }
        ErrorKind::OverBudget(record) => set_too_large(record.end_offset - record.offset, record.record_len_max)?,
        ErrorKind::RecordTooLarge { record_len, .. } => set_too_large(record_len, record_len)?,
        ErrorKind::Truncated { file_len, .. } => set_number("file_len", file_len, "LogTruncatedError")?,
        ErrorKind::Pruned { first_offset, .. } => set_number("first_offset", Some(first_offset), "LogTruncatedError")?,
        ErrorKind::Changed { offset, end_offset, .. } => {
            set_number("length", Some(end_offset.saturating_sub(offset)), "LogChangedError")?
        }
        ErrorKind::OtherLog {
            log_number,
            other_log_number,
            ..
        } => {
            attributes.set_item("log_number", log_number)?;
            attributes.set_item("other_log_number", other_log_number)?;
            "OtherLogError"
        }
        ErrorKind::Foreign { foreign, .. } => set_format(foreign.as_str())?,
        ErrorKind::NotASegment => set_format("unknown")?,
        ErrorKind::WrongDialect { found, .. } => set_format(found.name())?,
        ErrorKind::NeverAppended { format, .. } | ErrorKind::NeverPacked { format, .. } => {
            set_format(format.dialect.name())?
        }
        // If an error of this kind has an offset, it is about a packed log.
        ErrorKind::Unsupported { .. } => set_format(Dialect::PACKED.name())?,
        // `to_python` handles the other kinds. A later version of the core may add more kinds.
        _ => "CordwoodError",
    })
}

/// Adds a hint to an exception that is not a `CordwoodError`. A `CordwoodError` gets its hint when
/// it is created. If adding the hint fails, the exception from that failure is returned instead.
pub(crate) fn with_hint(py: Python<'_>, exception: PyErr, hint: Hint) -> PyErr {
    let add = || {
        let hint = HINT.member(py, hint.as_str())?;
        imported!(py, "cordwood.errors", "_add_hint")?.run((exception.value(py), hint))
    };
    add().err().unwrap_or(exception)
}

/// Returns an exception whose class is written in Python. `set` returns the class's name and sets
/// the exception's attributes. If creating the exception fails, the exception from that failure is
/// returned instead.
fn raised<'py>(
    py: Python<'py>,
    message: String,
    path: Option<&Path>,
    hint: Option<Hint>,
    set: impl FnOnce(&Bound<'py, PyDict>) -> PyResult<&'static str>,
) -> PyErr {
    let make = || {
        let attributes = PyDict::new(py);
        attributes.set_item("path", path.map(Path::as_os_str))?;
        if let Some(hint) = hint {
            attributes.set_item("hint", HINT.member(py, hint.as_str())?)?;
        }
        let class = module(py, "cordwood.errors")?.getattr(set(&attributes)?)?;
        class.run_with((message,), Some(&attributes))
    };
    make().map_or_else(|error| error, PyErr::from_value)
}

/// Returns the exception for using a closed object. `what` names the object, for example
/// `"reader"`.
#[cold]
pub(crate) fn closed(py: Python<'_>, what: &str, path: Option<&Path>) -> PyErr {
    raised(py, format!("the {what} is closed"), path, None, |_| Ok("ClosedError"))
}

/// Returns the exception for a followed log that has been rotated or truncated. If `is_rotated` is
/// true, the log's file has been replaced or removed. Otherwise, the log has been truncated.
pub(crate) fn not_followed(py: Python<'_>, is_rotated: bool, path: &Path, offset: u64, file_len: u64) -> PyErr {
    let message = match is_rotated {
        true => format!("the file was replaced or removed; the old one was read up to offset {offset}"),
        false => format!(
            "offset {offset} is past the end of the log ({file_len} bytes): it was truncated, or the offset belongs to \
             another log"
        ),
    };
    raised(py, message, Some(path), None, |attributes| {
        attributes.set_item("offset", offset)?;
        attributes.set_item("file_len", file_len)?;
        Ok(if is_rotated {
            "LogRotatedError"
        } else {
            "LogTruncatedError"
        })
    })
}

/// Returns the exception for a payload that cannot be decoded or encoded.
pub(crate) fn payload_error(py: Python<'_>, fault: impl Into<Fault>) -> PyErr {
    let fault = fault.into();
    let error = fault.error;
    if error.reason == cordwood_payload::PayloadReason::OutOfMemory {
        return no_memory();
    }
    raised(py, fault.to_string(), None, None, |attributes| {
        attributes.set_item("offset", error.offset)?;
        attributes.set_item("length", error.len)?;
        attributes.set_item("reason", PAYLOAD_REASON.member(py, error.reason.as_str())?)?;
        Ok("PayloadError")
    })
}

/// Converts an exception from a Python function that cordwood called, such as a source, a sink, a
/// signal handler or a logger. A `StopIteration` or `StopAsyncIteration` would end the surrounding
/// iteration as if the log had ended, so it becomes the cause of a `RuntimeError`, as in a
/// generator (PEP 479).
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

/// Calls Python to read or write. The calling thread might not be attached to the interpreter.
/// Every exception becomes an error of kind `Other`, even an `InterruptedError`. If the kind were
/// `Interrupted`, the read or write would be repeated, and the exception would be lost.
pub(crate) fn call_python<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> io::Result<T> {
    Python::try_attach(|py| work(py).map_err(|raised| io::Error::other(of_call(py, raised))))
        .unwrap_or_else(|| Err(io::Error::other("the interpreter has ended")))
}

/// Runs the handlers for any signals that have arrived. If a handler raises an exception, the call
/// fails with that exception.
pub(crate) fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals().map_err(|raised| of_call(py, raised))
}

/// Like [`check_signals`], but for use during a read or write (see [`call_python`]).
pub(crate) fn check_signals_anywhere() -> io::Result<()> {
    // Once the interpreter has shut down, no handlers are left to run.
    Python::try_attach(|py| check_signals(py).map_err(io::Error::other)).unwrap_or(Ok(()))
}

/// Like [`check_signals`], but for a thread that may or may not be attached to the interpreter,
/// such as an Arrow consumer reading a stream. The thread that holds the interpreter lock may be
/// waiting for this one. Only the main thread checks for signals, because they don't reach any
/// other thread. Checks are rare, because getting the interpreter from a busy thread can take 5 ms.
pub(crate) fn check_signals_in_main_thread() -> io::Result<()> {
    if NEXT_CHECK.get().is_none_or(|next| Instant::now() < next) {
        return Ok(());
    }
    NEXT_CHECK.set(Some(Instant::now() + PAUSE));
    check_signals_anywhere()
}

/// The time between two checks for signals.
const PAUSE: Duration = Duration::from_millis(50);

thread_local! {
    /// When to check for signals next. It is set only in the main thread, by [`note_main_thread`].
    static NEXT_CHECK: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Remembers this thread if it is the main thread. Only the interpreter knows which thread is the
/// main one.
pub(crate) fn note_main_thread(py: Python<'_>) -> PyResult<()> {
    let threading = module(py, "threading")?;
    let current = threading.run_method(interned!(py, "current_thread")?, ())?;
    if current.is(&threading.run_method(interned!(py, "main_thread")?, ())?) {
        NEXT_CHECK.set(NEXT_CHECK.get().or(Some(Instant::now())));
    }
    Ok(())
}

/// Returns an `OSError` of the matching subclass, with the path as its file name. If a Python
/// object raised an exception during the read or write, that exception is returned instead.
pub(crate) fn os_error(py: Python<'_>, error: io::Error, path: Option<&Path>) -> PyErr {
    if let Some(errno) = error.raw_os_error() {
        return numbered(errno, strerror(py, errno), path);
    }
    let errno = match error.kind() {
        _ if is_raised(&error) => return error.into(),
        // Operating system errors have a number. This error has none, so it must come from the
        // core.
        io::ErrorKind::OutOfMemory => {
            return PyMemoryError::new_err(placed(path, "not enough memory for the next record"));
        }
        io::ErrorKind::IsADirectory => EISDIR,
        io::ErrorKind::AlreadyExists => EEXIST,
        io::ErrorKind::InvalidInput => EINVAL,
        io::ErrorKind::UnexpectedEof => EIO,
        _ => return error.into(),
    };
    // Some of these errors carry text from the core that describes the fault. For the others, the
    // operating system's text is used instead of Rust's.
    let text = error.get_ref().map_or_else(|| strerror(py, errno), ToString::to_string);
    numbered(errno, text, path)
}

/// Checks whether an error is an exception raised by Python code.
fn is_raised(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<PyErr>)
}

/// Returns an `OSError` of the subclass for this `errno` number.
fn numbered(errno: i32, text: String, path: Option<&Path>) -> PyErr {
    match path {
        Some(path) => PyOSError::new_err((errno, text, path.as_os_str().to_owned())),
        None => PyOSError::new_err((errno, text)),
    }
}

// These `errno` numbers are the same on Linux, macOS and Windows.
pub(crate) const EIO: i32 = 5;
pub(crate) const ENOMEM: i32 = 12;
const EEXIST: i32 = 17;
const EISDIR: i32 = 21;
pub(crate) const EINVAL: i32 = 22;

/// Returns the operating system's message for an error number. Rust's own message would end with
/// the number, which Python already displays.
fn strerror(py: Python<'_>, errno: i32) -> String {
    let text = imported!(py, "os", "strerror").and_then(|strerror| strerror.run((errno,))?.extract());
    text.unwrap_or_else(|_| io::Error::from_raw_os_error(errno).to_string())
}

/// Returns the message for an exception whose class has no path attribute. The message starts with
/// the path, if there is one.
fn placed(path: Option<&Path>, message: &str) -> String {
    match path {
        Some(path) => format!("{}: {message}", path.display()),
        None => message.to_owned(),
    }
}

/// Creates an `io.UnsupportedOperation`.
pub(crate) fn unsupported(py: Python<'_>, message: &str) -> PyErr {
    let error = imported!(py, "io", "UnsupportedOperation").and_then(|class| class.run((message,)));
    error.map_or_else(|error| error, PyErr::from_value)
}
