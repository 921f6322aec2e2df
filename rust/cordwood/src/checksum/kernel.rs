//! A kernel, and the jobs passed to it.

use crate::copy;

/// How much spare room the output of [`Kernel::append`] should have after the data. With less room,
/// appending is slower.
pub(crate) const APPEND_ROOM: usize = 64;

/// An implementation of CRC-32C. A value of an implementing type proves that the machine can run
/// the kernel.
pub(crate) trait Kernel: Copy {
    /// The instructions the kernel uses, in readable form.
    const NAME: &'static str;

    /// Returns `state` advanced over `data`.
    fn update(self, state: u32, data: &[u8]) -> u32;

    /// Like [`update`](Kernel::update), but also appends `data` to `out`.
    fn append(self, state: u32, data: &[u8], out: &mut Vec<u8>) -> u32 {
        let state = self.update(state, data);
        copy::append(out, data);
        state
    }

    /// Runs `job`, compiled with the instructions the kernel needs.
    fn run<J: Job>(self, job: J) -> J::Output;
}

/// A job is a piece of work that needs checksums. Implementations of [`call`](Job::call) must be
/// `#[inline(always)]`.
///
/// A function compiled with special instructions can't be inlined into a function compiled without
/// them, so each checksum of a record would require a function call. To avoid this, a whole job is
/// passed to the kernel and compiled once per kernel, with that kernel's instructions.
pub(crate) trait Job {
    type Output;

    fn call<K: Kernel>(self, kernel: K) -> Self::Output;
}
