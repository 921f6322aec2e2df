//! The dialects' checksums: CRC-32C and CRC-32. CRC-32C has kernels that use each architecture's
//! instructions.
//!
//! In the kernels, a checksum is a *state*: the register before the final inversion. Everywhere
//! else, it is the finished value. The tests in this directory compare each kernel with a naive
//! bit-by-bit oracle.

mod algorithm;
mod arch;
mod crc32c;
mod dispatch;
mod kernel;
#[cfg(test)]
mod naive;
mod polynomial;
mod portable;
mod range;
#[cfg(test)]
mod tests;
mod zeros;

#[cfg(test)]
pub(crate) use algorithm::CHECKSUMMED_LEN;
pub(crate) use algorithm::Checksum;
pub(crate) use crc32c::state_after;
pub use crc32c::{combine, crc32c, crc32c_kernel, extend, mask, unmask};
pub use dispatch::kernels;
pub(crate) use dispatch::run;
pub(crate) use kernel::{APPEND_ROOM, Job, Kernel};
pub(crate) use range::RangeCrc;
