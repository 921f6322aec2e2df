//! What a reader did not return and why, and the errors: values with offsets and lengths; text only in `Display`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::dialect::{Dialect, Foreign, LogFormat, Unsupported};

/// Why a region of a file was not returned.
///
/// `docs/format/reading.md` has the rule behind each. [`as_str`](Reason::as_str) gives the stable name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A header's length passes the end of its block, or is proved wrong at the end of the file.
    BadLength {
        /// The length that the header states, in bytes.
        len: u16,
    },
    /// A fragment's checksum is not that of its type and payload. The length may be what is damaged, so the rest of the
    /// block is not trusted.
    ChecksumMismatch {
        /// The CRC-32C that the header states, unmasked.
        stored: u32,
        /// The CRC-32C of the type byte and the payload.
        computed: u32,
    },
    /// A fragment with a right checksum and a type that this dialect does not know.
    UnknownKind {
        /// The type byte.
        kind: u8,
    },
    /// MIDDLE or LAST fragments of a record whose FIRST is not there.
    MissingStart,
    /// A record without its LAST: FULL or FIRST came instead.
    MissingEnd,
    /// A record in the middle of which something else was skipped.
    InterruptedRecord,
    /// A header of type 0 and length 0, which means zeros up to the end of the block, in front of something that is not zero.
    ZeroHeader,
    /// A record longer than [`record_len_max`](crate::ReadOptions::record_len_max), as far as it was read when that was clear.
    RecordTooLarge,
    /// The rest of a record that was skipped as [`RecordTooLarge`](Reason::RecordTooLarge).
    TooLargeRest,
    /// Zeros up to the end of the block or of the file: preallocated or padded.
    ZeroFill,
    /// A trailer that is not all zero. No engine looks at it.
    NonzeroTrailer,
    /// A FIRST fragment without payload that nothing continues. An old LevelDB wrote these at the end of a block; no data is
    /// missing.
    EmptyFirst,
    /// The incomplete end that a crash leaves.
    TornTail,
    /// What a file of this dialect begins with, before the first fragment.
    FileHeader,
    /// Something else where a file of this dialect has its [`FileHeader`](Reason::FileHeader).
    BadFileHeader,
    /// A record that the engine has written for itself. It is no user's data.
    Metadata {
        /// The type byte.
        kind: u8,
    },
    /// The same, with a content or in a place that the engine does not give it. Where its content can be used, it is.
    BadMetadata {
        /// The type byte.
        kind: u8,
    },
    /// A fragment with a right checksum and a type that this dialect does not know, but that says of itself that it may be passed over.
    IgnoredKind {
        /// The type byte.
        kind: u8,
    },
    /// The header that closes a log. The log ends here, whatever follows.
    EndTrailer,
    /// Behind the end of the log, in a file that an older log was in before: what is left of that.
    Stale,
    /// The same with fragments of this log behind it: what was written here never reached the disk.
    LostWrite,
    /// A record that is compressed in a way that this build does not read: other than zstd, or the feature `zstd` is off.
    UnsupportedCompression,
    /// A record with right checksums that cannot be decompressed.
    BadCompression,
    /// Not looked at: it lies behind the damage at which [`OnCorruption::Stop`](crate::OnCorruption::Stop) ended the file.
    NotRead,
}

/// How bad a skipped region is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// No data is missing here, or the reader was told not to look.
    Info,
    /// The incomplete end of the file. A writer that was killed leaves one; what was synced before is not in it.
    TornTail,
    /// Bytes that a whole write cannot have left, or a limit that was passed. The policy
    /// ([`OnCorruption`](crate::OnCorruption)) decides what follows.
    Corruption,
}

impl Severity {
    /// A stable name: `"info"`, `"torn_tail"` or `"corruption"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::TornTail => "torn_tail",
            Severity::Corruption => "corruption",
        }
    }
}

