//! The errors from all operations on logs. An error stores its path, offsets and lengths in fields.
//! Only `Display` turns them into text.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::damage::{Reason, SkippedRegion};
use crate::detect::Foreign;
use crate::dialect::{Dialect, LogFormat, Unsupported};
use crate::names::named;

/// An error: its kind, the file's path and a hint.
///
/// `Display` shows the path and the kind, but not the hint. A program can give the advice in its
/// own words, for example by naming a command-line option.
///
/// ```
/// use cordwood_log::{Error, ErrorKind, Hint, ReadOptions, Reader};
/// let mut reader = Reader::from_slice(b"PK\x03\x04, a ZIP archive", ReadOptions::default());
/// let error = reader.next_record().unwrap_err();
/// assert!(matches!(error.kind, ErrorKind::Foreign { foreign, .. } if foreign.as_str() == "ZIP"));
/// assert_eq!(error.to_string(), "not a log, but a ZIP archive: unpack it first, with `unzip`");
/// assert_eq!(error.hint, Some(Hint::NameDialect));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Error {
    /// The path of the file, if known.
    pub path: Option<Box<Path>>,
    /// The kind of error.
    pub kind: ErrorKind,
    /// Advice on how to continue.
    pub hint: Option<Hint>,
}

/// The kind of an [`Error`]. Its text does not include the path or the hint.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file could not be opened or created, or the source could not be read. You can retry the
    /// call. An [`io::Error`] converted to this type also has this kind.
    #[non_exhaustive]
    Io {
        /// The error from the operating system.
        source: io::Error,
    },
    /// The reader found damage under the policy [`OnCorruption::Fail`](crate::OnCorruption::Fail).
    /// The next call resumes after the damage. [`pack`](crate::ops::pack()) also returns this error
    /// for any region that may have contained a record.
    #[non_exhaustive]
    Corruption {
        /// The damaged region.
        region: SkippedRegion,
    },
    /// A compressed log decompresses to more data than is allowed for the number of bytes read so
    /// far, or a single container decompresses to more data than a container may hold. See
    /// [`ReadOptions::record_len_max`](crate::ReadOptions::record_len_max). The record that exceeds
    /// the limit is never skipped or consumed, under any policy, so every later call returns the
    /// same error.
    OverBudget(OverBudget),
    /// The record is longer than readers accept by default. No part of it was written, and the log
    /// remains usable. See [`WriterOptions::record_len_max`](crate::WriterOptions::record_len_max).
    #[non_exhaustive]
    RecordTooLarge {
        /// The log's length, which is where the record would have started.
        offset: u64,
        /// The length of the record in bytes.
        record_len: u64,
        /// The length in bytes of the longest record allowed.
        record_len_max: u64,
    },
    /// The start of a range, or the target of a seek, is past the end of the file: either the file
    /// was truncated, or the offset belongs to another file. Every later call returns the same
    /// error.
    #[non_exhaustive]
    Truncated {
        /// The file offset where reading should have started.
        offset: u64,
        /// The length of the file in bytes, if it is known.
        file_len: Option<u64>,
    },
    /// The next bytes of the log in [`segments`](crate::segments) no longer exist: either the
    /// requested start is before the first offset of the log, or the oldest segments were removed
    /// before they were read. Every later call returns the same error.
    #[non_exhaustive]
    Pruned {
        /// The log offset where reading should have started or continued.
        offset: u64,
        /// The log offset where the log starts.
        first_offset: u64,
    },
    /// The given [`Position`](crate::Position) belongs to another log, or the log has changed since
    /// it was [indexed](crate::RecordIndex).
    #[non_exhaustive]
    Changed {
        /// The file offset of the first byte that differs or is missing.
        offset: u64,
        /// The file offset just past the last byte that differs or is missing.
        end_offset: u64,
    },
    /// The file is not a log in any dialect. It is in another known format, or in an unknown one.
    #[non_exhaustive]
    Foreign {
        /// The format that the file appears to have.
        foreign: Foreign,
    },
    /// Every fragment carries a log number other than the expected one, so there are no records to
    /// salvage. The expected number was given or is in the file's name.
    #[non_exhaustive]
    OtherLog {
        /// The expected log number, which was given or is in the file's name.
        log_number: u32,
        /// The log number that the fragments carry.
        other_log_number: u32,
    },
    /// The log being appended to ends with an incomplete record or with zeros. If new records were
    /// appended there, every reader would lose all of them up to the start of the next block.
    #[non_exhaustive]
    TornTail {
        /// The incomplete record or the zeros.
        region: SkippedRegion,
    },
    /// The log being appended to is not in the given dialect, so readers of the file would not find
    /// the appended records.
    #[non_exhaustive]
    WrongDialect {
        /// The dialect that was given.
        named: Dialect,
        /// The detected dialect.
        found: Dialect,
    },
    /// The log is a RocksDB or Pebble log that has a log number or is compressed. Such logs are
    /// never appended to: the engines always create a new log. Readers would mistake any bytes
    /// after the end of such a log for the remains of an older log.
    #[non_exhaustive]
    NeverAppended {
        /// The format that was detected or given.
        format: LogFormat,
    },
    /// [`pack`](crate::ops::pack()) refuses this log, because the original could not be rebuilt
    /// from the packed records. The log has a number, has individually compressed records, contains
    /// an engine's metadata, or is in a version of its dialect that is no longer written.
    #[non_exhaustive]
    NeverPacked {
        /// The detected format.
        format: LogFormat,
        /// The file offset of the engine's metadata, if that metadata caused the error.
        metadata_offset: Option<u64>,
    },
    /// A log number or a compression method was given for a dialect that does not support it, or
    /// compression was requested in a build without the `zstd` feature. No file was created or
    /// changed.
    #[non_exhaustive]
    Unsupported {
        /// The dialect that was specified or detected.
        dialect: Dialect,
        /// The feature that the dialect or this build does not support.
        unsupported: Unsupported,
    },
    /// The directory is not a log in [`segments`](crate::segments), because it contains a file that
    /// is neither a segment nor [ignored](crate::segments::list). The error's path names that file.
    NotASegment,
    /// A forked child used a [`LogFile`](crate::LogFile) opened by its parent process. The file is
    /// left unchanged.
    Forked,
    /// Another writer, in this process or another, has the log open.
    Locked,
    /// A log could not be written or synced.
    #[non_exhaustive]
    Write {
        /// The error from the operating system, or from the sink of a [`Writer`](crate::Writer).
        source: io::Error,
        /// The state after the failure.
        failure: WriteFailure,
    },
    /// A [`LogFile`](crate::LogFile) was used after it was closed.
    Closed,
}

