//! How objects are pickled and shown: values can be copied and pickled, and are shown in one line.

use std::path::Path;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};

use crate::interpreter::imported;

/// The result of `__reduce__`: `pickle` and `copy` call the constructor with these arguments.
/// Unlike `__getnewargs_ex__`, it works with every protocol of `pickle`.
pub(crate) type Reduced<'py> = (
    Bound<'py, PyAny>,
    (Bound<'py, PyType>, Bound<'py, PyTuple>, Bound<'py, PyDict>),
);

/// The value as a call of its constructor with the attributes of these names as keywords.
pub(crate) fn reduced<'py>(value: &Bound<'py, PyAny>, names: &[&str]) -> PyResult<Reduced<'py>> {
    let py = value.py();
    let keywords = PyDict::new(py);
    for name in names {
        // The same object for all values, which `pickle` writes once.
        let name = PyString::intern(py, name);
        keywords.set_item(&name, value.getattr(&name)?)?;
    }
    // For which `pickle` has a short form.
    let new = imported!(py, "copyreg", "__newobj_ex__")?;
    Ok((new.clone(), (value.get_type(), PyTuple::empty(py), keywords)))
}

/// The exception from `pickle` and `copy` for objects with a file, a lock or a position.
pub(crate) fn not_pickled(what: &str, instead: &str) -> PyErr {
    PyTypeError::new_err(format!("a {what} cannot be pickled or copied: {instead}"))
}

/// The `repr` of an object that reads or writes a log, such as `"Reader"`.
pub(crate) fn handle_repr(class: &str, path: Option<&Path>, is_closed: bool) -> String {
    let of = path.map_or(String::new(), |path| format!(" of {:?}", path.display().to_string()));
    let closed = if is_closed { ", closed" } else { "" };
    format!("<cordwood.{class}{of}{closed}>")
}

/// The maximum number of bytes that are shown in full.
const SHOWN_MAX: usize = 64;

/// The `repr` of bytes, shortened if there are many.
pub(crate) fn short_repr(py: Python<'_>, bytes: &[u8]) -> PyResult<String> {
    let shown = |bytes| PyBytes::new(py, bytes).repr().map(|text| text.to_string());
    if bytes.len() <= SHOWN_MAX {
        return shown(bytes);
    }
    let first = shown(&bytes[..SHOWN_MAX / 2])?;
    Ok(format!("<{} bytes: {first}...>", bytes.len()))
}