impl Reason {
    /// A stable name, such as `"checksum_mismatch"`: part of the interface, the same in Python and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::BadLength { .. } => "bad_length",
            Reason::ChecksumMismatch { .. } => "checksum_mismatch",
            Reason::UnknownKind { .. } => "unknown_kind",
            Reason::MissingStart => "missing_start",
            Reason::MissingEnd => "missing_end",
            Reason::InterruptedRecord => "interrupted_record",
            Reason::ZeroHeader => "zero_header",
            Reason::RecordTooLarge => "record_too_large",
            Reason::TooLargeRest => "too_large_rest",
            Reason::ZeroFill => "zero_fill",
            Reason::NonzeroTrailer => "nonzero_trailer",
            Reason::EmptyFirst => "empty_first",
            Reason::TornTail => "torn_tail",
            Reason::FileHeader => "file_header",
            Reason::BadFileHeader => "bad_file_header",
            Reason::Metadata { .. } => "metadata",
            Reason::BadMetadata { .. } => "bad_metadata",
            Reason::IgnoredKind { .. } => "ignored_kind",
            Reason::EndTrailer => "end_trailer",
            Reason::Stale => "stale",
            Reason::LostWrite => "lost_write",
            Reason::UnsupportedCompression => "unsupported_compression",
            Reason::BadCompression => "bad_compression",
            Reason::NotRead => "not_read",
        }
    }

    /// How bad it is; each reason has one severity.
    pub const fn severity(self) -> Severity {
        match self {
            Reason::BadLength { .. }
            | Reason::ChecksumMismatch { .. }
            | Reason::UnknownKind { .. }
            | Reason::MissingStart
            | Reason::MissingEnd
            | Reason::InterruptedRecord
            | Reason::ZeroHeader
            | Reason::RecordTooLarge
            | Reason::BadFileHeader
            | Reason::LostWrite
            | Reason::BadMetadata { .. }
            | Reason::UnsupportedCompression
            | Reason::BadCompression => Severity::Corruption,
            Reason::TornTail => Severity::TornTail,
            Reason::TooLargeRest
            | Reason::ZeroFill
            | Reason::NonzeroTrailer
            | Reason::EmptyFirst
            | Reason::FileHeader
            | Reason::Metadata { .. }
            | Reason::IgnoredKind { .. }
            | Reason::EndTrailer
            | Reason::Stale
            | Reason::NotRead => Severity::Info,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::BadLength { len } => write!(
                f,
                "the header states a length of {len} bytes, which cannot be right here"
            ),
            Reason::ChecksumMismatch { stored, computed } => {
                write!(
                    f,
                    "checksum mismatch: the header states {stored:08x}, the data has {computed:08x}"
                )
            }
            Reason::UnknownKind { kind } => {
                write!(f, "unknown fragment type {kind}, with a right checksum")
            }
            Reason::MissingStart => {
                write!(f, "a fragment of a record whose first fragment is missing")
            }
            Reason::MissingEnd => write!(f, "a record whose last fragment is missing"),
            Reason::InterruptedRecord => {
                write!(f, "a record that is interrupted by the damage behind it")
            }
            Reason::ZeroHeader => write!(f, "a header of zeros in front of data that is not zero"),
            Reason::RecordTooLarge => {
                write!(
                    f,
                    "a record longer than record_len_max; raise the limit if this file is trusted"
                )
            }
            Reason::TooLargeRest => write!(f, "the rest of a record longer than record_len_max"),
            Reason::ZeroFill => write!(f, "zeros up to the end of the block"),
            Reason::NonzeroTrailer => write!(f, "a block trailer that is not zero"),
            Reason::EmptyFirst => write!(f, "an empty first fragment that nothing continues"),
            Reason::TornTail => write!(f, "an incomplete record at the end of the file"),
            Reason::FileHeader => write!(f, "the file header"),
            Reason::BadFileHeader => write!(f, "not the file header that this dialect has"),
            Reason::Metadata { kind } => write!(f, "a record of the engine's own, of type {kind}"),
            Reason::BadMetadata { kind } => {
                write!(
                    f,
                    "a record of the engine's own, of type {kind}, that it does not write so"
                )
            }
            Reason::IgnoredKind { kind } => {
                write!(f, "an unknown fragment of type {kind}, which may be passed over")
            }
            Reason::EndTrailer => write!(f, "the trailer of a closed log"),
            Reason::Stale => write!(f, "left over from an older log, behind the end of this one"),
            Reason::LostWrite => write!(f, "left over from an older log, in the middle of this one"),
            Reason::UnsupportedCompression => {
                write!(
                    f,
                    "a compressed record; only zstd is read, by builds with the feature `zstd`"
                )
            }
            Reason::BadCompression => write!(f, "a record that cannot be decompressed"),
            Reason::NotRead => write!(f, "behind the damage at which reading stopped"),
        }
    }
}

