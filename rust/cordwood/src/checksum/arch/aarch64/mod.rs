//! The two kernels for AArch64. `Chain` uses the `crc32c` instructions. For long inputs, `Chains`
//! runs three chains of these instructions and joins them with PMULL.

#![expect(
    unsafe_code,
    reason = "calls #[target_feature] functions; each type here is the proof of its features"
)]

mod chains;

use std::arch::is_aarch64_feature_detected;

use crate::checksum::kernel::{Job, Kernel};

kernels! {
    is_aarch64_feature_detected;

    /// A machine with the CRC32 extension and 64-bit PMULL. PMULL is part of the optional
    /// Cryptographic Extension and of Rust's target feature `aes`.
    Chains("CRC, PMULL", ["crc", "aes"], chains::update);

    /// A machine with the CRC32 extension, which is optional in Armv8.0 and required since Armv8.1.
    Chain("CRC", ["crc"], chains::one);
}
