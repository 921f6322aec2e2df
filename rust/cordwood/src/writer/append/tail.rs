//! The bytes after the last complete record in a log, and whether a crash could have produced them.

use crate::damage::{Reason, Scanner, Severity, SkippedRegion, locate_bit_flip};
use crate::dialect::{Dialect, Grid, Role};
use crate::error::Error;
use crate::format::{KIND_AT, Kind};

/// The number of bytes that a disk is assumed to write atomically. etcd makes the same assumption
/// (`wal/decoder.go`). The number is only used as a hint that a crash could have produced the tail.
const SECTOR_LEN: u64 = 512;

/// The bytes after the last complete record.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) start: u64,
    /// The first reason with the highest severity.
    pub(super) reason: Reason,
    /// The reason for the last region.
    pub(super) last: Reason,
    /// The first region that counts as damage.
    pub(super) damage: Option<SkippedRegion>,
    /// Whether a sector, or the damaged part of one, is all zeros. Such a sector was never written,
    /// even though the file already had its new length.
    has_zero_sector: bool,
    /// Whether the tail contains a complete record, possibly with one flipped bit. Such a record is
    /// not the remainder of an interrupted write.
    has_whole_record: bool,
    /// Whether any byte of the tail is nonzero.
    pub(super) has_data: bool,
    /// Whether there is a valid fragment in the tail or before it.
    pub(super) has_fragment: bool,
}

impl Tail {
    pub(super) fn new(region: SkippedRegion) -> Self {
        Tail {
            start: region.start,
            reason: region.reason,
            last: region.reason,
            damage: None,
            has_zero_sector: false,
            has_whole_record: false,
            has_data: false,
            has_fragment: false,
        }
    }

    /// Returns whether a crash could have produced the tail, even though the tail is reported as
    /// damage.
    pub(super) fn is_torn(&self) -> bool {
        self.has_zero_sector && !self.has_whole_record
    }

    /// Adds a region. `read` returns the bytes from an offset onward, up to a given length.
    pub(super) fn add(
        &mut self,
        region: SkippedRegion,
        grid: Grid,
        read: impl Fn(u64, u64) -> Result<Vec<u8>, Error>,
    ) -> Result<(), Error> {
        let dialect = grid.dialect;
        self.last = region.reason;
        self.has_data |= region.reason != Reason::ZeroFill;
        if region.reason.severity() > self.reason.severity() {
            self.reason = region.reason;
        }
        if region.reason.severity() == Severity::Corruption {
            self.damage = self.damage.or(Some(region));
        }
        match region.reason {
            Reason::ZeroFill => self.has_zero_sector = true,
            // The checksum is valid, so the fragment was written completely.
            Reason::UnknownKind { .. } | Reason::BadMetadata { .. } | Reason::BadContainer | Reason::BadCompression => {
                (self.has_fragment, self.has_whole_record) = (true, true);
            }
            // These reasons also imply that a valid checksum was found.
            Reason::MissingStart
            | Reason::MissingEnd
            | Reason::InterruptedRecord
            | Reason::EmptyFirst
            | Reason::IgnoredKind { .. } => self.has_fragment = true,
            Reason::ChecksumMismatch { .. } | Reason::BadLength { .. } | Reason::ZeroHeader => {
                let mut start = region.start;
                while start < region.end {
                    let end = region.end.min(start + grid.block_left(start) as u64);
                    let bytes = read(start, end - start)?;
                    self.has_zero_sector |= has_zero_sector(&bytes, start - grid.origin);
                    self.has_whole_record |= hides_record(dialect, &bytes);
                    // The record may have been synced, even if it contains zeros: an unwritten
                    // sector would have changed more than one bit.
                    self.has_whole_record |= start == region.start && locate_bit_flip(&bytes, start, dialect).is_some();
                    start = end;
                }
            }
            Reason::TornTail => {
                let left = grid.block_left(region.start) as u64;
                let bytes = read(region.start, region.len().min(left))?;
                self.has_fragment |= dialect.valid(&bytes, true).is_some();
                if locate_bit_flip(&bytes, region.start, dialect).is_some() {
                    // Flipping one bit of the length back completes the record.
                    self.has_whole_record = true;
                    self.damage = self.damage.or(Some(region));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Checks whether a sector of the file, or the part of it in `bytes`, is all zeros. `bytes` starts
/// at the file offset `start`.
fn has_zero_sector(bytes: &[u8], start: u64) -> bool {
    let first_len = (SECTOR_LEN - start % SECTOR_LEN) as usize;
    let (first, rest) = bytes.split_at(first_len.min(bytes.len()));
    std::iter::once(first)
        .chain(rest.chunks(SECTOR_LEN as usize))
        .any(|sector| !sector.is_empty() && sector.iter().all(|&byte| byte == 0))
}

/// Checks whether `bytes` contains a complete record, or the first fragment of a record that may
/// continue in the next block. Engine metadata is treated like a record. `bytes` is the remainder
/// of a block after damage. Readers do not search it for records.
///
/// If the data of a damaged record contains log fragments, this check mistakes them for a record. A
/// false alarm is better than a silent loss of data.
fn hides_record(dialect: Dialect, bytes: &[u8]) -> bool {
    let scanner = Scanner::new(bytes);
    (0..bytes.len()).any(|at| {
        // Most bytes are not valid type bytes, so no checksum is computed for them.
        let role = bytes.get(at + KIND_AT).map(|&kind| dialect.meaning(kind).role);
        matches!(role, Some(Role::Fragment(Kind::Full | Kind::First) | Role::Metadata(_)))
            && scanner.valid(dialect, at).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_counted_from_the_start_of_the_file() {
        let mut bytes = vec![1; 2000];
        assert!(!has_zero_sector(&bytes, 100));
        bytes[412..924].fill(0);
        assert!(has_zero_sector(&bytes, 100));
        assert!(!has_zero_sector(&bytes, 101));
        bytes[412] = 1;
        assert!(!has_zero_sector(&bytes, 100));
        // Both ends of `bytes` may be in the middle of a sector.
        assert!(has_zero_sector(&[0, 0, 1], 510));
        assert!(has_zero_sector(&[1, 1, 0], 510));
        assert!(!has_zero_sector(&[1, 0, 0, 1], 510));
        assert!(!has_zero_sector(&[], 0));
    }

    #[test]
    fn finds_a_complete_record_after_damage() {
        let mut file = vec![7; 100];
        assert!(!hides_record(Dialect::LEVELDB, &file));
        crate::codec::Encoder::new(0).encode(b"whole", &mut file);
        assert!(hides_record(Dialect::LEVELDB, &file));
        file.pop();
        assert!(!hides_record(Dialect::LEVELDB, &file));
    }
}
