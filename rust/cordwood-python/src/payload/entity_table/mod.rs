//! Entities as Arrow columns, without a Python object for any value. `python/cordwood/_tables/`
//! does the same with rows, and remains as the naive counterpart. `learner.rs` and `builder.rs`
//! contain the Python classes. `view.rs` defines a row, `seen.rs` finds the columns, and
//! `column.rs` and `json.rs` make them.

mod builder;
mod column;
mod json;
mod learner;
mod names;
mod seen;
mod view;

use cordwood_payload::{Entity, PayloadError};
use pyo3::prelude::*;
use pyo3::types::PyString;

pub(crate) use self::builder::EntityBuilder;
pub(crate) use self::learner::EntityLearner;
use crate::reader::record_batch::RecordBatch;
use crate::values::error::payload_error;

/// The columns that tables have for the key: no property may have one of these names.
const KEY_COLUMNS: [&str; 4] = ["__kind__", "__id__", "__name__", "__path__"];

/// The maximum number of records left out at a time: each becomes a Python object.
const LEFT_OUT_MAX: usize = 1_000;

/// Why a record is left out: it is not an entity, or a property has this name.
enum Fault {
    Payload(PayloadError),
    Reserved(&'static str),
}

/// Records that are left out, by index in the batch.
type LeftOut = Vec<(usize, Fault)>;

fn decode(record: &[u8]) -> Result<Entity<'_>, Fault> {
    let entity = Entity::decode(record).map_err(Fault::Payload)?;
    // Few entities have such a name: the others are not compared with each of them.
    if !entity.properties.iter().any(|property| property.name.starts_with("__")) {
        return Ok(entity);
    }
    let has = |name: &str| entity.properties.iter().any(|property| property.name == name);
    match KEY_COLUMNS.into_iter().find(|name| has(name)) {
        Some(name) => Err(Fault::Reserved(name)),
        None => Ok(entity),
    }
}

/// For each record that is left out, its index and the error or the reserved name.
fn left_out_objects(py: Python<'_>, left_out: LeftOut) -> PyResult<Vec<(usize, Py<PyAny>)>> {
    let object = |fault| match fault {
        Fault::Payload(error) => payload_error(py, error).into_value(py).into_any(),
        Fault::Reserved(name) => PyString::new(py, name).into_any().unbind(),
    };
    Ok(left_out
        .into_iter()
        .map(|(index, fault)| (index, object(fault)))
        .collect())
}

/// The CRC-32C of the offsets and the data of records, continued from `crc`.
///
/// Args:
///     batch: The records.
///     crc: The CRC-32C of the records before them.
///
/// Returns:
///     An unsigned 32-bit integer.
#[pyfunction]
#[pyo3(signature = (batch, crc, /))]
pub(crate) fn batch_crc(py: Python<'_>, batch: &Bound<'_, RecordBatch>, crc: u32) -> u32 {
    let batch = batch.get().shared();
    py.detach(|| {
        let records = batch.records();
        (0..records.len()).fold(crc, |crc, index| {
            let offset = records.record_offsets().get(index).copied().unwrap_or_default();
            let crc = cordwood::crc32c::extend(crc, &offset.to_le_bytes());
            cordwood::crc32c::extend(crc, records.get(index).unwrap_or_default())
        })
    })
}
