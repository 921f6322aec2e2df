//! Where a record is: in the file, and its bytes in memory.

/// The position of a record in the file. [`Decoder::data`] returns its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordSpan {
    /// File offset of the first fragment's header.
    pub offset: u64,
    /// File offset after the last fragment's payload.
    pub end_offset: u64,
    /// Whether the record has several fragments, or is compressed, so that its bytes are held by
    /// the decoder and not by the window.
    pub is_joined: bool,
    /// Bytes of the header in front of the data, if that is in the window.
    pub(crate) header_len: u8,
    /// Whether it begins after damage in the same block, under [`OnCorruption::Salvage`]. Its
    /// checksums are valid, but its beginning had to be searched for: a payload that itself holds
    /// log fragments can look like this.
    pub is_salvaged: bool,
}

/// The space of a record in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) fragment_count: u64,
    /// Bytes of its headers.
    pub(crate) header_len: u64,
    /// Bytes of its payloads: those of its data, unless it is compressed.
    pub(crate) payload_len: u64,
}
