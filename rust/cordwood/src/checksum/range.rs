//! Computes the checksum of any range of a slice in constant time.

use std::cell::Cell;

use super::algorithm::Checksum;
use super::zeros::CHUNK_LEN;
use crate::format::BLOCK_LEN;

/// Computes the checksum of any range of a slice from the checksums of its prefixes.
pub(crate) struct RangeCrc<'a> {
    checksum: Checksum,
    bytes: &'a [u8],
    /// The CRC of the bytes before each chunk.
    crcs: [u32; BLOCK_LEN / CHUNK_LEN + 1],
    /// The last requested range, and its CRC. The dialects are so similar that they often need the
    /// same range.
    last: Cell<(usize, usize, u32)>,
}

impl<'a> RangeCrc<'a> {
    /// Creates the table. `bytes` must not be longer than a block.
    pub(crate) fn new(checksum: Checksum, bytes: &'a [u8]) -> Self {
        let mut crcs = [0; BLOCK_LEN / CHUNK_LEN + 1];
        let mut crc = 0;
        for (chunk, next) in bytes.chunks_exact(CHUNK_LEN).zip(&mut crcs[1..]) {
            crc = checksum.extend(crc, chunk);
            *next = crc;
        }
        RangeCrc {
            checksum,
            bytes,
            crcs,
            // The CRC of an empty slice is 0.
            last: Cell::new((0, 0, 0)),
        }
    }

    /// Returns the CRC of `bytes[start..end]`.
    pub(crate) fn crc(&self, start: usize, end: usize) -> u32 {
        let (last_start, last_end, last) = self.last.get();
        if (start, end) == (last_start, last_end) {
            return last;
        }
        let crc = self.crc_of(start, end);
        self.last.set((start, end, crc));
        crc
    }

    fn crc_of(&self, start: usize, end: usize) -> u32 {
        let (first, last) = (start.div_ceil(CHUNK_LEN), end / CHUNK_LEN);
        if first >= last {
            return self.checksum.crc(&self.bytes[start..end]);
        }
        let head = self.checksum.crc(&self.bytes[start..first * CHUNK_LEN]);
        // The CRC of whole chunks is the difference between two prefix CRCs, and subtraction is the
        // same as addition. Shifting is linear, so a single shift works for both CRCs.
        let shifted = self.checksum.shift(head ^ self.crcs[first], last - first);
        let tail = &self.bytes[last * CHUNK_LEN..end];
        self.checksum.extend(shifted ^ self.crcs[last], tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_checksums_match_direct_computation() {
        let bytes: Vec<u8> = (0..2000u32).map(|i| ((i * i) >> 3) as u8).collect();
        let block = vec![0xa5; BLOCK_LEN];
        for checksum in [Checksum::MaskedCrc32c, Checksum::Crc32] {
            let sums = RangeCrc::new(checksum, &bytes);
            for start in (0..bytes.len()).step_by(7) {
                for end in (start..=bytes.len()).step_by(11) {
                    assert_eq!(sums.crc(start, end), checksum.crc(&bytes[start..end]), "{start}..{end}");
                }
            }
            let sums = RangeCrc::new(checksum, &block);
            assert_eq!(sums.crc(0, BLOCK_LEN), checksum.crc(&block));
            assert_eq!(sums.crc(1, BLOCK_LEN - 1), checksum.crc(&block[2..]));
        }
    }
}
