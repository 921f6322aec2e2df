//! Writes the readable records from a damaged log to a new log.

use std::io::Write;
#[cfg(feature = "fs")]
use std::path::Path;

#[cfg(feature = "fs")]
use super::new_log::NewLog;
use super::output::Output;
use super::verify::{NotKept, Report, report};
use crate::damage::{Reason, SkippedRegion};
use crate::decode::{OnCorruption, RECORD_LEN_MAX, ReadOptions, Step};
use crate::detect::check_number;
#[cfg(feature = "fs")]
use crate::detect::log_number_of;
use crate::dialect::{Compression, Dialect, Form, LogFormat, Metadata, Role};
use crate::error::{Error, ErrorKind, unsupported};
use crate::options::{log_options, options};
use crate::reader::{Reader, Source};

options! {
    /// Options for salvaging a log.
    ///
    /// ```
    /// use cordwood_log::Dialect;
    /// use cordwood_log::ops::SalvageOptions;
    /// let options = SalvageOptions::default().with_dialect(Dialect::PEBBLE).with_repair_bit_flips(true);
    /// ```
    pub struct SalvageOptions {
        /// Whether to also return records whose damage is explained by one flipped bit, after
        /// flipping that bit back. [`Report::repaired_count`] and [`Report::repaired`] report these
        /// records. If exactly one bit was flipped, the repaired record has its original contents,
        /// as its checksum confirms. `docs/format/damage.md` explains how likely other damage is to
        /// look like one flipped bit. Default: `false`.
        pub repair_bit_flips: bool = false, set with_repair_bit_flips;
        /// The maximum length of a record, as in [`ReadOptions::record_len_max`]. Longer records
        /// are refused. Default: 1 GiB.
        pub record_len_max: u64 = RECORD_LEN_MAX, set with_record_len_max;
        /// The dialect of the log, as in [`ReadOptions::dialect`]. Default: `None`.
        pub dialect: Option<Dialect> = None, into with_dialect;
        /// The number of the log, as in [`ReadOptions::log_number`]. Default: `None`.
        pub log_number: Option<u32> = None, into with_log_number;
        /// The compression of each record, as in [`ReadOptions::compression`]. Default: `None`.
        pub compression: Option<Compression> = None, into with_compression;
    }
}

log_options!(SalvageOptions);

impl SalvageOptions {
    /// Returns the options for reading the log.
    fn reading(&self) -> ReadOptions {
        let options = ReadOptions {
            on_corruption: OnCorruption::Salvage,
            repairs_bit_flips: self.repair_bit_flips,
            record_len_max: self.record_len_max,
            ..ReadOptions::default()
        };
        options.with_named(self.named())
    }
}

/// Reads the log `source` with the policy [`OnCorruption::Salvage`], and writes all its records to
/// a new log, `destination`. The report describes `source`. Records are only repaired if
/// [`SalvageOptions::repair_bit_flips`] is set.
///
/// The new log has the same format as `source`: the same dialect, log number, fragment form, engine
/// metadata and compression, and the same end-of-log trailer, if any. [`Report::not_kept`] lists
/// the properties that could not be kept.
///
/// RocksDB and Pebble take a log's number from its file name, and would read the log as empty if
/// that number differed from the one in the records. For this reason, a `destination` whose name
/// contains a different number is refused.
///
/// `source` is not changed, and `destination` must not exist. The new log is written under a
/// temporary name in the directory of `destination`, synced, and finally renamed, so once a file
/// has its final name, it is complete. On Unix, the new log is created with the permissions of
/// `source`, minus the bits of the umask, as with `cp`. After a failure, the unfinished log is
/// removed. The last sync makes the name durable; if only that sync fails, the new log is kept.
///
/// ```
/// use cordwood_log::{Reader, ops};
/// # let directory = tempfile::tempdir()?;
/// # let (damaged, clean) = (directory.path().join("damaged.log"), directory.path().join("clean.log"));
/// let mut file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(3);
/// file[17] ^= 1;
/// std::fs::write(&damaged, file)?;
///
/// let report = ops::salvage_file(&damaged, &clean, &ops::SalvageOptions::default())?;
/// assert_eq!((report.record_count, report.salvaged_count), (2, 1));
/// assert_eq!(std::fs::read(&clean)?, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(2));
///
/// let options = ops::SalvageOptions::default().with_repair_bit_flips(true);
/// let repaired = directory.path().join("repaired.log");
/// let report = ops::salvage_file(&damaged, &repaired, &options)?;
/// assert_eq!((report.record_count, report.repaired_count), (3, 1));
/// assert_eq!(report.repaired.listed()[0].bit_flip.unwrap().offset, 17);
/// assert_eq!(std::fs::read(&repaired)?, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// * [`ErrorKind::Io`], with the affected path, if `source` cannot be read or `destination` cannot
///   be written.
/// * [`ErrorKind::Io`] if `destination` exists
///   ([`AlreadyExists`](std::io::ErrorKind::AlreadyExists)). The existing file is not changed.
/// * [`ErrorKind::Io`] if the name of `destination` contains the number of another log.
/// * [`ErrorKind::Io`] if `destination` has the name of a [segment](crate::segments), because a
///   copy doesn't start at a segment's offset.
/// * [`ErrorKind::Unsupported`] if the log declares at its start that it is compressed, and this
///   build lacks the `zstd` feature needed to read its records. No log is written.
/// * [`ErrorKind::OtherLog`] if every fragment in `source` carries a log number other than the
///   expected one. The expected number is in the options or in the file's name. No log is written.
/// * Other errors from [`Reader::open`] and [`Reader::next_event`], such as [`ErrorKind::Foreign`]
///   and [`ErrorKind::OverBudget`], but never [`ErrorKind::Corruption`]. No log is written.
#[cfg(feature = "fs")]
pub fn salvage_file(
    source: impl AsRef<Path>,
    destination: impl AsRef<Path>,
    options: &SalvageOptions,
) -> Result<Report, Error> {
    write_records(&mut Reader::open_with(source, options.reading())?, destination.as_ref())
}

