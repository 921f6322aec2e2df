//! CRC-32C (Castagnoli) and the mask that the format applies to it.
//!
//! [`crc32c`] and [`extend`] use the fastest kernel that the machine supports.

use super::dispatch::{Crc, Name, Update, run};
use super::polynomial::{CASTAGNOLI, multiply, x_to_bytes};

/// Returns the CRC-32C of `data`.
///
/// ```
/// assert_eq!(cordwood_log::crc32c::crc32c(b"123456789"), 0xe306_9283);
/// ```
#[inline]
pub fn crc32c(data: &[u8]) -> u32 {
    run(Crc(data))
}

/// Returns the CRC-32C of some bytes followed by `data`, where `crc` is the CRC-32C of the bytes
/// before `data`. The CRC of an empty slice is 0.
///
/// ```
/// use cordwood_log::crc32c::{crc32c, extend};
/// assert_eq!(extend(crc32c(b"hello "), b"world"), crc32c(b"hello world"));
/// ```
#[inline]
pub fn extend(crc: u32, data: &[u8]) -> u32 {
    !run(Update(!crc, data))
}

/// Returns the state after `byte`. The state is the checksum before the final inversion.
pub(crate) const fn state_after(byte: u8) -> u32 {
    // The initial state is all ones.
    multiply(CASTAGNOLI, !0 ^ byte as u32, x_to_bytes(CASTAGNOLI, 1))
}

/// Returns the CRC-32C of two concatenated pieces, given their CRCs `first` and `second`.
/// `second_len` is the length of the second piece in bytes.
///
/// Runs in time logarithmic in `second_len`.
///
/// ```
/// use cordwood_log::crc32c::{combine, crc32c};
/// assert_eq!(combine(crc32c(b"hello "), crc32c(b"world"), 5), crc32c(b"hello world"));
/// ```
pub fn combine(first: u32, second: u32, second_len: u64) -> u32 {
    multiply(CASTAGNOLI, first, x_to_bytes(CASTAGNOLI, second_len)) ^ second
}

/// Names the instructions this process uses to compute CRC-32C, such as `"SSE4.2, PCLMULQDQ"`.
/// Intended for benchmarks and bug reports.
pub fn crc32c_kernel() -> &'static str {
    run(Name)
}

/// The constant added to the rotated checksum. Source: LevelDB `util/crc32c.h`, `kMaskDelta`.
const MASK_DELTA: u32 = 0xa282_ead8;

/// Returns the stored form of a checksum: rotated right by 15 bits, plus a constant.
///
/// A payload may itself contain log fragments with their checksums. Without the mask, data could
/// contain its own CRC, which would make the CRC a poor check. The page documenting the format does
/// not mention the mask, but every engine applies it.
///
/// Source: LevelDB `util/crc32c.h`.
///
/// ```
/// use cordwood_log::crc32c::{crc32c, mask, unmask};
/// assert_eq!(mask(crc32c(b"foo")), 0xfebe_8a61);
/// assert_eq!(unmask(0xfebe_8a61), crc32c(b"foo"));
/// ```
#[inline]
pub const fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// Undoes [`mask`].
#[inline]
pub const fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(MASK_DELTA).rotate_left(15)
}
