//! The constants of the log format, and functions for its headers and blocks. This module is pure
//! and does not do any I/O.
//!
//! A file is divided into **blocks** of 32 KiB, counted from offset 0. A block contains
//! **fragments**, each consisting of a 7-byte header and a payload. A **record** is either one FULL
//! fragment, or a FIRST fragment followed by any number of MIDDLE fragments and a LAST fragment. If
//! there is no room for a header at the end of a block, the remaining bytes are the block's
//! **trailer**.
//!
//! This module describes LevelDB's headers and blocks. In other dialects, headers are longer, or
//! blocks are not counted from offset 0. See [`Grid`](crate::codec::Grid).
//!
//! Source: LevelDB `doc/log_format.md` and `db/log_format.h`.

use crate::names::shows_name;

/// The number of bytes in a block. The first block starts at file offset 0.
#[cfg(not(cordwood_small_blocks))]
pub const BLOCK_LEN: usize = 32_768;

/// This block length is for `rust/exhaustive`, which tries all small files. A block of 24 bytes has
/// room for any header (7, 11 or 19 bytes) and a payload. It also has room for a packed log's mark
/// (17 bytes) followed by one header. A shorter block would have no room for the header after the
/// mark.
#[cfg(cordwood_small_blocks)]
pub const BLOCK_LEN: usize = 24;

/// The number of bytes in a LevelDB fragment's header: the masked checksum (u32), the payload
/// length (u16) and the kind (u8), in little-endian order.
pub const HEADER_LEN: usize = 7;

/// The position of the length in a header.
pub(crate) const LENGTH_AT: usize = 4;

/// The position of the type byte in a header. The checksum covers everything from this byte onward.
pub(crate) const KIND_AT: usize = HEADER_LEN - 1;

/// The longest payload that a LevelDB fragment can carry: a block minus one header, 32,761 bytes.
pub const FRAGMENT_LEN_MAX: usize = BLOCK_LEN - HEADER_LEN;

/// The longest trailer in a LevelDB block: 6 bytes. One more byte would leave room for a header.
pub const TRAILER_LEN_MAX: usize = HEADER_LEN - 1;

/// The position of a fragment in its record, as given by the type byte in its header.
///
/// These are the only four kinds. Any other byte in a file is reported as a number
/// ([`Reason::UnknownKind`](crate::damage::Reason::UnknownKind)), so it can never be mistaken for
/// an internal state. LevelDB represents "end of file" and "bad record" internally as types 5 and
/// 6, so it mistakes a valid type 5 in a file for the end of the file.
///
/// ```
/// use cordwood_log::format::Kind;
/// assert_eq!(Kind::from_wire(1), Some(Kind::Full));
/// assert_eq!(Kind::from_wire(5), None);
/// assert_eq!(Kind::Last as u8, 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A complete record.
    Full = 1,
    /// The first fragment of a record that continues in the next block.
    First = 2,
    /// A fragment between the first and the last fragment of a record.
    Middle = 3,
    /// The last fragment of a record.
    Last = 4,
}

impl Kind {
    /// Returns the kind that the wire byte `byte` encodes, or `None` if it doesn't encode one.
    pub const fn from_wire(byte: u8) -> Option<Kind> {
        match byte {
            1 => Some(Kind::Full),
            2 => Some(Kind::First),
            3 => Some(Kind::Middle),
            4 => Some(Kind::Last),
            _ => None,
        }
    }

    /// Returns the kind of a fragment. `is_first` and `is_last` give the fragment's position in its
    /// record.
    pub(crate) const fn of_part(is_first: bool, is_last: bool) -> Kind {
        match (is_first, is_last) {
            (true, true) => Kind::Full,
            (true, false) => Kind::First,
            (false, false) => Kind::Middle,
            (false, true) => Kind::Last,
        }
    }
}