/// Like [`salvage_file`], but reads the log from any source.
///
/// ```
/// use cordwood_log::ops;
/// use cordwood_log::read::SliceSource;
/// # let directory = tempfile::tempdir()?;
/// # let clean = directory.path().join("clean.log");
/// let source = SliceSource::new(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo torn");
/// let report = ops::salvage(source, &clean, &ops::SalvageOptions::default())?;
/// assert_eq!(report.record_count, 1);
/// assert_eq!(std::fs::read(&clean)?, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns the same errors as [`salvage_file`]. If `source` cannot be read, the error contains its
/// [path](Source::path), if known.
#[cfg(feature = "fs")]
pub fn salvage<S: Source>(source: S, destination: impl AsRef<Path>, options: &SalvageOptions) -> Result<Report, Error> {
    let mut reader = Reader::with_source(source, options.reading());
    write_records(&mut reader, destination.as_ref())
}

/// Like [`salvage`], but writes to any destination, such as a buffer or a socket. Names are not
/// checked.
///
/// ```
/// use cordwood_log::ops;
/// use cordwood_log::read::SliceSource;
/// let source = SliceSource::new(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo torn");
/// let mut clean = Vec::new();
/// let report = ops::salvage_to(source, &mut clean, &ops::SalvageOptions::default())?;
/// assert_eq!(report.record_count, 1);
/// assert_eq!(clean, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo");
/// # Ok::<(), cordwood_log::Error>(())
/// ```
///
/// # Errors
///
/// Returns the same errors as [`salvage`]. After an error, `destination` may contain part of the
/// log.
pub fn salvage_to<S: Source, W: Write>(source: S, destination: W, options: &SalvageOptions) -> Result<Report, Error> {
    let mut reader = Reader::with_source(source, options.reading());
    let format = format_to_write(&mut reader)?;
    copy(&mut reader, &mut Output::new(destination, None, format), format, None)
}

#[cfg(feature = "fs")]
fn write_records<S: Source>(reader: &mut Reader<S>, destination: &Path) -> Result<Report, Error> {
    NewLog::check(destination)?;
    let format = format_to_write(reader)?;
    let mut new = NewLog::create(destination, format, reader)?;
    let report = copy(reader, &mut new.output, format, log_number_of(destination))?;
    new.publish()?;
    Ok(report)
}

/// Returns the format of the log, which is also the format of its copy.
fn format_to_write<S: Source>(reader: &mut Reader<S>) -> Result<LogFormat, Error> {
    let format = reader.format()?;
    unsupported(format.check_to_write(), reader.path())?;
    Ok(format)
}

/// Copies all records from `reader` to `output`. `destination_number` is the log number in the name
/// of the output.
fn copy<S: Source, W: Write>(
    reader: &mut Reader<S>,
    output: &mut Output<'_, W>,
    format: LogFormat,
    destination_number: Option<u32>,
) -> Result<Report, Error> {
    let mut copy = Copy {
        output,
        format,
        form: reader.form_in_memory(),
        number: None,
        has_end_trailer: false,
        not_kept: Vec::new(),
    };
    let mut report = report(reader, |reader, step| {
        match step {
            Step::Record(span) => {
                let number = reader.decoder.format().log_number;
                copy.start_record(reader.decoder.record_form(span), span.is_salvaged, number);
                copy.output.append(reader, span)?;
            }
            Step::Skipped(region) => copy.region(region, reader),
            Step::NeedMore | Step::End(_) => {}
        }
        if let Some(number) = copy.number {
            check_number(destination_number, number).map_err(|source| Error::io(source, copy.output.path))?;
        }
        copy.output.write()
    })?;
    if let (Some(other_log_number), Some(log_number)) = (report.other_log_number, report.format.log_number) {
        let kind = ErrorKind::OtherLog {
            log_number,
            other_log_number,
        };
        return Err(Error::new(kind, reader.path()));
    }
    report.not_kept = copy.finish()?;
    Ok(report)
}