/// The error inside [`ErrorKind::Io`] if a file was truncated while it was being read.
#[derive(Debug)]
pub(crate) struct Cut {
    /// The length of the file before it was truncated.
    pub(crate) file_len: u64,
    /// The length of the file now.
    pub(crate) end: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { file_len, end } = self;
        write!(
            f,
            "the file was cut while it was read: it had {file_len} bytes, and now has none after offset {end}"
        )
    }
}

impl std::error::Error for Cut {}

/// The state after a failed write or sync.
#[derive(Debug)]
#[non_exhaustive]
pub struct WriteFailure {
    /// If an operation failed in an earlier call, its name, such as `"sync"`. That failure makes
    /// every later call fail.
    pub earlier: Option<&'static str>,
    /// Everything before this file offset is on disk. Later bytes might not be on disk.
    pub durable_offset: u64,
    /// Whether the write was undone. If so, the log remains usable, without the record that was
    /// being appended. If not, every later call fails.
    pub is_undone: bool,
    /// Why the write could not be undone. Undoing a write truncates the file to the end of its last
    /// complete record.
    pub undo_error: Option<io::Error>,
}

named! {
    /// Advice on how to continue after an [`Error`].
    ///
    /// `Display` gives the advice in terms of the Rust interface.
    pub enum Hint {
        /// Continue after the damage, or salvage the records after it.
        OnCorruption = "on_corruption",
            "the next call continues after it; `OnCorruption::Skip` skips damage, `salvage` makes a new log";
        /// Check the offset: `seek` may have moved to an offset where no record starts.
        CheckOffset = "check_offset",
            "`seek` moved the reader here: if no record starts at this offset, this is not damage";
        /// Raise [`record_len_max`](crate::ReadOptions::record_len_max) if you trust the data.
        /// Above 1 GiB, readers and writers both need the higher limit.
        RaiseRecordLenMax = "raise_record_len_max",
            "if you trust the data, raise `record_len_max`; above 1 GiB, readers and writers need it";
        /// Try again, or lower [`record_len_max`](crate::ReadOptions::record_len_max) to skip the
        /// record.
        LowerRecordLenMax = "lower_record_len_max",
            "a further call tries again; a lower `record_len_max` skips such records";
        /// Name the dialect if you are sure that the file is a log.
        NameDialect = "name_dialect", "to read it as a log anyway, name its dialect";
        /// Specify the detected dialect, or specify none.
        NameDetectedDialect = "name_detected_dialect", "name the detected dialect, or none";
        /// Specify the log number that the fragments carry.
        NameLogNumber = "name_log_number", "to read it, name the log number that it belongs to";
        /// Omit the log number, or name a dialect that supports log numbers.
        OmitLogNumber = "omit_log_number",
            "omit the log number, or name a dialect that has one: rocksdb, pebble or recyclable";
        /// Omit the compression, or name a dialect that supports compression.
        OmitCompression = "omit_compression", "omit the compression, or name the dialect rocksdb or packed";
        /// Build with the `zstd` feature.
        EnableZstd = "enable_zstd", "build it with the feature `zstd`";
        /// Choose [`OnTornTail::Truncate`](crate::OnTornTail::Truncate) or
        /// [`OnTornTail::PadToBlock`](crate::OnTornTail::PadToBlock).
        OnTornTail = "on_torn_tail",
            "`OnTornTail::Truncate` cuts it off, `PadToBlock` keeps every byte and continues in the next block";
        /// Choose [`OnTornTail::PadToBlock`](crate::OnTornTail::PadToBlock), or salvage the log.
        Pad = "pad",
            "`OnTornTail::PadToBlock` keeps every byte and continues in the next block; `salvage` makes a new log";
        /// Choose [`OnTornTail::PadToBlock`](crate::OnTornTail::PadToBlock) and name the dialect,
        /// which cannot be detected because the file has no valid fragment.
        PadWithDialect = "pad_with_dialect",
            "if it is a log, name its dialect and `OnTornTail::PadToBlock`, which continues in the next block";
        /// Salvage the readable records.
        Salvage = "salvage", "`salvage` makes a new log of all that can be read";
        /// Create a new log.
        CreateLog = "create_log", "create a new log";
        /// Open the log again.
        Reopen = "reopen", "to continue, open the log again in this process";
        /// Start at the first offset of the log. Earlier records were removed.
        StartAtFirstOffset = "start_at_first_offset",
            "start at the first offset of the log: the records before it are gone";
        /// Start at offset 0 of this log, which is not the log that was read before.
        StartAgain = "start_again", "to read this log, start at offset 0";
        /// Give the segmented log a directory of its own.
        OwnDirectory = "own_directory",
            "a segmented log needs a directory of its own: move the file away, or choose another directory";
        /// Append to a segmented log with [`SegmentedLog`](crate::SegmentedLog).
        SegmentLen = "segment_len", "to append to a segmented log, open it as a `SegmentedLog`";
        /// Read the logs in the directory one by one.
        ReadDirectory = "read_directory", "a reader or a follower takes one log: open each file in the directory";
        /// Give the new log another name.
        OtherName = "other_name", "give the new log another name";
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}

impl Error {
    /// Creates an error of this kind, with the kind's default hint.
    #[cold]
    pub(crate) fn new(kind: ErrorKind, path: Option<&Path>) -> Self {
        Error {
            path: path.map(Box::from),
            hint: kind.hint(),
            kind,
        }
    }

    /// Replaces the hint.
    #[must_use]
    pub(crate) fn with_hint(self, hint: Option<Hint>) -> Self {
        Error { hint, ..self }
    }

    /// Creates an error of the kind [`ErrorKind::Io`].
    #[cold]
    pub(crate) fn io(source: io::Error, path: Option<&Path>) -> Self {
        Error::new(ErrorKind::Io { source }, path)
    }

    /// Replaces the directory `absolute` in the path with `given`, the caller's path to that
    /// directory.
    #[must_use]
    pub(crate) fn with_path_below(mut self, absolute: &Path, given: &Path) -> Self {
        let below = self.path.as_deref().and_then(|path| path.strip_prefix(absolute).ok());
        if let Some(below) = below {
            // `join` with an empty path would add a slash.
            self.path = Some(given.iter().chain(below).collect::<PathBuf>().into());
        }
        self
    }

    /// Returns the file offset, in bytes, of whatever the error is about: damage, a torn tail, a
    /// record, or the place where reading should have started. Returns `None` if the error is about
    /// the whole file.
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
        match &self.kind {
            ErrorKind::Corruption { region } | ErrorKind::TornTail { region } => Some(region.start),
            ErrorKind::OverBudget(OverBudget { offset, .. })
            | ErrorKind::RecordTooLarge { offset, .. }
            | ErrorKind::Truncated { offset, .. }
            | ErrorKind::Pruned { offset, .. }
            | ErrorKind::Changed { offset, .. }
            | ErrorKind::Unsupported {
                unsupported: Unsupported::PackedVersion { offset, .. } | Unsupported::Codec { offset, .. },
                ..
            } => Some(*offset),
            ErrorKind::NeverPacked { metadata_offset, .. } => *metadata_offset,
            ErrorKind::Io { .. }
            | ErrorKind::Foreign { .. }
            | ErrorKind::OtherLog { .. }
            | ErrorKind::WrongDialect { .. }
            | ErrorKind::NeverAppended { .. }
            | ErrorKind::Unsupported { .. }
            | ErrorKind::NotASegment
            | ErrorKind::Forked
            | ErrorKind::Locked
            | ErrorKind::Write { .. }
            | ErrorKind::Closed => None,
        }
    }
}

