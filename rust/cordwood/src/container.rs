//! Containers. A packed log stores many records in a container of one or more fragments. This
//! module is pure and does no I/O. Source: `docs/format/packed.md`.
//!
//! A container holds its codec's number (one byte), its record count (a varint), and its body,
//! which the codec may have compressed. The body holds the lengths of all records, as varints,
//! followed by their data. Varints are LEB128 in the shortest form, at most 5 bytes long.

use crate::dialect::{Compression, Dialect, MARK, MARK_LEN, Unsupported};
use crate::format::{BLOCK_LEN, HEADER_LEN, Header};

/// The first bytes of the mark.
const MAGIC: [u8; MARK_LEN - 2] = *b"cordwood";

/// The format version that this release writes, which is also the newest that it reads.
pub(crate) const VERSION: u8 = 1;

/// The maximum number of records in a container. Their offsets are consecutive and must lie in the
/// block where the container starts, so a container with more records could never be valid.
pub(crate) const COUNT_MAX: usize = BLOCK_LEN;

/// The data length, in bytes, at which a writer closes a stored container: 4 KiB, so that a flipped
/// bit destroys at most 4 KiB of data.
pub(crate) const STORED_LEN_MAX: usize = BLOCK_LEN / 8;

/// The data length, in bytes, at which a writer closes a compressed container: 32 KiB.
pub(crate) const ZSTD_LEN_MAX: usize = BLOCK_LEN;

/// The length, in bytes, of the longest varint.
pub(crate) const VARINT_LEN_MAX: usize = 5;

/// The maximum number of bytes before a container's body.
pub(crate) const HEAD_LEN_MAX: usize = 1 + VARINT_LEN_MAX;

/// Returns the length limit, in bytes, for a reader that refuses records longer than
/// `record_len_max`. The limit applies to a joined container and to a decompressed body of `count`
/// records. A container of the usual length is read even if `record_len_max` is smaller.
pub(crate) fn len_max(record_len_max: u64, count: usize) -> u64 {
    record_len_max
        .max(USUAL_LEN_MAX)
        .saturating_add((VARINT_LEN_MAX * count) as u64)
}

/// The length, in bytes, of the longest body that every reader accepts. Its varints are not
/// counted.
const USUAL_LEN_MAX: u64 = 1 << 20;

/// How a container's body is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Codec {
    /// The body is stored uncompressed.
    Stored = 0,
    /// The body is one zstd frame that declares the length of its content and uses no dictionary.
    Zstd = 1,
}

impl Codec {
    /// Returns the codec with this number, or `None` if this release doesn't know it.
    pub(crate) const fn from_byte(byte: u8) -> Option<Codec> {
        match byte {
            0 => Some(Codec::Stored),
            1 => Some(Codec::Zstd),
            _ => None,
        }
    }

    /// Returns the compression of a log whose containers use this codec.
    pub(crate) const fn compression(self) -> Option<Compression> {
        match self {
            Codec::Stored => None,
            Codec::Zstd => Some(Compression::Zstd),
        }
    }
}

/// The mark at the start of a packed log. It identifies the log as packed even if ordinary records
/// follow. A program that doesn't know the mark's version fails immediately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) version: u8,
    /// The number of the codec used by the log's writer. Each container also names its own codec.
    pub(crate) codec: u8,
}

impl Mark {
    /// The length of a newly written mark, including its header.
    pub(crate) const FRAGMENT_LEN: usize = HEADER_LEN + MARK_LEN;

    /// Creates the mark for a new log.
    pub(crate) const fn new(codec: Codec) -> Self {
        Mark {
            version: VERSION,
            codec: codec as u8,
        }
    }

    /// Decodes the payload of a mark. Returns `None` if the payload is not a mark. The bytes after
    /// the codec are reserved for later versions and are ignored.
    pub(crate) fn decode(payload: &[u8]) -> Option<Mark> {
        match payload.strip_prefix(&MAGIC)? {
            &[version, codec, ..] => Some(Mark { version, codec }),
            _ => None,
        }
    }

    /// Returns why this release can't read the log, or `None` if it can. `offset` is the file
    /// offset of this mark.
    pub(crate) fn unsupported(self, offset: u64) -> Option<Unsupported> {
        let Mark { version, codec } = self;
        if version != VERSION {
            return Some(Unsupported::PackedVersion { version, offset });
        }
        let is_unknown = Codec::from_byte(codec).is_none();
        is_unknown.then_some(Unsupported::Codec {
            codec: codec.into(),
            offset,
        })
    }

    /// Returns how the log's writer compresses containers.
    pub(crate) fn compression(self) -> Option<Compression> {
        Codec::from_byte(self.codec)?.compression()
    }

    /// Encodes the mark and its header the way a writer does.
    pub(crate) fn fragment(self) -> Vec<u8> {
        let payload = self.encode();
        let checksum = Dialect::PACKED.checksum();
        let header = Header {
            masked_crc: checksum.store(checksum.extend(checksum.crc(&[MARK]), &payload)),
            len: MARK_LEN as u16,
            kind: MARK,
        };
        [&header.encode()[..], &payload].concat()
    }

