//! The class `WriteBatch`.

use cordwood_payload::{self as payload, Engine};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::operation::{NewOperation, Operation};
use crate::exclusive::Exclusive;
use crate::interpreter::python_code::PythonCode;
use crate::memory::buffer::{no_memory, try_bytes, vec_for};
use crate::values::arguments::bytes_of;
use crate::values::error::{of_call, payload_error};
use crate::values::pickle::{Reduced, reduced_to};

/// A record of a LevelDB, RocksDB or Pebble write-ahead log: operations that form one unit.
///
/// Iterating yields the operations in order, decoded one by one. A damaged batch yields those
/// before the damage, then raises `PayloadError`; so does a batch whose header states a different
/// count. `len(batch)` decodes all operations and raises the same error; `bool(batch)` is true if
/// there are any; `bytes(batch)` is the record. Every batch that can be read can be written:
/// passing the operations to `build` gives a batch whose `bytes` are the record.
///
/// Args:
///     record: The record. Only its header is decoded at first.
///     engine: `"rocksdb"`, whose first two tags are also LevelDB's, or `"pebble"`. Five tags have
///         one meaning in RocksDB and another in Pebble. Default: `"rocksdb"`.
///
/// Raises:
///     PayloadError: The record is shorter than the header of a batch.
///     TypeError: `record` is not bytes-like.
///     ValueError: There is no such engine.
///
/// >>> from cordwood.payload import Operation, OperationKind, WriteBatch
/// >>> put = Operation(OperationKind.PUT, key=b"k", value=b"v")
/// >>> batch = WriteBatch.build(100, [put, Operation(OperationKind.DELETE, key=b"old")])
/// >>> bytes(batch).hex(" ", -4)
/// '64000000 00000000 02000000 01016b01 7600036f 6c64'
/// >>> for operation in WriteBatch(bytes(batch)):
/// ...     print(operation.sequence, operation)
/// 100 Operation('put', key=b'k', value=b'v')
/// 101 Operation('delete', key=b'old')
#[pyclass(frozen, module = "cordwood.payload")]
pub(crate) struct WriteBatch {
    record: Py<PyBytes>,
    engine: Engine,
    sequence: u64,
    count: u32,
}

impl WriteBatch {
    fn from_bytes(record: Bound<'_, PyBytes>, engine: Engine) -> PyResult<Self> {
        let py = record.py();
        let batch = payload::WriteBatch::new(record.as_bytes(), engine).map_err(|error| payload_error(py, error))?;
        let (sequence, count) = (batch.sequence(), batch.count());
        Ok(WriteBatch {
            record: record.unbind(),
            engine,
            sequence,
            count,
        })
    }

    fn core<'a>(&'a self, py: Python<'a>) -> PyResult<payload::WriteBatch<'a>> {
        payload::WriteBatch::new(self.record.as_bytes(py), self.engine).map_err(|error| payload_error(py, error))
    }
}

#[pymethods]
impl WriteBatch {
    #[new]
    #[pyo3(signature = (record, *, engine = "rocksdb"))]
    fn new(record: &Bound<'_, PyAny>, engine: &str) -> PyResult<Self> {
        WriteBatch::from_bytes(kept(record)?, engine_of(engine)?)
    }

    /// Builds a batch from operations. The count in its header includes only operations that count.
    ///
    /// Args:
    ///     sequence: The sequence number of the first operation.
    ///     operations: The operations, in order, each with exactly the attributes that its kind has.
    ///         Their own sequence numbers are ignored.
    ///     engine: As for the class.
    ///
    /// Returns:
    ///     The batch.
    ///
    /// Raises:
    ///     PayloadError: The engine does not know one of the operations, or a part is too large.
    ///     TypeError: An item of `operations` is not an `Operation`, lacks an attribute that its kind
    ///         has, or has another one.
    ///     ValueError: There is no such engine, or no such kind of operation.
    ///     OverflowError: A number is negative or has too many bits.
    ///
    /// >>> from cordwood.payload import Operation, OperationKind, WriteBatch
    /// >>> WriteBatch.build(7, [Operation(OperationKind.PUT, key=b"k", value=b"v")])
    /// <cordwood.payload.WriteBatch: sequence=7, count=1>
    #[staticmethod]
    #[pyo3(signature = (sequence, operations, *, engine = "rocksdb"))]
    fn build(sequence: u64, operations: &Bound<'_, PyAny>, engine: &str) -> PyResult<Self> {
        let py = operations.py();
        let engine = engine_of(engine)?;
        let mut given = Vec::new();
        for operation in operations.try_iter()? {
            given.try_reserve(1).map_err(|_| no_memory())?;
            given.push(NewOperation::of(&operation?)?);
        }
        let mut operations = vec_for(given.len())?;
        for operation in &given {
            operations.push(operation.core()?);
        }
        let record = payload::WriteBatch::encode(sequence, &operations, engine);
        let record = record.map_err(|error| payload_error(py, error))?;
        WriteBatch::from_bytes(try_bytes(py, &record)?, engine)
    }

