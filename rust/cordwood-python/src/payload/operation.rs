//! The operations of write batches, which are named tuples in Python, written in
//! `cordwood.payload.write_batch`.

use cordwood_payload as payload;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::values::arguments::bytes_of;
use crate::values::enums::OPERATION_KIND;
use crate::values::{IntoField, named_tuple};

/// An operation that was read from a batch, with its sequence number if it counts.
pub(crate) struct Operation<'a> {
    pub(crate) operation: payload::Operation<'a>,
    pub(crate) sequence: Option<u64>,
}

named_tuple!(
    "cordwood.payload.write_batch",
    "Operation",
    |read: Operation<'_>, py| {
        let parts = Parts::from(read.operation);
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

    /// The names of the parts that it has. A column family may always be omitted.
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
            // Deletes and ingested tables have only a key, transaction markers none.
            _ => {}
        }
        parts
    }
}

type Field<'py> = Option<Bound<'py, PyAny>>;

/// The number in a field, whose name is a note of the error if it has too many bits.
fn number_of<T>(name: &str, given: Field<'_>) -> PyResult<Option<T>>
where
    T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>,
{
    let Some(given) = given else {
        return Ok(None);
    };
    given.extract().map(Some).map_err(|error: PyErr| {
        let noted = error.add_note(given.py(), format!("while processing '{name}'"));
        noted.err().unwrap_or(error)
    })
}

/// An operation that is to be written.
pub(crate) struct NewOperation {
    kind: String,
    parts: Parts<Vec<u8>>,
}

impl NewOperation {
    /// From a named tuple, or any tuple with the same fields.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        type Fields<'py> = (
            String,
            Field<'py>,
            Field<'py>,
            Field<'py>,
            Field<'py>,
            Field<'py>,
            Field<'py>,
            Field<'py>,
            Field<'py>,
        );
        let (kind, _sequence, column_family, key, end_key, value, xid, timestamp, write_unix_time): Fields<'_> =
            object.extract()?;
        let bytes = |name, given: Field<'_>| given.map(|given| bytes_of(name, &given)).transpose();
        let parts = Parts {
            column_family: number_of("column_family", column_family)?,
            key: bytes("key", key)?,
            end_key: bytes("end_key", end_key)?,
            value: bytes("value", value)?,
            xid: bytes("xid", xid)?,
            timestamp: bytes("timestamp", timestamp)?,
            write_unix_time: number_of("write_unix_time", write_unix_time)?,
        };
        Ok(NewOperation { kind, parts })
    }

    /// The operation for the batch. Its parts must be exactly those that its kind has.
    pub(crate) fn core(&self) -> PyResult<payload::Operation<'_>> {
        use payload::Operation as Op;
        let NewOperation { kind, parts: given } = self;
        let column_family = given.column_family.unwrap_or(0);
        let [key, end_key, value, xid, timestamp] =
            given.strings().map(|(_, bytes)| bytes.map_or(&[][..], Vec::as_slice));
        let write_unix_time = given.write_unix_time.unwrap_or(0);
        let operation = match kind.as_str() {
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
        if given.column_family.is_some() && parts.column_family.is_none() {
            return Err(PyTypeError::new_err(format!("a {kind} has no column_family")));
        }
        if given.names() == parts.names() {
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
