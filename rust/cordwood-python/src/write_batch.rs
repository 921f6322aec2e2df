//! The class `WriteBatch`.

use cordwood_payload::{self as payload, Engine};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::payload_error;
use crate::operation::Operation;
use crate::source::bytes_of;

/// The record of a write-ahead log.
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

    #[staticmethod]
    #[pyo3(signature = (sequence, operations, *, engine = "rocksdb"))]
    fn build(sequence: u64, operations: &Bound<'_, PyAny>, engine: &str) -> PyResult<Self> {
        let py = operations.py();
        let engine = engine_of(engine)?;
        let objects: Vec<Bound<'_, Operation>> = operations
            .try_iter()?
            .map(|object| Ok(object?.cast_into::<Operation>()?))
            .collect::<PyResult<_>>()?;
        let operations: Vec<_> = objects
            .iter()
            .map(|object| object.get().core(py))
            .collect::<PyResult<_>>()?;
        let record = payload::WriteBatch::encode(sequence, &operations, engine);
        let record = record.map_err(|error| payload_error(py, error))?;
        WriteBatch::from_bytes(PyBytes::new(py, &record), engine)
    }

    #[getter]
    fn sequence(&self) -> u64 {
        self.sequence
    }

    #[getter]
    fn count(&self) -> u32 {
        self.count
    }

    #[getter]
    fn engine(&self) -> &'static str {
        match self.engine {
            Engine::Pebble => "pebble",
            _ => "rocksdb",
        }
    }

    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let module = py.import("cordwood.payload.write_batch")?;
        module.getattr(intern!(py, "dict_of"))?.call1((slf,))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let mut len = 0;
        for operation in self.core(py)?.operations() {
            operation.map_err(|error| payload_error(py, error))?;
            len += 1;
        }
        Ok(len)
    }

    fn __bool__(&self, py: Python<'_>) -> bool {
        self.record.as_bytes(py).len() > payload::WriteBatch::HEADER_LEN
    }

    fn __iter__(slf: &Bound<'_, Self>) -> Operations {
        Operations {
            batch: slf.clone().unbind(),
            offset: payload::WriteBatch::HEADER_LEN,
            found: 0,
            is_over: false,
        }
    }

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
#[pyclass(module = "cordwood._native")]
struct Operations {
    batch: Py<WriteBatch>,
    offset: usize,
    found: u64,
    is_over: bool,
}

#[pymethods]
impl Operations {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Operation>> {
        if self.is_over {
            return Ok(None);
        }
        // Until it is known that this is not the last step.
        self.is_over = true;
        let object = self.batch.get();
        let batch = object.core(py)?;
        let step = batch
            .operation_at(self.offset)
            .map_err(|error| payload_error(py, error))?;
        let Some((operation, end_offset)) = step else {
            let count = batch.check_count(self.found);
            return count.map(|()| None).map_err(|error| payload_error(py, error));
        };
        let sequence = operation.is_counted().then(|| object.sequence.wrapping_add(self.found));
        let offset = self.offset;
        self.found += u64::from(operation.is_counted());
        self.offset = end_offset;
        self.is_over = false;
        Ok(Some(Operation {
            record: object.record.clone_ref(py),
            engine: object.engine,
            offset,
            sequence,
        }))
    }
}

/// The record itself if it is `bytes`, which never change; else a copy.
pub(crate) fn kept<'py>(record: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    match record.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.clone()),
        Err(_) => Ok(PyBytes::new(record.py(), &bytes_of(record)?)),
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
