//! The format of a log: its dialect, its number and its compression.

use super::{Dialect, END_TRAILER_KIND, Form};
use crate::names::{named, parses_name};

named! {
    /// The compression of a log's records.
    pub enum Compression {
        /// Each record is a Zstandard frame, as with RocksDB's `wal_compression`. In a packed log,
        /// each container, rather than each record, is a frame.
        Zstd = "zstd",
    }
}

parses_name!(Compression, "compression", [Zstd]);

/// The format of a log: its byte layout, its number, and the compression of its records.
/// [`detect`](crate::ops::detect) returns the format of a log, and an
/// [`Encoder`](crate::codec::Encoder) or a [`Writer`](crate::Writer) writes logs in a given format.
///
/// ```
/// use cordwood_log::{Dialect, LogFormat, ReadOptions, Reader};
/// use cordwood_log::ops::{Detection, detect};
/// // A record of log 123 of RocksDB, in a form that says its number.
/// let file = b"\x45\xb7\x1d\x10\x03\x00\x05\x7b\x00\x00\x00foo";
/// let format = LogFormat::new(Dialect::RECYCLABLE).with_log_number(123);
/// assert_eq!(detect(file), Detection::Log(format));
/// let mut reader = Reader::from_slice(file, ReadOptions::default().with_format(format));
/// assert_eq!(reader.next_record()?.unwrap().data, b"foo");
/// # Ok::<(), cordwood_log::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct LogFormat {
    /// The layout of the bytes.
    pub dialect: Dialect,
    /// The low 32 bits of the number in the log's file name. Fragments with a different number are
    /// stale: they are left over from a log that the file contained earlier. `None` if the dialect
    /// has no log numbers or the number is not known.
    ///
    /// A number is recognized only in the names that engines give their logs, which have at least
    /// six digits, such as `000123.log` or `20240131.log`. After a Pebble failover, the name can be
    /// `000123-001.log`.
    ///
    /// If there is a log number, a writer stores it in each fragment and uses types 5 to 8.
    /// Otherwise, it uses types 1 to 4.
    pub log_number: Option<u32>,
    /// The compression of each record or, in a [packed](Dialect::PACKED) log, of each container.
    /// `None` if the log is not compressed or its compression is not known.
    pub compression: Option<Compression>,
}

/// Creates a format with only a dialect. Its log number and compression are absent or unknown.
impl From<Dialect> for LogFormat {
    fn from(dialect: Dialect) -> Self {
        LogFormat::new(dialect)
    }
}

impl LogFormat {
    /// Creates a format with only a dialect. Its log number and compression are absent or unknown.
    pub const fn new(dialect: Dialect) -> Self {
        LogFormat {
            dialect,
            log_number: None,
            compression: None,
        }
    }

    /// Returns the format for reading a log whose format was not detected.
    pub(crate) fn unknown() -> Self {
        Dialect::LEVELDB.detected().into()
    }

    /// Sets [`log_number`](Self::log_number). Specifying a log number is an error in a dialect
    /// without log numbers.
    #[must_use]
    pub const fn with_log_number(mut self, log_number: u32) -> Self {
        self.log_number = Some(log_number);
        self
    }

    /// Sets [`compression`](Self::compression). Specifying a compression method is an error in
    /// dialects other than [`Dialect::ROCKSDB`] and [`Dialect::PACKED`].
    #[must_use]
    pub const fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Sets the log number, if one is given and the dialect has log numbers.
    pub(crate) const fn numbered(mut self, log_number: Option<u32>) -> Self {
        if log_number.is_some() && self.dialect.has_log_numbers() {
            self.log_number = log_number;
        }
        self
    }

    /// Checks whether records or containers of records are zstd frames.
    pub(crate) const fn is_zstd(&self) -> bool {
        matches!(self.compression, Some(Compression::Zstd))
    }

    /// Checks whether records in this format are zstd frames.
    pub(crate) fn has_zstd_records(&self) -> bool {
        self.is_zstd() && self.dialect.compresses_records()
    }

    /// Checks whether logs in this format are ever appended to. Logs with a log number or with
    /// compressed records never are.
    pub(crate) fn is_appended_to(&self) -> bool {
        self.log_number.is_none() && (self.compression.is_none() || self.dialect.is_packed())
    }

    /// Checks that the dialect supports the log number and the compression.
    pub(crate) fn check(&self) -> Result<(), (Dialect, Unsupported)> {
        if self.log_number.is_some() && !self.dialect.has_log_numbers() {
            return Err((self.dialect, Unsupported::LogNumber));
        }
        if self.compression.is_some() && !self.dialect.has_compression() {
            return Err((self.dialect, Unsupported::Compression));
        }
        Ok(())
    }