    /// Encodes the payload of the mark.
    pub(crate) fn encode(self) -> [u8; MARK_LEN] {
        let mut payload = [0; MARK_LEN];
        payload[..MAGIC.len()].copy_from_slice(&MAGIC);
        payload[MAGIC.len()..].copy_from_slice(&[self.version, self.codec]);
        payload
    }
}

/// The start of a container, up to its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The number of records, 1 to [`COUNT_MAX`].
    pub(crate) count: usize,
    /// The offset of the body from the start of the container.
    pub(crate) len: usize,
}

impl Head {
    /// Decodes the record count that follows the codec at the start of `container`. Returns `None`
    /// if the count is not valid.
    pub(crate) fn decode(container: &[u8]) -> Option<Head> {
        let (count, body) = read_varint(container.get(1..)?)?;
        let count = usize::try_from(count).ok()?;
        (1..=COUNT_MAX).contains(&count).then_some(Head {
            count,
            len: container.len() - body.len(),
        })
    }

    /// Appends a container's codec and record count.
    pub(crate) fn encode(codec: Codec, count: usize, out: &mut Vec<u8>) {
        out.push(codec as u8);
        push_varint(count as u64, out);
    }

    /// Checks whether each record of a container at `start..end` has its own offset. The record
    /// with index `i` has the offset `start + i`, which must be less than both `end` and
    /// `block_end`. The container starts in the block that ends at `block_end`.
    pub(crate) fn has_offsets(self, start: u64, end: u64, block_end: u64) -> bool {
        let room = end.min(block_end).checked_sub(start);
        room.is_some_and(|room| self.count as u64 <= room)
    }
}

/// Reads the lengths at the start of `body`. Replaces the contents of `offsets` with the start of
/// each of the `count` records in the data, followed by the end of the last record. Returns the
/// offset in `body` at which the data starts. Returns `None` if a length is not valid, or if the
/// lengths don't add up to the number of bytes after them.
///
/// `offsets` must have room for one more entry than there are records.
// Inlining this function would leave too few registers for the loop.
#[inline(never)]
pub(crate) fn read_offsets(body: &[u8], count: usize, offsets: &mut Vec<usize>) -> Option<usize> {
    offsets.resize(count + 1, 0);
    offsets[0] = 0;
    let mut rest = body;
    // There are at most `COUNT_MAX` lengths, none greater than 2^35 bytes. If their sum doesn't fit
    // in a `usize`, the bytes can't be in memory.
    let mut total = 0_u64;
    let mut index = 1;
    while index <= count {
        if let Some((lens, after)) = rest.split_first_chunk::<SHORT_COUNT>()
            && u64::from_le_bytes(*lens) & SHORT_MASK == 0
            && let Some(places) = offsets[index..].first_chunk_mut::<SHORT_COUNT>()
        {
            for (place, &len) in places.iter_mut().zip(lens) {
                total += u64::from(len);
                *place = total as usize;
            }
            rest = after;
            index += SHORT_COUNT;
        } else {
            let len;
            (len, rest) = read_varint(rest)?;
            total += len;
            offsets[index] = total as usize;
            index += 1;
        }
    }
    (total == rest.len() as u64).then_some(body.len() - rest.len())
}

/// The number of lengths read at once if each takes one byte.
const SHORT_COUNT: usize = 8;

/// The bits that are clear in one-byte varints.
const SHORT_MASK: u64 = 0x8080_8080_8080_8080;

/// Reads the varint at the start of `bytes`. Returns the value and the bytes after the varint.
/// Returns `None` if the varint is cut off, not in the shortest form, or longer than
/// [`VARINT_LEN_MAX`].
#[inline]
pub(crate) fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        return Some((u64::from(first), rest));
    }
    let mut value = u64::from(first & 0x7f);
    for (at, &byte) in rest.iter().enumerate().take(VARINT_LEN_MAX - 1) {
        value |= u64::from(byte & 0x7f) << (7 * (at + 1));
        if byte < 0x80 {
            return (byte > 0).then_some((value, &rest[at + 1..]));
        }
    }
    None
}

