//! Where a file of a segmented log ends and the next one starts.

use std::ops::Range;

use crate::damage::{Reason, SkippedRegion};

/// The known facts about the end of a file that others follow.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Joint {
    /// Where the incomplete record or the zeros at its end start. Only the newest file may have
    /// them: in any other, they are a part of the break before the next file.
    torn_since: Option<u64>,
    /// Whether the break has been reported.
    is_reported: bool,
}

impl Joint {
    /// Whether `region` is at the end of the file, which is at `file_end`, and so a part of the break.
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

    /// The break between `file_end`, where the file ends, and `next`, where the next one starts. If
    /// ranges divide a break, each reports its own part. So no missing byte is skipped silently,
    /// and none is reported twice. `has_grown`: the file has bytes after `next`.
    pub(super) fn region(self, file_end: u64, next: u64, has_grown: bool, range: Range<u64>) -> Option<SkippedRegion> {
        let start = self.torn_since.unwrap_or(file_end).max(range.start).min(next);
        let end = range.end.min(next);
        if start < end {
            return Some(SkippedRegion::new(start..end, Reason::MissingSegment));
        }
        (has_grown && end == next).then(|| SkippedRegion::new(start..end, Reason::GrownSegment))
    }

    /// Whether this is the first call for the file.
    pub(super) fn reports(&mut self) -> bool {
        !std::mem::replace(&mut self.is_reported, true)
    }
}
