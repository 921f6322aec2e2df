//! The engine's metadata records and their contents. This module is pure and does no I/O.
//!
//! Source: RocksDB `db/log_reader.cc`, `util/udt_util.h`.

use std::collections::BTreeMap;

use crate::container::Mark;
use crate::dialect::{Compression, Metadata, NO_COMPRESSION, ZSTD};

/// Information about a log, based on the part read so far. Only RocksDB's logs contain such
/// metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogInfo {
    /// The compression of all records, or `None` if they are not compressed.
    pub compression: Option<Compression>,
    /// Maps a column family's number to the length in bytes of its keys' timestamps. A column
    /// family without timestamps has no entry. The lengths apply to the records that are read next.
    pub timestamp_lens: BTreeMap<u32, u16>,
    /// The log before this one.
    pub predecessor: Option<Predecessor>,
    /// The number of another log, if every fragment read so far has that number. Either the file
    /// was recycled and contains no record of this log yet, or it is not the expected log. The
    /// expected log number was given or taken from the file name.
    pub other_log_number: Option<u32>,
}

/// A log's information about its predecessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Predecessor {
    /// The number of the predecessor.
    pub log_number: u64,
    /// The length of the predecessor in bytes.
    pub len: u64,
    /// The sequence number of the last write in the predecessor.
    pub last_sequence: u64,
}

/// Timestamp lengths are kept for at most this many column families, to limit a reader's memory
/// use. RocksDB has no such limit.
const TIMESTAMP_LENS_MAX: usize = 1 << 16;

impl LogInfo {
    #[inline]
    pub(crate) fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    /// Applies a metadata record with this payload. Returns whether the record is canonical,
    /// meaning that an engine would write exactly these bytes.
    pub(crate) fn apply(&mut self, metadata: Metadata, payload: &[u8]) -> bool {
        match metadata {
            Metadata::SetCompression => self.set_compression(payload),
            Metadata::LateSetCompression => false,
            Metadata::TimestampSizes => self.set_timestamp_lens(payload),
            Metadata::Predecessor => self.set_predecessor(payload),
            Metadata::Mark => Mark::decode(payload).is_some(),
        }
    }

    /// Applies a record that declares the log's compression, which is either zstd or none. If the
    /// record declares none, nothing changes, because any compression given by the caller takes
    /// precedence.
    fn set_compression(&mut self, payload: &[u8]) -> bool {
        let is_zstd = payload == ZSTD;
        if is_zstd {
            self.compression = Some(Compression::Zstd);
        }
        is_zstd || payload == NO_COMPRESSION
    }

    /// Adds the record's nonzero timestamp lengths to those from earlier records. Each length is
    /// for one column family.
    fn set_timestamp_lens(&mut self, payload: &[u8]) -> bool {
        let mut pairs = payload.chunks_exact(6);
        let mut is_usual = pairs.remainder().is_empty();
        for pair in &mut pairs {
            let &[a, b, c, d, l0, l1] = pair else {
                return false;
            };
            let (family, len) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([l0, l1]));
            let has_room = self.timestamp_lens.len() < TIMESTAMP_LENS_MAX || self.timestamp_lens.contains_key(&family);
            if len == 0 || !has_room {
                is_usual = false;
                continue;
            }
            self.timestamp_lens.insert(family, len);
        }
        is_usual
    }

    fn set_predecessor(&mut self, payload: &[u8]) -> bool {
        let number = |at: usize| payload.get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
        let (Some(log_number), Some(len), Some(last_sequence)) = (number(0), number(8), number(16)) else {
            return false;
        };
        self.predecessor = Some(Predecessor {
            log_number,
            len,
            last_sequence,
        });
        payload.len() == 24
    }
}
