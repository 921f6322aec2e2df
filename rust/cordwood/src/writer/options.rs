//! How a log file is opened, and when it is synced.

use std::time::Duration;

use crate::dialect::Dialect;

/// When a [`LogFile`](crate::LogFile) waits until its records are on the disk.
///
/// [`LogFile::sync`](crate::LogFile::sync) and [`LogFile::append_sync`](crate::LogFile::append_sync) do so at any time, whatever the policy.
/// No thread runs in the background: `EveryBytes` and `EveryInterval` are looked at when a record is appended, so a program that has nothing
/// more to append calls `sync` itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// Only when asked. Records survive the end of the process once they are flushed; what the machine does with them is up to it.
    #[default]
    Never,
    /// [`LogFile::close`](crate::LogFile::close) syncs. So it does with all that follow.
    OnClose,
    /// Each append, before it returns. Threads that append at the same time share a sync.
    EveryAppend,
    /// The append that makes it this many bytes since the last sync.
    EveryBytes(u64),
    /// The append that comes this long after the last sync, or later.
    EveryInterval(Duration),
}

/// What opening for append does with a file that does not end with a whole record. `docs/format/writing.md` has the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnTornTail {
    /// Nothing: it is [`Error::TornTail`](crate::Error::TornTail), or [`Error::Corruption`](crate::Error::Corruption) for damage anywhere.
    #[default]
    Refuse,
    /// Cuts off what stands behind the last whole record, if a crash can have left it there. Damage is refused.
    Truncate,
    /// Leaves every byte, and goes on at the next block behind them, damage or not. Readers will go on telling of what they skip there.
    PadToBlock,
}

/// How to open a [`LogFile`](crate::LogFile).
///
/// ```
/// use cordwood::{LogFileOptions, OnTornTail, SyncPolicy};
/// let options = LogFileOptions::default()
///     .with_sync(SyncPolicy::EveryAppend)
///     .with_on_torn_tail(OnTornTail::Truncate);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogFileOptions {
    /// When to sync. Default: [`SyncPolicy::Never`].
    pub sync: SyncPolicy,
    /// For [`LogFile::append_to`](crate::LogFile::append_to): what to do with a file that does not end with a whole record.
    /// Default: [`OnTornTail::Refuse`].
    pub on_torn_tail: OnTornTail,
    /// Ask the file system for room this many bytes at a time, before it is needed. The length of the file stays that of its records, and
    /// closing gives back what was not used. Default: 0, not at all.
    ///
    /// A hint: it needs the feature `preallocate`, Linux, and a file system that can do it (ext4, XFS, Btrfs, tmpfs); otherwise nothing
    /// happens.
    pub preallocate_len: u64,
    /// For [`LogFile::append_to`](crate::LogFile::append_to): the offset of a record, from which on the file is read to find its end. What comes
    /// before is not looked at. Default: `None`, the beginning of the file.
    pub checkpoint: Option<u64>,
    /// In which dialect to write, as [`Encoder::with_dialect`](crate::Encoder::with_dialect) does. Closing writes the trailer that closes a log of
    /// Pebble. Default: [`Dialect::LEVELDB`].
    pub dialect: Dialect,
}

impl Default for LogFileOptions {
    fn default() -> Self {
        LogFileOptions {
            sync: SyncPolicy::default(),
            on_torn_tail: OnTornTail::default(),
            preallocate_len: 0,
            checkpoint: None,
            dialect: Dialect::LEVELDB,
        }
    }
}

impl LogFileOptions {
    /// Sets [`sync`](Self::sync).
    #[must_use]
    pub fn with_sync(mut self, sync: SyncPolicy) -> Self {
        self.sync = sync;
        self
    }

    /// Sets [`on_torn_tail`](Self::on_torn_tail).
    #[must_use]
    pub fn with_on_torn_tail(mut self, on_torn_tail: OnTornTail) -> Self {
        self.on_torn_tail = on_torn_tail;
        self
    }

    /// Sets [`preallocate_len`](Self::preallocate_len), in bytes.
    #[must_use]
    pub fn with_preallocate_len(mut self, preallocate_len: u64) -> Self {
        self.preallocate_len = preallocate_len;
        self
    }

    /// Sets [`dialect`](Self::dialect).
    #[must_use]
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets [`checkpoint`](Self::checkpoint), a file offset.
    #[must_use]
    pub fn with_checkpoint(mut self, checkpoint: Option<u64>) -> Self {
        self.checkpoint = checkpoint;
        self
    }
}
