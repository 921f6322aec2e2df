//! x86-64: three kernels. `Chains` uses the `crc32` instruction of SSE4.2; the others also fold by
//! carry-less multiplication, of 256 and of 512 bits.

#![expect(
    unsafe_code,
    reason = "calls #[target_feature] functions; each type here is the proof of its features"
)]

mod chains;
mod fold256;
mod fold512;

use crate::checksum::kernel::{Job, Kernel};

/// The kernels of this architecture.
#[derive(Clone, Copy)]
pub(in crate::checksum) enum Kernels {
    Fold512(Fold512),
    Fold256(Fold256),
    Chains(Chains),
}

impl Kernels {
    /// The kernels that this machine can run, the best first.
    pub(in crate::checksum) fn all() -> impl Iterator<Item = Kernels> {
        [
            Fold512::new().map(Kernels::Fold512),
            Fold256::new().map(Kernels::Fold256),
            Chains::new().map(Kernels::Chains),
        ]
        .into_iter()
        .flatten()
    }

    #[inline]
    pub(in crate::checksum) fn run<J: Job>(self, job: J) -> J::Output {
        match self {
            Kernels::Fold512(kernel) => kernel.run(job),
            Kernels::Fold256(kernel) => kernel.run(job),
            Kernels::Chains(kernel) => kernel.run(job),
        }
    }
}

/// A machine with SSE4.2 and PCLMULQDQ: all since 2010.
#[derive(Clone, Copy)]
pub(in crate::checksum) struct Chains(());

impl Chains {
    fn new() -> Option<Self> {
        let is_there = is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq");
        is_there.then_some(Chains(()))
    }
}

impl Kernel for Chains {
    const NAME: &'static str = "SSE4.2, PCLMULQDQ";

    #[inline(always)]
    fn update(self, state: u32, data: &[u8]) -> u32 {
        // SAFETY: `new` has detected the features.
        unsafe { chains::update(state, data) }
    }

    #[inline]
    fn run<J: Job>(self, job: J) -> J::Output {
        #[target_feature(enable = "sse4.2,pclmulqdq")]
        fn with_features<J: Job>(kernel: Chains, job: J) -> J::Output {
            job.call(kernel)
        }
        // SAFETY: `new` has detected the features.
        unsafe { with_features(self, job) }
    }
}

/// A machine that also has AVX2 and VPCLMULQDQ: Intel since Ice Lake and Alder Lake, AMD since Zen
/// 3.
#[derive(Clone, Copy)]
pub(in crate::checksum) struct Fold256(());

impl Fold256 {
    fn new() -> Option<Self> {
        let is_there = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("vpclmulqdq");
        Chains::new().filter(|_| is_there).map(|_| Fold256(()))
    }
}

impl Kernel for Fold256 {
    const NAME: &'static str = "SSE4.2, AVX2, VPCLMULQDQ";

    #[inline(always)]
    fn update(self, state: u32, data: &[u8]) -> u32 {
        // SAFETY: `new` has detected the features.
        unsafe { fold256::update(state, data) }
    }

    #[inline]
    fn run<J: Job>(self, job: J) -> J::Output {
        #[target_feature(enable = "sse4.2,pclmulqdq,avx2,vpclmulqdq")]
        fn with_features<J: Job>(kernel: Fold256, job: J) -> J::Output {
            job.call(kernel)
        }
        // SAFETY: `new` has detected the features.
        unsafe { with_features(self, job) }
    }
}

/// A machine that also has AVX-512 with VBMI: Intel servers since Ice Lake, AMD since Zen 4.
#[derive(Clone, Copy)]
pub(in crate::checksum) struct Fold512(());

impl Fold512 {
    fn new() -> Option<Self> {
        let is_there = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi");
        Fold256::new().filter(|_| is_there).map(|_| Fold512(()))
    }
}

impl Kernel for Fold512 {
    const NAME: &'static str = "SSE4.2, AVX-512, VPCLMULQDQ";

    #[inline(always)]
    fn update(self, state: u32, data: &[u8]) -> u32 {
        // SAFETY: `new` has detected the features.
        unsafe { fold512::update(state, data) }
    }

    #[inline]
    fn run<J: Job>(self, job: J) -> J::Output {
        #[target_feature(enable = "avx512vbmi,vpclmulqdq")]
        fn with_features<J: Job>(kernel: Fold512, job: J) -> J::Output {
            job.call(kernel)
        }
        // SAFETY: `new` has detected the features.
        unsafe { with_features(self, job) }
    }
}
