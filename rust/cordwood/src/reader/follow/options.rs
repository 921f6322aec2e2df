//! How to follow.

use std::time::Duration;

use crate::decode::{Decoder, Growth, OnCorruption, RECORD_LEN_MAX, ReadOptions};
use crate::dialect::{Compression, Dialect, LogFormat};
use crate::options::{log_options, options};
use crate::position::Position;

options! {
    /// How to follow.
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
        /// Return only events that start at this file offset or after it: the
        /// [`Follower::offset`](super::Follower::offset) of an earlier follower. Default: 0. To
        /// resume, [`with_position`](Self::with_position) also checks that it is the same log.
        ///
        /// MIDDLE and LAST fragments at the start, before any other fragment, are taken for the
        /// rest of a record that starts before it, and are skipped without being reported, even if
        /// that record is damaged or missing.
        pub start: u64 = 0;
        /// The position at which an earlier follower ended: the log must be the same. Default:
        /// `None`.
        pub position: Option<Position> = None;
        /// The treatment of damage. Default: [`OnCorruption::Fail`]. Here,
        /// [`OnCorruption::Salvage`] is the same as [`OnCorruption::Skip`]: the rest of a block
        /// that is still being written cannot be judged.
        pub on_corruption: OnCorruption = OnCorruption::Fail, set with_on_corruption;
        /// How long [`Follower::wait`](super::Follower::wait) sleeps between polls. Default: 50 ms.
        pub poll_interval: Duration = Duration::from_millis(50), set with_poll_interval;
        /// Bytes that look damaged, with no later block that starts with a valid fragment, are read
        /// again this many times before they are reported. Default: 3.
        pub retry_polls: u32 = 3;
        /// Bytes that look damaged are also read again for at least this long before they are
        /// reported. Default: 100 ms.
        pub retry_time: Duration = Duration::from_millis(100);
        /// Refuse a record with more bytes than this. This bounds the memory of a follower.
        /// Default: 1 GiB.
        pub record_len_max: u64 = RECORD_LEN_MAX, set with_record_len_max;
        /// The dialect of the log. Default: `None`: it is detected as soon as there is a file
        /// header or a complete fragment, and is [`Dialect::LEVELDB`] until then.
        /// [`Dialect::WANDB_OLD`] is never detected, since only the second block shows it.
        pub dialect: Option<Dialect> = None, into with_dialect;
        /// The number of the log, as [`ReadOptions::log_number`]. Default: `None`.
        pub log_number: Option<u32> = None, into with_log_number;
        /// How each record is compressed, as [`ReadOptions::compression`]. Default: `None`.
        pub compression: Option<Compression> = None, into with_compression;
    }
}

log_options!(FollowOptions);

impl FollowOptions {
    /// Sets [`start`](Self::start), in bytes, in whichever log it is: without a
    /// [`position`](Self::position).
    #[must_use]
    pub fn with_start(mut self, start: u64) -> Self {
        (self.start, self.position) = (start, None);
        self
    }

    /// Resumes at the [`Follower::position`](super::Follower::position) of an earlier follower:
    /// sets [`start`](Self::start) and [`position`](Self::position).
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

    /// How a reader of the same log reads it.
    pub(super) fn read_options(&self) -> ReadOptions {
        let (dialect, number) = (self.dialect, self.log_number);
        ReadOptions::default()
            .with_dialect(dialect)
            .with_log_number(number)
            .with_compression(self.compression)
            .with_record_len_max(self.record_len_max)
    }

    /// A decoder for a file whose first byte has the offset `origin`.
    pub(super) fn decoder(&self, format: LogFormat, origin: u64) -> Decoder {
        // The follower itself ends at damage, since it also decides when damage is reported.
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
