//! Numbers and strings in the encoding used by LevelDB's `util/coding.h`. A [`Cursor`] reads them,
//! and functions write them.

use super::error::{PayloadError, PayloadReason};

/// Reads a payload from front to back. After an error, the cursor's position is meaningless.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    /// The payload, up to the last byte this cursor can read. It includes the bytes before the
    /// cursor, so that offsets count from the start of the payload.
    payload: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(payload: &'a [u8], offset: usize) -> Self {
        Cursor { payload, offset }
    }

    #[inline]
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    #[inline]
    pub(super) fn is_at_end(&self) -> bool {
        self.offset >= self.payload.len()
    }

    #[inline]
    pub(super) fn skip(&mut self, len: usize) {
        self.offset += len;
    }

    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.payload.get(self.offset..).unwrap_or_default()
    }

    /// Returns an error about the bytes from `start` to the current position.
    pub(super) fn error(&self, start: usize, reason: PayloadReason) -> PayloadError {
        PayloadError::new(start, self.offset.saturating_sub(start), reason)
    }

    /// Returns an error that covers all bytes from the current position onward.
    fn error_here(&self, reason: PayloadReason) -> PayloadError {
        PayloadError::new(self.offset, self.rest().len(), reason)
    }

    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], PayloadError> {
        let (array, _) = self
            .rest()
            .split_first_chunk()
            .ok_or_else(|| self.error_here(PayloadReason::Truncated))?;
        self.offset += LEN;
        Ok(*array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, PayloadError> {
        self.array().map(|[byte]| byte)
    }

    /// Reads a byte that is 0 or 1.
    pub(super) fn bool(&mut self) -> Result<bool, PayloadError> {
        let start = self.offset;
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.error(start, PayloadReason::NonCanonical)),
        }
    }

    /// Reads a 4-byte little-endian number (`GetFixed32`).
    pub(super) fn fixed32(&mut self) -> Result<u32, PayloadError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads an 8-byte little-endian number (`GetFixed64`).
    pub(super) fn fixed64(&mut self) -> Result<u64, PayloadError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a number of at most 5 bytes, each holding 7 bits, lowest bits first (`GetVarint32`).
    /// If a byte's high bit is set, more bytes follow.
    #[inline]
    pub(super) fn varint32(&mut self) -> Result<u32, PayloadError> {
        let start = self.offset;
        let value = self.varint(5)?;
        // Unlike this function, the engines drop bits that don't fit.
        u32::try_from(value).map_err(|_| self.error(start, PayloadReason::NonCanonical))
    }

    /// Like [`varint32`](Self::varint32), but reads at most 10 bytes (`GetVarint64`).
    #[inline]
    pub(super) fn varint64(&mut self) -> Result<u64, PayloadError> {
        self.varint(10)
    }

    #[inline(always)]
    fn varint(&mut self, len_max: usize) -> Result<u64, PayloadError> {
        // Most numbers are one or two bytes long.
        match *self.rest() {
            [byte @ ..0x80, ..] => {
                self.offset += 1;
                Ok(byte.into())
            }
            [low, high @ 1..0x80, ..] => {
                self.offset += 2;
                Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.long_varint(len_max),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self, len_max: usize) -> Result<u64, PayloadError> {
        let mut value = 0;
        for (index, &byte) in self.rest().iter().take(len_max).enumerate() {
            let bits = u64::from(byte & 0x7f);
            let shift = 7 * index;
            value |= bits << shift;
            if byte & 0x80 != 0 {
                continue;
            }
            let start = self.offset;
            self.offset += index + 1;
            let is_padded = byte == 0 && index > 0;
            if is_padded || (bits << shift) >> shift != bits {
                return Err(self.error(start, PayloadReason::NonCanonical));
            }
            return Ok(value);
        }
        if self.rest().len() < len_max {
            return Err(self.error_here(PayloadReason::Truncated));
        }
        let start = self.offset;
        self.offset += len_max;
        Err(self.error(start, PayloadReason::BadVarint))
    }

    /// Reads a length as a varint32, followed by that many bytes (`GetLengthPrefixedSlice`). No
    /// memory is allocated for them.
    #[inline]
    pub(super) fn string(&mut self) -> Result<&'a [u8], PayloadError> {
        let start = self.offset;
        let len = self.varint32()? as usize;
        match self.rest().get(..len) {
            Some(bytes) => {
                self.offset += len;
                Ok(bytes)
            }
            None => {
                let len = self.payload.len() - start;
                Err(PayloadError::new(start, len, PayloadReason::Truncated))
            }
        }
    }

    /// Reads a string holding exactly one value.
    pub(super) fn nested_value<T>(
        &mut self,
        read: impl FnOnce(&mut Cursor<'a>) -> Result<T, PayloadError>,
    ) -> Result<T, PayloadError> {
        let len = self.string()?.len();
        let payload = self.payload.get(..self.offset).unwrap_or_default();
        let mut inside = Cursor::new(payload, self.offset - len);
        let value = read(&mut inside)?;
        if inside.is_at_end() {
            Ok(value)
        } else {
            Err(inside.error_here(PayloadReason::BadLength))
        }
    }
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes the given pieces as one string.
pub(super) fn put_string(out: &mut Vec<u8>, pieces: &[&[u8]]) -> Result<(), PayloadError> {
    let len: usize = pieces.iter().map(|piece| piece.len()).sum();
    let prefix = u32::try_from(len).map_err(|_| too_large(out, len))?;
    make_room(out, VARINT_LEN_MAX + len)?;
    put_varint(out, prefix.into());
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    Ok(())
}

/// The maximum number of bytes that [`put_varint`] writes.
pub(super) const VARINT_LEN_MAX: usize = 10;

/// Reserves memory for `len` more bytes.
pub(super) fn make_room(out: &mut Vec<u8>, len: usize) -> Result<(), PayloadError> {
    let reserved = out.try_reserve(len);
    reserved.map_err(|_| PayloadError::new(out.len(), len, PayloadReason::OutOfMemory))
}

/// Returns the error for `len` bytes that cannot be appended to `out`.
pub(super) fn too_large(out: &[u8], len: usize) -> PayloadError {
    PayloadError::new(out.len(), len, PayloadReason::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason<T: std::fmt::Debug>(result: Result<T, PayloadError>) -> (usize, usize, &'static str) {
        let error = result.unwrap_err();
        (error.offset, error.len, error.reason.as_str())
    }

    #[test]
    fn varints_of_every_length_round_trip() {
        for shift in 0..64 {
            for value in [1_u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                let mut cursor = Cursor::new(&out, 0);
                assert_eq!(cursor.varint64(), Ok(value));
                assert!(cursor.is_at_end());
                assert_eq!(
                    Cursor::new(&out, 0).varint32().ok(),
                    u32::try_from(value).ok(),
                    "{value}"
                );
            }
        }
    }

    #[test]
    fn decodes_known_varints() {
        // The number 300 is the example in the format's documentation. The others are the largest
        // numbers of their types.
        assert_eq!(Cursor::new(b"\xac\x02", 0).varint32(), Ok(300));
        assert_eq!(Cursor::new(b"\xff\xff\xff\xff\x0f", 0).varint32(), Ok(u32::MAX));
        let largest = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(Cursor::new(largest, 0).varint64(), Ok(u64::MAX));
    }

    #[test]
    fn rejects_truncated_and_overlong_varints() {
        assert_eq!(reason(Cursor::new(b"", 0).varint32()), (0, 0, "truncated"));
        assert_eq!(reason(Cursor::new(b".\x80\x80", 1).varint32()), (1, 2, "truncated"));
        assert_eq!(reason(Cursor::new(&[0xff; 6], 0).varint32()), (0, 5, "bad_varint"));
        assert_eq!(reason(Cursor::new(&[0xff; 11], 0).varint64()), (0, 10, "bad_varint"));
    }

    #[test]
    fn rejects_varints_with_redundant_bytes_or_excess_bits() {
        assert_eq!(reason(Cursor::new(b"\x80\x00", 0).varint32()), (0, 2, "non_canonical"));
        assert_eq!(
            reason(Cursor::new(b"\xac\x82\x00", 0).varint64()),
            (0, 3, "non_canonical")
        );
        let wide = b"\xff\xff\xff\xff\x1f";
        assert_eq!(reason(Cursor::new(wide, 0).varint32()), (0, 5, "non_canonical"));
        let wide = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
        assert_eq!(reason(Cursor::new(wide, 0).varint64()), (0, 10, "non_canonical"));
    }

    #[test]
    fn strings_and_nested_messages_are_limited_to_their_stated_length() {
        let mut cursor = Cursor::new(b"\x03abc\x00\x02\x07\x08", 0);
        assert_eq!(cursor.string(), Ok(b"abc".as_slice()));
        assert_eq!(cursor.string(), Ok(b"".as_slice()));
        assert_eq!(reason(cursor.nested_value(Cursor::byte)), (7, 1, "bad_length"));
        assert_eq!(reason(Cursor::new(b"\x03ab", 0).string()), (0, 3, "truncated"));
        assert_eq!(
            reason(Cursor::new(b"\xff\xff\xff\xff\x0fab", 0).string()),
            (0, 7, "truncated")
        );
        assert_eq!(
            reason(Cursor::new(b"\x01\x02", 0).nested_value(Cursor::fixed64)),
            (1, 1, "truncated")
        );
    }
}