    /// Checks that the dialect supports the log number and the compression, and that this build can
    /// write them.
    pub(crate) fn check_to_write(&self) -> Result<(), (Dialect, Unsupported)> {
        match self.check() {
            Ok(()) if self.is_zstd() && !cfg!(feature = "zstd") => Err((self.dialect, Unsupported::ZstdFeature)),
            checked => checked,
        }
    }

    /// Checks whether the fragment at the start of `bytes` is left over from another log. The
    /// fragment is assumed to be valid, and `form` is its form.
    #[inline]
    pub(crate) fn is_stale(&self, bytes: &[u8], form: Form) -> bool {
        self.log_number
            .zip(Dialect::log_number_at(bytes, form))
            .is_some_and(|(own, number)| own != number)
    }

    /// Returns the end-of-log trailer: a header that contains the number of the next log, and zeros
    /// in place of a checksum and a length.
    pub(crate) fn end_trailer(&self) -> Option<[u8; Form::Recyclable.header_len()]> {
        let number = self.log_number.filter(|_| self.dialect.0.has_end_trailer)?;
        let [a, b, c, d] = number.wrapping_add(1).to_le_bytes();
        Some([0, 0, 0, 0, 0, 0, END_TRAILER_KIND, a, b, c, d])
    }

    /// Checks whether `bytes` starts with [`end_trailer`](Self::end_trailer). The trailer has no
    /// checksum, so it is recognized only if the log number is known.
    pub(crate) fn is_end_trailer(&self, bytes: &[u8]) -> bool {
        self.end_trailer().is_some_and(|trailer| bytes.starts_with(&trailer))
    }
}

/// The format that the caller gave in the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GivenFormat {
    pub(crate) dialect: Option<Dialect>,
    pub(crate) log_number: Option<u32>,
    pub(crate) compression: Option<Compression>,
}

/// Treats a log's known format as if the caller had given it.
impl From<LogFormat> for GivenFormat {
    fn from(format: LogFormat) -> Self {
        GivenFormat {
            dialect: Some(format.dialect),
            log_number: format.log_number,
            compression: format.compression,
        }
    }
}

impl GivenFormat {
    /// Returns the given format with this dialect.
    pub(crate) const fn format(self, dialect: Dialect) -> LogFormat {
        LogFormat {
            dialect,
            log_number: self.log_number,
            compression: self.compression,
        }
    }

    /// Returns the given format, using [`Dialect::LEVELDB`] if no dialect is given.
    pub(crate) fn or_leveldb(self) -> LogFormat {
        self.format(self.dialect.unwrap_or(Dialect::LEVELDB))
    }

    /// Checks that the given dialect supports the given number and compression. If no dialect is
    /// given, the detected one is checked later.
    pub(crate) fn check(self) -> Result<(), (Dialect, Unsupported)> {
        self.dialect.map_or(Ok(()), |dialect| self.format(dialect).check())
    }

    /// Checks whether the file may supply a dialect, number or compression that the given format
    /// lacks.
    pub(crate) fn may_be_completed(self) -> bool {
        self.dialect.is_none_or(|dialect| {
            let may_be_compressed = dialect.has_compression() && self.compression.is_none();
            dialect.has_log_numbers() && (self.log_number.is_none() || may_be_compressed)
        })
    }
}

/// A property that a log's dialect or this build does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unsupported {
    /// Logs in this dialect don't have log numbers.
    LogNumber,
    /// Records in this dialect are not compressed.
    Compression,
    /// [`pack`](crate::ops::pack()) does not write logs in this dialect.
    Packing,
    /// [`SegmentedLog`](crate::SegmentedLog) does not write logs in this dialect.
    Segments,
    /// Writing zstd-compressed records or reading zstd-compressed containers requires the `zstd`
    /// feature.
    ZstdFeature,
    /// The mark of a packed log contains a version unknown to this release.
    #[non_exhaustive]
    PackedVersion {
        /// The version.
        version: u8,
        /// The file offset of the mark.
        offset: u64,
    },
    /// This release does not know the codec of a packed log's container or of a RocksDB log's
    /// records.
    #[non_exhaustive]
    Codec {
        /// The number of the codec.
        codec: u32,
        /// The file offset of the container, or of the fragment that declares the codec.
        offset: u64,
    },
}
