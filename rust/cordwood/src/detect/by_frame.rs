//! Determines whether a RocksDB log is compressed, even if its first or a later block is damaged.

use super::by_file_header::damaged_bits;
use super::by_fragment::after_damage;
use super::detection::PartialDetection;
use crate::compression::FRAME_MAGIC;
use crate::dialect::{Compression, Dialect, Grid, LogFormat, Role};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header, Kind};

/// If the log is recognized as a compressed RocksDB log, returns that format. Otherwise, returns
/// `format`.
pub(super) fn with_compression(format: LogFormat, head: &[u8], is_all: bool) -> PartialDetection {
    match is_compressed(format, head, is_all) {
        Some(true) => PartialDetection::Log(compressed(format)),
        Some(false) => PartialDetection::Log(format),
        None => PartialDetection::NeedMore,
    }
}

/// Returns the format of a compressed RocksDB log that has the same log number as `format`.
pub(super) fn compressed(format: LogFormat) -> LogFormat {
    LogFormat {
        dialect: Dialect::ROCKSDB,
        compression: Some(Compression::Zstd),
        ..format
    }
}

/// Checks whether a log is a compressed RocksDB log that doesn't start with the record that
/// declares compression. Without this check, a zstd frame could be mistaken for a record. The
/// record that declares compression is the same eleven bytes in all logs. A log is recognized as
/// compressed in any of these cases:
///
/// * The first fragment starts a frame or continues a record, and another block starts with these
///   eleven bytes. The blocks must have been swapped.
/// * The log starts with these eleven bytes, but up to eight of their bits are wrong.
/// * The log starts in the middle of a record or with a damaged header, and its first readable
///   records are zstd frames. A damaged header counts only if its fragment is eleven bytes long or
///   is not followed by a valid fragment.
///
/// Returns `None` if the decision depends on bytes after `head`. The first block must be complete
/// unless `is_all` is true.
pub(super) fn is_compressed(format: LogFormat, head: &[u8], is_all: bool) -> Option<bool> {
    let may_be = [Dialect::LEVELDB, Dialect::RECYCLABLE, Dialect::ROCKSDB].contains(&format.dialect);
    if !may_be {
        return Some(false);
    }
    let dialect = Dialect::ROCKSDB;
    let format = LogFormat { dialect, ..format };
    if let Some(first) = dialect.valid(head, true) {
        let payload = first.payload(head);
        let is_in_record = matches!(first.role, Role::Fragment(Kind::Middle | Kind::Last));
        let may_be_frame = match first.role {
            Role::Fragment(Kind::Full) => payload.starts_with(FRAME_MAGIC),
            Role::Fragment(Kind::First) => payload.starts_with(FRAME_MAGIC) || FRAME_MAGIC.starts_with(payload),
            _ => is_in_record,
        };
        let is_swapped = || head.chunks(BLOCK_LEN).any(|block| block.starts_with(&FIRST_COMPRESSED));
        return if !may_be_frame || is_swapped() {
            Some(may_be_frame)
        } else if is_in_record {
            starts_with_frames(format, head, is_all)
        } else {
            is_all.then_some(false)
        };
    }
    let Some(first) = head.first_chunk::<{ FIRST_COMPRESSED.len() }>() else {
        return Some(false);
    };
    if is_near_first_compressed(head) {
        return Some(true);
    }
    let header = Header::decode(first.first_chunk().unwrap_or(&[0; HEADER_LEN]));
    let end = dialect.meaning(header.kind).form.header_len() + usize::from(header.len);
    let rest = head[..head.len().min(BLOCK_LEN)].get(end..);
    let is_another = end != FIRST_COMPRESSED.len() && rest.is_some_and(|rest| dialect.valid(rest, true).is_some());
    if is_another {
        return Some(false);
    }
    starts_with_frames(format, head, is_all)
}

/// Checks whether the records in `head` are zstd frames. This covers only the records that can be
/// found by reading from the start of a block. A single record that is not a frame is enough to
/// decide. Otherwise, all records are needed.
fn starts_with_frames(format: LogFormat, head: &[u8], is_all: bool) -> Option<bool> {
    let first_block = &head[..head.len().min(BLOCK_LEN)];
    match are_frames(format, head, BLOCK_LEN) {
        Some(false) => return Some(false),
        _ if !is_all => return None,
        Some(true) => return Some(true),
        None => {}
    }
    let in_first_block = are_frames(format, first_block, FIRST_COMPRESSED.len())
        .or_else(|| are_frames(format, first_block, after_damage(first_block)?.0));
    Some(in_first_block.unwrap_or(false))
}

/// Checks whether all records in `head` that start at or after `start` are zstd frames. Returns
/// `None` if there are no records.
fn are_frames(format: LogFormat, head: &[u8], mut start: usize) -> Option<bool> {
    let mut found = None;
    while start < head.len() {
        let left = Grid::new(format.dialect, 0).block_left(start as u64);
        let block = &head[start..head.len().min(start + left)];
        let Some(valid) = format
            .dialect
            .valid(block, true)
            .filter(|valid| !format.is_stale(block, valid.form))
        else {
            start += left;
            continue;
        };
        let payload = valid.payload(block);
        // An empty record is not a frame, but the log may still be compressed. A FIRST fragment may
        // end within the four bytes of the magic number.
        if let Role::Fragment(kind @ (Kind::Full | Kind::First)) = valid.role
            && !payload.is_empty()
        {
            if payload.starts_with(FRAME_MAGIC) {
                found = Some(true);
            } else if kind == Kind::Full || !FRAME_MAGIC.starts_with(payload) {
                return Some(false);
            }
        }
        start += valid.end;
    }
    found
}

/// Checks whether `head` starts like a compressed RocksDB log, except for a few wrong bits.
pub(super) fn is_near_first_compressed(head: &[u8]) -> bool {
    damaged_bits(head, &FIRST_COMPRESSED).is_some()
}

/// The start of every compressed RocksDB log.
const FIRST_COMPRESSED: [u8; 11] = *b"\xe1\x2c\x08\xf8\x04\x00\x09\x07\x00\x00\x00";
