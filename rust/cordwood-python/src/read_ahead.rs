//! Record batches that several threads prefetch, each from a range of the file.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroUsize;
use std::thread;

use cordwood::damage::Severity;
use cordwood::format::BLOCK_LEN;
use cordwood::{Dialect, ReadOptions, verbs};
use pyo3::prelude::*;

use crate::batch_pool::Pool;
use crate::options::range_of;
use crate::source::{Input, SourceReader, source_at};

/// Bytes of the file that one thread reads at a time: enough to be worth a thread, and few enough
/// to be held in memory.
const RANGE_LEN: u64 = 512 * BLOCK_LEN as u64;

/// A part of a file, in order.
pub(crate) enum Found {
    RecordBatch(cordwood::read::RecordBatch),
    Skipped(cordwood::damage::SkippedRegion),
    Failed(cordwood::Error),
}

/// What has been prefetched after the position of a reader.
pub(crate) struct Ahead {
    threads: NonZeroUsize,
    found: VecDeque<Found>,
    /// The reader position at which the prefetched parts are valid.
    position: Option<u64>,
    /// Where the next ranges begin. `None`: the reader itself handles what is left, a torn tail or
    /// nothing.
    next: Option<u64>,
    /// `next` is the reader's position, and not the edge of a range.
    is_first: bool,
}

impl Ahead {
    pub(crate) fn new(threads: NonZeroUsize) -> Self {
        Ahead {
            threads,
            found: VecDeque::new(),
            position: None,
            next: None,
            is_first: false,
        }
    }

    /// The part at `position`, or `None` if the threads have nothing more to read.
    ///
    /// # Errors
    ///
    /// A signal handler has raised an exception.
    pub(crate) fn next(
        &mut self,
        py: Python<'_>,
        source: &dyn Input,
        options: &ReadOptions,
        position: u64,
        pool: &Pool,
        len_max: usize,
    ) -> PyResult<Option<Found>> {
        if self.position != Some(position) {
            // The reader has been used in another way meanwhile, or this is the first time.
            self.found.clear();
            self.next = Some(position);
            self.is_first = true;
            self.position = Some(position);
        }
        while self.found.is_empty() {
            let Some(begin) = self.next else {
                return Ok(None);
            };
            if let Err(source) = py.detach(|| self.read(source, options, begin, pool, len_max)) {
                self.found
                    .push_back(Found::Failed(cordwood::Error::Io { path: None, source }));
                break;
            }
            py.check_signals()?;
        }
        let found = self.found.pop_front();
        match &found {
            Some(Found::RecordBatch(batch)) => self.position = Some(batch.end_offset()),
            Some(Found::Skipped(region) | Found::Failed(cordwood::Error::Corruption { region, .. })) => {
                self.position = Some(region.end);
            }
            // Tried again from the reader's position.
            Some(Found::Failed(_)) | None => self.position = None,
        }
        Ok(found)
    }

    /// Reads the next ranges, one in each thread.
    fn read(
        &mut self,
        source: &dyn Input,
        options: &ReadOptions,
        begin: u64,
        pool: &Pool,
        len_max: usize,
    ) -> io::Result<()> {
        let dialect = options.dialect.unwrap_or(Dialect::LEVELDB);
        let file_len = source.len()?;
        let end = dialect
            .block_begin(begin)
            .saturating_add(self.threads.get() as u64 * RANGE_LEN);
        let file_end = file_len.unwrap_or(0).min(options.end.unwrap_or(u64::MAX));
        let is_last = end >= file_end;
        let range_end = if is_last { options.end } else { Some(end) };
        let ranges = verbs::split_ranges(
            &options.clone().with_range(range_of(begin, range_end)),
            file_len,
            self.threads,
        );
        let mut parts = Vec::with_capacity(ranges.len());
        for range in ranges {
            let Some(input) = source.another() else {
                return Err(io::ErrorKind::Unsupported.into());
            };
            let start = range.start;
            let mut part = SourceReader::with_source(source_at(input, dialect.block_begin(start))?, range);
            if std::mem::take(&mut self.is_first) {
                // A range skips what belongs to the one before it; here that must be reported.
                part.seek(start).map_err(|error| match error {
                    cordwood::Error::Io { source, .. } => source,
                    error => io::Error::other(error),
                })?;
            }
            parts.push(part);
        }
        let all: io::Result<Vec<_>> = thread::scope(|scope| {
            let spawn = |part| thread::Builder::new().spawn_scoped(scope, move || read_part(part, pool, len_max));
            let threads = parts.iter_mut().map(spawn).collect::<io::Result<Vec<_>>>()?;
            let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join();
            let all = threads.into_iter().map(join).collect::<Result<_, _>>();
            Ok(all.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let all = all?;
        self.next = (!is_last).then_some(end);
        for (found, is_torn) in all {
            self.found.extend(found);
            if is_torn || matches!(self.found.back(), Some(Found::Failed(cordwood::Error::Io { .. }))) {
                // The contents of the following ranges belong to this.
                self.next = None;
                break;
            }
        }
        Ok(())
    }
}

/// Everything in the range of `part`, up to a torn tail, and whether there is one.
fn read_part(part: &mut SourceReader, pool: &Pool, len_max: usize) -> (Vec<Found>, bool) {
    let mut found = Vec::new();
    let mut batch = pool.take();
    let take = |batch: &mut cordwood::read::RecordBatch, found: &mut Vec<Found>| {
        if !batch.is_empty() {
            found.push(Found::RecordBatch(std::mem::replace(batch, pool.take())));
        }
    };
    loop {
        let step = match part.record_batch_buffered(&mut batch, len_max) {
            Ok(cordwood::codec::Step::NeedMore) => part.fill().map(|()| cordwood::codec::Step::NeedMore),
            step => step,
        };
        match step {
            Ok(cordwood::codec::Step::NeedMore) => {}
            Ok(cordwood::codec::Step::Record(_)) => take(&mut batch, &mut found),
            Ok(cordwood::codec::Step::Skipped(region)) => {
                take(&mut batch, &mut found);
                if region.reason.severity() == Severity::TornTail {
                    return (found, true);
                }
                found.push(Found::Skipped(region));
            }
            Ok(cordwood::codec::Step::End(_)) => {
                take(&mut batch, &mut found);
                return (found, false);
            }
            Err(error) => {
                take(&mut batch, &mut found);
                let is_over = matches!(error, cordwood::Error::Io { .. });
                found.push(Found::Failed(error));
                if is_over {
                    return (found, false);
                }
            }
        }
    }
}
