//! Copies a closed log to a new log in another format, packed or not.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;

use super::new_log::NewLog;
use super::parallel::split_ranges;
use super::verify::{Report, report, verify_file};
use crate::damage::{Reason, Severity, SkippedRegion};
use crate::decode::{OnCorruption, RECORD_LEN_MAX, ReadOptions, Step};
use crate::dialect::{Compression, Dialect, LogFormat, Metadata, Role, Unsupported};
use crate::error::{Error, ErrorKind, Hint, unsupported};
use crate::format::BLOCK_LEN;
use crate::options::options;
use crate::reader::{Reader, Source};

options! {
    /// Options for packing a log.
    ///
    /// ```
    /// use cordwood_log::Dialect;
    /// use cordwood_log::ops::PackOptions;
    /// let stored = PackOptions::default().with_format(Dialect::PACKED);
    /// let back = PackOptions::default().with_format(Dialect::LEVELDB);
    /// ```
    pub struct PackOptions {
        /// The format of the new log, whose dialect is [`PACKED`](Dialect::PACKED),
        /// [`LEVELDB`](Dialect::LEVELDB), [`WANDB`](Dialect::WANDB) or
        /// [`SWANLAB`](Dialect::SWANLAB). Default: `PACKED`, compressed with zstd.
        pub format: LogFormat = LogFormat::new(Dialect::PACKED).with_compression(Compression::Zstd), into with_format;
        /// The maximum length of a record, as in [`ReadOptions::record_len_max`]. Longer records
        /// are refused. Default: 1 GiB.
        pub record_len_max: u64 = RECORD_LEN_MAX, set with_record_len_max;
    }
}

impl PackOptions {
    /// Returns the options for reading the log. With them, the reader reports only the damage
    /// itself, not the rest of the damaged block.
    fn reading(&self) -> ReadOptions {
        ReadOptions {
            on_corruption: OnCorruption::Salvage,
            record_len_max: self.record_len_max,
            ..ReadOptions::default()
        }
    }
}

/// Copies all records in the log `source` to a new log, `destination`. The new log is
/// [packed](Dialect::PACKED) unless the options name another format. The report describes `source`.
///
/// Either all records are copied, or no log is written. It is an error if the log is damaged,
/// contains zeros, or ends with an incomplete record, because a record may have been lost. The only
/// exception is padding: if the file consists of whole blocks, zeros that pad the last block are
/// left out.
///
/// The whole new log is read once, in ranges, and checked before it gets its final name.
///
/// This function can also convert a packed log back to its original dialect. The copy then contains
/// the original log's records, and is byte-for-byte identical to that log if it contained only
/// complete records.
///
/// Refuses logs that couldn't be restored from their copies. These are logs that have a log number,
/// engine metadata, or individually compressed records. They also include
/// [`WANDB_OLD`](Dialect::WANDB_OLD) logs, and [`SWANLAB`](Dialect::SWANLAB) logs of a version
/// other than 2.
///
/// `source` should be a closed log, because records appended during the call may be missing from
/// the copy. `source` is not changed, and `destination` must not exist. As with
/// [`salvage`](super::salvage()), once a file has its final name, it is complete and on disk.
///
/// ```
/// use cordwood_log::{Dialect, Reader, ops};
/// # let directory = tempfile::tempdir()?;
/// # let [log, packed, again] = ["app.log", "packed.log", "again.log"].map(|name| directory.path().join(name));
/// std::fs::write(&log, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(1000))?;
///
/// let stored = ops::PackOptions::default().with_format(Dialect::PACKED);
/// let report = ops::pack_file(&log, &packed, &stored)?;
/// assert_eq!((report.record_count, report.file_len), (1000, Some(10_000)));
/// assert_eq!(std::fs::metadata(&packed)?.len(), 4_027);
///
/// let back = ops::PackOptions::default().with_format(Dialect::LEVELDB);
/// ops::pack_file(&packed, &again, &back)?;
/// assert_eq!(std::fs::read(&again)?, std::fs::read(&log)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// No log is written in these cases:
///
/// * [`ErrorKind::Corruption`] if the log is damaged, ends with an incomplete record, or contains
///   zeros other than padding.
/// * [`ErrorKind::NeverPacked`] if the log could not be restored from the new one.
/// * [`ErrorKind::Unsupported`] if the options name a format that cannot be written.
/// * [`ErrorKind::Unsupported`] if this build lacks the `zstd` feature and one of the logs needs
///   it.
/// * Other errors from [`Reader::open`] and [`Reader::next_event`], such as [`ErrorKind::Foreign`]
///   and [`ErrorKind::OverBudget`].
/// * [`ErrorKind::Io`], with the affected path, if `source` cannot be read or `destination` cannot
///   be written. The last sync makes the name durable; if only that sync fails, the new log is
///   kept.
/// * [`ErrorKind::Io`] if `destination` exists
///   ([`AlreadyExists`](std::io::ErrorKind::AlreadyExists)).
/// * [`ErrorKind::Io`] if `destination` has the name of a [segment](crate::segments), because a
///   copy doesn't start at a segment's offset.
pub fn pack_file(
    source: impl AsRef<Path>,
    destination: impl AsRef<Path>,
    options: &PackOptions,
) -> Result<Report, Error> {
    let mut reader = Reader::open_with(source, options.reading())?;
    copy(&mut reader, destination.as_ref(), options)
}

