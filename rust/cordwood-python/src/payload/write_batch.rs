//! The functions of `cordwood.payload.WriteBatch`.

use cordwood_payload::{self as payload, Engine};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::operation::{NewOperation, Operation};
use crate::exclusive::Exclusive;
use crate::interpreter::python_code::PythonCode;
use crate::memory::buffer::{no_memory, try_bytes, vec_for};
use crate::values::arguments::bytes_of;
use crate::values::error::{of_call, payload_error};

/// Reads the numbers in a write batch's header, and returns them with the record.
///
/// Args:
///     record: `bytes` or any other buffer.
///     engine: `"rocksdb"` or `"pebble"`.
///
/// Returns:
///     The record as `bytes`, the sequence number of the first operation, and the number of counted
///     operations.
///
/// Raises:
///     PayloadError: The record is shorter than the header of a batch.
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

/// Builds the record of a write batch with these operations.
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
///     PayloadError: The engine does not know one of the operations, or a part is too large.
///     TypeError: An item is not an `Operation`, lacks an attribute that its kind needs, or has one
///         that its kind does not have.
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

/// Checks the write batches of one log, and detects the engine that wrote them.
///
/// Args:
///     dialect: The dialect of the log, or `None`. If RocksDB and Pebble both use the dialect, the
///         batches show which of them wrote the log.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct WriteBatchReader(Exclusive<payload::WriteBatchReader>);

#[pymethods]
impl WriteBatchReader {
    #[new]
    #[pyo3(signature = (dialect, /))]
    fn new(dialect: Option<&str>) -> Self {
        WriteBatchReader(Exclusive::new(payload::WriteBatchReader::new(engine_of_log(dialect))))
    }

    /// Decodes the whole batch in the next record, and returns its engine.
    ///
    /// Args:
    ///     record: The record.
    ///
    /// Returns:
    ///     `"rocksdb"` or `"pebble"`.
    ///
    /// Raises:
    ///     PayloadError: The record is not a batch, or the batch is damaged.
    #[pyo3(signature = (record, /))]
    fn engine(&self, record: &Bound<'_, PyBytes>) -> PyResult<&'static str> {
        let py = record.py();
        let read = self.0.lock(py)?.read(record.as_bytes());
        match read {
            Ok((batch, None)) => Ok(match batch.engine() {
                Engine::Pebble => "pebble",
                _ => "rocksdb",
            }),
            Ok((_, Some(fault))) | Err(fault) => Err(payload_error(py, fault)),
        }
    }

    /// A message if it is uncertain which engine wrote the log, otherwise `None`.
    ///
    /// The engine is uncertain if RocksDB and Pebble read a batch differently and no earlier batch
    /// shows which of them wrote the log.
    #[getter]
    fn note(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        Ok(self.0.lock(py)?.note())
    }
}

/// Returns the engine of a log in this dialect, or `None` if only the batches can show it.
pub(crate) fn engine_of_log(dialect: Option<&str>) -> Option<Engine> {
    match dialect {
        Some("rocksdb") => Some(Engine::RocksDb),
        Some("pebble") => Some(Engine::Pebble),
        _ => None,
    }
}

/// An iterator over the operations of a write batch, which decodes them one at a time.
///
/// Args:
///     record: The record.
///     engine: `"rocksdb"` or `"pebble"`.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct WriteBatchOperations {
    record: Py<PyBytes>,
    engine: Engine,
    /// The position of the next operation, or `None` after the last one or an error.
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
