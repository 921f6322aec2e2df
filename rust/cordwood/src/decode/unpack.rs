//! The decoding stage after assembly, which restores the original record from the contents of its
//! fragments. It decompresses compressed containers and the records in compressed logs, and returns
//! any other record unchanged.
//!
//! Source: RocksDB `db/log_reader.cc`, `util/compression.h`.

#[cfg(feature = "zstd")]
use zstd_safe::DCtx;

#[cfg(feature = "zstd")]
use super::RECORD_LEN_MAX;
use super::RecordSpan;
#[cfg(feature = "zstd")]
use crate::compression::{BUDGET_BASE, BUDGET_RATIO, FRAME_MAGIC};
use crate::container;
use crate::damage::Reason;
#[cfg(feature = "zstd")]
use crate::error::OverBudget;
use crate::error::Refused;

/// The length of a block header in a zstd frame. Source: RFC 8878, 3.1.1.2.
#[cfg(feature = "zstd")]
const BLOCK_HEADER_LEN: u64 = 3;

/// The maximum length of a block's data in a zstd frame. Source: RFC 8878, 3.1.1.2.4.
#[cfg(feature = "zstd")]
const BLOCK_DATA_LEN_MAX: u64 = 128 << 10;

/// Decompresses one record or container at a time, and holds its data until the next one.
pub(super) struct Unpacker {
    /// The state of zstd, about 100 KiB. It isn't created until the first frame, because creating
    /// it takes as long as decompressing a short frame.
    #[cfg(feature = "zstd")]
    zstd: Option<DCtx<'static>>,
    data: Vec<u8>,
    /// The total data length declared by the frames that have been decompressed since reading
    /// started.
    total: u64,
    record_len_max: u64,
    /// The offset at which reading started. A compressed log's budget grows with the number of
    /// bytes read since then.
    read_start: u64,
}

/// Why a frame was not decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// The frame cannot be decompressed.
    Bad(Reason),
    /// A later attempt may succeed.
    #[cfg_attr(not(feature = "zstd"), expect(dead_code, reason = "nothing is decompressed"))]
    Refused(Refused),
}

impl Unpacker {
    /// Creates an unpacker for a decoder that starts at `read_start`.
    pub(super) fn new(record_len_max: u64, read_start: u64) -> Self {
        Unpacker {
            #[cfg(feature = "zstd")]
            zstd: None,
            data: Vec::new(),
            total: 0,
            record_len_max,
            read_start,
        }
    }

    /// Restarts at another offset.
    pub(super) fn restart(&mut self, read_start: u64) {
        (self.read_start, self.total) = (read_start, 0);
    }

    /// Returns the bytes of the last unpacked record.
    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Decompresses `frame`, the body of the container at `span`. The container holds `count`
    /// records. Its body must be exactly one frame, with no bytes before or after it.
    #[cold]
    pub(super) fn unpack_container(&mut self, span: RecordSpan, frame: &[u8], count: usize) -> Result<(), Failed> {
        let len_max = container::len_max(self.record_len_max, count);
        self.decompress(span, frame, len_max, true)
    }

    /// Decompresses `frame`, the record at `span` as stored in the file. An empty record has no
    /// frame.
    #[cold]
    pub(super) fn unpack(&mut self, span: RecordSpan, frame: &[u8]) -> Result<(), Failed> {
        if frame.is_empty() {
            self.data.clear();
            return Ok(());
        }
        self.decompress(span, frame, self.record_len_max, false)
    }

    /// Without the `zstd` feature, no record is decompressed.
    #[cfg(not(feature = "zstd"))]
    fn decompress(&mut self, _: RecordSpan, _: &[u8], _: u64, _: bool) -> Result<(), Failed> {
        Err(Failed::Bad(Reason::UnsupportedCompression))
    }

    /// Decompresses `frame`, which may yield at most `len_max` bytes. Fails if `is_one` is true and
    /// `frame` is not exactly one frame.
    #[cfg(feature = "zstd")]
    fn decompress(&mut self, span: RecordSpan, frame: &[u8], len_max: u64, is_one: bool) -> Result<(), Failed> {
        self.data.clear();
        let bad = Failed::Bad(Reason::BadCompression);
        if is_one && !frame.starts_with(FRAME_MAGIC) {
            return Err(bad);
        }
        let stated = zstd_safe::get_frame_content_size(frame).map_err(|_| bad)?;
        // Every frame written by RocksDB states the length of its data. The stated length is not
        // trusted if a frame of this size can't contain that much data.
        let len = stated.ok_or(bad)?;
        let possible = (frame.len() as u64 / BLOCK_HEADER_LEN + 1).saturating_mul(BLOCK_DATA_LEN_MAX);
        if len > possible {
            return Err(bad);
        }
        if len > len_max {
            return Err(Failed::Bad(Reason::RecordTooLarge));
        }
        let total = self.total.saturating_add(len);
        let mut total_max = self.budget(span.end_offset.saturating_sub(self.read_start));
        if is_one {
            // A container must not decompress to more than a log's initial budget, no matter how
            // many bytes have been read.
            total_max = total_max.min(self.total.saturating_add(self.budget(0)));
        }
        if total > total_max {
            let needed = self.budget(0).saturating_add(total - total_max);
            return Err(Failed::Refused(Refused::OverBudget(OverBudget {
                offset: span.offset,
                end_offset: span.end_offset,
                data_len: len,
                record_len_max: needed.max(RECORD_LEN_MAX + 1),
            })));
        }
        // Damaged frames are counted too. A frame that is retried after running out of memory is
        // counted only once.
        if is_one && zstd_safe::find_frame_compressed_size(frame) != Ok(frame.len()) {
            self.total = total;
            return Err(bad);
        }
        let no_memory = Failed::Refused(Refused::OutOfMemory);
        let len = usize::try_from(len).map_err(|_| Failed::Bad(Reason::RecordTooLarge))?;
        self.data.try_reserve_exact(len).map_err(|_| no_memory)?;
        self.total = total;
        let context = match &mut self.zstd {
            Some(context) => context,
            none => none.insert(DCtx::try_create().ok_or(no_memory)?),
        };
        match context.decompress(&mut self.data, frame) {
            Ok(found) if found == len => Ok(()),
            _ => Err(bad),
        }
    }

    /// Returns the limit on the total length of the decompressed data after `read_len` bytes of the
    /// file have been read.
    #[cfg(feature = "zstd")]
    fn budget(&self, read_len: u64) -> u64 {
        let base = if self.record_len_max > RECORD_LEN_MAX {
            self.record_len_max
        } else {
            BUDGET_BASE
        };
        base.saturating_add(read_len.saturating_mul(BUDGET_RATIO))
    }
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacker")
            .field("data", &self.data)
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}
