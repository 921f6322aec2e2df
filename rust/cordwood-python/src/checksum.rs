//! The functions `crc32c`, `mask_crc` and `unmask_crc`.

use pyo3::prelude::*;

use crate::interpreter::released;
use crate::values::arguments::bytes_of;

/// The interpreter lock is released while data of at least this length is checksummed. For shorter
/// data, releasing the lock costs more than the checksum.
const DETACH_LEN: usize = 1 << 16;

/// Computes the CRC-32C of the bytes in a buffer.
///
/// Args:
///     data: `bytes` or any other buffer.
///     crc: The CRC-32C of the bytes before `data`, so that the result covers those bytes too.
///         Default: 0, the CRC-32C of an empty buffer.
///
/// Returns:
///     An unsigned 32-bit integer.
///
/// Raises:
///     TypeError: `data` is not bytes-like.
///     OverflowError: `crc` is not an unsigned 32-bit integer.
///
/// >>> hex(cordwood.crc32c(b"123456789"))
/// '0xe3069283'
/// >>> hex(cordwood.crc32c(b"6789", cordwood.crc32c(b"12345")))
/// '0xe3069283'
#[pyfunction]
#[pyo3(signature = (data, crc = 0))]
pub(crate) fn crc32c(data: &Bound<'_, PyAny>, crc: u32) -> PyResult<u32> {
    let bytes = bytes_of("data", data)?;
    let bytes = bytes.as_bytes();
    let to_detach = (bytes.len() >= DETACH_LEN).then(|| data.py());
    Ok(released(to_detach, || cordwood::crc32c::extend(crc, bytes)))
}

/// Masks a CRC-32C as the format specifies: rotates it right by 15 bits and adds a constant.
///
/// Args:
///     crc: The CRC-32C, an unsigned 32-bit integer.
///
/// Returns:
///     The checksum as stored in a fragment header, an unsigned 32-bit integer.
///
/// Raises:
///     OverflowError: `crc` is not an unsigned 32-bit integer.
///
/// >>> hex(cordwood.mask_crc(cordwood.crc32c(b"foo")))
/// '0xfebe8a61'
#[pyfunction]
#[pyo3(signature = (crc, /))]
pub(crate) fn mask_crc(crc: u32) -> u32 {
    cordwood::crc32c::mask(crc)
}

/// Reverses `mask_crc`.
///
/// Args:
///     masked: The checksum as stored in a fragment header, an unsigned 32-bit integer.
///
/// Returns:
///     The CRC-32C, an unsigned 32-bit integer.
///
/// Raises:
///     OverflowError: `masked` is not an unsigned 32-bit integer.
///
/// >>> hex(cordwood.unmask_crc(0xfebe8a61))
/// '0xcfc4ae1d'
#[pyfunction]
#[pyo3(signature = (masked, /))]
pub(crate) fn unmask_crc(masked: u32) -> u32 {
    cordwood::crc32c::unmask(masked)
}