/// Appends `value` as a varint, which must be at most [`VARINT_LEN_MAX`] bytes long.
#[inline]
pub(crate) fn push_varint(mut value: u64, out: &mut Vec<u8>) {
    debug_assert!(varint_len(value) <= VARINT_LEN_MAX);
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns the length of `value` as a varint, in bytes.
#[inline]
pub(crate) const fn varint_len(value: u64) -> usize {
    let bits = u64::BITS as usize - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks vectors 1 and 2 of `docs/format/packed.md`.
    #[test]
    fn an_encoded_mark_is_ten_bytes_long() {
        for (codec, payload) in [(Codec::Stored, b"cordwood\x01\x00"), (Codec::Zstd, b"cordwood\x01\x01")] {
            assert_eq!(&Mark::new(codec).encode(), payload);
            assert_eq!(Mark::decode(payload), Some(Mark::new(codec)));
        }
        // The first mark is vector 11. The second is the longer mark that a later version might
        // use.
        let later = Mark { version: 2, codec: 9 };
        assert_eq!(Mark::decode(b"cordwood\x02\x09"), Some(later));
        assert_eq!(Mark::decode(b"cordwood\x02\x09and more"), Some(later));
        for payload in [&b""[..], b"cordwood\x01", b"Cordwood\x01\x00"] {
            assert_eq!(Mark::decode(payload), None, "{payload:?}");
        }
    }

    #[test]
    fn rejects_non_minimal_varints_and_varints_over_five_bytes() {
        let max = (1 << 35) - 1;
        for (value, bytes) in [
            (0, &b"\x00"[..]),
            (127, b"\x7f"),
            (128, b"\x80\x01"),
            (300, b"\xac\x02"),
            (32_768, b"\x80\x80\x02"),
            (max, b"\xff\xff\xff\xff\x7f"),
        ] {
            let mut out = Vec::new();
            push_varint(value, &mut out);
            assert_eq!((&out[..], varint_len(value)), (bytes, bytes.len()));
            assert_eq!(read_varint(&[bytes, b"x"].concat()), Some((value, &b"x"[..])));
            for len in 0..bytes.len() {
                assert_eq!(read_varint(&bytes[..len]), None);
            }
        }
        for bytes in [
            &b"\x80\x00"[..],
            b"\xff\x80\x00",
            b"\x80\x80\x80\x80\x80\x01",
            b"\xff\xff\xff\xff\x80\x00",
        ] {
            assert_eq!(read_varint(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_container_holds_1_to_32768_records() {
        for (count, is_valid) in [(0, false), (1, true), (32_768, true), (32_769, false)] {
            let mut container = vec![0];
            push_varint(count as u64, &mut container);
            let len = container.len();
            container.extend(b"body");
            assert_eq!(
                Head::decode(&container),
                is_valid.then_some(Head { count, len }),
                "{count}"
            );
        }
        assert_eq!(Head::decode(b""), None);
        assert_eq!(Head::decode(b"\x00"), None);
    }

    #[test]
    fn every_record_in_a_container_needs_its_own_first_block_offset() {
        let head = Head { count: 300, len: 3 };
        assert!(head.has_offsets(10, 310, 32_768) && !head.has_offsets(10, 309, 32_768));
        assert!(head.has_offsets(32_468, 40_000, 32_768) && !head.has_offsets(32_469, 40_000, 32_768));
        assert!(!head.has_offsets(u64::MAX - 3, u64::MAX, u64::MAX));
    }

    /// Checks the body of vectors 3, 4 and 9.
    #[test]
    fn record_lengths_in_a_container_must_add_up_to_the_remaining_bytes() {
        let mut offsets = Vec::new();
        assert_eq!(read_offsets(b"\x01\x00\x03afoo", 3, &mut offsets), Some(3));
        assert_eq!(offsets, [0, 1, 1, 4]);
        for body in [
            &b"\x01\x00\x02afoo"[..],
            b"\x01\x00\x04afoo",
            b"\x01\x00",
            b"\x01\x80\x00afo",
            b"\xff\xff\xff\xff\x7f\xff\xff\xff\xff\x7f\xff\xff\xff\xff\x7f",
        ] {
            assert_eq!(read_offsets(body, 3, &mut offsets), None, "{body:?}");
        }
        assert_eq!(read_offsets(b"\x00\x00", 2, &mut offsets), Some(2));
        // Offsets left in the vector by another container are replaced.
        let mut offsets = vec![9; 9];
        assert_eq!(read_offsets(b"\x01\x00\x03afoo", 3, &mut offsets), Some(3));
        assert_eq!(offsets, [0, 1, 1, 4]);
    }

    /// The test also covers long lengths, both between short ones and at the end.
    #[test]
    fn reading_short_lengths_in_bulk_gives_the_expected_offsets() {
        for seed in 0..2000_u64 {
            let mut random = seed;
            let mut next = |max: u64| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 33) % max
            };
            let count = 1 + next(40) as usize;
            let lens: Vec<u64> = (0..count)
                .map(|_| if next(16) == 0 { next(300) } else { next(128) })
                .collect();
            let (mut body, mut expected, mut sum) = (Vec::new(), vec![0], 0);
            for &len in &lens {
                push_varint(len, &mut body);
                sum += len as usize;
                expected.push(sum);
            }
            let start = body.len();
            body.resize(start + sum, 0xff);

            let mut offsets = Vec::new();
            assert_eq!(
                (read_offsets(&body, count, &mut offsets), &offsets),
                (Some(start), &expected),
                "{lens:?}"
            );
            body.push(0xff);
            assert_eq!(read_offsets(&body, count, &mut offsets), None, "{lens:?}");
            assert_eq!(read_offsets(&body[..start - 1], count, &mut offsets), None, "{lens:?}");
        }
    }
}
