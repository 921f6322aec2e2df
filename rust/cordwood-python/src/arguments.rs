//! Arguments that are paths or bytes.

use std::path::PathBuf;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString, PyType};

use crate::buffer::copy_of_array;
use crate::error::no_memory;

/// Refuses a text file, which would return text instead of bytes.
pub(crate) fn refuse_text(object: &Bound<'_, PyAny>) -> PyResult<()> {
    static TEXT: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if object.is_instance(TEXT.import(object.py(), "io", "TextIOBase")?)? {
        return Err(PyTypeError::new_err(
            "a text file was given; open it in binary mode ('rb' or 'wb')",
        ));
    }
    Ok(())
}

/// Whether `object` is a `str` that is a URL, not a path.
pub(crate) fn is_url(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static IS_URL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    match object.cast::<PyString>() {
        Ok(text) if text.to_string_lossy().contains("://") => {
            let is_url = IS_URL.import(object.py(), "cordwood._remote", "is_url")?;
            is_url.call1((object,))?.extract()
        }
        _ => Ok(false),
    }
}

/// Whether `object` is a `str` or an `os.PathLike`.
pub(crate) fn is_path(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.is_instance_of::<PyString>() || object.hasattr(intern!(object.py(), "__fspath__"))?)
}

/// Refuses a URL. The end of the message says `why`, and what to do.
pub(crate) fn refuse_url(object: &Bound<'_, PyAny>, why: &str) -> PyResult<()> {
    if is_url(object)? {
        return Err(PyValueError::new_err(format!("{object} is a URL, and {why}")));
    }
    Ok(())
}

/// `object` as a path, if it is a `str` or an `os.PathLike`. Callers check for a URL first.
pub(crate) fn path_of(object: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    if !is_path(object)? {
        return Ok(None);
    }
    static DECODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let path: PathBuf = if object.is_instance_of::<PyString>() {
        object.extract()?
    } else {
        // `__fspath__` may return bytes, as that of an entry of `os.scandir(b".")` does.
        let decode = DECODE.import(object.py(), "os", "fsdecode")?;
        decode.call1((object,))?.extract()?
    };
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(PyValueError::new_err("embedded null byte in the path"));
    }
    Ok(Some(path))
}

/// A view of any buffer as plain bytes, and its length.
pub(crate) fn byte_view<'py>(view: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, u64)> {
    let cast = view.call_method1(intern!(view.py(), "cast"), ("B",));
    let view = cast.map_err(|_| PyTypeError::new_err("the buffer must be contiguous"))?;
    let len = view.len()? as u64;
    Ok((view, len))
}

/// A copy of the bytes of any buffer; `name` is the name of the argument.
pub(crate) fn bytes_of(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return copy_of(bytes.as_bytes());
    }
    if let Ok(array) = object.cast::<PyByteArray>() {
        return copy_of_array(array);
    }
    let Ok(view) = PyMemoryView::from(object) else {
        return Err(not_bytes(name, object));
    };
    let buffer = PyBuffer::get(&byte_view(&view)?.0)?;
    let mut bytes = vec_for(buffer.len_bytes())?;
    bytes.resize(buffer.len_bytes(), 0);
    buffer.copy_to_slice(object.py(), &mut bytes)?;
    Ok(bytes)
}

/// A copy of `bytes`.
///
/// # Errors
///
/// `MemoryError`.
pub(crate) fn copy_of(bytes: &[u8]) -> PyResult<Vec<u8>> {
    let mut copy = vec_for(bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// An empty vector with room for `count` items.
///
/// # Errors
///
/// `MemoryError`.
pub(crate) fn vec_for<T>(count: usize) -> PyResult<Vec<T>> {
    let mut items = Vec::new();
    items.try_reserve_exact(count).map_err(|_| no_memory())?;
    Ok(items)
}

/// The exception for an argument that is not a buffer.
#[cold]
fn not_bytes(name: &str, object: &Bound<'_, PyAny>) -> PyErr {
    if object.is_instance_of::<PyString>() {
        return PyTypeError::new_err(format!(
            "{name} must be bytes-like, not str: encode it first, for example text.encode()"
        ));
    }
    match object.get_type().name() {
        Ok(class) => PyTypeError::new_err(format!(
            "{name} must be bytes-like, not {class}: pass bytes, bytearray or another buffer"
        )),
        Err(error) => error,
    }
}
