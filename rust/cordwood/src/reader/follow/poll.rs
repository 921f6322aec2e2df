//! The results of a follower.

use crate::damage::SkippedRegion;
use crate::decode::End;
use crate::names::{named, shows_name};
use crate::reader::Record;

named! {
    /// The reason why no record can be returned yet.
    pub enum WaitReason {
        /// All bytes of the file have been returned.
        Idle = "idle",
        /// A record has started but is not complete. Either it is being written, or its writer was
        /// killed.
        Incomplete = "incomplete",
        /// The next bytes are zeros. Either a writer has preallocated the space, or a writer has
        /// left a hole that it will fill later.
        Zeros = "zeros",
        /// The next bytes may be left over from an older log that this one overwrites. Either they
        /// belong to another log, or they look damaged and the log has a number. If the follower
        /// returns no records at all, the file may have been renamed, because the log number is
        /// taken from the file name.
        Stale = "stale",
        /// The next bytes look damaged. They may be a partly visible write, so the follower reads
        /// them again before it reports damage.
        Suspect = "suspect",
        /// The follower has reported damage, and waits for the rest of the block. Reading continues
        /// at the next block. If the damage is at the start of the file, reading continues once the
        /// bytes after it show which log it is.
        Damaged = "damaged",
    }
}

shows_name!(WaitReason);

/// The place where no record can be returned yet, and the reason. This lets you distinguish an idle
/// writer from a stuck one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NotYet {
    /// The file offset after the last reported event. It is equal to
    /// [`Follower::offset`](super::Follower::offset).
    pub offset: u64,
    /// The length of the file, in bytes.
    pub file_len: u64,
    /// The reason for waiting.
    pub reason: WaitReason,
}

impl NotYet {
    /// Returns the number of bytes in the file that have not been reported yet. With
    /// [`WaitReason::Zeros`], these bytes are zeros, and may remain zeros.
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
    /// Bytes that are not returned as a record and never will be. They are damage if the severity
    /// is [`Severity::Corruption`](crate::damage::Severity::Corruption).
    Skipped(SkippedRegion),
    /// There is no event to report yet. Poll again later.
    NotYet(NotYet),
    /// The file is shorter than the part already reported. The offset is no longer meaningful, so
    /// every further result is the same.
    #[non_exhaustive]
    Truncated {
        /// The file offset after the last reported event.
        offset: u64,
        /// The length of the file, in bytes.
        file_len: u64,
    },
    /// The path names another file or no file, and everything in the old file has been reported. If
    /// the old file grows, the follower continues to read it.
    ///
    /// A record may still be written to the old file. To follow the new file without losing such a
    /// record, first open a follower of the new file. The new file may not exist yet, so try again
    /// until it does. Then poll this follower until it returns `Rotated` again, and only then drop
    /// it. If the path was renamed several times between two polls, only the last file is found.
    /// [`Follower::wait`](super::Follower::wait) returns this result at once.
    #[non_exhaustive]
    Rotated {
        /// The file offset after the last reported event, in the old file.
        offset: u64,
        /// The length of the old file, in bytes.
        file_len: u64,
    },
    /// The follower has ended. It ends at damage under
    /// [`OnCorruption::Stop`](crate::OnCorruption::Stop), or after the trailer of a closed log.
    /// Every further result is the same.
    End(End),
}
