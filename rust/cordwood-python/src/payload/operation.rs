//! The operations of write batches. In Python, an operation is a named tuple, whose class is in
//! `cordwood.payload.write_batch`.

use cordwood_payload::{self as payload, Parts};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::values::arguments::bytes_of;
use crate::values::enums::OPERATION_KIND;
use crate::values::{IntoField, named_tuple};

/// An operation read from a batch. It has a sequence number if the batch header counts it.
pub(crate) struct Operation<'a> {
    pub(crate) operation: payload::Operation<'a>,
    pub(crate) sequence: Option<u64>,
}

named_tuple!(
    "cordwood.payload.write_batch",
    "Operation",
    |read: Operation<'_>, py| {
        let parts = read.operation.parts();
        [
            OPERATION_KIND.member(py, read.operation.as_str())?,
            read.sequence,
            parts.column_family,
            parts.key,
            parts.end_key,
            parts.value,
            parts.xid,
            parts.timestamp,
            parts.write_unix_time,
        ]
    }
);

/// Returns the names of the parts that an operation has, except the column family, which callers
/// may always omit.
fn names(parts: &Parts<'_>) -> Vec<&'static str> {
    let strings = parts.strings().into_iter();
    let strings = strings.filter_map(|(name, bytes)| bytes.map(|_| name));
    strings
        .chain(parts.write_unix_time.map(|_| "write_unix_time"))
        .collect()
}

/// Returns the number in a field. If it has too many bits, a note with the field's name is added to
/// the error.
fn number_of<T>(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Option<T>>
where
    T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>,
{
    given.extract().map_err(|error: PyErr| {
        let noted = error.add_note(given.py(), format!("while processing '{name}'"));
        noted.err().unwrap_or(error)
    })
}

/// Returns the bytes in a field.
fn string_of<'py>(name: &str, given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    (!given.is_none()).then(|| bytes_of(name, given)).transpose()
}

/// An operation to be written.
pub(crate) struct NewOperation<'py> {
    kind: String,
    column_family: Option<u32>,
    /// The parts that are bytes, in the order of the tuple.
    strings: [Option<Bound<'py, PyBytes>>; 5],
    write_unix_time: Option<u64>,
}

impl<'py> NewOperation<'py> {
    /// Converts a named tuple, or any tuple with the same fields.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let fields: [Bound<'_, _>; 9] = object.cast::<PyTuple>()?.extract()?;
        let [kind, _sequence, column_family, given @ .., write_unix_time] = fields;
        let kind = kind.extract()?;
        let column_family = number_of("column_family", &column_family)?;
        let mut strings = [const { None }; 5];
        for ((place, (name, _)), given) in strings.iter_mut().zip(Parts::default().strings()).zip(&given) {
            *place = string_of(name, given)?;
        }
        Ok(NewOperation {
            kind,
            column_family,
            strings,
            write_unix_time: number_of("write_unix_time", &write_unix_time)?,
        })
    }

    /// Converts the values to an operation in a batch. Fails unless these are exactly the parts
    /// that its kind has.
    pub(crate) fn core(&self) -> PyResult<payload::Operation<'_>> {
        let kind = &self.kind;
        let strings = self.strings.each_ref();
        let [key, end_key, value, xid, timestamp] = strings.map(|bytes| bytes.as_ref().map(PyBytesMethods::as_bytes));
        let given = Parts {
            column_family: self.column_family,
            key,
            end_key,
            value,
            xid,
            timestamp,
            write_unix_time: self.write_unix_time,
        };
        let Some(operation) = payload::Operation::from_parts(kind, given) else {
            return Err(PyValueError::new_err(format!("'{kind}' is not a kind of operation")));
        };
        let parts = operation.parts();
        if given.column_family.is_some() && parts.column_family.is_none() {
            return Err(PyTypeError::new_err(format!("a {kind} has no column_family")));
        }
        if names(&given) == names(&parts) {
            return Ok(operation);
        }
        let needed = match names(&parts).as_slice() {
            [] => "nothing".to_owned(),
            names => names.join(", "),
        };
        Err(PyTypeError::new_err(format!(
            "a {kind} has {needed}, no more and no less"
        )))
    }
}
