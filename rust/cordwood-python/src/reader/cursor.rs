//! The cursor that a reader, its iterators and a scan use to move through a log. It takes records
//! from the core's reader or from threads that read ahead. The core's reader keeps each finding
//! until it is taken.

use std::sync::Arc;

use cordwood::damage::{Severity, SkippedRegion};
use cordwood::read::{Found, RecordBatch};
use cordwood::{End, Error, ErrorKind, Hint, ReadOptions};
use pyo3::prelude::*;

use super::log::{Logged, Messages};
use super::read_ahead::{Ahead, Batches, ReadAhead, Reading, Stop, check_for_interrupt};
use super::skipped::Skipped;
use crate::interpreter::released;
use crate::io::source::{Input, OpenedReader, Referent, SourceReader, is_interrupt};
use crate::memory::batch_pool::PooledBatch;
use crate::memory::buffer::{bytes_of_pieces, new_bytes, try_bytes};
use crate::values::Outcome;
use crate::values::error::check_signals;
use crate::values::record::Record;

/// The maximum number of regions to skip before checking for Ctrl-C.
const REGION_COUNT_MAX: u32 = 1 << 12;

/// The position in a log, and the findings up to that position. A record or a batch is consumed
/// only when a step returns it. If a step fails because of Ctrl-C or because there isn't enough
/// memory for an object, the next step returns the same record or batch.
///
/// Some steps take an optional `py`. It is `None` if the calling thread might not be attached to
/// the interpreter, for example when the consumer of an Arrow stream makes the call.
pub(crate) struct Cursor {
    pub(crate) reader: SourceReader,
    pub(crate) options: ReadOptions,
    /// The file offset up to which data has been taken from the core's reader or from the threads.
    position: u64,
    pub(crate) skipped: Skipped,
    end: Option<End>,
    /// The records before `position` that were gathered for a batch. The records from `first`
    /// onward have not been returned yet.
    gathered: RecordBatch,
    first: usize,
    /// Whether threads have read up to `position`. If so, the core's reader has to seek there
    /// before it takes over.
    is_elsewhere: bool,
    /// The source to read in several threads. `None` unless it is a file or a buffer whose length
    /// is known.
    source: Option<Box<dyn Input>>,
    ahead: ReadAhead,
    pub(crate) referent: Option<Referent>,
    /// The offset passed to the last `seek`. No byte after this offset belongs to an earlier range.
    sought: Option<u64>,
    pub(super) logged: Logged,
    /// The position before the last step that released the interpreter lock. The initial value is
    /// not near any position, because the first step may have to wait for a read.
    released_at: u64,
}

impl Cursor {
    pub(crate) fn new(opened: OpenedReader, skipped: Skipped) -> Self {
        Cursor {
            position: opened.options.start,
            reader: opened.reader,
            options: opened.options,
            skipped,
            end: None,
            gathered: RecordBatch::default(),
            first: 0,
            is_elsewhere: false,
            source: opened.another,
            ahead: ReadAhead::default(),
            referent: opened.referent,
            sought: None,
            logged: Logged::default(),
            released_at: u64::MAX / 2,
        }
    }

    /// Returns the end of the data returned so far, as a file offset.
    pub(crate) fn position(&self) -> u64 {
        if self.gathered.is_empty() {
            return self.position;
        }
        let returned = self.first.checked_sub(1);
        let end = returned.and_then(|last| self.gathered.record_end_offset(last));
        end.unwrap_or(self.gathered.record_offsets()[0])
    }

    /// Returns the outcome: how reading ended, or that it hasn't ended yet.
    pub(crate) fn outcome(&self) -> Outcome {
        let zeros = self.reader.file_len().and_then(|len| self.skipped.zeros_before(len));
        // The end may have been found before all records could be returned.
        let end = self.end.filter(|_| self.gathered.is_empty());
        Outcome::at(self.position(), end, zeros)
    }

