//! The state protected by a log file's lock.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::MutexGuard;
use crate::encode::Encoder;
use crate::writer::storage::Storage;

/// All offsets here are file offsets, even in a segment.
#[derive(Debug)]
pub(in crate::writer) struct State {
    /// `None` once the log is closed. Threads waiting for a sync also have a handle to the storage.
    pub(super) storage: Option<Arc<dyn Storage>>,
    pub(super) encoder: Encoder,
    /// Records that haven't been written to the file yet.
    pub(super) buffer: Vec<u8>,
    /// The length of the file. Every record before this offset has been written in full.
    pub(super) written: u64,
    /// Everything before this offset is on disk.
    pub(super) durable: u64,
    /// Whether the file's name has been synced to disk. Until then, a machine crash can lose the
    /// file.
    pub(super) is_name_durable: bool,
    /// Whether a thread is syncing, which it does without holding the lock.
    pub(super) is_syncing: bool,
    /// The number of threads waiting for a sync, including the thread that is syncing.
    pub(super) waiting: usize,
    /// The end offset and the start time of the most recently started sync.
    pub(super) sync_end: u64,
    pub(super) sync_started: Instant,
    /// The permanent failure, if any.
    pub(super) failure: Option<Failure>,
    /// Whether closing has started.
    pub(super) is_closed: bool,
}

/// The state of a [`LogFile`](super::LogFile) at one point in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogStatus {
    /// The value of [`LogFile::offset`](super::LogFile::offset).
    pub offset: u64,
    /// The value of [`LogFile::durable_offset`](super::LogFile::durable_offset).
    pub durable_offset: u64,
    /// Whether there has been a permanent failure, after which every call fails.
    pub has_failed: bool,
    /// Whether [`close`](super::LogFile::close) has been called.
    pub is_closed: bool,
}

impl LogStatus {
    /// The status of a log in a forked child if another thread was writing to the log when the
    /// parent forked.
    pub(in crate::writer) const UNKNOWN: LogStatus = LogStatus {
        offset: 0,
        durable_offset: 0,
        has_failed: true,
        is_closed: false,
    };
}

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) what: &'static str,
    pub(super) source: io::Error,
    /// Why a failed write could not be undone.
    pub(super) undo_error: Option<io::Error>,
}

/// If a call fails, the log is rolled back to this position. In a log with containers, this is the
/// end of the last closed container. Any call that may need to roll back therefore closes the open
/// container first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    buffered_len: usize,
    offset: u64,
}

impl State {
    #[inline]
    pub(super) fn encode(&mut self, record: &[u8]) -> u64 {
        self.encoder.encode(record, &mut self.buffer)
    }

    /// Returns the status of a log file whose first byte is at the log offset `origin`.
    pub(super) fn status(&self, origin: u64) -> LogStatus {
        LogStatus {
            offset: origin + self.encoder.offset(),
            durable_offset: origin + self.durable,
            has_failed: self.failure.is_some(),
            is_closed: self.is_closed,
        }
    }

    #[inline]
    pub(super) fn mark(&self) -> Mark {
        Mark {
            buffered_len: self.buffer.len(),
            offset: self.encoder.closed_offset(),
        }
    }

    /// Closes the open container, if there is one.
    #[inline]
    pub(super) fn end_container(&mut self) {
        self.encoder.end_container(&mut self.buffer);
    }

    /// Notes that the operation named `what` has failed, unless there was an earlier failure. Every
    /// later call fails.
    pub(super) fn fail(&mut self, what: &'static str, source: io::Error) {
        self.failure.get_or_insert(Failure {
            what,
            source,
            undo_error: None,
        });
    }

    /// After a failed write, removes the records that were appended after `mark` but did not reach
    /// the file.
    pub(super) fn take_back(&mut self, mark: Mark) {
        let (len, offset) = if self.written > mark.offset {
            // Everything before the mark has been written, and so have some bytes after it.
            (0, self.written)
        } else {
            (mark.buffered_len, mark.offset)
        };
        self.buffer.truncate(len);
        self.encoder = self.encoder.at(offset);
    }
}

/// Returns the state, which may be inconsistent because a thread panicked while holding the lock.
#[cold]
pub(super) fn after_panic(mut state: MutexGuard<'_, State>) -> MutexGuard<'_, State> {
    state.fail("append", io::Error::other("it panicked"));
    state
}