/// A region of a file that was not returned as a record: the bytes `[begin, end)` and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SkippedRegion {
    /// File offset of the first byte.
    pub begin: u64,
    /// File offset behind the last byte.
    pub end: u64,
    /// Why these bytes were not returned.
    pub reason: Reason,
    /// The number of bytes that LevelDB's own reader reports for this region, `None` where it is silent. It leaves headers out
    /// where the reason is about records, and knows nothing of the limit on a record's length.
    pub leveldb_len: Option<u64>,
}

impl SkippedRegion {
    /// Bytes in the region.
    pub const fn len(&self) -> u64 {
        self.end - self.begin
    }

    /// Whether it has no bytes. A reader returns no such region.
    pub const fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// This region and `next` as one, if they touch and have the same reason.
    #[must_use]
    pub fn joined(self, next: SkippedRegion) -> Option<SkippedRegion> {
        let leveldb_len = match (self.leveldb_len, next.leveldb_len) {
            (Some(here), Some(there)) => Some(here + there),
            (here, there) => here.or(there),
        };
        let touches = self.end == next.begin && self.reason == next.reason;
        touches.then_some(SkippedRegion {
            end: next.end,
            leveldb_len,
            ..self
        })
    }
}

impl fmt::Display for SkippedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.len();
        write!(f, "{} ({len} {} at offset {})", self.reason, bytes(len), self.begin)
    }
}

/// The word behind a number of bytes.
pub(crate) fn bytes(len: u64) -> &'static str {
    if len == 1 { "byte" } else { "bytes" }
}

