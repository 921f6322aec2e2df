//! Locates a flipped bit. A 32-bit CRC distinguishes all single-bit errors in a fragment. This
//! module is pure and does no I/O.

use crate::checksum::Checksum;
use crate::dialect::{Dialect, Form};
use crate::format::{HEADER_LEN, Header, KIND_AT, LENGTH_AT};
use crate::names::{named, shows_name};

named! {
    /// The part of the file that a byte belongs to: a part of a fragment, or the file header.
    pub enum FragmentPart {
        /// The checksum (bytes 0 to 3 of the header).
        Checksum = "checksum",
        /// The length (bytes 4 and 5 of the header).
        Length = "length",
        /// The type (byte 6 of the header).
        Kind = "kind",
        /// The log number (bytes 7 to 10 of the header, if the header contains it).
        LogNumber = "log_number",
        /// The offset up to which the file had been synced (bytes 11 to 18 of the header, if the
        /// header contains it).
        SyncedOffset = "synced_offset",
        /// The bytes after the header.
        Payload = "payload",
        /// The file header, which precedes the first fragment.
        FileHeader = "file_header",
    }
}

shows_name!(FragmentPart);

/// A single flipped bit that explains damage. Flipping it back makes the fragment's checksum valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BitFlip {
    /// The file offset of the byte.
    pub offset: u64,
    /// The number of the bit within the byte, from 0 (lowest) to 7 (highest).
    pub bit: u8,
    /// The part of the file that the byte belongs to.
    pub part: FragmentPart,
}

/// Locates the single flipped bit that explains why there is no valid fragment at an offset.
///
/// `bytes` starts with the damaged header and extends to the end of the block or of the file,
/// whichever comes first. `offset` is the file offset of `bytes`, and `dialect` is the file's
/// dialect. Returns `None` if no single bit explains the damage, or if several explain it equally
/// well.
///
/// The search first tries lengths of up to twice the length in the header. It then tries the bits
/// of the checksum and of the bytes that the checksum covers. Finally, it tries all other lengths,
/// and the types whose headers have a different length. It stops at the first step that explains
/// the damage. This function only locates the bit: [`salvage`](crate::ops::salvage) flips it back
/// on request. See `docs/format/damage.md` for how often other damage looks like one flipped bit.
///
/// The search takes time proportional to the length of the fragment. If longer fragments are tried,
/// it takes time proportional to the length of `bytes`. A whole block takes at most about 0.03 ms.
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
    let damaged = Damaged::new(bytes, dialect)?;
    // If the length is wrong, the checksum covers the wrong bytes. In 1 out of 16,000 cases,
    // flipping a bit in those bytes happens to explain the damage. Flipping a length bit happens to
    // explain other damage in only 1 out of 2^28 cases.
    let near_len = damaged.header_len + 2 * usize::from(damaged.header.len);
    let in_near_length = damaged.in_length(bytes.get(..near_len).unwrap_or(bytes));
    let found = in_near_length.or_else(|| {
        let (in_checksum, in_data) = damaged.in_checksum_and_data();
        if in_checksum.or(in_data).is_some() {
            return one_of(in_checksum.into_iter().chain(in_data));
        }
        // With a much greater length, or a type whose header has a different length, the checksum
        // covers up to 32 KiB of other bytes. Computing it isn't worthwhile if the damage is
        // already explained.
        let in_far_length = (near_len < bytes.len()).then(|| damaged.in_length(bytes)).flatten();
        one_of(in_far_length.into_iter().chain(damaged.in_kind()))
    });
    found.map(|place| place.flip(offset, damaged.header_len))
}

/// Returns every bit that, if flipped, would explain the damage at the start of `bytes`. As in
/// [`locate_bit_flip`], `bytes` extends to the end of the block or of the file.
#[cold]
pub(crate) fn explanations(bytes: &[u8], dialect: Dialect) -> Vec<Place> {
    let Some(damaged) = Damaged::new(bytes, dialect) else {
        return Vec::new();
    };
    let (in_checksum, in_data) = damaged.in_checksum_and_data();
    let in_header = damaged.in_length(bytes).into_iter().chain(in_checksum);
    in_header.chain(in_data).chain(damaged.in_kind()).collect()
}

/// Returns the true payload length if the only wrong bit in the fragment is in the length field of
/// `header`.
///
/// `rest` starts with the header and contains the payload.
pub(super) fn true_len(dialect: Dialect, header: Header, rest: &[u8]) -> Option<usize> {
    let header_len = dialect.meaning(header.kind).form.header_len();
    let (head, payload) = rest.split_at_checked(header_len)?;
    let stored = dialect.checksum().load(header.masked_crc);
    let (mut crc, mut done) = (dialect.checksum().crc(&head[KIND_AT..]), 0);
    for len in one_bit_off(header.len).take_while(|&len| len <= payload.len()) {
        crc = dialect.checksum().extend(crc, &payload[done..len]);
        done = len;
        if crc == stored {
            return Some(len);
        }
    }
    None
}

