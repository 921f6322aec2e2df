//! The results of a decoder.

use std::fmt;

use super::RecordSpan;
use crate::damage::SkippedRegion;

/// How reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum End {
    /// Reading ended at the end of the file or range, not inside a record. There may be damage
    /// before the end. If the log ends before the file does, the remaining bytes are reported as
    /// [`Reason::Stale`](crate::damage::Reason::Stale).
    Clean {
        /// The file offset where reading ended.
        offset: u64,
    },
    /// Reading ended inside an incomplete record. This is normal after a crash and isn't damage.
    TornTail {
        /// The file offset where the incomplete part starts.
        offset: u64,
    },
    /// Reading ended at damage because the policy is
    /// [`OnCorruption::Stop`](super::OnCorruption::Stop).
    Stopped {
        /// The file offset where the damage starts.
        offset: u64,
    },
}

/// The default is a clean end at offset 0, as in an empty log.
impl Default for End {
    fn default() -> Self {
        End::Clean { offset: 0 }
    }
}

impl End {
    /// Returns the file offset where the log ends, or where its incomplete or damaged part starts.
    pub const fn offset(self) -> u64 {
        match self {
            End::Clean { offset } | End::TornTail { offset } | End::Stopped { offset } => offset,
        }
    }

    /// Returns a stable name: `"clean"`, `"torn_tail"` or `"stopped"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            End::Clean { .. } => "clean",
            End::TornTail { .. } => "torn_tail",
            End::Stopped { .. } => "stopped",
        }
    }
}

/// Formats the end as text, for example `torn tail at offset 38`.
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

/// The result of a step of the [`Decoder`](super::Decoder).
///
/// This enum is exhaustive, because a decoder's caller must handle every variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A record.
    Record(RecordSpan),
    /// Bytes that were not returned as a record, and the reason.
    Skipped(SkippedRegion),
    /// The decoder needs more bytes. Call [`Decoder::step`](super::Decoder::step) again with a
    /// window that contains the bytes from [`Decoder::offset`](super::Decoder::offset) onward and
    /// extends further than the current one. If [`Decoder::refused`](super::Decoder::refused)
    /// returns a reason, you may also pass the current window again.
    ///
    /// For the last window of a file, the decoder returns this in only two cases:
    /// [`Decoder::refused`](super::Decoder::refused) returns a reason, or the window starts after
    /// the decoder's offset.
    NeedMore,
    /// There are no more events. All subsequent calls return the same result.
    End(End),
}
