//! Where a record is: in the file, and its bytes in memory.

/// The position of a record in the file. That of a record in a container is one byte of the container,
/// or all that is left of it for the last record: only its offset says which record it is. [`Decoder::data`](super::Decoder::data) returns its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordSpan {
    /// File offset of the first fragment's header.
    pub offset: u64,
    /// File offset after the last fragment's payload.
    pub end_offset: u64,
    /// Where its bytes are.
    pub data_at: DataAt,
    /// Whether it starts after damage in the same block, under
    /// [`OnCorruption::Salvage`](super::OnCorruption::Salvage). Its checksums are valid, but its
    /// start had to be searched for: a payload that itself contains log fragments can look like
    /// this.
    pub is_salvaged: bool,
}

/// Where the bytes of a record are. Data that the decoder itself holds is valid until its next
/// step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataAt {
    /// In the window: the record is one fragment.
    #[non_exhaustive]
    Window {
        /// Bytes of the header between [`RecordSpan::offset`] and the data, which ends at
        /// [`RecordSpan::end_offset`].
        header_len: u8,
    },
    /// In the decoder, which has joined the payloads of several fragments.
    Joined,
    /// In the decoder, which has decompressed them.
    Unpacked,
    /// In a container of several records, which is in the window or in the decoder.
    #[non_exhaustive]
    Container {
        /// The place of the record in the container, from 0.
        index: u16,
    },
}

/// The space that a record, or a container, takes up in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) fragment_count: u64,
    /// Bytes of its headers.
    pub(crate) header_len: u64,
    /// Bytes of its payloads: those of its data, unless it is compressed or a container.
    pub(crate) payload_len: u64,
    /// Bytes of trailers between its fragments.
    pub(crate) trailer_len: u64,
}
