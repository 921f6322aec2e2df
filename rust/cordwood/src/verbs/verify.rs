//! Reads a log to its end and reports what is in it and what is wrong with it.

use std::num::NonZeroUsize;
use std::path::Path;

use super::NotKept;
use super::ranges::{Events, joined_end, on_threads, split_ranges};
use crate::damage::Severity;
use crate::damage::{Finding, Findings};
use crate::decode::{End, ReadOptions, RecordSpan, Step};
use crate::dialect::{Dialect, LogFormat};
use crate::error::Error;
use crate::reader::{Reader, SliceSource, Source};

/// What is in a log, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Which log it is: its dialect, its log number and its compression.
    pub format: LogFormat,
    /// Records that were returned.
    pub record_count: u64,
    /// How many of these begin after damage in the same block: only under
    /// [`OnCorruption::Salvage`](crate::OnCorruption::Salvage).
    pub salvaged_count: u64,
    /// Bytes of data in the records, without headers and trailers.
    pub payload_len: u64,
    /// The length of the whole file, including what is not in the range. `None` if it is not known,
    /// as for a stream that was not read to its end.
    pub file_len: Option<u64>,
    /// What was not returned, and why.
    pub findings: Findings,
    /// How reading ended.
    pub end: End,
    /// The number of another log, if the whole file belongs to it: see
    /// [`LogInfo::other_log_number`](crate::read::LogInfo::other_log_number).
    pub other_log_number: Option<u32>,
    /// What [`salvage`](super::salvage) could not keep in the new log. Empty after [`verify`].
    pub not_kept: Vec<NotKept>,
}

impl Report {
    fn new() -> Self {
        Report {
            format: Dialect::LEVELDB.into(),
            record_count: 0,
            salvaged_count: 0,
            payload_len: 0,
            file_len: None,
            findings: Findings::default(),
            end: End::Clean { offset: 0 },
            other_log_number: None,
            not_kept: Vec::new(),
        }
    }

    /// Whether no damage was found: no region of [`Severity::Corruption`]. A torn tail is not
    /// damage.
    pub fn is_ok(&self) -> bool {
        self.findings.len_of(Severity::Corruption) == 0
    }

    fn events(&self) -> Events {
        Events::of(
            self.record_count,
            self.findings.len(),
            self.findings.len_of(Severity::TornTail),
        )
    }

    #[inline]
    fn record(&mut self, span: RecordSpan, len: u64) {
        self.record_count += 1;
        self.salvaged_count += u64::from(span.is_salvaged);
        self.payload_len += len;
    }

    /// The joined report of this range and the one after it.
    fn joined(mut self, next: Report) -> Report {
        self.end = joined_end((self.events(), self.end), (next.events(), next.end));
        self.record_count += next.record_count;
        self.salvaged_count += next.salvaged_count;
        self.payload_len += next.payload_len;
        self.file_len = next.file_len.or(self.file_len);
        self.findings.append(next.findings);
        self
    }
}

/// Reads to the end, from the position of `reader`, and reports what was found.
///
/// No record is held in memory, however long it is; only those of a compressed log, one at a time.
/// After an [`Error::Io`] inside a record, reading resumes where that record begins, for which a
/// stream needs a [`seek`](Reader::seek).
///
/// Damage is not an error here: [`OnCorruption::Fail`](crate::OnCorruption::Fail) does the same as
/// [`OnCorruption::Skip`](crate::OnCorruption::Skip).
///
/// ```
/// use cordwood_log::{ReadOptions, Reader, verbs};
/// use cordwood_log::damage::FragmentPart;
///
/// let mut file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(2);
/// let report = verbs::verify(&mut Reader::from_slice(&file, ReadOptions::default()))?;
/// assert!(report.is_ok());
/// assert_eq!((report.record_count, report.payload_len, report.file_len), (2, 6, Some(20)));
///
/// file[12] ^= 0x10;
/// let report = verbs::verify(&mut Reader::from_slice(&file, ReadOptions::default()))?;
/// assert!(!report.is_ok());
/// assert_eq!((report.record_count, report.findings.len_by("checksum_mismatch")), (1, 10));
/// let flip = report.findings.listed()[0].bit_flip.unwrap();
/// assert_eq!((flip.offset, flip.bit, flip.part), (12, 4, FragmentPart::Checksum));
/// # Ok::<(), cordwood_log::Error>(())
/// ```
///
/// # Errors
///
/// * [`Error::Io`] if the source cannot be read.
/// * [`Error::OverBudget`] if a record of a compressed log decompresses to too much.
pub fn verify<S: Source>(reader: &mut Reader<S>) -> Result<Report, Error> {
    reader.without_data(|reader| report(reader, |_, _| Ok(())))
}

