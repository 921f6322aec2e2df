//! Counts the records, fragments and bytes of a log.

use std::num::NonZeroUsize;
use std::path::Path;

#[cfg(feature = "fs")]
use super::parallel::in_parts_of_file;
use super::parallel::{Parts, in_parts, joined_end};
use crate::damage::{Findings, Reason, Severity};
use crate::decode::{DataAt, End, ReadOptions, RecordSpan, Step};
use crate::dialect::LogFormat;
use crate::error::Error;
use crate::format::BLOCK_LEN;
use crate::reader::{Reader, SeekSource, Source};

/// Statistics about a log.
///
/// If the whole file was read, its length is `stored_len + header_len + trailer_len + skipped_len`.
/// The exception is a container with a record that was too long: the sum counts that record's bytes
/// twice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stat {
    /// The format of the log: its dialect, its log number and its compression.
    pub format: LogFormat,
    /// The number of records returned.
    pub record_count: u64,
    /// The number of returned records that start after damage in the same block. See
    /// [`Report::salvaged_count`](super::Report::salvaged_count).
    pub salvaged_count: u64,
    /// The number of data bytes in the records.
    pub payload_len: u64,
    /// The total payload size of the records' fragments, in bytes. It differs from `payload_len`
    /// only in a compressed or packed log.
    pub stored_len: u64,
    /// The total header size of the records' fragments, in bytes.
    pub header_len: u64,
    /// The length of the shortest record in bytes, or `None` if there are no records.
    pub record_len_min: Option<u64>,
    /// The length of the longest record in bytes, or `None` if there are no records.
    pub record_len_max: Option<u64>,
    /// The number of FULL fragments in the records.
    pub full_count: u64,
    /// The number of FIRST fragments in the records.
    pub first_count: u64,
    /// The number of MIDDLE fragments in the records.
    pub middle_count: u64,
    /// The number of LAST fragments in the records.
    pub last_count: u64,
    /// In a packed log, the number of containers with at least one returned record. Each is counted
    /// in the range where it starts.
    pub container_count: u64,
    /// The total payload size of the fragments that make up the counted containers, in bytes.
    pub container_len: u64,
    /// The number of records in containers.
    pub packed_count: u64,
    /// The total length of the records in containers, in bytes.
    pub packed_len: u64,
    /// The number of trailer bytes. If the rest of a block is too short for another header, it
    /// becomes a trailer.
    pub trailer_len: u64,
    /// The number of bytes that were not returned, for any reason. [`verify`](super::verify) lists
    /// the reasons.
    pub skipped_len: u64,
    /// The number of skipped bytes in regions of [`Severity::Corruption`].
    pub damaged_len: u64,
    /// The length of the file. For a log in [`segments`](crate::segments), this is the offset of
    /// its end. `None` if it isn't known, for example for a stream that was not read to the end.
    pub file_len: Option<u64>,
    /// How reading ended.
    pub end: End,
    /// If the whole file belongs to another log, the number of that log. See
    /// [`LogInfo::other_log_number`](crate::read::LogInfo::other_log_number).
    pub other_log_number: Option<u32>,
    /// The regions that were not returned. They are counted but not listed.
    skipped: Findings,
    /// The number of zero bytes after the last record.
    last_zeros_len: u64,
}

impl Stat {
    /// Returns the combined counts of this range and the next one.
    fn joined(mut self, next: Stat) -> Self {
        let end = joined_end(
            (self.record_count, &self.skipped, self.end),
            (next.record_count, &next.skipped, next.end),
        );
        self.skipped.append(next.skipped);
        Stat {
            format: self.format,
            record_count: self.record_count + next.record_count,
            salvaged_count: self.salvaged_count + next.salvaged_count,
            payload_len: self.payload_len + next.payload_len,
            stored_len: self.stored_len + next.stored_len,
            header_len: self.header_len + next.header_len,
            record_len_min: self.record_len_min.into_iter().chain(next.record_len_min).min(),
            record_len_max: self.record_len_max.max(next.record_len_max),
            full_count: self.full_count + next.full_count,
            first_count: self.first_count + next.first_count,
            middle_count: self.middle_count + next.middle_count,
            last_count: self.last_count + next.last_count,
            container_count: self.container_count + next.container_count,
            container_len: self.container_len + next.container_len,
            packed_count: self.packed_count + next.packed_count,
            packed_len: self.packed_len + next.packed_len,
            trailer_len: self.trailer_len + next.trailer_len,
            skipped_len: self.skipped_len + next.skipped_len,
            damaged_len: self.damaged_len + next.damaged_len,
            file_len: next.file_len.or(self.file_len),
            end,
            other_log_number: self.other_log_number,
            skipped: self.skipped,
            last_zeros_len: next.last_zeros_len + if next.record_count == 0 { self.last_zeros_len } else { 0 },
        }
    }

