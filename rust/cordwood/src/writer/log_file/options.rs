//! Options for opening and syncing a log file.

use std::time::Duration;

use crate::decode::RECORD_LEN_MAX;
use crate::dialect::{Compression, Dialect, LogFormat};
use crate::names::{named, parses_name};
use crate::options::{log_options, options};

/// Determines when a [`LogFile`](crate::LogFile) waits until its records are on disk.
///
/// Under any policy, you can sync at any time with [`LogFile::sync`](crate::LogFile::sync) and
/// [`LogFile::append_sync`](crate::LogFile::append_sync). A log has no background thread, so
/// `EveryBytes` and `EveryInterval` only take effect during an append. Between appends, the log
/// does not sync, however long ago the last sync was. If your program won't append for a while,
/// call `sync` yourself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// The log only syncs on request. Once written, records survive even if the process is killed,
    /// but they can be lost if the machine crashes.
    #[default]
    Never,
    /// [`LogFile::close`](crate::LogFile::close) syncs. Every policy except `Never` syncs on close.
    OnClose,
    /// Each append syncs before it returns. Threads that append at the same time share one sync.
    EveryAppend,
    /// An append syncs before it returns if at least this many bytes, including its own, have been
    /// appended since the last sync.
    EveryBytes(u64),
    /// An append syncs before it returns if the last sync was at least this long ago.
    EveryInterval(Duration),
}

named! {
    /// Determines when a [`LogFile`](crate::LogFile) writes its records to the operating system.
    /// Once written, records survive even if the process is killed.
    ///
    /// [`LogFile::flush`](crate::LogFile::flush), [`LogFile::sync`](crate::LogFile::sync) and
    /// [`LogFile::close`](crate::LogFile::close) write all records, regardless of the policy. The
    /// [`SyncPolicy`] determines when the records reach the disk.
    #[derive(Default)]
    pub enum FlushPolicy {
        /// Each append writes its record before it returns, usually in one write. Calls to
        /// [`extend`](crate::LogFile::extend), and appends of more than 256 KiB, use one write per
        /// 256 KiB. Appended records survive even if the process is killed. LevelDB also writes
        /// each record immediately.
        #[default]
        EveryAppend = "append",
        /// The log buffers its records. It writes them on request, when the buffer reaches 256 KiB,
        /// and when the log is closed. Appending short records takes a fraction of the time it does
        /// with `EveryAppend`. If the process is killed, up to 256 KiB of records are lost.
        OnClose = "close",
    }
}

parses_name!(FlushPolicy, "flush policy", [EveryAppend, OnClose]);

named! {
    /// How [`LogFile::append_to`](crate::LogFile::append_to) treats a file that does not end with a
    /// complete record.
    ///
    /// The rules are in `docs/format/writing.md`.
    #[derive(Default)]
    pub enum OnTornTail {
        /// Refuses the file with [`ErrorKind::TornTail`](crate::ErrorKind::TornTail), or with
        /// [`ErrorKind::Corruption`](crate::ErrorKind::Corruption) if there is damage anywhere.
        #[default]
        Refuse = "refuse",
        /// Cuts off the bytes after the last complete record, if a crash could have left them
        /// there. Refuses any other damage. Damage that a single flipped bit could have caused is
        /// also refused, because the record may have been synced. Files that contain no valid
        /// fragments are refused too, because they might not be logs.
        Truncate = "truncate",
        /// Keeps every byte, damaged or not, and starts appending at the next block. Readers still
        /// report the region before this block as skipped.
        PadToBlock = "pad",
    }
}

parses_name!(OnTornTail, "policy for a torn tail", [Refuse, Truncate, PadToBlock]);

