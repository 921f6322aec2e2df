//! Locates a flipped bit: a CRC of 32 bits distinguishes all single-bit errors of a fragment. Pure,
//! no I/O.

use crate::checksum::Checksum;
use crate::damage::resync::true_len;
use crate::dialect::{Dialect, Form};
use crate::format::{HEADER_LEN, Header, KIND_AT};
use crate::names::shows_name;

/// The part of a fragment to which a byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FragmentPart {
    /// The checksum, bytes 0 to 3 of the header.
    Checksum,
    /// The length, bytes 4 and 5.
    Length,
    /// The type, byte 6.
    Kind,
    /// The number of the log, bytes 7 to 10, if fragments carry it.
    LogNumber,
    /// How far the file had been synced, bytes 11 to 18, if fragments state it.
    SyncedOffset,
    /// What follows the header.
    Payload,
}

impl FragmentPart {
    /// A stable name: `"checksum"`, `"length"`, `"kind"`, `"log_number"`, `"synced_offset"` or
    /// `"payload"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            FragmentPart::Checksum => "checksum",
            FragmentPart::Length => "length",
            FragmentPart::Kind => "kind",
            FragmentPart::LogNumber => "log_number",
            FragmentPart::SyncedOffset => "synced_offset",
            FragmentPart::Payload => "payload",
        }
    }
}

shows_name!(FragmentPart);

/// The one bit that explains damage: if it is flipped back, the fragment's checksum is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BitFlip {
    /// File offset of the byte.
    pub offset: u64,
    /// Which bit of it: 0 is the lowest, 7 the highest.
    pub bit: u8,
    /// The part of the fragment to which the byte belongs.
    pub part: FragmentPart,
}

/// Finds the one flipped bit that explains why no fragment is found where one should begin.
///
/// `bytes` begin with the damaged header and extend to the end of its block or of the file;
/// `offset` is the file offset of the first byte, `dialect` the dialect of the file. Returns `None`
/// if no single bit explains the damage, or more than one does equally well. A length up to twice
/// the stated one is tried first; any other length, and a type whose header has another length, are
/// tried last. Each is considered only if nothing before it explains the damage. In about one of
/// 16,000 cases, two flipped bits look like a single one elsewhere. Nothing is repaired.
///
/// It takes time linear in the length of the fragment or, if a longer one is tried, of `bytes`: up
/// to about 0.03 ms for a whole block.
///
/// ```
/// use cordwood_log::Dialect;
/// use cordwood_log::damage::{FragmentPart, locate_bit_flip};
/// let mut fragment = *b"\xdd\x5f\xb3\x7a\x03\x00\x01foo";
/// fragment[9] ^= 0x20;
/// let flip = locate_bit_flip(&fragment, 0, Dialect::LEVELDB).unwrap();
/// assert_eq!((flip.offset, flip.bit, flip.part), (9, 5, FragmentPart::Payload));
/// ```
pub fn locate_bit_flip(bytes: &[u8], offset: u64, dialect: Dialect) -> Option<BitFlip> {
    let header = Header::decode(bytes.first_chunk()?);
    let flip = |at: usize, bit: u32, part| BitFlip {
        offset: offset.saturating_add(at as u64),
        bit: bit as u8,
        part,
    };
    let header_len = dialect.meaning(header.kind).form.header_len();
    let in_length = |bytes: &[u8]| {
        let bit = (usize::from(header.len) ^ true_len(&dialect, header, bytes)?).trailing_zeros();
        Some(flip(4 + bit as usize / 8, bit % 8, FragmentPart::Length))
    };
    // With a wrong length the checksum covers the wrong bytes, and a bit of these explains the
    // damage by chance once in 16,000 times; but a length explains other damage by chance only once
    // in 2^28.
    let near_len = header_len + 2 * usize::from(header.len);
    if let Some(found) = in_length(bytes.get(..near_len).unwrap_or(bytes)) {
        return Some(found);
    }
    // What the checksum covers: from the type byte on.
    let covered = bytes.get(KIND_AT..header_len + usize::from(header.len));
    let computed = covered.map(|covered| dialect.checksum.crc(covered));
    let in_checksum = computed.and_then(|computed| {
        let difference = header.masked_crc ^ dialect.checksum.store(computed);
        let bit = difference.trailing_zeros();
        let at = bit as usize / 8;
        (difference.count_ones() == 1).then(|| flip(at, bit % 8, FragmentPart::Checksum))
    });
    let syndrome = computed.map(|computed| dialect.checksum.load(header.masked_crc) ^ computed);
    let in_data = covered.zip(syndrome).and_then(|(covered, syndrome)| {
        let (at, bit) = flipped_bit(dialect.checksum, syndrome, covered.len())?;
        let at = KIND_AT + at;
        Some(flip(at, bit, part_of(at, header_len)))
    });
    if in_checksum.or(in_data).is_some() {
        return one_of(in_checksum.into_iter().chain(in_data));
    }
    // With a length that is much longer, or another type whose header has another length, the
    // checksum covers other bytes: up to 32 KiB. Damage that is already explained is not worth that
    // cost.
    let in_kind = (0..8).filter_map(|bit| {
        let kind = header.kind ^ 1 << bit;
        let form = dialect.meaning(kind).form;
        let covered = bytes.get(HEADER_LEN..form.header_len() + usize::from(header.len))?;
        let checksum = dialect.checksum;
        let is_right = form != dialect.meaning(header.kind).form
            && checksum.extend(checksum.crc(&[kind]), covered) == checksum.load(header.masked_crc);
        is_right.then(|| flip(KIND_AT, bit, FragmentPart::Kind))
    });
    let in_far_length = (near_len < bytes.len()).then(|| in_length(bytes)).flatten();
    one_of(in_far_length.into_iter().chain(in_kind))
}