/// The kind of one part of a log. It is determined by the part's type byte or, if there is none, by
/// the part's contents.
///
/// The names come from the engines: RocksDB `db/log_format.h`, Pebble `record/record.go`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FragmentKind {
    /// Types 1 to 4.
    Plain(Kind),
    /// Types 5 to 8, which carry the log number.
    Recyclable(Kind),
    /// Pebble's types 9 to 12, which carry the log number and the offset up to which the file had
    /// been synced.
    WalSync(Kind),
    /// Type 9, which declares how the records in a RocksDB log are compressed.
    SetCompression,
    /// Types 10 and 11, which give the lengths of timestamps in a RocksDB log.
    TimestampSizes,
    /// Types 130 and 131, which identify the predecessor of a RocksDB log.
    Predecessor,
    /// Types 0x40, 0x42, 0x44 and 0x46, whose payload is a container of records.
    Packed(Kind),
    /// Type 0x48, the mark at the start of a packed log.
    PackedMark,
    /// Type 0: space that was never written.
    Zero,
    /// A type that is unknown in the dialect.
    Unknown,
    /// Pebble's end-of-log trailer.
    EndTrailer,
    /// The dialect's file header.
    FileHeader,
    /// The bytes at the end of a block where there is no room for a header.
    Trailer,
    /// Zeros.
    Zeros,
    /// Other bytes that have no plausible header.
    Rest,
}

/// Defines every kind of fragment and its name.
macro_rules! fragment_kinds {
    ($($kind:ident $(($part:ident))? = $name:literal;)+) => {
        impl FragmentKind {
        /// All kinds, in no particular order.
            pub const ALL: [FragmentKind; 27] = [$(FragmentKind::$kind $((Kind::$part))?),+];

            /// Returns a stable name, such as `"full"` or `"recyclable_first"`. The name is part of
            /// the interface and is the same in Python and on the command line.
            ///
            /// ```
            /// use cordwood_log::format::{FragmentKind, Kind};
            /// assert_eq!(FragmentKind::WalSync(Kind::Last).as_str(), "wal_sync_last");
            /// ```
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(FragmentKind::$kind $((Kind::$part))? => $name,)+
                }
            }
        }
    };
}

fragment_kinds! {
    Plain(Full) = "full";
    Plain(First) = "first";
    Plain(Middle) = "middle";
    Plain(Last) = "last";
    Recyclable(Full) = "recyclable_full";
    Recyclable(First) = "recyclable_first";
    Recyclable(Middle) = "recyclable_middle";
    Recyclable(Last) = "recyclable_last";
    WalSync(Full) = "wal_sync_full";
    WalSync(First) = "wal_sync_first";
    WalSync(Middle) = "wal_sync_middle";
    WalSync(Last) = "wal_sync_last";
    SetCompression = "set_compression";
    TimestampSizes = "timestamp_sizes";
    Predecessor = "predecessor";
    Packed(Full) = "packed_full";
    Packed(First) = "packed_first";
    Packed(Middle) = "packed_middle";
    Packed(Last) = "packed_last";
    PackedMark = "packed_mark";
    Zero = "zero";
    Unknown = "unknown";
    EndTrailer = "end_trailer";
    FileHeader = "file_header";
    Trailer = "trailer";
    Zeros = "zeros";
    Rest = "rest";
}

shows_name!(FragmentKind);

/// A fragment's header as stored in the file. Its values have not been checked.
///
/// ```
/// use cordwood_log::format::Header;
/// let header = Header::decode(b"\xdd\x5f\xb3\x7a\x03\x00\x01");
/// assert_eq!((header.len, header.kind), (3, 1));
/// assert_eq!(&header.encode(), b"\xdd\x5f\xb3\x7a\x03\x00\x01");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The masked CRC-32C of the type byte and the payload. See [`mask`](crate::crc32c::mask).
    pub masked_crc: u32,
    /// The number of payload bytes that follow the header.
    pub len: u16,
    /// The type byte. See [`Kind::from_wire`].
    pub kind: u8,
}

impl Header {
    /// Decodes a header from its 7 bytes.
    #[inline]
    pub const fn decode(bytes: &[u8; HEADER_LEN]) -> Header {
        let [c0, c1, c2, c3, l0, l1, kind] = *bytes;
        Header {
            masked_crc: u32::from_le_bytes([c0, c1, c2, c3]),
            len: u16::from_le_bytes([l0, l1]),
            kind,
        }
    }

    /// Checks whether the length and the type are 0. Such a header does not start a fragment: the
    /// rest of the block should be zeros.
    pub(crate) const fn is_zero(self) -> bool {
        self.kind == 0 && self.len == 0
    }