/// Shows the path and the kind, such as `app.log: the log is closed`.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}: {}", path.display(), self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl ErrorKind {
    /// Returns the default hint for an error of this kind.
    fn hint(&self) -> Option<Hint> {
        Some(match self {
            ErrorKind::Corruption { region } if region.reason == Reason::RecordTooLarge => Hint::RaiseRecordLenMax,
            ErrorKind::Corruption { .. } => Hint::OnCorruption,
            ErrorKind::OverBudget(_) | ErrorKind::RecordTooLarge { .. } => Hint::RaiseRecordLenMax,
            ErrorKind::Foreign { .. } => Hint::NameDialect,
            ErrorKind::OtherLog { .. } => Hint::NameLogNumber,
            ErrorKind::TornTail { .. } => Hint::OnTornTail,
            ErrorKind::WrongDialect { .. } => Hint::NameDetectedDialect,
            ErrorKind::NeverAppended { .. } => Hint::CreateLog,
            ErrorKind::Unsupported { unsupported, .. } => match unsupported {
                Unsupported::LogNumber => Hint::OmitLogNumber,
                Unsupported::Compression => Hint::OmitCompression,
                Unsupported::ZstdFeature => Hint::EnableZstd,
                Unsupported::Packing
                | Unsupported::Segments
                | Unsupported::PackedVersion { .. }
                | Unsupported::Codec { .. } => return None,
            },
            ErrorKind::Write { failure, .. } if failure.is_undone => return None,
            ErrorKind::Write { .. } | ErrorKind::Forked => Hint::Reopen,
            ErrorKind::Io { source } if source.get_ref().is_some_and(|source| source.is::<Cut>()) => Hint::Reopen,
            ErrorKind::Pruned { .. } => Hint::StartAtFirstOffset,
            ErrorKind::Changed { .. } => Hint::StartAgain,
            ErrorKind::NotASegment => Hint::OwnDirectory,
            // This arm matches only errors from the operating system. An error with its own message
            // already includes advice.
            ErrorKind::Io { source } if source.kind() == io::ErrorKind::IsADirectory && source.get_ref().is_none() => {
                Hint::ReadDirectory
            }
            ErrorKind::Io { .. }
            | ErrorKind::Truncated { .. }
            | ErrorKind::NeverPacked { .. }
            | ErrorKind::Locked
            | ErrorKind::Closed => return None,
        })
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::Io { source } => write!(f, "{source}"),
            ErrorKind::Corruption { region } => write!(f, "{region}"),
            ErrorKind::RecordTooLarge {
                record_len,
                record_len_max,
                ..
            } => write!(
                f,
                "cannot write a record of {record_len} bytes: the limit is {record_len_max}"
            ),
            ErrorKind::OverBudget(record) => record.fmt(f),
            ErrorKind::Truncated { offset, file_len } => {
                write!(f, "offset {offset} is past the end of the file")?;
                if let Some(file_len) = file_len {
                    write!(f, " ({file_len} bytes)")?;
                }
                write!(f, ": it was truncated, or the offset belongs to another file")
            }
            ErrorKind::Pruned { offset, first_offset } => write!(
                f,
                "cannot read from offset {offset}: records before {first_offset} were pruned"
            ),
            ErrorKind::Changed { offset, end_offset } => write!(
                f,
                "this is not the log that was read before: bytes {offset} to {end_offset} differ"
            ),
            ErrorKind::Foreign { foreign } => write!(f, "{foreign}"),
            ErrorKind::OtherLog {
                log_number,
                other_log_number,
            } => write!(
                f,
                "the whole file belongs to log {other_log_number}; expected log {log_number} (from the file's name or an option)"
            ),
            ErrorKind::TornTail { region } => write!(f, "{region}; records appended after it would be lost"),
            ErrorKind::WrongDialect { named, found } => write!(
                f,
                "cannot append in dialect {named}: readers of this {found} log would not find the record"
            ),
            &ErrorKind::NeverAppended { format } => {
                show_logs(format, f)?;
                write!(
                    f,
                    " are never appended to: readers take the bytes after their end for an older log"
                )
            }
            &ErrorKind::NeverPacked {
                format,
                metadata_offset,
            } => {
                write!(f, "cannot pack ")?;
                match (metadata_offset, format.dialect.version()) {
                    (Some(offset), _) => write!(f, "{} logs with metadata (at offset {offset})", format.dialect)?,
                    (None, Some(version)) => write!(f, "{} logs of version {version}", format.dialect)?,
                    (None, None) => show_logs(format, f)?,
                }
                write!(f, ": they could not be restored from the packed copy")
            }
            ErrorKind::Unsupported { dialect, unsupported } => show_unsupported(*dialect, *unsupported, f),
            ErrorKind::NotASegment => write!(
                f,
                "this file is not a segment of a log, and a directory with other files is not a segmented log"
            ),
            ErrorKind::Forked => write!(f, "this log was opened before the process forked"),
            ErrorKind::Locked => write!(
                f,
                "another writer has this log open; a log can have only one writer at a time"
            ),
            ErrorKind::Write { source, failure } => write!(f, "{source}; {failure}"),
            ErrorKind::Closed => write!(f, "the log is closed"),
        }
    }
}

