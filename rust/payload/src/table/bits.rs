//! Bits in Arrow's layout, for Booleans and for validity. The number of bits depends on the file,
//! so there may not be enough memory for them.

use std::collections::TryReserveError;

/// A sequence of bits, for Booleans or for validity. The first bit of a byte is the least
/// significant.
#[derive(Debug, Default)]
pub struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    pub(super) fn ones(len: usize) -> Result<Self, TryReserveError> {
        let mut bytes = Vec::new();
        bytes.try_reserve(len.div_ceil(8))?;
        bytes.resize(len.div_ceil(8), u8::MAX);
        if let Some(last) = bytes.last_mut()
            && !len.is_multiple_of(8)
        {
            *last = (1 << (len % 8)) - 1;
        }
        Ok(Bits { bytes, len })
    }

    pub(super) fn push(&mut self, bit: bool) -> Result<(), TryReserveError> {
        if self.len.is_multiple_of(8) {
            self.bytes.try_reserve(1)?;
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (self.len % 8);
        }
        self.len += 1;
        Ok(())
    }

    /// Appends zeros until there are `len` bits.
    pub(super) fn pad(&mut self, len: usize) -> Result<(), TryReserveError> {
        let byte_count = len.div_ceil(8);
        self.bytes.try_reserve(byte_count.saturating_sub(self.bytes.len()))?;
        self.bytes.resize(byte_count, 0);
        self.len = len;
        Ok(())
    }

    /// Returns the bytes. Unused bits in the last byte are zero.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
