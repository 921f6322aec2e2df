//! The faults of records, and the parts that are missing from their rows because of them.

use std::borrow::Cow;
use std::fmt;

use crate::{PayloadError, PayloadReason};

/// The part that is missing from the rows of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The whole record.
    Record,
    /// One of its rows.
    Row,
    /// One of its values.
    Value,
    /// All rows after the first.
    Rest,
}

/// A fault in a record, and the part that is missing from its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The missing part.
    pub part: Part,
    /// The fault, and its place in the record.
    pub error: PayloadError,
    /// A description of the fault, if the reason of the error is not precise enough.
    pub(super) detail: Option<Cow<'static, str>>,
}

impl Fault {
    /// Creates a fault that causes a record to be left out.
    pub(super) fn record(error: PayloadError, detail: impl Into<Cow<'static, str>>) -> Self {
        Fault {
            part: Part::Record,
            error,
            detail: Some(detail.into()),
        }
    }

    /// Creates a fault of a whole record with this description.
    pub(super) fn whole(record: &[u8], reason: PayloadReason, detail: impl Into<Cow<'static, str>>) -> Self {
        let (offset, len) = (0, record.len());
        Fault::record(PayloadError { offset, len, reason }, detail)
    }

    /// Creates a fault that causes a row to be left out.
    pub(super) fn row(error: PayloadError, detail: String) -> Self {
        Fault {
            part: Part::Row,
            ..Fault::record(error, detail)
        }
    }

    /// Creates a fault after the first rows of a record.
    pub(super) fn rest(error: PayloadError) -> Self {
        Fault {
            part: Part::Rest,
            ..error.into()
        }
    }

    /// Creates a fault that causes a value to be left out of its row.
    pub(super) fn value(error: PayloadError, detail: impl Into<Cow<'static, str>>) -> Self {
        Fault {
            part: Part::Value,
            ..Fault::record(error, detail)
        }
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
