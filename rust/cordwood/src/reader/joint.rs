//! The break between two files of a segmented log.

use std::ops::Range;

use crate::damage::{Reason, SkippedRegion};

/// What is known about the end of a file that is followed by another file.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Joint {
    /// The start of an incomplete record, or of zeros, at the end of the file. Only the newest file
    /// may end this way. In any other file, these bytes are part of the break before the next file.
    torn_since: Option<u64>,
    /// Whether the break has been reported.
    is_reported: bool,
}

impl Joint {
    /// Checks whether `region` is part of the break before the next file. `file_end` is the end of
    /// the file that contains `region`.
    pub(super) fn takes(&mut self, region: SkippedRegion, file_end: u64) -> bool {
        let is_taken = match region.reason {
            Reason::TornTail => true,
            Reason::ZeroFill => region.end == file_end,
            _ => false,
        };
        if is_taken {
            self.torn_since.get_or_insert(region.start);
        }
        is_taken
    }

    /// Returns the break between `file_end`, where the file ends, and `next`, where the next file
    /// starts. `has_grown` is true if the file has bytes after `next`. If a break spans several
    /// ranges, each range's reader reports only its own part, so that every missing byte is
    /// reported exactly once.
    pub(super) fn region(self, file_end: u64, next: u64, has_grown: bool, range: Range<u64>) -> Option<SkippedRegion> {
        let start = self.torn_since.unwrap_or(file_end).max(range.start).min(next);
        let end = range.end.min(next);
        if start < end {
            return Some(SkippedRegion::new(start..end, Reason::MissingSegment));
        }
        (has_grown && end == next).then(|| SkippedRegion::new(start..end, Reason::GrownSegment))
    }

    /// Returns whether the break still has to be reported, and marks it as reported.
    pub(super) fn reports(&mut self) -> bool {
        !std::mem::replace(&mut self.is_reported, true)
    }
}
