//! The results of a follower.

use crate::damage::SkippedRegion;
use crate::decode::End;
use crate::names::{named, shows_name};
use crate::reader::Record;

named! {
    /// Why there is no record to return yet.
    pub enum WaitReason {
        /// All bytes of the file have been returned.
        Idle = "idle",
        /// A record has started but is not complete: either it is still being written, or its
        /// writer was killed.
        Incomplete = "incomplete",
        /// The next bytes are zeros: either preallocated space or a gap that a writer will fill
        /// later.
        Zeros = "zeros",
        /// The next bytes may be left over from an older log that is being overwritten. Either they
        /// belong to another log, or they look damaged and the followed log has a number. If the
        /// follower never returns a record, check whether the file has been renamed, because the
        /// log number is taken from the file name.
        Stale = "stale",
        /// The next bytes look damaged. Because a write may be only partly visible, the follower
        /// rereads them before it reports damage.
        Suspect = "suspect",
        /// The follower has reported damage and is waiting for the rest of the block. Reading
        /// continues at the next block. If the file starts with damage, reading continues once the
        /// bytes after the damage reveal the format of the log.
        Damaged = "damaged",
    }
}

shows_name!(WaitReason);

/// The reason why there is no record to return yet, and the offset where the follower is waiting.
/// Use this to distinguish an idle writer from one that is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NotYet {
    /// The file offset just past the last reported event. Equal to
    /// [`Follower::offset`](super::Follower::offset).
    pub offset: u64,
    /// The length of the file, in bytes.
    pub file_len: u64,
    /// Why there is no record to return yet.
    pub reason: WaitReason,
}

impl NotYet {
    /// Returns how many bytes of the file have not been reported yet. If the reason is
    /// [`WaitReason::Zeros`], these bytes are zeros and might never be overwritten.
    pub const fn pending_len(&self) -> u64 {
        self.file_len.saturating_sub(self.offset)
    }
}

/// The results of a [`Follower`](super::Follower).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Poll<'a> {
    /// A record.
    Record(Record<'a>),
    /// Bytes that will never be returned as part of a record. They count as damage if the severity
    /// is [`Severity::Corruption`](crate::damage::Severity::Corruption).
    Skipped(SkippedRegion),
    /// No event to report yet; poll again later.
    NotYet(NotYet),
    /// The file has become shorter than the part already reported. The follower's offset is no
    /// longer meaningful, so all subsequent calls return this result.
    #[non_exhaustive]
    Truncated {
        /// The file offset just past the last reported event.
        offset: u64,
        /// The length of the file, in bytes.
        file_len: u64,
    },
    /// The path refers to another file or no longer exists, and everything in the old file has been
    /// reported. If the old file grows, the follower keeps reading it.
    ///
    /// More records may still be written to the old file. To follow the new file without losing any
    /// of these records, first open a second follower for the new file, retrying until the file
    /// exists. Then poll the old follower until it returns `Rotated` again, and only then drop it.
    /// If the file is rotated several times between two polls, only the newest file is found.
    /// [`Follower::wait`](super::Follower::wait) returns this result immediately.
    #[non_exhaustive]
    Rotated {
        /// The offset in the old file just past the last reported event.
        offset: u64,
        /// The length of the old file, in bytes.
        file_len: u64,
    },
    /// The follower has ended, either at damage under
    /// [`OnCorruption::Stop`](crate::OnCorruption::Stop) or after the trailer of a closed log. All
    /// subsequent calls return this result.
    End(End),
}
