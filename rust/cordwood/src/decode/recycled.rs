//! The state that `log_end.rs` keeps for a log whose file may contain the rest of an older one.

use std::ops::Range;

use crate::damage::Reason;
use crate::dialect::Form;

/// The known facts about the end of a log whose file may contain the rest of an older one.
#[derive(Debug, Default)]
pub(super) struct Recycled {
    /// The form of the header of the last fragment of this log.
    pub(super) form: Option<Form>,
    /// Whether any fragment of this log has been found, even a salvaged one.
    pub(super) has_own: bool,
    /// Damage after which it is not yet clear whether the log continues.
    pub(super) ambiguity: Option<Ambiguity>,
    /// Whether an older log may follow damage that was reported at once: damage before the range,
    /// or in a log that is still being written. Only a fragment of the same form as those before it
    /// shows that none does.
    pub(super) is_doubtful: bool,
    /// The same for the rest of a block that is salvaged after a fragment of an older log: these file
    /// offsets. The next block is read as if no record had been salvaged before it.
    pub(super) doubtful_part: Range<u64>,
    /// Where a trailer ended the log before the end of the file.
    pub(super) log_end: Option<u64>,
}

impl Recycled {
    /// Forgets how the log ends, but not the facts about its fragments.
    pub(super) fn forget_end(&mut self) {
        self.ambiguity = None;
        self.log_end = None;
    }
}

/// Apparent damage in a log whose file may contain the rest of an older one. If valid fragments of
/// this log follow, it is damage. If only fragments of another log follow, this one ended there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ambiguity {
    pub(super) start: u64,
    /// After the last byte, not counting the zeros before the decoder's offset.
    pub(super) end: u64,
    pub(super) reason: Reason,
    pub(super) leveldb_len: Option<u64>,
    /// Where the fragment at its start would end, if the header carries the number of this log:
    /// a record that was being written over the older log.
    pub(super) own_end: Option<u64>,
    pub(super) seen: Seen,
    /// Whether it started after damage in the same block, which a reader that does not salvage does
    /// not see.
    pub(super) is_salvaged: bool,
    pub(super) resolution: Option<Resolution>,
}

/// The traces of an older log, in the blocks after the ambiguity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Seen {
    /// No block has had room for a fragment.
    NoRoom,
    /// A later block does not start with a fragment of any log, although it has room for one. An older
    /// log would have left one there.
    Room,
    /// A fragment of another log.
    Stale,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resolution {
    Damage,
    /// No fragment of this log follows.
    EndOfFile,
}
