//! How to read.

use crate::dialect::{Dialect, is_open};

/// What a reader does with damage: a [`SkippedRegion`](crate::SkippedRegion) of [`Severity::Corruption`](crate::Severity::Corruption).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnCorruption {
    /// It is an [`Error::Corruption`](crate::Error::Corruption); the next call goes on behind it.
    #[default]
    Raise,
    /// It is an event like any other. LevelDB's behaviour.
    Skip,
    /// It is the end: [`End::Stopped`](super::End::Stopped). RocksDB's "point in time".
    Stop,
    /// Like [`Skip`](Self::Skip), but sound records behind the damage in the same block are kept, and marked:
    /// [`RecordSpan::is_salvaged`](super::RecordSpan::is_salvaged). Nothing is repaired.
    Salvage,
}

/// How to read.
///
/// ```
/// use cordwood::{OnCorruption, ReadOptions};
/// let options = ReadOptions::default().with_on_corruption(OnCorruption::Skip).with_range(0, Some(1 << 20));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// What to do with damage. Default: [`OnCorruption::Raise`].
    pub on_corruption: OnCorruption,
    /// Return only what begins at this file offset or behind it. Default: 0.
    pub start: u64,
    /// Return only what begins before this file offset; its last record is finished beyond it. Default: `None`, all.
    pub end: Option<u64>,
    /// Refuse a record with more bytes than this: [`Reason::RecordTooLarge`](crate::Reason::RecordTooLarge). It bounds what a reader holds. Default: 1 GiB.
    pub record_len_max: u64,
    /// Check each fragment's checksum. Default: `true`. Without it damaged data is returned as good.
    pub verify_checksums: bool,
    /// The dialect of the log. Default: `None`, which lets a [`Reader`](crate::Reader) find it out by [`detect`](crate::detect), and is
    /// [`Dialect::LEVELDB`] for a [`Decoder`](super::Decoder) and where it cannot be found out.
    pub dialect: Option<Dialect>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            on_corruption: OnCorruption::Raise,
            start: 0,
            end: None,
            record_len_max: 1 << 30,
            verify_checksums: true,
            dialect: None,
        }
    }
}

impl ReadOptions {
    /// Sets [`on_corruption`](Self::on_corruption).
    #[must_use]
    pub fn with_on_corruption(mut self, on_corruption: OnCorruption) -> Self {
        self.on_corruption = on_corruption;
        self
    }

    /// Reads the events that begin in `[start, end)`; `None` is the end of the file.
    ///
    /// A record belongs to the range in which its first fragment's header begins, so adjacent ranges together give each record once,
    /// wherever they are cut.
    #[must_use]
    pub fn with_range(mut self, start: u64, end: Option<u64>) -> Self {
        self.start = start;
        self.end = end;
        self
    }

    /// Sets [`record_len_max`](Self::record_len_max), in bytes.
    #[must_use]
    pub fn with_record_len_max(mut self, record_len_max: u64) -> Self {
        self.record_len_max = record_len_max;
        self
    }

    /// Sets [`verify_checksums`](Self::verify_checksums).
    #[must_use]
    pub fn with_verify_checksums(mut self, verify_checksums: bool) -> Self {
        self.verify_checksums = verify_checksums;
        self
    }

    /// Whether a reader looks at the beginning of the file before it reads: to find out the dialect, or what the dialect that is named leaves open, the
    /// log number and the compression. It must then begin there, also for a range.
    pub fn must_look(&self) -> bool {
        self.dialect.is_none_or(is_open)
    }

    /// Sets [`dialect`](Self::dialect).
    #[must_use]
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }
}
