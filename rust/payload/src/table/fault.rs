//! Faults in records, and the parts of the rows that are missing as a result.

use std::borrow::Cow;
use std::collections::TryReserveError;
use std::fmt;

use crate::{PayloadError, PayloadReason};

/// The part that is missing from a record's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The whole record.
    Record,
    /// One row of the record.
    Row,
    /// One value of the record.
    Value,
    /// All rows of the record except the first.
    Rest,
}

/// A fault in a record, and the part missing from its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The missing part.
    pub part: Part,
    /// The fault and its position in the record.
    pub error: PayloadError,
    /// A description of the fault, or `None` if the reason in `error` is precise enough.
    pub(super) detail: Option<Cow<'static, str>>,
}

impl Fault {
    /// Creates a fault with a description.
    pub(super) fn new(part: Part, error: PayloadError, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = Some(detail.into());
        Fault { part, error, detail }
    }

    /// Creates a fault covering all bytes of a record.
    pub(super) fn whole(
        part: Part,
        record: &[u8],
        reason: PayloadReason,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Fault::new(part, PayloadError::new(0, record.len(), reason), detail)
    }
}

impl From<PayloadError> for Fault {
    fn from(error: PayloadError) -> Self {
        Fault {
            part: Part::Record,
            error,
            detail: None,
        }
    }
}

impl From<PayloadError> for Box<Fault> {
    fn from(error: PayloadError) -> Self {
        Box::new(error.into())
    }
}

impl From<TryReserveError> for Box<Fault> {
    fn from(_: TryReserveError) -> Self {
        PayloadError::new(0, 0, PayloadReason::OutOfMemory).into()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            None => self.error.fmt(f),
            Some(detail) => {
                let PayloadError { offset, len, .. } = self.error;
                let bytes = if len == 1 { "byte" } else { "bytes" };
                write!(f, "{detail} ({len} {bytes} at offset {offset} of the payload)")
            }
        }
    }
}

impl std::error::Error for Fault {}
