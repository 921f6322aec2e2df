//! Determines whether a valid fragment starts at a given byte of a block, for searches that try
//! every byte. This module is pure and does no I/O.

use std::cell::OnceCell;

use crate::checksum::{Checksum, RangeCrc};
use crate::dialect::{Dialect, LogFormat, Role, Valid};
use crate::format::{BLOCK_LEN, Header, KIND_AT};

/// Computes [`Dialect::valid`] at any position in a slice of bytes, at a cost that doesn't depend
/// on the lengths in headers. A crafted file therefore can't force the scanner to checksum half the
/// block at each of thousands of positions.
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    /// One entry for each checksum. An entry is computed at the first position with a plausible
    /// type and length. Most inputs have no such position.
    crcs: [OnceCell<RangeCrc<'a>>; Checksum::COUNT],
}

impl<'a> Scanner<'a> {
    /// Creates a scanner. `bytes` is a block or part of a block.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len() <= BLOCK_LEN);
        Scanner {
            bytes,
            crcs: std::array::from_fn(|_| OnceCell::new()),
        }
    }

    /// Returns the fragment of any type that starts at position `at`, if its checksum is valid. The
    /// result is the same as that of [`Dialect::valid`] for the bytes from there onward.
    #[inline]
    pub(crate) fn valid(&self, dialect: Dialect, at: usize) -> Option<Valid> {
        dialect.valid_if(self.bytes.get(at..)?, |header, covered| {
            let start = at + KIND_AT;
            let crc = self.crcs(dialect.checksum()).crc(start, start + covered.len());
            crc == dialect.checksum().load(header.masked_crc)
        })
    }

    /// Like [`valid`](Self::valid), but only returns fragments of records. They are from another
    /// log if `is_stale` is true, and from this log otherwise.
    #[inline]
    pub(crate) fn fragment(&self, format: &LogFormat, at: usize, is_stale: bool) -> Option<Valid> {
        let bytes = self.bytes.get(at..)?;
        let meaning = format.dialect.meaning(Header::decode(bytes.first_chunk()?).kind);
        // The checksum comes last because checking it is expensive. Most bytes aren't valid types,
        // and most numbers aren't the log's number.
        let may_be = matches!(meaning.role, Role::Fragment(_)) && format.is_stale(bytes, meaning.form) == is_stale;
        if may_be { self.valid(format.dialect, at) } else { None }
    }

    fn crcs(&self, checksum: Checksum) -> &RangeCrc<'a> {
        self.crcs[checksum as usize].get_or_init(|| RangeCrc::new(checksum, self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::HEADER_LEN;

    /// Returns a generator that yields the same pseudo-random numbers in every run.
    fn random(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        }
    }

    /// Checks all dialects with one scanner, with and without a log number.
    fn assert_agrees(bytes: &[u8]) -> usize {
        let scanner = Scanner::new(bytes);
        let formats = Dialect::ALL.iter().map(|&dialect| LogFormat::new(dialect)).chain([
            LogFormat::new(Dialect::ROCKSDB).with_log_number(0x0807_0605),
            LogFormat::new(Dialect::PEBBLE).with_log_number(0x0807_0605),
        ]);
        let formats: Vec<LogFormat> = formats.collect();
        let mut count = 0;
        for at in 0..=bytes.len() + 1 {
            let rest = bytes.get(at..).unwrap_or_default();
            for format in &formats {
                let dialect = format.dialect;
                let valid = dialect.valid(rest, true);
                assert_eq!(scanner.valid(dialect, at), valid, "{dialect:?} at {at}");
                let own =
                    valid.filter(|valid| matches!(valid.role, Role::Fragment(_)) && !format.is_stale(rest, valid.form));
                assert_eq!(scanner.fragment(format, at, false), own, "{format:?} at {at}");
                count += usize::from(valid.is_some());
            }
        }
        count
    }

    #[test]
    fn the_scanner_matches_a_naive_check_on_valid_fragments() {
        let mut next = random(1);
        for round in 0..40 {
            let mut bytes = Vec::new();
            let mut fragments = 0;
            while bytes.len() < 2500 {
                bytes.extend((0..next() % 9).map(|i| i as u8));
                // The type is an arbitrary byte, or a type that some dialect uses.
                let kind = if next() & 1 == 0 {
                    next() as u8
                } else {
                    (next() % 13) as u8
                };
                let payload: Vec<u8> = (0..next() % 400).map(|i| (i as u8).wrapping_add(5)).collect();
                // These bytes are the log number and the synced offset in forms that have them, and
                // part of the payload in other forms.
                let numbers = &[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16][..[0, 4, 12][next() as usize % 3]];
                let checksum = [Checksum::MaskedCrc32c, Checksum::Crc32][next() as usize % 2];
                let covered = [&[kind], numbers, &payload].concat();
                let header = Header {
                    masked_crc: checksum.stored(&covered),
                    len: (payload.len() + [0, numbers.len()][next() as usize % 2]) as u16,
                    kind,
                };
                bytes.extend(&header.encode());
                bytes.extend(&covered[1..]);
                fragments += 1;
            }
            assert!(assert_agrees(&bytes) > fragments, "round {round}: they were found");
        }
    }

    #[test]
    fn the_scanner_matches_a_naive_check_on_hostile_input() {
        let mut next = random(2);
        let len = 3000;
        assert_agrees(&[]);
        assert_agrees(&[1; HEADER_LEN]);
        assert_agrees(&vec![b'@'; len]);
        assert_agrees(&vec![0; len]);
        assert_agrees(&[1, 0x3f].repeat(len / 2));
        for kind in 1..=12 {
            assert_agrees(&[kind, 0].repeat(200));
            assert_agrees(&[kind, 2].repeat(len / 2));
        }
        for _ in 0..4 {
            let bytes: Vec<u8> = (0..len).map(|_| next() as u8).collect();
            assert_agrees(&bytes);
            let small: Vec<u8> = (0..len).map(|_| (next() % 13) as u8).collect();
            assert_agrees(&small);
        }
    }

    /// Tries lengths of up to a whole block, for which the checksum covers the most bytes.
    #[test]
    fn the_scanner_matches_a_naive_check_on_a_fragment_that_fills_a_block() {
        for dialect in [Dialect::LEVELDB, Dialect::WANDB] {
            let covered: Vec<u8> = (0..BLOCK_LEN - HEADER_LEN + 1).map(|i| (i % 251) as u8 | 1).collect();
            let header = Header {
                masked_crc: dialect.checksum().stored(&covered),
                len: (covered.len() - 1) as u16,
                kind: covered[0],
            };
            let block = [&header.encode(), &covered[1..]].concat();
            let valid = Scanner::new(&block).fragment(&dialect.into(), 0, false);
            assert_eq!(valid, dialect.valid(&block, true));
            assert_eq!(valid.map(|valid| valid.end), Some(BLOCK_LEN));
        }
    }

    /// Returns blocks in which at least half of the positions may be a header that gives a length
    /// of up to half a block.
    fn hostile_blocks() -> Vec<Vec<u8>> {
        let mut blocks = vec![vec![b'@'; BLOCK_LEN]];
        for kind in [1, 2, 5, 9] {
            blocks.push([kind, 0x3f].repeat(BLOCK_LEN / 2));
            blocks.push([0x3f, kind].repeat(BLOCK_LEN / 2));
        }
        let mut after_a_record = Vec::new();
        crate::codec::Encoder::new(0).encode(b"valid", &mut after_a_record);
        after_a_record.extend([1, 0x3f].repeat(BLOCK_LEN / 2));
        after_a_record.truncate(BLOCK_LEN - 1);
        blocks.push(after_a_record);
        blocks
    }

    /// The cost is counted in bytes, so it doesn't depend on the machine. Checksumming the payload
    /// of every header would cost several thousand times the number of bytes.
    #[test]
    fn a_search_computes_checksums_over_at_most_100_bytes_per_byte_searched() {
        use crate::checksum::CHECKSUMMED_LEN;
        use crate::damage::{repair, resync};
        use crate::fragment;

        const MULTIPLE_MAX: usize = 100;
        let assert_bounded = |name: &str, len: usize, search: &dyn Fn()| {
            CHECKSUMMED_LEN.set(0);
            search();
            let found = CHECKSUMMED_LEN.get();
            assert!(found <= MULTIPLE_MAX * len, "{name}: {found} of {len} bytes");
        };
        let dir = tempfile::tempdir().unwrap();
        for block in hostile_blocks() {
            for &dialect in Dialect::ALL {
                let format = LogFormat::new(dialect).numbered(Some(0x3f01_3f01));
                // The block is the last one in a file, where a longer fragment may have been torn.
                assert_bounded("find", block.len(), &|| {
                    fragment::find(&format, &block[1..], BLOCK_LEN, true, true);
                });
                assert_bounded("resume", block.len(), &|| {
                    resync::resume(&format, None, &block, BLOCK_LEN, || true);
                });
                assert_bounded("repair", block.len(), &|| {
                    let log = repair::Log {
                        format: &format,
                        origin: 0,
                        may_end: true,
                        form: None,
                        is_compressed: false,
                    };
                    let _ = repair::repair(&log, 0, &block, BLOCK_LEN);
                });
                assert_bounded("evidence", block.len(), &|| {
                    resync::evidence(&format, None, &block);
                });
            }
            let file = block.repeat(3);
            assert_bounded("detect", file.len(), &|| {
                let _ = crate::ops::detect(&file);
            });
            let path = dir.path().join("log");
            std::fs::write(&path, &file).unwrap();
            for on_torn_tail in [crate::OnTornTail::Refuse, crate::OnTornTail::PadToBlock] {
                let options = crate::LogFileOptions::default().with_on_torn_tail(on_torn_tail);
                assert_bounded("append_to", file.len(), &|| {
                    let _ = crate::LogFile::append_to(&path, options.clone());
                });
            }
            assert_bounded("poll", file.len(), &|| {
                let mut follower = crate::Follower::open_with(&path, crate::FollowOptions::default()).unwrap();
                let _ = follower.poll();
            });
        }
    }
}
