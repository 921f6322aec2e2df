//! Where a record is in the file, and where its bytes are in memory.

/// The position of a record in the file. [`Decoder::data`](super::Decoder::data) returns the bytes
/// of the record.
///
/// If a record is in a container, its span is a single byte of the container. The last record's
/// span is the exception: it extends to the container's end. In a container, a span identifies a
/// record, but doesn't show where the record is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordSpan {
    /// File offset of the first fragment's header.
    pub offset: u64,
    /// File offset just past the last fragment's payload.
    pub end_offset: u64,
    /// Where the record's bytes are in memory.
    pub data_at: DataAt,
    /// Whether the record starts after damage in the same block, under
    /// [`OnCorruption::Salvage`](super::OnCorruption::Salvage). A salvaged record has valid
    /// checksums, but the decoder had to search for its start. Log fragments inside a payload can
    /// look like a salvaged record.
    pub is_salvaged: bool,
}

/// Where a record's bytes are stored in memory. Data held by the decoder is valid until the
/// decoder's next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DataAt {
    /// The data is in the window, in a single fragment.
    #[non_exhaustive]
    Window {
        /// The number of header bytes between [`RecordSpan::offset`] and the data. The data ends at
        /// [`RecordSpan::end_offset`].
        header_len: u8,
    },
    /// The data is in the decoder, joined from the payloads of several fragments.
    Joined,
    /// The data is in the decoder, which decompressed it.
    Unpacked,
    /// The data is in a container of several records. The container is in the window or in the
    /// decoder.
    #[non_exhaustive]
    Container {
        /// The index of the record in the container, counted from 0.
        index: u16,
    },
}
