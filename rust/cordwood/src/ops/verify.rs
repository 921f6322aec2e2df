//! Reads a log to the end and reports its contents and damage.

use std::num::NonZeroUsize;
use std::path::Path;

#[cfg(feature = "fs")]
use super::parallel::in_parts_of_file;
use super::parallel::{Parts, in_parts, joined_end};
use crate::damage::{Finding, Findings, Reason, Severity};
use crate::decode::{End, ReadOptions, RecordSpan, Step};
use crate::dialect::LogFormat;
use crate::error::Error;
use crate::names::{named, shows_name};
use crate::reader::{Reader, SeekSource, Source};

/// A log's contents and damage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// The format of the log: its dialect, its log number and its compression.
    pub format: LogFormat,
    /// Whether the dialect was named or could be detected. If not, the log was read as
    /// [`Dialect::LEVELDB`](crate::Dialect::LEVELDB).
    pub is_dialect_known: bool,
    /// The number of records returned.
    pub record_count: u64,
    /// The number of returned records that start after damage in the same block. LevelDB's reader
    /// and [`OnCorruption::Skip`](crate::OnCorruption::Skip) drop these records and return all
    /// others.
    pub salvaged_count: u64,
    /// The number of records in the new log that were repaired by flipping back one bit in a
    /// fragment. Nonzero only after [`salvage`](super::salvage) with
    /// [`SalvageOptions::repair_bit_flips`](super::SalvageOptions::repair_bit_flips).
    pub repaired_count: u64,
    /// The number of data bytes in the records, without headers and trailers.
    pub payload_len: u64,
    /// The length of the whole file, including any bytes outside the range that was read. For a log
    /// in [`segments`](crate::segments), this is the offset of its end. `None` if the length isn't
    /// known, for example for a stream that was not read to the end.
    pub file_len: Option<u64>,
    /// The regions that were not returned.
    pub findings: Findings,
    /// The repairs. Each gives the location of a fragment, the reason a reader skips it, and the
    /// bit that was flipped back. A repaired fragment is part of a record, engine metadata, the
    /// file header, or the trailer of a closed log.
    pub repaired: Findings,
    /// How reading ended.
    pub end: End,
    /// If the whole file belongs to another log, the number of that log. See
    /// [`LogInfo::other_log_number`](crate::read::LogInfo::other_log_number).
    pub other_log_number: Option<u32>,
    /// The properties that [`salvage`](super::salvage) could not keep in the new log. Empty after
    /// [`verify`].
    pub not_kept: Vec<NotKept>,
}

impl Report {
    /// Returns true if no damage was found: no region has [`Severity::Corruption`], and nothing was
    /// repaired. A torn tail is not damage.
    pub fn is_ok(&self) -> bool {
        !self.findings.has(Severity::Corruption) && self.repaired.is_empty()
    }

    /// Returns the file offset of the first trailing zero byte, or `None` if the file doesn't end
    /// with zeros or wasn't read to the end. These zeros are not treated as damage. They are either
    /// unwritten space or lost data.
    pub fn zeros_offset(&self) -> Option<u64> {
        self.findings.zeros_before(self.file_len?)
    }

    #[inline]
    fn record(&mut self, span: RecordSpan, len: u64) {
        self.record_count += 1;
        self.salvaged_count += u64::from(span.is_salvaged);
        self.payload_len += len;
    }

    /// Joins this report with the report of the next range.
    fn joined(mut self, next: Report) -> Report {
        self.end = joined_end(
            (self.record_count, &self.findings, self.end),
            (next.record_count, &next.findings, next.end),
        );
        self.record_count += next.record_count;
        self.salvaged_count += next.salvaged_count;
        self.payload_len += next.payload_len;
        self.file_len = next.file_len.or(self.file_len);
        self.findings.append(next.findings);
        self
    }
}

