//! What a reader returns.

use crate::damage::SkippedRegion;

/// A record: its bytes and its position in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// File offset of the first fragment's header.
    pub offset: u64,
    /// File offset after the last fragment's payload.
    pub end_offset: u64,
    /// The bytes that were written.
    pub data: &'a [u8],
    /// Whether it begins after damage in the same block: see
    /// [`RecordSpan::is_salvaged`](crate::codec::RecordSpan::is_salvaged).
    pub is_salvaged: bool,
}

/// A part of a file, in the order of the offsets.
///
/// Exhaustive: a `match` on it accounts for every byte of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A record.
    Record(Record<'a>),
    /// Bytes that are not returned, and why.
    Skipped(SkippedRegion),
}
