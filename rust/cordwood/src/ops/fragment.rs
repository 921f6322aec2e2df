//! A fragment, or other bytes of a file that are listed as if they were one.

use crate::damage::Reason;
use crate::format::FragmentKind;

/// A fragment, or a gap: a part of a block that is not a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fragment {
    /// File offset of its first byte.
    pub offset: u64,
    /// File offset after its last byte. After damage, this is the start of the next fragment found,
    /// not the end that the header states.
    pub end_offset: u64,
    /// The index of its block, from 0.
    pub block: u64,
    /// Its kind.
    pub kind: FragmentKind,
    /// The type byte, or `None` if there is no header.
    pub type_byte: Option<u8>,
    /// Bytes of payload that the header states, whether or not this is correct.
    pub payload_len: Option<u16>,
    /// The CRC that the header states, unmasked.
    pub stored_crc: Option<u32>,
    /// The CRC computed from the bytes that the header covers. `None` if they extend past the end
    /// of the block or of the file.
    pub computed_crc: Option<u32>,
    /// The number of the log, if headers of this type carry one.
    pub log_number: Option<u32>,
    /// The offset up to which the file had been synced, if headers of this type state it.
    pub synced_offset: Option<u64>,
    /// Why these bytes were not returned: the reason of the skipped region that contains them.
    /// `None` if they are part of a record or a trailer.
    pub reason: Option<Reason>,
    /// File offset of the record that contains it, if that record was returned.
    pub record_offset: Option<u64>,
    /// Whether that record starts after damage in the same block, so that only
    /// [`OnCorruption::Salvage`](crate::OnCorruption::Salvage) returns it.
    pub is_salvaged: bool,
}