/// Returns the lengths that differ from `len` in one bit, in ascending order.
pub(super) fn one_bit_off(len: u16) -> impl Iterator<Item = usize> {
    let bits = (0..u16::BITS).map(|bit| 1 << bit);
    let cleared = bits.clone().rev().filter(move |bit| len & bit != 0);
    let set = bits.filter(move |bit| len & bit == 0);
    cleared.chain(set).map(move |bit| usize::from(len ^ bit))
}

/// If `found` and `expected` have equal lengths and differ in exactly one bit, returns that bit.
pub(crate) fn only_difference(found: &[u8], expected: &[u8]) -> Option<Place> {
    let differences = found.iter().zip(expected).enumerate();
    let bits = differences.flat_map(|(at, (found, expected))| {
        let difference = found ^ expected;
        (0..8).filter_map(move |bit| (difference >> bit & 1 == 1).then_some(Place { at, bit }))
    });
    one_of(bits).filter(|_| found.len() == expected.len())
}

/// The position of a bit in a slice of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The index of the byte.
    pub(crate) at: usize,
    /// The number of the bit within the byte, from 0 (lowest) to 7 (highest).
    pub(crate) bit: u8,
}

impl Place {
    /// Returns a copy of `bytes` with this bit flipped, if `bytes` contains the bit.
    pub(crate) fn flipped_in(self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        if let Some(byte) = bytes.get_mut(self.at) {
            *byte ^= 1 << self.bit;
        }
        bytes
    }

    /// Converts this position in a fragment to a file offset. The fragment starts at `offset` and
    /// has a header of `header_len` bytes.
    pub(super) fn flip(self, offset: u64, header_len: usize) -> BitFlip {
        self.flip_in(offset, part_of(self.at, header_len))
    }

    /// Converts this position in a slice to a file offset. The slice starts at `offset`.
    pub(crate) fn flip_in(self, offset: u64, part: FragmentPart) -> BitFlip {
        BitFlip {
            offset: offset.saturating_add(self.at as u64),
            bit: self.bit,
            part,
        }
    }
}

/// Bytes that should start with a fragment.
struct Damaged<'a> {
    bytes: &'a [u8],
    dialect: Dialect,
    header: Header,
    /// The header's length, which depends on its type.
    header_len: usize,
}

impl<'a> Damaged<'a> {
    fn new(bytes: &'a [u8], dialect: Dialect) -> Option<Self> {
        let header = Header::decode(bytes.first_chunk()?);
        Some(Damaged {
            bytes,
            dialect,
            header,
            header_len: dialect.meaning(header.kind).form.header_len(),
        })
    }

    /// If flipping one bit of the length explains the damage, returns that bit. The corrected
    /// fragment must fit in `bytes`.
    fn in_length(&self, bytes: &[u8]) -> Option<Place> {
        let difference = usize::from(self.header.len) ^ true_len(self.dialect, self.header, bytes)?;
        Some(place(LENGTH_AT, difference.trailing_zeros()))
    }

    /// Returns two possible explanations of the damage: a flipped bit in the stored checksum, and a
    /// flipped bit in the covered bytes.
    fn in_checksum_and_data(&self) -> (Option<Place>, Option<Place>) {
        let checksum = self.dialect.checksum();
        // The checksum covers the type byte and all bytes after it.
        let end = self.header_len + usize::from(self.header.len);
        let Some(covered) = self.bytes.get(KIND_AT..end) else {
            return (None, None);
        };
        let computed = checksum.crc(covered);
        let difference = self.header.masked_crc ^ checksum.store(computed);
        let in_checksum = (difference.count_ones() == 1).then(|| place(0, difference.trailing_zeros()));
        let syndrome = checksum.load(self.header.masked_crc) ^ computed;
        let in_data = flipped_bit(checksum, syndrome, covered.len()).map(|(at, bit)| place(KIND_AT + at, bit));
        // If flipping a bit in the type changes the header's length, the checksum covers different
        // bytes.
        let in_data =
            in_data.filter(|place| place.at != KIND_AT || !self.changes_form(self.header.kind ^ 1 << place.bit));
        (in_checksum, in_data)
    }

    /// Returns the type bits that change the header's length and explain the damage.
    fn in_kind(&self) -> impl Iterator<Item = Place> {
        let checksum = self.dialect.checksum();
        (0..8).filter_map(move |bit| {
            let kind = self.header.kind ^ 1 << bit;
            let end = self.dialect.meaning(kind).form.header_len() + usize::from(self.header.len);
            let covered = self.bytes.get(HEADER_LEN..end)?;
            let is_right = self.changes_form(kind)
                && checksum.extend(checksum.crc(&[kind]), covered) == checksum.load(self.header.masked_crc);
            is_right.then(|| place(KIND_AT, bit))
        })
    }