impl fmt::Display for WriteFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(what) = self.earlier {
            write!(f, "an earlier {what} failed; ")?;
        }
        if let Some(undo_error) = &self.undo_error {
            write!(f, "the partial record could not be cut off: {undo_error}; ")?;
        }
        match self.durable_offset {
            0 => write!(f, "no byte is known to be on the disk")?,
            offset => write!(f, "everything before offset {offset} is on the disk")?,
        }
        if self.is_undone {
            write!(f, "; the write was undone, and the log remains usable")
        } else {
            write!(f, ", and later records may be lost")
        }
    }
}

impl std::error::Error for Error {
    /// Returns the cause of the operating system's error, if it has one. The error itself is
    /// already part of the message, so a program that prints the chain of causes doesn't print any
    /// message twice.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::Io { source } | ErrorKind::Write { source, .. } => source.source(),
            _ => None,
        }
    }
}

/// Writes which logs an operation does not support, such as "rocksdb logs with compression".
fn show_logs(format: LogFormat, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{} logs", format.dialect)?;
    // The compression comes first, because the log number may be known only from the file's name.
    if format.compression.is_some() {
        write!(f, " with compression")?;
    } else if format.log_number.is_some() {
        write!(f, " with a log number")?;
    }
    Ok(())
}

/// Why a record was found but not returned. The record is neither skipped nor consumed, so the next
/// call starts with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// There is not enough memory for the record's data.
    OutOfMemory,
    /// A compressed log would decompress to more data than is allowed for the number of bytes read
    /// so far. See [`ReadOptions::record_len_max`](crate::ReadOptions::record_len_max).
    OverBudget(OverBudget),
    /// This build cannot read the version or the codec of a packed log, or the codec of one of its
    /// containers. A reader never skips such a log or container.
    Unsupported(Unsupported),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::OutOfMemory => write!(f, "there is not enough memory for the record"),
            Refused::Unsupported(unsupported) => show_unsupported(Dialect::PACKED, *unsupported, f),
            Refused::OverBudget(record) => record.fmt(f),
        }
    }
}

