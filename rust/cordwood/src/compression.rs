//! Compresses records. Each record becomes one zstd frame, which contains the record's length and a
//! checksum. An empty record stays empty. This module is pure and does no I/O.
//!
//! Source: RocksDB `db/log_writer.cc`, `util/compression.h`.

use std::collections::TryReserveError;
#[cfg(feature = "zstd")]
use std::io::Cursor;

#[cfg(feature = "zstd")]
use zstd_safe::{CCtx, CParameter};

/// The zstd level for a single record: zstd's default, as in RocksDB.
pub(crate) const RECORD_LEVEL: i32 = 3;

/// The zstd level for containers. A higher level takes several times as long but makes containers
/// only slightly smaller.
pub(crate) const CONTAINER_LEVEL: i32 = 1;

/// The first bytes of each zstd frame. Source: RFC 8878, 3.1.1.
pub(crate) const FRAME_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";

/// The initial decompression budget of a compressed log, in bytes. The budget grows with each byte
/// that is read. A container's frame must not declare a length greater than this initial budget.
pub(crate) const BUDGET_BASE: u64 = 256 << 20;

/// The number of bytes added to the budget for each byte that is read. The compression ratio of an
/// engine's frames rarely exceeds 100.
pub(crate) const BUDGET_RATIO: u64 = 200;

/// Compresses records, or leaves them as they are.
#[derive(Default)]
pub(crate) struct Compressor {
    #[cfg(feature = "zstd")]
    zstd: Option<CCtx<'static>>,
    #[cfg(feature = "zstd")]
    level: i32,
}

impl Compressor {
    #[cfg(feature = "zstd")]
    pub(crate) fn new(is_zstd: bool, level: i32) -> Self {
        let context = is_zstd.then(|| {
            let mut context = CCtx::create();
            // As in RocksDB, frames include a checksum. Setting a parameter fails only if zstd
            // doesn't recognise the value.
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

    /// Without the `zstd` feature, the caller has already rejected all compressed formats. See
    /// [`LogFormat::check_to_write`](crate::dialect::LogFormat::check_to_write).
    #[cfg(not(feature = "zstd"))]
    pub(crate) fn new(_is_zstd: bool, _level: i32) -> Self {
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

    /// Returns the bytes to write for `record`: the record itself, or its compressed form in
    /// `frame`. For a long record, the caller must [reserve](Self::try_reserve) room for the frame.
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

    /// Appends `data` to `out` as one frame and returns true. Returns false if compression is off,
    /// or if there isn't enough memory for zstd's tables (about a megabyte). If `data` is long, the
    /// caller must [reserve](Self::try_reserve) room for the frame.
    #[cfg(feature = "zstd")]
    pub(crate) fn append(&mut self, data: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(context) = &mut self.zstd else { return false };
        out.reserve(zstd_safe::compress_bound(data.len()));
        let len_before = out.len() as u64;
        let mut end = Cursor::new(out);
        end.set_position(len_before);
        // With this much room, compression can fail only for lack of memory.
        context.compress2(&mut end, data).is_ok()
    }

    #[cfg(not(feature = "zstd"))]
    pub(crate) fn append(&mut self, _data: &[u8], _out: &mut Vec<u8>) -> bool {
        false
    }
}

/// Inserts empty blocks after the header of the last frame in `out`, so that the frame becomes at
/// least `len` bytes longer. The frame starts at `start`.
pub(crate) fn lengthen(out: &mut Vec<u8>, start: usize, len: usize) {
    let Some(at) = out.get(start..).and_then(header_len).map(|len| start + len) else {
        return;
    };
    // A raw block of 0 bytes that is not the last block of its frame. Source: RFC 8878, 3.1.1.2.
    const EMPTY_BLOCK: [u8; 3] = [0; 3];
    let blocks = [EMPTY_BLOCK].repeat(len.div_ceil(EMPTY_BLOCK.len()));
    out.splice(at..at, blocks.into_iter().flatten());
}

/// Returns the length of a frame's header. Source: RFC 8878, 3.1.1.1.
fn header_len(frame: &[u8]) -> Option<usize> {
    let descriptor = *frame.get(4)?;
    let is_single_segment = descriptor & 1 << 5 != 0;
    let window_len = usize::from(!is_single_segment);
    let dictionary_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_len = [usize::from(is_single_segment), 2, 4, 8][usize::from(descriptor >> 6)];
    Some(5 + window_len + dictionary_len + content_len)
}

/// The clone is a new compressor with the same options. Records are compressed independently, so it
/// needs no state from the original.
impl Clone for Compressor {
    fn clone(&self) -> Self {
        #[cfg(feature = "zstd")]
        return Compressor::new(self.zstd.is_some(), self.level);
        #[cfg(not(feature = "zstd"))]
        Compressor::default()
    }
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}
