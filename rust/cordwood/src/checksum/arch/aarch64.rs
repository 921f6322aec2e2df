//! AArch64: the `crc32c` instructions, in one chain.

#![expect(
    unsafe_code,
    reason = "calls #[target_feature] functions; the type here is the proof of the feature"
)]

use core::arch::aarch64::{__crc32cb, __crc32cd};

use crate::checksum::dispatch::{Job, Kernel};

/// The kernels of this architecture: one.
#[derive(Clone, Copy)]
pub(in crate::checksum) struct Kernels(());

impl Kernels {
    /// Those that this machine can run.
    pub(in crate::checksum) fn all() -> impl Iterator<Item = Kernels> {
        std::arch::is_aarch64_feature_detected!("crc")
            .then_some(Kernels(()))
            .into_iter()
    }
}

impl Kernel for Kernels {
    const NAME: &'static str = "CRC";

    #[inline(always)]
    fn update(self, state: u32, data: &[u8]) -> u32 {
        // SAFETY: `all` has found the feature.
        unsafe { update(state, data) }
    }

    #[inline]
    fn run<J: Job>(self, job: J) -> J::Output {
        #[target_feature(enable = "crc")]
        fn with_features<J: Job>(kernel: Kernels, job: J) -> J::Output {
            job.call(kernel)
        }
        // SAFETY: `all` has found the feature.
        unsafe { with_features(self, job) }
    }
}

/// `state` moved over `data`.
#[target_feature(enable = "crc")]
#[inline]
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
