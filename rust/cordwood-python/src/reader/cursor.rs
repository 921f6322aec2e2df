//! The state of a `Reader`: the core's reader, which keeps each finding until it is taken, and the
//! findings before it.

use std::sync::{Arc, Mutex, PoisonError};

use cordwood::ReadOptions;
use cordwood::damage::Severity;
use cordwood::read::Found;
use pyo3::prelude::*;

use super::listed::Listed;
use super::log::Logged;
use super::read_ahead::{Ahead, ReadAhead, Reading, SharedReadAhead, StopThreadsOnDrop, batch_count_max};
use crate::io::source::{Input, OpenedReader, Referent, SourceReader, is_interrupt};
use crate::memory::batch_pool::{Pool, PooledBatch};
use crate::memory::buffer::{bytes_of_pieces, new_bytes, try_bytes};
use crate::values::Outcome;
use crate::values::error::check_signals;
use crate::values::record::Record;

#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each reader, and most are open"
)]
pub(crate) enum State {
    Open(Open),
    /// The skipped regions stay readable after `close`.
    Closed {
        skipped: Listed,
        outcome: Outcome,
    },
}

impl State {
    /// Closes the reader, and returns the parts to drop if it was open.
    pub(crate) fn close(&mut self) -> Option<Box<Open>> {
        let closed = match self {
            State::Open(open) => State::Closed {
                outcome: open.outcome(),
                skipped: std::mem::take(&mut open.skipped),
            },
            State::Closed { .. } => return None,
        };
        match std::mem::replace(self, closed) {
            State::Open(open) => Some(Box::new(open)),
            State::Closed { .. } => None,
        }
    }
}

pub(crate) struct Open {
    pub(crate) reader: SourceReader,
    /// The file offset after everything returned or skipped.
    pub(crate) position: u64,
    pub(crate) skipped: Listed,
    pub(crate) end: Option<cordwood::End>,
    pending: Option<Box<Pending>>,
    /// Whether threads have read ahead, up to `position`: the core's reader has to seek there first.
    is_elsewhere: bool,
    /// For reading in several threads, if the source is a file or memory of known length.
    source: Option<Box<dyn Input>>,
    pub(crate) referent: Option<Referent>,
    pub(crate) options: ReadOptions,
    /// Where `seek` last went: no byte after that offset belongs to a range before it.
    pub(crate) sought: Option<u64>,
    pub(crate) logged: Logged,
    /// The position before the last step for which the interpreter was released. Initially one that
    /// is not near any other, since the first step may have to read.
    released_at: u64,
    /// Ends the threads that read ahead when this is dropped.
    read_ahead: StopThreadsOnDrop,
}

/// The state that `record_batches` keeps from one batch to the next.
pub(crate) struct BatchState {
    pub(crate) target_len: usize,
    pub(crate) threads: usize,
    pub(crate) pool: Arc<Pool>,
    /// Locked only while the reader is locked.
    pub(crate) read_ahead: SharedReadAhead,
}

impl BatchState {
    pub(crate) fn new(target_len: usize, threads: usize) -> Self {
        BatchState {
            target_len,
            threads,
            pool: Arc::new(Pool::new(batch_count_max(threads, target_len))),
            read_ahead: Arc::new(Mutex::new(ReadAhead::new(threads))),
        }
    }
}

/// Records that were moved to a record batch which could not be returned: an interrupt came first,
/// or there was not enough memory for the object. They come before those of the core's reader.
struct Pending {
    /// At least one record from `index` on.
    records: cordwood::read::RecordBatch,
    /// The index of the next record.
    index: usize,
    /// The position after them, and after the regions skipped after the last one.
    read_to: u64,
}

/// Why no record is returned.
pub(crate) enum Stop {
    Skipped(cordwood::damage::SkippedRegion),
    Failed(cordwood::Error),
    /// An exception from a signal handler, or a `MemoryError`.
    Raised(PyErr),
    End,
}

impl Open {
    pub(crate) fn new(opened: OpenedReader) -> Self {
        Open {
            source: opened.another,
            referent: opened.referent,
            sought: None,
            logged: Logged::default(),
            released_at: u64::MAX / 2,
            read_ahead: StopThreadsOnDrop::default(),
            reader: opened.reader,
            position: opened.options.start,
            skipped: Listed::default(),
            end: None,
            pending: None,
            is_elsewhere: false,
            options: opened.options,
        }
    }

    /// How reading ended, or that it has not yet.
    pub(crate) fn outcome(&self) -> Outcome {
        let zeros = self.reader.file_len().and_then(|len| self.skipped.zeros_before(len));
        // The end may have been found after records that could not be returned.
        let end = self.end.filter(|_| self.pending.is_none());
        Outcome::at(self.position, end, zeros)
    }

    pub(crate) fn seek(&mut self, offset: u64) -> Result<(), cordwood::Error> {
        self.reader.seek(offset)?;
        self.skipped.clear();
        self.end = None;
        self.pending = None;
        self.is_elsewhere = false;
        self.position = offset;
        self.sought = Some(offset);
        Ok(())
    }