named! {
    /// A property that [`salvage`](super::salvage) could not keep in the new log.
    pub enum NotKept {
        /// Some Pebble records contain an offset that shows how far the file had been synced. The
        /// records are written without this offset, with types 5 to 8 instead of 9 to 12.
        SyncedOffsets = "synced_offsets",
        /// Metadata records in a form or place that no engine uses.
        BadMetadata = "bad_metadata",
        /// Fragments of an unknown type that is safe to ignore.
        IgnoredKinds = "ignored_kinds",
        /// A RocksDB record with timestamp lengths. Either one flipped bit explains the damage in
        /// this record, or the record follows damage in the same block. Without this record,
        /// RocksDB assumes that later keys have no timestamps.
        TimestampSizes = "timestamp_sizes",
        /// A RocksDB record that identifies the previous log. It is lost for the same reasons as a
        /// record with timestamp lengths.
        Predecessor = "predecessor",
    }
}

shows_name!(NotKept);

/// Reads a log to the end and reports the findings.
///
/// Records are not held in memory, no matter how long they are. The exception is a compressed log,
/// whose records are held one at a time.
///
/// Damage is not an error here. [`OnCorruption::Fail`](crate::OnCorruption::Fail), the default,
/// acts like [`OnCorruption::Salvage`](crate::OnCorruption::Salvage), so that the report covers
/// only the damage itself and not the rest of its block.
///
/// ```
/// use cordwood_log::{ReadOptions, ops};
/// use cordwood_log::damage::FragmentPart;
/// use cordwood_log::read::SliceSource;
///
/// let mut file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(2);
/// let report = ops::verify(SliceSource::new(&file), &ReadOptions::default())?;
/// assert!(report.is_ok());
/// assert_eq!((report.record_count, report.payload_len, report.file_len), (2, 6, Some(20)));
///
/// file[2] ^= 0x10;
/// let report = ops::verify(SliceSource::new(&file), &ReadOptions::default())?;
/// assert!(!report.is_ok());
/// assert_eq!((report.findings.len_by("checksum_mismatch"), report.record_count, report.salvaged_count), (10, 1, 1));
/// let flip = report.findings.listed()[0].bit_flip.unwrap();
/// assert_eq!((flip.offset, flip.bit, flip.part), (2, 4, FragmentPart::Checksum));
/// # Ok::<(), cordwood_log::Error>(())
/// ```
///
/// # Errors
///
/// Returns the same errors as [`Reader::next_event`], except
/// [`ErrorKind::Corruption`](crate::ErrorKind::Corruption).
pub fn verify<S: Source>(source: S, options: &ReadOptions) -> Result<Report, Error> {
    verify_from(&mut Reader::with_source(source, options.clone()))
}

/// Like [`verify`], but starts at the position of `reader`. After an
/// [`ErrorKind::Io`](crate::ErrorKind::Io) within a record, reading resumes at the start of that
/// record. For a stream, this requires a [`seek`](Reader::seek).
pub(crate) fn verify_from<S: Source>(reader: &mut Reader<S>) -> Result<Report, Error> {
    reader.without_failing(|reader| reader.without_data(|reader| report(reader, |_, _| Ok(()))))
}

