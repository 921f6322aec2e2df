//! The class `Operation`.

use std::hash::{DefaultHasher, Hash, Hasher};

use cordwood_payload::{self as payload, Engine};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::arguments::bytes_of;
use crate::buffer::try_bytes;
use crate::enums::OPERATION_KIND;
use crate::error::payload_error;
use crate::pickle::{Reduced, reduced_to, short_repr};

/// An operation of a `WriteBatch`.
///
/// Iterating over a batch yields operations; calling the class creates one for `WriteBatch.build`.
///
/// An attribute is `None` if operations of this kind do not have it. Two operations are equal if
/// everything except their sequence numbers is. One that was read from a record keeps that record
/// in memory.
///
/// Args:
///     kind: An `OperationKind`, or its name. It determines which of the other attributes must be
///         given: all those that the kind has.
///     column_family: The number of the column family. Default: 0, the default one.
///     key: The key; for a range, the first one.
///     end_key: For a range, the exclusive end.
///     value: The value; for log data, the data.
///     xid: The name of a transaction.
///     timestamp: The timestamp of a commit.
///     write_unix_time: When the value was written, in seconds since 1970.
///     sequence: The sequence number, as in an operation that was read. `WriteBatch.build` ignores
///         it.
///
/// Raises:
///     TypeError: An attribute that this kind has is missing, or one that it does not have is
///         given.
///     ValueError: There is no such kind.
///     OverflowError: A number is negative, or has too many bits.
///     PayloadError: Something is too large.
///
/// >>> from cordwood.payload import Operation
/// >>> operation = Operation("delete_range", key=b"a", end_key=b"c", column_family=3)
/// >>> operation.column_family, operation.key, operation.end_key, operation.value
/// (3, b'a', b'c', None)
// Decoded from the record at each access, since most of a log is never looked at.
#[pyclass(frozen, module = "cordwood.payload")]
pub(crate) struct Operation {
    /// The record that contains it, which begins with the header of a batch.
    pub(crate) record: Py<PyBytes>,
    pub(crate) engine: Engine,
    pub(crate) offset: usize,
    pub(crate) sequence: Option<u64>,
}

impl Operation {
    pub(crate) fn core<'a>(&'a self, py: Python<'a>) -> PyResult<payload::Operation<'a>> {
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
        write_unix_time = None, sequence = None
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
        sequence: Option<u64>,
    ) -> PyResult<Self> {
        let bytes = |name: &str, given: Option<&Bound<'_, PyAny>>| given.map(|given| bytes_of(name, given)).transpose();
        let given = Parts {
            column_family,
            key: bytes("key", key)?,
            end_key: bytes("end_key", end_key)?,
            value: bytes("value", value)?,
            xid: bytes("xid", xid)?,
            timestamp: bytes("timestamp", timestamp)?,
            write_unix_time,
        };
        let operation = given.operation(kind)?;
        // One of the two engines knows it.
        let rocksdb =
            payload::WriteBatch::encode(0, &[operation], Engine::RocksDb).map(|record| (record, Engine::RocksDb));
        let (record, engine) = rocksdb
            .or_else(|error| match error.reason {
                payload::PayloadReason::OutOfMemory => Err(error),
                _ => {
                    payload::WriteBatch::encode(0, &[operation], Engine::Pebble).map(|record| (record, Engine::Pebble))
                }
            })
            .map_err(|error| payload_error(py, error))?;
        Ok(Operation {
            record: try_bytes(py, &record)?.unbind(),
            engine,
            offset: payload::WriteBatch::HEADER_LEN,
            sequence,
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let py = slf.py();
        reduced_to(slf, PyTuple::empty(py), slf.get().attributes(py)?)
    }

    /// What it does: an `OperationKind`.
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        OPERATION_KIND.member(py, self.core(py)?.as_str())
    }

    /// The sequence number: the batch's, plus one for each earlier operation that counts.
    ///
    /// `None` if the operation does not count, or was not read from a batch. RocksDB's write
    /// policies WritePrepared and WriteUnprepared assign one number to all operations of a batch;
    /// the record does not show this.
    #[getter]
    fn sequence(&self) -> Option<u64> {
        self.sequence
    }

    /// The number of the column family, 0 for the default one.
    #[getter]
    fn column_family(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        Ok(self.parts(py)?.column_family)
    }

    /// The key; for a range, the first one.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.parts(py)?.key.map(|key| try_bytes(py, key)).transpose()
    }

