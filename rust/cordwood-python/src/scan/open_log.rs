//! One log of a scan while it is being read: its records as rows.

use std::sync::Arc;

use cordwood::damage::{Finding, Severity, SkippedRegion};
use cordwood::read::{Found, FoundRecord};
use cordwood::{ErrorKind, ReadOptions};

use super::plan::Plan;
use crate::arrow::Failure;
use crate::arrow::columns::{Column, TARGET_LEN};
use crate::arrow::failure::{attached, failure};
use crate::io::source::{Input, OpenedReader, SourceReader};
use crate::memory::batch_pool::Pool;
use crate::reader::log::{Logged, log_other_log, log_skipped, log_summary};
use crate::reader::read_ahead::{Ahead, ReadAhead, Reading};

/// The maximum number of rows in a batch without the records themselves.
const ROW_COUNT_MAX: usize = 1 << 16;

/// The rows of a batch. Without the records, each other column has a vector of its own; with them,
/// the others are derived from the records where possible.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) records: cordwood::read::RecordBatch,
    pub(super) offsets: Vec<u64>,
    pub(super) end_offsets: Vec<u64>,
    pub(super) lens: Vec<u64>,
    pub(super) salvaged: Vec<bool>,
}

impl Rows {
    /// Adds a row without the record itself.
    fn add(&mut self, plan: &Plan, record: FoundRecord<'_>) {
        self.offsets.push(record.offset);
        if plan.has(Column::EndOffset) {
            self.end_offsets.push(record.end_offset);
        }
        if plan.has(Column::Length) {
            self.lens.push(record.len());
        }
        if plan.has(Column::Salvaged) {
            self.salvaged.push(record.is_salvaged);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len().max(self.offsets.len())
    }
}

/// A log that is being read.
pub(super) struct OpenLog {
    /// The numbers of the reading and of the source.
    reading: u64,
    source: usize,
    /// How many times the source had been opened then, this time included.
    pub(super) opening: u64,
    pub(super) reader: SourceReader,
    /// Including the format, if it had to be detected.
    options: ReadOptions,
    /// The input that threads read, if they may.
    another: Option<Box<dyn Input>>,
    read_ahead: ReadAhead,
    /// Threads have read up to `position`: the reader has to seek there first.
    is_elsewhere: bool,
    pub(super) position: u64,
    logged: Logged,
}

impl OpenLog {
    /// `is_file`: whether threads may read ahead.
    pub(super) fn new(
        plan: &Plan,
        reading: u64,
        source: usize,
        opening: u64,
        opened: OpenedReader,
        is_file: bool,
    ) -> Self {
        // Threads are not worth it without the records.
        let is_ahead = plan.threads > 1 && plan.has(Column::Record);
        OpenLog {
            reading,
            source,
            opening,
            position: opened.options.start,
            another: opened.another.filter(|_| is_ahead && is_file),
            options: opened.options,
            reader: opened.reader,
            read_ahead: ReadAhead::new(plan.threads),
            is_elsewhere: false,
            logged: Logged::default(),
        }
    }

    /// Adds rows until the batch is full. Returns `false` if the log has no more.
    pub(super) fn fill(&mut self, plan: &Plan, pool: &Arc<Pool>, rows: &mut Rows) -> Result<bool, Failure> {
        if self.another.is_some()
            && let Some(is_full) = self.fill_from_threads(plan, pool, rows)?
        {
            return Ok(is_full);
        }
        if !plan.has(Column::Record) {
            self.reader.set_keeps_data(false);
        }
        loop {
            if self.add_found(plan, rows)? {
                return Ok(true);
            }
            match self.reader.found() {
                Some(Found::Record(_)) => {}
                Some(Found::Skipped(region)) => {
                    let _ = self.reader.advance();
                    self.skip(plan, region)?;
                }
                Some(Found::Failed(_)) => self.reader.advance().map_err(|error| self.failed(plan, error))?,
                Some(Found::End(end)) => {
                    self.position = end.offset();
                    self.log_end()?;
                    return Ok(false);
                }
                None => {
                    if !self.reader.find() {
                        self.reader.read_more();
                    }
                }
            }
        }
    }

