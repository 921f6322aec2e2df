//! Options for reading.

use std::ops::{Bound, RangeBounds};

use crate::dialect::{Compression, Dialect};
use crate::error::{Error, unsupported};
use crate::names::{named, parses_name};
use crate::options::{log_options, options};
use crate::position::Position;

named! {
    /// How damage is treated. Damage is any [`SkippedRegion`](crate::damage::SkippedRegion) with
    /// [`Severity::Corruption`](crate::damage::Severity::Corruption).
    #[derive(Default)]
    pub enum OnCorruption {
        /// Damage is returned as an [`ErrorKind::Corruption`](crate::ErrorKind::Corruption). The
        /// next call resumes after the damage.
        #[default]
        Fail = "raise",
        /// Damage is returned as an ordinary event, and reading resumes after it, as in LevelDB.
        Skip = "skip",
        /// Reading ends at damage, with the result [`End::Stopped`](super::End::Stopped). RocksDB
        /// calls this policy "point in time".
        Stop = "stop",
        /// Like [`Skip`](Self::Skip), but also returns valid records that follow damage in the same
        /// block, marked with [`RecordSpan::is_salvaged`](super::RecordSpan::is_salvaged). Flipped
        /// bits are not repaired.
        Salvage = "salvage",
    }
}

parses_name!(OnCorruption, "policy for damage", [Fail, Skip, Stop, Salvage]);

/// The default limit on the length of a record, in bytes: 1 GiB. Readers refuse longer records, and
/// writers do not write them.
pub const RECORD_LEN_MAX: u64 = 1 << 30;

options! {
    /// Options for reading.
    ///
    /// ```
    /// use cordwood_log::{OnCorruption, ReadOptions};
    /// let options = ReadOptions::default().with_on_corruption(OnCorruption::Skip).with_range(..1 << 20);
    /// ```
    pub struct ReadOptions {
        /// How damage is treated. Default: [`OnCorruption::Fail`].
        pub on_corruption: OnCorruption = OnCorruption::Fail, set with_on_corruption;
        /// Return only events that start at or after this file offset. Default: 0.
        pub start: u64 = 0;
        /// Return only events that start before this file offset. The last record can extend past
        /// this offset. Default: `None`, which means no limit.
        pub end: Option<u64> = None;
        /// The maximum length of a record, in bytes. Longer records are refused and reported as
        /// [`Reason::RecordTooLarge`](crate::damage::Reason::RecordTooLarge). This limits how much
        /// memory a reader uses. Default: [`RECORD_LEN_MAX`], 1 GiB.
        ///
        /// In a compressed log, the total length of the records is also limited. The limit is 256
        /// MiB plus 200 times the number of bytes read since the reader was created, or since its
        /// last seek. A record that would exceed this total causes
        /// [`ErrorKind::OverBudget`](crate::ErrorKind::OverBudget). A container in a packed log
        /// causes the same error if it decompresses to more than 256 MiB. If this option is set
        /// above its default, its value replaces 256 MiB in both limits.
        pub record_len_max: u64 = RECORD_LEN_MAX, set with_record_len_max;
        /// Whether to verify each fragment's checksum. If `false`, damaged data is returned as if
        /// it were intact. Default: `true`.
        pub verify_checksums: bool = true, set with_verify_checksums;
        /// The dialect of the log. If `None`, a [`Reader`](crate::Reader)
        /// [detects](crate::ops::detect) it, and uses [`Dialect::LEVELDB`] if detection fails. A
        /// [`Decoder`](super::Decoder) does not detect the dialect, and uses [`Dialect::LEVELDB`].
        /// Default: `None`.
        pub dialect: Option<Dialect> = None, into with_dialect;
        /// The number of the log. See [`LogFormat::log_number`](crate::LogFormat::log_number).
        /// Fragments that carry any other number are stale. If `None`, the number is taken from the
        /// file name or, if the name contains no number, from the file's first valid fragment.
        /// Default: `None`.
        pub log_number: Option<u32> = None, into with_log_number;
        /// How each record is compressed. If `None`, the compression is determined from the start
        /// of the log. If the log does not specify a compression method, records are returned as
        /// stored. Default: `None`.
        pub compression: Option<Compression> = None, into with_compression;
        /// Whether to flip bits back under [`OnCorruption::Salvage`]. See
        /// [`SalvageOptions::repair_bit_flips`](crate::ops::SalvageOptions::repair_bit_flips).
        pub(crate) repairs_bit_flips: bool = false;
        /// A position in the log to be read. When a [`Reader`](crate::Reader) opens a log's file or
        /// directory, it checks that the position belongs to that log. Default: `None`.
        pub position: Option<Position> = None;
        /// In a log that consists of several files, the log offset of this file's first byte. The
        /// decoder counts blocks from this offset. Only readers set this option.
        pub(crate) origin: u64 = 0;
        /// Whether to accept ordinary records of any length. Only a reader that doesn't keep any
        /// data may set this option.
        pub(crate) takes_any_len: bool = false;
    }
}

log_options!(ReadOptions);

impl ReadOptions {
    /// Reads only events that start in a range of file offsets. Sets [`start`](Self::start) and
    /// [`end`](Self::end).
    ///
    /// A record belongs to the range in which its first fragment's header starts. Reading a file in
    /// adjacent ranges therefore returns each record exactly once, no matter where the ranges meet.
    ///
    /// ```
    /// use cordwood_log::ReadOptions;
    /// let (first, rest) = (ReadOptions::default().with_range(..32_768), ReadOptions::default().with_range(32_768..));
    /// assert_eq!((first.start, first.end), (0, Some(32_768)));
    /// assert_eq!((rest.start, rest.end), (32_768, None));
    /// ```
    #[must_use]
    pub fn with_range(mut self, range: impl RangeBounds<u64>) -> Self {
        // A start past the largest possible offset excludes all events. An end past the largest
        // possible offset excludes none.
        self.start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        self.end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => None,
        };
        self
    }

    /// Starts at a position from an earlier reader. Sets [`start`](Self::start) and
    /// [`position`](Self::position).
    #[must_use]
    pub fn with_position(mut self, position: Position) -> Self {
        self.start = position.offset();
        self.position = Some(position);
        self
    }

    /// Checks whether a reader must inspect the start of the file to detect the dialect, the log
    /// number or the compression. If so, the reader's source must start at the first byte of the
    /// file, even if only a range is read.
    // Hidden, because the only user outside this crate is the Python binding, which opens sources
    // the way `Reader::open_with` opens files.
    #[doc(hidden)]
    pub fn must_look(&self) -> bool {
        self.named().may_be_completed() || self.named().check().is_err()
    }

    /// Checks that logs in the given dialect can have the given log number and compression. If no
    /// dialect is given, the reader makes this check after detecting the dialect.
    ///
    /// ```
    /// use cordwood_log::{Dialect, Error, ErrorKind, ReadOptions, Reader};
    /// let options = ReadOptions::default().with_dialect(Dialect::LEVELDB).with_log_number(7);
    /// assert!(matches!(options.check(), Err(Error { kind: ErrorKind::Unsupported { .. }, .. })));
    /// assert!(matches!(Reader::from_slice(b"", options).next_record(), Err(Error { kind: ErrorKind::Unsupported { .. }, .. })));
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if logs in the dialect
    /// cannot have the given log number or compression.
    pub fn check(&self) -> Result<(), Error> {
        unsupported(self.named().check(), None)
    }
}
