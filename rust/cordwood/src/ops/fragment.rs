//! A fragment or a gap in a file.

use crate::damage::Reason;
use crate::format::FragmentKind;

/// A fragment, or a gap: a part of a block that is not a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fragment {
    /// The file offset of the first byte.
    pub offset: u64,
    /// The file offset just past the last byte. After damage, this is the start of the next
    /// fragment found, not the end given in the header.
    pub end_offset: u64,
    /// The index of the block, counted from 0.
    pub block: u64,
    /// The kind of the fragment or gap.
    pub kind: FragmentKind,
    /// The type byte, or `None` if there is no header.
    pub type_byte: Option<u8>,
    /// The payload length in bytes as given in the header, even if it is wrong.
    pub payload_len: Option<u16>,
    /// The CRC in the header, unmasked.
    pub stored_crc: Option<u32>,
    /// The CRC computed from the bytes that the header's CRC covers. `None` if they extend past the
    /// end of the block or of the file.
    pub computed_crc: Option<u32>,
    /// The log number, if headers of this type have one.
    pub log_number: Option<u32>,
    /// The offset up to which the file had been synced, if headers of this type have one.
    pub synced_offset: Option<u64>,
    /// Why the bytes were not returned: the reason for skipping the region that contains them.
    /// `None` if they are part of a record or a trailer.
    pub reason: Option<Reason>,
    /// The file offset of the record containing the fragment, if that record was returned.
    pub record_offset: Option<u64>,
    /// Whether the fragment's record starts after damage in the same block, so that only
    /// [`OnCorruption::Salvage`](crate::OnCorruption::Salvage) returns it.
    pub is_salvaged: bool,
}