/// Like [`pack_file`], but reads the log from any source.
///
/// ```
/// use cordwood_log::{Dialect, ops};
/// use cordwood_log::read::SliceSource;
/// # let directory = tempfile::tempdir()?;
/// # let packed = directory.path().join("packed.log");
/// let source = SliceSource::new(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo");
/// let stored = ops::PackOptions::default().with_format(Dialect::PACKED);
/// assert_eq!(ops::pack(source, &packed, &stored)?.record_count, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns the same errors as [`pack_file`]. If `source` cannot be read, the error contains its
/// [path](Source::path), if known.
pub fn pack<S: Source>(source: S, destination: impl AsRef<Path>, options: &PackOptions) -> Result<Report, Error> {
    let mut reader = Reader::with_source(source, options.reading());
    copy(&mut reader, destination.as_ref(), options)
}

/// Logs can be copied between these dialects.
const DIALECTS: [Dialect; 4] = [Dialect::PACKED, Dialect::LEVELDB, Dialect::WANDB, Dialect::SWANLAB];

fn copy<S: Source>(reader: &mut Reader<S>, destination: &Path, options: &PackOptions) -> Result<Report, Error> {
    let format = options.format;
    let written = match DIALECTS.contains(&format.dialect) {
        true => format.check_to_write(),
        false => Err((format.dialect, Unsupported::Packing)),
    };
    unsupported(written, Some(destination))?;
    NewLog::check(destination)?;
    check_format(reader.format()?, reader.path())?;
    let mut new = NewLog::create(destination, format, reader)?;
    // The zeros at the end of the part read so far, if any.
    let mut zeros: Option<SkippedRegion> = None;
    let report = report(reader, |reader, step| {
        let region = match step {
            Step::Skipped(region) if region.reason == Reason::ZeroFill => Some(region),
            _ => None,
        };
        zeros = match zeros {
            None => region,
            // These zeros are not padding, because more of the log follows them.
            Some(before) => match region.and_then(|region| before.joined(region)) {
                None => return Err(not_a_record(before, reader.path())),
                joined => joined,
            },
        };
        match step {
            Step::Record(span) => new.output.append(reader, span),
            Step::Skipped(region) => check_skipped(region, reader),
            Step::NeedMore | Step::End(_) => Ok(()),
        }
    })?;
    if let Some(zeros) = zeros {
        let is_whole = |file_len: u64| file_len.is_multiple_of(BLOCK_LEN as u64);
        let is_padding = zeros.len() < BLOCK_LEN as u64 && report.file_len.is_some_and(is_whole);
        if !(is_padding && report.record_count > 0) {
            return Err(not_a_record(zeros, reader.path()));
        }
    }
    check_copy(new.finish()?, &report, options.record_len_max).map_err(|error| Error {
        path: Some(destination.into()),
        ..error
    })?;
    new.publish()?;
    Ok(report)
}

/// Reads the new log at `path` in ranges, as its readers do, and checks that it contains all
/// records counted in `report`.
fn check_copy(path: &Path, report: &Report, record_len_max: u64) -> Result<(), Error> {
    const SPLIT_LEN: u64 = 64 << 20;
    let file_len = std::fs::metadata(path)
        .map_err(|source| Error::io(source, Some(path)))?
        .len();
    let count = NonZeroUsize::MIN.saturating_add((file_len / SPLIT_LEN) as usize);
    let options = ReadOptions::default()
        .with_on_corruption(OnCorruption::Skip)
        .with_record_len_max(record_len_max);
    let (mut record_count, mut payload_len) = (0, 0);
    for split in split_ranges(&options, Some(file_len), count) {
        let part = verify_file(path, &split, NonZeroUsize::MIN)?;
        record_count += part.record_count;
        payload_len += part.payload_len;
    }
    if (record_count, payload_len) == (report.record_count, report.payload_len) {
        return Ok(());
    }
    let text = "the new log is not read as it was written";
    Err(Error::io(io::Error::new(io::ErrorKind::InvalidData, text), Some(path)))
}

/// Checks that a log in this format can be restored from its records.
fn check_format(format: LogFormat, path: Option<&Path>) -> Result<(), Error> {
    // Logs in any dialect not listed in `DIALECTS` may have numbers or compressed records.
    let is_known = DIALECTS.contains(&format.dialect);
    if is_known && [None, Dialect::SWANLAB.version()].contains(&format.dialect.version()) {
        return Ok(());
    }
    Err(never_packed(format, None, path))
}

/// Checks that the copy can leave out a region that `reader` skipped.
fn check_skipped<S: Source>(region: SkippedRegion, reader: &Reader<S>) -> Result<(), Error> {
    let format = reader.decoder.format();
    match region.reason {
        // By now, the reader knows the version.
        Reason::FileHeader | Reason::UnknownVersion { .. } => check_format(format, reader.path()),
        Reason::Metadata { kind } if format.dialect.meaning(kind).role == Role::Metadata(Metadata::Mark) => Ok(()),
        Reason::Metadata { .. } | Reason::IgnoredKind { .. } => {
            Err(never_packed(format, Some(region.start), reader.path()))
        }
        reason if reason.severity() == Severity::Info => Ok(()),
        _ => Err(not_a_record(region, reader.path())),
    }
}

fn never_packed(format: LogFormat, metadata_offset: Option<u64>, path: Option<&Path>) -> Error {
    let kind = ErrorKind::NeverPacked {
        format,
        metadata_offset,
    };
    Error::new(kind, path)
}

/// Returns the error for a region that may have contained a record.
fn not_a_record(region: SkippedRegion, path: Option<&Path>) -> Error {
    let error = Error::new(ErrorKind::Corruption { region }, path);
    match region.reason {
        Reason::RecordTooLarge => error,
        _ => error.with_hint(Some(Hint::Salvage)),
    }
}
