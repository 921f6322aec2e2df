//! The class `VersionEdit`. The values of its fields are named tuples, written in Python, in
//! `cordwood.payload.version_edit`.

use std::sync::atomic::{AtomicUsize, Ordering};

use cordwood_payload::{self as payload, CustomField, Field, InternalKey, NewFile};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::write_batch::kept;
use crate::interpreter::python_code::{Arguments, PythonCode};
use crate::memory::buffer::try_bytes;
use crate::values::IntoField;
use crate::values::error::payload_error;
use crate::values::pickle::{Reduced, reduced_to};

/// The maximum number of fields that `repr` shows.
const SHOWN_MAX: usize = 8;

/// A record of a LevelDB or RocksDB MANIFEST: the changes of one version of the database.
///
/// Iterating yields the same as `fields`, but one at a time: as objects, the fields of a long
/// record take up many times its size. `bytes(edit)` encodes the fields again, which reproduces the
/// record byte for byte.
///
/// Args:
///     record: The record. All of it is decoded.
///
/// Raises:
///     PayloadError: The record is not a version edit. Tags that only Pebble knows are unknown
///         here.
///     TypeError: `record` is not bytes-like.
///
/// >>> from cordwood.payload import VersionEdit
/// >>> edit = VersionEdit(b"\x01\x1aleveldb.BytewiseComparator\x02\x04\x06\x01\x05")
/// >>> for kind, tag, value in edit.fields:
/// ...     print(kind, tag, value)
/// comparator 1 b'leveldb.BytewiseComparator'
/// log_number 2 4
/// deleted_file 6 DeletedFile(level=1, file_number=5)
#[pyclass(frozen, module = "cordwood.payload")]
pub(crate) struct VersionEdit {
    record: Py<PyBytes>,
    /// Created at the first access.
    fields: PyOnceLock<Py<PyTuple>>,
}

impl VersionEdit {
    /// Decodes one field at a time: a decoded field takes up many times its size in the record.
    fn core<'a>(&'a self, py: Python<'a>) -> impl Iterator<Item = PyResult<Field<'a>>> {
        let fields = payload::VersionEdit::new(self.record.as_bytes(py)).fields();
        fields.map(move |field| field.map_err(|error| payload_error(py, error)))
    }
}

#[pymethods]
impl VersionEdit {
    #[new]
    fn new(record: &Bound<'_, PyAny>) -> PyResult<Self> {
        let edit = VersionEdit {
            record: kept(record)?.unbind(),
            fields: PyOnceLock::new(),
        };
        for field in edit.core(record.py()) {
            field?;
        }
        Ok(edit)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let py = slf.py();
        reduced_to(slf, PyTuple::new(py, [&slf.get().record])?, PyDict::new(py))
    }

    /// The fields, in the order of the record. They are created on first use and kept.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyTuple>> {
        let fields = self.fields.get_or_try_init(py, || {
            let module = Module(py.import("cordwood.payload.version_edit")?);
            let fields: Vec<_> = self
                .core(py)
                .map(|field| module.field(&field?))
                .collect::<PyResult<_>>()?;
            PyTuple::new(py, fields).map(Bound::unbind)
        });
        fields.map(|fields| fields.bind(py))
    }

    fn __iter__(slf: &Bound<'_, Self>) -> Fields {
        Fields {
            edit: slf.clone().unbind(),
            offset: AtomicUsize::new(0),
        }
    }

    /// The edit in a form that JSON can represent.
    ///
    /// Bytes become text if they are UTF-8, and `{"base64": "..."}` if they are not; `None` is left
    /// out.
    ///
    /// Returns:
    ///     `fields`, each with `kind`, `tag` and `value`.
    ///
    /// >>> from cordwood.payload import VersionEdit
    /// >>> VersionEdit(b"\x02\x04").to_dict()
    /// {'fields': [{'kind': 'log_number', 'tag': 2, 'value': 4}]}
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let module = py.import("cordwood.payload.version_edit")?;
        module.run_method(intern!(py, "dict_of"), (slf,))
    }

    /// The fields, encoded again: the record, byte for byte.
    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        // Encoded again, so that a comparison with the record shows whether a byte was lost.
        let fields: Vec<_> = self.core(py).collect::<PyResult<_>>()?;
        let record = payload::VersionEdit::encode(&fields).map_err(|error| payload_error(py, error))?;
        try_bytes(py, &record)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<VersionEdit>()
            .is_ok_and(|other| self.record.as_bytes(py) == other.get().record.as_bytes(py))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.record.bind(py).hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut kinds = self.core(py).map(|field| Ok(field?.as_str()));
        let shown: Vec<&str> = kinds.by_ref().take(SHOWN_MAX).collect::<PyResult<_>>()?;
        let more = match kinds.count() {
            0 => String::new(),
            count => format!(", and {count} more"),
        };
        Ok(format!("<cordwood.payload.VersionEdit: {}{more}>", shown.join(", ")))
    }
}

/// The iterator of a `VersionEdit`: one field at a time, since a decoded field takes up many times
/// its size in the record.
#[pyclass(frozen, module = "cordwood._native")]
struct Fields {
    edit: Py<VersionEdit>,
    /// The offset of the next field in the record.
    offset: AtomicUsize,
}

