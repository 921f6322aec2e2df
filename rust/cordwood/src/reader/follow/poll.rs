//! The results of a follower.

use crate::damage::SkippedRegion;
use crate::decode::End;
use crate::names::{named, shows_name};
use crate::reader::Record;

named! {
    /// Why there is no record yet.
    pub enum WaitReason {
        /// Everything in the file has been returned.
        Idle = "idle",
        /// A record has started and is not complete: it is being written, or its writer was killed.
        Incomplete = "incomplete",
        /// Zeros: the space that a writer has preallocated, or a hole that is still to be filled.
        Zeros = "zeros",
        /// The next bytes belong to another log, or look damaged in a log that has a number, and so
        /// may have been left by an older log: this one is written over it. If no record at all is
        /// returned, the file may have been renamed: readers go by the number in its name.
        Stale = "stale",
        /// The next bytes look damaged. They are read again before that is reported, since they may
        /// be a partly visible write.
        Suspect = "suspect",
        /// The rest of a block whose damage has been reported. Reading continues at the next block
        /// or, after damage at the start of the file, once the bytes after it show which log it is.
        Damaged = "damaged",
    }
}

shows_name!(WaitReason);

/// Where, and why, there is no record yet. It distinguishes an idle writer from a stuck one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct NotYet {
    /// The file offset after the last reported event:
    /// [`Follower::offset`](super::Follower::offset).
    pub offset: u64,
    /// The length of the file, in bytes.
    pub file_len: u64,
    /// The reason for waiting.
    pub reason: WaitReason,
}

impl NotYet {
    /// Bytes of the file that have not been reported yet. With [`WaitReason::Zeros`] they are
    /// zeros, and may stay zeros.
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
    /// Bytes that are not returned and never will be: damage, if the severity is
    /// [`Severity::Corruption`](crate::damage::Severity::Corruption).
    Skipped(SkippedRegion),
    /// No event to report yet. Poll again later.
    NotYet(NotYet),
    /// The file is shorter than the part already reported. The offset has lost its meaning, so
    /// every further result is the same.
    #[non_exhaustive]
    Truncated {
        /// The file offset after the last reported event.
        offset: u64,
        /// The length of the file, in bytes.
        file_len: u64,
    },
    /// The path names another file, or none, and everything in the old file has been reported. If
    /// the old file grows, following continues with it.
    ///
    /// To follow the new file without losing a record that is still written to the old one: open a
    /// follower of the new file first (there may be none yet, so try again), poll this one until it
    /// returns `Rotated` again, and only then drop it. If the path was renamed several times
    /// between two polls, only the last file is found. [`Follower::wait`](super::Follower::wait)
    /// returns this at once.
    #[non_exhaustive]
    Rotated {
        /// The file offset after the last reported event, in the old file.
        offset: u64,
        /// The length of the old file, in bytes.
        file_len: u64,
    },
    /// Following has ended: at damage, under [`OnCorruption::Stop`](crate::OnCorruption::Stop), or
    /// after the trailer of a closed log. Every further result is the same.
    End(End),
}
