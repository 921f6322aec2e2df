//! Consecutive records of one fragment each, found in one loop and returned one by one.

use super::{DataAt, Decoder, RecordSpan};
use crate::checksum;
use crate::dialect::Form;
use crate::format::HEADER_LEN;
use crate::fragment::{FullRun, RUN_MAX};

/// A run that was found, and how much of it has been returned.
pub(super) struct Run {
    /// Whether to look for runs: `false` if even a FULL fragment may be too large.
    pub(super) is_possible: bool,
    /// File offset of the first record.
    begin: u64,
    /// Where each ends, counted from `begin`.
    ends: [u16; RUN_MAX],
    /// How many there are, and how many of them have been returned.
    pub(super) len: usize,
    taken: usize,
}

impl Run {
    pub(super) fn new(is_possible: bool) -> Self {
        Run {
            is_possible,
            begin: 0,
            ends: [0; RUN_MAX],
            len: 0,
            taken: 0,
        }
    }

    /// Looks for records at the beginning of `bytes`, which are at the file offset `begin`.
    #[inline]
    fn find(&mut self, begin: u64, bytes: &[u8], verify_checksums: bool) {
        self.begin = begin;
        self.taken = 0;
        self.len = checksum::run(FullRun {
            bytes,
            ends: &mut self.ends,
            verify_checksums,
        });
    }

    /// Takes the next record, and returns the file offset after it.
    #[inline]
    fn next_end(&mut self) -> Option<u64> {
        if self.taken >= self.len {
            return None;
        }
        let end = u64::from(*self.ends.get(self.taken)?);
        self.taken += 1;
        Some(self.begin + end)
    }

    /// Puts back the record that was taken last, if it is the one that ends at `end_offset`.
    pub(super) fn put_back(&mut self, end_offset: u64) -> bool {
        let taken = self.ends[..self.taken.min(self.len)].last();
        let is_last = taken.is_some_and(|&end| self.begin + u64::from(end) == end_offset);
        self.taken -= usize::from(is_last);
        is_last
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Run {
            is_possible,
            begin,
            len,
            taken,
            ..
        } = self;
        f.debug_struct("Run")
            .field("is_possible", is_possible)
            .field("begin", begin)
            .field("len", len)
            .field("taken", taken)
            .finish_non_exhaustive()
    }
}

impl Decoder {
    /// Fast path of [`step`](Self::step): the next record of the run, if one is left.
    #[inline]
    pub(crate) fn next_of_run(&mut self) -> Option<RecordSpan> {
        let end = self.run.next_end()?;
        let offset = std::mem::replace(&mut self.offset, end);
        Some(RecordSpan {
            offset,
            end_offset: self.offset,
            data_at: DataAt::Window {
                header_len: HEADER_LEN as u8,
            },
            // Salvaged parts are not searched for runs.
            is_salvaged: false,
        })
    }

    /// Looks for a run at the beginning of `bytes`, which are at `offset`, and takes its first
    /// record.
    #[inline]
    pub(super) fn find_run(&mut self, bytes: &[u8], left: usize) -> Option<RecordSpan> {
        let is_inside = self.offset >= self.bounds.start && self.bounds.end.saturating_sub(self.offset) >= left as u64;
        let is_plain = !self.bounds.is_before_first
            && self.assembler.is_idle()
            && self.offset >= self.salvaged.part.end
            && self.recycled.ambiguity.is_none()
            && !self.recycled.is_doubtful
            && !self.info.is_compressed();
        if !(self.run.is_possible && is_inside && is_plain) {
            return None;
        }
        self.run.find(self.offset, bytes, self.policy.verify_checksums);
        let first = self.next_of_run()?;
        self.recycled.form = Some(Form::Plain);
        self.info.has_begun = true;
        self.note_own();
        self.is_inside = false;
        self.ending.torn_since = None;
        Some(first)
    }
}
