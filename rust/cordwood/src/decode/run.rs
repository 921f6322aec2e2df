//! Finds a run of consecutive single-fragment records in one loop, then returns the records one by
//! one.

use super::{DataAt, Decoder, RecordSpan};
use crate::checksum;
use crate::dialect::Form;
use crate::format::HEADER_LEN;
use crate::fragment::{FullRun, RUN_MAX};

/// The last run found, and how many of its records have been returned so far.
#[derive(Debug)]
pub(super) struct Run {
    /// Whether to look for runs. `false` if the length limit is so small that a single fragment
    /// could exceed it.
    pub(super) is_possible: bool,
    /// File offset of the first record.
    start: u64,
    /// The end offsets of the records, relative to `start`. A zero follows the last one.
    ends: [u16; RUN_MAX + 1],
    /// The index of the next record.
    next: usize,
}

impl Run {
    pub(super) fn new(is_possible: bool) -> Self {
        Run {
            is_possible,
            start: 0,
            ends: [0; RUN_MAX + 1],
            next: 0,
        }
    }

    /// Discards the remaining records.
    pub(super) fn clear(&mut self) {
        self.ends[self.next] = 0;
    }

    /// Looks for a run of records at the start of `bytes`. `start` is the file offset of `bytes`.
    #[inline]
    fn find(&mut self, start: u64, bytes: &[u8], verify_checksums: bool) {
        self.start = start;
        self.next = 0;
        if let Some(ends) = self.ends.first_chunk_mut() {
            let len = checksum::run(FullRun {
                bytes,
                ends,
                verify_checksums,
            });
            self.ends[len] = 0;
        }
    }

    /// Returns the file offset after the run's next record, if any.
    #[inline]
    fn next_end(&self) -> Option<u64> {
        match self.ends[self.next] {
            0 => None,
            end => Some(self.start + u64::from(end)),
        }
    }
}

impl Decoder {
    /// Takes and returns the run's next record, if any. This is the fast path of
    /// [`step`](Self::step).
    #[inline]
    pub(crate) fn next_of_run(&mut self) -> Option<RecordSpan> {
        let span = self.peek_of_run()?;
        self.take_of_run(span);
        Some(span)
    }

    /// Takes the record that [`peek_of_run`](Self::peek_of_run) returns.
    #[inline]
    pub(crate) fn take_of_run(&mut self, span: RecordSpan) {
        self.run.next += 1;
        self.offset = span.end_offset;
    }

    /// Returns the run's next record, if any, without taking it.
    #[inline]
    pub(crate) fn peek_of_run(&self) -> Option<RecordSpan> {
        Some(RecordSpan {
            offset: self.offset,
            end_offset: self.run.next_end()?,
            data_at: DataAt::Window {
                header_len: HEADER_LEN as u8,
            },
            // Salvaged parts are not searched for runs.
            is_salvaged: false,
        })
    }

    /// Looks for a run of records at the start of `bytes`. `bytes` starts at the decoder's offset.
    /// Returns the first record without consuming it.
    #[inline]
    pub(super) fn find_run(&mut self, bytes: &[u8], left: usize) -> Option<RecordSpan> {
        let is_inside = self.offset >= self.bounds.start && self.bounds.end.saturating_sub(self.offset) >= left as u64;
        let is_plain = !self.bounds.is_before_first
            && self.assembler.is_idle()
            && self.offset >= self.salvaged.part.end
            && self.recycled.ambiguity.is_none()
            && !self.recycled.is_doubtful
            && !self.recycled.doubtful_part.contains(&self.offset)
            && !self.info.is_compressed()
            // If checksums are not verified, a fragment's type does not prove that the fragment
            // belongs to this log.
            && (self.policy.verify_checksums
                || !self.format.dialect.has_log_numbers()
                || self.recycled.form == Some(Form::Plain));
        if !(self.run.is_possible && is_inside && is_plain) {
            return None;
        }
        self.run.find(self.offset, bytes, self.policy.verify_checksums);
        let first = self.peek_of_run()?;
        self.recycled.form = Some(Form::Plain);
        self.note_own();
        self.is_inside = false;
        self.ending.torn_since = None;
        Some(first)
    }
}
