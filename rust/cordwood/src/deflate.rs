//! Compression of a record to a zstd frame. Pure, no I/O.
//!
//! Source: RocksDB `db/log_writer.cc`, `util/compression.h`: one frame for each record, with its
//! length and a checksum; an empty record is not a frame.

#[cfg(feature = "zstd")]
use zstd_safe::{CCtx, CParameter};

/// Compresses records, or leaves them as they are.
#[derive(Default)]
pub(crate) struct Deflater {
    #[cfg(feature = "zstd")]
    zstd: Option<CCtx<'static>>,
}

impl Deflater {
    #[cfg(feature = "zstd")]
    pub(crate) fn new(is_zstd: bool) -> Self {
        let mut deflater = Deflater::default();
        if is_zstd {
            let mut context = CCtx::create();
            // Both parameters as RocksDB sets them. Setting one fails only for values that zstd
            // does not know.
            let set = context.set_parameter(CParameter::ChecksumFlag(true));
            assert!(set.is_ok(), "zstd has checksums");
            deflater.zstd = Some(context);
        }
        deflater
    }

    /// Without the feature, the caller has already refused to compress:
    /// [`LogFormat::check_to_write`](crate::dialect::LogFormat::check_to_write).
    #[cfg(not(feature = "zstd"))]
    pub(crate) fn new(_is_zstd: bool) -> Self {
        Deflater::default()
    }

    /// What to write for `record`: itself, or a frame in `frame`.
    #[cfg(feature = "zstd")]
    pub(crate) fn deflate<'a>(&mut self, record: &'a [u8], frame: &'a mut Vec<u8>) -> &'a [u8] {
        let Some(context) = self.zstd.as_mut().filter(|_| !record.is_empty()) else {
            return record;
        };
        frame.clear();
        frame.reserve(zstd_safe::compress_bound(record.len()));
        // With this much room it can fail only for lack of memory, in which case Rust ends the
        // process, too.
        let compressed = context.compress2(frame, record);
        compressed.expect("memory for a zstd frame");
        frame
    }

    #[cfg(not(feature = "zstd"))]
    pub(crate) fn deflate<'a>(&mut self, record: &'a [u8], _frame: &'a mut Vec<u8>) -> &'a [u8] {
        record
    }
}

/// No state is carried from one record to the next.
impl Clone for Deflater {
    fn clone(&self) -> Self {
        #[cfg(feature = "zstd")]
        return Deflater::new(self.zstd.is_some());
        #[cfg(not(feature = "zstd"))]
        Deflater::default()
    }
}

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deflater").finish_non_exhaustive()
    }
}
