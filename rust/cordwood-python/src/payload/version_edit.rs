//! The functions that `cordwood.payload.VersionEdit` calls. The class converts their results to
//! named tuples.

use std::collections::BTreeMap;

use cordwood_payload::table::View;
use cordwood_payload::{self as payload, Value};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::objects::object_of;
use crate::exclusive::Exclusive;
use crate::memory::buffer::try_bytes;
use crate::values::arguments::bytes_of;
use crate::values::error::payload_error;

/// Checks a version edit by decoding the whole edit, and returns its record.
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
    let checked = payload::VersionEdit::new(record.as_bytes()).check();
    checked.map_err(|error| payload_error(record.py(), error))?;
    Ok(record)
}

/// Decodes one field of a version edit.
///
/// Fields are decoded one at a time, because a decoded field takes much more memory than its bytes
/// in the record.
///
/// Args:
///     record: The record.
///     offset: The field's offset in the record, in bytes.
///
/// Returns:
///     The name of the field's kind, its tag, its value, and the offset where the field ends.
///     `None` at the end of the record.
///
/// Raises:
///     PayloadError: The bytes at the offset are not a field.
#[pyfunction]
#[pyo3(signature = (record, offset, /))]
#[expect(clippy::type_complexity, reason = "a tuple, which Python unpacks")]
pub(crate) fn version_edit_field<'py>(
    record: &Bound<'py, PyBytes>,
    offset: usize,
) -> PyResult<Option<(&'static str, u32, Bound<'py, PyAny>, usize)>> {
    let py = record.py();
    let step = payload::VersionEdit::new(record.as_bytes()).field_at(offset);
    let Some((field, end_offset)) = step.map_err(|error| payload_error(py, error))? else {
        return Ok(None);
    };
    let value = object_of(py, View::of_value(&field.value))?;
    Ok(Some((field.kind, field.tag, value, end_offset)))
}

/// The state of a database after all edits in its MANIFEST.
///
/// The state consists of the database's tables and the last value of each numeric field.
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
    ///     PayloadError: The record is not a version edit. In that case, the state is unchanged.
    ///     TypeError: `record` is not bytes-like.
    #[pyo3(signature = (record, /))]
    fn apply(&self, record: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = record.py();
        let record = bytes_of("record", record)?;
        let applied = self.0.lock(py)?.apply(record.as_bytes());
        applied.map_err(|error| payload_error(py, error))
    }

    /// Returns the numbers that the edits contain.
    ///
    /// Returns:
    ///     A tuple of four items. The first is the last value of each numeric field, by field name.
    ///     The second is the smallest log number that each column family still needs. The third is
    ///     the synced length in bytes of each log that RocksDB tracks. The fourth is true if
    ///     LevelDB knows all fields.
    #[expect(clippy::type_complexity, reason = "a tuple, which Python unpacks")]
    fn numbers(
        &self,
        py: Python<'_>,
    ) -> PyResult<(
        BTreeMap<&'static str, u64>,
        BTreeMap<u64, u64>,
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

    /// Returns the tables, sorted by column family, level and number.
    ///
    /// Returns:
    ///     For each table, a tuple of the number of its column family, the family's name (if the
    ///     MANIFEST contains it), and the table's parts by name.
    #[expect(clippy::type_complexity, reason = "a tuple, which Python unpacks")]
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Vec<(u64, Option<Bound<'py, PyBytes>>, Bound<'py, PyAny>)>> {
        let state = self.0.lock(py)?;
        let _owner = self.0.may_run_python();
        let table = |(family, file): (u64, Value<'_>)| {
            let name = state.name(family).map(|name| try_bytes(py, name)).transpose()?;
            Ok((family, name, object_of(py, View::of_value(&file))?))
        };
        state.tables().map(table).collect()
    }
}
