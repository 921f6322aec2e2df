//! AArch64: the `crc32c` instructions, in one chain.

#![expect(
    unsafe_code,
    reason = "calls a #[target_feature] function behind a check of the features"
)]

use core::arch::aarch64::{__crc32cb, __crc32cd};

use crate::checksum::dispatch::Kernel;

/// The kernels of this architecture that the machine can run, best first.
pub(in crate::checksum) fn kernels() -> Option<Kernel> {
    std::arch::is_aarch64_feature_detected!("crc").then_some(Kernel {
        name: "crc",
        // SAFETY: the feature that `update` is compiled for has just been found on this machine.
        update: |state, data| unsafe { update(state, data) },
    })
}

/// `state` moved over `data`.
#[target_feature(enable = "crc")]
fn update(mut state: u32, data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<8>();
    for word in words {
        state = __crc32cd(state, u64::from_le_bytes(*word));
    }
    for &byte in rest {
        state = __crc32cb(state, byte);
    }
    state
}
