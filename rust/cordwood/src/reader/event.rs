//! The events that a reader returns.

use std::fmt;

use crate::damage::SkippedRegion;
use crate::decode::RecordSpan;

/// The bytes of a record and its position in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// The file offset of the first fragment's header.
    pub offset: u64,
    /// The file offset just past the last fragment's payload.
    pub end_offset: u64,
    /// The record's bytes, as they were written.
    pub data: &'a [u8],
    /// Whether the record starts after damage in the same block. See
    /// [`RecordSpan::is_salvaged`](crate::codec::RecordSpan::is_salvaged).
    pub is_salvaged: bool,
}

impl<'a> Record<'a> {
    /// Creates the record at `span`.
    #[inline]
    pub(super) fn new(span: RecordSpan, data: &'a [u8]) -> Self {
        Record {
            offset: span.offset,
            end_offset: span.end_offset,
            data,
            is_salvaged: span.is_salvaged,
        }
    }
}

/// Shows the data in the form `b"one"`, truncating long data.
impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show("Record", *self, f)
    }
}

/// Formats a record as a struct called `name`.
pub(super) fn show(name: &str, record: Record<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_struct(name)
        .field("offset", &record.offset)
        .field("end_offset", &record.end_offset)
        .field("data", &Shown(record.data))
        .field("is_salvaged", &record.is_salvaged)
        .finish()
}

struct Shown<'a>(&'a [u8]);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LEN_MAX: usize = 32;
        match self.0.get(..LEN_MAX) {
            Some(start) if self.0.len() > LEN_MAX => {
                write!(f, "<{} bytes: b\"{}\"...>", self.0.len(), start.escape_ascii())
            }
            _ => write!(f, "b\"{}\"", self.0.escape_ascii()),
        }
    }
}

/// A part of a file: a record or a skipped region. Events are returned in order of offset.
///
/// This enum is exhaustive, so a `match` on it accounts for every byte of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A record.
    Record(Record<'a>),
    /// Bytes that were not returned as a record, and the reason.
    Skipped(SkippedRegion),
}