/// What went wrong with a log, and where.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The source could not be read. The reader may be asked again.
    Io {
        /// The file, where the reader opened it itself.
        path: Option<PathBuf>,
        /// What the operating system said.
        source: io::Error,
    },
    /// Damage, under the policy [`OnCorruption::Fail`](crate::OnCorruption::Fail). The next call
    /// goes on behind it.
    #[non_exhaustive]
    Corruption {
        /// The file, where the reader opened it itself.
        path: Option<PathBuf>,
        /// What is damaged and how.
        region: SkippedRegion,
    },
    /// The next record of a compressed log, with all before it, decompresses to more than so few bytes of a file may: see
    /// [`ReadOptions::record_len_max`](crate::ReadOptions::record_len_max). It is neither skipped nor consumed, whatever the policy: every further call
    /// says the same.
    #[non_exhaustive]
    OverBudget {
        /// The file, where the reader opened it itself.
        path: Option<PathBuf>,
        /// File offset of the record's first header.
        offset: u64,
        /// File offset after its last fragment.
        end_offset: u64,
        /// Bytes of its data.
        data_len: u64,
        /// The least `record_len_max` with which it is returned.
        record_len_max: u64,
    },
    /// A record was to be written that readers refuse unless they are told otherwise. Nothing of it was written, and the log can be used on: see
    /// [`LogFileOptions::record_len_max`](crate::LogFileOptions::record_len_max).
    #[non_exhaustive]
    RecordTooLarge {
        /// The file.
        path: Option<PathBuf>,
        /// The length of the log, where the record would have followed.
        offset: u64,
        /// Bytes of the record.
        record_len: u64,
        /// The most that a record may have.
        record_len_max: u64,
    },
    /// The file is no log of any dialect: of another known format, or of none.
    #[non_exhaustive]
    Foreign {
        /// The file, where the reader opened it itself.
        path: Option<PathBuf>,
        /// What it is.
        foreign: Foreign,
    },
    /// All of a file belongs to another log than the one whose number was named or is in the file's name, so there is nothing to salvage.
    #[non_exhaustive]
    OtherLog {
        /// The file, where the reader opened it itself.
        path: Option<PathBuf>,
        /// The number that was named or is in the file's name.
        log_number: u32,
        /// The number that its fragments have.
        other_log_number: u32,
    },
    /// A log that ends in an incomplete record or in zeros was to be appended to. Records behind such an end would be lost to every
    /// reader up to the next block.
    #[non_exhaustive]
    TornTail {
        /// The file.
        path: Option<PathBuf>,
        /// The end.
        region: SkippedRegion,
    },
    /// A log was to be appended to in a dialect that its fragments are not in: readers of the file would not find the record.
    #[non_exhaustive]
    WrongDialect {
        /// The file.
        path: Option<PathBuf>,
        /// The [name](Dialect::name) of the dialect that was asked for.
        named: &'static str,
        /// That of the one that was detected.
        found: &'static str,
    },
    /// A log was to be appended to in whose dialect logs are never appended to: those of RocksDB and Pebble that have a log number or are
    /// compressed. Their engines create a new log each time, and readers take what follows the end of such a log for the rest of an older one.
    #[non_exhaustive]
    NeverAppended {
        /// The file.
        path: Option<PathBuf>,
        /// What the file is, or what was named.
        format: Box<LogFormat>,
    },
    /// A log number or a compression was named for a dialect that has none, or records were to be compressed by a build without the feature `zstd`. No file
    /// was created or changed.
    Unsupported {
        /// The file, where one was named.
        path: Option<PathBuf>,
        /// The [name](Dialect::name) of the dialect that was named or detected.
        dialect: &'static str,
        /// What it does not have, or what this build cannot do.
        unsupported: Unsupported,
    },
    /// A [`LogFile`](crate::LogFile) was used in a process that did not open it: a forked child. Its file is left as it is.
    Forked {
        /// The file.
        path: Option<PathBuf>,
    },
    /// A log was to be written that another writer has open, in this process or another.
    Locked {
        /// The file.
        path: Option<PathBuf>,
    },
    /// A [`LogFile`](crate::LogFile) could not be written or synced.
    #[non_exhaustive]
    Write {
        /// The file.
        path: Option<PathBuf>,
        /// What the operating system said.
        source: io::Error,
        /// Everything before this file offset is on the disk. What follows may not be.
        durable_offset: u64,
        /// Whether the write was undone, so that the log can be used on. The record that was being appended is not in it. Else every later
        /// call fails.
        is_undone: bool,
    },
    /// A [`LogFile`](crate::LogFile) was used after it was closed.
    Closed {
        /// The file.
        path: Option<PathBuf>,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Io { path, .. }
        | Error::Corruption { path, .. }
        | Error::OverBudget { path, .. }
        | Error::RecordTooLarge { path, .. }
        | Error::Foreign { path, .. }
        | Error::OtherLog { path, .. }
        | Error::TornTail { path, .. }
        | Error::WrongDialect { path, .. }
        | Error::NeverAppended { path, .. }
        | Error::Unsupported { path, .. }
        | Error::Forked { path }
        | Error::Locked { path }
        | Error::Write { path, .. }
        | Error::Closed { path }) = self;
        if let Some(path) = path {
            write!(f, "{}: ", path.display())?;
        }
        match self {
            Error::Io { source, .. } => write!(f, "{source}"),
            Error::Corruption { region, .. } => write!(f, "{region}"),
            Error::RecordTooLarge {
                record_len,
                record_len_max,
                ..
            } => write!(
                f,
                "a record of {record_len} bytes was not written: it is longer than record_len_max, {record_len_max}; readers refuse one longer than \
                 1 GiB by default, so raise the limit only where they do, too"
            ),
            Error::OverBudget {
                offset,
                data_len,
                record_len_max,
                ..
            } => write!(
                f,
                "with the compressed record at offset {offset}, of {data_len} bytes, this log decompresses to more than so few bytes of a file should; it is not \
                 skipped: to read it, if this file is trusted, set record_len_max to {record_len_max} or more"
            ),
            Error::Foreign { foreign, .. } => write!(
                f,
                "no log: this is {}{}: {}; to read it as a log all the same, name its dialect",
                match foreign {
                    Foreign::LevelDbTable | Foreign::RocksDbTable | Foreign::PebbleTable | Foreign::GitLfs => "a ",
                    Foreign::InfoLog => "an ",
                    Foreign::Unknown => "of a format that is ",
                    _ => "",
                },
                foreign.name(),
                foreign.hint()
            ),
            Error::OtherLog {
                log_number,
                other_log_number,
                ..
            } => write!(
                f,
                "all of it belongs to log {other_log_number}, and log {log_number} was looked for, by the file's name or by an option; to read it, name \
                 the log number {other_log_number}"
            ),
            Error::TornTail { region, .. } => write!(
                f,
                "cannot append: the file ends with {region}; records after it would be lost \
                 (on_torn_tail: truncate cuts it off, pad leaves every byte and continues in the next block)"
            ),
            Error::WrongDialect { named, found, .. } => write!(
                f,
                "cannot append in the dialect {named}: this is a log in the dialect {found}, and its readers would not find the record; \
                 name that dialect, or none"
            ),
            Error::NeverAppended { format, .. } => {
                write!(f, "cannot append: logs in the dialect {}", format.dialect.name())?;
                match format.log_number {
                    Some(number) => write!(f, " with a log number (this one has {number})")?,
                    None if format.compression.is_some() => write!(f, " with compression")?,
                    None => {}
                }
                write!(
                    f,
                    " are never appended to, since readers take what follows their end for an older log; create a new log"
                )
            }
            Error::Unsupported {
                dialect, unsupported, ..
            } => match unsupported {
                Unsupported::LogNumber => write!(
                    f,
                    "logs in the dialect {dialect} have no log number: leave it out, or name a dialect that has one: rocksdb, pebble or recyclable"
                ),
                Unsupported::Compression => write!(
                    f,
                    "logs in the dialect {dialect} are not compressed: leave the compression out, or name the dialect rocksdb"
                ),
                Unsupported::ZstdFeature => write!(
                    f,
                    "this build cannot write records compressed with zstd: build it with the feature `zstd`, or write without compression"
                ),
            },
            Error::Forked { .. } => write!(
                f,
                "this process did not open the log: it is a fork of the one that did; reopen in this process"
            ),
            Error::Locked { .. } => write!(f, "another writer has this log open; a log takes one writer at a time"),
            Error::Write {
                source,
                durable_offset,
                is_undone,
                ..
            } => {
                write!(f, "{source}; ")?;
                match durable_offset {
                    0 => write!(f, "nothing is known to be on the disk yet")?,
                    _ => write!(f, "all before offset {durable_offset} is on the disk")?,
                }
                if *is_undone {
                    write!(f, "; the write was undone, and the log can be used on")
                } else {
                    write!(
                        f,
                        "; what follows may be lost: close the log, and open it again to append to what is there"
                    )
                }
            }
            Error::Closed { .. } => write!(f, "the log is closed"),
        }
    }
}

