//! Reads a log to its end and says what is in it and what is wrong with it.

use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

use crate::decode::{End, OnCorruption, ReadOptions, RecordSpan, Step};
use crate::error::{Error, Severity};
use crate::findings::{Finding, Findings};
use crate::format::{BLOCK_LEN, block_begin};
use crate::reader::{Reader, SliceSource, Source};

/// What is in a log, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Records that were returned.
    pub record_count: u64,
    /// How many of these begin behind damage in the same block: only under [`OnCorruption::Salvage`].
    pub salvaged_count: u64,
    /// Bytes of data in the records, without headers and trailers.
    pub payload_len: u64,
    /// Bytes of the whole file, also of what is not in the range. `None` if they are not known, as of a stream that was not read to its end.
    pub file_len: Option<u64>,
    /// What was not returned, and why.
    pub findings: Findings,
    /// How the records ended.
    pub end: End,
}

impl Report {
    fn new() -> Self {
        Report {
            record_count: 0,
            salvaged_count: 0,
            payload_len: 0,
            file_len: None,
            findings: Findings::default(),
            end: End::Clean { offset: 0 },
        }
    }

    /// Whether no damage was found: no region of [`Severity::Corruption`]. A torn tail is no damage.
    pub fn is_ok(&self) -> bool {
        self.findings.len_of(Severity::Corruption) == 0
    }

    /// Whether it tells of nothing.
    fn is_empty(&self) -> bool {
        self.record_count == 0 && self.findings.is_empty()
    }

    #[inline]
    fn record(&mut self, span: RecordSpan, len: usize) {
        self.record_count += 1;
        self.salvaged_count += u64::from(span.is_salvaged);
        self.payload_len += len as u64;
    }

    /// The report of this range and the one behind it as one.
    fn joined(mut self, next: Report) -> Report {
        // Nothing begins in a range without events: the one before it has read over it, and knows better where it ended. So it does if it
        // ended in a torn record, and the next range has only more of the torn tail.
        let is_torn = matches!((self.end, next.end), (End::TornTail { .. }, End::TornTail { .. }));
        let is_more_of_it =
            is_torn && next.record_count == 0 && next.findings.len() == next.findings.len_by("torn_tail");
        if self.is_empty() || !(next.is_empty() || is_more_of_it) {
            self.end = next.end;
        }
        self.record_count += next.record_count;
        self.salvaged_count += next.salvaged_count;
        self.payload_len += next.payload_len;
        self.file_len = next.file_len.or(self.file_len);
        self.findings.append(next.findings);
        self
    }
}

/// Reads to the end, from where `reader` stands, and reports what was found.
///
/// Damage is no error here: [`OnCorruption::Raise`] does what [`OnCorruption::Skip`] does.
///
/// ```
/// use cordwood::{FragmentPart, ReadOptions, Reader, verbs};
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
/// # Ok::<(), cordwood::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`] if the source cannot be read.
pub fn verify<S: Source>(reader: &mut Reader<S>) -> Result<Report, Error> {
    report(reader, |_| Ok(()))
}