    /// Encodes the header in 7 bytes.
    #[inline]
    pub const fn encode(self) -> [u8; HEADER_LEN] {
        let [c0, c1, c2, c3] = self.masked_crc.to_le_bytes();
        let [l0, l1] = self.len.to_le_bytes();
        [c0, c1, c2, c3, l0, l1, self.kind]
    }
}

/// Returns the file offset of the start of the block containing `offset`, in LevelDB's dialect.
#[inline]
pub const fn block_start(offset: u64) -> u64 {
    offset - offset % BLOCK_LEN as u64
}

/// Returns the number of bytes (1 to [`BLOCK_LEN`]) from `offset` to the end of its block in
/// LevelDB's dialect.
#[inline]
pub const fn block_left(offset: u64) -> usize {
    BLOCK_LEN - (offset % BLOCK_LEN as u64) as usize
}

/// Returns the number of trailer bytes (0 to [`TRAILER_LEN_MAX`]) that LevelDB's dialect needs at
/// `offset` before the next header.
#[inline]
pub const fn trailer_len(offset: u64) -> usize {
    let left = block_left(offset);
    if left < HEADER_LEN { left } else { 0 }
}

/// Returns how many bytes a record of `record_len` bytes adds to a file of `offset` bytes in
/// LevelDB's dialect. This includes the trailer before the record, and the record's headers and
/// payload.
///
/// Returns `u64::MAX` if the number does not fit in a `u64`.
///
/// ```
/// use cordwood_log::format::encoded_len;
/// assert_eq!(encoded_len(0, 3), 7 + 3);
/// // Seven bytes left: an empty FIRST fills the block, all data follows in the next.
/// assert_eq!(encoded_len(32_761, 3), 7 + 7 + 3);
/// // Six bytes left: they become a trailer of zeros.
/// assert_eq!(encoded_len(32_762, 3), 6 + 7 + 3);
/// ```
pub const fn encoded_len(offset: u64, record_len: u64) -> u64 {
    let trailer = trailer_len(offset) as u64;
    let left = if trailer > 0 { BLOCK_LEN } else { block_left(offset) };
    let first_room = (left - HEADER_LEN) as u64;
    let later = record_len.saturating_sub(first_room).div_ceil(FRAGMENT_LEN_MAX as u64);
    (trailer + HEADER_LEN as u64)
        .saturating_add(record_len)
        .saturating_add(later.saturating_mul(HEADER_LEN as u64))
}

/// Returns `bytes` without trailing zeros, which may be unwritten space in a preallocated file.
/// Writes become visible in order, so all bytes before a nonzero byte have been written.
pub(crate) fn without_zeros(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..len]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn headers_round_trip() {
        let header = Header {
            masked_crc: 0x7ab3_5fdd,
            len: 0x0304,
            kind: 0xfe,
        };
        assert_eq!(Header::decode(&header.encode()), header);
    }

    #[test]
    fn block_arithmetic_at_block_boundaries() {
        assert_eq!((block_start(0), block_left(0), trailer_len(0)), (0, 32_768, 0));
        assert_eq!(
            (block_start(32_767), block_left(32_767), trailer_len(32_767)),
            (0, 1, 1)
        );
        assert_eq!((block_start(32_768), block_left(32_768)), (32_768, 32_768));
        assert_eq!((trailer_len(32_761), trailer_len(32_762)), (0, 6));
    }

    #[test]
    fn each_type_byte_maps_to_at_most_one_kind() {
        let kinds: Vec<u8> = (0..=255).filter(|&b| Kind::from_wire(b).is_some()).collect();
        assert_eq!(kinds, [1, 2, 3, 4]);
        assert!(kinds.iter().all(|&b| Kind::from_wire(b).unwrap() as u8 == b));
    }

    #[test]
    fn encoded_length_does_not_overflow() {
        assert_eq!(encoded_len(0, u64::MAX), u64::MAX);
    }

    #[test]
    fn fragment_kind_names_are_unique() {
        let names: BTreeSet<_> = FragmentKind::ALL.map(FragmentKind::as_str).into();
        assert_eq!(names.len(), FragmentKind::ALL.len());
    }
}
