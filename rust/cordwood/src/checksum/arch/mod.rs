//! Kernels that need instructions not every machine has. The only folder of this crate with `unsafe`.
//!
//! Each kernel is a safe `#[target_feature]` function in a file of its own. What is unsafe is to call one on a machine
//! that lacks its features; `kernels` hands one out only after it has asked the machine for them.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::kernels;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::kernels;

/// None for this architecture.
#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
pub(super) fn kernels() -> Option<super::dispatch::Kernel> {
    None
}
