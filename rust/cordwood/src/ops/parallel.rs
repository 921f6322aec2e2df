//! Reads ranges of one file in several threads, and joins the results in the order of the ranges.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::Path;
use std::thread;

use crate::damage::{Findings, Severity};
use crate::decode::{End, OnCorruption, ReadOptions};
use crate::dialect::{Dialect, Grid};
use crate::error::Error;
use crate::format::BLOCK_LEN;
use crate::pipeline::in_order;
use crate::reader::{FileReader, Reader, SeekSource, StreamSource};

/// Splits the range of `options` at block boundaries into at most `count` parts of about the same
/// length, for readers in several threads or on several machines. Together, the readers return each
/// event in the whole range exactly once.
///
/// Returns a single part if `file_len` is not known or the policy is [`OnCorruption::Stop`]. Also
/// returns a single part if the dialect has log numbers, because the end of the log then depends on
/// all earlier bytes. Without a dialect, [`Dialect::LEVELDB`] is assumed.
///
/// ```
/// use std::num::NonZeroUsize;
/// use cordwood_log::{ReadOptions, ops};
/// let parts = ops::split_ranges(&ReadOptions::default(), Some(100_000), NonZeroUsize::new(2).unwrap());
/// assert_eq!((parts[0].start, parts[0].end), (0, Some(65_536)));
/// assert_eq!((parts[1].start, parts[1].end), (65_536, None));
/// ```
pub fn split_ranges(options: &ReadOptions, file_len: Option<u64>, count: NonZeroUsize) -> Vec<ReadOptions> {
    let (_, len) = splittable(options, file_len);
    let block_count = len.div_ceil(BLOCK_LEN as u64).max(1);
    let part_len = block_count.div_ceil(count.get() as u64) * BLOCK_LEN as u64;
    let parts = Parts::new(options, file_len, part_len);
    (0..parts.count.max(1)).map(|part| parts.options(part)).collect()
}

/// Returns the file offset of the first block in the range of `options`, and the number of bytes
/// from there that can be read in parts. This number is 0 if the meaning of a part depends on the
/// parts before it.
fn splittable(options: &ReadOptions, file_len: Option<u64>) -> (u64, u64) {
    let dialect = options.dialect.unwrap_or(Dialect::LEVELDB);
    // In a segment, a part does not always start at a block boundary.
    let first = Grid::new(dialect, 0).block_start(options.start);
    let end = file_len.map_or(0, |file_len| options.end.unwrap_or(u64::MAX).min(file_len));
    if options.on_corruption == OnCorruption::Stop || dialect.has_log_numbers() {
        return (first, 0);
    }
    (first, end.saturating_sub(first))
}

/// A range that several threads read, divided into numbered parts. Each part starts at a block
/// boundary, except the first, which starts where the range starts.
#[derive(Debug, Clone)]
pub struct Parts {
    options: ReadOptions,
    /// The file offset of the first block.
    first: u64,
    part_len: u64,
    count: u64,
}

impl Parts {
    /// The minimum and maximum length of a part in bytes, for callers that keep only a summary of
    /// each part. A thread reads past the end of its part, to the end of the last record that
    /// starts in it. With parts of 4 MiB, the extra reading and the transfer of the results take
    /// about 2% of the time.
    pub const LENS: RangeInclusive<u64> = 32 * BLOCK_LEN as u64..=128 * BLOCK_LEN as u64;

    /// Returns parts for this many threads. The parts' lengths are in the range `lens`, whose
    /// bounds must be multiples of the block length. Each thread gets several parts, so that all
    /// threads finish at about the same time. `options` must name the dialect.
    pub fn for_threads(
        options: &ReadOptions,
        file_len: Option<u64>,
        threads: usize,
        lens: RangeInclusive<u64>,
    ) -> Self {
        let (_, len) = splittable(options, file_len);
        let part_len = (len / (8 * threads as u64)).next_multiple_of(BLOCK_LEN as u64);
        Parts::new(options, file_len, part_len.clamp(*lens.start(), *lens.end()))
    }

    /// Returns parts of `part_len` bytes, which must be a multiple of the block length. `options`
    /// must name the dialect.
    pub fn new(options: &ReadOptions, file_len: Option<u64>, part_len: u64) -> Self {
        let (first, len) = splittable(options, file_len);
        Parts {
            options: options.clone(),
            first,
            part_len,
            count: len.div_ceil(part_len),
        }
    }

    /// Returns the number of parts.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether this many threads are faster than one. They are not faster if there is only
    /// one processor, or if there are only a few parts.
    pub fn are_worth(&self, threads: usize) -> bool {
        let has_processors = || thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        threads > 1 && self.count >= 2 * threads as u64 && has_processors()
    }