/// A compressed record that decompresses to more bytes than the limits allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OverBudget {
    /// The file offset of the record's first header.
    pub offset: u64,
    /// The file offset just past the record's last fragment.
    pub end_offset: u64,
    /// The length of the record's data in bytes.
    pub data_len: u64,
    /// The smallest [`record_len_max`](crate::ReadOptions::record_len_max) that allows the record.
    pub record_len_max: u64,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (offset, data_len, limit) = (self.offset, self.data_len, self.record_len_max);
        write!(
            f,
            "the compressed record at offset {offset} has {data_len} bytes: too many, unless the limit is {limit} or more"
        )
    }
}

impl std::error::Error for Refused {}

/// Writes a message saying which operation is not supported.
pub(crate) fn show_unsupported(dialect: Dialect, unsupported: Unsupported, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match unsupported {
        Unsupported::LogNumber => write!(f, "{dialect} logs have no log number"),
        Unsupported::Compression => write!(f, "{dialect} logs are not compressed"),
        Unsupported::Packing => write!(
            f,
            "pack writes packed, leveldb, wandb and swanlab logs, and no {dialect} logs"
        ),
        Unsupported::Segments => write!(
            f,
            "{dialect} logs are not written in segments; leveldb and packed logs are"
        ),
        Unsupported::ZstdFeature => write!(f, "this build can neither read nor write records compressed with zstd"),
        Unsupported::PackedVersion { version, offset } => write!(
            f,
            "the mark at offset {offset} states version {version} of {dialect} logs, which this release does not know"
        ),
        Unsupported::Codec { codec, offset } => write!(
            f,
            "at offset {offset}, the codec is {codec}, which this release does not know"
        ),
    }
}