    /// The next batch that threads have read; `None` if the reader itself reads on.
    fn fill_from_threads(&mut self, plan: &Plan, pool: &Arc<Pool>, rows: &mut Rows) -> Result<Option<bool>, Failure> {
        if self.options.dialect.is_none() {
            let format = self.reader.format().map_err(|error| self.failed(plan, error))?;
            self.options = self.options.clone().with_format(format);
        }
        while let Some(another) = &self.another {
            let reading = Reading {
                source: another.as_ref(),
                options: &self.options,
                position: self.position,
                begins_range: self.position == self.options.start,
                pool,
                target_len: TARGET_LEN,
            };
            match self.read_ahead.next_of_file(&reading) {
                Some(Ahead::Records(batch)) => {
                    self.is_elsewhere = true;
                    self.position = batch.end_offset();
                    pool.put(std::mem::replace(&mut rows.records, batch));
                    return Ok(Some(true));
                }
                Some(Ahead::Skipped(region)) => {
                    self.is_elsewhere = true;
                    self.skip(plan, region)?;
                }
                Some(Ahead::Failed(error)) => return Err(self.failed(plan, error)),
                Some(Ahead::Rest(offset)) => {
                    self.is_elsewhere = true;
                    self.position = offset;
                    self.another = None;
                }
                None => self.another = None,
            }
        }
        if std::mem::take(&mut self.is_elsewhere) {
            self.reader
                .seek(self.position)
                .map_err(|error| self.failed(plan, error))?;
        }
        Ok(None)
    }

    /// Adds rows for the records that are in memory. Returns whether the batch is full.
    fn add_found(&mut self, plan: &Plan, rows: &mut Rows) -> Result<bool, Failure> {
        if plan.has(Column::Record) {
            let moved = self.reader.move_found(&mut rows.records, TARGET_LEN);
            if !rows.records.is_empty() {
                self.position = self.position.max(rows.records.end_offset());
            }
            moved.map_err(|error| self.failed(plan, error))?;
            return Ok(rows.records.is_full(TARGET_LEN));
        }
        while let Some(next) = self.reader.next_found() {
            let record = next.record();
            rows.add(plan, record);
            self.position = record.end_offset;
            next.take();
            if rows.offsets.len() >= ROW_COUNT_MAX {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Logs, at the end of the log, a summary of the regions that were not logged individually.
    fn log_end(&mut self) -> Result<(), Failure> {
        let summary = self.logged.summary();
        let other_log = match self.options.start {
            0 => self.logged.other_log(&mut self.reader),
            _ => None,
        };
        if summary.is_none() && other_log.is_none() {
            return Ok(());
        }
        let path = self.reader.path();
        attached(|py| {
            log_summary(py, summary, path)?;
            log_other_log(py, other_log, path)
        })
    }

    /// Notes and logs a skipped region.
    fn skip(&mut self, plan: &Plan, region: SkippedRegion) -> Result<(), Failure> {
        plan.note(self.reading, self.source, |log| log.findings.add(Finding::new(region)));
        let severity = region.reason.severity();
        if severity != Severity::TornTail {
            self.position = region.end;
        }
        if severity == Severity::Corruption && self.logged.add(region) {
            let path = self.reader.path();
            attached(|py| log_skipped(py, region, path))?;
        }
        Ok(())
    }

    /// The failure for an error in reading the log. Damage is also listed as skipped.
    fn failed(&mut self, plan: &Plan, error: cordwood::Error) -> Failure {
        if let ErrorKind::Corruption { region, .. } = error.kind {
            plan.note(self.reading, self.source, |log| log.findings.add(Finding::new(region)));
            self.position = region.end;
        }
        failure(error, self.reader.path())
    }
}

/// The threads read files and need no interpreter, so this can wait for them without it.
impl Drop for OpenLog {
    fn drop(&mut self) {
        self.read_ahead.stop(None);
    }
}
