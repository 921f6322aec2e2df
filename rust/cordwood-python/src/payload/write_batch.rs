//! The functions of `cordwood.payload.WriteBatch`. In Python, an operation is a named tuple, whose
//! class is in `cordwood.payload.write_batch`.

use cordwood_payload::{self as payload, Engine, Parts};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::exclusive::Exclusive;
use crate::interpreter::python_code::PythonCode;
use crate::memory::buffer::{no_memory, try_bytes, vec_for};
use crate::values::arguments::bytes_of;
use crate::values::enums::OPERATION_KIND;
use crate::values::error::{of_call, payload_error};
use crate::values::{IntoField, named_tuple};

/// Reads the numbers in a write batch's header, and returns them with the record.
///
/// Args:
///     record: `bytes` or any other buffer.
///     engine: `"rocksdb"` or `"pebble"`.
///
/// Returns:
///     The record as `bytes`, the first operation's sequence number, and the number of counted
///     operations.
///
/// Raises:
///     PayloadError: The record is shorter than a batch header.
///     TypeError: `record` is not bytes-like.
///     ValueError: The engine is unknown.
#[pyfunction]
#[pyo3(signature = (record, engine, /))]
pub(crate) fn write_batch_header<'py>(
    record: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = engine_of)] engine: Engine,
) -> PyResult<(Bound<'py, PyBytes>, u64, u32)> {
    let record = bytes_of("record", record)?;
    let batch = core(&record, engine)?;
    let (sequence, count) = (batch.sequence(), batch.count());
    Ok((record, sequence, count))
}

/// Builds the record for a write batch with these operations.
///
/// Args:
///     sequence: The sequence number of the first operation.
///     operations: The operations, in order.
///     engine: `"rocksdb"` or `"pebble"`.
///
/// Returns:
///     The record.
///
/// Raises:
///     PayloadError: The engine does not support one of the operations, or a part is too large.
///     TypeError: An item is not an `Operation`, lacks an attribute that its kind needs, or has an
///         attribute that its kind does not have.
///     ValueError: The engine or a kind of operation is unknown.
///     OverflowError: A number is negative or has too many bits.
#[pyfunction]
#[pyo3(signature = (sequence, operations, engine, /))]
pub(crate) fn build_write_batch<'py>(
    sequence: u64,
    operations: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = engine_of)] engine: Engine,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = operations.py();
    let mut given = Vec::new();
    for operation in operations.items()? {
        given.try_reserve(1).map_err(|_| no_memory())?;
        given.push(NewOperation::of(&operation?)?);
    }
    let mut operations = vec_for(given.len())?;
    for operation in &given {
        operations.push(operation.core()?);
    }
    let record = payload::WriteBatch::encode(sequence, &operations, engine);
    try_bytes(py, &record.map_err(|error| payload_error(py, error))?)
}

/// An iterator that decodes the operations of a write batch one at a time.
///
/// Args:
///     record: The record.
///     engine: `"rocksdb"` or `"pebble"`.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct WriteBatchOperations {
    record: Py<PyBytes>,
    engine: Engine,
    /// The position of the next operation, or `None` after the last operation or an error.
    next: Exclusive<Option<payload::Position>>,
}

#[pymethods]
impl WriteBatchOperations {
    #[new]
    #[pyo3(signature = (record, engine, /))]
    fn new(record: Py<PyBytes>, #[pyo3(from_py_with = engine_of)] engine: Engine) -> Self {
        let next = Exclusive::new(Some(payload::Position::START));
        WriteBatchOperations { record, engine, next }
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let batch = core(self.record.bind(py), self.engine)?;
        let mut next = self.next.lock(py)?;
        let _owner = self.next.may_run_python();
        let Some(mut position) = *next else {
            return Ok(None);
        };
        let step = batch.next_operation(&mut position);
        if let Ok(Some((operation, sequence))) = step {
            let object = Operation { operation, sequence }.into_pyobject(py);
            let object = object.map_err(|raised| of_call(py, raised))?;
            *next = Some(position);
            return Ok(Some(object));
        }
        *next = None;
        // Creating an exception runs Python code, so the lock is released first.
        drop(next);
        step.map(|_| None).map_err(|error| payload_error(py, error))
    }
}

fn core<'a>(record: &'a Bound<'_, PyBytes>, engine: Engine) -> PyResult<payload::WriteBatch<'a>> {
    payload::WriteBatch::new(record.as_bytes(), engine).map_err(|error| payload_error(record.py(), error))
}

fn engine_of(name: &Bound<'_, PyAny>) -> PyResult<Engine> {
    match name.extract()? {
        "rocksdb" => Ok(Engine::RocksDb),
        "pebble" => Ok(Engine::Pebble),
        other => Err(PyValueError::new_err(format!(
            "engine must be 'rocksdb' (LevelDB's, too) or 'pebble', not '{other}'"
        ))),
    }
}

/// An operation read from a batch. It has a sequence number if the batch header's count includes
/// it.
struct Operation<'a> {
    operation: payload::Operation<'a>,
    sequence: Option<u64>,
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

/// Returns the names of an operation's parts, except the column family, which callers may always
/// omit.
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

/// An operation to be written.
struct NewOperation<'py> {
    kind: String,
    column_family: Option<u32>,
    /// The parts that are bytes, in the same order as in the tuple.
    strings: [Option<Bound<'py, PyBytes>>; 5],
    write_unix_time: Option<u64>,
}

impl<'py> NewOperation<'py> {
    /// Converts a named tuple, or any tuple with the same fields.
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let fields: [Bound<'_, _>; 9] = object.cast::<PyTuple>()?.extract()?;
        let [kind, _sequence, column_family, given @ .., write_unix_time] = fields;
        let kind = kind.extract()?;
        let column_family = number_of("column_family", &column_family)?;
        let mut strings = [const { None }; 5];
        for ((place, (name, _)), given) in strings.iter_mut().zip(Parts::default().strings()).zip(&given) {
            *place = (!given.is_none()).then(|| bytes_of(name, given)).transpose()?;
        }
        Ok(NewOperation {
            kind,
            column_family,
            strings,
            write_unix_time: number_of("write_unix_time", &write_unix_time)?,
        })
    }

    /// Converts the values to an operation in a batch. Fails if a part is missing, or if a part
    /// doesn't belong to operations of this kind.
    fn core(&self) -> PyResult<payload::Operation<'_>> {
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