    /// Returns true if no damage was found, like [`Report::is_ok`](super::Report::is_ok).
    pub fn is_ok(&self) -> bool {
        !self.skipped.has(Severity::Corruption)
    }

    /// Counts the record most recently returned by `reader`.
    #[inline]
    fn add<S: Source>(&mut self, reader: &Reader<S>, span: RecordSpan) {
        let len = reader.decoder.data_len(span);
        let stored = reader.decoder.stored(span);
        self.record_count += 1;
        self.payload_len += len;
        self.record_len_min = Some(self.record_len_min.map_or(len, |min| min.min(len)));
        self.record_len_max = Some(self.record_len_max.map_or(len, |max| max.max(len)));
        self.stored_len += stored.payload_len;
        self.header_len += stored.header_len;
        match stored.fragment_count {
            // Each container's fragments are counted only once.
            0 => {}
            1 => self.full_count += 1,
            count => {
                self.first_count += 1;
                self.middle_count += count - 2;
                self.last_count += 1;
            }
        }
        // The trailers inside the record are counted here.
        self.trailer_len += stored.trailer_len;
        if let DataAt::Container { .. } = span.data_at {
            self.container_count += u64::from(stored.fragment_count > 0);
            self.container_len += stored.payload_len;
            self.packed_count += 1;
            self.packed_len += len;
        }
    }

    /// Returns the mean length of a record in bytes, or `None` if there are no records.
    pub fn record_len_mean(&self) -> Option<f64> {
        (self.record_count > 0).then(|| self.payload_len as f64 / self.record_count as f64)
    }

    /// Returns the file offset of the first trailing zero byte. See
    /// [`Report::zeros_offset`](super::Report::zeros_offset).
    pub fn zeros_offset(&self) -> Option<u64> {
        self.skipped.zeros_before(self.file_len?)
    }

    /// Returns the number of zero bytes ([`Reason::ZeroFill`]) before the last record. They are
    /// padding, unwritten space, or lost data.
    pub fn zeros_inside_len(&self) -> u64 {
        self.skipped.len_by(Reason::ZeroFill.as_str()) - self.last_zeros_len
    }

    /// Returns the number of blocks in the file, including a partial last one, or `None` if the
    /// length of the file is not known. For a log in [`segments`](crate::segments), counts blocks
    /// up to its end offset, as if it were one file.
    pub fn block_count(&self) -> Option<u64> {
        self.file_len.map(|len| len.div_ceil(BLOCK_LEN as u64))
    }
}

/// Reads to the end of the log, and counts records, fragments and bytes. Damage is not an error
/// here. Damaged bytes are counted in the same way as in [`verify`](super::verify). Like `verify`,
/// this function does not hold records in memory.
///
/// ```
/// use cordwood_log::{ReadOptions, ops};
/// use cordwood_log::read::SliceSource;
/// let file = b"\xdd\x5f\xb3\x7a\x03\x00\x01foo".repeat(2);
/// let stat = ops::stat(SliceSource::new(&file), &ReadOptions::default())?;
/// assert_eq!((stat.record_count, stat.full_count, stat.payload_len), (2, 2, 6));
/// assert_eq!((stat.record_len_mean(), stat.block_count()), (Some(3.0), Some(1)));
/// # Ok::<(), cordwood_log::Error>(())
/// ```
///
/// # Errors
///
/// Returns the same errors as [`Reader::next_event`], except
/// [`ErrorKind::Corruption`](crate::ErrorKind::Corruption).
pub fn stat<S: Source>(source: S, options: &ReadOptions) -> Result<Stat, Error> {
    stat_from(&mut Reader::with_source(source, options.clone()))
}

