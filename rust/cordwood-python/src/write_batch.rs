//! The classes `WriteBatch` and `Operation`.

use std::hash::{DefaultHasher, Hash, Hasher};

use cordwood::payload::{self, Engine};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyType};

use crate::error::payload_error;
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
        module.getattr(intern!(py, "_to_dict"))?.call1((slf,))
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

/// An operation of a batch. It is read from the record again each time that it is asked for something: most of what stands in a log
/// nobody looks at.
#[pyclass(frozen, module = "cordwood.payload")]
pub(crate) struct Operation {
    record: Py<PyBytes>,
    engine: Engine,
    offset: usize,
    sequence: Option<u64>,
}

impl Operation {
    fn core<'a>(&'a self, py: Python<'a>) -> PyResult<payload::Operation<'a>> {
        let batch = payload::WriteBatch::new(self.record.as_bytes(py), self.engine);
        match batch.and_then(|batch| batch.operation_at(self.offset)) {
            Ok(Some((operation, _))) => Ok(operation),
            Ok(None) => Err(PyValueError::new_err("there is no operation")),
            Err(error) => Err(payload_error(py, error)),
        }
    }

    fn parts<'a>(&'a self, py: Python<'a>) -> PyResult<Parts<&'a [u8]>> {
        self.core(py).map(Parts::from)
    }
}

#[pymethods]
impl Operation {
    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("kind",)
    }

    #[new]
    #[pyo3(signature = (
        kind, *, column_family = None, key = None, end_key = None, value = None, xid = None, timestamp = None,
        write_unix_time = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of the Python class")]
    fn new(
        py: Python<'_>,
        kind: &str,
        column_family: Option<u32>,
        key: Option<&Bound<'_, PyAny>>,
        end_key: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
        xid: Option<&Bound<'_, PyAny>>,
        timestamp: Option<&Bound<'_, PyAny>>,
        write_unix_time: Option<u64>,
    ) -> PyResult<Self> {
        let given = Parts {
            column_family,
            key: key.map(bytes_of).transpose()?,
            end_key: end_key.map(bytes_of).transpose()?,
            value: value.map(bytes_of).transpose()?,
            xid: xid.map(bytes_of).transpose()?,
            timestamp: timestamp.map(bytes_of).transpose()?,
            write_unix_time,
        };
        let operation = given.operation(kind)?;
        // One of the two engines knows it.
        let rocksdb =
            payload::WriteBatch::encode(0, &[operation], Engine::RocksDb).map(|record| (record, Engine::RocksDb));
        let (record, engine) = rocksdb
            .or_else(|_| {
                payload::WriteBatch::encode(0, &[operation], Engine::Pebble).map(|record| (record, Engine::Pebble))
            })
            .map_err(|error| payload_error(py, error))?;
        Ok(Operation {
            record: PyBytes::new(py, &record).unbind(),
            engine,
            offset: payload::WriteBatch::HEADER_LEN,
            sequence: None,
        })
    }

    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static KIND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let kind = KIND.import(py, "cordwood.payload.write_batch", "OperationKind")?;
        kind.call1((self.core(py)?.as_str(),))
    }

    #[getter]
    fn sequence(&self) -> Option<u64> {
        self.sequence
    }

    #[getter]
    fn column_family(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        Ok(self.parts(py)?.column_family)
    }

    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.parts(py)?.key.map(|key| PyBytes::new(py, key)))
    }

    #[getter]
    fn end_key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.parts(py)?.end_key.map(|key| PyBytes::new(py, key)))
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.parts(py)?.value.map(|value| PyBytes::new(py, value)))
    }

    #[getter]
    fn xid<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.parts(py)?.xid.map(|xid| PyBytes::new(py, xid)))
    }

    #[getter]
    fn timestamp<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(self.parts(py)?.timestamp.map(|timestamp| PyBytes::new(py, timestamp)))
    }

    #[getter]
    fn write_unix_time(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.parts(py)?.write_unix_time)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Operation>() {
            Ok(other) => Ok(self.core(py)? == other.get().core(py)?),
            Err(_) => Ok(false),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.core(py)?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let operation = self.core(py)?;
        let parts = Parts::from(operation);
        let mut text = format!("Operation('{}'", operation.as_str());
        if let Some(column_family) = parts.column_family.filter(|&column_family| column_family != 0) {
            text += &format!(", column_family={column_family}");
        }
        for (name, bytes) in parts.strings() {
            if let Some(bytes) = bytes {
                text += &format!(", {name}={}", PyBytes::new(py, bytes).repr()?);
            }
        }
        if let Some(time) = parts.write_unix_time {
            text += &format!(", write_unix_time={time}");
        }
        Ok(text + ")")
    }
}

/// What an operation has, under the names of the attributes; `None` is what it has not.
#[derive(Default)]
struct Parts<B> {
    column_family: Option<u32>,
    key: Option<B>,
    end_key: Option<B>,
    value: Option<B>,
    xid: Option<B>,
    timestamp: Option<B>,
    write_unix_time: Option<u64>,
}