    /// Checks whether a header of type `kind` differs in length from the damaged header.
    fn changes_form(&self, kind: u8) -> bool {
        self.dialect.meaning(kind).form.header_len() != self.header_len
    }
}

/// Returns the position of bit `bit`, counted from the start of the byte at `at`.
pub(crate) fn place(at: usize, bit: u32) -> Place {
    Place {
        at: at + bit as usize / 8,
        bit: (bit % 8) as u8,
    }
}

/// Returns the explanation if there is exactly one.
pub(super) fn one_of<T>(mut explanations: impl Iterator<Item = T>) -> Option<T> {
    explanations.next().filter(|_| explanations.next().is_none())
}

/// Returns the part that contains byte `at` of a fragment whose header is `header_len` bytes long.
fn part_of(at: usize, header_len: usize) -> FragmentPart {
    match at {
        0..LENGTH_AT => FragmentPart::Checksum,
        LENGTH_AT..KIND_AT => FragmentPart::Length,
        KIND_AT => FragmentPart::Kind,
        _ if at >= header_len => FragmentPart::Payload,
        _ if at < Form::Recyclable.header_len() => FragmentPart::LogNumber,
        _ => FragmentPart::SyncedOffset,
    }
}

/// Returns the position of the bit that, when flipped, changes the CRC of `len` bytes by
/// `syndrome`.
///
/// A CRC is linear: flipping a bit changes the CRC by a value that depends only on the bit's
/// position. This value is the CRC of that bit alone, advanced over one zero byte for each byte
/// after the bit. The search therefore moves the syndrome back four bytes at a time until only a
/// single bit is set. The flipped bit is in the four bytes of the last step.
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
            masked_crc: Dialect::LEVELDB.checksum().stored(&[&[1], payload].concat()),
            len: payload.len() as u16,
            kind: 1,
        };
        [&header.encode(), payload, b"what follows"].concat()
    }

    #[test]
    fn locates_a_flipped_bit_anywhere_in_a_fragment() {
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

    /// The cases cover every header form and both checksums.
    #[test]
    fn locates_flipped_bits_in_every_dialect() {
        let numbers = b"\x07\0\0\0\x20\0\0\0\0\0\0\0";
        for (dialect, kind, numbers) in [
            (Dialect::ROCKSDB, 1, &numbers[..0]),
            (Dialect::ROCKSDB, 5, &numbers[..4]),
            (Dialect::PEBBLE, 9, &numbers[..]),
            (Dialect::WANDB, 1, &numbers[..0]),
        ] {
            let covered = [&[kind], numbers, &[b'x'; 300][..]].concat();
            let stored = dialect.checksum().stored(&covered).to_le_bytes();
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

    /// Bit 4 of the length was flipped in an eight-byte fragment. By chance, the checksum over all
    /// 24 bytes also becomes valid if bit 2 of byte 10 is flipped.
    #[test]
    fn a_flipped_bit_in_the_length_takes_precedence_over_one_in_the_payload() {
        let bytes = b"\x47\x0f\xd4\x8a\x18\x00\x01xxxxxxxx\x05\x2b\x28\x43\0\0\x01\0\0\0\0\0\x33\x2b\x79\xee";
        let stored = u32::from_le_bytes(*bytes.first_chunk().unwrap());
        let checksum = Dialect::LEVELDB.checksum();
        assert_eq!(checksum.stored(&bytes[6..15]), stored);
        let mut flipped = *bytes;
        flipped[10] ^= 1 << 2;
        assert_eq!(checksum.stored(&flipped[6..]), stored);
        let (offset, bit, part) = (4, 4, FragmentPart::Length);
        let found = locate_bit_flip(bytes, 0, Dialect::LEVELDB);
        assert_eq!(found, Some(BitFlip { offset, bit, part }));
    }

    #[test]
    fn ignores_damage_that_a_single_flipped_bit_cannot_explain() {
        let mut bytes = fragment(&[b'x'; 300]);
        assert_eq!(locate_bit_flip(&bytes, 0, Dialect::LEVELDB), None, "nothing is wrong");
        bytes[8] ^= 1;
        bytes[200] ^= 0x40;
        assert_eq!(locate_bit_flip(&bytes, 0, Dialect::LEVELDB), None);
        assert_eq!(locate_bit_flip(&bytes[..6], 0, Dialect::LEVELDB), None);
        assert_eq!(locate_bit_flip(&[], 0, Dialect::LEVELDB), None);
    }
}