    /// The sequence number of the first operation.
    #[getter]
    fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The number of operations that the header states.
    ///
    /// Log data and transaction markers do not count.
    #[getter]
    fn count(&self) -> u32 {
        self.count
    }

    /// `"rocksdb"` or `"pebble"`.
    #[getter]
    fn engine(&self) -> &'static str {
        match self.engine {
            Engine::Pebble => "pebble",
            _ => "rocksdb",
        }
    }

    /// The batch in a form that JSON can represent.
    ///
    /// Bytes become text if they are UTF-8, and `{"base64": "..."}` if they are not.
    ///
    /// Returns:
    ///     `sequence`, `count`, and `operations`, each with the attributes that it has.
    ///
    /// Raises:
    ///     PayloadError: The batch is damaged.
    ///
    /// >>> from cordwood.payload import Operation, OperationKind, WriteBatch
    /// >>> WriteBatch.build(7, [Operation(OperationKind.DELETE, key=b"k")]).to_dict()["operations"]
    /// [{'kind': 'delete', 'sequence': 7, 'column_family': 0, 'key': 'k'}]
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let module = py.import("cordwood.payload.write_batch")?;
        module.run_method(intern!(py, "dict_of"), (slf,))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let mut operations = self.core(py)?.operations();
        let len = operations.try_fold(0, |len, operation| operation.map(|_| len + 1));
        len.map_err(|error| payload_error(py, error))
    }

    fn __bool__(&self, py: Python<'_>) -> bool {
        self.record.as_bytes(py).len() > payload::WriteBatch::HEADER_LEN
    }

    fn __iter__(slf: &Bound<'_, Self>) -> Operations {
        Operations {
            batch: slf.clone().unbind(),
            next: Exclusive::new(Some(Next {
                offset: payload::WriteBatch::HEADER_LEN,
                count: 0,
            })),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let (py, batch) = (slf.py(), slf.get());
        let engine = PyDict::new(py);
        engine.set_item(intern!(py, "engine"), batch.engine())?;
        reduced_to(slf, PyTuple::new(py, [&batch.record])?, engine)
    }

    /// The record.
    fn __bytes__(&self, py: Python<'_>) -> Py<PyBytes> {
        self.record.clone_ref(py)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<WriteBatch>().is_ok_and(|other| {
            let other = other.get();
            self.engine == other.engine && self.record.as_bytes(py) == other.record.as_bytes(py)
        })
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.record.bind(py).hash()
    }

    fn __repr__(&self) -> String {
        let WriteBatch { sequence, count, .. } = self;
        format!("<cordwood.payload.WriteBatch: sequence={sequence}, count={count}>")
    }
}

/// The iterator of a `WriteBatch`.
#[pyclass(frozen, module = "cordwood._native")]
struct Operations {
    batch: Py<WriteBatch>,
    /// `None` after the last operation, or an error.
    next: Exclusive<Option<Next>>,
}

/// The next operation of an iterator.
#[derive(Clone, Copy)]
struct Next {
    offset: usize,
    /// How many operations before it count.
    count: u64,
}

#[pymethods]
impl Operations {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let batch = self.batch.get().core(py)?;
        let mut next = self.next.lock(py)?;
        let _owner = self.next.may_run_python();
        let Some(Next { offset, count }) = *next else {
            return Ok(None);
        };
        let failed = match batch.operation_at(offset) {
            Ok(Some((operation, offset))) => {
                let is_counted = operation.is_counted();
                let sequence = is_counted.then(|| batch.sequence().saturating_add(count));
                let object = Operation { operation, sequence }.into_pyobject(py);
                let object = object.map_err(|raised| of_call(py, raised))?;
                let count = count + u64::from(is_counted);
                *next = Some(Next { offset, count });
                return Ok(Some(object));
            }
            Ok(None) => batch.check_count(count).err(),
            Err(error) => Some(error),
        };
        *next = None;
        // Creating an exception runs Python code.
        drop(next);
        failed.map_or(Ok(None), |error| Err(payload_error(py, error)))
    }
}

/// The record itself if it is `bytes`, which never change; else a copy.
pub(crate) fn kept<'py>(record: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    match record.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.clone()),
        Err(_) => try_bytes(record.py(), &bytes_of("record", record)?),
    }
}

fn engine_of(name: &str) -> PyResult<Engine> {
    match name {
        "rocksdb" => Ok(Engine::RocksDb),
        "pebble" => Ok(Engine::Pebble),
        other => Err(PyValueError::new_err(format!(
            "engine must be 'rocksdb' (LevelDB's, too) or 'pebble', not '{other}'"
        ))),
    }
}