    /// Moves to `offset`. Returns the messages about the part of the log read so far.
    pub(crate) fn seek(&mut self, offset: u64) -> Result<Messages, Error> {
        self.reader.seek(offset)?;
        self.skipped.clear();
        self.end = None;
        self.gathered.clear();
        self.first = 0;
        self.is_elsewhere = false;
        self.position = offset;
        self.sought = Some(offset);
        Ok([self.logged.summary(), None])
    }

    /// Stops the threads that are reading ahead for `batches`.
    pub(crate) fn stop_threads(&mut self, batches: &Batches) {
        if self.ahead.is_for(batches) {
            self.ahead = ReadAhead::default();
        }
    }

    /// Takes the next record if it has already been found. `make` converts the record to an object,
    /// and must not run Python code. Returns `None` if no record has been found. If the conversion
    /// fails, returns `None` with an exception set, and the next call retries the same record.
    // Inlined into the functions that are called once per record, where the cost of a call would
    // matter.
    #[inline(always)]
    pub(crate) fn take<T>(&mut self, py: Python<'_>, make: impl FnOnce(Record) -> PyResult<T>) -> Option<T> {
        if !self.gathered.is_empty() || self.is_elsewhere {
            return None;
        }
        let position = &mut self.position;
        self.reader.take_record(
            #[inline(always)]
            |found| {
                let data = match found.as_slice() {
                    Some(data) => new_bytes(py, data)?,
                    None => bytes_of_pieces(py, found.pieces())?,
                };
                let made = make(Record {
                    offset: found.offset,
                    end_offset: found.end_offset,
                    data: data.unbind(),
                    salvaged: found.is_salvaged,
                });
                let made = made.map_err(|error| error.restore(py)).ok()?;
                *position = found.end_offset;
                Some(made)
            },
        )
    }

    /// Looks for the next record if necessary, and takes it as [`take`](Self::take) does.
    pub(crate) fn next<T>(&mut self, py: Python<'_>, make: &impl Fn(Record) -> PyResult<T>) -> Result<T, Stop> {
        if !self.gathered.is_empty() {
            return self.take_gathered(py, make).map_err(Stop::Raised);
        }
        loop {
            if let Some(made) = self.take(py, make) {
                return Ok(made);
            }
            if let Some(error) = PyErr::take(py) {
                return Err(Stop::Raised(error));
            }
            self.look(py)?;
        }
    }

    fn take_gathered<T>(&mut self, py: Python<'_>, make: &impl Fn(Record) -> PyResult<T>) -> PyResult<T> {
        let (records, index) = (&self.gathered, self.first);
        let offset = records.record_offsets()[index];
        let made = make(Record {
            offset,
            end_offset: records.record_end_offset(index).unwrap_or(offset),
            data: try_bytes(py, records.get(index).unwrap_or_default())?.unbind(),
            salvaged: records.is_salvaged(index),
        })?;
        self.first += 1;
        if self.first == records.len() {
            self.gathered.clear();
            self.first = 0;
        }
        Ok(made)
    }

    /// Looks for the next record, releasing the interpreter lock unless the search is short.
    fn look(&mut self, py: Python<'_>) -> Result<(), Stop> {
        self.come_here(Some(py))?;
        loop {
            if !self.finds_shortly() {
                py.detach(|| self.find(None)).map_err(Stop::Failed)?;
            }
            match self.reader.found() {
                Some(Found::Record(_)) => return Ok(()),
                Some(Found::Skipped(region)) if self.logged.only_counts(region) => self.pass(region),
                Some(_) => return self.stop(),
                None => check_signals(py).map_err(Stop::Raised)?,
            }
        }
    }

    /// Looks for the next event without releasing the interpreter lock. If every other record were
    /// damaged, releasing the lock each time would take a quarter of the total time. Returns
    /// `false` if the lock has to be released. Every read requires that. So does every compressed
    /// record, because it may be as long as the limit allows. The lock also has to be released if
    /// the last release was at least 4 KiB before this position.
    fn finds_shortly(&mut self) -> bool {
        const NEAR_LEN: u64 = 1 << 12;
        let is_near = self.position.wrapping_sub(self.released_at) < NEAR_LEN;
        is_near && self.reader.info().compression.is_none() && self.reader.find()
    }

