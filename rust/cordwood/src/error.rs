//! What can go wrong with a log. Errors carry paths, offsets and lengths as values; only `Display`
//! turns them into text.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::damage::SkippedRegion;
use crate::decode::Refused;
use crate::detect::Foreign;
use crate::dialect::{Dialect, LogFormat, Unsupported};

/// What went wrong with a log, and where.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened or created, or the source could not be read: the call may be
    /// repeated. Or an [`io::Error`] of another kind that was converted to this type.
    #[non_exhaustive]
    Io {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// The error from the operating system.
        source: io::Error,
    },
    /// Damage, under the policy [`OnCorruption::Fail`](crate::OnCorruption::Fail). The next call
    /// continues after it.
    #[non_exhaustive]
    Corruption {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// What is damaged and how.
        region: SkippedRegion,
    },
    /// The records of a compressed log, up to and including the next one, decompress to more than
    /// is allowed for the bytes read: see
    /// [`ReadOptions::record_len_max`](crate::ReadOptions::record_len_max). The record is neither
    /// skipped nor consumed, whatever the policy: every further call returns the same error.
    #[non_exhaustive]
    OverBudget {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// File offset of the record's first header.
        offset: u64,
        /// File offset after its last fragment.
        end_offset: u64,
        /// The length of its data in bytes.
        data_len: u64,
        /// The smallest `record_len_max` with which the record is returned.
        record_len_max: u64,
    },
    /// A record to be written is longer than readers accept by default. None of it was written, and
    /// the log remains usable: see
    /// [`LogFileOptions::record_len_max`](crate::LogFileOptions::record_len_max).
    #[non_exhaustive]
    RecordTooLarge {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// The length of the log, at which the record would have begun.
        offset: u64,
        /// The length of the record in bytes.
        record_len: u64,
        /// The longest record allowed.
        record_len_max: u64,
    },
    /// Reading was to begin after the end of the file, at the start of a range or at the offset of
    /// a seek. The file was truncated, or the offset belongs to another file. Every further call
    /// returns the same error.
    #[non_exhaustive]
    Truncated {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// The file offset at which reading was to begin.
        offset: u64,
        /// The length of the file in bytes, if it is known.
        file_len: Option<u64>,
    },
    /// The file is not a log of any dialect: it is in another known format, or in no known one.
    #[non_exhaustive]
    Foreign {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// What it is.
        foreign: Foreign,
    },
    /// The whole file belongs to a log whose number is not the one given or in the file's name, so
    /// there is nothing to salvage.
    #[non_exhaustive]
    OtherLog {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// The number that was given or is in the file's name.
        log_number: u32,
        /// The number that its fragments carry.
        other_log_number: u32,
    },
    /// The log to append to ends in an incomplete record or in zeros. Every reader would lose the
    /// records written between such an end and the next block.
    #[non_exhaustive]
    TornTail {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// The incomplete record or the zeros.
        region: SkippedRegion,
    },
    /// The log to append to is not in the dialect given: readers of the file would not find the
    /// record.
    #[non_exhaustive]
    WrongDialect {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// The [name](Dialect::name) of the dialect that was given.
        named: &'static str,
        /// The name of the detected dialect.
        found: &'static str,
    },
    /// The log is of a kind that is never appended to: a RocksDB or Pebble log that has a log
    /// number or is compressed. Their engines create a new log each time, and readers take what
    /// follows the end of such a log for the rest of an older one.
    #[non_exhaustive]
    NeverAppended {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// The detected format, or the one given.
        format: Box<LogFormat>,
    },
    /// A log number or a compression was given for a dialect that has none, or compression was
    /// requested from a build without the feature `zstd`. No file was created or changed.
    #[non_exhaustive]
    Unsupported {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// The [name](Dialect::name) of the dialect that was given or detected.
        dialect: &'static str,
        /// What the dialect or this build does not support.
        unsupported: Unsupported,
    },
    /// A [`LogFile`](crate::LogFile) was used in a process that did not open it: a forked child.
    /// Its file is left as it is.
    Forked {
        /// The file, if its path is known.
        path: Option<PathBuf>,
    },
    /// Another writer has the log open, in this process or another.
    #[non_exhaustive]
    Locked {
        /// The file, if its path is known.
        path: Option<PathBuf>,
    },
    /// A [`LogFile`](crate::LogFile) could not be written or synced.
    #[non_exhaustive]
    Write {
        /// The file, if its path is known.
        path: Option<PathBuf>,
        /// The error from the operating system.
        source: io::Error,
        /// What failed, such as `"sync"`, if that was in an earlier call, and is why every later
        /// one fails.
        earlier: Option<&'static str>,
        /// Everything before this file offset is on the disk. What follows may not be.
        durable_offset: u64,
        /// Whether the write was undone, so that the log remains usable without the record that was
        /// being appended. If not, every later call fails.
        is_undone: bool,
        /// Why the write could not be undone: the file could not be truncated to the end of its
        /// last complete record.
        undo_error: Option<io::Error>,
    },
    /// A [`LogFile`](crate::LogFile) was used after it was closed.
    #[non_exhaustive]
    Closed {
        /// The file, if its path is known.
        path: Option<PathBuf>,
    },
}

