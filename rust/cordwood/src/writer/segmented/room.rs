//! Checks whether a record still fits in a segment.

use crate::container::Mark;
use crate::dialect::{Form, LogFormat};
use crate::encode::bound_of;
use crate::format::encoded_len;
use crate::writer::log_file::LogFileOptions;

/// The room left in a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    is_packed: bool,
    /// An upper bound for the current length of the segment in bytes, or 0 if it has no records.
    end: u64,
    segment_len: u64,
    record_len_max: u64,
}

impl Room {
    /// Returns the room left in a segment, given lower and upper bounds for its current length. The
    /// mark of a packed log does not count as a record.
    pub(super) fn after((end_min, end_max): (u64, u64), format: LogFormat, options: &LogFileOptions) -> Self {
        let is_packed = format.dialect.is_packed();
        let mark_len = if is_packed { Mark::FRAGMENT_LEN as u64 } else { 0 };
        Room {
            is_packed,
            end: if end_min <= mark_len { 0 } else { end_max },
            segment_len: options.segment_len,
            record_len_max: options.record_len_max,
        }
    }

    /// Checks whether the segment is empty, apart from the mark of a packed log.
    pub(super) fn is_empty(self) -> bool {
        self.end == 0
    }

    /// Checks whether the record belongs in this segment. If it does, the room shrinks by the
    /// length of the record. The first record always belongs in the segment, no matter how long it
    /// is.
    pub(super) fn takes(&mut self, record_len: usize) -> bool {
        let len = if self.is_packed {
            bound_of(record_len, Form::Plain) as u64
        } else {
            encoded_len(self.end, record_len as u64)
        };
        let end = self.end.saturating_add(len);
        // Appending a record longer than the maximum fails, so such a record does not start a new
        // segment.
        if end > self.segment_len && !self.is_empty() && record_len as u64 <= self.record_len_max {
            return false;
        }
        self.end = end;
        true
    }
}
