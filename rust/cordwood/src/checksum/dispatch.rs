//! Selects the kernel: once per process, the best that the machine supports.
//!
//! A function that uses instructions which not every machine has cannot be inlined into one without
//! them, so each checksum of a record would cost a call. A [`Job`] is therefore passed to the
//! kernel as a whole, and is compiled once per kernel, with that kernel's instructions.

use std::sync::OnceLock;

use super::{arch, portable};

/// An implementation of CRC-32C. A value of the type is proof that the machine can run it.
pub(crate) trait Kernel: Copy {
    /// The instructions it uses, in readable form.
    const NAME: &'static str;

    /// `state` advanced over `data`.
    fn update(self, state: u32, data: &[u8]) -> u32;

    /// Runs `job` compiled with the instructions that the kernel needs.
    fn run<J: Job>(self, job: J) -> J::Output;
}

/// Work that needs checksums. Implementations of [`call`](Job::call) must be `#[inline(always)]`.
pub(crate) trait Job {
    type Output;

    fn call<K: Kernel>(self, kernel: K) -> Self::Output;
}

/// The kernels that this machine can run.
#[derive(Clone, Copy)]
pub(super) enum Available {
    Arch(arch::Kernels),
    Portable(portable::Portable),
}

impl Available {
    /// All kernels, the best first.
    pub(super) fn all() -> impl Iterator<Item = Available> {
        let portable = Available::Portable(portable::Portable);
        arch::Kernels::all().map(Available::Arch).chain([portable])
    }

    #[inline]
    pub(super) fn run<J: Job>(self, job: J) -> J::Output {
        match self {
            Available::Arch(kernels) => kernels.run(job),
            Available::Portable(kernel) => kernel.run(job),
        }
    }
}

/// Runs `job` with the best kernel that this machine has.
#[inline]
pub(crate) fn run<J: Job>(job: J) -> J::Output {
    static BEST: OnceLock<Available> = OnceLock::new();
    BEST.get_or_init(|| {
        Available::all()
            .next()
            .unwrap_or(Available::Portable(portable::Portable))
    })
    .run(job)
}

/// The job of advancing a state over some bytes.
pub(crate) struct Update<'a>(pub(crate) u32, pub(crate) &'a [u8]);

impl Job for Update<'_> {
    type Output = u32;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> u32 {
        kernel.update(self.0, self.1)
    }
}

/// The job of naming the kernel.
pub(super) struct Name;

impl Job for Name {
    type Output = &'static str;

    #[inline(always)]
    fn call<K: Kernel>(self, _kernel: K) -> &'static str {
        K::NAME
    }
}