impl<B> Parts<B> {
    fn strings(&self) -> [(&'static str, Option<&B>); 5] {
        [
            ("key", self.key.as_ref()),
            ("end_key", self.end_key.as_ref()),
            ("value", self.value.as_ref()),
            ("xid", self.xid.as_ref()),
            ("timestamp", self.timestamp.as_ref()),
        ]
    }

    /// The names of what is there. A column family may always be left out.
    fn names(&self) -> Vec<&'static str> {
        let strings = self.strings().into_iter();
        let mut names: Vec<_> = strings.filter_map(|(name, bytes)| bytes.map(|_| name)).collect();
        names.extend(self.write_unix_time.map(|_| "write_unix_time"));
        names
    }
}

impl<'a> From<payload::Operation<'a>> for Parts<&'a [u8]> {
    fn from(operation: payload::Operation<'a>) -> Self {
        use payload::Operation as Op;
        let mut parts = Parts::default();
        match operation {
            Op::Put {
                column_family,
                key,
                value,
            }
            | Op::Merge {
                column_family,
                key,
                value,
            }
            | Op::PutBlobIndex {
                column_family,
                key,
                value,
            }
            | Op::PutEntity {
                column_family,
                key,
                value,
            } => {
                parts.column_family = Some(column_family);
                (parts.key, parts.value) = (Some(key), Some(value));
            }
            Op::Delete { column_family, key } | Op::SingleDelete { column_family, key } => {
                parts.column_family = Some(column_family);
                parts.key = Some(key);
            }
            Op::DeleteRange {
                column_family,
                key,
                end_key,
            } => {
                parts.column_family = Some(column_family);
                (parts.key, parts.end_key) = (Some(key), Some(end_key));
            }
            Op::TimedPut {
                column_family,
                key,
                value,
                write_unix_time,
            } => {
                parts.column_family = Some(column_family);
                (parts.key, parts.value) = (Some(key), Some(value));
                parts.write_unix_time = Some(write_unix_time);
            }
            Op::LogData { value } => parts.value = Some(value),
            Op::EndPrepare { xid } | Op::Commit { xid } | Op::Rollback { xid } => parts.xid = Some(xid),
            Op::CommitWithTimestamp { timestamp, xid } => {
                (parts.timestamp, parts.xid) = (Some(timestamp), Some(xid));
            }
            Op::DeleteSized { key, value }
            | Op::RangeKeySet { key, value }
            | Op::RangeKeyUnset { key, value }
            | Op::IngestSstWithBlobs { key, value } => (parts.key, parts.value) = (Some(key), Some(value)),
            Op::RangeKeyDelete { key, end_key } | Op::Excise { key, end_key } => {
                (parts.key, parts.end_key) = (Some(key), Some(end_key));
            }
            Op::IngestSst { key } => parts.key = Some(key),
            // The marks of transactions have nothing.
            _ => {}
        }
        parts
    }
}

impl Parts<Vec<u8>> {
    /// The operation of this kind with these parts. It must have all that the kind has, and nothing else.
    fn operation(&self, kind: &str) -> PyResult<payload::Operation<'_>> {
        use payload::Operation as Op;
        let column_family = self.column_family.unwrap_or(0);
        let [key, end_key, value, xid, timestamp] =
            self.strings().map(|(_, bytes)| bytes.map_or(&[][..], Vec::as_slice));
        let write_unix_time = self.write_unix_time.unwrap_or(0);
        let operation = match kind {
            "put" => Op::Put {
                column_family,
                key,
                value,
            },
            "delete" => Op::Delete { column_family, key },
            "merge" => Op::Merge {
                column_family,
                key,
                value,
            },
            "log_data" => Op::LogData { value },
            "single_delete" => Op::SingleDelete { column_family, key },
            "delete_range" => Op::DeleteRange {
                column_family,
                key,
                end_key,
            },
            "put_blob_index" => Op::PutBlobIndex {
                column_family,
                key,
                value,
            },
            "put_entity" => Op::PutEntity {
                column_family,
                key,
                value,
            },
            "timed_put" => Op::TimedPut {
                column_family,
                key,
                value,
                write_unix_time,
            },
            "noop" => Op::Noop,
            "begin_prepare" => Op::BeginPrepare,
            "begin_persisted_prepare" => Op::BeginPersistedPrepare,
            "begin_unprepare" => Op::BeginUnprepare,
            "end_prepare" => Op::EndPrepare { xid },
            "commit" => Op::Commit { xid },
            "commit_with_timestamp" => Op::CommitWithTimestamp { timestamp, xid },
            "rollback" => Op::Rollback { xid },
            "delete_sized" => Op::DeleteSized { key, value },
            "range_key_set" => Op::RangeKeySet { key, value },
            "range_key_unset" => Op::RangeKeyUnset { key, value },
            "range_key_delete" => Op::RangeKeyDelete { key, end_key },
            "ingest_sst" => Op::IngestSst { key },
            "ingest_sst_with_blobs" => Op::IngestSstWithBlobs { key, value },
            "excise" => Op::Excise { key, end_key },
            other => return Err(PyValueError::new_err(format!("'{other}' is no kind of operation"))),
        };
        let parts = Parts::from(operation);
        if self.column_family.is_some() && parts.column_family.is_none() {
            return Err(PyTypeError::new_err(format!("a {kind} has no column_family")));
        }
        if self.names() == parts.names() {
            return Ok(operation);
        }
        let needed = match parts.names().as_slice() {
            [] => "nothing".to_owned(),
            names => names.join(", "),
        };
        Err(PyTypeError::new_err(format!(
            "a {kind} has {needed}, no more and no less"
        )))
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
