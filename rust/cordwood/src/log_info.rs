//! What an engine writes into its log for itself, and what follows from it. Pure, no I/O.
//!
//! Source: RocksDB `db/log_reader.cc`, `util/udt_util.h`.

use std::collections::BTreeMap;

use crate::dialect::{Compression, Metadata, ZSTD};

/// What the log says about itself, as far as it has been read. Only RocksDB's logs say any of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogInfo {
    /// The compression of all records, in RocksDB's numbers: 7 is zstd. `None`: they are not compressed.
    pub compression: Option<u32>,
    /// Bytes of the timestamp in each key, by the number of the column family, where there is one. It holds for the records read next.
    pub timestamp_lens: BTreeMap<u32, u16>,
    /// The log before this one.
    pub predecessor: Option<Predecessor>,
    /// The number of another log, to which all fragments belong that have been read so far. The file was recycled, and nothing has been written to
    /// this log yet; or the number of this log, which was named or is in the file's name, is not that of its content.
    pub other_log_number: Option<u32>,
    /// Whether a record has been read, or how all are compressed.
    pub(crate) has_begun: bool,
}

/// What a log says about the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Predecessor {
    /// Its number.
    pub log_number: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The sequence number of the last write in it.
    pub last_sequence: u64,
}

/// Whether an engine would have written it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applied {
    AsUsual,
    Unusual,
}

/// Column families of which the lengths are kept. It bounds what a log can make a reader hold; RocksDB knows no bound.
const TIMESTAMP_LENS_MAX: usize = 1 << 16;

impl LogInfo {
    pub(crate) fn new(compression: Option<Compression>) -> Self {
        LogInfo {
            compression: compression.map(|Compression::Zstd| u32::from_le_bytes(ZSTD)),
            ..LogInfo::default()
        }
    }

    #[inline]
    pub(crate) fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    pub(crate) fn has_known_compression(&self) -> bool {
        self.compression == Some(u32::from_le_bytes(ZSTD))
    }

    /// Takes in a record of this payload.
    pub(crate) fn apply(&mut self, metadata: Metadata, payload: &[u8]) -> Applied {
        let is_usual = match metadata {
            Metadata::SetCompression => self.set_compression(payload),
            Metadata::TimestampSizes => self.set_timestamp_lens(payload),
            Metadata::Predecessor => self.set_predecessor(payload),
        };
        if is_usual { Applied::AsUsual } else { Applied::Unusual }
    }

    /// Once, before all records. What comes too late is applied all the same, as RocksDB does.
    fn set_compression(&mut self, payload: &[u8]) -> bool {
        let Some(compression) = payload.first_chunk().copied().map(u32::from_le_bytes) else {
            return false;
        };
        // 0 is no compression.
        self.compression = (compression != 0).then_some(compression);
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        is_first && payload.len() == ZSTD.len()
    }

    /// Pairs of a column family and a length, which is not 0. They add to those of earlier records.
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
