//! Which kernel runs: chosen once per process, the best that the machine has.

use std::sync::OnceLock;

use super::{arch, portable};

/// A way to move a state over bytes.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    /// What it uses, for people.
    pub(super) name: &'static str,
    pub(super) update: fn(u32, &[u8]) -> u32,
}

const PORTABLE: Kernel = Kernel {
    name: "portable",
    update: portable::update,
};

/// The kernels that this machine can run, best first; the portable one is always among them.
pub(super) fn available() -> impl Iterator<Item = Kernel> {
    arch::kernels().into_iter().chain([PORTABLE])
}

/// The kernel that this process uses.
#[inline]
pub(super) fn best() -> Kernel {
    static BEST: OnceLock<Kernel> = OnceLock::new();
    *BEST.get_or_init(|| available().next().unwrap_or(PORTABLE))
}