/// The only explanation, if there is exactly one.
fn one_of(mut explanations: impl Iterator<Item = BitFlip>) -> Option<BitFlip> {
    explanations.next().filter(|_| explanations.next().is_none())
}

/// The part to which the byte at `at` belongs. The checksum covers that byte.
fn part_of(at: usize, header_len: usize) -> FragmentPart {
    match at {
        KIND_AT => FragmentPart::Kind,
        _ if at >= header_len => FragmentPart::Payload,
        _ if at < Form::Recyclable.header_len() => FragmentPart::LogNumber,
        _ => FragmentPart::SyncedOffset,
    }
}

/// The byte and the bit, in `len` bytes, whose flip changes their CRC by `syndrome`.
///
/// A CRC is linear: flipping one bit changes it by the CRC of that bit alone, advanced over a zero
/// byte for each byte after it. So the syndrome is moved back, four bytes at a time, until a single
/// bit is left, which is a bit of one of those four bytes.
fn flipped_bit(checksum: Checksum, syndrome: u32, len: usize) -> Option<(usize, u32)> {
    let mut state = syndrome;
    for end in (1..=len).rev().step_by(4) {
        state = checksum.unshift_word(state);
        if state.is_power_of_two() {
            let bit = state.trailing_zeros();
            let at = (end + bit as usize / 8).checked_sub(4)?;
            return Some((at, bit % 8));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(payload: &[u8]) -> Vec<u8> {
        let header = Header {
            masked_crc: Dialect::LEVELDB.checksum.stored(&[&[1], payload].concat()),
            len: payload.len() as u16,
            kind: 1,
        };
        [&header.encode(), payload, b"what follows"].concat()
    }

    #[test]
    fn each_bit_of_a_fragment_is_found() {
        let valid = fragment(&[b'x'; 300]);
        for at in 0..HEADER_LEN + 300 {
            for bit in 0..8 {
                let mut bytes = valid.clone();
                bytes[at] ^= 1 << bit;
                let part = match at {
                    0..4 => FragmentPart::Checksum,
                    4..6 => FragmentPart::Length,
                    6 => FragmentPart::Kind,
                    _ => FragmentPart::Payload,
                };
                let offset = 1000 + at as u64;
                assert_eq!(
                    locate_bit_flip(&bytes, 1000, Dialect::LEVELDB),
                    Some(BitFlip { offset, bit, part }),
                    "{at} {bit}"
                );
            }
        }
    }

    /// In each form of header, and with the other checksum.
    #[test]
    fn each_bit_of_a_fragment_of_any_dialect_is_found() {
        let numbers = b"\x07\0\0\0\x20\0\0\0\0\0\0\0";
        for (dialect, kind, numbers) in [
            (Dialect::ROCKSDB, 1, &numbers[..0]),
            (Dialect::ROCKSDB, 5, &numbers[..4]),
            (Dialect::PEBBLE, 9, &numbers[..]),
            (Dialect::WANDB, 1, &numbers[..0]),
        ] {
            let covered = [&[kind], numbers, &[b'x'; 300][..]].concat();
            let stored = dialect.checksum.stored(&covered).to_le_bytes();
            let valid = [&stored, &300_u16.to_le_bytes()[..], &covered, b"what follows"].concat();
            for at in 0..HEADER_LEN + numbers.len() + 300 {
                for bit in 0..8 {
                    let mut bytes = valid.clone();
                    bytes[at] ^= 1 << bit;
                    let part = match at {
                        0..4 => FragmentPart::Checksum,
                        4..6 => FragmentPart::Length,
                        6 => FragmentPart::Kind,
                        _ if at >= HEADER_LEN + numbers.len() => FragmentPart::Payload,
                        7..11 => FragmentPart::LogNumber,
                        _ => FragmentPart::SyncedOffset,
                    };
                    let offset = at as u64;
                    let found = locate_bit_flip(&bytes, 0, dialect);
                    assert_eq!(found, Some(BitFlip { offset, bit, part }), "{dialect:?} {kind}");
                }
            }
        }
    }

    /// In a fragment of eight bytes, bit 4 of the length was flipped; and what follows happens to
    /// make the checksum also valid for all 24, with bit 2 of byte 10 flipped.
    #[test]
    fn a_length_is_more_likely_than_a_bit_of_the_payload() {
        let bytes = b"\x47\x0f\xd4\x8a\x18\x00\x01xxxxxxxx\x05\x2b\x28\x43\0\0\x01\0\0\0\0\0\x33\x2b\x79\xee";
        let stored = u32::from_le_bytes(*bytes.first_chunk().unwrap());
        let checksum = Dialect::LEVELDB.checksum;
        assert_eq!(checksum.stored(&bytes[6..15]), stored);
        let mut flipped = *bytes;
        flipped[10] ^= 1 << 2;
        assert_eq!(checksum.stored(&flipped[6..]), stored);
        let (offset, bit, part) = (4, 4, FragmentPart::Length);
        let found = locate_bit_flip(bytes, 0, Dialect::LEVELDB);
        assert_eq!(found, Some(BitFlip { offset, bit, part }));
    }

    #[test]
    fn what_no_single_bit_explains_is_not_explained() {
        let mut bytes = fragment(&[b'x'; 300]);
        assert_eq!(locate_bit_flip(&bytes, 0, Dialect::LEVELDB), None, "nothing is wrong");
        bytes[8] ^= 1;
        bytes[200] ^= 0x40;
        assert_eq!(locate_bit_flip(&bytes, 0, Dialect::LEVELDB), None);
        assert_eq!(locate_bit_flip(&bytes[..6], 0, Dialect::LEVELDB), None);
        assert_eq!(locate_bit_flip(&[], 0, Dialect::LEVELDB), None);
    }
}
