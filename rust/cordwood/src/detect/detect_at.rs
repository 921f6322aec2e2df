//! Detects the dialect of a log from part of its file.

use super::by_file_header::{nearest_file_header, of_damaged_file_header, of_file_header, with_grid};
use super::by_fragment::{after_damage, of_damaged_mark, of_empty_log, of_fragment};
use super::by_frame::{compressed, is_compressed, is_near_first_compressed, with_compression};
use super::detection::{DETECT_LEN, PartialDetection};
use super::foreign::Foreign;
use super::not_a_log::no_log;
use crate::dialect::{Dialect, LogFormat};
use crate::format::BLOCK_LEN;

/// Like [`detect`], but for part of a file. `bytes` starts at the file offset `offset`. `is_last`
/// is true if the file ends where `bytes` ends.
pub(super) fn detect_at(bytes: &[u8], offset: u64, is_last: bool) -> PartialDetection {
    let head = &bytes[..bytes.len().min(DETECT_LEN)];
    let is_all = is_last || head.len() == DETECT_LEN;
    if offset == 0 {
        if let Some(dialect) = of_file_header(head) {
            return with_grid(dialect, head, is_all);
        }
        if let Some(format) = of_empty_log(head) {
            return PartialDetection::Log(format);
        }
    }
    let in_block = (offset % BLOCK_LEN as u64) as usize;
    // A reader may start at a record, so the first candidate is the reader's own position.
    let blocks = (BLOCK_LEN - in_block..head.len()).step_by(BLOCK_LEN);
    for start in [0].into_iter().chain(blocks) {
        let left = BLOCK_LEN - (in_block + start) % BLOCK_LEN;
        let block = &head[start..head.len().min(start + left)];
        if let Some(format) = of_fragment(block, |dialect| dialect.valid(block, true)) {
            if offset == 0 {
                // If the first block is damaged or was swapped with another block, only the other
                // blocks can show whether records are compressed.
                match is_compressed(format, head, is_all) {
                    None => return PartialDetection::NeedMore,
                    Some(true) => return PartialDetection::Log(compressed(format)),
                    Some(false) => {}
                }
            }
            return if offset > 0 && format.dialect.has_log_numbers() {
                // The first fragment here may belong to an older log. Only the start of the file
                // shows which log the file holds.
                PartialDetection::Unclear
            } else if format.dialect == Dialect::RECYCLABLE {
                recyclable(format, head, start, is_all)
            } else if !format.dialect.prefix().is_empty() && offset == 0 {
                of_damaged_file_header(format.dialect, head, is_all)
            } else {
                PartialDetection::Log(format)
            };
        }
        if offset == 0
            && start == 0
            && let Some(format) = of_damaged_mark(block)
        {
            return PartialDetection::Log(format);
        }
        // The file starts like a compressed RocksDB log, except for a few wrong bits. No
        // uncompressed log starts like this.
        if offset == 0 && start == 0 && is_near_first_compressed(block) {
            return PartialDetection::Log(compressed(Dialect::ROCKSDB.into()));
        }
    }
    if !is_all {
        // The next block, or the rest of this block, may start with a fragment.
        return PartialDetection::NeedMore;
    }
    if offset > 0 {
        return PartialDetection::Unclear;
    }
    match after_damage(&head[..head.len().min(BLOCK_LEN)]).map(|(_, format)| format) {
        Some(format) if !format.dialect.prefix().is_empty() => of_damaged_file_header(format.dialect, head, is_all),
        Some(format) => with_compression(format, head, true),
        None => match (no_log(head), nearest_file_header(head)) {
            // The file is neither text nor in another known format.
            (
                PartialDetection::Unclear
                | PartialDetection::Foreign(Foreign::Unknown)
                | PartialDetection::Longer(None | Some(Foreign::Unknown)),
                Some(dialect),
            ) => with_grid(dialect, head, is_all),
            (detection, _) => detection,
        },
    }
}

/// Determines the dialect of a log that starts with recyclable fragments at `start`. An end-of-log
/// trailer proves that the log is from Pebble, but nothing in a log can prove that it is from
/// RocksDB.
fn recyclable(format: LogFormat, head: &[u8], mut start: usize, is_all: bool) -> PartialDetection {
    if !is_all {
        return PartialDetection::NeedMore;
    }
    while start < head.len() {
        let left = BLOCK_LEN - start % BLOCK_LEN;
        let block = &head[start..head.len().min(start + left)];
        start += match format.dialect.valid(block, true) {
            _ if format.is_end_trailer(block) => {
                return PartialDetection::Log(LogFormat {
                    dialect: Dialect::PEBBLE,
                    ..format
                });
            }
            Some(valid) if !format.is_stale(block, valid.form) => valid.end,
            Some(_) => break,
            None => left,
        };
    }
    PartialDetection::Log(format)
}
