//! Parses the frames of zstd as RFC 8878 defines them.

/// The magic number at the start of a frame.
pub(crate) const MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";

/// The first byte of a frame's header. It says which fields follow (RFC 8878, 3.1.1.1.1).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descriptor(pub(crate) u8);

impl Descriptor {
    /// Whether the window size follows. If it does not, the frame has a single segment.
    pub(crate) fn has_window(self) -> bool {
        self.0 & 0x20 == 0
    }

    /// The length of the dictionary ID in bytes.
    pub(crate) fn dictionary_len(self) -> usize {
        [0, 1, 2, 4][usize::from(self.0 & 3)]
    }

    /// The length of the field that states the content length, or 0 if the field is absent.
    pub(crate) fn size_len(self) -> usize {
        match self.0 >> 6 {
            0 => usize::from(!self.has_window()),
            code => 1 << code,
        }
    }

    /// Whether a checksum follows the last block.
    pub(crate) fn has_checksum(self) -> bool {
        self.0 & 0x04 != 0
    }
}

/// The header of a zstd frame that states the length of its content (RFC 8878, 3.1.1.1).
pub(crate) struct FrameHeader {
    len: usize,
    /// The content length that the header states.
    pub(crate) content_len: u64,
    has_checksum: bool,
}

impl FrameHeader {
    /// Parses the header of a frame. Returns `None` if there is no header or if it does not state
    /// the content length.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        let (&descriptor, rest) = frame.strip_prefix(MAGIC)?.split_first()?;
        let descriptor = Descriptor(descriptor);
        // The reserved bit must be zero. On 64-bit systems, the library refuses a window of more
        // than 2 GiB.
        if descriptor.0 & 0x08 != 0 || (descriptor.has_window() && rest.first()? >> 3 > 21) {
            return None;
        }
        let size_len = descriptor.size_len();
        if size_len == 0 {
            return None;
        }
        let len = MAGIC.len() + 1 + usize::from(descriptor.has_window()) + descriptor.dictionary_len();
        let size = frame.get(len..len + size_len)?;
        let stated = size.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        Some(FrameHeader {
            len: len + size_len,
            content_len: stated + if size_len == 2 { 256 } else { 0 },
            has_checksum: descriptor.has_checksum(),
        })
    }

    /// Returns the offset at which the frame ends (RFC 8878, 3.1.1.2).
    pub(crate) fn end(&self, frame: &[u8]) -> Option<usize> {
        let mut at = self.len;
        loop {
            let header = frame.get(at..at + 3)?;
            let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
            let block_len = match header >> 1 & 3 {
                // An RLE block stores the repeated byte once.
                1 => 1,
                3 => return None,
                _ => header >> 3,
            };
            at += 3 + block_len as usize;
            if header & 1 == 1 {
                return Some(at + if self.has_checksum { 4 } else { 0 });
            }
        }
    }
}