impl std::error::Error for Error {
    /// The cause of what the operating system said, if there is one. That itself is part of the message, so whoever prints the causes one after
    /// another prints nothing twice.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } | Error::Write { source, .. } => source.source(),
            Error::Corruption { .. }
            | Error::OverBudget { .. }
            | Error::RecordTooLarge { .. }
            | Error::Foreign { .. }
            | Error::OtherLog { .. }
            | Error::TornTail { .. }
            | Error::WrongDialect { .. }
            | Error::NeverAppended { .. }
            | Error::Unsupported { .. }
            | Error::Forked { .. }
            | Error::Locked { .. }
            | Error::Closed { .. } => None,
        }
    }
}

/// What a check of a dialect has found, as an error.
pub(crate) fn unsupported(checked: Result<(), (Dialect, Unsupported)>, path: Option<&Path>) -> Result<(), Error> {
    checked.map_err(|(dialect, unsupported)| Error::Unsupported {
        path: path.map(Path::to_owned),
        dialect: dialect.name(),
        unsupported,
    })
}

/// With the same message and, where the operating system said something, its kind.
///
/// ```
/// use std::io;
/// use cordwood_log::{ReadOptions, Reader};
/// fn first_record(path: &str) -> io::Result<Option<Vec<u8>>> {
///     let mut reader = Reader::open(path, ReadOptions::default())?;
///     Ok(reader.next_record()?.map(|record| record.data.to_vec()))
/// }
/// assert_eq!(first_record("no such file").unwrap_err().kind(), io::ErrorKind::NotFound);
/// ```
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Io { source, .. } | Error::Write { source, .. } => source.kind(),
            Error::Corruption { .. }
            | Error::OverBudget { .. }
            | Error::Foreign { .. }
            | Error::OtherLog { .. }
            | Error::TornTail { .. } => io::ErrorKind::InvalidData,
            Error::RecordTooLarge { .. } => io::ErrorKind::InvalidInput,
            Error::WrongDialect { .. } | Error::NeverAppended { .. } | Error::Unsupported { .. } => {
                io::ErrorKind::Unsupported
            }
            Error::Locked { .. } => io::ErrorKind::WouldBlock,
            Error::Forked { .. } | Error::Closed { .. } => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
