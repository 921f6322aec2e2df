//! The state that `log_end.rs` keeps for a log whose file may contain the rest of an older log.

use std::ops::Range;

use crate::damage::Reason;
use crate::dialect::Form;

/// The known facts about the end of a log whose file may contain the rest of an older log.
#[derive(Debug, Default)]
pub(super) struct Recycled {
    /// The form of the header of the last fragment of this log.
    pub(super) form: Option<Form>,
    /// Whether any fragment of this log has been found. Salvaged fragments count too.
    pub(super) has_own: bool,
    /// Damage after which it is not yet known whether the log continues.
    pub(super) ambiguity: Option<Ambiguity>,
    /// Whether an older log may follow damage that was reported at once. This is damage before the
    /// range, or damage in a log that is still being written. Only a fragment of the same form as
    /// the earlier ones shows that no older log follows.
    pub(super) is_doubtful: bool,
    /// The file offsets of the rest of a block that is salvaged after a fragment of an older log.
    /// It is also doubtful whether this part belongs to this log. The next block is read as if no
    /// record had been salvaged before it.
    pub(super) doubtful_part: Range<u64>,
    /// The offset at which a trailer ended the log before the end of the file.
    pub(super) log_end: Option<u64>,
}

impl Recycled {
    /// Forgets how the log ends, but keeps the facts about its fragments.
    pub(super) fn forget_end(&mut self) {
        self.ambiguity = None;
        self.log_end = None;
    }
}

/// Apparent damage in a log whose file may contain the rest of an older log. If valid fragments of
/// this log follow, it is damage. If only fragments of another log follow, this log ended there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ambiguity {
    pub(super) start: u64,
    /// The offset after the last byte. It does not include the zeros before the decoder's offset.
    pub(super) end: u64,
    pub(super) reason: Reason,
    pub(super) leveldb_len: Option<u64>,
    /// Where the fragment at the start would end, if its header carries the number of this log.
    /// Such a fragment is a record that was being written over the older log.
    pub(super) own_end: Option<u64>,
    pub(super) seen: Seen,
    /// Whether the ambiguity started after damage in the same block. A reader that does not salvage
    /// does not see it.
    pub(super) is_salvaged: bool,
    pub(super) resolution: Option<Resolution>,
}

/// The traces of an older log in the blocks after the ambiguity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Seen {
    /// No block has had room for a fragment.
    NoRoom,
    /// A later block has room for a fragment but does not start with a fragment of any log. An
    /// older log would have left one there.
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
