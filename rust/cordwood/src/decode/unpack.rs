//! The decoding stage after assembly, which turns the contents of a record's fragments into the
//! record as written. It decompresses compressed containers and the records of compressed logs, and
//! returns any other record unchanged.

use super::{RECORD_LEN_MAX, ReadOptions, RecordSpan};
use crate::compression::{Decompressor, Failed};
use crate::container;
use crate::damage::Reason;
use crate::error::{OverBudget, Refused};

/// The state of the unpacking stage.
#[derive(Debug)]
pub(super) struct Unpacker {
    decompressor: Decompressor,
    record_len_max: u64,
    /// The offset at which reading started. A compressed log's budget grows with the number of
    /// bytes read since then.
    read_start: u64,
}

/// The result of decompressing a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    /// The contents are in [`Unpacker::data`].
    Data,
    /// The frame cannot be decompressed.
    Bad(Reason),
    /// The frame has not been decompressed, but a later attempt may succeed.
    Refused(Refused),
}

impl Unpacker {
    /// Creates an unpacker for a decoder that starts at `read_start`.
    pub(super) fn new(record_len_max: u64, read_start: u64) -> Self {
        Unpacker {
            decompressor: Decompressor::default(),
            record_len_max,
            read_start,
        }
    }

    /// Restarts at another offset.
    pub(super) fn restart(&mut self, read_start: u64) {
        self.read_start = read_start;
        self.decompressor.reset();
    }

    /// Returns the bytes of the last unpacked record.
    pub(super) fn data(&self) -> &[u8] {
        self.decompressor.data()
    }

    /// Decompresses `frame`, the body of the container at `span`, which has `count` records.
    #[cold]
    pub(super) fn unpack_container(&mut self, span: RecordSpan, frame: &[u8], count: usize) -> Contents {
        // A single frame must not decompress to more than a log's initial budget, no matter how
        // many bytes have been read.
        let own_max = self
            .decompressor
            .total()
            .saturating_add(ReadOptions::budget(self.record_len_max, 0));
        let total_max = self.budget(span).min(own_max);
        let len_max = container::len_max(self.record_len_max, count);
        let decompressed = self.decompressor.decompress_one(frame, len_max, total_max);
        self.contents(span, decompressed)
    }

    /// Returns the maximum total length to which all frames up to and including the one at `span`
    /// may decompress.
    fn budget(&self, span: RecordSpan) -> u64 {
        ReadOptions::budget(self.record_len_max, span.end_offset.saturating_sub(self.read_start))
    }

    fn contents(&self, span: RecordSpan, decompressed: Result<(), Failed>) -> Contents {
        match decompressed {
            Ok(()) => Contents::Data,
            Err(Failed::OutOfMemory) => Contents::Refused(Refused::OutOfMemory),
            Err(Failed::OverBudget { data_len, excess }) => {
                let base = ReadOptions::budget(self.record_len_max, 0);
                Contents::Refused(Refused::OverBudget(OverBudget {
                    offset: span.offset,
                    end_offset: span.end_offset,
                    data_len,
                    record_len_max: base.saturating_add(excess).max(RECORD_LEN_MAX + 1),
                }))
            }
            Err(Failed::Skipped(reason)) => Contents::Bad(reason),
        }
    }

    /// Decompresses `frame`, the record at `span` as stored in the file.
    #[cold]
    pub(super) fn unpack(&mut self, span: RecordSpan, frame: &[u8]) -> Contents {
        let total_max = self.budget(span);
        let decompressed = self.decompressor.decompress(frame, self.record_len_max, total_max);
        self.contents(span, decompressed)
    }
}