    /// For a range, the exclusive end: the range contains only keys before it.
    #[getter]
    fn end_key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.parts(py)?.end_key.map(|key| try_bytes(py, key)).transpose()
    }

    /// The value; for log data, the data. What the engine encodes in it is not decoded.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.parts(py)?.value.map(|value| try_bytes(py, value)).transpose()
    }

    /// The name of a transaction.
    #[getter]
    fn xid<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.parts(py)?.xid.map(|xid| try_bytes(py, xid)).transpose()
    }

    /// The timestamp of a commit.
    #[getter]
    fn timestamp<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let timestamp = self.parts(py)?.timestamp;
        timestamp.map(|timestamp| try_bytes(py, timestamp)).transpose()
    }

    /// When the value was written, in seconds since 1970.
    #[getter]
    fn write_unix_time(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.parts(py)?.write_unix_time)
    }

    /// All its attributes, by name: faster than reading them one by one.
    ///
    /// Returns:
    ///     The attributes that are not `None`; `kind` as `str`.
    ///
    /// >>> from cordwood.payload import Operation
    /// >>> Operation("put", key=b"k", value=b"v").attributes()
    /// {'kind': 'put', 'column_family': 0, 'key': b'k', 'value': b'v'}
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let operation = self.core(py)?;
        let parts = Parts::from(operation);
        let attributes = PyDict::new(py);
        attributes.set_item(intern!(py, "kind"), operation.as_str())?;
        if let Some(sequence) = self.sequence {
            attributes.set_item(intern!(py, "sequence"), sequence)?;
        }
        if let Some(column_family) = parts.column_family {
            attributes.set_item(intern!(py, "column_family"), column_family)?;
        }
        for (name, bytes) in parts.strings() {
            if let Some(bytes) = bytes {
                attributes.set_item(name, try_bytes(py, bytes)?)?;
            }
        }
        if let Some(time) = parts.write_unix_time {
            attributes.set_item(intern!(py, "write_unix_time"), time)?;
        }
        Ok(attributes)
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
                text += &format!(", {name}={}", short_repr(py, bytes)?);
            }
        }
        if let Some(time) = parts.write_unix_time {
            text += &format!(", write_unix_time={time}");
        }
        Ok(text + ")")
    }
}

/// The parts of an operation, named like the attributes; `None` for those that it does not have.
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

    /// The names of the present parts. A column family may always be omitted.
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
        let mut parts = Parts {
            column_family: operation.column_family(),
            key: operation.key(),
            ..Parts::default()
        };
        match operation {
            Op::Put { value, .. }
            | Op::Merge { value, .. }
            | Op::PutBlobIndex { value, .. }
            | Op::PutEntity { value, .. }
            | Op::LogData { value }
            | Op::DeleteSized { value, .. }
            | Op::RangeKeySet { value, .. }
            | Op::RangeKeyUnset { value, .. }
            | Op::IngestSstWithBlobs { value, .. } => parts.value = Some(value),
            Op::DeleteRange { end_key, .. } | Op::RangeKeyDelete { end_key, .. } | Op::Excise { end_key, .. } => {
                parts.end_key = Some(end_key);
            }
            Op::TimedPut {
                value, write_unix_time, ..
            } => {
                parts.value = Some(value);
                parts.write_unix_time = Some(write_unix_time);
            }
            Op::EndPrepare { xid } | Op::Commit { xid } | Op::Rollback { xid } => parts.xid = Some(xid),
            Op::CommitWithTimestamp { timestamp, xid } => {
                (parts.timestamp, parts.xid) = (Some(timestamp), Some(xid));
            }
            // Deletes and ingested tables have only a key, transaction markers nothing.
            _ => {}
        }
        parts
    }
}

impl Parts<Vec<u8>> {
    /// The operation of this kind with these parts. The parts must be exactly those that the kind
    /// has.
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
            other => return Err(PyValueError::new_err(format!("'{other}' is not a kind of operation"))),
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
