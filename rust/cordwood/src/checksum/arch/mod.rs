//! Kernels that need instructions not every machine has. The only folder of this crate with `unsafe`.
//!
//! Each kernel is made of safe `#[target_feature]` functions. What is unsafe is to call them on a machine that lacks the features, so each
//! kernel is a type of which a value can be had only by asking the machine for them.

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub(super) use aarch64::Kernels;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::Kernels;

/// `[i]`: what a state is multiplied by, without carries, to move it over `i` units of `unit_len` zero bytes, if the instruction that moves
/// a state over a word is then given the product, behind a zero state. `[0]` is not used.
///
/// That moves it over another 32 bits, and the product of two reflected numbers stands one bit too low: hence the 33.
#[cfg(any(all(target_arch = "aarch64", target_endian = "little"), target_arch = "x86_64"))]
const fn shifts<const COUNT: usize>(unit_len: usize) -> [u32; COUNT] {
    use super::polynomial::{multiply, x_to};

    let over_one = x_to(8 * unit_len as u64);
    let mut shifts = [0; COUNT];
    let mut shift = x_to(8 * unit_len as u64 - 33);
    let mut i = 1;
    while i < COUNT {
        shifts[i] = shift;
        shift = multiply(shift, over_one);
        i += 1;
    }
    shifts
}

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