#[pymethods]
impl Fields {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let edit = payload::VersionEdit::new(self.edit.get().record.as_bytes(py));
        // Two threads that share an iterator may get the same field; each gets a complete one.
        let step = edit.field_at(self.offset.load(Ordering::Relaxed));
        let Some((field, end_offset)) = step.map_err(|error| payload_error(py, error))? else {
            return Ok(None);
        };
        self.offset.store(end_offset, Ordering::Relaxed);
        Module(py.import("cordwood.payload.version_edit")?)
            .field(&field)
            .map(Some)
    }
}

/// `cordwood.payload.version_edit`, for its classes.
struct Module<'py>(Bound<'py, PyModule>);

impl<'py> Module<'py> {
    fn make(&self, class: &str, values: impl Arguments<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.getattr(class)?.run(values)
    }

    fn field(&self, field: &Field<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.0.py();
        let kind = self.make("FieldKind", (field.as_str(),))?;
        let value = match field {
            Field::LogNumber(number)
            | Field::NextFileNumber(number)
            | Field::LastSequence(number)
            | Field::PrevLogNumber(number)
            | Field::MinLogNumberToKeep(number)
            | Field::WalDeletion { log_number: number, .. }
            | Field::LastCompactedManifestFileSize(number) => number.into_field(py)?,
            Field::ColumnFamily(number) | Field::MaxColumnFamily(number) | Field::InAtomicGroup(number) => {
                number.into_field(py)?
            }
            Field::Comparator(bytes)
            | Field::ColumnFamilyAdd(bytes)
            | Field::DbId(bytes)
            | Field::FullHistoryTsLow(bytes)
            | Field::SubcompactionProgress(bytes)
            | Field::Ignorable { value: bytes, .. } => bytes.into_field(py)?,
            Field::PersistUserDefinedTimestamps(is_set) => is_set.into_field(py)?,
            Field::CompactPointer { level, key } => self.make("CompactPointer", (level, self.key(key)?))?,
            Field::DeletedFile { level, file_number } => self.make("DeletedFile", (level, file_number))?,
            Field::NewFile(file) => self.new_file(file)?,
            Field::BlobFileAddition(blob) => self.make(
                "BlobFileAddition",
                (
                    blob.file_number,
                    blob.blob_count,
                    blob.blob_len,
                    try_bytes(py, blob.checksum_method)?,
                    try_bytes(py, blob.checksum)?,
                    self.blob_fields(&blob.custom_fields)?,
                ),
            )?,
            Field::BlobFileGarbage(blob) => self.make(
                "BlobFileGarbage",
                (
                    blob.file_number,
                    blob.blob_count,
                    blob.blob_len,
                    self.blob_fields(&blob.custom_fields)?,
                ),
            )?,
            Field::WalAddition(wal) => self.make("WalAddition", (wal.log_number, wal.synced_len))?,
            // A dropped column family: the tag has no value.
            _ => py.None().into_bound(py),
        };
        self.make("Field", (kind, field.tag(), value))
    }

    fn key(&self, key: &InternalKey<'_>) -> PyResult<Bound<'py, PyAny>> {
        let user_key = try_bytes(self.0.py(), key.user_key)?;
        self.make("InternalKey", (user_key, key.sequence, key.value_type))
    }

    fn new_file(&self, file: &NewFile<'_>) -> PyResult<Bound<'py, PyAny>> {
        let sequences = file.sequences();
        let custom_fields = file.custom_fields().iter().map(|field| self.custom_field(field));
        let custom_fields = custom_fields.collect::<PyResult<Vec<_>>>()?;
        self.make(
            "NewFile",
            (
                file.level,
                file.file_number,
                file.file_len,
                self.key(&file.smallest)?,
                self.key(&file.largest)?,
                sequences.map(|(smallest, _)| smallest),
                sequences.map(|(_, largest)| largest),
                file.path_id(),
                PyTuple::new(self.0.py(), custom_fields)?,
            ),
        )
    }

    fn custom_field(&self, field: &CustomField<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.0.py();
        let value = match *field {
            CustomField::MinLogNumberToKeep(number)
            | CustomField::OldestBlobFileNumber(number)
            | CustomField::OldestAncesterTime(number)
            | CustomField::FileCreationTime(number)
            | CustomField::EpochNumber(number)
            | CustomField::CompensatedRangeDeletionSize(number)
            | CustomField::TailSize(number) => number.into_field(py)?,
            CustomField::Temperature(byte) | CustomField::PathId(byte) => byte.into_field(py)?,
            CustomField::NeedCompaction(is_set) | CustomField::UserDefinedTimestampsPersisted(is_set) => {
                is_set.into_field(py)?
            }
            CustomField::FileChecksum(bytes)
            | CustomField::FileChecksumFuncName(bytes)
            | CustomField::MinTimestamp(bytes)
            | CustomField::MaxTimestamp(bytes)
            | CustomField::UniqueId(bytes)
            | CustomField::FileOpenMetadata(bytes)
            | CustomField::Ignorable { value: bytes, .. } => bytes.into_field(py)?,
            // Variants that a later core may add.
            _ => py.None().into_bound(py),
        };
        let kind = self.make("CustomFieldKind", (field.as_str(),))?;
        self.make("CustomField", (kind, field.tag(), value))
    }

    fn blob_fields(&self, fields: &[(u32, &[u8])]) -> PyResult<Bound<'py, PyTuple>> {
        let fields = fields
            .iter()
            .map(|&(tag, value)| self.custom_field(&CustomField::Ignorable { tag, value }));
        PyTuple::new(self.0.py(), fields.collect::<PyResult<Vec<_>>>()?)
    }
}