/// [`verify`], with a look at each record.
pub(super) fn report<S: Source>(
    reader: &mut Reader<S>,
    mut on_record: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Report, Error> {
    let mut report = Report::new();
    loop {
        match reader.step() {
            Ok(Step::Record(span)) => {
                let data = reader.data(span);
                report.record(span, data.len());
                on_record(data)?;
            }
            Ok(Step::Skipped(region)) | Err(Error::Corruption { region, .. }) => report.findings.add(Finding {
                region,
                bit_flip: reader.bit_flip(region),
            }),
            Ok(Step::NeedMore) => {}
            Ok(Step::End(end)) => {
                report.end = end;
                report.file_len = reader.file_len();
                return Ok(report);
            }
            Err(error) => return Err(error),
        }
    }
}

/// [`verify`] for a file, with `threads` threads that each read a part of it.
///
/// The report is the same for any number of threads. What is no regular file is read by one, and so is anything under
/// [`OnCorruption::Stop`], where all depends on what comes before.
///
/// ```
/// use std::num::NonZeroUsize;
/// use cordwood::{ReadOptions, verbs};
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
/// [`Error::Io`] if the file cannot be opened or read.
pub fn verify_file(path: impl AsRef<Path>, options: &ReadOptions, threads: NonZeroUsize) -> Result<Report, Error> {
    let path = path.as_ref();
    let mut whole = Reader::open(path, options.clone())?;
    let ranges = split_ranges(options, whole.file_len(), threads);
    if ranges.len() == 1 {
        return verify(&mut whole);
    }
    let readers = ranges.into_iter().map(|range| Reader::open(path, range));
    verify_ranges(readers.collect::<Result<_, _>>()?)
}

/// [`verify`] for bytes in memory, with `threads` threads that each read a part of them. The report is the same for any number of threads.
///
/// ```
/// use std::num::NonZeroUsize;
/// use cordwood::{ReadOptions, verbs};
/// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo";
/// let report = verbs::verify_slice(file, &ReadOptions::default(), NonZeroUsize::MIN)?;
/// assert_eq!(report.record_count, 1);
/// # Ok::<(), cordwood::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`] if a thread cannot be started.
pub fn verify_slice(file: &[u8], options: &ReadOptions, threads: NonZeroUsize) -> Result<Report, Error> {
    let ranges = split_ranges(options, Some(file.len() as u64), threads).into_iter();
    verify_ranges(
        ranges
            .map(|range| Reader::with_source(SliceSource::new(file), range))
            .collect(),
    )
}

/// Cuts the range of `options` at block boundaries into at most `count` parts of about the same length, for [`verify_ranges`] or for readers on
/// several machines. Together they give the events of the whole range, each once.
///
/// It is one part under [`OnCorruption::Stop`], and where `file_len` is not known.
///
/// ```
/// use std::num::NonZeroUsize;
/// use cordwood::{ReadOptions, verbs};
/// let parts = verbs::split_ranges(&ReadOptions::default(), Some(100_000), NonZeroUsize::new(2).unwrap());
/// assert_eq!((parts[0].start, parts[0].end), (0, Some(65_536)));
/// assert_eq!((parts[1].start, parts[1].end), (65_536, None));
/// ```
pub fn split_ranges(options: &ReadOptions, file_len: Option<u64>, count: NonZeroUsize) -> Vec<ReadOptions> {
    let first = block_begin(options.start);
    let len = file_len.map_or(0, |file_len| {
        options.end.unwrap_or(u64::MAX).min(file_len).saturating_sub(first)
    });
    let block_count = len.div_ceil(BLOCK_LEN as u64);
    let count = match options.on_corruption {
        OnCorruption::Stop => 1,
        _ => block_count.clamp(1, count.get() as u64),
    };
    let part_len = block_count.div_ceil(count) * BLOCK_LEN as u64;
    let mut ranges = Vec::new();
    let mut rest = options.clone();
    for part in 1..count {
        let edge = first + part * part_len;
        if edge >= first + len {
            break;
        }
        ranges.push(rest.clone().with_range(rest.start, Some(edge)));
        rest.start = edge;
    }
    ranges.push(rest);
    ranges
}

/// [`verify`] for several readers at a time, each in a thread of its own; the first in this one. They must read adjacent ranges of the same file, in
/// order: see [`split_ranges`].
///
/// ```
/// use std::num::NonZeroUsize;
/// use cordwood::{ReadOptions, Reader, verbs};
/// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(10_000);
/// let parts = verbs::split_ranges(&ReadOptions::default(), Some(100_000), NonZeroUsize::new(2).unwrap());
/// let report = verbs::verify_ranges(parts.into_iter().map(|part| Reader::from_slice(&file, part)).collect())?;
/// assert_eq!(report.file_len, Some(100_000));
/// # Ok::<(), cordwood::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Io`] if a source cannot be read or a thread cannot be started.
pub fn verify_ranges<S: Source + Send>(mut readers: Vec<Reader<S>>) -> Result<Report, Error> {
    let Some((first, others)) = readers.split_first_mut() else {
        return Ok(Report::new());
    };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for reader in others {
            let thread = thread::Builder::new().spawn_scoped(scope, || verify(reader));
            threads.push(thread.map_err(|source| Error::Io { path: None, source })?);
        }
        let mut report = verify(first)?;
        for thread in threads {
            let next = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            report = report.joined(next?);
        }
        Ok(report)
    })
}
