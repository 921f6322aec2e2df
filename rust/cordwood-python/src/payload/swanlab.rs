//! The function `decode_swanlab`, for `cordwood.payload.swanlab`.

use cordwood_payload::SwanlabScalar;
use pyo3::prelude::*;

use crate::values::arguments::bytes_of;
use crate::values::error::payload_error;

/// The name, the step, the time and the number.
type Scalar = (String, i64, Option<i64>, f64);

/// A number that a run of SwanLab 0.8 or later has logged.
///
/// Args:
///     record: `bytes` or any other buffer.
///
/// Returns:
///     A tuple: its name, the step, the time in microseconds since 1970-01-01 00:00 UTC or `None`,
///     and the number. `None` if the record is of another kind.
///
/// Raises:
///     PayloadError: `record` is not a record of a run.
///     TypeError: `record` is not bytes-like.
#[pyfunction]
#[pyo3(signature = (record, /))]
pub(crate) fn decode_swanlab(record: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    let bytes = bytes_of("record", record)?;
    let scalar = SwanlabScalar::decode(bytes.as_bytes()).map_err(|error| payload_error(record.py(), error))?;
    Ok(scalar.map(|scalar| (scalar.key.to_owned(), scalar.step, scalar.timestamp, scalar.value)))
}
