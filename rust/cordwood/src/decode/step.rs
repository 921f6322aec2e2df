//! The results of a decoder.

use std::fmt;

use super::RecordSpan;
use crate::damage::SkippedRegion;
use crate::dialect::{Dialect, Unsupported};
use crate::error::show_unsupported;

/// How reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// Between two records: at the end of the file, or where the range ended. Bytes after the end
    /// of the log, up to the end of the file, are [`Reason::Stale`](crate::damage::Reason::Stale).
    Clean {
        /// That file offset.
        offset: u64,
    },
    /// In an incomplete record, as a crash leaves it. Not damage.
    TornTail {
        /// File offset at which the incomplete part begins.
        offset: u64,
    },
    /// At damage, under [`OnCorruption::Stop`](super::OnCorruption::Stop).
    Stopped {
        /// File offset at which the damage begins.
        offset: u64,
    },
}

impl End {
    /// The file offset of the end, whatever its kind.
    pub const fn offset(self) -> u64 {
        match self {
            End::Clean { offset } | End::TornTail { offset } | End::Stopped { offset } => offset,
        }
    }

    /// A stable name: `"clean"`, `"torn_tail"` or `"stopped"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            End::Clean { .. } => "clean",
            End::TornTail { .. } => "torn_tail",
            End::Stopped { .. } => "stopped",
        }
    }
}

/// For example `torn tail at offset 38`.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, offset) = match self {
            End::Clean { offset } => ("clean end", offset),
            End::TornTail { offset } => ("torn tail", offset),
            End::Stopped { offset } => ("stopped at the damage", offset),
        };
        write!(f, "{kind} at offset {offset}")
    }
}

/// A result of the [`Decoder`](super::Decoder).
///
/// Exhaustive: the caller of a decoder must handle each result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A record.
    Record(RecordSpan),
    /// Bytes that are not returned.
    Skipped(SkippedRegion),
    /// Call again with a window that contains the bytes from
    /// [`Decoder::offset`](super::Decoder::offset) on and extends further than this one; or with
    /// this one, if [`Decoder::refused`](super::Decoder::refused) returns a reason.
    ///
    /// For the last window of a file, this is the result only if there is such a reason, or if the
    /// window begins after that offset.
    NeedMore,
    /// There are no more events. Every further call returns the same.
    End(End),
}

/// Why a record that was found is not returned. It is neither skipped nor consumed: a further call
/// begins with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// There is not enough memory for its bytes.
    OutOfMemory,
    /// With it, the records of a compressed log would decompress to more than is allowed for the
    /// bytes read: see [`ReadOptions::record_len_max`](super::ReadOptions::record_len_max).
    OverBudget {
        /// File offset of its first header.
        offset: u64,
        /// File offset after its last fragment.
        end_offset: u64,
        /// The length of its data in bytes.
        data_len: u64,
        /// The smallest value of the option with which the record is returned.
        record_len_max: u64,
    },
    /// A packed log, or a container in it, is of a later version, or in a form that this build cannot
    /// read. No reader skips it.
    Unsupported(Unsupported),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::OutOfMemory => write!(f, "there is not enough memory for the record"),
            Refused::Unsupported(unsupported) => show_unsupported(Dialect::PACKED, *unsupported, f),
            Refused::OverBudget {
                offset,
                data_len,
                record_len_max,
                ..
            } => write!(
                f,
                "the compressed record at offset {offset} has {data_len} bytes: too many for the bytes read so far, \
                 unless the limit is {record_len_max} or more"
            ),
        }
    }
}

impl std::error::Error for Refused {}
