//! Kernels that need instructions not every machine has. The only folder of this crate with `unsafe`.
//!
//! Each kernel is made of safe `#[target_feature]` functions. What is unsafe is to call them on a machine that lacks the features, so each
//! kernel is a type of which a value can be had only by asking the machine for them; and to load bytes by a pointer, as one of them does.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub(super) use aarch64::Kernels;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::Kernels;

/// None for this architecture. Nor for an AArch64 that stores its bytes the other way round: there is none to try them on.
#[cfg(not(any(all(target_arch = "aarch64", target_endian = "little"), target_arch = "x86_64")))]
#[derive(Clone, Copy)]
pub(super) enum Kernels {}

#[cfg(not(any(all(target_arch = "aarch64", target_endian = "little"), target_arch = "x86_64")))]
impl Kernels {
    pub(super) fn all() -> impl Iterator<Item = Kernels> {
        std::iter::empty()
    }

    pub(super) fn run<J: super::dispatch::Job>(self, _job: J) -> J::Output {
        match self {}
    }
}
