//! The result types of the [`model`](crate::model).

use cordwood::damage::{Reason, Severity};

/// An error that refuses a log under every policy. The last number is the file offset of the
/// refused part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A mark with this version.
    Version(u8, u64),
    /// A mark or a container with this codec.
    Codec(u32, u64),
    /// The frame of a container with which the frames of the log exceed the budget.
    OverBudget(u64),
}

/// A reader's report about a part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are those of the crate's Record and SkippedRegion"
)]
pub enum Event {
    /// A record.
    Record {
        offset: u64,
        end_offset: u64,
        data: Vec<u8>,
        is_salvaged: bool,
    },
    /// Bytes that the reader does not return.
    Skipped {
        start: u64,
        end: u64,
        reason: Reason,
        leveldb_len: Option<u64>,
    },
}

impl Event {
    /// Returns the bytes of the file that the event covers.
    pub fn span(&self) -> (u64, u64) {
        match *self {
            Event::Record { offset, end_offset, .. } => (offset, end_offset),
            Event::Skipped { start, end, .. } => (start, end),
        }
    }

    /// Checks whether the event is a region of this severity.
    pub fn is(&self, severity: Severity) -> bool {
        matches!(self, Event::Skipped { reason, .. } if severity_of(*reason) == severity)
    }
}

/// Implements the table "Reasons".
fn severity_of(reason: Reason) -> Severity {
    match reason.as_str() {
        "bad_length"
        | "checksum_mismatch"
        | "unknown_kind"
        | "missing_start"
        | "missing_end"
        | "interrupted_record"
        | "zero_header"
        | "record_too_large"
        | "bad_file_header"
        | "bad_metadata"
        | "lost_write"
        | "unsupported_compression"
        | "bad_compression"
        | "bad_container"
        | "missing_segment"
        | "grown_segment" => Severity::Corruption,
        "torn_tail" => Severity::TornTail,
        _ => Severity::Info,
    }
}
