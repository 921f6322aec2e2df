//! Bits as Arrow stores them, for Booleans and for validity.

/// Bits. The first bit in a byte is its lowest.
#[derive(Debug, Default)]
pub(crate) struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    pub(crate) fn ones(len: usize) -> Self {
        let mut bytes = vec![u8::MAX; len.div_ceil(8)];
        if let Some(last) = bytes.last_mut()
            && !len.is_multiple_of(8)
        {
            *last = (1 << (len % 8)) - 1;
        }
        Bits { bytes, len }
    }

    pub(crate) fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (self.len % 8);
        }
        self.len += 1;
    }

    /// Appends zeros up to a length.
    pub(crate) fn pad(&mut self, len: usize) {
        self.bytes.resize(len.div_ceil(8), 0);
        self.len = len;
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
