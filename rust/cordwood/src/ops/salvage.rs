//! Writes what can be read of a damaged log to a new one.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::verify::{NotKept, Report, report};
use crate::damage::{Reason, SkippedRegion};
use crate::decode::{OnCorruption, RECORD_LEN_MAX, ReadOptions, Step, format_options};
use crate::detect::{check_number, log_number_of};
use crate::dialect::{Compression, Dialect, Form, GivenFormat, LogFormat, Metadata, Role};
use crate::encode::Encoder;
use crate::error::{Error, ErrorKind, unsupported};
use crate::reader::{Reader, Source};

/// How to salvage a log.
///
/// ```
/// use cordwood_log::Dialect;
/// use cordwood_log::ops::SalvageOptions;
/// let options = SalvageOptions::default().with_dialect(Dialect::PEBBLE).with_repair_bit_flips(true);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SalvageOptions {
    /// Also return records whose damage one flipped bit explains, with that bit flipped back:
    /// [`Report::repaired_count`] and [`Report::repaired`] say which. Such a record is what the
    /// checksum says, if one bit was flipped; `docs/format/damage.md` says how likely it is that
    /// other damage looks like one flipped bit. Default: `false`.
    pub repair_bit_flips: bool,
    /// Refuse a record with more bytes than this, as [`ReadOptions::record_len_max`]. Default: 1
    /// GiB.
    pub record_len_max: u64,
    /// The dialect of the log, as [`ReadOptions::dialect`]. Default: `None`.
    pub dialect: Option<Dialect>,
    /// The number of the log, as [`ReadOptions::log_number`]. Default: `None`.
    pub log_number: Option<u32>,
    /// How each record is compressed, as [`ReadOptions::compression`]. Default: `None`.
    pub compression: Option<Compression>,
}

impl Default for SalvageOptions {
    fn default() -> Self {
        SalvageOptions {
            repair_bit_flips: false,
            record_len_max: RECORD_LEN_MAX,
            dialect: None,
            log_number: None,
            compression: None,
        }
    }
}

format_options!(SalvageOptions);

impl SalvageOptions {
    /// Sets [`repair_bit_flips`](Self::repair_bit_flips).
    #[must_use]
    pub fn with_repair_bit_flips(mut self, repair_bit_flips: bool) -> Self {
        self.repair_bit_flips = repair_bit_flips;
        self
    }

    /// Sets [`record_len_max`](Self::record_len_max), in bytes.
    #[must_use]
    pub fn with_record_len_max(mut self, record_len_max: u64) -> Self {
        self.record_len_max = record_len_max;
        self
    }

    /// How the log is read.
    fn reading(&self) -> ReadOptions {
        let GivenFormat {
            dialect,
            log_number,
            compression,
        } = self.named();
        ReadOptions {
            on_corruption: OnCorruption::Salvage,
            repairs_bit_flips: self.repair_bit_flips,
            record_len_max: self.record_len_max,
            dialect,
            log_number,
            compression,
            ..ReadOptions::default()
        }
    }
}

/// Reads the log `source` with the policy [`OnCorruption::Salvage`], and writes all its records to
/// a new log, `destination`. The report describes `source`. Nothing is repaired, unless
/// [`SalvageOptions::repair_bit_flips`] is set.
///
/// The new log has the format of `source`: its dialect and log number, the form of its fragments,
/// the engine's metadata records, its compression, and the end-of-log trailer if there was one. What
/// cannot be kept is listed in [`Report::not_kept`]. RocksDB and Pebble take the number of a log from
/// its file name: a destination whose name states a number other than the one that the records carry
/// would be read as empty, and is refused.
///
/// `source` is not changed, and `destination` must not exist. The new log is written next to it
/// under a temporary name, synced, and renamed last: a file with the final name is complete. On
/// Unix, it has the permissions of `source` from the beginning, without the bits of the umask, as
/// with `cp`. If anything fails, what was written is removed; but if only the last sync fails, that
/// of the name, the new log stays.
///
/// ```
/// use cordwood_log::{Reader, ops};
/// # let folder = tempfile::tempdir()?;
/// # let (damaged, clean) = (folder.path().join("damaged.log"), folder.path().join("clean.log"));
/// let mut file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(3);
/// file[17] ^= 1;
/// std::fs::write(&damaged, file)?;
///
/// let report = ops::salvage_file(&damaged, &clean, &ops::SalvageOptions::default())?;
/// assert_eq!((report.record_count, report.salvaged_count), (2, 1));
/// assert_eq!(std::fs::read(&clean)?, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(2));
///
/// let (options, repaired) = (ops::SalvageOptions::default().with_repair_bit_flips(true), folder.path().join("repaired.log"));
/// let report = ops::salvage_file(&damaged, &repaired, &options)?;
/// assert_eq!((report.record_count, report.repaired_count), (3, 1));
/// assert_eq!(report.repaired.listed()[0].bit_flip.unwrap().offset, 17);
/// assert_eq!(std::fs::read(&repaired)?, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// * [`ErrorKind::Io`], with the path that it concerns, if `source` cannot be read, or if `destination`
///   exists ([`io::ErrorKind::AlreadyExists`]; it is then left as it is), cannot be written, or has
///   the name of another log.
/// * [`ErrorKind::Unsupported`] if the log begins by declaring that it is compressed, and this build
///   has no feature `zstd`: it can read no record of such a log. Nothing is written.
/// * [`ErrorKind::OtherLog`] if all of `source` belongs to a log other than the one that its name or
///   the options state. Nothing is written.
/// * The other errors of [`Reader::open`] and [`Reader::next_event`], such as [`ErrorKind::Foreign`] and
///   [`ErrorKind::OverBudget`], but never [`ErrorKind::Corruption`]. Nothing is written.
pub fn salvage_file(
    source: impl AsRef<Path>,
    destination: impl AsRef<Path>,
    options: &SalvageOptions,
) -> Result<Report, Error> {
    write_records(&mut Reader::open_with(source, options.reading())?, destination.as_ref())
}

