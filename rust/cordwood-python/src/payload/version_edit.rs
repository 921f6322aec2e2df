//! The functions of `cordwood.payload.VersionEdit`. The values of its fields are named tuples, written
//! in Python, in `cordwood.payload.version_edit`.

use std::collections::BTreeMap;

use cordwood_payload::table::View;
use cordwood_payload::{self as payload, CustomField, Field, InternalKey, NewFile, PayloadError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::objects::object_of;
use crate::exclusive::Exclusive;
use crate::interpreter::python_code::{Arguments, PythonCode, module};
use crate::memory::buffer::try_bytes;
use crate::values::arguments::bytes_of;
use crate::values::error::payload_error;

/// The record of a version edit, once all of it has been decoded.
///
/// Args:
///     record: `bytes` or any other buffer.
///
/// Returns:
///     The record as `bytes`.
///
/// Raises:
///     PayloadError: The record is not a version edit.
///     TypeError: `record` is not bytes-like.
#[pyfunction]
#[pyo3(signature = (record, /))]
pub(crate) fn checked_version_edit<'py>(record: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let record = bytes_of("record", record)?;
    // One field at a time: a decoded field takes up many times its size in the record.
    let checked = payload::VersionEdit::new(record.as_bytes())
        .fields()
        .try_for_each(|field| field.map(drop));
    checked.map_err(|error| payload_error(record.py(), error))?;
    Ok(record)
}

/// The fields of a version edit, encoded again.
///
/// A comparison with the record shows whether a byte was lost.
///
/// Args:
///     record: The record.
///
/// Returns:
///     The same bytes.
#[pyfunction]
#[pyo3(signature = (record, /))]
pub(crate) fn encoded_version_edit<'py>(record: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyBytes>> {
    let fields = payload::VersionEdit::new(record.as_bytes()).fields();
    let encoded = fields
        .collect::<Result<Vec<_>, PayloadError>>()
        .and_then(|fields| payload::VersionEdit::encode(&fields));
    try_bytes(
        record.py(),
        &encoded.map_err(|error| payload_error(record.py(), error))?,
    )
}

/// A field of a version edit, and the offset of the next one.
///
/// Fields are decoded one at a time: a decoded field takes up many times its size in the record.
///
/// Args:
///     record: The record.
///     offset: The offset of the field in the record, in bytes.
///
/// Returns:
///     The field and the offset after it; `None` at the end of the record.
///
/// Raises:
///     PayloadError: The bytes at the offset are not a field.
#[pyfunction]
#[pyo3(signature = (record, offset, /))]
pub(crate) fn version_edit_field<'py>(
    record: &Bound<'py, PyBytes>,
    offset: usize,
) -> PyResult<Option<(Bound<'py, PyAny>, usize)>> {
    let py = record.py();
    let step = payload::VersionEdit::new(record.as_bytes()).field_at(offset);
    let Some((field, end_offset)) = step.map_err(|error| payload_error(py, error))? else {
        return Ok(None);
    };
    let module = Module(module(py, "cordwood.payload.version_edit")?);
    Ok(Some((module.field(&field)?, end_offset)))
}

/// The state of a database after the edits in its MANIFEST: its tables, and the last value of each number.
#[pyclass(frozen, module = "cordwood._native")]
pub(crate) struct VersionState(Exclusive<payload::VersionState>);

#[pymethods]
impl VersionState {
    #[new]
    fn new() -> Self {
        VersionState(Exclusive::new(payload::VersionState::default()))
    }

    /// Applies the edit in the next record.
    ///
    /// Args:
    ///     record: `bytes` or any other buffer.
    ///
    /// Raises:
    ///     PayloadError: The record is not a version edit. The state is then that before it.
    ///     TypeError: `record` is not bytes-like.
    #[pyo3(signature = (record, /))]
    fn apply(&self, record: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = record.py();
        let record = bytes_of("record", record)?;
        let applied = self.0.lock(py)?.apply(record.as_bytes());
        applied.map_err(|error| payload_error(py, error))
    }

