//! The checksums that the dialects use, as one type.

use super::crc32c::{extend, mask, unmask};
use super::dispatch::run;
use super::kernel::{Job, Kernel};
use super::zeros::{self, ZeroTables};

/// The checksum that a header states. It covers the header from the type byte on, and the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// CRC-32C, masked.
    MaskedCrc32c,
    /// The CRC-32 of IEEE 802.3, as zlib computes it; not masked.
    Crc32,
}

impl Checksum {
    /// The number of checksums.
    pub(crate) const COUNT: usize = 2;

    /// The CRC of `data`, without the mask.
    #[inline]
    pub(crate) fn crc(self, data: &[u8]) -> u32 {
        self.extend(0, data)
    }

    /// The CRC of some bytes followed by `data`, given the CRC of those bytes.
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

    /// What a header states if the bytes from its type byte on are `covered`.
    #[inline]
    pub(crate) fn stored(self, covered: &[u8]) -> u32 {
        self.store(self.crc(covered))
    }

    /// A CRC as a header states it.
    #[inline]
    pub(crate) const fn store(self, crc: u32) -> u32 {
        match self {
            Checksum::MaskedCrc32c => mask(crc),
            Checksum::Crc32 => crc,
        }
    }

    /// The CRC that a header states: undoes [`store`](Self::store).
    #[inline]
    pub(crate) const fn load(self, stored: u32) -> u32 {
        match self {
            Checksum::MaskedCrc32c => unmask(stored),
            Checksum::Crc32 => stored,
        }
    }

    /// Whether bytes whose CRC is `crc`, followed by some prefix of `data`, have the CRC `wanted`.
    pub(crate) fn any_prefix_has(self, wanted: u32, mut crc: u32, data: &[u8]) -> bool {
        match self {
            Checksum::MaskedCrc32c => run(AnyPrefix {
                wanted: !wanted,
                state: !crc,
                data,
            }),
            Checksum::Crc32 => {
                data.iter().any(|byte| {
                    let is_right = crc == wanted;
                    crc = self.extend(crc, std::slice::from_ref(byte));
                    is_right
                }) || crc == wanted
            }
        }
    }

    /// `crc` shifted over `count` chunks of [`CHUNK_LEN`](zeros::CHUNK_LEN) zeros, at most a block
    /// of them: what bytes whose CRC is `crc` contribute to the CRC of those bytes followed by that
    /// many others.
    #[inline]
    pub(super) fn shift(self, crc: u32, count: usize) -> u32 {
        self.zeros().shift(crc, count)
    }

    /// The value that becomes `crc` when shifted over four zero bytes.
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

/// The job of determining whether some prefix of `data` leads from one state to another.
struct AnyPrefix<'a> {
    wanted: u32,
    state: u32,
    data: &'a [u8],
}

impl Job for AnyPrefix<'_> {
    type Output = bool;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> bool {
        let mut state = self.state;
        self.data.iter().any(|byte| {
            let is_right = state == self.wanted;
            state = kernel.update(state, std::slice::from_ref(byte));
            is_right
        }) || state == self.wanted
    }
}

#[cfg(test)]
thread_local! {
    /// How many bytes this thread has checksummed, for tests of the cost of a search.
    pub(crate) static CHECKSUMMED_LEN: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
