//! AArch64: two kernels. `Chain` uses the `crc32c` instructions; `Chains` runs three chains of them
//! in long data, and joins them with PMULL.

#![expect(
    unsafe_code,
    reason = "calls #[target_feature] functions; each type here is the proof of its features"
)]

mod chains;

use std::arch::is_aarch64_feature_detected;

use crate::checksum::kernel::{Job, Kernel};

/// The kernels of this architecture.
#[derive(Clone, Copy)]
pub(in crate::checksum) enum Kernels {
    Chains(Chains),
    Chain(Chain),
}

impl Kernels {
    /// The kernels that this machine can run, the best first.
    pub(in crate::checksum) fn all() -> impl Iterator<Item = Kernels> {
        [Chains::new().map(Kernels::Chains), Chain::new().map(Kernels::Chain)]
            .into_iter()
            .flatten()
    }

    #[inline]
    pub(in crate::checksum) fn run<J: Job>(self, job: J) -> J::Output {
        match self {
            Kernels::Chains(kernel) => kernel.run(job),
            Kernels::Chain(kernel) => kernel.run(job),
        }
    }
}

/// A machine with the CRC32 extension: optional in Armv8.0, required from Armv8.1 on.
#[derive(Clone, Copy)]
pub(in crate::checksum) struct Chain(());

impl Chain {
    fn new() -> Option<Self> {
        is_aarch64_feature_detected!("crc").then_some(Chain(()))
    }
}

impl Kernel for Chain {
    const NAME: &'static str = "CRC";

    #[inline(always)]
    fn update(self, state: u32, data: &[u8]) -> u32 {
        // SAFETY: `new` has detected the feature.
        unsafe { chains::one(state, data) }
    }

    #[inline]
    fn run<J: Job>(self, job: J) -> J::Output {
        #[target_feature(enable = "crc")]
        fn with_features<J: Job>(kernel: Chain, job: J) -> J::Output {
            job.call(kernel)
        }
        // SAFETY: `new` has detected the feature.
        unsafe { with_features(self, job) }
    }
}

/// A machine that also has PMULL of 64 bits, which Rust counts as part of `aes`: the Cryptographic
/// Extension is optional.
#[derive(Clone, Copy)]
pub(in crate::checksum) struct Chains(());

impl Chains {
    fn new() -> Option<Self> {
        let is_there = is_aarch64_feature_detected!("aes");
        Chain::new().filter(|_| is_there).map(|_| Chains(()))
    }
}

impl Kernel for Chains {
    const NAME: &'static str = "CRC, PMULL";

    #[inline(always)]
    fn update(self, state: u32, data: &[u8]) -> u32 {
        // SAFETY: `new` has detected the features.
        unsafe { chains::update(state, data) }
    }

    #[inline]
    fn run<J: Job>(self, job: J) -> J::Output {
        #[target_feature(enable = "crc,aes")]
        fn with_features<J: Job>(kernel: Chains, job: J) -> J::Output {
            job.call(kernel)
        }
        // SAFETY: `new` has detected the features.
        unsafe { with_features(self, job) }
    }
}