    /// The numbers that the edits state.
    ///
    /// Returns:
    ///     The last value of each field that is a number, by the name of the field; for each column family,
    ///     the smallest number of a log that it needs; for each log that RocksDB keeps track of, its synced
    ///     length in bytes; and whether LevelDB knows all fields.
    #[expect(clippy::type_complexity, reason = "a tuple, which Python unpacks")]
    fn numbers(
        &self,
        py: Python<'_>,
    ) -> PyResult<(
        BTreeMap<&'static str, u64>,
        BTreeMap<u32, u64>,
        BTreeMap<u64, u64>,
        bool,
    )> {
        let state = self.0.lock(py)?;
        Ok((
            state.numbers().into_iter().collect(),
            state.log_numbers().clone(),
            state.synced_lens().clone(),
            state.is_of_leveldb(),
        ))
    }

    /// The tables, by column family, level and number.
    ///
    /// Returns:
    ///     For each, the number of its column family; the name of that family, if the MANIFEST states it;
    ///     and the table.
    #[expect(clippy::type_complexity, reason = "a tuple, which Python unpacks")]
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Vec<(u32, Option<Bound<'py, PyBytes>>, Bound<'py, PyAny>)>> {
        let state = self.0.lock(py)?;
        let _owner = self.0.may_run_python();
        let module = Module(module(py, "cordwood.payload.version_edit")?);
        let table = |(family, file): (u32, NewFile<'_>)| {
            let name = state.name(family).map(|name| try_bytes(py, name)).transpose()?;
            Ok((family, name, module.new_file(&file)?))
        };
        state.tables().map(table).collect()
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
                    self.custom_fields(blob_fields(&blob.custom_fields))?,
                ),
            )?,
            Field::BlobFileGarbage(blob) => self.make(
                "BlobFileGarbage",
                (
                    blob.file_number,
                    blob.blob_count,
                    blob.blob_len,
                    self.custom_fields(blob_fields(&blob.custom_fields))?,
                ),
            )?,
            Field::WalAddition(wal) => self.make("WalAddition", (wal.log_number, wal.synced_len))?,
            // A dropped column family: the tag has no value.
            plain => object_of(py, View::of_field(plain).unwrap_or(View::Null))?,
        };
        self.make("Field", (kind, field.tag(), value))
    }

    fn key(&self, key: &InternalKey<'_>) -> PyResult<Bound<'py, PyAny>> {
        let user_key = try_bytes(self.0.py(), key.user_key)?;
        self.make("InternalKey", (user_key, key.sequence, key.value_type))
    }

    fn new_file(&self, file: &NewFile<'_>) -> PyResult<Bound<'py, PyAny>> {
        let (smallest_sequence, largest_sequence) = file.sequences().unzip();
        self.make(
            "NewFile",
            (
                file.level,
                file.file_number,
                file.file_len,
                self.key(&file.smallest)?,
                self.key(&file.largest)?,
                smallest_sequence,
                largest_sequence,
                file.path_id(),
                self.custom_fields(file.custom_fields().iter().cloned())?,
            ),
        )
    }

    fn custom_field(&self, field: &CustomField<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.0.py();
        let value = object_of(py, View::of_custom_field(field))?;
        let kind = self.make("CustomFieldKind", (field.as_str(),))?;
        self.make("CustomField", (kind, field.tag(), value))
    }

    fn custom_fields<'a>(&self, fields: impl Iterator<Item = CustomField<'a>>) -> PyResult<Bound<'py, PyTuple>> {
        let fields = fields.map(|field| self.custom_field(&field));
        PyTuple::new(self.0.py(), fields.collect::<PyResult<Vec<_>>>()?)
    }
}

fn blob_fields<'a>(fields: &[(u32, &'a [u8])]) -> impl Iterator<Item = CustomField<'a>> {
    fields.iter().map(|&(tag, value)| CustomField::Ignorable { tag, value })
}
