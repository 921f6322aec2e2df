//! Converts arguments that are paths or bytes.

use std::path::PathBuf;

use pyo3::exceptions::{PyException, PyMemoryError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use crate::interpreter::python_code::PythonCode;
use crate::interpreter::{imported, interned};
use crate::memory::buffer::bytes_of_buffer;

/// Rejects a text file, because reading it would return text instead of bytes.
pub(crate) fn refuse_text(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if object.is_a(imported!(object.py(), "io", "TextIOBase")?)? {
        return Err(PyTypeError::new_err(
            "a text file was given; open it in binary mode ('rb' or 'wb')",
        ));
    }
    Ok(())
}

/// Checks whether `object` is a `str` that contains a URL rather than a path.
pub(crate) fn is_url(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match object.cast::<PyString>() {
        Ok(text) if text.to_string_lossy().contains("://") => {
            let is_url = imported!(object.py(), "cordwood._text", "is_url")?;
            is_url.run((object,))?.extract()
        }
        _ => Ok(false),
    }
}

/// Checks whether `object` is a `str` or an `os.PathLike`.
pub(crate) fn is_path(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_instance_of::<PyString>() || object.attribute(interned!(object.py(), "__fspath__")?)?.is_some())
}

/// Rejects a URL. `why` is the end of the error message and explains how to correct the call.
pub(crate) fn refuse_url(object: &Bound<'_, PyAny>, why: &str) -> PyResult<()> {
    if is_url(object)? {
        return Err(PyValueError::new_err(format!("{object} is a URL, and {why}")));
    }
    Ok(())
}

/// Returns `object` as a path if it is a `str` or an `os.PathLike`. Callers check for URLs first.
pub(crate) fn path_of(object: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    if !is_path(object)? {
        return Ok(None);
    }
    let path: PathBuf = if object.is_instance_of::<PyString>() {
        object.extract()?
    } else {
        // `__fspath__` may return bytes, as the entries of `os.scandir(b".")` do.
        let decode = imported!(object.py(), "os", "fsdecode")?;
        decode.run((object,))?.extract()?
    };
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(PyValueError::new_err("embedded null byte in the path"));
    }
    Ok(Some(path))
}

/// Like [`path_of`], for an argument that must be a path. `name` is the argument's name.
pub(crate) fn required_path(name: &str, object: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    match path_of(object)? {
        Some(path) => Ok(path),
        None => Err(PyTypeError::new_err(format!(
            "{name} must be str or os.PathLike, not {}",
            object.get_type().name()?
        ))),
    }
}

/// Rejects a buffer that isn't contiguous. The type of its items doesn't matter.
pub(crate) fn check_contiguous(view: &Bound<'_, PyMemoryView>) -> PyResult<()> {
    let py = view.py();
    if view.getattr(interned!(py, "c_contiguous")?)?.is_truthy()? || view.getattr(interned!(py, "nbytes")?)?.eq(0)? {
        return Ok(());
    }
    Err(PyTypeError::new_err("the buffer must be contiguous"))
}

/// Converts an index to one that counts from 0. A negative index counts from the end of the `len`
/// items. Returns `None` if the index is out of range.
pub(crate) fn place_of(index: &Bound<'_, PyAny>, len: u64) -> PyResult<Option<u64>> {
    match index.extract::<i64>() {
        Ok(index) if index < 0 => Ok(len.checked_sub(index.unsigned_abs())),
        Ok(index) => Ok(Some(index.unsigned_abs()).filter(|&index| index < len)),
        Err(error) if error.is_instance_of::<PyOverflowError>(index.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the bytes of any buffer as an immutable object: `object` itself if its class is `bytes`,
/// otherwise a copy. `name` is the argument's name.
#[inline]
pub(crate) fn bytes_of<'py>(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    match object.cast_exact::<PyBytes>() {
        Ok(bytes) => Ok(bytes.clone()),
        // Objects of a subclass are copied, because the subclass may define its own comparison.
        Err(_) => copied_bytes(name, object),
    }
}

#[inline(never)]
fn copied_bytes<'py>(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if object.is_exact_instance_of::<PyByteArray>() {
        return bytes_of_buffer(object);
    }
    let view = view_of(object)?.map_err(|error| not_bytes(name, object, error))?;
    check_contiguous(&view)?;
    bytes_of_buffer(&view)
}

/// Returns the exception for an argument that isn't a buffer or whose buffer can't be read. `error`
/// is the cause.
#[cold]
fn not_bytes(name: &str, object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = object.py();
    if object.is_instance_of::<PyString>() {
        return PyTypeError::new_err(format!(
            "{name} must be bytes-like, not str: encode it first, for example text.encode()"
        ));
    }
    let class = match object.get_type().name() {
        Ok(class) => class,
        Err(error) => return error,
    };
    let of_buffer = Some(error).filter(|error| is_of_buffer(py, error));
    let why = match &of_buffer {
        Some(error) => error.value(py).to_string(),
        None => "pass bytes, bytearray or another buffer".to_owned(),
    };
    let refused = PyTypeError::new_err(format!("{name} must be bytes-like, not {class}: {why}"));
    refused.set_cause(py, of_buffer);
    refused
}

/// Returns `memoryview(object)`, or the exception raised while creating the view. Some exceptions
/// have nothing to do with the object, so they are raised instead. These are `MemoryError` and
/// exceptions that don't derive from `Exception`, such as `KeyboardInterrupt`.
pub(crate) fn view_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Result<Bound<'py, PyMemoryView>, PyErr>> {
    let py = object.py();
    match PyMemoryView::from(object) {
        Err(error) if error.is_instance_of::<PyMemoryError>(py) || !error.is_instance_of::<PyException>(py) => {
            Err(error)
        }
        view => Ok(view),
    }
}

/// Checks whether `memoryview(object)` failed because of an error in the object's buffer. If the
/// object has no buffer, the exception is a `TypeError`.
pub(crate) fn is_of_buffer(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyTypeError>(py)
}