/// Like [`stat`], but starts at the position of `reader`.
pub(crate) fn stat_from<S: Source>(reader: &mut Reader<S>) -> Result<Stat, Error> {
    reader.without_failing(|reader| reader.without_data(count))
}

fn count<S: Source>(reader: &mut Reader<S>) -> Result<Stat, Error> {
    let mut stat = Stat::default();
    // The end of the last event. A gap between two events is a trailer.
    let mut position = None;
    // The number of records before the most recent zeros.
    let mut count_before_zeros = 0;
    loop {
        // The decoder has already found most records. This path avoids `step`, which would pass
        // each record's span through memory.
        if let Some(span) = reader.decoder.next_of_run() {
            stat.trailer_len += span.offset - position.unwrap_or(span.offset);
            position = Some(span.end_offset);
            stat.add(reader, span);
            continue;
        }
        let (start, end) = match reader.step()? {
            Step::Record(span) => {
                stat.add(reader, span);
                stat.salvaged_count += u64::from(span.is_salvaged);
                (span.offset, span.end_offset)
            }
            Step::Skipped(region) => {
                stat.skipped.count(region);
                if region.reason == Reason::ZeroFill {
                    if stat.record_count > count_before_zeros {
                        stat.last_zeros_len = 0;
                        count_before_zeros = stat.record_count;
                    }
                    stat.last_zeros_len += region.len();
                }
                (region.start, region.end)
            }
            Step::NeedMore => continue,
            Step::End(end) => {
                stat.format = reader.format()?;
                stat.trailer_len += match (end, position) {
                    // A range can end inside a container. The last record of a container extends to
                    // the container's end.
                    (End::Clean { offset }, Some(position)) => offset.saturating_sub(position),
                    // Here, the first fragment of a torn record is empty and is the last fragment
                    // of its block.
                    (End::TornTail { .. }, Some(position)) => {
                        let left = reader.decoder.grid().block_left(position);
                        let rest = reader
                            .file_len()
                            .map_or(0, |file_len| file_len.saturating_sub(position));
                        if left <= stat.format.dialect.trailer_len_max() {
                            rest.min(left as u64)
                        } else {
                            0
                        }
                    }
                    _ => 0,
                };
                if stat.record_count > count_before_zeros {
                    stat.last_zeros_len = 0;
                }
                stat.skipped_len = stat.skipped.len();
                stat.damaged_len = stat.skipped.len_of(Severity::Corruption);
                stat.file_len = reader.file_len();
                stat.end = end;
                stat.other_log_number = reader.info().other_log_number;
                return Ok(stat);
            }
        };
        stat.trailer_len += start - position.unwrap_or(start);
        position = Some(end);
    }
}

/// Opens a file and runs [`stat`] on it. If the file is long enough, its parts are divided among
/// `threads` threads. The result is the same no matter how many threads there are.
///
/// ```
/// use std::num::NonZeroUsize;
/// use cordwood_log::{ReadOptions, ops};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("example.log");
/// # std::fs::write(&path, b"\xdd\x5f\xb3\x7a\x03\x00\x01foo")?;
/// let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
/// let stat = ops::stat_file(&path, &ReadOptions::default(), threads)?;
/// assert_eq!((stat.record_count, stat.full_count, stat.header_len), (1, 1, 7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns the same errors as [`Reader::open`] and [`Reader::next_event`], except
/// [`ErrorKind::Corruption`](crate::ErrorKind::Corruption). Also returns
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if a thread cannot be started.
#[cfg(feature = "fs")]
pub fn stat_file(path: impl AsRef<Path>, options: &ReadOptions, threads: NonZeroUsize) -> Result<Stat, Error> {
    in_parts_of_file(path.as_ref(), options, threads, stat_from, Stat::joined)
}

/// Runs [`stat`] with one thread for each of `readers`, which all read the same file. The result
/// does not depend on the number of readers.
///
/// # Errors
///
/// Returns [`ErrorKind::Io`](crate::ErrorKind::Io) if a source cannot be read or a thread cannot be
/// started.
pub fn stat_parts<S: SeekSource + Send>(mut readers: Vec<Reader<S>>, parts: &Parts) -> Result<Stat, Error> {
    in_parts(&mut readers, parts, stat_from, stat_from, Stat::joined)
}
