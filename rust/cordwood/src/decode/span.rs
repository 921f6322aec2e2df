//! The position of a record in the file, and of its bytes in memory.

/// The position of a record in the file. [`Decoder::data`](super::Decoder::data) returns the bytes
/// of the record.
///
/// The span of a record in a container is one byte of the container. The span of the last record
/// extends to the end of the container. Only the offset identifies the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordSpan {
    /// File offset of the first fragment's header.
    pub offset: u64,
    /// File offset after the last fragment's payload.
    pub end_offset: u64,
    /// Where the record's bytes are.
    pub data_at: DataAt,
    /// Whether the record starts after damage in the same block, under
    /// [`OnCorruption::Salvage`](super::OnCorruption::Salvage). Its checksums are valid, but the
    /// decoder had to search for its start. A payload that itself contains log fragments can look
    /// like such a record.
    pub is_salvaged: bool,
}

/// Where the bytes of a record are. Data that the decoder itself holds is valid until its next
/// step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataAt {
    /// In the window. The record is one fragment.
    #[non_exhaustive]
    Window {
        /// The number of header bytes between [`RecordSpan::offset`] and the data. The data ends at
        /// [`RecordSpan::end_offset`].
        header_len: u8,
    },
    /// In the decoder, which joined the payloads of several fragments.
    Joined,
    /// In the decoder, which decompressed the data.
    Unpacked,
    /// In a container of several records. The container is in the window or in the decoder.
    #[non_exhaustive]
    Container {
        /// The index of the record in the container, from 0.
        index: u16,
    },
}

/// The space that a record or a container takes up in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) fragment_count: u64,
    /// Bytes of its headers.
    pub(crate) header_len: u64,
    /// Bytes of its payloads. This is the length of its data, unless it is compressed or a
    /// container.
    pub(crate) payload_len: u64,
    /// Bytes of trailers between its fragments.
    pub(crate) trailer_len: u64,
}