/// Converts a failed dialect check to an error.
pub(crate) fn unsupported(checked: Result<(), (Dialect, Unsupported)>, path: Option<&Path>) -> Result<(), Error> {
    checked.map_err(|(dialect, unsupported)| Error::new(ErrorKind::Unsupported { dialect, unsupported }, path))
}

/// Creates the error for a record the decoder refuses to return.
#[cold]
pub(crate) fn refusal(refused: Refused, path: Option<&Path>) -> Error {
    match refused {
        Refused::OutOfMemory => {
            Error::io(io::ErrorKind::OutOfMemory.into(), path).with_hint(Some(Hint::LowerRecordLenMax))
        }
        Refused::Unsupported(unsupported) => {
            let dialect = Dialect::PACKED;
            Error::new(ErrorKind::Unsupported { dialect, unsupported }, path)
        }
        Refused::OverBudget(record) => Error::new(ErrorKind::OverBudget(record), path),
    }
}

/// Creates an error of this kind without a path.
impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Error::new(kind, None)
    }
}

/// Returns the `Error` that the [`io::Error`] was made from or, if there is none, an
/// [`ErrorKind::Io`] without a path.
///
/// ```
/// use std::io;
/// use cordwood_log::{Error, ErrorKind};
/// let error = Error::from(io::Error::from(Error::from(ErrorKind::Closed)));
/// assert!(matches!(error.kind, ErrorKind::Closed));
/// let error = Error::from(io::Error::from(io::ErrorKind::StorageFull));
/// assert_eq!(error.path, None);
/// assert!(matches!(error.kind, ErrorKind::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull));
/// ```
impl From<io::Error> for Error {
    fn from(source: io::Error) -> Self {
        source
            .downcast::<Error>()
            .unwrap_or_else(|source| Error::io(source, None))
    }
}

