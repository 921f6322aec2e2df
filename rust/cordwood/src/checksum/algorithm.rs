//! A single type for the checksums of all dialects.

use super::crc32c::{extend, mask, unmask};

use super::zeros::{self, ZeroTables};

/// The checksum in a fragment header. It covers the header, from the type byte onward, and the
/// payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// Masked CRC-32C.
    MaskedCrc32c,
    /// The CRC-32 from IEEE 802.3, as computed by zlib. It is not masked.
    Crc32,
}

impl Checksum {
    /// The number of checksum algorithms.
    pub(crate) const COUNT: usize = 2;

    /// Returns the CRC of `data`, without the mask.
    #[inline]
    pub(crate) fn crc(self, data: &[u8]) -> u32 {
        self.extend(0, data)
    }

    /// Returns the CRC of some bytes followed by `data`, where `crc` is the CRC of those bytes.
    #[inline]
    pub(crate) fn extend(self, crc: u32, data: &[u8]) -> u32 {
        #[cfg(test)]
        CHECKSUMMED_LEN.set(CHECKSUMMED_LEN.get() + data.len());
        match self {
            Checksum::MaskedCrc32c => extend(crc, data),
            Checksum::Crc32 => {
                let mut hasher = crc32fast::Hasher::new_with_initial(crc);
                hasher.update(data);
                hasher.finalize()
            }
        }
    }

    /// Returns the checksum to store in a fragment's header. `covered` is the fragment from the
    /// type byte onward.
    #[inline]
    pub(crate) fn stored(self, covered: &[u8]) -> u32 {
        self.store(self.crc(covered))
    }

    /// Converts a CRC to the form stored in a header.
    #[inline]
    pub(crate) const fn store(self, crc: u32) -> u32 {
        match self {
            Checksum::MaskedCrc32c => mask(crc),
            Checksum::Crc32 => crc,
        }
    }

    /// Recovers a CRC from the form stored in a header, undoing [`store`](Self::store).
    #[inline]
    pub(crate) const fn load(self, stored: u32) -> u32 {
        match self {
            Checksum::MaskedCrc32c => unmask(stored),
            Checksum::Crc32 => stored,
        }
    }

    /// Returns the length of the shortest prefix of `data` that changes the CRC from `crc` to
    /// `wanted`. `crc` covers the bytes before `data`, and `wanted` covers those bytes and the
    /// prefix.
    pub(crate) fn prefix_with(self, wanted: u32, mut crc: u32, data: &[u8]) -> Option<usize> {
        for (len, byte) in data.iter().enumerate() {
            if crc == wanted {
                return Some(len);
            }
            crc = self.extend(crc, std::slice::from_ref(byte));
        }
        (crc == wanted).then_some(data.len())
    }

    /// Returns `crc` shifted over `count` chunks of [`CHUNK_LEN`](zeros::CHUNK_LEN) zeros. The
    /// chunks may take up at most one block in total. Suppose that `crc` covers one piece of data
    /// and that the next piece is as long as the zeros. The result is then the first piece's
    /// contribution to the combined CRC.
    #[inline]
    pub(super) fn shift(self, crc: u32, count: usize) -> u32 {
        self.zeros().shift(crc, count)
    }

    /// Returns the value that becomes `crc` when shifted over four zero bytes.
    #[inline]
    pub(crate) fn unshift_word(self, crc: u32) -> u32 {
        self.zeros().unshift_word(crc)
    }

    #[inline]
    fn zeros(self) -> &'static ZeroTables {
        match self {
            Checksum::MaskedCrc32c => &zeros::OF_CASTAGNOLI,
            Checksum::Crc32 => &zeros::OF_IEEE,
        }
    }
}

#[cfg(test)]
thread_local! {
    /// The number of bytes this thread has checksummed. Tests use it to check the cost of a search.
    pub(crate) static CHECKSUMMED_LEN: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