    /// Looks for an event to report, and gathers the records before it until they fill a batch of
    /// `target_len` bytes. If `target_len` is `None`, every record is an event. A region that is
    /// not logged is not an event; it is just counted. There can be a huge number of such regions,
    /// because a region can be as short as a header. Returns whether an event or a batch was found.
    /// Returns `false` after one read, or after skipping many regions, so that a long part without
    /// records doesn't delay Ctrl-C.
    fn find(&mut self, target_len: Option<usize>) -> Result<bool, Error> {
        let position = self.position;
        for _ in 0..REGION_COUNT_MAX {
            let is_filled = match target_len {
                Some(target_len) => self.gather(target_len)?,
                None => {
                    self.reader.find();
                    false
                }
            };
            match self.reader.found() {
                Some(Found::Skipped(region)) if !is_filled && self.logged.only_counts(region) => self.pass(region),
                None if !is_filled => {
                    self.reader.read_more();
                    break;
                }
                _ => {
                    self.released_at = position;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Gathers records that are in memory. Returns `true` if they fill a batch of `target_len`
    /// bytes, or if there isn't enough memory for the next record. In the second case, the batch is
    /// shorter.
    fn gather(&mut self, target_len: usize) -> Result<bool, Error> {
        let moved = self.reader.move_found(&mut self.gathered, target_len);
        // The position may already be higher, because skipping a region also advances it.
        self.position = self.position.max(self.gathered.end_offset());
        match moved {
            Err(error) if self.gathered.is_empty() => Err(error),
            Err(_) => Ok(true),
            Ok(()) => Ok(!self.gathered.is_empty() && self.gathered.is_full(target_len)),
        }
    }

    /// Consumes the finding, unless it is a record.
    fn stop(&mut self) -> Result<(), Stop> {
        let stop = match self.reader.found() {
            Some(Found::Record(_)) | None => return Ok(()),
            Some(Found::Skipped(region)) => Some(Stop::Skipped(region)),
            Some(Found::End(end)) => {
                self.end(end);
                Some(Stop::End)
            }
            Some(Found::Failed(_)) => None,
        };
        self.reader.advance().map_err(Stop::Failed)?;
        stop.map_or(Ok(()), Err)
    }

    fn end(&mut self, end: End) {
        self.end = Some(end);
        self.position = end.offset();
    }

    /// Consumes the region that has been found.
    fn pass(&mut self, region: SkippedRegion) {
        let _ = self.reader.advance();
        self.skip(region);
    }

    fn skip(&mut self, region: SkippedRegion) {
        if region.reason.severity() != Severity::TornTail {
            self.position = region.end;
        }
        self.skipped.add(region);
    }

    /// If an event ended the step, marks that event as reported, and returns the messages about it.
    /// The caller logs them once other threads can use the cursor again.
    pub(crate) fn report<T>(&mut self, step: &mut Result<T, Stop>) -> Messages {
        match step {
            Err(Stop::Skipped(region)) => {
                self.skip(*region);
                // This damage isn't reported anywhere else.
                if region.reason.severity() == Severity::Corruption {
                    return self.logged.add(*region);
                }
            }
            Err(Stop::Failed(error)) => {
                if let ErrorKind::Corruption { region, .. } = error.kind {
                    self.skip(region);
                    // The core's reader also seeks when it takes over from the threads. The user
                    // did not choose that offset, so a hint to check the offset is replaced.
                    if error.hint == Some(Hint::CheckOffset) && self.sought != Some(region.start) {
                        error.hint = Some(Hint::OnCorruption);
                    }
                }
            }
            Err(Stop::End) => {
                let is_whole = self.options.start == 0 && self.sought.is_none();
                return self.logged.end(is_whole.then_some(&mut self.reader));
            }
            Err(Stop::Raised(_)) | Ok(_) => {}
        }
        Messages::default()
    }

    /// Prepares the core's reader to take over from the threads, by seeking to the position they
    /// have reached.
    fn come_here(&mut self, py: Option<Python<'_>>) -> Result<(), Stop> {
        if self.end.is_some() {
            return Err(Stop::End);
        }
        if self.is_elsewhere {
            let position = self.position;
            released(py, || self.reader.seek(position)).map_err(Stop::Failed)?;
            self.is_elsewhere = false;
        }
        Ok(())
    }

    /// Takes the next record batch. `make` converts it to an object, and must not run Python code.
    /// If `make` fails, the next step returns the same records.
    pub(crate) fn next_batch<T>(
        &mut self,
        py: Option<Python<'_>>,
        batches: &Batches,
        make: impl FnOnce(Arc<PooledBatch>) -> PyResult<T>,
    ) -> Result<T, Stop> {
        if self.gathered.is_empty() {
            self.gathered = batches.pool.take();
            let filled = self.fill(py, batches);
            if self.gathered.is_empty() {
                batches.pool.put(std::mem::take(&mut self.gathered));
                return Err(filled.err().unwrap_or(Stop::End));
            }
            filled?;
        }
        let mut records = std::mem::take(&mut self.gathered);
        records.remove_first(std::mem::take(&mut self.first));
        let mut batch = Arc::new(PooledBatch::new(records, Arc::clone(&batches.pool)));
        make(Arc::clone(&batch)).map_err(|error| {
            if let Some(batch) = Arc::get_mut(&mut batch) {
                self.gathered = batch.take();
            }
            Stop::Raised(error)
        })
    }

    /// Gathers the next records. Takes them from threads that read ahead, or reads until a batch is
    /// full. Any event other than a record ends a batch early. Fails if such an event precedes the
    /// first record, or if a signal handler raises an exception.
    fn fill(&mut self, py: Option<Python<'_>>, batches: &Batches) -> Result<(), Stop> {
        if batches.threads > 1 && self.take_ahead(py, batches)? {
            return Ok(());
        }
        self.come_here(py)?;
        while !released(py, || self.find(Some(batches.target_len))).map_err(Stop::Failed)? {
            check_for_interrupt(py)?;
        }
        match self.reader.found() {
            // An exception from the source is raised later, after the records before it have been
            // returned.
            Some(Found::Failed(error))
                if !self.gathered.is_empty() && !py.is_some_and(|py| is_interrupt(py, error)) =>
            {
                Ok(())
            }
            Some(Found::Failed(_)) => self.stop(),
            _ if self.gathered.is_empty() => self.stop(),
            Some(Found::End(end)) => {
                self.end(end);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes the next batch from the threads that read ahead. Returns `false` if the core's reader
    /// has to take over.
    fn take_ahead(&mut self, py: Option<Python<'_>>, batches: &Batches) -> Result<bool, Stop> {
        if self.options.dialect.is_none() {
            let format = released(py, || self.reader.format()).map_err(Stop::Failed)?;
            self.options = self.options.clone().with_format(format);
        }
        let Some(source) = self.source.as_ref().filter(|_| self.end.is_none()) else {
            return Ok(false);
        };
        let reading = Reading {
            source: source.as_ref(),
            options: &self.options,
            position: self.position,
            starts_range: self.sought.is_none() && self.position == self.options.start,
            batches,
        };
        let Some(ahead) = self.ahead.next(py, &reading)? else {
            return Ok(false);
        };
        self.is_elsewhere = true;
        match ahead {
            Ahead::Records(records) => {
                self.position = records.end_offset();
                batches.pool.put(std::mem::replace(&mut self.gathered, records));
                Ok(true)
            }
            Ahead::Skipped(region) => Err(Stop::Skipped(region)),
            Ahead::Failed(error) => Err(Stop::Failed(error)),
            Ahead::Rest(offset) => {
                self.position = offset;
                Ok(false)
            }
        }
    }
}
