//! Reads all of a scan's sources once, one batch at a time.

use std::sync::{Arc, Mutex, PoisonError};

use cordwood::OnCorruption;

use super::source::Source;
use crate::arrow::columns::{Column, table};
use crate::arrow::failure::{attached, failure, io_failure};
use crate::arrow::{self, Array, Failure, Field};
use crate::reader::cursor::Cursor;
use crate::reader::log;
use crate::reader::read_ahead::{Batches, Stop};
use crate::reader::skipped::Skipped;

/// A batch is complete once it contains this many bytes. On Sapphire Rapids, batches of 1 MiB don't
/// stay in the processor's cache and take 1.05 to 1.15 times as long as batches of this size.
/// Batches of 4 MiB need new memory each time and take 1.5 times as long.
const TARGET_LEN: usize = 1 << 18;

/// The sources, options and findings shared by all streams of a scan.
pub(super) struct Plan {
    pub(super) sources: Vec<Source>,
    pub(super) columns: Vec<Column>,
    pub(super) on_corruption: OnCorruption,
    pub(super) threads: usize,
    /// The findings from the most recently started read.
    pub(super) latest: Mutex<Reading>,
}

/// The findings from one pass over all sources, one item per source.
type Reading = Arc<[Skipped]>;

impl Plan {
    fn has(&self, column: Column) -> bool {
        self.columns.contains(&column)
    }

    pub(super) fn fields(&self) -> Vec<Field> {
        self.columns.iter().map(|column| column.field()).collect()
    }

    pub(super) fn latest(&self) -> Reading {
        Arc::clone(&self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts a read.
    fn start(&self) -> Reading {
        let reading: Reading = self.sources.iter().map(|_| Skipped::default()).collect();
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&reading);
        reading
    }
}

/// The state of one pass over all sources.
pub(super) struct Stream {
    plan: Arc<Plan>,
    batches: Batches,
    /// The findings, or `None` before the first source is read.
    reading: Option<Reading>,
    /// The index of the source being read, or of the next one to read.
    source: usize,
    /// The log being read, and the count that [`Source::open`] returned for it.
    log: Option<(Cursor, u64)>,
}

impl arrow::Batches for Stream {
    fn fields(&self) -> Vec<Field> {
        self.plan.fields()
    }

    fn next(&mut self) -> Result<Option<Array>, Failure> {
        let reading = Arc::clone(self.reading.get_or_insert_with(|| self.plan.start()));
        while self.source < self.plan.sources.len() {
            let (mut cursor, opening) = match self.log.take() {
                Some(log) => log,
                None => self.open(&reading)?,
            };
            if self.plan.sources[self.source].is_shared(opening) {
                return Err(io_failure(
                    "another stream has started reading the same file object: read the streams one after the other, or scan a path",
                ));
            }
            let mut batch = cursor.next_batch(None, &self.batches, Ok);
            let messages = cursor.report(&mut batch);
            reading[self.source].set_outcome(cursor.outcome());
            let path = cursor.reader.path();
            if messages.iter().any(Option::is_some) {
                attached(|py| log::log(py, messages, path))?;
            }
            match batch {
                Ok(mut batch) => {
                    self.log = Some((cursor, opening));
                    // A table keeps the batches of all logs. Because many logs are short, each
                    // batch's unused memory is released.
                    if let Some(batch) = Arc::get_mut(&mut batch) {
                        batch.shrink();
                    }
                    let path = self.plan.sources[self.source].path.as_deref();
                    return Ok(Some(table(&self.plan.columns, &batch, path)));
                }
                Err(Stop::Skipped(_)) => self.log = Some((cursor, opening)),
                Err(Stop::End) => self.source += 1,
                Err(Stop::Failed(error)) => return Err(failure(error, path)),
                Err(Stop::Raised(error)) => return attached(|_| Err(error)),
            }
        }
        Ok(None)
    }
}

impl Stream {
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        // Without the record column, reading in several threads is no faster.
        let threads = if plan.has(Column::Record) { plan.threads } else { 1 };
        Stream {
            batches: Batches::new(TARGET_LEN, threads),
            plan,
            reading: None,
            source: 0,
            log: None,
        }
    }

    fn open(&self, reading: &Reading) -> Result<(Cursor, u64), Failure> {
        let (opened, opening) = self.plan.sources[self.source].open()?;
        let mut cursor = Cursor::new(opened, reading[self.source].clone());
        cursor.reader.set_keeps_data(self.plan.has(Column::Record));
        Ok((cursor, opening))
    }
}