/// [`verify`], with a callback for each step, while its bytes are in memory.
pub(super) fn report<S: Source>(
    reader: &mut Reader<S>,
    mut on_step: impl FnMut(&mut Reader<S>, Step) -> Result<(), Error>,
) -> Result<Report, Error> {
    let mut report = Report::new();
    loop {
        match reader.step() {
            Ok(Step::Record(span)) => {
                report.record(span, reader.data_len(span));
                on_step(reader, Step::Record(span))?;
            }
            Ok(Step::Skipped(region)) | Err(Error::Corruption { region, .. }) => {
                report.findings.add(Finding {
                    region,
                    bit_flip: reader.bit_flip(region),
                });
                on_step(reader, Step::Skipped(region))?;
            }
            Ok(Step::NeedMore) => {}
            Ok(Step::End(end)) => {
                report.format = reader.format()?;
                report.end = end;
                report.other_log_number = reader.info().other_log_number.filter(|_| report.record_count == 0);
                report.file_len = reader.file_len();
                return Ok(report);
            }
            Err(error) => return Err(error),
        }
    }
}

/// [`verify`] for a file, with `threads` threads that each read a part of it.
///
/// The report is the same for any number of threads. One thread reads anything but a regular file,
/// and any file under [`OnCorruption::Stop`](crate::OnCorruption::Stop), where everything depends
/// on what comes before.
///
/// ```
/// use std::num::NonZeroUsize;
/// use cordwood_log::{ReadOptions, verbs};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("example.log");
/// # std::fs::write(&path, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")?;
/// let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
/// let report = verbs::verify_file(&path, &ReadOptions::default(), threads)?;
/// assert_eq!(report.record_count, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`] if the file cannot be opened or read, [`Error::Foreign`] if it is in another
/// format.
pub fn verify_file(path: impl AsRef<Path>, options: &ReadOptions, threads: NonZeroUsize) -> Result<Report, Error> {
    let path = path.as_ref();
    let mut whole = Reader::open(path, options.clone())?;
    let options = options.clone().with_format(whole.format()?);
    let ranges = split_ranges(&options, whole.file_len(), threads);
    if ranges.len() == 1 {
        return verify(&mut whole);
    }
    let readers = ranges.into_iter().map(|range| whole.another(range));
    verify_ranges(readers.collect::<Result<_, _>>()?)
}

/// [`verify`] for bytes in memory, with `threads` threads that each read a part of them. The report
/// is the same for any number of threads.
///
/// ```
/// use std::num::NonZeroUsize;
/// use cordwood_log::{ReadOptions, verbs};
/// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo";
/// let report = verbs::verify_slice(file, &ReadOptions::default(), NonZeroUsize::MIN)?;
/// assert_eq!((report.record_count, report.format.dialect), (1, cordwood_log::Dialect::LEVELDB));
/// # Ok::<(), cordwood_log::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`] if a thread cannot be started, [`Error::Foreign`] if it is in another format.
pub fn verify_slice(file: &[u8], options: &ReadOptions, threads: NonZeroUsize) -> Result<Report, Error> {
    let format = Reader::from_slice(file, options.clone()).format()?;
    let options = options.clone().with_format(format);
    let ranges = split_ranges(&options, Some(file.len() as u64), threads).into_iter();
    verify_ranges(
        ranges
            .map(|range| Reader::with_source(SliceSource::new(file), range))
            .collect(),
    )
}

/// [`verify`] for several readers concurrently, the first in this thread and each other in its own.
/// They must read adjacent ranges of the same file, in order: see [`split_ranges`].
///
/// ```
/// use std::num::NonZeroUsize;
/// use cordwood_log::{ReadOptions, Reader, verbs};
/// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(10_000);
/// let parts = verbs::split_ranges(&ReadOptions::default(), Some(100_000), NonZeroUsize::new(2).unwrap());
/// let report = verbs::verify_ranges(parts.into_iter().map(|part| Reader::from_slice(&file, part)).collect())?;
/// assert_eq!(report.file_len, Some(100_000));
/// # Ok::<(), cordwood_log::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`] if a source cannot be read or a thread cannot be started.
pub fn verify_ranges<S: Source + Send>(readers: Vec<Reader<S>>) -> Result<Report, Error> {
    let report = on_threads(readers, verify, Report::joined)?;
    Ok(report.unwrap_or_else(Report::new))
}
