//! Compression of records: each becomes one zstd frame with its length and a checksum; an empty
//! record stays empty. Pure, no I/O.
//!
//! Source: RocksDB `db/log_writer.cc`, `db/log_reader.cc`, `util/compression.h`.

use std::collections::TryReserveError;
#[cfg(feature = "zstd")]
use std::io::Cursor;

#[cfg(feature = "zstd")]
use zstd_safe::{CCtx, CParameter, DCtx};

use crate::damage::Reason;

/// Bytes of a block's header in a zstd frame. Source: RFC 8878, 3.1.1.2.
#[cfg(feature = "zstd")]
const BLOCK_HEADER_LEN: u64 = 3;

/// The most data that one block of a zstd frame can contain. Source: RFC 8878, 3.1.1.2.4.
#[cfg(feature = "zstd")]
const BLOCK_DATA_LEN_MAX: u64 = 128 << 10;

/// zstd's own default.
const DEFAULT_LEVEL: i32 = 3;

/// Containers gain little from a higher level, which takes several times as long.
const CONTAINER_LEVEL: i32 = 1;

/// The first bytes of each zstd frame. Source: RFC 8878, 3.1.1.
#[cfg(feature = "zstd")]
const FRAME_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";

/// The bytes that all records of a compressed log may have in total, however little is read, and the
/// most that one frame of a container may state.
pub(crate) const BUDGET_BASE: u64 = 256 << 20;

/// The additional bytes allowed for each byte read. The ratio of an engine's frames rarely exceeds
/// 100.
pub(crate) const BUDGET_RATIO: u64 = 200;

/// Why a record has no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It is skipped.
    Skipped(Reason),
    /// It may be retried.
    #[cfg_attr(not(feature = "zstd"), expect(dead_code, reason = "nothing is decompressed"))]
    OutOfMemory,
    /// Its `data_len` bytes would exceed `total_max`, the limit for all records together, by
    /// `excess` bytes.
    #[cfg_attr(not(feature = "zstd"), expect(dead_code, reason = "nothing is decompressed"))]
    OverBudget { data_len: u64, excess: u64 },
}

/// Decompresses records, and holds the data of the last one.
#[derive(Default)]
pub(crate) struct Decompressor {
    /// zstd's own state, about 100 KiB: made for the first frame, since making it takes as long as
    /// decompressing a short one.
    #[cfg(feature = "zstd")]
    zstd: Option<DCtx<'static>>,
    data: Vec<u8>,
    /// Total length stated by the frames decompressed since the last [`reset`](Self::reset).
    total: u64,
}

impl Decompressor {
    /// The data of the last record that was decompressed.
    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    /// The count of decompressed bytes.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Resets the count of decompressed bytes.
    pub(crate) fn reset(&mut self) {
        self.total = 0;
    }

    /// Decompresses `frame` to at most `len_max` bytes, and to at most `total_max` together with
    /// all frames since the last [`reset`](Self::reset). An empty record has no frame.
    #[cfg(feature = "zstd")]
    pub(crate) fn decompress(&mut self, frame: &[u8], len_max: u64, total_max: u64) -> Result<(), Failed> {
        if frame.is_empty() {
            self.data.clear();
            return Ok(());
        }
        self.decompress_checked(frame, len_max, total_max, || true)
    }

    /// Decompresses `frame`, if `is_right` says so once its length has been checked.
    #[cfg(feature = "zstd")]
    fn decompress_checked(
        &mut self,
        frame: &[u8],
        len_max: u64,
        total_max: u64,
        is_right: impl FnOnce() -> bool,
    ) -> Result<(), Failed> {
        self.data.clear();
        let bad = Failed::Skipped(Reason::BadCompression);
        let stated = zstd_safe::get_frame_content_size(frame).map_err(|_| bad)?;
        // RocksDB states the length in each frame. It is not trusted beyond the length that a frame
        // of this size can contain.
        let len = stated.ok_or(bad)?;
        let possible = (frame.len() as u64 / BLOCK_HEADER_LEN + 1).saturating_mul(BLOCK_DATA_LEN_MAX);
        if len > possible {
            return Err(bad);
        }
        if len > len_max {
            return Err(Failed::Skipped(Reason::RecordTooLarge));
        }
        let total = self.total.saturating_add(len);
        if total > total_max {
            return Err(Failed::OverBudget {
                data_len: len,
                excess: total - total_max,
            });
        }
        // Counted even if it is damaged; but not twice, if memory is missing at first.
        if !is_right() {
            self.total = total;
            return Err(bad);
        }
        let len = usize::try_from(len).map_err(|_| Failed::Skipped(Reason::RecordTooLarge))?;
        self.data.try_reserve_exact(len).map_err(|_| Failed::OutOfMemory)?;
        self.total = total;
        let context = match &mut self.zstd {
            Some(context) => context,
            none => none.insert(DCtx::try_create().ok_or(Failed::OutOfMemory)?),
        };
        match context.decompress(&mut self.data, frame) {
            Ok(found) if found == len => Ok(()),
            _ => Err(bad),
        }
    }

    /// [`decompress`](Self::decompress), if `frame` is exactly one frame: with no bytes before it
    /// or after it.
    #[cfg(feature = "zstd")]
    pub(crate) fn decompress_one(&mut self, frame: &[u8], len_max: u64, total_max: u64) -> Result<(), Failed> {
        let is_one = frame.starts_with(FRAME_MAGIC)
            // Without the content, whose length is then checked first.
            && zstd_safe::get_frame_content_size(frame).is_ok_and(|len| len.is_some());
        if !is_one {
            return Err(Failed::Skipped(Reason::BadCompression));
        }
        self.decompress_checked(frame, len_max, total_max, || {
            zstd_safe::find_frame_compressed_size(frame).is_ok_and(|len| len == frame.len())
        })
    }