options! {
    /// Options for opening a [`LogFile`](crate::LogFile).
    ///
    /// ```
    /// use cordwood_log::{LogFileOptions, OnTornTail, SyncPolicy};
    /// let options = LogFileOptions::default()
    ///     .with_sync(SyncPolicy::EveryAppend)
    ///     .with_on_torn_tail(OnTornTail::Truncate);
    /// ```
    pub struct LogFileOptions {
        /// When to write records to the operating system. Default: [`FlushPolicy::EveryAppend`].
        pub flush: FlushPolicy = FlushPolicy::default(), set with_flush;
        /// When to sync. Default: [`SyncPolicy::Never`].
        pub sync: SyncPolicy = SyncPolicy::default(), set with_sync;
        /// How [`LogFile::append_to`](crate::LogFile::append_to) treats a file that does not end
        /// with a complete record. Default: [`OnTornTail::Refuse`].
        pub on_torn_tail: OnTornTail = OnTornTail::default(), set with_on_torn_tail;
        /// The maximum length in bytes of a segment in a [`SegmentedLog`](crate::SegmentedLog). A
        /// segment is longer only if its first record doesn't fit. A [`LogFile`](crate::LogFile)
        /// ignores this option. Default: 64 MiB.
        pub segment_len: u64 = 64 << 20, set with_segment_len;
        /// How many bytes a [`SegmentedLog`](crate::SegmentedLog) keeps in older segments. Each
        /// time a segment starts, the log removes the oldest segments, as long as at least this
        /// many bytes remain before the new segment. If [`retention_time`](Self::retention_time) is
        /// also set, a segment is removed if either option allows it. Default: `None`, which keeps
        /// all segments.
        pub retention_bytes: Option<u64> = None, into with_retention_bytes;
        /// How long a [`SegmentedLog`](crate::SegmentedLog) keeps a segment. Each time a segment
        /// starts, the log removes the oldest segments, as long as their last change was longer ago
        /// than this. If a segment's last change is in the future according to the system's clock,
        /// the segment and all later ones are kept. Default: `None`, which keeps all segments.
        pub retention_time: Option<Duration> = None, into with_retention_time;
        /// An offset where a record starts or ends, such as an earlier
        /// [`durable_offset`](crate::LogFile::durable_offset). Everything before it must be known
        /// to be on disk. [`LogFile::append_to`](crate::LogFile::append_to) reads the file from
        /// this offset to find the file's end. It also rewrites the bytes after this offset,
        /// because the process that wrote them may have failed to sync them. If the checkpoint is
        /// greater than 0, the file must exist. Default: `None`, which reads the file from its
        /// start, and does not rewrite any bytes unless a sync has failed in this process.
        pub checkpoint: Option<u64> = None, into with_checkpoint;
        /// The dialect to write. See [`Encoder::with_format`](crate::codec::Encoder::with_format).
        /// In Pebble's dialect, closing the log writes the end-of-log trailer. Default: `None`,
        /// which uses the dialect a [`Reader`](crate::Reader) detects in the existing file, or
        /// [`Dialect::LEVELDB`] for a new log.
        pub dialect: Option<Dialect> = None, into with_dialect;
        /// The number of the log, which is written to each fragment. See [`LogFormat::log_number`].
        /// A numbered log is never appended to. Default: `None`.
        pub log_number: Option<u32> = None, into with_log_number;
        /// The compression of each record or, in the [`PACKED`](Dialect::PACKED) dialect, of each
        /// container. A log with compressed records is never appended to. A packed log keeps its
        /// existing compression. Default: `None`, which means no compression.
        pub compression: Option<Compression> = None, into with_compression;
        /// The maximum length of a record in bytes. Longer records are refused with
        /// [`ErrorKind::RecordTooLarge`](crate::ErrorKind::RecordTooLarge). Default:
        /// [`RECORD_LEN_MAX`], 1 GiB, the same as for readers. To read a record of more than 1 GiB,
        /// a reader also needs a higher `record_len_max`.
        ///
        /// This option also limits how much data [`LogFile::append_to`](crate::LogFile::append_to)
        /// decompresses, by the same rules that apply to readers. A longer container is treated as
        /// complete without being decompressed. A log whose containers exceed a reader's budget is
        /// refused, unless this option is more than 1 GiB.
        pub record_len_max: u64 = RECORD_LEN_MAX, set with_record_len_max;
        /// The log offset of the file's first byte, which is 0 unless the file is a segment.
        pub(in crate::writer) origin: u64 = 0;
        /// Whether the file is known to be a segment, either because the previous segment ends
        /// where this file starts, or because the directory had a lock. A segment is a log, even if
        /// its bytes don't look like one.
        pub(in crate::writer) is_segment: bool = false;
    }
}

log_options!(LogFileOptions);

impl LogFileOptions {
    /// Returns the given format, with [`Dialect::LEVELDB`] as the default dialect.
    pub(in crate::writer) fn format(&self) -> LogFormat {
        self.named().or_leveldb()
    }
}
