//! The options of a follower.

use std::time::Duration;

use crate::decode::{Decoder, Growth, OnCorruption, RECORD_LEN_MAX, ReadOptions};
use crate::dialect::{Compression, Dialect, LogFormat};
use crate::options::{log_options, options};
use crate::position::Position;

options! {
    /// The options of a [`Follower`](super::Follower).
    ///
    /// ```
    /// use std::time::Duration;
    /// use cordwood_log::{FollowOptions, OnCorruption};
    /// let options = FollowOptions::default()
    ///     .with_start(50_034)
    ///     .with_on_corruption(OnCorruption::Skip)
    ///     .with_poll_interval(Duration::from_millis(5));
    /// ```
    pub struct FollowOptions {
        /// Return only events that start at or after this file offset, usually the
        /// [`Follower::offset`](super::Follower::offset) of an earlier follower. Default: 0. To
        /// also check that the log has not been replaced, use
        /// [`with_position`](Self::with_position).
        ///
        /// A follower may start in the middle of a record. It treats MIDDLE or LAST fragments at
        /// its start as the rest of an earlier record. These fragments are skipped and not
        /// reported, even if the start of that record is damaged or missing.
        pub start: u64 = 0;
        /// The position where an earlier follower ended. The follower checks that the log is still
        /// the same. Default: `None`.
        pub position: Option<Position> = None;
        /// How to treat damage. Default: [`OnCorruption::Fail`]. A follower treats
        /// [`OnCorruption::Salvage`] like [`OnCorruption::Skip`], because it cannot search a block
        /// for valid records while the block is still being written.
        pub on_corruption: OnCorruption = OnCorruption::Fail, set with_on_corruption;
        /// How long [`Follower::wait`](super::Follower::wait) sleeps between polls. Default: 50 ms.
        pub poll_interval: Duration = Duration::from_millis(50), set with_poll_interval;
        /// How many times to reread bytes that look damaged before reporting them. If a later block
        /// starts with a valid fragment, the damage is reported without waiting. Default: 3.
        pub retry_polls: u32 = 3;
        /// The minimum time to spend rereading bytes that look damaged before reporting them.
        /// Default: 100 ms.
        pub retry_time: Duration = Duration::from_millis(100);
        /// The maximum length of a record in bytes. Longer records are rejected, which limits a
        /// follower's memory use. Default: 1 GiB.
        pub record_len_max: u64 = RECORD_LEN_MAX, set with_record_len_max;
        /// The dialect of the log. If this is `None`, the follower uses [`Dialect::LEVELDB`] until
        /// it can detect the dialect from a file header or a complete fragment. Default: `None`.
        /// [`Dialect::WANDB_OLD`] is never detected, because only its second block identifies it.
        pub dialect: Option<Dialect> = None, into with_dialect;
        /// The number of the log. See [`ReadOptions::log_number`]. Default: `None`.
        pub log_number: Option<u32> = None, into with_log_number;
        /// How each record is compressed. See [`ReadOptions::compression`]. Default: `None`.
        pub compression: Option<Compression> = None, into with_compression;
    }
}

log_options!(FollowOptions);

impl FollowOptions {
    /// Sets [`start`](Self::start) in bytes and clears [`position`](Self::position). Without a
    /// position, the follower does not check that the log is still the same.
    #[must_use]
    pub fn with_start(mut self, start: u64) -> Self {
        (self.start, self.position) = (start, None);
        self
    }

    /// Resumes at the [`Follower::position`](super::Follower::position) of an earlier follower.
    /// Sets [`start`](Self::start) and [`position`](Self::position).
    #[must_use]
    pub fn with_position(mut self, position: Position) -> Self {
        self.start = position.offset();
        self.position = Some(position);
        self
    }

    /// Sets [`retry_polls`](Self::retry_polls) and [`retry_time`](Self::retry_time).
    #[must_use]
    pub fn with_retry(mut self, polls: u32, time: Duration) -> Self {
        self.retry_polls = polls;
        self.retry_time = time;
        self
    }

    /// Returns the options for a reader of the same log.
    pub(super) fn read_options(&self) -> ReadOptions {
        ReadOptions::default()
            .with_named(self.named())
            .with_record_len_max(self.record_len_max)
    }

    /// Creates a decoder for a file whose first byte is at the offset `origin`.
    pub(super) fn decoder(&self, format: LogFormat, origin: u64) -> Decoder {
        // The follower decides when to report damage, so the decoder must not stop at damage on its
        // own.
        let mut options = ReadOptions::default()
            .with_format(format)
            .with_on_corruption(OnCorruption::Skip)
            .with_range(self.start..)
            .with_record_len_max(self.record_len_max);
        options.origin = origin;
        let mut decoder = Decoder::unchecked(&options);
        decoder.set_growth(Growth::WaitAtFaults);
        decoder
    }
}