    /// Without the feature `zstd`, no record is decompressed.
    #[cfg(not(feature = "zstd"))]
    pub(crate) fn decompress_one(&mut self, _frame: &[u8], _len_max: u64, _total_max: u64) -> Result<(), Failed> {
        Err(Failed::Skipped(Reason::UnsupportedCompression))
    }

    /// Without the feature `zstd`, no record is decompressed.
    #[cfg(not(feature = "zstd"))]
    pub(crate) fn decompress(&mut self, frame: &[u8], _len_max: u64, _total_max: u64) -> Result<(), Failed> {
        if frame.is_empty() {
            return Ok(());
        }
        Err(Failed::Skipped(Reason::UnsupportedCompression))
    }
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor")
            .field("data", &self.data)
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

/// Compresses records, or leaves them as they are.
#[derive(Default)]
pub(crate) struct Compressor {
    #[cfg(feature = "zstd")]
    zstd: Option<CCtx<'static>>,
    #[cfg(feature = "zstd")]
    level: i32,
}

impl Compressor {
    /// A compressor of records, each by itself, with zstd's default level, as RocksDB.
    pub(crate) fn new(is_zstd: bool) -> Self {
        Compressor::with_level(is_zstd, DEFAULT_LEVEL)
    }

    /// A compressor of the containers of a packed log.
    pub(crate) fn for_containers(is_zstd: bool) -> Self {
        Compressor::with_level(is_zstd, CONTAINER_LEVEL)
    }

    #[cfg(feature = "zstd")]
    fn with_level(is_zstd: bool, level: i32) -> Self {
        let context = is_zstd.then(|| {
            let mut context = CCtx::create();
            // The checksum is as RocksDB sets it. Setting a parameter fails only for values that
            // zstd does not know.
            let parameters = [CParameter::CompressionLevel(level), CParameter::ChecksumFlag(true)];
            for parameter in parameters {
                assert!(
                    context.set_parameter(parameter).is_ok(),
                    "zstd has checksums and levels"
                );
            }
            context
        });
        Compressor { zstd: context, level }
    }

    /// Without the feature, the caller has already refused to compress:
    /// [`LogFormat::check_to_write`](crate::dialect::LogFormat::check_to_write).
    #[cfg(not(feature = "zstd"))]
    fn with_level(_is_zstd: bool, _level: i32) -> Self {
        Compressor::default()
    }

    /// Reserves room in `frame` for the compressed form of a record of `record_len` bytes.
    pub(crate) fn try_reserve(&self, record_len: usize, frame: &mut Vec<u8>) -> Result<(), TryReserveError> {
        #[cfg(feature = "zstd")]
        if self.zstd.is_some() {
            frame.clear();
            frame.try_reserve_exact(zstd_safe::compress_bound(record_len))?;
        }
        let _ = (record_len, frame);
        Ok(())
    }

    /// The bytes to write for `record`: the record itself, or its compressed form in `frame`. Room
    /// for the frame of a long record must be [reserved](Self::try_reserve).
    pub(crate) fn compress<'a>(&mut self, record: &'a [u8], frame: &'a mut Vec<u8>) -> &'a [u8] {
        #[cfg(feature = "zstd")]
        if self.zstd.is_some() && !record.is_empty() {
            frame.clear();
            assert!(self.append(record, frame), "memory for a zstd frame");
            return frame;
        }
        let _ = frame;
        record
    }

    /// Appends `data` to `out` as one frame. Returns whether it did: not if it does not compress,
    /// or if zstd has no memory for its tables, which take about a megabyte. Room for the frame of
    /// long data must be [reserved](Self::try_reserve).
    #[cfg(feature = "zstd")]
    pub(crate) fn append(&mut self, data: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(context) = &mut self.zstd else { return false };
        out.reserve(zstd_safe::compress_bound(data.len()));
        let len_before = out.len() as u64;
        let mut end = Cursor::new(out);
        end.set_position(len_before);
        // With this much room, only memory can be missing.
        context.compress2(&mut end, data).is_ok()
    }

    #[cfg(not(feature = "zstd"))]
    pub(crate) fn append(&mut self, _data: &[u8], _out: &mut Vec<u8>) -> bool {
        false
    }
}

/// Lengthens the frame at the end of `out`, which starts at `start`, by at least `len` bytes: with
/// blocks without content after its header.
pub(crate) fn lengthen(out: &mut Vec<u8>, start: usize, len: usize) {
    let Some(at) = out.get(start..).and_then(header_len).map(|len| start + len) else {
        return;
    };
    // A raw block that is not the last, of 0 bytes. Source: RFC 8878, 3.1.1.2.
    const EMPTY_BLOCK: [u8; 3] = [0; 3];
    let blocks = [EMPTY_BLOCK].repeat(len.div_ceil(EMPTY_BLOCK.len()));
    out.splice(at..at, blocks.into_iter().flatten());
}

/// The length of the header of a frame. Source: RFC 8878, 3.1.1.1.
fn header_len(frame: &[u8]) -> Option<usize> {
    let descriptor = *frame.get(4)?;
    let is_single_segment = descriptor & 1 << 5 != 0;
    let window_len = usize::from(!is_single_segment);
    let dictionary_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_len = [usize::from(is_single_segment), 2, 4, 8][usize::from(descriptor >> 6)];
    Some(5 + window_len + dictionary_len + content_len)
}

/// No state is carried from one record to the next.
impl Clone for Compressor {
    fn clone(&self) -> Self {
        #[cfg(feature = "zstd")]
        return Compressor::with_level(self.zstd.is_some(), self.level);
        #[cfg(not(feature = "zstd"))]
        Compressor::default()
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}
