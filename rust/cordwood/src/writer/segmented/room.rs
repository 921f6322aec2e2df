//! Whether a record still fits in a segment.

use crate::container::Mark;
use crate::dialect::{Form, LogFormat};
use crate::encode::bound_of;
use crate::format::encoded_len;

/// The room that is left in a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) is_packed: bool,
    /// The most bytes that the segment can have now.
    pub(super) end: u64,
    /// The most bytes that it may have.
    pub(super) segment_len: u64,
    /// A longer record is refused by the file, and begins no segment.
    pub(super) record_len_max: u64,
}

impl Room {
    /// Whether no record is in the segment: at most the mark of a packed log.
    pub(super) fn is_empty(format: LogFormat, file_len: u64) -> bool {
        let mark_len = if format.dialect.is_packed() {
            Mark::FRAGMENT_LEN
        } else {
            0
        };
        file_len <= mark_len as u64
    }

    /// Whether the record belongs in this segment, which then has less room. The first record does,
    /// however long it is.
    pub(super) fn takes(&mut self, record_len: usize) -> bool {
        let len = if self.is_packed {
            bound_of(record_len, Form::Plain) as u64
        } else {
            encoded_len(self.end, record_len as u64)
        };
        let end = self.end.saturating_add(len);
        let is_first = self.end == 0;
        if end > self.segment_len && !is_first && record_len as u64 <= self.record_len_max {
            return false;
        }
        self.end = end;
        true
    }
}