/// The new log, and what is known about the old log.
struct Copy<'a, 'b, W> {
    output: &'a mut Output<'b, W>,
    format: LogFormat,
    /// The form of the log's own fragments, if known. A salvaged record may be in a different form.
    form: Option<Form>,
    /// The log number, if any fragment carries one.
    number: Option<u32>,
    has_end_trailer: bool,
    not_kept: Vec<NotKept>,
}

impl<W: Write> Copy<'_, '_, W> {
    /// Prepares to copy a record that was read from fragments with headers of this form.
    fn start_record(&mut self, form: Form, is_salvaged: bool, number: Option<u32>) {
        if form == Form::Synced {
            self.lose(NotKept::SyncedOffsets);
        }
        if !is_salvaged {
            self.form = Some(form);
        }
        // Without a log number, stale fragments could not be distinguished from the log's own. In a
        // log with fragments of two forms, readers would treat those of one form as the remains of
        // an older log.
        let number = number.filter(|_| self.form.unwrap_or(form).has_log_number());
        self.number = number.or(self.number);
        self.output.encoder.set_number(number);
    }

    /// Copies the usable part of a skipped region, which must be the one most recently returned by
    /// `reader`.
    fn region<S: Source>(&mut self, region: SkippedRegion, reader: &Reader<S>) {
        let dialect = self.format.dialect;
        match region.reason {
            // The reader's dialect now has the version from the file header.
            Reason::FileHeader | Reason::BadFileHeader | Reason::UnknownVersion { .. } => {
                self.output.encoder.set_dialect(reader.decoder.format().dialect);
            }
            Reason::Metadata { kind } => {
                let bytes = reader.bytes(region);
                match dialect.meaning(kind).role {
                    // The encoder writes these records itself.
                    Role::Metadata(Metadata::SetCompression | Metadata::Mark) => {}
                    // The fragment may be part of a payload, and copying it would change how an
                    // engine reads the records that follow.
                    role if reader.decoder.salvaged().contains(&region.start) => self.lose_metadata(role),
                    _ => {
                        let valid = dialect.valid(bytes, true);
                        let number = valid.and_then(|valid| Dialect::log_number_at(bytes, valid.form));
                        self.number = number.or(self.number);
                        self.output.encoder.copy_fragment(bytes, &mut self.output.out);
                    }
                }
            }
            Reason::BadMetadata { .. } => self.lose(NotKept::BadMetadata),
            Reason::IgnoredKind { .. } => self.lose(NotKept::IgnoredKinds),
            Reason::EndTrailer => self.has_end_trailer = true,
            _ => {
                if let Some(kind) = reader.damaged_kind(region) {
                    self.lose_metadata(dialect.meaning(kind).role);
                }
            }
        }
    }

    /// Notes that a metadata record with this role is not kept. Ignores other roles.
    fn lose_metadata(&mut self, role: Role) {
        match role {
            Role::Metadata(Metadata::TimestampSizes) => self.lose(NotKept::TimestampSizes),
            Role::Metadata(Metadata::Predecessor) => self.lose(NotKept::Predecessor),
            // In a compressed log, the encoder writes this record itself.
            Role::Metadata(Metadata::SetCompression) if self.format.has_zstd_records() => {}
            Role::Metadata(Metadata::SetCompression | Metadata::LateSetCompression) => self.lose(NotKept::BadMetadata),
            Role::Metadata(Metadata::Mark) | Role::Fragment(_) | Role::Ignorable | Role::Unknown => {}
        }
    }

    fn lose(&mut self, what: NotKept) {
        if !self.not_kept.contains(&what) {
            self.not_kept.push(what);
        }
    }

    /// Ends the log the way the source ends, and returns the properties that could not be kept.
    fn finish(self) -> Result<Vec<NotKept>, Error> {
        if self.has_end_trailer {
            let Output { encoder, out, .. } = &mut *self.output;
            encoder.start(out);
            encoder.set_number(self.format.log_number.or(self.number));
            encoder.end(out);
        }
        self.output.finish()?;
        Ok(self.not_kept)
    }
}