/// [`salvage_file`] for any source of a log.
///
/// ```
/// use cordwood_log::ops;
/// use cordwood_log::read::SliceSource;
/// # let folder = tempfile::tempdir()?;
/// # let clean = folder.path().join("clean.log");
/// let source = SliceSource::new(b"\xdd\x5f\xb3\x7a\x03\x00\x01foo torn");
/// let report = ops::salvage(source, &clean, &ops::SalvageOptions::default())?;
/// assert_eq!(report.record_count, 1);
/// assert_eq!(std::fs::read(&clean)?, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`salvage_file`]. If `source` cannot be read, the error has its [path](Source::path), if it is
/// known.
pub fn salvage<S: Source>(source: S, destination: impl AsRef<Path>, options: &SalvageOptions) -> Result<Report, Error> {
    let mut reader = Reader::with_source(source, options.reading());
    write_records(&mut reader, destination.as_ref())
}

fn write_records<S: Source>(reader: &mut Reader<S>, destination: &Path) -> Result<Report, Error> {
    let failed = |source| Error::io(source, Some(destination));
    // An early check, so that nothing is read needlessly; `publish` checks again.
    refuse_existing(destination).map_err(failed)?;
    let format = reader.format()?;
    unsupported(format.check_to_write(), reader.path())?;
    let destination_number = log_number_of(destination);
    let mut copy = Copy::new(format, reader.form_in_memory());
    let (temporary, mut file) = Temporary::beside(destination, reader.path()).map_err(failed)?;
    let mut write = |out: &mut Vec<u8>, len_min: usize| {
        if out.len() > len_min {
            file.write_all(out).map_err(failed)?;
            out.clear();
        }
        Ok(())
    };
    let mut report = report(reader, |reader, step| {
        match step {
            Step::Record(span) => {
                let number = reader.known_format().log_number;
                copy.begin_record(reader.record_form(span), span.is_salvaged, number);
                let data = reader.data(span);
                let Copy { encoder, out, .. } = &mut copy;
                encoder
                    .try_reserve_frame(data.len())
                    .map_err(|_| reader.out_of_memory())?;
                encoder.encode_in_pieces(data, out, |out| write(out, WRITE_LEN))?;
            }
            Step::Skipped(region) => copy.region(region, reader),
            Step::NeedMore | Step::End(_) => {}
        }
        if let Some(number) = copy.number {
            check_number(destination_number, number).map_err(failed)?;
        }
        write(&mut copy.out, WRITE_LEN)
    })?;
    if let (Some(other_log_number), Some(log_number)) = (report.other_log_number, report.format.log_number) {
        return Err(Error::new(
            ErrorKind::OtherLog {
                log_number,
                other_log_number,
            },
            reader.path(),
        ));
    }
    report.not_kept = copy.finish();
    write(&mut copy.out, 0)?;
    file.sync_all().map_err(failed)?;
    temporary.publish(destination).map_err(failed)?;
    Ok(report)
}

/// The number of bytes per write.
const WRITE_LEN: usize = 1 << 20;

/// The part of the new log that has been written.
struct Copy {
    encoder: Encoder,
    format: LogFormat,
    /// The form of the log's own fragments, if known. A salvaged record may have another.
    form: Option<Form>,
    /// Bytes not yet written.
    out: Vec<u8>,
    /// The number of the log, if a fragment carries it.
    number: Option<u32>,
    has_end_trailer: bool,
    not_kept: Vec<NotKept>,
}

