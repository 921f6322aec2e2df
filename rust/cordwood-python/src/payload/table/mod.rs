//! Records as Arrow columns, without a Python object for any value. `python/cordwood/_tables/`
//! does the same with rows, and remains as the naive counterpart. `learner.rs` and `builder.rs`
//! contain the Python classes. `tree.rs` reads JSON, `view.rs` defines a row, `seen.rs` finds the
//! columns, and `column.rs` and `json.rs` make them.

mod builder;
mod column;
mod json;
mod learner;
mod names;
mod seen;
mod tree;
mod view;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub(crate) use self::builder::TableBuilder;
pub(crate) use self::learner::TableLearner;
use self::view::Payload;
use crate::reader::record_batch::RecordBatch;

/// The maximum number of records left out at a time: each becomes a Python object.
const LEFT_OUT_MAX: usize = 1_000;

fn payload_of(name: &str) -> PyResult<Payload> {
    Payload::named(name).ok_or_else(|| PyValueError::new_err(format!("there is no table of {name}")))
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