impl Error {
    /// The file that the error concerns, if its path is known.
    ///
    /// ```
    /// use std::path::Path;
    /// use cordwood_log::{ReadOptions, Reader};
    /// let error = Reader::open("no such file", ReadOptions::default()).unwrap_err();
    /// assert_eq!(error.path(), Some(Path::new("no such file")));
    /// ```
    pub fn path(&self) -> Option<&Path> {
        let (Error::Io { path, .. }
        | Error::Corruption { path, .. }
        | Error::OverBudget { path, .. }
        | Error::RecordTooLarge { path, .. }
        | Error::Truncated { path, .. }
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
        path.as_deref()
    }

    /// The file offset in bytes that the error concerns: where the damage, the torn tail or the
    /// record begins, or where reading was to begin. `None` if it concerns the whole file.
    ///
    /// ```
    /// use cordwood_log::{ReadOptions, Reader};
    /// let mut file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(2);
    /// file[17] ^= 1;
    /// let mut reader = Reader::from_slice(&file, ReadOptions::default());
    /// reader.next_record()?;
    /// assert_eq!(reader.next_record().unwrap_err().offset(), Some(10));
    /// # Ok::<(), cordwood_log::Error>(())
    /// ```
    pub fn offset(&self) -> Option<u64> {
        match self {
            Error::Corruption { region, .. } | Error::TornTail { region, .. } => Some(region.begin),
            Error::OverBudget { offset, .. }
            | Error::RecordTooLarge { offset, .. }
            | Error::Truncated { offset, .. } => Some(*offset),
            Error::Io { .. }
            | Error::Foreign { .. }
            | Error::OtherLog { .. }
            | Error::WrongDialect { .. }
            | Error::NeverAppended { .. }
            | Error::Unsupported { .. }
            | Error::Forked { .. }
            | Error::Locked { .. }
            | Error::Write { .. }
            | Error::Closed { .. } => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.path() {
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
                "a record of {record_len} bytes was not written: it is longer than record_len_max, {record_len_max}; by default, readers \
                 refuse records longer than 1 GiB, so raise the limit only if theirs is raised, too"
            ),
            &Error::OverBudget {
                offset,
                end_offset,
                data_len,
                record_len_max,
                ..
            } => {
                let refused = Refused::OverBudget {
                    offset,
                    end_offset,
                    data_len,
                    record_len_max,
                };
                write!(f, "{refused}")
            }
            Error::Truncated { offset, file_len, .. } => {
                match file_len {
                    Some(file_len) => write!(f, "the file has {file_len} bytes")?,
                    None => write!(f, "the file ends earlier")?,
                }
                write!(
                    f,
                    ", but reading was to begin at offset {offset}: the file was cut, or the offset belongs to another file"
                )
            }
            Error::Foreign { foreign, .. } => write!(f, "{foreign}; to read it as a log anyway, name its dialect"),
            Error::OtherLog {
                log_number,
                other_log_number,
                ..
            } => write!(
                f,
                "all of it belongs to log {other_log_number}, but log {log_number} was expected, going by the \
                 file's name or an option; to read it, name the log number {other_log_number}"
            ),
            Error::TornTail { region, .. } => write!(
                f,
                "cannot append after {region}: later records would be lost \
                 (on_torn_tail: truncate cuts it off, pad keeps every byte and continues in the next block)"
            ),
            Error::WrongDialect { named, found, .. } => write!(
                f,
                "cannot append in the dialect {named}: this is a log in the dialect {found}, and its readers would not find the record; \
                 name that dialect, or none"
            ),
            Error::NeverAppended { format, .. } => {
                write!(f, "cannot append: logs in the dialect {}", format.dialect.name())?;
                if format.log_number.is_some() {
                    write!(f, " with a log number")?;
                } else if format.compression.is_some() {
                    write!(f, " with compression")?;
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
                    "logs in the dialect {dialect} are not compressed: leave the compression out, or name the dialect rocksdb or packed"
                ),
                Unsupported::ZstdFeature => write!(
                    f,
                    "this build can neither read nor write records compressed with zstd: build it with the feature `zstd`"
                ),
            },
            Error::Forked { .. } => write!(
                f,
                "this process did not open the log: it is a fork of the one that did; reopen in this process"
            ),
            Error::Locked { .. } => write!(
                f,
                "another writer has this log open; a log can have only one writer at a time"
            ),
            Error::Write {
                source,
                earlier,
                durable_offset,
                is_undone,
                undo_error,
                ..
            } => {
                if let Some(what) = earlier {
                    write!(f, "an earlier {what} failed: ")?;
                }
                write!(f, "{source}; ")?;
                if let Some(undo_error) = undo_error {
                    write!(f, "the partial record could not be cut off: {undo_error}; ")?;
                }
                let (on_disk, lost) = match durable_offset {
                    0 => ("nothing is known to be on the disk".to_owned(), "records"),
                    _ => (
                        format!("everything before offset {durable_offset} is on the disk"),
                        "records after it",
                    ),
                };
                if *is_undone {
                    write!(f, "{on_disk}; the write was undone, and the log remains usable")
                } else {
                    write!(
                        f,
                        "{on_disk}, and {lost} may be lost; to continue, close the log and open it again"
                    )
                }
            }
            Error::Closed { .. } => write!(f, "the log is closed"),
        }
    }
}

impl std::error::Error for Error {
    /// The cause of the operating system's error, if there is one. That error itself is part of the
    /// message, so a program that prints the chain of causes prints nothing twice.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } | Error::Write { source, .. } => source.source(),
            Error::Corruption { .. }
            | Error::OverBudget { .. }
            | Error::RecordTooLarge { .. }
            | Error::Truncated { .. }
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

/// Converts the failed check of a dialect to an error.
pub(crate) fn unsupported(checked: Result<(), (Dialect, Unsupported)>, path: Option<&Path>) -> Result<(), Error> {
    checked.map_err(|(dialect, unsupported)| Error::Unsupported {
        path: path.map(Path::to_owned),
        dialect: dialect.name(),
        unsupported,
    })
}

/// The error for a record that the decoder refuses to return.
#[cold]
pub(crate) fn refusal(refused: Refused, path: Option<PathBuf>) -> Error {
    match refused {
        Refused::OutOfMemory => Error::Io {
            path,
            source: io::ErrorKind::OutOfMemory.into(),
        },
        Refused::OverBudget {
            offset,
            end_offset,
            data_len,
            record_len_max,
        } => Error::OverBudget {
            path,
            offset,
            end_offset,
            data_len,
            record_len_max,
        },
    }
}

/// [`Error::Io`] without a path, unless the [`io::Error`] contains an `Error`, as those of a
/// [`Writer`](crate::Writer) may: that is then the result.
///
/// ```
/// use std::io;
/// use cordwood_log::{Error, Writer};
/// fn write() -> Result<(), Error> {
///     Writer::new(Vec::new()).with_record_len_max(3).append(b"three")?;
///     Ok(())
/// }
/// assert!(matches!(write(), Err(Error::RecordTooLarge { record_len: 5, .. })));
/// let error = Error::from(io::Error::from(io::ErrorKind::StorageFull));
/// assert!(matches!(error, Error::Io { path: None, source, .. } if source.kind() == io::ErrorKind::StorageFull));
/// ```
impl From<io::Error> for Error {
    fn from(source: io::Error) -> Self {
        source
            .downcast::<Error>()
            .unwrap_or_else(|source| Error::Io { path: None, source })
    }
}

/// For an [`Error::Io`] without a path, its source. Otherwise an error with the same message, from
/// which [`io::Error::downcast`] returns the `Error`; for an error from the operating system, also
/// with the same kind.
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
        if let Error::Io { path: None, source } = error {
            return source;
        }
        let kind = match &error {
            Error::Io { source, .. } | Error::Write { source, .. } => source.kind(),
            Error::Corruption { .. }
            | Error::OverBudget { .. }
            | Error::Foreign { .. }
            | Error::OtherLog { .. }
            | Error::TornTail { .. } => io::ErrorKind::InvalidData,
            Error::Truncated { .. } => io::ErrorKind::UnexpectedEof,
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
