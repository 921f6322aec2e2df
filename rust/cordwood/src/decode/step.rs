//! The results of a decoder.

use std::fmt;

use super::RecordSpan;
use crate::damage::SkippedRegion;

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
        /// File offset at which the incomplete part starts.
        offset: u64,
    },
    /// At damage, under [`OnCorruption::Stop`](super::OnCorruption::Stop).
    Stopped {
        /// File offset at which the damage starts.
        offset: u64,
    },
}

/// At the start of a file: where a log without a byte ends.
impl Default for End {
    fn default() -> Self {
        End::Clean { offset: 0 }
    }
}

impl End {
    /// The file offset of the end, of any kind.
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
    /// window starts after that offset.
    NeedMore,
    /// There are no more events. Every further call returns the same.
    End(End),
}