/// For an [`ErrorKind::Io`] without a path, returns its source. Wraps any other `Error` in an
/// [`io::Error`] with the same message. [`io::Error::downcast`] then returns the original `Error`.
/// An error from the operating system keeps its kind.
///
/// ```
/// use std::io;
/// use cordwood_log::Reader;
/// fn first_record(path: &str) -> io::Result<Option<Vec<u8>>> {
///     let mut reader = Reader::open(path)?;
///     Ok(reader.next_record()?.map(|record| record.data.to_vec()))
/// }
/// assert_eq!(first_record("no such file").unwrap_err().kind(), io::ErrorKind::NotFound);
/// ```
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        if let Error {
            path: None,
            kind: ErrorKind::Io { source },
            ..
        } = error
        {
            return source;
        }
        let kind = match &error.kind {
            ErrorKind::Io { source } | ErrorKind::Write { source, .. } => source.kind(),
            ErrorKind::Corruption { .. }
            | ErrorKind::OverBudget(_)
            | ErrorKind::Changed { .. }
            | ErrorKind::Foreign { .. }
            | ErrorKind::OtherLog { .. }
            | ErrorKind::NotASegment
            | ErrorKind::TornTail { .. } => io::ErrorKind::InvalidData,
            ErrorKind::Truncated { .. } => io::ErrorKind::UnexpectedEof,
            ErrorKind::Pruned { .. } => io::ErrorKind::NotFound,
            ErrorKind::RecordTooLarge { .. } => io::ErrorKind::InvalidInput,
            ErrorKind::WrongDialect { .. }
            | ErrorKind::NeverAppended { .. }
            | ErrorKind::NeverPacked { .. }
            | ErrorKind::Unsupported { .. } => io::ErrorKind::Unsupported,
            ErrorKind::Locked => io::ErrorKind::WouldBlock,
            ErrorKind::Forked | ErrorKind::Closed => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Step;

    /// A reader returns a `Result` for each record, so the size of an error matters.
    #[test]
    fn a_step_result_is_no_larger_than_an_error() {
        assert_eq!(size_of::<Result<Step, Error>>(), size_of::<Error>());
        assert!(size_of::<Error>() <= 80);
    }
}
