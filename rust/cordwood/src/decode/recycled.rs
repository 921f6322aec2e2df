//! The state that `log_end.rs` keeps for a log whose file may contain remnants of an older log.

use std::ops::Range;

use crate::damage::SkippedRegion;
use crate::dialect::Form;

/// What is known about the end of a log whose file may contain remnants of an older log.
#[derive(Debug, Default)]
pub(super) struct Recycled {
    /// The header form of this log's last fragment, if any was found.
    pub(super) form: Option<Form>,
    /// Whether any fragment from this log, salvaged or not, has been found.
    pub(super) has_own: bool,
    /// Any apparent damage that may turn out to be the end of the log.
    pub(super) ambiguity: Option<Ambiguity>,
    /// Whether damage was reported immediately even though an older log may follow it. This happens
    /// if the damage is before the range, or if the log is still being written. After such damage,
    /// the only sign that this log continues is a fragment of the same form as the earlier ones.
    pub(super) is_doubtful: bool,
    /// The file offsets of a salvaged part of a block. The part might not belong to this log,
    /// because it follows a fragment from an older log. The next block is read as if no record in
    /// this part had been salvaged.
    pub(super) doubtful_part: Range<u64>,
    /// The offset at which an end trailer ended the log, if the file continues after it.
    pub(super) log_end: Option<u64>,
}

/// Apparent damage in a log whose file may contain remnants of an older log. If valid fragments
/// from this log follow, the damage is real. If only fragments from another log follow, this log
/// ended before the apparent damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ambiguity {
    /// The region to report if the apparent damage turns out to be real. Zeros directly before the
    /// decoder's offset are not included.
    pub(super) region: SkippedRegion,
    /// The offset where the fragment at `start` would end. `None` unless the fragment's header has
    /// this log's number. If it does, the fragment belongs to a record that was being written over
    /// the older log.
    pub(super) own_end: Option<u64>,
    pub(super) seen: Seen,
    /// Whether the ambiguity started after damage in the same block. If so, the ambiguous bytes are
    /// skipped unless the reader salvages.
    pub(super) is_salvaged: bool,
    pub(super) resolution: Option<Resolution>,
}

/// The traces of an older log found in the blocks after the ambiguity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Seen {
    /// No block so far has had room for a fragment.
    NoRoom,
    /// A later block has room for a fragment but doesn't start with a fragment from any log. An
    /// older log would have left a fragment at the start of that block.
    Room,
    /// A fragment from another log was found.
    Stale,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolution {
    Damage,
    /// The log ended, because it has no further fragments.
    EndOfFile,
}
