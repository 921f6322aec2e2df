//! One reading of all sources of a scan, batch by batch.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::open_log::{OpenLog, Rows};
use super::plan::Plan;
use super::source::Source;
use crate::arrow::columns::{Column, bool_column, number_column, offset_column, record_column};
use crate::arrow::failure::{attached, io_failure};
use crate::arrow::{Array, Batches, Failure, Field};
use crate::memory::batch_pool::{Pool, PooledBatch};

/// A reading of all sources.
pub(super) struct Stream {
    plan: Arc<Plan>,
    /// Its own references: the garbage collector must not mistake the scan's for all of them.
    sources: Vec<Source>,
    is_binary: bool,
    pool: Arc<Pool>,
    /// The number of this reading; `None` before it has begun.
    reading: Option<u64>,
    /// The index of the source that is being read, or is read next.
    source: usize,
    log: Option<OpenLog>,
    /// The failure, if it has failed: each further call fails in the same way.
    failed: Option<Failure>,
}

impl Batches for Stream {
    fn fields(&self) -> Vec<Field> {
        let columns = self.plan.columns.iter();
        columns.map(|column| column.field(self.is_binary)).collect()
    }

    fn next(&mut self) -> Result<Option<Array>, Failure> {
        let plan = Arc::clone(&self.plan);
        let reading = *self.reading.get_or_insert_with(|| plan.begin());
        while self.failed.is_none() && self.source < self.sources.len() {
            let mut rows = Rows {
                records: self.pool.take(),
                ..Rows::default()
            };
            let filled = self.fill(reading, &mut rows);
            let source = self.source;
            match filled {
                Ok(true) => {}
                Ok(false) => {
                    self.log = None;
                    self.source += 1;
                }
                Err(failure) => {
                    self.log = None;
                    self.failed = Some(failure);
                }
            }
            if rows.len() > 0 {
                return Ok(Some(self.table(source, rows)));
            }
            self.pool.put(rows.records);
        }
        self.failed.clone().map_or(Ok(None), Err)
    }
}

impl Stream {
    pub(super) fn new(plan: Arc<Plan>, sources: Vec<Source>, is_binary: bool, pool: Pool) -> Self {
        Stream {
            plan,
            sources,
            is_binary,
            pool: Arc::new(pool),
            reading: None,
            source: 0,
            log: None,
            failed: None,
        }
    }

    /// Adds rows of the current source. Returns `false` if it has no more.
    fn fill(&mut self, reading: u64, rows: &mut Rows) -> Result<bool, Failure> {
        let mut log = match self.log.take() {
            Some(log) => log,
            None => self.open(reading)?,
        };
        if log.opening != self.plan.openings[self.source].load(Ordering::Relaxed)
            && matches!(self.sources[self.source], Source::Object { .. })
        {
            return Err(io_failure(
                "another stream has started reading the same file object: read the streams one after the other, or scan a path",
            ));
        }
        let filled = log.fill(&self.plan, &self.pool, rows);
        let (position, end, file_len) = (log.position, log.reader.end(), log.reader.file_len());
        self.plan.note(reading, self.source, |found| {
            found.position = position;
            found.end = end;
            found.file_len = file_len;
        });
        let filled = filled?;
        self.log = Some(log);
        Ok(filled)
    }

    fn open(&self, reading: u64) -> Result<OpenLog, Failure> {
        let opening = self.plan.openings[self.source].fetch_add(1, Ordering::Relaxed) + 1;
        let source = &self.sources[self.source];
        let opened = source.open(&self.plan.source_options[self.source], opening > 1)?;
        // Threads cannot wait for the interpreter, which the consumer may hold: they read only
        // files.
        let is_file = matches!(source, Source::Path(_));
        Ok(OpenLog::new(&self.plan, reading, self.source, opening, opened, is_file))
    }

    fn table(&self, source: usize, mut rows: Rows) -> Array {
        let len = rows.len();
        let plan = &self.plan;
        let records = &rows.records;
        if records.len() == len {
            if plan.has(Column::EndOffset) && rows.end_offsets.is_empty() {
                let ends = (0..len).map(|row| records.record_end_offset(row).unwrap_or_default());
                rows.end_offsets = ends.collect();
            }
            if plan.has(Column::Salvaged) && rows.salvaged.is_empty() {
                rows.salvaged = (0..len).map(|row| records.is_salvaged(row)).collect();
            }
            if plan.has(Column::Length) && rows.lens.is_empty() {
                let lens = records.offsets().windows(2).map(|ends| (ends[1] - ends[0]) as u64);
                rows.lens = lens.collect();
            }
        }
        let batch = Arc::new(PooledBatch::new(rows.records, Arc::clone(&self.pool)));
        let columns = plan.columns.iter().map(|column| match column {
            Column::Offset if batch.records().is_empty() => number_column(std::mem::take(&mut rows.offsets)),
            Column::Offset => offset_column(&batch),
            Column::Record => record_column(&batch, self.is_binary),
            Column::EndOffset => number_column(std::mem::take(&mut rows.end_offsets)),
            Column::Length => number_column(std::mem::take(&mut rows.lens)),
            Column::Path => plan.paths.column(source, len),
            Column::Salvaged => bool_column(&rows.salvaged),
        });
        Array::table(len, columns.collect())
    }
}

/// Python objects are released at once, not when the interpreter is next used.
impl Drop for Stream {
    fn drop(&mut self) {
        let sources = std::mem::take(&mut self.sources);
        self.log = None;
        if sources.iter().any(|source| !matches!(source, Source::Path(_))) {
            let _ = attached(|_| {
                drop(sources);
                Ok(())
            });
        }
    }
}
