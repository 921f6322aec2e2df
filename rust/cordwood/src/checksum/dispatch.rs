//! Selects the best kernel that the machine supports.

use std::sync::OnceLock;

use super::kernel::{Job, Kernel};
use super::{arch, portable};

/// The kernels this machine can run.
#[derive(Clone, Copy)]
pub(super) enum Available {
    Arch(arch::Kernels),
    Portable(portable::Portable),
}

impl Available {
    /// Returns all kernels, best first.
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

/// Runs `job` with the best kernel this machine supports.
#[inline]
pub(crate) fn run<J: Job>(job: J) -> J::Output {
    /// The best kernel other than the portable one. There are so few kernels that the compiler uses
    /// comparisons to select one, which is faster than a jump table.
    static BEST: OnceLock<arch::Kernels> = OnceLock::new();

    // This isn't inlined, so that the usual case is little more than a jump to the kernel.
    #[cold]
    #[inline(never)]
    fn select_and_run<J: Job>(job: J) -> J::Output {
        match arch::Kernels::all().next() {
            Some(best) => BEST.get_or_init(|| best).run(job),
            None => portable::Portable.run(job),
        }
    }

    match BEST.get() {
        Some(best) => best.run(job),
        None => select_and_run(job),
    }
}

/// A job that computes the CRC-32C of some bytes. Unlike [`Update`], this job is passed in
/// registers.
pub(super) struct Crc<'a>(pub(super) &'a [u8]);

impl Job for Crc<'_> {
    type Output = u32;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> u32 {
        !kernel.update(!0, self.0)
    }
}

/// A job that advances a state over some bytes.
pub(crate) struct Update<'a>(pub(crate) u32, pub(crate) &'a [u8]);

impl Job for Update<'_> {
    type Output = u32;

    #[inline(always)]
    fn call<K: Kernel>(self, kernel: K) -> u32 {
        kernel.update(self.0, self.1)
    }
}

/// A job that returns the kernel's name.
pub(super) struct Name;

impl Job for Name {
    type Output = &'static str;

    #[inline(always)]
    fn call<K: Kernel>(self, _kernel: K) -> &'static str {
        K::NAME
    }
}

/// Returns the kernels this machine can run, best first. Each comes with its name and a version of
/// [`extend`](super::extend) that uses that kernel. Intended for fuzzing and benchmarks.
pub fn kernels() -> impl Iterator<Item = (&'static str, impl Fn(u32, &[u8]) -> u32)> {
    Available::all().map(|kernel| {
        let extend = move |crc: u32, data: &[u8]| !kernel.run(Update(!crc, data));
        (kernel.run(Name), extend)
    })
}