    /// Returns the options for reading the range of one part. Bytes appended to the file in the
    /// meantime belong to the last part.
    pub fn options(&self, part: u64) -> ReadOptions {
        let mut options = self.options.clone();
        if part > 0 {
            options.start = self.first + part * self.part_len;
        }
        if part + 1 < self.count {
            options.end = Some(self.first + (part + 1) * self.part_len);
        }
        options
    }
}

/// Runs `work` on all parts, with one thread for each of `readers`, and joins the results in order.
/// All readers read the same file. If there are no parts, or only one reader, runs `whole` on the
/// first reader instead. Returns the default result if there are no readers.
pub(super) fn in_parts<S: SeekSource + Send, T: Send + Default>(
    readers: &mut [Reader<S>],
    parts: &Parts,
    whole: impl Fn(&mut Reader<S>) -> Result<T, Error>,
    work: impl Fn(&mut Reader<S>) -> Result<T, Error> + Sync,
    join: impl Fn(T, T) -> T,
) -> Result<T, Error> {
    if readers.len() < 2 || parts.count == 0 {
        return readers.first_mut().map_or_else(|| Ok(T::default()), whole);
    }
    let work = &work;
    let workers = readers.iter_mut().map(|reader| {
        move |part| {
            reader.restart(parts.options(part))?;
            work(reader)
        }
    });
    let mut all = None;
    in_order(
        parts.count,
        workers.collect(),
        |source| Error::io(source, None),
        |part: Result<T, Error>| {
            let part = part?;
            all = Some(match all.take() {
                Some(all) => join(all, part),
                None => part,
            });
            Ok(())
        },
    )?;
    Ok(all.unwrap_or_default())
}

/// Opens the file at `path` and runs `work` on it with at most `threads` threads. See [`in_parts`].
#[cfg(feature = "fs")]
pub(super) fn in_parts_of_file<T: Send + Default>(
    path: &Path,
    options: &ReadOptions,
    threads: NonZeroUsize,
    work: impl Fn(&mut Reader<StreamSource<FileReader>>) -> Result<T, Error> + Sync,
    join: impl Fn(T, T) -> T,
) -> Result<T, Error> {
    let mut whole = Reader::open_with(path, options.clone())?;
    // If the dialect cannot be detected, naming one in the options would wrongly imply that it is
    // known.
    let format = whole.detect()?;
    // A segmented log is read by one thread, because its parts do not start at block boundaries and
    // all threads read the same file.
    let Some(format) = format.filter(|_| !whole.get_ref().is_segmented()) else {
        return work(&mut whole);
    };
    let options = options.clone().with_format(format);
    let parts = Parts::for_threads(&options, whole.file_len(), threads.get(), Parts::LENS);
    if parts.are_worth(threads.get()) {
        let readers = (0..threads.get()).map(|_| whole.another(options.clone()));
        return in_parts(&mut readers.collect::<Result<Vec<_>, _>>()?, &parts, &work, &work, join);
    }
    work(&mut whole)
}

/// Combines the outcomes of reading two consecutive ranges. Each range is given as its number of
/// records, its skipped regions and its [`End`].
///
/// If no event starts in the second range, the reader of the first range has already read past it.
/// In that case, the first range's end is returned. The first end is also returned if the first
/// range ends with a torn tail and the second range contains only the rest of that tail.
pub(super) fn joined_end(
    (count, skipped, end): (u64, &Findings, End),
    (next_count, next_skipped, next_end): (u64, &Findings, End),
) -> End {
    let has_events = count > 0 || !skipped.is_empty();
    let is_torn = matches!((end, next_end), (End::TornTail { .. }, End::TornTail { .. }));
    let tail_len = if is_torn {
        next_skipped.len_of(Severity::TornTail)
    } else {
        0
    };
    let goes_on = next_count == 0 && next_skipped.len() == tail_len;
    if has_events && goes_on { end } else { next_end }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer ranges have longer parts, within the limits, and there are always enough parts for
    /// the threads.
    #[test]
    fn longer_ranges_are_split_into_longer_parts() {
        const MIB: u64 = 1 << 20;
        for threads in [1, 2, 3, 8, 256] {
            for (len, part_len) in [
                (0, MIB),
                (2 * MIB * threads, MIB),
                (8 * MIB * threads, MIB),
                (20 * MIB * threads, 5 * MIB / 2),
                (32 * MIB * threads, 4 * MIB),
                (1000 * MIB * threads, 4 * MIB),
            ] {
                let options = ReadOptions::default();
                let parts = Parts::for_threads(&options, Some(len), threads as usize, Parts::LENS);
                assert_eq!(
                    (parts.part_len, parts.count),
                    (part_len, len.div_ceil(part_len)),
                    "{len}"
                );
                assert!(parts.count >= 2 * threads || len == 0);
            }
        }
    }
}
