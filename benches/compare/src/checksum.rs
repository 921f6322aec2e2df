//! CRC-32C by length. The data lies as records in a log do: consecutive, unaligned, in the processor's cache.

use std::hint::black_box;

use cordwood_bench::{CHECKSUM_LENS, noise};

use crate::turns::{Contender, take_turns};

type Checksum = fn(&[u8]) -> u32;

const CONTENDERS: [(&str, Checksum); 3] = [
    ("cordwood", cordwood::crc32c::crc32c),
    ("crc32c", crc32c::crc32c),
    ("crc-fast", |data| {
        crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, data) as u32
    }),
];

/// The window that a pass goes through once: larger than the first cache, but within the second.
const WINDOW: usize = 128 << 10;

pub(crate) fn compare() {
    let data = noise(WINDOW);
    for len in CHECKSUM_LENS {
        let pieces: Vec<&[u8]> = data[7..].chunks_exact(len + 7).map(|piece| &piece[..len]).collect();
        for (name, checksum) in CONTENDERS {
            let agrees = pieces.iter().all(|piece| checksum(piece) == crc32c::crc32c(piece));
            assert!(agrees, "{name}, {len} bytes");
        }
        let pieces = pieces.as_slice();
        let mut contenders = CONTENDERS.map(|(name, checksum)| {
            Contender::new(name, move || {
                let checksum = black_box(checksum);
                for piece in pieces {
                    black_box(checksum(piece));
                }
            })
        });
        take_turns("checksum", &len.to_string(), pieces.len(), &mut contenders);
    }
}
