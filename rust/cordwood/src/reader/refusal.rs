//! Converts what the decoder refuses to an error.

use std::path::PathBuf;

use crate::decode::Refused;
use crate::error::Error;

/// The error for a record that the decoder refuses to return.
#[cold]
pub(super) fn refusal(refused: Refused, path: Option<PathBuf>) -> Error {
    match refused {
        Refused::OutOfMemory => Error::Io {
            path,
            source: std::io::ErrorKind::OutOfMemory.into(),
        },
        Refused::OverBudget {
            offset,
            end_offset,
            data_len,
            record_len_max,
        } => Error::OverBudget {
            path,
            offset,
            end_offset,
            data_len,
            record_len_max,
        },
    }
}