/// Like [`verify`], but calls `on_step` for each step while its bytes are in memory.
pub(super) fn report<S: Source>(
    reader: &mut Reader<S>,
    mut on_step: impl FnMut(&mut Reader<S>, Step) -> Result<(), Error>,
) -> Result<Report, Error> {
    let mut report = Report::default();
    loop {
        // Runs are handled here for the same reason as in `stat`. They don't contain any repairs.
        while let Some(span) = reader.decoder.next_of_run() {
            report.record(span, reader.decoder.data_len(span));
            on_step(reader, Step::Record(span))?;
        }
        match reader.step()? {
            Step::Record(span) => {
                report.record(span, reader.decoder.data_len(span));
                if let Some(repaired) = reader.decoder.take_repairs() {
                    // Repairing a container repairs every record in it.
                    report.repaired_count += reader.decoder.rest_len(span);
                    report.repaired.append(repaired);
                }
                on_step(reader, Step::Record(span))?;
            }
            Step::Skipped(region) => {
                let is_listed = report.findings.lists(region);
                let bit_flip = is_listed.then(|| reader.bit_flip(region)).flatten();
                report.findings.add(Finding { region, bit_flip });
                // Regions skipped for other reasons are lost, even if some of their fragments could
                // be repaired.
                if let Some(repaired) = reader.decoder.take_repairs()
                    && matches!(
                        region.reason,
                        Reason::Metadata { .. } | Reason::FileHeader | Reason::EndTrailer
                    )
                {
                    report.repaired.append(repaired);
                }
                on_step(reader, Step::Skipped(region))?;
            }
            Step::NeedMore => {}
            Step::End(end) => {
                report.format = reader.format()?;
                report.is_dialect_known = reader.detect()?.is_some();
                report.end = end;
                report.other_log_number = reader.info().other_log_number;
                report.file_len = reader.file_len();
                return Ok(report);
            }
        }
    }
}

/// Runs [`verify`] on a file, using `threads` threads that each read parts of the file.
///
/// The report is the same no matter how many threads there are. Pipes and devices are read by one
/// thread. [`OnCorruption::Stop`](crate::OnCorruption::Stop) also requires a single thread, because
/// the result depends on all earlier bytes.
///
/// If damage is found in a log with a number, the log is read again, and the report describes the
/// second pass. If an engine is writing the log over an older one, a reader may see the older log's
/// bytes where the engine is about to write a record.
///
/// ```
/// use std::num::NonZeroUsize;
/// use cordwood_log::{ReadOptions, ops};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("example.log");
/// # std::fs::write(&path, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")?;
/// let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
/// let report = ops::verify_file(&path, &ReadOptions::default(), threads)?;
/// assert_eq!(report.record_count, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns the same errors as [`Reader::open`] and [`Reader::next_event`], except
/// [`ErrorKind::Corruption`](crate::ErrorKind::Corruption). Also returns
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if a thread cannot be started.
#[cfg(feature = "fs")]
pub fn verify_file(path: impl AsRef<Path>, options: &ReadOptions, threads: NonZeroUsize) -> Result<Report, Error> {
    let work = |reader: &mut Reader<_>| verify_live(reader, options);
    in_parts_of_file(path.as_ref(), options, threads, work, Report::joined)
}

/// Runs [`verify`] with one thread for each of `readers`, which all read the same file. The report
/// does not depend on the number of readers.
///
/// # Errors
///
/// Returns [`ErrorKind::Io`](crate::ErrorKind::Io) if a source cannot be read or a thread cannot be
/// started.
pub fn verify_parts<S: SeekSource + Send>(mut readers: Vec<Reader<S>>, parts: &Parts) -> Result<Report, Error> {
    let whole = |reader: &mut Reader<S>| verify_live(reader, &parts.options(0));
    in_parts(&mut readers, parts, whole, verify_from, Report::joined)
}

/// Like [`verify`], but for a file that another program may be writing to. `options` are the
/// options that `reader` was opened with. If a log with a number seems damaged, it is read again.
/// If another program is overwriting an older log with this one, the first pass may have read past
/// the end of this log, into older bytes that were about to be overwritten. A source that cannot
/// seek is read only once.
fn verify_live<S: SeekSource>(reader: &mut Reader<S>, options: &ReadOptions) -> Result<Report, Error> {
    // The format at the start of the log. A format found later would apply only to the bytes after
    // it.
    let format = reader.format()?;
    let report = verify_from(reader)?;
    let may_be_live = !report.is_ok() && format.log_number.is_some();
    if may_be_live && reader.restart(options.clone().with_format(format)).is_ok() {
        return verify_from(reader);
    }
    Ok(report)
}
