//! The errors for invalid arguments: they name the valid values.

use std::ops;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// A file offset, a length or a count.
pub(crate) fn number<'py, N: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(value: &Bound<'py, PyAny>) -> PyResult<N> {
    value.extract().map_err(|error: PyErr| {
        if !error.is_instance_of::<PyOverflowError>(value.py()) {
            return error;
        }
        let wanted = if value.lt(0).unwrap_or(false) {
            "0 or more"
        } else {
            "less than that"
        };
        PyValueError::new_err(format!("an offset, a length or a count must be {wanted}, not {value}"))
    })
}

/// The same, or `None`.
pub(crate) fn optional_number(value: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    if value.is_none() {
        Ok(None)
    } else {
        number(value).map(Some)
    }
}

/// The name of a value of an option; `rule` lists the valid ones: `"sync must be 'never' or
/// 'close'"`.
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
