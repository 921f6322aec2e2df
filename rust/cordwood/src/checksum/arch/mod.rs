//! Kernels that need instructions not every machine has. The only folder of this crate with
//! `unsafe`.
//!
//! Each kernel is made of safe `#[target_feature]` functions. Two things are unsafe: calling them
//! on a machine that lacks the features, so each kernel is a type whose values exist only after a
//! check for them; and loading bytes through a pointer, as one of them does.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub(super) use aarch64::Kernels;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::Kernels;

/// No kernels for this architecture, nor for big-endian AArch64, on which they are untested.
#[cfg(not(any(all(target_arch = "aarch64", target_endian = "little"), target_arch = "x86_64")))]
#[derive(Clone, Copy)]
pub(super) enum Kernels {}

#[cfg(not(any(all(target_arch = "aarch64", target_endian = "little"), target_arch = "x86_64")))]
impl Kernels {
    pub(super) fn all() -> impl Iterator<Item = Kernels> {
        std::iter::empty()
    }

    pub(super) fn run<J: super::kernel::Job>(self, _job: J) -> J::Output {
        match self {}
    }
}
