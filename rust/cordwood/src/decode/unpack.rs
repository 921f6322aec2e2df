//! The stage after assembling: turns the contents of a record's fragments into the record that was
//! written. A record of a compressed log is decompressed; any other is returned as it is.

use super::{DataAt, RECORD_LEN_MAX, ReadOptions, RecordSpan, Refused};
use crate::compression::{Decompressor, Failed};
use crate::damage::{Reason, SkippedRegion};

/// The state of the stage.
#[derive(Debug)]
pub(super) struct Unpacker {
    decompressor: Decompressor,
    record_len_max: u64,
    /// Where reading began: bytes from here on count towards the budget of a compressed log.
    read_begin: u64,
}

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unpacked {
    /// It is in [`Unpacker::data`].
    Record(RecordSpan),
    /// It cannot be decompressed.
    Skipped(SkippedRegion),
    /// It is neither returned nor consumed.
    Refused(Refused),
}

impl Unpacker {
    /// For a decoder that begins at `read_begin`.
    pub(super) fn new(record_len_max: u64, read_begin: u64) -> Self {
        Unpacker {
            decompressor: Decompressor::default(),
            record_len_max,
            read_begin,
        }
    }

    /// Begins again, at another offset.
    pub(super) fn restart(&mut self, read_begin: u64) {
        self.read_begin = read_begin;
        self.decompressor.reset();
    }

    /// The bytes of the last record that was unpacked.
    pub(super) fn data(&self) -> &[u8] {
        self.decompressor.data()
    }

    /// Decompresses the record at `span`, which is stored in the file as `frame`.
    /// `has_known_compression` says whether the compression of the log is one that can be undone.
    #[cold]
    pub(super) fn unpack(&mut self, span: RecordSpan, frame: &[u8], has_known_compression: bool) -> Unpacked {
        let decompressed = if has_known_compression {
            let read_len = span.end_offset - self.read_begin;
            let total_max = ReadOptions::budget(self.record_len_max, read_len);
            self.decompressor.decompress(frame, self.record_len_max, total_max)
        } else {
            Err(Failed::Skipped(Reason::UnsupportedCompression))
        };
        match decompressed {
            Ok(()) => Unpacked::Record(RecordSpan {
                data_at: DataAt::Unpacked,
                ..span
            }),
            Err(Failed::OutOfMemory) => Unpacked::Refused(Refused::OutOfMemory),
            Err(Failed::OverBudget { data_len, excess }) => {
                let base = ReadOptions::budget(self.record_len_max, 0);
                Unpacked::Refused(Refused::OverBudget {
                    offset: span.offset,
                    end_offset: span.end_offset,
                    data_len,
                    record_len_max: base.saturating_add(excess).max(RECORD_LEN_MAX + 1),
                })
            }
            Err(Failed::Skipped(reason)) => Unpacked::Skipped(SkippedRegion {
                begin: span.offset,
                end: span.end_offset,
                reason,
                leveldb_len: None,
            }),
        }
    }
}
