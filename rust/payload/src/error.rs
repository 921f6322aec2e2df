//! Payload faults and their positions.

use std::fmt;

/// A fault in a record, with the position of the affected bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PayloadError {
    /// The byte offset in the payload where the unreadable part starts. For an encoding error, this
    /// is the number of bytes already written.
    pub offset: usize,
    /// The number of bytes affected, starting at `offset`.
    pub len: usize,
    /// The reason why these bytes cannot be decoded or encoded.
    pub reason: PayloadReason,
}

/// The reason why a payload cannot be decoded or encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PayloadReason {
    /// The payload, or a field in it, ends inside a number or a string.
    Truncated,
    /// A variable-length number is longer than 5 bytes (32 bits) or 10 bytes (64 bits).
    BadVarint,
    /// An encoding that engines can read but never write. Examples are a number with more bytes or
    /// bits than necessary, an explicit column family 0, a boolean other than 0 or 1, a repeated
    /// value, and a batch whose sequence numbers have more than 56 bits.
    NonCanonical,
    /// A tag that the engine does not know, or does not allow in this kind of record.
    UnknownTag {
        /// The tag.
        tag: u32,
    },
    /// The length of a field does not match its contents.
    BadLength,
    /// An internal key is too short for the 8 bytes that hold its sequence number and type.
    BadKey,
    /// The number of operations in the batch differs from the number in its header.
    WrongCount {
        /// The number in the header.
        stated: u32,
        /// The number of operations in the batch that the header should have counted.
        found: u64,
    },
    /// A wire type in a protocol buffer is invalid or does not match the field.
    BadWireType,
    /// A required field is missing from a protocol buffer.
    MissingField {
        /// The number of the field.
        tag: u32,
    },
    /// Some text is not valid UTF-8.
    NotUtf8,
    /// A property has a reserved name: `__key__` or `__other_fields__`.
    ReservedName,
    /// The data has more levels of nesting than any program writes.
    TooDeep,
    /// The data to encode contains a string of more than 2^32 - 1 bytes, a sequence number of more
    /// than 56 bits, or more than 2^32 - 1 operations.
    TooLarge,
    /// There is not enough memory to encode.
    OutOfMemory,
}

impl PayloadReason {
    /// Returns a stable name, such as `"truncated"`. The name is part of the interface and is the
    /// same in Python. However, Python raises a `MemoryError` for `OutOfMemory`.
    pub const fn as_str(self) -> &'static str {
        self.words().0
    }

    /// Returns the name of the reason and the sentence that describes it, or just the name if the
    /// sentence contains numbers.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            PayloadReason::Truncated => ("truncated", "the payload ends inside a number or a string"),
            PayloadReason::BadVarint => ("bad_varint", "an unterminated variable-length number"),
            PayloadReason::NonCanonical => ("non_canonical", "a value in a form that no program writes"),
            PayloadReason::UnknownTag { .. } => ("unknown_tag", ""),
            PayloadReason::BadLength => ("bad_length", "a field whose length does not match its content"),
            PayloadReason::BadKey => ("bad_key", "an internal key that is shorter than 8 bytes"),
            PayloadReason::WrongCount { .. } => ("wrong_count", ""),
            PayloadReason::BadWireType => ("bad_wire_type", "a field of the wrong wire type"),
            PayloadReason::MissingField { .. } => ("missing_field", ""),
            PayloadReason::NotUtf8 => ("not_utf8", "text that is not UTF-8"),
            PayloadReason::ReservedName => ("reserved_name", "a property with a reserved name"),
            PayloadReason::TooDeep => ("too_deep", "nested more deeply than any program writes"),
            PayloadReason::TooLarge => ("too_large", "too large for the format"),
            PayloadReason::OutOfMemory => ("out_of_memory", "there is not enough memory"),
        }
    }
}

impl fmt::Display for PayloadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PayloadReason::UnknownTag { tag } => write!(f, "tag {tag} is unknown or not allowed here"),
            PayloadReason::WrongCount { stated, found } => {
                let operations = if *stated == 1 { "operation" } else { "operations" };
                let are = if *found == 1 { "is" } else { "are" };
                write!(f, "the header states {stated} {operations}, but there {are} {found}")
            }
            PayloadReason::MissingField { tag } => write!(f, "the required field {tag} is missing"),
            _ => f.write_str(self.words().1),
        }
    }
}

impl PayloadError {
    pub(super) fn new(offset: usize, len: usize, reason: PayloadReason) -> Self {
        PayloadError { offset, len, reason }
    }
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PayloadError { offset, len, reason } = self;
        let bytes = if *len == 1 { "byte" } else { "bytes" };
        write!(f, "{reason} ({len} {bytes} at offset {offset} of the payload)")
    }
}

impl std::error::Error for PayloadError {}