    /// Takes the next record, if it has already been found, as an object made by `make`, which must
    /// not run Python code. `None` if no record has been found; also, with an exception set, if the
    /// object cannot be made: then the record stays the next one.
    // Inlined into the functions that are called once per record: none may pay for a call.
    #[inline(always)]
    pub(crate) fn take<T>(&mut self, py: Python<'_>, make: impl FnOnce(Record) -> PyResult<T>) -> Option<T> {
        if self.pending.is_some() || self.is_elsewhere {
            return None;
        }
        let next = self.reader.next_found()?;
        let found = next.record();
        let data = match found.as_slice() {
            Some(data) => new_bytes(py, data)?,
            None => bytes_of_pieces(py, found.pieces())?,
        };
        let end_offset = found.end_offset;
        let record = Record {
            offset: found.offset,
            end_offset,
            data: data.unbind(),
            salvaged: found.is_salvaged,
        };
        match make(record) {
            Ok(made) => {
                next.take();
                self.position = end_offset;
                Some(made)
            }
            Err(error) => {
                error.restore(py);
                None
            }
        }
    }

    /// [`take`](Self::take), after looking for the next record if necessary.
    pub(crate) fn next<T>(&mut self, py: Python<'_>, make: &impl Fn(Record) -> PyResult<T>) -> Result<T, Stop> {
        if let Some(pending) = self.pending.take() {
            return self.take_pending(py, pending, make);
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

    fn take_pending<T>(
        &mut self,
        py: Python<'_>,
        mut pending: Box<Pending>,
        make: &impl Fn(Record) -> PyResult<T>,
    ) -> Result<T, Stop> {
        let Pending { records, index, .. } = &mut *pending;
        let (offset, end_offset) = (records.record_offsets()[*index], records.record_end_offset(*index));
        let end_offset = end_offset.unwrap_or(offset);
        let made = try_bytes(py, records.get(*index).unwrap_or_default()).and_then(|data| {
            make(Record {
                offset,
                end_offset,
                data: data.unbind(),
                salvaged: records.is_salvaged(*index),
            })
        });
        if made.is_ok() {
            *index += 1;
            self.position = end_offset;
        }
        if *index < records.len() {
            self.pending = Some(pending);
        } else {
            self.position = pending.read_to;
        }
        made.map_err(Stop::Raised)
    }

    /// Looks for the next record, with the interpreter released except for short looks. A finding
    /// does not yet count as returned.
    fn look(&mut self, py: Python<'_>) -> Result<(), Stop> {
        self.come_here(py)?;
        loop {
            if !self.finds_shortly() {
                py.detach(|| self.search());
            }
            match self.reader.found() {
                Some(Found::Record(_)) => return Ok(()),
                Some(Found::Skipped(region)) if self.logged.only_counts(region) => self.pass(region),
                Some(_) => return self.stop(),
                None => check_signals(py).map_err(Stop::Raised)?,
            }
        }
    }

    /// Looks for the next event without releasing the interpreter, if the last look for which it was
    /// released is less than 4 KiB before this one. Where every second record is damaged, releasing
    /// it for each would take a quarter of the time. Returns `false` if the interpreter has to be
    /// released: otherwise, for a read, and for a compressed record, which may be as long as the
    /// limit allows.
    fn finds_shortly(&mut self) -> bool {
        const NEAR_LEN: u64 = 1 << 12;
        let is_near = self.position.wrapping_sub(self.released_at) < NEAR_LEN;
        is_near && self.reader.info().compression.is_none() && self.reader.find()
    }

    /// Looks for an event to report. Regions that are not logged are only counted here: they may be
    /// as short as a header. Returns after one read, or after many regions, even if it has found no
    /// record: a long part without a record must not delay Ctrl-C.
    fn search(&mut self) {
        let position = self.position;
        for _ in 0..REGION_COUNT_MAX {
            if !self.reader.find() {
                return self.reader.read_more();
            }
            match self.reader.found() {
                Some(Found::Skipped(region)) if self.logged.only_counts(region) => self.pass(region),
                _ => break,
            }
        }
        self.released_at = position;
    }

    /// Takes the finding, unless it is a record.
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

    fn end(&mut self, end: cordwood::End) {
        self.end = Some(end);
        self.position = end.offset();
    }

    /// Takes the region that has been found.
    fn pass(&mut self, region: cordwood::damage::SkippedRegion) {
        let _ = self.reader.advance();
        self.skip(region);
    }

    pub(crate) fn skip(&mut self, region: cordwood::damage::SkippedRegion) {
        if region.reason.severity() != Severity::TornTail {
            self.position = region.end;
        }
        self.skipped.add(region);
    }

    /// Prepares the core's reader to continue: seeks to where threads have read ahead.
    fn come_here(&mut self, py: Python<'_>) -> Result<(), Stop> {
        if self.end.is_some() {
            return Err(Stop::End);
        }
        if self.is_elsewhere {
            let position = self.position;
            py.detach(|| self.reader.seek(position)).map_err(Stop::Failed)?;
            self.is_elsewhere = false;
        }
        Ok(())
    }

    /// Takes the next record batch, as an object made by `make`. If that fails, its records are still
    /// the next ones. `make` must not run Python code.
    pub(crate) fn next_batch<T>(
        &mut self,
        py: Python<'_>,
        batches: &BatchState,
        make: &impl Fn(Arc<PooledBatch>) -> PyResult<T>,
    ) -> Result<T, Stop> {
        let records = match self.pending.take() {
            Some(mut pending) => {
                pending.records.remove_first(pending.index);
                self.position = pending.read_to;
                pending.records
            }
            None => {
                let mut records = batches.pool.take();
                let filled = self.fill(py, &mut records, batches);
                if records.is_empty() {
                    batches.pool.put(records);
                    return Err(filled.err().unwrap_or(Stop::End));
                }
                if let Err(interrupt) = filled {
                    self.keep(records);
                    return Err(interrupt);
                }
                records
            }
        };
        let mut batch = Arc::new(PooledBatch::new(records, Arc::clone(&batches.pool)));
        make(Arc::clone(&batch)).map_err(|error| {
            if let Some(batch) = Arc::get_mut(&mut batch) {
                self.keep(batch.take());
            }
            Stop::Raised(error)
        })
    }

    /// Keeps records that could not be returned for the next step.
    fn keep(&mut self, records: cordwood::read::RecordBatch) {
        if let Some(&offset) = records.record_offsets().first() {
            let read_to = std::mem::replace(&mut self.position, offset);
            self.pending = Some(Box::new(Pending {
                records,
                index: 0,
                read_to,
            }));
        }
    }

    /// Moves the next records to `records`: those that threads have read ahead, or as many as fill a
    /// batch; fewer before another event. Fails if that comes first, and at an interrupt.
    fn fill(
        &mut self,
        py: Python<'_>,
        records: &mut cordwood::read::RecordBatch,
        batches: &BatchState,
    ) -> Result<(), Stop> {
        if batches.threads > 1 && self.fill_from_threads(py, records, batches)? {
            return Ok(());
        }
        self.come_here(py)?;
        while !py
            .detach(|| self.gather(records, batches.target_len))
            .map_err(Stop::Failed)?
        {
            check_signals(py).map_err(Stop::Raised)?;
        }
        match self.reader.found() {
            // An exception from a source may wait until the records before it have been returned.
            Some(Found::Failed(error)) if !records.is_empty() && !is_interrupt(py, error) => Ok(()),
            Some(Found::Failed(_)) => self.stop(),
            _ if records.is_empty() => self.stop(),
            Some(Found::End(end)) => {
                self.end(end);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Moves records that are in memory to `records`, and then reads at most once. Returns whether
    /// the batch is full or ends before another event.
    fn gather(
        &mut self,
        records: &mut cordwood::read::RecordBatch,
        target_len: usize,
    ) -> Result<bool, cordwood::Error> {
        let position = self.position;
        for _ in 0..REGION_COUNT_MAX {
            let moved = self.reader.move_found(records, target_len);
            // Regions skipped after the last record have already advanced the position.
            self.position = self.position.max(records.end_offset());
            if moved.is_err() && records.is_empty() {
                return moved.map(|()| false);
            }
            if moved.is_err() || (records.is_full(target_len) && !records.is_empty()) {
                self.released_at = position;
                return Ok(true);
            }
            match self.reader.found() {
                Some(Found::Skipped(region)) if self.logged.only_counts(region) => self.pass(region),
                Some(_) => {
                    self.released_at = position;
                    return Ok(true);
                }
                None => {
                    self.reader.read_more();
                    break;
                }
            }
        }
        Ok(false)
    }

    /// Takes the next batch that threads have read ahead. Returns `false` if the reader itself has to
    /// read on.
    fn fill_from_threads(
        &mut self,
        py: Python<'_>,
        records: &mut cordwood::read::RecordBatch,
        batches: &BatchState,
    ) -> Result<bool, Stop> {
        if !self.read_ahead.is_of(&batches.read_ahead) {
            // Ends the threads of another iterator.
            self.read_ahead = StopThreadsOnDrop::new(&batches.read_ahead);
        }
        let mut read_ahead = batches.read_ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if self.options.dialect.is_none() {
            let format = py.detach(|| self.reader.format()).map_err(Stop::Failed)?;
            self.options = self.options.clone().with_format(format);
        }
        let Some(source) = self.source.as_ref().filter(|_| self.end.is_none()) else {
            return Ok(false);
        };
        let reading = Reading {
            source: source.as_ref(),
            options: &self.options,
            position: self.position,
            begins_range: self.sought.is_none() && self.position == self.options.start,
            pool: &batches.pool,
            target_len: batches.target_len,
        };
        let Some(ahead) = read_ahead.next(py, &reading).map_err(Stop::Raised)? else {
            return Ok(false);
        };
        self.is_elsewhere = true;
        match ahead {
            Ahead::Records(ahead) => {
                self.position = ahead.end_offset();
                batches.pool.put(std::mem::replace(records, ahead));
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

/// How many regions may be skipped before Ctrl-C is checked for.
const REGION_COUNT_MAX: u32 = 1 << 12;
