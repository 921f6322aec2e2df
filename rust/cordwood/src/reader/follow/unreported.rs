//! The state of the bytes that haven't been reported yet.

use std::io;
use std::time::Instant;

use super::live_file::FileStatus;
use super::poll::WaitReason;
use crate::dialect::Form;
use crate::format::BLOCK_LEN;

/// The maximum number of blocks to probe per search. They cover 8 MiB of the file. If they are in
/// the page cache, probing them takes less than a millisecond.
const PROBES_MAX: usize = 256;

/// The decision about the first bytes that are not a valid fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The bytes may still become a valid fragment.
    Wait(WaitReason),
    /// The bytes must be reread before they are reported.
    ReadAgain,
    /// The bytes can never become a valid fragment, and are reported just as a reader of the whole
    /// file would report them.
    Final,
}

/// Where the decoder stopped, which is also where the last read started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) at: u64,
    /// The state of the file before the read.
    pub(super) status: FileStatus,
    pub(super) is_read_again: bool,
}

/// The state of the unreported bytes.
#[derive(Debug, Default)]
pub(super) struct Unreported {
    /// The start of the last block known to start with a valid fragment, and the form of that
    /// fragment. Everything before this block has been written.
    pub(super) passed: Option<(u64, Form)>,
    /// The state of the search for a block that starts with a valid fragment.
    pub(super) probes: Probes,
    /// The state of the search for data after the first `DETECT_LEN` bytes. Those first bytes
    /// determine the log's format.
    pub(super) head_probes: Probes,
    /// Whether the next poll must probe more blocks of a replaced file.
    pub(super) is_probing: bool,
    pub(super) retrying: Option<Retrying>,
    /// The offset of bytes that can never become a valid fragment.
    pub(super) known_bad: Option<u64>,
}

/// Selects the blocks to probe. Every poll probes the first block, where the writer continues
/// unless a crash left a gap of several blocks. The other blocks are probed in turn, because a
/// writer may start or complete any of them at any time.
///
/// Once a replaced file has been reported, the caller might never poll it again, so all its blocks
/// are probed before the first report. They are probed again before each subsequent report, because
/// the writer may have continued in the meantime.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Probes {
    /// The next block to probe after the first one, or 0 to start over.
    next: u64,
    /// Whether the current round of probing has covered all blocks. A round starts after the file
    /// is replaced, and a new one after each report of the replacement. `None` until a round
    /// starts.
    pub(super) has_probed_all: Option<bool>,
}

impl Probes {
    /// Calls `is_it` for each of the next blocks to probe, starting with `first`, until a call
    /// returns true. Returns whether any call returned true. To check whether more blocks remain,
    /// call [`is_unfinished`](Self::is_unfinished).
    pub(super) fn any(
        &mut self,
        first: u64,
        status: FileStatus,
        mut is_it: impl FnMut(u64) -> io::Result<bool>,
    ) -> io::Result<bool> {
        match self.has_probed_all {
            None if status.is_rotated => (self.next, self.has_probed_all) = (0, Some(false)),
            Some(_) if !status.is_rotated => self.has_probed_all = None,
            _ => {}
        }
        let mut start = first;
        for _ in 0..PROBES_MAX {
            if start >= status.file_len {
                self.next = 0;
                self.has_probed_all = self.has_probed_all.map(|_| true);
                break;
            }
            if is_it(start)? {
                return Ok(true);
            }
            self.next = self.next.max(start + BLOCK_LEN as u64);
            start = self.next;
        }
        Ok(false)
    }

    /// Returns whether more blocks of a replaced file must be probed before the replacement is
    /// reported.
    pub(super) fn is_unfinished(&self) -> bool {
        self.has_probed_all == Some(false)
    }
}

/// The offset of bytes that look damaged, the time they were first seen, and how many times they
/// have been reread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retrying {
    pub(super) offset: u64,
    pub(super) since: Instant,
    pub(super) polls: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = BLOCK_LEN as u64;

    /// Returns the numbers of the blocks that a poll probes if only the block `found` passes the
    /// check.
    fn probed(probes: &mut Probes, first: u64, block_count: u64, is_rotated: bool, found: Option<u64>) -> Vec<u64> {
        let status = FileStatus {
            file_len: block_count * BLOCK,
            is_rotated,
            is_replaced: false,
        };
        let mut blocks = Vec::new();
        let answer = probes.any(first * BLOCK, status, |start| {
            blocks.push(start / BLOCK);
            Ok(found == Some(start / BLOCK))
        });
        let is_found = found.is_some() && blocks.last().copied() == found;
        assert_eq!(answer.expect("no error"), is_found);
        blocks
    }

    fn first_and(first: u64, others: std::ops::Range<u64>) -> Vec<u64> {
        std::iter::once(first).chain(others).collect()
    }

    #[test]
    fn each_poll_probes_the_first_block_and_resumes_where_it_left_off() {
        let mut probes = Probes::default();
        for others in [1..256, 256..511, 511..600, 1..256] {
            assert_eq!(probed(&mut probes, 0, 600, false, None), first_and(0, others));
            assert!(!probes.is_unfinished());
        }
        // The first block moves forward, by a few blocks at first and then past the most recently
        // probed blocks.
        assert_eq!(probed(&mut probes, 3, 600, false, None), first_and(3, 256..511));
        assert_eq!(probed(&mut probes, 590, 600, false, None), first_and(590, 591..600));
        assert_eq!(probed(&mut probes, 600, 600, false, None), []);
        // The next poll finds this block again.
        assert_eq!(probed(&mut probes, 0, 600, false, Some(7)), first_and(0, 1..8));
        assert_eq!(probed(&mut probes, 0, 600, false, Some(7)), [0, 7]);
        assert_eq!(probed(&mut probes, 0, 9, false, Some(0)), [0]);
    }

    #[test]
    fn a_replaced_file_is_fully_probed_before_the_replacement_is_reported() {
        let mut probes = Probes::default();
        assert_eq!(probed(&mut probes, 0, 300, false, None), first_and(0, 1..256));
        // Probing starts over, because the writer may have continued in the meantime.
        assert_eq!(probed(&mut probes, 0, 300, true, None), first_and(0, 1..256));
        assert!(probes.is_unfinished());
        assert_eq!(probed(&mut probes, 0, 300, true, None), first_and(0, 256..300));
        assert!(!probes.is_unfinished());
        // A second round is needed only after the replacement has been reported.
        assert_eq!(probed(&mut probes, 0, 300, true, None), first_and(0, 1..256));
        assert!(!probes.is_unfinished());
        probes.has_probed_all = None;
        assert_eq!(probed(&mut probes, 0, 300, true, None), first_and(0, 1..256));
        assert!(probes.is_unfinished());
        // The path refers to this file again.
        assert_eq!(probed(&mut probes, 0, 300, false, None), first_and(0, 256..300));
        assert!(!probes.is_unfinished());
    }
}
