//! Consecutive records of one fragment each, found in one loop.

use crate::fragment::RUN_MAX;

/// Consecutive records of one fragment each, found in one loop and returned one by one.
pub(super) struct Run {
    /// File offset of the first.
    pub(super) begin: u64,
    /// Where each ends, counted from `begin`.
    pub(super) ends: [u16; RUN_MAX],
    /// How many there are, and how many of them have been returned.
    pub(super) len: usize,
    pub(super) taken: usize,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Run { begin, len, taken, .. } = self;
        f.debug_struct("Run")
            .field("begin", begin)
            .field("len", len)
            .field("taken", taken)
            .finish_non_exhaustive()
    }
}