impl Copy {
    fn new(format: LogFormat, form: Option<Form>) -> Self {
        Copy {
            encoder: Encoder::unchecked(0, format),
            format,
            form,
            out: Vec::new(),
            number: None,
            has_end_trailer: false,
            not_kept: Vec::new(),
        }
    }

    /// Prepares for a record that was read from fragments with headers of this form.
    fn begin_record(&mut self, form: Form, is_salvaged: bool, number: Option<u32>) {
        if form == Form::Synced {
            self.lose(NotKept::SyncedOffsets);
        }
        if !is_salvaged {
            self.form = Some(form);
        }
        // Without a log number, stale fragments could not be distinguished. In a log in two forms,
        // readers would take one of them for an older log.
        let number = number.filter(|_| self.form.unwrap_or(form).has_log_number());
        self.number = number.or(self.number);
        self.encoder.set_number(number);
    }

    /// Copies what can be kept of a skipped region of the source, the last one that `reader`
    /// returned.
    fn region<S: Source>(&mut self, region: SkippedRegion, reader: &Reader<S>) {
        let dialect = self.format.dialect;
        match region.reason {
            // The reader's dialect has the version that the file header states.
            Reason::FileHeader | Reason::BadFileHeader | Reason::UnknownVersion { .. } => {
                self.encoder.set_dialect(reader.known_format().dialect);
            }
            Reason::Metadata { kind } => {
                let bytes = reader.bytes(region);
                match dialect.meaning(kind).role {
                    // The encoder writes these itself.
                    Role::Metadata(Metadata::SetCompression | Metadata::Mark) => {}
                    // It may be part of a payload, and would change how an engine reads the records
                    // that follow.
                    role if reader.salvaged().contains(&region.begin) => self.lose_metadata(role),
                    _ => {
                        let valid = dialect.valid(bytes, true);
                        let number = valid.and_then(|valid| Dialect::log_number_at(bytes, valid.form));
                        self.number = number.or(self.number);
                        self.encoder.copy_fragment(bytes, &mut self.out);
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

    /// Notes that a fragment with this role is not kept, if it is a metadata record.
    fn lose_metadata(&mut self, role: Role) {
        match role {
            Role::Metadata(Metadata::TimestampSizes) => self.lose(NotKept::TimestampSizes),
            Role::Metadata(Metadata::Predecessor) => self.lose(NotKept::Predecessor),
            // Of a compressed log, it is known and written again.
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

    /// Ends the log as the source ends, and returns what could not be kept.
    fn finish(&mut self) -> Vec<NotKept> {
        self.encoder.begin(&mut self.out);
        self.encoder.end_container(&mut self.out);
        if self.has_end_trailer {
            self.encoder.set_number(self.format.log_number.or(self.number));
            self.encoder.end(&mut self.out);
        }
        std::mem::take(&mut self.not_kept)
    }
}

fn refuse_existing(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "File exists")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// A file that is removed unless it gets its final name.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Creates a file in the same folder, with the permissions of `source`. Its name is random, and
    /// not derived from the process id, which in a container may be the same each time. It does not
    /// contain the destination's name, which may already have the maximum length.
    fn beside(destination: &Path, source: Option<&Path>) -> io::Result<(Self, File)> {
        if destination.file_name().is_none() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut options = File::options();
        options.write(true).create_new(true);
        permit_as(&mut options, source);
        loop {
            let number = RandomState::new().build_hasher().finish();
            let path = destination.with_file_name(format!(".cordwood-{number:016x}.partial"));
            match options.open(&path) {
                // Only a file that this function created is removed.
                Ok(file) => return Ok((Temporary { path }, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the file its final name, which must not exist yet.
    fn publish(self, destination: &Path) -> io::Result<()> {
        // A link fails if the name exists; a rename would replace the existing file. Not every file
        // system has links: there, a file that is created between the check and the rename is
        // replaced.
        match fs::hard_link(&self.path, destination) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {
                refuse_existing(destination)?;
                fs::rename(&self.path, destination)?;
            }
        }
        drop(self);
        sync_folder(destination)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // An error cannot be reported here, and after a rename there is nothing to remove.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes the new file readable to those who can read `source`, as `cp` does: a copy of a private
/// log is private from the beginning. The system clears the bits of the umask. A program that runs
/// with the rights of the owner of `source` is not one with those of the new owner, so the setuid,
/// setgid and sticky bits are left out.
#[cfg(unix)]
fn permit_as(options: &mut fs::OpenOptions, source: Option<&Path>) {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    if let Some(Ok(source)) = source.map(fs::metadata) {
        options.mode(source.mode() & 0o777);
    }
}

#[cfg(not(unix))]
fn permit_as(_options: &mut fs::OpenOptions, _source: Option<&Path>) {}

/// Also syncs the name.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// On other systems a folder cannot be opened.
#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}
