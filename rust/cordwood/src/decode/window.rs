//! A part of the file in memory.

/// A part of the file that is held in memory.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    /// File offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// Whether the file ends with these bytes.
    pub is_last: bool,
}

impl<'a> Window<'a> {
    /// Returns the file offset just past the last byte. The addition saturates because a window,
    /// unlike a file, may extend past the largest possible offset.
    pub(crate) fn end_offset(self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }

    /// Returns the window without any bytes past the largest possible offset, since no file can
    /// have such bytes. In the returned window, the sum of a part's offset and length can't
    /// overflow.
    pub(super) fn within_offsets(self) -> Self {
        let len = usize::try_from(u64::MAX - self.offset).unwrap_or(usize::MAX);
        let bytes = &self.bytes[..self.bytes.len().min(len)];
        Window { bytes, ..self }
    }

    /// Returns the `len` bytes that start at the file offset `start`. The window must contain these
    /// bytes.
    #[inline]
    pub(crate) fn slice(self, start: u64, len: usize) -> &'a [u8] {
        let skip = start
            .checked_sub(self.offset)
            .and_then(|skip| usize::try_from(skip).ok());
        let bytes = skip.and_then(|skip| self.bytes.get(skip..)?.get(..len));
        bytes.expect("the window does not contain the bytes of the record")
    }

    /// Returns up to `len` bytes that start at the file offset `start`. Returns no bytes if the
    /// window does not contain `start`.
    #[inline]
    pub(crate) fn at(self, start: u64, len: usize) -> &'a [u8] {
        let skip = start
            .checked_sub(self.offset)
            .and_then(|skip| usize::try_from(skip).ok());
        let bytes = skip.and_then(|skip| self.bytes.get(skip..)).unwrap_or_default();
        &bytes[..bytes.len().min(len)]
    }
}
