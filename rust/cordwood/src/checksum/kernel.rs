//! A kernel, and the work that is passed to one.

use crate::copy;

/// The room, beyond that for the data, that the output of [`Kernel::append`] should have. With less,
/// it takes longer.
pub(crate) const APPEND_ROOM: usize = 64;

/// An implementation of CRC-32C. A value of the type is proof that the machine can run it.
pub(crate) trait Kernel: Copy {
    /// The instructions that it uses, in readable form.
    const NAME: &'static str;

    /// `state` advanced over `data`.
    fn update(self, state: u32, data: &[u8]) -> u32;

    /// As [`update`](Kernel::update), and appends `data` to `out`.
    fn append(self, state: u32, data: &[u8], out: &mut Vec<u8>) -> u32 {
        let state = self.update(state, data);
        copy::append(out, data);
        state
    }

    /// Runs `job` compiled with the instructions that the kernel needs.
    fn run<J: Job>(self, job: J) -> J::Output;
}

/// Work that needs checksums. Implementations of [`call`](Job::call) must be `#[inline(always)]`.
///
/// A function that uses instructions that not every machine has cannot be inlined into one that
/// does not use them, so each checksum of a record would cost a call. A job is therefore passed to
/// the kernel as a whole, and is compiled once per kernel, with that kernel's instructions.
pub(crate) trait Job {
    type Output;

    fn call<K: Kernel>(self, kernel: K) -> Self::Output;
}
